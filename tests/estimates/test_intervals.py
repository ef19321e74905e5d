"""Intervals of GroupEstimates: delta method, bootstrap, simultaneous."""

import numpy as np
import pytest
from scipy import stats

from skrankfair._estimates import sums as _sums
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import pairwise_accuracy, pairwise_exposure
from tests.metrics.simulate import columns, coverage, result_of, tolerance


def t_of(interval, result):
    """The quantile that an interval was made with."""
    return (interval.high - result.estimate) / result.standard_error


# The delta method


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_delta_interval_is_students(accuracy, level):
    interval = accuracy.confidence_interval(level)
    margin = stats.t.ppf(0.5 + level / 2, 59) * accuracy.standard_error
    np.testing.assert_allclose(interval.low, accuracy.estimate - margin)
    np.testing.assert_allclose(interval.high, accuracy.estimate + margin)
    low, high = interval
    assert low is interval.low
    assert high is interval.high
    assert low.shape == (3,)


def test_standard_error_is_the_root_of_the_covariance(accuracy):
    np.testing.assert_allclose(
        accuracy.standard_error**2, np.diag(accuracy.covariance), rtol=1e-14
    )
    np.testing.assert_allclose(accuracy.covariance, accuracy.covariance.T, rtol=1e-12)


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, "95%", None, np.nan])
@pytest.mark.parametrize("name", ["confidence_interval", "simultaneous_interval"])
def test_level_outside_0_1_raises(accuracy, name, level):
    with pytest.raises(ValueError, match="confidence_level must be"):
        getattr(accuracy, name)(level)
    with pytest.raises(ValueError, match="confidence_level must be"):
        accuracy.confidence_interval(level, method="bootstrap")


def test_other_wrong_options_raise(accuracy):
    with pytest.raises(ValueError, match="method must be one of"):
        accuracy.confidence_interval(method="jackknife")
    for n_resamples in (0, 1.5, None):
        with pytest.raises(ValueError, match="n_resamples must be"):
            accuracy.confidence_interval(method="bootstrap", n_resamples=n_resamples)
        with pytest.raises(ValueError, match="n_resamples must be"):
            accuracy.simultaneous_interval(n_resamples=n_resamples)


def test_one_cluster_has_no_interval():
    data = columns(n_queries=1, size=30)
    with pytest.warns(UndefinedMetricWarning, match="no standard error"):
        result = pairwise_exposure(**data, variance="cluster")
    assert result.n_clusters == 1
    assert np.isfinite(result.estimate).all()
    for interval in (result.confidence_interval(), result.simultaneous_interval()):
        assert np.isnan(interval).all()
    assert np.isnan(result.test().pvalue).all()


# The bootstrap


def test_bootstrap_interval_is_the_percentiles(accuracy):
    values = accuracy.resampled(300, 0)
    assert values.shape == (300, 3)
    interval = accuracy.confidence_interval(
        0.9, method="bootstrap", n_resamples=300, random_state=0
    )
    np.testing.assert_array_equal(interval, np.quantile(values, [0.05, 0.95], axis=0))


def test_bootstrap_is_reproducible(accuracy):
    first = accuracy.resampled(100, 0)
    np.testing.assert_array_equal(first, accuracy.resampled(100, 0))
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(first, accuracy.resampled(100, rng))
    assert not np.array_equal(first, accuracy.resampled(100, rng))
    assert not np.array_equal(first, accuracy.resampled(100, 1))


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_bootstrap_does_not_depend_on_the_chunk(accuracy, monkeypatch, chunk):
    expected = accuracy.resampled(100, 0)
    monkeypatch.setattr(_sums, "_CHUNK", chunk)
    np.testing.assert_allclose(accuracy.resampled(100, 0), expected, rtol=1e-13)


