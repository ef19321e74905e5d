"""What an audit knows of a metric, and what scores may be for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .._inputs.validation import Array, check_number
from ..metrics import GroupEstimates
from ..metrics._make_metric import MadeMetric

#: What scores are for, each with the words for it in a report.
TASKS = {
    "ranking": "a ranking of the items of each query",
    "risk": "a risk score of people or items",
    "decision": "decisions, 1 or 0",
}
FAVORABLE = ("high", "low")
RANKING, SCORES, DECISIONS = ("ranking",), ("risk",), ("decision",)

MISTAKES = "Who suffers the mistakes?"
PLACES = "Who gets the places?"
EQUAL_SCORES = "Are equal scores equally good?"
QUALITY = "How good are the scores as a whole?"


@dataclass(frozen=True)
class AuditMetric:
    """A metric of an audit, and the words for its results."""

    name: str  # what `audit` calls it
    #: The metric, of data that is validated and ordered, or of columns (`of_rows`).
    estimates: Callable[..., GroupEstimates]
    title: str
    short: str  # the title at the head of a narrow column
    measures: str  # one sentence: what it measures
    reading: str  # one sentence: how to read it
    #: The words for a group whose value is below or above what is fair.
    low: str = ""
    high: str = ""
    #: The same where scores are not for ranking; empty for the same words.
    scored_low: str = ""
    scored_high: str = ""
    scored_title: str = ""
    scored_measures: str = ""
    scored_reading: str = ""
    #: {"low", "high"} or None. Which of the two is bad for the group, where a high
    #: score is good for it, and where a low score is; None if neither is.
    worse: str | None = None
    worse_if_low: str | None = None
    question: str = MISTAKES  # of a reader, that it helps to answer
    tasks: tuple[str, ...] = RANKING + SCORES  # those whose audit has it
    of_rows: bool = False  # whether it takes columns, and not rows in order
    shares_only: bool = False  # whether outcomes and scores must be in [0, 1]
    binary_only: bool = False  # whether outcomes must be 0 or 1
    untested: str = ""  # why there is no test
    #: Whether it looks at the outcomes, so that a difference is an unfairness.
    merit: bool = True
    share: bool = True  # whether the value is a share of pairs, to be shown in percent
    by_engagement: bool = False  # whether it takes `engagement`
    #: What cuts it after the first k places: "" (nothing), "k", or "top", a weight of
    #: positions.
    cut: str = ""
    only_cut: bool = False  # whether there is none without a k
    #: Whether it is of whole queries, which are then its units, and weighs no items.
    whole: bool = False
    on_request: bool = False  # whether an audit has it only if it is asked for
    axis: str = ""  # the words at the axis of its plot; "" takes those of a share

    #: Whether the values are differences of two audits.
    of_change: ClassVar[bool] = False

    @property
    def weighs_items(self) -> bool:
        """Whether weights of items count, as in pairs and rows and not in places."""
        if isinstance(self.estimates, MadeMetric):
            return self.estimates.per == "row"
        return not self.whole

    @property
    def is_told(self) -> bool:
        """Whether notes and cells of a whole report tell where it is undefined."""
        return self.name == "ndcg" or self.on_request

    def at(self, k: int | None) -> AuditMetric:
        """Return the metric of the first k places; of all if k is None."""
        if k is None and self.only_cut:
            raise ValueError(f"k must be given for {self.name}; got None.")
        if k is None or not self.cut:
            return self
        options: dict[str, Any] = {"k": k}
        if self.cut == "top":
            options["position_weight"] = "top"
        return replace(self, estimates=partial(self.estimates, **options))

    def read_as(self, task: str, favorable: str | None) -> AuditMetric:
        """Return the metric in the words of a task, and which end of it is bad."""
        worse = {"high": self.worse, "low": self.worse_if_low, None: None}[favorable]
        if task == "ranking":
            return replace(self, worse=worse)
        return replace(
            self,
            worse=worse,
            low=self.scored_low or self.low,
            high=self.scored_high or self.high,
            title=self.scored_title or self.title,
            measures=self.scored_measures or self.measures,
            reading=self.scored_reading or self.reading,
        )

    def says(self, side: str) -> str:
        """Return the words for a group on a side of what is fair."""
        if side in ("worse", "better"):
            low = (self.worse == "low") == (side == "worse")
            return self.low if low else self.high
        return {"lower": self.low, "higher": self.high}[side]


def entry_of(made: MadeMetric, taken: Collection[str]) -> AuditMetric:
    """Return the entry of a metric that `make_metric` made, whose name is not taken."""
    name = made.__name__
    if name in taken:
        raise ValueError(f"{name} is a metric of the audit; give yours another name.")
    if made.own_columns:
        raise ValueError(
            f"An audit has outcomes and scores, and {name} also needs "
            f"{', '.join(made.own_columns)}: call it on its own."
        )
    fair = made.metric.fair_value
    worse = {"high": "low", "low": "high"}.get(made.metric.better or "")
    return AuditMetric(
        name=name,
        estimates=made,
        title=name.replace("_", " ").capitalize(),
        short=name.replace("_", " ").capitalize(),
        measures=f"The value of {name}, a metric that make_metric made.",
        reading=(
            "Fair is the same value for the group and for all others."
            if fair is None
            else f"Fair is the value {fair:g}."
        ),
        low="lower",
        high="higher",
        worse=worse,
        worse_if_low=worse,
        question=QUALITY,
        of_rows=True,
        share=made.metric.share,
        untested=(
            ""
            if fair is not None or made.per == "row"
            else "Nothing to test: no value of it is said to be fair."
        ),
    )


def inferred_task(qid: object, y_score: Array) -> str:
    """Return what scores are for: within queries, as decisions, or as risks."""
    if qid is not None:
        return "ranking"
    return "decision" if bool(np.isin(y_score, (0, 1)).all()) else "risk"


def check_k(k: Any, task: str) -> None:
    """Raise a ValueError unless k is a number of places, and the task has places."""
    if k is not None:
        check_number(k, "k", 1, np.inf, integer=True)
        if task != "ranking":
            raise ValueError(
                f"k must be None for task={task!r}, which has no places; got {k}."
            )
