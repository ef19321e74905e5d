"""Every pair metric with every option against the naive references."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from skrankfair.metrics import matched_pair_calibration, ndcg
from tests import seeds
from tests.metrics.naive_rules import (
    ACCURACY,
    COMPARISONS,
    RULES,
    assert_close,
    assert_covariance,
    by_cluster,
    by_item,
    difference,
    matrix,
    own_and_rest,
)
from tests.metrics.problems import make_problem
from tests.reference import matched_pairs as naive_mpc
from tests.reference import pairwise as naive
from tests.reference import utility
from tests.reference.variance import jackknife_covariance

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

AVERAGES = ("pairs", "queries")
in_chunks = seeds.in_chunks(32, always=6)


@in_chunks
def test_estimate_and_support(seeds):
    for seed, (name, rule) in itertools.product(seeds, RULES.items()):
        p = make_problem(seed)
        seen = p.seen()
        for average in AVERAGES:
            hint = (seed, name, average)
            r = rule.measure(p, average=average, variance="cluster")
            expected = rule.reference(seen, average)
            assert r.groups == seen.groups
            assert_close(r.estimate, [v[0] for v in expected.values()], 1e-12, hint)
            assert np.array_equal(r.support, [v[1] for v in expected.values()]), hint
            assert r.n_clusters == len(set(seen.q))


@in_chunks
def test_estimate_of_the_rest(seeds):
    for seed, comparison in itertools.product(seeds, COMPARISONS):
        p = make_problem(seed)
        seen = p.seen()
        for average in AVERAGES:
            options = {"average": average, "variance": "cluster"}
            r = ACCURACY[comparison].measure(p, **options)
            rest = naive.rest_pairwise_accuracy(
                *(seen.y, seen.s, seen.q, seen.member, comparison),
                average=average,
                w=seen.w,
            )
            expected = r.estimate - [estimate for estimate, _ in rest.values()]
            actual = r.against_rest().estimate
            assert_close(actual, expected, 1e-12, (seed, comparison, average))


@in_chunks
def test_chosen_epsilon_is_exact(seeds):
    options = [
        {},
        *({"n_pairs": k} for k in (1, 3, 10, 10**6)),
        *({"quantile": share} for share in (0.001, 0.2, 0.5, 0.9, 1.0)),
    ]
    for seed, option in itertools.product(seeds[::2], options):
        p = make_problem(seed)
        seen = p.seen()
        if "n_pairs" not in option and any(weight % 1 for weight in p.weights):
            continue  # the share of a number of pairs that is no integer
        for direction, average in (("below", "pairs"), ("both", "queries")):
            hint = (seed, option, direction)
            given = {"direction": direction, "average": average, **option}
            r = matched_pair_calibration(p.y, p.s, variance="cluster", **p.who, **given)
            expected = naive_mpc.matched_pair_calibration(
                seen.y, seen.s, seen.q, seen.member, w=seen.w, **given
            )
            estimate, support, epsilon = zip(*expected.values(), strict=True)
            chosen = [r.first_pass["epsilon"][g] for g in seen.groups]
            np.testing.assert_array_equal(chosen, epsilon, err_msg=str(hint))
            assert_close(r.estimate, estimate, 1e-12, hint)
            assert np.array_equal(r.support, support), hint


@in_chunks
def test_epsilon_by_group(seeds):
    for seed in seeds:
        p = make_problem(seed)
        seen = p.seen()
        epsilon = {g: index / 8 for index, g in enumerate(p.groups)}
        options = {"epsilon": epsilon, "variance": "cluster"}
        r = matched_pair_calibration(p.y, p.s, **p.who, **options)
        for g, estimate, support in zip(r.groups, r.estimate, r.support, strict=True):
            args = (seen.y, seen.s, seen.q, {g: seen.member[g]}, epsilon[g])
            expected = naive_mpc.matched_pair_calibration(*args, w=seen.w)[g]
            assert_close((estimate, support), expected[:2], 1e-12, (seed, g))


@in_chunks
def test_cluster_covariance(seeds):
    for seed, (name, rule) in itertools.product(seeds[::2], RULES.items()):
        p = make_problem(seed, (3, 18))
        seen = p.seen()
        pairs, average = rule.all_pairs(seen), AVERAGES[seed // 2 % 2]
        for coarse in (False, True):
            cluster = p.cluster if coarse else None
            r = rule.measure(p, average=average, variance="cluster", cluster=cluster)
            hint = (seed, name, average, coarse)
            expected = by_cluster(seen, pairs, average, coarse)
            assert_covariance(r.covariance, expected, hint)
            if coarse:
                assert r.n_clusters == len(set(seen.cluster))


@in_chunks
def test_cluster_covariance_against_the_rest(seeds):
    for seed, comparison in itertools.product(seeds[::2], COMPARISONS):
        p = make_problem(seed, (3, 16))
        seen = p.seen()
        pairs, average = own_and_rest(seen, comparison), AVERAGES[seed // 2 % 2]
        for coarse in (False, True):
            cluster = p.cluster if coarse else None
            options = {"average": average, "variance": "cluster", "cluster": cluster}
            r = ACCURACY[comparison].measure(p, **options).against_rest()
            expected = by_cluster(seen, pairs, average, coarse, *difference(pairs))
            hint = (seed, comparison, average, coarse)
            assert_covariance(r.covariance, expected, hint)


@in_chunks
def test_item_covariance(seeds):
    for seed, (name, rule) in itertools.product(seeds[::2], RULES.items()):
        p = make_problem(seed, (3, 12))
        seen = p.seen()
        r = rule.measure(p, variance="item")
        estimate = [v[0] for v in rule.reference(seen, "pairs").values()]
        assert_close(r.estimate, estimate, 1e-12, (seed, name))
        assert r.n_clusters == len(seen.q)
        expected = by_item(seen, rule.all_pairs(seen))
        assert_covariance(r.covariance, expected, (seed, name))


@in_chunks
def test_item_covariance_against_the_rest(seeds):
    for seed, comparison in itertools.product(seeds[::2], COMPARISONS):
        p = make_problem(seed, (3, 11))
        seen = p.seen()
        pairs = own_and_rest(seen, comparison)
        r = ACCURACY[comparison].measure(p, variance="item").against_rest()
        expected = by_item(seen, pairs, *difference(pairs))
        assert_covariance(r.covariance, expected, (seed, comparison))


def clustered_item_covariance(pairs, cluster):
    """Return the covariance of means over one list whose items come in clusters."""
    tables = {
        g: [(i, j, value, 1.0, 1.0) for i, j, value in v] for g, v in pairs.items()
    }
    covariance = jackknife_covariance(
        tables,
        lambda p: {cluster[p[0]], cluster[p[1]]},
        dict.fromkeys(cluster, 1),
    )
    return matrix(covariance, pairs)


@in_chunks
def test_item_covariance_of_one_list_with_clusters(seeds):
    for seed, (name, rule) in itertools.product(seeds[::4], RULES.items()):
        p = make_problem(seed, (6, 24))
        n, rng = len(p.y), np.random.default_rng(seed)
        cluster = [0, 1, *rng.integers(0, 6, n - 2).tolist()]
        one_list = SimpleNamespace(
            y=p.y,
            s=p.s,
            q=[0] * n,
            member=p.member,
            who={"sensitive_features": p.sensitive_features, "cluster": cluster},
        )
        r = rule.measure(one_list)
        assert r.variance == "item"
        assert r.n_clusters == len(set(cluster))
        pairs = rule.all_pairs(one_list)
        estimate = [np.mean([v for *_, v in x] or np.nan) for x in pairs.values()]
        assert_close(r.estimate, estimate, 1e-12, (seed, name))
        expected = clustered_item_covariance(pairs, cluster)
        assert_covariance(r.covariance, expected, (seed, name))


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


@in_chunks
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
            expected = by_cluster(seen, values, "pairs", coarse)
            assert_covariance(r.covariance, expected, hint)
