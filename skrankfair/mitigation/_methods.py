"""Fits a calibration curve to the scores and outcomes of one group."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from .._inputs.validation import Array, check_choice
from ..exceptions import UndefinedMetricWarning
from ..smoothing import NadarayaWatsonRegressor
from ._curves import (
    Curve,
    Fitted,
    Line,
    Sigmoid,
    Steps,
    estimator_response,
    fit_binning,
    fit_isotonic,
    fit_sigmoid,
    knots_of,
    project,
)

METHODS = ("nadaraya_watson", "isotonic", "platt", "binning")
CLUSTER_WEIGHTS = ("cluster", "row")


def check_calibrator(
    calibrator: Any, name: str = "calibrator", methods: Sequence[str] = METHODS
) -> None:
    """Raise a ValueError unless it is a method's name or can be fitted."""
    if isinstance(calibrator, str):
        check_choice(calibrator, name, methods)
    elif isinstance(calibrator, type) or not (
        hasattr(calibrator, "fit") and hasattr(calibrator, "predict")
    ):
        options = ", ".join(repr(method) for method in methods)
        raise ValueError(
            f"{name} must be one of {options}, or a regressor or classifier; got "
            f"{calibrator!r}."
        )


def row_weights(
    n_rows: int, weight: Array | None, cluster: Array | None, cluster_weight: str
) -> Array:
    """Return the weight of each row of one group.

    Parameters
    ----------
    n_rows : int
    weight : ndarray of shape (n,) or None
    cluster : ndarray of shape (n,), int64, or None
    cluster_weight : {"cluster", "row"}
        "cluster": the rows of a cluster weigh one together.

    Returns
    -------
    ndarray of shape (n,)
    """
    weight = np.ones(n_rows) if weight is None else weight
    if cluster is None or cluster_weight == "row":
        return weight
    _, place = np.unique(cluster, return_inverse=True)
    return weight / np.bincount(place, weight)[place]


def fit_curve(
    calibrator: Any,
    score: Array,
    outcome: Array,
    *,
    weight: Array | None = None,
    cluster: Array | None = None,
    cluster_weight: str = "cluster",
    monotonic: bool = False,
    n_bins: int = 15,
    log_odds: bool = False,
) -> Curve:
    """Return the curve of the expected outcome, on clean arrays.

    Parameters
    ----------
    calibrator : str or estimator
    score, outcome : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
        Positive.
    cluster : ndarray of shape (n,), int64, or None
    cluster_weight : {"cluster", "row"}
    monotonic : bool
        Whether the curve is made non-decreasing.
    n_bins : int
        For "binning".
    log_odds : bool
        For "platt": whether the scores are probabilities.

    Returns
    -------
    Curve
    """
    rows = row_weights(score.size, weight, cluster, cluster_weight)
    curve: Line | Steps | Sigmoid | Fitted
    if calibrator == "isotonic":
        curve = fit_isotonic(score, outcome, rows)
    elif calibrator == "platt":
        curve = fit_sigmoid(score, outcome, rows, log_odds=log_odds)
    elif calibrator == "binning":
        curve = fit_binning(score, outcome, rows, n_bins)
    else:
        smoother = NadarayaWatsonRegressor(method="fast")
        model = smoother if isinstance(calibrator, str) else clone(calibrator)
        if is_classifier(model) and (outcome == outcome[0]).all():
            return Line(score[:1], outcome[:1])
        fit_model(model, score, outcome, weight, cluster, cluster_weight)
        if isinstance(model, NadarayaWatsonRegressor):
            curve = _smooth_line(model, score, rows)
        else:
            curve = Fitted(model, float(score.min()), float(score.max()))
    return project(curve, score, rows) if monotonic else curve


def fit_model(
    model: Any,
    score: Array,
    outcome: Array,
    weight: Array | None,
    cluster: Array | None,
    cluster_weight: str,
) -> None:
    """Fit a model of scores, with clusters or the weights that they give."""
    column = score.reshape(len(score), -1)
    rows = row_weights(len(score), weight, cluster, cluster_weight)
    if isinstance(model, NadarayaWatsonRegressor):
        model.set_params(cluster=None, cluster_weight=cluster_weight)
        model.fit(column, outcome, sample_weight=weight, cluster=cluster)
        return
    weighted = bool((rows != 1).any())
    if weighted and not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            "calibrator must take sample_weight in fit, for the weights of rows or "
            f"clusters; {type(model).__name__} does not. With cluster_weight='row' "
            "and no sample_weight there are none."
        )
    if is_classifier(model):
        if not hasattr(model, "predict_proba") or (outcome % 1).any():
            raise ValueError(
                "calibrator must predict an expected outcome: a classifier needs "
                "predict_proba and outcomes that are integers, such as 0 and 1; got "
                f"{type(model).__name__}. A regressor takes any outcomes."
            )
        outcome = outcome.astype(np.int64)
    model.fit(column, outcome, **({"sample_weight": rows} if weighted else {}))


def _smooth_line(model: NadarayaWatsonRegressor, score: Array, rows: Array) -> Line:
    """Return the smoother at its knots; a knot without rows near it is left out."""
    knots = knots_of(score, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        outcome = estimator_response(model, knots)
    there = np.isfinite(outcome)
    return Line(knots[there], outcome[there])
