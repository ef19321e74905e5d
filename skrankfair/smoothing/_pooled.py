"""Sums over rows with equal features, from which a curve is fitted batch by batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._estimates.replicates import label_hashes
from .._inputs.validation import Array


@dataclass(frozen=True)
class Pooled:
    """Weight and weighted outcome of each distinct row of features.

    Attributes
    ----------
    features : ndarray of shape (m, d)
        In order.
    total, weight : ndarray of shape (m,)
        Sums over the rows with these features of weight times outcome, and of weight.
    clusters : ndarray of shape (M,), uint64
        A hash of each cluster; empty where rows have none.
    """

    features: Array
    total: Array
    weight: Array
    clusters: Array

    @classmethod
    def of(
        cls, features: Array, total: Array, weight: Array, labels: Array | None
    ) -> Pooled:
        """Return the sums over rows of shape (n, d), of clusters with these labels."""
        sums = _by_row(features, total, weight)
        hashes = np.empty(0, np.uint64) if labels is None else label_hashes(labels)
        return cls(*sums, hashes)

    def __add__(self, other: Pooled) -> Pooled:
        """Return the sums over the rows of both, which share no cluster."""
        n_shared = np.intersect1d(self.clusters, other.clusters).size
        if n_shared:
            raise ValueError(
                "cluster must have all rows of a cluster in one batch; "
                f"{n_shared} of this batch were in batches before."
            )
        names = ("features", "total", "weight")
        both = [np.concatenate([getattr(p, n) for p in (self, other)]) for n in names]
        clusters = np.concatenate([self.clusters, other.clusters])
        return Pooled(*_by_row(*both), clusters)

    @property
    def outcome(self) -> Array:
        """The mean outcome of each, shape (m,)."""
        return self.total / self.weight


def _by_row(features: Array, total: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return distinct rows in order, with the sums over each."""
    if features.shape[1] == 1:
        distinct, place = np.unique(features[:, 0], return_inverse=True)
        distinct = distinct[:, None]
    else:
        distinct, place = np.unique(features, axis=0, return_inverse=True)
    place = place.ravel()
    return distinct, np.bincount(place, total), np.bincount(place, weight)
