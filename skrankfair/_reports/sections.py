"""Sections of a report after its metrics: words of `metrics.toml`, and numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, product
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
from .catalog import not_named, note, table
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
    answer: str = "",
    by: str = "",
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
    answer : str
        What the answers of the report say of it.
    by : str
        Name of the grouping that it is about.
    **values : dict
        What the words leave open, such as ``p``.
    """
    words = table()["sections"][name]
    test = [] if shown is None else [words["shown" if shown else "not_shown"]]
    said, cells = (*paragraphs, *test, words["reading"]), (*words["header"], *header)
    return ReportSection(
        words["title"].format(by=by, **values),
        tuple(text.format(by=by, **values) for text in said),
        tuple(cell.format(by=by, **values) for cell in cells),
        tuple(map(tuple, rows)),
        answer=answer,
    )


def further_sections(
    rows: AuditRows, options: AuditOptions
) -> tuple[list[ReportSection], list[str]]:
    """Return the sections for a task, and notes on those that are left out.

    There are none where metrics are named, and those of a ranking are for "all".
    """
    sections, notes = list[ReportSection](), list[str]()
    of_task = _SECTIONS.get(str(options.task), {})
    of_places = of_task is _PLACES
    if not not_named(options.metrics) or (of_places and not options.metrics):
        return sections, notes
    if of_places and rows.are_of_models:
        return sections, [note("no_places")]
    several = {} if of_places else rows.groupings
    named = {f", by {by}": rows.of_groups(labels) for by, labels in several.items()}
    for (name, contents), (by, part) in product(
        of_task.items(), (named or {"": rows}).items()
    ):
        if contents in _AT_THRESHOLD and options.threshold is None:
            continue
        with collected_warnings():
            try:
                if of_places and len(rows.groups) > MANY_GROUPS:
                    most = note(
                        "most_groups", most=MANY_GROUPS, number=len(rows.groups)
                    )
                    raise ValueError(most)
                cells, words = contents(part, options)
                sections.append(made_section(name, cells, by=by, **words))
            except ValueError as error:  # such as of groups that overlap
                what = table()["sections"][name]["name"]
                notes.append(f"{what}{by} is left out: {error}")
    return sections, notes


#: The rows of a table, and what `made_section` asks for beside them.
_Contents: TypeAlias = tuple[Sequence[Sequence[str]], dict[str, Any]]


def _tested(pvalue: float, options: AuditOptions, **words: str) -> dict[str, Any]:
    """Return what a section says of a test."""
    shown = pvalue < 1 - options.confidence_level
    return {"shown": shown, "p": fmt.pvalue(pvalue), **words}


def _parity(rows: AuditRows, options: AuditOptions) -> _Contents:
    between = "rest" if len(rows.groups) > _MOST_IN_PAIRS else None
    level = options.confidence_level
    test = predictive_parity_test(
        **rows.columns, contrasts=between, confidence_level=level
    )
    if test.order is not None:
        p = fmt.pvalue(test.pvalue)
        raise ValueError(note("no_overlap", p=p if p[0] == "<" else f"= {p}"))
    cells = []
    for pair, known, difference, pvalues in zip(
        test.contrasts, test.compared, test.difference, test.pvalues, strict=True
    ):
        found = "–", "–", "too little data"
        if known.any():
            scores, gaps = test.grid[known], difference[known]
            scope = f"{fmt.number(scores.min())} to {fmt.number(scores.max())}"
            largest = fmt.number(gaps[np.argmax(np.abs(gaps))])
            found = scope, largest, fmt.pvalue(np.nanmin(pvalues[known]))
        cells.append((" - ".join(map(fmt.label, pair)), *found))
    words = "between each group and the rest" if between else "between groups"
    return cells, _tested(test.pvalue, options, between=words)


def _marginal(rows: AuditRows, options: AuditOptions) -> _Contents:
    at: Any = options.threshold
    level = options.confidence_level
    test = marginal_outcome_test(**rows.columns, threshold=at, confidence_level=level)
    cells = _by_group(test.groups, test.outcomes, test.outcome_interval())
    threshold = fmt.number(test.threshold)
    return cells, _tested(test.pvalue, options, threshold=threshold)


def _shift(rows: AuditRows, options: AuditOptions) -> _Contents:
    threshold: Any = options.threshold
    result = positive_rate_shift(**rows.columns, threshold=threshold)
    ends = result.ends(t_quantile(options.confidence_level, result.df))
    cells = _by_group(result.groups, result.estimate, ends)
    return cells, {"threshold": fmt.number(threshold)}


def _curve(rows: AuditRows, options: AuditOptions) -> _Contents:
    curve = matched_pair_curve(**rows.columns, qid=rows.qid)
    last = curve.epsilon.size - 1
    shown = np.unique(np.linspace(0, last, _SHOWN).round().astype(int))
    low, high = map(np.asarray, curve.confidence_interval(options.confidence_level))
    columns = []
    for e in shown:
        numbers = zip(curve.estimate[e], low[e], high[e], strict=True)
        columns.append(
            [f"{fmt.number(v, 3)} {fmt.interval(a, b, 3)}" for v, a, b in numbers]
        )
    cells = list(zip(map(fmt.label, curve.groups), *columns, strict=True))
    return cells, {"header": [f"up to {curve.epsilon[e]:.3g}" for e in shown]}


def _inequality(rows: AuditRows, options: AuditOptions) -> _Contents:
    level = options.confidence_level
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
    return cells, _tested(test.pvalue, options, critical=critical)


def _monotone(rows: AuditRows, options: AuditOptions) -> _Contents:
    groups, n_queries = rows.groups, rows.data.ranking.n_queries
    if len(groups) == 2 and not rows.data.groups.overlapping:
        groups = groups[:1]  # the test of the other is the same
    if len(groups) * _RESAMPLES * n_queries > _MOST_DRAWN:
        raise ValueError(note("long", number=n_queries))
    given = {**rows.columns, "qid": rows.qid, "n_resamples": _RESAMPLES}
    del given["y_true"]
    level = options.confidence_level
    given |= {"random_state": 0, "confidence_level": level}
    tests = [monotonicity_test(group=group, **given) for group in groups]
    pvalues = corrected_pvalues(np.array([test.pvalue for test in tests]))
    labels = [fmt.label(group) for group in groups]
    ends = ([fmt.number(test.share[end]) for test in tests] for end in (0, -1))
    p = [fmt.pvalue(test.pvalue) for test in tests]
    cells = list(zip(labels, *ends, p, map(fmt.pvalue, pvalues), strict=True))
    named = list(compress(labels, pvalues < 1 - level))
    return cells, {"shown": bool(named), "groups": fmt.some(named)}


def _by_group(
    groups: Sequence[Hashable], values: Array, ends: Sequence[Any]
) -> list[tuple[str, ...]]:
    """Return the rows of a table: groups with a value and its interval."""
    numbers = map(fmt.number, values), map(fmt.interval, *map(np.asarray, ends))
    return list(zip(map(fmt.label, groups), *numbers, strict=True))


_PLACES = {"curve": _curve, "inequality": _inequality, "monotonicity": _monotone}
_AT_THRESHOLD = (_marginal, _shift)
_SECTIONS = {
    "ranking": _PLACES,
    "risk": {"parity": _parity, "marginal": _marginal, "shift": _shift},
}
