"""The only file that imports private names of scikit-learn.

When scikit-learn moves something, this is the place to fix it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import sklearn
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics._scorer import _BaseScorer, _cached_call, _MultimetricScorer
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.fixes import parse_version
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_method_params,
    _check_response_method,
    _num_samples,
)

from .groups import frame_of

#: Call an estimator's response method without sharing the result.
call_once: Callable[..., Any] = partial(_cached_call, None)

#: The class of scikit-learn's scorers.
BaseScorer = _BaseScorer

#: The callable that searches make of a dict of scorers.
MultimetricScorer = _MultimetricScorer

#: ``rows_of(values, rows)``: some rows of an array, list or frame, by position.
rows_of: Callable[..., Any] = _safe_indexing

#: ``n_rows_of(values)``: the number of rows, or a TypeError for what has none.
n_rows_of: Callable[[Any], int] = _num_samples

#: ``parameters_of_rows(X, parameters, rows)``: all parameters, of which those with one
#: value per row of X are cut to some rows.
parameters_of_rows: Callable[..., dict[str, Any]] = _check_method_params

#: ``names_of_features(estimator, names)``: the names of the columns of X, checked.
names_of_features: Callable[..., Any] = _check_feature_names_in

# Earlier versions ask a frame for the interchange protocol, which polars 2 lacks.
_FINDS_NAMES = parse_version(sklearn.__version__) >= parse_version("1.9")


def tags_of(estimator: Any) -> Any:
    """Return the tags of an estimator; raise a TypeError if it is none."""
    with suppress(AttributeError):
        if hasattr(estimator, "fit"):  # scikit-learn 1.6 has tags for anything.
            return get_tags(estimator)
    raise TypeError(
        f"estimator must be an estimator of scikit-learn; got {estimator!r}."
    )


def with_names(X: Any) -> Any:
    """Return X, as a frame of pandas if scikit-learn would not find its names.

    ``validate_data`` needs the names: without them an estimator only counts columns,
    and those of the metadata are neither left out nor compared with the fit's.
    Repeated names of a pandas frame raise a ValueError, as scikit-learn would fail. So
    it would for names that are text and numbers, which all become text.
    """
    pandas = nw.dependencies.is_pandas_dataframe(X)
    if pandas and not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(
            f"X must have distinct column names to fit; {twice!r} occurs "
            f"{(X.columns == twice).sum()} times."
        )
    if pandas and {*map(type, X.columns)} > {str}:
        return X.rename(columns=str)
    frame = frame_of(X)
    if frame is None or _FINDS_NAMES or hasattr(X, "__dataframe__"):
        return X
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def routing_enabled() -> bool:
    """Return whether metadata routing is on."""
    return bool(get_config().get("enable_metadata_routing", False))


def _prefix_and_step(estimator: Any) -> tuple[str, Any]:
    """Return the prefix of arguments of a pipeline's last step, and this step."""
    prefix = ""
    while hasattr(estimator, "steps"):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def is_column(spec: Any) -> bool:
    """Return whether a constructor's `spec` of metadata says where they are in X."""
    return spec is not None and not isinstance(spec, bool)


def consumed_metadata(
    estimator: Any, method: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata that the estimator's method wants, by its own names.

    With routing on, it is the metadata that the estimator requests, by alias. With
    routing off, it is the metadata for which the method (of the last step of a
    pipeline) has a parameter, unless the constructor names the column of X.
    """
    if not metadata:
        return {}
    if not routing_enabled():
        _, step = _prefix_and_step(estimator)
        function = getattr(step, method, None)
        known = inspect.signature(function).parameters if function else {}
        return {
            name: value
            for name, value in metadata.items()
            if name in known and not is_column(getattr(step, name, None))
        }
    routing = get_routing_for_object(estimator)
    wanted = routing.consumes(method, metadata.keys())
    if isinstance(routing, MetadataRouter):
        return {name: metadata[name] for name in wanted}
    requests = getattr(routing, method).requests.items()
    names = {param: param if alias is True else alias for param, alias in requests}
    return {param: metadata[name] for param, name in names.items() if name in wanted}


def _call(estimator: Any, method: str, X: Any, metadata: Mapping[str, Any]) -> Any:
    """Call a method with metadata, also where a pipeline does not hand it on.

    With routing off, `Pipeline.decision_function` takes no metadata.
    """
    if method == "decision_function" and not routing_enabled():
        while hasattr(estimator, "steps"):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
    return getattr(estimator, method)(X, **metadata)


def positive_class(estimator: Any) -> Any:
    """Return the class whose probability is the score: the second of two, else None."""
    classes = getattr(estimator, "classes_", None)
    return classes[1] if classes is not None and len(classes) == 2 else None


def chosen_response(estimator: Any, response_method: Any) -> str:
    """Return the first of these methods that the estimator has."""
    try:
        return str(_check_response_method(estimator, response_method).__name__)
    except (AttributeError, TypeError) as error:
        raise TypeError(
            f"estimator must have a method of response_method={response_method!r}; got "
            f"{type(estimator).__name__}."
        ) from error


def response_values(
    estimator: Any,
    X: Any,
    response_method: Any,
    metadata: Mapping[str, Any],
    method_caller: Callable[..., Any] = call_once,
) -> Any:
    """Return the estimator's scores, handing it the metadata that it wants.

    Of two classes they are the scores of the second. Other scorers do not share a
    response that was computed with metadata, as they call the method without. Nor do
    they share probabilities or decisions of an estimator that is no classifier, which
    scikit-learn 1.6 refuses to call.
    """
    while hasattr(estimator, "best_estimator_"):
        # A search calls the same method of its best estimator, without metadata.
        estimator = estimator.best_estimator_
    method = chosen_response(estimator, response_method)
    consumed = consumed_metadata(estimator, method, metadata)
    positive = positive_class(estimator)
    if not consumed and (method == "predict" or is_classifier(estimator)):
        return method_caller(estimator, method, X, pos_label=positive)
    values = _call(estimator, method, X, consumed)
    if method == "predict_proba" and positive is not None:
        return np.asarray(values)[:, 1]
    return values


def needed_to_fit(
    estimator: Any, given: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the given metadata, and `known` values that `fit` requires.

    The latter have the names that a pipeline has for arguments of its last step.
    """
    prefix, step = _prefix_and_step(estimator)
    parameters = inspect.signature(step.fit).parameters
    needed = {
        prefix + name: value
        for name, value in known.items()
        if name in parameters and parameters[name].default is inspect.Parameter.empty
    }
    return {**needed, **given}


def fit_parameters(estimator: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata to pass to `fit`, for a pipeline that of its last step.

    With routing off a pipeline takes metadata under the names of its steps.
    """
    consumed = consumed_metadata(estimator, "fit", metadata)
    if consumed and not routing_enabled():
        prefix, _ = _prefix_and_step(estimator)
        consumed = {prefix + name: value for name, value in consumed.items()}
    return consumed
