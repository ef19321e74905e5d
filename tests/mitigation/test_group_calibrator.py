"""Calibrated scores mean the same in all groups."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import special
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skrankfair.mitigation import (
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupCalibrator,
)
from skrankfair.smoothing import NadarayaWatsonRegressor, nadaraya_watson
from tests.mitigation.common import problem
from tests.mitigation.data import METHODS, TRUTH, WAVE, scores, uniform
from tests.scoring.data import GroupShift

GROUP = {"sensitive_features": "group"}
COLUMNS = {**GROUP, "drop_metadata_columns": True}
LABELS = {**GROUP, "cluster": "user"}


def curve_of(calibrator, x, y, at, weight=None, **options):
    """Return the calibrated scores at points, of scores of one group."""
    model = GroupCalibrator(calibrator, **options)
    model.fit(x[:, None], y, sample_weight=weight)
    return model.transform(at[:, None])[:, 0]


def test_clusters_outweigh_rows():
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

    grid = np.linspace(-0.2, 1.2, 200)

    def test_isotonic_is_that_of_scikit_learn(self):
        x, y, w = self.problem()
        reference = IsotonicRegression(out_of_bounds="clip").fit(x, y, w)
        for unit in (1.0, 2.0**-60):  # which scikit-learn takes for one score
            found = curve_of("isotonic", unit * x, y, unit * self.grid, w)
            np.testing.assert_allclose(found, reference.predict(self.grid), atol=1e-12)

    def test_platt_is_that_of_scikit_learn(self):
        x, y, w = self.problem()
        x, grid = 5 * x - 2, 5 * self.grid - 2  # no probabilities
        reference = _SigmoidCalibration().fit(x, y, w)
        found = curve_of("platt", x, y, grid, w)
        np.testing.assert_allclose(found, reference.predict(grid), atol=1e-4)

    def test_platt_takes_log_odds_and_0_and_1_for_half_a_step_from_there(self):
        """Else the log-odds of these were the curve: a forest says 0 for 0.005."""
        rng = np.random.default_rng(0)
        truth = rng.random((2, 2000)) ** 2
        x = rng.binomial(100, truth) / 100
        y = (rng.random((2, 2000)) < truth).astype(float)
        found = GroupCalibrator("platt").fit(x[0][:, None], y[0])
        calibrated = found.transform(x[1][:, None])
        odds = special.logit(np.clip(x, 0.005, 0.995))
        expected = curve_of("platt", odds[0], y[0], odds[1])
        np.testing.assert_allclose(calibrated[:, 0], expected)
        loss = ((expected - y[1]) ** 2).mean()
        assert loss < ((y[1] - truth[1]) ** 2).mean() + 0.002
        back = found.inverse_transform(calibrated)[:, 0]
        assert (x.min(), x.max()) == (0, 1)
        ends = back[[x[1].argmin(), x[1].argmax()]].tolist()
        assert ends == [0.0, pytest.approx(0.995)]

    def test_binning_is_the_mean_of_each_bin(self):
        rng = np.random.default_rng(0)
        x, y = rng.permutation(60) / 60, rng.random(60)
        rank = np.argsort(np.argsort(x))
        means = np.array([y[rank // 10 == b].mean() for b in range(6)])
        found = curve_of("binning", x, y, x, n_bins=6)
        np.testing.assert_allclose(found, means[rank // 10])

    def test_smoother_is_the_curve(self):
        x, y, _ = self.problem()
        x = x + np.random.default_rng(0).uniform(0, 1e-3, x.size)
        at = np.array([-9.0, *np.sort(x), 9.0])
        found = curve_of(NadarayaWatsonRegressor(0.1), x, y, at)
        curve = nadaraya_watson(y, x, at[1:-1], bandwidth=0.1)
        np.testing.assert_allclose(found[1:-1], curve.estimate, atol=2e-4)
        np.testing.assert_array_equal(found[[0, -1]], found[[1, -2]])

    def test_scores_of_heavy_tails_are_smoothed_by_their_ranks(self):
        rng = np.random.default_rng(0)
        x = np.exp(2 * rng.normal(size=(2, 4000)))
        expected = x / (1 + x)
        y = (rng.random(4000) < expected[0]).astype(float)
        of_ranks, of_scores = (
            np.mean((curve_of(name, x[0], y, x[1], monotonic=True) - expected[1]) ** 2)
            for name in ("nadaraya_watson", NadarayaWatsonRegressor())
        )
        assert of_ranks < min(0.002, of_scores / 3)

    def test_scores_of_light_tails_are_smoothed_as_they_are(self):
        rng = np.random.default_rng(1)
        x = rng.logistic(size=2000)
        y = (rng.logistic(size=2000) < x).astype(float)
        expected = curve_of(NadarayaWatsonRegressor(method="fast"), x, y, x)
        found = curve_of("nadaraya_watson", x, y, x)
        np.testing.assert_array_equal(found, expected)

    def test_a_compact_kernel_is_bridged(self):
        x = np.concatenate([np.linspace(0, 0.2, 50), np.linspace(0.8, 1, 50)])
        model = NadarayaWatsonRegressor(0.05, kernel="epanechnikov")
        assert curve_of(model, x, x, np.array([0.5])) == pytest.approx(0.5, abs=0.02)

    def test_any_classifier_or_regressor(self):
        x, y, w = self.problem()
        for model, predict in (
            (LogisticRegression(), lambda model, X: model.predict_proba(X)[:, 1]),
            (LinearRegression(), LinearRegression.predict),
        ):
            found = curve_of(model, x, y, self.grid, w)
            expected = predict(model.fit(x[:, None], y, w), self.grid[:, None])
            np.testing.assert_allclose(found, expected)

    def test_a_classifier_of_a_group_with_one_outcome(self):
        X, y, _ = scores(200, 0)
        y[X["group"] == "a"] = 1
        model = GroupCalibrator(LogisticRegression(), shrinkage=None, **GROUP)
        assert (model.fit(X, y).transform(X[X["group"] == "a"]) == 1).all()

    @pytest.mark.parametrize(
        "calibrator", [*METHODS, GradientBoostingRegressor(n_estimators=20)]
    )
    def test_monotonic_projects_and_can_be_inverted(self, calibrator):
        X, y, _ = scores(3000, 0, WAVE)
        model = GroupCalibrator(calibrator, **GROUP)
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


class TestReference:
    def test_maps_onto_the_scale_of_the_reference(self):
        """f_a(s) = s and f_b(s) = s²: b gets s² on the scale of a, and a √s on b's."""
        X, y, _ = uniform(20_000, 0)
        plain = GroupCalibrator(**GROUP, monotonic=True).fit(X, y)
        outcome = plain.transform(X)
        for reference, curve in (("a", np.square), ("b", np.sqrt)):
            model = clone(plain).set_params(reference=reference).fit(X, y)
            found, own = model.transform(X)[:, 0], (X["group"] == reference).to_numpy()
            np.testing.assert_array_equal(found[own], X["score"][own])
            inside = ~own & X["score"].between(0.2, 0.8).to_numpy()
            error = found[inside] - curve(X["score"][inside])
            assert np.abs(error).max() < 0.08
            assert np.sqrt(np.mean(error**2)) < 0.03
            back = model.inverse_transform(X.assign(score=found))[:, 0]
            np.testing.assert_allclose(back[inside], X["score"][inside], atol=0.02)
            # It is the curve of the reference, inverted, of the calibrated score.
            expected = plain.calibrators_[reference].inverse(outcome[~own])
            np.testing.assert_array_equal(found[~own], expected[:, 0])

    def test_bad_references_are_refused(self):
        for reference, truth, message in (
            ("z", TRUTH, "reference must be one of the groups"),
            ("b", WAVE, "reference must have a curve that falls"),
        ):
            X, y, _ = scores(4000, 0, truth)
            model = GroupCalibrator(**GROUP, reference=reference).fit(X, y)
            with pytest.raises(ValueError, match=message):
                model.transform(X)


