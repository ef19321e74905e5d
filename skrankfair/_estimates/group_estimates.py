"""`GroupEstimates`: the result of every metric, with intervals, tests and plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._inputs.groups import number_of
from .._inputs.validation import Array, check_choice, check_number, generator, warn_user
from . import formatting as fmt
from . import storage
from .arrays import AddsUp, cached_read_only, check_memory
from .estimates import (
    EquivalenceTest,
    Estimate,
    Estimates,
    GroupTest,
    contrasts_of,
    correct,
    estimates_of,
    one_test,
    permutation_test,
)
from .finalize import PositionMean
from .leverage import FEW_EVENTS, degrees_of_freedom, uneven_errors, unseen_of
from .metric import (
    Metric,
    merge_first_pass,
    metric_of_totals,
    warn_small,
    warn_undefined,
)
from .older import with_present_columns
from .power import Pilot, PilotData
from .resampled import Replicates
from .rows import table_of_sums
from .scales import ConfidenceInterval, Ends, check_level, t_quantile
from .simultaneous import KINDS, disparity, disparity_bound, simultaneous, why_undefined
from .sums import MOST_COVARIANCES, ClusterSums

if TYPE_CHECKING:
    from ..display import GroupEstimatesDisplay

#: Level of the tests for gaps that a mean over strata hides.
_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class GroupEstimates(AddsUp, PilotData):
    """A metric by group, with all that its errors need.

    Metric functions return such results, and `from_sums` makes one from your own sums.
    Results are additive: ``a + b`` is the result on the union of their clusters, so
    parts of a large data set can be measured one by one, kept by `compact`, and summed.

    Attributes
    ----------
    metric : Metric
        Name, fair value, what the support counts.
    sums : ClusterSums
        The table of sums by cluster, with its totals.
    parameters : dict
        The options that the metric was called with.
    first_pass : dict
        Numbers that were chosen from the data before the sums were taken (a matching
        threshold, bin edges), by group where they differ by group.
    permutation : object or None
        The lists whose labels `test` shuffles, for metrics of statistical parity; None
        after `compact`.
    missing : dict of str to int
        How many rows lacked a value, where ``missing="drop"`` or "group" let them: by
        column, how many were left out ("dropped"), and how many without a label became
        a group ("labelled"). Empty if no row did.
    """

    metric: Metric
    sums: ClusterSums
    parameters: Mapping[str, Any] = field(default_factory=dict)
    first_pass: Mapping[str, Any] = field(default_factory=dict)
    permutation: Any = None
    missing: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_sums(
        cls,
        table: Any,
        finalize: Callable[[Array], Any],
        *,
        groups: Sequence[Hashable],
        name: str,
        labels: Any = None,
        support: int | None = None,
        unit: str = "clusters",
        fair_value: float | None = None,
        share: bool = False,
        better: str | None = None,
    ) -> GroupEstimates:
        """Make a result of sums that were taken elsewhere, as in a database.

        Parameters
        ----------
        table : array-like of shape (Q, G, C)
            Sums of C columns over the rows of each of Q independent clusters and G
            groups; zeros where a cluster has nothing of a group.
        finalize : callable
            From totals of shape (..., C) to values of shape (...), for any leading
            axes; see `make_metric`.
        groups : sequence of hashable
            Labels of the groups, in the order of the table.
        name : str
            What the result and messages call the metric.
        labels : array-like of shape (Q,) or None, default=None
            Labels of the clusters, each once, by which results are paired; None
            numbers them.
        support : int or None, default=None
            Number of the column that counts what the estimate rests on. None counts
            the clusters that have something of the group.
        unit : str, default="clusters"
            What the support counts.
        fair_value : float or None, default=None
            The value that is fair for every group on its own. None: fair is equality.
        share : bool, default=False
            Whether the values are shares, so that intervals stay inside [0, 1].
        better : {"high", "low"} or None, default=None
            Which values are better, where either are.

        Returns
        -------
        GroupEstimates

        Raises
        ------
        ValueError
            If the table is not finite or of another shape, or labels do not fit it.

        Warns
        -----
        UndefinedMetricWarning
            For a group without value or error.

        Examples
        --------
        >>> from skrankfair.metrics import GroupEstimates
        >>> clicks_and_views = [[[1, 4], [3, 5]], [[2, 6], [0, 0]], [[0, 2], [1, 3]]]
        >>> r = GroupEstimates.from_sums(
        ...     clicks_and_views,
        ...     lambda totals: totals[..., 0] / totals[..., 1],
        ...     groups=["new", "old"],
        ...     name="clicks_per_view",
        ...     support=1,
        ...     unit="views",
        ... )
        >>> r.estimate, r.support
        (array([0.25, 0.5 ]), array([12.,  8.]))
        """
        labelled = table_of_sums(table, groups, labels, counted=support is None)
        if support is not None:
            check_number(support, "support", 0, labelled.n_columns - 1, integer=True)
        metric = metric_of_totals(
            finalize, name, unit, support, fair_value, share, better
        )
        sums = ClusterSums.from_rows(tuple(groups), labelled, [metric.support])
        return warn_undefined(cls(metric, sums))

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
        """The value that is fair for a group on its own; None if there is none."""
        return self.metric.fair_value

    @property
    def variance(self) -> str:
        """The unit of the standard errors: "cluster", "item" or "two-way" (both)."""
        return self.sums.kind

    @property
    def n_clusters(self) -> float:
        """Number of independent units: clusters, or items for ``variance="item"``."""
        count = self.sums.count
        return int(count) if float(count).is_integer() else count

    @cached_read_only
    def _df_and_effective(self) -> tuple[Array, Array]:
        """The degrees of freedom and effective numbers, mostly from leverages alone.

        Where few values make most of the error of a metric whose rows are counted, they
        are from the concentration of the error.
        """
        df, effective = degrees_of_freedom(self.sums, self.metric.finalize)
        if self.metric.counted:
            # The df of normal values with this concentration, which is 3 / (df + 2).
            df = np.where(self.uneven, 3 / self.tails[1] - 2, df)
            effective = np.where(self.uneven, df + 1, effective)
        if self.metric.by_chance:
            # What groups by chance show rests on all items, and not on their own.
            first = degrees_of_freedom(self.sums.ways[0], self.metric.finalize)[0]
            df = np.where(self.unseen[0] > 0, first, df)
        return df, effective

    @property
    def uneven(self) -> Array:
        """Whether few values make most of each error, (G,); False of many clusters."""
        df, n_effective = degrees_of_freedom(self.sums, self.metric.finalize)
        small = n_effective < FEW_EVENTS
        return small & uneven_errors(self.tails[1], df) if small.any() else small

    @cached_read_only
    def tails(self) -> Array:
        """Skewness and concentration of what clusters add to each error, (2, G)."""
        return self.sums.tails(self.metric.finalize, self.standard_error**2)

    @property
    def df(self) -> Array:
        """Degrees of freedom of Student's t by group, shape (G,).

        From the leverages of the clusters: ``n_clusters - 1`` where all have as much
        data of the group, few where one of them has most of it, or where a few extreme
        values make most of the error.
        """
        return self._df_and_effective[0]

    @property
    def n_effective(self) -> Array:
        """Effective number of clusters (or items) behind each estimate, shape (G,).

        ``1 / Σ_q h_q²``, where h_q is the share of the group's data in cluster q. Where
        a group is compared with the rest it is the smaller number of the two, and for
        two-way errors the smaller of users and items.
        """
        return self._df_and_effective[1]

    @cached_read_only
    def estimate(self) -> Array:
        """The metric by group, shape (G,); NaN for a group without support."""
        return self.sums.estimate(self.metric.finalize)

    @cached_read_only
    def covariance(self) -> Array:
        """Covariance of the estimates, shape (G, G), by the jackknife over clusters.

        Its diagonal lacks the variance of rare events that a group does not show, which
        `standard_error` has.
        """
        return self.sums.covariance(self.metric.finalize)

    @cached_read_only
    def unseen(self) -> Array:
        """Variance that rare events would add, which a group does not show, (3, G).

        With ``Σ u³`` and ``Σ u⁴`` of all influences u behind the error with these
        events; all are 0 where nothing is said of rare events.
        """
        return unseen_of(self)

    @cached_read_only
    def standard_error(self) -> Array:
        """Standard errors, shape (G,).

        Their variance is that of the jackknife, and that of rare events that a group
        does not show (see the notes of `confidence_interval`).
        """
        variance = self.sums.variance(self.metric.finalize) + self.unseen[0]
        if self.metric.base is not None:
            variance[self.sums.variance(self.metric.base) == 0] = 0.0
        return np.sqrt(variance)

    @cached_property
    def as_estimates(self) -> Estimates:
        """The values of the groups with their errors."""
        return estimates_of(self)

    @cached_property
    def overall(self) -> Estimate:
        """The metric of all rows, over groups, with its error.

        Raises
        ------
        ValueError
            For a metric that compares groups, or groups that overlap.
        """
        if not self.metric.pooled:
            raise ValueError(
                f"{self.name} has no value of all rows: it compares each group with "
                "the others, or its groups overlap."
            )
        pooled = replace(self, sums=self.sums.pooled(), permutation=None).as_estimates
        return replace(pooled, names=("overall",), null_value=None).one()

    @cached_read_only
    def support(self) -> Array:
        """Pairs (or rows, or queries) behind each estimate, shape (G,).

        They are counted, whatever their queries or rows weigh.
        """
        return self.sums.unweighted_support(self.metric.support)

    def resampled(
        self,
        n_resamples: int = 1000,
        random_state: int | np.random.Generator | None = None,
    ) -> Array:
        """Return estimates on resampled clusters, shape (n_resamples, G).

        Parameters
        ----------
        n_resamples : int, default=1000
            Number of resamples.
        random_state : int, Generator or None, default=None
            Seed or generator of the random numbers. None draws anew in each call.

        Returns
        -------
        ndarray of shape (n_resamples, G)
            NaN where a resample left a group without support. After
            ``compact(n_replicates=...)``, all its replicates.

        Raises
        ------
        ValueError
            After `compact` without replicates, or for ``variance="item"``.
        """
        check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
        totals = self.sums.resample(n_resamples, generator(random_state))
        return np.concatenate([self.metric.finalize(*parts) for parts in totals])

    def confidence_interval(
        self,
        confidence_level: float = 0.95,
        method: str = "t",
        n_resamples: int = 1000,
        random_state: int | np.random.Generator | None = None,
    ) -> ConfidenceInterval:
        """Return an interval for each group on its own.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.
        method : {"t", "bootstrap", "percentile"}, default="t"
            "t": Student's t with the group's degrees of freedom; of shares on the scale
            of the logit, so that the interval stays inside [0, 1], and the exact
            binomial interval of `n_effective` trials at 0 and 1. Where a few clusters
            hold most of the data, the null values that the wild bootstrap of `test`
            does not reject. "bootstrap": studentised, over resampled clusters, with a
            fixed first pass; below 20 degrees of freedom it contains the interval of
            "t". "percentile": quantiles of the resampled estimates, too narrow for few
            clusters. For a result after ``compact(n_replicates=...)`` both take all its
            replicates, "bootstrap" by percentiles as wide as Student's t.
        n_resamples : int, default=1000
            Number of resamples.
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
            without its table of clusters or replicates.

        Notes
        -----
        A small group in which no rare event happened says nothing of such events. Where
        few clusters make most of the error of a mean of rows, or few rows of all others
        would show a larger one, the variance at a value that is Δ away, on the side to
        which events move the mean, is ``V + |Δ Σ_q u_q³ / Σ_q u_q²|``: u_q are the
        influences of these clusters, and V is the variance that the group itself shows.
        Of losses the upper end is at least the one that follows.

        A share is on the scale of the logit, and has the error of a number of trials.
        If fewer than 15 of these are events (or fail to be), the end on their side is
        at least that of Jeffreys' interval, so that high levels hold, too. A share
        that lacks events which as few other clusters would show (fewer than ten of
        them, or it has fewer than two itself) reaches at least as far as one without
        events: ``1 - α^(1/n)``, α the probability beyond the end. n are the effective
        clusters; of a group with events, their geometric mean with the trials that
        these events show, or those of others in as many clusters or rows, if they are
        fewer. In one list the members of a small group vary at least as much as a
        sample of as many other items does.
        """
        warn_small(self)
        if method != "t" and self.metric.noise is not None:
            raise ValueError(
                f"method must be 't' for {self.name}, in whose resamples noise counts "
                f"twice; got {method!r}."
            )
        return self.as_estimates.interval(
            confidence_level, method, n_resamples, random_state
        )

    def ends(self, reach: Array) -> Ends:
        """Return intervals of a given number of standard errors each way.

        Unlike `confidence_interval` it does not warn of small groups.

        Parameters
        ----------
        reach : ndarray of shape (G,)
            Quantiles of Student's t with the degrees of freedom `df`.

        Returns
        -------
        low, high : ndarray of shape (G,)
        """
        return self.as_estimates.ends(reach)

    def simultaneous_interval(
        self,
        confidence_level: float = 0.95,
        n_resamples: int = 20_000,
        random_state: int | np.random.Generator | None = 0,
    ) -> ConfidenceInterval:
        """Return intervals that hold for all groups at once.

        The quantile is that of the largest ``|t|`` over the groups, simulated with
        their estimated correlation, so it is below Bonferroni's. For more than 1,000
        groups it is the quantile of independent estimates, which is at least as large
        (Šidák 1967).

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.
        n_resamples : int, default=20000
            Number of simulated draws.
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
        correlated = len(self.groups) <= MOST_COVARIANCES and self.sums.has_covariance
        spread = self.covariance if correlated else self.standard_error**2
        reach = simultaneous(spread, self.df, n_resamples, random_state).quantile(
            confidence_level, "sup_t"
        )
        warn_small(self)
        return ConfidenceInterval(*self.ends(reach))

    def against_rest(self) -> GroupEstimates:
        """Return the value of each group minus that of all other items.

        Returns
        -------
        GroupEstimates
            It has fair value 0, and the same intervals, tests and sums; no fair value
            where groups of unequal sizes differ in fair rankings too.

        Raises
        ------
        ValueError
            If the metric already compares a group with the rest.
        """
        return replace(self, metric=self.metric.minus_rest())

    def as_gap(self) -> GroupEstimates:
        """Return the result that is tested.

        It is this result, or its difference from the rest, or the estimates without the
        slope term of pairs that lie to one side (`matched_pair_calibration`).
        """
        gap = self.metric.as_gap()
        return self if gap is self.metric else replace(self, metric=gap)

    @property
    def slope_term(self) -> Array:
        """What the slope of the outcome over the score adds to each estimate, (G,).

        Equal treatment has it too, so tests subtract it. It is 0 for all metrics but
        `matched_pair_calibration` from below, and NaN where no pair can tell the slope.
        """
        if self.metric.slope is None:
            return np.zeros(len(self.groups))
        return self.sums.estimate(self.metric.slope)

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
            "t": two-sided, Student's t with the group's degrees of freedom; of shares,
            the test that their interval goes with. Where a few clusters hold most of
            the data, the wild cluster bootstrap (see Notes).
            "permutation": exact for one list or many; it takes lists to be fair when
            every order of the labels is equally likely. None: the metric's own, and
            "permutation" for one list of a metric that takes both.
        n_resamples : int, default=999
            Number of shuffles.
        random_state : int, Generator or None, default=None
            Seed or generator of the random numbers. None draws anew in each call.

        Returns
        -------
        GroupTest
            Its p-values are not corrected for the number of groups.

        Raises
        ------
        ValueError
            If the metric cannot be tested, or not by this method.

        Warns
        -----
        UserWarning
            Where a mean over strata of engagement hides the gap of a stratum: a gap
            with p < 0.05 (by Bonferroni over the strata of the group), when the mean
            has a gap of another sign or no significant one. `breakdown` has all strata.

        Notes
        -----
        Where clusters are unequal Student's t is safe but finds next to nothing. With
        less than a third of the degrees of freedom of equal clusters, fewer than 30,
        and at least eight clusters with data of the group that are more than single
        rows, p-values and intervals are those of a wild cluster bootstrap: the signs of
        the clusters' influences are drawn at random with the null value imposed, and
        residuals are divided by one minus the leverage. The draws have a fixed seed and
        do not depend on the order of the data, the labels of clusters, or the number of
        parts. Means that are to reckon with rare events (see `confidence_interval`)
        keep Student's t, since signs of clusters without an event cannot show what one
        would add.

        References
        ----------
        MacKinnon, J. G., Nielsen, M. Ø., Webb, M. D. (2023). "Fast and Reliable
        Jackknife and Bootstrap Methods for Cluster-Robust Inference". Journal of
        Applied Econometrics 38(5).
        """
        method = self.usual_test if method is None else method
        check_choice(method, "method", ("t", "permutation"))
        if method == "permutation":
            return permutation_test(self, n_resamples, random_state)
        if self.metric.test_method == "permutation":
            raise ValueError(
                f"method must be 'permutation' for {self.name}, whose mean is not "
                f"{self.fair_value:g} in fair rankings; got 't'."
            )
        gap = self.as_gap()
        warn_small(gap)
        if self.hidden_gaps:
            warn_user(f"{self.name}: {self.hidden_gaps}.", UserWarning)
        statistic, pvalue = gap.as_estimates.t_and_pvalue
        return GroupTest(
            groups=gap.groups,
            estimate=gap.estimate,
            standard_error=gap.standard_error,
            statistic=statistic,
            pvalue=pvalue,
            df=gap.df,
            null_value=gap.metric.fair_value or 0.0,
        )

    def equivalence_test(
        self, margin: float | tuple[float, float], alpha: float = 0.05
    ) -> EquivalenceTest:
        """Test whether each group is shown to be within a margin of fair.

        The two one-sided tests of the distance from the fair value or, for a metric
        whose fairness is equality, of the difference from the rest. Where `test` finds
        nothing, this says whether there is nothing to be found.

        Parameters
        ----------
        margin : float or tuple of float
            Largest distance that does not matter, either way (0.02), or its two bounds
            (-0.02, 0.02). With an infinite bound it is the one-sided test of
            non-inferiority.
        alpha : float, default=0.05
            Level of the test.

        Returns
        -------
        EquivalenceTest
            ``corrected()`` is over the groups; ``overall_pvalue`` is the
            intersection-union test that no group is further off.

        Raises
        ------
        ValueError
            If 0 is not inside the margin, for a level outside (0, 0.5), or for a metric
            that has neither a fair value nor one of the rest.

        Notes
        -----
        The mean of a rare loss varies more the larger it is. For means of rows the
        variance at a bound that is Δ away from the estimate, on the side to which rare
        events move it, is taken as ``V + |Δ Σ_q u_q³ / Σ_q u_q²|``: V is that at the
        estimate, and u_q are the influences of clusters. ``low`` and ``high`` go with
        it, and one of them is further out than `confidence_interval` says.

        References
        ----------
        Schuirmann, D. J. (1987). "A Comparison of the Two One-Sided Tests Procedure
        and the Power Approach". Journal of Pharmacokinetics 15(6).

        Examples
        --------
        >>> import numpy as np
        >>> from skrankfair.metrics import pairwise_accuracy
        >>> rng = np.random.default_rng(0)
        >>> query = np.repeat(np.arange(2000), 10)
        >>> group = rng.choice(["f", "m"], size=query.size)
        >>> clicked = rng.random(query.size) < 0.3
        >>> r = pairwise_accuracy(
        ...     clicked,
        ...     rng.random(query.size),
        ...     sensitive_features=group,
        ...     qid=query,
        ...     comparison="inter",
        ... )
        >>> r.equivalence_test(margin=0.05).equivalent
        array([ True,  True])
        """
        gap = self.as_gap()
        test = gap.as_estimates.equivalence_test(margin, alpha)
        warn_small(gap)
        return test

    def minimum_detectable(
        self, power: float = 0.8, alpha: float = 0.05, pilot_error: str = "estimated"
    ) -> Array:
        """Return the true distance from fair that data like these find, by group.

        Parameters
        ----------
        power : float, default=0.8
            Chance that the two-sided t-test finds it.
        alpha : float, default=0.05
            Level of the test.
        pilot_error : {"estimated", "known"}, default="estimated"
            Whether the power is the mean over pilots like this one, whose standard
            errors differ by chance, or that of a test whose true error is this one, as
            in a textbook's formula.

        Returns
        -------
        ndarray of shape (G,)
            In units of the metric; the level is divided by the number of groups that
            can be tested (two groups that are each the rest of the other are one test).
            NaN for a group without an error. The errors are taken to be those of these
            data, although a gap may change them (see `required`).

        Raises
        ------
        ValueError
            Unless ``0 < alpha < power < 1``, for a metric that is not tested by t, or
            for an unknown `pilot_error`.

        Warns
        -----
        SmallSampleWarning
            Where a pilot cannot promise power: a group with fewer than 12 effective
            clusters, or an error that is mostly of a few clusters with extreme values.
            Not with ``pilot_error="known"``.

        See Also
        --------
        required : How many clusters a smaller gap needs.

        Examples
        --------
        >>> import numpy as np
        >>> from skrankfair.metrics import pairwise_exposure
        >>> rng = np.random.default_rng(0)
        >>> query = np.repeat(np.arange(200), 10)
        >>> group = rng.choice(["f", "m"], size=query.size)
        >>> r = pairwise_exposure(
        ...     None, rng.random(query.size), sensitive_features=group, qid=query
        ... )
        >>> r.minimum_detectable().round(3)
        array([0.044, 0.044])
        >>> int(r.required(gap=0.02).n_clusters[0])
        939
        """
        return self.as_pilot(pilot_error).detectable(power, alpha)

    def as_pilot(self, pilot_error: str) -> Pilot:
        """Return the result as a pilot for plans; warn where it can promise little."""
        if self.usual_test != "t":
            raise ValueError(
                f"{self.name} is tested by permutation, which has no power formula."
            )
        gap = self.as_gap()
        known = int((gap.standard_error > 0).sum())
        n_tests = 1 if one_test(gap.pvalue) else max(1, known)
        pilot = gap.as_estimates.pilot(pilot_error, self.name)
        return replace(pilot, n_effective=gap.n_effective, n_tests=n_tests)

    def _check_compared(self) -> None:
        """Raise a ValueError where noise makes the estimates of groups differ."""
        if self.metric.not_compared is not None:
            raise ValueError(
                f"Groups have no contrast in {self.name}: {self.metric.not_compared}"
            )

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
            Without a p-value where groups of unequal sizes differ in fair rankings too,
            as distances do, which chance makes larger in smaller groups. A ratio of
            what may be negative has neither error nor p-value where the 95% interval of
            a or b holds 0.

        Raises
        ------
        ValueError
            For an unknown group or kind, or a metric whose estimates noise makes
            differ.
        """
        self._check_compared()
        first = np.array([number_of(a, self.groups, "a")])
        second = np.array([number_of(b, self.groups, "b")])
        warn_small(self)
        name = f"{fmt.label(a)} {'/' if kind == 'ratio' else '-'} {fmt.label(b)}"
        return contrasts_of(self, first, second, kind, [name]).one()

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
            ``a - b`` or ``a / b``.
        reference : hashable or None, default=None
            A group to compare every other with; None compares all pairs.
        correction : str, default="holm"
            Method of statsmodels' `multipletests` for ``pvalue_corrected``.
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            One row per contrast: a, b, estimate, standard_error, df, ci_low, ci_high,
            pvalue, pvalue_corrected.
        """
        self._check_compared()
        n_groups = len(self.groups)
        if reference is None:
            check_memory(
                200.0 * n_groups**2,
                f"Contrasts of all pairs of {n_groups} groups",
                "pass a reference to compare every other group with.",
            )
            first, second = np.triu_indices(n_groups, 1)
        else:
            one = number_of(reference, self.groups, "reference")
            first = np.delete(np.arange(n_groups), one)
            second = np.full(first.size, one)
        warn_small(self)
        values = contrasts_of(self, first, second, kind)
        low, high = values.ends(t_quantile(confidence_level, values.df))
        pvalue = values.t_and_pvalue[1]
        labels = pd.Series(list(self.groups), dtype=object).to_numpy()
        return pd.DataFrame(
            {
                "a": labels[first],
                "b": labels[second],
                "estimate": values.scale.estimate,
                "standard_error": values.scale.standard_error,
                "df": values.df,
                "ci_low": low,
                "ci_high": high,
                "pvalue": pvalue,
                "pvalue_corrected": correct(pvalue, correction),
            }
        )

    def disparity(self, kind: str | None = None) -> float:
        """Return one number for all groups: how far they are from fair.

        Being a maximum it has no standard error: see `disparity_bound` for an interval,
        and `contrasts` for the differences behind it.

        Parameters
        ----------
        kind : {"difference", "ratio", "max_abs", "l1", "worst"} or None, default=None
            "difference": largest minus smallest estimate; "ratio": smallest over
            largest; "max_abs": largest distance from the fair value; "l1": their sum;
            "worst": the estimate of the group that is worst off, a loss negated. None
            is the metric's own.

        Returns
        -------
        float
            NaN if a group has no estimate, as its gap would stay hidden. A single group
            has a distance from the fair value, but none from other groups: the latter
            is NaN, and so is the former where all groups share out a total, as in
            `exposure_gap`.

        Raises
        ------
        ValueError
            For "max_abs" or "l1" of a metric without a fair value, and "worst" of one
            that is neither better when it is high nor when it is low.

        Warns
        -----
        UndefinedMetricWarning
            If it is NaN though every group has an estimate.
        """
        kind = self.metric.disparity if kind is None else kind
        value = disparity(self.estimate, self.estimate, self.metric, kind)
        if np.isnan(value) and not np.isnan(self.estimate).any():
            warn_user(
                f"The disparity of {self.name} is undefined (NaN): it has "
                f"{why_undefined(self.estimate)}."
            )
        return value

    def disparity_bound(
        self, confidence_level: float = 0.95, kind: str | None = None
    ) -> float:
        """Return the worst `disparity` that the data are compatible with.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the bound.
        kind : {"difference", "ratio", "max_abs", "l1", "worst"} or None, default=None
            As in `disparity`.

        Returns
        -------
        float
            An upper bound; for "ratio" and "worst" a lower one. It is the worst of the
            one-sided limits of all pairs of groups, or of all groups: the pair that is
            truly the farthest apart is within its own limit with this confidence, so
            that a maximum needs no correction for the number of pairs. NaN for a ratio
            of what may be negative, where the 95% interval of a group holds 0.
        """
        check_level(confidence_level)
        kind = self.metric.disparity if kind is None else kind
        self.disparity(kind)  # which warns where it is undefined
        return disparity_bound(self, kind, confidence_level)

    @property
    def usual_test(self) -> str:
        """The method of `test` that the metric and the number of lists call for."""
        alone = self.permutation is not None and self.n_clusters == 1
        return "permutation" if alone else self.metric.test_method

    @property
    def has_pvalue(self) -> bool:
        """Whether there is a p-value without shuffling labels."""
        return self.says_fair and self.usual_test == "t"

    @property
    def says_fair(self) -> bool:
        """Whether the metric says what is fair: a value, or equality with the rest."""
        equal = self.metric.against_rest is not None and not self.metric.differing
        return equal or self.fair_value is not None

    @cached_read_only
    def pvalue(self) -> Array:
        """P-values of the t-test by group, shape (G,); NaN if there is none."""
        if not self.has_pvalue:
            return np.full(len(self.groups), np.nan)
        return self.as_gap().as_estimates.t_and_pvalue[1]

    def to_frame(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return one row per group.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Indexed by group: estimate, standard_error, ci_low, ci_high, support,
            n_effective, df, pvalue and, where it is tested without a slope term,
            slope_term. Its ``attrs`` say how many rows lacked a value, if any did.
        """
        low, high = self.confidence_interval(confidence_level)
        columns = {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "ci_low": np.asarray(low),
            "ci_high": np.asarray(high),
            "support": self.support,
            "n_effective": self.n_effective,
            "df": self.df,
            **({} if self.metric.slope is None else {"slope_term": self.slope_term}),
            "pvalue": self.pvalue,
        }
        frame = fmt.groups_frame(self.groups, columns)
        if self.missing:
            frame.attrs["missing"] = dict(self.missing)
        return frame

    def breakdown(self) -> pd.DataFrame:
        """Return the table by stratum, for a metric that averages over strata.

        Returns
        -------
        DataFrame
            One row per group and stratum. By engagement: group, bucket, low, high,
            estimate, standard_error, support and, where the metric is tested, the gap
            (the distance from the rest, or from the fair value), gap_standard_error,
            pvalue, and pvalue_corrected by Bonferroni over the strata of the group.

        Raises
        ------
        ValueError
            If the metric was called without strata.
        """
        if self.metric.breakdown is None:
            raise ValueError(f"{self.name} was called without strata (engagement).")
        return self.metric.breakdown(self)

    @cached_property
    def hidden_gaps(self) -> str:
        """A sentence on the gaps that the mean over strata hides; empty without any.

        A gap of a stratum is hidden if it is significant at 5% (by Bonferroni over the
        strata of the group), and the gap of the mean has another sign or is not
        significant itself.
        """
        by_strata = self.metric.breakdown and "engagement_edges" in self.first_pass
        if not (by_strata and self.has_pvalue):
            return ""
        table, gap = self.breakdown(), self.as_gap()
        mean = np.sign(gap.estimate - (gap.fair_value or 0.0))
        shown = dict(zip(self.groups, mean * (self.pvalue < _LEVEL), strict=True))
        names = ["group", "low", "high", "gap"]
        significant = table[table["pvalue_corrected"] < _LEVEL][names]
        hidden = [
            f"{fmt.label(group)} {gap:+.3f} in [{low:.3g}, {high:.3g}]"
            for group, low, high, gap in significant.to_numpy(dtype=object)
            if np.sign(gap) != shown[group]
        ]
        if not hidden:
            return ""
        return (
            "the mean over strata hides gaps (corrected p < 0.05): "
            f"{fmt.some(hidden)}; see breakdown()"
        )

    def compact(self, n_replicates: int = 0, random_state: int = 0) -> GroupEstimates:
        """Return the same result without the table of clusters and their labels.

        The labels of items stay where errors are over users and items, as items of
        several results recur. Estimates, standard errors and sums stay; the bootstrap
        and paired comparisons need the table or replicates, permutations the table.
        Beyond 6,000 groups, and for metrics of more than three sums by group, few rows
        without a rare event no longer have the error that as many rows of other groups
        would show.

        Parameters
        ----------
        n_replicates : int, default=0
            Number B of bootstrap replicates whose totals are kept, for which a few
            hundred do. In each of them a cluster counts a Poisson number of times that
            follows from `random_state` and the label of the cluster, so that the
            replicates of parts add up to those of the whole. No two clusters of any
            parts may have the same label.
        random_state : int, default=0
            Seed of the replicates, the same for all results that are to be added.

        Returns
        -------
        GroupEstimates

        Raises
        ------
        ValueError
            For replicates of items of one list (``variance="item"``), of a
            `calibration_error` that is fitted to the rows, or of a result without its
            table.

        References
        ----------
        Chamandy, N., Muralidharan, O., Najmi, A., Naidu, S. (2012). "Estimating
        uncertainty for massive data streams". Google technical report.

        Examples
        --------
        >>> import numpy as np
        >>> from skrankfair.metrics import pairwise_exposure
        >>> rng = np.random.default_rng(0)
        >>> query = np.repeat(np.arange(200), 10)
        >>> who = {"sensitive_features": rng.choice(["f", "m"], query.size)}
        >>> r = pairwise_exposure(None, rng.random(query.size), qid=query, **who)
        >>> kept = r.compact(n_replicates=200)
        >>> kept.confidence_interval(method="bootstrap").low.shape
        (2,)
        """
        check_number(n_replicates, "n_replicates", 0, np.inf, integer=True)
        drawn = None
        if n_replicates:
            drawn = Replicates.draw(self.sums, n_replicates, random_state)
        return replace(self, sums=self.sums.compact(drawn), permutation=None)

    def to_latex(self) -> str:
        r"""Return the table of the result in LaTeX.

        Returns
        -------
        str
            A ``tabular`` that needs the package booktabs; a comment before it has the
            metric and its options, and one after it the number of clusters.

        Examples
        --------
        >>> from skrankfair.metrics import selection_rate
        >>> sex, hired = ["f", "f", "m", "m"] * 25, [0, 1, 1, 1] * 25
        >>> r = selection_rate(None, hired, sensitive_features=sex)
        >>> print(r.to_latex().splitlines()[5])
        f & 0.5000 & [0.3603, 0.6397] & 50 & \textless{}0.001 \\
        """
        return fmt.estimates_latex(self)

    def to_json(self) -> str:
        """Return the result as text, which `from_json` reads anywhere and for ever.

        It is the result after `compact` in a documented schema of strict JSON: the
        metric with its options, the labels of the groups with their types, and the
        sums, every number exact. It holds no labels of clusters, but those of items
        (see `compact`).

        Returns
        -------
        str

        Raises
        ------
        ValueError
            That names the part that cannot be stored: a function of your own, such as
            those of `make_metric` or a `position_weight` (pass an array), or labels of
            an unusual type.
        """
        return storage.to_text(
            {
                "metric": self.metric,
                "parameters": dict(self.parameters),
                "first_pass": dict(self.first_pass),
                "sums": self.sums.compact(),
                "missing": dict(self.missing),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> GroupEstimates:
        """Return the result that `to_json` has written, now or in an older version.

        It is like a result after `compact`, and can be added to computed results.
        Nothing in the text is executed.

        Parameters
        ----------
        text : str

        Returns
        -------
        GroupEstimates

        Raises
        ------
        ValueError
            For text that is no complete result, or of a newer schema than this version
            of the package knows.
        """
        document = storage.read_json(text)
        storage.check_schema(document)
        document.setdefault("missing", {"map": []})  # older versions did not count it
        names = ("metric", "parameters", "first_pass", "sums", "missing")
        with storage.understood():
            result = cls(**{name: storage.decoded(document[name]) for name in names})
            result._check_parts()
        return with_present_columns(result)

    def _check_parts(self) -> None:
        """Raise an error unless what was read is a whole and consistent result."""
        if not (
            isinstance(self.metric, Metric)
            and isinstance(self.sums, ClusterSums)
            and isinstance(self.groups, tuple)
            and self.sums.by_group.shape[0] == len(set(self.groups))
        ):
            raise TypeError("no metric, sums or distinct groups")
        if not min(self.sums.count, *self.missing.values(), 0) == 0:
            raise ValueError("a negative count")
        dict(self.parameters), dict(self.first_pass), dict(self.missing)
        check_choice(self.metric.disparity, "disparity", KINDS)
        # Compute all that is shown, but for p-values, which take longest.
        fmt.described_estimates(self), self.ends(np.ones_like(self.df)), self.has_pvalue

    def __add__(self, other: object) -> GroupEstimates:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, GroupEstimates):
            return NotImplemented
        a, b = _widened(self, other), _widened(other, self)
        first_pass = merge_first_pass(a.first_pass, b.first_pass)
        if a.metric != b.metric or a.parameters != b.parameters:
            differ = [n for n, x in vars(a.metric).items() if x != vars(b.metric)[n]]
            raise ValueError(
                "Only results of one metric with the same options can be added; got "
                f"{a.name} {dict(a.parameters)} and {b.name} {dict(b.parameters)}, of "
                f"which the {', '.join(differ) or 'options'} differ."
            )
        alone = a.permutation is None or b.permutation is None
        return replace(
            a,
            first_pass=first_pass,
            sums=a.sums + b.sums,
            permutation=None if alone else a.permutation + b.permutation,
            missing=dict(Counter(a.missing) + Counter(b.missing)),
        )

    def __float__(self) -> float:
        """Return the estimate of the only group."""
        if len(self.groups) != 1:
            raise TypeError(
                f"float() needs a result of one group; {self.name} has "
                f"{len(self.groups)}: use estimate, overall or disparity()."
            )
        return float(self.estimate[0])

    def plot(self, ax: Any = None, **kwargs: Any) -> GroupEstimatesDisplay:
        """Draw the estimates with their intervals, one line per group.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
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


def _widened(result: GroupEstimates, like: GroupEstimates) -> GroupEstimates:
    """Return a result by position with columns for as many of them as another has.

    A result that is not by position, is no shorter or has other weights is unchanged.
    """
    own, longer = result.metric.finalize, like.metric.finalize
    if not (isinstance(own, PositionMean) and isinstance(longer, PositionMean)):
        return result
    size, width = len(own.weights), len(longer.weights)
    if size >= width or longer.weights[:size] != own.weights:
        return result
    blocks = result.sums.by_group.shape[1] // size
    place = np.arange(blocks)[:, None] * width + np.arange(size)
    sizes = {"n_columns": blocks * width, "n_supports": len(like.sums.supports)}
    to = replace(result.sums.layout, columns=place.ravel(), **sizes)
    widened = result.sums.renumbered(to, result.groups, like.sums.supports)
    return replace(result, metric=like.metric, sums=widened)
