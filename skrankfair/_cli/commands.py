"""One function per command of the command line, from options to a printed answer."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.group_estimates import GroupEstimates
from .._reports.audit import AuditReport, audit
from .._reports.conditions import checked, conditions_section, parsed_conditions
from .._reports.exports import write_text
from .._reports.findings import jsonable
from .._reports.html import check_report_packages
from ..monitoring import Monitor
from . import demo
from .input import given, option, read_arguments
from .options import COLUMNS
from .stream import is_streamed, streamed
from .terminal import ALARMED, BEYOND, InputError, print_report, progress

#: Options that are passed on to `audit` unchanged.
_PASSED = (
    *("task", "favorable", "threshold", "k", "metrics", "confidence_level"),
    *("correction", "margin", "missing", "impact_ratio", "reference", "cross"),
)
#: Options that say how a file is read, for `read_arguments`.
_READING = ("sep", "decimal", "positive", "max_groups")
#: Options of files of rows, which reports that are stored have taken already.
_OF_ROWS = (*COLUMNS, "by", "overlapping", *_PASSED, *_READING)
#: Settings and columns that the store of a monitor is created with, and keeps.
_SETTINGS = ("margin", "alpha", "baseline", "tolerance")
_MEASURING = ("metric", "task", "missing", "threshold", *COLUMNS, *_READING)
_NEEDED = ("metric", "y_true", "y_score", "sensitive_features")
_MATCHED = "matched_pair_calibration"


def _rows(arguments: argparse.Namespace, path: str) -> dict[str, Any]:
    """Return the columns of a file as arguments of `audit`."""
    names = (*COLUMNS, "within", "overlapping", "by")
    columns = {name: getattr(arguments, name, None) for name in names}
    if getattr(arguments, "named_by", False):
        columns["by"] = columns.pop("sensitive_features")
    read = read_arguments(path, columns, **given(arguments, _READING))
    groups, cross = read["sensitive_features"], getattr(arguments, "cross", True)
    truth = columns["overlapping"] is None and np.asarray(groups).dtype.kind == "b"
    if truth and cross is not True:
        read["sensitive_features"] = groups.astype(str)  # labels, and no members
    return read


def _settle_groups(arguments: argparse.Namespace) -> None:
    """Take --by as the groupings, unless it crosses those of --overlapping."""
    by, named = [*dict.fromkeys(arguments.by or [])], arguments.sensitive_features
    overlapping = arguments.overlapping is not None
    arguments.named_by = bool(by) and not overlapping
    naming = [arguments.named_by, named is not None, overlapping]
    if naming.count(True) != 1 or (overlapping and len(by) > 1):
        raise InputError(
            "one of --by (once or more), --sensitive-features and --overlapping must "
            "name the groups; one --by may cross those of --overlapping."
        )
    arguments.by = by[0] if by and overlapping else None
    if arguments.named_by:
        arguments.sensitive_features = ",".join(by)
    crossed = len(by) < 2 or overlapping
    arguments.cross = "both" if getattr(arguments, "cross", False) else crossed
    reference = getattr(arguments, "reference", None)
    if arguments.cross is not True and reference is not None:
        # A comma separates where a column follows, and belongs to a label elsewhere.
        pairs = (of.strip().partition("=") for of in re.split(",(?=[^,]*=)", reference))
        arguments.reference = {column: label for column, _, label in pairs}


def _report(
    arguments: argparse.Namespace, path: str, say: Any
) -> tuple[AuditReport, dict[str, Any]]:
    """Return the audit of a file, or of the files of a pattern, and its columns.

    Files that are audited part by part have no columns in memory.
    """
    say(f"reading {path}")
    if is_streamed(arguments, path):
        return streamed(arguments, path, say), {}
    columns = _rows(arguments, path)
    say(f"auditing {len(columns['sensitive_features']):,} rows")
    return audit(**columns, **given(arguments, _PASSED)), columns


def _audited(arguments: argparse.Namespace, path: str, say: Any) -> AuditReport:
    """Return the audit of a file, with a record of when and how it was made.

    Of the files that are compared it may be the report itself.
    """
    if "before" in arguments and (text := _stored(path)):
        return _from_json(AuditReport, path, text)
    report, columns = _report(arguments, path, say)
    n_rows = len(columns["y_score"]) if columns else report.n_rows
    named = given(arguments, (*COLUMNS, "overlapping", "by"))
    provenance = {
        "file": path,
        "columns": ", ".join(f"{name} {column}" for name, column in named.items()),
        "rows": f"{n_rows:,}",
        **_made(arguments),
    }
    by = report.by if arguments.by is None else f"group × {arguments.by}"
    title = report.title if arguments.title is None else arguments.title
    return replace(report, provenance=provenance, by=by, title=title)


def _made(arguments: argparse.Namespace) -> dict[str, str]:
    """Return when and how a report was made.

    The time is ``SOURCE_DATE_EPOCH`` for files that can be reproduced.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.now(UTC)
    if epoch.isdecimal() and len(epoch) < 12:
        moment = datetime.fromtimestamp(int(epoch), UTC)
    return {
        "made": f"{moment:%Y-%m-%d %H:%M} UTC",
        "version": arguments.version,
        "command": shlex.join(["skrankfair", *arguments.words]),
    }


