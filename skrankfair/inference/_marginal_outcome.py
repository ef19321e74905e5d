"""Are the groups held to one standard? Mean outcomes just above a threshold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import CORRECTIONS, Simultaneous, check_level, generator
from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.metric import Metric, warn_undefined
from .._estimates.sums import ClusterSums, cluster_table, row_counts
from .._inputs.score_rows import ScoreRows, score_rows
from .._inputs.validation import Array, check_choice, check_number
from ..metrics import ConfidenceInterval, GroupEstimates
from ..smoothing._bandwidth import common_bandwidth
from ..smoothing._kernel_sums import kernel_values
from ..smoothing._kernels import get_kernel
from ._predictive_parity import check_reference

if TYPE_CHECKING:
    import pandas as pd

    from ..display import MarginalOutcomeDisplay


# Columns of a group: kernel sums of 1, u, u², y and y·u.
_MASS, _FIRST, _SECOND, _OUTCOME, _SLOPE = range(5)
# Relative to what it would be, a spread of scores that is none.
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class ValueAtBoundary:
    """The regression of the outcome on the score, at the threshold.

    Attributes
    ----------
    boundary : {"constant", "local_linear"}
    """

    boundary: str

    def weights(self, by_group: Array) -> tuple[Array, Array]:
        """Return what sums of 1 and of u are weighted by, each of shape (..., G)."""
        one, zero = np.ones_like(by_group[..., 0]), np.zeros_like(by_group[..., 0])
        if self.boundary == "constant":
            return one, zero
        mass, first, second = np.moveaxis(by_group[..., :3], -1, 0)
        spread = (second * mass - first * first).real
        line = spread > _NO_SPREAD * (second * mass).real
        return np.where(line, second, one), np.where(line, -first, zero)

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the value by group, shape (..., G)."""
        level, tilt = self.weights(by_group)
        top = level * by_group[..., _OUTCOME] + tilt * by_group[..., _SLOPE]
        bottom = level * by_group[..., _MASS] + tilt * by_group[..., _FIRST]
        value = np.full(top.shape, np.nan, dtype=top.dtype)
        np.divide(top, bottom, out=value, where=bottom.real != 0)
        return value


