"""The wild cluster bootstrap, for tests where a few clusters hold most of the data.

Student's t with the few degrees of freedom of such clusters is safe, but finds next to
nothing. The wild bootstrap draws at random the sign s_q of what each cluster adds to
the distance δ of the estimate from the null value, with the null imposed:
``s_q (l_q + δ h_q)``, where l_q is the influence of cluster q on the estimate and h_q
its share of the data. The distance of a draw is ``T = Σ s_q (l_q + δ h_q)``, and its
error the root of ``Σ r_q² / (1 - h_q)²``, where ``r_q = s_q (l_q + δ h_q) - T h_q``
("31" of MacKinnon, Nielsen and Webb 2023: residuals are blown up by the leverage in the
data and in the draws). Both are quadratic in δ, so that one set of draws gives the
p-values of all null values, and by inversion the interval.

Clusters of a small share, which `compact` folds, add a normal number of the same
moments. The random sign of a cluster is chosen by its rank in share and influence: it
does not depend on labels, on the order of clusters or on the number of parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .._inputs.validation import Array
from .finalize import Finalize, last_column, needs_of
from .resampled import Origin
from .scales import Ends, PlainScale, quantile_of, tail_of
from .sums import LARGE_SHARE, ClusterSums

# With fewer clusters there are few different draws, and the test is Student's t.
_FEWEST = 8
# Signs are drawn where the degrees of freedom are below this share of those of equal
# clusters, and below this number: elsewhere Student's t says the same.
_UNEQUAL, _MOST_DF = 1 / 3, 30
_DRAWS, _SEED = 1999, 20231
# Estimates whose clusters are worked on at once.
_TOGETHER = 64
# Distances from the null value, in standard errors, between which p is interpolated.
_REACHES = np.concatenate([[0.0], np.geomspace(0.25, 100.0, 32)])
# Shares and influences of clusters that agree to these digits are equal; what is
# smaller than the others, relative and absolute, is rounding.
_DIGITS, _ROUNDING, _TINY = 9, 1e-9, 1e-300


@dataclass(frozen=True, eq=False)
class WildScale(PlainScale):
    """Estimates tested by the wild bootstrap if chosen, and else by Student's t.

    Attributes
    ----------
    estimate, standard_error : ndarray of shape (m,)
    scale : PlainScale
        The scale for Student's t, of all estimates.
    chosen : ndarray of shape (c,)
        Numbers of the estimates whose signs are drawn.
    unit : ndarray of shape (c,)
        Their standard errors on the axis of the scale.
    log_pvalue : ndarray of shape (2, c, len(_REACHES))
        Logarithms of p-values by distance, above and below the null value.
    """

    scale: PlainScale
    chosen: Array
    unit: Array
    log_pvalue: Array

    def ends(self, reach: Array, df: Array) -> Ends:
        """Return the ends of the null values that the test does not reject.

        The reach is a quantile of Student's t, whose tail is the level of the test.
        """
        low, high = map(np.array, self.scale.ends(reach, df))
        middle = self.scale.axis.forward(self.estimate[self.chosen])
        level = np.log(2 * np.broadcast_to(tail_of(reach, df), low.shape)[self.chosen])
        for end, side, sign in ((low, 0, -1.0), (high, 1, 1.0)):
            # The distance beyond which p is below the level.
            curves = zip(-self.log_pvalue[side], -level, strict=True)
            far = [np.interp(p, curve, _REACHES, right=np.inf) for curve, p in curves]
            with np.errstate(over="ignore"):
                value = self.scale.axis.back(middle + sign * self.unit * far)
            end[self.chosen] = np.clip(value, *self.scale.bounds)
        return low, high

    def test(self, null_value: float | Array, df: Array) -> tuple[Array, Array]:
        """Return Student's t of the same p-values, and the p-values."""
        statistic = np.array(self.scale.test(null_value, df)[0])
        null = np.broadcast_to(null_value, statistic.shape)[self.chosen]
        axis, estimate = self.scale.axis, self.estimate[self.chosen]
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (axis.forward(estimate) - axis.forward(null)) / self.unit
        for i, place in enumerate(self.chosen):
            if np.isfinite(reach[i]):
                curve = self.log_pvalue[0 if reach[i] > 0 else 1, i]
                p = np.exp(np.interp(abs(reach[i]), _REACHES, curve))
                statistic[place] = np.copysign(quantile_of(p / 2, df[place]), reach[i])
        return statistic, 2 * tail_of(statistic, df)


def wild_scale(scale: PlainScale, df: Array, origin: Origin) -> PlainScale:
    """Return a scale whose tests are wild where clusters are few and unequal."""
    sums, finalize, groups = origin.sums, origin.finalize, origin.groups
    # The errors of other sums do not follow from the influences of their rows.
    if type(sums) is not ClusterSums or sums.kind != "cluster":
        return scale
    support = sums.supports[needs_of(finalize)[0]]
    # Shares of counted rows are not the leverages of a metric that a user made.
    if support is last_column:
        return scale
    active = sums.active(finalize)[:, 0]
    # Of single rows with weights, those of one outcome may be light by chance, and
    # their signs then show too little.
    several = (sums.unweighted_support(support) > active[0])[groups].any(axis=1)
    number = active.min(axis=0)[groups].min(axis=1)
    with np.errstate(invalid="ignore"):
        chosen = np.flatnonzero(
            (df < np.minimum(_UNEQUAL * (number - 1), _MOST_DF))
            & (number >= _FEWEST)
            & (scale.standard_error > 0)
            & several
            & scale.regular
        )
    if not chosen.size:
        return scale
    weight = origin.slopes_of(sums.estimate(finalize)[groups[chosen]])
    weight = weight * scale.axis.slope(scale.estimate[chosen])[:, None]
    unit, curves = np.empty(chosen.size), np.empty((2, chosen.size, _REACHES.size))
    for start in range(0, chosen.size, _TOGETHER):
        some = slice(start, start + _TOGETHER)
        rows = _clusters(sums, finalize, groups[chosen[some]], weight[some])
        for i, moments in enumerate(zip(*rows, strict=True), start):
            unit[i], curves[:, i] = _pvalues(*moments)
    errors = scale.estimate, scale.standard_error
    return WildScale(*errors, scale, chosen, unit, np.log(curves))


