"""Columns of a CSV, Parquet or Excel file, for the command line.

The values of the columns are checked by `audit`, whose errors name argument and row.
"""

from __future__ import annotations

import argparse
import csv
import io
import lzma
import sys
import warnings
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import IO, Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._inputs.groups import sort_labels
from .._inputs.validation import check_number
from ..datasets._fetch import UNREADABLE
from ..distributed._plan import fault_of_column
from ..distributed._sources import NO_NUMBER, NUMBERS, csv_header, typed
from .terminal import InputError

_PARQUET_MAGIC, _EXCEL = b"PAR1", (".xlsx", ".xlsm")
#: A column with more distinct labels than this most likely has no groups.
_MOST_GROUPS = 1000
STANDARD_INPUT = "-"  # the path that stands for it
#: The options that name groups, by members or labels; `by` may also cross the members.
_GROUPS = ("overlapping", "sensitive_features", "by")

#: Compressions by the end of a name; pandas knows only those of a path.
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zip": "zip", ".xz": "xz"}

# Errors for damaged files or files of another type, lzma's and pandas' among them.
_UNREADABLE = (*UNREADABLE, lzma.LZMAError, pd.errors.ParserWarning)

#: A table, and its columns by the argument that they are for.
_Table: TypeAlias = tuple[pd.DataFrame, dict[str, list[str]]]


def option(argument: str) -> str:
    """Return the option of the command line for an argument of `audit`."""
    return "--" + argument.replace("_", "-")


def given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the options of these names that somebody has given."""
    return {n: v for n in names if (v := getattr(arguments, n, None)) is not None}


def read_arguments(
    path: str,
    wanted: Mapping[str, str | None],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    positive: str | None = None,
    max_groups: int | None = None,
) -> dict[str, Any]:
    """Read the columns of a file as arguments of `audit`, or raise an InputError.

    The file is CSV (UTF-8, a header line), Parquet or the first sheet of an Excel file.
    `wanted` names the column of each argument; several for groups and two for
    ``cluster``, separated by commas. An argument without a column is None. The groups
    are the labels of ``sensitive_features`` or ``by``; or ``overlapping`` columns of
    truth values, which ``by`` crosses with its labels. `sep` and `decimal` are those of
    a CSV file, which None recognises. `positive` is the outcome that counts as 1. More
    distinct groups than `max_groups` (None is 1,000) are refused.
    """
    check_number(max_groups, "--max-groups", 1, np.inf, integer=True, optional=True)
    try:
        with _opened(path) as file:
            magic = file.read(len(_PARQUET_MAGIC))
            file.seek(0)
            if magic == _PARQUET_MAGIC:
                frame, columns = _read_parquet(path, file, wanted)
            elif Path(path).suffix.lower() in _EXCEL:
                frame, columns = _read_excel(path, file, wanted)
            else:
                frame, columns = _read_csv(path, file, wanted, sep, decimal)
    except ImportError as error:
        raise InputError(f"{path} needs a package to be read: {error}") from None
    except _UNREADABLE as error:
        convert = "convert it, such as by iconv -f cp1252 -t utf-8"
        hint = convert if isinstance(error, UnicodeDecodeError) else "see --sep"
        raise InputError(
            f"{path} cannot be read as CSV (UTF-8; {hint}), Parquet or Excel: {error}"
        ) from None
    if not len(frame):
        raise InputError(f"{path} has no rows below its header; give it some.")
    frame = _with_numbers(frame, columns, positive)
    values: dict[str, Any] = dict.fromkeys(wanted)
    for argument, names in columns.items():
        values[argument] = frame[names] if len(names) > 1 else frame[names[0]]
    named = next(name for name in _GROUPS if name in columns)
    groups, labels = frame[columns[named]], {n: values.pop(n, None) for n in _GROUPS}
    if named == "overlapping":
        labels[named] = _members(groups, labels["by"])
    elif not all(dtype.kind == "b" for dtype in groups.dtypes):
        _check_number_of_groups(groups, max_groups or _MOST_GROUPS, option(named))
    return {**values, "sensitive_features": labels[named]}


def _with_numbers(
    frame: pd.DataFrame, columns: Mapping[str, list[str]], positive: str | None
) -> pd.DataFrame:
    """Return the columns with those of numbers, and of membership, as numbers."""
    numbers = {
        name: f"column {name!r} ({option(argument)})"
        for argument in (*NUMBERS, "overlapping")
        for name in columns.get(argument, ())
    }
    if positive is not None:
        for name in columns.get("y_true", ()):
            frame[name] = _outcomes(frame[name], positive, numbers[name])
    for name in numbers:  # Excel and Parquet may have numbers among text
        if frame[name].dtype.kind == "O":
            frame[name] = frame[name].map(str, na_action="ignore")
    return nw.to_native(typed(nw.from_native(frame).lazy(), (), numbers).collect())


def _opened(path: str) -> IO[bytes]:
    """Open a file, or standard input, for the readers.

    The readers would take some names for URLs. A pipe, which can be read only once, is
    read into memory.
    """
    if path == STANDARD_INPUT:
        return io.BytesIO(sys.stdin.buffer.read() if sys.stdin else b"")
    try:
        opened = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror}.") from None
    if opened.seekable():
        return opened
    with opened:
        return io.BytesIO(opened.read())


def split_names(text: str) -> list[str]:
    """Return names that commas separate, as in CSV: one with a comma is quoted."""
    parts = csv.reader(text.splitlines(keepends=True), skipinitialspace=True)
    return [name.strip() for name in next(parts, [text])]


def _columns(
    wanted: Mapping[str, str | None], header: Iterable[Any], path: str
) -> dict[str, list[str]]:
    """Return the names of the columns of each argument, or raise an InputError."""
    columns, present = {}, [str(name) for name in header]
    crossing = "by" if wanted.get("overlapping") else ""
    for argument, text in wanted.items():
        if text is None:
            continue
        several = argument in (*_GROUPS, "cluster") and argument != crossing
        names = split_names(text) if several else [text]
        for name in names:
            if fault := fault_of_column(name, present, path, f" ({option(argument)})"):
                see = " See --sep." if len(present) == 1 else ""
                if text in {*present} - {name}:
                    see = f" Quote the name '\"{text}\"'."
                raise InputError(fault + see)
        columns[argument] = names
    return columns


def _read_csv(
    path: str,
    file: IO[bytes],
    wanted: Mapping[str, str | None],
    sep: str | None,
    decimal: str | None,
) -> _Table:
    """Return columns of a CSV file, in which labels are text as written."""
    settings: dict[str, Any] = {
        "compression": _COMPRESSIONS.get(Path(path).suffix.lower()),
        "encoding": "utf-8-sig",
        "index_col": False,
        "low_memory": False,
    }

    def read(**options: Any) -> pd.DataFrame:
        file.seek(0)
        # Warnings of pandas; to catch them is safe, as there is only this thread.
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(file, **settings, **options)

    header, sep = csv_header(read, sep)
    columns = _columns(wanted, header, path)
    numbers = {name for n in NUMBERS for name in columns.get(n, ())}
    labels = {name for names in columns.values() for name in names} - numbers
    # Lines with too many fields are detected only if all columns are read.
    # Names that a file has twice are none of these.
    names = [i if header.count(name) > 1 else name for i, name in enumerate(header)]
    options = {"names": names, "header": 0, "dtype": dict.fromkeys(labels, str)}
    options |= {"sep": sep, "decimal": decimal or "."}
    frame = read(**options, **_absent_cells(columns))
    lazy = typed(nw.from_native(frame[[*labels, *numbers]]).lazy(), labels, {})
    return nw.to_native(lazy.collect()), columns


def _absent_cells(columns: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the options of pandas' readers that say which cells are missing."""
    absent = {name: [""] for names in columns.values() for name in names}
    for argument in NUMBERS:
        absent |= {name: [*NO_NUMBER] for name in columns.get(argument, ())}
    return {"keep_default_na": False, "na_values": absent}


