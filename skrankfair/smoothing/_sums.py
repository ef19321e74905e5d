"""Kernel sums ``Σ_i v_i K((x_i - p) / h)`` at many points: exact, or on a lattice."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from .._inputs.score_rows import Sample
from .._inputs.validation import Array
from ._kernels import Kernel

_CHUNK = 1 << 19
# Below this many kernel values the exact sums are as fast as the others.
EXACT_WORK = 1 << 22
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
    if method == "exact" or (method == "auto" and points.size * x.size <= EXACT_WORK):
        return exact_sums(points, x, columns, bandwidth, kernel)
    low, high = float(min(x.min(), points.min())), float(max(x.max(), points.max()))
    with np.errstate(over="ignore", invalid="ignore"):
        width = (high - low) / bandwidth
        cells = width * kernel.cells
        thin_mass = max(_THIN, _ROUNDING * width * width)
    if not cells < LARGEST_LATTICE:
        return exact_sums(points, x, columns, bandwidth, kernel)
    if kernel.cells:
        sums = _lattice_sums(points, x, columns, Lattice(low, high, bandwidth, kernel))
    else:
        sums = _prefix_sums(points, x, columns, bandwidth, kernel)
    if math.isinf(kernel.order):
        return sums  # its tails are too long to be cut off
    thin = np.flatnonzero(sums[-1] < thin_mass * sums[-1].max())
    if thin.size:
        sums[:, thin] = exact_sums(points[thin], x, columns, bandwidth, kernel)
    return sums


def kernel_values(x: Array, points: Array, bandwidth: float, kernel: Kernel) -> Array:
    """Return the kernel of the distances of rows to points, which may be infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return kernel((x - points) / bandwidth)


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
        if not kernel.compact:
            right = np.minimum(np.searchsorted(x, points), x.size - 1)
            left = np.maximum(right - 1, 0)
            nearest = np.minimum(np.abs(x[right] - points), np.abs(x[left] - points))
            lost = bandwidth * math.sqrt(2 * _NEGLIGIBLE)
            radius = np.maximum(radius, np.hypot(nearest, lost))
        radius += 4 * np.spacing(np.abs(points) + radius)
        first = np.searchsorted(x, points - radius, side="left")
        last = np.searchsorted(x, points + radius, side="right")
    sums = np.zeros((columns.shape[0], points.size))
    start = 0
    while start < points.size:
        stop = min(start + _TOGETHER, points.size)
        rows = slice(first[start:stop].min(), last[start:stop].max())
        while stop > start + 1 and (rows.stop - rows.start) * (stop - start) > _CHUNK:
            stop = (start + stop + 1) // 2
            rows = slice(first[start:stop].min(), last[start:stop].max())
        some = points[start:stop, None]
        weights = kernel_values(x[rows], some, bandwidth, kernel)
        sums[:, start:stop] = columns[:, rows] @ weights.T
        start = stop
    return sums[:, place]


def _prefix_sums(
    points: Array, x: Array, columns: Array, bandwidth: float, kernel: Kernel
) -> Array:
    """Return the sums of a kernel that is a parabola, from sums up to each row."""
    order = np.argsort(x)
    x = x[order]
    # The same rounding as in the exact path: (x - p) / h against 1.
    first = _first_beyond(points, x, bandwidth, -1.0, inclusive=False)
    last = np.maximum(_first_beyond(points, x, bandwidth, 1.0, inclusive=True), first)
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


def _first_beyond(
    points: Array, x: Array, bandwidth: float, limit: float, *, inclusive: bool
) -> Array:
    """Return the first sorted row whose distance is above `limit`, or equal to it."""

    def beyond(rows: Array) -> Array:
        with np.errstate(over="ignore"):
            distance = (x[rows] - points) / bandwidth
        return distance >= limit if inclusive else distance > limit

    place = np.searchsorted(x, points + limit * bandwidth)
    for _ in range(x.size):
        back = (place > 0) & beyond(np.maximum(place - 1, 0))
        forth = (place < x.size) & ~beyond(np.minimum(place, x.size - 1))
        if not (back.any() or forth.any()):
            break
        place = place - back + (forth & ~back)
    return place


class Lattice:
    """Equally spaced nodes on which a kernel sum is a convolution.

    Rows go to the four nearest nodes with the weights of cubic interpolation, and the
    sums at the points are read from the four nearest nodes: the error is of fourth
    order in the cell, where linear binning has the second.

    Parameters
    ----------
    low, high : float
        Range of rows and points.
    bandwidth : float
    kernel : Kernel
    """

    def __init__(
        self, low: float, high: float, bandwidth: float, kernel: Kernel
    ) -> None:
        from scipy import fft

        self.cell = bandwidth / kernel.cells
        self.low = low - 2 * self.cell
        self.n_nodes = math.ceil((high - low) / bandwidth * kernel.cells) + 6
        reach = min(self.n_nodes, math.ceil(kernel.reach * kernel.cells) + 1)
        self.size = fft.next_fast_len(self.n_nodes + reach, real=True)
        lags = kernel(np.arange(reach) / kernel.cells)
        wrapped = np.zeros(self.size)
        wrapped[:reach] = lags
        wrapped[self.size - reach + 1 :] = lags[:0:-1]
        self._spectrum = fft.rfft(wrapped)

    def place(self, x: Array) -> tuple[Array, Array]:
        """Return the first of the four nearest nodes, and how far x is past the second.

        This is in cells, from 0 to 1.
        """
        past = (x - self.low) / self.cell
        node = past.astype(np.int64)
        past -= node
        node -= 1
        return node, past

    def spread(self, x: Array) -> tuple[Array, Array]:
        """Return the four nearest nodes of each row, and their weights, (n, 4) each."""
        node, past = self.place(x)
        powers = np.stack([np.ones_like(past), past, past**2, past**3], axis=1)
        return node[:, None] + np.arange(4), powers @ _CUBIC.T

    def convolved(self, spread: Array) -> Array:
        """Return the kernel sums on the nodes, of columns of shape (k, size)."""
        from scipy import fft

        transform = fft.rfft(spread, axis=1)
        transform *= self._spectrum
        return fft.irfft(transform, self.size, axis=1)


