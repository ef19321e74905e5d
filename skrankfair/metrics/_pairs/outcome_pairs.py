"""Pairs of a better and a worse outcome; value: the better is ranked above.

Kernels that sum over the pairs of a query without writing a pair down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from ..._inputs import cells as limits
from ..._inputs.cells import Memberships
from ..._inputs.validation import Array, Groups
from .member_gaps import Gaps, ListMembers, of_few_grades
from .outcome_counts import OutcomeCounts, PairCounts
from .sources import OWN, REST, ColumnLayout, FocalSums

#: Groups that are counted in one sweep over the levels.
_TOGETHER = 16


@dataclass(frozen=True)
class OutcomeMoments:
    """Totals of value, value² and 1 over pairs, by class of both items.

    Each has shape (n_classes, n_buckets, n_classes): the class and bucket of the focal
    item, and the class of its partner.
    """

    value: Array
    square: Array
    count: Array


@dataclass(frozen=True)
class OutcomePairs:
    """Pairs (i, j) of a query, i the better one; value: i is ranked above j."""

    counts: OutcomeCounts
    groups: Groups
    #: {"all", "intra", "inter"}. Which partners count for a focal item of a group: all,
    #: those of the group, or those outside it.
    comparison: str
    bucket: Array | None = None  # shape (n,) or None: stratum of the focal item
    n_buckets: int = 1

    @property
    def layout(self) -> ColumnLayout:
        """The columns of a group and of its rest, which all pairs are in or none."""
        shared_weight = 0.0 if self.comparison == "inter" else 1.0
        return ColumnLayout(2, self.n_buckets, 2, shared_weight)

    def total(self) -> FocalSums:
        """Return value and number of all pairs for each focal row."""
        every = self.counts.all_worse
        return FocalSums(None, every.half / 2, every.count)

    def focal(self, group: int) -> FocalSums:
        """Return value and number of the pairs of each focal row.

        For rows of the group these are the group's pairs; for the others, the rest's.
        """
        member = self.groups.mask(group)
        if self.comparison == "all":
            return replace(self.total(), of_rest=~member)
        if len(self.groups) > limits.FEW_GROUPS:
            every, (inside,) = self.counts.all_worse, self._inside(group, focal=True)
        else:
            every, inside = self.counts.worse(group, self.groups)
        take_inside = member if self.comparison == "intra" else ~member
        half = np.where(take_inside, inside.half, every.half - inside.half)
        count = np.where(take_inside, inside.count, every.count - inside.count)
        return FocalSums(None, half / 2, count, of_rest=~member)

    def parts(self, group: int) -> Iterable[FocalSums]:
        """Return the sums of all rows, of the group and of the rest."""
        return (self.focal(group),)

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums of `parts` of all groups at once, shape (E, 4, B).

        A pair is in the group's own sums or not, as are both its items: what has the
        focal item in the group, the partner, or both makes up all four cases.
        """
        rows, n_buckets = members.rows, self.n_buckets
        shape = members.sizes.size, n_buckets
        key, size = members.cell, shape[0] * n_buckets
        if self.bucket is not None:
            key = key * n_buckets + self.bucket[rows]

        def by_cell(counts: PairCounts, of: Array | slice, key: Array) -> Array:
            half = np.bincount(key, weights=counts.half[of], minlength=size)
            number = np.bincount(key, weights=counts.count[of], minlength=size)
            return np.stack([half / 2, number]).reshape(2, *shape)

        counts = self.counts
        own = by_cell(counts.all_worse, rows, key)
        rest = -own
        if self.comparison != "all" and rows.size:
            inside, (some, several) = np.zeros((2, *shape)), members.in_company()
            if some.size:
                ranking = several.ranking(counts.ranking)
                weight = counts.item_weight
                weight = None if weight is None else weight[several.rows]
                inner = OutcomeCounts(ranking, counts.y[several.rows], weight).all_worse
                inside = by_cell(inner, slice(None), key[some])
            partner = np.stack(
                [
                    [members.sums_of_rows(c.half) / 2, members.sums_of_rows(c.count)]
                    for c in self._all_partner
                ],
                axis=2,
            )
            if self.comparison == "intra":
                own, rest = inside, inside - own - partner
            else:
                own, rest = own - inside, partner - inside
        out = np.concatenate([own, rest]).transpose(1, 0, 2)
        if self.layout.shared_weight:
            out[:, REST] += self._totals_by_query()[members.cells.query]
        return out

    @cached_property
    def _grades(self) -> Array | None:
        codes = self.counts.codes
        few = codes.dtype == np.uint8 and self.bucket is None
        return of_few_grades(codes) if few and self.counts.item_weight is None else None

    def grades(self) -> Array | None:
        """Return the grade of each outcome from 0; None if they are many."""
        return self._grades

    #: Columns in which items of one gap and grade differ: the shared ones.
    varying = slice(4, None)

    def values(self) -> Array:
        """Return the shared columns, of which the number is that of the grade."""
        shared = self.shared_rows()
        return shared.reshape(len(shared), -1)

    def columns_at(self, columns: Array, values: Array) -> Array:
        """Return the columns as they are."""
        return columns

    def of_list(self, members: Memberships) -> ListMembers:
        """Return what the members of all groups of one list have."""
        ranking, rows = self.counts.ranking, members.rows
        inner = OutcomeCounts(members.ranking(ranking), self.counts.y[rows])
        (worse,) = inner.count([None], True, ties=True)
        (better,) = inner.count([None], False)
        columns = self._member_columns(worse, better, rows).T
        products = self._list_products(worse, members)
        return ListMembers(ranking.tie_bounds(rows), columns, products)

    def _member_columns(
        self, worse: PairCounts, better: PairCounts, rows: Array
    ) -> Array:
        """Return the columns of memberships, shape (4, M), from counts in groups."""
        focal, partner = self.counts.all_worse, self._all_partner[0]
        out = np.empty((4, rows.size))
        for block, name in enumerate(("half", "count")):
            unit = 1.0 if block else 0.5  # of half a pair
            below, above = getattr(worse, name), getattr(better, name)
            all_below, all_above = getattr(focal, name), getattr(partner, name)
            if self.comparison == "inter":
                own, rest = all_below[rows] - below, all_above[rows] - above
            elif self.comparison == "intra":
                own, rest = below + above, -(all_below + all_above)[rows]
            else:
                own = above + all_below[rows]
                rest = -own
            out[block], out[block + 2] = unit * own, unit * rest
        return out

    def other_columns(self, grade: int, gaps: Gaps) -> Array:
        """Return the columns of rows of a grade that are in the gaps, shape (P, 4)."""
        codes = self.counts.codes if self._grades is None else self._grades
        own = codes[gaps.members.rows]
        better, worse = (own > grade).astype(float), (own < grade).astype(float)
        up = np.stack([gaps.sums(better / 2, better / 2), gaps.totals(better)])
        if self.comparison == "all":
            return np.concatenate([up, -up]).T
        number = gaps.totals(worse)
        down = np.stack([number - gaps.sums(worse / 2, worse / 2), number])
        if self.comparison == "inter":
            return np.concatenate([up, down]).T
        return np.concatenate([np.zeros_like(up), -(up + down)]).T

    def _list_products(self, both: PairCounts, members: Memberships) -> Array:
        """Return Σ x xᵀ over pairs of the own, rest and shared columns of each group.

        Of shape (G, C + D, C + D), in one list: the diagonal of `products`. `both` are
        the pairs within groups.
        """
        focal, partner = self.counts.all_worse, self._all_partner[0]
        rows = members.rows
        own, other = (_moments_of(part, members, rows) for part in (focal, partner))
        same = _moments_of(both, members, slice(None))
        shared = int(self.layout.shared_weight)
        total = np.array([[part.sum()] for part in _squares_of(focal)])
        out = np.zeros((3, 2 + shared, 2 + shared, members.sizes.size))
        if self.comparison == "inter":
            out[:, 0, 0], out[:, 1, 1] = own - same, other - same
        else:
            taken = own
            if self.comparison == "intra":
                own, taken = same, own + other - same
            out[:, 0, 0] = out[:, 0, 2] = out[:, 2, 0] = own
            out[:, 0, 1] = out[:, 1, 0] = -own
            out[:, 1, 1], out[:, 2, 2] = taken, total
            out[:, 1, 2] = out[:, 2, 1] = -taken
        kind = np.array([[0, 1], [1, 2]])
        blocks = out[kind].transpose(4, 2, 0, 3, 1)
        return blocks.reshape(len(blocks), 4 + 2 * shared, -1)

    def _totals_by_query(self) -> Array:
        """Return value and number of all pairs of each query, shape (Q, 2, B)."""
        ranking, n_buckets = self.counts.ranking, self.n_buckets
        key = ranking.query.astype(np.int64) * n_buckets
        if self.bucket is not None:
            key += self.bucket
        size, sums = ranking.n_queries * n_buckets, self.total()
        columns = [
            np.bincount(key, weights=column, minlength=size).reshape(-1, n_buckets)
            for column in sums.columns
        ]
        return np.stack(columns, axis=1)

    def fill(self, columns: Array, group: int, weight: Array | None) -> Array:
        """Set each item's sums; `products` needs nothing of it."""
        if self.bucket is None:
            self._fill_stratum(columns, group)
            return np.zeros(0)
        for block, values in enumerate(self.partner(group)):
            columns[:, block] = values
        sums, member = self.focal(group), self.groups.mask(group)
        for side, there in ((OWN, member), (REST, ~member)):
            self._add(columns[:, side], sums, there)
        return np.zeros(0)

    def _fill_stratum(self, columns: Array, group: int) -> None:
        """Set each item's sums as `fill` does, of one stratum: all at once."""
        member, every = self.groups.mask(group), self.counts.all_worse
        (better,), (all_better,) = self._inside(group, focal=False), self._all_partner
        if self.comparison != "all":
            if len(self.groups) > limits.FEW_GROUPS:
                (worse,) = self._inside(group, focal=True)
            else:
                worse = self.counts.worse(group, self.groups)[1]
        for block, name in enumerate(("half", "count")):
            total, partner = getattr(every, name), getattr(all_better, name)
            above = getattr(better, name)
            if self.comparison == "all":
                own = above + total * member
                rest = partner - above + total * ~member
            else:
                below = getattr(worse, name)
                own, rest = total - below, partner - above
                if self.comparison == "inter":
                    own, rest = (
                        np.where(member, own, above),
                        np.where(member, rest, below),
                    )
                else:
                    own, rest = (below + above) * member, (own + rest) * ~member
            unit = 1.0 if block else 0.5  # of half a pair
            for side, values in ((OWN, own), (REST, rest)):
                np.multiply(values, unit, out=columns[:, side][:, block, 0])

    def shared_rows(self) -> Array:
        """Return the sums over all pairs that each item is in, either side."""
        if not self.layout.shared_weight:
            return np.zeros((self.groups.n_rows, 0, self.n_buckets))
        shared = np.stack(self.total_partner(), axis=1).astype(float)
        self._add(shared, self.total())
        return shared

    def _add(self, columns: Array, sums: FocalSums, there: Array | None = None) -> None:
        """Add the sums of focal rows (that are there) in the buckets of the rows."""
        for block, values in enumerate(sums.columns):
            values = values if there is None else values * there
            if self.bucket is None:
                columns[:, block, 0] += values
            else:
                columns[np.arange(values.size), block, self.bucket] += values

    @cached_property
    def _chunks(self) -> dict[bool, tuple[int, list[list[PairCounts]]]]:
        return {}

    def _inside(self, group: int, *, focal: bool) -> list[PairCounts]:
        """Return the counts of partners, or of focal rows by stratum, in the group.

        Some groups are counted in one sweep, of which these are kept.
        """
        together = _TOGETHER if len(self.groups) > limits.FEW_GROUPS else 1
        chunk, first = self._chunks.get(focal), group - group % together
        if chunk is None or chunk[0] != first:
            members = [
                self.groups.mask(g)
                for g in range(first, min(first + together, len(self.groups)))
            ]
            masks = [[m] if focal else self._bucket_masks(m) for m in members]
            found = iter(self.counts.count([m for part in masks for m in part], focal))
            chunk = first, [[next(found) for _ in part] for part in masks]
            self._chunks[focal] = chunk
        return chunk[1][group - first]

    def _bucket_masks(self, mask: Array | None) -> list[Array | None]:
        if self.bucket is None:
            return [mask]
        masks: list[Array | None] = []
        for b in range(self.n_buckets):
            inside = self.bucket == b
            masks.append(inside if mask is None else inside & mask)
        return masks

    @cached_property
    def _all_partner(self) -> list[PairCounts]:
        return self.counts.count(self._bucket_masks(None), focal=False, ties=True)

    def total_partner(self) -> tuple[Array, Array]:
        """Return value and number of all pairs for each partner, shape (n, B)."""
        return (
            np.column_stack([c.half for c in self._all_partner]) / 2,
            np.column_stack([c.count for c in self._all_partner]),
        )

    def partner(self, group: int) -> tuple[Array, Array, Array, Array]:
        """Return sums over focal rows for each partner, shape (n, B) each.

        Value and number for pairs of the group, then for pairs of the rest.
        """
        member = self.groups.mask(group)
        inside = self._inside(group, focal=False)
        half = np.column_stack([c.half for c in inside]) / 2
        count = np.column_stack([c.count for c in inside])
        total_value, total_count = self.total_partner()
        own = rest = np.ones((member.size, 1), dtype=bool)
        if self.comparison == "intra":
            own, rest = member[:, None], ~member[:, None]
        elif self.comparison == "inter":
            own, rest = ~member[:, None], member[:, None]
        return (
            half * own,
            count * own,
            (total_value - half) * rest,
            (total_count - count) * rest,
        )

    def includes(self, focal: int, partner: int) -> bool:
        """Return whether a pair counts, given whether i and j are in the group."""
        if self.comparison == "all":
            return True
        return (focal == partner) == (self.comparison == "intra")

    def moments(self, classes: Array, weight: Array | None) -> OutcomeMoments:
        """Return totals over all pairs by class of both items (four classes)."""
        masks = [classes == c for c in range(4)]
        counts = self.counts.squared.count(masks, focal=True, ties=True)
        return class_moments(counts, classes, self.bucket, self.n_buckets, weight)

    def products(
        self, weight: Array | None, own: Sequence[Array] | None = None
    ) -> Array:
        """Return the products of own, rest and shared columns over outcome pairs."""
        groups, n_buckets = self.groups, self.n_buckets
        if len(groups) > limits.FEW_GROUPS and not groups.overlapping:
            return self._disjoint_products(weight)
        shared_weight = self.layout.shared_weight
        n_shared = 2 if shared_weight else 0
        n_groups = len(groups)
        size = 4 * n_groups + n_shared
        products = np.zeros((size, n_buckets, size, n_buckets))
        couples = list(combinations(range(n_groups), 2)) or [(0, 0)]
        for a, b in couples:
            classes = groups.mask(a) * 2 + groups.mask(b).astype(np.int64)
            moments = self.moments(classes, weight)
            columns = np.r_[4 * a : 4 * a + 4, 4 * b : 4 * b + 4, 4 * n_groups : size]
            block = np.zeros((columns.size, columns.size, n_buckets))
            for i in range(4):
                for j in range(4):
                    signs = [
                        sign
                        for bit in (1, 0)
                        for sign in self._signs(i >> bit & 1, j >> bit & 1)
                    ] + [1.0] * (n_shared // 2)
                    value, square, count = (
                        part[i, :, j]
                        for part in (moments.value, moments.square, moments.count)
                    )
                    one = np.array([[square, value], [value, count]])
                    block += np.kron(np.outer(signs, signs)[:, :, None], one)
            for bucket in range(n_buckets):
                products[np.ix_(columns, [bucket], columns, [bucket])] = block[
                    :, None, :, bucket, None
                ]
        return products.reshape(size * n_buckets, -1)

    def _disjoint_products(self, weight: Array | None) -> Array:
        """Return `products` of groups of which each row is of one, in one sweep.

        They come from the moments between two groups, since the groups of both items
        say which columns are added to.
        """
        n_groups, n_buckets = len(self.groups), self.n_buckets
        codes, parts = self.groups.values.astype(np.int64), []
        for start in range(0, n_groups, _TOGETHER):
            some = range(start, min(start + _TOGETHER, n_groups))
            masks = [codes == group for group in some]
            counts = self.counts.squared.count(masks, focal=True, ties=True)
            parts.append(
                class_moments(counts, codes, self.bucket, n_buckets, weight, n_groups)
            )
        value, square, count = (
            np.concatenate([getattr(part, name) for part in parts], axis=2)
            for name in ("value", "square", "count")
        )
        n_shared = 2 if self.layout.shared_weight else 0
        size = 4 * n_groups + n_shared
        products = np.zeros((size, n_buckets, size, n_buckets))
        for bucket in range(n_buckets):
            for i in range(2):
                for j in range(2):
                    kind = (square, value, count)[i + j][:, bucket]
                    products[i::2, bucket, j::2, bucket] = self._between(kind)
        return products.reshape(size * n_buckets, -1)

    def _between(self, moments: Array) -> Array:
        """Return sums over pairs by the sides of two groups, and the shared ones.

        `moments` are the sums over pairs by the groups of both items, shape (G, G).
        The result has own and rest of each group in turn, then what is shared.
        """
        n_groups = len(moments)
        own, same = moments.sum(axis=1), np.diag(moments).copy()
        either = own + moments.sum(axis=0) - same
        across = moments - np.diag(same)
        shared = int(self.layout.shared_weight)
        out = np.zeros((2 * n_groups + shared,) * 2)
        first, second = slice(0, 2 * n_groups, 2), slice(1, 2 * n_groups, 2)
        if self.comparison == "inter":
            out[first, first] = np.diag(own - same)
            out[second, second] = np.diag(either - own)
            out[first, second], out[second, first] = across, across.T
            return out
        # Less the shared ones, the rest are the pairs that a group takes away.
        taken, less = own, np.diag(own)
        if self.comparison == "intra":
            own, taken = same, either
            less = across + across.T + np.diag(either)
        out[first, first], out[second, second] = np.diag(own), less
        out[first, second] = out[second, first] = -np.diag(own)
        out[-1, first], out[-1, second], out[-1, -1] = own, -taken, moments.sum()
        out[:, -1] = out[-1]
        return out

    def _signs(self, focal: int, partner: int) -> tuple[float, float]:
        """Return how often a pair adds to a group's own columns and to the rest's."""
        counts = self.includes(focal, partner)
        own = float(counts and focal)
        rest = float(counts and not focal) - self.layout.shared_weight
        return own, rest


def _squares_of(counts: PairCounts) -> tuple[Array, Array, Array]:
    """Return the sums over partners of value², value and 1 of each row."""
    value = counts.half / 2
    square = value if counts.ties is None else value - counts.ties / 4
    return square, value, counts.count


def _moments_of(counts: PairCounts, members: Memberships, rows: Array | slice) -> Array:
    """Return the sums of `_squares_of` over these rows of each group, shape (3, G)."""
    return np.stack([members.sums(part[rows]) for part in _squares_of(counts)])


def class_moments(
    counts: Sequence[PairCounts],
    classes: Array,
    bucket: Array | None,
    n_buckets: int,
    weight: Array | None,
    n_classes: int = 4,
) -> OutcomeMoments:
    """Sum counts by the class and bucket of the focal row."""
    key = classes * n_buckets if bucket is None else classes * n_buckets + bucket
    shape = (n_classes, n_buckets, len(counts))
    out = OutcomeMoments(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    for partner, c in enumerate(counts):
        parts = zip((out.square, out.value, out.count), _squares_of(c), strict=True)
        for total, part in parts:
            part = part if weight is None else part * weight
            sums = np.bincount(key, weights=part, minlength=n_classes * n_buckets)
            total[:, :, partner] = sums.reshape(n_classes, n_buckets)
    return out
