"""AUC by group, the first k places, and NDCG of groups of queries."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    auc,
    ndcg,
    pairwise_accuracy,
    precision_at_k,
    recall_at_k,
    share_at_k,
)
from tests.metrics.common import assert_same, labelled, with_clusters, with_weights
from tests.metrics.naive_rules import assert_close, assert_covariance, covariance_of
from tests.metrics.problems import make_problem
from tests.reference import top_k as naive
from tests.reference import utility
from tests.seeds import in_chunks

AT_K = {f.__name__: f for f in (precision_at_k, recall_at_k, share_at_k)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("average", ["items", "queries"])
@pytest.mark.parametrize("name", AT_K)
def test_by_definition(name, average):
    for seed in range(48):
        p, k = make_problem(seed, (3, 11)), 1 + seed % 4
        seen = replace(p, y=[float(y > 0) for y in p.y])
        r = AT_K[name](seen.y, p.s, k=k, average=average, **p.who)
        seen = seen.seen()
        columns, how = (seen.y, seen.s, seen.q), (k, average, seen.w)
        expected = [
            naive.at_k(name, *columns, member, *how) if any(member) else np.nan
            for member in seen.member.values()
        ]
        assert_close(r.estimate, expected, 1e-12, (seed, k))


def test_everybody_has_the_precision_at_k_of_others():
    # Rectangular lists without ties, as scikit-learn's ranking metrics have them.
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, (30, 8)), rng.random((30, 8))
    query = np.repeat(np.arange(30), 8)
    r = precision_at_k(y.ravel(), s.ravel(), qid=query, k=3, average="queries")
    top = np.argsort(-s, axis=1)[:, :3]
    values = np.take_along_axis(y, top, axis=1).mean(axis=1)
    assert r.estimate[0] == pytest.approx(values.mean())
    assert r.standard_error[0] == pytest.approx(values.std(ddof=1) / np.sqrt(30))


def test_auc_is_pairwise_accuracy():
    c = with_clusters(with_weights(labelled()))
    y = c.y > 1.5
    who = {"sensitive_features": c.group, **c.rest, "comparison": "inter"}
    assert_same(auc(y, c.s, **who), pairwise_accuracy(y, c.s, **who))
    assert auc(y, c.s, **who).name == "auc"


def values_of_queries(p, y, k, gain):
    """Return the NDCG of every query as a pair of its first row with itself."""
    values = []
    for label in dict.fromkeys(p.q):
        rows = [row for row, q in enumerate(p.q) if q == label]
        one = [[column[row] for row in rows] for column in (y, p.s)]
        value = utility.ndcg(*one, [0] * len(rows), k, gain)
        if not np.isnan(value):
            values.append((rows[0], rows[0], value))
    return {"all": values}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@in_chunks(32, always=6)
def test_ndcg(seeds):
    options = list(itertools.product((None, 1, 3), ("linear", "exponential")))
    for seed, (k, gain) in itertools.product(seeds[::2], options):
        p = make_problem(seed)
        seen = p.seen()
        y, seen_y = np.abs(p.y).tolist(), np.abs(seen.y).tolist()
        estimate = utility.ndcg(seen_y, seen.s, seen.q, k, gain, seen.w)
        values = values_of_queries(seen, seen_y, k, gain)
        for coarse in (False, True):
            cluster = p.cluster if coarse else None
            r = ndcg(y, p.s, k=k, gain=gain, cluster=cluster, **p.queries)
            hint = (seed, k, gain, coarse)
            assert_close(r.estimate, [estimate], 1e-12, hint)
            assert r.support == len(values["all"]), hint
            unit = "cluster" if coarse else "query"
            expected = covariance_of(seen, values, unit)
            assert_covariance(r.covariance, expected, hint)


def test_ndcg_of_groups_is_that_of_their_queries():
    c = with_weights(labelled())
    side = np.where(c.q % 2, "x", "y")
    overlapping = np.column_stack([c.q % 2 == 0, c.q % 3 == 0])
    whole = ndcg(c.y, c.s, k=3, **c.rest)
    for features, members in (
        (side, (side == "x", side == "y")),
        (overlapping, overlapping.T),
    ):
        r = ndcg(c.y, c.s, sensitive_features=features, k=3, **c.rest)
        for rows, value, error in zip(
            members, r.estimate, r.standard_error, strict=True
        ):
            some = c.take(rows)
            alone = ndcg(some.y, some.s, k=3, **some.rest)
            assert value == pytest.approx(alone.estimate[0], rel=1e-12)
            assert error == pytest.approx(alone.standard_error[0], rel=1e-10)
        if features is side:
            assert r.overall.estimate == pytest.approx(whole.estimate[0])
    with pytest.raises(ValueError, match="constant within a query for ndcg, whose"):
        ndcg(c.y, c.s, sensitive_features=c.group, qid=c.q)


def test_a_group_without_relevant_items_has_no_recall():
    y, score, query = [1, 0, 0, 1, 0, 0], [3, 2, 1, 3, 2, 1], [0, 0, 0, 1, 1, 1]
    with pytest.warns(UndefinedMetricWarning, match="without relevant items: b"):
        r = recall_at_k(y, score, sensitive_features=list("aabaab"), qid=query)
    assert np.isnan(r.estimate[1])
