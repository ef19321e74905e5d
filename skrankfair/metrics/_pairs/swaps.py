"""Kernels that sum visits to unfairly placed items without writing a pair down.

In an unfavourable pair (i, j) item i has the larger outcome and is ranked below j; it
weighs as much as j is visited. For each j the better items below it are counted, level
by level of the outcome (`outcome_levels`), by cumulative sums over the rows of a
block. Two counts are in one integer: those in the group and those outside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._estimates.finalize import NOTHING
from ..._inputs.groups import Groups
from ..._inputs.ranking import Memberships, Ranking, stable_order
from ..._inputs.validation import Array
from .cluster_rows import QuerySums, exclusive_cumsum
from .pairwise import Level, outcome_codes, outcome_levels


def swap_sums(
    ranking: Ranking, y: Array, groups: Groups, visits: Array, tie_cost: float
) -> QuerySums:
    """Return the sums of queries and groups, six of each.

    Of the pairs (i in the group, j outside) the numerator and the normaliser, then
    those of (i outside, j in the group), then the number of pairs of both kinds. Rows
    are in ranked order; `visits`, the weights of the positions, do not increase, and
    `tie_cost` is what a pair of equal outcomes counts.
    """
    parts = [
        _block_sums(block, y[rows], groups.take(rows), visits, tie_cost)
        for rows, _, block in ranking.blocks()
    ]
    return QuerySums.joined(parts)


def _block_sums(
    ranking: Ranking, y: Array, groups: Groups, visits: Array, tie_cost: float
) -> QuerySums:
    """Return the sums of some queries, of all groups at once.

    What has the better item in a group, or the worse one, over all rows of the query,
    less what has both: the same sums of each cell as a list of its own.
    """
    members = Memberships.of(ranking, groups)
    rows, out = members.rows, np.zeros((members.sizes.size, 6))
    if not rows.size:
        return QuerySums.of_cells(members.cells, out)
    every = _Lists(ranking, outcome_codes(y, ranking))
    of_row = _Visits.of(ranking, visits)
    better, worse = np.zeros((2, ranking.n_rows))
    for level in outcome_levels(ranking, every.codes, tie_cost > 0):
        side = _Sides.of(level, ranking.n_rows, tie_cost)
        side.add_better(better, of_row)
        side.add_worse(worse, of_row)
    # Of all rows of the query, less those of the cell: smaller, equal, larger outcomes.
    smaller, equal, larger = (count[rows] for count in every.counts)
    equal -= 1  # the row itself
    # Of the cell alone: smaller and equal outcomes, and unfavourable pairs.
    lowest, alike = np.zeros(rows.size, dtype=np.int64), np.ones(rows.size, np.int64)
    within = np.zeros(rows.size)
    some, several = members.in_company()
    if some.size:
        at, inner = several.rows, several.ranking(ranking)
        inner_lists = _Lists(inner, every.codes[at])
        of_member, swaps = of_row.take(at), np.zeros(at.size)
        for level in outcome_levels(inner, inner_lists.codes, tie_cost > 0):
            _Sides.of(level, at.size, tie_cost).add_worse(swaps, of_member)
        within[some] = swaps
        for count, inside in zip(
            (smaller, equal, larger), inner_lists.counts, strict=True
        ):
            count[some] -= inside
        equal[some] += 1
        lowest[some], alike[some], _ = inner_lists.counts
    total = members.sums_of_rows(better)
    out[:, 0] = total - members.sums(within)
    out[out[:, 0] <= NOTHING * total, 0] = 0.0  # what rounding leaves
    out[:, 2] = members.sums(worse[rows] - within)
    start: Any = 0
    if ranking.shown is not None:
        visits, start = ranking.values_held(visits), ranking.starts[ranking.query[rows]]
    cumulated = np.concatenate(([0.0], np.cumsum(visits)))
    largest = (1 - tie_cost) * cumulated[start + smaller]
    largest += tie_cost * cumulated[start + smaller + equal]
    out[:, 1] = members.sums(largest - cumulated[start])
    # The worst ranking has the members j in increasing order of their outcomes.
    lowest = start + lowest
    visited = (cumulated[lowest + alike] - cumulated[lowest]) / alike
    cost = (larger + tie_cost * equal) * visited
    out[:, 3] = members.sums(cost)
    ties = equal if tie_cost > 0 else 0
    out[:, 4], out[:, 5] = members.sums(smaller + ties), members.sums(larger + ties)
    return QuerySums.of_cells(members.cells, out)


@dataclass(frozen=True)
class _Visits:
    """Expected visits to each row, and to one of a pair of its tied block."""

    single: Array
    tied: Array | None

    @classmethod
    def of(cls, ranking: Ranking, visits: Array) -> _Visits:
        """Return the visits to ranked rows.

        Of a pair in a tied block they are the visits to j while i is below it, over
        random orders of the m rows of the block: ``Σ_k F(k) (end - 1 - k)`` of the
        ``m (m - 1)`` places of a pair.
        """
        single = ranking.values_at(visits)
        if not ranking.has_ties:
            return cls(single, None)
        first, last = ranking.place_bounds(ranking.block_starts)
        block, place = ranking.places_of_blocks()
        total = np.bincount(block, visits[place] * (last[block] - place - 1))
        size = (last - first).astype(float)
        np.divide(total, size * (size - 1), out=total, where=size > 1)
        total = total[ranking.tie]
        return cls(single, total)

    def take(self, rows: Array) -> _Visits:
        """Return the visits to some rows."""
        tied = None if self.tied is None else self.tied[rows]
        return _Visits(self.single[rows], tied)


@dataclass(frozen=True)
class _Sides:
    """The rows of a level, which of them are worse and better, and a pair's cost.

    Pairs of equal outcomes have every row on both sides.
    """

    level: Level
    low: Array
    high: Array
    cost: float

    @classmethod
    def of(cls, level: Level, n_rows: int, tie_cost: float) -> _Sides:
        """Return the worse and the better rows of a level."""
        if level.bit is None:
            every = np.ones(n_rows, dtype=bool)
            return cls(level, every, every, tie_cost)
        return cls(level, ~level.bit, level.bit, 1.0)

    def _rows(self, at: Array) -> Array:
        rows = self.level.rows
        return at if isinstance(rows, slice) else rows[at]

    def _tied(self, sought: Array, at: Array) -> Array | int:
        """Return how many rows of the other side are tied with each of these."""
        if self.level.bounds is None:
            return 0
        number = exclusive_cumsum(sought)
        first, last = (bound[at] for bound in self.level.bounds)
        return number[last] - number[first] - sought[at]

    def add_better(self, total: Array, visits: _Visits) -> None:
        """Add Σ visits over the unfavourable pairs whose better item is the row."""
        level, at = self.level, np.flatnonzero(self.high)
        first = at if level.bounds is None else level.bounds[0][at]
        rows, sizes = self._rows(at), np.diff(level.starts)
        before = np.zeros(self.low.size + 1)
        np.cumsum(visits.single[level.rows] * self.low, out=before[1:])
        value = before[first] - np.repeat(before[level.starts[:-1]], sizes)[at]
        if visits.tied is not None:
            value += visits.tied[rows] * self._tied(self.low, at)
        total[rows] += self.cost * value

    def add_worse(self, total: Array, visits: _Visits) -> None:
        """Add Σ visits over the unfavourable pairs whose worse item is the row."""
        level, at = self.level, np.flatnonzero(self.low)
        last = at + 1 if level.bounds is None else level.bounds[1][at]
        rows, number = self._rows(at), exclusive_cumsum(self.high)
        ends = np.repeat(number[level.starts[1:]], np.diff(level.starts))
        below = ends[at] - number[last]
        value = visits.single[rows] * below
        if visits.tied is not None:
            value += visits.tied[rows] * self._tied(self.high, at)
        total[rows] += self.cost * value


@dataclass(frozen=True)
class _Lists:
    """Lists of ranked rows, and the codes of their outcomes."""

    ranking: Ranking
    codes: Array

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
            order = stable_order(ranking.query.astype(np.int64) * levels + self.codes)
            query, code = ranking.query[order], self.codes[order]
            new = np.ones(order.size, dtype=bool)
            new[1:] = (query[1:] != query[:-1]) | (code[1:] != code[:-1])
            first = np.flatnonzero(new)
            run, ends = np.cumsum(new) - 1, np.append(first[1:], order.size)
            equal, up_to = np.empty_like(order), np.empty_like(order)
            equal[order] = (ends - first)[run]
            up_to[order] = ends[run] - ranking.starts[:-1][query]
        return up_to - equal, equal, np.repeat(lengths, lengths) - up_to
