"""Group advantage against hand-computed examples and brute force."""

import itertools
import math

import numpy as np
import pytest

from tests.reference import advantage as naive
from tests.reference._common import orders
from tests.reference.test_reference import assert_same, make_data

TOP_K = (
    naive.normalized_discounted_difference,
    naive.normalized_discounted_ratio,
    naive.normalized_discounted_kl,
)


def ranked(pattern):
    """Scores, queries, membership of "aabb" read from the top."""
    n = len(pattern)
    return list(range(n, 0, -1)), [0] * n, {"a": [c == "a" for c in pattern]}


def test_top_k_by_hand():
    # Ranking a b b a, cuts 2 and 4: p = 1/2 = q at both. Cuts 1, 2, 3: 1, 1/2, 1/3.
    s, q, member = ranked("abba")
    for metric in TOP_K:
        assert metric(s, q, member, step=2)["a"] == (0, 1)
    w1, w3 = 1, 1 / 2
    # rND of a a b b: 1/2, 1/2, 1/6.
    top = w1 / 2 + w3 / 6
    most = w1 / 2 + 1 / math.log2(3) / 2 + w3 / 6
    value = naive.normalized_discounted_difference(s, q, member, step=1)["a"]
    assert value == (pytest.approx(top / most), 1)
    # rRD: |1 - 1| where the top is all a, then |1/2 - 1|. All first: 0, 0, |2 - 1|, 0;
    # all last: |0 - 1| twice, |1/2 - 1|.
    value = naive.normalized_discounted_ratio(s, q, member, step=1)["a"]
    most = w1 + 1 / math.log2(3) + w3 / 2
    assert value == (pytest.approx(w3 / 2 / most), 1)
    value = naive.normalized_discounted_ratio(s, q, member, step=1, zero_division=3)
    most = w1 * 2 + 1 / math.log2(3) * 2 + w3
    assert value["a"] == (pytest.approx((w1 * 2 + w3 / 2) / most), 1)
    # rKL: ln 2, 0, ln(2/3)/3 + 2 ln(4/3)/3; all first: ln 2 twice, the same.
    third = (math.log(2 / 3) + 2 * math.log(4 / 3)) / 3
    top = w1 * math.log(2) + w3 * third
    most = top + math.log(2) / math.log2(3)
    value = naive.normalized_discounted_kl(s, q, member, step=1)["a"]
    assert value == (pytest.approx(top / most), 1)
    # The discount as printed.
    value = naive.normalized_discounted_difference(
        s, q, member, step=3, discount=lambda k: 1 / math.log2(k)
    )
    assert value["a"] == (pytest.approx(1), 1)


def test_undefined():
    for pattern in ("aaaa", "bbbb"):
        s, q, member = ranked(pattern)
        for metric in (*TOP_K, naive.exposure_parity, naive.pairwise_parity):
            assert_same(metric(s, q, member), {"a": (math.nan, 0)})
    # No cut but the whole list, or none at all.
    for step in (4, 5):
        s, q, member = ranked("abba")
        for metric in TOP_K:
            assert_same(metric(s, q, member, step=step), {"a": (math.nan, 0)})
    assert math.isnan(naive.skew_at_k(s, q, member, 5)["a"][0])
    with pytest.raises(ValueError, match="one length"):
        naive.normalized_discounted_kl(
            [2, 1, 3], [0, 0, 1], {"a": [True, False, True]}, average="representation"
        )


def test_skew_by_hand():
    s, q, member = ranked("abba")
    assert naive.skew_at_k(s, q, member, 1)["a"] == (pytest.approx(math.log(2)), 1)
    assert naive.skew_at_k(s, q, member, 3)["a"] == (pytest.approx(math.log(2 / 3)), 1)
    rest = {"b": [not inside for inside in member["a"]]}
    assert naive.skew_at_k(s, q, rest, 1)["b"] == (-math.inf, 1)
    # All scores tied: half a member in the top 1.
    assert naive.skew_at_k([0] * 4, q, member, 1)["a"] == (0, 1)
    # Two lists, a first and b first: the mean p_1 is 1/2, the mean skew -inf.
    s, q = [2, 1, 2, 1], [0, 0, 1, 1]
    member = {"a": [True, False, False, True]}
    assert naive.skew_at_k(s, q, member, 1)["a"] == (-math.inf, 2)
    assert naive.skew_at_k(s, q, member, 1, "representation")["a"] == (0, 2)


