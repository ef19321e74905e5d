"""DIPS and exposure against hand-computed examples and brute force."""

import itertools
import math

import pytest

from tests.reference import dissatisfaction as naive
from tests.reference import variance
from tests.reference._common import rows_by_query
from tests.reference.test_reference import make_data

NAMES = ("uniform", "dcg", "geometric", "reciprocal")


def test_dips_by_hand():
    # Ranking B1 A2 B0 A0 (letter: group, digit: relevance).
    y, s, q = [1, 2, 0, 0], [4, 3, 2, 1], [0] * 4
    member = {"A": [False, True, False, True], "B": [True, False, True, False]}
    # A2 below B1: F(0). A0 below B0: c_t F(2). Most: B0 then B1 above A, or: c_B1 = 1
    # (A2), c_B0 = 1 + c_t (A2, tie with A0): F(0) (1 + c_t) + F(1).
    assert naive.dips(y, s, q, member)["A"] == (1 / 2, 2)
    assert naive.dips(y, s, q, member, tie_cost=0.5)["A"] == (1.5 / 2.5, 3)
    result = naive.dips(y, s, q, member, "reciprocal", 0.5)["A"]
    assert result == (pytest.approx((1 + 0.5 / 3) / (1.5 + 1 / 2)), 3)
    result = naive.dips(y, s, q, member, "geometric")["A"]
    assert result == (pytest.approx(1 / 1.8), 2)
    result = naive.dips(y, s, q, member, "dcg")["A"]
    assert result == (pytest.approx(1 / (1 + 1 / math.log2(3))), 2)
    # B: B1 should be above A0 and is; B0 ties with A0 and is above.
    assert naive.dips(y, s, q, member, tie_cost=1)["B"] == (0, 2)
    # Shared scores: B1 and A2 in either order.
    tied = naive.dips(y, [4, 4, 2, 1], q, member, "reciprocal")["A"]
    assert tied == (pytest.approx(0.5 / 1.5), 2)


def test_dips_averages_and_undefined():
    # Query u: A all below, 1 of 1. Query v: right, 0 of 2. Query x: no pair.
    y = [1, 0, 1, 1, 0, 0, 1]
    s = [0, 1, 1, 1, 0, 0, 1]
    q = list("uuvvvxx")
    member = {"A": [True, False, True, True, False, True, False]}
    assert naive.dips(y, s, q, member)["A"] == (1 / 3, 3)
    assert naive.dips(y, s, q, member, average="queries")["A"] == (1 / 2, 3)
    result = naive.dips(y[5:], s[5:], q[5:], {"A": member["A"][5:]})["A"]
    assert math.isnan(result[0])
    assert result[1] == 0
    with pytest.raises(ValueError, match="increase"):
        naive.dips(y, s, q, member, position_weight=[0.5, 1, 0.5])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("position_weight", NAMES)
def test_ties_are_the_mean_over_orders(seed, position_weight):
    y, s, q, member = make_data(seed, n_queries=12, size=6)
    for tie_cost, rows in itertools.product((0, 0.3), rows_by_query(q).values()):
        args = (y, s, rows, *member.values(), position_weight, tie_cost)
        expected = naive.dissatisfaction_by_permutation(*args)
        assert naive.dissatisfaction(*args) == pytest.approx(expected)
    assert naive.exposures(s, q, position_weight) == pytest.approx(
        naive.exposures_by_permutation(s, q, position_weight)
    )


def test_table_feeds_the_cluster_covariance():
    # Ratios (1, 1), (0, 2): theta 1/3; 0 without the first, 1 without the second.
    y, s, q = [1, 0, 1, 1, 0], [0, 1, 1, 1, 0], list("uuvvv")
    in_a = [True, False, True, True, False]
    in_b = [not inside for inside in in_a]
    table = naive.table_of_pair(y, s, q, in_a, in_b)
    covariance = variance.cluster_covariance({"A": table}, q)
    assert covariance["A", "A"] == pytest.approx((1 / 9 + 4 / 9) / 2)
    # By queries: values 1 and 0.
    table = naive.table_of_pair(y, s, q, in_a, in_b, average="queries")
    covariance = variance.cluster_covariance({"A": table}, q)
    assert covariance["A", "A"] == pytest.approx(1 / 4)


# Exposure


def test_exposure_by_hand():
    # One query: F = 1, 1/2, 1/3; a first and last. Another: b alone above a.
    s, q = [3, 2, 1, 1, 0], list("uuuvv")
    member = {
        "a": [True, False, True, False, True],
        "b": [False, True, False, True, False],
    }
    share = naive.exposure_share(s, q, member, "reciprocal")
    first, second = (4 / 3) / (11 / 6), (1 / 2) / (3 / 2)
    assert share["a"] == (pytest.approx((first + second) / 2), 2)
    share = naive.exposure_share(s, q, member, "reciprocal", "amortized")
    assert share["a"] == (pytest.approx((4 / 3 + 1 / 2) / (11 / 6 + 3 / 2)), 2)
    y = [0, 1, 1, 3, 0]
    gap = naive.exposure_gap(y, s, q, member, "population", "reciprocal")
    aim = (2 / 3 + 1 / 2) / 2
    assert gap["a"] == (pytest.approx((first + second) / 2 - aim), 2)
    gap = naive.exposure_gap(y, s, q, member, "relevance", "reciprocal")
    assert gap["a"] == (pytest.approx((first + second) / 2 - 1 / 4), 2)
    gap = naive.exposure_gap(y, s, q, member, "relevance", "reciprocal", "amortized")
    assert gap["a"] == (pytest.approx(11 / 6 / (10 / 3) - 1 / 5), 2)
    # Ideal: rows 1 and 2 share 1 and 1/2, row 0 has 1/3; in v nothing changes.
    gap = naive.exposure_gap(y, s, q, member, "expected", "reciprocal")
    ideal = (3 / 4 + 1 / 3) / (11 / 6)
    assert gap["a"] == (pytest.approx((first - ideal) / 2), 2)
    assert naive.disparity(gap) == pytest.approx(first - ideal)
    # No relevance in v: only u counts.
    gap = naive.exposure_gap([0, 1, 1, 0, 0], s, q, member, "relevance", "reciprocal")
    assert gap["a"] == (pytest.approx(first - 1 / 2), 1)
