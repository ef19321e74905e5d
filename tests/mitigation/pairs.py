"""Small ranking problems, their pairs and correlations in loops."""

import numpy as np

from tests.reference.pairwise import pairs_accuracy


def problem(n=240, seed=0, grades=2, n_groups=2, n_features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    group = rng.integers(0, n_groups, n)
    X[:, 1] += group
    y = np.digitize(X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=n), range(grades - 1))
    return X, y.astype(float), group, rng.integers(0, n // 8, n)


def naive_pairs(y, query, member, comparison):
    """All pairs (i, j) with y_i > y_j, and B, in a loop; by whether i is inside."""
    found = {}
    for side in (True, False):
        inside, sign = [bool(m) == side for m in member], 1 if side else -1
        found[side] = [
            (i, j, sign * (comparison == "intra" or not inside[j]) * (y[i] - y[j]))
            for i, j, _ in pairs_accuracy(y, y, query, inside, comparison)
        ]
    return found


def naive_correlation(y, score, query, member, comparison):
    """numpy's corrcoef on the pair list, each half repeated as often as the other."""
    found = naive_pairs(y, query, member, comparison)
    sizes = {side: len(pairs) for side, pairs in found.items()}
    a, b = [], []
    for side, pairs in found.items():
        for i, j, value in pairs * sizes[not side]:
            a.append((score[i] - score[j]) * (y[i] - y[j]))
            b.append(value)
    return np.corrcoef(a, b)[0, 1]
