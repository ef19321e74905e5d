"""Counts of better and worse outcomes in the same query, above and below each row.

Kernels that sum over the pairs of a query without writing a pair down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._inputs.ranking import Ranking
from ..._inputs.validation import Array
from .levels import Level, outcome_levels
from .prefix_sums import count_dtype, exclusive_cumsum


@dataclass(frozen=True)
class PairCounts:
    """Sums over partners, for every ranked row.

    ``half`` is twice the value (a score tie counts one half), so all are integers
    unless items have weights.
    """

    half: Array
    count: Array

    def times(self, item_weight: Array | None) -> PairCounts:
        """Return the sums with the weights of the rows themselves."""
        if item_weight is None:
            return self
        return PairCounts(self.half * item_weight, self.count * item_weight)


@dataclass(frozen=True)
class OutcomeCounts:
    """Counts of better and worse outcomes in the same query, above and below."""

    ranking: Ranking
    #: Shape (n,). Small integers in the order of the outcomes within each query.
    codes: Array
    #: Shape (n,) or None. A pair counts the product of the weights of its items.
    item_weight: Array | None = None

    @cached_property
    def all_worse(self) -> PairCounts:
        """Counts of all worse partners of each row."""
        return self.count([None], focal=True)[0]

    def count(self, masks: Sequence[Array | None], focal: bool) -> list[PairCounts]:
        """Count worse partners in each mask, or (not `focal`) better rows in it."""
        n, weight = self.ranking.n_rows, self.item_weight
        dtype: type = count_dtype(n) if weight is None else float
        out = [PairCounts(np.zeros(n, dtype), np.zeros(n, dtype)) for _ in masks]
        for level in outcome_levels(self.ranking, self.codes):
            if level.bit is not None:
                _add_level(level, level.bit, masks, weight, out, focal)
        return [counts.times(weight) for counts in out]


def _add_level(
    level: Level,
    bit: Array,
    masks: Sequence[Array | None],
    weight: Array | None,
    out: Sequence[PairCounts],
    focal: bool,
) -> None:
    """Add the pairs that are decided at one level to the counts."""
    at = np.flatnonzero(bit if focal else ~bit)
    if at.size in (0, bit.size):
        return
    sought = ~bit if focal else bit
    one_block = level.starts.size == 2
    block, rows = level.block[at], level.rows
    weight = None if weight is None else weight[rows]
    target = at if isinstance(rows, slice) else rows[at]
    if level.bounds is None:
        first = last = at  # the row itself is not sought
    else:
        first, last = (bound[at] for bound in level.bounds)
    for mask, counts in zip(masks, out, strict=True):
        there = sought if mask is None else sought & mask[rows]
        before = exclusive_cumsum(there, weight)
        edges = before[level.starts]
        begin, end = edges[:-1], edges[1:]
        begin, end = (begin, end) if one_block else (begin[block], end[block])
        low = before[first]
        high = low if last is first else before[last]
        # Partners after the row, or focal rows before it.
        half = 2 * end - (low + high) if focal else (low + high) - 2 * begin
        counts.half[target] += half
        counts.count[target] += end - begin
