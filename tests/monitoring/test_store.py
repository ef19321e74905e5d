"""Nothing that is stored is lost or counted twice, whatever ends the process."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skrankfair._reports import files
from skrankfair.monitoring import Monitor, _store

from .test_monitor import DAYS, decisions, monitored

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


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "gap.jsonl"
    monitored([0.0] * 2, path)
    return path


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


@pytest.mark.simulation
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

def run(told):
    monitor = Monitor.open(path)
    for number in range(len(monitor.when), len(DAYS)):
        monitor.update(results[number], when=DAYS[number])
        os.write(told, b"1")
    os._exit(0)

status = -9
while status == -signal.SIGKILL:
    before = len(Monitor.open(path).when)
    hears, told = os.pipe()
    pid = os.fork() or run(told)
    os.close(told)
    said = len(os.read(hears, 1))  # it has begun
    time.sleep(random.uniform(0.0, 0.02))
    os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said += len(os.read(hears, 1000))
    os.close(hears)
    print(json.dumps([status, before + said, Monitor.open(path).when]))
"""


@pytest.mark.simulation
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


def test_an_error_at_any_step_leaves_all_as_it_was(path, monkeypatch):
    before = path.read_bytes()
    for name in ("fsync", "open", "replace"):
        monitor = Monitor.open(path)

        def fail(*arguments, **options):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            if name == "fsync":
                patched.setattr(files.os, "fsync", fail)
            else:
                patched.setattr(files.Path, name, fail)
            with pytest.raises(OSError, match="No space left"):
                monitor.update(decisions(5), when=DAYS[5])
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]
        assert monitor.when == tuple(DAYS[:2])
        assert monitor.result().n_clusters == 800
    monitor.update(decisions(5), when=DAYS[5])
    assert Monitor.open(path).when == (*DAYS[:2], DAYS[5])


def add_days(path, days):
    monitor = Monitor.open(path)
    for day in days:
        monitor.update(decisions(day), when=DAYS[day])


@pytest.mark.simulation
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


def test_another_process_has_added_the_day(path):
    one, other = Monitor.open(path), Monitor.open(path)
    other.update(decisions(2), when=DAYS[2])
    with pytest.raises(ValueError, match="is there already"):
        one.update(decisions(2), when=DAYS[2])
    assert one.when == tuple(DAYS[:3])


def test_text_stays_the_same(path):
    """What is read and written again is the same to the bit."""
    first = path.read_bytes()
    settings, days = _store.read(path)
    _store.write(path, settings, days)
    assert path.read_bytes() == first
    assert days[DAYS[0]] == decisions(0).to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [], "no store of a monitor"),
        (lambda lines: ["{}", *lines[1:]], "no store of a monitor"),
        (lambda lines: ["no", *lines[1:]], "no store of a monitor"),
        (lambda lines: [*lines[:2], lines[2][:50]], "line 3: it is not JSON"),
        (lambda lines: [*lines, lines[1]], "line 4: 2026-01-01 is there twice"),
        (lambda lines: [*lines, "[]"], "line 4: it is no object"),
        (lambda lines: [*lines, '{"when": 3}'], "line 4: it is no day"),
        (
            lambda lines: [lines[0].replace('version": 1', 'version": 2'), *lines[1:]],
            "schema_version from 1 to 1; got 2",
        ),
    ],
)
def test_what_is_no_store_is_said(path, change, message):
    lines = change(path.read_text(encoding="utf-8").splitlines())
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Monitor.open(path)


def test_a_head_of_other_settings_is_said(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    head = json.loads(lines[0])
    head["settings"]["alpha"] = 7
    path.write_text("\n".join([json.dumps(head), *lines[1:]]), encoding="utf-8")
    with pytest.raises(ValueError, match="alpha must"):
        Monitor.open(path)


def test_a_missing_file_is_no_store(tmp_path):
    with pytest.raises(FileNotFoundError):
        Monitor.open(tmp_path / "nothing")
