"""Marginal outcomes at a threshold, and the test of their equality."""

from functools import partial

import numpy as np
import pytest
from scipy import special

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import marginal_outcome_test
from tests.inference.test_predictive_parity import rows as clustered

T, H = 0.4, 0.4
rows = partial(clustered, n_clusters=200, labels="ab")


def compared(y, s, group, cluster=None, **options):
    """Return the test of columns."""
    options = {"sensitive_features": group, "threshold": T, **options}
    return marginal_outcome_test(y, s, cluster=cluster, **options)


def value_at_threshold(weight, s, y, boundary):
    """Weighted least squares of the outcome on a constant or a quadratic.

    The value of a line less its bias, estimated with the same bandwidth, is that of a
    quadratic (Calonico, Cattaneo and Titiunik 2014, remark 7).
    """
    if boundary == "constant":
        return np.average(y, weights=weight)
    root = np.sqrt(weight)
    design = np.column_stack([np.ones(s.size), s - T, (s - T) ** 2])
    return np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0][0]


def naive(y, s, cluster, boundary, counts):
    """Fit the rows above; each cluster weighs as often as it counts."""
    y, s, cluster = (column[s >= T] for column in (y, s, cluster))
    share = counts[cluster] / np.bincount(cluster)[cluster]
    weight = share * np.maximum(1 - ((s - T) / H) ** 2, 0)
    return value_at_threshold(weight, s, y, boundary)


@pytest.mark.parametrize("boundary", ["constant", "local_linear"])
def test_value_and_error_are_those_of_weighted_regression(boundary):
    y, s, group, cluster = rows()
    t = compared(y, s, group, cluster, bandwidth=H, boundary=boundary)
    labels = sorted(set(cluster[s >= T]))
    influence = np.zeros((2, len(labels)))
    for g, name in enumerate("ab"):
        own = group == name
        data = (y[own], s[own], cluster[own], boundary)
        assert t.outcomes[g] == pytest.approx(naive(*data, np.ones(200)), rel=1e-10)
        for i, m in enumerate(labels):
            # How the value changes when the cluster counts a little more often.
            step = 1e-5 * (np.arange(200) == m)
            more, less = naive(*data, 1 + step), naive(*data, 1 - step)
            influence[g, i] = (more - less) / 2e-5
    assert t.n_clusters == len(labels)
    own = [np.unique(cluster[(group == name) & (s >= T)]).size for name in "ab"]
    factor = np.sqrt([n / (n - 1) for n in own])
    covariance = np.outer(factor, factor) * (influence @ influence.T)
    np.testing.assert_allclose(t.covariance, covariance, rtol=1e-5)
    variance = t.standard_errors**2
    assert (variance >= np.diag(covariance) * (1 - 1e-6)).all()
    error = np.sqrt(variance.sum() - 2 * covariance[0, 1])
    assert t.standard_error[0] == pytest.approx(error, rel=1e-5)
    assert t.difference[0] == np.diff(t.outcomes[::-1])[0]
    df = variance.sum() ** 2 / np.sum(variance**2 / (t.effective_clusters - 1))
    assert t.df[0] == pytest.approx(df)
    z = t.difference[0] / t.standard_error[0]
    assert t.statistic == pytest.approx(z)
    assert t.pvalue == pytest.approx(2 * special.stdtr(df, -abs(z)))
    low, high = t.confidence_interval()
    quantile = special.stdtrit(df, 0.975)
    assert high[0] - low[0] == pytest.approx(2 * quantile * t.standard_error[0])


def test_the_variance_is_at_least_that_of_outcomes_with_one_mean():
    """Eight of a small group passed, and all of them repaid: that is no certainty."""
    rng = np.random.default_rng(0)
    s, group = rng.uniform(0.5, 1, 608), np.repeat(["a", "b"], [600, 8])
    y = np.where(group == "b", 1.0, rng.random(608) < 0.7)
    options = {"bandwidth": 0.5, "kernel": "uniform", "boundary": "constant"}
    t = compared(y, s, group, threshold=0.5, **options)
    mean = [y[group == g].mean() for g in "ab"]
    np.testing.assert_allclose(t.outcomes, mean)
    np.testing.assert_allclose(t.effective_clusters, [600, 8])
    common = np.average(mean, weights=[600, 8])
    assert t.standard_errors[1] == pytest.approx(np.sqrt(common * (1 - common) / 8))
    assert t.pvalue > 0.05
    low, high = t.outcome_interval()
    # Clopper and Pearson's interval of eight of eight, the tail that of Student's t.
    assert low[1] == pytest.approx(special.ndtr(-special.stdtrit(7, 0.975)) ** (1 / 8))
    assert high[1] == 1


