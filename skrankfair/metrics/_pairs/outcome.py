"""Pairs of a better and a worse outcome; value: the better is ranked above."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._inputs.cells import Memberships
from ..._inputs.groups import Groups
from ..._inputs.ranking import Ranking
from ..._inputs.validation import Array
from .counts import OutcomeCounts, PairCounts
from .pairs import REST, Pairs


@dataclass(frozen=True)
class OutcomePairs(Pairs):
    """Pairs (i, j) of a query, i the better one; value: i is ranked above j."""

    ranking: Ranking
    groups: Groups
    counts: OutcomeCounts
    #: {"all", "intra", "inter"}. Which partners count for a focal item of a group: all,
    #: those of the group, or those outside it.
    comparison: str
    bucket: Array | None = None  # shape (n,) or None: stratum of the focal item
    n_buckets: int = 1
    n_sides = 2

    @property
    def has_shared(self) -> bool:
        """Whether all pairs are of a group or of its rest: not those across."""
        return self.comparison != "inter"

    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, 4, B).

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
                inner = OutcomeCounts(
                    ranking, counts.codes[several.rows], weight
                ).all_worse
                inside = by_cell(inner, slice(None), key[some])
            partner = np.stack(
                [
                    [members.sums_of_rows(c.half) / 2, members.sums_of_rows(c.count)]
                    for c in self._all_better
                ],
                axis=2,
            )
            if self.comparison == "intra":
                own, rest = inside, inside - own - partner
            else:
                own, rest = own - inside, partner - inside
        out = np.concatenate([own, rest]).transpose(1, 0, 2)
        if self.has_shared:
            out[:, REST] += self.query_sums()[members.cells.query]
        return out

    def query_sums(self) -> Array:
        """Return value and number of all pairs of each query, shape (Q, 2 or 0, B)."""
        if not self.has_shared:
            return super().query_sums()
        n_buckets, every = self.n_buckets, self.counts.all_worse
        key = self.ranking.query.astype(np.int64) * n_buckets
        if self.bucket is not None:
            key += self.bucket
        size = self.ranking.n_queries * n_buckets
        columns = [
            np.bincount(key, weights=column, minlength=size).reshape(-1, n_buckets)
            for column in (every.half / 2, every.count)
        ]
        return np.stack(columns, axis=1)

    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the pairs of group and rest, (4, B, n)."""
        member, every = self.groups.mask(group), self.counts.all_worse
        better = self.counts.count(self._strata(member), focal=False)
        worse = every
        if self.comparison != "all":
            (worse,) = self.counts.count([member], focal=True)
        out = np.empty((4, self.n_buckets, member.size))
        for bucket, (inside, outside) in enumerate(
            zip(better, self._all_better, strict=True)
        ):
            here = 1 if self.bucket is None else self.bucket == bucket
            for block, name in enumerate(("half", "count")):
                # Of a focal row its partners, and those in the group; of a partner its
                # focal rows, and those in the group.
                partners, own_partners = (
                    getattr(c, name) * here for c in (every, worse)
                )
                focal, own_focal = getattr(outside, name), getattr(inside, name)
                if self.comparison == "all":
                    own = own_focal + partners * member
                    rest = focal - own_focal + partners * ~member
                elif self.comparison == "inter":
                    own = np.where(member, partners - own_partners, own_focal)
                    rest = np.where(member, focal - own_focal, own_partners)
                else:
                    own = (own_partners + own_focal) * member
                    rest = partners - own_partners + focal - own_focal
                    rest = rest * ~member
                unit = 1.0 if block else 0.5  # of half a pair
                np.multiply(own, unit, out=out[block, bucket])
                np.multiply(rest, unit, out=out[2 + block, bucket])
        return out

    def shared_item_sums(self) -> Array:
        """Return the sums over all pairs that each item is in, shape (n, 2 or 0, B)."""
        if not self.has_shared:
            return super().shared_item_sums()
        every, out = (
            self.counts.all_worse,
            np.empty((2, self.n_buckets, self.ranking.n_rows)),
        )
        for bucket, counts in enumerate(self._all_better):
            here = 1 if self.bucket is None else self.bucket == bucket
            out[0, bucket] = (every.half * here + counts.half) / 2
            out[1, bucket] = every.count * here + counts.count
        return out.transpose(2, 0, 1)

    def _strata(self, mask: Array | None) -> list[Array | None]:
        """Return the rows of a mask in each stratum of focal items."""
        if self.bucket is None:
            return [mask]
        strata = [self.bucket == bucket for bucket in range(self.n_buckets)]
        return [s if mask is None else s & mask for s in strata]

    @cached_property
    def _all_better(self) -> list[PairCounts]:
        """Counts of all better rows of each partner, by the stratum of these."""
        return self.counts.count(self._strata(None), focal=False)
