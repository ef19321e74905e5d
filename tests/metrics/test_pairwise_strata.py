"""Accuracy within strata of engagement against the naive references."""

import itertools

import numpy as np
import pytest

from skrankfair.metrics import pairwise_accuracy
from tests import seeds
from tests.metrics.naive_rules import (
    ACCURACY,
    COMPARISONS,
    assert_close,
    assert_covariance,
    by_cluster,
    by_item,
)
from tests.metrics.problems import make_problem
from tests.reference import pairwise as naive

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

AVERAGES = ("pairs", "queries")
EDGES = (-np.inf, 0.25, 0.5, 0.75, np.inf)
in_chunks = seeds.in_chunks(16, always=6)


def bucket_of(p, edges=EDGES):
    return np.searchsorted(edges[1:-1], p.z, side="right").tolist()


@in_chunks
def test_estimates(seeds):
    for seed, comparison in itertools.product(seeds, COMPARISONS):
        p = make_problem(seed)
        seen = p.seen()
        for average in AVERAGES:
            r = ACCURACY[comparison].measure(
                p, engagement=p.z, bins=EDGES, average=average, variance="cluster"
            )
            hint = (seed, comparison, average)
            args = (seen.y, seen.s, seen.q, seen.member, comparison, bucket_of(seen))
            expected = naive.pairwise_accuracy(*args, average, seen.w)
            assert_close(r.estimate, [v[0] for v in expected.values()], 1e-12, hint)
            assert np.array_equal(r.support, [v[1] for v in expected.values()]), hint
            rest = naive.rest_pairwise_accuracy(*args, average, seen.w)
            expected = r.estimate - [v[0] for v in rest.values()]
            assert_close(r.against_rest().estimate, expected, 1e-12, hint)


@in_chunks
def test_breakdown(seeds):
    for seed, average in itertools.product(seeds, AVERAGES):
        p = make_problem(seed)
        seen = p.seen()
        table = pairwise_accuracy(
            p.y,
            p.s,
            engagement=p.z,
            bins=EDGES,
            average=average,
            variance="cluster",
            **p.who,
        ).breakdown()
        keys = list(itertools.product(seen.groups, range(4)))
        table = table.set_index(["group", "bucket"]).loc[keys]
        edges = [EDGES[b : b + 2] for _, b in keys]
        assert list(zip(table["low"], table["high"], strict=True)) == edges
        args = (seen.y, seen.s, seen.q, seen.member, "all", bucket_of(seen))
        by_bucket = naive.pairwise_accuracy_by_bucket(*args, average, seen.w)
        expected = [by_bucket[g].get(b, (np.nan, 0)) for g, b in keys]
        actual = table[["estimate", "support"]]
        assert_close(actual, expected, 1e-12, (seed, average))


def by_stratum(p, comparison):
    """Return {(group, bucket): pairs} and {group: pairs}."""
    whole = ACCURACY[comparison].all_pairs(p)
    bucket = bucket_of(p)
    pairs = {
        (g, b): [pair for pair in found if bucket[pair[0]] == b]
        for g, found in whole.items()
        for b in range(4)
    }
    return pairs, whole


def of_the_means(whole):
    """Return the estimates, means over the strata with pairs, and their supports."""

    def mean(ratios, g):
        there = [(g, b) for b in range(4) if not np.isnan(ratios[g, b])]
        return {key: 1 / len(there) for key in there} or {(g, 0): 1.0}

    estimates = {g: lambda ratios, g=g: mean(ratios, g) for g in whole}
    return estimates, {g: [pairs] for g, pairs in whole.items()}


@in_chunks
def test_cluster_covariance(seeds):
    for seed, comparison in itertools.product(seeds, COMPARISONS):
        p = make_problem(seed, (3, 12))
        seen = p.seen()
        pairs, whole = by_stratum(seen, comparison)
        average = AVERAGES[seed % 2]
        for coarse in (False, True):
            r = ACCURACY[comparison].measure(
                p,
                engagement=p.z,
                bins=EDGES,
                average=average,
                variance="cluster",
                cluster=p.cluster if coarse else None,
            )
            how = seen, pairs, average, coarse
            hint = (seed, comparison, average, coarse)
            assert_covariance(
                r.covariance, by_cluster(*how, *of_the_means(whole)), hint
            )
            variance = np.diag(by_cluster(*how))
            table = r.breakdown().set_index(["group", "bucket"]).loc[list(pairs)]
            actual = table["standard_error"] ** 2
            assert_close(actual, variance, 1e-10, hint)


@in_chunks
def test_item_covariance(seeds):
    for seed, comparison in itertools.product(seeds, COMPARISONS):
        p = make_problem(seed, (3, 12))
        seen = p.seen()
        pairs, whole = by_stratum(seen, comparison)
        expected = by_item(seen, pairs, *of_the_means(whole))
        r = ACCURACY[comparison].measure(p, engagement=p.z, bins=EDGES, variance="item")
        hint = (seed, comparison)
        assert_covariance(r.covariance, expected, hint)


@in_chunks
def test_edges_are_quantiles_of_the_preferred(seeds):
    compared = 0
    for seed in seeds:
        p = make_problem(seed)
        everyone = naive.pairs_accuracy(p.y, p.s, p.q, [True] * len(p.y))
        preferred = {i for i, *_ in everyone}
        of_preferred = [p.z[i] for i in sorted(preferred)]
        if len(set(of_preferred)) < 2:
            continue
        compared += 1
        # Engagement is not needed where an item is better than no other.
        z = [p.z[i] if i in preferred else np.nan for i in range(len(p.z))]
        edges = np.quantile(of_preferred, [0, 0.5, 1], method="inverted_cdf")
        edges = np.unique(edges)
        r = pairwise_accuracy(
            p.y,
            p.s,
            sensitive_features=p.sensitive_features,
            qid=p.q,
            engagement=z,
            bins=2,
            variance="cluster",
        )
        np.testing.assert_array_equal(r.first_pass["engagement_edges"], edges)
        args = (p.y, p.s, p.q, p.member)
        expected = naive.pairwise_accuracy(*args, bucket=bucket_of(p, edges))
        assert_close(r.estimate, [v[0] for v in expected.values()], 1e-12, seed)
    assert compared > 5
