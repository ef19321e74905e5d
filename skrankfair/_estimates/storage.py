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
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import date, datetime
from functools import cache
from typing import Any, TypeVar

import numpy as np

from .._inputs.validation import Array

SCHEMA = "skrankfair.GroupEstimates"
#: Raised when a later reader must know to read what is written; never reused.
SCHEMA_VERSION = 1

# More bytes that are not written out, such as zeros, are a mistake, or a bomb.
_MOST_UNWRITTEN = 1 << 26
# Arrays of more bytes are written out with their zeros.
_MOST_WITH_PLACES = 1 << 21
_TYPE = re.compile(r"object|bool|u?int\d+|float\d+|<U\d+|(datetime|timedelta)64.*")
_REGISTERED: dict[str, Any] = {}

T = TypeVar("T")


def stored(name: str) -> Callable[[T], T]:
    """Register a frozen dataclass or a function by a name that stays for ever."""

    def register(thing: T) -> T:
        if name in _REGISTERED:
            raise ValueError(f"{name!r} is the name of {_REGISTERED[name]!r}.")
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


def from_text(
    text: Any, names: tuple[str, ...], later: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the parts of a document of results, by name.

    `later` are parts that older documents lack, each with the value it then has.
    """
    document = read_json(text)
    check_schema(document)
    with understood():
        given = [*names, *(name for name in later or {} if name in document)]
        parts = {name: decoded(document[name]) for name in given}
    return {**(later or {}), **parts}


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


def check_schema(document: Any, schema: str = SCHEMA) -> None:
    """Raise a ValueError for a document of another schema, or of a newer version."""
    if not isinstance(document, dict) or document.get("schema") != schema:
        other = document.get("schema") if isinstance(document, dict) else None
        raise ValueError(
            f"text must have the schema {schema!r}, as to_json() writes it; got "
            f"{other!r}."
        )
    version = document.get("schema_version")
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise ValueError(
            f"text must have a schema_version from 1 to {SCHEMA_VERSION}; got "
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
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float and math.isfinite(value):
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
    for name, (type_of, parts_of, _) in _types().items():
        if isinstance(value, type_of):
            return {name: [_encode(part, where) for part in parts_of(value)]}
    advice = " Use strings for labels."
    if callable(value):
        advice = " Functions of yours are not stored; weights can be an array."
    raise ValueError(
        f"This result cannot be stored: {where} has {value!r}, of type "
        f"{type(value).__name__}, which the schema does not hold.{advice}"
    )


@cache
def _types() -> dict[str, tuple[type, Callable[[Any], Any], Callable[..., Any]]]:
    """Return by name: a type, a function to its parts, and one from parts to values."""
    import pandas as pd

    return {
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
    if kind == "O":
        values = [_encode(value, where) for value in flat.tolist()]
        return {"type": "object", "shape": list(array.shape), "values": values}
    encoded: dict[str, Any] = {"type": str(array.dtype), "shape": list(array.shape)}
    if kind in "mM":
        flat = flat.view(np.int64)
    elif kind not in "biufU":
        return _encode(array.dtype, where)  # which is refused
    if array.ndim and kind in "biuf" and array.nbytes <= _MOST_WITH_PLACES:
        some = np.flatnonzero((flat != 0) | (kind == "f" and np.signbit(flat)))
        if 2 * some.size < flat.size:
            encoded["places"], flat = some.tolist(), flat[some]
    values = flat.tolist()
    if flat.dtype.kind == "f":
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
            if encoded["object"] not in (*_REGISTERED, *_OF_0_1_0):
                raise ValueError(f"an unknown object, {encoded['object']!r}")
            parts = {k: self.value(v) for k, v in encoded["fields"].items()}
            return _object(encoded["object"], parts)
        ((kind, value),) = encoded.items()
        if kind in _types():
            made_of = [value] if isinstance(value, str) else self.value(value)
            return _types()[kind][2](*made_of)
        readers: dict[str, Callable[[Any], Any]] = {
            "integer": int,
            "function": _function,
            "array": self.array,
            "scalar": lambda of_one: self.array(of_one)[()],
            "sparse": self.sparse,
        }
        if kind not in readers:
            raise ValueError(f"an unknown kind of value, {kind!r}")
        return readers[kind](value)

    def sparse(self, encoded: Mapping[str, Any]) -> Any:
        """Return a sparse array of its shape."""
        from scipy import sparse

        n_rows, n_columns = _checked_shape(encoded["shape"])
        self.take(8 * n_rows)
        row, column, values = (
            self.value(encoded[k]) for k in ("row", "column", "values")
        )
        return sparse.csr_array((values, (row, column)), shape=(n_rows, n_columns))

    def array(self, encoded: Mapping[str, Any]) -> Array:
        """Return an array of its type and shape."""
        shape, values = _checked_shape(encoded["shape"]), encoded["values"]
        size, name = math.prod(shape), encoded["type"]
        if not (_TYPE.fullmatch(name) and isinstance(values, list)):
            raise ValueError(f"an array of type {name!r}")
        if len(values) != len(encoded.get("places", range(size))):
            raise ValueError(f"{len(values)} values of an array of {size}")
        dtype = np.dtype(name)
        self.take((size - len(values)) * dtype.itemsize)
        if name == "object":
            array = np.empty(size, dtype=object)
            array[:] = self.value(values)
            return array.reshape(shape)
        if dtype.kind == "U":
            self.take(sum(dtype.itemsize - 4 * len(value) for value in values))
        if dtype.kind in "fiumM":
            cast: Any = float if dtype.kind == "f" else int
            values = [cast(value) for value in values]
        raw = np.dtype(np.int64) if dtype.kind in "mM" else dtype
        given = np.array(values, dtype=raw)
        if "places" in encoded:
            array = np.zeros(size, dtype=raw)
            array[encoded["places"]] = given
            given = array
        return given.view(dtype).reshape(shape)


def _checked_shape(shape: Any) -> list[int]:
    """Return the shape of an array if it is a list of counts."""
    if not all(type(count) is int and count >= 0 for count in shape):
        raise ValueError(f"an array of shape {shape}")
    return list(shape)


def _function(name: str) -> Any:
    function = _REGISTERED[name]
    if isinstance(function, type):
        raise TypeError(f"{name!r} is no function")
    return function


def _object(name: str, parts: dict[str, Any]) -> Any:
    """Return a registered object, made from the fields of this or an older version."""
    if name in _OF_0_1_0:
        return _of_0_1_0(name, parts)
    if "folded" in parts:
        parts["remainder"] = parts.pop("folded")
        parts.pop("pairs", None)
    if "leading" in parts:
        table, leading = parts.pop("table"), parts.pop("leading")
        parts |= {"rows": table or leading, "compacted": table is None}
    if name == "Replicates" and parts["by_group"].ndim == 4:  # with rounding errors
        parts |= {key: parts[key].sum(axis=0) for key in ("by_group", "shared")}
    if name == "ResampledSums" and "deviations" not in parts:
        name = _with_deviations(parts)
    make = _REGISTERED[name]
    if not isinstance(make, type):
        raise TypeError(f"{name!r} has no fields")
    return make(**parts)


def _with_deviations(parts: dict[str, Any]) -> str:
    """Replace the covariance of an older version by deviations; return the class."""
    parts.setdefault("adds_up", False)
    kept = parts.pop("kept")
    if parts["n_resamples"] is None:  # only the bootstrap was of resamples
        for unused in ("n_resamples", "seed", "bias", "finalize"):
            del parts[unused]
        return "ClusterSums"
    parts["deviations"] = None
    if kept is not None:
        known = np.isfinite(np.diag(kept))
        squares, axes = np.linalg.eigh(kept[np.ix_(known, known)])
        parts["deviations"] = np.full(kept.shape, np.nan)
        roots = np.sqrt(np.maximum(squares, 0.0))[:, None] * axes.T
        parts["deviations"][: len(roots), known] = roots
        parts["deviations"][len(roots) :, known] = 0.0
    return "ResampledSums"


_OF_0_1_0 = (
    *("FewColumns", "Sparse", "Products", "Folded", "Table", "SparseTable"),
    *("RefitSums", "PairedReplicates", "DifferenceToRest"),
)


def _of_0_1_0(name: str, parts: dict[str, Any]) -> Any:
    """Return the present object for one of a class that only version 0.1.0 wrote."""
    from scipy import sparse

    from .finalize import ratios_minus_rest
    from .remainder import Gram, Remainder
    from .resampled import ResampledSums
    from .rows import Rows

    if name == "FewColumns":  # columns of which each entry has few
        size, few = parts["at"].shape
        starts = np.arange(0, size * few + 1, few)
        where = parts["values"].ravel(), parts["at"].ravel(), starts
        return sparse.csr_array(where, shape=(size, parts["width"]))
    if name == "Sparse":
        where = np.divmod(parts["key"], parts["size"])
        return sparse.csr_array((parts["values"], where), shape=(parts["size"],) * 2)
    if name == "Products":
        return Gram(**parts | {"matrix": sparse.csr_array(parts["matrix"])})
    if name == "Folded":
        sizes = parts.get("sizes", 0.0)
        n_shared = parts["scatter"].n_shared
        return Remainder(**parts | {"sizes": np.broadcast_to(sizes, n_shared)})
    if name == "DifferenceToRest":
        return ratios_minus_rest(**parts)
    if name == "RefitSums":
        parts.pop("curves", None)
        return _object("ResampledSums", parts)
    if name == "PairedReplicates":
        keys = ("first", "by_group", "shared", "replicates")
        return ResampledSums.of_pair(*(parts[key] for key in keys))
    weight = parts.pop("weight")
    weight = np.ones(len(parts["shared"])) if weight is None else weight
    parts["shared"] = parts["shared"] * weight[:, None]
    if name == "Table":
        parts["by_group"] = parts["by_group"] * weight[:, None, None]
        return Rows.of_all(**parts)
    times = sparse.diags_array(weight[parts["row"]])
    return Rows(**parts | {"values": times @ parts["values"]})
