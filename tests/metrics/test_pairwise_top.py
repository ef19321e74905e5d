"""Pairs with an item in the first k places, against their enumeration."""

import itertools

import numpy as np
import pytest

from skrankfair.metrics import pairwise_accuracy, pairwise_exposure
from tests import seeds
from tests.metrics.naive_rules import (
    ACCURACY,
    COMPARISONS,
    RULES,
    assert_close,
    assert_covariance,
    difference,
    matrix,
    own_and_rest,
)
from tests.metrics.problems import make_problem
from tests.reference import variance
from tests.reference.top_pairs import chances, cut

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)
in_chunks = seeds.in_chunks(12, always=3)
CUT = {"exposure": RULES["exposure"]}
CUT |= {f"accuracy-{comparison}": rule for comparison, rule in ACCURACY.items()}


def table(pairs, seen, average, w=None, v=None):
    """(i, j, value, chance) as (i, j, num, den, weight), as of `variance.tabulate`."""
    weight = dict.fromkeys(seen.q, 1) if w is None else seen.query_weight
    shares = [c * (v[i] * v[j] if v else 1) for i, j, _, c in pairs]
    total = {}
    for (i, *_), share in zip(pairs, shares, strict=True):
        total[seen.q[i]] = total.get(seen.q[i], 0) + share
    rows = []
    for (i, j, value, _), share in zip(pairs, shares, strict=True):
        part = share / total[seen.q[i]] if average == "queries" else share
        rows.append((i, j, part * value, part, weight[seen.q[i]]))
    return rows


def tables_of(pairs, seen, k, average, **weights):
    chance = chances(seen.s, seen.q, k)
    return {
        g: table(cut(some, chance), seen, average, **weights)
        for g, some in pairs.items()
    }


@in_chunks
def test_estimate_and_covariance(seeds):
    for seed, (name, rule), k in itertools.product(seeds, CUT.items(), (1, 2, 5)):
        p = make_problem(seed)
        seen, average = p.seen(), ("pairs", "queries")[seed // 2 % 2]
        r = rule.measure(p, k=k, average=average)
        assert r.variance == "cluster"
        assert r.parameters["k"] == k
        tables = tables_of(rule.all_pairs(seen), seen, k, average, w=seen.w)
        hint = (seed, name, k, average)
        expected = list(variance.ratio_estimates(tables).values())
        assert_close(r.estimate, expected, 1e-11, hint)
        tables = tables_of(rule.all_pairs(seen), seen, k, average)
        covariance = variance.cluster_covariance(tables, seen.q, seen.query_weight)
        assert_covariance(r.covariance, matrix(covariance, tables), hint)


@in_chunks
def test_covariance_against_the_rest(seeds):
    for seed, comparison in itertools.product(seeds, COMPARISONS):
        p = make_problem(seed)
        seen, k = p.seen(), 1 + seed % 4
        pairs = own_and_rest(seen, comparison)
        estimates, sides = difference(pairs)
        chance = chances(seen.s, seen.q, k)
        supports = {
            g: [table(cut(some, chance), seen, "pairs") for some in both]
            for g, both in sides.items()
        }
        r = ACCURACY[comparison].measure(p, k=k).against_rest()
        expected = variance.cluster_covariance(
            tables_of(pairs, seen, k, "pairs"),
            seen.q,
            seen.query_weight,
            estimates,
            supports,
        )
        assert_covariance(r.covariance, matrix(expected, estimates), (seed, comparison))


@in_chunks
def test_weights_of_items(seeds):
    for seed, (name, rule) in itertools.product(seeds, CUT.items()):
        p = make_problem(seed)
        v = (np.random.default_rng(seed).integers(1, 7, len(p.q)) / 3).tolist()
        seen, k = p.seen(), 1 + seed % 4
        kept = [v[row] for row, weight in enumerate(p.weights) if weight]
        r = rule.measure(p, k=k, item_weight=v)
        tables = tables_of(rule.all_pairs(seen), seen, k, "pairs", w=seen.w, v=kept)
        expected = list(variance.ratio_estimates(tables).values())
        assert_close(r.estimate, expected, 1e-11, (seed, name))


@pytest.mark.parametrize("measure", [pairwise_accuracy, pairwise_exposure])
def test_a_cut_below_all_items_is_none(measure):
    for seed in range(20):
        p = make_problem(seed)
        whole = measure(p.y, p.s, variance="cluster", **p.who)
        deep = measure(p.y, p.s, k=100, **p.who)
        np.testing.assert_array_equal(deep.estimate, whole.estimate)
        np.testing.assert_array_equal(deep.support, whole.support)


def test_by_hand():
    # Ranked d, c, b, a; the best item is last, and of six pairs three have d.
    score, group = [1.0, 2.0, 3.0, 4.0], ["f", "m", "f", "m"]
    r = pairwise_exposure(None, score, sensitive_features=group, qid=[0] * 4, k=1)
    assert r.estimate.tolist() == [0.0, 1.0]
    assert r.support.tolist() == [2, 2]
    tied = pairwise_exposure(
        None, [1.0, 1.0], sensitive_features=["f", "m"], qid=[0, 0], k=1
    )
    assert tied.estimate.tolist() == [0.5, 0.5]
    assert tied.support.tolist() == [1, 1]


def test_items_are_not_independent_behind_a_cut():
    with pytest.raises(ValueError, match=r"k needs variance='cluster'"):
        pairwise_exposure(
            None, [1, 2, 3], sensitive_features=list("aba"), k=1, variance="item"
        )
    with pytest.raises(ValueError, match=r"k must be an integer in \[1, inf\]; got 0"):
        pairwise_accuracy([0, 1], [1, 2], qid=[0, 0], k=0)
