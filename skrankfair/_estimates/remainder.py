"""Sums of powers of the rows that `compact` folds, which add up.

Where a row has a small share of the data its influence is linear in its columns. What
it adds to a variance then follows from the products of its columns (`Gram`), what it
adds to the degrees of freedom from the powers of its supports, and whether few rows
make most of an error from the products of four columns (`Remainder`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from .._inputs.validation import Array
from .entries import GroupPairs
from .finalize import Finalize
from .rows import Layout, Rows, dense_values
from .storage import stored

#: Products of the columns of two groups are kept only if there are at most this many.
MOST_PRODUCTS = 1 << 20
# A sum of parts keeps more, since parts of other groups have other products.
_MOST_OF_SUMS = 1 << 22
# Products of four columns are kept for tables of few columns, which means of rows and
# of pairs have, and only if there are at most as many as of products of two groups.
_MOST_COLUMNS = 8
# A sum that is a smaller share of its terms is only the rounding of them.
_ROUNDING = 1e-13


@stored("Gram")
@dataclass(frozen=True, eq=False)
class Gram:
    """Cross products of the columns of groups, and of the shared ones, over rows.

    Attributes
    ----------
    matrix : sparse array of shape (K, K)
        ``K = G * C + D``: the columns by group, then the shared ones.
    n_groups, n_shared : int
        G and D.
    complete : bool
        Whether the products of the columns of two groups are kept; where many groups
        share rows, they would be too many.
    """

    matrix: Any
    n_groups: int
    n_shared: int
    complete: bool = True

    @classmethod
    def of(cls, rows: Rows, most: int) -> Gram:
        """Return the sums over rows of the products of their columns.

        Those of two groups are left out if there are more than `most` products.
        """
        n_groups, n_shared = rows.n_groups, rows.shared.shape[1]
        numbers = rows.n_columns * np.diff(rows.starts).astype(float) + n_shared
        size = n_groups * rows.n_columns + n_shared
        complete = bool(min((numbers**2).sum(), size**2 / 4) <= most)
        matrix: Any = sparse.csr_array((size, size))
        for some in rows.blocks():
            corner = sparse.csr_array(some.shared.T @ some.shared)
            if not complete:  # each entry gets a row that it shares with no other group
                row, shared = np.arange(some.row.size), some.shared[some.row]
                some = replace(some, row=row, shared=shared)
            flat = sparse.csr_array(some.flat)
            side = sparse.csr_array(flat.T @ some.shared)
            matrix += sparse.block_array([[flat.T @ flat, side], [side.T, corner]])
        return cls(sparse.csr_array(matrix), n_groups, n_shared, complete)

    @property
    def n_columns(self) -> int:
        """The number of columns of each group."""
        return int(self.matrix.shape[0] - self.n_shared) // max(1, self.n_groups)

    def products(
        self,
        left: Array,
        right: Array,
        pairs: GroupPairs | None = None,
        chosen: Array | slice = slice(None),
    ) -> Array:
        """Return ``L_a · P_ab · R_b`` for pairs of groups (a, b), shape (m,).

        P_ab are the products of the columns of a and b; L is `left` and R `right`, the
        slopes of two functions of shape (G, C + D), or of the `chosen` columns. Without
        `pairs` each group is paired with itself.
        """
        first, second = (np.arange(self.n_groups),) * 2 if pairs is None else pairs
        if not np.array_equal(first, second):
            self._check_complete()
        columns = self._columns()[:, chosen]
        size, values = columns.shape[1], np.empty(first.size)
        step = max(1, MOST_PRODUCTS // max(1, size**2))
        for start in range(0, first.size, step):
            a, b = (groups[start : start + step] for groups in (first, second))
            rows = np.repeat(columns[a], size, axis=1).ravel()
            others = np.tile(columns[b], size).ravel()
            block = np.asarray(self.matrix[rows, others]).reshape(-1, size, size)
            parts = left[a], block, right[b]
            value = np.einsum("mi,mij,mj->m", *parts)
            whole = np.einsum("mi,mij,mj->m", *map(np.abs, parts))
            nothing = np.abs(value) <= _ROUNDING * whole
            values[start : start + step] = np.where(nothing, 0.0, value)
        return values

    def _columns(self) -> Array:
        """Return the numbers of own and shared columns of each group, (G, C + D)."""
        n_columns = self.n_columns
        numbers = np.arange(self.n_groups * n_columns)
        by_group = numbers.reshape(self.n_groups, n_columns)
        shared = self.n_groups * n_columns + np.arange(self.n_shared)
        return np.hstack([by_group, np.tile(shared, (self.n_groups, 1))])

    def renumbered(self, to: Layout) -> Gram:
        """Return the products with groups and columns renumbered."""
        if to.kept.size > to.n_groups:
            self._check_complete()
        size = to.n_groups * to.n_columns
        place = to.groups[:, None] * np.int64(to.n_columns) + to.columns
        place[to.groups < 0] = -1
        place = np.append(place, size + to.shared).astype(np.int64)
        entries = sparse.coo_array(self.matrix)
        row, column = place[entries.row], place[entries.col]
        kept = (row >= 0) & (column >= 0)
        moved = row[kept], column[kept]
        shape = (size + to.n_shared,) * 2
        matrix = sparse.csr_array((entries.data[kept], moved), shape=shape)
        return Gram(matrix, to.n_groups, to.n_shared, self.complete or to.n_groups == 1)

    def _check_complete(self) -> None:
        """Raise a ValueError where the products of two groups were not kept."""
        if not self.complete:
            raise ValueError(
                f"compact() keeps the variance of each of {self.n_groups} groups, "
                "whose covariances are too many: compare groups before compact(), or "
                "measure fewer groups."
            )

    def of_each_group(self) -> Gram:
        """Return the products within each group, and with the shared columns."""
        entries = sparse.coo_array(self.matrix)
        n_columns, size = max(1, self.n_columns), entries.shape[0] - self.n_shared
        alike = entries.row // n_columns == entries.col // n_columns
        kept = alike | (np.maximum(entries.row, entries.col) >= size)
        where = entries.row[kept], entries.col[kept]
        matrix = sparse.csr_array((entries.data[kept], where), shape=entries.shape)
        return replace(self, matrix=matrix, complete=False)

    def __add__(self, other: Gram) -> Gram:
        """Return the sums over the rows of both."""
        complete = self.complete and other.complete
        total = replace(self, matrix=self.matrix + other.matrix, complete=complete)
        few = total.matrix.nnz <= _MOST_OF_SUMS and self.complete == other.complete
        return total if few else total.of_each_group()


@stored("Remainder")
@dataclass(frozen=True, eq=False)
class Remainder:
    """Sums over the rows that `compact` has folded, each of a small share of the data.

    A support says how much data a row has of a group, by stratum: clusters are one
    stratum, and of items the members of a group and all others are two. The last of the
    G + 1 groups stands for a group without entries, of which the shared columns alone
    tell how much data the rows have.

    Attributes
    ----------
    scatter : Gram
        Sums of products of the columns.
    supports : ndarray of shape (3, S, M, G + 1)
        Number of rows with a support above 0, the sum of the supports, and of their
        squares; S supports and M strata.
    quartic : Gram
        Sums of products of squared supports, in S * M columns. The shared ones are the
        squares of the group without entries, and those of a group its own squares minus
        these.
    sizes : ndarray of shape (D,)
        Sums of the absolute values of the shared columns.
    powers : ndarray of shape (M, G + 1, K) or None
        Sums of all products of two, then of three and of four, of the own and the
        shared columns. None: there are too many columns or groups.
    """

    scatter: Gram
    supports: Array
    quartic: Gram
    sizes: Array
    powers: Array | None = None

    @classmethod
    def of(cls, rows: Rows, supports: Sequence[Finalize], most: int) -> Remainder:
        """Return the sums over the rows of a table, with at most `most` products."""
        samples = [s for support in supports for s in rows.support_by_stratum(support)]
        of_entry = np.zeros((rows.row.size, len(samples)))
        for values, sample in zip(of_entry.T, samples, strict=True):
            every = sample.value.size == values.size  # else the entries of members
            values[slice(None) if every else rows.member] = sample.value
        of_row = np.stack([sample.left.sum(axis=1) for sample in samples], axis=1)
        without = np.stack([of_row > 0, of_row, of_row**2]).sum(axis=1)
        of_groups = np.stack([sample.sizes() for sample in samples], axis=1)
        sizes = np.concatenate([of_groups, without[..., None]], axis=2)
        shape = 3, len(supports), rows.n_strata, rows.n_groups + 1
        more = of_entry**2 - of_row[rows.row] ** 2
        squares = replace(rows, values=more, shared=of_row**2)
        return cls(
            Gram.of(rows, most),
            sizes.reshape(shape),
            Gram.of(squares, most),
            np.abs(rows.shared).sum(axis=0),
            _powers_of(rows, most),
        )

    def moments(self, slopes: Array) -> Array:
        """Return ``Σ u²``, ``Σ u³`` and ``Σ u⁴`` by stratum and group, (3, M, G).

        ``u = Σ_c slope_c x_c`` is over the columns x of a row; `slopes` has shape
        (G, C + D). All are 0 where the powers are not kept.
        """
        sums = np.zeros((3, self.supports.shape[2], len(slopes)))
        if self.powers is not None:
            products = monomials(slopes.shape[1])
            for columns, power in zip(products, self.powers.T, strict=True):
                factor = slopes[:, columns].prod(axis=1) * _orders(columns)
                sums[len(columns) - 2] += factor * power[:-1].T
        sums[::2] = np.maximum(sums[::2], 0.0)  # below 0 is rounding
        return sums

    def quartic_products(self, chosen: Array, pairs: GroupPairs | None = None) -> Array:
        """Return sums of products of the squares of k chosen supports, (k, k, m).

        They are chosen by their numbers in S * M columns; for pairs of groups, or for
        each group.
        """
        size, quartic = chosen.size, self.quartic
        # The square of a group is the sum of its own column and the shared one.
        both = np.append(chosen, chosen + quartic.n_shared)
        slopes = np.tile(np.eye(size), 2)[:, None].repeat(quartic.n_groups, 1)
        products = [quartic.products(a, b, pairs, both) for a in slopes for b in slopes]
        return np.reshape(products, (size, size, -1))

    def renumbered(self, to: Layout) -> Remainder:
        """Return the sums with groups and columns renumbered."""
        if to.kept.size > to.n_groups:
            return self._pooled(to)
        source = np.full(to.n_groups + 1, -1)
        source[to.groups[to.kept]] = to.kept
        n_strata = self.supports.shape[2]
        supports = np.zeros((3, to.n_supports, n_strata, source.size))
        supports[:, to.supports] = self.supports[..., source]
        columns = (to.supports[:, None] * n_strata + np.arange(n_strata)).ravel()
        size = to.n_supports * n_strata
        squares = replace(
            to, columns=columns, n_columns=size, shared=columns, n_shared=size
        )
        sizes = np.zeros(to.n_shared)
        sizes[to.shared] = self.sizes
        return Remainder(
            self.scatter.renumbered(to),
            supports,
            self.quartic.renumbered(squares),
            sizes,
            _renumbered_powers(self.powers, to, source),
        )

    def in_strata(self, n_strata: int) -> Remainder:
        """Return the sums with two strata added, if they join rows of one stratum."""
        _, n_supports, size, _ = self.supports.shape
        if size == n_strata:
            return self
        groups = np.arange(self.quartic.n_groups)
        # At each entry one of two strata is 0, so that their squares add up too.
        to = np.repeat(np.arange(n_supports), size), n_supports
        return replace(
            self,
            supports=self.supports.sum(axis=2, keepdims=True),
            quartic=self.quartic.renumbered(Layout(groups, groups.size, *to, *to, *to)),
            powers=None if self.powers is None else self.powers.sum(axis=0)[None],
        )

    def _pooled(self, to: Layout) -> Remainder:
        """Return the sums of all groups as one.

        The sums of squares are upper bounds, which all groups reach in the same rows.
        """
        active, support, square = self.supports[..., :-1]
        pooled = np.stack(
            [active.max(-1), support.sum(-1), np.sqrt(square).sum(-1) ** 2]
        )
        size = self.quartic.n_shared
        of_groups = [self.quartic_products(k)[0, 0] for k in np.arange(size)[:, None]]
        fourth = (np.maximum(of_groups, 0.0) ** 0.25).sum(-1) ** 4
        quartic = np.zeros((2 * size,) * 2)
        quartic[:size, :size] = np.sqrt(np.multiply.outer(fourth, fourth))
        return Remainder(
            self.scatter.renumbered(to),
            # The group without entries has none.
            np.stack([pooled, 0 * pooled], axis=-1),
            Gram(sparse.csr_array(quartic), 1, size),
            self.sizes,
        )

    def __add__(self, other: Remainder) -> Remainder:
        """Return the sums over the rows of both."""
        parts = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        sums: Any = (None if a is None or b is None else a + b for a, b in parts)
        return Remainder(*sums)


def _powers_of(rows: Rows, most: int) -> Array | None:
    """Return the `powers` of a remainder; None if they are more than `most`."""
    n_own, n_groups, n_strata = rows.n_columns, rows.n_groups, rows.n_strata
    size = n_own + rows.shared.shape[1]
    products = monomials(min(size, _MOST_COLUMNS))
    powers = np.zeros((n_strata, n_groups + 1, len(products)))
    if size > _MOST_COLUMNS or powers.size > most:
        return None
    for block in rows.blocks():
        shared = np.ascontiguousarray(block.shared.T)
        own = np.ascontiguousarray(dense_values(block.values).T)
        entry = [*own, *shared.take(block.row, axis=1)]
        for columns, power in zip(products, powers.T, strict=True):
            product = math.prod(entry[c] for c in columns)
            of_cells = np.bincount(block.cell, product, n_strata * n_groups)
            of_cells = of_cells.reshape(n_strata, n_groups).T
            power[:-1] += of_cells
            # All rows have shared columns. Those without an entry are of the last
            # stratum, and the last group stands for one without entries.
            if columns[0] >= n_own:
                power[:-1, -1] -= of_cells.sum(axis=1)
                power[:, -1] += math.prod(shared[c - n_own] for c in columns).sum()
    return powers


def _renumbered_powers(powers: Array | None, to: Layout, source: Array) -> Array | None:
    """Return the powers of groups and columns renumbered; None if they are too many."""
    size = to.n_columns + to.n_shared
    if powers is None or size > 2 * _MOST_COLUMNS:
        return None
    place = [*to.columns, *(to.n_columns + to.shared)]
    number = {columns: i for i, columns in enumerate(monomials(size))}
    old = [sorted(place[c] for c in columns) for columns in monomials(len(place))]
    moved = np.zeros((len(powers), source.size, len(number)))
    moved[..., [number[tuple(columns)] for columns in old]] = powers[:, source]
    return moved


def monomials(n_columns: int) -> list[tuple[int, ...]]:
    """Return the columns of each product of two to four columns, in order."""
    of = itertools.combinations_with_replacement
    return [some for order in (2, 3, 4) for some in of(range(n_columns), order)]


def _orders(factors: tuple[int, ...]) -> int:
    """Return how often the product of these factors occurs in a power of their sum."""
    return len(set(itertools.permutations(factors)))
