"""What has changed between two audits: of two samples, or of two scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from .._estimates import formatting as fmt
from .._inputs.validation import collected_warnings
from ..inference import compare, compare_independent
from ..metrics import GroupEstimates
from .audit import AuditReport
from .catalog import MetricWords, table
from .findings import FairnessDistances, MetricFinding
from .words import CHANGES

#: The two results of a metric, now and before, and their difference.
_Pair = tuple[GroupEstimates, GroupEstimates, GroupEstimates]


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
    words : dict of str to MetricWords
        How to read the changes, by name of a result.
    """

    before: AuditReport | None = None
    paired: bool = False
    distances: Mapping[str, FairnessDistances] = field(default_factory=dict)
    words: Mapping[str, MetricWords] = field(default_factory=dict)

    @cached_property
    def findings(self) -> tuple[MetricFinding, ...]:
        """Numbers and words for each metric."""
        level, correction = self.confidence_level, self.correction
        return tuple(
            MetricFinding(
                *(self.words[name], result, level, correction),
                distances=self.distances.get(name),
            )
            for name, result in self.results.items()
        )

    @property
    def overview(self) -> str:
        """What the table of all groups and metrics shows, in the HTML report."""
        return str(table()["texts"]["change"]["overview"])

    @property
    def headlines(self) -> tuple[str, str]:
        """What has changed after a correction for the number of metrics too."""
        tested = [f for f in self.findings if f.tested]
        number = len(tested)
        if not tested:
            return "The two audits have no metric in common.", ""
        if all(row.missing for f in tested for row in f.rows):
            return "There is too little data to tell what has changed.", ""
        sides = ("worse", "better", "lower", "higher")
        changed = [f for f in tested if any(f.surely_on(s, number) for s in sides)]
        hints = [f for f in tested if f.conclusions and f not in changed]
        aside = f"Single metrics also hint at changes: {_titles(hints)}."
        if not changed:
            said = "The data do not show a change."
            return said, aside.replace(" also", "") if hints else ""
        measures = f"{len(changed)} of {number} measures"
        said = f"Changed beyond chance in {measures}: {_titles(changed)}."
        for side, words in CHANGES.items():
            rows = [row for f in changed for row in f.surely_on(side, number)]
            if labels := list({row.group: row.label for row in rows}.values()):
                said += f" Now {words}: {fmt.some(labels)}."
        return said, aside if hints else ""

    @property
    def reading(self) -> str:
        """What is compared with what."""
        how = "on the same clusters" if self.paired else "of independent samples"
        return f"Now minus before, {how}. {super().reading}"

    @property
    def limits(self) -> str:
        """What the report does not show."""
        return str(table()["texts"]["change"]["limits"])


def _titles(findings: list[MetricFinding]) -> str:
    return ", ".join(f.metric.title for f in findings)


def changes_of(
    now: AuditReport, before: AuditReport, *, paired: bool, title: str
) -> ChangeReport:
    """Return what has changed from one audit to another."""
    difference = compare if paired else compare_independent
    changes: dict[str, GroupEstimates] = {}
    words: dict[str, MetricWords] = {}
    distances: dict[str, FairnessDistances] = {}
    notes = [f"Before: {before.counts}.", *(f"Before: {n}" for n in before.notes)]
    for finding in now.findings:
        name, metric = finding.metric.name, finding.metric
        if name not in before.results:
            notes.append(f"{metric.title} is only in one of the two audits.")
            continue
        try:
            level, gap = _differences(finding, before.results[name], difference)
        except ValueError as error:
            notes.append(f"{metric.title} is left out: {error}")
            continue
        fair = finding.result.fair_value
        for pair, suffix, value in ((level, "", fair), (gap, "_gap", 0.0)):
            if pair is None:
                continue
            a, b, changes[name + suffix] = pair
            directed = value is not None and metric.merit
            words[name + suffix] = _words(metric, directed=directed, gap=bool(suffix))
            if value is not None and metric.merit:
                distances[name + suffix] = FairnessDistances.of_change(
                    pair[2], a, b, value
                )
    shared = {f.name: getattr(now, f.name) for f in fields(AuditReport)}
    shared |= {"results": changes, "made": {}, "title": title, "sections": ()}
    absent = {group: 0 for group in before.group_rows if group not in now.group_rows}
    shared |= {"group_rows": {**now.group_rows, **absent}}
    shared |= {"notes": (*now.notes, *notes), "margin": {}}
    return ChangeReport(
        **shared, before=before, paired=paired, distances=distances, words=words
    )


def _differences(
    finding: MetricFinding,
    before: GroupEstimates,
    difference: Callable[[GroupEstimates, GroupEstimates], GroupEstimates],
) -> tuple[_Pair, _Pair | None]:
    """Return the change of a metric, and of its difference from the rest if tested."""
    now, gap = finding.result, None
    with collected_warnings():  # the table says which groups are in one sample only
        level = now, before, difference(now, before)
        if finding.against_rest and before.metric.against_rest is not None:
            now, before = now.against_rest(), before.against_rest()
            gap = now, before, difference(now, before)
    return level, gap


def _words(metric: MetricWords, *, directed: bool, gap: bool) -> MetricWords:
    """Return the words for the change of a metric, or of its gap."""
    reading = "All groups may have changed alike, which is no matter of fairness."
    if gap:
        reading = "It is the change of the difference of the group from the rest."
    elif directed:
        reading = "Whether it is a change for the better depends on what is fair."
    past = ", past fair" if directed else ""
    sides = {side: f"{side} than before{past}" for side in ("lower", "higher")}
    sides |= {side: f"{words} than before" for side, words in CHANGES.items()}
    return replace(
        metric,
        name=f"{metric.name}_gap" if gap else metric.name,
        title=f"{metric.title} against the rest" if gap else metric.title,
        short=f"{metric.short} gap" if gap else metric.short,
        measures=f"Now minus before: {metric.measures}",
        reading=f"0 is no change. {reading}",
        worse="low" if directed else None,
        sides=sides,
        untested="",
        is_change=True,
    )


def check_audit(value: Any, name: str) -> None:
    """Raise a ValueError for what is no audit."""
    if not isinstance(value, AuditReport) or isinstance(value, ChangeReport):
        raise ValueError(
            f"{name} must be the report of an audit (AuditReport); got "
            f"{type(value).__name__}."
        )
