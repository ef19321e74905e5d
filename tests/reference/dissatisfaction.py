"""Dissatisfaction induced by pairwise swaps, and exposure; Fabris et al. 2023."""

import itertools
import math

from tests.reference._common import (
    NAN,
    query_weights,
    ranks_of_ties,
    rows_by_query,
    tied_blocks,
)


def visit(position_weight, k):
    """F(k), the chance that a user visits rank k, from 0; section 4.

    A name, a function of the rank from 1, or a list with the values of the first ranks.
    """
    if isinstance(position_weight, str):
        return {
            "uniform": 1.0,
            "dcg": 1 / math.log2(k + 2),
            "geometric": 0.8**k,
            "reciprocal": 1 / (k + 1),
        }[position_weight]
    if callable(position_weight):
        return float(position_weight(k + 1))
    return float(position_weight[k]) if k < len(position_weight) else 0.0


def cost(y_i, y_j, tie_cost):
    """What i suffers from j above it; equation 4: 1, or c_t for equal relevance."""
    if y_i > y_j:
        return 1.0
    return float(tie_cost) if y_i == y_j else 0.0


def _blocks(s, rows):
    """Tied blocks from the top: (first rank, rows)."""
    ranks = ranks_of_ties(s, rows)
    return [(ranks[block[0]].start, block) for block in tied_blocks(s, rows)]


# The numerator of a query


def dissatisfaction_of_order(y, order, in_a, in_b, position_weight, tie_cost):
    """Sum over i of A and ranks k of B, k above i, of F(k) d_U(i, k); equation 5."""
    terms = []
    for position, i in enumerate(order):
        for k, j in enumerate(order):
            if in_a[i] and in_b[j] and position > k:
                terms.append(visit(position_weight, k) * cost(y[i], y[j], tie_cost))
    return math.fsum(terms)


def dissatisfaction(y, s, rows, in_a, in_b, position_weight, tie_cost):
    """Return the same, expected over random orders of tied scores, pair by pair.

    j above i: mean of F over the ranks of j's block. Both in one block of m from rank
    f: j is at f + t with chance 1 / m, and i below it with (m - 1 - t) / (m - 1).
    """
    terms = []
    blocks = _blocks(s, rows)
    for above, (first, block) in enumerate(blocks):
        m = len(block)
        values = [visit(position_weight, first + t) for t in range(m)]
        anywhere = math.fsum(values) / m
        for j in block:
            for below, (_, others) in enumerate(blocks):
                for i in others:
                    if not (in_a[i] and in_b[j]) or below < above or i == j:
                        continue
                    expected = anywhere
                    if below == above:
                        expected = math.fsum(
                            values[t] / m * (m - 1 - t) / (m - 1) for t in range(m)
                        )
                    terms.append(expected * cost(y[i], y[j], tie_cost))
    return math.fsum(terms)


# Its normaliser


def normaliser(y, rows, in_a, in_b, position_weight, tie_cost):
    """C_AB: c_j of the items of B, descending, against F of the first ranks.

    c_j is the cost of j above all of A. The largest numerator of any ranking as long
    as F does not increase.
    """
    visits = [visit(position_weight, k) for k in range(len(rows))]
    costs = [
        math.fsum(cost(y[i], y[j], tie_cost) for i in rows if in_a[i])
        for j in rows
        if in_b[j]
    ]
    costs.sort(reverse=True)
    return math.fsum(c * visits[k] for k, c in enumerate(costs))


def brute_force_normaliser(y, rows, in_a, in_b, position_weight, tie_cost):
    """Return the largest numerator over all rankings of the rows; 7 rows at most."""
    return max(
        dissatisfaction_of_order(y, order, in_a, in_b, position_weight, tie_cost)
        for order in itertools.permutations(rows)
    )


# The measure


def number_of_pairs(y, q, in_a, in_b, tie_cost):
    """Return the number of pairs of i of A and j of B with a cost, in all queries."""
    return sum(
        in_a[i] and in_b[j] and cost(y[i], y[j], tie_cost) > 0
        for rows in rows_by_query(q).values()
        for i in rows
        for j in rows
    )


