"""Numbers with their errors: the values of groups, and contrasts of two groups.

Their tests are of a null value, of equivalence, and by permutation. Two one-sided tests
(Schuirmann 1987) ask whether a value is above the lower bound of a margin and below its
upper one; both must reject. At level α they reject exactly when the interval of level
``1 - 2 α`` lies inside the margin, as tests and intervals are made on the same scale.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy import special

from .._inputs.validation import Array, check_choice, check_number, generator, warn_user
from . import formatting as fmt
from .arrays import ReadOnlyArrays, Shown, cached_read_only
from .finalize import NOTHING, Finalize, PairedDifference, parts_of, quotient
from .leverage import (
    FEW_EVENTS,
    Arm,
    contrast_degrees,
    degrees_of_freedom,
    lack_events,
    skewness_of,
    trials_due,
    unseen,
    unseen_of_items,
)
from .power import LARGEST_GAP, PILOT_ERRORS, Pilot, PilotData, keeps_promise
from .resampled import Origin
from .scales import (
    LEAST_T,
    ConfidenceInterval,
    DifferenceScale,
    Ends,
    EventScale,
    LogScale,
    MeanScale,
    PlainScale,
    PositiveScale,
    RatioScale,
    RootScale,
    ShareScale,
    errors_of_tests,
    t_quantile,
    welch_df,
)
from .sums import ClusterSums
from .wild import wild_scale

if TYPE_CHECKING:
    from .group_estimates import GroupEstimates

METHODS = ("t", "bootstrap", "percentile")
# With fewer degrees of freedom a bootstrap interval contains that of Student's t.
_FEW_DF = 20


@dataclass(frozen=True, eq=False)
class Estimates(ReadOnlyArrays):
    """Numbers with their errors: the values of groups, or contrasts of two groups.

    Attributes
    ----------
    names : tuple of hashable, length m
        Empty where a frame names the contrasts.
    scale : PlainScale
        The estimates with their standard errors.
    df : ndarray of shape (m,)
        Degrees of freedom of Student's t.
    null_value : float or None
        The value that is tested; None: there is no test.
    origin : Origin
        The sums and groups that the numbers are functions of, and their kind.
    skewness : ndarray of shape (m,) or float
        ``Σ u³ / (Σ u²)^1.5`` of the influences u of means of rows, above 0 where rare
        events make the number larger. Tests of margins need it.
    at_most : bool
        Whether numbers below the null value are fair, too.
    """

    names: tuple[Hashable, ...]
    scale: PlainScale
    df: Array
    null_value: float | None
    origin: Origin
    skewness: Array | float = 0.0
    at_most: bool = False

    @cached_property
    def test_scale(self) -> PlainScale:
        """The scale of intervals and tests, wild where few clusters have most data."""
        return wild_scale(self.scale, self.df, self.origin)

    def ends(self, reach: Array) -> Ends:
        """Return intervals of a number of standard errors each way."""
        return self.test_scale.ends(reach, self.df)

    @cached_read_only
    def t_and_pvalue(self) -> tuple[Array, Array]:
        """Student's t and p-values of the null value; NaN without one.

        Two-sided, and 1 for what is fair below the null value.
        """
        if self.null_value is None:
            unknown = np.full(np.shape(self.df), np.nan)
            return unknown, unknown
        t, pvalue = self.test_scale.test(self.null_value, self.df)
        return t, np.where(self.at_most & (t < 0), 1.0, pvalue)

    def interval(
        self, confidence_level: float, method: str, n_resamples: int, random_state: Any
    ) -> ConfidenceInterval:
        """Return intervals by a method of `METHODS`."""
        check_choice(method, "method", METHODS)
        low, high = self.ends(t_quantile(confidence_level, self.df))
        if method != "t":
            drawn = self.origin.bootstrap_ends(
                self.scale, confidence_level, method, n_resamples, random_state
            )
            # Resamples of a few clusters are too like each other: 95% intervals of
            # inter-group accuracy missed 9% of data sets of ten queries.
            few = (self.df < _FEW_DF) & (method == "bootstrap")
            low = np.where(few, np.minimum(drawn[0], low), drawn[0])
            high = np.where(few, np.maximum(drawn[1], high), drawn[1])
        return ConfidenceInterval(low, high)

    def equivalence_test(self, margin: Any, alpha: float) -> EquivalenceTest:
        """Test whether each of the numbers is within a margin of its null value."""
        check_number(alpha, "alpha", 0, 0.5, inclusive=(False, False))
        bounds = margin_bounds(margin, self.origin.kind)
        fair = 0.0 if self.origin.kind == "ratio" else self.null_value or 0.0
        errors = self.scale.estimate, self.scale.standard_error
        scale = EventScale(*errors, self.test_scale, self.skewness)
        low, high = scale.ends(t_quantile(1 - 2 * alpha, self.df), self.df)
        above, below = (scale.test(bound + fair, self.df)[0] for bound in bounds)
        t = np.minimum(above, -below)
        pvalue = special.stdtr(self.df, np.where(np.abs(t) > LEAST_T, -t, 0.0))
        pvalue = np.where(np.isnan(low) | np.isnan(high), np.nan, pvalue)
        return EquivalenceTest(
            groups=self.names,
            estimate=self.scale.estimate - fair,
            margin=bounds,
            pvalue=pvalue,
            low=low - fair,
            high=high - fair,
            alpha=alpha,
        )

    def pilot(self, pilot_error: str, name: str) -> Pilot:
        """Return the numbers as a pilot for plans; warn where they can promise little.

        Parameters
        ----------
        pilot_error : {"estimated", "known"}
        name : str
            What is planned, for warnings.
        """
        check_choice(pilot_error, "pilot_error", PILOT_ERRORS)
        known, promised = pilot_error == "known", np.ones(len(self.names), dtype=bool)
        if not known:
            sums = self.origin.sums.of_groups(np.unique(self.origin.groups))
            promised = keeps_promise(name, sums, self.origin.finalize)
            if self.origin.kind != "value":
                promised = np.array([promised.all()])
        estimate, error = self.scale.estimate, self.scale.standard_error
        ratio = self.origin.kind == "ratio" and bool((estimate > 0).all())
        null_value = self.null_value or (1.0 if self.origin.kind == "ratio" else 0.0)
        return Pilot(
            names=self.names,
            standard_error=error / (estimate if ratio else 1.0),
            df=self.df,
            n_effective=self.df + 1,
            promised=promised,
            n_clusters=float(self.origin.sums.count),
            n_tests=1,
            ratio=ratio,
            largest=min(self.scale.bounds[1], LARGEST_GAP),
            pilot_df=None if known else self.df,
            tested=errors_of_tests(self.scale, null_value, self.df, logarithm=ratio),
        )

    def one(self) -> Estimate:
        """Return the only one of the numbers, as an `Estimate`."""
        numbers = self.scale.estimate, self.scale.standard_error, self.df
        estimate, error, df = (float(number[0]) for number in numbers)
        name, kind = str(self.names[0]), self.origin.kind
        return Estimate(name, estimate, error, df, self.null_value, kind, self)


@dataclass(frozen=True)
class Estimate(Shown, PilotData):
    """One number with its standard error: a contrast of two groups, or of all rows.

    Attributes
    ----------
    name : str
        What it is, for example ``"f - m"``.
    estimate : float
    standard_error : float
        By the jackknife, with the covariance of the two groups; that of a ratio by the
        delta method.
    df : float
        Degrees of freedom, from the leverages of the clusters.
    null_value : float or None
        0 for a difference, 1 for a ratio; None where nothing is tested.
    kind : {"difference", "ratio", "value"}
    """

    name: str
    estimate: float
    standard_error: float
    df: float
    null_value: float | None
    kind: str
    _estimates: Estimates = field(repr=False, compare=False)

    @property
    def statistic(self) -> float:
        """Student's t of the difference, or of the logarithm of the ratio.

        For shares, and where a few clusters hold most of the data, it is the t with the
        p-value at which the interval begins to contain the null value.
        """
        return float(self._estimates.t_and_pvalue[0][0])

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of the null value; NaN without variance or null value."""
        return float(self._estimates.t_and_pvalue[1][0])

    def as_pilot(self, pilot_error: str) -> Pilot:
        """Return the result as a pilot for plans; warn where it can promise little."""
        return self._compared.pilot(pilot_error, self.name)

    @property
    def _compared(self) -> Estimates:
        """The numbers, which have to have a fair value."""
        if self.null_value is None:
            raise ValueError(f"{self.name} is no contrast that has a fair value.")
        return self._estimates

    def confidence_interval(
        self,
        confidence_level: float = 0.95,
        method: str = "t",
        n_resamples: int = 1000,
        random_state: int | np.random.Generator | None = None,
    ) -> ConfidenceInterval:
        """Return the interval of the contrast.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.
        method : {"t", "bootstrap", "percentile"}, default="t"
            "t": Student's t, on the log scale for a ratio; of two shares, the interval
            that follows from theirs; where a few clusters hold most of the data, by the
            wild bootstrap of `GroupEstimates.test`. "bootstrap": studentised, over
            resampled clusters; below 20 degrees of freedom it contains the interval of
            "t". "percentile": quantiles of the resampled contrast.
        n_resamples : int, default=1000
            Number of resamples.
        random_state : int, Generator or None, default=None
            Seed or generator of the random numbers. None draws anew in each call.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, floats.

        Raises
        ------
        ValueError
            For a level outside (0, 1), an unknown method, or a bootstrap of a result
            without its table of clusters.
        """
        ends = self._estimates.interval(
            confidence_level, method, n_resamples, random_state
        )
        low, high = map(np.asarray, ends)
        return ConfidenceInterval(float(low[0]), float(high[0]))

    def equivalence_test(
        self, margin: float | tuple[float, float], alpha: float = 0.05
    ) -> EquivalenceTest:
        """Test whether the contrast is shown to be within a margin.

        Parameters
        ----------
        margin : float or tuple of float
            Largest difference that does not matter, either way (0.02), or its two
            bounds (-0.02, 0.02); of a ratio one bound (0.8, which stands for 0.8 to
            1.25) or both. With an infinite bound it is the one-sided test of
            non-inferiority.
        alpha : float, default=0.05
            Level of the test.

        Returns
        -------
        EquivalenceTest
            A small p-value shows that the contrast is within the margin.

        Raises
        ------
        ValueError
            If the margin does not contain the value of no difference, for a level
            outside (0, 0.5), or if the estimate is no contrast.
        """
        return self._compared.equivalence_test(margin, alpha)

    def minimum_detectable(
        self, power: float = 0.8, alpha: float = 0.05, pilot_error: str = "estimated"
    ) -> float:
        """Return the true difference that data like these find.

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
        float
            In units of the metric; of a ratio, a factor above 1.

        Raises
        ------
        ValueError
            Unless ``0 < alpha < power < 1``, for an unknown `pilot_error`, or if the
            estimate is no contrast that has a fair value.

        Warns
        -----
        SmallSampleWarning
            Where a pilot cannot promise power: a group with fewer than 12 effective
            clusters, or an error that is mostly of a few clusters with extreme values.
            Not with ``pilot_error="known"``.
        """
        return float(self.as_pilot(pilot_error).detectable(power, alpha)[0])

    def __repr__(self) -> str:
        """Return the contrast, its 95% interval and p-value on one line."""
        low, high = self.confidence_interval()
        value = f"{self.name}: {self.estimate:.4g}"
        if np.isnan(low) and np.isnan(high):
            return f"{value} (no interval)"
        test = "" if self.null_value is None else f", p = {self.pvalue:.3g}"
        return f"{value} (95% interval {low:.4g} to {high:.4g}{test})"


