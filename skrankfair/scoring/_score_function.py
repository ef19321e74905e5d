"""`ScoreFunction`: a metric as one number, a score function for scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from .._estimates.formatting import some_groups
from .._estimates.simultaneous import why_undefined
from .._inputs.by_name import ColumnSpec
from .._inputs.groups import as_groups
from .._inputs.validation import Array, collected_warnings, warn_user
from ..exceptions import UndefinedMetricWarning
from ..metrics import GroupEstimates, ndcg
from ..metrics._disparities import DISPARITIES, Disparity, EqualizedOdds, rates_of

Result = GroupEstimates | EqualizedOdds

#: Arguments that a scorer can take from a column of X or from metadata.
COLUMNS = (
    *("sensitive_features", "qid", "cluster", "engagement"),
    *("sample_weight", "item_weight"),
)
#: Arguments that only a few metrics of rankings have.
OF_RANKINGS = ("position", "covariates")


def unwrapped(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Return the metric itself, without the options of a `partial`."""
    while isinstance(metric, partial):
        metric = metric.func
    return metric


def own_columns(metric: Callable[..., Any]) -> tuple[str, ...]:
    """Return the columns that only a few metrics take, or this one of `make_metric`."""
    plain = unwrapped(metric)
    few = [name for name in OF_RANKINGS if name in inspect.signature(plain).parameters]
    return (*getattr(plain, "own_columns", ()), *few)


@dataclass(frozen=True)
class ScoreFunction:
    """A metric as one number, called as ``function(y_true, y_score, **columns)``.

    scikit-learn calls it without our scorer in `TunedThresholdClassifierCV`.
    """

    metric: Callable[..., Any]
    params: Mapping[str, Any]  # options of the metric
    disparity: str | None  # how groups become one number; None: as the metric says
    on_undefined: str  # {"warn", "raise"}
    columns: Mapping[str, ColumnSpec]  # where the metric's arguments come from
    #: Labels that must be present; if one is missing, the number is NaN.
    expected_groups: tuple[Hashable, ...] = ()

    @property
    def __name__(self) -> str:
        metric = unwrapped(self.metric)
        return getattr(metric, "__name__", type(metric).__name__)

    @property
    def by_group(self) -> bool:
        """Whether the metric returns GroupEstimates, as ours do or `disparity` says."""
        module = getattr(unwrapped(self.metric), "__module__", None) or ""
        return self.disparity is not None or module.startswith("skrankfair.")

    @property
    def kind(self) -> str | None:
        """How groups become one number: by `disparity`, or by the metric's name."""
        if self.disparity is None and self.by_group and self.__name__ in DISPARITIES:
            return DISPARITIES[self.__name__][1]
        return self.disparity

    @property
    def compares_groups(self) -> bool:
        """Whether the number is a disparity, and not one value for all rows."""
        by_group = self.by_group and "sensitive_features" in self.accepted
        return by_group or self.disparity is not None

    @cached_property
    def accepted(self) -> tuple[str, ...]:
        """The columns that the metric has a parameter for."""
        parameters = dict(inspect.signature(self.metric).parameters)
        # `ndcg` without groups is one number of all rows.
        whole = unwrapped(self.metric) is ndcg and self.disparity is None
        whole &= "sensitive_features" not in self.columns
        if whole and parameters["sensitive_features"].default is None:
            del parameters["sensitive_features"]
        names = (*COLUMNS, *own_columns(self.metric))
        return tuple(name for name in names if name in parameters)

    @property
    def columns_taken(self) -> list[str]:
        """The columns that a call takes."""
        return list(dict.fromkeys((*self.columns, *self.accepted)))

    @property
    def __signature__(self) -> inspect.Signature:
        kinds = inspect.Parameter
        return inspect.Signature(
            [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in ("y_true", "y_score")]
            + [kinds(n, kinds.KEYWORD_ONLY, default=None) for n in self.columns_taken]
        )

    def __call__(self, y_true: Any, y_score: Any, **columns: Any) -> float:
        """Return the number alone."""
        if self.by_group:
            y_true, y_score = as_outcomes(y_true, y_score, two_classes=True)
        return self.evaluate(y_true, y_score, **columns)[0]

    def evaluate(
        self, y_true: Any, y_score: Any, **columns: Any
    ) -> tuple[float, Result | None]:
        """Return the number, and the estimates behind it if there are any."""
        given = {name: value for name, value in columns.items() if value is not None}
        for name in self.columns:
            if name not in given:
                raise ValueError(
                    f"{name} did not reach the scorer of {self.__name__}: pass it as "
                    f"metadata, with {name}=True in make_fairness_scorer and "
                    "sklearn.set_config(enable_metadata_routing=True)."
                )
        taken = {name: value for name, value in given.items() if name in self.accepted}
        with collected_warnings() as said:
            result = self.metric(y_true, y_score, **taken, **self.params)
        for category, message in said:
            # One warning, below, says what is undefined and what the set lacks.
            if not (self.by_group and issubclass(category, UndefinedMetricWarning)):
                warn_user(message, category)
        if isinstance(result, Disparity):
            result = result.estimates
        if not isinstance(result, Result):
            return self._of_others(result, given.get("sensitive_features")), None
        if not self.by_group:
            raise ValueError(
                f"disparity must be given for {self.__name__}, which returns "
                "GroupEstimates: 'difference', 'ratio', 'max_abs', 'l1' or 'worst'."
            )
        absent = self._absent(result.groups, taken.get("sensitive_features"))
        value = float("nan") if absent else self._reduce(result)
        if not np.isfinite(value):
            self._undefined(value, self._why(value, result, absent))
        return value, result

    def _of_others(self, result: Any, labels: Any) -> float:
        """Return the number of a metric that is not ours; NaN if groups are absent."""
        if np.ndim(result) or isinstance(result, str):
            raise ValueError(
                f"metric must return one number, or GroupEstimates; {self.__name__} "
                f"returned {type(result).__name__}."
            )
        compares = "sensitive_features" in self.accepted
        groups: tuple[Hashable, ...] = ()
        if labels is not None and (compares or self.expected_groups):
            groups = as_groups(labels).labels
        why = ""
        if absent := self._absent(groups, labels if compares else None):
            why = f"no rows of {some_groups(absent)}"
        elif compares and labels is not None and len(groups) < 2:
            why = "fewer than two groups"
        value = float("nan") if why else float(result)
        if not np.isfinite(value):
            present = f" (groups there: {some_groups(groups)})" if groups else ""
            self._undefined(value, f"it has {why or 'too few rows'}{present}.")
        return value

    def _absent(self, groups: Collection[Hashable], labels: Any) -> list[Hashable]:
        """Return the expected groups that are absent."""
        declared = () if labels is None else _declared_labels(labels)
        expected = dict.fromkeys((*self.expected_groups, *declared))
        return [group for group in expected if group not in groups]

    def _reduce(self, result: Result) -> float:
        if not self.compares_groups and isinstance(result, GroupEstimates):
            return float(result.estimate[0])
        with collected_warnings():  # `_undefined` warns instead
            return result.disparity(self.kind)

    def _why(self, value: float, result: Result, absent: list[Hashable]) -> str:
        """Return the reason why a test set has no finite number."""
        rates = rates_of(result)
        if "sensitive_features" not in self.accepted:
            return f"it has no {rates[0].metric.unit} that count."
        why = why_undefined(rates[0].estimate)
        if np.isinf(value):
            infinite = np.flatnonzero(np.isinf(rates[0].estimate))
            groups = (rates[0].groups[i] for i in infinite)
            why = f"infinite estimates of {some_groups(groups)}"
        for rate in rates:
            empty = [g for g, n in zip(rate.groups, rate.support, strict=True) if not n]
            if absent or empty:
                why = f"no {rate.metric.unit} of {some_groups([*absent, *empty])}"
                break
        return f"it has {why} (groups there: {some_groups(result.groups)})."

    def _undefined(self, value: float, why: str) -> None:
        """Warn of a number that is not finite, or raise."""
        what = "undefined (NaN)" if np.isnan(value) else f"infinite ({value:g})"
        message = f"The score of {self.__name__} is {what} on this test set: {why}"
        if self.on_undefined == "raise":
            raise ValueError(message)
        warn_user(message)


