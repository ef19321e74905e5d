"""Matched pairs: of near scores, or of neighbours in the ranking."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from ..._estimates.arrays import check_memory
from ..._inputs.groups import Groups, rows_of_ranges, stable_order, starts_of_runs
from ..._inputs.ranking import Memberships, RankedData, Ranking
from ..._inputs.validation import Array
from .cluster_rows import Pairs, QuerySums, sums_between, times
from .near import (
    Matching,
    PairWeight,
    Ranges,
    members_with_row,
    smallest_of_groups,
    wanted_rank,
    with_rounding,
)

#: Larger scores count as this one when distances are summed, to keep squares finite.
_LARGEST_SCORE = 1e100
#: `with_rounding` extends a threshold by at most this share of it.
_SLACK = 1e-6


@dataclass(frozen=True)
class PartnerRanges:
    """Focal rows, and the range of the partners of each in a list of rows.

    Attributes
    ----------
    rows : ndarray of shape (m,) or slice
        The ranked rows that are listed.
    place : callable
        From places in the ranking, one for each focal row, to places in the list.
    low, high : ndarray of shape (k,)
        The partners of each focal row are those listed at [low, high).
    focal, group : ndarray of shape (k,)
        The focal rows, and the groups to whose pairs they belong.
    """

    rows: Array | slice
    place: Callable[[Array], Array]
    low: Array
    high: Array
    focal: Array
    group: Array

    @classmethod
    def in_cells(
        cls, members: Memberships, cell: Array, low: Array, high: Array, focal: Array
    ) -> PartnerRanges:
        """Return focal rows with partners that are members of a cell each."""
        place, group = partial(members.first_at, cell), members.cells.group[cell]
        return cls(members.rows, place, low, high, focal, group)


def centred(y: Array, ranking: Ranking) -> Array:
    """Return outcomes minus the mean of their query; no difference of two changes."""
    means = np.add.reduceat(y, ranking.starts[:-1]) / ranking.lengths
    if np.array_equal(y, np.rint(y)):
        means = np.rint(means)  # sums of integers stay exact
    return y - np.repeat(means, ranking.lengths)


@dataclass(frozen=True)
class NearPairs(Pairs):
    """A base of pairs with scores within a threshold, with buckets by position."""

    ranking: Ranking
    #: Shape (n,). Outcomes in ranked order, centred within the query: this changes no
    #: difference and keeps prefix sums small.
    y: Array
    groups: Groups
    #: Threshold of each group; NaN for a group without pairs.
    epsilon: Mapping[Hashable, float]
    direction: str  # {"below", "both"}
    #: The number of buckets, one per position of the lower item; pairs further down are
    #: left out. 0: there is one for all positions.
    n_positions: int = 0
    #: Shape (n,) or None. A pair counts the product of the weights of its items.
    item_weight: Array | None = None

    @property
    def n_buckets(self) -> int:  # type: ignore[override]
        """Number of positions, or 1."""
        return max(self.n_positions, 1)

    @cached_property
    def _epsilons(self) -> Array:
        return np.array([self.epsilon[label] for label in self.groups.labels])

    def _own(self, rows: Array | slice) -> Array | None:
        """Return the weights of rows, None if all are 1."""
        return None if self.item_weight is None else self.item_weight[rows]


@dataclass(frozen=True)
class MatchedPairs(NearPairs):
    """Pairs (i, j) within a threshold, i in the group, j outside; value: y_i - y_j."""

    #: Factors from the columns of a pair (i, j) to those of (j, i): 1 or -1.
    mirror = np.array([-1.0, 1.0])
    #: Numbers of the columns that are also summed over the pairs within a group.
    placebo: ClassVar[tuple[int, ...]] = ()

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, n_columns, B)."""
        matching, ranges = self._ranges_of(members)
        # Tied items are at any position of their block, so either may be the lower.
        lower = matching.upper_part(ranges) if self.n_positions else ranges
        some, columns, _ = self._focal_columns(members, lower)
        sums = self._sums_of_cells(members, some, columns)
        if self.n_positions and self.direction == "both":
            sums += self._at_positions(*self._partners_below(matching, ranges), members)
        return sums

    def _ranges_of(self, members: Memberships) -> tuple[Matching, Ranges]:
        """Return the partners within the thresholds."""
        matching = Matching(self.ranking, members, self.direction)
        return matching, matching.windows(self._epsilons)

    def _sums_of_cells(
        self, members: Memberships, some: Array, columns: Array
    ) -> Array:
        """Return the sums by cell of the columns of some memberships."""
        cell, size = members.cell[some], members.sizes.size
        if self.n_positions:
            return self._at_positions(cell, members.rows[some], columns, members)
        sums = [np.bincount(cell, column, size) for column in columns]
        return np.stack(sums, axis=1).astype(float)[..., None]

    def _focal_columns(
        self, members: Memberships, ranges: Ranges
    ) -> tuple[Array, Array, Array]:
        """Return the memberships with others in range, and two sets of columns.

        They are sums over partners, (n_columns, k), and over rows of the own cell, of
        which only those of the placebo are left.
        """
        others = ranges.high - ranges.low - 1 if self.placebo else ranges.count
        some = np.flatnonzero(others > 0)
        low, high, own_low, own_high = (end[some] for end in ranges.ends)
        rows, cell = members.rows[some], members.cell[some]
        of_cell = PartnerRanges.in_cells(members, cell, own_low, own_high, rows)
        ends = low, high, rows, of_cell.group
        of_all = PartnerRanges(slice(None), lambda place: place, *ends)
        columns, own = self._range_columns(of_all), self._range_columns(of_cell)
        columns -= own
        # Without partners, or alone in the cell, the sums are rounding.
        columns *= high - low > own_high - own_low
        own = own[list(self.placebo)] * (own_high - own_low > 1)
        weight = self._own(rows)
        return some, times(columns, weight), times(own, weight)

    def _range_columns(self, ranges: PartnerRanges) -> Array:
        """Return the columns of focal rows over their partners, (n_columns, k).

        The weights of partners are in them, and those of the focal rows are not.
        """
        weight = self._own(ranges.rows)
        columns = np.empty((self.n_columns, ranges.low.size))
        [columns[1]] = sums_between(weight, ranges.low, ranges.high)
        for number, values in self._compared.items():
            np.multiply(columns[1], values[ranges.focal], out=columns[number])
            in_list = times(values[ranges.rows], weight)
            columns[number] -= sums_between(in_list, ranges.low, ranges.high)[0]
        return columns

    @property
    def _compared(self) -> dict[int, Array]:
        """Values by column: a pair (i, j) adds the value of i minus that of j."""
        return {0: self.y}

    def _partners_below(
        self, matching: Matching, ranges: Ranges
    ) -> tuple[Array, Array, Array]:
        """Return cells, rows that are partners below their members, and columns."""
        ranking, members = self.ranking, matching.members
        position, _ = ranking.place_bounds()
        at_top = np.flatnonzero(position < self.n_positions)
        edges = np.searchsorted(at_top, ranking.starts)
        query = members.cells.query
        cell, rows = rows_of_ranges(edges[:-1][query], np.diff(edges)[query])
        rows = at_top[rows]
        others = np.flatnonzero(~members.contain(rows, members.cells.group[cell]))
        cell, rows = cell[others], rows[others]
        # The members of a cell whose range has a row are consecutive.
        low, high = (
            matching.members_before(ends, cell, rows)
            for ends in (ranges.high, matching.level.high)
        )
        partners = PartnerRanges.in_cells(members, cell, low, high, rows)
        return cell, rows, self._partner_columns(partners)

    def _partner_columns(self, ranges: PartnerRanges) -> Array:
        """Return the columns of focal rows as partners of their ranges, (n_columns, k).

        Here the listed rows are the members of a group, and a focal row is outside it.
        """
        columns = self._range_columns(ranges)
        columns *= ranges.low < ranges.high  # without members the sums are rounding
        columns *= self.mirror[:, None]
        return times(columns, self._own(ranges.focal))

    def _at_positions(
        self, cell: Array, rows: Array, columns: Array, members: Memberships
    ) -> Array:
        """Sum the columns of rows of cells, in order, by cell and position.

        The columns of a tied row are spread evenly over the positions of its block.
        """
        ranking, n_positions = self.ranking, self.n_positions
        out = np.zeros((members.sizes.size, self.n_columns, n_positions))
        if rows.size:
            low, high = ranking.place_bounds(rows)
            first = starts_of_runs(low, np.append(starts_of_runs(cell), cell.size))
            size = (high - low)[first]
            columns = np.add.reduceat(columns, first, axis=1) / size
            times_there = np.clip(n_positions - low[first], 0, size)
            key = (cell * self.n_columns * n_positions + low)[first]
            at, key = rows_of_ranges(key, times_there)
            for number, column in enumerate(columns):
                out.ravel()[key + number * n_positions] = column[at]
        return out

    @cached_property
    def _of_all_items(self) -> tuple[Memberships, Ranges]:
        """The memberships of all rows and their partners."""
        members = Memberships.of(self.ranking, self.groups)
        return members, self._ranges_of(members)[1]

    @cached_property
    def _of_members(self) -> tuple[Array, Array, Array]:
        """The memberships with others in range, and their columns."""
        return self._focal_columns(*self._of_all_items)

    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the group's pairs, shape (n_columns, 1, n)."""
        memberships, ranges = self._of_all_items
        of_group = np.repeat(memberships.cells.group == group, memberships.sizes)
        some, n_rows = np.flatnonzero(of_group), self.ranking.n_rows
        members, out = memberships.rows[some], np.zeros((self.n_columns, n_rows))
        focal, columns, _ = self._of_members
        chosen = np.flatnonzero(of_group[focal])
        out[:, memberships.rows[focal[chosen]]] = columns.take(chosen, axis=1)
        low, high = members_with_row(ranges.low[some], ranges.high[some], n_rows)
        rows = np.flatnonzero((low < high) & ~self.groups.mask(group))
        low, high = low[rows], high[rows]
        out[:, rows] = self._partner_columns(
            PartnerRanges(
                members,
                lambda place: np.searchsorted(members, place),
                *(low, high, rows, np.broadcast_to(group, rows.size)),
            )
        )
        return out[:, None]


