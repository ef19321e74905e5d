"""Kernels and their sums: what they are, and that the fast sums are the exact ones."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from skrankfair._inputs.score_rows import score_rows
from skrankfair.smoothing import _kernels
from skrankfair.smoothing._bandwidth import (
    choose_bandwidth,
    leave_cluster_out_error,
    robust_scale,
)
from skrankfair.smoothing._kernels import KERNELS, exact_sums, kernel_sums
from tests.reference import predictive_parity as naive

each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))


def on_a_line(kernel):
    u = np.linspace(-kernel.reach, kernel.reach, 700_001)
    return u, kernel(u)


@each_kernel
def test_is_the_function_it_is_called(kernel):
    u = np.array([0.0, 0.3, -0.99, 0.999999, 1.5, -7.0])
    expected = [naive.KERNELS[kernel.name](v) for v in u]
    np.testing.assert_allclose(kernel(u), expected, rtol=1e-9, atol=1e-12)


@each_kernel
def test_integrates_to_one_and_has_the_moments_of_its_order(kernel):
    u, weights = on_a_line(kernel)
    assert trapezoid(weights, u) == pytest.approx(1, abs=1e-5)
    second = trapezoid(weights * u**2, u)
    if kernel.order == 2:
        assert second > 0.1
    else:
        assert abs(second) < 1e-6
    if kernel.name == "gaussian4":
        assert trapezoid(weights * u**4, u) == pytest.approx(-3, abs=1e-6)


@each_kernel
def test_relative_width_gives_the_same_trade_of_bias_and_variance(kernel):
    if kernel.order > 2:
        pytest.skip("no common scale with a kernel of another order")

    def canonical(k):
        u, weights = on_a_line(k)
        roughness, second = trapezoid(weights**2, u), trapezoid(weights * u**2, u)
        return (roughness / second**2) ** 0.2

    ratio = canonical(kernel) / canonical(KERNELS["gaussian"])
    assert kernel.relative_width == pytest.approx(ratio, abs=1e-4)


SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(5, 1, n),
    "discrete": lambda rng, n: rng.integers(0, 30, n) / 30,
    "outliers": lambda rng, n: np.concatenate([rng.random(n - 2), [-1e9, 1e4]]),
}


@pytest.mark.parametrize("scores", SCORES)
@each_kernel
def test_fast_sums_are_the_exact_ones(kernel, scores):
    rng = np.random.default_rng(0)
    x = SCORES[scores](rng, 1500)
    columns = np.stack([rng.normal(size=x.size) + x, rng.random(x.size)])
    points = np.linspace(0.02, 0.98, 120)
    for h in (0.2, 0.02):
        exact = exact_sums(points, x, columns, h, kernel)
        fast = kernel_sums(points, x, columns, h, kernel, "fast")
        there = exact[1] > 1e-3 * exact[1].max()
        np.testing.assert_allclose(fast[1, there], exact[1, there], rtol=1e-6)
        means = exact[0, there] / exact[1, there]
        found = fast[0, there] / fast[1, there]
        np.testing.assert_allclose(found, means, rtol=1e-6, atol=1e-6)


@each_kernel
def test_exact_sums_look_at_all_rows_that_count(kernel):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.random(300), 3 + rng.random(10)])
    columns = np.ones((1, x.size))
    points = np.linspace(-0.5, 4.5, 200)
    expected = columns @ kernel((x - points[:, None]) / 0.05).T
    exact = exact_sums(points, x, columns, 0.05, kernel)
    np.testing.assert_allclose(exact, expected, rtol=1e-12, atol=1e-300)


class TestBandwidth:
    def test_rules(self):
        x = np.random.default_rng(0).normal(size=400)
        sample = score_rows(x, x).sample("cluster")
        scale = robust_scale(x, np.ones(x.size))
        low, high = np.quantile(x, [0.25, 0.75], method="inverted_cdf")
        assert scale == min(x.std(), (high - low) / 1.349)
        gaussian = KERNELS["gaussian"]
        for rule, power in (("rule_of_thumb", 5), ("undersmooth", 4)):
            expected = scale * 400 ** (-1 / power)
            assert choose_bandwidth(rule, sample, gaussian) == pytest.approx(expected)
        wider = choose_bandwidth("undersmooth", sample, KERNELS["epanechnikov"])
        assert wider == pytest.approx(2.2138 * scale * 400**-0.25)

    def test_counts_clusters_not_rows(self):
        x, cluster = np.random.default_rng(0).random(1000), np.repeat(range(10), 100)
        sample = score_rows(x, x, cluster=cluster).sample("cluster")
        found = choose_bandwidth("rule_of_thumb", sample, KERNELS["gaussian"])
        assert found == pytest.approx(robust_scale(x, np.ones(1000)) * 10**-0.2)

    def test_outliers_and_ties_keep_a_scale(self):
        x = np.concatenate([np.linspace(0, 1, 99), [1e6]])
        alike = np.ones(100)
        assert robust_scale(x, alike) < 1
        ties = np.array([0.0] * 80 + [1.0] * 10 + [2.0] * 10)
        assert robust_scale(ties, alike) == pytest.approx(ties.std())
        assert robust_scale(np.full(5, 0.1), np.ones(5)) == 0

    @pytest.mark.parametrize(("n_columns", "work"), [(1, 0), (1, 1 << 22), (2, 0)])
    @pytest.mark.parametrize("sizes", [[1, 5, 2, 4, 3, 3] * 2, [70, 90, 65, 3, 1]])
    def test_leaves_whole_clusters_out(self, n_columns, work, sizes, monkeypatch):
        monkeypatch.setattr(_kernels, "_EXACT_WORK", work)  # 0: the sums are fast
        rng = np.random.default_rng(2)
        cluster = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        x = rng.random(cluster.size)
        y = x + rng.normal(size=len(sizes))[cluster]
        sample = score_rows(y, x, cluster=cluster).sample("cluster")
        X, h = sample.x[:, None] * np.eye(1, n_columns), np.full(n_columns, 0.2)
        found = leave_cluster_out_error(h, X, sample, KERNELS["gaussian"])
        rows = y.tolist(), x.tolist(), cluster.tolist()
        expected = naive.leave_cluster_out_error(*rows, 0.2)
        assert found == pytest.approx(expected, rel=1e-7)
