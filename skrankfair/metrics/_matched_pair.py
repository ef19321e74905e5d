"""Matched pair calibration (Korevaar et al.)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._ranking import RankedData, Ranking, ranked_data
from .._validation import Array, Groups, check_choice, check_number
from ._matching import Matching
from ._metric import Metric, warn_undefined
from ._pair_table import MeanOfRatios, pair_sums, support_columns
from ._pairs import FocalSums
from ._result import GroupEstimates


@dataclass(frozen=True)
class MatchedPairs:
    """Pairs (i, j) within a threshold, i in the group, j outside; value: y_i - y_j.

    Attributes
    ----------
    ranking : Ranking
    y : ndarray of shape (n,)
        Outcomes in ranked order, centred within the query: differences stay what they
        are, and prefix sums stay small.
    groups : Groups
    epsilon : mapping of label to float
        Threshold of each group; NaN for a group without pairs.
    direction : {"below", "both"}
    """

    ranking: Ranking
    y: Array
    groups: Groups
    epsilon: Mapping[Hashable, float]
    direction: str

    has_rest = False
    bucket = None
    n_buckets = 1
    #: The value of (j, i) is `mirror` less that of (i, j).
    mirror = 0.0

    @cached_property
    def _known(self) -> dict[int, tuple[Matching, Array, Array]]:
        return {}

    def _matched(self, group: int) -> tuple[Matching, Array, Array]:
        """Return the group's possible pairs and the range of each of its rows."""
        if group not in self._known:
            self._known.clear()  # one at a time: the ranges are as long as the rows
            member = self.groups.mask(group)
            matching = Matching(self.ranking, member, ~member, self.direction)
            self._known[group] = matching, *matching.windows(self._epsilon(group))
        return self._known[group]

    def _epsilon(self, group: int) -> float:
        return self.epsilon[self.groups.labels[group]]

    def _partner_sums(
        self, matching: Matching, low: Array, high: Array, power: int
    ) -> Array:
        """Return Σ y_j**power over the range of partners of each focal row."""
        y = self.y[matching.partner_rows]
        before = np.empty(y.size + 1)
        before[0] = 0.0
        np.cumsum(y if power == 1 else y**power, out=before[1:])
        total: Array = before[high]
        total -= before[low]
        return total

    def focal(self, group: int) -> FocalSums:
        """Return value and number of the pairs of each row of the group."""
        matching, low, high = self._matched(group)
        count = high - low
        value = count * self.y[matching.rows]
        value -= self._partner_sums(matching, low, high, 1)
        return FocalSums(matching.rows, value, count)

    def partner(self, group: int) -> FocalSums:
        """Return value and number of the pairs of each row outside the group."""
        matching, low, high = self._matched(group)
        y = self.y[matching.rows]
        some = np.flatnonzero(high > low)
        if some.size < low.size:
            low, high, y = low[some], high[some], y[some]
        size = matching.partner_rows.size + 1
        number = np.bincount(low, minlength=size)
        number -= np.bincount(high, minlength=size)
        total = np.bincount(low, weights=y, minlength=size).astype(float)
        total -= np.bincount(high, weights=y, minlength=size)
        number, total = np.cumsum(number)[:-1], np.cumsum(total)[:-1]
        partners = matching.partner_rows
        total -= number * self.y[partners]
        total[number == 0] = 0.0  # what is left of the sums there is rounding
        return FocalSums(partners, total, number)

    def own_products(self, group: int, weight: Array | None) -> Array:
        """Return Σ x xᵀ over the group's pairs, x = (value, 1)."""
        return self._products(*self._matched(group), weight)

    def _products(
        self, matching: Matching, low: Array, high: Array, weight: Array | None
    ) -> Array:
        number, y = high - low, self.y[matching.rows]
        total = self._partner_sums(matching, low, high, 1)
        square = self._partner_sums(matching, low, high, 2)
        if weight is not None:
            w = weight[matching.rows]
            number, total, square = number * w, total * w, square * w
        value = y @ number - total.sum()
        squares = (y * y) @ number - 2 * (y @ total) + square.sum()
        return np.array([[squares, value], [value, number.sum()]])

    def class_products(
        self,
        focal: Array,
        partners: Array,
        pair: tuple[int, int],
        opposite: bool,
        weight: Array | None,
    ) -> Array:
        """Return Σ x xᵀ over the pairs of two classes that both groups count.

        Seen from the first group; `opposite`: for the second the pair is the other way
        round, which a pair "below" is only when its scores are tied.
        """
        epsilon = min(self._epsilon(pair[0]), self._epsilon(pair[1]))
        if opposite and self.direction == "below":
            if not self.ranking.has_ties:
                return np.zeros((2, 2))
            epsilon = 0.0 if epsilon >= 0 else math.nan
        matching = Matching(self.ranking, focal, partners, self.direction)
        return self._products(matching, *matching.windows(epsilon), weight)