def test_exposure_by_hand():
    s, q, member = ranked("abba")
    own, rest = (1 + 1 / 4) / 2, (1 / 2 + 1 / 3) / 2
    share = own / (own + rest)
    value = naive.exposure_parity(s, q, member, signed=True)["a"]
    assert value == (pytest.approx(2 * share - 1), 1)
    rest_member = {"b": [not inside for inside in member["a"]]}
    value = naive.exposure_parity(s, q, rest_member, signed=True)["b"]
    assert value == (pytest.approx(1 - 2 * share), 1)
    value = naive.exposure_parity(s, q, rest_member)["b"]
    assert value == (pytest.approx(2 * share - 1), 1)
    # DCG: 1, 1/log2 3, 1/2, 1/log2 5.
    own, rest = 1 + 1 / math.log2(5), 1 / math.log2(3) + 1 / 2
    value = naive.exposure_parity(s, q, member, "dcg")["a"]
    assert value == (pytest.approx(2 * own / (own + rest) - 1), 1)
    same = naive.exposure_parity(s, q, member, lambda k: 1 / math.log2(k + 1))
    assert_same(same, {"a": value})


def test_pairs_by_hand():
    s, q, member = ranked("abba")
    assert naive.pairwise_parity(s, q, member)["a"] == (0, 1)
    # Theorem 3: 1 exactly for a total advantage of either group.
    for pattern in ("aabb", "bbbaa", "abb", "ba"):
        s, q, member = ranked(pattern)
        signed = naive.pairwise_parity(s, q, member, signed=True)["a"]
        assert signed == (1 if pattern[0] == "a" else -1, 1)
        assert naive.pairwise_parity(s, q, member)["a"] == (1, 1)
    # One list each way: the mean of 1 and 1, or 0 for the mean list.
    s, q = [2, 1, 2, 1], [0, 0, 1, 1]
    member = {"a": [True, False, False, True]}
    assert naive.pairwise_parity(s, q, member)["a"] == (1, 2)
    assert naive.pairwise_parity(s, q, member, "representation")["a"] == (0, 2)


@pytest.mark.parametrize("seed", range(4))
def test_pair_of_the_mean_profile(seed):
    rng = np.random.default_rng(seed)
    q = np.repeat(range(20), 7).tolist()
    s = rng.integers(0, 5, len(q)).tolist()
    in_a = np.concatenate(
        [rng.permutation([True] * 3 + [False] * 4) for _ in range(20)]
    )
    member = {"a": in_a.tolist()}
    value = naive.pairwise_parity(s, q, member, "representation", signed=True)["a"][0]
    profiles = [(naive.profile(s, range(7 * c, 7 * c + 7), in_a), 1) for c in range(20)]
    mean = naive.mean_profile(profiles)
    # Of the 7 - k items below rank k, the members among themselves 3 times in all.
    above = sum(m * (7 - k) for k, m in enumerate(mean, start=1)) - 3
    assert value == pytest.approx(2 * above / 12 - 1)


@pytest.mark.parametrize("seed", range(4))
def test_profile_is_the_mean_over_orders(seed):
    _, s, q, member = make_data(seed, n_queries=4, size=5)
    for label, in_group in itertools.product(set(q), member.values()):
        rows = [row for row in range(len(q)) if q[row] == label]
        lists = [[float(in_group[row]) for row in order] for order in orders(s, rows)]
        expected = np.mean(lists, axis=0).tolist()
        assert naive.profile(s, rows, in_group) == pytest.approx(expected)


def test_ratio_may_exceed_its_maximum():
    # A top of five members has ratio 1, of four members and another 4; the whole
    # list has 1. So the extremes are 0 and 1 and the list below is 3 of 1.
    s, q, member = ranked("aaaababbbb")
    value = naive.normalized_discounted_ratio(s, q, member, step=5)["a"]
    assert value == (pytest.approx(3), 1)
