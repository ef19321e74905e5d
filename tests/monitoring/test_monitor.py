"""A monitor keeps results, adds them and raises alarms."""

import datetime as dt
import functools
import itertools
import json
from dataclasses import asdict, replace
from html import escape
from unittest.mock import Mock

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from skrankfair import audit
from skrankfair._estimates import formatting as fmt
from skrankfair._reports import exports
from skrankfair.metrics import (
    brier_score,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    selection_rate,
)
from skrankfair.monitoring import Monitor, _monitor
from skrankfair.monitoring._sequences import betting_sequence
from tests.estimates.test_two_way import lists
from tests.metrics.common import assert_identical, columns

DAYS = [f"2026-{month:02}-{day:02}" for month in (1, 2) for day in range(1, 29)]
HEAD = {"schema": _monitor._SCHEMA, "schema_version": 1}
SETTINGS = asdict(Monitor().settings)


@functools.cache
def decisions(seed, gap=0.0, n=400, groups="fm", rate=0.5):
    """Return the selection rates of a day, that of the first group lower by a gap."""
    rng = np.random.default_rng(seed)
    group = rng.choice(list(groups), size=n)
    chosen = rng.random(n) < rate - gap * (group == groups[0])
    return selection_rate(None, chosen, sensitive_features=group)


def watched(results, path=None, **settings):
    """Return a monitor of the results of successive days."""
    monitor = Monitor(path, **settings)
    for result, day in zip(results, DAYS, strict=False):
        monitor.update(result, when=day)
    return monitor


def monitored(gaps, path=None, **settings):
    """Return a monitor of days with these gaps."""
    return watched(map(decisions, range(len(gaps)), gaps), path, **settings)


class TestUpdates:
    def test_add_up(self):
        monitor = monitored([0.0] * 5)
        parts = [decisions(i) for i in range(5)]
        for result, expected in (
            (monitor.result(), sum(part.compact() for part in parts)),
            (monitor.result(last=2), parts[3].compact() + parts[4]),
        ):
            assert_identical(result, expected)
        frame = monitor.rolling(2)
        assert list(frame["when"].unique()) == DAYS[1:5]
        last = frame[frame["when"] == DAYS[4]]
        np.testing.assert_array_equal(last["estimate"], expected.estimate)

    @pytest.mark.parametrize(
        ("when", "name"),
        [
            ("2026-11-21", "2026-11-21"),
            (dt.date(2026, 11, 21), "2026-11-21"),
            (dt.datetime(2026, 11, 21, 10), "2026-11-21T10:00:00"),
            (pd.Timestamp("2026-11-21"), "2026-11-21"),
            (np.datetime64("2026-11-21"), "2026-11-21"),
            ("2026-11-21T01:00+02:00", "2026-11-20T23:00:00"),
        ],
    )
    def test_days_are_of_any_type(self, when, name):
        monitor = Monitor()
        monitor.update(decisions(0), when=when)
        assert monitor.when == (name,)

    NO_DAYS = (None, 5, "yesterdays", "05.12.2026", "", float("nan"), pd.NaT)

    @pytest.mark.parametrize("when", NO_DAYS)
    def test_what_is_no_day_is_refused(self, when):
        with pytest.raises(ValueError, match="when must be a day"):
            Monitor().update(decisions(0), when=when)

    def test_the_same_day_twice_is_refused_or_replaced(self):
        monitor = monitored([0.0] * 3)
        with pytest.raises(ValueError, match="2026-01-02 is there already"):
            monitor.update(decisions(9), when=DAYS[1])
        with pytest.raises(ValueError, match="day that is there, to be replaced"):
            monitor.update(decisions(9), when=DAYS[5], replace=True)
        before = monitor.to_frame()
        monitor.update(decisions(9), when=DAYS[1], replace=True)
        whole = decisions(0).compact() + decisions(9) + decisions(2)
        np.testing.assert_allclose(monitor.result().estimate, whole.estimate)
        assert monitor.when == tuple(DAYS[:3])
        assert not monitor.to_frame().equals(before)

    def test_late_days_are_put_in_their_place(self):
        monitor = Monitor(baseline=2)
        for i in (0, 2, 1, 3):
            monitor.update(decisions(i), when=DAYS[i])
        ordered = monitored([0.0] * 4, baseline=2)
        assert monitor.when == ordered.when
        pd.testing.assert_frame_equal(monitor.to_frame(), ordered.to_frame())

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (brier_score([0, 1] * 9, [0.4, 0.5] * 9), "Only results of one metric"),
            (ndcg([1, 0, 1, 0], [4, 3, 2, 1], qid=[0, 0, 1, 1]), "no gap to monitor"),
            ([1, 2], "data must be a result"),
        ],
    )
    def test_other_metrics_and_data_are_refused(self, data, message):
        monitor = monitored([0.0])
        with pytest.raises(ValueError, match=message):
            monitor.update(data, when=DAYS[1])
        assert monitor.when == (DAYS[0],)
        assert monitor.result().n_clusters == 400

    def test_a_margin_is_refused_where_items_recur(self):
        *given, options = lists()
        result = pairwise_accuracy(*given, **options)
        with pytest.raises(ValueError, match="margin must be None; got 0.1: items"):
            watched([result], margin=0.1)

    def test_of_data_by_a_function(self):
        monitor = Monitor(metric=lambda data: decisions(data["seed"]))
        monitor.update({"seed": 3}, when=DAYS[0])
        np.testing.assert_array_equal(monitor.result().estimate, decisions(3).estimate)

    def test_without_updates(self):
        monitor = Monitor()
        assert repr(monitor) == "Monitor without updates"
        assert monitor.alarms == ()
        assert monitor.groups == ()
        assert monitor.to_frame().empty
        with pytest.raises(ValueError, match="no update yet"):
            monitor.result()


