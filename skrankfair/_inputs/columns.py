"""Where the group, the query and the cluster of a row come from.

An estimator or a scorer names a column of X, or asks for metadata; both ways end here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, cast

import narwhals as nw

from .sklearn_private import n_rows_of

#: What `sensitive_features=`, `qid=`, `cluster=` of a constructor may be: a column
#: name, a list of them, a function of X, True for metadata, or None.
ColumnSpec = str | list[str] | Callable[[Any], Any] | bool | None


def check_spec(spec: Any, name: str) -> None:
    """Raise a ValueError unless `spec` says where a column comes from."""
    names = (
        isinstance(spec, list | tuple)
        and spec
        and all(isinstance(part, str) for part in spec)
    )
    if not (
        spec is None or spec is True or isinstance(spec, str) or names or callable(spec)
    ):
        raise ValueError(
            f"{name} must be a column name, a list of column names, a function of X, "
            f"True (passed as metadata) or None; got {spec!r}."
        )


def is_column(spec: ColumnSpec) -> bool:
    """Return whether the values are taken from X."""
    return spec is not None and not isinstance(spec, bool)


def spec_text(spec: ColumnSpec) -> str:
    """Return how a repr shows where the column comes from."""
    return getattr(spec, "__name__", "a function") if callable(spec) else repr(spec)


def column_of(X: Any, spec: ColumnSpec, name: str) -> Any:
    """Return the column (or frame of columns) of X that `spec` names, or its result."""
    if callable(spec):
        return spec(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise ValueError(
            f"{name}={spec!r} names a column, but X arrives here without column names "
            f"({type(X).__name__}): pass it as metadata instead, with {name}=True and "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
    names = [spec] if isinstance(spec, str) else list(cast("list[str]", spec))
    missing = [column for column in names if column not in frame.columns]
    if missing:
        raise ValueError(
            f"{name} must name columns of X; there is no {missing[0]!r} among "
            f"{list(frame.columns)}."
        )
    native = frame[spec] if isinstance(spec, str) else frame.select(names)
    return native.to_native()


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
        raise ValueError(
            f"{name} must be passed as metadata, as {name}=True of the constructor "
            "says; got None. Inside other estimators turn on "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
    return given


def resolve_column(X: Any, given: Any, name: str) -> Any:
    """Return a column that is given by its name, by a function of X, or as values.

    A list of text that is as long as X holds the values, not names.
    """
    if callable(given):
        return given(X)
    n_rows = None if X is None else n_rows_of(X)
    named = isinstance(given, str) or (
        isinstance(given, list | tuple)
        and len(given) not in (0, n_rows)
        and n_rows is not None
        and all(isinstance(part, str) for part in given)
    )
    if not named:
        return given
    if X is None:
        raise ValueError(f"X must be given for {name}={given!r}, a column of it.")
    if not isinstance(
        nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame
    ):
        raise ValueError(
            f"{name}={given!r} names a column, but X has no column names "
            f"({type(X).__name__}): pass the values."
        )
    return column_of(X, given, name)


def declared_labels(values: Any) -> tuple[Hashable, ...]:
    """Return the labels that a column may have, where its type says them.

    A categorical of pandas and an Enum of polars do so: a subset of the rows still
    knows the labels that it lacks.
    """
    column = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(column, nw.DataFrame) and len(column.columns) == 1:
        column = column[column.columns[0]]
    if not isinstance(column, nw.Series):
        return ()
    if nw.get_native_namespace(column).__name__ == "pandas":
        categories = getattr(column.to_native().dtype, "categories", None)
        return () if categories is None else tuple(categories.tolist())
    return tuple(column.dtype.categories) if isinstance(column.dtype, nw.Enum) else ()
