"""Kernels that sum visits to unfairly placed items without writing a pair down.

In an unfavourable pair (i, j) item i has the larger outcome and is ranked below j; it
weighs as much as j is visited. For each j the better items below it are counted, level
by level of the outcome (`_pairs.outcome_levels`), by cumulative sums over the rows of a
block. Two counts are in one integer: those in the group and those outside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._inputs import cells as limits
from ..._inputs.cells import Memberships
from ..._inputs.ranking import Ranking, stable_order
from ..._inputs.validation import Array, Groups
from .cluster_rows import QuerySums
from .outcome_pairs import Level, outcome_codes, outcome_levels

_BITS = 32
_ONE_OUTSIDE = 1 << _BITS
#: Rows that are counted at a time: a long list is one block.
_PART = 1 << 17


def swap_sums(
    ranking: Ranking, y: Array, groups: Groups, visits: Array, tie_cost: float
) -> QuerySums:
    """Return the sums of queries and groups, six of each.

    Of the pairs (i in the group, j outside) the numerator and the normaliser, then
    those of (i outside, j in the group), then the number of pairs of both kinds. Rows
    are in ranked order; `visits`, the weights of the positions, do not increase, and
    `tie_cost` is what a pair of equal outcomes counts.
    """
    n_groups = len(groups)
    if n_groups > limits.FEW_GROUPS:
        parts = [
            _cell_sums(_Block(part, y[rows], visits, tie_cost), groups.take(rows))
            for rows, _, part in ranking.blocks()
        ]
        return QuerySums.joined(parts)
    mirrored = n_groups == 2 and not groups.overlapping
    table = np.zeros((ranking.n_queries, n_groups, 6))
    for rows, queries, part in ranking.blocks():
        members = groups.take(rows)
        masks = [members.mask(g) for g in range(1 if mirrored else n_groups)]
        block = _Block(part, y[rows], visits, tie_cost)
        numerators = block.numerators(masks)
        for group, mask in enumerate(masks):
            columns = table[queries, group]
            columns[:, [0, 2]] = numerators[group]
            columns[:, [1, 3]], columns[:, 4:] = block.normalisers(mask)
    if mirrored:
        # With two groups the rest of one is the other.
        table[:, 1] = table[:, 0][:, [2, 3, 0, 1, 5, 4]]
    return QuerySums.of_all(table)


def _cell_sums(block: _Block, groups: Groups) -> QuerySums:
    """Return the sums of all groups at once, by the cells of queries and groups.

    What has the better item in a group, or the worse one, over all rows of the query,
    less what has both: the same sums of each cell as a list of its own.
    """
    ranking = block.ranking
    members = Memberships.of(ranking, groups)
    rows = members.rows
    out = np.zeros((members.sizes.size, 6))
    if not rows.size:
        return QuerySums.of_cells(members.cells, out)
    visits = ranking.tie_means(block.visits[ranking.position()])
    tied = block.tied_visits() if ranking.has_ties else np.zeros(ranking.n_rows)
    better, worse = _visits_by_row(ranking, block.codes, visits, tied, block.tie_cost)
    inner = members.ranking(ranking)
    codes = outcome_codes(block.y[rows], inner)
    inside = members.sums(
        _visits_by_row(inner, codes, visits[rows], tied[rows], block.tie_cost)[0]
    )
    out[:, 0] = members.sums_of_rows(better) - inside
    out[:, 2] = members.sums_of_rows(worse) - inside
    # Of all rows of the query, less those of the cell: smaller, equal, larger outcomes.
    counts = [
        every[rows] - own
        for every, own in zip(
            _outcome_counts(ranking, block.codes),
            _outcome_counts(inner, codes),
            strict=True,
        )
    ]
    smaller, equal, larger = counts
    cumulated = np.concatenate(([0.0], np.cumsum(block.visits)))
    largest = (1 - block.tie_cost) * cumulated[smaller]
    largest += block.tie_cost * cumulated[smaller + equal]
    out[:, 1] = members.sums(largest)
    # The worst ranking has the members j in increasing order of their outcomes.
    place = _place_by_outcome(inner, codes)
    cost = (larger + block.tie_cost * equal) * block.visits[place]
    out[:, 3] = members.sums(cost)
    both = equal if block.tie_cost > 0 else 0
    out[:, 4], out[:, 5] = members.sums(smaller + both), members.sums(larger + both)
    return QuerySums.of_cells(members.cells, out)


def _visits_by_row(
    ranking: Ranking, codes: Array, visits: Array, tied: Array, tie_cost: float
) -> tuple[Array, Array]:
    """Return Σ visits over unfavourable pairs of each row, as the better and the worse.

    `visits` are those of each row, and `tied` those of a pair of its tied block.
    """
    as_better, as_worse = np.zeros(ranking.n_rows), np.zeros(ranking.n_rows)
    for level in outcome_levels(ranking, codes, tie_cost > 0):
        rows, cost = level.rows, tie_cost if level.bit is None else 1.0
        high = np.ones(ranking.n_rows, dtype=bool) if level.bit is None else level.bit
        low = high if level.bit is None else ~high
        at = np.arange(ranking.n_rows)
        first, last = (at, at + 1) if level.bounds is None else level.bounds
        before = np.zeros(at.size + 1)
        np.cumsum(visits[rows] * low, out=before[1:])
        above = before[first] - before[level.starts[:-1]][level.block]
        number = np.concatenate(([0], np.cumsum(low)))
        level_with = number[last] - number[first] - (low & high)
        as_better[rows] += cost * high * (above + tied[rows] * level_with)
        number = np.concatenate(([0], np.cumsum(high)))
        below = number[level.starts[1:]][level.block] - number[last]
        level_with = number[last] - number[first] - (low & high)
        value = visits[rows] * below + tied[rows] * level_with
        as_worse[rows] += cost * low * value
    return as_better, as_worse


def _outcome_counts(ranking: Ranking, codes: Array) -> tuple[Array, Array, Array]:
    """Return how many rows of the query have a smaller, an equal, a larger outcome."""
    place = _place_by_outcome(ranking, codes)
    order = np.empty_like(place)
    start = np.repeat(ranking.starts[:-1], ranking.lengths)
    order[start + place] = np.arange(place.size)
    query, code = ranking.query[order], codes[order]
    new = np.ones(order.size, dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (code[1:] != code[:-1])
    first = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    size = np.diff(np.append(first, order.size))[run]
    smaller, equal = np.empty_like(place), np.empty_like(place)
    smaller[order] = first[run] - start[order]
    equal[order] = size
    return smaller, equal, np.repeat(ranking.lengths, ranking.lengths) - smaller - equal


def _place_by_outcome(ranking: Ranking, codes: Array) -> Array:
    """Return the place of each row in its query, by increasing outcome, from 0."""
    levels = int(codes.max()) + 1
    order = stable_order(ranking.query.astype(np.int64) * levels + codes)
    place = np.empty_like(order)
    place[order] = ranking.position()
    return place


@dataclass(frozen=True)
class _Block:
    """Some queries: their rows in ranked order, and what a position is worth."""

    ranking: Ranking
    y: Array
    visits: Array
    tie_cost: float

    @cached_property
    def codes(self) -> Array:
        """Outcome codes of the rows."""
        return outcome_codes(self.y, self.ranking)

    def tied_visits(self) -> Array:
        """Return the expected visits to j while i is below it, both of a tied block.

        Over random orders of the m rows of the block, ``Σ_k F(k) (end - 1 - k)`` of the
        ``m (m - 1)`` places of a pair.
        """
        ranking = self.ranking
        first, last = ranking.tie_bounds()
        below = last - np.arange(ranking.n_rows) - 1
        total = np.bincount(
            ranking.tie, weights=self.visits[ranking.position()] * below
        )[ranking.tie]
        size = (last - first).astype(float)
        return np.divide(total, size * (size - 1), out=total, where=size > 1)

    def numerators(self, masks: Sequence[Array]) -> Array:
        """Return Σ visits over unfavourable pairs, shape (n_masks, Q, 2).

        First of those whose better item is in the mask, then of those outside.
        """
        ranking = self.ranking
        visits = ranking.tie_means(self.visits[ranking.position()])
        tied = self.tied_visits() if ranking.has_ties else None
        totals = np.zeros((len(masks), 2 * ranking.n_queries))
        keys = [2 * ranking.query + mask for mask in masks]
        equal = self.tie_cost > 0
        for level in outcome_levels(ranking, self.codes, equal):
            cost = self.tie_cost if level.bit is None else 1.0
            if level.bit is None:
                at = np.arange(ranking.n_rows)
            else:
                at = np.flatnonzero(~level.bit)
            for total, key, mask in zip(totals, keys, masks, strict=True):
                before = _cumulated(level, mask)
                for start in range(0, at.size, _PART):
                    some = at[start : start + _PART]
                    rows = some if isinstance(level.rows, slice) else level.rows[some]
                    below, same = _better(level, before, some, mask[rows])
                    value = visits[rows] * below
                    if tied is not None:
                        value += tied[rows] * same
                    sums = np.bincount(key[rows], weights=value, minlength=total.size)
                    total += sums if cost == 1 else cost * sums
        return totals.reshape(len(masks), -1, 2)

    @cached_property
    def _cells(self) -> tuple[Array, Array]:
        """Cells of equal outcomes by query and increasing outcome.

        The cell of each row, and the first cell of each query, and one past the last.
        """
        ranking = self.ranking
        levels = np.maximum.reduceat(self.codes, ranking.starts[:-1])
        starts = np.zeros(ranking.n_queries + 1, dtype=np.int64)
        np.cumsum(levels.astype(np.int64) + 1, out=starts[1:])
        cell = starts[ranking.query] + self.codes
        if starts[-1] > 4 * ranking.n_rows:
            present, cell = np.unique(cell, return_inverse=True)
            starts = np.searchsorted(present, starts)
        return cell, starts

    def normalisers(self, mask: Array) -> tuple[Array, Array]:
        """Return the largest numerators that a ranking could have, and the pairs.

        Each of shape (Q, 2), columns as of `numerators`. The worst ranking has the
        items j above all i, and first those with the most better items i: since these
        are the more the smaller the outcome of j, in increasing order of the outcome.
        """
        cell, starts = self._cells
        cumulated = np.concatenate(([0.0], np.cumsum(self.visits)))
        size = int(starts[-1])
        inside = np.bincount(cell[mask], minlength=size)
        outside = np.bincount(cell, minlength=size) - inside
        query = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        worst = np.empty((starts.size - 1, 2))
        pairs = np.empty((starts.size - 1, 2))
        for column, (better, worse) in enumerate(
            ((inside, outside), (outside, inside))
        ):
            ends = np.cumsum(better)[starts[1:] - 1]
            above = ends[query] - np.cumsum(better)
            past = np.cumsum(worse)
            past -= np.concatenate(([0], past[starts[1:-1] - 1]))[query]
            cost = above + self.tie_cost * better
            cost *= cumulated[past] - cumulated[past - worse]
            worst[:, column] = np.add.reduceat(cost, starts[:-1])
            if self.tie_cost > 0:
                above += better
            pairs[:, column] = np.add.reduceat(above * worse, starts[:-1])
        return worst, pairs


def _cumulated(level: Level, mask: Array) -> Array:
    """Return the packed count of better items before each row of a level."""
    before = np.zeros(mask.size + 1, dtype=np.int64)
    better = before[1:]  # a view: a long list has no memory to spare
    better[...] = mask[level.rows]
    better *= 1 - _ONE_OUTSIDE
    better += _ONE_OUTSIDE
    if level.bit is not None:
        better *= level.bit
    np.cumsum(better, out=better)
    return before


def _better(
    level: Level, before: Array, at: Array, in_group: Array
) -> tuple[Array, Array]:
    """Count the better items of the other side, in later tied blocks and in the same.

    `at` are the rows of the worse items, as numbered in the level, `in_group` says
    which are in the group: for those the better items outside it are counted.
    `before` is from `_cumulated`.
    """
    shift = in_group * np.int8(_BITS)
    ends = before[level.starts[1:]][level.block[at]]
    if level.bounds is None:
        ends -= before[at]
        return _count(ends, shift), np.zeros(0, dtype=np.int64)
    first, last = (before[bound[at]] for bound in level.bounds)
    return _count(ends - last, shift), _count(last - first, shift)


def _count(packed: Array, shift: Array) -> Array:
    """Return one of the two counts of each packed one, in its place."""
    packed >>= shift
    packed &= _ONE_OUTSIDE - 1
    return packed
