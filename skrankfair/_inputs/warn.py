"""Warnings that point at the caller of the package."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..exceptions import UndefinedMetricWarning


def user_level() -> int:
    """Return the stacklevel of a warning that points at the caller of the package."""
    level, frame = 0, inspect.currentframe()
    package = __name__.partition(".")[0]
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != package:
            break
        level, frame = level + 1, frame.f_back
    return level


_COLLECTED: ContextVar[list[tuple[type[Warning], str]] | None] = ContextVar(
    "collected", default=None
)


def warn_user(message: str, category: type[Warning] = UndefinedMetricWarning) -> None:
    """Warn the caller of the package, or tell the function of it that collects."""
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(message, category, stacklevel=user_level())
    else:
        collected.append((category, message))


@contextmanager
def collected_warnings() -> Iterator[list[tuple[type[Warning], str]]]:
    """Collect what the package would warn of, instead of warning.

    Unlike ``warnings.catch_warnings`` it changes nothing outside of this thread: the
    filters of the process are left alone, and so are warnings of other packages.
    """
    collected: list[tuple[type[Warning], str]] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)
