"""An audit for other places: text, notebooks, Markdown, LaTeX, Excel, and files."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates import storage
from ..metrics import GroupEstimates
from .catalog import catalog
from .findings import GroupFinding
from .sections import ReportSection

if TYPE_CHECKING:
    from .audit import AuditReport

_NUMBERS = (
    *("estimate", "standard_error", "ci_low", "ci_high", "support"),
    *("difference", "pvalue", "pvalue_corrected"),
)
SCHEMA = "skrankfair.AuditReport"
# Fields that are stored in another form, or not at all.
_OTHERS = {"results", "made", "recorded", "rates"}
# Of a row of the findings, what is no number.
_WORDS = {"side", "missing", "within"}


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


class Formats:
    """A report as text, in notebooks, and as Markdown and LaTeX."""

    @property
    def _page(self) -> Any:
        """The report in the form of an audit, which most are."""
        return self

    def __repr__(self) -> str:
        """Return a table and a verdict for each metric, and the tables of sections."""
        page = self._page
        head = (f"{page.title}: {page.counts}", page.reading, page.headline)
        blocks = ["\n".join(head)]
        for question, findings in groupby(page.findings, lambda f: f.metric.question):
            for i, finding in enumerate(findings):
                table = fmt.text_table(*finding.cells())
                title = "" if i else f"{question}\n\n"
                verdict = f"=> {finding.verdict}"
                blocks.append(f"{title}{finding.metric.name}\n{table}\n{verdict}")
        for section in page.sections:
            table = fmt.text_table(section.header, section.rows)
            blocks.append("\n".join((section.title, *section.paragraphs, table)))
        blocks += [f"Note: {note}" for note in page.all_notes]
        if page.provenance:
            blocks.append("\n".join(page.provenance_lines))
        return "\n\n".join(blocks)

    def _repr_html_(self) -> str:
        """Return the report as HTML for a notebook, in which labels are text."""
        said = "<p>{}</p>", "<p>{}</p>", "<p><strong>{}</strong></p>"
        marks = "<h3>{}</h3>", "<h4>{}</h4>", *said
        return _marked(self._page, escape, fmt.html_table, *marks)

    def to_markdown(self) -> str:
        """Return the report as Markdown, such as for a pull request.

        Returns
        -------
        str
            Tables are pipe tables, as GitHub and pandoc read them.
        """
        return _marked(self._page, _markdown, _markdown_table, "# {}", "## {}", "- {}")

    def to_latex(self) -> str:
        """Return the report as sections and tables of LaTeX.

        Returns
        -------
        str
            The body of a document that has the package booktabs.
        """
        marks = r"\section*{{{}}}", r"\subsection*{{{}}}", "{}"
        return "% needs \\usepackage{booktabs}\n" + _marked(
            self._page, fmt.latex_text, fmt.latex_table, *marks
        )


def workbook(report: AuditReport) -> bytes:
    """Return an Excel file: a sheet of numbers, and one of the text."""
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


def _marked(
    report: AuditReport,
    plain: Callable[[str], str],
    table: Callable[[Sequence[str], Sequence[Sequence[str]]], str],
    title: str,
    head: str,
    item: str,
    paragraph: str = "{}",
    strong: str = "{}",
) -> str:
    """Return a report in a language of marks, such as Markdown or HTML."""

    def marked(mark: str, *texts: str) -> list[str]:
        return [mark.format(plain(text)) for text in texts]

    parts = marked(title, report.title)
    parts += marked(paragraph, report.counts, report.reading)
    parts += marked(strong, *report.headline.splitlines())
    for finding in report.findings:
        parts += marked(head, finding.metric.title)
        parts += marked(paragraph, finding.metric.measures)
        parts += [table(*finding.cells()), *marked(paragraph, finding.verdict)]
    for section in report.sections:
        parts += marked(head, section.title)
        parts += marked(paragraph, *section.paragraphs)
        parts += [table(section.header, section.rows)] if section.rows else []
    parts += marked(item, *report.all_notes, report.limits, *report.provenance_lines)
    return "\n\n".join(parts) + "\n"


def _markdown(text: str) -> str:
    # Brackets of intervals cannot be links.
    return re.sub(r"([\\`*_|<>&~]|\[(?![-–\d]))", r"\\\1", text)


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    marks = ["---", *["---:"] * (len(header) - 1)]
    lines = [list(map(_markdown, line)) for line in (header, *rows)]
    return "\n".join(
        f"| {' | '.join(line)} |" for line in (lines[0], marks, *lines[1:])
    )


def json_text(report: AuditReport) -> str:
    """Return the report as JSON: numbers for readers, and the report to load again.

    That is ``stored`` within the document of `AuditReport.to_dict`: results, each in
    the schema of `GroupEstimates.to_json`, and the other parts of the report. The rows
    of the findings are read from the numbers that everybody reads. They were computed
    with the tables of clusters, which are not stored.
    """
    numbers = json.dumps(
        report.to_dict(), indent=2, ensure_ascii=False, allow_nan=False
    )
    try:
        if report.texts != "audit":
            raise ValueError("of changes; store the two audits.")
        names = [field.name for field in fields(report) if field.name not in _OTHERS]
        parts = {name: getattr(report, name) for name in names}
        kept = json.loads(storage.to_text(parts, SCHEMA))
        kept["results"] = {
            name: json.loads(result.to_json())
            for name, result in report.results.items()
        }
        if report.rates is not None:
            kept["rates"] = json.loads(report.rates.to_json())
    except ValueError as error:  # the numbers are there nevertheless
        kept = {"refused": str(error)}
    return f'{numbers[:-2]},\n  "stored": {json.dumps(kept)}\n}}\n'


def report_of_json(text: Any, kind: type[AuditReport]) -> AuditReport:
    """Return the report of this kind that is stored in JSON."""
    document = storage.read_json(text)
    kept = document.get("stored", document) if isinstance(document, dict) else {}
    if isinstance(kept, dict) and "refused" in kept:
        raise ValueError(f"text has the numbers of a report only: {kept['refused']}")
    storage.check_schema(kept, SCHEMA)
    with storage.understood():
        names = {field.name for field in fields(kind)} - _OTHERS
        parts = {name: storage.decoded(kept[name]) for name in names & set(kept)}
        results = {name: _result(stored) for name, stored in kept["results"].items()}
        if "rates" in kept:
            parts["rates"] = _result(kept["rates"])
        report = kind(results=results, **parts)
        recorded = {
            finding["metric"]: tuple(
                _row(group, written)
                for group, written in zip(
                    results[finding["metric"]].groups, finding["groups"], strict=True
                )
            )
            for finding in document["metrics"]
        }
        report = replace(report, recorded=(report.settings, recorded))
        known = results.keys()
        if not (known <= catalog().keys() and known == recorded.keys()):
            raise TypeError("unknown metrics, or others than the numbers")
        if not all(isinstance(section, ReportSection) for section in report.sections):
            raise TypeError("sections that are none")
        # Parts of wrong types fail here, and not later where they are read.
        repr(report), report.to_dict()
    return report


def _result(stored: Any) -> GroupEstimates:
    return GroupEstimates.from_json(json.dumps(stored))


def _row(group: Hashable, written: Mapping[str, Any]) -> GroupFinding:
    """Return the finding on a group; NaN and infinite numbers are no JSON."""
    row = {f.name: written[f.name] for f in fields(GroupFinding) if f.name != "group"}
    for name in row.keys() - _WORDS:
        row[name] = math.nan if row[name] is None else float(row[name])
    return GroupFinding(group=group, **row)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    r"""Write a file under another name, and rename it when it is complete.

    Whatever goes wrong, the old file stays as it was, and nothing else is left behind.
    A link is followed; a pipe or a device, which nothing can replace, is written to as
    it is. A lone surrogate, which UTF-8 cannot express, becomes an escape such as
    ``\ud800``: in JSON that is the same character. An OSError says that the file cannot
    be written, or that the old one must not be.
    """
    return write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file in the same way."""
    if not os.fspath(path):
        raise ValueError(f"path must name a file; got {path!r}.")
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        # The error names the file that the caller knows.
        raise OSError(error.errno, error.strerror, str(path)) from None
    return path


def _replace(path: Path, content: bytes) -> None:
    """Replace a file by a complete one, or leave it as it is."""
    # The name is known before the file is there: no interrupt can come in between.
    unfinished = path.with_name(f".skrankfair-{os.urandom(8).hex()}.tmp")
    try:
        for left in path.parent.glob(".skrankfair-*.tmp"):  # by processes now dead
            with suppress(OSError), left.open("rb") as file:
                if locked(file, wait=False) and left.stat().st_size:
                    left.unlink()
        with unfinished.open("xb") as file:
            # Locked while it is empty, it is never taken for one that was left.
            locked(file, wait=True)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()  # Windows renames no open file
            if path.exists():
                if not os.access(path, os.W_OK):
                    # A folder would allow what the file forbids.
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                shutil.copymode(path, unfinished)
            unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink()


def locked(file: Any, *, wait: bool) -> bool:
    """Lock an open file or folder until it is closed; False if that is not possible.

    It is not where others have the lock, or where the system or the file system has no
    locks.
    """
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False
