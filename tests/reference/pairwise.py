"""Pairwise fairness, Beutel et al. 2019, sections 3.3, 6.1 and 6.4."""

import math

from tests.reference._common import NAN, average_of_pairs, rows_by_query


def _above(s_i, s_j):
    """1 if i is ranked above j, 0 if below, one half if the scores tie."""
    if s_i > s_j:
        return 1.0
    if s_i < s_j:
        return 0.0
    return 0.5


def _complement(in_group):
    return [not inside for inside in in_group]


def pairs_accuracy(y, s, q, in_group, comparison="all"):
    """Yield (i, j, value) with y_i > y_j and i in the group; section 3.3.

    Equations 2, 5 and 6: j is any item of the query, of the group or outside it.
    """
    if comparison not in ("all", "intra", "inter"):
        raise ValueError(comparison)
    for rows in rows_by_query(q).values():
        for i in rows:
            for j in rows:
                if not (in_group[i] and y[i] > y[j]):
                    continue
                if comparison == "intra" and not in_group[j]:
                    continue
                if comparison == "inter" and in_group[j]:
                    continue
                yield i, j, _above(s[i], s[j])


def pairs_rest_accuracy(y, s, q, in_group, comparison="all"):
    """Yield the same pairs for the rest: i outside the group; intra: j outside too."""
    yield from pairs_accuracy(y, s, q, _complement(in_group), comparison)


def pairs_exposure(s, q, in_group):
    """Yield (i, j, value), i in the group and j outside, whatever y; section 6.4."""
    for rows in rows_by_query(q).values():
        for i in rows:
            for j in rows:
                if in_group[i] and not in_group[j]:
                    yield i, j, _above(s[i], s[j])


def pairs_preference(y, q, in_group):
    """Yield (i, j, 1{y_i > y_j}), i in, j outside, y_i != y_j; section 6.4."""
    for rows in rows_by_query(q).values():
        for i in rows:
            for j in rows:
                if in_group[i] and not in_group[j] and y[i] != y[j]:
                    yield i, j, 1.0 if y[i] > y[j] else 0.0


def _by_bucket(pairs, q, bucket, average, w):
    split = {}
    for i, j, value in pairs:
        split.setdefault(bucket[i], []).append((i, j, value))
    table = {}
    for label in sorted(split):
        estimate, n_pairs = average_of_pairs(split[label], q, average, w)
        if n_pairs > 0:
            table[label] = estimate, n_pairs
    return table


def _accuracy(pairs, q, bucket, average, w):
    if bucket is None:
        return average_of_pairs(pairs, q, average, w)
    table = _by_bucket(pairs, q, bucket, average, w)
    if not table:
        return NAN, 0
    estimates = [estimate for estimate, _ in table.values()]
    n_pairs = sum(n for _, n in table.values())
    return math.fsum(estimates) / len(estimates), n_pairs


def pairwise_accuracy(
    y, s, q, member, comparison="all", bucket=None, average="pairs", w=None
):
    """P(s_i > s_j | y_i > y_j), i in the group; section 3.3, buckets of section 6.1.

    With ``bucket`` (of the preferred item) the plain mean over buckets with pairs.
    Returns {group: (estimate or nan, number of pairs)}.
    """
    return {
        group: _accuracy(
            pairs_accuracy(y, s, q, in_group, comparison), q, bucket, average, w
        )
        for group, in_group in member.items()
    }


def pairwise_exposure(s, q, member, average="pairs", w=None):
    """P(s_i > s_j | i in the group, j outside), ties one half; section 6.4."""
    return {
        group: average_of_pairs(pairs_exposure(s, q, in_group), q, average, w)
        for group, in_group in member.items()
    }


def pairwise_preference(y, q, member, average="pairs", w=None):
    """P(y_i > y_j | i in the group, j outside, y_i != y_j); section 6.4."""
    return {
        group: average_of_pairs(pairs_preference(y, q, in_group), q, average, w)
        for group, in_group in member.items()
    }
