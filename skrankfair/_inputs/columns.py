"""The columns of a call, read once: checked, and without the rows that do not count.

A row whose outcome, score or group is missing is refused, left out, or a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .groups import Codes, Groups, as_columns, as_groups, encode
from .validation import (
    Array,
    as_numbers,
    as_weights,
    check_aligned,
    check_choice,
    check_given,
    check_lengths,
    warn_user,
)

#: Rows with missing values are an error, left out, or a group of their own.
MISSING = ("raise", "drop", "group")
#: The label of the group of rows without a label.
LABEL = "missing"
#: The numeric columns of which a value may be missing.
_MAY_LACK = ("y_true", "y_score")


def may_lack(missing: str) -> bool:
    """Return whether `missing` allows missing values; raise for an unknown choice."""
    check_choice(missing, "missing", MISSING)
    return missing != "raise"


def _with_labels(values: Any, missing: str) -> tuple[Any, Array | None]:
    """Return labels with the missing ones filled, and which rows lacked one, or None.

    These rows get the label `LABEL`, or any label if they are left out later.
    """
    from pandas.api.types import infer_dtype

    arrays, names = as_columns(values, "sensitive_features")
    absent = [_absent(array) for array in arrays]
    lacking = np.any(absent, axis=0)
    if not lacking.any():
        return values, None
    member = names is not None and all(
        infer_dtype(array, skipna=True) == "boolean" for array in arrays
    )
    if member and missing == "group":
        raise ValueError(
            "missing must be 'drop' for a membership matrix, whose rows have no "
            f"label that could be {LABEL!r}; got 'group'."
        )
    for i, lacks in enumerate(absent):
        array = arrays[i]
        if missing == "group" and lacks.any() and LABEL in array[~lacks].tolist():
            raise ValueError(
                f"sensitive_features has the label {LABEL!r}, which "
                "missing='group' would give to rows without one. Rename it."
            )
        if lacks.any() and (missing == "group" or lacks.all()):
            dates = array.dtype.kind in "mM"  # numpy would make integers of them
            arrays[i] = np.array([*array] if dates else array, dtype=object)
            arrays[i][lacks] = LABEL
        elif lacks.any():
            # Any label does for rows that are left out, and keeps the type.
            labelled = np.where(lacks, np.argmin(lacks), np.arange(array.size))
            arrays[i] = array[labelled]
        if member:
            arrays[i] = arrays[i].astype(bool)
    return _table(arrays, names), lacking


def _rows_with_values(
    missing: str,
    counted: Array | None,
    lacking: Mapping[str, Array | None],
    placed_without: str | None = None,
) -> tuple[Array | None, Array | None, dict[str, int]]:
    """Return masks of the rows left and of the rows with a place, and counts; warn.

    `counted` is the mask of rows of positive weight, None if all are. `lacking` has, by
    name of the column, the mask of rows without a value, None if there are none. Rows
    that lack the column `placed_without` alone are left out, but have a place in the
    ranking. The counts are those of `GroupEstimates.missing`.
    """
    absent = {n: rows for n, rows in lacking.items() if rows is not None and rows.any()}
    if not absent:
        return counted, counted, {}
    if counted is None:
        counted = np.ones_like(next(iter(absent.values())))
    absent = {name: rows & counted for name, rows in absent.items()}
    labelled = np.zeros_like(counted)
    if missing == "group":
        labelled = absent.pop("sensitive_features", labelled)
    dropped = np.any([*absent.values(), np.zeros_like(counted)], axis=0)
    left = counted & ~dropped
    if not left.any():
        raise ValueError(
            f"missing={missing!r} leaves no row: each lacks {' or '.join(absent)}."
        )
    sums = {"dropped": dropped.sum(), "labelled": (labelled & left).sum()}
    sums |= {name: rows.sum() for name, rows in absent.items()}
    counts = {name: int(count) for name, count in sums.items() if count}
    if counts:
        warn_user(" ".join(missing_said(counts, int(counted.sum()))), UserWarning)
    gone = [rows for name, rows in absent.items() if name != placed_without]
    return left, counted & ~np.any([*gone, ~counted], axis=0), counts


def missing_said(
    counts: Mapping[str, int], n_rows: int | None = None
) -> tuple[str, ...]:
    """Return sentences that say how many rows are left out or relabelled."""
    of = "" if n_rows is None else f" of {n_rows:,}"
    sentences = []
    if labelled := counts.get("labelled"):
        sentences.append(
            f"{labelled:,}{of} rows have no label in sensitive_features; they are the "
            f"group {LABEL!r}."
        )
    if dropped := counts.get("dropped"):
        why = [
            f"{count:,} lack {name}"
            for name, count in counts.items()
            if name not in ("dropped", "labelled")
        ]
        sentences.append(f"{dropped:,}{of} rows are left out: {', '.join(why)}.")
    return tuple(sentences)


def added_counts(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of two parts of the data together."""
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}


