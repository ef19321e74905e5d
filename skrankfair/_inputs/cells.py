"""The groups that each query has rows of: a cell is a query and a group.

Only the cells that have rows exist, so that sums need time and memory for the rows, or
for the memberships of groups that overlap, and not for queries times groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .groups import Groups
from .ranking import Places, Ranking, stable_order
from .validation import Array


@dataclass(frozen=True, eq=False)
class Cells:
    """A list of cells.

    Attributes
    ----------
    query, group : ndarray of shape (E,), int64
    n_queries, n_groups : int
    """

    query: Array
    group: Array
    n_queries: int
    n_groups: int

    @classmethod
    def of_all(cls, n_queries: int, n_groups: int) -> Cells:
        """Return all groups of the first query, then of the second, and so on."""
        query, group = divmod(np.arange(n_queries * n_groups), n_groups)
        return cls(query, group, n_queries, n_groups)

    @classmethod
    def of_rows(cls, groups: Groups) -> Cells:
        """Return the cells of queries of which each is one row of the groups."""
        return cls(*groups.memberships(), groups.n_rows, len(groups))

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """Return the cells of queries that follow each other."""
        *starts, n_queries = np.cumsum([0, *(cells.n_queries for cells in parts)])
        query = [cells.query + s for cells, s in zip(parts, starts, strict=True)]
        group = np.concatenate([cells.group for cells in parts])
        return cls(np.concatenate(query), group, int(n_queries), parts[0].n_groups)


@dataclass(frozen=True, eq=False)
class Memberships:
    """Ranked rows by query and group, a row of several groups once for each.

    Attributes
    ----------
    groups : Groups
        Of the ranked rows.
    cells : Cells
        Those with rows.
    rows : ndarray of shape (M,), int64
        The ranked rows of the first cell from the top down, then of the second, ...
    starts : ndarray of shape (E + 1,), int64
        First membership of each cell, and M.
    """

    groups: Groups
    cells: Cells
    rows: Array
    starts: Array

    @classmethod
    def of(cls, places: Places, groups: Groups) -> Memberships:
        """Sort the memberships of ranked rows."""
        n_groups = len(groups)
        rows, group = groups.memberships()
        key = places.query[rows] * np.int64(n_groups) + group
        order = stable_order(key)
        key, rows = key[order], rows[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        query = places.query[rows[first]].astype(np.int64)
        group = key[first] - query * n_groups
        cells = Cells(query, group, places.n_queries, n_groups)
        return cls(groups, cells, rows, np.append(first, rows.size))

    @cached_property
    def sizes(self) -> Array:
        """Number of rows of each cell."""
        return np.diff(self.starts)

    @cached_property
    def cell(self) -> Array:
        """Cell of each membership."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    def contain(self, rows: Array, group: Array) -> Array:
        """Return whether ranked rows are of these groups."""
        values = self.groups.values
        if self.groups.overlapping:
            return np.asarray(values[rows, group])
        return np.asarray(values[rows] == group)

    def in_company(self) -> tuple[Array, Memberships]:
        """Return the memberships of cells with several rows, and these cells.

        Nothing is to be counted within a cell of one row, as most are of many groups.
        """
        return self.of_cells(self.sizes > 1)

    def of_cells(self, chosen: Array) -> tuple[Array, Memberships]:
        """Return the memberships of some cells, a mask of shape (E,), and these."""
        some = np.flatnonzero(np.repeat(chosen, self.sizes))
        cells = replace(
            self.cells, query=self.cells.query[chosen], group=self.cells.group[chosen]
        )
        starts = np.concatenate(([0], np.cumsum(self.sizes[chosen])))
        return some, replace(self, cells=cells, rows=self.rows[some], starts=starts)

    def sums(self, values: Array) -> Array:
        """Return the sums by cell of columns of memberships, shape (..., E)."""
        if not values.size:
            return np.zeros((*values.shape[:-1], self.sizes.size))
        return np.add.reduceat(values, self.starts[:-1], axis=-1, dtype=float)

    def sums_of_rows(self, values: Array) -> Array:
        """Return the sums by cell of columns of ranked rows, shape (..., E)."""
        return self.sums(values[..., self.rows])

    def tie_starts(self, places: Places) -> Array | None:
        """Return the first membership of each tied block of a cell, None without."""
        if not places.has_ties:
            return None
        tie = places.tie[self.rows]
        new = np.ones(tie.size, dtype=bool)
        np.not_equal(tie[1:], tie[:-1], out=new[1:])
        new[self.starts[:-1]] = True
        return np.flatnonzero(new)

    def ranking(self, ranking: Ranking) -> Ranking:
        """Return the ranking of each cell as a list of its own."""
        return Ranking(
            self.starts, self.tie_starts(ranking), self.rows, ranking.score[self.rows]
        )
