"""Curves of the mean outcome against the score: of data, tests and calibrators."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._estimates.formatting import label
from .._inputs.by_name import resolved_columns
from .._inputs.columns import given_columns
from .._inputs.score_rows import score_rows
from .._inputs.sklearn_private import positive_class, response_values
from .._inputs.validation import check_choice, check_number, weighted_quantile
from ..inference._contrast_test import parameters_of_test
from ..inference._predictive_parity import ARGUMENTS, curves_by_group
from ..scoring._score_function import as_outcomes
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference._predictive_parity import PredictiveParityTest
    from ..mitigation import GroupCalibrator

_RESPONSES = ("predict_proba", "predict")
_PANEL_SHARES = (0.75, 0.6)  # share of the height of a figure
_MOST_CONTRASTS = 8  # the most contrasts that the legend names
_LONGEST_OF_TWO = 40


@dataclass(eq=False, repr=False)
class CalibrationByGroupDisplay:
    """Calibration curve of each group, smoothed, with simultaneous bands.

    Made by `from_predictions` or `from_estimator`. On the diagonal the mean outcome is
    the score; a group above it is underestimated. Groups with the same curve are
    treated alike, on the diagonal or off it.

    Parameters
    ----------
    grid : array-like of shape (J,)
        Scores.
    groups : sequence of hashable, length G
    curves, ci_low, ci_high : array-like of shape (G, J)
        Mean outcome by group and score, with its band; NaN where undefined.
    bars : array-like of shape (G, B) or None, default=None
        Number of rows by group and bar of a histogram over the scores of the grid;
        None draws none.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_, bands_ : list of matplotlib artists
        One per group.
        From four groups on, bars at some scores take the place of the bands.
    diagonal_ : matplotlib Line2D
    histograms_ : list of matplotlib StepPatch
        One per group, or none.
    legend_ : matplotlib Legend or None

    See Also
    --------
    skrankfair.inference.predictive_parity_test : Tests whether the curves are the same.
    skrankfair.metrics.calibration_error : The distance to the diagonal as a number.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.display import CalibrationByGroupDisplay
    >>> rng = np.random.default_rng(0)
    >>> group, score = rng.choice(["a", "b"], size=2000), rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < score
    >>> display = CalibrationByGroupDisplay.from_predictions(
    ...     y, score, sensitive_features=group
    ... )
    >>> [line.get_label() for line in display.lines_]
    ['a', 'b']
    """

    grid: Any
    groups: Sequence[Hashable]
    curves: Any
    ci_low: Any
    ci_high: Any
    _: KW_ONLY
    bars: Any = None

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sensitive_features: Any = None,
        cluster: Any = None,
        grid: Any = None,
        bandwidth: str | float = "undersmooth",
        kernel: str = "gaussian",
        cluster_weight: str = "cluster",
        confidence_level: float = 0.95,
        sample_weight: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> CalibrationByGroupDisplay:
        """Draw the calibration curves of scores.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Outcomes, binary, graded or real.
        y_score : array-like of shape (n,)
            Scores on the scale of the outcomes, such as probabilities.
        sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
            Group labels of any type; several columns are crossed. A boolean matrix or
            frame is a membership matrix with one column per group, and its groups may
            overlap. None makes all rows one group, "all".
        cluster : array-like of shape (n,) or None, default=None
            Independent units, such as the person that a row is about. None makes each
            row its own unit.
        grid : array-like of shape (J,) or None, default=None
            Scores at which the curves are drawn. None takes 100 quantiles of all
            scores.
        bandwidth : {"undersmooth", "rule_of_thumb", "cv"} or float, \
                default="undersmooth"
            As in `skrankfair.inference.predictive_parity_test`.
        kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
                "flat_top"}, default="gaussian"
            Weight of a row by its distance in the score.
        cluster_weight : {"cluster", "row"}, default="cluster"
            Whether every cluster has weight one in the curve of a group, or every row.
        confidence_level : float, default=0.95
            Confidence level of the bands. Each holds at all points of its curve at
            once.
        sample_weight : array-like of shape (n,) or None, default=None
            Importance of the row: a common factor changes nothing, and 0 leaves it out.
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        CalibrationByGroupDisplay

        Raises
        ------
        ValueError
            If columns or options are invalid, as in `predictive_parity_test`.

        Warns
        -----
        UndefinedMetricWarning
            For a group without a curve.
        """
        rows = score_rows(y_true, y_score, **given_columns(locals()))
        if grid is None:
            levels = (np.arange(100) + 0.5) / 100
            grid = np.unique(weighted_quantile(rows.x, levels, rows.weight))
        given = {**locals(), "curve": "local_quadratic", "reference": None}
        parameters = parameters_of_test(given, *ARGUMENTS)
        result = curves_by_group(rows, grid, bandwidth, parameters)
        numbers = result.curves, *result.curve_band()
        display = cls(result.grid, result.groups, *numbers, bars=result.bars)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        cluster: Any = None,
        response_method: str = "auto",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> CalibrationByGroupDisplay:
        """Draw the calibration curves of an estimator's predictions.

        Parameters
        ----------
        estimator : estimator
            Fitted; a classifier of two classes, or a regressor.
        X : frame or array of shape (n, n_features)
        y : array-like of shape (n,)
            Classes, or numbers.
        sensitive_features, cluster : str, callable, array-like or None, default=None
            A column of X by name, a function of X, or the values.
        response_method : {"auto", "predict_proba", "predict"}, default="auto"
            "auto" takes the probability of the second class, or else the prediction.
            Groups and clusters are passed on if the method has a parameter for them.
        ax : matplotlib Axes or None, default=None
        **kwargs : dict
            Passed to `from_predictions`.

        Returns
        -------
        CalibrationByGroupDisplay

        Raises
        ------
        ValueError
            If X lacks a column, or if a classifier has more than two classes.
        """
        check_choice(response_method, "response_method", ("auto", *_RESPONSES))
        named = {"sensitive_features": sensitive_features, "cluster": cluster}
        columns = resolved_columns(X, named, y=y)
        methods = list(_RESPONSES) if response_method == "auto" else response_method
        positive = positive_class(estimator)
        if positive is None and hasattr(estimator, "classes_"):
            raise ValueError(
                "estimator must have two classes, of which the second is the outcome; "
                f"it has {len(estimator.classes_)}."
            )
        scores = response_values(estimator, X, methods, columns)
        outcome, scores = as_outcomes(y, scores, positive)
        return cls.from_predictions(outcome, scores, ax=ax, **columns, **kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        xlabel: str = "score",
        ylabel: str = "mean outcome",
        legend: bool = True,
        highlight: Hashable = None,
    ) -> CalibrationByGroupDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        xlabel, ylabel : str, default="score", "mean outcome"
        legend : bool, default=True
            False draws none.
        highlight : hashable or None, default=None
            A group whose band is drawn; all other curves are then thin and grey. One
            plot per group, side by side, keeps many groups readable.

        Returns
        -------
        CalibrationByGroupDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If `highlight` is none of the groups.
        """
        ax, grid = draw.axes_for(ax), np.asarray(self.grid, dtype=float)
        self.ax_, self.figure_ = ax, ax.figure
        draw.frame(ax, xlabel, ylabel)
        self.diagonal_ = draw.diagonal(ax, grid.min(), grid.max())
        groups, bars = list(self.groups), self.bars
        curves, *ends = (
            np.asarray(c) for c in (self.curves, self.ci_low, self.ci_high)
        )
        chosen = list(range(len(groups)))
        if highlight is not None:
            check_choice(highlight, "highlight", tuple(groups))
            chosen = [groups.index(highlight)]
            order, others = np.argsort(grid), np.delete(curves, chosen, axis=0)
            ax.plot(grid[order], others[:, order].T, color=draw.UNCLEAR, lw=0.8)
            bars = None
        self.lines_, self.bands_ = draw.curves(
            ax,
            [groups[i] for i in chosen],
            [grid] * len(chosen),
            curves[chosen],
            *(end[chosen] for end in ends),
            numbers=chosen,
        )
        self.histograms_ = [] if bars is None else draw.histograms(ax, grid, bars)
        self.legend_ = draw.legend(ax, self.lines_, legend, notes=[self.diagonal_])
        return self


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
        check_is_fitted(calibrator, "calibrators_")
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
            high = draw.setting("figure.figsize")[1]
            heights = [share * high for share in _PANEL_SHARES]
            axes = draw.new_panels(heights, sharex=True)
        self.axes_ = draw.check_axes(axes, ("the curves", "the differences"))
        self.figure_ = self.axes_[0].figure
        test = self.test
        bands = f"{100 * test.parameters['confidence_level']:g}% {kind} bands"
        draw.frame(self.axes_[0], "", ylabel)
        draw.frame(
            self.axes_[1], f"{xlabel}\n{bands}, p = {test.pvalue:.3g}", "difference"
        )
        grids, ends = [test.grid] * len(test.groups), test.curve_band(kind=kind)
        self.lines_, self.bands_ = draw.curves(
            self.axes_[0], test.groups, grids, test.curves, *ends
        )
        self.histograms_ = draw.histograms(self.axes_[0], test.grid, test.bars)
        draw.legend(self.axes_[0], self.lines_, legend)
        self._draw_differences(kind, legend)
        return self

    def _draw_differences(self, kind: str, legend: bool) -> None:
        """Draw the differences with their bands, and marks where the test rejects."""
        test, ax = self.test, self.axes_[1]
        n = len(test.contrasts)
        # A difference is at most the range of the outcomes.
        reach = test.range[1] - test.range[0]
        draw.mark(ax, 0)
        self.difference_lines_, self.difference_bands_ = draw.curves(
            ax,
            [
                " − ".join(label(group, _LONGEST_OF_TWO) for group in pair)
                for pair in test.contrasts
            ],
            [test.grid] * n,
            np.clip(test.difference, -reach, reach),
            *test.band(kind=kind),
            longest=3 * _LONGEST_OF_TWO,
        )
        self.rejected_: list[Any] = []
        for number, (line, where) in enumerate(
            zip(self.difference_lines_, test.rejected, strict=True)
        ):
            self.rejected_ += ax.plot(
                test.grid[where],
                np.full(int(where.sum()), 0.03 + 0.04 * (number % 8)),
                linestyle="none",
                marker="|",
                color=line.get_color() if n > 1 else draw.LINE,
                transform=ax.get_xaxis_transform(),
                zorder=4,
            )
        # Without room for all, the legend names the contrasts that differ most.
        most = np.argsort(-test.rejected.sum(axis=1), kind="stable")
        lines = [self.difference_lines_[i] for i in most]
        draw.legend(ax, lines, legend, most=_MOST_CONTRASTS)