def without_missing(
    columns: Mapping[str, Any], missing: str, placed_without: str | None = None
) -> tuple[dict[str, Any], tuple[str, ...], dict[str, int]]:
    """Return columns without missing values, sentences on the rows, and counts.

    It serves calls that measure several metrics of the same rows. "drop" leaves out
    rows that
    lack an outcome, a score or a label of a group. "group" keeps rows without a label
    as a group of their own. Other columns lose the same rows. Rows that lack the column
    `placed_without` alone stay, since they have a place in the ranking.
    """
    if not may_lack(missing):
        return dict(columns), (), {}
    check_aligned(**columns)
    given = {name: values for name, values in columns.items() if values is not None}
    unlabelled = None
    if (labels := given.get("sensitive_features")) is not None:
        given["sensitive_features"], unlabelled = _with_labels(labels, missing)
    tables = {name: as_columns(values, name) for name, values in given.items()}
    for name, (arrays, _) in tables.items():
        if not arrays or any(array.ndim != 1 for array in arrays):
            raise ValueError(f"{name} must be a column with one value for each row.")
    n_rows = check_lengths(**{n: arrays[0].size for n, (arrays, _) in tables.items()})
    lacking: dict[str, Array | None] = {
        name: np.any([_absent(array) for array in tables[name][0]], axis=0)
        for name in _MAY_LACK
        if name in tables
    }
    lacking["sensitive_features"] = unlabelled
    _, rows, counts = _rows_with_values(missing, None, lacking, placed_without)
    if not counts:
        return dict(columns), (), {}
    kept = slice(None) if rows is None else np.flatnonzero(rows)
    left = {
        name: _table([array[kept] for array in arrays], names)
        for name, (arrays, names) in tables.items()
    }
    return {n: left.get(n) for n in columns}, missing_said(counts, n_rows), counts


def _table(arrays: list[Array], names: list[Any] | None) -> Any:
    """Return columns as an array, or as a frame if they have names."""
    if names is None:
        return arrays[0]
    import pandas as pd

    frame = pd.DataFrame(dict(enumerate(arrays)))
    frame.columns = pd.Index(names, dtype=object)
    return frame


def _absent(array: Array) -> Array:
    import pandas as pd

    return np.asarray(pd.isna(array))