@dataclass(frozen=True)
class Answer:
    """The answer of a command without a report: its text, and its numbers for JSON."""

    text: str
    numbers: dict[str, Any]

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | Path:
        """Return the numbers as JSON, or write them."""
        text = json.dumps(self.numbers, indent=2, allow_nan=False) + "\n"
        return text if path is None else write_text(path, text)

    def __repr__(self) -> str:
        """Return the text."""
        return self.text


def _conditions(arguments: argparse.Namespace) -> list[Any]:
    """Return the conditions of --fail-if, and ask for the impact ratios of one."""
    conditions = parsed_conditions(arguments.fail_if)
    if any(condition.metric == "impact_ratio" for condition in conditions):
        arguments.impact_ratio = True
    return conditions


def _audit(arguments: argparse.Namespace, say: Any) -> tuple[AuditReport, int]:
    conditions = _conditions(arguments)
    return _checked(_audited(arguments, arguments.file, say), conditions)


def _compare(arguments: argparse.Namespace, say: Any) -> tuple[AuditReport, int]:
    conditions = _conditions(arguments)
    before = _audited(arguments, arguments.before, say)
    now = _audited(arguments, arguments.file, say)
    if before.task != now.task:
        raise InputError(
            f"{arguments.before} is read as {before.task!r} and {arguments.file} as "
            f"{now.task!r}; give --task."
        )
    title = arguments.title or "What has changed"
    change = now.changes_since(before, paired=arguments.paired, title=title)
    files = {"before": arguments.before, **now.provenance, "file": arguments.file}
    change = replace(change, provenance={**files, **_made(arguments)})
    return _checked(change, conditions)


def _are_stored(arguments: argparse.Namespace) -> bool:
    """Return whether two reports are compared; they have taken the options of rows."""
    paths = [getattr(arguments, name, "") for name in ("before", "file")]
    stored = all(map(_stored, paths))
    if stored and (named := [*map(option, given(arguments, _OF_ROWS))]):
        raise InputError(f"{named[0]} is for rows, and both files are reports.")
    return stored


def _stored(path: str) -> str:
    """Return the text of a stored result or report; none of any other file."""
    try:
        text = Path(path).read_text(encoding="utf-8") if path.endswith(".json") else ""
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {why}.") from None
    return text if text.startswith("{") else ""


def _from_json(kind: Any, path: str, text: str) -> Any:
    """Return the result or report of a file's text; an error names the file."""
    try:
        return kind.from_json(text)
    except ValueError as error:
        hint = "audit --json writes reports, and to_json() reports and results."
        raise InputError(f"{path}: {error} {hint}") from None


def _checked(report: AuditReport, conditions: list[Any]) -> tuple[AuditReport, int]:
    """Return the report with checked conditions, and the exit status."""
    if not conditions:
        return report, 0
    results = checked(report, conditions)
    sections = (conditions_section(results), *report.sections)
    status = BEYOND if any(result.fails for result in results) else 0
    return replace(report, sections=sections), status


