"""What the command line shows: the report as text, and what is going on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

from .process import BROKEN_PIPE, FAILED, abandon

if TYPE_CHECKING:
    from .._reports.audit import AuditReport
    from .._reports.pilot import AuditPlan

_STYLES = {
    "worse": "bold dark_orange3",
    "better": "bold deep_sky_blue3",
    "lower": "bold",
    "higher": "bold",
    "within": "green",
    "": "",
}


def is_rich(stream: TextIO) -> bool:
    """Return whether a stream is a terminal, and rich is there to write to it."""
    return stream.isatty() and find_spec("rich") is not None


def complain(message: str) -> None:
    """Write one line of printable text on standard error, if that takes it."""
    from .._estimates import formatting as fmt

    try:
        sys.stderr.write(f"skrankfair: {fmt.label(' '.join(message.split()))}\n")
        sys.stderr.flush()
    except OSError:
        abandon(sys.stderr)


def printed(show: Callable[[], object]) -> int:
    """Let `show` print on standard output; return the exit status, 0 if it all went."""
    try:
        show()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, and knows why: there is nothing to tell it.
        abandon(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        abandon(sys.stdout)
        complain(f"standard output cannot be written: {error.strerror or error}.")
        return FAILED
    return 0


def printed_line(text: str) -> int:
    """Print a line of printable text; return the exit status."""
    from .._estimates import formatting as fmt

    return printed(lambda: sys.stdout.write(f"{fmt.label(text)}\n"))


def printed_text(text: str) -> int:
    """Print text of several lines; return the exit status."""
    return printed(lambda: sys.stdout.write(f"{text}\n"))


def print_report(report: AuditReport | AuditPlan) -> None:
    """Print a report, in colour on a terminal, or a plan."""
    from .._reports.pilot import AuditPlan

    if isinstance(report, AuditPlan):
        sys.stdout.write(f"{report!r}\n")
        return
    if is_rich(sys.stdout):
        _print_rich(report)
    else:
        sys.stdout.write(f"{report!r}\n")
    sys.stdout.write(f"\n{report.headline}\n")


@contextmanager
def progress() -> Iterator[Callable[[str], object]]:
    """Yield what shows a line of text, on standard error if that is a terminal."""
    if not is_rich(sys.stderr):
        yield lambda message: None
        return
    from rich.console import Console
    from rich.text import Text

    from .._estimates import formatting as fmt

    # Messages may hold names of groups, which are no markup.
    with Console(stderr=True).status("starting") as status:
        yield lambda message: status.update(Text(fmt.label(message)))


def _print_rich(report: AuditReport) -> None:
    from rich.console import Console
    from rich.text import Text

    from .._estimates import formatting as fmt
    from .._reports.margins import kind_of
    from .._reports.provenance import lines_of

    console = Console(highlight=False)
    console.print(Text(report.title, style="bold"), Text(report.counts))
    console.print(Text(report.reading))
    console.print(Text(report.headline, style="bold"))
    for finding in report.findings:
        header, rows = finding.cells()
        styles = [_STYLES[kind_of(row)] for row in finding.shown]
        console.print()
        console.print(Text(finding.metric.title, style="bold"), finding.metric.measures)
        console.print(fmt.rich_table(header, rows, styles))
        console.print(Text(finding.verdict, style="italic"))
    for section in report.sections:
        console.print()
        console.print(Text(section.title, style="bold"))
        for text in section.paragraphs:
            console.print(Text(text))
        console.print(fmt.rich_table(section.header, section.rows))
    for note in report.all_notes:
        console.print(Text(f"Note: {note}", style="dim"))
    for line in lines_of(report.provenance):
        console.print(Text(line, style="dim"))