@dataclass(frozen=True)
class DistantPairs(MatchedPairs):
    """Matched pairs from below with their distances s_j - s_i, and a placebo.

    The placebo are the pairs (i, j) within the threshold with both items in one group,
    whose outcomes differ by the slope of the outcome over the score alone. The sums of
    their values and distances over all groups are shared columns.
    """

    n_columns = 3
    mirror = np.array([-1.0, 1.0, -1.0])
    placebo = (0, 2)

    @cached_property
    def _compared(self) -> dict[int, Array]:
        """Values by column: outcomes, and negative scores, both centred by query."""
        score = np.clip(self.ranking.score, -_LARGEST_SCORE, _LARGEST_SCORE)
        return {0: self.y, 2: -centred(score, self.ranking)}

    def _range_columns(self, ranges: PartnerRanges) -> Array:
        """Return values, numbers and distances, (3, k), of focal rows."""
        columns = super()._range_columns(ranges)
        if self.ranking.has_ties:
            # Distances between tied items are 0; what the sums have is rounding.
            tie = self.ranking.tie
            tie_of, origin = np.append(tie[ranges.rows], -1), tie[ranges.focal]
            level = (tie_of[ranges.low] == origin) & (tie_of[ranges.high - 1] == origin)
            columns[2, level] = 0.0
        return columns

    def sums(self, members: Memberships) -> QuerySums:
        """Return the sums by query and group, and those of the placebo by query."""
        some, columns, own = self._focal_columns(members, self._ranges_of(members)[1])
        of_cells = self._sums_of_cells(members, some, columns)
        query, size = self.ranking.query[members.rows[some]], self.ranking.n_queries
        placebo = [np.bincount(query, column, size) for column in own]
        shared = np.stack(placebo, axis=1).astype(float)[..., None]
        return QuerySums(members.cells, of_cells, shared)

    def shared_item_sums(self) -> Array:
        """Return each item's sums over the pairs of the placebo, shape (n, 2, 1)."""
        members, ranges = self._of_all_items
        (focal, _, own), n_rows = self._of_members, self.ranking.n_rows
        low, high = members_with_row(ranges.own_low, ranges.own_high, members.rows.size)
        some = np.flatnonzero(high - low > 1)
        rows, group = members.rows[some], members.cells.group[members.cell[some]]
        ends = low[some], high[some], rows, group
        partners = PartnerRanges(members.rows, lambda place: place, *ends)
        others = times(self._range_columns(partners), self._own(rows))
        out = [
            np.bincount(members.rows[focal], one, n_rows)
            - np.bincount(rows, other, n_rows)
            for one, other in zip(own, others[list(self.placebo)], strict=True)
        ]
        return np.stack(out).T[..., None]


