"""What the papers prove and what other libraries compute."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.metrics import mean_squared_error, ndcg_score, roc_auc_score
from statsmodels.regression.linear_model import OLS

from benchmarks.simulations.common import Rows
from skrankfair.inference import compare
from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
)
from tests.reference import matched_pairs, pairwise

COMPARISONS = ("all", "intra", "inter")


def accuracies(y, s, **who):
    return [pairwise_accuracy(y, s, comparison=c, **who) for c in COMPARISONS]


def random_rows(seed, n_groups=3):
    """Draw ragged queries with ties in outcome and score, three of them a user."""
    rng = np.random.default_rng(seed)
    query = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 9, 40)))
    y = rng.integers(0, 4, query.size)
    s = (y + rng.integers(-2, 3, query.size)) / 4
    return Rows(y, s, rng.integers(0, n_groups, query.size), query, query // 3)


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


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("overlapping", [False, True])
def test_equation_7(seed, overlapping):
    rows = random_rows(seed)
    who = {"sensitive_features": rows.group, "qid": rows.query}
    if overlapping:
        rng = np.random.default_rng(seed)
        who["sensitive_features"] = rng.random((rows.y.size, 3)) < 0.5
    overall, intra, inter = accuracies(rows.y, rows.s, **who)
    assert np.array_equal(intra.support + inter.support, overall.support)
    share = intra.support / overall.support
    total = share * intra.estimate + (1 - share) * inter.estimate
    np.testing.assert_allclose(overall.estimate, total, rtol=1e-12)


def test_example_of_section_3_3():
    # A1 is clicked in the first ranking, B1 in the second; each is seen twice.
    seen = [("A1", "A2 A3 B1 A1 B2 B3"), ("B1", "A1 A2 A3 B1 B2 B3")] * 2
    items = np.array([ranking.split() for _, ranking in seen])
    clicked = items == np.array([[click] for click, _ in seen])
    score = np.tile(-np.arange(6), len(seen))
    group = np.array([item[0] for item in items.ravel()])
    overall, intra, inter = accuracies(
        clicked.ravel(),
        score,
        sensitive_features=group,
        qid=np.repeat(np.arange(len(seen)), 6),
    )
    np.testing.assert_allclose(overall.estimate, [2 / 5, 2 / 5], rtol=1e-15)
    np.testing.assert_allclose(intra.estimate, [0, 1])
    np.testing.assert_allclose(inter.estimate, [2 / 3, 0], rtol=1e-15)


def test_theorem_1_position_of_the_clicked_item():
    # One click a query: its mean position is n - (n - 1) * accuracy.
    rng = np.random.default_rng(0)
    n_queries, n = 500, 7
    y = np.zeros((n_queries, n))
    y[np.arange(n_queries), rng.integers(0, n, n_queries)] = 1
    s = rng.normal(size=y.shape) + y
    group = rng.choice(["a", "b"], y.shape)
    position = 1 + (s[:, :, None] < s[:, None, :]).sum(2)
    result = pairwise_accuracy(
        y.ravel(),
        s.ravel(),
        sensitive_features=group.ravel(),
        qid=np.repeat(np.arange(n_queries), n),
    )
    for g, accuracy in zip(result.groups, result.estimate, strict=True):
        mean = position[(y == 1) & (group == g)].mean()
        assert mean == pytest.approx(n - (n - 1) * accuracy)


def test_randomised_pair_experiment_of_section_3_4():
    # Two rows per query, one of them clicked: shares of independent pairs.
    rng = np.random.default_rng(0)
    n = 3000
    s = rng.normal(size=(n, 2))
    group = rng.choice(["a", "b"], (n, 2))
    y = np.column_stack([rng.random(n) < 0.5, np.ones(n)])
    y[:, 1] -= y[:, 0]
    click = y.argmax(1)
    of_click, other = (
        np.take_along_axis(group, which[:, None], 1)[:, 0]
        for which in (click, 1 - click)
    )
    above = (s[:, 0] > s[:, 1]) == (click == 0)
    who = {"sensitive_features": group.ravel(), "qid": np.repeat(np.arange(n), 2)}
    same = of_click == other
    kept = {"all": np.ones(n, dtype=bool), "intra": same, "inter": ~same}
    for comparison, chosen in kept.items():
        result = pairwise_accuracy(y.ravel(), s.ravel(), comparison=comparison, **who)
        for g in range(2):
            won = above[chosen & (of_click == result.groups[g])]
            share = won.mean()
            assert result.estimate[g] == pytest.approx(share, rel=1e-12)
            # A cluster has at most one pair: the binomial variance.
            expected = share * (1 - share) / (won.size - 1)
            assert result.covariance[g, g] == pytest.approx(expected, rel=1e-10)


# Korevaar et al.


def uniform_rows(n_queries, delta, noise, seed=0, size=10):
    """Draw outcomes ``s + delta`` in group "a" and ``s`` in "b", s uniform."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), size)
    s = rng.random(query.size)
    group = rng.choice(["a", "b"], query.size)
    y = s + delta * (group == "a") + rng.normal(0, noise, s.size)
    return Rows(y, s, group, query, query)


def matched(rows, s=None, **options):
    return matched_pair_calibration(
        rows.y,
        rows.s if s is None else s,
        sensitive_features=rows.group,
        qid=rows.query,
        **options,
    )


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 1.0])
def test_matched_pairs_closed_form(epsilon):
    # s_j - s_i has density proportional to 1 - d on [0, epsilon].
    delta = 0.2
    result = matched(uniform_rows(20_000, delta, 0.5), epsilon=epsilon)
    gap = (epsilon**2 / 2 - epsilon**3 / 3) / (epsilon - epsilon**2 / 2)
    error = np.abs(result.estimate - [delta - gap, -delta - gap])
    assert np.all(error < 4 * result.standard_error)
    both = matched(uniform_rows(20_000, delta, 0.5), epsilon=epsilon, direction="both")
    error = np.abs(both.estimate - [delta, -delta])
    assert np.all(error < 4 * both.standard_error)
    assert both.estimate[0] == pytest.approx(-both.estimate[1], rel=1e-10)


