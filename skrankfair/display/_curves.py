"""Curves by group with bands: over thresholds, days, positions, numbers of clusters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label, pvalue_in_text
from .._inputs.validation import check_choice
from . import _style as draw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..inference._monotonicity import MonotonicityTest
    from ..metrics._matched_pair_curve import MatchedPairCurve
    from ..planning import PowerCurve

_WIDE = 20  # from this ratio of largest to smallest threshold on, axes are logarithmic
_MANY_PLACES = 40
_PROMISED = 0.8


@dataclass(eq=False, repr=False)
class MatchedPairCurveDisplay:
    """Estimates against the threshold, with one line and one band per group.

    Made by `MatchedPairCurve.plot`. Above 0 a group is undervalued.

    Parameters
    ----------
    curve : MatchedPairCurve

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per group.
    bands_ : list of matplotlib Collection
        One per group: a band or, from four groups on, bars at some thresholds.
    fair_line_ : matplotlib Line2D
    legend_ : matplotlib Legend or None
    """

    curve: MatchedPairCurve

    def plot(
        self,
        *,
        ax: Axes | None = None,
        confidence_level: float = 0.95,
        groups: Sequence[Hashable] | None = None,
        legend: bool = True,
    ) -> MatchedPairCurveDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        confidence_level : float, default=0.95
            Confidence level of the bands. They hold at one threshold each.
        groups : sequence of hashable or None, default=None
            The groups to draw, in this order; None draws all. A group always has the
            same colour.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MatchedPairCurveDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or if there is no such group.
        """
        from matplotlib.patches import Patch

        curve, epsilon = self.curve, self.curve.epsilon
        chosen = list(curve.groups if groups is None else groups)
        for group in chosen:
            check_choice(group, "groups", curve.groups)
        numbers = [curve.groups.index(group) for group in chosen]
        low, high = curve.confidence_interval(confidence_level)
        ax = self.ax_ = draw.axes_for(ax)
        self.figure_ = ax.figure
        name = "ε, largest difference of scores"
        draw.frame(ax, name, "matched pair calibration", grid="y")
        if epsilon.size and 0 < epsilon.min() <= epsilon.max() / _WIDE:
            ax.set_xscale("log")
        self.fair_line_ = draw.mark(ax, 0)
        self.lines_, self.bands_ = draw.curves(
            ax,
            chosen,
            [epsilon] * len(chosen),
            *(np.asarray(end).T[numbers] for end in (curve.estimate, low, high)),
            numbers=numbers,
            marker="o",
            markersize=draw.dot(3.5),
        )
        text = f"{100 * confidence_level:g}% interval"
        band: Any = Patch(color=draw.LINE, alpha=0.18, lw=0, label=text)
        if len(chosen) >= draw.MANY:
            band = draw.sample(text, marker="|", linestyle="none")
        self.legend_ = draw.legend(ax, self.lines_, legend, notes=[band])
        return self


