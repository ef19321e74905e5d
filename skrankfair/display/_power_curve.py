"""The power of tests by number of clusters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import Array
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..planning import PowerCurve

_PROMISED = 0.8


@dataclass(eq=False, repr=False)
class PowerCurveDisplay:
    """Power against the number of clusters: one line per group and gap.

    Made by `from_curve` or `PowerCurve.plot`. A dotted line marks a power of 0.8, and
    a vertical one the pilot.

    Parameters
    ----------
    groups : sequence of hashable, length G
    gaps : array-like of shape (K,)
        The true gaps.
    n_clusters : array-like of shape (N,)
    power : array-like of shape (G, K, N)
    pilot : float, default=nan
        Clusters of the pilot; NaN draws no line.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per group and gap, the gaps of the first group first.
    pilot_line_ : matplotlib Line2D or None
    legend_ : matplotlib Legend or None
        With several groups and gaps, colours say the group, and dashes the gap.

    See Also
    --------
    skrankfair.planning.power_curve : Makes the numbers.

    Examples
    --------
    >>> from skrankfair.display import PowerCurveDisplay
    >>> from skrankfair.planning import plan_rates, power_curve
    >>> curve = power_curve(plan_rates(0.3, share=0.2), gap=[0.02, 0.05])
    >>> len(PowerCurveDisplay.from_curve(curve).lines_)
    2
    """

    groups: Sequence[Hashable]
    gaps: Any
    n_clusters: Any
    power: Any
    _: KW_ONLY
    pilot: float = float("nan")

    @classmethod
    def from_curve(
        cls, curve: PowerCurve, *, ax: Axes | None = None, **kwargs: Any
    ) -> PowerCurveDisplay:
        """Draw what `power_curve` returns.

        Parameters
        ----------
        curve : PowerCurve
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        PowerCurveDisplay
        """
        display = cls(
            curve.groups, curve.gaps, curve.n_clusters, curve.power, pilot=curve.pilot
        )
        return display.plot(ax=ax, **kwargs)

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
        self.ax_ = draw.axes_for(ax)
        self.figure_ = self.ax_.figure
        draw.frame(self.ax_, "clusters", "power")
        self.ax_.set_xscale("log")
        self.ax_.set_ylim(0, 1.02)
        mark: dict[str, Any] = {"color": draw.LINE, "linewidth": draw.thick(1)}
        name = f"power {_PROMISED:g}"
        notes = [self.ax_.axhline(_PROMISED, linestyle=":", label=name, **mark)]
        self.lines_ = []
        power = np.asarray(self.power, dtype=float)
        gaps = np.asarray(self.gaps, dtype=float)
        several = len(self.groups) > 1
        for i, group in enumerate(self.groups):
            for k, gap in enumerate(gaps):
                name = f"{label(group, draw.LONGEST)}, " if several else ""
                look = draw.look(i if several else k)
                look["linestyle"] = draw.DASHES[k % len(draw.DASHES)]
                self.lines_ += self.ax_.plot(
                    np.asarray(self.n_clusters, dtype=float),
                    power[i, k],
                    linewidth=draw.thick(2),
                    label=f"{name}{gap:g}",
                    **look,
                )
        self.pilot_line_ = None
        if np.isfinite(self.pilot):
            self.pilot_line_ = self.ax_.axvline(
                self.pilot, linestyle="--", label="pilot", **mark
            )
            notes.append(self.pilot_line_)
        self._draw_legend(gaps, notes, legend)
        return self

    def _draw_legend(self, gaps: Array, notes: list[Any], shown: bool) -> None:
        handles: list[Any] = self.lines_
        if len(self.groups) > 1 and gaps.size > 1:
            # Colours say the groups, and dashes the gaps.
            handles = [
                draw.sample(label(group, draw.LONGEST), color=line.get_color())
                for group, line in zip(self.groups, handles[:: gaps.size], strict=True)
            ]
            look: dict[str, Any] = {"color": draw.LINE}
            dashes = [line.get_linestyle() for line in self.lines_[: gaps.size]]
            notes = [
                draw.sample(f"gap {gap:g}", linestyle=dash, **look)
                for gap, dash in zip(gaps, dashes, strict=True)
            ] + notes
        self.legend_ = draw.legend(self.ax_, handles, shown, notes=notes)
