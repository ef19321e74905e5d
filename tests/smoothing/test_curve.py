"""The smoothed curve and its covariance, against loops and another library."""

import itertools

import numpy as np
import pytest
from scipy import stats

from skrankfair.smoothing import nadaraya_watson
from skrankfair.smoothing._kernels import KERNELS
from tests.reference import predictive_parity as naive
from tests.smoothing.test_regressor import clustered

GRID = np.linspace(0.1, 0.9, 40)
METHODS = {"exact": 1e-10, "fast": 1e-6}


def assert_close(actual, expected, tolerance):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_curve_and_covariance_are_those_of_the_loops(kernel, method):
    X, y, cluster = clustered()
    s = X[:, 0]
    weight = np.random.default_rng(1).integers(0, 3, y.size).astype(float)
    for rows, w in itertools.product((False, True), (None, weight)):
        cluster_weight = "row" if rows else "cluster"
        f, psi = naive.curve_and_influence(
            *(y, s, cluster.tolist(), [True] * y.size, GRID[::3], 0.3, kernel),
            *(cluster_weight, w),
        )
        covariance = naive.covariance(psi, psi)
        options = {"bandwidth": 0.3, "kernel": kernel, "method": method}
        weights = {"cluster_weight": cluster_weight, "sample_weight": w}
        r = nadaraya_watson(y, s, GRID[::3], cluster=cluster, **weights, **options)
        assert_close(r.estimate, f, METHODS[method])
        assert_close(r.covariance, covariance, METHODS[method])
        assert_close(r.standard_error**2, np.diag(covariance), METHODS[method])
        psi, m = r.influence(), len(r.influence())
        np.testing.assert_allclose(m / (m - 1) * psi.T @ psi, r.covariance, rtol=1e-9)


@pytest.mark.parametrize("bandwidth", [0.2, 0.01])
def test_little_noise_around_large_outcomes_is_kept(bandwidth):
    rng = np.random.default_rng(4)
    s = rng.beta(2, 2, 4000)
    y = 1e3 + s**2 * (s < 0.5) + 1e-6 * rng.normal(size=s.size)
    exact, fast = (
        nadaraya_watson(y, s, GRID, bandwidth=bandwidth, method=method)
        for method in ("exact", "fast")
    )
    # The lattice errs by about 1e-7, and each processor rounds in its own way.
    np.testing.assert_allclose(fast.standard_error, exact.standard_error, rtol=5e-7)


def test_many_rows_are_those_of_few():
    """Blocks of clusters, some longer than a block, add up."""
    rng = np.random.default_rng(3)
    sizes = np.concatenate([rng.integers(1, 20, 3000), [60_000], np.ones(500, int)])
    cluster = np.repeat(np.arange(sizes.size), sizes)
    s = rng.random(cluster.size)
    y = s + rng.normal(size=s.size)
    grid = np.linspace(0.2, 0.8, 7)
    r = nadaraya_watson(y, s, grid, bandwidth=0.1, cluster=cluster)
    share = 1 / sizes[cluster]
    weights = np.exp(-0.5 * ((s[:, None] - grid) / 0.1) ** 2) * share[:, None]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    a = np.add.reduceat(weights * y[:, None], starts)
    b = np.add.reduceat(weights, starts)
    psi = (a - a.sum(0) / b.sum(0) * b) / b.sum(0)
    m = sizes.size
    np.testing.assert_allclose(r.estimate, a.sum(0) / b.sum(0), rtol=1e-7)
    np.testing.assert_allclose(r.covariance, m / (m - 1) * psi.T @ psi, rtol=1e-6)
    np.testing.assert_allclose(
        r.effective_clusters, b.sum(0) ** 2 / (b**2).sum(0), rtol=1e-6
    )


