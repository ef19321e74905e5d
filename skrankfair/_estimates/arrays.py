"""Arrays of results, which are read-only, and a check before one exceeds the memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, wraps
from html import escape
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

T = TypeVar("T")
K = TypeVar("K")

_GIB = float(1 << 30)
# Bytes of memory, where the machine does not tell.
_UNKNOWN = 8 * _GIB
# Files with the memory that a container may have, by version of control groups.
_CONTAINER = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def read_only(value: T) -> T:
    """Return an array, or a tuple of arrays, that was just made, as read-only."""
    for array in value if isinstance(value, tuple) else (value,):
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    return value


class cached_read_only(cached_property[T]):  # noqa: N801
    """A property that is computed once, and whose arrays nobody can write to."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        @wraps(function)  # Sphinx reads the source of the function
        def computed(result: Any) -> T:
            return read_only(function(result))

        super().__init__(computed)


def cached_by_key(function: Callable[[Any, K], T]) -> Callable[[Any, K], T]:
    """Return the function of a result and a key, computed once for each pair.

    The result keeps the values, which are read-only. Its copies begin anew.
    """

    @wraps(function)
    def computed(result: Any, key: K) -> T:
        values = vars(result).setdefault("_by_key", {})
        place = function.__qualname__, key
        if place not in values:
            values[place] = read_only(function(result, key))
        return values[place]

    return computed


class Shown:
    """A base of results, which show the lines that they print in notebooks too."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


class ReadOnlyArrays(Shown):
    """A base of results, whose arrays become read-only when the result is made.

    So do those of copies and of results from other processes, which lose the flags.
    """

    def __post_init__(self) -> None:
        """Make all arrays that the result holds read-only."""
        read_only(tuple(vars(self).values()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what a copy or another process gives."""
        vars(self).update(state)
        for value in state.values():
            read_only(value)


class AddsUp(ReadOnlyArrays):
    """A base of results whose sum over parts of the data is that of the whole."""

    def __radd__(self, other: object) -> Self:
        """Let ``sum(results)`` start from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@cache
def memory_limit() -> float:
    """Return how much one array may take, in bytes: half of the memory there is."""
    try:
        total = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        total = _UNKNOWN
    for name in _CONTAINER:
        try:
            total = min(total, float(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return total / 2


def check_memory(size: float, what: str, instead: str) -> None:
    """Raise a ValueError before an array is made that is too large.

    Parameters
    ----------
    size : float
        Bytes.
    what : str
        What takes them, as the beginning of a sentence.
    instead : str
        What to do, as the end of one.
    """
    limit = memory_limit()
    if size > limit:
        raise ValueError(
            f"{what} would take {size / _GIB:.3g} GiB of memory, more than the limit "
            f"of {limit / _GIB:.3g} GiB (half of what there is): {instead}"
        )
