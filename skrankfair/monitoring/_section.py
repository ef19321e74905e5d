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


def _last_looks(monitor: Monitor) -> dict[Hashable, dict[Hashable, Any] | None]:
    """Return the last row of the frame of each group; None without a look."""
    looks: dict[Hashable, dict[Hashable, Any] | None] = dict.fromkeys(monitor.groups)
    for row in monitor.to_frame().to_dict("records"):
        looks[row["group"]] = row
    return looks


def rows_of(monitor: Monitor) -> list[list[str]]:
    """Return one row per group: its level and gap so far, with their sequences."""
    rows = []
    for group, now in _last_looks(monitor).items():
        if now is None:
            rows.append([fmt.label(group), *["–"] * 4])
            continue
        row = [fmt.label(group)]
        for what in ("level", "gap"):
            low, high = now[f"{what}_low"], now[f"{what}_high"]
            row += [fmt.number(now[what]), fmt.interval(low, high)]
        rows.append(row)
    return rows


def waiting(monitor: Monitor) -> tuple[str, ...]:
    """Return a sentence about the groups that no look was at, if there are any."""
    names = [fmt.label(group) for group, now in _last_looks(monitor).items() if not now]
    if not names:
        return ()
    needed = f"{monitor.settings.start:g} effective clusters of a group"
    named = fmt.some(names)
    return (f"Not looked at yet: {named}. A look needs {needed}, and of the rest.",)


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
    looks = {g: now for g, now in _last_looks(monitor).items() if now is not None}
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
        (*said, reading, *waiting(monitor)),
        HEADER,
        tuple(map(tuple, rows_of(monitor))),
        plot if looks else None,
    )
