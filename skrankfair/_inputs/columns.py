"""The columns of a call, read once: checked, and without the rows that do not count.

A row whose outcome, score or group is missing is refused, left out, or a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .groups import Codes, Groups, as_columns, as_groups, encode, mark_members
from .validation import (
    Array,
    NoRowError,
    as_numbers,
    as_weights,
    check_aligned,
    check_choice,
    check_given,
    check_lengths,
    warn_user,
)

#: The arguments of metrics and tests that are columns, and how they are read.
COLUMNS = (
    *("sensitive_features", "qid", "cluster", "sample_weight", "item_weight"),
    *("position", "missing"),
)
#: Rows with missing values are an error, left out, or a group of their own.
MISSING = ("raise", "drop", "group")
#: The label of the group of rows without a label.
LABEL = "missing"


def given_columns(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns among the arguments of a metric or a test."""
    return {name: arguments[name] for name in COLUMNS if name in arguments}


def may_lack(missing: str) -> bool:
    """Return whether `missing` allows missing values; raise for an unknown choice."""
    check_choice(missing, "missing", MISSING)
    return missing != "raise"


def _with_labels(values: Any, missing: str) -> tuple[Any, Array]:
    """Return labels with the missing ones filled, and which rows lacked one.

    They become `LABEL`; in a membership matrix, whose rows are then left out, False.
    """
    arrays, names = as_columns(values, "sensitive_features")
    absent = [pd.isna(array) for array in arrays]
    lacking = np.any(absent, axis=0)
    if not lacking.any():
        return values, lacking
    member = names is not None and mark_members(arrays, skipna=True)
    if member and missing == "group":
        raise ValueError(
            "missing must be 'drop' for a membership matrix, whose rows have no "
            f"label that could be {LABEL!r}; got 'group'."
        )
    for i, lacks in enumerate(absent):
        if not lacks.any():
            continue
        if missing == "group" and LABEL in arrays[i][~lacks].tolist():
            raise ValueError(
                f"sensitive_features has the label {LABEL!r}, which "
                "missing='group' would give to rows without one. Rename it."
            )
        dates = arrays[i].dtype.kind in "mM"  # numpy would make integers of them
        arrays[i] = np.array([*arrays[i]] if dates else arrays[i], dtype=object)
        arrays[i][lacks] = False if member else LABEL
    return _table(arrays, names), lacking


def _rows_with_values(
    missing: str,
    counted: Array,
    lacking: Mapping[str, Array],
    placed_without: str | None,
) -> tuple[Array, Array, dict[str, int]]:
    """Return masks of the rows left and of the rows with a place, and counts; warn.

    `counted` is the mask of rows of positive weight, and `lacking` has, by name of the
    column, the mask of rows without a value. Rows that lack the column `placed_without`
    alone are left out, but have a place in the ranking. The counts are those of
    `GroupEstimates.missing`.
    """
    absent = {n: rows & counted for n, rows in lacking.items() if rows.any()}
    labelled = np.zeros_like(counted)
    if missing == "group":
        labelled = absent.pop("sensitive_features", labelled)
    unplaced = [rows for name, rows in absent.items() if name != placed_without]
    masks = [*absent.values()], unplaced
    left, placed = (counted & ~np.any(some, axis=0) for some in masks)
    sums = {"dropped": (counted & ~left).sum(), "labelled": (labelled & left).sum()}
    sums |= {name: rows.sum() for name, rows in absent.items()}
    counts = {name: int(count) for name, count in sums.items() if count}
    if not left.any():
        lacks = " or ".join(absent)
        message = f"missing={missing!r} leaves no row: each lacks {lacks}."
        raise NoRowError(message, counts)
    if counts:
        warn_user(" ".join(missing_said(counts, int(counted.sum()))), UserWarning)
    return left, placed, counts


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


