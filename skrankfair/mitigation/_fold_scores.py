"""Scores of rows that the model has not seen, as the wrappers need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._inputs.sklearn_private import (
    call_once,
    parameters_of_rows,
    response_values,
    rows_of,
)
from .._inputs.validation import Array


class Fold(NamedTuple):
    """A fitted model and its scores of rows that it has not seen."""

    estimator: Any
    rows: Array  # shape (m,), int64
    scores: Any  # array-like of shape (m,)


def fit_clone(
    estimator: Any, X: Any, y: Any, rows: Array, fit: Mapping[str, Any]
) -> Any:
    """Return a clone that is fitted to some rows; `fit` are parameters of its `fit`."""
    model = clone(estimator)
    parameters = parameters_of_rows(X, fit, rows)
    return model.fit(rows_of(X, rows), rows_of(y, rows), **parameters)


def fitted_fold(
    estimator: Any,
    X: Any,
    y: Any,
    train: Array,
    test: Array,
    *,
    fit: Mapping[str, Any],
    metadata: Mapping[str, Any],
    respond: Callable[[Any, Any, Mapping[str, Any]], Any],
) -> Fold:
    """Fit a clone to some rows and let it score others.

    `fit` are parameters of its `fit`; the scores are ``respond(model, X, metadata)``.
    What of both has one value per row is cut to the rows.
    """
    model = fit_clone(estimator, X, y, train, fit)
    of_test = parameters_of_rows(X, metadata, test)
    return Fold(model, test, respond(model, rows_of(X, test), of_test))


METHODS = ("decision_function", "predict_proba")


def scores_of(
    estimator: Any,
    X: Any,
    metadata: Mapping[str, Any],
    methods: Sequence[str] = METHODS,
) -> Array:
    """Return the scores of a fitted model, one per row.

    The first response of a classifier that it has, the probability being that of the
    second class; the prediction of a regressor.
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "classes_"):
        methods = ("predict",)
    elif not any(hasattr(estimator, method) for method in methods):
        raise ValueError(
            f"estimator must have {' or '.join(methods)}; {name} has none."
        )
    values = response_values(call_once, estimator, X, list(methods), metadata)
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(
            f"estimator must give one finite score per row; {name} gives shape "
            f"{values.shape}, "
            f"{int(np.isfinite(values).sum())} of {values.size} values finite."
        )
    return values
