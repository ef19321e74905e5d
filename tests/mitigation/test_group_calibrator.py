"""Calibrated scores mean the same in all groups."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.stats import binom
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from skrankfair._inputs import sklearn_private
from skrankfair.mitigation import GroupCalibrator
from skrankfair.scoring import make_fairness_scorer
from skrankfair.smoothing import NadarayaWatsonRegressor, nadaraya_watson
from tests.mitigation.data import TRUTH, WAVE, parity_pvalue, scores
from tests.seeds import rarely

METHODS = ["nadaraya_watson", "isotonic", "platt", "binning"]
N_SIMULATIONS = 25


def calibrated(calibrator, fit, test, **options):
    model = GroupCalibrator(calibrator, sensitive_features="group", **options)
    return model.fit(*fit[:2]).transform(test[0])[:, 0]


def users(n_users, seed):
    """Users with 1 to 9 rows, half of which share one draw of the outcome."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users), rng.integers(1, 10, n_users))
    X = pd.DataFrame({"score": rng.uniform(0.02, 0.98, user.size), "user": user})
    X["group"] = np.where(user % 2 == 0, "a", "b")
    expected = np.empty(user.size)
    for group, curve in TRUTH.items():
        rows = (X["group"] == group).to_numpy()
        expected[rows] = curve(X["score"].to_numpy()[rows])
    shared = rng.random(n_users)[user]
    draw = np.where(rng.random(user.size) < 0.5, shared, rng.random(user.size))
    return X, (draw < expected).astype(float)


class TestParity:
    @pytest.mark.parametrize("method", ["nadaraya_watson", "isotonic", "platt"])
    @pytest.mark.simulation
    def test_holds_afterwards_on_fresh_data(self, method):
        before = after = 0
        for seed in range(N_SIMULATIONS):
            fit, test = scores(20_000, seed), scores(2000, 1000 + seed)
            X, y, _ = test
            before += parity_pvalue(y, X["score"], X["group"]) < 0.05
            score = calibrated(method, fit, test)
            after += parity_pvalue(y, score, X["group"]) < 0.05
        assert before == N_SIMULATIONS
        # The level, and a little for the error of the fit itself.
        assert after <= binom.ppf(0.999, N_SIMULATIONS, 0.07)

    @pytest.mark.parametrize("method", ["nadaraya_watson", "platt"])
    @pytest.mark.simulation
    def test_holds_for_dependent_rows(self, method):
        """Users of one group with rows of one outcome more often than not."""
        n_simulations, before, after = 20, 0, 0
        for seed in range(n_simulations):
            fit, test = users(4000, seed), users(600, 1000 + seed)
            X, y = test
            cluster = X["user"]
            before += parity_pvalue(y, X["score"], X["group"], cluster) < 0.05
            model = GroupCalibrator(method, sensitive_features="group", cluster="user")
            score = model.fit(*fit).transform(X)[:, 0]
            after += parity_pvalue(y, score, X["group"], cluster) < 0.05
        assert before == n_simulations
        assert after <= binom.ppf(0.999, n_simulations, 0.07)

    @pytest.mark.simulation
    def test_isotonic_fails_where_the_curve_falls(self):
        rejections = {"nadaraya_watson": 0, "isotonic": 0}
        for seed in range(20):
            fit, test = scores(20_000, seed, WAVE), scores(2000, 500 + seed, WAVE)
            for method in rejections:
                score = calibrated(method, fit, test)
                # Rows that isotonic gives the same score have different outcomes.
                error = np.mean((score - test[2]) ** 2)
                rejections[method] += error > 0.01
        assert rejections == {"nadaraya_watson": 0, "isotonic": 20}

    @pytest.mark.parametrize("method", METHODS)
    def test_is_near_the_truth(self, method):
        fit, test = scores(40_000, 0), scores(5000, 1)
        found = calibrated(method, fit, test)
        # Bins of 1/15 of the rows are off by up to half of their rise; isotonic
        # regression converges at the rate n^(-1/3).
        tolerance = 0.025 if method in {"binning", "isotonic"} else 0.015
        assert np.sqrt(np.mean((found - test[2]) ** 2)) < tolerance

    def test_clusters_outweigh_rows(self):
        """One user of 20,000 rows, with outcomes 0.4 higher, among 2000 users."""
        rng = np.random.default_rng(0)
        user = np.concatenate([np.repeat(np.arange(2000), 5), np.full(20_000, 2000)])
        score = rng.uniform(0.1, 0.5, user.size)
        y = rng.random(user.size) < score + 0.4 * (user == 2000)
        frame = pd.DataFrame({"score": score, "user": user})
        grid = pd.DataFrame({"score": np.linspace(0.15, 0.45, 7), "user": 0})
        for method in METHODS:
            model = GroupCalibrator(method, cluster="user", n_bins=40)
            by_cluster = model.fit(frame, y).transform(grid)[:, 0]
            model.set_params(cluster_weight="row")
            by_row = model.fit(frame, y).transform(grid)[:, 0]
            np.testing.assert_allclose(by_cluster, grid["score"], atol=0.06)
            assert (by_row > grid["score"] + 0.2).all()


