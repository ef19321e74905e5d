"""`MeasurePlan`: metrics and columns to measure; `Source`: data cut into parts."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from .. import metrics as library
from .._estimates import formatting as fmt
from .._inputs.by_name import named_columns
from .._inputs.validation import (
    NoRowError,
    check_number,
    collected_warnings,
    did_you_mean,
    to_numpy,
)
from .._reports.catalog import catalog
from ..metrics import GroupEstimates
from ..scoring._score_function import unwrapped

#: Results by the names of their metrics; a `NoRowError` for a part without a row that
#: counts.
Results: TypeAlias = Mapping[str, Any]
# Kinds of parameters that can be given by name.
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class MeasurePlan:
    """The metrics to measure, and the names of their columns.

    Attributes
    ----------
    metrics : dict of str to callable
    columns : dict of str to str or list of str
        The column of each argument that is given; several columns for crossed groups,
        or for users and items.
    n_replicates, random_state : int
        As `GroupEstimates.compact` takes them.
    sampled : dict of str to dict
        By metric, what comes from a sample, and the rows and clusters of the sample.
    """

    metrics: Mapping[str, Callable[..., GroupEstimates]]
    columns: Mapping[str, Any]
    n_replicates: int = 0
    random_state: int = 0
    sampled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of all columns, each once."""
        return [str(name) for name in named_columns(*self.columns.values())]

    @property
    def partition_by(self) -> str | None:
        """The column whose equal values must be in one part; None for rows."""
        by = self.columns.get("cluster", self.columns.get("qid"))
        return by if by is None or isinstance(by, str) else by[0]  # the users

    def check_columns(self, known: Any, what: str = "data", cased: bool = True) -> None:
        """Raise a ValueError if the data lack a column, or have two of its name."""
        for name in self.names:
            if fault := fault_of_column(name, known, what, cased=cased):
                raise ValueError(fault)

    def values(self, frame: Any) -> dict[str, Any]:
        """Return the columns of the arguments of one part of the data."""
        rows = nw.from_native(frame, eager_only=True)
        # One column becomes an array here, so that no metric converts it again.
        return {
            argument: to_numpy(nw.to_native(rows[name]), argument)
            if isinstance(name, str)
            else nw.to_native(rows.select(name))
            for argument, name in self.columns.items()
        }

    def measure(self, frame: Any) -> Results:
        """Return the results of one part of the data, without their tables.

        Parameters
        ----------
        frame : frame
            With the columns of the plan, of any library that narwhals knows.
        """
        values, results = self.values(frame), dict[str, Any]()
        replicates = self.n_replicates, self.random_state
        with collected_warnings():  # a group may well be missing in one part
            for name in self.metrics:
                try:
                    results[name] = self.result(name, values).compact(*replicates)
                except NoRowError as error:  # rows that count may be in other parts
                    results[name] = error.with_traceback(None)
        return results

    def result(self, name: str, values: Mapping[str, Any]) -> GroupEstimates:
        """Return the result of a metric for the columns of some rows."""
        metric = self.metrics[name]
        # But for what a partial has set.
        fixed = metric.keywords if isinstance(metric, partial) else {}
        arguments = inspect.signature(metric).parameters.keys() - fixed.keys()
        given = {key: values[key] for key in arguments & values.keys()}
        if "qid" not in arguments and "cluster" in arguments and "qid" in values:
            given.setdefault("cluster", values["qid"])  # queries are the units
        result = metric(**given)
        if name in self.sampled:
            first_pass = {**result.first_pass, "sample": self.sampled[name]}
            result = replace(result, first_pass=first_pass)
        return result


@dataclass
class Source(ABC):
    """A base of data of an engine, in parts that keep the rows of a cluster together.

    Attributes
    ----------
    data : frame or relation of the engine
    plan : MeasurePlan
    n_partitions : int or None
        None leaves the number to the engine.
    """

    data: Any
    plan: MeasurePlan
    n_partitions: int | None

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.data)

    @abstractmethod
    def query_of_several(self, qid: str, cluster: str) -> Any:
        """Return a query with rows of several clusters, or None."""

    @abstractmethod
    def rows(self, choose: Callable[[Any], Any]) -> Any:
        """Return a frame of the rows that `choose` takes from each part."""

    @abstractmethod
    def results(self, plan: MeasurePlan) -> Iterable[Results]:
        """Return the results of parts, which add up to those of all rows."""


