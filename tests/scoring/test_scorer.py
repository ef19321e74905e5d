"""The scorer itself: its number, where columns come from, copies, and messages."""

import inspect
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import get_scorer as sklearn_scorer
from sklearn.metrics import precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skrankfair import metrics
from skrankfair.metrics import (
    make_metric,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
)
from skrankfair.metrics._disparities import DISPARITIES
from skrankfair.scoring import get_scorer, make_fairness_scorer
from skrankfair.scoring import get_scorer_names as our_names
from skrankfair.scoring._scorer import SCORERS, FairnessScore
from tests.scoring.data import DATA, FEATURES, column_scorer, gap_of, metadata_scorer

X, Y = DATA.pandas, DATA.y
COLUMNS = {"sensitive_features": "group", "qid": "query"}
# Columns that some metrics take.
WEIGHTS = ("cluster", "engagement", "sample_weight", "item_weight")
MORE = X.assign(
    cluster=X["query"] // 3,
    engagement=np.random.default_rng(0).random(len(X)),
    sample_weight=1.0 + X["query"] % 3,
    item_weight=0.5 + np.random.default_rng(1).random(len(X)),
    position=X.groupby("query").cumcount() + 1,
    price=np.arange(len(X)) % 7 / 7,
)
MATCHED = {"epsilon": 0.3, "position_weight": "dcg"}
COST = make_metric(
    lambda y_true, y_score, price: ((y_score >= 0) * price, 1),
    lambda totals: totals[..., 0] / totals[..., 1],
    name="cost",
    needs=("y_true", "y_score", "price"),
)


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X, Y)


class TestNumber:
    def test_is_the_metric_negated_and_carries_the_estimates(self, model):
        score = column_scorer()(model, X, Y)
        assert score == gap_of(model.decision_function(X)) < -0.01
        assert isinstance(score, FairnessScore)
        assert score.estimates.groups == (0, 1)
        assert score == -score.estimates.disparity()
        assert score.estimates.sums.compacted

    def test_has_errors_of_users_and_items(self, model):
        items = {"cluster": lambda X: np.column_stack([X["query"], X.index % 17])}
        score = make_fairness_scorer(pairwise_exposure, **COLUMNS, **items)(model, X, Y)
        assert score.estimates.variance == "two-way"

    @pytest.mark.parametrize(
        ("estimator", "response"),
        [
            (LogisticRegression(), "decision_function"),
            (LinearSVC(), "decision_function"),
            (GaussianNB(), "predict_proba"),
            (DecisionTreeClassifier(), "predict_proba"),
            (Ridge(), "predict"),
        ],
    )
    def test_auto_takes_the_richest_response(self, estimator, response):
        scores = getattr(estimator.fit(X, Y), response)(X)
        scores = scores[:, 1] if response == "predict_proba" else scores
        assert column_scorer()(estimator, X, Y) == gap_of(scores)

    @pytest.mark.parametrize(
        "metric",
        [
            *(metrics.brier_score, metrics.calibration_error, metrics.log_loss),
            *(metrics.mean_absolute_error, metrics.mean_squared_error),
            metrics.positive_rate_shift,
        ],
    )
    def test_auto_is_a_probability_on_the_scale_of_outcomes(self, model, metric):
        options = {"threshold": 0.5} if metric is metrics.positive_rate_shift else {}
        scorer = make_fairness_scorer(metric, sensitive_features="group", **options)
        of_probability = metric(
            Y, model.predict_proba(X)[:, 1], sensitive_features=X["group"], **options
        )
        assert scorer(model, X, Y) == -of_probability.disparity()
        assert "response_method" not in repr(scorer)

    def test_response_method_and_sign_can_be_chosen(self, model):
        options = {**COLUMNS, "greater_is_better": True}
        assert make_fairness_scorer(pairwise_accuracy, **options)(model, X, Y) > 0
        scorer = column_scorer(response_method="predict")
        assert scorer(model, X, Y) == gap_of(model.predict(X))
        assert scorer(model, X, Y) != column_scorer()(model, X, Y)

    @pytest.mark.parametrize("labels", [("no", "yes"), (-1, 1), (1, 2), (False, True)])
    @pytest.mark.parametrize("response", ["auto", "predict"])
    def test_classes_of_any_labels(self, labels, response):
        options = {"epsilon": 2.0, "direction": "both", "response_method": response}
        scorer = make_fairness_scorer(matched_pair_calibration, **options, **COLUMNS)
        renamed = np.array(labels)[Y]
        expected = scorer(LogisticRegression().fit(X, Y), X, Y)
        assert scorer(LogisticRegression().fit(X, renamed), X, renamed) == expected

    def test_a_function_around_a_metric_must_say_its_disparity(self, model):
        def exposure(y_true, y_score, *, sensitive_features, qid):
            return pairwise_exposure(
                y_true, y_score, sensitive_features=sensitive_features, qid=qid
            )

        scorer = make_fairness_scorer(exposure, disparity="max_abs", **COLUMNS)
        known = make_fairness_scorer(pairwise_exposure, **COLUMNS)
        assert scorer(model, X, Y) == known(model, X, Y)
        unknown = make_fairness_scorer(exposure, greater_is_better=False, **COLUMNS)
        with pytest.raises(ValueError, match="disparity must be given for exposure"):
            unknown(model, X, Y)


