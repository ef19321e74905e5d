"""Predictive parity, DiCiccio et al. 2023: curves, calibration errors, impact."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np

from tests.reference._common import NAN, ranks_of_ties, rows_by_query

# Kernels


def gaussian(u):
    """Standard normal density; section 3."""
    return math.exp(-u * u / 2) / math.sqrt(2 * math.pi)


def flat_top(u):
    """The inverse transform of McMurry and Politis' flat-top window, by quadrature.

    Of infinite order, with tails faster than any power (B2).
    """
    s = (np.arange(500) + 0.5) / 500
    window = np.where(s <= 0.05, 1.0, 0.0)
    between = s > 0.05
    steep = 0.25 * np.exp(-0.25 / (s[between] - 0.05) ** 2) / (s[between] - 1) ** 2
    window[between] = np.exp(-steep)
    return float(np.sum(window * np.cos(s * u)) / 500 / math.pi)


KERNELS = {
    "gaussian": gaussian,
    "epanechnikov": lambda u: 0.75 * (1 - u * u) if abs(u) < 1 else 0.0,
    "tricube": lambda u: 70 / 81 * (1 - abs(u) ** 3) ** 3 if abs(u) < 1 else 0.0,
    "uniform": lambda u: 0.5 if abs(u) < 1 else 0.0,  # of appendix C.1
    "gaussian4": lambda u: (3 - u * u) / 2 * gaussian(u),
    "flat_top": flat_top,
}


# The curve of a group, section 3. Its options are h, kernel, cluster_weight and w.


def row_weights(cluster, in_group, cluster_weight="cluster", w=None):
    """Weight of every row in the curve of the group; 0 outside.

    "cluster": w_i over the number of the cluster's rows of the group, so that every
    cluster weighs the mean of its rows' weights; "row" (appendix D): w_i.
    """
    w = [1] * len(cluster) if w is None else w
    inside = [row for row in range(len(cluster)) if in_group[row] and w[row] > 0]
    sizes = Counter(cluster[row] for row in inside)
    result = [0.0] * len(cluster)
    for row in inside:
        size = {"cluster": sizes[cluster[row]], "row": 1}[cluster_weight]
        result[row] = w[row] / size
    return result


def cluster_sums(y, s, cluster, weights, point, h, kernel="gaussian"):
    """{cluster: (A_m, B_m)} at a point, all clusters of the data."""
    sums = dict.fromkeys(cluster, (0.0, 0.0))
    for row, label in enumerate(cluster):
        if weights[row] > 0:
            term = weights[row] * KERNELS[kernel]((float(s[row]) - point) / h)
            a, b = sums[label]
            sums[label] = a + term * float(y[row]), b + term
    return sums


def curve_and_influence(
    y,
    s,
    cluster,
    in_group,
    grid,
    h,
    kernel="gaussian",
    cluster_weight="cluster",
    w=None,
):
    """Return the curve f on the grid, and what each cluster moves it by.

    f is the sum of A_m over that of B_m, nan where B is 0; {cluster: [psi_m on the
    grid]}, psi_m = (A_m - f B_m) / sum of B, of clusters with rows of the group.
    """
    weights = row_weights(cluster, in_group, cluster_weight, w)
    present = {m for m, weight in zip(cluster, weights, strict=True) if weight > 0}
    curve, influence = [], {m: [] for m in cluster if m in present}
    for point in grid:
        sums = cluster_sums(y, s, cluster, weights, point, h, kernel)
        total = math.fsum(b for _, b in sums.values())
        f = math.fsum(a for a, _ in sums.values()) / total if total else NAN
        curve.append(f)
        for m, values in influence.items():
            values.append((sums[m][0] - f * sums[m][1]) / total if total else NAN)
    return curve, influence


def nadaraya_watson(*args, **options):
    """Return the curve of a group on the grid."""
    return curve_and_influence(*args, **options)[0]


def score_contrast(
    y, s, cluster, in_a, in_b, point, h, cluster_weight="cluster", w=None
):
    """Coefficient of group a in a local quadratic fit to both, and its null error.

    The outcome is regressed on 1, u, u^2 and 1{a}, weighted by kernel and row weight.
    By Frisch-Waugh-Lovell the coefficient is sum of k z r over sum of k z 1{a}, z and r
    the residuals of 1{a} and of y on 1, u, u^2 alone. The error takes the larger of the
    cluster sums of k z r, squared, and of independent rows of the variance of all.
    """
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=float)
    weight = np.zeros(len(y))
    for member in (in_a, in_b):
        weight += row_weights(list(cluster), list(member), cluster_weight, list(w))
    u = (np.asarray(s) - point) / h
    near = weight * np.exp(-0.5 * u**2)
    design = np.stack([np.ones(len(y)), u, u**2], axis=1)

    def residual(values):
        root = np.sqrt(near)
        fit = np.linalg.lstsq(design * root[:, None], values * root, rcond=None)[0]
        return values - design @ fit

    y, label = np.asarray(y, dtype=float), np.asarray(in_a, dtype=float)
    z, r = residual(label), residual(y)
    spread = np.sum(near * z * label)
    by_cluster = {}
    for row, name in enumerate(cluster):
        by_cluster[name] = by_cluster.get(name, 0.0) + near[row] * z[row] * r[row]
    robust = math.fsum(value**2 for value in by_cluster.values())
    mean = np.sum(near * y) / near.sum()
    variance = np.sum(near * (y - mean) ** 2) / near.sum()
    least = variance * np.sum((near * z) ** 2)
    return np.sum(near * z * y) / spread, math.sqrt(max(robust, least)) / spread


def covariance(first, second):
    """F * sum_m psi_m(t) psi_m(u), t of the first group, u of the second.

    F is the root of the product of both M / (M - 1), for the M clusters of a group.
    """
    points = range(len(next(iter(first.values()))))
    factor = math.sqrt(len(first) / (len(first) - 1) * len(second) / (len(second) - 1))
    both = [m for m in first if m in second]
    return [
        [factor * math.fsum(first[m][t] * second[m][u] for m in both) for u in points]
        for t in points
    ]


def contrast(y, s, cluster, in_a, in_b, grid, *options):
    """f_a - f_b on the grid and its covariance, from the difference of the psi."""
    curves, psi = zip(
        *(curve_and_influence(y, s, cluster, m, grid, *options) for m in (in_a, in_b)),
        strict=True,
    )
    difference = [a - b for a, b in zip(*curves, strict=True)]
    points = range(len(difference))
    parts = [(1 if a is b else -1, covariance(a, b)) for a in psi for b in psi]
    of_difference = [
        [math.fsum(sign * matrix[t][u] for sign, matrix in parts) for u in points]
        for t in points
    ]
    return difference, of_difference


def leave_cluster_out_error(y, s, cluster, h, kernel="gaussian"):
    """Mean squared error of rows by the curve of the other clusters.

    Rows weigh as in the curve.
    """
    weights, terms = row_weights(cluster, [True] * len(y)), []
    for row, label in enumerate(cluster):
        others = [other != label for other in cluster]
        (f,) = nadaraya_watson(y, s, cluster, others, [s[row]], h, kernel)
        terms.append(weights[row] * (y[row] - f) ** 2)
    return math.fsum(terms) / math.fsum(weights)


# Calibration errors, section 7.1 and appendix A


def smooth_error(
    y, s, cluster, in_group, h, kernel="gaussian", cluster_weight="cluster", w=None
):
    """Root of the mean of (s - f(s))^2 over the rows of the group; appendix A.1."""
    curve = nadaraya_watson(y, s, cluster, in_group, s, h, kernel, cluster_weight, w)
    weights = row_weights(cluster, in_group, cluster_weight, w)
    terms = [
        weight * (score - f) ** 2
        for weight, score, f in zip(weights, s, curve, strict=True)
        if weight > 0
    ]
    return math.sqrt(math.fsum(terms) / math.fsum(weights)) if terms else NAN


def mean_within_ties(y, s):
    """Outcomes as exact fractions, those of equal scores replaced by their mean.

    So the order of tied rows does not matter: in a bin stands their expectation.
    """
    result = []
    for row in range(len(s)):
        block = [Fraction(float(y[o])) for o in range(len(s)) if s[o] == s[row]]
        result.append(sum(block) / len(block))
    return result


def bins_of_equal_mass(y, s, n_bins):
    """Bins (rows, mean outcome, mean score) from the lowest, in exact fractions.

    Row of rank r (from 0, by score) is in bin min(b - 1, floor(r b / n)); empty bins,
    when there are fewer rows than bins, are left out.
    """
    n = len(s)
    outcome = mean_within_ties(y, s)
    bins = {}
    for rank, row in enumerate(sorted(range(n), key=lambda row: float(s[row]))):
        bins.setdefault(min(n_bins - 1, rank * n_bins // n), []).append(row)
    return [
        (
            len(rows),
            sum(outcome[row] for row in rows) / len(rows),
            sum(Fraction(float(s[row])) for row in rows) / len(rows),
        )
        for _, rows in sorted(bins.items())
    ]


def binned_error(y, s, n_bins):
    """Root of sum_k n_k / n (mean score - mean outcome)², bins of equal mass."""
    terms = [
        n * float(score - outcome) ** 2
        for n, outcome, score in bins_of_equal_mass(y, s, n_bins)
    ]
    return math.sqrt(math.fsum(terms) / len(s))


def sweep_bins(y, s):
    """Return the last b before the mean outcomes of b bins fall somewhere.

    b = 2, 3, ..., never the number of rows n, which is no binning at all; Roelofs et
    al. 2022.
    """
    for n_bins in range(2, len(s)):
        means = [outcome for _, outcome, _ in bins_of_equal_mass(y, s, n_bins)]
        if any(after < before for before, after in itertools.pairwise(means)):
            return n_bins - 1
    return max(1, len(s) - 1)


# Impact, section 7.2


def calibrated(y, s, cluster, member, *options):
    """S*: every row's score through the curve of its group, exactly at the score."""
    result = [NAN] * len(s)
    for in_group in member.values():
        rows = [row for row in range(len(s)) if in_group[row]]
        grid = [float(s[row]) for row in rows]
        curve = nadaraya_watson(y, s, cluster, in_group, grid, *options)
        for row, value in zip(rows, curve, strict=True):
            result[row] = value
    return result


