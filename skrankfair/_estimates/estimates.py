"""Numbers with their errors, which metrics by group and contrasts are made of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array, check_choice
from .group_test import EquivalenceTest, equivalence
from .leverage import contrast_degrees
from .power import PILOT_ERRORS, Pilot, RequiredSize, keeps_promise
from .read_only import ReadOnlyArrays, cached_read_only
from .resampled import Resampler
from .scales import (
    ConfidenceInterval,
    DifferenceScale,
    LogScale,
    PlainScale,
    RatioScale,
    ShareScale,
    t_quantile,
)

if TYPE_CHECKING:
    from .group_estimates import GroupEstimates

METHODS = ("t", "bootstrap", "percentile")


@dataclass(frozen=True, eq=False)
class Estimates(ReadOnlyArrays):
    """Numbers with their errors: the values of groups, or contrasts of two groups.

    Attributes
    ----------
    names : tuple of hashable, length m
    scale : PlainScale
        The estimates with their standard errors.
    df : ndarray of shape (m,)
        Degrees of freedom of Student's t.
    null_value : float or None
        What is tested, if anything is.
    kind : {"difference", "ratio", "value"}
    resampler : Resampler or None
        The clusters behind them.
    """

    names: tuple[Hashable, ...]
    scale: PlainScale
    df: Array
    null_value: float | None
    kind: str = "value"
    resampler: Resampler | None = None

    @property
    def estimate(self) -> Array:
        """The estimates, shape (m,)."""
        return self.scale.estimate

    @property
    def standard_error(self) -> Array:
        """Their standard errors, shape (m,)."""
        return self.scale.standard_error

    def ends(self, reach: Array) -> tuple[Array, Array]:
        """Return intervals of a number of standard errors each way."""
        return self.scale.ends(reach, self.df)

    @cached_read_only
    def test(self) -> tuple[Array, Array]:
        """Student's t and two-sided p-values of the null value; NaN without one."""
        if self.null_value is None:
            unknown = np.full(np.shape(self.df), np.nan)
            return unknown, unknown
        return self.scale.test(self.null_value, self.df)

    def interval(
        self, confidence_level: float, method: str, n_resamples: int, random_state: Any
    ) -> tuple[Array, Array]:
        """Return intervals by a method of `METHODS`."""
        check_choice(method, "method", METHODS)
        ends = self.ends(t_quantile(confidence_level, self.df))
        if method == "t":
            return ends
        if self.resampler is None:
            raise ValueError("This estimate has no clusters to resample.")
        return self.resampler.ends(
            *(self.scale, self.df, ends, confidence_level),
            *(method, n_resamples, random_state),
        )

    def pilot(
        self,
        pilot_error: str,
        name: str | None = None,
        n_effective: Array | None = None,
        n_tests: int = 1,
    ) -> Pilot:
        """Return the numbers as a pilot for plans; warn where they can promise little.

        Parameters
        ----------
        pilot_error : {"estimated", "known"}
        name : str or None, default=None
            What is planned; None is the only name.
        n_effective : ndarray of shape (m,) or None, default=None
            Effective clusters; None: as many as the degrees of freedom say.
        n_tests : int, default=1
        """
        check_choice(pilot_error, "pilot_error", PILOT_ERRORS)
        known, resampler = pilot_error == "known", self.resampler
        promised = np.ones(len(self.names), dtype=bool)
        if resampler is not None and not known:
            sums, finalize = resampler.of_their_groups()
            promised = keeps_promise(name or str(self.names[0]), sums, finalize)
            if self.kind != "value":
                promised = np.array([promised.all()])
        ratio = self.kind == "ratio" and bool((self.estimate > 0).all())
        return Pilot(
            names=self.names,
            standard_error=self.standard_error / (self.estimate if ratio else 1.0),
            df=self.df,
            n_effective=self.df + 1 if n_effective is None else n_effective,
            promised=promised,
            n_clusters=np.nan if resampler is None else float(resampler.sums.count),
            n_tests=n_tests,
            ratio=ratio,
            known=known,
        )

    def one(self) -> Estimate:
        """Return the only one of the numbers, as an `Estimate`."""
        return Estimate(
            str(self.names[0]),
            float(self.estimate[0]),
            float(self.standard_error[0]),
            float(self.df[0]),
            self.null_value,
            self.kind,
            self,
        )


