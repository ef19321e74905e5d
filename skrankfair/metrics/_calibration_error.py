"""How far scores are from the mean outcomes that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.finalize import ColumnSum
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric, warn_undefined
from .._estimates.refit import RefitSums
from .._estimates.rows import Rows, cluster_table, weights_of_rows
from .._estimates.storage import stored
from .._estimates.sums import ClusterSums
from .._inputs.score_rows import CLUSTER_WEIGHTS, Sample, ScoreRows, score_rows
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_magnitude,
    check_number,
)
from ..smoothing._bandwidth import check_bandwidth, choose_bandwidth
from ..smoothing._curve import curve_on_grid
from ..smoothing._kernels import Kernel, get_kernel
from ..smoothing._sums import kernel_sums, repeated_means

# Relative to the outcomes, a fall of a mean that is only rounding.
_ROUNDING = 1e-10
_N_POINTS = 64


@dataclass(frozen=True)
class SortedScores:
    """Rows in blocks of equal score, from the lowest, with their sums so far."""

    block: Array  # shape (n,), int64: block of each row
    mass: Array  # shape (T + 1,): weight of all rows before each block, and of all
    #: Shape (T + 1,). The same for score minus outcome and for the outcome, times the
    #: weight.
    gap: Array
    outcome: Array
    #: The weight of each row, which resamples multiply by whole numbers; None where
    #: rows have unlike ones, and bins may cut rows.
    unit: float | None
    scale: float  # largest size of an outcome

    @classmethod
    def of_rows(
        cls,
        x: Array,
        y: Array,
        weight: Array,
        unit: float | None,
        block: Array | None = None,
    ) -> SortedScores:
        """Sort rows; `block` is known if they were sorted before."""
        if block is None:
            _, block = np.unique(x, return_inverse=True)

        def before(values: Array) -> Array:
            return np.concatenate([[0.0], np.cumsum(np.bincount(block, values))])

        mass = before(weight)
        if unit is not None:
            mass = unit * np.rint(mass / unit)
        return cls(
            block,
            mass,
            before(weight * (x - y)),
            before(weight * y),
            unit,
            float(np.abs(y).max(initial=0.0)),
        )

    def edges(self, n_bins: int) -> Array:
        """Return the mass before each bin, and of all, shape (n_bins + 1,).

        The row of rank r (from 0) of n is in bin ``floor(r · n_bins / n)``.
        """
        if self.unit is not None:
            total = round(self.mass[-1] / self.unit)
            return self.unit * -(-np.arange(n_bins + 1) * total // n_bins).astype(float)
        edges = np.arange(n_bins + 1) * self.mass[-1] / n_bins
        edges[-1] = self.mass[-1]  # but for rounding
        return edges

    def _within(self, edges: Array, sums: Array) -> Array:
        """Return the sums within bins; of a block that is cut, its share."""
        return np.diff(np.interp(edges, self.mass, sums))

    def rises(self, n_bins: int) -> bool:
        """Return whether the mean outcome of no bin is below that of the one before."""
        edges = self.edges(n_bins)
        mass = np.diff(edges)
        there = mass > 0
        means = self._within(edges, self.outcome)[there] / mass[there]
        return bool((np.diff(means) >= -_ROUNDING * self.scale).all())

    def sweep(self) -> int:
        """Return the last number of bins before the means fall somewhere.

        It looks at 2 bins and more, but at fewer than rows, which would be no bins.
        """
        n_rows = self.block.size
        block_means = np.diff(self.outcome) / np.diff(self.mass)
        if (np.diff(block_means) >= 0).all():
            return max(1, n_rows - 1)
        for n_bins in range(2, n_rows):
            if not self.rises(n_bins):
                return n_bins - 1
        return max(1, n_rows - 1)

    def gaps(self, n_bins: int) -> tuple[Array, Array, Array]:
        """Return the mass before each bin, and mean score minus outcome in each.

        And, third, which bins have rows.
        """
        edges = self.edges(n_bins)
        mass = np.diff(edges)
        gaps = np.zeros(n_bins)
        np.divide(self._within(edges, self.gap), mass, out=gaps, where=mass > 0)
        return edges, gaps, mass > 0

    def error(self, n_bins: int) -> float:
        """Return the sum of the squared gaps, each times the mass of its bin."""
        edges, gaps, _ = self.gaps(n_bins)
        return float(np.diff(edges) @ gaps**2)

    def row_means(self, n_bins: int, power: int) -> Array:
        """Return a power of the gap of each row's bins, shape (n,).

        Tied rows are in all the bins of their block, in parts.
        """
        edges, gaps, _ = self.gaps(n_bins)
        before = np.concatenate([[0.0], np.cumsum(np.diff(edges) * gaps**power)])
        sums = np.diff(np.interp(self.mass, edges, before))
        mass = np.diff(self.mass)
        means = np.zeros(mass.size)
        np.divide(sums, mass, out=means, where=mass > 0)
        return means[self.block]

    def noise(self, n_bins: int, sample: Sample) -> float:
        """Return the expected sum of `error` if the scores were the mean outcomes.

        It is the sum over bins of the variance of the mean gap, from the clusters, each
        times the mass of its bin. Bins that lie within a block of equal scores have one
        mean and count as one; a bin of one cluster has no variance, and the whole of
        its gap may be noise.
        """
        edges = self._merged(self.edges(n_bins))
        mass = np.diff(edges)
        gap = self._within(edges, self.gap) / mass
        squares, leverage = np.zeros((2, mass.size))
        # The bin that each block begins in, and how many it is in.
        first = np.searchsorted(edges, self.mass[:-1], side="right") - 1
        times = np.searchsorted(edges, self.mass[1:]) - first
        step = _BLOCK_ROWS if sample.alone else sample.x.size
        place: Any
        cluster: Any
        for start in range(0, sample.x.size, step):
            some = slice(start, start + step)
            row, place, part = self._parts_of_rows(edges, first, times, some)
            part *= sample.share[row]
            pull = part * (sample.x[row] - sample.y[row] - gap[place])
            cluster = sample.cluster[row]
            if not sample.alone:
                key, same = np.unique(cluster * mass.size + place, return_inverse=True)
                part, pull = np.bincount(same, part), np.bincount(same, pull)
                cluster, place = key // mass.size, key % mass.size
            squares += np.bincount(place, pull**2, minlength=mass.size)
            leverage += np.bincount(place, part**2, minlength=mass.size)
        squares, leverage = squares / mass, leverage / mass**2
        alone = leverage > 1 - _ROUNDING
        known = np.where(alone, 0.0, squares / np.where(alone, 1.0, 1 - leverage))
        return float(np.where(alone, mass * gap**2, known).sum())

    def _merged(self, edges: Array) -> Array:
        """Return the edges of bins without those between bins of one block."""
        block = np.searchsorted(self.mass, edges, side="right") - 1
        block[self.mass[block] == edges] = -1  # between two blocks
        between = np.zeros(edges.size, dtype=bool)
        between[1:-1] = (block[1:-1] >= 0) & (block[:-2] == block[1:-1])
        between[1:-1] &= block[2:] == block[1:-1]
        return np.unique(edges[~between])

    def _parts_of_rows(
        self, edges: Array, first: Array, times: Array, rows: slice
    ) -> tuple[Array, Array, Array]:
        """Return rows, the bins they are in, and what part of the row is."""
        block = self.block[rows]
        times = times[block]
        row = np.repeat(np.arange(block.size), times)
        nth = np.arange(row.size) - np.repeat(np.cumsum(times) - times, times)
        block = block[row]
        place, low, high = first[block] + nth, self.mass[block], self.mass[block + 1]
        within = np.minimum(high, edges[place + 1]) - np.maximum(low, edges[place])
        return row + rows.start, place, within / (high - low)


def _common_weight(sample: Sample) -> float | None:
    """Return the weight of each row if all count alike, or None."""
    alike = np.allclose(sample.share, sample.unit, rtol=1e-14, atol=0)
    return float(sample.share[0]) if alike and sample.x.size else None


METHODS = ("smooth", "binned", "sweep")
_NOT_COMPARED = (
    "noise makes it larger in smaller groups, which equally well calibrated groups "
    "would be told apart by. Use skrankfair.inference.predictive_parity_test."
)
_NOT_PAIRED = (
    "the numbers of bins of a sweep are chosen from the outcomes, which equally well "
    "calibrated scores would be told apart by. Use method='smooth' or 'binned'."
)
# Columns of a group: sum of squares, what they are of, rows, and the sum of squares
# over narrow bins.
_ROWS = ColumnSum(2, 3)
_FEWEST_NARROW = 15
# Rows that are looked at at once.
_BLOCK_ROWS = 1 << 16


@stored("RootMeanSquare")
@dataclass(frozen=True)
class RootMeanSquare:
    """The root of a ratio of two columns."""

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the roots, shape (..., G)."""
        ratio = np.full(by_group.shape[:-1], np.nan, dtype=by_group.dtype)
        squares, mass = by_group[..., 0], by_group[..., 1]
        np.divide(squares, mass, out=ratio, where=mass.real != 0)
        # A sum of squares that rounding has made negative.
        return np.sqrt(np.where(ratio.real < 0, 0, ratio))


