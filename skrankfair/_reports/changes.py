"""What has changed between two audits: of two samples, or of two scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar

from .._estimates import formatting as fmt
from .._inputs.validation import collected_warnings
from ..inference import compare, compare_independent
from ..metrics import GroupEstimates
from .audit import AuditReport
from .catalog import AuditMetric, note
from .findings import CHANGES, FairnessDistances, MetricFinding, unchanged


@dataclass(frozen=True, eq=False, repr=False)
class ChangeReport(AuditReport):
    """What has changed since another audit: from `AuditReport.changes_since`.

    A report like that of an audit, whose numbers are now minus before. Beside each
    metric by group there is the change of the difference of the group from the rest
    (``..._gap``), where that is what the audit tests. The margin of the audit is the
    largest change that does not matter.

    Attributes
    ----------
    before : AuditReport
        The other audit.
    paired : bool
        Whether both are of the same clusters.
    distances : dict of str to FairnessDistances
        How far the groups were from fair before, and are now, by name of a result.
    """

    before: AuditReport = field(kw_only=True)
    paired: bool = False
    distances: Mapping[str, FairnessDistances] = field(default_factory=dict)
    texts: ClassVar[str] = "change"

    @cached_property
    def findings(self) -> tuple[MetricFinding, ...]:
        """Numbers and words for each metric."""
        return tuple(
            replace(finding, distances=self.distances[finding.metric.name])
            for finding in super().findings
        )

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """What has changed after a correction for the number of metrics too."""
        return tuple(("", text) for text in self._said())

    def _said(self) -> list[str]:
        tested = [f for f in self.findings if f.tested]
        if not tested:
            return [note("nothing_common")]
        if unchanged(row for f in tested for row in f.rows):
            return [note("same")]
        tested = [f for f in tested if f.compared]
        now, alone = {g for g, n in self.group_rows.items() if n != 0}, []
        if now.isdisjoint(self.before.group_rows):
            what = f"only {_titles(tested)}" if tested else "nothing"
            alone = [note("no_common_group", what=what)]
        if not tested:
            return alone or [note("too_little_change")]
        level = 1 - (1 - self.confidence_level) / len(tested)
        strict = [replace(f, confidence_level=level) for f in tested]
        changed = [f for f in strict if f.conclusions]
        names = [f.metric.name for f in changed]
        hints = [f for f in tested if f.conclusions and f.metric.name not in names]
        number, titles = len(tested), _titles(changed)
        counts = {"count": len(changed), "number": number, "titles": titles}
        said = note("changed" if changed else "unchanged", **counts)
        for side, words in CHANGES.items():
            if rows := [row for f in changed for row in f.groups_on(side)]:
                labels = {row.group: row.label for row in rows}.values()
                said += f" Now {words}: {fmt.some([*labels])}."
        also = " also" if changed else ""
        aside = note("hints", titles=_titles(hints), also=also)
        return [*alone, said, aside] if hints else [*alone, said]

    @property
    def reading(self) -> str:
        """What is compared with what."""
        how = "on the same clusters" if self.paired else "of independent samples"
        return f"Now minus before, {how}. {super().reading}"


def _titles(findings: list[MetricFinding]) -> str:
    return ", ".join(f.metric.title for f in findings)


def changes_of(
    now: AuditReport, before: AuditReport, *, paired: bool, title: str
) -> ChangeReport:
    """Return what has changed from one audit to another."""
    for name, report in (("the report", now), ("before", before)):
        if not isinstance(report, AuditReport) or isinstance(report, ChangeReport):
            raise ValueError(
                f"{name} must be the report of an audit (AuditReport); got "
                f"{type(report).__name__}."
            )
    difference = compare if paired else compare_independent
    changes: dict[str, GroupEstimates] = {}
    words: dict[str, AuditMetric] = {}
    distances: dict[str, FairnessDistances] = {}
    margin: dict[str, float] = {}
    notes = [f"Before: {before.counts}."]
    notes += [f"Before: {text}" for text in before.notes if text not in now.notes]
    notes += [*_only_in("now", now, before), *_only_in("before", before, now)]
    for finding in (f for f in now.findings if f.metric.name in before.results):
        metric, result = finding.metric, finding.result
        old = before.results[metric.name]
        if result.metric.slope is not None:
            result, old = result.as_gap(), old.as_gap()
        try:
            with collected_warnings():  # the table says which groups one sample lacks
                pairs = [(_words(metric, result.fair_value is not None), result, old)]
                if finding.against_rest and old.metric.against_rest is not None:
                    rests = result.against_rest(), old.against_rest()
                    pairs.append((_words(metric, True, gap=True), *rests))
                changed = [difference(a, b) for _, a, b in pairs]
        except ValueError as error:
            notes.append(f"{metric.title} is left out: {error}")
            continue
        for change, (said, a, b) in zip(changed, pairs, strict=True):
            changes[said.name], words[said.name] = change, said
            distances[said.name] = FairnessDistances.of_change(change, a, b)
            if finding.margin is not None:
                margin[said.name] = finding.margin
    parts = {f.name: getattr(now, f.name) for f in fields(AuditReport)}
    parts["sections"] = tuple(
        replace(section, title=f"{when}: {section.title}")
        for when, report in (("Before", before), ("Now", now))
        for section in report.sections
        if section.title.startswith("Impact ratios")
    )
    parts |= {"results": changes, "made": words, "title": title, "margin": margin}
    absent = {group: 0 for group in before.group_rows if group not in now.group_rows}
    # Gaps are those from the rest, whatever the references of the audits.
    parts |= {"group_rows": {**now.group_rows, **absent}, "references": {}}
    parts |= {"notes": (*now.notes, *notes), "recorded": None}
    return ChangeReport(**parts, before=before, paired=paired, distances=distances)


def _only_in(when: str, report: AuditReport, other: AuditReport) -> list[str]:
    """Return notes on the metrics and groups that the other audit lacks."""
    metrics = [f for f in report.findings if f.metric.name not in other.results]
    groups = [group for group in report.group_rows if group not in other.group_rows]
    named = {"metrics": _titles(metrics), "groups": fmt.some_groups(groups)}
    return [note(f"{what}_{when}", names=of) for what, of in named.items() if of]


def _words(metric: AuditMetric, says_fair: bool, *, gap: bool = False) -> AuditMetric:
    """Return the words for the change of a metric, or of its gap."""
    directed = says_fair and metric.merit
    unknown = ", and not shown to be closer or further" if directed else ""
    sides = {side: f"{side} than before{unknown}" for side in ("lower", "higher")}
    sides |= {side: f"{words} than before" for side, words in CHANGES.items()}
    of_what = "gap" if gap else "directed" if directed else "level"
    return replace(
        metric,
        name=f"{metric.name}_gap" if gap else metric.name,
        title=f"{metric.title} against the rest" if gap else metric.title,
        short=f"{metric.short} gap" if gap else metric.short,
        measures=f"Now minus before: {metric.measures}",
        reading=note(f"change_of_{of_what}"),
        bad="low" if directed else None,
        sides=sides,
        untested="",
        is_change=True,
    )
