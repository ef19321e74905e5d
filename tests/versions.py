"""What older versions of scikit-learn do otherwise."""

import pytest
import sklearn
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.fixes import parse_version


def each_check(*estimators, rarely=()):
    """Parametrize by scikit-learn's checks of estimators, some with the simulations.

    What parametrize_with_checks runs, as a list: pytest 9 warns of its generator, which
    scikit-learn 1.6 passes on.
    """
    checks = [
        pytest.param(
            *(estimator, check),
            id=f"{original!r}-{getattr(check, 'func', check).__name__}",
            marks=pytest.mark.simulation if original in rarely else (),
        )
        for original in (*estimators, *rarely)
        for estimator, check in estimator_checks_generator(
            original, legacy=True, mark="skip"
        )
    ]
    return pytest.mark.parametrize(("estimator", "check"), checks)


def scored_with(model, name):
    """Return the model for tools that have no scorer and score by metadata.

    Before 1.8 scikit-learn asks its class then, and not the model, what it requests.
    """
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        with sklearn.config_context(enable_metadata_routing=True):
            return sklearn.clone(model).set_score_request(**{name: True})
    return model
