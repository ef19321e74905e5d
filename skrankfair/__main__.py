"""The command line: ``skrankfair audit FILE`` and others; `_cli/options.py` has all."""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

# What takes long to import is imported when signals are taken care of.
from . import __version__
from ._cli.process import (
    ALARMED,
    BEYOND,
    FAILED,
    INTERRUPTED,
    UNUSABLE,
    InputError,
    own_process,
)

if TYPE_CHECKING:
    from ._reports.audit import AuditReport
    from ._reports.pilot import AuditPlan


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    It is 0 if all that was asked for is printed and written, 1 if some of it is not, 2
    for input that cannot be used, 3 for an alarm of a monitor, 4 if a report meets a
    condition of ``--fail-if``, 130 for Ctrl-C, and 141 if nobody reads what is printed.
    Without `argv` the arguments are those of the process, which then ends at Ctrl-C.
    """
    if argv is None:
        own_process()
    from ._cli.terminal import complain, printed

    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot show is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    version = f"skrankfair {__version__}"
    if words[:1] == ["--version"]:  # without the imports that the options need
        return printed(lambda: sys.stdout.write(f"{version}\n"))
    try:
        with _short_warnings():
            from ._cli.options import parser

            arguments = parser(version).parse_args(words)
            arguments.words = words
            return int(_COMMANDS[arguments.command](arguments))
    except SystemExit:  # of --help
        return printed(lambda: None)
    except InputError as error:
        complain(str(error))
        return UNUSABLE
    except MemoryError as error:
        size = f" ({error})" if str(error) else ""
        complain(
            f"there is not enough memory{size}; audit fewer metrics, groups or rows "
            "at once."
        )
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each warning once, as one line, also those of other packages.

    What this changes for the whole process is no harm: the command line is all of it.
    """
    from ._cli.terminal import complain

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A file that an interrupt left open is nothing to tell a user.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                complain(f"warning: {message}")


def _rows(arguments: argparse.Namespace, path: str) -> dict[str, Any]:
    """Return the columns of a file."""
    from ._cli.input import MOST_GROUPS, read_arguments
    from ._cli.options import COLUMNS

    if arguments.by is not None and arguments.overlapping is None:
        raise InputError(
            "--by is for --overlapping; give crossed columns as --sensitive-features "
            "A,B."
        )
    columns = {name: getattr(arguments, name) for name in COLUMNS}
    if arguments.overlapping is not None:
        columns["sensitive_features"] = arguments.overlapping
    return read_arguments(
        path,
        columns,
        missing=getattr(arguments, "missing", "raise") != "raise",
        sep=arguments.sep,
        decimal=arguments.decimal,
        positive=arguments.positive,
        max_groups=arguments.max_groups or MOST_GROUPS,
        overlapping=arguments.overlapping is not None,
        by=arguments.by,
    )


#: Options that are passed on to `audit` as they are.
_PASSED = (
    *("task", "favorable", "threshold", "k", "metrics", "confidence_level"),
    *("correction", "margin", "missing", "impact_ratio"),
)


def _audited(arguments: argparse.Namespace, path: str, say: Any) -> AuditReport:
    """Return the audit of a file, with what it was made of."""
    from ._cli.options import COLUMNS
    from ._cli.stream import is_streamed, streamed
    from ._reports.audit import audit
    from ._reports.provenance import command_of, now

    say(f"reading {path}")
    if is_streamed(arguments, path):
        report = streamed(arguments, path, say)
        n_rows = report.n_rows
    else:
        columns = _rows(arguments, path)
        n_rows = len(columns["y_score"])
        say(f"auditing {n_rows:,} rows")
        options = {n: getattr(arguments, n) for n in _PASSED if n in arguments}
        report = audit(**columns, **options)
    named = {name: getattr(arguments, name) for name in (*COLUMNS, "overlapping", "by")}
    told = [f"{name} {column}" for name, column in named.items() if column is not None]
    provenance = {
        "file": path,
        "columns": ", ".join(told),
        "rows": f"{n_rows:,}",
        "made": now(),
        "version": f"skrankfair {__version__}",
        "command": command_of(arguments.words),
    }
    by = report.by if arguments.by is None else f"group × {arguments.by}"
    title = report.title if arguments.title is None else arguments.title
    return replace(report, provenance=provenance, by=by, title=title)


def _audit(arguments: argparse.Namespace) -> int:
    from ._cli.terminal import progress

    _check_outputs(arguments)
    conditions = _conditions(arguments)
    if any(c.metric == "impact_ratio" for c in conditions):
        arguments.impact_ratio = True
    with progress() as say, _usable():
        report = _audited(arguments, arguments.file, say)
        report, failed = _checked(report, conditions)
    return _give(report, arguments) or failed


def _compare(arguments: argparse.Namespace) -> int:
    from ._cli.terminal import progress

    _check_outputs(arguments)
    with progress() as say, _usable():
        before = _stored(arguments.before) or _audited(arguments, arguments.before, say)
        now = _audited(arguments, arguments.file, say)
        if before.task != now.task:
            raise InputError(
                f"{arguments.before} is read as {before.task!r} and {arguments.file} "
                f"as {now.task!r}; give --task."
            )
        title = arguments.title or "What has changed"
        change = now.changes_since(before, paired=arguments.paired, title=title)
        files = {"before": arguments.before, "rows before": f"{before.n_rows:,}"}
        change = replace(change, provenance={**files, **now.provenance})
        report, failed = _checked(change, _conditions(arguments))
    return _give(report, arguments) or failed


def _stored(path: str) -> AuditReport | None:
    """Return the report of an audit that ``--json`` has written, by the name."""
    if not path.endswith(".json"):
        return None
    from ._reports.audit import AuditReport

    try:
        return AuditReport.from_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _conditions(arguments: argparse.Namespace) -> list[Any]:
    return [condition for some in arguments.fail_if or () for condition in some]


