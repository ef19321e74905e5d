"""Disparities before and after a mitigation, their changes, and its costs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from .._estimates.scales import check_level
from . import _style as draw
from ._rows import GroupEstimatesDisplay

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.text import Text

_SIDES = {"closer to fair": 1.0, "further from fair": -1.0}
_LOSSES = ("log loss", "mean squared error")
# A cost that is this many times the median cost is written as a number instead.
_OUTLYING = 10


@dataclass(eq=False, repr=False)
class MitigationDisplay:
    """Disparities before and after, their changes with intervals, and the costs.

    Made by `MitigationReport.plot`.

    Parameters
    ----------
    disparities : DataFrame
        One row per metric and group: metric, group, before, after, change, ci_low,
        ci_high, pvalue_corrected, verdict; pvalue_before, pvalue_after against fair,
        corrected as well.
    costs : DataFrame
        The same columns for the costs, without the last two.
    confidence_level : float, default=0.95
        Confidence level of the intervals; p-values below one minus this level are
        coloured.

    Attributes
    ----------
    axes_ : tuple of three matplotlib Axes
    figure_ : matplotlib Figure
    before_after_ : BeforeAfterDisplay
        Of the disparities.
    changes_, costs_ : GroupEstimatesDisplay
        The changes of disparities, and the gains in the quality of the scores. For
        losses, which should fall, a gain is the change with the opposite sign.
    outlying_ : list of matplotlib Text
        Gains far beyond all others, in words at the edge of the panel, so that they do
        not flatten these.

    See Also
    --------
    skrankfair.mitigation_report : Makes the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair import mitigation_report
    >>> rng = np.random.default_rng(0)
    >>> group, score = rng.choice(["a", "b"], size=1000), rng.uniform(size=1000)
    >>> y = rng.random(1000) < score
    >>> unfair = np.clip(score - 0.2 * (group == "a"), 0.01, 0.99)
    >>> report = mitigation_report(unfair, score, y, sensitive_features=group)
    >>> display = report.plot()
    >>> [label.get_text() for label in display.axes_[2].get_yticklabels()]
    ['AUC', 'log loss']
    """

    disparities: pd.DataFrame
    costs: pd.DataFrame
    _: KW_ONLY
    confidence_level: float = 0.95

    def plot(self, *, axes: Any = None, legend: bool = True) -> MitigationDisplay:
        """Draw the three panels.

        Parameters
        ----------
        axes : sequence of three matplotlib Axes or None, default=None
            None creates a new figure, with one below the other. The Axes are for the
            disparities, their changes and the costs.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MitigationDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If `axes` are not three axes.
        """
        moved, costs = self.disparities, self.costs
        if axes is None:
            high, cost = draw.heights_of(len(moved), len(costs))
            axes = draw.new_panels([high, high, cost])
        self.axes_ = draw.check_axes(
            axes, ("the disparities", "their changes", "the costs")
        )
        self.figure_ = self.axes_[0].figure
        labels = [
            f"{metric}: {label(group)}"
            for metric, group in zip(moved["metric"], moved["group"], strict=True)
        ]
        self.before_after_ = BeforeAfterDisplay(
            labels,
            moved["before"],
            moved["after"],
            pvalue_before=moved["pvalue_before"],
            pvalue_after=moved["pvalue_after"],
            name="difference from fair",
            confidence_level=self.confidence_level,
        ).plot(ax=self.axes_[0], legend=legend)
        gain = moved["verdict"].map(_SIDES).fillna(0.0).to_numpy(dtype=float)
        self.changes_ = self._forest(labels, moved, gain, 1.0, "change").plot(
            ax=self.axes_[1], sort=None, legend=legend
        )
        first, second = (ax.get_position() for ax in self.axes_[:2])
        if np.allclose([first.y0, first.y1], [second.y0, second.y1]):
            self.axes_[1].set_yticklabels([])  # they are those of the first panel
        sign = np.where(costs["metric"].isin(_LOSSES), -1.0, 1.0)
        gain = sign * costs["change"]
        self.costs_ = self._forest(
            list(costs["metric"]), costs, gain, sign, "gain (a loss is negated)"
        ).plot(ax=self.axes_[2], sort=None, legend=legend)
        self.outlying_ = _leave_out(self.axes_[2], self.costs_)
        return self

    def _forest(
        self, labels: Any, rows: Any, gain: Any, sign: Any, name: str
    ) -> GroupEstimatesDisplay:
        """Return a display of changes with intervals, coloured if better or worse."""
        ends = np.stack([sign * rows["ci_low"], sign * rows["ci_high"]])
        return GroupEstimatesDisplay(
            labels,
            sign * rows["change"],
            ends.min(0),
            ends.max(0),
            pvalue=rows["pvalue_corrected"],
            difference=gain,
            fair_value=0.0,
            name=name,
            confidence_level=self.confidence_level,
            sides=("worse", "better"),
            pvalue_name="corrected p",
        )


def _leave_out(ax: Axes, costs: GroupEstimatesDisplay) -> list[Text]:
    """Write outlying rows as text, and limit the axes to the other rows."""
    value, low, high = (
        np.asarray(values, dtype=float)
        for values in (costs.estimate, costs.ci_low, costs.ci_high)
    )
    reach = np.nan_to_num(np.max(np.abs([value, low, high]), axis=0))
    known = np.sort(reach[reach > 0])
    usual = known[(known.size - 1) // 2] if known.size else np.inf
    far = reach > _OUTLYING * usual
    if not far.any():
        return []
    edge = 1.2 * reach[~far].max()
    ax.set_xlim(-edge, edge)
    words, known_rows = [], np.flatnonzero(~np.isnan(value)).tolist()
    for row in np.flatnonzero(far).tolist():
        right = value[row] > 0
        text = f"{value[row]:.3g}".replace("-", "\N{MINUS SIGN}")
        text = f"{text} ▶" if right else f"◀ {text}"
        color = costs.points_[known_rows.index(row)].get_color()
        words.append(draw.in_row(ax, row, text, color, right=right))
    return words


@dataclass(eq=False, repr=False)
class BeforeAfterDisplay:
    """Numbers before (open circles) and after (full ones), with arrows, by row.

    A circle is coloured where its p-value is small: the number differs from fair beyond
    chance.

    Parameters
    ----------
    labels : sequence of hashable, length R
        The labels, from the top down.
    before, after : array-like of shape (R,)
        NaN where there is no number.
    pvalue_before, pvalue_after : array-like of shape (R,)
        Corrected p-values of no difference from fair, which is 0; NaN where there is
        none.
    name : str, default=""
        What the numbers are, as the label of the axis.
    confidence_level : float, default=0.95
        P-values below one minus this level count as small.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    before_, after_ : list of matplotlib Line2D
        One per row that has the number.
    arrows_ : list of matplotlib Annotation
        One per row that has both.
    fair_line_ : matplotlib Line2D
    legend_ : matplotlib Legend or None
    """

    labels: Sequence[Hashable]
    before: Any
    after: Any
    _: KW_ONLY
    pvalue_before: Any
    pvalue_after: Any
    name: str = ""
    confidence_level: float = 0.95

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
            If the level is outside (0, 1).
        """
        level, n_rows = self.confidence_level, len(self.labels)
        check_level(level)
        ax = self.ax_ = draw.axes_for(ax, n_rows)
        self.figure_ = ax.figure
        self.fair_line_ = draw.row_frame(ax, self.labels, self.name, 0.0)
        before, after = (np.asarray(v, dtype=float) for v in (self.before, self.after))
        arrow = {"arrowstyle": "-|>", "color": draw.LINE, "shrinkA": 4, "shrinkB": 4}
        self.arrows_ = [
            ax.annotate(
                "", (after[row], row), (before[row], row), arrowprops=arrow, zorder=2
            )
            for row in np.flatnonzero(np.isfinite(before) & np.isfinite(after))
        ]
        colors = []
        for pvalue in (self.pvalue_before, self.pvalue_after):
            small = np.asarray(pvalue, dtype=float) < 1 - level
            colors.append(np.where(small, draw.WORSE, draw.UNCLEAR).tolist())
        self.before_, _ = draw.rows(ax, before, colors[0], hollow=True, size=7)
        self.after_, _ = draw.rows(ax, after, colors[1], size=8, zorder=4)
        point: dict[str, Any] = {"marker": "o", "linestyle": "none"}
        face = ax.get_facecolor()
        handles = [
            draw.sample("before", markerfacecolor=face, **point),
            draw.sample("after", **point),
        ]
        if draw.WORSE in colors[0] + colors[1]:
            text = f"differs from fair, corrected p < {1 - level:.3g}"
            handles.append(draw.sample(text, color=draw.WORSE, **point))
        self.legend_ = draw.legend(ax, handles, legend, right=True)
        return self
