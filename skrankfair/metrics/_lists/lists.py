"""Ranked lists of group members: all that statistical parity looks at.

No outcome and no score is left, only who stands above whom. Score ties are met by
expectation: a member of a tied block is at each of its places with equal chance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._estimates.finalize import Finalize, MeanOfRatios
from ..._estimates.storage import stored
from ..._inputs.groups import Groups, sort_labels
from ..._inputs.ranking import Cells, Memberships, Places, RankedData, order_rows
from ..._inputs.validation import Array
from .._pairs.cluster_rows import QuerySums

_PART = 1 << 17  # rows that are worked on at once


@dataclass(frozen=True)
class Cuts:
    """The first k rows of every list, for k = step, 2 step, ... up to its length."""

    of_list: Array  # shape (n_cuts,), int: the list of each cut
    k: Array  # shape (n_cuts,), int: the number of rows above it
    ends: Array  # shape (n_cuts,), int: one past the last of them


@dataclass(frozen=True, eq=False)
class Lists(Places):
    """Groups of the rows of every list, from the top down."""

    groups: Groups

    @classmethod
    def of(cls, data: RankedData) -> Lists:
        """Return the lists of data that is validated and ordered."""
        return cls(data.ranking.starts, data.ranking.tie_starts, data.groups)

    @cached_property
    def members(self) -> Memberships:
        """The rows by list and group."""
        return Memberships.of(self, self.groups)

    @property
    def cells(self) -> Cells:
        """The lists and groups that have sums."""
        return self.members.cells

    @property
    def sizes(self) -> Array:
        """Members of each cell, shape (E,), as floats."""
        return self.members.sizes.astype(float)

    def of_cells(self, by_list: Array) -> Array:
        """Return what the list of each cell has."""
        return by_list[self.cells.query]

    def sums_by_cell(self, values: Array) -> Array:
        """Return the sums of a column over the members, shape (E,)."""
        return self.members.sums_of_rows(values)

    def cuts(self, step: int) -> Cuts:
        """Return the cuts after every `step` rows."""
        counts = self.lengths // step
        of_list = np.repeat(np.arange(self.n_queries), counts)
        k = np.arange(1, of_list.size + 1)
        k -= np.repeat(np.cumsum(counts) - counts, counts)
        k *= step
        return Cuts(of_list, k, self.starts[of_list] + k)

    def members_above(self, cell: Array, cuts: Cuts) -> Array:
        """Return the expected number of members of cells above a cut of each.

        `cuts` are those of the cells' lists, and of no other.
        """
        members = self.members
        # All rows of all cells in one order: those of a cell that are above a row.
        key = members.cell * np.int64(self.n_rows + 1) + members.rows
        base = cell * np.int64(self.n_rows + 1)

        def above(row: Array) -> Array:
            return np.searchsorted(key, base + row) - members.starts[cell]

        if not self.has_ties:
            return above(cuts.ends)
        first, last = self.tie_bounds(cuts.ends - 1)
        low = above(first)
        return low + (above(last) - low) * (cuts.ends - first) / (last - first)

    def parts(self) -> Iterator[Lists]:
        """Yield parts of whole lists, of so many rows that they stay in the cache."""
        for rows, queries in self.spans(_PART):
            places = self.starts_within(rows, queries)
            yield Lists(*places, self.groups.take(rows))

    def shuffled(self, times: int, rng: np.random.Generator) -> Lists:
        """Return the lists `times` over, labels shuffled within every list."""
        n = self.n_rows
        shift = np.arange(times)[:, None]
        starts = np.append((self.starts[:-1] + shift * n).ravel(), times * n)
        ties = self.tie_starts
        if ties is not None:
            ties = (ties + shift * n).ravel()
        lists = (self.query + shift * self.n_queries).ravel()
        rows = order_rows(lists, rng.random(times * n)) % n
        return Lists(starts, ties, self.groups.take(rows))

    def __add__(self, other: Lists) -> Lists:
        """Return the lists of both, groups aligned by label."""
        labels = self.groups.labels
        if set(labels) != set(other.groups.labels):
            labels = tuple(sort_labels(list({*labels, *other.groups.labels})))
        values = [_aligned(part.groups, labels) for part in (self, other)]
        ties = None
        if self.has_ties or other.has_ties:
            ties = np.append(self.block_starts, other.block_starts + self.n_rows)
        starts = np.append(self.starts[:-1], other.starts + self.n_rows)
        return Lists(starts, ties, Groups(labels, np.concatenate(values)))


class ListKernel(ABC):
    """What turns lists into the rows of a table of sums.

    Attributes
    ----------
    average : {"queries", "representation"}
        Whether the rows have values of lists, or shares whose means have one.
    signed : bool
        Whether both ends of the values speak against parity.
    of_values : callable
        From the sums of values and numbers of lists to estimates.
    """

    average: str
    signed: bool
    of_values: Finalize = MeanOfRatios()

    def labels(self, groups: Groups) -> tuple[Hashable, ...]:
        """Return the labels of the rows of the result."""
        return groups.labels

    @abstractmethod
    def table(self, lists: Lists) -> QuerySums:
        """Return sums by cell (E, C), and shared ones by list (Q, D)."""

    @abstractmethod
    def of_means(self, data: RankedData) -> tuple[Finalize, Finalize, dict[str, Any]]:
        """Return the metric of mean shares, its support, and what parts must share."""


def table_of(kernel: ListKernel, lists: Lists) -> QuerySums:
    """Return the table of a kernel, made part by part."""
    return QuerySums.joined([kernel.table(part) for part in lists.parts()])


@stored("ListsWith")
@dataclass(frozen=True)
class ListsWith:
    """The number of lists, 0 for a group that is in none or is all of them.

    The last column is the group's share of the list, and there is a shared one.
    """

    joint: int | None = None  # the number of groups whose columns follow each other
    long: bool = True  # whether the lists are long enough to have a value

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the numbers, shape (..., G)."""
        n = shared[..., 0, None]
        if self.joint is not None:
            by_group = by_group.reshape(*by_group.shape[:-1], self.joint, -1)
            valid = (by_group[..., -1] > 0).sum(axis=-1) > 1
        else:
            valid = (by_group[..., -1] > 0) & (by_group[..., -1] < n)
        return np.where(valid & self.long, n, 0.0)


def one_length(data: RankedData) -> int:
    """Return the length of all lists, which must be the same."""
    lengths = data.ranking.lengths
    if lengths.min() < lengths.max():
        raise ValueError(
            "average must be 'queries' for lists of different lengths: "
            "'representation' averages position by position; got lists of "
            f"{lengths.min()} to {lengths.max()} items."
        )
    return int(lengths[0])


def _aligned(groups: Groups, labels: tuple[Hashable, ...]) -> Array:
    """Return codes, or the membership matrix, in the order of these labels."""
    place = np.array([labels.index(label) for label in groups.labels])
    if not groups.overlapping:
        codes: Array = place[groups.values]
        return codes
    member = np.zeros((groups.n_rows, len(labels)), dtype=bool)
    member[:, place] = groups.values
    return member
