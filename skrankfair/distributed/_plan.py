"""What to measure of which columns, and what one part of the data gives."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .. import metrics as library
from .._estimates.metric import collected_warnings
from .._inputs.validation import check_number, to_numpy
from ..metrics import GroupEstimates

#: Metrics by name.
AnyMetrics: TypeAlias = Mapping[str, Callable[..., GroupEstimates]]
#: The arguments of a metric that are columns.
COLUMNS = (
    "y_true",
    "y_score",
    "sensitive_features",
    "qid",
    "cluster",
    "engagement",
    "sample_weight",
    "item_weight",
    "values",
)
_RANKS = "its bins have equal mass, cut at ranks among all rows"
_NO_CURVE = (
    "given the curve of all rows only the estimate is a sum. Its standard error needs "
    "what each row does to the curve at the rows of other parts, its interval bins cut "
    "at ranks among all rows, and replicates would have its noise twice"
)
# Kinds of parameters that are given by their names.
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class MeasurePlan:
    """What to measure, and the names of the columns.

    Attributes
    ----------
    metrics : dict of str to callable
    columns : dict of str to str or list of str
        The name of the column (the names, of groups that are crossed) of each argument
        that is given.
    n_replicates, random_state : int
        As `GroupEstimates.compact` takes them.
    """

    metrics: AnyMetrics
    columns: Mapping[str, Any]
    n_replicates: int = 0
    random_state: int = 0

    @property
    def names(self) -> list[str]:
        """The names of all columns, each once."""
        found: list[str] = []
        for name in self.columns.values():
            found += [name] if isinstance(name, str) else list(name)
        return list(dict.fromkeys(found))

    @property
    def partition_by(self) -> str | None:
        """The column whose equal values must be in one part; None for rows."""
        return self.columns.get("cluster", self.columns.get("qid"))

    @property
    def nested(self) -> tuple[str, str] | None:
        """The columns of queries and clusters, where a query must be in one cluster."""
        qid, cluster = self.columns.get("qid"), self.columns.get("cluster")
        if qid is None or cluster is None or qid == cluster:
            return None
        return qid, cluster

    def with_fixed(
        self,
        is_wanted: Callable[[Callable[..., GroupEstimates]], bool],
        fixed: Callable[[AnyMetrics], AnyMetrics],
    ) -> MeasurePlan:
        """Return the plan with what `fixed` makes of the metrics that are wanted."""
        wanted = {name: one for name, one in self.metrics.items() if is_wanted(one)}
        if not wanted:
            return self
        return replace(self, metrics={**self.metrics, **fixed(wanted)})

    def check_columns(self, columns: Iterable[Any]) -> None:
        """Raise a ValueError if the data lack a column."""
        there = list(columns)
        for name in self.names:
            if name not in there:
                raise ValueError(
                    f"data has no column {name!r}; it has {', '.join(map(str, there))}."
                )

    def values(self, frame: Any) -> dict[str, Any]:
        """Return the columns of the arguments of one part of the data."""
        import narwhals as nw

        native = nw.from_native(frame, eager_only=True)
        if self.n_replicates:  # sums are rounded as the rows are ordered
            native = native.sort(*self.names)
        values = {}
        for argument, name in self.columns.items():
            several = not isinstance(name, str)
            # Of one column an array, which no metric has to make again.
            values[argument] = (
                nw.to_native(native.select(name))
                if several
                else to_numpy(nw.to_native(native[name]), argument)
            )
        return values

    def measure(self, frame: Any) -> Mapping[Any, Any]:
        """Return the results of one part of the data, without their tables.

        Parameters
        ----------
        frame : frame
            With the columns of the plan, of any library that narwhals knows.
        """
        values = self.values(frame)
        found, replicates = {}, (self.n_replicates, self.random_state)
        with collected_warnings():  # a group may well be missing in one part
            for name, metric in self.metrics.items():
                taken = parameters_of(metric)
                given = {k: v for k, v in values.items() if k in taken}
                found[name] = metric(**given).compact(*replicates)
        return found

    def added(self, parts: Sequence[Mapping[Any, Any]]) -> Mapping[Any, Any]:
        """Return the results of some parts, by a tree of sums."""
        level = list(parts)
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            rest = level[-1:] if len(level) % 2 else []
            level = [_sums(a, b) for a, b in pairs] + rest
        return level[0]

    def to_text(self, results: Mapping[Any, Any]) -> str:
        """Return results as text, without a pickle."""
        return json.dumps({name: found.to_json() for name, found in results.items()})

    def from_text(self, text: str) -> Mapping[Any, Any]:
        """Return the results that `to_text` wrote."""
        found = json.loads(text)
        return {name: GroupEstimates.from_json(one) for name, one in found.items()}


def _sums(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the sums by name of what is in both, and what is in one."""
    return {**a, **b, **{name: a[name] + b[name] for name in a if name in b}}


