"""Results as JSON and back: a versioned schema without pickles, exact to the bit.

JSON has no tuples, dates or NaN, and one kind of number. What it lacks is an object
with one key that says what it is: ``{"tuple": [...]}``, ``{"number": "nan"}``. Arrays
are ``{"array": ...}`` with a type, a shape and their values, which name their places
where most are zero. Classes and functions of the package are ``{"object": name,
"fields": ...}`` and ``{"function": name}``, by names that `stored` registers; nothing
else is ever imported or called.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import date, datetime
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy import sparse

from .._inputs.validation import Array

SCHEMA = "skrankfair.GroupEstimates"
#: Raised when a later reader must know to read what is written; never reused.
SCHEMA_VERSION = 1

# More bytes that are not written out, such as zeros, are a mistake, or a bomb.
_MOST_UNWRITTEN = 1 << 26
# Arrays of more bytes are written out with their zeros.
_MOST_WITH_PLACES = 1 << 21
# Kinds of arrays that are stored: booleans, numbers, text, times and objects.
_KINDS = "biufUmMO"
_REGISTERED: dict[str, Any] = {}

T = TypeVar("T")


def stored(name: str) -> Callable[[T], T]:
    """Register a frozen dataclass or a function by a name that stays for ever."""

    def register(thing: T) -> T:
        _REGISTERED[name] = thing
        return thing

    return register


def to_text(parts: Mapping[str, Any], schema: str = SCHEMA) -> str:
    """Return these parts as strict JSON; name what the schema does not hold."""
    head = {
        "schema": schema,
        "schema_version": SCHEMA_VERSION,
        "skrankfair_version": sys.modules[__name__.partition(".")[0]].__version__,
    }
    body = {name: _encode(value, name) for name, value in parts.items()}
    return json.dumps({**head, **body}, allow_nan=False)


def read_json(text: Any) -> Any:
    """Return the content of strict JSON; a ValueError for anything else."""
    if not isinstance(text, str | bytes | bytearray):
        raise ValueError(
            f"text must be what to_json() returned, a string; got {type(text)}."
        )
    try:
        return json.loads(text, parse_constant=_not_strict)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text must be JSON; it cannot be read ({error}).") from error


def check_schema(document: Any, schema: str = SCHEMA, name: object = "text") -> None:
    """Raise a ValueError for a document of another schema, or of a newer version."""
    other = document.get("schema") if isinstance(document, dict) else None
    if other != schema:
        raise ValueError(
            f"{name} must have the schema {schema!r}, as to_json() writes it; got "
            f"{other!r}."
        )
    version = document.get("schema_version")
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise ValueError(
            f"{name} must have a schema_version from 1 to {SCHEMA_VERSION}; got "
            f"{version!r}, written by skrankfair "
            f"{document.get('skrankfair_version')!r}. Update skrankfair to read it."
        )


@contextmanager
def understood() -> Iterator[None]:
    """Turn whatever goes wrong with values from a document into a ValueError."""
    wrong = (LookupError, TypeError, ArithmeticError, AttributeError, ValueError)
    try:
        with np.errstate(all="ignore"):
            yield
    except (*wrong, RecursionError, MemoryError) as error:
        raise ValueError(
            "text must be a complete result as to_json() writes it; it has wrong or "
            f"missing parts ({type(error).__name__}: {error})."
        ) from error


def _not_strict(constant: str) -> None:
    raise ValueError(f"{constant} is not strict JSON")


# Values to JSON


def _encode(value: Any, where: str) -> Any:
    """Return a value in terms of JSON; `where` is the part of the result it is in."""
    plain = value is None or type(value) in (bool, str, int)
    if plain or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, np.ndarray | np.generic):
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {kind: _encode_array(np.asarray(value), where)}
    if hasattr(value, "tocoo"):
        entries = value.tocoo()
        columns = {"row": entries.row, "column": entries.col, "values": entries.data}
        encoded = {k: _encode(v, where) for k, v in columns.items()}
        return {"sparse": {"shape": list(value.shape), **encoded}}
    if type(value) is list:
        return [_encode(one, where) for one in value]
    for name, thing in _REGISTERED.items():
        if value is thing:
            return {"function": name}
        if type(value) is thing:
            parts = {each.name: getattr(value, each.name) for each in fields(value)}
            encoded = {k: _encode(part, f"{where}.{k}") for k, part in parts.items()}
            return {"object": name, "fields": encoded}
    for name, (type_of, split, _) in _TYPES.items():
        if isinstance(value, type_of):
            return {name: [_encode(part, where) for part in split(value)]}
    advice = " Use strings for labels."
    if callable(value):
        advice = " Functions of yours are not stored; weights can be an array."
    raise ValueError(
        f"This result cannot be stored: {where} has {value!r}, of type "
        f"{type(value).__name__}, which the schema does not hold.{advice}"
    )


#: By name: a type, a function to its parts, and one from parts to values.
_TYPES: dict[str, tuple[type, Callable[[Any], Any], Callable[..., Any]]] = {
    "number": (float, lambda infinite: (str(infinite),), float),
    "tuple": (tuple, iter, lambda *values: values),
    "map": (Mapping, lambda of: map(list, of.items()), lambda *of: dict(of)),
    "slice": (slice, lambda ends: (ends.start, ends.stop, ends.step), slice),
    "interval": (
        pd.Interval,
        lambda bins: (bins.left, bins.right, bins.closed),
        pd.Interval,
    ),
    "timestamp": (
        pd.Timestamp,
        lambda moment: (moment.isoformat(), moment.unit),
        lambda text, unit, *zone: pd.Timestamp(text).as_unit(unit),
    ),
    "datetime": (
        datetime,
        lambda moment: (moment.isoformat(),),
        lambda text, *zone: datetime.fromisoformat(text),
    ),
    "date": (date, lambda day: (day.isoformat(),), date.fromisoformat),
}


def _encode_array(array: Array, where: str) -> dict[str, Any]:
    """Return type, shape and values; only those other than +0, by place, if few are."""
    kind, flat = array.dtype.kind, array.ravel()
    if kind not in _KINDS:
        return _encode(array.dtype, where)  # which is refused
    encoded: dict[str, Any] = {"type": str(array.dtype), "shape": list(array.shape)}
    if array.ndim and kind in "biuf" and array.nbytes <= _MOST_WITH_PLACES:
        some = np.flatnonzero((flat != 0) | (kind == "f" and np.signbit(flat)))
        if 2 * some.size < flat.size:
            encoded["places"], flat = some.tolist(), flat[some]
    values = (flat.view(np.int64) if kind in "mM" else flat).tolist()
    if kind == "O":
        values = [_encode(value, where) for value in values]
    elif kind == "f":
        values = [v if math.isfinite(v) else str(v) for v in values]
    return {**encoded, "values": values}


# And back


def decoded(encoded: Any) -> Any:
    """Return the value that JSON stands for; a ValueError for what is not sound."""
    return _Reader().value(encoded)


class _Reader:
    """A reader of JSON values, which checks the size of arrays before it makes them."""

    def __init__(self) -> None:
        self.room = _MOST_UNWRITTEN

    def take(self, n_bytes: int) -> None:
        """Count bytes that are not in the text; a ValueError if they are too many."""
        self.room -= n_bytes
        if self.room < 0:
            raise ValueError(f"{_MOST_UNWRITTEN:,} bytes and more that are not written")

    def value(self, encoded: Any) -> Any:
        """Return the value that some JSON stands for."""
        if isinstance(encoded, list):
            return [self.value(value) for value in encoded]
        if not isinstance(encoded, dict):
            return encoded
        if "object" in encoded:
            parts = {k: self.value(v) for k, v in encoded["fields"].items()}
            return _object(encoded["object"], parts)
        ((kind, content),) = encoded.items()
        if kind == "function":
            return _registered(content, is_class=False)
        if kind in ("array", "scalar"):
            array = self.array(content)
            return array if kind == "array" else array[()]
        if kind == "sparse":
            return self.sparse(**content)
        if kind == "integer":  # which older versions wrote as text
            return int(content)
        if kind not in _TYPES:
            raise ValueError(f"an unknown kind of value, {kind!r}")
        made_of = [content] if isinstance(content, str) else self.value(content)
        return _TYPES[kind][2](*made_of)

    def sparse(self, shape: list[int], row: Any, column: Any, values: Any) -> Any:
        """Return a sparse array of its shape."""
        n_rows, n_columns = _checked_shape(shape)
        self.take(8 * n_rows)
        row, column, values = map(self.value, (row, column, values))
        return sparse.csr_array((values, (row, column)), shape=(n_rows, n_columns))

    def array(self, encoded: Mapping[str, Any]) -> Array:
        """Return an array of its type and shape, 0 but at its places if it has any."""
        shape, values = _checked_shape(encoded["shape"]), encoded["values"]
        dtype, size = np.dtype(encoded["type"]), math.prod(shape)
        places = encoded.get("places", range(size))
        if dtype.kind not in _KINDS or len(values) != len(places):
            raise ValueError(f"{len(values)} values of an array of type {dtype}")
        in_text = len(values) * dtype.itemsize
        if dtype.kind == "U":
            in_text = 4 * sum(map(len, values))
        self.take(size * dtype.itemsize - in_text)
        if dtype.kind == "O":
            return np.fromiter(self.value(values), object, size).reshape(shape)
        raw = np.dtype(np.int64) if dtype.kind in "mM" else dtype
        array = np.array(values, dtype=raw)
        if "places" in encoded:
            given, array = array, np.zeros(size, dtype=raw)
            array[places] = given
        return array.view(dtype).reshape(shape)


def _checked_shape(shape: list[int]) -> list[int]:
    """Return the shape of an array if it is a list of counts."""
    if not all(type(count) is int and count >= 0 for count in shape):
        raise ValueError(f"an array of shape {shape}")
    return shape


def _object(name: str, parts: dict[str, Any]) -> Any:
    """Return an object of its fields, also of a class that an older version wrote.

    A class whose values may be out of range has a method `check`.
    """
    from . import older

    if name in older.FUNCTIONS and not parts:
        return _registered(name, is_class=False)
    make = older.CLASSES.get(name) or _registered(name, is_class=True)
    made = make(**older.present_fields(parts))
    if hasattr(made, "check"):
        made.check()
    return made


def _registered(name: str, *, is_class: bool) -> Any:
    """Return the class or function of a name; a TypeError if it is the other."""
    thing = _REGISTERED[name]
    if isinstance(thing, type) != is_class:
        raise TypeError(f"{name!r} is not a {'class' if is_class else 'function'}")
    return thing
