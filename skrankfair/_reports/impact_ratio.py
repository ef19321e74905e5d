"""Impact ratios by category and crossed, as local rules of hiring audits ask for them.

The selection rate of a category over that of the most selected category; of scores,
the scoring rate: the share of those who score above the median (New York City, Local
Law 144 of 2021, and § 5-300 of the rules of its department of consumer protection).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.intervals import t_quantile
from .._estimates.metric import collected_warnings
from .._inputs.missing import LABEL
from .._inputs.validation import Array, to_numpy
from ..metrics import GroupEstimates, selection_rate
from .facts import crossed_columns
from .html_report import ReportSection
from .score_sections import ScoreColumns

#: A category with a smaller share of the rows may be left out by these rules.
_SMALL = 0.02
_FOUR_FIFTHS = 0.8
_BELOW, _BEYOND = "below four fifths", " beyond chance"
_READING = (
    "The impact ratio is the rate over that of the category with the highest one; "
    "intervals of the ratios hold at once for all categories, whichever of them has "
    "the highest rate. Categories with less than 2% of the rows are marked, and never "
    "the highest."
)


@dataclass(frozen=True)
class _Selected:
    """Who is selected, or spared where that is good, and in words what it means."""

    selected: Array
    rate: str
    says: str


def _selected(
    score: Array, task: str, threshold: float | None, qid: Any, spared: bool
) -> _Selected:
    if task == "decision" and spared:
        says = "Low is good: the rate is the share of rows with decision 0."
        return _Selected(1 - score, "spared", says)
    if task == "decision":
        return _Selected(score, "selection rate", "A row is selected by decision 1.")
    if threshold is not None and spared:
        says = f"Low is good: the rate is the share below {fmt.number(threshold)}."
        return _Selected((score < threshold) * 1.0, "spared", says)
    if threshold is not None:
        says = f"A row is selected from the score {fmt.number(threshold)}."
        return _Selected((score >= threshold) * 1.0, "selection rate", says)
    import pandas as pd

    series = pd.Series(score)
    if qid is None:
        median, of = np.full(score.size, np.median(score)), "all scores"
    else:
        codes = pd.factorize(to_numpy(qid, "qid"))[0]
        median = series.groupby(codes).transform("median").to_numpy()
        of = "the scores of its query"
    side, good = ("below", score < median) if spared else ("above", score > median)
    says = f"The scoring rate is the share of rows {side} the median of {of}."
    return _Selected(good * 1.0, "scoring rate", says)


def impact_sections(
    scores: ScoreColumns, *, task: str, favorable: str | None
) -> tuple[tuple[ReportSection, ...], GroupEstimates]:
    """Return a table per column of categories and one of all crossed, with rates."""
    columns, confidence_level = scores.who, scores.confidence_level
    y_score = np.asarray(scores.y_score, dtype=float)
    spared = favorable == "low"
    what = _selected(y_score, task, scores.threshold, scores.qid, spared)
    who = {name: columns[name] for name in ("cluster", "sample_weight")}
    groups = columns["sensitive_features"]
    crossed = crossed_columns(groups)
    name = " × ".join(crossed) or str(getattr(groups, "name", None) or "")
    with collected_warnings():
        sections = [
            _section(one, labels, what, who, confidence_level)[0]
            for one, labels in crossed.items()
        ]
        section, rates = _section(name, groups, what, who, confidence_level)
    first, *others = (*sections, section)
    first = replace(first, paragraphs=(what.says, _READING, *first.paragraphs))
    return (first, *others), rates


def _section(
    name: str,
    groups: Any,
    what: _Selected,
    who: Mapping[str, Any],
    confidence_level: float,
) -> tuple[ReportSection, GroupEstimates]:
    """Return the table of one way to group the rows, and the rates by group."""
    rates = selection_rate(None, what.selected, sensitive_features=groups, **who)
    known = np.array([not _is_unknown(group) for group in rates.groups])
    overlapping = rates.support.sum() > what.selected.size
    n_rows = what.selected.size if overlapping else rates.support.sum()
    share = rates.support / n_rows
    large = known & (share >= _SMALL) & ~np.isnan(rates.estimate)
    if not large.any():
        large = known & ~np.isnan(rates.estimate)
    kept = np.flatnonzero(known).tolist()
    paragraphs = []
    unknown = rates.support[~known].sum()
    if unknown:
        paragraphs.append(
            f"{fmt.count(unknown)} rows have no category and are not in the table."
        )
    if not large.any():
        return _made(name, what, (*paragraphs, "No category has a rate."), ()), rates
    best = int(np.flatnonzero(large)[rates.estimate[large].argmax()])
    # Which category is the highest is an accident of the data too: all pairs count.
    n_large = int(large.sum())
    n_pairs = n_large * (len(kept) - 1) - n_large * (n_large - 1) // 2
    ratios = _ratios(rates, best, n_pairs, confidence_level)
    rows = _rows(rates, ratios, share, kept, best, confidence_level)
    below = [row for row in rows if _BELOW in row[-1]]
    clear = [row[0] for row in below if _BEYOND in row[-1]]
    said = "No category has less than four fifths of the highest rate."
    if below:
        names = fmt.some([row[0] for row in below])
        sure = fmt.some(clear) if clear else "none"
        said = f"{_BELOW.capitalize()}: {names}. Beyond chance: {sure}."
    paragraphs.append(said)
    return _made(name, what, tuple(paragraphs), tuple(rows)), rates


def _rows(
    rates: GroupEstimates,
    ratios: Mapping[int, tuple[float, tuple[float, float], bool]],
    share: Array,
    kept: Sequence[int],
    best: int,
    confidence_level: float,
) -> list[tuple[str, ...]]:
    """Return the cells of the categories that are known, the highest rate first."""
    low, high = map(np.asarray, rates.ends(t_quantile(confidence_level, rates.df)))
    rows: list[tuple[str, ...]] = []
    for i in sorted(kept, key=lambda i: -np.nan_to_num(rates.estimate[i], nan=-1)):
        value, ends, beyond = ratios[i]
        rows.append(
            (
                fmt.label(rates.groups[i]),
                fmt.count(rates.support[i]),
                fmt.number(rates.estimate[i]),
                fmt.interval(low[i], high[i]),
                fmt.number(value),
                fmt.interval(*ends) if i != best else "",
                _remark(i == best, share[i], value, beyond),
            )
        )
    return rows


def _is_unknown(group: Hashable) -> bool:
    return LABEL in group if isinstance(group, tuple) else group == LABEL


def _ratios(
    rates: GroupEstimates, best: int, n_pairs: int, confidence_level: float
) -> dict[int, tuple[float, tuple[float, float], bool]]:
    """Return ratios to the highest rate, with intervals that hold at once."""
    level = 1 - (1 - confidence_level) / max(1, n_pairs)
    frame = rates.contrasts("ratio", rates.groups[best], "holm", level)
    others = [i for i in range(len(rates.groups)) if i != best]
    found = {best: (1.0, (np.nan, np.nan), False)}
    names = ("estimate", "ci_low", "ci_high")
    columns = (frame[name].to_numpy(dtype=float).tolist() for name in names)
    for i, value, low, high in zip(others, *columns, strict=True):
        found[i] = (value, (low, high), high < _FOUR_FIFTHS)
    return found


def _remark(best: bool, share: float, ratio: float, beyond: bool) -> str:
    """Return what is to be said of a category."""
    parts = ["highest rate"] if best else []
    if ratio < _FOUR_FIFTHS:
        parts.append(_BELOW + (_BEYOND if beyond else ""))
    if share < _SMALL:
        parts.append(f"small ({100 * share:.1f}% of the rows)")
    return ", ".join(parts)


def _made(
    name: str,
    what: _Selected,
    paragraphs: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
) -> ReportSection:
    return ReportSection(
        title=f"Impact ratios{f' by {name}' if name else ''} (four-fifths rule)",
        paragraphs=paragraphs,
        header=(
            *("category", "rows", what.rate, "interval", "impact ratio", "interval"),
            "remark",
        ),
        rows=rows,
    )
