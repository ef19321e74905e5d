"""The curves of groups, and of their rests, on a grid: sums over clusters that add up.

The rest of a group is everyone, but for the clusters that have rows of the group. So
sums are kept of each group, of what its clusters change in the sums of everyone when
its rows are left out, and of everyone: few rows each, however many groups there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import interpolate, sparse, special

from .._estimates.arrays import (
    ReadOnlyArrays,
    cached_read_only,
    check_memory,
    read_only,
)
from .._estimates.finalize import quotient
from .._estimates.simultaneous import MOST_TOGETHER
from .._inputs.groups import Groups, union_of_labels
from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array
from ._bandwidth import enough
from ._kernels import Kernel, segment_sums

_N_BARS = 40
# Knots of the spline of the score, and its degree: eight columns.
_KNOTS, _CUBIC = 6, 3
# Relative eigenvalue below which the scores in the window have no such spread.
_NO_SPREAD = 1e-9
_ROUNDING = 1e-12
#: Bandwidths beyond which a row shows nothing: a Gaussian is 1e-87 of its peak there.
_FAR = 20.0

#: What sums are kept of: ("group", label), ("rest", label) for what the rest of a group
#: differs from everyone by, and everyone.
Curve = tuple[str, Hashable]
_EVERYONE: Curve = ("everyone", None)


class NullContrasts(NamedTuple):
    """Differences of pairs of curves, with their errors if both were one curve.

    Attributes
    ----------
    difference, standard_error : ndarray of shape (n, J)
    overlap : ndarray of shape (n, J)
        The part of the spread of the group label that the score does not explain.
    variance : ndarray of shape (n, J)
        Variance of the outcomes of both groups.
    """

    difference: Array
    standard_error: Array
    overlap: Array
    variance: Array


class CurveFits(NamedTuple):
    """Local regressions of the outcome on the score, by curve and point.

    Attributes
    ----------
    estimate : ndarray of shape (H, J)
    coefficient : ndarray of shape (H, J, C)
        What the columns are multiplied by for the influence of a cluster.
    weights : ndarray of shape (H, J, d + 1)
        The polynomial of the distance that weighs the outcomes.
    effective : ndarray of shape (H, J)
        ``1 / Σ_m l_m²`` for the weights l of the clusters in the value; 0 where the
        scores in the window do not tell it, and the weights do not sum to one.
    """

    estimate: Array
    coefficient: Array
    weights: Array
    effective: Array


class CurveSums(NamedTuple):
    """Sums over the clusters of one curve, and where its scores are.

    Attributes
    ----------
    total : ndarray of shape (N,)
        Of the kernel at each point: the columns, ``Σ w² K² u^k`` over rows, and
        ``Σ w K y²``; of the columns b of the spline, over rows in its range:
        ``Σ w b_i b_j``, ``Σ w b_i y``, ``Σ w² b_i b_j`` and ``Σ w y²``; and the number
        of clusters.
    bars : ndarray of shape (40,)
        Rows by score, in equal parts of the range of the grid.
    low, high : float
        Smallest and largest score of the group, of its rest, or of everyone.
    """

    total: Array
    bars: Array
    low: float
    high: float

    def joined(self, other: CurveSums) -> CurveSums:
        """Return the sums over the clusters of both."""
        return CurveSums(
            self.total + other.total,
            self.bars + other.bars,
            min(self.low, other.low),
            max(self.high, other.high),
        )


class PairSums(NamedTuple):
    """Sums over clusters of products of two curves.

    Attributes
    ----------
    columns : ndarray of shape (J, C, C)
        Of the columns of both at one point.
    scatter : ndarray of shape (2 J, 2 J)
        Of ``Σ w K y`` and ``Σ w K`` of both at all points.
    spline : ndarray
        Of ``Σ w b_i b_j`` and ``Σ w b_i y`` of both.
    """

    columns: Array
    scatter: Array
    spline: Array

    @classmethod
    def of_clusters(cls, x: Array, y: Array, degree: int, spline: Spline) -> PairSums:
        """Return the products of two curves, given the sums of each cluster in both.

        Both are of shape (m, N), as in `CurveSums.total`.
        """
        n_splines = spline.pairs[0].size + spline.size
        n_kernel = x.shape[1] - 1 - spline.n_sums
        score = slice(n_kernel, n_kernel + n_splines)
        at_score = x[:, score].T @ y[:, score]
        x, y = (v[:, :n_kernel].reshape(len(v), 5 * degree + 4, -1) for v in (x, y))
        columns = slice(3 * degree + 2)
        cross = x[:, columns].transpose(2, 1, 0) @ y[:, columns].transpose(2, 0, 1)
        outcome_and_mass = [2 * degree + 1, 0]
        x, y = (v[:, outcome_and_mass].reshape(len(v), -1) for v in (x, y))
        return cls(cross, x.T @ y, at_score)


#: Of pairs of curves, without those that share no cluster.
Products = Mapping[tuple[Curve, Curve], PairSums]


def _add(products: dict[tuple[Curve, Curve], PairSums], more: Products) -> None:
    """Add sums to those of the same pairs."""
    for pair, sums in more.items():
        before = products.get(pair)
        products[pair] = PairSums(*map(np.add, before, sums)) if before else sums


class Spline(NamedTuple):
    """Cubic B-splines between quantiles of a grid.

    Attributes
    ----------
    low, high : float
        The ends of the grid.
    knots : ndarray of shape (p + 4,)
        In units of the range of the grid; p is 0 where the grid has no range.
    """

    low: float
    high: float
    knots: Array

    @classmethod
    def of_grid(cls, grid: Array) -> Spline:
        """Return the splines of the grid."""
        low, high = float(grid.min()), float(grid.max())
        if not high > low:
            return cls(low, high, np.zeros(_CUBIC + 1))
        knots = np.quantile((grid - low) / (high - low), np.linspace(0, 1, _KNOTS))
        knots = np.unique(np.round(knots, 9))
        return cls(low, high, np.concatenate([[0.0] * _CUBIC, knots, [1.0] * _CUBIC]))

    @property
    def size(self) -> int:
        """The number p of columns."""
        return self.knots.size - _CUBIC - 1

    @property
    def pairs(self) -> tuple[Array, Array]:
        """The columns i ≤ j of each product."""
        return np.triu_indices(self.size)

    @property
    def n_sums(self) -> int:
        """The number of sums: products, outcomes, squares, and the square outcome."""
        return self.size * (self.size + 2) + 1

    def __call__(self, x: Array) -> list[Array]:
        """Return products, columns, products, and which scores are in the range."""
        if not self.size:
            return [np.zeros((x.size, n)) for n in (0, 0, 0, 1)]
        at = (x - self.low) / (self.high - self.low)
        inside = ((at >= 0) & (at <= 1)).astype(float)[:, None]
        curves = interpolate.BSpline(self.knots, np.eye(self.size), _CUBIC)
        columns = curves(np.clip(at, 0, 1)) * inside
        first, second = self.pairs
        products = columns[:, first] * columns[:, second]
        return [products, columns, products, inside]


@dataclass(frozen=True, eq=False)
class CurvePairs(ReadOnlyArrays):
    """Kernel sums of curves on a grid, with their cross products over clusters.

    With ``u = (S - s) / h`` and row weights w, the C columns of a cluster at a point s
    are ``Σ w K u^k``, k = 0 to 2 d, and ``Σ w K u^k y``, k = 0 to d, for a polynomial
    of degree d. The H curves that are compared are the groups and, with rests, as many
    rests, whose sums are what they differ from everyone by, and those of everyone.

    Attributes
    ----------
    groups : tuple of hashable, length G
    grid : ndarray of shape (J,)
    degree : int
    rests : bool
        Whether groups are compared with their rests.
    count : float
        Number of clusters.
    curves : dict of Curve to CurveSums
    products : dict of (Curve, Curve) to PairSums
    outcomes : tuple of float
        The distinct outcomes if they are at most two, else the smallest, NaN and the
        largest.
    """

    groups: tuple[Hashable, ...]
    grid: Array
    degree: int
    rests: bool
    count: float
    curves: Mapping[Curve, CurveSums]
    products: Products
    outcomes: tuple[float, ...]

    def __post_init__(self) -> None:
        """Make the arrays of the curves and the cross products read-only."""
        super().__post_init__()
        for values in (*self.curves.values(), *self.products.values()):
            read_only(values)

    @classmethod
    def of_rows(
        cls,
        rows: ScoreRows,
        cluster_weight: str,
        grid: Array,
        bandwidth: float,
        kernel: Kernel,
        *,
        degree: int,
        rests: bool = False,
    ) -> CurvePairs:
        """Sum the kernel over the clusters of rows."""
        labels, size = rows.groups.labels, len(rows.groups)
        curves: list[Curve] = [("group", label) for label in labels]
        if rests:
            curves += [*(("rest", label) for label in labels), _EVERYONE]
        sample = (_with_rests(rows) if rests else rows).sample(cluster_weight)
        pairs = _pairs_of_curves(sample, size, rests=rests)
        check_memory(
            24.0 * len(pairs) * (2 * grid.size) ** 2,
            f"The covariance of {len(curves)} curves with each other",
            "compare fewer groups at once, or each of many with its rest.",
        )
        spline = Spline.of_grid(grid if degree else grid[:1])
        totals: Any = 0.0
        products: dict[tuple[Curve, Curve], PairSums] = {}
        blocks = _segments(sample, grid, bandwidth, kernel, degree, len(curves), spline)
        for cluster, curve, values in blocks:
            # The row of `values` of each curve and cluster, -1 for none.
            number = np.full((len(curves), int(cluster.max()) + 1), -1)
            number[curve, cluster] = np.arange(curve.size)
            if rests:
                # The rest of each group less everyone, in the clusters of the group.
                of_groups = np.flatnonzero(curve < size)
                where = size + curve[of_groups], cluster[of_groups]
                rest = number[where]
                less = np.where((rest < 0)[:, None], 0.0, values[rest])
                less -= values[number[-1, cluster[of_groups]]]
                number[where] = len(values) + np.arange(of_groups.size)
                values = np.concatenate([values, less])
            totals += np.stack([values[at[at >= 0]].sum(axis=0) for at in number])
            for a, b in pairs:
                both = np.flatnonzero((number[a] >= 0) & (number[b] >= 0))
                if both.size:
                    x = values[number[a, both]]
                    y = x if a == b else values[number[b, both]]
                    of_pair = PairSums.of_clusters(x, y, degree, spline)
                    _add(products, {(curves[a], curves[b]): of_pair})
        ranges = _ranges(rows, grid, rests=rests)
        sums = map(CurveSums, totals, *zip(*ranges, strict=True))
        by_curve = dict(zip(curves, sums, strict=True))
        settings = labels, grid, degree, rests, float(sample.n_clusters)
        return cls(*settings, by_curve, products, _distinct(rows.y))

    def _sums_of(self, curve: Curve) -> CurveSums:
        """Return the sums of a curve; of a group without rows all rows are rest."""
        if curve in self.curves:
            return self.curves[curve]
        low, high = np.inf, -np.inf
        if curve[0] == "rest":
            low, high = self.curves[_EVERYONE].low, self.curves[_EVERYONE].high
        like = self._sums[0]
        return CurveSums(0.0 * like.total, 0.0 * like.bars, low, high)

    def __add__(self, other: CurvePairs) -> CurvePairs:
        """Return the sums over the union of the clusters, groups aligned by label."""
        _add(products := dict(self.products), other.products)
        return replace(
            self,
            groups=union_of_labels(self.groups, other.groups),
            count=self.count + other.count,
            curves={
                curve: self._sums_of(curve).joined(other._sums_of(curve))
                for curve in {**self.curves, **other.curves}
            },
            products=products,
            outcomes=_distinct(np.array(self.outcomes + other.outcomes)),
        )

    @property
    def _summands(self) -> list[tuple[Curve, ...]]:
        """The curves whose sums add up to those of each that is compared, length H."""
        sums: list[tuple[Curve, ...]] = [(("group", label),) for label in self.groups]
        if self.rests:
            sums += [(("rest", label), _EVERYONE) for label in self.groups]
        return sums

    @property
    def _sums(self) -> list[CurveSums]:
        """The sums of the groups, then of what their rests differ by, length H."""
        return [self.curves[curves[0]] for curves in self._summands]

    @property
    def bars(self) -> Array:
        """Rows by group and score, shape (G, 40)."""
        return np.stack([sums.bars for sums in self._sums[: len(self.groups)]])

    @cached_read_only
    def _totals(self) -> Array:
        """All sums of groups, then of their rests, shape (H, N)."""
        summands = self._summands
        return np.stack([sum(self.curves[c].total for c in cs) for cs in summands])

    @property
    def active(self) -> Array:
        """Number of clusters with rows of each curve, shape (H,)."""
        return self._totals[:, -1]

    @property
    def totals(self) -> Array:
        """The sums of the kernel, shape (H, C + 2 d + 2, J)."""
        n_columns, n_points = 5 * self.degree + 4, self.grid.size
        return self._totals[:, : n_columns * n_points].reshape(-1, n_columns, n_points)

    @property
    def _outcome(self) -> int:
        """The first column with outcomes."""
        return 2 * self.degree + 1

    def _cross(self, kind: str, a: int, b: int) -> Array:
        """Return the products of two of the curves that are compared."""
        products = self.products
        total = np.zeros(getattr(next(iter(products.values())), kind).shape)
        for i, j in product(self._summands[a], self._summands[b]):
            if (i, j) in products:
                total += getattr(products[i, j], kind)
            if i != j and (j, i) in products:
                total += getattr(products[j, i], kind).swapaxes(-1, -2)
        return total

    @cached_read_only
    def _own_products(self) -> Array:
        """The products of the columns of each curve, shape (H, J, C, C)."""
        curves = range(len(self._summands))
        return np.stack([self._cross("columns", h, h) for h in curves])

    @cached_read_only
    def effective_clusters(self) -> Array:
        """``(Σ_m B_m)² / Σ_m B_m²`` by curve and point, shape (H, J)."""
        return quotient(self.totals[:, 0] ** 2, self._own_products[..., 0, 0])

    @cached_read_only
    def defined(self) -> Array:
        """Where a curve has an estimate and an error, shape (H, J), bool.

        There it is inside the range of its scores and rests on two clusters or more.
        """
        low, high = np.array([(sums.low, sums.high) for sums in self._sums]).T
        return (
            (self.totals[:, 0] > 0)
            & (self.effective_clusters >= 2 * (1 - 1e-9))
            & (self.grid >= low[:, None])
            & (self.grid <= high[:, None])
        )

    @cached_read_only
    def means(self) -> Array:
        """Weighted mean outcomes of the curves, shape (H, J); NaN where undefined."""
        total, mass = self.totals[:, self._outcome], self.totals[:, 0]
        return quotient(total, mass, self.defined)

    def covariance(self, a: int, b: int) -> Array:
        """Return the covariance of the means of two curves at all points, (J, J)."""
        size = self.grid.size
        cross = self._cross("scatter", a, b).reshape(2, size, 2, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_a, of_b = (
                np.stack([np.ones(size), -self.means[h]]) / self.totals[h, 0]
                for h in (a, b)
            )
            covariance = np.einsum("pj,pjqk,qk->jk", of_a, cross, of_b)
        covariance *= self._factors[a] * self._factors[b]
        if a == b:
            np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))
        return covariance

    @cached_read_only
    def _factors(self) -> Array:
        """``sqrt(M / (M - 1))`` by curve, for its number of clusters, shape (H,)."""
        others = np.where(self.active > 1, self.active - 1, np.nan)
        return np.sqrt(self.active / others)

    @cached_read_only
    def variance(self) -> Array:
        """Variance of the means, shape (H, J)."""
        return np.stack(
            [np.diag(self.covariance(h, h)) for h in range(len(self._summands))]
        )

    def spread(self, pairs: Array) -> Array:
        """Return standard errors of the differences of means of pairs, (n, J)."""
        both = self.variance[pairs].sum(axis=1)
        cross = [np.diag(self.covariance(a, b)) for a, b in pairs.tolist()]
        variance = both - 2 * np.reshape(cross, both.shape)
        # Rounding where both are one.
        return np.sqrt(np.where(variance < _ROUNDING * both, 0.0, variance))

    def joint(self, pairs: Array) -> tuple[tuple[Array, ...], Array]:
        """Return the covariance of all points of all curves, and pairs of points.

        The covariance is in blocks that count as independent: one, or of many groups
        and their rests one for each pair. Normal vectors are inside of a product of
        symmetric intervals at least as often as if they were (Royen 2014), so what
        holds for all pairs at once is at worst too wide. The numbers in it, of shape
        (n J, 2), are those of the pairs of curves, point by point.
        """
        size, point = self.grid.size, np.arange(self.grid.size)[:, None]
        if self.rests and len(self.groups) > MOST_TOGETHER:
            blocks, numbers = pairs.tolist(), np.arange(2 * len(pairs)).reshape(-1, 2)
        else:
            blocks, numbers = [range(len(self._summands))], pairs
        covariances = []
        for curves in blocks:
            rows = [np.hstack([self.covariance(a, b) for b in curves]) for a in curves]
            covariances.append(np.vstack(rows))
        of_points = numbers[:, None, :] * size + point
        return tuple(covariances), of_points.reshape(-1, 2)

    def _regressed(self, totals: Array) -> tuple[Array, Array]:
        """Return regressions on powers of the score from sums of shape (..., W, J).

        Inverses of the normal matrices, shape (..., J, d + 1, d + 1), and coefficients.
        """
        powers = np.arange(self.degree + 1)
        normal = np.moveaxis(totals[..., powers[:, None] + powers, :], -1, -3)
        inverse = np.linalg.pinv(normal, rcond=_NO_SPREAD, hermitian=True)
        outcomes = totals[..., self._outcome + powers, :]
        return inverse, np.einsum("...jkl,...lj->...jk", inverse, outcomes)

    @cached_read_only
    def fits(self) -> CurveFits:
        """The curves as polynomials of the score around each point."""
        inverse, fitted = self._regressed(self.totals)
        weights = inverse[:, :, 0]
        products = self._own_products[..., : self.degree + 1, : self.degree + 1]
        squares = np.einsum("hjk,hjkl,hjl->hj", weights, products, weights)
        # They sum to one unless the scores in the window are too few to tell the value.
        sums = np.einsum("hjk,hkj->hj", weights, self.totals[:, : self.degree + 1])
        effective = np.zeros(squares.shape)
        np.divide(1.0, squares, out=effective, where=np.isclose(sums, 1.0))
        return CurveFits(fitted[..., 0], _residual(weights, fitted), weights, effective)

    def _between(self, a: int, of_a: Array, b: int, of_b: Array) -> Array:
        """Return the products of combinations of columns of two curves, shape (J,)."""
        return np.einsum("jk,jkl,jl->j", of_a, self._cross("columns", a, b), of_b)

    def fit_covariance(self, a: int, b: int) -> Array:
        """Return the covariance of the fits of two curves at each point, shape (J,)."""
        of_a, of_b = self.fits.coefficient[[a, b]]
        return self._between(a, of_a, b, of_b) * self._factors[a] * self._factors[b]

    def independent_errors(self) -> Array:
        """Return the squared errors of the fits of independent rows of variance one."""
        return self._independent(self.fits.weights, self.totals)

    def _independent(self, weights: Array, totals: Array) -> Array:
        squares = totals[..., 3 * self.degree + 2 : -1, :]
        return np.einsum("...jk,...kj->...j", _product(weights, weights), squares)

    def comparable(self, effective: Any, variance: Any) -> Array:
        """Return a mask of the points with enough data to compare curves.

        These are the effective clusters that a value needs and, of two outcomes with
        this variance, at least one expected of each.
        """
        known = enough(effective)
        if len(self.outcomes) == 2:
            low, high = self.outcomes
            known &= effective * variance >= (high - low) ** 2
        return known

    def contrasts(self, pairs: Array) -> NullContrasts:
        """Return the differences of n pairs of curves by regressions in the window.

        Outcomes are regressed on the score, its square and the group, with slopes in
        common: the value is the coefficient of the group, and its error is that of the
        score test, from the residuals without the group. It is at least what
        independent rows with the variance of both groups would have.
        """
        outcome, powers = self._outcome, np.arange(self.degree + 1)
        both = self.totals[pairs]
        first, total = both[:, 0], both.sum(1)
        inverse, common = self._regressed(total)
        explained = np.einsum("njkl,nlj->njk", inverse, first[:, powers])
        spread = first[:, 0] - np.einsum("njk,nkj->nj", explained, first[:, powers])
        top = first[:, outcome] - np.einsum(
            "njk,nkj->nj", explained, total[:, outcome + powers]
        )
        weights = np.stack([-explained, -explained], axis=1)
        weights[:, 0, :, 0] += 1
        independent = self._independent(weights, both).sum(axis=1)
        residual, robust = _residual(weights, common[:, None]), np.zeros(spread.shape)
        for of_pair, pair, error in zip(residual, pairs.tolist(), robust, strict=True):
            for a, b in product((0, 1), repeat=2):
                error += self._between(pair[a], of_pair[a], pair[b], of_pair[b])
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, share = total[:, outcome] / total[:, 0], first[:, 0] / total[:, 0]
            variance = total[:, -1] / total[:, 0] - mean**2
            # What rounding leaves where all outcomes are equal.
            some = variance > _ROUNDING * mean**2
            variance = np.where(some, variance, 0.0)
            error = np.where(some, np.maximum(robust, variance * independent), 0.0)
            return NullContrasts(
                np.where(some, top, 0.0) / spread,
                np.sqrt(error) / spread,
                spread / (total[:, 0] * share * (1 - share)),
                variance,
            )

    def level_and_slope_pvalue(self, first: int, second: int) -> float:
        """Return the p-value of the score test of level and slope of the difference.

        Outcomes, and the level and the slope of the first curve, are regressed on a
        spline of the score in both; the sums of the products of their residuals have
        the variance of clusters, and at least that of independent rows. NaN where too
        few clusters, or outcomes that are too much alike, tell nothing.
        """
        spline, pair = Spline.of_grid(self.grid), [first, second]
        if not (self.degree and spline.size):
            return np.nan
        totals = self._totals[pair, -1 - spline.n_sums : -1]
        i, j = spline.pairs
        ends = np.cumsum([i.size, spline.size, i.size])
        products, outcome, of_squares, outcome_squares = np.split(totals, ends, axis=1)
        gram, squares = np.zeros((2, 2, spline.size, spline.size))
        gram[:, i, j] = gram[:, j, i] = products
        squares[:, i, j] = squares[:, j, i] = of_squares
        mass, whole = gram.sum((1, 2)), gram.sum(0)
        if not (mass > 0).all():
            return np.nan
        inverse = np.linalg.pinv(whole, rcond=_NO_SPREAD, hermitian=True)
        fitted = inverse @ outcome.sum(0)
        # 1 and the score itself are combinations of the columns.
        at = [spline.knots[k + 1 : k + 1 + _CUBIC].mean() for k in range(spline.size)]
        line = np.stack([np.ones(spline.size), at])
        explained = line @ gram[0] @ inverse
        factor = np.stack([line - explained, -explained])
        of_products = factor[..., i] * fitted[j]
        of_products += (i != j) * factor[..., j] * fitted[i]
        columns = np.concatenate([-of_products, factor], axis=-1)
        score = np.einsum("hkc,hc->k", columns, totals[:, : ends[1]])
        robust = sum(
            columns[a] @ self._cross("spline", pair[a], pair[b]) @ columns[b].T
            for a, b in product((0, 1), repeat=2)
        )
        # The columns sum to one, and so do all products of them.
        every = 1.0 + (i != j)
        crosses = [self._cross("spline", h, h)[: i.size, : i.size] for h in pair]
        squares_of_mass = np.array([every @ products @ every for products in crosses])
        effective = (mass**2 / squares_of_mass).min()
        mean = outcome.sum() / mass.sum()
        variance = (outcome_squares.sum() - outcome.sum(0) @ fitted) / mass.sum()
        known = variance > _ROUNDING * mean**2
        known &= self.comparable(effective, variance)
        independent = np.einsum("hik,hkl,hjl->ij", factor, squares, factor)
        alone = line @ squares[0] @ line.T
        unexplained = np.diag(independent) > _NO_SPREAD * np.diag(alone)
        if not (known and unexplained.all()):
            return np.nan
        scale = np.sqrt(np.diag(independent))
        score, scales = score / scale, np.outer(scale, scale)
        independent, robust = independent / scales * variance, robust / scales
        rank = np.linalg.matrix_rank(independent, rtol=_NO_SPREAD, hermitian=True)
        statistic = min(
            score @ np.linalg.pinv(v, rcond=_NO_SPREAD, hermitian=True) @ score
            for v in (independent, robust)
        )
        return float(special.fdtrc(rank, effective - 1, statistic / rank))


def _with_rests(rows: ScoreRows) -> ScoreRows:
    """Return the rows with the rest of each group, in its clusters, and everyone."""
    size = len(rows.groups)
    member = np.ones((rows.x.size, 2 * size + 1), dtype=bool)
    codes = rows.cluster_codes
    for g in range(size):
        inside = near = rows.groups.mask(g)
        if codes is not None:
            near = (np.bincount(codes, inside) > 0)[codes]
        member[:, g], member[:, size + g] = inside, near & ~inside
    return replace(rows, groups=Groups(tuple(range(2 * size + 1)), member))


def _segments(
    sample: Sample,
    grid: Array,
    bandwidth: float,
    kernel: Kernel,
    degree: int,
    n_curves: int,
    spline: Spline,
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the sums of the rows of a cluster in a curve, some thousand rows at a time.

    Clusters are whole. Yields the number of the cluster in the block and of the curve
    of each, both of shape (m,), and the sums, (m, N), as in `CurveSums.total`.
    """
    share, starts = sample.share, sample.segment_starts

    def features(x: Array) -> list[Array]:
        with np.errstate(over="ignore"):
            distance = (x[:, None] - grid) / bandwidth
        weight = kernel(distance)
        weight[np.abs(distance) > max(_FAR, kernel.reach)] = 0.0
        # Where the weight is 0, the distance may be infinite.
        distance[weight == 0] = 0.0
        powers = np.stack([weight] + 2 * degree * [distance], axis=1)
        np.cumprod(powers, axis=1, out=powers)
        tables = powers, powers[:, : degree + 1], powers * weight[:, None], weight
        return [table.reshape(x.size, -1) for table in tables] + spline(x)

    factors = share, share * sample.y, share**2, share * sample.y**2
    n_columns = (5 * degree + 4) * grid.size + spline.n_sums + n_curves
    for segments, sums in segment_sums(sample, 2 * factors, features, n_columns):
        cluster, curve = (c[starts[segments]] for c in (sample.cluster, sample.group))
        cluster = np.cumsum(np.diff(cluster, prepend=cluster[0]) > 0)
        sums.append(np.ones((curve.size, 1)))
        yield cluster, curve, np.concatenate(sums, axis=1)


