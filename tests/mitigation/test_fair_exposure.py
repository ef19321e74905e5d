"""Re-rankers that share exposure and attention, as estimators."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair.metrics import exposure_gap
from skrankfair.mitigation import FairReranker
from skrankfair.model_selection import fairness_constrained
from skrankfair.scoring import get_scorer, make_fairness_scorer

WHO = {"sensitive_features": "group", "qid": "query"}


def frame(n_queries=100, size=8, seed=0):
    """Scores of which the group "b" has less."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"score": rng.random(n_queries * size)})
    X["group"] = rng.choice(["a", "b"], len(X))
    X["query"] = np.repeat(np.arange(n_queries), size)
    X["score"] *= np.where(X["group"] == "b", 0.6, 1.0)
    return X


def gap(X, score, target, **options):
    """Exposure of "b" beyond its share, the mean over queries, and its error."""
    result = exposure_gap(
        X["score"],
        score,
        sensitive_features=X["group"],
        qid=X["query"],
        target=target,
        average="queries",
        **options,
    )
    row = result.groups.index("b")
    return result.estimate[row], result.standard_error[row]


@pytest.mark.filterwarnings("ignore:Exposure in proportion")
class TestExposure:
    def test_draws_are_fair_on_average(self):
        X = frame(400)
        X["score"] += 1  # All shares of relevance are within reach.
        dcg = {"position_weight": "dcg"}
        before, _ = gap(X, X["score"], "population", **dcg)
        assert before < -0.06
        for constraint, target in [
            ("parity", "population"),
            ("treatment", "relevance"),
        ]:
            fair = FairReranker(
                method="exposure_lp", constraint=constraint, random_state=0, **WHO
            )
            after, error = gap(X, fair.fit(X).predict(X), target, **dcg)
            assert abs(after) < 4 * error
            assert abs(after) < abs(before) / 4

    def test_seed_and_copy(self):
        X = frame()
        fair = FairReranker(method="exposure_lp", random_state=0, **WHO).fit(X)
        np.testing.assert_array_equal(fair.predict(X), clone(fair).fit(X).predict(X))
        other = clone(fair).set_params(random_state=1).fit(X)
        assert (fair.predict(X) != other.predict(X)).any()

    def test_scores_of_a_query_change_hands_and_k_limits_them(self):
        X = frame()
        fair = FairReranker(method="exposure_lp", k=3, random_state=0, **WHO).fit(X)
        new = X.assign(new=fair.predict(X))
        for _, rows in new.groupby("query"):
            np.testing.assert_array_equal(np.sort(rows["score"]), np.sort(rows["new"]))
            rest = rows.sort_values("new", ascending=False)["score"][3:]
            assert rest.is_monotonic_decreasing

    def test_groups_that_fit_has_not_seen_are_as_good_as_others(self):
        X = frame()
        fair = FairReranker(method="exposure_lp", random_state=0, **WHO).fit(X)
        renamed = X.assign(group=X["group"] + "!")
        np.testing.assert_array_equal(fair.predict(X), fair.predict(renamed))

    def test_says_what_is_out_of_reach(self):
        X = pd.DataFrame({"score": [1.0, 0.0], "group": ["a", "b"], "query": 0})
        fair = FairReranker(method="exposure_lp", constraint="treatment", **WHO).fit(X)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fair.transform(X)
        assert "out of reach in 1 of 1 queries" in str(caught[0].message)
        assert "by up to 77.4% of the way" in str(caught[0].message)

    def test_weights_of_places(self):
        X = frame(20)
        new = {}
        for name, weight in {
            "top": "top",
            "array": [1.0, 1.0, 1.0],
            "function": lambda rank: 1.0 * (rank <= 3),
        }.items():
            options = {"position_weight": weight, "k": 3, "random_state": 0}
            fair = FairReranker(method="exposure_lp", **options, **WHO)
            new[name] = fair.fit(X).predict(X)
        np.testing.assert_array_equal(new["top"], new["array"])
        np.testing.assert_array_equal(new["top"], new["function"])


