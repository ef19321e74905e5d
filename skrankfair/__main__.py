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
    if argv is None:  # SIGTERM too leaves no unfinished file
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot show is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        status = _run(words)
        if sys.stdout is not None:  # as it is if the caller has closed it
            sys.stdout.flush()
        return status
    except InputError as error:
        complain(str(error))
        return UNUSABLE
    except MemoryError:
        complain("there is not enough memory; audit fewer metrics, groups or rows.")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.filename is None:  # an error of standard output, flushed at exit
            with Path(os.devnull).open("wb") as devnull:
                os.dup2(devnull.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            return BROKEN_PIPE
        what = error.filename or "standard output"
        complain(f"{what} cannot be written: {error.strerror or error}.")
        return FAILED


def _run(words: list[str]) -> int:
    """Run the command that the words ask for, and return its exit status."""
    from ._cli.options import parser

    version = f"skrankfair {__version__}"
    try:
        arguments = parser(version).parse_args(words)
    except SystemExit:  # raised by --help and --version
        return 0
    arguments.words, arguments.version = words, version
    with _short_warnings():
        from ._cli.commands import run

        return run(arguments)


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each warning once, as one line, also those of other packages.

    It changes the whole process, which is safe: the process runs nothing else.
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