@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")
def test_the_cross_validated_bandwidth_is_near_that_of_statsmodels():
    """Every cluster has one row there, and the curve is that of `KernelReg`."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    rng = np.random.default_rng(5)
    s = rng.random(150)
    y = np.sin(6 * s) + 0.3 * rng.normal(size=150)
    ours = nadaraya_watson(y, s, GRID, bandwidth="cv")
    theirs = KernelReg(y, s, "c", reg_type="lc", bw=[ours.bandwidth])
    np.testing.assert_allclose(ours.estimate, theirs.fit(GRID)[0], rtol=1e-10)

    def error(factor):
        return theirs.cv_loo(np.array([factor * ours.bandwidth]), theirs.est["lc"])

    # No candidate of the grid is better by their criterion.
    assert error(1) <= min(error(2**0.25), error(2**-0.25))


class TestBadInput:
    @pytest.mark.parametrize("bandwidth", [0, -1, np.nan, np.inf, "scott", None, True])
    def test_bandwidth(self, bandwidth):
        with pytest.raises(ValueError, match="bandwidth must be"):
            nadaraya_watson([0, 1], [0, 1], [0.5], bandwidth=bandwidth)

    @pytest.mark.parametrize("rule", ["rule_of_thumb", "undersmooth", "cv"])
    def test_scores_without_spread(self, rule):
        message = f"y_score must have a finite spread for bandwidth='{rule}'"
        for score in ([0.5] * 4, [1e308, 1e308, -1e308, -1e308]):
            with pytest.raises(ValueError, match=message):
                nadaraya_watson([0, 1, 0, 1], score, [0.5], bandwidth=rule)
        curve = nadaraya_watson([0, 1], [0.5, 0.5], [0.5], bandwidth=1.0)
        assert curve.estimate == 0.5
        assert repr(curve).endswith("kernel='gaussian', n_clusters=2.0)")  # no rows

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("kernel", "cosine"),
            ("method", "slow"),
            ("cluster_weight", "user"),
            ("grid", []),
            ("grid", [np.nan]),
            ("y_score", [0.1, np.inf, 0.3]),
            ("y_true", None),
            ("cluster", [1, None, 2]),
            ("cluster", [0, 1]),
            ("sample_weight", [1, -1, 1]),
        ],
    )
    def test_names_the_argument(self, name, value):
        good = {"y_true": [0, 1, 1], "y_score": [0.1, 0.2, 0.3], "grid": [0.2]}
        with pytest.raises(ValueError, match=name):
            nadaraya_watson(**{**good, name: value})

    def test_one_cluster_has_no_error(self):
        r = nadaraya_watson([0, 1], [0.4, 0.6], [0.5], bandwidth=1, cluster=[3, 3])
        assert r.estimate == 0.5
        assert np.isnan(r.standard_error).all()
        assert np.isnan(r.covariance).all()
        far = nadaraya_watson([0, 1, 1], [0, 1, 99], [0.5, 98], bandwidth=0.5)
        assert np.isnan(far.standard_error).tolist() == [False, True]

    def test_extreme_scores(self):
        s = [1e308, -1e308, 5e-324, -0.0, 0.0, 1.0]
        for kernel, method in itertools.product(KERNELS, METHODS):
            options = {"bandwidth": 1e-3, "kernel": kernel, "method": method}
            r = nadaraya_watson([1, 0, 1, 0, 1, 0], s, [0.0, 1e308], **options)
            np.testing.assert_allclose(r.estimate, [2 / 3, 1.0], rtol=1e-9)


class TestInterval:
    def test_of_real_outcomes_is_students(self):
        rng = np.random.default_rng(0)
        s, y = rng.random(200), rng.normal(size=200)
        curve = nadaraya_watson(y, s, [0.2, 0.5])
        reach = stats.t.ppf(0.95, curve.effective_clusters - 1) * curve.standard_error
        ends = [curve.estimate - reach, curve.estimate + reach]
        np.testing.assert_allclose(curve.confidence_interval(0.9), ends)
        with pytest.raises(ValueError, match="confidence_level"):
            curve.confidence_interval(1.0)

    def test_of_shares_is_inside(self):
        nobody = nadaraya_watson(np.zeros(50), np.linspace(0, 1, 50), [0.5])
        low, high = nobody.confidence_interval()
        assert low[0] == 0 < high[0] < 1
