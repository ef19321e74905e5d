"""The references against enumeration of all orders, and variances by hand."""

import math

import numpy as np
import pytest

from tests.reference import (
    advantage,
    dissatisfaction,
    matched_pairs,
    outcome_inequality,
    variance,
)
from tests.reference._common import orders, rows_by_query


def make_data(seed, n_queries=8, size=7):
    """Make queries of 1 to ``size`` items, shuffled, with ties in y and s."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, size + 1, n_queries)
    q = rng.permutation(np.repeat(np.arange(n_queries), sizes))
    n = len(q)
    y = rng.integers(0, 4, n)
    s = rng.integers(0, 6, n) / 4
    member = {"a": list(rng.random(n) < 0.5), "b": list(rng.random(n) < 0.4)}
    return [v.tolist() for v in (y, s, q)] + [member]


# Tied items: the mean over every order of them


def lists_of(s, q):
    """Yield the rows of every query, and all their orders by score."""
    for rows in rows_by_query(q).values():
        yield rows, list(orders(s, rows))


@pytest.mark.parametrize("seed", range(4))
def test_places(seed):
    _, s, q, member = make_data(seed, n_queries=4, size=5)
    chances = matched_pairs.position_chances(s, q)
    for rows, lists in lists_of(s, q):
        for row in rows:
            places = [order.index(row) for order in lists]
            expected = {k: places.count(k) / len(lists) for k in set(places)}
            assert chances[row] == pytest.approx(expected)
        for in_group in member.values():
            inside = [[float(in_group[row]) for row in order] for order in lists]
            expected = np.mean(inside, axis=0).tolist()
            assert advantage.profile(s, rows, in_group) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weight", ["uniform", "dcg", "geometric", "reciprocal"])
def test_dissatisfaction_and_exposure(seed, weight):
    y, s, q, member = make_data(seed, n_queries=12, size=6)
    exposures = dissatisfaction.exposures(s, q, weight)
    for rows, lists in lists_of(s, q):
        for tie_cost in (0, 0.3):
            how = (*member.values(), weight, tie_cost)
            expected = np.mean(
                [dissatisfaction.dissatisfaction_of_order(y, o, *how) for o in lists]
            )
            actual = dissatisfaction.dissatisfaction(y, s, rows, *how)
            assert actual == pytest.approx(expected)
        for row in rows:
            visits = [dissatisfaction.visit(weight, o.index(row)) for o in lists]
            assert exposures[row] == pytest.approx(np.mean(visits))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_moments_of_positions(seed, pairs):
    y, s, q, member = make_data(seed, size=5)
    g = [a + 2 * b for a, b in zip(*member.values(), strict=True)]
    positions = outcome_inequality.positions_of(q, 4, pairs)
    for rows, lists in lists_of(s, q):
        moments = outcome_inequality.query_moments(y, s, g, rows, positions, set(g))
        for (j, k, a, b), actual in moments.items():
            values = [
                (float(y[order[j]] - y[order[k]]), 1.0)
                if k < len(order) and (g[order[j]], g[order[k]]) == (a, b)
                else (0.0, 0.0)
                for order in lists
            ]
            assert actual == pytest.approx(np.mean(values, axis=0).tolist(), abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_worst_rankings(seed):
    rng = np.random.default_rng(seed)
    n = 7 if seed < 2 else int(rng.integers(2, 7))
    y, in_a = rng.integers(0, 3, n).tolist(), (rng.random(n) < 0.6).tolist()
    how = ("uniform", "dcg", "reciprocal")[seed % 3], (0, 0.3, 1.0)[seed // 3 % 3]
    outside, every = [not inside for inside in in_a], [True] * n
    of_others = dissatisfaction.normaliser(y, range(n), in_a, outside, *how)
    of_all = dissatisfaction.all_pairs_normaliser(y, range(n), in_a, *how)
    for actual, in_b in ((of_others, outside), (of_all, every)):
        largest = dissatisfaction.brute_force_normaliser(y, range(n), in_a, in_b, *how)
        assert actual == pytest.approx(largest)


# Variances


def test_cluster_covariance_by_hand():
    # Cluster sums (num, den): (1, 2), (1, 1), and a third cluster without pairs.
    pairs = {"a": [(0, 1, 1, 1, 1), (1, 0, 0, 1, 1), (2, 3, 1, 1, 1)]}
    cluster = ["u", "u", "v", "v", "x"]
    # theta = 2/3; 1 without "u", 1/2 without "v"; of two clusters with pairs.
    covariance = variance.cluster_covariance(pairs, cluster)
    assert covariance == {("a", "a"): pytest.approx((1 / 9 + 1 / 36) / 2)}
    one = variance.cluster_covariance({"a": pairs["a"][:2]}, ["u", "u"])
    assert math.isnan(one["a", "a"])
    none = variance.cluster_covariance({**pairs, "b": []}, cluster)
    assert none["a", "a"] == pytest.approx(5 / 72)
    assert math.isnan(none["a", "b"])
    assert math.isnan(none["b", "b"])


def test_item_covariance_by_hand():
    # Values 1, 0, 0: theta 1/3.
    pairs = [(0, 1, 1, 1, 1), (0, 3, 0, 1, 1), (2, 3, 0, 1, 1)]
    # Without items 0 to 3: 0, 0, 1/2 and 1.
    changes = [-1 / 3, -1 / 3, 1 / 6, 2 / 3]
    expected = 3 / 4 * sum(v * v for v in changes)
    covariance = variance.item_covariance({"a": pairs}, 4)
    assert covariance["a", "a"] == pytest.approx(expected)
    # Seen from the other item each value is the negative.
    mirror = [(j, i, 1 - num, 1, 1) for i, j, num, _, _ in pairs]
    both = variance.item_covariance({"a": pairs, "b": mirror}, 4)
    assert both["a", "b"] == pytest.approx(-expected)
    assert both["b", "b"] == pytest.approx(expected)
    # Items 0 and 2 are members, 1 and 3 others: two samples of two.
    member = {"a": [True, False, True, False]}
    two = variance.item_covariance({"a": pairs}, 4, member)
    expected = sum(v * v for v in changes) / 2
    assert two["a", "a"] == pytest.approx(expected)
    # Members of one pair only: no variance.
    alone = {"a": [True, False, False, False]}
    assert math.isnan(variance.item_covariance({"a": pairs[:1]}, 4, alone)["a", "a"])
