"""The weight of each rank, in one vocabulary for all metrics that weight positions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._inputs.validation import Array, as_numbers, check_magnitude, check_number

NAMES = ("uniform", "dcg", "reciprocal", "geometric", "top")
#: The most columns of a table with a column per rank: cross products take 8 bytes
#: times its square.
_MAX_COLUMNS = 4096


@dataclass(frozen=True)
class PositionWeight:
    """The weight of every rank, from `position_weight`, `k` and `patience`."""

    #: One of `NAMES`, a function of the ranks 1, 2,
    #: ..., or the weights of the first ranks, which are followed by zeros.
    model: Hashable
    k: int | None = None  # how many ranks "top" counts
    #: The ratio of the weights of two neighbouring ranks, for "geometric".
    patience: float | None = None

    @classmethod
    def of(
        cls, position_weight: Any, k: Any = None, patience: Any = None
    ) -> PositionWeight:
        """Read and check `position_weight`, `k` and `patience` of a metric."""
        name = position_weight if isinstance(position_weight, str) else None
        of_name = (k, "k", "top"), (patience, "patience", "geometric")
        for value, argument, user in of_name:
            if value is not None and name != user:
                raise ValueError(
                    f"{argument} must be None unless position_weight={user!r}; got "
                    f"{value!r}."
                )
        if name == "top":
            k = 10 if k is None else k
            check_number(k, "k", 1, np.inf, integer=True)
            return cls(name, k=int(k))
        if name == "geometric":
            patience = 0.8 if patience is None else patience
            check_number(patience, "patience", 0, 1)
            return cls(name, patience=float(patience))
        if name in NAMES:
            return cls(name)
        if callable(position_weight) and getattr(position_weight, "__hash__", None):
            return cls(position_weight)
        if name is not None or position_weight is None or callable(position_weight):
            raise ValueError(
                f"position_weight must be one of {', '.join(map(repr, NAMES))}, a "
                "hashable function of the ranks 1, 2, ..., or an array of the weights "
                f"of the first ranks; got {position_weight!r}."
            )
        weights = as_numbers(position_weight, "position_weight")
        _check(weights, np.arange(1, weights.size + 1))
        return cls(tuple(weights.tolist()))

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that a result stores, with defaults filled in."""
        given = {"position_weight": self.model, "k": self.k, "patience": self.patience}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def of_first(
        cls, position_weight: Any, k: int | None, patience: Any = None
    ) -> PositionWeight:
        """Return the weight where `k` cuts every list, and is also the k of "top"."""
        top = isinstance(position_weight, str) and position_weight == "top"
        return cls.of(position_weight, k if top else None, patience)

    def at(self, ranks: Array) -> Array:
        """Return the weights of these ranks, finite and not negative."""
        if isinstance(self.model, tuple):
            given = np.array([*self.model, 0.0])
            return given[np.minimum(ranks, given.size) - 1]
        if self.patience is not None:
            return np.asarray(self.patience ** (ranks - 1))
        if self.k is not None:
            return (ranks <= self.k).astype(float)
        if self.model == "dcg":
            return np.asarray(1 / np.log2(ranks + 1))
        if self.model == "reciprocal":
            return 1 / ranks
        if self.model == "uniform":
            return np.ones(ranks.size)
        weights = _called(self.model, ranks)
        _check(weights, ranks)
        return weights

    def up_to(self, n_ranks: int) -> Array:
        """Return the weights of the ranks 1 to `n_ranks`."""
        return self.at(np.arange(1, n_ranks + 1))

    def visits(self, n_ranks: int) -> Array:
        """Return the weights of ranks 1 to `n_ranks`; the first must be positive."""
        weights = self.up_to(n_ranks)
        if weights[0] == 0:
            raise ValueError("position_weight must be positive at rank 1; got 0.")
        return weights

    def strata(self, n_ranks: int, n_columns: int) -> Array:
        """Return the weights up to the last rank of positive weight, a stratum each.

        `n_ranks` is the length of the longest list. Weights given as an array are taken
        whole, so that parts of the data agree on the strata. `n_columns` is the number
        of columns that a table has for one rank.
        """
        n_given = len(self.model) if isinstance(self.model, tuple) else n_ranks
        weights = self.up_to(n_given)
        if not weights.any():
            raise ValueError(
                "position_weight must be positive at some rank; it is 0 at all "
                f"{weights.size} ranks."
            )
        weights = weights[: int(np.flatnonzero(weights)[-1]) + 1]
        if weights.size * n_columns > _MAX_COLUMNS:
            raise ValueError(
                f"position_weight must be 0 after rank {_MAX_COLUMNS // n_columns} for "
                f"so many groups; it is positive at rank {weights.size}. Pass an array "
                "of the weights of the first ranks, or 'top'."
            )
        return weights


#: The discount of DCG and NDCG.
DCG = PositionWeight("dcg")


def check_decreasing(weights: Array) -> None:
    """Raise a ValueError if a later rank is worth more than an earlier one."""
    rises = weights[1:] > weights[:-1] * (1 + 1e-12)
    if rises.any():
        rank = int(np.argmax(rises)) + 1
        raise ValueError(
            "position_weight must not increase with the rank, else the best and the "
            f"worst ranking are unknown; it is {weights[rank - 1]:g} at rank {rank} "
            f"and {weights[rank]:g} at the next."
        )


def _check(weights: Array, ranks: Array) -> None:
    """Raise a ValueError for a weight that is not finite, negative or too large."""
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            "position_weight must be finite and not negative at every rank; it is "
            f"{weights[place]} at rank {ranks[place]}."
        )
    check_magnitude(position_weight=weights)


def _called(function: Any, ranks: Array) -> Array:
    """Return a user's function of the ranks, one float each."""
    # It gets two ranks or more, so that a function of a single number always fails.
    asked = np.repeat(ranks, 2) if ranks.size == 1 else ranks
    try:
        with np.errstate(all="ignore"):
            weights = np.asarray(function(asked), dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise ValueError(
            "position_weight must be a function that takes an array of ranks 1, 2, ... "
            f"and returns their weights; {function!r} raised {error!r}."
        ) from error
    if weights.shape != asked.shape:
        raise ValueError(
            "position_weight must be a function that returns one weight per rank; "
            f"{function!r} returned shape {weights.shape} for {asked.size} ranks."
        )
    return weights[: ranks.size]
