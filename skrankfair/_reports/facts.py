"""What an audit has to know of the data beside its metrics, for parts to be added."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.storage import stored
from .._inputs.ranking import RankedData
from .._inputs.validation import Array, frame_columns, sort_labels, to_numpy
from .audit_metric import AuditMetric


@stored("AuditFacts")
@dataclass(frozen=True)
class AuditFacts:
    """Counts, and what the outcomes and scores are.

    Attributes
    ----------
    n_rows, n_queries, n_clusters, n_pairs : int
    group_rows : dict of hashable to int
    overlapping : bool
        Whether a row may be of several groups or of none.
    lowest : float
        The smallest outcome.
    binary : bool
        Whether all outcomes are 0 or 1.
    shares : bool
        Whether outcomes and scores are in [0, 1], as calibration needs.
    split : bool
        Whether the items of one list belong to several clusters.
    """

    n_rows: int
    n_queries: int
    n_clusters: int
    n_pairs: int
    group_rows: Mapping[Hashable, int]
    overlapping: bool
    lowest: float
    binary: bool
    shares: bool
    split: bool

    @classmethod
    def of(cls, data: RankedData) -> AuditFacts:
        """Return those of data that are validated and ordered."""
        ranking, groups, y = data.ranking, data.groups, data.y_true
        lengths = ranking.lengths.astype(np.int64)
        n_clusters = ranking.n_queries
        if data.cluster is not None:
            n_clusters = data.cluster.size
        elif ranking.n_queries == 1:
            n_clusters = ranking.n_rows
        return cls(
            n_rows=ranking.n_rows,
            n_queries=ranking.n_queries,
            n_clusters=n_clusters,
            n_pairs=int((lengths * (lengths - 1) // 2).sum()),
            group_rows={
                label: int(groups.mask(i).sum())
                for i, label in enumerate(groups.labels)
            },
            overlapping=groups.overlapping,
            lowest=float(y.min()),
            binary=bool(np.isin(y, (0, 1)).all()),
            shares=all(x.min() >= 0 and x.max() <= 1 for x in (y, ranking.score)),
            split=data.cluster_of_query is None,
        )

    def __add__(self, other: AuditFacts) -> AuditFacts:
        """Return those of both, whose clusters differ."""
        rows, more = self.group_rows, other.group_rows
        labels = list(rows)
        if set(rows) != set(more):
            labels = sort_labels(list(set(rows) | set(more)))
        return AuditFacts(
            self.n_rows + other.n_rows,
            self.n_queries + other.n_queries,
            self.n_clusters + other.n_clusters,
            self.n_pairs + other.n_pairs,
            {label: rows.get(label, 0) + more.get(label, 0) for label in labels},
            self.overlapping or other.overlapping,
            min(self.lowest, other.lowest),
            self.binary and other.binary,
            self.shares and other.shares,
            self.split or other.split,
        )


def crossed_columns(groups: Any) -> dict[str, Array]:
    """Return the columns of labels that are crossed, by name; none if nothing is."""
    found = frame_columns(groups)
    if found is None or len(found[0]) < 2:
        return {}
    arrays = [to_numpy(column, "sensitive_features") for column in found[0]]
    if all(array.dtype.kind == "b" for array in arrays):
        return {}  # groups that may overlap
    return {fmt.label(name): a for name, a in zip(found[1], arrays, strict=True)}


def defined(
    chosen: Sequence[AuditMetric], facts: AuditFacts
) -> tuple[tuple[AuditMetric, ...], list[str]]:
    """Leave out what nobody asked for by name and the data have not."""
    reasons: dict[str, str] = {}
    whole = [metric for metric in chosen if metric.whole and not metric.only_cut]
    if facts.lowest < 0:
        reasons["ndcg"] = (
            "it needs outcomes that are not negative, and the smallest is "
            f"{facts.lowest:g}"
        )
    if facts.split:
        why = "the items of one list belong to several clusters"
        reasons |= {metric.name: why for metric in whole if metric.name not in reasons}
    if not facts.binary:
        why = "it needs outcomes that are 0 or 1"
        reasons |= {metric.name: why for metric in chosen if metric.binary_only}
    if not facts.shares:
        chosen = [metric for metric in chosen if not metric.shares_only]
    kept = tuple(metric for metric in chosen if metric.name not in reasons)
    notes = [
        f"{metric.title} is left out: {reasons[metric.name]}."
        for metric in chosen
        if metric.name in reasons
    ]
    if facts.n_queries == 1:
        notes += [
            f"{metric.short} has no interval, since there is only one query."
            for metric in whole
            if metric in kept
        ]
    return kept, notes