def _read_excel(path: str, file: IO[bytes], wanted: Mapping[str, str | None]) -> _Table:
    """Return the columns of the first sheet of an Excel file."""
    first = pd.read_excel(file, engine="openpyxl", header=None, nrows=1)
    columns = _columns(wanted, first.to_numpy().ravel(), path)
    frame = pd.read_excel(file, engine="openpyxl", **_absent_cells(columns))
    return frame.rename(columns=str), columns


def _read_parquet(
    path: str, file: IO[bytes], wanted: Mapping[str, str | None]
) -> _Table:
    """Return the columns of a Parquet file."""
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(file)
    columns = _columns(wanted, table.schema_arrow.names, path)
    names = sorted({name for some in columns.values() for name in some})
    return table.read(columns=names).to_pandas(ignore_metadata=True), columns


def _outcomes(column: pd.Series[Any], positive: str, what: str) -> pd.Series[Any]:
    """Return 1 where the outcome is `positive`, and 0 elsewhere."""
    words = column.dropna().astype(str).str.strip()
    # Where the file has numbers or truth values, 1 is written 1.0 and true as True.
    same = words.str.lower().str.removesuffix(".0") == positive.lower()
    others = [fmt.label(text, 40) for text in words[~same].unique()]
    if not same.any():
        raise InputError(
            f"{what} has no outcome {positive!r} (--positive); it has "
            f"{fmt.some(others)}."
        )
    if len(others) > 1:
        message = f"{what}: {positive!r} counts as 1, and {fmt.some(others)} as 0."
        warnings.warn(message, UserWarning, stacklevel=2)
    return same.astype(float).reindex(column.index)


def _members(columns: pd.DataFrame, by: pd.Series[Any] | None) -> pd.DataFrame:
    """Return the membership of rows in groups that may overlap, crossed by `by`.

    Rows that lack a value have gaps, which count as missing labels.
    """
    for name, column in columns.items():
        if not column.dropna().isin([0, 1]).all():
            values = [fmt.label(value) for value in column.unique()]
            raise InputError(
                f"column {name!r} (--overlapping) must hold True and False, yes and "
                f"no, or 1 and 0; it has {fmt.some(values)}."
            )
    members, known = columns.eq(1), columns.notna().all(axis=1)
    if by is not None:
        known &= by.notna()
        crossed = product(members, sort_labels(by.dropna().unique().tolist()))
        members = pd.DataFrame({(n, x): members[n] & (by == x) for n, x in crossed})
    return members if known.all() else members.where(known)


def _check_number_of_groups(groups: pd.DataFrame, most: int, named: str) -> None:
    """Raise an error for labels that are hardly groups, such as a column of scores."""
    count = len(groups.drop_duplicates())
    if count > most:
        names = ", ".join(map(repr, groups.columns))
        raise InputError(
            f"{names} ({named}) has {count:,} distinct groups, more than "
            f"{most:,}; give a column of groups, or --max-groups {count} if they are."
        )
