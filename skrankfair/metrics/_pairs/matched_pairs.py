"""Sources of matched pairs: by ranges of close scores, or neighbours in the ranking."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..._inputs.cells import Memberships
from ..._inputs.ranking import Ranking, stable_order
from ..._inputs.validation import Array, Groups
from .group_ranges import GroupMatching, Ranges
from .member_gaps import Gaps, ListMembers
from .prefix_sums import sum_between, times
from .score_ranges import ROUNDED, Matching, PairWeight, weighted_rank
from .sources import CrossSource, FocalSums


def centred(y: Array, ranking: Ranking) -> Array:
    """Return outcomes minus their query's mean: no difference changes."""
    means = np.add.reduceat(y, ranking.starts[:-1]) / ranking.lengths
    if np.array_equal(y, np.rint(y)):
        means = np.rint(means)  # sums of integers stay exact
    return y - np.repeat(means, ranking.lengths)


class NearPairs(CrossSource, Protocol):
    """What pairs with scores within a threshold share: strata by position."""

    ranking: Ranking
    epsilon: Mapping[Hashable, float]
    n_positions: int

    @property
    def n_buckets(self) -> int:
        """Number of positions, or 1."""
        return max(self.n_positions, 1)

    @cached_property
    def bucket(self) -> Array | None:
        """Position of each row, from 0; None without strata."""
        return self.ranking.position() if self.n_positions else None

    def _epsilon(self, group: int) -> float:
        return self.epsilon[self.groups.labels[group]]

    def _epsilons(self) -> Array:
        return np.array([self.epsilon[label] for label in self.groups.labels])


