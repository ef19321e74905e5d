"""Labels of groups, queries and clusters become integer codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from reprlib import repr as shown
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from .validation import PLAIN, Array, check_vector, remedy, to_numpy, warn_user


def _sort_key(label: Any) -> tuple[int, str, Any]:
    """Order labels of mixed types: numbers by value, then the rest by type and text."""
    if isinstance(label, bool | int | float):
        return (0, "", label)
    if isinstance(label, tuple):
        return (1, "tuple", tuple(_sort_key(part) for part in label))
    if isinstance(label, timedelta):
        return (1, "timedelta", label.total_seconds())
    return (1, type(label).__name__, str(label))


def sort_labels(labels: Sequence[Hashable]) -> list[Hashable]:
    """Return labels of any types in the one order that the package uses."""
    return sorted(labels, key=_sort_key)


def union_of_labels(
    labels: tuple[Hashable, ...], others: tuple[Hashable, ...]
) -> tuple[Hashable, ...]:
    """Return the labels of both, in the order of the first where they are the same.

    A ValueError is raised if they differ in type alone, as 1 and "1" of two files do of
    which one has a cell of text.
    """
    if set(labels) == set(others):
        return labels
    if set(labels).isdisjoint(others):
        first, second = ({_as_text(x): x for x in some} for some in (labels, others))
        for text in first.keys() & second:
            raise ValueError(
                "Results whose group labels differ only in type cannot be added; got "
                f"{first[text]!r} and {second[text]!r}. Write the labels alike: "
                "those of a CSV file are numbers only if all of them are."
            )
    return tuple(sort_labels(list({*labels, *others})))


def _as_text(label: Hashable) -> Hashable:
    return tuple(map(_as_text, label)) if isinstance(label, tuple) else str(label)


def number_of(label: Hashable, labels: Sequence[Hashable], name: str) -> int:
    """Return the number of a group's label; a ValueError if it is none of them."""
    try:
        hash(label)  # an array may be equal to a label, and is none
        return labels.index(label)
    except (ValueError, TypeError):
        raise ValueError(
            f"{name} must be one of the groups {shown(list(labels))}; got {label!r}."
        ) from None


def as_scalar(label: Any) -> Hashable:
    """Return a label as an object of Python, or of pandas where it has nanoseconds."""
    if not isinstance(label, np.generic):
        return label
    value: Hashable = label.item()
    if not (isinstance(label, np.datetime64 | np.timedelta64) and type(value) is int):
        return value
    try:
        kind: Any = pd.Timestamp if isinstance(label, np.datetime64) else pd.Timedelta
        return kind(label)
    except (ValueError, OverflowError):  # beyond the years that pandas knows
        return str(label)


def stable_order(codes: Array) -> Array:
    """Return ``np.argsort(codes, kind="stable")`` of non-negative integers."""
    bits, most = codes.size.bit_length(), int(codes.max(initial=0))
    if most < 1 << 16:  # a radix sort
        return np.argsort(codes.astype(np.uint16), kind="stable")
    if most.bit_length() + bits > 62:
        return np.argsort(codes, kind="stable")
    # Sorting values is several times as fast as sorting their places.
    key: Array = codes.astype(np.int64, copy=False) << bits
    key |= np.arange(codes.size)
    key.sort()
    key &= (1 << bits) - 1
    return key


def starts_of_runs(values: Array, starts: Array | None = None) -> Array:
    """Return the first of each run of equal values.

    Runs end where blocks do, of which `starts` are the first of each, and the number of
    values.
    """
    new = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    if starts is not None:
        new[starts[:-1]] = True
    return np.flatnonzero(new)


def rows_of_ranges(first: Array, size: Array) -> tuple[Array, Array]:
    """Return the range of each row of ranges that follow each other, and the row."""
    number = np.repeat(np.arange(size.size), size)
    rows = (first - np.cumsum(size) + size).take(number)
    rows += np.arange(rows.size)
    return number, rows


