"""Distances of shares in the first k places from shares of the list: rND and kin.

A distance of the two shares is weighted by the place of the cut, summed over the cuts,
and divided by its maximum or by the sum of the weights. The functions take real and
complex shares, since metrics of mean shares are differentiated by a complex step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .._estimates.finalize import Finalize
from .._estimates.storage import stored
from .._inputs.groups import Groups
from .._inputs.ranking import RankedData
from .._inputs.validation import Array
from ._lists import ListKernel, Lists, ListsWith, one_length
from ._pairs.cluster_rows import QuerySums
from ._position_weights import PositionWeight

_MOST_COLUMNS, _MOST_ORDERED = 4000, 10
# Cuts of cells that are worked on at once.
_MOST_CUTS = 1 << 20
_ROUNDING = 1e-12


def _divergence(p: Array, q: Array) -> Array:
    """Return ``p ln(p / q)``, 0 for p = 0."""
    valid = p.real > 0
    out: Array = np.where(valid, p * np.log(np.where(valid, p / q, 1.0)), 0.0)
    return out


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
    out: Array = np.where(inside, rows * np.log(share) / k, 0.0)
    return out


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
        values = self._joint_values(lists) if self.joint else self._cell_values(lists)
        columns = np.stack([np.nan_to_num(values), ~np.isnan(values)], axis=1)
        if self.joint:
            return QuerySums.of_all(columns[:, None])
        return QuerySums.of_cells(lists.cells, columns)

    def _cell_values(self, lists: Lists) -> Array:
        """Return the value of each cell, NaN where undefined."""
        shares = lists.shares(self.target)
        distinct, inverse = _distinct(lists)
        values = np.empty(distinct.size)
        for n, of_length in by_length(lists.of_cells(lists.lengths)[distinct]):
            of_shares = self.of_mean_shares(n, 1)
            for some in _few_cuts(of_length, n // self.step):
                cell = distinct[some]
                p, q = lists.shares_above(cell, self.cuts(n)), shares[cell, None]
                values[some] = of_shares.of_cuts(p[:, None], q[:, None])[:, 0]
        return values[inverse]

    def _joint_values(self, lists: Lists) -> Array:
        """Return the joint divergence of all groups of each list, NaN if undefined."""
        shares = lists.shares(self.target)
        cell_of = _packed(lists)
        values = np.empty(lists.n_queries)
        for n, of_length in by_length(lists.lengths):
            of_shares = self.of_mean_shares(n, cell_of.shape[1])
            for some in _few_cuts(of_length, n // self.step * cell_of.shape[1]):
                cell = cell_of[some]
                present = cell >= 0
                p, q = np.zeros((*cell.shape, n // self.step)), np.zeros(cell.shape)
                p[present] = lists.shares_above(cell[present], self.cuts(n))
                q[present] = shares[cell[present]]
                values[some] = of_shares.of_cuts(p[:, None], q[:, None, :, None])[:, 0]
        return values

    def _share_table(self, lists: Lists) -> QuerySums:
        """Return the shares in the first k and in the list; 1 is the shared column."""
        cells, n_lists = lists.cells, lists.n_queries
        every, k = np.arange(cells.query.size), self.cuts(int(lists.lengths[0]))
        q = lists.shares(self.target)
        out = np.column_stack([lists.shares_above(every, k), q])
        ones = np.ones((n_lists, 1))
        if not self.joint:
            return QuerySums(cells, out, ones)
        joint = np.zeros((n_lists, cells.n_groups, out.shape[1]))
        joint[cells.query, cells.group] = out
        return QuerySums.of_all(joint.reshape(n_lists, 1, -1), ones)

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


def _check_joint(most: int) -> None:
    if most > _MOST_ORDERED:
        raise ValueError(
            "joint must be False, or normalize=False, for lists of more than "
            f"{_MOST_ORDERED} groups, whose largest divergence is not searched for; "
            f"got a list of {most} groups."
        )


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
        valid = valid[..., 0] & (largest.real > 0) & long
        out = np.full(value.shape, np.nan, dtype=value.dtype)
        np.divide(value, largest, out=out, where=valid)
        return out

    def _divisor(
        self, q: Array, n: Array, k: Array, total: Callable[[Array], Array]
    ) -> Array:
        """Return what the total distance is divided by."""
        if self.divisor != "maximum":
            return np.array(1.0 if self.divisor is None else np.sum(self.weights))
        if self.joint is None:
            return self.distance.largest(q, n, k, total, given=self.given)
        if self.given:
            return -np.log(q.real.min(axis=-2)[..., 0]) * float(np.sum(self.weights))
        _check_joint(q.shape[-2])
        sizes = [q[..., group, :] * n for group in range(q.shape[-2])]
        return largest_joint(sizes, n, k, total)
