"""Kernel sums ``Σ_i v_i K((x_i - p) / h)`` at many points, exact or fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import sparse

from .._inputs.validation import Array
from ._kernels import Kernel

# Relative to the largest mass, what the rounding of a convolution may leave.
NOTHING = 1e-9
# Above so many kernel values a product with all of them is slower than the lattice.
_SMALL = 1 << 18


class RepeatedMeans:
    """The curve at its own scores for many sets of weights.

    Called with weights of the rows, shape (n,), or many sets of them, (B, n), it
    returns the curve at every row; NaN where the weights leave nothing near. What does
    not depend on the weights is computed in the first call and kept; `once` keeps
    nothing.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
    bandwidth : float
    kernel : Kernel
    """

    def __init__(self, x: Array, y: Array, bandwidth: float, kernel: Kernel) -> None:
        self._x, self._y = x, y
        self._bandwidth, self._kernel = bandwidth, kernel

    def __call__(self, weight: Array) -> Array:
        """Return the curve at every row."""
        if weight.ndim == 1 or self._few:
            return self._means(weight, self._sums)
        return np.stack([self._means(one, self._sums) for one in weight])

    def once(self, weight: Array) -> Array:
        """Return the same for weights after which no others come."""
        x, lattice = self._x, self._lattice()
        if lattice is None:
            return self._means(weight, self._sums)
        return self._means(
            weight, lambda columns: _lattice_sums(x, x, columns, lattice)
        )

    def _means(self, weight: Array, sums: Callable[[Array], Array]) -> Array:
        total, mass = sums(np.stack([weight * self._y, weight]))
        there = mass > NOTHING * mass.max(axis=-1, keepdims=True)
        np.divide(total, mass, out=total, where=there)
        total[~there] = np.nan
        return total

    @property
    def _few(self) -> bool:
        """Whether a matrix of all kernel values is quick, for many weights at once."""
        return bool(self._x.size <= few_rows(self._kernel))

    def _lattice(self) -> Lattice | None:
        x, ends = self._x, (float(self._x.min()), float(self._x.max()))
        return lattice_of(*ends, x.size, self._bandwidth, self._kernel)

    @cached_property
    def _sums(self) -> Callable[[Array], Array]:
        x, bandwidth, kernel = self._x, self._bandwidth, self._kernel
        if self._few:
            matrix = kernel_values(x, x[:, None], bandwidth, kernel)
            return lambda columns: columns @ matrix
        lattice = self._lattice()
        if lattice is None:
            return lambda columns: kernel_sums(x, x, columns, bandwidth, kernel)
        spread = lattice.spread(x)

        def sums(columns: Array) -> Array:
            on_nodes = np.stack([spread.T @ column for column in columns])
            smooth = lattice.convolved(on_nodes)
            return np.stack([spread @ column for column in smooth])

        return sums


def few_rows(kernel: Kernel) -> int:
    """Return up to how many rows all kernel values of each with each are evaluated."""
    return math.isqrt(_SMALL if kernel.cells else EXACT_WORK)


def lattice_of(
    low: float, high: float, n_rows: int, bandwidth: float, kernel: Kernel
) -> Lattice | None:
    """Return the lattice of scores, if there are enough rows and they are near."""
    if not kernel.cells or n_rows <= few_rows(kernel):
        return None
    with np.errstate(over="ignore"):
        cells = (np.float64(high) - low) / bandwidth * kernel.cells
    return Lattice(low, high, bandwidth, kernel) if cells < LARGEST_LATTICE else None


_CHUNK = 1 << 19
# Below this many kernel values the exact sums are as fast as the others.
EXACT_WORK = 1 << 22
LARGEST_LATTICE = 1 << 22
# Relative to the largest mass: where there is less, the error of the lattice shows.
_THIN = 1e-4
#: The weights of the four nearest nodes in cubic interpolation: a row each, by the
#: powers of the distance past the second one in cells.
_CUBIC = np.array([[0, -2, 3, -1], [6, -3, -6, 3], [0, 6, 3, -3], [0, -1, 0, 1]]) / 6
# What squares of large distances lose in sums up to a row.
_ROUNDING = 1e-10
# Half the square of a distance at which a gaussian weight is lost beside that of 0.
_NEGLIGIBLE = 80.0


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
        convolves. "auto" is "fast" where that pays.

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
        return windowed_sums(points, x, columns, bandwidth, kernel)
    if kernel.cells:
        lattice = Lattice(low, high, bandwidth, kernel)
        sums = _lattice_sums(points, x, columns, lattice)
    else:
        sums = _prefix_sums(points, x, columns, bandwidth, kernel)
    if math.isinf(kernel.order):
        return sums  # its tails are too long to be cut off
    thin = np.flatnonzero(sums[-1] < thin_mass * sums[-1].max())
    if thin.size:
        sums[:, thin] = windowed_sums(points[thin], x, columns, bandwidth, kernel)
    return sums


def kernel_values(x: Array, points: Array, bandwidth: float, kernel: Kernel) -> Array:
    """Return the kernel of the distances of rows to points, which may be infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return kernel((x - points) / bandwidth)


def exact_sums(
    points: Array, x: Array, columns: Array, bandwidth: float, kernel: Kernel
) -> Array:
    """Return the kernel sums, one kernel value for every point and row."""
    sums = np.zeros((columns.shape[0], points.size))
    rows = min(x.size, _CHUNK)
    step = max(1, _CHUNK // rows)
    for start in range(0, x.size, rows):
        part = slice(start, start + rows)
        for first in range(0, points.size, step):
            some = slice(first, first + step)
            weights = kernel_values(x[part], points[some, None], bandwidth, kernel)
            sums[:, some] += columns[:, part] @ weights.T
    return sums


def windowed_sums(
    points: Array, x: Array, columns: Array, bandwidth: float, kernel: Kernel
) -> Array:
    """Return the kernel sums over the rows whose weight is not lost beside the largest.

    Exact, and fast where few rows are near each point.
    """
    order = np.argsort(x)
    x, columns = x[order], columns[:, order]
    sums = np.empty((columns.shape[0], points.size))
    radius = np.full(points.size, kernel.reach * bandwidth)
    with np.errstate(over="ignore"):
        if not kernel.compact:
            right = np.minimum(np.searchsorted(x, points), x.size - 1)
            left = np.maximum(right - 1, 0)
            nearest = np.minimum(np.abs(x[right] - points), np.abs(x[left] - points))
            lost = bandwidth * math.sqrt(2 * _NEGLIGIBLE)
            radius = np.maximum(radius, np.hypot(nearest, lost))
        first = np.searchsorted(x, points - radius, side="left")
        last = np.searchsorted(x, points + radius, side="right")
    for p in range(points.size):
        rows = slice(first[p], last[p])
        weights = kernel_values(x[rows], points[p], bandwidth, kernel)
        sums[:, p] = columns[:, rows] @ weights
    return sums


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

    def spread(self, x: Array) -> sparse.csr_matrix:
        """Return the matrix from nodes to points, shape (n, size)."""
        node, past = self.place(x)
        nodes = (node[:, None] + np.arange(4, dtype=np.int32)).astype(np.int32)
        powers = np.stack([np.ones_like(past), past, past**2, past**3], axis=1)
        values = (powers @ _CUBIC.T).ravel()
        ends = 4 * np.arange(x.size + 1)
        return sparse.csr_matrix(
            (values, nodes.ravel(), ends), shape=(x.size, self.size)
        )

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
