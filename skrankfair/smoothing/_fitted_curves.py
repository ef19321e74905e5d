"""Curves of groups that are fitted to all parts of the data, by sums over the parts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from .._estimates.storage import stored
from .._inputs.validation import Array
from ._kernel_sums import NOTHING, Lattice, few_rows, kernel_values, lattice_of
from ._kernels import Kernel, get_kernel


@stored("KernelColumns")
@dataclass(frozen=True)
class KernelColumns:
    """What rows of a group add to its curves, from all rows and in each replicate.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Scores of the rows where they are few; empty for nodes of a lattice.
    values : ndarray of shape (1 + B, 2, m)
        Weight times outcome, and weight.
    """

    x: Array
    values: Array

    def __add__(self, other: KernelColumns) -> KernelColumns:
        """Return the columns of the rows of both."""
        if not self.x.size:
            return KernelColumns(self.x, self.values + other.values)
        return KernelColumns(
            np.append(self.x, other.x),
            np.concatenate([self.values, other.values], axis=2),
        )


@dataclass(frozen=True)
class CurvePlace:
    """Where the kernel sums of a group are taken.

    Attributes
    ----------
    low, high : float
        Range of its scores.
    n_rows : int
    bandwidth : float
    kernel : str
    """

    low: float
    high: float
    n_rows: int
    bandwidth: float
    kernel: str

    @property
    def known(self) -> Kernel:
        """The kernel."""
        return get_kernel(self.kernel)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The lattice of a curve of all these rows in memory; None for few rows."""
        return lattice_of(self.low, self.high, self.n_rows, self.bandwidth, self.known)

    @property
    def size(self) -> int:
        """How many nodes, or rows, there are."""
        return self.n_rows if self.lattice is None else self.lattice.size

    def check(self, group: Hashable) -> None:
        """Raise a ValueError if the kernel sums of many rows are no sums of nodes."""
        if self.lattice is None and self.n_rows > few_rows(self.known):
            raise ValueError(
                "A curve adds up over parts of the data on a lattice: kernel must not "
                "be 'epanechnikov' or 'uniform', nor bandwidth far below the range of "
                f"the scores; group {group!r} has {self.n_rows} rows, and "
                f"kernel={self.kernel!r}, bandwidth={self.bandwidth:g}."
            )

    def columns(self, x: Array, y: Array, weights: Iterable[Array]) -> KernelColumns:
        """Return what rows add, with the weights of all and of each replicate."""
        if self.lattice is None:
            values = [np.stack([weight * y, weight]) for weight in weights]
            return KernelColumns(x, np.stack(values))
        to_nodes = self.lattice.spread(x).T.tocsr()
        values = [
            np.stack([to_nodes @ (weight * y), to_nodes @ weight]) for weight in weights
        ]
        return KernelColumns(np.zeros(0), np.stack(values))


@dataclass(frozen=True)
class FittedCurve:
    """The curve of a group, and that of each replicate.

    Attributes
    ----------
    place : CurvePlace
    x : ndarray of shape (m,)
        Scores of the rows where they are few.
    sums : ndarray of shape (1 + B, 2, m)
        On nodes the kernel sums of `KernelColumns`, of few rows the columns.
    largest : ndarray of shape (1 + B,)
        The largest mass.
    """

    place: CurvePlace
    x: Array
    sums: Array
    largest: Array

    @classmethod
    def of(cls, place: CurvePlace, columns: KernelColumns) -> FittedCurve:
        """Return the curve of the columns of all rows."""
        x, sums = columns.x, columns.values
        if place.lattice is None:
            values = kernel_values(x, x[:, None], place.bandwidth, place.known)
            mass = sums[:, 1] @ values
        else:
            sums = np.stack([place.lattice.convolved(both) for both in sums])
            mass = sums[:, 1]
        return cls(place, x, sums, mass.max(axis=1))

    def at(self, x: Array) -> Callable[[int], Array]:
        """Return the function from the number of a curve to its values at scores.

        Number 0 is the curve of all rows. NaN where a replicate has no rows near.
        """
        nodes: Any
        if self.place.lattice is None:
            bandwidth, kernel = self.place.bandwidth, self.place.known
            nodes = kernel_values(x, self.x[:, None], bandwidth, kernel).T
        else:
            nodes = self.place.lattice.spread(x)

        def means(number: int) -> Array:
            total, mass = (nodes @ column for column in self.sums[number])
            there = mass > NOTHING * self.largest[number]
            np.divide(total, mass, out=total, where=there)
            total[~there] = np.nan
            return np.asarray(total)

        return means


@dataclass(frozen=True, eq=False)
class FittedCurves(Mapping[Hashable, float]):
    """The curves of all groups: a mapping from groups to their bandwidths.

    Attributes
    ----------
    curves : dict of hashable to FittedCurve
    outcomes : tuple of float
        The smallest and the largest outcome of all rows.
    """

    curves: Mapping[Hashable, FittedCurve]
    outcomes: tuple[float, float]

    def __getitem__(self, group: Hashable) -> float:
        """Return the bandwidth of a group."""
        return self.curves[group].place.bandwidth

    def __iter__(self) -> Iterator[Hashable]:
        """Iterate over the groups."""
        return iter(self.curves)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.curves)

    @cached_property
    def digest(self) -> str:
        """What tells these curves from others."""
        found = sha256()
        for group, curve in self.curves.items():
            found.update(repr((group, curve.place)).encode())
            found.update(curve.sums.tobytes())
        return found.hexdigest()
