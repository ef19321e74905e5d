"""Shares by position with their monotone fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference._monotonicity import MonotonicityTest

_MANY = 40


@dataclass(eq=False, repr=False)
class MonotonicityDisplay:
    """A group's share at every position, the monotone fit, and the verdict.

    Made by `MonotonicityTest.plot`. Shares outside the band of the fit are coloured.

    Parameters
    ----------
    test : MonotonicityTest

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    shares_ : list of matplotlib Line2D
        Points inside the band and, if there are any, outside.
    fit_ : matplotlib Line2D
    band_ : matplotlib PolyCollection or None
    group_share_ : matplotlib Line2D
    verdict_ : matplotlib Text
        The title of the legend or, without one, of the axes.
    legend_ : matplotlib Legend or None
    """

    test: MonotonicityTest

    def plot(
        self, *, ax: Axes | None = None, legend: bool = True
    ) -> MonotonicityDisplay:
        """Draw the shares, the fit with its band, and the verdict.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MonotonicityDisplay
            This display, with the artists.
        """
        from matplotlib.ticker import MaxNLocator

        test, ax = self.test, draw.axes_for(ax)
        self.ax_, self.figure_ = ax, ax.figure
        position, low, high = test.position, test.band_low, test.band_high
        color = draw.COLORS[0]
        self.band_ = None
        if not (np.isnan(low).all() or np.isnan(high).all()):
            name = f"{test.confidence_level:.0%} band of the fit"
            band: dict[str, Any] = {"color": color, "alpha": 0.18, "linewidth": 0}
            self.band_ = ax.fill_between(position, low, high, label=name, **band)
        (self.fit_,) = ax.plot(
            position, test.fit, color=color, lw=draw.thick(2), label="monotone fit"
        )
        with np.errstate(invalid="ignore"):
            outside = (test.share < low - 1e-12) | (test.share > high + 1e-12)
        size = draw.dot(5 if position.size <= _MANY else 3)
        self.shares_: list[Any] = []
        for some, color, name in (
            (~outside, draw.LINE, "observed share"),
            (outside, draw.WORSE, "outside the band"),
        ):
            if some.any():
                look: dict[str, Any] = {
                    "color": color,
                    "markersize": size,
                    "label": name,
                    "zorder": 3,
                }
                self.shares_ += ax.plot(position[some], test.share[some], "o", **look)
        self.group_share_ = ax.axhline(
            test.group_share,
            color=draw.UNCLEAR,
            lw=draw.thick(1),
            ls=":",
            zorder=0,
            label="share of the group",
        )
        name = label(test.group, draw.LONGEST)
        draw.frame(ax, "position, 1 = top", f"share of {name}")
        ax.set_ylim(-0.03, 1.03)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        words = "no verdict"
        if not np.isnan(test.pvalue):
            words = "not monotone" if test.rejected else "monotone"
            small = test.pvalue < 0.001
            words += ": p < 0.001" if small else f": p = {test.pvalue:.3f}"
        self.legend_ = draw.legend(
            ax, ax.get_legend_handles_labels()[0], legend, title=words
        )
        if self.legend_ is None:
            ax.set_title(words, loc="left", color=draw.LINE, size="medium")
        self.verdict_ = ax.title if self.legend_ is None else self.legend_.get_title()
        return self
