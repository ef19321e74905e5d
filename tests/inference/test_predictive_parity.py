"""Curves of groups and the test of their equality."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import special, stats
from sklearn.preprocessing import SplineTransformer
from statsmodels.stats.multitest import multipletests

from skrankfair._estimates import arrays
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import predictive_parity_test
from skrankfair.smoothing import _curve_pairs
from tests.reference import predictive_parity as naive

GRID = np.linspace(0.15, 0.85, 8)
FIXED = {"grid": GRID, "bandwidth": 0.2}
PAPER = {"curve": "nadaraya_watson"}
pytestmark = pytest.mark.filterwarnings("ignore:.*'nadaraya_watson' rejects")


def rows(seed=0, n_clusters=40, labels="abc", mixed=True):
    """Return columns; a cluster has rows of several groups if `mixed`."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), 1 + rng.poisson(3, n_clusters))
    cluster = rng.permutation(cluster)
    size = cluster.size if mixed else n_clusters
    group = rng.choice(list(labels), size=size)
    group = group if mixed else group[cluster]
    s = rng.random(cluster.size)
    own = 0.2 * rng.normal(size=n_clusters)[cluster]
    y = (rng.random(cluster.size) < s + own).astype(float)
    return y, s, group, cluster


def compared(y, s, group, cluster=None, **options):
    """Return the test of columns."""
    return predictive_parity_test(
        y, s, sensitive_features=group, cluster=cluster, **options
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"reference": "b"}, {"contrasts": "rest"}, {"overlap": True}],
    ids=str,
)
@pytest.mark.parametrize("cluster_weight", ["cluster", "row"])
def test_differences_and_errors_are_those_of_the_reference(options, cluster_weight):
    y, s, group, cluster = rows()
    weight = np.random.default_rng(1).integers(0, 3, y.size)
    features, n_contrasts, options = group, 3 - ("reference" in options), {**options}
    if options.pop("overlap", False):
        features, n_contrasts = np.stack([group == "a", group != "b"], axis=1), 2
    data = y.tolist(), s.tolist(), cluster.tolist()
    for w in (None, weight):
        options |= {"cluster_weight": cluster_weight, "sample_weight": w}
        t = compared(y, s, features, cluster, **options, **PAPER, **FIXED)
        assert len(t.contrasts) == n_contrasts
        given = GRID, 0.2, "gaussian", cluster_weight, None if w is None else w.tolist()
        for i, (a, b) in enumerate(t.contrasts):
            first = features[:, a] if features.ndim > 1 else group == a
            second = ~first if b == "rest" else group == b
            both = first.tolist(), second.tolist()
            difference, covariance = naive.contrast(*data, *both, *given)
            np.testing.assert_allclose(t.difference[i], difference, rtol=1e-10)
            np.testing.assert_allclose(
                t.difference_standard_error[i] ** 2, np.diag(covariance), rtol=1e-9
            )
            curve = naive.nadaraya_watson(*data, both[0], *given)
            np.testing.assert_allclose(t.curves[t.groups.index(a)], curve, rtol=1e-10)


@pytest.mark.parametrize("cluster_weight", ["cluster", "row"])
@pytest.mark.parametrize("binary", [True, False])
def test_the_score_test_is_that_of_the_reference(cluster_weight, binary):
    y, s, group, cluster = rows(n_clusters=120, labels="ab")
    if not binary:
        y = y + np.random.default_rng(1).exponential(size=y.size)
    weight = np.random.default_rng(1).integers(0, 3, y.size)
    for w in (None, weight):
        options = {"cluster_weight": cluster_weight, "sample_weight": w, **FIXED}
        t = compared(y, s, group, cluster, **options)
        assert t.compared.all()
        for j, point in enumerate(GRID):
            difference, error = naive.score_contrast(
                *(y, s, cluster, group == "a", group == "b", point, 0.2),
                cluster_weight=cluster_weight,
                w=w,
            )
            assert t.difference[0, j] == pytest.approx(difference, rel=1e-8)
            assert t.difference_standard_error[0, j] == pytest.approx(error, rel=1e-8)


