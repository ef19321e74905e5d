"""The audit of out-of-fold scores is the sum of the folds' results."""

from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skrankfair
from skrankfair import audit_cv
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare
from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)
from tests.seeds import rarely

METRICS = {
    "pairwise_accuracy": (pairwise_accuracy, {"comparison": "all"}),
    "intra_group_accuracy": (pairwise_accuracy, {"comparison": "intra"}),
    "inter_group_accuracy": (pairwise_accuracy, {"comparison": "inter"}),
    "pairwise_exposure": (pairwise_exposure, {}),
    "pairwise_preference": (pairwise_preference, {}),
    "ndcg": (ndcg, {"sensitive_features": None}),
}
NAMES = list(METRICS)[:-1]
SOME = ("inter_group_accuracy", "ndcg")


def problem(n_queries=60, size=8, seed=0, groups="abc"):
    """A frame with queries, three groups and clusters of three queries."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = pd.DataFrame(
        {
            "query": np.repeat(np.arange(n_queries), size) + 1000,
            "group": rng.choice(list(groups), n),
            "x": rng.normal(size=n),
            "engagement": rng.gamma(2, size=n),
        }
    )
    X["user"] = "u" + (X["query"] // 3).astype(str)
    X["seen"] = X["x"] - 0.5 * (X["group"] == "a")
    y = (X["x"] + rng.normal(size=n) > 0).astype(int)
    return X, y


def model(estimator=None):
    """A model of the columns that are features."""
    estimator = LogisticRegression() if estimator is None else estimator
    return make_pipeline(make_column_transformer(("passthrough", ["seen"])), estimator)


def scores_by_fold(X, y, splits):
    """Rows and scores of each test set, by a plain loop."""
    found = []
    for train, test in splits:
        fitted = clone(model()).fit(X.iloc[train], y.iloc[train])
        found.append((test, fitted.decision_function(X.iloc[test])))
    return found


def same(result, expected, rtol=1e-12):
    """Check that two results are equal, but for the rounding of sums."""
    assert result.groups == expected.groups
    np.testing.assert_allclose(result.estimate, expected.estimate, rtol=rtol)
    np.testing.assert_allclose(
        result.covariance, expected.covariance, rtol=1e-9, atol=1e-15
    )
    np.testing.assert_allclose(result.support, expected.support)
    assert result.n_clusters == expected.n_clusters
    assert result.variance == expected.variance


QUERIES, USERS = {"qid": "query"}, {"qid": "query", "cluster": "user"}
CLUSTERS = {"cluster": "user"}


class TestIsTheSumOfTheFolds:
    @pytest.mark.parametrize(
        ("name", "units"),
        [
            *((name, QUERIES) for name in (*NAMES, "ndcg")),
            *((name, {}) for name in NAMES[:2]),
            *((name, CLUSTERS) for name in NAMES[-2:]),
            (NAMES[0], USERS),
            *rarely(
                *((name, USERS) for name in NAMES[1:]),
                *((name, {}) for name in NAMES[2:]),
                *((name, CLUSTERS) for name in NAMES[:-2]),
            ),
        ],
        ids=str,
    )
    def test_of_queries_clusters_and_items(self, name, units):
        X, y = problem()
        metric, options = METRICS[name]
        splits = list(KFold(4, shuffle=True, random_state=0).split(X))
        if units:
            by = X[units.get("cluster", units.get("qid"))]
            splits = list(GroupKFold(4).split(X, y, by))
        who = {"sensitive_features": "group", **units}
        report = audit_cv(model(), X, y, cv=splits, metrics=name, **who)
        expected = sum(
            metric(
                y.iloc[rows],
                score,
                **{a: X[c].iloc[rows] for a, c in who.items() if a not in options},
                **options,
            )
            for rows, score in scores_by_fold(X, y, splits)
        )
        same(report.results[name], expected)
        if not units:
            assert expected.variance == "item"
            assert report.n_clusters == len(X)

    def test_with_what_was_chosen_from_all_folds(self):
        X, y = problem()
        splits = list(KFold(4).split(X))
        who = {"sensitive_features": "group", "cluster": "user"}
        report = audit_cv(
            model(), X, y, cv=splits, metrics="matched_pair_calibration", **who
        )
        result = report.results["matched_pair_calibration"]
        parts = [
            matched_pair_calibration(
                y.iloc[rows],
                score,
                sensitive_features=X["group"].iloc[rows],
                epsilon=result.first_pass["epsilon"],
            )
            for rows, score in scores_by_fold(X, y, splits)
        ]
        np.testing.assert_allclose(result.estimate, sum(parts).estimate, rtol=1e-12)
        assert result.n_clusters == X["user"].nunique()

    @pytest.mark.parametrize("qid", [None, "query"])
    def test_within_strata_of_engagement(self, qid):
        X, y = problem()
        splits = list(KFold(3).split(X))
        name = "inter_group_accuracy"
        report = audit_cv(
            model(),
            X,
            y,
            sensitive_features="group",
            qid=qid,
            engagement="engagement",
            cv=splits,
            metrics=name,
        )
        result = report.results[name]
        parts = [
            pairwise_accuracy(
                y.iloc[rows],
                score,
                sensitive_features=X["group"].iloc[rows],
                qid=None if qid is None else X[qid].iloc[rows],
                engagement=X["engagement"].iloc[rows],
                bins=result.first_pass["engagement_edges"],
                comparison="inter",
            )
            for rows, score in scores_by_fold(X, y, splits)
        ]
        np.testing.assert_allclose(result.estimate, sum(parts).estimate, rtol=1e-12)
        assert len(result.breakdown()) == 12


class TestUnits:
    def test_a_query_in_several_folds_is_one_unit(self):
        X, y = problem()
        splits = list(KFold(4, shuffle=True, random_state=0).split(X))
        who = {"sensitive_features": "group", "qid": "query"}
        report = audit_cv(model(), X, y, cv=splits, metrics=NAMES, **who)
        assert report.n_clusters == 60
        assert report.n_queries > 60
        (_, split, *_) = report.notes
        assert split.startswith("60 queries are split over folds into")
        fold = np.empty(len(X), dtype=int)
        score = np.empty(len(X))
        for i, (rows, values) in enumerate(scores_by_fold(X, y, splits)):
            fold[rows], score[rows] = i, values
        expected = pairwise_exposure(
            None,
            score,
            sensitive_features=X["group"],
            qid=[f"{f} {q}" for f, q in zip(fold, X["query"], strict=True)],
            cluster=X["query"],
        )
        same(report.results["pairwise_exposure"], expected)

    @pytest.mark.parametrize("name", [NAMES[2], *rarely(*NAMES[:2], *NAMES[3:])])
    @pytest.mark.parametrize(
        "who", [{"qid": "query"}, {}, {"cluster": "user"}], ids=str
    )
    def test_scoring_twice_adds_nothing_but_pairs(self, name, who):
        """The same split twice: twice the sums, and the same errors."""
        X, y = problem()
        by = X["user"] if "cluster" in who else X["query"]
        splits = list(GroupKFold(4).split(X, y, by))
        who = {"sensitive_features": "group", "metrics": name, **who}
        once = audit_cv(model(), X, y, cv=splits, **who)
        twice = audit_cv(model(), X, y, cv=splits * 2, **who)
        a, b = once.results[name], twice.results[name]
        np.testing.assert_allclose(b.estimate, a.estimate, rtol=1e-12)
        np.testing.assert_array_equal(b.support, 2 * a.support)
        assert b.n_clusters == a.n_clusters
        assert twice.n_rows == 2 * once.n_rows
        if "qid" in who:
            np.testing.assert_allclose(b.covariance, a.covariance, rtol=1e-9)
        else:
            # The term of pairs that are measured again is left out: cautious.
            ratio = b.standard_error / a.standard_error
            assert (ratio >= 1 - 1e-12).all()
            assert (ratio < 1.06).all()

    def test_rows_without_queries_are_pooled_over_repeats(self):
        X, y = problem()
        cv = RepeatedKFold(n_splits=3, n_repeats=3, random_state=0)
        report = audit_cv(model(), X, y, sensitive_features="group", cv=cv)
        assert report.n_rows == 3 * len(X)
        assert report.n_clusters == len(X)
        assert "ndcg" not in report.results
        assert any("several models" in note for note in report.notes)
        assert any(note.startswith("NDCG is left out") for note in report.notes)
        once = audit_cv(model(), X, y, sensitive_features="group", cv=3)
        for name in ("inter_group_accuracy", "pairwise_exposure"):
            a, b = once.results[name], report.results[name]
            assert (b.standard_error > 0.8 * a.standard_error).all()

    def test_lists_of_one_cluster_each(self):
        X, y = problem(n_queries=12)
        report = audit_cv(
            model(),
            X,
            y,
            sensitive_features="group",
            cluster="user",
            groups="user",
            cv=LeaveOneGroupOut(),
            metrics=NAMES,
        )
        assert report.n_clusters == report.n_queries == X["user"].nunique()
        assert report.results["pairwise_exposure"].variance == "cluster"

    def test_a_row_left_out_is_not_audited(self):
        X, y = problem()
        cv = ShuffleSplit(1, test_size=0.5, random_state=0)
        report = audit_cv(model(), X, y, sensitive_features="group", cv=cv)
        assert np.isnan(report.results["ndcg"].standard_error).all()
        assert report.n_rows == len(X) // 2

    def test_a_query_in_two_clusters_raises(self):
        X, y = problem()
        X.loc[X.index[0], "user"] = "other"
        with pytest.raises(ValueError, match="query 1000 has rows of several"):
            audit_cv(
                model(), X, y, sensitive_features="group", qid="query", cluster="user"
            )

    @pytest.mark.parametrize("qid", [None, "query"])
    def test_two_models_are_compared_by_unit(self, qid):
        X, y = problem()
        cv = KFold(4, shuffle=True, random_state=0)
        who = {"sensitive_features": "group", "qid": qid, "cv": cv}
        name = "inter_group_accuracy"
        a = audit_cv(model(), X, y, metrics=name, **who)
        b = audit_cv(model(Ridge()), X, y, metrics=name, **who)
        difference = compare(a.results[name], b.results[name])
        assert (difference.standard_error < a.results[name].standard_error / 3).all()


class TestInputs:
    def frame(self, **options):
        X, y = problem()
        who = {"sensitive_features": "group", "qid": "query"}
        options = {**who, "metrics": SOME, **options}
        return audit_cv(model(), X, y, **options).to_frame()

    def test_names_arrays_and_functions_give_the_same(self):
        X, _ = problem()
        expected = self.frame()
        for sensitive_features, qid in (
            (X["group"].to_numpy(), X["query"].to_list()),
            (lambda X: X["group"], pl.Series(X["query"].to_numpy())),
            (X["group"], X["query"]),
        ):
            found = self.frame(sensitive_features=sensitive_features, qid=qid)
            pd.testing.assert_frame_equal(found, expected)

    def test_several_columns_are_crossed(self):
        found = self.frame(sensitive_features=["group", "user"], metrics="ndcg")
        assert len(found) == 1
        X, y = problem(groups="ab")
        X["half"] = np.where(X["x"] > 0, "high", "low")
        report = audit_cv(
            model(),
            X,
            y,
            sensitive_features=["group", "half"],
            qid="query",
            metrics=NAMES,
        )
        assert ("a", "high") in report.group_rows

    def test_numpy(self):
        X, y = problem()
        options = {
            "sensitive_features": X["group"],
            "qid": X["query"],
            "cv": GroupKFold(5),
            "groups": X["query"],
            "metrics": SOME,
        }
        found = audit_cv(
            LogisticRegression(), X[["seen"]].to_numpy(), y.to_numpy(), **options
        )
        pd.testing.assert_frame_equal(found.to_frame(), self.frame())

    def test_polars(self):
        X, y = problem()
        X["query"] = X["query"].astype("int64")
        pipeline = model().set_output(transform="polars")
        found = audit_cv(
            pipeline,
            pl.from_pandas(X),
            pl.Series(y.to_numpy()),
            sensitive_features="group",
            qid="query",
            metrics=SOME,
        )
        pd.testing.assert_frame_equal(found.to_frame(), self.frame())

    def test_two_jobs(self):
        pd.testing.assert_frame_equal(self.frame(n_jobs=2), self.frame())

    def test_overlapping_groups(self):
        X, y = problem()
        genres = pd.DataFrame({"old": X["x"] > -0.5, "long": X["engagement"] > 1})
        who = {"sensitive_features": genres, "qid": "query", "metrics": NAMES}
        report = audit_cv(model(), X, y, **who)
        assert report.overlapping

    def test_the_default_keeps_clusters_whole(self):
        X, y = problem()
        options = {"sensitive_features": "group", "qid": "query", "metrics": SOME}
        options["cluster"] = "user"
        found = audit_cv(model(), X, y, **options)
        expected = audit_cv(model(), X, y, cv=GroupKFold(5), groups="user", **options)
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
        assert found.n_queries == 60

    def test_without_queries_the_default_is_that_of_scikit_learn(self):
        found = self.frame(qid=None)
        expected = self.frame(qid=None, cv=StratifiedKFold(5))
        pd.testing.assert_frame_equal(found, expected)

    def test_labels_of_two_classes(self):
        X, y = problem()
        words = np.where(y == 1, "yes", "no")
        options = {"sensitive_features": "group", "qid": "query", "metrics": SOME}
        found = audit_cv(model(), X, words, **options).to_frame()
        pd.testing.assert_frame_equal(found, self.frame())
        found = audit_cv(model(), X, words, response_method="predict", **options)
        expected = self.frame(response_method="predict")
        pd.testing.assert_frame_equal(found.to_frame(), expected)

    def test_regressors_predict(self):
        X, y = problem()
        report = audit_cv(
            model(Ridge()), X, X["x"] * 2, sensitive_features="group", qid="query"
        )
        assert "ndcg" not in report.results  # outcomes may be negative
        assert y.size == report.n_rows

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sensitive_features": None}, "sensitive_features must be given"),
            ({"sensitive_features": "sex"}, "there is no 'sex' among"),
            ({"qid": 0.5}, "qid must be a column of X or an array; got 0.5"),
            ({"qid": [1, 2, 3]}, "same number of rows; got X: 480, y: 480"),
            ({"metrics": "auc"}, "metrics must be among"),
            (
                {"metrics": "ndcg", "engagement": "x"},
                "engagement is for the accuracies",
            ),
            ({"confidence_level": 2}, "confidence_level must be a number"),
            ({"cv": GroupKFold(3), "groups": "town"}, "there is no 'town'"),
        ],
    )
    def test_bad_input_raises(self, options, message):
        with pytest.raises(ValueError, match=message):
            self.frame(**options)

    def test_a_name_needs_a_frame(self):
        _, y = problem()
        with pytest.raises(ValueError, match="X arrives here without column"):
            audit_cv(
                LogisticRegression(), np.ones((480, 1)), y, sensitive_features="group"
            )


class Careful(BaseEstimator):
    """Scores with the groups, and fails or stores what it is fitted with."""

    def __init__(self, fail=False):
        self.fail = fail

    def fit(self, X, y, bonus=None, scale=1.0):
        if self.fail:
            raise RuntimeError("cannot be fitted")
        assert bonus is None or len(bonus) == len(X)
        self.bonus_ = 0.0 if bonus is None else float(np.mean(bonus))
        self.scale_ = scale
        return self

    def predict(self, X, sensitive_features=None):
        score = np.asarray(X["seen"], dtype=float) * self.scale_ + self.bonus_
        if sensitive_features is not None:
            score += 0.5 * (np.asarray(sensitive_features) == "a")
        return score


class TestFitting:
    options = MappingProxyType(
        {
            "sensitive_features": "group",
            "qid": "query",
            "metrics": "pairwise_exposure",
        }
    )

    def test_the_estimator_gets_the_groups_it_asks_for(self):
        X, y = problem()
        report = audit_cv(Careful(), X, y, **self.options)
        expected = pairwise_exposure(
            None, X["x"], sensitive_features=X["group"], qid=X["query"]
        )
        result = report.results["pairwise_exposure"]
        np.testing.assert_allclose(result.estimate, expected.estimate)

    def test_the_estimator_is_not_changed(self):
        X, y = problem()
        estimator = Careful()
        audit_cv(estimator, X, y, **self.options)
        assert not hasattr(estimator, "bonus_")

    def test_a_fit_that_fails_raises(self):
        X, y = problem()
        with pytest.raises(RuntimeError, match="cannot be fitted"):
            audit_cv(Careful(fail=True), X, y, **self.options)

    def test_params_reach_fit_cut_to_the_fold(self):
        X, y = problem()
        params = {"bonus": np.arange(len(X)), "scale": -1.0}
        report = audit_cv(Careful(), X, y, params=params, **self.options)
        plain = audit_cv(Careful(), X, -y, **self.options)
        (low, *_), (high, *_) = (
            r.results["pairwise_exposure"].estimate for r in (report, plain)
        )
        assert low != high

    def test_weights_in_a_pipeline(self):
        X, y = problem()
        params = {"logisticregression__sample_weight": np.where(X["x"] > 0, 1.0, 2.0)}
        report = audit_cv(model(), X, y, params=params, **self.options)
        assert report.n_rows == len(X)

    def test_routed_params(self):
        X, y = problem()
        weight = np.where(X["x"] > 0, 1.0, 2.0)
        with sklearn.config_context(enable_metadata_routing=True):
            asks = LogisticRegression().set_fit_request(sample_weight=True)
            params = {"sample_weight": weight}
            for n_jobs in (None, 2):
                report = audit_cv(
                    model(asks), X, y, params=params, n_jobs=n_jobs, **self.options
                )
                assert report.n_rows == len(X)
            with pytest.raises(ValueError, match="params has 'sample_weight', which"):
                audit_cv(model(), X, y, params=params, **self.options)

    def test_routed_groups_reach_predict(self):
        X, y = problem()
        off = audit_cv(Careful(), X, y, **self.options).to_frame()
        with sklearn.config_context(enable_metadata_routing=True):
            asks = Careful().set_predict_request(sensitive_features=True)
            on = audit_cv(asks, X, y, **self.options).to_frame()
        pd.testing.assert_frame_equal(on, off)


class TestMissingGroups:
    def test_a_group_that_one_fold_lacks_does_no_harm(self):
        X, y = problem()
        late = X["query"] >= 1040
        X.loc[(X["group"] == "c") & late, "group"] = "b"
        options = {"qid": "query", "cv": KFold(6), "metrics": "inter_group_accuracy"}
        report = audit_cv(model(), X, y, sensitive_features="group", **options)
        assert np.isfinite(report.results["inter_group_accuracy"].standard_error).all()
        options["qid"] = None
        report = audit_cv(model(), X, y, sensitive_features="group", **options)
        result = report.results["inter_group_accuracy"]
        assert result.groups == ("a", "b", "c")
        assert np.isfinite(result.standard_error).all()

    @pytest.mark.parametrize("qid", [None, "query"])
    def test_a_group_that_all_lack_is_nan(self, qid):
        X, y = problem()
        y = y.mask(X["group"] == "c", 0)
        with pytest.warns(UndefinedMetricWarning, match="without pairs: c"):
            report = audit_cv(
                model(),
                X,
                y,
                sensitive_features="group",
                qid=qid,
                metrics="intra_group_accuracy",
            )
        assert np.isnan(report.results["intra_group_accuracy"].estimate[2])


def test_the_report_says_how_it_was_made():
    X, y = problem()
    report = skrankfair.audit_cv(
        model(), X, y, sensitive_features="group", qid="query", verbose=True
    )
    assert report.title == "Cross-validated fairness audit"
    assert report.notes[0].startswith("Scores are out of fold: 5 models")


def test_progress_on_a_terminal(monkeypatch, capsys):
    X, y = problem()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    options = {"sensitive_features": "group", "qid": "query", "metrics": "ndcg"}
    audit_cv(model(), X, y, verbose=True, **options)
    assert "folds" in capsys.readouterr().err
    audit_cv(model(), X, y, **options)
    assert capsys.readouterr().err == ""


class Hiding(LogisticRegression):
    """Needs groups to fit, and does not say so in its signature."""

    def fit(self, X, y, **keywords):
        return self.load(X, y, **keywords)

    def load(self, X, y, *, sensitive_features):
        return super().fit(X, y)


class TestFairlearn:
    """Its models fit with groups or not at all."""

    def rows(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"x": rng.normal(size=300), "group": np.resize([0, 1], 300)})
        return X, (X["x"] + rng.normal(size=300) > 0).astype(int)

    OPTIONS = MappingProxyType(
        {"sensitive_features": "group", "metrics": "pairwise_accuracy", "cv": 2}
    )

    @pytest.mark.parametrize("piped", [False, True])
    def test_what_fit_cannot_do_without(self, piped):
        fairlearn = pytest.importorskip("fairlearn.postprocessing")
        X, y = self.rows()
        model = fairlearn.ThresholdOptimizer(
            estimator=LogisticRegression(), predict_method="predict_proba"
        )
        if piped:
            model = make_pipeline(StandardScaler(), model)
        found = audit_cv(model, X, y, **self.OPTIONS)
        assert (found.results["pairwise_accuracy"].support > 0).all()

    @pytest.mark.parametrize("routing", [False, True])
    def test_what_the_signature_hides(self, routing):
        """As fairlearn's ExponentiatedGradient does, which hands its keywords on."""
        X, y = self.rows()
        told = {"sensitive_features": X["group"]}
        with sklearn.config_context(enable_metadata_routing=routing):
            how = "set_fit_request" if routing else "pass params={'sensitive_features'"
            with pytest.raises(ValueError, match=how):
                audit_cv(Hiding(), X, y, **self.OPTIONS)
        found = audit_cv(Hiding(), X, y, params=told, **self.OPTIONS)
        assert (found.results["pairwise_accuracy"].support > 0).all()

    def test_other_errors_of_type_are_not_ours(self):
        class Broken(LogisticRegression):
            def fit(self, X, y):
                raise TypeError("missing the point")

        with pytest.raises(TypeError, match="missing the point"):
            audit_cv(Broken(), *self.rows(), **self.OPTIONS)
