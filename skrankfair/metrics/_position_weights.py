"""Estimates by position in the list, averaged with weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.ranking import Ranking
from .._inputs.validation import Array, as_numbers

if TYPE_CHECKING:
    pass


#: The probability of a visit to position k = 0, 1, ..., up to a factor.
BROWSING: dict[str, Callable[[Array], Array]] = {
    "uniform": lambda k: np.ones(k.size),
    "log": lambda k: 1 / np.log2(k + 2),
    "geometric": lambda k: 0.8**k,
    "reciprocal": lambda k: 1 / (k + 1),
}
#: The same by the names of discounts.
DISCOUNTS = {"dcg": BROWSING["log"], "reciprocal": BROWSING["reciprocal"]}


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
    elif isinstance(browsing, str):
        visits = BROWSING[browsing](np.arange(n_positions))
    else:
        visits = weights_at(browsing, np.arange(n_positions), "browsing", "from 0")
    wrong = ~np.isfinite(visits) | (visits < 0)
    wrong[0] |= visits[0] == 0
    if wrong.any():
        position = int(np.argmax(wrong))
        raise ValueError(
            "browsing must be finite and not negative at every position, and positive "
            f"at the first; got {visits[position]} at position {position}."
        )
    return visits


def weights_at(function: Any, positions: Array, name: str, counted: str) -> Array:
    """Return a user's function of positions, one float each.

    `name` is its argument, `counted` says where positions begin.
    """
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            # Of numpy, where a function of one number is given.
            warnings.simplefilter("ignore", DeprecationWarning)
            weights = np.asarray(function(positions), dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise ValueError(
            f"{name} must be a function that takes an array of positions {counted} and "
            f"returns their weights; {function!r} raised {error!r}."
        ) from error
    if weights.shape != positions.shape:
        raise ValueError(
            f"{name} must be a function that returns a weight for every position; "
            f"{function!r} returned shape {weights.shape} for {positions.size} "
            "positions."
        )
    return weights


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


#: Most columns of a table of positions; its cross products take 8 times the square.
_MAX_COLUMNS = 4096


def position_weights(spec: Any, ranking: Ranking, n_columns: int) -> Array | None:
    """Return the weight of each position from 0, zeros at the end left out.

    Parameters
    ----------
    spec : {"dcg", "reciprocal"}, callable, array-like or None
    ranking : Ranking
    n_columns : int
        Columns of the table for one position.

    Returns
    -------
    ndarray of shape (n_positions,) or None
    """
    if spec is None:
        return None
    places = np.arange(int(ranking.lengths.max()))
    if isinstance(spec, str):
        if spec not in DISCOUNTS:
            raise ValueError(
                "position_weight must be 'dcg', 'reciprocal', a function of positions, "
                f"an array or None; got {spec!r}."
            )
        weights = DISCOUNTS[spec](places)
    elif callable(spec):
        weights = weights_at(spec, places, "position_weight", "from 0")
        weights = as_numbers(weights, "position_weight")
    else:
        weights = as_numbers(spec, "position_weight")
    if (weights < 0).any() or not weights.any():
        raise ValueError(
            "position_weight must not be negative, and not 0 everywhere; got "
            f"{weights.min()} to {weights.max()}."
        )
    weights = weights[: int(np.flatnonzero(weights)[-1]) + 1]
    if weights.size * n_columns > _MAX_COLUMNS:
        raise ValueError(
            f"position_weight must be 0 after position {_MAX_COLUMNS // n_columns} for "
            f"so many groups; it has {weights.size} positions. Pass an array of the "
            "weights of the first positions."
        )
    return weights