def test_the_difference_is_that_of_weighted_least_squares():
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    y, s, group, _ = rows(n_clusters=120, labels="ab")
    t = compared(y, s, group, **FIXED)
    for j, point in enumerate(GRID):
        u = s - point
        design = np.column_stack([np.ones(s.size), u, u**2, group == "a"])
        near = np.exp(-0.5 * (u / 0.2) ** 2)
        fit = sm.WLS(y, design, weights=near).fit()
        assert t.difference[0, j] == pytest.approx(fit.params[3], rel=1e-8)
        for g, name in enumerate("ab"):
            own = group == name
            fit = sm.WLS(y[own], design[own, :3], weights=near[own]).fit(cov_type="HC0")
            assert t.curves[g, j] == pytest.approx(fit.params[0], rel=1e-8)
            scaled = fit.bse[0] * np.sqrt(own.sum() / (own.sum() - 1))
            assert t.standard_error[g, j] == pytest.approx(scaled, rel=1e-6)


def test_few_scores_are_compared_one_by_one():
    rng = np.random.default_rng(0)
    s = rng.integers(1, 11, 2000) / 10
    group, y = rng.choice(["a", "b"], size=2000), rng.random(2000) < s
    t = compared(y, s, group)
    np.testing.assert_allclose(t.grid, np.arange(1, 11) / 10)
    assert t.compared[0].tolist() == [True] * 9 + [False]  # there all outcomes are 1
    for j, score in enumerate(t.grid[:-1]):
        a, b = (y[(s == score) & (group == g)] for g in "ab")
        assert t.difference[0, j] == pytest.approx(a.mean() - b.mean())
        both = np.concatenate([a, b]).var() * (1 / a.size + 1 / b.size)
        error = pytest.approx(np.sqrt(both), rel=0.02)
        assert t.difference_standard_error[0, j] == error


def test_curves_and_bands_of_shares_are_shares():
    rng = np.random.default_rng(0)
    s, group = rng.beta(1, 3, 900), rng.choice(["a", "b"], p=[0.1, 0.9], size=900)
    t = compared(rng.random(900) < s, s, group)
    for kind in ("pointwise", "simultaneous"):
        low, high = t.curve_band(kind=kind)
        known = ~np.isnan(t.curves)
        np.testing.assert_array_equal(~np.isnan(low), known)
        assert ((low >= 0) & (high <= 1))[known].all()
        assert (low < high)[known].all()
    low, high = t.band()
    assert (np.abs(np.stack([low, high])[:, t.compared]) <= 1).all()


