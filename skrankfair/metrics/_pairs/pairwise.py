"""Sums over pairs of unlike outcomes, or of a member and another item.

The value of a pair says which item is ranked above. The pairs of a query are summed
without a list of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._inputs.groups import Groups, stable_order, starts_of_runs
from ..._inputs.ranking import Memberships, Places, Ranking, order_rows
from ..._inputs.validation import Array
from .cluster_rows import (
    REST,
    Pairs,
    bounds_around,
    count_dtype,
    cumulated,
    sums_between,
    times,
)

# The sides of `OutcomeCounts.count`.
WORSE, BETTER = True, False
# Bits of a digit of the outcomes.
_BITS = 3


def outcome_codes(y: Array, ranking: Ranking) -> Array:
    """Return small integers in the order of the outcomes, within each query.

    Whole numbers of a small range are numbered over all rows; other outcomes get their
    dense rank within the query, so that the codes have as many bits as the longest
    query needs.
    """
    low, high = y.min(), y.max()
    if high < low + 256 and np.array_equal(y, np.rint(y)):
        return (y - low).astype(np.uint8)
    rows = order_rows(ranking.query, -y)
    first = starts_of_runs(y[rows], ranking.starts)
    numbers: Array = np.arange(first.size, dtype=count_dtype(y.size))
    rank = np.repeat(numbers, np.diff(first, append=y.size))
    rank -= rank[ranking.starts[:-1]].take(ranking.query)
    codes = np.empty_like(rank)
    codes[rows] = rank
    return codes


class Level(NamedTuple):
    """Rows in blocks of equal higher digits; a pair is decided where its digits differ.

    Within a block the rows keep their ranked order. Every pair of a query with
    different outcomes is in one block of exactly one level, the better with the larger
    digit. On the last level rows of a block with one digit have equal outcomes.
    """

    rows: Array
    digit: Array
    places: Places
    last: bool

    def parts(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield the rows of each digit, and masks of smaller, larger and equal ones.

        Rows are numbered as in `places`.
        """
        for digit in range(int(self.digit.max()) + 1):
            equal = self.digit == digit
            smaller, larger = self.digit < digit, self.digit > digit
            yield np.flatnonzero(equal), smaller, larger, equal


