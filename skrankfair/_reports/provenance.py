"""Where the numbers of a report come from, and the command that repeats it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from .._estimates import formatting as fmt


def now() -> str:
    """Return the time, or that of ``SOURCE_DATE_EPOCH``, so that files can repeat."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.now(UTC)
    if epoch.isdecimal() and len(epoch) < 12:
        moment = datetime.fromtimestamp(int(epoch), UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def command_of(arguments: Sequence[str]) -> str:
    """Return the command as a shell takes it, on one line of printable text."""
    return " ".join(map(_shell_quoted, ("skrankfair", *arguments)))


def _shell_quoted(word: str) -> str:
    """Return a word with quotes where it needs them, without control characters."""
    if word.isprintable():
        return shlex.quote(word)
    parts = []
    for byte in os.fsencode(word):
        plain = 32 <= byte < 127 and byte not in b"'\\"
        parts.append(chr(byte) if plain else f"\\x{byte:02x}")
    return f"$'{''.join(parts)}'"


def lines_of(provenance: Mapping[str, str]) -> list[str]:
    """Return what is known of a report, each fact on a line."""
    return [f"{name}: {fmt.label(text)}" for name, text in provenance.items()]
