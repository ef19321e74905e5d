"""`matched_pair_calibration`: outcomes of a group and others at near scores."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._estimates.finalize import (
    NOTHING,
    Finalize,
    MeanOfRatios,
    PositionMean,
    quotient,
)
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.storage import stored
from .._inputs.columns import OneWayError
from .._inputs.groups import as_columns
from .._inputs.ranking import Memberships, RankedData, measured
from .._inputs.validation import (
    Array,
    check_aligned,
    check_choice,
    check_given,
    check_magnitude,
    check_number,
    collected_warnings,
)
from ._pairs.cluster_rows import support_columns
from ._pairs.item_rows import pair_sums, warn_undefined_pairs
from ._pairs.local_linear import (
    LinearPairs,
    LocalLinear,
    LocalQuadratic,
    QuadraticPairs,
    kernel_columns,
    linear_minus_quadratic,
)
from ._pairs.matched import (
    DistantPairs,
    MatchedPairs,
    WrittenPairs,
    centred,
    close_pairs,
    kth_smallest_adjacent,
    mean_columns,
    neighbours,
)
from ._pairs.near import Matching, PairWeight
from ._position_weights import PositionWeight

#: By estimator: class of the pairs, function of totals.
_REGRESSIONS: dict[str, tuple[type[MatchedPairs], Any]] = {
    "local_linear": (LinearPairs, LocalLinear),
    "local_quadratic": (QuadraticPairs, LocalQuadratic),
}
#: The smallest and largest share of the possible pairs within a bandwidth of "mse".
_BANDWIDTHS = np.geomspace(0.005, 0.5, 12)
#: The largest epsilon with covariates: queries are put further apart than it.
_WIDEST = 1e60


@stored("SlopeTerm")
@dataclass(frozen=True)
class SlopeTerm:
    """The mean over pairs of unequal scores that equal treatment would have.

    The mean distance times the slope of a placebo, whose value and distance are the
    first two shared columns.
    """

    of: Finalize  # the mean over pairs, of a value and a number
    n_buckets: int = 1

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the terms, shape (..., G); 0 where no pair has a distance."""
        size = self.n_buckets
        number, total = by_group[..., size : 2 * size], by_group[..., 2 * size :]
        total = total[..., :size]
        distance = self.of(np.concatenate([total, number], axis=-1), shared)
        value, base = shared[..., None, 0], shared[..., None, 1]
        # A placebo that is only rounding has no slope.
        nothing = np.abs(base.real) <= NOTHING * np.abs(total.real).sum(-1)
        slope = quotient(value + 0 * distance, np.where(nothing, 0.0, base))
        return np.where(distance.real == 0, distance, distance * slope)


