"""The columns of a call, read once: checked, and without the rows that do not count.

A row whose outcome, score or group is missing is refused, left out, or a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .groups import Codes, Groups, as_groups, encode, frame_columns
from .validation import (
    Array,
    as_numbers,
    as_weights,
    check_aligned,
    check_choice,
    check_given,
    check_lengths,
    to_numpy,
)
from .warn import warn_user

#: What becomes of rows with missing values.
MISSING = ("raise", "drop", "group")
#: The label of rows without one, where these are a group.
LABEL = "missing"
#: The columns of which a value may be missing.
_MAY_LACK = ("y_true", "y_score", "sensitive_features")


def may_lack(missing: str) -> bool:
    """Return whether values may be missing; a ValueError for an unknown choice."""
    check_choice(missing, "missing", MISSING)
    return missing != "raise"


def groups_of(values: Any, missing: str) -> tuple[Groups | None, Array | None]:
    """Return the groups, if any, and which rows have no label; None if all have one.

    Such rows have the label `LABEL`, or any if they are to be left out.
    """
    if values is None:
        return None, None
    if missing == "raise":
        return as_groups(values), None
    column = _Column(values, "sensitive_features")
    lacking = column.lacking()
    if not lacking.any():
        return as_groups(values), None
    column.label_missing(missing)
    return as_groups(column.take(slice(None))), lacking


def rows_with_values(
    missing: str, there: Array | None, lacking: Mapping[str, Array | None]
) -> tuple[Array | None, dict[str, int]]:
    """Return which rows are left, and the counts of what is missing, and warn.

    `there` are the rows that count (None: all of them), `lacking` by the name of the
    column those without a value. It is None where all rows are left.
    """
    found = {
        name: rows if there is None else rows & there
        for name, rows in lacking.items()
        if rows is not None and rows.any()
    }
    if not found:
        return there, {}
    n_rows = next(iter(found.values())).size if there is None else int(there.sum())
    labelled = found.pop("sensitive_features", None) if missing == "group" else None
    counts = {}
    if found:
        dropped = np.any(list(found.values()), axis=0)
        counts["dropped"] = int(dropped.sum())
        there = ~dropped if there is None else there & ~dropped
        if not there.any():
            raise ValueError(
                f"missing={missing!r} leaves no row: each lacks {' or '.join(found)}."
            )
    if labelled is not None:
        counts["labelled"] = int(
            (labelled if there is None else labelled & there).sum()
        )
    counts |= {name: int(rows.sum()) for name, rows in found.items()}
    counts = {name: count for name, count in counts.items() if count}
    if counts:
        warn_user(" ".join(missing_said(counts, n_rows)), UserWarning)
    return there, counts


def missing_said(
    counts: Mapping[str, int], n_rows: int | None = None
) -> tuple[str, ...]:
    """Return what was done about missing values, in sentences."""
    of = "" if n_rows is None else f" of {n_rows:,}"
    said = []
    if labelled := counts.get("labelled"):
        said.append(
            f"{labelled:,}{of} rows have no label in sensitive_features; they are the "
            f"group {LABEL!r}."
        )
    if dropped := counts.get("dropped"):
        why = [
            f"{count:,} lack {name}"
            for name, count in counts.items()
            if name not in ("dropped", "labelled")
        ]
        said.append(f"{dropped:,}{of} rows are left out: {', '.join(why)}.")
    return tuple(said)


def added_counts(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of two parts of the data together."""
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}


def without_missing(
    columns: Mapping[str, Any], missing: str
) -> tuple[dict[str, Any], tuple[str, ...], dict[str, int]]:
    """Return columns without missing values, what was done about these, and counts.

    For what measures several metrics of the same rows. "drop" leaves out rows that
    lack an outcome, a score or a label of a group. "group" keeps rows without a label
    as a group of their own. Other columns lose the same rows.
    """
    if not may_lack(missing):
        return dict(columns), (), {}
    check_aligned(**columns)
    parts = {n: _Column(v, n) for n, v in columns.items() if v is not None}
    n_rows = check_lengths(**{n: part.arrays[0].shape[0] for n, part in parts.items()})
    lacking = {name: parts[name].lacking() for name in _MAY_LACK if name in parts}
    labels = lacking.get("sensitive_features")
    if missing == "group" and labels is not None and labels.any():
        parts["sensitive_features"].label_missing(missing)
    there, counts = rows_with_values(missing, None, lacking)
    if not counts:
        return dict(columns), (), {}
    kept = slice(None) if there is None else np.flatnonzero(there)
    found = {name: part.take(kept) for name, part in parts.items()}
    given = {name: found.get(name) for name in columns}
    return given, missing_said(counts, n_rows), counts