class TestPValues:
    def test_pointwise_has_welchs_degrees_of_freedom(self):
        y, s, group, cluster = rows(labels="ab")
        t = compared(y, s, group, cluster, **PAPER, **FIXED)
        variance, df = t.standard_error**2, np.zeros((2, GRID.size))
        for g, j in itertools.product((0, 1), range(GRID.size)):
            weights = naive.row_weights(cluster.tolist(), (group == "ab"[g]).tolist())
            sums = naive.cluster_sums(y, s, cluster.tolist(), weights, GRID[j], 0.2)
            mass = np.array([b for _, b in sums.values()])
            df[g, j] = mass.sum() ** 2 / (mass**2).sum() - 1
        df = variance.sum(axis=0) ** 2 / (variance**2 / df).sum(axis=0)
        np.testing.assert_allclose(t.df[0], df, rtol=1e-9)
        z = t.difference[0] / t.difference_standard_error[0]
        p = 2 * special.stdtr(df, -np.abs(z))
        np.testing.assert_allclose(t.pointwise_pvalues[0], p, rtol=1e-9)

    @pytest.mark.parametrize("correction", ["bonferroni", "holm", "fdr_bh"])
    def test_corrections_are_those_of_statsmodels(self, correction):
        y, s, group, cluster = rows()
        t = compared(y, s, group, cluster, correction=correction, **FIXED)
        expected = multipletests(t.pointwise_pvalues.ravel(), method=correction)[1]
        np.testing.assert_allclose(t.pvalues.ravel(), expected)
        of_gaps = 3 * t.level_and_slope_pvalues.min()
        assert t.pvalue == min(1, 2 * min(expected.min(), of_gaps))

    def test_level_and_slope_are_those_of_the_naive_score_test(self):
        y, s, group, cluster = rows(n_clusters=120, labels="ab")
        t = compared(y, s, group, cluster, cluster_weight="row", grid=GRID)
        at = (s - GRID[0]) / np.ptp(GRID)
        inside = (at >= 0) & (at <= 1)
        y, at, group, cluster = (v[inside] for v in (y, at, group, cluster))
        in_a = group == "a"
        knots = np.quantile((GRID - GRID[0]) / np.ptp(GRID), np.linspace(0, 1, 6))
        spline = SplineTransformer(knots=knots[:, None]).fit_transform(at[:, None])
        columns = np.column_stack([y, in_a, in_a * at])
        residual = columns - spline @ np.linalg.lstsq(spline, columns)[0]
        score = residual[:, :1] * residual[:, 1:]
        of_clusters = np.zeros((120, 2))
        np.add.at(of_clusters, cluster, score)
        independent = residual[:, 1:].T @ residual[:, 1:] * np.mean(residual[:, 0] ** 2)
        total, sizes = score.sum(0), [np.bincount(cluster, w) for w in (in_a, ~in_a)]
        statistic = min(
            total @ np.linalg.solve(v, total) / 2
            for v in (independent, of_clusters.T @ of_clusters)
        )
        effective = min(n.sum() ** 2 / (n**2).sum() for n in sizes)
        expected = stats.f.sf(statistic, 2, effective - 1)
        np.testing.assert_allclose(t.level_and_slope_pvalues, [expected], rtol=1e-8)

    def test_sup_t_is_the_largest_of_correlated_normals(self):
        columns = rows()
        t = compared(*columns, **PAPER, **FIXED)
        # Draw what the contrasts are made of by another route.
        size = 3 * GRID.size
        covariance = np.block(
            [[t.sums.covariance(i, j) for j in range(3)] for i in range(3)]
        )
        rng = np.random.default_rng(5)
        draws = rng.multivariate_normal(np.zeros(size), covariance, 100_000)
        draws = draws.reshape(-1, 3, GRID.size)
        pairs = [(0, 1), (0, 2), (1, 2)]
        z = np.stack([draws[:, a] - draws[:, b] for a, b in pairs], axis=1)
        largest = np.abs(z / t.difference_standard_error).max((1, 2))
        deviate = stats.norm.isf(t.pointwise_pvalues.min() / 2)
        assert t.statistic == pytest.approx(deviate)
        # Two simulations, of 20000 and of 100000.
        p = (largest >= deviate).mean()
        tolerance = 4 * np.sqrt(p * (1 - p) * (1 / 20_000 + 1 / 100_000))
        assert t.pvalue == pytest.approx(p, abs=tolerance)
        assert (t.pvalues >= t.pointwise_pvalues).all()
        strict = compared(*columns, correction="bonferroni", **PAPER, **FIXED)
        assert t.pvalue < strict.pvalue

    def test_bands_reject_where_the_test_does(self):
        y, s, group, cluster = rows(1, 400, "ab", mixed=False)
        y = np.where(group == "a", 1 - (1 - y) * (s < 0.5), y)
        for correction in ("sup_t", "bonferroni"):
            t = compared(y, s, group, cluster, correction=correction)
            low, high = t.band()
            outside = (low > 0) | (high < 0)
            sure = np.abs(t.pvalues - 0.05) > 0.005
            np.testing.assert_array_equal(outside[sure], t.rejected[sure])
            assert t.rejected.any()
            assert not t.rejected.all()
        assert (t.band(kind="pointwise").low > low).all()


