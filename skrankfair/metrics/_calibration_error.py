"""`calibration_error`: how far scores are from the mean outcomes at these scores."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from .._estimates import formatting as fmt
from .._estimates.finalize import ColumnSum, Finalize, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric, warn_undefined
from .._estimates.rows import Rows, cluster_table, weights_of_rows
from .._estimates.storage import stored
from .._estimates.sums import ClusterSums
from .._inputs.columns import given_columns
from .._inputs.groups import rows_of_ranges, stable_order, starts_of_runs
from .._inputs.ranking import order_rows
from .._inputs.score_rows import Sample, ScoreRows, score_rows
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_magnitude,
    check_number,
)
from ..smoothing._bandwidth import check_bandwidth, choose_bandwidth
from ..smoothing._curve import curve_on_grid
from ..smoothing._kernels import Kernel, get_kernel, kernel_sums, repeated_means

_NOT_COMPARED = (
    "noise makes it larger in smaller groups, which equally well calibrated groups "
    "would be told apart by. Use skrankfair.inference.predictive_parity_test."
)
_NOT_PAIRED = (
    "bins of a sweep and bandwidths of 'cv' are chosen from the outcomes, which tell "
    "equally well calibrated scores apart. Use method='binned', or another bandwidth."
)
# Numbers of a group's columns: the sum of squares, the mass that it is divided by, the
# number of rows, and the sum of squares over narrow bins.
_ROWS = ColumnSum(2, 3)
_FEWEST_NARROW = 15
# A fall of a mean below this share of the outcomes is rounding.
_ROUNDING = 1e-10
# Rows of small groups that are worked on at once.
_TOGETHER = 1 << 12
# The number of scores at which the variance of a curve is computed.
_N_POINTS = 64


@dataclass(frozen=True)
class SortedScores:
    """Rows in blocks of equal score, from the lowest, of one group after the other.

    Groups follow each other on one line of mass, each in a unit of its own.
    """

    block: Array  # shape (n,), int64: block of each row
    first: Array  # shape (G + 1,): first block of each group, and the number of blocks
    size: Array  # shape (G,): number of rows
    #: Shape (G,). The weight that all rows of a group share, of which resamples have
    #: multiples; else a power of two near the mean weight, which adds no rounding.
    unit: Array
    alike: Array  # shape (G,): whether rows share one weight; else an edge may cut one
    weight: Array  # shape (n,)

    @classmethod
    def of_sample(cls, sample: Sample) -> SortedScores:
        """Sort the rows of groups, which come one group after the other."""
        starts = np.append(starts_of_runs(sample.group), sample.x.size)
        order, size = order_rows(sample.group, -sample.x), np.diff(starts)
        first, block = starts_of_runs(sample.x[order], starts), np.empty_like(order)
        block[order] = np.searchsorted(first, np.arange(order.size), side="right") - 1
        alike = np.isclose(sample.share, sample.unit, rtol=1e-14, atol=0)
        alike = np.logical_and.reduceat(alike, starts[:-1])
        unit = np.add.reduceat(sample.share, starts[:-1]) / size
        unit = np.where(alike, unit, np.exp2(np.rint(np.log2(unit))))
        first = np.searchsorted(first, starts)
        return cls(block, first, size, unit, alike, sample.share)

    @cached_property
    def share(self) -> Array:
        """The weight of each row in the unit of its group, shape (n,)."""
        return self.weight / np.repeat(self.unit, self.size)

    @cached_property
    def mass(self) -> Array:
        """The mass of all rows before each block, and of all, shape (T + 1,)."""
        size = np.bincount(self.block, self.share)
        np.rint(size, out=size, where=np.repeat(self.alike, np.diff(self.first)))
        return np.append(0.0, np.cumsum(size))

    def edges(self, n_bins: Array) -> tuple[Array, Array]:
        """Return the mass before each bin, and of all, and the group of each bin.

        The row of rank r (from 0) of n is in bin ``floor(r · n_bins / n)``. Bins that
        lie within a block of equal scores have one mean and are one; none is empty.
        """
        base = self.mass[self.first]
        group, place = rows_of_ranges(np.zeros_like(n_bins), n_bins)
        part = place * np.diff(base)[group] / n_bins[group]
        np.ceil(part, out=part, where=self.alike[group])
        edges = np.append(base[group] + part, base[-1])
        block = np.searchsorted(self.mass, edges, side="right") - 1
        inside = self.mass[block] < edges
        within = inside[:-1] & inside[1:] & (block[:-1] == block[1:])
        between = 1 + np.flatnonzero(within[:-1] & within[1:])
        edges = np.unique(np.delete(edges, between))
        return edges, np.searchsorted(base, edges[:-1], side="right") - 1

    def overlaps(self, edges: Array) -> tuple[Array, Array, Array]:
        """Return rows, bins that have a part of them, and the share that it is.

        A tied row is in all bins of its block, in equal parts.
        """
        cuts = np.sort(np.append(self.mass, edges))
        cuts = cuts[np.diff(cuts, prepend=-1) > 0]
        block = np.searchsorted(self.mass, cuts[:-1], side="right") - 1
        place = np.searchsorted(edges, cuts[:-1], side="right") - 1
        share = np.diff(cuts) / np.diff(self.mass)[block]
        size = np.bincount(block, minlength=self.mass.size - 1)
        first = np.cumsum(size) - size
        row, part = rows_of_ranges(first[self.block], size[self.block])
        return row, place[part], share[part]

    def sweep(self, y: Array) -> Array:
        """Return the largest number of bins up to which no mean outcome falls, (G,).

        Numbers 2, 3, ... are tried, below the number of rows of the group.
        """
        mass, outcome = np.diff(self.mass), np.bincount(self.block, self.share * y)
        group = np.repeat(np.arange(self.size.size), np.diff(self.first))
        levels, outcome = outcome / mass, np.append(0.0, np.cumsum(outcome))
        rounding = _ROUNDING * np.maximum.reduceat(np.abs(levels), self.first[:-1])
        falls = (np.diff(levels) < 0) & (group[1:] == group[:-1])
        active = np.isin(np.arange(self.size.size), group[1:][falls])
        most = np.maximum(1, self.size - 1)
        n_bins = 1
        while (active := active & (self.size > n_bins + 1)).any():
            n_bins += 1
            edges, group = self.edges(np.where(active, n_bins, 1))
            means = np.diff(np.interp(edges, self.mass, outcome)) / np.diff(edges)
            falls = (group[1:] == group[:-1]) & (np.diff(means) < -rounding[group[1:]])
            most[group[1:][falls]], active[group[1:][falls]] = n_bins - 1, False
        return most


@stored("RootMeanSquare")
def root_mean_square(by_group: Array, shared: Array) -> Array:
    """Return the root of a ratio of two columns, shape (..., G)."""
    ratio = MeanOfRatios()(by_group, shared)
    # Rounding may have made a sum of squares negative.
    return np.sqrt(np.where(ratio.real < 0, 0, ratio))


@stored("NarrowSquare")
def narrow_square(by_group: Array, shared: Array) -> Array:
    """Return the mean square over narrow bins, shape (..., G)."""
    return MeanOfRatios()(by_group[..., [3, 1]], shared)


@stored("KnownNoise")
@dataclass(frozen=True)
class KnownNoise:
    """The square that noise alone would make, by group, estimated beforehand."""

    by_group: tuple[float, ...]

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the expected squares, shape (G,)."""
        return np.array(self.by_group)


