"""The metrics of an audit: what `metrics.toml` says of them, and their functions."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..metrics import GroupEstimates
    from ..metrics._make_metric import MadeMetric

FAVORABLE = ("high", "low")
MISTAKES, EQUAL_SCORES, QUALITY = "mistakes", "equal scores", "quality"  # topics
#: What asks for all metrics of the task, also those that an audit has on request.
ALL = "all"


@cache
def table() -> Mapping[str, Any]:
    """Return the content of `metrics.toml`, which is read once."""
    text = files(__package__).joinpath("metrics.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def tasks() -> Mapping[str, str]:
    """Return what scores may be for, each with the words for it in a report."""
    return dict(table()["tasks"])


@dataclass(frozen=True)
class MetricWords:
    """The words for a metric in a report, and which of its values are bad for a group.

    `metrics.toml` says what each of them is.
    """

    name: str
    title: str
    short: str
    measures: str
    reading: str
    topic: str
    #: For a group on a side of what is fair: "lower", "higher", "worse" and "better".
    sides: Mapping[str, str] = field(default_factory=dict)
    worse: str | None = None  # {"low", "high"} or None
    untested: str = ""
    axis: str = ""
    merit: bool = True
    share: bool = True
    by_group: bool = True
    is_change: bool = False  # whether the values are differences of two audits

    @property
    def question(self) -> str:
        """The question of a reader that the metric helps to answer."""
        return str(table()["topics"][self.topic])


@dataclass(frozen=True)
class AuditMetric:
    """A metric that an audit can measure; `metrics.toml` explains the fields."""

    name: str
    function: Callable[..., GroupEstimates]  # of columns
    #: The same of rows that are validated and in order; None where there is none.
    ordered: Callable[..., GroupEstimates] | None
    options: Mapping[str, Any]
    words: Mapping[str, Any]  # the entries of its table
    tasks: tuple[str, ...] = ()
    per: str = "pair"
    needs: str = ""
    cut: str = ""
    on_request: bool = False

    @property
    def title(self) -> str:
        """The title in the audit of a ranking."""
        return str(self.words["title"])

    @property
    def short(self) -> str:
        """The title at the head of a narrow column."""
        return str(self.words["short"])

    @property
    def untested(self) -> str:
        """Why there is no test of it; empty if there is one."""
        return str(self.words.get("untested", ""))

    @property
    def is_in_notes(self) -> bool:
        """Whether notes of a whole report say where it is undefined, and no warning."""
        return self.on_request or not self.by_group

    @property
    def on_columns(self) -> Callable[..., GroupEstimates]:
        """The function with its options, as `skrankfair.distributed.measure` takes it.

        A metric that has not the groups of the audit is of all rows.
        """
        everybody = {} if self.by_group else {"sensitive_features": None}
        return partial(self.function, **self.options, **everybody)

    @property
    def by_group(self) -> bool:
        """Whether it has the groups of the audit."""
        return bool(self.words.get("by_group", True))

    def takes(self, parameter: str) -> bool:
        """Return whether the function has a parameter of that name."""
        function = self.ordered or self.function
        return parameter in inspect.signature(function).parameters

    def undefined(self, lowest: float, binary: bool) -> str:
        """Return why it is not defined for outcomes, of which these are known."""
        if self.needs == "not negative" and lowest < 0:
            return (
                "it needs outcomes that are not negative, and the smallest is "
                f"{lowest:g}"
            )
        if self.needs == "binary" and not binary:
            return "it needs outcomes that are 0 or 1"
        return ""

    def at(self, k: int | None) -> AuditMetric:
        """Return the metric of the first k places; of all if k is None."""
        if k is None and self.cut == "required":
            raise ValueError(f"k must be given for {self.name}; got None.")
        if k is None or not self.cut:
            return self
        weight = {"position_weight": "top"} if self.cut == "top" else {}
        return replace(self, options={**self.options, "k": k, **weight})

    def read_as(self, task: str, favorable: str | None) -> MetricWords:
        """Return the metric in the words of a task and of the favorable end."""
        words = dict(self.words)
        if task != "ranking":
            words |= self.words.get("scored", {})
        if favorable == "low":
            words |= self.words.get("favorable_low", {})
        worse = words.pop("worse", {}).get(favorable)
        sides = {side: words.get(side, "") for side in ("lower", "higher")}
        if worse is not None:
            low, high = ("worse", "better") if worse == "low" else ("better", "worse")
            sides |= {low: sides["lower"], high: sides["higher"]}
        names = {field.name for field in fields(MetricWords)}
        given = {name: text for name, text in words.items() if name in names}
        return MetricWords(self.name, sides=sides, worse=worse, **given)


@cache
def catalog() -> Mapping[str, AuditMetric]:
    """Return the metrics of audits by name, in the order of a report."""
    from .. import metrics as library
    from ..metrics._matched_pair import matched_pair_estimates
    from ..metrics._ndcg import ndcg_estimates
    from ..metrics._pairwise import (
        accuracy_estimates,
        cross_estimates,
        preference_estimates,
    )
    from ..metrics._top_k import top_estimates

    top = ("share_at_k", "precision_at_k", "recall_at_k")
    ordered: dict[str, Callable[..., GroupEstimates]] = {
        "pairwise_accuracy": accuracy_estimates,
        "pairwise_exposure": partial(cross_estimates, "pairwise_exposure"),
        "pairwise_preference": preference_estimates,
        "matched_pair_calibration": matched_pair_estimates,
        "ndcg": ndcg_estimates,
        **{name: partial(top_estimates, name) for name in top},
    }
    metrics = {}
    for name, entry in table()["metrics"].items():
        function = entry.get("function", name)
        metrics[name] = AuditMetric(
            name,
            getattr(library, function),
            ordered.get(function),
            entry.get("options", {}),
            entry,
            tasks=tuple(entry["tasks"]),
            per=entry.get("per", "pair"),
            needs=entry.get("needs", ""),
            cut=entry.get("cut", ""),
            on_request=entry.get("on_request", False),
        )
    return metrics


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
    from ..metrics._make_metric import MadeMetric

    known = catalog()
    if not_named(metrics):
        return tuple(
            metric.at(k)
            for metric in known.values()
            if (task is None or task in metric.tasks)
            and not (k is None and metric.cut == "required")
            and not (metrics is None and metric.on_request)
        )
    names: Any = [metrics] if isinstance(metrics, str | MadeMetric) else metrics
    names = list(names) if isinstance(names, Iterable) else [names]
    chosen: dict[str, AuditMetric] = {}
    got = "none"
    for name in names:
        if isinstance(name, str) and name in known:
            chosen[name] = known[name].at(k)
        elif may_be_made and isinstance(name, MadeMetric):
            chosen[name.__name__] = made_metric(name)
        else:
            chosen, got = {}, repr(name)
            break
    if not chosen:
        made = ", or metrics of make_metric" if may_be_made else ""
        raise ValueError(f"metrics must be among {', '.join(known)}{made}; got {got}.")
    return tuple(chosen.values())


def made_metric(made: MadeMetric) -> AuditMetric:
    """Return a metric that `make_metric` made, with words for it."""
    name, fair = made.__name__, made.metric.fair_value
    if name in catalog():
        raise ValueError(f"{name} is a metric of the audit; give yours another name.")
    if made.own_columns:
        raise ValueError(
            f"An audit has outcomes and scores, and {name} also needs "
            f"{', '.join(made.own_columns)}: call it on its own."
        )
    worse = {"high": "low", "low": "high"}.get(made.metric.better or "")
    title = name.replace("_", " ").capitalize()
    words: dict[str, Any] = {
        "title": title,
        "short": title,
        "measures": f"The value of {name}, a metric that make_metric made.",
        "reading": "Fair is the same value for the group and for all others.",
        "lower": "lower",
        "higher": "higher",
        "topic": QUALITY,
        "share": made.metric.share,
        "worse": dict.fromkeys(FAVORABLE, worse),
    }
    if fair is not None:
        words["reading"] = f"Fair is the value {fair:g}."
    elif made.per != "row":
        words["untested"] = "Nothing to test: no value of it is said to be fair."
    return AuditMetric(name, made, None, {}, words, per=made.per)