def test_shift_of_outcomes_and_scale_of_scores():
    y, s, group, cluster = rows()
    a = compared(y, s, group, cluster)
    b = compared(5 + 2 * y, 3 * s - 1, group, cluster)
    np.testing.assert_allclose(2 * a.difference, b.difference, atol=1e-9)
    np.testing.assert_allclose(a.pvalues, b.pvalues, atol=1e-3)


class TestUndefined:
    def test_group_with_one_cluster(self):
        y, s, group, cluster = rows(labels="ab")
        group = np.where(cluster == 0, "z", group)
        with pytest.warns(UndefinedMetricWarning, match="fewer than two clusters: z"):
            t = compared(y, s, group, cluster, **FIXED)
        assert np.isnan(t.curves[2]).all()
        assert np.isnan(t.difference[1:]).all()
        others = (column[group != "z"] for column in (y, s, group, cluster))
        alone = compared(*others, **FIXED)
        np.testing.assert_allclose(t.difference[0], alone.difference[0])
        assert t.pvalue == pytest.approx(alone.pvalue, abs=0.01)
        assert "a - z: too little data" in repr(t)

    def test_grid_outside_the_support(self):
        y, s, group, _ = rows(labels="ab")
        with pytest.warns(UndefinedMetricWarning, match="on the whole grid.*for a, b"):
            t = compared(y, s, group, grid=[-3.0, 7.0], bandwidth=0.1)
        assert np.isnan(t.pvalue)
        assert np.isnan(t.statistic)
        assert not t.rejected.any()
        assert np.isnan(t.band().low).all()

    def test_point_outside_the_support_of_one_group(self):
        y, s, group, _ = rows(labels="ab")
        s = np.where(group == "a", s / 2, s)
        t = compared(y, s, group, grid=[0.3, 0.8], bandwidth=0.1)
        assert np.isnan(t.curves[0]).tolist() == [False, True]
        assert np.isnan(t.difference[0]).tolist() == [False, True]
        assert not np.isnan(t.pvalue)
        default = compared(y, s, group)
        assert default.grid.max() <= s[group == "a"].max()
        assert not np.isnan(default.difference).any()

    def test_one_cluster_and_one_group(self):
        y, s, group, _ = rows(labels="ab")
        with pytest.warns(UndefinedMetricWarning, match="two clusters: a, b"):
            t = compared(y, s, group, [0] * y.size, **FIXED)
        assert np.isnan(t.pvalue)
        with pytest.warns(UndefinedMetricWarning, match="for one group: x"):
            t = compared(y, s, ["x"] * y.size)
        assert np.isnan(t.pvalue)
        assert t.difference.shape == (0, 50)
        assert "no test, since no two groups have enough data" in repr(t)
        assert t.curve_band().low.shape == (1, 50)

    def test_a_point_that_rests_on_one_cluster_has_no_test(self):
        y = np.array([0.0, 1, 0, 1, 1, 1])
        s = np.array([0.1, 0.2, 0.3, 0.9, 0.95, 0.92])
        group = np.array(list("ababab"))
        cluster = [0, 1, 2, 3, 4, 4]
        with pytest.warns(UndefinedMetricWarning, match=r"two clusters near\) for b"):
            t = compared(y, s, group, cluster, grid=[0.2], bandwidth=0.02, **PAPER)
        # Nearly all of the weight is that of one row, whose error seems to be 0.
        assert np.isnan(t.pvalue)

    def test_too_few_near_any_point(self):
        y, s, group, _ = rows(n_clusters=3, labels="ab")
        with pytest.warns(UndefinedMetricWarning, match="5 effective clusters"):
            t = compared(y, s, group, **FIXED)
        assert np.isnan(t.pvalue)
        assert not t.compared.any()
        assert not t.rejected.any()

    def test_unanimous_points_are_left_out(self):
        """All outcomes below 0.3 are 0: there is no error, and nothing to compare."""
        rng = np.random.default_rng(0)
        s, group = rng.random(600), rng.choice(["a", "b"], size=600)
        y = (rng.random(600) < s) & (s > 0.3)
        t = compared(y, s, group, grid=[0.1, 0.6], bandwidth=0.02)
        assert t.compared.tolist() == [[False, True]]
        assert "compared 0.6 to 0.6, too little data at 1 points" in repr(t)

    def test_no_variation_at_all(self):
        _, s, group, _ = rows(labels="ab")
        t = compared(np.ones(s.size), s, group)
        assert t.pvalue == 1
        assert t.statistic == 0
        assert compared(group == "a", s, group).pvalue < 1e-3