def outcome_levels(ranking: Ranking, codes: Array) -> Iterator[Level]:
    """Partition the rows by the digits of their outcome codes, highest digit first."""
    places: Places = ranking
    rows, tie = np.arange(codes.size), ranking.tie if ranking.has_ties else None
    n_digits = max(1, -(-int(codes.max()).bit_length() // _BITS))
    for left in range(n_digits, 0, -1):
        digit = (codes >> (left - 1) * _BITS & (1 << _BITS) - 1).astype(np.uint8)
        yield Level(rows, digit, places, left == 1)
        if left == 1:
            return
        block = places.query.astype(np.int64) << _BITS | digit
        moved = stable_order(digit)  # blocks may follow each other in any order
        rows, codes, block = rows[moved], codes[moved], block[moved]
        starts = np.append(starts_of_runs(block), block.size)
        tie_starts = places.tie_starts
        if tie is not None:
            tie = tie[moved]
            tie_starts = starts_of_runs(tie, starts)
        places = Places(starts, tie_starts)


@dataclass(frozen=True)
class OutcomeCounts:
    """Values and numbers of the pairs of each row with partners of other outcomes."""

    ranking: Ranking
    #: Shape (n,). Small integers in the order of the outcomes within each query.
    codes: Array
    #: Shape (n,) or None. A pair counts the product of the weights of its items.
    item_weight: Array | None = None

    @property
    def all_worse(self) -> Array:
        """Value and number of the pairs of each row with worse ones, shape (2, n)."""
        return self._scaled(self._all_others[0, 0])

    @property
    def all_better(self) -> Array:
        """Value and number of the pairs of each row with better ones, shape (2, n)."""
        return self._scaled(self._all_others[1, 0])

    @cached_property
    def _all_others(self) -> Array:
        """Counts with worse and with better rows, as most metrics need both."""
        return self._twice([None], WORSE, BETTER)

    def _scaled(self, counts: Array) -> Array:
        """Return counts with halves of values, and with the weights of their rows."""
        return times(counts * [[0.5], [1.0]], self.item_weight)

    def count(self, masks: Sequence[Array | None], *sides: bool) -> Array:
        """Return the pairs of each row with rows of each mask, by side.

        The side `WORSE` counts the worse rows (partners) of each row, and `BETTER` the
        better rows (focal rows). The shape is (sides, masks, 2, n): values of the
        pairs, one half for tied scores, and their numbers.
        """
        return self._scaled(self._twice(masks, *sides))

    def _twice(self, masks: Sequence[Array | None], *sides: bool) -> Array:
        """Return the counts with twice the values: without weights whole numbers."""
        n, weight = self.ranking.n_rows, self.item_weight
        sought = [weight if mask is None else times(mask, weight) for mask in masks]
        dtype: type = count_dtype(n) if weight is None else float
        counts: Array = np.zeros((len(sides), len(masks), 2, n), dtype)
        for level in outcome_levels(self.ranking, self.codes):
            rows, places = level.rows, level.places
            in_order = [None if w is None else w[rows] for w in sought]
            for at, smaller, larger, _ in level.parts():
                # The row itself is not sought: where no rows are tied, none are.
                first, last = places.tie_bounds(at) if places.has_ties else (at, at)
                target, block = rows[at], places.query[at]
                for worse, of_side in zip(sides, counts, strict=True):
                    others = smaller if worse else larger
                    if not others.any():
                        continue
                    for partner, (value, number) in zip(in_order, of_side, strict=True):
                        before = cumulated(times(others, partner))
                        edges = before[places.starts]
                        start, end = edges.take(block), edges[1:].take(block)
                        # Twice the partners after the row, or focal rows before it.
                        twice = before.take(first) + before.take(last)
                        twice = 2 * end - twice if worse else twice - 2 * start
                        value[target] += twice
                        number[target] += end - start
        return counts

    def within(self, members: Memberships) -> OutcomeCounts:
        """Return the counts of each cell as a list of its own."""
        rows, weight = members.rows, self.item_weight
        weight = None if weight is None else weight[rows]
        return OutcomeCounts(members.ranking(self.ranking), self.codes[rows], weight)


@dataclass(frozen=True)
class OutcomePairs(Pairs):
    """Pairs (i, j) of a query, i the better one; value: i is ranked above j."""

    ranking: Ranking
    groups: Groups
    counts: OutcomeCounts
    #: {"all", "intra", "inter"}. Which partners count for a focal item of a group: all,
    #: those of the group, or those outside it.
    comparison: str
    bucket: Array | None = None  # shape (n,) or None: that of the focal item
    n_buckets: int = 1
    #: Of intra pairs of groups that do not overlap: the rest has the pairs inside each
    #: other group, and none across two of them.
    apart: Memberships | None = None
    n_sides = 2

    @property
    def has_shared(self) -> bool:
        """Whether a pair is always of the group or of its rest, not across them."""
        return self.comparison != "inter"

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, 4, B).

        The sums over all pairs, over pairs with the focal item in the group, with the
        partner in it, and with both give the sums of the group and of the rest.
        """
        of_group = members.sums_of_rows(self._all_worse)
        of_rest = -of_group
        if self.comparison != "all" and self.apart is None:
            # A cell of one row has no pairs; with many groups most are like that.
            some, several = members.of_cells(members.sizes > 1)
            inside = np.zeros(of_group.shape)
            if some.size:
                inner = self.counts.within(several).count([None], WORSE)[0]
                inner = self._by_bucket(inner, several.rows)
                inside[..., members.sizes > 1] = several.sums(inner)
            partner = members.sums_of_rows(self._all_better)
            if self.comparison == "intra":
                of_group, of_rest = inside, inside - of_group - partner
            else:
                of_group, of_rest = of_group - inside, partner - inside
        out = np.concatenate([of_group, of_rest], axis=1).transpose(2, 1, 0)
        if self.has_shared:
            # Means of queries are taken of whole sums; see `subtract_shared`.
            out[:, REST] += self.query_sums().take(members.cells.query, axis=0)
        return out

    def query_sums(self) -> Array:
        """Return value and number of all these pairs by query, shape (Q, 2 or 0, B)."""
        if not self.has_shared:
            return super().query_sums()
        first = self.ranking.starts[:-1]
        return np.add.reduceat(self._all_worse, first, axis=-1).transpose(2, 1, 0)

    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the pairs of group and rest, (4, B, n)."""
        member = self.groups.mask(group)
        # Of each row the worse and the better rows, and those of them in the group.
        worse, better = self._all_worse, self._all_better
        if self.apart is not None:
            pairs = worse + better
            sides = [pairs * member, pairs * ~member]
            return np.concatenate(sides, axis=1).swapaxes(0, 1)
        members = self._bucket_masks(member)
        own_worse, own_better = self.counts.count(members, WORSE, BETTER)
        own_worse = self._by_bucket(own_worse.sum(axis=0, keepdims=True))
        if self.comparison == "all":
            of_group = own_better + worse * member
            of_rest = better - own_better + worse * ~member
        elif self.comparison == "inter":
            of_group = np.where(member, worse - own_worse, own_better)
            of_rest = np.where(member, better - own_better, own_worse)
        else:
            of_group = (own_worse + own_better) * member
            of_rest = worse - own_worse + better - own_better
            of_rest *= ~member
        return np.concatenate([of_group, of_rest], axis=1).swapaxes(0, 1)

    def shared_item_sums(self) -> Array:
        """Return the sums over all pairs that each item is in, shape (n, 2 or 0, B)."""
        if not self.has_shared:
            return super().shared_item_sums()
        return (self._all_worse + self._all_better).transpose(2, 1, 0)

    @property
    def counts_of_rows(self) -> Array:
        """Numbers of pairs of rows with worse and with better rows, shape (2, n)."""
        return np.stack([self.counts.all_worse[1], self.counts.all_better[1]])

    def _bucket_masks(self, mask: Array | None) -> list[Array | None]:
        """Return masks of the rows of `mask` in each bucket of focal items."""
        if self.bucket is None:
            return [mask]
        buckets = [self.bucket == bucket for bucket in range(self.n_buckets)]
        return [b if mask is None else b & mask for b in buckets]

    def _by_bucket(self, counts: Array, rows: Array | slice = slice(None)) -> Array:
        """Return counts of focal rows, (1, 2, k), put in their bucket, (B, 2, k)."""
        if self.bucket is None:
            return counts
        is_in = self.bucket[rows] == np.arange(self.n_buckets)[:, None]
        return counts * is_in[:, None]

    @cached_property
    def _all_worse(self) -> Array:
        """Counts of the worse rows of each focal row, by its bucket, (B, 2, n)."""
        if self.apart is not None:
            return self._by_bucket(self._inside(self.apart, [None], WORSE))
        return self._by_bucket(self.counts.all_worse[None])

    @cached_property
    def _all_better(self) -> Array:
        """Counts of the better rows of each partner, by the bucket of these."""
        if self.apart is not None:
            return self._inside(self.apart, self._bucket_masks(None), BETTER)
        if self.bucket is None:
            return self.counts.all_better[None]
        return self.counts.count(self._bucket_masks(None), BETTER)[0]

    def _inside(
        self, members: Memberships, masks: Sequence[Array | None], side: bool
    ) -> Array:
        """Return the counts of rows with rows of their group, (masks, 2, n)."""
        masks = [None if mask is None else mask[members.rows] for mask in masks]
        counts = np.empty((len(masks), 2, self.ranking.n_rows))
        counts[..., members.rows] = self.counts.within(members).count(masks, side)[0]
        return counts


@dataclass(frozen=True)
class CrossPairs(OutcomePairs):
    """Pairs of a member and another item, of unlike outcomes, by bucket of the better.

    Value: the member is ranked above. That is so where the member is better and wins
    the pair, or where the item of the rest is better and does not win it.
    """

    n_sides = 1

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, 2, B)."""
        won, number, lost, other = super().cell_sums(members).swapaxes(0, 1)
        return np.stack([won + (other - lost), number + other], axis=1)

    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the group's pairs, shape (2, B, n)."""
        won, number, lost, other = super().item_sums(group)
        return np.stack([won + (other - lost), number + other])


