"""How large a gap between two curves must be to be found by the test of all points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

from .._estimates import formatting as fmt
from .._estimates.power import (
    LARGEST_GAP,
    MOST_DATA,
    RequiredSize,
    check_design,
    grown,
)
from .._inputs.told import warn_user
from .._inputs.validation import Array, check_number
from ..exceptions import SmallSampleWarning

if TYPE_CHECKING:
    from ._predictive_parity import PredictiveParityTest

# A gap that no data of some size find counts as so many times too large.
_TOO_LARGE = 1e20
# The logarithms of factors that a tenth of the draws finds are about this near.
_NEAR = 0.15
# What no error is below, in true ones, to the power of 2 / 3.
_LEAST_SPREAD = 1e-6
# Multiples of it are spread evenly over a unit, and over each part of it.
_GOLDEN = (np.sqrt(5) - 1) / 2
# More than half of the weight is never that of one cluster where there are enough.
_MOST_LEVERAGE = 0.5


@dataclass(frozen=True, eq=False)
class GapPower:
    """The power of one contrast against a gap that is the same at K points.

    Attributes
    ----------
    tail : float
        Probability beyond the critical value of each point.
    df : ndarray of shape (K,)
        Degrees of freedom of the points.
    variance : ndarray of shape (V, K)
        Of the differences, one or more estimates; the test takes the largest.
    leverage : ndarray of shape (V, K)
        How much of the squared gap each has in it.
    draws : ndarray of shape (N, K)
        Differences that there are by chance.
    luck : ndarray of shape (N,)
        Normal quantiles of how much too large or too small their errors are.
    pilot : ndarray of shape (N, K) or (1, K)
        How many times the true errors those of the pilot are.
    """

    tail: float
    df: Array
    variance: Array
    leverage: Array
    draws: Array
    luck: Array
    pilot: Array

    def smallest(self, factor: float = 1.0) -> Array:
        """Return the smallest gap that is found in each draw, shape (N,).

        In data of `factor` times as many clusters. The test finds a difference d at a
        point with ``d² > t² (V (1 - l) + l d²)``, for its critical value t, the
        variance V and the leverage l. Errors of the same draw are as much too large or
        too small.
        """
        df, leverage = grown(self.df, factor), self.leverage / factor
        squared = special.stdtrit(df, self.tail) ** 2
        room = 1 - squared * leverage
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(room > 0, self.variance * (1 - leverage) / room, np.inf)
        critical = np.sqrt(squared * found.max(axis=0))
        if np.isfinite(df).any():
            spread = _spread(df, self.luck)
            # Where no gap is found, none is by any error.
            never = np.full_like(spread, np.inf)
            found = np.isfinite(critical)
            critical = np.multiply(critical, spread, out=never, where=found)
        least = (critical - self.draws) / self.pilot
        return np.asarray(least.min(axis=1) / np.sqrt(factor))

    def detectable(self, power: float, factor: float = 1.0) -> float:
        """Return the gap that so many times the clusters find with this power."""
        return self._of_rank(factor, _rank(power, len(self.draws)))

    def _of_rank(self, factor: float, rank: int) -> float:
        """Return the gap that the draw of a rank finds, from 0 the smallest."""
        return float(np.partition(self.smallest(factor), rank)[rank])

    def factor(self, gap: float, power: float, n_clusters: float) -> float:
        """Return how many times the clusters of the pilot find the gap.

        A tenth of the draws says about how many. Then only those draws are looked at
        that find the gap somewhere near it and not everywhere.
        """
        fewest, most = np.log(2 / n_clusters), np.log(MOST_DATA)
        few, rank = self._of(slice(None, None, 10)), _rank(power, len(self.draws))
        near = few._crossing(gap, _rank(power, len(few.draws)), fewest, most)
        if np.isfinite(near):
            low, high = max(near - _NEAR, fewest), min(near + _NEAR, most)
            at_low, at_high = (self.smallest(np.exp(x)) <= gap for x in (low, high))
            before = int(np.count_nonzero(at_low))
            between = at_high & ~at_low
            if before <= rank < before + np.count_nonzero(between):
                rank -= before
                near = self._of(between)._crossing(gap, rank, low, high)
                return float(np.exp(near))
        return float(np.exp(self._crossing(gap, rank, fewest, most)))

    def _of(self, some: Any) -> GapPower:
        pilot = self.pilot if len(self.pilot) == 1 else self.pilot[some]
        return replace(self, draws=self.draws[some], luck=self.luck[some], pilot=pilot)

    def _crossing(self, gap: float, rank: int, fewest: float, most: float) -> float:
        """Return the log of the factor at which the draw of a rank finds the gap."""

        @cache
        def excess(log_factor: float) -> float:
            found = self._of_rank(np.exp(log_factor), rank)
            with np.errstate(over="ignore"):
                return float(np.log(np.clip(found / gap, 1 / _TOO_LARGE, _TOO_LARGE)))

        # If errors shrank with the root of the clusters it would be this.
        guess = 2 * excess(min(max(0.0, fewest), most))
        low, high = max(guess - 1, fewest), min(guess + 1, most)
        if low < high and excess(low) > 0 > excess(high):
            fewest, most = low, high
        if excess(most) > 0:
            return float("inf")
        if excess(fewest) <= 0:
            return fewest
        return float(optimize.brentq(excess, fewest, most, xtol=1e-8))


def _spread(df: Array, luck: Array) -> Array:
    """Return errors in true ones at quantiles of their distributions, (N, K).

    Those of chi-square distributions over their degrees of freedom (Wilson and Hilferty
    1931).
    """
    third = 2 / (9 * df)
    spread = 1 - third + luck[:, None] * np.sqrt(third)
    np.maximum(spread, _LEAST_SPREAD, out=spread)
    return np.asarray(spread * np.sqrt(spread))


def _rank(power: float, n_draws: int) -> int:
    """Return which of the ordered draws is the quantile."""
    return int(np.ceil(power * (n_draws - 1)))


def detectable_gaps(
    test: PredictiveParityTest, power: float, alpha: float, pilot_error: str
) -> Array:
    """Return the gap that data like these find, by contrast; NaN where unknown."""
    check_design(power, alpha, pilot_error)
    powers = gap_powers(test, alpha, pilot_error)
    return np.array([np.nan if p is None else p.detectable(power) for p in powers])


def required_size(
    test: PredictiveParityTest,
    gap: float,
    power: float,
    alpha: float,
    pilot_error: str,
) -> RequiredSize:
    """Return how much data find a gap, by contrast; NaN where unknown."""
    check_design(power, alpha, pilot_error)
    check_number(gap, "gap", 0, LARGEST_GAP, inclusive=(False, True))
    count, powers = test.n_clusters, gap_powers(test, alpha, pilot_error)
    factor = np.array(
        [np.nan if p is None else p.factor(gap, power, count) for p in powers]
    )
    effective = factor * test.effective_clusters.max(axis=1, initial=0.0)
    clusters = np.ceil(factor * count * (1 - 1e-8))
    promised = ~np.isnan(factor) & (test.sums.moments is not None)
    return RequiredSize(
        contrast_names(test), gap, power, factor, clusters, effective, promised
    )


def contrast_names(test: PredictiveParityTest) -> tuple[str, ...]:
    """Return what to call each contrast."""
    return tuple(f"{fmt.label(a)} - {fmt.label(b)}" for a, b in test.contrasts)


def gap_powers(
    test: PredictiveParityTest, alpha: float, pilot_error: str
) -> Iterator[GapPower | None]:
    """Yield the power of each contrast; None of one that is compared nowhere.

    With a warning of curves whose test may find gaps where there are none.
    """
    tests, error = test._tests, test.difference_standard_error
    tail = tests.tail(1 - alpha, test.parameters["correction"])
    places = np.arange(error.size).reshape(error.shape)
    # Where one of the curves has no error of its own, of that with fewer clusters.
    unknown = np.isnan(test._welch_df)
    pilot_df = np.where(unknown, test.effective_clusters - 1, test._welch_df)
    quadratic = test.sums.moments is not None
    if not quadratic:
        warn_user(
            "The power of curve='nadaraya_watson' cannot be promised: where a group "
            "has little data at the ends of the grid, this test also finds gaps that "
            "are not there. Plan with the default, curve='local_quadratic'.",
            SmallSampleWarning,
        )
    for c, errors in enumerate(error):
        some = np.flatnonzero(errors > 0)
        if not some.size:
            yield None
            continue
        variance, leverage = errors[None] ** 2, 0 * errors[None]
        if quadratic:
            null = test._null(c)
            leverage = np.minimum(null.leverage, _MOST_LEVERAGE)
            variance = null.residual / (1 - leverage)
        draws = tests.draws(places[c, some])
        draws *= np.sqrt(variance[:, some].max(axis=0))
        # One quantile per draw, in order, which the draws know nothing of; those of the
        # pilot are in an order that the others know nothing of.
        place = np.arange(len(draws)) + 0.5
        luck = special.ndtri(place / len(draws))
        parts = test.df[c, some], variance[:, some], leverage[:, some]
        pilot = np.ones((1, some.size))
        if pilot_error == "estimated":
            pilot = _spread(pilot_df[c, some], special.ndtri(place * _GOLDEN % 1))
        yield GapPower(tail, *parts, draws, luck, pilot)
