"""Impact ratios by category and crossed, as local rules of hiring audits ask for them.

The selection rate of a category over that of the most selected category; of scores,
the scoring rate: the share of those who score above the median (New York City, Local
Law 144 of 2021, and § 5-300 of the rules of its department of consumer protection).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.scales import t_quantile
from .._inputs.columns import LABEL
from .._inputs.validation import Array, collected_warnings, to_numpy
from ..metrics import GroupEstimates, selection_rate
from .catalog import table
from .groupings import crossed_columns
from .sections import ReportSection, made_section

if TYPE_CHECKING:
    from .audit import AuditOptions, AuditRows

#: A category with a smaller share of the rows may be left out by these rules.
_SMALL = 0.02
_FOUR_FIFTHS = 0.8


def impact_sections(
    rows: AuditRows, options: AuditOptions
) -> tuple[list[ReportSection], GroupEstimates]:
    """Return a table per column of categories and one of all crossed, with rates."""
    selected, rate, meaning = _selected(rows, options)
    weight = rows.columns["sample_weight"]
    units = {"cluster": rows.cluster, "sample_weight": weight}
    groups = rows.given["sensitive_features"]
    crossed = crossed_columns(groups)
    name = " × ".join(crossed) or str(getattr(groups, "name", None) or "")
    by_name = rows.groupings or {**crossed, name: groups}
    words: tuple[str, ...] = (meaning, table()["sections"]["impact"]["method"])
    sections = []
    with collected_warnings():
        for by, labels in by_name.items():
            rates = selection_rate(None, selected, sensitive_features=labels, **units)
            before, conclusion, answer, cells = _table(
                rates, selected.size, options.confidence_level
            )
            named = f" by {by}" if by else ""
            section = made_section(
                "impact",
                cells,
                paragraphs=(*words, *before),
                by=named,
                rate=rate,
                conclusion=conclusion,
            )
            sections.append(
                replace(section, answer=answer and f"By {by or 'group'}, {answer}")
            )
            words = ()
    return sections, rates


def _selected(rows: AuditRows, options: AuditOptions) -> tuple[Array, str, str]:
    """Return who is selected, or spared where that is good, the rate, and its words."""
    score = np.asarray(rows.columns["y_score"], dtype=float)
    low = options.favorable == "low"
    values, rate = {}, "spared" if low else "selection rate"
    if options.task == "decision":
        kind, selected = "decision", score != 1 if low else score == 1
    elif options.threshold is not None:
        kind, values["threshold"] = "threshold", fmt.number(options.threshold)
        selected = score < options.threshold if low else score >= options.threshold
    else:
        import pandas as pd

        kind, rate, values["scores"] = "median", "scoring rate", "all scores"
        queries: Any = np.zeros(score.size)
        if rows.qid is not None:
            values["scores"] = "the scores of its query"
            queries = pd.factorize(to_numpy(rows.qid, "qid"))[0]
        median = pd.Series(score).groupby(queries).transform("median").to_numpy()
        selected = score < median if low else score > median
    words = table()["rates"][kind]["low" if low else "high"]
    return selected * 1.0, rate, words.format(**values)


def _table(
    rates: GroupEstimates, size: int, confidence_level: float
) -> tuple[list[str], str, str, list[tuple[str, ...]]]:
    """Return what is said of the rates before and after their cells, and these.

    What is below four fifths beyond chance is also said in an answer.

    The highest rate comes first. Which category has it is an accident of the data too:
    the intervals of the ratios hold for all pairs of which one could be it.
    """
    labels = [group if isinstance(group, tuple) else (group,) for group in rates.groups]
    known = np.array([LABEL not in label for label in labels])
    share = rates.support / max(size, 1)
    if rates.support.sum() <= size:  # groups that do not overlap
        share = rates.support / rates.support.sum()
    large = known & ~np.isnan(rates.estimate)
    if (large & (share >= _SMALL)).any():
        large &= share >= _SMALL
    said = []
    if unknown := rates.support[~known].sum():
        said.append(
            f"{fmt.count(unknown)} rows have no category and are not in the table."
        )
    if not large.any():
        return said, "No category has a rate.", "", []
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
    below, clear = list[str](), list[str]()
    order = np.argsort(-np.nan_to_num(rates.estimate[kept], nan=-1), kind="stable")
    for i in kept[order].tolist():
        name, remarks = (
            fmt.label(rates.groups[i]),
            ["highest rate"] if i == best else [],
        )
        if ratios[0, i] < _FOUR_FIFTHS:
            is_clear = bool(ratios[2, i] < _FOUR_FIFTHS)
            remarks.append("below four fifths" + " beyond chance" * is_clear)
            below.append(name)
            clear += [f"{name} ({ratios[0, i]:.3f})"] * is_clear
        if share[i] < _SMALL:
            remarks.append(f"small ({100 * share[i]:.1f}% of the rows)")
        cells.append(
            (
                name,
                fmt.count(rates.support[i]),
                fmt.number(rates.estimate[i]),
                fmt.interval(low[i], high[i]),
                fmt.number(ratios[0, i]),
                fmt.interval(*ratios[1:, i]) if i != best else "",
                ", ".join(remarks),
            )
        )
    if not below:
        conclusion = "No category has less than four fifths of the highest rate."
        return said, conclusion, "", cells
    beyond = fmt.some(clear) if clear else "none"
    conclusion = f"Below four fifths: {fmt.some(below)}. Beyond chance: {beyond}."
    best_one = fmt.label(rates.groups[best])
    answer = f"below four fifths of the rate of {best_one}, beyond chance: {beyond}."
    return said, conclusion, answer if clear else "", cells