def mean_columns(value: Array, difference: Array, epsilon: Array) -> Array:
    """Return the columns that pairs add to, shape (2, k): y_i - y_j and 1."""
    return np.stack([value, np.ones(value.size)])


@dataclass(frozen=True, kw_only=True)
class WrittenPairs(NearPairs):
    """Pairs in a list, with one item in the group and the other outside it.

    They are neighbours in the ranking, or items that are near in covariates too.
    """

    #: The two ranked rows of each pair.
    pairs: tuple[Array, Array]
    #: From y_i - y_j, s_j - s_i and the threshold to columns of a pair.
    columns: Callable[[Array, Array, Array], Array]
    n_columns: int

    def _pairs(self, members: Memberships) -> tuple[Array, Array, Array, Array]:
        """Return cell, focal row, partner and columns of each pair."""
        cell, i, j = across_groups(self.pairs, members)
        limit = self._epsilons[members.cells.group[cell]]
        difference = self.ranking.score[j] - self.ranking.score[i]
        within = with_rounding(limit, self.ranking.score[i])
        near = np.flatnonzero(np.abs(difference) <= within)
        cell, i, j = cell[near], i[near], j[near]
        value = self.y[i] - self.y[j]
        columns = self.columns(value, difference[near], limit[near])[: self.n_columns]
        columns = times(times(columns, self._own(i)), self._own(j))
        return cell, i, j, columns

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, n_columns, B)."""
        cell, i, j, columns = self._pairs(members)
        shape = members.sizes.size, self.n_buckets
        key = cell * self.n_buckets
        if self.n_positions:
            position = np.maximum(*(self.ranking.place[rows] for rows in (i, j)))
            some = np.flatnonzero(position < self.n_positions)
            key, columns = key[some] + position[some], columns.take(some, axis=1)
        size = shape[0] * shape[1]
        sums = [np.bincount(key, column, size).reshape(shape) for column in columns]
        return np.stack(sums, axis=1).astype(float)

    @cached_property
    def _pairs_of_groups(self) -> tuple[Array, Array, Array, Array]:
        members = Memberships.of(self.ranking, self.groups)
        cell, i, j, columns = self._pairs(members)
        return members.cells.group[cell], i, j, columns

    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the group's pairs, shape (n_columns, 1, n)."""
        of, *rows, columns = self._pairs_of_groups
        some, n_rows = np.flatnonzero(of == group), self.ranking.n_rows
        out = np.zeros((self.n_columns, 1, n_rows))
        for total, column in zip(out, columns.take(some, axis=1), strict=True):
            for row in rows:
                total[0] += np.bincount(row[some], column, n_rows)
        return out


