"""The curves of groups on a fixed grid as sums over clusters, which add up."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._estimates.read_only import ReadOnlyArrays
from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array, sort_labels
from ._features import choose_features, group_scatter
from ._kernels import Kernel
from ._local_quadratic import Moments, NullContrast

_N_BARS = 40


@dataclass(frozen=True, eq=False)
class ScoreRange(ReadOnlyArrays):
    """Where the scores of each group (and of its rest) are.

    Attributes
    ----------
    groups : tuple of hashable, length G
    low, high : ndarray of shape (G,)
        Smallest and largest score.
    rest_low, rest_high : ndarray of shape (G,)
        Of the rows outside of the group.
    all_low, all_high : float
    rows : ndarray of shape (G,)
        Number of rows, with their weights.
    bars : ndarray of shape (G, 40)
        Rows by score, in equal parts of the range of the grid.
    """

    groups: tuple[Hashable, ...]
    low: Array
    high: Array
    rest_low: Array
    rest_high: Array
    all_low: float
    all_high: float
    rows: Array
    bars: Array

    @classmethod
    def of_sample(
        cls, groups: tuple[Hashable, ...], sample: Sample, weight: Array, grid: Array
    ) -> ScoreRange:
        """Look at the rows of a sample; those of group G + g are the rest of g."""
        size = len(groups)
        low, high = np.full(2 * size, np.inf), np.full(2 * size, -np.inf)
        np.minimum.at(low, sample.group, sample.x)
        np.maximum.at(high, sample.group, sample.x)
        own = sample.group < size
        x, code, weight = sample.x[own], sample.group[own], weight[own]
        rows = np.bincount(code, weight, minlength=size)
        edges = np.linspace(grid.min(), grid.max(), _N_BARS + 1)
        bar = np.searchsorted(edges, x, side="right") - 1
        bar[x == edges[-1]] = _N_BARS - 1
        inside = (bar >= 0) & (bar < _N_BARS)
        key = code[inside] * _N_BARS + bar[inside]
        bars = np.bincount(key, weight[inside], minlength=size * _N_BARS)
        return cls(
            groups,
            low[:size],
            high[:size],
            low[size:],
            high[size:],
            float(sample.x.min()),
            float(sample.x.max()),
            rows,
            bars.reshape(size, _N_BARS),
        )

    def aligned(self, groups: tuple[Hashable, ...]) -> ScoreRange:
        """Return the same for more groups; of those that are new all rows are rest."""
        place = [groups.index(group) for group in self.groups]

        def spread(values: Array, fill: float) -> Array:
            wide = np.full((len(groups), *values.shape[1:]), fill)
            wide[place] = values
            return wide

        return replace(
            self,
            groups=groups,
            low=spread(self.low, np.inf),
            high=spread(self.high, -np.inf),
            rest_low=spread(self.rest_low, self.all_low),
            rest_high=spread(self.rest_high, self.all_high),
            rows=spread(self.rows, 0.0),
            bars=spread(self.bars, 0.0),
        )

    def take(self, groups: Array) -> ScoreRange:
        """Return the range of some groups."""
        return replace(
            self,
            groups=tuple(self.groups[g] for g in groups),
            low=self.low[groups],
            high=self.high[groups],
            rest_low=self.rest_low[groups],
            rest_high=self.rest_high[groups],
            rows=self.rows[groups],
            bars=self.bars[groups],
        )

    def __add__(self, other: ScoreRange) -> ScoreRange:
        """Return the range of the union; groups must be the same."""
        return replace(
            self,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            rest_low=np.minimum(self.rest_low, other.rest_low),
            rest_high=np.maximum(self.rest_high, other.rest_high),
            all_low=min(self.all_low, other.all_low),
            all_high=max(self.all_high, other.all_high),
            rows=self.rows + other.rows,
            bars=self.bars + other.bars,
        )


@dataclass(frozen=True, eq=False)
class CurveSums(ReadOnlyArrays):
    """Kernel sums of groups on a grid, with their cross products over clusters.

    The curves are those of the groups, H = G. With rests, H = 2 G + 1: then follow the
    rests of the groups, and last all rows, which are the rest of a group that a part of
    the data lacks.

    Attributes
    ----------
    groups : tuple of hashable, length G
    count : float
        Number of clusters.
    active : ndarray of shape (H,)
        Number of clusters with rows of the curve.
    all_totals : ndarray of shape (H, 2, J)
        ``Σ A`` and ``Σ B`` over clusters.
    all_scatter : ndarray of shape (H, 2, J, H, 2, J)
        Their cross products.
    moments : Moments or None
        For local quadratic regression.
    outcomes : tuple of float
        The distinct outcomes if they are at most two, else the smallest, NaN and the
        largest.
    range : ScoreRange
    grid : ndarray of shape (J,)
    rests : bool
    """

    groups: tuple[Hashable, ...]
    count: float
    active: Array
    all_totals: Array
    all_scatter: Array
    moments: Moments | None
    outcomes: tuple[float, ...]
    range: ScoreRange
    grid: Array
    rests: bool

    @classmethod
    def of_rows(
        cls,
        rows: ScoreRows,
        cluster_weight: str,
        grid: Array,
        bandwidth: float,
        kernel: Kernel,
        *,
        rests: bool,
        moments: bool,
    ) -> CurveSums:
        """Sum the kernel over the clusters of rows.

        Parameters
        ----------
        rows : ScoreRows
        cluster_weight : {"cluster", "row"}
        grid : ndarray of shape (J,)
        bandwidth : float
        kernel : Kernel
        rests : bool
            Whether the curves of the rests of the groups are wanted.
        moments : bool
            Whether local quadratic regression is wanted.

        Returns
        -------
        CurveSums
        """
        groups, sample = rows.groups.labels, rows.sample(cluster_weight, rests=rests)
        weight = np.ones(rows.x.size) if rows.weight is None else rows.weight
        n_curves, whole = len(groups), sample
        if rests:
            n_curves = 2 * len(groups) + 1
            whole = _join(sample, rows.pooled(cluster_weight), n_curves - 1)
        features = choose_features(grid, whole.x, bandwidth, kernel)
        totals, scatter, active = group_scatter(whole, features, n_curves)
        return cls(
            groups,
            sample.count,
            active,
            totals,
            scatter,
            Moments.of_sample(
                whole, grid, bandwidth, kernel, n_curves, weight[whole.row]
            )
            if moments
            else None,
            _distinct(sample.y),
            ScoreRange.of_sample(groups, sample, weight[sample.row], grid),
            grid,
            rests,
        )

    def aligned(self, groups: tuple[Hashable, ...]) -> CurveSums:
        """Return the sums for more groups; of those that are new all rows are rest."""
        if groups == self.groups:
            return self
        place = {group: i for i, group in enumerate(self.groups)}
        source = [place.get(group, -1) for group in groups]
        if self.rests:
            rests = [len(self.groups) + i if i >= 0 else -2 for i in source]
            source = [*source, *rests, -2]
        # -1 is a curve without rows, and -2 that of all rows.
        curves = np.array([self.active.size - 1 if i == -2 else i for i in source])
        gone = curves < 0
        active, totals = self.active[curves], self.all_totals[curves]
        scatter = self.all_scatter[curves][:, :, :, curves]
        active[gone], totals[gone], scatter[gone] = 0.0, 0.0, 0.0
        scatter[:, :, :, gone] = 0.0
        return replace(
            self,
            groups=groups,
            active=active,
            all_totals=totals,
            all_scatter=scatter,
            moments=self.moments and self.moments.take(curves),
            range=self.range.aligned(groups),
        )

    def take(self, groups: Array, curves: Array) -> CurveSums:
        """Return the sums of some groups, and of these curves."""
        return replace(
            self,
            groups=tuple(self.groups[g] for g in groups),
            active=self.active[curves],
            all_totals=self.all_totals[curves],
            all_scatter=self.all_scatter[curves][:, :, :, curves],
            moments=self.moments and self.moments.take(curves),
            range=self.range.take(groups),
        )

    def __add__(self, other: object) -> CurveSums:
        """Return the sums over the union of the clusters, groups aligned by label."""
        if not isinstance(other, CurveSums):
            return NotImplemented
        groups = self.groups
        if set(groups) != set(other.groups):
            groups = tuple(sort_labels(list(set(groups) | set(other.groups))))
        a, b = self.aligned(groups), other.aligned(groups)
        moments = None
        if a.moments is not None and b.moments is not None:
            moments = a.moments + b.moments
        return replace(
            a,
            count=a.count + b.count,
            active=a.active + b.active,
            all_totals=a.all_totals + b.all_totals,
            all_scatter=a.all_scatter + b.all_scatter,
            moments=moments,
            outcomes=_distinct(np.array(a.outcomes + b.outcomes)),
            range=a.range + b.range,
        )

    @property
    def n_curves(self) -> int:
        """The number of curves that are compared: groups, and as many rests."""
        return len(self.groups) * (2 if self.rests else 1)

    @property
    def totals(self) -> Array:
        """``Σ A`` and ``Σ B`` of groups, then of their rests, shape (H, 2, J)."""
        return self.all_totals[: self.n_curves]

    @property
    def scatter(self) -> Array:
        """Cross products of the columns of `totals`, shape (H, 2, J, H, 2, J)."""
        return self.all_scatter[: self.n_curves, :, :, : self.n_curves]

    @cached_property
    def effective_clusters(self) -> Array:
        """``(Σ_m B_m)² / Σ_m B_m²`` by curve and point, shape (H, J)."""
        squares = np.einsum("hjhj->hj", self.scatter[:, 1, :, :, 1, :])
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.totals[:, 1] ** 2 / squares

    @cached_property
    def defined(self) -> Array:
        """Where a curve has an estimate and an error, shape (H, J), bool.

        There it is inside the range of its scores and rests on two clusters or more.
        """
        within = self.range
        low = np.concatenate([within.low, within.rest_low])[: self.n_curves]
        high = np.concatenate([within.high, within.rest_high])[: self.n_curves]
        active = self.active[: self.n_curves]
        with np.errstate(invalid="ignore"):
            return (
                (self.totals[:, 1] > 0)
                & (self.effective_clusters >= 2 * (1 - 1e-9))
                & (active >= 2)[:, None]
                & (self.grid >= low[:, None])
                & (self.grid <= high[:, None])
            )

    @cached_property
    def estimate(self) -> Array:
        """The curves, shape (H, J); NaN where they are not defined."""
        estimate = np.full(self.defined.shape, np.nan)
        total, mass = self.totals[:, 0], self.totals[:, 1]
        np.divide(total, mass, out=estimate, where=self.defined)
        return estimate

    @cached_property
    def covariance(self) -> Array:
        """Covariance of all curves, shape (H, J, H, J); NaN where undefined."""
        a, b = self.scatter[:, 0], self.scatter[:, 1]
        f = self.estimate
        g, f = f, f[:, :, None, None]
        psi = a[:, :, :, 0] - f * b[:, :, :, 0]
        psi -= g * (a[:, :, :, 1] - f * b[:, :, :, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            psi /= self.totals[:, 1][:, :, None, None] * self.totals[:, 1]
        count = self.count
        factor = count / (count - 1) if count > 1 else np.nan
        covariance = psi * factor
        variance = np.einsum("hjhj->hj", covariance)
        variance[...] = np.maximum(variance, 0)
        return covariance

    @property
    def variance(self) -> Array:
        """Variance of the curves, shape (H, J)."""
        return np.einsum("hjhj->hj", self.covariance)

    def of_one(self, curve: int) -> Array:
        """Return the covariance of the points of one curve, shape (J, J)."""
        return np.asarray(self.covariance[curve, :, curve])

    def spread(self, pairs: Array) -> Array:
        """Return standard errors of the differences of pairs of curves, (C, J)."""
        first, second = pairs.T
        points = np.arange(self.grid.size)
        own = self.variance
        both = self.covariance[first[:, None], points, second[:, None], points]
        variance = own[first] + own[second] - 2 * both
        noise = 1e-12 * (own[first] + own[second])
        return np.sqrt(np.where(variance < noise, 0 * variance, variance))

    def joint(self, pairs: Array) -> tuple[tuple[Array, ...], Array]:
        """Return the covariance of all points of all curves, and pairs of points.

        The covariance is in blocks that count as independent: here one. The places
        in it, of shape (C J, 2), are those of the pairs of curves, point by point.
        """
        n_points = self.grid.size
        places = pairs[:, None, :] * n_points + np.arange(n_points)[:, None]
        size = self.n_curves * n_points
        return (self.covariance.reshape(size, size),), places.reshape(-1, 2)

    def fit(self, curve: int) -> tuple[Array, Array, Array]:
        """Return what `Moments.fit` does of a curve."""
        return self._moments.fit(curve, self.count)

    def contrast(self, first: int, second: int) -> NullContrast:
        """Return what `Moments.contrast` does of two curves."""
        return self._moments.contrast(first, second)

    @property
    def _moments(self) -> Moments:
        if self.moments is None:
            raise ValueError("There are no moments for local quadratic regression.")
        return self.moments


def _distinct(y: Array) -> tuple[float, ...]:
    """Return the distinct values up to two, or the smallest, NaN and the largest."""
    values = np.unique(y)
    if values.size <= 2:
        return tuple(values.tolist())
    return (float(np.nanmin(values)), float("nan"), float(np.nanmax(values)))


def _join(sample: Sample, everyone: Sample, group: int) -> Sample:
    """Return both samples as one, the second as a group of its own."""
    key = np.concatenate([sample.cluster, everyone.cluster])
    order = np.argsort(key, kind="stable")  # groups stay in order within a cluster

    def joined(a: Array, b: Array) -> Array:
        return np.concatenate([a, b])[order]

    return replace(
        sample,
        x=joined(sample.x, everyone.x),
        y=joined(sample.y, everyone.y),
        share=joined(sample.share, everyone.share),
        cluster=key[order],
        group=joined(sample.group, np.full(everyone.x.size, group)),
        row=joined(sample.row, everyone.row),
    )