class TestGroups:
    def test_each_is_fitted_alone(self):
        X, y, _ = scores(500, 0)
        model = GroupCalibrator(**GROUP, shrinkage=None).fit(X, y)
        assert model.groups_ == ("a", "b")
        for group in "ab":
            rows = (X["group"] == group).to_numpy()
            score = X["score"].to_numpy()[rows]
            expected = curve_of("nadaraya_watson", score, y[rows], score)
            np.testing.assert_array_equal(model.transform(X[rows])[:, 0], expected)
            found = model.calibrators_[group].predict(score)
            np.testing.assert_array_equal(found, expected)

    def test_small_ones_are_pooled(self):
        X, y, _ = scores(500, 0)
        X.loc[:18, "group"] = "small"
        model = GroupCalibrator(**GROUP)
        with pytest.warns(UserWarning, match="min_group_size=20 rows .*: 'small'"):
            model.fit(X, y)
        assert model.calibrators_["small"] is model.pooled_calibrator_
        model.set_params(min_group_size=19).fit(X, y)
        assert model.calibrators_["small"] is not model.pooled_calibrator_
        X["user"] = np.where(X["group"] == "small", 0, np.arange(500))
        model.set_params(cluster="user", min_group_size=2)
        with pytest.warns(UserWarning, match="min_group_size=2 clusters .*: 'small'"):
            model.fit(X, y)

    def test_bad_input_raises(self):
        X, y, _ = scores(100, 0)
        for model, wrong, message in (
            (GroupCalibrator(LinearSVC()), y, "a classifier needs predict_proba"),
            (GroupCalibrator(cluster="score"), y, "X must have a column of scores"),
            (GroupCalibrator(), [*y[1:], np.nan], "y must be finite"),
            (GroupCalibrator("platt"), 2 * y, r"y must be in \[0, 1\]"),
        ):
            with pytest.raises(ValueError, match=message):
                model.set_params(**GROUP).fit(X, wrong)
        for name in ("nadaraya_watson", "isotonic", "binning"):
            with pytest.raises(ValueError, match="y must be between -1e.60 and 1e.60"):
                GroupCalibrator(name, **GROUP).fit(X, np.where(y, 1e200, 0.0))
        with pytest.raises(ValueError, match="at most 100,000,000 are rows repeated"):
            GroupCalibrator(KNeighborsRegressor()).fit(X[["score"]], y, 1e9 + 0 * y)


