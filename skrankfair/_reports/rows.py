"""The rows of an audit and what is asked of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._estimates import formatting as fmt
from .._inputs.groups import frame_columns
from .._inputs.ranking import RankedData
from .._inputs.validation import Array, to_numpy
from ..metrics import GroupEstimates
from .catalog import AuditMetric


@dataclass(frozen=True)
class AuditOptions:
    """What an audit is asked for, as `skrankfair.audit` explains it."""

    task: str | None
    favorable: str | None
    threshold: float | None
    k: int | None
    metrics: Any
    confidence_level: float
    correction: str
    margin: Any
    impact_ratio: bool


@dataclass(frozen=True)
class AuditRows:
    """The rows of an audit: as the caller gave them, and validated and in order.

    Attributes
    ----------
    columns : dict of str to array-like
        Outcomes, scores, groups, units and weights, as metrics of rows take them.
    qid, engagement, item_weight : array-like of shape (n,) or None
    data : RankedData
    has_places : bool
        Whether neighbours in a list say something, as where it is of one model.
    """

    columns: Mapping[str, Any]
    qid: Any
    engagement: Any
    item_weight: Any
    data: RankedData
    has_places: ClassVar[bool] = True

    @classmethod
    def of(cls, given: Mapping[str, Any], data: RankedData) -> AuditRows:
        """Return the rows of columns that are validated and ordered in `data`.

        Rows of a query depend on each other. Weights of items say how much a row
        counts, and not how often it is there, which takes clusters.
        """
        columns = {name: given[name] for name in ("y_true", "y_score")}
        columns["sensitive_features"] = given["sensitive_features"]
        units = given.get("cluster")
        columns["cluster"] = given["qid"] if units is None else units
        columns["sample_weight"] = given.get("sample_weight")
        if given.get("item_weight") is not None:
            of_row = np.zeros(data.n_input)
            order = data.ranking.order
            of_row[order if data.kept is None else data.kept[order]] = data.pair_weight
            columns["sample_weight"] = of_row
            if columns["cluster"] is None:
                columns["cluster"] = np.arange(data.n_input)
        engagement, weight = given.get("engagement"), given.get("item_weight")
        return cls(columns, given["qid"], engagement, weight, data)

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups."""
        return tuple(self.data.groups.labels)

    @property
    def are_shares(self) -> bool:
        """Whether outcomes and scores are in [0, 1], as calibration needs."""
        columns = (self.data.y_true, self.data.ranking.score)
        return all(column.min() >= 0 and column.max() <= 1 for column in columns)

    def check_units(self) -> None:
        """Raise a ValueError for a query with rows of several clusters."""
        if self.data.ranking.n_queries > 1 and self.data.cluster_of_query is None:
            raise ValueError(
                "cluster must be constant within a query; a query has rows of several "
                "clusters."
            )

    def measured(self, metric: AuditMetric) -> GroupEstimates:
        """Return the result of a metric, of the ordered rows or of the columns."""
        options = dict(metric.options)
        if metric.takes("engagement"):
            options["engagement"] = self.engagement
        if metric.ordered is not None:
            return metric.ordered(self.data, **options)
        if metric.takes("qid"):
            options["qid"] = self.qid
        return metric.function(**self.columns, **options)

    def defined(
        self, chosen: Sequence[AuditMetric]
    ) -> tuple[tuple[AuditMetric, ...], list[str]]:
        """Return the metrics that are defined for the rows, and notes on the others.

        Metrics of outcomes and scores in [0, 1] need no note, since the report says
        how its scores were read.
        """
        y, n_queries = self.data.y_true, self.data.ranking.n_queries
        lowest, binary = float(y.min()), bool(np.isin(y, (0, 1)).all())
        kept, notes, without_interval = [], [], []
        for metric in chosen:
            of_queries = metric.per == "query" and metric.cut != "required"
            reason = metric.undefined(lowest, binary)
            if not reason and of_queries and self.data.cluster_of_query is None:
                reason = "the items of one list belong to several clusters"
            if reason:
                notes.append(f"{metric.title} is left out: {reason}.")
            elif metric.needs != "shares" or self.are_shares:
                kept.append(metric)
            if metric in kept and of_queries and n_queries == 1:
                without_interval.append(
                    f"{metric.short} has no interval, since there is only one query."
                )
        return tuple(kept), notes + without_interval

    def counts(self) -> dict[str, Any]:
        """Return the counts of rows, units, pairs and groups of a report."""
        ranking, groups = self.data.ranking, self.data.groups
        lengths = ranking.lengths.astype(np.int64)
        n_clusters = ranking.n_queries
        if self.data.cluster is not None:
            n_clusters = self.data.cluster.size
        elif ranking.n_queries == 1:
            n_clusters = ranking.n_rows
        return {
            "n_rows": ranking.n_rows,
            "n_queries": ranking.n_queries,
            "n_clusters": n_clusters,
            "n_pairs": int((lengths * (lengths - 1) // 2).sum()),
            "group_rows": {
                label: int(groups.mask(i).sum())
                for i, label in enumerate(groups.labels)
            },
            "overlapping": groups.overlapping,
            "shares": self.are_shares,
        }


def without_query_metrics(
    chosen: Sequence[AuditMetric], *, may_leave_out: bool
) -> tuple[tuple[AuditMetric, ...], list[str]]:
    """Return the metrics that weigh items, and notes on those that do not.

    Raises
    ------
    ValueError
        If there are some that do not, and none may be left out.
    """
    places = [metric for metric in chosen if metric.per == "query"]
    if places and not may_leave_out:
        raise ValueError(
            f"item_weight must be None for {places[0].name}, which weighs no items; "
            "name other metrics."
        )
    kept = tuple(metric for metric in chosen if metric not in places)
    return kept, [f"{m.title} is left out: it weighs no items." for m in places]


def crossed_columns(groups: Any) -> dict[str, Array]:
    """Return the columns of labels that are crossed, by name; none if nothing is."""
    frame = frame_columns(groups)
    if frame is None or len(frame[0]) < 2:
        return {}
    arrays = [to_numpy(column, "sensitive_features") for column in frame[0]]
    if all(array.dtype.kind == "b" for array in arrays):
        return {}  # groups that may overlap
    return {fmt.label(name): a for name, a in zip(frame[1], arrays, strict=True)}
