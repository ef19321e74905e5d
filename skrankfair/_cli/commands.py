"""What each command of the command line does with its options."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from .._estimates.formatting import label
from .._estimates.group_estimates import GroupEstimates
from .._reports.audit import AuditReport, audit
from .._reports.conditions import checked, conditions_section
from .._reports.exports import write_text
from .._reports.findings import jsonable
from .._reports.html import check_report_packages
from ..monitoring import Monitor
from . import demo
from .input import MOST_GROUPS, option, read_arguments
from .options import COLUMNS
from .plan import plan_of
from .stream import is_streamed, streamed
from .terminal import (
    ALARMED,
    BEYOND,
    FAILED,
    InputError,
    complain,
    print_report,
    progress,
)

#: Options that are passed on to `audit` as they are.
_PASSED = (
    *("task", "favorable", "threshold", "k", "metrics", "confidence_level"),
    *("correction", "margin", "missing", "impact_ratio"),
)
#: What the store of a monitor is made with, and keeps; and what it is made of.
_SETTINGS = ("margin", "alpha", "baseline", "tolerance")
_NEEDED = ("metric", "y_true", "y_score", "sensitive_features")


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
        "made": _now(),
        "version": arguments.version,
        "command": shlex.join(["skrankfair", *arguments.words]),
    }


def _now() -> str:
    """Return the time, or that of ``SOURCE_DATE_EPOCH``, so that files can repeat."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.now(UTC)
    if epoch.isdecimal() and len(epoch) < 12:
        moment = datetime.fromtimestamp(int(epoch), UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


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
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {why}.") from None


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
    _check_outputs(arguments)
    with _working() as say:
        monitor = _opened(arguments)
        if arguments.add is not None:
            say(f"adding {arguments.add}")
            _add(monitor, arguments)
        numbers = _numbers(monitor)
        if arguments.json not in (None, "-"):
            write_text(arguments.json, f"{numbers}\n")
    print(numbers if arguments.json == "-" else repr(monitor))
    return ALARMED if any(alarm.active for alarm in monitor.alarms) else 0


def _opened(arguments: argparse.Namespace) -> Monitor:
    """Return the monitor of a store, which need not be there yet.

    What decides what a monitor says is given when the store is made, and only then.
    """
    names = ("metric", "task", *COLUMNS, *_SETTINGS)
    given = {name: getattr(arguments, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    path = Path(arguments.store)
    if path.exists():
        if given:
            raise InputError(
                f"{option(next(iter(given)))} is given when the store is made, and "
                f"{arguments.store} is there already; leave it out."
            )
        return Monitor.open(path)
    if arguments.add is None:
        raise InputError(f"there is no store {arguments.store}; --add makes it.")
    missing = [option(name) for name in _NEEDED if name not in given]
    if missing and not _is_result(arguments.add):
        raise InputError(f"a new store needs {', '.join(missing)}.")
    settings = {name: given.pop(name) for name in _SETTINGS if name in given}
    return Monitor(path, **settings, spec=given or None)


def _add(monitor: Monitor, arguments: argparse.Namespace) -> None:
    """Add a file to a monitor: rows to be measured, or a result."""
    when = str(date.today() if arguments.when is None else arguments.when)
    if when in monitor.when and not arguments.replace:
        raise InputError(f"{when} is there already; --replace takes its place.")
    spec = monitor.settings.spec
    if _is_result(arguments.add):
        result = GroupEstimates.from_json(_text(arguments.add))
    elif spec:
        rows = read_arguments(arguments.add, {name: spec.get(name) for name in COLUMNS})
        report = audit(**rows, task=spec.get("task"), metrics=spec["metric"])
        (result,) = report.results.values()
    else:
        raise InputError(
            f"{arguments.store} was made of results; give --add one, as to_json() "
            "writes it."
        )
    monitor.update(result, when, replace=arguments.replace)


def _is_result(path: str) -> bool:
    """Return whether a file is a result, by its name and its beginning."""
    return path.endswith(".json") and _text(path).startswith("{")


def _numbers(monitor: Monitor) -> str:
    """Return the alarms and the sequences as JSON."""
    content = {
        "updates": list(monitor.when),
        "alarms": [jsonable(vars(alarm)) for alarm in monitor.alarms],
        "sequences": [jsonable(row) for row in monitor.to_frame().to_dict("records")],
    }
    return json.dumps(content, indent=2, allow_nan=False)


def _demo(arguments: argparse.Namespace) -> int:
    _check_outputs(arguments)
    with _working() as say:
        report = demo.audit_story(arguments.story, arguments.data, say)
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
    names = ("before", "file", "data", "store", "add")
    given = [getattr(arguments, name, None) for name in names]
    inputs = [os.path.realpath(path) for path in given if path is not None]
    outputs = {}
    for name, path in _outputs(arguments).items():
        what = f"--{name} {path!r}"
        try:
            if Path(path).is_dir():
                raise InputError(f"{what} is a folder; give the name of a file.")
            if not Path(path).parent.is_dir():
                raise InputError(
                    f"{what} cannot be written: there is no folder "
                    f"{str(Path(path).parent)!r}; make it first."
                )
            outputs[name] = os.path.realpath(path)
        except (OSError, ValueError) as error:
            raise InputError(f"{what} cannot be written: {error}.") from None
        if outputs[name] in inputs:
            raise InputError(f"{what} would overwrite the input; give another name.")
    if len(set(outputs.values())) < len(outputs):
        raise InputError(
            f"--html and --json are the same file, {arguments.json!r}; give two names."
        )
    if "html" in outputs:
        with _working():
            check_report_packages()


def _outputs(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the files that are to be written, by the name of their option."""
    paths = {name: getattr(arguments, name, None) for name in ("html", "json")}
    if paths["json"] == "-":
        del paths["json"]
    return {name: path for name, path in paths.items() if path is not None}


def _give(
    report: Any, arguments: argparse.Namespace, show: Callable[[], object]
) -> int:
    """Write the files of a report, and print it whatever becomes of them."""
    written = []
    outputs = _outputs(arguments)
    for name, path in outputs.items():
        try:
            with progress() as say:
                say(f"writing {path}")
                getattr(report, f"to_{name}")(path)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or error
            complain(f"--{name} {path!r} is not written: {why}.")
        else:
            written.append(path)
    if arguments.json == "-":
        print(str(report.to_json()).rstrip())
    else:
        show()
        for path in written:
            print("Written:", label(path))
    return 0 if len(written) == len(outputs) else FAILED
