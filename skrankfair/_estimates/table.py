"""The rows of the sums: all groups of each row, or those that it has data of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array
from .allocation import check_memory
from .places import ColumnPlaces
from .storage import stored

#: ``finalize(by_group, shared)``: from totals of shape ``(..., G, C)`` and ``(..., D)``
#: to estimates of shape ``(..., G)``. The value of a group depends on its own columns
#: and the shared ones only, and the function must accept complex totals (it is
#: differentiated by a complex step). An attribute ``needs`` names the supports that
#: must be there for an estimate, by their number; without it the first one.
Finalize = Callable[[Array, Array], Array]

# A table of so few groups, or numbers, has all groups of each row.
_FEW_GROUPS, _FEW_NUMBERS = 3, 1 << 16
# At most so many resamples, and so many counts and totals of them, at once; but some.
_CHUNK, _MOST_COUNTS, _FEWEST = 64, 1 << 20, 4
# Rows that are filled in at once.
_ROWS = 1 << 16
# So few rows of a few groups stay in the cache from one step to the next.
_CACHED = 1 << 14


def needs_of(finalize: Finalize) -> tuple[int, ...]:
    """Return the numbers of the supports that a metric needs: if not told, 0."""
    return tuple(getattr(finalize, "needs", (0,)))


@stored("Table")
@dataclass(frozen=True)
class Table:
    """The rows of the sums: clusters, or the items of one list.

    Attributes
    ----------
    by_group : ndarray of shape (n_rows, G, C)
    shared : ndarray of shape (n_rows, D)
    weight : ndarray of shape (n_rows,) or None
        How often each row counts; None is once.
    labels : ndarray of shape (n_rows,)
        The cluster (or item) behind each row.
    member : ndarray of shape (n_rows, G), bool, or None
        Of items: which group each belongs to. The items of a group and all others are
        two samples. None: the rows are one sample.
    """

    by_group: Array
    shared: Array
    weight: Array | None
    labels: Array
    member: Array | None = None

    @classmethod
    def from_entries(
        cls,
        row: Array,
        group: Array,
        values: Any,
        *,
        n_rows: int,
        n_groups: int,
        shared: Array | None = None,
        weight: Array | None = None,
        labels: Array,
        member: Array | None = None,
    ) -> AnyTable:
        """Return the table of the groups that each row has data of.

        It has all groups of each row where they are few or most rows have most of
        them, and is a `SparseTable` otherwise.

        Parameters
        ----------
        row, group : ndarray of shape (N,), int
            Where each entry belongs, in any order; entries of one place are added.
        values : ndarray of shape (N, C) or FewColumns
            What the entries add to the columns; they are 0 elsewhere.
        n_rows, n_groups : int
        shared : ndarray of shape (n_rows, D) or None
            None: there are no shared columns.
        weight : ndarray of shape (n_rows,) or None
        labels : ndarray of shape (n_rows,)
        member : ndarray of shape (N,), bool, or None
            Of items: whether the row of the entry belongs to its group. An item has an
            entry for each of its groups, of zeros if need be.

        Returns
        -------
        Table or SparseTable
        """
        if shared is None:
            shared = np.zeros((n_rows, 0))
        key = row * np.int64(n_groups) + group
        if not (key[1:] > key[:-1]).all():
            row, group, values, member = _in_order(key, values, member, n_groups)
        dense = _all_groups(n_rows, n_groups, values.shape[1], row.size)
        if not dense:
            row, group = small_codes(row, group)
        entries = SparseTable(
            row, group, values, member, n_groups, shared, weight, labels
        )
        return entries.dense() if dense else entries

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.by_group.shape[0]

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return self.by_group.shape[1]

    @property
    def n_columns(self) -> int:
        """The number of columns of each group."""
        return self.by_group.shape[2]

    @property
    def frequency(self) -> Array:
        """How often each row counts, shape (n_rows,)."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def total(self) -> Array:
        """Return the column totals by group, shape (G, C)."""
        total: Array = np.tensordot(self.frequency, self.by_group, 1)
        return total

    def cells(self, size: int) -> Iterator[Table]:
        """Yield the rows, blocks of about so many numbers at a time."""
        step = max(1, size // max(1, self.n_groups * self.n_columns))
        step = min(step, _CACHED)
        for start in range(0, max(1, self.n_rows), step):
            yield self.take(slice(start, start + step))

    def at(self, values: Array) -> Array:
        """Return what each group has, for all rows at once."""
        return values

    def sum(self, values: Array, weight: Array | None = None) -> Array:
        """Return the sum over the rows, shape (..., G), of values (n_rows, ..., G)."""
        total: Array = (
            values.sum(axis=0) if weight is None else np.tensordot(weight, values, 1)
        )
        return total

    def last(self, values: Array) -> Array:
        """Return the same of values of shape (..., G)."""
        return values

    def dot(self, x: Array, y: Array) -> Array:
        """Return the sums over the rows of products of values (n_rows, G)."""
        return np.einsum("qg,qg->g", x, y)

    def of_groups(self, columns: Array) -> AnyTable:
        """Return the rows with the columns of some groups."""
        if np.array_equal(columns, np.arange(self.n_groups)):
            return self
        member = None if self.member is None else self.member[:, columns]
        return replace(self, by_group=self.by_group[:, columns], member=member)

    def flat(self) -> Array:
        """Return the rows as one matrix of shape (n_rows, G * C + D)."""
        flat = self.by_group.reshape(self.n_rows, self.n_groups * self.n_columns)
        return np.hstack([flat, self.shared]) if self.shared.shape[1] else flat

    def take(self, rows: Array | slice) -> Table:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        member = None if self.member is None else self.member[rows]
        return Table(
            self.by_group[rows], self.shared[rows], weight, self.labels[rows], member
        )

    def drawn(self, counts: Array) -> tuple[Array, Array]:
        """Return totals by group and shared ones of rows that count so often.

        `counts` has shape (B, n_rows), and these (B, G, C) and (B, D).
        """
        shape = len(counts), self.n_groups, self.n_columns
        size = self.n_groups * self.n_columns
        by_group = counts @ self.by_group.reshape(self.n_rows, size)
        return by_group.reshape(shape), counts @ self.shared

    def part_of(self, groups: list[int]) -> tuple[Array | slice, Table]:
        """Return the rows with data of some groups, and their table."""
        return slice(None), self.of_groups(np.array(groups)).dense()

    def sizes(self) -> Array:
        """Return how many numbers each row is, shape (n_rows,)."""
        size = self.n_groups * self.n_columns + self.shared.shape[1]
        return np.full(self.n_rows, size)

    def dense(self) -> Table:
        """Return the table itself."""
        return self

    def pooled(self) -> Table:
        """Return the rows with all groups as one."""
        by_group = self.by_group.sum(axis=1, keepdims=True)
        return replace(self, by_group=by_group, member=None)

    def summed(self, codes: Array, size: int, labels: Array) -> AnyTable:
        """Return the rows of each code added up, without weights.

        The members of a row are those of its first one.
        """
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(size))
        member = None if self.member is None else self.member[order[starts]]
        by_group = np.add.reduceat(self.by_group[order], starts, axis=0)
        shared = np.add.reduceat(self.shared[order], starts, axis=0)
        return Table(by_group, shared, None, labels, member)

    def spread(self, to: ColumnPlaces) -> AnyTable:
        """Return the rows with groups and columns at these places of more."""
        entries = self.n_rows * self.n_groups
        if not _all_groups(self.n_rows, to.n_groups, to.n_columns, entries):
            return self.sparse().spread(to)
        wide = np.zeros((self.n_rows, to.n_groups, to.n_columns))
        wide[..., to.groups[:, None], to.columns] = self.by_group
        member = self.member
        if member is not None:
            member = np.zeros((self.n_rows, to.n_groups), dtype=bool)
            member[:, to.groups] = self.member
        shared = to.widened(self.shared)
        return replace(self, by_group=wide, shared=shared, member=member)

    def sparse(self) -> SparseTable:
        """Return the rows with the groups that each has data of."""
        there = (self.by_group != 0).any(axis=2)
        if self.member is not None:
            there |= self.member
        row, group = np.nonzero(there)
        return SparseTable(
            row,
            group,
            self.by_group[row, group],
            None if self.member is None else self.member[row, group],
            self.n_groups,
            self.shared,
            self.weight,
            self.labels,
        )


