"""How far scores are from outcomes, row by row: what accuracy a mitigation costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlog1py, xlogy

from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric, warn_undefined
from .._estimates.sums import ClusterSums
from .._estimates.table import cluster_table, row_counts
from .._inputs.score_rows import ScoreRows, score_rows
from .._inputs.validation import Array, check_magnitude

_CLOSEST = np.finfo(np.float64).eps


def _mean_loss(
    name: str, rows: ScoreRows, loss: Callable[[Array, Array], Array]
) -> GroupEstimates:
    """Return the mean of a function of outcome and score, by group."""
    sample = rows.sample("row")
    count = row_counts(rows, sample)
    table = cluster_table(rows, sample, [count * loss(sample.y, sample.x), count])
    result = GroupEstimates(
        Metric(
            name,
            MeanOfRatios(),
            ColumnSum(1, 2),
            unit="rows",
            pooled=not rows.groups.overlapping,
        ),
        ClusterSums.from_clusters(rows.groups.labels, table, [ColumnSum(1, 2)]),
    )
    return warn_undefined(result)


def log_loss(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
) -> GroupEstimates:
    """Mean logarithmic loss of probabilities by group, with its standard error.

    It is the mean over rows of ``-[y ln s + (1 - y) ln(1 - s)]``, in nats; 0 is best.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real. They must be in [0, 1].
    y_score : array-like of shape (n,)
        Scores on the scale of the outcomes, such as probabilities. They must be in [0,
        1], and as in scikit-learn they are clipped to be at least 2.2e-16 (the machine
        epsilon of 64 bits) away from 0 and 1, where one wrong row would have an
        infinite loss.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the row: a weight of 2 counts the row twice.

    Returns
    -------
    GroupEstimates

    Raises
    ------
    ValueError
        If columns have different lengths, or if values are outside [0, 1].

    Warns
    -----
    UndefinedMetricWarning
        If there is only one cluster, so that there is no standard error.

    See Also
    --------
    mean_squared_error : For any outcomes; the Brier score of probabilities.
    sklearn.metrics.log_loss : The value alone, for class labels.

    Notes
    -----
    With the sum L_m of the losses of cluster m, N rows and mean θ, the variance is
    ``M / (M - 1) · Σ_m (L_m - n_m θ)² / N²`` over the M clusters.

    Examples
    --------
    >>> from skrankfair.metrics import log_loss
    >>> log_loss([1, 0, 1], [0.9, 0.2, 0.5]).estimate.round(4)
    array([0.3406])
    """
    rows = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    for name, values in (("y_true", rows.y), ("y_score", rows.x)):
        outside = (values < 0) | (values > 1)
        if outside.any():
            raise ValueError(
                f"{name} must be in [0, 1] for log_loss; got {values[outside][0]} in "
                f"row {rows.kept[np.argmax(outside)]}."
            )

    def loss(y: Array, score: Array) -> Array:
        score = np.clip(score, _CLOSEST, 1 - _CLOSEST)
        return -xlogy(y, score) - xlog1py(1 - y, -score)

    return _mean_loss("log_loss", rows, loss)


def mean_squared_error(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
) -> GroupEstimates:
    """Mean squared error of scores by group, with its standard error.

    It is the mean over rows of ``(y - s)²``; for probabilities it is the Brier score.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real.
    y_score : array-like of shape (n,)
        Scores on the scale of the outcomes, such as probabilities.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the row: a weight of 2 counts the row twice.

    Returns
    -------
    GroupEstimates

    Raises
    ------
    ValueError
        If columns have different lengths, or if values are not finite.

    Warns
    -----
    UndefinedMetricWarning
        If there is only one cluster, so that there is no standard error.

    See Also
    --------
    log_loss : For probabilities.

    Notes
    -----
    The variance is that of `log_loss`, with squared errors in place of its losses.

    Examples
    --------
    >>> from skrankfair.metrics import mean_squared_error
    >>> mean_squared_error([1, 0, 1], [0.9, 0.2, 0.5]).estimate.round(4)
    array([0.1])
    """
    rows = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    check_magnitude(y_score=rows.x)
    return _mean_loss("mean_squared_error", rows, lambda y, s: (y - s) ** 2)
