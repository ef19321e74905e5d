"""The calibration of one group: a curve for each column of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._inputs.validation import Array
from ._curves import Curve


@dataclass(frozen=True)
class ScoreCurves:
    """The calibration of one group: a curve for each column of scores.

    Attributes
    ----------
    curves : tuple, length d
    n_rows : int
        That they were fitted with.
    """

    curves: tuple[Curve, ...]
    n_rows: int

    def predict(self, score: Any) -> Array:
        """Return the expected outcomes at the scores.

        Parameters
        ----------
        score : array-like of shape (n,) or (n, d)

        Returns
        -------
        ndarray of the same shape
        """
        return self._apply(score, "predict")

    def inverse(self, outcome: Array) -> Array:
        """Return the lowest scores with these outcomes, of the same shape."""
        return self._apply(outcome, "inverse")

    @property
    def increasing(self) -> bool:
        """Whether no curve falls anywhere."""
        return all(curve.increasing for curve in self.curves)

    def _apply(self, values: Any, method: str) -> Array:
        values = np.asarray(values, dtype=float)
        columns = values[:, None] if values.ndim == 1 else values
        out = [
            getattr(curve, method)(columns[:, k]) for k, curve in enumerate(self.curves)
        ]
        return np.column_stack(out).reshape(values.shape)
