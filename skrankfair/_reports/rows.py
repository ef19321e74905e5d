"""The rows of an audit, read once, and what is asked of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates.scales import check_level
from .._inputs.columns import OneWayError, users_of
from .._inputs.groups import Groups, as_groups, encode, frame_columns, mark_members
from .._inputs.ranking import RankedData, ranked_data
from .._inputs.score_rows import at_least
from .._inputs.validation import (
    Array,
    check_choice,
    check_lengths,
    check_number,
    collected_warnings,
    to_numpy,
)
from ..metrics import GroupEstimates
from .catalog import FAVORABLE, AuditMetric, note, table, without_unfit
from .findings import CORRECTION_NAMES

#: Columns that do not go with the order of the rows, or may be other lists for it.
_NOT_ORDERED = ("qid", "engagement", "within")


@dataclass(frozen=True)
class AuditOptions:
    """What an audit is asked for, as `skrankfair.audit` explains it."""

    task: str | None
    favorable: str | None
    confidence_level: float
    correction: str
    threshold: float | None = None
    k: int | None = None
    metrics: Any = None
    margin: Any = None
    impact_ratio: bool = False
    reference: Any = None
    cross: bool | str = True

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> AuditOptions:
        """Return the options among the arguments of an audit."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def __post_init__(self) -> None:
        """Raise a ValueError for options that are wrong whatever the data are."""
        check_level(self.confidence_level)
        check_choice(self.correction, "correction", tuple(CORRECTION_NAMES))
        check_choice(self.cross, "cross", (True, False, "both"))
        check_choice(self.task, "task", (None, *table()["tasks"]))
        check_choice(self.favorable, "favorable", (None, *FAVORABLE))
        check_number(self.threshold, "threshold", -np.inf, np.inf, optional=True)
        check_number(self.k, "k", 1, np.inf, integer=True, optional=True)


def with_task(options: AuditOptions, qid: Any, y_score: Array) -> AuditOptions:
    """Return options with the task, inferred if need be, and the good end if known.

    Raises
    ------
    ValueError
        For decisions that are not 0 or 1, a threshold that all scores reach, or none,
        or places where there are none.
    """
    task, favorable, k = options.task, options.favorable, options.k
    other = y_score[~np.isin(y_score, (0, 1))]
    if task is None:
        task = "ranking" if qid is not None else "risk" if other.size else "decision"
    if task == "ranking":
        favorable = favorable or "high"
    if task == "decision" and other.size:
        raise ValueError(
            f"y_score must be 0 or 1 for task='decision'; got {other[0]:g}. Scores "
            "with a threshold are task='risk' with threshold=."
        )
    threshold = 1.0 if options.threshold is None else options.threshold
    if task == "decision" and not 0 < threshold <= 1:
        raise ValueError(
            "threshold must be in (0, 1] for decisions of 0 or 1, which it would make "
            f"all alike; got {threshold:g}."
        )
    one_side = np.unique(at_least(y_score, threshold)).size == 1
    if task == "risk" and options.threshold is not None and one_side:
        raise ValueError(
            f"threshold must have scores on both sides; got {threshold:g}, and scores "
            f"from {y_score.min():.4g} to {y_score.max():.4g}."
        )
    if k is not None and task != "ranking":
        raise ValueError(
            f"k must be None for task={task!r}, which has no places; got {k}."
        )
    return replace(options, task=task, favorable=favorable)


