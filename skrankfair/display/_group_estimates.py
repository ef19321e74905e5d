"""Estimates by group as a forest plot."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.contrasts import corrected_pvalues
from .._inputs.validation import Array, check_choice, check_number
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..metrics import GroupEstimates

_SIDES = ("below", "above", None)
_SORTS = ("estimate", None)

# Of these it is known which side is bad for a group; of others the reader decides.
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
        if result.fair_value is None and result.metric.against_rest is not None:
            difference = result.against_rest().estimate
        display = cls(
            result.groups,
            result.estimate,
            frame["ci_low"].to_numpy(),
            frame["ci_high"].to_numpy(),
            pvalue=corrected_pvalues(frame["pvalue"].to_numpy(dtype=float)),
            difference=difference,
            fair_value=result.fair_value,
            name=result.name.replace("_", " "),
            confidence_level=confidence_level,
            worse=_WORSE.get(result.name) if worse == "metric" else worse,
            pvalue_name="corrected p",
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        sort: str | None = "estimate",
        xlabel: str | None = None,
        legend: bool = True,
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

        Returns
        -------
        GroupEstimatesDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or if `sort` or `worse` is unknown.
        """
        check_choice(sort, "sort", _SORTS)
        check_choice(self.worse, "worse", _SIDES)
        check_number(
            self.confidence_level, "confidence_level", 0, 1, inclusive=(False, False)
        )
        self.ax_ = draw.axes_for(ax, len(self.groups))
        self.figure_ = self.ax_.figure
        estimate = np.asarray(self.estimate, dtype=float)
        order = np.arange(estimate.size)
        if sort == "estimate":
            # NaN sorts last.
            order = np.argsort(-estimate, kind="stable")
        kinds = self._kinds(estimate)
        self.fair_line_ = draw.row_frame(
            self.ax_,
            [self.groups[int(i)] for i in order],
            self.name if xlabel is None else xlabel,
            self.fair_value,
        )
        self._draw_rows(order, estimate, kinds)
        self._draw_legend(kinds[~np.isnan(estimate)], legend)
        return self

    def _kinds(self, estimate: Array) -> Array:
        """Return -1 below fair, 1 above, and 0 where nothing is shown."""
        if self.pvalue is None:
            return np.zeros(estimate.size, dtype=int)
        if self.difference is not None:
            side = np.asarray(self.difference, dtype=float)
        else:
            side = estimate - (0.0 if self.fair_value is None else self.fair_value)
        with np.errstate(invalid="ignore"):
            shown = np.asarray(self.pvalue, dtype=float) < 1 - self.confidence_level
        return np.where(shown, np.sign(np.nan_to_num(side)), 0).astype(int)

    def _color(self, kind: int) -> str:
        if kind == 0:
            return draw.UNCLEAR
        if self.worse is None:
            return draw.DIFFERENT
        worse = (kind < 0) == (self.worse == "below")
        return draw.WORSE if worse else draw.BETTER

    def _marker(self, kind: int) -> str:
        """Return a marker that says the side, where one colour is that of both."""
        if self.worse is not None or kind == 0:
            return "o"
        return "^" if kind > 0 else "v"

    def _draw_rows(self, order: Array, estimate: Array, kinds: Array) -> None:
        """Draw the points, the intervals, and the words where there are none."""
        low = np.asarray(self.ci_low, dtype=float)
        high = np.asarray(self.ci_high, dtype=float)
        self.points_, self.intervals_, self.missing_ = [], [], []
        ax, markersize = self.ax_, draw.dot(6.5, order.size, self.ax_)
        for row, i in enumerate(order):
            if np.isnan(estimate[i]):
                text = ax.text(
                    0.015,
                    row,
                    "no data",
                    transform=ax.get_yaxis_transform(),
                    color=draw.UNCLEAR,
                    style="italic",
                    va="center",
                    size="small",
                )
                # Over the line of the row.
                text.set_bbox({"facecolor": ax.get_facecolor(), "lw": 0, "pad": 1.5})
                self.missing_.append(text)
                continue
            color = self._color(kinds[i])
            sure = not (np.isnan(low[i]) or np.isnan(high[i]))
            if sure:
                self.intervals_ += ax.plot(
                    [low[i], high[i]],
                    [row, row],
                    color=color,
                    linewidth=draw.thick(2.2),
                    solid_capstyle="round",
                    zorder=2,
                )
            self.points_ += ax.plot(
                [estimate[i]],
                [row],
                marker=self._marker(kinds[i]),
                markersize=markersize,
                color=color,
                markeredgewidth=1.2,
                markeredgecolor="white" if sure else color,
                markerfacecolor=color if sure else "white",
                linestyle="none",
                zorder=3,
            )
        if not self.points_:
            ax.set_xticks([])

    def _draw_legend(self, kinds: Array, shown: bool) -> None:
        """Name the colours, if there is more than grey."""
        self.legend_ = None
        present = [kind for kind in (-1, 1, 0) if (kinds == kind).any()]
        if present in ([], [0]):
            return
        limit = f"{self.pvalue_name} < {1 - self.confidence_level:.3g}"
        neutral = self.worse is None
        sides = ("lower", "higher") if neutral else ("worse off", "better off")
        below, above = self.sides or sides
        if self.worse == "above":
            below, above = above, below
        words = {
            -1: f"{below}, {limit}",
            1: f"{above}, {limit}",
            0: "no difference shown",
        }
        look: dict[str, Any] = {"lw": draw.thick(2.2)}
        handles = [
            draw.sample(
                words[kind], color=self._color(kind), marker=self._marker(kind), **look
            )
            for kind in present
        ]
        self.legend_ = draw.legend(self.ax_, handles, shown, right=True)
