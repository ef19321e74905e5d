"""Pairs of which at least one item is in the first k places of its query."""

from fractions import Fraction
from itertools import permutations

from tests.reference._common import ranks_of_ties, rows_by_query


def chances(s, q, k):
    """{(i, j): P(i or j is in the first k places)}, tied items in random order."""
    chance = {}
    for rows in rows_by_query(q).values():
        places = ranks_of_ties(s, rows)
        for i, j in permutations(rows, 2):
            both = [(a, b) for a in places[i] for b in places[j] if a != b]
            there = sum(a < k or b < k for a, b in both)
            chance[i, j] = Fraction(there, len(both))
    return chance
