"""Predictive parity, DiCiccio et al. 2023: curves, calibration errors, impact."""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.integrate import quad

from tests.reference._common import NAN, ranks_of_ties, rows_by_query

# Kernels


def gaussian(x):
    """Standard normal density; section 3."""
    return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def epanechnikov(x):
    return 0.75 * (1 - x**2) if abs(x) < 1 else 0.0


def tricube(x):
    return 70 / 81 * (1 - abs(x) ** 3) ** 3 if abs(x) < 1 else 0.0


def uniform(x):
    """1{|x| < 1} / 2, the histogram kernel of appendix C.1."""
    return 0.5 if abs(x) < 1 else 0.0


def gaussian4(x):
    """Fourth order: (3 - x^2) / 2 times the normal density."""
    return (3 - x**2) / 2 * gaussian(x)


def flat_top(x, b=0.25, c=0.05):
    """Infinite order and tails faster than any power (B2); McMurry and Politis.

    Its Fourier transform is 1 up to c, 0 from 1 and infinitely differentiable:
    exp(-b exp(-b / (t - c)^2) / (t - 1)^2) between. Inverted by quadrature.
    """

    def transform(t):
        if t <= c:
            return 1.0
        if t >= 1:
            return 0.0
        return math.exp(-b * math.exp(-b / (t - c) ** 2) / (t - 1) ** 2)

    def integrand(t):
        return transform(t) * math.cos(t * x) / math.pi

    return quad(integrand, 0, c)[0] + quad(integrand, c, 1, limit=200)[0]


KERNELS = {
    "gaussian": gaussian,
    "epanechnikov": epanechnikov,
    "tricube": tricube,
    "uniform": uniform,
    "gaussian4": gaussian4,
    "flat_top": flat_top,
}


def _kernel(kernel):
    return kernel if callable(kernel) else KERNELS[kernel]


# The curve of a group, section 3


def row_weights(cluster, in_group, cluster_weight="cluster", w=None):
    """Weight of every row in the curve of the group; 0 outside.

    "cluster": w_i over the number of the cluster's rows of the group, so that every
    cluster weighs the mean of its rows' weights; "row" (appendix D): w_i.
    """
    w = [1] * len(cluster) if w is None else w
    total = {}
    for row, label in enumerate(cluster):
        if in_group[row] and w[row] > 0:
            total[label] = total.get(label, 0) + 1
    result = []
    for row, label in enumerate(cluster):
        if not in_group[row] or w[row] == 0:
            result.append(0.0)
        elif cluster_weight == "cluster":
            result.append(w[row] / total[label])
        elif cluster_weight == "row":
            result.append(float(w[row]))
        else:
            raise ValueError(cluster_weight)
    return result


def cluster_sums(y, s, cluster, weights, point, h, kernel="gaussian"):
    """{cluster: (A_m, B_m)} at a point, all clusters of the data."""
    k = _kernel(kernel)
    sums = dict.fromkeys(cluster, (0.0, 0.0))
    for row, label in enumerate(cluster):
        if weights[row] > 0:
            term = weights[row] * k((float(s[row]) - point) / h)
            a, b = sums[label]
            sums[label] = a + term * float(y[row]), b + term
    return sums


