"""Many estimates at once: disparities, corrected p-values, simultaneous intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from .._inputs.validation import Array, check_choice, generator
from .arrays import cached_read_only
from .estimates import contrasts_of, correct
from .metric import Metric
from .scales import quantile_of

if TYPE_CHECKING:
    from .group_estimates import GroupEstimates

KINDS = ("difference", "ratio", "max_abs", "l1", "worst")
_FROM_FAIR = ("max_abs", "l1")
# With more groups than this a bound of a disparity does not look at every pair of them,
# and tests against the rest do not look at their correlations: it would take too long.
MOST_TOGETHER = 32


def disparity(low: Array, high: Array, metric: Metric, kind: str) -> float:
    """Return the largest disparity of values within `low` and `high`, or NaN.

    With the estimates as both ends it is their disparity, with confidence limits a
    bound.
    """
    check_choice(kind, "kind", KINDS)
    better, fair_value = metric.better, metric.fair_value
    if kind == "worst":
        if better is None:
            raise ValueError(
                "kind='worst' needs a metric of which high or low values are better."
            )
        return float(low.min() if better == "high" else -high.max())
    if kind in _FROM_FAIR and fair_value is None:
        raise ValueError(
            f"kind={kind!r} needs a metric with a fair value; use 'difference' or "
            "'ratio'."
        )
    if low.size < 2 and (metric.relative or kind not in _FROM_FAIR):
        return float("nan")
    if kind in _FROM_FAIR:
        distance = np.maximum(high - fair_value, fair_value - low)
        return float(distance.sum() if kind == "l1" else distance.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind == "difference":
            return float(high.max() - low.min())
        return float(low.min() / high.max())


def why_undefined(estimate: Array) -> str:
    """Return why a disparity is NaN, although none of the estimates is."""
    if estimate.size < 2:
        return "fewer than two groups"
    infinite = np.isinf(estimate).any()
    return "infinite estimates alike" if infinite else "a ratio of 0 to 0"


def disparity_bound(
    result: GroupEstimates, kind: str, confidence_level: float
) -> float:
    """Return a one-sided confidence bound of the disparity.

    The disparity is a maximum, over pairs of groups or over distances from fair, and
    its bound is the largest of their confidence limits. The limit of the truly largest
    one is crossed with at most the probability that is allowed, and the bound is at
    least that limit: a maximum needs no correction for the number of pairs. Nor does a
    sum of distances, whose error is at most the sum of their errors. With many groups,
    or groups without contrasts, the bound is the distance between the highest upper and
    the lowest lower limit, which hold at once.
    """
    estimate = result.estimate
    value = disparity(estimate, estimate, result.metric, kind)
    if not np.isfinite(value) or (kind == "ratio" and value == 0):
        return value  # no ratio is below that of a group at 0
    tail = 1 - confidence_level
    between = kind in ("difference", "ratio")
    if between and estimate.size <= MOST_TOGETHER and not result.metric.not_compared:
        contrasts = contrasts_of(result, *np.triu_indices(estimate.size, 1), kind)
        low, high = contrasts.ends(quantile_of(tail, contrasts.df))
        if kind == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                return float(np.minimum(low, 1 / high).min())
        return float(np.maximum(high, -low).max())
    low, high = result.ends(quantile_of(tail / 2 if between else tail, result.df))
    if kind == "ratio":
        low = np.where(low < 0, np.nan if result.metric.signed else 0.0, low)
    return disparity(low, high, result.metric, kind)


def simultaneous(
    covariance: Array, df: Array, n_resamples: int, random_state: Any
) -> Simultaneous:
    """Return the simultaneous quantiles of estimates.

    Estimates whose variance is 0, because all clusters agree, count as independent. So
    do all where `covariance` is only the variances, of shape (K,).
    """
    variance = np.array(covariance if covariance.ndim == 1 else np.diag(covariance))
    known = variance[variance > 0]
    variance[variance == 0] = known.mean() if known.size else 1.0
    blocks = [covariance.copy()] if covariance.ndim == 2 else []
    for block in blocks:
        np.fill_diagonal(block, variance)
    alone = np.stack([np.arange(variance.size), np.full(variance.size, -1)], axis=1)
    return Simultaneous(
        estimate=np.where(np.isnan(variance), np.nan, 1.0),
        standard_error=np.sqrt(np.maximum(variance, 0.0)),
        df=df,
        covariance=blocks,
        contrasts=alone,
        n_resamples=n_resamples,
        random_state=random_state,
    )


CORRECTIONS = ("sup_t", "bonferroni", "holm", "fdr_bh")
_CHUNK, _MOST_DRAWS = 2000, 1 << 21
_SMALLEST = 1e-300
# Relative to the largest eigenvalue, one that is only rounding.
_NOISE = 1e-12


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Contrasts of correlated estimates, each with degrees of freedom of its own.

    A statistic t on ν degrees of freedom is compared with others as the normal
    deviate z of equal p-value, and the largest |z| with the largest of a normal
    vector of the same correlations.
    """

    estimate: Array  # shape (T,): NaN where undefined, which is no test
    standard_error: Array  # shape (T,)
    df: Array  # shape (T,)
    #: Covariance of the values whose differences the contrasts are, in blocks of shape
    #: (K, K) that count as independent of each other; NaN where undefined. Without
    #: blocks all of the contrasts count as independent.
    covariance: Sequence[Array]
    #: Shape (T, 2), int64: numbers of the two values whose difference each contrast is,
    #: sorted by block; -1 where there is no second one.
    contrasts: Array
    n_resamples: int
    random_state: Any
    #: Shape (T,): standard errors of the contrasts according to `covariance`, if that
    #: is used for its correlations only; None: `standard_error`.
    spread: Array | None = None
    #: 1: only estimates above 0 count, and the deviates have signs.
    sides: int = 2

    @cached_read_only
    def statistic(self) -> Array:
        """Student's t of each contrast, shape (T,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.estimate / self.standard_error
        # Without variance 0 is no deviation.
        return np.where(self.estimate == 0, 0.0 * self.standard_error, t)

    @cached_read_only
    def pvalue(self) -> Array:
        """P-value of each contrast on its own, shape (T,)."""
        extreme = np.abs(self.statistic) if self.sides == 2 else self.statistic
        with np.errstate(invalid="ignore"):
            return self.sides * special.stdtr(self.df, -extreme)

    @cached_read_only
    def deviate(self) -> Array:
        """``|z|`` with the p-value of each contrast, shape (T,)."""
        return -special.ndtri(np.maximum(self.pvalue / self.sides, _SMALLEST))

    @cached_read_only
    def largest(self) -> Array:
        """Largest ``|z|`` of normal vectors, sorted, shape (n_resamples,)."""
        spread = self.standard_error if self.spread is None else self.spread
        unsure = (self.standard_error > 0) & (spread > 0)
        known = np.flatnonzero(unsure & ~np.isnan(self.estimate))
        if not known.size:
            return np.zeros(self.n_resamples)
        if not self.covariance:
            # The quantiles of the largest of independent deviates.
            level = (np.arange(self.n_resamples) + 0.5) / self.n_resamples
            return -special.ndtri(-np.expm1(np.log(level) / known.size) / 2)
        largest = np.zeros(self.n_resamples)
        rng = generator(self.random_state)
        starts = np.cumsum([0, *(len(block) for block in self.covariance)])
        ends = np.searchsorted(self.contrasts[known, 0], starts)
        for number, covariance in enumerate(self.covariance):
            inside = known[ends[number] : ends[number + 1]]
            if not inside.size:
                continue
            contrasts = np.maximum(self.contrasts[inside] - starts[number], -1)
            used = np.unique(contrasts[contrasts >= 0])
            values, vectors = np.linalg.eigh(covariance[np.ix_(used, used)])
            kept = values > _NOISE * values[-1]  # smooth curves are of a low rank
            # The symmetric root is unique: signs of eigenvectors are the processor's.
            root = vectors[:, kept] * np.sqrt(values[kept]) @ vectors[:, kept].T
            root = np.pad(root, [(0, 0), (0, 1)])  # a last 0, if there is no second one
            place = np.searchsorted(used, contrasts)
            place[contrasts < 0] = -1
            first, second = place.T
            step = max(1, min(_CHUNK, _MOST_DRAWS // inside.size))
            for start in range(0, self.n_resamples, step):
                stop = min(start + step, self.n_resamples)
                draws = rng.standard_normal((stop - start, len(root))) @ root
                drawn = (draws[:, first] - draws[:, second]) / spread[inside]
                most = (np.abs(drawn) if self.sides == 2 else drawn).max(1)
                largest[start:stop] = np.maximum(largest[start:stop], most)
        return np.sort(largest)

    def corrected(self, method: str) -> Array:
        """Return p-values corrected for the number of contrasts, shape (T,)."""
        check_choice(method, "correction", CORRECTIONS)
        if method != "sup_t":
            return correct(self.pvalue, method)
        below = np.searchsorted(self.largest, self.deviate, side="left")
        corrected = (1 + self.n_resamples - below) / (1 + self.n_resamples)
        corrected[np.isnan(self.pvalue)] = np.nan
        # The simulation has an error, and a correction lowers no p-value.
        return np.fmax(corrected, self.pvalue)

    def quantile(self, confidence_level: float, method: str) -> Array:
        """Return how many standard errors a band is wide each way, shape (T,).

        "pointwise", "sup_t", or Bonferroni's for any other method.
        """
        tail = (1 - confidence_level) / 2
        if method != "pointwise":
            tail /= max(1, int((~np.isnan(self.pvalue)).sum()))
        if method == "sup_t":
            # The simulation has an error, and Bonferroni's bound has none.
            simulated = special.ndtr(-np.quantile(self.largest, confidence_level))
            tail = max(float(simulated), tail)
        return quantile_of(tail, self.df)