def estimates_of(result: GroupEstimates) -> Estimates:
    """Return the values of groups on the scale of their intervals and tests.

    The first that holds decides: a difference of two shares is on a `DifferenceScale`,
    a mean of two on a `MeanScale`, another share on a `ShareScale`, a mean of what is
    never negative on a `PositiveScale`, a root mean square on a `RootScale`, and means
    of rows of which some rest on rare events on an `EventScale`. All others are on a
    `PlainScale`.
    """
    metric, sums, df = result.metric, result.sums, result.df
    estimate, error = result.estimate, result.standard_error
    scale, (skewness, rare) = PlainScale(estimate, error), skewness_of(result)
    event = np.where(rare, skewness, 0.0)
    if metric.of_shares:
        side_df = None if sums.kind == "item" else df
        scale = _scale_of_share(sums, metric.finalize, side_df)
        if isinstance(scale, ShareScale) and metric.counted:
            scale = replace(scale, n_effective=result.n_effective)
        if metric.against_rest is not None:
            (scale,) = _with_unseen(sums, [scale], metric.against_rest.parts)
    elif metric.positive:
        scale = PositiveScale(estimate, error, scale, event)
    elif metric.noise is not None:
        narrow, narrow_error = np.full((2, *error.shape), np.nan)
        if metric.narrow is not None:
            square, its_noise = metric.narrow
            narrow = sums.estimate(square) - sums.estimate(its_noise)
            narrow_error = np.sqrt(sums.variance(square))
        noise = sums.estimate(metric.noise)
        scale = RootScale(estimate, error, noise, narrow, narrow_error)
    elif metric.of_rest is not None and rare.any():
        scale = EventScale(estimate, error, scale, event)
        skewness = np.where(rare, 0.0, skewness)  # which the scale has
    origin = Origin(sums, metric.finalize, np.arange(df.size)[:, None], "value")
    values = result.groups, scale, df, metric.fair_value, origin
    return Estimates(*values, skewness, metric.at_most)


