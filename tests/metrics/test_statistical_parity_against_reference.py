"""The metrics of statistical parity against naive loops, with every option."""

import itertools
import math

import numpy as np
import pytest

from skrankfair.metrics import (
    exposure_parity,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    pairwise_parity,
    skew_at_k,
)
from tests import seeds
from tests.metrics.naive_rules import assert_close, assert_covariance, covariance_of
from tests.metrics.problems import make_problem
from tests.reference import advantage as naive

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

in_chunks = seeds.in_chunks(16, always=4)


def root(k):
    """A discount of one's own."""
    return 1 / np.sqrt(k)


BY_CUTS = {
    "difference": (
        normalized_discounted_difference,
        naive.normalized_discounted_difference,
        {},
    ),
    "ratio": (normalized_discounted_ratio, naive.normalized_discounted_ratio, {}),
    "ratio-3": (
        normalized_discounted_ratio,
        naive.normalized_discounted_ratio,
        {"zero_division": 3.0},
    ),
    "kl": (normalized_discounted_kl, naive.normalized_discounted_kl, {}),
}
DISCOUNTS = {"dcg": naive.log_discount, root: lambda k: 1 / math.sqrt(k)}


def assert_agrees(result, expected, hint, tolerance=1e-12):
    assert result.groups == tuple(expected), hint
    assert_close(result.estimate, [v for v, _ in expected.values()], tolerance, hint)
    assert list(result.support) == [n for _, n in expected.values()], hint


@in_chunks
def test_by_cuts(seeds):
    for seed, (name, (metric, reference, extra)) in itertools.product(
        seeds, BY_CUTS.items()
    ):
        p = make_problem(seed)
        seen = p.seen()
        step = 1 + seed % 7
        for discount, naive_discount in DISCOUNTS.items():
            options = {"step": step, **extra}
            r = metric(p.y, p.s, position_weight=discount, **p.who, **options)
            expected = reference(
                *(seen.s, seen.q, seen.member),
                discount=naive_discount,
                w=seen.w,
                **options,
            )
            assert_agrees(r, expected, (seed, name))


@in_chunks
def test_skew(seeds):
    for seed in seeds:
        p = make_problem(seed)
        seen = p.seen()
        for k, (group, member) in itertools.product((1, 2, 4), seen.member.items()):
            values = []
            for q in dict.fromkeys(seen.q):
                # The reference says 0 for a group that is the whole list, and for k
                # that is: here both have no value.
                rows = [row for row, x in enumerate(seen.q) if x == q]
                if len(rows) == k or all(member[row] for row in rows):
                    continue
                s = [seen.s[row] for row in rows]
                of_query = {group: [member[row] for row in rows]}
                one = naive.skew_at_k(s, [0] * len(s), of_query, k)
                values.append((one[group][0], seen.query_weight[q]))
            r = skew_at_k(None, p.s, k=k, **p.who)
            i = r.groups.index(group)
            expected = naive.weighted_mean(values)
            assert_close([r.estimate[i], r.support[i]], expected, 1e-12, (seed, k))


@in_chunks
def test_exposure_and_pairs(seeds):
    for seed, signed in itertools.product(seeds, (False, True)):
        p = make_problem(seed)
        seen = p.seen()
        for discount in ("reciprocal", "dcg", root):
            r = exposure_parity(
                p.y, p.s, position_weight=discount, signed=signed, **p.who
            )
            expected = naive.exposure_parity(
                *(seen.s, seen.q, seen.member, discount), w=seen.w, signed=signed
            )
            assert_agrees(r, expected, (seed, discount, signed))
        r = pairwise_parity(p.y, p.s, signed=signed, **p.who)
        expected = naive.pairwise_parity(
            seen.s, seen.q, seen.member, w=seen.w, signed=signed
        )
        assert_agrees(r, expected, (seed, signed))


def several_groups(rows, g):
    return len({g[row] for row in rows}) > 1


