"""Text columns of a file become labels, numbers or truth values, by one rule each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import narwhals as nw

#: The arguments whose columns hold numbers; those of others hold labels.
NUMBERS = ("y_true", "y_score", "engagement", "sample_weight", "item_weight")
#: Cells of a column of numbers that hold none; among labels "NA" is a label.
NO_NUMBER = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")

_BLANKS = " \t\r\n"
_INFINITE = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
# Text that is no whole number as programs write it: "007" is a name.
_NOT_WHOLE = r"[^0-9]|^0.|^.{19}|^$"


def csv_header(
    read: Callable[..., Any], sep: str | None = None
) -> tuple[list[str], str]:
    """Return the names of the columns as they are written, and the separator.

    `read` is ``pandas.read_csv`` of a file. Names are read as cells, as it would number
    the second of two equal names. If `sep` is None the header decides.
    """
    first: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str}
    if sep is None:
        line = ",".join(read(**first).iloc[0].fillna(""))
        sep = max(",;\t", key=line.count)
    return [*read(sep=sep, **first).iloc[0].fillna("")], sep


def typed(
    frame: nw.LazyFrame[Any], labels: Iterable[str], numbers: Mapping[str, str]
) -> nw.LazyFrame[Any]:
    """Return a frame of any engine, with text columns converted if all cells allow it.

    Labels stay text, unless all of them are truth values, or all are whole numbers
    without leading zeros: "7" and "07" are two labels. Numbers are decimal, or all of
    them yes and no (or true and false), which are 1 and 0; blanks around them and cells
    of `NO_NUMBER` do not count. Other columns stay unchanged.

    Parameters
    ----------
    frame : LazyFrame of narwhals
    labels : iterable of str
        The columns that hold labels.
    numbers : dict of str to str
        The columns that hold numbers, and what an error calls them.
    """
    schema = frame.collect_schema()
    texts = [name for name, dtype in schema.items() if dtype == nw.String]
    rules = {n: _of_numbers(nw.col(n)) for n in texts if n in numbers}
    rules |= {n: _of_labels(nw.col(n)) for n in {*texts} & {*labels} - {*numbers}}
    fits = {(n, i): rule[0] for n, some in rules.items() for i, rule in enumerate(some)}
    if not fits:
        return frame
    every = [fit.all().alias(str(key)) for key, fit in fits.items()]
    found = frame.select(*every).collect().rows(named=True)[0]
    values = []
    for name, of_column in rules.items():
        # Without rows every rule holds, and DuckDB's answer is None.
        true = [found[str((name, i))] is not False for i in range(len(of_column))]
        if any(true):
            values.append(of_column[true.index(True)][1].alias(name))
        elif name in numbers:
            word, number = fits[name, 0], fits[name, 1]
            # The error shows a cell that is neither, or else a word among numbers.
            cells = frame.with_columns(wrong=word.cast(nw.Int64)).filter(~number)
            wrong = cells.sort("wrong").select(name).head(1).collect().item()
            raise ValueError(
                f"{numbers[name]} must hold numbers, or only yes and no (true and "
                f"false); it has {wrong!r}."
            )
    return frame.with_columns(*values) if values else frame


def _of_labels(cell: nw.Expr) -> list[tuple[nw.Expr, nw.Expr]]:
    """Return which cells fit each rule, and what they are by it."""
    text = cell.fill_null("")  # which fits none
    lower = text.str.to_lowercase()
    return [
        (lower.is_in(["true", "false"]), lower == "true"),
        (~text.str.contains(_NOT_WHOLE), text.cast(nw.Int64)),
    ]


def _of_numbers(cell: nw.Expr) -> list[tuple[nw.Expr, nw.Expr]]:
    """Return which cells fit each rule, and what they are by it."""
    text = cell.fill_null("").str.strip_chars(_BLANKS)
    lower, absent = text.str.to_lowercase(), text.is_in(NO_NUMBER)
    yes, no = lower.is_in(["yes", "true"]), lower.is_in(["no", "false"])
    number = text.str.contains(_NUMBER) | lower.is_in(_INFINITE)
    return [
        (absent | fits, nw.when(~absent).then(value).cast(nw.Float64))
        for fits, value in ((yes | no, yes), (number, text))
    ]
