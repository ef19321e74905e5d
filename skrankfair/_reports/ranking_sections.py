"""What the audit of a ranking says beside its metrics, where it is asked for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import corrected_pvalues
from ..inference import (
    MonotonicityTest,
    OutcomeInequalityTest,
    monotonicity_test,
    outcome_inequality_test,
)
from ..metrics import MatchedPairCurve, matched_pair_curve
from .findings import MANY_GROUPS
from .html_report import ReportSection
from .score_sections import ScoreColumns

_SHOWN = 5  # thresholds of a curve in its table
_RESAMPLES = 999
_MOST_DRAWN = 20_000_000  # clusters that the tests of monotonicity draw, in all


def check_few_groups(scores: ScoreColumns) -> None:
    """Raise a ValueError for more groups than a table of pairs of them can show."""
    if scores.n_groups > MANY_GROUPS:
        raise ValueError(
            f"the report has it for at most {MANY_GROUPS} groups; got "
            f"{scores.n_groups:,}."
        )


def curve_of(scores: ScoreColumns) -> MatchedPairCurve:
    """Return matched pair calibration over a grid of thresholds."""
    check_few_groups(scores)
    return matched_pair_curve(**scores.columns, qid=scores.qid)


def curve_section(scores: ScoreColumns, curve: MatchedPairCurve) -> ReportSection:
    """Return the table of some of its thresholds."""
    last = curve.epsilon.size - 1
    shown = np.unique(np.linspace(0, last, _SHOWN).round().astype(int))
    ends = curve.confidence_interval(scores.confidence_level)
    low, high = map(np.asarray, ends)
    rows = [
        (
            fmt.label(group),
            *(
                f"{fmt.number(curve.estimate[e, g], 3)} "
                f"{fmt.interval(low[e, g], high[e, g], 3)}"
                for e in shown
            ),
        )
        for g, group in enumerate(curve.groups)
    ]
    reading = (
        "Small distances compare like with like, with few pairs; large ones pair the "
        "group's items with others that have higher scores. A group is undervalued "
        "where it is above 0 at all small distances. Each interval holds on its own."
    )
    return ReportSection(
        title="Matched pairs, by how far apart their scores may be",
        paragraphs=(reading,),
        header=("group", *(f"up to {curve.epsilon[e]:.3g}" for e in shown)),
        rows=tuple(rows),
    )


def inequality_of(scores: ScoreColumns) -> OutcomeInequalityTest:
    """Return the test of outcomes at neighbouring places."""
    check_few_groups(scores)
    return outcome_inequality_test(
        **scores.columns,
        qid=scores.qid,
        confidence_level=scores.confidence_level,
        random_state=0,
    )


def inequality_section(
    scores: ScoreColumns, test: OutcomeInequalityTest
) -> ReportSection:
    """Return the pairs of places and groups that are violated most."""
    said = "The data do not show that swapping two neighbours would improve the ranking"
    if test.pvalue < 1 - scores.confidence_level:
        said = "Swapping neighbours of two groups would improve the ranking"
    order = np.argsort(np.where(np.isnan(test.violation), np.inf, -test.violation))
    rows = []
    for i in order[:_SHOWN]:
        above, below = map(fmt.label, test.groups[i])
        j, k = test.positions[i]
        rows.append(
            (
                f"{above} at {j}, {below} at {k}",
                fmt.count(test.support[i]),
                fmt.number(test.estimate[i]),
                fmt.number(test.violation[i] + 0.0, 3),
            )
        )
    reading = (
        "An item that is placed above its neighbour of another group should have "
        "outcomes no worse than its. The p-value holds for all places and groups at "
        f"once; violations above {fmt.number(test.critical_value, 3)} are beyond "
        "chance, and the largest are listed."
    )
    return ReportSection(
        title="Outcome inequality: would swapping neighbours improve the ranking?",
        paragraphs=(f"{said} (p {fmt.pvalue(test.pvalue)}).", reading),
        header=("places", "pairs", "mean difference of outcomes", "violation"),
        rows=tuple(rows),
    )


def monotone_of(scores: ScoreColumns) -> tuple[MonotonicityTest, ...]:
    """Return a test for each group; for two groups there is one, of either."""
    check_few_groups(scores)
    groups = scores.groups[:1] if scores.one_of_two else scores.groups
    if len(groups) * _RESAMPLES * scores.n_queries > _MOST_DRAWN:
        raise ValueError(
            f"it would take long for {scores.n_queries:,} queries; "
            "skrankfair.inference.monotonicity_test takes the time."
        )
    return tuple(
        monotonicity_test(
            scores.y_score,
            **scores.who,
            qid=scores.qid,
            group=group,
            n_resamples=_RESAMPLES,
            confidence_level=scores.confidence_level,
            random_state=0,
        )
        for group in groups
    )


def monotone_section(
    scores: ScoreColumns, tests: tuple[MonotonicityTest, ...]
) -> ReportSection:
    """Return the shares at the ends, and whether they rise or fall in between."""
    pvalues = corrected_pvalues(np.array([test.pvalue for test in tests]))
    rejected = [
        fmt.label(test.group)
        for test, p in zip(tests, pvalues, strict=True)
        if p < 1 - scores.confidence_level
    ]
    said = "The data do not show that a share rises and falls"
    if rejected:
        said = f"The share rises and falls: {fmt.some(rejected)}"
    reading = (
        "Where the share of a group by place only rises or only falls, metrics of "
        "statistical parity agree about it; elsewhere they may disagree."
    )
    return ReportSection(
        title="Monotonicity: does the share of a group only rise or only fall?",
        paragraphs=(f"{said}.", reading),
        header=("group", "share at the top", "share at the end", "p", "p (Holm)"),
        rows=tuple(
            (
                fmt.label(test.group),
                *(fmt.number(test.share[end]) for end in (0, -1)),
                *(fmt.pvalue(p) for p in (test.pvalue, corrected)),
            )
            for test, corrected in zip(tests, pvalues, strict=True)
        ),
    )


#: Title in a note, what measures, and the section of that.
RANKING_SECTIONS: tuple[
    tuple[str, Callable[[ScoreColumns], Any], Callable[..., ReportSection]], ...
] = (
    ("The curve of matched pairs", curve_of, curve_section),
    ("The outcome inequality test", inequality_of, inequality_section),
    ("The test of monotonicity", monotone_of, monotone_section),
)
