"""Are the groups held to one standard? Mean outcomes just above a threshold."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.arrays import cached_read_only
from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.metric import Metric, warn_undefined
from .._estimates.rows import cluster_table, weights_of_rows
from .._estimates.scales import ConfidenceInterval, t_quantile, welch_df
from .._estimates.simultaneous import Simultaneous
from .._estimates.sums import ClusterSums
from .._inputs.columns import given_columns
from .._inputs.score_rows import at_least, score_rows
from .._inputs.validation import (
    Array,
    check_choice,
    check_given,
    check_magnitude,
    check_number,
    warn_user,
)
from ..metrics import GroupEstimates
from ..smoothing._bandwidth import FEWEST, boundary_bandwidth, common_bandwidth, enough
from ..smoothing._curve_pairs import CurvePairs
from ._contrast_test import (
    ContrastTest,
    Values,
    compared_pairs,
    difference_errors,
    kernel_of_degree,
    parameters_of_test,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..display._rows import MarginalOutcomeDisplay


# The degree of the polynomial of the score. That of a line that is corrected for its
# bias is 2: with one bandwidth for both this is the value of a quadratic.
_DEGREES = {"constant": 0, "local_linear": 2}


@dataclass(frozen=True, eq=False)
class MarginalOutcomeTest(ContrastTest):
    """Mean outcomes of the groups just above a threshold, compared.

    Made by `marginal_outcome_test`. Results of parts of the data with the same
    bandwidth add up.

    Attributes
    ----------
    sums : CurvePairs
        Kernel sums at the threshold over clusters with a row at or above it.
    bandwidth : float
    parameters : dict
        The options of the test.
    inframarginal : GroupEstimates
        Mean outcome of all rows at or above the threshold, which is not what the test
        looks at: it differs between groups whose scores differ, however fair.
    """

    inframarginal: GroupEstimates

    @property
    def threshold(self) -> float:
        """The threshold."""
        at = float(self.sums.grid[0])
        return -at if self.parameters["favorable"] == "low" else at

    @property
    def binary(self) -> bool:
        """Whether there are no more than two distinct outcomes."""
        return len(self.sums.outcomes) <= 2

    @cached_read_only
    def outcomes(self) -> Array:
        """Marginal outcome of each group, shape (G,); NaN with too little data.

        They lie inside the range of all outcomes above the threshold.
        """
        known = enough(self.effective_clusters)
        value = np.clip(self.sums.fits.estimate[:, 0], *self.range)
        return np.where(known, value, np.nan)

    @property
    def effective_clusters(self) -> Array:
        """How many clusters the value of each group rests on, shape (G,).

        ``1 / Σ_m l_m²`` for the weights l of the clusters in the value; 0 where the
        scores near the threshold do not tell it.
        """
        return self.sums.fits.effective[:, 0]

    @cached_read_only
    def covariance(self) -> Array:
        """Cluster-robust covariance of the marginal outcomes, shape (G, G)."""
        groups = range(len(self.groups))
        of = self.sums.fit_covariance
        return np.array([[of(a, b)[0] for b in groups] for a in groups])

    @cached_read_only
    def standard_errors(self) -> Array:
        """Standard errors of the marginal outcomes, shape (G,).

        At least those of independent rows with the variance of the outcomes in the
        windows of all groups.
        """
        least = self._variance * self.sums.independent_errors()[:, 0]
        variance = np.maximum(np.diag(self.covariance), 0)
        known = ~np.isnan(self.outcomes) & ~np.isnan(variance)
        return np.where(known, np.sqrt(np.fmax(variance, least)), np.nan)

    @property
    def _variance(self) -> float:
        """Variance of outcomes with one mean in all groups, if they are two; else 0."""
        low, high = self.range
        weight, mean = self.effective_clusters, self.outcomes
        known = ~np.isnan(mean)
        if not self.binary or not known.any():
            return 0.0
        common = np.average(mean[known], weights=weight[known])
        return float((common - low) * (high - common))

    @cached_read_only
    def _differences(self) -> Values:
        first, second = self._pairs.T
        variance, df = self.standard_errors**2, self.effective_clusters - 1
        error = difference_errors(variance, self.covariance, self._pairs)
        few = ~self.sums.comparable(self.effective_clusters, self._variance)
        error[few[first] | few[second]] = np.nan
        return Values(
            self.outcomes[first] - self.outcomes[second],
            error,
            welch_df(variance[first], variance[second], df[first], df[second]),
        )

    @property
    def standard_error(self) -> Array:
        """Standard errors of the differences, shape (C,).

        NaN where the outcomes of a group are too few to be compared.
        """
        return self._differences.standard_error

    @cached_read_only
    def _tests(self) -> Simultaneous:
        variance = np.diag(self.covariance)
        spread = difference_errors(variance, self.covariance, self._pairs)
        return self._together(
            self._differences, (self.covariance,), self._pairs, spread
        )

    @cached_read_only
    def pvalues(self) -> Array:
        """P-value of each contrast, corrected for their number, shape (C,)."""
        return self._tests.pvalue if len(self.contrasts) == 1 else super().pvalues

    @property
    def statistic(self) -> float:
        """Student's t of the only contrast; of several the largest ``|z|``."""
        if len(self.contrasts) == 1:
            return float(self._tests.statistic[0])
        return super().statistic

    def confidence_interval(
        self, confidence_level: float | None = None
    ) -> ConfidenceInterval:
        """Return intervals of the differences, simultaneous for several contrasts.

        Parameters
        ----------
        confidence_level : float or None, default=None
            Confidence level. None takes that of the test.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (C,).

        Raises
        ------
        ValueError
            If the level is outside (0, 1).
        """
        one = len(self.contrasts) == 1
        method = "pointwise" if one else self.parameters["correction"]
        return self._band(self._level(confidence_level), method)

    def outcome_interval(
        self, confidence_level: float | None = None
    ) -> ConfidenceInterval:
        """Return an interval of the marginal outcome of each group on its own.

        Inside [0, 1] for outcomes that are (Clopper and Pearson's, for the geometric
        mean of the effective clusters and of what the standard error is worth).

        Parameters
        ----------
        confidence_level : float or None, default=None
            Confidence level. None takes that of the test.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (G,).

        Raises
        ------
        ValueError
            If the level is outside (0, 1).
        """
        df = np.maximum(self.effective_clusters - 1, 1)
        quantile = t_quantile(self._level(confidence_level), df)
        values = Values(self.outcomes, self.standard_errors, df)
        return self._interval(values, quantile, self.effective_clusters)

    def to_frame(self, confidence_level: float | None = None) -> pd.DataFrame:
        """Return one row per contrast.

        Parameters
        ----------
        confidence_level : float or None, default=None
            Confidence level. None takes that of the test.

        Returns
        -------
        DataFrame
            Columns a, b, difference, standard_error, ci_low, ci_high, df, pvalue and
            inframarginal_difference.
        """
        low, high = map(np.asarray, self.confidence_interval(confidence_level))
        first, second = self._pairs.T
        above = self.inframarginal.estimate
        return self._frame(
            difference=self.difference,
            standard_error=self.standard_error,
            ci_low=low,
            ci_high=high,
            df=self.df,
            pvalue=self.pvalues,
            inframarginal_difference=above[first] - above[second],
        )

    def __add__(self, other: object) -> Self:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, MarginalOutcomeTest):
            return NotImplemented
        total = super().__add__(other)
        return replace(total, inframarginal=self.inframarginal + other.inframarginal)

    def plot(self, ax: Any = None, **kwargs: Any) -> MarginalOutcomeDisplay:
        """Draw the marginal outcomes, with the means above the threshold beside them.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `MarginalOutcomeDisplay.plot`.

        Returns
        -------
        MarginalOutcomeDisplay
        """
        from ..display._rows import MarginalOutcomeDisplay

        return MarginalOutcomeDisplay(self).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return the marginal outcomes, and the contrasts with their p-values."""
        low, high = map(np.asarray, self.confidence_interval())
        level = self.parameters["confidence_level"]
        head = (
            f"marginal_outcome_test(threshold={self.threshold:g}, "
            f"bandwidth={self.bandwidth:.4g}, "
            f"boundary={self.parameters['boundary']!r}"
            f"{', favorable=low)' if self.parameters['favorable'] == 'low' else ')'}"
        )
        lines = [head]
        outcomes = zip(self.groups, self.outcomes, self.standard_errors, strict=True)
        for group, value, error in outcomes:
            values = f"{fmt.number(value)} ± {fmt.number(error)}"
            said = "too little data" if np.isnan(value) else values
            lines.append(f"{fmt.label(group)}: {said}")
        for i, (a, b) in enumerate(self.contrasts):
            said = (
                f"{fmt.number(self.difference[i])} "
                f"({100 * level:g}% interval {fmt.number(low[i])} to "
                f"{fmt.number(high[i])}, p = {self.pvalues[i]:.3g})"
            )
            said = "too little data" if np.isnan(self.pvalues[i]) else said
            lines.append(f"{fmt.label(a)} - {fmt.label(b)}: {said}")
        lines.append(f"{self.n_clusters:,} clusters")
        return "\n".join(lines)


# A line at the end of the scores has the least error with a bandwidth that is wider
# than that of a mean between them, for the gaussian kernel by this factor.
_LINE_AT_THE_END = 1.62


def marginal_outcome_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    threshold: float,
    favorable: str = "high",
    cluster: Any = None,
    boundary: str = "local_linear",
    bandwidth: str | float = "mse",
    kernel: str = "epanechnikov",
    cluster_weight: str = "cluster",
    correction: str = "sup_t",
    reference: Hashable | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 20_000,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> MarginalOutcomeTest:
    """Test whether the last to be accepted do equally well in all groups.

    All with a score of at least `threshold` are accepted. A group whose marginal
    members, those just above the threshold, turn out better than those of another is
    held to a higher standard. The mean outcome at the threshold is estimated from
    above: below it outcomes may be unknown. The mean of all who are accepted would
    mislead, because it depends on how far above the threshold the groups are.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real. NaN where the outcome is unknown, which is
        allowed only where rows are not accepted.
    y_score : array-like of shape (n,)
        Scores on any scale.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    threshold : float
        Score from which a row is accepted.
    favorable : {"high", "low"}, default="high"
        Which end of the score is good for the person. "low": rows are accepted up to
        the threshold, as loans are given at a low risk of default, and outcomes may be
        unknown above it.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    boundary : {"local_linear", "constant"}, default="local_linear"
        "local_linear": the value at the threshold of a line through the outcomes near
        it, minus its estimated bias, with an error that accounts for the estimation of
        the bias (robust bias correction). "constant": their weighted mean, as in the
        paper; it looks on average a distance of order ``h`` above the threshold.
    bandwidth : {"mse", "undersmooth", "rule_of_thumb", "cv"} or float, default="mse"
        One for all groups, in units of the score. "mse": for each group that of the
        least mean squared error of a line at the threshold, from a cubic through its
        outcomes, but wide enough for ten effective rows if the group has them; the
        bandwidth is 1.5 times the larger one of the two groups of a contrast (or the
        median of these over contrasts), since the line is corrected for its curvature.
        Another rule (see `skrankfair.smoothing.nadaraya_watson`) is applied to all rows
        above the threshold, and multiplied by 1.62 for a line, which needs more of
        them.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="epanechnikov"
        Weight of a row by its distance in the score. "gaussian4" and "flat_top" have
        negative weights, for "constant" alone.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row. Only
        rows above the threshold count.
    correction : {"sup_t", "bonferroni", "holm", "fdr_bh"}, default="sup_t"
        Correction for the number of contrasts.
    reference : hashable or None, default=None
        A group to compare every other with; None compares all pairs.
    confidence_level : float, default=0.95
        Confidence level of the intervals.
    n_resamples : int, default=20000
        Number of simulated draws. Only "sup_t" uses them.
    random_state : int, Generator or None, default=0
        Seed or generator of the random numbers, 0 so that a result that is computed
        when it is first asked for can be repeated.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.

    Returns
    -------
    MarginalOutcomeTest
        ``statistic``, ``pvalue``, the marginal outcomes, their differences with
        intervals, and ``plot()``. Results of the same number for `bandwidth` add up.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, an outcome of an
        accepted row is unknown, no row is accepted, the scores of those that are have
        no spread, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group without a row above the threshold, with fewer than five effective
        clusters near it, or with one or two distinct scores there, none of them the
        threshold: it has no marginal outcome (NaN). Where there is no p-value.

    See Also
    --------
    predictive_parity_test : At all scores, where all outcomes are known.

    Notes
    -----
    With ``u = (S - t) / h`` over rows with ``S >= t``, the value is the intercept of a
    regression of the outcome on u, weighted by ``K(u) / n_m``, one over the number of
    rows of cluster m, minus the bias that a regression on u and u² with the same
    bandwidth estimates. That difference is the intercept of the latter, ``Σ_m Σ_i l y``
    with weights l that sum to one ("constant": the weighted mean). Its variance is
    cluster-robust, and at least that of independent rows which have the same mean
    outcome in all groups, ``p (1 - p) Σ l²``, where there are two outcomes: a few alike
    outcomes are not taken for certainty. Values and intervals of outcomes in [0, 1]
    stay there (Clopper and Pearson's for the number of independent rows that would have
    the same standard error, or, if it is smaller, for the geometric mean of this number
    and that of effective clusters, ``1 / Σ_m l_m²``). One or two distinct scores above
    the threshold do not determine a value at it: where scores have few levels, take the
    last level that is accepted as the threshold. Differences have Student's t with
    Welch's degrees of freedom from these numbers minus one; a group with fewer than
    five has no value, and with two outcomes of a common share p the number times p (1 -
    p) must be at least one for a p-value.

    Only rows near the threshold count, and a gap may change with the score, so that the
    test needs many rows. With uniform scores, half of n rows accepted, and two groups
    of one size, it found a gap of 0.1 in 21% of simulated data sets with n = 2,000, 50%
    with 8,000 and 95% with 28,000; a gap of 0.2 in 30% with 1,000, 49% with 2,000 and
    73% with 4,000; and one of 0.3 in 66% with 1,000 and 86% with 2,000. A test that
    assumes one gap at all scores finds 0.1 in 75% with 2,000, but rejects every time
    where curves cross at the threshold, which is fair there: `predictive_parity_test`
    compares all scores.

    The curves must be smooth above the threshold. Where the outcome of one group rises
    from it with infinite slope, as ``0.3 + 0.5 sqrt(u)`` does, and that of the other is
    flat, fair data sets were rejected in 14% (n = 2,000) and 33% (8,000). Real outcomes
    whose tail is longer in one group are another exception, since its mean seems low
    where the rare large outcomes are missing: lognormal outcomes with equal means were
    rejected in 8% (30% of 2,000 rows with σ = 1, the others with 0.5) and in 13% (30%
    of 800 rows with σ = 1.5, the others with 0.5).

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §6.

    Calonico, S., Cattaneo, M. D., Titiunik, R. (2014). "Robust nonparametric confidence
    intervals for regression-discontinuity designs". Econometrica 82.

    Ayres, I. (2002). "Outcome tests of racial disparities in police practices". Justice
    Research and Policy 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import marginal_outcome_test
    >>> rng = np.random.default_rng(0)
    >>> race = rng.choice(["a", "b"], size=40_000)
    >>> chance = rng.uniform(size=40_000)
    >>> score = chance - 0.2 * (race == "a")  # the score undervalues "a"
    >>> repaid = np.where(score >= 0.5, rng.uniform(size=40_000) < chance, np.nan)
    >>> t = marginal_outcome_test(
    ...     repaid, score, sensitive_features=race, threshold=0.5
    ... )
    >>> t
    marginal_outcome_test(threshold=0.5, bandwidth=0.3103, boundary='local_linear')
    a: 0.7228 ± 0.0193
    b: 0.5325 ± 0.0196
    a - b: 0.1903 (95% interval 0.1363 to 0.2443, p = 7.38e-12)
    15,954 clusters
    """
    check_choice(boundary, "boundary", tuple(_DEGREES))
    check_choice(favorable, "favorable", ("high", "low"))
    arguments = "favorable", "boundary", "kernel", "cluster_weight", "reference"
    parameters = parameters_of_test(locals(), *arguments)
    check_number(threshold, "threshold", -np.inf, np.inf, inclusive=(False, False))
    check_given(sensitive_features=sensitive_features)
    given = given_columns(locals())
    everyone = score_rows(y_true, y_score, may_be_nan="y_true", **given)
    check_magnitude(y_score=everyone.x)
    cut, sides = float(threshold), ("below", "above", "largest")
    if favorable == "low":
        # Negated scores are accepted from the negated threshold.
        everyone, cut = replace(everyone, x=-everyone.x), -cut
        sides = "above", "below", "smallest"
    above = np.flatnonzero(at_least(everyone.x, cut))
    unknown = np.isnan(everyone.y[above])
    if unknown.any():
        row = int(everyone.kept[above[np.argmax(unknown)]])
        raise ValueError(
            f"y_true may be NaN only {sides[0]} the threshold; row "
            f"{row} has a score at or {sides[1]} {threshold:g} "
            f"({unknown.sum():,} of {unknown.size:,} such rows)."
        )
    if not above.size:
        end = everyone.x.max() if favorable == "high" else -everyone.x.max()
        raise ValueError(
            f"threshold must leave rows at or {sides[1]} it; the {sides[2]} y_score is "
            f"{end:g}, and the threshold is {threshold:g}."
        )
    rows = everyone.take(above)
    chosen = kernel_of_degree(kernel, _DEGREES[boundary], f"{boundary=}")
    sample = rows.sample(cluster_weight)
    pairs = compared_pairs(rows.groups.labels, reference)
    if isinstance(bandwidth, str) and bandwidth == "mse":
        h = boundary_bandwidth(rows, sample, cut, chosen, pairs)
    else:
        h = common_bandwidth(bandwidth, rows.pooled(cluster_weight), chosen)
        if isinstance(bandwidth, str) and boundary == "local_linear":
            h *= _LINE_AT_THE_END
    sums = CurvePairs.of_rows(
        rows, cluster_weight, np.array([cut]), h, chosen, degree=_DEGREES[boundary]
    )
    columns = [sample.share * sample.y, sample.share, weights_of_rows(rows, sample)]
    support = ColumnSum(2, 3)
    inframarginal = GroupEstimates(
        Metric("outcome_above", MeanOfRatios(), support, unit="rows"),
        ClusterSums.from_rows(
            rows.groups.labels, cluster_table(rows, sample, columns), [support]
        ),
        {"threshold": float(threshold)},
    )
    warn_undefined(inframarginal)
    result = MarginalOutcomeTest(sums, h, parameters, inframarginal)
    present = sums.active > 0
    few = present & np.isnan(result.outcomes)
    if few.any():
        names = fmt.some_groups(compress(result.groups, few))
        warn_user(
            f"The marginal outcome is undefined (NaN) with fewer than {FEWEST} "
            "effective clusters near the threshold, or at most two distinct scores "
            "there, none of them the threshold (for a few levels take the last that is "
            f"accepted), in: {names}."
        )
    elif np.isnan(result.pvalue) and present.all():
        alike = "outcomes near the threshold are too few, or too much alike"
        why = alike if result.contrasts else "there is only one group"
        warn_user(f"marginal_outcome_test has no p-value (NaN): {why}.")
    return result
