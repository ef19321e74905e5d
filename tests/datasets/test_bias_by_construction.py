"""Scores with a known calibration error: the law, and the error by simulation."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from skrankfair.datasets import make_bias_by_construction


def test_error_is_the_integral_over_the_scores():
    def square(s, b0, b1):
        return (s - special.expit(b0 + b1 * special.logit(s))) ** 2

    for b0, b1, alpha, beta in ((1, 1, 1, 1), (0.5, 2, 2, 3), (-1, 0.5, 0.7, 0.6)):
        law = stats.beta(alpha, beta)
        expected = integrate.quad(
            lambda s, law=law, b=(b0, b1): law.pdf(s) * square(s, *b),
            *(0, 1),
            limit=200,
        )[0]
        data = make_bias_by_construction(5, b0=b0, b1=b1, alpha=alpha, beta=beta)
        assert data.true_error == pytest.approx(np.sqrt(expected), rel=1e-4)
        assert data.true_error_by_row == data.true_error
    assert make_bias_by_construction(5, b0=0, b1=1).true_error < 1e-9


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_other_links(link):
    law = {"probit": stats.norm.cdf, "cloglog": stats.gumbel_l.cdf}[link]
    quantile = {"probit": stats.norm.ppf, "cloglog": stats.gumbel_l.ppf}[link]
    data = make_bias_by_construction(5000, b0=0.5, b1=0.7, link=link, random_state=0)
    expected = law(0.5 + 0.7 * quantile(data.y_score))
    np.testing.assert_allclose(data.expected, expected)

    def square(s):
        return (s - law(0.5 + 0.7 * quantile(s))) ** 2

    error = np.sqrt(integrate.quad(square, 0, 1)[0])
    assert data.true_error == pytest.approx(error, rel=1e-4)
    assert make_bias_by_construction(5, b0=0, b1=1, link=link).true_error < 1e-9
    assert f", {link}, b0 = 0.5" in data.DESCR


@pytest.mark.parametrize("n_max", [None, 1, 3, 6])
def test_laws(n_max):
    data = make_bias_by_construction(
        40_000, b0=0.8, b1=0.7, alpha=2, beta=3, rate=2.5, n_max=n_max, random_state=0
    )
    sizes = np.bincount(data.cluster)
    assert sizes.size == 40_000
    assert sizes.min() == 1
    assert sizes.mean() == pytest.approx(3.5, abs=4 * np.sqrt(2.5 / 40_000))
    size = sizes[data.cluster]
    if n_max is None:
        z, laws = np.zeros(size.size), [(size > 0, stats.beta(2, 3))]
    else:
        z = np.minimum(size / n_max, 1)
        kinds = np.minimum(size, n_max)
        laws = [(kinds == k, stats.beta(k, 1)) for k in range(1, n_max + 1)]
    for rows, law in laws:
        assert stats.kstest(data.y_score[rows], law.cdf).pvalue > 1e-3
    odds = 0.8 * (1 - z) + (0.7 + 0.3 * z) * special.logit(data.y_score)
    np.testing.assert_allclose(data.expected, special.expit(odds))
    miss = data.y_true - data.expected
    error = np.sqrt(np.mean(data.expected * (1 - data.expected)) / miss.size)
    assert abs(miss.mean()) < 4 * error
    assert set(data.y_true) == {0, 1}
    assert f"{data.y_true.size} rows" in data.DESCR


@pytest.mark.parametrize("by_row", [False, True])
def test_error_of_dependent_rows_by_simulation(by_row):
    """Means of the expected outcome within narrow bins, from many rows."""
    data = make_bias_by_construction(
        400_000, b0=1.0, b1=1.0, rate=3.0, n_max=6, random_state=1
    )
    sizes = np.bincount(data.cluster)[data.cluster]
    weight = np.ones(sizes.size) if by_row else 1 / sizes
    place = (data.y_score * 400).astype(int)
    mass = np.bincount(place, weight)
    there = mass > 0
    mean = np.bincount(place, weight * data.expected)[there] / mass[there]
    score = np.bincount(place, weight * data.y_score)[there] / mass[there]
    error = np.sqrt(np.average((score - mean) ** 2, weights=mass[there]))
    expected = data.true_error_by_row if by_row else data.true_error
    assert error == pytest.approx(expected, rel=0.01)
    assert data.true_error > 1.1 * data.true_error_by_row