class TestMethods:
    def problem(self):
        rng = np.random.default_rng(3)
        x = rng.integers(0, 60, 500) / 60
        weight = rng.integers(1, 4, 500).astype(float)
        return x, (rng.random(500) < x**2).astype(float), weight

    def fit(self, calibrator, **options):
        x, y, w = self.problem()
        return GroupCalibrator(calibrator, **options).fit(
            x[:, None], y, sample_weight=w
        )

    grid = np.linspace(-0.2, 1.2, 200)

    def test_isotonic_is_that_of_scikit_learn(self):
        x, y, w = self.problem()
        reference = IsotonicRegression(out_of_bounds="clip").fit(x, y, w)
        found = self.fit("isotonic").transform(self.grid[:, None])[:, 0]
        np.testing.assert_allclose(found, reference.predict(self.grid), atol=1e-12)

    def test_platt_is_that_of_scikit_learn(self):
        x, y, w = self.problem()
        x = 5 * x - 2  # no probabilities
        reference = _SigmoidCalibration().fit(x, y, w)
        found = GroupCalibrator("platt").fit(x[:, None], y, sample_weight=w)
        grid = 5 * self.grid - 2
        np.testing.assert_allclose(
            found.transform(grid[:, None])[:, 0], reference.predict(grid), atol=1e-4
        )

    def test_platt_takes_log_odds_of_probabilities(self):
        x, y, _ = self.problem()
        x = np.clip(x, 0.01, 0.99)
        odds = np.log(x / (1 - x))
        by_odds = GroupCalibrator("platt").fit(odds[:, None], y)
        found = GroupCalibrator("platt").fit(x[:, None], y)
        np.testing.assert_allclose(
            found.transform(x[:, None]), by_odds.transform(odds[:, None])
        )

    def test_binning_is_the_mean_of_each_bin(self):
        rng = np.random.default_rng(0)
        x, y = rng.permutation(60) / 60, rng.random(60)
        found = GroupCalibrator("binning", n_bins=6).fit(x[:, None], y)
        rank = np.argsort(np.argsort(x))
        means = [y[rank // 10 == b].mean() for b in range(6)]
        np.testing.assert_allclose(
            found.transform(x[:, None])[:, 0], np.array(means)[rank // 10]
        )

    def test_smoother_is_the_curve(self):
        x, y, _ = self.problem()
        x = x + np.random.default_rng(0).uniform(0, 1e-3, x.size)
        found = GroupCalibrator(NadarayaWatsonRegressor(0.1)).fit(x[:, None], y)
        curve = nadaraya_watson(y, x, np.sort(x), bandwidth=0.1)
        np.testing.assert_allclose(
            found.transform(np.sort(x)[:, None])[:, 0], curve.estimate, atol=2e-4
        )
        # Constant outside.
        ends = found.transform([[-9.0], [x.min()], [x.max()], [9.0]])[:, 0]
        assert ends[0] == ends[1]
        assert ends[2] == ends[3]

    def test_a_compact_kernel_is_bridged(self):
        x = np.concatenate([np.linspace(0, 0.2, 50), np.linspace(0.8, 1, 50)])
        model = NadarayaWatsonRegressor(0.05, kernel="epanechnikov")
        found = GroupCalibrator(model).fit(x[:, None], x).transform([[0.5]])
        assert found == pytest.approx(0.5, abs=0.02)

    def test_any_classifier_or_regressor(self):
        x, y, w = self.problem()
        grid = self.grid[:, None]
        plain = LogisticRegression().fit(x[:, None], y, w)
        found = self.fit(LogisticRegression()).transform(grid)[:, 0]
        np.testing.assert_allclose(found, plain.predict_proba(grid)[:, 1])
        plain = LinearRegression().fit(x[:, None], y, w)
        found = self.fit(LinearRegression()).transform(grid)[:, 0]
        np.testing.assert_allclose(found, plain.predict(grid))

    def test_a_classifier_of_a_group_with_one_outcome(self):
        X, y, _ = scores(200, 0)
        y[X["group"] == "a"] = 1
        found = calibrated(LogisticRegression(), (X, y), (X, y))
        assert (found[X["group"] == "a"] == 1).all()

    @pytest.mark.parametrize(
        "calibrator", [*METHODS, GradientBoostingRegressor(random_state=0)]
    )
    def test_monotonic_projects_and_can_be_inverted(self, calibrator):
        X, y, _ = scores(3000, 0, WAVE)
        model = GroupCalibrator(calibrator, sensitive_features="group")
        if not isinstance(calibrator, str) or calibrator in METHODS[::3]:
            with pytest.raises(ValueError, match="curves that fall nowhere.*'b'"):
                model.fit(X, y).inverse_transform(X)
        model.set_params(monotonic=True).fit(X, y)
        order = X.sort_values(["group", "score"])
        found = model.transform(order)[:, 0]
        if calibrator != "platt":  # which does not fall here either
            for group in "ab":
                inside = (order["group"] == group).to_numpy()
                assert (np.diff(found[inside]) >= 0).all()
            outcome = order.assign(score=found)
            back = order.assign(score=model.inverse_transform(outcome)[:, 0])
            np.testing.assert_allclose(model.transform(back)[:, 0], found, atol=1e-9)

    def test_platt_can_be_inverted(self):
        X, y, _ = scores(3000, 0)
        model = GroupCalibrator("platt", sensitive_features="group").fit(X, y)
        outcome = X.assign(score=model.transform(X)[:, 0])
        np.testing.assert_allclose(
            model.inverse_transform(outcome)[:, 0], X["score"], atol=1e-9
        )


class TestGroups:
    def test_each_is_fitted_alone(self):
        X, y, _ = scores(500, 0)
        model = GroupCalibrator(sensitive_features="group").fit(X, y)
        assert model.groups_ == ("a", "b")
        for group in "ab":
            rows = (X["group"] == group).to_numpy()
            alone = GroupCalibrator().fit(X.loc[rows, ["score"]], y[rows])
            expected = alone.transform(X.loc[rows, ["score"]])
            np.testing.assert_array_equal(model.transform(X[rows]), expected)
            curve = model.calibrators_[group]
            np.testing.assert_array_equal(
                curve.predict(X["score"][rows]), expected.T[0]
            )

    def test_columns_metadata_functions_and_libraries_agree(self):
        X, y, _ = scores(300, 0)
        X["user"] = np.arange(300) // 3
        options = {"sensitive_features": "group", "cluster": "user"}
        expected = GroupCalibrator(**options).fit_transform(X, y)
        found = GroupCalibrator(**options).fit_transform(pl.from_pandas(X), y)
        np.testing.assert_array_equal(found, expected)
        given = {"sensitive_features": X["group"], "cluster": X["user"]}
        found = GroupCalibrator().fit_transform(X[["score"]].to_numpy(), y, **given)
        np.testing.assert_array_equal(found, expected)
        function = GroupCalibrator(
            sensitive_features=lambda _: X["group"], cluster=lambda _: X["user"]
        )
        np.testing.assert_array_equal(function.fit_transform(X[["score"]], y), expected)

    def test_several_columns_are_crossed(self):
        X, y, _ = scores(500, 0)
        X["sex"] = np.arange(500) % 2
        model = GroupCalibrator(sensitive_features=["group", "sex"]).fit(X, y)
        assert model.groups_ == (("a", 0), ("a", 1), ("b", 0), ("b", 1))
        assert list(model.get_feature_names_out()) == ["score"]

    def test_unseen_ones_warn_once_and_are_pooled(self):
        X, y, _ = scores(500, 0)
        model = GroupCalibrator(sensitive_features="group").fit(X, y)
        new = X.assign(group=["c", "d", *X["group"][2:]])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = model.transform(new)
        (warning,) = caught
        assert "'c', 'd'" in str(warning.message)
        pooled = GroupCalibrator().fit(X[["score"]], y).transform(X[["score"]])
        np.testing.assert_array_equal(found[:2], pooled[:2])
        np.testing.assert_array_equal(found[2:], model.transform(X)[2:])

    def test_small_ones_are_pooled(self):
        X, y, _ = scores(500, 0)
        X.loc[:18, "group"] = "small"
        model = GroupCalibrator(sensitive_features="group")
        with pytest.warns(UserWarning, match="min_group_size=20 rows .*: 'small'"):
            model.fit(X, y)
        assert model.calibrators_["small"] is model.pooled_calibrator_
        model.set_params(min_group_size=19).fit(X, y)
        assert model.calibrators_["small"].n_rows == 19
        X["user"] = np.where(X["group"] == "small", 0, np.arange(500))
        model.set_params(cluster="user", min_group_size=2)
        with pytest.warns(UserWarning, match="min_group_size=2 clusters .*: 'small'"):
            model.fit(X, y)

    def test_weight_zero_removes_a_group(self):
        X, y, _ = scores(500, 0)
        weight = (X["group"] == "a").to_numpy().astype(float)
        model = GroupCalibrator(sensitive_features="group").fit(X, y, weight)
        assert model.groups_ == ("a",)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"calibrator": "spline"}, "calibrator must be one of"),
            ({"calibrator": LinearRegression}, "calibrator must be one of"),
            ({"calibrator": LinearSVC()}, "a classifier needs predict_proba"),
            ({"sensitive_features": "sex"}, "there is no 'sex'"),
            ({"sensitive_features": 0.5}, "sensitive_features must be a column name"),
            ({"sensitive_features": True}, "must be passed as metadata"),
            ({"cluster_weight": "user"}, "cluster_weight must be one of"),
            ({"monotonic": "yes"}, "monotonic must be one of"),
            ({"min_group_size": 0}, "min_group_size must be an integer"),
            ({"n_bins": 2.5}, "n_bins must be an integer"),
            ({"cluster": "score"}, "X must have a column of scores"),
        ],
    )
    def test_bad_options_raise(self, options, message):
        X, y, _ = scores(100, 0)
        model = GroupCalibrator(**{"sensitive_features": "group", **options})
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)

    def test_bad_input_raises(self):
        X, y, _ = scores(100, 0)
        model = GroupCalibrator(sensitive_features="group")
        for wrong, message in [
            (np.append(y[1:], np.nan), "y must be finite"),
            (y[1:], "same number of rows"),
            (None, "requires y"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.fit(X, wrong)
        with pytest.raises(ValueError, match="must be given once"):
            model.fit(X, y, sensitive_features=X["group"])
        with pytest.raises(ValueError, match="missing labels"):
            model.fit(X.assign(group=[None, *X["group"][1:]]), y)
        with pytest.raises(ValueError, match=r"y must be in \[0, 1\]"):
            GroupCalibrator("platt").fit(X[["score"]], 2 * y)
        with pytest.raises(ValueError, match="must be disjoint groups"):
            GroupCalibrator().fit(
                X[["score"]], y, sensitive_features=np.ones((100, 2), dtype=bool)
            )
        fitted = GroupCalibrator().fit(X[["score"]], y)
        with pytest.raises(ValueError, match="both to fit and afterwards, or to nei"):
            fitted.transform(X[["score"]], sensitive_features=X["group"])


CANDIDATES = {
    "calibrate__calibrator": ["isotonic", NadarayaWatsonRegressor()],
    "calibrate__monotonic": [False, True],
}


class TestInsideScikitLearn:
    def pipeline(self, **options):
        steps = [("calibrate", GroupCalibrator(**options)), ("fit", LinearRegression())]
        return Pipeline(steps)

    @pytest.mark.parametrize("found", [False, True])
    def test_names_of_polars_columns(self, found, monkeypatch):
        """With scikit-learn 1.6 to 1.8, too, which do not find those of polars 2."""
        finds = found and sklearn_private._FINDS_NAMES
        monkeypatch.setattr(sklearn_private, "_FINDS_NAMES", finds)
        X, y, _ = scores(60, 0)
        X = pl.from_pandas(X)
        model = GroupCalibrator("platt", sensitive_features="group").fit(X, y)
        assert model.feature_names_in_.tolist() == ["score", "group"]
        assert model.get_feature_names_out().tolist() == ["score"]
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(X.rename({"score": "other"}))

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_search_by_column(self, library):
        X, y, _ = scores(400, 0)
        X = pl.from_pandas(X) if library == "polars" else X
        search = GridSearchCV(
            self.pipeline(sensitive_features="group"),
            CANDIDATES,
            error_score="raise",
            cv=3,
        ).fit(X, y)
        assert search.best_score_ > 0.1

    @pytest.mark.parametrize("library", ["numpy", *rarely("pandas", "polars")])
    def test_search_by_metadata(self, library):
        X, y, _ = scores(400, 0)
        frame = X[["score"]]
        data = {"numpy": frame.to_numpy(), "pandas": frame}.get(
            library, pl.from_pandas(frame)
        )
        options = {"cv": KFold(3), "error_score": "raise"}
        by_column = GridSearchCV(
            self.pipeline(sensitive_features="group"), CANDIDATES, **options
        ).fit(X, y)
        with sklearn.config_context(enable_metadata_routing=True):
            search = GridSearchCV(
                self.pipeline(sensitive_features=True),
                CANDIDATES,
                scoring=make_fairness_scorer(r2_score, sensitive_features=True),
                **options,
            )
            search.fit(data, y, sensitive_features=X["group"])
            found = search.best_estimator_.predict(data, sensitive_features=X["group"])
        np.testing.assert_allclose(found, by_column.predict(X))

    def test_set_output_clone_pickle_and_html(self):
        X, y, _ = scores(300, 0)
        model = GroupCalibrator(sensitive_features="group")
        for library, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
            out = clone(model).set_output(transform=library).fit_transform(X, y)
            assert isinstance(out, frame)
            assert list(out.columns) == ["score"]
        model.fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
        assert "GroupCalibrator" in model._repr_html_()

    def test_plot(self):
        plt = pytest.importorskip("matplotlib.pyplot")
        X, y, _ = scores(300, 0)
        model = GroupCalibrator(sensitive_features="group").fit(X, y)
        display = model.plot()
        score, outcome = display.lines_[1].get_data()
        np.testing.assert_allclose(model.calibrators_["b"].predict(score), outcome)
        with pytest.raises(ValueError, match="column must be an integer"):
            model.plot(column=1)
        plt.close("all")


def test_truth_is_far_apart():
    """Else parity would hold before."""
    grid = np.linspace(0.1, 0.9, 9)
    assert (TRUTH["a"](grid) - TRUTH["b"](grid) > 0.1).any()
