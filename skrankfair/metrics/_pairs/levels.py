"""Rows by the bits of their outcomes: every pair of unlike ones is in one block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..._inputs.ranking import Ranking, order_rows
from ..._inputs.validation import Array
from .prefix_sums import count_dtype

_FEW_GRADES = 64
_SAMPLE = 1000


def outcome_codes(y: Array, ranking: Ranking) -> Array:
    """Return small integers in the order of the outcomes, within each query.

    A handful of grades are numbered over all rows; real outcomes get their dense rank
    within the query, so that the codes have as many bits as the longest query needs.
    """
    low, high = y.min(), y.max()
    if high < low + 256 and np.array_equal(y, np.rint(y)):
        return (y - low).astype(np.uint8)
    values = np.unique(y[:: max(1, y.size // _SAMPLE)])
    if values.size <= _FEW_GRADES:
        codes = np.searchsorted(values, y)
        codes[codes == values.size] = 0
        if np.array_equal(values[codes], y):
            return codes.astype(np.uint8)
    rows = order_rows(ranking.query.astype(np.int64), -y)
    ordered = y[rows]
    new = np.empty(y.size, dtype=bool)
    new[0] = False
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    new[ranking.starts[:-1]] = False
    rank: Array = np.cumsum(new, dtype=count_dtype(y.size))
    rank -= np.repeat(rank[ranking.starts[:-1]], ranking.lengths)
    codes = np.empty_like(rank)
    codes[rows] = rank
    return codes


class Level(NamedTuple):
    """Rows in blocks of equal higher bits; a pair is decided where its bits differ.

    Within a block the rows keep their ranked order. Every pair of a query with
    different outcomes is in one block of exactly one level, the better with bit 1.
    The level of equal outcomes has no bits.
    """

    rows: Array | slice
    bit: Array | None
    starts: Array
    block: Array
    bounds: tuple[Array, Array] | None


def outcome_levels(
    ranking: Ranking, codes: Array, equal: bool = False
) -> Iterator[Level]:
    """Partition the rows by the bits of their outcome codes, highest bit first.

    With `equal` the last level has the blocks of equal outcomes.
    """
    n = ranking.n_rows
    starts, lengths = ranking.starts, ranking.lengths
    rows: Array | slice = slice(None)
    tie = ranking.tie if ranking.has_ties else None
    last = -1 if equal else 0
    for place in range(int(codes.max()).bit_length() - 1, last - 1, -1):
        bit = None if place < 0 else (codes >> place & 1).astype(bool)
        if lengths.size == ranking.n_queries:
            block = ranking.query
        else:
            block = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
        bounds = None if tie is None else _tie_bounds(n, starts, tie)
        yield Level(rows, bit, starts, block, bounds)
        if bit is None or place == last:
            return
        moved, starts = _split(bit, starts, block)
        rows = moved if isinstance(rows, slice) else rows[moved]
        codes = codes[moved]
        tie = None if tie is None else tie[moved]
        lengths = np.diff(starts)


def _split(bit: Array, starts: Array, block: Array) -> tuple[Array, Array]:
    """Return the rows with the zeros of each block before its ones, and new starts."""
    n = bit.size
    ones, zeros = np.flatnonzero(bit), np.flatnonzero(~bit)
    before = np.searchsorted(ones, starts)
    moved = np.empty(n, dtype=np.int64)
    moved[np.arange(zeros.size) + before[block[zeros]]] = zeros
    moved[np.arange(ones.size) + (starts[1:] - before[1:])[block[ones]]] = ones
    halves = np.empty(2 * starts.size - 1, dtype=np.int64)
    halves[::2] = starts
    np.subtract(starts[1:], np.diff(before), out=halves[1::2])
    return moved, halves[np.append(halves[1:] > halves[:-1], True)]


def _tie_bounds(n: int, starts: Array, tie: Array) -> tuple[Array, Array]:
    """Return the bounds of the run of equal scores that each row is in."""
    new = np.empty(n, dtype=bool)
    new[0] = True
    np.not_equal(tie[1:], tie[:-1], out=new[1:])
    new[starts[:-1]] = True
    begins = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    return begins[run], np.append(begins[1:], n)[run]
