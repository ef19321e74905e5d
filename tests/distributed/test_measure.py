"""Parts of data measured by engines are the whole measured in memory."""

import re
from functools import partial
from inspect import signature
from pathlib import Path

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from skrankfair.distributed import measure
from skrankfair.distributed._sources import cut
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    accuracy,
    brier_score,
    group_mean,
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
    selection_rate,
)
from tests.seeds import one_in, rarely

from .logs import METRICS, WHO, assert_same, assert_same_replicates, written


@pytest.fixture(scope="module", name="sources")
def _sources(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    half = len(frame) // 2
    frame.iloc[:half].to_parquet(folder / "1.parquet")
    frame.iloc[half:].to_parquet(folder / "2.parquet")
    frame.to_csv(folder / "all.csv", index=False)
    table = pa.Table.from_pandas(frame)
    return {
        "pattern": lambda: str(folder / "*.parquet"),
        "files": lambda: [folder / "1.parquet", folder / "2.parquet"],
        "csv": lambda: folder / "all.csv",
        "table": lambda: table,
        "dataset": lambda: ds.dataset(
            folder, format="parquet", exclude_invalid_files=1
        ),
        "reader": table.to_reader,
        "lazy frame": lambda: pl.from_pandas(frame).lazy(),
        "polars": lambda: pl.from_pandas(frame),
        "relation": lambda: duckdb.from_arrow(table),
        "dask": lambda: dd.from_pandas(frame, npartitions=4),
    }


KINDS = ("pattern", "csv", "table", "reader", "lazy frame", "relation", "dask")
RARE = ("files", "dataset", "polars")
SOURCES = [
    *((kind, 3) for kind in KINDS),
    ("pattern", 7),
    *rarely(("dask", 7), *((kind, 3) for kind in RARE)),
    *rarely(*((kind, n) for kind in ("pattern", "dask") for n in (1, 64))),
]


@pytest.mark.parametrize(("kind", "n_partitions"), SOURCES)
def test_any_number_of_parts_of_every_source_is_the_whole(
    kind, n_partitions, sources, whole
):
    results = measure(sources[kind](), METRICS, n_partitions=n_partitions, **WHO)
    assert_same(results, whole)


@pytest.mark.parametrize(
    ("kind", "n_partitions"),
    [("pattern", 7), ("dask", 1), *rarely(("pattern", 1), ("csv", 64), ("dask", 7))],
)
def test_replicates_are_those_of_memory(kind, n_partitions, sources, frame):
    drawn = {"n_partitions": n_partitions, "n_replicates": 20, "random_state": 4}
    results = measure(sources[kind](), METRICS, **drawn, **WHO)
    assert_same_replicates(results, frame)


ROWS = {name: WHO[name] for name in ("y_true", "y_score", "sensitive_features")}


GIVEN = [
    (brier_score, ROWS),  # each row is a unit
    (brier_score, {**ROWS, "cluster": "q"}),
    (brier_score, {**ROWS, "qid": "q"}),  # queries are the units
    (pairwise_accuracy, {**WHO, "item_weight": "i"}),
    (pairwise_accuracy, {**WHO, "cluster": ["u", "i"]}),  # users and items
    (brier_score, {**ROWS, "cluster": ["u", "i"]}),
    (matched_pair_calibration, {**WHO, "item_weight": "i"}),
    (
        partial(matched_pair_calibration, position_weight="dcg", epsilon=0.2),
        {**WHO, "position": "p"},
    ),
    (METRICS["ndcg"], WHO),
    (pairwise_exposure, {**WHO, "sensitive_features": ["g", "h"]}),
    (partial(METRICS["selected"], pos_label="no"), ROWS | {"cluster": "u"}),
    (partial(accuracy, threshold=0.5, pos_label="no"), ROWS | {"y_true": "t"}),
    (partial(accuracy, pos_label="no"), ROWS | {"y_true": "t", "y_score": "t"}),
    (group_mean, {"y_score": "s", "sensitive_features": "g", "cluster": "u"}),
]
KEPT_AS = {
    "frame": lambda _, frame: frame,
    "parquet": written,
    "csv": partial(written, kind="csv"),
    "dask": lambda _, frame: dd.from_pandas(frame, npartitions=2),
}


@one_in(2, given={str(n): given for n, given in enumerate(GIVEN)}, kept=KEPT_AS)
def test_columns_are_given_to_the_metric(given, kept, frame, tmp_path):
    metric, columns = given
    h, i = np.where(frame["s"] > 0.5, 1, 0), np.arange(len(frame)) % 4 / 2
    p = frame.groupby("q").cumcount() * 3 % 7 + 7 * (frame.groupby("q").cumcount() // 7)
    frame = frame.assign(h=h, i=i, p=p + 1.0, t=np.where(frame["y"], "yes", "no"))
    values = {argument: frame[name] for argument, name in columns.items()}
    values.setdefault("cluster", values.get("qid"))
    if metric is group_mean:
        values["values"] = values.pop("y_score")
    taken = signature(metric).parameters
    taken = values.keys() & taken - getattr(metric, "keywords", {}).keys()
    expected = metric(**{argument: values[argument] for argument in taken}).compact()
    data = kept(tmp_path, frame)
    results = measure(data, {"m": metric}, n_partitions=3, **columns)
    assert_same(results, {"m": expected})


def test_the_line_of_the_readme(frame, tmp_path, monkeypatch):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`skrankfair\.distributed\.(measure\([^`]*\))`", readme)
    names = {"q": "session", "g": "region", "s": "score", "y": "clicked"}
    (tmp_path / "log").mkdir()
    frame.rename(columns=names).to_parquet(tmp_path / "log" / "1.parquet")
    monkeypatch.chdir(tmp_path)
    assert eval(line, {"measure": measure})["dips"].groups == ("a", "b", "c")


def test_in_processes(sources, whole):
    said = []
    options = {"n_jobs": 2, "memory_limit": "1GB", "progress": said.append}
    results = measure(sources["pattern"](), METRICS, n_partitions=4, **options, **WHO)
    assert_same(results, whole)
    assert len(said) >= 4
    assert said[-1] == "2,400 of 2,400 rows"


def test_missing_values_are_counted_over_all_parts(frame, tmp_path):
    row = np.arange(len(frame))
    frame = frame.assign(
        s=frame["s"].where((row % 50 != 3) & (frame["u"] < 60)),  # some parts lack all
        g=frame["g"].where(row % 70 != 5),
        w=(frame["u"] % 4) * 1.0,
    )
    frame.to_parquet(path := tmp_path / "f.parquet")
    data = dd.from_pandas(frame, npartitions=2)
    metric = partial(matched_pair_calibration, missing="drop")
    for log, columns in (
        (path, WHO),
        (data, WHO),
        (data, WHO | {"sample_weight": "w"}),
    ):
        with pytest.warns(UserWarning, match="left out: .* lack y_score") as said:
            results = measure(log, {"m": metric}, n_partitions=30, **columns)
        assert len(said) == 1
        with pytest.warns(UserWarning, match="rows are left out"):
            expected = metric(**{key: frame[name] for key, name in columns.items()})
        assert results["m"].missing == expected.missing
        assert_same(results, {"m": expected.compact()})
    frame.assign(s=np.nan).to_parquet(path)
    with pytest.raises(ValueError, match="leaves no row: each lacks y_score"):
        measure(path, {"m": metric}, n_partitions=3, **WHO)


def test_a_group_that_one_part_lacks_is_no_warning(tmp_path):
    frame = pd.DataFrame({"q": np.repeat(np.arange(40), 4), "s": np.arange(160.0)})
    frame["g"] = np.where(frame["q"] % 2 == 0, "a", "b")
    frame["y"] = frame["s"] % 3
    frame.loc[:7, "g"] = "rare"
    frame.to_parquet(tmp_path / "f.parquet")
    who = {"y_score": "s", "sensitive_features": "g", "qid": "q"}
    metrics = {"mean": partial(selection_rate, threshold=80.0)}
    results = measure(tmp_path / "f.parquet", metrics, n_partitions=8, **who)
    assert results["mean"].groups == ("a", "b", "rare")
    with pytest.warns(UndefinedMetricWarning, match="without pairs"):
        measure(tmp_path / "f.parquet", "pairwise_exposure", n_partitions=8, **who)


class TestErrors:
    @pytest.mark.parametrize(
        ("metrics", "columns", "message"),
        [
            ("no_such", {}, "metrics must be names or functions"),
            ("selection_rat", {}, r"Did you mean 'selection_rate'\?"),
            ([], {}, "metrics must name at least one"),
            ([METRICS["inter"], METRICS["queries"]], {}, "'pairwise_accuracy' twice"),
            ("dips", {"y_score": "nope"}, "no column 'nope'; it has 'q', 'u'"),
            ("impact_ratio", {}, "impact_ratio must return GroupEstimates, .* Dispar"),
            ("matched_pair_curve", {}, "must return GroupEstimates, .*PairCurve"),
            ("brier_score", {"y_true": None}, "needs y_true; .* column by y_true="),
            (
                "positive_rate_shift",
                {},
                r"needs threshold; .* as by partial\(positive_rate_shift, t",
            ),
            ("dips", {"qid": ["q"]}, "qid must be the name of a column"),
            ("dips", {"qid": None}, "name the column of the query by qid="),
            (partial(matched_pair_calibration, n_pairs=0), {}, "n_pairs must"),
            (partial(matched_pair_calibration, adjacent=True), {}, "order of the rows"),
            (partial(pairwise_accuracy, bins=0), {"engagement": "s"}, "bins must"),
            ("dips", {"cluster": "s"}, "s must be constant within a query; q"),
            ("dips", {"cluster": ["u", "s"]}, "cluster must be one column here"),
        ],
    )
    def test_say_what_to_do(self, metrics, columns, message, sources):
        with pytest.raises(ValueError, match=message):
            measure(sources["pattern"](), metrics, **WHO | columns)

    @pytest.mark.parametrize(
        ("kind", "options", "message"),
        [
            ("dask", {"cluster": "s"}, "s must be constant within a query; q"),
            ("dask", {"y_score": "nope"}, "no column 'nope'"),
            ("polars", {"y_score": "nope"}, "no column 'nope'"),
            ("pattern", {"n_partitions": 0}, "n_partitions must"),
            ("polars", {"n_replicates": -1}, "n_replicates must"),
            ("polars", {"random_state": 0.5}, "random_state must"),
            (3, {}, "data must be a path"),
            ("/none.parquet", {}, "cannot be read by DuckDB"),
            ("pattern", {"temp_directory": "/none"}, "temp_directory must be a folder"),
            ("pattern", {"memory_limit": "lots"}, "Memory must have a number"),
        ],
    )
    def test_of_data_and_options(self, kind, options, message, sources):
        data = sources[kind]() if kind in sources else kind
        with pytest.raises(ValueError, match=message):
            measure(data, "dips", **WHO | options)

    def test_replicates_of_rows_without_labels(self, frame):
        with pytest.raises(ValueError, match="by cluster="):
            measure(frame, "brier_score", n_replicates=2, **ROWS)

    def test_no_rows(self, frame, tmp_path):
        frame.iloc[:0].to_parquet(tmp_path / "f.parquet")
        with pytest.raises(ValueError, match="at least one row"):
            measure(tmp_path / "f.parquet", "dips", **WHO)


class TestCut:
    @staticmethod
    def batches(clusters, size):
        table = pa.table({"u": clusters, "row": np.arange(len(clusters))})
        return table.to_batches(max_chunksize=size)

    @pytest.mark.parametrize("size", [1, 3, 7, 100])
    @pytest.mark.parametrize("n_rows", [1, 4, 10, 1000])
    def test_no_cluster_is_in_two_parts(self, size, n_rows):
        clusters = np.repeat(np.arange(30), np.random.default_rng(0).integers(1, 9, 30))
        parts = list(cut(self.batches(clusters, size), "u", n_rows))
        rows = np.concatenate([part["row"] for part in parts])
        np.testing.assert_array_equal(rows, np.arange(clusters.size))
        assert sum(map(len, [set(part["u"].to_pylist()) for part in parts])) == 30
        assert all(part.num_rows <= max(n_rows, 9) + size + 9 for part in parts)

    def test_a_large_cluster_is_whole_and_rows_are_cut_anywhere(self):
        clusters = np.repeat(["a", "b", "c"], [2, 500, 3])
        parts = list(cut(self.batches(clusters, 4), "u", 5))
        assert [part.num_rows for part in parts] == [2, 503]
        parts = list(cut(self.batches(np.zeros(25), 5), None, 10))
        assert [part.num_rows for part in parts] == [10, 10, 5]