def _lattice_sums(points: Array, x: Array, columns: Array, lattice: Lattice) -> Array:
    """Return the kernel sums by spreading rows over a lattice and convolving."""
    n_cells = lattice.n_nodes - 3
    # What the powers of the distance to a node add up to says what all four nodes get.
    powers = np.zeros((columns.shape[0], 4, n_cells))
    # Small enough parts stay in the cache; large enough ones are worth their counts.
    step = max(_CHUNK >> 5, 4 * n_cells)
    for start in range(0, x.size, step):
        rows = slice(start, start + step)
        node, past = lattice.place(x[rows])
        for totals, column in zip(powers, columns[:, rows], strict=True):
            for power, total in enumerate(totals):
                column = column * past if power else column
                total += np.bincount(node, column, minlength=n_cells)
    spread = np.zeros((columns.shape[0], lattice.size))
    for shift, part in enumerate(np.swapaxes(_CUBIC @ powers, 0, 1)):
        spread[:, shift : shift + n_cells] += part
    smooth = lattice.convolved(spread)
    nodes = np.stack([smooth[:, i : i + n_cells] for i in range(4)], axis=1)
    # The cubic polynomial between two nodes, from the highest power.
    terms = (_CUBIC.T @ nodes)[:, ::-1]
    sums = np.empty((columns.shape[0], points.size))
    for start in range(0, points.size, _CHUNK >> 5):
        some = slice(start, start + (_CHUNK >> 5))
        node, past = lattice.place(points[some])
        for found, (highest, *others) in zip(sums[:, some], terms, strict=True):
            highest.take(node, out=found)
            for term in others:
                found *= past
                found += term.take(node)
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
    # Equal scores have equal values to the last bit, so that they stay tied.
    if x.size <= _FEW_ROWS:
        points, place = np.unique(x, return_inverse=True)
        matrix = kernel_values(x[:, None], points, bandwidth, kernel)
        total, mass = (weights * y) @ matrix, weights @ matrix
        total, mass = total[:, place], mass[:, place]
    else:
        total, mass = np.empty((2, *weights.shape))
        for i, weight in enumerate(weights):
            columns = np.stack([weight * y, weight])
            sums = kernel_sums(x, x, columns, bandwidth, kernel, "fast")
            total[i], mass[i] = sums
    known = mass > _NOTHING * mass.max(axis=1, keepdims=True)
    np.divide(total, mass, out=total, where=known)
    total[~known] = np.nan
    return total


def kernel_sums_of_clusters(
    sample: Sample, points: Array, bandwidth: float, kernel: Kernel, method: str
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the kernel sums of clusters of a sample of one group, some at a time.

    Parameters
    ----------
    sample : Sample
    points : ndarray of shape (P,)
    bandwidth : float
    kernel : Kernel
    method : {"auto", "exact", "fast"}
        As in `kernel_sums`; rows are spread over a lattice, whose nodes are at exact
        distances from the points.

    Yields
    ------
    clusters : ndarray of shape (m,)
    outcome, mass : ndarray of shape (m, P)
        ``Σ w y K`` and ``Σ w K`` over the rows of each.
    """
    x, starts, n_rows = sample.x, sample.segment_starts, sample.x.size
    low, high = float(min(x.min(), points.min())), float(max(x.max(), points.max()))
    with np.errstate(over="ignore"):
        n_nodes = np.float64(high - low) / bandwidth * kernel.cells + 6
    few = method == "auto" and n_rows * points.size <= EXACT_WORK
    many = not kernel.cells or bool(n_nodes * points.size > _MOST_NUMBERS)
    exact = method == "exact" or few or many
    if not exact:
        lattice = Lattice(low, high, bandwidth, kernel)
        nodes = lattice.low + lattice.cell * np.arange(lattice.n_nodes)
        table = kernel_values(nodes[:, None], points, bandwidth, kernel)
    step = max(256, min(_BLOCK_ROWS, _CHUNK // points.size))
    cuts = np.searchsorted(starts, np.arange(0, n_rows, step))
    cuts = np.append(np.unique(cuts[cuts < starts.size]), starts.size)
    ends = np.append(starts, n_rows)
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        outcome, mass = np.zeros((2, last - first, points.size))
        for start in range(ends[first], ends[last], step):
            part = slice(start, min(start + step, ends[last]))
            if exact:
                at, near = np.arange(part.stop - start)[:, None], np.ones((1, 1))
                table = kernel_values(x[part, None], points, bandwidth, kernel)
            else:
                at, near = lattice.spread(x[part])
            number = at.shape[1]
            pointers = number * np.clip(ends[first : last + 1] - start, 0, len(at))
            share = sample.share[part]
            for sums, factor in ((outcome, share * sample.y[part]), (mass, share)):
                values = (near * factor[:, None]).ravel()
                shape = last - first, len(table)
                spread = sparse.csr_matrix((values, at.ravel(), pointers), shape=shape)
                sums += spread @ table
        yield sample.cluster[starts[first:last]], outcome, mass
