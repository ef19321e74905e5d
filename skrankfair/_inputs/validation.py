"""Arrays, frames and labels of any kind become clean arrays and integer codes.

Everything a user passes goes through here once. Below this module there are only
float64 vectors, integer codes, and labels to name them by.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .told import warn_user

Array = NDArray[Any]

#: What is no column or frame of a library, which narwhals would take long to say.
_PLAIN = (np.ndarray, list, tuple)
_DIRECT_RANGE = 1 << 16
#: Up to here a float64 holds every integer.
_EXACT = 2**53
#: Up to here integers can be counted with.
_MOST_COUNTED = (1 << 63) - 1
#: Up to here fourth powers can be summed, as the errors of squares need.
# A float of Python would overflow beside columns of single precision.
_LARGEST, _SMALLEST = np.float64(1e60), 1e-60


def check_choice(value: object, name: str, choices: Sequence[object]) -> None:
    """Raise a ValueError unless `value` is one of `choices`."""
    # By type first: the value may be an array, or refuse to be compared.
    if not any(isinstance(value, type(c)) and value == c for c in choices):
        options = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {options}; got {value!r}.")


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
) -> None:
    """Raise a ValueError unless `value` is a number of the interval."""
    kinds: tuple[type, ...] = (int, np.integer)
    if not integer:
        kinds += (float, np.floating)
    fits = isinstance(value, kinds) and not isinstance(value, bool | np.bool_)
    if fits and isinstance(value, int):
        # An integer that no array or float can hold is no number to compute with.
        fits = abs(value) <= (_MOST_COUNTED if integer else sys.float_info.max)
    if fits:
        above = value >= low if inclusive[0] else value > low
        below = value <= high if inclusive[1] else value < high
        fits = bool(above and below)
    if not fits:
        kind = "an integer" if integer else "a number"
        left, right = "[" if inclusive[0] else "(", "]" if inclusive[1] else ")"
        raise ValueError(
            f"{name} must be {kind} in {left}{low}, {high}{right}; got {value!r}."
        )


def to_numpy(values: Any, name: str) -> Array:
    """Return the values of a column of any library as a numpy array."""
    if isinstance(values, np.ma.MaskedArray):
        return _with_missing(values)
    if isinstance(values, np.ndarray):
        return _native(values)
    if not isinstance(values, _PLAIN):
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


def _with_missing(values: np.ma.MaskedArray[Any, Any]) -> Array:
    """Return a masked array with None at the masked places, if there are any."""
    if not np.ma.is_masked(values):
        return _native(values.data)
    array = values.data.astype(object)
    array[np.ma.getmaskarray(values)] = None
    return array


def _series_to_numpy(column: nw.Series[Any]) -> Array:
    """Return a column with its missing values, its large integers and its time zone."""
    dtype = column.dtype
    missing = dtype.is_numeric() and bool(column.null_count())
    large = missing and dtype.is_integer() and column.abs().max() > _EXACT
    # Of a dictionary of Arrow, numpy gets another value where there is none.
    coded = isinstance(dtype, nw.Categorical) and bool(column.null_count())
    arrow = column.implementation is nw.Implementation.PYARROW
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    if large or zoned or (coded and arrow):
        out = np.empty(len(column), dtype=object)
        out[:] = column.to_list()
        return out
    if missing:
        return column.cast(nw.Float64()).to_numpy().astype(float)
    return column.to_numpy()


def _changes_values(array: Array, values: Any) -> bool:
    """Return whether numpy made something else of a list's values.

    It makes all of them text where some are, and floats of very large integers.
    """
    if array.dtype.kind == "f" and array.ndim == 1 and isinstance(values, Iterable):
        return bool((np.abs(array) >= _EXACT).any()) and any(
            isinstance(value, int) and abs(value) > _EXACT for value in values
        )
    return array.dtype.kind in "US"


def _native(array: Array) -> Array:
    """Return the array in this machine's byte order."""
    if array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="))


