"""Estimates by position in the list, averaged with weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.ranking import Ranking
from .._inputs.validation import Array, as_numbers
from ._browsing import DISCOUNTS, weights_at

if TYPE_CHECKING:
    pass

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
