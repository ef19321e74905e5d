"""How far scores are from outcomes, row by row: what accuracy a mitigation costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlog1py, xlogy

from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._inputs.score_rows import ScoreRows
from .._inputs.validation import Array, check_magnitude
from ._make_metric import MadeMetric

_CLOSEST = np.finfo(np.float64).eps


def _mean_loss(
    name: str, loss: Callable[[Array, Array], Array], check: Callable[..., None]
) -> MadeMetric:
    """Return the mean of a function of outcome and score, by group."""
    return MadeMetric(
        Metric(
            name,
            MeanOfRatios(),
            ColumnSum(1, 2),
            unit="rows",
            positive=True,
            better="low",
        ),
        lambda y_true, y_score: (loss(y_true, y_score), 1.0),
        check=check,
    )


def _of_probabilities(name: str) -> Callable[[ScoreRows], None]:
    """Return what refuses values outside [0, 1]."""

    def check(rows: ScoreRows) -> None:
        for column, values in (("y_true", rows.y), ("y_score", rows.x)):
            outside = (values < 0) | (values > 1)
            if outside.any():
                raise ValueError(
                    f"{column} must be in [0, 1] for {name}; got {values[outside][0]} "
                    f"in row {rows.kept[np.argmax(outside)]}."
                )

    return check


def _log_loss(y: Array, score: Array) -> Array:
    score = np.clip(score, _CLOSEST, 1 - _CLOSEST)
    return -xlogy(y, score) - xlog1py(1 - y, -score)


def _squared(y: Array, score: Array) -> Array:
    return (y - score) ** 2


def _of_magnitude(rows: ScoreRows) -> None:
    check_magnitude(y_score=rows.x)


_LOG_LOSS = _mean_loss("log_loss", _log_loss, _of_probabilities("log_loss"))
_BRIER = _mean_loss("brier_score", _squared, _of_probabilities("brier_score"))
_SQUARED = _mean_loss("mean_squared_error", _squared, _of_magnitude)
_ABSOLUTE = _mean_loss(
    "mean_absolute_error", lambda y, score: np.abs(y - score), _of_magnitude
)


def log_loss(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
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
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

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
    brier_score : The mean squared error of probabilities.
    mean_squared_error : For any outcomes.
    sklearn.metrics.log_loss : The value alone, for class labels.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.
    Losses are skewed, and intervals are those of the logarithm of the mean.

    Examples
    --------
    >>> from skrankfair.metrics import log_loss
    >>> log_loss([1, 0, 1], [0.9, 0.2, 0.5]).estimate.round(4)
    array([0.3406])
    """
    return _LOG_LOSS(**locals())


def brier_score(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Brier score of probabilities by group, with its standard error.

    It is the mean over rows of ``(y - s)²``; 0 is best, and always saying the base rate
    p has the value ``p (1 - p)``. Groups with different base rates therefore differ
    even if nobody is wronged: compare them together with `calibration_error`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real. They must be in [0, 1].
    y_score : array-like of shape (n,)
        Scores on the scale of the outcomes, such as probabilities. They must be in [0,
        1].
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

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
    mean_squared_error : For outcomes and scores of any scale.
    sklearn.metrics.brier_score_loss : The value alone.

    Notes
    -----
    The variance is that of `log_loss`, with squared errors in place of its losses.

    References
    ----------
    Brier, G. W. (1950). "Verification of Forecasts Expressed in Terms of Probability".
    Monthly Weather Review 78(1).

    Examples
    --------
    >>> from skrankfair.metrics import brier_score
    >>> brier_score([1, 0, 1], [0.9, 0.2, 0.5]).estimate.round(4)
    array([0.1])
    """
    return _BRIER(**locals())


def mean_squared_error(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
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
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

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
    brier_score : The same of probabilities, which must be in [0, 1].
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
    return _SQUARED(**locals())


def mean_absolute_error(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Mean absolute error of scores by group, with its standard error.

    It is the mean over rows of ``|y - s|``.

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
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

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
    mean_squared_error : Weighs large errors more.

    Notes
    -----
    The variance is that of `log_loss`, with absolute errors in place of its losses.

    Examples
    --------
    >>> from skrankfair.metrics import mean_absolute_error
    >>> mean_absolute_error([1, 0, 1], [0.9, 0.2, 0.5]).estimate.round(4)
    array([0.2667])
    """
    return _ABSOLUTE(**locals())
