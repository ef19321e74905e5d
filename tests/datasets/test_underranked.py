"""A small group that an honest model underranks, by as much as in the paper."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from benchmarks.simulations.common import tolerance
from skrankfair.datasets import make_underranked_items
from skrankfair.metrics import pairwise_accuracy

PAPER = {"all": 1.083, "intra": 1.149, "inter": 1.356}


@pytest.fixture(name="data", scope="module")
def _data():
    return make_underranked_items(20_000, random_state=0)


def accuracy(data, **options):
    return pairwise_accuracy(
        data.y_true,
        data.y_score,
        sensitive_features=data.sensitive_features,
        qid=data.qid,
        **options,
    )


def test_columns_are_named_as_arguments():
    data = make_underranked_items(20, n_items=3, n_signals=2, random_state=0)
    rows = ("y_true", "y_score", "sensitive_features", "qid", "engagement")
    assert {data[name].shape for name in rows} == {(60,)}
    assert data.X.shape == (60, 4)
    assert data.feature_names == ["match", "signal_1", "signal_2", "shared"]
    np.testing.assert_array_equal(data.qid, np.repeat(np.arange(20), 3))
    np.testing.assert_array_equal(data.engagement > 0, data.y_true == 1)
    np.testing.assert_allclose(data.X @ data.coef, data.y_score)
    assert "20 queries of 3 items" in data.DESCR


def test_items_of_a_group_share_their_match_with_the_query(data):
    key = data.qid * 2 + (data.sensitive_features == "subgroup")
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    match = data.X[order, 0]
    np.testing.assert_array_equal(match[1:][same], match[:-1][same])


def test_share(data):
    share = (data.sensitive_features == "subgroup").mean()
    assert abs(share - 0.1) < tolerance(0.1, data.qid.size)


@pytest.mark.parametrize("comparison", PAPER)
def test_gaps_are_those_of_the_paper(data, comparison):
    assert data.gaps[comparison] == pytest.approx(PAPER[comparison], abs=1e-6)
    r = accuracy(data, comparison=comparison)
    ratio = r.contrast("rest", "subgroup", kind="ratio")
    assert abs(ratio.estimate - PAPER[comparison]) < 4 * ratio.standard_error
    assert ratio.standard_error < 0.02


@pytest.mark.parametrize("comparison", ["intra", "inter"])
def test_accuracies_are_those_of_the_population(data, comparison):
    r = accuracy(data, comparison=comparison)
    truth = data.accuracy if comparison == "inter" else data.accuracy[:, ::-1]
    expected = [truth[0, 1], truth[1, 0]]
    assert np.all(np.abs(r.estimate - expected) < 4 * r.standard_error)


def test_the_score_is_the_best_linear_model(data):
    fitted = LinearRegression().fit(data.X, data.y_true)
    residual = data.y_true - fitted.predict(data.X)
    X = data.X - data.X.mean(0)
    # Sandwich standard errors by query.
    sums = np.zeros((20_000, X.shape[1]))
    np.add.at(sums, data.qid, X * residual[:, None])
    bread = np.linalg.inv(X.T @ X)
    error = np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread))
    scale = (fitted.coef_ @ data.coef) / (data.coef @ data.coef)
    assert np.all(np.abs(fitted.coef_ - scale * data.coef) < 4 * error)


def test_other_shares_and_gaps():
    data = make_underranked_items(
        10, share=0.02, gaps=(1.05, 1.1, 1.25), random_state=0
    )
    np.testing.assert_allclose(list(data.gaps.values()), [1.05, 1.1, 1.25], atol=1e-6)
