"""Impact ratios by category and crossed, as local rules of hiring audits ask for them.

The selection rate of a category over that of the most selected category; of scores,
the scoring rate: the share of those who score above the median (New York City, Local
Law 144 of 2021, and § 5-300 of the rules of its department of consumer protection).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.scales import t_quantile
from .._inputs.columns import LABEL
from .._inputs.validation import Array, collected_warnings, to_numpy
from ..metrics import GroupEstimates, selection_rate
from .catalog import note, table
from .groupings import crossed_columns, name_of
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
    by_name = rows.groupings or {**crossed_columns(groups), name_of(groups): groups}
    words = [meaning, table()["sections"]["impact"]["method"]]
    sections = []
    with collected_warnings():
        for by, labels in by_name.items():
            rates = selection_rate(None, selected, sensitive_features=labels, **units)
            cells, said = _table(rates, selected.size, options.confidence_level, by)
            said["paragraphs"] = [*words, *said["paragraphs"]]
            named = f" by {by}" if by else ""
            sections.append(made_section("impact", cells, by=named, rate=rate, **said))
            words = []
    return sections, rates


def _selected(rows: AuditRows, options: AuditOptions) -> tuple[Array, str, str]:
    """Return who is selected, or spared where that is good, the rate, and its words."""
    score: Any = np.asarray(rows.columns["y_score"], dtype=float)
    low, cut = options.favorable == "low", options.threshold
    kind, rate = "threshold", "spared" if low else "selection rate"
    scores = "all scores" if rows.qid is None else "the scores of its query"
    if options.task == "decision":
        kind, cut = "decision", 1
    elif cut is None:
        import pandas as pd

        kind, rate, queries = "median", "scoring rate", np.zeros(score.size)
        if rows.qid is not None:
            queries = pd.factorize(to_numpy(rows.qid, "qid"))[0]
        median = pd.Series(score).groupby(queries).transform("median").to_numpy()
        # A score at the median is on neither side.
        score, cut = np.sign(score - median), 0 if low else 1
    words = table()["rates"][kind]["low" if low else "high"]
    said = words.format(threshold=fmt.number(cut), scores=scores)
    return (score < cut if low else score >= cut) * 1.0, rate, said


def _table(
    rates: GroupEstimates, size: int, confidence_level: float, by: str
) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """Return the rows of the table of rates, and what is said of them.

    The highest rate comes first. Which category has it is an accident of the data too:
    the intervals of the ratios hold for all pairs of which one could be it.
    """
    labels = [group if isinstance(group, tuple) else (group,) for group in rates.groups]
    known = np.array([LABEL not in label for label in labels])
    # Groups that do not overlap have shares of all their rows.
    share = rates.support / max(min(rates.support.sum(), size), 1)
    large = known & ~np.isnan(rates.estimate)
    if (large & (share >= _SMALL)).any():
        large &= share >= _SMALL
    unknown = rates.support[~known].sum()
    said = [note("no_category", count=fmt.count(unknown))] if unknown else []
    if not large.any():
        return [], {"paragraphs": said, "conclusion": note("no_rate")}
    kept = np.flatnonzero(known)
    best = int(np.flatnonzero(large)[rates.estimate[large].argmax()])
    n_large = int(large.sum())
    n_pairs = n_large * (kept.size - 1) - n_large * (n_large - 1) // 2
    level = 1 - (1 - confidence_level) / max(1, n_pairs)
    frame = rates.contrasts("ratio", rates.groups[best], "holm", level)
    columns = frame[["estimate", "ci_low", "ci_high"]].to_numpy(dtype=float)
    ratios = np.insert(columns.T, best, [1.0, np.nan, np.nan], axis=1)
    ends = map(np.asarray, rates.ends(t_quantile(confidence_level, rates.df)))
    below, clear = (ratios[[0, 2]] < _FOUR_FIFTHS) & known
    clear &= below
    names = [*map(fmt.label, rates.groups)]
    chance = np.where(clear, "below four fifths beyond chance", "below four fifths")
    remarks = zip(
        np.where(np.arange(known.size) == best, "highest rate", ""),
        np.where(below, chance, ""),
        [f"small ({s:.1%} of the rows)" if s < _SMALL else "" for s in share],
        strict=True,
    )
    of_ratios = [*map(fmt.interval, ratios[1], ratios[2])]
    of_ratios[best] = ""
    cells = list(
        zip(
            names,
            map(fmt.count, rates.support),
            map(fmt.number, rates.estimate),
            map(fmt.interval, *ends),
            map(fmt.number, ratios[0]),
            of_ratios,
            (", ".join(filter(None, parts)) for parts in remarks),
            strict=True,
        )
    )
    order = kept[
        np.argsort(-np.nan_to_num(rates.estimate[kept], nan=-1), kind="stable")
    ]
    words = {"paragraphs": said, "conclusion": note("none_below")}
    if below.any():
        beyond = [f"{names[i]} ({ratios[0, i]:.3f})" for i in order if clear[i]]
        values = {
            "below": fmt.some([names[i] for i in order if below[i]]),
            "beyond": fmt.some(beyond) if beyond else "none",
            "best": names[best],
            "by": by or "group",
        }
        words["conclusion"] = note("below", **values)
        words["answer"] = note("below_by", **values) if beyond else ""
    return [cells[i] for i in order], words
