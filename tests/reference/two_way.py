"""Two-way errors by leaving out each user, item and item of a user, with loops."""

import numpy as np

from tests.reference import pairwise
from tests.reference.matched_pairs import matched_pairs
from tests.reference.variance import jackknife_covariance


def pairs_of(kind, y, s, query, member, epsilon):
    """Return (first row, second row, value) of each pair of the group with others."""
    if kind == "rate":
        return [(i, i, y[i]) for i in np.flatnonzero(member)]
    if kind == "inter":
        return pairwise.pairs_accuracy(y, s, query, member, "inter")
    if kind == "exposure":
        return pairwise.pairs_exposure(s, query, member)
    return matched_pairs(y, s, query, member, epsilon=epsilon)


def two_way_variances(kind, y, s, group, query, user, item, epsilon=None):
    """Return covariances (G, G) over users, items, and items within users."""
    labels, ways = sorted(set(group)), []
    tables = {
        g: [(*pair, 1, 1) for pair in pairs_of(kind, y, s, query, group == g, epsilon)]
        for g in labels
    }
    both = list(zip(user, item, strict=True))
    for units in (user, item, both):
        members = {
            g: {units[row] for pair in pairs for row in pair[:2] if group[row] == g}
            for g, pairs in tables.items()
        }
        one_sample = units is user or kind == "rate"
        covariance = jackknife_covariance(
            tables,
            lambda pair, units=units: {units[pair[0]], units[pair[1]]},
            units,
            member=None if one_sample else members,
        )
        ways.append([[covariance[g, h] for h in labels] for g in labels])
    return np.array(ways)