@stored("KnownNoise")
@dataclass(frozen=True)
class KnownNoise:
    """The expected square of an error that is 0, by group, as it was found."""

    by_group: tuple[float, ...]

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return it, shape (G,)."""
        return np.array(self.by_group)


@stored("BinnedGaps")
@dataclass(frozen=True)
class BinnedGaps:
    """The same from the columns of bins: gaps, masses, their squares and product."""

    n_bins: int

    @property
    def columns(self) -> list[slice]:
        """The columns of each kind, B of them."""
        return [slice(i * self.n_bins, (i + 1) * self.n_bins) for i in range(5)]

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the roots, shape (..., G)."""
        gap, mass = (by_group[..., part] for part in self.columns[:2])
        squares = np.zeros_like(gap)
        np.divide(gap * gap, mass, out=squares, where=mass.real != 0)
        columns = np.stack([squares.sum(-1), mass.sum(-1)], axis=-1)
        return RootMeanSquare()(columns, shared)


@stored("BinnedNoise")
@dataclass(frozen=True)
class BinnedNoise:
    """The expected square of an error that is 0, from the columns of `BinnedGaps`."""

    n_bins: int

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return it, shape (..., G); a bin of one cluster is noise as a whole."""
        parts = BinnedGaps(self.n_bins).columns
        gap, mass, gaps, masses, both = (by_group[..., part] for part in parts)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, leverage = gap / mass, masses / mass**2
            squares = gaps - 2 * mean * both + mean**2 * masses
            noise = np.where(
                leverage > 1 - _ROUNDING, gap * mean, squares / mass / (1 - leverage)
            )
            return np.where(mass > 0, noise, 0.0).sum(-1) / mass.sum(-1)


def bandwidth_of_group(
    bandwidth: Any, group: Hashable, sample: Sample, kernel: Kernel
) -> float:
    """Return the bandwidth of one group: by name, by a rule on its rows, or a number.

    Where its scores have no spread every bandwidth gives the mean outcome, and it is 1.
    """
    bandwidth = own_bandwidth(bandwidth, group)
    return choose_bandwidth(bandwidth, sample, kernel) or 1.0


def own_bandwidth(bandwidth: Any, group: Hashable) -> Any:
    """Return the number or the rule for one group."""
    if not isinstance(bandwidth, Mapping):
        return bandwidth
    if group not in bandwidth:
        raise ValueError(
            f"bandwidth must name every group; it has no {fmt.label(group)}."
        )
    check_number(bandwidth[group], "bandwidth", 0, np.inf, inclusive=(False, False))
    return bandwidth[group]


@stored("NarrowSquare")
@dataclass(frozen=True)
class NarrowSquare:
    """The mean of the squares over narrow bins."""

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return it, shape (..., G)."""
        ratio = np.full(by_group.shape[:-1], np.nan, dtype=by_group.dtype)
        mass = by_group[..., 1]
        np.divide(by_group[..., 3], mass, out=ratio, where=mass.real != 0)
        return ratio


