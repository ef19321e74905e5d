"""Numbers that metrics choose from all data come from a sample of whole clusters."""

from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from skrankfair import metrics
from skrankfair.distributed import _measure, measure
from tests.seeds import rarely

from .logs import WHO, assert_same

OF_RANKINGS = {
    "quantile": partial(
        metrics.matched_pair_calibration, direction="both", quantile=0.3
    ),
    "all pairs": partial(metrics.matched_pair_calibration, quantile=1.0),
    "n_pairs": partial(metrics.matched_pair_calibration, n_pairs=40),
    "given": partial(metrics.matched_pair_calibration, epsilon=0),
    "strata": partial(metrics.pairwise_accuracy, comparison="inter", bins=7),
    "rank": partial(metrics.rank_shift, n_resamples=8),
}
OF_ROWS = {
    "rate": partial(metrics.positive_rate_shift, threshold=0.4, n_resamples=8),
    "smooth": metrics.calibration_error,
    "binned": partial(metrics.calibration_error, method="binned"),
    "sweep": partial(metrics.calibration_error, method="sweep"),
    "edges": partial(metrics.calibration_error, method="binned", bins=[0, 0.3, 0.6, 1]),
}
METRICS = OF_RANKINGS | OF_ROWS
#: What is measured on the sample alone.
ON_SAMPLE = ("rank", "rate", "smooth", "binned", "sweep")
ALL = WHO | {"engagement": "z"}


def written(kind, frame, folder):
    """Return the frame as files or of Dask."""
    if kind == "dask":
        return dd.from_pandas(frame, npartitions=3)
    frame.to_parquet(folder / "1.parquet")
    return folder / "1.parquet"


def assert_same_first_pass(one, other):
    """Compare what was chosen, bandwidths up to their rounding."""
    assert one.keys() == other.keys()
    for key, value in one.items():
        if key == "bandwidth":
            value = pytest.approx(value, rel=1e-12)
        assert other[key] == value


@pytest.mark.parametrize(("kind", "n_partitions"), [("files", 3), ("dask", 4)])
@pytest.mark.parametrize("weight", [None, *rarely("w")])
def test_all_rows_are_the_sample_of_small_data(
    kind, n_partitions, weight, frame, tmp_path
):
    data, who = written(kind, frame, tmp_path), ALL | {"sample_weight": weight}
    results = measure(data, METRICS, n_partitions=n_partitions, **who)
    whole = measure(frame, METRICS, **who)
    assert_same(results, whole)
    for name, result in results.items():
        assert_same_first_pass(result.first_pass, whole[name].first_pass)
    breakdown = results["strata"].breakdown()
    pd.testing.assert_frame_equal(breakdown, whole["strata"].breakdown())


@pytest.fixture(name="small_sample")
def _small_sample(monkeypatch):
    monkeypatch.setattr(_measure, "_SAMPLE_ROWS", 600)


