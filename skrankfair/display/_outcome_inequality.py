"""The most violated moment inequalities of a ranking, with their critical value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference._outcome_inequality import OutcomeInequalityTest

_LONGEST_GROUP, _LONGEST_ROW = 24, 70


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