def parameters_of(metric: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters of a metric that are columns.

    Without those that a partial has set.
    """
    fixed = metric.keywords if isinstance(metric, partial) else {}
    return (set(COLUMNS) & set(inspect.signature(metric).parameters)) - set(fixed)


def named_metrics(metrics: Any) -> dict[str, Callable[..., GroupEstimates]]:
    """Return metrics by name.

    Raises
    ------
    ValueError
        For what is neither a name nor a function of `skrankfair.metrics`, nor a partial
        of one, or for two of one name.
    """
    if isinstance(metrics, Mapping):
        return {str(name): _metric(metric) for name, metric in metrics.items()}
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    found: dict[str, Callable[..., GroupEstimates]] = {}
    for metric in metrics:
        function = _metric(metric)
        named = plain_of(function)
        name = str(getattr(named, "__name__", repr(named)))
        if name in found:
            raise ValueError(
                f"metrics has {name!r} twice; name each by a dict, such as "
                "{'inter': partial(pairwise_accuracy, comparison='inter')}."
            )
        found[name] = function
    if not found:
        raise ValueError("metrics must name at least one metric; it is empty.")
    return found


def _metric(metric: Any) -> Callable[..., GroupEstimates]:
    known = isinstance(metric, str) and metric in library.__all__
    function = getattr(library, metric) if known else metric
    if isinstance(function, type) or not callable(function):
        raise ValueError(
            "metrics must be names or functions of skrankfair.metrics, partials of "
            f"them, or a dict of these; got {metric!r}."
        )
    return function


def make_plan(
    metrics: Any,
    columns: Mapping[str, Any],
    n_replicates: int = 0,
    random_state: int = 0,
) -> MeasurePlan:
    """Return the plan, or a ValueError that says what does not add up over parts."""
    functions = named_metrics(metrics)
    given = {name: column for name, column in columns.items() if column is not None}
    for argument, column in given.items():
        several = argument == "sensitive_features" and isinstance(column, Sequence)
        if not (isinstance(column, str) or several):
            raise ValueError(
                f"{argument} must be the name of a column; got {column!r}."
            )
    if "y_score" in given and any(
        "values" in parameters_of(f) for f in functions.values()
    ):
        given["values"] = given["y_score"]
    for name, function in functions.items():
        _check_additive(name, function, given)
    check_number(n_replicates, "n_replicates", 0, np.inf, integer=True)
    check_number(random_state, "random_state", 0, 2**63 - 1, integer=True)
    plan = MeasurePlan(functions, given, n_replicates, random_state)
    if n_replicates and plan.partition_by is None:
        raise ValueError(
            "n_replicates needs labels of independent units, by which their weights "
            "are drawn; name their column by cluster=, which may be that of the rows."
        )
    return plan


def _check_additive(
    name: str, function: Callable[..., Any], given: Mapping[str, Any]
) -> None:
    signature = inspect.signature(function)
    parameters, returned = signature.parameters, signature.return_annotation
    plain = plain_of(function)
    ours = vars(library).get(getattr(plain, "__name__", "")) is plain
    if ours and returned != GroupEstimates.__name__:
        raise ValueError(
            f"{name} must return GroupEstimates, which add up; it returns {returned}. "
            "Measure the metric by group that it is made of, such as selection_rate, "
            "and ask the result for contrasts or its disparity."
        )
    for option, parameter in parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind in _NAMED
        if needed and option not in given:
            how = f"column by {option}="
            if option not in COLUMNS:
                how = f"option, as by partial({name}, {option}=...)"
            raise ValueError(f"{name} needs {option}; name its {how}.")
    if "qid" in parameters and "qid" not in given:
        raise ValueError(
            f"{name} compares the items of one list, and pairs of items in two parts "
            "of the data are lost; name the column of the query by qid=, or measure "
            "the list in memory."
        )
    if is_set(function, "n_pairs") or is_set(function, "adjacent"):
        raise ValueError(
            f"{name} chooses its threshold from all data; choose it once and pass it: "
            f"partial({name}, epsilon=0.05), or a share of all pairs by quantile=."
        )


def check_refits(metrics: Mapping[str, Callable[..., Any]]) -> None:
    """Raise a ValueError for a metric that is no sum, also where its curve is known."""
    for name, metric in metrics.items():
        options = metric.keywords if isinstance(metric, partial) else {}
        method = options.get("method", "smooth")
        edges = method == "binned" and np.ndim(options.get("bins", 15))
        if plain_of(metric) is library.calibration_error and not edges:
            raise ValueError(
                f"{name} does not add up over parts of the data: "
                f"{_NO_CURVE if method == 'smooth' else _RANKS}. Measure a sample of "
                "the clusters in memory, or pass the edges of bins, which add up: "
                f"partial({name}, method='binned', bins=[0, 0.1, 0.2, ..., 1])."
            )


def plain_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a partial is of, or the function itself."""
    return function.func if isinstance(function, partial) else function


def is_set(function: Callable[..., Any], option: str) -> bool:
    """Return whether a partial sets an option."""
    keywords = function.keywords if isinstance(function, partial) else {}
    value = keywords.get(option)
    return value is not None and value is not False


def split_query(plan: MeasurePlan, query: Any) -> ValueError:
    """Return the error of a query in two clusters, whose pairs would be lost."""
    qid, cluster = plan.columns["qid"], plan.columns["cluster"]
    return ValueError(
        f"{cluster} must be constant within a query; {qid} {query!r} has rows of "
        "several clusters."
    )


def total_of(
    plan: MeasurePlan, parts: Sequence[Mapping[Any, Any]]
) -> Mapping[Any, Any]:
    """Return the results of all parts."""
    if not parts:
        raise ValueError("data must have at least one row; it has none.")
    return plan.added(parts)
