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

from skrankfair.distributed import _duckdb, _quantile, measure
from skrankfair.distributed._plan import make_plan
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    brier_score,
    calibration_error,
    group_mean,
    matched_pair_calibration,
    pairwise_accuracy,
    rank_shift,
    selection_rate,
)
from tests.seeds import one_in, rarely

from .logs import (
    METRICS,
    WHO,
    assert_every_case,
    assert_same,
    assert_same_replicates,
    click_log,
)


@pytest.fixture(scope="module", name="frame")
def _frame():
    return click_log()


@pytest.fixture(scope="module", name="whole")
def _whole(frame):
    return measure(frame, METRICS, **WHO)


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


KINDS = (
    *("pattern", "csv", "table", "reader", "lazy frame", "relation", "dask"),
    *rarely("files", "dataset", "polars"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_is_the_whole(kind, sources, whole):
    assert_same(measure(sources[kind](), METRICS, n_partitions=3, **WHO), whole)


@pytest.mark.parametrize("n_partitions", [7, *rarely(1, 64)])
def test_any_number_of_parts_is_the_whole(n_partitions, sources, whole):
    for kind in ("pattern", "dask"):
        found = measure(sources[kind](), METRICS, n_partitions=n_partitions, **WHO)
        assert_same(found, whole)


@pytest.mark.simulation
@pytest.mark.parametrize(("kind", "n_partitions"), [("pattern", 7), ("dask", 2)])
def test_every_metric_and_option_is_the_whole(kind, n_partitions, sources, frame):
    def measured(metrics, who):
        return measure(sources[kind](), metrics, n_partitions=n_partitions, **who)

    assert_every_case(frame, measured)


@pytest.mark.parametrize(
    ("kind", "n_partitions"),
    [("pattern", 7), ("dask", 1), *rarely(("pattern", 1), ("csv", 64), ("dask", 7))],
)
def test_replicates_are_those_of_memory_to_the_bit(kind, n_partitions, sources, frame):
    found = measure(
        sources[kind](),
        METRICS,
        n_partitions=n_partitions,
        n_replicates=20,
        random_state=4,
        **WHO,
    )
    assert_same_replicates(found, frame)


MATCHED = {
    "usual": matched_pair_calibration,
    "both": partial(matched_pair_calibration, direction="both", quantile=0.3),
    "all": partial(matched_pair_calibration, quantile=1.0),
    "given": partial(matched_pair_calibration, epsilon=0),
}


@one_in(
    2,
    kind={kind: kind for kind in ("dask", "pattern")},
    limits={"usual limits": None, "low limits": (40, 25)},
)
def test_calipers_are_those_of_all_data(kind, limits, sources, frame, monkeypatch):
    if limits is not None:  # so that some pairs are looked at, and not all
        monkeypatch.setattr(_quantile, "_LISTED", limits[0])
        monkeypatch.setattr(_quantile, "_SAMPLED", limits[1])
    found = measure(sources[kind](), MATCHED, n_partitions=3, **WHO)
    whole = measure(frame, MATCHED, **WHO)
    assert_same(found, whole)
    for name in MATCHED:
        assert found[name].first_pass == whole[name].first_pass


@pytest.mark.parametrize("seed", [0, 1, *rarely(2, 3, 4)])
@pytest.mark.parametrize("quantile", [0.001, 0.02, 0.6])
def test_calipers_of_any_scores(seed, quantile, monkeypatch):
    monkeypatch.setattr(_quantile, "_LISTED", 60)
    monkeypatch.setattr(_quantile, "_SAMPLED", 30)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"q": rng.integers(0, 60, 900), "y": rng.random(900)})
    frame["g"] = rng.choice(["a", "b", "rare"], 900, p=[0.5, 0.495, 0.005])
    scores = rng.normal(size=900) ** 3, rng.integers(0, 4, 900) / 3
    frame["s"] = np.where(rng.random(900) < seed / 4, *scores)
    frame["w"] = (1.0 + frame["q"] % 3) ** (seed % 2)
    who = {"y_true": "y", "y_score": "s", "sensitive_features": "g", "qid": "q"}
    who["sample_weight"] = "w"
    metric = {"m": partial(matched_pair_calibration, quantile=quantile)}
    plan = make_plan(metric, who)
    parts = [frame[frame["q"] % 5 == part] for part in range(5)]
    found = _quantile.with_thresholds(
        plan, parts, lambda parts, task: [task.measure(part) for part in parts]
    )
    chosen = found.metrics["m"].keywords["epsilon"]
    assert chosen == plan.measure(frame)["m"].first_pass["epsilon"]