@pytest.mark.usefixtures("small_sample")
class TestSample:
    @pytest.mark.parametrize("seed", [0, *rarely(1)])
    def test_metrics_of_its_rows_choose_the_numbers(self, seed, frame, tmp_path):
        choose = partial(_measure._rows_of_clusters, by="u", share=0.25, seed=seed)
        rows = choose(frame)
        size = {"rows": len(rows), "clusters": rows["u"].nunique(), "of_rows": 2400}
        assert 450 < size["rows"] < 750
        pd.testing.assert_frame_equal(rows, frame[frame["u"].isin(rows["u"])])
        share = OF_RANKINGS | {
            "n_pairs": partial(
                metrics.matched_pair_calibration, n_pairs=round(40 * len(rows) / 2400)
            )
        }
        of_sample = measure(rows, OF_ROWS | share, **ALL)
        given = {name: METRICS[name] for name in ("given", "edges")}
        for name in ("quantile", "all pairs", "n_pairs"):
            epsilon = of_sample[name].first_pass["epsilon"]
            options = {"epsilon": epsilon, "quantile": None, "n_pairs": None}
            given[name] = partial(METRICS[name], **options)
        edges = of_sample["strata"].first_pass["engagement_edges"]
        edges = (-np.inf, *edges[1:-1], np.inf)
        given["strata"] = partial(METRICS["strata"], bins=edges)
        expected = measure(frame, given, **ALL)
        expected |= {name: of_sample[name] for name in ON_SAMPLE}
        for kind in ("files", "dask"):
            data = written(kind, frame, tmp_path)
            options = {"n_partitions": 5, "random_state": seed}
            results = measure(data, METRICS, **options, **ALL)
            assert_same(results, {name: expected[name] for name in METRICS})
            for name, result in results.items():
                first_pass = dict(result.first_pass)
                sample = first_pass.pop("sample", None)
                assert_same_first_pass(first_pass, expected[name].first_pass)
                if name in ("given", "edges"):
                    assert sample is None
                else:
                    assert size.items() < sample.items()

    def test_is_said_and_stored(self, frame, tmp_path):
        data = written("files", frame, tmp_path)
        results = measure(data, ["matched_pair_calibration", "rank_shift"], **WHO)
        for name, what in (
            ("matched_pair_calibration", "epsilon"),
            ("rank_shift", "estimates and errors"),
        ):
            result, text = results[name], results[name].to_json()
            sample = metrics.GroupEstimates.from_json(text).first_pass["sample"]
            assert sample == result.first_pass["sample"]
            sentence = f"{what} from a sample of {sample['rows']} of 2,400 rows "
            assert sentence + f"({sample['clusters']} clusters)" in repr(result)
            assert sentence in result._repr_html_()

    def test_groups_without_pairs_in_it_take_the_median(self, frame):
        users = _measure._rows_of_clusters(frame, "u", 0.25, 0)["u"]
        is_rare = ~frame["u"].isin(users) & (frame["g"] == "a")
        frame = frame.assign(g=frame["g"].where(~is_rare, "rare"))
        data = dd.from_pandas(frame, npartitions=3)
        (result,) = measure(data, metrics.matched_pair_calibration, **WHO).values()
        *others, of_rare = result.first_pass["epsilon"].values()
        assert result.groups[-1] == "rare"
        assert of_rare == np.median(others)
        assert np.isfinite(result.standard_error[-1])

    @pytest.mark.parametrize(("n_clusters", "is_whole"), [(12, True), (30, False)])
    def test_has_some_clusters_however_large_they_are(
        self, n_clusters, is_whole, frame
    ):
        frame = frame.assign(u=frame["q"] % n_clusters)
        data = dd.from_pandas(frame, npartitions=3)
        (result,) = measure(data, metrics.matched_pair_calibration, **WHO).values()
        assert ("sample" not in result.first_pass) == is_whole
        assert is_whole or result.first_pass["sample"]["clusters"] >= 10

    def test_labels_choose_it(self, frame):
        frame = frame.assign(text=frame["u"].map("user {}".format))
        rows = _measure._rows_of_clusters(frame, "text", 0.5, 0)
        assert 30 < rows["text"].nunique() < 60
        assert rows.equals(frame[frame["text"].isin(rows["text"])])
        who = {name: WHO[name] for name in ("y_true", "y_score")}
        data = dd.from_pandas(frame, npartitions=3)
        with pytest.raises(ValueError, match="name their column by cluster="):
            measure(data, "calibration_error", **who)

    def test_results_of_other_samples_do_not_add_up(self, frame):
        data = dd.from_pandas(frame, npartitions=3)
        one, other = (
            measure(data, metrics.matched_pair_calibration, random_state=seed, **WHO)
            for seed in (0, 1)
        )
        with pytest.raises(ValueError, match="first pass differs"):
            sum(result["matched_pair_calibration"] for result in (one, other))
