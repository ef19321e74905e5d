"""scikit-learn's own checks of pairwise regularisation, nothing excused."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from skrankfair.mitigation import PairwiseFairClassifier, PairwiseFairRegressor


def name_of(check):
    return getattr(check, "func", check).__name__


# What parametrize_with_checks runs, as a list: pytest 9 warns of its generator, which
# scikit-learn 1.6 passes on.
CHECKS = [
    pytest.param(estimator, check, id=f"{original!r}-{name_of(check)}")
    for original in (PairwiseFairClassifier(), PairwiseFairRegressor())
    for estimator, check in estimator_checks_generator(
        original, legacy=True, mark="skip"
    )
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
