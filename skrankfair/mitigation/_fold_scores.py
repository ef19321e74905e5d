"""Scores of rows that the model has not seen, as the wrappers need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.sklearn_private import (
    call_once,
    fit_parameters,
    response_values,
    rows_of,
)
from .._inputs.validation import Array


class Fold(NamedTuple):
    """A fitted model and its scores of rows that it has not seen."""

    estimator: Any
    rows: Array  # shape (m,), int64
    scores: Any  # array-like of shape (m,)


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
    model = clone(estimator)
    model.fit(rows_of(X, train), rows_of(y, train), **taken(fit, train, len(y)))
    scores = respond(model, rows_of(X, test), taken(metadata, test, len(y)))
    return Fold(model, test, scores)


def taken(values: Mapping[str, Any], rows: Array, n_rows: int) -> dict[str, Any]:
    """Cut what has one value for each of `n_rows` rows to some of them."""

    def by_row(value: Any) -> bool:
        if isinstance(value, str | Mapping) or callable(value):
            return False
        if hasattr(value, "shape"):
            return len(value.shape) > 0 and value.shape[0] == n_rows
        return hasattr(value, "__len__") and len(value) == n_rows

    return {
        name: rows_of(value, rows) if by_row(value) else value
        for name, value in values.items()
    }


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


def labelled(y: Array, rows: Array) -> Array:
    """Return the rows whose outcome is known."""
    return rows[~np.isnan(y[rows])] if y.dtype.kind == "f" else rows


def out_of_fold(
    estimator: Any,
    X: Any,
    y: Any,
    metadata: Mapping[str, Any],
    *,
    cv: Any,
    cluster: Array | None,
    classifier: bool,
    n_jobs: Any,
    methods: Sequence[str] = METHODS,
) -> list[Fold]:
    """Return the models of the folds, with their scores of the rows left out.

    A `FrozenEstimator` is not fitted and scores all rows, in one fold. With `cluster`,
    codes of shape (n,), an integer `cv` is `GroupKFold`; else it keeps the shares of
    the classes of a `classifier`. `metadata`, n values each, goes to the estimator
    where it wants it. `methods` are the responses of a classifier that may be the
    score, the best one first.
    """
    if isinstance(estimator, FrozenEstimator):
        scores = scores_of(estimator, X, metadata, methods)
        return [Fold(estimator, np.arange(len(y)), scores)]
    if cluster is not None and (cv is None or isinstance(cv, Integral)):
        n_splits = 5 if cv is None else int(cv)
        n_clusters = int(np.unique(cluster).size)
        if n_clusters < n_splits:
            raise ValueError(
                f"cluster must have at least cv={n_splits} clusters; got {n_clusters}."
            )
        splitter = GroupKFold(n_splits)
        strata = y
    else:
        # Rows of unknown outcome are a stratum of their own.
        known = labelled(y, np.arange(len(y))).size == len(y)
        strata = y if known else np.unique(y, return_inverse=True)[1]
        splitter = check_cv(cv, strata, classifier=classifier)
    splits = list(splitter.split(X, strata, groups=cluster))
    fold = partial(
        fitted_fold,
        fit=fit_parameters(estimator, metadata),
        metadata=metadata,
        respond=partial(scores_of, methods=methods),
    )
    return Parallel(n_jobs=n_jobs)(
        delayed(fold)(estimator, X, y, labelled(y, train), test)
        for train, test in splits
    )
