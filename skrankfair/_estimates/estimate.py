"""One number with its error: a contrast of two groups, or the metric of all rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array, check_choice, check_number
from .intervals import (
    ConfidenceInterval,
    Positives,
    Shares,
    TwoShares,
    t_ends,
    t_quantile,
    t_test,
)

if TYPE_CHECKING:
    from .contrasts import Resampler
    from .equivalence import EquivalenceTest
    from .power import RequiredSize

METHODS = ("t", "bootstrap", "percentile")


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
    _shares: Shares | TwoShares | Positives | None = field(default=None, repr=False)
    _resampled: Resampler | None = field(default=None, repr=False)

    @property
    def statistic(self) -> float:
        """Student's t of the difference, or of the logarithm of the ratio.

        For shares it is the t at which their interval begins to hold the null value.
        """
        return self._test[0]

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of the null value; NaN without variance or null value."""
        return self._test[1]

    @cached_property
    def _test(self) -> tuple[float, float]:
        found: tuple[Any, Any] = (np.nan, np.nan)
        if isinstance(self._shares, TwoShares):
            found = self._shares.test(self.kind, self.df)
        elif self.null_value is not None:
            found = t_test(*self._linear, self.df)
        return float(found[0]), float(found[1])

    @property
    def _linear(self) -> tuple[float, float, float]:
        """Estimate, standard error and null value on the scale of Student's t."""
        null_value = 0.0 if self.null_value is None else self.null_value
        if self.on_log_scale:
            error = self.standard_error / self.estimate
            return float(np.log(self.estimate)), error, 0.0
        return self.estimate, self.standard_error, null_value

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
        check_choice(method, "method", METHODS)
        reach = t_quantile(confidence_level, self.df)
        ends = self._ends(reach)
        if method != "t":
            if self._resampled is None:
                raise ValueError("This estimate has no clusters to resample.")
            ends = self._resampled.interval(
                self, ends, confidence_level, method, n_resamples, random_state
            )
        low, high = (float(np.squeeze(end)) for end in ends)
        return ConfidenceInterval(low, high)

    def _ends(self, reach: Array) -> tuple[Array, Array]:
        """Return the interval of a number of standard errors each way."""
        if isinstance(self._shares, TwoShares):
            return self._shares.ends(reach, self.df, self.kind)
        if self._shares is not None:
            return self._shares.ends(reach, self.df)
        middle, error, _ = self._linear
        low, high = t_ends(middle, error, reach)
        if self.on_log_scale:
            return np.exp(low), np.exp(high)
        return low, high

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
        from .equivalence import check_alpha, equivalence, margin_bounds

        check_alpha(alpha)
        if self.null_value is None:
            raise ValueError(f"{self.name} is no contrast, so it has no margin.")

        def ends(reach: Array) -> tuple[Array, Array]:
            low, high = self._ends(reach)
            return np.reshape(low, -1), np.reshape(high, -1)

        return equivalence(
            (self.name,),
            np.array([self.estimate]),
            ends,
            np.array([self.df]),
            margin_bounds(margin, self.kind),
            alpha,
        )

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
        from .power import check_design, detectable

        check_design(power, alpha, pilot_error)
        error, *_ = self.pilot(pilot_error)
        known, df = pilot_error == "known", np.asarray(self.df)
        gap = float(detectable(np.asarray(error), df, power, alpha, known=known))
        with np.errstate(over="ignore"):  # no ratio is large enough
            return float(np.exp(gap)) if self.on_log_scale else gap

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
        from .power import LARGEST_GAP, check_design, required

        check_design(power, alpha, pilot_error)
        check_number(gap, "gap", 0, LARGEST_GAP, inclusive=(False, True))
        size = abs(float(np.log(gap))) if self.on_log_scale else gap
        if size == 0:
            raise ValueError("gap must be a ratio other than 1; got 1.")
        error, n_clusters, promised = self.pilot(pilot_error)
        counts = np.array([n_clusters]), np.array([self.df + 1])
        found = required(
            (self.name,),
            np.array([error]),
            np.array([self.df]),
            counts,
            np.array([promised]),
            size,
            power,
            alpha,
            pilot_error,
        )
        return replace(found, gap=gap)

    @property
    def on_log_scale(self) -> bool:
        """Whether errors are those of the logarithm: of a positive ratio."""
        return self.kind == "ratio" and self.estimate > 0

    def pilot(self, pilot_error: str = "known") -> tuple[float, float, bool]:
        """Return what a plan takes from it, with a warning where that says too little.

        Parameters
        ----------
        pilot_error : {"estimated", "known"}, default="known"
            Whether the error of the pilot counts as an estimate, which may be too poor
            to promise power.

        Returns
        -------
        error, n_clusters : float
            The error on the scale of the test, and the number of clusters behind it.
        promised : bool
            Whether it can promise power.
        """
        error, pilot = self._linear[1], self._resampled
        if pilot is None:
            return error, np.nan, True
        known = pilot_error == "known"
        return error, pilot.sums.count, known or pilot.promises(self.name)

    def __repr__(self) -> str:
        """Return the contrast, its 95% interval and p-value on one line."""
        low, high = self.confidence_interval()
        if np.isnan(low) and np.isnan(high):
            return f"{self.name}: {self.estimate:.4g} (no interval)"
        text = f"{self.name}: {self.estimate:.4g} (95% interval {low:.4g} to {high:.4g}"
        return (
            f"{text})" if self.null_value is None else f"{text}, p = {self.pvalue:.3g})"
        )