class TestAlarms:
    @pytest.fixture(scope="class", name="changed")
    @staticmethod
    def _changed():
        return monitored([0.0] * 30 + [0.15] * 12, baseline=14)

    def test_a_change_is_seen_with_its_size_and_its_day(self, changed):
        assert {alarm.group for alarm in changed.alarms} == {"f", "m"}
        alarm = next(alarm for alarm in changed.alarms if alarm.group == "f")
        assert alarm.kind == "change"
        assert alarm.state == "open"
        assert DAYS[30] < alarm.when <= DAYS[38]
        assert alarm.low < -0.15 < alarm.high < 0
        day, first, last = alarm.began
        assert first <= DAYS[30] <= last
        assert abs(DAYS.index(day) - 30) <= 3
        assert "the gap has grown" in str(alarm)
        assert f"ALARM {alarm}" in repr(changed)

    def test_alarms_do_not_change_when_more_data_come(self, changed):
        longer = monitored([0.0] * 30 + [0.15] * 8, baseline=14)
        assert [(a.group, a.when) for a in longer.alarms] == [
            (a.group, a.when) for a in changed.alarms if a.when <= DAYS[37]
        ]

    def test_of_a_gap_beyond_the_margin(self):
        monitor = monitored([0.2] * 12, margin=0.05)
        kinds = [(alarm.group, alarm.kind) for alarm in monitor.alarms]
        assert kinds == [("f", "gap"), ("m", "gap")]
        assert monitor.alarms[0].began is None
        assert monitored([0.2] * 12, margin=0.3).alarms == monitored([0.2]).alarms == ()
        assert "No alarm.\n2 updates" in repr(monitored([0.2] * 2))
        for number, few in ((7, True), (8, False)):
            said = "With fewer than 8 updates" in repr(monitored([0.2] * number))
            assert said is few
        window = replace(monitor.alarms[0], low=-0.1, high=0.1)
        assert "the interval of this window alone" in str(window)
        waiting = monitored([0.2] * 2, start=500)
        last = repr(waiting).splitlines()[-1]
        assert last.startswith("Not looked at yet: f, m. A look needs 500 effective")
        assert waiting.report_section().paragraphs[-1] == last

    @pytest.mark.parametrize("gap", [0.4, -0.6])
    def test_of_a_group_whose_rate_stays_at_an_end(self, gap):
        days = [decisions(i, gap, groups="fab", rate=0.4) for i in range(9)]
        assert "f" in {alarm.group for alarm in watched(days, margin=0.05).alarms}

    def test_a_small_change_is_tolerated(self):
        gaps = [0.0] * 12 + [0.2] * 7
        assert monitored(gaps, baseline=10, tolerance=0.02).alarms
        assert monitored(gaps, baseline=10, tolerance=0.25).alarms == ()

    def test_a_baseline_may_end_with_a_day(self):
        """At whatever time of that day its last update is."""
        by_day, by_number = monitors = Monitor(baseline=DAYS[9]), Monitor(baseline=10)
        for monitor, i in itertools.product(monitors, range(20)):
            monitor.update(decisions(i, 0.25 * (i >= 14)), f"{DAYS[i]}T09:00")
        assert by_day.alarms == by_number.alarms != ()

    def test_an_alarm_may_end(self):
        alarms = monitored([0.4] * 5 + [0.0] * 27, margin=0.1).alarms
        assert {alarm.state for alarm in alarms} == {"resolved"}

    @pytest.mark.parametrize(
        ("gaps", "settings", "states", "line"),
        [
            ([0.0, 0.15], {"baseline": 14}, [("worse", "open", None)], "ALARM f"),
            ([0.2, 0.0], {"baseline": 14}, [("better", "open", None)], "Better: f"),
            ([0.2, -0.19], {"baseline": 14}, [("worse", "open", None)], "ALARM f"),
            (
                [0.0, 0.15, 0.0], {"baseline": 14},
                [("worse", "resolved", DAYS[28])], "Resolved: f",
            ),
            ([0.0, 0.15, 0.08], {"baseline": 14}, [("worse", "open", None)], "ALARM f"),
            (
                [0.2, 0.0], {"margin": 0.05},
                [("worse", "resolved", DAYS[14])], "Resolved: f",
            ),
            (
                [0.0, 0.2, 0.0, 0.2], {"margin": 0.05},
                [("worse", "resolved", DAYS[28]), ("worse", "open", None)], "ALARM f",
            ),
        ],
    )  # fmt: skip
    def test_are_open_or_resolved_and_worse_or_better(
        self, gaps, settings, states, line
    ):
        monitor = monitored(np.repeat(gaps, 14).tolist(), **settings)
        alarms = [alarm for alarm in monitor.alarms if alarm.group == "f"]
        assert [(a.direction, a.state) for a in alarms] == [s[:2] for s in states]
        for alarm, (_, _, day) in zip(alarms, states, strict=True):
            if day is None:
                assert alarm.resolved is None
            else:
                assert abs(DAYS.index(alarm.resolved) - DAYS.index(day)) <= 3
                assert f"resolved since {alarm.resolved}" in str(alarm)
            # The interval is that of the time of the alarm, not of the cure.
            assert alarm.low > 0 or alarm.high < 0
        assert any(alarm.calls for alarm in alarms) == line.startswith("ALARM")
        assert line in repr(monitor)
        assert ("No open alarm." in repr(monitor)) != line.startswith("ALARM")

    def test_the_latest_look_is_shown(self):
        monitor = monitored([0.0] * 5 + [0.3])
        gap = decisions(5, 0.3).as_gap()
        low, high = gap.confidence_interval()
        shown = fmt.number(gap.estimate[0]), fmt.interval(low[0], high[0])
        assert monitor.report_section().rows[0][1:3] == shown

    def test_of_a_metric_with_a_fair_value(self):
        results = []
        for i in range(6):
            data = columns(i, n_queries=60, size=8, labels="fm")
            data["y_true"] |= data["sensitive_features"] == "f"
            results.append(matched_pair_calibration(**data, epsilon=0.4))
        monitor = watched(results, margin=0.0)
        assert {alarm.group for alarm in monitor.alarms} == {"f", "m"}
        assert monitor.to_frame().groupby("group")["gap"].last()["f"] > 0.2

    def test_groups_share_alpha_and_later_ones_have_shares_too(self):
        groups_of_days = enumerate(["ab", "ab", "abc", "abcd"])
        results = [decisions(i, groups=groups) for i, groups in groups_of_days]
        monitor = watched(results, margin=0.1, baseline=2)
        # Of two kinds of alarms.
        shares = np.array([monitor._alpha(group) for group in "abcd"]) / 0.05 * 2
        np.testing.assert_allclose(shares, [1 / 3, 1 / 3, 1 / 12, 1 / 20])
        # Those of all groups that may ever come are 1 / j - 1 / (j + 1).
        assert sum(shares) + 1 / 5 == pytest.approx(1.0)

    def test_days_with_little_data_are_put_together(self):
        results = [decisions(i, n=48) for i in range(9)]
        looks = watched(results, start=50).to_frame().query("group == 'f'")
        assert looks["when"].tolist() == [DAYS[2], DAYS[5], DAYS[8]]
        block = sum(result.compact() for result in results[:3])
        expected = block.estimate[0], block.against_rest().estimate[0]
        assert tuple(looks.iloc[0][["level", "gap"]]) == pytest.approx(expected)
        # A day has half an event of each group, and a look needs three.
        rare = watched([decisions(i, n=100, rate=0.01) for i in range(30)]).to_frame()
        assert 2 < rare["group"].value_counts().max() < 8

    def test_levels_of_independent_rows_are_bet_on(self):
        """Where no cluster has two rows; else the sequence is asymptotic."""
        rng = np.random.default_rng(4)
        group, chosen = rng.choice(["f", "m"], (4, 200)), rng.random((4, 200)) < 0.1
        looks = []
        for cluster in (None, np.arange(200) // 2):
            # Equal weights are none.
            columns = {"cluster": cluster, "sample_weight": np.full(200, 0.7)}
            results = [
                selection_rate(None, yes, sensitive_features=who, **columns)
                for who, yes in zip(group, chosen, strict=True)
            ]
            looks.append(watched(results).to_frame().query("group == 'f'").iloc[-1])
        now, other = looks
        n, k = np.array([[(group == "f").sum()], [chosen[group == "f"].sum()]])
        low, high = betting_sequence(n, k, 0.05 / 3 / 2)
        expected = pytest.approx((k[0] / n[0], low[0], high[0]), rel=1e-9)
        assert (now["level"], now["level_low"], now["level_high"]) == expected
        half = other["level_high"] - other["level"]
        assert half > other["level"] > now["level_low"] > 0 == other["level_low"]

    def test_are_drawn(self, changed):
        display = changed.plot()
        assert len(display.lines_) == len(display.bands_) == len(display.alarms_) == 2
        gap = changed.to_frame().query("group == 'f'")["gap"]
        np.testing.assert_array_equal(display.lines_[0].get_ydata(), gap)
        assert display.margin_ is None
        assert monitored([0.0] * 3, margin=0.1).plot().margin_ is not None
        mpl.pyplot.close("all")

    def test_are_a_section_of_a_report(self, changed, tmp_path):
        chosen = np.random.default_rng(0).random((2, 400)) < 0.5
        report = audit(*chosen, sensitive_features=np.arange(400) % 3)
        path = report.to_html(tmp_path / "page.html", monitor=changed)
        page = path.read_text("utf-8").replace("&#39;", "'")
        section = changed.report_section()
        gap = changed.to_frame().query("group == 'f'")["gap"].iloc[-1]
        assert section.rows[0][3] == fmt.number(gap)
        for text in (section.title, *section.paragraphs):
            assert escape(text, quote=False) in page
        with pytest.raises(ValueError, match="no update yet"):
            report.to_html(tmp_path / "c.html", monitor=Monitor())


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"margin": -1}, "margin must"),
            ({"alpha": 0}, "alpha must"),
            ({"tolerance": -0.1}, "tolerance must"),
            ({"start": 1}, "start must"),
            ({"baseline": 0}, "baseline must"),
            ({"baseline": "never"}, "baseline must be a day"),
            ({"baseline": True}, "baseline must"),
            ({"spec": {"columns": {"a"}}}, "spec must hold what JSON does"),
        ],
    )
    def test_what_is_wrong_is_named(self, settings, message):
        with pytest.raises(ValueError, match=message):
            Monitor(**settings)

    def test_are_those_of_the_file(self, tmp_path):
        path = tmp_path / "gap.jsonl"
        settings = {"margin": 0.1, "alpha": 0.01, "baseline": DAYS[1]}
        settings |= {"tolerance": 0.02, "start": 30, "spec": {1: ("a", "b")}}
        before = monitored([0.0] * 3, path, **settings)
        again = Monitor.open(path)
        assert again.settings == before.settings
        assert again.when == before.when
        pd.testing.assert_frame_equal(again.to_frame(), before.to_frame())
        assert Monitor(path, **settings).when == before.when
        with pytest.raises(ValueError, match=r"margin must be that of .*gap\.jsonl"):
            Monitor(path, **settings | {"margin": 0.2})
        head = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
        assert head["settings"]["alpha"] == 0.01


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "gap.jsonl"
    monitored([0.0] * 2, path)
    return path


