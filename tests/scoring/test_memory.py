"""What is behind the scores of a search: found in it, and gone when it is done."""

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import Barrier
from weakref import WeakSet, WeakValueDictionary

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skrankfair._estimates import folded, sums
from skrankfair.metrics import pairwise_exposure
from skrankfair.model_selection import fairness_constrained
from skrankfair.scoring import FairnessScore, _memory
from tests.scoring.data import DATA, FEATURES, column_scorer

X, Y = DATA.pandas, DATA.y


@pytest.fixture(autouse=True)
def _nobody_asks(monkeypatch):
    """Without the constraints and scores of other tests."""
    monkeypatch.setattr(_memory, "_ASKING", WeakSet())
    monkeypatch.setattr(_memory, "_ALIVE", WeakValueDictionary())
    monkeypatch.setattr(_memory, "_CLUSTERS", WeakValueDictionary())


def ridge(**options):
    keep = ColumnTransformer([("keep", "passthrough", FEATURES)])
    return Pipeline([("keep", keep), ("model", Ridge(**options))])


ALPHAS = {"model__alpha": [0.1, 10.0, 1000.0]}


def constrained():
    return fairness_constrained("gap", at_most={"gap": 1}, confidence_level=0.95)


def search(refit, model=None, grid=None, scorer=None):
    return GridSearchCV(
        ridge() if model is None else model,
        ALPHAS if grid is None else grid,
        scoring={"gap": column_scorer() if scorer is None else scorer},
        cv=DATA.splits(),
        refit=refit,
    ).fit(X, Y)


class TestWhoPays:
    def test_for_covariances_of_many_groups_nobody_without_a_constraint(
        self, monkeypatch
    ):
        monkeypatch.setattr(folded, "_FEW_NUMBERS", 0)
        monkeypatch.setattr(sums, "LARGE_SHARE", 1.0)
        model, score = ridge().fit(X, Y), column_scorer()
        alone = score(model, X, Y).estimates
        constraint = constrained()
        asked = score(model, X, Y).estimates
        assert constraint is not None
        assert not alone.sums.has_covariance
        assert asked.sums.has_covariance
        error = asked.standard_error
        np.testing.assert_allclose(alone.standard_error, error, rtol=1e-12)
        with pytest.raises(ValueError, match="compare groups before compact"):
            alone.contrasts()
        error = (asked + asked).standard_error
        np.testing.assert_allclose((alone + alone).standard_error, error, rtol=1e-12)

    def test_nobody_without_a_constraint(self, monkeypatch):
        """Nothing is hashed, and the scores of a search are no more than numbers."""
        made = []
        monkeypatch.setattr(_memory, "joblib", None)
        monkeypatch.setattr(
            "skrankfair.scoring._scorer.FairnessScore",
            lambda *args: made.append(FairnessScore(*args)) or made[-1],
        )
        mean = fairness_constrained("gap", at_most={"gap": 1})
        search(mean)
        cross_validate(ridge(), X, Y, scoring={"gap": column_scorer()})
        assert len(made) == 14
        assert all(score.estimates is score.origin is None for score in made)

    def test_a_score_of_ones_own_always_has_its_estimates(self):
        score = column_scorer()(ridge().fit(X, Y), X, Y)
        assert score == -score.estimates.disparity()
        assert score.origin is None

    def test_a_scorer_tells_the_process_that_it_is_sent_to(self):
        scorer = column_scorer()
        assert not pickle.loads(pickle.dumps(scorer))._asked
        refit = constrained()
        sent = pickle.dumps(scorer)
        del refit
        assert not _memory.estimates_are_asked_for()
        assert pickle.loads(sent)(ridge().fit(X, Y), X, Y).origin is not None

    @pytest.mark.parametrize(
        "copy", [deepcopy, lambda refit: pickle.loads(pickle.dumps(refit))]
    )
    def test_a_copy_of_a_constraint_asks_too(self, copy):
        refit = constrained()
        copied = copy(refit)
        del refit
        assert _memory.estimates_are_asked_for()
        del copied
        assert not _memory.estimates_are_asked_for()

    def test_the_constraint_of_a_cloned_search_asks_too(self):
        found = clone(GridSearchCV(ridge(), ALPHAS, refit=constrained()))
        assert _memory.estimates_are_asked_for()
        del found


class TestLifetime:
    def test_scores_are_alive_while_the_search_chooses(self):
        alive = []
        refit = constrained()

        def choose(cv_results):
            alive.append(len(_memory._ALIVE))
            return refit(cv_results)

        search(choose)
        gc.collect()
        assert alive == [9]
        assert not _memory._ALIVE
        assert not _memory._CLUSTERS

    def test_a_search_that_fails_leaves_nothing(self):
        refit = constrained()

        def choose(cv_results):
            raise RuntimeError

        with pytest.raises(RuntimeError):
            search(choose)
        gc.collect()
        assert refit is not None
        assert not _memory._ALIVE

    def test_a_test_set_keeps_its_clusters_once(self):
        refit = constrained()
        fitted = [ridge(alpha=alpha).fit(X, Y) for alpha in (1.0, 2.0)]
        scores = [column_scorer()(model, X, Y) for model in fitted]
        scores += pickle.loads(pickle.dumps(scores))
        labels = scores[0].origin.clusters
        assert all(score.origin.clusters is labels for score in scores)
        del refit


