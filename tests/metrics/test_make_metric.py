"""Metrics of a user's own are metrics in every way."""

import pickle
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare
from skrankfair.metrics import (
    GroupEstimates,
    make_metric,
    mean_squared_error,
    ndcg,
    true_positive_rate,
)
from tests.metrics.common import assert_same

RNG = np.random.default_rng(0)
N = 240
Y = RNG.integers(0, 2, N)
S = RNG.integers(0, 33, N) / 32
GROUP = RNG.choice(list("abc"), N)
QUERY = np.repeat(np.arange(40), 6)
AMOUNT = RNG.integers(1, 9, N) * 100.0
WHO = {"sensitive_features": GROUP, "cluster": QUERY}


def ratio(totals):
    return totals[..., 0] / totals[..., 1]


def squared(y_true, y_score):
    return (y_true - y_score) ** 2, 1


def rewards(y_true, y_score, amount, *, cut=0.5, margin=0.1):
    return (y_score >= cut) * (y_true * margin - (1 - y_true)) * amount, 1


def kinked(totals):
    return np.abs(totals[..., 0] / totals[..., 1] - 0.3)


own_error = make_metric(squared, ratio, name="own_error", support=1)
own_rate = make_metric(
    lambda y, s: np.column_stack([y * (s >= 0.5), y]),
    ratio,
    name="own_rate",
    support=1,
    share=True,
    unit="positives",
)
profit = make_metric(
    rewards, ratio, name="profit", needs=("y_true", "y_score", "amount")
)


def first_relevant(y_true, y_score, member):
    """Reciprocal rank of the first relevant item of the group, and 1."""
    places = np.flatnonzero(y_true * member)
    return (1 / (1 + places[0]) if places.size else 0.0), 1


reciprocal_rank = make_metric(
    first_relevant,
    ratio,
    name="reciprocal_rank",
    per="query",
    needs=("y_true", "y_score", "member"),
    share=True,
)


class TestIsLikeThoseOfThePackage:
    @pytest.mark.parametrize(
        ("metric", "like"),
        [
            (own_error, mean_squared_error),
            (own_rate, partial(true_positive_rate, threshold=0.5)),
        ],
    )
    def test_all_numbers(self, metric, like):
        own, built_in = metric(Y, S, **WHO), like(Y, S, **WHO)
        assert_same(own, built_in)
        assert own.name == metric.__name__
        for kind in ("difference", "ratio"):
            mine, theirs = (r.contrast("a", "b", kind) for r in (own, built_in))
            assert mine.standard_error == pytest.approx(theirs.standard_error)
        resampled = [r.resampled(50, random_state=0) for r in (own, built_in)]
        np.testing.assert_allclose(*resampled, rtol=1e-9)
        assert own.overall.estimate == pytest.approx(built_in.overall.estimate)
        if own.metric.share:
            intervals = [r.confidence_interval() for r in (own, built_in)]
            np.testing.assert_allclose(*intervals, rtol=1e-12)

    def test_results_of_processes_can_be_added(self):
        # Functions of a __main__ or of a notebook come back as copies.
        made = [
            make_metric(
                lambda y_true, y_score: (y_true * y_score, 1),
                lambda totals: totals[..., 0] / totals[..., 1],
                name="made",
            )
            for _ in range(2)
        ]
        first, second = (m(Y, S, sensitive_features=GROUP) for m in made)
        assert (first + second).n_clusters == 2 * N
        other = make_metric(squared, kinked, name="made")(Y, S)
        with pytest.raises(ValueError, match="Only results of one metric"):
            first + other

    def test_is_pickled(self):
        copy = pickle.loads(pickle.dumps(profit))
        r = copy(Y, S, amount=AMOUNT, **WHO)
        assert_same(r, profit(Y, S, amount=AMOUNT, **WHO))
        again = pickle.loads(pickle.dumps(r))
        assert_same(again + again, r + r)
        assert joblib.hash(copy) == joblib.hash(profit)


