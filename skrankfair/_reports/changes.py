"""What has changed between two audits: of two samples, or of two scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.intervals import t_test
from .._estimates.metric import collected_warnings
from .._inputs.validation import Array
from ..inference import compare, compare_independent
from ..metrics import GroupEstimates
from .audit import AuditReport
from .audit_metric import AuditMetric
from .findings import GroupFinding, MetricFinding

#: Of the name of the change of a difference from the rest.
_GAP = "_gap"


@dataclass(frozen=True)
class ChangeMetric(AuditMetric):
    """The change of a metric, and the words for it."""

    of_change: ClassVar[bool] = True

    def says(self, side: str) -> str:
        """Return the words for a group that has changed."""
        if side in ("worse", "better"):
            return f"{GroupChange.side_words[side]} than before"
        return f"{side} than before{', past fair' if self.worse else ''}"


@dataclass(frozen=True)
class GroupChange(GroupFinding):
    """What has become of one group under one metric."""

    side_words: ClassVar[Mapping[str, str]] = {
        "worse": "further from fair",
        "better": "closer to fair",
    }


class FairnessDistances(NamedTuple):
    """How far groups are from fair, each of shape (G,)."""

    before: Array
    now: Array
    error: Array  # standard error of the sum of both


@dataclass(frozen=True, eq=False)
class ChangeFinding(MetricFinding):
    """All groups under one metric: now minus before."""

    #: How far groups were from fair, and are now; None where no value is fair.
    distances: FairnessDistances | None = None

    row_type: ClassVar[type[GroupFinding]] = GroupChange

    def _side(self, pvalue: float, difference: float, group: int) -> str:
        """Return whether a group is further from fair, or "lower" or "higher"."""
        side = super()._side(pvalue, difference, group)
        if not side or self.distances is None:
            return side
        before, now, error = (float(part[group]) for part in self.distances)
        nearer = abs(before) - abs(now)
        if before * now < 0:
            # Across fair the distance has changed by the sum of both values.
            _, chance = t_test(nearer, error, 0.0, self.result.df[group])
            if not chance < 1 - self.confidence_level:
                return "lower" if difference < 0 else "higher"
        return "better" if nearer > 0 else "worse"


@dataclass(frozen=True, eq=False, repr=False)
class ChangeReport(AuditReport):
    """What has changed since another audit: from `AuditReport.changes_since`.

    A report like that of an audit, whose numbers are now minus before. Beside each
    metric by group there is the change of the difference of the group from the rest
    (``..._gap``), where that is what the audit tests.

    Attributes
    ----------
    before : AuditReport
        The other audit.
    paired : bool
        Whether both are of the same clusters.
    distances : dict of str to FairnessDistances
        How far the groups were from fair before, and are now, by name of a result.
    """

    before: AuditReport | None = None
    paired: bool = False
    distances: Mapping[str, FairnessDistances] = field(default_factory=dict)

    overview: ClassVar[str] = (
        "This table shows by how much each group has changed, in percentage points or, "
        "for matched pairs and losses, in the unit of the metric. Orange is further "
        "from fair than before, and blue closer to it."
    )

    @cached_property
    def findings(self) -> tuple[MetricFinding, ...]:
        """Numbers and words for each metric."""
        return tuple(
            ChangeFinding(
                self.own[name],
                result,
                self.confidence_level,
                self.correction,
                distances=self.distances.get(name),
            )
            for name, result in self.results.items()
        )

    @property
    def headlines(self) -> tuple[str, str]:
        """What has changed after a correction for the number of metrics too."""
        findings = [f for f in self.findings if f.tested]
        limit = len(findings)
        if not findings:
            return "The two audits have no metric in common.", ""
        if all(row.missing for f in findings for row in f.rows):
            return "There is too little data to tell what has changed.", ""
        changed = [
            f
            for f in findings
            if any(f.surely_on(side, limit) for side in ("worse", "better", *_NEUTRAL))
        ]
        hints = [f for f in findings if f.conclusions and f not in changed]
        aside = f"Single metrics also hint at changes: {_titles(hints)}."
        if not changed:
            found = "The data do not show a change."
            return found, aside.replace(" also", "") if hints else ""
        number = f"{len(changed)} of {limit} measures"
        parts = [f"Changed beyond chance in {number}: {_titles(changed)}."]
        for side, words in GroupChange.side_words.items():
            rows = {r.group: r.label for f in changed for r in f.surely_on(side, limit)}
            if rows:
                parts.append(f"Now {words}: {fmt.some(list(rows.values()))}.")
        return " ".join(parts), aside if hints else ""

    @property
    def reading(self) -> str:
        """What is compared with what."""
        how = "on the same clusters" if self.paired else "of independent samples"
        return f"Now minus before, {how}. {super().reading}"

    @property
    def limits(self) -> str:
        """What the report does not show."""
        return (
            "A change says what happened and not why: who is in the data may have "
            "changed, and not how they are scored. That no change is shown is no proof "
            "that there is none: the intervals say how large it may be."
        )


_NEUTRAL = ("lower", "higher")


def _titles(findings: list[MetricFinding]) -> str:
    return ", ".join(f.metric.title for f in findings)


def changes_of(
    now: AuditReport, before: AuditReport, *, paired: bool, title: str
) -> ChangeReport:
    """Return what has changed from one audit to another."""
    difference = compare if paired else compare_independent
    parts: dict[str, GroupEstimates] = {}
    own: dict[str, AuditMetric] = {}
    distances: dict[str, FairnessDistances] = {}
    notes = [f"Before: {before.counts}.", *(f"Before: {n}" for n in before.notes)]
    for finding in now.findings:
        name, result = finding.metric.name, finding.result
        if name not in before.results:
            notes.append(f"{finding.metric.title} is only in one of the two audits.")
            continue
        try:
            pairs = _changes(finding, before.results[name], difference)
        except ValueError as error:
            notes.append(f"{finding.metric.title} is left out: {error}")
            continue
        for metric, (a, b), change in pairs:
            parts[metric.name], own[metric.name] = change, metric
            fair = result.fair_value if metric.name == name else 0.0
            if fair is not None and metric.merit:
                distances[metric.name] = _distances(change, a, b, fair)
    shared = {f.name: getattr(now, f.name) for f in fields(AuditReport)}
    shared |= {"results": parts, "own": own, "title": title, "sections": ()}
    absent = {group: 0 for group in before.group_rows if group not in now.group_rows}
    shared |= {"group_rows": {**now.group_rows, **absent}}
    shared |= {"notes": (*now.notes, *notes), "margin": {}}
    return ChangeReport(**shared, before=before, paired=paired, distances=distances)


def _changes(
    finding: MetricFinding,
    before: GroupEstimates,
    difference: Callable[[GroupEstimates, GroupEstimates], GroupEstimates],
) -> list[tuple[AuditMetric, tuple[GroupEstimates, GroupEstimates], GroupEstimates]]:
    """Return the changes of a metric, and of its difference from the rest."""
    now, metric = finding.result, finding.metric
    found = []
    with collected_warnings():  # groups of one sample only are told in the table
        found.append((_entry(metric, finding), (now, before), difference(now, before)))
        if finding.against_rest and before.metric.against_rest is not None:
            both = now.against_rest(), before.against_rest()
            entry = _entry(metric, finding, gap=True)
            found.append((entry, both, difference(*both)))
    return found


def _entry(
    metric: AuditMetric, finding: MetricFinding, *, gap: bool = False
) -> AuditMetric:
    """Return how the change of a metric is read."""
    directed = gap or finding.result.fair_value is not None
    directed &= metric.merit
    reading = "0 is no change. "
    if gap:
        reading += "It is the change of the difference of the group from the rest."
    elif directed:
        reading += "Whether it is a change for the better depends on what is fair."
    else:
        reading += "All groups may have changed alike, which is no matter of fairness."
    suffix = (_GAP, " against the rest", " gap") if gap else ("", "", "")
    parts = {part.name: getattr(metric, part.name) for part in fields(AuditMetric)}
    parts |= {
        "name": metric.name + suffix[0],
        "title": metric.title + suffix[1],
        "short": metric.short + suffix[2],
        "measures": f"Now minus before: {metric.measures}",
        "reading": reading,
        "worse": "low" if directed else None,
        "untested": "",
    }
    return ChangeMetric(**parts)


def _distances(
    change: GroupEstimates, now: GroupEstimates, before: GroupEstimates, fair: float
) -> FairnessDistances:
    """Return how far groups were from fair, and are, in the order of the change."""
    values, variance = [], -(change.standard_error**2)
    for result in (before, now):
        number = {group: i for i, group in enumerate(result.groups)}
        place = np.array([number.get(group, -1) for group in change.groups])
        there = place >= 0
        values.append(np.where(there, result.estimate[place] - fair, np.nan))
        variance += np.where(there, 2 * result.standard_error[place] ** 2, np.nan)
    found = FairnessDistances(values[0], values[1], np.sqrt(np.maximum(variance, 0.0)))
    for array in found:
        array.setflags(write=False)
    return found


def check_audit(value: Any, name: str) -> None:
    """Raise a ValueError for what is no audit."""
    if not isinstance(value, AuditReport) or isinstance(value, ChangeReport):
        raise ValueError(
            f"{name} must be the report of an audit (AuditReport); got "
            f"{type(value).__name__}."
        )
