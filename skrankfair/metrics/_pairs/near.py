"""Ranges of near scores: the possible partners of each member within a threshold.

The partners of a member are one range of all rows of the query minus one range of the
rows of its own cell (its query and group), itself included. Ranges are found by a
galloping search, which goes on only for the rows whose ranges are longer. So no group
needs a pass over the rows, and no list of pairs is needed for sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._inputs.groups import rows_of_ranges, stable_order
from ..._inputs.ranking import Memberships, Ranking, order_rows
from ..._inputs.validation import Array
from .cluster_rows import count_dtype, sums_between, times

#: With a longer average query a first guess by `np.searchsorted` is worth a loop.
_LONG = 1000
#: Factor of a wanted sum of weights, which rounding must not raise above a pair.
_ROUNDED = 1 - 1e-12
#: Rounding of a difference of scores, as a share of the larger of score and threshold.
_ROUNDING = 4 * np.finfo(float).eps
#: A guess of a difference of scores falls short of it by this share.
_GUESSED = 16 * np.finfo(float).eps
#: Memberships that are worked on at once: so few stay in the processor's cache.
_BLOCK = 1 << 15
#: Multiples of the golden ratio fill the unit interval evenly.
_GOLDEN = (math.sqrt(5) - 1) / 2
_SAMPLE = 1 << 16


def reach(
    values: Array, start: Array, bound: Array, origin: Array, limits: Array, step: int
) -> Array:
    """Return the last place from `start` to `bound` whose value is near the origin.

    A value is near if ``|value - origin| <= limits``. From `start` to `bound` the
    values move away from the origin; `step` is the direction, 1 or -1. The arguments
    but `values` have shape (k,). `start` itself is not looked at: it is the result if
    no place after it is near.
    """
    near = start.copy()

    def advance(rows: Any, jump: int) -> Array:
        """Jump where the place is near; return the numbers of these rows."""
        place = near[rows] + step * jump
        difference = values.take(place, mode="clip") - origin[rows]
        inside = step * place <= step * bound[rows]
        at = np.flatnonzero(inside & (np.abs(difference) <= limits[rows]))
        moved = at if isinstance(rows, slice) else rows[at]
        near[moved] = place[at]
        return moved

    # Most ranges end soon when the threshold is small; the others go on alone.
    jumping = [advance(slice(None), 1)]
    while jumping[-1].size:
        jumping.append(advance(jumping[-1], 2 ** len(jumping)))
    for back in range(len(jumping) - 2, -1, -1):
        advance(jumping[back], 2**back)
    return near


def with_rounding(limits: Array, origin: Array) -> Array:
    """Return thresholds of focal rows, raised by the rounding of decimals to floats.

    With them 0.75 and 0.70 are within 0.05. They are raised by at most a millionth, as
    scores may be closer than the rounding; a threshold of 0, for ties only, stays 0.
    """
    slack: Array = np.maximum(np.abs(origin), limits)
    slack *= _ROUNDING
    np.minimum(slack, 1e-6 * limits, out=slack)
    slack += limits
    return slack


def members_with_row(low: Array, high: Array, n_rows: int) -> tuple[Array, Array]:
    """Return the members whose range has each row, the first and one past the last.

    The ranges of members, [low, high), have ends that do not decrease. So the members
    whose range has a row are consecutive; the results have shape (n_rows,).
    """
    first, last = (
        np.cumsum(np.bincount(end, minlength=n_rows + 1)[:-1], dtype=low.dtype)
        for end in (high, low)
    )
    return first, last


@dataclass(frozen=True)
class PairWeight:
    """The weight of each pair: that of the focal row times that of the partner."""

    focal: Array | None = None  # weight of each ranked row; None: all are 1
    partner: Array | None = None

    @property
    def given(self) -> bool:
        """Whether some pair may have a weight other than 1."""
        return self.focal is not None or self.partner is not None

    def of_pairs(self, focal: Array, partner: Array) -> Array | None:
        """Return the weight of each of some pairs, or None if all count once."""
        if not self.given:
            return None
        weight = np.ones(focal.size) if self.focal is None else self.focal[focal]
        return times(weight, None if self.partner is None else self.partner[partner])


@dataclass(frozen=True, eq=False)
class Ranges:
    """Partners of each membership: two ranges, of which the second is subtracted.

    They are the rows [low, high), minus the members [own_low, own_high) of its cell.
    """

    low: Array
    high: Array
    own_low: Array
    own_high: Array

    @property
    def ends(self) -> tuple[Array, ...]:
        """The four columns."""
        return self.low, self.high, self.own_low, self.own_high

    @property
    def count(self) -> Array:
        """Number of partners of each membership."""
        count: Array = self.high - self.low
        count -= self.own_high
        count += self.own_low
        return count

    def weigh(self, item_weight: Array | None, rows: Array) -> Array:
        """Return the weight of the partners; their number, if items have no weights."""
        count = self.count
        if item_weight is None:
            return count
        [weight] = sums_between(item_weight, self.low, self.high)
        weight -= sums_between(item_weight[rows], self.own_low, self.own_high)[0]
        weight[count == 0] = 0.0  # the difference of the sums is rounding
        return weight

    def where(self, first: Array, other: Ranges) -> Ranges:
        """Return these ranges where `first` is true, and those of `other` elsewhere."""
        ends = zip(self.ends, other.ends, strict=True)
        return Ranges(*(a if a is b else np.where(first, a, b) for a, b in ends))


@dataclass(frozen=True, eq=False)
class Matching:
    """Possible pairs of the members of every group with the others of their query."""

    ranking: Ranking
    members: Memberships
    #: {"below", "both"}. "below": the partner's score is at least the focal item's;
    #: "both": any.
    direction: str

    @cached_property
    def group(self) -> Array:
        """Group of each membership."""
        cells, sizes = self.members.cells, self.members.sizes
        return np.repeat(cells.group.astype(np.int32), sizes)

    def _ranges(self, *ends: Array) -> Ranges:
        """Return ranges of these ends in small integers."""
        most = max(self.ranking.n_rows, self.members.rows.size)
        return Ranges(*(end.astype(count_dtype(most), copy=False) for end in ends))

    @property
    def level(self) -> Ranges:
        """The ranges of rows with the score of each membership, itself included."""
        first, last = self.ranking.tie_bounds(self.members.rows)
        starts = self.members.tie_starts(self.ranking)
        size = np.diff(starts, append=first.size)
        own = np.repeat(starts, size), np.repeat(starts + size, size)
        return self._ranges(first, last, *own)

    @cached_property
    def empty(self) -> Ranges:
        """Ranges without rows, between those of higher or equal and of lower scores."""
        _, below, _, own_below = self.level.ends
        return Ranges(below, below, own_below, own_below)

    @property
    def outermost(self) -> Ranges:
        """The ranges of all possible partners, at any distance."""
        members, starts = self.members, self.ranking.starts
        of_query, sizes = members.cells.query, members.sizes
        of_rows = starts[of_query], starts[of_query + 1]
        edges = *of_rows, members.starts[:-1], members.starts[1:]
        ranges = self._ranges(*(np.repeat(edge, sizes) for edge in edges))
        return self.upper_part(ranges) if self.direction == "below" else ranges

    def upper_part(self, ranges: Ranges) -> Ranges:
        """Return the partners whose score is at least that of the member."""
        below, _, own_below, _ = self.empty.ends
        return replace(ranges, high=below, own_high=own_below)

    def members_before(self, ends: Array, cell: Array, rows: Array) -> Array:
        """Return the first membership of each cell whose end is after the row.

        `ends` is a row per membership, which does not decrease within a cell.
        """
        members = self.members
        numbers = members.numbers_of(members.cell, ends)
        return np.searchsorted(numbers, members.numbers_of(cell, rows), side="right")

    @np.errstate(over="ignore")  # infinitely far apart is far
    def windows(self, thresholds: Array, within: Ranges | None = None) -> Ranges:
        """Return the partners within the threshold of the group, shape (G,).

        The search starts at the ends of the ranges `within`, which must not be wider
        than the wanted ones, and compares differences exactly; without them it compares
        differences up to the rounding of the scores.
        """
        limits = thresholds[self.group]
        if within is None:
            limits = with_rounding(limits, self.ranking.score[self.members.rows])
            within, possible = self.level, limits >= 0  # no difference is negative
            if not possible.all():
                within = within.where(possible, self.empty)
        low, own_low = self._reached(limits, -1, within.low, within.own_low)
        high, own_high = within.high, within.own_high
        if self.direction == "both":
            high, own_high = self._reached(limits, 1, high, own_high)
        return Ranges(low, high, own_low, own_high)

    def _reached(
        self, limits: Array, step: int, start: Array, own: Array
    ) -> tuple[Array, Array]:
        """Return the upper (step -1) or lower ends of ranges, of rows and of members.

        `start` and `own` are ends of ranges that are not wider.
        """
        ranking, end, own = self.ranking, start.copy(), own.copy()
        past = int(step > 0)  # a lower end is one past the last row
        guess = start
        if ranking.n_rows >= _LONG * ranking.n_queries:
            guess = self._guess(limits, step, start)
        for first in range(0, start.size, _BLOCK):
            some = slice(first, first + _BLOCK)
            rows, near = self.members.rows[some], guess[some].astype(np.int64)
            query, origin = ranking.query[rows], ranking.score[rows]
            near, bound = near - past, ranking.starts[past:][query] - past
            near = reach(ranking.score, near, bound, origin, limits[some], step) + past
            moved = first + np.flatnonzero(near != start[some])
            end[some] = near
            own[moved] = self.members.first_at(self.members.cell[moved], end[moved])
        return end, own

    def _guess(self, limits: Array, step: int, start: Array) -> Array:
        """Return ends within reach that are close to the wanted ones.

        The difference of a score and the threshold rounds, so the guess keeps a little
        clear of the end, and the search goes on from there with exact differences.
        """
        ranking, rows = self.ranking, self.members.rows
        origin, far = ranking.score[rows], np.minimum(limits, np.finfo(float).max)
        far = far - _GUESSED * np.maximum(np.abs(origin), far)
        wanted = step * np.maximum(far, 0.0) - origin
        edges = np.searchsorted(rows, ranking.starts)
        guess = start.copy()
        for (low, high), (begin, end) in zip(
            itertools.pairwise(ranking.starts), itertools.pairwise(edges), strict=True
        ):
            side: Any = "left" if step < 0 else "right"
            place = np.searchsorted(-ranking.score[low:high], wanted[begin:end], side)
            guess[begin:end] = low + place
        return np.where((limits >= 0) & (step * guess > step * start), guess, start)

    @np.errstate(over="ignore", under="ignore")  # the next after largest and smallest
    def kth_smallest(
        self, n_pairs: int | None, quantile: float | None, weight: PairWeight
    ) -> Array:
        """Return the K-th smallest score difference of every group, shape (G,).

        It is NaN for a group without pairs. K is `n_pairs`, but at most all pairs, or
        else the share `quantile` of the pairs (of their weight), rounded up. Large
        groups are searched one by one: for each membership many numbers are kept.
        """
        cells = self.members.cells
        thresholds = np.full(cells.n_groups, np.nan)
        size = np.bincount(cells.group, self.members.sizes, minlength=cells.n_groups)
        batch = (np.cumsum(size) - size) // max(self.ranking.n_rows / 6, _SAMPLE)
        for number in np.unique(batch):
            some = batch == number
            part = replace(self, members=self.members.of_cells(some[cells.group])[1])
            search = _Selection(part, n_pairs, quantile, weight)
            thresholds[some] = search.thresholds()[some]
            del part, search  # before those of the next groups are made
        return thresholds


class _Selection:
    """The search for the K-th smallest difference of every group at once.

    Each membership has an inner range, in which its group has fewer than K pairs, and
    an outer one, in which it has K or more. Both move towards the K-th difference,
    until the pairs between them are so few that they are listed and sorted.

    Attributes
    ----------
    inner, outer : Ranges
    below, above : ndarray of shape (G,)
        The thresholds of the inner and the outer ranges.
    passed : ndarray of shape (G,)
        The weight of the pairs in the inner ranges.
    rank, total : ndarray of shape (G,)
        The wanted weight K, and the weight of all pairs.
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
        self.inner = matching.empty
        self.outer = self.outer.where((total > 0)[self.group], self.inner)
        self.total = total
        self.rank = wanted_rank(total, n_pairs, quantile, weight)
        # No difference is negative.
        self.below = np.full(self.n_groups, np.nextafter(0.0, -1.0))
        self.above = np.where(total > 0, np.inf, np.nan)
        self.passed = np.zeros(self.n_groups)

    def _weigh(self, ranges: Ranges) -> Array:
        """Return the weight of the pairs of each group in ranges, shape (G,)."""
        rows, focal = self.matching.members.rows, self.weight.focal
        count = ranges.weigh(self.weight.partner, rows)
        count = times(count, None if focal is None else focal[rows])
        members = self.matching.members
        return np.bincount(members.cells.group, members.sums(count), self.n_groups)

    def thresholds(self) -> Array:
        """Return the thresholds of all groups, NaN for one without pairs."""
        limit = max(3 * self.group.size, _SAMPLE)
        rng, stuck = np.random.default_rng(0), False
        while (between := self._between().sum()) > limit:
            for guess in self._guesses(rng, stuck):
                self._try(guess)
                if (left := self._between().sum()) <= limit:
                    break
            stuck = left > between / 2
        return self._written()

    def _between(self) -> Array:
        """Return the number of rows between both ranges of each membership."""
        outer, inner = self.outer, self.inner
        return (outer.high - outer.low) - (inner.high - inner.low)

    def _try(self, thresholds: Array) -> None:
        """Make ranges within thresholds the outer or the inner ones of each group."""
        thresholds = np.fmax(thresholds, self.below)
        thresholds = np.where(self._done, self.above, thresholds)
        ranges = self.matching.windows(thresholds, self.inner)
        weight = self._weigh(ranges)
        enough = (weight >= self.rank) & (self.total > 0)
        nearer = enough & (thresholds < self.above)
        self.outer = ranges.where(nearer[self.group], self.outer)
        self.inner = self.inner.where(enough[self.group], ranges)
        self.above = np.where(nearer, thresholds, self.above)
        self.below = np.where(enough, self.below, thresholds)
        self.passed = np.where(enough, self.passed, weight)
        self.inner = self.outer.where(self._done[self.group], self.inner)

    @property
    def _done(self) -> Array:
        """Whether a group has no pairs between its ranges, or all of one difference."""
        return np.isnan(self.above) | (np.nextafter(self.below, np.inf) == self.above)

    def _guesses(self, rng: np.random.Generator, stuck: bool) -> Iterator[Array]:
        """Yield thresholds above and below the wanted ones, from a sample of pairs."""
        membership, differences = self._sample(rng, stuck)
        group = self.group[membership]
        order = order_rows(group, -differences)
        differences = np.append(differences[order], np.inf)
        ends = np.searchsorted(group[order], np.arange(self.n_groups + 1))
        number = np.diff(ends)
        outside = self._weigh(self.outer) - self.passed
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip((self.rank - self.passed) / outside, 0, 1)
            share[outside == 0] = 0.0
            # The sample is a lattice over rows and their ranges, whose shares of pairs
            # are about ten times as accurate as those of equally many random pairs.
            margin = np.sqrt(share * (1 - share) / number) + 4 / number
            low = np.floor((share - margin) * number)
            high = np.ceil((share + margin) * number)
        some = number > 0
        first, last = some & (low >= 0), some & (high < number)
        place = ends[:-1] + np.where(first, low, 0).astype(np.int64)
        lowest = np.where(first, differences[place], self.below)
        place = ends[:-1] + np.where(last, high, 0).astype(np.int64)
        highest = np.where(last, differences[place], self.above)
        yield highest  # which alone is enough where few pairs are wanted
        yield np.where(first, np.nextafter(lowest, -np.inf), self.below)
        if stuck:  # a few heavy differences, or a sample too small to say more
            median = np.minimum(share * number, number - 1)
            place = ends[:-1] + np.where(some, median, 0).astype(np.int64)
            yield lowest
            yield np.where(some, differences[place], self.below)
            yield np.nextafter(highest, -np.inf)

    def _sample(self, rng: np.random.Generator, stuck: bool) -> tuple[Array, Array]:
        """Return memberships and differences of a sample of the pairs in between."""
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
        # Rows of the group itself are no partners, and may be most of those between.
        # Where they are too many to be listed, they have to be cut off as well.
        members = self.matching.members
        if stuck:
            no_pair = members.rows[row] == place
        else:
            no_pair = members.contain(place, self.group[row])
        other = np.flatnonzero(~no_pair)
        return row[other], self._differences(row[other], place[other])

    def _differences(self, membership: Array, place: Array) -> Array:
        score = self.matching.ranking.score
        origin = score[self.matching.members.rows[membership]]
        with np.errstate(over="ignore"):
            return np.abs(score[place] - origin)

    def _written(self) -> Array:
        """Return the wanted difference of each group from a list of the pairs left."""
        members, rows, places = self.matching.members, [], []
        sides = [(self.outer.low, self.inner.low), (self.inner.high, self.outer.high)]
        for begin, end in sides[: 2 if self.matching.direction == "both" else 1]:
            row, place = rows_of_ranges(begin, np.maximum(end - begin, 0))
            other = ~members.contain(place, self.group[row])
            rows.append(row[other])
            places.append(place[other])
        row, place = np.concatenate(rows), np.concatenate(places)
        weight = self.weight.of_pairs(members.rows[row], place)
        rank, differences = self.rank - self.passed, self._differences(row, place)
        return smallest_of_groups(
            self.group[row], differences, weight, rank, self.above
        )


