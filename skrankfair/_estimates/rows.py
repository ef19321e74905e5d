"""The table of sums: a row per cluster, with an entry per group that it has data of.

Where there are many groups most clusters have data of few, and a full array of sums by
row and group would be mostly zeros. The table stores the entries alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from .._inputs.groups import encode, rows_of_ranges, stable_order, starts_of_runs
from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array
from .entries import Entries
from .finalize import Finalize, Totals
from .storage import stored

# How many entries, or values, are worked on at once: so few stay in the cache.
BLOCK = 1 << 17
# At most _CHUNK resamples are drawn at once; fewer where their counts and totals are
# more than _MOST_COUNTS numbers, but at least _FEWEST.
_CHUNK, _MOST_COUNTS, _FEWEST = 64, 1 << 20, 4


@stored("Rows")
@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the sums: clusters, or the items of one list.

    Attributes
    ----------
    row, group : ndarray of shape (N,), int
        The row and the group of each entry, sorted by row and then by group. No two
        entries have the same row and group.
    values : ndarray of shape (N, C) or sparse array
        The sums of each entry. Where there is no entry, sums are 0.
    shared : ndarray of shape (Q, D)
        The sums of each row in the columns that all groups share.
    n_groups : int
    labels : ndarray of shape (Q,)
        The cluster (or item) behind each row.
    member : ndarray of shape (N,), bool, or None
        Where rows are items: whether the item belongs to the group of the entry, as
        the members of a group and all other items are two samples. None for clusters,
        which are one sample.
    unweighted : tuple of ndarray or None
        Column totals without weights, by group and shared, which say how many pairs or
        rows there are; None if the data have no weights. `ClusterSums.from_rows` takes
        them over, and the rows of sums have None.
    """

    row: Array
    group: Array
    values: Any
    shared: Array
    n_groups: int
    labels: Array
    member: Array | None = None
    unweighted: Totals | None = None

    def check(self) -> None:
        """Refuse entries outside a stored table, for which sparse sums do not look."""
        for codes, size in ((self.row, self.n_rows), (self.group, self.n_groups)):
            if codes.size and not 0 <= codes.min() <= codes.max() < size:
                raise ValueError(f"an entry outside the {size} rows or groups")

    def summed(self) -> Rows:
        """Return the table with sorted entries, adding those of one row and group.

        Before, entries may be in any order. An item needs an entry for each of its
        groups, if only of zeros, as `member` is known at entries alone.
        """
        row, group = small_codes(self.row, self.group)
        key = row * np.int64(self.n_groups) + group
        table = replace(self, row=row, group=group)
        if (key[1:] > key[:-1]).all():
            return table
        order = stable_order(key)
        first = starts_of_runs(key[order])
        del key, row, group  # before the numbers of the entries are copied
        table = table.only(order)
        if first.size == order.size:
            return table
        row, group, member = table.row[first], table.group[first], table.member
        values = np.add.reduceat(dense_values(table.values), first, axis=0)
        if member is not None:
            member = np.logical_or.reduceat(member, first)
        return replace(table, row=row, group=group, values=values, member=member)

    @classmethod
    def of_all(
        cls, by_group: Array, shared: Array, labels: Array, member: Array | None = None
    ) -> Rows:
        """Return the table in which each row has an entry for each group.

        `by_group` has shape (Q, G, C), `shared` (Q, D) and `member` (Q, G).
        """
        n_rows, n_groups, n_columns = by_group.shape
        row, group = small_codes(np.arange(n_rows), np.arange(n_groups))
        row, group = np.repeat(row, n_groups), np.tile(group, n_rows)
        values = by_group.reshape(n_rows * n_groups, n_columns)
        member = None if member is None else member.ravel()
        return cls(row, group, values, shared, n_groups, labels, member)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.shared)

    @property
    def n_columns(self) -> int:
        """The number of columns of each group."""
        return int(self.values.shape[1])

    @property
    def n_strata(self) -> int:
        """The number of samples that rows are: one of clusters, two of items."""
        return 1 if self.member is None else 2

    @property
    def n_memberships(self) -> int:
        """The number of groups that clusters have data of, or that items belong to."""
        return int(self.row.size if self.member is None else self.member.sum())

    @property
    def cell(self) -> Array:
        """The stratum and group of each entry as one number, ``s * G + g``."""
        if self.member is None:
            return self.group
        return self.group + self.n_groups * ~self.member

    @property
    def complete(self) -> bool:
        """Whether each row has an entry for each group."""
        return self.row.size == self.n_rows * self.n_groups

    @cached_property
    def starts(self) -> Array:
        """The first entry of each row, then the number of entries, shape (Q + 1,)."""
        if self.complete:
            return self.n_groups * np.arange(self.n_rows + 1)
        return np.append(0, np.bincount(self.row, minlength=self.n_rows).cumsum())

    @property
    def by_group(self) -> Array:
        """The sums of each row and group, shape (Q, G, C), 0 without an entry."""
        all_groups = np.zeros((self.n_rows, self.n_groups, self.n_columns))
        all_groups[self.row, self.group] = dense_values(self.values)
        return all_groups

    def totals(self) -> Totals:
        """Return column totals by group (G, C) and shared ones (D,)."""
        by_group = sum_rows(self.values, self.group, self.n_groups)
        return by_group, np.ones(self.n_rows) @ self.shared

    def of_entries(self, function: Finalize) -> Array:
        """Return a function of the columns of each entry, shape (N,)."""
        values = np.empty(self.row.size)
        for some, columns, shared in self._columns():
            values[some] = function(columns, shared).ravel()
        return values

    def leaving_out(self, function: Finalize, totals: Totals) -> Array:
        """Return a function of the totals without the row of each entry, shape (N,).

        The totals are by group (G, C), and shared (D,).
        """
        values, (by_group, of_all) = np.empty(self.row.size), totals
        for some, columns, shared in self._columns():
            whole = by_group
            if not self.complete:
                whole = by_group.take(self.group[some], axis=0)[:, None]
            values[some] = function(whole - columns, of_all - shared).ravel()
        return values

    def _columns(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield some of the entries, with their columns and the shared ones.

        The columns have shape (n, 1, C). A row with an entry for each group is worked
        on as one, which is faster: (n, G, C).
        """
        width = max(1, self.n_groups) if self.complete else 1
        numbers = width * max(1, self.n_columns + self.shared.shape[1])
        step = width * max(1, BLOCK // numbers)
        for start in range(0, self.row.size, step):
            some = slice(start, start + step)
            columns = dense_values(self.values[some]).reshape(-1, width, self.n_columns)
            if self.complete:
                shared = self.shared[start // width : (start + step) // width]
            else:  # column by column, which is faster
                shared = self.shared.T.take(self.row[some], axis=1).T
            yield some, columns, shared

    def of_shared_alone(self, function: Finalize) -> Array:
        """Return a function of the shared columns of each row alone, shape (Q,).

        This is its value for the groups that a row has no entry for.
        """
        none = np.broadcast_to(0.0, (self.n_rows, 1, self.n_columns))
        return np.array(function(none, self.shared)[:, 0])

    def entries(self, value: Array, left: Array, right: Array) -> Entries:
        """Return `value` at the entries of the table, ``left @ right.T`` elsewhere.

        `left` has shape (Q, r) and `right` (G, r).
        """
        if self.complete:
            left, right = left[:, :0], right[:, :0]
        return Entries(self.row, self.group, value, left, right)

    def support_by_stratum(self, support: Finalize) -> list[Entries]:
        """Return how much data each row has of each group, by stratum.

        Clusters are one stratum. Items are two: the members of a group, and all others.
        """
        value, left = self.of_entries(support), np.zeros((self.n_rows, 0))
        if self.shared.shape[1]:
            left = self.of_shared_alone(support)[:, None]
        right = np.ones((self.n_groups, left.shape[1]))
        if self.member is None:
            return [self.entries(value, left, right)]
        own = np.flatnonzero(self.member)
        place = self.row[own], self.group[own]
        of_members = Entries(*place, value[own], left[:, :0], right[:, :0])
        value[own] = 0.0
        return [of_members, self.entries(value, left, right)]

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows in parts that have about `BLOCK` entries."""
        if not self.n_rows:
            yield self
        start = 0
        while start < self.n_rows:
            stop = np.searchsorted(self.starts, self.starts[start] + BLOCK, "right") - 1
            stop = max(start + 1, int(stop))
            entries = slice(self.starts[start], self.starts[stop])
            some = self.row[entries] - start, slice(start, stop), entries
            yield self if stop - start == self.n_rows else self._chosen(*some)
            start = stop

    def take(self, rows: Array) -> Rows:
        """Return the rows of these numbers, in this order."""
        first, size = self.starts[rows], np.diff(self.starts)[rows]
        row, entries = rows_of_ranges(first, size)
        return self._chosen(row, rows, entries)

    def _chosen(self, row: Array, rows: Any, entries: Any) -> Rows:
        """Return chosen rows and entries; `row` is the new row number of each entry."""
        shared, labels = self.shared[rows], self.labels[rows]
        return replace(self.only(entries), row=row, shared=shared, labels=labels)

    def only(self, entries: Any) -> Rows:
        """Return the table of these of its entries, in this order."""
        return replace(
            self,
            row=self.row[entries],
            group=self.group[entries],
            values=self.values[entries],
            member=None if self.member is None else self.member[entries],
        )

    def with_zeros_at(self, row: Array, group: Array) -> Rows:
        """Return the table with more entries, of zeros, at these rows and groups."""
        values = np.broadcast_to(0.0, (row.size, self.n_columns))
        member = np.zeros(row.size, dtype=bool)
        zeros = replace(self, row=row, group=group, values=values, member=member)
        return self._with_entries_of(zeros)

    def completed(self) -> Rows:
        """Return the table with an entry for every row and group, if only of zeros."""
        member = None
        if self.member is not None:
            member = np.zeros((self.n_rows, self.n_groups), dtype=bool)
            member[self.row, self.group] = self.member
        return Rows.of_all(self.by_group, self.shared, self.labels, member)

    def renumbered(self, to: Layout) -> Rows:
        """Return the table with its groups and columns renumbered."""
        table = self.only(np.flatnonzero(to.groups[self.group] >= 0))
        values = table.values
        if to.n_columns > self.n_columns:
            values = np.zeros((table.row.size, to.n_columns))
            values[:, to.columns] = dense_values(table.values)
        shared = np.zeros((self.n_rows, to.n_shared))
        shared[:, to.shared] = self.shared
        group = to.groups[table.group]
        return replace(
            table, group=group, values=values, shared=shared, n_groups=to.n_groups
        ).summed()

    def _with_entries_of(self, other: Rows, shift: int = 0, **changes: Any) -> Rows:
        """Return the entries of both tables, over the changed rows of this one.

        Row 0 of `other` becomes row `shift`.
        """
        member = None
        if self.member is not None and other.member is not None:
            member = np.append(self.member, other.member)
        row = np.append(self.row, other.row.astype(np.int64) + shift)
        row, group = small_codes(row, np.append(self.group, other.group))
        return replace(
            self,
            row=row,
            group=group,
            values=np.concatenate([dense_values(x.values) for x in (self, other)]),
            member=member,
            **changes,
        ).summed()

    def __add__(self, other: Rows) -> Rows:
        """Return the rows of both."""
        if not (self.n_rows and other.n_rows):
            some, empty = (self, other) if self.n_rows else (other, self)
            return replace(some, member=None) if empty.member is None else some
        labels = [self.labels, other.labels]
        kinds = {array.dtype for array in labels}
        if len(kinds) > 1 and np.dtype(object) not in kinds:
            labels = [array.astype(object) for array in labels]
        shared = np.concatenate([self.shared, other.shared])
        rows = {"shared": shared, "labels": np.concatenate(labels)}
        return self._with_entries_of(other, self.n_rows, **rows)

    def by_label(self) -> Rows:
        """Return the table in which the rows of one label are added."""
        code, labels = pd.factorize(self.labels)
        shared = sum_rows(self.shared, code, len(labels))
        return replace(self, row=code[self.row], shared=shared, labels=labels).summed()

    def joined(self, other: Rows, order: Array) -> Rows:
        """Return the sums of both; row ``order[q]`` of `other` belongs to row q."""
        other = other.take(order)
        return self._with_entries_of(other, shared=self.shared + other.shared)

    @cached_property
    def flat(self) -> Any:
        """The columns of all groups of each row, (Q, G * C); sparse if many are 0."""
        if self.complete:
            return self.values.reshape(self.n_rows, -1)
        few, width = sparse.csr_array(self.values), self.n_columns
        column = np.repeat(self.group * width, np.diff(few.indptr)) + few.indices
        parts = few.data, column, few.indptr[self.starts]
        return sparse.csr_array(parts, shape=(self.n_rows, self.n_groups * width))

    def drawn(self, counts: Array) -> Totals:
        """Return the totals of B resamples, by group (B, G, C) and shared (B, D).

        `counts`, of shape (B, Q), says how often each row is in each resample.
        """
        shape = len(counts), self.n_groups, self.n_columns
        return (counts @ self.flat).reshape(shape), counts @ self.shared

    def chunks(self, n_resamples: int) -> Iterator[tuple[int, int]]:
        """Yield the first resample of each chunk, and the one after its last."""
        numbers = self.n_rows + self.n_groups * self.n_columns
        step = min(_CHUNK, max(_FEWEST, _MOST_COUNTS // max(1, numbers)))
        for first in range(0, n_resamples, step):
            yield first, min(first + step, n_resamples)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[Array]:
        """Yield how often each row is drawn, for b resamples at a time, (b, Q)."""
        for first, last in self.chunks(n_resamples):
            counts, n_rows = np.empty((last - first, self.n_rows)), self.n_rows
            for times in counts:
                times[:] = np.bincount(rng.integers(0, n_rows, n_rows), None, n_rows)
            yield counts

    def with_data_of(self, groups: Array) -> tuple[Any, Array]:
        """Return the numbers of the rows with data of any of these groups, and sums.

        The sums have shape (n, len(groups) * C). Numbers of all rows are a slice.
        """
        chosen = [np.flatnonzero(self.group == group) for group in groups]
        entries = np.concatenate(chosen)
        rows, place = np.unique(self.row[entries], return_inverse=True)
        by_group = np.zeros((rows.size, len(groups), self.n_columns))
        number = np.repeat(np.arange(len(groups)), [some.size for some in chosen])
        by_group[place, number] = dense_values(self.values[entries])
        columns = by_group.reshape(rows.size, -1)
        return slice(None) if rows.size == self.n_rows else rows, columns


@dataclass(frozen=True)
class Layout:
    """New numbers for the groups, columns and supports of sums, and how many there are.

    ``groups[i]`` is the new number of group i. Groups of the same new number are added,
    and groups of a negative one are left out.
    """

    groups: Array
    n_groups: int
    columns: Array  # of each group
    n_columns: int
    shared: Array
    n_shared: int
    supports: Array
    n_supports: int

    @property
    def kept(self) -> Array:
        """The old numbers of the groups that are not left out."""
        return np.flatnonzero(self.groups >= 0)

    def with_columns_of(self, other: Layout) -> tuple[Layout, Layout]:
        """Return both layouts in sums with the columns of self, then of `other`."""
        sizes = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("n_columns", "n_shared", "n_supports")
        }
        second = replace(
            other,
            columns=self.n_columns + other.columns,
            shared=self.n_shared + other.shared,
            supports=self.n_supports + other.supports,
            **sizes,
        )
        return replace(self, **sizes), second

    def moved(self, by_group: Array, shared: Array) -> Totals:
        """Return columns by group (..., G, C) and shared ones (..., D), renumbered."""
        sums = np.zeros((*by_group.shape[:-2], self.n_groups, self.n_columns))
        where: Any = (..., self.groups[self.kept, None], self.columns)
        np.add.at(sums, where, by_group[..., self.kept, :])
        common = np.zeros((*shared.shape[:-1], self.n_shared))
        common[..., self.shared] = shared
        return sums, common


def sum_rows(rows: Any, codes: Array, size: int) -> Array:
    """Return the sums of the rows of each code, from (n, ...) to (size, ...).

    `codes`, of shape (n,), are below `size`. `rows` may be a sparse array.
    """
    n, starts = codes.size, small_codes(np.arange(codes.size + 1))[0]
    of_code = sparse.csc_array((np.ones(n), codes, starts), shape=(size, n))
    if not isinstance(rows, np.ndarray):
        return (of_code @ rows).toarray()
    columns = np.ascontiguousarray(rows.reshape(n, math.prod(rows.shape[1:])))
    return np.asarray(of_code @ columns).reshape(size, *rows.shape[1:])


def dense_values(values: Any) -> Array:
    """Return the sums of entries as an ndarray, also if they are a sparse array."""
    return values if isinstance(values, np.ndarray) else values.toarray()


def small_codes(*codes: Array) -> list[Array]:
    """Return numbers of rows and groups as 32-bit integers, if all of them fit."""
    fit = max(int(code.max(initial=0)) for code in codes) < 2**31
    return [code.astype(np.int32, copy=False) if fit else code for code in codes]


def matching_rows(a: Rows, b: Rows) -> Array:
    """Return the numbers of the rows of `b` in the order of the clusters of `a`."""
    one, other = (pd.Index(rows.labels, tupleize_cols=False) for rows in (a, b))
    if not one.is_unique:
        raise ValueError(
            "A paired comparison needs clusters with labels of their own; some labels "
            "repeat, as when parts that each number their queries from 0 are added."
        )
    same = other.is_unique and a.n_rows == b.n_rows
    rows = other.get_indexer(one) if same else np.array([-1])
    if (rows < 0).any():
        raise ValueError(
            "A paired comparison needs two results on the same clusters (queries, or "
            f"the items of one list); got {a.n_rows} and {b.n_rows} clusters whose "
            "labels differ."
        )
    return rows


def cluster_table(
    rows: ScoreRows,
    sample: Sample,
    columns: Sequence[Array],
    of_everyone: Array | None = None,
) -> Rows:
    """Return the sums of columns of the sample by cluster and group.

    Parameters
    ----------
    rows : ScoreRows
        For the labels of the clusters and the groups.
    sample : Sample
        The memberships of these rows, sorted by cluster and group.
    columns : sequence of ndarray of shape (n,)
        In the order of the sample, with the weights of its rows.
    of_everyone : ndarray of shape (n_rows, C) or None
        In the order of the rows, to be summed over all groups.

    Returns
    -------
    Rows
        Of n_clusters rows, with the sums over all groups as shared columns.
    """
    n_groups, unweighted = len(rows.groups), None
    shared = np.zeros((rows.n_rows, 0)) if of_everyone is None else of_everyone
    if rows.weight is not None:
        weight = rows.weight[sample.row]
        number = [np.bincount(sample.group, c / weight, n_groups) for c in columns]
        of_all = (shared / rows.weight[:, None]).sum(axis=0)
        unweighted = np.stack(number, axis=1), of_all
    cells: Any = slice(None)  # each row has sums of its own
    if not sample.alone:
        cells = sample.segment_starts
        columns = [np.add.reduceat(column, cells, dtype=float) for column in columns]
    if (cluster := rows.cluster_codes) is not None:
        shared = sum_rows(shared, cluster, sample.n_clusters)
    return Rows(
        sample.cluster[cells],
        sample.group[cells],
        np.stack(columns, axis=1),
        shared=shared,
        n_groups=n_groups,
        labels=rows.cluster_labels,
        unweighted=unweighted,
    ).summed()


def table_of_sums(
    values: Any, groups: Sequence[Hashable], labels: Any, *, counted: bool
) -> Rows:
    """Return a user's sums by cluster and group, (Q, G, C), as a table.

    `counted` adds a last column: 1 where a cluster has any sum of a group, else 0.
    """
    try:
        sums = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"table must hold numbers ({error}).") from error
    try:
        distinct = len(set(groups)) == len(groups)
    except TypeError as error:
        raise ValueError(f"groups must be a list of labels ({error}).") from error
    if sums.ndim != 3 or sums.shape[1] != len(groups) or not sums.size:
        raise ValueError(
            "table must have the shape (clusters, groups, columns), here with "
            f"{len(groups)} groups; got {sums.shape}."
        )
    if not np.isfinite(sums).all():
        raise ValueError("table must be finite (no NaN, no infinity).")
    if not distinct:
        raise ValueError(f"groups must be distinct; got {list(groups)}.")
    n_rows = len(sums)
    clusters = np.arange(n_rows)
    if labels is not None:
        codes = encode(labels, "labels")
        clusters = codes.of_rows
        if clusters.size != n_rows or codes.size != n_rows:
            raise ValueError(
                f"labels must name each of the {n_rows} clusters once; got "
                f"{clusters.size}, {codes.size} of them different."
            )
    if counted:
        sums = np.concatenate([sums, (sums != 0).any(axis=2, keepdims=True)], axis=2)
    row, group = np.nonzero((sums != 0).any(axis=2))
    shared = np.zeros((n_rows, 0))
    return Rows(row, group, sums[row, group], shared, len(groups), clusters).summed()


def weights_of_rows(rows: ScoreRows, sample: Sample) -> Array:
    """Return the weight of each row of the sample, whatever its cluster."""
    if rows.weight is None:
        return np.broadcast_to(1.0, sample.x.size)
    return rows.weight[sample.row]