@dataclass(frozen=True)
class Codes:
    """Labels as integers: ``labels[codes]`` gives the column back."""

    codes: Array  # shape (n,), int64: 0, 1, ..., of which each occurs
    labels: Array  # shape (size,): the distinct labels

    @property
    def size(self) -> int:
        """The number of distinct labels."""
        return self.labels.size

    @property
    def of_rows(self) -> Array:
        """The label of each row."""
        return self.labels[self.codes]

    def take(self, rows: Array) -> Codes:
        """Return the codes of some rows, without the labels that they do not have."""
        codes, left = _codes_of(self.codes[rows])
        return Codes(codes, self.labels[left])

    def crossed(self, other: Codes) -> Codes:
        """Return the codes of the pairs of labels that occur, labelled by number."""
        # It is below the square of the number of rows, and never overflows.
        number = self.codes * other.size + other.codes
        order = stable_order(number)  # several times as fast as `np.unique`
        first = starts_of_runs(number[order])
        codes = np.empty(order.size, dtype=np.int64)
        sizes = np.diff(first, append=order.size)
        codes[order] = np.repeat(np.arange(first.size), sizes)
        return Codes(codes, number[order[first]])

    def crossed_units(self, other: Codes) -> Codes | None:
        """Return `crossed`, or None where no pair of labels occurs twice.

        Each row is then a unit of its own.
        """
        both = self.crossed(other)
        return None if both.size == both.codes.size else both


def _codes_of(values: Array) -> tuple[Array, Array]:
    """Return codes and labels, whole numbers in their order; missing ones are -1."""
    whole = values.dtype.kind in "iu" and values.size > 0
    if whole and values.min() >= 0 and (most := int(values.max())) < values.size:
        found = np.zeros(most + 1, dtype=bool)  # which is faster than a hash table
        found[values] = True
        codes = (np.cumsum(found) - 1)[values]
        return codes, np.flatnonzero(found).astype(values.dtype)
    return pd.factorize(values, sort=values.dtype.kind in "biu")


def encode(values: Any, name: str) -> Codes:
    """Give every distinct label of a column an integer, whole numbers in their order.

    The columns of a frame are crossed into tuples.
    """
    columns, _ = frame_columns(values) or ([], [])
    if len(columns) > 1:
        return _crossed([encode(column, name) for column in columns])
    array = to_numpy(values, name)
    check_vector(array, name)
    try:
        codes, labels = _codes_of(array)
    except TypeError as error:
        raise ValueError(f"{name} must hold hashable labels ({error}).") from error
    if (missing := codes < 0).any():
        raise ValueError(
            f"{name} must not have missing labels; row {int(np.argmax(missing))} "
            f"is {array[np.argmax(missing)]} ({missing.sum():,} of "
            f"{missing.size:,} rows).{remedy(name)}"
        )
    return Codes(codes.astype(np.int64, copy=False), np.asarray(labels))


def _crossed(columns: list[Codes]) -> Codes:
    """Return the combinations of labels that occur, as tuples."""
    crossed = reduce(Codes.crossed, columns)
    row = np.empty(crossed.size, dtype=np.int64)
    row[crossed.codes] = np.arange(crossed.codes.size)
    labels = np.empty(crossed.size, dtype=object)
    parts = (map(as_scalar, column.of_rows[row]) for column in columns)
    labels[:] = list(zip(*parts, strict=True))
    return Codes(crossed.codes, labels)