def neighbours(ranking: Ranking) -> tuple[Array, Array]:
    """Return pairs of rows of one query at neighbouring places, upper and lower."""
    at = ranking.by_place
    next_place = np.diff(ranking.place[at]) == 1  # within a query, or at a list's end
    upper = np.flatnonzero(next_place & (np.diff(ranking.query[at]) == 0))
    return at[upper], at[upper + 1]


def close_pairs(
    ranking: Ranking, covariates: Array, epsilon: float
) -> tuple[Array, Array]:
    """Return rows of one query within epsilon in the score and all covariates, (n, d).

    The query is a further axis of the search tree, on which queries are further apart.
    """
    from scipy.spatial import KDTree

    axis = (2.0 * epsilon or 1.0) * ranking.query
    points = np.column_stack([ranking.score, covariates])
    tree, reach = KDTree(np.column_stack([points, axis])), epsilon * (1 + _SLACK)
    number = tree.count_neighbors(tree, reach, p=np.inf)
    check_memory(
        40.0 * number,
        f"{number // 2:,} pairs of items that are alike in all covariates",
        "pass a smaller epsilon, or queries by qid=.",
    )
    one, other = tree.query_pairs(reach, p=np.inf, output_type="ndarray").T
    limit = with_rounding(np.array(epsilon), points[one])
    near = (np.abs(points[one] - points[other]) <= limit).all(axis=1)
    return one[near], other[near]


def across_groups(
    pairs: tuple[Array, Array], members: Memberships
) -> tuple[Array, Array, Array]:
    """Return the pairs of which one item i is in a group and the other, j, is not.

    The results are the cell of i, i, and j, for every group and order of a pair.
    """
    cells, parts = members.cell[stable_order(members.rows)], []
    starts = np.cumsum(np.bincount(members.rows, minlength=members.groups.n_rows + 1))
    size = np.diff(starts, prepend=0)
    for i, j in (pairs, pairs[::-1]):
        pair, place = rows_of_ranges((starts - size)[i], size[i])
        cell, j = cells[place], j[pair]
        some = np.flatnonzero(~members.contain(j, members.cells.group[cell]))
        parts.append((cell[some], i[pair[some]], j[some]))
    cell, i, j = map(np.concatenate, zip(*parts, strict=True))
    return cell, i, j


def kth_smallest_adjacent(
    data: RankedData, n_pairs: int | None, quantile: float | None, weight: PairWeight
) -> Array:
    """Return the K-th smallest score difference of neighbours of every group."""
    groups, differences = [], []
    weights: list[Any] = []
    for rows, block in data.blocks():
        members, score = block.memberships, block.ranking.score
        cell, i, j = across_groups(neighbours(block.ranking), members)
        groups.append(members.cells.group[cell])
        differences.append(np.abs(score[j] - score[i]))
        weights.append(weight.of_pairs(rows.start + i, rows.start + j))
    group = np.concatenate(groups)
    of_pairs = np.concatenate(weights) if weight.given else None
    total = np.bincount(group, of_pairs, len(data.groups))
    rank = wanted_rank(total, n_pairs, quantile, weight)
    return smallest_of_groups(
        group, np.concatenate(differences), of_pairs, rank, np.full(total.size, np.nan)
    )
