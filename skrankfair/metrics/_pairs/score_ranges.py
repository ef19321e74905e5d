"""Matched pairs by ranges: no pair is written down to be summed.

For a focal item the partners within a threshold are one range of the list of all
possible partners, ordered as they are ranked. The range is found by a galloping search
that only the rows with longer ranges go on with; sums over it are differences of
prefix sums, and sums for the partners come from +1 at its start and -1 past its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._inputs.ranking import Ranking
from ..._inputs.validation import Array
from .prefix_sums import exclusive_cumsum, sum_between, times

#: Average length of a query from which guesses by `np.searchsorted` are worth a loop.
_LONG = 1000
_SAMPLE = 1 << 16
#: Of a rank in a sum of weights, which rounding must not raise above a pair.
ROUNDED = 1 - 1e-12
#: Multiples of the golden ratio fill the unit interval evenly.
GOLDEN = (math.sqrt(5) - 1) / 2


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

    focal: Array | None = None  # of each focal row; None is one
    partner: Array | None = None  # of each partner; None is one

    @property
    def given(self) -> bool:
        """Whether some pair may count otherwise than once."""
        return self.focal is not None or self.partner is not None

    def of(self, focal: Array, partners: Array) -> PairWeight:
        """Return the weights of some of the rows on each side."""
        return PairWeight(
            None if self.focal is None else self.focal[focal],
            None if self.partner is None else self.partner[partners],
        )

    def total(self, window: tuple[Array, Array]) -> float:
        """Return the weight of all pairs in the range of each focal row."""
        amount = sum_between(*window, self.partner)
        return float(amount.sum() if self.focal is None else amount @ self.focal)

    def of_pairs(self, focal: Array, partner: Array) -> Array | None:
        """Return the weight of each of some pairs, or None if all count once."""
        if not self.given:
            return None
        weight = np.ones(focal.size) if self.focal is None else self.focal[focal]
        return times(weight, None if self.partner is None else self.partner[partner])


@dataclass(frozen=True)
class Matching:
    """Possible pairs of focal rows with partners of the same query."""

    ranking: Ranking
    #: Which ranked rows are focal items: shape (n,), bool, or their numbers, in order.
    focal: Array
    #: Shape (n,), bool. Which ranked rows are partners.
    partners: Array
    #: {"below", "both"}. "below": the partner's score is at least the focal item's;
    #: "both": any.
    direction: str

    @cached_property
    def rows(self) -> Array:
        """Ranked rows of the focal items."""
        return np.flatnonzero(self.focal) if self.focal.dtype == bool else self.focal

    @cached_property
    def partner_rows(self) -> Array:
        """Ranked rows of the partners."""
        return np.flatnonzero(self.partners)

    @cached_property
    def partner_score(self) -> Array:
        """Scores of the partners."""
        score = self.ranking.score
        return score if self._every_row else score[self.partner_rows]

    @cached_property
    def _every_row(self) -> bool:
        """Whether all rows are partners."""
        return bool(self.partners.all())

    def _before(self, *places: Array) -> list[Array]:
        """Return how many partners are before some rows."""
        if not self._every_row:
            before = exclusive_cumsum(self.partners)
            places = tuple(before[place] for place in places)
        return [place.astype(np.int64) for place in places]

    @cached_property
    def origin(self) -> Array:
        """Scores of the focal items."""
        return self.ranking.score[self.rows]

    @cached_property
    def _places(self) -> tuple[Array, Array, Array]:
        """First partner and first focal row of each query; `below`."""
        starts = self.ranking.starts
        # Past the row itself, with ties or without: all rows may be partners too.
        first, below = self._before(starts, self.ranking.tie_bounds(self.rows)[1])
        return first, np.searchsorted(self.rows, starts), below

    @property
    def _edges(self) -> tuple[Array, Array]:
        return self._places[:2]

    def _spread(self, by_query: Array) -> Array:
        return np.repeat(by_query, np.diff(self._edges[1]))

    @cached_property
    def first(self) -> Array:
        """For each focal row, the first partner of its query."""
        return self._spread(self._edges[0][:-1])

    @property
    def below(self) -> Array:
        """For each focal row, the first partner with a lower score."""
        return self._places[2]

    @property
    def level(self) -> Array:
        """For each focal row, the first partner with the same score or a lower one."""
        if not self.ranking.has_ties:
            return self.below
        return self._before(self.ranking.tie_bounds(self.rows)[0])[0]

    @property
    def end(self) -> Array:
        """For each focal row, one past the last partner of its query."""
        return self._spread(self._edges[0][1:])

    @property
    def outermost(self) -> tuple[Array, Array]:
        """The range [low, high) of all possible partners of each focal row."""
        return self.first, self.below if self.direction == "below" else self.end

    @np.errstate(over="ignore")  # infinitely far apart is far
    def windows(self, threshold: float | Array) -> tuple[Array, Array]:
        """Return the range [low, high) of partners within the threshold.

        One threshold, or one of each focal row.
        """
        empty = ~(np.asarray(threshold) >= 0)  # no difference is negative
        if empty.all():
            return self.below, self.below
        if empty.any():
            low, high = self.windows(np.where(empty, 0.0, threshold))
            return np.where(empty, self.below, low), np.where(empty, self.below, high)
        start = self._guess(threshold, above=True)
        low = reach(self.partner_score, start, self.first, self.origin, threshold, -1)
        if self.direction == "below":
            return low, self.below
        start = self._guess(threshold, above=False)
        high = reach(self.partner_score, start, self.end - 1, self.origin, threshold, 1)
        return low, high + 1

    def _guess(self, threshold: float | Array, above: bool) -> Array:
        """Return a place within reach to search from: close to the end in long lists.

        The sum of a score and the threshold rounds, so the guess keeps a little clear
        of the end, and the search goes on from there with exact differences.
        """
        start = self.below if above else self.below - 1
        if self.ranking.n_rows < _LONG * self.ranking.n_queries:
            return start
        finite = np.minimum(threshold, np.finfo(float).max)
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
        for query in range(self.ranking.n_queries):
            (lo, hi), (a, b) = (edge[query : query + 2] for edge in self._edges)
            values = -self.partner_score[lo:hi]
            place[a:b] = lo + np.searchsorted(
                values, target[a:b], side="left" if above else "right"
            )
        return np.minimum(place, start) if above else np.maximum(place - 1, start)

    @np.errstate(over="ignore")
    def kth_smallest(
        self,
        n_pairs: int | None,
        quantile: float | None,
        weight: PairWeight,
    ) -> float:
        """Return the K-th smallest score difference of the possible pairs, or NaN.

        K is `n_pairs`, at most all of them, or else the share `quantile` of them (of
        their weight), rounded up.
        """
        outer, weight = self.outermost, weight.of(self.rows, self.partner_rows)
        total = weight.total(outer)
        if total == 0:
            return float("nan")
        rank = total if n_pairs is None else min(n_pairs, total)
        if quantile is not None:
            rank = min(quantile * total, total)
        if weight.given:
            rank *= ROUNDED
        inner, passed = (self.below, self.below), 0.0
        limit = max(self.ranking.n_rows // 2, 1 << 16)
        rng, stuck, below_all = np.random.default_rng(0), False, -1.0
        while (between := n_pairs_of(outer) - n_pairs_of(inner)) > limit:
            low, high = self._bracket(outer, inner, rank - passed, weight, rng)
            thresholds = [np.nextafter(low, -np.inf), low, np.nextafter(high, -np.inf)]
            for threshold in [*thresholds[:: 1 if stuck else 3], high]:
                window = self.windows(threshold)
                reached = weight.total(window)
                if reached >= rank:
                    outer = window
                    break
                inner, passed, below_all = window, reached, threshold
            if outer is window and np.nextafter(below_all, np.inf) == threshold:
                return float(threshold)  # all pairs between have this difference
            # A few heavy differences: look on both sides of each.
            stuck = n_pairs_of(outer) - n_pairs_of(inner) > between / 2
        rows, places, differences = self.between(outer, inner)
        return weighted_rank(differences, weight.of_pairs(rows, places), rank - passed)

    def _bracket(
        self,
        outer: tuple[Array, Array],
        inner: tuple[Array, Array],
        rank: float,
        weight: PairWeight,
        rng: np.random.Generator,
    ) -> tuple[float, float]:
        """Return thresholds around the wanted one, guessed from a sample of pairs."""
        row, place, sample = self.sampled(outer, inner, _SAMPLE, rng.random())
        # The lattice is close, hence the narrow margin below.
        order = np.argsort(sample)
        sample = sample[order]
        mass = weight.of_pairs(row[order], place[order])
        mass = np.cumsum(np.ones(_SAMPLE) if mass is None else mass)
        mass /= mass[-1]
        share = min(rank / (weight.total(outer) - weight.total(inner)), 1.0)
        margin = 0.5 * math.sqrt(share * (1 - share) / _SAMPLE) + 4 / _SAMPLE
        ends = np.searchsorted(mass, [share - margin, share + margin])
        low, high = sample[np.clip(ends, 0, _SAMPLE - 1)]
        return float(low), float(high)

    def sampled(
        self,
        outer: tuple[Array, Array],
        inner: tuple[Array, Array],
        size: int,
        shift: float = 0.5,
    ) -> tuple[Array, Array, Array]:
        """Return some pairs between two ranges: row, partner and difference.

        They are a lattice over rows and their ranges: its shares of pairs are some ten
        times closer than those of as many random pairs. `shift`, in [0, 1), moves it.
        """
        left, right = inner[0] - outer[0], outer[1] - inner[1]
        counts = np.cumsum(left + right)
        step = np.arange(size)
        drawn = ((step + shift) * (counts[-1] / size)).astype(np.int64)
        row = np.searchsorted(counts, drawn, side="right")
        offset = (step * GOLDEN % 1.0 * (left + right)[row]).astype(np.int64)
        place = outer[0][row] + offset
        place += np.where(offset >= left[row], inner[1][row] - inner[0][row], 0)
        return row, place, np.abs(self.partner_score[place] - self.origin[row])

    def between(
        self, outer: tuple[Array, Array], inner: tuple[Array, Array]
    ) -> tuple[Array, Array, Array]:
        """Write down the few pairs between two ranges: row, partner and difference."""
        rows, places, differences = [], [], []
        for begin, end in ((outer[0], inner[0]), (inner[1], outer[1])):
            count = np.maximum(end - begin, 0)
            row = np.repeat(np.arange(count.size), count)
            offset = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
            place = begin[row] + offset
            rows.append(row)
            places.append(place)
            differences.append(np.abs(self.partner_score[place] - self.origin[row]))
        return np.concatenate(rows), np.concatenate(places), np.concatenate(differences)


def n_pairs_of(window: tuple[Array, Array]) -> int:
    """Return how many pairs are in the range of each focal row."""
    return int((window[1] - window[0]).sum())


def weighted_rank(values: Array, weight: Array | None, rank: float) -> float:
    """Return the smallest value whose cumulated weight reaches the rank."""
    if weight is None:
        place = min(max(math.ceil(rank), 1), values.size) - 1
        return float(np.partition(values, place)[place])
    order = np.argsort(values)
    mass = np.cumsum(weight[order])
    place = int(np.searchsorted(mass, rank))
    return float(values[order[min(place, values.size - 1)]])