# Printed by version 2.1.1 of the package rdrobust on PyPI, the side above the cutoff:
#   r = rdrobust(y, s, c=threshold, h=h, b=h, kernel=kernel, masspoints="off",
#                vce="cr1" if clustered else "hc0", cluster=cluster or None)
#   r.tau_bc[1], r.V_rb_r[0, 0]
RDROBUST = [
    (0, False, "epanechnikov", 0.3, 0.4, 0.4404011088921821, 0.015539055767284805),
    (1, False, "uniform", 0.25, 0.5, 0.3830686128177287, 0.017733350148977922),
    (2, False, "epanechnikov", 0.45, 0.2, 0.5295907132630706, 0.009085474910510281),
    (3, True, "epanechnikov", 0.4, 0.3, 0.43151366829652005, 0.007628968133548477),
    (4, True, "uniform", 0.5, 0.4, 0.4196083211523456, 0.009089690133404042),
]


@pytest.mark.parametrize(
    ("seed", "clustered", "kernel", "h", "threshold", "value", "variance"), RDROBUST
)
def test_bias_corrected_value_and_robust_variance_are_those_of_rdrobust(
    seed, clustered, kernel, h, threshold, value, variance
):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(150), 4) if clustered else np.arange(600)
    own = rng.normal(size=600)[cluster]
    s = rng.random(600)
    y = (rng.random(600) < 0.2 + 0.5 * s + 0.05 * own).astype(float)
    options = {"threshold": threshold, "bandwidth": h, "kernel": kernel}
    with pytest.warns(UndefinedMetricWarning, match="there is only one group"):
        t = compared(y, s, ["all"] * 600, cluster, cluster_weight="row", **options)
    assert t.outcomes[0] == pytest.approx(value, rel=1e-9)
    # Both inflate the variance for the number of clusters, each in its own way.
    expected = variance * t.n_clusters / (t.n_clusters - 1)
    if clustered:
        near = (s >= threshold) & (s <= threshold + h)
        n, m = near.sum(), np.unique(cluster[near]).size
        expected *= (n - 3) / (n - 1) * (m - 1) / m
    assert t.covariance[0, 0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("boundary", ["constant", "local_linear"])
def test_effective_clusters_are_those_of_the_weights_of_the_value(boundary):
    y, s, group, cluster = rows(1)
    t = compared(y, s, group, cluster, bandwidth=H, boundary=boundary)
    for g, name in enumerate("ab"):
        own = (group == name) & (s >= T)
        sizes = np.bincount(cluster[own], minlength=200)[cluster[own]]
        weight = np.maximum(1 - ((s[own] - T) / H) ** 2, 0) / sizes
        if boundary == "local_linear":
            design = np.vander(s[own] - T, 3, increasing=True)
            normal = (design * weight[:, None]).T @ design
            weight *= design @ np.linalg.inv(normal)[0]
        by_cluster = np.bincount(cluster[own], weight)
        effective = by_cluster.sum() ** 2 / np.sum(by_cluster**2)
        assert t.effective_clusters[g] == pytest.approx(effective, rel=1e-8)


def test_unknown_outcomes_below_change_nothing():
    y, s, group, cluster = rows()
    known = s >= T
    expected = compared(y, s, group, cluster)
    unknown = np.where(known, y, np.nan), s, group, cluster
    for columns in (unknown, [c[known] for c in (y, s, group, cluster)]):
        other = compared(*columns)
        for name in ("bandwidth", "pvalue", "n_clusters"):
            assert getattr(other, name) == getattr(expected, name)
        np.testing.assert_array_equal(other.difference, expected.difference)


def test_low_scores_that_are_good_are_those_of_negated_ones():
    """Loans are given at a low risk; who got none has no outcome."""
    y, s, group, cluster = rows(labels="abc")
    s = s.round(1).astype(np.float32)  # as such 0.4 is more than 0.4
    y = np.where(s > T, np.nan, y)
    low = compared(y, s, group, cluster, favorable="low")
    high = compared(y, -s, group, cluster, threshold=-T)
    assert (low.threshold, low.pvalue) == (T, high.pvalue)
    assert low.n_clusters == np.unique(cluster[s <= T]).size
    np.testing.assert_array_equal(low.outcomes, high.outcomes)
    np.testing.assert_array_equal(low.difference, high.difference)
    assert "threshold=0.4, " in repr(low)
    assert repr(low).split(chr(10))[0].endswith("favorable=low)")
    for threshold, message in (
        (0.5, "NaN only above the threshold; .*or below 0.5"),
        (-1.0, "rows at or below it; the smallest y_score"),
    ):
        with pytest.raises(ValueError, match=message):
            compared(y, s, group, cluster, threshold=threshold, favorable="low")
    with pytest.raises(ValueError, match="bandwidth and options"):
        low + high


def test_infra_marginal_means_mislead_and_the_test_does_not():
    """Both groups are held to one standard; one has more who are far above it."""
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], size=20_000)
    chance = np.where(group == "a", *rng.beta([[2], [4]], 2, (2, group.size)))
    y = (rng.random(group.size) < chance).astype(float)
    t = compared(y, chance, group, threshold=0.5)
    above = t.inframarginal.contrast("a", "b")
    for i, g in enumerate("ab"):
        accepted = (group == g) & (chance >= 0.5)
        assert t.inframarginal.estimate[i] == pytest.approx(y[accepted].mean())
    assert above.pvalue < 1e-6
    assert above.estimate < 0
    assert t.pvalue > 0.05