def _scale_of_share(
    sums: ClusterSums, share: Finalize, df: Array | None = None
) -> ShareScale | DifferenceScale:
    """Return the scale of a share, or of the mean or the difference of two shares.

    `df` are the degrees of freedom of each share as a side; None: its own.
    """
    estimate, error = sums.estimate(share), np.sqrt(sums.variance(share))
    if isinstance(share, PairedDifference):
        a, b = (_scale_of_share(sums, part, df) for part in share.parts)
        correlation = correlation_in(error, a, b)
        a, b = _with_unseen(sums, [a, b], share.parts)
        return DifferenceScale(estimate, error, a, b, correlation)
    if parts := parts_of(share):
        a, b = (_scale_of_share(sums, part) for part in parts)
        return MeanScale(estimate, error, a, b, correlation_in(2 * error, a, b))
    own_df, effective = degrees_of_freedom(sums, share)
    trials, lacking = trials_due(share, *sums.totals)
    side_df = own_df if df is None else df
    # A share that is 0 or 1 but for rounding has the exact interval.
    exact = np.abs(estimate - np.round(estimate)) <= NOTHING
    estimate = np.where(exact, np.round(estimate), estimate)
    return ShareScale(estimate, error, np.fmin(effective, trials), side_df, lacking)


def _with_unseen(
    sums: ClusterSums,
    sides: Sequence[Any],
    shares: Sequence[Finalize],
    groups: Sequence[Any] = (slice(None),) * 2,
) -> Sequence[Any]:
    """Return the scales of one or two shares, wider for events that only one shows.

    `shares` are the functions of both, of a value and its rest or of two sides, and
    `groups` the numbers of their groups. Each of the two shares of a mean or a gap is
    compared with the same one of the other: balanced accuracy has two values and two
    rests.
    """
    if parts_of(shares[0]):
        scales = zip(*((side.first, side.second) for side in sides), strict=True)
        parts = zip(scales, zip(*map(parts_of, shares), strict=True), strict=True)
        both = [_with_unseen(sums, some, pair, groups) for some, pair in parts]
        of_sides = zip(sides, *both, strict=True)
        return [replace(side, first=a, second=b) for side, a, b in of_sides]
    if sums.kind != "item":
        of_sides = zip(sides, *lack_events(sums, shares, groups), strict=False)
        widened = []
        for side, lacking, trials in of_sides:
            fewest = np.where(side.lacking, np.fmin(side.n_effective, trials), trials)
            n = np.where(lacking, fewest, side.n_effective)
            widened.append(replace(side, lacking=side.lacking | lacking, n_effective=n))
        return widened
    of_items = zip(sides, unseen_of_items(sums, shares), strict=False)
    return [
        replace(side, standard_error=np.sqrt(side.standard_error**2 + more))
        for side, more in of_items
    ]


