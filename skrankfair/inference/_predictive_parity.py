"""Do equal scores mean equal outcomes in all groups? Curves compared on a grid."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.arrays import cached_read_only
from .._estimates.scales import ConfidenceInterval, welch_df
from .._estimates.simultaneous import MOST_TOGETHER, Simultaneous
from .._inputs.columns import given_columns
from .._inputs.score_rows import ScoreRows, score_rows
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_given,
    check_magnitude,
    warn_user,
)
from ..smoothing._bandwidth import (
    FEWEST,
    common_bandwidth,
    contrast_bandwidth,
    default_grid,
    enough,
)
from ..smoothing._curve_pairs import CurvePairs
from ._contrast_test import (
    ContrastTest,
    Values,
    compared_pairs,
    kernel_of_degree,
    largest,
    parameters_of_test,
)
from ._score_order import N_BINS, ScoreOrderTest, order_of_scores

if TYPE_CHECKING:
    import pandas as pd

    from ..display._calibration import PredictiveParityDisplay


@dataclass(frozen=True, eq=False)
class PredictiveParityTest(ContrastTest):
    """Curves of mean outcome by score, by group, and where they differ.

    Made by `predictive_parity_test`. Results of parts of the data with the same grid
    and bandwidth add up: ``a + b`` is the result on the union of their clusters.

    Attributes
    ----------
    sums : CurvePairs
        Kernel sums over clusters, with their cross products.
    bandwidth : float
    parameters : dict
        The options of the test.
    order : ScoreOrderTest or None
        The test of the order of the groups, where no two of them have common scores;
        None where the curves can be compared.
    """

    order: ScoreOrderTest | None = None

    @property
    def grid(self) -> Array:
        """The scores at which the curves are compared, shape (J,)."""
        return self.sums.grid

    @property
    def bars(self) -> Array:
        """Rows by group and score, in 40 equal parts of the grid, shape (G, 40)."""
        return self.sums.bars

    @property
    def curves(self) -> Array:
        """Mean outcome by group and score, shape (G, J); NaN where undefined."""
        return self._curves.estimate

    @property
    def standard_error(self) -> Array:
        """Standard errors of the curves, shape (G, J)."""
        return self._curves.standard_error

    @cached_read_only
    def _curves(self) -> Values:
        """The curves of the groups."""
        sums, size = self.sums, len(self.groups)
        fits, known = sums.fits, sums.defined[:size]
        variance = np.stack([sums.fit_covariance(g, g) for g in range(size)])
        estimate, effective = fits.estimate[:size], fits.effective[:size]
        if self.sums.degree:
            estimate, known = np.clip(estimate, *self.range), known & enough(effective)
        values = estimate, np.sqrt(np.maximum(variance, 0)), effective - 1
        return Values(*(np.where(known, v, np.nan) for v in values))

    @property
    def difference_standard_error(self) -> Array:
        """Standard errors of the differences, shape (C, J)."""
        return self._differences.standard_error

    @property
    def compared(self) -> Array:
        """Where both groups have enough data to be compared, shape (C, J), bool."""
        return ~np.isnan(self.difference_standard_error)

    @cached_read_only
    def effective_clusters(self) -> Array:
        """How many clusters each difference rests on, shape (C, J).

        That of the group with fewer, ``(Σ_m B_m)² / Σ_m B_m²`` for the kernel weights
        B of the clusters.
        """
        effective = np.where(self.sums.defined, self.sums.effective_clusters, 0.0)
        return effective[self._pairs].min(axis=1)

    @cached_read_only
    def _differences(self) -> Values:
        sums = self.sums
        first, second = self._pairs.T
        if not self.sums.degree:
            difference = sums.means[first] - sums.means[second]
            df = np.where(sums.defined, sums.effective_clusters - 1, np.nan)
            variances = sums.variance[first], sums.variance[second]
            df = welch_df(*variances, df[first], df[second])
            return Values(difference, sums.spread(self._pairs), df)
        fits, effective = sums.contrasts(self._pairs), self.effective_clusters
        known = sums.comparable(effective, fits.variance)
        known &= fits.overlap >= _LEAST_OVERLAP
        values = fits.difference, fits.standard_error, np.inf
        return Values(*(np.where(known, v, np.nan) for v in values))

    @cached_read_only
    def _tests(self) -> Simultaneous:
        """The tests of all differences together."""
        blocks, contrasts = self.sums.joint(self._pairs)
        spread = self.sums.spread(self._pairs)
        return self._together(self._differences, blocks, contrasts, spread)

    @cached_read_only
    def level_and_slope_pvalues(self) -> Array:
        """P-value of the level and slope of each contrast, not corrected, shape (C,).

        NaN where there are too few clusters, and for ``curve="nadaraya_watson"``.
        """
        return np.array(
            [self.sums.level_and_slope_pvalue(a, b) for a, b in self._pairs.tolist()]
        )

    @property
    def pvalue(self) -> float:
        """P-value of one curve in all groups, of two tests by Bonferroni's method.

        Twice the smaller of the smallest of `pvalues`, which are of the curves alone,
        and the smallest of `level_and_slope_pvalues`, times their number. Of groups
        without common scores that of `order`.
        """
        if self.order is not None:
            return self.order.pvalue
        of_curves, of_gaps = super().pvalue, self.level_and_slope_pvalues
        known = of_gaps[~np.isnan(of_gaps)]
        if not known.size:
            return of_curves
        smallest = np.minimum(of_curves, known.size * known.min())
        return float(np.minimum(1.0, 2 * smallest))  # NaN where no curve is compared

    @property
    def pointwise_pvalues(self) -> Array:
        """P-value of each difference on its own, not corrected, shape (C, J)."""
        return self._tests.pvalue.reshape(self.difference.shape)

    @property
    def largest_difference(self) -> float:
        """The largest ``|difference|`` on the grid, NaN without any."""
        return largest(np.abs(self.difference))

    @property
    def rejected(self) -> Array:
        """Where the curves differ at the confidence level, shape (C, J), bool."""
        return self.pvalues < 1 - self.parameters["confidence_level"]

    def band(
        self, confidence_level: float | None = None, kind: str = "simultaneous"
    ) -> ConfidenceInterval:
        """Return a band around each difference.

        Parameters
        ----------
        confidence_level : float or None, default=None
            Confidence level. None takes that of the test.
        kind : {"simultaneous", "pointwise"}, default="simultaneous"
            "simultaneous" bands hold at all points of all contrasts at once, by the
            simulated largest deviation (Bonferroni's for another `correction`).

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (C, J).

        Raises
        ------
        ValueError
            For a level outside (0, 1) or an unknown kind.
        """
        level, method = self._level_and_method(confidence_level, kind)
        return self._band(level, method)

    def curve_band(
        self, confidence_level: float | None = None, kind: str = "simultaneous"
    ) -> ConfidenceInterval:
        """Return a band around the curve of each group.

        Parameters
        ----------
        confidence_level : float or None, default=None
            Confidence level. None takes that of the test.
        kind : {"simultaneous", "pointwise"}, default="simultaneous"
            "simultaneous" bands hold at all points of the curve at once, for each
            group on its own.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (G, J).

        Raises
        ------
        ValueError
            For a level outside (0, 1) or an unknown kind.
        """
        level, method = self._level_and_method(confidence_level, kind)
        quantile = np.empty(self.curves.shape)
        points = np.arange(self.grid.size)
        alone = np.column_stack([points, np.full(points.size, -1)])
        for g, of_group in enumerate(zip(*self._curves, strict=True)):
            spread = np.sqrt(self.sums.variance[g])
            covariance = (self.sums.covariance(g, g),)
            curve = self._together(Values(*of_group), covariance, alone, spread)
            quantile[g] = curve.quantile(level, method)
        effective = self._curves.df + 1 if self.sums.degree else None
        return self._interval(self._curves, quantile, effective)

    def _level_and_method(self, level: float | None, kind: str) -> tuple[float, str]:
        check_choice(kind, "kind", ("simultaneous", "pointwise"))
        correction = self.parameters["correction"]
        return self._level(level), kind if kind == "pointwise" else correction

    def to_frame(self, confidence_level: float | None = None) -> pd.DataFrame:
        """Return one row per contrast and point.

        Parameters
        ----------
        confidence_level : float or None, default=None
            Confidence level. None takes that of the test. The band is simultaneous.

        Returns
        -------
        DataFrame
            Columns a, b, score, difference, standard_error, band_low, band_high, pvalue
            (pointwise) and pvalue_corrected.
        """
        low, high = map(np.asarray, self.band(confidence_level))
        return self._frame(
            score=np.tile(self.grid, len(self.contrasts)),
            difference=self.difference,
            standard_error=self.difference_standard_error,
            band_low=low,
            band_high=high,
            pvalue=self.pointwise_pvalues,
            pvalue_corrected=self.pvalues,
        )

    def plot(self, axes: Any = None, **kwargs: Any) -> PredictiveParityDisplay:
        """Draw the curves, their difference with its band, and the scores.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes or None, default=None
            None creates a new figure. The Axes are for the curves and the differences.
        **kwargs : dict
            Passed to `PredictiveParityDisplay.plot`.

        Returns
        -------
        PredictiveParityDisplay
        """
        from ..display._calibration import PredictiveParityDisplay

        return PredictiveParityDisplay(self).plot(axes=axes, **kwargs)

    def __add__(self, other: object) -> Self:
        """Return the result on the union of the clusters of both."""
        if isinstance(other, PredictiveParityTest) and (self.order or other.order):
            raise ValueError(
                "Results of groups without common scores cannot be added: pass grid= "
                "to every part to add their curves."
            )
        return super().__add__(other)

    def __repr__(self) -> str:
        """Return statistic, p-value and the range of rejection by contrast."""
        head = (
            f"predictive_parity_test(bandwidth={self.bandwidth:.4g}, "
            f"correction={self.parameters['correction']!r})"
        )
        lines = [head]
        for (a, b), where, p in zip(
            self.contrasts, self.rejected, self.pvalues, strict=True
        ):
            name = f"{fmt.label(a)} - {fmt.label(b)}"
            said, known = "too little data", ~np.isnan(p)
            if known.any():
                said = (
                    f"p = {np.nanmin(p):.3g}, differs at {where.sum()} of "
                    f"{known.sum()} points{self._ends(where)}"
                )
                if not known.all():
                    said += (
                        f"; compared{self._ends(known)[1:]}, too little data at "
                        f"{(~known).sum()} points"
                    )
            lines.append(f"{name}: {said}")
        if self.order is not None:
            return "\n".join([head, "no common scores", repr(self.order)])
        said = (
            f"max |z| = {self.statistic:.3g}, p = {self.pvalue:.3g} with the test of "
            "level and slope"
        )
        untested = "no test, since no two groups have enough data"
        said = untested if np.isnan(self.pvalue) else said
        lines.append(f"{said}; {self.n_clusters:,} clusters")
        return "\n".join(lines)

    def _ends(self, where: Array) -> str:
        at = self.grid[where]
        return f", {at.min():.3g} to {at.max():.3g}" if at.size else ""


#: The degree of the polynomial of the score, by `curve`.
CURVES = {"local_quadratic": 2, "nadaraya_watson": 0}
# Where the score explains nearly all of the group, the rest says little.
_LEAST_OVERLAP = 0.1


#: The arguments of the test that its parameters have beside those of all tests.
ARGUMENTS = "curve", "kernel", "cluster_weight", "reference"


def curves_by_group(
    rows: ScoreRows,
    grid: Any,
    bandwidth: Any,
    parameters: Mapping[str, Any],
    *,
    rests: bool = False,
) -> PredictiveParityTest:
    """Return the curves of the groups of validated rows, and their contrasts.

    The parameters are those of `parameters_of_test`. Warns of groups without a curve.
    """
    curve, kernel, cluster_weight, reference = (parameters[n] for n in ARGUMENTS)
    degree = CURVES[curve]
    chosen = kernel_of_degree(kernel, degree, f"{curve=}")
    pairs = compared_pairs(rows.groups.labels, reference, rests=rests)
    if degree:
        h = contrast_bandwidth(
            rows, cluster_weight, bandwidth, chosen, pairs, rests=rests
        )
    else:
        h = common_bandwidth(bandwidth, rows.pooled(cluster_weight), chosen)
    sums = CurvePairs.of_rows(
        *(rows, cluster_weight, as_numbers(grid, "grid").copy(), h, chosen),
        degree=degree,
        rests=rests,
    )
    size = len(sums.groups)
    few, undefined = sums.active[:size] < 2, ~sums.defined[:size]
    nowhere = undefined.all(axis=1) & ~few
    for where, without in {
        "for groups with fewer than two clusters:": few,
        "on the whole grid (fewer than two clusters near) for": nowhere,
    }.items():
        if without.any():
            names = fmt.some_groups(compress(sums.groups, without))
            warn_user(f"A curve is undefined (NaN) {where} {names}.")
    return PredictiveParityTest(sums, h, parameters)


def _separate(sums: CurvePairs) -> bool:
    """Return whether there are groups, and no two of them have a range in common."""
    curves = (c for c in sums.curves.values() if c.low <= c.high)
    ranges = sorted((c.low, c.high) for c in curves)
    return len(ranges) > 1 and all(a[1] < b[0] for a, b in pairwise(ranges))


def predictive_parity_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    grid: Any = None,
    bandwidth: str | float = "undersmooth",
    curve: str = "local_quadratic",
    kernel: str = "gaussian",
    cluster_weight: str = "cluster",
    correction: str = "sup_t",
    contrasts: str | None = None,
    reference: Hashable | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 20_000,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> PredictiveParityTest:
    """Test whether an equal score means an equal outcome in all groups.

    The mean outcome at a score, ``f_g(s) = E[Y | S = s, G = g]``, is estimated for each
    group by kernel smoothing in which every cluster of dependent rows has weight one,
    and compared on a grid of scores: predictive parity (sufficiency) says that the
    curves are one. Where the curve of a group is higher its scores are too low. Points
    where one of two groups has too little data to be compared are left out, and
    counted. In addition to the curves, which show any difference and where it is, the
    level and the slope of the difference are tested over all scores: that finds more of
    what is small and everywhere. ``pvalue`` is that of both, by Bonferroni's method.
    Groups without common scores have no curves to compare: `score_order_test` tests
    their order instead.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real.
    y_score : array-like of shape (n,)
        Scores on any scale.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. A cluster may have rows of several groups.
    grid : array-like of shape (J,) or None, default=None
        Scores at which the curves are compared. None: 50 quantiles of the scores that
        lie in the range of at least two groups, or all of them if there are no more;
        of all scores if no two groups have common ones.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"} or float, default="undersmooth"
        One for all groups, in units of the score. A rule (see
        `skrankfair.smoothing.nadaraya_watson`) is applied to each group; the bandwidth
        is 1.35 times the larger one of the two groups of a contrast, or the median of
        these over contrasts. Up to 50 distinct scores, with at least five clusters per
        score on average, are not smoothed: the means at each score are compared. For
        `curve="nadaraya_watson"` the rule is applied to all rows, as in the paper.
    curve : {"local_quadratic", "nadaraya_watson"}, default="local_quadratic"
        "local_quadratic": a quadratic in the score is fitted in the window of each
        point. A difference is the coefficient of the group in a fit to both groups, so
        that neither the slope of the curve nor its curvature is taken for one where the
        groups have different scores. "nadaraya_watson": weighted means, as in the
        paper; their differences are biased where the curve has a slope and the groups
        have different scores, and rare groups seem more certain than they are. It
        warns, since it rejects equal curves in up to 88% of such data at a level of 5%.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian"
        Weight of a row by its distance in the score. "gaussian4" and "flat_top" have
        negative weights, for "nadaraya_watson" alone.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row. See
        Definition 3 and appendix D of the paper.
    correction : {"sup_t", "bonferroni", "holm", "fdr_bh"}, default="sup_t"
        Correction for the number of contrasts. Each point of the grid counts as one.
        "sup_t" compares with the simulated largest of normal deviates of the estimated
        correlations, and rejects more than "bonferroni" and "holm", which do not know
        that neighbours are alike. "fdr_bh" controls the false discovery rate instead.
    contrasts : {"pairs", "rest"} or None, default=None
        All pairs of groups, or each group with all other rows. None: "pairs" for up to
        32 disjoint groups, "rest" for more, whose pairs are many, or overlapping ones.
    reference : hashable or None, default=None
        A group to compare every other with; None compares all pairs. It must be None
        where groups are compared with the rest.
    confidence_level : float, default=0.95
        Confidence level of the bands. One minus this level is the level of the test.
    n_resamples : int, default=20000
        Number of simulated draws.
    random_state : int, Generator or None, default=0
        Seed or generator of the random numbers, 0 so that a result that is computed
        when it is first asked for can be repeated.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.

    Returns
    -------
    PredictiveParityTest
        ``statistic`` (of the curves), ``pvalue`` (of both tests), the curves, their
        differences with simultaneous bands, where the test rejects, and ``plot()``.
        Results of the same numbers for `grid` and `bandwidth` add up.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, the scores have no
        spread, a bandwidth is not positive, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group with fewer than two clusters, or whose scores have another range
        than the grid: its curve is NaN there. Where no point can be compared: the
        p-value is NaN.
    UserWarning
        For ``curve="nadaraya_watson"``, whose test does not keep its level. Without a
        `grid`, where no two groups have common scores: ``pvalue`` is that of the test
        of their order, ``order``.

    See Also
    --------
    marginal_outcome_test : At one threshold, from the rows above it.
    score_order_test : The order of outcomes across groups, at unequal scores.
    skrankfair.metrics.calibration_error : How far the curves are from the scores.
    skrankfair.smoothing.nadaraya_watson : The curve of one group.

    Notes
    -----
    With ``u = (S - s) / h`` and row weights ``w = K(u) / n_m``, one over the number of
    rows of cluster m in the group (times the weight of the row, if there are weights),
    the difference of two groups at s is the coefficient of the first group's indicator
    in the weighted regression of the outcome on 1, u, u² and the indicator: ``Σ w z r /
    Σ w z²``, z and r the residuals of the indicator and of the outcome on 1, u and u²
    alone. Its variance is that of the score test, from
    residuals under the null hypothesis of one curve: ``Σ_m (Σ_i w z r)² / (Σ w z²)²``
    over clusters, but at least ``σ² Σ w² z² / (Σ w z²)²``, what independent rows with
    the variance σ² of both groups near s would have. A rare group whose few outcomes
    are alike is thus not taken for certain; where the outcomes of one group vary less
    than those of the other, the test is conservative. The statistic is compared with
    the normal distribution; for all points at once with the largest of a normal vector
    of the estimated correlations. Of more than 32 groups that are compared with their
    rests, only points of one contrast are correlated, so that memory grows with the
    number of groups and not with its square: at worst this is conservative (Royen
    2014).

    For the test of level and slope the outcome, and 1 and S times the first group's
    indicator, are regressed on a cubic spline of the score (eight columns, of rows in
    the range of the grid). With residuals r and z and ``U_m = Σ_i w z r`` over the rows
    of cluster m, ``(ΣU)' (ΣUU')⁻¹ ΣU / 2``, but at most that with the variance of
    independent rows ``σ² Σ w² zz'``, is compared with F of 2 and M - 1 degrees of
    freedom for the smaller effective number M of clusters of the two groups. Of several
    contrasts the smallest p-value counts, times their number. ``pvalue`` is twice the
    smaller of the p-values of curves and of level and slope; ``pvalues``, ``rejected``
    and the bands are of the curves alone. ``curve="nadaraya_watson"`` has no test of
    level and slope. In simulations of 1,000 to 2,000 rows it rejects equal curves in
    0-5%, and finds differences in 45-80% where the curves alone find 30-60%. Real
    outcomes whose tail is longer in one group are an exception, since its mean seems
    low and certain wherever the rare large outcomes are missing: lognormal outcomes
    with equal curves were rejected in 9% to 13% (30% of 2,000 rows with σ = 1, the
    others with 0.5) and in 33% to 39% (30% of 800 rows with σ = 1.5, the others with
    0.5), but not where σ is the same in both groups.

    A point is compared where each group has at least five effective clusters,
    ``(Σ_m B_m)² / Σ_m B_m²`` for the kernel weights B of the clusters, and, for two
    outcomes of shares p and 1 - p, that number times p (1 - p) is at least one.

    The curves are local quadratic fits to one group each, inside the range of the
    outcomes. Where these are in [0, 1] the bands are Clopper and Pearson's for the
    number of independent rows that would have the same standard error, or, if it is
    smaller, for the geometric mean of this number and that of effective clusters.
    ``curve="nadaraya_watson"`` has ``f_g(s) = Σ_m A_m / Σ_m B_m``, ``A_m = 1/n_m Σ_i
    Y_mi K(u)`` and B_m the same without Y. With ``ψ_m = sqrt(M / (M - 1)) (A_m - f B_m)
    / Σ B`` for the M clusters of a group, the covariance of two curves is ``Σ_m ψ_m
    ψ'_m``; differences have Student's t with Welch's degrees of freedom, from the
    effective clusters minus one, and a point that rests on fewer than two has no test.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §2, §3 and appendix D.

    Fan, J., Gijbels, I. (1996). Local Polynomial Modelling and Its Applications.

    Kline, P., Santos, A. (2012). "A score based approach to wild bootstrap inference".
    Journal of Econometric Methods 1.

    Royen, T. (2014). "A simple proof of the Gaussian correlation conjecture extended to
    multivariate gamma distributions". Far East Journal of Theoretical Statistics 48.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import predictive_parity_test
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(1000), 4)
    >>> race = rng.choice(["a", "b"], size=1000)[patient]
    >>> risk = rng.uniform(size=4000)
    >>> ill = rng.uniform(size=4000) < risk**2 + 0.3 * (race == "a") * risk * (1 - risk)
    >>> t = predictive_parity_test(
    ...     ill, risk, sensitive_features=race, cluster=patient
    ... )
    >>> t.pvalue < 0.05
    True
    >>> t.difference.shape, bool((t.difference[0, t.rejected[0]] > 0).all())
    ((1, 50), True)
    """
    check_choice(curve, "curve", tuple(CURVES))
    parameters = parameters_of_test(locals(), *ARGUMENTS)
    check_given(sensitive_features=sensitive_features)
    if curve == "nadaraya_watson":
        warn_user(
            "predictive_parity_test with curve='nadaraya_watson' rejects equal curves "
            "in up to 88% of data sets at a level of 5% where groups are small or have "
            "different scores; the default, curve='local_quadratic', keeps the level.",
            UserWarning,
        )
    rows = score_rows(y_true, y_score, **given_columns(locals()))
    check_magnitude(y_score=rows.x)
    check_choice(contrasts, "contrasts", (None, "pairs", "rest"))
    many = rows.groups.overlapping or len(rows.groups) > MOST_TOGETHER
    rests = contrasts == "rest" or (contrasts is None and reference is None and many)
    if contrasts == "rest" and reference is not None:
        raise ValueError(
            "reference must be None where groups are compared with the rest; got "
            f"{reference!r}."
        )
    points = default_grid(rows) if grid is None else grid
    result = curves_by_group(rows, points, bandwidth, parameters, rests=rests)
    if grid is None and not rests and _separate(result.sums):
        order = order_of_scores(rows, N_BINS, cluster_weight, n_resamples, random_state)
        warn_user(
            "No two groups have scores in common, so that predictive_parity_test "
            "compares no curves; its p-value is that of score_order_test.",
            UserWarning,
        )
        return replace(result, order=order)
    if len(result.groups) < 2 and not rests:
        warn_user(
            "predictive_parity_test is undefined (NaN) for one group: "
            f"{fmt.label(result.groups[0])}."
        )
    elif (
        result.sums.degree > 0
        and result.sums.defined.any()
        and not result.compared.any()
    ):
        warn_user(
            "predictive_parity_test is undefined (NaN): at no point of the grid do "
            f"both groups of a contrast have enough data, {FEWEST} effective clusters "
            "and, of two outcomes, one expected of each."
        )
    return result