@dataclass(eq=False, repr=False)
class MonitorDisplay:
    """The mean gap of each group since the start, with its confidence sequence.

    Made by `Monitor.plot`. A triangle marks the day of an alarm, and a grey band the
    margin.

    Parameters
    ----------
    monitor : Monitor

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per group with a look.
    bands_ : list of matplotlib Collection
        From four groups on, bars on some days take the place of the bands.
    alarms_ : list of matplotlib Line2D
        One per alarm.
    margin_ : matplotlib Polygon or None
    legend_ : matplotlib Legend or None
    """

    monitor: Any

    def plot(self, *, ax: Axes | None = None, legend: bool = True) -> MonitorDisplay:
        """Draw the sequences.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        MonitorDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            If there is no update yet.
        """
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        monitor, margin = self.monitor, self.monitor.settings.margin
        name = monitor.result(last=1).name.replace("_", " ")
        by_group = monitor.to_frame().groupby("group", sort=False)
        tables: dict[Hashable, pd.DataFrame] = dict(iter(by_group))
        gap, low, high = (
            [table[column].to_numpy() for table in tables.values()]
            for column in ("gap", "gap_low", "gap_high")
        )
        days = [table["when"].to_numpy("datetime64[ns]") for table in tables.values()]
        numbers = [monitor.groups.index(group) for group in tables]
        ax = self.ax_ = draw.axes_for(ax)
        self.figure_ = ax.figure
        draw.frame(ax, "", f"gap of {name}")
        self.margin_ = None
        if margin is not None:
            shade: dict[str, Any] = {"color": draw.WITHIN, "alpha": 0.1, "lw": 0}
            shade |= {"zorder": 0, "label": "margin"}
            self.margin_ = ax.axhspan(-margin, margin, **shade)
        draw.mark(ax, 0)
        self.lines_, self.bands_ = draw.curves(
            ax, [*tables], days, gap, low, high, numbers=numbers
        )
        self.alarms_: list[Any] = []
        for alarm in monitor.alarms:
            when, which = np.datetime64(alarm.when, "ns"), [*tables].index(alarm.group)
            seen = days[which].tolist(), gap[which]
            self.alarms_ += ax.plot(
                [when],
                [np.interp(float(when.astype(np.int64)), *seen)],
                marker="v",
                markersize=draw.dot(9),
                linestyle="none",
                color=draw.look(numbers[which])["color"],
                markeredgecolor="white",
                zorder=4,
            )
        # Bands of the first looks are so wide that they are cut off.
        late = [end[end.size // 4 :] for end in (*low, *high)]
        top = 1.1 * np.abs(np.concatenate([[margin or 0.0], *gap, *late])).max()
        if np.isfinite(top) and top > 0:
            ax.set_ylim(-top, top)
        dates = AutoDateLocator(maxticks=6)
        ax.xaxis.set_major_locator(dates)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(dates))
        notes: list[Any] = [] if self.margin_ is None else [self.margin_]
        if self.alarms_:
            notes.append(draw.sample("alarm", marker="v", linestyle="none"))
        self.legend_ = draw.legend(ax, self.lines_, legend, notes=notes)
        return self


@dataclass(eq=False, repr=False)
class MonotonicityDisplay:
    """A group's share at every position, the monotone fit, and the verdict.

    Made by `MonotonicityTest.plot`. Shares outside the band of the fit are coloured.

    Parameters
    ----------
    test : MonotonicityTest

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    shares_ : list of matplotlib Line2D
        Points inside the band and, if there are any, outside.
    fit_ : matplotlib Line2D
    band_ : matplotlib PolyCollection or None
    group_share_ : matplotlib Line2D
    verdict_ : matplotlib Text
        The title of the legend or, without one, of the axes.
    legend_ : matplotlib Legend or None
    """

    test: MonotonicityTest

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
        from matplotlib.ticker import MaxNLocator

        test, ax = self.test, draw.axes_for(ax)
        self.ax_, self.figure_ = ax, ax.figure
        position, low, high = test.position, test.band_low, test.band_high
        color = draw.COLORS[0]
        self.band_ = None
        if not (np.isnan(low).all() or np.isnan(high).all()):
            name = f"{100 * test.confidence_level:g}% band of the fit"
            band: dict[str, Any] = {"color": color, "alpha": 0.18, "linewidth": 0}
            self.band_ = ax.fill_between(position, low, high, label=name, **band)
        (self.fit_,) = ax.plot(
            position, test.fit, color=color, lw=draw.thick(2), label="monotone fit"
        )
        with np.errstate(invalid="ignore"):
            outside = (test.share < low - 1e-12) | (test.share > high + 1e-12)
        size = draw.dot(5 if position.size <= _MANY_PLACES else 3)
        self.shares_: list[Any] = []
        for some, color, name in (
            (~outside, draw.LINE, "observed share"),
            (outside, draw.WORSE, "outside the band"),
        ):
            if some.any():
                look: dict[str, Any] = {"color": color, "label": name, "zorder": 3}
                points = position[some], test.share[some], "o"
                self.shares_ += ax.plot(*points, markersize=size, **look)
        faint: dict[str, Any] = {"color": draw.UNCLEAR, "linestyle": ":", "zorder": 0}
        faint |= {"linewidth": draw.thick(1), "label": "share of the group"}
        self.group_share_ = draw.mark(ax, test.group_share, **faint)
        name = label(test.group, draw.LONGEST)
        draw.frame(ax, "position, 1 = top", f"share of {name}")
        ax.set_ylim(-0.03, 1.03)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        words = "no verdict"
        if not np.isnan(test.pvalue):
            words = "not monotone" if test.rejected else "monotone"
            words += f": {pvalue_in_text(test.pvalue)}"
        handles, _ = ax.get_legend_handles_labels()
        self.legend_, self.verdict_ = draw.entitled(ax, handles, legend, words)
        return self


@dataclass(eq=False, repr=False)
class PowerCurveDisplay:
    """Power against the number of clusters: one line per group and gap.

    Made by `PowerCurve.plot`. A dotted line marks a power of 0.8, and a vertical one
    the pilot.

    Parameters
    ----------
    curve : PowerCurve

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per group and gap, the gaps of the first group first.
    pilot_line_ : matplotlib Line2D or None
    legend_ : matplotlib Legend or None
        With several groups and gaps, colours say the group, and dashes the gap.
    """

    curve: PowerCurve

    def plot(self, *, ax: Axes | None = None, legend: bool = True) -> PowerCurveDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        PowerCurveDisplay
            This display, with the artists.
        """
        curve, ax = self.curve, draw.axes_for(ax)
        self.ax_, self.figure_ = ax, ax.figure
        draw.frame(ax, "clusters", "power")
        ax.set_xscale("log")
        ax.set_ylim(0, 1.02)
        thin = draw.thick(1)
        dots = {"linestyle": ":", "label": f"power {_PROMISED:g}"}
        notes: list[Any] = [draw.mark(ax, _PROMISED, linewidth=thin, **dots)]
        several, n_gaps = len(curve.groups) > 1, len(curve.gaps)
        self.lines_: list[Any] = []
        for i, group in enumerate(curve.groups):
            start = f"{label(group, draw.LONGEST)}, " if several else ""
            color = {"color": draw.look(i)["color"]} if several else {}
            names = [f"{start}{gap:g}" for gap in curve.gaps]
            x = [curve.n_clusters] * n_gaps
            self.lines_ += draw.curves(
                ax, names, x, curve.power[i], longest=2 * draw.LONGEST, **color
            )[0]
        self.pilot_line_ = None
        if np.isfinite(curve.pilot):
            dashes = {"linestyle": "--", "label": "pilot"}
            self.pilot_line_ = draw.mark(ax, curve.pilot, "x", linewidth=thin, **dashes)
            notes.append(self.pilot_line_)
        handles = self.lines_
        if several and n_gaps > 1:
            # Colours say the groups, and dashes the gaps.
            handles = [
                draw.sample(label(group, draw.LONGEST), color=line.get_color())
                for group, line in zip(curve.groups, handles[::n_gaps], strict=True)
            ]
            notes = [
                draw.sample(f"gap {gap:g}", linestyle=line.get_linestyle())
                for gap, line in zip(curve.gaps, self.lines_[:n_gaps], strict=True)
            ] + notes
        self.legend_ = draw.legend(ax, handles, legend, notes=notes)
        return self