@dataclass(frozen=True, kw_only=True)
class GroupRows(Table):
    """Rows with one of many groups each, as `SparseTable` yields them.

    Attributes
    ----------
    row, group : ndarray of shape (n,), int
        The row of the table that each is of, and the group.
    of : int
        The number of groups.
    """

    row: Array
    group: Array
    of: int

    def at(self, values: Array) -> Array:
        """Return what the group of each row has, of values of shape (G, ...)."""
        found: Array = values.take(self.group, axis=0)[:, None]
        return found

    def last(self, values: Array) -> Array:
        """Return the same of values of shape (..., G)."""
        found: Array = np.moveaxis(values[..., self.group], -1, 0)[..., None]
        return found

    def sum(self, values: Array, weight: Array | None = None) -> Array:
        """Return the sum over the rows by group, shape (..., G)."""
        if weight is not None:
            values = values * weight.reshape(-1, *(1,) * (values.ndim - 1))
        flat = values.reshape(len(values), -1).T
        sums = [np.bincount(self.group, part, minlength=self.of) for part in flat]
        return np.reshape(sums, (*values.shape[1:-1], self.of))

    def dot(self, x: Array, y: Array) -> Array:
        """Return the sums over the rows of products, by group."""
        return np.bincount(self.group, (x * y)[:, 0], minlength=self.of)


