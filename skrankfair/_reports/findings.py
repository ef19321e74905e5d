"""What an audit found: numbers by metric and group, and what they say in words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import corrected_pvalues, one_test
from .._estimates.equivalence import equivalence_of
from .._estimates.intervals import t_quantile
from .._inputs.validation import Array
from ..metrics import GroupEstimates
from .audit_metric import EQUAL_SCORES, MISTAKES, AuditMetric
from .margins import headline_of_margin, said_of_margin, verdict_of

_MOST_NAMED = 3
#: More groups than this, and a table shows those that matter.
MANY_GROUPS = 30
_FIRST_SHOWN = 10
CORRECTION_NAMES = {"holm": "Holm", "fdr_bh": "BH"}


@dataclass(frozen=True)
class GroupFinding:
    """One group under one metric."""

    group: Hashable
    #: As in `GroupEstimates.to_frame`.
    estimate: float
    standard_error: float
    ci_low: float
    ci_high: float
    support: float
    n_effective: float  # effective number of clusters (or items) behind the test
    pvalue: float
    #: Over the groups of the metric that have enough data for a verdict; NaN for the
    #: others.
    pvalue_corrected: float
    #: What is tested, with its interval: the estimate minus the fair value, or minus
    #: the value of the rest. NaN if nothing is tested.
    difference: float
    difference_low: float
    difference_high: float
    #: Which way the group differs beyond chance: "worse" or "better", "lower" or
    #: "higher" where neither is known to be bad for it, and "" if it does not.
    side: str
    #: Of the two one-sided tests that the difference is within the margin, and
    #: corrected as above; NaN without a margin.
    pvalue_margin: float
    pvalue_margin_corrected: float
    within: bool  # whether it is shown to be within the margin
    missing: str  # why there is no estimate or no interval; empty if both are there

    #: The words for sides in a column of verdicts, where they are not the side itself.
    side_words: ClassVar[Mapping[str, str]] = {
        "worse": "worse off",
        "better": "better off",
    }

    @property
    def label(self) -> str:
        """The label as one line of plain text."""
        return fmt.label(self.group)


@dataclass(frozen=True, eq=False)
class MetricFinding:
    """All groups under one metric."""

    metric: AuditMetric
    result: GroupEstimates
    confidence_level: float
    correction: str = "holm"  # {"holm", "fdr_bh"}
    #: The largest difference from fair that does not matter; None if nobody says so.
    margin: float | None = None
    group_name: str = "group"  # the head of the column of groups
    #: The rows as they were computed when the report was stored; None computes them.
    recorded: tuple[GroupFinding, ...] | None = None

    row_type: ClassVar[type[GroupFinding]] = GroupFinding

    @property
    def tested(self) -> bool:
        """Whether the metric says what is fair."""
        if self.metric.untested:
            return False
        result = self.result
        return result.fair_value is not None or result.metric.against_rest is not None

    @property
    def compares_groups(self) -> bool:
        """Whether it is tested, and has the groups of the audit."""
        return self.tested and self.metric.name != "ndcg"

    @property
    def against_rest(self) -> bool:
        """Whether fair is the value of the rest."""
        return self.result.fair_value is None and self.tested

    @cached_property
    def rows(self) -> tuple[GroupFinding, ...]:
        """One finding per group, in the order of the result."""
        if self.recorded is not None:
            return self.recorded
        result = self.result
        low, high = result.ends(t_quantile(self.confidence_level, result.df))
        effective = self.judged.n_effective
        enough = effective >= fmt.FEW_EFFECTIVE - 1e-9
        columns = {
            "estimate": result.estimate,
            "standard_error": result.standard_error,
            "ci_low": low,
            "ci_high": high,
            "support": result.support,
            "pvalue": result.pvalue,
            "n_effective": effective,
            "pvalue_corrected": corrected_pvalues(
                np.where(enough, result.pvalue, np.nan), self.correction
            ),
            "pvalue_margin": self._margin_pvalues,
            "pvalue_margin_corrected": corrected_pvalues(
                self._margin_pvalues, self.correction
            ),
            **self._differences(),
        }
        lists = {name: np.asarray(column).tolist() for name, column in columns.items()}
        rows = []
        for i, group in enumerate(result.groups):
            row = {name: values[i] for name, values in lists.items()}
            missing = self._missing(
                row["estimate"], row["standard_error"], row["n_effective"]
            )
            side = ""
            if self.tested and not missing:
                side = self._side(row["pvalue_corrected"], row["difference"], i)
            within = self.all_within or bool(
                row["pvalue_margin_corrected"] < 1 - self.confidence_level
            )
            rows.append(
                self.row_type(
                    group=group, side=side, within=within, missing=missing, **row
                )
            )
        return tuple(rows)

    @cached_property
    def _margin_pvalues(self) -> Array:
        """P-values that groups are within the margin; NaN if there is no verdict."""
        if self.recorded is not None:
            return np.array([row.pvalue_margin for row in self.recorded])
        if self.margin is None or not self.tested:
            return np.full(len(self.result.groups), np.nan)
        judged = self.judged
        test = equivalence_of(judged, self.margin, 1 - self.confidence_level)
        missing = [
            bool(self._missing(*numbers))
            for numbers in zip(
                self.result.estimate.tolist(),
                self.result.standard_error.tolist(),
                judged.n_effective.tolist(),
                strict=True,
            )
        ]
        return np.where(missing, np.nan, test.pvalue)

    @cached_property
    def all_within(self) -> bool:
        """Whether no group is further from fair: the intersection-union test."""
        pvalues = self._margin_pvalues
        return bool(pvalues.size and (pvalues < 1 - self.confidence_level).all())

    @property
    def reach(self) -> str:
        """The margin in words."""
        if self.margin is None:
            return ""
        size = f"{100 * self.margin:.4g}" if self.metric.share else f"{self.margin:.4g}"
        of = "the rest" if self.against_rest else "fair"
        return f"within {size}{self.points} of {of}"

    @cached_property
    def judged(self) -> GroupEstimates:
        """What is tested: the result, or its difference from the rest."""
        return self.result.against_rest() if self.against_rest else self.result

    def _differences(self) -> dict[str, Array]:
        names = ("difference", "difference_low", "difference_high")
        result, fair_value = self.result, self.result.fair_value
        if not self.tested:
            return dict.fromkeys(names, np.full(len(result.groups), np.nan))
        if fair_value is None:
            result, fair_value = self.judged, 0.0
        ends = result.ends(t_quantile(self.confidence_level, result.df))
        values = (result.estimate, *map(np.asarray, ends))
        return {
            name: value - fair_value for name, value in zip(names, values, strict=True)
        }

    def _side(self, pvalue: float, difference: float, group: int) -> str:
        if not pvalue < 1 - self.confidence_level or difference == 0:
            return ""
        low = difference < 0
        if self.metric.worse is None:
            return "lower" if low else "higher"
        return "worse" if low == (self.metric.worse == "low") else "better"

    def _missing(self, estimate: float, standard_error: float, effective: float) -> str:
        if np.isnan(estimate):
            return f"no {self.result.metric.unit}"
        if np.isinf(estimate):  # a skew
            return f"no place in the top {self.result.parameters['k']} of some query"
        by_cluster = self.result.variance == "cluster"
        unit = "clusters" if by_cluster else "items"
        if np.isnan(standard_error):
            return f"too few {unit} for an interval"
        if effective < fmt.FEW_EFFECTIVE - 1e-9:
            return (
                f"too little data ({effective:.1f} effective {unit}; a verdict needs "
                f"{fmt.FEW_EFFECTIVE})"
            )
        if standard_error == 0 and not self.result.metric.share:
            return "no variation, so no interval"
        return ""

    @cached_property
    def ordered(self) -> tuple[GroupFinding, ...]:
        """The groups, the worst off first and those without data last."""
        if not self.tested:
            values = [-row.estimate for row in self.rows]
        else:
            sign = -1 if self.metric.worse == "high" else 1
            values = [sign * row.difference for row in self.rows]
        order = np.argsort(np.array(values, dtype=float), kind="stable")
        return tuple(self.rows[i] for i in order)

    @property
    def directed(self) -> bool:
        """Whether one side of what is fair is bad for a group."""
        return self.tested and self.metric.worse is not None

    def on(self, side: str) -> tuple[GroupFinding, ...]:
        """Return the groups on a side beyond chance, the furthest first."""
        rows = self.ordered if side in ("worse", "lower") else reversed(self.ordered)
        return tuple(row for row in rows if row.side == side)

    @property
    def worse(self) -> tuple[GroupFinding, ...]:
        """The groups that are worse off beyond chance, the worst first."""
        return self.on("worse")

    @property
    def better(self) -> tuple[GroupFinding, ...]:
        """The groups that are better off beyond chance, the best first."""
        return self.on("better")

    def surely_on(self, side: str, n_metrics: int) -> tuple[GroupFinding, ...]:
        """Return those on a side also after a correction for the number of metrics."""
        limit = (1 - self.confidence_level) / n_metrics
        return tuple(row for row in self.on(side) if row.pvalue_corrected < limit)

    @cached_property
    def conclusions(self) -> tuple[tuple[str, str, tuple[GroupFinding, ...]], ...]:
        """Sides, the words for them and the groups there, those worse off first.

        Where the one group's gain is the other's loss, only the loss is said.
        """
        found: list[tuple[str, str, tuple[GroupFinding, ...]]] = []
        for side in ("worse", "better", "lower", "higher"):
            rows = self.on(side)
            pvalues = np.array([row.pvalue for row in self.rows])
            if rows and not (found and one_test(pvalues)):
                found.append((side, self.metric.says(side), rows))
        return tuple(found)

    @property
    def kind(self) -> str:
        """The side of the first conclusion, "within" for all groups, or "none"."""
        if self.conclusions:
            return self.conclusions[0][0]
        return "within" if self.all_within else "none"

    @property
    def verdict(self) -> str:
        """What the metric found, in words."""
        if not self.tested:
            return self.metric.untested
        parts = [self._named(words, rows) for _, words, rows in self.conclusions]
        said = " ".join(parts) or self.silence
        return " ".join(filter(None, (said, said_of_margin(self), self.not_shown)))

    @property
    def silence(self) -> str:
        """Why nothing is said of any group."""
        pvalues = [row.pvalue_corrected for row in self.rows if not row.missing]
        known = [p for p in pvalues if not np.isnan(p)]
        if not known:
            return "No group has enough data for a test."
        smallest = fmt.pvalue(min(known))
        what = "change" if self.metric.of_change else "difference"
        return f"The data do not show a {what} (smallest corrected p {smallest})."

    @cached_property
    def shown(self) -> tuple[GroupFinding, ...]:
        """The rows of a table: of many groups those that matter, the worst first."""
        rows = self.ordered
        if len(rows) <= MANY_GROUPS:
            return rows
        judged = [row for row in rows if not row.missing]
        first = {id(row) for row in judged[:_FIRST_SHOWN]}
        return tuple(row for row in rows if row.side or id(row) in first)

    @property
    def not_shown(self) -> str:
        """What the table leaves out, in words; empty if nothing."""
        left = len(self.ordered) - len(self.shown)
        if not left:
            return ""
        little = sum(bool(row.missing) for row in self.ordered)
        text = f"{left:,} more groups do not differ beyond chance"
        more = f"; {little:,} have too little data for a verdict" if little else ""
        return f"{text}{more}."

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of a table of text."""
        level = f"{100 * self.confidence_level:g}% interval"
        header = [self.group_name, "estimate", level, self.result.metric.unit]
        if self.against_rest:
            header.insert(3, "vs rest")
        if self.tested:
            header += ["p", f"p ({CORRECTION_NAMES[self.correction]})"]
            header += ["verdict"] if self.margin is not None else []
        return header, [self._cells_of(row) for row in self.shown]

    def _cells_of(self, row: GroupFinding) -> list[str]:
        interval = f"[{fmt.number(row.ci_low)}, {fmt.number(row.ci_high)}]"
        estimate = row.estimate if np.isfinite(row.estimate) else np.nan
        cells = [row.label, fmt.number(estimate), interval, fmt.count(row.support)]
        if self.against_rest:
            cells.insert(3, fmt.number(row.difference))
        if self.tested:
            pvalues = (row.pvalue, row.pvalue_corrected)
            cells += [fmt.pvalue(np.nan if row.missing else p) for p in pvalues]
            cells += [verdict_of(row)] if self.margin is not None else []
        if row.missing:
            cells[2] = row.missing
        return cells

    def _named(self, what: str, rows: Iterable[GroupFinding]) -> str:
        rows = list(rows)
        named = [f"{row.label} ({self.effect(row)})" for row in rows[:_MOST_NAMED]]
        more = len(rows) - len(named)
        tail = f", and {more} more" if more > 0 else ""
        return f"{what[0].upper()}{what[1:]}: {', '.join(named)}{tail}."

    def effect(self, row: GroupFinding) -> str:
        """Return how far a group is from fair, with the interval."""
        low, high = row.difference_low, row.difference_high
        interval = f"[{self.signed(low)}, {self.signed(high)}]"
        return f"{self.signed(row.difference)}{self.points} {interval}"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the verdict in a form that JSON can hold."""
        result, metric = self.result, self.metric
        names = [part.name for part in fields(GroupFinding)]
        return {
            "metric": metric.name,
            "title": metric.title,
            "meaning": f"{metric.measures} {metric.reading}",
            "verdict": self.verdict,
            "fair_value": result.fair_value,
            "margin": self.margin,
            "all_within": self.all_within,
            "parameters": jsonable(result.parameters),
            "first_pass": jsonable(result.first_pass),
            "unit": result.metric.unit,
            "groups": [
                {name: jsonable(getattr(row, name)) for name in names}
                for row in self.rows
            ],
        }

    @property
    def points(self) -> str:
        """The unit of a difference, to be put behind the number."""
        return " points" if self.metric.share else ""

    def signed(self, value: float) -> str:
        """Return a difference with its sign, in percentage points for shares."""
        if np.isnan(value):
            return "–"
        text = f"{value:+.{self._decimals}f}"
        if self.metric.share:
            text = f"{100 * value:+.1f}"
        return text if float(text) else text.lstrip("+-")

    @cached_property
    def _decimals(self) -> int:
        """Decimals that leave two figures of the largest difference, at least two."""
        sizes = [abs(row.difference) for row in self.rows]
        largest = max((size for size in sizes if size > 0), default=1.0)
        return int(np.clip(1 - np.floor(np.log10(largest)), 2, 8))


def headline(
    findings: Iterable[MetricFinding], task: str = "ranking"
) -> tuple[str, str]:
    """Return the sentence to remember, and a second one to add if there is one.

    A group is called worse off when the p-value of one metric is small enough after a
    correction for the number of metrics too: this is the sentence that is remembered.
    """
    findings = [f for f in findings if f.tested]
    if not findings:
        return "None of the requested metrics says what is fair.", ""
    if len(findings[0].rows) == 1:
        return "There is only one group, so there is nothing to compare.", ""
    if all(row.missing for f in findings for row in f.rows):
        return "There is too little data to tell the groups apart.", ""
    merit = [f for f in findings if f.metric.merit]
    if directed := [f for f in merit or findings if f.directed]:
        found, aside = _directed_headline(findings, directed, bool(merit))
        if task != "ranking" and (apart := _by_question(directed)):
            found, aside = apart, "The notes say why both can be so."
        elif task != "ranking":
            aside = " ".join(filter(None, (aside, _at_equal_scores(directed))))
    else:
        found, aside = _neutral_headline(findings)
    return found, " ".join(filter(None, (aside, headline_of_margin(findings))))


def _directed_headline(
    findings: Sequence[MetricFinding], looked_at: Sequence[MetricFinding], merit: bool
) -> tuple[str, str]:
    """Return the headline where it is known which side is bad for a group."""
    what = "worse off" if merit else looked_at[0].metric.says("worse")
    worse = _labels(f.on("worse") for f in looked_at)
    sure = _labels(f.surely_on("worse", len(looked_at)) for f in looked_at)
    better_too = _labels(f.surely_on("better", len(looked_at)) for f in looked_at)
    mixed = [label for label in sure if label in better_too]
    clear = [label for label in sure if label not in mixed]
    hints = [label for label in worse if label not in sure]
    disagree = (
        f"The metrics disagree about {fmt.some(mixed)}: worse off by some of them and "
        "better off by others."
    )
    if clear:
        are = "is" if len(clear) == 1 else "are"
        groups = f"{len(clear)} of {len(findings[0].rows)} groups {are}"
        asides = [disagree] if mixed else []
        if hints:
            asides.append(f"Single metrics also point at {fmt.some(hints)}.")
        return f"{groups} {what} beyond chance: {fmt.some(clear)}.", " ".join(asides)
    if mixed:
        return disagree, ""
    if hints:
        clearly = f"No group is clearly {what}."
        return clearly, f"Single metrics point at {fmt.some(hints)}."
    found = "No group was found to be worse off."
    for f in findings:
        if lower := _labels([f.on("worse")]):
            return found, f"Some are {f.metric.says('worse')}: {fmt.some(lower)}."
    if better := _labels(f.on("better") for f in looked_at):
        return found, f"Some are better off: {fmt.some(better)}."
    return "The data do not show a difference between the groups.", ""


def _by_question(looked_at: Sequence[MetricFinding]) -> str:
    """Return who is worse off by which question, where each names other groups."""
    worse = {
        question: _labels(
            f.surely_on("worse", len(looked_at))
            for f in looked_at
            if f.metric.question == question
        )
        for question in (MISTAKES, EQUAL_SCORES)
    }
    mistakes, equal_scores = worse.values()
    if not mistakes or not equal_scores or {*mistakes} & {*equal_scores}:
        return ""
    return (
        f"By its mistakes the score treats {fmt.some(mistakes)} worse beyond chance, "
        f"and at equal scores {fmt.some(equal_scores)}."
    )


def _at_equal_scores(looked_at: Sequence[MetricFinding]) -> str:
    """Say whose mistakes alone are worse, which unlike base rates can explain."""
    n_metrics = len(looked_at)
    worse = {
        question: _labels(
            f.surely_on("worse", n_metrics) if question == MISTAKES else f.on("worse")
            for f in looked_at
            if f.metric.question == question
        )
        for question in (MISTAKES, EQUAL_SCORES)
    }
    alone = [label for label in worse[MISTAKES] if label not in worse[EQUAL_SCORES]]
    if not alone or not any(f.metric.question == EQUAL_SCORES for f in looked_at):
        return ""
    return f"At equal scores the data do not show it for {fmt.some(alone)}."


def _neutral_headline(findings: Sequence[MetricFinding]) -> tuple[str, str]:
    """Return the headline where nobody has said which scores are good for a group."""
    sure = [
        f
        for f in findings
        if any(f.surely_on(side, len(findings)) for side in ("lower", "higher"))
    ]
    if not sure:
        return "The data show no clear difference between the groups.", ""
    names = ", ".join(f.metric.title for f in sure)
    number = f"{len(sure)} of {len(findings)} metrics"
    differ = f"The groups differ beyond chance in {number}: {names}."
    unknown = (
        "Who is worse off depends on which end of the score is good for people; "
        "favorable='high' or 'low' says it."
    )
    return differ, unknown


def conflicts(findings: Iterable[MetricFinding]) -> list[str]:
    """Return notes on findings that are known to conflict, if any do."""
    findings = [f for f in findings if f.directed and f.metric.merit]
    asked = {f.metric.question for f in findings}
    if not {MISTAKES, EQUAL_SCORES} <= asked:
        return []
    worse: dict[str, set[Hashable]] = {question: set() for question in asked}
    for f in findings:
        worse[f.metric.question] |= {row.group for row in f.on("worse")}
    if worse[MISTAKES] <= worse[EQUAL_SCORES]:
        return []
    conflict = (
        "Equal outcomes at equal scores and equal rates of mistakes are known to "
        "conflict: where groups have the outcome with unlike frequency, no imperfect "
        "score has both (Kleinberg et al. 2017; Chouldechova 2017). Here a group is "
        "worse off by its mistakes, and not shown to be so at equal scores; which of "
        "the two matters for the use of the scores has to be decided."
    )
    return [conflict]


def _labels(found: Iterable[Iterable[GroupFinding]]) -> list[str]:
    """Return the labels of groups, each group once."""
    labels = {row.group: row.label for rows in found for row in rows}
    return list(labels.values())


def jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        keys = [fmt.label(key) for key in value]
        if len(set(keys)) < len(keys):  # as of 1 and "1"
            keys = [ascii(key) for key in value]
        return dict(zip(keys, map(jsonable, value.values()), strict=True))
    if isinstance(value, tuple | list):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
