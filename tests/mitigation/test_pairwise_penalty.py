"""Pairs of a query: counted without being written down, drawn evenly, correlated."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from skrankfair.mitigation._pairwise_fair import LinearCorrelation
from skrankfair.mitigation._pairwise_penalty import (
    WIDTH,
    candidates,
    draw_pairs,
    smooth_absolute,
)
from tests.mitigation.pairs import naive_correlation, naive_pairs, problem

each_comparison = pytest.mark.parametrize("comparison", ["inter", "intra", "all"])


@each_comparison
@pytest.mark.parametrize("grades", [2, 5])
def test_candidates_are_the_naive_pairs(comparison, grades):
    _, y, group, query = problem(120, grades=grades)
    member = group == 1
    naive = naive_pairs(y, query, member, comparison)
    for side, found in enumerate(candidates(y, query, member, comparison)):
        pairs = sorted(zip(*found.draw(found.size, None), strict=True))
        assert pairs == sorted((i, j) for i, j, _ in naive[bool(side)])
        assert found.size > 10


@each_comparison
def test_drawn_pairs_are_balanced_and_uniform(comparison):
    _, y, group, query = problem(160, grades=3)
    member = group == 1
    rng = np.random.default_rng(0)
    pairs = draw_pairs(y, query, member, comparison, 40, rng)
    np.testing.assert_array_equal(member[pairs.better], np.repeat([False, True], 20))
    np.testing.assert_allclose(pairs.weight, 1 / 40)
    naive = naive_pairs(y, query, member, comparison)
    known = {(i, j): b for side in naive.values() for i, j, b in side}
    number = dict.fromkeys(known, 0)
    for _ in range(1000):
        pairs = draw_pairs(y, query, member, comparison, 40, rng)
        for i, j, b in zip(pairs.better, pairs.worse, pairs.membership, strict=True):
            assert known[i, j] == b
            number[i, j] += 1
    for side in naive.values():
        counts = np.array([number[i, j] for i, j, _ in side])
        expected = 20_000 / counts.size
        chi2 = ((counts - expected) ** 2 / expected).sum()
        # A chi-square variable is within 4.5 deviations of its mean.
        assert abs(chi2 - counts.size) < 4.5 * np.sqrt(2 * counts.size)


@each_comparison
def test_correlation_is_corrcoef_and_its_gradient_finite_differences(comparison):
    X, y, group, query = problem(grades=4)
    rng = np.random.default_rng(0)
    member, coef = group == 1, rng.normal(size=4)
    score = X @ coef
    pairs = draw_pairs(y, query, member, comparison, 10**6, rng)
    naive = naive_correlation(y, score, query, member, comparison)
    assert pairs.correlation(score)[0] == pytest.approx(naive, rel=1e-9)
    for floor in (0.0, 0.3):
        value, gradient = pairs.correlation(score, floor)
        linear, by_coef = LinearCorrelation.of_pairs(X, pairs)(coef, floor)
        assert linear == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(by_coef, X.T @ gradient, atol=1e-12)
        numeric = approx_fprime(
            score, lambda s, f=floor: pairs.correlation(s, f)[0], 1e-7
        )
        np.testing.assert_allclose(gradient, numeric, atol=1e-6)


def test_smooth_absolute():
    for value in (-0.5, -1e-4, 0.0, 1e-3, 0.9):
        penalty, slope = smooth_absolute(value)
        assert abs(value) - WIDTH <= penalty <= abs(value)
        numeric = smooth_absolute(value + 1e-7)[0] - smooth_absolute(value - 1e-7)[0]
        assert slope == pytest.approx(numeric / 2e-7, abs=1e-6)
