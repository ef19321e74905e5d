"""Pairs of a query: counted without being written down, drawn evenly, correlated."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import UndefinedMetricWarning

from skrankfair.mitigation import (
    PairwiseFairClassifier,
    PairwiseFairRegressor,
    pairwise_fairness_objective,
    pairwise_penalty,
)
from skrankfair.mitigation._pairwise_penalty import (
    WIDTH,
    PairSource,
    smooth_absolute,
)
from tests.mitigation.pairs import naive_correlation, naive_pairs, problem

ONES = pd.Series(np.ones(240))
each_comparison = pytest.mark.parametrize("comparison", ["inter", "intra", "all"])


@each_comparison
@pytest.mark.parametrize("grades", [2, 5])
def test_sides_are_the_naive_pairs(comparison, grades):
    _, y, group, query = problem(120, grades=grades)
    member = group == 1
    naive = naive_pairs(y, query, member, comparison)
    source = PairSource(y, query, comparison, 10**6, None, np.ones(y.size))
    for side, found in enumerate(source.sides(member)):
        pairs = sorted(zip(*found, strict=True))
        assert pairs == sorted((i, j) for i, j, _ in naive[bool(side)])
        assert len(pairs) > 10


@each_comparison
def test_drawn_pairs_are_balanced_and_uniform(comparison):
    _, y, group, query = problem(160, grades=3)
    member = group == 1
    rng, weight = np.random.default_rng(0), np.ones(y.size)
    source = PairSource(y, query, comparison, 40, rng, weight)
    pairs = source.draw(member)
    np.testing.assert_array_equal(member[pairs.better], np.repeat([False, True], 20))
    np.testing.assert_allclose(pairs.weight, 1 / 40)
    naive = naive_pairs(y, query, member, comparison)
    known = {(i, j): b for side in naive.values() for i, j, b in side}
    number = dict.fromkeys(known, 0)
    for _ in range(1000):
        pairs = source.draw(member)
        for i, j, b in zip(pairs.better, pairs.worse, pairs.membership, strict=True):
            assert known[i, j] == b
            number[i, j] += 1
    for side in naive.values():
        counts = np.array([number[i, j] for i, j, _ in side])
        expected = 20_000 / counts.size
        chi2 = ((counts - expected) ** 2 / expected).sum()
        # A chi-square variable is within 4.5 deviations of its mean.
        assert abs(chi2 - counts.size) < 4.5 * np.sqrt(2 * counts.size)


def test_smooth_absolute():
    for value in (-0.5, -1e-4, 0.0, 1e-3, 0.9):
        penalty, slope = smooth_absolute(value)
        assert abs(value) - WIDTH <= penalty <= abs(value)
        numeric = smooth_absolute(value + 1e-7)[0] - smooth_absolute(value - 1e-7)[0]
        assert slope == pytest.approx(numeric / 2e-7, abs=1e-6)


# The penalty of any model


def penalty_of(y, group, query, **options):
    return pairwise_penalty(y, sensitive_features=group, qid=query, **options)


def repeated_queries(query, seed=1):
    """How often each row comes, its repeated rows, and the queries of these."""
    times = np.random.default_rng(seed).integers(0, 3, query.max() + 1)[query]
    rows = np.repeat(np.arange(query.size), times)
    copy = np.concatenate([np.arange(n) for n in times])
    return times, rows, query[rows] + 100 * copy


@each_comparison
@pytest.mark.parametrize("n_groups", [2, 3])
def test_penalty_is_the_naive_correlation_and_its_gradient(comparison, n_groups):
    _, y, group, query = problem(grades=3, n_groups=n_groups)
    score = np.random.default_rng(0).normal(size=y.size)
    penalty = penalty_of(y, group, query, comparison=comparison)
    value, gradient = penalty(score)
    naive = [
        naive_correlation(y, score, query, group == k, comparison)
        for k in range(1 if n_groups == 2 else 3)
    ]
    assert [*penalty.correlation(score).values()] == pytest.approx(naive, rel=1e-9)
    assert value == pytest.approx(sum(smooth_absolute(r)[0] for r in naive), rel=1e-9)
    numeric = approx_fprime(score, lambda s: penalty(s)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    if n_groups == 2:  # the columns of a membership matrix are each other's rest
        both = penalty_of(y, np.eye(2, dtype=bool)[group], query, comparison=comparison)
        assert both(score)[0] == value
    # Neither the scale nor the level of the scores matters.
    same, slope = penalty(3 * score + 7)
    assert same == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(3 * slope, gradient, atol=1e-10)
    none, slope = penalty(0 * score)
    assert none == 0
    assert np.isfinite(slope).all()


def test_strata_of_engagement_are_terms_that_count_as_one():
    _, y, group, query = problem(480)
    rng = np.random.default_rng(0)
    score, z = rng.normal(size=y.size), rng.random(y.size)
    z[y == 0] = np.nan
    penalty = penalty_of(y, group, query, engagement=z, bins=[0, 0.5, 1])
    expected = {}
    for bucket, chosen in enumerate((z < 0.5, z >= 0.5)):
        rows = (y == 0) | chosen
        columns = y[rows], score[rows], query[rows], group[rows] == 0
        expected[0, bucket] = naive_correlation(*columns, "inter")
    assert penalty.correlation(score) == pytest.approx(expected, rel=1e-9)
    value, gradient = penalty(score)
    mean = np.mean([smooth_absolute(r)[0] for r in expected.values()])
    assert value == pytest.approx(mean, rel=1e-9)
    numeric = approx_fprime(score, lambda s: penalty(s)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    one = penalty_of(y, group, query, engagement=z, bins=1)
    assert one(score)[0] == pytest.approx(penalty_of(y, group, query)(score)[0])


def test_weights_repeat_queries_and_remove_rows():
    _, y, group, query = problem()
    score = np.random.default_rng(0).normal(size=y.size)
    times, rows, queries = repeated_queries(query)
    value = penalty_of(y, group, query, sample_weight=times)(score)[0]
    again = penalty_of(y[rows], group[rows], queries)
    assert again(score[rows])[0] == pytest.approx(value, rel=1e-9)
    by_row = np.random.default_rng(2).integers(0, 2, y.size)
    kept = by_row > 0
    less = penalty_of(y[kept], group[kept], query[kept], max_pairs=100, random_state=0)
    same = penalty_of(
        y, group, query, sample_weight=by_row, max_pairs=100, random_state=0
    )
    assert same(score)[0] == pytest.approx(less(score[kept])[0], rel=1e-9)


def test_pairs_that_are_too_much_alike_are_left_out():
    X, y, group, query = problem()
    score = np.random.default_rng(0).normal(size=y.size)

    def keep(i, j):
        return np.abs(X[i] - X[j]).sum(axis=1) > 3

    penalty = penalty_of(y, group, query, keep=keep)
    (pairs,) = penalty.pairs.values()
    found = {
        inside: [(i, j) for i, j, _ in some if keep([i], [j])]
        for inside, some in naive_pairs(y, query, group == 0, "inter").items()
    }
    kept = sorted(zip(pairs.better, pairs.worse, strict=True))
    assert kept == sorted(found[True] + found[False])
    assert len(kept) < penalty_of(y, group, query).pairs[0].better.size
    assert penalty(score)[0] != penalty_of(y, group, query)(score)[0]
    with pytest.warns(UndefinedMetricWarning, match="no comparable pair.*left out"):
        nothing = penalty_of(y, group, query, keep=lambda i, j: i < 0)
    assert nothing(score)[0] == 0


@pytest.mark.parametrize("weights", [None, [0.3, 2.0]])
def test_heads_make_up_a_score(weights):
    _, y, group, query = problem()
    heads = np.random.default_rng(0).uniform(0.5, 1.5, size=(y.size, 2))
    penalty = penalty_of(y, group, query)
    value, gradient = penalty.of_heads(heads, weights)
    score = heads.prod(axis=1) if weights is None else heads @ weights
    assert value == pytest.approx(penalty(score)[0])
    numeric = approx_fprime(
        heads.ravel(), lambda h: penalty.of_heads(h.reshape(-1, 2), weights)[0], 1e-7
    )
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-6)


def test_the_models_minimise_this_penalty():
    X, y, group, query = problem(n_groups=3)
    options = {"sensitive_features": group, "qid": query}
    penalty = pairwise_penalty(y, **options)
    score = X @ [1.0, 0.5, 0.0, 0.0]
    objectives = [
        pairwise_fairness_objective(y, strength=strength, **given)
        for strength, given in (
            (0.2, options),
            (0.2, {"penalty": penalty}),
            (0, options),
        )
    ]
    own, given, without = (objective.value(score) for objective in objectives)
    assert own == pytest.approx(given, rel=1e-12)
    wide = pairwise_penalty(y, **options, least_spread=0.3 * y.std())
    wide = sum(smooth_absolute(r(score)[0], 0.2)[0] for _, r in wide.terms)
    assert own - without == pytest.approx(0.2 * ((y - y.mean()) ** 2).sum() / 2 * wide)
    for model in (PairwiseFairRegressor, PairwiseFairClassifier):
        fitted = model(0.1).fit(X, y, **options)
        of_pairs = model(0.1).fit(X, y, pairs=(X, penalty))
        np.testing.assert_allclose(of_pairs.coef_, fitted.coef_, rtol=1e-9)
        assert of_pairs.n_pairs_ == fitted.n_pairs_
        linear = X @ np.ravel(fitted.coef_)
        assert fitted.correlation_ == pytest.approx(penalty.correlation(linear))


def test_pairs_of_other_rows_than_those_of_the_loss():
    X, y, group, query = problem(400)
    shown, other = slice(0, 200), slice(200, 400)
    penalty = penalty_of(y[shown], group[shown], query[shown])
    # The penalty of the first rows and the loss of the others.
    model = PairwiseFairRegressor(1.0).fit(
        X[other], y[other], pairs=(X[shown], penalty)
    )
    assert abs(penalty.correlation(model.predict(X[shown]))[0]) < 0.01
    plain = PairwiseFairRegressor(0.0).fit(X[other], y[other])
    assert abs(penalty.correlation(plain.predict(X[shown]))[0]) > 0.1
    loss_only = np.arange(400) >= 200
    weighted = PairwiseFairRegressor(1.0).fit(
        *(X, y, group, query), sample_weight=loss_only, pairs=(X[shown], penalty)
    )
    np.testing.assert_allclose(weighted.coef_, model.coef_, rtol=1e-6)
    in_training = penalty_of(y, group, query, sample_weight=~loss_only)
    objective = pairwise_fairness_objective(
        y, sample_weight=loss_only, penalty=in_training, strength=0.1
    )
    score = X @ np.ones(4)
    gradient, _ = objective(y, score)
    step = 1e-5 * np.eye(400)[::40]
    numeric = [(objective.value(score + h) - objective.value(score - h)) for h in step]
    np.testing.assert_allclose(gradient[::40], np.array(numeric) / 2e-5, atol=1e-6)
    level = np.sum((y[200:] - y[200:].mean()) ** 2) / 2
    assert objective.base_score == pytest.approx(y[200:].mean())
    assert objective._weight == pytest.approx(0.1 * level)


@pytest.mark.parametrize("loss", ["squared", "logistic", "pairwise"])
def test_weights_of_an_objective_repeat_queries(loss):
    X, y, group, query = problem()
    times, rows, queries = repeated_queries(query)
    options = {"strength": 0.2, "loss": loss}
    weighted = pairwise_fairness_objective(
        y, sensitive_features=group, qid=query, sample_weight=times, **options
    )
    repeated = pairwise_fairness_objective(
        y[rows], sensitive_features=group[rows], qid=queries, **options
    )
    score = X[:, 0]
    # The mean of the pairwise loss is multiplied by the number of rows.
    ratio = y.size / rows.size if loss == "pairwise" else 1.0
    value = ratio * repeated.value(score[rows])
    assert weighted.value(score) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("model", [PairwiseFairRegressor, PairwiseFairClassifier])
def test_weights_of_a_model_repeat_queries(model):
    X, y, group, query = problem()
    times, rows, queries = repeated_queries(query)
    # An outcome of rows without weight is not a third class.
    weighted = model(0.1).fit(X, np.where(times, y, 9), group, query, times)
    repeated = model(0.1).fit(X[rows], y[rows], group[rows], queries)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)
    assert weighted.penalty_path_[0] == pytest.approx(repeated.penalty_path_[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"comparison": "both"}, "comparison must be one of"),
        ({"max_pairs": 1}, "max_pairs must be an integer"),
        ({"least_spread": 0}, "least_spread must be a number"),
        ({"keep": 3}, "keep must be a function of two arrays; got 3"),
        ({"keep": lambda i, j: i[1:] > 0}, "pairs: .*, keep: "),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight: 2"),
        ({"engagement": [1.0, 2.0]}, "engagement: 2"),
        ({"engagement": np.full(240, np.nan)}, "engagement must be known.* in row"),
        ({"sensitive_features": None}, "sensitive_features must be given"),
        ({"qid": ONES, "sample_weight": ONES[::-1]}, "rows in the order of qid"),
    ],
)
def test_bad_options(options, message):
    _, y, group, query = problem()
    options = {"sensitive_features": group, "qid": query, **options}
    with pytest.raises(ValueError, match=message):
        pairwise_penalty(y, **options)


def test_bad_scores_heads_and_pairs():
    X, y, group, query = problem()
    penalty = penalty_of(y, group, query)
    with pytest.raises(ValueError, match="score: 3"):
        penalty([1, 2, 3])
    with pytest.raises(ValueError, match=r"heads must have shape \(n, h\)"):
        penalty.of_heads(y)
    with pytest.raises(ValueError, match="weights: 3"):
        penalty.of_heads(X, [1, 2, 3])
    for pairs, message in (
        (penalty, "pairs must be a tuple of features and .*; got PairwisePenalty"),
        ((X[:9], penalty), "pairs: 9, penalty: 240"),
    ):
        with pytest.raises(ValueError, match=message):
            PairwiseFairRegressor().fit(X, y, pairs=pairs)
    with pytest.raises(ValueError, match="penalty must be what .*; got 3"):
        pairwise_fairness_objective(y, penalty=3)
    with pytest.raises(ValueError, match="qid must have its rows in the order of"):
        pairwise_fairness_objective(y, sensitive_features=ONES, qid=ONES[::-1])
    with pytest.raises(ValueError, match="penalty: 240"):
        pairwise_fairness_objective(y[:9], penalty=penalty)
