"""The gaps between members of a group in one list: all others in one are alike."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..._inputs.cells import Memberships
from ..._inputs.validation import Array


def of_few_grades(values: Array, most: int = 16) -> Array | None:
    """Return the number of each value among all of them; None if they are many."""
    if np.unique(values[:1000]).size > most:
        return None
    found, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.uint8) if found.size <= most else None


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
        key = [np.arange(n_cells) * width]
        key += [members.cell * width + turn for turn in turns]
        every = np.concatenate(key)
        # Three runs that increase are merged in one pass.
        self.order = np.argsort(every, kind="stable")
        self.begin = every[self.order]
        self.cell = self.begin // width
        ends = np.append(self.begin[1:], -1)
        last = np.append(self.cell[1:] != self.cell[:-1], True)
        self.end = np.where(last, self.cell * width + n_rows, ends)
        self.first = np.searchsorted(self.cell, np.arange(n_cells))
        self.members, self.width = members, width
        self.row = members.cell * width + members.rows

    def sums(self, *changes: Array) -> Array:
        """Return sums of the changes at both turns of the members before each gap."""
        start = np.zeros(self.members.sizes.size)
        total = np.concatenate([start, *changes])[self.order]
        before = np.concatenate([[0.0], np.cumsum(total)])
        return before[1:] - before[self.first][self.cell]

    def totals(self, values: Array) -> Array:
        """Return the sums over all members of the group of each gap."""
        return self.members.sums(values)[self.cell]

    def outside(self, before: Array, inside: Array) -> Array:
        """Return the sums over rows outside the group that are in each gap.

        `before` are sums over all rows before each place, shape (n + 1,); `inside` is
        what the members themselves add, shape (M,).
        """
        own = np.zeros(self.row.size + 1)
        np.cumsum(inside, out=own[1:])
        found = before[self.end % self.width] - before[self.begin % self.width]
        low, high = self._places
        return found - (own[high] - own[low])

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """The first membership in each gap, and one past its last."""
        low = np.searchsorted(self.row, self.begin)
        high = np.append(low[1:], self.row.size)
        last = np.append(self.cell[1:] != self.cell[:-1], True)
        high[last] = self.members.starts[1:]
        return low, high
