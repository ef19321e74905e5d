"""Metrics that fit a curve first: parts with the curves of all data are the whole."""

from functools import partial

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pytest

from skrankfair.distributed import measure
from skrankfair.metrics import positive_rate_shift, rank_shift
from tests.seeds import rarely

from .logs import WHO, assert_same, click_log

# Group "a" has so few rows that each with each is evaluated, the others a lattice.
SHIFTS = {
    "rank": rank_shift,
    "queries": partial(
        rank_shift, average="queries", bandwidth=0.1, cluster_weight="row"
    ),
    "rate": partial(positive_rate_shift, threshold=0.4),
    "tricube": partial(
        positive_rate_shift,
        threshold=0.4,
        bandwidth={"a": 0.3, "b": 0.1, "c": 0.1},
        kernel="tricube",
    ),
}
DRAWN = {"n_replicates": 6, "random_state": 4}


@pytest.fixture(scope="module", name="frame")
def _frame():
    return click_log()


def in_parts(kind, frame, folder):
    if kind == "dask":
        return dd.from_pandas(frame, npartitions=3)
    frame.to_parquet(folder / "1.parquet")
    return folder / "1.parquet"


def assert_whole(found, whole):
    assert_same(found, whole)
    for name, result in found.items():
        one, two = (r.first_pass["bandwidth"] for r in (result, whole[name]))
        assert one == pytest.approx(two, rel=1e-14)
        np.testing.assert_allclose(
            result.resampled(), whole[name].resampled(), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize(
    ("kind", "n_partitions"), [("files", 3), *rarely(("files", 64), ("dask", 7))]
)
@pytest.mark.parametrize("names", ["rank rate", *rarely(" ".join(SHIFTS))])
def test_shifts_are_those_of_memory(kind, n_partitions, names, frame, tmp_path):
    metrics = {name: SHIFTS[name] for name in names.split()}
    data = in_parts(kind, frame, tmp_path)
    found = measure(data, metrics, n_partitions=n_partitions, **DRAWN, **WHO)
    assert_whole(found, measure(frame, metrics, **DRAWN, **WHO))


@pytest.mark.parametrize("cluster", rarely("u", None))
def test_weights_of_queries(cluster, frame, tmp_path):
    who = {**WHO, "cluster": cluster, "sample_weight": "w"}
    metrics = {name: SHIFTS[name] for name in ("rank", "queries")}
    data = in_parts("files", frame, tmp_path)
    found = measure(data, metrics, n_partitions=5, **DRAWN, **who)
    assert_whole(found, measure(frame, metrics, **DRAWN, **who))


@pytest.mark.simulation
def test_a_group_that_parts_lack_and_labels_that_are_missing(frame, tmp_path):
    frame = frame.assign(g=frame["g"].where(~frame["u"].between(10, 25)))
    frame.loc[frame["u"] < 10, "g"] = "rare"
    metrics = {"rank": partial(rank_shift, missing="group")}
    data = in_parts("files", frame, tmp_path)
    with pytest.warns(UserWarning, match="no label in sensitive_features"):
        found = measure(data, metrics, n_partitions=9, **DRAWN, **WHO)
    with pytest.warns(UserWarning, match="no label in sensitive_features"):
        whole = measure(frame, metrics, **DRAWN, **WHO)
    assert found["rank"].groups == ("a", "b", "c", "missing", "rare")
    assert_whole(found, whole)


@pytest.mark.simulation
def test_results_of_other_curves_do_not_add_up(frame):
    parts = [
        measure(
            dd.from_pandas(frame[frame["u"] % 2 == part], npartitions=2),
            {"rank": partial(rank_shift, bandwidth=0.2)},
            **DRAWN,
            **WHO,
        )["rank"]
        for part in (0, 1)
    ]
    again = type(parts[0]).from_json(parts[0].to_json())
    np.testing.assert_array_equal(again.covariance, parts[0].covariance)
    with pytest.raises(ValueError, match="do not add up"):
        again + parts[1]


@pytest.mark.parametrize(
    ("metric", "drawn", "message"),
    [
        (rank_shift, {}, "pass n_replicates=200"),
        (partial(rank_shift, bandwidth="cv"), DRAWN, "in memory only"),
        (partial(rank_shift, bandwidth=-1.0), DRAWN, "bandwidth must"),
        (partial(rank_shift, bandwidth={"a": 0.1}), DRAWN, "must name every group"),
        (partial(rank_shift, bandwidth=1e-9), DRAWN, "adds up .* on a lattice"),
    ],
)
def test_what_curves_of_all_data_do_not_have(metric, drawn, message, frame):
    data = dd.from_pandas(frame, npartitions=1)
    with pytest.raises(ValueError, match=message):
        measure(data, {"rank": metric}, **drawn, **WHO)


def test_too_many_replicates_and_a_reader(frame):
    data = dd.from_pandas(frame[frame["u"] < 9], npartitions=1)
    with pytest.raises(ValueError, match="take fewer replicates"):
        measure(data, "rank_shift", n_replicates=10**9, **WHO)
    reader = pa.Table.from_pandas(frame).to_reader()
    with pytest.raises(ValueError, match="read only once"):
        measure(reader, "rank_shift", n_replicates=2, **WHO)
