"""The curves of groups, and of their rests, on a grid: sums over clusters that add up.

The rest of a group is everyone, but for the clusters that have rows of the group. So
sums are kept of each group, of what its clusters change in the sums of everyone when
its rows are left out, and of everyone: few rows each, however many groups there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np

from .._estimates.allocation import check_memory
from .._estimates.read_only import ReadOnlyArrays, cached_read_only
from .._estimates.simultaneous import MOST_TOGETHER
from .._inputs.groups import Groups, sort_labels
from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array
from ._kernels import Kernel

_N_BARS = 40
_BLOCK_VALUES = 1 << 20
# Relative eigenvalue below which the scores in the window have no such spread.
_NO_SPREAD = 1e-9
_ROUNDING = 1e-12
#: Bandwidths beyond which a row shows nothing: a Gaussian is 1e-87 of its peak there.
_FAR = 20.0

#: Cross products by pair of curves (a, b), a <= b; those without a cluster in common
#: are left out.
Products = Mapping[tuple[int, int], Array]


class NullContrast(NamedTuple):
    """The difference of two curves, with its error if they were one curve.

    Attributes
    ----------
    difference, standard_error : ndarray of shape (J,)
    overlap : ndarray of shape (J,)
        The part of the spread of the group label that the score does not explain.
    variance : ndarray of shape (J,)
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
        ``1 / Σ_m l_m²`` for the weights l of the clusters in the value.
    """

    estimate: Array
    coefficient: Array
    weights: Array
    effective: Array


@dataclass(frozen=True, eq=False)
class CurvePairs(ReadOnlyArrays):
    """Kernel sums of curves on a grid, with their cross products over clusters.

    With ``u = (S - s) / h`` and row weights w, the C columns of a cluster at a point s
    are ``Σ w K u^k``, k = 0 to 2 d, and ``Σ w K u^k y``, k = 0 to d, for a polynomial
    of degree d. Curves are the groups and, with rests, what the rest of each differs
    from everyone by, and everyone: B of them.

    Attributes
    ----------
    groups : tuple of hashable, length G
    grid : ndarray of shape (J,)
    degree : int
    rests : bool
        Whether groups are compared with their rests.
    count : float
        Number of clusters.
    active : ndarray of shape (B,)
        Number of clusters with rows of the curve.
    sums : ndarray of shape (B, C + 2 d + 2, J)
        The columns, ``Σ w² K² u^k`` over rows, and ``Σ w K y²``.
    products : dict of (int, int) to ndarray of shape (J, C, C)
        Of the columns of two curves at one point.
    scatter : dict of (int, int) to ndarray of shape (2 J, 2 J)
        Of ``Σ w K y`` and ``Σ w K`` of two curves at all points.
    low, high : ndarray of shape (B,)
        Smallest and largest score of the groups, of their rests, and of everyone.
    bars : ndarray of shape (G, 40)
        Rows by score, in equal parts of the range of the grid.
    outcomes : tuple of float
        The distinct outcomes if they are at most two, else the smallest, NaN and the
        largest.
    """

    groups: tuple[Hashable, ...]
    grid: Array
    degree: int
    rests: bool
    count: float
    active: Array
    sums: Array
    products: Products
    scatter: Products
    low: Array
    high: Array
    bars: Array
    outcomes: tuple[float, ...]

    def __post_init__(self) -> None:
        """Make the arrays and the cross products read-only."""
        super().__post_init__()
        for table in (self.products, self.scatter):
            for values in table.values():
                values.setflags(write=False)

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
        labels, n_groups = rows.groups.labels, len(rows.groups)
        n_curves = 2 * n_groups + 1 if rests else n_groups
        together = n_groups <= MOST_TOGETHER
        _check_memory(rows, n_curves, grid.size, rests=rests, together=together)
        everyone = _with_rests(rows) if rests else rows
        sample = everyone.sample(cluster_weight)
        n_columns = 3 * degree + 2
        outcome_and_mass = [2 * degree + 1, 0]
        active = np.zeros(n_curves)
        sums = np.zeros((n_curves, n_columns + 2 * degree + 2, grid.size))
        products: dict[tuple[int, int], Array] = {}
        scatter: dict[tuple[int, int], Array] = {}
        for block in _clusters(sample, grid, bandwidth, kernel, degree, n_curves):
            if rests:
                block = _less_everyone(block, n_groups)
            cluster, curve, present, values = block
            place = np.full((n_curves, int(cluster.max()) + 1), -1)
            place[curve, cluster] = np.arange(curve.size)
            for a in np.unique(curve).tolist():
                own = np.flatnonzero(curve == a)
                active[a] += present[own].sum()
                sums[a] += values[own].sum(0)
            for a, b in _pairs_of_curves(
                block, n_groups, rests=rests, together=together
            ):
                both = np.flatnonzero((place[a] >= 0) & (place[b] >= 0))
                if not both.size:
                    continue
                x, y = values[place[a, both]], values[place[b, both]]
                cross = x[:, :n_columns].transpose(2, 1, 0)
                cross = cross @ y[:, :n_columns].transpose(2, 0, 1)
                products[a, b] = products.get((a, b), 0.0) + cross
                x, y = (v[:, outcome_and_mass].reshape(both.size, -1) for v in (x, y))
                scatter[a, b] = scatter.get((a, b), 0.0) + x.T @ y
        low, high, bars = _ranges(rows, grid, rests=rests)
        return cls(
            *(labels, grid, degree, rests, float(sample.n_clusters), active, sums),
            *(products, scatter, low, high, bars, _distinct(rows.y)),
        )

    def aligned(self, groups: tuple[Hashable, ...]) -> CurvePairs:
        """Return the sums for more groups; of those that are new all rows are rest."""
        if groups == self.groups:
            return self
        place = np.array([groups.index(group) for group in self.groups], dtype=int)
        size = len(groups)
        number, n_curves = place, size
        if self.rests:
            number = np.concatenate([place, size + place, [2 * size]])
            n_curves = 2 * size + 1

        def spread(values: Array, fill: float, number: Array = number) -> Array:
            n_rows = size if number is place else n_curves
            wide = np.full((n_rows, *values.shape[1:]), fill)
            wide[number] = values
            return wide

        def renumbered(table: Products) -> Products:
            found = {}
            for (a, b), values in table.items():
                first, second = int(number[a]), int(number[b])
                if first > second:
                    first, second, values = second, first, values.swapaxes(-1, -2)
                found[first, second] = values
            return found

        low, high = spread(self.low, np.inf), spread(self.high, -np.inf)
        new = np.setdiff1d(np.arange(size), place)
        if self.rests:
            low[size + new], high[size + new] = self.low[-1], self.high[-1]
        return replace(
            self,
            groups=groups,
            active=spread(self.active, 0.0),
            sums=spread(self.sums, 0.0),
            products=renumbered(self.products),
            scatter=renumbered(self.scatter),
            low=low,
            high=high,
            bars=spread(self.bars, 0.0, place),
        )

    def __add__(self, other: CurvePairs) -> CurvePairs:
        """Return the sums over the union of the clusters, groups aligned by label."""
        groups = self.groups
        if set(groups) != set(other.groups):
            groups = tuple(sort_labels(list(set(groups) | set(other.groups))))
        a, b = self.aligned(groups), other.aligned(groups)
        products, scatter = (
            {
                key: np.add(one.get(key, 0.0), two.get(key, 0.0))
                for key in {**one, **two}
            }
            for one, two in ((a.products, b.products), (a.scatter, b.scatter))
        )
        return replace(
            a,
            count=a.count + b.count,
            active=a.active + b.active,
            sums=a.sums + b.sums,
            products=products,
            scatter=scatter,
            low=np.minimum(a.low, b.low),
            high=np.maximum(a.high, b.high),
            bars=a.bars + b.bars,
            outcomes=_distinct(np.array(a.outcomes + b.outcomes)),
        )

    @property
    def n_curves(self) -> int:
        """The number of curves that are compared, H: groups, and as many rests."""
        return len(self.groups) * (2 if self.rests else 1)

    def _of_curves(self, values: Array) -> Array:
        """Return sums of groups, then of their rests, from those of all curves."""
        size = len(self.groups)
        if not self.rests:
            return values
        return np.concatenate([values[:size], values[size:-1] + values[-1]])

    @cached_read_only
    def totals(self) -> Array:
        """`sums` of groups, then of their rests, shape (H, C + 2 d + 2, J)."""
        return self._of_curves(self.sums)

    @property
    def _outcome(self) -> int:
        """The first column with outcomes."""
        return 2 * self.degree + 1

    @property
    def _n_columns(self) -> int:
        """The number of columns of a cluster, C."""
        return 3 * self.degree + 2

    def _cross(self, table: Products, a: int, b: int) -> Array:
        """Return cross products of two curves, of groups or of rests."""
        size, last = len(self.groups), 2 * len(self.groups)
        width = next(iter(table.values())).shape
        total = np.zeros(width)
        for i in (a,) if a < size else (a, last):
            for j in (b,) if b < size else (b, last):
                if (i, j) in table:
                    total += table[i, j]
                elif (j, i) in table:
                    total += table[j, i].swapaxes(-1, -2)
        return total

    @cached_read_only
    def _own_products(self) -> Array:
        """The products of the columns of each curve, shape (H, J, C, C)."""
        return np.stack(
            [self._cross(self.products, h, h) for h in range(self.n_curves)]
        )

    @cached_read_only
    def effective_clusters(self) -> Array:
        """``(Σ_m B_m)² / Σ_m B_m²`` by curve and point, shape (H, J)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.totals[:, 0] ** 2 / self._own_products[..., 0, 0]

    @cached_read_only
    def defined(self) -> Array:
        """Where a curve has an estimate and an error, shape (H, J), bool.

        There it is inside the range of its scores and rests on two clusters or more.
        """
        low, high = (ends[: self.n_curves, None] for ends in (self.low, self.high))
        with np.errstate(invalid="ignore"):
            return (
                (self.totals[:, 0] > 0)
                & (self.effective_clusters >= 2 * (1 - 1e-9))
                & (self._of_curves(self.active) >= 2)[:, None]
                & (self.grid >= low)
                & (self.grid <= high)
            )

    @cached_read_only
    def means(self) -> Array:
        """Weighted mean outcomes of the curves, shape (H, J); NaN where undefined."""
        means = np.full(self.defined.shape, np.nan)
        total, mass = self.totals[:, self._outcome], self.totals[:, 0]
        np.divide(total, mass, out=means, where=self.defined)
        return means

    def covariance(self, a: int, b: int) -> Array:
        """Return the covariance of the means of two curves at all points, (J, J)."""
        cross = self._cross(self.scatter, a, b)
        size, (f, g) = self.grid.size, self.means[[a, b]]
        f, mass = f[:, None], self.totals[[a, b], 0]
        cross = cross.reshape(2, size, 2, size)
        psi = cross[0, :, 0] - f * cross[1, :, 0]
        psi = psi - g * (cross[0, :, 1] - f * cross[1, :, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            covariance = psi / (mass[0][:, None] * mass[1]) * self._factor
        if a == b:
            np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))
        return covariance

    @property
    def _factor(self) -> float:
        return self.count / (self.count - 1) if self.count > 1 else np.nan

    @cached_read_only
    def variance(self) -> Array:
        """Variance of the means, shape (H, J)."""
        return np.stack([np.diag(self.covariance(h, h)) for h in range(self.n_curves)])

    def spread(self, pairs: Array) -> Array:
        """Return standard errors of the differences of means of pairs, (n, J)."""
        spread = np.empty((len(pairs), self.grid.size))
        for error, (a, b) in zip(spread, pairs.tolist(), strict=True):
            own = self.variance[a] + self.variance[b]
            variance = own - 2 * np.diag(self.covariance(a, b))
            # Rounding where both are one.
            error[:] = np.sqrt(np.where(variance < _ROUNDING * own, 0 * own, variance))
        return spread

    def joint(self, pairs: Array) -> tuple[tuple[Array, ...], Array]:
        """Return the covariance of all points of all curves, and pairs of points.

        The covariance is in blocks that count as independent: one, or of many groups
        and their rests one for each pair. Normal vectors are inside of a product of
        symmetric intervals at least as often as if they were (Royen 2014), so what
        holds for all pairs at once is at worst too wide. The places in it, of shape
        (n J, 2), are those of the pairs of curves, point by point.
        """
        size, point = self.grid.size, np.arange(self.grid.size)[:, None]
        if self.rests and len(self.groups) > MOST_TOGETHER:
            blocks, numbers = pairs.tolist(), np.arange(2 * len(pairs)).reshape(-1, 2)
        else:
            blocks, numbers = [range(self.n_curves)], pairs
        covariances = []
        for curves in blocks:
            rows = [np.hstack([self.covariance(a, b) for b in curves]) for a in curves]
            covariances.append(np.vstack(rows))
        places = numbers[:, None, :] * size + point
        return tuple(covariances), places.reshape(-1, 2)

    @cached_read_only
    def fits(self) -> CurveFits:
        """The curves as polynomials of the score around each point."""
        outcome, powers = self._outcome, np.arange(self.degree + 1)
        normal = self.totals[:, powers[:, None] + powers].transpose(0, 3, 1, 2)
        inverse = np.linalg.pinv(normal, rcond=_NO_SPREAD, hermitian=True)
        total = self.totals[:, outcome : outcome + self.degree + 1]
        fitted = np.einsum("hjkl,hlj->hjk", inverse, total)
        weights = inverse[:, :, 0]
        products = self._own_products[..., : self.degree + 1, : self.degree + 1]
        squares = np.einsum("hjk,hjkl,hjl->hj", weights, products, weights)
        effective = np.zeros(squares.shape)
        np.divide(1.0, squares, out=effective, where=squares > 0)
        residual = _residual(weights, fitted)
        found = CurveFits(fitted[..., 0], residual, weights, effective)
        for values in found:
            values.setflags(write=False)
        return found

    def fit_covariance(self, a: int, b: int) -> Array:
        """Return the covariance of the fits of two curves at each point, shape (J,)."""
        coefficient, cross = self.fits.coefficient, self._cross(self.products, a, b)
        both = np.einsum("jk,jkl,jl->j", coefficient[a], cross, coefficient[b])
        return both * self._factor

    def independent_errors(self) -> Array:
        """Return the squared errors of the fits of independent rows of variance one."""
        squares = self.totals[:, self._n_columns : -1]
        return np.einsum("hjk,hkj->hj", _product(*[self.fits.weights] * 2), squares)

    def contrast(self, first: int, second: int) -> NullContrast:
        """Return the difference of two curves by a regression in the window.

        Outcomes are regressed on the score, its square and the group, with slopes in
        common: the value is the coefficient of the group, and its error is that of the
        score test, from the residuals without the group. It is at least what
        independent rows with the variance of both groups would have.
        """
        pair, outcome, powers = (
            [first, second],
            self._outcome,
            np.arange(self.degree + 1),
        )
        own, total = self.totals[first], self.totals[pair].sum(0)
        normal = total[powers[:, None] + powers].transpose(2, 0, 1)
        inverse = np.linalg.pinv(normal, rcond=_NO_SPREAD, hermitian=True)
        sums = total[outcome : outcome + self.degree + 1]
        common = np.einsum("jkl,lj->jk", inverse, sums)
        explained = np.einsum("jkl,lj->jk", inverse, own[powers])
        spread = own[0] - np.einsum("jk,kj->j", explained, own[powers])
        top = own[outcome] - np.einsum("jk,kj->j", explained, sums)
        weights = np.stack([-explained, -explained])
        weights[0, :, 0] += 1
        squares = self.totals[pair, self._n_columns : -1]
        independent = np.einsum("ajk,akj->j", _product(weights, weights), squares)
        robust = np.zeros(self.grid.size)
        coefficient = _residual(weights, common)
        for i, a in enumerate(pair):
            for j, b in enumerate(pair):
                cross = self._cross(self.products, a, b)
                robust += np.einsum(
                    "jk,jkl,jl->j", coefficient[i], cross, coefficient[j]
                )
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, share = total[outcome] / total[0], own[0] / total[0]
            variance = total[-1] / total[0] - mean**2
            # What rounding leaves where all outcomes are equal.
            some = variance > _ROUNDING * mean**2
            variance = np.where(some, variance, 0.0)
            error = np.where(some, np.maximum(robust, variance * independent), 0.0)
            return NullContrast(
                np.where(some, top, 0.0) / spread,
                np.sqrt(error) / spread,
                spread / (total[0] * share * (1 - share)),
                variance,
            )


