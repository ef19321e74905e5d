"""Output on the terminal: reports as text, errors, progress, and versions in use."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from .._reports.audit import AuditReport

# Exit statuses. 0 is success, and 128 + n the end by signal n.
FAILED, UNUSABLE, ALARMED, BEYOND, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 4, 130, 141

_STYLES = {
    "worse": "bold dark_orange3",
    "better": "bold deep_sky_blue3",
    "lower": "bold",
    "higher": "bold",
    "within": "green",
    "": "",
}


#: Requirements of these extras are left out of a bug report.
_TOOLS = ("extra == 'docs'", "extra == 'lint'")


class InputError(Exception):
    """Input that cannot be used; the message is one line that says what to do."""


def complain(message: str) -> None:
    """Write one line of printable text on standard error."""
    from .._estimates.formatting import label

    line = f"skrankfair: {label(' '.join(message.split()))}"
    print(line, file=sys.stderr, flush=True)


def print_report(report: AuditReport) -> None:
    """Print a report, in colour on a terminal; repeat its answers if it is long."""
    text = repr(report)
    if _is_rich(sys.stdout):
        _print_rich(report)
    else:
        print(text)
    if text.count("\n") >= get_terminal_size().lines:
        print(f"\n{report.headline}")


def _is_rich(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal and rich is installed."""
    return stream is not None and stream.isatty() and find_spec("rich") is not None


@contextmanager
def progress() -> Iterator[Callable[[str], object]]:
    """Yield a function that shows a line of text, if standard error is a terminal."""
    from .._estimates import formatting as fmt
    from .._inputs.validation import progress_shown

    with progress_shown(_is_rich(sys.stderr)) as say:
        yield lambda message: say(fmt.label(message))


def _print_rich(report: AuditReport) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(report.title, style="bold"), Text(report.counts))
    console.print(Text(report.reading))
    console.print(Text(report.headline, style="bold"))
    for finding in report.findings:
        styles = [_STYLES[row.kind] for row in finding.shown]
        console.print()
        console.print(Text(finding.metric.title, style="bold"), finding.metric.measures)
        console.print(_table(*finding.cells(), styles))
        console.print(Text(finding.verdict, style="italic"))
    for section in report.sections:
        console.print()
        console.print(Text(section.title, style="bold"))
        for text in section.paragraphs:
            console.print(Text(text))
        console.print(_table(section.header, section.rows))
    notes = [f"Note: {note}" for note in report.all_notes]
    for line in notes + report.provenance_lines:
        console.print(Text(line, style="dim"))


def _table(
    header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = ()
) -> Any:
    """Return a table for a terminal, each row in its style; labels are no markup."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="right" if i else "left", no_wrap=i > 0)
    for cells, style in zip(rows, styles or [""] * len(rows), strict=True):
        table.add_row(*map(Text, cells), style=style)
    return table


def show_versions() -> None:
    """Print the versions of the system, of Python and of all packages that are used.

    Please add this text to a bug report.

    See Also
    --------
    sklearn.show_versions : The same of scikit-learn, with its parallel libraries.

    Examples
    --------
    >>> from skrankfair import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
             python: 3...
    """
    lines = {
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "machine": platform.platform(),
    }
    used = [text for text in requires("skrankfair") or () if not text.endswith(_TOOLS)]
    names = [re.split(r"[^\w.-]", text)[0] for text in used]
    for name in ("skrankfair", "pip", *names):
        try:
            lines[name] = version(name)
        except PackageNotFoundError:
            lines[name] = "None"
    width = max(map(len, lines))
    print(*(f"{name:>{width}}: {text}" for name, text in lines.items()), sep="\n")
