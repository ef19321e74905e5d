"""The columns of a call, read once: checked, and without the rows that do not count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .missing import groups_of, may_lack, rows_with_values
from .validation import (
    Array,
    Codes,
    Groups,
    as_numbers,
    as_weights,
    check_aligned,
    check_given,
    check_lengths,
    encode,
)


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
