"""Monitors alarm as rarely as they say, and no end of a process harms their files."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skrankfair.metrics import selection_rate
from skrankfair.monitoring import Monitor
from skrankfair.monitoring._sequences import Scan, betting_sequence, change_point
from tests.monitoring.test_monitor import DAYS, decisions, monitored
from tests.monitoring.test_sequences import blocks

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("size", [0.8, 2.0])
def test_interval_of_a_change_point_covers(size):
    rng = np.random.default_rng(4)
    covered = []
    for _ in range(400):
        values = rng.normal(size=90)
        values[50:] += size
        _, low, high = change_point(blocks(values), 20)
        covered.append(low <= 50 <= high)
    assert np.mean(covered) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("mean", [0.5, 0.03])
def test_bets_are_rarely_ever_wrong(mean):
    """At any of 40 looks, the first of them at one value."""
    rng = np.random.default_rng(8)
    looks = np.unique(np.geomspace(1, 400, 50).astype(int))
    total = np.cumsum(rng.random((800, 400)) < mean, axis=1)[:, looks - 1]
    n = np.broadcast_to(1.0 * looks, total.shape)
    low, high = betting_sequence(n, total, 0.1)
    missed = ((low > mean) | (high < mean)).any(axis=1)
    assert 0.01 < missed.mean() < 0.1 + 2 * np.sqrt(0.1 * 0.9 / 800)


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("spread", [1.0, 1.6, 3.0])
def test_false_alarms_are_as_rare_as_promised(change, spread):
    """In half a year of looks every day, at most alpha of all monitors ever alarm.

    Also where days vary more than their errors say.
    """
    rng = np.random.default_rng(5)
    alarms = []
    for _ in range(300):
        days = blocks(spread * rng.normal(size=180), df=30.0)
        log, _ = Scan.of(days, 28 * change).log_evidence(0.0, 0.1)
        alarms.append((log >= -np.log(0.1)).any())
    assert np.mean(alarms) < 0.1 + 2 * np.sqrt(0.1 * 0.9 / 300)


@pytest.mark.study
@pytest.mark.parametrize("settings", [{"margin": 0.0}, {"baseline": 10}])
def test_a_small_group_of_a_rare_rate_is_accused_rarely(settings):
    """Of many days it has no event: 28% and 40% of such monitors ever alarmed."""
    rng, group = np.random.default_rng(13), np.arange(6060) < 60
    alarmed = 0
    for _ in range(15):
        monitor = Monitor(**settings)
        for day in pd.date_range("2026-01-01", periods=60):
            chosen = rng.random(group.size) < 0.05
            result = selection_rate(None, chosen, sensitive_features=group)
            monitor.update(result, when=day)
        alarmed += bool(monitor.alarms)
    assert alarmed < 3


def test_sequence_holds_at_all_times():
    rng = np.random.default_rng(6)
    missed = []
    for _ in range(400):
        scan = Scan.of(blocks(rng.normal(size=200), df=30.0))
        low, high = scan.interval(0, 0.1)
        missed.append(((low > 0) | (high < 0)).any())
    assert np.mean(missed) < 0.1 + 2 * np.sqrt(0.1 * 0.9 / 400)


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "gap.jsonl"
    monitored([0.0] * 2, path)
    return path


# Copies of this process end without a word at their n-th call of the system about
# files, n = 0, 1, 2, ..., until one of them has stored its day.
KILLED = """
import json, os, sys
from skrankfair.monitoring import Monitor
from tests.monitoring.test_monitor import DAYS, decisions

EVENTS = ("open", "os.rename", "os.remove", "os.chmod", "os.truncate")
path, day = sys.argv[1], 2
results = [decisions(seed) for seed in range(6)]

def run(last):
    monitor, calls = Monitor.open(path), 0

    def watch(event, arguments):
        nonlocal calls
        calls += event in EVENTS
        if calls > last:
            os._exit(9)

    sys.addaudithook(watch)
    monitor.update(results[day], when=DAYS[day])
    os._exit(0)

