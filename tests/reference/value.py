"""The value of a ranking and of a boost: Korevaar et al., equations 1 and 3."""

import math

from tests.reference._common import orders, rows_by_query
from tests.reference.dissatisfaction import visit


def value_of(y, s, rows, weight):
    """Σ w_j Y of the item at j, expected over orders of tied items; equation 1."""
    values = [
        math.fsum(visit(weight, place) * y[row] for place, row in enumerate(order))
        for order in orders(s, rows)
    ]
    return math.fsum(values) / len(values)


def boosts(y, s, q, in_group, boost, weight, normalize):
    """{query: Δ} of the queries with a value: that of the boosted scores, less."""
    raised = [a + boost * inside for a, inside in zip(s, in_group, strict=True)]
    found = {}
    for label, rows in rows_by_query(q).items():
        best = value_of(y, y, rows, weight) if normalize else 1.0
        if best > 0:
            after, before = (value_of(y, one, rows, weight) for one in (raised, s))
            found[label] = (after - before) / best
    return found
