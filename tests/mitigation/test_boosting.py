"""Pairwise regularisation as an objective of XGBoost and LightGBM."""

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from skrankfair.mitigation import pairwise_fairness_objective
from skrankfair.mitigation._pairwise_penalty import PairSource, smooth_absolute
from tests.mitigation.pairs import problem
from tests.reference.pairwise import pairs_accuracy

# LightGBM names columns that have no name, and scikit-learn then misses the names.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

LOSSES = ("squared", "logistic", "pairwise")
each_loss = pytest.mark.parametrize("loss", LOSSES)
COMPARISONS = ("inter", "intra", "all")


def objective_of(y, group, query, **options):
    who = {"sensitive_features": group, "qid": query}
    return pairwise_fairness_objective(y, **{"random_state": 0, **who, **options})


@each_loss
@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_gradient_is_finite_differences(loss, comparison, n_groups):
    _, y, group, query = problem(n_groups=n_groups)
    score = np.random.default_rng(0).normal(size=y.size)
    for strength, size in ((0.02, 1.0), (0.3, 1.0), (0.3, 1e-3)):
        options = {"loss": loss, "comparison": comparison, "strength": strength}
        objective = objective_of(y, group, query, **options)
        gradient, hessian = objective(y, size * score)
        assert (hessian > 0).all()
        for row in range(0, y.size, 29):
            step = np.zeros(y.size)
            step[row] = 1e-4
            above, below = (objective.value(size * score + h) for h in (step, -step))
            assert gradient[row] == pytest.approx((above - below) / 2e-4, abs=1e-6)


@each_loss
def test_hessian_is_that_of_the_loss(loss):
    _, y, group, query = problem()
    objective = objective_of(y, group, query, loss=loss, strength=0)
    score = np.random.default_rng(0).normal(size=y.size)
    hessian = objective(y, score)[1]
    for row in range(0, y.size, 7):
        step = np.zeros(y.size)
        step[row] = 1e-5
        above, below = (objective(y, score + sign * step)[0] for sign in (1, -1))
        numeric = (above - below)[row] / 2e-5
        assert hessian[row] == pytest.approx(max(numeric, 1e-6), abs=1e-6)


@each_loss
def test_hessian_bounds_the_penalty(loss):
    """All rows together cannot step over equal margins, whatever the direction."""
    _, y, group, query = problem(n_groups=3)
    options = {"loss": loss, "strength": 0.2}
    objective = objective_of(y, group, query, learning_rate=1.0, **options)
    without = objective_of(y, group, query, **options | {"strength": 0})
    rng = np.random.default_rng(0)
    score = rng.normal(size=y.size)
    gradient, hessian = (
        with_it - of_loss
        for with_it, of_loss in zip(objective(y, score), without(y, score), strict=True)
    )
    width, weight = objective._width, objective._weight
    linear = [correlation(score) for _, correlation in objective._penalty.terms]
    # Along any step the penalty of the linearised correlations is below its bound.
    for size in (0.01, 0.1, 1.0):
        for step in (rng.normal(size=y.size), np.sign(gradient), group == 1):
            step = -size * step
            change = sum(
                smooth_absolute(r + v @ step, width)[0] - smooth_absolute(r, width)[0]
                for r, v in linear
            )
            bound = gradient @ step + (hessian * step**2).sum() / 2
            assert weight * change <= bound + 1e-9
    slower = objective_of(y, group, query, learning_rate=0.1, **options)
    np.testing.assert_allclose(
        slower(y, score)[1] - without(y, score)[1], 0.1 * hessian, rtol=1e-6
    )


def test_pairwise_loss_is_of_all_pairs():
    _, y, group, query = problem(grades=3)
    score = np.random.default_rng(0).normal(size=y.size)
    objective = objective_of(y, group, query, loss="pairwise", strength=0)
    pairs = list(pairs_accuracy(y, score, query, np.full(y.size, True)))
    losses = [np.log1p(np.exp(score[j] - score[i])) for i, j, _ in pairs]
    assert objective.value(score) == pytest.approx(y.size * np.mean(losses))
    few = objective_of(y, group, query, loss="pairwise", strength=0, max_pairs=50)
    assert few.value(score) != objective.value(score)
    source = PairSource(y, query, "all", 10**6, None, np.ones(y.size))
    every = source.sides(np.ones(y.size, dtype=bool))
    assert [better.size for better, _ in every] == [0, len(pairs)]


@each_loss
def test_strength_is_in_units_of_the_loss_of_a_constant(loss):
    _, y, group, query = problem()
    objective = objective_of(y, group, query, loss=loss, strength=0.5)
    rate = y.mean()
    constant = {"squared": rate, "logistic": np.log(rate / (1 - rate)), "pairwise": 0.0}
    assert objective.base_score == pytest.approx(constant[loss])
    unit = objective.value(np.full(y.size, objective.base_score))
    without = objective_of(y, group, query, loss=loss, strength=0)
    score = np.random.default_rng(0).normal(size=y.size)
    penalty = objective.value(score) - without.value(score)
    # The smoothed correlation, with a deviation that has a least value.
    r = abs(objective.correlation(score)[0])
    assert 0 < penalty < 0.5 * unit * r
    far = objective.value(1e3 * score) - without.value(1e3 * score)
    assert far == pytest.approx(0.5 * unit * smooth_absolute(r, 0.5)[0], rel=1e-3)