def correlation_in(error: Array, first: PlainScale, second: PlainScale) -> Array:
    """Return the correlation of two estimates whose difference has this error."""
    one, other = first.standard_error**2, second.standard_error**2
    return correlation_of((one + other - error**2) / 2, one, other)


def contrasts_of(
    result: GroupEstimates,
    first: Array,
    second: Array,
    kind: str,
    names: Sequence[Hashable] = (),
) -> Estimates:
    """Return differences or ratios of groups, given by number, with their errors.

    The variance is ``u² V_a + v² V_b + 2 u v C_ab``, where u and v are the derivatives
    of the contrast by the estimates of a and b: 1 and -1 for a difference.
    """
    check_choice(kind, "kind", ("difference", "ratio"))
    metric, sums = result.metric, result.sums
    finalize = metric.finalize
    pairs, estimates = np.stack([first, second], axis=1), result.estimate
    origin = Origin(sums, finalize, pairs, kind)
    (value,) = origin.combined(estimates[None])
    u, v = origin.slopes_of(estimates[pairs]).T
    of_groups = result.standard_error**2
    covariance = sums.covariances(finalize, first, second)
    one, other = of_groups[first], of_groups[second]
    same, group_df, third = first == second, result.df, 0.0 * one
    of_means = not metric.share and metric.of_rest is not None
    if (metric.heavy or of_means) and (result.n_effective < FEW_EVENTS).any():
        side = Arm.of(of_groups, result.n_effective, group_df, result.tails)
        both = (Arm(*(of[..., groups] for of in side)) for groups in (first, second))
        added = unseen(*both, of_as_many=kind == "ratio")
        (more, third, _), (more_of_other, of_other, _) = added
        one, other, third = one + more, other + more_of_other, third - of_other
    with np.errstate(divide="ignore", invalid="ignore"):
        independent = u**2 * one + v**2 * other  # the variance of independent groups
        variance = independent + 2 * u * v * covariance
        error = np.sqrt(np.where(variance < NOTHING * independent, 0.0, variance))
    error = np.where(same, 0.0 * error, error)
    if kind == "ratio" and metric.signed:
        # Of values whose signs are not known a ratio has none either.
        reach = t_quantile(0.95, group_df[pairs]) * result.standard_error[pairs]
        known = (np.abs(estimates[pairs]) > reach).all(axis=1)
        error = np.where(known | same, error, np.nan)
    df = contrast_degrees(sums, finalize, first, second)
    if metric.counted:
        df = np.fmin(df, welch_df(one, other, group_df[first], group_df[second]))
    df = np.where(np.isnan(one + other), np.nan, df)
    scale = LogScale(value, error) if kind == "ratio" else PlainScale(value, error)
    shares = result.as_estimates.scale
    sided = ShareScale | (MeanScale if kind == "ratio" else DifferenceScale)
    if isinstance(shares, sided) and not same.any():
        side_df = None if result.variance == "item" else df
        a, b = (shares.take(some, side_df) for some in (first, second))
        if sums.kind != "item" and not (metric.of_rest or metric.against_rest):
            a, b = _with_unseen(sums, [a, b], [finalize] * 2, (first, second))
        of_shares = RatioScale if kind == "ratio" else DifferenceScale
        scale = of_shares(value, error, a, b, correlation_of(covariance, one, other))
    fair = 1.0 if kind == "ratio" else 0.0
    # Two gaps that are 0 have no ratio.
    unknown = metric.differing or (fair and result.fair_value == 0)
    null_value = None if unknown else fair
    skewness = np.nan_to_num(quotient(third, error**3)) if kind == "difference" else 0.0
    return Estimates(tuple(names), scale, df, null_value, origin, skewness)


