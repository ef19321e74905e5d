"""Estimates by position in the list, averaged with weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._ranking import Ranking
from .._sums import Finalize
from .._validation import Array, as_numbers
from ._browsing import DISCOUNTS, weights_at

if TYPE_CHECKING:
    from ._result import GroupEstimates

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


@dataclass(frozen=True)
class PositionMean:
    """Σ w_k θ_k / Σ w_k over the positions k whose estimate θ_k is defined.

    Attributes
    ----------
    by_position : callable
        With ``parts(by_group, shared)``: estimates and numbers, shape (..., G, P).
    weights : tuple of float, length P
    """

    by_position: Any
    weights: tuple[float, ...]

    @property
    def n_buckets(self) -> int:
        """Number of positions."""
        return len(self.weights)

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the estimates, shape (..., G)."""
        value = self.by_position.parts(by_group, shared)[0]
        weight = np.where(np.isnan(value), 0.0, self.weights)
        total = np.where(weight > 0, value, 0) * weight
        mean = np.full(value.shape[:-1], np.nan, dtype=value.dtype)
        some = weight.sum(-1)
        np.divide(total.sum(-1), some, out=mean, where=some > 0)
        return mean


@dataclass(frozen=True)
class PairsAtPositions:
    """The number of pairs at all positions: whole, though tied ones are spread.

    Attributes
    ----------
    columns : callable
        Column totals to the sum of their shares.
    """

    columns: Finalize

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the numbers, shape (..., G)."""
        return np.round(self.columns(by_group, shared), 9)


def of_one_length(
    a: GroupEstimates, b: GroupEstimates
) -> tuple[GroupEstimates, GroupEstimates]:
    """Return two results with columns for as many positions as the longer of them.

    What is not by position, or weighted differently, stays as it is.
    """
    short_form, long_form = a.metric.finalize, b.metric.finalize
    if not isinstance(short_form, PositionMean) or not isinstance(
        long_form, PositionMean
    ):
        return a, b
    short, long = short_form.weights, long_form.weights
    if len(short) > len(long):
        return of_one_length(b, a)[::-1]
    if len(short) == len(long) or long[: len(short)] != short:
        return a, b
    blocks = a.sums.by_group.shape[1] // len(short)
    place = np.arange(blocks)[:, None] * len(long) + np.arange(len(short))
    widened = a.sums.with_columns(place.ravel(), blocks * len(long))
    return replace(a, metric=b.metric, sums=widened), b
