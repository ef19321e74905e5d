"""Many correlated t statistics at once: their largest, its quantile, its p-value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from .._inputs.validation import Array, check_choice
from .contrasts import correct, generator

CORRECTIONS = ("sup_t", "bonferroni", "holm", "fdr_bh")
_CHUNK = 2000
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Contrasts of correlated estimates, each with degrees of freedom of its own.

    A statistic t on ν degrees of freedom is compared with others as the normal
    deviate z of equal p-value, and the largest |z| with the largest of a normal
    vector of the same correlations.

    Attributes
    ----------
    estimate : ndarray of shape (T,)
        NaN where undefined, which is no test.
    standard_error : ndarray of shape (T,)
    df : ndarray of shape (T,)
    covariance : ndarray of shape (K, K)
        Of what the contrasts are made of; NaN where undefined.
    contrasts : ndarray of shape (T, 2), int64
        The two of these whose difference each contrast is; -1 is no second one.
    n_resamples : int
    random_state : int, Generator or None
    """

    estimate: Array
    standard_error: Array
    df: Array
    covariance: Array
    contrasts: Array
    n_resamples: int
    random_state: Any

    @cached_property
    def statistic(self) -> Array:
        """Student's t of each contrast, shape (T,)."""
        known = ~np.isnan(self.estimate) & ~np.isnan(self.standard_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.estimate / self.standard_error
        t[known & (self.estimate == 0)] = 0.0
        t[~known] = np.nan
        return t

    @cached_property
    def pvalue(self) -> Array:
        """Two-sided p-value of each contrast on its own, shape (T,)."""
        with np.errstate(invalid="ignore"):
            return 2 * special.stdtr(self.df, -np.abs(self.statistic))

    @cached_property
    def deviate(self) -> Array:
        """``|z|`` with the p-value of each contrast, shape (T,)."""
        return -special.ndtri(np.maximum(self.pvalue / 2, _SMALLEST))

    @cached_property
    def largest(self) -> Array:
        """Largest ``|z|`` of normal vectors, sorted, shape (n_resamples,)."""
        known = np.flatnonzero((self.standard_error > 0) & ~np.isnan(self.estimate))
        if not known.size:
            return np.zeros(self.n_resamples)
        first, second = self.contrasts[known].T
        used = np.unique(np.concatenate([first, second[second >= 0]]))
        values, vectors = np.linalg.eigh(self.covariance[np.ix_(used, used)])
        root = (vectors * np.sqrt(np.clip(values, 0, None))).T
        place = np.zeros(int(used.max()) + 2, dtype=int)
        place[used] = np.arange(used.size)
        rng = generator(self.random_state)
        largest = np.empty(self.n_resamples)
        for start in range(0, self.n_resamples, _CHUNK):
            part = slice(start, min(start + _CHUNK, self.n_resamples))
            draws = rng.standard_normal((part.stop - start, used.size)) @ root
            values = draws[:, place[first]]
            values -= np.where(second >= 0, draws[:, place[second]], 0.0)
            values /= self.standard_error[known]
            largest[part] = np.abs(values).max(1)
        return np.sort(largest)

    def corrected(self, method: str) -> Array:
        """Return p-values corrected for the number of contrasts, shape (T,)."""
        check_choice(method, "correction", CORRECTIONS)
        if method != "sup_t":
            return correct(self.pvalue, method)
        below = np.searchsorted(self.largest, self.deviate, side="left")
        corrected = (1 + self.n_resamples - below) / (1 + self.n_resamples)
        corrected[np.isnan(self.pvalue)] = np.nan
        # The simulation has an error, and a correction lowers no p-value.
        return np.fmax(corrected, self.pvalue)

    def quantile(self, confidence_level: float, method: str) -> Array:
        """Return how many standard errors a band is wide each way, shape (T,).

        "pointwise", "sup_t", or Bonferroni's for any other method.
        """
        tail = (1 - confidence_level) / 2
        if method == "sup_t":
            tail = special.ndtr(-np.quantile(self.largest, confidence_level))
        elif method != "pointwise":
            tail /= max(1, int((~np.isnan(self.pvalue)).sum()))
        with np.errstate(invalid="ignore"):
            return -special.stdtrit(self.df, tail)
