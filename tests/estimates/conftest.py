"""Results that several tests of `GroupEstimates` look at."""

import numpy as np
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
)
from tests.metrics.common import columns


@pytest.fixture(scope="module")
def accuracy():
    return pairwise_accuracy(**columns())


@pytest.fixture(scope="module")
def matched():
    return matched_pair_calibration(**columns(1), epsilon=0.8)


@pytest.fixture(scope="module")
def with_empty_group():
    """Three groups, the last of which has no item."""
    data = columns(2)
    letters = data.pop("sensitive_features")
    data["sensitive_features"] = np.stack([letters == g for g in "abz"], axis=1)
    with pytest.warns(UndefinedMetricWarning, match="without pairs: 2"):
        return pairwise_exposure(**data)
