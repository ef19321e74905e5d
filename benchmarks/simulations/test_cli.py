"""The command line as a process of its own, which signals and readers end."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from tests.cli.common import FAST, frame
from tests.cli.test_stream import COLUMNS
from tests.distributed.logs import click_log

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]


def run(*arguments):
    """Start an audit."""
    return subprocess.Popen(
        [sys.executable, "-m", "skrankfair", "audit", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


def test_reader_that_goes_away(tmp_path):
    frame().to_csv(tmp_path / "scores.csv", index=False)
    process = run(tmp_path / "scores.csv", *FAST)
    process.stdout.close()
    with process.stderr as stream:
        assert stream.read() == b""
    assert process.wait(timeout=60) == 141


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals(name, tmp_path):
    fifo = tmp_path / "slow.csv"
    os.mkfifo(fifo)
    process = run(fifo, *FAST)
    # Opening the other end waits until the command reads.
    with fifo.open("wb"):
        time.sleep(0.2)
        process.send_signal(signal.Signals[name])
        out, err = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.Signals[name]
    assert (out, err) == (b"", b"")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals_leave_nothing_behind(name, tmp_path):
    log = click_log()  # of 2,400 rows; a part takes up to two million of them
    large = pd.concat([log.assign(q=log["q"] + 400 * i) for i in range(1000)])
    large.assign(u=large["q"]).to_parquet(tmp_path / "large.parquet")
    parts = tmp_path / "parts"
    parts.mkdir()
    options = ["--memory", "1GB", "--temp-directory", parts]
    process = run(tmp_path / "large.parquet", *COLUMNS, *options)
    end = time.monotonic() + 120
    while not list(parts.rglob("*.parquet")):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    number = signal.Signals[name]
    os.killpg(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert not list(parts.iterdir())