@dataclass(frozen=True)
class AuditRows:
    """The rows of an audit: as the caller gave them, and validated and in order.

    Attributes
    ----------
    columns : dict of str to array-like
        Outcomes, scores, groups, units and weights, as metrics of rows take them.
    qid : array-like of shape (n,) or None
    data : RankedData
    given : dict of str to array-like
        All columns that the caller gave.
    groupings : dict of str to array-like or frame
        The labels of each column and last those of the groups, which cross the columns;
        or those of each grouping, where several stand side by side.
    sides : dict of tuple of str to list of str
        By the names of its columns the groups of each grouping that stands side by side
        with others.
    levels : Groups or None
        The levels of the column that is held fixed, for each row of the caller.
    scored : AuditRows or None
        The rows with those whose outcome alone is unknown, where there are such, for
        rates of decisions that need no outcome.
    """

    columns: Mapping[str, Any]
    qid: Any
    data: RankedData
    given: Mapping[str, Any]
    groupings: Mapping[str, Any]
    sides: Mapping[tuple[str, ...], Sequence[str]]
    levels: Any
    scored: AuditRows | None = None

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any],
        lists: Any = None,
        cross: bool | str = True,
        *,
        placed: bool = False,
    ) -> AuditRows:
        """Return the rows of columns, ordered within their queries or these lists.

        Pairs of lists that are no queries are in the rows of both their items.
        Rows of a query depend on each other. Those without an outcome have a place in
        the ranking, and are in nothing else.
        """
        groupings = _labels_by_name(given["sensitive_features"])
        sides: Mapping[tuple[str, ...], Sequence[str]] = {}
        if cross is not True:
            groupings, sides, members = _side_by_side(groupings, cross)
            given = {**given, "sensitive_features": members}
        others = {n: v for n, v in given.items() if n not in _NOT_ORDERED}
        others["qid"] = given["qid"] if lists is None else lists
        with collected_warnings():  # the caller has been warned
            data = ranked_data(**others, missing="drop" if placed else "raise")
        data = replace(data, has_queries=given["qid"] is not None)
        if placed:
            known = of_input(data, np.ones(data.kept.size, dtype=bool))
            left = np.cumsum(known)[data.input_rows] - 1
            data = replace(data, input_rows=left, n_input=left.size, missing={})
            given, groupings = (
                {n: v if v is None else v[known] for n, v in columns.items()}
                for columns in (given, groupings)
            )
        names = ("y_true", "y_score", "sensitive_features", "cluster", "sample_weight")
        columns = {name: given.get(name) for name in names}
        if columns["cluster"] is None:
            columns["cluster"] = given["qid"]
        if data.item_weight is not None:
            columns["sample_weight"] = of_input(data, np.asarray(data.pair_weight))
        levels = None
        if (fixed := given.get("within")) is not None:
            levels = Groups.of_labels(encode(fixed, "within"))
            check_lengths(within=levels.n_rows, y_score=data.n_input)
        data.keep_blocks()  # which all metrics share
        return cls(columns, given["qid"], data, given, groupings, sides, levels)

    def within(self, groups: Array, apart: Array) -> AuditRows:
        """Return the rows with other groups, which are compared within a level only.

        And only with rows that have the same number in `apart`.
        """
        data, levels = self.data, self.levels
        given = {**self.given, "sensitive_features": groups, "within": None}
        if given.get("cluster") is None:
            rows = np.arange(groups.size)
            given["cluster"] = rows if self.qid is None else given["qid"]
        lists = of_input(data, data.ranking.query.astype(np.int64))
        lists = (lists * (apart.max() + 1) + apart) * len(levels) + levels.values
        if self.qid is not None:
            given["qid"] = lists
        return AuditRows.of(given, lists)

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups."""
        return tuple(self.data.groups.labels)

    @property
    def are_shares(self) -> bool:
        """Whether outcomes and scores are in [0, 1], as calibration needs."""
        columns = (self.data.y_true, self.data.ranking.score)
        return all(column.min() >= 0 and column.max() <= 1 for column in columns)

    @property
    def are_of_models(self) -> bool:
        """Whether there are no queries, and a list for each of several models.

        The items are the units, and their places say nothing about the groups.
        """
        return not self.data.has_queries and self.data.ranking.n_queries > 1

    def measured(self, metric: AuditMetric) -> GroupEstimates:
        """Return the result of a metric, of the ordered rows or of the columns.

        Its errors are those of users alone where it takes no items.
        """
        if self.scored is not None and metric.of_decisions:
            return self.scored.measured(metric)
        options = dict(metric.options)
        if metric.takes("engagement"):
            options["engagement"] = self.given.get("engagement")
        if metric.takes("qid"):
            options["qid"] = self.qid
        try:
            if metric.ordered is not None:
                return metric.ordered(self.data, **options)
            return metric.function(**self.columns, **options)
        except OneWayError:
            return self.of_users().measured(metric)

    def of_users(self) -> AuditRows:
        """Return the rows without the items that recur, for errors of users alone."""
        columns = {**self.columns, "cluster": users_of(self.columns["cluster"])}
        return replace(self, columns=columns, data=replace(self.data, item=None))

    def fitting(
        self, chosen: Sequence[AuditMetric], may_leave_out: bool
    ) -> tuple[tuple[AuditMetric, ...], list[str]]:
        """Return the metrics that fit the rows, and notes on the others.

        Metrics of outcomes and scores in [0, 1] need no note, since the report says
        how its scores were read.
        """
        chosen, notes = without_unfit(
            chosen,
            may_leave_out,
            lowest=float(self.data.y_true.min()),
            binary=bool(np.isin(self.data.y_true, (0, 1)).all()),
            weighed=self.given.get("item_weight") is not None,
            of_models=self.are_of_models,
            several=self.data.cluster_of_query is None,
        )
        if not may_leave_out:
            return chosen, notes
        chosen = tuple(m for m in chosen if m.needs != "shares" or self.are_shares)
        copied = np.array_equal(self.data.y_true, self.data.ranking.score)
        of_scores = tuple(metric for metric in chosen if not metric.merit)
        if copied and not self.data.has_queries and of_scores:
            return of_scores, [note("copied")]
        if self.data.ranking.n_queries == 1:
            lists = [m for m in chosen if m.per == "query" and m.cut != "required"]
            notes += [note("one_query", metric=metric.short) for metric in lists]
        return chosen, notes

    def counts(self) -> dict[str, Any]:
        """Return the counts of rows, units, pairs and groups of a report."""
        ranking, groups = self.data.ranking, self.data.groups
        cluster = self.data.cluster
        lengths = ranking.lengths.astype(np.int64)
        units = ranking.n_rows if ranking.n_queries == 1 else ranking.n_queries
        numbers = [int(groups.mask(i).sum()) for i in range(len(groups.labels))]
        return {
            "n_rows": ranking.n_rows,
            "n_queries": ranking.n_queries,
            "n_clusters": units if cluster is None else cluster.size,
            "n_pairs": int((lengths * (lengths - 1) // 2).sum()),
            "group_rows": dict(zip(groups.labels, numbers, strict=True)),
            "overlapping": groups.overlapping,
            "shares": self.are_shares,
        }


def of_input(data: RankedData, values: Array) -> Array:
    """Return a column of ordered rows in the order of the input; others have 0."""
    column = np.zeros(data.n_input, dtype=values.dtype)
    column[data.kept] = values
    return column


def _labels_by_name(groups: Any) -> dict[str, Any]:
    """Return the labels of each column that is crossed, and last those of the groups.

    Columns that mark the members of groups are not crossed.
    """
    columns, names = frame_columns(groups) or ([], [])
    arrays = [to_numpy(column, "sensitive_features") for column in columns]
    if len(arrays) < 2 or mark_members(arrays):
        name = None if columns else getattr(groups, "name", None)
        return {"" if name is None else fmt.label(name): groups}
    by_name = {fmt.label(name): a for name, a in zip(names, arrays, strict=True)}
    return {**by_name, " × ".join(by_name): groups}


def _side_by_side(
    groupings: Mapping[str, Any], cross: bool | str
) -> tuple[dict[str, Any], dict[tuple[str, ...], list[str]], pd.DataFrame]:
    """Return groupings side by side, their groups, and which rows are of which group.

    Raises
    ------
    ValueError
        If there is nothing to cross.
    """
    *columns, crossed = groupings
    if not columns:
        raise ValueError(
            "cross must be True unless sensitive_features is a frame of several "
            f"columns of labels; got {cross!r}."
        )
    named: dict[tuple[str, ...], str] = {(name,): name for name in columns}
    if cross:
        named[tuple(columns)] = crossed
    sides, members = dict[tuple[str, ...], list[str]](), dict[str, Array]()
    for of_columns, name in named.items():
        groups = as_groups(groupings[name])
        sides[of_columns] = [_name(of_columns, label) for label in groups.labels]
        members |= {side: groups.mask(i) for i, side in enumerate(sides[of_columns])}
    labels = {name: groupings[name] for name in named.values()}
    return labels, sides, pd.DataFrame(members)


def _name(columns: Sequence[str], label: Hashable) -> str:
    """Return the name of a group of these columns among those of other groupings."""
    said = fmt.label(label)
    return said if isinstance(label, tuple) else f"{columns[0]}={said}"


def references_of(
    reference: Any,
    groups: Iterable[Hashable],
    sides: Mapping[tuple[str, ...], Sequence[str]] | None = None,
) -> dict[Hashable, Hashable]:
    """Return the group with which each group is compared instead of with the rest.

    Raises
    ------
    ValueError
        For a reference that is none of the groups.
    """
    if reference is None:
        return {}
    groups, sides = list(groups), sides or {}
    alike = [group for group in groups if fmt.label(group) == str(reference)]
    if isinstance(reference, Hashable) and reference in groups:
        alike = [reference]
    of = dict.fromkeys(groups, alike[0]) if len(alike) == 1 and not sides else {}
    given = dict(reference) if isinstance(reference, Mapping) else {}
    for columns, names in sides.items():
        if given.keys() >= set(columns):
            values = tuple(given[column] for column in columns)
            label = values if len(columns) > 1 else values[0]
            of |= dict.fromkeys(names, _name(columns, label))
    if not of or not {*of.values()} <= {*groups} or given.keys() - {*chain(*sides)}:
        labels = [*map(repr, groups)]
        raise ValueError(
            f"reference must be one of the groups {fmt.some(labels)}, or of several "
            f"groupings one by column, such as {{'race': 'white'}}; got {reference!r}."
        )
    return of