def _centred(y: Array, ranking: Ranking) -> Array:
    means = np.add.reduceat(y, ranking.starts[:-1]) / ranking.lengths
    if np.array_equal(y, np.rint(y)):
        means = np.rint(means)  # sums of integers stay exact
    return y - np.repeat(means, ranking.lengths)


def _check_threshold(
    epsilon: Any, n_pairs: Any, quantile: Any
) -> tuple[Any, float | None]:
    given = [
        name
        for name, value in (
            ("epsilon", epsilon),
            ("n_pairs", n_pairs),
            ("quantile", quantile),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise ValueError(
            f"Only one of epsilon, n_pairs and quantile can be given; got "
            f"{' and '.join(given)}."
        )
    if n_pairs is not None:
        check_number(n_pairs, "n_pairs", 1, np.inf, integer=True)
    elif epsilon is None:
        quantile = 0.01 if quantile is None else quantile
        check_number(quantile, "quantile", 0, 1, inclusive=(False, True))
    elif not isinstance(epsilon, Mapping):
        check_number(epsilon, "epsilon", 0, np.inf)
    return epsilon, quantile


def _epsilon_of_groups(
    data: RankedData,
    epsilon: Any,
    n_pairs: int | None,
    quantile: float | None,
    direction: str,
) -> dict[Hashable, float]:
    groups = data.groups
    if isinstance(epsilon, Mapping):
        missing = [label for label in groups.labels if label not in epsilon]
        if missing:
            raise ValueError(f"epsilon must name every group; it has no {missing}.")
        for label in groups.labels:
            # A group without pairs in one part of the data has NaN there.
            if not (isinstance(epsilon[label], float) and math.isnan(epsilon[label])):
                check_number(epsilon[label], f"epsilon[{label!r}]", 0, np.inf)
        return {label: float(epsilon[label]) for label in groups.labels}
    if epsilon is not None:
        return {label: float(epsilon) for label in groups.labels}
    chosen: dict[Hashable, float] = {}
    weight = data.query_weight
    for group, label in enumerate(groups.labels):
        member = groups.mask(group)
        matching = Matching(data.ranking, member, ~member, direction)
        row_weight = None
        if weight is not None:
            row_weight = weight[data.ranking.query[matching.rows]]
        chosen[label] = matching.kth_smallest(n_pairs, quantile, row_weight)
    return chosen


def matched_pair_estimates(
    data: RankedData,
    *,
    epsilon: Any = None,
    n_pairs: int | None = None,
    quantile: float | None = None,
    direction: str = "below",
    average: str = "pairs",
    variance: str = "auto",
) -> GroupEstimates:
    """Return `matched_pair_calibration` of data that is validated and ordered."""
    check_choice(direction, "direction", ("below", "both"))
    epsilon, quantile = _check_threshold(epsilon, n_pairs, quantile)
    chosen = _epsilon_of_groups(data, epsilon, n_pairs, quantile, direction)

    def make_source(data: RankedData) -> MatchedPairs:
        y = _centred(data.y_true, data.ranking)
        return MatchedPairs(data.ranking, y, data.groups, chosen, direction)

    result = GroupEstimates(
        metric=Metric(
            name="matched_pair_calibration",
            finalize=MeanOfRatios(),
            support=support_columns(average, has_rest=False),
            fair_value=0.0,
            disparity="max_abs",
        ),
        sums=pair_sums(data, make_source, variance, average),
        parameters={"direction": direction, "average": average},
        first_pass={"epsilon": chosen},
    )
    return warn_undefined(result)


def matched_pair_calibration(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    qid: Any = None,
    cluster: Any = None,
    epsilon: float | Mapping[Hashable, float] | None = None,
    n_pairs: int | None = None,
    quantile: float | None = None,
    direction: str = "below",
    average: str = "pairs",
    variance: str = "auto",
    sample_weight: Any = None,
) -> GroupEstimates:
    """Outcome of a group's items less that of others scored a little higher.

    For group a, the mean of ``y_i - y_j`` over pairs of one query with i in a, j not
    in a, and ``0 <= s_j - s_i <= epsilon``. The ranker was nearly indifferent between
    the two, so a fair score leaves no difference: the fair value is 0, and a positive
    value says that the group is undervalued. No pair is written down; memory is
    linear in the rows also for one query of a million items.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes: binary, graded or real, the larger the better.
    y_score : array-like of shape (n,)
        Scores: the higher is ranked the earlier.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels; several columns are crossed. A boolean matrix or frame is a
        membership matrix of overlapping groups, one a column, each against the rest.
    qid : array-like of shape (n,) or None, default=None
        Query of each row; only rows of one query are compared. None is one list.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries (a user with many). None: each
        query is its own. For one list, clusters of its items.
    epsilon : float, mapping of group to float, or None, default=None
        Closeness threshold, in units of the score.
    n_pairs : int or None, default=None
        Take the K closest possible pairs of each group instead: epsilon is the K-th
        smallest difference. Pairs tied at epsilon are all kept.
    quantile : float or None, default=None
        Take this share of the possible pairs instead, rounded up. 0.01, the paper's
        "first percentile", if none of the three is given.
    direction : {"below", "both"}, default="below"
        "below": the group's item has the lower or equal score (Definition 1).
        "both": ``|s_j - s_i| <= epsilon`` (§4.1.3).
    average : {"pairs", "queries"}, default="pairs"
        "pairs" pools all pairs (Definition 3); "queries" is the mean over queries with
        a pair of the query's mean.
    variance : {"auto", "cluster", "item"}, default="auto"
        "cluster": queries (or `cluster`) are independent. "item": items are, and pairs
        that share one are not (§4.1.4). "auto" is "item" for one list, else "cluster".
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the query, constant within it; 2 is the query seen twice.

    Returns
    -------
    GroupEstimates
        One row a group, ``first_pass["epsilon"]`` with the threshold of each. Results
        add up where their thresholds are equal.

    Raises
    ------
    ValueError
        For columns of different lengths, values that are not finite, missing labels,
        more than one of `epsilon`, `n_pairs` and `quantile`, a query in two clusters,
        or an unknown option.

    Warns
    -----
    UndefinedMetricWarning
        For a group without a matched pair, whose estimate is NaN.

    See Also
    --------
    pairwise_accuracy : How often the better item is ranked above the worse.

    Notes
    -----
    With N pairs, θ their mean and ``d = y_i - y_j - θ``: ``variance="cluster"`` is
    ``Q / (Q - 1) · Σ_q (Σ_{pairs of q} d)² / N²`` over Q clusters, centred;
    ``variance="item"`` is ``[Σ_i (Σ_j d_ij)² + Σ_j (Σ_i d_ij)² - Σ_ij d_ij²] / N²``
    (Aronow et al. 2017). The threshold is taken as given.

    References
    ----------
    Korevaar, H., McConnell, C., Tong, E., et al. "Matched Pair Calibration for Ranking
    Fairness", Definitions 1-3 and §4.1.

    Aronow, P. M., Samii, C., Assenova, V. A. (2017). "Cluster-Robust Variance
    Estimation for Dyadic Data". Political Analysis 23(4).

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import matched_pair_calibration
    >>> rng = np.random.default_rng(0)
    >>> query = np.repeat(np.arange(500), 20)
    >>> group = rng.choice(["a", "b"], size=query.size)
    >>> score = rng.random(query.size)
    >>> y = rng.random(query.size) < 0.8 * score + 0.1 * (group == "a")
    >>> r = matched_pair_calibration(
    ...     y, score, sensitive_features=group, qid=query, epsilon=0.05
    ... )
    >>> r
    matched_pair_calibration(direction='below', average='pairs')
    group  estimate        95% interval  pairs       p
    a        0.0906    [0.0594, 0.1218]  2,384  <0.001
    b       -0.1406  [-0.1712, -0.1101]  2,254  <0.001
    500 clusters; fair value 0
    """
    data = ranked_data(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        qid=qid,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    return matched_pair_estimates(
        data,
        epsilon=epsilon,
        n_pairs=n_pairs,
        quantile=quantile,
        direction=direction,
        average=average,
        variance=variance,
    )