@dataclass(frozen=True)
class _BinSquares:
    """The squares of the gaps of one group in bins of equal mass."""

    sample: Sample
    scores: SortedScores
    n_bins: int

    def linear(self) -> Array:
        """Return what a unit of weight of each row adds to their sum, to first order.

        Shape (n,).
        """
        linear = self.scores.row_means(self.n_bins, 1)
        linear *= 2 * (self.sample.x - self.sample.y)
        linear -= self.scores.row_means(self.n_bins, 2)
        return linear

    def noise(self) -> float:
        """Return their sum, if noise alone made it."""
        return self.scores.noise(self.n_bins, self.sample)

    def refit(self, weight: Array) -> float:
        """Return their sum for other weights of the rows."""
        x, y = self.sample.x, self.sample.y
        again = SortedScores.of_rows(x, y, weight, self.scores.unit, self.scores.block)
        return again.error(self.n_bins)


@dataclass(frozen=True)
class _SmoothSquares:
    """The squared distances of the scores of one group and its curve."""

    sample: Sample
    bandwidth: float
    kernel: Kernel

    def linear(self) -> Array:
        """Return what a unit of weight of each row adds to their sum, to first order.

        A row also moves the curve: at score s by ``w K (y - f(s)) / B(s)``, which
        changes the sum of squares by ``-2 Σ w r δf``; these changes sum to 0 over all
        rows.
        """
        sample, smooth = self.sample, (self.bandwidth, self.kernel)
        x, y = sample.x, sample.y
        curve, mass = kernel_sums(x, x, sample.columns(y), *smooth)
        curve /= mass
        gap = np.subtract(x, curve)
        pull = np.divide(gap, mass, out=mass)
        pull *= sample.share
        curve *= pull
        columns = np.stack([pull, curve, sample.share])
        del pull, curve, mass
        level, slope, _ = kernel_sums(x, x, columns, *smooth)
        level *= y
        slope -= level
        slope *= 2
        gap *= gap
        gap += slope
        return gap

    def noise(self) -> float:
        """Return their sum, if noise alone made it: the variance of the curve.

        At a few scores, and between them by lines.
        """
        x = self.sample.x
        points = np.unique(np.quantile(x, np.linspace(0, 1, _N_POINTS)))
        curve = curve_on_grid(self.sample, points, self.bandwidth, self.kernel)
        variance = np.interp(x, points, curve.standard_error**2)
        return float(self.sample.share @ variance)

    def refit(self, weight: Array) -> float:
        """Return their sum for other weights of the rows."""
        x, y = self.sample.x, self.sample.y
        curve = repeated_means(x, y, weight[None], self.bandwidth, self.kernel)[0]
        gap = np.where(weight > 0, x - curve, 0.0)
        return float(weight @ gap**2)


