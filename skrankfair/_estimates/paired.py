"""Two models on the same clusters, whose tables are gone but not their replicates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._inputs.validation import Array
from .finalize import Finalize
from .refit import RefitSums
from .replicates import replicates_of_both
from .storage import stored
from .sums import ClusterSums


@stored("PairedReplicates")
@dataclass(frozen=True)
class PairedReplicates(ClusterSums):
    """Sums over the same clusters, the columns of a second result behind the first.

    The covariance is that of the replicates; degrees of freedom and effective numbers
    are those of the first result.

    Attributes
    ----------
    first : ClusterSums
    bias : float
        How many times the bias that the replicates show counts as an error.
    """

    first: ClusterSums | None = None
    bias: float = 0.0

    @classmethod
    def of(cls, a: ClusterSums, b: ClusterSums) -> PairedReplicates:
        """Return both sums, of which at least one has no table any more."""
        one, other = replicates_of_both(a, b)
        if one is None or other is None:
            raise ValueError(
                "A paired comparison needs the tables of both results, or replicates: "
                "compare before compact(), or call compact(n_replicates=200)."
            )
        if set(a.groups) != set(b.groups):
            raise ValueError(
                "A paired comparison needs two results of the same groups; got "
                f"{a.groups} and {b.groups}."
            )
        order = np.array([b.groups.index(group) for group in a.groups])
        return cls(
            groups=a.groups,
            by_group=np.concatenate([a.by_group, b.by_group[order]], axis=1),
            shared=np.concatenate([a.shared, b.shared]),
            count=a.count,
            supports=a.supports,
            kind=a.kind,
            table=None,
            replicates=one.join_columns(other.of_groups(order)),
            first=replace(a.compact(), replicates=None),
            bias=a.bias if isinstance(a, RefitSums) else 0.0,
        )

    @property
    def of_leverages(self) -> ClusterSums:
        """The sums whose rows say how the data are spread over the clusters."""
        return self if self.first is None else self.first

    @property
    def _support_and_active(self) -> tuple[Array, Array]:
        return self.of_leverages.support, self.of_leverages.active

    def covariance(self, finalize: Finalize) -> Array:
        """Return the covariance over the replicates, shape (G, G)."""
        (totals,) = self.resample(0, np.random.default_rng(0))
        values = finalize(*totals)
        unknown = self.undefined(finalize) | np.isnan(values).any(0) | (len(values) < 2)
        covariance = np.full((len(self.groups),) * 2, np.nan)
        known = np.flatnonzero(~unknown)
        if known.size:
            block = np.atleast_2d(np.cov(values[:, known].T, ddof=1))
            shift = self.estimate(finalize)[known] - values[:, known].mean(axis=0)
            covariance[np.ix_(known, known)] = block * self.count / (
                self.count - 1
            ) + self.bias**2 * np.outer(shift, shift)
        return covariance

    def variance(self, finalize: Finalize) -> Array:
        """Return the diagonal of `covariance`."""
        return np.diag(self.covariance(finalize)).copy()

    def covariances(
        self, finalize: Finalize, first: Array, second: Array
    ) -> tuple[Array, Array, Array]:
        """Return variances and covariances of pairs of groups, given by number."""
        covariance = self.covariance(finalize)
        variance = np.diag(covariance)
        return variance[first], variance[second], covariance[first, second]

    def of_groups(self, columns: Array) -> ClusterSums:
        """Return the sums of some groups, given by number."""
        if columns.size == len(self.groups):
            return self
        first = self.of_leverages.of_groups(columns)
        return _paired(super().of_groups(columns), first, self.bias)

    def compact(self, n_replicates: int = 0, random_state: int = 0) -> Any:
        """Return the sums themselves, which have no table."""
        return self

    def __add__(self, other: ClusterSums) -> ClusterSums:
        """Return the sums of the union of the clusters."""
        first = self.of_leverages + other.of_leverages
        return _paired(super().__add__(other), first, self.bias)


def _paired(sums: ClusterSums, first: ClusterSums, bias: float) -> PairedReplicates:
    """Return sums with those of the first result."""
    parts = {name: getattr(sums, name) for name in ClusterSums.__dataclass_fields__}
    return PairedReplicates(**{**parts, "table": None}, first=first, bias=bias)
