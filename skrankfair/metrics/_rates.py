"""Means by group: rates of decisions, such as `precision`, and losses of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.special import xlog1py, xlogy

from .._estimates import formatting as fmt
from .._estimates.finalize import BucketRatio, ColumnSum, Finalize, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.storage import stored
from .._inputs.score_rows import ScoreRows, at_least
from .._inputs.validation import (
    Array,
    check_binary,
    check_magnitude,
    check_number,
    to_numpy,
    to_vector,
)
from ._make_metric import MadeMetric

#: The floating-point types other than float64 that scikit-learn computes with.
_SHORT = (np.float16, np.float32)


@stored("MeanOfBoth")
@dataclass(frozen=True)
class MeanOfBoth:
    """The mean of two ratios of columns, a / c and b / d, where both are defined."""

    needs = (0, 1)

    @property
    def parts(self) -> tuple[Finalize, Finalize]:
        """The two ratios."""
        return BucketRatio(2, needs=(0,)), BucketRatio(2, needs=(1,), bucket=1)

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the means, shape (..., G)."""
        return MeanOfRatios(2).by_bucket(by_group, shared)[0].mean(-1)


def _rate(
    name: str,
    columns: Callable[..., tuple[Array | float, ...]],
    unit: str,
    better: str,
    finalize: Finalize | None = None,
    support: ColumnSum | None = None,
    supports: tuple[Finalize, ...] = (),
    needs: tuple[str, ...] = ("y_true", "y_score"),
) -> MadeMetric:
    """Return the metric of a share, from functions of outcomes and decisions."""

    def of_rows(
        *values: Array, threshold: float | None = None, pos_label: Any = None
    ) -> Any:
        *outcomes, score = values
        decided = score if threshold is None else at_least(score, threshold) * 1.0
        return columns(*outcomes, decided)

    def check(rows: ScoreRows, threshold: Any, pos_label: Any) -> None:
        if "y_true" in needs:
            check_binary(rows.y, "y_true", f"for {name}", rows.kept)
        if threshold is None:
            rule = "without threshold=, which makes decisions of scores"
            check_binary(rows.x, "y_score", rule, rows.kept)
        else:
            check_number(threshold, "threshold", -np.inf, np.inf)

    finalize, support = finalize or MeanOfRatios(), support or ColumnSum(1, 2)
    metric = Metric(name, finalize, support, unit=unit, share=True, better=better)
    return MadeMetric(
        metric, of_rows, needs, supports=supports, check=check, read=_of_classes
    )


def _of_classes(
    columns: dict[str, Any], threshold: float | None, pos_label: Any
) -> dict[str, Any]:
    """Return columns of two classes as 1 for the positive one and 0 for the other.

    Without `pos_label` only columns of -1 and 1 are changed.
    """
    if pos_label is not None and not np.isscalar(pos_label):
        raise ValueError(
            f"pos_label must be a number, a text or a truth value; got {pos_label!r}."
        )
    label = 1 if pos_label is None else pos_label
    classes, ones = set[Any](), dict[str, Any]()
    for name in columns if threshold is None else columns.keys() & {"y_true"}:
        array = to_vector(columns[name], name)
        known = ~pd.isna(array)
        values = array[known]
        if pos_label is None:
            if isinstance(array[0], str):
                raise ValueError(
                    f"{name} must be 0 or 1, or pos_label= must name the class that "
                    f"counts as 1; got {str(array[0])!r}."
                )
            signed = array.dtype.kind in "if" and (values == -1).any()
            if not (signed and np.isin(values, (-1, 1)).all()):
                continue
        classes.update(values.tolist())
        ones[name] = np.full(array.shape, np.nan)
        ones[name][known] = values.astype(object) == label
        index = getattr(columns[name], "index", None)
        if nw.dependencies.is_pandas_index(index):  # which is kept
            ones[name] = pd.Series(ones[name], index)
    if len(classes | {label}) > 2:
        raise ValueError(
            f"pos_label must be one of two classes; got {label!r} and the classes "
            f"{fmt.some([*map(repr, classes)])}."
        )
    return columns | ones


