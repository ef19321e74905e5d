"""The same curve again and again: other weights on the same scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import sparse

from .._inputs.validation import Array
from ._kernel_sums import (
    EXACT_WORK,
    LARGEST_LATTICE,
    Lattice,
    kernel_sums,
    kernel_values,
)
from ._kernels import Kernel

# Relative to the largest mass, what the rounding of a convolution may leave.
_NOTHING = 1e-9
# Above so many kernel values a product with all of them is slower than the lattice.
_SMALL = 1 << 18


class RepeatedMeans:
    """The curve at its own scores for many sets of weights.

    Called with weights of the rows, shape (n,), it returns the curve at every row; NaN
    where the weights leave nothing near. What does not depend on the weights is
    computed in the first call.

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
        columns = np.stack([weight * self._y, weight])
        total, mass = self._sums(columns)
        means = np.full(total.shape, np.nan)
        np.divide(total, mass, out=means, where=mass > _NOTHING * mass.max())
        return means

    @cached_property
    def _sums(self) -> Callable[[Array], Array]:
        x, bandwidth, kernel = self._x, self._bandwidth, self._kernel
        small = EXACT_WORK if not kernel.cells else _SMALL
        if x.size**2 <= small:
            matrix = kernel_values(x, x[:, None], bandwidth, kernel)
            return lambda columns: columns @ matrix
        with np.errstate(over="ignore"):
            cells = (x.max() - x.min()) / bandwidth * kernel.cells
        if not kernel.cells or not cells < LARGEST_LATTICE:
            return lambda columns: kernel_sums(x, x, columns, bandwidth, kernel)
        return self._on_lattice()

    def _on_lattice(self) -> Callable[[Array], Array]:
        x = self._x
        lattice = Lattice(float(x.min()), float(x.max()), self._bandwidth, self._kernel)
        node, weights = lattice.place(x)
        nodes = (node[:, None] + np.arange(4, dtype=np.int32)).astype(np.int32)
        spread = sparse.csr_matrix(
            (
                np.stack(weights, axis=1).ravel(),
                nodes.ravel(),
                4 * np.arange(x.size + 1),
            ),
            shape=(x.size, lattice.size),
        )

        def sums(columns: Array) -> Array:
            on_nodes = np.stack([spread.T @ column for column in columns])
            smooth = lattice.convolved(on_nodes)
            return np.stack([spread @ column for column in smooth])

        return sums
