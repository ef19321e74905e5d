"""Models calibrated by group, with scores of rows they have not seen."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline

from skrankfair.mitigation import (
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupCalibrator,
)
from tests.mitigation.common import problem

COLUMNS = {"sensitive_features": "group", "drop_metadata_columns": True}
LABELS = {"sensitive_features": "group", "cluster": "user"}


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

    def test_the_order_of_rows_does_no_harm(self):
        """Rows sorted by group were scored by models that had not seen the group."""
        X, y = problem(4000)
        X = X.drop(columns="user").assign(own=lambda X: (X["group"] == "a") * 1.0)
        few = (X["own"] == 0) | (np.arange(4000) % 5 == 0)
        X, y = X[few], y[few]
        fresh, truth = problem(20_000, seed=1)
        fresh = fresh.assign(own=(fresh["group"] == "a") * 1.0)
        orders = np.arange(len(y)), np.lexsort([y, X["group"]])
        options = {"sensitive_features": "group", "drop_metadata_columns": True}
        shuffled, in_blocks = (
            GroupCalibratedClassifier(LogisticRegression(), **options)
            .fit(X.iloc[order], y[order])
            .predict_proba(fresh[X.columns])[:, 1]
            for order in orders
        )
        assert abs(log_loss(truth, shuffled) - log_loss(truth, in_blocks)) < 0.01

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
