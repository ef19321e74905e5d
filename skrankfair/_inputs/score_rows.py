"""Columns of a metric of scores, validated: one row counts on its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .sample import Sample
from .validation import (
    Array,
    Codes,
    Groups,
    as_groups,
    as_numbers,
    as_weights,
    check_lengths,
    encode,
)


@dataclass(frozen=True)
class ScoreRows:
    """Outcomes, scores, groups and clusters of the rows that count.

    Attributes
    ----------
    y : ndarray of shape (n,)
        NaN where the outcome is unknown, if that is allowed.
    x : ndarray of shape (n,)
        Scores.
    groups : Groups
    cluster : Codes or None
        Dense codes; None when each row is its own.
    weight : ndarray of shape (n,) or None
        Positive weights of the rows.
    kept : ndarray of shape (n,), int64
        Numbers of these rows in the input.
    """

    y: Array
    x: Array
    groups: Groups
    cluster: Codes | None
    weight: Array | None
    kept: Array

    def take(self, rows: Array) -> ScoreRows:
        """Return some rows; groups keep their numbers, clusters are counted anew."""
        return ScoreRows(
            self.y[rows],
            self.x[rows],
            self.groups.take(rows),
            None if self.cluster is None else self.cluster.take(rows).dense(),
            None if self.weight is None else self.weight[rows],
            self.kept[rows],
        )

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return self.x.size if self.cluster is None else self.cluster.size

    @property
    def cluster_labels(self) -> Array:
        """The caller's labels of the clusters, or numbers of the rows."""
        return self.kept if self.cluster is None else self.cluster.all_labels

    def sample(self, cluster_weight: str, *, rests: bool = False) -> Sample:
        """Return the rows of all groups, sorted by cluster."""
        return Sample.of_groups(
            self.x,
            self.y,
            self.groups,
            cluster=None if self.cluster is None else self.cluster.codes,
            weight=self.weight,
            cluster_weight=cluster_weight,
            rests=rests,
        )

    def pooled(self, cluster_weight: str) -> Sample:
        """Return the rows as one group."""
        return Sample.of_rows(
            self.x,
            self.y,
            cluster=None if self.cluster is None else self.cluster.codes,
            weight=self.weight,
            cluster_weight=cluster_weight,
        )


def score_rows(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    allow_nan: bool = False,
) -> ScoreRows:
    """Validate the columns of a metric of scores.

    Rows of weight 0 are removed before anything else is looked at.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n,)
    sensitive_features : array-like of shape (n,) or (n, d), or None
        None is one group, "all".
    cluster : array-like of shape (n,) or None
    sample_weight : array-like of shape (n,) or None
    allow_nan : bool, default=False
        Whether an outcome may be NaN, unknown.

    Returns
    -------
    ScoreRows
    """
    for name, value in (("y_true", y_true), ("y_score", y_score)):
        if value is None:
            raise ValueError(f"{name} must be given; got None.")
    y = as_numbers(y_true, "y_true", allow_nan=allow_nan)
    x = as_numbers(y_score, "y_score")
    groups = Groups(("all",), np.zeros(x.size, dtype=np.int64))
    if sensitive_features is not None:
        groups = as_groups(sensitive_features)
    clusters = None if cluster is None else encode(cluster, "cluster")
    weight = None if sample_weight is None else as_weights(sample_weight)
    check_lengths(
        y_score=x.size,
        y_true=y.size,
        sensitive_features=groups.n_rows,
        cluster=None if clusters is None else clusters.codes.size,
        sample_weight=None if weight is None else weight.size,
    )
    clusters = None if clusters is None else clusters.dense()
    rows = ScoreRows(y, x, groups, clusters, weight, np.arange(x.size))
    if weight is not None and not weight.all():
        rows = rows.take(np.flatnonzero(weight))
    return replace(rows, groups=rows.groups.without_unused())
