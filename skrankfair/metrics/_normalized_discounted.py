"""rND, rRD, rKL and NDKL: how far shares of the first places are from the list's.

Kuhlman et al. 2021, after Yang and Stoyanovich 2017; Geyik et al. 2019. A distance of
the two shares is weighted by the place of the cut, summed over the cuts, and divided by
its maximum or by the sum of the weights. The functions take real and complex shares,
since metrics of mean shares are differentiated by a complex step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from .._estimates.finalize import Finalize, quotient
from .._estimates.group_estimates import GroupEstimates
from .._estimates.storage import stored
from .._inputs.groups import Groups
from .._inputs.ranking import RankedData, measured_by_score
from .._inputs.validation import Array, check_choice, check_number
from ._lists import (
    ListKernel,
    Lists,
    ListsWith,
    list_estimates,
    one_length,
    with_target,
)
from ._pairs.cluster_rows import QuerySums
from ._position_weights import DCG, PositionWeight

_MOST_COLUMNS, _MOST_ORDERED = 4000, 10
# Cuts of cells that are worked on at once.
_MOST_CUTS = 1 << 20
_ROUNDING = 1e-12


def _divergence(p: Array, q: Array) -> Array:
    """Return ``p ln(p / q)``, 0 for p = 0."""
    valid = p.real > 0
    return np.where(valid, p * np.log(np.where(valid, p / q, 1.0)), 0.0)


@stored("Distance")
@dataclass(frozen=True)
class Distance:
    """The distance of a share p in the first places from the share q of the list."""

    kind: str  # {"difference", "ratio", "kl"}
    zero_division: float = 1.0  # the ratio p / (1 - p) for p = 1

    def __call__(self, p: Array, q: Array) -> Array:
        """Return the distances; q is inside (0, 1)."""
        if self.kind == "kl":
            return _divergence(p, q) + _divergence(1 - p, 1 - q)
        if self.kind == "ratio":
            some = (1 - p).real > _ROUNDING
            odds = np.where(
                some, p / np.where(some, 1 - p, 1.0), self.zero_division + 0 * p
            )
            shift = odds - q / (1 - q)
        else:
            shift = p - q
        return np.where(shift.real < 0, -shift, shift)

    def largest(
        self,
        q: Array,
        n: Array,
        k: Array,
        total: Callable[[Array], Array],
        *,
        given: bool = False,
    ) -> Array:
        """Return the larger total of the rankings with the group all first or last.

        The cuts are after `k` of `n` rows. `total` sums values over the cuts. If the
        share q is `given` in advance, the two extremes are a list of the group alone
        and a list without it.
        """
        # The mean over lists is an integer, but for rounding.
        size = q * n
        whole = np.rint(size.real)
        is_whole = np.abs(size.real - whole) < _ROUNDING * n
        size = np.where(is_whole, size - size.real + whole, size)
        first = np.where(size.real < k, size, k) / k
        last = np.where((n - size).real < k, k - (n - size), 0) / k
        if given:
            first, last = np.ones(1), np.zeros(1)
        ends = [total(self(p, q)) for p in (first, last)]
        return np.where(ends[0].real > ends[1].real, ends[0], ends[1])


def largest_joint(
    sizes: Sequence[Array], n: Array, k: Array, total: Callable[[Array], Array]
) -> Array:
    """Return the largest total divergence of all groups at once, over all rankings.

    It is reached with each group in one block, in some order of the blocks (checked
    against all rankings in the tests). Where a cut comes c rows into a block of size m,
    after complete blocks, ``KL = ln(n/k) + c/k ln(c/m)``. So the best order of the last
    blocks does not depend on the order of the first ones, and a search over sets of
    groups finds it. `sizes` are the numbers of members of the groups, `n` the rows of
    the list and `k` the rows above the cut, for every cut; `total` sums values over the
    cuts with their weights.
    """
    best: dict[frozenset[int], Array] = {frozenset(): total(np.zeros(k.shape))}
    everyone = range(len(sizes))
    for count in everyone:
        for done in map(frozenset, combinations(everyone, count)):
            start = sum((sizes[g] for g in done), np.zeros(1))
            for group in everyone:
                if group in done:
                    continue
                reached = best[done] + total(_in_block(start, sizes[group], k))
                larger = done | {group}
                if larger in best:
                    known = best[larger]
                    reached = np.where(known.real > reached.real, known, reached)
                best[larger] = reached
    return best[frozenset(everyone)] + total(np.log(n / k))


def _in_block(start: Array, size: Array, k: Array) -> Array:
    """Return c/k ln(c/size) for cuts c rows into a block, 0 for cuts outside it."""
    rows = k - start
    inside = (rows.real > 0) & (rows.real < size.real)
    share = np.where(inside, rows, 1.0) / np.where(inside, size, 1.0)
    return np.where(inside, rows * np.log(share) / k, 0.0)


@dataclass(frozen=True)
class TopShares(ListKernel):
    """The kernel of rND, rRD, rKL and NDKL, which sum distances over cuts."""

    distance: Distance
    step: int
    position_weight: PositionWeight  # the weight of a cut is that of its last rank
    #: {"maximum", "weights", None}. What the weighted sum over the cuts is divided by.
    divisor: str | None
    joint: bool = False  # one value for all groups at once, instead of one per group
    average: str = "queries"
    target: tuple[float, ...] | None = None

    signed = False

    def labels(self, groups: Groups) -> tuple[Hashable, ...]:
        """Return the labels of the rows of the result."""
        return ("all",) if self.joint else groups.labels

    def cuts(self, n: int) -> Array:
        """Return the numbers of rows above the cuts of a list of n rows."""
        return np.arange(self.step, n + 1, self.step)

    def table(self, lists: Lists) -> QuerySums:
        """Return sums by cell, and shared ones by list."""
        if self.average == "representation":
            return self._share_table(lists)
        values = self._values(lists)
        columns = np.stack([np.nan_to_num(values), ~np.isnan(values)], axis=1)
        if self.joint:
            return QuerySums.of_all(columns[:, None])
        return QuerySums.of_cells(lists.cells, columns)

    def _values(self, lists: Lists) -> Array:
        """Return the value of each cell, or the joint one of each list; NaN if none."""
        shares, lengths = lists.shares(self.target), lists.lengths
        if self.joint:
            cell_of = _packed(lists)
        else:
            distinct, inverse = _distinct(lists)
            cell_of, lengths = distinct[:, None], lists.of_cells(lengths)[distinct]
        values, width = np.empty(lengths.size), cell_of.shape[1]
        for n, of_length in by_length(lengths):
            of_shares = self.of_mean_shares(n, width)
            for some in _few_cuts(of_length, n // self.step * width):
                cell = cell_of[some]
                present = cell >= 0
                p, q = np.zeros((*cell.shape, n // self.step)), np.zeros(cell.shape)
                p[present] = lists.shares_above(cell[present], self.cuts(n))
                q[present] = shares[cell[present]]
                if self.joint:  # one value of all cells of a list
                    p, q = p[:, None], q[:, None]
                values[some] = of_shares.of_cuts(p, q[..., None])[:, 0]
        return values if self.joint else values[inverse]

    def _share_table(self, lists: Lists) -> QuerySums:
        """Return the shares in the first k and in the list; 1 is the shared column."""
        cells, n_lists = lists.cells, lists.n_queries
        every, k = np.arange(cells.query.size), self.cuts(int(lists.lengths[0]))
        out = np.column_stack([lists.shares_above(every, k), lists.shares(self.target)])
        ones = np.ones((n_lists, 1))
        if not self.joint:
            return QuerySums(cells, out, ones)
        joint = np.zeros((n_lists, cells.n_groups, out.shape[1]))
        joint[cells.query, cells.group] = out
        return replace(QuerySums.of_all(joint.reshape(n_lists, 1, -1)), shared=ones)

    def of_means(self, data: RankedData) -> tuple[Finalize, Finalize, dict[str, Any]]:
        """Return the metric of mean shares, its support, and a first pass for parts."""
        n_items, labels = one_length(data), data.groups.labels
        check_columns(n_items, self.step, len(labels))
        first_pass: dict[str, Any] = {"n_items": n_items}
        if self.joint:
            first_pass["groups"] = labels
        long = n_items >= self.step + (self.target is None)
        support = ListsWith(len(labels) if self.joint else None, long)
        return self.of_mean_shares(n_items, len(labels)), support, first_pass

    def of_mean_shares(self, n_items: int, n_groups: int) -> MetricOfShares:
        """Return the metric as a function of sums of shares over lists."""
        return MetricOfShares(
            self.distance,
            tuple(self.position_weight.at(self.cuts(n_items)).tolist()),
            self.step,
            n_items,
            self.divisor,
            n_groups if self.joint else None,
            self.target is not None,
        )


def check_columns(n_items: int, step: int, n_groups: int) -> None:
    """Raise a ValueError for mean shares of too many cuts and groups."""
    n_columns = (n_items // step + 1) * n_groups
    if n_columns > _MOST_COLUMNS:
        raise ValueError(
            "average='representation' keeps one column per group and cut, at most "
            f"{_MOST_COLUMNS}; got {n_columns}. Use a larger step."
        )


def _distinct(lists: Lists) -> tuple[Array, Array]:
    """Return distinct cells, and for each cell the number of the one that it is like.

    Cells of one row at the same rank of lists of one length have the same value; with
    many groups most cells are like that. With shares given in advance all cells count
    as distinct.
    """
    members, longest = lists.members, int(lists.lengths.max()) + 1
    number = np.arange(members.sizes.size)
    if longest >= 1 << 20 or lists.complete:
        return number, number
    first, last = lists.place_bounds(members.rows[members.starts[number]])
    place = (lists.of_cells(lists.lengths) * longest + first) * longest + last
    key = np.where(members.sizes == 1, place, number - number.size)
    return np.unique(key, return_index=True, return_inverse=True)[1:]


def by_length(lengths: Array) -> list[tuple[int, Array]]:
    """Return each length, and the numbers of the cells or lists that have it."""
    return [(int(n), np.flatnonzero(lengths == n)) for n in np.unique(lengths)]


def _few_cuts(numbers: Array, n_cuts: int) -> list[Array]:
    """Return the numbers in parts with few cuts each, to limit memory."""
    return np.array_split(numbers, numbers.size * n_cuts // _MOST_CUTS + 1)


def _packed(lists: Lists) -> Array:
    """Return the cells of each list, and then -1s, shape (Q, most cells of a list)."""
    query = lists.cells.query
    number = np.bincount(query, minlength=lists.n_queries)
    place = np.arange(query.size) - np.repeat(np.cumsum(number) - number, number)
    packed = np.full((lists.n_queries, number.max(initial=1)), -1)
    packed[query, place] = np.arange(query.size)
    return packed


@stored("MetricOfShares")
@dataclass(frozen=True)
class MetricOfShares:
    """A metric of mean shares: totals of the shares at each cut and in the list."""

    distance: Distance
    weights: tuple[float, ...]  # one per cut
    step: int
    n_items: int
    divisor: str | None  # {"maximum", "weights", None}
    #: The number of groups whose columns follow each other, for one joint value.
    joint: int | None = None
    given: bool = False  # whether the share of the list is a target given in advance

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the values, shape (..., G)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = by_group / shared[..., None, :]
        if self.joint is not None:
            shares = shares.reshape(*shares.shape[:-1], self.joint, -1)
        return self.of_cuts(shares[..., :-1], shares[..., -1:])

    def of_cuts(self, p: Array, q: Array) -> Array:
        """Return the values of shares above the cuts (..., K) and in the list (..., 1).

        They are NaN where q is not inside (0, 1). Groups of a joint value are on the
        axis before the last.
        """
        n, weights = np.array(self.n_items), np.array(self.weights)
        k = np.arange(1, weights.size + 1) * self.step

        def total(values: Array) -> Array:
            return (values * weights).sum(axis=-1)

        with np.errstate(divide="ignore", invalid="ignore"):
            if self.joint is None:
                value = total(self.distance(p, q))
                valid = (q.real > 0) & (q.real < 1)
            else:
                value = total(_divergence(p, q)).sum(axis=-1)
                valid = ((q.real > 0).sum(axis=-2) > 1) & (q.shape[-2] > 1)
            largest = self._divisor(q, n, k, total)
        long = self.n_items >= self.step + (not self.given)
        return quotient(value, largest, valid[..., 0] & (largest.real > 0) & long)

    def _divisor(
        self, q: Array, n: Array, k: Array, total: Callable[[Array], Array]
    ) -> Array:
        """Return the divisor of the total distance."""
        if self.divisor != "maximum":
            return np.array(1.0 if self.divisor is None else np.sum(self.weights))
        if self.joint is None:
            return self.distance.largest(q, n, k, total, given=self.given)
        if self.given:
            return -np.log(q.real.min(axis=-2)[..., 0]) * float(np.sum(self.weights))
        if (most := q.shape[-2]) > _MOST_ORDERED:
            raise ValueError(
                "joint must be False, or normalize=False, for lists of more than "
                f"{_MOST_ORDERED} groups, whose largest divergence is not searched "
                f"for; got a list of {most} groups."
            )
        sizes = [q[..., group, :] * n for group in range(most)]
        return largest_joint(sizes, n, k, total)


def _top_share_estimates(
    name: str, data: RankedData, kernel: TopShares, parameters: Mapping[str, Any]
) -> GroupEstimates:
    """Return a metric of sums over cuts, of data that is validated and ordered."""
    check_choice(kernel.joint, "joint", (True, False))
    check_number(kernel.step, "step", 1, np.inf, integer=True)
    if kernel.joint:
        data.groups.check_disjoint("joint=True")
    items = "item" if name == "ndkl" else f"items (step={kernel.step})"
    longer = kernel.step, items
    return list_estimates(name, data, kernel, parameters, longer_than=longer)


def _by_cuts(
    kind: str,
    data: RankedData,
    *,
    step: int,
    position_weight: Any,
    k: int | None,
    patience: float | None,
    average: str,
    normalize: bool,
    target: Any,
    **options: Any,
) -> GroupEstimates:
    """Return rND, rRD or rKL; `options` are those that only one of the three has."""
    zero_division = options.get("zero_division", 1.0)
    check_number(zero_division, "zero_division", 0, np.finfo(float).max)
    check_choice(normalize, "normalize", (True, False))
    weight = PositionWeight.of(position_weight, k, patience)
    data, shares, option = with_target(data, target)
    kernel = TopShares(
        Distance(kind, float(zero_division)),
        step,
        weight,
        "maximum" if normalize else None,
        options.get("joint", False),
        average,
        shares,
    )
    parameters = {"step": step, **weight.parameters, **option, "average": average}
    parameters |= {"normalize": normalize, **options}
    name = f"normalized_discounted_{kind}"
    return _top_share_estimates(name, data, kernel, parameters)


def _ndkl(
    data: RankedData, *, joint: bool, target: Any, average: str
) -> GroupEstimates:
    """Return `ndkl` of data that is validated and ordered."""
    data, shares, option = with_target(data, target)
    kernel = TopShares(Distance("kl"), 1, DCG, "weights", joint, average, shares)
    parameters = {"joint": joint, **option, "average": average}
    return _top_share_estimates("ndkl", data, kernel, parameters)


def normalized_discounted_difference(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    step: int = 10,
    position_weight: Any = "dcg",
    k: int | None = None,
    patience: float | None = None,
    target: Any = None,
    average: str = "queries",
    normalize: bool = True,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How far a group's share of the first places is from its share of the list (rND).

    Of a list of n items, with p_k the share of the group in the first k and q its share
    of all, ``Σ_k w_k |p_k - q|`` over the cuts k = step, 2 step, ... ≤ n, divided by
    its maximum. 0 is statistical parity at every cut, and 1 means that the whole group
    is first or last.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the share among the first
        k is its mean over the orders of the tied items.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list. One list has no interval; ``test()`` shuffles its
        labels.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    step : int, default=10
        Number of items between cuts. Lists with no more items than this have no value,
        because at the end of a list every group has its share of the list.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
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
    target : {"equal"}, mapping or None, default=None
        The fair share of each group. None means its share of the list. "equal", or a
        mapping from every label to its share, gives the shares in advance. A list
        without a group then shows a share of 0, and lists of one cut or more count.
    average : {"queries", "clusters", "representation"}, default="queries"
        "queries" takes the mean of the metric over lists. "representation" takes the
        metric of the mean share p_k, for lists of equal length, so that chance that
        cancels over lists does not count as an advantage (§3 of the paper). "clusters"
        takes the mean over clusters of the value of each, whose queries are summed
        first, so that a cluster with many queries counts once.
    normalize : bool, default=True
        False leaves out the division by the maximum.
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
        One row per group, against the rest, in [0, 1]; its support is the number of
        lists that have a value, so members and others. Two groups have the same value.

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
        estimate is NaN; for lists that are left out because they are too short; and for
        a group in one list of several, which has no error.

    See Also
    --------
    normalized_discounted_kl : Smooth, and for many groups at once.
    skrankfair.inference.recommend_metrics : Which metric of statistical parity to use.

    Notes
    -----
    The weight w_k of a cut is the `position_weight` of rank k, its last. The paper
    prints ``1 / log2 k``; its numbers use k + 1, as here.

    The maximum is the larger of the values of two rankings, with the group all first
    and all last; no other ranking has a larger one. A fair ranking of few items is
    above 0 by chance, so a test against 0 with the standard error would be wrong;
    `GroupEstimates.test` shuffles labels instead.

    With a `target` the divisor is the larger of the values of a list of the group alone
    and of a list without it; no other list has a larger one. The test still shuffles
    the labels within each list: it says whether the order takes the group further from
    its target than a random order of the same items.

    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §2.1, equations 1 and 2.

    Yang, K., Stoyanovich, J. (2017). "Measuring Fairness in Ranked Outputs". SSDBM.

    Examples
    --------
    >>> from skrankfair.metrics import normalized_discounted_difference
    >>> score = [8, 7, 6, 5, 4, 3, 2, 1]
    >>> group = ["m", "m", "m", "f", "m", "f", "f", "f"]
    >>> r = normalized_discounted_difference(
    ...     None, score, sensitive_features=group, step=2
    ... )
    >>> r.groups, r.estimate.round(4)
    (('f', 'm'), array([0.8176, 0.8176]))
    >>> test = r.test(random_state=0)
    >>> bool(test.pvalue[0] > 0.05)
    True
    """
    return measured_by_score(partial(_by_cuts, "difference"), **locals())


