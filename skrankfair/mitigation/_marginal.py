"""One level of outcomes for the marginal rows of all groups, and its thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._inputs.validation import Array
from ._curves import Curve, Line

# A line through fewer rows above the threshold says little.
_NEAR_ROWS, _NEAR_SHARE = 50, 0.25


def extrapolated(curve: Curve, score: Array, outcome: Array, low: float) -> Line:
    """Return the curve, with a line below the lowest score of a known outcome (§6.1).

    The line is that of least squares through the nearest quarter of the rows, at least
    50. It does not fall.

    Parameters
    ----------
    curve : Curve
        Non-decreasing, fitted to the rows with outcomes.
    score, outcome : ndarray of shape (n,)
        Of these rows.
    low : float
        Lowest score of all rows.

    Returns
    -------
    Line
    """
    order = np.argsort(score, kind="stable")
    near = order[: max(_NEAR_ROWS, int(_NEAR_SHARE * score.size))]
    start, mean = float(score[order[0]]), float(score[near].mean())
    centred = score[near] - mean
    spread = float(centred @ centred)
    slope = max(float(centred @ outcome[near]) / spread, 0.0) if spread > 0 else 0.0
    level = float(outcome[near].mean()) + slope * (start - mean)
    knots, values = curve.knots
    above = knots > start
    points = np.concatenate([[min(low, start), start], knots[above]])
    line = np.concatenate(
        [[level - slope * (start - min(low, start)), level], values[above]]
    )
    points, first = np.unique(points, return_index=True)
    return Line(points, np.maximum.accumulate(line[first]))


def common_level(
    curves: Sequence[Curve],
    score: Array,
    group: Array,
    weight: Array,
    positive: float,
) -> tuple[float, Array]:
    """Return the level of outcomes at which as many rows are positive, and which are.

    Rows are taken by the outcome to expect of them; where a curve is flat, by score.

    Parameters
    ----------
    curves : sequence of Curve, length G
        Non-decreasing.
    score, group, weight : ndarray of shape (n,)
    positive : float
        The weight that is to be positive.

    Returns
    -------
    level : float
    chosen : ndarray of shape (n,), bool
    """
    expected = np.empty(score.size)
    rank = np.empty(score.size)
    for g, curve in enumerate(curves):
        rows = np.flatnonzero(group == g)
        expected[rows] = curve.predict(score[rows])
        values, place = np.unique(score[rows], return_inverse=True)
        rank[rows] = (place + 1) / (values.size + 1)
    order = np.lexsort((-rank, -expected))
    reached = np.concatenate(([0.0], np.cumsum(weight[order])))
    # Rows that tie are taken together.
    same = np.zeros(reached.size, dtype=bool)
    same[1:-1] = (np.diff(expected[order]) == 0) & (np.diff(rank[order]) == 0)
    distance = np.where(same, np.inf, np.abs(reached - positive))
    n_chosen = int(np.argmin(distance))
    chosen = np.zeros(score.size, dtype=bool)
    chosen[order[:n_chosen]] = True
    edges = expected[order[max(n_chosen - 1, 0) : n_chosen + 1]]
    return float(edges.mean()), chosen


def threshold_at(curve: Curve, level: float, score: Array, chosen: Array) -> float:
    """Return the threshold of a group at the level, that parts its chosen rows."""
    threshold = float(curve.inverse(np.array([level]))[0])
    if not chosen.all():
        threshold = max(threshold, float(np.nextafter(score[~chosen].max(), np.inf)))
    if chosen.any():
        threshold = min(threshold, float(score[chosen].min()))
    return threshold
