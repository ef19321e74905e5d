"""Mitigations that are passed their groups, inside the tools of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from skrankfair.mitigation import (
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupThresholdClassifier,
)
from tests.versions import bagging_predicts_with_metadata, scored_with

CLASSIFIERS = {
    "calibrated": GroupCalibratedClassifier(
        LogisticRegression(), calibrator="isotonic", sensitive_features=True, cv=3
    ),
    "thresholds": GroupThresholdClassifier(
        LogisticRegression(), calibrator="isotonic", sensitive_features=True, cv=3
    ),
}


def rows(n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    group = rng.choice(["a", "b"], size=n)
    y = (X["x"] - (group == "b") + rng.normal(size=n) > 0).astype(int).to_numpy()
    return X, y, group


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_cross_validation_without_a_scorer(name):
    X, y, group = rows()
    options = {"params": {"sensitive_features": group}, "error_score": "raise"}
    with sklearn.config_context(enable_metadata_routing=True):
        model = scored_with(CLASSIFIERS[name], "sensitive_features")
        found = cross_val_score(model, X, y, cv=3, **options)
    by_column = sklearn.clone(CLASSIFIERS[name]).set_params(
        sensitive_features="group", drop_metadata_columns=True
    )
    expected = cross_val_score(by_column, X.assign(group=group), y, cv=3)
    np.testing.assert_allclose(found, expected)


def test_a_search_without_a_scorer():
    X, y, group = rows()
    with sklearn.config_context(enable_metadata_routing=True):
        model = scored_with(CLASSIFIERS["thresholds"], "sensitive_features")
        search = GridSearchCV(model, {"threshold": [0.4, 0.6]}, error_score="raise")
        search.fit(X, y, sensitive_features=group)
        score = search.score(X, y, sensitive_features=group)
    assert 0.6 < score < 1


def test_score_is_that_of_the_predictions():
    X, y, group = rows()
    weight = np.arange(len(y)) + 1.0
    who = {"sensitive_features": group}
    for model in CLASSIFIERS.values():
        model.fit(X, y, **who)
        predicted = model.predict(X, **who)
        assert model.score(X, y, **who) == accuracy_score(y, predicted)
        assert model.score(X, y, sample_weight=weight, **who) == accuracy_score(
            y, predicted, sample_weight=weight
        )
    regressor = GroupCalibratedRegressor(LinearRegression(), calibrator="isotonic")
    regressor.fit(X, y, **who)
    assert regressor.score(X, y, **who) == r2_score(y, regressor.predict(X, **who))


@bagging_predicts_with_metadata
def test_bagging_routes_groups_to_both():
    X, y, group = rows()
    with sklearn.config_context(enable_metadata_routing=True):
        bag = BaggingClassifier(CLASSIFIERS["calibrated"], n_estimators=2)
        bag.fit(X, y, sensitive_features=group)
        assert bag.predict(X, sensitive_features=group).shape == y.shape


@pytest.mark.parametrize(
    "tool",
    [
        lambda model: StackingClassifier([("fair", model)]),
        lambda model: VotingClassifier([("fair", model)]),
        CalibratedClassifierCV,
        lambda model: BaggingClassifier(model, n_estimators=2),
    ],
    ids=["stacking", "voting", "calibrated", "bagging"],
)
def test_tools_that_predict_without_groups(tool):
    """The message does not say to turn on what is on, and the way that it names works.

    Bagging turns X into an array, and takes metadata instead (see above).
    """
    X, y, group = rows()
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="Name a column of X instead"),
    ):
        tool(CLASSIFIERS["calibrated"]).fit(X, y, sensitive_features=group).predict(X)
    by_column = sklearn.clone(CLASSIFIERS["calibrated"]).set_params(
        sensitive_features="group", drop_metadata_columns=True
    )
    whole = X.assign(group=group)
    if tool(by_column).__class__ is BaggingClassifier:
        with pytest.raises(ValueError, match="without column names"):
            tool(by_column).fit(whole, y)
    else:
        assert tool(by_column).fit(whole, y).predict(whole).shape == y.shape


def test_groups_that_only_fit_is_passed():
    X, y, group = rows()
    model = CalibratedClassifierCV(
        sklearn.clone(CLASSIFIERS["calibrated"]).set_params(sensitive_features=None)
    )
    with pytest.raises(ValueError, match="Tools that pass metadata to fit alone need"):
        model.fit(X, y, sensitive_features=group)
