"""Re-ranking against naive loops, other packages and what the papers promise."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair.inference import prefix_test
from skrankfair.mitigation import FairReranker
from skrankfair.rankers import QueryRanker
from tests.mitigation.data import WHO, ranking
from tests.reference import reranking as naive

GREEDY = ("det_greedy", "det_cons", "det_relaxed", "det_const_sort")
quietly = pytest.mark.filterwarnings("ignore:Targets are not met")


def new_order(score, labels, qid=None, **options):
    """Rows from the top, query by query, by the new scores; all of these differ."""
    X, who = np.asarray(score, dtype=float), {"sensitive_features": labels, "qid": qid}
    new = FairReranker(**options).fit_transform(X[:, None], **who).ravel()
    qid = np.zeros(new.size) if qid is None else qid
    return np.lexsort((np.arange(new.size), -new, qid)).tolist()


def lists_of(rng, n_groups, n_queries=40, ties=False):
    """Queries of 1 to 15 items of random groups, in random order of the rows."""
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 16, n_queries))
    rng.shuffle(qid)
    group = np.r_[np.arange(n_groups), rng.integers(0, n_groups, qid.size - n_groups)]
    score = rng.normal(size=qid.size)
    return np.floor(2 * score) if ties else score, group, qid


def items_of(rows, score, group):
    return [(score[row], int(group[row])) for row in rows]


# The order


@quietly
@pytest.mark.parametrize("method", GREEDY)
@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("ties", [False, True])
def test_greedy_family_is_the_naive_one(method, n_groups, ties):
    rng = np.random.default_rng(n_groups)
    score, group, qid = lists_of(rng, n_groups, ties=ties)
    cuts = np.sort(rng.integers(0, 21, n_groups - 1))
    counts = np.diff([0, *cuts, 20]).tolist()
    share = {g: Fraction(n, 20) for g, n in enumerate(counts)}
    target = {g: float(p) for g, p in share.items()}
    for k in (4, None):
        found = new_order(score, group, qid, method=method, target=target, k=k)
        expected = []
        for q in range(40):
            rows = np.flatnonzero(qid == q)
            items, places = items_of(rows, score, group), k or rows.size
            if method == "det_const_sort":
                order = naive.det_const_sort(items, share, places)
            else:
                order = naive.det(items, share, places, method)
            expected += rows[order].tolist()
        assert found == expected


@quietly
@pytest.mark.parametrize("target", ["proportional", "candidates"])
def test_fa_ir_is_the_naive_one(target):
    rng = np.random.default_rng(0)
    for n_groups, k in ((2, 6), (3, 4)):
        score, group, qid = lists_of(rng, n_groups, n_queries=8, ties=True)
        protected = list(range(1, n_groups))
        options = {"target": target, "alpha": 0.25, "group": protected, "k": k}
        found = new_order(score, group, qid, method="fa_ir", **options)
        share = {g: Fraction(int((group == g).sum()), group.size) for g in protected}
        law, expected = {"share": share}, []
        for q in range(8):
            rows = np.flatnonzero(qid == q)
            items = [(s, g or None) for s, g in items_of(rows, score, group)]
            places = k
            if target == "candidates":
                members = [g for _, g in items]
                law = {"pool": {g: members.count(g) for g in (None, *protected)}}
                places = min(k, rows.size)
            level, _ = naive.failure_nearest(Fraction(1, 4), protected, places, **law)
            order = naive.fa_ir(items, protected, places, level, **law)
            expected += rows[order].tolist()
        assert found == expected


def test_blocks_of_queries_make_no_difference(monkeypatch):
    score, group, qid = lists_of(np.random.default_rng(3), 2)
    options = {"method": "exposure_lp", "random_state": 0}
    at_once = new_order(score, group, qid, **options)
    monkeypatch.setattr("skrankfair.mitigation._fair_exposure._ROWS", 30)
    assert new_order(score, group, qid, **options) == at_once


# What other packages say


def test_det_const_sort_of_aif360():
    """Version 0.6.1, "Constrained", of 8 places with shares 3/8, 1/4 and 3/8."""
    score = [2, 30, 19, 18, 6, 4, 32, 0, 1, 16, 21, 26, 28, 23, 34, 24, 17, 25, 20, 9]
    group = [0, 0, 0, 1, 2, 2, 1, 2, 1, 1, 2, 1, 0, 2, 1, 2, 1, 0, 0, 0]
    options = {"target": {0: 3 / 8, 1: 1 / 4, 2: 3 / 8}, "k": 8}
    found = new_order(score, group, method="det_const_sort", **options)
    assert found[:8] == [14, 1, 15, 6, 12, 13, 17, 10]


def test_shares_times_places_are_whole_numbers():
    """0.29 * 100 is 28.999999999999996, which others round down to a floor of 28."""
    group = np.r_[np.zeros(100), np.ones(50)]
    options = {"method": "det_greedy", "target": {1: 0.29}, "k": 100}
    assert group[new_order(np.arange(150, 0, -1), group, **options)[:100]].sum() == 29


def test_fa_ir_of_hyperfair():
    """hyperfair 0.1.3: 20 candidates, the 8 protected last, alpha = 0.1, k = 10.

    By 200,000 simulations: p-value 0.000365, probabilities of failure 0.125 without
    adjustment and 0.084 with it.
    """
    member = np.r_[np.zeros(12, dtype=int), np.ones(8, dtype=int)]
    score = np.arange(20, 0, -1)
    options = {"target": "candidates", "group": 1, "k": 10}
    found = new_order(score, member, method="fa_ir", **options)
    assert found == [0, 1, 2, 3, 12, 4, 5, 13, 6, 7, 8, 9, 10, 11, *range(14, 20)]
    result = prefix_test(score, sensitive_features=member, group=1, k=10)
    assert result.pvalue == pytest.approx(0.000357227911407478)
    options |= {"method": "fa_ir", "target": "equal", "k": None}
    with_longer = np.r_[score, np.arange(80)], np.r_[member, np.arange(80) % 2]
    found = new_order(*with_longer, np.arange(100) >= 20, **options)
    assert found[:20] == new_order(score, member, **options)


# Scores


@quietly
@pytest.mark.parametrize("method", [*GREEDY, "fa_ir"])
def test_scores_change_hands(method):
    """Within a query and within groups in order; rows in any order give the same."""
    rng = np.random.default_rng(1)
    score, group, qid = lists_of(rng, 3)
    fair = FairReranker(method=method, target="equal", k=4)
    who = {"sensitive_features": group, "qid": qid}
    new = fair.fit_transform(score[:, None], **who).ravel()
    assert (new != score).any()
    for q in range(40):
        rows = qid == q
        np.testing.assert_array_equal(np.sort(new[rows]), np.sort(score[rows]))
        for g in range(3):
            cell = rows & (group == g)
            assert (np.argsort(new[cell]) == np.argsort(score[cell])).all()
    mixed = rng.permutation(qid.size)
    who = {name: column[mixed] for name, column in who.items()}
    again = fair.fit_transform(score[mixed][:, None], **who).ravel()
    np.testing.assert_array_equal(again, new[mixed])
    # What fit learns serves all methods, and nothing is left of the fit before.
    fair.set_params(method="exposure_lp").fit(score[mixed][:, None], **who)
    assert np.isnan(fair.alpha_)
    fair.set_params(method=method, target="candidates", group=1)
    np.testing.assert_array_equal(fair.predict(score[mixed][:, None], **who), again)
    with pytest.raises(ValueError, match="k must be an integer"):
        fair.set_params(k="4").predict(score[mixed][:, None], **who)


def test_ties_are_in_row_order_and_strict_between_groups():
    score = np.array([1.0, 1.0, 1.0, 0.0, -0.0, -1.0, -1.0])
    group = np.array(list("aabbaab"))
    fair = FairReranker(target="equal", k=4)
    new = fair.fit_transform(score[:, None], sensitive_features=group).ravel()
    assert np.argsort(-new).tolist() == [0, 2, 1, 3, 4, 5, 6]
    np.testing.assert_allclose(new, [1, 1, 1, 0, 0, -1, -1], atol=1e-12)
    # Without groups nothing needs an order.
    alone = FairReranker().fit_transform(score[:, None]).ravel()
    np.testing.assert_array_equal(alone, score)


def test_several_scores_are_each_reranked():
    scores, group = np.random.default_rng(0).random((60, 2)), np.arange(60) % 2
    fair = FairReranker(k=10).fit(scores, sensitive_features=group)
    found = fair.transform(scores, sensitive_features=group)
    for i in range(2):
        one = FairReranker(k=10).fit_transform(scores[:, [i]], sensitive_features=group)
        np.testing.assert_array_equal(found[:, [i]], one)
    np.testing.assert_array_equal(fair.predict(scores, group), found)


# Targets and groups


def test_targets():
    X, group = np.arange(10.0)[:, None], list("aaaaabbbcc")

    def shares(target, **options):
        fair = FairReranker(target=target)
        return fair.fit(X, sensitive_features=group, **options).shares_

    assert shares("proportional") == pytest.approx({"a": 0.5, "b": 0.3, "c": 0.2})
    found = shares("proportional", sample_weight=[0.0] * 5 + [1.0] * 5)
    assert found == {"b": pytest.approx(0.6), "c": pytest.approx(0.4)}
    assert shares("equal") == dict.fromkeys("abc", 1 / 3)
    assert shares("candidates") == {}
    found = shares({"c": 0.6})
    assert found == {"a": 0.25, "b": pytest.approx(0.15), "c": 0.6}


def test_candidates_are_the_pool_of_each_query():
    X = ranking(2, 12)
    X["group"] = [*"aaaaaaaaaabb", *"abababababab"]
    new = FairReranker(target="candidates", k=6, **WHO).fit_transform(X).ravel()
    for q, least in ((0, 1), (1, 3)):
        rows = np.flatnonzero(X["query"] == q)
        top = rows[np.argsort(-new[rows])][:6]
        assert (X["group"][top] == "b").sum() >= least


def test_unseen_groups_keep_their_scores():
    X = ranking(30, 12)
    fair, unseen = FairReranker(k=4, **WHO).fit(X), np.arange(len(X)) % 5 == 0
    mixed = X.assign(group=np.where(unseen, "c", X["group"]))
    with pytest.warns(UserWarning, match=r"not seen .*'c' \(seen: 'a', 'b'\)"):
        found = fair.transform(mixed).ravel()
    np.testing.assert_array_equal(found[unseen], X["score"][unseen])
    np.testing.assert_array_equal(found[~unseen], fair.transform(X[~unseen]).ravel())


def test_what_cannot_be_met_is_said():
    score, group = np.outer(np.arange(12), [1, 2]), np.r_[np.zeros(10), np.ones(2)]
    qid = np.r_[np.zeros(6), np.ones(6)]
    fair = FairReranker(target="equal")
    with pytest.warns(UserWarning, match=r"in 2 of 2 queries, .*: 1\.0 by up to 3\."):
        fair.fit_transform(score, sensitive_features=group, qid=qid)
    fair = FairReranker(method="fa_ir", target={1: 0.6}, group=1)
    with pytest.warns(UserWarning, match=r"in 1 of 2 queries, .*: 1\.0 by up to 2\."):
        fair.fit_transform(score, sensitive_features=group, qid=qid)


BAD = [
    ({"method": "greedy"}, "method must be one of"),
    ({"target": "even"}, "target must be one of"),
    ({"target": {"a": 0.5, "b": 0.0}}, "add up to 0.5"),
    ({"target": {"a": 0.5, "b": 0.6}}, "add up to 1.1"),
    ({"target": {"z": 0.5}}, "target must have labels of groups of the fit"),
    ({"target": {"a": "x"}}, "target must be numeric"),
    ({"k": 0}, "k must be an integer"),
    ({"alpha": 0.5}, "alpha must be a number"),
    ({"group": "z"}, "group must be one of the groups"),
    ({"group": ["a", {"z"}]}, "group must be one of the groups"),
    ({"group": np.array(["a"])}, r"one of the groups \['a', 'b'\]; got array"),
    ({"group": ["a", "b"]}, "and not all"),
    ({"group": []}, "and not all; got \\[\\]"),
    ({"drop_metadata_columns": 1}, "drop_metadata_columns must be one of"),
    ({"sensitive_features": "sex"}, "there is no 'sex'"),
    ({"qid": True}, "qid must be passed as metadata"),
    ({"estimator": LinearRegression()}, "requires y"),
    ({"constraint": "equal"}, "constraint must be one of"),
    ({"quality": 1.1}, "quality must be"),
    ({"position_weight": "log"}, "position_weight must be one of"),
    ({"random_state": "x"}, "random_state must be"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options_raise(options, message):
    X = ranking(2, 12)
    with pytest.raises(ValueError, match=message):
        FairReranker(**WHO).set_params(**options).fit(X)


def test_groups_that_overlap_or_are_too_many_raise():
    member, many = np.ones((240, 2), dtype=bool), np.tile(np.arange(12), 20)
    fair = FairReranker(method="fa_ir", k=50)
    counts = "k must be smaller for exact counts of 11"
    for group, message in ((member, "must be disjoint"), (many, counts)):
        with pytest.raises(ValueError, match=message):
            fair.fit(np.arange(240.0)[:, None], sensitive_features=group)


# In a Pipeline, in a search, on frames, as metadata


def test_columns_metadata_functions_and_libraries_agree():
    X = ranking(30, 12)
    options = {"method": "fa_ir", "k": 6, "target": "equal"}
    fair = FairReranker(**options, **WHO)
    expected = fair.fit_transform(X)
    assert fair.get_feature_names_out().tolist() == ["score"]
    np.testing.assert_array_equal(fair.fit_transform(pl.from_pandas(X)), expected)
    np.testing.assert_array_equal(fair.predict(X), expected[:, 0])
    who = {name: X[column] for name, column in WHO.items()}
    given = FairReranker(**options).fit_transform(X[["score"]].to_numpy(), **who)
    np.testing.assert_array_equal(given, expected)
    called = {name: lambda _, values=values: values for name, values in who.items()}
    found = FairReranker(**options, **called).fit_transform(X[["score"]])
    np.testing.assert_array_equal(found, expected)
    frame = fair.set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["score"]
    with pytest.raises(ValueError, match="both to fit and afterwards"):
        FairReranker().fit(X[["score"]]).transform(X[["score"]], X["group"])


def test_last_step_of_a_model_and_metadata():
    X = ranking(30, 12)
    y = X["score"] ** 2
    who = {name: X[column] for name, column in WHO.items()}
    alone = LinearRegression().fit(X[["score"]], y).predict(X[["score"]])
    expected = FairReranker(k=5).fit_transform(alone[:, None], **who)[:, 0]
    ranker = QueryRanker(LinearRegression(), qid="query", drop="group")
    model = make_pipeline(FunctionTransformer(), FairReranker(ranker, k=5, **WHO))
    np.testing.assert_allclose(model.fit(X, y).predict(X), expected)
    dropping = FairReranker(LinearRegression(), k=5, drop_metadata_columns=True, **WHO)
    dropping.fit(X, y).set_params(estimator=None)
    np.testing.assert_allclose(dropping.predict(X), expected)
    assert dropping.get_feature_names_out().tolist() == ["score"]
    # Scores for relevance are the probabilities of a classifier.
    model, click = LogisticRegression(), y > y.median()
    dropping.set_params(estimator=model, method="amortized", k=None)
    relevance = model.fit(X[["score"]], click).predict_proba(X[["score"]])[:, 1:]
    alone = FairReranker(method="amortized").fit_transform(relevance, **who)[:, 0]
    np.testing.assert_allclose(dropping.fit(X, click).predict(X), alone)
    with sklearn.config_context(enable_metadata_routing=True):
        fair = FairReranker(LinearRegression(), sensitive_features=True, qid=True, k=5)
        routed = make_pipeline(FunctionTransformer(), fair)
        routed.fit(X[["score"]], y, **who)
        np.testing.assert_allclose(routed.predict(X[["score"]], **who), expected)