#: The squares of a group, and those of bins too narrow to hide anything.
_Parts: TypeAlias = Iterator[_SmoothSquares | _BinSquares]


def _fitted(
    rows: ScoreRows,
    sample: Sample,
    make_parts: Callable[[Hashable, Sample], _Parts],
) -> tuple[RefitSums, KnownNoise, KnownNoise]:
    """Return the sums of parts that are fitted to each group, and their noise.

    What a bootstrap needs of the parts is made when it asks for it.
    """
    labels = rows.groups.labels
    linear = np.zeros((2, sample.x.size))
    noise = np.full((2, len(labels)), np.nan)
    of_groups = sample.rows_of_groups(len(labels))
    present = [(g, own) for g, own in enumerate(of_groups) if own.size]

    def measure(g: int, own: Array) -> None:
        part = sample.take(own)
        for i, squares in enumerate(make_parts(labels[g], part)):
            linear[i, own] = squares.linear()
            noise[i, g] = squares.noise() / part.share.sum()

    for g, own in present:
        measure(g, own)
    linear *= sample.share
    counts = weights_of_rows(rows, sample)
    table = cluster_table(rows, sample, [linear[0], sample.share, counts, linear[1]])

    @cache
    def parts() -> list[tuple[Any, ...]]:
        return [
            (g, own, *make_parts(labels[g], sample.take(own))) for g, own in present
        ]

    def refit_once(cluster_counts: Array) -> Array:
        totals = np.zeros((len(labels), 4))
        times = cluster_counts[sample.cluster]
        for g, own, squares, narrow in parts():
            weight = sample.share[own] * times[own]
            totals[g] = (
                squares.refit(weight),
                weight.sum(),
                counts[own] @ times[own],
                narrow.refit(weight),
            )
        return totals

    def refit(cluster_counts: Array) -> Array:
        return np.stack([refit_once(counts) for counts in cluster_counts])

    own_noise, narrow_noise = (KnownNoise(tuple(v.tolist())) for v in noise)
    sums = RefitSums.of_table(labels, table, [_ROWS], refit)
    return sums, own_noise, narrow_noise


