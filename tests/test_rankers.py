"""Rankers that need whole queries, inside scikit-learn's tools."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skrankfair.metrics import ndcg
from skrankfair.rankers import QueryRanker
from skrankfair.scoring import get_scorer
from tests.versions import each_check


def problem(seed=0):
    """Shuffled rows of queries, with a group that a feature gives away."""
    rng = np.random.default_rng(seed)
    n = 1200
    X = pd.DataFrame({"query": rng.integers(0, 100, n) * 7})
    X["group"] = rng.integers(0, 2, n)
    quality = rng.normal(size=n)
    X["seen"] = quality - 0.7 * X["group"]
    X["other"] = quality + rng.normal(size=n)
    return X, np.digitize(quality + rng.normal(size=n), [-1, 0, 1])


class Recorder(BaseEstimator):
    """Keeps what it is fitted with."""

    def fit(self, X, y, group=None):
        self.X_, self.y_, self.group_ = X, y, group
        return self


class GroupIdRecorder(Recorder):
    def fit(self, X, y, group_id=None, sample_weight=None):
        self.X_, self.group_, self.group_id_ = X, None, group_id
        self.weight_ = sample_weight
        return self


@each_check(QueryRanker(Ridge()), QueryRanker(DecisionTreeRegressor(random_state=0)))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestFit:
    def test_as_an_argument_or_a_function(self):
        X, y = problem()
        X["query"] = "q" + X["query"].astype(str)
        expected = QueryRanker(Recorder(), qid="query").fit(X, y).estimator_
        features = X.drop(columns="query")
        found = QueryRanker(Recorder()).fit(features, y, qid=X["query"]).estimator_
        pd.testing.assert_frame_equal(found.X_, expected.X_)
        np.testing.assert_array_equal(found.group_, expected.group_)
        found = QueryRanker(Recorder(), qid=lambda X: X["query"]).fit(X, y).estimator_
        np.testing.assert_array_equal(found.group_, expected.group_)

    @pytest.mark.parametrize(
        ("options", "given", "message"),
        [
            ({"qid": 0.5}, None, "qid must be a column name"),
            ({"qid": True}, None, "qid must be passed as metadata"),
            ({"qid": "session"}, None, "there is no 'session'"),
            ({"qid": "query"}, [1], "qid must be given once"),
            ({}, [1, 2], "same number of rows"),
            ({}, [None, *range(1199)], "must not have missing labels"),
            ({"drop": "sex"}, None, "drop must name columns of X"),
            ({"drop": np.array(["group"])}, None, "drop must be a column name, a list"),
        ],
    )
    def test_bad_input_raises(self, options, given, message):
        X, y = problem()
        with pytest.raises(ValueError, match=message):
            QueryRanker(Recorder(), **options).fit(X, y, qid=given)


class TestColumnsAndMetadata:
    def test_columns_that_only_scorers_need_are_dropped(self):
        X, y = problem()
        ranker = QueryRanker(Recorder(), qid="query", drop=["group"]).fit(X, y)
        assert list(ranker.estimator_.X_.columns) == ["seen", "other"]

    def test_weights_and_labels_are_sorted_with_their_rows(self):
        X, y = problem()
        weight = np.arange(len(X)) + 1.0
        ranker = QueryRanker(GroupIdRecorder(), qid="query")
        fitted = ranker.fit(X, y, sample_weight=weight).estimator_
        order = np.argsort(X["query"], kind="stable")
        np.testing.assert_array_equal(fitted.weight_, weight[order])
        starts = np.diff(X["query"][order]) > 0
        np.testing.assert_array_equal(np.diff(fitted.group_id_) > 0, starts)

    def test_what_the_ranker_does_not_take(self):
        X, y = problem()
        ranker = QueryRanker(Recorder(), qid="query")
        with pytest.raises(ValueError, match="sample_weight must be None: Recorder"):
            ranker.fit(X, y, sample_weight=np.ones(len(X)))
        with pytest.raises(ValueError, match="is not fitted yet"):
            ranker.predict(X)
        with pytest.raises(ValueError, match="eval_set must be None: Recorder"):
            ranker.fit(X, y, eval_set=[(X, y)])
        with pytest.raises(ValueError, match="eval_set must be a list of pairs"):
            ranker.fit(X, y, eval_set=(X, y))
        with pytest.raises(ValueError, match="eval_set: 1, eval_qid: 2"):
            ranker.fit(X, y, eval_set=[(X, y)], eval_qid=[X["query"]] * 2)

    def test_score_is_the_mean_ndcg(self):
        X, y = problem()
        ranker = QueryRanker(Ridge(), qid="query").fit(X, y)
        expected = ndcg(y, ranker.predict(X), qid=X["query"]).estimate[0]
        assert ranker.score(X, y) == expected
        weight = (X["query"] % 3 + 1).to_numpy()
        weighted = ndcg(y, ranker.predict(X), qid=X["query"], sample_weight=weight)
        assert ranker.score(X, y, sample_weight=weight) == weighted.estimate[0]


def boosted(library):
    """The ranker of a library, small and deterministic."""
    if library == "catboost":
        catboost = pytest.importorskip("catboost")
        return catboost.CatBoostRanker(
            iterations=5,
            verbose=False,
            thread_count=1,
            random_seed=0,
            allow_writing_files=False,
            loss_function="YetiRank:permutations=5",
        )
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.LGBMRanker(
            n_estimators=5, min_child_samples=5, verbose=-1, n_jobs=1, random_state=0
        )
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBRanker(n_estimators=5, n_jobs=1, random_state=0)


LIBRARIES = pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])


@LIBRARIES
class TestBoosting:
    def test_is_the_ranker_on_sorted_rows(self, library):
        X, y = problem()
        order = np.argsort(X["query"], kind="stable")
        rows, relevance = X.iloc[order], y[order]
        features = rows[["group", "seen", "other"]]
        sizes = rows["query"].value_counts().sort_index().to_numpy()
        queries = {
            "lightgbm": {"group": sizes},
            "xgboost": {"qid": rows["query"]},
            "catboost": {"group_id": rows["query"]},
        }
        plain = boosted(library).fit(features, relevance, **queries[library])
        ranker = QueryRanker(boosted(library), qid="query").fit(X, y)
        np.testing.assert_allclose(ranker.predict(rows), plain.predict(features))

    # LightGBM gives names to columns of arrays; scikit-learn 1.6 then misses them.
    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    @pytest.mark.parametrize("piped", [False, True])
    def test_weights_and_rows_to_watch(self, library, piped):
        X, y = problem()
        more, relevance = problem(1)
        weight = (X["query"] % 3 + 1).to_numpy(dtype=float)
        estimator = boosted(library)
        if piped:
            estimator = make_pipeline(StandardScaler(), estimator)
        ranker = QueryRanker(estimator, qid="query").fit(
            X, y, sample_weight=weight, eval_set=[(more, relevance)]
        )
        last = ranker.estimator_[-1] if piped else ranker.estimator_
        seen = last.evals_result_ if hasattr(last, "evals_result_") else None
        if seen is None:
            seen = getattr(last, "evals_result", last.get_params)()
        assert seen
        unweighted = QueryRanker(estimator, qid="query").fit(X, y)
        assert not np.allclose(ranker.predict(X), unweighted.predict(X))
        features, others = (frame.drop(columns="query") for frame in (X, more))
        watched = {"eval_set": [(others, relevance)], "eval_qid": [more["query"]]}
        as_metadata = QueryRanker(estimator).fit(
            features, y, qid=X["query"], sample_weight=weight, **watched
        )
        np.testing.assert_allclose(as_metadata.predict(features), ranker.predict(X))

    @pytest.mark.parametrize("requested", ["constructor", "by set_fit_request"])
    def test_rows_and_metadata_score_the_same(self, library, requested):
        X, y = problem()
        names, qid = ["seen", "other"], X["query"]
        options = {"cv": GroupKFold(3), "error_score": "raise"}
        by_name = {"scoring": get_scorer("ndcg", qid="query"), "groups": qid}
        ranker = QueryRanker(boosted(library), qid="query")
        rows = X[["query", *names]]
        expected = cross_val_score(ranker, rows, y, **by_name, **options)
        with sklearn.config_context(enable_metadata_routing=True):
            ranker = QueryRanker(boosted(library), qid=True)
            if requested != "constructor":
                ranker = ranker.set_params(qid=None).set_fit_request(qid=True)
            pipeline = make_pipeline(StandardScaler(), ranker)
            pipeline.set_output(transform="pandas")
            options |= {"scoring": get_scorer("ndcg", qid=True)}
            options |= {"params": {"qid": qid, "groups": qid}}
            found = cross_val_score(pipeline, X[names], y, **options)
        np.testing.assert_allclose(found, expected, rtol=0.02)


def test_a_weight_that_varies_within_a_query_of_xgboost():
    X, y = problem()
    weight = np.arange(len(X)) + 1.0
    with pytest.raises(ValueError, match="sample_weight must be constant within a que"):
        QueryRanker(boosted("xgboost"), qid="query").fit(X, y, sample_weight=weight)


def test_rows_may_be_lists():
    class ByGroup(Ridge):
        def fit(self, X, y, group=None):
            self.sizes_ = list(group)
            return super().fit(X, y)

    rows = [[1.0], [2.0], [3.0]]
    ranker = QueryRanker(ByGroup()).fit(rows, [1, 2, 3], qid=[1, 1, 0])
    assert ranker.estimator_.sizes_ == [1, 2]
    assert ranker.predict(rows).shape == (3,)
    assert QueryRanker(ByGroup()).fit(rows, [1, 2, 3]).estimator_.sizes_ == [3]
    X, y = problem()
    fitted, backwards = QueryRanker(Ridge()).fit(X, y), pd.Series(y, X.index[::-1])
    for method in (fitted.fit, fitted.score):
        with pytest.raises(ValueError, match="y must have its rows in the order of X"):
            method(X, backwards)
    for X, y, message in (([], [], "^X must have a row"), ([[1], [2]], None, " y ")):
        with pytest.raises(ValueError, match=message):
            QueryRanker(Ridge()).fit(X, y, qid=np.arange(len(X)))
    with pytest.raises(TypeError, match="Expected sequence or array-like"):
        QueryRanker(ByGroup()).fit(None, [1, 2, 3], qid=[1, 1, 0])
