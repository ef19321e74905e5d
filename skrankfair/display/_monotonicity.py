"""Shares by position with their monotone fit."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import MonotonicityTest

_MANY = 40


@dataclass(eq=False, repr=False)
class MonotonicityDisplay:
    """A group's share at every position, the monotone fit, and the verdict.

    Made by `from_test` or `MonotonicityTest.plot`. Shares outside the band of the fit
    are coloured.

    Parameters
    ----------
    position : array-like of shape (n,)
        Counted from 1, the top.
    share, fit : array-like of shape (n,)
        Observed, and monotone.
    band_low, band_high : array-like of shape (n,)
        Around the fit; NaN draws no band.
    pvalue : float
        NaN gives no verdict.
    rejected : bool
        Whether the test rejected a monotone share.
    confidence_level : float, default=0.95
        The confidence level of the band.
    group : hashable, default=""
    group_share : float or None, default=None
        Its share over all positions; None draws no line.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    shares_ : list of matplotlib Line2D
        Points inside the band and, if there are any, outside.
    fit_ : matplotlib Line2D
    band_ : matplotlib PolyCollection or None
    group_share_ : matplotlib Line2D or None
    verdict_ : matplotlib Text
        The title of the legend or, without one, of the axes.
    legend_ : matplotlib Legend or None

    See Also
    --------
    skrankfair.inference.monotonicity_test : The test.

    Examples
    --------
    >>> from skrankfair.datasets import make_biased_rankings
    >>> from skrankfair.inference import monotonicity_test
    >>> data = make_biased_rankings(200, 10, share=0.4, advantage=0.5, random_state=0)
    >>> test = monotonicity_test(
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     group="protected",
    ...     random_state=0,
    ... )
    >>> test.plot().verdict_.get_text().split(":")[0]
    'monotone'
    """

    position: Any
    share: Any
    fit: Any
    band_low: Any
    band_high: Any
    _: KW_ONLY
    pvalue: float
    rejected: bool
    confidence_level: float = 0.95
    group: Any = ""
    group_share: float | None = None

    @classmethod
    def from_test(
        cls, test: MonotonicityTest, *, ax: Axes | None = None, **kwargs: Any
    ) -> MonotonicityDisplay:
        """Draw the result of a test.

        Parameters
        ----------
        test : MonotonicityTest
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        MonotonicityDisplay
        """
        display = cls(
            test.position,
            test.share,
            test.fit,
            test.band_low,
            test.band_high,
            pvalue=test.pvalue,
            rejected=test.rejected,
            confidence_level=test.confidence_level,
            group=test.group,
            group_share=test.group_share,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, legend: bool = True
    ) -> MonotonicityDisplay:
        """Draw the shares, the fit with its band, and the verdict.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MonotonicityDisplay
            This display, with the artists.
        """
        self.ax_ = draw.axes_for(ax)
        self.figure_, ax = self.ax_.figure, self.ax_
        position = np.asarray(self.position)
        share, fit = (np.asarray(x, dtype=float) for x in (self.share, self.fit))
        low, high = (
            np.asarray(x, dtype=float) for x in (self.band_low, self.band_high)
        )
        self.band_ = None
        if not (np.isnan(low).all() or np.isnan(high).all()):
            self.band_ = ax.fill_between(
                position,
                low,
                high,
                color=draw.COLORS[0],
                alpha=0.18,
                linewidth=0,
                label=f"{self.confidence_level:.0%} band of the fit",
            )
        (self.fit_,) = ax.plot(
            position, fit, color=draw.COLORS[0], lw=draw.thick(2), label="monotone fit"
        )
        with np.errstate(invalid="ignore"):
            outside = (share < low - 1e-12) | (share > high + 1e-12)
        self.shares_ = []
        for rows, color, name in (
            (~outside, draw.LINE, "observed share"),
            (outside, draw.WORSE, "outside the band"),
        ):
            if rows.any():
                self.shares_ += ax.plot(
                    position[rows],
                    share[rows],
                    "o",
                    color=color,
                    markersize=draw.dot(5 if position.size <= _MANY else 3),
                    label=name,
                    zorder=3,
                )
        self.group_share_ = None
        if self.group_share is not None:
            self.group_share_ = ax.axhline(
                self.group_share,
                color=draw.UNCLEAR,
                lw=draw.thick(1),
                ls=":",
                zorder=0,
                label="share of the group",
            )
        self._draw_frame(position, legend)
        return self

    def _draw_frame(self, position: Any, shown: bool) -> None:
        """Draw the labels, the verdict and the legend."""
        from matplotlib.ticker import MaxNLocator

        ax = self.ax_
        if np.isnan(self.pvalue):
            words = "no verdict"
        else:
            words = "not monotone" if self.rejected else "monotone"
            small = self.pvalue < 0.001
            words += ": p < 0.001" if small else f": p = {self.pvalue:.3f}"
        draw.frame(
            ax, "position, 1 = top", f"share of {label(self.group, draw.LONGEST)}"
        )
        ax.set_ylim(-0.03, 1.03)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        handles, _ = ax.get_legend_handles_labels()
        self.legend_ = draw.legend(ax, handles, shown, title=words)
        if self.legend_ is None:
            ax.set_title(words, loc="left", color=draw.LINE, size="medium")
        self.verdict_ = ax.title if self.legend_ is None else self.legend_.get_title()
