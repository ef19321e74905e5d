"""Kernel regression on a few columns: the kernel is a product of one for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._inputs.score_rows import Sample
from .._inputs.validation import Array
from ._bandwidth import FACTORS, NOTHING, robust_scale
from ._kernels import Kernel
from ._sums import kernel_sums, kernel_values

_CHUNK = 1 << 20
# Kernel values, and shares of all weights, that are nothing on a grid.
_SMALLEST, _THIN = 1e-120, 1e-100


def rule_bandwidths(
    rule: str, X: Array, sample: Sample, kernel: Kernel
) -> tuple[float, ...]:
    """Return a bandwidth for each column by a rule, 1 for a column without spread.

    ``M^(-1 / (4 + d))`` times the robust scale of the column, ``M^(-1 / (3 + d))`` to
    undersmooth.
    """
    power = (3 if rule == "undersmooth" else 4) + X.shape[1]
    factor = kernel.relative_width * sample.n_active ** (-1 / power)
    scales = [robust_scale(column, sample.share) for column in X.T]
    bandwidths = np.array([factor * scale or 1.0 for scale in scales])
    if rule == "cv":
        errors = [
            _leave_cluster_out_error(h * bandwidths, X, sample, kernel) for h in FACTORS
        ]
        bandwidths *= FACTORS[int(np.argmin(errors))]
    return tuple(bandwidths.tolist())


def _weights(
    points: Array, X: Array, bandwidths: Array, kernel: Kernel
) -> Iterator[tuple[slice, Array]]:
    """Yield parts of the points, and the weight of each row at each of them.

    Gaussian weights are relative to the largest, so that none is lost far away.
    """
    step = max(1, _CHUNK // len(X))
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        if kernel.name == "gaussian":
            with np.errstate(over="ignore"):
                exponent = np.zeros((points[part].shape[0], len(X)))
                for p, x, h in zip(points[part].T, X.T, bandwidths, strict=True):
                    exponent -= 0.5 * ((x - p[:, None]) / h) ** 2
            exponent -= np.maximum(exponent.max(1, keepdims=True), -1e300)
            yield part, np.exp(exponent)
            continue
        weights = np.ones((points[part].shape[0], len(X)))
        for p, x, h in zip(points[part].T, X.T, bandwidths, strict=True):
            weights *= kernel_values(x, p[:, None], h, kernel)
        yield part, weights


def product_means(
    points: Array, X: Array, columns: Array, bandwidths: Array, kernel: Kernel
) -> Array:
    """Return the weighted mean of the first of two columns at every point.

    Parameters
    ----------
    points : ndarray of shape (P, d)
    X : ndarray of shape (n, d)
    columns : ndarray of shape (2, n)
        Weighted outcomes, and weights.
    bandwidths : ndarray of shape (d,)
    kernel : Kernel

    Returns
    -------
    ndarray of shape (P,)
        NaN where no row has a weight.
    """
    means = np.full(len(points), np.nan)
    for part, weights in _weights(points, X, bandwidths, kernel):
        total, mass = columns @ weights.T
        np.divide(total, mass, out=means[part], where=mass > 0)
    return means


def grid_means(
    axes: Sequence[Array], X: Array, columns: Array, bandwidths: Array, kernel: Kernel
) -> Array:
    """Return the weighted mean at every node of a grid, whose kernel sums separate.

    Parameters
    ----------
    axes : sequence of ndarray, length d
        Nodes along each column.
    X : ndarray of shape (n, d)
    columns : ndarray of shape (2, n)
        Weighted outcomes, and weights.
    bandwidths : ndarray of shape (d,)
    kernel : Kernel

    Returns
    -------
    ndarray of shape (k_1, ..., k_d)
        NaN where no row has a weight.
    """
    sums = np.zeros((2, *(axis.size for axis in axes)))
    step = max(1, _CHUNK // max(axis.size for axis in axes))
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        *outer, last = (
            _values(x[part], axis[:, None], h, kernel)
            for x, axis, h in zip(X.T, axes, bandwidths, strict=True)
        )
        # All nodes of the last two axes in one product of matrices.
        rest = outer.pop() if outer else np.ones((1, last.shape[1]))
        for node in np.ndindex(*(values.shape[0] for values in outer)):
            for total, column in zip(sums, columns[:, part], strict=True):
                weighted = column
                for values, place in zip(outer, node, strict=True):
                    weighted = weighted * values[place]
                found = (rest * weighted) @ last.T
                total[node] += found.reshape(total[node].shape)
    total, mass = sums
    means = np.full(mass.shape, np.nan)
    np.divide(total, mass, out=means, where=mass > _THIN * columns[1].sum())
    if kernel.name == "gaussian" and (far := np.argwhere(np.isnan(means))).size:
        # What is left of the weights there is rounded; the nearest rows decide.
        points = np.stack([a[i] for a, i in zip(axes, far.T, strict=True)], axis=1)
        means[tuple(far.T)] = product_means(points, X, columns, bandwidths, kernel)
    return means


def _values(x: Array, points: Array, bandwidth: float, kernel: Kernel) -> Array:
    """Return the kernel, the gaussian much farther than elsewhere."""
    if kernel.name != "gaussian":
        return kernel_values(x, points, bandwidth, kernel)
    with np.errstate(under="ignore", over="ignore"):
        values = np.exp(-0.5 * ((x - points) / bandwidth) ** 2)
    values[values < _SMALLEST] = 0.0  # products of less are slow to compute
    return values


def line_means(
    points: Array,
    x: Array,
    columns: Array,
    bandwidth: float,
    kernel: Kernel,
    method: str,
) -> Array:
    """Return the same on one column; far from all rows the mean of the nearest."""
    total, mass = kernel_sums(points, x, columns, bandwidth, kernel, method)
    means = np.full(points.size, np.nan)
    np.divide(total, mass, out=means, where=mass > 0)
    far = np.flatnonzero(~(mass > 0))
    if far.size and kernel.name == "gaussian":
        # The limit of the weights, which are too small for a float.
        means[far] = product_means(
            points[far, None], x[:, None], columns, np.array([bandwidth]), kernel
        )
    return means


def _leave_cluster_out_error(
    bandwidths: Array, X: Array, sample: Sample, kernel: Kernel
) -> float:
    """Return the squared error of predicting each cluster from all others."""
    columns = sample.columns(sample.y)
    means = np.full(len(X), np.average(sample.y, weights=sample.share))
    for part, weights in _weights(X, X, bandwidths, kernel):
        same = sample.cluster[part, None] == sample.cluster
        left_out = np.stack([sample.left_out * sample.y, sample.left_out])
        own = left_out @ (weights * same).T
        total, mass = columns @ weights.T
        left = mass - own[1]
        np.divide(total - own[0], left, out=means[part], where=left > NOTHING * mass)
    return float(np.average((sample.y - means) ** 2, weights=sample.share))