def _checked(report: AuditReport, conditions: Sequence[Any]) -> tuple[AuditReport, int]:
    """Return the report with what became of conditions, and the status that follows."""
    if not conditions:
        return report, 0
    from ._reports.conditions import checked, conditions_section

    found = checked(report, conditions)
    sections = (conditions_section(found), *report.sections)
    status = BEYOND if any(one.fails for one in found) else 0
    return replace(report, sections=sections), status


@contextmanager
def _usable() -> Iterator[None]:
    """Turn what the package says of wrong input into one line."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from None


def _plan(arguments: argparse.Namespace) -> int:
    from ._cli.terminal import progress
    from ._reports.audit import audit
    from ._reports.pilot import plan_of

    _check_outputs(arguments)
    with progress() as say, _usable():
        say(f"reading {arguments.file}")
        columns = _rows(arguments, arguments.file)
        say(f"measuring {len(columns['y_score']):,} rows")
        report = audit(**columns, task=arguments.task, metrics=arguments.metrics)
        asked = arguments.gap, arguments.power, arguments.alpha
        plan = plan_of(report, *asked, columns["y_true"])
    return _give(plan, arguments)


def _monitor(arguments: argparse.Namespace) -> int:
    from ._cli.options import COLUMNS
    from ._cli.terminal import complain, printed_text, progress
    from ._cli.watch import add, numbers, opened
    from ._reports.files import write_text

    written = arguments.json not in (None, "-")
    if written:
        what = f"--json {arguments.json!r}"
        for other in (arguments.store, arguments.add):
            _check_output(what, Path(arguments.json), other)
    try:
        with progress() as say:
            monitor = opened(arguments, tuple(COLUMNS))
            if arguments.add is not None:
                say(f"adding {arguments.add}")
                add(monitor, arguments, tuple(COLUMNS))
            alarmed = any(alarm.active for alarm in monitor.alarms)
            only = arguments.json == "-"
            status = printed_text(numbers(monitor)[:-1] if only else repr(monitor))
            if written:
                write_text(arguments.json, numbers(monitor))
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        complain(f"{error.filename or arguments.store}: {error.strerror or error}.")
        return FAILED
    return status or (ALARMED if alarmed else 0)


def _demo(arguments: argparse.Namespace) -> int:
    from ._cli.stories import told
    from ._cli.terminal import progress
    from ._reports.provenance import command_of, now

    _check_outputs(arguments)
    with progress() as say:
        try:
            report = told(arguments.story, arguments.data, progress=say)
        except (ImportError, ValueError) as error:
            raise InputError(str(error)) from None
    provenance = {
        "made": now(),
        "version": f"skrankfair {__version__}",
        "command": command_of(arguments.words),
    }
    return _give(replace(report, provenance=provenance), arguments)


_COMMANDS = {
    "audit": _audit,
    "compare": _compare,
    "plan": _plan,
    "monitor": _monitor,
    "demo": _demo,
}


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Complain of outputs that cannot be written, before any work is done."""
    names = ("before", "file", "data")
    sources = [getattr(arguments, name) for name in names if name in arguments]
    paths: dict[str, str | None] = {
        name: getattr(arguments, name, None) for name in ("html", "json")
    }
    if paths["json"] == "-":
        paths["json"] = None
    for name, path in paths.items():
        if path is None:
            continue
        try:
            for source in sources:
                _check_output(f"--{name} {path!r}", Path(path), source)
        except (OSError, ValueError) as error:
            raise InputError(f"--{name} {path!r} cannot be written: {error}.") from None
    html, json = paths["html"], paths["json"]
    if html is not None and json is not None and _same_file(html, json):
        raise InputError(
            f"--html and --json are the same file, {arguments.json!r}; give two names."
        )
    if html is not None:
        from ._reports.html_report import check_report_packages

        try:
            check_report_packages()
        except ImportError as error:
            raise InputError(str(error)) from None


def _check_output(what: str, path: Path, source: str | None) -> None:
    if path.is_dir():
        raise InputError(f"{what} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise InputError(
            f"{what} cannot be written: there is no folder {str(path.parent)!r}; make "
            "it first."
        )
    if source is not None and _same_file(path, source):
        raise InputError(f"{what} would overwrite the input; give another name.")
    if path.is_file() and _is_standard_output(path):
        raise InputError(f"{what} is where the report is printed; give another name.")


def _same_file(path: str | Path, other: str | Path) -> bool:
    """Return whether two names, also of files that are not there, mean the same."""
    path, other = Path(path), Path(other)
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def _is_standard_output(path: Path) -> bool:
    try:
        printed_to = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):  # not of the system
        return False
    return stat.S_ISREG(printed_to.st_mode) and os.path.samestat(
        path.stat(), printed_to
    )


def _give(report: AuditReport | AuditPlan, arguments: argparse.Namespace) -> int:
    """Print the report and write the files, each whatever becomes of the others."""
    from ._cli.terminal import (
        complain,
        print_report,
        printed,
        printed_line,
        printed_text,
        progress,
    )

    only = arguments.json == "-"
    if only:
        status = printed_text(str(report.to_json()).rstrip())
    else:
        status = printed(lambda: print_report(report))
    for name in ("html", "json"):
        path = getattr(arguments, name, None)
        if path is None or (only and name == "json"):
            continue
        write = getattr(report, f"to_{name}")
        try:
            with progress() as say:
                say(f"writing {path}")
                write(path)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or error
            complain(f"--{name} {path!r} is not written: {why}.")
            done = FAILED
        else:
            done = 0 if only else printed_line(f"Written: {path}")
        status = status or done
    return status


if __name__ == "__main__":
    sys.exit(main())