@pytest.mark.parametrize(
    ("owner", "name"),
    [(exports.os, "fsync"), (exports.Path, "open"), (exports.Path, "replace")],
)
def test_an_error_at_any_step_leaves_all_as_it_was(owner, name, path, monkeypatch):
    before, monitor = path.read_bytes(), Monitor.open(path)
    with monkeypatch.context() as patched:
        fails = Mock(side_effect=OSError(28, "No space left on device"))
        patched.setattr(owner, name, fails)
        with pytest.raises(OSError, match="No space left"):
            monitor.update(decisions(5), when=DAYS[5])
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert monitor.when == tuple(DAYS[:2])
    assert monitor.result().n_clusters == 800
    monitor.update(decisions(5), when=DAYS[5])
    assert Monitor.open(path).when == (*DAYS[:2], DAYS[5])


def test_another_process_has_added_the_day(path):
    one, other = Monitor.open(path), Monitor.open(path)
    other.update(decisions(2), when=DAYS[2])
    with pytest.raises(ValueError, match="is there already"):
        one.update(decisions(2), when=DAYS[2])
    assert one.when == tuple(DAYS[:3])


def test_text_stays_the_same(path):
    """What is read and written again is the same to the bit."""
    first = path.read_bytes()
    settings, days = _monitor._read_store(path)
    _monitor._write_store(path, settings, days)
    assert path.read_bytes() == first
    assert days[DAYS[0]] == decisions(0).to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [], "no store of a monitor"),
        (lambda lines: ["{}", *lines[1:]], "no store of a monitor"),
        (lambda lines: ["no", *lines[1:]], "no store of a monitor"),
        (lambda lines: [lines[0].replace('"alpha": 0.05', '"alpha": 7')], "alpha must"),
        *(
            (lambda lines, head=head: [json.dumps(HEAD | head)], message)
            for head, message in (
                ({}, "must have settings, a dict of alpha, .*got None"),
                ({"settings": 3}, "must have settings, .*got 3"),
                ({"settings": {"alpha": 0.05}}, "must have settings"),
                ({"settings": SETTINGS | {"other": 1}}, "must have settings"),
                ({"settings": SETTINGS | {"margin": "a"}}, "margin must be a number"),
                ({"settings": SETTINGS | {"spec": 3}}, "spec must be a dict or None"),
            )
        ),
        (lambda lines: [*lines[:2], lines[2][:50]], "line 3: it is no day"),
        (lambda lines: [*lines, lines[1]], "line 4: 2026-01-01 is there twice"),
        (lambda lines: [*lines, "[]"], "line 4: it is no day"),
        (lambda lines: [*lines, '{"when": 3}'], "line 4: it is no day"),
        (
            lambda lines: [lines[0].replace('version": 1', 'version": 2'), *lines[1:]],
            r"gap.jsonl must have a schema_version from 1 to 1; got 2",
        ),
    ],
)
def test_what_is_no_store_is_said(path, change, message):
    lines = change(path.read_text(encoding="utf-8").splitlines())
    path.write_text("\n".join(lines), encoding="utf-8")
    for read in (Monitor.open, Monitor):
        with pytest.raises(ValueError, match=message):
            read(path)
