"""Precision, recall and share of the first k places, over all orders of tied items."""

from tests.reference._common import NAN, orders, query_weights, rows_by_query


def _expected(s, rows, k, count):
    """Mean of ``count(first k rows)`` over the orders."""
    found = [count(order[:k]) for order in orders(s, rows)]
    return sum(found) / len(found)


def at_k(name, y, s, q, member, k, average="items", w=None):
    """Return precision, recall or share at k of one group's items."""
    weights = query_weights(q, w)
    numerators, denominators = [], []
    for label, rows in rows_by_query(q).items():
        own = [row for row in rows if member[row]]
        top = _expected(s, rows, k, lambda first: sum(member[r] for r in first))
        relevant = _expected(
            s, rows, k, lambda first: sum(y[r] for r in first if member[r])
        )
        if name == "share_at_k":
            part, whole = top, min(k, len(rows))
        elif name == "precision_at_k":
            part, whole = relevant, top
        else:
            part, whole = relevant, sum(y[row] for row in own)
        if average == "queries":
            if whole == 0:
                continue
            part, whole = part / whole, 1
        numerators.append(weights[label] * part)
        denominators.append(weights[label] * whole)
    return NAN if sum(denominators) == 0 else sum(numerators) / sum(denominators)