_GROUP_MEAN = MadeMetric(
    Metric("group_mean", MeanOfRatios(), ColumnSum(1, 2), unit="rows"),
    lambda values: (values, 1.0),
    needs=("values",),
    check=lambda rows: check_magnitude(values=rows.x),
)
_SELECTION_RATE = _rate(
    "selection_rate", lambda d: (d, 1.0), "rows", "high", needs=("y_score",)
)
_TRUE_POSITIVE_RATE = _rate(
    "true_positive_rate", lambda y, d: (y * d, y), "positives", "high"
)
_FALSE_NEGATIVE_RATE = _rate(
    "false_negative_rate", lambda y, d: (y * (1 - d), y), "positives", "low"
)
_FALSE_POSITIVE_RATE = _rate(
    "false_positive_rate", lambda y, d: ((1 - y) * d, 1 - y), "negatives", "low"
)
_TRUE_NEGATIVE_RATE = _rate(
    "true_negative_rate", lambda y, d: ((1 - y) * (1 - d), 1 - y), "negatives", "high"
)
_PRECISION = _rate("precision", lambda y, d: (y * d, d), "selected", "high")
_ACCURACY = _rate("accuracy", lambda y, d: ((y == d) * 1.0, 1.0), "rows", "high")
_BALANCED_ACCURACY = _rate(
    "balanced_accuracy",
    lambda y, d: (y * d, (1 - y) * (1 - d), y, 1 - y),
    "rows",
    "high",
    MeanOfBoth(),
    ColumnSum(2, 4),
    (ColumnSum(2, 3), ColumnSum(3, 4)),
)
_F1 = _rate(
    "f1",
    lambda y, d: (2 * y * d, y + d, np.maximum(y, d)),
    "rows",
    "high",
    support=ColumnSum(2, 3),
)


def _mean_loss(
    name: str,
    loss: Callable[[Array, Array], Array],
    *,
    of_probabilities: bool = True,
    positive: bool = True,
) -> MadeMetric:
    """Return the mean of a function of outcome and score, by group."""

    def check(rows: ScoreRows) -> None:
        if not of_probabilities:
            check_magnitude(y_score=rows.x)
            return
        for column, values in (("y_true", rows.y), ("y_score", rows.x)):
            outside = (values < 0) | (values > 1)
            if outside.any():
                raise ValueError(
                    f"{column} must be in [0, 1] for {name}; got {values[outside][0]} "
                    f"in row {rows.kept[np.argmax(outside)]}."
                )

    mean, rows, better = MeanOfRatios(), ColumnSum(1, 2), "low" if positive else None
    metric = Metric(name, mean, rows, unit="rows", positive=positive, better=better)
    return MadeMetric(
        metric, lambda y_true, y_score: (loss(y_true, y_score), 1.0), check=check
    )


def _squared(y: Array, score: Array) -> Array:
    return (y - score) ** 2


def _log_loss_of(dtype: np.dtype[Any]) -> MadeMetric:
    """Return the logarithmic loss for scores of a type, clipped by its epsilon."""
    closest = float(np.finfo(dtype if dtype in _SHORT else np.float64).eps)

    def loss(y: Array, score: Array) -> Array:
        score = np.clip(score, closest, 1 - closest)
        return -xlogy(y, score) - xlog1py(1 - y, -score)

    return _mean_loss("log_loss", loss)


_BRIER = _mean_loss("brier_score", _squared)
_IN_THE_LARGE = _mean_loss(
    "calibration_in_the_large", lambda y, score: y - score, positive=False
)
_SQUARED = _mean_loss("mean_squared_error", _squared, of_probabilities=False)
_ABSOLUTE = _mean_loss(
    "mean_absolute_error", lambda y, score: np.abs(y - score), of_probabilities=False
)


