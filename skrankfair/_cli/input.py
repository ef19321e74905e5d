"""Columns of a CSV or Parquet file, for the command line."""

from __future__ import annotations

import io
import lzma
import re
import stat
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._estimates import formatting as fmt
from .._inputs.groups import sort_labels
from .._inputs.validation import Array
from .terminal import InputError

if TYPE_CHECKING:
    import pandas as pd

_PARQUET_MAGIC, _ZIP_MAGIC = b"PAR1", b"PK\x03\x04"
_EXCEL = (".xlsx", ".xlsm")
_BY = "by"  # as an argument: what groups that overlap are crossed by
_MOST_LISTED = 12

# Cells of number columns that mean "no number"; in label columns "NA" is a label.
_NO_NUMBER = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]

_NUMBERS = ("y_true", "y_score", "engagement", "sample_weight", "item_weight")
_TRUTH = {"true": True, "false": False}
#: Words that outcomes and decisions are recognised by.
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
#: More distinct groups than this are most likely no groups.
MOST_GROUPS = 1000

# Of text that pandas has not read as numbers.
_COMMA_NUMBER = r"\s*[-+]?\d*,?\d+(?:[eE][-+]?\d+)?\s*"
_THOUSANDS = r"\s*[-+]?[1-9]\d{0,2}(?:,\d{3})+\s*"

#: What is wrong with a row without a value.
_NONE = "row {} has none"

#: By the end of a name; pandas guesses only from a path.
_COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "zip": "zip", "xz": "xz", "zst": "zstd"}

# These are raised underneath by damaged or mistyped files.
_UNREADABLE = (
    OSError,
    ValueError,
    OverflowError,
    EOFError,
    ImportError,
    zlib.error,
    zipfile.BadZipFile,
    lzma.LZMAError,
)


def option(argument: str) -> str:
    """Return the option of the command line for an argument of `audit`."""
    return "--" + argument.replace("_", "-")


def read_arguments(
    path: str,
    wanted: Mapping[str, str | None],
    *,
    missing: bool = False,
    sep: str | None = None,
    decimal: str | None = None,
    positive: str | None = None,
    max_groups: float = np.inf,
    overlapping: bool = False,
    by: str | None = None,
) -> dict[str, Any]:
    """Read the columns of a file as arguments of `audit`, or raise an InputError.

    The file is CSV (UTF-8, a header line; tab-separated if it ends in .tsv), Parquet or
    the first sheet of an Excel file.
    `wanted` names the column of each argument; for ``sensitive_features`` it may be
    several, separated by commas. Where it is None, so is the argument. With `missing`
    there may be rows without an outcome, a score or a label of a group. `sep` and
    `decimal` are those of a CSV file, which None recognises. `positive` is the outcome
    that counts as 1. More distinct groups than `max_groups` are refused. `overlapping`:
    the groups are columns of truth values, which `by` crosses with its labels.
    """
    wanted = {**wanted, _BY: by}
    with _opened(path) as file:
        magic = file.read(len(_PARQUET_MAGIC))
        file.seek(0)
        if magic == _PARQUET_MAGIC:
            frame, columns = _read_parquet(path, file, wanted)
        elif magic == _ZIP_MAGIC and Path(path).suffix.lower() in _EXCEL:
            frame, columns = _read_excel(path, file, wanted)
        else:
            frame, columns = _Csv(path, file, sep, decimal).read(wanted)
    if not len(frame):
        raise InputError(f"{path} has no rows below its header; give it some.")
    values: dict[str, Any] = dict.fromkeys(wanted)
    for argument, names in columns.items():
        for name in names:
            what = f"column {name!r} ({option(argument)})"
            if argument in _NUMBERS:
                column = frame[name]
                if argument == "y_true" and positive is not None:
                    column = _outcomes(column, positive, what)
                elif argument in ("y_true", "y_score"):
                    column = _of_words(column)
                may_lack = argument == "engagement" or (
                    missing and argument in ("y_true", "y_score")
                )
                frame[name] = _numbers(column, what, may_lack)
            elif not (missing and argument == "sensitive_features"):
                rule = f"{what} must have a label in each row"
                _refuse(frame[name].isna().to_numpy(), rule, _NONE, frame[name])
        values[argument] = frame[names] if len(names) > 1 else frame[names[0]]
    crossed = values.pop(_BY)
    groups = frame[columns["sensitive_features"]]
    if overlapping:
        values["sensitive_features"] = groups = _members(groups, crossed)
    _check_number_of_groups(groups, max_groups)
    return values


