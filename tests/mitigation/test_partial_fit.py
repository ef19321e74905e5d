"""Batches of rows give the fit of all rows."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression

from skrankfair.mitigation import GroupCalibrator
from skrankfair.smoothing import NadarayaWatsonRegressor
from tests.mitigation.data import METHODS
from tests.seeds import one_in

N = 600
RNG = np.random.default_rng(0)
X = pd.DataFrame({"s": RNG.random(N).round(2), "user": np.arange(N) // 3})
X["g"] = RNG.choice(["a", "b", "rare"], N, p=[0.6, 0.38, 0.02])
Y = (RNG.random(N) < X["s"] ** 1.5).astype(float)
WEIGHT = RNG.integers(0, 4, N).astype(float)
BATCHES = [np.flatnonzero(X["user"] % 3 == b) for b in range(3)]
POINTS = pd.DataFrame({"s": np.tile(np.linspace(-0.1, 1.1, 50), 3), "user": 0})
POINTS["g"] = np.repeat(["a", "b", "rare"], 50)


def smoother(**options):
    return NadarayaWatsonRegressor(**{"bandwidth": 0.1, "method": "exact"} | options)


def in_batches(model, columns=X, weight=WEIGHT):
    for rows in BATCHES:
        model.partial_fit(columns.iloc[rows], Y[rows], sample_weight=weight[rows])
    return model


def pooled_groups(model):
    curves = model.calibrators_.items()
    return [group for group, curve in curves if curve is model.pooled_calibrator_]


CALIBRATORS = {str(calibrator): calibrator for calibrator in (*METHODS, smoother())}
MONOTONIC = {"as it is": False, "monotonic": True}
CLUSTERS = {"users": "user", "rows": None}


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore:Groups with fewer than")
class TestGroupCalibrator:
    @one_in(2, calibrator=CALIBRATORS, monotonic=MONOTONIC, cluster=CLUSTERS)
    def test_is_the_fit_of_all_rows(self, calibrator, monotonic, cluster):
        columns = X if cluster else X[["s", "g"]]
        points = POINTS if cluster else POINTS[["s", "g"]]
        options = {"sensitive_features": "g", "monotonic": monotonic}
        model = GroupCalibrator(calibrator, cluster=cluster, **options)
        whole = model.fit(columns, Y, sample_weight=WEIGHT).transform(points)
        again = GroupCalibrator(calibrator, cluster=cluster, **options)
        found = in_batches(again, columns).transform(points)
        # The steps of Newton's method end when nothing is gained.
        rtol = 1e-8 if calibrator == "platt" else 1e-12
        np.testing.assert_allclose(found, whole, rtol=rtol, atol=1e-12)
        assert again.groups_ == model.groups_
        assert pooled_groups(again) == pooled_groups(model)
        weighed = columns[WEIGHT > 0].groupby("g")[cluster or "s"]
        number = (weighed.nunique() if cluster else weighed.size()).to_dict()
        assert {g: of.n_clusters for g, of in again._sums[1].items()} == number

    def test_several_scores_and_clusters_by_rows(self):
        columns = X.assign(t=X["s"].to_numpy()[::-1])
        options = {"sensitive_features": "g", "cluster": "user"}
        model = GroupCalibrator(smoother(), cluster_weight="row", **options)
        found = in_batches(model, columns).transform(columns)
        whole = model.fit(columns, Y, sample_weight=WEIGHT).transform(columns)
        np.testing.assert_allclose(found, whole, rtol=1e-12)

    def test_a_group_of_a_later_batch(self):
        model = GroupCalibrator("isotonic", sensitive_features="g", min_group_size=3)
        columns = X[["s", "g"]]
        model.partial_fit(columns[X["g"] == "b"], Y[X["g"] == "b"])
        assert model.groups_ == ("b",)
        model.partial_fit(columns[X["g"] != "b"], Y[X["g"] != "b"])
        assert model.groups_ == ("a", "b", "rare")
        expected = model.transform(POINTS[["s", "g"]])
        found = model.fit(columns, Y).transform(POINTS[["s", "g"]])
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_errors(self):
        options = {"sensitive_features": "g", "cluster": "user"}
        model = GroupCalibrator("isotonic", **options)
        model.partial_fit(X[:300], Y[:300])
        before = model.transform(POINTS)
        with pytest.raises(ValueError, match="all rows of a cluster in one batch; 1 "):
            model.partial_fit(X[299:], Y[299:])
        with pytest.raises(ValueError, match="y must be"):
            model.partial_fit(X[300:], 1e61 * Y[300:])
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(X.assign(t=X["s"])[300:], Y[300:])
        with pytest.raises(ValueError, match="got 'row' after 'cluster'"):
            model.set_params(cluster_weight="row").partial_fit(X[300:], Y[300:])
        np.testing.assert_array_equal(model.transform(POINTS), before)
        alone = GroupCalibrator().partial_fit(X[["s"]], Y)
        with pytest.raises(ValueError, match="given both to fit and afterwards"):
            alone.partial_fit(X[["s"]], Y, sensitive_features=X["g"])
        with pytest.raises(ValueError, match="got 'cluster' after None"):
            alone.partial_fit(X[["s"]], Y, cluster=X["user"])

    def test_starts_anew_after_fit(self):
        model = GroupCalibrator("binning", sensitive_features="g", cluster="user")
        model.fit(X, Y).partial_fit(X[:300], Y[:300])
        found = model.transform(POINTS)
        whole = model.fit(X[:300], Y[:300]).transform(POINTS)
        np.testing.assert_allclose(found, whole, rtol=1e-12)

    def test_refuses_what_sums_do_not_tell(self):
        for calibrator, message in (
            (IsotonicRegression(), "calibrator that is one of .*got IsotonicReg"),
            (smoother(bandwidth="cv"), "a rule other than 'cv'"),
        ):
            model = GroupCalibrator(calibrator)
            assert not hasattr(model, "partial_fit")
            with pytest.raises(AttributeError) as error:
                model.partial_fit(X[["s"]], Y)
            assert re.search(message, str(error.value.__cause__))
        model = GroupCalibrator(cluster="user", cluster_weight="row")
        with pytest.raises(ValueError, match="is a number .*; got 'rule_of_thumb'"):
            model.partial_fit(X[["s", "user"]], Y)


class TestRegressor:
    @pytest.mark.parametrize("columns", [["s"], ["s", "t"]])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"bandwidth": "rule_of_thumb"},
            {"cluster": "user", "bandwidth": "undersmooth"},
            {"cluster": "user", "cluster_weight": "row"},
        ],
        ids=str,
    )
    def test_is_the_fit_of_all_rows(self, columns, options):
        frame = X.assign(t=X["s"].to_numpy()[::-1])
        frame = frame[columns + (["user"] if "cluster" in options else [])]
        whole = smoother(**options).fit(frame, Y, sample_weight=WEIGHT)
        found = in_batches(smoother(**options), frame)
        np.testing.assert_allclose(found.predict(frame), whole.predict(frame), 1e-12)
        np.testing.assert_allclose(found.bandwidth_, whole.bandwidth_, rtol=1e-12)
        assert found.n_clusters_ == whole.n_clusters_

    def test_keeps_a_sum_for_each_score(self):
        model = smoother()
        for _ in range(3):
            model.partial_fit(X[["s"]], Y)
        assert len(model._X) == X["s"].nunique()
        assert model.n_clusters_ == 3 * N
