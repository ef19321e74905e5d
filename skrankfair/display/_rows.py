"""Plots with a row per group or moment: estimates, outcomes, violated inequalities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.estimates import corrected_pvalues
from .._estimates.formatting import count, label
from .._estimates.scales import check_level
from .._inputs.validation import Array, check_choice, check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference._marginal_outcome import MarginalOutcomeTest
    from ..inference._outcome_inequality import OutcomeInequalityTest
    from ..metrics import GroupEstimates

_LONGEST_GROUP, _LONGEST_ROW = 24, 70

# Metrics of which one side of fair is known to be bad for a group.
_WORSE = {
    "matched_pair_calibration": "above",  # undervalued
    **dict.fromkeys(
        (
            *("pairwise_accuracy", "pairwise_exposure", "pairwise_preference"),
            *("exposure", "exposure_gap", "skew_at_k", "share_at_k"),
        ),
        "below",
    ),
}


@dataclass(eq=False, repr=False)
class GroupEstimatesDisplay:
    """A forest plot: one line per group, a point with its interval.

    Made by `from_estimates` or `GroupEstimates.plot`. Groups that differ from what is
    fair are coloured, by their p-value; a group without an estimate says "no data".

    Parameters
    ----------
    groups : sequence of hashable, length G
        Labels, shown as plain text; the parts of a tuple are joined by "×".
    estimate : array-like of shape (G,)
        NaN for a group without data.
    ci_low, ci_high : array-like of shape (G,)
        Ends of the intervals; NaN for an estimate without error.
    pvalue : array-like of shape (G,) or None, default=None
        Against fairness; None colours no group.
    difference : array-like of shape (G,) or None, default=None
        Its sign says on which side of fair a group is. None takes `estimate` minus
        `fair_value`.
    fair_value : float or None, default=None
        Where the vertical line is; None draws none.
    name : str, default=""
        What is estimated: the label of the axis.
    confidence_level : float, default=0.95
        Confidence level of the intervals; a p-value below one minus this level colours
        the group.
    worse : {"below", "above", None}, default="below"
        The side of fair that is bad for the group. None, where nobody can say, takes
        one colour for both sides.
    sides : (str, str) or None, default=None
        What groups on the bad side and on the good one are called in the legend (or
        below and above fair, if `worse` is None). None says "worse off" and "better
        off" (or "lower" and "higher").
    pvalue_name : str, default="p"
        What the p-values are, for the legend.
    support : array-like of shape (G,) or None, default=None
        How many rows (pairs, queries) each estimate rests on, for ``counts=True``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib Line2D
        One per group with an estimate, from the top down.
    intervals_ : list of matplotlib Line2D
        One per group with an interval, from the top down.
    fair_line_ : matplotlib Line2D or None
    missing_ : list of matplotlib Text
        The "no data" of groups without an estimate.
    legend_ : matplotlib Legend or None
        None when no group is coloured.

    See Also
    --------
    skrankfair.metrics.GroupEstimates.plot : The same from a result.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.display import GroupEstimatesDisplay
    >>> from skrankfair.metrics import pairwise_exposure
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["f", "m"], size=1000)
    >>> score = rng.normal(size=1000) - (group == "f")
    >>> query = np.repeat(np.arange(100), 10)
    >>> r = pairwise_exposure(None, score, sensitive_features=group, qid=query)
    >>> display = GroupEstimatesDisplay.from_estimates(r)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['m', 'f']
    """

    groups: Sequence[Hashable]
    estimate: Any
    ci_low: Any
    ci_high: Any
    _: KW_ONLY
    pvalue: Any = None
    difference: Any = None
    fair_value: float | None = None
    name: str = ""
    confidence_level: float = 0.95
    worse: str | None = "below"
    sides: tuple[str, str] | None = None
    pvalue_name: str = "p"
    support: Any = None

    @classmethod
    def from_estimates(
        cls,
        result: GroupEstimates,
        *,
        ax: Axes | None = None,
        confidence_level: float = 0.95,
        worse: str | None = "metric",
        **kwargs: Any,
    ) -> GroupEstimatesDisplay:
        """Draw the result of a metric.

        Parameters
        ----------
        result : GroupEstimates
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the groups need.
        confidence_level : float, default=0.95
            Confidence level of the intervals. Groups whose p-value is below one minus
            this level are coloured; the p-values are those of
            `GroupEstimates.to_frame`, corrected for the number of groups by Holm's
            method.
        worse : {"metric", "below", "above", None}, default="metric"
            The side of fair that is bad for the group. "metric" knows it for the
            metrics of rankings, where a high place is good, and is None for others.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        GroupEstimatesDisplay

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or if `sort` or `worse` is unknown.

        Examples
        --------
        >>> from skrankfair.display import GroupEstimatesDisplay
        >>> from skrankfair.metrics import pairwise_exposure
        >>> r = pairwise_exposure(
        ...     None,
        ...     [4, 3, 1, 2] * 5,
        ...     sensitive_features=["a", "b", "b", "a"] * 5,
        ...     qid=[query for query in range(10) for _ in range(2)],
        ... )
        >>> GroupEstimatesDisplay.from_estimates(r).ax_.get_xlabel()
        'pairwise exposure'
        """
        frame = result.to_frame(confidence_level)
        difference = None
        if result.says_fair:
            difference = result.as_gap().estimate - (result.fair_value or 0.0)
        name = result.name.replace("_", " ")
        if (comparison := result.parameters.get("comparison", "all")) != "all":
            name = f"{comparison}-group {name}"
        display = cls(
            result.groups,
            result.estimate,
            frame["ci_low"].to_numpy(),
            frame["ci_high"].to_numpy(),
            pvalue=corrected_pvalues(frame["pvalue"].to_numpy(dtype=float)),
            difference=difference,
            fair_value=result.fair_value,
            name=name,
            confidence_level=confidence_level,
            worse=_WORSE.get(result.name) if worse == "metric" else worse,
            pvalue_name="corrected p",
            support=result.support,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        sort: str | None = "estimate",
        xlabel: str | None = None,
        legend: bool = True,
        counts: bool = False,
    ) -> GroupEstimatesDisplay:
        """Draw the estimates.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the groups need.
        sort : {"estimate", None}, default="estimate"
            "estimate" puts the largest estimate on top and groups without one at the
            bottom; None keeps the order of the groups.
        xlabel : str or None, default=None
            None takes `name`.
        legend : bool, default=True
            False draws none.
        counts : bool, default=False
            Whether labels have the `support`, such as "f (1,860)".

        Returns
        -------
        GroupEstimatesDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or if `sort` or `worse` is unknown.
        """
        check_choice(sort, "sort", ("estimate", None))
        check_choice(self.worse, "worse", ("below", "above", None))
        check_level(self.confidence_level)
        estimate, low, high = (
            np.asarray(values, dtype=float)
            for values in (self.estimate, self.ci_low, self.ci_high)
        )
        order = np.arange(estimate.size)
        if sort == "estimate":
            # NaN sorts last.
            order = np.argsort(-estimate, kind="stable")
        sides = self._sides(estimate)
        ax = self.ax_ = draw.axes_for(ax, len(self.groups))
        self.figure_ = ax.figure
        labels = [label(name, draw.LONGEST) for name in self.groups]
        if counts and self.support is not None:
            numbers = zip(labels, np.asarray(self.support), strict=True)
            labels = [f"{name} ({count(number)})" for name, number in numbers]
        self.fair_line_ = draw.row_frame(
            ax,
            [labels[i] for i in order.tolist()],
            self.name if xlabel is None else xlabel,
            self.fair_value,
            longest=_LONGEST_ROW,
        )
        looks = self._looks()
        of_rows = [looks[side] for side in sides[order].tolist()]
        self.points_, self.intervals_ = draw.rows(
            ax,
            estimate[order],
            [look["color"] for look in of_rows],
            low[order],
            high[order],
            markers=[look["marker"] for look in of_rows],
            hollow=np.isnan(low + high)[order],
        )
        self.missing_ = [
            draw.in_row(ax, row, "no data", draw.UNCLEAR, style="italic")
            for row in np.flatnonzero(np.isnan(estimate[order])).tolist()
        ]
        if not self.points_:
            ax.set_xticks([])
        shown = sides[~np.isnan(estimate)]
        handles = [
            draw.sample(lw=draw.thick(2.2), **look)
            for side, look in looks.items()
            if shown.any() and side in shown
        ]
        self.legend_ = draw.legend(ax, handles, legend, right=True)
        return self

    def _sides(self, estimate: Array) -> Array:
        """Return -1 below fair, 1 above, and 0 where no difference is shown."""
        if self.pvalue is None:
            return np.zeros(estimate.size, dtype=int)
        difference = self.difference
        if difference is None:
            difference = estimate - (self.fair_value or 0.0)
        with np.errstate(invalid="ignore"):
            shown = np.asarray(self.pvalue, dtype=float) < 1 - self.confidence_level
        side = np.sign(np.nan_to_num(np.asarray(difference, dtype=float)))
        return np.where(shown, side, 0).astype(int)

    def _looks(self) -> dict[int, dict[str, Any]]:
        """Return the name, the colour and the marker of each side of fair."""
        limit = f"{self.pvalue_name} < {1 - self.confidence_level:.3g}"
        known = self.worse is not None
        default = ("worse off", "better off") if known else ("lower", "higher")
        first, second = (f"{words}, {limit}" for words in self.sides or default)
        below: dict[str, Any] = {"name": first, "color": draw.WORSE, "marker": "o"}
        above: dict[str, Any] = {"name": second, "color": draw.BETTER, "marker": "o"}
        if not known:  # both sides have one colour
            below |= {"color": draw.DIFFERENT, "marker": "v"}
            above |= {"color": draw.DIFFERENT, "marker": "^"}
        elif self.worse == "above":
            below, above = above, below
        silent = {"name": "no difference shown", "color": draw.UNCLEAR, "marker": "o"}
        return {-1: below, 1: above, 0: silent}


@dataclass(eq=False, repr=False)
class MarginalOutcomeDisplay:
    """One row per group: its mean outcome at the threshold, and that of all accepted.

    Made by `MarginalOutcomeTest.plot`. The test compares the filled points; the open
    ones, means of all that were accepted, depend on how far above the threshold the
    group is.

    Parameters
    ----------
    test : MarginalOutcomeTest

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib Line2D
        One per group with a marginal outcome.
    intervals_ : list of matplotlib Line2D
    above_ : matplotlib Line2D
    legend_ : matplotlib Legend or None
    """

    test: MarginalOutcomeTest

    def plot(
        self,
        *,
        ax: Axes | None = None,
        xlabel: str = "mean outcome",
        legend: bool = True,
    ) -> MarginalOutcomeDisplay:
        """Draw the groups.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the groups need.
        xlabel : str, default="mean outcome"
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MarginalOutcomeDisplay
            This display, with the artists.
        """
        test, n = self.test, len(self.test.groups)
        level = test.parameters["confidence_level"]
        ax = self.ax_ = draw.axes_for(ax, n + 1)
        self.figure_ = ax.figure
        # An empty line below the label leaves room for the legend above the axes.
        equal = f"{100 * level:g}% intervals, equal at the threshold"
        draw.row_frame(ax, test.groups, f"{xlabel}\n{equal}: p = {test.pvalue:.3g}")
        ax.grid(axis="x", color=draw.GRID, linewidth=draw.thick(0.8))
        colors = [draw.look(row)["color"] for row in range(n)]
        self.points_, self.intervals_ = draw.rows(
            ax, test.outcomes, colors, *test.outcome_interval(level), size=8
        )
        look: dict[str, Any] = {"linestyle": "none", "color": draw.UNCLEAR}
        (self.above_,) = ax.plot(
            test.inframarginal.estimate,
            np.arange(n),
            marker="D",
            markersize=draw.dot(5.5, n, ax),
            markerfacecolor="none",
            label="all accepted",
            **look,
        )
        name = f"at the threshold {test.threshold:g}"
        handles = [draw.sample(name, marker="o", **look), self.above_]
        self.legend_ = draw.legend(ax, handles, legend, right=True)
        return self


@dataclass(eq=False, repr=False)
class OutcomeInequalityDisplay:
    """The most violated moments of an outcome inequality test, with one row each.

    Made by `OutcomeInequalityTest.plot`. A point right of 0 is a pair of positions at
    which the lower item did better; right of the critical value, more so than chance
    allows, and it is coloured. One without a standard error is at the edge, with an
    arrow's head.

    Parameters
    ----------
    test : OutcomeInequalityTest

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib Line2D
        One per moment, from the top down.
    zero_ : matplotlib Line2D
    critical_ : matplotlib Line2D or None
    missing_ : matplotlib Text or None
        The words that say so if nothing could be tested.
    legend_ : matplotlib Legend or None
        Of the critical value.
    """

    test: OutcomeInequalityTest

    def plot(
        self, *, ax: Axes | None = None, max_moments: int = 20, legend: bool = True
    ) -> OutcomeInequalityDisplay:
        """Draw the moments.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure. It is as high as the moments need.
        max_moments : int, default=20
            Only the most violated are drawn.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        OutcomeInequalityDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If `max_moments` is not a positive integer.
        """
        check_number(max_moments, "max_moments", 1, np.inf, integer=True)
        test = self.test
        n_moments = int(np.count_nonzero(~np.isnan(test.violation)))
        order = np.argsort(-test.violation, kind="stable")  # NaN last
        order = order[: min(n_moments, max_moments)]
        names = [
            " above ".join(
                f"{label(group, _LONGEST_GROUP)} at {position}"
                for group, position in zip(
                    test.groups[i], test.positions[i], strict=True
                )
            )
            for i in order
        ]
        xlabel = "violation, in standard errors"
        if left_out := n_moments - order.size:
            xlabel += f"; {left_out} moments that are violated less are not shown"
        ax = self.ax_ = draw.axes_for(ax, order.size)
        self.figure_ = ax.figure
        self.zero_ = draw.row_frame(ax, names, xlabel, 0.0, longest=_LONGEST_ROW)
        self.critical_ = self.missing_ = None
        critical = test.critical_value
        if not np.isnan(critical):
            look = {"color": draw.WORSE, "linestyle": "--", "zorder": 2}
            name = f"critical value {critical:.2f}"
            self.critical_ = draw.mark(ax, critical, "x", label=name, **look)
        violation = test.violation[order]
        finite = violation[np.isfinite(violation)]
        edge = max([*np.abs(finite), np.nan_to_num(critical), 1.0]) * 1.15
        heads = np.where(np.isfinite(violation), "o", np.where(violation > 0, ">", "<"))
        self.points_, _ = draw.rows(
            ax,
            np.clip(violation, -edge, edge),
            np.where(violation > critical, draw.WORSE, draw.UNCLEAR).tolist(),
            markers=heads.tolist(),
        )
        if not order.size:
            ax.set_xticks([])
            self.missing_ = draw.in_row(ax, 0.5, "no moment to test", draw.UNCLEAR)
        lines = [] if self.critical_ is None else [self.critical_]
        self.legend_ = draw.legend(ax, lines, legend, right=True)
        return self
