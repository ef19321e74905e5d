"""Where the group, the query and the cluster of a row come from.

An estimator or a scorer names a column of X, or asks for metadata; the functions here
resolve both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, TypeGuard

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .groups import frame_columns, frame_of
from .sklearn_private import is_column, n_rows_of, routing_enabled, with_names
from .validation import Array, as_numbers, check_aligned, check_lengths

#: The name of a column of a frame: text, or an integer where pandas counts columns.
Name = str | int
#: What `sensitive_features=`, `qid=`, `cluster=` of a constructor may be: a column
#: name, a list of them, a function of X, True for metadata, or None.
ColumnSpec = Name | list[Name] | Callable[[Any], Any] | None


#: Arguments whose column a constructor may name, and the methods that take them; a
#: score is the first of the responses that there is.
NAMES = ("sensitive_features", "qid", "cluster")
RESPONSES = ("decision_function", "predict_proba", "predict")
METHODS = ("fit", "transform", "inverse_transform", "score", *RESPONSES)


def is_name(spec: Any) -> TypeGuard[Name]:
    """Return whether `spec` may be the name of a column."""
    return isinstance(spec, str | int | np.integer) and not isinstance(spec, bool)


def check_spec(spec: Any, name: str) -> None:
    """Raise a ValueError unless `spec` says where a column comes from."""
    names = spec if isinstance(spec, list | tuple) else [spec]
    named = bool(names) and all(map(is_name, names))
    if not (named or spec is None or spec is True or callable(spec)):
        raise ValueError(
            f"{name} must be a column name, a list of column names, a function of X, "
            f"True (passed as metadata) or None; got {spec!r}."
        )


def named_columns(*specs: ColumnSpec) -> list[Name]:
    """Return the names of columns in the specifications."""
    listed = (spec if isinstance(spec, list | tuple) else [spec] for spec in specs)
    return list(dict.fromkeys(filter(is_name, chain.from_iterable(listed))))


def metadata_columns(estimator: Any) -> list[Name]:
    """Return the names of the columns of X that the constructor names as metadata."""
    return named_columns(*(getattr(estimator, name, None) for name in NAMES))


def without_columns(X: Any, names: Iterable[Name]) -> Any:
    """Return X without the named columns, if it is a frame that has them."""
    frame = frame_of(X)
    dropped = [n for n in names if frame is not None and n in frame.columns]
    if not dropped:
        return X
    return X.drop(columns=dropped) if frame is X else frame.drop(dropped).to_native()


def without_units(estimator: Any, X: Any) -> Any:
    """Return X without the column of the clusters, which only a fit needs."""
    return without_columns(X, named_columns(getattr(estimator, "cluster", None)))


def frame_numbers(X: Any, name: str, but: Iterable[Any] = ()) -> list[Array] | None:
    """Return the columns of a frame as floats, except `but`; None if X is no frame."""
    if (frame := frame_columns(X)) is None:
        return None
    columns = zip(*frame, strict=True)
    return [as_numbers(c, f"{name}[{n!r}]") for c, n in columns if n not in but]


def numeric_features(
    estimator: Any,
    X: Any,
    what: str,
    *,
    y: Any = "no_validation",
    reset: bool = False,
    **options: Any,
) -> Any:
    """Return X as floats, shape (n, d), without the `metadata_columns`.

    If no column is left a ValueError says so, in which `what` names the missing ones. y
    is as in scikit-learn's `validate_data`: where it is given, X and y are returned.
    `reset` remembers the columns, and which of them are metadata.
    """
    X, others = without_units(estimator, X), metadata_columns(estimator)
    if reset:
        _, names = frame_columns(X) or ([], [])
        estimator._others = [i for i, name in enumerate(names) if name in others]
    if not others:
        options |= {"reset": reset, "dtype": np.float64}
        return validate_data(estimator, with_names(X), y, **options)
    validate_data(estimator, with_names(X), y, reset=reset, skip_check_array=True)
    columns = frame_numbers(X, "X", others)
    if not columns:
        raise ValueError(
            f"X must have a column of {what} beside {', '.join(map(repr, others))}; it "
            "has none."
        )
    features = np.column_stack(columns)
    if isinstance(y, str):
        return features
    check_lengths(X=len(features), y=len(y))
    return features, y


#: What to do in scikit-learn if X has no names.
_IN_SCIKIT_LEARN = (
    "transformers before it in a Pipeline return frames after "
    '.set_output(transform="pandas") of the Pipeline; or pass it as metadata, with '
    "{name}=True and sklearn.set_config(enable_metadata_routing=True)."
)


def column_of(
    X: Any, spec: ColumnSpec, name: str, otherwise: str = _IN_SCIKIT_LEARN
) -> Any:
    """Return the column (or frame of columns) of X that `spec` names, or its result.

    `otherwise` is the advice of the error where X has no column names.
    """
    if callable(spec):
        return spec(X)
    frame = frame_of(X)
    if frame is None:
        kind = type(X)
        if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
            raise ValueError(
                f"X must be in memory for {name}={spec!r}; got a lazy frame "
                f"({kind.__module__}.{kind.__name__}): pass what its collect() or "
                "compute() returns."
            )
        raise ValueError(
            f"{name}={spec!r} names a column, but X arrives here without column names "
            f"({kind.__name__}): {otherwise.format(name=name)}"
        )
    known = list(frame.columns)
    names = named_columns(spec)
    for column in names:
        if (times := known.count(column)) > 1:
            raise ValueError(
                f"{name} must name one column of X; {times} are called {column!r}."
            )
        if not times:
            why = (
                f"{name} must name columns of X; there is no {column!r} among {known}."
            )
            if renamed := [c for c in known if str(c).endswith(f"__{column}")]:
                why += (
                    f" Is it {renamed[0]!r}? verbose_feature_names_out=False keeps the "
                    "name in a ColumnTransformer."
                )
            raise ValueError(why)
    return nw.to_native(frame[names if len(names) > 1 else names[0]], pass_through=True)


def take_column(estimator: Any, X: Any, name: str, given: Any) -> Any:
    """Return the column that the estimator's parameter `name` stands for, else `given`.

    A ValueError is raised if the column is both named and given, or not given although
    the constructor says that it is passed.
    """
    spec = getattr(estimator, name)
    check_spec(spec, name)
    if is_column(spec):
        if given is not None:
            raise ValueError(
                f"{name} must be given once; the constructor has {name}={spec!r}."
            )
        return column_of(X, spec, name)
    if spec is True and given is None:
        why = (
            "What calls it passes none: some tools of scikit-learn route no metadata "
            "to the models inside, or not to every method. Name a column of X instead."
            if routing_enabled()
            else "Inside other estimators turn on "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
        raise ValueError(
            f"{name} must be passed as metadata, as {name}=True of the constructor "
            f"says; got None. {why}"
        )
    check_aligned(X=X, **{name: given})
    return given


def take_columns(
    estimator: Any, X: Any, given: Mapping[str, Any], **others: Any
) -> dict[str, Any]:
    """Return the columns that `take_column` finds, in the order of X and of others."""
    columns = {n: take_column(estimator, X, n, values) for n, values in given.items()}
    check_aligned(X=X, **others, **columns)
    return columns


def resolved_columns(X: Any, given: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """Return columns that are given by name, by a function of X, or as values.

    A list of text that is as long as X holds the values, not names. Columns that are
    None are left out. All are in the order of X and of others.
    """
    n_rows = None if X is None else n_rows_of(X)
    columns = {}
    for name, spec in given.items():
        names = spec if isinstance(spec, list | tuple) and n_rows is not None else ()
        texts = len(names) not in (0, n_rows) and all(isinstance(n, str) for n in names)
        if is_name(spec) or texts:
            if X is None:
                raise ValueError(
                    f"X must be given for {name}={spec!r}, a column of it."
                )
            columns[name] = column_of(X, spec, name, "pass the values.")
        elif spec is not None:
            columns[name] = spec(X) if callable(spec) else spec
        if name in columns and not hasattr(columns[name], "__len__"):
            raise ValueError(f"{name} must be a column of X or an array; got {spec!r}.")
    check_aligned(X=X, **others, **columns)
    return columns


class TakesMetadata(BaseEstimator):
    """An estimator with parameters that say where columns come from (`NAMES`).

    Where one of them is True, the methods that have it as an argument request it.
    """

    def get_metadata_routing(self) -> Any:
        """Return the metadata that the estimator requests.

        Returns
        -------
        MetadataRequest
        """
        request = super().get_metadata_routing()
        for name in NAMES:
            if getattr(self, name, None) is not True:
                continue
            for method in METHODS:
                requests = getattr(request, method)
                if requests.requests.get(name, False) is None:
                    requests.add_request(param=name, alias=True)
        return request
