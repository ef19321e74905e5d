"""Scales of estimates: on which an error is symmetric, with intervals and tests.

A share lies in [0, 1] and its interval too: Student's t on the scale of the logit. A
share of 0 or 1 (or clusters that all agree) has no variance to be seen, and gets the
exact binomial interval (or the binomial variance) of as many trials as there are
effective clusters. The mean of a loss is positive, and its interval that of its
logarithm. A difference of two shares has the interval that follows from those
of both (Zou and Donner 2008, "MOVER"), a ratio the same on the scale of the logarithm.

Every scale has `ends`, an interval of a number of standard errors each way, and `test`,
Student's t of a null value, which agree: p < α where the interval excludes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from .._inputs.validation import Array, check_number
from .read_only import ReadOnlyArrays

# Sizes of |t| between which a p-value is searched: by halves of the logarithm, until
# a straight line is good enough.
_SMALLEST_T, _LARGEST_T, _HALVINGS, _LINES = 1e-6, 1e6, 12, 4


class ConfidenceInterval(NamedTuple):
    """Lower and upper ends of an interval: floats, or one value per group."""

    low: Array | float
    high: Array | float


def check_level(level: float) -> None:
    """Raise a ValueError unless the confidence level is inside (0, 1)."""
    check_number(level, "confidence_level", 0, 1, inclusive=(False, False))


def t_quantile(confidence_level: float, df: Any) -> Array:
    """Return the two-sided quantile of Student's t; NaN without degrees of freedom."""
    check_level(confidence_level)
    return quantile_of((1 - confidence_level) / 2, df)


def quantile_of(tail: Any, df: Any) -> Array:
    """Return the t above which Student's t has this probability; NaN without df."""
    df = np.asarray(df, dtype=float)
    return np.where(df > 0, -special.stdtrit(np.where(df > 0, df, 1.0), tail), np.nan)


def tail_of(t: Array, df: Any) -> Array:
    """Return the probability that Student's t is above ``|t|``; NaN without df."""
    df = np.asarray(df, dtype=float)
    with np.errstate(invalid="ignore"):
        tail = special.stdtr(np.where(df > 0, df, 1.0), -np.abs(t))
    return np.where(df > 0, tail, np.nan)


class Link(NamedTuple):
    """A function of estimates whose resamples are symmetric, slope and inverse."""

    forward: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    back: Callable[[Array], Array]


PLAIN = Link(np.positive, np.ones_like, np.positive)
LOG = Link(np.log, np.reciprocal, np.exp)
LOGIT = Link(special.logit, lambda share: 1 / (share * (1 - share)), special.expit)


