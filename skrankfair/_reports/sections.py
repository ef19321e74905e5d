"""Sections of a report after its metrics: words of `metrics.toml`, and numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates.estimates import corrected_pvalues, correlation_in
from .._estimates.scales import DifferenceScale, PlainScale, ShareScale, t_quantile
from .._estimates.storage import stored
from .._estimates.sums import MOST_COVARIANCES
from .._inputs.columns import LABEL
from .._inputs.score_rows import at_least
from .._inputs.validation import Array, collected_warnings
from ..inference import (
    marginal_outcome_test,
    monotonicity_test,
    outcome_inequality_test,
    predictive_parity_test,
)
from ..metrics import (
    GroupEstimates,
    matched_pair_curve,
    positive_rate_shift,
    selection_rate,
)
from .catalog import AuditMetric, not_named, note, table
from .findings import DIFFERENCE, MANY_GROUPS, GroupFinding, MetricFinding
from .html import ForestPlot
from .rows import AuditOptions, AuditRows, of_input

#: More groups than this are each compared with the rest and not in pairs: of 50 groups
#: and 5,000 rows the 1,225 pairs take 25 s, the 50 comparisons 3 s.
_MOST_IN_PAIRS = 32
#: Of impact ratios: a category with a smaller share of the rows may be left out.
_SMALL = 0.02
_FOUR_FIFTHS = 0.8
_SHOWN = 5  # thresholds of a curve, or pairs of places, in their tables
_RESAMPLES = 999
#: The values of a gap that are means over levels.
_OF_GAP = (*DIFFERENCE, "n_effective", "pvalue")
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
    question: str = ""  # of the report that it answers; "" for one of its own


def made_section(
    name: str,
    rows: Iterable[Sequence[str]],
    *,
    shown: bool | None = None,
    paragraphs: Iterable[str] = (),
    header: Iterable[str] = (),
    answer: str = "",
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
    **values : dict
        What the words leave open, such as ``p``, or ``by``, which is ", by sex".
    """
    words = table()["sections"][name]
    test = [] if shown is None else [words["shown" if shown else "not_shown"]]
    said, cells = (*paragraphs, *test, words["reading"]), (*words["header"], *header)
    return ReportSection(
        words["title"].format(**values),
        tuple(text.format(**values) for text in said),
        tuple(cell.format(**values) for cell in cells),
        tuple(map(tuple, rows)),
        answer=answer,
    )


def further_sections(
    rows: AuditRows, options: AuditOptions, n_metrics: int
) -> tuple[list[ReportSection], list[str]]:
    """Return the sections for a task, and notes on those that are left out.

    There are none where metrics are named, and those of a ranking are for "all". The
    p-value of a test is multiplied by the number of groupings, and in the answers of
    the report compared with the level over the number of metrics, as those of metrics.
    """
    sections, notes = list[ReportSection](), list[str]()
    of_task = _SECTIONS.get(str(options.task), {})
    of_places = options.task == "ranking"
    if not not_named(options.metrics) or (of_places and not options.metrics):
        return sections, notes
    if of_places and rows.are_of_models:
        return sections, [note("no_places")]
    rows = rows.of_users()  # tests have no errors of both
    named = {"": rows.columns["sensitive_features"]}
    if rows.sides and not of_places:
        named = {f", by {by}": labels for by, labels in rows.groupings.items()}
    for (name, contents), (by, labels) in product(of_task.items(), named.items()):
        columns = {**rows.columns, "sensitive_features": labels}
        if contents in _AT_THRESHOLD and options.threshold is None:
            continue
        with collected_warnings():
            try:
                number = len(rows.groups)
                if of_places and number > MANY_GROUPS:
                    raise ValueError(
                        note("most_groups", most=MANY_GROUPS, number=number)
                    )
                cells, words = contents(replace(rows, columns=columns), options)
                if "pvalue" in words:
                    p = np.minimum(words.pop("pvalue") * len(named), 1.0)
                    words |= _tested(p, options)
                section = made_section(name, cells, by=by, **words)
                topic = table()["sections"][name].get("topic")
                if words.get("shown") and topic:
                    beyond = p < (1 - options.confidence_level) / n_metrics
                    hint = note("hinted", number=n_metrics)
                    answer = section.paragraphs[0] if beyond else hint
                    question = table()["topics"][topic][options.task]
                    section = replace(section, answer=answer, question=question)
                sections.append(section)
            except ValueError as error:  # such as of groups that overlap
                what = table()["sections"][name]["name"]
                notes.append(f"{what}{by} is left out: {error}")
    return sections, notes


