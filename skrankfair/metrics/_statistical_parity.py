"""`exposure_parity` and `pairwise_parity`: statistical parity of exposure and pairs.

Singh and Joachims 2018, Beutel et al. 2019, as in Kuhlman et al. 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum, Finalize, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.storage import stored
from .._inputs.ranking import RankedData, measured_by_score
from .._inputs.validation import Array, check_choice
from ._lists import ListKernel, Lists, list_estimates, one_length
from ._pairs.cluster_rows import QuerySums
from ._position_weights import PositionWeight


def _magnitude(values: Array, signed: bool) -> Array:
    """Return the values, without their sign unless `signed`; may be complex."""
    if signed:
        return values
    with np.errstate(invalid="ignore"):
        return np.where(values.real < 0, -values, values)


@stored("MeanAdvantage")
@dataclass(frozen=True)
class MeanAdvantage:
    """The mean of signed advantages over lists, with or without its sign."""

    signed: bool

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the advantages, shape (..., G)."""
        return _magnitude(MeanOfRatios()(by_group, shared), self.signed)


@stored("MeanExposure")
@dataclass(frozen=True)
class MeanExposure:
    """The advantage of the mean exposures over lists.

    The columns of a group are exposure and number of its members; shared are the same
    of all rows, and the number of lists.
    """

    signed: bool
    plain: bool = False  # whether the difference is not divided by the sum

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the advantages, shape (..., G)."""
        mine, size = by_group[..., 0], by_group[..., 1]
        theirs, others = shared[..., 0, None] - mine, shared[..., 1, None] - size
        both = (size.real > 0) & (others.real > 0)
        means = mine / np.where(both, size, 1.0), theirs / np.where(both, others, 1.0)
        value, total = means[0] - means[1], means[0] + means[1]
        valid = both & (self.plain | (total.real > 0))
        if not self.plain:
            value = value / np.where(valid, total, 1.0)
        return np.where(valid, _magnitude(value, self.signed), np.nan)


@stored("ListsWithBoth")
def lists_with_both(by_group: Array, shared: Array) -> Array:
    """Return the number of lists, (..., G); 0 for a group without members or others."""
    size = by_group[..., 1]
    both = (size > 0) & (size < shared[..., 1, None])
    return np.where(both, shared[..., 2, None], 0.0)


@dataclass(frozen=True)
class ExposureKernel(ListKernel):
    """The kernel of `exposure_parity`."""

    position_weight: PositionWeight
    signed: bool
    average: str  # {"queries", "clusters", "representation"}
    divisor: str | None = "sum"  # {"sum", "maximum", None}

    def table(self, lists: Lists) -> QuerySums:
        """Return sums by cell, and shared ones by list."""
        by_rank = self.position_weight.up_to(int(lists.lengths.max()))
        weights = lists.tie_means(by_rank[lists.position()])
        size, n = lists.sizes, lists.lengths
        by_cell = np.stack([lists.members.sums_of_rows(weights), size], axis=1)
        total = np.add.reduceat(weights, lists.starts[:-1])
        shared = np.stack([total, n, np.ones(n.size)], axis=1)
        if self.average == "representation":
            return QuerySums(lists.cells, by_cell, shared)
        of_list = MeanExposure(self.signed, self.divisor != "sum")
        value = of_list(by_cell[:, None], lists.of_cells(shared))[:, 0]
        if self.divisor == "maximum":
            n, m = lists.of_cells(n), size.astype(int)
            reached = np.append(0.0, np.cumsum(by_rank))
            ends = np.stack([reached[m], reached[n] - reached[n - m]])  # first, last
            most = ends / np.maximum(m, 1) - (reached[n] - ends) / np.maximum(n - m, 1)
            largest = np.abs(most).max(axis=0)
            value /= np.where(largest > 0, largest, np.nan)
        columns = np.stack([np.nan_to_num(value), ~np.isnan(value)], axis=1)
        return QuerySums.of_cells(lists.cells, columns)

    def of_means(self, data: RankedData) -> tuple[Finalize, Finalize, dict[str, Any]]:
        """Return the metric of mean shares, its support, and a first pass for parts."""
        first_pass = {"n_items": one_length(data)}
        metric = MeanExposure(self.signed, self.divisor is None)
        return metric, lists_with_both, first_pass


@dataclass(frozen=True)
class PairKernel(ListKernel):
    """The kernel of `pairwise_parity`."""

    signed: bool
    average: str  # {"queries", "clusters", "representation"}

    def table(self, lists: Lists) -> QuerySums:
        """Return sums by cell, and shared ones by list."""
        lengths = lists.lengths
        # Rows below each row, minus the pairs of members, are pairs won against the
        # rest.
        below = np.repeat(lengths - 1, lengths) - lists.position()
        size = lists.sizes
        won = lists.members.sums_of_rows(lists.tie_means(below.astype(float)))
        won -= size * (size - 1) / 2
        pairs = size * (lists.of_cells(lengths) - size)
        valid = pairs > 0
        value = (2 * won - pairs) / np.where(valid, pairs, 1.0)
        if self.average != "representation":
            value = _magnitude(value, self.signed)
        return QuerySums.of_cells(lists.cells, np.stack([value * valid, valid], axis=1))

    def of_means(self, data: RankedData) -> tuple[Finalize, Finalize, dict[str, Any]]:
        """Return the metric of mean shares, its support, and a first pass for parts."""
        first_pass = {"n_items": one_length(data)}
        return MeanAdvantage(self.signed), ColumnSum(1, 2), first_pass


def _exposure_parity(
    data: RankedData,
    *,
    position_weight: Any,
    k: int | None,
    patience: float | None,
    signed: bool,
    divisor: str | None,
    average: str,
) -> GroupEstimates:
    """Return `exposure_parity` of data that is validated and ordered."""
    check_choice(signed, "signed", (True, False))
    check_choice(average, "average", ("queries", "clusters", "representation"))
    # Where group sizes differ between lists, mean exposures have no common maximum.
    largest = () if average == "representation" else ("maximum",)
    check_choice(divisor, "divisor", ("sum", None, *largest))
    weight = PositionWeight.of(position_weight, k, patience)
    kernel = ExposureKernel(weight, signed, average, divisor)
    option = {} if divisor == "sum" else {"divisor": divisor}
    parameters = {**weight.parameters, "signed": signed, **option, "average": average}
    return list_estimates("exposure_parity", data, kernel, parameters)


def _pairwise_parity(data: RankedData, *, signed: bool, average: str) -> GroupEstimates:
    """Return `pairwise_parity` of data that is validated and ordered."""
    check_choice(signed, "signed", (True, False))
    parameters = {"signed": signed, "average": average}
    method = "t" if signed else "permutation"
    kernel = PairKernel(signed, average)
    return list_estimates(
        "pairwise_parity", data, kernel, parameters, test_method=method
    )


def exposure_parity(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    position_weight: Any = "reciprocal",
    k: int | None = None,
    patience: float | None = None,
    signed: bool = False,
    divisor: str | None = "sum",
    average: str = "queries",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How unequal the exposure of a group's members and of the others is.

    With e_a the mean `position_weight` over the members' ranks, and e_r that over the
    ranks of the rest, ``|1 - 2 e_a / (e_a + e_r)| = |e_a - e_r| / (e_a + e_r)``: 0 is
    parity. "reciprocal" gives the paper's expRR, and "dcg" its expDCG.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. Tied items share their exposure.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="reciprocal"
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
    signed : bool, default=False
        ``(e_a - e_r) / (e_a + e_r)``: positive is an advantage of the group.
    divisor : {"sum", "maximum"} or None, default="sum"
        What ``e_a - e_r`` is divided by. "sum" is e_a + e_r, as in equation 6 of the
        paper. "maximum" is the larger of its values with the group all first and all
        last, as in Figure 2 of the paper, which is the largest if weights do not
        increase with the rank. None leaves the difference in units of
        `position_weight`, as the function of the authors does.
    average : {"queries", "clusters", "representation"}, default="queries"
        "queries" takes the mean of the metric over lists. "representation" takes the
        metric of the mean exposures, for lists of equal length, so that chance that
        cancels over lists does not count as an advantage. "clusters" takes the mean
        over clusters of the value of each, whose queries are summed first, so that a
        cluster with many queries counts once.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group, in [0, 1], or [-1, 1] with a sign, unless nothing divides it
        or weights increase with the rank; fair value 0, tested by
        permutation. Lists without the group, or of it alone, have no value.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, lists have different lengths with
        ``average="representation"``, which takes no ``divisor="maximum"``, or an option
        is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group that is in no list or makes up the whole of every list, whose
        estimate is NaN; and for a group in one list of several, which has no error.

    See Also
    --------
    pairwise_parity : The same for pairs, whose maximum does not depend on the shares.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.
    A fair ranking of few items is above 0 by chance, and the mean of the
    signed value is not quite 0 either. This is why the test uses permutations. With
    `signed` and clusters of several queries it compares the value with its mean over
    permutations by Student's t over clusters, each of which may favour a group.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §2.2, equations 6 and 7.

    Singh, A., Joachims, T. (2018). "Fairness of Exposure in Rankings". KDD.

    Examples
    --------
    >>> from skrankfair.metrics import exposure_parity
    >>> score = [8, 7, 6, 5, 4, 3, 2, 1]
    >>> group = ["m", "m", "m", "f", "m", "f", "f", "f"]
    >>> exposure_parity(
    ...     None, score, sensitive_features=group, signed=True
    ... ).estimate.round(4)
    array([-0.4963,  0.4963])
    >>> exposure_parity(
    ...     None, score, sensitive_features=group, divisor="maximum"
    ... ).estimate.round(4)
    array([0.931, 0.931])
    """
    return measured_by_score(_exposure_parity, **locals())