@dataclass(frozen=True, eq=False)
class PlainScale(ReadOnlyArrays):
    """Estimates whose errors are symmetric as they are; arrays of one shape."""

    estimate: Array
    standard_error: Array
    #: The scale on which resamples are studentised.
    link: ClassVar[Link] = PLAIN

    def ends(self, reach: Array, df: Any) -> tuple[Array, Array]:
        """Return the interval of a number of standard errors each way.

        The reach is a quantile of Student's t; its degrees of freedom say what tail is
        meant. NaN where no variance is seen.
        """
        return t_ends(self.estimate, self.standard_error, reach)

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t and the p-value that the interval goes with."""
        return t_test(self.estimate, self.standard_error, null_value, df)


class LogScale(PlainScale):
    """Ratios: on the scale of the logarithm where they are positive, else plain."""

    link = LOG

    def ends(self, reach: Array, df: Any) -> tuple[Array, Array]:
        """Return the interval of a number of standard errors; NaN without variance."""
        middle, error, _ = self._linear(1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = t_ends(middle, error, reach)
            positive = np.asarray(self.estimate > 0)
            return (
                np.where(positive, np.exp(low), low),
                np.where(positive, np.exp(high), high),
            )

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t of the logarithm and its p-value."""
        return t_test(*self._linear(null_value), df)

    def _linear(self, null_value: Any) -> tuple[Array, Array, Array]:
        """Return estimates, errors and null values on the scale of Student's t."""
        positive = np.asarray(self.estimate > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (
                np.where(positive, np.log(self.estimate), self.estimate),
                self.standard_error / np.where(positive, self.estimate, 1.0),
                np.where(positive, np.log(null_value), null_value),
            )


class PositiveScale(LogScale):
    """Means of what is never negative: intervals of the logarithm, plain resamples."""

    link = PLAIN


@dataclass(frozen=True, eq=False)
class ShareScale(PlainScale):
    """Estimated shares: on the scale of the logit, exact at 0 and 1.

    Attributes
    ----------
    estimate, standard_error : ndarray
    n_effective : ndarray
        Number of independent units behind each.
    df : ndarray
        Degrees of freedom of each as a side of a contrast: its own over items, which
        are few and skewed, and those of the contrast over clusters.
    """

    n_effective: Array
    df: Array
    link = LOGIT

    def take(self, rows: Array, df: Array | None = None) -> ShareScale:
        """Return some of the shares, with these degrees of freedom if there are any."""
        return ShareScale(
            *(self.estimate[rows], self.standard_error[rows], self.n_effective[rows]),
            self.df[rows] if df is None else df,
        )

    @property
    def _at_an_end(self) -> Array:
        return (self.estimate <= 0) | (self.estimate >= 1)

    @property
    def _logit_error(self) -> Array:
        """Standard error of the logit; of the binomial where none is seen."""
        spread = self.estimate * (1 - self.estimate)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                self.standard_error == 0,
                1 / np.sqrt(self.n_effective * spread),
                self.standard_error / spread,
            )

    def ends(self, reach: Array, df: Any) -> tuple[Array, Array]:
        """Return the interval of a number of standard errors each way."""
        estimate = np.clip(self.estimate, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = reach * self._logit_error
            middle = special.logit(estimate)
            low, high = special.expit(middle - margin), special.expit(middle + margin)
            far = tail_of(reach, df) ** (1 / self.n_effective)
        unknown = np.isnan(self.standard_error) | np.isnan(estimate)
        low = np.where(estimate <= 0, 0.0, np.where(estimate >= 1, far, low))
        high = np.where(estimate >= 1, 1.0, np.where(estimate <= 0, 1 - far, high))
        return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t and the p-value that the interval goes with.

        The null value is inside (0, 1).
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = special.logit(self.estimate) - special.logit(null_value)
            statistic = np.where(shift == 0, 0.0, shift / self._logit_error)
            chance = np.where(self.estimate >= 1, null_value, 1 - null_value)
            exact = np.minimum(1.0, 2 * chance**self.n_effective)
            at_an_end = np.sign(shift) * quantile_of(exact / 2, df)
        pvalue = np.where(self._at_an_end, exact, 2 * tail_of(statistic, df))
        statistic = np.where(self._at_an_end, at_an_end, statistic)
        unknown = np.isnan(self.standard_error) | np.isnan(self.estimate)
        unknown |= ~(np.asarray(df) > 0)
        return np.where(unknown, np.nan, statistic), np.where(unknown, np.nan, pvalue)


@dataclass(frozen=True, eq=False)
class DifferenceScale(PlainScale):
    """Differences of two shares, whose intervals follow from those of both.

    Attributes
    ----------
    estimate, standard_error : ndarray
    first, second : ShareScale
    correlation : ndarray
        Correlation of the two estimates.
    """

    first: ShareScale
    second: ShareScale
    correlation: Array

    def ends(self, reach: Array, df: Any) -> tuple[Array, Array]:
        """Return the interval of a number of standard errors each way.

        The reach is a quantile of Student's t with the contrast's degrees of freedom;
        each share has the interval of that level with its own.
        """
        a, b = self.first.estimate, self.second.estimate
        (a_low, a_high), (b_low, b_high) = self._sides(reach, df)
        down = self._both_ways(a - a_low, b_high - b)
        up = self._both_ways(a_high - a, b - b_low)
        return a - b - down, a - b + up

    def _sides(self, reach: Array, df: Any) -> list[tuple[Array, Array]]:
        """Return the intervals of both shares, of the level that the reach means."""
        tail, sides = tail_of(reach, df), (self.first, self.second)
        return [side.ends(quantile_of(tail, side.df), side.df) for side in sides]

    def _both_ways(self, one: Array, other: Array) -> Array:
        squares = one**2 + other**2 - 2 * self.correlation * one * other
        return np.sqrt(np.maximum(squares, 0.0))

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t and the p-value of no difference, by inverting the interval."""
        a, b = self.first.estimate, self.second.estimate

        def excess(reach: Array) -> Array:
            low, high = self.ends(reach, df)
            return np.fmax(low - null_value, null_value - high)

        t = largest_excluding(excess, np.broadcast(a, b, df).shape)
        low, _ = self.ends(np.zeros(t.shape), df)
        unknown = np.isnan(low) | ~(np.asarray(df) > 0)
        statistic = np.where(unknown, np.nan, np.sign(a - b) * np.where(a == b, 0, t))
        return statistic, 2 * tail_of(statistic, df)


class RatioScale(DifferenceScale):
    """Ratios of two shares: the same on the scale of the logarithm."""

    link = LOG

    def ends(self, reach: Array, df: Any) -> tuple[Array, Array]:
        """Return the interval of a number of standard errors each way."""
        (a_low, a_high), (b_low, b_high) = self._sides(reach, df)
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = np.log(self.first.estimate), np.log(self.second.estimate)
            down = self._both_ways(a - np.log(a_low), np.log(b_high) - b)
            up = self._both_ways(np.log(a_high) - a, b - np.log(b_low))
            low, high = np.exp(a - b - down), np.exp(a - b + up)
            none_first = self.first.estimate <= 0
            none_second = self.second.estimate <= 0
            low = np.where(none_second, a_low / b_high, np.where(none_first, 0.0, low))
            high = np.where(none_first, a_high / b_low, high)
            high = np.where(none_second, np.inf, high)
        unknown = np.isnan(a_low) | np.isnan(b_low) | (none_first & none_second)
        return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


@dataclass(frozen=True, eq=False)
class RootScale(PlainScale):
    """Root mean squares, which noise makes larger.

    The interval is that of the square: its upper end of the square as it is, its lower
    one of what is left without the noise. The upper end is at least that of a square of
    which nothing is hidden.

    Attributes
    ----------
    estimate, standard_error : ndarray
    noise : ndarray
        What noise alone would make of the square.
    narrow, narrow_error : ndarray
        The square of which nothing is hidden, with its error; -inf if there is none.
    """

    noise: Array
    narrow: Array
    narrow_error: Array

    def ends(self, reach: Array, df: Any) -> tuple[Array, Array]:
        """Return the interval of a number of standard errors each way."""
        square, error = self.estimate**2, self.standard_error
        margin = 2 * self.estimate * reach * np.where(error == 0, np.nan, error)
        low = np.sqrt(np.maximum(square - self.noise - margin, 0.0))
        high, narrow = square + margin, self.narrow + reach * self.narrow_error
        with np.errstate(invalid="ignore"):
            return low, np.sqrt(np.where(narrow > high, narrow, high))


def largest_excluding(
    excess: Callable[[Array], Array], shape: tuple[int, ...]
) -> Array:
    """Return the largest reach at which the interval still excludes the null value.

    `excess` is how far the null value is outside the interval, negative inside.
    """
    low, high = np.full(shape, _SMALLEST_T), np.full(shape, _LARGEST_T)
    # The interval of a large reach may end at infinity.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        above, below, middle = excess(low), excess(high), low
        for step in range(_HALVINGS + _LINES):
            middle = np.sqrt(low * high)
            if step >= _HALVINGS:
                line = low + (high - low) * above / (above - below)
                middle = np.where((line >= low) & (line <= high), line, middle)
            distance = excess(middle)
            outside = distance > 0
            low = np.where(outside, middle, low)
            above = np.where(outside, distance, above)
            high = np.where(outside, high, middle)
            below = np.where(outside, below, distance)
    return middle


def t_test(
    estimate: Any, standard_error: Any, null_value: Any, df: Any
) -> tuple[Array, Array]:
    """Return Student's t statistic and its two-sided p-value.

    Without variance there is no verdict: p is 1 at the null value itself, and NaN
    elsewhere.
    """
    shift = np.asarray(estimate, dtype=float) - null_value
    standard_error = np.asarray(standard_error, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(standard_error == 0, np.nan, shift / standard_error)
    statistic = np.where((shift == 0) & (standard_error == 0), 0.0, statistic)
    return statistic, 2 * tail_of(statistic, df)


def welch_df(first: Any, second: Any, first_df: Any, second_df: Any) -> Array:
    """Return Welch's degrees of freedom of the difference of two estimates.

    `first` and `second` are their variances. Without variance the degrees of freedom
    are the smaller of both; below one they are NaN, which is no test.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = (a + b) ** 2 / (a**2 / first_df + b**2 / second_df)
        df = np.where(a + b == 0, np.minimum(first_df, second_df), df)
        return np.where(df >= 1 - 1e-9, df, np.nan)


def t_ends(estimate: Any, standard_error: Any, reach: Array) -> tuple[Array, Array]:
    """Return ``estimate ± reach · standard error``; NaN where no variance is seen."""
    margin = reach * np.where(standard_error == 0, np.nan, standard_error)
    return estimate - margin, estimate + margin