@dataclass(frozen=True)
class MatchedPairs(NearPairs):
    """Pairs (i, j) within a threshold, i in the group, j outside; value: y_i - y_j."""

    ranking: Ranking
    #: Shape (n,). Outcomes in ranked order, centred within the query: differences stay
    #: what they are, and prefix sums stay small.
    y: Array
    groups: Groups
    #: Threshold of each group; NaN for a group without pairs.
    epsilon: Mapping[Hashable, float]
    direction: str  # {"below", "both"}
    #: Strata by the position of the lower item, pairs further down left out; 0 is no
    #: strata.
    n_positions: int = 0
    item_weight: Array | None = None  # as of `OutcomeCounts`

    #: The value of (j, i) is that of (i, j) negated.
    mirror = np.diag([-1.0, 1.0])

    @property
    def crossed(self) -> bool:
        """Whether two groups may count the same pair: not if one item is below."""
        one_way = self.direction == "below" and not self.ranking.has_ties
        return self.groups.overlapping or not one_way

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

    def focal(self, group: int) -> FocalSums:
        """Return the sums over the pairs of each row of the group."""
        return self._focal_sums(group, *self._matched(group))

    def partner(self, group: int) -> FocalSums:
        """Return the sums over the pairs of each row outside the group."""
        return self._partner_sums(group, *self._matched(group))

    def cell_sums(self, members: Memberships) -> Array | None:
        """Return the sums of `parts` of all groups at once, shape (E, 2, 1)."""
        if self.n_positions:
            return None
        ranges = self._ranges(members)
        count = ranges.weigh(self.item_weight, members.rows)
        outcome = times(self.y, self.item_weight)
        value = count * self.y[members.rows] - ranges.sums(outcome, members.rows)
        value[count == 0] = 0.0  # what is left of the sums there is rounding
        if self.item_weight is not None:
            own = self.item_weight[members.rows]
            value, count = value * own, count * own
        return np.stack([members.sums(value), members.sums(count)], axis=1)[..., None]

    #: Columns in which items of one gap differ: the value, by their outcomes.
    varying = slice(0, 1)

    def grades(self) -> Array | None:
        """Return zeros, since items differ by their outcomes alone; None if by more."""
        plain = self.item_weight is None and not self.n_positions
        zeros = np.zeros(self.ranking.n_rows, dtype=np.uint8)
        return zeros if plain and self.n_columns == 2 else None

    def values(self) -> Array:
        """Return the outcomes, in which the columns of other rows are linear."""
        return self.y[:, None]

    def _ranges(self, members: Memberships) -> Ranges:
        matching = GroupMatching(self.ranking, members, self.direction)
        return matching.windows(self._epsilons())

    def of_list(self, members: Memberships) -> ListMembers:
        """Return what the members of all groups of one list have."""
        ranges, rows, y = self._ranges(members), members.rows, self.y
        number, own = ranges.count, y[rows]
        columns = np.empty((2, rows.size))
        columns[:] = ranges.sums(y, rows), number
        square = own * number - 2 * columns[0]
        square *= own
        square += ranges.sums(y**2, rows)
        np.subtract(own * number, columns[0], out=columns[0])
        columns[0, number == 0] = 0.0  # what is left of the sums there is rounding
        squares, value, count = map(members.sums, (square, *columns))
        products = np.stack([squares, value, value, count], axis=1).reshape(-1, 2, 2)
        return ListMembers((ranges.low, ranges.high), columns.T, products)

    def other_columns(self, grade: int, gaps: Gaps) -> Array:
        """Return the columns of rows of outcome 0 that are in the gaps, (P, 2)."""
        one, y = np.ones(gaps.row.size), self.y[gaps.members.rows]
        return np.stack([gaps.sums(y, -y), gaps.sums(one, -one)]).T

    def columns_at(self, columns: Array, values: Array) -> Array:
        """Return the columns of rows with these outcomes."""
        value, number = columns.T
        value -= number * values[:, 0]
        value[number == 0] = 0.0  # what is left of the sums there is rounding
        return columns

    def parts(self, group: int) -> Iterable[FocalSums]:
        """Return sums of rows that count every pair once, at its lower item."""
        if not self.n_positions:
            return (self.focal(group),)
        matching, low, high = self._matched(group)
        # Tied items are at any position of their block, so either may be the lower.
        below = np.minimum(matching.below, high)
        parts = [self._focal_sums(group, matching, low, below)]
        if self.direction == "both":
            parts.append(self._partner_sums(group, matching, below, high))
        return [self._at_positions(part) for part in parts]

    def _at_positions(self, sums: FocalSums) -> FocalSums:
        """Spread the sums of a tied row evenly over the positions of its block."""
        ranking, rows, columns = self.ranking, sums.rows, sums.columns
        if rows is None or self.bucket is None:
            return sums
        if ranking.has_ties:
            n = ranking.n_rows
            columns = tuple(
                ranking.tie_means(np.bincount(rows, weights=column, minlength=n))
                for column in columns
            )
            rows = np.arange(n)
        if self.n_positions < ranking.lengths.max():
            near = np.flatnonzero(self.bucket[rows] < self.n_positions)
            rows, columns = rows[near], tuple(column[near] for column in columns)
        value, count, *more = columns
        return FocalSums(rows, value, count, tuple(more))

    def _range_sums(
        self, matching: Matching, low: Array, high: Array, power: int
    ) -> Array:
        """Return Σ y_j**power over the range of partners of each focal row."""
        rows = matching.partner_rows
        weight = None if self.item_weight is None else self.item_weight[rows]
        if power == 0:
            return sum_between(low, high, weight)
        y = self.y[rows]
        return sum_between(low, high, times(y if power == 1 else y**power, weight))

    def _focal_sums(
        self, group: int, matching: Matching, low: Array, high: Array
    ) -> FocalSums:
        """Return the sums over the pairs of each focal row with a range of partners."""
        count = self._range_sums(matching, low, high, 0)
        value = count * self.y[matching.rows]
        value -= self._range_sums(matching, low, high, 1)
        own = self._own(matching.rows)
        return FocalSums(matching.rows, times(value, own), times(count, own))

    def _own(self, rows: Array) -> Array | None:
        return None if self.item_weight is None else self.item_weight[rows]

    def _partner_sums(
        self, group: int, matching: Matching, low: Array, high: Array
    ) -> FocalSums:
        """Return the sums over the pairs of each partner with ranges that have it."""
        y = self.y[matching.rows]
        some, weight = np.flatnonzero(high > low), self._own(matching.rows)
        if some.size < low.size:
            low, high, y = low[some], high[some], y[some]
            weight = None if weight is None else weight[some]
        size = matching.partner_rows.size + 1
        number = np.bincount(low, weights=weight, minlength=size)
        number -= np.bincount(high, weights=weight, minlength=size)
        y = times(y, weight)
        total = np.bincount(low, weights=y, minlength=size).astype(float)
        total -= np.bincount(high, weights=y, minlength=size)
        number, total = np.cumsum(number)[:-1], np.cumsum(total)[:-1]
        partners = matching.partner_rows
        total -= number * self.y[partners]
        total[number == 0] = 0.0  # what is left of the sums there is rounding
        own = self._own(partners)
        return FocalSums(partners, times(total, own), times(number, own))

    def own_products(self, group: int, weight: Array | None) -> Array:
        """Return Σ x xᵀ over the group's pairs, x the columns of a pair."""
        matched = self._matched(group)
        return self.squared._products((group, group), *matched, weight)

    def products_from(
        self, focal: FocalSums, partner: FocalSums, weight: Array | None
    ) -> Array | None:
        """Return `own_products` from the sums of both sides; None if they lack it.

        ``Σ (y_i - y_j)²`` is ``Σ_i y_i (2 v_i - n_i y_i) + Σ_j n_j y_j²``, v and n the
        value and the number of the pairs of a row.
        """
        if self.item_weight is not None or self.n_columns > 2:
            return None
        value, number, of_partner = focal.value, focal.count, partner.count
        if weight is not None:
            value, number = value * weight[focal.rows], number * weight[focal.rows]
            of_partner = of_partner * weight[partner.rows]
        y, other = self.y[focal.rows], self.y[partner.rows]
        squares = y @ (2 * value - number * y) + (other * other) @ of_partner
        total = value.sum()
        return np.array([[squares, total], [total, number.sum()]])

    def _products(
        self,
        pair: tuple[int, int],
        matching: Matching,
        low: Array,
        high: Array,
        weight: Array | None,
    ) -> Array:
        """Return Σ x_a x_bᵀ over the pairs of ranges."""
        y = self.y[matching.rows]
        number, total, square = (
            self._range_sums(matching, low, high, power) for power in range(3)
        )
        for w in (weight, self.item_weight):
            if w is not None:
                w = w[matching.rows]
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
        """Return Σ x_a x_bᵀ over the pairs of two classes that both groups count.

        Seen from the first group; `opposite`: for the second the pair is the other way
        round, which a pair "below" is only when its scores are tied.
        """
        epsilon = min(self._epsilon(pair[0]), self._epsilon(pair[1]))
        if opposite and self.direction == "below":
            if not self.ranking.has_ties:
                return np.zeros((self.n_columns,) * 2)
            epsilon = 0.0 if epsilon >= 0 else math.nan
        matching = Matching(self.ranking, focal, partners, self.direction)
        ranges = matching.windows(epsilon)
        return self.squared._products(pair, matching, *ranges, weight)


