"""Confidence sequences: intervals that hold at all times at once.

An interval of 95% is wrong about one time in twenty whenever one looks, so that who
looks every day is sure to be wrong one day. A confidence sequence is wrong with
probability alpha in all its days together. These are asymptotic ones (Waudby-Smith et
al. 2021), from the mixture of normal martingales (Robbins 1970): what a fixed interval
has as its 1.96 standard errors grows slowly with the logarithm of the data.

A sequence that began long ago is slow to see a change, because all the days before it
are in its mean. So one is started with every block of data, and their martingales are
mixed: that which starts with the s-th has the weight ``1 / (s (s + 1))``, which add up
to 1 for ever. The mixture is a martingale too, which is above 1 / alpha at any time
with probability alpha at most (Ville 1939; Shin, Ramdas and Rinaldo 2022).

A mean of independent values in [0, 1] has a sequence that holds for few of them too, by
betting against each value that the mean might have (Waudby-Smith and Ramdas 2024).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from .._inputs.validation import Array

#: Blocks of data at which a sequence is the tightest.
BEST_AFTER = 30.0
# From this number of blocks on, their spread says how much more days vary than their
# errors say. Before, it is taken to be three times as much.
_ENOUGH, _CAUTION = 8, 3.0**2
# Log-likelihood that a change point may lack in an interval of 95%: the largest of two
# exponential variables is below it.
_LACKING = -np.log1p(-np.sqrt(0.95))
# Halvings after which a part of the unit interval is below rounding.
_HALVINGS = 60


def best_ratio(alpha: Array | float) -> Array:
    """Return the ratio of information to the prior's at which it is the tightest."""
    log = -2 * np.log(alpha)
    return np.asarray(log + np.log1p(log))


def boundary(ratio: Array, alpha: Array | float) -> Array:
    """Return the half width of a sequence in standard errors.

    ``sqrt((1 + 1/r) (log(1 + r) - 2 log(alpha)))``.

    Parameters
    ----------
    ratio : ndarray
        The information so far, over that at which the sequence shall be the tightest.
    alpha : ndarray or float
        The chance that it is ever wrong.
    """
    r = ratio * best_ratio(alpha)
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt((1 + 1 / r) * (np.log1p(r) - 2 * np.log(alpha))))


def normal_scale(distance: Array, df: Array) -> Array:
    """Return the normal quantiles of the tails of Student's t.

    By the formula of Wallace (1959), which is right to one percent from five degrees
    of freedom on, smaller than the quantile in the tails, and knows no smallest one.
    """
    df = np.maximum(df, 1.0)
    shrunk = (8 * df + 1) / (8 * df + 3)
    return np.asarray(shrunk * np.sqrt(df * np.log1p(distance**2 / df)))


def betting_sequence(n: Array, total: Array, alpha: float) -> tuple[Array, Array]:
    """Return the confidence sequence of the mean of independent values in [0, 1].

    Who doubts that the mean is m bets on each value X: with the constant bet of an
    alternative mean q, the capital is multiplied by ``1 + (X - m) (q - m) / (m (1 -
    m))``, which is at least ``(q / m)^X ((1 - q) / (1 - m))^(1 - X)``, with equality
    for 0 and 1. With the capital spread over all q by the density of Beta(1/2, 1/2) it
    is at least ``B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) m^-k (1 - m)^(k - n)`` after n
    values with the sum k. It is a martingale if m is the mean, so that the m with a
    capital below 1 / alpha hold at all times together, for any number of values.

    Parameters
    ----------
    n, total : ndarray of shape (n_looks,)
        Number of the values so far, at least one, and their sum.
    alpha : float
        The chance that it is ever wrong.

    Returns
    -------
    low, high : ndarray of shape (n_looks,)
    """
    k, rest = np.clip(total, 0.0, n), np.clip(n - total, 0.0, n)
    most = special.betaln(0.5, 0.5) - special.betaln(k + 0.5, rest + 0.5)
    ends = []
    for outside in (0.0, 1.0):
        inner, outer = k / n, np.full(k.shape, outside)
        for _ in range(_HALVINGS):
            m = (inner + outer) / 2
            loss = -special.xlogy(k, m) - special.xlog1py(rest, -m)
            held = loss - most < -np.log(alpha)
            inner, outer = np.where(held, m, inner), np.where(held, outer, m)
        ends.append(outer)
    return ends[0], ends[1]


