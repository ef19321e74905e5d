"""Adjacent, position-weighted and local linear matched pairs by hand."""

import math

import numpy as np
import pytest

from skrankfair.metrics import matched_pair_calibration
from tests.reference import matched_pairs
from tests.reference._common import orders
from tests.reference.test_reference import assert_same, make_data

mpc = matched_pairs.matched_pair_calibration

# Every way to estimate that is not the plain mean below.
WAYS = [
    {"adjacent": True},
    {"position_weight": "dcg"},
    {"position_weight": "reciprocal", "direction": "both"},
    {"position_weight": "dcg", "adjacent": True},
    {"estimator": "local_linear"},
    {"estimator": "local_linear", "direction": "both"},
    {"estimator": "local_linear", "adjacent": True},
    {"estimator": "local_linear", "position_weight": "dcg"},
]


@pytest.mark.parametrize("variance", ["cluster", "item"])
def test_slope_term_is_that_of_pairs_within_groups(variance):
    rng = np.random.default_rng(0)
    s, g = rng.integers(0, 30, 120) / 30, rng.choice(["a", "b", "c"], 120)
    q, w = np.repeat(np.arange(12), 10), rng.integers(1, 4, 120)
    y = 2 * s + rng.normal(size=120)
    r = matched_pair_calibration(
        *(y, s), sensitive_features=g, qid=q if variance == "cluster" else None,
        epsilon=0.3, item_weight=w,
    )  # fmt: skip
    near = (s - s[:, None] >= 0) & (s - s[:, None] <= 0.3 + 1e-15)
    if variance == "cluster":
        near &= q == q[:, None]
    weight = near * np.outer(w, w)
    same = weight * (g == g[:, None])
    value, distance = y[:, None] - y, s - s[:, None]
    slope = (same * value).sum() / (same * distance).sum()
    assert r.variance == variance
    for i, group in enumerate("abc"):
        cross = weight * np.outer(g == group, g != group)
        plain, far = ((cross * x).sum() / cross.sum() for x in (value, distance))
        assert r.estimate[i] == pytest.approx(plain)
        assert r.slope_term[i] == pytest.approx(far * slope)
        assert r.test().estimate[i] == pytest.approx(plain - far * slope)
        assert r.to_frame().loc[group, "slope_term"] == r.slope_term[i]
    if variance == "cluster":
        tested = r.as_gap()
        parts = [
            matched_pair_calibration(
                *(y[rows], s[rows]), sensitive_features=g[rows], qid=q[rows],
                epsilon=0.3, item_weight=w[rows],
            )
            for rows in (q < 5, q >= 5)
        ]  # fmt: skip
        stored = type(r).from_json(sum(parts).to_json())
        np.testing.assert_allclose(stored.pvalue, tested.pvalue, rtol=1e-9)


def test_adjacent_by_hand():
    # Ranking by score, ties in row order: rows 1, 0, 2, 3, 4.
    y, s, q = [3, 1, 0, 2, 9], [0.5, 0.75, 0.5, 0.25, 0.125], ["u"] * 5
    assert matched_pairs.ranking(s, q) == [1, 0, 2, 3, 4]
    member = {"a": [False, False, True, False, True]}
    pairs = list(matched_pairs.eligible_pairs(y, s, q, member["a"], adjacent=True))
    # Row 2 above row 3 counts too: both directions. Differences 0, 1/4, 1/8.
    assert pairs == [(2, 0, -3.0), (2, 3, -2.0), (4, 3, 7.0)]
    assert mpc(y, s, q, member, epsilon=1, adjacent=True)["a"] == (2 / 3, 3, 1)
    assert mpc(y, s, q, member, n_pairs=2, adjacent=True)["a"] == (2, 2, 0.125)
    assert mpc(y, s, q, member, epsilon=0, adjacent=True)["a"] == (-3, 1, 0)
    # The quantile is of the adjacent pairs.
    assert mpc(y, s, q, member, quantile=1, adjacent=True)["a"] == (2 / 3, 3, 0.25)
    # Rows 0 and 2 tie and row 0 comes first: rows 1 and 2 are no neighbours.
    member = {"a": [False, True, False, False, False]}
    pairs = list(matched_pairs.eligible_pairs(y, s, q, member["a"], adjacent=True))
    assert pairs == [(1, 0, -2.0)]


