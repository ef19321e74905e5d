"""Results whose arrays nobody can write to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def read_only(value: T) -> T:
    """Return an array, or a tuple of arrays, that was just made, as read-only."""
    for array in value if isinstance(value, tuple) else (value,):
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    return value


class cached_read_only(cached_property[T]):  # noqa: N801
    """A property that is computed once, and whose arrays nobody can write to."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        @wraps(function)  # of which documentation reads the source
        def computed(result: Any) -> T:
            return read_only(function(result))

        super().__init__(computed)


class ReadOnlyArrays:
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
