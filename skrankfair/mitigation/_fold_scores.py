"""Scores of rows that the model has not seen, as the wrappers need them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils.parallel import Parallel, delayed

from .._sklearn import call_with_metadata, fit_with_metadata, rows_of
from .._validation import Array


class Fold(NamedTuple):
    """A fitted model and its scores of rows that it has not seen.

    Attributes
    ----------
    estimator : estimator
    rows : ndarray of shape (m,), int64
    scores : ndarray of shape (m,)
    """

    estimator: Any
    rows: Array
    scores: Array


def scores_of(estimator: Any, X: Any, metadata: Mapping[str, Any]) -> Array:
    """Return the scores of a fitted model, one a row.

    The decision function or else the probability of the second class of a classifier,
    the prediction of a regressor.
    """
    method = "predict"
    if hasattr(estimator, "classes_"):
        methods = ("decision_function", "predict_proba")
        found = [name for name in methods if hasattr(estimator, name)]
        if not found:
            raise ValueError(
                "estimator must have decision_function or predict_proba; "
                f"{type(estimator).__name__} has neither."
            )
        method = found[0]
    values = np.asarray(call_with_metadata(estimator, method, X, metadata), dtype=float)
    values = values[:, 1] if method == "predict_proba" else values
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(
            f"estimator must give one finite score a row; {method} of "
            f"{type(estimator).__name__} gives shape {values.shape}, "
            f"{int(np.isfinite(values).sum())} of {values.size} values finite."
        )
    return values


def taken(metadata: Mapping[str, Any], rows: Array) -> dict[str, Any]:
    """Return the metadata of some rows."""
    return {name: rows_of(value, rows) for name, value in metadata.items()}


def _fold(
    estimator: Any, X: Any, y: Any, train: Array, test: Array, metadata: Any
) -> Fold:
    model = clone(estimator)
    fit_with_metadata(
        model, rows_of(X, train), rows_of(y, train), taken(metadata, train)
    )
    scores = scores_of(model, rows_of(X, test), taken(metadata, test))
    return Fold(model, test, scores)


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
) -> list[Fold]:
    """Return the models of the folds, with their scores of the rows left out.

    Parameters
    ----------
    estimator : estimator
        A `FrozenEstimator` is not fitted and scores all rows, one fold.
    X : array or frame of shape (n, d)
    y : ndarray of shape (n,)
    metadata : dict of array-like of shape (n,)
        For the estimator, where it wants it.
    cv : int, splitter, iterable or None
    cluster : ndarray of shape (n,), int64, or None
        With it, an integer `cv` is `GroupKFold`.
    classifier : bool
        Whether an integer `cv` keeps the shares of the classes.
    n_jobs : int or None

    Returns
    -------
    list of Fold
    """
    if isinstance(estimator, FrozenEstimator):
        return [Fold(estimator, np.arange(len(y)), scores_of(estimator, X, metadata))]
    if cluster is not None and (cv is None or isinstance(cv, Integral)):
        n_splits = 5 if cv is None else int(cv)
        n_clusters = int(np.unique(cluster).size)
        if n_clusters < n_splits:
            raise ValueError(
                f"cluster must have at least cv={n_splits} clusters; got {n_clusters}."
            )
        splitter = GroupKFold(n_splits)
    else:
        splitter = check_cv(cv, y, classifier=classifier)
    splits = list(splitter.split(X, y, groups=cluster))
    return Parallel(n_jobs=n_jobs)(
        delayed(_fold)(estimator, X, y, train, test, metadata) for train, test in splits
    )
