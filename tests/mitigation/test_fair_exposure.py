"""Rankings that share exposure and attention: their optima, and the estimators."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair.metrics import exposure_gap
from skrankfair.mitigation import FairReranker
from skrankfair.mitigation._fair_exposure import (
    CONSTRAINTS,
    amortized_order,
    drawn_order,
    exposure_mixture,
)
from skrankfair.mitigation._floors import QueryLists
from skrankfair.model_selection import fairness_constrained
from skrankfair.scoring import get_scorer, make_fairness_scorer
from tests.mitigation.data import WHO, ranking
from tests.reference.reranking_exposure import (
    dcg,
    equations,
    fairest_ranking,
    most_useful_policy,
)

SEARCHES = [
    ({"method": "det_greedy", "target": "candidates"}, {"k": [1, 8]}),
    ({"method": "fa_ir", "target": "candidates", "group": "b"}, {"alpha": [0.01, 0.4]}),
    (
        {"method": "exposure_lp", "random_state": 0},
        {"constraint": ["parity", "impact"]},
    ),
    ({"method": "amortized"}, {"quality": [0.0, 0.999]}),
]
DCG = 1 / np.log2(np.arange(2, 102))


def gap(X, score):
    """Exposure of "b" beyond its share of relevance, the mean over queries."""
    who = {"sensitive_features": X["group"], "qid": X["query"]}
    result = exposure_gap(X["score"], score, **who, target="relevance")
    return result.estimate[result.groups.index("b")]


# Rankings drawn at random, and books of attention.
in_draws = partial(FairReranker, method="exposure_lp", random_state=0, **WHO)
amortized = partial(FairReranker, method="amortized", **WHO)


@pytest.mark.filterwarnings("ignore:Exposure in proportion")
class TestExposure:
    def test_seed_and_copy(self):
        X = ranking()
        fair = in_draws().fit(X)
        np.testing.assert_array_equal(fair.predict(X), clone(fair).fit(X).predict(X))
        assert (fair.predict(X) != in_draws(random_state=1).fit(X).predict(X)).any()

    @pytest.mark.parametrize("make", [in_draws, amortized])
    def test_scores_of_a_query_change_hands_and_k_limits_them(self, make):
        X = ranking()
        new = X.assign(new=make(k=3).fit(X).predict(X))
        for _, rows in new.groupby("query"):
            np.testing.assert_array_equal(np.sort(rows["score"]), np.sort(rows["new"]))
            rest = rows.sort_values("new", ascending=False)["score"][3:]
            assert rest.is_monotonic_decreasing

    def test_groups_that_fit_has_not_seen_are_as_good_as_others(self):
        X = ranking()
        fair, renamed = in_draws().fit(X), X.assign(group=X["group"] + "!")
        np.testing.assert_array_equal(fair.predict(X), fair.predict(renamed))

    def test_says_what_is_out_of_reach(self):
        X = pd.DataFrame({"score": [1.0, 0.0], "group": ["a", "b"], "query": 0})
        fair = in_draws(constraint="treatment").fit(X)
        with pytest.warns(UserWarning, match=r"in 1 of 1 queries.*by up to 77\.4% of"):
            fair.transform(X)

    def test_weights_of_places(self):
        X = ranking(20)
        of_name, *others = (
            in_draws(position_weight=weight, k=3).fit(X).predict(X)
            for weight in ("top", [1.0, 1.0, 1.0], lambda rank: 1.0 * (rank <= 3))
        )
        for other in others:
            np.testing.assert_array_equal(of_name, other)


class TestAmortized:
    def test_gap_closes_over_the_sequence(self):
        X = ranking(200)
        fair = amortized(quality=0).fit(X)
        assert abs(gap(X, fair.predict(X))) < abs(gap(X, X["score"])) / 10
        fair.partial_fit(X)
        for g in "ab":
            assert fair.attention_[g][0] == pytest.approx(fair.relevance_[g][0], abs=1)

    def test_parts_continue_and_the_state_is_json(self):
        X = ranking(30)
        whole = amortized(quality=0.97).fit(X)
        online, parts = clone(whole).fit(X), []
        for start in (0, 10, 20):
            part = X[(X["query"] >= start) & (X["query"] < start + 10)]
            parts.append(online.predict(part))
            online.partial_fit(part)
            state = json.loads(json.dumps([online.attention_, online.relevance_]))
            online = clone(online).fit(X)
            online.attention_, online.relevance_ = state
        np.testing.assert_array_equal(whole.predict(X), np.concatenate(parts))
        assert whole.attention_ == {}
        assert not hasattr(FairReranker(), "partial_fit")
        first = clone(whole).partial_fit(X)
        for g in "ab":
            np.testing.assert_allclose(first.attention_[g], online.attention_[g])

    def test_queries_come_in_the_order_of_their_first_rows(self):
        X = ranking(12)
        fair, renamed = amortized().fit(X), X.assign(query=(7 * X["query"] + 5) % 12)
        np.testing.assert_array_equal(fair.predict(X), fair.predict(renamed))

    def test_columns_of_scores_have_books_of_their_own(self):
        X = ranking(20)
        both = X.assign(other=X["score"].to_numpy()[::-1])
        fair, alone = (amortized().partial_fit(table) for table in (both, X))
        for g in "ab":
            assert fair.attention_[g][0] == alone.attention_[g][0]
            assert len(fair.attention_[g]) == 2

    def test_around_a_model_and_in_a_pipeline(self):
        X = ranking(30)
        y = X["score"] ** 2 + 1  # The model's scores are not negative.
        score = FunctionTransformer(lambda table: table[["score"]])
        model = make_pipeline(score, LinearRegression())
        for make in (amortized, in_draws):
            assert make(model).fit(X, y).predict(X).shape == (len(X),)
        books = amortized(model).fit(X, y).partial_fit(X)
        assert set(books.attention_) == {"a", "b"}


@pytest.mark.filterwarnings("ignore:Exposure in proportion")
@pytest.mark.parametrize(("options", "grid"), SEARCHES)
def test_search_with_a_bound(options, grid):
    """The bound on the gap is kept at the least price in NDCG."""
    X = ranking(24)
    y = (X["score"] > X["score"].mean()).astype(int)
    target = {"target": "population", "position_weight": "dcg"}
    gap_scorer = make_fairness_scorer(exposure_gap, **target, **WHO)
    search = GridSearchCV(
        Pipeline([("fair", FairReranker(**options, **WHO))]),
        {f"fair__{name}": values for name, values in grid.items()},
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
    best = {name.split("__")[1]: v for name, v in search.best_params_.items()}
    alone = FairReranker(**{**options, **best}, **WHO).fit(X)
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))


BY_MERIT = [amortized(), *(in_draws(constraint=c) for c in ("treatment", "impact"))]


@pytest.mark.parametrize("fair", BY_MERIT, ids=["books", "treatment", "impact"])
def test_relevance_is_not_negative(fair):
    X = ranking(2)
    fair.fit(X)
    for call in (fair.transform, fair.fit):
        with pytest.raises(ValueError, match="takes scores for relevance"):
            call(X.assign(score=X["score"] - 2))


def columns(seed, n_groups, n_queries=12, longest=7, decimals=8):
    """Scores, groups and queries, some with one candidate and some with ties."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), rng.integers(1, longest + 1, n_queries))
    score = np.round(rng.random(query.size) ** 2, decimals)
    return score, rng.integers(0, n_groups, query.size), query


