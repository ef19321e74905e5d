"""Matched pair calibration over thresholds: one line per group with its band."""

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

    from ..metrics import MatchedPairCurve

_WIDE = 20  # largest threshold over smallest from which the axis is logarithmic


@dataclass(eq=False, repr=False)
class MatchedPairCurveDisplay:
    """Estimates against the threshold, with one line and one band per group.

    Made by `from_curve` or `MatchedPairCurve.plot`. Above 0 a group is undervalued.

    Parameters
    ----------
    groups : sequence of hashable, length G
        Labels, shown as plain text.
    epsilon : array-like of shape (E,)
    estimate : array-like of shape (E, G)
        NaN leaves a gap.
    ci_low, ci_high : array-like of shape (E, G)
        Ends of the intervals.
    confidence_level : float, default=0.95
        Confidence level of the intervals, for the legend.
    places : sequence of int, length G, or None, default=None
        Which colour each group has. None counts from the first; `from_curve` counts
        among all groups of the curve, so that a group always has the same colour.

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

    See Also
    --------
    skrankfair.metrics.matched_pair_curve : Computes what is drawn.

    Examples
    --------
    >>> from skrankfair.display import MatchedPairCurveDisplay
    >>> display = MatchedPairCurveDisplay(
    ...     ["a", "b"],
    ...     [0.1, 0.2],
    ...     [[0.3, -0.3], [0.2, -0.4]],
    ...     [[0.1, -0.5], [0.1, -0.5]],
    ...     [[0.5, -0.1], [0.3, -0.3]],
    ... )
    >>> [line.get_label() for line in display.plot().lines_]
    ['a', 'b']
    """

    groups: Sequence[Hashable]
    epsilon: Any
    estimate: Any
    ci_low: Any
    ci_high: Any
    _: KW_ONLY
    confidence_level: float = 0.95
    places: Sequence[int] | None = None

    @classmethod
    def from_curve(
        cls,
        curve: MatchedPairCurve,
        *,
        ax: Axes | None = None,
        confidence_level: float = 0.95,
        groups: Sequence[Hashable] | None = None,
        **kwargs: Any,
    ) -> MatchedPairCurveDisplay:
        """Draw a curve.

        Parameters
        ----------
        curve : MatchedPairCurve
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        confidence_level : float, default=0.95
            Confidence level of the bands. They hold at one threshold each.
        groups : sequence of hashable or None, default=None
            Only these, in this order; None draws all.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        MatchedPairCurveDisplay

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or if there is no such group.
        """
        chosen = list(curve.groups if groups is None else groups)
        for group in chosen:
            if group not in curve.groups:
                raise ValueError(
                    f"groups must be among {list(curve.groups)}; got {group!r}."
                )
        columns = [curve.groups.index(group) for group in chosen]
        low, high = curve.confidence_interval(confidence_level)
        display = cls(
            chosen,
            curve.epsilon,
            curve.estimate[:, columns],
            np.asarray(low)[:, columns],
            np.asarray(high)[:, columns],
            confidence_level=confidence_level,
            places=columns,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, legend: bool = True
    ) -> MatchedPairCurveDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MatchedPairCurveDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            For arrays whose shapes do not fit the groups and thresholds.
        """
        epsilon = np.asarray(self.epsilon, dtype=float)
        values = [
            np.asarray(part, dtype=float)
            for part in (self.estimate, self.ci_low, self.ci_high)
        ]
        shape = (epsilon.size, len(self.groups))
        if any(part.shape != shape for part in values):
            raise ValueError(
                "estimate, ci_low and ci_high must have one row per threshold and one "
                f"column per group, shape {shape}; got "
                f"{[part.shape for part in values]}."
            )
        self.ax_ = draw.axes_for(ax)
        self.figure_ = self.ax_.figure
        self._draw_frame(epsilon)
        self._draw_lines(epsilon, *values)
        self._draw_legend(legend)
        return self

    def _draw_frame(self, epsilon: Array) -> None:
        ax = self.ax_
        draw.frame(
            ax, "ε, largest difference of scores", "matched pair calibration", grid="y"
        )
        if epsilon.size and 0 < epsilon.min() <= epsilon.max() / _WIDE:
            ax.set_xscale("log")
        self.fair_line_ = draw.zero(ax)

    def _draw_lines(
        self, epsilon: Array, estimate: Array, low: Array, high: Array
    ) -> None:
        drawn = [
            draw.curve(
                self.ax_,
                epsilon,
                estimate[:, i],
                low[:, i],
                high[:, i],
                place,
                label(group, draw.LONGEST),
                of=len(self.groups),
                marker="o",
                markersize=draw.dot(3.5),
            )
            for i, (place, group) in enumerate(
                zip(self._places(), self.groups, strict=True)
            )
        ]
        self.lines_ = [line for line, _ in drawn]
        self.bands_ = [band for _, band in drawn]

    def _places(self) -> Sequence[int]:
        return range(len(self.groups)) if self.places is None else self.places

    def _draw_legend(self, shown: bool) -> None:
        from matplotlib.patches import Patch

        text = f"{100 * self.confidence_level:g}% interval"
        band: Any = Patch(color=draw.LINE, alpha=0.18, lw=0, label=text)
        if len(self.groups) >= draw.MANY:
            look = {"marker": "|", "linestyle": "none", "color": draw.LINE}
            band = draw.sample(text, **look)
        self.legend_ = draw.legend(self.ax_, self.lines_, shown, notes=[band])