def _pairs_of_curves(
    sample: Sample, size: int, *, rests: bool
) -> list[tuple[int, int]]:
    """Return the pairs of curves with a cluster in common that are compared."""
    starts = sample.segment_starts
    cluster, curve = sample.cluster[starts], sample.group[starts]
    if rests:  # a rest differs from everyone in the clusters of the group
        own, whole = curve < size, curve == 2 * size
        curve = np.concatenate([curve[own], size + curve[own], curve[whole]])
        cluster = np.concatenate([cluster[own], cluster[own], cluster[whole]])
    present = sparse.csr_array((np.ones(curve.size), (cluster, curve)))
    a, b = sparse.triu(present.T @ present).nonzero()
    if rests and size > MOST_TOGETHER:
        # A rest with its group, and each with itself and everyone.
        kept = (a == b) | (b == a + size) | (b == 2 * size)
        a, b = a[kept], b[kept]
    return list(zip(a.tolist(), b.tolist(), strict=True))


def _ranges(
    rows: ScoreRows, grid: Array, *, rests: bool
) -> list[tuple[Array, float, float]]:
    """Return the bars and the ends of the scores of groups, rests and everyone."""
    masks = [rows.groups.mask(g) for g in range(len(rows.groups))]
    edges = np.linspace(grid.min(), grid.max(), _N_BARS + 1)
    bars = [np.histogram(rows.x[mask], edges)[0].astype(float) for mask in masks]
    if rests:
        masks += [*(~mask for mask in masks), np.ones(rows.x.size, dtype=bool)]
        bars += [np.zeros(_N_BARS)] * (len(masks) - len(bars))
    return [
        (bar, rows.x[mask].min(initial=np.inf), rows.x[mask].max(initial=-np.inf))
        for mask, bar in zip(masks, bars, strict=True)
    ]


def _distinct(y: Array) -> tuple[float, ...]:
    """Return the distinct values up to two, or the smallest, NaN and the largest."""
    values = np.unique(y)
    if values.size <= 2:
        return tuple(values.tolist())
    return (float(np.nanmin(values)), float("nan"), float(np.nanmax(values)))


def _product(a: Array, b: Array) -> Array:
    """Return the coefficients of products of polynomials, shape (..., k + l - 1)."""
    degree = a.shape[-1] + b.shape[-1] - 1
    product = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), degree))
    for i in range(a.shape[-1]):
        for j in range(b.shape[-1]):
            product[..., i + j] += a[..., i] * b[..., j]
    return product


def _residual(weights: Array, fitted: Array) -> Array:
    """Return the factors of the columns that give weights times residuals."""
    product = _product(weights, fitted)
    shape = *product.shape[:-1], weights.shape[-1]
    return np.concatenate([-product, np.broadcast_to(weights, shape)], axis=-1)
