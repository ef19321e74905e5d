"""The gaps between members of a group in one list: all others in one are alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._inputs.cells import Memberships
from ..._inputs.validation import Array


def of_few_grades(values: Array, most: int = 16) -> Array | None:
    """Return the number of each value among all of them; None if they are many."""
    if np.unique(values[:1000]).size > most:
        return None
    found, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.uint8) if found.size <= most else None


class ListMembers(NamedTuple):
    """What a metric has of the members of all groups of one list.

    `turns` are the two places of each membership where columns of others change, which
    increase within a group, shapes (M,); `columns` those of each membership, (M, C);
    `products` Σ x xᵀ over pairs of the columns of each group, own and shared.
    """

    turns: tuple[Array, Array]
    columns: Array
    products: Array


class Gaps:
    """The parts of a list between the turns of one group's columns, of some groups.

    Parameters
    ----------
    members : Memberships
        Of groups in one list.
    turns : tuple of two ndarrays of shape (M,)
        Places where the columns of others change, which increase within a group.
    n_rows : int
    """

    def __init__(
        self, members: Memberships, turns: tuple[Array, Array], n_rows: int
    ) -> None:
        n_cells, width = members.sizes.size, np.int64(n_rows + 1)
        start = np.arange(n_cells) * width
        of_member = members.cell * width
        every = np.concatenate([start, *(of_member + turn for turn in turns)])
        # Three runs that increase are merged in one pass.
        self.order = np.argsort(every, kind="stable")
        begin, sizes = every[self.order], 1 + 2 * members.sizes
        self.cell = np.repeat(np.arange(n_cells), sizes)
        self.first = np.cumsum(sizes) - sizes
        self.row = of_member + members.rows
        self._low = np.searchsorted(self.row, begin)
        begin -= self.cell * width
        self.begin, self.members, self.n_rows = begin, members, n_rows

    def sums(self, *changes: Array) -> Array:
        """Return sums of the changes at both turns of the members before each gap."""
        start = np.zeros(self.members.sizes.size)
        before = np.cumsum(np.concatenate([start, *changes])[self.order])
        # The first gap of a group has the sum of all that come before it.
        before -= np.repeat(before[self.first], 1 + 2 * self.members.sizes)
        return before

    def totals(self, values: Array) -> Array:
        """Return the sums over all members of the group of each gap."""
        return self.members.sums(values)[self.cell]

    def before(self, sums: Array) -> tuple[Array, Array]:
        """Return what is before each gap and before its end, of all rows.

        `sums` are those over the rows before each place, shape (n + 1,).
        """
        return self._ends(sums[self.begin], sums[self.n_rows])

    def inside(self, values: Array) -> Array:
        """Return the sums of a column of the members, (M,), over those in each gap."""
        own = np.zeros(self.row.size + 1, dtype=np.result_type(values, np.int32))
        np.cumsum(values, out=own[1:])
        low, high = self._ends(own[self._low], own[self.members.starts[1:]])
        return high - low

    def _ends(self, begin: Array, last: Array) -> tuple[Array, Array]:
        """Return what there is at the begin of each gap, and at its end."""
        end = np.empty_like(begin)
        end[:-1] = begin[1:]
        end[np.append(self.first[1:], end.size) - 1] = last
        return begin, end