def test_several_groups():
    columns = rows(labels="abc")
    t = compared(*columns)
    assert t.contrasts == (("a", "b"), ("a", "c"), ("b", "c"))
    strict = compared(*columns, correction="bonferroni")
    pointwise = 2 * special.stdtr(t.df, -np.abs(t.difference / t.standard_error))
    np.testing.assert_allclose(strict.pvalues, np.minimum(3 * pointwise, 1))
    assert (t.pvalues >= pointwise).all()
    assert t.pvalue == t.pvalues.min() < strict.pvalue
    one = compared(*columns, reference=np.str_("b"))
    assert one.contrasts == (("a", "b"), ("c", "b"))
    frame = t.to_frame()
    assert frame["a"].tolist() == ["a", "a", "b"]
    above = t.inframarginal.estimate
    differences = [above[0] - above[1], above[0] - above[2], above[1] - above[2]]
    np.testing.assert_allclose(frame["inframarginal_difference"], differences)


class TestUndefined:
    def test_group_without_rows_above(self):
        y, s, group, cluster = rows(labels="abc")
        s = np.where(group == "c", s * T / 2, s)
        with pytest.warns(UndefinedMetricWarning, match="without rows: c"):
            t = compared(y, s, group, cluster)
        assert np.isnan(t.outcomes).tolist() == [False, False, True]
        assert np.isnan(t.pvalues).tolist() == [False, True, True]
        assert not np.isnan(t.pvalue)
        assert "c: too little data" in repr(t)

    def test_group_that_no_kernel_reaches(self):
        """A Gaussian is above 0 anywhere, but its square is not."""
        y, s, group, cluster = rows()
        s = np.where(group == "b", 3.0, s)
        options = {"kernel": "gaussian", "bandwidth": 0.1, "threshold": T}
        with pytest.warns(UndefinedMetricWarning, match="5 effective clusters.*in: b"):
            t = compared(y, s, group, cluster, **options)
        assert np.isnan([t.outcomes, t.standard_errors]).tolist() == [[False, True]] * 2

    def test_group_with_one_cluster(self):
        y, s, group, cluster = rows()
        cluster = np.where(group == "b", 0, cluster)
        with (
            pytest.warns(UndefinedMetricWarning, match="too few clusters, in: b"),
            pytest.warns(UndefinedMetricWarning, match="5 effective clusters.*in: b"),
        ):
            t = compared(y, s, group, cluster)
        assert np.isnan(t.pvalue)
        assert np.isnan(t.outcomes).tolist() == [False, True]
        assert np.isnan(t.outcome_interval().low).tolist() == [False, True]

    def test_too_few_of_one_outcome(self):
        """Two of 200 did not repay: nothing can be said of six of a group."""
        y = 1.0 - np.isin(np.arange(206), [3, 150])
        s = np.linspace(0.5, 1, 206)
        group = np.where(np.arange(206) % 35 == 0, "b", "a")
        options = {"boundary": "constant", "bandwidth": 1.0, "threshold": 0.5}
        with pytest.warns(UndefinedMetricWarning, match="too much alike"):
            t = compared(y, s, group, **options)
        assert np.isnan(t.pvalue)
        assert not np.isnan(t.outcomes).any()

    def test_one_or_two_scores_tell_the_value_at_one_of_them_only(self):
        y, group = np.array([0.0, 1, 1, 1, 0, 0] * 10), list("ababab") * 10
        for s in (np.full(60, 0.5), np.repeat([0.5, 0.7], 30)):
            t = compared(y, s, group, threshold=0.5, bandwidth=0.4)
            np.testing.assert_allclose(t.outcomes, [1 / 3, 2 / 3])
            with pytest.warns(UndefinedMetricWarning, match="distinct.*in: a, b"):
                t = compared(y, s, group, threshold=0.45, bandwidth=0.4)
            assert np.isnan(t.outcomes).all()


def test_an_unknown_outcome_is_named_by_its_row():
    columns = [0, 1, np.nan, 1], [0.1, 0.5, 0.6, 0.7], list("abab")
    with pytest.raises(ValueError, match="row 2 has a score at or above 0.5"):
        compared(*columns, threshold=0.5, sample_weight=[0, 1, 1, 1])