@dataclass(frozen=True)
class Estimate:
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

        For shares it is the t at which their interval begins to hold the null value.
        """
        return float(self._estimates.test[0][0])

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of the null value; NaN without variance or null value."""
        return float(self._estimates.test[1][0])

    def as_pilot(self, pilot_error: str) -> Pilot:
        """Return the result as a pilot for plans; warn where it can promise little."""
        return self._estimates.pilot(pilot_error)

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
            that follows from theirs. "bootstrap": studentised, over resampled
            clusters, and holding the interval of "t" below 20 degrees of freedom.
            "percentile": quantiles of the resampled contrast.
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
        return ConfidenceInterval(float(ends[0][0]), float(ends[1][0]))

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
            If the margin has no difference outside of it, or for a level outside
            (0, 0.5), or if the estimate is no contrast.
        """
        if self.null_value is None:
            raise ValueError(f"{self.name} is no contrast, so it has no margin.")
        return equivalence(self._estimates, margin, alpha)

    def minimum_detectable(
        self,
        power: float = 0.8,
        alpha: float = 0.05,
        pilot_error: str = "estimated",
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
            Unless ``0 < alpha < power < 1``, or for an unknown `pilot_error`.

        Warns
        -----
        SmallSampleWarning
            Where a pilot cannot promise power: a group with fewer than 12 effective
            clusters, or an error that is mostly of a few clusters with extreme values.
            Not with ``pilot_error="known"``.
        """
        return float(self.as_pilot(pilot_error).detectable(power, alpha)[0])

    def required(
        self,
        gap: float,
        power: float = 0.8,
        alpha: float = 0.05,
        pilot_error: str = "estimated",
    ) -> RequiredSize:
        """Return how many times the data of this pilot find a gap.

        Parameters
        ----------
        gap : float
            The true difference that shall be found; of a ratio, a factor such as 0.8.
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
        RequiredSize

        Raises
        ------
        ValueError
            For a gap that is not positive (a factor of 1), unless
            ``0 < alpha < power < 1``, or for an unknown `pilot_error`.

        Warns
        -----
        SmallSampleWarning
            Where a pilot cannot promise power: a group with fewer than 12 effective
            clusters, or an error that is mostly of a few clusters with extreme values.
            Not with ``pilot_error="known"``.
        """
        return self.as_pilot(pilot_error).required(gap, power, alpha)

    def __repr__(self) -> str:
        """Return the contrast, its 95% interval and p-value on one line."""
        low, high = self.confidence_interval()
        if np.isnan(low) and np.isnan(high):
            return f"{self.name}: {self.estimate:.4g} (no interval)"
        text = f"{self.name}: {self.estimate:.4g} (95% interval {low:.4g} to {high:.4g}"
        return (
            f"{text})" if self.null_value is None else f"{text}, p = {self.pvalue:.3g})"
        )


def contrasts_of(
    result: GroupEstimates,
    first: Array,
    second: Array,
    kind: str,
    names: Sequence[Hashable] = (),
) -> Estimates:
    """Return differences or ratios of groups, given by number, with their errors.

    The variance is ``u² V_a + v² V_b + 2 u v C_ab`` with the derivatives u and v by
    both, 1 and -1 of a difference.
    """
    check_choice(kind, "kind", ("difference", "ratio"))
    a, b = result.estimate[first], result.estimate[second]
    one, other, shared = result.covariances(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, u, v = a - b, np.ones(a.shape), -np.ones(a.shape)
        if kind == "ratio":
            value, u, v = a / b, 1 / b, -a / b**2
        error = u**2 * one + v**2 * other + 2 * u * v * shared
        error = np.sqrt(np.maximum(error, 0.0))
    same = first == second
    error = np.where(same, 0.0 * error, error)
    finalize = result.metric.finalize
    df = contrast_degrees(result.sums, finalize, first, second)
    scale = LogScale(value, error) if kind == "ratio" else PlainScale(value, error)
    shares = result.scale
    if isinstance(shares, ShareScale) and not same.any():
        side_df = df if result.variance == "cluster" else None
        sides = shares.take(first, side_df), shares.take(second, side_df)
        of_shares = RatioScale if kind == "ratio" else DifferenceScale
        scale = of_shares(value, error, *sides, correlation_of(shared, one, other))
    null_value = 1.0 if kind == "ratio" else 0.0
    resampler = Resampler(result.sums, finalize, first, second, kind == "ratio")
    return Estimates(tuple(names), scale, df, null_value, kind, resampler)


def correlation_of(covariance: Array, first: Array, second: Array) -> Array:
    """Return correlations from two variances; 0 where one of them is 0."""
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(first * second)
    correlation = np.zeros(scale.shape)
    np.divide(covariance, scale, out=correlation, where=scale > 0)
    return np.clip(correlation, -1.0, 1.0)
