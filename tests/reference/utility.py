"""NDCG, the ranker's objective: Korevaar et al. eq. 1 with DCG position weights."""

import math

from tests.reference._common import NAN, query_weights, rows_by_query
from tests.reference.dissatisfaction import exposures

GAINS = {"linear": float, "exponential": lambda y: 2.0**y - 1.0}


def ndcg(y, s, q, k=None, gain="linear", w=None):
    """Mean NDCG over queries with ideal DCG > 0, score ties by expectation."""

    def discount(rank):
        return 0.0 if k is not None and rank > k else 1 / math.log2(rank + 1)

    weights, gains = query_weights(q, w), [GAINS[gain](value) for value in y]
    discounts, best = exposures(s, q, discount), exposures(gains, q, discount)
    numerators, denominators = [], []
    for label, rows in rows_by_query(q).items():
        reached = math.fsum(gains[row] * discounts[row] for row in rows)
        ideal = math.fsum(gains[row] * best[row] for row in rows)
        if ideal > 0 and weights[label] > 0:
            numerators.append(weights[label] * reached / ideal)
            denominators.append(weights[label])
    return math.fsum(numerators) / math.fsum(denominators) if denominators else NAN