def pairwise_parity(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    signed: bool = False,
    average: str = "queries",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How far the pairs of a member and another are from being won half of the time.

    Let pair_a be the share of the pairs of a member and another item of a list in which
    the member is ranked above. The value is ``|1 - 2 pair_a|``: 0 is parity, and 1 a
    total advantage of either side, whatever the size of the group. The paper recommends
    it for evaluation, above all for minorities.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. A tie is half a win.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    signed : bool, default=False
        ``2 pair_a - 1``: positive is an advantage of the group.
    average : {"queries", "clusters", "representation"}, default="queries"
        "queries" takes the mean of the metric over lists. "representation" takes the
        metric of the mean pair_a over lists of equal length, so that chance that
        cancels over lists does not count as an advantage. "clusters" takes the mean
        over clusters of the value of each, whose queries are summed first, so that a
        cluster with many queries counts once.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group, in [0, 1], or [-1, 1] with a sign; fair value 0. With a sign
        it is tested by Student's t, since its mean is 0 in fair rankings, or by
        permutation; without, by permutation.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, lists have different lengths with
        ``average="representation"``, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group that is in no list or makes up the whole of every list, whose
        estimate is NaN; and for a group in one list of several, which has no error.

    See Also
    --------
    pairwise_exposure : The share of pairs itself, pooled over queries.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §2.3, equations 8 and 9.

    Examples
    --------
    >>> from skrankfair.metrics import pairwise_parity
    >>> score = [8, 7, 6, 5, 4, 3, 2, 1]
    >>> group = ["m", "m", "m", "f", "m", "f", "f", "f"]
    >>> r = pairwise_parity(None, score, sensitive_features=group)
    >>> r.estimate
    array([0.875, 0.875])
    >>> r.test(random_state=0).pvalue.round(2)
    array([0.05, 0.05])
    """
    return measured_by_score(_pairwise_parity, **locals())
