"""Bandwidths: a rule, or cross-validation that leaves out whole clusters; grids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from .._inputs.groups import Groups, starts_of_runs
from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array, check_choice, check_number, weighted_quantile
from ._kernels import Kernel, kernel_sums, kernel_values, product_weights

RULES = ("rule_of_thumb", "undersmooth", "cv")
# Candidates of the cross-validation, relative to the rule of thumb.
_MULTIPLES = 2.0 ** np.arange(-4, 3.25, 0.25)
_NORMAL_IQR = 1.349
# Relative to all clusters, a mass that rounding may leave when a cluster is left out.
_NOTHING = 1e-6
_PADDED = 64
_PILOT_DEGREE, _ROWS = 3, 10
# Fewer clusters, of each group near a point, cannot tell.
FEWEST = 5
_N_POINTS = 50
# A bandwidth relative to the rule's, and to the smallest gap of few distinct scores.
_WIDER, _UNSMOOTHED = 1.35, 0.1
# The value at a threshold is that of a quadratic, which takes a wider bandwidth than
# the line for which it is chosen: a gap that was found in 39% is found in 54% of data
# sets, and curves that cross at the threshold are rejected in 4% to 6% (4% to 5%).
_OF_A_QUADRATIC = 1.5
#: The square of a wider one overflows.
_WIDEST = 1e100


def check_bandwidth(bandwidth: Any) -> None:
    """Raise a ValueError unless the bandwidth is a rule or a positive number."""
    if isinstance(bandwidth, str):
        check_choice(bandwidth, "bandwidth", RULES)
    else:
        check_number(bandwidth, "bandwidth", 0, _WIDEST, inclusive=(False, True))


def enough(effective: Array) -> Array:
    """Return a mask of the values that rest on enough effective clusters.

    Rounding decides nothing: the same clusters may be added up in another order.
    """
    return np.asarray(effective > FEWEST * (1 - 1e-9))


def robust_scale(x: Array, weight: Array) -> float:
    """Return the standard deviation, or the scaled interquartile range if smaller.

    The range is divided by 1.349, which makes it the standard deviation of a normal
    distribution; where it is 0, because more than half of the values are equal, the
    standard deviation is taken.

    Parameters
    ----------
    x, weight : ndarray of shape (n,)

    Returns
    -------
    float
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.average(x, weights=weight)
        deviation = float(np.sqrt(np.average((x - mean) ** 2, weights=weight)))
        low, high = weighted_quantile(x, (0.25, 0.75), weight).tolist()
    if x.min() == x.max():
        return 0.0
    spread = (high - low) / _NORMAL_IQR
    return min(deviation, spread) if spread > 0 else deviation


def choose_bandwidth(rule: Any, sample: Sample, kernel: Kernel) -> float:
    """Return the bandwidth that the rule gives for the sample.

    Parameters
    ----------
    rule : {"rule_of_thumb", "undersmooth", "cv"} or float
        A number is returned as it is.
    sample : Sample
    kernel : Kernel

    Returns
    -------
    float
        0 if all scores are equal.
    """
    if not isinstance(rule, str):
        return float(rule)
    if sample.x.min() == sample.x.max():
        return 0.0
    return float(rule_bandwidths(rule, sample.x[:, None], sample, kernel)[0])


def rule_bandwidths(rule: str, X: Array, sample: Sample, kernel: Kernel) -> Array:
    """Return a bandwidth for each column by a rule, 1 for a column without spread.

    ``M^(-1 / (4 + d))`` times the robust scale of the column, ``M^(-1 / (3 + d))`` to
    undersmooth; "cv" takes the multiple of it that predicts clusters best.
    """
    power = (3 if rule == "undersmooth" else 4) + X.shape[1]
    factor = kernel.relative_width * sample.n_active ** (-1 / power)
    bandwidths = np.array([robust_scale(x, sample.share) * factor for x in X.T])
    bandwidths[bandwidths == 0] = 1.0
    if rule == "cv" and np.isfinite(bandwidths).all():
        candidates = [bandwidths * multiple for multiple in _MULTIPLES]
        errors = [leave_cluster_out_error(c, X, sample, kernel) for c in candidates]
        bandwidths = candidates[int(np.argmin(errors))]
    return bandwidths


