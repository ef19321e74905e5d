"""Sums over rows: cross products of columns, and what stays of folded rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._inputs.validation import Array
from .places import ColumnPlaces
from .storage import stored
from .table import AnyTable, Finalize, SparseTable, Table, strata

# A matrix of so many numbers has all of them, and a sparse one about so many.
_MOST_NUMBERS, _MOST_ENTRIES = 1 << 22, 1 << 20
_BLOCK = 1 << 20
# So many are kept with what is kept often.
_FEW_NUMBERS = 1 << 17


@stored("Sparse")
@dataclass(frozen=True)
class Sparse:
    """A square matrix of which most is 0.

    Attributes
    ----------
    size : int
        K, the number of rows.
    key : ndarray of shape (n,), int64
        Row times K plus column of each entry, increasing.
    values : ndarray of shape (n,)
    """

    size: int
    key: Array
    values: Array

    @classmethod
    def of(cls, size: int, rows: Array, columns: Array, values: Array) -> Sparse:
        """Return the matrix of entries in any order, those of one place added."""
        key = rows * np.int64(size) + columns
        if (key[1:] <= key[:-1]).any():
            order = np.argsort(key, kind="stable")
            key, values = key[order], values[order]
            first = np.flatnonzero(np.diff(key, prepend=-1))
            key, values = key[first], np.add.reduceat(values, first)
        return cls(size, key, values)

    def entries(self) -> tuple[Array, Array, Array]:
        """Return row, column and value of each entry."""
        return *np.divmod(self.key, self.size), self.values

    def at(self, rows: Array, columns: Array) -> Array:
        """Return the values at these places, 0 without an entry."""
        asked = rows * np.int64(self.size) + columns
        if not self.key.size:
            return np.zeros(asked.shape)
        place = np.minimum(np.searchsorted(self.key, asked), self.key.size - 1)
        return np.where(self.key[place] == asked, self.values[place], 0.0)

    def dense(self) -> Array:
        """Return all of the matrix."""
        dense = np.zeros(self.size**2)
        dense[self.key] = self.values
        return dense.reshape(self.size, -1)


@stored("Products")
@dataclass(frozen=True)
class Products:
    """Cross products of the columns of groups, and of the shared ones, over rows.

    Attributes
    ----------
    matrix : ndarray of shape (K, K) or Sparse
        ``K = G * C + D``: the columns by group, then the shared ones.
    n_groups : int
        G.
    n_shared : int
        D.
    complete : bool
        Whether products of the columns of two groups are there; where many groups
        share rows, they would be too many.
    """

    matrix: Array | Sparse
    n_groups: int
    n_shared: int
    complete: bool = True

    @classmethod
    def of_table(
        cls, table: AnyTable, *, all_pairs: bool = False, kept_often: bool = False
    ) -> Products:
        """Return the sums over the rows of a table.

        `all_pairs`: of the columns of every two groups, however many. `kept_often`: of
        the columns of two groups only if these are few.
        """
        n_shared, n_groups = table.shared.shape[1], table.n_groups
        size = n_groups * table.n_columns + n_shared
        if kept_often and size**2 > _FEW_NUMBERS:
            own = _own_products(table.sparse())
            return cls(own, n_groups, n_shared, complete=False)
        if isinstance(table, Table) and all_numbers(size):
            flat, weight = table.flat(), table.weight
            weighted = flat if weight is None else flat * weight[:, None]
            return cls(weighted.T @ flat, n_groups, n_shared)
        table = table.sparse()
        pairs = float((np.diff(table.starts).astype(float) ** 2).sum())
        many = pairs * table.n_columns**2 > _MOST_ENTRIES
        if many and not (all_pairs or all_numbers(size)):
            return cls(_own_products(table), n_groups, n_shared, complete=False)
        return cls(_all_products(table), n_groups, n_shared)

    @property
    def size(self) -> int:
        """The number of all columns, K."""
        matrix = self.matrix
        return matrix.size if isinstance(matrix, Sparse) else len(matrix)

    @property
    def n_columns(self) -> int:
        """The number of columns of each group."""
        return (self.size - self.n_shared) // self.n_groups

    def dense(self) -> Array:
        """Return all of the matrix, shape (K, K)."""
        check_complete(self.complete, self.n_groups)
        matrix = self.matrix
        return matrix.dense() if isinstance(matrix, Sparse) else matrix

    def _places(self) -> Array:
        """Return the columns of each group, and the shared ones, shape (G, C + D)."""
        own = np.arange(self.size - self.n_shared).reshape(self.n_groups, -1)
        shared = np.arange(self.size - self.n_shared, self.size)
        return np.hstack([own, np.broadcast_to(shared, (self.n_groups, shared.size))])

    def blocks(self, first: Array, second: Array) -> Iterator[tuple[slice, Array]]:
        """Yield which pairs, and products of the columns of both, (m, C + D, C + D).

        The shared columns are with those of either group.
        """
        if not np.array_equal(first, second):
            check_complete(self.complete, self.n_groups)
        places, matrix = self._places(), self.matrix
        step = max(1, _BLOCK // max(1, places.shape[1] ** 2))
        for start in range(0, first.size, step):
            some = slice(start, start + step)
            rows = places[first[some]][:, :, None]
            columns = places[second[some]][:, None, :]
            if isinstance(matrix, Sparse):
                yield some, matrix.at(rows, columns)
            else:
                yield some, matrix[rows, columns]

    def form(self, slopes: Array, first: Array, second: Array) -> Array:
        """Return ``J_a · P_ab · J_b`` of pairs of groups, shape (m,).

        `slopes` are the J, of shape (G, C + D), P_ab the `blocks`.
        """
        values = np.zeros(first.size)
        for some, block in self.blocks(first, second):
            left, right = slopes[first[some]], slopes[second[some]]
            values[some] = np.einsum("mi,mij,mj->m", left, block, right)
        return values

    def form_of_all(self, slopes: Array) -> Array:
        """Return the same for every two groups, shape (G, G)."""
        check_complete(self.complete, self.n_groups)
        n_groups, n_columns = self.n_groups, self.n_columns
        if not isinstance(self.matrix, Sparse):
            gradient = gradient_of(slopes, n_columns)
            return gradient @ self.matrix @ gradient.T
        every, values = np.arange(n_groups), np.empty((n_groups, n_groups))
        for group in range(n_groups):
            values[group] = self.form(slopes, np.full(n_groups, group), every)
        return values

    def of_groups(self, groups: Array) -> Products:
        """Return the products of some groups."""
        places = self._places()
        own, shared = places[groups, : self.n_columns], places[0, self.n_columns :]
        kept = np.append(own, shared)
        matrix = self.matrix
        if not isinstance(matrix, Sparse):
            chosen: Any = matrix[np.ix_(kept, kept)]
        else:
            place = np.full(self.size, -1)
            place[kept] = np.arange(kept.size)
            rows, columns, values = matrix.entries()
            there = (place[rows] >= 0) & (place[columns] >= 0)
            parts = place[rows[there]], place[columns[there]], values[there]
            chosen = _compressed(Sparse.of(kept.size, *parts))
        complete = self.complete or len(groups) == 1
        return replace(self, matrix=chosen, n_groups=len(groups), complete=complete)

    def spread(self, to: ColumnPlaces) -> Products:
        """Return the products with groups and columns at these places of more."""
        own = to.n_groups * to.n_columns
        place = np.append(
            to.groups[:, None] * to.n_columns + to.columns, own + to.shared
        ).astype(int)
        rows, others, values = self._entries()
        size = own + to.n_shared
        wide = _compressed(Sparse.of(size, place[rows], place[others], values))
        return replace(self, matrix=wide, n_groups=to.n_groups, n_shared=to.n_shared)

    def pooled(self) -> Products:
        """Return the products of all groups as one."""
        check_complete(self.complete, self.n_groups)
        own, n_columns = self.size - self.n_shared, self.n_columns
        place = np.append(
            np.arange(own) % max(1, n_columns), n_columns + np.arange(self.n_shared)
        )
        rows, columns, values = self._entries()
        size = n_columns + self.n_shared
        key = place[rows] * size + place[columns]
        sums = np.bincount(key, values, minlength=size**2)
        return Products(sums.reshape(size, size), 1, self.n_shared)

    def _entries(self) -> tuple[Array, Array, Array]:
        matrix = self.matrix
        if isinstance(matrix, Sparse):
            return matrix.entries()
        rows, columns = np.nonzero(matrix)
        return rows, columns, matrix[rows, columns]

    def __add__(self, other: Products) -> Products:
        """Return the sums over the rows of both."""
        complete = self.complete and other.complete
        a, b = self.matrix, other.matrix
        if not (isinstance(a, Sparse) or isinstance(b, Sparse)):
            return replace(self, matrix=a + b, complete=complete)
        parts = [
            part if part.complete == complete else part.of_each_group()
            for part in (self, other)
        ]
        entries = zip(*(part._entries() for part in parts), strict=True)
        both = [np.concatenate(part) for part in entries]
        matrix: Any = Sparse.of(self.size, *both)
        if complete:
            matrix = _compressed(matrix)
        total = replace(self, matrix=matrix, complete=complete)
        too_many = isinstance(matrix, Sparse) and matrix.key.size > 2 * _MOST_ENTRIES
        return total.of_each_group() if complete and too_many else total

    def of_each_group(self) -> Products:
        """Return the products without those of the columns of two groups."""
        rows, columns, values = self._entries()
        n_columns = max(1, self.n_columns)
        own = self.size - self.n_shared
        there = (rows // n_columns == columns // n_columns) | (
            np.maximum(rows, columns) >= own
        )
        parts = rows[there], columns[there], values[there]
        matrix = Sparse.of(self.size, *parts)
        return replace(self, matrix=matrix, complete=False)


def check_complete(complete: bool, n_groups: int) -> None:
    """Raise a ValueError where the products of two groups were not kept."""
    if not complete:
        raise ValueError(
            f"compact() keeps the variance of each of {n_groups} groups, whose "
            "covariances are too many: compare groups before compact(), or measure "
            "fewer groups."
        )


def kept_share(variance: Array, products: Array) -> Array:
    """Return how much of the products of pairs to subtract: half the variance stays.

    Squares below 0 are what rounding leaves of nothing.
    """
    share = np.ones(variance.shape)
    large = products > variance / 2
    np.divide(variance / 2, products, out=share, where=large & (products > 0))
    share[products <= 0] = 0.0
    return share


def gradient_of(slopes: Array, n_columns: int) -> Array:
    """Return slopes (G, C + D) as derivatives by all columns, shape (G, K)."""
    n_groups = len(slopes)
    gradient = np.zeros((n_groups, n_groups, n_columns))
    gradient[np.arange(n_groups), np.arange(n_groups)] = slopes[:, :n_columns]
    return np.hstack([gradient.reshape(n_groups, -1), slopes[:, n_columns:]])


def all_numbers(size: int) -> bool:
    """Return whether a matrix of so many rows has all of its numbers."""
    return size**2 <= _MOST_NUMBERS


def _compressed(matrix: Sparse) -> Array | Sparse:
    """Return a matrix with all its numbers where these are few."""
    return matrix.dense() if all_numbers(matrix.size) else matrix


def _all_products(table: SparseTable) -> Array | Sparse:
    """Return the products of all columns, by a product of sparse matrices."""
    from scipy import sparse

    n_columns, own = table.n_columns, table.n_groups * table.n_columns
    columns = table.group[:, None] * np.int64(n_columns) + np.arange(n_columns)
    starts = table.starts * n_columns
    by_group = sparse.csr_array(
        (np.ravel(table.values), columns.ravel(), starts), shape=(table.n_rows, own)
    )
    flat = sparse.hstack([by_group, sparse.csr_array(table.shared)], format="csr")
    weight = sparse.diags(table.frequency)
    found = sparse.coo_array(flat.T @ weight @ flat)
    size = own + table.shared.shape[1]
    rows, columns = found.row.astype(np.int64), found.col
    return _compressed(Sparse.of(size, rows, columns, found.data))


def _own_products(table: SparseTable) -> Sparse:
    """Return the products of the columns of each group, with the shared ones."""
    n_groups, n_columns = table.n_groups, table.n_columns
    n_shared = table.shared.shape[1]
    wide = np.zeros((n_columns, n_columns + n_shared, n_groups))
    for cells in table.cells(_BLOCK):
        both = np.hstack([cells.by_group[:, 0], cells.shared])
        for i in range(n_columns):
            product = both * cells.by_group[:, 0, i, None]
            wide[i] += cells.sum(product[..., None], cells.weight)
    own, size = n_groups * n_columns, n_groups * n_columns + n_shared
    first = np.arange(own).reshape(n_groups, n_columns).T[:, None]
    second = np.concatenate(
        [
            np.broadcast_to(first[:, 0], (n_columns, n_groups)),
            np.broadcast_to(own + np.arange(n_shared)[:, None], (n_shared, n_groups)),
        ]
    )[None]
    rows, columns = np.broadcast_arrays(first, second)
    common = own + np.arange(n_shared)
    both = (table.shared * table.frequency[:, None]).T @ table.shared
    mirrored = rows[:, n_columns:].ravel(), columns[:, n_columns:].ravel()
    places = [
        (rows.ravel(), columns.ravel(), wide.ravel()),
        (mirrored[1], mirrored[0], wide[:, n_columns:].ravel()),
        (np.repeat(common, n_shared), np.tile(common, n_shared), both.ravel()),
    ]
    parts = [np.concatenate(part) for part in zip(*places, strict=True)]
    return Sparse.of(size, *parts)


def amounts(table: Table, supports: Sequence[Finalize]) -> Array:
    """Return how much data each row shows of each group, shape (n_rows, S, M, G).

    By support and stratum.
    """
    parts = [strata(table, support) for support in supports]
    if len(parts) == 1:
        return parts[0][:, None]
    (n_rows, *shape), first = parts[0].shape, parts[0].strides[0]
    # Rows of items are next to each other in memory, and stay so.
    if first == parts[0].itemsize:
        found = np.moveaxis(np.empty((len(parts), *shape, n_rows)), -1, 1)
    else:
        found = np.empty((len(parts), n_rows, *shape))
    for part, values in zip(found, parts, strict=True):
        part[...] = values
    return np.moveaxis(found, 0, 1)


def nowhere(table: AnyTable, supports: Sequence[Finalize]) -> Array:
    """Return how much data rows show of a group without columns, (n_rows, S, M, 1)."""
    n_strata = 1 if table.member is None else 2
    found = np.zeros((table.shared.shape[0], len(supports), n_strata, 1))
    step = max(1, _BLOCK // max(1, 8 * table.n_columns))
    for start in range(0, len(found), step) if table.shared.shape[1] else ():
        some = slice(start, start + step)
        empty = np.broadcast_to(0.0, (len(found[some]), 1, table.n_columns))
        for number, support in enumerate(supports):
            found[some, number, -1] = support(empty, table.shared[some])
    return found


def summed_amounts(
    table: AnyTable, supports: Sequence[Finalize], powers: Sequence[int]
) -> list[Array]:
    """Return sums over rows of powers of the amounts, each of shape (S, M, G).

    The power 0 counts the rows that have any.
    """
    n_strata = 1 if table.member is None else 2
    shape = len(supports), n_strata, table.n_groups
    sums: list[Array] = [np.zeros(shape) for _ in powers]
    sparse = isinstance(table, SparseTable) and table.shared.shape[1] > 0
    for cells in table.cells(_BLOCK) if table.n_rows else ():
        amount = amounts(cells, supports)
        none = nowhere(cells, supports) if sparse else None
        for total, power in zip(sums, powers, strict=True):
            value = _power(amount, power)
            if none is not None:
                value = value - 1.0 * _power(none, power)
            total += cells.sum(value, _times(cells, power))
    if sparse:
        for total, power in zip(sums, powers, strict=True):
            everywhere = sum_nowhere(table, supports, power)
            total += everywhere
            total[total <= 1e-12 * everywhere] = 0.0  # what rounding leaves of nothing
    return sums


def sum_nowhere(table: AnyTable, supports: Sequence[Finalize], power: int) -> Array:
    """Return the same for a group that is nowhere, shape (S, M, 1)."""
    value, weight = _power(nowhere(table, supports), power), _times(table, power)
    return value.sum(0) if weight is None else np.tensordot(weight, value, 1)


def _power(amount: Array, power: int) -> Array:
    """Return a power of the amounts; 0 is whether there is any."""
    if power < 2:
        return amount if power else amount > 0
    return amount**power


def _times(table: AnyTable, power: int) -> Array | None:
    """Return how often a power of the share of each row counts; None is once.

    A row that counts less than once is left out whole.
    """
    if table.weight is None or power < 2:
        return table.weight
    return table.weight * np.minimum(table.weight, 1.0) ** (power - 1)


@stored("Folded")
@dataclass(frozen=True)
class Folded:
    """Sums over the rows that `compact` has folded away, none of which weighs much.

    A support says how much data a row has of a group; with `Table.member` the members
    of the group and all others are two strata, else all rows are one. The last of the
    G + 1 groups is a group that is nowhere: what the shared columns alone say, which
    holds for every group that these rows lack.

    Attributes
    ----------
    scatter : Products
        Cross products of the columns.
    active : ndarray of shape (S, M, G + 1)
        Number of rows behind each support.
    support : ndarray of shape (S, M, G + 1)
        Its sum.
    square : ndarray of shape (S, M, G + 1)
        The sum of its squares.
    quartic : Products
        Of its squares, S * M columns: by group what they are more than those of the
        group that is nowhere, which are the shared ones.
    sizes : ndarray of shape (D,) or float
        Sums of the sizes of the shared columns; 0 in results that were stored before
        there were these.
    """

    scatter: Products
    active: Array
    support: Array
    square: Array
    quartic: Products
    sizes: Array | float = 0.0

    @classmethod
    def of_rows(
        cls, table: AnyTable, supports: Sequence[Finalize], kept_often: bool = False
    ) -> Folded:
        """Return the sums over the rows of a table."""
        powers = (0, 1, 2)
        active, support, square = (
            np.concatenate([total, sum_nowhere(table, supports, power)], axis=2)
            for total, power in zip(
                summed_amounts(table, supports, powers), powers, strict=True
            )
        )
        squares = replace(_squares(table, supports), weight=_times(table, 4))
        scatter, quartic = (
            Products.of_table(rows, kept_often=kept_often) for rows in (table, squares)
        )
        sizes = table.frequency @ np.abs(table.shared)
        return cls(scatter, 1.0 * active, support, square, quartic, sizes)

    def quartic_between(self, first: Array, second: Array) -> Array:
        """Return sums of products of squares of two groups, (S * M, S * M, m)."""
        half = self.quartic.n_shared
        found = np.zeros((half, half, first.size))
        for some, block in self.quartic.blocks(first, second):
            both = block.reshape(-1, 2, half, 2, half).sum(axis=(1, 3))
            found[..., some] = np.moveaxis(both, 0, -1)
        return found

    def pooled(self) -> Folded:
        """Return the sums of all groups as one.

        The sums of squares are bounds, as if all groups were in the same rows.
        """
        square = np.sqrt(self.square[..., :-1]).sum(-1, keepdims=True) ** 2
        every = np.arange(self.square.shape[-1] - 1)
        own = np.einsum("ccg->cg", self.quartic_between(every, every))
        fourth = (np.maximum(own, 0.0) ** 0.25).sum(-1) ** 4
        quartic = np.zeros((2 * fourth.size,) * 2)
        size = fourth.size
        quartic[:size, :size] = np.sqrt(np.multiply.outer(fourth, fourth))

        def with_nowhere(values: Array) -> Array:
            return np.concatenate([values, np.zeros_like(values)], axis=-1)

        return Folded(
            self.scatter.pooled(),
            with_nowhere(self.active[..., :-1].max(-1, keepdims=True)),
            with_nowhere(self.support[..., :-1].sum(-1, keepdims=True)),
            with_nowhere(square),
            Products(quartic, 1, size),
            self.sizes,
        )

    def of_each_group(self) -> Folded:
        """Return the sums without products of two groups, where these take much."""
        if self.scatter.size**2 <= _FEW_NUMBERS:
            return self
        parts = self.scatter.of_each_group(), self.quartic.of_each_group()
        return replace(self, scatter=parts[0], quartic=parts[1])

    def of_groups(self, groups: Array) -> Folded:
        """Return the sums of some groups."""
        kept = np.append(groups, self.active.shape[-1] - 1)
        return Folded(
            self.scatter.of_groups(groups),
            self.active[..., kept],
            self.support[..., kept],
            self.square[..., kept],
            self.quartic.of_groups(groups),
            self.sizes,
        )

    def spread(self, to: ColumnPlaces) -> Folded:
        """Return the sums with groups and columns at these places of more."""
        source = np.full(to.n_groups + 1, -1)
        source[to.groups] = np.arange(len(to.groups))
        n_strata = self.active.shape[1]

        def wide(values: Array) -> Array:
            more = np.zeros((to.n_supports, n_strata, source.size))
            more[to.supports] = values[..., source]
            return more

        return Folded(
            self.scatter.spread(to),
            wide(self.active),
            wide(self.support),
            wide(self.square),
            self.quartic.spread(to.of_squares(n_strata)),
            to.widened(np.broadcast_to(self.sizes, to.shared.shape)),
        )

    def __add__(self, other: Folded) -> Folded:
        """Return the sums over the rows of both."""
        return Folded(
            self.scatter + other.scatter,
            self.active + other.active,
            self.support + other.support,
            self.square + other.square,
            self.quartic + other.quartic,
            self.sizes + other.sizes,
        )


def _squares(table: AnyTable, supports: Sequence[Finalize]) -> AnyTable:
    """Return the squares of the amounts of each row, less those of nowhere."""
    shared = nowhere(table, supports)[..., 0].reshape(table.n_rows, -1) ** 2
    parts = [np.zeros((0, 1, shared.shape[1]))]
    for cells in table.cells(_BLOCK):
        more = amounts(cells, supports) ** 2 - nowhere(cells, supports) ** 2
        by_group = np.moveaxis(more, -1, 1)
        parts.append(by_group.reshape(*by_group.shape[:2], -1))
    columns = np.concatenate(parts[1:] or parts)
    if isinstance(table, SparseTable):
        return replace(table, values=columns[:, 0], shared=shared)
    return Table(columns, shared, table.weight, table.labels)
