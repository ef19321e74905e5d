"""Kernels: the weight of a row at a distance from the point, in bandwidths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .._inputs.validation import Array, check_choice

_SQRT_2PI = float(np.sqrt(2 * np.pi))
# McMurry and Politis (2004): flat up to _FLAT, then down to 0 at 1, all derivatives
# continuous.
_FLAT, _SLOPE = 0.05, 0.25
_FLAT_TOP_REACH = 370.0
_FLAT_TOP_STEP = 0.05


#: What a distance must be below 1, so that rounding does not decide what is at 1.
INSIDE = 1e-12


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


def _flat_top_transform(frequency: Array) -> Array:
    s = np.abs(frequency)
    values = np.where(s <= _FLAT, 1.0, 0.0)
    between = (s > _FLAT) & (s < 1)
    s = s[between]
    steep = _SLOPE * np.exp(-_SLOPE / (s - _FLAT) ** 2)
    values[between] = np.exp(-steep / (s - 1) ** 2)
    return values


@cache
def _flat_top_table() -> Any:
    """Return the inverse transform as a spline, at distances up to the reach.

    The trapezoidal rule is exact up to the kernel a period away, which is below 1e-14.
    """
    from scipy.interpolate import make_interp_spline

    period = 4 * _FLAT_TOP_REACH
    step = 2 * np.pi / period
    frequency = np.arange(step, 1, step)
    amplitude = _flat_top_transform(frequency) * (step / np.pi)
    # From below 0, so that the spline has no end there.
    u = np.arange(-16, _FLAT_TOP_REACH / _FLAT_TOP_STEP + 10) * _FLAT_TOP_STEP
    values = step / (2 * np.pi) + amplitude @ np.cos(np.outer(frequency, u))
    return make_interp_spline(u, values, k=7)


def _flat_top(u: Array) -> Array:
    distance = np.abs(u)
    inside = distance <= _FLAT_TOP_REACH
    values = _flat_top_table()(np.where(inside, distance, 0.0))
    return np.where(inside, values, 0.0)


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
