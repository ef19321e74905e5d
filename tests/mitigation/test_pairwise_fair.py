"""Pairwise regularisation of linear models: the penalty, the descent, the effect."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.mitigation import PairwiseFairClassifier, PairwiseFairRegressor
from skrankfair.mitigation import _pairwise_fair as pairwise_base
from skrankfair.mitigation._pairwise_penalty import LogisticRows
from tests.mitigation.pairs import naive_correlation, problem
from tests.seeds import one_in

MODELS = (PairwiseFairRegressor, PairwiseFairClassifier)
MATRICES = {"dense": np.asarray, "array": sparse.csr_array, "matrix": sparse.csr_matrix}
both = pytest.mark.parametrize("model", MODELS)
COMPARISONS = ("inter", "intra", "all")
each_comparison = pytest.mark.parametrize("comparison", COMPARISONS)


# The penalty


@one_in(2, comparison={c: c for c in COMPARISONS}, grades={"2": 2, "5": 5})
def test_each_group_is_a_term_of_the_penalty(comparison, grades):
    X, y, group, query = problem(n_groups=3, grades=grades)
    genres = pd.DataFrame({"drama": group == 0, "long": X[:, 1] > 1})
    for groups, members in (
        (group == 0, {False: group != 0}),  # of two groups the first
        (group, {k: group == k for k in range(3)}),
        (genres, {name: genres[name].to_numpy() for name in genres}),
    ):
        fitted = PairwiseFairRegressor(0.05, comparison=comparison)
        fitted.fit(X, y, groups, query)
        for end, score in ((-1, fitted.predict(X)), (0, Ridge().fit(X, y).predict(X))):
            naive = {
                name: naive_correlation(y, score, query, member, comparison)
                for name, member in members.items()
            }
            total = sum(map(abs, naive.values()))
            assert fitted.penalty_path_[end] == pytest.approx(total, rel=1e-8)
            if end:
                assert fitted.correlation_ == pytest.approx(naive, rel=1e-9)
        assert fitted.penalty_path_.size == fitted.n_iter_ + 1


@both
@each_comparison
@one_in(3, alpha={"0": 0.0, "2": 2.0}, few={"few": 256, "many": 0}, make=MATRICES)
def test_gradient_of_the_objective(monkeypatch, model, comparison, alpha, few, make):
    monkeypatch.setattr(pairwise_base, "_FEW_FEATURES", few)
    monkeypatch.setattr(pairwise_base, "_BLOCK", 100)
    X, y, group, query = problem(n_groups=3)
    kept = []

    def keep(objective, max_iter, tol):
        kept.append(objective)
        return objective.start, np.zeros(2), 1

    monkeypatch.setattr(pairwise_base.LinearObjective, "descend", keep)
    model(0.05, comparison=comparison, alpha=alpha).fit(make(X), y, group, query)
    (objective,) = kept
    start = objective.start
    rng = np.random.default_rng(0)
    for _ in range(3):
        at = start + 0.3 * rng.normal(size=start.size)
        step = 1e-5 * np.eye(at.size)
        numeric = [(objective(at + h)[0] - objective(at - h)[0]) / 2e-5 for h in step]
        np.testing.assert_allclose(objective(at)[1], numeric, rtol=1e-6, atol=1e-6)


# The unpenalised model


@one_in(
    3,
    alpha={"0.01": 0.01, "1": 1.0, "100": 100.0},
    make=MATRICES,
    strength={"0": 0, "1e-9": 1e-9},
)
def test_without_strength_it_is_scikit_learn(alpha, make, strength):
    X, y, group, query = problem(400)
    ours = PairwiseFairRegressor(strength, alpha=alpha).fit(make(X), y, group, query)
    ridge = Ridge(alpha=alpha).fit(X, y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(ridge.intercept_, abs=1e-5)
    ours = PairwiseFairClassifier(strength, alpha=alpha).fit(make(X), y, group, query)
    logistic = LogisticRegression(C=1 / alpha, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, logistic.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, logistic.intercept_, atol=1e-5)
    expected = logistic.predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), logistic.predict(X))


def test_strength_is_in_units_of_the_loss_of_a_constant():
    X, y, group, query = problem(grades=4)
    one = PairwiseFairRegressor(0.2).fit(X, y, group, query)
    ten = PairwiseFairRegressor(0.2).fit(X, 10 * y + 3, group, query)
    np.testing.assert_allclose(ten.coef_, 10 * one.coef_, rtol=1e-5)
    # Between Ridge and no correlation.
    assert 0.1 < one.penalty_path_[-1] / one.penalty_path_[0] < 0.9
    loss = LogisticRegression(C=1e-9).fit(X, y > 0)
    constant = loss.predict_proba(X)[np.arange(y.size), (y > 0).astype(int)]
    ours = LogisticRows((y > 0).astype(float), np.ones(y.size))
    assert ours(np.full(y.size, ours.constant))[0] == pytest.approx(
        -np.log(constant).sum(), rel=1e-4
    )


@both
def test_neither_many_features_nor_units_change_the_model(monkeypatch, model):
    X, y, group, query = problem(400)
    unit = np.array([1, 1e6 if model is PairwiseFairRegressor else 1e3, 1e-3, 1])
    few = model(1.0, alpha=0, tol=1e-8).fit(X * unit, y, group, query)
    monkeypatch.setattr(pairwise_base, "_FEW_FEATURES", 0)
    many = model(1.0, alpha=0, tol=1e-8).fit(sparse.csr_array(X), y, group, query)
    np.testing.assert_allclose(many.coef_, few.coef_ * unit, rtol=1e-3, atol=1e-4)
    assert few.penalty_path_[-1] < 0.1 * few.penalty_path_[0]


# Where there is nothing to compare


@both
def test_without_comparable_pairs_it_warns_and_has_no_penalty(model):
    X, y, group, query = problem()
    for labels, queries, message, numbers in (
        (["a"] * y.size, query, "has one group, 'a'", {}),
        (group, np.arange(y.size), "no comparable pair .* groups 0:", {0: 0}),
    ):
        with pytest.warns(UndefinedMetricWarning, match=message):
            fitted = model(0.05).fit(X, y, labels, queries)
        np.testing.assert_array_equal(fitted.coef_, model(0).fit(X, y).coef_)
        assert fitted.n_pairs_ == numbers
    # Every query of one group only: "all" has pairs, but none between groups.
    with pytest.warns(UndefinedMetricWarning, match="comparison='all'"):
        model(0.05, comparison="all").fit(X, y, group, group)


@both
def test_groups_without_a_pair_are_named_and_left_out(model):
    X, y, group, query = problem(n_groups=3)
    query = np.where(group == 2, 1000 + np.arange(y.size), query)
    with pytest.warns(UndefinedMetricWarning, match="groups 2:"):
        fitted = model(0.05).fit(X, y, group, query)
    assert set(fitted.correlation_) == {0, 1}


@both
def test_equal_scores_warn(model):
    _, y, group, query = problem()
    with pytest.warns(UndefinedMetricWarning, match="are equal in the pairs of .* 0"):
        fitted = model(0.05).fit(np.ones((y.size, 2)), y, group, query)
    np.testing.assert_allclose(fitted.coef_, 0, atol=1e-12)


@both
def test_too_few_iterations_warn(model):
    X, y, group, query = problem(2000)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
        model(0.1, max_iter=1).fit(X, y, group, query)
