"""The items of one list with many groups, of which those that are alike are one row.

What an item has of the pairs of a group that it is not in depends on its place among
the members and on its grade: between two members it is the same for all items of one
grade, or linear in one value of theirs, whose mean and deviation are enough. So each
group needs a row for each of its members and one for each gap
between them, which counts as often as there are items in it; of all groups together
these are as many as there are items, times the number of grades.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..._estimates.allocation import check_memory
from ..._estimates.folded import Products
from ..._estimates.listed import ListProducts, ListTable
from ..._estimates.sums import ClusterSums
from ..._estimates.table import GroupRows, Table
from ..._inputs.cells import Memberships
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array, Groups
from .cluster_rows import supports_of
from .member_gaps import Gaps
from .prefix_sums import exclusive_cumsum
from .sources import Source

#: So many memberships are looked at together, and as many rows are kept.
_CHUNK = 1 << 15


class GradedSource(Source, Protocol):
    """The pairs of a metric, with what items of one grade have alike."""

    def grades(self) -> Array | None:
        """Return the grade of each row from 0, shape (n,); None if they are many."""

    def member_columns(self, members: Memberships) -> Array:
        """Return the columns of each membership of one list, shape (M, C)."""

    def turns(self, members: Memberships) -> tuple[Array, Array]:
        """Return the two places of each membership where columns of others change."""

    def other_columns(self, grade: int, gaps: Gaps) -> Array:
        """Return the columns of rows of a grade that are in the gaps, (P, C)."""

    @property
    def varying(self) -> slice:
        """The columns, own and shared, in which rows of a gap and a grade differ."""

    def values(self) -> Array:
        """Return what they differ by, shape (n, V), of which the first may vary."""

    def columns_at(self, columns: Array, values: Array) -> Array:
        """Return the columns of rows with these values, changing them in place."""

    def list_products(self, members: Memberships) -> Array:
        """Return Σ x xᵀ over pairs of the columns of each group, own and shared."""


class _Grade:
    """The rows of one grade, and sums over those before each place.

    Parameters
    ----------
    there : ndarray of shape (n,), bool
    values : ndarray of shape (n, V)
        Of all rows; those of one grade differ in the first alone.
    """

    def __init__(self, there: Array, values: Array) -> None:
        self.there, self.before = there, exclusive_cumsum(there)
        self.values, self.mean = values, values[np.argmax(there)].copy()
        self.mean[:1] = values[there, :1].mean(axis=0)

    def rows(self, gaps: Gaps, exact: bool) -> Iterator[tuple[Array, Array, Array]]:
        """Yield gaps with rows of this grade, how many these are, and their values.

        Every metric is linear in the value that varies, so that, to be `exact`, half of
        the rows are at the mean plus their deviation and half at the mean minus that.
        """
        members = gaps.members.rows
        number = gaps.outside(self.before, self.there[members])
        some = np.flatnonzero(number > 0)
        times = number[some]
        every = np.broadcast_to(self.mean, (some.size, self.mean.size))
        if not exact:
            yield some, times, every
            return
        value = np.where(self.there, self.values[:, 0] - self.mean[0], 0.0)
        first, second = (
            gaps.outside(np.append(0.0, np.cumsum(part)), part[members])[some] / times
            for part in (value, value**2)
        )
        alone = times == 1
        deviation = np.sqrt(np.maximum(second - first**2, 0.0)) * ~alone
        for sign, kept in ((1.0, times > 0), (-1.0, ~alone)):
            values = every[kept]
            values[:, 0] += (first + sign * deviation)[kept]
            yield some[kept], np.where(alone, 1.0, times / 2)[kept], values


@dataclass(frozen=True, eq=False)
class ListedItems:
    """The items of one list, and the pairs of some groups.

    Attributes
    ----------
    data : RankedData
    source : GradedSource
        With the groups.
    """

    data: RankedData
    source: GradedSource

    @classmethod
    def of(cls, data: RankedData, source: Source) -> ListedItems | None:
        """Return the items, or None if those of a group's gap are not alike."""
        plain = data.query_weight is None and data.item_weight is None
        if not plain or not hasattr(source, "grades"):
            return None
        graded: Any = source
        if graded.grades() is None:
            return None
        items = cls(replace(data, cache={}), graded)
        return items if items._members.sizes.size == len(source.groups) else None

    @property
    def groups(self) -> Groups:
        """The groups of the ranked rows."""
        return self.source.groups

    @cached_property
    def _members(self) -> Memberships:
        return Memberships.of(self.data.ranking, self.groups)

    @cached_property
    def _shared(self) -> Array:
        n_shared = 2 if self.source.layout.shared_weight else 0
        return self._values[:, :n_shared]

    @cached_property
    def _values(self) -> Array:
        return self.source.values()

    @cached_property
    def _grades(self) -> list[_Grade]:
        grades = self.source.grades()
        if grades is None:
            raise ValueError("y_true has too many values to be grades.")
        every, values = range(int(grades.max()) + 1), self._values
        return [_Grade(grades == grade, values) for grade in every]

    def sums(self) -> ClusterSums:
        """Return the sums over items."""
        order, kept = self.data.ranking.order, self.data.kept
        layout, labels = self.source.layout, order if kept is None else kept[order]
        n_groups, width = len(self.groups), layout.n_blocks
        parts = [self.source.list_products(part) for _, part in self._chunks()]
        own = np.concatenate(parts)
        # Each pair is 1 in the columns of numbers, or takes 1 away.
        totals = np.concatenate([own[:, 1, :2], own[:, width - 1, 2:width]], axis=1)
        if layout.shared_weight:
            totals[:, 2:] *= -1
        table: Any = ListTable(self, n_groups, width, self._shared, labels)
        return ClusterSums.from_items(
            self.groups.labels,
            table,
            ListProducts(self, own),
            (totals[:, :width], own[0, -1, width:]),
            supports_of(layout),
        )

    def cells(self, slopes: Array | None) -> Iterator[GroupRows]:
        """Yield what stands for all items of some groups at a time."""
        exact = slopes is not None and bool(slopes[:, self.source.varying].any())
        if exact or self._members.rows.size > _CHUNK:
            for first, members in self._chunks():
                yield self._cells_of(first, members, exact)
        else:
            yield self._every

    @cached_property
    def _every(self) -> GroupRows:
        return self._cells_of(0, self._members, False)

    def _chunks(self) -> Iterator[tuple[int, Memberships]]:
        """Yield the members of some groups at a time, and the first group."""
        starts, first = self._members.starts, 0
        number = np.arange(len(self.groups))
        while first < number.size:
            last = int(np.searchsorted(starts, starts[first] + _CHUNK, "right")) - 1
            last = max(last, first + 1)
            yield first, self._members.of_cells((number >= first) & (number < last))[1]
            first = last

    def _cells_of(self, first: int, members: Memberships, exact: bool) -> GroupRows:
        """Return the members of some groups, and the gaps between them by grade."""
        gaps = Gaps(members, self.source.turns(members), self.data.ranking.n_rows)
        columns = [self.source.member_columns(members)]
        cell, common = [members.cell], [self._shared[members.rows]]
        weight, rows = [np.ones(members.rows.size)], [members.rows]
        for number, grade in enumerate(self._grades):
            found = self.source.other_columns(number, gaps)
            for some, times, values in grade.rows(gaps, exact):
                columns.append(self.source.columns_at(found[some], values))
                cell.append(gaps.cell[some])
                weight.append(times)
                common.append(values[:, : self._shared.shape[1]])
                rows.append(gaps.begin[some] % gaps.width)
        row, every = np.concatenate(rows), np.concatenate(columns)
        member = np.zeros((row.size, 1), dtype=bool)
        member[: members.rows.size] = True
        return GroupRows(
            *(every[:, None], np.concatenate(common), np.concatenate(weight), row),
            member,
            row=row,
            group=first + np.concatenate(cell),
            of=len(self.groups),
        )

    def table(self) -> Table:
        """Return all groups of each item."""
        from .item_rows import item_table

        return item_table(self.data, self.source)

    def products(self) -> Products:
        """Return the cross products of the columns over pairs."""
        layout, n_groups = self.source.layout, len(self.groups)
        size = n_groups * layout.n_blocks + self._shared.shape[1]
        check_memory(
            8.0 * size**2,
            f"The products of pairs of {n_groups} groups with each other",
            "ask for standard_error, or for the contrasts that matter.",
        )
        matrix = self.source.products(None)
        return Products(matrix, n_groups, self._shared.shape[1])

    def of_groups(self, columns: Array) -> ListedItems:
        """Return the same items with some of the groups."""
        groups = self.groups
        if columns.size == len(groups):
            return self
        labels = tuple(groups.labels[i] for i in columns)
        some = np.stack([groups.mask(group) for group in columns], axis=1)
        source: Any = self.source
        return ListedItems(self.data, replace(source, groups=Groups(labels, some)))
