"""Numbers, labels and small tables of results, as text and as HTML."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._inputs.validation import Array
from .scales import t_quantile

#: With fewer effective clusters behind a group its errors are hardly known.
FEW_EFFECTIVE = 5
#: What is below it is the rounding of sums: numbers of reports are not that small.
_ROUNDING = 1e-14
# How many groups a message names; the others are counted.
_MOST_NAMED = 6

if TYPE_CHECKING:
    from .group_estimates import GroupEstimates
    from .sums import ClusterSums


def number(value: float, digits: int = 4) -> str:
    """Return a number for a table: fixed decimals, or "–" when there is none."""
    if np.isnan(value):
        return "–"
    value = 0.0 if abs(value) < _ROUNDING else value
    if value != 0 and (abs(value) < 10**-digits or abs(value) >= 1e6):
        return f"{value:.{digits - 1}g}"
    return f"{value:.{digits}f}"


def count(value: float) -> str:
    """Return a count with thousands separated, or "–" when there is none."""
    if np.isnan(value):
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def pvalue(value: float) -> str:
    """Return a p-value for a table."""
    if np.isnan(value):
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def pvalue_in_text(value: float) -> str:
    """Return a p-value within a sentence, such as "p = 0.020" or "p < 0.001"."""
    return f"p = {pvalue(value)}".replace("= <", "< ")


def interval(low: float, high: float, digits: int = 4) -> str:
    """Return an interval for a table."""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def label(value: object, longest: int | None = None) -> str:
    """Return a group's label as one line of printable text.

    The parts of a crossed group are joined by "×", what cannot be printed is written as
    an escape, so that different labels look different, a day has no time, and a label
    that is longer than `longest` ends in "…".
    """
    if isinstance(value, tuple):
        text = " × ".join(map(label, value))
    else:
        text = _one_line(value)
    if longest is not None and len(text) > longest:
        return text[: longest - 1].rstrip() + "…"
    return text


def _one_line(value: object) -> str:
    if isinstance(value, np.datetime64):
        text = str(np.datetime_as_string(value, unit="auto"))
    elif isinstance(value, datetime) and str(value).endswith(" 00:00:00"):
        text = value.date().isoformat()
    else:
        text = str(value)
    if not text.strip():
        return "(empty)"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def some(labels: Sequence[str]) -> str:
    """Return the first labels in a row, and how many more there are."""
    left_out = len(labels) - _MOST_NAMED
    more = f" and {left_out:,} more" if left_out > 0 else ""
    return ", ".join(labels[:_MOST_NAMED]) + more


def some_groups(groups: Iterable[Hashable]) -> str:
    """Return the labels of the first groups in a row, and how many more there are."""
    return some([label(group) for group in groups])


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns: the first to the left, the others to the right."""
    lines, cells = [], [header, *rows]
    first, *widths = (max(map(len, column)) for column in zip(*cells, strict=True))
    for name, *others in cells:
        right = [cell.rjust(width) for cell, width in zip(others, widths, strict=True)]
        lines.append("  ".join([name.ljust(first), *right]).rstrip())
    return "\n".join(lines)


def groups_table(
    groups: Sequence[Hashable], columns: Mapping[str, Iterable[str]]
) -> str:
    """Return a table of text with a row per group, of cells by column."""
    rows = zip(map(label, groups), *columns.values(), strict=True)
    return text_table(["group", *columns], list(rows))


def groups_frame(
    groups: Sequence[Hashable], columns: Mapping[str, Array]
) -> pd.DataFrame:
    """Return a frame with a row per group; crossed groups stay tuples."""
    index = pd.Index(list(groups), name="group", tupleize_cols=False)
    return pd.DataFrame(columns, index=index)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table; every cell is escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(result: GroupEstimates) -> tuple[list[str], list[list[str]]]:
    low, high = result.ends(t_quantile(0.95, result.df))
    columns = {
        "group": map(label, result.groups),
        "estimate": map(number, result.estimate),
        "95% interval": map(interval, low, high),
        result.metric.unit: map(count, result.support),
    }
    if result.metric.slope is not None:
        columns["slope"] = map(number, result.slope_term)
    if result.has_pvalue:
        columns["p"] = map(pvalue, result.pvalue)
    return list(columns), list(map(list, zip(*columns.values(), strict=True)))


