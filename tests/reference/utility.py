"""NDCG, the ranker's objective: Korevaar et al. eq. 1 with DCG position weights."""

import math

from tests.reference._common import NAN, query_weights, rows_by_query, tied_blocks


def _gain(y, gain):
    if gain == "linear":
        return float(y)
    if gain == "exponential":
        return 2.0 ** float(y) - 1.0
    raise ValueError(gain)


def _discount(position, k):
    """1 / log2(position + 1), position from 1; 0 beyond k."""
    if k is not None and position > k:
        return 0.0
    return 1.0 / math.log2(position + 1)


def _dcg_of_order(gains, k):
    return math.fsum(
        gain * _discount(position, k) for position, gain in enumerate(gains, start=1)
    )


def _expected_dcg(y, s, rows, k, gain):
    """Give every item of a tied block the mean discount of its positions."""
    terms, first = [], 1
    for block in tied_blocks(s, rows):
        positions = range(first, first + len(block))
        mean = math.fsum(_discount(p, k) for p in positions) / len(block)
        for row in block:
            terms.append(_gain(y[row], gain) * mean)
        first += len(block)
    return math.fsum(terms)


def ndcg(y, s, q, k=None, gain="linear", w=None):
    """Mean NDCG over queries with ideal DCG > 0, score ties by expectation."""
    weights = query_weights(q, w)
    numerators, denominators = [], []
    for label, rows in rows_by_query(q).items():
        best = sorted((_gain(y[row], gain) for row in rows), reverse=True)
        ideal = _dcg_of_order(best, k)
        if ideal > 0 and weights[label] > 0:
            numerators.append(
                weights[label] * _expected_dcg(y, s, rows, k, gain) / ideal
            )
            denominators.append(weights[label])
    if not denominators:
        return NAN
    return math.fsum(numerators) / math.fsum(denominators)
