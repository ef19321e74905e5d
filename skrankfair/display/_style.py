"""What all plots share: colours, axes, rows, curves, labels and legends."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

# Okabe and Ito's palette, told apart by colour-blind readers; lines differ too.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333")
DASHES = ("-", "--", "-.", ":")
WORSE, BETTER, UNCLEAR = "#D55E00", "#0072B2", "#767676"
#: Beyond chance, where neither side is known to be bad.
DIFFERENT = "#7B4A9E"
#: Shown to be close enough to fair.
WITHIN = "#009E73"
LINE, GRID = "#333333", "#E6E6E6"
#: Longer labels are cut.
LONGEST = 40
WIDTH, ROW_HEIGHT, MARGIN_HEIGHT = 6.8, 0.3, 1.25
_HISTOGRAM_HEIGHT = 0.14


def look(place: int) -> dict[str, Any]:
    """Return the colour and the dashes of a group by its place in the result."""
    return {
        "color": COLORS[place % len(COLORS)],
        "linestyle": DASHES[place % len(DASHES)],
    }


def new_axes(height: float, *, width: float = WIDTH) -> Axes:
    """Return the axes of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def new_rows(n_rows: int) -> Axes:
    """Return the axes of a new figure that is as high as the rows need."""
    return new_axes(MARGIN_HEIGHT + ROW_HEIGHT * max(n_rows, 2))


def new_panels(
    mosaic: list[Any], heights: Sequence[float], **options: Any
) -> dict[str, Axes]:
    """Return the axes of a new figure by their names."""
    import matplotlib.pyplot as plt

    width = WIDTH if len(mosaic[0]) == 1 else 1.4 * WIDTH
    figure = plt.figure(figsize=(width, sum(heights)), layout="constrained")
    return figure.subplot_mosaic(mosaic, height_ratios=list(heights), **options)


def check_axes(axes: Any, what: Sequence[str]) -> tuple[Axes, ...]:
    """Return as many axes as there are things to draw, or raise a ValueError."""
    if np.shape(axes) != (len(what),):
        number = {2: "two", 3: "three"}[len(what)]
        named = f"{', '.join(what[:-1])} and {what[-1]}"
        raise ValueError(
            f"axes must be {number} axes, for {named}; got {type(axes).__name__}."
        )
    return tuple(axes)


def frame(
    ax: Axes,
    xlabel: str,
    ylabel: str = "",
    *,
    grid: Literal["both", "x", "y"] | None = "both",
) -> None:
    """Draw light axes with labels that are data, so that "$" is a dollar."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LINE)
    ax.tick_params(which="both", colors=LINE)
    if grid is not None:
        ax.grid(axis=grid, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel(xlabel, color=LINE, parse_math=False)
    ax.set_ylabel(ylabel, color=LINE, parse_math=False)


def row_frame(
    ax: Axes,
    labels: Sequence[Hashable],
    xlabel: str,
    at: float | None = None,
    *,
    longest: int = LONGEST,
) -> Line2D | None:
    """Draw axes with a labelled row for each group, and a vertical line if asked."""
    frame(ax, xlabel, grid=None)
    ax.spines["left"].set_visible(False)
    places = np.arange(len(labels))
    texts = [label(text, longest) for text in labels]
    ax.set_yticks(places, labels=texts, parse_math=False)
    ax.set_ylim(max(len(labels), 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.hlines(
        places,
        0,
        1,
        transform=ax.get_yaxis_transform(),
        colors=GRID,
        linewidths=0.8,
        zorder=0,
    )
    if at is None:
        return None
    return ax.axvline(at, color=LINE, linewidth=1.2, zorder=1)


def curve(
    ax: Axes,
    x: Array,
    y: Any,
    low: Any,
    high: Any,
    place: int,
    name: str,
    **options: Any,
) -> tuple[Line2D, PolyCollection]:
    """Draw a curve with its band."""
    (line,) = ax.plot(
        x,
        np.asarray(y, dtype=float),
        linewidth=2,
        label=name,
        zorder=3,
        **look(place),
        **options,
    )
    band = ax.fill_between(
        x,
        np.asarray(low, dtype=float),
        np.asarray(high, dtype=float),
        color=line.get_color(),
        alpha=0.18,
        linewidth=0,
        zorder=2,
    )
    return line, band


def histograms(ax: Axes, edges: Array, bars: Any) -> list[StepPatch]:
    """Draw where the scores of the groups are, along the bottom of the axes."""
    below = ax.inset_axes((0, 0, 1, _HISTOGRAM_HEIGHT), sharex=ax)
    below.set_axis_off()
    patches = []
    for place, counts in enumerate(np.asarray(bars, dtype=float)):
        share = counts / counts.sum() if counts.sum() > 0 else counts
        color = look(place)["color"]
        patches.append(
            below.stairs(share, edges, color=color, fill=True, alpha=0.35, linewidth=0)
        )
    below.set_ylim(bottom=0)
    return patches


def sample(name: str, **options: Any) -> Line2D:
    """Return an entry for a legend that stands for several artists."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=name, **options)


def legend(
    ax: Axes, handles: Iterable[Any], *, right: bool = False, columns: int = 4
) -> Legend | None:
    """Name the artists above the axes by their labels, which are data."""
    handles = list(handles)
    if not handles:
        return None
    drawn = ax.legend(
        handles=handles,
        # Matplotlib leaves out labels that begin with "_", so the texts follow later.
        labels=["group"] * len(handles),
        loc="lower right" if right else "lower left",
        bbox_to_anchor=(int(right), 1),
        ncols=min(len(handles), columns),
        frameon=False,
        fontsize="small",
        labelcolor=LINE,
        borderaxespad=0.2,
        handlelength=1.8,
        handletextpad=0.4,
        columnspacing=1.2,
    )
    for text, handle in zip(drawn.get_texts(), handles, strict=True):
        text.set_parse_math(False)
        text.set_text(str(handle.get_label()))
    return drawn
