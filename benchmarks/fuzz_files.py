"""Logs with odd labels, measured from files and by engines as they are in memory.

`benchmarks/fuzz.py` makes as many of these calls as there is time for.
"""

import tempfile
from functools import partial
from pathlib import Path

import dask.dataframe
import numpy as np
import pandas as pd

from skrankfair import distributed
from skrankfair._cli.input import read_arguments
from tests import fuzz

#: Labels that readers take for one another, or for something else.
NASTY = (
    *("1.1", "1.10", "7", "07", "100", "1e2", "12:30", "12:30:00", "NA", "nan", "0"),
    *("True", "1", "01", " 1", "é", "2020-01-01", "a,b", 'say "x"', "None", "0x10"),
    *("1_000", "-0", "+7", "null", "1e400", "#x", "=1+1", "'", ";", "9" * 20),
)
MEASURED = (
    *("pairwise_accuracy", "pairwise_exposure", "dips", "exposure", "brier_score"),
    *("group_mean", "log_loss"),
)
#: The columns of a log by what they are for.
LOG = {"y_true": "y", "y_score": "s", "qid": "q", "cluster": "u", "sample_weight": "w"}


def log_of(rng):
    """Return a log of queries, its columns as measure takes them, and their values."""
    n = int(rng.integers(20, 80))
    labels = np.array(NASTY, dtype=object)
    names = np.array([a + b for a in NASTY for b in NASTY], dtype=object)
    if rng.random() < 0.2:
        labels, names = np.arange(40), np.arange(900)
    query = np.sort(rng.integers(0, max(2, n // 5), n))
    data = pd.DataFrame({"q": rng.permutation(names)[query]})
    data["u"] = rng.permutation(names)[query // 2]
    data["y"] = (rng.random(n) < 0.4).astype(int)
    data["s"] = np.where(np.arange(n) < n // 2, 0, np.round(rng.random(n), 3))
    data["w"] = 10.0 ** rng.integers(-4, 4, query.max() + 1)[query]
    columns = {key: name for key, name in LOG.items() if rng.random() < 0.7}
    columns |= {"y_true": "y", "y_score": "s", "qid": "q"}
    some = int(rng.choice([2, 3, 9, 40]))
    if rng.random() < 0.3:  # groups that overlap
        for i in range(some):
            data[f"g{i}"] = (rng.random(n) < 0.3) | (np.arange(n) % some == i)
        columns["sensitive_features"] = [f"g{i}" for i in range(some)]
    else:
        data["g"] = rng.choice(rng.permutation(labels)[:some], n)
        columns["sensitive_features"] = "g"
    return data, columns


def measured(data, columns, metric, **options):
    """Measure a table of any kind."""
    return distributed.measure(data, metric, **columns, **options)[metric]


def file_call(name, rng):
    """Return a call that measures a log in memory."""
    data, columns = log_of(rng)
    metric = MEASURED[int(rng.integers(len(MEASURED)))]
    return partial(measured, data=data, columns=columns, metric=metric)


def as_read(path, columns):
    """Return the table that the command line reads of a file."""
    groups = columns["sensitive_features"]
    joined = groups if isinstance(groups, str) else ",".join(groups)
    values = read_arguments(path, {**columns, "sensitive_features": joined})
    frames = [pd.DataFrame(value) for value in values.values() if value is not None]
    return pd.concat(frames, axis=1)


def engines(call, rng):
    """Files and engines find what memory finds, and call groups by the same names."""
    data, columns = call.keywords["data"], call.keywords["columns"]
    kind = ("csv", "csv.gz", "parquet", "command", "dask")[int(rng.integers(5))]
    options = {"n_partitions": int(rng.integers(1, 4))}
    expected = fuzz.outcome(call)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / f"log.{kind.replace('command', 'csv')}")
        write = data.to_parquet if kind == "parquet" else data.to_csv
        write(path, index=False)
        if kind == "dask":
            path = dask.dataframe.from_pandas(data, npartitions=3)
        elif kind == "command":
            path = as_read(path, columns)
        actual = fuzz.outcome(partial(call, data=path, **options))
    assert (expected is None) == (actual is None)
    if expected is not None:
        assert set(map(str, expected.groups)) == set(map(str, actual.groups))
        order = [[*map(str, actual.groups)].index(str(g)) for g in expected.groups]
        for field in ("estimate", "standard_error", "support"):
            one, two = getattr(expected, field), getattr(actual, field)[order]
            np.testing.assert_allclose(two, one, rtol=1e-6, atol=1e-9, err_msg=kind)


def attempt(seed):
    """Measure one log in two ways."""
    checks = {"engines": engines}
    fuzz.attempt("measure", "engines", seed, call_of=file_call, checks=checks)
