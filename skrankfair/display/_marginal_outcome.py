"""Marginal outcomes of groups, next to the means that mislead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference._marginal_outcome import MarginalOutcomeTest


@dataclass(eq=False, repr=False)
class MarginalOutcomeDisplay:
    """One row per group: its mean outcome at the threshold, and that of all above it.

    Made by `MarginalOutcomeTest.plot`. The test compares the filled points; the open
    ones, means of all that were accepted, depend on how far above the threshold the
    group is.

    Parameters
    ----------
    test : MarginalOutcomeTest

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib Line2D
        One per group with a marginal outcome.
    intervals_ : list of matplotlib Line2D
    above_ : matplotlib Line2D
    legend_ : matplotlib Legend or None
    """

    test: MarginalOutcomeTest

    def plot(
        self,
        *,
        ax: Axes | None = None,
        xlabel: str = "mean outcome",
        legend: bool = True,
    ) -> MarginalOutcomeDisplay:
        """Draw the groups.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the groups need.
        xlabel : str, default="mean outcome"
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MarginalOutcomeDisplay
            This display, with the artists.
        """
        test, n = self.test, len(self.test.groups)
        level = test.parameters["confidence_level"]
        ax = self.ax_ = draw.axes_for(ax, n + 1)
        self.figure_ = ax.figure
        # The line below the label leaves the one above the axes to the legend.
        equal = f"{100 * level:g}% intervals, equal at the threshold"
        draw.row_frame(ax, test.groups, f"{xlabel}\n{equal}: p = {test.pvalue:.3g}")
        ax.grid(axis="x", color=draw.GRID, linewidth=draw.thick(0.8))
        colors = [draw.look(row)["color"] for row in range(n)]
        self.points_, self.intervals_ = draw.rows(
            ax, test.outcomes, colors, *test.outcome_interval(level), size=8
        )
        look: dict[str, Any] = {"linestyle": "none", "color": draw.UNCLEAR}
        (self.above_,) = ax.plot(
            test.inframarginal.estimate,
            np.arange(n),
            marker="D",
            markersize=draw.dot(5.5, n, ax),
            markerfacecolor="none",
            label="all above it",
            **look,
        )
        name = f"at the threshold {test.threshold:g}"
        handles = [draw.sample(name, marker="o", **look), self.above_]
        self.legend_ = draw.legend(ax, handles, legend, right=True)
        return self
