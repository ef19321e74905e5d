"""The wild bootstrap, against all signs of the textbook's formula."""

import itertools

import numpy as np
import pytest

from skrankfair.metrics import GroupEstimates


@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.SmallSampleWarning")
def test_all_signs_of_few_unequal_clusters():
    rng = np.random.default_rng(0)
    d = np.array([40.0, 9, 4, 3, 3, 2, 2, 1, 1, 1])
    n = d * rng.normal(0.4, 0.5, 10)
    r = GroupEstimates.from_sums(
        np.stack([n, d], axis=1)[:, None],
        lambda totals: totals[..., 0] / totals[..., 1],
        groups=["a"],
        name="mean",
        support=1,
        fair_value=0.0,
    )
    h = d / d.sum()
    signs = np.array(list(itertools.product((-1, 1), repeat=10)))

    def t(influence):
        total = influence.sum(-1, keepdims=True)
        residual = (influence - total * h) / (1 - h)
        return np.abs(total[..., 0]) / np.sqrt((residual**2).sum(-1))

    influence = n / d.sum()  # with the null value 0 imposed
    expected = np.mean(t(signs * influence) >= t(influence) - 1e-12)
    np.testing.assert_allclose(r.pvalue, expected, atol=0.04)
    low, high = r.confidence_interval(1 - float(r.pvalue[0]))
    np.testing.assert_allclose(min(abs(low[0]), abs(high[0])), 0, atol=1e-9)
