"""Matched pair calibration, Korevaar et al., sections 2.1 and 4.1."""

import itertools
import math

import numpy as np

from tests.reference._common import NAN, query_weights, ranks_of_ties, rows_by_query
from tests.reference.dissatisfaction import visit


def _difference(s, i, j, direction):
    """s_j - s_i in double precision; its absolute value for "both"."""
    difference = float(s[j]) - float(s[i])
    return abs(difference) if direction == "both" else difference


def ranking(s, q):
    """Rank of every row in its query from 0, the best first; ties in row order."""
    rank = [0] * len(q)
    for rows in rows_by_query(q).values():
        ordered = sorted(rows, key=lambda row: -float(s[row]))
        for k, row in enumerate(ordered):
            rank[row] = k
    return rank


def matched_pairs(
    y, s, q, member_of_group, direction="below", adjacent=False, *, epsilon
):
    """Pairs (i, j, y_i - y_j) whose difference is at most epsilon; Definition 1.

    i is in the group and j outside, in the same query, and 0 <= s_j - s_i <= epsilon;
    "both" (section 4.1.3) takes the absolute difference. ``adjacent``: only neighbours
    in the ranking, score ties in row order, and always both directions. At most: up to
    4 units of rounding of the focal score, and a millionth of epsilon.
    """
    rank = ranking(s, q)
    if adjacent:
        direction = "both"
    for rows in rows_by_query(q).values():
        for i, j in itertools.product(rows, rows):
            if not member_of_group[i] or member_of_group[j]:
                continue
            if adjacent and abs(rank[i] - rank[j]) != 1:
                continue
            rounding = min(2.0**-50 * max(abs(s[i]), epsilon), 1e-6 * epsilon)
            if 0 <= _difference(s, i, j, direction) <= epsilon + rounding:
                yield i, j, float(y[i]) - float(y[j])


# Weights by position of the lower item, section 4.1.2


def position_chances(s, q, adjacent=False):
    """{rank: probability} of every row; a tied block shares its ranks evenly.

    ``adjacent``: ties are broken by row order, there as here, so one rank for sure.
    """
    if adjacent:
        return [{k: 1.0} for k in ranking(s, q)]
    chances = [{}] * len(q)
    for rows in rows_by_query(q).values():
        for row, ranks in ranks_of_ties(s, rows).items():
            chances[row] = {k: 1 / len(ranks) for k in ranks}
    return chances


def lower_item(i, j, s, q, adjacent=False):
    """Return the row of the pair that is ranked lower; equal scores: i of the group.

    (Equal scores have equal `position_chances`, so the last rule matters to nobody;
    with ``adjacent`` the row order decides.)
    """
    if adjacent:
        rank = ranking(s, q)
        return i if rank[i] > rank[j] else j
    return i if float(s[i]) <= float(s[j]) else j


def position_weighted(pairs, chances, position_weight, estimate):
    """Sum of w_k MPC_k over sum of w_k, k over the positions where there is an MPC_k.

    ``pairs`` are (i, j, value, frequency, lower item); MPC_k is the estimate when every
    pair counts with the chance that its lower item is at k.
    """
    at = {}
    for i, j, value, frequency, lower in pairs:
        for k, chance in chances[lower].items():
            at.setdefault(k, []).append((i, j, value, frequency * chance))
    values = {k: estimate(some) for k, some in at.items()}
    weights = {
        k: visit(position_weight, k)
        for k, value in values.items()
        if not math.isnan(value)
    }
    total = math.fsum(weights.values())
    mean = math.fsum(weight * values[k] for k, weight in weights.items())
    return mean / total if total else NAN


# The value at a difference of zero, section 4.1


DEGREES = {"local_linear": 1, "local_quadratic": 2}