def normalized_discounted_ratio(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    step: int = 10,
    position_weight: Any = "dcg",
    k: int | None = None,
    patience: float | None = None,
    target: Any = None,
    average: str = "queries",
    normalize: bool = True,
    zero_division: float = 1.0,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How far a group's odds among the first are from its odds in the list (rRD).

    ``Σ_k w_k |p_k / (1 - p_k) - q / (1 - q)|`` over the cuts of
    `normalized_discounted_difference`, divided by the larger of the rankings with the
    group all first or all last. That is not the largest value of all rankings (see the
    notes), so the metric has no bound, and the paper recommends against it.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the share among the first
        k is its mean over the orders of the tied items.
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
    step : int, default=10
        Number of items between cuts. Lists with no more items than this have no value.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
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
    target : {"equal"}, mapping or None, default=None
        The fair share of each group. None means its share of the list. "equal", or a
        mapping from every label to its share, gives the shares in advance. A list
        without a group then shows a share of 0, and lists of one cut or more count.
    average : {"queries", "clusters", "representation"}, default="queries"
        "queries" takes the mean of the metric over lists. "representation" takes the
        metric of the mean shares, for lists of equal length. "clusters" takes the mean
        over clusters of the value of each, whose queries are summed first, so that a
        cluster with many queries counts once.
    normalize : bool, default=True
        False leaves out the division by the maximum.
    zero_division : float, default=1.0
        The ratio where nothing outside the group is among the first k. The default is
        that of the authors' code.
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
        One row per group, not negative; fair value 0, tested by permutation.

    Raises
    ------
    ValueError
        As for `normalized_discounted_difference`.

    Warns
    -----
    UndefinedMetricWarning
        As for `normalized_discounted_difference`.

    See Also
    --------
    normalized_discounted_difference : The same of shares, which have bounds.

    Notes
    -----
    If all but one of the first k items belong to the group, its odds are k - 1; if all
    of them do, its odds would be infinite, and `zero_division` takes their place. So
    the ranking with the whole group first, which defines the divisor, is not the worst
    one. For five items among ten with ``step=5``, the value is 0 with all of them
    first, 1 with all of them last, and 3 for "aaaababbbb". The divisor is that of the
    authors' code, so that values compare with those of the literature.

    The variance is that of `normalized_discounted_difference`.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §2.1, equation 3, and §7.

    Examples
    --------
    >>> from skrankfair.metrics import normalized_discounted_ratio
    >>> score = [8, 7, 6, 5, 4, 3, 2, 1]
    >>> group = ["m", "m", "m", "f", "m", "f", "f", "f"]
    >>> r = normalized_discounted_ratio(None, score, sensitive_features=group, step=2)
    >>> r.estimate.round(4)
    array([0.8842, 0.9821])
    >>> worse = normalized_discounted_ratio(
    ...     None, range(10, 0, -1), sensitive_features=list("aaaababbbb"), step=5
    ... )
    >>> worse.estimate.round(4)
    array([3.  , 0.75])
    """
    return measured_by_score(partial(_by_cuts, "ratio"), **locals())


def normalized_discounted_kl(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    step: int = 10,
    position_weight: Any = "dcg",
    k: int | None = None,
    patience: float | None = None,
    target: Any = None,
    average: str = "queries",
    normalize: bool = True,
    joint: bool = False,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How much the shares among the first diverge from those of the list (rKL).

    ``Σ_k w_k [p_k ln(p_k / q) + (1 - p_k) ln((1 - p_k) / (1 - q))]`` over the cuts of
    `normalized_discounted_difference`, divided by its maximum. ``joint=True`` takes all
    groups at once, ``Σ_k w_k Σ_g p_gk ln(p_gk / q_g)``.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the share among the first
        k is its mean over the orders of the tied items.
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
    step : int, default=10
        Number of items between cuts. Lists with no more items than this have no value.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
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
    target : {"equal"}, mapping or None, default=None
        The fair share of each group. None means its share of the list. "equal", or a
        mapping from every label to its share, gives the shares in advance. A list
        without a group then shows a share of 0, and lists of one cut or more count.
    average : {"queries", "clusters", "representation"}, default="queries"
        "queries" takes the mean of the metric over lists. "representation" takes the
        metric of the mean shares, for lists of equal length. "clusters" takes the mean
        over clusters of the value of each, whose queries are summed first, so that a
        cluster with many queries counts once.
    normalize : bool, default=True
        False leaves out the division by the maximum. The value is then in nats; divide
        it by ``ln 2`` for bits.
    joint : bool, default=False
        One value for all groups at once, labelled "all", instead of one per group
        against the rest. Disjoint groups; with `normalize`, at most ten in a list.
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
        One row per group, or one in all, in [0, 1]; fair value 0, tested by
        permutation.

    Raises
    ------
    ValueError
        As `normalized_discounted_difference`; and for ``joint=True`` of a membership
        matrix, or of lists of more than ten groups.

    Warns
    -----
    UndefinedMetricWarning
        As for `normalized_discounted_difference`.

    See Also
    --------
    ndkl : Every position is a cut, and the sum is divided by that of the weights.

    Notes
    -----
    Equation 17 of the paper has a minus between the two terms, which is a misprint. The
    maximum is reached by a ranking with each group in one block: for two groups, with
    one or the other first; for more, in the worst order of the blocks. With
    ``joint=True`` and a `target` it is the value of a list that has only the group of
    the smallest share. The variance is that of
    `normalized_discounted_difference`.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §2.1, equation 5.

    Yang, K., Stoyanovich, J. (2017). "Measuring Fairness in Ranked Outputs". SSDBM.

    Examples
    --------
    >>> from skrankfair.metrics import normalized_discounted_kl
    >>> score = [8, 7, 6, 5, 4, 3, 2, 1]
    >>> group = ["m", "m", "x", "f", "m", "f", "x", "f"]
    >>> who = {"sensitive_features": group, "step": 2}
    >>> normalized_discounted_kl(None, score, **who).estimate.round(4)
    array([0.4144, 0.8526, 0.2002])
    >>> normalized_discounted_kl(None, score, **who, joint=True).estimate.round(4)
    array([0.579])
    """
    return measured_by_score(partial(_by_cuts, "kl"), **locals())


def ndkl(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    joint: bool = False,
    target: Any = None,
    average: str = "queries",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Divergence of the shares of the first k from those of the list, over all k.

    ``Σ_k KL(p_k, q) / log2(k + 1) / Σ_k 1 / log2(k + 1)`` over k = 1, ..., n, in nats:
    p_k is the share of the group (and the rest) among the first k, q that of the list.
    ``joint=True`` takes all groups at once, as Geyik et al. do; with two groups it is
    the value of both. 0 is parity at every position. The largest value depends on the
    shares: see `normalized_discounted_kl`.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the share among the first
        k is its mean over the orders of the tied items.
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
    joint : bool, default=False
        One value for all groups at once, labelled "all", instead of one per group
        against the rest. Disjoint groups.
    target : {"equal"}, mapping or None, default=None
        The fair share of each group. None means its share of the list. "equal", or a
        mapping from every label to its share, gives the shares in advance. A list
        without a group then shows a share of 0, and lists of one cut or more count.
    average : {"queries", "clusters", "representation"}, default="queries"
        "queries" takes the mean of the metric over lists. "representation" takes the
        metric of the mean shares, for lists of equal length. "clusters" takes the mean
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
        One row per group, or one in all, not negative; fair value 0, tested by
        permutation. Lists of one item, and of one group, have no value.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, a membership matrix is given with ``joint=True``,
        lists have different lengths with ``average="representation"``, or an option is
        unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group that is in no list or makes up the whole of every list, whose
        estimate is NaN; for lists of one item, which are left out; and for a group in
        one list of several, which has no error.

    See Also
    --------
    normalized_discounted_kl : Divided by its maximum, with cuts every `step` places.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.
    FairRankTune adds 1e-7 to the shares; here ``0 ln 0`` is 0.

    References
    ----------
    Geyik, S. C., Ambler, S., Kenthapadi, K. (2019). "Fairness-Aware Ranking in Search &
    Recommendation Systems with Application to LinkedIn Talent Search". KDD. §3.

    Examples
    --------
    >>> from skrankfair.metrics import ndkl
    >>> group = ["A"] * 7 + ["B"] * 3
    >>> r = ndkl(None, range(10, 0, -1), sensitive_features=group, joint=True)
    >>> r.groups, r.estimate.round(8)
    (('all',), array([0.29255664]))
    """
    return measured_by_score(_ndkl, **locals())
