"""Curves of groups over the score: what the displays of smoothed curves share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array
from ._group_estimates import plain_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

# Okabe and Ito's palette, told apart by colour-blind readers; lines differ too.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333")
STYLES = ("-", "--", "-.", ":")
LINE, GRID = "#333333", "#E6E6E6"
_LONGEST_LABEL = 40
_HISTOGRAM_HEIGHT = 0.14


def color_of(place: int) -> str:
    """Return the colour of a group by its place."""
    return COLORS[place % len(COLORS)]


def style_of(place: int) -> str:
    """Return the style of a group's line by its place."""
    return STYLES[place % len(STYLES)]


def label_of(group: Hashable) -> str:
    """Return a label for a legend: data, not markup."""
    text = plain_label(group, _LONGEST_LABEL)
    # A legend leaves out labels that begin with an underscore, and reads "$".
    return ("\u200b" + text if text.startswith("_") else text).replace("$", r"\$")


def frame(ax: Axes, xlabel: str, ylabel: str) -> None:
    """Draw light axes with labels that are data."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LINE)
    ax.tick_params(colors=LINE)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel(xlabel, color=LINE, parse_math=False)
    ax.set_ylabel(ylabel, color=LINE, parse_math=False)


def curve(
    ax: Axes,
    x: Array,
    y: Any,
    low: Any,
    high: Any,
    place: int,
    label: str,
) -> tuple[Line2D, PolyCollection]:
    """Draw a curve with its band."""
    (line,) = ax.plot(
        x,
        np.asarray(y, dtype=float),
        color=color_of(place),
        linestyle=style_of(place),
        linewidth=2,
        label=label,
        zorder=3,
    )
    band = ax.fill_between(
        x,
        np.asarray(low, dtype=float),
        np.asarray(high, dtype=float),
        color=color_of(place),
        alpha=0.18,
        linewidth=0,
        zorder=2,
    )
    return line, band


def histograms(ax: Axes, edges: Array, bars: Any) -> tuple[Axes, list[StepPatch]]:
    """Draw where the scores of the groups are, along the bottom of the axes."""
    below = ax.inset_axes((0, 0, 1, _HISTOGRAM_HEIGHT), sharex=ax)
    below.set_axis_off()
    patches = []
    for place, counts in enumerate(np.asarray(bars, dtype=float)):
        share = counts / counts.sum() if counts.sum() > 0 else counts
        patches.append(
            below.stairs(
                share, edges, color=color_of(place), fill=True, alpha=0.35, linewidth=0
            )
        )
    below.set_ylim(bottom=0)
    return below, patches


def legend(ax: Axes, n_entries: int) -> Legend | None:
    """Name the lines above the axes."""
    if not n_entries:
        return None
    return ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=min(n_entries, 4),
        frameon=False,
        fontsize="small",
        labelcolor=LINE,
        borderaxespad=0.2,
    )


def new_axes(n_rows: int, heights: Sequence[float]) -> Any:
    """Return one axes, or several above each other that share the score."""
    import matplotlib.pyplot as plt

    return plt.subplots(
        n_rows,
        1,
        figsize=(6.8, sum(heights)),
        height_ratios=list(heights),
        sharex=True,
        layout="constrained",
    )[1]