def nadaraya_watson(
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
    """Curve of a group: sum of A_m over sum of B_m on the grid; nan where B is 0."""
    weights = row_weights(cluster, in_group, cluster_weight, w)
    curve = []
    for point in grid:
        sums = cluster_sums(y, s, cluster, weights, point, h, kernel).values()
        a, b = math.fsum(a for a, _ in sums), math.fsum(b for _, b in sums)
        curve.append(a / b if b != 0 else NAN)
    return curve


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


def influence(
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
    """{cluster: [psi_m on the grid]}, psi_m = (A_m - f B_m) / sum of B.

    Of every cluster with rows of the group; rows of weight 0 are absent.
    """
    weights = row_weights(cluster, in_group, cluster_weight, w)
    there = [
        m
        for row, m in enumerate(cluster)
        if in_group[row] and (w is None or w[row] > 0)
    ]
    result = {label: [] for label in there}
    for point in grid:
        sums = cluster_sums(y, s, cluster, weights, point, h, kernel)
        total = math.fsum(b for _, b in sums.values())
        curve = NAN
        if total != 0:
            curve = math.fsum(a for a, _ in sums.values()) / total
        for label, values in result.items():
            a, b = sums[label]
            values.append((a - curve * b) / total if total != 0 else NAN)
    return result


def covariance(first, second):
    """F * sum_m psi_m(t) psi_m(u), t of the first group, u of the second.

    F is the root of the product of both M / (M - 1), for the M clusters of a group.
    """
    points = range(len(next(iter(first.values()))))
    if min(len(first), len(second)) < 2:
        return [[NAN for _ in points] for _ in points]
    factor = math.sqrt(len(first) / (len(first) - 1) * len(second) / (len(second) - 1))
    both = [m for m in first if m in second]
    return [
        [factor * math.fsum(first[m][t] * second[m][u] for m in both) for u in points]
        for t in points
    ]


def contrast(
    y,
    s,
    cluster,
    in_a,
    in_b,
    grid,
    h,
    kernel="gaussian",
    cluster_weight="cluster",
    w=None,
):
    """f_a - f_b on the grid and its covariance, from the difference of the psi."""
    options = (grid, h, kernel, cluster_weight, w)
    curves = [nadaraya_watson(y, s, cluster, m, *options) for m in (in_a, in_b)]
    psi = [influence(y, s, cluster, m, *options) for m in (in_a, in_b)]
    difference = [a - b for a, b in zip(*curves, strict=True)]
    points = range(len(difference))
    parts = [(1 if a is b else -1, covariance(a, b)) for a in psi for b in psi]
    of_difference = [
        [math.fsum(sign * matrix[t][u] for sign, matrix in parts) for u in points]
        for t in points
    ]
    return difference, of_difference


def leave_cluster_out_error(
    y, s, cluster, in_group, h, kernel="gaussian", cluster_weight="cluster", w=None
):
    """Mean squared error of rows by the curve of the other clusters.

    Rows weigh as in the curve; a row none of whose neighbours is of another cluster
    makes it infinite.
    """
    weights = row_weights(cluster, in_group, cluster_weight, w)
    terms = []
    for row, label in enumerate(cluster):
        if weights[row] == 0:
            continue
        rest = [
            inside and c != label for inside, c in zip(in_group, cluster, strict=True)
        ]
        options = ([float(s[row])], h, kernel, cluster_weight, w)
        (value,) = nadaraya_watson(y, s, cluster, rest, *options)
        if math.isnan(value):
            return float("inf")
        terms.append(weights[row] * (float(y[row]) - value) ** 2)
    return math.fsum(terms) / math.fsum(weights)


# Calibration errors, section 7.1 and appendix A


def smooth_error(
    y,
    s,
    cluster,
    in_group,
    h,
    kernel="gaussian",
    cluster_weight="cluster",
    w=None,
    mean=None,
):
    """Root of the mean of (s - f(s))^2 over the rows of the group; appendix A.1.

    ``mean``: the rows' weights in the mean, those of the curve when None.
    """
    curve_at = nadaraya_watson(
        *(y, s, cluster, in_group, [float(v) for v in s], h, kernel),
        *(cluster_weight, w),
    )
    weights = row_weights(cluster, in_group, mean or cluster_weight, w)
    terms = [
        weights[row] * (float(s[row]) - curve_at[row]) ** 2
        for row in range(len(s))
        if weights[row] > 0
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


def binned_error(y, s, n_bins=15, p=2):
    """(sum_k n_k / n |mean score - mean outcome|^p)^(1 / p), bins of equal mass."""
    if len(s) == 0:
        return NAN
    terms = [
        n * float(abs(score - outcome)) ** p
        for n, outcome, score in bins_of_equal_mass(y, s, n_bins)
    ]
    return (math.fsum(terms) / len(s)) ** (1 / p)


def label_binned_error(y, s, n_bins=15):
    """Root of (1 / n) sum_k sum_i (s_i - mean outcome of the bin)² (appendix A)."""
    ranked = sorted(float(score) for score in s)
    first, total = 0, 0.0
    for n, outcome, _ in bins_of_equal_mass(y, s, n_bins):
        for score in ranked[first : first + n]:
            total += (score - float(outcome)) ** 2
        first += n
    return math.sqrt(total / len(s))


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


def sweep_error(y, s, p=2):
    """`binned_error` with the bins of the sweep (MSCE)."""
    return binned_error(y, s, sweep_bins(y, s), p) if len(s) else NAN


# Impact, section 7.2


def calibrated(
    y,
    s,
    cluster,
    member,
    h,
    kernel="gaussian",
    cluster_weight="cluster",
    w=None,
):
    """S*: every row's score through the curve of its group, exactly at the score."""
    result = [NAN] * len(s)
    for in_group in member.values():
        rows = [row for row in range(len(s)) if in_group[row]]
        curve = nadaraya_watson(
            *(y, s, cluster, in_group, [float(s[row]) for row in rows], h),
            *(kernel, cluster_weight, w),
        )
        for row, value in zip(rows, curve, strict=True):
            if not math.isnan(result[row]):
                raise ValueError("groups overlap")
            result[row] = value
    return result


def positive_rate_shift(s, star, member, threshold, w=None):
    """Mean over the group's rows of 1(S* > t) - 1(S > t); the definition of 7.2."""
    w = [1] * len(s) if w is None else w
    result = {}
    for group, in_group in member.items():
        rows = [row for row in range(len(s)) if in_group[row] and w[row] > 0]
        total = math.fsum(w[row] for row in rows)
        shifts = [
            w[row] * ((star[row] > threshold) - (s[row] > threshold)) for row in rows
        ]
        result[group] = math.fsum(shifts) / total if rows else NAN
    return result


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
    w = [1] * len(s) if w is None else w
    before, after = ranks_from_top(s, q, k + 1), ranks_from_top(star, q, k + 1)
    result = {}
    for group, in_group in member.items():
        rows = [row for row in range(len(s)) if in_group[row] and w[row] > 0]
        total = math.fsum(w[row] for row in rows)
        shifts = [w[row] * (before[row] - after[row]) for row in rows]
        result[group] = math.fsum(shifts) / total if rows else NAN
    return result