def _plan(arguments: argparse.Namespace, say: Any) -> tuple[Answer, int]:
    if arguments.returning and arguments.per_week is None:
        raise InputError("--returning needs --per-week, the clusters of a week.")
    report, columns = _report(arguments, arguments.file, say)
    gap, power, alpha = arguments.gap, arguments.power, arguments.alpha
    results = {f.metric.name: f.result for f in report.findings if f.tested}
    if not results:
        raise ValueError("None of the metrics has a test that could find a gap.")
    what = "change of the gap" if arguments.change else "gap"
    level = f"level {alpha:g}, divided by the number of tests"
    asked = f"To find a {what} of {gap:g} with power {power:g} ({level}):"
    if arguments.change:
        asked += "\nOf two equal parts: two arms, or before and after."
    if report.n_items is not None:
        asked += "\nItems grow with users: more users of the same items do not find it."
    blocks, metrics = [f"Pilot: {report.counts}\n{asked}"], []
    for name, result in results.items():
        fair = result.fair_value or 0.0
        largest = max(fair, 1 - fair) if result.metric.share else float("inf")
        if name == _MATCHED and columns:  # a difference of two outcomes
            largest = float(np.ptp(columns["y_true"]))
        largest *= 1 + arguments.change
        metric = {"metric": name, "largest_possible": jsonable(largest)}
        rows, table = [], f"No {what} of {name} is that large: {largest:g} at most."
        if not gap > largest:
            of_weeks = _correlation(result, name, columns, arguments)
            rows = _sizes(result, arguments, of_weeks)
            table = _table_of_sizes(rows, largest, report.cluster_unit)
        metrics.append({**metric, "groups": [jsonable(row) for row in rows]})
        blocks.append(f"{name}\n{table}")
    if without := [f.metric.name for f in report.findings if not f.tested]:
        blocks.append(f"Without a test to plan: {fmt.some(without)}.")
    numbers = {"gap": gap, "power": power, "alpha": alpha}
    numbers |= {"n_clusters": report.n_clusters, "metrics": metrics}
    return Answer("\n\n".join(blocks), numbers), 0


def _correlation(
    result: GroupEstimates,
    name: str,
    columns: dict[str, Any],
    arguments: argparse.Namespace,
) -> Any:
    """Return the correlation of two weeks of a cluster, from that of its queries.

    With m queries per cluster the variance is ``1 + (m - 1) r`` times that of m queries
    of different clusters. This is the design effect of the pilot, which counts as a
    week; the means of two weeks then have the correlation ``m r / (1 + (m - 1) r)``.
    Without a pilot of that kind it is 1: clusters that return add nothing new.
    """
    if not arguments.returning or arguments.cluster is None or not columns:
        return 1.0
    options = given(arguments, _PASSED)
    alone = audit(**{**columns, "cluster": None}, **{**options, "metrics": name})
    queries = alone.results[name].as_gap()
    effect = (result.as_gap().standard_error / queries.standard_error) ** 2
    m = queries.n_effective / result.as_gap().n_effective
    with np.errstate(divide="ignore", invalid="ignore"):
        of_queries = np.clip((effect - 1) / (m - 1), 0.0, 1.0)
        return np.nan_to_num(m * of_queries / (1 + (m - 1) * of_queries), nan=1.0)


def _sizes(
    result: GroupEstimates, arguments: argparse.Namespace, correlation: Any
) -> list[dict[Hashable, Any]]:
    """Return by group the gap that the data find, and the data that find a gap.

    The difference of two halves of the data has twice the error of the whole.
    """
    power, alpha, halves = arguments.power, arguments.alpha, 1 + arguments.change
    sizes = result.required(arguments.gap / halves, power, alpha)
    frame = sizes.to_frame().drop(columns="n_effective").reset_index()
    found = halves * result.minimum_detectable(power, alpha)
    frame.insert(1, "minimum_detectable", found)
    if arguments.per_week is not None:
        weeks = sizes.weeks(arguments.per_week, arguments.returning, correlation)
        frame["weeks"] = weeks
    return frame.to_dict("records")


def _table_of_sizes(rows: list[dict[Hashable, Any]], largest: float, unit: str) -> str:
    """Return the sizes as a table of text, in words where no gap can be found."""
    weeks = ["weeks"] if "weeks" in rows[0] else []
    cells = [
        [
            fmt.label(row["group"]),
            "no possible gap"
            if row["minimum_detectable"] > largest
            else fmt.number(row["minimum_detectable"]),
            fmt.number(row["factor"], 2),
            fmt.count(row["n_clusters"]),
            *(fmt.count(row[n]).replace("inf", "over ten years") for n in weeks),
        ]
        for row in rows
    ]
    header = ["group", "finds now", "times these data", f"{unit}s in all", *weeks]
    return fmt.text_table(header, cells)


def _monitor(arguments: argparse.Namespace, say: Any) -> tuple[Answer, int]:
    monitor = _opened(arguments)
    if arguments.add is not None:
        say(f"adding {arguments.add}")
        _add(monitor, arguments, say)
    elif arguments.replace or arguments.when is not None:
        raise InputError("--when and --replace need --add.")
    numbers = {
        "updates": list(monitor.when),
        "alarms": [jsonable(vars(alarm)) for alarm in monitor.alarms],
        "sequences": [jsonable(row) for row in monitor.to_frame().to_dict("records")],
    }
    status = ALARMED if any(alarm.calls for alarm in monitor.alarms) else 0
    return Answer(repr(monitor), numbers), status


