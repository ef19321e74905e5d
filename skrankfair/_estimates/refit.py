"""Sums of metrics that fit a curve first: they do not add up, and resample by refit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._inputs.validation import Array
from .allocation import check_memory
from .replicates import Replicates
from .storage import stored
from .sums import ClusterSums
from .table import AnyTable, Finalize, count_chunks, draw_counts

# Of so few groups the covariance of all is kept, and not the variances alone.
_FEW_GROUPS = 64

#: From how often each cluster counts, shape (B, n_rows), to the column totals of each
#: resample, shape (B, G, C); of one also given the number of the replicate, where
#: curves of all replicates are known.
Refit = Callable[..., Array]


@stored("RefitSums")
@dataclass(frozen=True)
class RefitSums(ClusterSums):
    """Totals that come with a way to compute them again on resampled clusters.

    The rows of the table are linear parts of the metric, so that leaving them out is
    right to first order; the bootstrap computes the metric anew for each resample.
    """

    refit: Refit | None = None  # None after `compact`, and in copies
    #: How many resamples the covariance is of, for a metric without linear parts; None
    #: takes the jackknife.
    n_resamples: int | None = None
    seed: int = 0  # seed of these resamples
    #: How many times the bias that the resamples show counts as an error.
    bias: float = 1.0
    finalize: Finalize | None = None  # the metric whose covariance `compact` keeps
    kept: Array | None = None  # its covariance, in copies
    #: What the curves are known by that were fitted to more than these rows.
    curves: str | None = None

    @classmethod
    def of_table(
        cls,
        groups: tuple[Hashable, ...],
        table: AnyTable,
        supports: Sequence[Finalize],
        refit: Refit,
        n_resamples: int | None = None,
        seed: int = 0,
        finalize: Finalize | None = None,
        bias: float = 1.0,
        curves: str | None = None,
    ) -> RefitSums:
        """Sum a table whose rows are independent clusters."""
        with np.errstate(over="ignore"):  # squares of squares, for the errors alone
            sums = ClusterSums.from_clusters(groups, table, supports)
        parts = {name: getattr(sums, name) for name in sums.__dataclass_fields__}
        return cls(
            **parts,
            refit=refit,
            n_resamples=n_resamples,
            seed=seed,
            finalize=finalize,
            bias=bias,
            curves=curves,
        )

    def resample(
        self, n_resamples: int, rng: np.random.Generator
    ) -> Iterator[tuple[Array, Array]]:
        """Yield totals of resampled clusters, the curve fitted anew for each."""
        if self.refit is None and self.replicates is not None:
            yield self.replicates.totals()
            return
        if self.table is None or self.refit is None:
            raise ValueError(
                "The bootstrap fits the curve anew and needs the rows, which compact() "
                "or copying dropped; use method='t', or keep replicates by "
                "compact(n_replicates=...)."
            )
        for chunk in count_chunks(self.table, n_resamples):
            counts = draw_counts(self.table, chunk, rng)
            yield self.refit(counts), np.zeros((len(counts), 0))

    @cached_property
    def _known(self) -> dict[Finalize, Array]:
        """Covariances that were asked for: their resamples are drawn only once."""
        if self.kept is None or self.finalize is None:
            return {}
        return {self.finalize: self.kept}

    def covariance(self, finalize: Finalize) -> Array:
        """Return the jackknife covariance of the linear parts, or over resamples.

        Over resamples it is around the estimate, and not around their mean.
        """
        if self.n_resamples is None:
            with np.errstate(over="ignore", invalid="ignore"):
                return super().covariance(finalize)
        if finalize not in self._known:
            self._known[finalize] = self._over_resamples(finalize, self.n_resamples)
        return self._known[finalize]

    def _over_resamples(self, finalize: Finalize, n_resamples: int) -> Array:
        n_groups = len(self.groups)
        check_memory(
            8.0 * n_groups**2,
            f"The covariance of {n_groups} groups with each other",
            "ask for standard_error.",
        )
        covariance = np.full((n_groups, n_groups), np.nan)
        known, values, bias = self._values(finalize, n_resamples)
        if known.size:
            block = np.atleast_2d(np.cov(values.T, ddof=1))
            covariance[np.ix_(known, known)] = block + np.outer(bias, bias)
        return covariance

    def _values(
        self, finalize: Finalize, n_resamples: int
    ) -> tuple[Array, Array, Array]:
        """Return which groups have values in all resamples, these (B, m), and biases.

        Values are spread as those of few clusters, as the jackknife. The bias is how
        far their mean is from the estimate, as often as it counts.
        """
        if self.count <= 1 or (self.refit is None and self.replicates is None):
            return np.zeros(0, dtype=int), np.zeros((n_resamples, 0)), np.zeros(0)
        rng = np.random.default_rng(self.seed)
        values = np.concatenate(
            [finalize(*part) for part in self.resample(n_resamples, rng)]
        )
        known = np.flatnonzero(~self.undefined(finalize) & ~np.isnan(values).any(0))
        values = values[:, known]
        bias = self.bias * (values.mean(axis=0) - self.estimate(finalize)[known])
        values *= np.sqrt(self.count / (self.count - 1))
        return known, values, bias

    def variance(self, finalize: Finalize) -> Array:
        """Return the diagonal of `covariance`."""
        if self.n_resamples is None:
            return super().variance(finalize)
        if self.kept is not None or len(self.groups) <= _FEW_GROUPS:
            return np.diag(self.covariance(finalize)).copy()
        variance = np.full(len(self.groups), np.nan)
        known, values, bias = self._values(finalize, self.n_resamples)
        variance[known] = values.var(axis=0, ddof=1) + bias**2
        return variance

    def covariances(
        self, finalize: Finalize, first: Array, second: Array
    ) -> tuple[Array, Array, Array]:
        """Return variances and covariances of pairs of groups, given by number."""
        if self.n_resamples is None:
            return super().covariances(finalize, first, second)
        covariance = self.covariance(finalize)
        variance = np.diag(covariance)
        return variance[first], variance[second], covariance[first, second]

    def compact(self, n_replicates: int = 0, random_state: int = 0) -> RefitSums:
        """Return the same without the rows.

        The covariance is computed before, or is that of the replicates, each of which
        fits the curve anew.
        """
        if n_replicates and self.n_resamples is None:
            raise ValueError(
                "n_replicates must be 0 for calibration_error, whose noise resamples "
                f"would have twice; got {n_replicates!r}."
            )
        if not n_replicates:
            return replace(super().compact(), refit=None, kept=self._covariance())
        if self.refit is None:
            raise ValueError(
                "n_replicates needs the rows, which compact() or copying dropped."
            )
        replicates = Replicates.of_refits(
            self.bootstrap_table(), n_replicates, random_state, self.refit
        )
        return replace(super().compact(), refit=None, replicates=replicates)

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy has: the covariance, and no way to resample."""
        return {**self.__dict__, "refit": None, "kept": self._covariance()}

    def _covariance(self) -> Array | None:
        if self.n_resamples is None or self.finalize is None or self.replicates:
            return None
        return self.covariance(self.finalize)

    def __add__(self, other: ClusterSums) -> ClusterSums:
        """Refuse: the curve of the whole is not made of the curves of parts.

        Parts that were given the curves of the whole do add up.
        """
        known = isinstance(other, RefitSums) and self.curves == other.curves
        if known and self.curves is not None:
            return super().__add__(other)
        raise ValueError(
            "These results do not add up: each has fitted a curve (or bins) to its own "
            "rows. Measure all rows at once; calibration_error with method='binned' "
            "and the edges as bins= adds up."
        )

    def beside(self, other: ClusterSums) -> ClusterSums:
        """Return both over the same clusters, resampled at once."""
        joined = super().beside(other)
        parts = {name: getattr(joined, name) for name in joined.__dataclass_fields__}
        refit = None
        if isinstance(other, RefitSums):
            refit = _both(self, other)
        return RefitSums(
            **parts,
            refit=refit,
            n_resamples=self.n_resamples,
            seed=self.seed,
            bias=self.bias,
        )


def _both(first: RefitSums, second: RefitSums) -> Refit | None:
    """Return the refit of both, whose clusters may be in another order."""
    one, two = first.refit, second.refit
    if one is None or two is None or first.table is None or second.table is None:
        return None
    place = {label: row for row, label in enumerate(second.table.labels.tolist())}
    rows = np.array([place[label] for label in first.table.labels.tolist()])
    groups = [second.groups.index(group) for group in first.groups]

    def refit(counts: Array) -> Array:
        of_second = np.empty_like(counts)
        of_second[:, rows] = counts
        return np.concatenate([one(counts), two(of_second)[:, groups]], axis=2)

    return refit
