"""Validated columns of a metric of scores, in which each row counts on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .columns import ReadColumns, check_one_way, read_columns
from .groups import Codes, Groups, stable_order, starts_of_runs
from .validation import Array, check_choice, check_magnitude

CLUSTER_WEIGHTS = ("cluster", "row")


@dataclass(frozen=True)
class Sample:
    """Rows of one or more groups, sorted by cluster and, within it, by group."""

    x: Array  # shape (n,): scores
    y: Array  # shape (n,): outcomes
    share: Array  # shape (n,): weight of the row in all sums
    #: Shape (n,), int64. Non-decreasing codes 0, 1, ...; every code below `n_clusters`
    #: occurs, or did before rows were left out.
    cluster: Array
    group: Array  # shape (n,), int64: codes of groups
    n_clusters: int
    row: Array  # shape (n,), int64: the row of the input
    unit: float = 1.0  # the mean weight of the rows
    #: Whether a row of weight 2 counts as two rows, as in the fit of an estimator; only
    #: where each row is its own cluster.
    repeated: bool = False

    @cached_property
    def n_active(self) -> float:
        """Number of clusters that have rows."""
        if self.repeated:
            return float(self.share.sum())
        return float(starts_of_runs(self.cluster).size)

    @property
    def left_out(self) -> Array:
        """Weight of each row that goes with its cluster when that is left out, (n,)."""
        return np.ones(self.x.size) if self.repeated else self.share

    @cached_property
    def segment_starts(self) -> Array:
        """First row of each segment, which is the rows of one cluster in one group."""
        of_clusters = starts_of_runs(self.cluster)
        return starts_of_runs(self.group, np.append(of_clusters, self.group.size))

    @cached_property
    def alone(self) -> bool:
        """Whether each row is the only one of its cluster in its group."""
        return self.segment_starts.size == self.x.size

    def take(self, rows: Array | slice) -> Sample:
        """Return some rows, in the same order; clusters keep their numbers."""
        of_rows = ("x", "y", "share", "cluster", "group", "row")
        return replace(self, **{name: getattr(self, name)[rows] for name in of_rows})

    def rows_of_groups(self, n_groups: int) -> list[Array]:
        """Return the rows of each group, in order."""
        order = np.argsort(self.group, kind="stable")
        ends = np.cumsum(np.bincount(self.group, minlength=n_groups))
        return np.split(order, ends[:-1])

    def columns(self, *values: Any) -> Array:
        """Return the weighted values and, last, the weights, for sums of a kernel."""
        return np.stack([*(self.share * v for v in values), self.share])


@dataclass(frozen=True)
class ScoreRows:
    """Outcomes, scores, groups and clusters of rows of positive weight."""

    #: Shape (n,), or (n, K) for a calibration of several outcomes. NaN where
    #: the outcome is unknown, if that is allowed.
    y: Array
    #: Shape (n,), or (n, d) for a calibration of several scores. Scores.
    x: Array
    groups: Groups
    cluster: Codes | None  # dense codes; None when each row is its own
    weight: Array | None  # shape (n,) or None: positive weights of the rows
    kept: Array  # shape (n,), int64: numbers of these rows in the input
    #: How many rows lacked a value, as `GroupEstimates.missing`.
    missing: Mapping[str, int] = field(default_factory=dict)
    item: Codes | None = None  # dense codes of items that recur among the clusters

    @classmethod
    def of_columns(cls, read: ReadColumns, outcome: str, score: str) -> ScoreRows:
        """Return the rows of columns, two of which are the outcomes and the scores."""
        check_magnitude(**{outcome: read.numbers[outcome]})
        return cls(
            read.numbers[outcome],
            read.numbers[score],
            read.groups,
            read.codes.get("cluster"),
            read.weights.get("sample_weight"),
            read.kept,
            read.missing,
            read.codes.get("item"),
        )

    def take(self, rows: Array) -> ScoreRows:
        """Return some rows; groups keep their numbers, clusters are counted anew."""
        return ScoreRows(
            self.y[rows],
            self.x[rows],
            self.groups.take(rows),
            None if self.cluster is None else self.cluster.take(rows),
            None if self.weight is None else self.weight[rows],
            self.kept[rows],
            self.missing,
            None if self.item is None else self.item.take(rows),
        )

    def of_positive_weight(self) -> ScoreRows:
        """Return the rows without those of weight 0."""
        if self.weight is None or self.weight.all():
            return self
        return self.take(np.flatnonzero(self.weight))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.x)

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.x) if self.cluster is None else self.cluster.size

    @property
    def cluster_codes(self) -> Array | None:
        """Codes of the clusters, if there are any; a ValueError for two columns."""
        check_one_way(self.item)
        return None if self.cluster is None else self.cluster.codes

    @property
    def cluster_labels(self) -> Array:
        """The caller's labels of the clusters, or numbers of the rows."""
        return self.kept if self.cluster is None else self.cluster.labels

    def sample(self, cluster_weight: str) -> Sample:
        """Sort the rows of all groups by cluster and give each its share.

        A row of two groups is there twice. Without clusters each row is its own. The
        share of a row is its weight; with ``cluster_weight="cluster"``, divided by the
        number of rows that its cluster has in the group.
        """
        cluster, weight = self.cluster_codes, self.weight
        check_choice(cluster_weight, "cluster_weight", CLUSTER_WEIGHTS)
        rows, group = self.groups.memberships()
        codes = rows if cluster is None else cluster[rows]
        key = codes * np.int64(len(self.groups)) + group
        if (key[1:] < key[:-1]).any():
            order = stable_order(key)
            rows, codes, group = rows[order], codes[order], group[order]
        del key  # large data leave no room for it
        share = np.broadcast_to(1.0, rows.size) if weight is None else weight[rows]
        unit = 1.0 if weight is None else float(weight.mean())
        x, y, n_clusters = self.x[rows], self.y[rows], self.n_clusters
        sample = Sample(x, y, share, codes, group, n_clusters, rows, unit)
        if cluster_weight == "row" or cluster is None:
            return sample
        lengths = np.diff(sample.segment_starts, append=rows.size)
        return replace(sample, share=share / np.repeat(lengths, lengths))

    def pooled(self, cluster_weight: str) -> Sample:
        """Return the rows as one group."""
        everyone = Groups.of_everyone(self.n_rows)
        return replace(self, groups=everyone).sample(cluster_weight)


def at_least(scores: Array, threshold: float) -> Array:
    """Return which scores are a threshold or more.

    So is a score of single precision that is the nearest one to the threshold: as such
    0.7 is a little less than 0.7.
    """
    with np.errstate(over="ignore"):
        nearest = np.float32(threshold)
    return np.asarray((scores >= threshold) | (scores == nearest))


def score_rows(
    y_true: Any,
    y_score: Any,
    *,
    names: tuple[str, str] = ("y_true", "y_score"),
    **columns: Any,
) -> ScoreRows:
    """Validate the columns of a metric of scores.

    Rows of weight 0 are removed before anything else is looked at. Without
    `sensitive_features` there is one group, "all". `names` are the caller's names of
    the first two arguments. `columns` are groups, clusters and weights, and the options
    of `read_columns`.
    """
    numbers = {names[1]: y_score, names[0]: y_true}
    read = read_columns(numbers, required=names, **columns)
    return ScoreRows.of_columns(read, *names)
