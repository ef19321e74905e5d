"""Scales of estimates: on which an error is symmetric, with intervals and tests.

A share lies in [0, 1] and its interval too: Student's t on the scale of the logit. A
share of 0 or 1 (or clusters that all agree) has no variance to be seen, and gets the
exact binomial interval (or the binomial variance) of as many trials as there are
effective clusters. A share of few events has at least their far tail, and one that
lacks events which others show reaches as far as none would. The mean of a loss is
positive, and its interval that of its logarithm, which reaches further up where rare
events would. A difference or a mean of two shares has the interval that follows from
those of both (Zou and Donner 2008, "MOVER"), a ratio the same on the scale of the
logarithm.

Every scale has `ends`, an interval of a number of standard errors each way, and `test`,
Student's t of a null value, which agree: p < α where the interval excludes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import special

from .._inputs.validation import Array, check_number
from .arrays import ReadOnlyArrays, cached_read_only

# Sizes of |t| between which a p-value is searched, and the steps of `crossing`.
_SMALLEST_T, _LARGEST_T, _HALVINGS, _LINES = 1e-6, 1e6, 12, 4
# Levels at which intervals are asked whether they hold a null value.
_USUAL_LEVELS = (0.01, 0.05, 0.1, 0.3)
# What changes with the errors, and by which power of them.
_POWERS_OF_ERRORS = {"standard_error": 1.0, "skewness": 1.0, "n_effective": -2.0}
# Standard errors between estimates and the null value of plans.
_DISTANCE = 2.0
#: A smaller |t| may be the lower end of the search, and not a result of it.
LEAST_T = 1.1 * _SMALLEST_T
# With fewer events the tail of the logit towards them is too short: see `ShareScale`.
_LOGIT_EVENTS = 15


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
    return np.asarray(-special.stdtrit(df, tail))


def tail_of(t: Array, df: Any) -> Array:
    """Return the probability that Student's t is above ``|t|``; NaN without df."""
    return np.asarray(special.stdtr(df, -np.abs(t)))


#: The low and the high ends of intervals.
Ends = tuple[Array, Array]


class Link(NamedTuple):
    """A function under which resamples are symmetric, with its slope and inverse."""

    forward: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    back: Callable[[Array], Array]


PLAIN = Link(np.positive, np.ones_like, np.positive)
LOG = Link(np.log, np.reciprocal, np.exp)
LOGIT = Link(special.logit, lambda share: 1 / (share * (1 - share)), special.expit)


