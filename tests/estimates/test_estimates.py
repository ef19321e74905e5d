"""Contrasts of two groups."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from statsmodels.stats.multitest import multipletests

from skrankfair._estimates.leverage import contrast_degrees
from skrankfair.metrics import pairwise_accuracy, pairwise_exposure
from tests.metrics.common import columns, result_of


def ends(result, group, level, df):
    """Interval of a share with the quantile of a contrast."""
    p, error = result.estimate[group], result.standard_error[group]
    margin = stats.t.ppf((1 + level) / 2, df) * error / (p * (1 - p))
    return expit(logit(p) - margin), expit(logit(p) + margin)


def error_of(result, a, c):
    v = result.covariance
    return np.sqrt(v[a, a] + v[c, c] - 2 * v[a, c])


def test_difference_of_two_means(matched):
    contrast = matched.contrast("a", "c")
    error = error_of(matched, 0, 2)
    df = contrast_degrees(
        matched.sums, matched.metric.finalize, np.array([0]), np.array([2])
    )[0]
    assert contrast.estimate == matched.estimate[0] - matched.estimate[2]
    assert contrast.standard_error == pytest.approx(error)
    assert contrast.df == pytest.approx(df)
    assert contrast.statistic == pytest.approx(contrast.estimate / error)
    assert contrast.pvalue == pytest.approx(2 * stats.t.sf(abs(contrast.statistic), df))
    margin = stats.t.ppf(0.95, df) * error
    assert contrast.confidence_interval(0.9) == pytest.approx(
        (contrast.estimate - margin, contrast.estimate + margin)
    )
    assert (contrast.null_value, contrast.name) == (0, "a - c")


def test_difference_of_two_shares(accuracy):
    # Zou and Donner 2008: the ends follow from those of both, and their correlation.
    contrast = accuracy.contrast("a", "c")
    v = accuracy.covariance
    assert contrast.standard_error == pytest.approx(error_of(accuracy, 0, 2))
    rho = v[0, 2] / np.sqrt(v[0, 0] * v[2, 2])
    (a_low, a_high), (c_low, c_high) = (
        ends(accuracy, g, 0.9, contrast.df) for g in (0, 2)
    )
    a, c = accuracy.estimate[[0, 2]]
    expected = []
    for sign, one, other in ((-1, a - a_low, c_high - c), (1, a_high - a, c - c_low)):
        squares = one**2 + other**2 - 2 * rho * one * other
        expected.append(a - c + sign * np.sqrt(squares))
    assert contrast.confidence_interval(0.9) == pytest.approx(tuple(expected))


def test_ratio_of_two_shares(accuracy):
    contrast = accuracy.contrast("a", "c", kind="ratio")
    x, y = accuracy.estimate[[0, 2]]
    slopes = np.array([1 / y, 0, -x / y**2])
    error = np.sqrt(slopes @ accuracy.covariance @ slopes)
    assert contrast.estimate == pytest.approx(x / y)
    assert contrast.standard_error == pytest.approx(error)
    assert (contrast.null_value, contrast.name) == (1, "a / c")
    low, high = contrast.confidence_interval()
    assert 0 < low < x / y < high
    other = accuracy.contrast("c", "a", kind="ratio")
    assert other.confidence_interval() == pytest.approx((1 / high, 1 / low))
    assert other.pvalue == pytest.approx(contrast.pvalue)


def test_ratio_of_two_means():
    # The interval and the test are those of the logarithm.
    result = result_of(2 + np.random.default_rng(0).normal(size=(40, 2)))
    contrast = result.contrast("a", "b", kind="ratio")
    log_error = contrast.standard_error / contrast.estimate
    statistic = np.log(contrast.estimate) / log_error
    assert contrast.statistic == pytest.approx(statistic)
    assert contrast.pvalue == pytest.approx(2 * stats.t.sf(abs(statistic), contrast.df))
    margin = stats.t.ppf(0.975, contrast.df) * log_error
    expected = np.exp(np.log(contrast.estimate) + np.array([-margin, margin]))
    assert contrast.confidence_interval() == pytest.approx(tuple(expected))


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_a_contrast_is_significant_if_its_interval_excludes_the_null(kind):
    for seed in range(6):
        result = pairwise_accuracy(**columns(seed, n_queries=25))
        for a, b in itertools.combinations(result.groups, 2):
            contrast = result.contrast(a, b, kind)
            for level in (0.05, 0.3, 0.6, 0.9):
                low, high = contrast.confidence_interval(1 - level)
                outside = not low <= contrast.null_value <= high
                assert outside == (contrast.pvalue < level)


def test_a_group_that_always_wins_is_not_certain():
    # Ten clusters each; in those of "a" all pairs are won, and no variance is seen.
    query = np.repeat(np.arange(20), 2)
    group = np.where(query < 10, "a", "b")
    score = np.where(query < 15, np.arange(40) % 2, 1 - np.arange(40) % 2)
    result = pairwise_accuracy(
        np.arange(40) % 2, score, sensitive_features=group, qid=query
    )
    assert result.estimate.tolist() == [1.0, 0.5]
    contrast = result.contrast("a", "b")
    low, high = contrast.confidence_interval()
    assert low < 0.5 < high <= 1
    assert 0 < contrast.pvalue < 0.05
    assert (low > 0) == (contrast.pvalue < 0.05)
    ratio = result.contrast("a", "b", "ratio")
    low, high = ratio.confidence_interval()
    assert low < 2 < high
    assert 0 < ratio.pvalue < 0.05


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_bootstrap_of_a_contrast(accuracy, kind):
    contrast = accuracy.contrast("b", "a", kind)
    values = accuracy.resampled(200, 3)
    x, y = values[:, 1], values[:, 0]
    values = x - y if kind == "difference" else x / y
    interval = contrast.confidence_interval(
        0.9, method="percentile", n_resamples=200, random_state=3
    )
    assert interval == pytest.approx(tuple(np.quantile(values, [0.05, 0.95])))
    assert all(type(end) is float for end in interval)
    studentised = contrast.confidence_interval(
        0.9, method="bootstrap", n_resamples=200, random_state=3
    )
    assert studentised == pytest.approx(interval, abs=contrast.standard_error)


def test_contrast_of_a_group_with_itself(accuracy):
    difference = accuracy.contrast("a", "a")
    assert (difference.estimate, difference.standard_error) == (0, 0)
    assert np.isnan(difference.confidence_interval()).all()
    assert repr(difference).endswith("(no interval)")
    assert difference.pvalue == 1
    ratio = accuracy.contrast("a", "a", kind="ratio")
    assert (ratio.estimate, ratio.standard_error, ratio.pvalue) == (1, 0, 1)


def test_contrast_of_mirrored_groups():
    # Exposures of two groups sum to 1: their difference has twice the error.
    result = pairwise_exposure(**columns(labels="ab"))
    contrast = result.contrast("a", "b")
    assert contrast.standard_error == pytest.approx(2 * result.standard_error[0])
    assert (contrast.pvalue < 0.05) == (result.test().pvalue[0] < 0.05)
    np.testing.assert_allclose(contrast.df, result.df, rtol=0.1)


@pytest.mark.parametrize(
    ("x", "y"), [(0.5, 0), (0, 0), (0, 0.5), (-0.5, 0.5), (0.5, -0.5)]
)
def test_ratio_at_zero_and_below(x, y):
    # No logarithm; without a denominator no error, and no other warning.
    values = np.random.default_rng(0).integers(1, 9, (25, 2))
    result = result_of(np.array([x, y]) + np.concatenate([values, -values]))
    contrast = result.contrast("a", "b", kind="ratio")
    interval = contrast.confidence_interval()
    if y == 0:
        assert not np.isfinite(contrast.estimate)
        assert np.isnan(contrast.standard_error)
        assert np.isnan(contrast.pvalue)
        assert np.isnan(interval).all()
    else:
        assert interval.low < contrast.estimate < interval.high
        assert 0 <= contrast.pvalue <= 1


def test_bootstrap_of_a_ratio_with_resamples_without_denominator():
    # Group "b" wins in one of 12 clusters only: many resamples have none.
    values = np.ones((12, 2))
    values[1:, 1] = 0
    contrast = result_of(values).contrast("a", "b", kind="ratio")
    for method in ("percentile", "bootstrap"):
        interval = contrast.confidence_interval(method=method, random_state=0)
        assert np.isnan(interval).all()  # undefined in more than a fifth


def test_wrong_contrasts_raise(accuracy):
    with pytest.raises(ValueError, match=r"a must be one of the groups.*'z'"):
        accuracy.contrast("z", "a")
    with pytest.raises(ValueError, match=r"b must be one of the groups.*'z'"):
        accuracy.contrast("a", "z")
    with pytest.raises(ValueError, match="reference must be one of the groups"):
        accuracy.contrasts(reference="z")
    for kind in ("max_abs", None):
        with pytest.raises(ValueError, match="kind must be one of"):
            accuracy.contrast("a", "b", kind)
        with pytest.raises(ValueError, match="kind must be one of"):
            accuracy.contrasts(kind)


def test_contrasts(accuracy):
    frame = accuracy.contrasts(confidence_level=0.9)
    assert list(zip(frame["a"], frame["b"], strict=True)) == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    for row in frame.itertuples():
        contrast = accuracy.contrast(row.a, row.b)
        assert row.estimate == contrast.estimate
        assert row.standard_error == contrast.standard_error
        assert row.df == contrast.df
        assert (row.ci_low, row.ci_high) == contrast.confidence_interval(0.9)
        assert row.pvalue == contrast.pvalue
    expected = multipletests(frame["pvalue"], method="holm")[1]
    np.testing.assert_allclose(frame["pvalue_corrected"], expected)
    assert (frame["pvalue_corrected"] >= frame["pvalue"]).all()


def test_contrasts_with_a_reference(accuracy):
    frame = accuracy.contrasts("ratio", reference="b", correction="bonferroni")
    assert list(frame["a"]) == ["a", "c"]
    assert list(frame["b"]) == ["b", "b"]
    assert frame["estimate"][0] == accuracy.contrast("a", "b", "ratio").estimate
    expected = np.minimum(2 * frame["pvalue"], 1)
    np.testing.assert_allclose(frame["pvalue_corrected"], expected)


def test_contrast_without_estimate(with_empty_group):
    for kind in ("difference", "ratio"):
        contrast = with_empty_group.contrast(0, 2, kind)
        assert np.isnan(contrast.estimate)
        assert np.isnan(contrast.standard_error)
        assert np.isnan(contrast.pvalue)
        assert np.isnan(contrast.confidence_interval()).all()
    frame = with_empty_group.contrasts()
    assert frame["pvalue_corrected"].isna().tolist() == [False, True, True]
    assert frame["pvalue_corrected"][0] == frame["pvalue"][0]