def mean_shifts(shifts, member, w):
    """Mean of the shifts over the rows of each group: {group: value}."""
    w = [1] * len(shifts) if w is None else w
    result = {}
    for group, in_group in member.items():
        rows = [row for row in range(len(shifts)) if in_group[row] and w[row] > 0]
        total = math.fsum(w[row] for row in rows)
        moved = math.fsum(w[row] * shifts[row] for row in rows)
        result[group] = moved / total if rows else NAN
    return result


def positive_rate_shift(s, star, member, threshold, w=None):
    """Mean over the group's rows of 1(S* > t) - 1(S > t); the definition of 7.2."""
    shifts = [(b > threshold) - (a > threshold) for a, b in zip(s, star, strict=True)]
    return mean_shifts(shifts, member, w)


def ranks_from_top(s, q, lowest=math.inf):
    """Rank in the query, 1 the highest score, at most the lowest; of ties the mean."""
    result = [NAN] * len(s)
    for rows in rows_by_query(q).values():
        for row, ranks in ranks_of_ties(s, rows).items():
            below = [min(1 + rank, lowest) for rank in range(ranks[0], ranks[-1] + 1)]
            result[row] = math.fsum(below) / len(below)
    return result


def rank_shift(s, star, q, member, w=None, k=math.inf):
    """Mean over the group's rows of R(S) - R(S*); positive: better when calibrated.

    Ranks beyond the first k are k + 1.
    """
    before, after = (ranks_from_top(scores, q, k + 1) for scores in (s, star))
    shifts = [a - b for a, b in zip(before, after, strict=True)]
    return mean_shifts(shifts, member, w)