class TestOptionsAndColumns:
    def test_keyword_only_parameters_are_options(self):
        r = profit(Y, S, amount=AMOUNT, cut=0.25)
        assert r.parameters == {"cut": 0.25, "margin": 0.1}
        assert r.estimate[0] == pytest.approx(rewards(Y, S, AMOUNT, cut=0.25)[0].mean())
        with pytest.raises(ValueError, match="with the same options"):
            r + profit(Y, S, amount=AMOUNT)

    def test_own_column_is_checked(self):
        with pytest.raises(ValueError, match="^amount must be given; got None"):
            profit(Y, S)
        with pytest.raises(ValueError, match="^amount must be finite.*row 1"):
            profit([1, 0], [1, 1], amount=[1, np.nan])
        with pytest.raises(ValueError, match="rows; got .*y_score: 2, amount: 3"):
            profit([1, 0], [1, 1], amount=[1, 2, 3])
        with pytest.raises(ValueError, match="^amount must have its rows in the order"):
            profit(pd.Series(Y), S, amount=pd.Series(AMOUNT)[::-1])
        with pytest.raises(TypeError, match="'price'"):
            profit(Y, S, price=AMOUNT)

    def test_denominators_have_the_degrees_of_freedom_of_the_jackknife(self):
        amount = 1.5 ** np.arange(30.0)
        share = make_metric(
            lambda y_true, y_score: (y_true, y_score), ratio, name="share"
        )
        y = amount * np.sin(np.arange(30))
        u = [np.delete(y, i).sum() / np.delete(amount, i).sum() for i in range(30)]
        squares = (np.array(u) - y.sum() / amount.sum()) ** 2
        result = share(y, amount)
        expected = 3 * squares.sum() ** 2 / (squares**2).sum() - 2
        np.testing.assert_allclose(result.df, expected, rtol=1e-9)
        np.testing.assert_allclose(result.n_effective, expected + 1, rtol=1e-9)
        assert share(y, np.ones(30)).df < 29 == share(np.sin(y), np.ones(30)).df

    def test_needs_no_scores(self):
        base_rate = make_metric(lambda y: (y, 1), ratio, name="rate", needs="y_true")
        assert base_rate(Y).estimate[0] == pytest.approx(Y.mean())


class TestPerQuery:
    def test_groups_of_items(self):
        score = RNG.permutation(N)  # without ties
        r = reciprocal_rank(Y, score, sensitive_features=GROUP, qid=QUERY)
        for label, value in zip(r.groups, r.estimate, strict=True):
            values = []
            for query in range(40):
                rows = np.flatnonzero(query == QUERY)
                rows = rows[np.argsort(-score[rows])]
                own = GROUP[rows] == label
                if own.any():
                    values.append(first_relevant(Y[rows], score[rows], own)[0])
            assert value == pytest.approx(np.mean(values))
            assert r.support[r.groups.index(label)] == len(values)

    def test_groups_of_users(self):
        user = np.where(QUERY % 3, "x", "y")

        def dcg(y_true, y_score, *, k=3):
            discount = 1 / np.log2(np.arange(2, 2 + k))
            ideal = (np.sort(y_true)[::-1][:k] * discount).sum()
            return (y_true[:k] * discount).sum() / ideal if ideal else 0.0, ideal > 0

        own = make_metric(dcg, ratio, name="own_ndcg", per="query", support=1)
        score = RNG.permutation(N)  # without ties
        r = own(Y, score, sensitive_features=user, qid=QUERY)
        for label, value in zip(r.groups, r.estimate, strict=True):
            rows = user == label
            alone = ndcg(Y[rows], score[rows], qid=QUERY[rows], k=3)
            assert value == pytest.approx(alone.estimate[0])
        whole = ndcg(Y, score, qid=QUERY, k=3)
        assert r.overall.estimate == pytest.approx(whole.estimate[0])
        with pytest.raises(ValueError, match="constant within a query for own_ndcg"):
            own(Y, score, sensitive_features=GROUP, qid=QUERY)

    def test_clusters_hold_queries(self):
        r = reciprocal_rank(
            Y, S, sensitive_features=GROUP, qid=QUERY, cluster=QUERY // 4
        )
        assert r.n_clusters == 10
        with pytest.raises(ValueError, match="cluster must be constant within"):
            reciprocal_rank(Y, S, qid=QUERY, cluster=np.arange(N))


