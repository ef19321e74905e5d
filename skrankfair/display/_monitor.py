"""Gaps day by day, with confidence sequences and alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        groups, frame = list(monitor.groups), monitor.to_frame()
        tables = {
            group: frame[[label == group for label in frame["group"]]]
            for group in (groups if len(frame) else ())
        }
        tables = {group: table for group, table in tables.items() if len(table)}
        days = {
            group: table["when"].to_numpy(dtype="datetime64[ns]")
            for group, table in tables.items()
        }
        gap, low, high = (
            [table[column].to_numpy() for table in tables.values()]
            for column in ("gap", "gap_low", "gap_high")
        )
        ax = self.ax_ = draw.axes_for(ax)
        self.figure_ = ax.figure
        draw.frame(ax, "", f"gap of {name}")
        self.margin_ = None
        if margin is not None:
            shade: dict[str, Any] = {"color": draw.WITHIN, "alpha": 0.1, "lw": 0}
            self.margin_ = ax.axhspan(
                -margin, margin, zorder=0, label="margin", **shade
            )
        draw.zero(ax)
        places = [groups.index(group) for group in tables]
        self.lines_, self.bands_ = draw.curves(
            ax, [*tables], [*days.values()], gap, low, high, places=places
        )
        self.alarms_: list[Any] = []
        for alarm in monitor.alarms:
            when = np.datetime64(alarm.when, "ns")
            seen = days[alarm.group].tolist(), tables[alarm.group]["gap"].to_numpy()
            self.alarms_ += ax.plot(
                [when],
                [np.interp(float(when.astype(np.int64)), *seen)],
                marker="v",
                markersize=draw.dot(9),
                linestyle="none",
                color=draw.look(groups.index(alarm.group))["color"],
                markeredgecolor="white",
                zorder=4,
            )
        # The first, wide looks run out of the plot.
        late = [end[end.size // 4 :] for end in (*low, *high)]
        top = 1.1 * np.abs(np.concatenate([[margin or 0.0], *gap, *late])).max()
        if np.isfinite(top) and top > 0:
            ax.set_ylim(-top, top)
        dates = AutoDateLocator(maxticks=6)
        ax.xaxis.set_major_locator(dates)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(dates))
        notes: list[Any] = [] if self.margin_ is None else [self.margin_]
        if self.alarms_:
            look = {"marker": "v", "linestyle": "none", "color": draw.LINE}
            notes.append(draw.sample("alarm", **look))
        self.legend_ = draw.legend(ax, self.lines_, legend, notes=notes)
        return self