def test_bootstrap_resamples_clusters():
    # Column means over resampled rows, from the draws themselves.
    values = np.random.default_rng(0).normal(size=(40, 2))
    drawn = np.random.default_rng(5).integers(0, 40, (20, 40))
    expected = values[drawn].mean(1)
    np.testing.assert_allclose(result_of(values).resampled(20, 5), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_bootstrap_error_is_near_the_delta_error(weighted):
    data = columns(n_queries=400)
    if weighted:
        weight = np.random.default_rng(0).integers(1, 4, 400)
        data["sample_weight"] = np.repeat(weight, 6)
    result = pairwise_accuracy(**data)
    n = 2000
    ratio = result.resampled(n, 0).std(0) / result.standard_error
    # The simulation's error, and one in sqrt(400) for the delta method's.
    assert np.all(np.abs(ratio - 1) < 4 / np.sqrt(2 * n) + 1 / np.sqrt(400))


def test_bootstrap_of_a_group_that_resamples_miss():
    data = columns()
    odd = np.arange(360) % 2 == 1
    data["sensitive_features"] = np.stack([odd, odd & (data["qid"] < 2)], axis=1)
    result = pairwise_exposure(**data)
    assert np.isfinite(result.confidence_interval()).all()
    low, high = result.confidence_interval(method="bootstrap", random_state=0)
    assert np.isfinite([low[0], high[0]]).all()
    assert np.isnan([low[1], high[1]]).all()


@pytest.mark.parametrize("random_state", ["seed", -1, 0.5])
def test_wrong_random_state_raises(accuracy, random_state):
    with pytest.raises(ValueError, match=r"random_state|non-negative"):
        accuracy.resampled(5, random_state)
    with pytest.raises(ValueError, match=r"random_state|non-negative"):
        accuracy.simultaneous_interval(random_state=random_state)


def test_bootstrap_without_its_table_raises(accuracy):
    with pytest.raises(ValueError, match="compact"):
        accuracy.compact().confidence_interval(method="bootstrap")
    data = columns()
    del data["qid"]
    with pytest.raises(ValueError, match="items"):
        pairwise_exposure(**data).confidence_interval(method="bootstrap")


# Simultaneous intervals


def test_simultaneous_quantile_is_between_single_and_bonferroni(accuracy):
    quantile = t_of(accuracy.simultaneous_interval(), accuracy)
    np.testing.assert_allclose(quantile, quantile[0])
    single, bonferroni = stats.t.ppf([0.975, 1 - 0.025 / 3], 59)
    assert single < quantile[0] < bonferroni


def quantile_error(density, n):
    """Four standard errors of a simulated 95% quantile."""
    return tolerance(0.95, n) / density


def test_perfectly_correlated_groups_need_no_correction():
    result = pairwise_exposure(**columns(labels="ab"))
    assert np.corrcoef(result.resampled(50, 0).T)[0, 1] == pytest.approx(-1)
    n = 200_000
    quantile = t_of(result.simultaneous_interval(n_resamples=n), result)
    single = stats.t.ppf(0.975, 59)
    error = quantile_error(2 * stats.t.pdf(single, 59), n)
    assert np.all(np.abs(quantile - single) < error)


def test_uncorrelated_groups_have_sidaks_quantile():
    # Orthogonal columns: the estimates have correlation 0; many clusters: normal.
    rng = np.random.default_rng(0)
    values = np.linalg.qr(rng.normal(size=(5000, 5)))[0][:, 1:]
    values = np.linalg.qr(values - values.mean(0))[0] * [1, 2, 3, 4]
    result = result_of(values)
    n = 200_000
    quantile = t_of(result.simultaneous_interval(n_resamples=n), result)
    sidak = stats.norm.ppf((1 + 0.95**0.25) / 2)
    density = 4 * 2 * stats.norm.pdf(sidak) * 0.95**0.75
    assert np.all(np.abs(quantile - sidak) < quantile_error(density, n) + 1e-3)


@pytest.mark.simulation
def test_simultaneous_coverage():
    n_replications, root = 1000, np.array([[1, 0.7, 0], [0, 0.7, 0.5], [0, 0, 1]])
    truth = np.array([0.0, 1.0, -2.0])
    intervals = []
    for seed in range(n_replications):
        rng = np.random.default_rng(seed)
        result = result_of(truth + rng.normal(size=(40, 3)) @ root)
        intervals.append(result.simultaneous_interval(n_resamples=1000))
    low, high = np.moveaxis(np.array(intervals), 1, 0)
    all_at_once = np.all((low <= truth) & (truth <= high), axis=1).mean()
    assert abs(all_at_once - 0.95) < tolerance(0.95, n_replications)
    assert np.all(coverage(intervals, truth) > all_at_once)


def test_simultaneous_interval_leaves_out_groups_without_error(with_empty_group):
    low, high = with_empty_group.simultaneous_interval()
    assert np.isnan([low[2], high[2]]).all()
    assert np.isfinite([low[:2], high[:2]]).all()
