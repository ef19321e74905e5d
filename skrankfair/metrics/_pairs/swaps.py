"""Sums of visits to unfairly placed items over pairs, without a list of the pairs.

In an unfavourable pair (i, j) item i has the larger outcome and is ranked below j; the
pair counts as much as j is visited. For each j the better items below it are counted,
level by level of the outcome (`outcome_levels`), by cumulative sums over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._estimates.finalize import NOTHING
from ..._inputs.ranking import RankedData, Ranking, stable_order
from ..._inputs.validation import Array
from .cluster_rows import QuerySums, exclusive_cumsum
from .pairwise import Level, outcome_codes, outcome_levels


@dataclass(frozen=True)
class SwapRule:
    """The rule of a metric: which pairs count, how much, and the divisor of the sum."""

    visits: Array  # weights of the positions, which do not increase
    tie_cost: float  # how much a pair of equal outcomes counts
    #: {"inter", "all", "against"}. j is a partner of any other group, any partner, or a
    #: partner where the partners are one other group.
    comparison: str
    divisor: str | None  # "pairs" for their number, else the largest sum of any ranking
    partner: Array  # shape (n,): whether a ranked row may be the j of a pair


def swap_sums(data: RankedData, rule: SwapRule) -> QuerySums:
    """Return the sums of queries and groups, six of each.

    Of the pairs (i in the group, j outside) the numerator and the divisor, then those
    of (i outside, j in the group), then the number of pairs of both kinds.
    """
    parts = []
    for rows, _, block in data.blocks():
        columns = _of_members(block, rule, rule.partner[rows])
        sums = block.memberships.sums(columns)
        # Below this the difference of sums is rounding.
        sums[0, sums[0] <= NOTHING * (sums[0] + sums[6])] = 0.0
        parts.append(QuerySums.of_cells(block.memberships.cells, sums[:6].T))
    return QuerySums.joined(parts)


def swaps_of_items(data: RankedData, rule: SwapRule) -> Array:
    """Return the sum of each ranked row i, its divisor, and its number of pairs."""
    parts = []
    for rows, _, block in data.blocks():
        columns = _of_members(block, rule, rule.partner[rows], True)
        columns[0, columns[0] <= NOTHING * (columns[0] + columns[6])] = 0.0
        of_rows = np.empty((3, block.ranking.n_rows))
        of_rows[:, block.memberships.rows] = columns[[0, 1, 7]]
        parts.append(of_rows)
    return np.concatenate(parts, axis=1)


def _of_members(
    data: RankedData, rule: SwapRule, partner: Array, by_item: bool = False
) -> Array:
    """Return the columns of each membership, shape (8, M).

    The first six are those of `swap_sums`. A sum over pairs with one item in the group
    is the sum over all rows of the query minus the sum over pairs with both items in
    the group. The latter is the seventh column, at the worse item or with `by_item` at
    the better item of a pair. The eighth is the number of pairs.
    """
    ranking, members = data.ranking, data.memberships
    rows, tie_cost, out = members.rows, rule.tie_cost, np.zeros((8, members.rows.size))
    if not rows.size:
        return out
    every = _Lists(ranking, outcome_codes(data.y_true, ranking), partner)
    of_row = _Visits.of(ranking, rule.visits)
    better, worse = np.zeros((2, ranking.n_rows))
    for level in outcome_levels(ranking, every.codes, tie_cost > 0):
        side = _Sides.of(level, tie_cost, partner)
        side.add_better(better, of_row)
        side.add_worse(worse, of_row)
    # Smaller, equal and larger outcomes, of the partners and of the cell alone.
    smaller, equal, larger = (count[rows] for count in every.counts)
    equal -= partner[rows]  # the row itself
    lowest, alike, highest = np.zeros((3, rows.size), dtype=np.int64)
    alike += 1
    some, several = members.in_company()
    if some.size:
        inner, anyone = several.ranking(ranking), np.ones(some.size, dtype=bool)
        inner_lists = _Lists(inner, every.codes[several.rows], anyone)
        lowest[some], alike[some], highest[some] = inner_lists.counts
        of_member, swaps = of_row.take(several.rows), np.zeros(some.size)
        for level in outcome_levels(inner, inner_lists.codes, tie_cost > 0):
            side = _Sides.of(level, tie_cost, anyone)
            add = side.add_better if by_item else side.add_worse
            add(swaps, of_member)
        out[6, some] = swaps * (rule.comparison == "inter")
    if rule.comparison == "inter":
        smaller, equal, larger = smaller - lowest, equal - alike + 1, larger - highest
    out[0], out[2] = better[rows] - out[6], worse[rows] - out[6]
    visits, start = rule.visits, np.zeros(1, dtype=np.int64)
    if ranking.shown is not None:
        visits, start = ranking.values_held(visits), ranking.starts[ranking.query[rows]]
    cumulated = np.concatenate(([0.0], np.cumsum(visits)))
    below, out[7] = cumulated[start + smaller + equal], smaller + equal + larger
    if rule.comparison == "all" and not by_item:
        # The worst ranking has the members last among the items of equal outcomes.
        first, sums = start + smaller + equal - alike + 1, np.cumsum([0.0, *cumulated])
        below = (sums[first + alike] - sums[first]) / alike
        equal = equal - (alike - 1) / 2  # a pair within the group counts once
    out[1] = (1 - tie_cost) * cumulated[start + smaller] + tie_cost * below
    out[1] -= cumulated[start]
    # The worst ranking has the members j in increasing order of their outcomes.
    lowest = start + lowest
    visited = (cumulated[lowest + alike] - cumulated[lowest]) / alike
    out[3] = (larger + tie_cost * equal) * visited
    ties = equal if tie_cost > 0 else 0
    out[4], out[5] = smaller + ties, larger + ties
    if rule.divisor == "pairs" and not by_item:
        inside = np.repeat(members.sizes - 1, members.sizes) / 2
        out[[1, 3, 4, 5]] = out[7] - inside * (rule.comparison == "all")
    if rule.comparison == "all":
        out[[2, 3, 5]] = 0.0
    return out


@dataclass(frozen=True)
class _Visits:
    """Expected visits to each row, alone and as the upper one of two tied rows."""

    single: Array
    tied: Array | None

    @classmethod
    def of(cls, ranking: Ranking, visits: Array) -> _Visits:
        """Return the visits to ranked rows.

        For two rows i and j of a tied block of m rows in random order they are the
        visits to j where i is below it: ``Σ_k F(k) (end - 1 - k) / (m (m - 1))``, as
        j is at place k and i at any of the later ones.
        """
        single = ranking.values_at(visits)
        if not ranking.has_ties:
            return cls(single, None)
        first, last = ranking.place_bounds(ranking.tie_starts)
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
    """The rows of a level, masks of the worse and the better, and the cost of a pair.

    Pairs of equal outcomes have every row on both sides.
    """

    level: Level
    low: Array
    high: Array
    cost: float
    #: The rows that may be the other of a pair, worse and better ones.
    partners: tuple[Array, Array]

    @classmethod
    def of(cls, level: Level, tie_cost: float, partner: Array) -> _Sides:
        """Return the worse and the better rows of a level."""
        others = partner[level.rows]
        if level.bit is None:
            every = np.ones(partner.size, dtype=bool)
            return cls(level, every, every, tie_cost, (others, others))
        low, high = ~level.bit, level.bit
        return cls(level, low, high, 1.0, (low & others, high & others))

    def _rows(self, at: Array) -> Array:
        rows = self.level.rows
        return at if isinstance(rows, slice) else rows[at]

    def _tied(self, sought: Array, at: Array) -> Array | int:
        """Return how many other rows of a mask are tied with each row `at`."""
        if self.level.bounds is None:
            return 0
        number = exclusive_cumsum(sought)
        first, last = (bound[at] for bound in self.level.bounds)
        return number[last] - number[first] - sought[at]

    def add_better(self, total: Array, visits: _Visits) -> None:
        """Add Σ visits over the unfavourable pairs whose better item is the row."""
        level, at, low = self.level, np.flatnonzero(self.high), self.partners[0]
        first = at if level.bounds is None else level.bounds[0][at]
        rows, sizes = self._rows(at), np.diff(level.starts)
        before = np.zeros(low.size + 1)
        np.cumsum(visits.single[level.rows] * low, out=before[1:])
        value = before[first] - np.repeat(before[level.starts[:-1]], sizes)[at]
        if visits.tied is not None:
            value += visits.tied[rows] * self._tied(low, at)
        total[rows] += self.cost * value

    def add_worse(self, total: Array, visits: _Visits) -> None:
        """Add Σ visits over the unfavourable pairs whose worse item is the row."""
        level, at, high = self.level, np.flatnonzero(self.low), self.partners[1]
        last = at + 1 if level.bounds is None else level.bounds[1][at]
        rows, number = self._rows(at), exclusive_cumsum(high)
        ends = np.repeat(number[level.starts[1:]], np.diff(level.starts))
        below = ends[at] - number[last]
        value = visits.single[rows] * below
        if visits.tied is not None:
            value += visits.tied[rows] * self._tied(high, at)
        total[rows] += self.cost * value


@dataclass(frozen=True)
class _Lists:
    """Lists of ranked rows, and the codes of their outcomes."""

    ranking: Ranking
    codes: Array
    partner: Array  # whether a row is counted

    @cached_property
    def counts(self) -> tuple[Array, Array, Array]:
        """How many rows of the list have a smaller, an equal, a larger outcome."""
        ranking, starts = self.ranking, self.ranking.starts
        levels = int(self.codes.max(initial=0)) + 1
        key = ranking.query.astype(np.int64) * levels + self.codes
        if levels * ranking.n_queries <= 4 * ranking.n_rows:
            number = np.bincount(
                key[self.partner], minlength=levels * ranking.n_queries
            )
            reached = np.cumsum(number.reshape(-1, levels), axis=1)
            equal, up_to = number[key], reached.ravel()[key]
            lengths = reached[:, -1]
        else:
            order = stable_order(key)
            before = exclusive_cumsum(self.partner[order])
            first = np.flatnonzero(np.diff(key[order], prepend=-1))
            ends = np.append(first[1:], order.size)
            run = np.repeat(np.arange(first.size), ends - first)
            equal, up_to = np.empty((2, order.size), dtype=np.int64)
            equal[order] = (before[ends] - before[first])[run]
            up_to[order] = before[ends][run] - before[starts[ranking.query[order]]]
            lengths = np.diff(before[starts])
        return up_to - equal, equal, np.repeat(lengths, ranking.lengths) - up_to
