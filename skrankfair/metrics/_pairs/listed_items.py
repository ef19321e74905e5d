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
from ..._estimates.listed import HeldCells, ListProducts, ListTable
from ..._estimates.sums import ClusterSums
from ..._estimates.table import GroupRows, Table
from ..._inputs.cells import Memberships
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array, Groups
from .cluster_rows import supports_of
from .member_gaps import Gaps, ListMembers
from .prefix_sums import count_dtype, exclusive_cumsum
from .sources import Source

#: So many memberships are looked at together, and as many rows are kept.
_CHUNK = 1 << 14
#: What members have of pairs is counted for so small a part of them at a time.
_PARTS = 8
_BY_ROW = ("by_group", "shared", "labels", "member", "row", "group")


class GradedSource(Source, Protocol):
    """The pairs of a metric, with what items of one grade have alike."""

    def grades(self) -> Array | None:
        """Return the grade of each row from 0, shape (n,); None if they are many."""

    def of_list(self, members: Memberships) -> ListMembers:
        """Return what the members of all groups of one list have."""

    def other_columns(self, grade: int, gaps: Gaps) -> Array:
        """Return the columns of rows of a grade that are in the gaps, (P, C)."""

    @property
    def varying(self) -> slice:
        """The columns, own and shared, in which rows of a gap and a grade differ."""

    def values(self) -> Array:
        """Return what they differ by, shape (n, V), of which the first may vary."""

    def columns_at(self, columns: Array, values: Array) -> Array:
        """Return the columns of rows with these values, changing them in place."""


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

    @cached_property
    def _moments(self) -> list[Array]:
        """Sums of deviations and of their squares over rows of the grade, in order."""
        value = self.values[self.there, 0] - self.mean[0]
        return [np.append(0.0, np.cumsum(part)) for part in (value, value**2)]

    def rows(
        self, gaps: Gaps, paired: Any, exact: bool
    ) -> tuple[Array, Array, Array, Array]:
        """Return gaps with rows of this grade, that are `paired`, and these rows.

        How many they are, their values, and the deviation of what varies (if `exact`,
        or 0). Every metric is linear in that, so that half of the rows may be at the
        mean plus their deviation and half at the mean minus that.
        """
        members = gaps.members.rows
        low, high = gaps.before(self.before)
        there = self.there[members]
        number = high - low - gaps.inside(there)
        some = np.flatnonzero((number > 0) & paired)
        times = number[some]
        values = np.repeat(self.mean[None], some.size, axis=0)
        if not exact:
            return some, times, values, np.zeros(some.size)
        value = np.where(there, self.values[members, 0] - self.mean[0], 0.0)
        first, second = (
            (sums[high[some]] - sums[low[some]] - gaps.inside(part)[some]) / times
            for sums, part in zip(self._moments, (value, value**2), strict=True)
        )
        values[:, 0] += first
        second -= first**2
        return some, times, values, np.sqrt(np.maximum(second, 0.0)) * (times > 1)


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
    def _of_members(self) -> ListMembers:
        n_rows = self.data.ranking.n_rows
        dtype = count_dtype(n_rows)
        columns, products = [], []
        turns: list[list[Array]] = []
        for first, last in self._spans(max(n_rows // _PARTS, _CHUNK)):
            part = self.source.of_list(self._members.span(first, last))
            columns.append(part.columns.T)
            products.append(part.products)
            turns.append([turn.astype(dtype) for turn in part.turns])
        begin, end = map(np.concatenate, zip(*turns, strict=True))
        every = np.concatenate(columns, axis=1).T
        return ListMembers((begin, end), every, np.concatenate(products))

    def _spans(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield the first groups, and one past the last, of about so many members."""
        starts, first = self._members.starts, 0
        while first < starts.size - 1:
            last = int(np.searchsorted(starts, starts[first] + size, "right")) - 1
            yield first, max(last, first + 1)
            first = max(last, first + 1)

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
        own = self._of_members.products
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

    def parts(self, slopes: Array | None) -> Iterator[tuple[slice, HeldCells]]:
        """Yield some groups at a time, and what stands for all items of each."""
        exact = slopes is not None and bool(slopes[:, self.source.varying].any())
        starts = self._members.starts
        for first, last in self._spans(_CHUNK):
            these = slice(*starts[[first, last]])
            members = self._members.span(first, last)
            yield slice(first, last), self._cells_of(members, these, exact)

    def _cells_of(self, members: Memberships, these: slice, exact: bool) -> HeldCells:
        """Return the members of some groups, and the gaps between them by grade."""
        found, n_rows = self._of_members, self.data.ranking.n_rows
        gaps = Gaps(members, (found.turns[0][these], found.turns[1][these]), n_rows)
        one, n_shared = np.ones(members.rows.size), self._shared.shape[1]
        place = members.rows, members.cell
        own = found.columns[these].T, self._shared[members.rows]
        above: list[Any] = [(*own, *place, one, one)]
        below: list[Any] = []
        for number, grade in enumerate(self._grades):
            columns = self.source.other_columns(number, gaps).T
            # Without pairs of the group and shared ones a row adds nothing.
            paired = columns[1::2].any(axis=0) if not n_shared else True
            some, times, values, deviation = grade.rows(gaps, paired, exact)
            apart = np.flatnonzero(deviation)
            once = times.astype(float)
            half = once.copy()
            half[apart] /= 2
            for rows, kept, sign in ((above, slice(None), 1.0), (below, apart, -1.0)):
                moved = np.array(values[kept])
                moved[:, :1] += sign * deviation[kept, None]
                at = some[kept]
                columns_at = self.source.columns_at(columns[:, at].T, moved)
                own = columns_at.T, moved[:, :n_shared]
                place = gaps.begin[at], gaps.cell[at]
                rows.append((*own, *place, half[kept], once[kept]))
        return _held(above, below, members)

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


def _held(above: list[Any], below: list[Any], members: Memberships) -> HeldCells:
    """Return rows, of which those below are the other half of some above."""
    every, *others = zip(*above, *below, strict=True)
    shared, row, group, weight = map(np.concatenate, others[:-1])
    member = np.zeros((row.size, 1), dtype=bool)
    member[: members.rows.size] = True
    values = GroupRows(
        *(np.concatenate(every, axis=1).T[:, None], shared, weight, row, member),
        row=row,
        group=group,
        of=members.sizes.size,
    )
    once = np.concatenate([part[-1] for part in above])
    first = slice(once.size)
    numbers = replace(
        values,
        **{name: getattr(values, name)[first] for name in _BY_ROW},
        weight=once,
    )
    return HeldCells(values, numbers)
