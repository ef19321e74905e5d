"""Marginal outcomes of groups, next to the means that mislead."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import MarginalOutcomeTest


@dataclass(eq=False, repr=False)
class MarginalOutcomeDisplay:
    """One row per group: its mean outcome at the threshold, and that of all above it.

    Made by `from_test` or `MarginalOutcomeTest.plot`. The test compares the filled
    points; the open ones, means of all that were accepted, depend on how far above
    the threshold the group is.

    Parameters
    ----------
    groups : sequence of hashable, length G
    estimate, ci_low, ci_high : array-like of shape (G,)
        Marginal outcomes with intervals; NaN for a group without one.
    above : array-like of shape (G,) or None, default=None
        Mean outcomes above the threshold; None draws none.
    threshold : float or None, default=None
        The threshold, for the label of the axis.
    name : str, default=""
        A second line below the label of the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib Line2D
        One per group with a marginal outcome.
    intervals_ : list of matplotlib Line2D
    above_ : matplotlib Line2D or None
    legend_ : matplotlib Legend or None

    See Also
    --------
    skrankfair.inference.marginal_outcome_test : Makes the numbers.

    Examples
    --------
    >>> from skrankfair.display import MarginalOutcomeDisplay
    >>> display = MarginalOutcomeDisplay(
    ...     ["a", "b"], [0.5, 0.6], [0.4, 0.5], [0.6, 0.7], above=[0.8, 0.7]
    ... ).plot()
    >>> display.above_.get_xdata().tolist()
    [0.8, 0.7]
    """

    groups: Sequence[Hashable]
    estimate: Any
    ci_low: Any
    ci_high: Any
    _: KW_ONLY
    above: Any = None
    threshold: float | None = None
    name: str = ""

    @classmethod
    def from_test(
        cls, result: MarginalOutcomeTest, *, ax: Axes | None = None, **kwargs: Any
    ) -> MarginalOutcomeDisplay:
        """Draw the result of the test.

        Parameters
        ----------
        result : MarginalOutcomeTest
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        MarginalOutcomeDisplay
        """
        level = result.parameters["confidence_level"]
        low, high = result.outcome_interval(level)
        display = cls(
            result.groups,
            result.outcomes,
            low,
            high,
            above=result.inframarginal.estimate,
            threshold=result.threshold,
            name=f"{100 * level:g}% intervals, equal at the threshold: "
            f"p = {result.pvalue:.3g}",
        )
        return display.plot(ax=ax, **kwargs)

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
        size = len(self.groups)
        self.ax_ = draw.axes_for(ax, size + 1)
        self.figure_ = self.ax_.figure
        ax = self.ax_
        # The line below the label leaves the one above the axes to the legend.
        name = f"{xlabel}\n{self.name}" if self.name else xlabel
        draw.row_frame(ax, self.groups, name)
        ax.grid(axis="x", color=draw.GRID, linewidth=draw.thick(0.8))
        at = "at the threshold"
        if self.threshold is not None:
            at += f" {self.threshold:g}"
        markersize = draw.dot(7, size, ax)
        self.points_: list[Any] = []
        self.intervals_: list[Any] = []
        low, high = (np.asarray(e, dtype=float) for e in (self.ci_low, self.ci_high))
        for row, value in enumerate(np.asarray(self.estimate, dtype=float)):
            if np.isnan(value):
                continue
            color = draw.look(row)["color"]
            look = {"color": color, "zorder": 3}
            self.intervals_ += ax.plot(
                [low[row], high[row]], [row, row], linewidth=draw.thick(2.2), **look
            )
            self.points_ += ax.plot([value], [row], "o", markersize=markersize, **look)
        self.above_ = None
        point: dict[str, Any] = {"linestyle": "none", "color": draw.UNCLEAR}
        handles = [draw.sample(at, marker="o", **point)]
        if self.above is not None:
            (self.above_,) = ax.plot(
                np.asarray(self.above, dtype=float),
                np.arange(size),
                marker="D",
                markersize=0.8 * markersize,
                markerfacecolor="none",
                label="all above it",
                **point,
            )
            handles.append(self.above_)
        self.legend_ = draw.legend(ax, handles, legend, right=True)
        return self
