"""Which rows without data of a group are looked at exactly, and not to first order.

A row without data of a group changes it through the shared columns only. That is of
first order where the row has a small share of them, and of every support.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._inputs.validation import Array
from .folded import Folded, nowhere
from .table import AnyTable, Finalize, SparseTable

#: A row with a larger share of the data of a group is left out exactly.
LARGE_SHARE = 1 / 400
# Of so few places all are looked at.
_FEW_PLACES = 1 << 20


def shared_share(rows: AnyTable, folded: Folded | None) -> Array:
    """Return the largest share of each row in any shared column, of all rows."""
    size = rows.frequency @ np.abs(rows.shared)
    size = size if folded is None else size + folded.sizes
    with np.errstate(divide="ignore"):
        common = np.where(size > 0, 1 / size, 0.0)
    share: Array = (np.abs(rows.shared) * common).max(axis=1, initial=0.0)
    return share


def large_gaps(
    rows: SparseTable,
    supports: Sequence[Finalize],
    support: Array,
    folded: Folded | None,
) -> tuple[Array, Array]:
    """Return places without an entry whose shared columns are not small.

    Parameters
    ----------
    rows : SparseTable
    supports : sequence of callable
    support : ndarray of shape (S, M, G)
        Their sums.
    folded : Folded or None
        Of the rows that are folded away.

    Returns
    -------
    row, group : ndarray of shape (n,), int
    """
    n_groups = rows.n_groups
    if not rows.shared.shape[1]:
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
    if rows.n_rows * n_groups <= _FEW_PLACES:
        key = np.arange(rows.n_rows * n_groups)
    else:
        parts = [_of_large_rows(rows, folded), *_of_supports(rows, supports, support)]
        keys = [row * np.int64(n_groups) + group for row, group in parts]
        key = np.unique(np.concatenate(keys))
    row, group = np.divmod(key, n_groups)
    gaps = rows.without_entry(row, group)
    return row[gaps], group[gaps]


def _of_large_rows(rows: SparseTable, folded: Folded | None) -> tuple[Array, Array]:
    """Return all places of the rows with a large share of a shared column."""
    share, n_groups = shared_share(rows, folded), rows.n_groups
    most = max(1, max(_FEW_PLACES, rows.row.size) // n_groups)
    large = np.argsort(-share, kind="stable")[:most]
    large = large[share[large] > LARGE_SHARE]
    return np.repeat(large, n_groups), np.tile(np.arange(n_groups), large.size)


def _of_supports(
    rows: SparseTable, supports: Sequence[Finalize], support: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield places of rows whose shared columns are much of a support."""
    for number, amount in enumerate(nowhere(rows, supports)[:, :, -1, 0].T):
        order = np.argsort(-amount, kind="stable")
        least = support[number, -1] * LARGE_SHARE
        size = np.searchsorted(-amount[order], -least)
        size[least <= 0] = 0
        group = np.repeat(np.arange(size.size), size)
        place = np.arange(group.size) - np.repeat(np.cumsum(size) - size, size)
        yield order[place], group
