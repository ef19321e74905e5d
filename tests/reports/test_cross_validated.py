"""The audit of out-of-fold scores is the sum of the folds' results."""

from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skrankfair import audit_cv, metrics
from skrankfair.exceptions import UndefinedMetricWarning
from tests.metrics.common import assert_same as same

METRICS = {
    "pairwise_accuracy": (metrics.pairwise_accuracy, {"comparison": "all"}),
    "intra_group_accuracy": (metrics.pairwise_accuracy, {"comparison": "intra"}),
    "inter_group_accuracy": (metrics.pairwise_accuracy, {"comparison": "inter"}),
    "pairwise_exposure": (metrics.pairwise_exposure, {}),
    "pairwise_preference": (metrics.pairwise_preference, {}),
    "ndcg": (metrics.ndcg, {"sensitive_features": None}),
}
NAMES = list(METRICS)[:-1]
SOME = ("inter_group_accuracy", "ndcg")


def problem(n_queries=60, size=8, seed=0, groups="abc"):
    """A frame with queries, three groups and clusters of three queries."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = pd.DataFrame({"query": np.repeat(np.arange(n_queries), size) + 1000})
    X["group"] = rng.choice(list(groups), n)
    X["x"] = rng.normal(size=n)
    X["engagement"] = rng.gamma(2, size=n)
    X["user"] = "u" + (X["query"] // 3).astype(str)
    X["seen"] = X["x"] - 0.5 * (X["group"] == "a")
    return X, (X["x"] + rng.normal(size=n) > 0).astype(int)


def model(estimator=None):
    """A model of the columns that are features."""
    estimator = LogisticRegression() if estimator is None else estimator
    return make_pipeline(make_column_transformer(("passthrough", ["seen"])), estimator)


def scores_by_fold(X, y, splits):
    """Rows and scores of each test set, by a plain loop."""
    found = []
    for train, test in splits:
        fitted = clone(model()).fit(X.iloc[train], y.iloc[train])
        found.append((test, fitted.predict_proba(X.iloc[test])[:, 1]))
    return found


def sum_of_folds(metric, X, y, folds, who, **options):
    """The sum of the results of the folds, each of which is a plain call."""
    results = []
    for rows, score in folds:
        columns = {a: X[c].iloc[rows] for a, c in who.items()}
        results.append(metric(y.iloc[rows], score, **columns, **options))
    return sum(results)


QUERIES, CLUSTERS = {"qid": "query"}, {"cluster": "user"}


class TestIsTheSumOfTheFolds:
    @pytest.mark.parametrize(
        "units", [QUERIES, {**QUERIES, **CLUSTERS}, CLUSTERS, {}], ids=str
    )
    def test_of_queries_clusters_and_items(self, units):
        X, y = problem()
        splits = list(KFold(4, shuffle=True, random_state=0).split(X))
        if units:
            by = X[units.get("cluster", units.get("qid"))]
            splits = list(GroupKFold(4).split(X, y, by))
        who = {"sensitive_features": "group", **units}
        names = [*METRICS] if "qid" in units else NAMES
        report = audit_cv(model(), X, y, cv=splits, metrics=names, **who)
        folds = scores_by_fold(X, y, splits)
        for name in names:
            metric, options = METRICS[name]
            columns = {a: c for a, c in who.items() if a not in options}
            result = report.results[name]
            expected = sum_of_folds(metric, X, y, folds, columns, **options)
            same(result, expected)
        if not units:
            assert expected.variance == "item"
            assert report.n_clusters == len(X)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
    @pytest.mark.parametrize("who", [CLUSTERS, QUERIES, {}])
    @pytest.mark.parametrize(
        ("metric", "option", "first"),
        [
            (metrics.matched_pair_calibration, "epsilon", "epsilon"),
            (metrics.pairwise_accuracy, "bins", "engagement_edges"),
        ],
    )
    def test_with_what_was_chosen_from_all_folds(self, metric, option, first, who):
        X, y = problem()
        splits = list(KFold(4).split(X))
        of_row = {} if option == "epsilon" else {"engagement": "engagement"}
        name = metric.__name__
        who = {"sensitive_features": "group", **who, **of_row}
        result = audit_cv(model(), X, y, cv=splits, metrics=name, **who).results[name]
        named = {key: column for key, column in who.items() if key != "cluster"}
        folds, chosen = scores_by_fold(X, y, splits), {option: result.first_pass[first]}
        expected = sum_of_folds(metric, X, y, folds, named, **chosen)
        np.testing.assert_allclose(result.estimate, expected.estimate, rtol=1e-12)


class TestUnits:
    def test_a_query_in_several_folds_is_one_unit(self):
        X, y = problem()
        splits = list(KFold(4, shuffle=True, random_state=0).split(X))
        who = {"sensitive_features": "group", "qid": "query"}
        report = audit_cv(model(), X, y, cv=splits, metrics=NAMES, **who)
        assert report.n_clusters == 60
        assert report.n_queries > 60
        assert report.notes[1].startswith("60 queries are split over folds into")
        for i, (rows, values) in enumerate(scores_by_fold(X, y, splits)):
            X.loc[rows, ["fold", "score"]] = np.column_stack([values * 0 + i, values])
        who = {"sensitive_features": X["group"], "cluster": X["query"]}
        qid = X["fold"] * 10_000 + X["query"]
        expected = metrics.pairwise_exposure(None, X["score"], qid=qid, **who)
        same(report.results["pairwise_exposure"], expected)

    @pytest.mark.parametrize("units", [QUERIES, {}, CLUSTERS], ids=str)
    def test_scoring_twice_adds_nothing_but_pairs(self, units):
        """The same split twice: twice the sums, and the same errors."""
        X, y = problem()
        splits = list(GroupKFold(4).split(X, y, X["user" if units else "query"]))
        who = {"sensitive_features": "group", "metrics": NAMES, **units}
        once = audit_cv(model(), X, y, cv=splits, **who)
        twice = audit_cv(model(), X, y, cv=splits * 2, **who)
        assert twice.n_rows == 2 * once.n_rows
        assert any("several models" in note for note in twice.notes)
        for name in NAMES:
            a, b = once.results[name], twice.results[name]
            np.testing.assert_allclose(b.estimate, a.estimate, rtol=1e-12)
            np.testing.assert_array_equal(b.support, 2 * a.support)
            assert b.n_clusters == a.n_clusters
            ratio = b.standard_error / a.standard_error
            # The term of pairs that are measured again is left out: cautious.
            assert (ratio >= 1 - 1e-9).all()
            assert (ratio < (1 + 1e-9 if "qid" in units else 1.06)).all()

    @pytest.mark.parametrize("cluster", ["user", ["user", "item"]])
    def test_items_that_recur_among_users(self, cluster):
        X, y = problem()
        X["item"] = np.arange(len(X)) % 37
        X["group"] = np.where(X["item"] % 3 > 0, "a", "b")
        who = {"sensitive_features": "group", "qid": "query", "cluster": cluster}
        report = audit_cv(model(), X, y, **who, metrics=SOME)
        both = cluster != "user"
        assert ("60 queries, 21 users, 37 items" in report.counts) == both
        said = "The errors of NDCG are those" if both else "Each 'item' has one group"
        assert said in report.notes[1]

    def test_lists_of_one_cluster_each(self):
        X, y = problem(n_queries=12)
        who = {"sensitive_features": "group", "cluster": "user", "groups": "user"}
        report = audit_cv(model(), X, y, cv=LeaveOneGroupOut(), metrics=NAMES, **who)
        assert report.n_clusters == report.n_queries == X["user"].nunique()
        assert report.results["pairwise_exposure"].variance == "cluster"

    @pytest.mark.parametrize("qid", [None, "query"])
    def test_a_group_may_lack_in_one_fold_or_in_all(self, qid):
        X, y = problem()
        X.loc[(X["group"] == "c") & (X["query"] >= 1040), "group"] = "b"
        who = {"sensitive_features": "group", "qid": qid, "cv": KFold(6)}
        report = audit_cv(model(), X, y, metrics=NAMES[2], **who)
        result = report.results[NAMES[2]]
        assert result.groups == ("a", "b", "c")
        assert np.isfinite(result.standard_error).all()
        none = y.mask(X["group"] == "c", 0)
        with pytest.warns(UndefinedMetricWarning, match="without pairs: c"):
            report = audit_cv(model(), X, none, metrics=NAMES[1], **who)
        assert np.isnan(report.results[NAMES[1]].estimate[2])

    @pytest.mark.parametrize("qid", ["query", None])
    def test_missing_rows_are_left_out_of_the_audit(self, qid):
        X, y = problem()
        X["w"] = 1 + np.arange(len(X)) % 3
        lacking = X.assign(group=X["group"].where(X.index != 5))
        who = {"sensitive_features": "group", "qid": qid, "metrics": NAMES[2]}
        who["cv"] = StratifiedKFold(5)
        with pytest.warns(UserWarning, match="1 of 480 rows are left out"):
            report = audit_cv(
                model(), lacking, y, item_weight="w", missing="drop", **who
            )
        assert report.n_rows == 479
        assert any("1 lack sensitive_features" in note for note in report.notes)
        result = report.results[NAMES[2]]
        assert result.missing == {"dropped": 1, "sensitive_features": 1}
        # Weights of 0 for rows are the same as their removal.
        weight = np.where(X.index == 5, 0, X["w"])
        whole = audit_cv(model(), X, y, item_weight=weight, **who).results[NAMES[2]]
        np.testing.assert_allclose(result.estimate, whole.estimate, rtol=1e-9)


class TestInputs:
    def frame(self, **options):
        X, y = problem()
        who = {"sensitive_features": "group", "qid": "query"}
        options = {"estimator": model(), "y": y, **who, "metrics": SOME, **options}
        return audit_cv(X=X, **options).to_frame()

    def test_names_arrays_and_functions_give_the_same(self):
        X, y = problem()
        expected = self.frame()
        for group, query in (
            (X["group"].to_numpy(), X["query"].to_list()),
            (lambda X: X["group"], pl.Series(X["query"].to_numpy())),
            (X["group"], X["query"]),
        ):
            found = self.frame(sensitive_features=group, qid=query, n_jobs=2)
            pd.testing.assert_frame_equal(found, expected)
        of_arrays = {"sensitive_features": X["group"], "qid": X["query"]}
        who = {"sensitive_features": "group", "qid": "query"}
        in_polars = model().set_output(transform="polars")
        for estimator, table, columns in (
            (LogisticRegression(), X[["seen"]].to_numpy(), of_arrays),
            (in_polars, pl.from_pandas(X), who),
            (model(), X, who),
        ):
            labels = np.where(y == 1, "yes", "no") if table is X else y.to_frame()
            found = audit_cv(estimator, table, labels, metrics=SOME, **columns)
            pd.testing.assert_frame_equal(found.to_frame(), expected)

    def test_splits_may_be_lists_or_masks(self):
        X, y = problem()
        splits = list(GroupKFold(3).split(X, y, X["user"]))
        masks = [[np.isin(np.arange(len(y)), part) for part in two] for two in splits]
        lists = [tuple(part.tolist() for part in two) for two in splits]
        who = {"cluster": "user", "metrics": NAMES[2]}
        expected = self.frame(**who, cv=splits)
        for cv in (masks, lists, tuple(splits)):
            pd.testing.assert_frame_equal(self.frame(**who, cv=cv), expected)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sensitive_features": None}, "sensitive_features must be given"),
            ({"sensitive_features": "sex"}, "there is no 'sex' among"),
            ({"qid": 0.5}, "qid must be a column of X or an array; got 0.5"),
            ({"qid": [1, 2, 3]}, "same number of rows; got X: 480, y: 480"),
            ({"cluster": np.arange(480) // 5}, "a query has rows of several"),
            ({"metrics": "auc"}, "metrics must be among"),
            ({"cv": GroupKFold(3), "groups": "town"}, "there is no 'town'"),
            ({"k": 3, "qid": None}, "k must be None without qid"),
            ({"metrics": "ndcg", "qid": None}, "qid must be given for ndcg"),
            ({"y": np.eye(480)}, r"y must be 1-dim.*got an array of shape \(480, 480"),
            ({"y": []}, "y must have at least one row; it is empty"),
            ({"estimator": model(PCA(1))}, "estimator must have a method.*Pipeline"),
        ],
    )
    def test_bad_input_raises(self, options, message):
        wrong = TypeError if "estimator" in options else ValueError
        with pytest.raises(wrong, match=message):
            self.frame(**options)


class Careful(BaseEstimator):
    """Scores with the groups, and stores what it is fitted with."""

    def fit(self, X, y, bonus=None, scale=1.0):
        assert bonus is None or len(bonus) == len(X)
        self.bonus_ = 0.0 if bonus is None else float(np.mean(bonus))
        self.scale_ = scale
        return self

    def predict(self, X, sensitive_features=None):
        score = np.asarray(X["seen"], dtype=float) * self.scale_ + self.bonus_
        if sensitive_features is not None:
            score += 0.5 * (np.asarray(sensitive_features) == "a")
        return score


WHO = MappingProxyType(
    {"sensitive_features": "group", "qid": "query", "metrics": "pairwise_exposure"}
)


def estimates(estimator, **options):
    X, y = problem()
    report = audit_cv(estimator, X, y, **WHO, **options)
    assert report.title == "Cross-validated fairness audit"
    assert report.notes[0].startswith("Scores are out of fold, by predict")
    return report.results["pairwise_exposure"].estimate


class TestFitting:
    def test_the_estimator_gets_the_groups_it_asks_for(self):
        X, _ = problem()
        who = {"sensitive_features": X["group"], "qid": X["query"]}
        expected = metrics.pairwise_exposure(None, X["x"], **who)
        np.testing.assert_allclose(estimates(Careful()), expected.estimate)

    def test_thresholds_are_of_probabilities(self):
        X, y = problem()
        options = {"sensitive_features": "group", "cv": 4, "threshold": 0.6}
        options |= {"task": "risk", "favorable": "low"}
        report = audit_cv(model(), X, y, **options)
        assert {"calibration_error", "brier_score"} <= set(report.results)
        responses = "predict_proba", ["decision_function"]
        same_response, other = (
            audit_cv(model(), X, y, **options, response_method=response)
            for response in responses
        )
        assert report.sections == same_response.sections
        assert "by decision_function of 4 models" in other.notes[0]

    def test_routed_params(self):
        X, _ = problem()
        params = {"sample_weight": np.where(X["x"] > 0, 1.0, 2.0)}
        with sklearn.config_context(enable_metadata_routing=True):
            asks = LogisticRegression().set_fit_request(sample_weight=True)
            one, two = (
                estimates(model(asks), params=params, n_jobs=n) for n in (None, 2)
            )
            np.testing.assert_array_equal(one, two)
            with pytest.raises(ValueError, match="params has 'sample_weight', which"):
                estimates(model(), params=params)

    def test_params_reach_fit_cut_to_the_fold(self):
        turned = estimates(Careful(), params={"bonus": np.arange(480), "scale": -1.0})
        assert (turned != estimates(Careful())).all()


@pytest.mark.parametrize("piped", [False, True])
def test_models_of_fairlearn_get_the_groups_that_fit_cannot_do_without(piped):
    fairlearn = pytest.importorskip("fairlearn.postprocessing")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=300), "group": np.resize([0, 1], 300)})
    y = (X["x"] + rng.normal(size=300) > 0).astype(int)
    model = fairlearn.ThresholdOptimizer(
        estimator=LogisticRegression(), predict_method="predict_proba"
    )
    if piped:
        model = make_pipeline(StandardScaler(), model)
    who = {"sensitive_features": "group", "metrics": "pairwise_accuracy", "cv": 2}
    report = audit_cv(model, X, y, **who)
    assert (report.results["pairwise_accuracy"].support > 0).all()
