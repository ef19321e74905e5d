"""Matched pair calibration over thresholds: a line a group with its band."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array
from ._group_estimates import plain_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..metrics import MatchedPairCurve

_LINE, _GRID = "#333333", "#E6E6E6"
# Okabe and Ito's palette, told apart by colour-blind readers; then other dashes.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#333333")
_DASHES = ("-", "--", ":")
_LONGEST_LABEL = 30
_SIZE = (6.8, 4.4)
_WIDE = 20  # largest threshold over smallest from which the axis is logarithmic


class MatchedPairCurveDisplay:
    """Estimates against the threshold, a line and a band a group.

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
        Of the intervals, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One a group.
    bands_ : list of matplotlib PolyCollection
        One a group.
    fair_line_ : matplotlib Line2D
    legend_ : matplotlib Legend

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

    def __init__(
        self,
        groups: Sequence[Hashable],
        epsilon: Any,
        estimate: Any,
        ci_low: Any,
        ci_high: Any,
        *,
        confidence_level: float = 0.95,
    ) -> None:
        self.groups = groups
        self.epsilon = epsilon
        self.estimate = estimate
        self.ci_low = ci_low
        self.ci_high = ci_high
        self.confidence_level = confidence_level

    @classmethod
    def from_curve(
        cls,
        curve: MatchedPairCurve,
        *,
        ax: Axes | None = None,
        confidence_level: float = 0.95,
        groups: Sequence[Hashable] | None = None,
    ) -> MatchedPairCurveDisplay:
        """Draw a curve.

        Parameters
        ----------
        curve : MatchedPairCurve
        ax : matplotlib Axes or None, default=None
            None makes a figure.
        confidence_level : float, default=0.95
            Of the bands, which hold at one threshold each.
        groups : sequence of hashable or None, default=None
            Only these, in this order; None draws all.

        Returns
        -------
        MatchedPairCurveDisplay

        Raises
        ------
        ValueError
            For a level outside (0, 1), or a group that is not there.
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
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> MatchedPairCurveDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes a figure.

        Returns
        -------
        MatchedPairCurveDisplay
            This one, with the artists.

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
                "estimate, ci_low and ci_high must have a row a threshold and a column "
                f"a group, shape {shape}; got {[part.shape for part in values]}."
            )
        self.ax_ = _new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw_frame(epsilon)
        self._draw_lines(epsilon, *values)
        self._draw_legend()
        return self

    def _draw_frame(self, epsilon: Array) -> None:
        ax = self.ax_
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        for side in ("bottom", "left"):
            ax.spines[side].set_color(_LINE)
        ax.tick_params(which="both", colors=_LINE)
        ax.grid(axis="y", color=_GRID, linewidth=0.8)
        ax.set_axisbelow(True)
        if epsilon.size and 0 < epsilon.min() <= epsilon.max() / _WIDE:
            ax.set_xscale("log")
        ax.set_xlabel("ε, largest difference of scores", color=_LINE)
        ax.set_ylabel("matched pair calibration", color=_LINE)
        self.fair_line_ = ax.axhline(0, color=_LINE, linewidth=1.2, zorder=1)

    def _draw_lines(
        self, epsilon: Array, estimate: Array, low: Array, high: Array
    ) -> None:
        self.lines_, self.bands_ = [], []
        for i, group in enumerate(self.groups):
            color = _COLORS[i % len(_COLORS)]
            dash = _DASHES[i // len(_COLORS) % len(_DASHES)]
            self.bands_.append(
                self.ax_.fill_between(
                    epsilon, low[:, i], high[:, i], color=color, alpha=0.15, linewidth=0
                )
            )
            self.lines_ += self.ax_.plot(
                epsilon,
                estimate[:, i],
                color=color,
                linestyle=dash,
                marker="o",
                markersize=3.5,
                linewidth=1.8,
                label=plain_label(group, _LONGEST_LABEL),
                zorder=2,
            )

    def _draw_legend(self) -> None:
        from matplotlib.patches import Patch

        handles = [
            *self.lines_,
            Patch(color=_LINE, alpha=0.15, lw=0, label="interval"),
        ]
        names = [
            *(str(line.get_label()) for line in self.lines_),
            f"{100 * self.confidence_level:g}% interval",
        ]
        self.legend_ = self.ax_.legend(
            handles=handles,
            labels=["group"] * len(names),  # matplotlib leaves out those with a "_"
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=4,
            frameon=False,
            fontsize="small",
            labelcolor=_LINE,
            borderaxespad=0.2,
            handlelength=1.6,
        )
        for text, name in zip(self.legend_.get_texts(), names, strict=True):
            text.set_parse_math(False)
            text.set_text(name)


def _new_axes() -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=_SIZE, layout="constrained")[1]