#: The rows of a table, and what `made_section` asks for beside them.
_Contents: TypeAlias = tuple[Sequence[Sequence[str]], dict[str, Any]]


def _tested(pvalue: float, options: AuditOptions) -> dict[str, Any]:
    """Return what a section says of a test, which may have too little data."""
    if np.isnan(pvalue):
        return {"paragraphs": [note("too_little")]}
    return {"shown": pvalue < 1 - options.confidence_level, "p": fmt.pvalue(pvalue)}


def _parity(rows: AuditRows, options: AuditOptions) -> _Contents:
    between = "rest" if len(rows.groups) > _MOST_IN_PAIRS else None
    test = predictive_parity_test(
        **rows.columns, contrasts=between, confidence_level=options.confidence_level
    )
    if test.order is not None:
        raise ValueError(note("no_overlap", p=fmt.pvalue_in_text(test.pvalue)))
    cells = []
    for pair, known, difference, pvalues in zip(
        test.contrasts, test.compared, test.difference, test.pvalues, strict=True
    ):
        described = "–", "–", "too little data"
        if known.any():
            scores, gaps = test.grid[known], difference[known]
            scope = f"{fmt.number(scores.min())} to {fmt.number(scores.max())}"
            largest = fmt.number(gaps[np.argmax(np.abs(gaps))])
            described = scope, largest, fmt.pvalue(np.nanmin(pvalues[known]))
        cells.append((" - ".join(map(fmt.label, pair)), *described))
    words = "between each group and the rest" if between else "between groups"
    return cells, {"pvalue": test.pvalue, "between": words}


def _marginal(rows: AuditRows, options: AuditOptions) -> _Contents:
    at: Any = options.threshold
    level = options.confidence_level
    test = marginal_outcome_test(**rows.columns, threshold=at, confidence_level=level)
    cells = _by_group(test.groups, test.outcomes, test.outcome_interval())
    return cells, {"pvalue": test.pvalue, "threshold": fmt.number(test.threshold)}


def _shift(rows: AuditRows, options: AuditOptions) -> _Contents:
    threshold: Any = options.threshold
    y, score = rows.data.y_true, rows.data.ranking.score
    if not (rows.are_shares or y.min() <= score.min() <= score.max() <= y.max()):
        raise ValueError(note("no_scale"))
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
        places = f"{above} at {j}, {below} at {k}"
        cells.append((places, fmt.count(test.support[i]), *numbers))
    critical = fmt.number(test.critical_value, 3)
    return cells, {"pvalue": test.pvalue, "critical": critical}


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


_AT_THRESHOLD = (_marginal, _shift)
_SECTIONS = {
    "ranking": {"curve": _curve, "inequality": _inequality, "monotonicity": _monotone},
    "risk": {"parity": _parity, "marginal": _marginal, "shift": _shift},
}


def impact_sections(
    rows: AuditRows, options: AuditOptions
) -> tuple[list[ReportSection], GroupEstimates]:
    """Return a table of impact ratios per column and one of all crossed, with rates.

    The selection rate of a category over that of the most selected category; of scores,
    the scoring rate: the share of those who score above the median (New York City,
    Local Law 144 of 2021, and § 5-300 of the rules of its department of consumer
    protection).
    """
    rows = rows.scored or rows
    selected, rate, meaning = _selected(rows, options)
    units = {name: rows.columns[name] for name in ("cluster", "sample_weight")}
    words = [meaning, table()["sections"]["impact"]["method"]]
    sections = []
    with collected_warnings():
        for by, labels in rows.groupings.items():
            rates = selection_rate(None, selected, sensitive_features=labels, **units)
            level = options.confidence_level
            cells, said = _impact_table(rates, selected.size, level, by)
            said["paragraphs"] = [*words, *said["paragraphs"]]
            named = f" by {by}" if by else ""
            sections.append(made_section("impact", cells, by=named, rate=rate, **said))
            words = []
        if rows.sides:
            labels = rows.columns["sensitive_features"]
            rates = selection_rate(None, selected, sensitive_features=labels, **units)
    return sections, rates


