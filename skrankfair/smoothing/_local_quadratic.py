"""Local quadratic regression on a grid from kernel moments of clusters that add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from .._estimates.intervals import ConfidenceInterval
from .._estimates.read_only import ReadOnlyArrays
from .._inputs.score_rows import Sample
from .._inputs.validation import Array
from ._features import MomentFeatures, paired_columns
from ._kernels import Kernel

_DEGREE = 2
_N_POWERS = 2 * _DEGREE + 1
# Columns of a cluster: K u^k for k = 0 to 4, and K u^k y for k = 0 to 2.
_POWERS, _OUTCOMES = slice(0, _N_POWERS), slice(_N_POWERS, _N_POWERS + _DEGREE + 1)
_N_COLUMNS = _N_POWERS + _DEGREE + 1
# Powers of y and of u in these columns.
_COLUMNS = [(0, k) for k in range(_N_POWERS)] + [(1, k) for k in range(_DEGREE + 1)]
_BLOCK = 1 << 13
# Relative eigenvalue below which the scores in the window have no such spread.
_NO_SPREAD = 1e-9
_NOTHING = 1e-12


class NullContrast(NamedTuple):
    """The difference of two curves, with its error if they were one curve.

    Attributes
    ----------
    difference, standard_error : ndarray of shape (J,)
    overlap : ndarray of shape (J,)
        The part of the spread of the group label that the score does not explain.
    variance : ndarray of shape (J,)
        Variance of the outcomes of both groups.
    residual, leverage : ndarray of shape (2, J)
        Where the difference is d, the squared error of the test is ``residual +
        leverage d²`` on average over both sides: the larger of that of clusters and
        that of independent rows.
    """

    difference: Array
    standard_error: Array
    overlap: Array
    variance: Array
    residual: Array
    leverage: Array


@dataclass(frozen=True, eq=False)
class Moments(ReadOnlyArrays):
    """Kernel moments of curves on a grid, with their cross products over clusters.

    Attributes
    ----------
    totals : ndarray of shape (H, 8, J)
        Sums over clusters of ``K u^k``, k = 0 to 4, and ``K u^k y``, k = 0 to 2, with
        ``u = (S - s) / h``.
    products : ndarray of shape (J, H, 8, H, 8)
        Sums over clusters of the products of these at one point.
    squares : ndarray of shape (H, 5, J)
        Sums over rows of ``K² u^k`` with squared weights.
    second : ndarray of shape (H, J)
        Sums of ``K y²``.
    """

    totals: Array
    products: Array
    squares: Array
    second: Array

    @classmethod
    def of_sample(
        cls,
        sample: Sample,
        grid: Array,
        bandwidth: float,
        kernel: Kernel,
        n_groups: int,
        repeated: Array,
    ) -> Moments:
        """Sum over the clusters of a sample of several groups.

        `repeated`, shape (n,), says how many rows each row of the sample is.
        """
        size = grid.size
        totals = np.zeros((n_groups, _N_COLUMNS, size))
        products = np.zeros((size, n_groups, _N_COLUMNS, n_groups, _N_COLUMNS))
        features = MomentFeatures(grid, bandwidth, kernel, 2 * _DEGREE)
        # Where each row is a cluster, its products are powers of what is summed.
        alone = bool((np.diff(sample.cluster) > 0).all())
        rows = _row_sums(sample, features, n_groups, repeated, 2 if alone else 0)
        if alone:
            for g in range(n_groups):
                totals[g, _POWERS] = rows.linear[0, :, g]
                totals[g, _OUTCOMES] = rows.linear[1, : _DEGREE + 1, g]
                for i, (a, p) in enumerate(_COLUMNS):
                    for j, (b, q) in enumerate(_COLUMNS):
                        products[:, g, i, g, j] = rows.squared[a + b, p + q, g]
            return cls(totals, products, _by_group(rows.squared[0]), rows.second)
        for g, h, left, right, _ in paired_columns(sample, features, n_groups):
            own, other = _columns(left, size), _columns(right, size)
            cross = own.transpose(2, 1, 0) @ other.transpose(2, 0, 1)
            products[:, g, :, h] += cross
            if g != h:
                products[:, h, :, g] += cross.transpose(0, 2, 1)
                continue
            totals[g] += own.sum(0)
        return cls(totals, products, _by_group(rows.squared[0]), rows.second)

    def take(self, curves: Array) -> Moments:
        """Return the moments of these curves in this order; of -1 all are 0."""
        gone = curves < 0
        totals, squares, second = (
            values[curves] for values in (self.totals, self.squares, self.second)
        )
        products = self.products[:, curves][:, :, :, curves]
        totals[gone], squares[gone], second[gone] = 0.0, 0.0, 0.0
        products[:, gone] = 0.0
        products[:, :, :, gone] = 0.0
        return Moments(totals, products, squares, second)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the union of the clusters; curves must be the same."""
        return Moments(
            self.totals + other.totals,
            self.products + other.products,
            self.squares + other.squares,
            self.second + other.second,
        )

    def fit(self, curve: int, count: float) -> tuple[Array, Array, Array]:
        """Return the curve of one group: a quadratic in the score around each point.

        Parameters
        ----------
        curve : int
        count : float
            The number of all clusters.

        Returns
        -------
        estimate, standard_error, effective : ndarray of shape (J,)
            ``effective`` is ``1 / Σ_m l_m²`` for the weights l of the clusters in the
            value: how many of them it rests on.
        """
        total = self.totals[curve]
        inverse = _inverse(total)
        estimate = np.einsum("jkl,lj->jk", inverse, total[_OUTCOMES])
        weights = inverse[:, 0]
        coefficient = _residual(weights, estimate)
        products = self.products[:, curve, :, curve]
        variance = np.einsum("jk,jkl,jl->j", coefficient, products, coefficient)
        powers = products[:, : _DEGREE + 1, : _DEGREE + 1]
        squares = np.einsum("jk,jkl,jl->j", weights, powers, weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.float64(count) / (count - 1)
            error = np.sqrt(np.maximum(variance, 0) * factor)
            return estimate[:, 0], error, 1 / squares

    def contrast(self, first: int, second: int) -> NullContrast:
        """Return the difference of two curves by a regression in the window.

        Outcomes are regressed on the score, its square and the group, with slopes in
        common: the value is the coefficient of the group, and its error is that of the
        score test, from the residuals without the group. It is at least what
        independent rows with the variance of both groups would have.
        """
        pair = [first, second]
        total = self.totals[pair].sum(0)
        inverse = _inverse(total)
        common = np.einsum("jkl,lj->jk", inverse, total[_OUTCOMES])
        explained = np.einsum("jkl,lj->jk", inverse, self.totals[first, : _DEGREE + 1])
        own = self.totals[first, 0]
        spread = own - np.einsum(
            "jk,kj->j", explained, self.totals[first, : _DEGREE + 1]
        )
        top = self.totals[first, _N_POWERS] - np.einsum(
            "jk,kj->j", explained, total[_OUTCOMES]
        )
        weights = np.stack([-explained, -explained])
        weights[0, :, 0] += 1
        coefficient = np.stack([_residual(w, common) for w in weights])
        products = self.products[:, pair][:, :, :, pair]
        square = np.stack([_product(w, w) for w in weights])
        independent = np.einsum("ajk,akj->j", square, self.squares[pair])
        # What a difference of one adds to the residuals of the null hypothesis.
        added = np.pad(square, [(0, 0), (0, 0), (0, _DEGREE + 1)])
        of = np.stack([coefficient, added])
        (robust, cross), (_, lever) = np.einsum(
            "pajk,jakbl,qbjl->pqj", of, products, of, optimize=True
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, share = total[_N_POWERS] / total[0], own / total[0]
            variance = self.second[pair].sum(0) / total[0] - mean**2
            # What rounding leaves where all outcomes are equal.
            some = variance > _NOTHING * mean**2
            variance = np.where(some, variance, 0.0)
            error = np.where(some, np.maximum(robust, variance * independent), 0.0)
            difference = np.where(some, top, 0.0) / spread
            # Of the outcomes and the group, as that of the outcomes.
            both = self.totals[first, _N_POWERS] / total[0] - mean * share
            apart = share * (1 - share)
            squared = np.stack([robust, variance * independent])
            linear = np.stack([cross, both * independent])
            leverage = np.stack([lever, apart * independent])
            squared += difference * (difference * leverage - 2 * linear)
            return NullContrast(
                difference,
                np.sqrt(error) / spread,
                spread / (total[0] * apart),
                variance,
                np.maximum(squared, 0.0) / spread**2,
                leverage / spread**2,
            )


def _columns(sums: Array, size: int) -> Array:
    """Return the columns of the moments, shape (m, 8, J), from sums of features."""
    outcome, mass = sums.reshape(len(sums), 2, _N_POWERS, size).transpose(1, 0, 2, 3)
    return np.concatenate([mass, outcome[:, : _DEGREE + 1]], axis=1)


class _RowSums(NamedTuple):
    """Sums over rows, by group and point.

    Attributes
    ----------
    linear : ndarray of shape (2, 5, G, J)
        Of ``K u^k y^r``, r = 0 and 1.
    squared : ndarray of shape (r, k, G, J)
        Of ``K² u^k y^r`` with squared weights, r and k from 0.
    second : ndarray of shape (G, J)
        Of ``K y²``.
    """

    linear: Array
    squared: Array
    second: Array


def _row_sums(
    sample: Sample,
    features: MomentFeatures,
    n_groups: int,
    repeated: Array,
    degree: int,
) -> _RowSums:
    """Return sums over rows, those of squares up to a degree of the outcome."""
    shape = (n_groups, features.grid.size)
    n_squared = _N_POWERS if degree == 0 else 2 * _N_POWERS - 1
    found = _RowSums(
        np.zeros((2, _N_POWERS, *shape)),
        np.zeros((degree + 1, n_squared, *shape)),
        np.zeros(shape),
    )
    weight, y = sample.weight, sample.y
    squared = weight * sample.share
    if sample.frequency is None:
        squared = squared / repeated
    for start in range(0, sample.x.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        with np.errstate(over="ignore"):
            distance = (sample.x[rows, None] - features.grid) / features.bandwidth
        kernel = features.kernel(distance)
        distance[kernel == 0] = 0.0
        chosen = np.equal.outer(np.arange(n_groups), sample.group[rows])
        own = [chosen * (weight[rows] * y[rows] ** r) for r in range(3)]
        found.second[:] += own[2] @ kernel
        values = kernel * kernel
        if degree:
            for power in range(_N_POWERS):
                for r in (0, 1):
                    found.linear[r, power] += own[r] @ kernel
                kernel *= distance
        own = [chosen * (squared[rows] * y[rows] ** r) for r in range(degree + 1)]
        for power in range(n_squared):
            for r in range(degree + 1):
                found.squared[r, power] += own[r] @ values
            values *= distance
    return found


def _by_group(squared: Array) -> Array:
    return np.ascontiguousarray(squared[:_N_POWERS].transpose(1, 0, 2))


def _inverse(total: Array) -> Array:
    """Return the inverse of the normal equations at each point, shape (J, 3, 3)."""
    power = np.arange(_DEGREE + 1)
    normal = total[power[:, None] + power].transpose(2, 0, 1)
    return np.linalg.pinv(normal, rcond=_NO_SPREAD, hermitian=True)


def _product(a: Array, b: Array) -> Array:
    """Return the coefficients of the product of polynomials, shape (J, 5)."""
    product = np.zeros((len(a), _N_POWERS))
    for i in range(_DEGREE + 1):
        for j in range(_DEGREE + 1):
            product[:, i + j] += a[:, i] * b[:, j]
    return product


def _residual(weights: Array, fitted: Array) -> Array:
    """Return what the columns are multiplied by for weights times residuals."""
    return np.hstack([-_product(weights, fitted), weights])


def share_interval(
    share: Array, standard_error: Array, effective: Array, quantile: Array
) -> ConfidenceInterval:
    """Return intervals of means in [0, 1] with effective numbers of rows.

    Those of Clopper and Pearson (Korn and Graubard 1998). The number is that of the
    standard error, or of the weights if that is smaller: a share of 0 or 1 has the
    interval of so many rows.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.fmin(share * (1 - share) / standard_error**2, effective)
        number = np.where((share <= 0) | (share >= 1), effective, number)
        tail, successes = special.ndtr(-quantile), share * number
        low = special.betaincinv(successes, number - successes + 1, tail)
        high = special.betainccinv(successes + 1, number - successes, tail)
        known = ~np.isnan(number) & ~np.isnan(quantile)
        low, high = np.where(share <= 0, 0.0, low), np.where(share >= 1, 1.0, high)
        return ConfidenceInterval(
            np.where(known, low, np.nan), np.where(known, high, np.nan)
        )