def _check_memory(
    rows: ScoreRows, n_curves: int, size: int, *, rests: bool, together: bool
) -> None:
    """Raise a ValueError if the cross products of curves take too much memory."""
    groups = rows.groups
    n_pairs = 3.0 * n_curves if rests and not together else n_curves**2 / 2
    if not rests and rows.cluster is None and not groups.overlapping:
        n_pairs = n_curves  # no row is of two groups
    check_memory(
        24.0 * n_pairs * (2 * size) ** 2,
        f"The covariance of {n_curves} curves with each other",
        "compare fewer groups at once, or each of many with its rest.",
    )


def _with_rests(rows: ScoreRows) -> ScoreRows:
    """Return the rows with the rest of each group, in its clusters, and everyone."""
    size = len(rows.groups)
    member = np.ones((rows.x.size, 2 * size + 1), dtype=bool)
    codes = rows.cluster_codes
    for g in range(size):
        own = near = rows.groups.mask(g)
        if codes is not None:
            near = (np.bincount(codes, own) > 0)[codes]
        member[:, g], member[:, size + g] = own, near & ~own
    return replace(rows, groups=Groups(tuple(range(2 * size + 1)), member))


class CurveSegments(NamedTuple):
    """Sums over the rows of some clusters by curve.

    Attributes
    ----------
    cluster, curve : ndarray of shape (m,), int64
        Clusters are numbered within the block.
    active : ndarray of shape (m,)
        How many clusters of the curve these are.
    values : ndarray of shape (m, C + 2 d + 2, J)
    """

    cluster: Array
    curve: Array
    active: Array
    values: Array