def lists(score, group, query):
    """QueryLists of rows that need not be ranked."""
    starts = np.searchsorted(query, np.arange(query[-1] + 2))
    alone = np.arange(score.size)  # no row is tied
    return QueryLists(starts, alone, score, group, group.max() + 1)


def mixed(score, group, query, weights, constraint):
    """Ranks, chances and moves of all queries."""
    return exposure_mixture(lists(score, group, query), weights, constraint)


def of_queries(mixture, query, weights):
    """Yield rows, expected exposure and the move of each query."""
    all_ranks, all_chances, relaxed = mixture
    for q in range(query[-1] + 1):
        rows = np.flatnonzero(query == q)
        ranks, chances = all_ranks[:, rows], all_chances[:, q]
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        for rank in ranks[chances > 0]:
            assert sorted(rank) == list(range(1, rows.size + 1))
        known = chances > 0
        exposure = chances[known] @ weights[ranks[known] - 1]
        yield rows, exposure, relaxed[q]


def drawn(columns, weights=DCG):
    """The order of parity, drawn with one seed."""
    return drawn_order(lists(*columns), weights, "parity", np.random.default_rng(0))


class TestOptimumOfRandomRankings:
    @pytest.mark.parametrize("decimals", [1, 8])
    @pytest.mark.parametrize("n_groups", [1, 2, 4])
    @pytest.mark.parametrize("constraint", CONSTRAINTS)
    def test_is_that_of_the_dense_program(self, constraint, n_groups, decimals):
        score, group, query = columns(n_groups, n_groups, decimals=decimals)
        mixture = mixed(score, group, query, DCG, constraint)
        for rows, exposure, moved in of_queries(mixture, query, DCG):
            u, g = score[rows].tolist(), group[rows].tolist()
            policy, utility, least = most_useful_policy(u, g, DCG, constraint)
            assert moved == pytest.approx(least, abs=1e-8)
            assert u @ exposure == pytest.approx(utility, abs=3e-8)
            left, moves = equations(u, g, DCG, constraint)
            for row, move in zip(left, moves, strict=True):
                by_item = np.reshape(row, policy.shape)[:, 0] / DCG[0]
                assert by_item @ exposure == pytest.approx(moved * move, abs=1e-9)

    @pytest.mark.parametrize(
        "weights", [[1, 0, 0, 0, 0, 0, 0], [0.2, 0.5, 0, 1, 0.5, 0.1, 0], np.ones(7)]
    )
    def test_takes_any_weights_of_places(self, weights):
        weights = np.array(weights, dtype=float)
        score, group, query = columns(5, 3)
        mixture = mixed(score, group, query, weights, "parity")
        for rows, exposure, _ in of_queries(mixture, query, weights):
            utility = most_useful_policy(score[rows], group[rows], weights, "parity")[1]
            assert score[rows] @ exposure == pytest.approx(utility, abs=1e-9)

    @pytest.mark.parametrize("power", [3, 30, 300])
    @pytest.mark.parametrize("constraint", CONSTRAINTS)
    def test_groups_of_little_relevance(self, constraint, power):
        score, group, query = columns(6, 3, n_queries=20, longest=20)
        score = score**power
        mixture = mixed(score, group, query, DCG, constraint)
        for rows, exposure, moved in of_queries(mixture, query, DCG):
            left, moves = equations(score[rows], group[rows], DCG, constraint)
            for row, move in zip(left, moves, strict=True):
                by_item = np.reshape(row, (rows.size, -1))[:, 0]
                assert by_item @ exposure == pytest.approx(moved * move, abs=1e-10)

    def test_mixes_at_most_as_many_rankings_as_groups(self):
        score, group, query = columns(0, 4, n_queries=100, longest=20)
        mixture = mixed(score, group, query, DCG, "parity")
        for q in range(100):
            n_groups = len(set(group[query == q]))
            assert (mixture[1][:, q] > 0).sum() <= n_groups

    def test_six_job_seekers(self):
        """Relevances .82 to .77, three men first: exposure .71 and .39 if sorted."""
        score, group = np.arange(0.82, 0.765, -0.01), np.repeat([0, 1], 3)
        assert DCG[:3].mean() == pytest.approx(0.71, abs=0.005)
        assert DCG[3:6].mean() == pytest.approx(0.39, abs=0.005)
        ratios = {}
        for constraint in CONSTRAINTS:
            mixture = mixed(score, group, np.zeros(6, int), DCG, constraint)
            exposure = next(of_queries(mixture, np.zeros(6, int), DCG))[1]
            click = score * exposure
            ratios[constraint] = [x[:3].sum() / x[3:].sum() for x in (exposure, click)]
        merit = score[:3].sum() / score[3:].sum()
        assert ratios["parity"][0] == pytest.approx(1, abs=1e-9)
        assert ratios["treatment"][0] == pytest.approx(merit, abs=1e-9)
        assert ratios["impact"][1] == pytest.approx(merit, abs=1e-9)


