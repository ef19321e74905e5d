"""Small ranking problems, their pairs and correlations in loops."""

import numpy as np


def problem(n=240, seed=0, grades=2, n_groups=2, n_features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    group = rng.integers(0, n_groups, n)
    X[:, 1] += group
    y = np.digitize(X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=n), range(grades - 1))
    return X, y.astype(float), group, rng.integers(0, n // 8, n)


def naive_pairs(y, query, member, comparison):
    """All pairs (i, j) with y_i > y_j, and B, in a loop; by whether i is inside."""
    found = {True: [], False: []}
    for i in range(y.size):
        for j in range(y.size):
            if query[i] != query[j] or not y[i] > y[j]:
                continue
            inter = member[i] != member[j]
            if comparison == "all" or (comparison == "inter") == inter:
                g = int(member[i]) - int(member[j])
                if comparison == "intra":
                    g = 1 if member[i] else -1
                found[bool(member[i])].append((i, j, g * (y[i] - y[j])))
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
