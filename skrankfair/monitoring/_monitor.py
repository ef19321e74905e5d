"""Results day by day, with alarms that may be looked at every day."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.finalize import MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._inputs.validation import Array, check_number
from . import _store
from ._sequences import Blocks, Scan, betting_sequence, change_point

if TYPE_CHECKING:
    import pandas as pd

    from .._reports.sections import ReportSection
    from ..display._curves import MonitorDisplay

# More of its effective clusters, and a block of data is as good as normal.
_START = 20


@dataclass(frozen=True)
class Settings:
    """What decides what a monitor says, and does not change while it runs."""

    margin: float | None
    alpha: float
    baseline: int | str | None
    tolerance: float
    start: float
    spec: Mapping[str, Any] | None


@dataclass(frozen=True)
class Alarm:
    """What a `Monitor` has seen of a group.

    Attributes
    ----------
    group : hashable
    kind : {"gap", "change"}
        Whether the gap is beyond the margin, or has changed by more than the tolerance.
    when : str
        The day at which the evidence was enough for the first time.
    active : bool
        Whether it is enough at the last day too.
    evidence : float
        At the last day: how much larger the data are than expected without a cause.
        An alarm is raised where it reaches ``1 / alpha`` of this alarm.
    since : str
        The first day of the window with the most evidence, which ends at the last day.
    estimate : float
        The gap in that window, or its difference from all days before.
    low, high : float
        Its confidence sequence.
    began : tuple of str or None
        Of a change, the likeliest first day and a 95% interval for it: the day, the
        first and the last one.
    """

    group: Hashable
    kind: str
    when: str
    active: bool
    evidence: float
    since: str
    estimate: float
    low: float
    high: float
    began: tuple[str, str, str] | None

    def __str__(self) -> str:
        """Return it as a sentence."""
        what = "is beyond the margin" if self.kind == "gap" else "has changed"
        size = f"{self.estimate:+.4g} [{self.low:+.4g}, {self.high:+.4g}]"
        text = f"{fmt.label(self.group)}: the gap {what}, {size} since {self.since}"
        if self.began is not None:
            text += (
                f"; it began on {self.began[0]} ({self.began[1]} to {self.began[2]})"
            )
        return f"{text}; first seen on {self.when}."


def independent_rows(result: GroupEstimates) -> Array:
    """Return the number of rows of each group, and of those that count, (G, 2).

    NaN unless the level is the share of them, and no cluster has two: then there are as
    many effective clusters as rows.
    """
    finalize, sums = result.metric.finalize, result.sums
    unknown = np.full((len(result.groups), 2), np.nan)
    if not (result.metric.share and isinstance(finalize, MeanOfRatios)):
        return unknown
    ratio, rows = finalize.parts(sums.by_group, sums.shared)
    if ratio.shape[-1] != 1:
        return unknown
    n, share = rows[:, 0], np.nan_to_num(ratio[:, 0])
    single = (n == 0) | np.isclose(result.n_effective, n, rtol=1e-9, atol=0.0)
    return np.where(single[:, None], np.stack([n, n * share], axis=1), np.nan)


class _Block(NamedTuple):
    """What an update, or several together, say of a group."""

    level: float
    level_variance: float
    level_df: float
    gap: float
    gap_variance: float
    gap_df: float
    weight: float
    last: float  # number of the last update that is in it
    #: Rows of the group since the first update, and those that count, of a share of
    #: independent rows; else NaN.
    n_rows: float
    n_counted: float


@dataclass
class Tracker:
    """Puts updates together until each group has enough data for a normal estimate.

    Attributes
    ----------
    least : float
        Effective clusters that a block needs.
    blocks : dict of hashable to list of _Block
        By group, in the order of their first update.
    n_first : int
        Groups of the first update.
    """

    least: float
    blocks: dict[Hashable, list[_Block]] = field(default_factory=dict)
    n_first: int = 0
    n_updates: int = 0
    _since: dict[Hashable, int] = field(default_factory=dict)
    _sums: dict[int, GroupEstimates] = field(default_factory=dict)
    _rows: dict[Hashable, Array] = field(default_factory=dict)

    def add(self, result: GroupEstimates) -> None:
        """Add the next update."""
        number, result = self.n_updates, result.compact()
        if number == 0:
            self.n_first = len(result.groups)
        self.n_updates += 1
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
        """Make blocks of the groups that have enough data since their last one."""
        gap = total if total.fair_value is not None else total.against_rest()
        enough = (gap.n_effective >= self.least) & (total.n_effective >= self.least)
        columns = []
        for result, fair in ((total, 0.0), (gap, gap.fair_value or 0.0)):
            enough &= (result.standard_error > 0) & np.isfinite(result.estimate)
            columns += [result.estimate - fair, result.standard_error**2, result.df]
        for i, group in enumerate(total.groups):
            if enough[i] and group in groups:
                numbers = [column[i] for column in (*columns, gap.n_effective)]
                numbers += [number, *self._rows[group]]
                self.blocks[group].append(_Block(*numbers))
                self._since[group] = number + 1

    def track(self, group: Hashable, what: str) -> Blocks:
        """Return the blocks of a group: of its "level" or its "gap"."""
        columns = self._columns(group)
        return Blocks(
            columns[what],
            columns[f"{what}_variance"],
            columns["weight"],
            columns[f"{what}_df"],
            columns["last"].astype(int),
        )

    def rows(self, group: Hashable) -> Array | None:
        """Return the rows so far at each look, and those that count, shape (2, n).

        None unless the level is a share of independent rows in all updates.
        """
        columns = self._columns(group)
        rows = np.array([columns["n_rows"], columns["n_counted"]])
        known = np.isfinite(self._rows[group]).all() and rows.size
        return rows if known else None

    def _columns(self, group: Hashable) -> dict[str, Array]:
        numbers = np.array(self.blocks[group], dtype=float)
        columns = numbers.reshape(-1, len(_Block._fields)).T
        return dict(zip(_Block._fields, columns, strict=True))

    def share(self, group: Hashable) -> float:
        """Return the share of alpha of a group; the shares add up to 1 for ever.

        The groups of the first update have as much each, as if there was one more; that
        of the j-th is ``1 / (j (j + 1))`` if it comes later.
        """
        place = 1 + list(self.blocks).index(group)
        first = self.n_first
        return 1 / (first + 1) if place <= first else 1 / (place * (place + 1))


class Monitor:
    """Results of one metric day by day, and alarms when a gap is too large or changes.

    One may look after every update, for years: the chance of any false alarm ever is
    `alpha`. What is stored are the results themselves, which add up.

    Parameters
    ----------
    path : str, path-like or None, default=None
        File of the results, which is made with the first update. None keeps them in
        memory. An existing file must have the same settings; see `open`.
    metric : callable or None, default=None
        Makes a result of what `update` gets, such as a function of a frame; None takes
        results.
    margin : float or None, default=None
        Largest gap that does not matter: an alarm says that the gap of a group, its
        distance from the fair value or from the rest, is beyond it. None: no alarm
        about the size.
    alpha : float, default=0.05
        The chance of any false alarm, over all groups and all days.
    baseline : int, str or None, default=None
        Days that say what is usual: as many updates as this, or all up to this date. An
        alarm says that the gap has changed after them. None: no alarm about changes.
    tolerance : float, default=0.0
        Largest change of a gap that does not matter.
    start : float, default=20
        Effective clusters of a group (and of the rest) that are enough for a look;
        days with fewer are put together.
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
    after. Groups have equal shares of alpha, and those that come later shares that
    shrink.

    Updates have to be independent given the gap. Users who return do no harm where
    what they have in common stays: it is in the baseline too, and the gap is that of
    these users. Days that differ more than their errors say, as with fashions of the
    day, are allowed for: in the first seven blocks errors count three times, and from
    the eighth on the differences of neighbours say how much more (with the degrees of
    freedom that they have). Where such effects last for several days, one update per
    week is needed; a slow drift is a change. The guarantee is asymptotic, for blocks of
    enough clusters; only levels that are shares of rows, no two of a cluster, have one
    for any number, by betting (Waudby-Smith and Ramdas 2024). See `to_frame`.

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
        if margin is not None:
            check_number(margin, "margin", 0, np.inf)
        check_number(alpha, "alpha", 0, 1, inclusive=(False, False))
        check_number(tolerance, "tolerance", 0, np.inf)
        check_number(start, "start", 2, np.inf)
        given = Settings(
            margin, alpha, _checked_baseline(baseline), tolerance, start, spec
        )
        self.path = None if path is None else Path(path)
        self.metric = metric
        self.settings = given
        self._days: dict[str, str] = {}
        self._restart()
        if self.path is not None and self.path.exists():
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
            Makes a result of what `update` gets; None takes results.

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
        settings, _ = _store.read(Path(path))
        return cls(path, metric=metric, **settings)

    def _load(self) -> None:
        """Read the file, unless it is as it was."""
        if self.path is None:
            return
        settings, days = _store.read(self.path)
        self.settings = Settings(**settings)
        if days != self._days:
            self._days = days
            self._restart()

    def _restart(self) -> None:
        """Forget what follows from the days."""
        self._tracker = Tracker(self.settings.start)
        self._results: dict[str, GroupEstimates] = {}
        self.__dict__.pop("alarms", None)

    @property
    def when(self) -> tuple[str, ...]:
        """The days of the updates, in their order."""
        return tuple(self._days)

    def update(self, data: Any, when: Any, *, replace: bool = False) -> None:
        """Add the result of a day, and store it.

        When it returns, the result is stored; if it does not, because of an error or
        because the process is killed, the file is as it was, or has it. So an update
        that was interrupted can be made again: it is refused if it is there.

        Parameters
        ----------
        data : GroupEstimates, or what `metric` takes
        when : str, date or datetime
            The day, or a time; a name that no other update has.
        replace : bool, default=False
            Whether it takes the place of the update of this name, which must be there.

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
                "A monitor with metric= makes one of other data."
            )
        if not result.has_pvalue:
            raise ValueError(
                f"{result.name} has no gap to monitor: it has neither a fair value nor "
                "one of the rest, or is tested by permutation."
            )
        text = result.to_json()
        if self.path is None:
            self._put(day, text, replace)
            return
        with _store.locked(self.path):
            if self.path.exists():
                self._load()
            before = self._days
            self._put(day, text, replace)
            try:
                _store.write(self.path, asdict(self.settings), self._days)
            except BaseException:
                self._days = before
                self._restart()
                raise

    def _put(self, day: str, text: str, replace: bool) -> None:
        """Put a day in its place, or raise a ValueError."""
        if replace != (day in self._days):
            raise ValueError(
                f"when must be a day that is there, to be replaced; got {day}."
                if replace
                else f"when must be a new day, or replace=True; {day} is there already."
            )
        others = [name for name in self._days if name != day]
        if others:
            # Adding is refused where the two are not of one kind.
            self._result(others[-1]) + GroupEstimates.from_json(text)
        last = not others or day > others[-1]
        days = {**self._days, day: text}
        self._days = dict(sorted(days.items()))
        if replace or not last:
            self._restart()
        self.__dict__.pop("alarms", None)

    def _result(self, day: str) -> GroupEstimates:
        if day not in self._results:
            self._results[day] = GroupEstimates.from_json(self._days[day])
        return self._results[day]

    def result(self, last: int | None = None) -> GroupEstimates:
        """Return the result of all updates together, or of the last of them.

        Its intervals are those of a single look, at data that were chosen beforehand.

        Parameters
        ----------
        last : int or None, default=None
            So many updates from the end; None takes all.

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
        """Return the results of windows of as many updates.

        The intervals are those of a single look, not of one every day.

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
        for day in self.when[self._tracker.n_updates :]:
            self._tracker.add(self._result(day))
        return self._tracker

    def _alpha(self, group: Hashable) -> float:
        """Return the chance of a false alarm that each kind of a group has."""
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

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms, in the order in which they were raised."""
        settings, raised = self.settings, []
        for group in self.groups:
            if settings.margin is not None:
                raised.append(self._alarm(group, "gap", settings.margin))
            if settings.baseline is not None:
                raised.append(self._alarm(group, "change", settings.tolerance))
        alarms = [alarm for alarm in raised if alarm is not None]
        return tuple(sorted(alarms, key=lambda alarm: alarm.when))

    def _alarm(self, group: Hashable, kind: str, size: float) -> Alarm | None:
        """Return the alarm that windows of blocks raise, if they do."""
        blocks, change = self._tracked().track(group, "gap"), kind == "change"
        first = self._n_baseline(blocks) if change else 0
        if blocks.value.size <= first:
            return None
        scan, alpha = Scan.of(blocks, first, change=change), self._alpha(group)
        evidence, starts = scan.log_evidence(size, alpha)
        over = evidence >= -np.log(alpha)
        if not over.any():
            return None
        # The first update that is in each block.
        begins = np.append(0, blocks.last + 1)
        began = None
        if change:
            days = [self.when[begins[i]] for i in change_point(blocks, first)]
            began = (days[0], days[1], days[2])
        start = int(starts[-1])
        low, high = scan.interval(start, alpha)
        return Alarm(
            group,
            kind,
            when=self.when[blocks.last[first + int(np.argmax(over))]],
            active=bool(over[-1]),
            evidence=float(np.exp(min(evidence[-1], 700.0))),
            since=self.when[begins[first + start]],
            estimate=float(scan.estimate[start, -1]),
            low=float(low[-1]),
            high=float(high[-1]),
            began=began,
        )

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

        frames = []
        for group in self.groups:
            # That which starts with the first block has half of the weight.
            alpha = self._alpha(group) / 2
            columns: dict[str, Any] = {}
            rows = self._tracked().rows(group)
            for what in ("level", "gap"):
                blocks = self._tracked().track(group, what)
                if not blocks.value.size:
                    break
                scan = Scan.of(blocks)
                estimate, ends = scan.estimate[0], scan.interval(0, alpha)
                if what == "level" and rows is not None:
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
        from ._section import section_of

        return section_of(self)

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
        from ._section import HEADER, rows_of

        rows, waiting = rows_of(self)
        head = (
            f"{self._result(self.when[-1]).name}: {len(self.when)} updates, "
            f"{self.when[0]} to {self.when[-1]}"
        )
        table = fmt.text_table(HEADER, rows)
        alarms = [f"ALARM {alarm}" for alarm in self.alarms] or ["No alarm."]
        return "\n".join((head, table, *alarms, *waiting))


def _checked_baseline(baseline: Any) -> int | str | None:
    """Return the number of updates, or the name of a day."""
    if baseline is None:
        return None
    if isinstance(baseline, int | np.integer) and not isinstance(baseline, bool):
        check_number(baseline, "baseline", 1, np.inf, integer=True)
        return int(baseline)
    return _day(baseline, "baseline")


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
