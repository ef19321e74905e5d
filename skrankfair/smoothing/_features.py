"""Functions of a score whose sums within a cluster tell its kernel sums everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._estimates.allocation import check_memory
from .._inputs.score_rows import Sample
from .._inputs.validation import Array
from ._kernel_sums import EXACT_WORK, kernel_values
from ._kernels import Kernel

_BLOCK_ROWS = 1 << 14
_BLOCK_VALUES = 1 << 20


class Block(NamedTuple):
    """Sums of the features over the rows of some clusters in a group.

    Attributes
    ----------
    cluster, group : ndarray of shape (m,), int64
    outcome : ndarray of shape (m, r)
        ``A``: of the features times the outcome.
    mass : ndarray of shape (m, r)
        ``B``: of the features.
    """

    cluster: Array
    group: Array
    outcome: Array
    mass: Array


def cluster_blocks(
    sample: Sample, features: Features | MomentFeatures
) -> Iterator[Block]:
    """Yield sums of the features by cluster and group, whole clusters at a time."""
    starts = sample.segment_starts
    n_segments, n_rows = starts.size, sample.x.size
    ends = np.append(starts[1:], n_rows)
    # A block ends where a cluster does.
    last_of_cluster = np.append(
        np.flatnonzero(np.diff(sample.cluster[starts])), n_segments - 1
    )
    rows = max(256, min(_BLOCK_ROWS, _BLOCK_VALUES // features.rank))
    first = 0
    while first < n_segments:
        reached = np.searchsorted(ends, starts[first] + rows, side="right") - 1
        place = np.searchsorted(last_of_cluster, max(reached, first), side="right") - 1
        stop = last_of_cluster[place] + 1 if place >= 0 else 0
        if stop <= first:
            stop = last_of_cluster[np.searchsorted(last_of_cluster, first)] + 1
        yield _block(sample, features, starts, ends, slice(first, stop), rows)
        first = stop


def _block(
    sample: Sample,
    features: Features | MomentFeatures,
    starts: Array,
    ends: Array,
    segments: slice,
    step: int,
) -> Block:
    low, high = starts[segments][0], ends[segments][-1]
    size = segments.stop - segments.start
    sums = np.zeros((2, size, features.rank))
    for row in range(low, high, step):
        part = slice(row, min(row + step, high))
        share = sample.share[part]
        factors = np.stack([share * sample.y[part], share])
        segment = np.searchsorted(starts, np.arange(part.start, part.stop), "right")
        segment -= 1 + segments.start
        if part.stop == high and row == low:
            sums = features.segment_sums(sample.x[part], factors, segment, size)
        else:
            sums += features.segment_sums(sample.x[part], factors, segment, size)
    outcome, mass = sums
    return Block(
        sample.cluster[starts[segments]], sample.group[starts[segments]], outcome, mass
    )


def group_scatter(
    sample: Sample, features: Features, n_groups: int
) -> tuple[Array, Array, Array]:
    """Return totals and cross products of the kernel sums of all clusters.

    Parameters
    ----------
    sample : Sample
    features : Features
    n_groups : int

    Returns
    -------
    totals : ndarray of shape (G, 2, J)
        ``Σ_m A_m`` and ``Σ_m B_m`` on the grid.
    scatter : ndarray of shape (G, 2, J, G, 2, J)
        ``Σ_m`` of the products of all of these.
    active : ndarray of shape (G,)
        Number of clusters with rows of the group.
    """
    width = 2 * features.rank
    check_memory(
        24.0 * (n_groups * width) ** 2,
        f"The covariance of {n_groups} curves with each other",
        "compare fewer groups at once, or each of many with its rest.",
    )
    totals = np.zeros((n_groups, width))
    scatter = np.zeros((n_groups, n_groups, width, width))
    active = np.zeros(n_groups)
    for g, h, weighted, columns, count in paired_columns(sample, features, n_groups):
        cross = weighted.T @ columns
        scatter[g, h] += cross
        if g != h:
            scatter[h, g] += cross.T
            continue
        totals[g] += weighted.sum(0)
        active[g] += count
    shape = (n_groups, 2, features.rank)
    scatter = scatter.transpose(0, 2, 1, 3).reshape(*shape, *shape)
    scatter = features.at_grid(np.moveaxis(features.at_grid(scatter), 2, -1))
    return (
        features.at_grid(totals.reshape(shape)),
        np.moveaxis(scatter, -1, 2),
        active,
    )


def paired_columns(
    sample: Sample, features: Features | MomentFeatures, n_groups: int
) -> Iterator[tuple[int, int, Array, Array, float]]:
    """Yield the sums of the clusters that have rows of two groups, block by block.

    Parameters
    ----------
    sample : Sample
    features : Features or MomentFeatures
    n_groups : int

    Yields
    ------
    g, h : int
        The groups, ``g <= h``.
    weighted, columns : ndarray of shape (m, 2 * rank)
        Outcome and mass of the same clusters in g, times how often each counts, and
        in h.
    count : float
        The number of these clusters.
    """
    for block in cluster_blocks(sample, features):
        columns = np.hstack([block.outcome, block.mass])
        counts = np.ones(len(columns))
        if sample.frequency is not None:
            counts = sample.frequency[block.cluster]
        chosen = [np.flatnonzero(block.group == g) for g in range(n_groups)]
        for g, own in enumerate(chosen):
            if not own.size:
                continue
            weighted = columns[own]
            if sample.frequency is not None:
                weighted = weighted * counts[own, None]
            yield g, g, weighted, columns[own], counts[own].sum()
            for h in range(g + 1, n_groups):
                _, i, j = np.intersect1d(
                    block.cluster[own],
                    block.cluster[chosen[h]],
                    assume_unique=True,
                    return_indices=True,
                )
                if i.size:
                    both = columns[chosen[h][j]]
                    yield g, h, weighted[i], both, counts[own[i]].sum()


def influence_blocks(
    sample: Sample, features: Features, estimate: Array, mass: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield clusters and their influences ``ψ_m = (A_m - f B_m) / Σ B`` on the grid.

    For a sample of one group.

    Parameters
    ----------
    sample : Sample
    features : Features
    estimate, mass : ndarray of shape (J,)
        The curve and ``Σ_m B_m``.

    Yields
    ------
    cluster : ndarray of shape (m,), int64
    influence : ndarray of shape (m, J)
    """
    for block in cluster_blocks(sample, features):
        influence = features.at_grid(block.outcome)
        influence = influence - estimate * features.at_grid(block.mass)
        with np.errstate(divide="ignore", invalid="ignore"):
            yield block.cluster, influence / mass


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
class MomentFeatures(GridFeatures):
    """The kernel times powers of the distance in bandwidths, 0 to `degree`: exact.

    Attributes
    ----------
    degree : int
    """

    degree: int = 4

    @property
    def rank(self) -> int:
        """The number of features: powers times points."""
        return (self.degree + 1) * self.grid.size

    def segment_sums(
        self, x: Array, factors: Array, segment: Array, size: int
    ) -> Array:
        """Return sums of features times factors by segment, shape (k, size, rank)."""
        with np.errstate(over="ignore"):
            distance = (x[:, None] - self.grid) / self.bandwidth
        values = np.empty((x.size, self.degree + 1, self.grid.size))
        values[:, 0] = self.kernel(distance)
        # Where the weight is 0, the distance may be infinite.
        distance[values[:, 0] == 0] = 0.0
        for power in range(self.degree):
            np.multiply(values[:, power], distance, out=values[:, power + 1])
        return _sum_dense(values.reshape(x.size, -1), factors, segment, size)


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
