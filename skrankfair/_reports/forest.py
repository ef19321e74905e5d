"""A forest plot as an SVG element.

It is written as text and not drawn by matplotlib, whose SVG depends on settings of the
whole process that no figure can have for itself: without ``svg.hashsalt`` each file has
other ids, and ``svg.fonttype`` decides whether labels stay text. Here threads that
write reports share nothing, what the caller has set does not matter, and equal reports
are equal bytes, with labels in the reader's font.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._estimates.formatting import label
from .._estimates.storage import stored
from .._inputs.validation import Array
from ..display import _style as look

_WIDTH, _ROW, _TOP, _BOTTOM, _FONT = 400.0, 22.0, 8.0, 44.0, 11.0
_LEGEND = 20.0
_WIDEST_LABEL = 0.5 * _WIDTH
_MARKERS = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "up": "M0 -5l4.6 8.4h-9.2z",
    "down": "M0 5l4.6 -8.4h-9.2z",
}


@stored("Series")
@dataclass(frozen=True)
class Series:
    """One estimate per row, with its interval."""

    #: Shape (R,). NaN where there is none.
    estimate: Array
    low: Array
    high: Array
    colors: Sequence[str]  # sequence of str, length R
    name: str = ""  # for the legend, which only plots of several series have
    marker: str = "circle"  # {"circle", "up", "down"}


@stored("ForestPlot")
@dataclass(frozen=True)
class ForestPlot:
    """Points with intervals, one row per group, from the top down."""

    labels: Sequence[Hashable]  # sequence of hashable, length R
    series: Sequence[Series]  # drawn below each other within a row
    xlabel: str
    alt: str  # what the plot shows, for readers who cannot see it
    line: float | None = None  # where the vertical line is
    margin: float | None = None  # how far a band reaches to both sides of it
    name: str = ""  # by which a table links to the rows

    def layout(self) -> dict[str, Any]:
        """Return where everything is, in pixels, for the template."""
        n_rows, several = len(self.labels), len(self.series) > 1
        texts = [_shortened(label(group)) for group in self.labels]
        left = 12 + max((_text_width(text) for text, _ in texts), default=0)
        right = _WIDTH - 12
        low, high = self._limits()
        top = _TOP + _LEGEND * several
        row = _ROW * (1.4 if several else 1.0)
        places = top + row * (np.arange(n_rows) + 0.5)

        def x(value: Any) -> Any:
            share = (np.clip(value, low, high) - low) / (high - low)
            return left + share * (right - left)

        marks = []
        for k, series in enumerate(self.series):
            y = places + row * 0.24 * (k - (len(self.series) - 1) / 2)
            finite = np.where(np.isfinite(series.estimate), series.estimate, np.nan)
            columns = (x(finite), x(series.low), x(series.high), y)
            marks += [
                {"marker": _MARKERS[series.marker], "color": color, "at": at}
                for color, *at in zip(series.colors, *columns, strict=True)
                if not np.isnan(at[0])
            ]
        bottom = top + row * n_rows
        values = np.array([series.estimate for series in self.series], dtype=float)
        absent = [
            ""
            if np.isfinite(v).any()
            else "off the axis"
            if np.isinf(v).any()
            else "no data"
            for v in values.T
        ]
        return {
            "plot": self,
            "width": _WIDTH,
            "height": bottom + _BOTTOM,
            "font_size": _FONT,
            "left": left,
            "right": right,
            "top": top,
            "bottom": bottom,
            "rows": list(zip(texts, places, absent, strict=True)),
            "marks": marks,
            "line": None if self.line is None else x(self.line),
            "band": self._band(x),
            "ticks": [(x(value), text) for value, text in _ticks(low, high)]
            if marks
            else [],
            "legend": self._legend() if several else [],
            # In the middle of the axis, unless it would end beyond the plot.
            "middle": min((left + right) / 2, _WIDTH - _text_width(self.xlabel) / 2),
            "line_color": look.LINE,
            "grid_color": look.GRID,
            "unclear": look.UNCLEAR,
            "within": look.WITHIN,
        }

    def _limits(self) -> tuple[float, float]:
        """Return the ends of the axis: all that is finite, with some room."""
        parts: list[Any] = [[] if self.line is None else [self.line]]
        if self.line is not None and self.margin is not None:
            parts.append([self.line - self.margin, self.line + self.margin])
        for series in self.series:
            parts += [series.estimate, series.low, series.high]
        values = np.concatenate([np.asarray(part, dtype=float) for part in parts])
        values = values[np.isfinite(values)]
        if not values.size:
            return 0.0, 1.0
        low, high = float(values.min()), float(values.max())
        room = 0.05 * (high - low) or 0.1 * abs(high) or 1.0
        return low - room, high + room

    def _band(self, x: Callable[[Any], Any]) -> tuple[float, float] | None:
        """Return where the margin begins, and how wide it is."""
        if self.line is None or self.margin is None:
            return None
        low, high = (x(self.line + side * self.margin) for side in (-1, 1))
        return low, high - low

    def _legend(self) -> list[dict[str, Any]]:
        entries, end = [], _WIDTH - 12
        for series in reversed(self.series):
            start = end - _text_width(series.name)
            entries.append(
                {
                    "marker": _MARKERS[series.marker],
                    "color": series.colors[0] if series.colors else look.LINE,
                    "x": start,
                    "text": series.name,
                }
            )
            end = start - 24
        return entries


def _text_width(text: str) -> float:
    """Return about how wide a text is; the font is the reader's."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return _FONT * (0.58 * (len(text) - wide) + 1.05 * wide)


def _shortened(text: str) -> tuple[str, str]:
    """Return a label that fits, and the whole one if that is another."""
    if _text_width(text) <= _WIDEST_LABEL:
        return text, ""
    short = text
    while _text_width(short) > _WIDEST_LABEL:
        short = short[:-2].rstrip() + "…"
    return short, text


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return three to seven round values within the limits, and their texts."""
    raw = (high - low) / 6
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * next(m for m in (1, 2, 5, 10) if m * size >= raw * (1 - 1e-9))
    values = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    decimals = int(max(0, -np.floor(np.log10(step) + 1e-9)))
    small = decimals <= 4 and max(abs(low), abs(high)) < 1e6
    texts = [f"{v + 0.0:.{decimals}f}" if small else f"{v + 0.0:.3g}" for v in values]
    return list(zip(values.tolist(), texts, strict=True))
