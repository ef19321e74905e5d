"""Matched pairs by local linear regression: the difference of outcomes at equal scores.

A pair at score difference d = s_j - s_i has the kernel weight ``K = 1 - |d| / epsilon``
and adds to six columns: K v, 1, K, K u, K u², K u v, with v = y_i - y_j and
u = d / epsilon. These are sums of powers of u times powers of the outcomes over a
range of partners, which come from prefix sums. So that nothing cancels, the scores are
cut into cells as wide as the threshold, and powers are taken of the distance to the
middle of the cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import NamedTuple

import numpy as np

from ..._estimates.storage import stored
from ..._inputs.cells import Memberships
from ..._inputs.validation import Array
from .matched_pairs import MatchedPairs, PairColumns
from .prefix_sums import PrefixSums, times
from .score_ranges import Matching
from .sources import FocalSums

#: The sums of a pair are linear in these: u**p * v**q.
_MONOMIALS = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1))
_MIRROR = np.diag([-1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
#: Smaller variances of u, whose scale is the threshold, mean that it does not vary.
_SAME = 1e-12
#: A smaller mean of the kernel is what rounding leaves of pairs at the threshold.
_NO_WEIGHT = 1e-9
#: Rows whose sums are held at once.
_CHUNK = 1 << 14

#: Σ u**p y**q by (p, q), an array of rows each.
Sums = dict[tuple[int, int], Array]


def scale_of(epsilon: float) -> float:
    """Return the unit of score differences: the threshold, unless 0 or infinite."""
    return epsilon if 0 < epsilon < np.inf else 1.0


def _kernel_slope(epsilon: float) -> float:
    """Return r of the weight ``1 - r u``: 0 where the threshold is no scale."""
    return 1.0 if 0 < epsilon < np.inf else 0.0


def columns_of_monomials(epsilon: float, unit: float, sign: float) -> Array:
    """Return the matrix from the monomials of ``d / unit`` to the six columns.

    `sign` is that of d: the kernel is ``1 - r |u|``.
    """
    ratio, r = unit / scale_of(epsilon), sign * _kernel_slope(epsilon)
    matrix = np.zeros((6, len(_MONOMIALS)))
    matrix[1, 0] = 1.0
    for column, power, q in ((2, 0, 0), (3, 1, 0), (4, 2, 0), (0, 0, 1), (5, 1, 1)):
        matrix[column, _MONOMIALS.index((power, q))] = ratio**power
        matrix[column, _MONOMIALS.index((power + 1, q))] = -r * ratio ** (power + 1)
    return matrix


@stored("LocalLinear")
@dataclass(frozen=True)
class LocalLinear:
    """The value at u = 0 of the weighted regression of v on u, by bucket."""

    n_buckets: int = 1

    def parts(self, by_group: Array, shared: Array) -> tuple[Array, Array]:
        """Return intercepts and numbers of pairs, shape (..., G, B)."""
        size = self.n_buckets
        y0, count, s0, s1, s2, y1 = (
            by_group[..., block * size : (block + 1) * size] for block in range(6)
        )
        determinant = s0 * s2 - s1 * s1
        value = np.full(s0.shape, np.nan, dtype=s0.dtype)
        there = (count.real > 0) & (s0.real > _NO_WEIGHT * count.real)
        # Where all pairs are tied, their mean is the value at 0.
        tied = there & (s2.real <= _SAME * s0.real)
        np.divide(y0, s0, out=value, where=tied)
        varied = there & (determinant.real > _SAME * s0.real**2)
        np.divide(s2 * y0 - s1 * y1, determinant, out=value, where=varied)
        return value, count

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the intercepts, shape (..., G), of one bucket."""
        return self.parts(by_group, shared)[0][..., 0]


class LinearColumns(PairColumns):
    """The six columns that a pair adds to in a local linear regression."""

    mirror = _MIRROR

    def of_pairs(
        self, value: Array, difference: Array, epsilon: float | Array
    ) -> Array:
        """Return the columns of pairs, shape (k, 6)."""
        scaled = (epsilon > 0) & (epsilon < np.inf)
        u = difference / np.where(scaled, epsilon, 1.0)
        kernel = 1 - scaled * np.abs(u)
        weighted = kernel * value
        return np.stack(
            [
                weighted,
                np.ones(u.size),
                kernel,
                kernel * u,
                kernel * u * u,
                weighted * u,
            ],
            axis=1,
        )