@dataclass(frozen=True, eq=False)
class MarginalOutcomeTest:
    """Mean outcomes of the groups just above a threshold, compared.

    Made by `marginal_outcome_test`. Results of parts of the data with the same
    bandwidth add up.

    Attributes
    ----------
    estimates : GroupEstimates
        Marginal outcome by group: its mean at the threshold.
    inframarginal : GroupEstimates
        Mean outcome of all rows at or above the threshold, which is not what the test
        looks at: it differs between groups whose scores differ, however fair.
    threshold : float
    bandwidth : float
    parameters : dict
        The options of the test.
    """

    estimates: GroupEstimates
    inframarginal: GroupEstimates
    threshold: float
    bandwidth: float
    parameters: Mapping[str, Any]

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups, of length G."""
        return self.estimates.groups

    @property
    def n_clusters(self) -> float:
        """The number of clusters with a row at or above the threshold."""
        return self.estimates.n_clusters

    @cached_property
    def contrasts(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The groups that are compared, of length C."""
        reference = self.parameters["reference"]
        if reference is not None:
            return tuple((g, reference) for g in self.groups if g != reference)
        return tuple(combinations(self.groups, 2))

    @cached_property
    def _pairs(self) -> Array:
        place = {group: i for i, group in enumerate(self.groups)}
        pairs = [(place[a], place[b]) for a, b in self.contrasts]
        return np.array(pairs, dtype=int).reshape(-1, 2)

    @cached_property
    def difference(self) -> Array:
        """First less second marginal outcome of each contrast, shape (C,)."""
        first, second = self._pairs.T
        return self.estimates.estimate[first] - self.estimates.estimate[second]

    @cached_property
    def standard_error(self) -> Array:
        """Standard errors of the differences, shape (C,)."""
        first, second = self._pairs.T
        covariance = self.estimates.covariance
        own = np.diag(covariance)
        variance = own[first] + own[second] - 2 * covariance[first, second]
        return np.sqrt(np.maximum(variance, 0))

    @cached_property
    def effective_clusters(self) -> Array:
        """How many clusters the value of each group rests on, shape (G,)."""
        sums = self.estimates.sums
        n_groups, n_columns = sums.by_group.shape
        value = ValueAtBoundary(self.parameters["boundary"])
        level, tilt = value.weights(sums.by_group)
        effective = np.full(n_groups, np.nan)
        for g in range(n_groups):
            mass, first = g * n_columns + _MASS, g * n_columns + _FIRST
            weight = np.array([level[g], tilt[g]])
            both = np.ix_([mass, first], [mass, first])
            squares = weight @ sums.scatter[both] @ weight
            total = weight @ sums.by_group[g, [_MASS, _FIRST]]
            if squares > 0:
                effective[g] = total**2 / squares
        return effective

    @cached_property
    def df(self) -> Array:
        """Welch's degrees of freedom of the differences, shape (C,)."""
        own = self.effective_clusters - 1
        first, second = self._pairs.T
        variance = np.diag(self.estimates.covariance)
        a, b = variance[first], variance[second]
        with np.errstate(divide="ignore", invalid="ignore"):
            df = (a + b) ** 2 / (a**2 / own[first] + b**2 / own[second])
            df = np.where(a + b == 0, np.minimum(own[first], own[second]), df)
            return np.where(df >= 1 - 1e-9, df, np.nan)

    @cached_property
    def _tests(self) -> Simultaneous:
        return Simultaneous(
            self.difference,
            self.standard_error,
            self.df,
            self.estimates.covariance,
            self._pairs,
            self.parameters["n_resamples"],
            self.parameters["random_state"],
        )

    @cached_property
    def pvalues(self) -> Array:
        """P-value of each contrast, corrected for their number, shape (C,)."""
        if len(self.contrasts) == 1:
            return self._tests.pvalue
        return self._tests.corrected(self.parameters["correction"])

    @property
    def statistic(self) -> float:
        """Student's t of the only contrast; of several the largest ``|z|``."""
        if len(self.contrasts) == 1:
            return float(self._tests.statistic[0])
        known = self._tests.deviate[~np.isnan(self._tests.deviate)]
        return float(known.max()) if known.size else float("nan")

    @property
    def pvalue(self) -> float:
        """P-value of equal marginal outcomes in all groups."""
        known = self.pvalues[~np.isnan(self.pvalues)]
        return float(known.min()) if known.size else float("nan")

    def confidence_interval(
        self, confidence_level: float | None = None
    ) -> ConfidenceInterval:
        """Return intervals of the differences, simultaneous for several contrasts.

        Parameters
        ----------
        confidence_level : float or None, default=None
            None: that of the test.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (C,).

        Raises
        ------
        ValueError
            For a level outside (0, 1).
        """
        if confidence_level is None:
            confidence_level = self.parameters["confidence_level"]
        check_level(confidence_level)
        method = self.parameters["correction"]
        if len(self.contrasts) == 1:
            method = "pointwise"
        margin = self._tests.quantile(confidence_level, method) * self.standard_error
        return ConfidenceInterval(self.difference - margin, self.difference + margin)

    def to_frame(self, confidence_level: float | None = None) -> pd.DataFrame:
        """Return one row per contrast.

        Parameters
        ----------
        confidence_level : float or None, default=None
            None: that of the test.

        Returns
        -------
        DataFrame
            Columns a, b, difference, standard_error, ci_low, ci_high, df, pvalue and
            inframarginal_difference.
        """
        import pandas as pd

        low, high = self.confidence_interval(confidence_level)
        first, second = self._pairs.T
        above = self.inframarginal.estimate
        return pd.DataFrame(
            {
                "a": pd.Series([a for a, _ in self.contrasts], dtype=object),
                "b": pd.Series([b for _, b in self.contrasts], dtype=object),
                "difference": self.difference,
                "standard_error": self.standard_error,
                "ci_low": low,
                "ci_high": high,
                "df": self.df,
                "pvalue": self.pvalues,
                "inframarginal_difference": above[first] - above[second],
            }
        )

    def __add__(self, other: object) -> MarginalOutcomeTest:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, MarginalOutcomeTest):
            return NotImplemented
        mine = (self.threshold, self.bandwidth, self.parameters)
        if mine != (other.threshold, other.bandwidth, other.parameters):
            raise ValueError(
                "Only results of the same threshold, bandwidth and options can be "
                "added: pass the bandwidth of one, as a number, to every part."
            )
        return replace(
            self,
            estimates=self.estimates + other.estimates,
            inframarginal=self.inframarginal + other.inframarginal,
        )

    def __radd__(self, other: object) -> MarginalOutcomeTest:
        """Let ``sum(results)`` start from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def plot(self, ax: Any = None, **kwargs: Any) -> MarginalOutcomeDisplay:
        """Draw the marginal outcomes, with the means above the threshold beside them.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
        **kwargs : dict
            Passed to `MarginalOutcomeDisplay.plot`.

        Returns
        -------
        MarginalOutcomeDisplay
        """
        from ..display import MarginalOutcomeDisplay

        return MarginalOutcomeDisplay.from_test(self, ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return the marginal outcomes, and the contrasts with their p-values."""
        low, high = map(np.asarray, self.confidence_interval())
        level = self.parameters["confidence_level"]
        head = (
            f"marginal_outcome_test(threshold={self.threshold:g}, "
            f"bandwidth={self.bandwidth:.4g}, "
            f"boundary={self.parameters['boundary']!r})"
        )
        lines = [head]
        for group, value, error in zip(
            self.groups,
            self.estimates.estimate,
            self.estimates.standard_error,
            strict=True,
        ):
            name = fmt.label(group)
            lines.append(f"{name}: {fmt.number(value)} ± {fmt.number(error)}")
        for i, (a, b) in enumerate(self.contrasts):
            lines.append(
                f"{fmt.label(a)} - {fmt.label(b)}: {fmt.number(self.difference[i])} "
                f"({100 * level:g}% interval {fmt.number(low[i])} to "
                f"{fmt.number(high[i])}, p = {self.pvalues[i]:.3g})"
            )
        lines.append(f"{self.n_clusters:,} clusters")
        return "\n".join(lines)


