"""Groups as one number, and a bound for it."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .._inputs.validation import Array, check_choice
from .contrasts import max_t_quantile

KINDS = ("difference", "ratio", "max_abs", "l1")
_FROM_FAIR = ("max_abs", "l1")


def disparity(estimate: Array, fair_value: float | None, kind: str) -> float:
    """Return how far the estimates are from fair; NaN if it cannot be said."""
    check_choice(kind, "kind", KINDS)
    if kind in _FROM_FAIR:
        if fair_value is None:
            raise ValueError(
                f"kind={kind!r} needs a metric with a fair value; use 'difference' or "
                "'ratio'."
            )
        distance = np.abs(estimate - fair_value)
        return float(distance.sum() if kind == "l1" else distance.max())
    if estimate.size < 2:
        return float("nan")
    low, high = estimate.min(), estimate.max()
    if kind == "difference":
        return float(high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(low / high)


def disparity_bound(
    estimate: Array,
    covariance: Array,
    df: float,
    fair_value: float | None,
    kind: str,
    confidence_level: float,
) -> float:
    """Return the worst disparity within simultaneous intervals.

    Intervals of all distances whose maximum or sum the disparity is hold at once, so
    the bound is crossed with at most the probability that they do not.
    """
    if np.isnan(disparity(estimate, fair_value, kind)) or np.isnan(covariance).any():
        return float("nan")
    if kind in _FROM_FAIR:
        distance, slopes = estimate - (fair_value or 0.0), np.eye(estimate.size)
    else:
        pairs = list(combinations(range(estimate.size), 2))
        slopes = np.zeros((len(pairs), estimate.size))
        slopes[np.arange(len(pairs)), [a for a, _ in pairs]] = 1.0
        slopes[np.arange(len(pairs)), [b for _, b in pairs]] = -1.0
        if kind == "ratio":
            if (estimate <= 0).any():
                return 0.0
            distance, slopes = slopes @ np.log(estimate), slopes / estimate
        else:
            distance = slopes @ estimate
    spread = slopes @ covariance @ slopes.T
    spread[np.diag_indices_from(spread)] = np.maximum(np.diag(spread), 0.0)
    error = np.sqrt(np.diag(spread))
    reach = np.abs(distance)
    if error.any():
        reach += max_t_quantile(spread, df, confidence_level, 20_000, 0) * error
    worst = reach.sum() if kind == "l1" else reach.max()
    return float(np.exp(-worst)) if kind == "ratio" else float(worst)