def leave_cluster_out_error(
    bandwidths: Array, X: Array, sample: Sample, kernel: Kernel
) -> float:
    """Return the mean squared error of predicting each cluster from all others.

    Where the others have no weight, their mean is the prediction.

    Parameters
    ----------
    bandwidths : ndarray of shape (d,)
    X : ndarray of shape (n, d)
        The features of the rows of the sample, whose scores are the first.
    sample : Sample
    kernel : Kernel

    Returns
    -------
    float
        Weighted as the rows are in the curve.
    """
    columns = sample.columns(sample.y)
    left_out = np.stack([sample.left_out * sample.y, sample.left_out])
    if bandwidths.size == 1:
        x, bandwidth = sample.x, float(bandwidths[0])
        sums = kernel_sums(x, x, columns, bandwidth, kernel)
        own_sums = _own_sums(sample, left_out, bandwidth, kernel)
    else:
        sums, own_sums = np.empty((2, *columns.shape))
        for some, weights in product_weights(X, X, bandwidths, kernel):
            same = sample.cluster[some, None] == sample.cluster
            own_sums[:, some] = left_out @ (weights * same).T
            sums[:, some] = columns @ weights.T
    total, mass = sums - own_sums
    mean = np.full(mass.size, np.average(sample.y, weights=sample.share))
    np.divide(total, mass, out=mean, where=mass > _NOTHING * sums[1])
    return float(np.average((sample.y - mean) ** 2, weights=sample.share))


