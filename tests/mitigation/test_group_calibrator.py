"""Calibrated scores mean the same in all groups."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skrankfair.mitigation import (
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupCalibrator,
)
from skrankfair.smoothing import NadarayaWatsonRegressor, nadaraya_watson
from tests.mitigation.common import problem
from tests.mitigation.data import WAVE, scores, uniform

METHODS = ["nadaraya_watson", "isotonic", "platt", "binning"]
COLUMNS = {"sensitive_features": "group", "drop_metadata_columns": True}
LABELS = {"sensitive_features": "group", "cluster": "user"}


def calibrated(calibrator, fit, test, **options):
    model = GroupCalibrator(calibrator, sensitive_features="group", **options)
    return model.fit(*fit[:2]).transform(test[0])[:, 0]


class TestTruth:
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

    def test_platt_takes_scores_of_0_and_1_for_half_a_step_from_there(self):
        """Their log-odds would else be the curve: a forest says 0 where 0.005 is."""
        rng = np.random.default_rng(0)
        truth = rng.random((2, 2000)) ** 2
        x = rng.binomial(100, truth) / 100
        y = (rng.random((2, 2000)) < truth).astype(float)
        assert (x == 0).any()
        assert (x == 1).any()
        found = GroupCalibrator("platt").fit(x[0][:, None], y[0])
        steps = np.clip(x, 0.005, 0.995)
        odds = np.log(steps / (1 - steps))
        by_odds = GroupCalibrator("platt").fit(odds[0][:, None], y[0])
        calibrated = found.transform(x[1][:, None])
        np.testing.assert_allclose(calibrated, by_odds.transform(odds[1][:, None]))
        loss = ((calibrated[:, 0] - y[1]) ** 2).mean()
        assert loss < ((y[1] - truth[1]) ** 2).mean() + 0.002
        low, high = found.inverse_transform(calibrated)[:, 0][
            [x[1].argmin(), x[1].argmax()]
        ]
        assert (low, high) == (0.0, pytest.approx(0.995))

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

    def test_scores_of_heavy_tails_are_smoothed_by_their_ranks(self):
        rng = np.random.default_rng(0)
        x, truth = np.exp(2 * rng.normal(size=(2, 4000))), {}
        expected = x / (1 + x)
        y = (rng.random(4000) < expected[0]).astype(float)
        for name in ("nadaraya_watson", NadarayaWatsonRegressor()):
            found = GroupCalibrator(name, monotonic=True).fit(x[0][:, None], y)
            error = found.transform(x[1][:, None])[:, 0] - expected[1]
            truth[str(name)] = np.mean(error**2)
        of_ranks, of_scores = truth.values()
        assert of_ranks < 0.002
        assert of_ranks < of_scores / 3

    def test_scores_of_light_tails_are_smoothed_as_they_are(self):
        rng = np.random.default_rng(1)
        x = rng.logistic(size=(2000, 1))
        y = (rng.logistic(size=2000) < x[:, 0]).astype(float)
        smoother = GroupCalibrator(NadarayaWatsonRegressor(method="fast")).fit(x, y)
        np.testing.assert_array_equal(
            GroupCalibrator().fit(x, y).transform(x), smoother.transform(x)
        )

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
        found = calibrated(LogisticRegression(), (X, y), (X, y), shrinkage=None)
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


class TestReference:
    def test_maps_onto_the_scale_of_the_reference(self):
        """f_a(s) = s and f_b(s) = s²: b gets s² on the scale of a, and a √s on b's."""
        X, y, _ = uniform(40_000, 0)
        for reference, curve in (("a", np.square), ("b", np.sqrt)):
            model = GroupCalibrator(
                sensitive_features="group", reference=reference, monotonic=True
            ).fit(X, y)
            found, own = model.transform(X)[:, 0], (X["group"] == reference).to_numpy()
            np.testing.assert_array_equal(found[own], X["score"][own])
            inside = ~own & X["score"].between(0.2, 0.8).to_numpy()
            expected = curve(X["score"][inside])
            assert np.abs(found[inside] - expected).max() < 0.08
            assert np.sqrt(np.mean((found[inside] - expected) ** 2)) < 0.03
            back = model.inverse_transform(X.assign(score=found))[:, 0]
            np.testing.assert_allclose(back[inside], X["score"][inside], atol=0.02)
            # It is the curve of the reference, inverted, of the calibrated score.
            plain = GroupCalibrator(sensitive_features="group", monotonic=True)
            outcome = plain.fit(X, y).transform(X)
            np.testing.assert_array_equal(
                found[~own], plain.calibrators_[reference].inverse(outcome[~own])[:, 0]
            )

    def test_bad_references_are_refused(self):
        X, y, _ = scores(2000, 0)
        model = GroupCalibrator(sensitive_features="group", reference="z").fit(X, y)
        with pytest.raises(ValueError, match="reference must be one of the groups"):
            model.transform(X)
        X, y, _ = scores(4000, 0, WAVE)
        model = GroupCalibrator(sensitive_features="group", reference="b").fit(X, y)
        with pytest.raises(ValueError, match="reference must have a curve that falls"):
            model.transform(X)


