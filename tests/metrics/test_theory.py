"""What the papers prove and what other libraries compute."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.metrics import mean_squared_error, ndcg_score, roc_auc_score

from skrankfair.metrics import ndcg, pairwise_accuracy, pairwise_exposure
from tests.metrics.common import DATA
from tests.reference.variance import delong_variance

COMPARISONS = ("all", "intra", "inter")


def accuracies(y, s, **who):
    return [pairwise_accuracy(y, s, comparison=c, **who) for c in COMPARISONS]


# Beutel et al. 2019


@pytest.mark.parametrize("rates", [(0.7, 0.3), (0.7, 0.5)])
def test_lemmas_1_and_2(rates):
    # f is the mean outcome of the group: calibrated (lemma 1) and, if the rates add up
    # to 1, of equal squared error (lemma 2); yet "a" always wins and "b" never.
    rng = np.random.default_rng(0)
    n = 400
    group, f = np.repeat(["a", "b"], n), np.repeat(rates, n)
    y = np.concatenate([rng.permutation(np.arange(n) < rate * n) for rate in rates])
    in_a = group == "a"
    assert [y[in_a].mean(), y[~in_a].mean()] == pytest.approx(rates)
    if sum(rates) == 1:
        errors = [mean_squared_error(y[rows], f[rows]) for rows in (in_a, ~in_a)]
        assert errors[0] == pytest.approx(errors[1])
    query = rng.permutation(np.arange(2 * n) // 8)
    overall, intra, inter = accuracies(y, f, sensitive_features=group, qid=query)
    assert inter.estimate.tolist() == [1, 0]
    assert intra.estimate.tolist() == [0.5, 0.5]
    assert overall.estimate[0] > 0.5 > overall.estimate[1]
    assert overall.test().pvalue[0] < 1e-6


@pytest.mark.parametrize("make", DATA.values(), ids=DATA)
def test_equation_7(make):
    for seed in range(10):
        c = make(seed)
        who = {"sensitive_features": c.group, "qid": c.q}
        overall, intra, inter = accuracies(c.y, c.s, **who)
        assert np.array_equal(intra.support + inter.support, overall.support)
        share = intra.support / overall.support
        total = share * intra.estimate + (1 - share) * inter.estimate
        np.testing.assert_allclose(overall.estimate, total, rtol=1e-12)


# Other libraries


def test_one_group_and_binary_outcomes_is_the_auc():
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.4
    for s in (rng.normal(size=300) + y, rng.integers(0, 5, 300) + y):
        result = pairwise_accuracy(y, s, sensitive_features=np.zeros(300))
        assert result.groups == (0.0,)
        assert result.estimate[0] == pytest.approx(roc_auc_score(y, s), rel=1e-12)


def test_exposure_of_one_list_is_mann_whitney():
    rng = np.random.default_rng(0)
    s, group = rng.integers(0, 20, 200), rng.choice(["a", "b"], 200)
    result = pairwise_exposure(None, s, sensitive_features=group)
    u = mannwhitneyu(s[group == "a"], s[group == "b"]).statistic
    assert result.estimate[0] == pytest.approx(u / result.support[0], rel=1e-12)


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
def test_ndcg_is_scikit_learns_over_queries_with_gain(k, gain):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, (60, 8)) * (rng.random((60, 1)) < 0.8)
    s = rng.integers(0, 6, y.shape)  # with ties
    result = ndcg(y.ravel(), s.ravel(), qid=np.repeat(np.arange(60), 8), k=k, gain=gain)
    there = y.max(1) > 0
    assert 0 < there.sum() < 60
    gains = y if gain == "linear" else 2**y - 1
    expected = ndcg_score(gains[there], s[there], k=k)
    assert result.estimate[0] == pytest.approx(expected, rel=1e-12)
    assert result.support[0] == there.sum()
