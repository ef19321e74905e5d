"""Contrasts of two groups."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from skrankfair.metrics import pairwise_exposure
from tests.metrics.simulate import columns, result_of


def test_difference(accuracy):
    contrast = accuracy.contrast("a", "c")
    v = accuracy.covariance
    error = np.sqrt(v[0, 0] + v[2, 2] - 2 * v[0, 2])
    assert contrast.estimate == accuracy.estimate[0] - accuracy.estimate[2]
    assert contrast.standard_error == pytest.approx(error)
    assert contrast.statistic == pytest.approx(contrast.estimate / error)
    assert contrast.pvalue == pytest.approx(2 * stats.t.sf(abs(contrast.statistic), 59))
    margin = stats.t.ppf(0.95, 59) * error
    assert contrast.confidence_interval(0.9) == pytest.approx(
        (contrast.estimate - margin, contrast.estimate + margin)
    )
    assert (contrast.null_value, contrast.df, contrast.name) == (0, 59, "a - c")


def test_ratio(accuracy):
    contrast = accuracy.contrast("a", "c", kind="ratio")
    x, y = accuracy.estimate[[0, 2]]
    slopes = np.array([1 / y, 0, -x / y**2])
    error = np.sqrt(slopes @ accuracy.covariance @ slopes)
    assert contrast.estimate == pytest.approx(x / y)
    assert contrast.standard_error == pytest.approx(error)
    # The interval and the test are those of the logarithm.
    log_error = error / contrast.estimate
    statistic = np.log(contrast.estimate) / log_error
    assert contrast.statistic == pytest.approx(statistic)
    assert contrast.pvalue == pytest.approx(2 * stats.t.sf(abs(statistic), 59))
    margin = stats.t.ppf(0.975, 59) * log_error
    ends = np.exp(np.log(contrast.estimate) + np.array([-margin, margin]))
    assert contrast.confidence_interval() == pytest.approx(tuple(ends))
    assert (contrast.null_value, contrast.name) == (1, "a / c")
    other = accuracy.contrast("c", "a", kind="ratio").confidence_interval()
    assert other == pytest.approx(tuple(1 / ends[::-1]))


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_bootstrap_of_a_contrast(accuracy, kind):
    contrast = accuracy.contrast("b", "a", kind)
    values = accuracy.resampled(200, 3)
    x, y = values[:, 1], values[:, 0]
    values = x - y if kind == "difference" else x / y
    interval = contrast.confidence_interval(
        0.9, method="bootstrap", n_resamples=200, random_state=3
    )
    assert interval == pytest.approx(tuple(np.quantile(values, [0.05, 0.95])))
    assert all(type(end) is float for end in interval)


def test_contrast_of_a_group_with_itself(accuracy):
    difference = accuracy.contrast("a", "a")
    assert (difference.estimate, difference.standard_error) == (0, 0)
    assert difference.confidence_interval() == (0, 0)
    assert difference.pvalue == 1
    ratio = accuracy.contrast("a", "a", kind="ratio")
    assert (ratio.estimate, ratio.standard_error, ratio.pvalue) == (1, 0, 1)


def test_contrast_of_mirrored_groups():
    # Exposures of two groups sum to 1: their difference has twice the error.
    result = pairwise_exposure(**columns(labels="ab"))
    contrast = result.contrast("a", "b")
    assert contrast.standard_error == pytest.approx(2 * result.standard_error[0])
    assert contrast.pvalue == pytest.approx(result.test().pvalue[0])


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
    low, high = contrast.confidence_interval(method="bootstrap", random_state=0)
    assert np.isnan([low, high]).all() or (np.isfinite(low) and high == np.inf)


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
