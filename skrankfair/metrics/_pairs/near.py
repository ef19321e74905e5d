"""Ranges of near scores: the possible partners of each member within a threshold.

The partners are one range of all rows of the query, found by a galloping search that
only the rows with longer ranges go on with, less one range of the rows of the member's
own cell, itself included. So no group needs a pass over the rows, and no pair is
written down to be summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..._inputs.ranking import Memberships, Ranking, stable_order
from ..._inputs.validation import Array
from .prefix_sums import sum_between, times

#: Average length of a query from which guesses by `np.searchsorted` are worth a loop.
_LONG = 1000
#: Of a rank in a sum of weights, which rounding must not raise above a pair.
ROUNDED = 1 - 1e-12
#: Multiples of the golden ratio fill the unit interval evenly.
_GOLDEN = (math.sqrt(5) - 1) / 2
_SAMPLE = 1 << 16
#: The search takes groups with about so small a part of the rows at once.
_PARTS = 6


def reach(
    values: Array,
    start: Array,
    bound: Array,
    origin: Array,
    threshold: Array | float,
    step: int,
) -> Array:
    """Return how far from `start` towards `bound` values stay near the origin.

    Between these places, each of shape (k,), `values` are monotone and move away from
    the origin, of shape (k,); near is ``|values - origin| <= threshold``. Looked at
    next is ``start + step``, `step` 1 or -1. The result is the last near place, or
    `start` if there is none.
    """
    limits = np.broadcast_to(threshold, start.shape)
    place = start + step
    inside = place <= bound if step > 0 else place >= bound
    np.clip(place, 0, max(values.size - 1, 0), out=place)
    if values.size:
        inside &= _near(values[place], origin, limits)
    near = start.copy()
    # Most ranges end here when the threshold is small; the others go on alone.
    further = np.flatnonzero(inside)
    near[further] = _gallop(
        values,
        place[further],
        bound[further],
        origin[further],
        limits[further],
        step,
    )
    return near


def _near(values: Array, origin: Array, limits: Array) -> Array:
    return np.abs(values - origin) <= limits


def _gallop(
    values: Array, near: Array, bound: Array, origin: Array, limits: Array, step: int
) -> Array:
    """Return the last near place by doubling steps, then by halving them."""
    stop = bound + step  # the nearest place known to be out of reach
    room = np.flatnonzero(near != bound)
    jump = 1
    while room.size:
        place = near[room] + step * jump
        if step > 0:
            np.minimum(place, bound[room], out=place)
        else:
            np.maximum(place, bound[room], out=place)
        inside = _near(values[place], origin[room], limits[room])
        stop[room[~inside]] = place[~inside]
        room, place = room[inside], place[inside]
        near[room] = place
        room = room[place != bound[room]]
        jump *= 2
    room = np.flatnonzero(np.abs(stop - near) > 1)
    while room.size:
        place = (near[room] + stop[room]) >> 1
        inside = _near(values[place], origin[room], limits[room])
        near[room[inside]] = place[inside]
        stop[room[~inside]] = place[~inside]
        room = room[np.abs(stop[room] - near[room]) > 1]
    return near


@dataclass(frozen=True)
class PairWeight:
    """How often each pair of a focal row and a partner counts, a product."""

    focal: Array | None = None  # of each ranked row; None is one
    partner: Array | None = None

    @property
    def given(self) -> bool:
        """Whether some pair may count otherwise than once."""
        return self.focal is not None or self.partner is not None

    def of_pairs(self, focal: Array, partner: Array) -> Array | None:
        """Return the weight of each of some pairs, or None if all count once."""
        if not self.given:
            return None
        weight = np.ones(focal.size) if self.focal is None else self.focal[focal]
        return times(weight, None if self.partner is None else self.partner[partner])


@dataclass(frozen=True, eq=False)
class Ranges:
    """Partners of each membership: [low, high) of all rows, less those of its cell."""

    low: Array
    high: Array
    own_low: Array
    own_high: Array

    @property
    def _ends(self) -> tuple[Array, ...]:
        return self.low, self.high, self.own_low, self.own_high

    @property
    def count(self) -> Array:
        """Number of partners of each membership."""
        return (self.high - self.low) - (self.own_high - self.own_low)

    def weigh(self, item_weight: Array | None, rows: Array) -> Array:
        """Return the weight of the partners, or without weights their number."""
        count = self.count
        if item_weight is None:
            return count
        weight = self.sums(item_weight, rows)
        weight[count == 0] = 0.0  # what is left of the sums there is rounding
        return weight

    def where(self, first: Array, other: Ranges) -> Ranges:
        """Return these ranges for some memberships, and others for the rest."""
        ends = zip(self._ends, other._ends, strict=True)
        return Ranges(*(a if a is b else np.where(first, a, b) for a, b in ends))

    def sums(self, values: Array, rows: Array) -> Array:
        """Return the sums over the partners of a column of ranked rows."""
        total = sum_between(self.low, self.high, values)
        total -= sum_between(self.own_low, self.own_high, values[rows])
        return total


@dataclass(frozen=True, eq=False)
class Matching:
    """Possible pairs of the members of every group with the others of their query."""

    ranking: Ranking
    members: Memberships
    #: {"below", "both"}. "below": the partner's score is at least the focal item's;
    #: "both": any.
    direction: str

    @property
    def group(self) -> Array:
        """Group of each membership."""
        return self.members.cells.group[self.members.cell]

    @cached_property
    def origin(self) -> Array:
        """Score of each membership."""
        return self.ranking.score[self.members.rows]

    @cached_property
    def _query(self) -> Array:
        return self.members.cells.query[self.members.cell]

    @cached_property
    def _first(self) -> Array:
        return self.ranking.starts[self._query]

    @cached_property
    def below(self) -> Array:
        """First row with a lower score, behind the row itself."""
        below = self.ranking.tie_bounds(self.members.rows)[1]
        return below.astype(np.int64)

    @cached_property
    def _end(self) -> Array:
        return self.ranking.starts[self._query + 1]

    @cached_property
    def _company(self) -> tuple[Array, Array, Array, Array]:
        """What finds the memberships of a cell that has several.

        Their numbers; how many memberships of other cells come before each; and two
        keys that increase over all cells: that of the cell and that of the membership.
        """
        some, members = self.members.in_company()
        begin = members.cell * np.int64(self.ranking.n_rows + 1)
        moved = some - np.arange(some.size)
        return some, moved, begin, begin + members.rows

    def own(self, place: Array) -> Array:
        """Return for each membership the first of its cell at a ranked row or later."""
        first = np.arange(place.size) + (place > self.members.rows)  # one that is alone
        some, moved, begin, numbers = self._company
        first[some] = moved + np.searchsorted(numbers, begin + place[some])
        return first

    @cached_property
    def _own_below(self) -> Array:
        return self.own(self.below)

    def ranges(self, low: Array, high: Array) -> Ranges:
        """Return ranges of rows, with the part of each that is of the same cell."""
        own_high = self._own_below if high is self.below else self.own(high)
        return Ranges(low, high, self.own(low), own_high)

    @cached_property
    def outermost(self) -> Ranges:
        """All possible partners."""
        high = self.below if self.direction == "below" else self._end
        return self.ranges(self._first, high)

    @property
    def empty(self) -> Ranges:
        """No partners."""
        return Ranges(self.below, self.below, self._own_below, self._own_below)

    def windows(self, thresholds: Array) -> Ranges:
        """Return the partners within the threshold of the group, shape (G,)."""
        return self.ranges(*self._windows(thresholds[self.group]))

    @np.errstate(over="ignore")  # infinitely far apart is far
    def _windows(self, limits: Array) -> tuple[Array, Array]:
        """Return the range [low, high) of rows within the limit of each membership."""
        below, score = self.below, self.ranking.score
        empty = ~(limits >= 0)  # no difference is negative
        if empty.any():
            limits = np.where(empty, 0.0, limits)
        start = self._guess(limits, above=True)
        low = reach(score, start, self._first, self.origin, limits, -1)
        high = below
        if self.direction == "both":
            start = self._guess(limits, above=False)
            high = reach(score, start, self._end - 1, self.origin, limits, 1) + 1
        if empty.any():
            low, high = np.where(empty, below, low), np.where(empty, below, high)
        return low, high

    def _guess(self, limits: Array, above: bool) -> Array:
        """Return a row within reach to start from: close to the end in long lists.

        The sum of a score and the threshold rounds, so the guess keeps a little clear
        of the end, and the search goes on from there with exact differences.
        """
        start = self.below if above else self.below - 1
        ranking = self.ranking
        if ranking.n_rows < _LONG * ranking.n_queries:
            return start
        finite = np.minimum(limits, np.finfo(float).max)
        target = np.maximum(np.abs(self.origin), finite)
        target *= -16 * np.finfo(float).eps
        target += finite
        np.maximum(target, 0.0, out=target)
        if above:
            target += self.origin
            np.negative(target, out=target)
        else:
            target -= self.origin
        place = np.empty_like(start)
        edges = np.searchsorted(self._query, np.arange(ranking.n_queries + 1))
        for query in range(ranking.n_queries):
            low, high = ranking.starts[query : query + 2]
            some = slice(*edges[query : query + 2])
            place[some] = low + np.searchsorted(
                -ranking.score[low:high],
                target[some],
                side="left" if above else "right",
            )
        return np.minimum(place, start) if above else np.maximum(place - 1, start)

    def kth_smallest(
        self, n_pairs: int | None, quantile: float | None, weight: PairWeight
    ) -> Array:
        """Return the K-th smallest score difference of every group, shape (G,).

        NaN for a group without pairs; K is `n_pairs`, at most all of them, or else
        the share `quantile` of them (of their weight), rounded up. Some groups at a
        time, since the search keeps many numbers of each membership.
        """
        cells, thresholds = (
            self.members.cells,
            np.full(self.members.cells.n_groups, np.nan),
        )
        size = np.bincount(cells.group, self.members.sizes, minlength=cells.n_groups)
        at_once = max(self.ranking.n_rows / _PARTS, _SAMPLE)
        batch = ((np.cumsum(size) - size) // at_once).astype(np.int64)
        for number in np.unique(batch):
            some = batch == number
            _, members = self.members.of_cells(some[cells.group])
            matching = replace(self, members=members)
            search = _Selection(matching, n_pairs, quantile, weight)
            thresholds[some] = search.thresholds()[some]
        return thresholds


class _Selection:
    """The search for the K-th smallest difference of every group at once.

    Between an inner range of each membership, with fewer than K pairs, and an outer
    one there are fewer and fewer pairs, until the few left are written down.
    """

    def __init__(
        self,
        matching: Matching,
        n_pairs: int | None,
        quantile: float | None,
        weight: PairWeight,
    ) -> None:
        self.matching, self.group = matching, matching.group
        self.n_groups = matching.members.cells.n_groups
        self.weight = weight
        self.outer = matching.outermost
        total = self._weigh(self.outer)
        rank = total if n_pairs is None else np.minimum(n_pairs, total)
        if quantile is not None:
            rank = np.minimum(quantile * total, total)
        self.total = total
        self.rank = rank * ROUNDED if weight.given else rank
        self.below = np.full(self.n_groups, np.nan)
        self.above = np.full(self.n_groups, np.inf)
        self.passed, self.reached = np.zeros(self.n_groups), total
        self.inner = matching.empty

    def _weigh(self, ranges: Ranges) -> Array:
        rows, focal = self.matching.members.rows, self.weight.focal
        count = ranges.weigh(self.weight.partner, rows)
        count = times(count, None if focal is None else focal[rows])
        return np.bincount(self.group, weights=count, minlength=self.n_groups)

    def thresholds(self) -> Array:
        """Return the thresholds of all groups, NaN for one without pairs."""
        limit = max(2 * self.group.size, _SAMPLE)
        rng, stuck, even = np.random.default_rng(0), False, True
        for guess in self._first_guess(rng):
            self._try(guess)
        while (between := self._between().sum()) > limit:
            guesses = self._between_ends() if even else self._guesses(rng, stuck)
            for guess in guesses:
                self._try(guess)
                left = self._between().sum()
                if left <= limit:
                    break
            if not even:
                stuck = left > between / 2
            # Where few are left out, or they are uneven, a sample says more.
            even = not even or left < between / 8
        return self._written()

    def _first_guess(self, rng: np.random.Generator) -> Iterator[Array]:
        """Yield a threshold with a few more pairs of each group than it needs."""
        if not self._between().any():
            return
        _, differences = self._sample(rng)
        if not differences.size:
            return
        differences.sort()
        last = differences.size - 1
        share = np.zeros(self.n_groups)
        np.divide(self.rank, self.total, out=share, where=self.total > 0)
        place = share * last
        place = np.minimum(place + 4 * np.sqrt(place) + 4, last).astype(np.int64)
        yield np.where(self.total > 0, differences[place], np.nan)

    def _between(self) -> Array:
        """Return the number of rows between both ranges of each membership."""
        outer, inner = self.outer, self.inner
        return (outer.high - outer.low) - (inner.high - inner.low)

    @np.errstate(over="ignore")  # the next after the largest number
    def _try(self, thresholds: Array) -> None:
        """Take the ranges within the thresholds as outer or inner ones of a group."""
        known = ~(thresholds > self.below) & ~np.isnan(self.below)
        thresholds = np.where(known, self.below, thresholds)
        ranges = self.matching.windows(thresholds)
        reached = self._weigh(ranges)
        enough = (reached >= self.rank) & (self.total > 0)
        nearer = enough & (thresholds < self.above)
        self.outer = ranges.where(nearer[self.group], self.outer)
        self.inner = self.inner.where(enough[self.group], ranges)
        self.above = np.where(nearer, thresholds, self.above)
        self.reached = np.where(nearer, reached, self.reached)
        self.below = np.where(enough, self.below, thresholds)
        self.passed = np.where(enough, self.passed, reached)
        # All pairs between have one difference.
        done = np.nextafter(self.below, np.inf) == self.above
        self.inner = self.outer.where(done[self.group], self.inner)

    def _between_ends(self) -> Iterator[Array]:
        """Yield thresholds around the wanted ones, as if differences were even.

        Between those that are known, or beyond the only one as they are before it.
        """
        below, beyond = np.nan_to_num(self.below), np.isinf(self.above)
        span = np.where(beyond, -below, self.above - below)
        outside = np.where(beyond, 0.0, self.reached) - self.passed
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = (self.rank - self.passed) / outside
            margin = 2 * np.sqrt(share * (1 - share) / outside) + 2 / np.abs(outside)
            for end in (share - margin, share + margin):
                end = np.clip(end, np.where(beyond, -np.inf, 0), ~beyond)
                yield below + end * span

    def _guesses(self, rng: np.random.Generator, stuck: bool) -> Iterator[Array]:
        """Yield thresholds below and above the wanted ones, from a sample of pairs."""
        membership, differences = self._sample(rng)
        group = self.group[membership]
        order = np.lexsort((differences, group))
        differences = np.append(differences[order], np.inf)
        ends = np.searchsorted(group[order], np.arange(self.n_groups + 1))
        number = np.diff(ends)
        outside = self._weigh(self.outer) - self.passed
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip((self.rank - self.passed) / outside, 0, 1)
            share[outside == 0] = 0.0
            # The sample is a lattice over rows and their ranges, whose shares of pairs
            # are some ten times closer than those of as many random pairs.
            margin = np.sqrt(share * (1 - share) / number) + 4 / number
            low = np.floor((share - margin) * number)
            high = np.ceil((share + margin) * number)
        some = number > 0
        first, last = some & (low >= 0), some & (high < number)
        place = ends[:-1] + np.where(first, low, 0).astype(np.int64)
        lowest = np.where(first, differences[place], self.below)
        place = ends[:-1] + np.where(last, high, 0).astype(np.int64)
        highest = np.where(last, differences[place], self.above)
        yield np.where(first, np.nextafter(lowest, -np.inf), self.below)
        if stuck:  # a few heavy differences, or a sample too small to say more
            median = np.minimum(share * number, number - 1)
            place = ends[:-1] + np.where(some, median, 0).astype(np.int64)
            yield lowest
            yield np.where(some, differences[place], self.below)
            yield np.nextafter(highest, -np.inf)
        yield highest

    def _sample(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return memberships and differences of a sample of the pairs between."""
        left = self.inner.low - self.outer.low
        count = self._between()
        ends = np.cumsum(count)
        step = np.arange(max(_SAMPLE, count.size // 4))
        drawn = ((step + rng.random()) * (ends[-1] / step.size)).astype(np.int64)
        row = np.searchsorted(ends, drawn, side="right")
        offset = (step * _GOLDEN % 1.0 * count[row]).astype(np.int64)
        place = self.outer.low[row] + offset
        inside = self.inner.high[row] - self.inner.low[row]
        place += np.where(offset >= left[row], inside, 0)
        # A row is in the middle of its range, where it is not a pair.
        other = np.flatnonzero(self.matching.members.rows[row] != place)
        return row[other], self._differences(row[other], place[other])

    def _differences(self, membership: Array, place: Array) -> Array:
        score = self.matching.ranking.score
        origin = score[self.matching.members.rows[membership]]
        with np.errstate(over="ignore"):
            return np.abs(score[place] - origin)

    def _written(self) -> Array:
        """Write down the pairs between, and take the wanted one of each group."""
        members, rows, places = self.matching.members, [], []
        for begin, end in (
            (self.outer.low, self.inner.low),
            (self.inner.high, self.outer.high),
        ):
            count = np.maximum(end - begin, 0)
            row = np.repeat(np.arange(count.size), count)
            offset = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
            place = begin[row] + offset
            other = ~members.contain(place, self.group[row])
            rows.append(row[other])
            places.append(place[other])
        row, place = np.concatenate(rows), np.concatenate(places)
        group = self.group[row]
        order = stable_order(group)
        ends = np.searchsorted(group[order], np.arange(self.n_groups + 1))
        row, place = row[order], place[order]
        differences = self._differences(row, place)
        weight = self.weight.of_pairs(members.rows[row], place)
        thresholds = self.above.copy()
        thresholds[self.total == 0] = np.nan
        for g in np.flatnonzero(ends[1:] > ends[:-1]):
            some = slice(*ends[g : g + 2])
            mass = None if weight is None else weight[some]
            rank = self.rank[g] - self.passed[g]
            thresholds[g] = weighted_rank(differences[some], mass, rank)
        return thresholds


def weighted_rank(values: Array, weight: Array | None, rank: float) -> float:
    """Return the smallest value whose cumulated weight reaches the rank."""
    if weight is None:
        place = min(max(math.ceil(rank), 1), values.size) - 1
        return float(np.partition(values, place)[place])
    order = np.argsort(values)
    mass = np.cumsum(weight[order])
    place = int(np.searchsorted(mass, rank))
    return float(values[order[min(place, values.size - 1)]])
