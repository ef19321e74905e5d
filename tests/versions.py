"""What older versions of scikit-learn do otherwise."""

import inspect

import pytest
import sklearn
from sklearn.ensemble import BaggingClassifier
from sklearn.utils.fixes import parse_version

bagging_predicts_with_metadata = pytest.mark.skipif(
    "params" not in inspect.signature(BaggingClassifier.predict).parameters,
    reason="BaggingClassifier.predict takes metadata from scikit-learn 1.7 on",
)


def scored_with(model, name):
    """Return the model for tools that have no scorer and score by metadata.

    Before 1.8 scikit-learn asks its class then, and not the model, what it requests.
    """
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        with sklearn.config_context(enable_metadata_routing=True):
            return sklearn.clone(model).set_score_request(**{name: True})
    return model
