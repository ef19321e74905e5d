"""Metrics that are not ours: the same care for groups, and no guess of their sign."""

import warnings

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference, demographic_parity_ratio
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, mean_squared_error

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.scoring import make_fairness_scorer


def rows(groups, n=60):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n), "group": np.resize(groups, n)})
    y = (X["x"] + rng.normal(size=n) > 0).astype(int).to_numpy()
    return X, y


class OfX(LogisticRegression):
    """Sees the first column only."""

    def fit(self, X, y):
        return super().fit(X[["x"]], y)

    def predict(self, X):
        return super().predict(X[["x"]])

    def predict_proba(self, X):
        return super().predict_proba(X[["x"]])


def scored(scorer, X, y):
    model = OfX().fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        value = float(scorer(model, X, y))
    assert all(w.category is UndefinedMetricWarning for w in said)
    return value, [str(w.message) for w in said]


def parity(**options):
    return make_fairness_scorer(
        demographic_parity_difference,
        sensitive_features="group",
        greater_is_better=False,
        **options,
    )


def test_is_the_number_negated():
    X, y = rows(["a", "b"])
    expected = demographic_parity_difference(
        y, OfX().fit(X, y).predict(X), sensitive_features=X["group"]
    )
    assert scored(parity(), X, y) == (-expected, [])


def test_one_group_is_undefined_and_not_perfect():
    value, said = scored(parity(), *rows(["a"]))
    assert np.isnan(value)
    assert len(said) == 1
    assert said[0].endswith("it has fewer than two groups (groups there: a).")


def test_expected_groups_and_categories():
    X, y = rows(["a", "b"])
    message = "it has no rows of c (groups there: a, b)."
    value, said = scored(parity(expected_groups=["a", "b", "c"]), X, y)
    assert np.isnan(value)
    assert said[0].endswith(message)
    X["group"] = pd.Categorical(X["group"], categories=["a", "b", "c"])
    value, said = scored(parity(), X, y)
    assert np.isnan(value)
    assert said[0].endswith(message)
    # Accuracy compares no groups: only what was asked for is expected of it.
    accuracy = make_fairness_scorer(accuracy_score, sensitive_features="group")
    assert scored(accuracy, X, y)[1] == []
    asked = make_fairness_scorer(
        accuracy_score, sensitive_features="group", expected_groups=["c"]
    )
    assert np.isnan(scored(asked, X, y)[0])


def test_raise():
    with pytest.raises(ValueError, match="it has fewer than two groups"):
        scored(parity(on_undefined="raise"), *rows(["a"]))
    X, y = rows(["a", "b"])
    nothing = make_fairness_scorer(
        lambda y_true, y_pred: float("nan"), on_undefined="raise"
    )
    with pytest.raises(ValueError, match=r"is undefined \(NaN\) on this test set"):
        scored(nothing, X, y)


@pytest.mark.parametrize("metric", [demographic_parity_ratio, mean_squared_error])
def test_the_direction_is_not_guessed(metric):
    with pytest.raises(ValueError, match="greater_is_better must be given for"):
        make_fairness_scorer(metric, sensitive_features="group")


def test_a_metric_of_several_numbers():
    X, y = rows(["a", "b"])
    both = make_fairness_scorer(lambda y_true, y_pred: [0.1, 0.2])
    with pytest.raises(ValueError, match="metric must return one number"):
        scored(both, X, y)
