"""The calibration curve of each group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._inputs.validation import Array, check_number
from ._group_estimates import plain_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..mitigation import GroupCalibrator

_LINE, _GRID = "#333333", "#E6E6E6"
# Okabe and Ito's palette, told apart by colour-blind readers; then other dashes.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#333333")
_DASHES = ("-", "--", ":")
_LONGEST_LABEL = 30
_SIZE = (5.6, 4.6)


class GroupCalibratorDisplay:
    """The expected outcome against the score, a line a group.

    Made by `from_calibrator` or `GroupCalibrator.plot`. Where lines differ, equal
    scores do not mean equal outcomes.

    Parameters
    ----------
    groups : sequence of hashable, length G
        Labels, shown as plain text.
    curves : sequence of (ndarray, ndarray), length G
        Scores and expected outcomes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One a group.
    diagonal_ : matplotlib Line2D
        Where a score is the expected outcome.
    legend_ : matplotlib Legend

    See Also
    --------
    skrankfair.mitigation.GroupCalibrator : Computes what is drawn.

    Examples
    --------
    >>> from skrankfair.display import GroupCalibratorDisplay
    >>> curves = [([0, 1], [0, 1]), ([0, 1], [0.2, 0.7])]
    >>> display = GroupCalibratorDisplay(["a", "b"], curves).plot()
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['a', 'b', 'score = outcome']
    """

    def __init__(
        self, groups: Sequence[Hashable], curves: Sequence[tuple[Any, Any]]
    ) -> None:
        self.groups = groups
        self.curves = curves

    @classmethod
    def from_calibrator(
        cls, calibrator: GroupCalibrator, *, column: int = 0, ax: Axes | None = None
    ) -> GroupCalibratorDisplay:
        """Draw a fitted calibrator.

        Parameters
        ----------
        calibrator : GroupCalibrator
            Fitted.
        column : int, default=0
            Of the scores.
        ax : matplotlib Axes or None, default=None
            None makes a figure.

        Returns
        -------
        GroupCalibratorDisplay

        Raises
        ------
        ValueError
            If there is no such column.
        """
        check_is_fitted(calibrator)
        last = len(calibrator.pooled_calibrator_.curves) - 1
        check_number(column, "column", 0, last, integer=True)
        curves: list[tuple[Array, Array]] = [
            calibrator.calibrators_[group].curves[column].knots
            for group in calibrator.groups_
        ]
        return cls(calibrator.groups_, curves).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> GroupCalibratorDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes a figure.

        Returns
        -------
        GroupCalibratorDisplay
            This one, with the artists.

        Raises
        ------
        ValueError
            If there is not one curve for each group.
        """
        if len(self.curves) != len(self.groups):
            raise ValueError(
                "curves must have one curve for each group; got "
                f"{len(self.curves)} and {len(self.groups)} groups."
            )
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=_SIZE, layout="constrained")[1]
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        for i, (group, (score, outcome)) in enumerate(
            zip(self.groups, self.curves, strict=True)
        ):
            self.lines_ += ax.plot(
                score,
                outcome,
                color=_COLORS[i % len(_COLORS)],
                linestyle=_DASHES[i // len(_COLORS) % len(_DASHES)],
                linewidth=1.8,
                label=plain_label(group, _LONGEST_LABEL).replace("$", r"\$"),
            )
        values = np.concatenate([np.ravel(part) for c in self.curves for part in c])
        ends = [float(values.min()), float(values.max())]
        (self.diagonal_,) = ax.plot(
            ends,
            ends,
            color=_LINE,
            linewidth=0.8,
            linestyle=(0, (4, 3)),
            zorder=1,
            label="score = outcome",
            scalex=False,
            scaley=False,
        )
        self._draw_frame()
        return self

    def _draw_frame(self) -> None:
        ax = self.ax_
        ax.set_xlabel("score", color=_LINE)
        ax.set_ylabel("expected outcome", color=_LINE)
        ax.tick_params(axis="both", colors=_LINE)
        ax.grid(color=_GRID, linewidth=0.8)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        self.legend_ = ax.legend(frameon=False, labelcolor=_LINE)
