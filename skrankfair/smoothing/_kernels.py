"""Kernels, and their sums ``Σ_i v_i K((x_i - p) / h)``: exact, or on a lattice.

A kernel is the weight of a row at a distance from the point, in bandwidths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import fft, interpolate, sparse

from .._estimates.finalize import quotient
from .._inputs.groups import starts_of_runs
from .._inputs.score_rows import Sample
from .._inputs.validation import Array, check_choice

_SQRT_2PI = float(np.sqrt(2 * np.pi))
# McMurry and Politis (2004): flat up to _FLAT, then down to 0 at 1, all derivatives
# continuous.
_FLAT, _SLOPE = 0.05, 0.25
_FLAT_TOP_REACH = 370.0
_FLAT_TOP_STEP = 0.05


#: What a distance must be below 1, so that rounding does not decide what is at 1.
INSIDE = 1e-12
_CHUNK = 1 << 19
# Below this many kernel values the exact sums are as fast as the others.
_EXACT_WORK = 1 << 22
# So few rows have a matrix of all kernel values, for many sets of weights.
_FEW_ROWS = 512
LARGEST_LATTICE = 1 << 22
# Numbers in the kernel from all nodes to all points; rows that are looked at together.
_MOST_NUMBERS, _BLOCK_ROWS = 1 << 24, 1 << 14
# Relative to the largest mass, what the rounding of a convolution may leave.
_NOTHING = 1e-9
# Relative to the largest mass: where there is less, the error of the lattice shows.
_THIN = 1e-4
#: The weights of the four nearest nodes in cubic interpolation: a row each, by the
#: powers of the distance past the second one in cells.
_CUBIC = np.array([[0, -2, 3, -1], [6, -3, -6, 3], [0, 6, 3, -3], [0, -1, 0, 1]]) / 6
# What squares of large distances lose in sums up to a row.
_ROUNDING = 1e-10
# Half the square of a distance at which a gaussian weight is lost beside that of 0.
_NEGLIGIBLE = 80.0
# Points whose exact sums are taken together.
_TOGETHER = 64


@dataclass(frozen=True)
class Kernel:
    """A symmetric function that integrates to one.

    Attributes
    ----------
    name : str
    function : callable
        The kernel of distances in units of the bandwidth, elementwise.
    order : float
        Its first moment that is not 0; infinite for `flat_top`.
    reach : float
        Distance beyond which it is below about 1e-13 of its maximum; 1 if it is 0.
    relative_width : float
        Bandwidth that smooths as much as the gaussian kernel's bandwidth 1.
    cells : int
        Cells of the lattice a bandwidth that the fast path needs for an error of 1e-7;
        0 for a parabola within the reach.
    parabola : tuple of float
        Constant and factor of the squared distance, if it is one.
    """

    name: str
    function: Callable[[Array], Array]
    order: float
    reach: float
    relative_width: float
    cells: int
    parabola: tuple[float, float] = (0.0, 0.0)

    def __call__(self, distance: Array) -> Array:
        """Return the weights of the distances."""
        return self.function(distance)


def _gaussian(u: Array) -> Array:
    weights = np.square(u)
    weights *= -0.5
    np.exp(weights, out=weights)
    weights /= _SQRT_2PI
    return weights


def _gaussian4(u: Array) -> Array:
    square = np.minimum(np.square(u), 1e4)
    weights = np.exp(-0.5 * square)
    weights *= (3 - square) / (2 * _SQRT_2PI)
    return weights


def _epanechnikov(u: Array) -> Array:
    return 0.75 * np.maximum(1 - np.square(u), 0)


def _tricube(u: Array) -> Array:
    return 70 / 81 * np.maximum(1 - np.abs(u) ** 3, 0) ** 3


def _uniform(u: Array) -> Array:
    return np.where(np.abs(u) < 1 - INSIDE, 0.5, 0.0)


@cache
def _flat_top_table() -> Any:
    """Return the kernel as a spline, from its transform, up to the reach.

    The trapezoidal rule is exact up to the kernel a period away, which is below 1e-14.
    """
    step = 2 * np.pi / (4 * _FLAT_TOP_REACH)
    frequency = np.arange(step, 1, step)
    amplitude = np.full(frequency.size, step / np.pi)
    falling = frequency > _FLAT
    s = frequency[falling]
    steep = _SLOPE * np.exp(-_SLOPE / (s - _FLAT) ** 2)
    amplitude[falling] *= np.exp(-steep / (s - 1) ** 2)
    # From below 0, so that the spline has no end there.
    u = np.arange(-16, _FLAT_TOP_REACH / _FLAT_TOP_STEP + 10) * _FLAT_TOP_STEP
    values = step / (2 * np.pi) + amplitude @ np.cos(np.outer(frequency, u))
    return interpolate.make_interp_spline(u, values, k=7)


def _flat_top(u: Array) -> Array:
    distance = np.abs(u)
    inside = distance <= _FLAT_TOP_REACH
    return np.where(inside, _flat_top_table()(np.where(inside, distance, 0.0)), 0.0)


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("gaussian", _gaussian, 2, 8.2, 1.0, 128),
        Kernel("epanechnikov", _epanechnikov, 2, 1.0, 2.2138, 0, (0.75, -0.75)),
        Kernel("tricube", _tricube, 2, 1.0, 2.6098, 500),
        Kernel("uniform", _uniform, 2, 1.0, 1.7401, 0, (0.5, 0.0)),
        Kernel("gaussian4", _gaussian4, 4, 8.8, 1.0, 128),
        Kernel("flat_top", _flat_top, np.inf, _FLAT_TOP_REACH, 0.51, 64),
    )
}


def get_kernel(name: Any) -> Kernel:
    """Return the kernel of this name.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    check_choice(name, "kernel", tuple(KERNELS))
    return KERNELS[name]