def test_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y, _ = scores(300, 0)
    model = GroupCalibrator(**GROUP).fit(X, y)
    score, outcome = model.plot().lines_[1].get_data()
    np.testing.assert_allclose(model.calibrators_["b"].predict(score), outcome)
    with pytest.raises(ValueError, match="column must be an integer"):
        model.plot(column=1)
    plt.close("all")


class TestClassifier:
    @pytest.mark.parametrize("ensemble", [False, True])
    @pytest.mark.parametrize(
        ("name", "ours"), [("isotonic", "isotonic"), ("sigmoid", "platt")]
    )
    def test_one_group_is_scikit_learns(self, ensemble, name, ours):
        X, y = problem(600, columns=["x", "z"])
        plain, options = LogisticRegression(), {"cv": KFold(3), "ensemble": ensemble}
        reference = CalibratedClassifierCV(plain, method=name, **options).fit(X, y)
        found = GroupCalibratedClassifier(plain, calibrator=ours, **options).fit(X, y)
        expected = reference.predict_proba(X)
        np.testing.assert_allclose(found.predict_proba(X), expected, atol=1e-3)
        assert len(found.estimators_) == (3 if ensemble else 1)

    def test_curves_fall_nowhere_unless_asked(self):
        """The score is one of the same outcome."""
        X, y = problem(400)
        forest = RandomForestClassifier(30, random_state=0)
        made = GroupCalibrator(monotonic=False, shrinkage=None)
        for calibrator, monotone in (("nadaraya_watson", True), (made, False)):
            model = GroupCalibratedClassifier(forest, calibrator=calibrator, **COLUMNS)
            curve = model.fit(X, y).group_calibrators_[0].calibrators_["a"]
            steps = np.diff(curve.predict(np.linspace(0, 1, 101)))
            assert (steps >= -1e-12).all() == monotone

    @pytest.mark.parametrize("cv", [3, GroupKFold(3)])
    def test_a_splitter_gets_the_clusters(self, cv):
        X, y = problem(400)
        model = GroupCalibratedClassifier(Recorder(), cv=cv, ensemble=True, **LABELS)
        estimators = model.fit(X, y).estimators_
        assert len(estimators) == 3
        for each in estimators:
            assert not each.users_ & each.scored_
            assert each.users_ | each.scored_ == set(X["user"])

    def test_a_fold_without_a_group_says_so(self):
        X, y = problem(400, columns=["x", "z", "group"])
        order = np.argsort(X["group"].to_numpy(), kind="stable")
        model = GroupCalibratedClassifier(LogisticRegression(), cv=KFold(2), **COLUMNS)
        with pytest.warns(UserWarning, match="fitted without rows of these groups"):
            model.fit(X.iloc[order], y[order])

    def test_frozen_is_not_fitted(self):
        X, y = problem(1000, columns=["x", "z", "group"])
        fitted = LogisticRegression().fit(X[["x", "z"]][:500], y[:500])
        model = GroupCalibratedClassifier(FrozenEstimator(fitted), **COLUMNS)
        new, y = X[500:], y[500:]
        found = model.fit(new, y).predict_proba(new)[:, 1]
        score, who = fitted.decision_function(new[["x", "z"]])[:, None], new["group"]
        calibrator = GroupCalibrator(monotonic=True)
        calibrator.fit(score, y == 1, sensitive_features=who)
        expected = calibrator.transform(score, sensitive_features=who)
        np.testing.assert_allclose(found, expected[:, 0])

    def test_methods_agree(self):
        X, y = problem(500)
        model = GroupCalibratedClassifier(LogisticRegression(), **COLUMNS).fit(X, y)
        positive = model.predict_proba(X)[:, 1]
        np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)
        np.testing.assert_array_equal(model.predict(X) == 1, positive > 0.5)
        odds = model.decision_function(X)
        np.testing.assert_allclose(1 / (1 + np.exp(-odds)), positive)
        forest = GroupCalibratedClassifier(RandomForestClassifier(5), **COLUMNS)
        assert not hasattr(forest, "decision_function")
        assert not hasattr(forest.fit(X, y), "decision_function")

    def test_the_model_gets_all_columns_or_the_others(self):
        X, y = problem(200)
        for drop, expected in [(False, list(X.columns)), (True, ["x", "z"])]:
            model = GroupCalibratedClassifier(
                Recorder(), drop_metadata_columns=drop, **LABELS
            ).fit(X, y)
            assert model.estimators_[0].columns_ == expected
            dropped = ["user"] if drop else []  # which only the fit needs
            assert [*model.feature_names_in_, *dropped] == list(X.columns)

    def test_options_of_the_calibrator(self):
        X, y = problem(500)
        options = {"min_group_size": 400, "sensitive_features": "no column"}
        model = GroupCalibratedClassifier(LogisticRegression(), **COLUMNS)
        model.set_params(calibrator=GroupCalibrator("binning", n_bins=3, **options))
        with pytest.warns(UserWarning, match="fewer than min_group_size=400") as caught:
            model.fit(X, y)
        assert [warning.filename for warning in caught] == [__file__]
        assert np.unique(model.predict_proba(X)[:, 1]).size == 3

    def test_a_model_without_weights_warns(self):
        X, y = problem(200)
        model = GroupCalibratedClassifier(Recorder(), **LABELS)
        with pytest.warns(UserWarning, match="Recorder does not take sample_weight"):
            model.fit(X, y, sample_weight=np.ones(200))


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps the users that it is fitted with and that it scores."""

    def fit(self, X, y):
        self.users_, self.classes_ = set(X.get("user", [])), np.unique(y)
        self.columns_ = list(X.columns)
        return self

    def predict_proba(self, X):
        if not hasattr(self, "scored_"):
            self.scored_ = set(X.get("user", []))
        positive = 1 / (1 + np.exp(-X["x"].to_numpy()))
        return np.column_stack([1 - positive, positive])


class TestRegressor:
    def problem(self, seed=0, n=3000):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"x": rng.normal(size=n), "group": rng.choice(["a", "b"], n)})
        mean = np.where(X["group"] == "a", X["x"], np.abs(X["x"]) - 1)
        return X, mean + 0.3 * rng.normal(size=n), mean

    @pytest.mark.parametrize("ensemble", [False, True])
    def test_reaches_the_mean_of_each_group(self, ensemble):
        X, y, _ = self.problem()
        fresh, _, mean = self.problem(1)
        model = GroupCalibratedRegressor(LinearRegression(), **COLUMNS)
        model.set_params(ensemble=ensemble).fit(X, y)
        inside = np.abs(fresh["x"]) < 1.5
        error = (model.predict(fresh) - mean)[inside]
        assert np.sqrt(np.mean(error**2)) < 0.12
        plain = LinearRegression().fit(X[["x"]], y).predict(fresh[["x"]])
        assert np.sqrt(np.mean((plain - mean)[inside] ** 2)) > 0.4

    def test_predicts_arrays_where_transformers_return_frames(self):
        X, y, _ = self.problem(n=300)
        model = GroupCalibratedRegressor(LinearRegression(), **COLUMNS).fit(X, y)
        expected = model.predict(X)
        with config_context(transform_output="pandas"):
            np.testing.assert_array_equal(model.predict(X), expected)

    def test_rows_in_several_or_no_folds(self):
        X, y, _ = self.problem(n=500)
        rule = {"shrinkage": None, "cluster_weight": "row"}
        calibrator = GroupCalibrator(KNeighborsRegressor(), **rule)
        model = GroupCalibratedRegressor(LinearRegression(), **COLUMNS)
        model.set_params(cv=ShuffleSplit(3, random_state=0), calibrator=calibrator)
        of_groups = model.fit(X, y).group_calibrators_[0].calibrators_.values()
        fits = [of_group.curves[0].estimator for of_group in of_groups]
        assert sum(fit.n_samples_fit_ for fit in fits) == 150

    def test_the_model_gets_the_metadata_that_it_wants(self):
        X, y, _ = self.problem(n=300)
        features, group = X[["x"]], X["group"]
        model = GroupCalibratedRegressor(GroupShift())
        plain = GroupShift().fit(features, y, sensitive_features=group)
        model.fit(features, y, sensitive_features=group)
        assert model.estimators_[0].mean_ == plain.mean_
        found = model.predict(features, sensitive_features=group)
        with sklearn.config_context(enable_metadata_routing=True):
            inner = GroupShift().set_fit_request(sensitive_features=True)
            inner.set_predict_request(sensitive_features=True)
            routed = GroupCalibratedRegressor(inner, sensitive_features=True)
            routed.fit(features, y, sensitive_features=group)
            again = routed.predict(features, sensitive_features=group)
            np.testing.assert_array_equal(again, found)


def test_weights_reach_the_last_step_of_a_pipeline():
    X, y = problem(300, columns=["x", "z", "group"])
    weight = (X["x"] > 0).to_numpy().astype(float)
    model = GroupCalibratedClassifier(make_pipeline(LogisticRegression()), **COLUMNS)
    model.fit(X, y, sample_weight=weight)
    plain = LogisticRegression().fit(X[["x", "z"]], y, weight)
    np.testing.assert_array_equal(model.estimators_[0][-1].coef_, plain.coef_)