def _members(columns: pd.DataFrame, by: pd.Series[Any] | None) -> pd.DataFrame:
    """Return which rows are of which group, of groups that may overlap."""
    import pandas as pd

    members = {}
    for name in columns.columns:
        column = _of_words(columns[name])
        values = list(map(str, column.unique()))
        if column.dtype.kind == "O" and {*values} <= {"0", "1"}:
            column = column.astype(float)
        if column.dtype.kind not in "biuf" or not column.isin([0, 1]).all():
            raise InputError(
                f"column {name!r} (--overlapping) must hold True and False, yes and "
                f"no, or 1 and 0; it has {fmt.some(list(map(fmt.label, values)))}."
            )
        members[name] = column.astype(bool)
    if by is None:
        return pd.DataFrame(members)
    labels = sort_labels(list(by.unique().tolist()))
    return pd.DataFrame(
        {
            (name, label): member & (by == label)
            for name, member in members.items()
            for label in labels
        }
    )


def _opened(path: str) -> IO[bytes]:
    """Open a file for the readers, which would take some names for those of URLs.

    What can be read only once, such as a pipe, is read into memory.
    """
    file = Path(path)
    try:
        kind = file.stat().st_mode
        if stat.S_ISDIR(kind):
            raise InputError(f"{path} is a folder; give a CSV or Parquet file.")
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
            raise InputError(
                f"{path} is a terminal or another device; give a CSV or Parquet file, "
                "or a pipe."
            )
        opened = file.open("rb")
        if opened.seekable():
            return opened
        with opened:
            return io.BytesIO(opened.read())
    except FileNotFoundError:
        raise InputError(f"There is no file {path}; check the path.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be opened: {error}.") from None


#: A table, and its columns by the argument that they are for.
_Table: TypeAlias = "tuple[pd.DataFrame, dict[str, list[str]]]"


def _columns(
    wanted: Mapping[str, str | None], header: Iterable[Any], path: str
) -> dict[str, list[str]]:
    """Return the names of the columns of each argument, or raise an InputError."""
    columns, present = {}, [str(name) for name in header]
    for argument, text in wanted.items():
        if text is None:
            continue
        names = [text]
        if argument == "sensitive_features" and text not in present:
            names = [name.strip() for name in text.split(",")]
        for name in names:
            if name not in present:
                raise InputError(_no_column(name, argument, present, path))
        columns[argument] = names
    return columns


def _no_column(name: str, argument: str, present: Sequence[str], path: str) -> str:
    text = f"{path} has no column {name!r} ({option(argument)}); "
    lower = {other.lower(): other for other in present}
    close = get_close_matches(name.lower(), lower, n=1, cutoff=0.75)
    if close:
        return f"{text}did you mean {lower[close[0]]!r}?"
    listed = ", ".join(repr(other) for other in present[:_MOST_LISTED])
    more = ", ..." if len(present) > _MOST_LISTED else ""
    return f"{text}it has {listed}{more}."


