"""Where the group, the query and the cluster of a row come from.

An estimator or a scorer names a column of X, or asks for metadata; both ways end here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import narwhals as nw
import numpy as np

from .sklearn_private import n_rows_of, routing_enabled
from .validation import Array, as_numbers, check_aligned

#: The name of a column of a frame: text, or an integer where pandas counts columns.
Name = str | int
#: What `sensitive_features=`, `qid=`, `cluster=` of a constructor may be: a column
#: name, a list of them, a function of X, True for metadata, or None.
ColumnSpec = Name | list[Name] | Callable[[Any], Any] | None


#: Arguments that a constructor may say where to find, and the methods that take them.
NAMES = ("sensitive_features", "qid", "cluster")
RESPONSES = ("predict", "predict_proba", "decision_function")
METHODS = ("fit", "transform", "inverse_transform", "score", *RESPONSES)


def is_name(spec: Any) -> bool:
    """Return whether it may be the name of a column."""
    return isinstance(spec, str | int | np.integer) and not isinstance(spec, bool)


def _are_names(spec: Any) -> bool:
    return isinstance(spec, list | tuple) and bool(spec) and all(map(is_name, spec))


def check_spec(spec: Any, name: str) -> None:
    """Raise a ValueError unless `spec` says where a column comes from."""
    if not (
        spec is None
        or spec is True
        or is_name(spec)
        or _are_names(spec)
        or callable(spec)
    ):
        raise ValueError(
            f"{name} must be a column name, a list of column names, a function of X, "
            f"True (passed as metadata) or None; got {spec!r}."
        )


def is_column(spec: ColumnSpec) -> bool:
    """Return whether the values are taken from X."""
    return spec is not None and not isinstance(spec, bool)


def named_columns(*specs: ColumnSpec) -> list[Name]:
    """Return the names of columns in the specifications."""
    names: list[Name] = []
    for spec in specs:
        if isinstance(spec, list | tuple):
            names.extend(spec)
        elif is_name(spec):
            names.append(cast("Name", spec))
    return list(dict.fromkeys(names))


def frame_names(X: Any) -> list[Any] | None:
    """Return the names of the columns of a frame of any library, else None.

    Those of pandas are asked for directly: it may name two columns alike, or by
    integers, where other libraries cannot.
    """
    if nw.dependencies.is_pandas_dataframe(X):
        return list(X.columns)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return list(frame.columns) if isinstance(frame, nw.DataFrame) else None


def take_frame(X: Any, names: Any) -> Any:
    """Return a column of a frame, or a frame of a list of columns."""
    if nw.dependencies.is_pandas_dataframe(X):
        return X[names]
    frame = nw.from_native(X, eager_only=True)
    chosen = frame.select(names) if isinstance(names, list) else frame[names]
    return chosen.to_native()


def without_columns(X: Any, names: Iterable[Name]) -> Any:
    """Return X without the named columns, if it is a frame that has them."""
    known = frame_names(X) if names else None
    dropped = [name for name in names if name in (known or ())]
    if not dropped:
        return X
    if nw.dependencies.is_pandas_dataframe(X):
        return X.drop(columns=dropped)
    return nw.from_native(X, eager_only=True).drop(dropped).to_native()


def numeric_columns(X: Any, but: Iterable[Name], what: str) -> Array:
    """Return the columns of a frame as floats, shape (n, d), without those named.

    A ValueError says that there are no others; it calls them `what`.
    """
    rest = without_columns(X, but)
    kept = frame_names(rest) or []
    if not kept:
        raise ValueError(
            f"X must have a column of {what} beside {', '.join(map(repr, but))}; it "
            "has none."
        )
    columns = [as_numbers(take_frame(rest, name), f"X[{name!r}]") for name in kept]
    return np.column_stack(columns)


def _check_named(X: Any, spec: Any, name: str, otherwise: str) -> list[Any]:
    """Return the names of the columns of X, or raise a ValueError that says why not."""
    known = frame_names(X)
    if known is not None:
        return known
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise ValueError(
            f"X must be in memory for {name}={spec!r}; got a lazy frame "
            f"({type(X).__module__}.{type(X).__name__}): pass what its collect() or "
            "compute() returns."
        )
    raise ValueError(
        f"{name}={spec!r} names a column, but X arrives here without column names "
        f"({type(X).__name__}): {otherwise}"
    )


def column_of(X: Any, spec: ColumnSpec, name: str, otherwise: str | None = None) -> Any:
    """Return the column (or frame of columns) of X that `spec` names, or its result.

    `otherwise` says what to do if X has no names; None: what to do in scikit-learn.
    """
    if callable(spec):
        return spec(X)
    if otherwise is None:
        otherwise = (
            "transformers before it in a Pipeline return frames after "
            '.set_output(transform="pandas") of the Pipeline; or pass it as metadata, '
            f"with {name}=True and sklearn.set_config(enable_metadata_routing=True)."
        )
    known = _check_named(X, spec, name, otherwise)
    names: Any = list(spec) if isinstance(spec, list | tuple) else spec
    if isinstance(names, list) and len(names) == 1:
        names = names[0]
    for column in named_columns(names):
        if known.count(column) != 1:
            raise ValueError(_not_one(column, known, name))
    return take_frame(X, names)


def _not_one(column: Any, known: list[Any], name: str) -> str:
    """Return the error of a name that no column of X has, or several have."""
    if column in known:
        times = known.count(column)
        return f"{name} must name one column of X; {times} are called {column!r}."
    why = f"{name} must name columns of X; there is no {column!r} among {known}."
    renamed = [other for other in known if str(other).endswith(f"__{column}")]
    if renamed:
        why += (
            f" Is it {renamed[0]!r}? verbose_feature_names_out=False keeps the name in "
            "a ColumnTransformer."
        )
    return why


def take_column(X: Any, spec: ColumnSpec, given: Any, name: str) -> Any:
    """Return the column that the constructor names, else what was given.

    It must not be given twice, nor be missing where the constructor says that it is
    passed.
    """
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


def resolve_column(X: Any, given: Any, name: str) -> Any:
    """Return a column that is given by its name, by a function of X, or as values.

    A list of text that is as long as X holds the values, not names.
    """
    if callable(given):
        return given(X)
    n_rows = None if X is None else n_rows_of(X)
    named = is_name(given) or (
        isinstance(given, list | tuple)
        and len(given) not in (0, n_rows)
        and n_rows is not None
        and all(isinstance(label, str) for label in given)
    )
    if not named:
        check_aligned(X=X, **{name: given})
        return given
    if X is None:
        raise ValueError(f"X must be given for {name}={given!r}, a column of it.")
    return column_of(X, given, name, "pass the values.")


class TakesMetadata:
    """An estimator with parameters that say where columns come from (`NAMES`).

    Where one of them is True, the methods that have it as an argument request it.
    """

    def get_metadata_routing(self) -> Any:
        """Return what metadata the estimator requests.

        Returns
        -------
        MetadataRequest
        """
        # The next class is BaseEstimator, which a mixin does not inherit from.
        request = super().get_metadata_routing()  # type: ignore[misc]
        return with_requests(request, self)


def with_requests(request: Any, estimator: Any) -> Any:
    """Return the request, with what the constructor says is metadata."""
    for name in NAMES:
        if getattr(estimator, name, None) is not True:
            continue
        for method in METHODS:
            requests = getattr(request, method, None)
            if requests and requests.requests.get(name, False) is None:
                requests.add_request(param=name, alias=True)
    return request