class PairColumns:
    """The columns that a pair adds to: y_i - y_j and 1."""

    #: From the columns of the pair (i, j) to those of (j, i).
    mirror = np.diag([-1.0, 1.0])

    def of_pairs(
        self, value: Array, difference: Array, epsilon: float | Array
    ) -> Array:
        """Return the columns of pairs, shape (k, n_columns)."""
        return np.stack([value, np.ones(value.size)], axis=1)


@dataclass(frozen=True)
class AdjacentPairs(NearPairs):
    """Pairs of neighbours in the ranking, one of them in the group, either above.

    There are fewer of them than rows, so they are written down.
    """

    ranking: Ranking
    y: Array  # shape (n,)
    groups: Groups
    epsilon: Mapping[Hashable, float]
    pair_columns: PairColumns
    #: Ranked rows that are next to each other: the upper and the lower.
    neighbours: tuple[Array, Array]
    n_positions: int = 0
    item_weight: Array | None = None  # as of `OutcomeCounts`

    @property
    def mirror(self) -> Array:
        """From the columns of (i, j) to those of (j, i)."""
        return self.pair_columns.mirror

    def _pairs(
        self, focal: Array, partners: Array, epsilon: float
    ) -> tuple[Array, Array]:
        """Return focal rows and partners of the neighbours within the threshold."""
        i, j = across(self.neighbours, focal, partners)
        near = np.flatnonzero(np.abs(_differences(self.ranking, i, j)) <= epsilon)
        return i[near], j[near]

    def _columns(self, i: Array, j: Array, group: int) -> Array:
        columns = self.pair_columns.of_pairs(
            self.y[i] - self.y[j],
            _differences(self.ranking, i, j),
            self._epsilon(group),
        )
        return self._weighed(columns, i, j)

    def _weighed(self, columns: Array, i: Array, j: Array) -> Array:
        """Return the columns of pairs with the weights of both items."""
        weight = self.item_weight
        return columns if weight is None else columns * (weight[i] * weight[j])[:, None]

    def _of_group(self, group: int) -> tuple[Array, Array, Array]:
        member = self.groups.mask(group)
        i, j = self._pairs(member, ~member, self._epsilon(group))
        return i, j, self._columns(i, j, group)

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums of `parts` of all groups at once."""
        cell, i, j = across_groups(self.neighbours, members)
        group, limit = members.cells.group[cell], self._epsilons()
        difference = _differences(self.ranking, i, j)
        near = np.abs(difference) <= limit[group]
        key, n_buckets = cell * self.n_buckets, self.n_buckets
        if self.bucket is not None:
            position = self.bucket[np.maximum(i, j)]
            near &= position < n_buckets
            key += position
        some = np.flatnonzero(near)
        columns = self.pair_columns.of_pairs(
            (self.y[i] - self.y[j])[some], difference[some], limit[group[some]]
        )
        columns = self._weighed(columns, i[some], j[some])
        shape = members.sizes.size, n_buckets
        return np.stack(
            [
                np.bincount(key[some], weights=column, minlength=shape[0] * shape[1])
                .reshape(shape)
                .astype(float)
                for column in columns.T
            ],
            axis=1,
        )

    def _by_row(self, rows: Array, columns: Array) -> FocalSums:
        """Sum the columns by row, which keeps the rows that have a pair."""
        kept, code = np.unique(rows, return_inverse=True)
        value, count, *more = (
            np.bincount(code, weights=column, minlength=kept.size)
            for column in columns.T
        )
        return FocalSums(kept, value, count, tuple(more))

    def focal(self, group: int) -> FocalSums:
        """Return the sums over the pairs of each row of the group."""
        i, _, columns = self._of_group(group)
        return self._by_row(i, columns)

    def partner(self, group: int) -> FocalSums:
        """Return the sums over the pairs of each row outside the group."""
        _, j, columns = self._of_group(group)
        return self._by_row(j, columns)

    def parts(self, group: int) -> Iterable[FocalSums]:
        """Return sums of rows that count every pair once, at its lower item."""
        i, j, columns = self._of_group(group)
        lower = np.maximum(i, j)
        if self.bucket is not None:
            near = np.flatnonzero(self.bucket[lower] < self.n_positions)
            lower, columns = lower[near], columns[near]
        return (self._by_row(lower, columns),)

    def class_products(
        self,
        focal: Array,
        partners: Array,
        pair: tuple[int, int],
        opposite: bool,
        weight: Array | None,
    ) -> Array:
        """Return Σ x_a x_bᵀ over the pairs of two classes that both groups count."""
        epsilon = min(self._epsilon(pair[0]), self._epsilon(pair[1]))
        i, j = self._pairs(focal, partners, epsilon)
        a, b = (self._columns(i, j, group) for group in pair)
        return a.T @ (b if weight is None else b * weight[i, None])


def _differences(ranking: Ranking, i: Array, j: Array) -> Array:
    return ranking.score[j] - ranking.score[i]


def neighbours(ranking: Ranking, outer: Ranking) -> tuple[Array, Array]:
    """Return the rows of one query that are next to each other in the outer ranking.

    The two rankings are the same, or the first ranks the items of the outer list
    within their clusters.
    """
    at = np.arange(ranking.n_rows)
    if outer is not ranking:
        place = np.empty_like(outer.order)
        place[outer.order] = np.arange(outer.n_rows)
        at = np.argsort(place[ranking.order])
    query = ranking.query[at]
    upper = np.flatnonzero(query[1:] == query[:-1])
    return at[upper], at[upper + 1]


def across(
    neighbours: tuple[Array, Array], focal: Array, partners: Array
) -> tuple[Array, Array]:
    """Return the neighbours of which one is focal and the other a partner."""
    upper, lower = neighbours
    down = np.flatnonzero(focal[upper] & partners[lower])
    up = np.flatnonzero(focal[lower] & partners[upper])
    return (
        np.concatenate([upper[down], lower[up]]),
        np.concatenate([lower[down], upper[up]]),
    )


def across_groups(
    neighbours: tuple[Array, Array], members: Memberships
) -> tuple[Array, Array, Array]:
    """Return the neighbours of which one is in a group and the other is not.

    The cell of the one, the one and the other, for every group.
    """
    upper, lower = neighbours
    found = []
    for one, other in ((upper, lower), (lower, upper)):
        beside = np.full(members.groups.n_rows, -1)
        beside[one] = other
        partner = beside[members.rows]
        group = members.cells.group[members.cell]
        some = np.flatnonzero((partner >= 0) & ~members.contain(partner, group))
        found.append((members.cell[some], members.rows[some], partner[some]))
    cell, i, j = (np.concatenate(part) for part in zip(*found, strict=True))
    return cell, i, j


def kth_smallest_adjacent(
    ranking: Ranking,
    member: Array,
    n_pairs: int | None,
    quantile: float | None,
    weight: PairWeight,
) -> float:
    """Return the K-th smallest score difference of a group's neighbours."""
    i, j = across(neighbours(ranking, ranking), member, ~member)
    differences = np.abs(_differences(ranking, i, j))
    return _of_rank(differences, weight.of_pairs(i, j), n_pairs, quantile)


