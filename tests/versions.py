"""What older versions of scikit-learn do otherwise."""

import sklearn
from sklearn.utils.fixes import parse_version


def scored_with(model, name):
    """Return the model for tools that have no scorer and score by metadata.

    Before 1.8 scikit-learn asks its class then, and not the model, what it requests.
    """
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        with sklearn.config_context(enable_metadata_routing=True):
            return sklearn.clone(model).set_score_request(**{name: True})
    return model