def _check_vector(array: Array, name: str) -> None:
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

    `allow_nan`: NaN may stand for "unknown". An integer that float64 would round is
    refused too: two of them would be tied.
    """
    array = to_numpy(values, name)
    _check_vector(array, name)
    if array.dtype.kind not in "biuf":
        array = _objects_to_numbers(array, name)
    elif array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        large = np.flatnonzero((array > _EXACT) | (array < -_EXACT))
        _check_exact(array[large].tolist(), large, name)
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
        )
    return array


def _check_exact(integers: Iterable[int], rows: Array, name: str) -> None:
    """Raise a ValueError for the first integer that is none of the float64 numbers."""
    for row, integer in zip(rows, integers, strict=True):
        if int(float(integer)) != integer:
            raise ValueError(
                f"{name} must have numbers that float64 holds exactly; got {integer} "
                f"in row {row}, an integer beyond 2**53 that would be rounded. "
                "Subtract a constant, or pass ranks of the values."
            )


def _objects_to_numbers(array: Array, name: str) -> Array:
    import pandas as pd

    if array.dtype.kind == "O":
        missing = pd.isna(array)
        text = [v for v in array[~missing] if isinstance(v, str | bytes)]
        if not text:
            try:
                numbers = np.full(array.shape, np.nan)
                numbers[~missing] = array[~missing].astype(np.float64)
            except (TypeError, ValueError, OverflowError):
                text = [array[~missing][0]]
            else:
                with np.errstate(invalid="ignore"):
                    large = np.flatnonzero(np.abs(numbers) >= _EXACT)
                large = large[[isinstance(array[row], int) for row in large]]
                _check_exact(array[large], large, name)
                return numbers
        example = repr(text[0])
    else:
        example = f"{array[0]!r} (dtype {array.dtype})"
    raise ValueError(f"{name} must be numeric; got {example}.")


def check_lengths(**lengths: int | None) -> int:
    """Raise a ValueError unless all given lengths are the same, which is returned."""
    given = {name: length for name, length in lengths.items() if length is not None}
    if len(set(given.values())) > 1:
        listed = ", ".join(f"{name}: {length}" for name, length in given.items())
        raise ValueError(
            f"All columns must have the same number of rows; got {listed}."
        )
    return next(iter(given.values()))


def check_aligned(**columns: Any) -> Any:
    """Raise a ValueError if columns of pandas have the same rows in another order.

    Columns are used by position. Indexes that have the same labels in different orders
    say that the positions do not belong together; other indexes say nothing.

    Returns
    -------
    Index or None
        That of the first column of pandas.
    """
    seen: list[tuple[str, Any]] = []
    for name, values in columns.items():
        index = values if nw.dependencies.is_pandas_index(values) else None
        if nw.dependencies.is_pandas_like_dataframe(
            values
        ) or nw.dependencies.is_pandas_like_series(values):
            index = values.index
        if index is None or any(index.equals(other) for _, other in seen):
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
    import pandas as pd

    if len(a) != len(b):
        return False
    codes = pd.factorize(np.concatenate([a.to_numpy(object), b.to_numpy(object)]))[0]
    codes += 1  # missing labels are -1
    here, there = codes[: len(a)], codes[len(a) :]
    size = int(codes.max(initial=0)) + 1
    return np.array_equal(np.bincount(here, None, size), np.bincount(there, None, size))


def _sort_key(label: Any) -> tuple[int, str, Any]:
    """Order labels of mixed types: numbers by value, then the rest by type and text."""
    if isinstance(label, bool | int | float):
        return (0, "", label)
    if isinstance(label, tuple):
        return (1, "tuple", tuple(_sort_key(part) for part in label))
    if isinstance(label, timedelta):
        return (1, "timedelta", label.total_seconds())
    return (1, type(label).__name__, str(label))


def sort_labels(labels: Sequence[Hashable]) -> list[Hashable]:
    """Return labels of any types in the one order that the package uses."""
    return sorted(labels, key=_sort_key)


def _as_scalar(label: Any) -> Hashable:
    """Return a label as an object of Python or, of nanoseconds, of pandas."""
    if not isinstance(label, np.generic):
        return label
    value: Hashable = label.item()
    if not (isinstance(label, np.datetime64 | np.timedelta64) and type(value) is int):
        return value
    import pandas as pd

    if np.datetime_data(label.dtype)[0] in ("ps", "fs", "as"):
        return str(label)  # finer than pandas knows
    try:
        if isinstance(label, np.datetime64):
            return pd.Timestamp(label)
        return pd.Timedelta(label)
    except (ValueError, OverflowError):  # beyond the years that pandas knows
        return str(label)


@dataclass(frozen=True)
class Codes:
    """Labels as integers: ``labels[codes]`` gives the column back."""

    #: Shape (n,), int64. Non-negative codes; not every code below `size` need occur.
    codes: Array
    size: int  # one more than the largest code
    #: Shape (size,) or None. The labels, or None when a label is its code plus
    #: `offset`.
    labels: Array | None
    offset: int = 0  # the label of code 0 when `labels` is None

    def decode(self, codes: Array) -> Array:
        """Return the labels of the codes."""
        return codes + self.offset if self.labels is None else self.labels[codes]

    @property
    def all_labels(self) -> Array:
        """The labels of all codes, shape (size,)."""
        return self.decode(np.arange(self.size))

    def take(self, rows: Array) -> Codes:
        """Return the codes of some rows."""
        return Codes(self.codes[rows], self.size, self.labels, self.offset)

    def dense(self) -> Codes:
        """Return codes in which every code below `size` occurs."""
        if self.size <= 4 * self.codes.size + _DIRECT_RANGE:
            present = np.flatnonzero(np.bincount(self.codes, minlength=self.size))
            table = np.empty(self.size, dtype=np.int64)
            table[present] = np.arange(present.size)
            codes = table[self.codes]
        else:
            present, codes = np.unique(self.codes, return_inverse=True)
        return Codes(codes, present.size, self.decode(present))


def encode(values: Any, name: str) -> Codes:
    """Give every distinct label of a column an integer, in any order.

    Integers whose range is not much larger than the column are only shifted, which
    costs no hashing and no sorting. The columns of a frame are crossed into tuples.
    """
    import pandas as pd

    found = frame_columns(values)
    if found is not None and len(found[0]) > 1:
        crossed = _crossed_groups([encode(column, name) for column in found[0]])
        labels = np.empty(len(crossed), dtype=object)
        labels[:] = crossed.labels
        return Codes(crossed.values.astype(np.int64), len(crossed), labels)
    array = to_numpy(values, name)
    _check_vector(array, name)
    if array.dtype.kind == "b":
        return Codes(array.astype(np.int64), 2, np.array([False, True]))
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        # The codes share an int64 with a row number when the rows are ordered.
        bits = (high - low).bit_length() + array.size.bit_length()
        if bits <= 62 and max(abs(low), abs(high)).bit_length() <= 62:
            codes = array.astype(np.int64)
            codes -= low
            return Codes(codes, high - low + 1, None, low)
    try:
        codes, labels = pd.factorize(array)
    except TypeError as error:
        raise ValueError(f"{name} must hold hashable labels ({error}).") from error
    if (missing := codes < 0).any():
        raise ValueError(
            f"{name} must not have missing labels; row {int(np.argmax(missing))} "
            f"is {array[np.argmax(missing)]!r} ({int(missing.sum())} such rows)."
        )
    return Codes(codes.astype(np.int64, copy=False), len(labels), np.asarray(labels))


def _dense_sorted(column: Codes) -> tuple[Array, list[Hashable]]:
    """Return codes that count the labels which occur, in sorted order."""
    dense = column.dense()
    values, order = dense.all_labels, list(range(dense.size))
    if values.dtype.kind in "biufU":  # which need no key
        labels, order = values.tolist(), np.argsort(values, kind="stable").tolist()
    else:
        labels = [_as_scalar(label) for label in values]
        order = sorted(order, key=lambda i: _sort_key(labels[i]))
    new = np.empty(len(labels), dtype=np.int32)
    new[order] = np.arange(len(labels), dtype=np.int32)
    return new[dense.codes], [labels[i] for i in order]


@dataclass(frozen=True)
class Groups:
    """The groups of the rows: disjoint codes, or an overlapping membership matrix."""

    labels: tuple[Hashable, ...]  # length G
    #: Shape (n,), int, or shape (n, G), bool. The code of each row's group; or the
    #: membership matrix, one column per group.
    values: Array

    @classmethod
    def of_everyone(cls, n_rows: int) -> Groups:
        """Return the one group "all", which ``sensitive_features=None`` stands for."""
        return cls(("all",), np.zeros(n_rows, dtype=np.int32))

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.labels)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.values)

    @property
    def overlapping(self) -> bool:
        """Whether a row may be of several groups, or of none."""
        return self.values.ndim == 2

    def mask(self, group: int) -> Array:
        """Return which rows are of the group at this index."""
        if self.overlapping:
            return np.ascontiguousarray(self.values[:, group])
        return self.values == group

    def take(self, rows: Array | slice) -> Groups:
        """Return the groups of some rows, in that order."""
        return Groups(self.labels, self.values[rows])

    def without_unused(self) -> Groups:
        """Return the groups without the labels that no row has, if disjoint."""
        if self.overlapping:
            return self
        there = np.bincount(self.values, minlength=len(self)) > 0
        if there.all():
            return self
        codes = np.cumsum(there, dtype=self.values.dtype) - 1
        labels = tuple(self.labels[i] for i in np.flatnonzero(there))
        return Groups(labels, codes[self.values])


def frame_columns(values: Any) -> tuple[list[Any], list[Hashable]] | None:
    """Return the columns and names of a frame of any library, or None."""
    if nw.dependencies.is_pandas_dataframe(values):
        # By position, since a pandas frame may name two columns alike.
        names = [_as_scalar(name) for name in values.columns]
        return [values.iloc[:, i] for i in range(values.shape[1])], names
    if isinstance(values, _PLAIN):
        return None
    frame = nw.from_native(values, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    return [frame[name].to_native() for name in frame.columns], list(frame.columns)


def as_groups(values: Any, name: str = "sensitive_features") -> Groups:
    """Read group labels, several label columns, or a boolean membership matrix.

    Several columns of labels are crossed into tuples. A boolean matrix or frame is a
    membership matrix, with one (possibly overlapping) group per column.
    """
    found = frame_columns(values)
    if found is None:
        array = to_numpy(values, name)
        if array.ndim != 2:
            return _label_groups(encode(array, name))
        columns, names = [array[:, i] for i in range(array.shape[1])], None
    else:
        columns, names = found
    if not columns:
        raise ValueError(f"{name} must have at least one column; it has none.")
    arrays = [to_numpy(column, name) for column in columns]
    if all(array.dtype.kind == "b" for array in arrays):
        return _membership_groups(arrays, names, name)
    if len(arrays) == 1:
        return _label_groups(encode(arrays[0], name))
    if all(_is_binary(array) for array in arrays):
        warn_user(
            f"{name} has {len(arrays)} columns of the numbers 0 and 1, whose "
            "combinations are the groups. If each column marks the members of a group, "
            "pass booleans, .astype(bool); if combinations are meant, pass labels, "
            ".astype(str), and this warning goes away.",
            UserWarning,
        )
    return _crossed_groups([encode(array, name) for array in arrays])


def _is_binary(array: Array) -> bool:
    if not array.size or array.dtype.kind not in "iuf":
        return False
    return bool(((array == 0) | (array == 1)).all())


def _label_groups(column: Codes) -> Groups:
    codes, labels = _dense_sorted(column)
    return Groups(tuple(labels), codes)


def _membership_groups(
    arrays: list[Array], names: list[Hashable] | None, name: str
) -> Groups:
    labels = tuple(names) if names is not None else tuple(range(len(arrays)))
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name} must have distinct column names; got {labels}.")
    for array in arrays:
        _check_vector(array, name)
    return Groups(labels, np.column_stack(arrays))


def _crossed_groups(columns: list[Codes]) -> Groups:
    """Return the combinations that occur, one column after the other.

    After each column the codes count what has occurred so far, so that the next
    product is below the square of the number of rows and overflows for no data.
    """
    parts = [_dense_sorted(column) for column in columns]
    crossed = Codes(parts[0][0].astype(np.int64), len(parts[0][1]), None)
    for codes, labels in parts[1:]:
        joined = crossed.codes * len(labels) + codes
        crossed = Codes(joined, crossed.size * len(labels), None).dense()
    row = np.empty(crossed.size, dtype=np.int64)
    row[crossed.codes] = np.arange(crossed.codes.size)
    names = zip(
        *([labels[code] for code in codes[row].tolist()] for codes, labels in parts),
        strict=True,
    )
    return Groups(tuple(names), crossed.codes.astype(np.int32))


def check_binary(
    values: Array, name: str, rule: str, input_row: Callable[[int], int]
) -> None:
    """Raise a ValueError unless all values are 0 or 1.

    `rule` says for what they must be, `input_row` which of the caller's rows one is.
    """
    other = (values != 0) & (values != 1)
    if other.any():
        place = int(np.argmax(other))
        raise ValueError(
            f"{name} must be 0 or 1 {rule}; got {values[place]:g} in row "
            f"{input_row(place)}."
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


def weighted_quantile(values: Array, levels: Any, weight: Array | None) -> Array:
    """Return quantiles in which a weight of 2 is the value twice, in any order.

    The inverse of the distribution function: the smallest value at or below which at
    least this share of the weight lies. Rounding of the shares decides nothing, so
    neither the order of the rows nor the unit of the weights does.
    """
    if weight is None:
        return np.asarray(np.quantile(values, levels, method="inverted_cdf"))
    order = np.lexsort((weight, values))
    share = np.cumsum(weight[order])
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
        raise ValueError(f"{name} must have a positive value; all are zero.")
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
    random = np.random
    sources = (
        random.Generator,
        random.BitGenerator,
        random.SeedSequence,
        random.RandomState,
    )
    try:
        if random_state is not None and not isinstance(random_state, (int, *sources)):
            kind = np.asarray(random_state).dtype.kind
            if kind not in "iu":  # NumPy would take a duration for a number
                raise TypeError(f"a seed of kind {kind!r}")
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be a non-negative integer, a numpy Generator or None; "
            f"got {random_state!r}."
        ) from error
