"""Numbers by row and group: entries where a row has data, and a low rank elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._inputs.validation import Array

#: Numbers of groups: of the first one of each pair, and of the second.
GroupPairs = tuple[Array, Array]


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

    @cached_property
    def _low(self) -> Array:
        """The product of low rank at the entries, shape (N,), or one 0 of rank 0."""
        ranks = zip(self.left.T, self.right.T, strict=True)
        return np.asarray(sum(a.take(self.row) * b.take(self.group) for a, b in ranks))

    def _by_group(self, of_entries: Array) -> Array:
        """Return the sums over rows of a number per entry, shape (G,)."""
        shape = len(self.left), len(self.right)
        if of_entries.size == math.prod(shape):  # a tenth of the time of counting
            return np.einsum("qg->g", of_entries.reshape(shape))
        return np.bincount(self.group, of_entries, minlength=shape[1])

    def dense(self) -> Array:
        """Return the whole array, shape (Q, G)."""
        values = self.left @ self.right.T
        values[self.row, self.group] = self.value
        return values

    def sizes(self) -> Array:
        """Return how many rows are above 0, their sum, and the sum of squares, (3, G).

        The numbers are those of a support: `left` has at most one column, of which all
        groups have the same multiple.
        """
        some = replace(self, value=1.0 * (self.value > 0), left=1.0 * (self.left > 0))
        sizes = np.stack([np.rint(some.sum()), self.sum(), self.products(self)])
        sizes[:, sizes[0] == 0] = 0.0  # no row has any: it is rounding
        return sizes

    def sum(self) -> Array:
        """Return the sums over rows, shape (G,)."""
        everywhere = self.right @ self.left.sum(axis=0)
        return everywhere + self._by_group(self.value - self._low)

    def products(self, other: Entries, pairs: GroupPairs | None = None) -> Array:
        """Return ``Σ_q X_qa Y_qb`` for pairs of groups (a, b), shape (m,).

        Without `pairs` each group is paired with itself, and Y must have the same
        entries as X: shape (G,).
        """
        gram = self.left.T @ other.left
        if pairs is None:
            at_entries = self.value * other.value
            if not gram.size:
                return self._by_group(at_entries)
            everywhere = np.einsum("gr,rs,gs->g", self.right, gram, other.right)
            return everywhere + self._by_group(at_entries - self._low * other._low)
        first, second = pairs
        groups, a = np.unique(first, return_inverse=True)
        others, b = np.unique(second, return_inverse=True)
        x, y = self._minus_low[:, groups], other._minus_low[:, others]
        total = np.asarray((x.T @ y)[a, b]).ravel()
        low_x, low_y = self.right[first], other.right[second]
        total = total + np.einsum("mr,mr->m", (x.T @ other.left)[a], low_y)
        total += np.einsum("mr,mr->m", low_x, (y.T @ self.left)[b])
        return total + np.einsum("mr,rs,ms->m", low_x, gram, low_y)

    @cached_property
    def _minus_low(self) -> Any:
        """The entries minus the product of low rank, 0 elsewhere, shape (Q, G)."""
        shape = len(self.left), len(self.right)
        value = self.value - self._low
        if math.prod(shape) > 4 * value.size:
            return sparse.csc_array((value, (self.row, self.group)), shape=shape)
        values = np.zeros(shape)
        values[self.row, self.group] = value
        return values
