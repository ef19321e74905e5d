"""The most violated moment inequalities of a ranking, with their critical value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import Array, check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import OutcomeInequalityTest

_LONGEST_GROUP, _LONGEST_ROW = 24, 70


@dataclass(eq=False, repr=False)
class OutcomeInequalityDisplay:
    """The most violated moments of an outcome inequality test, with one row each.

    Made by `from_test` or `OutcomeInequalityTest.plot`. A point right of 0 is a pair of
    positions at which the lower item did better; right of the critical value, more so
    than chance allows, and it is coloured.

    Parameters
    ----------
    names : sequence of str, length M
        What the moments are, most violated first.
    violation : array-like of shape (M,)
        In standard errors.
    critical_value : float
        NaN draws no line.
    n_moments : int
        How many moments were tested.

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

    See Also
    --------
    skrankfair.inference.outcome_inequality_test : The test.

    Examples
    --------
    >>> from skrankfair.display import OutcomeInequalityDisplay
    >>> display = OutcomeInequalityDisplay(["f at 1 above m at 2"], [3.1], 2.5, 18)
    >>> display.plot().ax_.get_yticklabels()[0].get_text()
    'f at 1 above m at 2'
    """

    names: Sequence[str]
    violation: Any
    critical_value: float
    n_moments: int

    @classmethod
    def from_test(
        cls,
        test: OutcomeInequalityTest,
        *,
        ax: Axes | None = None,
        max_moments: int = 20,
        **kwargs: Any,
    ) -> OutcomeInequalityDisplay:
        """Draw a test.

        Parameters
        ----------
        test : OutcomeInequalityTest
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the moments need.
        max_moments : int, default=20
            Only the most violated are drawn.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        OutcomeInequalityDisplay

        Raises
        ------
        ValueError
            If `max_moments` is not a positive integer.
        """
        check_number(max_moments, "max_moments", 1, np.inf, integer=True)
        order = np.argsort(-test.violation, kind="stable")  # NaN last
        n_moments = int(np.count_nonzero(~np.isnan(test.violation)))
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
        display = cls(names, test.violation[order], test.critical_value, n_moments)
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, legend: bool = True
    ) -> OutcomeInequalityDisplay:
        """Draw the moments.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the moments need.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        OutcomeInequalityDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If there is not one violation for each name.
        """
        violation = np.asarray(self.violation, dtype=float)
        if violation.shape != (len(self.names),):
            raise ValueError(
                "violation must have one number per name; got shape "
                f"{violation.shape} and {len(self.names)} names."
            )
        self.ax_ = draw.axes_for(ax, len(self.names))
        self.figure_ = self.ax_.figure
        self._draw_frame(violation)
        self._draw_points(violation)
        lines = [] if self.critical_ is None else [self.critical_]
        self.legend_ = draw.legend(self.ax_, lines, legend, right=True)
        return self

    def _draw_frame(self, violation: Array) -> None:
        """Draw the axes, the names of the rows, 0 and the critical value."""
        ax, n = self.ax_, violation.size
        left_out = self.n_moments - n
        more = (
            f"; {left_out} moments that are violated less are not shown"
            if left_out
            else ""
        )
        xlabel = f"violation, in standard errors{more}"
        self.zero_ = draw.row_frame(ax, self.names, xlabel, 0.0, longest=_LONGEST_ROW)
        self.critical_ = self.missing_ = None
        if not np.isnan(self.critical_value):
            self.critical_ = ax.axvline(
                self.critical_value,
                color=draw.WORSE,
                linestyle="--",
                linewidth=draw.thick(1.2),
                label=f"critical value {self.critical_value:.2f}",
            )
        if not n:
            ax.set_xticks([])
            self.missing_ = ax.text(
                0.5,
                0.5,
                "no moment to test",
                transform=ax.transAxes,
                color=draw.UNCLEAR,
                style="italic",
                ha="center",
            )

    def _draw_points(self, violation: Array) -> None:
        """Draw the points; one without error is at the edge, with an arrow's head."""
        self.points_ = []
        finite = violation[np.isfinite(violation)]
        edge = max([*np.abs(finite), np.nan_to_num(self.critical_value), 1.0]) * 1.15
        for row, value in enumerate(violation):
            color = draw.WORSE if value > self.critical_value else draw.UNCLEAR
            marker = "o" if np.isfinite(value) else (">" if value > 0 else "<")
            self.points_ += self.ax_.plot(
                [np.clip(value, -edge, edge)],
                [row],
                marker=marker,
                markersize=draw.dot(6.5, violation.size, self.ax_),
                color=color,
                markeredgecolor="white",
                markeredgewidth=0.8,
                linestyle="none",
                zorder=3,
            )
