"""Files that are audited part by part: several of them, or too large for memory."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from .._estimates.allocation import memory_limit
from .._reports.audit import AuditReport
from .._reports.files import UNFINISHED
from .input import option
from .process import InputError

# Of memory, at the time when there is most of it, for a byte of a file.
_PER_BYTE = {".parquet": 30, ".csv": 6, ".tsv": 6}
#: Options of the audit of a file that lacks what these ask for.
_PASSED = ("favorable", "k", "metrics", "confidence_level", "correction", "margin")
_REFUSED = (
    *("engagement", "threshold", "overlapping", "by", "positive", "sep", "decimal"),
    *("max_groups", "impact_ratio"),
)
_PARTS = ("memory", "jobs", "temp_directory")
_COLUMNS = ("y_true", "y_score", "sensitive_features", "qid", "cluster")


def is_streamed(arguments: argparse.Namespace, path: str) -> bool:
    """Return whether files are to be audited part by part."""
    file = Path(path)
    if ("*" in path or "?" in path) and not file.exists():
        return True
    if any(getattr(arguments, name, None) is not None for name in _PARTS):
        return True
    per_byte = _PER_BYTE.get(file.suffix.lower())
    if per_byte is None or not file.is_file() or _of_memory(arguments):
        return False
    return file.stat().st_size * per_byte > memory_limit()


def streamed(
    arguments: argparse.Namespace, path: str, say: Callable[[str], object]
) -> AuditReport:
    """Return the audit of one file or of all that fit a pattern."""
    from ..distributed import audit

    _check(arguments, path)
    columns = {name: getattr(arguments, name) for name in (*_COLUMNS, "sample_weight")}
    groups = columns["sensitive_features"]
    if "," in groups:
        columns["sensitive_features"] = [name.strip() for name in groups.split(",")]
    options = {name: getattr(arguments, name) for name in _PASSED}
    options["favorable"] = arguments.favorable or "high"
    memory, jobs, folder = (getattr(arguments, name, None) for name in _PARTS)
    if folder is not None and not Path(folder).is_dir():
        raise InputError(f"--temp-directory {folder!r} must be a folder.")
    with tempfile.TemporaryDirectory(prefix="skrankfair-", dir=folder) as own:
        UNFINISHED.add(Path(own))
        try:
            return audit(
                path,
                **columns,
                **options,
                memory_limit=memory,
                temp_directory=own,
                n_jobs=jobs,
                progress=lambda text: say(f"auditing {text}"),
            )
        except ImportError as error:
            raise InputError(str(error)) from None
        finally:
            UNFINISHED.discard(Path(own))


def _of_memory(arguments: argparse.Namespace) -> list[str]:
    """Return what is asked for, or lacking, and needs all rows in memory."""
    given = [name for name in _REFUSED if getattr(arguments, name, None)]
    if arguments.task not in (None, "ranking"):
        given.append("task")
    if arguments.missing != "raise":
        given.append("missing")
    lacking = [n for n in ("sensitive_features", "qid") if not getattr(arguments, n)]
    return [option(name) for name in given] + [f"no {option(n)}" for n in lacking]


def _check(arguments: argparse.Namespace, path: str) -> None:
    """Refuse what needs all rows in memory, by the option that asks for it."""
    if found := _of_memory(arguments):
        raise InputError(
            f"{path} is audited part by part, which needs queries and groups and does "
            f"not take all options; got {', '.join(found)}."
        )