@dataclass(frozen=True)
class Blocks:
    """Independent estimates of one number in the order of time, all of shape (n,)."""

    value: Array
    variance: Array
    weight: Array
    df: Array
    last: Array  # number of the last update that is in the block

    def take(self, rows: Array) -> Blocks:
        """Return some of the blocks."""
        values = (self.value, self.variance, self.weight, self.df, self.last)
        return Blocks(*(column[rows] for column in values))

    def means(self) -> tuple[Array, Array, Array]:
        """Return the weighted means of the blocks s to t, at [s, t], with variances.

        And with degrees of freedom, by Satterthwaite; NaN below the diagonal.
        """
        weight = self.weight
        square = weight**2 * self.variance
        sums = [
            _from_to(values)
            for values in (weight, weight * self.value, square, square**2 / self.df)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums[1] / sums[0], sums[2] / sums[0] ** 2, sums[2] ** 2 / sums[3]

    def spread(self) -> tuple[Array, Array]:
        """Return by how much more than their variances the blocks so far vary, (n,).

        At least 1, from differences of neighbours, so that a change in between does not
        matter. And the degrees of freedom that this is known with: two thirds of the
        number of differences, each of which has a block in common with the next one;
        infinite where the errors alone are enough.
        """
        spread = np.full(self.value.size, _CAUTION)
        df = np.full(self.value.size, np.inf)
        if self.value.size >= _ENOUGH:
            square = np.diff(self.value) ** 2 / (self.variance[1:] + self.variance[:-1])
            count = np.arange(1, square.size + 1)
            mean = np.cumsum(square) / count
            late = slice(_ENOUGH - 2, None)
            spread[_ENOUGH - 1 :] = np.maximum(1.0, mean[late])
            df[_ENOUGH - 1 :] = np.where(mean > 1, 2 * count / 3, np.inf)[late]
        return spread, df


def _from_to(values: Array) -> Array:
    """Return sums over s to t at [s, t]; NaN below the diagonal."""
    total = np.cumsum(values)
    sums = total[None, :] - (total - values)[:, None]
    sums[~_started(values.size)] = np.nan
    return np.asarray(sums)


def _started(size: int) -> Array:
    """Return where a sequence [s] has started at the time [t]."""
    return np.tri(size, dtype=bool).T


@dataclass(frozen=True)
class Scan:
    """Sequences that start with each block: ``[s, t]`` is over the blocks s to t.

    NaN below the diagonal.
    """

    estimate: Array  # shape (n, n): the mean, or its difference from that before
    error: Array
    df: Array
    #: The information so far, over that at which the sequence is the tightest.
    ratio: Array

    @classmethod
    def of(cls, blocks: Blocks, first: int = 0, *, change: bool = False) -> Scan:
        """Return the sequences that start with each block from the number `first` on.

        Of a change they are of the mean minus the mean of all blocks before. With v the
        variance of that and u the variance of the window, the information is
        ``1 / (u + v)``, whose increments are independent: what the mean before is wrong
        by is in it once, and not in every look.
        """
        spread, spread_df = (values[first:] for values in blocks.spread())
        mean, variance, df = blocks.means()
        size = (blocks.value.size - first, 1)
        center, center_variance = np.zeros(size), np.zeros(size)
        center_df = np.full(size, np.inf)
        if change:
            center, center_variance, center_df = (
                values[0, first - 1 : -1, None] for values in (mean, variance, df)
            )
        mean, variance, df = (values[first:, first:] for values in (mean, variance, df))
        best = np.diag(variance)[:, None] / BEST_AFTER + center_variance
        total = variance + center_variance
        with np.errstate(divide="ignore", invalid="ignore"):
            unsure = (variance**2 / df + center_variance**2 / center_df) / total**2
            degrees = 1 / (unsure + 1 / spread_df)
            error = np.sqrt(total * spread)
        return cls(mean - center, error, degrees, best / total)

    def log_evidence(self, margin: float, alpha: float) -> tuple[Array, Array]:
        """Return the logarithm of the mixture at each time, and its largest start.

        It is of martingales if no distance is beyond the margin.
        """
        start = np.arange(1.0, self.error.shape[0] + 1)
        log_weight = -np.log(start) - np.log1p(start)
        best = best_ratio(alpha * np.exp(log_weight))
        started = _started(start.size)
        ratio = (self.ratio * best[:, None])[started]
        distance = np.maximum(np.abs(self.estimate[started]) - margin, 0.0)
        z = normal_scale(distance / self.error[started], self.df[started])
        log = np.full(self.error.shape, -np.inf)
        log[started] = 0.5 * z**2 * ratio / (1 + ratio) - 0.5 * np.log1p(ratio)
        log += log_weight[:, None]
        # Those that have not started are worth 1 each, all together 1 / (t + 1).
        largest = log.max(axis=0)
        total = np.exp(log - largest).sum(axis=0)
        mixture = np.logaddexp(largest + np.log(total), -np.log1p(start))
        return np.asarray(mixture), log.argmax(axis=0)

    def interval(self, start: int, alpha: float) -> tuple[Array, Array]:
        """Return the confidence sequence that starts with a block, by time."""
        # The quantiles of Student's t with the tails of these normal ones.
        tail = special.ndtr(-boundary(self.ratio[start], alpha))
        half = (
            -special.stdtrit(np.maximum(self.df[start], 1.0), tail) * self.error[start]
        )
        return self.estimate[start] - half, self.estimate[start] + half


def change_point(blocks: Blocks, first: int) -> tuple[int, int, int]:
    """Return which block a change began with, and a 95% interval for it.

    By the likelihood ratio of one change of the mean, which may be with any block from
    the number `first` on; an interval is of those that lack little of the largest.
    """
    weight = 1 / (blocks.variance * blocks.spread()[0][-1])
    total, value = weight.sum(), (weight * blocks.value).sum()
    after, after_value = (
        np.cumsum(values[::-1])[::-1] for values in (weight, weight * blocks.value)
    )
    before, before_value = total - after, value - after_value
    starts = np.arange(max(first, 1), weight.size)
    a, b = after[starts], before[starts]
    difference = after_value[starts] / a - before_value[starts] / b
    likelihood = 0.5 * difference**2 * a * b / (a + b)
    likely = starts[likelihood >= likelihood.max() - _LACKING]
    return int(starts[likelihood.argmax()]), int(likely[0]), int(likely[-1])