STRATA = {
    "usual": pairwise_accuracy,
    "inter": partial(pairwise_accuracy, comparison="inter", bins=7),
}


@pytest.mark.parametrize("kind", ["pattern", "dask"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_strata_of_engagement_are_those_of_all_data(kind, weight, frame, tmp_path):
    rng = np.random.default_rng(1)
    frame = frame.assign(z=rng.normal(size=len(frame)).round(1), w=1.0 + frame["q"] % 3)
    frame.to_parquet(tmp_path / "1.parquet")
    data = {
        "pattern": tmp_path / "1.parquet",
        "dask": dd.from_pandas(frame, npartitions=3),
    }[kind]
    who = {**WHO, "engagement": "z", "sample_weight": weight}
    found = measure(data, STRATA, n_partitions=3, **who)
    whole = measure(frame, STRATA, **who)
    assert_same(found, whole)
    for name in STRATA:
        assert found[name].first_pass == whole[name].first_pass
        expected = whole[name].breakdown()
        pd.testing.assert_frame_equal(found[name].breakdown(), expected)


@pytest.mark.parametrize("seed", range(4))
def test_strata_of_any_engagement(seed, monkeypatch):
    monkeypatch.setattr(_quantile, "_LISTED", 60)
    monkeypatch.setattr(_quantile, "_SAMPLED", 30)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"q": rng.integers(0, 60, 900), "y": rng.random(900)})
    frame["g"] = rng.choice(["a", "b"], 900)
    frame["s"] = rng.random(900)
    engagement = np.zeros(900), rng.normal(size=900) ** 3, rng.integers(-2, 3, 900)
    frame["z"] = np.where(rng.random(900) < 0.6, engagement[seed % 3], engagement[0])
    who = {"y_true": "y", "y_score": "s", "sensitive_features": "g", "qid": "q"}
    plan = make_plan(STRATA, {**who, "engagement": "z"})
    parts = [frame[frame["q"] % 5 == part] for part in range(5)]
    found = _quantile.with_edges(
        plan, parts, lambda parts, task: [task.measure(part) for part in parts]
    )
    whole = plan.measure(frame)
    for name in STRATA:
        expected = whole[name].first_pass["engagement_edges"]
        assert found.metrics[name].keywords["bins"] == expected
        again = found.measure(frame)[name]
        np.testing.assert_array_equal(again.estimate, whole[name].estimate)


def test_a_reader_has_one_pass(sources):
    with pytest.raises(ValueError, match="read only once"):
        measure(sources["reader"](), matched_pair_calibration, **WHO)
    with pytest.raises(ValueError, match="pass bins= to pairwise_accuracy"):
        measure(sources["reader"](), "pairwise_accuracy", **WHO | {"engagement": "s"})


