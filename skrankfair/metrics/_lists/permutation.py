"""The permutation test of statistical parity: labels shuffled within every list."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._estimates.table import Finalize
from ..._inputs.validation import Array
from .lists import Kernel, Lists, table_of

_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Permutation:
    """Lists and the metric of them: what a result keeps to shuffle its labels.

    Of the data it holds one label per row and where lists and tied blocks begin.
    """

    lists: Lists
    weight: Array | None  # shape (n_lists,) or None: how often each list counts
    kernel: Kernel
    #: {"greater", "two-sided"}. Which values speak against parity: large ones of a
    #: distance, or both ends.
    alternative: str

    def resampled(
        self, finalize: Finalize, n_resamples: int, rng: np.random.Generator
    ) -> Array:
        """Return estimates with shuffled labels, shape (n_resamples, G)."""
        many = max(1, _ROWS // self.lists.n_rows)
        chunks = []
        for start in range(0, n_resamples, many):
            times = min(many, n_resamples - start)
            totals = [
                self._totals(part, times)
                for part in table_of(self.kernel, self.lists.shuffled(times, rng))
            ]
            chunks.append(finalize(totals[0], totals[1]))
        return np.concatenate(chunks)

    def _totals(self, rows: Array, times: int) -> Array:
        """Sum the rows over the lists of each of the shuffles."""
        rows = rows.reshape(times, self.lists.n_queries, *rows.shape[1:])
        if self.weight is None:
            return rows.sum(axis=1)
        return np.tensordot(rows, self.weight, axes=(1, 0))

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
