"""What an audit shows of groups that are close enough to fair.

"No difference is shown" is no proof that there is none. With a margin the audit has a
third verdict: a group is shown to be within it where two one-sided tests reject, as in
`GroupEstimates.equivalence_test`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import correct
from .._estimates.equivalence import margin_bounds
from .audit_metric import AuditMetric

if TYPE_CHECKING:
    from .findings import GroupFinding, MetricFinding

#: As `audit` takes it: one margin for all metrics, or one for each of some.
Margin = float | Mapping[str, float] | None


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
    found = dict(margin) if named else dict.fromkeys(tested, margin)
    for name, size in found.items():
        if name not in tested:
            raise ValueError(
                f"margin must be of metrics of this audit ({', '.join(tested)}); got "
                f"{name!r}."
            )
        margin_bounds(size, "difference")
        if np.ndim(size):
            raise ValueError(f"margin must be one number per metric; got {size!r}.")
    return {name: float(size) for name, size in found.items()}


def kind_of(row: GroupFinding) -> str:
    """Return the side of a group, or "within", or "" if nothing is shown."""
    return row.side or ("within" if row.within else "")


def verdict_of(row: GroupFinding) -> str:
    """Return the verdict on a group in a few words."""
    if row.missing:
        return ""
    parts = [row.side_words.get(row.side, row.side)] if row.side else []
    if row.within:
        parts.append("within the margin")
    return ", ".join(parts) or "cannot tell"


def said_of_margin(finding: MetricFinding) -> str:
    """Return what is shown of the margin by one metric; empty without a margin."""
    if finding.margin is None:
        return ""
    reach = finding.reach
    if finding.all_within:
        return f"Every group is shown to be {reach}."
    within = [row.label for row in finding.rows if row.within]
    unclear = [row.label for row in finding.rows if verdict_of(row) == "cannot tell"]
    parts = [f"Shown to be {reach}: {fmt.some(within)}."] if within else []
    if unclear:
        parts.append(f"The data cannot tell of {fmt.some(unclear)}.")
    return " ".join(parts) or f"No group is shown to be {reach}."


def headline_of_margin(findings: Iterable[MetricFinding]) -> str:
    """Return which groups are within the margins of all metrics; empty without any.

    A group has to be within the margin of every metric that looks at outcomes, each
    tested without a correction (the intersection-union test); over groups the largest
    p-values are corrected by Holm's method.
    """
    tested = [f for f in findings if f.margin is not None and f.tested]
    looked_at = [f for f in tested if f.metric.merit] or tested
    if not looked_at or len(looked_at[0].rows) == 1:
        return ""
    by_all = "by every metric of outcomes" if len(looked_at) > 1 else "by its metric"
    if all(f.all_within for f in looked_at):
        return f"Every group is shown to be within the margin {by_all}."
    groups = [row.group for row in looked_at[0].rows]
    pvalues = np.zeros(len(groups))
    for f in looked_at:
        by_group = {row.group: row.pvalue_margin for row in f.rows}
        found = [by_group.get(group, np.nan) for group in groups]
        pvalues = np.maximum(pvalues, found)
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