def test_without_merit_exposure_is_equal():
    score, group = np.zeros(4), np.array([0, 1, 1, 1])
    mixture = mixed(score, group, np.zeros(4, int), DCG, "treatment")
    exposure = next(of_queries(mixture, np.zeros(4, int), DCG))[1]
    assert exposure[0] == pytest.approx(exposure[1:].mean(), abs=1e-9)


class TestDraw:
    def test_shares_of_draws_are_the_chances(self):
        n_queries = 1000
        score, group = np.array([0.82, 0.81, 0.8, 0.79]), np.array([0, 0, 1, 1])
        query = np.repeat(np.arange(n_queries), 4)
        columns = np.tile(score, n_queries), np.tile(group, n_queries), query
        order = drawn(columns)
        exposure = np.empty(order.size)
        exposure[order] = np.tile(DCG[:4], n_queries)
        exposure = exposure.reshape(n_queries, 4)
        gaps = exposure[:, :2].sum(axis=1) - exposure[:, 2:].sum(axis=1)
        assert abs(gaps.mean()) < 3 * gaps.std() / np.sqrt(n_queries)
        assert gaps.std() > 0.1
        np.testing.assert_array_equal(order, drawn(columns))

    @pytest.mark.parametrize("weights", [[1, 1, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0]])
    def test_places_worth_the_same_are_by_score(self, weights):
        score, group = np.arange(6.0, 0, -1), np.array([0, 0, 0, 1, 1, 1])
        weights = np.array(weights, dtype=float)
        order = drawn((score, group, np.zeros(6, int)), weights)
        assert set(group[order[weights > 0]]) == {0, 1}
        for worth in (0, 1):
            assert (np.diff(score[order[weights == worth]]) < 0).all()