class _Piece(NamedTuple):
    """Parts of ranges that lie in one cell each."""

    row: Array  # which focal row
    start: Array  # the part is [start, end) of the partners
    end: Array
    distance: Array  # score of the focal row minus the middle of the cell


@dataclass(frozen=True)
class _Ranges:
    """Ranges of partners of focal rows, in cells of scores as wide as one unit.

    Unless the ranges are bounded, a whole query is one cell.
    """

    matching: Matching
    low: Array
    high: Array
    unit: float
    bounded: bool
    y: Array
    item_weight: Array | None  # shape (n,) or None

    def _weight(self, rows: Array) -> Array | None:
        return None if self.item_weight is None else self.item_weight[rows]

    @cached_property
    def _cells(self) -> tuple[Array, Array]:
        """Distance of each partner to the middle of its cell, and the cell's end."""
        ranking, rows = self.matching.ranking, self.matching.partner_rows
        score, query = ranking.score[rows], ranking.query[rows]
        new = query[1:] != query[:-1]
        if self.bounded:
            cell = np.floor(score / self.unit)
            new |= cell[1:] != cell[:-1]
        starts = np.concatenate([[0], np.flatnonzero(new) + 1, [rows.size]])
        ends = np.repeat(starts[1:], np.diff(starts))
        if self.bounded:
            middle = (cell + 0.5) * self.unit
        else:  # one cell per query
            middle = np.repeat(
                (score[starts[:-1]] + score[starts[1:] - 1]) / 2, np.diff(starts)
            )
        score -= middle
        score /= self.unit
        return score, ends

    def _pieces(self, first: int, last: int) -> Iterator[_Piece]:
        """Cut the ranges of some focal rows where cells end."""
        t, ends = self._cells
        score = self.matching.partner_score
        row = first + np.flatnonzero(self.low[first:last] < self.high[first:last])
        start, stop = self.low[row], self.high[row]
        while row.size:
            end = np.minimum(ends[start], stop)
            distance = (self.matching.origin[row] - score[start]) / self.unit
            distance += t[start]
            yield _Piece(row, start, end, distance)
            more = np.flatnonzero(end < stop)
            row, start, stop = row[more], end[more], stop[more]

    def of_focal(self, powers: Sequence[int]) -> Iterator[tuple[slice, Sums]]:
        """Yield some focal rows and their Σ_j u**p y_j**q, p up to ``powers[q]``."""
        before = self._prefix_sums(powers)
        own = self._weight(self.matching.rows)
        for rows in _chunks(self.low.size):
            sums = {key: np.zeros(rows.stop - rows.start) for key in _keys(powers)}
            for piece in self._pieces(rows.start, rows.stop):
                start, end = piece.start, piece.end
                inside = {key: c.between(start, end) for key, c in before.items()}
                if own is None:
                    inside[0, 0] = (end - start).astype(float)
                shift = _powers(-piece.distance, max(powers))
                place = piece.row - rows.start
                for (p, q), total in sums.items():
                    part = inside[p, q]
                    for k in range(p):
                        term = shift[p - k] * inside[k, q]
                        term *= comb(p, k)
                        part = part + term
                    total[place] += part
            if own is not None:
                for total in sums.values():
                    total *= own[rows]
            yield rows, sums

    def _prefix_sums(self, powers: Sequence[int]) -> dict[tuple[int, int], PrefixSums]:
        """Return Σ t_j**k y_j**q over the partners before each, t from the middle."""
        t = _powers(self._cells[0], max(powers))
        y = _powers(self.y[self.matching.partner_rows], len(powers) - 1)
        weight = self._weight(self.matching.partner_rows)
        apart = self.matching.ranking.n_queries > 1
        before = {}
        for key in _keys(powers)[weight is None :]:
            values = times(_product(t, y, *key), weight)
            before[key] = PrefixSums.of(values, apart=apart)
        return before

    def totals(
        self, powers: Sequence[int], weight: Array | None
    ) -> dict[tuple[int, int], float]:
        """Return Σ u**p v**q over all pairs, v = y_i - y_j, p up to ``powers[q]``.

        The binomials of u and v are multiplied out: one product of matrices sums, over
        the focal rows, their own powers times the powers of their partners.
        """
        keys = _keys(powers)
        before = np.zeros((len(keys), self._cells[0].size + 1))
        t = _powers(self._cells[0], max(powers))
        y = _powers(self.y[self.matching.partner_rows], len(powers) - 1)
        partner = self._weight(self.matching.partner_rows)
        for sums, key in zip(before, keys, strict=True):
            np.cumsum(times(_product(t, y, *key), partner), out=sums[1:])
        crossed = np.zeros((max(powers) + 1, len(powers), len(keys)))
        for rows in _chunks(self.low.size):
            for piece in self._pieces(rows.start, rows.stop):
                inside = before[:, piece.end]
                inside -= before[:, piece.start]
                ranked = self.matching.rows[piece.row]
                own = np.empty((*crossed.shape[:2], ranked.size))
                own[0, 0] = 1.0 if weight is None else weight[ranked]
                own[0, 0] = times(own[0, 0], self._weight(ranked))
                for q in range(1, len(powers)):
                    np.multiply(own[0, q - 1], self.y[ranked], out=own[0, q])
                for p in range(1, len(own)):
                    np.multiply(own[p - 1], -piece.distance, out=own[p])
                crossed += own @ inside.T
        return {
            (p, q): sum(
                comb(p, k) * comb(q, r) * (-1.0) ** r * crossed[p - k, q - r, column]
                for column, (k, r) in enumerate(keys)
                if k <= p and r <= q
            )
            for p, q in keys
        }

    def of_partners(self, powers: Sequence[int]) -> Iterator[tuple[slice, Sums]]:
        """Yield some partners and their Σ_i u**p y_i**q over the ranges with them."""
        size = self._cells[0].size
        at = {key: np.zeros(size + 1) for key in _keys(powers)}
        y = self.y[self.matching.rows]
        weight = self._weight(self.matching.rows)
        own = self._weight(self.matching.partner_rows)
        for piece in self._pieces(0, self.low.size):
            distance = _powers(piece.distance, max(powers))
            outcome = _powers(y[piece.row], len(powers) - 1)
            for (k, q), change in at.items():
                part = _product(distance, outcome, k, q)
                part = part if weight is None else part * weight[piece.row]
                change += np.bincount(piece.start, weights=part, minlength=size + 1)
                change -= np.bincount(piece.end, weights=part, minlength=size + 1)
        for change in at.values():
            np.cumsum(change, out=change)
        for rows in _chunks(size):
            t = _powers(self._cells[0][rows], max(powers))
            inside = {key: change[rows] for key, change in at.items()}
            number = inside[0, 0] if own is not None else np.rint(inside[0, 0])
            sums = {}
            for p, q in _keys(powers):
                total = (-1.0) ** p * inside[p, q]
                for k in range(p):
                    term = t[p - k] * inside[k, q]
                    term *= comb(p, k) * (-1.0) ** k
                    total += term
                # Where there is no pair, what is left of the sums is rounding.
                total[number == 0] = 0.0
                sums[p, q] = total
            sums[0, 0] = number
            if own is not None:
                sums = {key: total * own[rows] for key, total in sums.items()}
            yield rows, sums