BOUNDARIES = ("constant", "local_linear")
# A line at the end of the scores has the least error with a bandwidth that is wider
# than that of a mean between them, for the gaussian kernel by this factor.
_LINE_AT_THE_END = 1.62


def _above(rows: ScoreRows, threshold: float) -> ScoreRows:
    """Return the rows at or above the threshold, whose outcomes must be known."""
    above = np.flatnonzero(rows.x >= threshold)
    unknown = np.isnan(rows.y[above])
    if unknown.any():
        row = int(rows.kept[above[np.argmax(unknown)]])
        raise ValueError(
            "y_true may be NaN only below the threshold; row "
            f"{row} has a score at or above {threshold:g} "
            f"({int(unknown.sum())} such rows)."
        )
    if not above.size:
        raise ValueError(
            "threshold must leave rows at or above it; the largest y_score is "
            f"{rows.x.max():g}, and the threshold is {threshold:g}."
        )
    return rows.take(above)


def marginal_outcome_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    threshold: float,
    cluster: Any = None,
    boundary: str = "local_linear",
    bandwidth: str | float = "undersmooth",
    kernel: str = "gaussian",
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
        allowed below the threshold only.
    y_score : array-like of shape (n,)
        Scores on any scale.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    threshold : float
        The lowest score that is accepted.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    boundary : {"local_linear", "constant"}, default="local_linear"
        "local_linear": the value at the threshold of a line through the outcomes near
        it, whose bias is of order ``h²``. "constant": their weighted mean, as in the
        paper; it looks on average a distance of order ``h`` above the threshold.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"} or float, default="undersmooth"
        One for all groups, in units of the score; a rule (see
        `skrankfair.smoothing.nadaraya_watson`) is applied to the rows above the
        threshold, and multiplied by 1.62 for a line, which needs more of them.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian"
    cluster_weight : {"cluster", "row"}, default="cluster"
        "cluster": the rows of a cluster in a group, of those above the threshold,
        weigh one together.
    correction : {"sup_t", "bonferroni", "holm", "fdr_bh"}, default="sup_t"
        For the number of contrasts, where there are several.
    reference : label or None, default=None
        A group to compare every other with; None compares all pairs.
    confidence_level : float, default=0.95
        Of the intervals.
    n_resamples : int, default=20000
        Draws of the simulation of "sup_t".
    random_state : int, Generator or None, default=0
        Seed or generator of the random numbers, 0 so that a result that is computed
        when it is first asked for can be repeated.
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the row: 2 is the row seen twice.

    Returns
    -------
    MarginalOutcomeTest
        ``statistic``, ``pvalue``, the marginal outcomes, their differences with
        intervals, and ``plot()``. Results of the same number for `bandwidth` add up.

    Raises
    ------
    ValueError
        For columns of different lengths, values that are not finite, an unknown outcome
        above the threshold, a threshold above all scores, scores without spread above
        it, or an unknown option.

    Warns
    -----
    UndefinedMetricWarning
        For a group without a row above the threshold, or with one cluster: it has no
        marginal outcome, or no error (NaN).

    See Also
    --------
    predictive_parity_test : At all scores, where all outcomes are known.

    Notes
    -----
    With ``u = (S - t) / h`` and kernel sums ``S_k = Σ_m 1/n_m Σ_i u^k K(u)`` over rows
    with ``S >= t``, ``T_k`` the same times the outcome, the value is ``T_0 / S_0``, or
    ``(S_2 T_0 - S_1 T_1) / (S_2 S_0 - S_1²)`` for a line. Its variance is that of a
    function of sums over clusters (delta method, ``M / (M - 1)``), with Welch's degrees
    of freedom from the effective number of clusters, ``(Σ_m l_m)² / Σ_m l_m²`` for
    the weights l of the clusters in the value.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §6.

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
    marginal_outcome_test(threshold=0.5, bandwidth=0.01944, boundary='local_linear')
    a: 0.7304 ± 0.0303
    b: 0.5289 ± 0.0332
    a - b: 0.2015 (95% interval 0.1131 to 0.2899, p = 9.48e-06)
    15,954 clusters
    """
    check_choice(boundary, "boundary", BOUNDARIES)
    check_choice(correction, "correction", CORRECTIONS)
    check_number(threshold, "threshold", -np.inf, np.inf, inclusive=(False, False))
    check_level(confidence_level)
    check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
    generator(random_state)
    everyone = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
        allow_nan=True,
    )
    check_reference(reference, everyone.groups.labels)
    rows = _above(everyone, float(threshold))
    h = common_bandwidth(rows, bandwidth, kernel, cluster_weight)
    if isinstance(bandwidth, str) and boundary == "local_linear":
        h *= _LINE_AT_THE_END
    sample = rows.sample(cluster_weight)
    weight = sample.share * kernel_values(
        sample.x, np.array(float(threshold)), h, get_kernel(kernel)
    )
    u, counts = (sample.x - threshold) / h, row_counts(rows, sample)
    table = cluster_table(
        rows,
        sample,
        [  # those of ValueAtBoundary, of all above, and two numbers of rows
            weight,
            weight * u,
            weight * u**2,
            weight * sample.y,
            weight * sample.y * u,
            sample.share * sample.y,
            sample.share,
            counts,
            counts * (weight != 0),
        ],
    )
    reached, every = ColumnSum(8, 9), ColumnSum(7, 8)
    options = {"threshold": float(threshold), "boundary": boundary}
    near = GroupEstimates(
        Metric("marginal_outcome", ValueAtBoundary(boundary), reached, unit="rows"),
        ClusterSums.from_clusters(rows.groups.labels, table, [reached]),
        options,
        {"bandwidth": h},
    )
    above = GroupEstimates(
        Metric("outcome_above", MeanOfRatios(column=5), every, unit="rows"),
        ClusterSums.from_clusters(rows.groups.labels, table, [every]),
        {"threshold": float(threshold)},
    )
    parameters = {
        "boundary": boundary,
        "kernel": kernel,
        "cluster_weight": cluster_weight,
        "correction": correction,
        "reference": reference,
        "confidence_level": confidence_level,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    return MarginalOutcomeTest(
        warn_undefined(near), above, float(threshold), h, parameters
    )
