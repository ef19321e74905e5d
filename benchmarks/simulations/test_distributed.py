"""Every metric over parts of data, many groups and clusters, and killed workers."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from benchmarks import fuzz_files
from skrankfair.distributed import measure
from skrankfair.metrics import ndcg, pairwise_exposure
from tests.distributed.logs import METRICS, WHO, assert_same, click_log, written
from tests.metrics.common import CASES

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", name="frame")
def _frame():
    return click_log()


@pytest.fixture(name="folder")
def _folder(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    yield folder
    assert not list(folder.iterdir())


def every_case():
    """Return all metrics with all options, in sets that are given the same columns.

    Each is metrics by name, and the columns that they are given. Errors of items have
    no clusters.
    """
    sets = {}
    for name, case in CASES.items():
        options = {**case.options, **case.first_pass}
        if "estimator" in options:  # lines through pairs at the threshold are rounding
            options["epsilon"] = 0.255
        if case.metric is ndcg:
            options["sensitive_features"] = None
        who = WHO | {"sample_weight": "w"}
        if "bins" in options:
            who |= {"engagement": "z"}
        elif not case.of_decisions:
            who |= {"y_true": "grade"}
        if case.by_item:
            del who["cluster"]
        kind = tuple(who), who["y_true"]
        sets.setdefault(kind, ({}, who))[0][name] = partial(case.metric, **options)
    return sets.values()


@pytest.mark.filterwarnings("ignore:skew_at_k is infinite")
@pytest.mark.parametrize("kind", ["files", "dask"])
def test_every_metric_and_option_is_the_whole(kind, frame, tmp_path):
    data = written(tmp_path, frame)
    if kind == "dask":
        data = dd.from_pandas(frame, npartitions=4)
    for metrics, who in every_case():
        results = measure(data, metrics, n_partitions=7, **who)
        assert_same(results, measure(frame, metrics, **who))


def test_ten_thousand_groups(tmp_path):
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


def test_a_million_clusters_of_one_row(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": rng.permutation(10**6), "s": rng.random(10**6)})
    frame["g"] = rng.choice(["a", "b"], len(frame))
    frame["y"] = (rng.random(len(frame)) < frame["s"]).astype(int)
    who = {name: WHO[name] for name in WHO if name != "qid"}
    found = measure(written(tmp_path, frame), "brier_score", n_partitions=7, **who)
    whole = measure(frame, "brier_score", **who)
    # A difference of means of 10^6 rows has 1/1000 of their size.
    assert_same(found, whole, of_tests=1e-9)


def test_a_process_that_is_killed(frame, tmp_path, folder):
    data = written(tmp_path, frame)
    options = {"n_partitions": 4, "n_jobs": 2, "temp_directory": folder}
    metric = partial(_killed, parent=os.getpid())
    with pytest.raises(TerminatedWorkerError):
        measure(data, {"inter": metric}, **options, **WHO)


def test_a_full_temporary_directory(frame, tmp_path, folder):
    data = written(tmp_path, *[frame] * 20)
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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_nothing_behind(n_jobs, frame, tmp_path, folder):
    data = written(tmp_path, frame)
    code = f"""
    import os, sys
    sys.path.insert(0, {str(ROOT)!r})
    from skrankfair.distributed import measure
    from benchmarks.simulations.test_distributed import _waits
    if {n_jobs} > 1:  # the first part does not wait
        os.environ["SKRANKFAIR_PARENT"] = str(os.getpid())
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
        until(lambda: not members(process.pid), 30)
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def _killed(y_true, y_score, *, sensitive_features, qid, cluster, parent):
    if os.getpid() != parent:
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


@pytest.mark.parametrize("seed", range(10))
def test_odd_logs_are_measured_from_files_as_in_memory(seed):
    fuzz_files.attempt(seed)