def local_polynomial(pairs, s, epsilon, degree):
    """Intercept of the regression of y_i - y_j on s_j - s_i; section 4.1.

    Weighted least squares with the triangular kernel 1 - |s_j - s_i| / epsilon; the
    difference keeps its sign, also for "both". ``pairs`` are (i, j, value, frequency).
    Too few differences under the kernel: the mean if the only one is 0 (always so for
    epsilon 0), else nan.
    """
    under = []
    for i, j, value, frequency in pairs:
        d = float(s[j]) - float(s[i])
        kernel = max(0.0, 1 - abs(d) / epsilon) if epsilon > 0 else 1.0
        if kernel > 0:
            under.append((d, value, frequency * kernel))
    distinct = {d for d, *_ in under}
    if distinct == {0.0}:
        degree = 0
    if len(distinct) <= degree:
        return NAN
    d, value, weight = np.array(under).T
    return np.polyfit(d, value, degree, w=np.sqrt(weight))[-1]


# The metric


def _estimate(pairs, s, q, epsilon, adjacent, position_weight, estimator):
    """Estimate from (i, j, value, frequency)."""
    if position_weight is not None:
        chances = position_chances(s, q, adjacent)
        rows = [(*pair, lower_item(*pair[:2], s, q, adjacent)) for pair in pairs]
        options = s, q, epsilon, adjacent, None, estimator
        return position_weighted(
            rows, chances, position_weight, lambda some: _estimate(some, *options)
        )
    if estimator != "mean":
        return local_polynomial(pairs, s, epsilon, DEGREES[estimator])
    n = math.fsum(frequency for *_, frequency in pairs)
    return math.fsum(f * value for _, _, value, f in pairs) / n if n else NAN


def estimate_and_pairs(
    y,
    s,
    q,
    in_group,
    epsilon,
    direction="below",
    average="pairs",
    w=None,
    adjacent=False,
    position_weight=None,
    estimator="mean",
    without=(),
    v=None,
    near=None,
):
    """Estimate of one group and the pairs (i, j) behind it, epsilon a number.

    ``without`` are rows that are left out, for the jackknife; ranks and neighbours stay
    those of all rows. ``v`` are the weights of the items, whose product is part of the
    frequency. ``near`` is a matrix of rows, whose pairs alone count. For averages over
    queries only those with an estimate have pairs.
    """
    weights = query_weights(q, w)
    which = in_group, direction, adjacent
    pairs = [
        (i, j, value, weights[q[i]] * (v[i] * v[j] if v else 1))
        for i, j, value in matched_pairs(y, s, q, *which, epsilon=epsilon)
        if weights[q[i]] and i not in without and j not in without
        if near is None or near[i, j]
    ]
    options = s, q, epsilon, adjacent, position_weight, estimator
    if average == "pairs":
        estimate = _estimate(pairs, *options)
        return estimate, [] if math.isnan(estimate) else [pair[:2] for pair in pairs]
    values = []
    for rows in rows_by_query(q).values():
        of_query = [pair for pair in pairs if pair[0] in rows]
        value = _estimate([(*pair[:3], 1) for pair in of_query], *options)
        if not math.isnan(value):
            values.append((value, of_query[0][3], of_query))
    n = math.fsum(frequency for _, frequency, _ in values)
    mean = math.fsum(f * value for value, f, _ in values) / n if n else NAN
    return mean, [pair[:2] for *_, of_query in values for pair in of_query]


def matched_pair_calibration(y, s, q, member, epsilon, w=None, **options):
    """Mean of y_i - y_j over the matched pairs; Definitions 2 and 3.

    Returns {group: (estimate or nan, number of pairs)}; the number counts every pair
    within epsilon, also where the kernel is 0.
    """
    which = {k: v for k, v in options.items() if k in ("direction", "adjacent")}
    weights, result = query_weights(q, w), {}
    for group, in_group in member.items():
        pairs = matched_pairs(y, s, q, in_group, epsilon=epsilon, **which)
        number = sum(weights[q[i]] > 0 for i, *_ in pairs)
        mean, _ = estimate_and_pairs(y, s, q, in_group, epsilon, w=w, **options)
        result[group] = mean, number
    return result