@dataclass(frozen=True)
class Groups:
    """The groups of the rows: disjoint codes, or an overlapping membership matrix."""

    labels: tuple[Hashable, ...]  # length G
    #: Shape (n,), int, or shape (n, G), bool. The code of each row's group; or the
    #: membership matrix, one column per group.
    values: Array

    @classmethod
    def of_everyone(cls, n_rows: int) -> Groups:
        """Return the one group "all", which ``sensitive_features=None`` stands for."""
        return cls(("all",), np.zeros(n_rows, dtype=np.int32))

    @classmethod
    def of_labels(cls, column: Codes) -> Groups:
        """Return the groups of labels, in the order of `sort_labels`."""
        labels = [as_scalar(label) for label in column.labels]
        order = sorted(range(column.size), key=lambda i: _sort_key(labels[i]))
        place = np.argsort(order).astype(np.int32)
        return cls(tuple(labels[i] for i in order), place[column.codes])

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.labels)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.values)

    @property
    def overlapping(self) -> bool:
        """Whether a row may be of several groups, or of none."""
        return self.values.ndim == 2

    def check_disjoint(self, use: str) -> None:
        """Raise a ValueError if a row may be of several groups."""
        if self.overlapping:
            raise ValueError(
                f"sensitive_features must be disjoint groups for {use}; got a "
                "membership matrix of groups that may overlap."
            )

    def mask(self, group: int) -> Array:
        """Return which rows are of the group at this index."""
        if self.overlapping:
            return np.ascontiguousarray(self.values[:, group])
        return self.values == group

    def memberships(self) -> tuple[Array, Array]:
        """Return the row and the group of every membership, sorted by row."""
        if self.overlapping:
            rows, group = np.nonzero(self.values)
            return rows, group
        return np.arange(self.n_rows), self.values

    def take(self, rows: Array | slice) -> Groups:
        """Return the groups of some rows, in that order."""
        return Groups(self.labels, self.values[rows])

    def without_unused(self) -> Groups:
        """Return the groups without the labels that no row has, if disjoint."""
        if self.overlapping:
            return self
        used = np.bincount(self.values, minlength=len(self)) > 0
        codes = np.cumsum(used, dtype=self.values.dtype) - 1
        labels = tuple(self.labels[i] for i in np.flatnonzero(used))
        return Groups(labels, codes[self.values])


def frame_of(values: Any) -> Any:
    """Return a frame of pandas unchanged, others as one of narwhals; None if no frame.

    Pandas may name two columns alike, or by integers, which narwhals does not take.
    """
    if nw.dependencies.is_pandas_dataframe(values):
        return values
    if isinstance(values, PLAIN):
        return None
    frame = nw.from_native(values, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def frame_columns(values: Any) -> tuple[list[Any], list[Hashable]] | None:
    """Return the columns and names of a frame of any library, or None."""
    frame = frame_of(values)
    if frame is None:
        return None
    if frame is values:  # by position, where two columns may have one name
        names = [as_scalar(name) for name in frame.columns]
        return [frame.iloc[:, i] for i in range(frame.shape[1])], names
    return [frame[name].to_native() for name in frame.columns], list(frame.columns)


def as_columns(values: Any, name: str) -> tuple[list[Array], list[Hashable] | None]:
    """Return the columns of a frame or matrix, and their names (None of a vector)."""
    columns = frame_columns(values)
    if columns is not None:
        return [to_numpy(column, name) for column in columns[0]], columns[1]
    array = to_numpy(values, name)
    if array.ndim != 2:
        return [array], None
    return list(array.T), list(range(array.shape[1]))


def mark_members(columns: Iterable[Array], skipna: bool = False) -> bool:
    """Return whether all columns hold truth values, each of the members of a group."""
    return all(infer_dtype(column, skipna=skipna) == "boolean" for column in columns)


def as_groups(values: Any) -> Groups:
    """Read group labels, several label columns, or a boolean membership matrix.

    Several columns of labels are crossed into tuples. A boolean matrix or frame is a
    membership matrix, with one (possibly overlapping) group per column.
    """
    name = "sensitive_features"
    arrays, names = as_columns(values, name)
    if not arrays:
        raise ValueError(f"{name} must have at least one column; it has none.")
    if names is not None and mark_members(arrays):
        if len(set(names)) < len(names):
            raise ValueError(
                f"{name} must have distinct column names; got {tuple(names)}."
            )
        for array in arrays:
            check_vector(array, name)
        return Groups(tuple(names), np.column_stack(arrays).astype(bool))
    if len(arrays) == 1:
        return Groups.of_labels(encode(arrays[0], name))
    numbers = all(a.size and a.dtype.kind in "iuf" for a in arrays)
    if numbers and all(np.isin(array, (0, 1)).all() for array in arrays):
        warn_user(
            f"{name} has {len(arrays)} columns of the numbers 0 and 1, whose "
            "combinations are the groups. If each column marks the members of a group, "
            "pass booleans, .astype(bool); if combinations are meant, pass labels, "
            ".astype(str), and this warning goes away.",
            UserWarning,
        )
    return Groups.of_labels(_crossed([encode(array, name) for array in arrays]))
