"""Matched pair calibration, Korevaar et al., sections 2.1 and 4.1."""

import math

from ._common import NAN, average_of_pairs, query_weights, rows_by_query


def _difference(s, i, j, direction):
    """s_j - s_i in double precision; its absolute value for "both"."""
    difference = float(s[j]) - float(s[i])
    if direction == "both":
        return abs(difference)
    if direction == "below":
        return difference
    raise ValueError(direction)


def eligible_pairs(y, s, q, member_of_group, direction="below"):
    """Pairs (i, j, y_i - y_j) the estimator could use with epsilon infinite.

    Definition 1: i in the group, j outside, same query, 0 <= s_j - s_i; "both"
    (section 4.1.3) drops the last condition.
    """
    for rows in rows_by_query(q).values():
        for i in rows:
            for j in rows:
                if not member_of_group[i] or member_of_group[j]:
                    continue
                if _difference(s, i, j, direction) >= 0:
                    yield i, j, float(y[i]) - float(y[j])


def matched_pairs(y, s, q, member_of_group, direction="below", *, epsilon):
    """Eligible pairs whose difference is at most epsilon; Definition 1."""
    for i, j, value in eligible_pairs(y, s, q, member_of_group, direction):
        if _difference(s, i, j, direction) <= epsilon:
            yield i, j, value


def epsilon_for(
    y, s, q, member_of_group, direction="below", *, n_pairs=None, quantile=None, w=None
):
    """Return the K-th smallest difference among eligible pairs; section 4.1.1.

    K is ``n_pairs``, or ceil(quantile * eligible pairs) and at least 1; more than
    there are: the largest difference. A pair of a query of weight w counts w times.
    No eligible pair: nan.
    """
    if (n_pairs is None) == (quantile is None):
        raise ValueError("give one of n_pairs and quantile")
    weights = query_weights(q, w)
    differences = []
    for i, j, _ in eligible_pairs(y, s, q, member_of_group, direction):
        if weights[q[i]] > 0:
            differences.append((_difference(s, i, j, direction), weights[q[i]]))
    if not differences:
        return NAN
    differences.sort()
    if n_pairs is None:
        eligible = sum(weight for _, weight in differences)
        n_pairs = max(1, math.ceil(quantile * eligible))
    seen = 0
    for difference, weight in differences:
        seen += weight
        if seen >= n_pairs:
            return difference
    return differences[-1][0]


def matched_pair_calibration(
    y,
    s,
    q,
    member,
    epsilon=None,
    n_pairs=None,
    quantile=None,
    direction="below",
    average="pairs",
    w=None,
):
    """Mean of y_i - y_j over the matched pairs; Definitions 2 and 3.

    At most one of epsilon, n_pairs and quantile; none: quantile 0.01.
    Returns {group: (estimate or nan, number of pairs, epsilon of the group)}.
    """
    given = [v for v in (epsilon, n_pairs, quantile) if v is not None]
    if len(given) > 1:
        raise ValueError("give one of epsilon, n_pairs and quantile")
    if not given:
        quantile = 0.01
    result = {}
    for group, in_group in member.items():
        eps = epsilon
        if eps is None:
            eps = epsilon_for(
                y, s, q, in_group, direction, n_pairs=n_pairs, quantile=quantile, w=w
            )
        pairs = matched_pairs(y, s, q, in_group, direction, epsilon=eps)
        result[group] = (*average_of_pairs(pairs, q, average, w), eps)
    return result
