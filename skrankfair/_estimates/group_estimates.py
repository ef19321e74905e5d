"""GroupEstimates: what every metric returns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._inputs.validation import Array, check_choice, check_number
from . import formatting as fmt
from .contrasts import (
    ConfidenceInterval,
    Estimate,
    GroupTest,
    Resampler,
    check_level,
    contrast,
    contrasts_frame,
    disparity,
    disparity_bound,
    generator,
    max_t_quantile,
    percentiles,
    permutation_test,
    t_group_test,
    t_quantile,
)
from .finalize import of_one_length
from .metric import Metric, merge_first_pass, read_only
from .sums import ClusterSums, Finalize

if TYPE_CHECKING:
    import pandas as pd

    from ..display import GroupEstimatesDisplay


class Permutation(Protocol):
    """What a result keeps to shuffle its labels within lists.

    Attributes
    ----------
    alternative : {"greater", "two-sided"}
        Which values speak against parity: large ones of a distance, or both ends.
    """

    @property
    def alternative(self) -> str:
        """Which values speak against parity."""

    def resampled(
        self, finalize: Finalize, n_resamples: int, rng: np.random.Generator
    ) -> Array:
        """Return estimates with shuffled labels, shape (n_resamples, G)."""

    def __add__(self, other: Any) -> Permutation:
        """Return the lists of both, of one metric with the same options."""


def _both(a: Permutation | None, b: Permutation | None) -> Permutation | None:
    """Return what two parts keep; None if one of them has dropped it."""
    return None if a is None or b is None else a + b


@dataclass(frozen=True, eq=False)
class GroupEstimates:
    """A metric by group, with all that its errors need.

    Metric functions make these; they are not made by hand. Results are additive:
    ``a + b`` is the result on the union of their clusters, so parts of a large data
    set can be measured one by one, kept by `compact`, and summed.

    Attributes
    ----------
    metric : Metric
        Name, fair value, what the support counts.
    sums : ClusterSums
        Totals over clusters with their cross products.
    parameters : dict
        The options that the metric was called with.
    first_pass : dict
        Numbers that were chosen from the data before the sums were taken (a matching
        threshold, bin edges), by group where they differ by group.
    permutation : Permutation or None
        What `test` shuffles, for metrics of statistical parity; None after `compact`.
    """

    metric: Metric
    sums: ClusterSums
    parameters: Mapping[str, Any] = field(default_factory=dict)
    first_pass: Mapping[str, Any] = field(default_factory=dict)
    permutation: Permutation | None = None

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.name

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups, of length G."""
        return self.sums.groups

    @property
    def fair_value(self) -> float | None:
        """The value that is fair for a group on its own; None if fair is equality."""
        return self.metric.fair_value

    @property
    def variance(self) -> str:
        """The unit of the standard errors: "cluster" or "item"."""
        return self.sums.kind

    @property
    def n_clusters(self) -> float:
        """Number of independent units: clusters, or items for ``variance="item"``."""
        count = self.sums.count
        return int(count) if float(count).is_integer() else count

    @property
    def df(self) -> float:
        """Degrees of freedom of the intervals: clusters less one."""
        return self.sums.count - 1

    @cached_property
    def estimate(self) -> Array:
        """The metric by group, shape (G,); NaN for a group without support."""
        return read_only(self.sums.estimate(self.metric.finalize))

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the estimates, shape (G, G), by the delta method."""
        return read_only(self.sums.covariance(self.metric.finalize))

    @property
    def standard_error(self) -> Array:
        """Standard errors, shape (G,)."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def support(self) -> Array:
        """Pairs (or rows, or queries) behind each estimate, shape (G,)."""
        return read_only(self.sums.estimate(self.metric.support))

    def _index(self, group: Hashable, name: str) -> int:
        try:
            return self.groups.index(group)
        except ValueError:
            raise ValueError(
                f"{name} must be one of the groups {list(self.groups)}; got {group!r}."
            ) from None

    def resampled(
        self,
        n_resamples: int = 1000,
        random_state: int | np.random.Generator | None = None,
    ) -> Array:
        """Return estimates on resampled clusters, shape (n_resamples, G).

        Parameters
        ----------
        n_resamples : int, default=1000
        random_state : int, Generator or None, default=None
            Seed or generator of the random numbers. None draws anew in each call.

        Returns
        -------
        ndarray of shape (n_resamples, G)
            NaN where a resample left a group without support.

        Raises
        ------
        ValueError
            After `compact`, or for ``variance="item"``.
        """
        check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
        totals = self.sums.resample(n_resamples, generator(random_state))
        return np.concatenate([self.metric.finalize(*parts) for parts in totals])

    def confidence_interval(
        self,
        confidence_level: float = 0.95,
        method: str = "delta",
        n_resamples: int = 1000,
        random_state: int | np.random.Generator | None = None,
    ) -> ConfidenceInterval:
        """Return an interval for each group on its own.

        Parameters
        ----------
        confidence_level : float, default=0.95
        method : {"delta", "bootstrap"}, default="delta"
            "delta": estimate ± quantile of Student's t with ``n_clusters - 1`` degrees
            of freedom × standard error. "bootstrap": percentiles over resampled
            clusters; the first pass is held.
        n_resamples : int, default=1000
        random_state : int, Generator or None, default=None
            Seed or generator of the random numbers. None draws anew in each call.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (G,).

        Raises
        ------
        ValueError
            For a level outside (0, 1), an unknown method, or a bootstrap of a result
            without its table of clusters.
        """
        check_choice(method, "method", ("delta", "bootstrap"))
        quantile = t_quantile(confidence_level, self.df)
        if method == "bootstrap":
            resampled = self.resampled(n_resamples, random_state)
            return ConfidenceInterval(*percentiles(resampled, confidence_level))
        margin = quantile * self.standard_error
        return ConfidenceInterval(self.estimate - margin, self.estimate + margin)

    def simultaneous_interval(
        self,
        confidence_level: float = 0.95,
        n_resamples: int = 20_000,
        random_state: int | np.random.Generator | None = 0,
    ) -> ConfidenceInterval:
        """Return intervals that hold for all groups at once.

        The quantile is that of the largest ``|t|`` over the groups, simulated with
        their estimated correlation, so it is below Bonferroni's.

        Parameters
        ----------
        confidence_level : float, default=0.95
        n_resamples : int, default=20000
            Draws of the simulation.
        random_state : int, Generator or None, default=0
            Seed or generator of the random numbers, 0 so that a result that is computed
            when it is first asked for can be repeated.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (G,).
        """
        check_level(confidence_level)
        check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
        error = self.standard_error
        quantile = max_t_quantile(
            self.covariance, self.df, confidence_level, n_resamples, random_state
        )
        margin = quantile * error
        return ConfidenceInterval(self.estimate - margin, self.estimate + margin)

    def against_rest(self) -> GroupEstimates:
        """Return the value of each group less that of all other items.

        Returns
        -------
        GroupEstimates
            With fair value 0, and the same intervals, tests and sums.

        Raises
        ------
        ValueError
            If the metric already compares a group with the rest.
        """
        if self.metric.against_rest is None:
            raise ValueError(
                f"{self.name} has no value of the rest to compare a group with."
            )
        metric = self.metric.as_difference(
            f"{self.name}_against_rest", self.metric.against_rest
        )
        return replace(self, metric=metric)

    def test(
        self,
        method: str | None = None,
        n_resamples: int = 999,
        random_state: int | np.random.Generator | None = None,
    ) -> GroupTest:
        """Test each group against its fair value, or against the rest.

        A metric whose fairness is equality (`pairwise_accuracy`) is tested against the
        rest, and statistical parity against lists whose labels are shuffled.

        Parameters
        ----------
        method : {"t", "permutation"} or None, default=None
            "t": two-sided, Student's t with ``n_clusters - 1`` degrees of freedom.
            "permutation": exact for one list or many; it takes lists to be fair when
            every order of the labels is equally likely. None: the metric's own.
        n_resamples : int, default=999
            Shuffles.
        random_state : int, Generator or None, default=None
            Seed or generator of the random numbers. None draws anew in each call.

        Returns
        -------
        GroupTest
            Not corrected for the number of groups.

        Raises
        ------
        ValueError
            If the metric cannot be tested, or not by this method.
        """
        method = self.metric.test_method if method is None else method
        check_choice(method, "method", ("t", "permutation"))
        if method == "permutation":
            return permutation_test(self, n_resamples, random_state)
        if self.fair_value is None and self.metric.against_rest is not None:
            return self.against_rest().test()
        return t_group_test(self)

    def contrast(self, a: Hashable, b: Hashable, kind: str = "difference") -> Estimate:
        """Compare two groups, with their covariance.

        Parameters
        ----------
        a, b : hashable
            Labels of two groups.
        kind : {"difference", "ratio"}, default="difference"
            ``a - b`` or ``a / b``.

        Returns
        -------
        Estimate
        """
        pair = [self._index(a, "a"), self._index(b, "b")]
        return contrast(
            (a, b),
            self.estimate[pair],
            self.covariance[np.ix_(pair, pair)],
            kind,
            self.df,
            Resampler(self.resampled, pair),
        )

    def contrasts(
        self,
        kind: str = "difference",
        reference: Hashable = None,
        correction: str = "holm",
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        """Return contrasts of all pairs of groups, or of all with one.

        Parameters
        ----------
        kind : {"difference", "ratio"}, default="difference"
        reference : hashable or None, default=None
            A group to compare every other with; None compares all pairs.
        correction : str, default="holm"
            Method of statsmodels' `multipletests` for ``pvalue_corrected``.
        confidence_level : float, default=0.95

        Returns
        -------
        DataFrame
            One row a contrast: a, b, estimate, standard_error, ci_low, ci_high, pvalue,
            pvalue_corrected.
        """
        if reference is None:
            pairs = list(combinations(self.groups, 2))
        else:
            self._index(reference, "reference")
            pairs = [(g, reference) for g in self.groups if g != reference]
        return contrasts_frame(
            pairs,
            [self.contrast(a, b, kind) for a, b in pairs],
            correction,
            confidence_level,
        )

    def disparity(self, kind: str | None = None) -> float:
        """Return one number for the whole: how far the groups are from fair.

        Being a maximum it has no delta-method interval: see `disparity_bound`, and
        `contrasts` for the differences behind it.

        Parameters
        ----------
        kind : {"difference", "ratio", "max_abs", "l1"} or None, default=None
            "difference": largest minus smallest estimate; "ratio": smallest over
            largest; "max_abs": largest distance from the fair value; "l1": their sum.
            None is the metric's own.

        Returns
        -------
        float
            NaN if a group has no estimate, which would hide, or is the only one.

        Raises
        ------
        ValueError
            For "max_abs" or "l1" of a metric without a fair value.
        """
        kind = self.metric.disparity if kind is None else kind
        return disparity(self.estimate, self.fair_value, kind)

    def disparity_bound(
        self, confidence_level: float = 0.95, kind: str | None = None
    ) -> float:
        """Return a confidence bound for `disparity`: no better than it is.

        Parameters
        ----------
        confidence_level : float, default=0.95
        kind : {"difference", "ratio", "max_abs", "l1"} or None, default=None
            As in `disparity`.

        Returns
        -------
        float
            An upper bound; for "ratio" a lower one. It is the worst value within
            simultaneous intervals, so it holds with at least this confidence.
        """
        check_level(confidence_level)
        return disparity_bound(
            self.estimate,
            self.covariance,
            self.df,
            self.fair_value,
            self.metric.disparity if kind is None else kind,
            confidence_level,
        )

    @property
    def has_pvalue(self) -> bool:
        """Whether there is a p-value without shuffling labels."""
        fair = self.fair_value is not None or self.metric.against_rest is not None
        return fair and self.metric.test_method == "t"

    @cached_property
    def pvalue(self) -> Array:
        """P-values of the t-test by group, shape (G,); NaN if there is none."""
        if not self.has_pvalue:
            return read_only(np.full(len(self.groups), np.nan))
        return read_only(self.test().pvalue)

    def to_frame(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return one row a group.

        Parameters
        ----------
        confidence_level : float, default=0.95

        Returns
        -------
        DataFrame
            Indexed by group: estimate, standard_error, ci_low, ci_high, support and
            pvalue.
        """
        return fmt.estimates_frame(self, confidence_level)

    def breakdown(self) -> pd.DataFrame:
        """Return the table by stratum, for a metric that averages over strata.

        Returns
        -------
        DataFrame
            One row a group and stratum: group, bucket, low, high, estimate,
            standard_error, support.

        Raises
        ------
        ValueError
            If the metric was called without strata.
        """
        if self.metric.breakdown is None:
            raise ValueError(f"{self.name} was called without strata (engagement).")
        return self.metric.breakdown(self)

    def compact(self) -> GroupEstimates:
        """Return the same result without the table of clusters.

        Estimates, standard errors and sums stay; the bootstrap, paired comparisons and
        permutations need the table.

        Returns
        -------
        GroupEstimates
        """
        return replace(self, sums=self.sums.compact(), permutation=None)

    def __add__(self, other: object) -> GroupEstimates:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, GroupEstimates):
            return NotImplemented
        a, b = of_one_length(self, other)
        if a.metric != b.metric or a.parameters != b.parameters:
            raise ValueError(
                "Only results of one metric with the same options can be added; got "
                f"{a.name} {dict(a.parameters)} and {b.name} {dict(b.parameters)}."
            )
        return replace(
            a,
            first_pass=merge_first_pass(a.first_pass, b.first_pass),
            sums=a.sums + b.sums,
            permutation=_both(a.permutation, b.permutation),
        )

    def __radd__(self, other: object) -> GroupEstimates:
        """Let ``sum(results)`` start from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def plot(self, ax: Any = None, **kwargs: Any) -> GroupEstimatesDisplay:
        """Draw the estimates with their intervals, one line a group.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
        **kwargs : dict
            Passed to `GroupEstimatesDisplay.plot`.

        Returns
        -------
        GroupEstimatesDisplay
        """
        from ..display import GroupEstimatesDisplay

        return GroupEstimatesDisplay.from_estimates(self, ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return a small table: group, estimate, interval, support, p-value."""
        return fmt.estimates_text(self)

    def _repr_html_(self) -> str:
        return fmt.estimates_html(self)
