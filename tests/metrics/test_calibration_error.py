"""How far scores are from mean outcomes: three estimates of it."""

import numpy as np
import pytest
from scipy import stats

from skrankfair.inference import compare
from skrankfair.metrics import calibration_error
from skrankfair.smoothing import nadaraya_watson
from tests.metrics.test_calibration import METHODS
from tests.metrics.test_calibration import rows as rows_of_queries
from tests.reference import predictive_parity as naive


def rows(seed=0, n_users=30, **options):
    """Return outcomes, scores, groups and clusters."""
    return rows_of_queries(seed, n_users, **options)[:4]


def measure(columns, part=slice(None), **options):
    """Return the result for a part of the columns that `rows` returns."""
    y, s, group, cluster = (None if c is None else c[part] for c in columns)
    return calibration_error(y, s, sensitive_features=group, cluster=cluster, **options)


class TestReference:
    @pytest.mark.parametrize("kernel", ["gaussian", "tricube", "gaussian4"])
    @pytest.mark.parametrize("cluster_weight", ["cluster", "row"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_smooth(self, kernel, cluster_weight, weighted):
        y, s, group, cluster = rows()
        weight = np.random.default_rng(1).integers(0, 3, y.size) if weighted else None
        options = {"kernel": kernel, "cluster_weight": cluster_weight}
        r = measure(rows(), bandwidth=0.15, sample_weight=weight, **options)
        for g, name in enumerate("ab"):
            error = naive.smooth_error(
                *(y.tolist(), s.tolist(), cluster.tolist(), (group == name).tolist()),
                *(0.15, kernel, cluster_weight),
                None if weight is None else weight.tolist(),
            )
            assert r.estimate[g] == pytest.approx(error, rel=1e-9)

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("bins", [1, 2, 5, 15, 200])
    def test_binned(self, bins, ties):
        y, s, group, _ = rows(ties=ties)
        r = measure(rows(ties=ties), method="binned", bins=bins)
        for g, name in enumerate("ab"):
            own = group == name
            expected = naive.binned_error(y[own].tolist(), s[own].tolist(), bins)
            assert r.estimate[g] == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("ties", [False, True])
    def test_sweep(self, ties):
        found = set()
        for seed in range(12):
            y, s, group, _ = rows(seed, 12, ties=ties)
            r = calibration_error(y, s, sensitive_features=group, method="sweep")
            for g, name in enumerate("ab"):
                own = group == name
                data = y[own].tolist(), s[own].tolist()
                bins = naive.sweep_bins(*data)
                assert r.first_pass["bins"][name] == bins
                expected = naive.binned_error(*data, bins)
                assert r.estimate[g] == pytest.approx(expected, rel=1e-9)
                found.add(bins)
        assert len(found) > 3


@pytest.mark.parametrize(
    ("y", "s", "bins"),
    [
        # Never as many bins as rows, where means never fall.
        ([0, 0, 1, 1], [1, 2, 3, 4], 3),
        ([0.1] * 7, range(7), 6),
        ([1], [1], 1),
        ([0, 1], [1, 2], 1),
        ([1, 0], [1, 2], 1),
        # Four bins fall (0, 1, 1/2, 1); five (0, 0, 1, 0, 1) too; six are not tried.
        ([0, 0, 1, 0, 1, 1], range(6), 3),
        # Two fall, four do not: the first counts.
        ([0, 0, 9, 0, 0, 1, 1, 1], range(8), 1),
    ],
)
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
def test_sweep_by_hand(y, s, bins):
    r = calibration_error(y, s, method="sweep")
    assert r.first_pass["bins"]["all"] == bins == naive.sweep_bins(y, list(s))


def test_lattice_is_the_loop():
    # More rows than the exact sums are for.
    y, s, group, cluster = rows(2, 750)
    options = {"sensitive_features": group, "cluster": cluster, "bandwidth": 0.05}
    r = calibration_error(y, s, **options)
    own = group == "a"
    assert own.sum() ** 2 > 1 << 22
    curve = nadaraya_watson(
        *(y[own], s[own], s[own]), bandwidth=0.05, cluster=cluster[own], method="exact"
    )
    sizes = np.bincount(cluster[own])[cluster[own]]
    expected = np.average((s[own] - curve.estimate) ** 2, weights=1 / sizes)
    assert r.estimate[0] == pytest.approx(np.sqrt(expected), rel=1e-6)
    # The same curve, fitted anew with weights of 1.
    totals = r.sums.refit(np.ones((1, int(r.n_clusters))))[0]
    np.testing.assert_allclose(totals, r.sums.by_group, rtol=1e-6)


@pytest.mark.parametrize("options", [METHODS[0], METHODS[2]], ids=str)
def test_error_is_that_of_leaving_clusters_out(options):
    *columns, cluster = rows()
    columns, labels = (*columns, cluster), np.unique(cluster)
    r = measure(columns, cluster_weight="row", **options)
    if options["method"] == "binned":
        left = [measure(columns, cluster != m, **options).estimate for m in labels]
        present = [len(set(cluster[columns[2] == name])) for name in "ab"]
        change = (left - r.estimate) * np.sqrt((np.array(present) - 1) / present)
        np.testing.assert_allclose(r.covariance, change.T @ change, rtol=1e-9)
        return
    # The curve is linearised, and its linear parts are left out.
    step, influence = 1e-5, []
    for label in labels:
        up, down = (
            measure(
                columns,
                sample_weight=1 + way * (cluster == label),
                cluster_weight="row",
                **options,
            ).estimate
            for way in (step, -step)
        )
        influence.append((up - down) / (2 * step))
    expected = np.sqrt(np.square(influence).sum(axis=0))
    np.testing.assert_allclose(r.standard_error, expected, rtol=0.15)


@pytest.mark.parametrize("method", ["smooth", "binned", "sweep"])
def test_what_noise_would_tell_apart_is_not_compared(method):
    """Noise makes the error of the smaller of two calibrated groups larger."""
    y, s, group, cluster = rows(n_users=60)
    r = measure((y, s, group, cluster), method=method)
    for contrast in (lambda: r.contrast("a", "b"), r.contrasts):
        with pytest.raises(ValueError, match="Use skrankfair.inference.predictive_par"):
            contrast()
    options = {"method": method} | ({"bandwidth": "cv"} if method == "smooth" else {})
    two = [measure((y, x, group, cluster), **options) for x in (s, s**2)]
    if method != "binned":
        with pytest.raises(ValueError, match=r"Use method='binned', or another bandw"):
            compare(*two)


class TestNoise:
    """Intervals know how large noise alone makes the estimate."""

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("bins", [1, 4, 15, 60])
    @pytest.mark.parametrize("clustered", [False, True])
    def test_noise_of_bins_is_the_variance_of_their_means(self, ties, bins, clustered):
        y, s, _, cluster = rows(ties=ties)
        cluster = cluster if clustered else np.arange(y.size)
        r = calibration_error(y, s, cluster=cluster, method="binned", bins=bins)
        place, share = _bins(s, bins)
        noise = 0.0
        for b in range(bins):
            part = np.where(place == b, share, 0.0).sum(1)
            mass = part.sum()
            if mass == 0:
                continue
            gap = part @ (s - y) / mass
            pull = np.bincount(cluster, part * (s - y - gap))
            alone = 1 - np.sum(np.bincount(cluster, part) ** 2) / mass**2
            some = pull @ pull / mass / alone if alone > 1e-9 else mass * gap**2
            noise += some
        found = r.sums.estimate(r.metric.noise)[0]
        assert found == pytest.approx(noise / y.size, rel=1e-9)

    def test_edges_have_the_noise_of_the_same_bins(self):
        _, s, group, _ = rows()
        of_a = np.sort(s[group == "a"])
        inner = of_a[[-(-b * of_a.size // 4) for b in (1, 2, 3)]] - 1e-9
        given = measure(rows(), method="binned", bins=[0, *inner, 1])
        number = measure(rows(), method="binned", bins=4)
        np.testing.assert_allclose(given.estimate[0], number.estimate[0])
        assert given.support.tolist() == [of_a.size, s.size - of_a.size]
        noise = given.sums.estimate(given.metric.noise)[0]
        assert noise == pytest.approx(number.metric.noise.by_group[0], rel=1e-9)

    def test_noise_of_a_curve_is_its_variance_over_clusters(self):
        y, s, _, cluster = rows()
        r = calibration_error(y, s, cluster=cluster, bandwidth=0.1)
        curve = nadaraya_watson(y, s, s, bandwidth=0.1, cluster=cluster)
        sizes = np.bincount(cluster)[cluster]
        expected = np.average(curve.standard_error**2, weights=1 / sizes)
        assert r.metric.noise.by_group[0] == pytest.approx(expected, rel=0.02)

    @pytest.mark.parametrize("method", ["smooth", "binned", "sweep"])
    def test_upper_end_is_at_least_that_of_narrow_bins(self, method):
        """Of 400 clusters 20 bins, which a curve with 20 waves shows."""
        rng = np.random.default_rng(3)
        s = rng.random(400)
        y = (rng.random(400) < 0.5 + 0.4 * np.sin(10 * np.pi * s)).astype(float)
        r = calibration_error(y, s, method=method, bins=2)
        narrow = calibration_error(y, s, method="binned", bins=20)
        noise = narrow.sums.estimate(narrow.metric.noise)[0]
        square = narrow.estimate[0] ** 2 - noise
        reach = stats.t.ppf(0.975, r.df[0])
        end = square + reach * 2 * narrow.estimate[0] * narrow.standard_error[0]
        low, high = (end[0] for end in r.confidence_interval())
        assert low <= r.estimate[0] < high
        assert high == pytest.approx(np.sqrt(end), rel=0.01)
        truth = np.sqrt(np.mean((s - 0.5 - 0.4 * np.sin(10 * np.pi * s)) ** 2))
        assert r.estimate[0] + 1.96 * r.standard_error[0] < truth < high

    def test_a_wide_bandwidth_of_few_clusters_is_no_error(self):
        s, y = np.random.default_rng(0).random((2, 800))
        r = calibration_error(y < s, s, cluster=np.arange(800) % 8)
        assert r.confidence_interval().low[0] == 0

    def test_weights_that_are_no_numbers_of_rows_make_bins(self):
        y, s, _, _ = rows()
        weight = 0.1 + np.arange(y.size) % 7 / 7
        for bins in range(2, 40):
            r = calibration_error(
                y, s, method="binned", bins=bins, sample_weight=weight
            )
            assert np.isfinite(r.confidence_interval()).all()

    def test_disparity_is_bounded_by_the_intervals(self):
        y, s, group, _ = rows(n_users=60)
        r = calibration_error(y, s, sensitive_features=group)
        low, high = r.confidence_interval(0.9)
        assert r.disparity_bound(0.9) == pytest.approx(high.max() - low.min())
        with pytest.raises(ValueError, match="method must be 't' for calibration_err"):
            r.confidence_interval(method="bootstrap")


def _bins(s, bins):
    """Return the bins of each row, shape (n, n), and what part of it is in each.

    Rows of a block of equal scores share the places of the block.
    """
    order = np.argsort(s, kind="stable")
    rank = np.empty(s.size, dtype=int)
    rank[order] = np.arange(s.size)
    same = s[:, None] == s
    return np.broadcast_to(rank * bins // s.size, same.shape), same / same.sum(0)


def test_bins_of_many_groups_are_those_of_each():
    rng = np.random.default_rng(0)
    n, options = 12_000, {"method": "binned", "bins": np.linspace(0, 1, 6)}
    group, score = rng.permutation(n) % 300, rng.random(n)
    columns = (rng.random(n) < score).astype(float), score, group, None
    result = measure(columns, **options)
    parts = [measure(columns, np.arange(n) % 2 == half, **options) for half in (0, 1)]
    for name in ("estimate", "standard_error"):
        whole, total = getattr(result, name), getattr(sum(parts), name)
        np.testing.assert_allclose(total, whole, rtol=1e-12)
    for place in (3, 200):
        alone = measure(columns, group == result.groups[place], **options)
        for name in ("estimate", "standard_error", "df"):
            value = getattr(result, name)[place]
            np.testing.assert_allclose(value, getattr(alone, name)[0], rtol=1e-12)