@stored("BinnedGaps")
@dataclass(frozen=True)
class BinnedGaps:
    """The root mean square from columns of bins: gaps, masses, squares, products."""

    n_bins: int

    def columns(self, by_group: Array) -> list[Array]:
        """Return the columns of each kind, of shape (..., G, B)."""
        size = self.n_bins
        return [by_group[..., i * size : (i + 1) * size] for i in range(5)]

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the roots, shape (..., G)."""
        gap, mass, *_ = self.columns(by_group)
        squares = np.zeros_like(gap)
        np.divide(gap * gap, mass, out=squares, where=mass.real != 0)
        columns = np.stack([squares.sum(-1), mass.sum(-1)], axis=-1)
        return root_mean_square(columns, shared)


@stored("BinnedNoise")
@dataclass(frozen=True)
class BinnedNoise:
    """The square that noise alone would make, from the columns of `BinnedGaps`."""

    n_bins: int

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the squares, (..., G); a bin of one cluster counts as noise."""
        gap, mass, gaps, masses, both = BinnedGaps(self.n_bins).columns(by_group)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = gap / mass
            squares = gaps - 2 * mean * both + mean**2 * masses
            noise = _noise_of_bins(mass, mean, squares, masses)
            return np.where(mass > 0, noise, 0.0).sum(-1) / mass.sum(-1)


