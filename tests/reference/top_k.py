"""Precision, recall and share of the first k places, over all orders of tied items."""

from tests.reference._common import NAN, orders, query_weights, rows_by_query


def at_k(name, y, s, q, member, k, average="items", w=None):
    """Return precision, recall or share at k of one group's items.

    A row without an outcome (None) has a place and adds nothing else.
    """
    weights = query_weights(q, w)
    numerators, denominators = [], []
    for label, rows in rows_by_query(q).items():
        own = [row for row in rows if member[row] and y[row] is not None]
        firsts = [set(order[:k]) & set(own) for order in orders(s, rows)]
        top = sum(map(len, firsts)) / len(firsts)
        relevant = sum(y[row] for first in firsts for row in first) / len(firsts)
        part, whole = {
            "share_at_k": (top, min(k, len(rows))),
            "precision_at_k": (relevant, top),
            "recall_at_k": (relevant, sum(y[row] for row in own)),
        }[name]
        if average == "queries":
            if whole == 0:
                continue
            part, whole = part / whole, 1
        numerators.append(weights[label] * part)
        denominators.append(weights[label] * whole)
    return NAN if sum(denominators) == 0 else sum(numerators) / sum(denominators)