def test_the_line_of_the_readme(frame, tmp_path, monkeypatch):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`skrankfair\.distributed\.(measure\([^`]*\))`", readme)
    names = {"q": "session", "g": "region", "s": "score", "y": "clicked"}
    (tmp_path / "log").mkdir()
    frame.rename(columns=names).to_parquet(tmp_path / "log" / "1.parquet")
    monkeypatch.chdir(tmp_path)
    found = eval(line, {"measure": measure})
    assert found["dips"].groups == ("a", "b", "c")


def test_in_processes(sources, whole, monkeypatch):
    monkeypatch.setattr(_duckdb, "_START", 0.0)
    found = measure(
        sources["pattern"](),
        METRICS,
        n_partitions=4,
        n_jobs=2,
        memory_limit="1GB",
        progress=(said := []).append,
        **WHO,
    )
    assert_same(found, whole)
    assert len(said) == 4
    assert said[-1] == "2,400 of 2,400 rows"


def test_rows_alone_need_no_cluster(sources, frame):
    who = {name: WHO[name] for name in ("y_true", "y_score", "sensitive_features")}
    for kind in ("pattern", "dask"):
        found = measure(sources[kind](), "brier_score", n_partitions=5, **who)
        expected = brier_score(frame["y"], frame["s"], sensitive_features=frame["g"])
        assert_same(found, {"brier_score": expected.compact()})


def test_items_have_weights(frame, tmp_path):
    frame = frame.assign(w=np.arange(len(frame)) % 4 / 2)
    frame.to_parquet(tmp_path / "f.parquet")
    metrics = [pairwise_accuracy, matched_pair_calibration]
    who = {**WHO, "item_weight": "w"}
    found = measure(tmp_path / "f.parquet", metrics, n_partitions=3, **who)
    columns = {argument: frame[name] for argument, name in who.items()}
    for metric in metrics:
        taken = {k: v for k, v in columns.items() if k in signature(metric).parameters}
        expected = metric(**taken)
        assert_same({"m": found[metric.__name__]}, {"m": expected.compact()})


def test_missing_values_are_counted_over_all_parts(frame, tmp_path):
    row = np.arange(len(frame))
    frame = frame.assign(
        s=frame["s"].where(row % 50 != 3), g=frame["g"].where(row % 70 != 5)
    )
    frame.to_parquet(tmp_path / "f.parquet")
    metric = partial(matched_pair_calibration, missing="drop")
    with pytest.warns(UserWarning, match="rows are left out: .* lack y_score") as said:
        found = measure(tmp_path / "f.parquet", {"m": metric}, n_partitions=3, **WHO)
    assert len(said) == 1
    with pytest.warns(UserWarning, match="rows are left out"):
        expected = metric(**{argument: frame[name] for argument, name in WHO.items()})
    assert found["m"].missing == expected.missing
    assert_same(found, {"m": expected.compact()})


def test_values_are_the_scores(sources, frame):
    who = {name: WHO[name] for name in ("y_score", "sensitive_features", "cluster")}
    found = measure(sources["dask"](), "group_mean", n_partitions=3, **who)
    whole = group_mean(frame["s"], sensitive_features=frame["g"], cluster=frame["u"])
    assert_same(found, {"group_mean": whole.compact()})


def test_several_columns_are_crossed(frame, tmp_path):
    frame = frame.assign(h=np.where(frame["s"] > 0.5, 1, 0))
    frame.to_parquet(tmp_path / "f.parquet")
    found = measure(
        tmp_path / "f.parquet",
        ["pairwise_exposure"],
        n_partitions=3,
        **WHO | {"sensitive_features": ["g", "h"]},
    )
    assert ("a", 0) in found["pairwise_exposure"].groups


def test_results_can_be_stored_and_added(sources, whole):
    found = measure(sources["pattern"](), {"a": METRICS["inter"]}, **WHO)["a"]
    again = type(found).from_json(found.to_json())
    doubled = again + found
    np.testing.assert_allclose(doubled.estimate, whole["inter"].estimate)
    assert doubled.n_clusters == 2 * whole["inter"].n_clusters


def test_a_group_that_one_part_lacks_is_no_warning(tmp_path):
    frame = pd.DataFrame({"q": np.repeat(np.arange(40), 4), "s": np.arange(160.0)})
    frame["g"] = np.where(frame["q"] % 2 == 0, "a", "b")
    frame["y"] = frame["s"] % 3
    frame.loc[:7, "g"] = "rare"
    frame.to_parquet(tmp_path / "f.parquet")
    who = {"y_score": "s", "sensitive_features": "g", "qid": "q"}
    metrics = {"mean": partial(selection_rate, threshold=80.0)}
    found = measure(tmp_path / "f.parquet", metrics, n_partitions=8, **who)
    assert found["mean"].groups == ("a", "b", "rare")
    with pytest.warns(UndefinedMetricWarning, match="without pairs"):
        measure(tmp_path / "f.parquet", "pairwise_exposure", n_partitions=8, **who)


class TestErrors:
    @pytest.mark.parametrize(
        ("metrics", "columns", "message"),
        [
            ("no_such", {}, "metrics must be names or functions"),
            ([], {}, "metrics must name at least one"),
            ([METRICS["inter"], METRICS["queries"]], {}, "'pairwise_accuracy' twice"),
            ("dips", {"y_score": "nope"}, "no column 'nope'; it has q, u"),
            (
                "impact_ratio",
                {},
                "impact_ratio must return GroupEstimates, .* Disparity",
            ),
            ("matched_pair_curve", {}, "must return GroupEstimates, .*PairCurve"),
            (
                "brier_score",
                {"y_true": None},
                "needs y_true; name its column by y_true=",
            ),
            (
                "positive_rate_shift",
                {},
                r"option, as by partial\(positive_rate_shift, t",
            ),
            ("dips", {"qid": ["q"]}, "qid must be the name of a column"),
            ("dips", {"qid": None}, "name the column of the query by qid="),
            (partial(matched_pair_calibration, n_pairs=9), {}, "choose it once"),
            (partial(matched_pair_calibration, adjacent=True), {}, "choose it once"),
            (partial(matched_pair_calibration, quantile=2), {}, "quantile must"),
            (partial(pairwise_accuracy, bins=0), {"engagement": "s"}, "bins must"),
            (
                "calibration_error",
                {"qid": None},
                "only the estimate is a sum.* pass the edges of bins, which add up",
            ),
            (
                partial(calibration_error, method="sweep"),
                {"qid": None},
                "cut at ranks among all rows. Measure a sample",
            ),
            (partial(rank_shift, bandwidth=0.1), {"qid": None}, "in memory"),
            ("dips", {"cluster": "s"}, "s must be constant within a query; q"),
        ],
    )
    def test_say_what_to_do(self, metrics, columns, message, sources):
        with pytest.raises(ValueError, match=message):
            measure(sources["pattern"](), metrics, **WHO | columns)

    def test_a_query_in_two_clusters_of_dask(self, sources):
        with pytest.raises(ValueError, match="s must be constant within a query; q"):
            measure(sources["dask"](), "dips", **WHO | {"cluster": "s"})

    def test_of_dask_and_frames(self, sources, frame):
        for data in (frame, sources["dask"]()):
            with pytest.raises(ValueError, match="no column 'nope'"):
                measure(data, "dips", **WHO | {"y_score": "nope"})

    def test_n_partitions(self, sources):
        with pytest.raises(ValueError, match="n_partitions must"):
            measure(sources["pattern"](), "dips", n_partitions=0, **WHO)

    def test_replicates(self, frame):
        with pytest.raises(ValueError, match="n_replicates must"):
            measure(frame, "dips", n_replicates=-1, **WHO)
        with pytest.raises(ValueError, match="random_state must"):
            measure(frame, "dips", n_replicates=2, random_state=0.5, **WHO)
        rows = {name: WHO[name] for name in ("y_true", "y_score")}
        with pytest.raises(ValueError, match="by cluster="):
            measure(frame, "brier_score", n_replicates=2, **rows)

    def test_data_of_no_kind(self):
        with pytest.raises(ValueError, match="data must be a path"):
            measure(3, "dips", **WHO)
        with pytest.raises(ValueError, match="files of this computer"):
            measure("https://example.org/a.parquet", "dips", **WHO)

    def test_no_file(self, tmp_path):
        with pytest.raises(ValueError, match="cannot be read by DuckDB"):
            measure(tmp_path / "none.parquet", "dips", **WHO)

    def test_no_rows(self, frame, tmp_path):
        frame.iloc[:0].to_parquet(tmp_path / "f.parquet")
        with pytest.raises(ValueError, match="at least one row"):
            measure(tmp_path / "f.parquet", "dips", **WHO)

    def test_missing_groups_are_named(self, frame, tmp_path):
        frame = frame.assign(g=frame["g"].where(frame.index != 5))
        frame.to_parquet(tmp_path / "f.parquet")
        with pytest.raises(ValueError, match="sensitive_features"):
            measure(tmp_path / "f.parquet", "dips", **WHO)

    def test_nothing_is_left_behind(self, sources, tmp_path):
        measure(sources["pattern"](), "dips", temp_directory=tmp_path, **WHO)
        with pytest.raises(ValueError, match="constant within a query"):
            measure(
                sources["pattern"](),
                "dips",
                temp_directory=tmp_path,
                **WHO | {"cluster": "s"},
            )
        assert not list(tmp_path.iterdir())
