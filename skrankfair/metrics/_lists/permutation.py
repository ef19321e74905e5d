"""The permutation test of statistical parity: labels shuffled within every list."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._estimates.finalize import Finalize
from ..._inputs.validation import Array
from .._pairs.cluster_rows import QuerySums
from .lists import ListKernel, Lists, table_of

# What the shuffles of a block may have of rows, or of the numbers of many groups.
_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Permutation:
    """Lists and the metric of them: what a result keeps to shuffle its labels.

    Of the data it holds one label per row and where lists and tied blocks begin.
    """

    lists: Lists
    weight: Array | None  # shape (n_lists,) or None: of each list
    kernel: ListKernel
    #: {"greater", "two-sided"}. Which values speak against parity: large ones of a
    #: distance, or both ends.
    alternative: str

    def resampled(
        self, finalize: Finalize, n_resamples: int, rng: np.random.Generator
    ) -> Array:
        """Return estimates with shuffled labels, shape (n_resamples, G).

        They are made block by block, which changes none of them: beside what is
        returned, a block takes less than 200 MB, or what one shuffle of the data does.
        """
        many = max(1, _ROWS // self._size())
        chunks = []
        for start in range(0, n_resamples, many):
            times = min(many, n_resamples - start)
            shuffled = table_of(self.kernel, self.lists.shuffled(times, rng))
            chunks.append(finalize(*self._totals(shuffled, times)))
        return np.concatenate(chunks)

    def _size(self) -> int:
        """Return how much of a block one shuffle takes."""
        groups, n_rows = self.lists.groups, self.lists.n_rows
        size = max(n_rows, 8 * len(groups))
        if not groups.overlapping:
            return size
        # Eight truth values are a number; a membership is sorted, and has some.
        members = int(np.count_nonzero(groups.values))
        return max(size, groups.values.size // 8, 4 * members)

    def _totals(self, sums: QuerySums, times: int) -> tuple[Array, Array]:
        """Sum by group, and shared, over the lists of each of the shuffles."""
        n_lists, cells = self.lists.n_queries, sums.cells
        shuffle, of_list = divmod(cells.query, n_lists)
        key = shuffle * np.int64(cells.n_groups) + cells.group
        weight = None if self.weight is None else self.weight[of_list]
        size = times * cells.n_groups
        columns = [
            np.bincount(key, column if weight is None else column * weight, size)
            for column in sums.by_cell.T
        ]
        totals = np.stack(columns, axis=1).astype(float)
        by_group = totals.reshape(times, cells.n_groups, -1)
        shared = sums.shared.reshape(times, n_lists, -1)
        if self.weight is None:
            return by_group, shared.sum(axis=1)
        return by_group, np.tensordot(shared, self.weight, axes=(1, 0))

    def __add__(self, other: Permutation) -> Permutation:
        """Return the lists of both, of one metric with the same options."""
        weight = None
        if self.weight is not None or other.weight is not None:
            weight = np.concatenate(
                [
                    np.ones(part.lists.n_queries)
                    if part.weight is None
                    else part.weight
                    for part in (self, other)
                ]
            )
        return replace(self, lists=self.lists + other.lists, weight=weight)
