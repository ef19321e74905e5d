"""Simulated data: the seed decides, bad options are refused, the bias is known."""

import numpy as np
import pytest
from scipy import integrate, special, stats
from scipy.integrate import dblquad
from sklearn.linear_model import LinearRegression

from benchmarks.simulations.common import tolerance
from skrankfair.datasets import (
    make_bias_by_construction,
    make_biased_rankings,
    make_confounded_queries,
    make_underranked_items,
    rankings_to_columns,
)
from skrankfair.metrics import matched_pair_calibration, pairwise_accuracy
from tests.seeds import rarely

SMALL = {
    make_bias_by_construction: {"n_clusters": 50, "rate": 1.0},
    make_biased_rankings: {"n_rankings": 9, "n_items": 30, "share": 0.3},
    make_confounded_queries: {"n_queries": 50},
    make_underranked_items: {"n_queries": 50},
}
BIAS = {("u", 1): 1.5, ("u", 2): 1.1, ("v", 1): 0.9, ("v", 2): 0.7}
SHARE = {"u": 1 / 7, "v": 5 / 7}
PAPER = {"all": 1.083, "intra": 1.149, "inter": 1.356}


@pytest.mark.parametrize("make", SMALL, ids=lambda make: make.__name__)
def test_the_seed_decides(make):
    seeds = (1, 1, np.random.default_rng(1), 2)
    first, *same, other = (make(**SMALL[make], random_state=seed) for seed in seeds)
    columns = [name for name in first if isinstance(first[name], np.ndarray)]
    assert "y_score" in columns
    for name in columns:
        for data in same:
            np.testing.assert_array_equal(first[name], data[name])
    assert not all(np.array_equal(first[name], other[name]) for name in columns)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_bias_by_construction, {"n_clusters": 2.5}, "n_clusters must be"),
        (make_bias_by_construction, {"b0": np.nan}, "b0 must be"),
        (make_bias_by_construction, {"alpha": 0}, "alpha must be"),
        (make_bias_by_construction, {"link": "log"}, "link must be"),
        (make_bias_by_construction, {"rate": -0.5}, "rate must be"),
        (make_bias_by_construction, {"n_max": 1.5}, "n_max must be"),
        (make_biased_rankings, {"n_rankings": 0}, "n_rankings must be"),
        (make_biased_rankings, {"share": np.nan}, "share must be"),
        (make_biased_rankings, {"advantage": "much"}, "advantage must be"),
        (make_biased_rankings, {"pattern": "rising"}, "pattern must be one of"),
        (make_biased_rankings, {"pattern": "padded", "k": 0}, "k must be"),
        (make_biased_rankings, {"pattern": "padded", "k": 51}, "k must leave 0 of the"),
        (make_biased_rankings, {"pattern": "rooney", "share": 0.0}, "k must leave 1"),
        (make_confounded_queries, {"n_queries": 0}, "n_queries must be"),
        (make_confounded_queries, {"bias": [1, 1]}, r"bias .* of shape \(2, 2\)"),
        (make_confounded_queries, {"bias": "b"}, "bias must be an array"),
        (make_confounded_queries, {"bias": [[1, 1], [1, 1]]}, "share must be given"),
        (make_confounded_queries, {"bias": [[1.1, 1.6], [0.9, 0]]}, "share must be"),
        (make_confounded_queries, {"share": [0.5, 1.5]}, r"share .* in \[0, 1\]"),
        (make_underranked_items, {"n_items": 2.5}, "n_items must be"),
        (make_underranked_items, {"share": 5e-324}, r"share .* in \[1e-09, 1\)"),
        (make_underranked_items, {"share": 0.4}, "gaps .* share of 0.4 can have"),
        (make_underranked_items, {"gaps": (1, 1)}, "gaps must be three numbers"),
        (make_underranked_items, {"gaps": (1, 1, np.nan)}, "gaps must be a number"),
        *((make, {"random_state": "x"}, "random_state must be") for make in SMALL),
    ],
)
def test_bad_options_are_refused(make, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**options)


def assert_columns(data, *more):
    """Assert that data are 20 queries of 3 items, by the names of arguments."""
    for name in ("y_true", "y_score", "sensitive_features", "qid", *more):
        assert data[name].shape == (60,)
    np.testing.assert_array_equal(data.qid, np.repeat(np.arange(20), 3))
    assert "20 queries of 3 items" in data.DESCR


