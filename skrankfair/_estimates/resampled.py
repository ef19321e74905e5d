"""Totals of resampled clusters: the bootstrap, replicates that add up, and refits.

How often a cluster counts in replicate b is a Poisson number that follows from the
seed, a hash of the cluster's label and b alone. Parts of the data, wherever and in
whatever order they are measured, therefore agree on every replicate without knowing of
each other, and replicate totals add up as the totals themselves do (Hanley and
MacGibbon 2006; Chamandy et al. 2012).

The bootstrap draws as many clusters as there are. Each resample gives an estimate with
a standard error; the interval inverts the quantiles of ``t* = (θ* - θ) / se*`` (Efron
1982; Hall 1992), which hold for few clusters where percentiles of θ* are too narrow.
Shares are resampled on the scale of the logit and ratios on that of the logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import special

from .._inputs.validation import Array, check_number, generator
from .arrays import ReadOnlyArrays, cached_by_key
from .entries import GroupPairs
from .finalize import Beside, Finalize, slopes_at
from .rows import Layout
from .scales import Ends, PlainScale
from .storage import stored
from .sums import ClusterSums

_WEYL = np.uint64(0x9E3779B97F4A7C15)
# With a larger share of undefined resamples there is no interval.
_MOST_UNDEFINED = 0.2
# Resamples show too little of the bias that noise adds, as their curves are smoother
# than the mean outcomes: with once of it calibrated scores are rejected in up to 11%.
_NOISE_BIAS = 2.0


# How often a cluster counts in a replicate


def _mixed(x: Array) -> Array:
    """Return the finaliser of splitmix64, a bijection of 64 bits that looks random."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def label_hashes(labels: Array) -> Array:
    """Return 64 bits of each label, the same on every machine and in every part.

    Equal whole numbers have the same bits whatever their type. Text has those of its
    characters, dates, times (of a zone as in UTC) and durations those of the
    microsecond, and labels of other or mixed types those of their text.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "O":
        series = pd.Series(labels).infer_objects()
        times = series.dtype.kind == "M" or pd.api.types.infer_dtype(series) == "date"
        labels = series.to_numpy("M8[us]" if times else None)  # of a zone as in UTC
    kind = labels.dtype.kind
    if kind in "biu":
        bits = labels.astype(np.int64).view(np.uint64)
    elif kind == "f":
        numbers = labels.astype(float)
        with np.errstate(invalid="ignore"):
            whole = numbers.astype(np.int64)
        bits = np.where(whole == numbers, whole, numbers.view(np.int64)).view(np.uint64)
    elif kind in "mM":
        bits = labels.astype(f"{kind}8[us]").view(np.uint64)
    else:
        some = [x.normalize() if isinstance(x, Decimal) else x for x in labels.tolist()]
        text = [x if isinstance(x, str) else f"{type(x)} {x}" for x in some]
        bits = pd.util.hash_array(np.array(text, dtype=object), categorize=False)
    return _mixed(bits + _WEYL)


def poisson_counts(hashes: Array, seed: int, first: int, last: int) -> Array:
    """Return how often rows count in replicates `first` to `last`, (b, n).

    Poisson numbers of mean 1.
    """
    key = _mixed(np.array([seed], dtype=np.uint64) + _WEYL)
    step = np.arange(first + 1, last + 1, dtype=np.uint64)[:, None] * _WEYL
    share = _mixed(_mixed(hashes ^ key) + step) * 2.0**-64
    at_most = special.pdtr(np.arange(19), 1.0)
    return np.searchsorted(at_most, share, side="right").astype(float)


@stored("Replicates")
@dataclass(frozen=True)
class Replicates:
    """Totals of B replicates.

    Attributes
    ----------
    seed : int
    labels : int
        The sum of the hashes of the labels of all clusters: the same for two results
        of the same clusters.
    by_group : ndarray of shape (B, G, C)
    shared : ndarray of shape (B, D)
    """

    seed: int
    labels: int
    by_group: Array
    shared: Array

    @classmethod
    def draw(cls, sums: ClusterSums, n_replicates: int, seed: int) -> Replicates:
        """Return totals of the clusters of sums that have their table."""
        check_number(n_replicates, "n_replicates", 1, np.inf, integer=True)
        check_number(seed, "random_state", 0, 2**63 - 1, integer=True)
        table = sums.bootstrap_table()
        if not (sums.adds_up or isinstance(sums, ResampledSums)):
            raise ValueError(
                "n_replicates must be 0 for calibration_error, as resamples would "
                "count its noise twice."
            )
        hashes, totals = label_hashes(table.labels), []
        for first, last in table.chunks(n_replicates):
            counts = poisson_counts(hashes, int(seed), first, last)
            totals.append(sums.drawn(counts))
        by_group, shared = map(np.concatenate, zip(*totals, strict=True))
        return cls(int(seed), int(hashes.sum(dtype=np.uint64)), by_group, shared)

    def drawn_from(self, sums: ClusterSums) -> Replicates | None:
        """Return the replicates of `sums`, drawn as these are if it has none yet.

        It is None if there is no table to draw from either.
        """
        if sums.replicates is None and not sums.compacted:
            return Replicates.draw(sums, self.size, self.seed)
        return sums.replicates

    @property
    def size(self) -> int:
        """The number of replicates, B."""
        return len(self.by_group)

    def renumbered(self, to: Layout) -> Replicates:
        """Return the totals with groups and columns renumbered."""
        by_group, shared = to.moved(self.by_group, self.shared)
        return replace(self, by_group=by_group, shared=shared)

    def join_columns(self, other: Replicates) -> Replicates:
        """Return both over the same clusters, with the columns of `other` last."""
        self._check(other)
        if self.labels != other.labels:
            raise ValueError(
                "A paired comparison needs two results on the same clusters; the "
                "labels of their clusters differ."
            )
        by_group = np.concatenate([self.by_group, other.by_group], axis=2)
        shared = np.concatenate([self.shared, other.shared], axis=1)
        return replace(self, by_group=by_group, shared=shared)

    def __add__(self, other: Replicates) -> Replicates:
        """Return the totals over the clusters of both."""
        self._check(other)
        return Replicates(
            self.seed,
            (self.labels + other.labels) % 2**64,
            self.by_group + other.by_group,
            self.shared + other.shared,
        )

    def _check(self, other: Replicates) -> None:
        """Raise a ValueError for replicates of other random numbers."""
        if (self.seed, self.size) != (other.seed, other.size):
            raise ValueError(
                "Results with replicates need the same n_replicates and random_state; "
                f"got {self.size} with seed {self.seed}, and {other.size} with seed "
                f"{other.seed}."
            )


# Sums whose errors are those of resamples


@stored("ResampledSums")
@dataclass(frozen=True)
class ResampledSums(ClusterSums):
    """Totals whose errors follow from the totals of resamples.

    A metric that fits a curve computes its totals anew for each resample, and two
    results without their tables are compared by their replicates.

    Attributes
    ----------
    n_resamples : int
        How many resamples the errors are from.
    seed : int
        Seed of these resamples.
    bias : float
        The error includes the bias that the resamples show, times this number.
    width : int
        If not 0, columns come in blocks of this many. The last one of a block is what
        the first one would be of scores that are fair but for the noise of the curves;
        the error includes twice the mean of the metric of these, too.
    finalize : callable or None
        The metric whose deviations `compact` keeps.
    deviations : ndarray of shape (n, G) or None
        After `compact` and in copies: rows whose sums of products are its covariances.
    """

    n_resamples: int = 0
    seed: int = 0
    bias: float = 1.0
    width: int = 0
    finalize: Finalize | None = None
    deviations: Array | None = None

    @classmethod
    def of_replicates(cls, a: ClusterSums, b: ClusterSums) -> Self:
        """Return both sums over the same clusters, with the columns of `b` last.

        At least one has lost its table: the covariance is that of their replicates, and
        degrees of freedom and effective numbers of clusters are those of `a`.
        """
        if set(a.groups) != set(b.groups):
            raise ValueError(
                "A paired comparison needs two results of the same groups; got "
                f"{a.groups} and {b.groups}."
            )
        b, known = b.aligned(a.groups), a.replicates or b.replicates
        one, other = (known and known.drawn_from(sums) for sums in (a, b))
        if one is None or other is None:
            raise ValueError(
                "A paired comparison needs the tables of both results, or replicates: "
                "compare before compact(), or call compact(n_replicates=200)."
            )
        return cls.of_pair(
            a.compact(one),
            np.concatenate([a.by_group, b.by_group], axis=1),
            np.concatenate([a.shared, b.shared]),
            one.join_columns(other),
        )

    @classmethod
    def of_pair(
        cls, first: ClusterSums, by_group: Array, shared: Array, replicates: Replicates
    ) -> Self:
        """Return the totals of a pair, whose first result has the first columns."""
        sizes = {"n_columns": by_group.shape[1], "n_shared": shared.size}
        size = first.by_group.shape[1], first.shared.size
        alike = by_group.shape[1] == 2 * size[0]  # stored results may lack columns
        return cls.of_sums(
            first.renumbered(replace(first.layout, **sizes), first.groups),
            by_group=by_group,
            shared=shared,
            supports=tuple(Beside(each, *size) for each in first.supports),
            replicates=replicates,
            n_resamples=replicates.size,
            bias=first.bias if isinstance(first, ResampledSums) else 0.0,
            width=first.width if isinstance(first, ResampledSums) and alike else 0,
        )

    @cached_by_key
    def _deviations(self, finalize: Finalize) -> Array:
        """Return rows whose sums of products are covariances; NaN if undefined.

        The first rows are the distances of resamples from their mean, scaled up as
        resamples of few clusters vary less than the jackknife. The last rows are the
        bias, ``mean - estimate``, times `bias`, and twice that of fair scores.
        """
        if self.deviations is not None and finalize == self.finalize:
            return self.deviations
        moved, noise = np.full((2, 2, len(self.groups)), np.nan)
        if self.count > 1 and (self.refit or self.replicates) is not None:
            totals = self.resample(self.n_resamples, np.random.default_rng(self.seed))
            drawn = [self._values(finalize, *some) for some in totals]
            values, noise = map(np.concatenate, zip(*drawn, strict=True))
            if len(values) > 1:
                moved = values - self.estimate(finalize)
        moved[:, self.undefined(finalize)] = np.nan
        mean = moved.mean(axis=0)
        scale = self.count / max(self.count - 1, 1) / (len(moved) - 1)
        biases = self.bias * mean, _NOISE_BIAS * noise.mean(axis=0)
        return np.vstack([np.sqrt(scale) * (moved - mean), *biases])

    def noise(self, finalize: Finalize) -> Array:
        """Return twice the mean metric of scores that are fair but for noise, (G,)."""
        return np.asarray(self._deviations(finalize)[-1])

    def _values(
        self, finalize: Finalize, by_group: Array, shared: Array
    ) -> tuple[Array, Array]:
        """Return the metric of resamples, and of fair scores with the curves' noise."""
        values = finalize(by_group, shared)
        if not self.width:
            return values, np.zeros_like(values)
        blocks = by_group.reshape(*by_group.shape[:-1], -1, self.width).copy()
        blocks[..., 0] = blocks[..., -1]
        return values, finalize(blocks.reshape(by_group.shape), shared)

    def renumbered(self, *layout: Any) -> Self:
        """Return the sums with groups and columns renumbered, to be resampled anew."""
        return replace(super().renumbered(*layout), deviations=None)

    def products(self, finalize: Finalize, pairs: GroupPairs | None = None) -> Array:
        """Return sums of products of the deviations of resamples."""
        rows = self._deviations(finalize)
        if pairs is None:
            return np.einsum("qg,qg->g", rows, rows)
        return np.asarray((rows.T @ rows)[pairs])

    def covariances(self, finalize: Finalize, first: Array, second: Array) -> Array:
        """Return the covariance of pairs of groups, given by number, shape (m,)."""
        return self.products(finalize, (first, second))

    def tails(self, finalize: Finalize, variance: Array | None = None) -> Array:
        """Return NaN for what few rows make of each error, which is unknown."""
        return np.full((2, len(self.groups)), np.nan)

    @property
    def has_covariance(self) -> bool:
        """Whether the covariance of two groups is known."""
        return True

    def compact(self, replicates: Replicates | None = None, n_results: int = 1) -> Self:
        """Return the same sums without the rows, whose deviations are computed first.

        With `replicates` the errors are theirs instead: each has fitted the curve anew.
        """
        kept = self._kept() if replicates is None else None
        return replace(super().compact(replicates, n_results), deviations=kept)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which has deviations but cannot resample."""
        return {**super().__getstate__(), "deviations": self._kept()}

    def _kept(self) -> Array | None:
        """Return the deviations for a copy that cannot resample; None if not needed."""
        if self.finalize is None or self.replicates is not None:
            return None
        return self._deviations(self.finalize)


# The bootstrap


@dataclass(frozen=True, eq=False)
class Origin(ReadOnlyArrays):
    """The sums and the function that estimates or contrasts of groups come from.

    Attributes
    ----------
    sums : ClusterSums
    finalize : callable
    groups : ndarray of shape (m, 1) or (m, 2)
        Numbers of the groups; those that are compared with each other in two columns.
    kind : {"value", "difference", "ratio"}
        What is computed of the values of these groups; of one group it is its value.
    """

    sums: ClusterSums
    finalize: Finalize
    groups: Array
    kind: str

    def bootstrap_ends(
        self,
        scale: PlainScale,
        confidence_level: float,
        method: str,
        n_resamples: int,
        random_state: Any,
    ) -> Ends:
        """Return bootstrap intervals of the estimates of a scale.

        Parameters
        ----------
        scale : PlainScale
            The estimates and their errors.
        confidence_level : float
        method : {"bootstrap", "percentile"}
        n_resamples : int
        random_state : int, Generator or None
        """
        check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
        rng = generator(random_state)
        tail = (1 - confidence_level) / 2
        if method == "bootstrap":
            if self.sums.adds_up and not self.sums.compacted:
                return self._studentised(scale, tail, n_resamples, rng)
            # Resamples have no errors of their own: percentiles as wide as Student's t.
            tail = _expanded(tail, self.sums.count)
        totals = self.sums.resample(n_resamples, rng)
        values = np.concatenate([self.finalize(*some) for some in totals])
        low, high = _quantiles(self.combined(values), tail)
        if isinstance(self.sums, ResampledSums) and self.sums.width:
            # The estimate has this noise, or has it not: the interval holds both.
            values = values - self.sums.noise(self.finalize)
            ends = _quantiles(self.combined(values), tail)
            low, high = np.fmin(low, ends[0]), np.fmax(high, ends[1])
        return low, high

    def combined(self, values: Array) -> Array:
        """Return estimates, or contrasts, of values of all groups (B, G)."""
        first, second = values[:, self.groups[:, 0]], values[:, self.groups[:, -1]]
        if self.kind == "value":
            return first
        compared = np.divide if self.kind == "ratio" else np.subtract
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(compared(first, second))

    def _studentised(
        self, scale: PlainScale, tail: float, n_resamples: int, rng: np.random.Generator
    ) -> Ends:
        """Return intervals from the quantiles of studentised resamples."""
        rows, drawn = self.sums.bootstrap_table(), []
        data = [rows.with_data_of(groups) for groups in self.groups]
        for counts in rows.draws(n_resamples, rng):
            totals = rows.drawn(counts)
            values = self.finalize(*totals)
            slopes = slopes_at(self.finalize, *totals)
            errors = self._errors(counts, values, slopes, data)
            drawn.append((self.combined(values), errors))
        values, errors = map(np.concatenate, zip(*drawn, strict=True))
        estimate, link = scale.estimate, scale.link
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = link.forward(estimate)
            t = (link.forward(values) - middle) / (errors * link.slope(values))
            low_t, high_t = _quantiles(t, tail)
            error = scale.standard_error * link.slope(estimate)
            return link.back(middle - high_t * error), link.back(middle - low_t * error)

    def _errors(
        self, counts: Array, values: Array, slopes: Array, data: list[tuple[Any, Array]]
    ) -> Array:
        """Return the standard errors within each resample, shape (B, m).

        By the delta method: the root of ``Q / (Q - 1) Σ_q w_q (J · s_q)²``, where w_q
        is how often row q is drawn.

        Parameters
        ----------
        counts : ndarray of shape (B, n_rows)
        values : ndarray of shape (B, G)
        slopes : ndarray of shape (B, G, C + D)
        data : list of tuple
            The rows with data of the groups of each estimate, and their columns.
        """
        rows, count = self.sums.bootstrap_table(), self.sums.count
        squares = np.empty((len(counts), len(self.groups)))
        of_shared = np.einsum("qi,qj->qij", rows.shared, rows.shared)
        products = np.tensordot(counts, of_shared, 1)
        with np.errstate(invalid="ignore"):
            for i, (groups, some) in enumerate(zip(self.groups, data, strict=True)):
                j = self.slopes_of(values[:, groups])[..., None] * slopes[:, groups]
                by_group = j[..., : rows.n_columns].reshape(len(counts), -1)
                common = j[..., rows.n_columns :].sum(axis=1)
                numbers, columns = some
                times, shared = counts[:, numbers], rows.shared[numbers]
                terms = np.hstack([by_group, common]) @ np.hstack([columns, shared]).T
                squares[:, i] = np.vecdot(times, np.square(terms, out=terms))
                # Rows without data of the groups differ in shared columns only.
                others = products - np.tensordot(times, of_shared[numbers], 1)
                squares[:, i] += np.einsum("bi,bij,bj->b", common, others, common)
            factor = count / (count - 1) if count > 1 else np.nan
            return np.sqrt(np.maximum(factor * squares, 0.0))

    def slopes_of(self, values: Array) -> Array:
        """Return derivatives of estimates by the values of their groups, (m, s)."""
        if self.kind != "ratio":
            return np.broadcast_to([1.0, -1.0][: values.shape[1]], values.shape)
        a, b = values.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([1 / b, -a / b**2], axis=1)


def _expanded(tail: float, count: float) -> float:
    """Return the tail of percentiles as wide as Student's t (Hesterberg 2015)."""
    if not count > 1:
        return tail
    reach = -special.stdtrit(count - 1, tail) * np.sqrt(count / (count - 1))
    return float(special.ndtr(-reach))


def _quantiles(values: Array, tail: float) -> Ends:
    """Return the lower and upper quantiles of resamples; NaN if many are undefined."""
    values = np.where(np.isfinite(values), values, np.nan)
    quantiles = np.full((2, values.shape[1]), np.nan)
    known = np.isnan(values).mean(axis=0) <= _MOST_UNDEFINED
    quantiles[:, known] = np.nanquantile(values[:, known], [tail, 1 - tail], axis=0)
    return quantiles[0], quantiles[1]
