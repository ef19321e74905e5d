"""``skrankfair monitor``: a store of results, and the file of a day."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from .._estimates.group_estimates import GroupEstimates
from ..monitoring import Monitor
from .input import option, read_arguments
from .terminal import InputError

#: What a store is made with, and keeps.
_SETTINGS = ("margin", "alpha", "baseline", "tolerance")
_NEEDED = ("metric", "y_true", "y_score", "sensitive_features")


def opened(arguments: argparse.Namespace, columns: tuple[str, ...]) -> Monitor:
    """Return the monitor of a store, which need not be there yet.

    What decides what a monitor says is given when the store is made, and only then.
    """
    names = ("metric", "task", *columns)
    given = {name: getattr(arguments, name) for name in (*names, *_SETTINGS)}
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


def add(monitor: Monitor, arguments: argparse.Namespace, columns: Any) -> None:
    """Add a file to a monitor: rows to be measured, or a result."""
    when = str(date.today() if arguments.when is None else arguments.when)
    if when in monitor.when and not arguments.replace:
        raise InputError(f"{when} is there already; --replace takes its place.")
    if _is_result(arguments.add):
        text = Path(arguments.add).read_text(encoding="utf-8")
        result = GroupEstimates.from_json(text)
    else:
        spec = monitor.settings.spec
        if not spec:
            raise InputError(
                f"{arguments.store} was made of results; give --add one, as to_json() "
                "writes it."
            )
        result = _measured(arguments.add, spec, columns)
    monitor.update(result, when, replace=arguments.replace)


def _measured(path: str, spec: Mapping[str, Any], columns: Any) -> GroupEstimates:
    """Return the result of the rows of a file."""
    from .._reports.audit import audit

    wanted = {name: spec.get(name) for name in columns}
    rows = read_arguments(path, wanted)
    report = audit(**rows, task=spec.get("task"), metrics=spec["metric"])
    (result,) = report.results.values()
    return result


def _is_result(path: str) -> bool:
    """Return whether a file is a result, by its name and its beginning."""
    if not path.endswith(".json"):
        return False
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(1) == "{"
    except (OSError, ValueError):
        return False


def numbers(monitor: Monitor) -> str:
    """Return the alarms and the sequences as JSON."""
    from .._reports.findings import jsonable

    frame = monitor.to_frame()
    content = {
        "updates": list(monitor.when),
        "alarms": [jsonable(vars(alarm)) for alarm in monitor.alarms],
        "sequences": [jsonable(row) for row in frame.to_dict("records")],
    }
    return json.dumps(content, indent=2, allow_nan=False)
