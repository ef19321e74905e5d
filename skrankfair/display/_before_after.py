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

_WHEN = ("before", "after")


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
        level, n_rows = self.confidence_level, len(self.labels)
        check_number(level, "confidence_level", 0, 1, inclusive=(False, False))
        columns: dict[str, Array] = {}
        for name in ("before", "after", "pvalue_before", "pvalue_after"):
            given = getattr(self, name)
            values = np.full(n_rows, np.nan) if given is None else np.asarray(given)
            if values.shape != (n_rows,):
                raise ValueError(
                    f"{name} must have one number for each of {n_rows} labels; got "
                    f"shape {values.shape}."
                )
            columns[name] = values.astype(float)
        ax = self.ax_ = draw.axes_for(ax, n_rows)
        self.figure_ = ax.figure
        self.fair_line_ = draw.row_frame(ax, self.labels, self.name, self.fair_value)
        arrow = {"arrowstyle": "-|>", "color": draw.LINE, "shrinkA": 4, "shrinkB": 4}
        both = np.isfinite(columns["before"]) & np.isfinite(columns["after"])
        self.arrows_ = [
            ax.annotate(
                "",
                (columns["after"][row], row),
                (columns["before"][row], row),
                arrowprops=arrow,
                zorder=2,
            )
            for row in np.flatnonzero(both)
        ]
        small = {when: columns[f"pvalue_{when}"] < 1 - level for when in _WHEN}
        colors = {
            when: np.where(small[when], draw.WORSE, draw.UNCLEAR).tolist()
            for when in _WHEN
        }
        self.before_, _ = draw.rows(
            ax, columns["before"], colors["before"], hollow=True, size=7
        )
        self.after_, _ = draw.rows(
            ax, columns["after"], colors["after"], size=8, zorder=4
        )
        point: dict[str, Any] = {"marker": "o", "linestyle": "none"}
        face = ax.get_facecolor()
        handles = [
            draw.sample("before", color=draw.LINE, markerfacecolor=face, **point),
            draw.sample("after", color=draw.LINE, **point),
        ]
        if small["before"].any() or small["after"].any():
            text = f"differs from fair, {self.pvalue_name} < {1 - level:.3g}"
            handles.append(draw.sample(text, color=draw.WORSE, **point))
        self.legend_ = draw.legend(ax, handles, legend, right=True)
        return self
