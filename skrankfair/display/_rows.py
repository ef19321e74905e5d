"""Rows of groups or moments: marginal outcomes, and violated inequalities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference._marginal_outcome import MarginalOutcomeTest
    from ..inference._outcome_inequality import OutcomeInequalityTest

_LONGEST_GROUP, _LONGEST_ROW = 24, 70


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


@dataclass(eq=False, repr=False)
class OutcomeInequalityDisplay:
    """The most violated moments of an outcome inequality test, with one row each.

    Made by `OutcomeInequalityTest.plot`. A point right of 0 is a pair of positions at
    which the lower item did better; right of the critical value, more so than chance
    allows, and it is coloured. One without a standard error is at the edge, with an
    arrow's head.

    Parameters
    ----------
    test : OutcomeInequalityTest

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib Line2D
        One per moment, from the top down.
    zero_ : matplotlib Line2D
    critical_ : matplotlib Line2D or None
    missing_ : matplotlib Text or None
        The words that say so if nothing could be tested.
    legend_ : matplotlib Legend or None
        Of the critical value.
    """

    test: OutcomeInequalityTest

    def plot(
        self, *, ax: Axes | None = None, max_moments: int = 20, legend: bool = True
    ) -> OutcomeInequalityDisplay:
        """Draw the moments.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the moments need.
        max_moments : int, default=20
            Only the most violated are drawn.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        OutcomeInequalityDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If `max_moments` is not a positive integer.
        """
        check_number(max_moments, "max_moments", 1, np.inf, integer=True)
        test = self.test
        n_moments = int(np.count_nonzero(~np.isnan(test.violation)))
        order = np.argsort(-test.violation, kind="stable")  # NaN last
        order = order[: min(n_moments, max_moments)]
        names = [
            " above ".join(
                f"{label(group, _LONGEST_GROUP)} at {position}"
                for group, position in zip(
                    test.groups[i], test.positions[i], strict=True
                )
            )
            for i in order
        ]
        xlabel = "violation, in standard errors"
        if left_out := n_moments - order.size:
            xlabel += f"; {left_out} moments that are violated less are not shown"
        ax = self.ax_ = draw.axes_for(ax, order.size)
        self.figure_ = ax.figure
        self.zero_ = draw.row_frame(ax, names, xlabel, 0.0, longest=_LONGEST_ROW)
        self.critical_ = self.missing_ = None
        critical = test.critical_value
        if not np.isnan(critical):
            self.critical_ = ax.axvline(
                critical,
                color=draw.WORSE,
                linestyle="--",
                linewidth=draw.thick(1.2),
                label=f"critical value {critical:.2f}",
            )
        violation = test.violation[order]
        finite = violation[np.isfinite(violation)]
        edge = max([*np.abs(finite), np.nan_to_num(critical), 1.0]) * 1.15
        heads = np.where(np.isfinite(violation), "o", np.where(violation > 0, ">", "<"))
        self.points_, _ = draw.rows(
            ax,
            np.clip(violation, -edge, edge),
            np.where(violation > critical, draw.WORSE, draw.UNCLEAR).tolist(),
            markers=heads.tolist(),
        )
        if not order.size:
            ax.set_xticks([])
            self.missing_ = draw.in_row(ax, 0.5, "no moment to test", draw.UNCLEAR)
        lines = [] if self.critical_ is None else [self.critical_]
        self.legend_ = draw.legend(ax, lines, legend, right=True)
        return self
