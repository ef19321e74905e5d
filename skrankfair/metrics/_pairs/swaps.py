"""Kernels that sum visits to unfairly placed items without writing a pair down.

In an unfavourable pair (i, j) item i has the larger outcome and is ranked below j; it
weighs as much as j is visited. For each j the better items below it are counted, level
by level of the outcome (`outcome_levels`), by cumulative sums over the rows of a
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
from .outcome_levels import Level, outcome_codes, outcome_levels
from .prefix_sums import exclusive_cumsum

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
            _cell_sums(_QueryBlock(part, y[rows], visits, tie_cost), groups.take(rows))
            for rows, _, part in ranking.blocks()
        ]
        return QuerySums.joined(parts)
    mirrored = n_groups == 2 and not groups.overlapping
    table = np.zeros((ranking.n_queries, n_groups, 6))
    for rows, queries, part in ranking.blocks():
        members = groups.take(rows)
        masks = [members.mask(g) for g in range(1 if mirrored else n_groups)]
        block = _QueryBlock(part, y[rows], visits, tie_cost)
        numerators = block.numerators(masks)
        for group, mask in enumerate(masks):
            columns = table[queries, group]
            columns[:, [0, 2]] = numerators[group]
            columns[:, [1, 3]], columns[:, 4:] = block.normalisers(mask)
    if mirrored:
        # With two groups the rest of one is the other.
        table[:, 1] = table[:, 0][:, [2, 3, 0, 1, 5, 4]]
    return QuerySums.of_all(table)


def _cell_sums(block: _QueryBlock, groups: Groups) -> QuerySums:
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
    every = _Lists(ranking, block.codes)
    visits = ranking.tie_means(block.visits[ranking.position()])
    tied = block.tied_visits() if ranking.has_ties else None
    better = every.as_better(visits, tied, block.tie_cost)[rows]
    worse = every.as_worse(visits, tied, block.tie_cost)[rows]
    # Of all rows of the query, less those of the cell: smaller, equal, larger outcomes.
    smaller, equal, larger = (count[rows] for count in every.counts)
    equal -= 1  # the row itself
    place = np.zeros(rows.size, dtype=np.int64)
    some, several = members.in_company()
    if some.size:
        at, inner = several.rows, several.ranking(ranking)
        own = _Lists(inner, outcome_codes(block.y[at], inner))
        tied = None if tied is None else tied[at]
        within = own.as_better(visits[at], tied, block.tie_cost)
        better[some] -= within
        worse[some] -= within
        for count, inside in zip((smaller, equal, larger), own.counts, strict=True):
            count[some] -= inside
        equal[some] += 1
        place[some] = own.place
    out[:, 0], out[:, 2] = members.sums(better), members.sums(worse)
    cumulated = np.concatenate(([0.0], np.cumsum(block.visits)))
    largest = (1 - block.tie_cost) * cumulated[smaller]
    largest += block.tie_cost * cumulated[smaller + equal]
    out[:, 1] = members.sums(largest)
    # The worst ranking has the members j in increasing order of their outcomes.
    cost = (larger + block.tie_cost * equal) * block.visits[place]
    out[:, 3] = members.sums(cost)
    both = equal if block.tie_cost > 0 else 0
    out[:, 4], out[:, 5] = members.sums(smaller + both), members.sums(larger + both)
    return QuerySums.of_cells(members.cells, out)


@dataclass(frozen=True)
class _Lists:
    """Lists of ranked rows, and the codes of their outcomes."""

    ranking: Ranking
    codes: Array

    def as_better(self, visits: Array, tied: Array | None, tie_cost: float) -> Array:
        """Return Σ visits over the unfavourable pairs whose better item is the row.

        `visits` are those of each row, and `tied` those of a pair of its tied block.
        """
        total = np.zeros(self.ranking.n_rows)
        for level in outcome_levels(self.ranking, self.codes, tie_cost > 0):
            rows, low, high, cost = _sides(level, total.size, tie_cost)
            before = np.zeros(total.size + 1)
            np.cumsum(visits[rows] * low, out=before[1:])
            at = np.flatnonzero(high)
            first = at if level.bounds is None else level.bounds[0][at]
            value = before[first] - before[level.starts[:-1]][level.block[at]]
            place = at if isinstance(rows, slice) else rows[at]
            if tied is not None:
                value += tied[place] * _beside(level, low, at)
            total[place] += cost * value
        return total

    def as_worse(self, visits: Array, tied: Array | None, tie_cost: float) -> Array:
        """Return the same of those whose worse item is the row."""
        total = np.zeros(self.ranking.n_rows)
        for level in outcome_levels(self.ranking, self.codes, tie_cost > 0):
            rows, low, high, cost = _sides(level, total.size, tie_cost)
            number = exclusive_cumsum(high)
            at = np.flatnonzero(low)
            last = at + 1 if level.bounds is None else level.bounds[1][at]
            place = at if isinstance(rows, slice) else rows[at]
            below = number[level.starts[1:]][level.block[at]] - number[last]
            value = visits[place] * below
            if tied is not None:
                value += tied[place] * _beside(level, high, at)
            total[place] += cost * value
        return total

    @cached_property
    def _by_outcome(self) -> Array:
        """The rows of each list by increasing outcome."""
        ranking, levels = self.ranking, int(self.codes.max(initial=0)) + 1
        return stable_order(ranking.query.astype(np.int64) * levels + self.codes)

    @cached_property
    def place(self) -> Array:
        """The place of each row in its list, by increasing outcome, from 0."""
        place = np.empty_like(self._by_outcome)
        place[self._by_outcome] = self.ranking.position()
        return place

    @cached_property
    def counts(self) -> tuple[Array, Array, Array]:
        """How many rows of the list have a smaller, an equal, a larger outcome."""
        ranking, lengths = self.ranking, self.ranking.lengths
        levels = int(self.codes.max(initial=0)) + 1
        if levels * ranking.n_queries <= 4 * ranking.n_rows:
            key = ranking.query.astype(np.int64) * levels + self.codes
            number = np.bincount(key, minlength=levels * ranking.n_queries)
            reached = np.cumsum(number.reshape(-1, levels), axis=1).ravel()
            equal, up_to = number[key], reached[key]
        else:
            order = self._by_outcome
            query, code = ranking.query[order], self.codes[order]
            new = np.ones(order.size, dtype=bool)
            new[1:] = (query[1:] != query[:-1]) | (code[1:] != code[:-1])
            first = np.flatnonzero(new)
            run, ends = np.cumsum(new) - 1, np.append(first[1:], order.size)
            equal, up_to = np.empty_like(order), np.empty_like(order)
            equal[order] = (ends - first)[run]
            up_to[order] = ends[run] - ranking.starts[:-1][query]
        return up_to - equal, equal, np.repeat(lengths, lengths) - up_to


def _sides(
    level: Level, n_rows: int, tie_cost: float
) -> tuple[Array | slice, Array, Array, float]:
    """Return the rows of a level, which are worse and better, and what a pair counts.

    Pairs of equal outcomes have every row on both sides.
    """
    if level.bit is None:
        every = np.ones(n_rows, dtype=bool)
        return level.rows, every, every, tie_cost
    return level.rows, ~level.bit, level.bit, 1.0


def _beside(level: Level, sought: Array, at: Array) -> Array:
    """Return how many rows of the other side are tied with each of these."""
    if level.bounds is None:
        return np.zeros(at.size, dtype=np.int64)
    number = exclusive_cumsum(sought)
    first, last = (bound[at] for bound in level.bounds)
    return number[last] - number[first] - sought[at]


@dataclass(frozen=True)
class _QueryBlock:
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
