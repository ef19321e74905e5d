"""The process of the command line: what ends it, and its standard streams."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn, TextIO

from .._reports.files import UNFINISHED

# The exit statuses other than 0 and those of signals, which are 128 + the signal.
FAILED, UNUSABLE, ALARMED, BEYOND, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 4, 130, 141

_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"


class InputError(Exception):
    """Input that cannot be used; the message is one line that says what to do."""


def own_process() -> None:
    """Prepare a process that does nothing but run the command line.

    To be called before anything large is imported.
    """
    # What & and nohup have a process ignore, it goes on ignoring.
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
            # When Python exits, all is done, and it would take the handler away.
            atexit.register(signal.signal, number, signal.SIG_IGN)
    _open_streams()


def _end(number: int, frame: Any) -> NoReturn:
    """End the process silently, and leave no unfinished file.

    An exception would not do: raised in the middle of an import, or of a reader written
    in C, it is swallowed or becomes another error.
    """
    for path in tuple(UNFINISHED):
        with suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            path.unlink()
    if "rich.console" in sys.modules and os.isatty(2):
        os.write(2, _SHOW_CURSOR)
    os._exit(128 + number)


def _open_streams() -> None:
    """Open the standard streams that are closed, so that to write to them is an error.

    Otherwise the next file that is opened would be taken for standard output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, which is this one.
            os.open(os.devnull, os.O_RDONLY)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            stream = os.fdopen(number, "w", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


def abandon(stream: TextIO) -> None:
    """Let a stream that takes no more write to nowhere.

    Otherwise Python would complain of what is left in its buffer when it exits.
    """
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
