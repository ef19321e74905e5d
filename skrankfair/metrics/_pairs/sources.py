"""What a source of pairs is, and what sources of pairs across groups share.

A source knows the ordered pairs (i, j) of one metric, the focal item i and its partner
j, and a value for each. `cluster_rows` and `item_rows` make the table of sums from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol, Self, cast

import numpy as np

from ..._inputs.cells import Memberships
from ..._inputs.validation import Array, Groups

#: The columns of a group's own pairs and of the rest's, each value and number.
OWN, REST = slice(0, 2), slice(2, 4)


@dataclass(frozen=True)
class ColumnLayout:
    """What the columns of a group's sums are."""

    n_columns: int = 2  # sums over pairs: of their values, their number, and more
    n_buckets: int = 1  # strata, each with all columns
    #: {1, 2}. Whether the pairs of the rest have columns of their own beside the
    #: group's.
    n_sides: int = 1
    #: How often the shared totals of all pairs are in the sums of the rest.
    shared_weight: float = 0.0

    @property
    def n_blocks(self) -> int:
        """The number of columns of a stratum."""
        return self.n_columns * self.n_sides


@dataclass(frozen=True)
class FocalSums:
    """Sums over the pairs of some rows, focal or partners: value, number, and more.

    ``rows`` None is all rows. ``of_rest`` says which rows hold pairs of the rest; None
    is none of them.
    """

    rows: Array | None
    value: Array
    count: Array
    more: tuple[Array, ...] = ()
    of_rest: Array | None = None

    @property
    def columns(self) -> tuple[Array, ...]:
        """All sums, in the order of the table's columns."""
        return (self.value, self.count, *self.more)

    def fill(self, columns: Array) -> None:
        """Set the sums of the rows in columns of shape (n, n_blocks, B)."""
        for column, values in enumerate(self.columns):
            columns[:, column, 0][self.rows] = values


class Source(Protocol):
    """The pairs of one metric, as the tables of sums ask for them."""

    @property
    def groups(self) -> Groups:
        """The groups of the rows in ranked order."""

    @property
    def bucket(self) -> Array | None:
        """The stratum of each row of `parts`; None if there is only one."""

    @property
    def layout(self) -> ColumnLayout:
        """The columns of a group."""

    def parts(self, group: int) -> Iterable[FocalSums]:
        """Return sums of rows that count every pair once, in its stratum."""

    def total(self) -> FocalSums:
        """Return the sums of all pairs, where some are shared."""

    def cell_sums(self, members: Memberships) -> Array | None:
        """Return the sums of `parts` of all groups at once, shape (E, n_blocks, B).

        None where they are made group by group.
        """

    def fill(self, columns: Array, group: int, weight: Array | None) -> Array:
        """Set each item's sums over the pairs it is in, either side.

        `columns` are zeros of shape (n, n_blocks, B). Return Σ x xᵀ over the group's
        pairs, or nothing where `products` does without.
        """

    def shared_rows(self) -> Array:
        """Return each item's shared sums, of shape (n, 2, B), or (n, 0, B) if none."""

    def products(
        self, weight: Array | None, own: Sequence[Array] | None = None
    ) -> Array:
        """Return Σ x xᵀ over pairs, x the columns that one pair adds to.

        `own` is what `fill` has returned of each group, if it was called.
        """


