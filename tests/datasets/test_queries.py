"""Queries with a bias that calibration, or a model, does not see."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from sklearn.linear_model import LinearRegression

from benchmarks.simulations.common import tolerance
from skrankfair.datasets import make_confounded_queries, make_underranked_items
from skrankfair.metrics import matched_pair_calibration, pairwise_accuracy
from tests.seeds import rarely

BIAS = {("u", 1): 1.5, ("u", 2): 1.1, ("v", 1): 0.9, ("v", 2): 0.7}
SHARE = {"u": 1 / 7, "v": 5 / 7}


def relevance(s, b):
    """Equation 8."""
    return b * s if s < 0.5 else 1 - (2 - b) * (1 - s)


def matched(data, boost=0.0, **options):
    return matched_pair_calibration(
        data.y_true,
        data.y_score + boost * (data.sensitive_features == 1),
        sensitive_features=data.sensitive_features,
        qid=data.qid,
        **options,
    )


@pytest.fixture(name="data", scope="module")
def _data():
    return make_confounded_queries(200_000, random_state=0)


# The distribution


def test_columns_are_named_as_arguments():
    data = make_confounded_queries(20, n_items=3, random_state=0)
    rows = ("y_true", "y_score", "sensitive_features", "qid", "query_type", "expected")
    assert {data[name].shape for name in rows} == {(60,)}
    np.testing.assert_array_equal(data.qid, np.repeat(np.arange(20), 3))
    assert set(data.y_true) == {0, 1}
    assert set(data.sensitive_features) == {1, 2}
    assert set(data.query_type) == {"u", "v"}
    assert all(len(set(data.query_type[data.qid == q])) == 1 for q in range(20))
    assert "20 queries of 3 items" in data.DESCR


def test_shares_are_those_of_the_paper(data):
    np.testing.assert_allclose(data.share, [1 / 7, 5 / 7], rtol=1e-14)
    n = 200_000
    in_u = (data.query_type[::10] == "u").mean()
    assert abs(in_u - 0.5) < tolerance(0.5, n)
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
    noise = data.expected * (1 - data.expected)
    spread = np.sqrt(np.bincount(place, noise))
    difference = np.bincount(place, data.y_true - data.expected)
    assert np.abs(difference / spread).max() < 4
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
    other = 3 - item
    shift = boost if item == 1 else -boost  # of s_i less that of s_j
    number = value = 0.0
    for kind, share in SHARE.items():
        weight = share * (1 - share)

        def edge(s_i, difference):
            """s_j where s_j - s_i - shift is the difference."""
            return min(max(s_i + shift + difference, 0), 1)

        for power in (0, 1):
            total, _ = dblquad(
                lambda s_j, s_i, power=power, kind=kind: (
                    (
                        relevance(s_i, BIAS[kind, item])
                        - relevance(s_j, BIAS[kind, other])
                    )
                    ** power
                ),
                *(0, 1, lambda x: edge(x, 0), lambda x: edge(x, epsilon)),
                epsabs=1e-5,
            )
            if power:
                value += weight * total
            else:
                number += weight * total
    return value / number


@pytest.mark.parametrize("epsilon", [0.1, *rarely(0.01, 0.3)])
@pytest.mark.parametrize("boost", [0.0, 0.1])
def test_matched_pairs_measure_the_truth(data, epsilon, boost):
    result = matched(data, boost, epsilon=epsilon)
    truth = [pair_mean(item, boost, epsilon) for item in (1, 2)]
    assert np.all(np.abs(result.estimate - truth) < 4 * result.standard_error)


def test_limit_of_small_epsilon():
    assert pair_mean(1, 0.0, 1e-4) == pytest.approx(0.06875, abs=1e-4)


PAPER = {"all": 1.083, "intra": 1.149, "inter": 1.356}


@pytest.fixture(name="underranked", scope="module")
def _underranked():
    return make_underranked_items(20_000, random_state=0)


def accuracy(data, **options):
    return pairwise_accuracy(
        data.y_true,
        data.y_score,
        sensitive_features=data.sensitive_features,
        qid=data.qid,
        **options,
    )


def test_columns_of_underranked_items():
    data = make_underranked_items(20, n_items=3, n_signals=2, random_state=0)
    rows = ("y_true", "y_score", "sensitive_features", "qid", "engagement")
    assert {data[name].shape for name in rows} == {(60,)}
    assert data.X.shape == (60, 4)
    assert data.feature_names == ["match", "signal_1", "signal_2", "shared"]
    np.testing.assert_array_equal(data.qid, np.repeat(np.arange(20), 3))
    np.testing.assert_array_equal(data.engagement > 0, data.y_true == 1)
    np.testing.assert_allclose(data.X @ data.coef, data.y_score)
    assert "20 queries of 3 items" in data.DESCR


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