@pytest.mark.parametrize("direction", ["below", "both"])
@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_boosting_lowers_and_demoting_raises(direction, average):
    rows = uniform_rows(2000, 0.1, 0.1)
    options = {"epsilon": 0.05, "direction": direction, "average": average}
    grid = np.linspace(-0.4, 0.4, 9)
    results = [
        matched(rows, rows.s + boost * (rows.group == "a"), **options) for boost in grid
    ]
    values = np.array([result.estimate for result in results])
    errors = np.array([result.standard_error for result in results])
    steps = np.diff(values, axis=0) * [-1, 1]
    assert np.all(steps > 4 * (errors[1:] + errors[:-1]))
    # The boost that undoes the bias is fair.
    if direction == "both":
        fair = np.interp(0.1, grid, values[:, 0])
        assert abs(fair) < 4 * errors.max()


@pytest.mark.parametrize("delta", [0.3, -0.3])
def test_theorem_1_boosting_an_undervalued_group_pays(delta):
    rows = uniform_rows(2000, delta, 0.3)
    rows = rows._replace(y=rows.y - rows.y.min())
    alpha = 0.2
    for group, side in enumerate(("a", "b")):
        undervalued = [
            matched(rows, epsilon=epsilon).test()
            for epsilon in np.linspace(alpha / 20, alpha, 20)
        ]
        signs = {np.sign(test.estimate[group]) for test in undervalued}
        boosted = ndcg(rows.y, rows.s + alpha * (rows.group == side), qid=rows.query)
        gain = compare(boosted, ndcg(rows.y, rows.s, qid=rows.query))
        if (delta > 0) == (side == "a"):
            assert signs == {1}
            assert all(test.pvalue[group] < 1e-3 for test in undervalued)
            assert gain.confidence_interval().low[0] > 0
        else:
            assert signs == {-1}
            assert gain.confidence_interval().high[0] < 0


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


def delong_variance(y, s):
    """The variance of the AUC from the placements, DeLong et al. 1988."""
    won = (s[y][:, None] > s[~y]) + 0.5 * (s[y][:, None] == s[~y])
    return sum(np.var(won.mean(k), ddof=1) / won.shape[1 - k] for k in (0, 1))


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


def pair_frame(pairs_by_group):
    """Stack pairs (i, j, value) of several groups: value, group, i."""
    stacked = [
        (value, g, i) for g, pairs in enumerate(pairs_by_group) for i, _, value in pairs
    ]
    value, g, i = map(np.array, zip(*stacked, strict=True))
    return value.astype(float), g, i


def naive_pairs(metric, rows, group):
    y, s, q = rows.y.tolist(), rows.s.tolist(), rows.query.tolist()
    member = (rows.group == group).tolist()
    if metric is pairwise_accuracy:
        return pairwise.pairs_accuracy(y, s, q, member)
    if metric is pairwise_exposure:
        return pairwise.pairs_exposure(s, q, member)
    return matched_pairs.matched_pairs(y, s, q, member, epsilon=0.3)


OPTIONS = {
    pairwise_accuracy: {},
    pairwise_exposure: {},
    matched_pair_calibration: {"epsilon": 0.3},
}


@pytest.mark.parametrize("metric", OPTIONS)
@pytest.mark.parametrize("by_user", [False, True])
def test_cluster_covariance_is_that_of_refits_of_statsmodels(metric, by_user):
    # Regress the pairs' values on an indicator of each group, without each cluster.
    rows = random_rows(3)
    cluster = rows.user if by_user else rows.query
    result = metric(
        rows.y,
        rows.s,
        sensitive_features=rows.group,
        qid=rows.query,
        cluster=cluster,
        **OPTIONS[metric],
    )
    value, g, i = pair_frame([naive_pairs(metric, rows, g) for g in result.groups])
    of_pair, indicator = cluster[i], np.eye(len(result.groups))[g]
    fit = OLS(value, indicator).fit()
    changes = [
        OLS(value[of_pair != c], indicator[of_pair != c]).fit().params - fit.params
        for c in np.unique(of_pair)
    ]
    n = np.array([np.unique(of_pair[g == k]).size for k in range(len(result.groups))])
    changes = np.array(changes) * np.sqrt((n - 1) / n)
    np.testing.assert_allclose(result.estimate, fit.params, rtol=1e-12)
    np.testing.assert_allclose(
        result.covariance, changes.T @ changes, rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize("metric", [pairwise_exposure, matched_pair_calibration])
def test_item_variance_is_near_the_sandwiches_of_statsmodels(metric):
    # Pairs (i, j) clustered by i and by j: the sum of both sandwiches.
    rows = random_rows(5, n_groups=2)
    rows = rows._replace(query=np.zeros(rows.y.size))
    result = metric(rows.y, rows.s, sensitive_features=rows.group, **OPTIONS[metric])
    assert result.variance == "item"
    for g in range(2):
        i, j, value = map(np.array, zip(*naive_pairs(metric, rows, g), strict=True))
        expected = 0.0
        for items in (i, j):
            how = {"groups": items, "use_correction": False}
            fit = OLS(value.astype(float), np.ones(value.size)).fit(
                cov_type="cluster", cov_kwds=how
            )
            expected += fit.cov_params()[0, 0]
        # The jackknife is larger, by order 1 / n.
        assert expected < result.covariance[g, g] < 1.05 * expected
