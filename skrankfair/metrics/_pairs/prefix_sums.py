"""Sums over rows that follow each other, from sums over all rows before a place."""

from __future__ import annotations

import numpy as np

from ..._inputs.validation import Array


def count_dtype(n: int) -> type:
    """Return the smallest integer type that counts pairs of n rows without overflow."""
    return np.int32 if n < 2**30 else np.int64


def exclusive_cumsum(mask: Array, item_weight: Array | None = None) -> Array:
    """Return how many are true before each place, and in all at the end.

    With `item_weight` their weight, in place of their number.
    """
    dtype: type = count_dtype(mask.size)
    if item_weight is not None:
        mask, dtype = mask * item_weight, float
    out: Array = np.empty(mask.size + 1, dtype=dtype)
    out[0] = 0
    np.cumsum(mask, out=out[1:])
    return out


def sum_between(low: Array, high: Array, values: Array | None) -> Array:
    """Return the sums of the values of rows [low, high); of None, their numbers."""
    if values is None:
        return high - low
    before = np.zeros(values.size + 1)
    np.cumsum(values, out=before[1:])
    total: Array = before[high]
    total -= before[low]
    return total


def times(values: Array, item_weight: Array | None) -> Array:
    """Return the values with the weights of their rows."""
    return values if item_weight is None else values * item_weight