def test_position_weight_by_hand():
    # Ranks 0, 1, 2, 3. Lower items: row 1 at rank 1 (value 1), rows 3 at rank 3 (2, 4).
    y, s, q = [0, 1, -2, 2], [4, 3, 2, 1], [0] * 4
    member = {"a": [False, True, False, True]}
    pairs = list(matched_pairs.eligible_pairs(y, s, q, member["a"]))
    assert pairs == [(1, 0, 1.0), (3, 0, 2.0), (3, 2, 4.0)]
    options = {"epsilon": 9, "position_weight": "reciprocal"}
    # MPC by position 1 and 3, weights 1/2 and 1/4.
    expected = (1 / 2 * 1 + 1 / 4 * 3) / (3 / 4)
    assert mpc(y, s, q, member, **options)["a"] == (pytest.approx(expected), 3, 9)
    options["position_weight"] = "dcg"
    w1, w3 = 1 / math.log2(3), 1 / math.log2(5)
    expected = (w1 * 1 + w3 * 3) / (w1 + w3)
    assert mpc(y, s, q, member, **options)["a"][0] == pytest.approx(expected)
    for weight in ([5, 0, 5, 2], lambda rank: 2 if rank == 4 else 0):
        options["position_weight"] = weight
        assert mpc(y, s, q, member, **options)["a"][0] == 3
    # Nothing at the only position of weight.
    options["position_weight"] = [1, 0, 0, 0]
    assert math.isnan(mpc(y, s, q, member, **options)["a"][0])


def test_position_weight_shares_a_tied_block():
    # Rows 1 and 2 tie at ranks 1 and 2; the pair (1, 0) counts half at each, as does
    # (1, 2) although one of the two is sure to be above the other.
    y, s, q = [0, 3, 1], [2, 1, 1], [0] * 3
    chances = matched_pairs.position_chances(s, q)
    assert chances == [{0: 1}, {1: 0.5, 2: 0.5}, {1: 0.5, 2: 0.5}]
    member = {"a": [False, True, False]}
    result = mpc(y, s, q, member, epsilon=9, position_weight="reciprocal")
    assert result["a"] == (2.5, 2, 9)
    # Two queries: (1, 0) of the first half at rank 1, half at rank 2; the second's
    # single pair at rank 1. MPC_1 = (1.5 + 1) / 1.5, MPC_2 = 3.
    y, s, q = [0, 3, 8, 0, 1], [2, 1, 1, 2, 1], [0, 0, 0, 1, 1]
    member = {"a": [False, True, True, False, True]}
    result = mpc(y, s, q, member, epsilon=9, position_weight="reciprocal")
    mpc_1, mpc_2 = (1.5 + 4 + 1) / 2, (1.5 + 4) / 1
    assert result["a"][0] == pytest.approx((mpc_1 / 2 + mpc_2 / 3) / (5 / 6))
    # By queries: 5.5 in the first, 1 in the second.
    result = mpc(
        *(y, s, q, member), epsilon=9, position_weight="dcg", average="queries"
    )
    assert result["a"][0] == pytest.approx(3.25)


@pytest.mark.parametrize("seed", range(3))
def test_tied_block_is_the_mean_over_orders(seed):
    _, s, q, _ = make_data(seed, n_queries=4, size=5)
    chances = matched_pairs.position_chances(s, q)
    for label in set(q):
        rows = [row for row in range(len(q)) if q[row] == label]
        counts, n_orders = {row: {} for row in rows}, 0
        for order in orders(s, rows):
            n_orders += 1
            for k, row in enumerate(order):
                counts[row][k] = counts[row].get(k, 0) + 1
        for row in rows:
            expected = {k: n / n_orders for k, n in counts[row].items()}
            assert chances[row] == pytest.approx(expected)


