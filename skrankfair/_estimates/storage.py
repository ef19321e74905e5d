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
from zoneinfo import ZoneInfo

import numpy as np

from .._inputs.validation import Array

SCHEMA = "skrankfair.GroupEstimates"
#: Raised when a later reader must know to read what is written; never reused.
SCHEMA_VERSION = 1

# Up to here every reader of JSON holds an integer.
_EXACT = 2**53
# More elements than this are a mistake, or a bomb: 2 GiB.
_MOST_ELEMENTS = 1 << 28
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

    `later` are parts that older documents lack, with what they then are.
    """
    document = read_json(text)
    check_schema(document)
    with understood():
        parts = {name: decoded(document[name]) for name in names}
        for name, absent in (later or {}).items():
            parts[name] = decoded(document[name]) if name in document else absent
        return parts


def read_json(text: Any) -> Any:
    """Return what strict JSON holds; a ValueError for anything else."""
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


def _refuse(value: object, where: str, advice: str = "") -> ValueError:
    return ValueError(
        f"This result cannot be stored: {where} has {value!r}, of type "
        f"{type(value).__name__}, which the schema does not hold.{advice}"
    )


# Values to JSON


def _encode(value: Any, where: str) -> Any:
    """Return a value in terms of JSON; `where` is the part of the result it is in."""
    if value is None or isinstance(value, bool) or type(value) in (str, int, float):
        return _encode_scalar(value)
    if isinstance(value, np.ndarray):
        return {"array": _encode_array(value, where)}
    if hasattr(value, "tocoo"):
        entries = value.tocoo()
        columns = {"row": entries.row, "column": entries.col, "values": entries.data}
        encoded = {k: _encode(v, where) for k, v in columns.items()}
        return {"sparse": {"shape": list(value.shape), **encoded}}
    if isinstance(value, np.generic):
        return {"scalar": _encode_array(np.asarray(value), where)}
    if type(value) in (tuple, list):
        values = [_encode(one, where) for one in value]
        return values if type(value) is list else {"tuple": values}
    if isinstance(value, Mapping):
        pairs = [[_encode(k, where), _encode(v, where)] for k, v in value.items()]
        return {"map": pairs}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    for name, thing in _REGISTERED.items():
        if value is thing:
            return {"function": name}
        if type(value) is thing:
            return {"object": name, "fields": _encode_fields(value, where)}
    if callable(value):
        raise _refuse(
            value, where, " Functions of yours are not stored; weights can be an array."
        )
    return _encode_label(value, where)


def _encode_scalar(value: Any) -> Any:
    """Return what JSON has itself, or a number that not every reader would take."""
    if type(value) is int and abs(value) > _EXACT:
        return {"integer": str(value)}
    if type(value) is float and not math.isfinite(value):
        return {"number": str(value)}
    return value


def _encode_fields(value: Any, where: str) -> dict[str, Any]:
    """Return the fields of a dataclass, those at their defaults too."""
    return {
        field.name: _encode(getattr(value, field.name), f"{where}.{field.name}")
        for field in fields(value)
    }


def _encode_array(array: Array, where: str) -> dict[str, Any]:
    """Return type, shape and values; with their places if most are +0."""
    kind, flat = array.dtype.kind, array.ravel()
    if kind == "O":
        values = [_encode(value, where) for value in flat.tolist()]
        return {"type": "object", "shape": list(array.shape), "values": values}
    encoded: dict[str, Any] = {"type": str(array.dtype), "shape": list(array.shape)}
    if kind in "mM":
        flat = flat.view(np.int64)
    elif kind not in "biufU":
        raise _refuse(array.dtype, where)
    if array.ndim and kind in "biuf":
        some = np.flatnonzero((flat != 0) | (kind == "f" and np.signbit(flat)))
        if 2 * some.size < flat.size:
            encoded["places"], flat = some.tolist(), flat[some]
    values = flat.tolist()
    if flat.dtype.kind == "f":
        values = [v if math.isfinite(v) else str(v) for v in values]
    elif flat.dtype.kind in "iu":
        values = [v if abs(v) <= _EXACT else str(v) for v in values]
    return {**encoded, "values": values}


def _zone(value: Any) -> str | None:
    """Return the name of a time zone; None for none, or an offset that stays."""
    name = getattr(value.tzinfo, "key", None) or getattr(value.tzinfo, "zone", None)
    return name if isinstance(name, str) else None


def _encode_label(value: Any, where: str) -> dict[str, Any]:
    """Return a label of another type: a date, a time or an interval."""
    import pandas as pd

    if isinstance(value, pd.Timestamp):
        return {"timestamp": [value.isoformat(), value.unit, _zone(value)]}
    if isinstance(value, pd.Interval):
        ends = [_encode(value.left, where), _encode(value.right, where)]
        return {"interval": [*ends, value.closed]}
    if isinstance(value, datetime):
        return {"datetime": [value.isoformat(), _zone(value)]}
    if type(value) is date:
        return {"date": value.isoformat()}
    raise _refuse(value, where, " Use strings for labels.")


# And back


def decoded(encoded: Any) -> Any:
    """Return the value that JSON stands for."""
    if isinstance(encoded, list):
        return [decoded(value) for value in encoded]
    if not isinstance(encoded, dict):
        return encoded
    if "object" in encoded:
        parts = {k: decoded(v) for k, v in encoded["fields"].items()}
        return _object(encoded["object"], parts)
    ((kind, value),) = encoded.items()
    return _DECODERS[kind](value)


def _object(name: str, parts: dict[str, Any]) -> Any:
    """Return a registered object, or what stands today for one of version 0.1.0."""
    if name in _OF_0_1_0:
        return _of_0_1_0(name, parts)
    if "folded" in parts:
        parts["remainder"] = parts.pop("folded")
        parts.pop("pairs", None)
    if name == "Replicates" and parts["by_group"].ndim == 4:  # with rounding errors
        parts |= {key: parts[key].sum(axis=0) for key in ("by_group", "shared")}
    make = _REGISTERED[name]
    if not isinstance(make, type):
        raise TypeError(f"{name!r} has no fields")
    return make(**parts)


_OF_0_1_0 = (
    *("FewColumns", "Sparse", "Products", "Folded", "Table", "SparseTable"),
    *("RefitSums", "PairedReplicates", "DifferenceToRest"),
)


def _of_0_1_0(name: str, parts: dict[str, Any]) -> Any:
    """Return what stands today for an object that only version 0.1.0 writes."""
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


def _decode_sparse(encoded: Mapping[str, Any]) -> Any:
    """Return a sparse array of its shape."""
    from scipy import sparse

    row, column, values = (decoded(encoded[k]) for k in ("row", "column", "values"))
    return sparse.csr_array((values, (row, column)), shape=encoded["shape"])


def _function(name: str) -> Any:
    function = _REGISTERED[name]
    if isinstance(function, type):
        raise TypeError(f"{name!r} is no function")
    return function


def _decode_array(encoded: Mapping[str, Any]) -> Array:
    """Return an array of its type and shape."""
    shape, values = tuple(encoded["shape"]), encoded["values"]
    if math.prod(shape) > _MOST_ELEMENTS or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape}")
    if encoded["type"] == "object":
        array = np.empty(math.prod(shape), dtype=object)
        array[:] = [decoded(value) for value in values]
        return array.reshape(shape)
    dtype = np.dtype(encoded["type"])
    if dtype.kind in "fiumM":
        cast: Any = float if dtype.kind == "f" else int
        values = [cast(value) for value in values]
    raw = np.dtype(np.int64) if dtype.kind in "mM" else dtype
    given = np.array(values, dtype=raw)
    if "places" in encoded:
        array = np.zeros(math.prod(shape), dtype=raw)
        array[encoded["places"]] = given
        given = array
    return given.view(dtype).reshape(shape)


def _decode_datetime(value: Any) -> datetime:
    text, zone = value
    moment = datetime.fromisoformat(text)
    return moment if zone is None else moment.astimezone(ZoneInfo(zone))


def _decode_timestamp(value: Any) -> Any:
    import pandas as pd

    text, unit, zone = value
    moment = pd.Timestamp(text).as_unit(unit)
    return moment if zone is None else moment.tz_convert(zone)


def _decode_interval(value: Any) -> Any:
    import pandas as pd

    left, right, closed = value
    return pd.Interval(decoded(left), decoded(right), closed)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "integer": int,
    "number": float,
    "tuple": lambda values: tuple(decoded(value) for value in values),
    "map": lambda pairs: {decoded(k): decoded(v) for k, v in pairs},
    "slice": lambda ends: slice(*ends),
    "array": _decode_array,
    "sparse": _decode_sparse,
    "scalar": lambda encoded: _decode_array(encoded)[()],
    "function": _function,
    "timestamp": _decode_timestamp,
    "interval": _decode_interval,
    "datetime": _decode_datetime,
    "date": date.fromisoformat,
}
