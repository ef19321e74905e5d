"""Pairs of which at least one item is in the first k places of its query."""

from fractions import Fraction
from itertools import permutations

from tests.reference._common import rows_by_query


def _places(rows, s):
    """Yield the places that tied rows may have, as {row: places of its block}."""
    for row in rows:
        above = sum(s[other] > s[row] for other in rows)
        tied = [other for other in rows if s[other] == s[row]]
        yield row, range(above, above + len(tied))


def chances(s, q, k):
    """{(i, j): P(i or j is in the first k places)}, tied items in random order."""
    chance = {}
    for rows in rows_by_query(q).values():
        places = dict(_places(rows, s))
        for i, j in permutations(rows, 2):
            both = [(a, b) for a in places[i] for b in places[j] if a != b]
            there = sum(a < k or b < k for a, b in both)
            chance[i, j] = Fraction(there, len(both))
    return chance
