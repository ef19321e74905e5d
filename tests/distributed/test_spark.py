"""Partitions measured by Spark are the whole measured in memory.

They run where Java is found and pyspark: ``pip install -e ".[test,spark]"``.
"""

import os
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skrankfair.distributed import _measure, measure
from skrankfair.metrics import (
    brier_score,
    make_metric,
    matched_pair_calibration,
    rank_shift,
)
from tests.seeds import rarely

from .logs import METRICS, WHO, assert_same, assert_same_replicates


@pytest.fixture(scope="module", name="spark")
def _spark_session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2, 3]").appName("skrankfair")
    session = builder.config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module", name="table")
def _table(spark, frame):
    return spark.createDataFrame(pa.Table.from_pandas(frame))


@pytest.mark.parametrize("n_partitions", [None, 1, 7, *rarely(64)])
def test_any_number_of_partitions_is_the_whole(n_partitions, table, whole):
    assert_same(measure(table, METRICS, n_partitions=n_partitions, **WHO), whole)


def test_replicates_are_those_of_memory(table, frame):
    results = measure(
        table, METRICS, n_partitions=5, n_replicates=20, random_state=4, **WHO
    )
    assert_same_replicates(results, frame)


@pytest.mark.parametrize("n_rows", [10**6, 600])
def test_first_passes_are_those_of_other_engines(n_rows, table, frame, monkeypatch):
    monkeypatch.setattr(_measure, "_SAMPLE_ROWS", n_rows)
    metrics = {"matched": matched_pair_calibration, "rank": rank_shift}
    results = measure(table, metrics, n_partitions=3, **WHO)
    expected = measure(pa.Table.from_pandas(frame), metrics, n_partitions=2, **WHO)
    assert_same(results, expected)
    for name, key in (
        ("matched", "epsilon"),
        ("matched", "sample"),
        ("rank", "sample"),
    ):
        first_pass, other = results[name].first_pass, expected[name].first_pass
        assert first_pass.get(key) == other.get(key)


def test_rows_alone_need_no_cluster(table, frame):
    who = {name: WHO[name] for name in ("y_true", "y_score", "sensitive_features")}
    expected = brier_score(frame["y"], frame["s"], sensitive_features=frame["g"])
    for n_partitions in (None, 5):
        results = measure(table, "brier_score", n_partitions=n_partitions, **who)
        assert_same(results, {"brier_score": expected.compact()})


@pytest.mark.filterwarnings("ignore:.* rows are left out")
def test_a_partition_may_lack_all_values(spark, frame):
    frame = frame.assign(y=frame["y"].where(frame["u"] > 70))
    data = spark.createDataFrame(pa.Table.from_pandas(frame)), frame
    metrics = {"m": partial(brier_score, missing="drop")}
    found, whole = (measure(x, metrics, n_partitions=40, **WHO) for x in data)
    assert_same(found, whole)
    assert found["m"].missing == whole["m"].missing


def test_names_of_columns_are_quoted(spark, frame):
    odd = frame.rename(columns={"q": "a.query `id`", "g": "select"})
    table = spark.createDataFrame(pa.Table.from_pandas(odd))
    who = WHO | {"qid": "a.query `id`", "sensitive_features": "select"}
    assert_same(measure(table, METRICS, **who), measure(odd, METRICS, **who))


def test_an_attempt_that_fails_counts_nothing_twice(table, whole, tmp_path):
    for fault in (_raise, _die):
        marker = tmp_path / fault.__name__
        metric = partial(_fails_once, marker=str(marker), fault=fault)
        results = measure(table, {"inter": metric}, n_partitions=4, **WHO)
        assert marker.exists()
        assert_same(results, {"inter": whole["inter"]})


def _raise():
    raise OSError("once")


def _die():
    os._exit(1)


def _fails_once(y_true, y_score, *, sensitive_features, qid, cluster, marker, fault):
    try:
        Path(marker).touch(exist_ok=False)
        fault()
    except FileExistsError:
        pass
    who = {"sensitive_features": sensitive_features, "qid": qid, "cluster": cluster}
    return METRICS["inter"](y_true, y_score, **who)


OWN = make_metric(lambda y_true, y_score: y_true, lambda t: t[..., 0], name="own")


class TestErrors:
    @pytest.mark.parametrize(
        ("metrics", "columns", "message"),
        [
            ("dips", {"y_score": "nope"}, "no column 'nope'; it has 'q', 'u'"),
            ("dips", {"cluster": "s"}, "s must be constant within a query; q"),
            ("pairwise_accuracy", {"y_true": "unused"}, "y_true"),
            ({"own": OWN}, {}, "are not stored"),
        ],
    )
    def test_are_those_of_memory(self, metrics, columns, message, table):
        with pytest.raises(ValueError, match=message):
            measure(table, metrics, **WHO | columns)

    def test_a_missing_group(self, spark, frame):
        frame = frame.assign(g=frame["g"].where(frame.index != 5))
        table = spark.createDataFrame(pa.Table.from_pandas(frame))
        with pytest.raises(ValueError, match="sensitive_features"):
            measure(table, "dips", **WHO)
