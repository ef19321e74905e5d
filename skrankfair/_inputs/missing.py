"""Rows whose outcome, score or group is missing: refused, left out, or a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .told import warn_user
from .validation import (
    Array,
    check_aligned,
    check_choice,
    check_lengths,
    frame_columns,
    to_numpy,
)

#: What becomes of rows with missing values.
MISSING = ("raise", "drop", "group")
#: The label of rows without one, where these are a group.
LABEL = "missing"
#: The columns of which a value may be missing.
_MAY_LACK = ("y_true", "y_score", "sensitive_features")


def without_missing(
    columns: Mapping[str, Any], missing: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return columns without missing values, and what was done about these.

    "drop" leaves out rows that lack an outcome, a score or a label of a group. "group"
    keeps rows without a label as a group of their own. There is a warning if rows are
    left out or relabelled. Other columns lose the same rows.
    """
    check_choice(missing, "missing", MISSING)
    if missing == "raise":
        return dict(columns), ()
    check_aligned(**columns)
    parts = {n: _Column(v, n) for n, v in columns.items() if v is not None}
    check_lengths(**{name: part.arrays[0].shape[0] for name, part in parts.items()})
    lacking = {name: parts[name].lacking() for name in _MAY_LACK if name in parts}
    said = []
    labels = lacking.get("sensitive_features", np.zeros(1, dtype=bool))
    if missing == "group" and labels.any():
        parts["sensitive_features"].label_missing()
        said.append(
            f"{int(labels.sum()):,} of {labels.size:,} rows have no label in "
            f"sensitive_features; they are the group {LABEL!r}."
        )
        lacking["sensitive_features"] = np.zeros_like(labels)
    left_out = np.any(list(lacking.values()), axis=0)
    if left_out.all():
        raise ValueError(
            f"missing={missing!r} leaves no row: each lacks y_true, y_score or "
            "sensitive_features."
        )
    if left_out.any():
        why = [
            f"{int(m.sum()):,} lack {name}" for name, m in lacking.items() if m.any()
        ]
        said.append(
            f"{int(left_out.sum()):,} of {left_out.size:,} rows are left out: "
            f"{', '.join(why)}."
        )
    if not said:
        return dict(columns), ()
    warn_user(" ".join(said), UserWarning)
    kept = np.flatnonzero(~left_out)
    found = {name: part.take(kept) for name, part in parts.items()}
    return {name: found.get(name) for name in columns}, tuple(said)


class _Column:
    """A column, or the columns of a frame, as arrays."""

    def __init__(self, values: Any, name: str) -> None:
        found = frame_columns(values)
        self.names = None if found is None else found[1]
        columns = [values] if found is None else found[0]
        self.arrays = [to_numpy(column, name) for column in columns]
        if not self.arrays or any(not array.ndim for array in self.arrays):
            raise ValueError(f"{name} must be a column with one value for each row.")

    def lacking(self) -> Array:
        """Return the rows of which a value is missing."""
        import pandas as pd

        absent = [np.asarray(pd.isna(array)) for array in self.arrays]
        by_row = [a if a.ndim == 1 else a.any(axis=1) for a in absent]
        return np.any(by_row, axis=0)

    def label_missing(self) -> None:
        """Put a label where there is none."""
        import pandas as pd

        for i, array in enumerate(self.arrays):
            absent = np.asarray(pd.isna(array))
            if absent.any():
                self.arrays[i] = array.astype(object)
                self.arrays[i][absent] = LABEL

    def take(self, rows: Array) -> Any:
        """Return some rows, as an array or as a frame."""
        arrays = [_booleans(array[rows]) for array in self.arrays]
        if self.names is None:
            return arrays[0]
        import pandas as pd

        frame = pd.DataFrame(dict(enumerate(arrays)))
        frame.columns = pd.Index(self.names, dtype=object)
        return frame


def _booleans(array: Array) -> Array:
    """Return an array of objects that are all True or False as booleans."""
    if array.dtype.kind == "O" and all(
        isinstance(value, bool | np.bool_) for value in array.flat
    ):
        return array.astype(bool)
    return array