def kth_smallest_adjacent_by_group(
    ranking: Ranking,
    members: Memberships,
    n_pairs: int | None,
    quantile: float | None,
    weight: PairWeight,
) -> Array:
    """Return `kth_smallest_adjacent` of every group."""
    cell, i, j = across_groups(neighbours(ranking, ranking), members)
    differences = np.abs(_differences(ranking, i, j))
    group, of_pairs = members.cells.group[cell], weight.of_pairs(i, j)
    order = stable_order(group)
    ends = np.searchsorted(group[order], np.arange(members.cells.n_groups + 1))
    found = [order[ends[g] : ends[g + 1]] for g in range(ends.size - 1)]
    return np.array(
        [
            _of_rank(
                differences[some],
                None if of_pairs is None else of_pairs[some],
                n_pairs,
                quantile,
            )
            for some in found
        ]
    )


def _of_rank(
    differences: Array,
    weight: Array | None,
    n_pairs: int | None,
    quantile: float | None,
) -> float:
    """Return the K-th smallest difference, or NaN if there is none."""
    total = float(differences.size if weight is None else weight.sum())
    if total == 0:
        return math.nan
    rank = total if n_pairs is None else min(n_pairs, total)
    if quantile is not None:
        rank = min(quantile * total, total)
    rank *= 1 if weight is None else ROUNDED
    return weighted_rank(differences, weight, rank)