@stored("PairsAtPositions")
@dataclass(frozen=True)
class PairsAtPositions:
    """The number of pairs: the sum of their shares at all positions, rounded."""

    columns: Finalize  # column totals to the sum of their shares

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the numbers, shape (..., G)."""
        return np.round(self.columns(by_group, shared), 9)


def _quantile(epsilon: Any, n_pairs: Any, quantile: Any) -> float | None:
    """Return the quantile that is the threshold; None where it is chosen otherwise."""
    chosen = {"epsilon": epsilon, "n_pairs": n_pairs, "quantile": quantile}
    given = [name for name, value in chosen.items() if value is not None]
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
    elif not (isinstance(epsilon, Mapping) or _is_mse(epsilon)):
        check_number(epsilon, "epsilon", 0, np.inf)
    return quantile


def _is_mse(epsilon: Any) -> bool:
    return isinstance(epsilon, str) and epsilon == "mse"


def _best_bandwidths(
    data: RankedData, estimator: str, average: str, **options: Any
) -> dict[Hashable, float]:
    """Return the bandwidth of each group with the least mean squared error.

    The error of the local linear value is estimated as its variance, plus the squared
    difference from a parabola at the same bandwidth, minus the variance of that
    difference.
    """
    if estimator not in _REGRESSIONS or average != "pairs":
        raise ValueError(
            "epsilon='mse' is the bandwidth of a local regression over all pairs, for "
            "estimator='local_linear' or 'local_quadratic' and average='pairs'; got "
            f"{estimator!r} and {average!r}."
        )
    which, chosen, errors = (options["direction"], options["adjacent"]), [], []
    bias, line = linear_minus_quadratic, LocalLinear()
    for share in _BANDWIDTHS:
        chosen.append(_epsilon_of_groups(data, None, None, float(share), *which))
        with collected_warnings():
            sums = matched_pair_estimates(
                data, epsilon=chosen[-1], estimator="local_quadratic", **options
            ).sums
        square = sums.estimate(bias) ** 2 - sums.variance(bias)
        errors.append(sums.variance(line) + np.maximum(square, 0.0))
    best = np.argmin(np.nan_to_num(errors, nan=math.inf), axis=0)
    return {g: chosen[at][g] for g, at in zip(data.groups.labels, best, strict=True)}


def _epsilon_of_groups(
    data: RankedData,
    epsilon: Any,
    n_pairs: int | None,
    quantile: float | None,
    direction: str,
    adjacent: bool,
) -> dict[Hashable, float]:
    groups = data.groups
    if isinstance(epsilon, Mapping):
        missing = [label for label in groups.labels if label not in epsilon]
        if missing and not isinstance(epsilon, defaultdict):
            raise ValueError(f"epsilon must name every group; it has no {missing}.")
        for label in groups.labels:
            # A group without pairs in one part of the data has NaN there.
            if not (isinstance(epsilon[label], float) and math.isnan(epsilon[label])):
                check_number(epsilon[label], f"epsilon[{label!r}]", 0, np.inf)
        return {label: float(epsilon[label]) for label in groups.labels}
    if epsilon is not None:
        return {label: float(epsilon) for label in groups.labels}
    if n_pairs is not None and data.item_weight is not None:
        raise ValueError(
            "n_pairs counts pairs, and item_weight gives each a weight of its own: "
            f"pass quantile, a share of their weight, or epsilon; got {n_pairs!r}."
        )
    weight = PairWeight()  # n_pairs counts pairs, whatever their queries weigh
    if n_pairs is None:
        weight = PairWeight(data.pair_weight, data.item_weight)
    if adjacent:
        smallest = kth_smallest_adjacent(data, n_pairs, quantile, weight)
    else:
        members = Memberships.of(data.ranking, groups)
        matching = Matching(data.ranking, members, direction)
        smallest = matching.kth_smallest(n_pairs, quantile, weight)
    return dict(zip(groups.labels, smallest.tolist(), strict=True))


def _in_row_order(
    data: RankedData, covariates: Any, epsilon: Any, adjacent: bool
) -> Array | None:
    """Return covariates in the order of the rows that are left, (n, d), if given."""
    if covariates is None:
        return None
    if adjacent:
        raise ValueError("adjacent must be False with covariates; got True.")
    check_given(epsilon=epsilon)
    check_number(epsilon, "epsilon", 0, _WIDEST)
    check_aligned(y_score=data.index, covariates=covariates)
    arrays, _ = as_columns(covariates, "covariates")
    columns = [data.column(array, "covariates") for array in arrays]
    check_magnitude(covariates=np.array(columns))
    in_order = np.empty((data.ranking.n_rows, len(columns)))
    in_order[data.ranking.order] = np.transpose(columns)
    return in_order


def matched_pair_estimates(
    data: RankedData,
    *,
    epsilon: Any = None,
    n_pairs: int | None = None,
    quantile: float | None = None,
    direction: str = "below",
    adjacent: bool = False,
    covariates: Any = None,
    estimator: str = "mean",
    position_weight: Any = None,
    k: int | None = None,
    patience: float | None = None,
    average: str = "pairs",
    variance: str = "auto",
) -> GroupEstimates:
    """Return `matched_pair_calibration` of data that is validated and ordered."""
    check_magnitude(y_true=data.y_true)
    check_choice(direction, "direction", ("below", "both"))
    check_choice(adjacent, "adjacent", (False, True))
    check_choice(estimator, "estimator", ("mean", *_REGRESSIONS))
    check_choice(average, "average", ("pairs", "queries", "clusters"))
    quantile = _quantile(epsilon, n_pairs, quantile)
    linear, written = estimator in _REGRESSIONS, adjacent or covariates is not None
    if written:
        direction = "both"
        data = data.with_ties_in_row_order()
        covariates = _in_row_order(data, covariates, epsilon, adjacent)
    if _is_mse(epsilon):
        options = {"direction": direction, "adjacent": adjacent, "variance": variance}
        epsilon = _best_bandwidths(data, estimator, average, **options)
    chosen = _epsilon_of_groups(data, epsilon, n_pairs, quantile, direction, adjacent)
    one_sided = direction == "below" and not linear
    plain = (DistantPairs if one_sided else MatchedPairs, MeanOfRatios)
    kind, value = _REGRESSIONS.get(estimator, plain)
    n_columns = kind.n_columns
    of_rank, weights = None, None
    if position_weight is not None or k is not None or patience is not None:
        of_rank = PositionWeight.of(position_weight, k, patience)
        weights = of_rank.strata(data.ranking.n_places, n_columns * len(data.groups))
        if variance == "item" or data.item is not None:
            raise OneWayError(
                "position_weight needs variance='cluster' and one column of clusters: "
                "a list has one item at a position, too few for errors over items."
            )
        variance = "cluster"
    n_positions = 0 if weights is None else weights.size

    def make_pairs(ranked: RankedData) -> MatchedPairs | WrittenPairs:
        ranking = ranked.ranking
        given = (ranking, centred(ranked.y_true, ranking), ranked.groups, chosen)
        options = direction, n_positions, ranked.item_weight
        if not written:
            return kind(*given, *options)
        if adjacent:
            pairs = neighbours(ranking)
        else:
            pairs = close_pairs(ranking, covariates[ranking.order], float(epsilon))
        columns = kernel_columns if linear else mean_columns
        return WrittenPairs(
            *(*given, *options), pairs=pairs, columns=columns, n_columns=kind.n_columns
        )

    n_buckets = max(n_positions, 1)
    finalize: Any = value(n_buckets)
    if weights is not None:
        finalize = PositionMean(finalize, tuple(weights.tolist()))
    of_query = None
    if average != "pairs" and (linear or weights is not None):
        of_query, finalize = finalize, MeanOfRatios()
        n_columns, n_buckets = 3 if one_sided else 2, 1
    parameters = {
        "direction": direction,
        **({"adjacent": True} if adjacent else {}),
        **({} if covariates is None else {"covariates": covariates.shape[1]}),
        **({"estimator": estimator} if linear else {}),
        **({} if of_rank is None else of_rank.parameters),
        "average": average,
    }
    support: Finalize = support_columns(average, n_columns, n_buckets)
    result = GroupEstimates(
        metric=Metric(
            name="matched_pair_calibration",
            finalize=finalize,
            support=support if weights is None else PairsAtPositions(support),
            fair_value=0.0,
            slope=SlopeTerm(finalize, n_buckets) if one_sided else None,
            disparity="max_abs",
        ),
        sums=pair_sums(data, make_pairs, variance, average, of_query),
        parameters=parameters,
        first_pass={"epsilon": chosen},
        missing=data.missing,
    )
    return warn_undefined_pairs(result, data)


def matched_pair_calibration(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    position: Any = None,
    epsilon: float | str | Mapping[Hashable, float] | None = None,
    n_pairs: int | None = None,
    quantile: float | None = None,
    direction: str = "below",
    adjacent: bool = False,
    covariates: Any = None,
    estimator: str = "mean",
    position_weight: Any = None,
    k: int | None = None,
    patience: float | None = None,
    average: str = "pairs",
    variance: str = "auto",
    sample_weight: Any = None,
    item_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Outcome of a group's items minus that of others scored a little higher.

    For group a, the mean of ``y_i - y_j`` over pairs of one query with i in a, j not in
    a, and ``0 <= s_j - s_i <= epsilon``. The ranker was nearly indifferent between the
    two, so a fair score leaves no difference: the fair value is 0, and a positive value
    says that the group is undervalued. As the other item scored a little higher, a
    slope of the outcome over the score adds a term, which is reported next to the
    estimate, and which tests subtract (see Notes). Pairs are never written out, so
    memory is linear in the number of rows even for one query of a million items.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    position : array-like of shape (n,) or None, default=None
        Rank at which the item was shown in its query, an integer from 1, where that is
        not the order of the scores. Ranks may be left out. None ranks by `y_score`.
    epsilon : float, "mse", mapping of group to float, or None, default=None
        Largest difference of the scores of a matched pair, in units of the score. A
        mapping names every group, unless it is a `collections.defaultdict`. Differences
        count as equal to it up to the rounding of binary numbers (4 units in the last
        place of the score or of epsilon), so that 0.05 matches 0.75 with 0.70; 0 asks
        for ties alone. "mse" is the bandwidth at which ``estimator="local_linear"`` has
        the smallest mean squared error, as it is estimated for each group.
    n_pairs : int or None, default=None
        Take the K closest possible pairs of each group instead: epsilon is the K-th
        smallest difference. Pairs tied at epsilon are all kept.
    quantile : float or None, default=None
        Take this share of the possible pairs instead, rounded up. If none of the three
        is given, it is 0.01, the paper's "first percentile".
    direction : {"below", "both"}, default="below"
        "below": the group's item has the lower or equal score (Definition 1).
        "both": ``|s_j - s_i| <= epsilon`` (§4.1.3), where the slope cancels if scores
        of groups are distributed alike; else take a small `epsilon` or "local_linear".
    adjacent : bool, default=False
        Only neighbours in the ranking, whichever of the two is above (so `direction`
        is "both"; §4.1.3), tied items in the order of the rows. `n_pairs` and
        `quantile` are then of these pairs; ``quantile=1.0`` takes them all.
    covariates : array-like of shape (n,) or (n, d), or None, default=None
        Other scores or features of the items, such as the logarithm of the price, in
        units in which `epsilon` is close: the items of a pair differ by at most
        `epsilon` in the score and in each of them (§6). `epsilon` must be a number, and
        either item may be above (so `direction` is "both"), tied items in the order of
        the rows. These pairs are written out: memory is linear in their number.
    estimator : {"mean", "local_linear", "local_quadratic"}, default="mean"
        "mean" averages over the pairs within `epsilon`. "local_linear" regresses
        ``y_i - y_j`` on ``s_j - s_i`` with the triangular kernel of bandwidth
        `epsilon`, and reports the value at 0 (§4.1): less bias where the outcome rises
        steeply with the score, more variance. "local_quadratic" adds the square of
        ``s_j - s_i``: at the bandwidth of "local_linear" it is that estimate without
        its bias, and its errors count what is uncertain of the bias (robust bias
        correction, Calonico et al.). NaN where the pairs closer than `epsilon` have too
        few differences: one, other than 0, or two for a parabola.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable, \
            array-like or None, default=None
        What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
        ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
        function that takes the array of ranks and returns their weights, or an array
        of the weights of the first ranks, which zeros follow.
    k : int or None, default=None
        How many ranks ``position_weight="top"`` counts; None means 10. It must be None
        for all other weights.
    patience : float or None, default=None
        The probability of going on to the next rank, in [0, 1], of which
        ``position_weight="geometric"`` takes powers; None means 0.8. It must be None
        for all other weights.
    average : {"pairs", "queries", "clusters"}, default="pairs"
        "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
        Definition 3 of the paper pools them. "clusters" takes the mean over clusters of
        the value of each, whose queries are summed first, so that a cluster with many
        queries counts once.
    variance : {"auto", "cluster", "item"}, default="auto"
        "cluster": queries (or `cluster`) are independent. "item": items are, and pairs
        that share one are not. "auto" is "item" for one list without `qid` and with no
        `cluster` or several, and "cluster" otherwise: with `qid` also for one query,
        which has no standard error then, but can be added to other parts of the data.
        See §4.1.4 of the paper.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    item_weight : array-like of shape (n,) or None, default=None
        Weight of the item, such as a survey weight: a pair counts the product of the
        weights of its two items. `sample_weight` weighs whole queries.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. A row that lacks its outcome alone keeps its
        place in the ranking.

    Returns
    -------
    GroupEstimates
        One row per group; ``first_pass["epsilon"]`` holds the threshold of each.
        Results add up if their thresholds are equal.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing,
        more than one of `epsilon`, `n_pairs` and `quantile` is given, a query is in two
        clusters, an option is unknown, or there are more positions than a table can
        hold.

    Warns
    -----
    UndefinedMetricWarning
        For a group without a matched pair, whose estimate is NaN.

    See Also
    --------
    pairwise_accuracy : How often the better item is ranked above the worse.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q. With
    ``variance="item"`` it is DeLong's: each item is left out with all its pairs, and
    the items of the group and all others are two samples, whose sums are added. A small
    sample in which no rare event happened shows no variance from such events. Where a
    sample of as few items of the larger one would have fewer than ten that make its
    error, the sum of the small sample is at least that of such a sample.
    The threshold is taken as given.

    From below the other item scored up to `epsilon` higher, so that its outcome is
    better under equal treatment too. This slope term is ``d · v' / d'``: d is the mean
    of ``s_j - s_i`` over the matched pairs, and ``v' / d'`` the sum of ``y_i - y_j``
    over that of ``s_j - s_i`` of a placebo, the pairs within the threshold whose items
    are both in one group, whichever it is. The estimate and its interval are those of
    the paper, with the term. ``slope_term`` holds it, and the table has it as "slope".
    All tests (`test`, p-values, `equivalence_test`, plans, the verdicts of an audit)
    are of the estimate without it, which ``as_gap()`` returns with intervals. It is
    NaN where no group has two items of unequal scores within the threshold.

    With a `position_weight` the metric is taken at each rank of the lower item (of the
    group's item if the two are tied), and averaged with these weights over the ranks
    that have pairs (§4.1.2). A tied item is at each rank of its block with the same
    probability. None pools the pairs of all ranks. Ranks have a few pairs each, and one
    list has one item at each, so the standard error needs several queries. With
    `position` the neighbours are those that were shown next to each other, and the rank
    of a pair is that of its item with the lower score; epsilon is still of the scores.

    ``epsilon="mse"`` tries 12 bandwidths, from the closest 0.5% of the possible pairs
    to half of them, and takes the one with the smallest sum of the variance of the
    local linear value and of its squared difference from the local quadratic one, less
    the variance of that difference. Variances are those of the result, over clusters or
    items. A `position_weight` does not change the choice. The bandwidth is chosen from
    the outcomes, which errors do not count: with 20 to 120 queries of eight items a
    line at this bandwidth rejects 9% to 11% of equal groups at 5%, and
    ``estimator="local_quadratic"`` 6% to 7%.

    References
    ----------
    Korevaar, H., McConnell, C., Tong, E., et al. "Matched Pair Calibration for Ranking
    Fairness", Definitions 1-3 and §4.1.

    Calonico, S., Cattaneo, M. D., Titiunik, R. (2014). "Robust Nonparametric Confidence
    Intervals for Regression-Discontinuity Designs". Econometrica 82(6).

    DeLong, E. R., DeLong, D. M., Clarke-Pearson, D. L. (1988). "Comparing the Areas
    under Two or More Correlated Receiver Operating Characteristic Curves: A
    Nonparametric Approach". Biometrics 44(3).

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
    group  estimate        95% interval  pairs    slope       p
    a        0.0906    [0.0593, 0.1219]  2,384  -0.0337  <0.001
    b       -0.1406  [-0.1713, -0.1100]  2,254  -0.0335  <0.001
    500 clusters; fair value 0 plus slope
    """
    return measured(matched_pair_estimates, **locals())