def correlation_of(covariance: Array, first: Array, second: Array) -> Array:
    """Return correlations from two variances; 0 where one of them is 0."""
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(first * second)
    correlation = np.where(scale > 0, quotient(covariance, scale), 0.0)
    return np.clip(correlation, -1.0, 1.0)


# Tests


class _Tests(ReadOnlyArrays):
    """Base of tests that have one p-value per group."""

    groups: tuple[Hashable, ...]
    pvalue: Array
    _columns: ClassVar[tuple[str, ...]]

    def corrected(self, method: str = "holm") -> Array:
        """Return p-values corrected over the groups.

        Parameters
        ----------
        method : str, default="holm"
            Any method of `statsmodels.stats.multitest.multipletests`.

        Returns
        -------
        ndarray of shape (G,)
            NaN where a group has no p-value; such groups do not count as tests. Two
            groups, each the rest of the other, have one test, which is not corrected.
        """
        return corrected_pvalues(self.pvalue, method)

    def to_frame(self, correction: str = "holm") -> pd.DataFrame:
        """Return one row per group.

        Parameters
        ----------
        correction : str, default="holm"
            Method of statsmodels' `multipletests` for ``pvalue_corrected``.

        Returns
        -------
        DataFrame
            Indexed by group: estimate, then null_value, standard_error, statistic and
            df of a test, or low and high of a test of equivalence; pvalue and
            pvalue_corrected.
        """
        columns = {
            name: np.broadcast_to(getattr(self, name), self.pvalue.shape)
            for name in self._columns
        }
        columns["pvalue_corrected"] = self.corrected(correction)
        return fmt.groups_frame(self.groups, columns)