@dataclass(frozen=True)
class ReadColumns:
    """Validated columns of one length, of the rows that are left.

    Attributes
    ----------
    numbers : dict of str to ndarray of shape (n,)
    groups : Groups or None
    codes : dict of str to Codes
        The labels of queries, clusters and items, where these were given.
    weights : dict of str to ndarray of shape (n,)
        The positive weights that were given.
    kept : ndarray of shape (n,), int64, or None
        The caller's numbers of the rows that are left; None is all of them.
    n_input : int
        The number of the caller's rows.
    index : Index or None
        The index of the first of the caller's columns that is of pandas.
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
    #: Shape (n,) or None: rows without an outcome, which have a place in the ranking.
    unknown: Array | None = None

    def take(self, rows: Array) -> ReadColumns:
        """Return some rows, all of whose values are known."""
        return ReadColumns(
            {name: column[rows] for name, column in self.numbers.items()},
            self.groups and self.groups.take(rows).without_unused(),
            {name: labels.take(rows) for name, labels in self.codes.items()},
            {name: column[rows] for name, column in self.weights.items()},
            rows if self.kept is None else self.kept[rows],
            self.n_input,
            self.index,
            self.missing,
        )


def read_columns(
    numbers: Mapping[str, Any],
    *,
    required: tuple[str, ...],
    missing: str = "raise",
    may_be_nan: str | None = None,
    placed_without: str | None = None,
    **others: Any,
) -> ReadColumns:
    """Validate columns, and leave out the rows of weight 0 or without a value.

    Parameters
    ----------
    numbers : dict of str to array-like of shape (n,)
        Numeric columns by name; those that are None are left out.
    required : tuple of str
        The numeric columns that must be given.
    missing : {"raise", "drop", "group"}
        What becomes of rows without a value.
    may_be_nan : str or None
        A column of numbers in which NaN is a value, that of an unknown outcome.
    placed_without : str or None
        A column of numbers: rows that lack it alone are `unknown`, and not left out.
    **others : array-like or None
        The arguments of `read_labels`.
    """
    lenient = may_lack(missing)
    check_given(**{name: numbers.get(name) for name in required})
    index = check_aligned(**numbers, **others)
    columns = {
        name: as_numbers(values, name, allow_nan=lenient or name == may_be_nan)
        for name, values in numbers.items()
        if values is not None
    }
    unlabelled = None
    if lenient and (features := others.get("sensitive_features")) is not None:
        others["sensitive_features"], unlabelled = _with_labels(features, missing)
    lengths = {name: column.size for name, column in columns.items()}
    groups, codes, weight, n_input = read_labels(lengths, **others)
    left, placed, counts = None, None, dict[str, int]()
    if not all(values.all() for values in weight.values()):
        placed = left = np.all([values != 0 for values in weight.values()], axis=0)
        if not left.any():
            raise ValueError(
                "sample_weight and item_weight must both be positive in some row; one "
                "of them is 0 in each."
            )
    if lenient:
        lacking = {name: np.isnan(column) for name, column in columns.items()}
        lacking_or_not = {**lacking, "sensitive_features": unlabelled}
        left, placed, counts = _rows_with_values(
            missing, left, lacking_or_not, placed_without
        )
    read = ReadColumns(columns, groups, codes, weight, None, n_input, index, counts)
    if placed is None or left is None:
        return read
    read = read.take(np.flatnonzero(placed))
    unknown = ~left[placed]
    return replace(read, unknown=unknown) if unknown.any() else read


def read_labels(
    lengths: Mapping[str, int | None],
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    item_weight: Any = None,
) -> tuple[Groups | None, dict[str, Codes], dict[str, Array], int]:
    """Return groups, labels by name, weights by name, and the number of rows.

    Only columns that are given are returned. A second column of `cluster` has the
    items, which recur among the clusters. All columns must have the number of rows that
    `lengths` has for the other columns.
    """
    labels = {"qid": qid, **_ways(cluster)}
    weights = {"sample_weight": sample_weight, "item_weight": item_weight}
    groups = None if sensitive_features is None else as_groups(sensitive_features)
    codes = {name: encode(v, name) for name, v in labels.items() if v is not None}
    weight = {name: as_weights(v, name) for name, v in weights.items() if v is not None}
    n_rows = check_lengths(
        **lengths,
        sensitive_features=None if groups is None else groups.n_rows,
        **{n: column.codes.size for n, column in codes.items() if n != "item"},
        **{name: column.size for name, column in weight.items()},
    )
    return groups, codes, weight, n_rows


class OneWayError(ValueError):
    """An error: two columns of clusters where only errors over users are possible."""


def check_one_way(item: Codes | None) -> None:
    """Raise a ValueError for a second column of clusters, where none is possible."""
    if item is not None:
        raise OneWayError(
            "cluster must be one column here: two, users and items, are for metrics "
            "that are sums over pairs or rows. Pass the users alone."
        )


def users_of(cluster: Any) -> Any:
    """Return the users of two columns of clusters, or the only column."""
    if cluster is None:
        return None
    columns, _ = as_columns(cluster, "cluster")
    return columns[0] if len(columns) > 1 else cluster


def _ways(cluster: Any) -> dict[str, Any]:
    """Return the one or two columns of `cluster` by name: "cluster" and "item"."""
    if cluster is None:
        return {}
    columns, _ = as_columns(cluster, "cluster")
    if len(columns) < 2:
        return {"cluster": cluster}
    if len(columns) > 2:
        raise ValueError(
            "cluster must be one column of labels, or two, users and items; got "
            f"{len(columns)} columns."
        )
    return dict(zip(("cluster", "item"), columns, strict=True))
