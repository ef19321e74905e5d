"""Curves of a group calibrator: the expected outcome against the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._inputs.validation import check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..mitigation import GroupCalibrator


@dataclass(eq=False, repr=False)
class GroupCalibratorDisplay:
    """The expected outcome against the score, one line per group.

    Made by `GroupCalibrator.plot`. Where lines differ, equal scores do not mean equal
    outcomes.

    Parameters
    ----------
    calibrator : GroupCalibrator
        Fitted.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per group.
    diagonal_ : matplotlib Line2D
        Where a score is the expected outcome.
    legend_ : matplotlib Legend or None
    """

    calibrator: GroupCalibrator

    def plot(
        self, *, column: int = 0, ax: Axes | None = None, legend: bool = True
    ) -> GroupCalibratorDisplay:
        """Draw the curves.

        Parameters
        ----------
        column : int, default=0
            Which column of the scores to draw.
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        GroupCalibratorDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        calibrator = self.calibrator
        check_is_fitted(calibrator)
        last = len(calibrator.pooled_calibrator_.curves) - 1
        check_number(column, "column", 0, last, integer=True)
        groups = calibrator.groups_
        knots = [calibrator.calibrators_[g].curves[column].knots for g in groups]
        scores, outcomes = zip(*knots, strict=True)
        ax = self.ax_ = draw.axes_for(ax)
        self.figure_ = ax.figure
        self.lines_, _ = draw.curves(ax, groups, scores, outcomes)
        limits = ax.get_xlim(), ax.get_ylim()
        values = np.concatenate([*scores, *outcomes])
        self.diagonal_ = draw.diagonal(ax, values.min(), values.max())
        ax.set(xlim=limits[0], ylim=limits[1])
        draw.frame(ax, "score", "expected outcome")
        self.legend_ = draw.legend(ax, self.lines_, legend, notes=[self.diagonal_])
        return self