def test_columns():
    columns = rankings_to_columns([["b", "a"], ("a",), iter([3, "a", ("b", 1)])])
    assert columns["y_score"].tolist() == [2, 1, 1, 3, 2, 1]
    assert columns["qid"].tolist() == [0, 0, 1, 2, 2, 2]
    assert columns["sensitive_features"] == ["b", "a", "a", 3, "a", ("b", 1)]


@pytest.mark.parametrize("rankings", [[], [["a"], []]])
def test_nothing_to_rank(rankings):
    with pytest.raises(ValueError, match="rankings must be lists of at least one item"):
        rankings_to_columns(rankings)


def protected(data):
    return data.sensitive_features.reshape(-1, data.position_share.size) == "protected"


def test_columns_of_biased_rankings():
    data = make_biased_rankings(3, 4, 0.5, 1.0)
    assert data.y_score.tolist() == [4, 3, 2, 1] * 3
    assert data.qid.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    groups = ["protected", "protected", "other", "other"]
    assert data.sensitive_features.tolist() == groups * 3
    assert "3 rankings of 4 items, 2 of them protected" in data.DESCR


def naive_ranking(rng, n, n_protected, advantage, pattern, k):
    """One ranking of the supplement, step by step: whether each item is protected."""
    left = {True: n_protected, False: n - n_protected}
    top = {"padded": [False] * k, "rooney": [True] * max(1, k // 10)}.get(pattern, [])
    if pattern == "rooney":
        top = list(rng.permutation(top + [False] * (k - len(top))))
    for taken in top:
        left[bool(taken)] -= 1
    ranking = [bool(taken) for taken in top]
    while left[True] + left[False]:
        chance = advantage
        if pattern == "decreasing":
            chance *= 1 - len(ranking) / n
        taken = bool(rng.random() < chance)
        if not left[taken]:
            taken = not taken
        left[taken] -= 1
        ranking.append(taken)
    return ranking


@pytest.mark.parametrize("pattern", ["constant", "decreasing", "padded", "rooney"])
@pytest.mark.parametrize(("n", "share", "k"), [(12, 0.5, 5), (30, 0.2, 20)])
def test_patterns(pattern, n, share, k):
    options = {"pattern": pattern, "k": k}
    data = make_biased_rankings(2000, n, share, 0.4, random_state=0, **options)
    member, expected = protected(data), data.position_share
    assert (member.sum(axis=1) == data.n_protected).all()
    rng = np.random.default_rng(1)
    naive = [
        naive_ranking(rng, n, data.n_protected, 0.4, pattern, k) for _ in range(2000)
    ]
    error = np.sqrt(expected * (1 - expected) / 2000)
    for drawn in (member, np.array(naive)):
        assert (np.abs(drawn.mean(axis=0) - expected) <= 5 * error + 1e-12).all()
    if pattern == "padded":
        assert not expected[:k].any()
    if pattern == "rooney":
        assert (member[:, :k].sum(axis=1) == max(1, k // 10)).all()
        np.testing.assert_allclose(expected[:k], max(1, k // 10) / k)


@pytest.mark.parametrize("advantage", [0.0, 0.1, 0.35, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_share_of_a_constant_advantage_in_closed_form(share, advantage):
    # Position i sees whether the draws above have used up one of the groups.
    n, drawn = 20, np.arange(20)
    data = make_biased_rankings(1, n, share, advantage)
    m = data.n_protected
    assert m == round(share * n) == protected(data).sum()
    over = stats.binom.sf(m - 1, drawn, advantage)
    only = stats.binom.sf(n - m - 1, drawn, 1 - advantage)
    expected = advantage * (1 - over - only) + only
    np.testing.assert_allclose(data.position_share, expected, atol=1e-12)


def relevance(s, b):
    """Equation 8."""
    return b * s if s < 0.5 else 1 - (2 - b) * (1 - s)


@pytest.fixture(name="data", scope="module")
def _data():
    return make_confounded_queries(200_000, random_state=0)


# The distribution


def test_columns_are_named_as_arguments():
    data = make_confounded_queries(20, n_items=3, random_state=0)
    assert_columns(data, "query_type", "expected")
    assert set(data.y_true) == {0, 1}
    assert set(data.sensitive_features) == {1, 2}
    assert set(data.query_type) == {"u", "v"}
    assert all(len(set(data.query_type[data.qid == q])) == 1 for q in range(20))


def test_shares_are_those_of_the_paper(data):
    np.testing.assert_allclose(data.share, [1 / 7, 5 / 7], rtol=1e-14)
    assert abs((data.query_type[::10] == "u").mean() - 0.5) < tolerance(0.5, 200_000)
    for kind, share in SHARE.items():
        items = data.sensitive_features[data.query_type == kind]
        assert abs((items == 1).mean() - share) < tolerance(share, items.size)


def test_expected_relevance_is_equation_8():
    data = make_confounded_queries(200, random_state=0)
    columns = (data.y_score, data.query_type, data.sensitive_features, data.expected)
    for s, query, item, expected in zip(*columns, strict=True):
        assert expected == pytest.approx(relevance(s, BIAS[query, item]), rel=1e-12)


def test_relevance_is_drawn_with_its_expectation(data):
    # Ten bins of expected relevance: a binomial count in each.
    edges = np.quantile(data.expected, np.linspace(0, 1, 11))
    place = np.clip(np.searchsorted(edges, data.expected) - 1, 0, 9)
    number = np.bincount(place)
    spread = np.sqrt(np.bincount(place, data.expected * (1 - data.expected)))
    assert np.abs(np.bincount(place, data.y_true - data.expected) / spread).max() < 4
    assert number.min() > 1000


@pytest.mark.parametrize(
    "bias", [((1.5, 1.1), (0.9, 0.7)), ((1.2, 1.4), (0.5, 0.9)), ((1.4, 1), (0.8, 0.6))]
)
def test_both_types_are_calibrated_over_all_queries(bias):
    share = make_confounded_queries(2, bias=bias, random_state=0).share
    for item, of_type in enumerate((share, 1 - share)):
        query = of_type / of_type.sum()  # P(query type | item type)
        for s in np.linspace(0, 1, 11):
            mean = sum(query[q] * relevance(s, bias[q][item]) for q in (0, 1))
            assert mean == pytest.approx(s, abs=1e-12)


# What the paper says of it


def pair_mean(item, boost, epsilon):
    """E[y_i - y_j | 0 <= s_j - s_i <= epsilon], i of the type, by quadrature."""
    shift = boost if item == 1 else -boost  # of s_i less that of s_j
    # s_j where s_j - s_i - shift is 0, or epsilon.
    ends = [lambda s_i, d=d: min(max(s_i + shift + d, 0), 1) for d in (0, epsilon)]

    def gap(s_j, s_i, kind, power):
        one, other = BIAS[kind, item], BIAS[kind, 3 - item]
        return (relevance(s_i, one) - relevance(s_j, other)) ** power

    total = np.zeros(2)
    for kind, share in SHARE.items():
        for power in (0, 1):
            options = {"args": (kind, power), "epsabs": 1e-4, "epsrel": 1e-4}
            total[power] += (
                share * (1 - share) * dblquad(gap, 0, 1, *ends, **options)[0]
            )
    return total[1] / total[0]


@pytest.mark.parametrize("epsilon", [0.1, *rarely(0.01, 0.3)])
@pytest.mark.parametrize("boost", [0.0, 0.1])
def test_matched_pairs_measure_the_truth(data, epsilon, boost):
    few, s = data.qid < 50_000, data.y_score + boost * (data.sensitive_features == 1)
    who = {"sensitive_features": data.sensitive_features[few], "qid": data.qid[few]}
    result = matched_pair_calibration(data.y_true[few], s[few], epsilon=epsilon, **who)
    truth = [pair_mean(item, boost, epsilon) for item in (1, 2)]
    assert np.all(np.abs(result.estimate - truth) < 4 * result.standard_error)


@pytest.fixture(name="underranked", scope="module")
def _underranked():
    return make_underranked_items(20_000, random_state=0)


def accuracy(data, **options):
    who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    return pairwise_accuracy(data.y_true, data.y_score, **who, **options)


def test_columns_of_underranked_items():
    data = make_underranked_items(20, n_items=3, n_signals=2, random_state=0)
    assert_columns(data, "engagement")
    assert data.X.shape == (60, 4)
    assert data.feature_names == ["match", "signal_1", "signal_2", "shared"]
    np.testing.assert_array_equal(data.engagement > 0, data.y_true == 1)
    np.testing.assert_allclose(data.X @ data.coef, data.y_score)


def test_items_of_a_group_share_their_match_with_the_query(underranked):
    key = underranked.qid * 2 + (underranked.sensitive_features == "subgroup")
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    match = underranked.X[order, 0]
    np.testing.assert_array_equal(match[1:][same], match[:-1][same])


def test_share(underranked):
    share = (underranked.sensitive_features == "subgroup").mean()
    assert abs(share - 0.1) < tolerance(0.1, underranked.qid.size)


@pytest.mark.parametrize("comparison", PAPER)
def test_gaps_are_those_of_the_paper(underranked, comparison):
    assert underranked.gaps[comparison] == pytest.approx(PAPER[comparison], abs=1e-6)
    r = accuracy(underranked, comparison=comparison)
    ratio = r.contrast("rest", "subgroup", kind="ratio")
    assert abs(ratio.estimate - PAPER[comparison]) < 4 * ratio.standard_error
    assert ratio.standard_error < 0.02


@pytest.mark.parametrize("comparison", ["intra", "inter"])
def test_accuracies_are_those_of_the_population(underranked, comparison):
    r = accuracy(underranked, comparison=comparison)
    truth = (
        underranked.accuracy if comparison == "inter" else underranked.accuracy[:, ::-1]
    )
    expected = [truth[0, 1], truth[1, 0]]
    assert np.all(np.abs(r.estimate - expected) < 4 * r.standard_error)


def test_the_score_is_the_best_linear_model(underranked):
    fitted = LinearRegression().fit(underranked.X, underranked.y_true)
    residual = underranked.y_true - fitted.predict(underranked.X)
    X = underranked.X - underranked.X.mean(0)
    # Sandwich standard errors by query.
    sums = np.zeros((20_000, X.shape[1]))
    np.add.at(sums, underranked.qid, X * residual[:, None])
    bread = np.linalg.inv(X.T @ X)
    error = np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread))
    scale = (fitted.coef_ @ underranked.coef) / (underranked.coef @ underranked.coef)
    assert np.all(np.abs(fitted.coef_ - scale * underranked.coef) < 4 * error)


def test_other_shares_and_gaps():
    data = make_underranked_items(
        10, share=0.02, gaps=(1.05, 1.1, 1.25), random_state=0
    )
    np.testing.assert_allclose(list(data.gaps.values()), [1.05, 1.1, 1.25], atol=1e-6)


LINKS = {"logit": stats.logistic, "probit": stats.norm, "cloglog": stats.gumbel_l}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    ("b0", "b1", "alpha", "beta"), [(1, 1, 1, 1), (0.5, 2, 2, 3), (-1, 0.5, 0.7, 0.6)]
)
def test_link_and_the_error_that_is_the_integral(link, b0, b1, alpha, beta):
    law, options = LINKS[link], {"b0": b0, "b1": b1, "alpha": alpha, "beta": beta}
    data = make_bias_by_construction(500, **options, link=link, random_state=0)
    expected = law.cdf(b0 + b1 * law.ppf(data.y_score))
    np.testing.assert_allclose(data.expected, expected)

    density = stats.beta(alpha, beta).pdf

    def square(s):
        return density(s) * (s - law.cdf(b0 + b1 * law.ppf(s))) ** 2

    error = np.sqrt(integrate.quad(square, 0, 1, limit=200, epsrel=1e-5)[0])
    assert data.true_error == pytest.approx(error, rel=1e-4)
    assert data.true_error_by_row == data.true_error
    assert f", {link}, b0 = {b0}" in data.DESCR
    assert make_bias_by_construction(5, b0=0, b1=1, link=link).true_error < 1e-9


@pytest.mark.parametrize("n_max", [None, 1, 3, 6])
def test_laws(n_max):
    data = make_bias_by_construction(
        40_000, b0=0.8, b1=0.7, alpha=2, beta=3, rate=2.5, n_max=n_max, random_state=0
    )
    sizes = np.bincount(data.cluster)
    assert sizes.size == 40_000
    assert sizes.min() == 1
    assert sizes.mean() == pytest.approx(3.5, abs=4 * np.sqrt(2.5 / 40_000))
    size = sizes[data.cluster]
    if n_max is None:
        z, laws = np.zeros(size.size), [(size > 0, stats.beta(2, 3))]
    else:
        z = np.minimum(size / n_max, 1)
        kinds = np.minimum(size, n_max)
        laws = [(kinds == k, stats.beta(k, 1)) for k in range(1, n_max + 1)]
    for rows, law in laws:
        assert stats.kstest(data.y_score[rows], law.cdf).pvalue > 1e-3
    odds = 0.8 * (1 - z) + (0.7 + 0.3 * z) * special.logit(data.y_score)
    np.testing.assert_allclose(data.expected, special.expit(odds))
    miss = data.y_true - data.expected
    error = np.sqrt(np.mean(data.expected * (1 - data.expected)) / miss.size)
    assert abs(miss.mean()) < 4 * error
    assert set(data.y_true) == {0, 1}
    assert f"{data.y_true.size} rows" in data.DESCR
