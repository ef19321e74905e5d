"""The references against hand-computed examples and numbers from elsewhere."""

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.reference import matched_pairs, pairwise, utility, variance

COMPARISONS = ("all", "intra", "inter")


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


def repeat_queries(w, *columns, q):
    """Rows with every query written out as often as its weight says."""
    rows, labels = [], []
    for row, times in enumerate(w):
        for copy in range(times):
            rows.append(row)
            labels.append((q[row], copy))
    return [[column[row] for row in rows] for column in columns], labels


def assert_same(first, second):
    assert first.keys() == second.keys()
    for key in first:
        assert first[key] == pytest.approx(second[key], rel=1e-12, nan_ok=True)


# Pairwise fairness


def test_pairwise_by_hand():
    # Query u: rows 0-2, pairs 0>1 (tie in s), 0>2 (won). Query v: rows 3-4, lost.
    y, s, q = [2, 0, 0, 1, 0], [0.5, 0.5, 0.1, 0.2, 0.3], list("uuuvv")
    member = {"a": [True, True, False, True, False]}
    accuracy = pairwise.pairwise_accuracy
    assert accuracy(y, s, q, member)["a"] == (0.5, 3)
    assert accuracy(y, s, q, member, average="queries")["a"] == (0.375, 3)
    assert accuracy(y, s, q, member, "intra")["a"] == (0.5, 1)
    assert accuracy(y, s, q, member, "inter")["a"] == (0.5, 2)
    w = [1, 1, 1, 3, 3]
    assert accuracy(y, s, q, member, w=w)["a"] == (1.5 / 5, 3)
    assert accuracy(y, s, q, member, average="queries", w=w)["a"] == (0.75 / 4, 3)
    bucket = [7, 7, 7, 9, 9]
    assert accuracy(y, s, q, member, bucket=bucket)["a"] == (0.375, 3)
    table = pairwise.pairwise_accuracy_by_bucket(y, s, q, member, bucket=bucket)
    assert table == {"a": {7: (0.75, 2), 9: (0, 1)}}
    # Preferred items outside the group: none.
    assert pairwise.rest_pairwise_accuracy(y, s, q, member)["a"][1] == 0
    # Exposure: (0, 2) won, (1, 2) won, (3, 4) lost; (1, 2) ties in y.
    exposure, preference = pairwise.pairwise_exposure, pairwise.pairwise_preference
    assert exposure(s, q, member)["a"] == (2 / 3, 3)
    assert exposure(s, q, member, "queries")["a"] == (0.5, 3)
    assert preference(y, q, member)["a"] == (1, 2)
    assert preference([0, *y[1:3], 0, 1], q, member)["a"] == (0, 1)


def test_weight_zero_is_absent_and_varying_weight_raises():
    y, s, q, member = [1, 0, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1], {"a": [True] * 4}
    accuracy = pairwise.pairwise_accuracy
    assert accuracy(y, s, q, member, w=[1, 1, 0, 0])["a"] == (1, 1)
    bucketed = accuracy(y, s, q, member, bucket=[0, 0, 1, 1], w=[1, 1, 0, 0])
    assert bucketed["a"] == (1, 1)
    with pytest.raises(ValueError, match="varies"):
        accuracy(y, s, q, member, w=[1, 2, 1, 1])


@pytest.mark.parametrize("seed", range(5))
def test_rest_of_two_groups_is_the_other_group(seed):
    y, s, q, member = make_data(seed)
    member = {"a": member["a"], "b": [not inside for inside in member["a"]]}
    for comparison, average in itertools.product(COMPARISONS, ("pairs", "queries")):
        args = (y, s, q, member, comparison, None, average)
        own = pairwise.pairwise_accuracy(*args)
        rest = pairwise.rest_pairwise_accuracy(*args)
        assert_same(own, {"a": rest["b"], "b": rest["a"]})
    for average in ("pairs", "queries"):
        exposure = pairwise.pairwise_exposure(s, q, member, average)
        assert exposure["a"][0] + exposure["b"][0] == pytest.approx(1)
        preference = pairwise.pairwise_preference(y, q, member, average)
        assert preference["a"][0] + preference["b"][0] == pytest.approx(1)


def assert_same_estimates(actual, expected):
    """Compare the first of what is by group."""
    assert_same(*({g: v[0] for g, v in side.items()} for side in (actual, expected)))


@pytest.mark.parametrize("seed", range(3))
def test_estimates_of_weights_are_of_repeated_queries(seed):
    y, s, q, member = make_data(seed)
    times = np.random.default_rng(seed).integers(0, 4, max(q) + 1).tolist()
    w = [times[label] for label in q]
    bucket = [row % 3 for row in range(len(q))]
    (y2, s2, a2, b2, bucket2), q2 = repeat_queries(
        w, y, s, member["a"], member["b"], bucket, q=q
    )
    member2 = {"a": a2, "b": b2}
    for average in ("pairs", "queries"):
        for comparison, buckets in itertools.product(COMPARISONS, (False, True)):
            for function in (
                pairwise.pairwise_accuracy,
                pairwise.rest_pairwise_accuracy,
            ):
                assert_same_estimates(
                    function(
                        *(y, s, q, member, comparison),
                        bucket if buckets else None,
                        average,
                        w,
                    ),
                    function(
                        *(y2, s2, q2, member2, comparison),
                        bucket2 if buckets else None,
                        average,
                    ),
                )
        assert_same_estimates(
            pairwise.pairwise_exposure(s, q, member, average, w),
            pairwise.pairwise_exposure(s2, q2, member2, average),
        )
        assert_same_estimates(
            pairwise.pairwise_preference(y, q, member, average, w),
            pairwise.pairwise_preference(y2, q2, member2, average),
        )
        for direction in ("below", "both"):
            for choice in ({"quantile": 0.2}, {"epsilon": 0.3}):
                options = {"direction": direction, "average": average, **choice}
                mpc = matched_pairs.matched_pair_calibration
                assert_same_estimates(
                    mpc(y, s, q, member, w=w, **options),
                    mpc(y2, s2, q2, member2, **options),
                )
    for k in (None, 2):
        assert utility.ndcg(y, s, q, k, w=w) == pytest.approx(
            utility.ndcg(y2, s2, q2, k)
        )


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