class _Csv:
    """A CSV file, whose separator and decimal mark are recognised."""

    def __init__(
        self, path: str, file: IO[bytes], sep: str | None, decimal: str | None
    ) -> None:
        self.path, self.file = path, file
        ends = [end.lower() for end in Path(path).suffixes[-2:]]
        tabs = ends[-1:] == [".tsv"]
        packed = _COMPRESSIONS.get(ends[-1][1:]) if ends else None
        self.guess_sep = sep is None and not tabs
        self.guess_decimal = decimal is None
        self.options: dict[str, Any] = {
            "compression": "tar" if ".tar" in ends else packed,
            "encoding": "utf-8-sig",
            "index_col": False,
            "low_memory": False,
            "sep": sep or ("\t" if tabs else ","),
            "decimal": decimal or ".",
        }

    def read(self, wanted: Mapping[str, str | None]) -> _Table:
        """Return the columns, those of labels with what is written in the file."""
        if self.guess_sep:
            names = self._read(header=None, nrows=1, dtype=str).iloc[0]
            header = ",".join(names.fillna(""))
            self.options["sep"] = max(",;\t", key=header.count)
        columns = _columns(wanted, self._read(nrows=0).columns, self.path)
        numbers = {name for n in _NUMBERS for name in columns.get(n, ())}
        groups = {*columns["sensitive_features"], *columns.get(_BY, ())} - numbers
        # Only when all columns are read do lines with too many fields come to light.
        options: dict[str, Any] = {
            "dtype": dict.fromkeys(groups, str),
            **_absent_cells(columns),
        }
        frame = self._read(**options)
        if self.options["sep"] != "," and self.guess_decimal:
            commas = [name for name in numbers if self._has_comma(frame[name], name)]
            if commas:
                self.options["decimal"] = ","
                frame = self._read(**options)
        for name in groups:
            frame[name] = _labels_of_text(frame[name])
        return frame, columns

    def _has_comma(self, column: pd.Series[Any], name: str) -> bool:
        """Return whether the numbers of a column have a decimal comma."""
        if column.dtype.kind in "biuf":
            return False
        values = column.dropna().astype(str)
        commas = values[values.str.contains(",", regex=False)]
        if commas.empty or not values.str.fullmatch(_COMMA_NUMBER).all():
            return False
        if commas.str.fullmatch(_THOUSANDS).all():
            raise InputError(
                f"{self.path}: the commas of column {name!r} may be decimal commas or "
                "separate thousands; give --decimal , or write it without them."
            )
        return True

    def _read(self, **options: Any) -> pd.DataFrame:
        import pandas as pd

        try:
            self.file.seek(0)
            # It is pandas that warns, and the command line has only this thread.
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return pd.read_csv(self.file, **self.options, **options)
        except pd.errors.EmptyDataError:
            raise InputError(
                f"{self.path} is empty; give a CSV file with a header line."
            ) from None
        except UnicodeDecodeError:
            raise InputError(
                f"{self.path} is not UTF-8 text; save it as UTF-8 CSV or as Parquet."
            ) from None
        except pd.errors.ParserWarning:
            raise InputError(
                f"{self.path} has lines with more fields than its header; quote fields "
                "that hold commas, or give --sep."
            ) from None
        except _UNREADABLE as error:
            if "out of memory" in str(error):  # how the parser says it
                raise MemoryError from None
            raise InputError(f"{self.path} cannot be read as CSV: {error}") from None


