"""Curves of mean outcome by group, and where they differ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import Array, check_choice
from . import _style as draw

if TYPE_CHECKING:
    from ..inference import PredictiveParityTest

_SHARES = (0.75, 0.6)  # of the height of a figure
_MOST = 8  # contrasts in the legend
_LONGEST_OF_TWO = 20


@dataclass(eq=False, repr=False)
class PredictiveParityDisplay:
    """Two plots: the curve of each group with its band, and their differences.

    Made by `from_test` or `PredictiveParityTest.plot`. Scores at which the test rejects
    are marked under the differences.

    Parameters
    ----------
    grid : array-like of shape (J,)
        Scores.
    groups : sequence of hashable, length G
    curves, curve_low, curve_high : array-like of shape (G, J)
        Mean outcome by group, and its band.
    contrasts : sequence of pairs of hashable, length C
        What is compared.
    difference, difference_low, difference_high : array-like of shape (C, J)
    rejected : array-like of shape (C, J), bool
    edges : array-like of shape (B + 1,) or None, default=None
        Edges of the histograms.
    bars : array-like of shape (G, B) or None, default=None
        Number of rows by group and bar; None draws no histogram.
    name : str, default=""
        The title of the legend of the differences.

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

    See Also
    --------
    skrankfair.inference.predictive_parity_test : Makes the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.display import PredictiveParityDisplay
    >>> from skrankfair.inference import predictive_parity_test
    >>> rng = np.random.default_rng(0)
    >>> group, score = rng.choice(["a", "b"], size=2000), rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < score
    >>> t = predictive_parity_test(y, score, sensitive_features=group)
    >>> display = PredictiveParityDisplay.from_test(t)
    >>> [line.get_label() for line in display.lines_]
    ['a', 'b']
    """

    grid: Any
    groups: Sequence[Hashable]
    curves: Any
    curve_low: Any
    curve_high: Any
    contrasts: Sequence[tuple[Hashable, Hashable]]
    difference: Any
    difference_low: Any
    difference_high: Any
    rejected: Any
    _: KW_ONLY
    edges: Any = None
    bars: Any = None
    name: str = ""

    @classmethod
    def from_test(
        cls,
        result: PredictiveParityTest,
        *,
        axes: Any = None,
        kind: str = "simultaneous",
        **kwargs: Any,
    ) -> PredictiveParityDisplay:
        """Draw the result of the test.

        Parameters
        ----------
        result : PredictiveParityTest
        axes : sequence of two matplotlib Axes or None, default=None
            None creates a new figure. The Axes are for the curves and the differences.
        kind : {"simultaneous", "pointwise"}, default="simultaneous"
            The bands.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        PredictiveParityDisplay

        Raises
        ------
        ValueError
            If the kind is unknown, or if `axes` are not two axes.
        """
        check_choice(kind, "kind", ("simultaneous", "pointwise"))
        level = result.parameters["confidence_level"]
        order = np.argsort(result.grid, kind="stable")
        low, high = (np.asarray(end)[:, order] for end in result.curve_band(kind=kind))
        below, above = (np.asarray(end)[:, order] for end in result.band(kind=kind))
        bars = result.sums.range.bars
        # A difference is at most the range of the outcomes.
        reach = result.sums.outcomes[-1] - result.sums.outcomes[0]
        edges = np.linspace(result.grid.min(), result.grid.max(), bars.shape[1] + 1)
        display = cls(
            result.grid[order],
            result.groups,
            result.curves[:, order],
            low,
            high,
            result.contrasts,
            np.clip(result.difference[:, order], -reach, reach),
            below,
            above,
            result.rejected[:, order],
            edges=edges,
            bars=bars if edges[0] < edges[-1] else None,
            name=f"{100 * level:g}% {kind} bands, p = {result.pvalue:.3g}",
        )
        return display.plot(axes=axes, **kwargs)

    def plot(
        self,
        *,
        axes: Any = None,
        xlabel: str = "score",
        ylabel: str = "mean outcome",
        legend: bool = True,
    ) -> PredictiveParityDisplay:
        """Draw the curves and the differences.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes or None, default=None
            None creates a new figure. The Axes are for the curves and the differences.
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
            If `axes` are not two axes.
        """
        if axes is None:
            mosaic = [["curves"], ["differences"]]
            heights = [share * draw.figure_size()[1] for share in _SHARES]
            axes = [*draw.new_panels(mosaic, heights, sharex=True).values()]
        self.axes_ = draw.check_axes(axes, ("the curves", "the differences"))
        self.figure_ = self.axes_[0].figure
        grid = np.asarray(self.grid, dtype=float)
        draw.frame(self.axes_[0], "", ylabel)
        name = f"{xlabel}\n{self.name}" if self.name else xlabel
        draw.frame(self.axes_[1], name, "difference")
        self._draw_curves(grid, legend)
        self._draw_differences(grid, legend)
        return self

    def _draw_curves(self, grid: Array, legend: bool) -> None:
        ax, of = self.axes_[0], len(self.groups)
        drawn = [
            draw.curve(ax, grid, y, low, high, place, label(group, draw.LONGEST), of=of)
            for place, (group, y, low, high) in enumerate(
                zip(
                    self.groups,
                    self.curves,
                    self.curve_low,
                    self.curve_high,
                    strict=True,
                )
            )
        ]
        self.lines_ = [line for line, _ in drawn]
        self.bands_ = [band for _, band in drawn]
        self.histograms_: list[Any] = []
        if self.bars is not None:
            self.histograms_ = draw.histograms(ax, self.edges, self.bars)
        draw.legend(ax, self.lines_, legend)

    def _draw_differences(self, grid: Array, legend: bool) -> None:
        ax = self.axes_[1]
        draw.zero(ax)
        self.difference_lines_, self.difference_bands_ = [], []
        self.rejected_ = []
        for place, (a, b) in enumerate(self.contrasts):
            line, band = draw.curve(
                ax,
                grid,
                self.difference[place],
                self.difference_low[place],
                self.difference_high[place],
                place,
                " − ".join(label(group, _LONGEST_OF_TWO) for group in (a, b)),
                of=len(self.contrasts),
            )
            self.difference_lines_.append(line)
            self.difference_bands_.append(band)
            where = np.asarray(self.rejected[place], dtype=bool)
            height = 0.03 + 0.04 * (place % 8)
            self.rejected_ += ax.plot(
                grid[where],
                np.full(int(where.sum()), height),
                linestyle="none",
                marker="|",
                color=line.get_color() if len(self.contrasts) > 1 else draw.LINE,
                transform=ax.get_xaxis_transform(),
                zorder=4,
            )
        # Those that differ most are named, if there is no room for all.
        order = np.argsort([-np.sum(row) for row in self.rejected], kind="stable")
        lines = [self.difference_lines_[i] for i in order]
        draw.legend(ax, lines, legend, most=_MOST)
