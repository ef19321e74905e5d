"""Matched pairs by local regression: the difference of outcomes at equal scores.

A pair at score difference d = s_j - s_i has the kernel weight ``K = 1 - |d| / epsilon``
and adds to six columns: K v, 1, K, K u, K u², K u v, with v = y_i - y_j and
u = d / epsilon; for a parabola in place of a line also to K u³, K u⁴, K u² v. These are
sums of powers of u times powers of the outcomes over a range of partners, which come
from prefix sums. Powers of large scores would cancel in these sums: so scores are cut
into intervals ("cells") about as wide as the threshold, and powers are taken of the
distance to the middle of the interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from ..._estimates.storage import stored
from ..._inputs.groups import starts_of_runs
from ..._inputs.ranking import Ranking
from ..._inputs.validation import Array
from .cluster_rows import times
from .matched import MatchedPairs, PartnerRanges

#: If the variance of u, in units of the threshold, is smaller, u does not vary.
_SAME = 1e-12
#: A smaller mean of the kernel is rounding of pairs at the threshold, whose kernel is
#: 0.
_NO_WEIGHT = 1e-9
#: Focal rows whose sums are held at once.
_CHUNK = 1 << 14
#: The largest power of 2 in double precision.
_LARGEST_POWER = 1023


@stored("LocalLinear")
@dataclass(frozen=True)
class LocalLinear:
    """The value at u = 0 of the weighted regression of v on u, by bucket."""

    n_buckets: int = 1

    def by_bucket(self, by_group: Array, shared: Array) -> tuple[Array, Array]:
        """Return intercepts and numbers of pairs, shape (..., G, B)."""
        size = self.n_buckets
        y0, count, s0, s1, s2, y1 = (
            by_group[..., block * size : (block + 1) * size] for block in range(6)
        )
        determinant = s0 * s2 - s1 * s1
        value = np.full(s0.shape, np.nan, dtype=s0.dtype)
        valid = (count.real > 0) & (s0.real > _NO_WEIGHT * count.real)
        # Where all pairs are tied, their mean is the value at 0.
        tied = valid & (s2.real <= _SAME * s0.real)
        np.divide(y0, s0, out=value, where=tied)
        varied = valid & (determinant.real > _SAME * s0.real**2)
        np.divide(s2 * y0 - s1 * y1, determinant, out=value, where=varied)
        return value, count

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the intercepts, shape (..., G), of one bucket."""
        return self.by_bucket(by_group, shared)[0][..., 0]


@stored("LocalQuadratic")
@dataclass(frozen=True)
class LocalQuadratic(LocalLinear):
    """The value at u = 0 of the weighted regression of v on u and u², by bucket.

    At the same bandwidth it is the local linear value minus its estimated bias.
    """

    def by_bucket(self, by_group: Array, shared: Array) -> tuple[Array, Array]:
        """Return intercepts and numbers of pairs, shape (..., G, B)."""
        size = self.n_buckets
        y0, count, s0, s1, s2, y1, s3, s4, y2 = (
            by_group[..., block * size : (block + 1) * size] for block in range(9)
        )
        a, b, c = s2 * s4 - s3 * s3, s2 * s3 - s1 * s4, s1 * s3 - s2 * s2
        determinant = s0 * a + s1 * b + s2 * c
        value, _ = super().by_bucket(by_group, shared)
        value[~(s2.real <= _SAME * s0.real)] = np.nan
        weighted = (count.real > 0) & (s0.real > _NO_WEIGHT * count.real)
        varied = weighted & (determinant.real > _SAME * s0.real**3)
        np.divide(a * y0 + b * y1 + c * y2, determinant, out=value, where=varied)
        return value, count


def linear_minus_quadratic(by_group: Array, shared: Array) -> Array:
    """Return the estimated biases of local linear values, (..., G), of one bucket."""
    return LocalLinear()(by_group, shared) - LocalQuadratic()(by_group, shared)


def kernel_columns(value: Array, difference: Array, epsilon: Array) -> Array:
    """Return the columns that pairs add to, those of a line first, shape (9, k)."""
    scaled = (epsilon > 0) & (epsilon < np.inf)
    u = difference / np.where(scaled, epsilon, 1.0)
    kernel = 1 - scaled * np.abs(u)
    weighted, square = kernel * value, kernel * u * u
    line = [weighted, np.ones(u.size), kernel, kernel * u, square, weighted * u]
    return np.stack([*line, square * u, square * u * u, weighted * u * u])


