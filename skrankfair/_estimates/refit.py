"""Sums of metrics that fit a curve first: they do not add up, and resample by refit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._inputs.validation import Array
from .allocation import check_memory
from .finalize import Finalize
from .remainder import check_complete
from .replicates import Replicates
from .rows import Rows, count_chunks, draw_counts
from .storage import stored
from .sums import ClusterSums

# Of so many groups the covariance is kept.
_MOST_GROUPS = 2048
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
    #: In copies: its covariance, (G, G), or of many groups the variances, (G,).
    kept: Array | None = None
    #: What the curves are known by that were fitted to more than these rows.
    curves: str | None = None

    @classmethod
    def of_table(
        cls,
        groups: tuple[Hashable, ...],
        table: Rows,
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
            # Without a name, so that one chunk is gone before the next is drawn.
            totals = self.refit(draw_counts(self.table, chunk, rng))
            yield totals, np.zeros((chunk, 0))

    @cached_property
    def _known(self) -> dict[Finalize, Array]:
        """Covariances that were asked for: their resamples are drawn only once."""
        if self.kept is None or self.finalize is None or not self.has_covariance:
            return {}
        return {self.finalize: self.kept}

    @property
    def has_covariance(self) -> bool:
        """Whether the covariance of two groups is known, or can be had."""
        if self.kept is None:
            return super().has_covariance
        return self.kept.ndim == 2

    def covariance(self, finalize: Finalize) -> Array:
        """Return the jackknife covariance of the linear parts, or over resamples.

        Over resamples it is around the estimate, and not around their mean.
        """
        if self.n_resamples is None:
            with np.errstate(over="ignore", invalid="ignore"):
                return super().covariance(finalize)
        if finalize not in self._known:
            every = np.arange(len(self.groups))
            self._known[finalize] = self._over_resamples(finalize, every)
        return self._known[finalize]

    def _over_resamples(self, finalize: Finalize, groups: Array) -> Array:
        """Return the covariance of some groups, given by number."""
        check_complete(self.has_covariance, len(self.groups))
        n_groups = groups.size
        check_memory(
            8.0 * n_groups**2,
            f"The covariance of {n_groups} groups with each other",
            "ask for standard_error.",
        )
        covariance = np.full((n_groups, n_groups), np.nan)
        if not self._redrawn:
            return covariance
        parts = [moved[:, groups] for moved in self._deviations(finalize)]
        values = np.concatenate(parts)
        undefined = self.undefined(finalize)[groups]
        known = np.flatnonzero(~undefined & ~np.isnan(values).any(0))
        if known.size:
            bias = self.bias * values[:, known].mean(axis=0)
            block = np.atleast_2d(np.cov(values[:, known].T, ddof=1))
            block *= self._inflation
            covariance[np.ix_(known, known)] = block + np.outer(bias, bias)
        return covariance

    @property
    def _redrawn(self) -> bool:
        """Whether there are resamples, of several clusters."""
        return self.count > 1 and (self.refit or self.replicates) is not None

    @property
    def _inflation(self) -> float:
        """How much more resamples of few clusters vary, as the jackknife."""
        return self.count / (self.count - 1)

    def _deviations(self, finalize: Finalize) -> Iterator[Array]:
        """Yield how far resamples are from the estimate, some at a time, (b, G).

        The bias is their mean, as often as it counts.
        """
        estimate, rng = self.estimate(finalize), np.random.default_rng(self.seed)
        for totals in self.resample(self.n_resamples or 0, rng):
            yield finalize(*totals) - estimate

    def variance(self, finalize: Finalize) -> Array:
        """Return the diagonal of `covariance`."""
        if self.n_resamples is None:
            return super().variance(finalize)
        if not self.has_covariance and finalize == self.finalize:
            return np.array(self.kept)
        kept = self.kept is not None and self.has_covariance
        if kept or len(self.groups) <= _FEW_GROUPS:
            return np.diag(self.covariance(finalize)).copy()
        if not self._redrawn:
            return np.full(len(self.groups), np.nan)
        n, (sums, squares) = 0, np.zeros((2, len(self.groups)))
        for moved in self._deviations(finalize):
            n += len(moved)
            sums += moved.sum(axis=0)
            squares += (moved**2).sum(axis=0)
        variance = np.maximum(squares - sums**2 / n, 0.0) / (n - 1) * self._inflation
        variance += (self.bias * sums / n) ** 2
        variance[self.undefined(finalize)] = np.nan
        return variance

    def concentration(self, finalize: Finalize) -> Array:
        """Return how much of the variance few rows make; NaN without linear parts."""
        if self.n_resamples is None:
            return super().concentration(finalize)
        return np.full(len(self.groups), np.nan)

    def covariances(
        self, finalize: Finalize, first: Array, second: Array
    ) -> tuple[Array, Array, Array]:
        """Return variances and covariances of pairs of groups, given by number."""
        if self.n_resamples is None:
            return super().covariances(finalize, first, second)
        if finalize in self._known or len(self.groups) <= _MOST_GROUPS:
            covariance = self.covariance(finalize)
        else:  # that of all groups would take much
            pairs = np.concatenate([first, second])
            used, place = np.unique(pairs, return_inverse=True)
            covariance = self._over_resamples(finalize, used)
            first, second = place[: first.size], place[first.size :]
        variance = np.diag(covariance)
        return variance[first], variance[second], covariance[first, second]

    def compact(self, n_replicates: int = 0, random_state: int = 0) -> RefitSums:
        """Return the same without the rows.

        The covariance is computed before, of many groups only the variances, or is
        that of the replicates, each of which fits the curve anew.
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
        if not (self.has_covariance and len(self.groups) <= _MOST_GROUPS):
            return self.variance(self.finalize)
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

    def join_columns(self, other: ClusterSums) -> ClusterSums:
        """Return both over the same clusters, resampled at once."""
        joined = super().join_columns(other)
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
    number = {group: i for i, group in enumerate(second.groups)}
    groups = [number[group] for group in first.groups]

    def refit(counts: Array) -> Array:
        of_second = np.empty_like(counts)
        of_second[:, rows] = counts
        return np.concatenate([one(counts), two(of_second)[:, groups]], axis=2)

    return refit
