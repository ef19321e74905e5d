"""Results whose arrays nobody can write to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np


class ReadOnlyArrays:
    """A base of results: every array that an attribute or property gives is read-only.

    It holds for copies and for results from other processes too, which lose the flags
    of their arrays.
    """

    if not TYPE_CHECKING:  # so that unknown attributes are still errors

        def __getattribute__(self, name: str) -> Any:
            """Return an attribute; of a writeable array, a view that is not."""
            value = super().__getattribute__(name)
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value = value.view()
                value.flags.writeable = False
            return value