def accuracy_tables(y, s, q, member, average="pairs", w=None):
    return {
        group: variance.tabulate(
            pairwise.pairs_accuracy(y, s, q, in_group), q, average, w
        )
        for group, in_group in member.items()
    }


@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_tabulated_pairs_give_the_estimate(average):
    y, s, q, member = make_data(0)
    w = [1 + label % 3 for label in q]
    tables = accuracy_tables(y, s, q, member, average, w)
    estimates = variance.ratio_estimates(tables)
    expected = pairwise.pairwise_accuracy(y, s, q, member, average=average, w=w)
    for group in member:
        assert estimates[group] == pytest.approx(expected[group][0])


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


@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_cluster_covariance_is_the_jackknife_of_the_table(average):
    y, s, q, member = make_data(1)
    tables = accuracy_tables(y, s, q, member, average)
    labels = sorted(set(q))
    table = np.zeros((len(labels), 4))
    for column, pairs in enumerate(tables.values()):
        for i, _, num, den, _ in pairs:
            table[labels.index(q[i]), 2 * column : 2 * column + 2] += num, den
    totals, left = table.sum(0), table.sum(0) - table
    change = left[:, ::2] / left[:, 1::2] - totals[::2] / totals[1::2]
    n = np.count_nonzero(table[:, 1::2], axis=0)
    change *= np.sqrt((n - 1) / n)
    expected = change.T @ change
    covariance = variance.cluster_covariance(tables, q)
    for (row, g), (col, h) in itertools.product(enumerate(tables), repeat=2):
        assert covariance[g, h] == pytest.approx(expected[row, col])


@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_weights_inside_clusters_are_repeated_queries(average):
    y, s, q, member = make_data(2)
    times = [2, 1, 3, 1, 2, 1, 4, 1]
    w = [times[label] for label in q]
    (y2, s2, a2, b2), q2 = repeat_queries(w, y, s, member["a"], member["b"], q=q)
    member2 = {"a": a2, "b": b2}
    repeated = accuracy_tables(y2, s2, q2, member2, average)
    unweighted = accuracy_tables(y, s, q, member, average)
    frequency = dict(enumerate(times))
    assert_same(
        variance.ratio_estimates(unweighted, q, frequency),
        variance.ratio_estimates(repeated),
    )
    weighted = accuracy_tables(y, s, q, member, average, w)
    # The copies of a query are one cluster.
    assert_same(
        variance.cluster_covariance(unweighted, q, frequency),
        variance.cluster_covariance(repeated, [label for label, _ in q2]),
    )
    assert_same(
        variance.cluster_covariance(weighted, [label // 2 for label in q]),
        variance.cluster_covariance(repeated, [label // 2 for label, _ in q2]),
    )


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
    with pytest.raises(ValueError, match="both sides"):
        variance.item_variance([(0, 1, 1), (1, 2, 0)])
    values = [(0, 1, 1), (0, 3, 0), (2, 3, 0)]
    assert variance.item_variance(values) == pytest.approx(expected)
    # Members of one pair only: no variance.
    alone = {"a": [True, False, False, False]}
    assert math.isnan(variance.item_covariance({"a": pairs[:1]}, 4, alone)["a", "a"])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("direction", ["below", "both"])
def test_item_variance_is_the_diagonal_of_item_covariance(seed, direction):
    y, s, q, member = make_data(seed, n_queries=15)
    pairs, tables = {}, {}
    for group, in_group in member.items():
        args = (y, s, q, in_group, direction)
        pairs[group] = list(matched_pairs.matched_pairs(*args, epsilon=0.5))
        tables[group] = variance.tabulate(pairs[group], q)
    covariance = variance.item_covariance(tables, len(y), member)
    for group in member:
        assert len(pairs[group]) > 3
        expected = variance.item_variance(pairs[group])
        assert covariance[group, group] == pytest.approx(expected)
    assert covariance["a", "b"] == pytest.approx(covariance["b", "a"])


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
    pairs = pairwise.pairs_accuracy(y, s, [0] * 100, [True] * 100)
    expected = variance.delong_variance(y, s)
    assert variance.item_variance(pairs) == pytest.approx(expected)


def test_bootstrap_totals():
    table, counts = [[1, 10], [2, 20], [3, 30]], [[1, 1, 1], [0, 3, 0], [2, 0, 1]]
    totals = variance.cluster_bootstrap_totals(table, counts)
    assert totals == [[6, 60], [6, 60], [5, 50]]
    assert np.allclose(totals, np.array(counts) @ np.array(table))