def ranked(score, subject, query, quality=0.0, weights=DCG, discounts=DCG, books=None):
    """Ranks and the books afterwards, as (2, n_subjects): attention and relevance."""
    books = np.zeros((2, subject.max() + 1)) if books is None else books.copy()
    by_score = np.lexsort((-score, query))
    starts = np.searchsorted(query, np.arange(query[-1] + 2))
    lists = QueryLists(starts, None, score[by_score], subject[by_score], books.shape[1])
    order = by_score[amortized_order(lists, weights, discounts, quality, books)]
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size) - starts[query] + 1
    return ranks, books


class TestOptimumOverQueries:
    @pytest.mark.parametrize("k", [None, 2])
    @pytest.mark.parametrize("quality", [0.0, 0.9, 0.98, 1.0])
    @pytest.mark.parametrize("n_subjects", [2, 6])
    def test_is_that_of_all_permutations(self, n_subjects, quality, k):
        rng = np.random.default_rng(n_subjects)
        weights, discounts = DCG[:5] ** 2, DCG[:5].copy()
        if k:
            weights[k:] = discounts[k:] = 0
        for _ in range(8):
            subject = rng.integers(0, n_subjects, 5)
            if n_subjects == 6:
                subject = rng.permutation(6)[:5]
            score = np.round(rng.random(5), rng.choice([1, 8]))
            books = rng.random((2, 6)) / 5
            columns = score, subject, np.zeros(5, int)
            ranks, after = ranked(*columns, quality, weights, discounts, books)
            debt = books[1] - books[0]
            how = weights, discounts, quality, debt
            least = fairest_ranking(score, subject, *how)
            order = np.argsort(ranks)
            given = weights[ranks - 1] / weights.sum()
            n_each = np.bincount(subject, minlength=6)[subject]
            due = (after[1] - books[0])[subject] / n_each
            assert np.abs(given - due).sum() == pytest.approx(least, abs=1e-7)
            best = dcg(score, discounts, np.argsort(-score))
            assert dcg(score, discounts, order) >= (quality - 1e-6) * best


class TestBooks:
    def test_are_the_sums_of_shares(self):
        rng = np.random.default_rng(1)
        query = np.repeat(np.arange(20), 5)
        score, subject = rng.random(100), rng.integers(0, 7, 100)
        ranks, books = ranked(score, subject, query, quality=0.9)
        attention, relevance = np.zeros(7), np.zeros(7)
        for row in range(100):
            attention[subject[row]] += DCG[ranks[row] - 1] / DCG[:5].sum()
            relevance[subject[row]] += score[row] / score[query == query[row]].sum()
        np.testing.assert_allclose(books, [attention, relevance], atol=1e-12)

    def test_without_relevance_all_are_due_the_same(self):
        _, books = ranked(np.zeros(3), np.arange(3), np.zeros(3, int), 1.0)
        np.testing.assert_allclose(books[1], 1 / 3)