def _noise_of_bins(mass: Array, gap: Array, squares: Array, masses: Array) -> Array:
    """Return the variance of the mean gap of each bin, times the mass of the bin.

    `squares` are the sums over clusters of squared deviations of their gaps, and
    `masses` those of their squared masses. A bin of one cluster has no variance: its
    whole gap may be noise.
    """
    leverage = masses / mass**2
    alone = leverage > 1 - _ROUNDING
    return np.where(
        alone, mass * gap**2, squares / mass / np.where(alone, 1.0, 1 - leverage)
    )


def bandwidth_of_group(
    bandwidth: Any, group: Hashable, sample: Sample, kernel: Kernel
) -> float:
    """Return the bandwidth of one group: by name, by a rule on its rows, or a number.

    Where its scores have no spread every bandwidth gives the mean outcome, and it is 1.
    """
    if isinstance(bandwidth, Mapping):
        if group not in bandwidth:
            raise ValueError(
                f"bandwidth must name every group; it has no {fmt.label(group)}."
            )
        bandwidth = bandwidth[group]
        check_number(bandwidth, "bandwidth", 0, np.inf, inclusive=(False, False))
    return choose_bandwidth(bandwidth, sample, kernel) or 1.0


@dataclass(frozen=True)
class _BinSquares:
    """The squares of the gaps of groups in bins of equal mass."""

    sample: Sample
    scores: SortedScores
    n_bins: Array  # of each group

    @cached_property
    def _bins(self) -> tuple[Array, ...]:
        """The group, mass and mean gap of each bin, and the parts of rows in it."""
        edges, group = self.scores.edges(self.n_bins)
        row, place, share = self.scores.overlaps(edges)
        pull = share * (self.scores.share * (self.sample.x - self.sample.y))[row]
        mass = np.diff(edges)
        return group, mass, np.bincount(place, pull) / mass, row, place, share

    def linear(self) -> Array:
        """Return the first-order share in their sum of a unit of weight of each row.

        It has shape (n,).
        """
        _, _, gap, row, place, share = self._bins
        slope, square = (np.bincount(row, share * v[place]) for v in (2 * gap, gap**2))
        return slope * (self.sample.x - self.sample.y) - square

    def noise(self) -> Array:
        """Return the means that noise alone would make, were scores the mean outcomes.

        They are the means over bins of the variance of the mean gap, from the clusters,
        each times the mass of its bin.
        """
        sample, (group, mass, gap, row, place, share) = self.sample, self._bins
        row_mass = share * self.scores.share[row]
        pull = row_mass * (sample.x[row] - sample.y[row] - gap[place])
        # The sums of each cluster in each bin.
        key = sample.cluster[row] * np.int64(mass.size) + place
        order = stable_order(key)
        cells = starts_of_runs(key[order])
        sums = [np.add.reduceat(v[order], cells) ** 2 for v in (pull, row_mass)]
        squares, masses = (np.bincount(place[order[cells]], v, mass.size) for v in sums)
        noise = np.bincount(group, _noise_of_bins(mass, gap, squares, masses))
        return noise / np.bincount(group, mass)

    def refit(self, counts: Array) -> Array:
        """Return their sums where clusters count so often, shape (G,)."""
        weight = self.sample.share * counts[self.sample.cluster]
        again = replace(self, scores=replace(self.scores, weight=weight))
        group, mass, gap, *_ = again._bins
        return self.scores.unit * np.bincount(group, mass * gap**2, self.n_bins.size)