def _selected(rows: AuditRows, options: AuditOptions) -> tuple[Array, str, str]:
    """Return who is selected, or spared where that is good, the rate, and its words."""
    score = rows.data.ranking.score
    low, cut = options.favorable == "low", options.threshold
    kind, rate = "threshold", "spared" if low else "selection rate"
    scores = "all scores" if rows.qid is None else "the scores of its query"
    if options.task == "decision":
        kind, cut = "decision", 1
    elif cut is None:
        kind, rate = "median", "scoring rate"
        by_query = pd.Series(score).groupby(rows.data.ranking.query)
        median = by_query.transform("median").to_numpy()
        # A score at the median is on neither side.
        score, cut = np.sign(score - median), 0 if low else 1
    words = table()["rates"][kind]["low" if low else "high"]
    said = words.format(threshold=fmt.number(cut), scores=scores)
    chosen = at_least(score, cut) != low
    return of_input(rows.data, 1.0 * chosen), rate, said


def large_ones(known: Array, share: Array) -> Array:
    """Return which categories may have the highest rate: no small ones, if others can.

    `known` are those with a rate, and `share` is that of the rows.
    """
    large = known & (share >= _SMALL)
    return large if large.any() else known


def shares_of_rows(support: Array, n_rows: float) -> Array:
    """Return the shares of groups in their rows, each of which counts once.

    A row of overlapping groups is in the support of several.
    """
    return np.asarray(support / max(min(support.sum(), n_rows), 1))


def _impact_table(
    rates: GroupEstimates, size: int, confidence_level: float, by: str
) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """Return the rows of the table of rates, and what is said of them.

    The highest rate comes first. Which category has it is an accident of the data too:
    the intervals of the ratios hold for all pairs of which one could be it.
    """
    labels = [group if isinstance(group, tuple) else (group,) for group in rates.groups]
    known = np.array([LABEL not in label for label in labels])
    share = shares_of_rows(rates.support, size)
    large = large_ones(known & ~np.isnan(rates.estimate), share)
    unknown = rates.support[~known].sum()
    said = [note("no_category", count=fmt.count(unknown))] if unknown else []
    if not rates.estimate[large].any():
        return [], {"paragraphs": said, "conclusion": note("no_rate")}
    order = np.argsort(-rates.estimate, kind="stable")
    order = order[known[order]]
    best = int(order[large[order]][0])
    n_pairs = large.sum() * (order.size - 1) - large.sum() * (large.sum() - 1) // 2
    level = 1 - (1 - confidence_level) / max(1, n_pairs)
    ratios = rates.contrasts("ratio", rates.groups[best], "holm", level)
    ratio, low, high = (
        np.insert(ratios[name].to_numpy(dtype=float), best, 1.0)
        for name in ("estimate", "ci_low", "ci_high")
    )
    ends = rates.ends(t_quantile(confidence_level, rates.df))
    cells, below, beyond = list[tuple[str, ...]](), list[str](), list[str]()
    for i, *of_rate in zip(order, *(end[order] for end in ends), strict=True):
        name, remarks = fmt.label(rates.groups[i]), list[str]()
        if i == best:
            remarks.append("highest rate")
        if ratio[i] < _FOUR_FIFTHS:
            below.append(name)
            clear = high[i] < _FOUR_FIFTHS
            remarks.append(f"below four fifths{' beyond chance' if clear else ''}")
            beyond += [f"{name} ({ratio[i]:.3f})"] if clear else []
        if share[i] < _SMALL:
            remarks.append(f"small ({share[i]:.1%} of the rows)")
        number, rate = fmt.count(rates.support[i]), fmt.number(rates.estimate[i])
        of_ratio = "" if i == best else fmt.interval(low[i], high[i])
        numbers = (fmt.interval(*of_rate), fmt.number(ratio[i]), of_ratio)
        cells.append((name, number, rate, *numbers, ", ".join(remarks)))
    words = {"paragraphs": said, "conclusion": note("none_below")}
    if below:
        best_name = fmt.label(rates.groups[best])
        values = {"below": fmt.some(below), "best": best_name, "by": by or "group"}
        values["beyond"] = fmt.some(beyond) if beyond else "none"
        words["conclusion"] = note("below", **values)
        words["answer"] = note("below_by", **values) if beyond else ""
    return cells, words


