"""|Corr(A, B)| over pairs, with its gradient: of a linear score, and of any score.

A is the score difference of the better and the worse item times the difference of their
outcomes, B is the group membership. Both kernels give the correlation and its gradient;
`smooth_absolute` makes the penalty of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._inputs.validation import Array
from ._comparisons import Pairs

#: Where |r| is rounded off: sqrt(r² + WIDTH²) - WIDTH.
WIDTH = 1e-3
_CHUNK = 1 << 12  # pairs whose differences stay in the cache


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array."""
    return bool(sparse.issparse(X))


def smooth_absolute(value: float, width: float = WIDTH) -> tuple[float, float]:
    """Return sqrt(r² + width²) - width and its derivative."""
    root = float(np.hypot(value, width))
    return root - width, value / root


@dataclass(frozen=True)
class LinearCorrelation:
    """The correlation of a linear score, from the moments of feature differences.

    Corr(w) = c · w / sqrt(wᵀ V w + floor).

    Attributes
    ----------
    covariance : ndarray of shape (d,)
        c, the covariance of the features of A with B, over the deviation of B.
    variance : ndarray of shape (d, d)
        V, the covariance of the features of A.
    """

    covariance: Array
    variance: Array

    @classmethod
    def of_pairs(cls, X: Any, pairs: Pairs) -> LinearCorrelation:
        """Sum the moments over pairs, a chunk of them at a time."""
        size = X.shape[1]
        mean, square, cross = np.zeros(size), np.zeros((size, size)), np.zeros(size)
        b, spread = _standardised(pairs)
        root = np.sqrt(pairs.weight)
        scale, b = pairs.margin * root, b * root
        for start in range(0, root.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            i, j = pairs.better[part], pairs.worse[part]
            if is_sparse(X):
                difference = (X[i] - X[j]).toarray()
            else:  # Twice as fast as an index.
                difference = np.take(X, i, axis=0) - np.take(X, j, axis=0)
            difference *= scale[part, None]
            mean += root[part] @ difference
            cross += b[part] @ difference
            square += difference.T @ difference
        return cls(cross / spread, square - np.outer(mean, mean))

    def spread(self, coef: Array) -> float:
        """Return the variance of A."""
        return max(0.0, float(coef @ self.variance @ coef))

    def __call__(self, coef: Array, floor: float = 0.0) -> tuple[float, Array]:
        """Return the correlation and its gradient with respect to the coefficients."""
        slope = self.variance @ coef
        deviation = np.sqrt(max(0.0, float(coef @ slope)) + floor)
        value = float(self.covariance @ coef) / deviation
        gradient = (self.covariance - value * slope / deviation) / deviation
        return float(value), gradient


@dataclass(frozen=True)
class ScoreCorrelation:
    """The correlation of any score, with memory in proportion to rows and pairs.

    Attributes
    ----------
    pairs : Pairs
    n_rows : int
    """

    pairs: Pairs
    n_rows: int

    @cached_property
    def direction(self) -> Array:
        """B less its mean, over its standard deviation and times the weight."""
        b, spread = _standardised(self.pairs)
        direction: Array = self.pairs.weight * b / spread
        return direction

    def spread(self, score: Array) -> float:
        """Return the variance of A."""
        return float((self.pairs.weight * self._centred(score) ** 2).sum())

    def _centred(self, score: Array) -> Array:
        p = self.pairs
        a = (score[p.better] - score[p.worse]) * p.margin
        centred: Array = a - (p.weight * a).sum()
        return centred

    def __call__(self, score: Array, floor: float = 0.0) -> tuple[float, Array]:
        """Return the correlation and its gradient with respect to the scores."""
        # Sums of products: as dot products they wait for threads that others use.
        p, direction = self.pairs, self.direction
        a = self._centred(score)
        weighted = p.weight * a
        deviation = np.sqrt(float((weighted * a).sum()) + floor)
        value = float((direction * a).sum()) / deviation
        # Both a and b have mean 0, so has what the weights multiply: centring A again
        # in the derivative changes nothing.
        by_pair = p.margin * (direction - value / deviation * weighted) / deviation
        gradient = np.bincount(p.better, by_pair, minlength=self.n_rows)
        gradient -= np.bincount(p.worse, by_pair, minlength=self.n_rows)
        return float(value), gradient


def _standardised(pairs: Pairs) -> tuple[Array, float]:
    """Return B less its mean, and its standard deviation."""
    b = pairs.membership - pairs.weight @ pairs.membership
    return b, float(np.sqrt(pairs.weight @ b**2))
