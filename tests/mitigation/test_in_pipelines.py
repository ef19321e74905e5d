"""Every mitigation as a step of a Pipeline in a search, both ways to say the group."""

import functools

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair.metrics import log_loss, pairwise_accuracy
from skrankfair.mitigation import (
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupCalibrator,
    GroupThresholdClassifier,
)
from skrankfair.scoring import get_scorer, make_fairness_scorer
from skrankfair.smoothing import NadarayaWatsonRegressor
from tests.seeds import rarely

FEATURES = ["x", "z"]
CALIBRATORS = ["platt", NadarayaWatsonRegressor(0.5)]
# Estimator and what is searched; the metric of the search.
WRAPPERS = {
    "classifier": (
        GroupCalibratedClassifier(LogisticRegression(), cv=3),
        {"fair__calibrator": CALIBRATORS, "fair__ensemble": [False, True]},
        accuracy_score,
    ),
    "regressor": (
        GroupCalibratedRegressor(LinearRegression(), cv=3),
        {"fair__calibrator": ["isotonic", CALIBRATORS[1]]},
        r2_score,
    ),
    "threshold": (
        GroupThresholdClassifier(LogisticRegression(), cv=3),
        {"fair__calibrator": CALIBRATORS, "fair__threshold": [0.4, 0.6]},
        accuracy_score,
    ),
}


def problem(n=450, seed=0):
    """Features with which a model that does not know the group is wrong in it."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=FEATURES)
    X["group"] = rng.choice(["a", "b"], n)
    X["user"] = rng.integers(0, n // 4, n)
    level = X["x"] + 0.5 * X["z"] - 1.5 * (X["group"] == "b")
    return X, (level + rng.logistic(size=n) > 0).astype(int).to_numpy()


def search(name, metadata):
    fair, grid, metric = WRAPPERS[name]
    columns = ("sensitive_features", "cluster")
    names = (True, True) if metadata else ("group", "user")
    fair = sklearn.clone(fair).set_params(
        **dict(zip(columns, names, strict=True)), drop_metadata_columns=not metadata
    )
    scoring = make_fairness_scorer(
        metric,
        sensitive_features=True if metadata else "group",
        greater_is_better=True,
        response_method="predict",
    )
    if not metadata:
        scoring = "r2" if metric is r2_score else "accuracy"
    return GridSearchCV(
        Pipeline([("same", FunctionTransformer()), ("fair", fair)]),
        grid,
        scoring=scoring,
        cv=KFold(3),
        error_score="raise",
    )


@functools.cache
def searched(name):
    """The search by columns of a pandas frame, and its data."""
    X, y = problem()
    return X, y, search(name, metadata=False).fit(X, y)


@pytest.mark.parametrize("name", WRAPPERS)
class TestWrappers:
    @pytest.mark.simulation
    def test_by_column_of_another_library(self, name):
        X, y, by_column = searched(name)
        expected = by_column.predict(X)
        X = pl.from_pandas(X)
        found = search(name, metadata=False).fit(X, y)
        np.testing.assert_allclose(found.predict(X), expected)
        assert np.ptp(found.cv_results_["mean_test_score"]) > 0

    @pytest.mark.parametrize("library", ["numpy", *rarely("pandas", "polars")])
    def test_by_metadata_is_by_column(self, name, library):
        X, y, by_column = searched(name)
        data = {
            "numpy": X[FEATURES].to_numpy(),
            "pandas": X[FEATURES],
            "polars": pl.from_pandas(X[FEATURES]),
        }[library]
        with sklearn.config_context(enable_metadata_routing=True):
            routed = search(name, metadata=True)
            routed.fit(data, y, sensitive_features=X["group"], cluster=X["user"])
            found = routed.best_estimator_.predict(data, sensitive_features=X["group"])
        np.testing.assert_allclose(
            routed.cv_results_["mean_test_score"],
            by_column.cv_results_["mean_test_score"],
        )
        np.testing.assert_allclose(found, by_column.predict(X))


class TestTunedByOurScorers:
    grid = (
        {"calibrator": ["isotonic", "platt"]},
        {
            "calibrator": [NadarayaWatsonRegressor()],
            "calibrator__bandwidth": [0.2, 0.4, 5.0],
        },
    )

    def search(self, scoring, **options):
        model = GroupCalibratedClassifier(
            LogisticRegression(), cv=3, drop_metadata_columns=True, **options
        )
        return GridSearchCV(
            model, list(self.grid), scoring=scoring, cv=KFold(3), error_score="raise"
        )

    def test_calibrator_and_bandwidth_by_column(self):
        """A bandwidth that is much too wide gives everyone of a group one score."""
        X, y = problem(1500)
        gap = get_scorer(
            "neg_inter_group_accuracy_difference",
            sensitive_features="group",
            response_method="predict_proba",
        )
        loss = make_fairness_scorer(
            log_loss,
            sensitive_features="group",
            disparity="difference",
            response_method="predict_proba",
        )
        options = {"sensitive_features": "group", "cluster": "user"}
        found = self.search({"gap": gap, "loss": loss}, **options)
        found.set_params(refit="gap").fit(X, y)
        scores = found.cv_results_["mean_test_gap"]
        assert scores.shape == (5,)
        assert np.isfinite(scores).all()
        assert np.isfinite(found.cv_results_["mean_test_loss"]).all()
        widths = found.cv_results_["param_calibrator__bandwidth"]
        assert found.best_params_.get("calibrator__bandwidth") != 5.0
        assert scores[widths == 5.0] < scores.max()
        # The score is that of the metric on the held-out rows.
        train, test = next(KFold(3).split(X))
        model = found.best_estimator_.fit(X.iloc[train], y[train])
        rest = X.iloc[test]
        expected = pairwise_accuracy(
            y[test],
            model.predict_proba(rest)[:, 1],
            sensitive_features=rest["group"],
            comparison="inter",
        ).disparity()
        split = found.cv_results_["split0_test_gap"][found.best_index_]
        assert split == pytest.approx(-expected)

    def test_by_metadata(self):
        X, y = problem(900)
        name = "neg_inter_group_accuracy_difference"
        options = {"response_method": "predict_proba"}
        by_column = self.search(
            get_scorer(name, sensitive_features="group", **options),
            sensitive_features="group",
        ).fit(X.drop(columns="user"), y)
        with sklearn.config_context(enable_metadata_routing=True):
            routed = self.search(
                get_scorer(name, sensitive_features=True, **options),
                sensitive_features=True,
            )
            routed.fit(X[FEATURES], y, sensitive_features=X["group"])
        np.testing.assert_allclose(
            routed.cv_results_["mean_test_score"],
            by_column.cv_results_["mean_test_score"],
        )

    def test_a_transformer_of_scores(self):
        """The bandwidth of a GroupCalibrator in front of a regression."""
        X, y = problem(900)
        steps = [
            ("calibrate", GroupCalibrator(sensitive_features="group", cluster="user")),
            ("fit", LinearRegression()),
        ]
        gap = get_scorer(
            "neg_inter_group_accuracy_difference", sensitive_features="group"
        )
        grid = {
            "calibrate__calibrator": [NadarayaWatsonRegressor()],
            "calibrate__calibrator__bandwidth": [0.3, 10.0],
        }
        found = GridSearchCV(
            Pipeline(steps), grid, scoring=gap, cv=KFold(3), error_score="raise"
        ).fit(X.drop(columns="z"), y)
        assert found.best_params_["calibrate__calibrator__bandwidth"] == 0.3
