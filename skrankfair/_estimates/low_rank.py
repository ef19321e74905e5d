"""Values of rows and groups of which most are of low rank, and the rest are entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._inputs.validation import Array

# Pairs of groups that are looked at together.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Columns:
    """A matrix X of rows and groups: ``left · rightᵀ`` where it has no entry.

    A row without data of a group changes it through the shared columns only, and to
    first order by a product of what the row has and what the group makes of it.

    Attributes
    ----------
    row, group : ndarray of shape (n,), int
        Where the entries are.
    value : ndarray of shape (n,)
        What is there.
    left : ndarray of shape (n_rows, r)
    right : ndarray of shape (G, r)
    """

    row: Array
    group: Array
    value: Array
    left: Array
    right: Array

    def _more(self) -> Array:
        """Return what the entries are more than what would be there without."""
        return self.value - low_rank(self.left[self.row], self.right[self.group])

    def _sparse(self, groups: Array) -> Any:
        """Return that of some groups as a sparse matrix, shape (n_rows, m)."""
        from scipy import sparse

        place = np.full(len(self.right), -1)
        place[groups] = np.arange(groups.size)
        some = place[self.group] >= 0
        where = self.row[some], place[self.group[some]]
        shape = len(self.left), groups.size
        return sparse.csr_array((self._more()[some], where), shape=shape)

    def products(self, other: Columns, first: Array, second: Array) -> Array:
        """Return ``Σ x_a y_b`` over the rows for pairs of groups (a, b), shape (m,)."""
        groups, a = np.unique(first, return_inverse=True)
        others, b = np.unique(second, return_inverse=True)
        x, y = self._sparse(groups), other._sparse(others)
        both = (x.T @ y).tocsr()[a, b]
        low_x, low_y = self.right[first], other.right[second]
        return (
            np.asarray(both).ravel()
            + low_rank((x.T @ other.left)[a], low_y)
            + low_rank(low_x, (y.T @ self.left)[b])
            + low_rank(low_x @ (self.left.T @ other.left), low_y)
        )

    def all_products(self) -> Array:
        """Return ``Σ x_a x_b`` of every two groups, shape (G, G), rows at a time."""
        n_groups = len(self.right)
        products, every = np.zeros((n_groups, n_groups)), np.arange(n_groups)
        step = max(1, _BLOCK // n_groups)
        for start in range(0, n_groups, step):
            some = every[start : start + step]
            pairs = np.repeat(some, n_groups), np.tile(every, some.size)
            products[some] = self.products(self, *pairs).reshape(some.size, -1)
        # Squares below 0 are what rounding leaves of nothing.
        np.fill_diagonal(products, np.maximum(np.diag(products), 0.0))
        return products


def low_rank(left: Array, right: Array) -> Array:
    """Return the sums of products of rows, shape (n,)."""
    return np.einsum("nr,nr->n", left, right)


def linear_products(sums: Any, slopes: Array, first: Array, second: Array) -> Array:
    """Return sums over the rows of products of linear functions, shape (m,).

    ``Σ_q w_q (J_a x_q)(J_b x_q)`` for pairs of groups (a, b), given by number: the
    `slopes` J, of shape (G, C + D), are of a group's own columns and the shared.
    """
    rows, n_columns = sums.rows.sparse(), sums.by_group.shape[1]
    root, right = np.sqrt(rows.frequency), slopes[:, n_columns:]
    own = low_rank(np.asarray(rows.values), slopes[rows.group, :n_columns])
    left = root[:, None] * rows.shared
    value = root[rows.row] * own + low_rank(left[rows.row], right[rows.group])
    columns = Columns(rows.row, rows.group, value, left, right)
    products = columns.products(columns, first, second)
    if sums.folded is not None:
        products += sums.folded.scatter.form(slopes, first, second)
    return products