class TestAmortized:
    def test_gap_closes_over_the_sequence(self):
        X = frame(200)
        fair = FairReranker(method="amortized", quality=0, **WHO).fit(X)
        new = fair.predict(X)
        dcg = {"position_weight": "dcg"}
        before, _ = gap(X, X["score"], "relevance", **dcg)
        after, _ = gap(X, new, "relevance", **dcg)
        assert abs(after) < abs(before) / 10
        fair.partial_fit(X)
        for g in "ab":
            assert fair.attention_[g][0] == pytest.approx(fair.relevance_[g][0], abs=1)

    def test_parts_continue_and_the_state_is_json(self):
        X = frame(30)
        whole = FairReranker(method="amortized", quality=0.97, **WHO).fit(X)
        online = clone(whole).fit(X)
        parts = []
        for start in (0, 10, 20):
            part = X[(X["query"] >= start) & (X["query"] < start + 10)]
            parts.append(online.predict(part))
            online.partial_fit(part)
            state = json.loads(json.dumps([online.attention_, online.relevance_]))
            online = clone(online).fit(X)
            online.attention_, online.relevance_ = state
        np.testing.assert_array_equal(whole.predict(X), np.concatenate(parts))
        assert whole.attention_ == {}
        first = clone(whole).partial_fit(X)
        for g in "ab":
            np.testing.assert_allclose(first.attention_[g], online.attention_[g])

    def test_queries_come_in_the_order_of_their_first_rows(self):
        X = frame(12)
        fair = FairReranker(method="amortized", **WHO).fit(X)
        renamed = X.assign(query=(7 * X["query"] + 5) % 12)
        np.testing.assert_array_equal(fair.predict(X), fair.predict(renamed))

    def test_quality_is_kept_in_each_query(self):
        X = frame(40)
        fair = FairReranker(method="amortized", quality=0.97, **WHO).fit(X)
        new = fair.predict(X)
        for _, rows in X.assign(new=new).groupby("query"):
            assert ndcg_score([rows["score"]], [rows["new"]]) > 0.97 - 1e-6

    def test_columns_of_scores_have_books_of_their_own(self):
        X = frame(20)
        both = X.assign(other=X["score"].to_numpy()[::-1])
        fair = FairReranker(method="amortized", **WHO).partial_fit(both)
        alone = FairReranker(method="amortized", **WHO).partial_fit(X)
        for g in "ab":
            assert fair.attention_[g][0] == alone.attention_[g][0]
            assert len(fair.attention_[g]) == 2

    def test_around_a_model_and_in_a_pipeline(self):
        X = frame(30)
        y = X["score"] ** 2
        score = FunctionTransformer(lambda table: table[["score"]])
        model = make_pipeline(score, LinearRegression())
        fair = FairReranker(model, method="amortized", quality=0, **WHO)
        positive = FairReranker(model, method="exposure_lp", random_state=0, **WHO)
        y = y + 1  # The model's scores are not negative.
        assert fair.fit(X, y).predict(X).shape == (len(X),)
        fair.partial_fit(X)
        assert set(fair.attention_) == {"a", "b"}
        assert positive.fit(X, y).predict(X).shape == (len(X),)


SEARCHES = [
    ({"method": "det_greedy", "target": "candidates"}, {"k": [1, 8]}),
    ({"method": "fa_ir", "target": "candidates", "group": "b"}, {"alpha": [0.01, 0.4]}),
    (
        {"method": "exposure_lp", "random_state": 0},
        {"constraint": ["parity", "impact"]},
    ),
    ({"method": "amortized"}, {"quality": [0.0, 0.999]}),
]


@pytest.mark.filterwarnings("ignore:Exposure in proportion")
@pytest.mark.parametrize(("options", "grid"), SEARCHES)
class TestTools:
    def test_search_with_a_bound(self, options, grid):
        """The bound on the gap is kept at the least price in NDCG."""
        X = frame(60)
        y = (X["score"] > X["score"].mean()).astype(int)
        score = FunctionTransformer()
        model = make_pipeline(score, FairReranker(**options, **WHO))
        step = model.steps[-1][0]
        gap_scorer = make_fairness_scorer(
            exposure_gap, target="population", position_weight="dcg",
            sensitive_features="group", qid="query",
        )  # fmt: skip
        search = GridSearchCV(
            model,
            {f"{step}__{name}": values for name, values in grid.items()},
            scoring={"ndcg": get_scorer("ndcg", qid="query"), "gap": gap_scorer},
            refit=fairness_constrained("ndcg", at_most={"gap": 1.0}),
            cv=GroupKFold(2),
            error_score="raise",
        ).fit(X, y, groups=X["query"])
        results = search.cv_results_
        assert search.best_index_ == np.argmax(results["mean_test_ndcg"])
        gaps = -results["mean_test_gap"]
        tight = fairness_constrained("ndcg", at_most={"gap": gaps.min() + 1e-9})
        assert tight(results) == np.argmin(gaps)
        found = search.predict(X)
        alone = FairReranker(**options, **WHO).set_params(
            **{name.split("__")[1]: v for name, v in search.best_params_.items()}
        )
        np.testing.assert_array_equal(found, alone.fit(X).predict(X))


class TestErrors:
    @pytest.mark.parametrize(
        "options",
        [
            {"method": "amortized"},
            {"method": "exposure_lp", "constraint": "treatment"},
            {"method": "exposure_lp", "constraint": "impact"},
        ],
    )
    def test_relevance_is_not_negative(self, options):
        X = frame(2)
        fair = FairReranker(**options, **WHO).fit(X)
        wrong = X.assign(score=X["score"] - 2)
        for call in (fair.transform, fair.fit):
            with pytest.raises(ValueError, match="takes scores for relevance"):
                call(wrong)

    def test_only_books_are_updated(self):
        assert not hasattr(FairReranker(), "partial_fit")
        assert hasattr(FairReranker(method="amortized"), "partial_fit")
