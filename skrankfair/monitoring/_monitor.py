"""`Monitor`: results day by day, with alarms that are valid at every look.

They are kept in a file of JSON lines, in which none is lost or stored twice. The first
line says what is monitored and how; each other line is a day with its result in the
schema of `GroupEstimates.to_json`. A change writes a whole new file, flushes it to the
disk and renames it, so that whenever the process ends there is either the old file or
the new one. Two processes wait for each other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates.arrays import Shown
from .._estimates.finalize import MeanOfRatios, parts_of
from .._estimates.group_estimates import GroupEstimates
from .._estimates.leverage import degrees_of_freedom
from .._estimates.storage import SCHEMA_VERSION, check_schema
from .._inputs.validation import Array, check_number
from .._reports.catalog import note
from .._reports.exports import locked, write_text
from .._reports.html import ForestPlot
from .._reports.sections import ReportSection
from ..display import _style as style
from ._sequences import ENOUGH, Blocks, Scan, betting_sequence, change_point

if TYPE_CHECKING:
    from ..display._curves import MonitorDisplay


# With more effective clusters than this a block of data is as good as normal.
_START = 20
# So many events of a share are expected in a block, as one without any shows no error.
# Where three are expected, ten are found with a probability of 0.1%.
_FEWEST_EVENTS, _MANY_EVENTS = 3, 10
# What a report shows of the last look: the gap and the level since the start.
_SHOWN = ("gap", "gap_low", "gap_high", "level", "level_low", "level_high")
_SCHEMA = "skrankfair.Monitor"


@dataclass(frozen=True)
class Settings:
    """The settings of a monitor, on which its alarms depend and which never change."""

    margin: float | None
    alpha: float
    baseline: int | str | None
    tolerance: float
    start: float
    spec: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        """Raise a ValueError for settings out of range, given or read from a file."""
        check_number(self.margin, "margin", 0, np.inf, optional=True)
        check_number(self.alpha, "alpha", 0, 1, inclusive=(False, False))
        check_number(self.tolerance, "tolerance", 0, np.inf)
        check_number(self.start, "start", 2, np.inf)
        object.__setattr__(self, "baseline", _checked_baseline(self.baseline))
        if not isinstance(self.spec, Mapping | None):
            raise ValueError(f"spec must be a dict or None; got {self.spec!r}.")
        try:  # as it is read again: a tuple is a list, and a key is text
            spec = json.loads(json.dumps(self.spec, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ValueError(f"spec must hold what JSON does: {error}.") from error
        object.__setattr__(self, "spec", spec)


@dataclass(frozen=True)
class Alarm:
    """An alarm that a `Monitor` has raised about a group.

    Attributes
    ----------
    group : hashable
    kind : {"gap", "change"}
        Whether the gap is beyond the margin, or has changed by more than the tolerance.
    when : str
        The day at which the evidence was enough for the first time.
    direction : {"worse", "better"}
        "better": the gap is shown to be nearer to 0 than in the baseline, where nothing
        in the confidence sequence is as far away.
    state : {"open", "resolved"}
        "resolved": the gap has changed back, and its confidence sequence since then
        contains values that raise no alarm; or the evidence is no longer enough.
    resolved : str or None
        The likeliest day on which the gap changed back, if it has.
    evidence : float
        The value of the martingale on the last day of the window: the factor by which
        the data speak against "no cause". An alarm is raised where it reaches one over
        the share of alpha of this alarm.
    since : str
        The first day of the window with the most evidence, which ends on the last of
        all days, or on the last day before the gap changed back.
    estimate : float
        The gap in that window; of a change, its difference from all days before.
    low, high : float
        The confidence sequence of the estimate on the last day of the window.
    usual : float
        The gap in the baseline; 0 for an alarm of the gap itself.
    began : tuple of str or None
        For a change, its likeliest first day, and the first and last day of a 95%
        interval for that day.
    """

    group: Hashable
    kind: str
    when: str
    direction: str
    state: str
    resolved: str | None
    evidence: float
    since: str
    estimate: float
    low: float
    high: float
    usual: float
    began: tuple[str, ...] | None

    @property
    def calls(self) -> bool:
        """Whether somebody has to act: the alarm is open, and the gap is worse."""
        return self.state == "open" and self.direction == "worse"

    def __str__(self) -> str:
        """Return the alarm as a sentence."""
        least = min(abs(self.usual + self.low), abs(self.usual + self.high))
        worse = "has grown" if least > abs(self.usual) else "has changed"
        change = "has shrunk" if self.direction == "better" else worse
        what = change if self.kind == "change" else "is beyond the margin"
        size = f"{self.estimate:+.4g} [{self.low:+.4g}, {self.high:+.4g}]"
        if self.low < 0 < self.high:
            size += f" ({note('of_window')})"
        text = f"{fmt.label(self.group)}: the gap {what}, {size} since {self.since}"
        if self.began is not None:
            day, first, last = self.began
            text += f"; it began on {day} ({first} to {last})"
        text += f"; first seen on {self.when}"
        if self.resolved is not None:
            text += f"; resolved since {self.resolved}"
        return f"{text}."


def independent_rows(result: GroupEstimates) -> Array:
    """Return the number of rows of each group, and of the rows counted as 1, (2, G).

    They are NaN unless the metric is a share of rows, no cluster has two rows and all
    weights are equal, so that there are as many effective clusters as rows.
    """
    finalize = result.metric.finalize
    if not (result.metric.share and isinstance(finalize, MeanOfRatios)):
        return np.full((2, len(result.groups)), np.nan)
    n = result.sums.unweighted_support(
        lambda *totals: finalize.by_bucket(*totals)[1].sum(axis=-1)
    )
    single = (n == 0) | np.isclose(result.n_effective, n, rtol=1e-9, atol=0.0)
    single &= finalize.n_buckets == 1
    return np.where(single, [n, n * np.nan_to_num(result.estimate)], np.nan)


class Track(NamedTuple):
    """The blocks of a group.

    With them are, for each, the rows so far and those counted as 1, shape (2, n): NaN
    unless the level is a share of independent rows in all updates.
    """

    level: Blocks
    gap: Blocks
    rows: Array


def tracks_of(results: Iterable[GroupEstimates], least: float) -> dict[Hashable, Track]:
    """Return the blocks of each group, in the order of the first update of each.

    Updates are summed until there are `least` effective clusters for a block.
    """
    blocks: dict[Hashable, list[Array]] = {}
    since: dict[Hashable, int] = {}  # the first update that is in no block yet
    sums: dict[int, GroupEstimates] = {}  # of the updates since then
    for number, result in enumerate(results):
        for group in result.groups:
            blocks.setdefault(group, [])
            since.setdefault(group, number)
        sums = {
            start: sums[start] + result if start in sums else result
            for start in set(since.values())
        }
        for start, total in sums.items():
            numbers = _block_of_each_group(total, number, least)
            for group, block in zip(total.groups, numbers, strict=True):
                if since[group] == start and np.isfinite(block[0]):
                    blocks[group].append(block)
                    since[group] = number + 1
    tracks = {}
    for group, of_group in blocks.items():
        numbers = np.array(of_group).reshape(-1, 12).T
        level, gap = (
            Blocks(value, variance, weight, df, last.astype(int))
            for value, variance, weight, df, last in (numbers[:5], numbers[5:10])
        )
        tracks[group] = Track(level, gap, numbers[10:].cumsum(axis=1))
    return tracks


def _block_of_each_group(total: GroupEstimates, number: int, least: float) -> Array:
    """Return the numbers of a block of each group, (G, 12); NaN without enough data.

    They are those of `Blocks` for the level and for the gap, then `independent_rows`.
    """
    gap, numbers = total.as_gap(), []
    level_error, gap_error = total.standard_error, gap.standard_error
    enough = np.fmin(gap.n_effective, total.n_effective) >= least
    if total.metric.share and total.fair_value is None:
        # Expected by the rate of the larger side, as blocks that end with an event of
        # the smaller have too many; or so many that no side like the larger has them.
        smaller = gap.n_effective / total.n_effective
        sides = total.estimate, total.estimate - gap.estimate
        own, other = np.where(smaller < 1, sides[::-1], sides)
        rare, expected = np.minimum(own, 1 - own), np.minimum(other, 1 - other)
        share = np.fmax(expected, rare * _FEWEST_EVENTS / _MANY_EVENTS)
        enough &= share * smaller * total.support >= _FEWEST_EVENTS
        # The smaller side may lack events, and varies as so few clusters of the larger.
        rest = parts_of(gap.metric.finalize)[1]
        of_rest = gap.sums.variance(rest) * degrees_of_freedom(gap.sums, rest)[1]
        of_one = np.where(smaller < 1, level_error**2 * total.n_effective, of_rest)
        gap_error = np.fmax(gap_error, np.sqrt(of_one / gap.n_effective))
    # A share without an event varies like half of one.
    half = np.sqrt(0.5) / total.n_effective if total.metric.share else level_error
    level_error = np.where(level_error == 0, half, level_error)
    values = total.estimate, gap.estimate - (gap.fair_value or 0.0)
    errors, df = (level_error, gap_error), (total.df, gap.df)
    for value, error, of in zip(values, errors, df, strict=True):
        enough &= (error > 0) & np.isfinite(value)
        numbers += [value, error**2, gap.n_effective, of, np.full(value.size, number)]
    return np.where(enough, [*numbers, *independent_rows(total)], np.nan).T


class Monitor(Shown):
    """Results of one metric day by day, and alarms when a gap is too large or changes.

    One may look after every update, for years: the chance of any false alarm ever is
    `alpha`. What is stored are the results themselves, which add up.

    Parameters
    ----------
    path : str, path-like or None, default=None
        File of the results, which is created by the first update. None keeps them in
        memory. An existing file must have the same settings; see `open`.
    metric : callable or None, default=None
        A function from the data that `update` gets, such as a frame, to a result; None
        if `update` gets results.
    margin : float or None, default=None
        Largest gap that does not matter: an alarm says that the gap of a group, its
        distance from the fair value or from the rest, is beyond it. None: no alarm
        about the size, as is needed for results with errors over users and items.
    alpha : float, default=0.05
        The chance of any false alarm, over all groups and all days.
    baseline : int, str or None, default=None
        The days that define the usual gap: this number of first updates, or all updates
        up to this date. An alarm says that the gap has changed since. None: no alarm
        about changes.
    tolerance : float, default=0.0
        Largest change of a gap that does not matter.
    start : float, default=20
        Effective clusters of a group (and of the rest) that are enough for a look; days
        with fewer are summed until there are enough. Of a rate a look also needs three
        expected events of each group: see Notes.
    spec : dict or None, default=None
        Anything that JSON holds, to be stored with the settings, such as the names of
        columns.

    Attributes
    ----------
    settings : Settings
    path : pathlib.Path or None

    Raises
    ------
    ValueError
        For a margin, tolerance, level or baseline out of range, or a file that is no
        store, or one with other settings.

    See Also
    --------
    skrankfair.planning.power_curve : How much data a gap needs.

    Notes
    -----
    Each update (or several, up to `start` effective clusters) is a block with an
    estimate and its cluster-robust variance; a window is the mean of its blocks,
    weighted by their effective clusters. A window from block s to t has the martingale
    ``exp(z² r / (2 (1 + r))) / sqrt(1 + r)``, with z its distance over its standard
    error (Student's t on the normal scale) and r its information in units of a prior's
    (Waudby-Smith et al. 2021, after Robbins 1970). Those of all s are mixed with the
    weights ``1 / (s (s + 1))``, and an alarm is raised where the mixture reaches one
    over its share of alpha (Ville's inequality; Shin, Ramdas and Rinaldo 2022). A
    change is the difference of a window from all blocks before it, in the baseline and
    after. Groups of the first update have equal shares of alpha, and groups that come
    later have ever smaller ones.

    Updates have to be independent given the gap. Users who return do no harm if what
    they have in common stays the same: it is in the baseline too, and the gap is that
    of these users. Items that recur would raise alarms of the size, though: results by
    users alone are about these items, and for items in general a test of `result`,
    which adds up the days of each item, takes the place of `margin`. Days may differ
    more than their errors say, as with fashions of the day: in the first seven blocks
    errors count three times, and from the eighth on they are increased by a factor from
    the differences of neighbouring blocks (with the degrees of freedom of that factor).
    Where such effects last for several days, one update per week is needed; a slow
    drift is a change. The guarantee is asymptotic, for blocks of enough clusters and of
    enough events, since a block without an event shows no error. A block of a rate
    therefore goes on until three events, and three rows without one, are expected in
    the smaller of the group and its rest at the rate of the larger, or until ten are
    found there. The level of a block without any event has the variance of half an
    event, and its gap at least the variance that as many clusters of the larger side
    would show. Where all rows of a cluster are events together, `start` must be large
    enough for three such clusters. Only levels that are shares of rows, with no two
    rows of a cluster, have a guarantee for any number of rows, by betting (Waudby-Smith
    and Ramdas 2024). See `to_frame`.

    References
    ----------
    Waudby-Smith, I., Arbour, D., Sinha, R., Kennedy, E. H. and Ramdas, A. (2021).
    "Time-uniform central limit theory and asymptotic confidence sequences".
    arXiv:2103.06476.

    Waudby-Smith, I. and Ramdas, A. (2024). "Estimating means of bounded random
    variables by betting". Journal of the Royal Statistical Society B 86(1).

    Shin, J., Ramdas, A. and Rinaldo, A. (2022). "E-detectors: a nonparametric framework
    for sequential change detection". arXiv:2203.03532.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import selection_rate
    >>> from skrankfair.monitoring import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(baseline=14)
    >>> for day in range(1, 31):
    ...     group = rng.choice(["f", "m"], size=1000)
    ...     worse = 0.1 * (group == "f") * (day >= 20)  # a release on the 20th
    ...     chosen = rng.random(1000) < 0.5 - worse
    ...     result = selection_rate(None, chosen, sensitive_features=group)
    ...     monitor.update(result, when=f"2026-11-{day:02}")
    >>> for alarm in monitor.alarms:
    ...     print(alarm.group, alarm.when, alarm.began)
    f 2026-11-26 ('2026-11-20', '2026-11-20', '2026-11-21')
    m 2026-11-26 ('2026-11-20', '2026-11-20', '2026-11-21')
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        metric: Callable[[Any], GroupEstimates] | None = None,
        margin: float | None = None,
        alpha: float = 0.05,
        baseline: int | str | None = None,
        tolerance: float = 0.0,
        start: float = _START,
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.metric = metric
        self.settings = Settings(margin, alpha, baseline, tolerance, start, spec)
        self._results: dict[str, GroupEstimates] = {}
        self._take({})
        self._load()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        metric: Callable[[Any], GroupEstimates] | None = None,
    ) -> Monitor:
        """Return the monitor of a file with the settings that are stored there.

        Parameters
        ----------
        path : str or path-like
        metric : callable or None, default=None
            A function from the data that `update` gets to a result; None if it gets
            results.

        Returns
        -------
        Monitor

        Raises
        ------
        ValueError
            If the file is no store.
        OSError
            If it cannot be read.
        """
        settings, _ = _read_store(Path(path))
        return cls(path, metric=metric, **asdict(settings))

    def _load(self) -> None:
        """Read the file, if there is one, which must have the same settings."""
        if self.path is None or not self.path.exists():
            return
        stored, days = _read_store(self.path)
        for name, value in asdict(stored).items():
            given = getattr(self.settings, name)
            if value != given:
                raise ValueError(
                    f"{name} must be that of {self.path}, {value!r}; got {given!r}. "
                    "Monitor.open takes what is stored."
                )
        self._take(days)

    def _take(self, days: dict[str, str]) -> None:
        """Take these days, from which blocks and alarms follow when they are asked."""
        self._days = days
        for name in ("_tracks", "alarms"):
            vars(self).pop(name, None)

    @property
    def when(self) -> tuple[str, ...]:
        """The days of the updates, in their order."""
        return tuple(self._days)

    def update(self, data: Any, when: Any, *, replace: bool = False) -> None:
        """Add the result of a day, and store it.

        When the call returns, the result is stored. If it does not return, because of
        an error or because the process is killed, the file is either unchanged or has
        the result. So an interrupted update can be repeated: it is refused if it is
        there already.

        Parameters
        ----------
        data : GroupEstimates, or what `metric` takes
        when : str, date or datetime
            The day, or a time; a name that no other update has.
        replace : bool, default=False
            Whether the result replaces that of the same day, which must be there.

        Raises
        ------
        ValueError
            If the day is there already (or is not, with `replace`), if the result is
            of another metric or has other options, cannot be stored, or has errors over
            users and items where the monitor has a margin.
        OSError
            If the file cannot be written; it then stays as it was.
        """
        day = _day(when)
        result = data if self.metric is None else self.metric(data)
        if not isinstance(result, GroupEstimates):
            raise ValueError(
                f"data must be a result (GroupEstimates); got {type(result).__name__}. "
                "A monitor with metric= makes a result from other data."
            )
        if not result.has_pvalue:
            raise ValueError(
                f"{result.name} has no gap to monitor: none from a fair value or from "
                "the rest is tested by Student's t."
            )
        if self.settings.margin is not None and result.variance == "two-way":
            raise ValueError(
                f"margin must be None; got {self.settings.margin}: items recur from "
                "day to day. Give results by users, or test result() for items."
            )
        text = result.to_json()
        with nullcontext() if self.path is None else _alone(self.path):
            self._load()
            days = self._with(day, text, replace)
            if self.path is not None:
                _write_store(self.path, self.settings, days)
        self._take(days)

    def _with(self, day: str, text: str, replace: bool) -> dict[str, str]:
        """Return the days with one more, or one replaced, or raise a ValueError."""
        if replace != (day in self._days):
            raise ValueError(
                f"when must be a day that is there, to be replaced; got {day}."
                if replace
                else f"when must be a new day, or replace=True; {day} is there already."
            )
        others = [name for name in self._days if name != day]
        if others:
            # Adding raises an error if the two are not of one kind.
            self._result(others[-1]) + GroupEstimates.from_json(text)
        return dict(sorted({**self._days, day: text}.items()))

    def _result(self, day: str) -> GroupEstimates:
        text = self._days[day]
        if text not in self._results:
            self._results[text] = GroupEstimates.from_json(text)
        return self._results[text]

    def result(self, last: int | None = None) -> GroupEstimates:
        """Return the result of all updates together, or of the last ones.

        Its intervals hold for a single look at data that were chosen beforehand.

        Parameters
        ----------
        last : int or None, default=None
            Number of updates, counted from the end; None takes all.

        Returns
        -------
        GroupEstimates

        Raises
        ------
        ValueError
            If there is no update, or for fewer than one.
        """
        check_number(last, "last", 1, np.inf, integer=True, optional=True)
        if not self._days:
            raise ValueError("There is no update yet.")
        return self._sum(self.when if last is None else self.when[-last:])

    def _sum(self, days: Sequence[str]) -> GroupEstimates:
        return sum(map(self._result, days[1:]), start=self._result(days[0]))

    def rolling(self, window: int, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return the results of windows of `window` updates.

        The intervals hold for a single look, and not for a look every day.

        Parameters
        ----------
        window : int
            Number of updates of each window.
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            One row per last day of a window and group: when, group, and the columns of
            `GroupEstimates.to_frame`.
        """
        check_number(window, "window", 1, np.inf, integer=True)
        frames = []
        for end in range(window, len(self.when) + 1):
            result = self._sum(self.when[end - window : end])
            frame = result.to_frame(confidence_level).reset_index()
            frame.insert(0, "when", self.when[end - 1])
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The groups, those of the first update first."""
        return tuple(self._tracks)

    @cached_property
    def _tracks(self) -> dict[Hashable, Track]:
        """The blocks of each group."""
        return tracks_of(map(self._result, self._days), self.settings.start)

    def _alpha(self, group: Hashable) -> float:
        """Return the share of alpha of each kind of alarm of a group.

        Each of the G groups of the first update has ``1 / (G + 1)`` of it; the j-th
        group, if it comes later, has ``1 / (j (j + 1))``: they add up to 1 for ever.
        """
        first = len(self._result(self.when[0]).groups)
        place = 1 + self.groups.index(group)
        share = 1 / (first + 1) if place <= first else 1 / (place * (place + 1))
        kinds = [self.settings.margin, self.settings.baseline]
        n_kinds = max(1, sum(kind is not None for kind in kinds))
        return self.settings.alpha * share / n_kinds

    def _n_baseline(self, blocks: Blocks) -> int:
        """Return the number of blocks of the baseline, at least one."""
        last = self.settings.baseline or 0
        if isinstance(last, str):
            # Of a day without a time, all updates at times of that day.
            last = sum(day[: len(last)] <= last for day in self.when)
        return max(1, int((blocks.last < last).sum()))

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms, in the order in which they were raised."""
        margin, alarms = self.settings.margin, []
        for group in self.groups:
            if margin is not None:
                alarms += self._alarms_of(group, "gap", margin)
            if self.settings.baseline is not None:
                alarms += self._alarms_of(group, "change", self.settings.tolerance)
        return tuple(sorted(alarms, key=lambda alarm: alarm.when))

    def _alarms_of(self, group: Hashable, kind: str, size: float) -> list[Alarm]:
        """Return the alarms that windows of blocks raise, one after the other.

        After the gap has changed back, windows start anew from there.
        """
        blocks, change = self._tracks[group].gap, kind == "change"
        first = self._n_baseline(blocks) if change else 0
        start, size_of_all, alpha = first, blocks.value.size, self._alpha(group)
        alarms: list[Alarm] = []
        while start < size_of_all:
            # The blocks of the baseline, and those after the last alarm.
            rows = np.r_[:first, start:size_of_all]
            watched = blocks.take(rows)
            scan = Scan.of(watched, first)
            evidence, starts = scan.log_evidence(size, alpha)
            over = evidence >= -np.log(alpha)
            if not over.any():
                low, high = scan.interval(0, alpha)
                if alarms and (low[-1] > size or high[-1] < -size):
                    # The gap has changed back in part, and is still too large.
                    alarms[-1] = replace(alarms[-1], state="open", resolved=None)
                break
            seen = int(np.argmax(over))
            origin = first + int(starts[seen])
            gap = scan.estimate[starts[seen], seen]
            back = _changed_back(watched, origin, first + seen, gap, alpha)
            last = -1 if back is None else back - first - 1
            window = int(starts[last])
            low, high = scan.interval(window, alpha)
            usual = float(watched.means()[0][0, first - 1]) if change else 0.0
            most = max(abs(usual + low[last]), abs(usual + high[last]))
            # The first day in each block.
            days = [self.when[i] for i in np.append(0, blocks.last + 1)[rows]]
            changed = change_point(watched.take(slice(back)), first) if change else ()
            began = tuple(days[i] for i in changed) or None
            alarm = Alarm(
                group,
                kind,
                when=self.when[watched.last[first + seen]],
                direction="better" if most < abs(usual) else "worse",
                state="open" if back is None and over[-1] else "resolved",
                resolved=None if back is None else days[back],
                evidence=float(np.exp(min(evidence[last], 700.0))),
                since=days[first + window],
                estimate=float(scan.estimate[window, last]),
                low=float(low[last]),
                high=float(high[last]),
                usual=usual,
                began=began,
            )
            alarms.append(alarm)
            if back is None:
                break
            start = int(rows[back])
        return alarms

    def to_frame(self) -> pd.DataFrame:
        """Return the confidence sequences of the mean level and gap since the start.

        Returns
        -------
        DataFrame
            One row per group and look: when, group, level, level_low, level_high, gap,
            gap_low and gap_high. The sequences of a group hold at all looks together
            with the confidence that its share of alpha leaves. That of a level which is
            a share of rows, no two of a cluster and without weights, is by betting and
            holds for any number of rows; the others are asymptotic, and levels of
            shares are cut at 0 and 1.
        """
        frames, tracked = [], self._tracks
        share = bool(tracked) and self.result(last=1).metric.share
        for group, track in tracked.items():
            if not track.gap.value.size:
                continue
            # The sequence that starts with the first block has half of the weight.
            alpha = self._alpha(group) / 2
            columns: dict[str, Any] = {
                "when": [self.when[i] for i in track.gap.last],
                "group": [group] * track.gap.value.size,
            }
            for what in ("level", "gap"):
                scan = Scan.of(getattr(track, what))
                estimate, ends = scan.estimate[0], scan.interval(0, alpha)
                if what == "level" and np.isfinite(track.rows).all():
                    n, counted = track.rows
                    estimate, ends = counted / n, betting_sequence(n, counted, alpha)
                columns[what] = estimate
                bounds = (0.0, 1.0) if share and what == "level" else (-np.inf, np.inf)
                columns[f"{what}_low"], columns[f"{what}_high"] = np.clip(ends, *bounds)
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def report_section(self) -> ReportSection:
        """Return the alarms and gaps so far as a section of the report of an audit.

        ``report.to_html(path, monitor=monitor)`` shows it below the metrics.

        Returns
        -------
        ReportSection
            The alarms in words, the gaps so far with their confidence sequences as a
            table, and as a plot.

        Raises
        ------
        ValueError
            If there is no update yet.
        """
        settings, days, alarms = self.settings, self.when, self.alarms
        latest = self.result(last=1)
        # The name that an audit has for the metric, such as inter_group_accuracy.
        asked = (settings.spec or {}).get("metric") or latest.name
        name = str(asked).replace("_group", "-group").replace("_", " ")
        # The last row of each group that has any.
        looks = {
            row["group"]: [row[column] for column in _SHOWN]
            for row in self.to_frame().to_dict("records")
        }
        gap = latest.as_gap()
        numbers = np.stack([gap.estimate, *gap.confidence_interval()])
        numbers = (numbers - (gap.fair_value or 0.0)).T
        now, rows = dict(zip(gap.groups, numbers.tolist(), strict=True)), []
        for group in self.groups:
            last, look = now.get(group, [np.nan] * 3), looks.get(group, [np.nan] * 6)
            cells = *_cells(*last), *_cells(*look[:3]), *_cells(*look[3:])
            rows.append((fmt.label(group), *cells))
        paragraphs = [f"ALARM {alarm}" for alarm in alarms if alarm.calls]
        paragraphs = paragraphs or ["No open alarm." if alarms else "No alarm."]
        for state, heading in (("open", "Better:"), ("resolved", "Resolved:")):
            quiet = [a for a in alarms if a.state == state and not a.calls]
            paragraphs += [f"{heading} {alarm}" for alarm in quiet]
        paragraphs.append(
            f"{len(days)} update{'s' * (len(days) > 1)}, {days[0]} to {days[-1]}. The "
            "latest gap is that of the last update, with the 95% interval of one look. "
            "The intervals of the means since the start hold at all looks together, so "
            "that one may look after every update: the chance of any false alarm ever "
            f"is {100 * settings.alpha:g}%."
        )
        if len(days) < ENOUGH:
            paragraphs.append(note("few_days", number=ENOUGH))
        if waiting := [fmt.label(group) for group in self.groups if group not in looks]:
            paragraphs.append(
                f"Not looked at yet: {fmt.some(waiting)}. A look needs "
                f"{settings.start:g} effective clusters of a group, and of the rest, "
                "and of a rate three events that are to be expected."
            )
        alarmed = {alarm.group for alarm in alarms if alarm.calls}
        estimate, low, high, *_ = np.array(list(looks.values())).reshape(-1, 6).T
        plot = ForestPlot(
            list(looks),
            *(estimate, low, high),
            [style.DIFFERENT if g in alarmed else style.UNCLEAR for g in looks],
            f"gap of {name}",
            f"The gap of each group since {days[0]}, with its confidence sequence.",
            0.0,
            settings.margin,
        )
        return ReportSection(
            f"Watched over time: {name}",
            tuple(paragraphs),
            ("group", "latest gap", "of one look", "gap", "always", "level", "always"),
            tuple(rows),
            plot if looks else None,
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> MonitorDisplay:
        """Draw the confidence sequences of the gaps, and the alarms.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `MonitorDisplay.plot`.

        Returns
        -------
        MonitorDisplay
        """
        from ..display._curves import MonitorDisplay

        return MonitorDisplay(self).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return a small table: the gaps so far, and the alarms."""
        if not self._days:
            return "Monitor without updates"
        section = self.report_section()
        table = fmt.text_table(section.header, section.rows)
        return "\n".join((section.title, table, *section.paragraphs))


def _cells(value: float, low: float, high: float) -> tuple[str, str]:
    """Return the cells of a number and its interval."""
    return fmt.number(value), fmt.interval(low, high)


def _changed_back(
    blocks: Blocks, begin: int, seen: int, gap: float, alpha: float
) -> int | None:
    """Return the block with which a gap began to change back; None if it has not.

    The gap is that since the block `begin`, with an alarm at the block `seen`.
    """
    since, n_before = blocks.take(slice(begin, None)), seen + 1 - begin
    if since.value.size <= n_before:
        return None
    later = Scan.of(since, n_before)
    evidence, starts = later.log_evidence(0.0, alpha)
    place = int(np.argmax(evidence >= -np.log(alpha)))
    further = later.estimate[starts[place], place] * gap > 0  # in the same direction
    if further or evidence[place] < -np.log(alpha):
        return None
    return begin + change_point(since, n_before)[0]


def _checked_baseline(baseline: Any) -> int | str | None:
    """Return the number of updates, or the name of a day."""
    if isinstance(baseline, int | np.integer):
        check_number(baseline, "baseline", 1, np.inf, integer=True)
        return int(baseline)
    return None if baseline is None else _day(baseline, "baseline")


def _day(when: Any, name: str = "when") -> str:
    """Return a day or time as text that is sorted by time."""
    time: Any = None
    if isinstance(when, str | date | np.datetime64):
        with suppress(ValueError, TypeError, OverflowError):
            # pandas would read 05.12. and 16.12. as May and December.
            day = datetime.fromisoformat(when) if isinstance(when, str) else when
            time = pd.Timestamp(day)
    if pd.isna(time):
        raise ValueError(
            f"{name} must be a day such as '2026-11-21', or a time; got {when!r}."
        )
    if time.tzinfo is not None:
        time = time.tz_convert("UTC").tz_localize(None)
    return str(time.isoformat().removesuffix("T00:00:00"))


def _read_store(path: Path) -> tuple[Settings, dict[str, str]]:
    """Return the settings of a store, and the text of the result of each day.

    Raises
    ------
    ValueError
        If the file is no complete store of a version that is known.
    OSError
        If it cannot be read.
    """
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        content = None
        with suppress(ValueError, RecursionError):
            content = json.loads(line)
        records.append(content if isinstance(content, dict) else {})
    head = records[0] if records else {}
    if head.get("schema") != _SCHEMA:
        raise ValueError(
            f"{path} is no store of a monitor: it has no {_SCHEMA!r} head."
        )
    check_schema(head, _SCHEMA, path)
    days: dict[str, str] = {}
    for number, day in enumerate(records[1:], 2):
        when = day.get("when")
        if not isinstance(when, str) or "result" not in day:
            raise ValueError(f"{path}, line {number}: it is no day with a result.")
        if when in days:
            raise ValueError(f"{path}, line {number}: {when} is there twice.")
        days[when] = json.dumps(day["result"])
    settings: Any = head.get("settings")
    try:
        return Settings(**settings), days
    except TypeError as error:
        names = ", ".join(sorted(each.name for each in fields(Settings)))
        raise ValueError(
            f"{path} must have settings, a dict of {names}; got {settings!r}."
        ) from error


def _write_store(path: Path, settings: Settings, days: Mapping[str, str]) -> None:
    """Replace the store by a complete new one, or leave the old one unchanged."""
    head = {"schema": _SCHEMA, "schema_version": SCHEMA_VERSION}
    lines = [json.dumps({**head, "settings": asdict(settings)})]
    lines += [
        f'{{"when": {json.dumps(w)}, "result": {text}}}' for w, text in days.items()
    ]
    write_text(path, "\n".join(lines) + "\n")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from changing a store, where the system has locks.

    The lock is on the folder, which stays, and ends with the process.
    """
    if os.name == "nt":  # Windows opens no folders
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        locked(folder, wait=True)
        yield
        with suppress(OSError):  # so that the new name survives a loss of power
            os.fsync(folder)
    finally:
        os.close(folder)