def _keys(powers: Sequence[int]) -> list[tuple[int, int]]:
    """Return all (p, q) with p up to ``powers[q]``."""
    return [(p, q) for q, largest in enumerate(powers) for p in range(largest + 1)]


def _chunks(size: int) -> Iterator[slice]:
    for start in range(0, size, _CHUNK):
        yield slice(start, min(start + _CHUNK, size))


def _powers(values: Array, largest: int) -> dict[int, Array]:
    """Return values**k for every k from 1 to the largest, by multiplication."""
    powers = {1: values}
    for k in range(2, largest + 1):
        powers[k] = powers[k - 1] * values
    return powers


def _product(a: dict[int, Array], b: dict[int, Array], k: int, q: int) -> Array:
    """Return a**k b**q."""
    if k and q:
        product: Array = a[k] * b[q]
        return product
    return a[k] if k else b[q] if q else np.ones(a[1].size)


@dataclass(frozen=True)
class LinearPairs(MatchedPairs):
    """Pairs within a threshold with the columns of a local linear regression."""

    mirror = _MIRROR

    def _sides(
        self, matching: Matching, low: Array, high: Array, epsilon: float
    ) -> Iterator[tuple[_Ranges, float]]:
        """Return the ranges above, level with and below the focal row: d's sign."""
        level = np.clip(matching.level, low, high)
        below = np.clip(matching.below, low, high)
        unit = scale_of(epsilon)
        for start, end, sign in (
            (low, level, 1.0),
            (level, below, 0.0),
            (below, high, -1.0),
        ):
            if (start < end).any():
                bounded = epsilon < np.inf
                yield (
                    _Ranges(
                        matching, start, end, unit, bounded, self.y, self.item_weight
                    ),
                    sign,
                )

    def _side_sums(
        self, group: int, matching: Matching, low: Array, high: Array, focal: bool
    ) -> FocalSums:
        """Return the columns of the focal rows, or of the partners."""
        rows = matching.rows if focal else matching.partner_rows
        columns = np.zeros((6, rows.size))
        for some, part in self._column_sums(group, matching, low, high, focal):
            columns[:, some] += part
        value, count, *more = columns
        return FocalSums(rows, value, count, tuple(more))

    def _column_sums(
        self, group: int, matching: Matching, low: Array, high: Array, focal: bool
    ) -> Iterator[tuple[slice, Array]]:
        """Yield some rows of one side and terms of their columns."""
        epsilon = self._epsilon(group)
        rows = matching.rows if focal else matching.partner_rows
        for ranges, sign in self._sides(matching, low, high, epsilon):
            matrix = columns_of_monomials(epsilon, ranges.unit, sign)
            chunks = ranges.of_focal if focal else ranges.of_partners
            for some, sums in chunks((3, 2)):
                _make_level(sums, sign)
                y = self.y[rows[some]]
                columns = np.zeros((6, y.size))
                for place, (p, q) in enumerate(_MONOMIALS):
                    total = _sum_of_powers(y, sums, p, q)
                    if q and not focal:
                        np.negative(total, out=total)  # v is y_i - y_j
                    for column in np.flatnonzero(matrix[:, place]):
                        columns[column] += matrix[column, place] * total
                yield some, columns

    def cell_sums(self, members: Memberships) -> Array | None:
        """Return None: the sums are made group by group."""
        return None

    def parts(self, group: int) -> Iterable[FocalSums]:
        """Return sums of rows that count every pair once, at its lower item."""
        if self.n_positions:
            yield from super().parts(group)
            return
        matching, low, high = self._matched(group)
        for some, part in self._column_sums(group, matching, low, high, True):
            value, count, *more = part
            yield FocalSums(matching.rows[some], value, count, tuple(more))

    def _focal_sums(
        self, group: int, matching: Matching, low: Array, high: Array
    ) -> FocalSums:
        """Return the sums over the pairs of each focal row."""
        return self._side_sums(group, matching, low, high, True)

    def _partner_sums(
        self, group: int, matching: Matching, low: Array, high: Array
    ) -> FocalSums:
        """Return the sums over the pairs of each partner."""
        return self._side_sums(group, matching, low, high, False)

    def _products(
        self,
        pair: tuple[int, int],
        matching: Matching,
        low: Array,
        high: Array,
        weight: Array | None,
    ) -> Array:
        a, b = (self._epsilon(group) for group in pair)
        products = np.zeros((6, 6))
        for ranges, sign in self._sides(matching, low, high, min(a, b)):
            # Where the scores are equal, rounding leaves something of their difference.
            moments = ranges.totals((6, 5, 4), weight)
            level = {
                key: 0.0 if sign == 0 and key[0] else moments[key] for key in moments
            }
            inner = np.array(
                [
                    [level[p + other, q + r] for other, r in _MONOMIALS]
                    for p, q in _MONOMIALS
                ]
            )
            left, right = (columns_of_monomials(e, ranges.unit, sign) for e in (a, b))
            products += left @ inner @ right.T
        return products


def _make_level(sums: Sums, sign: float) -> None:
    """Where the scores are equal, take out what rounding left of their difference."""
    if sign == 0:
        for (p, _), total in sums.items():
            if p:
                total[:] = 0.0


def _sum_of_powers(y: Array, sums: Sums, p: int, q: int) -> Array:
    """Return Σ u**p (y - y')**q over the other side's outcomes y'."""
    if q == 0:
        return sums[p, 0]
    if q == 1:
        return y * sums[p, 0] - sums[p, 1]
    return y * y * sums[p, 0] - 2 * y * sums[p, 1] + sums[p, 2]
