"""Values of options, read from what is typed."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._reports.conditions import Condition


def character_of(text: str) -> str:
    """Return one character, which may be called tab."""
    if text in ("tab", "\\t"):
        return "\t"
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"must be one character; got {text!r}")
    return text


def metrics_of(text: str) -> str | list[str]:
    """Return names of metrics that the audit knows, or "all"."""
    from .._reports.catalog import chosen_metrics, not_named

    if not_named(text):
        return text
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        chosen_metrics(names, k=1)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return names


def margin_of(text: str) -> float | dict[str, float]:
    """Return a margin, or those of metrics by name."""
    parts = [part.partition("=") for part in text.split(",")]
    try:
        if "=" not in text:
            return float(text)
        return {name.strip(): float(size) for name, _, size in parts}
    except ValueError:
        raise argparse.ArgumentTypeError(
            "must be a number such as 0.02, or NAME=NUMBER with commas in between; got "
            f"{text!r}"
        ) from None


def conditions_of(text: str) -> list[Condition]:
    """Return conditions under which a report fails."""
    from .._reports.conditions import parsed_conditions

    try:
        return parsed_conditions(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def size_of(text: str) -> str:
    """Return an amount of memory as DuckDB reads it."""
    if not re.fullmatch(r"[1-9]\d*(\.\d+)?\s*[KMGT]i?B", text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"must be a size such as 2GB; got {text!r}")
    return text


def places_of(text: str) -> int:
    """Return a number that is at least 1."""
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a number such as 10; got {text!r}")
    return int(text)


def level_of(text: str) -> float:
    """Return a number between 0 and 1."""
    try:
        level = float(text)
    except ValueError:
        level = float("nan")
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(
            f"must be a number between 0 and 1, such as 0.95; got {text!r}"
        )
    return level


def baseline_of(text: str) -> int | str:
    """Return a number of updates, or a day."""
    return int(text) if text.isdigit() else text