def within_section(
    rows: AuditRows, findings: Iterable[MetricFinding], chosen: Iterable[AuditMetric]
) -> tuple[ReportSection, list[str]]:
    """Return the gaps within levels of another column, and notes on what has none.

    Those of a level compare a group with others of the level. The gap within all levels
    is their mean with the weights of Mantel and Haenszel.
    """
    levels = rows.levels
    if 2 * len(levels) > MOST_COVARIANCES:
        raise ValueError(
            f"within must have at most {MOST_COVARIANCES // 2} levels; got "
            f"{len(levels):,}. Put values together into fewer."
        )
    named = getattr(rows.given["within"], "name", None)
    by = "the given column" if named is None else fmt.label(named)
    compared = [f for f in findings if f.tested]
    tested = [f for f in compared if f.metric.per != "query"]
    notes = [
        note("no_gap", title=f.metric.title, by=by) for f in compared if f not in tested
    ]
    measured = {metric.name: metric for metric in chosen}
    cells, remaining, known = list[tuple[str, ...]](), list[str](), False
    for finding in tested:
        metric, rows_of = finding.metric, finding.alone(finding.ordered)
        alone = [row for row in rows_of if not finding.is_reference(row.group)]
        with collected_warnings():
            gaps = [_gaps(rows, finding, measured[metric.name], row) for row in alone]
        # Of all levels over the groups, and of single levels over all of them.
        pooled = corrected_pvalues(np.array([whole.pvalue for whole, *_ in gaps]))
        single = [gap.pvalue for _, *of_levels in gaps for gap in of_levels]
        of_level = iter(corrected_pvalues(np.array(single)))
        for row, p, (whole, *of_levels) in zip(alone, pooled, gaps, strict=True):
            lines = [(replace(row, group="as it is"), ""), (whole, fmt.pvalue(p))]
            lines += [(gap, fmt.pvalue(next(of_level))) for gap in of_levels]
            for gap, said in lines:
                size = finding.gap_text(gap.difference), finding.interval(gap) or "–"
                names = metric.short, row.label, gap.label
                cells.append((*names, *size, fmt.count(gap.support), said))
            known |= not np.isnan(p)
            if p < (1 - finding.confidence_level) / len(tested):  # as in all answers
                size_of = f"{metric.title}, {finding.gap_text(whole.difference)}"
                remaining.append(f"{row.label} ({size_of})")
    words = {"by": by, "groups": fmt.some(remaining)}
    shown = bool(remaining) if known else None
    section = made_section("within", cells, shown=shown, **words)
    return replace(section, answer=section.paragraphs[0] if known else ""), notes


