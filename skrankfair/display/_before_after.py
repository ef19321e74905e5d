"""One number per row, before and after, with an arrow from one to the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array, check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation


@dataclass(eq=False, repr=False)
class BeforeAfterDisplay:
    """Open circles before, full ones after, and arrows between them; one line per row.

    A circle is coloured where its p-value is small: the number differs from fair beyond
    chance.

    Parameters
    ----------
    labels : sequence of hashable, length R
        The labels, from the top down.
    before, after : array-like of shape (R,)
        NaN where there is no number.
    pvalue_before, pvalue_after : array-like of shape (R,) or None, default=None
        P-values of no difference from fair; None colours nothing.
    fair_value : float or None, default=0.0
        Where the vertical line is; None draws none.
    name : str, default=""
        What the numbers are, as the label of the axis.
    confidence_level : float, default=0.95
        P-values below one minus this level count as small.
    pvalue_name : str, default="p"
        What the p-values are, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    before_, after_ : list of matplotlib Line2D
        One per row that has the number.
    arrows_ : list of matplotlib Annotation
        One per row that has both.
    fair_line_ : matplotlib Line2D or None
    legend_ : matplotlib Legend or None

    See Also
    --------
    skrankfair.mitigation_report : Measures what is drawn.

    Examples
    --------
    >>> from skrankfair.display import BeforeAfterDisplay
    >>> display = BeforeAfterDisplay(["f", "m"], [-0.2, 0.2], [-0.03, 0.03]).plot()
    >>> len(display.arrows_)
    2
    """

    labels: Sequence[Hashable]
    before: Any
    after: Any
    _: KW_ONLY
    pvalue_before: Any = None
    pvalue_after: Any = None
    fair_value: float | None = 0.0
    name: str = ""
    confidence_level: float = 0.95
    pvalue_name: str = "p"

    def plot(
        self, *, ax: Axes | None = None, legend: bool = True
    ) -> BeforeAfterDisplay:
        """Draw the rows.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the rows need.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        BeforeAfterDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If columns have different lengths, or if the level is outside (0, 1).
        """
        level = self.confidence_level
        check_number(level, "confidence_level", 0, 1, inclusive=(False, False))
        n_rows = len(self.labels)
        columns = {}
        for name in ("before", "after", "pvalue_before", "pvalue_after"):
            given = getattr(self, name)
            values = np.full(n_rows, np.nan) if given is None else np.asarray(given)
            if values.shape != (n_rows,):
                raise ValueError(
                    f"{name} must have one number for each of {n_rows} labels; got "
                    f"shape {values.shape}."
                )
            columns[name] = values.astype(float)
        self.ax_ = draw.axes_for(ax, n_rows)
        self.figure_ = self.ax_.figure
        self.fair_line_ = draw.row_frame(
            self.ax_, self.labels, self.name, self.fair_value
        )
        self.before_: list[Line2D] = []
        self.after_: list[Line2D] = []
        self.arrows_: list[Annotation] = []
        for row in range(n_rows):
            self._draw_row(row, *(values[row] for values in columns.values()))
        self._draw_legend(columns, legend)
        return self

    def _color(self, pvalue: float) -> str:
        return draw.WORSE if pvalue < 1 - self.confidence_level else draw.UNCLEAR

    def _draw_row(
        self, row: int, before: float, after: float, p_before: float, p_after: float
    ) -> None:
        size = draw.dot(7, len(self.labels), self.ax_)
        point: dict[str, Any] = {"marker": "o", "markersize": size, "linestyle": "none"}
        if np.isfinite([before, after]).all():
            arrow = {
                "arrowstyle": "-|>",
                "color": draw.LINE,
                "shrinkA": 4,
                "shrinkB": 4,
            }
            self.arrows_.append(
                self.ax_.annotate(
                    "", (after, row), (before, row), arrowprops=arrow, zorder=2
                )
            )
        if np.isfinite(before):
            color = self._color(p_before)
            self.before_ += self.ax_.plot(
                [before],
                [row],
                color=color,
                markerfacecolor=self.ax_.get_facecolor(),
                markeredgewidth=1.6,
                zorder=3,
                **point,
            )
        if np.isfinite(after):
            color = self._color(p_after)
            self.after_ += self.ax_.plot([after], [row], color=color, zorder=4, **point)

    def _draw_legend(self, columns: dict[str, Array], shown: bool) -> None:
        point: dict[str, Any] = {"marker": "o", "linestyle": "none"}
        face = self.ax_.get_facecolor()
        handles = [
            draw.sample("before", color=draw.LINE, markerfacecolor=face, **point),
            draw.sample("after", color=draw.LINE, **point),
        ]
        with np.errstate(invalid="ignore"):
            small = [
                (columns[f"pvalue_{when}"] < 1 - self.confidence_level).any()
                for when in ("before", "after")
            ]
        if any(small):
            limit = f"{self.pvalue_name} < {1 - self.confidence_level:.3g}"
            text = f"differs from fair, {limit}"
            handles.append(draw.sample(text, color=draw.WORSE, **point))
        self.legend_ = draw.legend(self.ax_, handles, shown, right=True)
