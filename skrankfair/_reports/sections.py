"""Sections of a report after its metrics: words of `metrics.toml`, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from .forest import ForestPlot

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
    wanted: dict[str, Callable[[AuditRows, AuditOptions], ReportSection]] = {}
    sections, notes = [], []
    if options.task == "ranking" and options.metrics is not None:
        if rows.model is not None and not_named(options.metrics):
            said = "What places say beside the metrics is left out: it needs qid."
            return [], [said]
        wanted = {"curve": _curve, "inequality": _inequality, "monotonicity": _monotone}
    elif options.task == "risk":
        wanted = {"parity": _parity}
        if options.threshold is not None:
            wanted |= {"marginal": _marginal, "shift": _shift}
    for name, made in wanted.items() if not_named(options.metrics) else ():
        with collected_warnings():
            try:
                if options.task == "ranking" and len(rows.groups) > MANY_GROUPS:
                    raise ValueError(
                        f"the report has it for at most {MANY_GROUPS} groups; got "
                        f"{len(rows.groups):,}."
                    )
                sections.append(made(rows, options))
            except ValueError as error:  # such as of groups that overlap
                what = table()["sections"][name]["name"]
                notes.append(f"{what} is left out: {error}")
    return sections, notes


def _parity(rows: AuditRows, options: AuditOptions) -> ReportSection:
    against_rest = len(rows.groups) > _MOST_IN_PAIRS
    test = predictive_parity_test(
        **rows.columns,
        contrasts="rest" if against_rest else None,
        confidence_level=options.confidence_level,
    )
    cells = []
    for pair, compared, difference, pvalues in zip(
        test.contrasts, test.compared, test.difference, test.pvalues, strict=True
    ):
        a, b = map(fmt.label, pair)
        if not compared.any():
            cells.append((f"{a} - {b}", "–", "–", "too little data"))
            continue
        largest = difference[compared][np.argmax(np.abs(difference[compared]))]
        scores = test.grid[compared]
        scope = f"{fmt.number(scores.min())} to {fmt.number(scores.max())}"
        smallest = fmt.pvalue(np.nanmin(pvalues[compared]))
        cells.append((f"{a} - {b}", scope, fmt.number(largest), smallest))
    return made_section(
        "parity",
        cells,
        shown=test.pvalue < 1 - options.confidence_level,
        p=fmt.pvalue(test.pvalue),
        between="between each group and the rest" if against_rest else "between groups",
    )


def _marginal(rows: AuditRows, options: AuditOptions) -> ReportSection:
    level: Any = options.threshold
    test = marginal_outcome_test(
        **rows.columns, threshold=level, confidence_level=options.confidence_level
    )
    return made_section(
        "marginal",
        _by_group(test.groups, test.outcomes, test.outcome_interval()),
        shown=test.pvalue < 1 - options.confidence_level,
        p=fmt.pvalue(test.pvalue),
        threshold=fmt.number(test.threshold),
    )


def _shift(rows: AuditRows, options: AuditOptions) -> ReportSection:
    level: Any = options.threshold
    result = positive_rate_shift(**rows.columns, threshold=level)
    ends = result.ends(t_quantile(options.confidence_level, result.df))
    cells = _by_group(result.groups, result.estimate, ends)
    return made_section("shift", cells, threshold=fmt.number(level))


def _curve(rows: AuditRows, options: AuditOptions) -> ReportSection:
    curve = matched_pair_curve(**rows.columns, qid=rows.qid)
    last = curve.epsilon.size - 1
    shown = np.unique(np.linspace(0, last, _SHOWN).round().astype(int))
    low, high = map(np.asarray, curve.confidence_interval(options.confidence_level))
    cells = []
    for g, group in enumerate(curve.groups):
        values = [
            f"{fmt.number(curve.estimate[e, g], 3)} "
            f"{fmt.interval(low[e, g], high[e, g], 3)}"
            for e in shown
        ]
        cells.append((fmt.label(group), *values))
    header = [f"up to {curve.epsilon[e]:.3g}" for e in shown]
    return made_section("curve", cells, header=header)


def _inequality(rows: AuditRows, options: AuditOptions) -> ReportSection:
    test = outcome_inequality_test(
        **rows.columns,
        qid=rows.qid,
        confidence_level=options.confidence_level,
        random_state=0,
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
    return made_section(
        "inequality",
        cells,
        shown=test.pvalue < 1 - options.confidence_level,
        p=fmt.pvalue(test.pvalue),
        critical=fmt.number(test.critical_value, 3),
    )


def _monotone(rows: AuditRows, options: AuditOptions) -> ReportSection:
    groups, n_queries = rows.groups, rows.data.ranking.n_queries
    if len(groups) == 2 and not rows.data.groups.overlapping:
        groups = groups[:1]  # the test of the other is the same
    if len(groups) * _RESAMPLES * n_queries > _MOST_DRAWN:
        raise ValueError(
            f"it would take long for {n_queries:,} queries; "
            "skrankfair.inference.monotonicity_test takes the time."
        )
    who = {n: v for n, v in rows.columns.items() if n != "y_true"}
    tests = [
        monotonicity_test(
            **who,
            qid=rows.qid,
            group=group,
            n_resamples=_RESAMPLES,
            confidence_level=options.confidence_level,
            random_state=0,
        )
        for group in groups
    ]
    pvalues = corrected_pvalues(np.array([test.pvalue for test in tests]))
    rejected = [
        fmt.label(test.group)
        for test, p in zip(tests, pvalues, strict=True)
        if p < 1 - options.confidence_level
    ]
    cells = [
        (
            fmt.label(test.group),
            *(fmt.number(test.share[end]) for end in (0, -1)),
            *map(fmt.pvalue, (test.pvalue, corrected)),
        )
        for test, corrected in zip(tests, pvalues, strict=True)
    ]
    return made_section(
        "monotonicity", cells, shown=bool(rejected), groups=fmt.some(rejected)
    )


def _by_group(
    groups: Sequence[Hashable], values: Array, ends: Sequence[Any]
) -> list[tuple[str, str, str]]:
    """Return the rows of a table: groups with a value and its interval."""
    low, high = map(np.asarray, ends)
    return [
        (fmt.label(group), fmt.number(value), fmt.interval(*interval))
        for group, value, *interval in zip(groups, values, low, high, strict=True)
    ]
