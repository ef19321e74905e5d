"""Metrics of one list as it was shown, by every order of its tied items.

A row without an outcome (None) has a place and adds nothing else. The best and the
worst rankings move the rows with an outcome among the places that these hold; where a
place of a tied block may be held or not, it is worth the mean of the block.
"""

import itertools
import math

from tests.reference._common import NAN, orders, tied_blocks
from tests.reference.dissatisfaction import cost


def shown_orders(y, s, position=None):
    """Yield {row: place from 0} for every order of the list."""
    rows = range(len(y))
    if position is not None:
        yield {row: position[row] - 1 for row in rows}
        return
    for order in orders(s, list(rows)):
        yield {row: place for place, row in enumerate(order)}


def mean_over_orders(y, s, position, value):
    """Return the mean over the orders of a function of the places."""
    values = [value(places) for places in shown_orders(y, s, position)]
    return math.fsum(values) / len(values)


def known(y):
    """Return the rows with an outcome."""
    return [row for row, value in enumerate(y) if value is not None]


def held_values(y, s, weight, position=None):
    """Return what the places held by known rows are worth, from the top."""
    if position is not None:
        return [weight(place - 1) for place in sorted(position[r] for r in known(y))]
    values, first = [], 0
    for block in tied_blocks(s, list(range(len(y)))):
        worth = [weight(first + k) for k in range(len(block))]
        number = sum(y[row] is not None for row in block)
        if number < len(block):
            worth = [math.fsum(worth) / len(block)] * number
        values += worth
        first += len(block)
    return values


def exposures(y, s, weight, position=None):
    """Return {row: expected visits} of the known rows."""
    return {
        row: mean_over_orders(y, s, position, lambda p, row=row: weight(p[row]))
        for row in known(y)
    }


def exposure_gap(y, s, in_group, weight, position=None):
    """Share of exposure of a group minus that of the ranking by outcome."""
    seen, held = exposures(y, s, weight, position), held_values(y, s, weight, position)
    best, first = {}, 0
    for block in tied_blocks(y, known(y)):
        worth = held[first : first + len(block)]
        best |= dict.fromkeys(block, math.fsum(worth) / len(block))
        first += len(block)
    seen, best = (
        sum(amount[row] for row in amount if in_group[row]) / sum(amount.values())
        for amount in (seen, best)
    )
    return seen - best


def ndcg(y, s, position=None, k=None):
    """Discounted gain of the known rows over that of their best order."""

    def discount(place):
        return 0.0 if k is not None and place >= k else 1 / math.log2(place + 2)

    seen = exposures(y, s, discount, position)
    best = sorted((y[row] for row in known(y)), reverse=True)
    held = held_values(y, s, discount, position)
    ideal = math.fsum(a * b for a, b in zip(best, held, strict=True))
    reached = math.fsum(y[row] * seen[row] for row in seen)
    return reached / ideal if ideal > 0 else NAN


def dips(y, s, in_group, weight, tie_cost, position=None):
    """Dissatisfaction of a group over that of the worst order of the known rows."""
    pairs = [
        (i, j)
        for i, j in itertools.permutations(known(y), 2)
        if in_group[i] and not in_group[j]
    ]

    def at(places):
        return math.fsum(
            weight(places[j]) * cost(y[i], y[j], tie_cost)
            for i, j in pairs
            if places[j] < places[i]
        )

    costs = {}
    for i, j in pairs:
        costs[j] = costs.get(j, 0) + cost(y[i], y[j], tie_cost)
    held = held_values(y, s, weight, position)
    largest = sorted(costs.values(), reverse=True)
    worst = math.fsum(a * b for a, b in zip(largest, held, strict=False))
    return mean_over_orders(y, s, position, at) / worst if worst > 0 else NAN


def adjacent(y, s, in_group, position=None):
    """Mean of y_i - y_j over neighbours, i in the group; ties in the order of rows."""
    rows = range(len(y))
    order = sorted(rows, key=lambda row: (-s[row], row))
    place = {row: k for k, row in enumerate(order)}
    if position is not None:
        place = {row: position[row] - 1 for row in rows}
    values = [
        y[i] - y[j]
        for i, j in itertools.permutations(known(y), 2)
        if in_group[i] and not in_group[j] and abs(place[i] - place[j]) == 1
    ]
    return math.fsum(values) / len(values) if values else NAN


def by_position(y, s, in_group, epsilon, weight, position=None):
    """Matched pairs from below, averaged over the places of the group's item."""
    values, places = {}, list(shown_orders(y, s, position))
    for i, j in itertools.permutations(known(y), 2):
        if in_group[i] and not in_group[j] and 0 <= s[j] - s[i] <= epsilon:
            for at in places:
                values.setdefault(at[i], []).append(y[i] - y[j])
    total = math.fsum(weight(k) * math.fsum(v) / len(v) for k, v in values.items())
    return total / math.fsum(map(weight, values)) if values else NAN
