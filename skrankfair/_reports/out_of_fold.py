"""An audit of scores that several models made, each of rows it was not fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.metric import collected_warnings, warn_user
from .._estimates.sums import ClusterSums
from .._inputs.missing import without_missing
from .._inputs.ranking import RankedData, ranked_data
from .._inputs.sklearn_private import rows_of
from .._inputs.validation import Array, Codes, encode
from ..metrics import GroupEstimates
from .audit import (
    AuditReport,
    _measured,
    audit,
    check_item_weight,
    checked_task,
    further_parts,
    report_of,
    source_of,
)
from .audit_metric import AuditMetric
from .catalog import chosen_metrics, not_named
from .facts import AuditFacts, defined
from .score_sections import ScoreColumns

TITLE = "Cross-validated fairness audit"


@dataclass(frozen=True)
class OutOfFold:
    """Scores of rows by models that did not see them."""

    #: Shape (m,), int. The caller's row behind each score; in a repeated cross-
    #: validation more than once.
    rows: Array
    fold: Array  # shape (m,), int: the model that made the score
    score: Array  # shape (m,)
    y_true: Array  # shape (m,)
    #: Array-like of m rows. What was given of `sensitive_features`,
    #: `qid`, `cluster`, `engagement` and `item_weight`.
    columns: Mapping[str, Any]

    @property
    def n_folds(self) -> int:
        """The number of models."""
        return np.unique(self.fold).size

    @property
    def repeated(self) -> bool:
        """Whether a row was scored by several models."""
        return np.unique(self.rows).size < self.rows.size

    def queries(self) -> Codes:
        """Return the queries as codes."""
        return encode(self.columns["qid"], "qid").dense()

    def column(self, name: str, rows: Array) -> Any:
        """Return some rows of a column, or None if it was not given."""
        values = self.columns.get(name)
        return None if values is None else rows_of(values, rows)

    def without_missing(
        self, missing: str
    ) -> tuple[OutOfFold, tuple[str, ...], dict[str, int]]:
        """Return the scores of rows that lack nothing, notes on others, and counts."""
        own = {"y_true": self.y_true, "y_score": self.score}
        own |= {"rows": self.rows, "fold": self.fold}
        found, notes, counts = without_missing({**own, **self.columns}, missing)
        y_true, score, rows, fold = (found.pop(name) for name in own)
        return OutOfFold(rows, fold, score, y_true, found), notes, counts


@dataclass(frozen=True)
class Options:
    """What an audit is asked for, as in `skrankfair.audit`."""

    metrics: str | Sequence[str] | None
    confidence_level: float
    task: str | None
    favorable: str | None
    threshold: float | None
    k: int | None
    impact_ratio: bool


def audit_out_of_fold(
    scored: OutOfFold, options: Options, missing: str = "raise"
) -> AuditReport:
    """Audit scores of which only those of one model can be compared."""
    scored, lacking, counts = scored.without_missing(missing)
    task, favorable = checked_task(
        options.task, options.favorable, scored.columns.get("qid"), scored.score
    )
    options = replace(options, task=task, favorable=favorable)
    if "qid" in scored.columns:
        _check_nested_clusters(scored)
        report = _audit_queries(scored, options)
    else:
        report = _audit_lists(scored, options)
    results = {name: replace(r, missing=counts) for name, r in report.results.items()}
    return replace(
        report,
        results=results if counts else report.results,
        title=TITLE,
        task=task,
        favorable=favorable,
        k=options.k,
        notes=(*_notes(scored), *lacking, *report.notes),
    )


def _check_nested_clusters(scored: OutOfFold) -> None:
    """Raise a ValueError if a query has rows of several clusters, in whatever fold."""
    if "cluster" not in scored.columns:
        return
    queries = scored.queries()
    clusters = encode(scored.columns["cluster"], "cluster").dense()
    one = np.empty(queries.size, dtype=np.int64)
    one[queries.codes] = clusters.codes
    several = one[queries.codes] != clusters.codes
    if several.any():
        query = queries.decode(queries.codes[[np.argmax(several)]])[0]
        raise ValueError(
            "cluster must be constant within a query; query "
            f"{fmt.label(query)} has rows of several clusters."
        )


def _audit_queries(scored: OutOfFold, options: Options) -> AuditReport:
    """Audit with a query for each query and model."""
    columns = dict(scored.columns)
    queries = scored.queries()
    del columns["qid"]
    # A query in several folds is several queries of one cluster.
    columns.setdefault("cluster", queries.decode(queries.codes))
    return audit(
        scored.y_true,
        scored.score,
        qid=scored.fold * queries.size + queries.codes,
        **vars(options),
        **columns,
    )


def _audit_lists(scored: OutOfFold, options: Options) -> AuditReport:
    """Audit with one list for each model, whose items (or clusters) are the units."""
    columns = dict(scored.columns)
    engagement = columns.pop("engagement", None)
    clustered = "cluster" in columns
    columns.setdefault("cluster", scored.rows)
    data = ranked_data(scored.y_true, scored.score, qid=scored.fold, **columns)
    if clustered and data.cluster_of_query is not None:
        # Each list is of one cluster as a whole, as a query is.
        return audit(
            scored.y_true,
            scored.score,
            qid=scored.fold,
            engagement=engagement,
            **vars(options),
            **columns,
        )
    lists = replace(data, cluster=None)
    independent = not (clustered or scored.repeated)
    chosen, notes = _chosen(options, AuditFacts.of(lists), columns, independent)
    folds = _folds(scored, clustered)
    results = {}
    scores = _score_columns(scored, columns, data, options)
    for metric in chosen:
        if metric.of_rows and not metric.whole:
            measured = _measured(metric, source_of(metric, scores, data), engagement)
        elif metric.of_rows:
            whole = {**scores.columns, "qid": scored.fold}
            if independent:
                whole["cluster"] = None
            measured = _measured(metric, whole, engagement)
        elif metric.whole:
            measured = _measured(metric, lists if independent else data, engagement)
        else:
            pooled = replace(metric, estimates=partial(_of_units, metric, lists, folds))
            measured = _measured(pooled, data, engagement)
        results[metric.name], messages = measured
        if messages and not (not_named(options.metrics) and metric.is_told):
            warn_user(" ".join(messages))
    task, metrics = options.task or "risk", options.metrics
    if task == "ranking" and metrics is not None and not_named(metrics):
        notes.append("What places say beside the metrics is left out: it needs qid.")
        metrics = None
    parts, last = further_parts(
        scores, task, options.favorable, metrics, options.impact_ratio
    )
    return report_of(
        AuditFacts.of(data),
        results,
        (*notes, *last),
        options.confidence_level,
        **parts,
    )


def _chosen(
    options: Options, facts: AuditFacts, columns: Mapping[str, Any], independent: bool
) -> tuple[tuple[AuditMetric, ...], list[str]]:
    """Return the metrics of lists, and notes on those that are left out."""
    chosen = chosen_metrics(options.metrics, options.task)
    leave_out = not_named(options.metrics)
    weighed = columns.get("item_weight") is not None
    chosen, notes = check_item_weight(weighed, chosen, leave_out)
    if not leave_out:
        return chosen, notes
    chosen, more = defined(chosen, facts)
    depend = [metric for metric in chosen if metric.whole and not independent]
    more += [
        f"{metric.short} is left out: the lists of the models depend on each other."
        for metric in depend
    ]
    return tuple(metric for metric in chosen if metric not in depend), notes + more


def _score_columns(
    scored: OutOfFold, columns: Mapping[str, Any], data: RankedData, options: Options
) -> ScoreColumns:
    """Return all rows as one list, for metrics of rows."""
    given = dict.fromkeys(("sample_weight", "item_weight"))
    given |= {"y_true": scored.y_true, "y_score": scored.score, "qid": None, **columns}
    return ScoreColumns.of(given, data, options.threshold, options.confidence_level)


@dataclass(frozen=True)
class _Fold:
    """The list of one model."""

    rows: Array  # its rows among all scores
    units: Array | None  # the unit of each row, or None where the data have clusters
    data: RankedData


def _folds(scored: OutOfFold, clustered: bool) -> list[_Fold]:
    folds = []
    for fold in np.unique(scored.fold):
        rows = np.flatnonzero(scored.fold == fold)
        data = ranked_data(
            scored.y_true[rows],
            scored.score[rows],
            sensitive_features=scored.column("sensitive_features", rows),
            cluster=scored.column("cluster", rows),
            item_weight=scored.column("item_weight", rows),
        )
        folds.append(_Fold(rows, None if clustered else scored.rows[rows], data))
    return folds


def _of_units(
    metric: AuditMetric,
    lists: RankedData,
    folds: Sequence[_Fold],
    _: RankedData,
    engagement: Any = None,
) -> GroupEstimates:
    """Return the sum of a metric over the folds, the rows of one unit summed first."""
    options = {} if engagement is None else {"engagement": engagement}
    pooled = metric.estimates(lists, variance="item", **options)
    # What is chosen from the data is chosen once, for all folds.
    names = {"epsilon": "epsilon", "engagement_edges": "bins"}
    options = {names[name]: value for name, value in pooled.first_pass.items()}
    parts, labels = [], []
    for fold in folds:
        if engagement is not None:
            options["engagement"] = rows_of(engagement, fold.rows)
        with collected_warnings():
            sums = metric.estimates(fold.data, **options).sums.aligned(pooled.groups)
        own = sums.rows.labels
        parts.append(sums)
        labels.append(own if fold.units is None else fold.units[own])
    return replace(pooled, sums=_summed(parts, np.concatenate(labels)))


def _summed(parts: Sequence[ClusterSums], labels: Array) -> ClusterSums:
    """Return the sums of lists that may share units: one row per unit."""
    # A list of one unit has sums over clusters: it has no pairs between units.
    total = reduce(add, [replace(part, kind="item") for part in parts])
    units = encode(labels, "cluster").dense()
    table = total.rows.summed(units.codes, units.size, units.all_labels)
    return replace(total, table=table, count=float(units.size))


def _notes(scored: OutOfFold) -> list[str]:
    """Say how the scores were made."""
    made = (
        f"Scores are out of fold: {scored.n_folds} models, each scoring rows that it "
        "was not fitted on; items are compared within the scores of one model."
    )
    notes = [made]
    if scored.repeated:
        notes.append("Rows were scored by several models, and count as one unit each.")
    elif "qid" in scored.columns:
        queries = scored.queries()
        parts = np.unique(scored.fold * queries.size + queries.codes).size
        if parts > queries.size:
            notes.append(
                f"{queries.size:,} queries are split over folds into {parts:,} parts, "
                "and pairs of items in two parts are not compared; cv=GroupKFold() "
                "with groups=qid keeps queries whole."
            )
    return notes
