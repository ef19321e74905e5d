"""Groups, queries and clusters of the rows, and X without their columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import narwhals as nw
import numpy as np

from .._inputs.columns import ColumnSpec
from .._inputs.validation import Array, Codes, Groups, as_groups, as_numbers, encode

NAMES = ("sensitive_features", "qid", "cluster")
RESPONSES = ("predict", "predict_proba", "decision_function")
METHODS = ("fit", "transform", "inverse_transform", "score", *RESPONSES)


class TakesMetadata:
    """An estimator with parameters that say where columns come from (`NAMES`).

    Where one of them is True, the methods that have it as an argument request it.
    """

    def get_metadata_routing(self) -> Any:
        """Return what metadata the estimator requests.

        Returns
        -------
        MetadataRequest
        """
        request = super().get_metadata_routing()  # type: ignore[misc]
        return with_requests(request, self)


def with_requests(request: Any, estimator: Any) -> Any:
    """Return the request, with what the constructor says is metadata."""
    for name in NAMES:
        if getattr(estimator, name, None) is not True:
            continue
        for method in METHODS:
            requests = getattr(request, method, None)
            if requests and requests.requests.get(name, False) is None:
                requests.add_request(param=name, alias=True)
    return request


def named_columns(*specs: ColumnSpec) -> list[str]:
    """Return the names of columns in the specifications."""
    names: list[str] = []
    for spec in specs:
        if isinstance(spec, str):
            names.append(spec)
        elif isinstance(spec, list | tuple):
            names.extend(spec)
    return list(dict.fromkeys(names))


def without_columns(X: Any, names: list[str]) -> Any:
    """Return X without the named columns, if it is a frame that has them."""
    frame = nw.from_native(X, eager_only=True, pass_through=True) if names else X
    if not isinstance(frame, nw.DataFrame):
        return X
    return frame.drop([name for name in names if name in frame.columns]).to_native()


def score_columns(X: Any, names: list[str]) -> Array:
    """Return the columns of a frame that are scores, as floats, shape (n, d)."""
    frame = nw.from_native(X, eager_only=True)
    kept = [column for column in frame.columns if column not in names]
    if not kept:
        raise ValueError(
            f"X must have a column of scores beside {', '.join(map(repr, names))}; it "
            "has none."
        )
    return np.column_stack([as_numbers(frame[name], f"X[{name!r}]") for name in kept])


def disjoint_groups(values: Any) -> Groups:
    """Return the groups of the rows, each row in one of them."""
    groups = as_groups(values)
    if groups.overlapping:
        raise ValueError(
            "sensitive_features must be disjoint groups here, one per row, since each "
            "row is calibrated once; got a boolean membership matrix of "
            f"{len(groups)} groups, which may overlap."
        )
    return groups


def everyone(n_rows: int) -> Groups:
    """Return all rows as one group."""
    return Groups.of_everyone(n_rows)


def dense_clusters(values: Any) -> Codes:
    """Return clusters as codes that all occur."""
    return encode(values, "cluster").dense()


def quoted(labels: list[Hashable]) -> str:
    """Return labels for a message, the first ten of them."""
    text = ", ".join(repr(label) for label in labels[:10])
    return text + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
