"""Sums of visits to unfairly placed items over pairs, without a list of the pairs.

In an unfavourable pair (i, j) item i has the larger outcome and is ranked below j; the
pair counts as much as j is visited. For each j the better items below it are counted,
level by level of the outcome (`outcome_levels`), by cumulative sums over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._estimates.finalize import NOTHING
from ..._inputs.groups import rows_of_ranges
from ..._inputs.ranking import EVERY, RankedData, Ranking
from ..._inputs.validation import Array
from .cluster_rows import QuerySums, cumulated, sums_between, times
from .pairwise import outcome_codes, outcome_levels


@dataclass(frozen=True)
class SwapRule:
    """The rule of a metric: which pairs count, how much, and the divisor of the sum."""

    visits: Array  # weights of the positions, which do not increase
    tie_cost: float  # how much a pair of equal outcomes counts
    #: "inter": j is outside the group; "all": j is any item; "against": j is of the one
    #: group that `partner` marks.
    comparison: str
    divisor: str | None  # "pairs" for their number, else the largest sum of any ranking
    #: Shape (n,) or None: whether a ranked row may be the j of a pair; None: any may.
    partner: Array | None = None


def swap_sums(data: RankedData, rule: SwapRule) -> QuerySums:
    """Return the sums of queries and groups, six of each.

    Of the pairs (i in the group, j outside) the numerator and the divisor, then those
    of (i outside, j in the group), then the number of pairs of both kinds.
    """
    parts = []
    for rows, block in data.blocks():
        sums = block.memberships.sums(_of_members(block, rule, rows))
        # Below this the difference of sums is rounding.
        sums[0, sums[0] <= NOTHING * (sums[0] + sums[6])] = 0.0
        parts.append(QuerySums.of_cells(block.memberships.cells, sums[:6].T))
    return QuerySums.joined(parts)


def swaps_of_items(data: RankedData, rule: SwapRule) -> Array:
    """Return the sum of each ranked row i, its divisor, and its number of pairs."""
    parts = []
    for rows, block in data.blocks():
        columns = _of_members(block, rule, rows, True)
        columns[0, columns[0] <= NOTHING * (columns[0] + columns[6])] = 0.0
        of_rows = np.empty((3, block.ranking.n_rows))
        of_rows[:, block.memberships.rows] = columns[[0, 1, 7]]
        parts.append(of_rows)
    return np.concatenate(parts, axis=1)


def _of_members(
    data: RankedData, rule: SwapRule, block: slice, by_item: bool = False
) -> Array:
    """Return the columns of each membership, shape (8, M).

    The first six are those of `swap_sums`. A sum over pairs with one item in the group
    is the sum over all rows of the query minus the sum over pairs with both items in
    the group. The latter is the seventh column, at the worse item or with `by_item` at
    the better item of a pair. The eighth is the number of pairs.
    """
    ranking, members = data.ranking, data.memberships
    partner = None if rule.partner is None else rule.partner[block]
    rows, out = members.rows, np.zeros((8, members.rows.size))
    codes = outcome_codes(data.y_true, ranking)
    visits_of = _expected_visits(ranking, rule.visits)
    # Smaller, equal and larger outcomes, of the partners and of the cell alone.
    smaller, equal, larger = _by_outcome(ranking, codes, rows, partner)
    equal -= 1 if partner is None else partner[rows]  # the row itself
    tie_cost = rule.tie_cost if equal.any() else 0.0
    better, worse = _swaps(
        ranking, codes, visits_of, tie_cost, True, False, partner=partner
    )
    lowest, alike, highest = np.zeros((3, rows.size), dtype=np.int64)
    alike += 1
    some, several = members.of_cells(members.sizes > 1)
    if some.size:
        inner, codes = several.ranking(ranking), codes[several.rows]
        lowest[some], alike[some], highest[some] = _by_outcome(inner, codes, EVERY)
        if rule.comparison == "inter":
            visited = visits_of.take(several.rows, axis=1)
            out[6, some] = _swaps(inner, codes, visited, tie_cost, by_item)
    if rule.comparison == "inter":
        smaller, equal, larger = smaller - lowest, equal - alike + 1, larger - highest
    out[0], out[2] = better[rows] - out[6], worse[rows] - out[6]
    visits, start = rule.visits, np.zeros(1, dtype=np.int64)
    if ranking.shown is not None:
        visits, start = ranking.values_held(visits), ranking.starts[ranking.query[rows]]
    of_first = cumulated(visits)  # the visits to the first places, by their number
    below, out[7] = of_first[start + smaller + equal], smaller + equal + larger
    if rule.comparison == "all" and not by_item:
        # The worst ranking has the members last among the items of equal outcomes.
        first, sums = start + smaller + equal - alike + 1, np.cumsum([0.0, *of_first])
        below = (sums[first + alike] - sums[first]) / alike
        equal = equal - (alike - 1) / 2  # a pair within the group counts once
    out[1] = (1 - tie_cost) * of_first[start + smaller] + tie_cost * below
    out[1] -= of_first[start]
    # The worst ranking has the members j in increasing order of their outcomes.
    lowest = start + lowest
    visited = (of_first[lowest + alike] - of_first[lowest]) / alike
    out[3] = (larger + tie_cost * equal) * visited
    ties = equal if tie_cost > 0 else 0
    out[4], out[5] = smaller + ties, larger + ties
    if rule.divisor == "pairs" and not by_item:
        inside = np.repeat(members.sizes - 1, members.sizes) / 2
        out[[1, 3, 4, 5]] = out[7] - inside * (rule.comparison == "all")
    if rule.comparison == "all":
        out[[2, 3, 5]] = 0.0
    return out


def _expected_visits(ranking: Ranking, visits: Array) -> Array:
    """Return visits to ranked rows, alone and as the upper one of two tied rows.

    The shape is (2, n), or (1, n) without ties. For two rows i and j of a tied block of
    m rows in random order the latter are the visits to j where i is below it:
    ``Σ_k F(k) (end - 1 - k) / (m (m - 1))``, as j is at place k and i at any of the
    later ones.
    """
    single = ranking.values_at(visits)
    if not ranking.has_ties:
        return single[None]
    first, last = ranking.place_bounds(ranking.tie_starts)
    block, place = rows_of_ranges(first, last - first)
    total = np.bincount(block, visits[place] * (last[block] - place - 1))
    size = (last - first).astype(float)
    np.divide(total, size * (size - 1), out=total, where=size > 1)
    return np.stack([single, total[ranking.tie]])


def _swaps(
    ranking: Ranking,
    codes: Array,
    visits: Array,
    tie_cost: float,
    *sides: bool,
    partner: Array | None = None,
) -> Array:
    """Return the visits in the unfavourable pairs of each row, by side, (sides, n).

    A side that is True has the pairs whose better item is the row, and one that is
    False those whose worse item is the row. The other item must be a `partner`; None:
    any is.
    """
    out = np.zeros((len(sides), ranking.n_rows))
    for level in outcome_levels(ranking, codes):
        rows, places = level.rows, level.places
        single = visits[0, rows]
        allowed = None if partner is None else partner[rows]
        cost = tie_cost if level.last else 0.0
        for at, smaller, larger, equal in level.parts():
            target, block = rows[at], places.query[at]
            first, last = places.tie_bounds(at)
            for better, total in zip(sides, out, strict=True):
                others = smaller if better else larger
                if cost:  # without, sums of truth values are fast
                    others = others + cost * equal
                others = times(others, allowed)
                if not others.any():
                    continue
                before = cumulated(single * others if better else others)
                edges = before[places.starts]
                if better:
                    value = before[first] - edges.take(block)
                else:
                    value = single[at] * (edges[1:].take(block) - before[last])
                if len(visits) > 1:  # rows are tied
                    [number] = sums_between(others, first, last)
                    value += visits[1, target] * (number - others[at])
                total[target] += value
    return out


def _by_outcome(
    ranking: Ranking, codes: Array, rows: Array | slice, partner: Array | None = None
) -> Array:
    """Return how many partners have a smaller, equal, larger outcome, (3, k)."""
    size = np.maximum.reduceat(codes, ranking.starts[:-1]).astype(np.int64) + 1
    first = np.cumsum(size) - size
    key = first.take(ranking.query) + codes
    number = np.bincount(key, partner, size.sum())
    start, end = (np.repeat(place, size) for place in (first, first + size))
    place = np.arange(number.size)
    counts = sums_between(number, start, place, place + 1, end)
    return np.array(counts, dtype=np.int64).take(key[rows], axis=1)