def _check_edges(bins: Any, x: Array) -> Array | None:
    """Return the edges of the bins, or None for a number of bins."""
    if isinstance(bins, int | np.integer | float | str) or bins is None:
        check_number(bins, "bins", 1, np.inf, integer=True)
        return None
    edges = as_numbers(bins, "bins")
    if edges.size < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(
            "bins must be a number of bins or at least two increasing edges; got "
            f"{bins!r}."
        )
    if x.min() < edges[0] or x.max() > edges[-1]:
        raise ValueError(
            f"bins must contain all scores, from {x.min():g} to {x.max():g}; the edges "
            f"go from {edges[0]:g} to {edges[-1]:g}."
        )
    return edges


def _edge_sums(rows: ScoreRows, sample: Sample, edges: Array) -> ClusterSums:
    """Return the sums of bins with fixed edges, which add up."""
    n_bins, alone = edges.size - 1, sample.alone
    cells: Any = slice(None) if alone else sample.segment_starts
    columns = _columns_of_rows if alone else _columns_of_bins
    rows_of_sums = Rows.from_entries(
        sample.cluster[cells],
        sample.group[cells],
        columns(sample, edges, weights_of_rows(rows, sample)),
        n_rows=sample.n_clusters,
        n_groups=len(rows.groups),
        labels=rows.cluster_labels,
    )
    if rows.weight is not None:
        number = np.zeros((len(rows.groups), 5 * n_bins + 1))
        number[:, -1] = np.bincount(sample.group, minlength=len(number))
        rows_of_sums = replace(rows_of_sums, unweighted=(number, np.zeros(0)))
    support = ColumnSum(5 * n_bins, 5 * n_bins + 1)
    return ClusterSums.from_clusters(rows.groups.labels, rows_of_sums, [support])


def _bins(sample: Sample, edges: Array) -> Array:
    """Return the bin of each row."""
    place = np.searchsorted(edges, sample.x, side="right") - 1
    return np.minimum(place, edges.size - 2)


def _columns_of_rows(sample: Sample, edges: Array, counts: Array) -> Any:
    """Return the columns of `BinnedGaps`, and the number of rows, of each row."""
    from scipy import sparse

    n_bins = edges.size - 1
    at = np.empty((sample.x.size, 6), dtype=np.min_scalar_type(5 * n_bins))
    at[:] = _bins(sample, edges)[:, None]
    at += (np.arange(6) * n_bins).astype(at.dtype)
    at[:, 5] = 5 * n_bins
    values = np.empty(at.shape)
    values[:, 0] = sample.share * (sample.x - sample.y)
    values[:, 1], values[:, 5] = sample.share, counts
    values[:, 2:4] = values[:, :2] ** 2
    values[:, 4] = values[:, 0] * values[:, 1]
    where = values.ravel(), at.ravel(), np.arange(0, at.size + 1, 6)
    return sparse.csr_array(where, shape=(len(at), 5 * n_bins + 1))