def _opened(arguments: argparse.Namespace) -> Monitor:
    """Return the monitor of a store, which is created if it is not there.

    Settings are given when the store is created, and only then.
    """
    named = given(arguments, (*_MEASURING, *_SETTINGS))
    path = Path(arguments.store)
    if path.exists():
        if named:
            raise InputError(
                f"{option(next(iter(named)))} is given when the store is made, and "
                f"{arguments.store} is there already; leave it out."
            )
        return Monitor.open(path)
    if arguments.add is None:
        raise InputError(f"there is no store {arguments.store}; --add makes it.")
    missing = [option(name) for name in _NEEDED if name not in named]
    if missing and not _stored(arguments.add):
        raise InputError(f"a new store needs {', '.join(missing)}.")
    settings = {name: named.pop(name) for name in _SETTINGS if name in named}
    return Monitor(path, **settings, spec=named or None)


def _add(monitor: Monitor, arguments: argparse.Namespace, say: Any) -> None:
    """Add a file to a monitor: rows to be measured, or a result."""
    when = str(date.today() if arguments.when is None else arguments.when)
    if when in monitor.when and not arguments.replace:
        raise InputError(f"{when} is there already; --replace replaces it.")
    spec = monitor.settings.spec
    if text := _stored(arguments.add):
        result = _from_json(GroupEstimates, arguments.add, text)
    elif spec and {*_NEEDED} <= {*spec}:
        names = {**dict.fromkeys(_MEASURING), **spec, "metrics": [spec["metric"]]}
        of_day = argparse.Namespace(**names)
        report, _ = _report(of_day, arguments.add, say)
        (result,) = report.results.values()
    else:
        raise InputError(
            f"{arguments.store} was made of results; give --add one, as to_json() "
            "writes it."
        )
    monitor.update(result, when, replace=arguments.replace)


def _demo(arguments: argparse.Namespace, say: Any) -> tuple[AuditReport, int]:
    report = demo.audit_story(arguments.story, arguments.data, say)
    return replace(report, provenance=_made(arguments)), 0


COMMANDS: dict[str, Callable[[argparse.Namespace, Any], tuple[Any, int]]] = {
    "audit": _audit,
    "compare": _compare,
    "plan": _plan,
    "monitor": _monitor,
    "demo": _demo,
}


def run(arguments: argparse.Namespace) -> int:
    """Run the command of some arguments, and return its exit status.

    A fault of the input becomes an error of one line. A report is printed even if its
    files cannot be written.
    """
    outputs = _outputs(arguments)
    if "by" in arguments and not _are_stored(arguments):
        _settle_groups(arguments)
    try:
        _check_outputs(arguments)
        with progress() as say:
            answer, status = COMMANDS[arguments.command](arguments, say)
    except (ImportError, ValueError) as error:
        raise InputError(_in_options(str(error), arguments)) from None
    try:
        for name, path in outputs.items():
            getattr(answer, f"to_{name}")(path)
    finally:
        if arguments.json == "-":
            print(str(answer.to_json()).rstrip())
        elif isinstance(answer, AuditReport):
            print_report(answer)
        else:
            print(answer)
    if arguments.json != "-":
        for path in outputs.values():
            print("Written:", fmt.label(path))
    return status


def _in_options(error: str, arguments: argparse.Namespace) -> str:
    """Return an error of `audit` with the column and the options that it is about."""
    name, _, _ = error.partition(" ")
    text = re.sub(r"missing='(\w+)'", r"--missing \1", error)
    if name in COLUMNS and name in arguments:
        text = f"{option(name)} {getattr(arguments, name) or '(none)'}: {text}"
    from_0 = " Rows count from 0, below the header."
    return text + (from_0 if re.search(r"\brow \d", error) else "")


def _outputs(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the files that are to be written, by the name of their option."""
    paths = given(arguments, ("html", "json"))
    if paths.get("json") == "-":  # standard output
        del paths["json"]
    return paths


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise an error for outputs that cannot be written, before any work is done."""
    inputs = given(arguments, ("before", "file", "data", "store", "add")).values()
    taken = {Path(path).resolve(): "the input" for path in inputs}
    for name, path in _outputs(arguments).items():
        what, real = f"--{name} {path!r}", Path(path).resolve()
        if path == "-" or real.is_dir() or not real.parent.is_dir():
            raise InputError(f"{what} must be a file in a folder that is there.")
        if real in taken:
            raise InputError(f"{what} would overwrite {taken[real]}; give another.")
        taken[real] = f"--{name}"
        if name == "html":
            check_report_packages()
