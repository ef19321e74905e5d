"""The command line: ``skrankfair audit FILE`` and others; `_cli/options.py` has all."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from . import __version__
from ._cli.terminal import (
    FAILED,
    INTERRUPTED,
    UNUSABLE,
    InputError,
    complain,
    printed,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    It is 0 if all that was asked for is printed and written, 1 if some of it is not, 2
    for input that cannot be used, 3 for an alarm of a monitor, 4 if a report meets a
    condition of ``--fail-if``, 130 for Ctrl-C, and 141 if nobody reads what is printed.
    Without `argv` the arguments are those of the process.
    """
    own_process = argv is None
    words = list(sys.argv[1:] if own_process else argv or ())
    if own_process:
        # Ctrl-C in the middle of an import would become another error.
        _end_by(os._exit)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot show is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        from ._cli.options import parser

        version = f"skrankfair {__version__}"
        arguments = parser(version, words).parse_args(words)
        arguments.words, arguments.version = words, version
        with _short_warnings():
            from ._cli.commands import COMMANDS

            if own_process:
                _end_by(sys.exit)
            return int(COMMANDS[arguments.command](arguments))
    except SystemExit as end:  # of --help, --version or a signal
        return printed(lambda: None) or int(end.code or 0)
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


def _end_by(leave: Callable[[int], object]) -> None:
    """Let Ctrl-C and SIGTERM end the process with the status that shells give them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as after & in a script
            signal.signal(number, lambda number, frame: leave(128 + number))


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