def kernel_sums(
    points: Array,
    x: Array,
    columns: Array,
    bandwidth: float,
    kernel: Kernel,
    method: str = "auto",
) -> Array:
    """Return the kernel sums of every column at every point.

    Parameters
    ----------
    points : ndarray of shape (P,)
    x : ndarray of shape (n,)
    columns : ndarray of shape (k, n)
        What is summed. The last is a non-negative mass.
    bandwidth : float
    kernel : Kernel
    method : {"auto", "exact", "fast"}
        "exact" evaluates the kernel for every point and row. "fast" spreads the rows
        over a lattice that is fine enough for a relative error of about 1e-7, and
        convolves; sums of a parabola are differences of sums up to each row. "auto" is
        "fast" where that pays.

    Returns
    -------
    ndarray of shape (k, P)
    """
    width = _width(points, x, bandwidth) if _pays(points, x, method) else np.inf
    if not width * max(kernel.cells, 1) < LARGEST_LATTICE:
        return exact_sums(points, x, columns, bandwidth, kernel)
    thin_mass = max(_THIN, _ROUNDING * width * width)
    if kernel.cells:
        sums = _lattice_sums(points, x, columns, Lattice(points, x, bandwidth, kernel))
    else:
        sums = _prefix_sums(points, x, columns, bandwidth, kernel)
    if math.isinf(kernel.order):
        return sums  # its tails are too long to be cut off
    thin = np.flatnonzero(sums[-1] < thin_mass * sums[-1].max())
    if thin.size:
        sums[:, thin] = exact_sums(points[thin], x, columns, bandwidth, kernel)
    return sums


def _pays(points: Array, x: Array, method: str) -> bool:
    """Return whether the fast sums are wanted, or faster than the exact ones."""
    return method == "fast" or (method == "auto" and points.size * x.size > _EXACT_WORK)


def _width(points: Array, x: Array, bandwidth: float) -> float:
    """Return the range of rows and points in bandwidths."""
    with np.errstate(over="ignore"):
        high, low = max(x.max(), points.max()), min(x.min(), points.min())
        return float((high - low) / bandwidth)


