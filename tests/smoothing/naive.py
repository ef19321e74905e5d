"""The smoother written as it is defined: a loop over points, clusters and rows."""

import math

import numpy as np

KERNELS = {
    "gaussian": lambda u: math.exp(-u * u / 2) / math.sqrt(2 * math.pi),
    "epanechnikov": lambda u: 0.75 * (1 - u * u) if abs(u) < 1 else 0.0,
    "tricube": lambda u: 70 / 81 * (1 - abs(u) ** 3) ** 3 if abs(u) < 1 else 0.0,
    "uniform": lambda u: 0.5 if abs(u) < 1 else 0.0,
    "gaussian4": lambda u: (
        (3 - u * u) / 2 * math.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    ),
}


def flat_top(u):
    """The inverse transform of McMurry and Politis' flat-top window, by quadrature."""
    s = (np.arange(500) + 0.5) / 500
    window = np.where(s <= 0.05, 1.0, 0.0)
    between = s > 0.05
    steep = 0.25 * np.exp(-0.25 / (s[between] - 0.05) ** 2) / (s[between] - 1) ** 2
    window[between] = np.exp(-steep)
    return float(np.sum(window * np.cos(s * u)) / 500 / math.pi)


KERNELS["flat_top"] = flat_top


def cluster_sums(y, s, cluster, point, h, kernel, *, weight=None, rows=False):
    """Return ``{cluster: (A, B)}`` at one point.

    ``rows``: every row weighs one, not every cluster.
    """
    weight = [1.0] * len(y) if weight is None else weight
    sums = {}
    for m in sorted(set(cluster)):
        own = [i for i in range(len(y)) if cluster[i] == m and weight[i] > 0]
        if not own:
            continue
        n_m = 1.0 if rows else len(own)
        a = b = 0.0
        for i in own:
            k = weight[i] * KERNELS[kernel]((s[i] - point) / h)
            a += y[i] * k
            b += k
        sums[m] = (a / n_m, b / n_m)
    return sums


def curve(y, s, cluster, grid, h, kernel="gaussian", **options):
    """Return the curve and its covariance over the grid."""
    at = [cluster_sums(y, s, cluster, p, h, kernel, **options) for p in grid]
    estimate = [
        sum(a for a, _ in sums.values()) / sum(b for _, b in sums.values())
        for sums in at
    ]
    psi = [
        [(a - f * b) / sum(mass for _, mass in sums.values()) for a, b in sums.values()]
        for f, sums in zip(estimate, at, strict=True)
    ]
    n_clusters = len(at[0])
    covariance = [
        [n_clusters / (n_clusters - 1) * float(np.dot(row, column)) for column in psi]
        for row in psi
    ]
    return np.array(estimate), np.array(covariance)


def leave_cluster_out_error(y, s, cluster, h, kernel="gaussian"):
    """Return the mean squared error of predicting each cluster from the others."""
    sizes = {m: cluster.count(m) for m in cluster}
    total, weights = 0.0, 0.0
    for i in range(len(y)):
        a = b = 0.0
        for j in range(len(y)):
            if cluster[j] != cluster[i]:
                k = KERNELS[kernel]((s[j] - s[i]) / h) / sizes[cluster[j]]
                a += y[j] * k
                b += k
        total += (y[i] - a / b) ** 2 / sizes[cluster[i]]
        weights += 1 / sizes[cluster[i]]
    return total / weights
