"""What may happen to files, workers and disks, and skewed or odd data."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from skrankfair.distributed import _duckdb, measure
from skrankfair.metrics import pairwise_exposure
from tests.seeds import rarely

from .logs import METRICS, WHO, assert_same, click_log

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", name="frame")
def _frame():
    return click_log()


def written(folder, *frames, kind="parquet"):
    """Write each frame to a file of its own."""
    for number, frame in enumerate(frames):
        path = folder / f"{number}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return str(folder / f"*.{kind}")


class TestFilesThatDiffer:
    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_numbers_are_not_those_of_the_first_file(self, kind, frame, tmp_path):
        tens = frame.assign(s=(10 * frame["s"]).round(1))
        whole = tens.assign(s=np.where(tens.index < 900, tens["s"].round(), tens["s"]))
        first = whole[:900].astype({"s": int})
        # The columns of the second are in another order too.
        second = whole[900:][["y", "s", "g", "unused", "u", "q"]]
        data = written(tmp_path, first, second, kind=kind)
        found = measure(data, METRICS["inter"], n_partitions=2, **WHO)
        expected = measure(whole, METRICS["inter"], **WHO)
        assert_same(found, expected)

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    @pytest.mark.parametrize("lacking", [0, 1])
    def test_a_file_without_a_column_is_named(self, kind, lacking, frame, tmp_path):
        parts = [frame[:900], frame[900:]]
        parts[lacking] = parts[lacking].drop(columns="s")
        data = written(tmp_path, *parts, kind=kind)
        with pytest.raises(ValueError, match=rf"without the column 's': .*{lacking}\."):
            measure(data, "dips", **WHO)

    @pytest.mark.parametrize("column", ["s", "g"])
    def test_numbers_and_text(self, column, frame, tmp_path):
        other = frame[900:].assign(**{column: "text"})
        first = frame[:900].assign(g=1) if column == "g" else frame[:900]
        data = written(tmp_path, first, other)
        with pytest.raises(ValueError, match=rf"{column}' is text in some files, and "):
            measure(data, "dips", **WHO)
        data = written(tmp_path, frame[:900], other, kind="csv")
        if column == "s":
            with pytest.raises(ValueError, match="y_score must be numeric"):
                measure(data, "dips", **WHO)


def skewed():
    """Return a log of which a third is one user, with a group of few users."""
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(300), 4)
    frame = pd.DataFrame({"q": query, "u": np.where(query < 100, 0, query)})
    frame["g"] = rng.choice(["a", "b"], len(frame))
    frame.loc[(query > 270) & (np.arange(len(frame)) % 4 == 1), "g"] = "rare"
    frame["s"] = rng.random(len(frame))
    frame["y"] = rng.integers(0, 2, len(frame))
    return frame


class TestOddData:
    @pytest.mark.parametrize("kind", ["files", "dask"])
    def test_a_cluster_with_a_third_of_the_rows(self, kind, tmp_path):
        frame = skewed()
        data = dd.from_pandas(frame, npartitions=5)
        if kind == "files":
            data = written(tmp_path, frame)
        # Most of 64 parts have few clusters, or lack a group.
        n_partitions = 64 if kind == "files" else 9
        found = measure(data, METRICS["inter"], n_partitions=n_partitions, **WHO)
        # Beside such a cluster the degrees of freedom are a small difference.
        whole = measure(frame, METRICS["inter"], **WHO)
        assert_same(found, whole, of_tests=1e-9)

    def test_parts_without_rows(self, tmp_path):
        frame = skewed()
        few = frame[frame["u"].isin([0, *range(290, 300)])]
        whole = measure(few, METRICS["inter"], **WHO)
        for data in (written(tmp_path, few), dd.from_pandas(few, npartitions=9)):
            found = measure(data, METRICS["inter"], n_partitions=12, **WHO)
            assert_same(found, whole, of_tests=1e-9)

    def test_labels_of_mixed_types(self):
        frame = skewed()
        labels = np.array([2, "2", 2.5, True, ("a", 1)], dtype=object)
        frame["g"] = labels[np.random.default_rng(0).integers(0, 5, len(frame))]
        frame["u"] = [f"user {u}" if u % 2 else u for u in frame["u"].tolist()]
        with dask.config.set({"dataframe.convert-string": False}):
            data = dd.from_pandas(frame, npartitions=4)
            found = measure(data, METRICS["inter"], n_partitions=4, **WHO)
        whole = measure(frame, METRICS["inter"], **WHO)
        assert_same(found, whole)
        kinds = [type(group) for group in found["pairwise_accuracy"].groups]
        assert kinds == [type(group) for group in whole["pairwise_accuracy"].groups]

    @pytest.mark.simulation
    def test_ten_thousand_groups(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"q": np.arange(200_000) // 20})
        frame["u"] = frame["q"] // 4
        frame["g"] = rng.permutation(np.arange(len(frame)) % 10_000)
        frame["s"] = rng.random(len(frame))
        frame["y"] = rng.integers(0, 2, len(frame))
        metric = {"exposure": pairwise_exposure}
        found = measure(written(tmp_path, frame), metric, n_partitions=3, **WHO)
        whole = measure(frame, metric, **WHO)
        assert_same(found, whole)

    @pytest.mark.simulation
    def test_a_million_clusters_of_one_row(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"u": rng.permutation(10**6), "s": rng.random(10**6)})
        frame["g"] = rng.choice(["a", "b"], len(frame))
        frame["y"] = (rng.random(len(frame)) < frame["s"]).astype(int)
        who = {name: WHO[name] for name in WHO if name != "qid"}
        found = measure(written(tmp_path, frame), "brier_score", n_partitions=7, **who)
        whole = measure(frame, "brier_score", **who)
        # A difference of means of 10^6 rows has 1/1000 of their size.
        assert_same(found, whole, of_tests=1e-9)


class TestWorkersAndDisks:
    @pytest.mark.parametrize("n_jobs", [None, *rarely(2)])
    def test_a_metric_that_always_fails(self, n_jobs, frame, tmp_path):
        folder = tmp_path / "parts"
        folder.mkdir()
        data = written(tmp_path, frame)
        options = {"temp_directory": folder, "n_partitions": 3, "n_jobs": n_jobs}
        with pytest.raises(OSError, match="always"):
            measure(data, {"fails": _fails}, **options, **WHO)
        assert not list(folder.iterdir())

    @pytest.mark.simulation
    def test_a_process_that_is_killed_once_counts_once(
        self, frame, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(_duckdb, "_START", 0.0)
        data, options = written(tmp_path, frame), {"n_partitions": 5, "n_jobs": 2}
        marker = {"marker": tmp_path / "killed", "parent": os.getpid()}
        metric = partial(_killed, **marker, times=1)
        found = measure(data, {"inter": metric}, **options, **WHO)
        assert (tmp_path / "killed").read_text() == "x"
        assert_same(found, {"inter": measure(frame, METRICS, **WHO)["inter"]})

    @pytest.mark.simulation
    def test_processes_that_are_always_killed(self, frame, tmp_path, monkeypatch):
        monkeypatch.setattr(_duckdb, "_START", 0.0)
        data, folder = written(tmp_path, frame), tmp_path / "parts"
        folder.mkdir()
        monkeypatch.setattr(_duckdb, "_REPLACED", 0)
        options = {"n_partitions": 4, "n_jobs": 2, "temp_directory": folder}
        marker = {"marker": tmp_path / "killed", "parent": os.getpid()}
        metric = partial(_killed, **marker, times=100)
        with pytest.raises(
            RuntimeError, match="were killed, as for lack of memory, 1 times"
        ):
            measure(data, {"inter": metric}, **options, **WHO)
        assert not list(folder.iterdir())

    def test_no_such_temporary_directory(self, frame, tmp_path):
        data = written(tmp_path, frame)
        with pytest.raises(ValueError, match="temp_directory must be a folder"):
            measure(data, "dips", temp_directory=tmp_path / "none", **WHO)

    @pytest.mark.simulation
    def test_a_full_temporary_directory(self, frame, tmp_path):
        data, folder = written(tmp_path, *[frame] * 20), tmp_path / "parts"
        folder.mkdir()
        code = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        from skrankfair.distributed import measure
        try:
            measure({data!r}, "pairwise_exposure", temp_directory={str(folder)!r},
                    n_partitions=2, **{WHO!r})
        except ValueError as error:
            print(error)
        """
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        assert "temp_directory must have room" in run.stdout, run.stderr
        assert not list(folder.iterdir())

    @pytest.mark.simulation
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_an_interrupt_leaves_nothing_behind(self, n_jobs, frame, tmp_path):
        data, folder = written(tmp_path, frame), tmp_path / "parts"
        folder.mkdir()
        code = f"""
        import os, sys
        sys.path.insert(0, {str(ROOT)!r})
        from skrankfair.distributed import _duckdb, measure
        from tests.distributed.test_faults import _waits
        if {n_jobs} > 1:  # and the first part does not wait
            _duckdb._START, os.environ["SKRANKFAIR_PARENT"] = 0.0, str(os.getpid())
        measure({data!r}, {{"waits": _waits}}, temp_directory={str(folder)!r},
                n_partitions=4, n_jobs={n_jobs}, **{WHO!r})
        """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "SKRANKFAIR_MARKER": str(tmp_path / "begun")},
        )
        try:
            until((tmp_path / "begun").exists, 120)
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(60) != 0
            assert not list(folder.iterdir())
            until(lambda: not members(process.pid), 30)
        finally:
            if members(process.pid):
                os.killpg(process.pid, signal.SIGKILL)


def _fails(y_true, y_score, *, sensitive_features, qid, cluster):
    raise OSError("always")


def _killed(
    y_true, y_score, *, sensitive_features, qid, cluster, marker, parent, times
):
    with marker.open("a+") as file:
        file.seek(0)
        if os.getpid() != parent and len(file.read()) < times:
            file.write("x")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    who = {"sensitive_features": sensitive_features, "qid": qid, "cluster": cluster}
    return METRICS["inter"](y_true, y_score, **who)


def _waits(y_true, y_score, *, sensitive_features, qid, cluster):
    if str(os.getpid()) != os.environ.get("SKRANKFAIR_PARENT"):
        Path(os.environ["SKRANKFAIR_MARKER"]).touch()
        time.sleep(600)
    who = {"sensitive_features": sensitive_features, "qid": qid, "cluster": cluster}
    return METRICS["inter"](y_true, y_score, **who)


def until(happened, seconds):
    """Wait until something has happened."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.1)


def members(group):
    """Return the processes of a group that are not zombies."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(folder.name)
    return found
