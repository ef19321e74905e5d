"""The power of tests by number of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..planning._power_curve import PowerCurve

_PROMISED = 0.8


@dataclass(eq=False, repr=False)
class PowerCurveDisplay:
    """Power against the number of clusters: one line per group and gap.

    Made by `PowerCurve.plot`. A dotted line marks a power of 0.8, and a vertical one
    the pilot.

    Parameters
    ----------
    curve : PowerCurve

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per group and gap, the gaps of the first group first.
    pilot_line_ : matplotlib Line2D or None
    legend_ : matplotlib Legend or None
        With several groups and gaps, colours say the group, and dashes the gap.
    """

    curve: PowerCurve

    def plot(self, *, ax: Axes | None = None, legend: bool = True) -> PowerCurveDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        PowerCurveDisplay
            This display, with the artists.
        """
        curve, ax = self.curve, draw.axes_for(ax)
        self.ax_, self.figure_ = ax, ax.figure
        draw.frame(ax, "clusters", "power")
        ax.set_xscale("log")
        ax.set_ylim(0, 1.02)
        mark: dict[str, Any] = {"color": draw.LINE, "linewidth": draw.thick(1)}
        name = f"power {_PROMISED:g}"
        notes: list[Any] = [ax.axhline(_PROMISED, linestyle=":", label=name, **mark)]
        several, n_gaps = len(curve.groups) > 1, len(curve.gaps)
        self.lines_: list[Any] = []
        for i, group in enumerate(curve.groups):
            start = f"{label(group, draw.LONGEST)}, " if several else ""
            color = {"color": draw.look(i)["color"]} if several else {}
            names = [f"{start}{gap:g}" for gap in curve.gaps]
            x = [curve.n_clusters] * n_gaps
            self.lines_ += draw.curves(
                ax, names, x, curve.power[i], longest=2 * draw.LONGEST, **color
            )[0]
        self.pilot_line_ = None
        if np.isfinite(curve.pilot):
            self.pilot_line_ = ax.axvline(
                curve.pilot, linestyle="--", label="pilot", **mark
            )
            notes.append(self.pilot_line_)
        handles = self.lines_
        if several and n_gaps > 1:
            # Colours say the groups, and dashes the gaps.
            handles = [
                draw.sample(label(group, draw.LONGEST), color=line.get_color())
                for group, line in zip(curve.groups, handles[::n_gaps], strict=True)
            ]
            notes = [
                draw.sample(
                    f"gap {gap:g}", linestyle=line.get_linestyle(), color=draw.LINE
                )
                for gap, line in zip(curve.gaps, self.lines_[:n_gaps], strict=True)
            ] + notes
        self.legend_ = draw.legend(ax, handles, legend, notes=notes)
        return self
