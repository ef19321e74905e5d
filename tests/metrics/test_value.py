"""The value of a ranking, and what a boost of a group changes; Theorem 1."""

import numpy as np
import pytest

from skrankfair.datasets import make_confounded_queries
from skrankfair.inference import compare
from skrankfair.metrics import _ndcg, boost_value, ndcg
from tests.reference import value as naive

WEIGHTS = ("dcg", "reciprocal", "uniform", [1.0, 0.5, 0.25])


def ties(seed=0, n_queries=12, size=5):
    """Return short queries with tied scores and outcomes."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    s, y = rng.integers(0, 6, n) / 4, rng.integers(0, 3, n).astype(float)
    return y, s, np.repeat(np.arange(n_queries), size), rng.choice(["a", "b", "c"], n)


@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("normalize", [False, True])
def test_boost_value_is_the_mean_difference_of_values(monkeypatch, weight, normalize):
    monkeypatch.setattr(_ndcg, "_TOGETHER", 20)  # a few lists at once
    y, s, q, g = ties()
    y[q == 0] = 0.0  # without relevance there is no share of the best value
    for boost in (0.25, -0.5, 0.3):
        r = boost_value(
            *(y, s), sensitive_features=g, qid=q, boost=boost,
            position_weight=weight, normalize=normalize,
        )  # fmt: skip
        for group, estimate, error in zip(
            r.groups, r.estimate, r.standard_error, strict=True
        ):
            args = y.tolist(), s.tolist(), q.tolist(), (g == group).tolist()
            by_query = naive.boosts(*args, boost, weight, normalize)
            values = np.array(list(by_query.values()))
            assert estimate == pytest.approx(values.mean(), abs=1e-13)
            number = len({*q[g == group].tolist()} & by_query.keys())
            squares = (number - 1) / number * np.sum((values - values.mean()) ** 2)
            assert error == pytest.approx(squares**0.5 / (values.size - 1), abs=1e-12)


def test_equations_3_and_4():
    data = make_confounded_queries(600, random_state=1)
    both = np.isin(data.qid, np.unique(data.qid[data.sensitive_features == 1]))
    y, s, g, q = (
        column[both]
        for column in (data.expected, data.y_score, data.sensitive_features, data.qid)
    )
    boost, who = 0.06, {"sensitive_features": g, "qid": q}
    r = boost_value(y, s, boost=boost, **who)
    before, after = (
        ndcg(y, score, qid=q, normalize=False) for score in (s, s + boost * (g == 1))
    )
    paired = compare(after, before)
    for name in ("estimate", "standard_error", "pvalue"):
        assert getattr(r, name)[0] == pytest.approx(getattr(paired, name)[0])
    assert r.estimate[1] < r.confidence_interval()[1][1] < 0
    assert r.pvalue[1] == 1  # that a boost costs is fair
    # With weights that fall by one each place, Δ is Σ (y_i - y_j) over the swaps.
    r = boost_value(y, s, boost=boost, position_weight=np.arange(10, 0, -1), **who)
    gained = []
    for query in np.unique(q):
        y_, s_, in_group = (column[q == query] for column in (y, s, g == 1))
        above = s_ - s_[:, None]
        swapped = in_group[:, None] & ~in_group & (above > 0) & (above < boost)
        gained.append(((y_[:, None] - y_) * swapped).sum())
    assert r.estimate[0] == pytest.approx(np.mean(gained))


def test_a_boost_may_be_a_large_integer():
    rng = np.random.default_rng(0)
    y, s, query = rng.random(40), rng.random(40), np.repeat(np.arange(8), 5)
    who = {"sensitive_features": np.tile(["a", "b"], 20), "qid": query}
    one, other = (boost_value(y, s, boost=boost, **who) for boost in (1e30, 10**30))
    np.testing.assert_array_equal(one.estimate, other.estimate)
