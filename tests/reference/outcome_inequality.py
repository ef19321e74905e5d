"""Outcome inequalities by position; Roth et al. 2022, Korevaar et al. section 3.2.1.

For positions j < k and groups a != b an unbiased ranker has
E[(Y_j - Y_k) 1{G_j = a, G_k = b}] >= 0: no item of b would do better further up.
"""

import itertools
import math

from tests.reference._common import NAN, ranks_of_ties, rows_by_query


def chance(place, row, j, other, k):
    """Chance that row is at rank j and other at rank k, tied blocks in random order."""
    ranks, others = place[row], place[other]
    if row == other or j == k or j not in ranks or k not in others:
        return 0.0
    return 1 / (len(ranks) * (len(others) - (ranks == others)))


def positions_of(q, top_k=None, pairs="adjacent"):
    """Pairs of ranks j < k from 0 below ``top_k``: neighbours, or all of them."""
    longest = max(len(rows) for rows in rows_by_query(q).values())
    n = longest if top_k is None else min(top_k, longest)
    if pairs == "adjacent":
        return [(j, j + 1) for j in range(n - 1)]
    return list(itertools.combinations(range(n), 2))


def query_moments(y, s, g, rows, positions, labels):
    """{(j, k, a, b): (value, support)} of one query, expected over ties.

    value: (Y_j - Y_k) 1{G_j = a, G_k = b}; support: the chance of the indicator. A
    query without position k has 0 and 0.
    """
    place = ranks_of_ties(s, rows)
    moments = {}
    for (j, k), (a, b) in itertools.product(
        positions, itertools.permutations(labels, 2)
    ):
        value, support = [], []
        for row, other in itertools.permutations(rows, 2):
            if g[row] == a and g[other] == b:
                p = chance(place, row, j, other, k)
                value.append(p * (float(y[row]) - float(y[other])))
                support.append(p)
        moments[j, k, a, b] = math.fsum(value), math.fsum(support)
    return moments


def moments(y, s, g, q, cluster, top_k=None, pairs="adjacent"):
    """Mean over queries of every moment, and what the clusters do to it.

    Returns {(j, k, a, b): (mean, standard error, support, {cluster: residual})}. The
    residual is the sum over the cluster's queries of (value - mean), by the number of
    queries: what the mean moves by. Its squares, times C / (C - 1), sum to the squared
    standard error. Moments whose indicator never occurs are left out.
    """
    labels, positions = sorted(set(g)), positions_of(q, top_k, pairs)
    queries = rows_by_query(q)
    of_query = {
        label: query_moments(y, s, g, rows, positions, labels)
        for label, rows in queries.items()
    }
    clusters = list(dict.fromkeys(cluster))
    result = {}
    for (j, k), (a, b) in itertools.product(
        positions, itertools.permutations(labels, 2)
    ):
        key = j, k, a, b
        mean = math.fsum(of_query[label][key][0] for label in queries) / len(queries)
        support = math.fsum(of_query[label][key][1] for label in queries)
        if support == 0:
            continue
        residual = dict.fromkeys(clusters, 0.0)
        for label, rows in queries.items():
            value = of_query[label][key][0]
            residual[cluster[rows[0]]] += (value - mean) / len(queries)
        error = NAN
        if len(clusters) > 1:
            factor = len(clusters) / (len(clusters) - 1)
            error = math.sqrt(factor * math.fsum(r**2 for r in residual.values()))
        result[key] = mean, error, support, residual
    return result


def max_statistic(table):
    """Return the largest violation in standard errors, max of -mean / error.

    A moment that does not vary (error 0) is left out; no moment left: nan.
    """
    violations = [-mean / error for mean, error, _, _ in table.values() if error > 0]
    return max(violations) if violations else NAN


def bootstrap_statistics(table, multipliers):
    """Maxima over moments of -sum_c xi_c residual_c / error, one per multiplier row.

    ``multipliers`` are lists with a value for every cluster in order of appearance.
    Centred at the means found, so as if every inequality were an equality.
    """
    maxima = []
    for line in multipliers:
        values = []
        for _, error, _, residual in table.values():
            terms = zip(line, residual.values(), strict=True)
            values.append(-math.fsum(xi * r for xi, r in terms) / error)
        maxima.append(max(values))
    return maxima


def pvalue(statistic, maxima):
    """(1 + number of maxima at least as large) / (1 + B)."""
    return (1 + sum(value >= statistic for value in maxima)) / (1 + len(maxima))
