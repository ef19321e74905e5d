"""Curves of mean outcome by group, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import check_choice
from . import _style as draw

if TYPE_CHECKING:
    from ..inference._predictive_parity import PredictiveParityTest

_SHARES = (0.75, 0.6)  # of the height of a figure
_MOST = 8  # contrasts in the legend
_LONGEST_OF_TWO = 20


@dataclass(eq=False, repr=False)
class PredictiveParityDisplay:
    """Two plots: the curve of each group with its band, and their differences.

    Made by `PredictiveParityTest.plot`. Scores at which the test rejects are marked
    under the differences.

    Parameters
    ----------
    test : PredictiveParityTest

    Attributes
    ----------
    axes_ : tuple of two matplotlib Axes
    figure_ : matplotlib Figure
    lines_, bands_ : list of matplotlib artists
        One per group.
    difference_lines_, difference_bands_ : list of matplotlib artists
        One per contrast.
    rejected_ : list of matplotlib Line2D
        One per contrast: the marks where the test rejects.
    histograms_ : list of matplotlib StepPatch
        One per group, or none.
    """

    test: PredictiveParityTest

    def plot(
        self,
        *,
        axes: Any = None,
        kind: str = "simultaneous",
        xlabel: str = "score",
        ylabel: str = "mean outcome",
        legend: bool = True,
    ) -> PredictiveParityDisplay:
        """Draw the curves and the differences.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes or None, default=None
            None creates a new figure. The Axes are for the curves and the differences.
        kind : {"simultaneous", "pointwise"}, default="simultaneous"
            The bands.
        xlabel, ylabel : str, default="score", "mean outcome"
        legend : bool, default=True
            False draws none.

        Returns
        -------
        PredictiveParityDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If the kind is unknown, or if `axes` are not two axes.
        """
        check_choice(kind, "kind", ("simultaneous", "pointwise"))
        if axes is None:
            mosaic = [["curves"], ["differences"]]
            heights = [share * draw.figure_size()[1] for share in _SHARES]
            axes = [*draw.new_panels(mosaic, heights, sharex=True).values()]
        self.axes_ = draw.check_axes(axes, ("the curves", "the differences"))
        self.figure_ = self.axes_[0].figure
        test = self.test
        bands = f"{100 * test.parameters['confidence_level']:g}% {kind} bands"
        draw.frame(self.axes_[0], "", ylabel)
        draw.frame(
            self.axes_[1], f"{xlabel}\n{bands}, p = {test.pvalue:.3g}", "difference"
        )
        order = np.argsort(test.grid, kind="stable")
        ends = [np.asarray(end)[:, order] for end in test.curve_band(kind=kind)]
        grids = [test.grid[order]] * len(test.groups)
        self.lines_, self.bands_ = draw.curves(
            self.axes_[0], test.groups, grids, test.curves[:, order], *ends
        )
        self.histograms_ = draw.histograms(self.axes_[0], test.grid, test.bars)
        draw.legend(self.axes_[0], self.lines_, legend)
        self._draw_differences(kind, legend)
        return self

    def _draw_differences(self, kind: str, legend: bool) -> None:
        """Draw the differences with their bands, and marks where the test rejects."""
        test, ax = self.test, self.axes_[1]
        order = np.argsort(test.grid, kind="stable")
        grid, n = test.grid[order], len(test.contrasts)
        # A difference is at most the range of the outcomes.
        reach = test.range[1] - test.range[0]
        draw.zero(ax)
        self.difference_lines_, self.difference_bands_ = draw.curves(
            ax,
            [
                " − ".join(label(group, _LONGEST_OF_TWO) for group in pair)
                for pair in test.contrasts
            ],
            [grid] * n,
            np.clip(test.difference[:, order], -reach, reach),
            *(np.asarray(end)[:, order] for end in test.band(kind=kind)),
            longest=3 * _LONGEST_OF_TWO,
        )
        self.rejected_: list[Any] = []
        for place, (line, where) in enumerate(
            zip(self.difference_lines_, test.rejected[:, order], strict=True)
        ):
            self.rejected_ += ax.plot(
                grid[where],
                np.full(int(where.sum()), 0.03 + 0.04 * (place % 8)),
                linestyle="none",
                marker="|",
                color=line.get_color() if n > 1 else draw.LINE,
                transform=ax.get_xaxis_transform(),
                zorder=4,
            )
        # Those that differ most are named, if there is no room for all.
        most = np.argsort(-test.rejected.sum(axis=1), kind="stable")
        lines = [self.difference_lines_[i] for i in most]
        draw.legend(ax, lines, legend, most=_MOST)