for last in range(60):
    before = Monitor.open(path).when
    pid = os.fork() or run(last)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    after = Monitor.open(path).when
    print(json.dumps([status, before, after]))
    if status == 0:
        break
    day += after != before  # killed after it was stored
"""


def ran(script, path):
    """Run a script that prints a line of JSON per process that it kills."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=True,
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_killed_process_has_stored_a_day_or_not(path):
    """At each of its calls in turn; then it is done again, until all days are there."""
    done, runs = ran(KILLED, path)
    assert runs[-1][0] == 0, done.stderr
    assert len(runs) > 4
    for status, before, after in runs:
        added = [DAYS[len(before)]] if len(before) < len(after) else []
        assert after == before + added
        assert added or status == 9
    assert sum(before == after for _, before, after in runs) > 3
    monitor = Monitor.open(path)
    n_days = len(monitor.when)
    assert monitor.when == tuple(DAYS[:n_days])
    whole = sum(decisions(i).compact() for i in range(n_days))
    np.testing.assert_allclose(monitor.result().estimate, whole.estimate, rtol=1e-12)
    assert monitor.result().n_clusters == whole.n_clusters


# Copies of this process add days as fast as they can, and are killed at some moment.
MOMENTS = """
import json, os, random, signal, sys, time
from skrankfair.monitoring import Monitor
from tests.monitoring.test_monitor import DAYS, decisions

path, results = sys.argv[1], [decisions(seed) for seed in range(len(DAYS))]
random.seed(0)

def run(says):
    monitor = Monitor.open(path)
    for number in range(len(monitor.when), len(DAYS)):
        monitor.update(results[number], when=DAYS[number])
        os.write(says, b"1")
    os._exit(0)

status = -9
while status == -signal.SIGKILL:
    before = len(Monitor.open(path).when)
    hears, says = os.pipe()
    pid = os.fork() or run(says)
    os.close(says)
    said = len(os.read(hears, 1))  # it has begun
    time.sleep(random.uniform(0.0, 0.02))
    os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said += len(os.read(hears, 1000))
    os.close(hears)
    print(json.dumps([status, before + said, Monitor.open(path).when]))
"""


@pytest.mark.study
def test_a_process_is_killed_at_random_moments(path):
    """By SIGKILL: what was reported as stored is there, once, and nothing is broken."""
    done, runs = ran(MOMENTS, path)
    assert len(runs) > 5, done.stderr
    for _, said, days in runs:
        # One day more may be stored than there was time to say.
        assert said <= len(days) <= said + 1
        assert days == DAYS[: len(days)]
    monitor = Monitor.open(path)
    assert monitor.when == tuple(DAYS)
    whole = sum(decisions(i).compact() for i in range(len(DAYS)))
    assert monitor.result().n_clusters == whole.n_clusters
    np.testing.assert_allclose(monitor.result().estimate, whole.estimate, rtol=1e-12)


def add_days(path, days):
    monitor = Monitor.open(path)
    for day in days:
        monitor.update(decisions(day), when=DAYS[day])


def test_processes_wait_for_each_other(path):
    context = multiprocessing.get_context("spawn")
    parts = [range(2, 6, 2), range(3, 6, 2)]
    workers = [context.Process(target=add_days, args=(path, days)) for days in parts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert Monitor.open(path).when == tuple(DAYS[:6])


def test_how_well_the_spread_of_days_is_known():
    """Its variance is that of a chi-square variable with these degrees of freedom."""
    rng = np.random.default_rng(3)
    means = (np.diff(rng.normal(size=(20_000, 13)), axis=1) ** 2 / 2).mean(axis=1)
    _, df = blocks(9 * rng.normal(size=13)).spread()
    assert 2 * means.mean() ** 2 / means.var() == pytest.approx(df[-1], rel=0.05)
