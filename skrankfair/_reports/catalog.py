"""The metrics of an audit: what each is called, measures and means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._inputs.validation import Array
from ..metrics import (
    GroupEstimates,
    brier_score,
    calibration_error,
    false_positive_rate,
    log_loss,
    precision,
    selection_rate,
    true_positive_rate,
)
from ..metrics._matched_pair import matched_pair_estimates
from ..metrics._ndcg import ndcg_estimates
from ..metrics._pairwise import (
    accuracy_estimates,
    exposure_estimates,
    preference_estimates,
)

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
    of_rows: bool = False  # whether it is of rows on their own, not of pairs
    shares_only: bool = False  # whether outcomes and scores must be in [0, 1]
    binary_only: bool = False  # whether outcomes must be 0 or 1
    untested: str = ""  # why there is no test
    #: Whether it looks at the outcomes, so that a difference is an unfairness.
    merit: bool = True
    share: bool = True  # whether the value is a share of pairs, to be shown in percent
    by_engagement: bool = False  # whether it takes `engagement`

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


_METRICS = (
    AuditMetric(
        name="pairwise_accuracy",
        estimates=partial(accuracy_estimates, comparison="all"),
        title="Pairwise accuracy",
        short="Accuracy",
        measures=(
            "When two items of a query have different outcomes and the better one "
            "belongs to the group, how often is it ranked above the other?"
        ),
        reading=(
            "Fair is the same share for the group and for all other items; 50% is a "
            "coin toss, and a group with a lower share is ranked with more mistakes."
        ),
        low="ranked less accurately",
        high="ranked more accurately",
        worse="low",
        by_engagement=True,
        scored_low="has its higher outcomes recognised less often",
        scored_high="has its higher outcomes recognised more often",
        scored_title="AUC of the higher outcomes of the group",
        scored_measures=(
            "When two people have different outcomes and the one with the higher "
            "outcome belongs to the group, how often does that one have the higher "
            "score?"
        ),
        scored_reading=(
            "Fair is the same share for the group and for all others; 50% is a coin "
            "toss. A low share says that the group's high outcomes are missed."
        ),
    ),
    AuditMetric(
        name="intra_group_accuracy",
        estimates=partial(accuracy_estimates, comparison="intra"),
        title="Intra-group accuracy",
        short="Intra-group",
        measures=(
            "When both items belong to the group, how often is the better one ranked "
            "above the worse one?"
        ),
        reading=(
            "A low share says that the ranker knows little about the group's items; "
            "it cannot come from placing the whole group too high or too low."
        ),
        low="ranked less accurately within the group",
        high="ranked more accurately within the group",
        worse="low",
        by_engagement=True,
        worse_if_low="low",
        scored_title="AUC within the group",
        scored_measures=(
            "When both people belong to the group, how often does the one with the "
            "higher outcome have the higher score?"
        ),
        scored_reading=(
            "A low share says that the score knows little about the group; it "
            "cannot come from scoring the whole group too high or too low."
        ),
    ),
    AuditMetric(
        name="inter_group_accuracy",
        estimates=partial(accuracy_estimates, comparison="inter"),
        title="Inter-group accuracy",
        short="Inter-group",
        measures=(
            "How often is a better item of the group ranked above a worse item from "
            "outside the group?"
        ),
        reading=(
            "A share below that of the rest says that the group's items lose places "
            "that they deserve to worse items of other groups."
        ),
        low="beaten by worse items more often",
        high="beaten by worse items less often",
        worse="low",
        by_engagement=True,
        scored_low="scored below people with lower outcomes more often",
        scored_high="scored below people with lower outcomes less often",
        worse_if_low="high",
        scored_title="AUC across groups (xAUC)",
        scored_measures=(
            "How often does somebody of the group have a higher score than somebody "
            "outside it with a lower outcome?"
        ),
        scored_reading=(
            "A share below that of the rest says that the group is scored low for "
            "its outcomes, above it that it is scored high; unlike base rates do "
            "this too."
        ),
    ),
    AuditMetric(
        name="pairwise_exposure",
        estimates=exposure_estimates,
        title="Pairwise exposure",
        short="Exposure",
        measures=(
            "How often is an item of the group ranked above an item from outside it, "
            "whatever their outcomes?"
        ),
        reading=(
            "Equal exposure is 50%; the pairwise preference says whether the group "
            "deserves more or less."
        ),
        low="ranked lower",
        high="ranked higher",
        worse="low",
        merit=False,
        scored_low="scored lower",
        scored_high="scored higher",
        worse_if_low="high",
        question=PLACES,
        scored_measures=(
            "How often does somebody of the group have a higher score than somebody "
            "outside it, whatever their outcomes?"
        ),
        scored_reading=(
            "Equal scores would be 50%; the pairwise preference says how the "
            "outcomes differ."
        ),
    ),
    AuditMetric(
        name="pairwise_preference",
        estimates=preference_estimates,
        title="Pairwise preference",
        short="Preference",
        measures=(
            "When an item of the group and one from outside it have different "
            "outcomes, how often does the group's item have the better one?"
        ),
        reading=(
            "It describes the outcomes and not the ranker, so there is nothing to "
            "test. It is the base rate with which to compare the pairwise exposure."
        ),
        untested="Nothing to test: it describes the outcomes, not the ranker.",
        question=PLACES,
        scored_measures=(
            "When somebody of the group and somebody outside it have different "
            "outcomes, how often does the one of the group have the higher outcome?"
        ),
        scored_reading=(
            "It describes the outcomes and not the score, so there is nothing to "
            "test. It is the base rate with which to compare the pairwise exposure."
        ),
    ),
    AuditMetric(
        name="matched_pair_calibration",
        estimates=matched_pair_estimates,
        title="Matched pair calibration",
        short="Matched pairs",
        measures=(
            "How much better are the outcomes of the group's items than those of "
            "other items of the query that scored the same or barely higher?"
        ),
        reading=(
            "Fair is 0, in the unit of the outcome; above it the group is undervalued "
            "and should be ranked higher, below it the group is overvalued."
        ),
        low="overvalued",
        high="undervalued",
        worse="high",
        share=False,
        scored_low="scored too high for its outcomes",
        scored_high="scored too low for its outcomes",
        worse_if_low="low",
        question=EQUAL_SCORES,
        scored_measures=(
            "How much higher are the outcomes of the group than those of others who "
            "scored the same or barely higher?"
        ),
        scored_reading=(
            "Fair is 0, in the unit of the outcome; above it the scores of the "
            "group are too low for its outcomes, below it too high."
        ),
    ),
    AuditMetric(
        name="calibration_error",
        estimates=calibration_error,
        title="Calibration error",
        short="Calibration",
        measures=(
            "How far is the mean outcome of the group's rows from their score, on "
            "average over its scores?"
        ),
        reading=(
            "Calibrated scores have the value 0. Small groups have larger values by "
            "chance alone, so groups are not compared."
        ),
        untested="Nothing to test: noise alone makes it positive.",
        share=False,
        question=EQUAL_SCORES,
        tasks=SCORES,
        of_rows=True,
        shares_only=True,
    ),
    AuditMetric(
        name="ndcg",
        estimates=ndcg_estimates,
        title="NDCG",
        short="NDCG",
        measures=(
            "How close does the ranking of a query come to the best possible one, if "
            "the first places count most?"
        ),
        reading=(
            "The ideal ranking has the value 1. The metric does not depend on the "
            "groups; it shows how good the ranking is."
        ),
        untested="Nothing to test: it has no groups.",
        share=False,
        question=QUALITY,
    ),
    AuditMetric(
        name="brier_score",
        estimates=brier_score,
        title="Brier score",
        short="Brier",
        measures="How large is the mean squared difference of outcome and score?",
        reading=(
            "The lower the better; 0 is perfect. It depends on how common the outcome "
            "is in the group, so a difference alone is no unfairness."
        ),
        untested="Nothing to test: it depends on how common the outcome is.",
        share=False,
        question=QUALITY,
        tasks=SCORES,
        of_rows=True,
        shares_only=True,
    ),
    AuditMetric(
        name="log_loss",
        estimates=log_loss,
        title="Logarithmic loss",
        short="Log loss",
        measures="How surprising are the outcomes, given the scores as probabilities?",
        reading=(
            "The lower the better, in nats. It depends on how common the outcome is in "
            "the group, so a difference alone is no unfairness."
        ),
        untested="Nothing to test: it depends on how common the outcome is.",
        share=False,
        question=QUALITY,
        tasks=SCORES,
        of_rows=True,
        shares_only=True,
    ),
    AuditMetric(
        name="selection_rate",
        estimates=selection_rate,
        title="Selection rate",
        short="Selected",
        measures="How often is the decision 1, whatever the outcomes?",
        reading=(
            "Demographic parity is the same share for the group and for all others; "
            "unlike outcomes can be a reason for unlike rates."
        ),
        low="selected less often",
        high="selected more often",
        worse="low",
        worse_if_low="high",
        merit=False,
        question=PLACES,
        tasks=DECISIONS,
        of_rows=True,
    ),
    AuditMetric(
        name="true_positive_rate",
        estimates=true_positive_rate,
        title="True positive rate",
        short="TPR",
        measures="Of those with the outcome 1, how many have the decision 1?",
        reading=(
            "Equal opportunity is the same share for the group and for all others; "
            "equalized odds asks it of the false positive rate too."
        ),
        low="selected less often among those with the outcome",
        high="selected more often among those with the outcome",
        worse="low",
        worse_if_low="high",
        question=MISTAKES,
        tasks=DECISIONS,
        of_rows=True,
        binary_only=True,
    ),
    AuditMetric(
        name="false_positive_rate",
        estimates=false_positive_rate,
        title="False positive rate",
        short="FPR",
        measures="Of those with the outcome 0, how many have the decision 1?",
        reading="Equalized odds is the same share for the group and for all others.",
        low="selected less often among those without the outcome",
        high="selected more often among those without the outcome",
        worse="low",
        worse_if_low="high",
        question=MISTAKES,
        tasks=DECISIONS,
        of_rows=True,
        binary_only=True,
    ),
    AuditMetric(
        name="precision",
        estimates=precision,
        title="Precision",
        short="Precision",
        measures="Of those with the decision 1, how many have the outcome 1?",
        reading=(
            "Predictive parity is the same share for the group and for all others; a "
            "group with a higher share had to clear a higher bar."
        ),
        low="selected with the outcome less often",
        high="selected with the outcome more often",
        worse="high",
        worse_if_low="low",
        question=EQUAL_SCORES,
        tasks=DECISIONS,
        of_rows=True,
        binary_only=True,
    ),
)
# In the order of the questions of a reader.
_QUESTIONS = (MISTAKES, PLACES, EQUAL_SCORES, QUALITY)
CATALOG = tuple(sorted(_METRICS, key=lambda metric: _QUESTIONS.index(metric.question)))

BY_NAME = {metric.name: metric for metric in CATALOG}


def chosen_metrics(
    metrics: str | Sequence[str] | None, task: str | None = None
) -> tuple[AuditMetric, ...]:
    """Return the metrics of these names, each once; None is all of the task."""
    if metrics is None:
        return tuple(m for m in CATALOG if task is None or task in m.tasks)
    names: Any = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(names, Iterable):
        names = [names]
    names = list(names)
    known = [name for name in names if isinstance(name, str) and name in BY_NAME]
    if len(known) < len(names) or not names:
        unknown = next((repr(name) for name in names if name not in known), "none")
        raise ValueError(f"metrics must be among {', '.join(BY_NAME)}; got {unknown}.")
    return tuple(BY_NAME[name] for name in dict.fromkeys(known))


def inferred_task(qid: object, y_score: Array) -> str:
    """Return what scores are for: within queries, as decisions, or as risks."""
    if qid is not None:
        return "ranking"
    return "decision" if bool(np.isin(y_score, (0, 1)).all()) else "risk"