def test_bad_input_raises():
    _, y, group, query = problem()
    for options, message in [
        ({"strength": -1}, "strength must be a number"),
        ({"learning_rate": 0}, "learning_rate must be a number"),
        ({"max_pairs": 1}, "max_pairs must be an integer"),
        ({"loss": "ndcg"}, "loss must be one of"),
        ({"comparison": "outer"}, "comparison must be one of"),
        ({"random_state": "x"}, "random_state must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            objective_of(y, group, query, **options)
    with pytest.raises(ValueError, match="y_true must be 0 or 1"):
        objective_of(2 * y, group, query, loss="logistic")
    with pytest.raises(ValueError, match="y_true must differ within a query"):
        objective_of(y, group, np.arange(y.size), loss="pairwise")
    objective = objective_of(y, group, query)
    for call in (
        lambda short: objective_of(short, group, query),
        objective.correlation,
        objective.value,
    ):
        with pytest.raises(ValueError, match="same number of rows"):
            call(y[1:])
    for other in (y[1:], 1 - y):
        with pytest.raises(ValueError, match="outcomes of the training rows"):
            objective(other, np.zeros(other.size))


# The two libraries


def test_other_ways_to_pass_it_give_the_same_model():
    X, y, group, query = problem()
    objective = objective_of(y, group, query, loss="logistic")
    xgboost = pytest.importorskip("xgboost")
    options = {"max_depth": 2, "learning_rate": 0.3, "base_score": 0.5}
    data = xgboost.DMatrix(X, label=y)
    native = xgboost.train({"nthread": 1, **options}, data, 5, obj=objective)
    options |= {"objective": objective, "n_estimators": 5, "n_jobs": 1}
    score = xgboost.XGBRegressor(**options).fit(X, y).predict(X)
    np.testing.assert_allclose(native.predict(data), score, rtol=1e-6)
    classifier = xgboost.XGBClassifier(**options).fit(X, y)
    margin = classifier.predict(X, output_margin=True)
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], expit(margin))
    assert np.corrcoef(margin, score)[0, 1] > 0.9
    with pytest.raises(ValueError, match="not supported by XGBRanker"):
        xgboost.XGBRanker(**options).fit(X, y, qid=np.sort(query))


def test_other_ways_with_lightgbm():
    X, y, group, query = problem()
    order = np.argsort(query, kind="stable")
    X, y, group, query = X[order], y[order], group[order], query[order]
    objective = objective_of(y, group, query, loss="pairwise")
    lightgbm = pytest.importorskip("lightgbm")
    options = {"objective": objective, "verbose": -1, "num_threads": 1}
    native = lightgbm.train(options, lightgbm.Dataset(X, label=y), num_boost_round=5)
    options = {"objective": objective, "verbose": -1, "n_jobs": 1, "n_estimators": 5}
    with pytest.raises(ValueError, match="sample_weight must go to the objective"):
        lightgbm.LGBMRegressor(**options).fit(X, y, sample_weight=y + 1)
    score = lightgbm.LGBMRegressor(**options).fit(X, y).predict(X)
    np.testing.assert_allclose(native.predict(X), score, rtol=1e-6)
    ranker = lightgbm.LGBMRanker(**options)
    ranker.fit(X, y, group=np.unique(query, return_counts=True)[1])
    np.testing.assert_allclose(ranker.predict(X), score, rtol=1e-6)


class TestPickled:
    """A model that is saved keeps its objective, which must not keep people's data."""

    def test_has_none_of_the_training_data(self):
        _, y, group, query = problem()
        objective = objective_of(y, group, query)
        state = objective.__getstate__()
        assert set(state) == {"strength", "learning_rate", "base_score"}
        assert len(pickle.dumps(objective)) < 300
        again = pickle.loads(pickle.dumps(objective))
        assert (again.strength, again.base_score) == (1.0, objective.base_score)
        uses = again.value, again.correlation, lambda scores: again(y, scores)
        for use in (*uses, lambda _: again.y_true):
            with pytest.raises(ValueError, match="leaves out the training data"):
                use(y)
        # A clone can train.
        assert deepcopy(objective) is copy(objective) is objective

    @pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
    def test_a_saved_model_predicts(self, library):
        X, y, group, query = problem()
        module = pytest.importorskip(library)
        kind = module.LGBMRegressor if library == "lightgbm" else module.XGBRegressor
        options = {"verbose": -1} if library == "lightgbm" else {}
        options |= {"objective": objective_of(y, group, query), "n_estimators": 2}
        fitted = clone(kind(n_jobs=1, **options)).fit(X, y)
        saved = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(saved.predict(X), fitted.predict(X))