class TestGroups:
    def test_each_is_fitted_alone(self):
        X, y, _ = scores(500, 0)
        model = GroupCalibrator(sensitive_features="group", shrinkage=None).fit(X, y)
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

    def test_bad_input_raises(self):
        X, y, _ = scores(100, 0)
        svc = GroupCalibrator(LinearSVC(), sensitive_features="group")
        with pytest.raises(ValueError, match="a classifier needs predict_proba"):
            svc.fit(X, y)
        without = GroupCalibrator(sensitive_features="group", cluster="score")
        with pytest.raises(ValueError, match="X must have a column of scores"):
            without.fit(X, y)
        with pytest.raises(ValueError, match="y must be finite"):
            GroupCalibrator(sensitive_features="group").fit(X, [*y[1:], np.nan])
        for calibrator in ("nadaraya_watson", "isotonic", "binning"):
            with pytest.raises(ValueError, match="y must be between -1e.60 and 1e.60"):
                GroupCalibrator(calibrator).fit(X[["score"]], np.where(y, 1e200, 0.0))
        with pytest.raises(ValueError, match=r"y must be in \[0, 1\]"):
            GroupCalibrator("platt").fit(X[["score"]], 2 * y)


def test_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y, _ = scores(300, 0)
    model = GroupCalibrator(sensitive_features="group").fit(X, y)
    display = model.plot()
    score, outcome = display.lines_[1].get_data()
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
        X, y = problem(600)
        X, options = X[["x", "z"]], {"cv": KFold(3), "ensemble": ensemble}
        reference = CalibratedClassifierCV(
            LogisticRegression(), method=name, **options
        ).fit(X, y)
        found = GroupCalibratedClassifier(
            LogisticRegression(), calibrator=ours, **options
        ).fit(X, y)
        np.testing.assert_allclose(
            found.predict_proba(X), reference.predict_proba(X), atol=1e-3
        )
        assert len(found.estimators_) == (3 if ensemble else 1)

    def test_curves_fall_nowhere_unless_asked(self):
        """The score is one of the same outcome."""
        X, y = problem(400)
        made = GroupCalibrator(monotonic=False, shrinkage=None)
        for calibrator, monotone in (("nadaraya_watson", True), (made, False)):
            model = GroupCalibratedClassifier(
                RandomForestClassifier(30, random_state=0), calibrator=calibrator,
                **COLUMNS,
            ).fit(X, y)  # fmt: skip
            curves = model.group_calibrators_[0].transform(
                np.linspace(0, 1, 101)[:, None], sensitive_features=np.full(101, "a")
            )
            assert (np.diff(curves[:, 0]) >= -1e-12).all() == monotone

    def test_scores_are_out_of_fold(self):
        """A forest that knows its own rows by heart is calibrated nevertheless."""
        X, y = problem(1500)
        fresh, truth = problem(3000, 1)
        forest = RandomForestClassifier(30, random_state=0)
        model = GroupCalibratedClassifier(forest, **COLUMNS).fit(X, y)
        own = forest.fit(X[["x", "z"]], y).predict_proba(X[["x", "z"]])
        naive = GroupCalibrator().fit(own[:, 1:], y == 1, sensitive_features=X["group"])
        score = forest.predict_proba(fresh[["x", "z"]])[:, 1:]
        naive = naive.transform(score, sensitive_features=fresh["group"])[:, 0]
        found = model.predict_proba(fresh)[:, 1]
        assert log_loss(truth, found) + 0.1 < log_loss(truth, naive.clip(0.01, 0.99))

    @pytest.mark.parametrize("cv", [3, GroupKFold(3)])
    def test_a_splitter_gets_the_clusters(self, cv):
        X, y = problem(400)
        model = GroupCalibratedClassifier(
            UserRecorder(), cv=cv, **LABELS, ensemble=True
        )
        estimators = model.fit(X, y).estimators_
        assert len(estimators) == 3
        for each in estimators:
            assert not each.users_ & each.scored_
            assert each.users_ | each.scored_ == set(X["user"])

    def test_splits_may_be_lists_or_masks(self):
        X, y = problem(400)
        X = X.drop(columns="user")
        splits = list(KFold(4).split(X))
        masks = [[np.isin(np.arange(400), part) for part in two] for two in splits]
        lists = [tuple(part.tolist() for part in two) for two in splits]
        found = [
            GroupCalibratedClassifier(LogisticRegression(), cv=cv, **COLUMNS)
            .fit(X, y)
            .predict_proba(X)
            for cv in (KFold(4), splits, masks, lists)
        ]
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)

    def test_a_fold_without_a_group_says_so(self):
        X, y = problem(400)
        order = np.argsort(X["group"].to_numpy(), kind="stable")
        model = GroupCalibratedClassifier(LogisticRegression(), cv=KFold(2), **COLUMNS)
        with pytest.warns(UserWarning, match="fitted without rows of these groups"):
            model.fit(X.drop(columns="user").iloc[order], y[order])

    def test_frozen_is_not_fitted(self):
        X, y = problem(1000)
        X = X.drop(columns="user")
        fitted = LogisticRegression().fit(X[["x", "z"]][:500], y[:500])
        model = GroupCalibratedClassifier(FrozenEstimator(fitted), **COLUMNS)
        new = X[500:]
        found = model.fit(new, y[500:]).predict_proba(new)[:, 1]
        score = fitted.decision_function(new[["x", "z"]])[:, None]
        calibrator = GroupCalibrator(monotonic=True).fit(
            score, y[500:] == 1, sensitive_features=new["group"]
        )
        expected = calibrator.transform(score, sensitive_features=new["group"])
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
                UserRecorder(), drop_metadata_columns=drop, **LABELS
            ).fit(X, y)
            assert model.estimators_[0].columns_ == expected
            dropped = ["user"] if drop else []  # which only the fit needs
            assert [*model.feature_names_in_, *dropped] == list(X.columns)

    def test_options_of_the_calibrator(self):
        X, y = problem(500)
        calibrator = GroupCalibrator(
            "binning", n_bins=3, min_group_size=400, sensitive_features="no column"
        )
        model = GroupCalibratedClassifier(
            LogisticRegression(), calibrator=calibrator, **COLUMNS
        )
        with pytest.warns(UserWarning, match="fewer than min_group_size=400") as caught:
            model.fit(X, y)
        assert len(caught) == 1
        assert np.unique(model.predict_proba(X)[:, 1]).size == 3

    def test_a_model_without_weights_warns(self):
        X, y = problem(200)
        model = GroupCalibratedClassifier(UserRecorder(), **LABELS)
        with pytest.warns(
            UserWarning, match="UserRecorder does not take sample_weight"
        ):
            model.fit(X, y, sample_weight=np.ones(200))