def test_the_means_of_the_paper_warn_and_name_the_default():
    y, s, group, cluster = rows()
    with pytest.warns(UserWarning, match="to 88%.*curve='local_quadratic'") as caught:
        compared(y, s, group, cluster, **PAPER)
    assert [w.category for w in caught] == [UserWarning]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared(y, s, group, cluster)


RESTS = {"grid": np.linspace(0.2, 0.8, 5), "n_resamples": 300}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cluster": np.arange(600) // 3},
        {"cluster": np.arange(600) // 3, "cluster_weight": "row"},
        {"sample_weight": np.arange(600) % 2 + 1.0},
        {"curve": "nadaraya_watson", "cluster": np.arange(600) // 3},
    ],
)
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
def test_many_rests_one_at_a_time_are_those_of_all_at_once(monkeypatch, options):
    rng = np.random.default_rng(0)
    score = rng.random(600)
    columns = {"y_true": rng.random(600) < score, "y_score": score}
    member = rng.random((600, 5)) < 0.3
    member[:, 3], member[:, 4] = True, False  # groups of everyone and of nobody
    columns |= {"sensitive_features": member} | options

    def compared(rows, together, **more):
        monkeypatch.setattr(_curve_pairs, "MOST_TOGETHER", together)
        chosen = {
            name: value[rows] if isinstance(value, np.ndarray) else value
            for name, value in columns.items()
        }
        return predictive_parity_test(**chosen, **RESTS, **more)

    whole = slice(None)
    expected, many = compared(whole, 32), compared(whole, 0)
    assert many.bandwidth == expected.bandwidth
    given = {"bandwidth": many.bandwidth}
    few = compared(slice(300, None), 32, **given)
    parts = compared(slice(300), 0, **given)
    for found in (many, parts + few, few + parts, sum([parts, few])):
        assert found.groups == expected.groups
        for name in (
            *("curves", "standard_error", "difference", "difference_standard_error"),
            *("df", "effective_clusters", "pointwise_pvalues"),
        ):
            one, other = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-10, err_msg=name)
        for name in ("active", "bars"):
            one, other = getattr(found.sums, name), getattr(expected.sums, name)
            np.testing.assert_array_equal(one, other)
        # Contrasts that count as independent are rejected at most as often.
        assert found.pvalue >= expected.pvalue - 0.03
        np.testing.assert_allclose(found.curve_band(), expected.curve_band(), rtol=1e-6)


def test_more_curves_than_memory_allows_are_refused(monkeypatch):
    monkeypatch.setattr(arrays, "memory_limit", lambda: 1e4)
    y, s, group, _ = rows()
    with pytest.raises(ValueError, match="covariance of 3 curves.*compare fewer"):
        compared(y, s, group, **FIXED, **PAPER)


def test_frame_has_a_row_a_contrast_and_point():
    y, s, group, _ = rows()
    t = compared(y, s, group, **FIXED)
    frame = t.to_frame()
    assert len(frame) == 3 * GRID.size
    assert frame["a"].tolist()[:: GRID.size] == ["a", "a", "b"]
    np.testing.assert_array_equal(frame["difference"], t.difference.ravel())
    np.testing.assert_array_equal(frame["band_low"], t.band().low.ravel())
    np.testing.assert_array_equal(frame["pvalue_corrected"], t.pvalues.ravel())
