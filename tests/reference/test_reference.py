"""The references against hand-computed examples and numbers from elsewhere."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.reference import matched_pairs, pairwise, utility, variance


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


def assert_same(first, second):
    assert first.keys() == second.keys()
    for key in first:
        assert first[key] == pytest.approx(second[key], rel=1e-12, nan_ok=True)


# Matched pairs


def test_matched_pairs_example_of_the_paper():
    # Korevaar et al. section 4.1.4, in binary fractions of about the same size.
    s, y, in_group = [0.75, 0.734375, 0.71875], [1, 0, 1], [False, False, True]
    pairs = matched_pairs.matched_pairs(y, s, [0] * 3, in_group, epsilon=0.05)
    assert list(pairs) == [(2, 0, 0.0), (2, 1, 1.0)]
    result = matched_pairs.matched_pair_calibration(
        y, s, [0] * 3, {"g": in_group}, epsilon=0.05
    )
    assert result == {"g": (0.5, 2, 0.05)}


def test_matched_pairs_by_hand():
    y, s = [3, 1, 0, 2], [0.5, 0.5, 0.75, 0.25]
    q, member = ["u"] * 4, {"a": [True, False, False, False]}
    mpc = matched_pairs.matched_pair_calibration
    below = list(matched_pairs.eligible_pairs(y, s, q, member["a"]))
    both = list(matched_pairs.eligible_pairs(y, s, q, member["a"], "both"))
    assert below == [(0, 1, 2.0), (0, 2, 3.0)]
    assert both == [(0, 1, 2.0), (0, 2, 3.0), (0, 3, 1.0)]
    assert mpc(y, s, q, member)["a"] == (2, 1, 0)
    assert mpc(y, s, q, member, epsilon=0.25)["a"] == (2.5, 2, 0.25)
    assert mpc(y, s, q, member, n_pairs=1)["a"] == (2, 1, 0)
    assert mpc(y, s, q, member, n_pairs=2)["a"] == (2.5, 2, 0.25)
    assert mpc(y, s, q, member, n_pairs=99)["a"] == (2.5, 2, 0.25)
    assert mpc(y, s, q, member, quantile=0.5)["a"] == (2, 1, 0)
    assert mpc(y, s, q, member, quantile=0.51)["a"] == (2.5, 2, 0.25)
    # Pairs tied at epsilon are all kept.
    tied = mpc(y, s, q, member, n_pairs=2, direction="both")
    assert tied["a"] == (2, 3, 0.25)
    # A number of pairs counts them, whatever they weigh.
    assert mpc(y, s, q, member, n_pairs=1, w=[3] * 4)["a"] == (2, 1, 0)
    assert mpc(y, s, q, member, n_pairs=2, w=[3] * 4)["a"] == (2.5, 2, 0.25)
    nobody = mpc(y, s, q, {"a": [False] * 4})["a"]
    assert math.isnan(nobody[0])
    assert nobody[1] == 0
    assert math.isnan(nobody[2])
    with pytest.raises(ValueError, match="one of"):
        mpc(y, s, q, member, n_pairs=1, quantile=0.5)


def test_matched_pairs_average_over_queries():
    # Query u: mean of 1 and 0; query v: -1.
    y, s, q = [1, 0, 1, 0, 1], [0, 0, 0, 0, 0], list("uuuvv")
    member = {"a": [True, False, False, True, False]}
    mpc = matched_pairs.matched_pair_calibration
    assert mpc(y, s, q, member, epsilon=0)["a"] == (0, 3, 0)
    assert mpc(y, s, q, member, epsilon=0, average="queries")["a"] == (-0.25, 3, 0)


# NDCG


def test_ndcg_by_hand():
    dcg = 3 / math.log2(2) + 2 / math.log2(3) + 3 / math.log2(4)
    ideal = 3 / math.log2(2) + 3 / math.log2(3) + 2 / math.log2(4)
    y, s = [3, 2, 3], [0.9, 0.8, 0.7]
    assert utility.ndcg(y, s, [0] * 3) == pytest.approx(dcg / ideal)
    # A tie over the cut: one half of a place in the top 1.
    assert utility.ndcg([1, 0], [0, 0], [0, 0], k=1) == pytest.approx(0.5)
    # A query without gain is left out, and only such queries: nan.
    y, s, q = [3, 2, 3, 0, 0], [0.9, 0.8, 0.7, 1, 0], [0, 0, 0, 1, 1]
    assert utility.ndcg(y, s, q) == pytest.approx(dcg / ideal)
    assert math.isnan(utility.ndcg([0, 0], [0, 1], [0, 0]))


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
    with pytest.raises(ValueError, match="different clusters"):
        variance.cluster_covariance(pairs, [0, 1, 2, 3, 4])


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


def test_delong_by_hand():
    # V10 = 1, 1/2 and V01 = 1/2, 1: S10 = S01 = 1/8, variance 1/16 + 1/16.
    y, s = [1, 1, 0, 0], [0.8, 0.4, 0.6, 0.2]
    assert variance.auc(y, s) == 0.75
    assert variance.delong_variance(y, s) == pytest.approx(1 / 8)
    assert math.isnan(variance.delong_variance([1, 0, 0], [1, 0, 2]))


@pytest.mark.parametrize("seed", range(3))
def test_delong_is_the_two_sample_jackknife(seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation([1] * 12 + [0] * 17)
    s = np.round(rng.normal(size=29) + y, 1)
    full, expected = roc_auc_score(y, s), 0.0
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        left_out = [roc_auc_score(np.delete(y, row), np.delete(s, row)) for row in rows]
        pseudo = len(rows) * full - (len(rows) - 1) * np.array(left_out)
        expected += pseudo.var(ddof=1) / len(rows)
    assert variance.delong_variance(y, s) == pytest.approx(expected)


def test_item_variance_is_delongs():
    rng = np.random.default_rng(0)
    y = rng.permutation([1] * 40 + [0] * 60)
    s = rng.normal(size=100) + y
    pairs = list(pairwise.pairs_accuracy(y, s, [0] * 100, [True] * 100))
    tables, member = (
        {"a": variance.tabulate(pairs, [0] * 100)},
        {"a": (y == 1).tolist()},
    )
    covariance = variance.item_covariance(tables, 100, member)
    assert covariance["a", "a"] == pytest.approx(variance.delong_variance(y, s))


def test_bootstrap_totals():
    table, counts = [[1, 10], [2, 20], [3, 30]], [[1, 1, 1], [0, 3, 0], [2, 0, 1]]
    totals = variance.cluster_bootstrap_totals(table, counts)
    assert totals == [[6, 60], [6, 60], [5, 50]]
    assert np.allclose(totals, np.array(counts) @ np.array(table))