class UserRecorder(ClassifierMixin, BaseEstimator):
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
        model = GroupCalibratedRegressor(
            LinearRegression(), ensemble=ensemble, **COLUMNS
        ).fit(X, y)
        inside = np.abs(fresh["x"]) < 1.5
        error = (model.predict(fresh) - mean)[inside]
        assert np.sqrt(np.mean(error**2)) < 0.12
        plain = LinearRegression().fit(X[["x"]], y).predict(fresh[["x"]])
        assert np.sqrt(np.mean((plain - mean)[inside] ** 2)) > 0.4

    def test_rows_in_several_or_no_folds(self):
        X, y, _ = self.problem(n=500)
        model = GroupCalibratedRegressor(
            LinearRegression(), cv=ShuffleSplit(3, random_state=0), **COLUMNS
        ).fit(X, y)
        n_rows = [c.n_rows for c in model.group_calibrators_[0].calibrators_.values()]
        assert sum(n_rows) == 150

    def test_the_model_gets_the_metadata_that_it_wants(self):
        X, y, _ = self.problem(n=300)
        features, group = X[["x"]], X["group"]
        model = GroupCalibratedRegressor(GroupMeans())
        plain = GroupMeans().fit(features, y, sensitive_features=group)
        model.fit(features, y, sensitive_features=group)
        means = model.estimators_[0].means_
        assert means == plain.means_
        found = model.predict(features, sensitive_features=group)
        assert np.ptp(found[group == "a"]) == 0
        with sklearn.config_context(enable_metadata_routing=True):
            inner = GroupMeans().set_fit_request(sensitive_features=True)
            inner.set_predict_request(sensitive_features=True)
            routed = GroupCalibratedRegressor(inner, sensitive_features=True)
            routed.fit(features, y, sensitive_features=group)
            np.testing.assert_array_equal(
                routed.predict(features, sensitive_features=group), found
            )


class GroupMeans(RegressorMixin, BaseEstimator):
    """Predicts the mean of the group."""

    def fit(self, X, y, sensitive_features=None):
        labels = np.asarray(sensitive_features)
        self.means_ = {g: y[labels == g].mean() for g in np.unique(labels)}
        return self

    def predict(self, X, sensitive_features=None):
        return np.array([self.means_[g] for g in sensitive_features])


def test_weights_reach_the_last_step_of_a_pipeline():
    X, y = problem(300)
    X = X.drop(columns="user")
    weight = (X["x"] > 0).to_numpy().astype(float)
    model = GroupCalibratedClassifier(make_pipeline(LogisticRegression()), **COLUMNS)
    model.fit(X, y, sample_weight=weight)
    plain = LogisticRegression().fit(X[["x", "z"]], y, weight)
    found = model.estimators_[0][-1].coef_
    np.testing.assert_array_equal(found, plain.coef_)
