"""Two tables as one: the rows of two parts, or the columns of two models."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._inputs.validation import Array
from .table import AnyTable, SparseTable, Table


def stack(a: AnyTable, b: AnyTable) -> AnyTable:
    """Return the rows of both."""
    if not (a.n_rows and b.n_rows):
        return a if a.n_rows else b
    weight = None
    if a.weight is not None or b.weight is not None:
        weight = np.concatenate([a.frequency, b.frequency])
    if a.labels.dtype != b.labels.dtype and "O" not in (
        a.labels.dtype.kind,
        b.labels.dtype.kind,
    ):
        labels = np.concatenate([a.labels.astype(object), b.labels.astype(object)])
    else:
        labels = np.concatenate([a.labels, b.labels])
    shared = np.concatenate([a.shared, b.shared])
    if isinstance(a, Table) and isinstance(b, Table):
        by_group = np.concatenate([a.by_group, b.by_group])
        return Table(by_group, shared, weight, labels, _both(a.member, b.member))
    one, two = a.sparse(), b.sparse()
    return SparseTable(
        np.concatenate([one.row, two.row + a.n_rows]),
        np.concatenate([one.group, two.group]),
        np.concatenate([one.values, two.values]),
        _both(one.member, two.member),
        a.n_groups,
        shared,
        weight,
        labels,
    )


def added(a: Any, b: Any) -> Any:
    """Return the sum of what is there."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _both(a: Array | None, b: Array | None) -> Array | None:
    return None if a is None or b is None else np.concatenate([a, b])


def join(a: AnyTable, b: AnyTable, rows: Array) -> AnyTable:
    """Return the columns of both side by side, those of `b` from these of its rows."""
    b = b.take(rows)
    shared = np.concatenate([a.shared, b.shared], axis=1)
    if isinstance(a, Table) and isinstance(b, Table):
        columns = np.concatenate([a.by_group, b.by_group], axis=2)
        return Table(columns, shared, a.weight, a.labels, a.member)
    one, two = a.sparse(), b.sparse()
    width = one.n_columns
    both = [
        np.pad(one.values, [(0, 0), (0, two.n_columns)]),
        np.pad(two.values, [(0, 0), (width, 0)]),
    ]
    return Table.from_entries(
        np.concatenate([one.row, two.row]),
        np.concatenate([one.group, two.group]),
        np.concatenate(both),
        n_rows=a.n_rows,
        n_groups=a.n_groups,
        shared=shared,
        weight=a.weight,
        labels=a.labels,
        member=_both(one.member, two.member),
    )


def same_rows(a: AnyTable, b: AnyTable) -> Array:
    """Return the rows of `b` in the order of the clusters of `a`."""
    import pandas as pd

    if not pd.Index(a.labels).is_unique:
        raise ValueError(
            "A paired comparison needs clusters with labels of their own; some labels "
            "repeat, as when parts that each number their queries from 0 are added."
        )
    rows = np.arange(a.n_rows)
    same = a.n_rows == b.n_rows
    if same and not np.array_equal(a.labels, b.labels):
        try:
            rows[np.argsort(a.labels, kind="stable")] = np.argsort(
                b.labels, kind="stable"
            )
        except TypeError:  # labels of mixed types
            place = {label: row for row, label in enumerate(b.labels.tolist())}
            rows = np.array([place.get(label, 0) for label in a.labels.tolist()])
        same = np.array_equal(a.labels, b.labels[rows])
    if same:
        same = np.array_equal(a.frequency, b.frequency[rows])
    if not same:
        raise ValueError(
            "A paired comparison needs two results on the same clusters (queries, or "
            f"the items of one list) with the same weights; got {a.n_rows} and "
            f"{b.n_rows} clusters whose labels or weights differ."
        )
    return rows
