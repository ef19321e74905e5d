"""The results of days in a file of JSON lines; none is lost or stored twice.

The first line says what is monitored and how; each other line is a day with its result
in the schema of `GroupEstimates.to_json`. A change writes a whole new file, flushes it
to the disk and renames it, so that whenever the process ends there is either the old
file or the new one. Two processes wait for each other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .._estimates.storage import SCHEMA_VERSION, check_schema
from .._reports.exports import write_text

SCHEMA = "skrankfair.Monitor"


def read(path: Path) -> tuple[Any, dict[str, str]]:
    """Return the settings, unchecked, and the text of the result of each day.

    Raises
    ------
    ValueError
        If the file is no complete store of a version that is known.
    OSError
        If it cannot be read.
    """
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        content = None
        with suppress(ValueError, RecursionError):
            content = json.loads(line)
        records.append(content if isinstance(content, dict) else {})
    head = records[0] if records else {}
    if head.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no store of a monitor: it has no {SCHEMA!r} head.")
    check_schema(head, SCHEMA, path)
    days: dict[str, str] = {}
    for number, day in enumerate(records[1:], 2):
        when = day.get("when")
        if not isinstance(when, str) or "result" not in day:
            raise ValueError(f"{path}, line {number}: it is no day with a result.")
        if when in days:
            raise ValueError(f"{path}, line {number}: {when} is there twice.")
        days[when] = json.dumps(day["result"])
    return head.get("settings"), days


def write(path: Path, settings: Mapping[str, Any], days: Mapping[str, str]) -> None:
    """Replace the store by a complete new one, or leave the old one unchanged."""
    head = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "settings": settings}
    lines = [json.dumps(head)]
    lines += [
        f'{{"when": {json.dumps(w)}, "result": {text}}}' for w, text in days.items()
    ]
    write_text(path, "\n".join(lines) + "\n")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing a store, where the system has locks.

    The lock is on the folder, which stays, and ends with the process.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
        with suppress(OSError):  # so that the new name survives a loss of power
            os.fsync(folder)
    finally:
        os.close(folder)
