"""The command line: ``skrankfair audit FILE`` and others; `_cli/options.py` has all."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import __version__
from ._cli.terminal import (
    BROKEN_PIPE,
    FAILED,
    INTERRUPTED,
    UNUSABLE,
    InputError,
    complain,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    It is 0 if all that was asked for is printed and written, 1 if some of it is not, 2
    for input that cannot be used, 3 for an alarm of a monitor, 4 if a report meets a
    condition of ``--fail-if``, 130 for Ctrl-C, and 141 if nobody reads what is printed.
    Without `argv` the arguments are those of the process.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # SIGTERM too leaves no unfinished file
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot show is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        status = _run(words)
        sys.stdout.flush()
        return status
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
    except BrokenPipeError:  # the reader has gone, and knows why
        _print_to_nowhere()
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is None:
            _print_to_nowhere()
        what = error.filename or "standard output"
        complain(f"{what} cannot be written: {error.strerror or error}.")
        return FAILED


def _run(words: list[str]) -> int:
    """Run the command that the words ask for, and return its exit status."""
    from ._cli.options import parser

    version = f"skrankfair {__version__}"
    try:
        arguments = parser(version, words).parse_args(words)
    except SystemExit:  # of --help and --version, which have printed
        return 0
    arguments.words, arguments.version = words, version
    with _short_warnings():
        from ._cli.commands import COMMANDS

        return COMMANDS[arguments.command](arguments)


def _print_to_nowhere() -> None:
    """Let Python discard what standard output has not taken when it ends."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each warning once, as one line, also those of other packages.

    What this changes for the whole process is no harm: the command line is all of it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A file that an interrupt left open is nothing to tell a user.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                complain(f"warning: {message}")


if __name__ == "__main__":
    sys.exit(main())
