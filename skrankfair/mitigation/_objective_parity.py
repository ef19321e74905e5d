"""Predictive parity of several objectives and of their composite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._inputs.validation import Array
from ..inference import compare, predictive_parity_test
from ..inference._predictive_parity import PredictiveParityTest
from ..metrics import GroupEstimates, mean_squared_error

if TYPE_CHECKING:
    import pandas as pd

    from ..display._mitigation import BeforeAfterDisplay

COMPOSITE = "composite"
_SIDES = ("before", "after")


@dataclass(frozen=True, eq=False, repr=False)
class ObjectiveParity:
    """Tests of predictive parity by objective, before and after calibration.

    Made by `MultiObjectiveCalibrator.audit_objectives`; "composite" is the weighted sum
    of the objectives.

    Attributes
    ----------
    weights : dict of float
        Weights of the objectives in the composite.
    after : dict of PredictiveParityTest
        Tests of the calibrated scores, by objective.
    before : dict of PredictiveParityTest
        Tests of the original scores; empty if there is not one score for each
        objective.
    error_change : dict of GroupEstimates
        Paired change in mean squared error by objective, negative if the calibrated
        scores are better; empty if `before` is.
    error : dict of GroupEstimates
        Mean squared error of the calibrated scores, by objective.
    """

    weights: Mapping[str, float]
    after: Mapping[str, PredictiveParityTest]
    before: Mapping[str, PredictiveParityTest]
    error_change: Mapping[str, GroupEstimates]
    error: Mapping[str, GroupEstimates]

    def to_frame(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return one row per objective, and one for the composite.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals. They are those of the change in mean
            squared error.

        Returns
        -------
        DataFrame
            Indexed by objective: weight, pvalue_before, pvalue_after, largest_before
            and largest_after (the largest difference between groups on the grid),
            mean_squared_error, mean_squared_error_change, ci_low, ci_high.
        """
        import pandas as pd

        rows = {}
        for name, after in self.after.items():
            before, change = self.before.get(name), self.error_change.get(name)
            low = high = moved = np.full(1, np.nan)
            if change is not None:
                moved = change.estimate
                low, high = map(
                    np.asarray, change.confidence_interval(confidence_level)
                )
            rows[name] = {
                "weight": self.weights.get(name, np.nan),
                "pvalue_before": np.nan if before is None else before.pvalue,
                "pvalue_after": after.pvalue,
                "largest_before": (
                    np.nan if before is None else before.largest_difference
                ),
                "largest_after": after.largest_difference,
                "mean_squared_error": float(self.error[name].estimate[0]),
                "mean_squared_error_change": float(moved[0]),
                "ci_low": float(low[0]),
                "ci_high": float(high[0]),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("objective")

    def plot(self, ax: Any = None, **kwargs: Any) -> BeforeAfterDisplay:
        """Draw the largest difference between groups, before and after.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `BeforeAfterDisplay.plot`.

        Returns
        -------
        BeforeAfterDisplay
        """
        from ..display._mitigation import BeforeAfterDisplay

        frame = self.to_frame()
        display = BeforeAfterDisplay(
            list(frame.index),
            frame["largest_before"],
            frame["largest_after"],
            pvalue_before=frame["pvalue_before"],
            pvalue_after=frame["pvalue_after"],
            name="largest difference of outcomes at equal scores",
        )
        return display.plot(ax=ax, **kwargs)

    def summary(self) -> str:
        """Return what a reader should take away, in a sentence or two.

        Returns
        -------
        str
        """
        parts = []
        sides = [("after", self.after)]
        if self.before:
            sides.insert(0, ("before", self.before))
        for when, tests in sides:
            failing = [fmt.label(n) for n, t in tests.items() if t.pvalue < 0.05]
            said = "shown for none of" if not failing else ", ".join(failing)
            parts.append(
                f"Unequal outcomes at equal scores {when}: {said}"
                f"{'' if failing else ' the objectives'}."
            )
        return " ".join(parts)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        header = ["objective", "largest gap", "p", "error", "change", "95% interval"]
        rows = []
        for name, row in self.to_frame().iterrows():
            gap = [fmt.number(row[f"largest_{side}"], 3) for side in _SIDES]
            p = [fmt.pvalue(row[f"pvalue_{side}"]) for side in _SIDES]
            rows.append(
                [
                    fmt.label(name),
                    " → ".join(gap),
                    " → ".join(p),
                    fmt.number(row["mean_squared_error"], 3),
                    fmt.number(row["mean_squared_error_change"], 3),
                    fmt.interval(row["ci_low"], row["ci_high"], 3),
                ]
            )
        return header, rows

    def __repr__(self) -> str:
        """Return a table, one row per objective, and the summary."""
        return (
            f"Predictive parity of {len(self.weights)} objectives and their composite\n"
            f"{fmt.text_table(*self._cells())}\n{self.summary()}"
        )

    def _repr_html_(self) -> str:
        return f"{fmt.html_table(*self._cells())}<p>{escape(self.summary())}</p>"

    def __rich__(self) -> object:
        """Return the table and the summary for a terminal."""
        from rich.console import Group
        from rich.text import Text

        table = fmt.rich_table(*self._cells())
        return Group(table, Text(self.summary(), style="bold"))


def objective_parity(
    names: Sequence[str],
    weights: Array,
    outcome: Array,
    score: Array | None,
    calibrated: Array,
    columns: Mapping[str, Any],
    options: Mapping[str, Any],
) -> ObjectiveParity:
    """Test each objective and the composite, before (if there are scores) and after."""

    def with_composite(values: Array) -> Array:
        return np.column_stack([values, values @ weights])

    outcomes, after = with_composite(outcome), with_composite(calibrated)
    before = None if score is None else with_composite(score)
    rows = {k: v for k, v in columns.items() if k != "sensitive_features"}
    tests: dict[str, dict[str, PredictiveParityTest]] = {"before": {}, "after": {}}
    error, change = {}, {}
    for k, name in enumerate([*names, COMPOSITE]):
        y = outcomes[:, k]
        tests["after"][name] = predictive_parity_test(
            y, after[:, k], **columns, **options
        )
        error[name] = mean_squared_error(y, after[:, k], **rows)
        if before is None:
            continue
        tests["before"][name] = predictive_parity_test(
            y, before[:, k], **columns, **options
        )
        change[name] = compare(error[name], mean_squared_error(y, before[:, k], **rows))
    return ObjectiveParity(
        dict(zip(names, weights.tolist(), strict=True)),
        tests["after"],
        tests["before"],
        change,
        error,
    )