def group_mean(
    values: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Mean of a column by group, with its standard error.

    Parameters
    ----------
    values : array-like of shape (n,)
        Numbers of any kind, such as outcomes, prices or waiting times.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
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
        One row per group, whose support is the number of rows.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, or labels are missing.

    Warns
    -----
    UndefinedMetricWarning
        For a group without rows, whose mean is NaN, and for one with rows of a single
        cluster, which has no standard error.
    SmallSampleWarning
        From intervals and tests, if a few extreme values make most of an error.

    See Also
    --------
    make_metric : Metrics of your own.
    selection_rate : The mean of decisions, with intervals inside [0, 1].

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.

    Examples
    --------
    >>> from skrankfair.metrics import group_mean
    >>> group_mean([1, 2, 6, 4], sensitive_features=["a", "a", "b", "b"]).estimate
    array([1.5, 5. ])
    """
    return _GROUP_MEAN(**locals())


def selection_rate(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the rows of each group that are selected.

    ``P(d = 1 | a)``, whatever the outcomes: the rate of approvals, interviews or
    alarms. Demographic parity is that it is the same in all groups; the ratio of two
    rates is the impact ratio of the four-fifths rule, ``r.contrast("a", "b",
    kind="ratio")``.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of rows.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or decisions are not 0 or
        1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without rows, whose rate is NaN and never 0, and for one of a single
        cluster, which has no standard error.

    See Also
    --------
    impact_ratio : The smallest ratio of two of these rates.
    demographic_parity_difference : The largest difference of two of them.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import selection_rate
    >>> selection_rate(
    ...     None, [1, 0, 0, 1, 1, 0], sensitive_features=list("aaabbb")
    ... ).estimate.round(4)
    array([0.3333, 0.6667])
    """
    return _SELECTION_RATE(**locals())


def true_positive_rate(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the positives of each group that are selected: its recall.

    ``P(d = 1 | y = 1, a)``, the sensitivity of the decisions. Equal opportunity is that
    it is the same in all groups.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of positives.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without positives, whose rate is NaN and never 0, and for one of a
        single cluster, which has no standard error.

    See Also
    --------
    equal_opportunity_difference : The largest difference of two of these rates.
    false_positive_rate : The same share of the negatives.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    References
    ----------
    Hardt, M., Price, E., Srebro, N. (2016). "Equality of Opportunity in Supervised
    Learning". NeurIPS.

    Examples
    --------
    >>> from skrankfair.metrics import true_positive_rate
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = true_positive_rate([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([1. , 0.5])
    """
    return _TRUE_POSITIVE_RATE(**locals())


def false_positive_rate(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the negatives of each group that are selected.

    ``P(d = 1 | y = 0, a)``, the rate of false alarms. Equalized odds is that it and
    `true_positive_rate` are the same in all groups.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of negatives.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without negatives, whose rate is NaN and never 0, and for one of a
        single cluster, which has no standard error.

    See Also
    --------
    equalized_odds : This rate and the true positive rate together.
    true_negative_rate : One minus this rate.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    References
    ----------
    Hardt, M., Price, E., Srebro, N. (2016). "Equality of Opportunity in Supervised
    Learning". NeurIPS.

    Examples
    --------
    >>> from skrankfair.metrics import false_positive_rate
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = false_positive_rate([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([0. , 0.5])
    """
    return _FALSE_POSITIVE_RATE(**locals())


def true_negative_rate(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the negatives of each group that are not selected.

    ``P(d = 0 | y = 0, a)``, the specificity of the decisions.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of negatives.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without negatives, whose rate is NaN and never 0, and for one of a
        single cluster, which has no standard error.

    See Also
    --------
    false_positive_rate : One minus this rate.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import true_negative_rate
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = true_negative_rate([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([1. , 0.5])
    """
    return _TRUE_NEGATIVE_RATE(**locals())


def false_negative_rate(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the positives of each group that are not selected.

    ``P(d = 0 | y = 1, a)``, the rate of misses.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of positives.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without positives, whose rate is NaN and never 0, and for one of a
        single cluster, which has no standard error.

    See Also
    --------
    true_positive_rate : One minus this rate.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import false_negative_rate
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = false_negative_rate([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([0. , 0.5])
    """
    return _FALSE_NEGATIVE_RATE(**locals())


def precision(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the selected rows of each group that are positive.

    ``P(y = 1 | d = 1, a)``, the positive predictive value. Predictive parity of
    decisions is that it is the same in all groups.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of selected rows.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without selected rows, whose rate is NaN and never 0, and for one of
        a single cluster, which has no standard error.

    See Also
    --------
    predictive_parity_difference : The largest difference of two of these rates.
    skrankfair.inference.marginal_outcome_test : Of those who just pass a threshold,
        which is fair to groups whose scores are spread differently.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    References
    ----------
    Chouldechova, A. (2017). "Fair Prediction with Disparate Impact: A Study of Bias in
    Recidivism Prediction Instruments". Big Data 5(2).

    Examples
    --------
    >>> from skrankfair.metrics import precision
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = precision([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([1. , 0.5])
    """
    return _PRECISION(**locals())


def accuracy(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the rows of each group that are decided rightly.

    ``P(d = y | a)``. It depends on the base rate: a group with few positives has a high
    accuracy if none of its rows is selected.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of rows.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without rows, whose rate is NaN and never 0, and for one of a single
        cluster, which has no standard error.

    See Also
    --------
    balanced_accuracy : Positives and negatives weigh alike.
    pairwise_accuracy : The same of the order of scores.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import accuracy
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = accuracy([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([1. , 0.5])
    """
    return _ACCURACY(**locals())


def balanced_accuracy(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Mean of the true positive and the true negative rate of each group.

    ``[P(d = 1 | y = 1, a) + P(d = 0 | y = 0, a)] / 2``; 1/2 is a coin toss.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of rows.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without positives or without negatives, whose rate is NaN and never
        0, and for one of a single cluster, which has no standard error.

    See Also
    --------
    true_positive_rate, true_negative_rate : Its two parts.
    auc : The same of scores, over all thresholds.

    Notes
    -----
    The value is the mean of two ratios of sums over rows, and its variance that of the
    jackknife over clusters; intervals combine the limits of both shares (Zou and Donner
    2008) and are inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import balanced_accuracy
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = balanced_accuracy([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([1. , 0.5])
    """
    return _BALANCED_ACCURACY(**locals())


def f1(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """F1 score of the decisions of each group.

    ``2 TP / (2 TP + FP + FN)``, the harmonic mean of precision and recall. A group with
    neither positives nor selected rows has no value (scikit-learn counts it as 0).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
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
        One row per group, whose support is the number of rows that are positive or
        selected.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without rows that are positive or selected, whose rate is NaN and
        never 0, and for one of a single cluster, which has no standard error.

    See Also
    --------
    precision, true_positive_rate : Its two parts.

    Notes
    -----
    The rate is a ratio of two sums over rows, and its variance that of the jackknife
    over clusters; intervals are those of shares, inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import f1
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> group = list("aaaabbbb")
    >>> r = f1([1, 1, 0, 0] * 2, decided, sensitive_features=group)
    >>> r.estimate.round(4)
    array([1. , 0.5])
    """
    return _F1(**locals())


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
        1], and as in scikit-learn they are clipped to be at least the machine epsilon
        of their type (2.2e-16 of 64 bits, 1.2e-7 of 32) away from 0 and 1, where one
        wrong row would have an infinite loss.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
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
    return _log_loss_of(to_numpy(y_score, "y_score").dtype)(**locals())


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
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
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


def calibration_in_the_large(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Mean outcome minus mean score of each group, with its standard error.

    It is the mean over rows of ``y - s``. Where scores are probabilities, 0 is a group
    whose mean score is its base rate; above 0 its scores are too low, and below 0 too
    high. A score may be right on average and wrong at each score: compare it together
    with `calibration_error`.

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
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
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
    calibration_error : How far outcomes are from scores, score by score.
    skrankfair.inference.predictive_parity_test : Whether groups differ at equal scores.

    Notes
    -----
    The variance is that of `group_mean`, of the differences. Both sums weigh the rows.

    References
    ----------
    Cox, D. R. (1958). "Two Further Applications of a Model for Binary Regression".
    Biometrika 45(3-4).

    Examples
    --------
    >>> from skrankfair.metrics import calibration_in_the_large
    >>> calibration_in_the_large([1, 0, 1], [0.9, 0.2, 0.5]).estimate.round(4)
    array([0.1333])
    """
    return _IN_THE_LARGE(**locals())


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
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
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
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
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
