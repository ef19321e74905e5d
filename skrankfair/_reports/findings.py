"""The findings of an audit: numbers by metric and group, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, compress
from math import isclose
from typing import Any, NamedTuple

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.arrays import cached_read_only, read_only
from .._estimates.estimates import (
    Estimates,
    contrasts_of,
    correct,
    corrected_pvalues,
    margin_bounds,
)
from .._estimates.finalize import OfRest
from .._estimates.scales import PlainScale, t_quantile
from .._inputs.validation import Array
from ..metrics import GroupEstimates
from .catalog import EQUAL_SCORES, MISTAKES, AuditMetric, note

#: More groups than this, and a table shows those that matter, and the first ones.
MANY_GROUPS = 30
FIRST_SHOWN = 10
#: Numbers of a group with the ends of their intervals.
VALUE = ("estimate", "ci_low", "ci_high")
DIFFERENCE = ("difference", "difference_low", "difference_high")
_MOST_NAMED = 3
#: Units of rates that count people (or items).
_COUNTED = ("rows", "positives", "negatives", "selected")
#: Labels that say nothing without the name of their column.
_BARE = {"yes", "no", "y", "n", "true", "false", "0", "1", "0.0", "1.0"}
CORRECTION_NAMES = {"holm": "Holm", "fdr_bh": "BH"}
#: The sides of groups in a column of verdicts, of an audit and of a change.
VERDICTS = {"worse": "worse off", "better": "better off"}
CHANGES = {"worse": "further from fair", "better": "closer to fair"}


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

    @property
    def label(self) -> str:
        """The label as one line of plain text."""
        return fmt.label(self.group)

    @property
    def kind(self) -> str:
        """The side, or "within", or "" if nothing is shown."""
        return self.side or ("within" if self.within else "")


class FairnessDistances(NamedTuple):
    """How far groups are from fair, each of shape (G,)."""

    before: Array
    now: Array
    error: Array  # standard error of the sum of both
    fair: float  # the value that they are the distances from

    @classmethod
    def of_change(
        cls, change: GroupEstimates, now: GroupEstimates, before: GroupEstimates
    ) -> FairnessDistances:
        """Return the distances of two results, in the order of their change.

        They are those from 0 where no value is fair. The variance of the sum is
        ``2 V_before + 2 V_now - V_change``.
        """
        fair = now.fair_value or 0.0
        values, variance = [], -(change.standard_error**2)
        for result in (before, now):
            number = {group: i for i, group in enumerate(result.groups)}
            index = np.array([number.get(group, -1) for group in change.groups])
            values.append(np.where(index < 0, np.nan, result.estimate[index] - fair))
            error = np.where(index < 0, np.nan, result.standard_error[index])
            variance = variance + 2 * error**2
        error = np.sqrt(np.maximum(variance, 0.0))
        return read_only(cls(values[0], values[1], error, fair))

    def pvalues(self, change: GroupEstimates) -> Array:
        """Return one-sided p-values that groups are not closer, or not further.

        ``now² - before²`` is the change times the sum of both signed distances, so that
        each of the two has to be on its side of 0, at the whole level (the
        intersection-union test). Each of both verdicts is false at most at this rate.
        """
        with np.errstate(invalid="ignore"):
            total = PlainScale(self.before + self.now, self.error)
        return np.maximum(change.pvalue, total.test(0.0, change.df)[1]) / 2


@dataclass(frozen=True, eq=False)
class MetricFinding:
    """All groups under one metric."""

    metric: AuditMetric  # in the words of the report
    result: GroupEstimates
    confidence_level: float
    correction: str = "holm"  # {"holm", "fdr_bh"}
    #: The largest difference from fair that does not matter; None if nobody says so.
    margin: float | None = None
    group_name: str = "group"  # the head of the column of groups
    #: The rows as they were computed when the report was stored; None computes them.
    recorded: tuple[GroupFinding, ...] | None = None
    #: Of a change, how far groups were from fair (or from 0) and are now.
    distances: FairnessDistances | None = None
    #: By group the one that it is compared with, where that is not the rest.
    references: Mapping[Hashable, Hashable] = field(default_factory=dict)

    @property
    def tested(self) -> bool:
        """Whether the metric says what is fair."""
        return self.result.says_fair and not self.metric.untested

    @property
    def directed(self) -> bool:
        """Whether one side of what is fair is bad for a group."""
        return self.tested and self.metric.bad is not None

    @property
    def against_rest(self) -> bool:
        """Whether fair is the value of the rest, or of a reference."""
        return self.result.fair_value is None and self.tested

    @cached_read_only
    def judged(self) -> tuple[Array, Estimates, Array]:
        """The numbers of the groups that are judged, the tests, and effective clusters.

        What is tested is the result, its difference from the rest or from a reference,
        or the estimate without a slope.
        """
        result, effective = self.result, self.result.n_effective
        judged = np.arange(len(result.groups))
        if self.against_rest and self.references:
            number = {group: i for i, group in enumerate(result.groups)}
            others = [number.get(self.references.get(g), i) for g, i in number.items()]
            first = np.flatnonzero(np.array(others) != judged)
            second = np.array(others)[first]
            gaps = contrasts_of(result, first, second, "difference")
            effective = effective.copy()
            effective[first] = np.fmin(effective[first], effective[second])
            return first, gaps, effective
        gap = result.as_gap() if self.tested else result
        return judged, gap.as_estimates, gap.n_effective

    @property
    def compared_with(self) -> str:
        """What the difference is from, where that is no constant; or empty."""
        if self.against_rest and self.references:
            names = {fmt.label(group) for group in self.references.values()}
            return names.pop() if len(names) == 1 else "the reference"
        slope = "slope" if self.tested and self.result.metric.slope else ""
        return "the rest" if self.against_rest else slope

    @cached_property
    def rows(self) -> tuple[GroupFinding, ...]:
        """One finding per group, in the order of the result."""
        if self.recorded is not None:
            return self.recorded
        result, level = self.result, self.confidence_level
        judged, tested, n_effective = self.judged
        difference, pvalue = np.full((3, len(result.groups)), np.nan), result.pvalue
        pvalue_margin = np.full(len(result.groups), np.nan)
        if self.tested:
            fair = 0.0 if self.compared_with else result.fair_value
            ends = tested.ends(t_quantile(level, tested.df))
            difference[:, judged] = np.array([tested.scale.estimate, *ends]) - fair
            pvalue = np.full(len(result.groups), np.nan)
            pvalue[judged] = tested.t_and_pvalue[1] if result.has_pvalue else np.nan
            if self.margin is not None:
                test = tested.equivalence_test(self.margin, 1 - level)
                pvalue_margin[judged] = test.pvalue
        pvalue_margin[list(map(bool, self._missing))] = np.nan  # these have no verdict
        low, high = result.ends(t_quantile(level, result.df))
        enough = n_effective >= fmt.FEW_EFFECTIVE - 1e-9
        corrected = corrected_pvalues(np.where(enough, pvalue, np.nan), self.correction)
        in_margin = corrected_pvalues(pvalue_margin, self.correction)
        # Of all groups together no correction is needed: the intersection-union test.
        others = self._not_references
        all_within = (pvalue_margin[others] < 1 - level).all()
        columns = {
            "estimate": result.estimate,
            "standard_error": result.standard_error,
            "ci_low": low,
            "ci_high": high,
            "support": result.support,
            "n_effective": n_effective,
            "pvalue": pvalue,
            "pvalue_corrected": corrected,
            **dict(zip(DIFFERENCE, difference, strict=True)),
            "side": self._sides(corrected, difference[0]),
            "pvalue_margin": pvalue_margin,
            "pvalue_margin_corrected": in_margin,
            "within": others & (all_within | (in_margin < 1 - level)),
            "missing": self._missing,
        }
        values = zip(*(np.asarray(c).tolist() for c in columns.values()), strict=True)
        return tuple(
            GroupFinding(group, **dict(zip(columns, row, strict=True)))
            for group, row in zip(result.groups, values, strict=True)
        )

    @cached_property
    def _missing(self) -> list[str]:
        """Why groups have no estimate, interval or verdict; empty for the others."""
        result, effective = self.result, self.judged[2]
        estimate, error = result.estimate, result.standard_error
        reasons = {
            "no_data": np.isnan(estimate),
            "no_place": np.isinf(estimate),  # a skew
            "few_units": np.isnan(error),
            "little_data": effective < fmt.FEW_EFFECTIVE - 1e-9,
            "no_variation": (error == 0) & (not result.metric.share),
        }
        first = np.select(list(reasons.values()), list(reasons), "")
        where = " in one of the two" if self.metric.is_change else ""
        said = {"data": result.metric.unit + where, "k": result.parameters.get("k")}
        said |= {"unit": fmt.units(result.sums), "few": fmt.FEW_EFFECTIVE}
        return [
            note(name, effective=number, **said) if name else ""
            for name, number in zip(first.tolist(), effective, strict=True)
        ]

    def _sides(self, pvalue: Array, difference: Array) -> Array:
        """Return on which side of fair groups are, or how their distance changed."""
        alpha = 1 - self.confidence_level
        known = np.array([not missing for missing in self._missing])
        shown = self.tested & known & (pvalue < alpha) & (difference != 0)
        sides = np.where(difference < 0, "lower", "higher")
        if self.distances is not None and self.metric.bad is not None:
            before, now = map(np.abs, self.distances[:2])
            clear = corrected_pvalues(self.distances.pvalues(self.result)) < alpha
            sides = np.where(clear, np.where(now < before, "better", "worse"), sides)
        elif self.metric.bad is not None:
            worse = (difference < 0) == (self.metric.bad == "low")
            sides = np.where(worse, "worse", "better")
        return np.where(shown, sides, "")

    @property
    def _not_references(self) -> Array:
        """Which groups are not themselves what others are compared with, (G,)."""
        return np.array([not self.is_reference(group) for group in self.result.groups])

    def is_reference(self, group: Hashable) -> bool:
        """Return whether the group is one that others are compared with."""
        return self.against_rest and group in self.references.values()

    @cached_property
    def all_within(self) -> bool:
        """Whether all groups that are compared are shown to be within the margin."""
        within = [row.within for row in compress(self.rows, self._not_references)]
        return bool(within) and all(within)

    @cached_property
    def ordered(self) -> tuple[GroupFinding, ...]:
        """The groups, the worst off first and those without data last."""
        sign = -1 if self.metric.bad == "high" else 1
        values = [
            sign * row.difference if self.tested else -row.estimate for row in self.rows
        ]
        order = np.argsort(np.array(values, dtype=float), kind="stable")
        return tuple(self.rows[i] for i in order)

    @cached_property
    def shown(self) -> tuple[GroupFinding, ...]:
        """The rows of a table: of many groups those that matter, the worst first."""
        rows = self.ordered
        if len(rows) <= MANY_GROUPS:
            return rows
        judged = [row for row in rows if not row.missing]
        first = {id(row) for row in judged[:FIRST_SHOWN]}
        return tuple(row for row in rows if row.side or id(row) in first)

    def groups_on(self, side: str, n_metrics: float = 1) -> tuple[GroupFinding, ...]:
        """Return the groups on a side beyond chance, the furthest first.

        Those, too, after a correction for this number of metrics.
        """
        limit = (1 - self.confidence_level) / n_metrics
        rows = self.ordered if side in ("worse", "lower") else reversed(self.ordered)
        return tuple(r for r in rows if r.side == side and r.pvalue_corrected < limit)

    @cached_property
    def conclusions(self) -> tuple[tuple[str, str, tuple[GroupFinding, ...]], ...]:
        """Sides, the words for them and the groups there, those worse off first.

        Where the one group's gain is the other's loss, only the loss is said.
        """
        sides = ("worse", "better", "lower", "higher")
        alone = self.alone(chain.from_iterable(map(self.groups_on, sides)))
        on = {side: tuple(row for row in alone if row.side == side) for side in sides}
        return tuple((s, self.metric.sides[s], rows) for s, rows in on.items() if rows)

    def alone(self, rows: Iterable[GroupFinding]) -> list[GroupFinding]:
        """Return the groups but those that are the rest of an earlier one.

        Both have one test. Groups without a difference do not show it.
        """
        alone, same = list[GroupFinding](), partial(isclose, rel_tol=1e-6)
        for row in rows:
            value, near = row.estimate - row.difference, 1e-6 * abs(row.difference)
            if not any(
                same(row.difference, -other.difference)
                and same(row.pvalue, other.pvalue)
                and not (self.against_rest and abs(value - other.estimate) > near)
                for other in alone
                if row.difference
            ):
                alone.append(row)
        return alone

    @property
    def kind(self) -> str:
        """The side of the first conclusion, "within" for all groups, or "none"."""
        if self.conclusions:
            return self.conclusions[0][0]
        return "within" if self.all_within else "none"

    def sentences(
        self,
        n_metrics: float = 1,
        amount: Callable[[GroupFinding], str] | None = None,
        but: Container[tuple[str, Hashable]] = (),
    ) -> list[str]:
        """Return a sentence for each side of fair, with the groups that are there.

        `amount` says how far a group is; None says it by the values of group and rest.
        Words and groups of `but` have been said.
        """
        said, text_of = [], amount or self.values_of
        for side, words, concluded in self.conclusions:
            found = [row for row in self.groups_on(side, n_metrics) if row in concluded]
            if rows := [row for row in found if (words, row.group) not in but]:
                first = rows[:_MOST_NAMED]
                groups = [f"{self.called(row)} ({text_of(row)})" for row in first]
                more = len(rows) - len(groups)
                tail = f", and {more} more" if more > 0 else ""
                said.append(
                    f"{words[0].upper()}{words[1:]}: {', '.join(groups)}{tail}."
                )
        return said

    def called(self, row: GroupFinding) -> str:
        """Return the label of a group, with its column where it is a mere yes or no."""
        bare = row.label.lower() in _BARE and self.group_name != "group"
        return f"{self.group_name}={row.label}" if bare else row.label

    def values_of(self, row: GroupFinding) -> str:
        """Return the value of a group and what it is compared with, in percent.

        Rates of rows that are not weighed come with their counts.
        """
        fair = self.result.fair_value
        rate = self.metric.share and (fair or self.against_rest)
        if not rate or min(row.estimate, row.estimate - row.difference) < 0:
            return self.effect(row)
        if not self.against_rest:
            return f"{row.estimate:.1%}; {fair:.0%} would be equal"
        value, metric = row.estimate - row.difference, self.result.metric
        other, sums = self.references.get(row.group), self.result.sums
        who = "the rest" if other is None else fmt.label(other)
        counted = metric.unit in _COUNTED and sums.unweighted is None
        if not (counted and self.metric.decided):
            return f"{row.estimate:.1%}; {value:.1%} of {who}"
        index = self.result.groups.index(row.group if other is None else other)
        rest = sums.estimate(OfRest(metric.support, 0))
        total = (rest if other is None else self.result.support)[index]
        counts = f"{row.estimate * row.support:,.0f} of {row.support:,.0f}"
        of_others = f"{value * total:,.0f} of {total:,.0f} of {who}"
        return f"{counts}, {row.estimate:.1%}; {of_others}, {value:.1%}"

    @property
    def verdict(self) -> str:
        """What the metric found, in words."""
        if self.tested:
            said = self.sentences(amount=self.effect) or [self.silence]
            said.append(self.margin_verdict)
        else:
            said = [self.metric.untested]
        return " ".join(filter(None, [*said, self.left_out]))

    @cached_property
    def compared(self) -> tuple[GroupFinding, ...]:
        """The groups that have enough data and a test."""
        known = (row for row in self.rows if not np.isnan(row.pvalue_corrected))
        return tuple(row for row in known if not row.missing)

    @property
    def silence(self) -> str:
        """Why the metric names no group."""
        if self.metric.is_change and unchanged(self.rows):
            return note("same")
        if not self.compared:
            alone = len(self.rows) == 1 and not self.metric.is_change
            return note("one_group" if alone else "no_test")
        what = "change" if self.metric.is_change else "difference"
        smallest = fmt.pvalue(min(row.pvalue_corrected for row in self.compared))
        return f"The data do not show a {what} (smallest corrected p {smallest})."

    @property
    def left_out(self) -> str:
        """Which groups the table leaves out, and which have no verdict, or ""."""
        shown, number = self.shown, len(self.rows)
        if not self.tested:
            few = f"The table shows {len(shown):,} of {number:,} groups."
            return few if len(shown) < number else ""
        said = []
        if left := sum(row not in shown for row in self.compared):
            groups = "more group does" if left == 1 else "more groups do"
            verb = "change" if self.metric.is_change else "differ"
            said.append(f"{left:,} {groups} not {verb} beyond chance.")
        return " ".join([*said, *without_verdict([self])])

    @property
    def margin_words(self) -> str:
        """The margin in words."""
        scale = 100 if self.metric.share else 1
        fair = "before" if self.metric.is_change else "fair"
        fair = self.compared_with if self.against_rest else fair
        return f"within {scale * (self.margin or 0.0):.4g}{self.points} of {fair}"

    @property
    def margin_verdict(self) -> str:
        """Which groups are shown to be within the margin; empty without one."""
        if self.margin is None:
            return ""
        reach = self.margin_words
        if self.all_within:
            return f"Every group is shown to be {reach}."
        within = [row.label for row in self.rows if row.within]
        unclear = [r.label for r in self.rows if self.verdict_on(r) == "cannot tell"]
        said = [f"Shown to be {reach}: {fmt.some(within)}."] if within else []
        if unclear:
            said.append(f"The data cannot tell for {fmt.some(unclear)}.")
        return " ".join(said) or f"No group is shown to be {reach}."

    def verdict_on(self, row: GroupFinding) -> str:
        """Return the verdict on a group in a few words; empty without enough data."""
        if row.missing or not self.tested:
            return ""
        if self.is_reference(row.group):
            return "the reference"
        words = CHANGES if self.metric.is_change else VERDICTS
        verdicts = words.get(row.side, row.side), "within the margin" * row.within
        return ", ".join(filter(None, verdicts)) or "cannot tell"

    def values_then(self, row: GroupFinding) -> dict[str, float]:
        """Return the values of a group before and now; none unless it is a change."""
        place, values = self.result.groups.index(row.group), self.distances
        if values is None:
            return {}
        both = {"before": values.before, "now": values.now}
        return {name: values.fair + of[place].item() for name, of in both.items()}

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of a table of text."""
        level = f"{100 * self.confidence_level:g}% interval"
        names = ["before", "now", "change"] if self.metric.is_change else ["estimate"]
        header = [self.group_name, *names, level, self.result.metric.unit]
        if self.compared_with:
            header.insert(-1, f"vs {self.compared_with.removeprefix('the ')}")
        if self.tested:
            header += ["p", f"p ({CORRECTION_NAMES[self.correction]})"]
            header += ["verdict"] if self.margin is not None else []
        table = []
        for row in self.shown:
            interval = fmt.interval(row.ci_low, row.ci_high)
            estimate = row.estimate if np.isfinite(row.estimate) else np.nan
            values = map(fmt.number, (*self.values_then(row).values(), estimate))
            cells = [row.label, *values, row.missing or interval]
            if self.compared_with:
                cells.append(fmt.number(row.difference))
            cells.append(fmt.count(row.support))
            if self.tested:
                pvalues = (row.pvalue, row.pvalue_corrected)
                cells += [fmt.pvalue(np.nan if row.missing else p) for p in pvalues]
                cells += [self.verdict_on(row)] if self.margin is not None else []
            table.append(cells)
        return header, table

    def effect(self, row: GroupFinding) -> str:
        """Return how far a group is from fair, with the interval.

        Of a change the values before and now come first.
        """
        size = f"{self.gap_text(row.difference)} {self.interval(row)}"
        text = "{:.1%}" if self.metric.share else f"{{:.{self._decimals}f}}"
        values = " → ".join(map(text.format, self.values_then(row).values()))
        return f"{values}, {size}" if values else size

    def gap_text(self, value: float) -> str:
        """Return a difference with its sign and its unit; a dash for NaN."""
        return self.signed_number(value) + ("" if np.isnan(value) else self.points)

    def interval(self, row: GroupFinding) -> str:
        """Return the interval of how far a group is from fair; empty without one."""
        ends = map(self.signed_number, (row.difference_low, row.difference_high))
        return "" if np.isnan(row.difference_low) else f"[{', '.join(ends)}]"

    @property
    def points(self) -> str:
        """The unit of a difference, to be put behind the number."""
        return " points" if self.metric.share else ""

    def signed_number(self, value: float) -> str:
        """Return a difference with its sign, in percentage points for shares."""
        if np.isnan(value):
            return "–"
        scale, decimals = (100, 1) if self.metric.share else (1, self._decimals)
        text = f"{scale * value:+.{decimals}f}"
        return text if float(text) else text.lstrip("+-")

    @cached_property
    def _decimals(self) -> int:
        """Decimals that leave two figures of the largest difference, at least two."""
        sizes = [abs(row.difference) for row in self.rows]
        largest = max((size for size in sizes if size > 0), default=1.0)
        return int(np.clip(1 - np.floor(np.log10(largest)), 2, 8))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the verdict in a form that JSON can hold."""
        result, metric = self.result, self.metric
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
                jsonable(vars(row) | self.values_then(row)) for row in self.rows
            ],
        }


def unchanged(rows: Iterable[GroupFinding]) -> bool:
    """Return whether changes are known and all 0 but for the rounding of sums."""
    known = [row for row in rows if not np.isnan(row.estimate)]
    sizes = [abs(row.estimate) + row.standard_error for row in known]
    return bool(known) and all(size < 1e-14 for size in sizes)


def without_verdict(findings: list[MetricFinding]) -> list[str]:
    """Return a sentence on groups of which no metric can tell, though it can of others.

    Nothing is said of groups whose values have no variation.
    """
    if not any(f.compared for f in findings):
        return []
    rows = [(f.called(row), row) for f in findings for row in f.rows]
    known = {r.group for _, r in rows if r.missing in ("", note("no_variation"))}
    little = list(dict.fromkeys(said for said, r in rows if r.group not in known))
    return [note("little_for", groups=fmt.some(little))] if little else []


def answers(
    findings: Sequence[MetricFinding], sections: Sequence[Any]
) -> tuple[tuple[str, str], ...]:
    """Return each question of a reader that metrics and sections answer, and how.

    A group is named where the p-value of a metric is small enough after a correction
    for the number of metrics too: these are the sentences that are remembered. Where
    none is, a section may answer the question.
    """
    tested = [f for f in findings if f.tested]
    if not tested:
        return (("", note("nothing_fair")),)[: len(findings)]
    if not any(f.compared for f in tested):
        return (("", note("one_group" if len(tested[0].rows) == 1 else "too_little")),)
    said, undirected = [], False
    for question in dict.fromkeys(f.metric.question for f in tested):
        asked = [f for f in tested if f.metric.question == question]
        sentences: list[str] = []
        known = set[tuple[str, Hashable]]()  # two metrics may find the same
        for f in asked:
            more = f.sentences(len(tested), but=known)
            known |= {
                (words, row.group)
                for side, words, _ in f.conclusions
                for row in f.groups_on(side, len(tested))
            }
            undirected |= bool(more and f.metric.worse and not f.metric.favorable)
            sentences += more
        hints = any(f.conclusions for f in asked)
        enough = any(f.compared for f in asked)
        silent = "hinted" if hints else "silent" if enough else "too_little"
        of_sections = {s.answer: s for s in sections if s.question == question}
        sentences = sentences or [*of_sections] or [note(silent, number=len(tested))]
        said.append((question, " ".join(sentences + without_verdict(asked))))
    if undirected:
        said.append(("", note("undirected")))
    if margins := _margin_headline(tested):
        said.append(("", margins))
    return tuple(said)


def _margin_headline(tested: Iterable[MetricFinding]) -> str:
    """Return which groups are within the margins of all metrics; empty without any.

    A group has to be within the margin of every metric that looks at outcomes, each
    tested without a correction (the intersection-union test); over groups the largest
    p-values are corrected by Holm's method.
    """
    with_margin = [f for f in tested if f.margin is not None]
    looked_at = [f for f in with_margin if f.metric.merit] or with_margin
    if not looked_at:
        return ""
    titles = ", ".join(f.metric.title for f in looked_at)
    several = len(looked_at) > 1 and looked_at[0].metric.merit
    by_all = "by every metric of outcomes" if several else f"of {titles}"
    if all(f.all_within for f in looked_at):
        return f"Every group is shown to be within the margin {by_all}."
    rows = [compress(f.rows, f._not_references) for f in looked_at]
    pvalues = [{row.group: row.pvalue_margin for row in of} for of in rows]
    groups = [group for group in pvalues[0] if all(group in of for of in pvalues)]
    largest = np.max([[of[group] for group in groups] for of in pvalues], axis=0)
    alpha, corrected = 1 - looked_at[0].confidence_level, correct(largest, "holm")
    labels = [fmt.label(g) for g, p in zip(groups, corrected, strict=True) if p < alpha]
    if not labels:
        return f"No group is shown to be within the margin {by_all}."
    are = f"groups {'is' if len(labels) == 1 else 'are'} shown to be within the margin"
    return f"{len(labels)} of {len(groups)} {are} {by_all}: {fmt.some(labels)}."


def conflicts(findings: Iterable[MetricFinding]) -> list[str]:
    """Return a note on findings that are known to conflict, if some do.

    Worse off by mistakes is who `answers` says to be. A change further from fair is
    none for the worse, so that changes never conflict.
    """
    tested, worse = [f for f in findings if f.tested], dict[str, set[str]]()
    for f in tested:
        if f.directed and f.metric.merit and not f.metric.is_change:
            number = len(tested) if f.metric.topic == MISTAKES else 1
            rows = worse.setdefault(f.metric.topic, set())
            rows |= {row.label for row in f.groups_on("worse", number)}
    both = {MISTAKES, EQUAL_SCORES} <= worse.keys()
    alone = sorted(worse[MISTAKES] - worse[EQUAL_SCORES]) if both else []
    return [note("conflict", groups=fmt.some(alone))] if alone else []


def margins_of(
    margin: Any, metrics: Iterable[AuditMetric], confidence_level: float
) -> dict[str, float]:
    """Return the margin of each of these metrics that has one.

    Raises
    ------
    ValueError
        For a margin that is not positive, or of a metric that the audit does not have,
        or for a level at which two one-sided tests have no meaning.
    """
    if margin is None:
        return {}
    if not confidence_level > 0.5:
        raise ValueError(
            f"confidence_level must be above 0.5 with a margin; got {confidence_level}."
        )
    tested = [metric.name for metric in metrics if not metric.untested]
    if not tested:
        raise ValueError(f"margin must be None without a tested metric; got {margin}.")
    given = margin if isinstance(margin, Mapping) else dict.fromkeys(tested, margin)
    for name, size in given.items():
        if name not in tested:
            raise ValueError(
                f"margin must be of metrics of this audit ({', '.join(tested)}); got "
                f"{name!r}."
            )
        margin_bounds(size, "difference")
        if np.ndim(size):
            raise ValueError(f"margin must be one number per metric; got {size!r}.")
    return {name: float(size) for name, size in given.items()}


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