@dataclass(frozen=True)
class _SmoothSquares:
    """The squared distances of the scores of one group and its curve."""

    sample: Sample
    bandwidth: float
    kernel: Kernel

    def linear(self) -> Array:
        """Return the first-order share in their sum of a unit of weight of each row.

        A row also moves the curve f: at score s by ``δf = w K (y - f(s)) / B(s)``. That
        changes the sum of squares by ``-2 Σ w r δf``, where r is the distance of the
        score from the curve; these changes sum to 0 over all rows.
        """
        sample, smooth = self.sample, (self.bandwidth, self.kernel)
        x, y = sample.x, sample.y
        curve, mass = kernel_sums(x, x, sample.columns(y), *smooth)
        curve /= mass
        gap = x - curve
        pull = sample.share * gap / mass
        columns = np.stack([pull, curve * pull, sample.share])
        del curve, mass, pull  # which take room where groups are large
        level, slope, _ = kernel_sums(x, x, columns, *smooth)
        return gap**2 + 2 * (slope - y * level)

    def noise(self) -> Array:
        """Return the mean that noise alone would make: the variance of the curve.

        It is computed at a few scores, and interpolated by lines between them.
        """
        x = self.sample.x
        places = np.linspace(0, x.size - 1, _N_POINTS)
        points = np.unique(np.interp(places, np.arange(x.size), np.sort(x)))
        curve = curve_on_grid(self.sample, points, self.bandwidth, self.kernel)
        variance = np.interp(x, points, np.nan_to_num(curve.standard_error) ** 2)
        return np.asarray(variance @ self.sample.share / self.sample.share.sum())

    def refit(self, counts: Array) -> Array:
        """Return their sum where clusters count so often, shape (1,)."""
        x, y = self.sample.x, self.sample.y
        weight = self.sample.share * counts[self.sample.cluster]
        curve = repeated_means(x, y, weight[None], self.bandwidth, self.kernel)
        return np.where(weight > 0, x - curve, 0.0) ** 2 @ weight


#: Squares of some groups: of bins of all of them, or of the curve of each.
_Squares = list[_BinSquares] | list[_SmoothSquares]


def _fitted(
    rows: ScoreRows,
    sample: Sample,
    make_squares: Callable[[Sample], tuple[_Squares, _Squares]],
) -> tuple[ClusterSums, KnownNoise, KnownNoise]:
    """Return the sums of squares of each group, and the part that is noise.

    A group has the squares of the metric, and those of bins too narrow to hide a gap.
    They are made again for a bootstrap, as those of all groups are large.
    """
    labels = rows.groups.labels
    linear = np.zeros((2, sample.x.size))
    noise = np.full((2, len(labels)), np.nan)
    size, order = np.bincount(sample.group), np.argsort(sample.group, kind="stable")
    batch = (np.cumsum(size) - size) // _TOGETHER
    # The rows of some groups at a time.
    places = np.split(order, starts_of_runs(batch[sample.group[order]]))[1:]

    def fit(place: Array) -> None:
        some = sample.take(place)
        for i, squares in enumerate(make_squares(some)):
            linear[i, place] = np.hstack([s.linear() for s in squares])
            noise[i, np.unique(some.group)] = np.hstack([s.noise() for s in squares])

    for place in places:
        fit(place)
    linear *= sample.share
    weight = weights_of_rows(rows, sample)
    table = cluster_table(rows, sample, [linear[0], sample.share, weight, linear[1]])

    def refit(counts: Array) -> Array:
        totals = table.drawn(counts)[0]
        for place in places:
            some, groups = sample.take(place), np.unique(sample.group[place])
            for column, squares in zip((0, 3), make_squares(some), strict=True):
                for total, drawn in zip(totals, counts, strict=True):
                    total[groups, column] = np.hstack([s.refit(drawn) for s in squares])
        return totals

    plain = ClusterSums.from_rows(labels, table, [_ROWS])
    smooth, narrow = (KnownNoise(tuple(of_groups)) for of_groups in noise.tolist())
    return replace(plain, refit=refit, adds_up=False), smooth, narrow


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