@dataclass(frozen=True, eq=False)
class GroupTest(_Tests):
    """One test per group.

    Attributes
    ----------
    groups : tuple of hashable, length G
    estimate : ndarray of shape (G,)
        What is tested: the metric, or its difference from the rest.
    standard_error : ndarray of shape (G,)
        Standard error of the estimate. By permutation, the spread under shuffled
        labels, unless the test is Student's t over clusters against the mean of the
        shuffles.
    statistic : ndarray of shape (G,)
        Student's t; for shares on the logit scale, and where a few clusters hold most
        of the data the t with this p-value. By permutation, estimate minus `null_value`
        in units of the spread.
    pvalue : ndarray of shape (G,)
        Not corrected for the number of groups. Two-sided, but one-sided for a distance
        (large values speak against fairness), and 1 for a `boost_value` below 0. NaN
        where no variance is seen.
    df : ndarray of shape (G,)
        Degrees of freedom, from the leverages of the clusters; NaN by permutation.
    null_value : float or ndarray of shape (G,)
        The value under fairness; by permutation, the mean under shuffled labels.
    null_distribution : ndarray of shape (n_resamples, G) or None
        Estimates under shuffled labels.
    """

    groups: tuple[Hashable, ...]
    estimate: Array
    standard_error: Array
    statistic: Array
    pvalue: Array
    df: Array
    null_value: float | Array
    null_distribution: Array | None = field(default=None, repr=False)
    _columns = ("estimate", "null_value", "standard_error", "statistic", "df", "pvalue")

    def __repr__(self) -> str:
        """Return a small table: group, estimate, null value, statistic, df, p."""
        null_value = np.broadcast_to(self.null_value, self.estimate.shape)
        columns = {
            "estimate": map(fmt.number, self.estimate),
            "null value": map(fmt.number, null_value),
            "statistic": map(fmt.number, self.statistic),
            "df": [fmt.number(df, 1) for df in self.df],
            "p": map(fmt.pvalue, self.pvalue),
        }
        return fmt.groups_table(self.groups, columns)


