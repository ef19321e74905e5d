"""`Monitor`: results day by day, with alarms that are valid at every look."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.arrays import Shown
from .._estimates.finalize import MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._inputs.validation import Array, check_number
from . import _store
from ._sequences import Blocks, Scan, betting_sequence, change_point

if TYPE_CHECKING:
    import pandas as pd

    from .._reports.sections import ReportSection
    from ..display._curves import MonitorDisplay

# With more effective clusters than this a block of data is as good as normal.
_START = 20
_SHOWN = ("level", "level_low", "level_high", "gap", "gap_low", "gap_high")


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
        if self.margin is not None:
            check_number(self.margin, "margin", 0, np.inf)
        check_number(self.alpha, "alpha", 0, 1, inclusive=(False, False))
        check_number(self.tolerance, "tolerance", 0, np.inf)
        check_number(self.start, "start", 2, np.inf)
        object.__setattr__(self, "baseline", _checked_baseline(self.baseline))
        if not isinstance(self.spec, Mapping | None):
            raise ValueError(f"spec must be a dict or None; got {self.spec!r}.")


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
        "better": the gap is nearer to 0 than in the baseline.
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
    began: tuple[str, str, str] | None

    @property
    def calls(self) -> bool:
        """Whether somebody has to act: the alarm is open, and the gap is worse."""
        return self.state == "open" and self.direction == "worse"

    def __str__(self) -> str:
        """Return the alarm as a sentence."""
        what = "has grown" if self.direction == "worse" else "has shrunk"
        if self.kind == "gap":
            what = "is beyond the margin"
        size = f"{self.estimate:+.4g} [{self.low:+.4g}, {self.high:+.4g}]"
        text = f"{fmt.label(self.group)}: the gap {what}, {size} since {self.since}"
        if self.began is not None:
            text += (
                f"; it began on {self.began[0]} ({self.began[1]} to {self.began[2]})"
            )
        text += f"; first seen on {self.when}"
        if self.resolved is not None:
            text += f"; resolved since {self.resolved}"
        return f"{text}."


def independent_rows(result: GroupEstimates) -> Array:
    """Return the number of rows of each group, and of the rows counted as 1, (G, 2).

    They are NaN unless the metric is a share of rows, no cluster has two rows and all
    weights are equal, so that there are as many effective clusters as rows.
    """
    finalize, sums = result.metric.finalize, result.sums
    unknown = np.full((len(result.groups), 2), np.nan)
    if not (result.metric.share and isinstance(finalize, MeanOfRatios)):
        return unknown
    ratio, _ = finalize.parts(sums.by_group, sums.shared)
    _, rows = finalize.parts(*(sums.unweighted or sums.totals))
    if ratio.shape[-1] != 1:
        return unknown
    n, share = rows[:, 0], np.nan_to_num(ratio[:, 0])
    single = (n == 0) | np.isclose(result.n_effective, n, rtol=1e-9, atol=0.0)
    return np.where(single[:, None], np.stack([n, n * share], axis=1), np.nan)


@dataclass
class Tracker:
    """A sum of updates that makes a block of a group when it has enough data.

    Attributes
    ----------
    least : float
        Effective clusters that a block needs.
    blocks : dict of hashable to list of dict
        By group, in the order of their first update: per block, the numbers of `Blocks`
        for the "level" and the "gap", and the "rows" of `independent_rows` so far.
    n_first : int
        The number of groups of the first update.
    updates : list of str
        The results, as text.
    alarms : tuple of Alarm or None
        The alarms that follow from the blocks; None before they are asked for.
    """

    least: float
    blocks: dict[Hashable, list[dict[str, Any]]] = field(default_factory=dict)
    n_first: int = 0
    updates: list[str] = field(default_factory=list)
    alarms: tuple[Alarm, ...] | None = None
    _since: dict[Hashable, int] = field(default_factory=dict)
    _sums: dict[int, GroupEstimates] = field(default_factory=dict)
    _rows: dict[Hashable, Array] = field(default_factory=dict)

    def add(self, text: str, result: GroupEstimates) -> None:
        """Add the next update."""
        number, self.alarms = len(self.updates), None
        if number == 0:
            self.n_first = len(result.groups)
        self.updates.append(text)
        self._sums = {start: total + result for start, total in self._sums.items()}
        self._sums[number] = result
        for group, rows in zip(result.groups, independent_rows(result), strict=True):
            self.blocks.setdefault(group, [])
            self._since.setdefault(group, number)
            self._rows[group] = self._rows.get(group, np.zeros(2)) + rows
        for start, total in self._sums.items():
            groups = [g for g in total.groups if self._since[g] == start]
            if groups:
                self._close(total, groups, number)
        open_ones = set(self._since.values())
        self._sums = {s: total for s, total in self._sums.items() if s in open_ones}

    def _close(
        self, total: GroupEstimates, groups: list[Hashable], number: int
    ) -> None:
        """Make a block of each group that has enough data since its last block."""
        gap = total.as_gap()
        enough = (gap.n_effective >= self.least) & (total.n_effective >= self.least)
        sides = {"level": (total, 0.0), "gap": (gap, gap.fair_value or 0.0)}
        for result, _ in sides.values():
            enough &= (result.standard_error > 0) & np.isfinite(result.estimate)
        for i, group in enumerate(total.groups):
            if enough[i] and group in groups:
                block: dict[str, Any] = {"rows": self._rows[group]}
                for what, (result, fair) in sides.items():
                    variance, weight = result.standard_error[i] ** 2, gap.n_effective[i]
                    value = result.estimate[i] - fair
                    block[what] = (value, variance, weight, result.df[i], number)
                self.blocks[group].append(block)
                self._since[group] = number + 1

    def track(self, group: Hashable, what: str) -> Blocks:
        """Return the blocks of a group: of its "level" or its "gap"."""
        numbers = [block[what] for block in self.blocks[group]]
        value, variance, weight, df, last = np.array(numbers).reshape(-1, 5).T
        return Blocks(value, variance, weight, df, last.astype(int))

    def rows(self, group: Hashable) -> Array:
        """Return the rows so far at each look, and those counted as 1, shape (2, n).

        NaN unless the level is a share of independent rows in all updates.
        """
        return np.array([block["rows"] for block in self.blocks[group]]).T

    def share(self, group: Hashable) -> float:
        """Return the share of alpha of a group; the shares add up to 1 for ever.

        Each of the G groups of the first update has ``1 / (G + 1)``; the j-th group, if
        it comes later, has ``1 / (j (j + 1))``.
        """
        place = 1 + list(self.blocks).index(group)
        first = self.n_first
        return 1 / (first + 1) if place <= first else 1 / (place * (place + 1))


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
        about the size.
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
        with fewer are summed until there are enough.
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
    of these users. Days may differ more than their errors say, as with fashions of the
    day: in the first seven blocks errors count three times, and from the eighth on they
    are increased by a factor from the differences of neighbouring blocks (with the
    degrees of freedom of that factor). Where such effects last for several days, one
    update per week is needed; a slow drift is a change. The guarantee is asymptotic,
    for blocks of enough clusters. Only levels that are shares of rows, with no two rows
    of a cluster, have a guarantee for any number of rows, by betting (Waudby-Smith and
    Ramdas 2024). See `to_frame`.

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
        given = Settings(margin, alpha, baseline, tolerance, start, spec)
        self.path = None if path is None else Path(path)
        self.metric = metric
        self.settings = given
        self._days: dict[str, str] = {}
        self._results: dict[str, GroupEstimates] = {}
        self._tracker = Tracker(start)
        self._load()
        for name, value in asdict(self.settings).items():
            if value != getattr(given, name):
                raise ValueError(
                    f"{name} must be that of {self.path}, {value!r}; got "
                    f"{getattr(given, name)!r}. Monitor.open takes what is stored."
                )

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
        settings, _ = _read(Path(path))
        return cls(path, metric=metric, **asdict(settings))

    def _load(self) -> None:
        """Read the file, if there is one."""
        if self.path is not None and self.path.exists():
            self.settings, self._days = _read(self.path)

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
            of another metric or has other options, or cannot be stored.
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
                f"{result.name} has no gap to monitor: it has neither a fair value nor "
                "one of the rest, or is tested by permutation."
            )
        text = result.to_json()
        if self.path is None:
            self._days = self._with(day, text, replace)
            return
        with _store.locked(self.path):
            self._load()
            days = self._with(day, text, replace)
            _store.write(self.path, asdict(self.settings), days)
        self._days = days

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
        if last is not None:
            check_number(last, "last", 1, np.inf, integer=True)
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
        import pandas as pd

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
        return tuple(self._tracked().blocks)

    def _tracked(self) -> Tracker:
        """Return the blocks of all days."""
        texts = list(self._days.values())
        if self._tracker.updates != texts[: len(self._tracker.updates)]:
            self._tracker = Tracker(self.settings.start)
        for day in self.when[len(self._tracker.updates) :]:
            self._tracker.add(self._days[day], self._result(day))
        return self._tracker

    def _alpha(self, group: Hashable) -> float:
        """Return the share of alpha of each kind of alarm of a group."""
        kinds = [self.settings.margin, self.settings.baseline]
        n_kinds = max(1, sum(kind is not None for kind in kinds))
        return self.settings.alpha * self._tracked().share(group) / n_kinds

    def _n_baseline(self, blocks: Blocks) -> int:
        """Return the number of blocks of the baseline, at least one."""
        baseline = self.settings.baseline
        if isinstance(baseline, str):
            last = sum(day <= baseline for day in self.when)
        else:
            last = baseline or 0
        return max(1, int((blocks.last < last).sum()))

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms, in the order in which they were raised."""
        tracker, settings = self._tracked(), self.settings
        if tracker.alarms is None:
            alarms: list[Alarm] = []
            for group in tracker.blocks:
                if settings.margin is not None:
                    alarms += self._alarms_of(group, "gap", settings.margin)
                if settings.baseline is not None:
                    alarms += self._alarms_of(group, "change", settings.tolerance)
            tracker.alarms = tuple(sorted(alarms, key=lambda alarm: alarm.when))
        return tracker.alarms

    def _alarms_of(self, group: Hashable, kind: str, size: float) -> list[Alarm]:
        """Return the alarms that windows of blocks raise, one after the other.

        After the gap has changed back, windows start anew from there.
        """
        blocks, change = self._tracked().track(group, "gap"), kind == "change"
        first = self._n_baseline(blocks) if change else 0
        start, size_of_all, alpha = first, blocks.value.size, self._alpha(group)
        alarms: list[Alarm] = []
        while start < size_of_all:
            # The blocks of the baseline, and those after the last alarm.
            rows = np.r_[:first, start:size_of_all]
            watched = blocks.take(rows)
            scan = Scan.of(watched, first, change=change)
            evidence, starts = scan.log_evidence(size, alpha)
            over = evidence >= -np.log(alpha)
            if not over.any():
                low, high = scan.interval(0, alpha)
                if alarms and (low[-1] > size or high[-1] < -size):
                    # The gap has changed back in part, and is still too large.
                    alarms[-1] = replace(alarms[-1], state="open", resolved=None)
                break
            seen = int(np.argmax(over))
            began = change_point(watched, first) if change else None
            origin = first + int(starts[seen])
            back = _changed_back(watched, origin, first + seen, scan, alpha)
            last = -1 if back is None else back - first - 1
            window = int(starts[last])
            low, high = scan.interval(window, alpha)
            estimate = float(scan.estimate[window, last])
            usual = watched.means()[0][0, first - 1] if change else 0.0
            if back is not None and began is not None:
                began = change_point(watched.take(np.arange(back)), first)
            # The number of the first update in each block.
            begins = np.append(0, blocks.last + 1)[rows]
            of_watched = [self.when[place] for place in begins]
            alarms.append(
                Alarm(
                    group,
                    kind,
                    when=self.when[watched.last[first + seen]],
                    direction="better"
                    if change and abs(usual + estimate) < abs(usual)
                    else "worse",
                    state="open" if back is None and over[-1] else "resolved",
                    resolved=None if back is None else of_watched[back],
                    evidence=float(np.exp(min(evidence[last], 700.0))),
                    since=of_watched[first + window],
                    estimate=estimate,
                    low=float(low[last]),
                    high=float(high[last]),
                    began=began
                    and (
                        of_watched[began[0]],
                        of_watched[began[1]],
                        of_watched[began[2]],
                    ),
                )
            )
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
            holds for any number of rows; the others are asymptotic.
        """
        import pandas as pd

        tracker, frames = self._tracked(), []
        for group in tracker.blocks:
            if not tracker.blocks[group]:
                continue
            # The sequence that starts with the first block has half of the weight.
            alpha, rows = self._alpha(group) / 2, tracker.rows(group)
            columns: dict[str, Any] = {}
            for what in ("level", "gap"):
                blocks = tracker.track(group, what)
                scan = Scan.of(blocks)
                estimate, ends = scan.estimate[0], scan.interval(0, alpha)
                if what == "level" and np.isfinite(rows).all():
                    estimate = rows[1] / rows[0]
                    ends = betting_sequence(rows[0], rows[1], alpha)
                columns["when"] = [self.when[i] for i in blocks.last]
                columns["group"] = [group] * blocks.value.size
                columns[what] = estimate
                columns[f"{what}_low"], columns[f"{what}_high"] = ends
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
        from .._reports.html import ForestPlot
        from .._reports.sections import ReportSection
        from ..display import _style as look

        settings, days, alarms = self.settings, self.when, self.alarms
        nan = float("nan")
        # The name that an audit has for the metric, such as inter_group_accuracy.
        asked = (settings.spec or {}).get("metric")
        name = str(asked or self.result(last=1).name).replace("_", " ")
        # The last row of each group that has any.
        looks = {row["group"]: row for row in self.to_frame().to_dict("records")}
        nothing, rows = dict.fromkeys(_SHOWN, nan), []
        latest = self.result(last=1).as_gap()
        ends = latest.confidence_interval()
        values = latest.estimate - (latest.fair_value or 0.0)
        shift = values - latest.estimate
        now = {
            g: (fmt.number(v), fmt.interval(low, high))
            for g, v, low, high in zip(
                latest.groups, values, ends.low + shift, ends.high + shift, strict=True
            )
        }
        for group in self.groups:
            level, level_low, level_high, gap, gap_low, gap_high = (
                looks.get(group, nothing)[column] for column in _SHOWN
            )
            of_level = fmt.number(level), fmt.interval(level_low, level_high)
            of_gap = fmt.number(gap), fmt.interval(gap_low, gap_high)
            of_last = now.get(group, (fmt.number(nan), fmt.interval(nan, nan)))
            rows.append((fmt.label(group), *of_last, *of_gap, *of_level))
        said = [alarm for alarm in alarms if alarm.calls]
        paragraphs = [f"ALARM {alarm}" for alarm in said]
        if not said:
            paragraphs = ["No open alarm." if alarms else "No alarm."]
        for state, heading in (("open", "Better:"), ("resolved", "Resolved:")):
            said = [a for a in alarms if a.state == state and not a.calls]
            paragraphs += [f"{heading} {alarm}" for alarm in said]
        paragraphs.append(
            f"{len(days)} update{'s' * (len(days) > 1)}, {days[0]} to {days[-1]}. The "
            "latest gap is that of the last update, with the 95% interval of one look. "
            "The intervals of the means since the start hold at all looks together, so "
            "that one may look after every update: the chance of any false alarm ever "
            f"is {100 * settings.alpha:g}%."
        )
        if waiting := [fmt.label(group) for group in self.groups if group not in looks]:
            paragraphs.append(
                f"Not looked at yet: {fmt.some(waiting)}. A look needs "
                f"{settings.start:g} effective clusters of a group, and of the rest."
            )
        gap, low, high = (
            np.array([row[column] for row in looks.values()]) for column in _SHOWN[3:]
        )
        alarmed = {alarm.group for alarm in alarms if alarm.calls}
        colors = [
            look.DIFFERENT if group in alarmed else look.UNCLEAR for group in looks
        ]
        plot = ForestPlot(
            list(looks),
            *(gap, low, high, colors),
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


def _changed_back(
    blocks: Blocks, begin: int, seen: int, scan: Scan, alpha: float
) -> int | None:
    """Return the block with which a gap began to change back; None if it has not.

    The gap is that since the block `begin`, with an alarm at the block `seen`.
    """
    since, n_before = blocks.take(np.arange(begin, blocks.value.size)), seen + 1 - begin
    if since.value.size <= n_before:
        return None
    later = Scan.of(since, n_before, change=True)
    evidence, starts = later.log_evidence(0.0, alpha)
    place = int(np.argmax(evidence >= -np.log(alpha)))
    if evidence[place] < -np.log(alpha):
        return None
    n_baseline = blocks.value.size - scan.estimate.shape[0]
    was = scan.estimate[begin - n_baseline, seen - n_baseline]
    if later.estimate[starts[place], place] * was > 0:  # in the same direction
        return None
    return begin + change_point(since, n_before)[0]


def _read(path: Path) -> tuple[Settings, dict[str, str]]:
    """Return the settings of a store, and the text of the result of each day."""
    settings, days = _store.read(path)
    names = {each.name for each in fields(Settings)}
    if not isinstance(settings, dict) or settings.keys() != names:
        raise ValueError(
            f"{path} must have settings, a dict of {', '.join(sorted(names))}; got "
            f"{settings!r}."
        )
    return Settings(**settings), days


def _checked_baseline(baseline: Any) -> int | str | None:
    """Return the number of updates, or the name of a day."""
    if isinstance(baseline, int | np.integer):
        check_number(baseline, "baseline", 1, np.inf, integer=True)
        return int(baseline)
    return None if baseline is None else _day(baseline, "baseline")


def _day(when: Any, name: str = "when") -> str:
    """Return a day or time as text that is sorted by time."""
    import pandas as pd

    time: Any = None
    if isinstance(when, str | date | np.datetime64):
        with suppress(ValueError, TypeError, OverflowError):
            time = pd.Timestamp(when)
    if pd.isna(time):
        raise ValueError(
            f"{name} must be a day such as '2026-11-21', or a time; got {when!r}."
        )
    if time.tzinfo is not None:
        time = time.tz_convert("UTC").tz_localize(None)
    return str(time.isoformat().removesuffix("T00:00:00"))