@in_chunks
def test_all_groups_at_once(seeds):
    for seed in seeds:
        p = make_problem(seed)
        if isinstance(p.sensitive_features, np.ndarray):
            continue
        # Of a query of one group the reference says 0, which here is no value.
        g, mixed = list(p.sensitive_features), []
        for q in dict.fromkeys(p.q):
            rows = [row for row, x in enumerate(p.q) if x == q and p.weights[row]]
            mixed += rows if several_groups(rows, g) else []
        if not mixed:
            continue
        s, q, g = ([column[row] for row in mixed] for column in (p.s, p.q, g))
        w = None if p.w is None else [p.w[row] for row in mixed]
        who = {"sensitive_features": g, "qid": q, "sample_weight": w, "joint": True}
        r = ndkl(None, s, **who)
        assert r.groups == ("all",)
        expected = naive.ndkl(s, q, g, w=w)
        assert_close([r.estimate[0], r.support[0]], expected, 1e-12, seed)
        for step in (1, 2, 3):
            r = normalized_discounted_kl(None, s, step=step, **who)
            expected = naive.normalized_discounted_kl_of_groups(s, q, g, step, w=w)
            assert_close([r.estimate[0], r.support[0]], expected, 1e-12, (seed, step))


def lists_of_one_length(seed):
    """Scores with ties, queries, labels, weights; group "c" is not in every list."""
    rng = np.random.default_rng(seed)
    n_lists, n = int(rng.integers(2, 6)), int(rng.integers(3, 13))
    s = rng.integers(0, 9, n_lists * n) / 4
    q = np.repeat(np.arange(n_lists), n)
    g = rng.choice(["a", "b", "c"], q.size, p=[0.5, 0.4, 0.1])
    w = rng.integers(1, 4, n_lists).astype(float)[q] if seed % 2 else None
    return s, q, g, w


@in_chunks
def test_representation(seeds):
    for seed in seeds:
        s, q, g, w = lists_of_one_length(seed)
        member = {label: list(g == label) for label in sorted(set(g))}
        who = {"sensitive_features": g, "qid": q, "sample_weight": w}
        mean = {"average": "representation"}
        naive_args = (list(s), list(q), member)
        given = {"w": None if w is None else list(w), **mean}
        for name, (metric, reference, extra) in BY_CUTS.items():
            for step in (1, 2, 3):
                r = metric(None, s, step=step, **who, **mean, **extra)
                expected = reference(*naive_args, step=step, **extra, **given)
                # The reference rounds the mean size to nine digits in the maximum.
                assert_agrees(r, expected, (seed, name, step), tolerance=1e-8)
        r = skew_at_k(None, s, k=2, **who, **mean)
        assert_agrees(r, naive.skew_at_k(*naive_args, 2, **given), seed)
        for signed in (False, True):
            r = exposure_parity(None, s, signed=signed, **who, **mean)
            expected = naive.exposure_parity(*naive_args, signed=signed, **given)
            assert_agrees(r, expected, (seed, signed))
            r = pairwise_parity(None, s, signed=signed, **who, **mean)
            expected = naive.pairwise_parity(*naive_args, signed=signed, **given)
            assert_agrees(r, expected, (seed, signed))
        r = ndkl(None, s, joint=True, **who, **mean)
        expected = naive.ndkl(*naive_args[:2], list(g), **given)
        assert_close([r.estimate[0], r.support[0]], expected, 1e-12, seed)


@in_chunks
def test_variance_is_that_of_a_mean_over_clusters(seeds):
    for seed in seeds:
        p = make_problem(seed, (20, 60))
        seen = p.seen()
        lists = [
            [row for row, q in enumerate(seen.q) if q == label]
            for label in dict.fromkeys(seen.q)
        ]
        values = {
            group: [
                (rows[0], rows[0], abs(2 * share - 1))
                for rows in lists
                for share in [naive.pair_share(seen.s, rows, member)]
                if not math.isnan(share)
            ]
            for group, member in seen.member.items()
        }
        r = pairwise_parity(p.y, p.s, cluster=p.cluster, **p.who)
        assert_covariance(r.covariance, covariance_of(seen, values, "cluster"), seed)