def _is_text(values: Array) -> bool:
    return values.dtype.kind in "OUS" and any(
        isinstance(value, str | bytes) for value in values.ravel()[:1]
    )


def as_outcomes(
    y_true: Any, y_score: Any, positive: Any = None, *, two_classes: bool = False
) -> tuple[Any, Any]:
    """Return class labels as 0 and 1, and numbers unchanged.

    `y_score` may be predicted labels. `positive` is the class that becomes 1; None
    takes the last of two labels if labels are text. `two_classes` says that both
    arguments are labels: two numbers are then classes too. An outcome that is missing
    is NaN.
    """
    outcome, score = np.asarray(y_true), np.asarray(y_score)
    absent = pd.isna(outcome)
    known = outcome[~absent]
    labels = _is_text(score) or (two_classes and positive is not None)
    if positive is None:
        text = _is_text(known)
        if not (text or two_classes):
            return y_true, y_score
        labels |= not text
        columns = [known, score] if labels else [known]
        classes = sorted(set().union(*(column.tolist() for column in columns)))
        if len(classes) > 2:
            if not text:
                return y_true, y_score
            raise ValueError(
                f"y_true must be numeric or have two classes; got {classes}."
            )
        positive = classes[-1]
    if labels:
        score = (score == positive).astype(float)
    return np.where(absent, np.nan, outcome == positive), score


def _declared_labels(values: Any) -> tuple[Hashable, ...]:
    """Return the labels that the type of a column declares; empty if it has none.

    A categorical of pandas and an Enum of polars declare them, so that a subset of the
    rows still knows the labels that it lacks.
    """
    column = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(column, nw.DataFrame) and len(column.columns) == 1:
        column = column[column.columns[0]]
    if not isinstance(column, nw.Series):
        return ()
    if nw.get_native_namespace(column).__name__ == "pandas":
        categories = getattr(column.to_native().dtype, "categories", None)
        return () if categories is None else tuple(categories.tolist())
    return tuple(column.dtype.categories) if isinstance(column.dtype, nw.Enum) else ()
