"""An audit for other places: Markdown, LaTeX, and flat names for trackers of runs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._estimates import formatting as fmt
from .provenance import lines_of

if TYPE_CHECKING:
    from .audit import AuditReport

_NUMBERS = (
    *("estimate", "standard_error", "ci_low", "ci_high", "support"),
    *("difference", "pvalue", "pvalue_corrected"),
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
    "-": "$-$",  # of a number
}


def flat(report: AuditReport) -> dict[str, float]:
    """Return the numbers by ``metric/group/name``, without those that are undefined.

    Names hold nothing but what MLflow allows: letters, digits, spaces and ``_-./``.
    Groups that would get the same name are numbered.
    """
    numbers: dict[str, float] = {}
    for finding in report.findings:
        taken: set[str] = set()
        for row in finding.rows:
            # No group is "." or "..", which would be parts of a path.
            name = plain = re.sub(r"\s*[^\w.\- ]+\s*|^\.+$", "_", row.label).strip()
            count = 1
            while name in taken:
                count += 1
                name = f"{plain}_{count}"
            taken.add(name)
            for number in _NUMBERS:
                value = float(getattr(row, number))
                if not np.isnan(value):
                    numbers[f"{finding.metric.name}/{name}/{number}"] = value
    return numbers


def markdown(report: AuditReport) -> str:
    """Return the report as Markdown with pipe tables, in which labels are text."""

    def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        marks = ["---", *["---:"] * (len(header) - 1)]
        lines = [list(map(_markdown, header)), marks]
        lines += [list(map(_markdown, row)) for row in rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    return _text(report, _markdown, table, "# {}", "## {}", "- {}")


def latex(report: AuditReport) -> str:
    """Return the report as LaTeX, whose tables need the package booktabs."""

    def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        lines = [" & ".join(map(_latex, line)) + r" \\" for line in (header, *rows)]
        body = "\n".join([r"\toprule", lines[0], r"\midrule", *lines[1:]])
        columns = "l" + "r" * (len(header) - 1)
        return (
            f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\bottomrule\n\\end{{tabular}}"
        )

    heads = (r"\section*{{{}}}", r"\subsection*{{{}}}")
    return "% needs \\usepackage{booktabs}\n" + _text(report, _latex, table, *heads)


def workbook(report: AuditReport) -> bytes:
    """Return an Excel file: a sheet of numbers, and one of the text."""
    import pandas as pd

    frame = report.to_frame()
    frame["group"] = [fmt.label(group) for group in frame["group"]]
    lines = pd.DataFrame({report.title: repr(report).splitlines()})
    file = io.BytesIO()
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        frame.to_excel(writer, sheet_name="numbers", index=False)
        lines.to_excel(writer, sheet_name="report", index=False)
        for sheet in writer.sheets.values():
            for row in sheet.iter_rows():
                for cell in row:
                    if isinstance(cell.value, str):
                        cell.data_type = "s"  # text is no formula
    return file.getvalue()


def _text(
    report: AuditReport,
    plain: Callable[[str], str],
    table: Callable[[Sequence[str], Sequence[Sequence[str]]], str],
    title: str,
    head: str,
    item: str = "{}",
) -> str:
    """Return the parts of a report in a language of marks."""
    parts = [title.format(plain(report.title))]
    parts += [plain(text) for text in (report.counts, report.reading, report.headline)]
    for finding in report.findings:
        parts += [
            head.format(plain(finding.metric.title)),
            plain(finding.metric.measures),
            table(*finding.cells()),
            plain(finding.verdict),
        ]
    for section in report.sections:
        parts += [head.format(plain(section.title)), *map(plain, section.paragraphs)]
        parts += [table(section.header, section.rows)] if section.rows else []
    said = [*report.all_notes, report.limits, *lines_of(report.provenance)]
    parts += [item.format(plain(text)) for text in said]
    return "\n\n".join(parts) + "\n"


def _markdown(text: str) -> str:
    # Brackets of intervals cannot be links.
    return re.sub(r"([\\`*_|<>&~]|\[(?![-–\d]))", r"\\\1", text)


def _latex(text: str) -> str:
    return re.sub(r"[&%$#_{}\\~^<>–×]|-(?=\d)", lambda m: _LATEX[m[0]], text)