def _own_sums(
    sample: Sample, columns: Array, bandwidth: float, kernel: Kernel
) -> Array:
    """Return the kernel sums of columns over the rows of the row's own cluster."""
    x, sums = sample.x, np.empty(columns.shape)
    starts = starts_of_runs(sample.cluster)
    lengths = np.diff(starts, append=x.size)
    for length in np.unique(lengths):
        first = starts[lengths == length]
        if length > _PADDED:
            for start in first:
                rows = slice(start, start + length)
                sums[:, rows] = kernel_sums(
                    x[rows], x[rows], columns[:, rows], bandwidth, kernel
                )
            continue
        step = max(1, (1 << 20) // int(length) ** 2)
        for block in range(0, first.size, step):
            rows = first[block : block + step, None] + np.arange(length)
            points = x[rows]
            weights = kernel_values(
                points[:, None, :], points[:, :, None], bandwidth, kernel
            )
            sums[:, rows] = np.einsum("cij,kcj->kci", weights, columns[:, rows])
    return sums


def default_grid(rows: ScoreRows) -> Array:
    """Return quantiles of the scores that lie in the range of at least two groups.

    They are 50, or all such scores if these are no more; if there is none, all scores
    count.
    """
    inside = (rows.x[m] for m in _masks(rows.groups, rests=rows.groups.overlapping))
    ranges = [(x.min(), x.max()) for x in inside if x.size]
    lows, highs = sorted(r[0] for r in ranges), sorted(r[1] for r in ranges)
    low, high = lows[min(1, len(lows) - 1)], highs[-2:][0]
    common = (rows.x >= low) & (rows.x <= high)
    common |= not common.any()
    x = rows.x[common]
    if (distinct := np.unique(x)).size <= _N_POINTS:
        return distinct
    weight = None if rows.weight is None else rows.weight[common]
    levels = (np.arange(_N_POINTS) + 0.5) / _N_POINTS
    return np.unique(weighted_quantile(x, levels, weight))


def _masks(groups: Groups, *, rests: bool) -> Iterator[Array]:
    """Yield the mask of the rows of each group, then of each rest, if wanted."""
    for outside in (False, True)[: 1 + rests]:
        for group in range(len(groups)):
            yield groups.mask(group) != outside


def common_bandwidth(rule: Any, sample: Sample, kernel: Kernel) -> float:
    """Return the bandwidth of all groups: a number, or a rule on all rows."""
    check_bandwidth(rule)
    return _checked_bandwidth(choose_bandwidth(rule, sample, kernel), sample.x, rule)


def _checked_bandwidth(chosen: float, x: Array, rule: Any) -> float:
    if not 0 < chosen < np.inf:
        raise ValueError(
            f"y_score must have a finite spread for bandwidth={rule!r}; the scores it "
            f"is chosen from differ by at most {float(x.max()) - float(x.min()):g}."
        )
    return chosen


def contrast_bandwidth(
    rows: ScoreRows,
    cluster_weight: str,
    rule: Any,
    kernel: Kernel,
    pairs: Array,
    *,
    rests: bool,
) -> float:
    """Return the bandwidth at which the curves of groups are compared.

    A rule is applied to each group. A contrast takes the larger bandwidth of its two
    groups and makes it a third wider, since slope and curvature are estimated from
    both; several contrasts take the median. Scores with few distinct values, and enough
    clusters per value on average, are not smoothed at all.
    """
    check_bandwidth(rule)
    if not isinstance(rule, str):
        return float(rule)
    distinct = np.unique(rows.x)
    if 1 < distinct.size <= min(_N_POINTS, rows.n_clusters / FEWEST):
        return _UNSMOOTHED * float(np.diff(distinct).min())
    masks = _masks(rows.groups, rests=rests)
    of_curves = [
        choose_bandwidth(rule, rows.take(chosen).pooled(cluster_weight), kernel)
        if chosen.size
        else 0.0
        for chosen in map(np.flatnonzero, masks)
    ]
    return _checked_bandwidth(_WIDER * _of_contrasts(of_curves, pairs), rows.x, rule)


def boundary_bandwidth(
    rows: ScoreRows, sample: Sample, threshold: float, kernel: Kernel, pairs: Array
) -> float:
    """Return the bandwidth of a line at the threshold, from the rows above it.

    It is the larger one of the two groups, and the median over several contrasts, and
    half as much again, since the line is corrected for its curvature.
    """
    of_groups = [
        _mse_bandwidth(sample.take(members), threshold, kernel)
        for members in sample.rows_of_groups(len(rows.groups))
    ]
    chosen = _OF_A_QUADRATIC * _of_contrasts(of_groups, pairs)
    return _checked_bandwidth(chosen, rows.x, "mse")


def _of_contrasts(widths: list[float], pairs: Array) -> float:
    """Return the median over contrasts of the larger bandwidth of two groups."""
    return float(np.median([max(widths[a], widths[b]) for a, b in pairs] or widths))


def _mse_bandwidth(sample: Sample, threshold: float, kernel: Kernel) -> float:
    """Return the bandwidth of the least mean squared error of a line at its end.

    ``h⁵ = R σ² / (n p μ² f''²)``, with the variance σ² and the mean square of the
    second derivative f'' of a cubic through all rows (Fan and Gijbels 1996, §4.2); R
    and μ are of the kernel of a line at its end, and p is the density at the threshold.
    At least so that the value rests on ten effective rows, and at most all rows.
    """
    x, weight = sample.x - threshold, sample.share / sample.unit
    distinct = np.unique(x).size
    if distinct < 2:
        return 0.0
    width = float(x.max())
    degree = min(_PILOT_DEGREE, distinct - 1)
    # With `full` there is no warning of scores that are nearly equal.
    cubic, _ = Polynomial.fit(x, sample.y, degree, w=np.sqrt(weight), full=True)
    variance = float(np.average((sample.y - cubic(x)) ** 2, weights=weight))
    curvature = float(np.average(cubic.deriv(2)(x) ** 2, weights=weight))
    # From the nearest part of the rows, at least a tenth.
    nearest = float(weighted_quantile(x, 0.1, weight))
    near = min(width, nearest + robust_scale(x, weight) / 4)
    density = float(weight[x <= near].sum() / weight.sum()) / near
    roughness, moment = _line_at_its_end(kernel)
    bottom = sample.n_active * density * moment**2 * curvature
    if not bottom > 0:
        return width
    bandwidth = max(float(roughness * variance / bottom) ** 0.2, width / 1000)
    while bandwidth < width and _effective_rows(x, weight, bandwidth, kernel) < _ROWS:
        bandwidth *= 1.1
    return min(width, bandwidth)


def _effective_rows(x: Array, weight: Array, bandwidth: float, kernel: Kernel) -> float:
    """Return ``1 / Σ l²`` for the weights l of a quadratic's value at 0.

    It is 0 where the scores near 0 are too few to tell that value.
    """
    design = np.vander(x / bandwidth, 3, increasing=True)
    near = weight * kernel(design[:, 1])
    if not near.any():
        return 0.0
    near /= near.max()  # in any unit, so not in one that is too small to invert
    inverse = np.linalg.pinv((design * near[:, None]).T @ design, hermitian=True)
    parts = near * (design @ inverse[0])
    told = np.isclose(parts.sum(), 1.0)
    return 1 / float(np.sum(parts**2 / weight)) if told else 0.0


@cache
def _line_at_its_end(kernel: Kernel) -> tuple[float, float]:
    """Return ``∫ K*²`` and ``∫ u² K*`` of the kernel K* of a line at its end."""
    u = np.linspace(0, min(kernel.reach, 10.0), 20_001)
    values = kernel(u)
    s0, s1, s2 = (np.trapezoid(values * u**k, u) for k in range(3))
    line = (s2 - s1 * u) * values / (s2 * s0 - s1**2)
    return float(np.trapezoid(line**2, u)), float(np.trapezoid(line * u**2, u))
