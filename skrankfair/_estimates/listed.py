"""The rows of one list with many groups: all groups of each only when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .._inputs.validation import Array
from .folded import Products
from .table import Finalize, GroupRows, Table

Sums = TypeVar("Sums", bound=Any)  # ClusterSums


class ListErrors(NamedTuple):
    """What the rows of all groups say of a metric, each of shape (G,)."""

    variance: Array
    df: Array
    n_effective: Array


class Listing(Protocol):
    """The items of one list and their pairs, as `ListTable` asks for them."""

    def parts(self, slopes: Array | None) -> Iterator[tuple[slice, HeldCells]]:
        """Yield some groups at a time, and what stands for all items of each.

        Items outside of a group whose columns are the same are one row, which counts as
        often as they are many. Their numbers of pairs are exact, and their values for
        what has these `slopes`, of shape (G, C + D).
        """

    def table(self) -> Table:
        """Return all groups of each item."""

    def products(self) -> Products:
        """Return the cross products of the columns over pairs."""

    def of_groups(self, columns: Array) -> Listing:
        """Return the same items with some of the groups."""


@dataclass(frozen=True, eq=False)
class ListTable:
    """A table of items that is a `Table` when more is asked of it than sums by group.

    Attributes
    ----------
    listing : Listing
    n_groups, n_columns : int
    shared : ndarray of shape (n_rows, D)
    labels : ndarray of shape (n_rows,)
    """

    listing: Listing
    n_groups: int
    n_columns: int
    shared: Array
    labels: Array

    weight = None
    member = True  # the items of a group and all others are two samples

    @property
    def n_rows(self) -> int:
        """The number of items."""
        return len(self.shared)

    @property
    def frequency(self) -> Array:
        """How often each row counts, shape (n_rows,)."""
        return np.ones(self.n_rows)

    def cells(self, size: int, slopes: Array | None = None) -> Iterator[GroupRows]:
        """Yield what stands for the items of some groups at a time."""
        for groups, held in self.listing.parts(slopes):
            cells = held.numbers if slopes is None else held.values
            group = cells.group + groups.start
            yield replace(cells, group=group, of=self.n_groups)

    @cached_property
    def known(self) -> dict[int, tuple[Finalize, ListErrors]]:
        """The errors of metrics that were asked for."""
        return {}

    @cached_property
    def _dense(self) -> Table:
        return self.listing.table()

    def dense(self) -> Table:
        """Return all groups of each item."""
        return self._dense

    def of_groups(self, columns: Array) -> Table:
        """Return the rows with the columns of some groups."""
        return self.listing.of_groups(columns).table()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the table with all groups of each item."""
        if name.startswith("__"):  # of what pickle looks for
            raise AttributeError(name)
        return getattr(self.dense(), name)


@dataclass(frozen=True, eq=False)
class ListProducts:
    """Cross products over pairs: of each group, and of two groups when asked for.

    Attributes
    ----------
    listing : Listing
    own : ndarray of shape (G, C + D, C + D)
        Of the columns of each group with its own and the shared ones.
    """

    listing: Listing
    own: Array

    @cached_property
    def whole(self) -> Products:
        """The products of all columns."""
        return self.listing.products()

    def form(self, slopes: Array, first: Array, second: Array) -> Array:
        """Return ``J_a · P_ab · J_b`` of pairs of groups, as `Products.form`."""
        if not np.array_equal(first, second):
            return self.whole.form(slopes, first, second)
        j = slopes[first]
        return np.einsum("mi,mij,mj->m", j, self.own[first], j)

    def of_groups(self, columns: Array) -> Products:
        """Return the products of some groups."""
        return self.listing.of_groups(columns).products()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the products of all columns."""
        if name.startswith("__"):  # of what pickle looks for
            raise AttributeError(name)
        return getattr(self.whole, name)


@dataclass(frozen=True, eq=False)
class HeldCells:
    """What stands for all items of a few groups, and is made only once.

    Attributes
    ----------
    values, numbers : GroupRows
        With the right sums of squares of values, and fewer rows with those of numbers.
    """

    values: GroupRows
    numbers: GroupRows

    def parts(self, slopes: Array | None) -> Iterator[tuple[slice, HeldCells]]:
        """Yield all groups."""
        yield slice(0, self.values.of), self


def held_parts(sums: Sums, slopes: Array) -> Iterator[Sums]:
    """Yield the sums of some groups of a list at a time, which hold their rows."""
    for some, held in sums.table.listing.parts(slopes):
        yield replace(
            sums,
            groups=sums.groups[some],
            by_group=sums.by_group[some],
            table=replace(sums.table, listing=held, n_groups=held.values.of),
            pairs=replace(sums.pairs, listing=held, own=sums.pairs.own[some]),
        )


def expanded(sums: Sums) -> Sums:
    """Return sums with all groups of each row, where these were not asked for yet."""
    if not isinstance(sums.table, ListTable):
        return sums
    return replace(sums, table=sums.table.dense(), pairs=sums.pairs.whole)
