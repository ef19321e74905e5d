"""The findings of an audit: numbers by metric and group."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.estimates import corrected_pvalues, margin_bounds, one_test
from .._estimates.read_only import read_only
from .._estimates.scales import PlainScale, t_quantile
from .._inputs.validation import Array
from ..metrics import GroupEstimates
from . import words
from .catalog import AuditMetric, MetricWords

#: More groups than this, and a table shows those that matter.
MANY_GROUPS = 30
_FIRST_SHOWN = 10
CORRECTION_NAMES = {"holm": "Holm", "fdr_bh": "BH"}


@dataclass(frozen=True)
class GroupFinding:
    """One group under one metric."""

    group: Hashable
    #: As in `GroupEstimates.to_frame`.
    estimate: float
    standard_error: float
    ci_low: float
    ci_high: float
    support: float
    n_effective: float  # effective number of clusters (or items) behind the test
    pvalue: float
    #: Over the groups of the metric that have enough data for a verdict; NaN for the
    #: others.
    pvalue_corrected: float
    #: What is tested, with its interval: the estimate minus the fair value, or minus
    #: the value of the rest. NaN if nothing is tested.
    difference: float
    difference_low: float
    difference_high: float
    #: Which way the group differs beyond chance: "worse" or "better", "lower" or
    #: "higher" where neither is known to be bad for it, and "" if it does not.
    side: str
    #: Of the two one-sided tests that the difference is within the margin, and
    #: corrected as above; NaN without a margin.
    pvalue_margin: float
    pvalue_margin_corrected: float
    within: bool  # whether it is shown to be within the margin
    missing: str  # why there is no estimate or no interval; empty if both are there

    @property
    def label(self) -> str:
        """The label as one line of plain text."""
        return fmt.label(self.group)

    @property
    def kind(self) -> str:
        """The side, or "within", or "" if nothing is shown."""
        return self.side or ("within" if self.within else "")


class FairnessDistances(NamedTuple):
    """How far groups are from fair, each of shape (G,)."""

    before: Array
    now: Array
    error: Array  # standard error of the sum of both

    @classmethod
    def of_change(
        cls,
        change: GroupEstimates,
        now: GroupEstimates,
        before: GroupEstimates,
        fair: float,
    ) -> FairnessDistances:
        """Return the distances of two results, in the order of their change.

        The variance of the sum is ``2 V_before + 2 V_now - V_change``.
        """
        values, variance = [], -(change.standard_error**2)
        for result in (before, now):
            place = {group: i for i, group in enumerate(result.groups)}
            index = np.array([place.get(group, -1) for group in change.groups])
            values.append(np.where(index < 0, np.nan, result.estimate[index] - fair))
            error = np.where(index < 0, np.nan, result.standard_error[index])
            variance = variance + 2 * error**2
        error = np.sqrt(np.maximum(variance, 0.0))
        return read_only(cls(values[0], values[1], error))

    def moves(self, df: Array, alpha: float) -> Array:
        """Return 1 where a group that has moved is closer to fair, and -1 if further.

        On one side of fair the distance moves as the value does. Across it the distance
        is less by the sum of both values; 0 is the other side, and no nearer beyond
        chance (by Holm's method over the groups).
        """
        gain = np.abs(self.before) - np.abs(self.now)
        across = self.before * self.now < 0
        test = PlainScale(gain, self.error).test(0.0, df)
        pvalue = np.where(across, test[1], np.nan)
        with np.errstate(invalid="ignore"):
            sure = ~across | (corrected_pvalues(pvalue) < alpha)
        return np.where(sure, np.where(gain > 0, 1, -1), 0)


@dataclass(frozen=True, eq=False)
class MetricFinding:
    """All groups under one metric."""

    metric: MetricWords
    result: GroupEstimates
    confidence_level: float
    correction: str = "holm"  # {"holm", "fdr_bh"}
    #: The largest difference from fair that does not matter; None if nobody says so.
    margin: float | None = None
    group_name: str = "group"  # the head of the column of groups
    #: The rows as they were computed when the report was stored; None computes them.
    recorded: tuple[GroupFinding, ...] | None = None
    #: Of a change, how far groups were from fair and are now; None if no value is fair.
    distances: FairnessDistances | None = None

    @property
    def tested(self) -> bool:
        """Whether the metric says what is fair."""
        result = self.result
        fair = result.fair_value is not None or result.metric.against_rest is not None
        return fair and not self.metric.untested

    @property
    def directed(self) -> bool:
        """Whether one side of what is fair is bad for a group."""
        return self.tested and self.metric.worse is not None

    @property
    def compares_groups(self) -> bool:
        """Whether it is tested, and has the groups of the audit."""
        return self.tested and self.metric.by_group

    @property
    def against_rest(self) -> bool:
        """Whether fair is the value of the rest."""
        return self.result.fair_value is None and self.tested

    @cached_property
    def judged(self) -> GroupEstimates:
        """What is tested: the result, or its difference from the rest."""
        return self.result.against_rest() if self.against_rest else self.result

    @cached_property
    def rows(self) -> tuple[GroupFinding, ...]:
        """One finding per group, in the order of the result."""
        if self.recorded is not None:
            return self.recorded
        result, judged = self.result, self.judged
        difference = np.full((3, len(result.groups)), np.nan)
        if self.tested:
            fair = 0.0 if self.against_rest else result.fair_value
            ends = judged.ends(t_quantile(self.confidence_level, judged.df))
            difference = np.array([judged.estimate, *ends]) - fair
        low, high = result.ends(t_quantile(self.confidence_level, result.df))
        enough = judged.n_effective >= fmt.FEW_EFFECTIVE - 1e-9
        pvalues = np.where(enough, result.pvalue, np.nan)
        columns = {
            "estimate": result.estimate,
            "standard_error": result.standard_error,
            "ci_low": low,
            "ci_high": high,
            "support": result.support,
            "pvalue": result.pvalue,
            "n_effective": judged.n_effective,
            "pvalue_corrected": corrected_pvalues(pvalues, self.correction),
            "difference": difference[0],
            "difference_low": difference[1],
            "difference_high": difference[2],
            "pvalue_margin": self._margin_pvalues,
            "pvalue_margin_corrected": corrected_pvalues(
                self._margin_pvalues, self.correction
            ),
        }
        alpha = 1 - self.confidence_level
        by_group = zip(
            *(np.asarray(column).tolist() for column in columns.values()), strict=True
        )
        rows = []
        for i, (group, values) in enumerate(zip(result.groups, by_group, strict=True)):
            row: dict[str, Any] = dict(zip(columns, values, strict=True))
            within = self.all_within or row["pvalue_margin_corrected"] < alpha
            side = self._side(i, row["pvalue_corrected"], row["difference"])
            row |= {"side": side, "within": within, "missing": self._missing[i]}
            rows.append(GroupFinding(group, **row))
        return tuple(rows)

    @cached_property
    def _missing(self) -> list[str]:
        """Why groups have no estimate, interval or verdict; empty for the others."""
        result = self.result
        unit = "clusters" if result.variance == "cluster" else "items"
        numbers = (result.estimate, result.standard_error, self.judged.n_effective)
        reasons = []
        for estimate, error, effective in zip(*map(np.asarray, numbers), strict=True):
            reason = ""
            if np.isnan(estimate):
                reason = f"no {result.metric.unit}"
            elif np.isinf(estimate):  # a skew
                reason = f"no place in the top {result.parameters['k']} of some query"
            elif np.isnan(error):
                reason = f"too few {unit} for an interval"
            elif effective < fmt.FEW_EFFECTIVE - 1e-9:
                reason = (
                    f"too little data ({effective:.1f} effective {unit}; a verdict "
                    f"needs {fmt.FEW_EFFECTIVE})"
                )
            elif error == 0 and not result.metric.share:
                reason = "no variation, so no interval"
            reasons.append(reason)
        return reasons

    def _side(self, group: int, pvalue: float, difference: float) -> str:
        """Return on which side of fair a group is, or how its distance has changed."""
        alpha = 1 - self.confidence_level
        shown = self.tested and not self._missing[group] and pvalue < alpha
        if not shown or difference == 0:
            return ""
        neutral = "lower" if difference < 0 else "higher"
        if self.distances is not None:
            move = self.distances.moves(self.result.df, alpha)[group]
            return {1: "better", -1: "worse"}.get(int(move), neutral)
        if self.metric.worse is None:
            return neutral
        return "worse" if (difference < 0) == (self.metric.worse == "low") else "better"

    @cached_property
    def _margin_pvalues(self) -> Array:
        """P-values that groups are within the margin; NaN if there is no verdict."""
        if self.recorded is not None:
            return np.array([row.pvalue_margin for row in self.recorded])
        if self.margin is None or not self.tested:
            return np.full(len(self.result.groups), np.nan)
        alpha = 1 - self.confidence_level
        test = self.judged.as_estimates.equivalence_test(self.margin, alpha)
        return np.where(list(map(bool, self._missing)), np.nan, test.pvalue)

    @cached_property
    def all_within(self) -> bool:
        """Whether no group is further from fair: the intersection-union test."""
        pvalues = self._margin_pvalues
        return bool(pvalues.size and (pvalues < 1 - self.confidence_level).all())

    @cached_property
    def ordered(self) -> tuple[GroupFinding, ...]:
        """The groups, the worst off first and those without data last."""
        sign = -1 if self.metric.worse == "high" else 1
        values = [
            sign * row.difference if self.tested else -row.estimate for row in self.rows
        ]
        order = np.argsort(np.array(values, dtype=float), kind="stable")
        return tuple(self.rows[i] for i in order)

    @cached_property
    def shown(self) -> tuple[GroupFinding, ...]:
        """The rows of a table: of many groups those that matter, the worst first."""
        rows = self.ordered
        if len(rows) <= MANY_GROUPS:
            return rows
        judged = [row for row in rows if not row.missing]
        first = {id(row) for row in judged[:_FIRST_SHOWN]}
        return tuple(row for row in rows if row.side or id(row) in first)

    def on(self, side: str) -> tuple[GroupFinding, ...]:
        """Return the groups on a side beyond chance, the furthest first."""
        rows = self.ordered if side in ("worse", "lower") else reversed(self.ordered)
        return tuple(row for row in rows if row.side == side)

    def surely_on(self, side: str, n_metrics: int) -> tuple[GroupFinding, ...]:
        """Return those on a side also after a correction for the number of metrics."""
        limit = (1 - self.confidence_level) / n_metrics
        return tuple(row for row in self.on(side) if row.pvalue_corrected < limit)

    @cached_property
    def conclusions(self) -> tuple[tuple[str, str, tuple[GroupFinding, ...]], ...]:
        """Sides, the words for them and the groups there, those worse off first.

        Where the one group's gain is the other's loss, only the loss is said.
        """
        sides: list[tuple[str, str, tuple[GroupFinding, ...]]] = []
        pvalues = np.array([row.pvalue for row in self.rows])
        for side in ("worse", "better", "lower", "higher"):
            rows = self.on(side)
            if rows and not (sides and one_test(pvalues)):
                sides.append((side, self.metric.sides[side], rows))
        return tuple(sides)

    @property
    def kind(self) -> str:
        """The side of the first conclusion, "within" for all groups, or "none"."""
        if self.conclusions:
            return self.conclusions[0][0]
        return "within" if self.all_within else "none"

    @property
    def verdict(self) -> str:
        """What the metric found, in words."""
        return words.metric_verdict(self)

    def verdict_on(self, row: GroupFinding) -> str:
        """Return the verdict on a group in a few words."""
        return words.group_verdict(row, is_change=self.metric.is_change)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of a table of text."""
        level = f"{100 * self.confidence_level:g}% interval"
        header = [self.group_name, "estimate", level, self.result.metric.unit]
        if self.against_rest:
            header.insert(3, "vs rest")
        if self.tested:
            header += ["p", f"p ({CORRECTION_NAMES[self.correction]})"]
            header += ["verdict"] if self.margin is not None else []
        table = []
        for row in self.shown:
            interval = f"[{fmt.number(row.ci_low)}, {fmt.number(row.ci_high)}]"
            estimate = row.estimate if np.isfinite(row.estimate) else np.nan
            cells = [row.label, fmt.number(estimate), row.missing or interval]
            if self.against_rest:
                cells.append(fmt.number(row.difference))
            cells.append(fmt.count(row.support))
            if self.tested:
                pvalues = (row.pvalue, row.pvalue_corrected)
                cells += [fmt.pvalue(np.nan if row.missing else p) for p in pvalues]
                cells += [self.verdict_on(row)] if self.margin is not None else []
            table.append(cells)
        return header, table

    def effect(self, row: GroupFinding) -> str:
        """Return how far a group is from fair, with the interval."""
        low, high = row.difference_low, row.difference_high
        interval = f"[{self.signed(low)}, {self.signed(high)}]"
        return f"{self.signed(row.difference)}{self.points} {interval}"

    @property
    def points(self) -> str:
        """The unit of a difference, to be put behind the number."""
        return " points" if self.metric.share else ""

    def signed(self, value: float) -> str:
        """Return a difference with its sign, in percentage points for shares."""
        if np.isnan(value):
            return "–"
        text = f"{value:+.{self._decimals}f}"
        if self.metric.share:
            text = f"{100 * value:+.1f}"
        return text if float(text) else text.lstrip("+-")

    @cached_property
    def _decimals(self) -> int:
        """Decimals that leave two figures of the largest difference, at least two."""
        sizes = [abs(row.difference) for row in self.rows]
        largest = max((size for size in sizes if size > 0), default=1.0)
        return int(np.clip(1 - np.floor(np.log10(largest)), 2, 8))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the verdict in a form that JSON can hold."""
        result, metric = self.result, self.metric
        names = [field.name for field in fields(GroupFinding)]
        return {
            "metric": metric.name,
            "title": metric.title,
            "meaning": f"{metric.measures} {metric.reading}",
            "verdict": self.verdict,
            "fair_value": result.fair_value,
            "margin": self.margin,
            "all_within": self.all_within,
            "parameters": jsonable(result.parameters),
            "first_pass": jsonable(result.first_pass),
            "unit": result.metric.unit,
            "groups": [
                {name: jsonable(getattr(row, name)) for name in names}
                for row in self.rows
            ],
        }


def margins_of(
    margin: Any, metrics: Iterable[AuditMetric], confidence_level: float
) -> dict[str, float]:
    """Return the margin of each of these metrics that has one.

    Raises
    ------
    ValueError
        For a margin that is not positive, or of a metric that the audit does not have,
        or for a level at which two one-sided tests have no meaning.
    """
    if margin is None:
        return {}
    if not confidence_level > 0.5:
        raise ValueError(
            f"confidence_level must be above 0.5 with a margin; got {confidence_level}."
        )
    tested = [metric.name for metric in metrics if not metric.untested]
    named = isinstance(margin, Mapping)
    margins = dict(margin) if named else dict.fromkeys(tested, margin)
    for name, size in margins.items():
        if name not in tested:
            raise ValueError(
                f"margin must be of metrics of this audit ({', '.join(tested)}); got "
                f"{name!r}."
            )
        margin_bounds(size, "difference")
        if np.ndim(size):
            raise ValueError(f"margin must be one number per metric; got {size!r}.")
    return {name: float(size) for name, size in margins.items()}


def jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        keys = [fmt.label(key) for key in value]
        if len(set(keys)) < len(keys):  # as of 1 and "1"
            keys = [ascii(key) for key in value]
        return dict(zip(keys, map(jsonable, value.values()), strict=True))
    if isinstance(value, tuple | list):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
