"""The curves of groups on a fixed grid as sums over clusters, which add up."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._estimates.sums import ClusterSums
from .._inputs.score_rows import Sample
from .._inputs.validation import Array
from ._features import choose_features, group_scatter
from ._kernels import Kernel

_N_BARS = 40


@dataclass(frozen=True, eq=False)
class ScoreRange:
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
class CurveSums:
    """Kernel sums of groups on a grid, with their cross products over clusters.

    Attributes
    ----------
    sums : ClusterSums
        Columns of a group: ``A`` and ``B`` on the grid. With rests also those of all
        rows less those of its rest, which are 0 in a part of the data without the
        group; the columns of all rows are shared.
    range : ScoreRange
    grid : ndarray of shape (J,)
    rests : bool
    """

    sums: ClusterSums
    range: ScoreRange
    grid: Array
    rests: bool

    @classmethod
    def of_sample(
        cls,
        groups: tuple[Hashable, ...],
        sample: Sample,
        weight: Array,
        grid: Array,
        bandwidth: float,
        kernel: Kernel,
        everyone: Sample | None = None,
    ) -> CurveSums:
        """Sum the kernel over the clusters of a sample.

        Parameters
        ----------
        groups : tuple of hashable, length G
        sample : Sample
            With the rests as groups G to 2 G - 1, if `everyone` is given.
        weight : ndarray of shape (n,)
            Of the rows of the sample, in the number of rows.
        grid : ndarray of shape (J,)
        bandwidth : float
        kernel : Kernel
        everyone : Sample or None
            All rows as one group.

        Returns
        -------
        CurveSums
        """
        size = len(groups)
        n_groups = size
        whole = sample
        if everyone is not None:
            n_groups = 2 * size + 1
            whole = _join(sample, everyone, n_groups - 1)
        features = choose_features(grid, whole.x, bandwidth, kernel)
        totals, scatter, active = group_scatter(whole, features, n_groups)
        totals = totals.reshape(n_groups, -1)
        shared, scatter = np.zeros(0), scatter.reshape((totals.size,) * 2)
        actives, shared_active = active[None, :size], np.zeros(1)
        by_group = totals[:size]
        if everyone is not None:
            shared = totals[-1]
            by_group = np.hstack([by_group, shared - totals[size:-1]])
            scatter = _less_rest(scatter, size)
            actives = np.stack([active[:size], active[size:-1] - active[-1]])
            shared_active = np.array([0.0, active[-1]])
        sums = ClusterSums(
            groups=groups,
            by_group=by_group,
            shared=shared,
            count=sample.count,
            active=actives,
            shared_active=shared_active,
            scatter=scatter,
            kind="cluster",
            table=None,
        )
        return cls(
            sums,
            ScoreRange.of_sample(groups, sample, weight, grid),
            grid,
            everyone is not None,
        )

    def __add__(self, other: CurveSums) -> CurveSums:
        """Return the sums over the union of the clusters."""
        sums = self.sums + other.sums
        ranges = [part.range.aligned(sums.groups) for part in (self, other)]
        return replace(self, sums=sums, range=ranges[0] + ranges[1])

    @cached_property
    def totals(self) -> Array:
        """``Σ A`` and ``Σ B`` of groups, then of their rests, shape (H, 2, J)."""
        totals = self.sums.totals
        if self.rests:
            totals = _less_rest(totals, len(self.sums.groups), back=True)
        return totals.reshape(-1, 2, self.grid.size)[: self.n_curves]

    @property
    def n_curves(self) -> int:
        """The number of curves: groups, and as many rests."""
        return len(self.sums.groups) * (2 if self.rests else 1)

    @cached_property
    def scatter(self) -> Array:
        """Cross products of the columns of `totals`, shape (H, 2, J, H, 2, J)."""
        scatter = self.sums.scatter
        if self.rests:
            scatter = _less_rest(scatter, len(self.sums.groups), back=True)
        n, size = self.n_curves, 2 * self.grid.size
        shape = (n, 2, self.grid.size)
        return scatter[: n * size, : n * size].reshape(*shape, *shape)

    @cached_property
    def effective_clusters(self) -> Array:
        """``(Σ_m B_m)² / Σ_m B_m²`` by curve and point, shape (H, J)."""
        squares = np.einsum("hjhj->hj", self.scatter[:, 1, :, :, 1, :])
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.totals[:, 1] ** 2 / squares

    @cached_property
    def defined(self) -> Array:
        """Where a curve has an estimate and an error, shape (H, J), bool.

        Inside the range of its scores, and resting on two clusters or more.
        """
        within = self.range
        low = np.concatenate([within.low, within.rest_low])[: self.n_curves]
        high = np.concatenate([within.high, within.rest_high])[: self.n_curves]
        active = (self.sums.active + self.sums.shared_active[:, None]).ravel()
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
        count = self.sums.count
        factor = count / (count - 1) if count > 1 else np.nan
        covariance = psi * factor
        variance = np.einsum("hjhj->hj", covariance)
        variance[...] = np.maximum(variance, 0)
        return covariance


def _less_rest(values: Array, size: int, *, back: bool = False) -> Array:
    """Change columns of (own, rest, all) to those of (own, all less rest; all).

    Parameters
    ----------
    values : ndarray of shape (K,) or (K, K), K = (2 G + 1) C
        Blocks of C columns: the groups, their rests, all; a matrix has them on both
        axes. Afterwards the two blocks of a group follow each other.
    size : int
        G.
    back : bool, default=False
        The other way round.

    Returns
    -------
    ndarray of the same shape
    """
    blocks = np.arange(2 * size)
    order = blocks.reshape(2, size).T.ravel()
    rests = np.arange(1, 2 * size, 2)
    if back:
        order, rests = np.argsort(order), size + np.arange(size)
    for axis in range(values.ndim):
        rows = np.moveaxis(values, axis, 0)
        parts = rows.reshape(2 * size + 1, -1, *rows.shape[1:])
        parts = np.concatenate([parts[:-1][order], parts[-1:]])
        parts[rests] = parts[-1] - parts[rests]
        values = np.moveaxis(parts.reshape(rows.shape), 0, axis)
    return values


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
