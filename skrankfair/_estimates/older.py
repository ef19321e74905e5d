"""Objects of stored results that earlier states of version 0.1.0 wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .finalize import ratios_minus_rest
from .remainder import Gram, Remainder
from .resampled import Replicates, ResampledSums
from .rows import Rows
from .sums import ClusterSums


def present_fields(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an object by the names that they have today."""
    for before, now in (("others", "of_rest"), ("rest", "sides")):
        if before in parts:
            parts[now] = parts.pop(before)
    if callable(parts.get("by_chance")):
        parts["by_chance"] = (parts["by_chance"],)
    if "folded" in parts:
        parts["remainder"] = parts.pop("folded")
        parts.pop("pairs", None)
    if "active" in parts:
        sizes = [parts.pop(name) for name in ("active", "support", "square")]
        parts["supports"] = np.stack(sizes)
    if "leading" in parts:
        table, leading = parts.pop("table"), parts.pop("leading")
        parts |= {"rows": table or leading, "compacted": table is None}
    return parts


def with_present_columns(result: Any) -> Any:
    """Return a `GroupEstimates` with zeros in the columns that its metric has today."""
    sums = result.sums
    if result.name != "exposure_gap" or sums.by_group.shape[1] != 3:
        return result
    to = replace(sums.layout, columns=np.array([0, 1, 4]), n_columns=5)
    return replace(result, sums=sums.renumbered(to, sums.groups))


def _refit_sums(
    *, kept: Any, n_resamples: int | None, curves: Any = None, **parts: Any
) -> ClusterSums:
    """Return sums over clusters whose covariance may be that of fits to resamples."""
    if kept is not None:
        known = np.isfinite(np.diag(kept))
        squares, axes = np.linalg.eigh(np.where(np.outer(known, known), kept, 0.0))
        kept = np.sqrt(np.maximum(squares, 0.0))[:, None] * axes.T
        kept[:, ~known] = np.nan
    times = 0 if n_resamples is None else n_resamples
    sums = ResampledSums(n_resamples=times, deviations=kept, adds_up=False, **parts)
    return ClusterSums.of_sums(sums) if n_resamples is None else sums


def _replicates(*, by_group: Any, shared: Any, **parts: Any) -> Replicates:
    """Return totals of replicates, which were split into numbers without rounding."""
    if by_group.ndim == 4:
        by_group, shared = by_group.sum(axis=0), shared.sum(axis=0)
    return Replicates(by_group=by_group, shared=shared, **parts)


def _replicates_of_pair(
    *, first: ClusterSums, by_group: Any, shared: Any, replicates: Any, **_: Any
) -> ResampledSums:
    """Return the sums of two results whose covariance is that of replicates."""
    return ResampledSums.of_pair(first, by_group, shared, replicates)


def _few_columns(*, at: Any, values: Any, width: int) -> Any:
    """Return a sparse array with the same number of entries in each row."""
    where = values.ravel(), at.ravel(), np.arange(0, at.size + 1, at.shape[1])
    return sparse.csr_array(where, shape=(len(at), width))


def _sparse(*, key: Any, values: Any, size: int) -> Any:
    """Return a square array of its values by row and column, in one number."""
    return sparse.csr_array((values, np.divmod(key, size)), shape=(size, size))


def _products(*, matrix: Any, **parts: Any) -> Gram:
    """Return sums of products of columns."""
    return Gram(matrix=sparse.csr_array(matrix), **parts)


def _folded(*, scatter: Gram, sizes: Any = 0.0, **parts: Any) -> Remainder:
    """Return the sums of the folded rows."""
    sizes = np.broadcast_to(sizes, scatter.n_shared)
    return Remainder(scatter=scatter, sizes=sizes, **parts)


def _table(*, by_group: Any, shared: Any, weight: Any, **parts: Any) -> Rows:
    """Return a table with every group in each row, weights being factors."""
    if weight is not None:
        by_group, shared = by_group * weight[:, None, None], shared * weight[:, None]
    return Rows.of_all(by_group, shared, **parts)


def _sparse_table(
    *, row: Any, values: Any, shared: Any, weight: Any, **parts: Any
) -> Rows:
    """Return a table of entries, weights being factors."""
    if weight is not None:
        values = sparse.diags_array(weight[row]) @ values
        shared = shared * weight[:, None]
    return Rows(row=row, values=values, shared=shared, **parts)


#: What makes the objects of classes that are no more, or had other fields, by name.
CLASSES: dict[str, Any] = {
    "FewColumns": _few_columns,
    "Sparse": _sparse,
    "Products": _products,
    "Folded": _folded,
    "Table": _table,
    "SparseTable": _sparse_table,
    "Replicates": _replicates,
    "RefitSums": _refit_sums,
    "PairedReplicates": _replicates_of_pair,
    "DifferenceToRest": ratios_minus_rest,
}

#: Functions of totals that were classes without fields, by name.
FUNCTIONS = (
    *("LastColumn", "ShareGap", "ItemCount"),
    *("RootMeanSquare", "NarrowSquare", "ListsWithBoth"),
)
