"""Conditions on the numbers of a report, such as ``impact_ratio<0.8``, for CI."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._inputs.columns import LABEL
from .._inputs.validation import collected_warnings
from ..metrics import GroupEstimates
from ..metrics._disparities import Disparity
from .catalog import table
from .findings import DIFFERENCE, VALUE
from .sections import ReportSection, large_ones, made_section, shares_of_rows

if TYPE_CHECKING:
    from .audit import AuditReport
    from .findings import MetricFinding

#: What needs no name of a metric.
IMPACT_RATIO = "impact_ratio"
_PATTERN = re.compile(
    r"\s*(\w+)(?:\[(.+)\])?(?:\.(ratio|difference|gap))?"
    r"\s*([<>])=?\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"
)


@dataclass(frozen=True)
class Condition:
    """A condition under which a report fails."""

    text: str
    metric: str
    group: str  # the label of the only group that it is about; "" for all
    kind: str  # {"", "ratio", "difference", "gap"}
    sign: str  # {"<", ">"}
    bound: float


@dataclass(frozen=True)
class Checked:
    """A number that a condition is about; without an interval nothing can be told."""

    condition: Condition
    name: str  # of the group, or of the disparity
    value: float
    low: float
    high: float

    @property
    def fails(self) -> bool:
        """Whether the whole interval is beyond the bound."""
        bound = self.condition.bound
        return self.high < bound if self.condition.sign == "<" else self.low > bound

    @property
    def verdict(self) -> str:
        """Whether the condition is met, in words."""
        if np.isnan([self.low, self.high]).any():
            return "cannot tell"
        return "met beyond chance" if self.fails else "not met beyond chance"

    @property
    def says(self) -> str:
        """The number and its interval, on one line."""
        interval = fmt.interval(self.low, self.high)
        of = f" of {self.name}" if self.name else ""
        return f"{self.condition.text}: {fmt.number(self.value)}{of}, {interval}"


def parsed_conditions(texts: str | Iterable[str]) -> list[Condition]:
    """Return the conditions of one or several texts, with commas in between.

    Raises
    ------
    ValueError
        For what is no condition.
    """
    several = isinstance(texts, Iterable) and not isinstance(texts, str)
    texts, conditions = map(str, texts if several else [texts]), []
    for given in (c for text in texts for c in re.split(r",(?![^\[]*\])", text)):
        match, text = _PATTERN.fullmatch(given), given.strip()
        if match is None:
            raise ValueError(
                "a condition must be such as impact_ratio<0.8, ndcg<0.7, "
                "inter_group_accuracy[f]<0.6, inter_group_accuracy.gap<-0.05 or "
                f"selection_rate.ratio<0.8; got {text!r}"
            )
        metric, group, kind, sign, bound = match.groups(default="")
        kind = kind or ("ratio" if metric == IMPACT_RATIO else "")
        of_all = kind in ("ratio", "difference")
        if (of_all and group) or (metric == IMPACT_RATIO and kind != "ratio"):
            raise ValueError(
                "a ratio or difference is one number of all groups, and "
                f"{IMPACT_RATIO} is a ratio; got {text!r}"
            )
        conditions.append(Condition(text, metric, group, kind, sign, float(bound)))
    return conditions


def checked(report: AuditReport, conditions: Sequence[Condition]) -> list[Checked]:
    """Return the numbers that conditions are about, with intervals that hold at once.

    Raises
    ------
    ValueError
        For a metric or a group that the report does not have.
    """
    level = 1 - (1 - report.confidence_level) / max(1, len(conditions))
    findings = {f.metric.name: f for f in report.findings}
    numbers: list[Checked] = []
    with collected_warnings():
        for condition in conditions:
            if condition.metric == IMPACT_RATIO:
                result = report.rates
                if result is None and report.favorable != "low":
                    result = report.results.get("selection_rate")
                if result is None:
                    raise ValueError(
                        f"{condition.text}: the report has no rates of what is good "
                        "for people; ask for impact_ratio=True (--impact-ratio)."
                    )
            elif condition.metric in findings:
                result = report.results[condition.metric]
            else:
                raise ValueError(
                    f"{condition.text}: the report has {', '.join(findings)}, and no "
                    f"{condition.metric!r}."
                )
            if condition.kind in ("ratio", "difference"):
                numbers += _disparities(condition, result, report, level)
            else:
                numbers += _of_groups(condition, findings[condition.metric], level)
    return numbers


def _disparities(
    condition: Condition,
    result: GroupEstimates,
    report: AuditReport,
    level: float,
) -> list[Checked]:
    """Return by grouping the smallest value over the largest, or their difference.

    Of impact ratios rows without a category are left out, and small categories are
    never the highest, as of their tables. Groups with too little data for a verdict are
    left out where a gap between others is enough to meet the condition.
    """
    sides, of_impact = report.sides, condition.metric == IMPACT_RATIO
    level, numbers = 1 - (1 - level) / max(1, len(sides)), []
    counted = [not of_impact or _has_category(g, bool(sides)) for g in result.groups]
    enough = result.n_effective >= fmt.FEW_EFFECTIVE - 1e-9
    enough |= (condition.kind == "ratio") != (condition.sign == "<")
    most = (report.overlapping and report.n_rows) or np.inf
    for names in sides or [result.groups]:
        side = np.array([g in names for g in result.groups])
        chosen = side & counted & enough
        if of_impact:
            share = shares_of_rows(result.support * side, most)
            large = large_ones(chosen & ~np.isnan(result.estimate), share)
            chosen &= ~(result.estimate > result.estimate[large].max(initial=-np.inf))
        part = replace(result, sums=result.sums.of_groups(np.flatnonzero(chosen)))
        value = Disparity(condition.metric, part, condition.kind)
        low, high = map(fmt.label, (value.lowest, value.highest))
        name = f"{low} / {high}" if condition.kind == "ratio" else f"{high} - {low}"
        ends = map(float, (value, *value.confidence_interval(level)))
        numbers.append(Checked(condition, "" if np.isnan(value) else name, *ends))
    return numbers


def _has_category(group: Hashable, of_several: bool) -> bool:
    """Return whether rows of the group have a category in each of its columns.

    One of several groupings begins with its column, unless that is a crossing.
    """
    parts = fmt.label(group).split(" × ")
    if of_several and len(parts) == 1:
        parts = [parts[0].partition("=")[2]]
    return LABEL not in parts


def _of_groups(
    condition: Condition, finding: MetricFinding, level: float
) -> list[Checked]:
    """Return the values of groups, or their distances from fair."""
    gap = condition.kind == "gap"
    if gap and not finding.tested:
        raise ValueError(f"{condition.text}: nothing says what is fair.")
    labels = [row.label for row in finding.rows]
    if condition.group and condition.group not in labels:
        raise ValueError(
            f"{condition.text}: the groups are {fmt.some(labels)}, and none is "
            f"{condition.group!r}."
        )
    asked = [condition.group in ("", label) for label in labels]
    n_known = sum(not row.missing for row in compress(finding.rows, asked))
    corrected = 1 - (1 - level) / max(1, n_known)
    wider = replace(finding, confidence_level=corrected, recorded=None).rows
    numbers = []
    for row in compress(wider, asked):
        value, low, high = attrgetter(*(DIFFERENCE if gap else VALUE))(row)
        ends = (np.nan, np.nan) if row.missing else (low, high)
        numbers.append(Checked(condition, row.label, value, *ends))
    return numbers


def conditions_section(numbers: Sequence[Checked]) -> ReportSection:
    """Return the numbers that conditions are about, as a section of the report."""
    verdicts = [number.verdict for number in numbers]
    failed, unknown = map(verdicts.count, ("met beyond chance", "cannot tell"))
    rows = []
    for number, verdict in zip(numbers, verdicts, strict=True):
        value, ends = fmt.number(number.value), fmt.interval(number.low, number.high)
        rows.append((number.condition.text, number.name or "all", value, ends, verdict))
    said = [table()["sections"]["conditions"]["unknown"]] if unknown else []
    counts: dict[str, Any] = {"failed": failed, "unknown": unknown}
    counts |= {"number": len(numbers), "shown": failed > 0}
    return made_section("conditions", rows, paragraphs=said, **counts)
