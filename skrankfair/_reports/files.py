"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    r"""Write a file under another name, and rename it when it is complete.

    Whatever goes wrong, the old file stays as it was, and nothing else is left behind.
    A link is followed; a pipe or a device, which nothing can replace, is written to as
    it is. A lone surrogate, which UTF-8 cannot express, becomes an escape such as
    ``\ud800``: in JSON that is the same character. An OSError says that the file cannot
    be written, or that the old one must not be.
    """
    return write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file in the same way."""
    if not os.fspath(path):
        raise ValueError(f"path must name a file; got {path!r}.")
    path = Path(path)
    if path.exists() and not path.is_file():
        path.write_bytes(content)
    else:
        _replace(Path(os.path.realpath(path)), content)
    return path


def _replace(path: Path, content: bytes) -> None:
    # The name is known before the file is there: no interrupt can come in between.
    unfinished = path.with_name(f".skrankfair-{os.urandom(8).hex()}.tmp")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            if not os.access(path, os.W_OK):
                # A folder would allow what the file forbids.
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    except OSError as error:
        # The error names the file that the caller knows.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):
            unfinished.unlink()