def table_of_pair(y, s, q, in_a, in_b, position_weight, tie_cost, average, w=None):
    """Lines (row, row, numerator, denominator, weight), one per query, of M_AB.

    What `variance.cluster_covariance` takes. Equation 5 with our normaliser. "pairs":
    sum of numerators over sum of normalisers; "queries": mean of the ratio over queries
    with a positive normaliser.
    """
    weights, table = query_weights(q, w), []
    args = in_a, in_b, position_weight, tie_cost
    for label, rows in rows_by_query(q).items():
        num, den = dissatisfaction(y, s, rows, *args), normaliser(y, rows, *args)
        if average == "queries":
            if den == 0:
                continue
            num, den = num / den, 1.0
        table.append((rows[0], rows[0], num, den, weights[label]))
    return table


# Other pairs, other divisors, and items


def all_pairs_normaliser(y, rows, in_a, position_weight, tie_cost):
    """Return the largest sum over i of A and any j: of the items by relevance, worst.

    Items of equal relevance have those of A last. Equation 2 has all items in A.
    """
    order = sorted(rows, key=lambda row: (y[row], in_a[row]))
    every = [True] * len(y)
    return dissatisfaction_of_order(y, order, in_a, every, position_weight, tie_cost)


def pooled(y, s, q, in_a, in_b, position_weight, tie_cost, divisor, w=None):
    """M_AB over all queries, with any divisor; A and B need not be all items.

    "pairs": the number of pairs i of A, j of B, an unordered pair of A once (REE of
    Kuhlman et al. 2019, with the first rank's F as unit).
    """
    weights, tops, bottoms = query_weights(q, w), [], []
    args = in_a, in_b, position_weight, tie_cost
    for label, rows in rows_by_query(q).items():
        tops.append(weights[label] * dissatisfaction(y, s, rows, *args))
        if divisor == "pairs":
            pairs = {
                frozenset((i, j)) for i in rows for j in rows if in_a[i] and in_b[j]
            }
            most = sum(len(pair) == 2 for pair in pairs) * visit(position_weight, 0)
        elif all(in_b):
            most = all_pairs_normaliser(y, rows, in_a, position_weight, tie_cost)
        else:
            most = normaliser(y, rows, *args)
        bottoms.append(weights[label] * most)
    bottom = math.fsum(bottoms)
    return math.fsum(tops) / bottom if bottom > 0 else NAN


def of_items(y, s, q, g, position_weight, tie_cost, divisor):
    """Return the inner sum of equation 2 by item, j of other labels if there are g."""
    result = []
    for row, query in enumerate(q):
        rows = [other for other in range(len(q)) if q[other] == query]
        in_a = [other == row for other in range(len(q))]
        in_b = [
            other != row and (g is None or g[other] != g[row])
            for other in range(len(q))
        ]
        args = in_a, in_b, position_weight, tie_cost
        value = dissatisfaction(y, s, rows, *args)
        most = 1.0
        if divisor == "maximum":
            most = normaliser(y, rows, *args)
        elif divisor == "pairs":
            most = sum(in_b[other] for other in rows) * visit(position_weight, 0)
        result.append(value / most if most > 0 else NAN)
    return result


# Exposure


def exposures(s, q, position_weight="dcg"):
    """Expected F of every row; a tied block shares the mean of its ranks."""
    result = [NAN] * len(q)
    for rows in rows_by_query(q).values():
        for first, block in _blocks(s, rows):
            ranks = range(first, first + len(block))
            mean = math.fsum(visit(position_weight, k) for k in ranks) / len(block)
            for row in block:
                result[row] = mean
    return result


def table_of_shares(amounts, q, in_group, average="queries", w=None, use=None):
    """Lines (row, row, amount of the group, of all, weight), one per query.

    "queries": amounts are shares of those of the query. A query whose amounts sum to 0
    has no shares and is left out, as is every query not in ``use``.
    """
    weights, table = query_weights(q, w), []
    for label, rows in rows_by_query(q).items():
        total = math.fsum(amounts[row] for row in rows)
        own = math.fsum(amounts[row] for row in rows if in_group[row])
        if weights[label] and total and (use is None or label in use):
            scale = {"queries": total, "amortized": 1.0}[average]
            table.append((rows[0], rows[0], own / scale, total / scale, weights[label]))
    return table


def target_amounts(y, q, target, position_weight="dcg"):
    """Amount of every row whose share is the target.

    "expected" (EE): exposure under the ideal ranking, ties in relevance shuffled;
    "relevance" (EA): the relevance; "population" (EA-dp): 1.
    """
    if target == "expected":
        return exposures(y, q, position_weight)
    if target == "relevance":
        return [float(value) for value in y]
    return [1.0] * len(q)