def _columns_of_bins(sample: Sample, edges: Array, counts: Array) -> Array:
    """Return the same of the rows of each cluster in a group."""
    n_bins, starts, place = edges.size - 1, sample.segment_starts, _bins(sample, edges)
    table = np.zeros((starts.size, 5 * n_bins + 1))
    entry = np.repeat(np.arange(starts.size), np.diff(starts, append=place.size))
    np.add.at(table, (entry, place), sample.share * (sample.x - sample.y))
    np.add.at(table, (entry, n_bins + place), sample.share)
    table[:, -1] = np.add.reduceat(counts, starts)
    gap, mass, *squares = BinnedGaps(n_bins).columns
    for part, (one, other) in zip(
        squares, ((gap, gap), (mass, mass), (gap, mass)), strict=True
    ):
        table[:, part] = table[:, one] * table[:, other]
    return table


def calibration_error(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    method: str = "smooth",
    bandwidth: str | float | Mapping[Hashable, float] = "rule_of_thumb",
    kernel: str = "gaussian",
    cluster_weight: str = "cluster",
    bins: Any = 15,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Root mean square distance of scores from the mean outcomes at these scores.

    ``(E[(S - E[Y | S, G = g])² | G = g])^(1/2)``, in the unit of the outcome. It is 0
    for a group whose scores mean what they say. The mean outcome at a score has to be
    estimated, and the three methods differ in how they do so.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real.
    y_score : array-like of shape (n,)
        Scores on the scale of the outcomes, such as probabilities.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    method : {"smooth", "binned", "sweep"}, default="smooth"
        "smooth" takes a Nadaraya-Watson curve. "binned" takes bins of equal mass (the
        usual expected calibration error, with squares). "sweep" takes as many bins as
        possible without a fall in their mean outcomes (Roelofs et al. 2022).
    bandwidth : {"rule_of_thumb", "undersmooth", "cv"}, float or mapping of group to \
            float, default="rule_of_thumb"
        For "smooth", in units of the score; a rule (see
        `skrankfair.smoothing.nadaraya_watson`) is applied to each group.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian"
        Weight of a row by its distance in the score. Only "smooth" uses it.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row. The
        mean over scores of "smooth" has the same weights. Bins count rows.
    bins : int or array-like of shape (B + 1,), default=15
        For "binned": the number of bins, or their edges, with which results add up.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group, whose support is its number of rows.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, a bandwidth is not
        positive, the edges do not contain the scores, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has only one cluster, so that it has no standard error.

    See Also
    --------
    skrankfair.inference.predictive_parity_test : Whether and where the groups differ.
    positive_rate_shift, rank_shift : What calibration would change.

    Notes
    -----
    "smooth": ``(Σ w (s - f(s))² / Σ w)^(1/2)`` over the rows of the group, f its curve,
    w one over the rows of the cluster. "binned" and "sweep": the root of ``Σ_b n_b / n
    (mean score - mean outcome)²``, the row of rank r in bin ``floor(r B / n)``; rows of
    equal score have their mean outcome, so their order does not matter. "sweep" tries
    2, 3, ... bins and takes the last number before a mean falls, never the number of
    rows.

    Standard errors are those of the delta method over clusters. For "smooth" they
    include the error of the curve itself; for the bins they take the bins as given.
    They are errors around the estimate and do not see its bias: noise makes any
    estimated curve miss the scores, so the estimated error of calibrated scores is
    above 0. Intervals see it (Bröcker 2012; Kumar, Liang and Ma 2019). The square of
    the estimate is expected to be larger by the mean variance of the curve (or of the
    means of the bins), which is estimated over clusters; the lower end of the interval
    is that of the square less this noise, and the upper end that of the square as it
    is. So the interval of a calibrated group begins at 0, and is wide where there are
    few rows. Resamples would have the noise twice: ``method="bootstrap"`` is refused.

    A bandwidth or a bin also hides what is narrower than it, such as waves, or the
    slope within the few bins of a sweep. So the upper end is at least that of the mean
    square over narrow bins of equal mass, as many as the root of the number of clusters
    (15 or more), less its noise. Intervals hold the error of the population by this;
    those of given edges hold only what the bins show.

    The smaller the group, the larger its noise, so groups have no contrast
    (``contrast`` raises a ValueError): a test would reject in most data sets with
    equally well calibrated groups of which one has 3% of the rows.
    `predictive_parity_test` compares the curves themselves. ``disparity_bound`` is made
    of the intervals of the groups. `skrankfair.inference.compare` compares two scores
    by all methods but "sweep", whose numbers of bins differ by chance.

    Results add up only for "binned" with given edges. With the curve of all rows the
    sum of "smooth" would too, but not its errors, in which each row moves the curve at
    all others, nor its intervals, whose narrow bins are cut at ranks among all rows.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §7.1 and appendix A.

    Bröcker, J. (2012). "Estimating reliability and resolution of probability forecasts
    through decomposition of the empirical score". Climate Dynamics 39.

    Kumar, A., Liang, P., Ma, T. (2019). "Verified uncertainty calibration". NeurIPS.

    Roelofs, R., Cain, N., Shlens, J., Mozer, M. C. (2022). "Mitigating bias in
    calibration error estimation". AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import calibration_error
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], size=4000)
    >>> score = rng.uniform(size=4000)
    >>> y = rng.uniform(size=4000) < np.where(group == "a", score, score**2)
    >>> r = calibration_error(y, score, sensitive_features=group)
    >>> r.estimate.round(2)  # of b: (∫ (s - s²)² ds)^(1/2) = 0.18
    array([0.03, 0.19])
    """
    check_choice(method, "method", METHODS)
    check_choice(cluster_weight, "cluster_weight", CLUSTER_WEIGHTS)
    if not isinstance(bandwidth, Mapping):
        check_bandwidth(bandwidth)
    smoother = get_kernel(kernel)
    rows = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
        missing=missing,
    )
    check_magnitude(y_score=rows.x)
    edges = _check_edges(bins, rows.x) if method == "binned" else None
    chosen: dict[Hashable, float] = {}
    parameters: dict[str, Any] = {"method": method}
    sample = rows.sample(cluster_weight if method == "smooth" else "row")

    def make_parts(group: Hashable, own: Sample) -> _Parts:
        if method == "smooth":
            if group not in chosen:
                chosen[group] = bandwidth_of_group(bandwidth, group, own, smoother)
            yield _SmoothSquares(own, chosen[group], smoother)
        scores = SortedScores.of_rows(own.x, own.y, own.share, _common_weight(own))
        if method != "smooth":
            if group not in chosen:
                chosen[group] = int(bins) if method == "binned" else scores.sweep()
            yield _BinSquares(own, scores, int(chosen[group]))
        # As many narrow bins as the root of the number of clusters, at least 15.
        n_narrow = max(_FEWEST_NARROW, round(own.n_active**0.5))
        yield _BinSquares(own, scores, n_narrow)

    if edges is not None:
        sums = _edge_sums(rows, sample, edges)
        n_bins = edges.size - 1
        support = ColumnSum(5 * n_bins, 5 * n_bins + 1)
        finalize: Any = BinnedGaps(n_bins)
        noise: Any = BinnedNoise(n_bins)
        del sample  # large beside many groups
        narrow = None
        first_pass: dict[str, Any] = {"bins": tuple(edges.tolist())}
    else:
        sums, noise, hidden = _fitted(rows, sample, make_parts)
        narrow = NarrowSquare(), hidden
        finalize, support = RootMeanSquare(), _ROWS
        first_pass = {"bandwidth" if method == "smooth" else "bins": chosen}
    metric = Metric(
        "calibration_error",
        finalize,
        support,
        unit="rows",
        not_compared=_NOT_COMPARED,
        not_paired=_NOT_PAIRED if method == "sweep" else None,
        better="low",
        noise=noise,
        narrow=narrow,
    )
    if method == "smooth":
        parameters |= {"kernel": kernel, "cluster_weight": cluster_weight}
    result = GroupEstimates(metric, sums, parameters, first_pass, missing=rows.missing)
    return warn_undefined(result)