class TestColumns:
    @pytest.mark.parametrize("frame", [X, DATA.polars], ids=["pandas", "polars"])
    @pytest.mark.parametrize("spec", ["group", ["group"], lambda X: X["group"]])
    def test_say_the_same_everywhere(self, model, frame, spec):
        # scikit-learn 1.6 reads no names of polars, so both calls are of one library.
        fitted = clone(model).fit(frame, Y)
        scorer = column_scorer(sensitive_features=spec)
        assert scorer(fitted, frame, Y) == gap_of(model.decision_function(X))

    def test_a_function_of_an_array(self):
        fitted = LinearRegression().fit(DATA.numpy, Y)
        scorer = column_scorer(
            sensitive_features=lambda X: X[:, 2].astype(int), qid=lambda X: X[:, 3]
        )
        assert scorer(fitted, DATA.numpy, Y) == gap_of(fitted.predict(DATA.numpy))

    def test_several_columns_are_crossed(self):
        frame = X.assign(age=np.where(X["z"] > -0.5, "old", "young"))
        on_features = make_column_transformer(("passthrough", FEATURES))
        fitted = make_pipeline(on_features, LogisticRegression()).fit(frame, Y)
        columns = ["group", "age"]
        score = column_scorer(sensitive_features=columns)(fitted, frame, Y)
        scores = fitted.decision_function(frame)
        assert score == gap_of(scores, sensitive_features=frame[columns])
        assert score.estimates.groups[0] == (0, "old")

    @pytest.mark.parametrize(
        ("metric", "options", "columns"),
        [
            (pairwise_accuracy, {"comparison": "inter"}, {n: n for n in WEIGHTS}),
            (matched_pair_calibration, MATCHED, {"position": "position"}),
            (matched_pair_calibration, MATCHED, {"covariates": ["price", "z"]}),
            (COST, {}, {"qid": None, "price": "price"}),
        ],
    )
    def test_reach_the_metric(self, metric, options, columns):
        columns = {n: spec for n, spec in (COLUMNS | columns).items() if spec}
        fitted = LogisticRegression().fit(MORE, Y)
        given = {name: MORE[spec] for name, spec in columns.items()}
        expected = metric(Y, fitted.decision_function(MORE), **options, **given)
        scorer = make_fairness_scorer(metric, **options, **columns)
        assert scorer(fitted, MORE, Y) == -expected.disparity()

    def test_metadata_wins_over_a_column(self, model):
        other = np.roll(DATA.group, 1)
        score = column_scorer()(model, X, Y, sensitive_features=other)
        assert score == gap_of(model.decision_function(X), sensitive_features=other)