class _Column:
    """A column, or the columns of a frame or of a matrix, as arrays."""

    def __init__(self, values: Any, name: str) -> None:
        found = frame_columns(values)
        self.names: list[Any] | None = None
        if found is not None:
            self.arrays = [to_numpy(column, name) for column in found[0]]
            self.names = found[1]
        else:
            array = to_numpy(values, name)
            self.arrays = [array]
            if array.ndim == 2:
                self.arrays = list(array.T)
                self.names = list(range(len(self.arrays)))
        if not self.arrays or any(array.ndim != 1 for array in self.arrays):
            raise ValueError(f"{name} must be a column with one value for each row.")

    def lacking(self) -> Array:
        """Return the rows of which a value is missing."""
        return np.any([_absent(array) for array in self.arrays], axis=0)

    def label_missing(self, missing: str) -> None:
        """Put a label where there is none: `LABEL`, or any if rows are left out."""
        absent = [_absent(array) for array in self.arrays]
        member = self.names is not None and all(
            _are_booleans(array[~lacks])
            for array, lacks in zip(self.arrays, absent, strict=True)
        )
        if member and missing == "group":
            raise ValueError(
                "missing must be 'drop' for a membership matrix, whose rows have no "
                f"label that could be {LABEL!r}; got 'group'."
            )
        for i, lacks in enumerate(absent):
            array = self.arrays[i]
            if missing == "group" and lacks.any() and _has_label(array):
                raise ValueError(
                    f"sensitive_features has the label {LABEL!r}, which "
                    "missing='group' would give to rows without one. Rename it."
                )
            if lacks.any() and (missing == "group" or lacks.all()):
                dates = array.dtype.kind in "mM"  # of which numpy makes integers
                self.arrays[i] = np.array([*array] if dates else array, dtype=object)
                self.arrays[i][lacks] = LABEL
            elif lacks.any():
                # Any label does for rows that are left out, and keeps the type.
                known = np.where(lacks, np.argmin(lacks), np.arange(array.size))
                self.arrays[i] = array[known]
            if member:
                self.arrays[i] = self.arrays[i].astype(bool)

    def take(self, rows: Array | slice) -> Any:
        """Return some rows, as an array or as a frame."""
        arrays = [array[rows] for array in self.arrays]
        if self.names is None:
            return arrays[0]
        import pandas as pd

        booleans = all(map(_are_booleans, arrays))
        arrays = [array.astype(bool) for array in arrays] if booleans else arrays
        frame = pd.DataFrame(dict(enumerate(arrays)))
        frame.columns = pd.Index(self.names, dtype=object)
        return frame


def _absent(array: Array) -> Array:
    import pandas as pd

    return np.asarray(pd.isna(array))


def _are_booleans(array: Array) -> bool:
    if array.dtype.kind != "O":
        return bool(array.dtype.kind == "b")
    return all(isinstance(value, bool | np.bool_) for value in array)


def _has_label(array: Array) -> bool:
    text = array.dtype.kind in "OUT"
    return text and any(isinstance(v, str) and v == LABEL for v in array)


@dataclass(frozen=True)
class ReadColumns:
    """Validated columns of one length, of the rows that are left.

    Attributes
    ----------
    numbers : dict of str to ndarray of shape (n,)
    groups : Groups or None
    codes : dict of str to Codes
        The labels of queries and clusters, where these were given.
    weights : dict of str to ndarray of shape (n,)
        The positive weights that were given.
    kept : ndarray of shape (n,), int64, or None
        The caller's numbers of the rows that are left; None is all of them.
    n_input : int
        The number of the caller's rows.
    index : Index or None
        That of the caller's first column of pandas.
    missing : dict of str to int
        How many rows lacked a value, as `GroupEstimates.missing`.
    """

    numbers: Mapping[str, Array]
    groups: Groups | None
    codes: Mapping[str, Codes]
    weights: Mapping[str, Array]
    kept: Array | None
    n_input: int
    index: Any
    missing: Mapping[str, int]


def read_columns(
    numbers: Mapping[str, Any],
    *,
    required: tuple[str, ...],
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    item_weight: Any = None,
    missing: str = "raise",
    may_be_nan: str | None = None,
) -> ReadColumns:
    """Validate columns, and leave out the rows of weight 0 or without a value.

    Parameters
    ----------
    numbers : dict of str to array-like of shape (n,)
        Numeric columns by name; those that are None are left out.
    required : tuple of str
        Which of them must be given.
    sensitive_features, qid, cluster, sample_weight, item_weight : array-like or None
        The other columns, as metrics take them.
    missing : {"raise", "drop", "group"}
        What becomes of rows without a value.
    may_be_nan : str or None
        A column of numbers in which NaN is a value, that of an unknown outcome.
    """
    lenient = may_lack(missing)
    check_given(**{name: numbers.get(name) for name in required})
    labels = {"qid": qid, "cluster": cluster}
    weights = {"sample_weight": sample_weight, "item_weight": item_weight}
    features = {"sensitive_features": sensitive_features}
    index = check_aligned(**numbers, **features, **labels, **weights)
    columns = {
        name: as_numbers(values, name, allow_nan=lenient or name == may_be_nan)
        for name, values in numbers.items()
        if values is not None
    }
    groups, unlabelled = groups_of(sensitive_features, missing)
    codes = {name: encode(v, name) for name, v in labels.items() if v is not None}
    weight = {name: as_weights(v, name) for name, v in weights.items() if v is not None}
    n_input = check_lengths(
        **{name: column.size for name, column in columns.items()},
        sensitive_features=None if groups is None else groups.n_rows,
        **{name: labels.codes.size for name, labels in codes.items()},
        **{name: column.size for name, column in weight.items()},
    )
    left, counts = _rows_with_weight(weight), dict[str, int]()
    if lenient:
        lacking = {name: np.isnan(column) for name, column in columns.items()}
        lacking_or_not = {**lacking, "sensitive_features": unlabelled}
        left, counts = rows_with_values(missing, left, lacking_or_not)
    kept = None if left is None else np.flatnonzero(left)
    if kept is not None:
        columns = {name: column[kept] for name, column in columns.items()}
        groups = None if groups is None else groups.take(kept).without_unused()
        codes = {name: labels.take(kept) for name, labels in codes.items()}
        weight = {name: column[kept] for name, column in weight.items()}
    return ReadColumns(columns, groups, codes, weight, kept, n_input, index, counts)


def _rows_with_weight(weights: Mapping[str, Array]) -> Array | None:
    """Return which rows have no weight of 0, or None if these are all rows."""
    if all(weight.all() for weight in weights.values()):
        return None
    kept: Array = np.all([weight != 0 for weight in weights.values()], axis=0)
    if not kept.any():
        raise ValueError(
            "sample_weight and item_weight must both be positive in some row; one of "
            "them is 0 in each."
        )
    return kept
