"""Bins of equal mass over scores, in which tied rows have their mean outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._inputs.validation import Array

# Relative to the outcomes, a fall of a mean that is only rounding.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class SortedScores:
    """Rows in blocks of equal score, from the lowest, with their sums so far.

    Attributes
    ----------
    block : ndarray of shape (n,), int64
        Block of each row.
    mass : ndarray of shape (T + 1,)
        Weight of all rows before each block, and of all.
    gap, outcome : ndarray of shape (T + 1,)
        The same of score less outcome, and of the outcome, times the weight.
    whole : bool
        Whether all weights are integers: a row of weight 2 is two rows.
    scale : float
        Largest size of an outcome.
    """

    block: Array
    mass: Array
    gap: Array
    outcome: Array
    whole: bool
    scale: float

    @classmethod
    def of_rows(
        cls, x: Array, y: Array, weight: Array, block: Array | None = None
    ) -> SortedScores:
        """Sort rows; `block` is known if they were sorted before."""
        if block is None:
            _, block = np.unique(x, return_inverse=True)

        def before(values: Array) -> Array:
            return np.concatenate([[0.0], np.cumsum(np.bincount(block, values))])

        return cls(
            block,
            before(weight),
            before(weight * (x - y)),
            before(weight * y),
            bool((weight == np.rint(weight)).all()),
            float(np.abs(y).max(initial=0.0)),
        )

    def edges(self, n_bins: int) -> Array:
        """Return the mass before each bin, and of all, shape (n_bins + 1,).

        The row of rank r (from 0) of n is in bin ``floor(r · n_bins / n)``.
        """
        edges = np.arange(n_bins + 1) * self.mass[-1] / n_bins
        if self.whole:
            total = round(self.mass[-1])
            return -(-np.arange(n_bins + 1) * total // n_bins).astype(float)
        return edges

    def _within(self, edges: Array, sums: Array) -> Array:
        """Return the sums within bins; of a block that is cut, its share."""
        return np.diff(np.interp(edges, self.mass, sums))

    def rises(self, n_bins: int) -> bool:
        """Return whether the mean outcome of no bin is below that of the one before."""
        edges = self.edges(n_bins)
        mass = np.diff(edges)
        there = mass > 0
        means = self._within(edges, self.outcome)[there] / mass[there]
        return bool((np.diff(means) >= -_ROUNDING * self.scale).all())

    def sweep(self) -> int:
        """Return the last number of bins before the means fall somewhere.

        From 2 bins on, and never as many as rows, which would be no bins at all.
        """
        n_rows = round(self.mass[-1]) if self.whole else self.block.size
        block_means = np.diff(self.outcome) / np.diff(self.mass)
        if (np.diff(block_means) >= 0).all():
            return max(1, n_rows - 1)
        for n_bins in range(2, n_rows):
            if not self.rises(n_bins):
                return n_bins - 1
        return max(1, n_rows - 1)

    def gaps(self, n_bins: int) -> tuple[Array, Array, Array]:
        """Return the mass before each bin, and mean score less outcome in each.

        And, third, which bins have rows.
        """
        edges = self.edges(n_bins)
        mass = np.diff(edges)
        gaps = np.zeros(n_bins)
        np.divide(self._within(edges, self.gap), mass, out=gaps, where=mass > 0)
        return edges, gaps, mass > 0

    def error(self, n_bins: int) -> float:
        """Return the sum of the squared gaps, each times the mass of its bin."""
        edges, gaps, _ = self.gaps(n_bins)
        return float(np.diff(edges) @ gaps**2)

    def row_means(self, n_bins: int, power: int) -> Array:
        """Return a power of the gap of each row's bins, shape (n,).

        Tied rows are in all the bins of their block, in parts.
        """
        edges, gaps, _ = self.gaps(n_bins)
        before = np.concatenate([[0.0], np.cumsum(np.diff(edges) * gaps**power)])
        sums = np.diff(np.interp(self.mass, edges, before))
        mass = np.diff(self.mass)
        means = np.zeros(mass.size)
        np.divide(sums, mass, out=means, where=mass > 0)
        return means[self.block]
