"""Colours, axes, rows, curves, labels and legends that all plots share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.font_manager import FontProperties
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch
    from matplotlib.text import Text

#: Colours of groups, none of which is the colour of a verdict, below. Colour-blind
#: readers can tell them apart, and lines have different dashes too.
COLORS = ("#1F1F7A", "#E69F00", "#33BBEE", "#8B0045", "#226666", "#E7298A", "#5C2E00")
DASHES = ("-", "--", "-.", ":")
# Colours of verdicts, three of them from Okabe and Ito's palette.
WORSE, BETTER, UNCLEAR = "#D55E00", "#0072B2", "#767676"
#: Beyond chance, where neither side is known to be bad.
DIFFERENT = "#7B4A9E"
#: Shown to be close enough to fair.
WITHIN = "#009E73"
LINE, GRID = "#333333", "#E6E6E6"
#: The most characters of a label; longer ones are cut.
LONGEST = 40
#: From this number of groups on bars replace bands, which would hide each other.
MANY = 4
_ROW_HEIGHT, _MARGIN_HEIGHT = 0.3, 1.25  # inches, for a font of 10 points
_HISTOGRAM_HEIGHT = 0.14
_LABELS_SHARE, _LEGEND_SHARE = 0.42, 0.3  # shares of the width of the axes with labels
_SMALLEST = 4.5  # points, of a font


def look(number: int) -> dict[str, Any]:
    """Return the colour and the dashes of a group by its number in the result."""
    return {
        "color": COLORS[number % len(COLORS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def setting(name: Any) -> Any:
    """Return one of matplotlib's settings."""
    from matplotlib import rcParams

    return rcParams[name]


def thick(factor: float) -> float:
    """Return `factor` times the line width of the user's settings."""
    return factor * setting("lines.linewidth") / 1.5


def dot(size: float, n_rows: int = 1, ax: Axes | None = None) -> float:
    """Return `size` times the user's marker size, smaller where rows are narrow."""
    size *= setting("lines.markersize") / 6
    return size if ax is None else min(size, _pitch(ax, n_rows))


def heights_of(*n_rows: int) -> list[float]:
    """Return the heights of panels with these numbers of rows, in inches."""
    scale = setting("font.size") / 10
    return [scale * (_MARGIN_HEIGHT + _ROW_HEIGHT * max(n, 2)) for n in n_rows]


def axes_for(ax: Axes | None, n_rows: int | None = None) -> Axes:
    """Return the given axes, with a layout, or those of a new figure."""
    if ax is not None:
        _lay_out(ax)
        return ax
    import matplotlib.pyplot as plt

    size = None if n_rows is None else _size(heights_of(n_rows))
    return plt.subplots(figsize=size, layout="constrained")[1]


def new_panels(heights: list[float], **options: Any) -> list[Axes]:
    """Return the axes of a new figure, a panel of each height, from the top down."""
    import matplotlib.pyplot as plt

    options |= {"figsize": _size(heights), "layout": "constrained"}
    return list(plt.subplots(len(heights), height_ratios=heights, **options)[1])


def _size(heights: list[float]) -> tuple[float, float]:
    """Return the size of a new figure with panels of these heights, in inches."""
    return setting("figure.figsize")[0], sum(heights)


def _lay_out(ax: Axes) -> None:
    """Make room for the labels, unless the caller has arranged the figure."""
    figure = ax.figure.canvas.figure  # the whole figure, not a subfigure
    arranged = any(
        getattr(figure.subplotpars, name) != setting(f"figure.subplot.{name}")
        for name in ("left", "right", "bottom", "top", "wspace", "hspace")
    )
    free = figure.get_layout_engine() is None and ax.get_subplotspec() is not None
    if free and not arranged:
        figure.set_layout_engine("constrained")


def _room(ax: Any) -> tuple[float, float]:
    """Return about the width and height of axes with labels, in pixels."""
    spec = ax.get_subplotspec()
    if spec is None or ax.figure.canvas.figure.get_layout_engine() is None:
        return ax.bbox.width, ax.bbox.height
    # Without a layout, margins take at least a fifth; with one, only what they need.
    place, whole = spec.get_position(ax.figure), ax.figure.bbox
    return 1.25 * place.width * whole.width, 1.25 * place.height * whole.height


def _pixels(ax: Axes, points: float) -> float:
    return points * ax.figure.dpi / 72


def _pitch(ax: Axes, n_rows: int) -> float:
    """Return about how high a row is, in points."""
    # Below the axes are two lines of text, and above them a legend.
    taken = 4.5 * setting("font.size")
    return max(_room(ax)[1] * 72 / ax.figure.dpi - taken, taken) / max(n_rows, 2)


