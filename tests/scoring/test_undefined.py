"""A set that lacks a group: NaN and a warning that names it, or an error.

Metrics that are not ours get the same care for groups, and no guess of their sign.
"""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fairlearn.metrics import demographic_parity_difference, demographic_parity_ratio
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import cross_val_score

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import matched_pair_calibration, pairwise_exposure
from skrankfair.scoring import get_scorer, make_fairness_scorer
from tests.scoring.data import column_scorer

LABELS = ["a", "b", "c"]


class Identity(LinearRegression):
    """Scores by the column ``score``."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X["score"])


MODEL = Identity()


def make_rows(groups, n=24):
    """Rows of 4 queries whose groups take turns, and outcomes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=n), "group": np.resize(groups, n)})
    frame["query"] = np.repeat(np.arange(4), n // 4)
    return frame, frame["score"] + rng.normal(size=n)


def caught(scorer, X, y, **metadata):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        score = scorer(MODEL, X, y, **metadata)
    assert all(w.category is UndefinedMetricWarning for w in found)
    return float(score), [str(w.message) for w in found]


def undefined(metric, lacks):
    return f"The score of {metric} is undefined (NaN) on this test set: it has {lacks}."


COLUMNS = {"sensitive_features": "group", "qid": "query"}
NO_PAIRS, TOO_FEW = "no pairs of a", "fewer than two groups"


@pytest.mark.parametrize(
    ("scorer", "lacks"),
    [
        (column_scorer(), NO_PAIRS),
        (
            make_fairness_scorer(matched_pair_calibration, epsilon=1, **COLUMNS),
            NO_PAIRS,
        ),
        (get_scorer("neg_pairwise_accuracy_difference", **COLUMNS), TOO_FEW),
    ],
)
def test_one_group_is_one_warning_and_no_zero(scorer, lacks):
    score, messages = caught(scorer, *make_rows(["a"]))
    assert np.isnan(score)
    name = scorer._score_func.__name__
    assert messages == [undefined(name, f"{lacks} (groups there: a)")]


def test_a_metric_of_one_value():
    X, y = make_rows(["a", "b"])
    score, messages = caught(get_scorer("ndcg", qid="query"), X, 0 * y)
    assert np.isnan(score)
    assert messages == [undefined("ndcg", "no queries that count")]


def test_nothing_to_say_of_a_missing_standard_error():
    """One query has a number and no error; a score needs none."""
    X, y = make_rows(["a", "b"])
    one = X["query"] == 0
    score, messages = caught(column_scorer(), X[one], y[one])
    assert np.isfinite(score)
    assert messages == []


def test_an_infinite_score_is_said():
    """No item of b is in the first place of any query: its skew is -inf."""
    X, y = make_rows(["a", "b"])
    X["score"] -= 10 * (X["group"] == "b")
    options = {**COLUMNS, "k": 1}
    score, messages = caught(get_scorer("neg_skew_at_k", **options), X, y)
    assert score == -np.inf
    message = (
        "The score of skew_at_k is infinite (inf) on this test set: it has infinite "
        "estimates of b (groups there: a, b)."
    )
    assert messages == [message]
    strict = get_scorer("neg_skew_at_k", **options, on_undefined="raise")
    with pytest.raises(ValueError, match=re.escape(message)):
        strict(MODEL, X, y)


class TestExpectedGroups:
    """Two groups have a disparity; that the third is absent must not pass silently."""

    X, Y = make_rows(["a", "b"])
    MESSAGE = undefined("pairwise_accuracy", "no pairs of c (groups there: a, b)")

    def expect(self, scorer, X, **metadata):
        score, messages = caught(scorer, X, self.Y, **metadata)
        assert np.isnan(score)
        assert messages == [self.MESSAGE]

    def test_as_an_option(self):
        assert np.isfinite(column_scorer()(MODEL, self.X, self.Y))  # nobody knows of c
        self.expect(column_scorer(expected_groups=LABELS), self.X)

    def test_as_categories_of_pandas(self):
        group = pd.Categorical(self.X["group"], categories=LABELS)
        X = self.X.assign(group=group)
        self.expect(column_scorer(), X)
        self.expect(column_scorer(sensitive_features=["group"]), X)
        self.expect(column_scorer(), self.X.assign(group=group.as_ordered()))

    def test_as_an_enum_of_polars(self):
        X = pl.DataFrame({name: self.X[name].to_numpy() for name in self.X})
        self.expect(
            column_scorer(), X.with_columns(pl.col("group").cast(pl.Enum(LABELS)))
        )
        plain = X.with_columns(pl.col("group").cast(pl.Categorical))
        assert np.isfinite(column_scorer()(MODEL, plain, self.Y))

    def test_each_fold_says_what_it_lacks(self):
        X = self.X.assign(group=np.where(self.X["query"] == 3, "c", self.X["group"]))
        X.loc[X.index[-3:], "group"] = "a"
        cv = [
            (np.flatnonzero(X["query"] != q), np.flatnonzero(X["query"] == q))
            for q in range(4)
        ]
        options = {**COLUMNS, "expected_groups": LABELS}
        scorer = make_fairness_scorer(pairwise_exposure, **options)
        with pytest.warns(UndefinedMetricWarning, match="no pairs of") as found:
            scores = cross_val_score(MODEL, X, self.Y, scoring=scorer, cv=cv)
        assert np.isnan(scores).all()
        lacks = [re.search(r"pairs of (.*) \(", str(w.message))[1] for w in found]
        assert lacks == ["c", "c", "c", "b"]


def parity(**options):
    """The scorer of a metric that is not ours, of scores above zero."""
    return make_fairness_scorer(
        lambda y_true, y_score, sensitive_features: demographic_parity_difference(
            y_true > 0, y_score > 0, sensitive_features=sensitive_features
        ),
        sensitive_features="group",
        greater_is_better=False,
        **options,
    )


class TestMetricsOfOthers:
    X, Y = make_rows(["a", "b"])

    def test_are_negated(self):
        expected = demographic_parity_difference(
            self.Y > 0, self.X["score"] > 0, sensitive_features=self.X["group"]
        )
        assert caught(parity(), self.X, self.Y) == (-expected, [])

    def test_of_one_group_are_undefined_and_not_perfect(self):
        X, y = make_rows(["a"])
        value, (said,) = caught(parity(), X, y)
        assert np.isnan(value)
        assert said.endswith("it has fewer than two groups (groups there: a).")
        with pytest.raises(ValueError, match="it has fewer than two groups"):
            caught(parity(on_undefined="raise"), X, y)

    def test_with_expected_groups_and_categories(self):
        group = pd.Categorical(self.X["group"], categories=LABELS)
        for scorer, X in (
            (parity(expected_groups=LABELS), self.X),
            (parity(), self.X.assign(group=group)),
        ):
            value, (said,) = caught(scorer, X, self.Y)
            assert np.isnan(value)
            assert said.endswith("it has no rows of c (groups there: a, b).")
        # An error compares no groups: only what was asked for is expected of it.
        options = {"sensitive_features": "group", "greater_is_better": False}
        error = make_fairness_scorer(mean_squared_error, **options)
        assert caught(error, X, self.Y)[1] == []
        asked = make_fairness_scorer(
            mean_squared_error, expected_groups=["c"], **options
        )
        assert np.isnan(caught(asked, X, self.Y)[0])

    @pytest.mark.parametrize("metric", [demographic_parity_ratio, mean_squared_error])
    def test_have_no_direction_that_is_guessed(self, metric):
        with pytest.raises(ValueError, match="greater_is_better must be given for"):
            make_fairness_scorer(metric, sensitive_features="group")

    @pytest.mark.parametrize(
        ("number", "message"),
        [
            (np.nan, r"is undefined \(NaN\) on this test set"),
            ([0.1, 0.2], "metric must return one number"),
        ],
    )
    def test_that_return_no_number(self, number, message):
        strict = make_fairness_scorer(lambda y, p: number, on_undefined="raise")
        with pytest.raises(ValueError, match=message):
            strict(MODEL, self.X, self.Y)
