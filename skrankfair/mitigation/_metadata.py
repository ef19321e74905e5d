"""Groups, queries and clusters of the rows, and X without their columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .._inputs.groups import Codes, Groups, as_groups, encode
from .._inputs.validation import Array, as_weights, check_lengths


def disjoint_groups(values: Any) -> Groups:
    """Return the groups of the rows, each row in one of them."""
    groups = as_groups(values)
    if groups.overlapping:
        raise ValueError(
            "sensitive_features must be disjoint groups here, one per row, since each "
            "row is calibrated once; got a boolean membership matrix of "
            f"{len(groups)} groups, which may overlap. Labels, .astype(str), are "
            "crossed."
        )
    return groups


def columns_of_fit(
    n_rows: int, labels: Any, units: Any, sample_weight: Any
) -> tuple[Groups | None, Codes | None, Array | None]:
    """Return groups, clusters and weights of the rows, each None if not given."""
    groups = None if labels is None else disjoint_groups(labels)
    clusters = None if units is None else encode(units, "cluster").dense()
    weight = None if sample_weight is None else as_weights(sample_weight)
    check_lengths(
        X=n_rows,
        sensitive_features=None if groups is None else groups.n_rows,
        cluster=None if clusters is None else clusters.codes.size,
        sample_weight=None if weight is None else weight.size,
    )
    return groups, clusters, weight


def quoted(labels: list[Hashable]) -> str:
    """Return labels for a message, the first ten of them."""
    text = ", ".join(repr(label) for label in labels[:10])
    return text + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")


def check_given_alike(labels: Any, in_fit: bool) -> None:
    """Raise a ValueError if groups are given to `fit` alone, or to all but `fit`."""
    if (labels is not None) != in_fit:
        raise ValueError(
            "sensitive_features must be given both to fit and afterwards, or to "
            f"neither; fit had {'some' if in_fit else 'none'}. Tools that pass "
            "metadata to fit alone need a column of X, by name."
        )
