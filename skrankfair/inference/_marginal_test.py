"""The test of marginal outcomes: columns to mean outcomes at a threshold."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from .._estimates.contrasts import check_level, generator
from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.metric import Metric, warn_undefined
from .._estimates.score_table import cluster_table, row_counts
from .._estimates.simultaneous import CORRECTIONS
from .._estimates.sums import ClusterSums
from .._inputs.score_rows import ScoreRows, score_rows
from .._inputs.validation import check_choice, check_number
from ..metrics import GroupEstimates
from ..smoothing._kernel_sums import kernel_values
from ..smoothing._kernels import get_kernel
from ._marginal_outcome import MarginalOutcomeTest, ValueAtBoundary
from ._parity_test import check_reference, common_bandwidth

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
        Outcomes, the larger the better; NaN where unknown, below the threshold only.
    y_score : array-like of shape (n,)
        Scores.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels; several columns are crossed. A boolean matrix or frame is a
        membership matrix of groups that may overlap.
    threshold : float
        The lowest score that is accepted.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about; None: each row.
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
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the row; 2 is the row seen twice.

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
