"""The metrics of an audit: what each is called, measures and means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from ..metrics import (
    brier_score,
    calibration_error,
    log_loss,
)
from ..metrics._make_metric import MadeMetric
from ..metrics._matched_pair import matched_pair_estimates
from ..metrics._ndcg import ndcg_estimates
from ..metrics._pairwise import (
    accuracy_estimates,
    exposure_estimates,
    preference_estimates,
)
from ..metrics._top_k import top_estimates
from .audit_metric import (
    EQUAL_SCORES,
    MISTAKES,
    PLACES,
    QUALITY,
    RANKING,
    SCORES,
    AuditMetric,
    entry_of,
)
from .of_decisions import OF_DECISIONS
from .on_request import ON_REQUEST

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
        cut="k",
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
        cut="k",
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
        cut="k",
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
        cut="k",
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
        axis="difference of outcomes",
        scored_measures=(
            "How much higher are the outcomes of the group than those of others who "
            "scored the same or barely higher?"
        ),
        scored_reading=(
            "Fair is 0, in the unit of the outcome; above it the scores of the "
            "group are too low for its outcomes, below it too high."
        ),
        cut="top",
    ),
    AuditMetric(
        name="share_at_k",
        estimates=partial(top_estimates, "share_at_k"),
        title="Share of the first places",
        short="Top share",
        measures="Which share of the first places of a query do the group's items get?",
        reading=(
            "The shares of groups that do not overlap add up to 100%. What share is "
            "fair depends on how many good items the group has."
        ),
        untested="Nothing to test: it depends on how many good items the group has.",
        merit=False,
        question=PLACES,
        tasks=RANKING,
        cut="k",
        only_cut=True,
        whole=True,
    ),
    AuditMetric(
        name="precision_at_k",
        estimates=partial(top_estimates, "precision_at_k"),
        title="Precision of the first places",
        short="Top precision",
        measures="Which share of the group's items in the first places are good?",
        reading=(
            "A share above that of the rest says that the group's items had to be "
            "better to get there."
        ),
        low="less often good in the first places",
        high="more often good in the first places",
        worse="high",
        worse_if_low="low",
        question=EQUAL_SCORES,
        tasks=RANKING,
        binary_only=True,
        cut="k",
        only_cut=True,
        whole=True,
    ),
    AuditMetric(
        name="recall_at_k",
        estimates=partial(top_estimates, "recall_at_k"),
        title="Recall of the first places",
        short="Top recall",
        measures="How many of the group's items with the outcome 1 get a first place?",
        reading=(
            "Equal opportunity is the same share for the group and for all others: "
            "good items are shown as often, whosever they are."
        ),
        low="good items shown less often",
        high="good items shown more often",
        worse="low",
        worse_if_low="high",
        question=MISTAKES,
        tasks=RANKING,
        binary_only=True,
        cut="k",
        only_cut=True,
        whole=True,
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
        cut="k",
        whole=True,
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
)
# In the order of the questions of a reader.
_QUESTIONS = (MISTAKES, PLACES, EQUAL_SCORES, QUALITY)
CATALOG = tuple(
    sorted(
        (*_METRICS, *OF_DECISIONS, *ON_REQUEST),
        key=lambda metric: _QUESTIONS.index(metric.question),
    )
)

BY_NAME = {metric.name: metric for metric in CATALOG}


#: What asks for all metrics of the task, also those that an audit has on request.
ALL = "all"


def not_named(metrics: Any) -> bool:
    """Return whether metrics are those of the task, and nobody named them."""
    return metrics is None or (isinstance(metrics, str) and metrics == ALL)


def chosen_metrics(
    metrics: str | MadeMetric | Sequence[str | MadeMetric] | None,
    task: str | None = None,
    k: int | None = None,
    *,
    may_be_made: bool = False,
) -> tuple[AuditMetric, ...]:
    """Return the metrics of these names, each once; None is those of the task.

    "all" is also those that an audit has on request. With k those of rankings are of
    the first k places. `may_be_made`: there may be metrics that `make_metric` made
    instead of names.
    """
    if not_named(metrics):
        return tuple(
            metric.at(k)
            for metric in CATALOG
            if (task is None or task in metric.tasks)
            and not (k is None and metric.only_cut)
            and not (metrics is None and metric.on_request)
        )
    names: Any = [metrics] if isinstance(metrics, str | MadeMetric) else metrics
    if not isinstance(names, Iterable):
        names = [names]
    names = list(names)
    found: dict[str, AuditMetric] = {}
    for name in names:
        if isinstance(name, str) and name in BY_NAME:
            found[name] = BY_NAME[name].at(k)
        elif may_be_made and isinstance(name, MadeMetric):
            found[name.__name__] = entry_of(name, BY_NAME)
        else:
            found = {}
            break
    if not found:
        got = repr(name) if names else "none"
        own = ", or metrics of make_metric" if may_be_made else ""
        raise ValueError(f"metrics must be among {', '.join(BY_NAME)}{own}; got {got}.")
    return tuple(found.values())
