"""Outcome inequalities against hand-computed examples, enumeration and simulation."""

import math

import numpy as np
import pytest

from tests.reference import outcome_inequality as naive
from tests.reference.test_reference import make_data


def test_moments_by_hand():
    # Three queries of ranking a b, b a, a b with Y_j - Y_k = 1, -2, -1.
    y, s, q = [1, 0, 2, 0, 0, 1], [2, 1, 1, 2, 2, 1], list("uuvvxx")
    g = list("ababab")
    table = naive.moments(y, s, g, q)
    assert list(table) == [(0, 1, "a", "b"), (0, 1, "b", "a")]
    mean, error, support, residual = table[0, 1, "a", "b"]
    # Values 1, 0, -1.
    assert (mean, support) == (0, 2)
    assert residual == {"u": 1 / 3, "v": 0, "x": -1 / 3}
    assert error == pytest.approx(math.sqrt(3 / 2 * 2 / 9))
    mean, error, support, _ = table[0, 1, "b", "a"]
    # Values 0, -2, 0: standard deviation 2 / sqrt(3) over sqrt(3).
    assert (mean, support) == (-2 / 3, 1)
    assert error == pytest.approx(2 / 3)
    assert naive.max_statistic(table) == pytest.approx(1)
    # Multipliers: of v alone -(-4/9) / (2/3); of u: -1/3 / (1/sqrt 3), -2/9 / (2/3).
    maxima = naive.bootstrap_statistics(table, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert maxima == pytest.approx([2 / 3, -1 / 3, 0])
    assert naive.pvalue(0.5, maxima) == 2 / 4
    # u and v one cluster: residuals add.
    merged = naive.moments(y, s, g, q, cluster=list("ccccxx"))
    mean, error, _, residual = merged[0, 1, "b", "a"]
    assert residual == {"c": pytest.approx(-2 / 9), "x": pytest.approx(2 / 9)}
    assert error == pytest.approx(math.sqrt(2 * 2 * 4 / 81))


def test_positions():
    q = [0, 0, 0, 0, 1]
    assert naive.positions_of(q) == [(0, 1), (1, 2), (2, 3)]
    assert naive.positions_of(q, 2) == [(0, 1)]
    assert naive.positions_of(q, 3, "all") == [(0, 1), (0, 2), (1, 2)]
    # The query of one item has no second position: 0, and counts among the queries.
    table = naive.moments([1, 0, 0, 0, 5], [4, 3, 2, 1, 0], list("abbbb"), q)
    assert table[0, 1, "a", "b"][0] == 0.5
    assert (0, 1, "b", "a") not in table


def test_ties_by_hand():
    # Rows 0 (a) and 1 (b) tie over ranks 0 and 1.
    table = naive.moments([1, 0, 1], [1, 1, 0], list("aba"), [0, 0, 0])
    assert table[0, 1, "a", "b"][:1] == (0.5,)
    assert table[0, 1, "b", "a"][:1] == (-0.5,)
    # Row 1 at rank 1 and row 2 at rank 2: half of -1; no variance of one cluster.
    assert table[1, 2, "b", "a"][0] == -0.5
    assert math.isnan(table[1, 2, "b", "a"][1])
    assert math.isnan(naive.max_statistic(table))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pairs", ["adjacent", "all"])
def test_ties_are_the_mean_over_orders(seed, pairs):
    y, s, q, member = make_data(seed, size=5)
    g = [a + 2 * b for a, b in zip(*member.values(), strict=True)]
    options = {"cluster": [c // 2 for c in q], "top_k": 4, "pairs": pairs}
    first = naive.moments(y, s, g, q, **options)
    second = naive.moments(
        y, s, g, q, by_query=naive.query_moments_by_permutation, **options
    )
    assert first.keys() == second.keys()
    for key, (mean, error, support, residual) in first.items():
        assert mean == pytest.approx(second[key][0], abs=1e-12)
        assert error == pytest.approx(second[key][1], abs=1e-12)
        assert support == pytest.approx(second[key][2])
        assert residual == pytest.approx(second[key][3], abs=1e-12)


def test_maximum_of_one_moment_is_normal():
    # One moment: the bootstrap maxima are N(0, (C - 1) / C).
    rng = np.random.default_rng(1)
    y, s, q = rng.normal(size=40), [1, 0] * 20, [row // 2 for row in range(40)]
    table = naive.moments(y.tolist(), s, ["a", "b"] * 20, q)
    assert len(table) == 1
    maxima = naive.bootstrap_statistics(table, rng.normal(size=(2000, 20)).tolist())
    # Four standard errors of a mean and of a variance.
    assert abs(np.mean(maxima)) < 4 / math.sqrt(2000)
    assert abs(np.var(maxima) - 19 / 20) < 4 * math.sqrt(2 / 2000)