@dataclass(frozen=True)
class LinearPairs(MatchedPairs):
    """Pairs within a threshold with the columns of a local linear regression."""

    n_columns = 6
    mirror = np.array([-1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
    degree = 1

    def _range_columns(self, ranges: PartnerRanges) -> Array:
        """Return the columns of focal rows over their partners, (n_columns, k).

        Cells are as wide as the threshold rounded up to a power of 2, so that many
        groups share few widths, and prefix sums are computed once for each width.
        """
        low, high, focal = ranges.low, ranges.high, ranges.focal
        limits = self._epsilons[ranges.group]
        out = np.zeros((self.n_columns, low.size))
        scale = np.where((limits > 0) & (limits < np.inf), limits, 1.0)
        units = np.exp2(np.minimum(np.ceil(np.log2(scale)), _LARGEST_POWER))
        units[np.isinf(limits)] = np.inf  # no cells
        _, below = self.ranking.tie_bounds(focal)
        below, wanted = np.clip(ranges.place(below), low, high), high > low
        for width in np.unique(units[wanted]):
            chosen, sloped = np.flatnonzero(wanted & (units == width)), width < np.inf
            sums = _RangeSums.of(self, float(width), ranges.rows)
            for start in range(0, chosen.size, _CHUNK):
                at = chosen[start : start + _CHUNK]
                ratio, y = sums.unit / scale[at], self.y[focal[at]]
                # The kernel falls with u above the focal row, and rises below it.
                for slope, begin, end in ((1, low, below), (-1, below, high)):
                    if (begin[at] < end[at]).any():
                        powers = sums.between(begin[at], end[at], focal[at])
                        out[:, at] += _columns(
                            powers, y, ratio, slope * sloped, self.degree
                        )
        return out


@dataclass(frozen=True)
class QuadraticPairs(LinearPairs):
    """Pairs within a threshold with the columns of a local quadratic regression."""

    n_columns = 9
    mirror = np.array([-1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    degree = 2


def _columns(
    powers: dict[tuple[int, int], Array], y: Array, ratio: Array, r: int, degree: int
) -> Array:
    """Return the columns from sums of powers of u, where the kernel is ``1 - r u``.

    `powers` are in units of the cells; `ratio` is this unit over the threshold.
    """
    scale = _powers(ratio, degree)
    u = [powers[p, 0] * scale[p] for p in range(2 * degree + 2)]
    v = [y * u[p] - powers[p, 1] * scale[p] for p in range(degree + 2)]
    kernel_u = [u[p] - r * u[p + 1] for p in range(2 * degree + 1)]
    kernel_v = [v[p] - r * v[p + 1] for p in range(degree + 1)]
    columns = [kernel_v[0], u[0], *kernel_u[:3], kernel_v[1]]
    return np.stack([*columns, *kernel_u[3:], *kernel_v[2:]])


def _powers(values: Array, degree: int) -> list[Array]:
    """Return the powers 0 to ``2 * degree + 1`` by multiplication, which is fast."""
    powers = [np.ones(values.size), values]
    for _ in range(2 * degree):
        powers.append(powers[-1] * values)
    return powers


class _PrefixSums(NamedTuple):
    """Sums over all rows before each row, and the rounding errors of these sums.

    Sums of ranges of rows are then as exact as if there were no other rows.
    """

    sums: Array
    lost: Array

    @classmethod
    def of(cls, values: Array) -> _PrefixSums:
        """Return the prefix sums of the values of rows."""
        sums, lost = np.zeros((2, values.size + 1))
        np.cumsum(values, out=sums[1:])
        # The rounding error of each addition, as Knuth's TwoSum has it, in few arrays.
        before, error = sums[:-1], lost[1:]
        added = sums[1:] - before
        np.subtract(sums[1:], added, out=error)
        np.subtract(before, error, out=error)
        error += np.subtract(values, added, out=added)
        np.cumsum(error, out=error)
        return cls(sums, lost)

    def between(self, low: Array, high: Array) -> Array:
        """Return the sums of rows [low, high)."""
        total: Array = self.sums[high] - self.sums[low]
        total += self.lost[high] - self.lost[low]
        return total


@dataclass(frozen=True)
class _RangeSums:
    """Sums of powers over ranges of a list of rows, cell by cell."""

    ranking: Ranking
    unit: float
    score: Array
    distance: Array
    ends: Array
    before: dict[tuple[int, int], _PrefixSums]
    degree: int

    @classmethod
    def of(cls, pairs: LinearPairs, width: float, rows: Array | slice) -> _RangeSums:
        """Return prefix sums over the rows that are listed, in cells of a width.

        With an infinite width each query is one cell.
        """
        ranking, unit, before = pairs.ranking, 1.0, {}
        score, query = ranking.score[rows], ranking.query[rows]
        if width < np.inf:
            unit, cell = width, np.floor(score / width)
            middle = (cell + 0.5) * unit
        else:
            cell, ends = np.zeros(score.size), ranking.score[ranking.starts[:-1]]
            middle = ((ends + ranking.score[ranking.starts[1:] - 1]) / 2)[query]
        distance = (score - middle) / unit
        of_queries = np.append(starts_of_runs(query), score.size)
        starts = np.append(starts_of_runs(cell, of_queries), score.size)
        y, weight = pairs.y[rows], pairs.item_weight
        weight = None if weight is None else weight[rows]
        power = _powers(distance, pairs.degree)
        # The powers (p, q) of the sums of u**p y**q.
        keys = [(p, 0) for p in range(2 * pairs.degree + 2)]
        for p, q in keys + [(p, 1) for p in range(pairs.degree + 2)]:
            values = times(power[p] * y if q else power[p], weight)
            before[p, q] = _PrefixSums.of(values)
        ends = np.repeat(starts[1:], np.diff(starts))
        return cls(ranking, unit, score, distance, ends, before, pairs.degree)

    def _pieces(self, low: Array, high: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the pieces of ranges within cells: range number, begin and end."""
        row = np.flatnonzero(low < high)
        start, stop = low[row], high[row]
        while row.size:
            end = np.minimum(self.ends[start], stop)
            yield row, start, end
            more = np.flatnonzero(end < stop)
            row, start, stop = row[more], end[more], stop[more]

    def between(
        self, low: Array, high: Array, focal: Array
    ) -> dict[tuple[int, int], Array]:
        """Return Σ u**p y**q over rows [low, high), with u measured from `focal`."""
        sums = {key: np.zeros(low.size) for key in self.before}
        for row, start, end in self._pieces(low, high):
            inside = {key: of.between(start, end) for key, of in self.before.items()}
            origin, first = self.ranking.score[focal[row]], self.score[start]
            origin = (first - origin) / self.unit - self.distance[start]
            shift = _powers(origin, self.degree)
            for p, q in self.before:
                power_sum = inside[p, q]
                for k in range(p):
                    power_sum = power_sum + comb(p, k) * shift[p - k] * inside[k, q]
                sums[p, q][row] += power_sum
        return sums
