"""Weights of items: a pair counts the product of the weights of its two items."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skrankfair.metrics import (
    auc,
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)
from tests import seeds
from tests.metrics.naive_rules import (
    ACCURACY,
    COMPARISONS,
    EPSILON,
    RULES,
    assert_close,
    assert_covariance,
    difference,
    matrix,
    own_and_rest,
)
from tests.metrics.problems import make_problem
from tests.reference import matched_pairs as naive
from tests.reference import variance

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)
in_chunks = seeds.in_chunks(16, always=6)
in_small_chunks = seeds.in_chunks(5, always=2)
AVERAGES = ("pairs", "queries")


def problem(seed, n_rows=(3, 16)):
    """A problem, the weights of its items, and both without the rows of weight 0."""
    p = make_problem(seed, n_rows)
    rng = np.random.default_rng(seed)
    v = (rng.integers(0, 7, len(p.q)) / 3 * rng.choice([1.0, 0.37])).tolist()
    rows = [row for row, weight in enumerate(p.weights) if weight and v[row]]
    if not rows:
        return problem(seed + 1000, n_rows)
    member = {g: [m[row] for row in rows] for g, m in p.member.items()}
    if not isinstance(p.sensitive_features, np.ndarray):
        member = {g: m for g, m in member.items() if any(m)}
    columns = ("y", "s", "q", "cluster", "z")
    seen = replace(
        p,
        **{name: [getattr(p, name)[row] for row in rows] for name in columns},
        w=[p.weights[row] for row in rows],
        member=member,
        sensitive_features=None,
    )
    return p, v, seen, [v[row] for row in rows]


def ratios(tables):
    return list(variance.ratio_estimates(tables).values())


def tables_of(seen, v, pairs, average="pairs", w=None):
    return {
        g: variance.tabulate(some, seen.q, average, w, v) for g, some in pairs.items()
    }


@in_chunks
def test_estimate_and_cluster_covariance(seeds):
    for seed, (name, rule) in itertools.product(seeds, RULES.items()):
        p, v, seen, kept = problem(seed)
        average, coarse = AVERAGES[seed // 2 % 2], bool(seed // 4 % 2)
        unit, weight, of_pair = seen.q, seen.query_weight, None
        if coarse:
            unit, of_pair = seen.cluster, seen.w
            weight = dict.fromkeys(seen.cluster, 1)
        r = rule.measure(
            p,
            item_weight=v,
            average=average,
            variance="cluster",
            cluster=p.cluster if coarse else None,
        )
        pairs, hint = rule.all_pairs(seen), (seed, name, average, coarse)
        assert r.groups == seen.groups
        expected = ratios(tables_of(seen, kept, pairs, average, seen.w))
        assert_close(r.estimate, expected, 1e-11, hint)
        tables = tables_of(seen, kept, pairs, average, of_pair)
        covariance = variance.cluster_covariance(tables, unit, weight)
        assert_covariance(r.covariance, matrix(covariance, pairs), hint)


@in_chunks
def test_item_covariance(seeds):
    for seed, (name, rule) in itertools.product(seeds[::2], RULES.items()):
        p, v, seen, kept = problem(seed, (3, 12))
        r = rule.measure(p, item_weight=v, variance="item")
        tables = tables_of(seen, kept, rule.all_pairs(seen), w=seen.w)
        assert_close(r.estimate, ratios(tables), 1e-11, (seed, name))
        expected = variance.item_covariance(tables, len(seen.q), seen.member)
        assert_covariance(r.covariance, matrix(expected, tables), (seed, name))


@in_chunks
def test_covariance_against_the_rest(seeds):
    for seed, comparison in itertools.product(seeds[::2], COMPARISONS):
        p, v, seen, kept = problem(seed, (3, 12))
        pairs, rule = own_and_rest(seen, comparison), ACCURACY[comparison]
        estimates, sides = difference(pairs)
        of_items = tables_of(seen, kept, pairs, w=seen.w)
        supports = {
            g: [variance.tabulate(some, seen.q, w=seen.w, v=kept) for some in both]
            for g, both in sides.items()
        }
        r = rule.measure(p, item_weight=v, variance="item").against_rest()
        expected = variance.item_covariance(
            of_items, len(seen.q), seen.member, estimates, supports
        )
        assert_covariance(r.covariance, matrix(expected, estimates), (seed, comparison))
        r = rule.measure(p, item_weight=v, variance="cluster").against_rest()
        supports = {
            g: [variance.tabulate(some, seen.q, v=kept) for some in both]
            for g, both in sides.items()
        }
        tables = tables_of(seen, kept, pairs)
        expected = variance.cluster_covariance(
            tables, seen.q, seen.query_weight, estimates, supports
        )
        assert_covariance(r.covariance, matrix(expected, estimates), (seed, comparison))


OPTIONS = {
    "adjacent": {"adjacent": True},
    "dcg": {"position_weight": "dcg"},
    "dcg, both": {"position_weight": "dcg", "direction": "both"},
    "linear": {"estimator": "local_linear"},
    "linear, both": {"estimator": "local_linear", "direction": "both"},
    "linear, adjacent": {"estimator": "local_linear", "adjacent": True},
}


@in_small_chunks
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_of_matched_pairs(seeds, options):
    for seed, epsilon in itertools.product(seeds, (0.27, 1.3, np.inf)):
        p, v, seen, kept = problem(seed)
        p, seen = (replace(x, s=[round(8 * s) / 8 for s in x.s]) for x in (p, seen))
        r = matched_pair_calibration(
            p.y,
            p.s,
            epsilon=epsilon,
            item_weight=v,
            variance="cluster",
            **p.who,
            **options,
        )
        expected = [
            naive.estimate_and_influence(
                *(seen.y, seen.s, seen.q, in_group, epsilon),
                w=seen.w,
                v=kept,
                **options,
            )[0]
            for in_group in seen.member.values()
        ]
        assert_close(r.estimate, expected, 1e-9, (seed, epsilon))


@in_small_chunks
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_errors_of_matched_pairs_are_those_of_repeated_items(seeds, options):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = 18
        y, s = rng.integers(0, 3, n) * 1.0, rng.permutation(n) / 8
        group, query = rng.integers(0, 2, n), np.repeat(np.arange(3), 6)
        v = rng.integers(1, 4, n)
        given = {"epsilon": 1.3, **options}
        if "dcg" in str(options) or "adjacent" in options:
            v = np.full(n, 3)  # repeating items changes who is next to whom
            times = np.ones(n, dtype=int)
        else:
            times = v
        rows = np.repeat(np.arange(n), times)
        a = matched_pair_calibration(
            y, s, sensitive_features=group, qid=query, item_weight=v, **given
        )
        b = matched_pair_calibration(
            y[rows], s[rows], sensitive_features=group[rows], qid=query[rows], **given
        )
        assert_close(a.estimate, b.estimate, 1e-9, seed)
        assert_close(a.standard_error, b.standard_error, 1e-8, seed)


METRICS = {
    "accuracy": lambda c, **o: pairwise_accuracy(c.y, c.s, **o),
    "inter": lambda c, **o: pairwise_accuracy(c.y, c.s, comparison="inter", **o),
    "exposure": lambda c, **o: pairwise_exposure(None, c.s, **o),
    "preference": lambda c, **o: pairwise_preference(c.y, **o),
    "auc": lambda c, **o: auc([y > 0 for y in c.y], c.s, **o),
    "quantile": lambda c, **o: matched_pair_calibration(c.y, c.s, quantile=0.3, **o),
    "epsilon": lambda c, **o: matched_pair_calibration(c.y, c.s, epsilon=EPSILON, **o),
}
each_metric = pytest.mark.parametrize("measure", METRICS.values(), ids=METRICS)


def repeated(p, times):
    """Return the problem with its rows repeated, items next to their copies."""
    rows = np.repeat(np.arange(len(p.q)), times).tolist()
    columns = {
        name: [getattr(p, name)[row] for row in rows]
        for name in ("y", "s", "q", "cluster")
    }
    features = [p.sensitive_features[row] for row in rows]
    if isinstance(p.sensitive_features, np.ndarray):
        features = p.sensitive_features[rows]
    return replace(p, w=None, z=[], sensitive_features=features, member={}, **columns)


@seeds.in_chunks(8, always=4)
@each_metric
def test_whole_weights_are_repeated_items(seeds, measure):
    for seed in seeds:
        p = replace(make_problem(seed), w=None)
        times = np.random.default_rng(seed).integers(0, 4, len(p.q))
        if not times.any():
            continue
        weighed = measure(p, item_weight=times, **p.who, variance="cluster")
        again = repeated(p, times)
        expected = measure(again, **again.who, variance="cluster")
        assert weighed.groups == expected.groups
        assert_close(weighed.estimate, expected.estimate, 1e-12, seed)
        assert_close(weighed.standard_error, expected.standard_error, 1e-10, seed)
        np.testing.assert_array_equal(weighed.support, expected.support)


@in_small_chunks
@each_metric
@pytest.mark.parametrize("variance", ["cluster", "item"])
def test_the_unit_of_the_weights_does_not_matter(seeds, measure, variance):
    for seed in seeds:
        p, v, _, _ = problem(seed)
        a, b = (
            measure(p, item_weight=weight, variance=variance, **p.who)
            for weight in (v, [8e5 * one for one in v])
        )
        assert_close(a.estimate, b.estimate, 1e-12, seed)
        np.testing.assert_allclose(a.standard_error, b.standard_error, 1e-9, 1e-7)
        assert_close(a.n_effective, b.n_effective, 1e-9, seed)


@in_small_chunks
@each_metric
@pytest.mark.parametrize("variance", ["cluster", "item"])
def test_equal_weights_are_none(seeds, measure, variance):
    for seed in seeds:
        p = make_problem(seed)
        plain = measure(p, variance=variance, **p.who)
        equal = measure(p, item_weight=[1.0] * len(p.q), variance=variance, **p.who)
        np.testing.assert_array_equal(equal.estimate, plain.estimate)
        assert_close(equal.standard_error, plain.standard_error, 1e-12, seed)


def test_clusters_of_items_in_one_list():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = 30
        y, s, g = rng.integers(0, 2, n), rng.random(n).round(1), rng.integers(0, 3, n)
        v, cluster = rng.random(n), rng.integers(0, 8, n)
        r = auc(y, s, sensitive_features=g, cluster=cluster, item_weight=v)
        pairs = {
            group: [
                (i, j, 1.0 if s[i] > s[j] else 0.5 * (s[i] == s[j]))
                for i, j in itertools.permutations(range(n), 2)
                if y[i] > y[j] and g[i] == g[j] == group
            ]
            for group in r.groups
        }
        tables = {
            group: variance.tabulate(some, [0] * n, v=v.tolist())
            for group, some in pairs.items()
        }
        assert_close(r.estimate, ratios(tables), 1e-12, seed)
        expected = variance.jackknife_covariance(
            tables,
            lambda p, unit=cluster: {unit[p[0]], unit[p[1]]},
            dict.fromkeys(cluster, 1),
        )
        assert_covariance(r.covariance, matrix(expected, tables), seed)


def test_parts_add_up():
    p = make_problem(4, (40, 41))
    q = np.array([str(label) for label in p.q])
    v = np.random.default_rng(0).random(q.size)
    y, s = np.asarray(p.y), np.asarray(p.s)
    g = np.random.default_rng(1).integers(0, 3, q.size)

    def measure(rows):
        return pairwise_accuracy(
            *(y[rows], s[rows]),
            sensitive_features=g[rows],
            qid=q[rows],
            item_weight=v[rows],
        )

    half = q <= np.sort(np.unique(q))[1]
    total, whole = measure(half) + measure(~half), measure(np.arange(q.size))
    assert_close(total.estimate, whole.estimate, 1e-12)
    assert_close(total.standard_error, whole.standard_error, 1e-12)


def test_a_number_of_pairs_has_no_weight():
    with pytest.raises(ValueError, match=r"n_pairs counts pairs.*got 3"):
        matched_pair_calibration(
            [0, 1, 1], [1, 2, 3], sensitive_features=list("aba"), n_pairs=3,
            item_weight=[1, 2, 3],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 2.0], "item_weight must not be negative; got -1.0 in row 1"),
        ([0.0, 0.0, 0.0], "item_weight must have a positive value"),
        ([1.0, 2.0], "item_weight: 2"),
        ([1.0, np.nan, 2.0], "item_weight must be finite"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        auc([0, 1, 1], [1, 2, 3], sensitive_features=list("aba"), item_weight=weight)


def test_weights_that_leave_no_row():
    with pytest.raises(ValueError, match="must both be positive in some row"):
        pairwise_exposure(
            None, [1, 2], qid=[0, 1], sample_weight=[0, 1], item_weight=[1, 0]
        )
