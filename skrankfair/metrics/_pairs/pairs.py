"""The pairs of a metric: what its tables of sums ask for."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..._inputs.cells import Memberships
from ..._inputs.groups import Groups
from ..._inputs.ranking import Ranking
from ..._inputs.validation import Array

#: The columns of a group's own pairs and of the rest's, each value and number.
OWN, REST = slice(0, 2), slice(2, 4)


class Pairs(ABC):
    """The ordered pairs (i, j) of one metric, the focal item i and its partner j.

    Each pair adds to `n_columns` columns, in one of `n_buckets` strata: its value, its
    number, and more. With two sides the pairs of the rest have columns of their own
    beside the group's. No pair is ever written down.

    Attributes
    ----------
    ranking : Ranking
    groups : Groups
        The groups of the rows in ranked order.
    """

    ranking: Ranking
    groups: Groups
    n_columns: int = 2
    n_buckets: int = 1
    n_sides: int = 1

    @property
    def has_shared(self) -> bool:
        """Whether the sums of all pairs are shared columns, and part of the rest's."""
        return False

    @property
    def n_blocks(self) -> int:
        """The number of columns of a stratum."""
        return self.n_columns * self.n_sides

    @abstractmethod
    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, n_blocks, B)."""

    @abstractmethod
    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the group's pairs, shape (n_blocks, B, n).

        A pair is in the sums of both its items.
        """

    def query_sums(self) -> Array:
        """Return the shared sums by query, shape (Q, 2, B), or (Q, 0, B) if none."""
        return np.zeros((self.ranking.n_queries, 0, self.n_buckets))

    def shared_item_sums(self) -> Array:
        """Return the shared sums of each item, shape (n, 2, B), or (n, 0, B)."""
        return np.zeros((self.ranking.n_rows, 0, self.n_buckets))
