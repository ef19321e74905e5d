"""What findings say: verdicts on groups and metrics, and the headline of a report."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.estimates import correct
from .catalog import EQUAL_SCORES, MISTAKES, table

if TYPE_CHECKING:
    from .findings import GroupFinding, MetricFinding

_MOST_NAMED = 3
#: The sides of groups in a column of verdicts, of an audit and of a change.
VERDICTS = {"worse": "worse off", "better": "better off"}
CHANGES = {"worse": "further from fair", "better": "closer to fair"}


def group_verdict(row: GroupFinding, *, is_change: bool = False) -> str:
    """Return the verdict on a group in a few words; empty without enough data."""
    if row.missing:
        return ""
    words = CHANGES if is_change else VERDICTS
    verdicts = [words.get(row.side, row.side)] if row.side else []
    if row.within:
        verdicts.append("within the margin")
    return ", ".join(verdicts) or "cannot tell"


def metric_verdict(finding: MetricFinding) -> str:
    """Return what a metric shows, in words."""
    if not finding.tested:
        return finding.metric.untested
    said = []
    for _, words, rows in finding.conclusions:
        named = [f"{r.label} ({finding.effect(r)})" for r in rows[:_MOST_NAMED]]
        more = len(rows) - len(named)
        tail = f", and {more} more" if more > 0 else ""
        said.append(f"{words[0].upper()}{words[1:]}: {', '.join(named)}{tail}.")
    said = said or [silence(finding)]
    said += filter(None, (margin_verdict(finding), _rows_left_out(finding)))
    return " ".join(said)


def silence(finding: MetricFinding) -> str:
    """Return why a metric names no group."""
    pvalues = [row.pvalue_corrected for row in finding.rows if not row.missing]
    known = [p for p in pvalues if not np.isnan(p)]
    if not known:
        return "No group has enough data for a test."
    what = "change" if finding.metric.is_change else "difference"
    smallest = fmt.pvalue(min(known))
    return f"The data do not show a {what} (smallest corrected p {smallest})."


def margin_words(finding: MetricFinding) -> str:
    """Return the margin in words; empty without one."""
    if finding.margin is None:
        return ""
    scale = 100 if finding.metric.share else 1
    fair = "the rest" if finding.against_rest else "fair"
    return f"within {scale * finding.margin:.4g}{finding.points} of {fair}"


def margin_verdict(finding: MetricFinding) -> str:
    """Return which groups a metric shows to be within the margin; empty without one."""
    if finding.margin is None:
        return ""
    reach = margin_words(finding)
    if finding.all_within:
        return f"Every group is shown to be {reach}."
    within = [row.label for row in finding.rows if row.within]
    unclear = [row.label for row in finding.rows if group_verdict(row) == "cannot tell"]
    said = [f"Shown to be {reach}: {fmt.some(within)}."] if within else []
    if unclear:
        said.append(f"The data cannot tell of {fmt.some(unclear)}.")
    return " ".join(said) or f"No group is shown to be {reach}."


def _rows_left_out(finding: MetricFinding) -> str:
    """Return how many groups the table leaves out, in words; empty if none."""
    left = len(finding.ordered) - len(finding.shown)
    if not left:
        return ""
    little = sum(bool(row.missing) for row in finding.ordered)
    more = f"; {little:,} have too little data for a verdict" if little else ""
    return f"{left:,} more groups do not differ beyond chance{more}."


def headline(
    findings: Iterable[MetricFinding], task: str = "ranking"
) -> tuple[str, str]:
    """Return the sentence to remember, and a second one to add if there is one.

    A group is called worse off when the p-value of one metric is small enough after a
    correction for the number of metrics too: this is the sentence that is remembered.
    """
    tested = [f for f in findings if f.tested]
    if not tested:
        return "None of the requested metrics says what is fair.", ""
    if len(tested[0].rows) == 1:
        return "There is only one group, so there is nothing to compare.", ""
    if all(row.missing for f in tested for row in f.rows):
        return "There is too little data to tell the groups apart.", ""
    merit = [f for f in tested if f.metric.merit]
    directed = [f for f in merit or tested if f.directed]
    if not directed:
        said, aside = _neutral_headline(tested)
    else:
        said, aside = _directed_headline(tested, directed, bool(merit))
        conflict, reservation = ("", "") if task == "ranking" else _by_topic(directed)
        if conflict:
            said, aside = conflict, reservation
        else:
            aside = " ".join(filter(None, (aside, reservation)))
    return said, " ".join(filter(None, (aside, _margin_headline(tested))))


def _directed_headline(
    findings: Sequence[MetricFinding], looked_at: Sequence[MetricFinding], merit: bool
) -> tuple[str, str]:
    """Return the headline where it is known which side is bad for a group."""
    what = "worse off" if merit else looked_at[0].metric.sides["worse"]
    number = len(looked_at)
    worse = _labels(f.on("worse") for f in looked_at)
    sure = _labels(f.surely_on("worse", number) for f in looked_at)
    better_too = _labels(f.surely_on("better", number) for f in looked_at)
    mixed = [label for label in sure if label in better_too]
    clear = [label for label in sure if label not in mixed]
    hints = [label for label in worse if label not in sure]
    disagree = (
        f"The metrics disagree about {fmt.some(mixed)}: worse off by some of them and "
        "better off by others."
    )
    if clear:
        are = "is" if len(clear) == 1 else "are"
        groups = f"{len(clear)} of {len(findings[0].rows)} groups {are}"
        asides = [disagree] if mixed else []
        if hints:
            asides.append(f"Single metrics also point at {fmt.some(hints)}.")
        return f"{groups} {what} beyond chance: {fmt.some(clear)}.", " ".join(asides)
    if mixed:
        return disagree, ""
    if hints:
        clearly = f"No group is clearly {what}."
        return clearly, f"Single metrics point at {fmt.some(hints)}."
    nobody = "No group was found to be worse off."
    for f in findings:
        if lower := _labels([f.on("worse")]):
            return nobody, f"Some are {f.metric.sides['worse']}: {fmt.some(lower)}."
    if better := _labels(f.on("better") for f in looked_at):
        return nobody, f"Some are better off: {fmt.some(better)}."
    return "The data do not show a difference between the groups.", ""


def _by_topic(directed: Sequence[MetricFinding]) -> tuple[str, str]:
    """Say where mistakes and outcomes at equal scores are worse for other groups.

    The first text replaces a headline, if it is not empty; the second is added. Unlike
    base rates can explain why only the mistakes are worse.
    """
    by_topic = {
        topic: [f for f in directed if f.metric.topic == topic]
        for topic in (MISTAKES, EQUAL_SCORES)
    }
    number = len(directed)
    mistakes, equal_scores = (
        _labels(f.surely_on("worse", number) for f in of_topic)
        for of_topic in by_topic.values()
    )
    if mistakes and equal_scores and not {*mistakes} & {*equal_scores}:
        said = (
            f"By its mistakes the score treats {fmt.some(mistakes)} worse beyond "
            f"chance, and at equal scores {fmt.some(equal_scores)}."
        )
        return said, "The notes say why both can be so."
    hinted = _labels(f.on("worse") for f in by_topic[EQUAL_SCORES])
    alone = [label for label in mistakes if label not in hinted]
    if not alone or not by_topic[EQUAL_SCORES]:
        return "", ""
    return "", f"At equal scores the data do not show it for {fmt.some(alone)}."


def _neutral_headline(findings: Sequence[MetricFinding]) -> tuple[str, str]:
    """Return the headline where nobody has said which scores are good for a group."""
    sure = [
        f
        for f in findings
        if any(f.surely_on(side, len(findings)) for side in ("lower", "higher"))
    ]
    if not sure:
        return "The data show no clear difference between the groups.", ""
    names = ", ".join(f.metric.title for f in sure)
    number = f"{len(sure)} of {len(findings)} metrics"
    differ = f"The groups differ beyond chance in {number}: {names}."
    unknown = (
        "Who is worse off depends on which end of the score is good for people; "
        "favorable='high' or 'low' says it."
    )
    return differ, unknown


def _margin_headline(tested: Iterable[MetricFinding]) -> str:
    """Return which groups are within the margins of all metrics; empty without any.

    A group has to be within the margin of every metric that looks at outcomes, each
    tested without a correction (the intersection-union test); over groups the largest
    p-values are corrected by Holm's method.
    """
    with_margin = [f for f in tested if f.margin is not None]
    looked_at = [f for f in with_margin if f.metric.merit] or with_margin
    if not looked_at or len(looked_at[0].rows) == 1:
        return ""
    by_all = "by every metric of outcomes" if len(looked_at) > 1 else "by its metric"
    if all(f.all_within for f in looked_at):
        return f"Every group is shown to be within the margin {by_all}."
    groups = [row.group for row in looked_at[0].rows]
    pvalues = np.zeros(len(groups))
    for f in looked_at:
        by_group = {row.group: row.pvalue_margin for row in f.rows}
        pvalues = np.maximum(pvalues, [by_group.get(g, np.nan) for g in groups])
    alpha = 1 - looked_at[0].confidence_level
    corrected = correct(pvalues, "holm")
    labels = [fmt.label(g) for g, p in zip(groups, corrected, strict=True) if p < alpha]
    if not labels:
        return f"No group is shown to be within the margin {by_all}."
    return (
        f"{len(labels)} of {len(groups)} groups "
        f"{'is' if len(labels) == 1 else 'are'} shown to be within the margin "
        f"{by_all}: {fmt.some(labels)}."
    )


def conflicts(findings: Iterable[MetricFinding]) -> list[str]:
    """Return a note on findings that are known to conflict, if some do."""
    worse: dict[str, set[Hashable]] = {}
    for f in findings:
        if f.directed and f.metric.merit:
            rows = worse.setdefault(f.metric.topic, set())
            rows |= {row.group for row in f.on("worse")}
    if not {MISTAKES, EQUAL_SCORES} <= worse.keys():
        return []
    return (
        []
        if worse[MISTAKES] <= worse[EQUAL_SCORES]
        else [table()["texts"]["audit"]["conflict"]]
    )


def _labels(by_metric: Iterable[Iterable[GroupFinding]]) -> list[str]:
    """Return the labels of groups, each group once."""
    labels = {row.group: row.label for rows in by_metric for row in rows}
    return list(labels.values())
