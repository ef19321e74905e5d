"""Pairs of a member and another of the query; value: the member is ranked above."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._inputs.cells import Memberships
from ..._inputs.groups import Groups
from ..._inputs.ranking import Ranking
from ..._inputs.validation import Array
from .pairs import Pairs
from .prefix_sums import exclusive_cumsum, sum_between, times


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

    def _around(self, mask: Array | None) -> tuple[Array, Array, Array]:
        """Return how many of a mask are below, level with and above each row."""
        ranking = self.ranking
        mask = np.ones(ranking.n_rows, dtype=bool) if mask is None else mask
        before = exclusive_cumsum(mask, self.item_weight)
        first, last = self._bounds
        low, high, edges = before[first], before[last], before[ranking.starts]
        below = edges[1:][ranking.query] - high
        return below, high - low, low - edges[:-1][ranking.query]

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        return self.ranking.tie_bounds()

    @cached_property
    def _around_all(self) -> tuple[Array, Array, Array]:
        return self._around(None)

    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the group's pairs, shape (2, 1, n)."""
        member = self.groups.mask(group)
        below, level, above = self._around(member)
        all_below, all_level, all_above = self._around_all
        # Of members the partners are all others, and of others the members.
        won = np.where(member, all_below - below, above).astype(float)
        count = won + np.where(member, all_above - above, below)
        if not self.strict and self.ranking.has_ties:
            tied = np.where(member, all_level - level, level)
            won += tied / 2
            count += tied
        sums = np.stack([won, count])
        return times(sums, self.item_weight)[:, None]