def smallest_of_groups(
    group: Array, differences: Array, weight: Array | None, rank: Array, others: Array
) -> Array:
    """Return the first difference of each group at which its weight reaches `rank`.

    Groups without pairs get the value in `others`.
    """
    smallest, order = others.copy(), stable_order(group)
    ends = np.searchsorted(group[order], np.arange(rank.size + 1))
    for number in np.flatnonzero(np.diff(ends)):
        some = order[ends[number] : ends[number + 1]]
        mass = None if weight is None else weight[some]
        smallest[number] = weighted_rank(differences[some], mass, rank[number])
    return smallest


def wanted_rank(
    total: Array, n_pairs: Any, quantile: float | None, weight: PairWeight
) -> Array:
    """Return the number K of pairs wanted of each group, or their weight, shape (G,).

    It is `n_pairs`, or else the share `quantile` of `total`, but at most `total`.
    """
    rank: Array = np.minimum(n_pairs if quantile is None else quantile * total, total)
    return rank * _ROUNDED if weight.given else rank


def weighted_rank(values: Array, weight: Array | None, rank: float) -> float:
    """Return the smallest value whose cumulated weight reaches the rank."""
    if weight is None:
        place = min(max(math.ceil(rank), 1), values.size) - 1
        return float(np.partition(values, place)[place])
    order = np.argsort(values)
    place = int(np.searchsorted(np.cumsum(weight[order]), rank))
    return float(values[order[min(place, values.size - 1)]])
