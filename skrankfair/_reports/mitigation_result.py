"""What a mitigation moved, and what it cost: numbers, words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import t_test
from .._inputs.validation import Array
from ..inference import PredictiveParityTest, compare
from ..metrics import GroupEstimates
from .audit import AuditReport
from .catalog import BY_NAME
from .findings import corrected_pvalues

if TYPE_CHECKING:
    import pandas as pd

    from ..display import MitigationDisplay

_LOSSES = ("log_loss", "squared_error")
_TITLES = {
    "auc": "AUC",
    "log_loss": "log loss",
    "squared_error": "squared error",
    "ndcg": "NDCG",
}


class Change(NamedTuple):
    """One metric before and after, and the paired difference.

    Attributes
    ----------
    before, after : GroupEstimates
        Of a disparity, the difference from what is fair.
    change : GroupEstimates
        After less before, on the same clusters.
    """

    before: GroupEstimates
    after: GroupEstimates
    change: GroupEstimates

    @classmethod
    def of(cls, before: GroupEstimates, after: GroupEstimates) -> Change:
        """Compare two results of one metric."""
        return cls(before, after, compare(after, before))


@dataclass(frozen=True, eq=False, repr=False)
class MitigationReport:
    """What a mitigation moved, and what it cost: from `skrankfair.mitigation_report`.

    Attributes
    ----------
    audit_before, audit_after : AuditReport
        All metrics of both scores.
    disparities : dict of Change
        By metric; fair is 0.
    costs : dict of Change
        "ndcg", "auc", and "log_loss" or "squared_error", of all rows.
    parity_before, parity_after : PredictiveParityTest or None
        Of equal outcomes at equal scores; None where it cannot be tested.
    confidence_level : float
    notes : tuple of str
        What a reader should know, such as a cost that was left out.
    """

    audit_before: AuditReport
    audit_after: AuditReport
    disparities: Mapping[str, Change]
    costs: Mapping[str, Change]
    parity_before: PredictiveParityTest | None
    parity_after: PredictiveParityTest | None
    confidence_level: float
    notes: tuple[str, ...] = ()

    @cached_property
    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        parts = [
            self._rows("disparity", name, change)
            for name, change in self.disparities.items()
        ]
        parts += [
            self._rows("cost", name, change) for name, change in self.costs.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def _rows(self, kind: str, name: str, change: Change) -> pd.DataFrame:
        import pandas as pd

        moved = change.change
        fair = change.before.fair_value if kind == "disparity" else 0.0
        before, after = (r.estimate - (fair or 0.0) for r in change[:2])
        low, high = moved.confidence_interval(self.confidence_level)
        corrected = corrected_pvalues(moved.pvalue)
        groups = np.empty(len(moved.groups), dtype=object)
        groups[:] = moved.groups if kind == "disparity" else "all"
        with np.errstate(invalid="ignore"):
            clear = corrected < 1 - self.confidence_level
        if kind == "cost":
            better = before > after if name in _LOSSES else after > before
            verdict = np.where(better, "better", "worse")
        else:
            closer, sure = self._distance(change, before, after)
            verdict = np.where(closer, "closer to fair", "further from fair")
            # The other side of fair, and no nearer to it beyond chance.
            verdict = np.where(sure, verdict, "past fair")
        verdict = np.where(clear, verdict, "no change shown")
        return pd.DataFrame(
            {
                "kind": kind,
                "metric": name,
                "group": groups,
                "before": before,
                "after": after,
                "change": moved.estimate,
                "std_error": moved.standard_error,
                "ci_low": low,
                "ci_high": high,
                "pvalue": moved.pvalue,
                "pvalue_corrected": corrected,
                "verdict": verdict,
            }
        )

    def _distance(
        self, change: Change, before: Array, after: Array
    ) -> tuple[Array, Array]:
        """Return whether each group is closer to fair, and whether that is sure.

        On one side of fair the distance moves as the value does. Across it the distance
        is less by the sum of both values, whose variance is ``2 V_before + 2 V_after -
        V_change``.
        """
        moved = change.change
        across = before * after < 0
        errors = [r.standard_error for r in change]
        total = 2 * errors[0] ** 2 + 2 * errors[1] ** 2 - errors[2] ** 2
        error = np.where(across, np.sqrt(np.maximum(total, 0)), errors[2])
        gain = np.abs(before) - np.abs(after)
        pvalue = corrected_pvalues(t_test(gain, error, 0.0, moved.df)[1])
        with np.errstate(invalid="ignore"):
            return gain > 0, pvalue < 1 - self.confidence_level

    def to_frame(self) -> pd.DataFrame:
        """Return one row a metric and group.

        Returns
        -------
        DataFrame
            Columns kind ("disparity" or "cost"), metric, group, before, after, change
            (after less before), std_error, ci_low, ci_high, pvalue, pvalue_corrected
            (by Holm's method over the groups of the metric) and verdict. A disparity is
            the difference from what is fair, so that 0 is fair.
        """
        return self._frame.copy()

    def summary(self) -> str:
        """Return what a reader should take away, in a few sentences.

        Returns
        -------
        str
        """
        return " ".join(self._sentences())

    def _sentences(self) -> list[str]:
        frame, sentences = self._frame, []
        moved = frame[frame["kind"] == "disparity"]
        mirrored = moved["change"] == -moved.groupby("metric")["change"].shift()
        moved = moved[~mirrored]  # two groups, each the rest of the other
        for verdict in ("closer to fair", "further from fair", "past fair"):
            rows = moved[moved["verdict"] == verdict]
            told = [self._told(row) for _, row in rows.iterrows()]
            if told:
                sentences.append(f"{verdict.capitalize()}: {'; '.join(told)}.")
        if not sentences:
            sentences.append("No disparity moved beyond chance.")
        if self.parity_before is not None and self.parity_after is not None:
            tests = self.parity_before, self.parity_after
            p = " before, ".join(fmt.pvalue(test.pvalue) for test in tests)
            gap = " → ".join(fmt.number(t.largest_difference, 3) for t in tests)
            sentences.append(
                f"Equal outcomes at equal scores: p {p} after; largest gap {gap}."
            )
        costs = frame[frame["kind"] == "cost"]
        told = [self._told(row) for _, row in costs.iterrows()]
        if told:
            sentences.append(f"Cost: {'; '.join(told)}.")
        return sentences

    def _told(self, row: Any) -> str:
        what = _title(row["metric"])
        if row["kind"] == "disparity":
            what += f" of {fmt.label(row['group'])}"
        values = " → ".join(fmt.number(row[side], 3) for side in ("before", "after"))
        interval = fmt.interval(row["ci_low"], row["ci_high"], 3)
        return f"{what} {values} (change {fmt.number(row['change'], 3)} {interval})"

    def plot(self, axes: Any = None) -> MitigationDisplay:
        """Draw disparities before and after, their changes and the costs.

        Parameters
        ----------
        axes : sequence of three matplotlib Axes or None, default=None
            For the disparities, their changes and the costs. None makes a figure.

        Returns
        -------
        MitigationDisplay
        """
        from ..display import MitigationDisplay

        frame = self._frame
        frame = frame.assign(metric=[_title(name) for name in frame["metric"]])
        tests = {
            f"pvalue_{side}": np.concatenate(
                [np.empty(0)]
                + [getattr(c, side).pvalue for c in self.disparities.values()]
            )
            for side in ("before", "after")
        }
        display = MitigationDisplay(
            frame[frame["kind"] == "disparity"].assign(**tests),
            frame[frame["kind"] == "cost"],
            confidence_level=self.confidence_level,
        )
        return display.plot(axes=axes)

    def _cells(self, kind: str) -> tuple[list[str], list[list[str]]]:
        level = f"{100 * self.confidence_level:g}% interval"
        header = [kind, "group", "before", "after", "change", level, "verdict"]
        frame = self._frame
        rows = [
            [
                _title(row["metric"], short=True),
                fmt.label(row["group"]),
                *(fmt.number(row[name], 3) for name in ("before", "after", "change")),
                fmt.interval(row["ci_low"], row["ci_high"], 3),
                row["verdict"],
            ]
            for _, row in frame[frame["kind"] == kind].iterrows()
        ]
        return header, rows

    @property
    def _head(self) -> str:
        return f"Before and after: {self.audit_after.counts}"

    def __repr__(self) -> str:
        """Return a table of disparities, one of costs, and the summary."""
        blocks = [self._head]
        for kind in ("disparity", "cost"):
            header, rows = self._cells(kind)
            if rows:
                blocks.append(fmt.text_table(header, rows))
        blocks.append("\n".join(self._sentences()))
        blocks += [f"Note: {note}" for note in self.notes]
        return "\n\n".join(blocks)

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self._head)}</p>"]
        parts += [
            fmt.html_table(*self._cells(kind))
            for kind in ("disparity", "cost")
            if self._cells(kind)[1]
        ]
        parts += [f"<p>{escape(sentence)}</p>" for sentence in self._sentences()]
        parts += [f"<p>{escape(note)}</p>" for note in self.notes]
        return "".join(parts)

    def __rich__(self) -> Any:
        """Return the tables and the summary for a terminal."""
        from rich.console import Group
        from rich.text import Text

        styles = {"closer to fair": "deep_sky_blue3", "better": "deep_sky_blue3"}
        styles |= {"further from fair": "dark_orange3", "worse": "dark_orange3"}
        parts: list[Any] = [Text(self._head, style="bold")]
        for kind in ("disparity", "cost"):
            header, rows = self._cells(kind)
            if rows:
                colors = [styles.get(row[-1], "") for row in rows]
                parts.append(fmt.rich_table(header, rows, colors))
        parts += [Text(sentence) for sentence in self._sentences()]
        parts += [Text(f"Note: {note}", style="dim") for note in self.notes]
        return Group(*parts)


def _title(name: str, *, short: bool = False) -> str:
    if name in _TITLES:
        return _TITLES[name]
    metric = BY_NAME[name]
    return (metric.short if short else metric.title).lower()