class CrossSource(Protocol):
    """What sources of pairs have in common whose partner is outside the group."""

    groups: Groups
    item_weight: Array | None

    @cached_property
    def squared(self) -> Self:
        """The same pairs, each with its weight squared."""
        if self.item_weight is None:
            return self
        squared: Self = replace(cast("Any", self), item_weight=self.item_weight**2)
        return squared

    @property
    def mirror(self) -> Array:
        """From the columns of the pair (i, j), its sums, to those of (j, i)."""

    def focal(self, group: int) -> FocalSums:
        """Return the sums over the pairs of each row of the group."""

    def partner(self, group: int) -> FocalSums:
        """Return the sums over the pairs of each row outside the group."""

    def class_products(
        self,
        focal: Array,
        partners: Array,
        pair: tuple[int, int],
        opposite: bool,
        weight: Array | None,
    ) -> Array:
        """Return Σ x_a x_bᵀ over the pairs of two classes that both groups count.

        Seen from the first group; `opposite`: for the second the pair is the other way
        round.
        """

    @property
    def n_columns(self) -> int:
        """The number of columns that a pair adds to."""
        return len(self.mirror)

    @property
    def n_buckets(self) -> int:
        """The number of strata: one, where nothing else is said."""
        return 1

    @property
    def bucket(self) -> Array | None:
        """The stratum of each row of `parts`; None if there is only one."""
        return None

    @property
    def crossed(self) -> bool:
        """Whether two groups may count the same pair."""
        return True

    @property
    def layout(self) -> ColumnLayout:
        """The columns of a group: those of its own pairs."""
        return ColumnLayout(self.n_columns, self.n_buckets)

    def own_products(self, group: int, weight: Array | None) -> Array:
        """Return Σ x xᵀ over the group's pairs, x the columns of a pair."""
        member = self.groups.mask(group)
        return self.class_products(member, ~member, (group, group), False, weight)

    def parts(self, group: int) -> Iterable[FocalSums]:
        """Return sums of rows that count every pair once, in its stratum."""
        return (self.focal(group),)

    def cell_sums(self, members: Memberships) -> Array | None:
        """Return None: the sums are made group by group."""
        return None

    def total(self) -> FocalSums:
        """Return the sums of no row, since no pair is shared."""
        return FocalSums(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    def shared_rows(self) -> Array:
        """Return nothing for each row, since no pair is shared."""
        return np.zeros((self.groups.n_rows, 0, self.n_buckets))

    def fill(self, columns: Array, group: int, weight: Array | None) -> Array:
        """Set each item's sums; return Σ x xᵀ over the group's pairs."""
        # Members are focal rows, all others partners.
        focal, partner = self.focal(group), self.partner(group)
        focal.fill(columns)
        partner.fill(columns)
        products = self.products_from(focal, partner, weight)
        if products is not None:
            return products
        del focal, partner  # as long as the rows
        return self.own_products(group, weight)

    def products_from(
        self, focal: FocalSums, partner: FocalSums, weight: Array | None
    ) -> Array | None:
        """Return `own_products` from the sums of both sides; None if they lack it."""
        return None

    def products(
        self, weight: Array | None, own: Sequence[Array] | None = None
    ) -> Array:
        """Return Σ x xᵀ over pairs, x the columns that one pair adds to."""
        n_groups, n_columns = len(self.groups), self.n_columns
        if own is None:
            own = [self.own_products(group, weight) for group in range(n_groups)]
        products = np.zeros((n_groups, n_columns, n_groups, n_columns))
        for a in range(n_groups):
            products[a, :, a] = own[a]
        for a, b in combinations(range(n_groups), 2) if self.crossed else ():
            block = self._cross_products(a, b, weight)
            products[a, :, b], products[b, :, a] = block, block.T
        return products.reshape(n_columns * n_groups, -1)

    def _cross_products(self, a: int, b: int, weight: Array | None) -> Array:
        """Return Σ x_a x_bᵀ over the pairs that both groups count."""
        in_a, in_b = self.groups.mask(a), self.groups.mask(b)
        block = np.zeros((self.n_columns, self.n_columns))
        both = in_a & in_b
        if both.any():
            block += self.class_products(both, ~(in_a | in_b), (a, b), False, weight)
        only_a, only_b = in_a & ~in_b, in_b & ~in_a
        if only_a.any() and only_b.any():
            # The other way round for group b: its columns are the mirror image.
            seen_from_a = self.class_products(only_a, only_b, (a, b), True, weight)
            block += seen_from_a @ self.mirror.T
        return block