def _gaps(
    rows: AuditRows, finding: MetricFinding, metric: AuditMetric, row: GroupFinding
) -> list[GroupFinding]:
    """Return the gap of a group within all levels, and that of each of them."""
    levels, groups, size = rows.levels, rows.data.groups, len(rows.levels)
    members = of_input(rows.data, groups.mask(groups.labels.index(row.group)))
    others, reference = ~members, finding.references.get(row.group)
    if finding.against_rest and reference is not None:
        others = of_input(rows.data, groups.mask(groups.labels.index(reference)))
    # The cells of the group come first, then those of the others, and last all else.
    own = np.select([members, others], [levels.values, levels.values + size], 2 * size)
    # Pairs within the groups of the rest are no pairs between them.
    intra = metric.options.get("comparison") == "intra" and not groups.overlapping
    apart = of_input(rows.data, groups.values) if intra else np.zeros_like(own)
    result = rows.within(own, apart).measured(metric)
    cells: Array = np.setdiff1d(np.array(result.groups, dtype=int), 2 * size)
    result = replace(result, sums=result.sums.of_groups(np.arange(cells.size)))
    first = np.flatnonzero(np.isin(cells + size, cells))  # of levels with both sides
    second = np.searchsorted(cells, cells[first] + size)
    pairs = {level: level + size for level in cells[first].tolist()}
    of_cells = replace(finding, result=result, references=pairs, recorded=None)
    gaps = [
        replace(of_cells.rows[a], group=levels.labels[level])
        for a, level in zip(first, pairs, strict=True)
    ]
    weight, of_others = result.support[first], result.support[second]
    if finding.against_rest:
        weight = weight * of_others / np.maximum(weight + of_others, 1.0)
    weight = np.where([np.isnan(gap.difference_low) for gap in gaps], 0.0, weight)
    counted, support = weight > 0, sum(gap.support for gap in gaps)
    whole: dict[str, Any] = dict.fromkeys(_OF_GAP, np.nan)
    if counted.any():
        sides = [first[counted], second[counted]][: 1 + finding.against_rest]
        whole = _mean_gap(of_cells, sides, weight[counted] / weight.sum())
    gaps.insert(0, replace(row, group="within all levels", support=support, **whole))
    return [
        gap
        if gap.n_effective >= fmt.FEW_EFFECTIVE - 1e-9
        else replace(gap, difference_low=np.nan, difference_high=np.nan, pvalue=np.nan)
        for gap in gaps
    ]


def _mean_gap(
    finding: MetricFinding, sides: Sequence[Array], share: Array
) -> dict[str, Any]:
    """Return the values `_OF_GAP` of a mean of gaps.

    A gap of shares is that of two means of shares: where the cells of a side show no
    variance, its mean is tested as a share of as many rows. Errors of gaps have the
    rare events that small cells do not show. The degrees of freedom are
    Satterthwaite's, from the variances of the gaps.

    Parameters
    ----------
    finding : MetricFinding
        The cells, of which the first of each gap is compared with the second.
    sides : sequence of ndarray of shape (m,), int
        The cells of each gap: the first, and the second if it is a contrast.
    share : ndarray of shape (m,)
        Share of each gap in the mean.
    """
    judged, gaps, _ = finding.judged
    rows = np.searchsorted(judged, sides[0])
    compared = len(sides) == 2
    result = finding.result if compared else finding.result.as_gap()
    own = [result.covariance[np.ix_(cells, cells)] for cells in sides]
    both = result.covariance[np.ix_(sides[0], sides[-1])]
    between = own[0] + own[1] - both - both.T if compared else own[0]
    np.fill_diagonal(between, gaps.scale.standard_error[rows] ** 2)
    effective = [1 / (share**2 / result.n_effective[cells]).sum() for cells in sides]
    df, parts = np.array([min(effective) - 1]), share**2 * np.diag(between)
    if parts.any():
        df = parts.sum(keepdims=True) ** 2 / (parts**2 / gaps.df[rows]).sum()
    mean = np.array([share @ gaps.scale.estimate[rows] - (gaps.null_value or 0.0)])
    error = np.sqrt(np.maximum([share @ between @ share], 0.0))
    scale = PlainScale(mean, error)
    if compared and isinstance(gaps.scale, DifferenceScale):
        means = []
        for cells, covariance, n in zip(sides, own, effective, strict=True):
            value = (share * result.estimate[cells]).sum() / share.sum()
            spread = np.sqrt(max(share @ covariance @ share, 0.0))
            side_df = n - 1 if result.variance == "item" else df[0]
            numbers = np.array([[value], [spread], [n], [side_df]])
            means.append(ShareScale(*[*numbers, np.zeros(1, dtype=bool)]))
        first, second = means
        correlation = correlation_in(error, first, second)
        scale = DifferenceScale(mean, error, first, second, correlation)
    ends = scale.ends(t_quantile(finding.confidence_level, df), df)
    clusters = np.fmin(min(effective), df + 1)
    values = scale.estimate, *ends, clusters, scale.test(0.0, df)[1]
    return dict(zip(_OF_GAP, np.concatenate(values).tolist(), strict=True))