def _font(size: Any) -> FontProperties:
    """Return the font of the user's settings in a size in points or in words."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=size)


def _width(ax: Axes, text: str, font: FontProperties) -> float:
    """Return the width of a text in pixels."""
    from matplotlib.text import Text

    drawn = Text(0, 0, text, fontproperties=font, parse_math=False)
    drawn.set_figure(ax.figure)
    return drawn.get_window_extent().width


def _cut(ax: Axes, text: str, font: FontProperties, limit: float) -> str:
    """Return a text, cut in its middle if it is too wide."""
    width = _width(ax, text, font)
    keep = len(text) if width <= limit else int(len(text) * limit / width) + 2
    short = text
    while keep > 1 and _width(ax, short, font) > limit:
        keep -= 1
        last = keep // 2
        short = text[: keep - last].rstrip() + "…" + text[len(text) - last :].lstrip()
    return short


def _wrapped(ax: Axes, text: str, font: FontProperties, limit: float) -> str:
    """Return a text with line breaks, so that no line is too wide."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and _width(ax, longer, font) > limit:
                lines.append(line)
                longer = word
            line = longer
        lines.append(_cut(ax, line, font, limit))
    return "\n".join(lines)


def check_axes(axes: Any, what: Sequence[str]) -> tuple[Axes, ...]:
    """Return one Axes for each thing to draw, or raise a ValueError."""
    if np.shape(axes) != (len(what),):
        number = {2: "two", 3: "three"}[len(what)]
        named = f"{', '.join(what[:-1])} and {what[-1]}"
        raise ValueError(
            f"axes must be {number} axes, for {named}; got {type(axes).__name__}."
        )
    for ax in axes:
        _lay_out(ax)
    return tuple(axes)


def frame(
    ax: Axes,
    xlabel: str,
    ylabel: str = "",
    *,
    grid: Literal["both", "x", "y"] | None = "both",
    left: float = 0.0,
) -> None:
    """Draw light axes with labels that are data, so that "$" is a dollar.

    The labels are wrapped; `left` is the width of the labels of rows, in pixels.
    """
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LINE)
    ax.tick_params(which="both", colors=LINE)
    if grid is not None:
        ax.grid(axis=grid, color=GRID, linewidth=thick(0.8))
    ax.set_axisbelow(True)
    wide, high = _room(ax)
    font = ax.xaxis.label.get_fontproperties()
    room = 0.95 * wide - left if left else 0.8 * wide
    ax.set_xlabel(_wrapped(ax, xlabel, font, room), color=LINE, parse_math=False)
    ax.set_ylabel(_wrapped(ax, ylabel, font, 0.6 * high), color=LINE, parse_math=False)


