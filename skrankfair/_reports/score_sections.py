"""What the audit of a risk score tests beside its metrics, each in a section."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.intervals import t_quantile
from .._estimates.metric import collected_warnings
from .._inputs.ranking import RankedData
from .._inputs.validation import Array, check_number
from ..inference import (
    MarginalOutcomeTest,
    PredictiveParityTest,
    marginal_outcome_test,
    predictive_parity_test,
)
from ..metrics import GroupEstimates, positive_rate_shift
from .catalog import not_named

if TYPE_CHECKING:
    from .html_report import ReportSection


@dataclass(frozen=True)
class ScoreColumns:
    """The columns of an audit as the caller gave them, each row on its own.

    Attributes
    ----------
    y_true, y_score : array-like of shape (n,)
    who : mapping of str to array-like of shape (n,) or None
        Groups, clusters and weights.
    threshold : float or None
    confidence_level : float
    qid : array-like of shape (n,) or None
    groups : tuple of hashable
    overlapping : bool
        Whether a row may be of several groups or of none.
    n_queries : int
    """

    y_true: Any
    y_score: Any
    who: Mapping[str, Any]
    threshold: float | None
    confidence_level: float
    qid: Any = None
    groups: tuple[Hashable, ...] = ()
    overlapping: bool = False
    n_queries: int = 1

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any],
        data: RankedData,
        threshold: float | None,
        confidence_level: float,
    ) -> ScoreColumns:
        """Return the columns of an audit, whose data are validated.

        Rows of a query depend on each other. Weights of items say how much a row
        counts, and not how often it is there, which takes clusters.

        Raises
        ------
        ValueError
            For a threshold that is no number.
        """
        if threshold is not None:
            check_number(threshold, "threshold", -np.inf, np.inf)
        who = {name: given[name] for name in ("sensitive_features", "cluster")}
        if who["cluster"] is None:
            who["cluster"] = given["qid"]
        who["sample_weight"] = given["sample_weight"]
        if given["item_weight"] is not None:
            weight = np.zeros(data.n_input)
            rows = data.ranking.order
            rows = rows if data.kept is None else data.kept[rows]
            weight[rows] = data.pair_weight
            who["sample_weight"] = weight
            if who["cluster"] is None:
                who["cluster"] = np.arange(data.n_input)
        return cls(
            *(given["y_true"], given["y_score"], who, threshold, confidence_level),
            qid=given["qid"],
            groups=tuple(data.groups.labels),
            overlapping=data.groups.overlapping,
            n_queries=data.ranking.n_queries,
        )

    @property
    def columns(self) -> dict[str, Any]:
        """The columns as a metric of rows takes them."""
        return {"y_true": self.y_true, "y_score": self.y_score, **self.who}

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.groups)

    @property
    def one_of_two(self) -> bool:
        """Whether there are two groups, each the rest of the other."""
        return self.n_groups == 2 and not self.overlapping

    @property
    def at_threshold(self) -> float:
        """The threshold, where there is one."""
        if self.threshold is None:
            raise ValueError("threshold must be given; got None.")
        return self.threshold


def score_sections(
    scores: ScoreColumns, task: str, metrics: Any
) -> tuple[tuple[ReportSection, ...], tuple[str, ...]]:
    """Return the sections for a task, and notes on those that are left out.

    There are none where metrics are named, and those of a ranking are for ``"all"``.
    """
    if not not_named(metrics):
        return (), ()
    wanted: list[tuple[str, Callable[[ScoreColumns], Any], Callable[..., Any]]] = []
    if task == "ranking" and metrics is not None:
        from .ranking_sections import RANKING_SECTIONS

        wanted.extend(RANKING_SECTIONS)
    if task == "risk":
        wanted.append(("The test of predictive parity", _parity_test, _parity))
        if scores.threshold is not None:
            wanted += [
                ("The test of marginal outcomes", _marginal_test, _marginal),
                ("What calibration would change", _shift_of, _shift),
            ]
    sections: list[ReportSection] = []
    notes: list[str] = []
    for title, test, section in wanted:
        with collected_warnings():
            try:
                result = test(scores)
            except ValueError as error:  # such as of groups that overlap
                notes.append(f"{title} is left out: {error}")
                continue
            sections.append(section(scores, result))
    return tuple(sections), tuple(notes)


def _parity_test(scores: ScoreColumns) -> PredictiveParityTest:
    return predictive_parity_test(
        **scores.columns, confidence_level=scores.confidence_level
    )


def _parity(scores: ScoreColumns, test: PredictiveParityTest) -> ReportSection:
    from .html_report import ReportSection

    compared = test.compared
    rows = []
    for pair, there, difference, pvalues in zip(
        test.contrasts, compared, test.difference, test.pvalues, strict=True
    ):
        a, b = map(fmt.label, pair)
        if not there.any():
            rows.append((f"{a} - {b}", "–", "–", "too little data"))
            continue
        largest = difference[there][np.argmax(np.abs(difference[there]))]
        where, smallest = test.grid[there], fmt.pvalue(np.nanmin(pvalues[there]))
        scope = f"{fmt.number(where.min())} to {fmt.number(where.max())}"
        rows.append((f"{a} - {b}", scope, fmt.number(largest), smallest))
    said = "The data do not show a difference between the curves"
    if test.pvalue < 1 - scores.confidence_level:
        said = "Equal scores do not mean equal outcomes"
    reading = (
        "The mean outcome at each score is compared between groups, where both have "
        "enough data. p-values are corrected for all scores and groups."
    )
    return ReportSection(
        title="Predictive parity: do equal scores mean equal outcomes?",
        paragraphs=(f"{said} (p {fmt.pvalue(test.pvalue)}).", reading),
        header=("groups", "scores compared", "largest difference", "p"),
        rows=tuple(rows),
    )


def _marginal_test(scores: ScoreColumns) -> MarginalOutcomeTest:
    return marginal_outcome_test(
        **scores.columns,
        threshold=scores.at_threshold,
        confidence_level=scores.confidence_level,
    )


def _marginal(scores: ScoreColumns, test: MarginalOutcomeTest) -> ReportSection:
    from .html_report import ReportSection

    said = "The data do not show a difference between the groups"
    if test.pvalue < 1 - scores.confidence_level:
        said = "The groups are held to different standards"
    reading = (
        "The mean outcome of those who are only just above the threshold. A group "
        "whose last have higher outcomes has to clear a higher bar."
    )
    return ReportSection(
        title=f"Marginal outcomes: the last above {fmt.number(test.threshold)}",
        paragraphs=(f"{said} (p {fmt.pvalue(test.pvalue)}).", reading),
        header=("group", "mean outcome", "interval"),
        rows=_by_group(test.groups, test.outcomes, test.outcome_interval()),
    )


def _shift_of(scores: ScoreColumns) -> GroupEstimates:
    return positive_rate_shift(**scores.columns, threshold=scores.at_threshold)


def _shift(scores: ScoreColumns, result: GroupEstimates) -> ReportSection:
    from .html_report import ReportSection

    ends = result.ends(t_quantile(scores.confidence_level, result.df))
    reading = (
        "The change of the share of the group above the threshold "
        f"{fmt.number(scores.at_threshold)}; a positive one says that its scores are "
        "too low there."
    )
    return ReportSection(
        title="What would change if the scores of each group were calibrated?",
        paragraphs=(reading,),
        header=("group", "change of the share", "interval"),
        rows=_by_group(result.groups, result.estimate, ends),
    )


def _by_group(
    groups: Sequence[Hashable], values: Array, ends: Sequence[Any]
) -> tuple[tuple[str, str, str], ...]:
    """Return the rows of a table: groups with a value and its interval."""
    low, high = map(np.asarray, ends)
    return tuple(
        (fmt.label(group), fmt.number(value), fmt.interval(*interval))
        for group, value, *interval in zip(groups, values, low, high, strict=True)
    )