@dataclass(frozen=True)
class ScorePairs(Pairs):
    """Pairs (i, j), i in the group and j outside it; value: i is ranked above j."""

    ranking: Ranking
    groups: Groups
    #: Leave out pairs of equal scores, which otherwise have value one half.
    strict: bool = False
    item_weight: Array | None = None  # a pair counts the product of its items'

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, 2, 1).

        They are all pairs of members, minus those between two members.
        """
        of_rows, weight = self._around_all.take(members.rows, axis=1), self.item_weight
        weight = None if weight is None else weight[members.rows]
        bounds = bounds_around(members.ranking(self.ranking))
        columns = self._columns(of_rows - sums_between(weight, *bounds))
        return members.sums(times(columns, weight)).T[..., None]

    @cached_property
    def _bounds(self) -> tuple[Array, ...]:
        return bounds_around(self.ranking)

    @cached_property
    def _around_all(self) -> Array:
        """Weights of all rows above, level with and below each row, shape (3, n)."""
        return np.stack(sums_between(self.item_weight, *self._bounds))

    @property
    def counts_of_rows(self) -> Array:
        """Numbers of pairs of rows with any other row, alike for both sides, (2, n)."""
        weight = 1.0 if self.item_weight is None else self.item_weight
        return np.stack([(self._around_all.sum(axis=0) - weight) * weight] * 2)

    def _columns(self, partners: Array) -> Array:
        """Return value and number, (2, k), from partners above, level and below."""
        above, level, below = partners
        if self.strict:
            return np.stack([below, above + below])
        return np.stack([below + level / 2, above + level + below])

    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the group's pairs, shape (2, 1, n)."""
        member = self.groups.mask(group)
        members = np.stack(sums_between(times(member, self.item_weight), *self._bounds))
        # The partners of a member are all others, and those of another row the members.
        partners, own = members[::-1], np.flatnonzero(member)
        of_own = self._around_all.take(own, axis=1) - members.take(own, axis=1)
        partners[:, own] = of_own
        return times(self._columns(partners), self.item_weight)[:, None]
