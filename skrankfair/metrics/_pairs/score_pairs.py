"""Pairs of a member and another of the query; value: the member is ranked above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._inputs import cells as limits
from ..._inputs.cells import Memberships
from ..._inputs.ranking import Ranking
from ..._inputs.validation import Array, Groups
from .member_gaps import Gaps, ListMembers
from .outcome_counts import PairCounts
from .prefix_sums import exclusive_cumsum, sum_between, times
from .sources import CrossSource, FocalSums


@dataclass(frozen=True)
class ScorePairs(CrossSource):
    """Pairs (i, j), i in the group and j outside it; value: i is ranked above j."""

    ranking: Ranking
    groups: Groups
    #: Leave out pairs of equal scores, which otherwise have value one half.
    strict: bool = False
    item_weight: Array | None = None  # as of `OutcomeCounts`

    #: The value of (j, i) is one minus that of (i, j).
    mirror = np.array([[-1.0, 1.0], [0.0, 1.0]])

    def _count(self, mask: Array, focal: bool, rows: Array) -> PairCounts:
        """Return the pairs of some rows with those of the mask in the same query."""
        ranking = self.ranking
        query = ranking.query[rows]
        first, last = ranking.tie_bounds(rows)
        before = exclusive_cumsum(mask, self.item_weight)
        edges = before[ranking.starts]
        low, high = before[first], before[last]
        below = edges[1:][query] - high
        above = low - edges[:-1][query]
        ties = high - low
        half = 2 * (below if focal else above)
        weight = None if self.item_weight is None else self.item_weight[rows]
        if self.strict:
            return PairCounts(half, below + above, None).times(weight)
        half += ties
        return PairCounts(half, below + above + ties, ties).times(weight)

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums of `parts` of all groups at once, shape (E, 2, 1).

        All pairs of the members, less those between them, of which half are won.
        """
        ranking, rows, weight = self.ranking, members.rows, self.item_weight
        starts, own = ranking.starts, 1.0 if weight is None else weight
        first, last = ranking.tie_bounds()
        below = sum_between(last, starts[1:][ranking.query], weight)
        tied = sum_between(first, last, weight)
        won = members.sums_of_rows(
            times(below + (0 if self.strict else (tied - own) / 2), weight)
        )
        length = sum_between(starts[:-1], starts[1:], weight)[members.cells.query]
        size = squares = members.sizes
        if weight is not None:
            size = members.sums_of_rows(weight)
            squares = members.sums_of_rows(weight**2)
        number = size * (length - size)
        won -= (size * size - squares) / 2
        if self.strict and ranking.has_ties and rows.size:
            first, last = members.ranking(ranking).tie_bounds()
            inner = None if weight is None else weight[rows]
            level = times(sum_between(first, last, inner), inner)
            between = members.sums(level) - squares  # each tied pair twice
            won += between / 2
            tied = times(tied, weight)
            number = number - (members.sums_of_rows(tied) - squares - between)
        return np.stack([won, number], axis=1)[..., None]

    #: Columns in which items of one gap differ: none.
    varying = slice(0)

    def grades(self) -> Array:
        """Return zeros: items of all grades are alike."""
        return np.zeros(self.ranking.n_rows, dtype=np.uint8)

    def values(self) -> Array:
        """Return nothing, since all rows in a gap are alike."""
        return np.zeros((self.ranking.n_rows, 0))

    def columns_at(self, columns: Array, values: Array) -> Array:
        """Return the columns as they are."""
        return columns

    def of_list(self, members: Memberships) -> ListMembers:
        """Return what the members of all groups of one list have."""
        ranking, inner = self.ranking, members.ranking(self.ranking)
        first, last = ranking.tie_bounds(members.rows)
        own_first, own_last = inner.tie_bounds()
        end = members.starts[1:][members.cell]
        below = (ranking.n_rows - last) - (end - own_last)
        tied = (last - first) - (own_last - own_first)
        every = ranking.n_rows - members.sizes[members.cell]
        columns = np.empty((2, below.size))
        columns[:] = below, every
        if self.strict:
            columns[1] -= tied
        else:
            columns[0] += tied / 2
        value, number, ties = map(members.sums, (*columns, tied))
        square = value if self.strict else value - ties / 4
        products = np.stack([square, value, value, number], axis=1).reshape(-1, 2, 2)
        return ListMembers((first, last), columns.T, products)

    def other_columns(self, grade: int, gaps: Gaps) -> Array:
        """Return the columns of rows that are in the gaps, shape (P, 2)."""
        one, none = np.ones(gaps.row.size), np.zeros(gaps.row.size)
        number = gaps.totals(one)
        if not self.strict:
            return np.stack([gaps.sums(one / 2, one / 2), number]).T
        above = gaps.sums(none, one)
        return np.stack([above, above + number - gaps.sums(one, none)]).T

    def focal(self, group: int) -> FocalSums:
        """Return value and number of the pairs of each row of the group."""
        member = self.groups.mask(group)
        rows = np.flatnonzero(member)
        counts = self._count(~member, True, rows)
        return FocalSums(rows, counts.half / 2, counts.count)

    def partner(self, group: int) -> FocalSums:
        """Return value and number of the pairs of each row outside the group."""
        member = self.groups.mask(group)
        rows = np.flatnonzero(~member)
        counts = self._count(member, False, rows)
        return FocalSums(rows, counts.half / 2, counts.count)

    def products_from(
        self, focal: FocalSums, partner: FocalSums, weight: Array | None
    ) -> Array | None:
        """Return `own_products` from the sums of both sides; None if they lack it.

        Without ties a pair is won or not, and its value its square.
        """
        if self.item_weight is not None or self.ranking.has_ties:
            return None
        w = np.ones(focal.count.size) if weight is None else weight[focal.rows]
        value, number = focal.value @ w, focal.count @ w
        return np.array([[value, value], [value, number]])

    @property
    def _many(self) -> bool:
        return len(self.groups) > limits.FEW_GROUPS and not self.groups.overlapping

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        return self.ranking.tie_bounds()

    def _around(self, mask: Array) -> tuple[Array, Array, Array]:
        """Return how many of a mask are below, level with and above each row."""
        ranking, before = self.ranking, exclusive_cumsum(mask, self.item_weight)
        edges = before[ranking.starts]
        if ranking.has_ties:
            first, last = self._bounds
            low, high = before[first], before[last]
        else:
            low, high = before[:-1], before[1:]
        if ranking.n_queries == 1:
            return edges[1] - high, high - low, low - edges[0]
        below = edges[1:][ranking.query] - high
        return below, high - low, low - edges[:-1][ranking.query]

    @cached_property
    def _around_all(self) -> tuple[Array, Array, Array]:
        return self._around(np.ones(self.ranking.n_rows, dtype=bool))

    def _of_all_rows(self, group: int) -> tuple[Array, Array, Array]:
        """Return the won, all and the tied pairs of the group that each row is in."""
        member = self.groups.mask(group)
        below, level, above = self._around(member)
        # Of members the partners are all others, and of others the members.
        won = np.where(member, self._around_all[0] - below, above).astype(float)
        lost = np.where(member, self._around_all[2] - above, below)
        ties = np.where(member, self._around_all[1] - level, level)
        count = won + lost
        if not self.strict:
            won += ties / 2
            count += ties
        own = self.item_weight
        return times(won, own), times(count, own), times(ties, own)

    def fill(self, columns: Array, group: int, weight: Array | None) -> Array:
        """Set each item's sums; of many groups return Σ x xᵀ with each other group."""
        if not self._many:
            return super().fill(columns, group, weight)
        codes, sums = self.groups.values, self._of_all_rows(group)
        columns[:, 0, 0], columns[:, 1, 0] = sums[:2]
        if self.item_weight is not None:
            sums = self.squared._of_all_rows(group)
        value, number, tied = (
            np.bincount(
                codes,
                weights=part if weight is None else part * weight,
                minlength=len(self.groups),
            )
            for part in sums
        )
        for part in (value, number, tied):
            part[group] = 0.0  # which no other group counts
        square = value if self.strict else value - tied / 4
        return np.array([[square, value], [value, number]])

    def products(
        self, weight: Array | None, own: Sequence[Array] | None = None
    ) -> Array:
        """Return Σ x xᵀ over pairs, x the columns that one pair adds to."""
        if not self._many:
            return super().products(weight, own)
        every = np.arange(len(self.groups))
        if own is None:
            columns = np.empty((self.groups.n_rows, 2, 1))
            own = [self.fill(columns, g, weight) for g in range(every.size)]
        blocks = np.stack(own).transpose(0, 1, 3, 2)
        # Seen from the other group a pair is its mirror image.
        products = blocks @ self.mirror.T
        products[every, :, every] = blocks.sum(axis=2)
        return products.reshape(2 * every.size, -1)

    def class_products(
        self,
        focal: Array,
        partners: Array,
        pair: tuple[int, int],
        opposite: bool,
        weight: Array | None,
    ) -> Array:
        """Return Σ x xᵀ over the pairs of two classes."""
        rows = np.flatnonzero(focal)
        counts = self.squared._count(partners, True, rows)
        w = np.ones(rows.size) if weight is None else weight[rows]
        value, number = counts.half @ w / 2, counts.count @ w
        square = value if counts.ties is None else value - counts.ties @ w / 4
        return np.array([[square, value], [value, number]])