def without_missing(
    columns: Mapping[str, Any], missing: str, placed_without: str | None = None
) -> tuple[dict[str, Any], tuple[str, ...], dict[str, int]]:
    """Return columns without missing values, sentences on the rows, and counts.

    It serves calls that measure several metrics of the same rows. "drop" leaves out
    rows that lack an outcome, a score or a label of a group. "group" keeps rows without
    a label as a group of their own. Other columns lose the same rows. Rows that lack
    the column `placed_without` alone stay, since they have a place in the ranking.
    """
    if not may_lack(missing):
        return dict(columns), (), {}
    check_aligned(**columns)
    given = {name: values for name, values in columns.items() if values is not None}
    tables, lacking = {n: as_columns(v, n) for n, v in given.items()}, {}
    for name, (arrays, _) in tables.items():
        if not arrays or any(array.ndim != 1 for array in arrays):
            raise ValueError(f"{name} must be a column with one value for each row.")
        if name in ("y_true", "y_score"):
            lacking[name] = np.any([pd.isna(array) for array in arrays], axis=0)
    n_rows = check_lengths(**{n: arrays[0].size for n, (arrays, _) in tables.items()})
    if (labels := given.get("sensitive_features")) is not None:
        labels, lacking["sensitive_features"] = _with_labels(labels, missing)
        if missing == "group":
            tables["sensitive_features"] = as_columns(labels, "sensitive_features")
    counted = np.ones(n_rows, dtype=bool)
    _, placed, counts = _rows_with_values(missing, counted, lacking, placed_without)
    if not counts:
        return dict(columns), (), {}
    left = dict.fromkeys(columns)
    for name, (arrays, names) in tables.items():
        left[name] = _table([array[placed] for array in arrays], names)
        if names is None and (title := getattr(given[name], "name", None)) is not None:
            left[name] = pd.Series(left[name], name=title)
    return left, missing_said(counts, n_rows), counts


def _table(arrays: list[Array], names: list[Any] | None) -> Any:
    """Return columns as an array, or as a frame if they have names."""
    if names is None:
        return arrays[0]
    frame = pd.DataFrame(dict(enumerate(arrays)))
    return frame.set_axis(pd.Index(names, dtype=object), axis=1)


@dataclass(frozen=True)
class ReadColumns:
    """Validated columns of one length, of the rows that are left.

    Attributes
    ----------
    numbers : dict of str to ndarray of shape (n,)
    groups : Groups
        One group, "all", without sensitive features.
    codes : dict of str to Codes
        The labels of queries, clusters and items, where these were given.
    weights : dict of str to ndarray of shape (n,)
        The positive weights that were given.
    kept : ndarray of shape (n,), int64
        The caller's numbers of the rows that are left.
    unknown : ndarray of shape (n,), bool
        The rows without an outcome, which have a place in the ranking.
    n_input : int
        The number of the caller's rows.
    index : Index or None
        The index of the first of the caller's columns that is of pandas.
    missing : dict of str to int
        How many rows lacked a value, as `GroupEstimates.missing`.
    """

    numbers: Mapping[str, Array]
    groups: Groups
    codes: Mapping[str, Codes]
    weights: Mapping[str, Array]
    kept: Array
    unknown: Array
    n_input: int
    index: Any
    missing: Mapping[str, int]

    def take(self, rows: Array) -> ReadColumns:
        """Return some rows, without the labels that they do not have."""
        return replace(
            self,
            numbers={name: column[rows] for name, column in self.numbers.items()},
            groups=self.groups.take(rows).without_unused(),
            codes={name: labels.take(rows) for name, labels in self.codes.items()},
            weights={name: column[rows] for name, column in self.weights.items()},
            kept=self.kept[rows],
            unknown=self.unknown[rows],
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
    lacking = {name: np.isnan(columns[name]) for name in columns if lenient}
    if lenient and (labels := others.get("sensitive_features")) is not None:
        filled, lacking["sensitive_features"] = _with_labels(labels, missing)
        others["sensitive_features"] = filled
    lengths = {name: column.size for name, column in columns.items()}
    groups, codes, weights = read_labels(lengths, **others)
    n_input = groups.n_rows
    masks = [np.ones(n_input, dtype=bool), *(w > 0 for w in weights.values())]
    counted = np.all(masks, axis=0)
    if not counted.any():
        raise NoRowError(
            "sample_weight and item_weight must both be positive in some row; one "
            "of them is 0 in each."
        )
    left, placed, counts = _rows_with_values(missing, counted, lacking, placed_without)
    rows = np.arange(n_input), ~left
    read = ReadColumns(columns, groups, codes, weights, *rows, n_input, index, counts)
    return read if placed.all() else read.take(np.flatnonzero(placed))


def read_labels(
    lengths: Mapping[str, int | None],
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    item_weight: Any = None,
) -> tuple[Groups, dict[str, Codes], dict[str, Array]]:
    """Return groups (one of all rows if there are none), labels and weights by name.

    Labels and weights that are not given are left out. A second column of `cluster` has
    the items, which recur among the clusters. All columns must have the number of rows
    that `lengths` has for the other columns.
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
    return groups or Groups.of_everyone(n_rows), codes, weight


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
    return _ways(cluster).get("cluster")


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
