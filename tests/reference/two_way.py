"""Two-way errors by leaving out each user, item and item of a user, with loops."""

import numpy as np


def pairs_of(kind, y, s, group, query, label, epsilon):
    """Return (value, first row, second row) of each pair of the group with others."""
    pairs = []
    for i in np.flatnonzero(group == label):
        if kind == "rate":
            pairs.append((y[i], i, i))
            continue
        for j in np.flatnonzero((group != label) & (query == query[i])):
            above = 1.0 if s[i] > s[j] else 0.5 * (s[i] == s[j])
            if (kind == "inter" and y[i] > y[j]) or kind == "exposure":
                pairs.append((above, i, j))
            elif kind == "matched" and 0 <= s[j] - s[i] <= epsilon:
                pairs.append((y[i] - y[j], i, j))
    return pairs


def mean(pairs):
    return sum(pair[0] for pair in pairs) / len(pairs)


def deviations(pairs, group, label, units, two_samples):
    """Return what each unit adds to the jackknife, with the factor of its sample."""
    of_unit = {}
    for _, i, j in pairs:
        for row in (i, j):
            member = two_samples and group[row] == label
            of_unit[units[row]] = of_unit.get(units[row], False) or member
    numbers = {side: list(of_unit.values()).count(side) for side in (True, False)}
    total, moved = mean(pairs), {}
    for unit, side in of_unit.items():
        left = [p for p in pairs if unit not in (units[p[1]], units[p[2]])]
        factor = np.sqrt((numbers[side] - 1) / numbers[side])
        moved[unit] = factor * (mean(left) - total)
    return moved


def two_way_variances(kind, y, s, group, query, user, item, epsilon=None):
    """Return covariances (G, G) over users, items, and items within users."""
    labels = sorted(set(group))
    both = list(zip(user, item, strict=True))
    ways = []
    for units, two_samples in ((user, False), (item, True), (both, True)):
        moved = [
            deviations(
                pairs_of(kind, y, s, group, query, label, epsilon),
                group,
                label,
                units,
                two_samples and kind != "rate",
            )
            for label in labels
        ]
        ways.append(
            [[sum(a[u] * b.get(u, 0) for u in a) for b in moved] for a in moved]
        )
    return np.array(ways)
