"""Sections of a report after its metrics: words of `metrics.toml`, and numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.estimates import corrected_pvalues
from .._estimates.scales import t_quantile
from .._estimates.storage import stored
from .._inputs.validation import Array, collected_warnings
from ..inference import (
    marginal_outcome_test,
    monotonicity_test,
    outcome_inequality_test,
    predictive_parity_test,
)
from ..metrics import matched_pair_curve, positive_rate_shift
from .catalog import not_named, table
from .findings import MANY_GROUPS
from .html import ForestPlot

if TYPE_CHECKING:
    from .audit import AuditOptions, AuditRows

#: More groups than this are each compared with the rest and not in pairs: of 50 groups
#: and 5,000 rows the 1,225 pairs take 25 s, the 50 comparisons 3 s.
_MOST_IN_PAIRS = 32
_SHOWN = 5  # thresholds of a curve, or pairs of places, in their tables
_RESAMPLES = 999
_MOST_DRAWN = 20_000_000  # clusters that the tests of monotonicity draw, in all


@stored("ReportSection")
@dataclass(frozen=True)
class ReportSection:
    """One more section of a report: text, a plot and a table."""

    title: str
    paragraphs: tuple[str, ...]
    header: tuple[str, ...]  # of the table; the first column names the rows
    rows: tuple[tuple[str, ...], ...]
    plot: ForestPlot | None = None
    answer: str = ""  # what the answers of the report say of it


def made_section(
    name: str,
    rows: Iterable[Sequence[str]],
    *,
    shown: bool | None = None,
    paragraphs: Iterable[str] = (),
    header: Iterable[str] = (),
    **values: Any,
) -> ReportSection:
    """Return the section of that name in `metrics.toml`, with these rows.

    Parameters
    ----------
    name : str
    rows : iterable of sequences of str
    shown : bool or None
        Whether its test shows something; None where there is no test.
    paragraphs : iterable of str
        What is said before the words of the table.
    header : iterable of str
        Columns beyond those that the table names.
    **values : dict
        What the words leave open, such as ``p``.
    """
    words = table()["sections"][name]
    said = [*paragraphs]
    if shown is not None:
        said.append(words["shown" if shown else "not_shown"])
    said.append(words["reading"])
    return ReportSection(
        words["title"].format(**values),
        tuple(text.format(**values) for text in said),
        tuple(cell.format(**values) for cell in (*words["header"], *header)),
        tuple(map(tuple, rows)),
    )


def further_sections(
    rows: AuditRows, options: AuditOptions
) -> tuple[list[ReportSection], list[str]]:
    """Return the sections for a task, and notes on those that are left out.

    There are none where metrics are named, and those of a ranking are for "all".
    """
    sections: list[ReportSection] = []
    notes: list[str] = []
    of_task = _SECTIONS.get(str(options.task), {})
    if not not_named(options.metrics) or (of_task is _PLACES and not options.metrics):
        return sections, notes
    if of_task is _PLACES and rows.are_of_models:
        return [], ["What places say beside the metrics is left out: it needs qid."]
    level = options.confidence_level
    several = rows.groupings if of_task is not _PLACES else {}
    named = [(f", by {by}", rows.of_groups(labels)) for by, labels in several.items()]
    parts = [
        (*item, *part) for item in of_task.items() for part in named or [("", rows)]
    ]
    for name, contents, by, of_part in parts:
        if contents in _AT_THRESHOLD and options.threshold is None:
            continue
        with collected_warnings():
            try:
                if of_task is _PLACES and len(rows.groups) > MANY_GROUPS:
                    raise ValueError(
                        f"the report has it for at most {MANY_GROUPS} groups; got "
                        f"{len(rows.groups):,}."
                    )
                cells, words = contents(of_part, options.threshold, level)
                section = made_section(name, cells, **words)
                sections.append(replace(section, title=section.title + by))
            except ValueError as error:  # such as of groups that overlap
                what = table()["sections"][name]["name"]
                notes.append(f"{what}{by} is left out: {error}")
    return sections, notes


#: The rows of a table, and what `made_section` asks for beside them.
_Contents: TypeAlias = tuple[Sequence[Sequence[str]], dict[str, Any]]


def _tested(pvalue: float, level: float, **words: str) -> dict[str, Any]:
    """Return what a section says of a test."""
    return {"shown": pvalue < 1 - level, "p": fmt.pvalue(pvalue), **words}


def _parity(rows: AuditRows, threshold: Any, level: float) -> _Contents:
    against_rest = len(rows.groups) > _MOST_IN_PAIRS
    test = predictive_parity_test(
        **rows.columns,
        contrasts="rest" if against_rest else None,
        confidence_level=level,
    )
    if test.order is not None:
        raise ValueError(
            "no two groups have scores in common; the test of their order "
            f"(score_order_test) has p = {fmt.pvalue(test.pvalue)}.".replace("= <", "<")
        )
    cells = []
    for pair, compared, difference, pvalues in zip(
        test.contrasts, test.compared, test.difference, test.pvalues, strict=True
    ):
        name = " - ".join(map(fmt.label, pair))
        if not compared.any():
            cells.append((name, "–", "–", "too little data"))
            continue
        largest = difference[compared][np.argmax(np.abs(difference[compared]))]
        scores = test.grid[compared]
        scope = f"{fmt.number(scores.min())} to {fmt.number(scores.max())}"
        smallest = fmt.pvalue(np.nanmin(pvalues[compared]))
        cells.append((name, scope, fmt.number(largest), smallest))
    between = "between each group and the rest" if against_rest else "between groups"
    return cells, _tested(test.pvalue, level, between=between)


def _marginal(rows: AuditRows, threshold: Any, level: float) -> _Contents:
    test = marginal_outcome_test(
        **rows.columns, threshold=threshold, confidence_level=level
    )
    cells = _by_group(test.groups, test.outcomes, test.outcome_interval())
    at = fmt.number(test.threshold)
    return cells, _tested(test.pvalue, level, threshold=at)


def _shift(rows: AuditRows, threshold: Any, level: float) -> _Contents:
    result = positive_rate_shift(**rows.columns, threshold=threshold)
    ends = result.ends(t_quantile(level, result.df))
    cells = _by_group(result.groups, result.estimate, ends)
    return cells, {"threshold": fmt.number(threshold)}


def _curve(rows: AuditRows, threshold: Any, level: float) -> _Contents:
    curve = matched_pair_curve(**rows.columns, qid=rows.qid)
    last = curve.epsilon.size - 1
    shown = np.unique(np.linspace(0, last, _SHOWN).round().astype(int))
    low, high = map(np.asarray, curve.confidence_interval(level))
    cells = []
    for g, group in enumerate(curve.groups):
        values = [
            f"{fmt.number(curve.estimate[e, g], 3)} "
            f"{fmt.interval(low[e, g], high[e, g], 3)}"
            for e in shown
        ]
        cells.append((fmt.label(group), *values))
    return cells, {"header": [f"up to {curve.epsilon[e]:.3g}" for e in shown]}


def _inequality(rows: AuditRows, threshold: Any, level: float) -> _Contents:
    test = outcome_inequality_test(
        **rows.columns, qid=rows.qid, confidence_level=level, random_state=0
    )
    order = np.argsort(np.where(np.isnan(test.violation), np.inf, -test.violation))
    cells = []
    for i in order[:_SHOWN]:
        above, below = map(fmt.label, test.groups[i])
        j, k = test.positions[i]
        numbers = fmt.number(test.estimate[i]), fmt.number(test.violation[i] + 0.0, 3)
        cells.append(
            (f"{above} at {j}, {below} at {k}", fmt.count(test.support[i]), *numbers)
        )
    critical = fmt.number(test.critical_value, 3)
    return cells, _tested(test.pvalue, level, critical=critical)


def _monotone(rows: AuditRows, threshold: Any, level: float) -> _Contents:
    groups, n_queries = rows.groups, rows.data.ranking.n_queries
    if len(groups) == 2 and not rows.data.groups.overlapping:
        groups = groups[:1]  # the test of the other is the same
    if len(groups) * _RESAMPLES * n_queries > _MOST_DRAWN:
        raise ValueError(
            f"it would take long for {n_queries:,} queries; "
            "skrankfair.inference.monotonicity_test takes the time."
        )
    who = {n: v for n, v in rows.columns.items() if n != "y_true"} | {"qid": rows.qid}
    options: dict[str, Any] = {"n_resamples": _RESAMPLES, "random_state": 0}
    tests = [
        monotonicity_test(**who, group=group, confidence_level=level, **options)
        for group in groups
    ]
    pvalues = corrected_pvalues(np.array([test.pvalue for test in tests]))
    labels = [fmt.label(group) for group in groups]
    cells = [
        (
            label,
            *(fmt.number(test.share[end]) for end in (0, -1)),
            *map(fmt.pvalue, (test.pvalue, corrected)),
        )
        for label, test, corrected in zip(labels, tests, pvalues, strict=True)
    ]
    named = [label for label, p in zip(labels, pvalues, strict=True) if p < 1 - level]
    return cells, {"shown": bool(named), "groups": fmt.some(named)}


def _by_group(
    groups: Sequence[Hashable], values: Array, ends: Sequence[Any]
) -> list[tuple[str, ...]]:
    """Return the rows of a table: groups with a value and its interval."""
    low, high = map(np.asarray, ends)
    return [
        (fmt.label(group), fmt.number(value), fmt.interval(*interval))
        for group, value, *interval in zip(groups, values, low, high, strict=True)
    ]


_PLACES = {"curve": _curve, "inequality": _inequality, "monotonicity": _monotone}
_AT_THRESHOLD = (_marginal, _shift)
_SECTIONS = {
    "ranking": _PLACES,
    "risk": {"parity": _parity, "marginal": _marginal, "shift": _shift},
}