def _caption(result: GroupEstimates) -> str:
    options = ", ".join(f"{key}={value!r}" for key, value in result.parameters.items())
    return f"{result.name}({options})"


def small_groups(result: GroupEstimates) -> list[str]:
    """Return the groups whose errors rest on few effective clusters, with how many."""
    effective = result.n_effective
    few = np.isfinite(result.standard_error) & (effective < FEW_EFFECTIVE - 1e-9)
    return [
        f"{label(result.groups[i])} ({effective[i]:.1f})" for i in np.flatnonzero(few)
    ]


def names_of_units(sums: ClusterSums) -> list[str]:
    """Return the names of independent units; clusters may be parts of one list."""
    if sums.kind == "two-way":
        return ["clusters", "items"]
    return ["clusters" if sums.rows.member is None else "items"]


def units(sums: ClusterSums) -> str:
    """Return the names of independent units within a sentence."""
    return " or ".join(names_of_units(sums))


def counted_units(result: GroupEstimates) -> str:
    """Return the numbers of independent units, such as "40 clusters, 50 items"."""
    ways = zip(result.sums.ways, names_of_units(result.sums), strict=True)
    return ", ".join(
        f"{count(way.count)} {name.removesuffix('s' * (way.count == 1))}"
        for way, name in ways
    )


def sample_words(sample: Mapping[str, Any]) -> str:
    """Return the choice that a sample of the data made, and its size, in words."""
    return (
        f"{sample['gives']} from a sample of {sample['rows']:,} of "
        f"{sample['of_rows']:,} rows ({sample['clusters']:,} clusters)"
    )


def _footer(result: GroupEstimates) -> str:
    text, unit = counted_units(result), units(result.sums)
    for key, what in (("dropped", "rows left out"), ("labelled", "without a label")):
        if result.missing.get(key):
            text += f"; {result.missing[key]:,} {what}"
    if sample := result.first_pass.get("sample"):
        text += f"; {sample_words(sample)}"
    if few := small_groups(result):
        text += f"; fewer than {FEW_EFFECTIVE} effective {unit} in {some(few)}"
    if result.usual_test == "permutation":
        return f"{text}; test() shuffles the labels"
    if result.fair_value is not None:
        slope = "" if result.metric.slope is None else " plus slope"
        return f"{text}; fair value {result.fair_value:g}{slope}"
    if result.says_fair and not np.isnan(result.as_gap().estimate).all():
        return f"{text}; tested: equality with the rest"
    return text


def described_estimates(result: GroupEstimates) -> tuple[str, ...]:
    """Return the lines above and below the table of a result, and its labels."""
    return _caption(result), *map(label, result.groups), _footer(result)


def estimates_latex(result: GroupEstimates) -> str:
    """Return a result as a table of LaTeX, whose caption and footer are comments."""
    caption, footer = (f"% {' '.join(t(result).split())}" for t in (_caption, _footer))
    return f"{caption}\n{latex_table(*_cells(result))}\n{footer}\n"


def estimates_text(result: GroupEstimates) -> str:
    """Return a result as a small table of text."""
    lines = _caption(result), text_table(*_cells(result)), _footer(result)
    return "\n".join(filter(None, (*lines, result.hidden_gaps)))


def estimates_html(result: GroupEstimates) -> str:
    """Return a result as a small table of HTML; labels are escaped."""
    return (
        f"<p><code>{escape(_caption(result))}</code></p>"
        f"{html_table(*_cells(result))}<p>{escape(_footer(result))}</p>"
        f"{result.hidden_gaps and f'<p>{escape(result.hidden_gaps)}</p>'}"
    )


_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "×": r"$\times$",
    "-": "$-$",  # the sign of a number
}


def latex_text(text: str) -> str:
    """Return text escaped for LaTeX, so that none of its characters is a command."""
    return re.sub(r"[&%$#_{}\\~^<>–×]|-(?=\d)", lambda m: _LATEX[m[0]], text)


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of LaTeX, which needs the package booktabs."""
    lines = [" & ".join(map(latex_text, line)) + r" \\" for line in (header, *rows)]
    body = "\n".join([r"\toprule", lines[0], r"\midrule", *lines[1:]])
    columns = "l" + "r" * (len(header) - 1)
    return f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\bottomrule\n\\end{{tabular}}"