def test_local_linear_by_hand():
    # Values 1 + 2 d without noise, whatever the kernel: intercept 1.
    s, q, member = [0, 0.25, 0.5, 1], [0] * 4, {"a": [True, False, False, False]}
    y = [0, -1.5, -2, -3]
    result = mpc(y, s, q, member, epsilon=1, estimator="local_linear")
    # The pair at epsilon has no weight in the regression but is a matched pair.
    assert result["a"] == (pytest.approx(1), 3, 1)
    # Two differences: the line through the means 2 at d = 1/4 and 5 at d = 1/2.
    y, s, q = [0, -1, -3, -5], [0, 0.25, 0.25, 0.5], [0] * 4
    result = mpc(y, s, q, member, epsilon=1, estimator="local_linear")
    assert result["a"][0] == pytest.approx(-1)
    # Kernel 3/4 at d = 1/4 but 1/4 at d = 3/4: three points not on a line.
    y, s = [0, -1, -1, -4], [0, 0.25, 0.5, 0.75]
    design = np.array([[1, 0.25], [1, 0.5], [1, 0.75]])
    root = np.sqrt([0.75, 0.5, 0.25])
    expected = np.linalg.lstsq(design * root[:, None], root * [1, 1, 4])[0][0]
    result = mpc(y, s, q, member, epsilon=1, estimator="local_linear")
    assert result["a"][0] == pytest.approx(expected)


def test_local_linear_keeps_the_sign_of_the_difference():
    # Values 5 - 8 d on both sides of 0; an absolute difference would not fit a line.
    s, q, member = [0, -0.25, 0.125, 0.25], [0] * 4, {"a": [True, False, False, False]}
    y = [0, -7, -4, -3]
    options = {"epsilon": 0.5, "direction": "both", "estimator": "local_linear"}
    assert mpc(y, s, q, member, **options)["a"][0] == pytest.approx(5)


def test_local_linear_without_a_line():
    y, s, q = [2, 0, 1, 7], [0, 0, 0, 1], [0] * 4
    options = {"estimator": "local_linear"}
    member = {"a": [True, False, False, False]}
    # All under the kernel at 0: the mean; epsilon 0 too.
    assert mpc(y, s, q, member, epsilon=1, **options)["a"] == (1.5, 3, 1)
    assert mpc(y, s, q, member, epsilon=0, **options)["a"] == (1.5, 2, 0)
    # One difference that is not 0, or no weight at all: no value at 0.
    for s in ([0, 0.5, 0.5, 1], [0, 1, 1, 1]):
        estimate, n_pairs, _ = mpc(y, s, q, member, epsilon=1, **options)["a"]
        assert math.isnan(estimate)
        assert n_pairs == 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_influence_is_the_derivative_in_the_weight_of_a_query(way, average):
    # Estimates are smooth in the weights of the queries: their derivative at 1 is
    # the sum of the influences of the query.
    y, s, q, member = make_data(7, n_queries=10)
    args = (y, s, q, member["a"], 0.8)
    options = {"average": average, **way}
    of = matched_pairs.estimate_and_influence
    _, influence = of(*args, **options)
    assert len(influence) > 3
    assert math.fsum(phi for *_, phi, _ in influence) == pytest.approx(0, abs=1e-12)
    for label in set(q):
        up, down = ([1 + h * (c == label) for c in q] for h in (1e-5, -1e-5))
        slope = (of(*args, w=up, **options)[0] - of(*args, w=down, **options)[0]) / 2e-5
        expected = math.fsum(phi for i, _, phi, _ in influence if q[i] == label)
        assert expected == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_equal_weights_and_one_position_are_the_mean(seed):
    # All lower items at one position: every weight cancels.
    rng = np.random.default_rng(seed)
    y, s = rng.normal(size=20).tolist(), rng.normal(size=20).tolist()
    q, member = [row // 2 for row in range(20)], {"a": [True, False] * 10}
    plain = mpc(y, s, q, member, epsilon=5)
    for weight in ("dcg", "reciprocal", [1, 2]):
        assert_same(mpc(y, s, q, member, epsilon=5, position_weight=weight), plain)
