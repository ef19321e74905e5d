"""What a monitor has seen, as a section of the report of an audit."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._reports.forest import ForestPlot, Series
from .._reports.sections import ReportSection
from ..display import _style as look

if TYPE_CHECKING:
    from ._monitor import Monitor

HEADER = ("group", "level", "always", "gap", "always")


def _last_looks(monitor: Monitor) -> dict[Hashable, dict[Hashable, Any]]:
    """Return the last row of the frame of each group that has one."""
    return {row["group"]: row for row in monitor.to_frame().to_dict("records")}


def rows_of(monitor: Monitor) -> tuple[list[list[str]], list[str]]:
    """Return one row per group: its level and gap so far, with their sequences.

    And a sentence about the groups that no look was at, if there are any.
    """
    looks, rows = _last_looks(monitor), []
    for group in monitor.groups:
        row = [fmt.label(group)]
        for what in ("level", "gap"):
            if now := looks.get(group):
                low, high = now[f"{what}_low"], now[f"{what}_high"]
                row += [fmt.number(now[what]), fmt.interval(low, high)]
            else:
                row += ["–", "–"]
        rows.append(row)
    names = [fmt.label(group) for group in monitor.groups if group not in looks]
    needed = f"{monitor.settings.start:g} effective clusters of a group"
    waiting = (
        f"Not looked at yet: {fmt.some(names)}. A look needs {needed}, and of the rest."
    )
    return rows, [waiting] if names else []


def section_of(monitor: Monitor) -> ReportSection:
    """Return the alarms, the gaps so far and their plot; ValueError without updates."""
    settings, days = monitor.settings, monitor.when
    name = monitor.result(last=1).name.replace("_", " ")
    alarms = monitor.alarms
    said = tuple(str(alarm) for alarm in alarms) or ("No alarm has been raised.",)
    reading = (
        f"{len(days)} updates, {days[0]} to {days[-1]}. The intervals of the means "
        "since the start hold at all looks together, so that one may look after every "
        f"update: the chance of any false alarm ever is {100 * settings.alpha:g}%."
    )
    looks, (rows, waiting) = _last_looks(monitor), rows_of(monitor)
    gap, low, high = (
        np.array([now[column] for now in looks.values()], dtype=float)
        for column in ("gap", "gap_low", "gap_high")
    )
    alarmed = {alarm.group for alarm in alarms if alarm.active}
    colors = [look.DIFFERENT if group in alarmed else look.UNCLEAR for group in looks]
    plot = ForestPlot(
        list(looks),
        [Series(gap, low, high, colors)],
        f"gap of {name}",
        f"The gap of each group since {days[0]}, with its confidence sequence.",
        0.0,
        settings.margin,
    )
    return ReportSection(
        f"Watched over time: {name}",
        (*said, reading, *waiting),
        HEADER,
        tuple(map(tuple, rows)),
        plot if looks else None,
    )