class TestSearchesAreNotMixed:
    def test_at_the_same_time_in_two_threads(self):
        """The same scorer, data and grid; another solver and another intercept."""
        scorer, together = column_scorer(), Barrier(2)
        models = [ridge(fit_intercept=True), ridge(fit_intercept=False)]

        def run(model, barrier=None):
            refit = constrained()

            def choose(cv_results):
                if barrier is not None:
                    barrier.wait(60)
                index = refit(cv_results)
                if barrier is not None:
                    barrier.wait(60)
                return index

            search(choose, model, scorer=scorer)
            return refit.table_

        alone = [run(model) for model in models]
        with ThreadPoolExecutor(2) as pool:
            for table, expected in zip(
                pool.map(run, models, [together] * 2), alone, strict=True
            ):
                pd.testing.assert_frame_equal(table, expected)

    @pytest.mark.parametrize(
        "grid",
        [
            {"model": [Ridge(alpha=1.0), Ridge(alpha=9.0), BaggingRegressor(Ridge())]},
            {"steps": [ridge(alpha=alpha).steps for alpha in (0.1, 1000.0)]},
            {"keep__transformers": [[(n, "passthrough", [n])] for n in FEATURES]},
            [{"model__alpha": [3.0]}, {"model__solver": ["svd", "cholesky"]}],
        ],
        ids=["steps", "all steps", "transformers", "several grids"],
    )
    def test_whatever_is_searched(self, grid):
        refit = constrained()
        search(refit, grid=grid)
        assert (refit.table_["gap_bound"] > refit.table_["gap"]).all()


class TestAmongTheScoresThatAreAlive:
    """Scores are found by value; equal ones by their origin."""

    @pytest.fixture(name="held")
    def _held(self):
        return []

    @pytest.fixture(name="make")
    def _make(self, held):
        def make(value, fold, scorer="s", size=5, **params):
            rng = np.random.default_rng(fold)
            y, s = rng.normal(size=(2, 4 * size))
            query = np.arange(4 * size) // 4 + 100 * fold
            group = np.arange(4 * size) % 2
            estimates = pairwise_exposure(y, s, sensitive_features=group, qid=query)
            origin = _memory.Origin.of(scorer, Ridge(**params), [fold], estimates)
            held.append(FairnessScore(value, estimates.compact(), None, origin))
            return held[-1]

        return make

    def found(self, splits, params):
        scores = _memory.scores_of_search(np.array(splits), params, "gap")
        return [[score for score, _ in scores[candidate]] for candidate in scores]

    def test_equal_scores_of_two_candidates_and_two_folds(self, make):
        made = [[make(-0.5, fold, alpha=alpha) for fold in (0, 1)] for alpha in (1, 2)]
        found = self.found([[-0.5, -0.5], [-0.5, -0.5]], [{"alpha": 1}, {"alpha": 2}])
        for candidate in (0, 1):
            expected = {id(score) for score in made[candidate]}
            assert {id(score) for score in found[candidate]} == expected

    def test_scorers_are_not_mixed(self, make):
        a = [make(-0.1, 0, "a"), make(-0.2, 1, "a")]
        make(-0.1, 0, "b")
        make(-0.3, 1, "b")
        ((first, second),) = self.found([[-0.1, -0.2]], [{"alpha": 1.0}])
        assert (first, second) == tuple(a)
        assert first is a[0]
        with pytest.raises(ValueError, match="exist only while the search runs"):
            self.found([[-0.2, -0.3]], [{"alpha": 1.0}])

    def test_models_are_not_mixed(self, make):
        """One candidate of both is equal, the other tells the models apart."""
        make(-0.1, 0, alpha=1, solver="svd")
        make(-0.7, 0, alpha=2, solver="svd")
        other = [make(v, 0, alpha=a, solver="lsqr") for v, a in ((-0.1, 1), (-0.2, 2))]
        found = self.found([[-0.1], [-0.2]], [{"alpha": 1}, {"alpha": 2}])
        assert found[0][0] is other[0]
        assert found[1][0] is other[1]

    def test_a_training_set_is_not_taken_for_a_fold(self, make):
        """Where a perfect candidate has equal scores on both."""
        for fold in (2, 3):
            make(0.0, fold, size=9)
        folds = [make(0.0, fold) for fold in (0, 1)]
        for fold in (4, 5):
            make(0.0, fold, size=9)
        (found,) = self.found([[0.0, 0.0]], [{"alpha": 1.0}])
        assert {id(score) for score in found} == {id(score) for score in folds}

    def test_undefined_candidates_have_nothing(self, make):
        make(-0.1, 0, alpha=1)
        make(float("nan"), 0, alpha=2)
        params = [{"alpha": 2}, {"alpha": 1}]
        assert list(
            _memory.scores_of_search(np.array([[np.nan], [-0.1]]), params, "g")
        ) == [1]
        assert _memory.scores_of_search(np.full((2, 1), np.nan), params, "g") == {}

    def test_fewer_test_sets_than_folds(self, make):
        make(-0.1, 0)
        with pytest.raises(ValueError, match="exist only while the search runs"):
            self.found([[-0.1, -0.1]], [{"alpha": 1.0}])


def test_parameters_as_text():
    """Those of nested estimators too; arrays are left out."""
    ridge = Ridge(alpha=np.float64(2), solver="svd")
    texts = _memory.described_params(
        {"a": 1, "b": None, "c": [1], "d": np.zeros(2), "e": np.mean, "f": ridge}
    )
    assert texts["f"] == "Ridge"
    assert texts["f__solver"] == "'svd'"
    assert {k: v for k, v in texts.items() if k < "f"} == {
        "a": "1",
        "b": "None",
        "e": "mean",
    }
    outer = make_pipeline(StandardScaler(), BaggingRegressor(ridge))
    name = "baggingregressor__estimator__alpha"
    assert _memory.described_params(outer.get_params())[name] == texts["f__alpha"]