def _columns_of_bins(rows: ScoreRows, sample: Sample, edges: Array) -> Any:
    """Return the columns of `BinnedGaps`, then the number of rows, by segment."""
    n_bins, starts = edges.size - 1, sample.segment_starts
    entry = np.repeat(np.arange(starts.size), np.diff(starts, append=sample.x.size))
    place = np.searchsorted(edges, sample.x, side="right") - 1
    where = entry.astype(np.int32), np.minimum(place, n_bins - 1).astype(np.int32)
    del entry, place

    def in_bins(values: Array) -> Any:
        sums = sparse.csr_array((values, where), shape=(starts.size, n_bins))
        sums.sum_duplicates()  # older SciPy keeps them
        return sums

    share, count = sample.share, in_bins(weights_of_rows(rows, sample)).data
    mass, gap = (in_bins(share * v) for v in (1.0, sample.x - sample.y))
    m, d = mass.data, gap.data
    column = mass.indices[:, None] + n_bins * np.arange(6, dtype=np.int32)
    column[:, 5] = 5 * n_bins  # rows of all bins are counted together
    data = np.stack([d, m, d**2, m**2, d * m, count], axis=1)
    columns = sparse.csr_array(
        (data.ravel(), column.ravel(), 6 * mass.indptr), (starts.size, 5 * n_bins + 1)
    )
    columns.sum_duplicates()
    return columns