@dataclass(frozen=True, eq=False)
class PlainScale(ReadOnlyArrays):
    """Estimates whose own errors are symmetric, without a link; arrays of one shape."""

    estimate: Array
    standard_error: Array
    #: The scale on which resamples are studentised.
    link: ClassVar[Link] = PLAIN
    #: The scale of the tests.
    axis: ClassVar[Link] = PLAIN
    #: The range of the estimates.
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    @property
    def regular(self) -> Array:
        """Whether the estimates have an error on the axis of the tests."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.isfinite(self.axis.forward(self.estimate))

    @property
    def _fields(self) -> dict[str, Any]:
        """What the scale is made of, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, rows: Array, side_df: Array | None = None) -> Self:
        """Return some of the estimates, with these degrees of freedom as sides if any.

        The sides of the estimates are scales, and have this method as arrays do.
        """
        some = {name: field.take(rows) for name, field in self._fields.items()}
        if side_df is not None and "side_df" in some:
            some["side_df"] = side_df
        return type(self)(**some)

    def with_errors(self, times: Array) -> Self:
        """Return the estimates with errors this many times as large."""
        changed = self._fields
        for name, field in changed.items():
            if isinstance(field, PlainScale):
                changed[name] = field.with_errors(times)
            elif name in _POWERS_OF_ERRORS:
                changed[name] = field * times ** _POWERS_OF_ERRORS[name]
        return type(self)(**changed)

    def ends(self, reach: Array, df: Any) -> Ends:
        """Return the interval of a number of standard errors each way.

        The reach is a quantile of Student's t; its degrees of freedom say what tail is
        meant. NaN where no variance is seen.
        """
        margin = reach * np.where(self.standard_error == 0, np.nan, self.standard_error)
        return self.estimate - margin, self.estimate + margin

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return Student's t and the two-sided p-value that the interval goes with.

        Without variance there is no verdict: p is 1 at the null value itself, and NaN
        elsewhere. Null values outside the range of the estimates are infinitely far.
        """
        shift, error = self.estimate - null_value, self.standard_error
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = np.where(error == 0, np.where(shift == 0, 0.0, np.nan), shift / error)
        return t, 2 * tail_of(t, df)


class LogScale(PlainScale):
    """Ratios: on the scale of the logarithm where they are positive, else plain."""

    link = axis = LOG

    def ends(self, reach: Array, df: Any) -> Ends:
        """Return the interval of a number of standard errors; NaN without variance."""
        plain, positive = self._plain
        low, high = plain.ends(reach, df)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (np.where(positive, np.exp(x), x) for x in (low, high))
        return low, high

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t of the logarithm and its p-value."""
        plain, positive = self._plain
        with np.errstate(divide="ignore"):
            log = np.log(np.maximum(null_value, 0.0))
        return plain.test(np.where(positive, log, null_value), df)

    @property
    def _plain(self) -> tuple[PlainScale, Array]:
        """A plain scale, with logarithms of positive estimates; and which those are."""
        positive = np.asarray(self.estimate > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.where(positive, np.log(self.estimate), self.estimate)
            error = self.standard_error / np.where(positive, self.estimate, 1.0)
        return PlainScale(log, error), positive


@dataclass(frozen=True, eq=False)
class EventScale(PlainScale):
    """Means that rare events move, based on their scale without such events.

    The variance of what is rare grows with its mean: where it is V at the estimate, it
    is about ``V + |Δ| κ sqrt(V)`` at a value that is Δ away, on the side to which
    events move the estimate.

    Attributes
    ----------
    estimate, standard_error : ndarray
    scale : PlainScale
    skewness : ndarray
        κ of the influences, above 0 where events make the estimate larger.
    """

    scale: PlainScale
    skewness: Array | float

    @property
    def regular(self) -> Array:
        """Whether no event is reckoned with that the clusters do not show."""
        return super().regular & (self.skewness == 0)

    def ends(self, reach: Array, df: Any) -> Ends:
        """Return the interval of a number of standard errors each way."""
        half = [reach * np.maximum(k, 0) / 2 for k in (-self.skewness, self.skewness)]
        down, up = (reach * (more + np.hypot(1, more)) for more in half)
        return self.scale.ends(down, df)[0], self.scale.ends(up, df)[1]

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t and the p-value that the interval goes with."""
        t = self.scale.test(null_value, df)[0]
        toward = np.where(np.isfinite(t), -t, 0.0) * self.skewness
        t = t / np.sqrt(1 + np.maximum(toward, 0.0))
        return t, 2 * tail_of(t, df)


class PositiveScale(EventScale):
    """Means of what is never negative: intervals of the logarithm, plain resamples.

    The upper end is at least that of an `EventScale`. There is no null value to test.
    """

    axis = LOG

    def ends(self, reach: Array, df: Any) -> Ends:
        """Return the interval of a number of standard errors; NaN without variance."""
        low, high = LogScale(self.estimate, self.standard_error).ends(reach, df)
        return low, np.maximum(high, super().ends(reach, df)[1])


@dataclass(frozen=True, eq=False)
class ShareScale(PlainScale):
    """Estimated shares: on the scale of the logit, exact at 0 and 1.

    A share has the error of a number of independent trials. Of few events among them
    the logit makes far levels too sure: of 5 in 100 its 99.9% interval misses rates
    that show as many in ten times as many samples as it says. The end on their side is
    at least that of Jeffreys' interval, as tests of many groups need such levels.

    Attributes
    ----------
    estimate, standard_error : ndarray
    n_effective : ndarray
        Number of independent units behind each.
    side_df : ndarray
        Degrees of freedom of each as a side of a contrast: its own over items, which
        are few and skewed, and those of the contrast over clusters.
    lacking : ndarray of bool
        Whether others show events that it lacks. Its interval then reaches as far as
        that of no event at all, however light are those that it has.
    """

    n_effective: Array
    side_df: Array
    lacking: Array
    link = axis = LOGIT
    bounds = (0.0, 1.0)

    @cached_read_only
    def regular(self) -> Array:
        """Whether the shares are inside (0, 1), and clusters show all events."""
        return super().regular & ~self.lacking

    @cached_read_only
    def _trials(self) -> Array:
        """Trials with the same error; as many as there are units where it is 0."""
        spread, error = self.estimate * (1 - self.estimate), self.standard_error
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(error == 0, self.n_effective, spread / error**2)

    @cached_read_only
    def _logit_error(self) -> Array:
        """Standard error of the logit; the binomial one where the observed one is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1 / np.sqrt(self._trials * self.estimate * (1 - self.estimate))

    @cached_read_only
    def _events(self) -> tuple[Array, Array, Array]:
        """Shapes of Jeffreys' beta distribution, and where few events are rare."""
        yes, no = self._trials * self.estimate, self._trials * (1 - self.estimate)
        of_yes = (yes > 0) & (yes < np.minimum(no, _LOGIT_EVENTS))
        of_no = (no > 0) & (no < np.minimum(yes, _LOGIT_EVENTS))
        return yes + 0.5, no + 0.5, np.stack([of_yes, of_no])

    def ends(self, reach: Array, df: Any) -> Ends:
        """Return the interval of a number of standard errors each way."""
        return self._interval(reach, tail_of(reach, df))

    def ends_at(self, tail: Array) -> Ends:
        """Return the interval with this probability beyond each end, for a contrast."""
        return self._interval(quantile_of(tail, self.side_df), tail)

    def _interval(self, reach: Array, tail: Array) -> Ends:
        """Return the interval of a reach, or of a tail where all outcomes are alike."""
        estimate = np.clip(self.estimate, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = reach * self._logit_error
            middle = special.logit(estimate)
            low, high = special.expit(middle - margin), special.expit(middle + margin)
            far = tail ** (1 / self.n_effective)
        yes, no, few = self._events
        if few.any():
            first, last = np.ones((2, *low.shape))
            special.betaincinv(yes, no, tail, where=few[0], out=first)
            special.betaincinv(no, yes, tail, where=few[1], out=last)
            low, high = np.fmin(low, first), np.fmax(high, 1 - last)
        if (self.regular & np.isfinite(self._logit_error)).all():  # as most are
            return low, high
        unknown = np.isnan(self.standard_error) | np.isnan(estimate)
        above = estimate > 0.5
        low = np.where(self.lacking & above, np.fmin(low, far), low)
        high = np.where(self.lacking & ~above, np.fmax(high, 1 - far), high)
        low = np.where(estimate <= 0, 0.0, np.where(estimate >= 1, far, low))
        high = np.where(estimate >= 1, 1.0, np.where(estimate <= 0, 1 - far, high))
        return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t and the p-value that the interval goes with."""
        side, high = np.sign(self.estimate - null_value), self.estimate > 0.5
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = special.logit(self.estimate) - special.logit(null_value)
            statistic = np.where(shift == 0, 0.0, shift / self._logit_error)
            share = np.clip(null_value, 0.0, 1.0)
            chance = np.where(high, share, 1 - share)
            exact = np.minimum(1.0, 2 * chance**self.n_effective)
            at_an_end = side * quantile_of(exact / 2, df)
        ends = (self.estimate <= 0) | (self.estimate >= 1)
        nearer = self.lacking & (high == (side > 0))
        nearer &= np.abs(at_an_end) < np.abs(statistic)
        statistic = np.where(ends | nearer, at_an_end, statistic)
        yes, no, few = self._events
        if few.any():
            tails = special.betainc(yes, no, share), special.betainc(no, yes, 1 - share)
            of_few = np.abs(quantile_of(np.where(side > 0, *tails), df))
            nearer = np.where(side > 0, *few) & (of_few < np.abs(statistic))
            statistic = np.where(nearer, side * of_few, statistic)
        beyond = (np.asarray(null_value) < 0) | (np.asarray(null_value) > 1)
        statistic = np.where(beyond, np.copysign(np.inf, side), statistic)
        unknown = np.isnan(self.standard_error) | ~(np.asarray(df) > 0)
        statistic = np.where(unknown, np.nan, statistic)
        return statistic, 2 * tail_of(statistic, df)


#: A share and the ends of its interval.
_ShareAndEnds = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class DifferenceScale(PlainScale):
    """Differences of two shares, with intervals from the intervals of the two.

    Attributes
    ----------
    estimate, standard_error : ndarray
    first, second : ShareScale, MeanScale or DifferenceScale
    correlation : ndarray
        Correlation of the two estimates.
    """

    first: ShareScale | DifferenceScale
    second: ShareScale | DifferenceScale
    correlation: Array
    bounds = (-1.0, 1.0)

    @property
    def regular(self) -> Array:
        """Whether all shares are inside (0, 1)."""
        return self.first.regular & self.second.regular

    def ends(self, reach: Array, df: Any) -> Ends:
        """Return the interval of a number of standard errors each way.

        The reach is a quantile of Student's t with the contrast's degrees of freedom;
        each share has the interval of that level with its own.
        """
        return self.ends_at(tail_of(reach, df))

    def ends_at(self, tail: Array) -> Ends:
        """Return the interval with this probability beyond each end."""
        first, second = (
            (side.estimate, *side.ends_at(tail)) for side in (self.first, self.second)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._between(first, second)

    def _between(self, first: _ShareAndEnds, second: _ShareAndEnds) -> Ends:
        """Return the interval between two shares with their intervals."""
        a, a_low, a_high = map(self.link.forward, first)
        b, b_low, b_high = map(self.link.forward, second)
        down = self._both_ways(a - a_low, b_high - b)
        up = self._both_ways(a_high - a, b - b_low)
        return self.link.back(a - b - down), self.link.back(a - b + up)

    def _both_ways(self, one: Array, other: Array) -> Array:
        squares = one**2 + other**2 - 2 * self.correlation * one * other
        return np.sqrt(np.maximum(squares, 0.0))

    def test(self, null_value: Any, df: Any) -> tuple[Array, Array]:
        """Return t and the p-value, by inverting the interval."""

        def excess(reach: Array) -> Array:
            """Return how far the null value is outside, negative inside."""
            low, high = self.ends(reach, df)
            return np.fmax(low - null_value, null_value - high)

        with np.errstate(invalid="ignore"):
            side = np.sign(self.estimate - null_value)
        # The largest reach at which the interval still excludes the null value; where
        # it shrinks again with the reach, below the first usual level that holds it.
        shape = np.broadcast(side, df).shape
        least, most = np.full(shape, _SMALLEST_T), np.full(shape, _LARGEST_T)
        t = crossing(excess, least, most, _HALVINGS)
        for level in _USUAL_LEVELS:
            reach = quantile_of(level / 2, df)
            with np.errstate(invalid="ignore"):
                most = np.where((reach < t) & (excess(reach) <= 0), reach, most)
        if (most < _LARGEST_T).any():
            t = np.where(most < _LARGEST_T, crossing(excess, least, most, _HALVINGS), t)
        low, _ = self.ends(np.zeros(t.shape), df)
        unknown = np.isnan(low) | ~(np.asarray(df) > 0)
        statistic = np.where(unknown, np.nan, np.where(side == 0, 0.0, side * t))
        return statistic, 2 * tail_of(statistic, df)


class RatioScale(DifferenceScale):
    """Ratios of two shares: the same on the scale of the logarithm."""

    link = axis = LOG
    bounds = (0.0, np.inf)

    def _between(self, first: _ShareAndEnds, second: _ShareAndEnds) -> Ends:
        """Return the interval of the ratio of two shares, one of which may be 0.

        Then it has the ratios r at which that of the difference ``a - r b`` contains 0.
        """
        (a, a_low, a_high), (b, b_low, b_high) = first, second
        low, high = super()._between(first, second)
        least, most = np.sqrt(a_low * (2 * a - a_low)), np.sqrt(b_low * (2 * b - b_low))
        low = np.where(b <= 0, least / b_high, np.where(a <= 0, 0.0, low))
        high = np.where(b <= 0, np.inf, np.where(a <= 0, a_high / most, high))
        unknown = np.isnan(a_low) | np.isnan(b_low) | ((a <= 0) & (b <= 0))
        return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


class MeanScale(DifferenceScale):
    """Means of two shares a and b.

    The mean is ``(1 + a - (1 - b)) / 2``, so its interval follows from that of the
    difference of the shares a and 1 - b.
    """

    def _between(self, first: _ShareAndEnds, second: _ShareAndEnds) -> Ends:
        """Return the interval of the mean of two shares with their intervals."""
        b, b_low, b_high = second
        low, high = super()._between(first, (1 - b, 1 - b_high, 1 - b_low))
        return (1 + low) / 2, (1 + high) / 2


@dataclass(frozen=True, eq=False)
class RootScale(PlainScale):
    """Root mean squares, which noise makes larger.

    The interval is made for the square. Its upper end starts from the whole square, and
    its lower end from the square minus the noise. It is widened to contain the interval
    of the square from narrow bins, which neither hide differences nor mix scores that
    are far apart.

    Attributes
    ----------
    estimate, standard_error : ndarray
    noise : ndarray
        What noise alone would make of the square.
    narrow, narrow_error : ndarray
        The square from narrow bins minus its noise, and its error; NaN without bins.
    """

    noise: Array
    narrow: Array
    narrow_error: Array

    @property
    def regular(self) -> Array:
        """False, as the bias that noise adds has no standard error on any axis."""
        return np.zeros(self.estimate.shape, dtype=bool)

    def ends(self, reach: Array, df: Any) -> Ends:
        """Return the interval of a number of standard errors each way."""
        square, error = self.estimate**2, self.standard_error
        margin = 2 * self.estimate * reach * np.where(error == 0, np.nan, error)
        low, high = square - self.noise - margin, square + margin
        least, most = self.narrow + np.outer([-1, 1], reach * self.narrow_error)
        low, high = np.where(least < low, least, low), np.where(most > high, most, high)
        return np.sqrt(np.maximum(low, 0.0)), np.sqrt(high)


def crossing(
    excess: Callable[[Array], Array], low: Array, high: Array, halvings: int
) -> Array:
    """Return where decreasing functions cross 0 between `low` and `high`, both above 0.

    The search halves the range of logarithms, and then follows straight lines.
    """
    # The interval of a large reach may end at infinity.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        above, below, middle = excess(low), excess(high), low
        for step in range(halvings + _LINES):
            middle = np.sqrt(low * high)
            if step >= halvings:
                line = low + (high - low) * above / (above - below)
                middle = np.where((line >= low) & (line <= high), line, middle)
            distance = excess(middle)
            outside = distance > 0
            low = np.where(outside, middle, low)
            above = np.where(outside, distance, above)
            high = np.where(outside, high, middle)
            below = np.where(outside, below, distance)
    return middle


def errors_of_tests(
    scale: PlainScale, null_value: float, df: Array, *, logarithm: bool
) -> Array:
    """Return how many times as large as the standard errors the errors of tests are.

    A test of shares looks at the sides of their intervals that are nearer to the null
    value, where the errors are others than at the estimates. How much larger or smaller
    they are depends on the estimates, and hardly on the number of clusters: it is taken
    where the null value is two standard errors away.
    """
    plain = (LogScale if logarithm else PlainScale)(
        scale.estimate, scale.standard_error
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.abs(plain.test(null_value, df)[0]) / _DISTANCE
        t = scale.with_errors(times).test(null_value, df)[0]
        ratio = _DISTANCE / np.abs(t)
    return np.where((ratio > 0) & np.isfinite(ratio), ratio, 1.0)


def welch_df(first: Any, second: Any, first_df: Any, second_df: Any) -> Array:
    """Return Welch's degrees of freedom of the difference of two estimates.

    `first` and `second` are their variances. Without variance the degrees of freedom
    are the smaller of the two given; below one they are NaN, which is no test.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = (a + b) ** 2 / (a**2 / first_df + b**2 / second_df)
        df = np.where(a + b == 0, np.minimum(first_df, second_df), df)
        return np.where(df >= 1 - 1e-9, df, np.nan)
