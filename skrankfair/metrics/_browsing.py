"""Browsing models: how likely users are to look at a position."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .._validation import Array, as_numbers

#: The probability of a visit to position k = 0, 1, ..., up to a factor.
BROWSING: dict[str, Callable[[Array], Array]] = {
    "uniform": lambda k: np.ones(k.size),
    "log": lambda k: 1 / np.log2(k + 2),
    "geometric": lambda k: 0.8**k,
    "reciprocal": lambda k: 1 / (k + 1),
}


def as_browsing(browsing: Any) -> Hashable:
    """Return a browsing model as results keep it: a name, a function or numbers."""
    if isinstance(browsing, str):
        if browsing in BROWSING:
            return browsing
    elif browsing is not None:
        if callable(browsing):
            return browsing
        return tuple(as_numbers(browsing, "browsing").tolist())
    raise ValueError(
        f"browsing must be one of {', '.join(map(repr, BROWSING))}, a function of the "
        f"positions 0, 1, ..., or an array with a value a position; got {browsing!r}."
    )


def visit_weights(browsing: Hashable, n_positions: int) -> Array:
    """Return the weight of each position, from a model of `as_browsing`.

    Finite, not negative, and positive at the first position.
    """
    if isinstance(browsing, tuple):
        visits = np.array(browsing)[:n_positions]
        if visits.size < n_positions:
            raise ValueError(
                "browsing must have a value for every position of the longest query, "
                f"which has {n_positions} items (0 where nobody looks); got "
                f"{visits.size} values."
            )
    else:
        visits = _evaluate(browsing, n_positions)
    wrong = ~np.isfinite(visits) | (visits < 0)
    wrong[0] |= visits[0] == 0
    if wrong.any():
        position = int(np.argmax(wrong))
        raise ValueError(
            "browsing must be finite and not negative at every position, and positive "
            f"at the first; got {visits[position]} at position {position}."
        )
    return visits


def _evaluate(browsing: Any, n_positions: int) -> Array:
    """Return a function's values at the positions."""
    positions = np.arange(n_positions)
    if isinstance(browsing, str):
        return BROWSING[browsing](positions)
    try:
        visits = np.asarray(browsing(positions), dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise ValueError(
            "browsing must be a function that takes an array of positions from 0 and "
            f"returns their weights; {browsing!r} raised {error!r}."
        ) from error
    if visits.shape != positions.shape:
        raise ValueError(
            "browsing must be a function that returns a weight for every position; "
            f"{browsing!r} returned shape {visits.shape} for {n_positions} positions."
        )
    return visits


def check_decreasing(visits: Array) -> None:
    """Raise a ValueError if a later position is visited more than an earlier one."""
    rises = visits[1:] > visits[:-1] * (1 + 1e-12)
    if rises.any():
        position = int(np.argmax(rises))
        raise ValueError(
            "browsing must not increase with the position, else the ranking of most "
            f"dissatisfaction is unknown; it is {visits[position]:g} at position "
            f"{position} and {visits[position + 1]:g} at the next."
        )