class TestCopies:
    """A search clones its scorer, and processes get it pickled."""

    @pytest.mark.parametrize("scorer", [column_scorer(), metadata_scorer()])
    def test_score_the_same(self, model, scorer):
        search = GridSearchCV(Ridge(), {}, scoring=scorer)
        for copied in (pickle.loads(pickle.dumps(scorer)), clone(search).scoring):
            assert copied is not scorer
            assert repr(copied) == repr(scorer)
            found = copied(model, X, Y, **DATA.metadata)
            assert found == scorer(model, X, Y, **DATA.metadata)


class TestRequests:
    def request(self, scorer):
        return scorer.get_metadata_routing().score.requests

    def test_of_the_constructor(self):
        """A column refuses metadata of its name, which an estimator may get."""
        requested = {"sensitive_features": True, "qid": True}
        found = self.request(metadata_scorer())
        assert {k: v for k, v in found.items() if v} == requested
        found = self.request(column_scorer())
        assert found["sensitive_features"] is False
        assert found["cluster"] is None

    def test_set_score_request_keeps_the_others(self):
        scorer = metadata_scorer()
        assert scorer.set_score_request(sensitive_features="gender") is scorer
        found = self.request(scorer)
        assert (found["sensitive_features"], found["qid"]) == ("gender", True)
        scorer = column_scorer().set_score_request(sample_weight=True)
        assert self.request(scorer)["sample_weight"] is True
        # NDCG takes no groups, but a re-ranker that is scored does.
        scorer = get_scorer("ndcg", qid=True).set_score_request(sensitive_features=True)
        assert self.request(scorer)["sensitive_features"] is True

    def test_what_cannot_be_requested(self):
        scorer = metadata_scorer()
        with pytest.raises(ValueError, match="sensitive_feature is not metadata of"):
            scorer.set_score_request(sensitive_feature=True)
        with pytest.raises(ValueError, match="not a name"):
            scorer.set_score_request(qid="not a name")
        assert self.request(scorer)["qid"] is True


@pytest.mark.parametrize(
    "text",
    [
        """make_fairness_scorer(pairwise_exposure, sensitive_features=['a', 'b'], \
disparity='ratio', on_undefined='raise', expected_groups=['x', 'y'], \
greater_is_better=False, response_method='predict')""",
        """make_fairness_scorer(pairwise_accuracy, sensitive_features=True, qid=True, \
comparison='inter')""",
        "make_fairness_scorer(precision_score, sensitive_features=len)",
    ],
)
def test_repr_is_the_call(text):
    assert repr(eval(text)) == text