def _absent_cells(columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return which cells are missing, as pandas' readers take it."""
    absent = {
        name: _NO_NUMBER if argument in _NUMBERS else [""]
        for argument in sorted(columns, key=_NUMBERS.__contains__)
        for name in columns[argument]
    }
    return {"keep_default_na": False, "na_values": absent}


def _read_excel(path: str, file: IO[bytes], wanted: Mapping[str, str | None]) -> _Table:
    """Return the columns of the first sheet of an Excel file."""
    import pandas as pd

    try:
        header = pd.read_excel(file, engine="openpyxl", nrows=0).columns
        columns = _columns(wanted, header, path)
        frame = pd.read_excel(file, engine="openpyxl", **_absent_cells(columns))
    except ImportError:
        raise InputError(
            f'Reading {path} needs openpyxl; run pip install "skrankfair[excel]", or '
            "give a CSV file."
        ) from None
    except (*_UNREADABLE, KeyError) as error:
        raise InputError(f"{path} cannot be read as Excel: {error}") from None
    frame.columns = frame.columns.map(str)
    return frame, columns


def _read_parquet(
    path: str, file: IO[bytes], wanted: Mapping[str, str | None]
) -> _Table:
    """Return the columns of a Parquet file."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(
            f"Reading {path} needs pyarrow; run pip install pyarrow, or give a CSV "
            "file."
        ) from None
    try:
        table = ParquetFile(file)
        columns = _columns(wanted, table.schema_arrow.names, path)
        names = sorted({name for some in columns.values() for name in some})
        return table.read(columns=names).to_pandas(ignore_metadata=True), columns
    except _UNREADABLE as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def _labels_of_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return truth values and whole numbers as such, if all labels are."""
    labels = [label for label in column.unique().tolist() if isinstance(label, str)]
    if len(labels) < column.nunique(dropna=False):
        return column  # with missing labels
    if all(label.lower() in _TRUTH for label in labels):
        return column.str.lower().map(_TRUTH).astype(bool)
    # "007" is a name and no number.
    if all(re.fullmatch(r"0|[1-9][0-9]{0,17}", label) for label in labels):
        return column.astype(np.int64)
    return column


def _of_words(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return yes and no, or true and false, as 1 and 0, if there is nothing else."""
    if column.dtype.kind in "biuf":
        return column
    words = {value: str(value).strip().lower() for value in _distinct(column)}
    for pair in ({"yes", "no"}, {"true", "false"}):
        if words and set(words.values()) <= pair:
            return column.map({value: _WORDS[word] for value, word in words.items()})
    return column


def _outcomes(column: pd.Series[Any], positive: str, what: str) -> pd.Series[Any]:
    """Return 1 where the outcome is the positive one, and 0 where it is another."""
    values = {value: str(value).strip() for value in _distinct(column)}
    # Where the file has numbers or truth values, 1 is written 1.0 and true as True.
    same = [
        value
        for value, text in values.items()
        if text == positive or _is_same(value, positive)
    ]
    others = [fmt.label(text, 40) for v, text in values.items() if v not in same]
    if not same:
        raise InputError(
            f"{what} has no outcome {positive!r} (--positive); it has "
            f"{fmt.some(others)}."
        )
    if len(others) > 1:
        message = f"{what}: {positive!r} counts as 1, and {fmt.some(others)} as 0."
        warnings.warn(message, UserWarning, stacklevel=2)
    return column.map({value: float(value in same) for value in values})


def _is_same(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return False
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    try:
        return float(value) == float(text)
    except (TypeError, ValueError):
        return False


def _distinct(column: pd.Series[Any]) -> list[Any]:
    try:
        return list(column.dropna().unique().tolist())
    except TypeError:  # lists and the like, which are no outcomes
        return []


def _check_number_of_groups(groups: pd.DataFrame, most: float) -> None:
    """Refuse labels that are most likely no groups, such as a column of scores."""
    if all(dtype.kind == "b" for dtype in groups.dtypes):
        return  # these may overlap
    try:
        count = len(groups.drop_duplicates())
    except TypeError:  # of no labels, as `audit` will say
        return
    if count > most:
        names = ", ".join(map(repr, groups.columns))
        raise InputError(
            f"{names} (--sensitive-features) has {count:,} distinct groups, more than "
            f"{most:,}; give a column of groups, or --max-groups {count} if they are."
        )


def _numbers(column: pd.Series[Any], what: str, allow_missing: bool) -> Any:
    """Return a column of finite numbers."""
    import pandas as pd

    if column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype):
        raise InputError(f"{what} must hold numbers; it holds times.")
    try:
        values = pd.to_numeric(column, errors="coerce").to_numpy(float, na_value=np.nan)
    except (TypeError, ValueError):
        first = column.iloc[0]
        raise InputError(f"{what} must hold numbers; row 1 has {first!r}.") from None
    missing = column.isna().to_numpy()
    bad = np.isnan(values) & ~missing
    _refuse(bad, f"{what} must hold numbers", "row {} has {!r}", column)
    bad = np.isinf(values)
    _refuse(bad, f"{what} must hold finite numbers", "row {} has {}", column)
    if not allow_missing:
        _refuse(missing, f"{what} must have a number in each row", _NONE, column)
    return values


def _refuse(bad: Array, rule: str, problem: str, column: pd.Series[Any]) -> None:
    """Raise an InputError that names the first of the bad rows, if there are any."""
    if bad.any():
        row = int(np.argmax(bad))
        value = column.iloc[row]
        value = value.item() if isinstance(value, np.generic) else value
        rows = f" ({bad.sum():,} such rows)" if bad.sum() > 1 else ""
        raise InputError(f"{rule}; {problem.format(row + 1, value)}{rows}.")