def _clusters(
    sample: Sample,
    grid: Array,
    bandwidth: float,
    kernel: Kernel,
    degree: int,
    n_curves: int,
) -> Iterator[CurveSegments]:
    """Yield the columns of whole clusters, some thousand rows at a time."""
    n_powers, n_columns = 2 * degree + 1, 3 * degree + 2
    width = n_columns + n_powers + 1
    step = max(256, _BLOCK_VALUES // (width * grid.size + n_curves))
    starts, n_rows = sample.segment_starts, sample.x.size
    first_of_cluster = np.append(
        np.flatnonzero(np.diff(sample.cluster, prepend=-1)), n_rows
    )
    cuts = np.searchsorted(first_of_cluster, np.arange(0, n_rows, step))
    cuts = np.append(np.unique(first_of_cluster[cuts]), n_rows)
    for low, high in pairwise(np.unique(cuts).tolist()):
        segments = slice(*np.searchsorted(starts, [low, high]))
        values = np.zeros((segments.stop - segments.start, width, grid.size))
        for start in range(low, high, step):
            part = slice(start, min(start + step, high))
            rows = np.empty((part.stop - start, width, grid.size))
            with np.errstate(over="ignore"):
                distance = (sample.x[part, None] - grid) / bandwidth
            weight = kernel(distance)
            weight[np.abs(distance) > max(_FAR, kernel.reach)] = 0.0
            # Where the weight is 0, the distance may be infinite.
            distance[weight == 0] = 0.0
            weight *= sample.share[part, None]
            y = sample.y[part, None]
            rows[:, 0] = weight
            for power in range(1, n_powers):
                np.multiply(rows[:, power - 1], distance, out=rows[:, power])
            rows[:, n_powers:n_columns] = rows[:, : degree + 1] * y[:, None]
            rows[:, n_columns:-1] = rows[:, :n_powers] * weight[:, None]
            rows[:, -1] = weight * y**2
            segment = np.searchsorted(starts, np.arange(start, part.stop), "right")
            edges = np.flatnonzero(np.diff(segment, prepend=-1))
            number = segment[edges] - 1 - segments.start
            values[number] += np.add.reduceat(rows, edges, axis=0)
        cluster, curve = (c[starts[segments]] for c in (sample.cluster, sample.group))
        cluster = np.cumsum(np.diff(cluster, prepend=cluster[0]) > 0)
        yield CurveSegments(cluster, curve, np.ones(curve.size), values)


def _less_everyone(block: CurveSegments, size: int) -> CurveSegments:
    """Return the segments with each rest replaced by its difference from everyone."""
    cluster, curve, _, values = block
    place = np.full((2 * size + 1, int(cluster.max()) + 1), -1)
    place[curve, cluster] = np.arange(curve.size)
    own = np.flatnonzero(curve < size)
    rest = place[size + curve[own], cluster[own]]
    more = np.where((rest >= 0)[:, None, None], values[rest], 0.0)
    more -= values[place[-1, cluster[own]]]
    kept = np.flatnonzero((curve < size) | (curve == 2 * size))
    return CurveSegments(
        np.concatenate([cluster[kept], cluster[own]]),
        np.concatenate([curve[kept], size + curve[own]]),
        np.concatenate([np.ones(kept.size), (rest >= 0) - 1.0]),
        np.concatenate([values[kept], more]),
    )


def _pairs_of_curves(
    block: CurveSegments, n_groups: int, *, rests: bool, together: bool
) -> list[tuple[int, int]]:
    """Return the pairs of curves whose cross products are needed."""
    curves, last = np.unique(block.curve).tolist(), 2 * n_groups
    same = [(a, a) for a in curves]
    if not rests and np.unique(block.cluster).size == block.cluster.size:
        return same  # no cluster is in two groups
    if together or not rests:
        return list(combinations_with_replacement(curves, 2))
    own = [(g, n_groups + g) for g in curves if g < n_groups]
    return same + own + [(a, last) for a in curves if a < last]


def _ranges(rows: ScoreRows, grid: Array, *, rests: bool) -> tuple[Array, Array, Array]:
    """Return the ends of the scores of groups, rests and everyone, and the bars."""
    masks = [rows.groups.mask(g) for g in range(len(rows.groups))]
    edges = np.linspace(grid.min(), grid.max(), _N_BARS + 1)
    bars = np.stack([np.histogram(rows.x[mask], edges)[0] for mask in masks])
    if rests:
        masks += [*(~mask for mask in masks), np.ones(rows.x.size, dtype=bool)]
    low = np.array([rows.x[mask].min(initial=np.inf) for mask in masks])
    high = np.array([rows.x[mask].max(initial=-np.inf) for mask in masks])
    return low, high, bars.astype(float)


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
    return np.concatenate(
        [-product, np.broadcast_to(weights, (*product.shape[:-1], weights.shape[-1]))],
        axis=-1,
    )
