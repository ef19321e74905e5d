"""The metrics of an audit: what each is called, measures and means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..metrics import GroupEstimates
from ..metrics._matched_pair import matched_pair_estimates
from ..metrics._ndcg import ndcg_estimates
from ..metrics._pairwise import (
    accuracy_estimates,
    exposure_estimates,
    preference_estimates,
)


@dataclass(frozen=True)
class AuditMetric:
    """A metric of an audit, and the words for its results."""

    name: str  # what `audit` calls it
    #: The metric, of data that is validated and ordered.
    estimates: Callable[..., GroupEstimates]
    title: str
    short: str  # the title at the head of a narrow column
    measures: str  # one sentence: what it measures
    reading: str  # one sentence: how to read it
    #: The words for a group whose value is below or above what is fair.
    low: str = ""
    high: str = ""
    #: {"low", "high"} or None. Which of the two is bad for the group; None for metrics
    #: without a test.
    worse: str | None = None
    untested: str = ""  # why there is no test
    #: Whether it looks at the outcomes, so that a difference is an unfairness.
    merit: bool = True
    share: bool = True  # whether the value is a share of pairs, to be shown in percent
    by_engagement: bool = False  # whether it takes `engagement`

    @property
    def detriment(self) -> str:
        """The words for a group that is worse off."""
        return self.low if self.worse == "low" else self.high

    @property
    def benefit(self) -> str:
        """The words for a group that is better off."""
        return self.high if self.worse == "low" else self.low


CATALOG = (
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
    ),
)

BY_NAME = {metric.name: metric for metric in CATALOG}


def chosen_metrics(metrics: str | Sequence[str] | None) -> tuple[AuditMetric, ...]:
    """Return the metrics of these names, each once; None is all of them.

    Raises
    ------
    ValueError
        If a name is unknown, or if there is none at all.
    """
    if metrics is None:
        return CATALOG
    names: Any = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(names, Iterable):
        names = [names]
    names = list(names)
    known = [name for name in names if isinstance(name, str) and name in BY_NAME]
    if len(known) < len(names) or not names:
        unknown = next((repr(name) for name in names if name not in known), "none")
        raise ValueError(f"metrics must be among {', '.join(BY_NAME)}; got {unknown}.")
    return tuple(BY_NAME[name] for name in dict.fromkeys(known))
