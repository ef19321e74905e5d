"""What other libraries compute of rankings."""

import numpy as np
import pytest
from sklearn.metrics import dcg_score, ndcg_score

from skrankfair.metrics import ndcg, pairwise_accuracy, pairwise_exposure
from tests.reference.variance import delong_variance


@pytest.mark.parametrize("ties", [False, True])
def test_item_variance_is_delongs_to_first_order(ties):
    rng, n = np.random.default_rng(0), 2000
    y = rng.random(n) < 0.5
    s = rng.normal(size=n) + y
    s = np.round(s) if ties else s
    result = pairwise_accuracy(y, s, sensitive_features=np.zeros(n))
    assert result.variance == "item"
    ratio = result.covariance[0, 0] / delong_variance(y, s)
    assert abs(ratio - 1) < 0.01
    # Members and others are DeLong's two samples, where the members are the positives.
    exposure = pairwise_exposure(None, s, sensitive_features=y)
    expected = delong_variance(y, s)
    np.testing.assert_allclose(np.diag(exposure.covariance), expected, rtol=1e-10)


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("normalize", [False, True])
def test_ndcg_is_scikit_learns_over_queries_with_gain(k, gain, normalize):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, (60, 8)) * (rng.random((60, 1)) < 0.8)
    s = rng.integers(0, 6, y.shape)  # with ties
    options = {"k": k, "gain": gain, "normalize": normalize}
    result = ndcg(y.ravel(), s.ravel(), qid=np.repeat(np.arange(60), 8), **options)
    there = (y.max(1) > 0) | (not normalize)
    assert 0 < there.sum() < 60 + (not normalize)
    gains = y if gain == "linear" else 2**y - 1
    expected = (ndcg_score if normalize else dcg_score)(gains[there], s[there], k=k)
    assert result.estimate[0] == pytest.approx(expected, rel=1e-12)
    assert result.support[0] == there.sum()
