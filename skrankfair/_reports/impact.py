"""Impact ratios by category and crossed, as local rules of hiring audits ask for them.

The selection rate of a category over that of the most selected category; of scores,
the scoring rate: the share of those who score above the median (New York City, Local
Law 144 of 2021, and § 5-300 of the rules of its department of consumer protection).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.scales import t_quantile
from .._inputs.columns import LABEL
from .._inputs.groups import frame_columns
from .._inputs.validation import Array, collected_warnings, to_numpy
from ..metrics import GroupEstimates, selection_rate
from .catalog import table
from .sections import ReportSection, made_section

if TYPE_CHECKING:
    from .audit import AuditOptions, AuditRows

#: A category with a smaller share of the rows may be left out by these rules.
_SMALL = 0.02
_FOUR_FIFTHS = 0.8
_BELOW, _BEYOND = "below four fifths", " beyond chance"


def impact_sections(
    rows: AuditRows, options: AuditOptions
) -> tuple[list[ReportSection], GroupEstimates]:
    """Return a table per column of categories and one of all crossed, with rates."""
    selected, rate, meaning = _selected(rows, options)
    units = {name: rows.columns[name] for name in ("cluster", "sample_weight")}
    groups = rows.columns["sensitive_features"]
    crossed = crossed_columns(groups)
    name = " × ".join(crossed) or str(getattr(groups, "name", None) or "")
    words: tuple[str, ...] = (meaning, table()["sections"]["impact"]["method"])
    sections = []
    with collected_warnings():
        for by, labels in [*crossed.items(), (name, groups)]:
            rates = selection_rate(None, selected, sensitive_features=labels, **units)
            paragraphs, cells = _table(rates, selected.size, options.confidence_level)
            *before, conclusion = paragraphs
            sections.append(
                made_section(
                    "impact",
                    cells,
                    paragraphs=(*words, *before),
                    by=f" by {by}" if by else "",
                    rate=rate,
                    conclusion=conclusion,
                )
            )
            words = ()
    return sections, rates


def _selected(rows: AuditRows, options: AuditOptions) -> tuple[Array, str, str]:
    """Return who is selected, or spared where that is good, the rate, and its words."""
    score = np.asarray(rows.columns["y_score"], dtype=float)
    low = options.favorable == "low"
    values = {}
    if options.task == "decision":
        kind, selected = "decision", 1 - score if low else score
    elif options.threshold is not None:
        kind, values["threshold"] = "threshold", fmt.number(options.threshold)
        good = score < options.threshold if low else score >= options.threshold
        selected = good * 1.0
    else:
        kind, values["scores"] = "median", "all scores"
        median = np.full(score.size, np.median(score))
        if rows.qid is not None:
            import pandas as pd

            values["scores"] = "the scores of its query"
            queries = pd.factorize(to_numpy(rows.qid, "qid"))[0]
            by_query = pd.Series(score).groupby(queries)
            median = by_query.transform("median").to_numpy()
        selected = (score < median if low else score > median) * 1.0
    rate = "spared" if low else "selection rate"
    rate = "scoring rate" if kind == "median" else rate
    words = table()["rates"][kind]["low" if low else "high"]
    return selected, rate, words.format(**values)


def _table(
    rates: GroupEstimates, size: int, confidence_level: float
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return what is said of the rates by category, and the cells, the highest first.

    Which category is the highest is an accident of the data too: the intervals of the
    ratios hold for all pairs of which one could be it.
    """
    known = np.array([not _is_unknown(group) for group in rates.groups])
    overlapping = rates.support.sum() > size
    share = rates.support / (size if overlapping else rates.support.sum())
    has_rate = known & ~np.isnan(rates.estimate)
    large = has_rate & (share >= _SMALL)
    large = large if large.any() else has_rate
    paragraphs = []
    unknown = rates.support[~known].sum()
    if unknown:
        paragraphs.append(
            f"{fmt.count(unknown)} rows have no category and are not in the table."
        )
    if not large.any():
        return [*paragraphs, "No category has a rate."], []
    kept = np.flatnonzero(known)
    best = int(np.flatnonzero(large)[rates.estimate[large].argmax()])
    n_large = int(large.sum())
    n_pairs = n_large * (kept.size - 1) - n_large * (n_large - 1) // 2
    level = 1 - (1 - confidence_level) / max(1, n_pairs)
    frame = rates.contrasts("ratio", rates.groups[best], "holm", level)
    columns = frame[["estimate", "ci_low", "ci_high"]].to_numpy(dtype=float)
    ratios = np.insert(columns.T, best, [1.0, np.nan, np.nan], axis=1)
    low, high = map(np.asarray, rates.ends(t_quantile(confidence_level, rates.df)))
    cells: list[tuple[str, ...]] = []
    below = ratios[0] < _FOUR_FIFTHS
    clear = below & (ratios[2] < _FOUR_FIFTHS)
    order = np.argsort(-np.nan_to_num(rates.estimate[kept], nan=-1), kind="stable")
    for i in kept[order].tolist():
        remarks = ["highest rate"] if i == best else []
        if below[i]:
            remarks.append(_BELOW + (_BEYOND if clear[i] else ""))
        if share[i] < _SMALL:
            remarks.append(f"small ({100 * share[i]:.1f}% of the rows)")
        cells.append(
            (
                fmt.label(rates.groups[i]),
                fmt.count(rates.support[i]),
                fmt.number(rates.estimate[i]),
                fmt.interval(low[i], high[i]),
                fmt.number(ratios[0, i]),
                fmt.interval(*ratios[1:, i]) if i != best else "",
                ", ".join(remarks),
            )
        )
    below, clear = (
        [fmt.label(rates.groups[i]) for i in kept[order] if shown[i]]
        for shown in (below, clear)
    )
    conclusion = "No category has less than four fifths of the highest rate."
    if below:
        beyond_chance = fmt.some(clear) if clear else "none"
        conclusion = (
            f"{_BELOW.capitalize()}: {fmt.some(below)}. Beyond chance: {beyond_chance}."
        )
    return [*paragraphs, conclusion], cells


def _is_unknown(group: Hashable) -> bool:
    """Return whether a category is that of rows without a label."""
    return LABEL in group if isinstance(group, tuple) else group == LABEL


def crossed_columns(groups: Any) -> dict[str, Array]:
    """Return the columns of labels that are crossed, by name; none if nothing is."""
    frame = frame_columns(groups)
    if frame is None or len(frame[0]) < 2:
        return {}
    arrays = [to_numpy(column, "sensitive_features") for column in frame[0]]
    if all(array.dtype.kind == "b" for array in arrays):
        return {}  # groups that may overlap
    return {fmt.label(name): a for name, a in zip(frame[1], arrays, strict=True)}