def test_a_ratio_to_nothing_is_undefined():
    dividing = make_metric(lambda y, s: (s, y), ratio, name="per_positive")
    with pytest.warns(UndefinedMetricWarning, match="too few different rows, in: b"):
        r = dividing([1, 1, 1, 0, 0], [1, 2, 3, 4, 5], sensitive_features=list("aaabb"))
    np.testing.assert_array_equal(r.estimate, [2, np.nan])
    assert np.isfinite(r.covariance[0, 0])


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"columns": 3}, "columns must be a function"),
            ({"finalize": None}, "finalize must be a function"),
            ({"name": ""}, "name must be a text"),
            ({"per": "rows"}, "per must be one of"),
            ({"needs": ("y_true", "qid")}, "needs must name"),
            ({"needs": ("y_true", "member")}, "needs must name"),
            ({"needs": ()}, "needs must name at least one"),
            ({"needs": 3}, "needs must name"),
            ({"needs": "y_true"}, "columns must take y_true"),
            ({"needs": "y_true", "per": "query", "columns": abs}, "needs must have y_"),
            ({"fair_value": "0"}, "fair_value must be a number"),
            ({"support": -1}, "support must be an integer"),
            ({"share": 1}, "share must be one of"),
            ({"better": "more"}, "better must be one of"),
        ],
    )
    def test_of_the_call(self, options, message):
        good = {"columns": squared, "finalize": ratio, "name": "m"}
        with pytest.raises(ValueError, match=f"^{message}"):
            make_metric(**{**good, **options})

    def test_of_what_the_functions_return(self):
        def made(columns, finalize=ratio, **options):
            return make_metric(columns, finalize, name="m", **options)(Y, S)

        with pytest.raises(ValueError, match="columns of m must return columns of 240"):
            made(lambda y, s: (y[:5], 1))
        with pytest.raises(ValueError, match="columns of m must be finite.*column 0"):
            made(lambda y, s: (np.where(np.arange(N) == 7, np.nan, y), 1))
        with pytest.raises(ValueError, match="at most 1e\\+130.* 1e\\+308 in row 7"):
            made(lambda y, s: (np.where(np.arange(N) == 7, 1e308, y), 1))
        with pytest.raises(ValueError, match="finalize of m must take totals of shape"):
            made(squared, lambda totals: totals[0] / totals[1])
        with pytest.raises(ValueError, match="finalize of m must .* an error .div"):
            made(squared, lambda totals: 1 / 0)
        with pytest.raises(ValueError, match="columns of m must return numbers"):
            made(lambda y, s: "text")
        with pytest.raises(ValueError, match="support must be .* one of the 2"):
            made(squared, support=2)
        with pytest.raises(ValueError, match="not negative; column 1 has -1"):
            made(lambda y, s: (y, -1), support=1)
        with pytest.raises(ValueError, match="same|as many finite numbers for every"):
            made(lambda y, s: (np.inf, 1), per="query")

    def test_of_rows_without_a_group(self):
        nobody = np.zeros((N, 2), dtype=bool)
        with pytest.raises(ValueError, match="some row into a group; got no row in 0"):
            reciprocal_rank(Y, S, sensitive_features=nobody, qid=QUERY)


class TestFromSums:
    def test_is_the_result_of_the_rows(self):
        whole = own_error(Y, S, **WHO)
        again = GroupEstimates.from_sums(
            whole.sums.rows.by_group,
            ratio,
            groups=whole.groups,
            name="own_error",
            labels=whole.sums.rows.labels,
            support=1,
            unit="rows",
        )
        assert_same(again, whole)
        # Sums do not tell whether groups overlap, so there is no test against the rest.
        pd.testing.assert_frame_equal(
            again.to_frame().drop(columns="pvalue"),
            whole.to_frame().drop(columns="pvalue"),
        )

    def test_counts_clusters(self):
        table = np.zeros((5, 2, 2))
        table[:3, 0], table[3:, 1] = [[1, 2], [1, 4], [0, 1]], [[2, 3], [1, 1]]
        r = GroupEstimates.from_sums(table, ratio, groups="ab", name="m")
        np.testing.assert_allclose(r.estimate, [2 / 7, 3 / 4])
        assert r.support.tolist() == [3, 2]
        assert (r + r).n_clusters == 10
        # Under another score a cluster may have data of another group.
        other = GroupEstimates.from_sums(table[::-1], ratio, groups="ab", name="m")
        assert compare(r, other).estimate.tolist() == [0, 0]

    @pytest.mark.parametrize(
        ("table", "options", "message"),
        [
            (np.ones((3, 2)), {}, "table must have the shape"),
            (np.ones((3, 3, 2)), {}, "table must have the shape"),
            (np.full((3, 2, 2), np.nan), {}, "table must be finite"),
            ("abc", {}, "table must hold numbers"),
            (np.ones((3, 2, 2)), {"groups": ["a", "a"]}, "groups must be distinct"),
            (np.ones((3, 2, 2)), {"groups": None}, "groups must be a list of labels"),
            (np.ones((3, 2, 2)), {"labels": [1, 1, 2]}, "labels must name each of"),
            (np.ones((3, 2, 2)), {"labels": [1, 2]}, "labels must name each of"),
        ],
    )
    def test_errors(self, table, options, message):
        options = {"groups": ["a", "b"], "name": "m", **options}
        with pytest.raises(ValueError, match=f"^{message}"):
            GroupEstimates.from_sums(table, ratio, **options)
