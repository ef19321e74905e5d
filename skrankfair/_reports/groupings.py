"""Several groupings in one audit, references, and gaps within levels of a column."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.estimates import corrected_pvalues
from .._estimates.scales import PlainScale, t_quantile
from .._estimates.sums import MOST_COVARIANCES
from .._inputs.groups import Codes, as_groups, encode, frame_columns, sort_labels
from .._inputs.validation import (
    Array,
    check_choice,
    check_lengths,
    collected_warnings,
    to_numpy,
)
from .catalog import note
from .findings import DIFFERENCE, GroupFinding, MetricFinding, is_rest
from .sections import ReportSection, made_section

if TYPE_CHECKING:
    import pandas as pd

    from .audit import AuditRows
    from .catalog import AuditMetric

#: What becomes of several columns of labels.
CROSS = (True, False, "both")
_WHOLE = "within all levels"


def crossed_columns(groups: Any) -> dict[str, Array]:
    """Return the columns of labels that are crossed, by name; none if nothing is."""
    frame = frame_columns(groups)
    if frame is None or len(frame[0]) < 2:
        return {}
    arrays = [to_numpy(column, "sensitive_features") for column in frame[0]]
    if all(array.dtype.kind == "b" for array in arrays):
        return {}  # groups that may overlap
    return {fmt.label(name): a for name, a in zip(frame[1], arrays, strict=True)}


def name_of(groups: Any) -> str:
    """Return the name of the columns that make the groups; empty without one."""
    crossed = " × ".join(crossed_columns(groups))
    name = crossed or getattr(groups, "name", None)
    return "" if name is None else fmt.label(name)


def groupings_of(groups: Any, cross: bool | str) -> dict[str, Any]:
    """Return the groupings of an audit that has several, by name; else none.

    Raises
    ------
    ValueError
        For an unknown `cross`, or one that has nothing to cross.
    """
    check_choice(cross, "cross", CROSS)
    columns = crossed_columns(groups)
    if cross is True:
        return {}
    if not columns:
        raise ValueError(
            "cross must be True unless sensitive_features is a frame of several "
            f"columns of labels; got {cross!r}."
        )
    return {**columns, **({" × ".join(columns): groups} if cross else {})}


def members_of(groupings: Mapping[str, Any]) -> pd.DataFrame:
    """Return which rows are of which group of several groupings, a column per group."""
    import pandas as pd

    members = {}
    for name, labels in groupings.items():
        groups = as_groups(labels)
        for i, label in enumerate(groups.labels):
            members[_name(name, label)] = groups.mask(i)
    return pd.DataFrame(members)


def _name(grouping: str, label: Hashable) -> str:
    """Return the name of a group among those of other groupings."""
    said = fmt.label(label)
    return said if isinstance(label, tuple) else f"{grouping}={said}"


def references_of(
    reference: Any,
    groups: Iterable[Hashable],
    groupings: Mapping[str, Any] | None = None,
) -> dict[Hashable, Hashable]:
    """Return the group with which each group is compared instead of with the rest.

    Raises
    ------
    ValueError
        For a reference that is none of the groups.
    """
    if reference is None:
        return {}
    groups, groupings = list(groups), groupings or {}
    of = {} if groupings else dict.fromkeys(groups, reference)
    given = dict(reference) if isinstance(reference, Mapping) else {}
    for name, labels in groupings.items():
        crossed = frame_columns(labels)
        names = [name] if crossed is None else list(map(fmt.label, crossed[1]))
        if given.keys() >= set(names):
            values = tuple(given[column] for column in names)
            label = values[0] if crossed is None else values
            of |= {_name(name, g): _name(name, label) for g in as_groups(labels).labels}
    if not of or not {*of.values()} <= {*groups} or given.keys() - groupings.keys():
        raise ValueError(
            f"reference must be one of the groups {groups}, or of several groupings "
            f"one by column, such as {{'race': 'white'}}; got {reference!r}."
        )
    return of


def within_section(
    rows: AuditRows,
    findings: Iterable[MetricFinding],
    chosen: Iterable[AuditMetric],
) -> tuple[ReportSection, list[str]]:
    """Return the gaps within levels of another column, and notes on what has none.

    Those of a level compare a group with others of the level. The gap within all levels
    is their mean with the weights of Mantel and Haenszel.
    """
    held = encode(rows.given["within"], "within")
    check_lengths(within=held.codes.size, y_score=rows.data.n_input)
    if 2 * held.size > MOST_COVARIANCES:
        raise ValueError(
            f"within must have at most {MOST_COVARIANCES // 2} levels; got "
            f"{held.size:,}. Put values together into fewer."
        )
    named = getattr(rows.given["within"], "name", None)
    by = "the levels" if named is None else fmt.label(named)
    compared = [f for f in findings if f.tested and f.metric.by_group]
    tested = [f for f in compared if f.metric.per != "query"]
    without = [f.metric.title for f in compared if f not in tested]
    measured = {metric.name: metric for metric in chosen}
    cells, remaining, known = list[tuple[str, ...]](), list[str](), False
    for finding in tested:
        metric, apart = finding.metric, list[GroupFinding]()
        for row in finding.ordered:
            same = any(is_rest(row, other) for other in apart)
            if not same and row.group not in finding.references.values():
                apart.append(row)
        with collected_warnings():
            of_groups = [
                _gaps(rows, held, finding, measured[metric.name], row) for row in apart
            ]
        # Of all levels over the groups, and of single levels over all of them.
        pooled = corrected_pvalues(np.array([gaps[0].pvalue for gaps in of_groups]))
        single = [gap.pvalue for gaps in of_groups for gap in gaps[1:]]
        of_levels = iter(corrected_pvalues(np.array(single)))
        for row, whole, gaps in zip(apart, pooled, of_groups, strict=True):
            said = ["", fmt.pvalue(whole)]
            said += [fmt.pvalue(next(of_levels)) for _ in gaps[1:]]
            for gap, p in zip(
                (replace(row, group="as it is"), *gaps), said, strict=True
            ):
                size = finding.says(gap.difference), finding.reach(gap) or "–"
                number = fmt.count(gap.support)
                cells.append((metric.short, row.label, gap.label, *size, number, p))
            known |= not np.isnan(whole)
            if whole < (1 - finding.confidence_level) / len(
                tested
            ):  # as in all answers
                size_of = f"{metric.title}, {finding.says(gaps[0].difference)}"
                remaining.append(f"{row.label} ({size_of})")
    words = {"by": by, "groups": fmt.some(remaining)}
    shown = bool(remaining) if known else None
    section = made_section("within", cells, shown=shown, **words)
    notes = [note("no_gap", title=title, by=by) for title in without]
    return replace(section, answer=section.paragraphs[0] if known else ""), notes


def _gaps(
    rows: AuditRows,
    held: Codes,
    finding: MetricFinding,
    metric: AuditMetric,
    row: GroupFinding,
) -> list[GroupFinding]:
    """Return the gap of a group within all levels, and that of each of them."""
    groups = as_groups(rows.columns["sensitive_features"])
    own = groups.mask(groups.labels.index(row.group))
    others = ~own
    if (reference := finding.references.get(row.group)) is not None:
        others = groups.mask(groups.labels.index(reference))
    # The cells of the group come first, and then those of the others.
    cell = np.where(own, 0, held.size) + held.codes
    result = rows.within(held, cell, own | others).measured(metric)
    place = {int(label): i for i, label in enumerate(np.array(result.groups))}
    labels = held.labels.tolist()
    levels = [
        level
        for level in map(labels.index, sort_labels(labels))
        if {level, held.size + level} <= place.keys()
    ]
    first, second = (
        np.array([place[at + level] for level in levels], dtype=int)
        for at in (0, held.size)
    )
    pairs = {
        result.groups[a]: result.groups[b] for a, b in zip(first, second, strict=True)
    }
    compared = replace(finding, result=result, references=pairs, recorded=None).rows
    gaps = [
        replace(compared[a], group=labels[k])
        for a, k in zip(first, levels, strict=True)
    ]
    weight, number = result.support[first], result.support[second]
    if finding.against_rest:
        weight = weight * number / np.maximum(weight + number, 1.0)
    share = np.where([np.isnan(gap.difference_low) for gap in gaps], 0.0, weight)
    share /= max(share.sum(), 1e-300)
    pooled = np.nansum(share * [gap.difference for gap in gaps])
    pooled = pooled if share.any() else np.nan
    tested = result if finding.against_rest else result.as_gap()
    cells = np.append(first, second)
    times = np.append(share, -share if finding.against_rest else 0.0 * share)
    # Of a combination, by Satterthwaite from the variances of its parts.
    covariance = np.nan_to_num(tested.covariance[np.ix_(cells, cells)])
    parts = times**2 * np.diag(covariance)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.array([parts.sum() ** 2 / np.nansum(parts**2 / tested.df[cells])])
    error = np.sqrt(np.maximum([times @ covariance @ times], 0.0))
    scale = PlainScale(np.array([pooled]), error)
    (low,), (high,) = scale.ends(t_quantile(finding.confidence_level, df), df)
    whole = replace(
        row,
        group=_WHOLE,
        **dict(zip(DIFFERENCE, (pooled, low, high), strict=True)),
        support=sum(gap.support for gap in gaps),
        n_effective=df[0] + 1,
        pvalue=scale.test(0.0, df)[1][0],
    )
    few = fmt.FEW_EFFECTIVE - 1e-9
    return [
        gap if gap.n_effective >= few else replace(gap, pvalue=np.nan)
        for gap in (whole, *gaps)
    ]
