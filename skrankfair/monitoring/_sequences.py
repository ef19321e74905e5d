"""Confidence sequences: intervals that hold at all times at once.

A 95% interval misses the truth at one look in twenty, so that anyone who looks every
day will see it miss one day. A confidence sequence misses on any of its days with
probability alpha in all. The sequences here are asymptotic (Waudby-Smith et al. 2021),
from a mixture of normal martingales (Robbins 1970): instead of 1.96 standard errors
their half width is a number that grows slowly with the logarithm of the data.

A sequence that began long ago is slow to see a change, because its mean includes all
the days before the change. So a sequence is started with every block of data, and their
martingales are mixed: the one that starts with block s has the weight
``1 / (s (s + 1))``, and these weights add up to 1. The mixture is a martingale too,
which ever exceeds 1 / alpha with probability alpha at most (Ville 1939; Shin, Ramdas
and Rinaldo 2022).

A mean of independent values in [0, 1] has a sequence that holds for any number of
values, by betting against each value that the mean might have (Waudby-Smith and Ramdas
2024).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from .._inputs.validation import Array

#: The number of blocks of data at which a sequence is the tightest.
BEST_AFTER = 30.0
# From this number of blocks on, variances are multiplied by a factor from their spread,
# as days may vary more than their errors say. Before, errors count three times.
ENOUGH, _CAUTION = 8, 3.0**2
# A change point is in the 95% interval if its log-likelihood is less than this below
# the largest: the larger of two exponential variables is below it with probability
# 0.95.
_LACKING = -np.log1p(-np.sqrt(0.95))
# After this many halvings of the unit interval, what is left is below rounding.
_HALVINGS = 60


def best_ratio(alpha: Array | float) -> Array:
    """Return the ratio of information to the prior's where a sequence is tightest."""
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

    The formula is that of Wallace (1959). It is accurate to one percent from five
    degrees of freedom on, below the quantile in the tails, and has no smallest tail.
    """
    df = np.maximum(df, 1.0)
    shrunk = (8 * df + 1) / (8 * df + 3)
    return np.asarray(shrunk * np.sqrt(df * np.log1p(distance**2 / df)))


def betting_sequence(n: Array, total: Array, alpha: float) -> tuple[Array, Array]:
    """Return the confidence sequence of the mean of independent values in [0, 1].

    Against the claim that the mean is m one bets on each value X. With the constant bet
    of an alternative mean q, the capital is multiplied by ``1 + (X - m) (q - m) / (m (1
    - m))``, which is at least ``(q / m)^X ((1 - q) / (1 - m))^(1 - X)``, with equality
    for 0 and 1. With the capital spread over all q by the density of Beta(1/2, 1/2) it
    is at least ``B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) m^-k (1 - m)^(k - n)`` after n
    values with the sum k. It is a martingale if m is the mean, so that the interval of
    all m with a capital below 1 / alpha holds at all times together, for any number of
    values.

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
            inside = loss - most < -np.log(alpha)
            inner, outer = np.where(inside, m, inner), np.where(inside, outer, m)
        ends.append(outer)
    return ends[0], ends[1]


class Blocks(NamedTuple):
    """Independent estimates of one number in order of time; arrays of shape (n,)."""

    value: Array
    variance: Array
    weight: Array
    df: Array
    last: Array  # number of the last update in the block

    def take(self, rows: Array | slice) -> Blocks:
        """Return some of the blocks."""
        return Blocks(*(column[rows] for column in self))

    def means(self) -> tuple[Array, Array, Array]:
        """Return weighted means of the blocks s to t, at [s, t], variances and df.

        The degrees of freedom are Satterthwaite's. Below the diagonal all are NaN.
        """
        weight = self.weight
        square = weight**2 * self.variance
        values = np.stack([weight, weight * self.value, square, square**2 / self.df])
        total = np.cumsum(values, axis=1)
        sums = total[:, None] - (total - values)[:, :, None]
        sums[:, ~_started(weight.size)] = np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums[1] / sums[0], sums[2] / sums[0] ** 2, sums[2] ** 2 / sums[3]

    def spread(self) -> tuple[Array, Array]:
        """Return the factor by which blocks vary more than their variances, (n,).

        It is at least 1, and from differences of neighbouring blocks so far, so that a
        change in between does not matter. Also return its degrees of freedom: two
        thirds of the number of differences, as two consecutive differences share a
        block; infinite where the factor is 1.
        """
        count = np.arange(self.value.size)  # of the differences so far
        before = np.append(self.variance[:1], self.variance[:-1])
        step = np.diff(self.value, prepend=self.value[:1])
        mean = np.cumsum(step**2 / (before + self.variance)) / np.maximum(count, 1)
        late = count >= ENOUGH - 1
        df = np.where(late & (mean > 1), 2 * count / 3, np.inf)
        return np.where(late, np.maximum(1.0, mean), _CAUTION), df