class TestByName:
    @pytest.mark.parametrize("name", our_names())
    def test_every_name_makes_a_scorer(self, model, name):
        known = inspect.signature(SCORERS[name][0]).parameters
        options = {"qid": "query"} if "qid" in known else {}
        if name != "ndcg":
            options["sensitive_features"] = "group"
        if "normalized_discounted" in name:
            options["step"] = 2  # of lists of 10
        if "skew" in name or "_at_k" in name:
            options["k"] = 5
        if "ndcg" in name and name != "ndcg":  # of groups of queries
            options["sensitive_features"] = lambda X: X["query"] % 2
        score = get_scorer(name, **options)(model, X, Y)
        negated = name.startswith(("neg_", "worst_group_neg_"))
        assert np.sign(score) == (-1 if negated else 1)

    def test_every_metric_has_a_scorer(self):
        """But those that describe outcomes or the ranking alone, and curves of it."""
        functions = {n for n in metrics.__all__ if n[0].islower()}
        measured = {SCORERS[name][0].__name__ for name in our_names()}
        assert measured == functions - {
            *("exposure", "pairwise_preference"),
            *("expected_advantage", "item_dissatisfaction", "matched_pair_curve"),
            "boost_value",  # which asks what another model would be worth
            *("make_metric", "group_mean"),  # which are of anything
            *DISPARITIES,  # which are numbers of other metrics
        }

    def test_ndcg_of_groups_of_queries(self, model):
        scores, side = model.decision_function(X), DATA.query % 2
        by_side = ndcg(Y, scores, qid=DATA.query, sensitive_features=side)
        options = {"sensitive_features": lambda X: X["query"] % 2, "qid": "query"}
        gap = get_scorer("neg_ndcg_difference", **options)(model, X, Y)
        assert gap == -by_side.disparity()
        with pytest.raises(ValueError, match="sensitive_features must be given"):
            get_scorer("neg_ndcg_difference", qid="query")
        with pytest.raises(ValueError, match="sensitive_features must be given"):
            make_fairness_scorer(partial(ndcg, sensitive_features=side), qid="query")

    def test_worst_group(self, model):
        worst, loss = (
            get_scorer(f"worst_group_{name}", sensitive_features="group")(model, X, Y)
            for name in ("accuracy", "neg_brier_score")
        )
        rates = worst.estimates.estimate
        assert worst == rates.min() < rates.max()
        assert loss == -loss.estimates.estimate.max()
        for score in (worst, loss):
            assert score.estimates.disparity_bound(0.95, "worst") < score
        options = {"sensitive_features": "group", "threshold": 0.3}
        chosen = get_scorer("worst_group_selection_rate", **options)(model, X, Y)
        chance = model.predict_proba(X)[:, 1]
        decided = [(chance >= 0.3)[DATA.group == g] for g in (0, 1)]
        assert chosen == min(map(np.mean, decided))

    def test_unknown_name(self):
        with pytest.raises(ValueError, match=r"Did you mean 'neg_pairwise_exposure'\?"):
            get_scorer("pairwise_exposure", sensitive_features="group")
        with pytest.raises(ValueError, match=r"name must be one of .*ndcg.*'fair'"):
            get_scorer("fair")


def test_metrics_of_scikit_learn_give_its_number(model):
    score = make_fairness_scorer(precision_score, zero_division=0)(model, X, Y)
    assert score == sklearn_scorer("precision")(model, X, Y)
    assert score.estimates is None


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sensitive_features": 0.5}, "sensitive_features must be a column name"),
            ({"sensitive_features": False}, "sensitive_features must be a column"),
            ({"qid": []}, "qid must be a column name, a list"),
            ({"sensitive_features": None}, "sensitive_features must be given"),
            ({"bins_": 3}, "bins_ must be an option of pairwise_accuracy; it has"),
            ({"disparity": "gap"}, "disparity must be one of"),
            ({"on_undefined": "ignore"}, "on_undefined must be one of"),
            ({"expected_groups": "ab"}, "expected_groups must be a sequence"),
        ],
    )
    def test_of_the_constructor(self, options, message):
        with pytest.raises(ValueError, match=message):
            column_scorer(**options)

    def test_metric_and_columns_that_do_not_fit(self):
        with pytest.raises(ValueError, match="metric must be a function"):
            make_fairness_scorer("ndcg")
        with pytest.raises(ValueError, match="engagement is not taken by ndcg"):
            make_fairness_scorer(ndcg, engagement="z")

    @pytest.mark.parametrize(
        ("scorer", "metadata", "message"),
        [
            (column_scorer(qid="queries"), {}, "no 'queries' among .*'query'"),
            (metadata_scorer(), {}, "sensitive_features did not reach the scorer"),
            (metadata_scorer(), {"qid": X["query"][::-1]}, "qid .*in the order of X"),
            (column_scorer(), {"groups": 1}, "takes sensitive_.* metadata; got groups"),
        ],
    )
    def test_of_the_call(self, model, scorer, metadata, message):
        with pytest.raises(ValueError, match=message):
            scorer(model, X, Y, **metadata)

    def test_text_of_three_classes(self):
        target = np.array(["a", "b", "c"])[np.arange(len(Y)) % 3]
        fitted = LogisticRegression().fit(X, target)
        with pytest.raises(ValueError, match="two classes; got"):
            column_scorer(response_method="predict")(fitted, X, target)
