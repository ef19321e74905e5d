"""What calibrating the scores of the groups would change: decisions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum
from .._estimates.group_estimates import GroupEstimates
from .._estimates.score_table import cluster_table, row_counts
from .._inputs.score_rows import score_rows
from .._inputs.validation import Array, check_number
from ..smoothing._kernels import get_kernel
from ._calibrated import Calibrated, checked_seed, shift_estimates


def positive_rate_shift(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    threshold: float,
    cluster: Any = None,
    bandwidth: str | float | Mapping[Hashable, float] = "undersmooth",
    kernel: str = "gaussian4",
    cluster_weight: str = "cluster",
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> GroupEstimates:
    """How many more of a group would be accepted if its scores were calibrated.

    ``E[1(S* > t) - 1(S > t) | G = g]`` with ``S* = E[Y | S, G]``, the mean outcome at
    the score in the group, as a share of the group's rows. Positive: more of the group
    would be accepted, so its scores are too low around the threshold; 0 for a
    calibrated score.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes.
    y_score : array-like of shape (n,)
        Scores on the scale of the outcomes, such as probabilities.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels; several columns are crossed. A boolean matrix or frame is a
        membership matrix of groups that may overlap.
    threshold : float
        Scores above it are accepted.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about; None: each row.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"}, float or mapping of group to \
            float, default="undersmooth"
        In units of the score; a rule (see `skrankfair.smoothing.nadaraya_watson`) is
        applied to each group.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian4"
        The default has less bias than "gaussian": the standard error of a mean over
        many scores is smaller than that of the curve, so bias weighs more. Curves are
        kept within the range of the outcomes.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster weighs one in the curves, or every row does. Shares are
        of rows.
    n_resamples : int, default=200
        Resamples behind the standard errors.
    random_state : int, Generator or None, default=0
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the row; 2 is the row seen twice.

    Returns
    -------
    GroupEstimates
        One row a group; the fair value is 0.

    Raises
    ------
    ValueError
        For columns of different lengths, values that are not finite, a bandwidth that
        is not positive, or an unknown option.

    Warns
    -----
    UndefinedMetricWarning
        For a group with one cluster, which has no standard error.

    See Also
    --------
    rank_shift : The same for rankings.
    calibration_error : How far the scores are from the mean outcomes.
    skrankfair.inference.marginal_outcome_test : Compares groups at the threshold.

    Notes
    -----
    A decision is no smooth function of the curve, so there is no delta method:
    ``standard_error`` and ``covariance`` are those of a bootstrap of clusters that fits
    the curves anew, computed when first asked for, and
    ``confidence_interval(method="bootstrap")`` are its percentiles. Bandwidths are
    held. Results do not add up, since the curves of parts are not that of the whole.

    The sign is that of the definition in §7.2; Theorem 5 prints the other.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §7.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import positive_rate_shift
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], size=4000)
    >>> score = rng.uniform(size=4000)
    >>> y = rng.uniform(size=4000) < np.where(group == "a", score, score**2)
    >>> r = positive_rate_shift(y, score, sensitive_features=group, threshold=0.5)
    >>> r.estimate[1:].round(1)  # of b: 1 - 1/2^(1/2) less 1/2
    array([-0.2])
    """
    seed = checked_seed(bandwidth, n_resamples, random_state)
    check_number(threshold, "threshold", -np.inf, np.inf, inclusive=(False, False))
    smoother = get_kernel(kernel)
    if sensitive_features is None:
        raise ValueError("sensitive_features must be given; got None.")
    rows = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    sample = rows.sample(cluster_weight)
    calibrated = Calibrated.of_sample(sample, rows.groups, bandwidth, smoother)
    counts = row_counts(rows, sample)
    before = sample.x > threshold

    def shift(cluster_counts: Array | None) -> Array:
        return (calibrated.scores(cluster_counts) > threshold) * 1.0 - before

    def refit(cluster_counts: Array) -> Array:
        weight = counts * cluster_counts[sample.cluster]
        size = len(rows.groups)
        up = np.bincount(sample.group, weight * shift(cluster_counts), minlength=size)
        return np.column_stack([up, np.bincount(sample.group, weight, minlength=size)])

    table = cluster_table(rows, sample, [counts * shift(None), counts])
    return shift_estimates(
        "positive_rate_shift",
        "rows",
        ColumnSum(1, 2),
        rows.groups,
        table,
        refit,
        (n_resamples, seed),
        {
            "threshold": float(threshold),
            "kernel": kernel,
            "cluster_weight": cluster_weight,
        },
        calibrated,
    )
