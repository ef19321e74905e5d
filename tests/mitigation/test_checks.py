"""scikit-learn's own checks, nothing excused."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

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

# One of each class, and what the others have of their own.
ESTIMATORS = [
    GroupCalibrator(),
    MultiObjectiveCalibrator(),
    GroupCalibratedClassifier(GaussianNB(), cv=3),
    GroupThresholdClassifier(GaussianNB(), cv=3),
    GroupCalibratedRegressor(Ridge()),
    PairwiseFairClassifier(),
    PairwiseFairRegressor(),
]
OTHERS = [
    GroupCalibrator(NadarayaWatsonRegressor(0.3), monotonic=True),
    GroupCalibrator("isotonic"),
    GroupCalibrator("binning", n_bins=4),
    GroupCalibrator(LinearRegression()),
    GroupCalibrator(IsotonicRegression(out_of_bounds="clip")),
    MultiObjectiveCalibrator(LinearRegression(), cluster_weight="row"),
    MultiObjectiveCalibrator(NadarayaWatsonRegressor(0.3)),
    GroupCalibratedClassifier(
        LogisticRegression(tol=1e-10), calibrator="platt", ensemble=True, cv=3
    ),
    GroupThresholdClassifier(
        LogisticRegression(tol=1e-10),
        constraint="equalized_odds",
        calibrator="isotonic",
        threshold=0.4,
        cv=3,
    ),
    GroupThresholdClassifier(
        GaussianNB(),
        constraint="equalized_odds",
        randomize=True,
        random_state=0,
        cv=3,
    ),
    GroupCalibratedRegressor(
        LinearRegression(), calibrator="isotonic", ensemble=True, cv=3
    ),
]


def name_of(check):
    return getattr(check, "func", check).__name__


# What parametrize_with_checks runs, as a list: pytest 9 warns of its generator, which
# scikit-learn 1.6 passes on.
CHECKS = [
    pytest.param(
        estimator,
        check,
        id=f"{original!r}-{name_of(check)}",
        marks=pytest.mark.simulation if original in OTHERS else (),
    )
    for original in ESTIMATORS + OTHERS
    for estimator, check in estimator_checks_generator(
        original, legacy=True, mark="skip"
    )
]


@pytest.fixture(autouse=True)
def _same_classes_in_any_order(monkeypatch):
    """Mend scikit-learn 1.6, which makes two classes of three by the first row.

    In its check of weights rows are shuffled, so the two fits differ in their classes.
    """
    name = "_enforce_estimator_tags_y"
    original = getattr(estimator_checks, name)

    def two_classes(estimator, y):
        tags = get_tags(estimator).classifier_tags
        if tags is None or tags.multi_class or not y.size:
            return original(estimator, y)
        return np.where(y == y.min(), y, y.min() + 1)

    monkeypatch.setattr(estimator_checks, name, two_classes)


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
