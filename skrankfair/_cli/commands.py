"""What each command of the command line does with its options."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from .._estimates.formatting import label
from .._reports.audit import AuditReport, audit
from .._reports.conditions import checked, conditions_section
from .._reports.files import write_text
from .._reports.html import check_report_packages
from .._reports.pilot import plan_of
from .._reports.provenance import command_of, now
from . import stories, watch
from .input import MOST_GROUPS, read_arguments
from .options import COLUMNS
from .stream import is_streamed, streamed
from .terminal import (
    ALARMED,
    BEYOND,
    FAILED,
    InputError,
    complain,
    print_report,
    printed,
    progress,
)

#: Options that are passed on to `audit` as they are.
_PASSED = (
    *("task", "favorable", "threshold", "k", "metrics", "confidence_level"),
    *("correction", "margin", "missing", "impact_ratio"),
)


@contextmanager
def _working() -> Iterator[Callable[[str], object]]:
    """Yield what shows progress; wrong input becomes an error of one line."""
    try:
        with progress() as say:
            yield say
    except (ImportError, ValueError) as error:
        raise InputError(str(error)) from None


def _rows(arguments: argparse.Namespace, path: str) -> dict[str, Any]:
    """Return the columns of a file as arguments of `audit`."""
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


def _audited(arguments: argparse.Namespace, path: str, say: Any) -> AuditReport:
    """Return the audit of a file, with what it was made of."""
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
    given = [f"{name} {column}" for name, column in named.items() if column is not None]
    provenance = {
        "file": path,
        "columns": ", ".join(given),
        "rows": f"{n_rows:,}",
        **_made(arguments),
    }
    by = report.by if arguments.by is None else f"group × {arguments.by}"
    title = report.title if arguments.title is None else arguments.title
    return replace(report, provenance=provenance, by=by, title=title)


def _made(arguments: argparse.Namespace) -> dict[str, str]:
    """Return when and how a report was made."""
    return {
        "made": now(),
        "version": arguments.version,
        "command": command_of(arguments.words),
    }


def _audit(arguments: argparse.Namespace) -> int:
    _check_outputs(arguments)
    conditions = _conditions(arguments)
    if any(c.metric == "impact_ratio" for c in conditions):
        arguments.impact_ratio = True
    with _working() as say:
        report = _audited(arguments, arguments.file, say)
        report, failed = _checked(report, conditions)
    return _give(report, arguments, lambda: print_report(report)) or failed


def _compare(arguments: argparse.Namespace) -> int:
    _check_outputs(arguments)
    with _working() as say:
        if arguments.before.endswith(".json"):  # as --json has written it
            before = AuditReport.from_json(_text(arguments.before))
        else:
            before = _audited(arguments, arguments.before, say)
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
    return _give(report, arguments, lambda: print_report(report)) or failed


def _text(path: str) -> str:
    """Return the text of a file, or raise an InputError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _conditions(arguments: argparse.Namespace) -> list[Any]:
    return [condition for some in arguments.fail_if or () for condition in some]


def _checked(report: AuditReport, conditions: Sequence[Any]) -> tuple[AuditReport, int]:
    """Return the report with what became of conditions, and the status that follows."""
    if not conditions:
        return report, 0
    results = checked(report, conditions)
    sections = (conditions_section(results), *report.sections)
    status = BEYOND if any(result.fails for result in results) else 0
    return replace(report, sections=sections), status


def _plan(arguments: argparse.Namespace) -> int:
    _check_outputs(arguments)
    with _working() as say:
        say(f"reading {arguments.file}")
        columns = _rows(arguments, arguments.file)
        say(f"measuring {len(columns['y_score']):,} rows")
        report = audit(**columns, task=arguments.task, metrics=arguments.metrics)
        asked = arguments.gap, arguments.power, arguments.alpha
        plan = plan_of(report, *asked, columns["y_true"])
    return _give(plan, arguments, lambda: print(repr(plan)))


def _monitor(arguments: argparse.Namespace) -> int:
    only = arguments.json == "-"
    written = None if only else arguments.json
    if written is not None:
        for other in (arguments.store, arguments.add):
            _check_output(f"--json {written!r}", Path(written), other)
    try:
        with _working() as say:
            monitor = watch.opened(arguments, tuple(COLUMNS))
            if arguments.add is not None:
                say(f"adding {arguments.add}")
                watch.add(monitor, arguments, tuple(COLUMNS))
            numbers = watch.numbers(monitor)
            status = printed(lambda: print(numbers if only else repr(monitor)))
            if written is not None:
                write_text(written, f"{numbers}\n")
    except OSError as error:
        complain(f"{error.filename or arguments.store}: {error.strerror or error}.")
        return FAILED
    return status or (ALARMED if any(alarm.active for alarm in monitor.alarms) else 0)


def _demo(arguments: argparse.Namespace) -> int:
    _check_outputs(arguments)
    with _working() as say:
        report = stories.audit_story(arguments.story, arguments.data, progress=say)
    report = replace(report, provenance=_made(arguments))
    return _give(report, arguments, lambda: print_report(report))


COMMANDS = {
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
    html, json = getattr(arguments, "html", None), arguments.json
    if json == "-":
        json = None
    for name, path in (("html", html), ("json", json)):
        if path is not None:
            for source in sources:
                _check_output(f"--{name} {path!r}", Path(path), source)
    if html is not None and json is not None and _same_file(html, json):
        raise InputError(
            f"--html and --json are the same file, {json!r}; give two names."
        )
    if html is not None:
        with _working():
            check_report_packages()


def _check_output(what: str, path: Path, source: str | None) -> None:
    try:
        if path.is_dir():
            raise InputError(f"{what} is a folder; give the name of a file.")
        if not path.parent.is_dir():
            raise InputError(
                f"{what} cannot be written: there is no folder {str(path.parent)!r}; "
                "make it first."
            )
        if source is not None and _same_file(path, source):
            raise InputError(f"{what} would overwrite the input; give another name.")
    except (OSError, ValueError) as error:
        raise InputError(f"{what} cannot be written: {error}.") from None


def _same_file(path: str | Path, other: str | Path) -> bool:
    """Return whether two names are of one file, which need not exist yet."""
    path, other = Path(path), Path(other)
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def _give(
    report: Any, arguments: argparse.Namespace, show: Callable[[], object]
) -> int:
    """Print a report and write its files, each whatever becomes of the others."""
    only = arguments.json == "-"
    if only:
        status = printed(lambda: print(str(report.to_json()).rstrip()))
    else:
        status = printed(show)
    for name in ("html", "json"):
        path = getattr(arguments, name, None)
        if path is None or (only and name == "json"):
            continue
        try:
            with progress() as say:
                say(f"writing {path}")
                getattr(report, f"to_{name}")(path)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or error
            complain(f"--{name} {path!r} is not written: {why}.")
            done = FAILED
        else:
            done = 0 if only else printed(partial(print, "Written:", label(path)))
        status = status or done
    return status
