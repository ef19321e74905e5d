"""One table of all mitigations that are estimators, and rows for any of them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score

from skrankfair.mitigation import (
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupCalibrator,
    GroupThresholdClassifier,
    MultiObjectiveCalibrator,
    PairwiseFairClassifier,
    PairwiseFairRegressor,
)
from skrankfair.smoothing import NadarayaWatsonRegressor

FEATURES = ["x", "z"]


def composite_r2(y_true, y_score):
    return r2_score(np.asarray(y_true).sum(1), y_score)


@dataclass(frozen=True)
class Mitigation:
    """An estimator, and what the tests of all of them need to know."""

    model: Any
    #: What a search chooses from, and the metric of its predictions.
    grid: dict[str, list[Any]]
    metric: Any
    #: The method whose numbers are compared.
    method: str = "predict"
    #: Its second column beside `sensitive_features`.
    unit: str = "cluster"
    #: Whether it wraps a model, which would take the columns of X for features.
    wraps: bool = False
    #: Whether predictions depend on the groups.
    by_group: bool = True
    #: How the warning of small groups calls what it counts.
    counted: str = "rows"
    objectives: list[str] = field(default_factory=list)

    def new(self, **options):
        """Return a new estimator; a wrapper hides the columns of groups."""
        hidden = {"drop_metadata_columns": True} if self.wraps else {}
        return clone(self.model).set_params(**hidden, **options)

    def by_columns(self, **options):
        """Return a new estimator that finds its columns in X by name."""
        return self.new(sensitive_features="group", **{self.unit: "user"}, **options)

    def numbers(self, fitted, X, group=None):
        """Return what a fitted estimator says of the rows."""
        given = {} if group is None or not self.by_group else {"group": group}
        passed = {"sensitive_features": given["group"]} if given else {}
        return np.asarray(getattr(fitted, self.method)(X, **passed), dtype=float)

    def outcome(self, y):
        """Return the outcomes as the estimator takes them."""
        if not self.objectives:
            return y
        return pd.DataFrame(dict.fromkeys(self.objectives, y.astype(float)))

    def rows(self, n=450, columns=(*FEATURES, "group", "user")):
        """Return columns, and outcomes as the estimator takes them."""
        X, y = problem(n, columns=columns)
        return X, self.outcome(y)


SMOOTHER = NadarayaWatsonRegressor(0.5)
MITIGATIONS = {
    "calibrator": Mitigation(
        GroupCalibrator("platt"),
        {"calibrator": ["isotonic", SMOOTHER]},
        r2_score,
        "transform",
    ),
    "objectives": Mitigation(
        MultiObjectiveCalibrator("platt"),
        {"calibrator": ["platt", SMOOTHER], "weights": [[1, 2], [2, 1]]},
        composite_r2,
        objectives=FEATURES,
    ),
    "classifier": Mitigation(
        GroupCalibratedClassifier(LogisticRegression(), calibrator="platt", cv=3),
        {"ensemble": [False, True]},
        accuracy_score,
        "decision_function",
        wraps=True,
    ),
    "regressor": Mitigation(
        GroupCalibratedRegressor(LinearRegression(), calibrator="platt", cv=3),
        {"calibrator": ["isotonic", SMOOTHER]},
        r2_score,
        wraps=True,
    ),
    "thresholds": Mitigation(
        GroupThresholdClassifier(LogisticRegression(), calibrator="platt", cv=3),
        {"calibrator": ["isotonic", SMOOTHER], "threshold": [0.4, 0.6]},
        accuracy_score,
        "decision_function",
        wraps=True,
        counted="known outcomes",
    ),
    "pairwise classifier": Mitigation(
        PairwiseFairClassifier(0.05, random_state=0),
        {"strength": [0, 0.05]},
        accuracy_score,
        "decision_function",
        unit="qid",
        by_group=False,
    ),
    "pairwise regressor": Mitigation(
        PairwiseFairRegressor(0.05, random_state=0),
        {"strength": [0, 0.05]},
        r2_score,
        unit="qid",
        by_group=False,
    ),
}


def problem(n=450, seed=0, columns=(*FEATURES, "group", "user")):
    """Features with which a model that does not know the group is wrong in it."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=FEATURES)
    X["group"] = rng.choice(["a", "b"], n)
    X["user"] = rng.integers(0, n // 4, n)
    level = X["x"] + 0.5 * X["z"] - 1.5 * (X["group"] == "b")
    return X[list(columns)], (level + rng.logistic(size=n) > 0).astype(int).to_numpy()
