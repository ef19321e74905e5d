"""The calibration curve of each group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._estimates.formatting import label
from .._inputs.validation import Array, check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..mitigation import GroupCalibrator


@dataclass(eq=False, repr=False)
class GroupCalibratorDisplay:
    """The expected outcome against the score, one line per group.

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
        One per group.
    diagonal_ : matplotlib Line2D
        Where a score is the expected outcome.
    legend_ : matplotlib Legend or None

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

    groups: Sequence[Hashable]
    curves: Sequence[tuple[Any, Any]]

    @classmethod
    def from_calibrator(
        cls,
        calibrator: GroupCalibrator,
        *,
        column: int = 0,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> GroupCalibratorDisplay:
        """Draw a fitted calibrator.

        Parameters
        ----------
        calibrator : GroupCalibrator
            Fitted.
        column : int, default=0
            Which column of the scores to draw.
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

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
        return cls(calibrator.groups_, curves).plot(ax=ax, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, legend: bool = True
    ) -> GroupCalibratorDisplay:
        """Draw the curves.

        Parameters
        ----------
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
            If there is not one curve for each group.
        """
        if len(self.curves) != len(self.groups):
            raise ValueError(
                "curves must have one curve for each group; got "
                f"{len(self.curves)} and {len(self.groups)} groups."
            )
        self.ax_ = draw.axes_for(ax)
        ax, self.lines_ = self.ax_, []
        self.figure_ = ax.figure
        for i, (group, (score, outcome)) in enumerate(
            zip(self.groups, self.curves, strict=True)
        ):
            self.lines_ += ax.plot(
                score,
                outcome,
                **draw.look(i),
                linewidth=draw.thick(2),
                label=label(group, draw.LONGEST),
            )
        values = np.concatenate([np.ravel(part) for c in self.curves for part in c])
        ends = float(values.min()), float(values.max())
        limits = ax.get_xlim(), ax.get_ylim()
        self.diagonal_ = draw.diagonal(ax, *ends)
        ax.set(xlim=limits[0], ylim=limits[1])
        draw.frame(ax, "score", "expected outcome")
        self.legend_ = draw.legend(ax, self.lines_, legend, notes=[self.diagonal_])
        return self
