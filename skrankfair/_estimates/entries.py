"""Numbers by row and group: entries where a row has data, and a low rank elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._inputs.validation import Array


@dataclass(frozen=True, eq=False)
class Entries:
    """An array X of shape (Q, G): values at the entries, ``left @ right.T`` elsewhere.

    A row without data of a group moves the group through the shared columns alone: to
    first order by the product of the row's shared sums (`left`) and the group's slopes
    (`right`).

    Attributes
    ----------
    row, group : ndarray of shape (N,), int
        The row and the group of each entry, sorted by row.
    value : ndarray of shape (N,)
    left : ndarray of shape (Q, r)
    right : ndarray of shape (G, r)
        Of rank 0 where each row has an entry for each group.
    """

    row: Array
    group: Array
    value: Array
    left: Array
    right: Array

    @classmethod
    def of_all(cls, values: Array) -> Entries:
        """Return the array of `values`, shape (Q, G), each of which is an entry."""
        row, group = np.indices(values.shape).reshape(2, -1)
        none = [np.zeros((size, 0)) for size in values.shape]
        return cls(row, group, values.ravel(), *none)

    @cached_property
    def _low(self) -> Array:
        """The product of low rank at the entries, shape (N,)."""
        low = np.zeros(self.value.shape)
        for left, right in zip(self.left.T, self.right.T, strict=True):
            low += left.take(self.row) * right.take(self.group)
        return low

    def _by_group(self, of_entries: Array) -> Array:
        """Return the sums over rows of a number per entry, shape (G,)."""
        shape = len(self.left), len(self.right)
        if of_entries.size == math.prod(shape):
            return np.einsum("qg->g", of_entries.reshape(shape))
        return np.bincount(self.group, of_entries, minlength=shape[1])

    def dense(self) -> Array:
        """Return the whole array, shape (Q, G)."""
        values = self.left @ self.right.T
        values[self.row, self.group] = self.value
        return values

    def positive(self) -> Entries:
        """Return 1 where the array is positive, and 0 elsewhere; of rank 1 at most."""
        return replace(self, value=1.0 * (self.value > 0), left=1.0 * (self.left > 0))

    def sum(self) -> Array:
        """Return the sums over rows, shape (G,)."""
        if not self.right.shape[1]:
            return self._by_group(self.value)
        everywhere = self.right @ self.left.sum(axis=0)
        return everywhere + self._by_group(self.value - self._low)

    def dot(self, other: Entries) -> Array:
        """Return ``Σ_q X_qg Y_qg``, where Y has the same entries, shape (G,)."""
        if not self.right.shape[1]:
            return self._by_group(self.value * other.value)
        both = self.right @ (self.left.T @ other.left)
        everywhere = np.einsum("gr,gr->g", both, other.right)
        at_entries = self.value * other.value - self._low * other._low
        return everywhere + self._by_group(at_entries)

    def products(self, other: Entries, first: Array, second: Array) -> Array:
        """Return ``Σ_q X_qa Y_qb`` for pairs of groups (a, b), shape (m,).

        `first` has the numbers of the groups a, and `second` of the groups b.
        """
        groups, a = np.unique(first, return_inverse=True)
        others, b = np.unique(second, return_inverse=True)
        x, y = self._matrix(groups), other._matrix(others)
        both = x.T @ y
        if not isinstance(both, np.ndarray):
            both = both.tocsr()
        total = np.asarray(both[a, b]).ravel()
        low_x, low_y = self.right[first], other.right[second]
        total = total + np.einsum("mr,mr->m", (x.T @ other.left)[a], low_y)
        total += np.einsum("mr,mr->m", low_x, (y.T @ self.left)[b])
        gram = self.left.T @ other.left
        return total + np.einsum("mr,rs,ms->m", low_x, gram, low_y)

    def gram(self) -> Array:
        """Return ``X.T @ X``, the sums over rows for every two groups, (G, G)."""
        n_groups = len(self.right)
        x = self._matrix(np.arange(n_groups))
        both = x.T @ x
        total = both if isinstance(both, np.ndarray) else both.toarray()
        if self.right.shape[1]:
            low = (x.T @ self.left) @ self.right.T
            total = total + low + low.T
            total += self.right @ (self.left.T @ self.left) @ self.right.T
        # A sum of squares below 0 is rounding.
        np.fill_diagonal(total, np.maximum(np.diag(total), 0.0))
        return total

    def _matrix(self, groups: Array) -> Any:
        """Return the entries of some groups minus `_low`, 0 elsewhere, (Q, m)."""
        from scipy import sparse

        value = self.value - self._low if self.right.shape[1] else self.value
        n_rows, n_groups = len(self.left), len(self.right)
        if value.size == n_rows * n_groups:
            return value.reshape(n_rows, n_groups)[:, groups]
        place = np.full(n_groups, -1)
        place[groups] = np.arange(groups.size)
        column = place[self.group]
        some = slice(None) if groups.size == n_groups else column >= 0
        where = self.row[some], column[some]
        return sparse.csr_array((value[some], where), shape=(n_rows, groups.size))