@dataclass(frozen=True, eq=False)
class EquivalenceTest(_Tests):
    """Whether values are shown to be within a margin: one test per group or contrast.

    Attributes
    ----------
    groups : tuple of hashable, length G
        Groups, or the name of a contrast.
    estimate : ndarray of shape (G,)
        What is tested: a difference, a ratio, or the distance from the fair value.
    margin : tuple of float
        The bounds between which differences do not matter; one may be infinite.
    pvalue : ndarray of shape (G,)
        The larger p-value of the two one-sided tests. A small one shows that the value
        is within the margin. Not corrected for the number of groups.
    low, high : ndarray of shape (G,)
        The interval that lies inside the margin where the test rejects at `alpha`: of
        level ``1 - 2 alpha``.
    alpha : float
    """

    groups: tuple[Hashable, ...]
    estimate: Array
    margin: tuple[float, float]
    pvalue: Array
    low: Array
    high: Array
    alpha: float
    _columns = ("estimate", "low", "high", "pvalue")

    @property
    def equivalent(self) -> Array:
        """Which are shown to be within the margin, shape (G,), bool; uncorrected."""
        with np.errstate(invalid="ignore"):
            return self.pvalue < self.alpha

    @property
    def overall_pvalue(self) -> float:
        """P-value that every value is within the margin: the largest.

        The intersection-union test, which needs no correction; NaN if one is unknown.
        """
        return float(np.max(self.pvalue)) if self.pvalue.size else float("nan")

    def __repr__(self) -> str:
        """Return a small table, and the margin."""
        columns = {
            "estimate": map(fmt.number, self.estimate),
            f"{100 * (1 - 2 * self.alpha):g}% interval": map(
                fmt.interval, self.low, self.high
            ),
            "p": map(fmt.pvalue, self.pvalue),
        }
        low, high = self.margin
        return f"Within {low:g} to {high:g}?\n{fmt.groups_table(self.groups, columns)}"