def kernel_values(x: Array, points: Array, bandwidth: float, kernel: Kernel) -> Array:
    """Return the kernel of the distances of rows to points, which may be infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return kernel((x - points) / bandwidth)


def product_weights(
    points: Array, X: Array, bandwidths: Array, kernel: Kernel
) -> Iterator[tuple[slice, Array]]:
    """Yield parts of the points, and the weight of each row at each of them.

    Gaussian weights are relative to the largest, so that none is lost far away.
    """
    step = max(1, 2 * _CHUNK // len(X))
    for start in range(0, len(points), step):
        some = slice(start, start + step)
        with np.errstate(over="ignore", under="ignore"):
            columns = zip(points[some].T, X.T, bandwidths, strict=True)
            distances = [(x - p[:, None]) / h for p, x, h in columns]
            if kernel.name == "gaussian":
                exponent = np.sum([-0.5 * u**2 for u in distances], axis=0)
                exponent -= np.maximum(exponent.max(1, keepdims=True), -1e300)
                weights = np.exp(exponent)
            else:
                weights = np.prod([kernel(u) for u in distances], axis=0)
        yield some, weights


def exact_sums(
    points: Array, x: Array, columns: Array, bandwidth: float, kernel: Kernel
) -> Array:
    """Return the kernel sums over the rows whose weight is not lost beside the largest.

    Points next to each other are looked at together, and only the rows near them. Equal
    points are one, so that their sums are equal to the last bit.
    """
    order, (points, place) = np.argsort(x), np.unique(points, return_inverse=True)
    x, columns = x[order], columns[:, order]
    radius = np.full(points.size, kernel.reach * bandwidth)
    with np.errstate(over="ignore"):
        if kernel.reach > 1:  # it is nowhere 0
            right = np.minimum(np.searchsorted(x, points), x.size - 1)
            left = np.maximum(right - 1, 0)
            nearest = np.minimum(np.abs(x[right] - points), np.abs(x[left] - points))
            lost = bandwidth * math.sqrt(2 * _NEGLIGIBLE)
            radius = np.maximum(radius, np.hypot(nearest, lost))
        radius += 4 * np.spacing(np.abs(points) + radius)
        first = np.searchsorted(x, points - radius, side="left")
        last = np.searchsorted(x, points + radius, side="right")
    sums = np.zeros((columns.shape[0], points.size))
    start, sizes = 0, 2 ** np.arange(_TOGETHER.bit_length())[::-1]
    while start < points.size:
        for stop in start + sizes:  # the most points that the rows allow
            rows = slice(first[start:stop].min(), last[start:stop].max())
            if (rows.stop - rows.start) * (stop - start) <= _CHUNK:
                break
        weights = kernel_values(x[rows], points[start:stop, None], bandwidth, kernel)
        sums[:, start:stop] = columns[:, rows] @ weights.T
        start = stop
    return sums[:, place]


def _prefix_sums(
    points: Array, x: Array, columns: Array, bandwidth: float, kernel: Kernel
) -> Array:
    """Return the sums of a kernel that is a parabola, from sums up to each row."""
    order = np.argsort(x)
    x = x[order]
    radius = bandwidth * (1 - INSIDE)
    first = np.searchsorted(x, points - radius, side="left")
    last = np.searchsorted(x, points + radius, side="right")
    centre = 0.5 * (x[0] + x[-1])
    scaled, p = (x - centre) / bandwidth, (points - centre) / bandwidth
    constant, slope = kernel.parabola
    sums = np.zeros((columns.shape[0], points.size))
    before = np.zeros((columns.shape[0], x.size + 1))
    # a + b (x - p)², term by term.
    terms = [constant + slope * p**2, -2 * slope * p, slope * np.ones_like(p)]
    for power, factor in enumerate(terms if slope else terms[:1]):
        np.cumsum(columns[:, order] * scaled**power, axis=1, out=before[:, 1:])
        sums += factor * (before[:, last] - before[:, first])
    # Differences of sums that are equal but for rounding.
    sums[:, first == last] = 0.0
    return sums


class Lattice:
    """Equally spaced nodes on which a kernel sum is a convolution.

    Rows go to the four nearest nodes with the weights of cubic interpolation, and the
    sums at the points are read from the four nearest nodes: the error is of fourth
    order in the cell, where linear binning has the second.

    Parameters
    ----------
    points, x : ndarray
        The points and rows that it has to reach.
    bandwidth : float
    kernel : Kernel
    """

    def __init__(
        self, points: Array, x: Array, bandwidth: float, kernel: Kernel
    ) -> None:
        self.cell = bandwidth / kernel.cells
        self.low = float(min(x.min(), points.min()))
        self.n_nodes = math.ceil(_width(points, x, bandwidth) * kernel.cells) + 6
        reach = min(self.n_nodes, math.ceil(kernel.reach * kernel.cells) + 1)
        self.size = fft.next_fast_len(self.n_nodes + reach, real=True)
        lags = kernel(np.arange(reach) / kernel.cells)
        wrapped = np.zeros(self.size)
        wrapped[:reach] = lags
        wrapped[self.size - reach + 1 :] = lags[:0:-1]
        self.spectrum = fft.rfft(wrapped)

    @classmethod
    def of_rows(
        cls, points: Array, x: Array, bandwidth: float, kernel: Kernel, method: str
    ) -> Lattice | None:
        """Return the lattice to spread rows of clusters over; None for exact sums."""
        n_nodes = _width(points, x, bandwidth) * kernel.cells + 6
        small = kernel.cells and n_nodes * points.size <= _MOST_NUMBERS
        if small and _pays(points, x, method):
            return cls(points, x, bandwidth, kernel)
        return None

    def spread(self, x: Array) -> tuple[Array, Array]:
        """Return the four nearest nodes of each row, and their weights, (4, n) each."""
        past = (x - self.low) / self.cell + 2
        node = past.astype(np.int64)
        past -= node
        powers = np.stack([np.ones_like(past), past, past**2, past**3])
        return node + np.arange(-1, 3)[:, None], _CUBIC @ powers


def _lattice_sums(points: Array, x: Array, columns: Array, lattice: Lattice) -> Array:
    """Return the kernel sums by spreading rows over a lattice and convolving."""
    spread = np.zeros((columns.shape[0], lattice.size))
    # Small enough parts stay in the cache; large enough ones are worth their counts.
    step = max(_CHUNK >> 5, 4 * lattice.size)
    for start in range(0, x.size, step):
        rows = slice(start, start + step)
        for node, near in zip(*lattice.spread(x[rows]), strict=True):
            for total, column in zip(spread, columns[:, rows], strict=True):
                total += np.bincount(node, near * column, minlength=lattice.size)
    smooth = fft.irfft(fft.rfft(spread) * lattice.spectrum, lattice.size)
    sums = np.zeros((columns.shape[0], points.size))
    for start in range(0, points.size, _CHUNK >> 5):
        some = slice(start, start + (_CHUNK >> 5))
        for node, near in zip(*lattice.spread(points[some]), strict=True):
            for total, column in zip(sums[:, some], smooth, strict=True):
                total += near * column.take(node)
    return sums


def repeated_means(
    x: Array, y: Array, weights: Array, bandwidth: float, kernel: Kernel
) -> Array:
    """Return the curve at its own scores for many sets of weights, shape (B, n).

    Parameters
    ----------
    x, y : ndarray of shape (n,)
    weights : ndarray of shape (B, n)
    bandwidth : float
    kernel : Kernel

    Returns
    -------
    ndarray of shape (B, n)
        NaN where the weights leave nothing near.
    """
    if x.size <= _FEW_ROWS:
        columns = np.concatenate([weights * y, weights])
        total, mass = np.split(exact_sums(x, x, columns, bandwidth, kernel), 2)
    else:
        total, mass = np.empty((2, *weights.shape))
        for i, weight in enumerate(weights):
            columns = np.stack([weight * y, weight])
            total[i], mass[i] = kernel_sums(x, x, columns, bandwidth, kernel, "fast")
    return quotient(total, mass, mass > _NOTHING * mass.max(axis=1, keepdims=True))


def segment_sums(
    sample: Sample,
    factors: Sequence[Array],
    features: Callable[[Array], Sequence[Array]],
    n_columns: int,
    lattice: Lattice | None = None,
) -> Iterator[tuple[slice, list[Array]]]:
    """Yield sums over the rows of a cluster in a group, some clusters at a time.

    Parameters
    ----------
    sample : Sample
    factors : sequence of ndarray of shape (n,)
        What the features of each row are multiplied by.
    features : callable
        Return a table for each factor, with functions of the scores in columns.
    n_columns : int
        The number of columns of all tables.
    lattice : Lattice or None, default=None
        If given, rows are spread over its nodes, of which the features are taken.

    Yields
    ------
    segments : slice
        Where the clusters are in `segment_starts`.
    sums : list of ndarray
        A row for each segment, of each factor times its features.
    """
    x, starts, n_rows = sample.x, sample.segment_starts, sample.x.size
    if lattice is not None:
        nodes = np.arange(-2, lattice.n_nodes - 2)
        tables = features(lattice.low + lattice.cell * nodes)
    step = max(256, min(_BLOCK_ROWS, 2 * _CHUNK // n_columns))
    ends = np.append(starts_of_runs(sample.cluster), n_rows)
    cuts = ends[np.searchsorted(ends, np.append(np.arange(0, n_rows, step), n_rows))]
    for first, last in pairwise(np.unique(cuts).tolist()):
        segments = slice(*np.searchsorted(starts, [first, last]).tolist())
        edges = np.append(starts[segments], last)
        sums: list[Array] = []
        for start in range(first, last, step):
            part = slice(start, min(start + step, last))
            if lattice is None:
                at, near = np.arange(part.stop - start)[None], np.ones((1, 1))
                tables = features(x[part])
            else:
                at, near = lattice.spread(x[part])
            pointers = len(at) * np.clip(edges - start, 0, at.shape[1])
            shape = edges.size - 1, len(tables[0])
            more = []
            for factor, table in zip(factors, tables, strict=True):
                values = (near * factor[part]).T.ravel()
                spread = sparse.csr_matrix((values, at.T.ravel(), pointers), shape)
                more.append(spread @ table)
            sums = [a + b for a, b in zip(sums, more, strict=True)] if sums else more
        yield segments, sums