def row_frame(
    ax: Axes,
    labels: Sequence[Hashable],
    xlabel: str,
    at: float | None = None,
    *,
    longest: int = LONGEST,
) -> Line2D | None:
    """Draw axes with a labelled row for each group, and a vertical line if asked.

    Where rows are lower than their labels, these are smaller; where they would be too
    small to read, only some rows have one.
    """
    rows = np.arange(len(labels))
    pitch = _pitch(ax, len(labels))
    chosen = _font(setting("ytick.labelsize")).get_size_in_points()
    size = min(chosen, max(0.8 * pitch, _SMALLEST))
    every = int(np.ceil(_SMALLEST / (0.8 * pitch)))
    limit = _LABELS_SHARE * _room(ax)[0]
    # Both ends, since labels of crossed groups often begin alike.
    whole = [label(text, longest) for text in labels]
    texts = [_cut(ax, text, _font(size), limit) for text in whole]
    ax.set_yticks(rows[::every], labels=texts[::every], parse_math=False, size=size)
    left = max((_width(ax, text, _font(size)) for text in texts), default=0.0)
    frame(ax, xlabel, grid=None, left=left + _pixels(ax, size))
    ax.spines["left"].set_visible(False)
    ax.set_ylim(max(len(labels), 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    across: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "zorder": 0}
    ax.hlines(rows, 0, 1, colors=GRID, linewidths=thick(0.8), **across)
    return None if at is None else mark(ax, at, "x")


def curves(
    ax: Axes,
    names: Sequence[Hashable],
    x: Sequence[Any],
    y: Any,
    low: Any = None,
    high: Any = None,
    *,
    numbers: Sequence[int] | None = None,
    longest: int = LONGEST,
    **options: Any,
) -> tuple[list[Line2D], list[Collection]]:
    """Draw the curve of each group with its band, or with bars if there are many.

    A group has the look of its number, by default its number among the names. Points
    are joined in the order of `x`.
    """
    lines: list[Line2D] = []
    bands: list[Collection] = []
    for i, name in enumerate(names):
        number = i if numbers is None else numbers[i]
        order = np.argsort(x[i], kind="stable")  # steps have two values at one score
        points, values = np.asarray(x[i])[order], np.asarray(y[i], dtype=float)[order]
        style = {**look(number), "linewidth": thick(2), "zorder": 3, **options}
        lines += ax.plot(points, values, label=label(name, longest), **style)
        if low is None or high is None:
            continue
        below, above = (np.asarray(end[i], dtype=float)[order] for end in (low, high))
        color = lines[-1].get_color()
        if len(names) < MANY:
            band: dict[str, Any] = {"alpha": 0.18, "linewidth": 0, "zorder": 2}
            bands.append(ax.fill_between(points, below, above, color=color, **band))
            continue
        of = len(names)
        step = max(points.size // 8, min(of, points.size // 4), 1)
        some = slice(number % of * step // of, None, step)
        bars: dict[str, Any] = {"alpha": 0.7, "linewidths": thick(1.2), "zorder": 2}
        bands.append(
            ax.vlines(points[some], below[some], above[some], colors=color, **bars)
        )
    return lines, bands


def rows(
    ax: Axes,
    values: Array,
    colors: Sequence[str],
    low: Any = np.nan,
    high: Any = np.nan,
    *,
    markers: Sequence[str] | str = "o",
    hollow: bool | Array = False,
    size: float = 6.5,
    zorder: float = 3,
) -> tuple[list[Line2D], list[Line2D]]:
    """Draw the point of each row that has a value, with its interval if it has one."""
    points: list[Line2D] = []
    intervals: list[Line2D] = []
    size = dot(size, len(values), ax)
    low, high, hollow = (np.broadcast_to(v, len(values)) for v in (low, high, hollow))
    for row in np.flatnonzero(~np.isnan(values)).tolist():
        color, face = colors[row], ax.get_facecolor()
        if np.isfinite([low[row], high[row]]).all():
            intervals += ax.plot(
                [low[row], high[row]],
                [row, row],
                color=color,
                linewidth=thick(2.2),
                solid_capstyle="round",
                zorder=zorder - 1,
            )
        points += ax.plot(
            [values[row]],
            [row],
            marker=markers[row % len(markers)],
            markersize=size,
            color=color,
            markeredgewidth=1.2,
            markeredgecolor=color if hollow[row] else face,
            markerfacecolor=face if hollow[row] else color,
            linestyle="none",
            zorder=zorder,
        )
    return points, intervals


def in_row(
    ax: Axes, row: float, text: str, color: Any, *, right: bool = False, **options: Any
) -> Text:
    """Write a text at an end of a row, over its line."""
    return ax.text(
        0.985 if right else 0.015,
        row,
        text,
        transform=ax.get_yaxis_transform(),
        color=color,
        ha="right" if right else "left",
        va="center",
        size="small",
        bbox={"facecolor": ax.get_facecolor(), "lw": 0, "pad": 1.5},
        **{"zorder": 4, **options},
    )


def histograms(ax: Axes, grid: Array, bars: Any) -> list[StepPatch]:
    """Draw where the scores of the groups are, along the bottom of the axes.

    The bars of each group are of equal width, from the first score of the grid to the
    last one; where there is only one score, there are none.
    """
    bars = np.asarray(bars, dtype=float)
    edges = np.linspace(np.min(grid), np.max(grid), bars.shape[1] + 1)
    if edges[0] == edges[-1]:
        return []
    if ax.dataLim.y0 >= 0:
        ax.set_ylim(bottom=0)  # so that no bar is below zero
    below = ax.inset_axes((0, 0, 1, _HISTOGRAM_HEIGHT), sharex=ax)
    below.set_axis_off()
    style: dict[str, Any] = {"fill": True, "alpha": 0.35, "linewidth": 0}
    if len(bars) >= MANY:
        style = {"fill": False, "linewidth": thick(0.8)}
    patches = [
        below.stairs(
            counts / max(counts.sum(), 1.0), edges, color=look(i)["color"], **style
        )
        for i, counts in enumerate(bars)
    ]
    below.set_ylim(bottom=0)
    return patches


def mark(ax: Axes, at: float, axis: str = "y", **options: Any) -> Line2D:
    """Draw a line across the axes at a value of one axis, such as the fair value."""
    drawn = ax.axvline if axis == "x" else ax.axhline
    look = {"color": LINE, "linewidth": thick(1.2), "zorder": 1}
    return drawn(at, **{**look, **options})


def diagonal(ax: Axes, low: float, high: float) -> Line2D:
    """Draw the diagonal, on which the score is the mean outcome."""
    look: dict[str, Any] = {"color": LINE, "linewidth": thick(1.2), "zorder": 1}
    ends = [low, high]
    return ax.plot(ends, ends, linestyle=":", label="score = outcome", **look)[0]


def sample(name: str, **options: Any) -> Line2D:
    """Return an entry for a legend that stands for several artists."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=name, **{"color": LINE, **options})


_SPACES = {"handlelength": 1.8, "handletextpad": 0.4, "columnspacing": 1.2}
_LINE_SPACING, _BORDER = 0.3, 0.3
_FEWEST_LETTERS = 6  # of a label that is cut, about


def legend(
    ax: Axes,
    handles: Iterable[Any],
    shown: bool = True,
    *,
    notes: Sequence[Any] = (),
    title: str = "",
    right: bool = False,
    most: int = 30,
) -> Legend | None:
    """Name the artists above the axes by their labels, which are data.

    There are as many columns as fit. Labels that are too wide are cut. Handles without
    room, or beyond the first `most`, are only counted; the `notes` are always shown.
    """
    entries, notes = list(handles), list(notes)
    if not shown or not (entries or notes):
        return None
    chosen = setting("legend.fontsize")
    font = _font("small" if chosen == "medium" else chosen)
    em = _pixels(ax, font.get_size_in_points())
    wide, high = _room(ax)
    limit = 0.93 * wide - 2 * em * _BORDER
    rows = max(int(_LEGEND_SHARE * high / (em * (1 + _LINE_SPACING))) - bool(title), 1)
    handle = em * (_SPACES["handlelength"] + _SPACES["handletextpad"])
    gap = em * _SPACES["columnspacing"]
    most_columns = max(int((limit + gap) / (handle + _FEWEST_LETTERS * em + gap)), 1)
    cells = most_columns * rows - len(notes)
    if len(entries) > min(most, cells):
        named = max(min(most, cells - 1), 0)
        more = sample(f"and {len(entries) - named} more", linestyle="none")
        entries, notes = entries[:named], [more, *notes]
    entries += notes
    least = min(-(-len(entries) // rows), most_columns)
    texts = [str(entry.get_label()) for entry in entries]
    widths = [handle + _width(ax, text, font) for text in texts]
    columns, taken = _columns(widths, gap, least, limit)
    if taken > limit:
        room = (limit + gap) / least - gap - handle
        texts = [_cut(ax, text, font, room) for text in texts]
        widths = [handle + _width(ax, text, font) for text in texts]
        columns, taken = _columns(widths, gap, least, limit)
    right = right or taken > 0.66 * wide  # a wide legend begins above the labels
    drawn = ax.legend(
        handles=entries,
        # Matplotlib leaves out labels that begin with "_", so the texts follow later.
        labels=["group"] * len(entries),
        loc="lower right" if right else "lower left",
        bbox_to_anchor=(int(right), 1),
        ncols=columns,
        frameon=False,
        prop=font,
        labelcolor=LINE,
        borderaxespad=0.2,
        borderpad=_BORDER,
        labelspacing=_LINE_SPACING,
        title=_wrapped(ax, title, font, limit) or None,
        title_fontproperties=font,
        alignment="left",
        **_SPACES,
    )
    drawn.get_title().set_color(LINE)
    for entry, text in zip(drawn.get_texts(), texts, strict=True):
        entry.set_parse_math(False)
        entry.set_text(text)
    return drawn


def entitled(
    ax: Axes, handles: Iterable[Any], shown: bool, words: str
) -> tuple[Legend | None, Text]:
    """Write words above a legend, or above the axes where there is none."""
    drawn = legend(ax, handles, shown, title=words)
    if drawn is not None:
        return drawn, drawn.get_title()
    return None, ax.set_title(words, loc="left", color=LINE, size="medium")


def _columns(
    widths: Sequence[float], gap: float, least: int, limit: float
) -> tuple[int, float]:
    """Return the most columns that entries fit into, and the width of all of them."""
    for columns in range(len(widths), least - 1, -1):
        widest = [max(column) for column in np.array_split(widths, columns)]
        taken = sum(widest) + gap * (columns - 1)
        if taken <= limit:
            break
    return columns, taken