def _edge_sums(
    rows: ScoreRows, sample: Sample, edges: Array, support: ColumnSum
) -> ClusterSums:
    """Return the sums of bins with fixed edges, which add up."""
    starts = sample.segment_starts
    table = Rows(
        sample.cluster[starts],
        sample.group[starts],
        _columns_of_bins(rows, sample, edges),
        shared=np.zeros((sample.n_clusters, 0)),
        n_groups=len(rows.groups),
        labels=rows.cluster_labels,
    ).summed()
    if rows.weight is not None:
        number = np.zeros((len(rows.groups), table.n_columns))
        number[:, -1] = np.bincount(sample.group, minlength=len(number))
        table = replace(table, unweighted=(number, np.zeros(0)))
    return ClusterSums.from_rows(rows.groups.labels, table, [support])


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
        `skrankfair.smoothing.nadaraya_watson`) is applied to each group. Two models
        have no comparison with "cv", which chooses from the outcomes.
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
    w the weight of the row (or 1) divided by the number of rows of its cluster.
    "binned" and "sweep": the root of ``Σ_b n_b / n (mean score - mean outcome)²``, the
    row of rank r in bin ``floor(r B / n)``; rows of equal score have their mean
    outcome, so their order does not matter. "sweep" tries 2, 3, ... bins and takes the
    last number before a mean falls, never the number of rows.

    Standard errors are those of the delta method over clusters. For "smooth" they
    include the error of the curve itself; for the bins they take the bins as given.
    They are errors around the estimate and do not see its bias: noise makes any
    estimated curve miss the scores, so the estimated error of calibrated scores is
    above 0. Intervals allow for it (Bröcker 2012; Kumar, Liang and Ma 2019). The square
    of the estimate is expected to be larger by the mean variance of the curve (or of
    the means of the bins), which is estimated over clusters. The lower end of the
    interval is that of the square minus this noise, and the upper end that of the
    square itself. So the interval of a calibrated group begins at 0, and is wide where
    there are few rows. Resamples would have the noise twice: ``method="bootstrap"`` is
    refused.

    A bandwidth or a bin also hides what is narrower than it, such as waves, or the
    slope within the few bins of a sweep; and a wide bandwidth, as a rule gives few
    clusters of many rows each, bends the curve of calibrated scores away from them. So
    the interval holds that of the mean square over narrow bins of equal mass, as many
    as the root of the number of clusters (15 or more), minus its noise, at both ends.
    Intervals thereby contain the error of the population; those for given edges contain
    only the error that these bins show.

    The smaller the group, the larger its noise, so groups have no contrast
    (``contrast`` raises a ValueError): a test would reject in most data sets with
    equally well calibrated groups of which one has 3% of the rows.
    `predictive_parity_test` compares the curves themselves. ``disparity_bound`` is made
    of the intervals of the groups. `skrankfair.inference.compare` compares two scores
    by all methods but "sweep", whose numbers of bins differ by chance. The sharper of
    the two has less noise, which is not taken off: with bins of equal mass, calibrated
    scores with an AUC of 0.95 and 0.71 were found to differ at 5% in 7% to 15% of data
    sets of 1,000 and of 5,000 rows, with 0.99 and 0.72 in 25% to 31% (curves: 40% of
    the larger ones). With ten given edges it was 2% at most. Scores as sharp as each
    other, such as those before and after a calibration, have no such trouble.

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
    check_choice(method, "method", ("smooth", "binned", "sweep"))
    if not isinstance(bandwidth, Mapping):
        check_bandwidth(bandwidth)
    smoother = get_kernel(kernel)
    rows = score_rows(y_true, y_score, **given_columns(locals()))
    check_magnitude(y_score=rows.x)
    edges = _check_edges(bins, rows.x) if method == "binned" else None
    sample = rows.sample(cluster_weight if method == "smooth" else "row")
    chosen: dict[Hashable, Any] = {}

    def make_squares(some: Sample) -> tuple[_Squares, _Squares]:
        scores = SortedScores.of_sample(some)
        starts = np.append(starts_of_runs(some.group), some.x.size)
        labels = [rows.groups.labels[group] for group in some.group[starts[:-1]]]
        # As many narrow bins as the root of the number of clusters, at least 15.
        clusters = np.searchsorted(starts_of_runs(some.cluster, starts), starts)
        n_narrow = np.maximum(_FEWEST_NARROW, np.rint(np.diff(clusters) ** 0.5))
        narrow = _BinSquares(some, scores, n_narrow.astype(np.int64))
        if method == "smooth":
            smooth = []
            for label, ends in zip(labels, pairwise(starts), strict=True):
                of_group = some.take(slice(*ends))
                if label not in chosen:
                    given = bandwidth, label, of_group, smoother
                    chosen[label] = bandwidth_of_group(*given)
                smooth.append(_SmoothSquares(of_group, chosen[label], smoother))
            return smooth, [narrow]
        if method == "binned":
            chosen.update(dict.fromkeys(labels, int(bins)))
        elif labels[0] not in chosen:
            chosen.update(zip(labels, scores.sweep(some.y).tolist(), strict=True))
        return [replace(narrow, n_bins=np.array([chosen[g] for g in labels]))], [narrow]

    finalize: Finalize
    noise: Finalize
    if edges is not None:
        n_bins = edges.size - 1
        support = ColumnSum(5 * n_bins, 5 * n_bins + 1)
        sums = _edge_sums(rows, sample, edges, support)
        finalize, noise, narrow = BinnedGaps(n_bins), BinnedNoise(n_bins), None
        first_pass: dict[str, Any] = {"bins": tuple(edges.tolist())}
        del sample  # it is large where there are many groups
    else:
        sums, noise, hidden = _fitted(rows, sample, make_squares)
        finalize, support, narrow = root_mean_square, _ROWS, (narrow_square, hidden)
        first_pass = {"bandwidth" if method == "smooth" else "bins": chosen}
    metric = Metric(
        "calibration_error",
        finalize,
        support,
        unit="rows",
        not_compared=_NOT_COMPARED,
        not_paired=_NOT_PAIRED if method == "sweep" or bandwidth == "cv" else None,
        better="low",
        noise=noise,
        narrow=narrow,
    )
    parameters: dict[str, Any] = {"method": method}
    if method == "smooth":
        parameters |= {"kernel": kernel, "cluster_weight": cluster_weight}
    result = GroupEstimates(metric, sums, parameters, first_pass, missing=rows.missing)
    return warn_undefined(result)
