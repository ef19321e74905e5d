"""Frames as users have them: columns named by integers, twice, lazily, or unaligned."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skrankfair import audit_cv, metrics, mitigation_report
from skrankfair.metrics import exposure, mean_squared_error, pairwise_accuracy
from skrankfair.mitigation import (
    FairReranker,
    GroupCalibratedClassifier,
    GroupCalibrator,
    PairwiseFairRegressor,
)
from skrankfair.rankers import QueryRanker
from skrankfair.scoring import get_scorer
from skrankfair.smoothing import NadarayaWatsonRegressor
from tests.scoring.data import DATA

X, Y = DATA.pandas, DATA.y
GAP = "neg_pairwise_accuracy_difference"


ESTIMATORS = [
    QueryRanker(LinearRegression(), qid="query"),
    GroupCalibrator(sensitive_features="group"),
    PairwiseFairRegressor(sensitive_features="group"),
    GroupCalibratedClassifier(LogisticRegression(), cluster="query"),
    NadarayaWatsonRegressor(cluster="query"),
]


class OfArrays(LinearRegression):
    """Predicts by the first column of whatever it gets."""

    def predict(self, X):
        return super().predict(np.asarray(X)[:, :1].astype(float))


def counted(frame=X):
    """The same columns, named 0, 1, 2, 3."""
    return frame.set_axis(range(frame.shape[1]), axis=1)


def doubled(frame=X):
    """Two more columns that have one name."""
    more = np.random.default_rng(1).normal(size=(len(frame), 2))
    return pd.concat([frame, pd.DataFrame(more, columns=["w", "w"])], axis=1)


class TestSeveralColumns:
    """A query or a unit that takes several columns to name, such as user and day."""

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_cross(self, kind):
        parts = {"user": X["query"] // 3, "day": X["query"] % 3}
        who = {"sensitive_features": X["group"]}
        frame = kind({name: part.to_numpy() for name, part in parts.items()})
        expected = pairwise_accuracy(Y, X["x"], qid=X["query"], **who)
        result = pairwise_accuracy(Y, X["x"], qid=frame, **who)
        np.testing.assert_allclose(result.estimate, expected.estimate)
        np.testing.assert_allclose(result.standard_error, expected.standard_error)
        clustered = pairwise_accuracy(
            Y, X["x"], qid=frame, cluster=frame["user"], **who
        )
        assert clustered.n_clusters == 8
        # Two columns of units are users and items.
        assert str(error_of(cluster=frame)).count("8 clusters, 3 items")

    def test_of_a_scorer_and_of_estimators(self):
        frame = X.assign(user=X["query"] // 3, day=X["query"] % 3)
        model = LinearRegression().fit(frame, Y)
        scores = [
            get_scorer(GAP, sensitive_features="group", qid=qid)(model, frame, Y)
            for qid in ("query", ["user", "day"])
        ]
        assert scores[0] == scores[1]
        ranker = QueryRanker(LinearRegression(), qid=["user", "day"]).fit(frame, Y)
        assert ranker.estimator_.n_features_in_ == 4
        calibrator = GroupCalibrator(
            "isotonic", sensitive_features="group", cluster=["user", "day"]
        )
        with pytest.raises(ValueError, match="cluster must be one column here"):
            calibrator.fit(frame[["x", "group", "user", "day"]], Y)


def error_of(**columns):
    score = 1 / (1 + np.exp(-X["x"]))
    return mean_squared_error(Y, score, sensitive_features=X["group"], **columns)


class TestNames:
    def test_integers(self):
        frame = counted()
        model = LinearRegression().fit(frame, Y)
        known = get_scorer(GAP, sensitive_features="group", qid="query")
        expected = known(LinearRegression().fit(X, Y), X, Y)
        assert get_scorer(GAP, sensitive_features=2, qid=3)(model, frame, Y) == expected
        fair = PairwiseFairRegressor(sensitive_features=2, qid=3, random_state=0)
        assert fair.fit(frame, Y).n_features_in_ == 2
        # To predict, neither column is needed, nor in the way.
        np.testing.assert_array_equal(fair.predict(frame), fair.predict(frame[[0, 1]]))
        mixed = frame.rename(columns={1: "z"})
        for fair in (GroupCalibrator(), FairReranker()):
            expected = fair.set_params(sensitive_features=2).fit_transform(frame, Y)
            np.testing.assert_array_equal(fair.fit_transform(mixed, Y), expected)
            assert [*fair.get_feature_names_out()] == ["0", "z", "3"]
            with pytest.raises(ValueError, match="must be in the same order"):
                fair.transform(mixed[mixed.columns[::-1]])
        ranker = QueryRanker(LinearRegression(), qid=3).fit(frame, Y)
        assert ranker.predict(frame).shape == Y.shape
        with pytest.raises(ValueError, match="there is no 9 among"):
            get_scorer(GAP, sensitive_features=9, qid=3)(model, frame, Y)

    def test_unrelated_columns_may_have_one_name(self):
        """To a scorer; scikit-learn fits no such frame, and our estimators say so."""
        frame = doubled()
        model = OfArrays().fit(X[["x"]].to_numpy(), Y)
        score = get_scorer(GAP, sensitive_features="group", qid="query")
        assert score(model, frame, Y) <= 0
        with pytest.raises(ValueError, match="one column of X; 2 are called 'w'"):
            get_scorer(GAP, sensitive_features="w", qid="query")(model, frame, Y)

    @pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
    def test_frames_that_estimators_refuse(self, estimator):
        with pytest.raises(ValueError, match="column names to fit; 'w' occurs 2"):
            estimator.fit(doubled(), Y)
        with pytest.raises(ValueError, match=r"lazy frame .*LazyFrame.*collect\(\)"):
            estimator.fit(DATA.polars.lazy(), Y)

    def test_after_a_column_transformer(self):
        model = LinearRegression().fit(X, Y)
        scorer = get_scorer(GAP, sensitive_features="group", qid="query")
        ranker = QueryRanker(LinearRegression(), qid="query")
        with pytest.raises(ValueError, match=r'\.set_output\(transform="pandas"\)'):
            scorer(model, StandardScaler().fit_transform(X), Y)
        with pytest.raises(ValueError, match=r'\.set_output\(transform="pandas"\)'):
            make_pipeline(StandardScaler(), ranker).fit(X, Y)
        renaming = ColumnTransformer(
            [("scale", StandardScaler(), ["x"])], remainder="passthrough"
        ).set_output(transform="pandas")
        with pytest.raises(ValueError, match=r"Is it 'remainder__query'\? verbose_fe"):
            make_pipeline(renaming, ranker).fit(X, Y)


class TestAlignment:
    """Columns count by position; indexes that contradict each other raise."""

    @pytest.mark.parametrize(
        "name", ["y_score", "sensitive_features", "qid", "cluster", "engagement"]
    )
    def test_same_labels_in_another_order(self, name):
        columns = {"y_score": X["x"], "sensitive_features": X["group"]}
        columns |= {"qid": X["query"], "cluster": X["query"], "engagement": X["z"]}
        y = pd.Series(Y)
        pairwise_accuracy(y, **columns)
        about = "y_true" if name == "y_score" else name
        columns[name] = columns[name].iloc[::-1]
        with pytest.raises(ValueError, match=f"{about} .*different orders") as raised:
            pairwise_accuracy(y, **columns)
        assert ".to_numpy() if the positions are right" in str(raised.value)
        pairwise_accuracy(y, **{**columns, name: columns[name].to_numpy()})

    def test_labels_may_repeat_or_be_missing(self):
        index = [0, 0, 1, None]
        y, other = pd.Series([0, 1, 0, 1], index), pd.Series([1, 2, 3, 4], index[::-1])
        for of_scores in (metrics.pairwise_preference, partial(exposure, None)):
            with pytest.raises(ValueError, match="in different orders"):
                of_scores(y, sensitive_features=other)
        with pytest.raises(ValueError, match="covariates .* in different orders"):
            metrics.matched_pair_calibration(y, y, covariates=other, epsilon=1)

    def test_other_indexes_say_nothing(self):
        part = X.iloc[100:200]
        score, group = part["x"], part["group"]
        who = {"qid": part["query"].to_numpy()}
        expected = exposure(None, score, sensitive_features=group.to_numpy(), **who)
        other = group.reset_index(drop=True)
        result = exposure(None, score, sensitive_features=other, **who)
        np.testing.assert_array_equal(result.estimate, expected.estimate)

    def test_metadata_of_an_estimator(self):
        with pytest.raises(ValueError, match="sensitive_features must have its rows"):
            GroupCalibrator().fit(X[["x"]], Y, sensitive_features=X["group"].iloc[::-1])
        with pytest.raises(ValueError, match="qid must have its rows in the order of"):
            QueryRanker(LinearRegression()).fit(X, Y, qid=X["query"].iloc[::-1])

    def test_outcomes_of_models_and_scores(self):
        turned, who = pd.Series(Y).iloc[::-1], {"sensitive_features": X["group"]}
        with pytest.raises(ValueError, match="y must have its rows in the order of X"):
            audit_cv(LinearRegression(), X, turned, **who)
        with pytest.raises(ValueError, match="rows in the order of y_true"):
            mitigation_report(X["x"], X["z"], turned, **who)


class TestSaid:
    def test_ones_and_zeros_that_are_crossed(self):
        flags = X[["group"]].assign(other=np.arange(len(X)) % 2)
        with pytest.warns(UserWarning, match=r"2 columns of the numbers 0 and 1.*bool"):
            crossed = pairwise_accuracy(Y, X["x"], sensitive_features=flags)
        assert len(crossed.groups) == 4
        as_text = pairwise_accuracy(Y, X["x"], sensitive_features=flags.astype(str))
        np.testing.assert_array_equal(as_text.estimate, crossed.estimate)
        members = pairwise_accuracy(Y, X["x"], sensitive_features=flags.astype(bool))
        assert members.groups == ("group", "other")

    def test_metadata_that_a_tool_does_not_pass(self):
        fair = GroupCalibratedClassifier(LogisticRegression(), sensitive_features=True)
        with pytest.raises(ValueError, match="turn on sklearn.set_config"):
            fair.fit(X, Y)
        routed = sklearn.config_context(enable_metadata_routing=True)
        with routed, pytest.raises(ValueError, match="Name a column of X instead"):
            fair.fit(X, Y)