def permutation_test(
    result: GroupEstimates, n_resamples: int, random_state: Any
) -> GroupTest:
    """Test a result against labels shuffled within lists.

    The p-value counts the estimate itself among the shuffled ones, so it is valid for
    any number of them: ``(1 + #{shuffled at least as extreme}) / (1 + n_resamples)``;
    a two-sided one is twice the smaller of the p-values at the two ends. Shuffles
    within lists ignore that a cluster of several lists may favour one group in all of
    them. Metrics with a sign are then tested by Student's t over clusters, of the
    distance from the mean of the shuffles. Where that is infinite, as that of a
    logarithm of shares that may be 0, there is no test.
    """
    check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
    rng = generator(random_state)
    if result.permutation is None:
        raise ValueError(
            "method='permutation' needs the lists of a metric of statistical parity, "
            f"such as ndkl, that are kept until compact(); {result.name} has none."
        )
    drawn = result.permutation.resampled(result.metric.finalize, n_resamples, rng)
    estimate = result.estimate
    undefined = np.isnan(estimate)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(np.isfinite(estimate), np.abs(estimate), 0.0)
        slack = 1e-12 * np.maximum(1.0, size)
        above = (drawn >= estimate - slack).sum(axis=0)
        below = (drawn <= estimate + slack).sum(axis=0)
        pvalue = (1 + above) / (1 + n_resamples)
        if result.permutation.alternative == "two-sided":
            lower = (1 + below) / (1 + n_resamples)
            pvalue = np.minimum(1.0, 2 * np.minimum(pvalue, lower))
        center, spread = drawn.mean(axis=0), drawn.std(axis=0)
        statistic = np.where(spread > 0, (estimate - center) / spread, 0.0)
    df = np.full(estimate.shape, np.nan)
    if result.permutation.clustered(result.n_clusters):
        error, known = result.standard_error, result.standard_error > 0
        null_value = np.where(np.isinf(center), np.nan, center)
        by_t = PlainScale(estimate, error).test(null_value, result.df)
        spread, df = np.where(known, [error, result.df], [spread, df])
        statistic, pvalue = np.where(known, by_t, [statistic, pvalue])
        if (lost := np.isfinite(estimate) & known & np.isinf(center)).any():
            names = fmt.some_groups(compress(result.groups, lost))
            warn_user(
                f"{result.name} has no test over clusters for {names}: by "
                "chance alone a list may have none of them, whose logarithm is "
                "infinite. average='representation' of skew_at_k has a test."
            )
    return GroupTest(
        groups=result.groups,
        estimate=estimate,
        standard_error=spread,
        statistic=np.where(undefined, np.nan, statistic),
        pvalue=np.where(undefined, np.nan, pvalue),
        df=df,
        null_value=center,
        null_distribution=drawn,
    )


def margin_bounds(margin: Any, kind: str) -> tuple[float, float]:
    """Return the bounds of a margin; a ValueError if it holds no fair value.

    Parameters
    ----------
    margin : float or tuple of float
        For a difference m, which stands for -m to m, or (low, high); for a ratio m,
        which stands for m to 1/m, or (low, high).
    kind : {"difference", "ratio", "value"}

    Raises
    ------
    ValueError
        If the margin does not contain the value without any difference.
    """
    fair = 1.0 if kind == "ratio" else 0.0
    try:
        if np.ndim(margin):
            low, high = map(float, margin)
        elif kind == "ratio":
            low, high = sorted((float(margin), 1 / float(margin)))
        else:
            low, high = -float(margin), float(margin)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        low, high = np.nan, np.nan
    if not low < fair < high:
        example = "0.8 or (0.8, 1.25)" if kind == "ratio" else "0.02 or (-0.02, 0.02)"
        raise ValueError(
            f"margin must hold {fair:g} inside its bounds, such as {example}; got "
            f"{margin!r}."
        )
    return low, high


def correct(pvalues: Array, method: str) -> Array:
    """Return p-values corrected for their number; NaN stays NaN and is no test."""
    from statsmodels.stats.multitest import multipletests, multitest_alias

    if not isinstance(method, str) or method.lower() not in multitest_alias:
        raise ValueError(
            "correction must be a method of statsmodels' multipletests, such as "
            f"'holm'; got {method!r}."
        )
    corrected, known = pvalues.copy(), ~np.isnan(pvalues)
    # In each correction by Holm statsmodels collects garbage, which takes 0.1 s.
    if known.sum() > 1:
        corrected[known] = multipletests(pvalues[known], method=method)[1]
    return corrected


def one_test(pvalues: Array) -> bool:
    """Return whether two groups have the same test, each being the rest of the other.

    Metrics of matched pairs have two tests, as each group has pairs of its own.
    """
    if pvalues.size != 2:
        return False
    first, second = pvalues.tolist()
    return bool(np.isclose(first, second, rtol=1e-6, atol=0))


def corrected_pvalues(pvalues: Array, method: str = "holm") -> Array:
    """Return corrected p-values; those of two groups with one test stay as they are."""
    alone = one_test(pvalues)
    corrected = correct(pvalues[:1] if alone else pvalues, method)
    return pvalues.copy() if alone else corrected
