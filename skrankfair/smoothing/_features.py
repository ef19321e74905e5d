"""Functions of a score whose sums within a cluster tell its kernel sums everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .._inputs.validation import Array
from ._kernel_sums import EXACT_WORK, kernel_values
from ._kernels import Kernel

# How much of the kernel at the ends of its transform, and a period away, is left out.
_SHARE_OF_BAND = 0.83
# Time of a row and a feature, relative to the others.
_COST_OF_GRID, _COST_OF_WINDOW, _COST_OF_BASIS = 2.0, 4.0, 1.0


def _sum_dense(values: Array, factors: Array, segment: Array, size: int) -> Array:
    """Return sums of rows times each factor by segment, shape (k, size, rank)."""
    sums = np.zeros((len(factors), size, values.shape[1]))
    if size == len(values):  # each row is a segment
        np.multiply(values, factors[:, :, None], out=sums)
        return sums
    pointers = np.arange(len(values) + 1)
    for part, factor in zip(sums, factors, strict=True):
        by_segment = sparse.csc_matrix(
            (factor, segment, pointers), shape=(size, len(values))
        )
        part += by_segment @ values
    return sums


@dataclass(frozen=True)
class GridFeatures:
    """The kernel at the points of a grid themselves: exact.

    Attributes
    ----------
    grid : ndarray of shape (J,)
    bandwidth : float
    kernel : Kernel
    """

    grid: Array
    bandwidth: float
    kernel: Kernel

    @property
    def rank(self) -> int:
        """The number of features."""
        return self.grid.size

    def segment_sums(
        self, x: Array, factors: Array, segment: Array, size: int
    ) -> Array:
        """Return sums of features times factors by segment, shape (k, size, rank)."""
        values = kernel_values(x[:, None], self.grid, self.bandwidth, self.kernel)
        return _sum_dense(values, factors, segment, size)

    def at_grid(self, sums: Array) -> Array:
        """Return kernel sums on the grid from sums of features, the last axis."""
        return sums


@dataclass(frozen=True)
class WindowFeatures(GridFeatures):
    """The kernel at the points within its reach only: for a small bandwidth."""

    def segment_sums(
        self, x: Array, factors: Array, segment: Array, size: int
    ) -> Array:
        """Return sums of features times factors by segment, shape (k, size, rank)."""
        order = np.argsort(self.grid, kind="stable")
        points, reach = self.grid[order], self.kernel.reach * self.bandwidth
        first = np.searchsorted(points, x - reach, side="left")
        lengths = np.searchsorted(points, x + reach, side="right") - first
        rows = np.repeat(np.arange(x.size), lengths)
        place = np.arange(rows.size) - np.repeat(
            np.cumsum(lengths) - lengths - first, lengths
        )
        values = kernel_values(x[rows], points[place], self.bandwidth, self.kernel)
        key = segment[rows] * points.size + order[place]
        sums = [
            np.bincount(key, factor[rows] * values, minlength=size * points.size)
            for factor in factors
        ]
        return np.stack(sums).reshape(len(factors), size, points.size)


@dataclass(frozen=True)
class FourierFeatures:
    """Cosines and sines that span a kernel without high frequencies.

    ``K(u) = Σ_k c_k cos(ω_k u)`` up to the kernel a period away, and
    ``cos(ω (x - s)) = cos(ωx) cos(ωs) + sin(ωx) sin(ωs)`` separates rows from points:
    few features do for any number of points.

    Attributes
    ----------
    grid : ndarray of shape (J,)
    low : float
        The origin.
    frequency : float
        The lowest frequency.
    amplitude : ndarray of shape (m,)
        Of the frequencies 0, 1, ... times the lowest.
    """

    grid: Array
    low: float
    frequency: float
    amplitude: Array

    @classmethod
    def of_kernel(
        cls, grid: Array, x: Array, bandwidth: float, kernel: Kernel
    ) -> FourierFeatures:
        """Choose the frequencies for the range of the rows and the points."""
        if kernel.transform is None:
            raise ValueError(f"{kernel.name} has no limited band.")
        low = float(min(x.min(), grid.min()))
        width = (float(max(x.max(), grid.max())) - low) / bandwidth
        part = 1.0 if math.isinf(kernel.order) else _SHARE_OF_BAND
        period = width + part * kernel.reach
        step = 2 * np.pi / period
        frequency = np.arange(0.0, part * kernel.band + step, step)
        amplitude = kernel.transform(frequency) * (2 / period)
        amplitude[0] /= 2
        return cls(grid, low, step / bandwidth, amplitude)

    @property
    def rank(self) -> int:
        """The number of features."""
        return 2 * self.amplitude.size

    def __call__(self, x: Array) -> Array:
        """Return the features, shape (n, rank): cosine and sine by frequency."""
        n, size = x.size, self.amplitude.size
        waves = np.empty((size, n), dtype=complex)
        waves[0] = 1.0
        if size > 1:
            waves[1] = np.exp(1j * self.frequency * (x - self.low))
        done = 2
        while done < size:
            more = min(done - 1, size - done)
            np.multiply(
                waves[1 : 1 + more], waves[done - 1], out=waves[done : done + more]
            )
            done += more
        return np.ascontiguousarray(waves.T).view(float)

    def segment_sums(
        self, x: Array, factors: Array, segment: Array, size: int
    ) -> Array:
        """Return sums of features times factors by segment, shape (k, size, rank)."""
        return _sum_dense(self(x), factors, segment, size)

    def at_grid(self, sums: Array) -> Array:
        """Return kernel sums on the grid from sums of features, the last axis."""
        return sums @ (self(self.grid) * np.repeat(self.amplitude, 2)).T


Features = GridFeatures | FourierFeatures


def choose_features(
    grid: Array, x: Array, bandwidth: float, kernel: Kernel, method: str = "auto"
) -> Features:
    """Return the cheapest features: all points, those within reach, or a basis.

    Parameters
    ----------
    grid : ndarray of shape (J,)
    x : ndarray of shape (n,)
    bandwidth : float
    kernel : Kernel
    method : {"auto", "exact", "fast"}
        "exact" takes all points.

    Returns
    -------
    GridFeatures or FourierFeatures
    """
    exact = GridFeatures(grid, bandwidth, kernel)
    if method == "exact" or (method == "auto" and x.size * grid.size <= EXACT_WORK):
        return exact
    with np.errstate(over="ignore"):
        width = (max(x.max(), grid.max()) - min(x.min(), grid.min())) / bandwidth
        within = np.abs(x[:: max(1, x.size // 256), None] - grid) <= (
            kernel.reach * bandwidth
        )
    best: Features = exact
    cost = _COST_OF_GRID * grid.size
    if _COST_OF_WINDOW * within.mean() < _COST_OF_GRID:
        best = WindowFeatures(grid, bandwidth, kernel)
        cost = _COST_OF_WINDOW * within.mean() * grid.size
    if kernel.transform is not None and width < cost:
        basis = FourierFeatures.of_kernel(grid, x, bandwidth, kernel)
        if _COST_OF_BASIS * basis.rank < cost:
            return basis
    return best
