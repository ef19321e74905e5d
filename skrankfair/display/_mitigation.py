"""What a mitigation changed, and what it cost."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from . import _style as draw
from ._before_after import BeforeAfterDisplay
from ._group_estimates import GroupEstimatesDisplay

if TYPE_CHECKING:
    import pandas as pd

_MARGIN_HEIGHT = 1.05
_SIDES = {"closer to fair": 1.0, "further from fair": -1.0}
_LOSSES = ("log loss", "mean squared error")


@dataclass(eq=False, repr=False)
class MitigationDisplay:
    """Disparities before and after, their changes with intervals, and the costs.

    Made by `MitigationReport.plot`.

    Parameters
    ----------
    disparities : DataFrame
        One row per metric and group: metric, group, before, after, change, ci_low,
        ci_high, pvalue_corrected, verdict; pvalue_before, pvalue_after against fair.
    costs : DataFrame
        The same of the costs, without the last two.
    confidence_level : float, default=0.95
        Confidence level of the intervals; p-values below one minus this level are
        coloured.

    Attributes
    ----------
    axes_ : tuple of three matplotlib Axes
    figure_ : matplotlib Figure
    before_after_ : BeforeAfterDisplay
        Of the disparities.
    changes_, costs_ : GroupEstimatesDisplay
        The changes of disparities, and the gains in the quality of the scores. For
        losses, which should fall, a gain is the change with the opposite sign.

    See Also
    --------
    skrankfair.mitigation_report : Makes the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair import mitigation_report
    >>> rng = np.random.default_rng(0)
    >>> group, score = rng.choice(["a", "b"], size=1000), rng.uniform(size=1000)
    >>> y = rng.random(1000) < score
    >>> unfair = np.clip(score - 0.2 * (group == "a"), 0.01, 0.99)
    >>> report = mitigation_report(unfair, score, y, sensitive_features=group)
    >>> display = report.plot()
    >>> [label.get_text() for label in display.axes_[2].get_yticklabels()]
    ['NDCG', 'AUC', 'log loss']
    """

    disparities: pd.DataFrame
    costs: pd.DataFrame
    _: KW_ONLY
    confidence_level: float = 0.95

    def plot(self, *, axes: Any = None) -> MitigationDisplay:
        """Draw the three panels.

        Parameters
        ----------
        axes : sequence of three matplotlib Axes or None, default=None
            None creates a new figure. The Axes are for the disparities, their changes
            and the costs.

        Returns
        -------
        MitigationDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If `axes` are not three axes.
        """
        n_rows, n_costs = len(self.disparities), len(self.costs)
        if axes is None:
            axes = _new_axes(n_rows, n_costs)
        self.axes_ = draw.check_axes(
            axes, ("the disparities", "their changes", "the costs")
        )
        self.figure_ = self.axes_[0].figure
        moved, costs = self.disparities, self.costs
        labels = [
            f"{metric}: {label(group)}"
            for metric, group in zip(moved["metric"], moved["group"], strict=True)
        ]
        self.before_after_ = BeforeAfterDisplay(
            labels,
            moved["before"],
            moved["after"],
            pvalue_before=moved["pvalue_before"],
            pvalue_after=moved["pvalue_after"],
            name="difference from fair",
            confidence_level=self.confidence_level,
        ).plot(ax=self.axes_[0])
        gain = moved["verdict"].map(_SIDES).fillna(0.0).to_numpy(dtype=float)
        self.changes_ = self._forest(1, labels, moved, gain, 1.0, "change")
        self.axes_[1].set_yticklabels([])
        sign = np.where(costs["metric"].isin(_LOSSES), -1.0, 1.0)
        gain = sign * costs["change"]
        self.costs_ = self._forest(
            2, list(costs["metric"]), costs, gain, sign, "gain (a loss is negated)"
        )
        return self

    def _forest(
        self, place: int, labels: Any, rows: Any, gain: Any, sign: Any, name: str
    ) -> GroupEstimatesDisplay:
        """Draw changes with their intervals: coloured for the better or the worse."""
        ends = np.stack([sign * rows["ci_low"], sign * rows["ci_high"]])
        display = GroupEstimatesDisplay(
            labels,
            sign * rows["change"],
            ends.min(0),
            ends.max(0),
            pvalue=rows["pvalue_corrected"],
            difference=gain,
            fair_value=0.0,
            name=name,
            confidence_level=self.confidence_level,
        )
        display.plot(ax=self.axes_[place], sort=None)
        if display.legend_ is not None:
            words = {"lower": "worse", "higher": "better"}
            for text in display.legend_.get_texts():
                first, comma, rest = text.get_text().partition(",")
                text.set_text(words.get(first, "neither shown") + comma + rest)
        return display


def _new_axes(n_rows: int, n_costs: int) -> Any:
    heights = [_MARGIN_HEIGHT + draw.ROW_HEIGHT * max(n, 2) for n in (n_rows, n_costs)]
    mosaic = [["moved", "change"], ["cost", "cost"]]
    found = draw.new_panels(mosaic, heights)
    return found["moved"], found["change"], found["cost"]
