"""Several groupings in one audit, references, and gaps within levels of a column."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.estimates import contrasts_of, corrected_pvalues
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
from .findings import GroupFinding, MetricFinding, is_rest
from .sections import ReportSection, made_section

if TYPE_CHECKING:
    import pandas as pd

    from ..metrics import GroupEstimates
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


class _Gap(NamedTuple):
    """A gap of one group, in one level or over all of them."""

    level: str
    value: float
    low: float
    high: float
    support: float
    pvalue: float


def within_section(
    rows: AuditRows,
    findings: Iterable[MetricFinding],
    measured: Mapping[str, AuditMetric],
    confidence_level: float,
) -> tuple[ReportSection, list[str]]:
    """Return the gaps within levels of another column, and notes on what has none.

    Those of a level compare a group with others of the level. The gap within all levels
    is their mean with the weights of Mantel and Haenszel.
    """
    held = encode(rows.given["within"], "within").dense()
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
    notes = [
        f"{f.metric.title} has no gap within {by}: it is of queries."
        for f in compared
        if f not in tested
    ]
    cells, remaining, known = list[tuple[str, ...]](), list[str](), False
    for finding in tested:
        metric, chosen = finding.metric, list[GroupFinding]()
        for row in finding.ordered:
            same = any(is_rest(row, other) for other in chosen)
            if not same and row.group not in finding.references.values():
                chosen.append(row)
        with collected_warnings():
            gaps = [
                _gaps(rows, held, finding, measured[metric.name], row, confidence_level)
                for row in chosen
            ]
        # Of all levels over the groups, and of single levels over all of them.
        pooled = iter(corrected_pvalues(np.array([gap[0].pvalue for gap in gaps])))
        single = [gap.pvalue for of_group in gaps for gap in of_group[1:]]
        of_levels = iter(corrected_pvalues(np.array(single)))
        for row, of_group in zip(chosen, gaps, strict=True):
            ends = row.difference_low, row.difference_high
            as_is = _Gap("as it is", row.difference, *ends, row.support, np.nan)
            pvalues = np.nan, next(pooled), *(next(of_levels) for _ in of_group[1:])
            for gap, p in zip((as_is, *of_group), pvalues, strict=True):
                reach = f"[{finding.signed(gap.low)}, {finding.signed(gap.high)}]"
                reach = "–" if np.isnan(gap.low) else reach
                p_said = "" if gap is as_is else fmt.pvalue(p)
                line = metric.short, row.label, gap.level, finding.says(gap.value)
                cells.append((*line, reach, fmt.count(gap.support), p_said))
            known |= not np.isnan(pvalues[1])
            if pvalues[1] < (1 - confidence_level) / len(tested):  # as in all answers
                remaining.append(
                    f"{row.label} ({metric.title}, {finding.says(of_group[0].value)})"
                )
    shown_any = bool(remaining) if known else None
    words = {"by": by, "groups": fmt.some(remaining)}
    section = made_section("within", cells, shown=shown_any, **words)
    return replace(section, answer=section.paragraphs[0] if known else ""), notes


def _gaps(
    rows: AuditRows,
    held: Codes,
    finding: MetricFinding,
    metric: AuditMetric,
    row: GroupFinding,
    level: float,
) -> list[_Gap]:
    """Return the gap of a group within all levels, and that of each of them."""
    groups = as_groups(rows.columns["sensitive_features"])
    own = groups.mask(groups.labels.index(row.group))
    others = ~own
    if (reference := finding.references.get(row.group)) is not None:
        others = groups.mask(groups.labels.index(reference))
    # The cells of the group come first, and then those of the others.
    cell = np.where(own, 0, held.size) + held.codes
    result = rows.within(held, cell, own | others).measured(metric)
    place = np.full(2 * held.size, -1)
    place[np.array(result.groups, dtype=int)] = np.arange(len(result.groups))
    labels = held.all_labels.tolist()
    order = [labels.index(label) for label in sort_labels(labels)]
    levels = [k for k in order if min(place[k], place[held.size + k]) >= 0]
    first, second = place.reshape(2, held.size)[:, levels]
    weight = support = result.support[first]
    if finding.against_rest:
        tested, fair = result, 0.0
        gap, at = contrasts_of(result, first, second, "difference"), slice(None)
        number = result.support[second]
        effective = np.fmin(result.n_effective[first], result.n_effective[second])
        weight = support * number / np.maximum(support + number, 1.0)
    else:
        tested, at = result.as_gap(), first
        gap, fair = tested.as_estimates, tested.fair_value or 0.0
        effective = tested.n_effective[first]
    numbers = [gap.scale.estimate, *gap.ends(t_quantile(level, gap.df)), gap.test[1]]
    value, low, high, pvalue = np.array(numbers)[:, at]
    weight = np.where(np.isnan(gap.scale.standard_error[at]), 0.0, weight)
    share = weight / max(weight.sum(), 1e-300)
    cells = np.concatenate([first, second])
    times = np.concatenate([share, -share if finding.against_rest else 0.0 * share])
    pooled = np.nansum(share * (value - fair)) if weight.any() else np.nan
    whole, df = _combined(tested, cells, times, pooled, level)
    enough = np.append(df + 1, effective) >= fmt.FEW_EFFECTIVE - 1e-9
    of_levels = value - fair, low - fair, high - fair, pvalue
    value, low, high, pvalue = (
        np.append(*both) for both in zip(whole, of_levels, strict=True)
    )
    names = [_WHOLE, *(fmt.label(labels[k]) for k in levels)]
    pvalue, counts = np.where(enough, pvalue, np.nan), np.append(support.sum(), support)
    columns = names, value, low, high, counts, pvalue
    return [_Gap(*gap) for gap in zip(*columns, strict=True)]


def _combined(
    result: GroupEstimates, cells: Array, times: Array, estimate: float, level: float
) -> tuple[tuple[Array, Array, Array, Array], Array]:
    """Return a combination of groups with its interval, p-value and degrees of freedom.

    These are Satterthwaite's, of the variances of the groups.
    """
    covariance = np.nan_to_num(result.covariance[np.ix_(cells, cells)])
    parts = times**2 * np.diag(covariance)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.array([parts.sum() ** 2 / np.nansum(parts**2 / result.df[cells])])
    error = np.sqrt(np.maximum([times @ covariance @ times], 0.0))
    scale = PlainScale(np.array([estimate]), error)
    ends = scale.ends(t_quantile(level, df), df)
    return (scale.estimate, *ends, scale.test(0.0, df)[1]), df