@stored("FewColumns")
@dataclass(frozen=True, eq=False)
class FewColumns:
    """Columns of which each entry has few, such as those of the one bin it is in.

    They are taken by entries as an array is, and become one where all are asked for.

    Attributes
    ----------
    at : ndarray of shape (N, m), int
        Which columns an entry has, each once.
    values : ndarray of shape (N, m)
    width : int
        C, the number of all columns.
    """

    at: Array
    values: Array
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array that this stands for."""
        return len(self.at), self.width

    @property
    def T(self) -> Array:  # noqa: N802
        """All columns, shape (C, N)."""
        return np.asarray(self).T

    def __getitem__(self, entries: Any) -> Any:
        """Return some entries; with a new axis, all columns of them."""
        if isinstance(entries, tuple):
            return np.asarray(self[entries[0]])[:, entries[1]]
        return FewColumns(self.at[entries], self.values[entries], self.width)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all columns, shape (N, C)."""
        every = np.zeros(self.shape, dtype)
        np.put_along_axis(every, self.at, self.values, axis=1)
        return every


@stored("SparseTable")
@dataclass(frozen=True)
class SparseTable:
    """The rows of the sums, with the groups that each has data of.

    Attributes
    ----------
    row, group : ndarray of shape (N,), int
        Where each entry belongs; by row and, within it, by group, each place once.
    values : ndarray of shape (N, C) or FewColumns
        The columns, which are 0 where there is no entry.
    member : ndarray of shape (N,), bool, or None
        Of items: whether the row of the entry belongs to its group.
    n_groups : int
    shared, weight, labels
        As those of `Table`.
    """

    row: Array
    group: Array
    values: Any
    member: Array | None
    n_groups: int
    shared: Array
    weight: Array | None
    labels: Array

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.shared.shape[0]

    @property
    def n_columns(self) -> int:
        """The number of columns of each group."""
        return int(self.values.shape[1])

    @property
    def frequency(self) -> Array:
        """How often each row counts, shape (n_rows,)."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    @cached_property
    def starts(self) -> Array:
        """First entry of each row, and the number of entries."""
        return np.searchsorted(self.row, np.arange(self.n_rows + 1))

    @property
    def by_group(self) -> Array:
        """All groups of each row, shape (n_rows, G, C)."""
        return self.dense().by_group

    def stored(self) -> AnyTable:
        """Return the table as it is, or with all groups of each row."""
        size = self.n_rows, self.n_groups, self.n_columns, self.row.size
        return self.dense() if _all_groups(*size) else self

    def dense(self) -> Table:
        """Return the rows with all groups of each."""
        shape = self.n_rows, self.n_groups
        check_memory(
            8.0 * shape[0] * shape[1] * self.n_columns,
            f"A table of {shape[0]} clusters with {shape[1]} groups each",
            "measure fewer groups at once.",
        )
        by_group = np.zeros((*shape, self.n_columns))
        by_group[self.row, self.group] = self.values
        member = None
        if self.member is not None:
            member = np.zeros(shape, dtype=bool)
            member[self.row, self.group] = self.member
        return Table(by_group, self.shared, self.weight, self.labels, member)

    def total(self) -> Array:
        """Return the column totals by group, shape (G, C)."""
        total = np.zeros((self.n_groups, self.n_columns))
        for cells in self.cells(1 << 20):
            total += cells.sum(cells.by_group.swapaxes(1, 2), cells.weight).T
        return total

    def cells(self, size: int) -> Iterator[GroupRows]:
        """Yield the entries as rows, about so many numbers at a time."""
        step = max(1, size // (4 * (self.n_columns + self.shared.shape[1] + 2)))
        for start in range(0, self.row.size, step):
            some = slice(start, start + step)
            member = None if self.member is None else self.member[some, None]
            columns = self.values[some, None]
            yield self._cells(self.row[some], self.group[some], columns, member)

    def empty_cells(self, row: Array, group: Array) -> GroupRows:
        """Return rows of places without an entry."""
        columns = np.broadcast_to(0.0, (row.size, 1, self.n_columns))
        member = None
        if self.member is not None:
            member = np.zeros((row.size, 1), dtype=bool)
        return self._cells(row, group, columns, member)

    def _cells(
        self, row: Array, group: Array, columns: Array, member: Array | None
    ) -> GroupRows:
        weight = None if self.weight is None else self.weight[row]
        # Several times as quick as shared[row], but for no columns.
        shared = self.shared.take(row, axis=0) if self.shared.size else self.shared[row]
        return GroupRows(
            *(columns, shared, weight, row, member),
            row=row,
            group=group,
            of=self.n_groups,
        )

    def without_entry(self, row: Array, group: Array) -> Array:
        """Return which of these places have no entry, shape (n,), bool."""
        key = self.row * np.int64(self.n_groups) + self.group
        asked = row * np.int64(self.n_groups) + group
        place = np.minimum(np.searchsorted(key, asked), max(key.size - 1, 0))
        return key[place] != asked if key.size else np.ones(row.size, dtype=bool)

    def _of(self, entries: Array, **changed: Any) -> SparseTable:
        """Return the table of some entries, with changes."""
        member = None if self.member is None else self.member[entries]
        parts = {
            "row": self.row[entries],
            "group": self.group[entries],
            "values": self.values[entries],
            "member": member,
        }
        return replace(self, **(parts | changed))

    def of_groups(self, columns: Array) -> AnyTable:
        """Return the rows with the columns of some groups."""
        place = np.full(self.n_groups, -1)
        place[columns] = np.arange(len(columns))
        found = place[self.group]
        entries = np.flatnonzero(found >= 0)
        chosen = self._of(entries, group=found[entries], n_groups=len(columns))
        return chosen.in_order().stored()

    def in_order(self) -> SparseTable:
        """Return the table with its entries by row and group."""
        key = self.row * np.int64(self.n_groups) + self.group
        if (key[1:] > key[:-1]).all():
            return self
        row, group, values, member = _in_order(
            key, self.values, self.member, self.n_groups
        )
        row, group = small_codes(row, group)
        return replace(self, row=row, group=group, values=values, member=member)

    def take(self, rows: Array | slice) -> SparseTable:
        """Return some of the rows."""
        chosen = np.arange(self.n_rows)[rows]
        first, size = self.starts[chosen], np.diff(self.starts)[chosen]
        entries = np.repeat(first - np.cumsum(size) + size, size)
        entries += np.arange(entries.size)
        weight = None if self.weight is None else self.weight[chosen]
        return self._of(
            entries,
            row=np.repeat(np.arange(chosen.size), size),
            shared=self.shared[chosen],
            weight=weight,
            labels=self.labels[chosen],
        )

    def drawn(self, counts: Array) -> tuple[Array, Array]:
        """Return totals by group and shared ones of rows that count so often."""
        from scipy import sparse

        shape = self.n_rows, self.n_groups
        by_group = np.empty((len(counts), self.n_groups, self.n_columns))
        for column, values in enumerate(self.values.T):
            parts = np.ascontiguousarray(values), self.group, self.starts
            matrix = sparse.csr_array(parts, shape=shape)
            by_group[..., column] = (matrix.T @ counts.T).T
        return by_group, counts @ self.shared

    @cached_property
    def _by_group(self) -> tuple[Array, Array]:
        """The entries by group, and the first of each group."""
        order = np.argsort(self.group, kind="stable")
        ends = np.cumsum(np.bincount(self.group, minlength=self.n_groups))
        return order, np.concatenate([[0], ends])

    def part_of(self, groups: list[int]) -> tuple[Array | slice, Table]:
        """Return the rows with data of some groups, and their table."""
        order, first = self._by_group
        entries = [order[first[group] : first[group + 1]] for group in groups]
        every = np.concatenate(entries)
        rows, place = np.unique(self.row[every], return_inverse=True)
        by_group = np.zeros((rows.size, len(groups), self.n_columns))
        number = np.repeat(np.arange(len(groups)), [part.size for part in entries])
        by_group[place, number] = self.values[every]
        weight = None if self.weight is None else self.weight[rows]
        return rows, Table(by_group, self.shared[rows], weight, self.labels[rows])

    def sizes(self) -> Array:
        """Return how many numbers each row is, shape (n_rows,)."""
        return np.diff(self.starts) * (self.n_columns + 2) + self.shared.shape[1]

    def pooled(self) -> Table:
        """Return the rows with all groups as one."""
        by_group = np.empty((self.n_rows, 1, self.n_columns))
        for column, values in enumerate(self.values.T):
            found = np.bincount(self.row, values, minlength=self.n_rows)
            by_group[:, 0, column] = found
        return Table(by_group, self.shared, self.weight, self.labels)

    def summed(self, codes: Array, size: int, labels: Array) -> AnyTable:
        """Return the rows of each code added up, without weights."""
        shared = np.zeros((size, self.shared.shape[1]))
        np.add.at(shared, codes, self.shared)
        return Table.from_entries(
            codes[self.row],
            self.group,
            self.values,
            n_rows=size,
            n_groups=self.n_groups,
            shared=shared,
            labels=labels,
            member=self.member,
        )

    def spread(self, to: ColumnPlaces) -> SparseTable:
        """Return the rows with groups and columns at these places of more."""
        values = np.zeros((self.row.size, to.n_columns))
        values[:, to.columns] = self.values
        wide = replace(
            self,
            group=to.groups[self.group],
            values=values,
            n_groups=to.n_groups,
            shared=to.widened(self.shared),
        )
        return wide.in_order()

    def sparse(self) -> SparseTable:
        """Return the table itself."""
        return self


AnyTable: TypeAlias = Table | SparseTable


def _all_groups(n_rows: int, n_groups: int, n_columns: int, n_entries: int) -> bool:
    """Return whether a table has all groups of each row, and not entries."""
    places = n_rows * n_groups
    few = n_groups <= _FEW_GROUPS or places * n_columns <= _FEW_NUMBERS
    return few or places <= 3 * n_entries


def _in_order(
    key: Array, values: Any, member: Array | None, n_groups: int
) -> tuple[Array, Array, Any, Array | None]:
    """Return row, group, values and members by place, those of one place added."""
    order = np.argsort(key, kind="stable")
    key, values = key[order], values[order]
    member = None if member is None else member[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    if first.size < key.size:
        key, values = key[first], np.add.reduceat(values, first, axis=0)
        member = None if member is None else np.logical_or.reduceat(member, first)
    return *np.divmod(key, n_groups), values, member


def small_codes(*codes: Array) -> list[Array]:
    """Return numbers of rows and groups as integers of 32 bits where all of them do."""
    fit = max(int(code.max(initial=0)) for code in codes) < 2**31
    return [code.astype(np.int32) if fit else code for code in codes]


def strata(table: Table, support: Finalize) -> Array:
    """Return a support of every row by stratum and group, shape (n_rows, M, G)."""
    amount = np.asarray(support(table.by_group, table.shared), dtype=float)
    if table.member is None:
        return amount[:, None]
    parts = np.moveaxis(np.empty((2, *amount.T.shape)), -1, 0)
    np.multiply(amount, table.member, out=parts[:, 0])
    np.subtract(amount, parts[:, 0], out=parts[:, 1])
    return parts


def cluster_table(
    rows: ScoreRows,
    sample: Sample,
    columns: Sequence[Array],
    of_everyone: Array | None = None,
) -> AnyTable:
    """Return the sums of columns of the sample by cluster and group.

    Parameters
    ----------
    rows : ScoreRows
        For the labels of the clusters and the groups.
    sample : Sample
        Of these rows.
    columns : sequence of ndarray of shape (n,)
        In the order of the sample.
    of_everyone : ndarray of shape (n_rows, C) or None
        In the order of the rows, to be summed over all groups.

    Returns
    -------
    Table or SparseTable
        Of n_clusters rows, with the sums over all groups as shared columns.
    """
    cells: Any = slice(None)  # each row has sums of its own
    if not sample.alone:
        cells = sample.segment_starts
        columns = [np.add.reduceat(column, cells, dtype=float) for column in columns]
    row, group = sample.cluster[cells], sample.group[cells]
    cluster, shared = rows.cluster_codes, of_everyone
    n_rows, n_groups = sample.n_clusters, len(rows.groups)
    if shared is None:
        shared = np.zeros((n_rows, 0))
    elif cluster is not None:
        sums_of = [np.bincount(cluster, column, n_rows) for column in shared.T]
        shared = np.stack(sums_of, axis=1)
    if _all_groups(n_rows, n_groups, len(columns), row.size):
        by_group = np.zeros((n_rows, n_groups, len(columns)))
        for start in range(0, row.size, _ROWS):
            part = slice(start, start + _ROWS)
            stacked = np.stack([column[part] for column in columns], axis=1)
            by_group[row[part], group[part]] = stacked
        return Table(by_group, shared, sample.frequency, rows.cluster_labels)
    row, group = small_codes(row, group)
    return SparseTable(
        row,
        group,
        np.stack(columns, axis=1),
        None,
        n_groups,
        shared,
        sample.frequency,
        rows.cluster_labels,
    )


def row_counts(rows: ScoreRows, sample: Sample) -> Array:
    """Return how many rows each row of the sample is, within its cluster."""
    if rows.weight is None or sample.frequency is not None:
        return np.broadcast_to(1.0, sample.x.size)
    return rows.weight[sample.row]


def count_chunks(table: AnyTable, n_resamples: int) -> Iterator[int]:
    """Yield how many resamples to draw at once, so that they are not too large."""
    numbers = table.n_rows + table.n_groups * table.n_columns
    step = min(_CHUNK, max(_FEWEST, _MOST_COUNTS // max(1, numbers)))
    for start in range(0, n_resamples, step):
        yield min(step, n_resamples - start)


def draw_counts(table: AnyTable, chunk: int, rng: np.random.Generator) -> Array:
    """Return how often each row is in each resample, shape (chunk, n_rows).

    A cluster of weight 2 is there twice: as many draws as clusters, however many.
    """
    n_rows, weight = table.n_rows, table.weight
    if weight is None:
        counts = np.empty((chunk, n_rows))
        for times in counts:
            drawn = rng.integers(0, n_rows, n_rows)
            times[:] = np.bincount(drawn, minlength=n_rows)
        return counts
    total = weight.sum()
    n_draws = int(min(max(1.0, np.rint(total)), 2.0**53))
    drawn = rng.multinomial(n_draws, weight / total, size=chunk)
    return drawn * (total / n_draws)
