"""Thresholds at which rates are equal: one per group, or several to draw between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from .._inputs.validation import Array

#: What `constraint` makes equal between groups, instead of marginal outcomes.
RATES = ("demographic_parity", "equal_opportunity", "equalized_odds")


def rate_shares(constraint: str, expected: Array, weight: Array) -> Array:
    """Return what each row of a group adds to the rate that is to be equal, shape (n,).

    Its share of all rows, of the good outcomes, or the mean of its shares of good and
    of bad outcomes. The sums are 1, or NaN where there are no such outcomes.
    """
    expected = np.clip(expected, 0, 1)
    good, bad = weight * expected, weight * (1 - expected)
    with np.errstate(invalid="ignore"):
        if constraint == "demographic_parity":
            return weight / weight.sum()
        if constraint == "equal_opportunity":
            return good / good.sum()
        return (good / good.sum() + bad / bad.sum()) / 2


@dataclass(frozen=True)
class RateCurve:
    """What follows from each threshold of a group, from the highest on."""

    threshold: Array  # shape (k,): decreasing, between the scores
    rate: Array  # shape (k,): from 0 to 1
    positive: Array  # shape (k,): weight of the rows that are positive

    @classmethod
    def of_rows(cls, score: Array, share: Array, weight: Array) -> RateCurve:
        """Return the curve of rows, each of which adds its share to the rate."""
        values, place = np.unique(-score, return_inverse=True)
        values = -values
        between = (values[:-1] + values[1:]) / 2
        between = np.where(between > values[1:], between, values[:-1])
        ends = np.nextafter(values[:1], np.inf), values[-1:]
        return cls(
            np.concatenate([ends[0], between, ends[1]]),
            np.append(0.0, np.cumsum(np.bincount(place, share))),
            np.append(0.0, np.cumsum(np.bincount(place, weight))),
        )

    @property
    def changes(self) -> Array:
        """Levels at which the nearest rate is that of the next threshold."""
        return (self.rate[1:] + self.rate[:-1]) / 2

    def at(self, level: Any) -> Any:
        """Return the number of the threshold whose rate is nearest to the level."""
        return np.searchsorted(self.changes, level, side="right")


def common_rate(curves: Sequence[RateCurve], positive: float) -> float:
    """Return the rate of all groups at which this weight of rows is positive."""
    levels = np.unique(np.concatenate([[0.0], *(curve.changes for curve in curves)]))
    total = np.sum([curve.positive[curve.at(levels)] for curve in curves], axis=0)
    return float(levels[np.argmin(np.abs(total - positive))])


@dataclass(frozen=True)
class Hull:
    """The rates of a group that thresholds reach, one at a time or drawn between.

    It is the upper convex hull of the ROC curve (Hardt et al. 2016, §3.2), with the sum
    of both rates as the abscissa, so that no edge is vertical.
    """

    threshold: Array  # shape (k,): decreasing
    total: Array  # shape (k,): true plus false positive rate, from 0 to 2
    ahead: Array  # shape (k,): true minus false positive rate, concave
    positive: Array  # shape (k,): weight of the rows that are positive

    @classmethod
    def of_rows(cls, score: Array, expected: Array, weight: Array) -> Hull:
        """Return the hull of rows with outcomes, or expected outcomes, in [0, 1]."""
        good, bad = weight * expected, weight * (1 - expected)
        true = RateCurve.of_rows(score, good / good.sum(), weight)
        false = RateCurve.of_rows(score, bad / bad.sum(), weight)
        total, ahead = true.rate + false.rate, true.rate - false.rate
        # The ends are exact, whatever is rounded in the sums.
        total[-1], ahead[-1] = 2, 0
        rising = np.flatnonzero(np.append(True, np.diff(total) > 0))
        step = np.diff(total[rising])
        slopes = np.diff(ahead[rising]) / step
        # The slopes of a concave majorant are a decreasing isotonic regression.
        pooled = isotonic_regression(slopes, weights=step, increasing=False)
        kept = rising[pooled.blocks]
        return cls(true.threshold[kept], total[kept], ahead[kept], true.positive[kept])

    def line(self, total: float) -> tuple[float, float]:
        """Return the height of the hull at an abscissa, and the slope of the edge."""
        left = self.edge(total)
        rise = self.ahead[left + 1] - self.ahead[left]
        height = np.interp(total, self.total, self.ahead)
        return float(height), float(rise / (self.total[left + 1] - self.total[left]))

    def edge(self, total: float) -> int:
        """Return the number of the left end of the edge at an abscissa."""
        right = int(np.searchsorted(self.total, total, side="right"))
        return min(max(right - 1, 0), self.total.size - 2)

    def mixture(self, total: float, ahead: float) -> dict[float, float]:
        """Return the thresholds to draw between, with their probabilities.

        They reach the point, which is on the hull or below it, in expectation.
        """
        left = self.edge(total)
        if self.line(total)[0] - ahead <= _ON_HULL:
            part = total - self.total[left]
            part /= self.total[left + 1] - self.total[left]
            return self._named([left, left + 1], [1 - part, part])
        return self._named(*self._chord(total, ahead))

    def _named(self, places: Any, shares: Any) -> dict[float, float]:
        found: dict[float, float] = {}
        for place, share in zip(places, shares, strict=True):
            if share > _NO_CHANCE:
                threshold = float(self.threshold[place])
                found[threshold] = found.get(threshold, 0.0) + float(share)
        return found

    def _chord(self, total: float, ahead: float) -> tuple[Array, Array]:
        """Return the ends of the two edges that a chord through a point joins.

        And their shares. Of the chords through a vertex the one with the least variance
        of the decisions is taken: those of the fewest people are drawn.
        """
        right = int(np.searchsorted(self.total, total, side="right"))
        left = int(np.searchsorted(self.total, total, side="left"))
        before = (ahead - self.ahead[:left]) / (total - self.total[:left])
        after = (self.ahead[right:] - ahead) / (self.total[right:] - total)
        # Seen from the point, the vertices are in the order of their slopes.
        slope = np.concatenate([before, after])
        slope = slope[(slope >= after[-1]) & (slope <= before[0])]
        start = np.searchsorted(-before, -slope, side="right") - 1
        end = right + np.searchsorted(-after, -slope, side="left")
        places = np.array([start, start + 1, end - 1, end])
        above = self.ahead[places] - ahead - slope * (self.total[places] - total)
        first = np.clip(above[0] / (above[0] - above[1]), 0, 1)
        last = np.clip(above[2] / (above[2] - above[3]), 0, 1)
        at = self.total[places]
        low = at[0] + first * (at[1] - at[0])
        high = at[2] + last * (at[3] - at[2])
        part = (total - low) / (high - low)
        accepted = np.array([part + (1 - part) * first, part, part * last])
        rows = np.diff(self.positive[places], axis=0)
        best = int(np.argmin((rows * accepted * (1 - accepted)).sum(axis=0)))
        share = -np.diff(np.concatenate([[1.0], accepted[:, best], [0.0]]))
        return places[:, best], share


# Rounding: how near the hull a point is on it, and what is never drawn.
_ON_HULL, _NO_CHANCE = 1e-12, 1e-15


def cheapest_point(hulls: Sequence[Hull], slope: float) -> tuple[float, float]:
    """Return the highest point above a line that is below all hulls.

    The line has the slope, and the point is (total, ahead) as in `Hull`. The lowest
    of the hulls is concave: two of its edges that bound the point from either side are
    replaced by the edge below their crossing until there is none (Kelley 1960).
    """

    def lowest(total: float) -> tuple[float, float]:
        return min(hull.line(total) for hull in hulls)

    left, right = 0.0, 2.0
    (low, rise), (high, fall) = lowest(left), lowest(right)
    if rise <= slope:
        return left, low
    if fall >= slope:
        return right, high
    while True:
        total = (high - low + rise * left - fall * right) / (rise - fall)
        total = min(max(total, left), right)
        bound = low + rise * (total - left)
        ahead, edge = lowest(total)
        if bound - ahead <= _ON_HULL / 100 or edge == slope:
            return total, ahead
        if edge > slope:
            left, low, rise = total, ahead, edge
        else:
            right, high, fall = total, ahead, edge


def random_thresholds(
    hulls: Sequence[Hull], good: float, bad: float, cost: float
) -> tuple[list[dict[float, float]], float]:
    """Return the thresholds of each group, with their probabilities, and the level.

    Their true and their false positive rates are equal and cost the least, if a false
    positive costs `cost` and a false negative ``1 - cost``; `good` and `bad` are the
    weights of the outcomes. The level is the mean of the two rates.
    """
    loss, gain = cost * bad, (1 - cost) * good
    total, ahead = cheapest_point(hulls, (loss - gain) / (loss + gain))
    return [hull.mixture(total, ahead) for hull in hulls], total / 2