def fault_of_column(
    name: str, known: Iterable[Any], what: str, role: str = "", cased: bool = True
) -> str:
    """Return what is wrong unless there is one column of this name; else nothing.

    Unless names are `cased`, "a" and "A" are one of them, as to DuckDB.
    """
    key = name if cased else name.lower()
    same = [c for c in known if key == (c if cased else c.lower())]
    if same == [name]:
        return ""
    has, hint = "no column", did_you_mean(name, known)
    if name in same:
        has = f"{len(same)} columns"
        hint = f" Rename all but one{', as case is nothing to DuckDB' * (not cased)}."
    names = fmt.some(list(map(repr, same if name in same else known)))
    return f"{what} has {has} {name!r}{role}; it has {names}.{hint}"


def added(parts: Iterable[Results]) -> dict[str, Any]:
    """Return the sum of the results of parts, by name of the metric."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, result in part.items():
            total[name] = total[name] + result if name in total else result
    return total


def named_metrics(metrics: Any) -> dict[str, Callable[..., GroupEstimates]]:
    """Return metrics by name.

    Raises
    ------
    ValueError
        For an entry that is no name or function of `skrankfair.metrics`, nor a partial
        of one, or for two metrics of one name.
    """
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    of_dict = isinstance(metrics, Mapping)
    pairs = metrics.items() if of_dict else (("", metric) for metric in metrics)
    known = {name: metric.on_columns for name, metric in catalog().items()}
    known |= {name: getattr(library, name) for name in library.__all__}
    named: dict[str, Callable[..., GroupEstimates]] = {}
    for name, metric in pairs:
        function, key = metric, str(name)
        if isinstance(metric, str):
            function, key = known.get(metric), key or metric
        if isinstance(function, type) or not callable(function):
            raise ValueError(
                "metrics must be names or functions of skrankfair.metrics, partials of "
                f"them, or a dict of these; got {metric!r}."
                f"{did_you_mean(metric, known)}"
            )
        plain = unwrapped(function)
        key = key or str(getattr(plain, "__name__", repr(plain)))
        if key in named:
            raise ValueError(
                f"metrics has {key!r} twice; name each by a dict, such as "
                "{'inter': partial(pairwise_accuracy, comparison='inter')}."
            )
        named[key] = function
    if not named:
        raise ValueError("metrics must name at least one metric; it is empty.")
    return named


def make_plan(
    metrics: Any,
    columns: Mapping[str, Any],
    n_replicates: int = 0,
    random_state: int = 0,
) -> MeasurePlan:
    """Return the plan; a ValueError names a metric that does not add up over parts."""
    functions = named_metrics(metrics)
    given = {name: column for name, column in columns.items() if column is not None}
    for argument, column in given.items():
        may_be_several = argument in ("sensitive_features", "cluster")
        several = may_be_several and isinstance(column, Sequence) and len(column) > 0
        if not (isinstance(column, str) or several):
            raise ValueError(
                f"{argument} must be the name of a column; got {column!r}."
            )
    if "y_score" in given:
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
    plain = unwrapped(function)
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
            raise ValueError(
                f"{name} needs {option}; name its column by {option}=, or give an "
                f"option as by partial({name}, {option}=...)."
            )
    if "qid" in parameters and "qid" not in given:
        raise ValueError(
            f"{name} compares the items of one list, and pairs of items in two parts "
            "of the data are lost; name the column of the query by qid=, or measure "
            "the list in memory."
        )
    if "adjacent" in parameters and parameters["adjacent"].default is True:
        raise ValueError(
            f"{name} with adjacent=True breaks ties by the order of the rows, which "
            "parts of the data do not keep; measure it in memory, or all pairs up to a "
            f"difference of the scores: partial({name}, epsilon=0.05)."
        )