def _clusters(
    sums: ClusterSums, finalize: Finalize, groups: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """Return influences and shares of clusters, (m, Q), and moments of folded ones.

    An estimate is a weighted sum over groups, given by number: `groups` and `weight`
    have shape (m, s). The share of a cluster is the mean over the groups and over the
    supports that the metric needs; its influence is the change without it, times one
    minus its share. Moments, (m, 3), are the sums of squares of influences, of their
    products with shares, and of squares of shares.
    """
    used, place = np.unique(groups, return_inverse=True)
    place, needs = place.reshape(groups.shape), needs_of(finalize)
    some = sums.of_groups(used).compact()
    jackknife = np.concatenate([rows.dense() for rows in some.influence(finalize)])
    number = some.active(finalize)[:, 0].max(axis=0)
    jackknife *= np.sqrt(number / np.maximum(number - 1, 1))
    share, linear = np.zeros(jackknife.shape), some.slopes(finalize)
    slopes = np.stack([linear, np.zeros(linear.shape)])
    for k in needs:
        support = some.supports[k]
        total = len(needs) * some.sizes_of_support(k).total[0]
        share += some.exact_rows.support_by_stratum(support)[0].dense() / total
        slopes[1] += some.slopes(support) / total[:, None]
    shares = share[:, place].mean(axis=2)
    influence = np.einsum("qms,ms->qm", jackknife[:, place], weight) * (1 - shares)
    moments = np.zeros((len(groups), 3))
    if some.remainder is not None:
        factors = weight, np.full(weight.shape, 1 / weight.shape[1])
        for i, (a, b) in enumerate(((0, 0), (0, 1), (1, 1))):
            for s, t in np.ndindex(weight.shape[1], weight.shape[1]):
                both = slopes[a], slopes[b], (place[:, s], place[:, t])
                products = some.remainder.scatter.products(*both)
                moments[:, i] += factors[a][:, s] * factors[b][:, t] * products
    return influence.T, shares.T, moments


def _pvalues(influence: Array, share: Array, moments: Array) -> tuple[float, Array]:
    """Return the standard error, and p-values by distance, above and below."""
    large = share > LARGE_SHARE
    x, h = influence[~large], share[~large]
    ll, lh, hh = moments + (x @ x, x @ h, h @ h)
    x, h = influence[large], share[large]
    # Clusters that are alike in the keys are exchangeable. The sign of the skewness
    # makes the draws those of the opposite estimate too.
    skew = -1.0 if (x**3).sum() < 0 else 1.0
    keys = np.stack([skew * x, np.abs(x), h])
    scale = np.abs(keys).max(axis=1, initial=_TINY, keepdims=True)
    order = np.lexsort(np.round(keys / scale, _DIGITS))[::-1]
    x, h = x[order], h[order]
    lever = 1 / (1 - h) ** 2
    signs, normal = _draws(x.size)
    # T is a + δ b, of which the folded clusters add two correlated normal numbers.
    columns = np.stack([x, h, lever * x * h, lever * h * h], axis=1)
    a, b, c, e = (signs @ columns).T
    root, slope = skew * np.sqrt(ll), lh / max(ll, _TINY)
    a, b = a + root * normal[0], b + slope * root * normal[0]
    b += np.sqrt(max(hh - slope * lh, 0.0)) * normal[1]
    of_null = lever @ (x * x) + ll, lever @ (x * h) + lh, lever @ (h * h) + hh
    unit, pvalue = float(np.sqrt(of_null[0])), np.empty((2, _REACHES.size))
    for side, sign in enumerate((1.0, -1.0)):
        distance = sign * unit * _REACHES[:, None]
        t = a + distance * b
        square = of_null[0] + distance * (2 * of_null[1] + distance * of_null[2])
        square = square - 2 * t * (c + distance * e) + t * t * of_null[2]
        # A draw with all signs equal is the estimate itself, up to rounding.
        least = (1 - _ROUNDING) * (distance / unit) ** 2
        as_far = t * t >= least * np.maximum(square, _ROUNDING * of_null[0])
        pvalue[side] = (1 + as_far.sum(axis=1)) / (1 + _DRAWS)
    # No value further off has a larger p, so that intervals have no holes.
    return unit, np.maximum.accumulate(pvalue[:, ::-1], axis=1)[:, ::-1]


@cache
def _draws(n_rows: int) -> tuple[Array, Array]:
    """Return signs of rows by rank, shape (B, n_rows), and normal numbers (2, B)."""
    rng = np.random.default_rng(_SEED)
    normal = rng.standard_normal((2, _DRAWS))
    return 2.0 * rng.integers(0, 2, (n_rows, _DRAWS), dtype=np.int8).T - 1.0, normal