def _started(size: int) -> Array:
    """Return whether the sequence s has started at time t, at [s, t]."""
    return np.tri(size, dtype=bool).T


class Scan(NamedTuple):
    """Sequences that start with each block: ``[s, t]`` is over the blocks s to t.

    Arrays are NaN below the diagonal.
    """

    estimate: Array  # shape (n, n): the mean, or its change from the mean before
    error: Array
    df: Array
    #: The information so far, divided by that at which the sequence is the tightest.
    ratio: Array

    @classmethod
    def of(cls, blocks: Blocks, first: int = 0) -> Scan:
        """Return the sequences that start with each block from the number `first` on.

        If there are blocks before, they are of the mean of the window minus the mean of
        all of those. With v the variance of the mean before and u that of the window,
        the information is ``1 / (u + v)``, whose increments are independent: the error
        of the mean before is in it once, and not at every look.
        """
        spread, spread_df = (values[first:] for values in blocks.spread())
        means = blocks.means()
        before: Any = (0.0, 0.0, np.inf)
        if first:
            before = [values[0, first - 1 : -1, None] for values in means]
        center, center_variance, center_df = before
        mean, variance, df = (values[first:, first:] for values in means)
        best = np.diag(variance)[:, None] / BEST_AFTER + center_variance
        total = variance + center_variance
        with np.errstate(divide="ignore", invalid="ignore"):
            unsure = (variance**2 / df + center_variance**2 / center_df) / total**2
            degrees = 1 / (unsure + 1 / spread_df)
            error = np.sqrt(total * spread)
        return cls(mean - center, error, degrees, best / total)

    def log_evidence(self, margin: float, alpha: float) -> tuple[Array, Array]:
        """Return the logarithm of the mixture by time, and the start with the most.

        It is a mixture of martingales if no distance is beyond the margin.
        """
        start = np.arange(1.0, self.error.shape[0] + 1)
        log_weight = -np.log(start) - np.log1p(start)
        ratio = self.ratio * best_ratio(alpha * np.exp(log_weight))[:, None]
        distance = np.maximum(np.abs(self.estimate) - margin, 0.0)
        z = normal_scale(distance / self.error, self.df)
        log = 0.5 * z**2 * ratio / (1 + ratio) - 0.5 * np.log1p(ratio)
        log = np.where(_started(start.size), log + log_weight[:, None], -np.inf)
        # Sequences that have not started have the value 1; their weights sum to 1 / (t
        # + 1).
        mixture = np.logaddexp(special.logsumexp(log, axis=0), -np.log1p(start))
        return np.asarray(mixture), log.argmax(axis=0)

    def interval(self, start: int, alpha: float) -> tuple[Array, Array]:
        """Return the confidence sequence that starts with a block, by time."""
        # The quantiles of Student's t with the same tails as the normal ones.
        tail = special.ndtr(-boundary(self.ratio[start], alpha))
        df = np.maximum(self.df[start], 1.0)
        half = -special.stdtrit(df, tail) * self.error[start]
        return self.estimate[start] - half, self.estimate[start] + half


def change_point(blocks: Blocks, first: int) -> tuple[int, int, int]:
    """Return the block with which a change began, and a 95% interval for it.

    The model is one change of the mean, at any block from the number `first` on. The
    interval has the blocks whose likelihood is not far below the largest.
    """
    mean, variance, _ = blocks._replace(weight=1 / blocks.variance).means()
    starts = np.arange(max(first, 1), blocks.value.size)
    difference = mean[starts, -1] - mean[0, starts - 1]
    unsure = variance[starts, -1] + variance[0, starts - 1]
    likelihood = 0.5 * difference**2 / (unsure * blocks.spread()[0][-1])
    likely = starts[likelihood >= likelihood.max() - _LACKING]
    return int(starts[likelihood.argmax()]), int(likely[0]), int(likely[-1])
