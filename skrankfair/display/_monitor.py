"""Gaps day by day, with confidence sequences and alarms."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class MonitorDisplay:
    """The mean gap of each group since the start, with its confidence sequence.

    Made by `from_monitor` or `Monitor.plot`. A triangle marks the day of an alarm, and
    a grey band the margin.

    Parameters
    ----------
    groups : sequence of hashable, length G
    when : sequence of array-like of datetime64, length G
        The days of the looks at each group.
    gap, low, high : sequence of array-like, length G
        The gap and its sequence at these days.
    alarms : sequence of tuple, default=()
        Number of the group and day of each alarm.
    margin : float or None, default=None
        Half of the width of the band; None draws none.
    name : str, default=""
        What is monitored.

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

    See Also
    --------
    skrankfair.monitoring.Monitor : Makes the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.display import MonitorDisplay
    >>> days = np.array(["2026-11-20", "2026-11-21"], dtype="datetime64[D]")
    >>> display = MonitorDisplay(["f"], [days], [[0.0, 0.1]], [[-1, -1]], [[1, 1]])
    >>> len(display.plot().lines_)
    1
    """

    groups: Sequence[Hashable]
    when: Sequence[Any]
    gap: Sequence[Any]
    low: Sequence[Any]
    high: Sequence[Any]
    _: KW_ONLY
    alarms: Sequence[tuple[int, Any]] = ()
    margin: float | None = None
    name: str = ""

    @classmethod
    def from_monitor(
        cls, monitor: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> MonitorDisplay:
        """Draw what a monitor has seen.

        Parameters
        ----------
        monitor : Monitor
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        MonitorDisplay

        Raises
        ------
        ValueError
            If there is no update yet.
        """
        name = monitor.result(last=1).name.replace("_", " ")
        frame, groups = monitor.to_frame(), list(monitor.groups)
        columns: list[list[Any]] = [[], [], [], []]
        for group in groups:
            mine = [g == group for g in frame["group"]] if len(frame) else []
            own = frame[np.array(mine, dtype=bool)]
            for part, column in zip(
                columns, ("when", "gap", "gap_low", "gap_high"), strict=True
            ):
                part.append(own[column].to_numpy() if len(own) else np.zeros(0))
        columns[0] = [np.asarray(days, dtype="datetime64[ns]") for days in columns[0]]
        alarms = [
            (groups.index(alarm.group), np.datetime64(alarm.when, "ns"))
            for alarm in monitor.alarms
        ]
        display = cls(
            groups, *columns, alarms=alarms, margin=monitor.settings.margin, name=name
        )
        return display.plot(ax=ax, **kwargs)

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
        """
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        self.ax_ = draw.axes_for(ax)
        self.figure_ = self.ax_.figure
        draw.frame(self.ax_, "", f"gap of {self.name}" if self.name else "gap")
        self.margin_ = None
        if self.margin is not None:
            self.margin_ = self.ax_.axhspan(
                -self.margin,
                self.margin,
                color=draw.WITHIN,
                alpha=0.1,
                lw=0,
                zorder=0,
                label="margin",
            )
        draw.zero(self.ax_)
        self.lines_, self.bands_, self.alarms_ = [], [], []
        for place, group in enumerate(self.groups):
            if not len(self.when[place]):
                continue
            line, band = draw.curve(
                self.ax_,
                self.when[place],
                self.gap[place],
                self.low[place],
                self.high[place],
                place,
                label(group, draw.LONGEST),
                of=len(self.groups),
            )
            self.lines_.append(line)
            self.bands_.append(band)
        for place, day in self.alarms:
            gap = np.interp(
                float(np.asarray(day, dtype="datetime64[ns]").astype(np.int64)),
                np.asarray(self.when[place], dtype="datetime64[ns]").astype(np.int64),
                np.asarray(self.gap[place], dtype=float),
            )
            self.alarms_ += self.ax_.plot(
                [day],
                [gap],
                marker="v",
                markersize=draw.dot(9),
                linestyle="none",
                color=draw.look(place)["color"],
                markeredgecolor="white",
                zorder=4,
            )
        self._limit()
        dates = AutoDateLocator(maxticks=6)
        self.ax_.xaxis.set_major_locator(dates)
        self.ax_.xaxis.set_major_formatter(ConciseDateFormatter(dates))
        notes: list[Any] = [] if self.margin_ is None else [self.margin_]
        if self.alarms_:
            look = {"marker": "v", "linestyle": "none", "color": draw.LINE}
            notes.append(draw.sample("alarm", **look))
        self.legend_ = draw.legend(self.ax_, self.lines_, legend, notes=notes)
        return self

    def _limit(self) -> None:
        """Let the first, wide looks run out of the plot."""
        ends = [0.0 if self.margin is None else self.margin]
        for parts in zip(self.gap, self.low, self.high, strict=True):
            gap, low, high = (np.asarray(part, dtype=float) for part in parts)
            late = slice(gap.size // 4, None)
            ends += [*np.abs(gap), *np.abs(low[late]), *np.abs(high[late])]
        top = 1.1 * max(ends)
        if np.isfinite(top) and top > 0:
            self.ax_.set_ylim(-top, top)
