"""Arguments are checked, and columns of any kind become arrays, with errors in words.

An error names the argument, the rule and the value received. A warning points at the
caller of the package, and long calls can say how far they are.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..exceptions import UndefinedMetricWarning

Array = NDArray[Any]

#: Types that are no frame or column of a library; asking narwhals would be slow.
PLAIN = (np.ndarray, list, tuple)
#: A float64 holds every integer up to this one.
_EXACT = 2**53
#: The largest integer that an argument may be: the largest int64.
_MOST_COUNTED = (1 << 63) - 1
#: Fourth powers of numbers up to this one can be summed, as the errors of squares need.
# Of numpy's type, as a float of Python would overflow beside single precision.
_LARGEST, _SMALLEST = np.float64(1e60), 1e-60


class NoRowError(ValueError):
    """An error: no row is left, as all lack a value or have weight 0.

    Where the rows are one part of the data it is added to the results of other parts,
    which then count the rows in `missing` too, as `GroupEstimates.missing` does.
    """

    def __init__(self, message: str, missing: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.missing = missing or {}

    def __add__(self, other: Any) -> Any:
        """Return the result of another part, or its error, with the counts of both."""
        missing = dict(Counter(self.missing) + Counter(other.missing))
        if isinstance(other, NoRowError):
            return NoRowError(str(other), missing)
        return replace(other, missing=missing)

    __radd__ = __add__


def check_choice(value: object, name: str, choices: Sequence[object]) -> None:
    """Raise a ValueError unless `value` is one of `choices`."""
    # By type first: the value may be an array, or refuse to be compared.
    if not any(isinstance(value, type(c)) and value == c for c in choices):
        options = ", ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"{name} must be one of {options}; got {value!r}."
            f"{did_you_mean(value, choices)}"
        )


def did_you_mean(value: object, choices: Iterable[object]) -> str:
    """Return a question that names the closest of the names, or nothing."""
    names = {choice.lower(): choice for choice in choices if isinstance(choice, str)}
    close = get_close_matches(value.lower(), names, 1) if isinstance(value, str) else []
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def check_given(**arguments: object) -> None:
    """Raise a ValueError naming the first argument that is None."""
    for name, value in arguments.items():
        if value is None:
            raise ValueError(f"{name} must be given; got None.")


def check_number(
    value: Any,
    name: str,
    low: float,
    high: float,
    *,
    integer: bool = False,
    inclusive: tuple[bool, bool] = (True, True),
    optional: bool = False,
) -> None:
    """Raise a ValueError unless `value` is a number of the interval.

    An `optional` number may be None.
    """
    if optional and value is None:
        return
    fits = isinstance(value, Integral if integer else Real)
    fits &= not isinstance(value, bool | np.bool_)
    if fits and isinstance(value, int):
        # An integer that no array or float can hold is no number to compute with.
        fits = abs(value) <= (_MOST_COUNTED if integer else sys.float_info.max)
    if fits:
        above = value >= low if inclusive[0] else value > low
        fits = bool(above and (value <= high if inclusive[1] else value < high))
    if not fits:
        kind = "an integer" if integer else "a number"
        left, right = "[" if inclusive[0] else "(", "]" if inclusive[1] else ")"
        raise ValueError(
            f"{name} must be {kind} in {left}{low}, {high}{right}; got {value!r}."
        )


def to_numpy(values: Any, name: str) -> Array:
    """Return the values of a column of any library as a numpy array."""
    if isinstance(values, np.ma.MaskedArray):
        masked, values = np.ma.getmaskarray(values), values.data
        values = np.where(masked, None, values) if masked.any() else values
    if isinstance(values, np.ndarray):
        if values.dtype.isnative:
            return values
        return values.astype(values.dtype.newbyteorder("="))
    if not isinstance(values, PLAIN):
        column = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(column, nw.Series):
            return _series_to_numpy(column)
    try:
        array = np.asarray(values)
        if not isinstance(values, str | bytes) and _changes_values(array, values):
            array = np.asarray(values, dtype=object)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be a 1-dimensional array, list or column; "
            f"it cannot be read as an array ({error})."
        ) from error
    return array


def _series_to_numpy(column: nw.Series[Any]) -> Array:
    """Return a column as an array that keeps missing values, integers and time zone."""
    dtype = column.dtype
    missing = dtype.is_numeric() and bool(column.null_count())
    large = missing and dtype.is_integer() and column.abs().max() > _EXACT
    # For a missing value of an Arrow dictionary numpy gets some other value.
    coded = isinstance(dtype, nw.Categorical) and bool(column.null_count())
    arrow = column.implementation is nw.Implementation.PYARROW
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    huge = dtype in (nw.Int128, nw.UInt128)  # which numpy lacks
    if large or huge or zoned or (coded and arrow):
        out = np.empty(len(column), dtype=object)
        out[:] = column.to_list()
        return out
    if missing:
        return column.cast(nw.Float64()).to_numpy().astype(float)
    return column.to_numpy()


def _changes_values(array: Array, values: Any) -> bool:
    """Return whether numpy has changed the values of a list.

    It makes all values text where some are, and makes floats of very large integers.
    """
    if array.dtype.kind == "f" and array.ndim == 1 and isinstance(values, Iterable):
        return bool((np.abs(array) >= _EXACT).any()) and any(
            isinstance(value, int) and abs(value) > _EXACT for value in values
        )
    return array.dtype.kind in "US"


def to_vector(values: Any, name: str) -> Array:
    """Return a column as an array of one dimension, also one of shape (n, 1).

    Transformers return their only column in two dimensions, as an array or a frame.
    """
    array = to_numpy(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
        frame = nw.from_native(values, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):  # an array of it may round large integers
            array = to_numpy(frame.get_column(frame.columns[0]).to_native(), name)
    check_vector(array, name)
    return array


def check_vector(array: Array, name: str) -> None:
    """Raise a ValueError unless the array has one dimension and some row."""
    if array.ndim != 1:
        several = name == "y_score" and array.ndim == 2
        raise ValueError(
            f"{name} must be 1-dimensional, one value per row; "
            + ("of several classes pass the scores of one; " if several else "")
            + f"got an array of shape {array.shape}."
        )
    if array.shape[0] == 0:
        raise ValueError(f"{name} must have at least one row; it is empty.")


def as_numbers(values: Any, name: str, *, allow_nan: bool = False) -> Array:
    """Return numbers or booleans of any kind as a float64 vector without infinity.

    With `allow_nan` NaN may stand for "unknown". An integer that float64 would round is
    refused too, as two different ones could become equal.
    """
    array = to_vector(values, name)
    if array.dtype.kind not in "biuf":
        array = _objects_to_numbers(array, name)
    elif array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        large = np.flatnonzero((array > _EXACT) | (array < -_EXACT))
        check_exact(array[large].tolist(), large, name)
    array = np.asarray(array, dtype=np.float64)
    finite = np.isfinite(array)
    if allow_nan:
        finite |= np.isnan(array)
    if not finite.all():
        first = int(np.argmin(finite))
        count = int(array.size - np.count_nonzero(finite))
        what = "finite or NaN" if allow_nan else "finite (no NaN, no infinity)"
        raise ValueError(
            f"{name} must be {what}; got {array[first]} in row {first} "
            f"({count} such value{'s' if count > 1 else ''})."
            f"{remedy(name) if np.isnan(array[first]) else ''}"
        )
    return array


def remedy(name: str) -> str:
    """Return how rows without a value of a column are left out, or nothing."""
    left_out = name in ("y_true", "y_score", "sensitive_features")
    return " Leave such rows out, as missing='drop' does." if left_out else ""


def check_exact(integers: Iterable[int], rows: Iterable[Any], name: str) -> None:
    """Raise a ValueError for the first integer that float64 would round.

    A row that has no number is None.
    """
    for row, integer in zip(rows, integers, strict=True):
        if int(float(integer)) != integer:
            got = f"got {integer}" if row is None else f"got {integer} in row {row}"
            raise ValueError(
                f"{name} must have numbers that float64 holds exactly; {got}, an "
                "integer beyond 2**53 that would be rounded. Subtract a constant, or "
                "pass ranks of the values."
            )


def _objects_to_numbers(array: Array, name: str) -> Array:
    if array.dtype.kind != "O":
        example = f"{array[0]!r} (dtype {array.dtype})"
        raise ValueError(f"{name} must be numeric; got {example}.")
    missing, numbers = pd.isna(array), np.full(array.shape, np.nan)
    given = array[~missing]
    wrong = [value for value in given if isinstance(value, str | bytes)]
    if not wrong:
        try:
            numbers[~missing] = given.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            wrong = [given[0]]
    if wrong:
        raise ValueError(f"{name} must be numeric; got {wrong[0]!r}.")
    with np.errstate(invalid="ignore"):
        large = np.flatnonzero(np.abs(numbers) >= _EXACT)
    large = large[[isinstance(array[row], int) for row in large]]
    check_exact(array[large], large, name)
    return numbers


def check_lengths(**lengths: int | None) -> int:
    """Raise a ValueError unless all given lengths are the same, which is returned."""
    given = {name: length for name, length in lengths.items() if length is not None}
    if len(set(given.values())) > 1:
        counts = ", ".join(f"{name}: {length}" for name, length in given.items())
        raise ValueError(
            f"All columns must have the same number of rows; got {counts}."
        )
    return next(iter(given.values()))


def check_aligned(**columns: Any) -> Any:
    """Raise a ValueError if columns of pandas have the same rows in another order.

    Columns are used by position. Indexes that have the same labels in different orders
    say that the positions do not belong together; other indexes say nothing.

    Returns
    -------
    Index or None
        The index of the first column that is of pandas.
    """
    seen: list[tuple[str, Any]] = []
    for name, values in columns.items():
        index = getattr(values, "index", None)
        if nw.dependencies.is_pandas_index(values):
            index = values
        if not nw.dependencies.is_pandas_index(index) or any(
            index.equals(other) for _, other in seen
        ):
            continue
        for earlier, other in seen:
            if _same_labels(index, other):
                row = int(np.argmax(np.asarray(index != other)))
                raise ValueError(
                    f"{name} must have its rows in the order of {earlier}: their "
                    f"pandas indexes have the same labels in different orders (row "
                    f"{row} is {index[row]!r} in {name} and {other[row]!r} in "
                    f"{earlier}). Columns are used by position: reorder one of them, "
                    "with .reindex(), or pass .to_numpy() if the positions are right."
                )
        seen.append((name, index))
    return seen[0][1] if seen else None


def _same_labels(a: Any, b: Any) -> bool:
    """Return whether two indexes have the same labels, each as often."""
    codes = pd.factorize(np.concatenate([a.to_numpy(object), b.to_numpy(object)]))[0]
    return np.array_equal(np.sort(codes[: len(a)]), np.sort(codes[len(a) :]))


def check_binary(values: Array, name: str, rule: str, rows: Array) -> None:
    """Raise a ValueError unless all values are 0 or 1.

    `rule` says for which use, and `rows` are the caller's numbers of the rows.
    """
    other = (values != 0) & (values != 1)
    if other.any():
        place = int(np.argmax(other))
        raise ValueError(
            f"{name} must be 0 or 1 {rule}; got {values[place]:g} in row {rows[place]}."
        )


def check_magnitude(**columns: Array) -> None:
    """Raise a ValueError naming the column that has too large a number to square."""
    for name, values in columns.items():
        with np.errstate(invalid="ignore"):  # NaN may stand for "unknown"
            large = np.flatnonzero(np.abs(values) > _LARGEST)
        if large.size:
            raise ValueError(
                f"{name} must be between -{_LARGEST:g} and {_LARGEST:g}, for its "
                f"squares to be finite; got {values.flat[large[0]]:g}. Use a larger "
                "unit."
            )


def unique_rows(rows: Array) -> tuple[Array, Array]:
    """Return the distinct rows in order, and the place of each row among them."""
    groups = pd.DataFrame(rows).groupby(list(range(rows.shape[1])))
    return groups.size().index.to_frame().to_numpy(), groups.ngroup().to_numpy()


def weighted_quantile(values: Array, levels: Any, weight: Array | None) -> Array:
    """Return quantiles in which a weight of 2 is the value twice, in any order.

    The inverse of the distribution function: the smallest value at or below which at
    least this share of the weight lies. Rounding of the shares decides nothing, so
    neither the order of the rows nor the unit of the weights does.
    """
    order = np.argsort(values)
    share = np.cumsum(np.ones(order.size) if weight is None else weight[order])
    share /= share[-1]
    place = np.searchsorted(share, np.asarray(levels) - 1e-12)
    return np.asarray(values[order[np.minimum(place, order.size - 1)]])


def as_weights(values: Any, name: str = "sample_weight") -> Array:
    """Return a copy of non-negative weights, at least one of them positive."""
    weights = as_numbers(values, name).copy()
    if (weights < 0).any():
        first = int(np.argmax(weights < 0))
        raise ValueError(
            f"{name} must not be negative; got {weights[first]} in row {first}."
        )
    if not weights.any():
        raise NoRowError(f"{name} must have a positive value; all are zero.")
    check_magnitude(**{name: weights})
    small = np.flatnonzero((weights > 0) & (weights < _SMALLEST))
    if small.size:
        raise ValueError(
            f"{name} must be 0 or at least {_SMALLEST:g}, for its squares not to be "
            f"0; got {weights[small[0]]:g} in row {small[0]}. Use a smaller unit."
        )
    return weights


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator that `random_state` stands for."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be a non-negative integer, a numpy Generator or None; "
            f"got {random_state!r}."
        ) from error


_COLLECTED: ContextVar[list[tuple[type[Warning], str]] | None] = ContextVar(
    "collected", default=None
)


def warn_user(message: str, category: type[Warning] = UndefinedMetricWarning) -> None:
    """Warn the caller of the package, or add to `collected_warnings` where in use."""
    collected = _COLLECTED.get()
    if collected is None:
        # The level that points at the caller of the package, or of its contexts.
        level, frame = 0, inspect.currentframe()
        inside = (__name__.partition(".")[0], "contextlib")
        while frame and frame.f_globals.get("__name__", "").split(".")[0] in inside:
            level, frame = level + 1, frame.f_back
        warnings.warn(message, category, stacklevel=level + 1)
    else:
        collected.append((category, message))


@contextmanager
def collected_warnings() -> Iterator[list[tuple[type[Warning], str]]]:
    """Collect what the package would warn of, instead of warning.

    Unlike ``warnings.catch_warnings`` it changes nothing outside of this thread: the
    filters of the process are left alone, and so are warnings of other packages.
    """
    collected: list[tuple[type[Warning], str]] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)


@contextmanager
def once_each() -> Iterator[None]:
    """Issue each warning once, however many fits, models or metrics give it."""
    with collected_warnings() as collected:
        yield
    for category, message in dict.fromkeys(collected):
        warn_user(message, category)


@contextmanager
def progress_shown(
    progress: bool | Callable[[str], object],
) -> Iterator[Callable[[str], object]]:
    """Yield a function that takes a line of text: the caller's, or rich's status.

    Without rich the lines are written to standard error. A ValueError is raised unless
    `progress` is a function, True or False.
    """
    if callable(progress):
        yield progress
        return
    check_choice(progress, "progress", (True, False))
    if not progress:
        yield lambda text: None
    elif find_spec("rich") is None:
        yield lambda text: sys.stderr.write(f"{text}\n")
    else:
        from rich.console import Console
        from rich.text import Text

        # As Text, since the names of groups may look like markup.
        with Console(stderr=True).status("starting") as status:
            yield lambda text: status.update(Text(text))
