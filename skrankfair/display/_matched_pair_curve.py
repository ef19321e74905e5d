"""Matched pair calibration over thresholds: one line per group with its band."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..metrics._matched_pair_curve import MatchedPairCurve

_WIDE = 20  # largest threshold over smallest from which the axis is logarithmic


@dataclass(eq=False, repr=False)
class MatchedPairCurveDisplay:
    """Estimates against the threshold, with one line and one band per group.

    Made by `MatchedPairCurve.plot`. Above 0 a group is undervalued.

    Parameters
    ----------
    curve : MatchedPairCurve

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per group.
    bands_ : list of matplotlib Collection
        One per group: a band or, from four groups on, bars at some thresholds.
    fair_line_ : matplotlib Line2D
    legend_ : matplotlib Legend or None
    """

    curve: MatchedPairCurve

    def plot(
        self,
        *,
        ax: Axes | None = None,
        confidence_level: float = 0.95,
        groups: Sequence[Hashable] | None = None,
        legend: bool = True,
    ) -> MatchedPairCurveDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        confidence_level : float, default=0.95
            Confidence level of the bands. They hold at one threshold each.
        groups : sequence of hashable or None, default=None
            Only these, in this order; None draws all. A group always has the same
            colour.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MatchedPairCurveDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or if there is no such group.
        """
        from matplotlib.patches import Patch

        curve, epsilon = self.curve, self.curve.epsilon
        chosen = list(curve.groups if groups is None else groups)
        for group in chosen:
            if group not in curve.groups:
                raise ValueError(
                    f"groups must be among {list(curve.groups)}; got {group!r}."
                )
        places = [curve.groups.index(group) for group in chosen]
        low, high = curve.confidence_interval(confidence_level)
        ax = self.ax_ = draw.axes_for(ax)
        self.figure_ = ax.figure
        name = "ε, largest difference of scores"
        draw.frame(ax, name, "matched pair calibration", grid="y")
        if epsilon.size and 0 < epsilon.min() <= epsilon.max() / _WIDE:
            ax.set_xscale("log")
        self.fair_line_ = draw.zero(ax)
        self.lines_, self.bands_ = draw.curves(
            ax,
            chosen,
            [epsilon] * len(chosen),
            *(np.asarray(end).T[places] for end in (curve.estimate, low, high)),
            places=places,
            marker="o",
            markersize=draw.dot(3.5),
        )
        text = f"{100 * confidence_level:g}% interval"
        band: Any = Patch(color=draw.LINE, alpha=0.18, lw=0, label=text)
        if len(chosen) >= draw.MANY:
            look = {"marker": "|", "linestyle": "none", "color": draw.LINE}
            band = draw.sample(text, **look)
        self.legend_ = draw.legend(ax, self.lines_, legend, notes=[band])
        return self
