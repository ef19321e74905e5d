"""The metrics of an audit: what `metrics.toml` says of them, and their functions."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..metrics import GroupEstimates
    from ..metrics._make_metric import MadeMetric

FAVORABLE = ("high", "low")
#: What a metric asks for that is named and does not fit, by the note that says why.
_MUST = {"no_items": "item_weight must be None", "of_queries": "qid must be given"}
MISTAKES, EQUAL_SCORES = "mistakes", "equal scores"  # topics


@cache
def table() -> Mapping[str, Any]:
    """Return the content of `metrics.toml`, which is read once."""
    text = files(__package__).joinpath("metrics.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def note(name: str, /, **values: Any) -> str:
    """Return a note of `metrics.toml`, with what it leaves open."""
    return str(table()["notes"][name]).format(**values)


@dataclass(frozen=True, eq=False)
class AuditMetric:
    """A metric that an audit can measure, and the words for it.

    The fields are the entries of `metrics.toml`, which explains them. Their words are
    those of a ranking until `read_as` chooses others.
    """

    name: str
    function: Callable[..., GroupEstimates]  # of columns
    title: str
    short: str
    measures: str
    reading: str
    topic: str
    #: The same of rows that are validated and in order; None where there is none.
    ordered: Callable[..., GroupEstimates] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tasks: Sequence[str] = ()
    per: str = "pair"
    needs: str = ""
    cut: str = ""
    on_request: Sequence[str] = ()
    decided: bool = False
    merit: bool = True
    share: bool = True
    by_group: bool = True
    worse: Mapping[str, str] = field(default_factory=dict)
    untested: str = ""
    axis: str = ""
    lower: str = ""
    higher: str = ""
    scored: Mapping[str, str] = field(default_factory=dict)
    flagged: Mapping[str, str] = field(default_factory=dict)
    #: Which values are bad for a group, {"low", "high"}, or None if nobody knows.
    bad: str | None = None
    #: What is said of a group on a side of what is fair: "lower", "higher", and where
    #: it is known "worse" and "better".
    sides: Mapping[str, str] = field(default_factory=dict)
    task: str = "ranking"  # in whose words it is read
    favorable: str | None = None  # the end of the score that is good, as it is read
    is_change: bool = False  # whether the values are differences of two audits

    @property
    def question(self) -> str:
        """The question of a reader that the metric helps to answer."""
        words = table()["topics"][self.topic]
        flagged = self.favorable == "low" and self.task != "ranking"
        return str((flagged and words.get("flagged")) or words[self.task])

    @property
    def on_columns(self) -> Callable[..., GroupEstimates]:
        """The function with its options, as `skrankfair.distributed.measure` takes it.

        A metric that has not the groups of the audit is of all rows.
        """
        everybody = {} if self.by_group else {"sensitive_features": None}
        return partial(self.function, **self.options, **everybody)

    def is_of(self, task: str, threshold: float | None) -> bool:
        """Return whether audits of a task have it; decisions ask risks a threshold."""
        undecided = self.decided and threshold is None and task == "risk"
        return task in self.tasks and not undecided

    @property
    def of_decisions(self) -> bool:
        """Whether it is a rate of decisions that needs no outcome."""
        return self.decided and not self.merit

    def takes(self, parameter: str) -> bool:
        """Return whether the function has a parameter of that name."""
        return parameter in inspect.signature(self.ordered or self.function).parameters

    def at(self, k: int | None, threshold: float | None = None) -> AuditMetric:
        """Return the metric of the first k places, or of decisions by a threshold."""
        if self.decided and threshold is not None:
            return replace(self, options={**self.options, "threshold": threshold})
        if k is None and self.cut == "required":
            raise ValueError(f"k must be given for {self.name}; got None.")
        if k is None or not self.cut:
            return self
        weight = {"position_weight": "top"} if self.cut == "top" else {}
        return replace(self, options={**self.options, "k": k, **weight})

    def read_as(self, task: str, favorable: str | None) -> AuditMetric:
        """Return the metric in the words of a task and of the favorable end."""
        words = {} if task == "ranking" else dict(self.scored)
        if favorable == "low" and task != "ranking":
            words |= self.flagged
        metric: AuditMetric = replace(self, **words)  # type: ignore[arg-type]
        bad = None if favorable is None else self.worse.get(favorable)
        sides = {"lower": metric.lower, "higher": metric.higher}
        if bad is not None:
            low, high = ("worse", "better") if bad == "low" else ("better", "worse")
            sides |= {low: metric.lower, high: metric.higher}
        return replace(metric, task=task, favorable=favorable, bad=bad, sides=sides)


@cache
def catalog() -> Mapping[str, AuditMetric]:
    """Return the metrics of audits by name, in the order of a report."""
    from .. import metrics as library
    from ..metrics._dips import dips_estimates
    from ..metrics._exposure import share_estimates
    from ..metrics._matched_pair import matched_pair_estimates
    from ..metrics._ndcg import ndcg_estimates
    from ..metrics._pairwise import (
        accuracy_estimates,
        cross_estimates,
        preference_estimates,
    )
    from ..metrics._top_k import top_estimates, top_share_estimates

    ordered: dict[str, Callable[..., GroupEstimates]] = {
        "pairwise_accuracy": accuracy_estimates,
        "pairwise_exposure": partial(cross_estimates, "pairwise_exposure"),
        "pairwise_preference": preference_estimates,
        "matched_pair_calibration": matched_pair_estimates,
        "ndcg": ndcg_estimates,
        "dips": dips_estimates,
        "exposure_gap": partial(share_estimates, target="expected"),
        "share_at_k": top_share_estimates,
        "precision_at_k": partial(top_estimates, "precision_at_k"),
        "recall_at_k": partial(top_estimates, "recall_at_k"),
    }
    metrics = {}
    for name, entry in table()["metrics"].items():
        words = dict(entry)
        called = words.pop("function", name)
        function, of_rows = getattr(library, called), ordered.get(called)
        metrics[name] = AuditMetric(name, function, ordered=of_rows, **words)
    return metrics


def without_unfit(
    chosen: Sequence[AuditMetric],
    may_leave_out: bool,
    *,
    lowest: float = 0.0,
    binary: bool = True,
    weighed: bool = False,
    of_models: bool = False,
    several: bool = False,
) -> tuple[tuple[AuditMetric, ...], list[str]]:
    """Return the metrics that fit data, and notes on those that are left out.

    Known are the lowest outcome, and whether outcomes are 0 or 1, items have weights,
    lists are those of models, and lists have several clusters.

    Raises
    ------
    ValueError
        If none may be left out, for those that would ignore weights or queries; what
        others need they say on their own.
    """
    fitting, notes = list[AuditMetric](), list[str]()
    for metric in chosen:
        of_query = metric.per == "query"
        reasons = {
            "no_items": of_query and weighed,
            "of_queries": of_query and of_models,
            "negative": metric.needs == "not negative" and lowest < 0,
            "not_binary": metric.needs == "binary" and not binary,
            "several": of_query and several and metric.cut != "required",
        }
        reason = next((name for name, applies in reasons.items() if applies), "")
        if reason and may_leave_out:
            notes.append(f"{metric.title} is left out: {note(reason, lowest=lowest)}.")
        elif reason in _MUST:
            why = f"{note(reason)}; name other metrics."
            raise ValueError(f"{_MUST[reason]} for {metric.name}: {why}")
        else:
            fitting.append(metric)
    return tuple(fitting), notes


def not_named(metrics: Any) -> bool:
    """Return whether metrics are those of the task, and nobody named them.

    None asks for them, and "all" also for those that an audit has on request.
    """
    return metrics is None or (isinstance(metrics, str) and metrics == "all")


def chosen_metrics(
    metrics: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None,
    task: str | None = None,
    k: int | None = None,
    threshold: float | None = None,
    *,
    may_be_made: bool = False,
) -> tuple[AuditMetric, ...]:
    """Return the metrics of these names or functions; None is those of the task.

    "all" is also those that an audit has on request. With k those of rankings are of
    the first k places, and those of decisions are of a threshold. `may_be_made`: there
    may be metrics that `make_metric` made instead of names.
    """
    from .. import metrics as library
    from .._inputs.validation import did_you_mean
    from ..metrics._make_metric import MadeMetric

    known = catalog()
    if not_named(metrics):
        of_task = [
            metric.at(k, threshold)
            for metric in known.values()
            if (task is None or metric.is_of(task, threshold))
            and not (k is None and metric.cut == "required")
            and not (metrics is None and task in metric.on_request)
        ]
        order = table()["order"].get(task, list(table()["topics"]))
        return tuple(sorted(of_task, key=lambda metric: order.index(metric.topic)))
    names: Any = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    names = list(names) if isinstance(names, Iterable) else [names]
    chosen: dict[str, AuditMetric] = {}
    for asked in names or ["none"]:
        # A function of `skrankfair.metrics` stands for its name.
        of_library = getattr(library, getattr(asked, "__name__", ""), None)
        plain = of_library is not None and of_library is asked
        name = asked.__name__ if plain else asked
        if isinstance(name, str) and name in known:
            chosen[name] = known[name].at(k, threshold)
        elif may_be_made and isinstance(name, MadeMetric):
            chosen[name.__name__] = _made_metric(name)
        else:
            made = ", or metrics of make_metric" if may_be_made else ""
            raise ValueError(
                f"metrics must be among {', '.join(known)}{made}; got "
                f"{repr(name) if names else 'none'}.{did_you_mean(name, known)}"
            )
    return tuple(chosen.values())


def _made_metric(made: MadeMetric) -> AuditMetric:
    """Return a metric that `make_metric` made, with words for it."""
    name, fair = made.__name__, made.metric.fair_value
    if name in catalog():
        raise ValueError(f"{name} is a metric of the audit; give yours another name.")
    if made.own_columns:
        raise ValueError(
            f"An audit has outcomes and scores, and {name} also needs "
            f"{', '.join(made.own_columns)}: call it on its own."
        )
    words = {key: text.format(name=name) for key, text in table()["made"].items()}
    words["title"] = words["short"] = name.replace("_", " ").capitalize()
    if fair is not None:
        words["reading"] = f"Fair is the value {fair:g}."
    if fair is not None or made.per == "row":
        del words["untested"]
    worse = {"high": "low", "low": "high"}.get(made.metric.better or "")
    bad = {} if worse is None else dict.fromkeys(FAVORABLE, worse)
    options: dict[str, Any] = {"per": made.per, "share": made.metric.share}
    return AuditMetric(name, made, worse=bad, **options, **words)
