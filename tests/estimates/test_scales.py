"""Intervals of GroupEstimates: Student's t on the scale of the metric, bootstrap."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logit

from skrankfair import metrics
from skrankfair._estimates.finalize import ColumnSum, MeanOfRatios
from skrankfair._estimates.metric import Metric
from skrankfair._estimates.rows import Rows
from skrankfair._estimates.scales import DifferenceScale, ShareScale
from skrankfair._estimates.sums import ClusterSums
from skrankfair.exceptions import SmallSampleWarning
from tests.metrics.common import columns, result_of

# Student's t


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_interval_is_students_on_the_scale_of_the_metric(matched, accuracy, level):
    rng = np.random.default_rng(0)
    p, group = rng.random(400), rng.choice(["a", "b"], 400)
    y = rng.random(400) < p
    losses = metrics.mean_squared_error(y, p, sensitive_features=group)
    share = accuracy.estimate
    for r, scale, back, slope in (
        (matched, np.asarray, np.asarray, 1.0),
        (accuracy, logit, expit, 1 / (share * (1 - share))),
        (losses, np.log, np.exp, 1 / losses.estimate),
    ):
        margin = stats.t.ppf(0.5 + level / 2, r.df) * r.standard_error * slope
        low, high = interval = r.confidence_interval(level)
        assert (low is interval.low, high is interval.high) == (True, True)
        np.testing.assert_allclose(low, back(scale(r.estimate) - margin))
        np.testing.assert_allclose(high, back(scale(r.estimate) + margin))


LEVELS = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.99])
CLUSTERS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=5, max_size=12
)


def shares_of(clusters, null_value=0.3):
    """Return the share of items won, with one row per cluster of (won, lost)."""
    won, lost = np.array(clusters, dtype=float).T
    rows = np.stack([won, won + lost], axis=1)[:, None]
    table = Rows.of_all(rows, np.zeros((won.size, 0)), np.arange(won.size))
    support = ColumnSum(1, 2)
    return metrics.GroupEstimates(
        Metric("share", MeanOfRatios(), support, fair_value=null_value, share=True),
        ClusterSums.from_rows(("a",), table, [support]),
    )


@given(CLUSTERS)
@settings(max_examples=60, deadline=None)
def test_intervals_of_shares_stay_inside_and_agree_with_the_test(clusters):
    result = shares_of(clusters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        pvalue = result.test().pvalue[0]
        for level in LEVELS:
            low, high = (end[0] for end in result.confidence_interval(1 - level))
            assert 0 <= low <= result.estimate[0] <= high <= 1
            assert low < high
            assert (not low <= 0.3 <= high) == (pvalue < level)


def test_a_difference_is_in_doubt_where_its_interval_shrinks_again():
    # Of two shares of five clusters that are nearly the same function of them.
    df, rho = np.array([4.0]), np.array([0.95])
    numbers = np.array([[0.8, 0.4], [0.2, 0.1], [5, 5], [4, 4]])
    both = ShareScale(*numbers, np.zeros(2, dtype=bool))
    sides = (both.take([side], df) for side in (0, 1))
    scale = DifferenceScale(np.array([0.4]), np.sqrt([0.012]), *sides, rho)
    (low, _), (far, _) = (scale.ends(np.array([t]), df) for t in (2.8, 1e3))
    assert low < 0 < far
    assert 0.05 < scale.test(0.0, df)[1] < 0.1


@pytest.mark.parametrize("n", [5, 12])
def test_at_the_ends_of_the_scale_the_interval_is_the_exact_binomial(n):
    for won, lost in ((1, 0), (0, 1)):
        result = shares_of([(won, lost)] * n)
        low, high = (end[0] for end in result.confidence_interval(0.9))
        exact = stats.binomtest(n * won, n, 0.3).proportion_ci(0.9, "exact")
        assert (low, high) == pytest.approx((exact.low, exact.high))
        test = result.test()
        chance = 0.3 if won else 0.7
        assert test.pvalue[0] == pytest.approx(min(1, 2 * chance**n))
        assert test.df[0] == pytest.approx(n - 1)


def test_clusters_that_agree_have_the_binomial_variance():
    # Every cluster wins half of its items: no variance is seen, and some is there.
    result = shares_of([(1, 1)] * 9)
    assert result.standard_error[0] == 0
    margin = stats.t.ppf(0.975, 8) * 2 / np.sqrt(9)  # 1 / sqrt(n p (1 - p))
    low, high = (end[0] for end in result.confidence_interval())
    assert (low, high) == pytest.approx((expit(-margin), expit(margin)))
    assert 0 < result.test().pvalue[0] < 1


def test_means_without_variance_have_no_interval():
    result = result_of(np.full((8, 2), [0.0, 0.5]))
    none = metrics.mean_squared_error([0, 1] * 4, [0, 1] * 4)
    equal = metrics.log_loss([0] * 2000, [0] * 2000, sensitive_features=[0, 1] * 1000)
    for each in (result, none, equal, equal.compact()):
        assert np.isnan(each.confidence_interval()).all()
        assert np.isnan(each.simultaneous_interval()).all()
    # At the fair value there is nothing to reject; elsewhere nothing is known.
    np.testing.assert_array_equal(result.test().pvalue, [1.0, np.nan])


def test_few_effective_clusters_are_warned_of_where_errors_are_asked_for():
    result = shares_of([(60, 40), (1, 0), (0, 1), (1, 1), (0, 1), (1, 0)])
    assert result.n_effective[0] < 5
    assert "fewer than 5 effective clusters in a (1." in repr(result)
    result.disparity("max_abs")
    assert np.isfinite(result.standard_error).all()
    asked = result.confidence_interval, result.simultaneous_interval, result.test
    for ask in (*asked, result.to_frame, lambda: result.contrast("a", "a")):
        with pytest.warns(SmallSampleWarning, match="fewer than 5 effective") as caught:
            ask()
        assert len(caught) == 1


# The bootstrap


@pytest.mark.parametrize("n_clusters", [12, 30])
def test_bootstrap_interval_is_studentised(n_clusters):
    # Of means: t* = (mean* - mean) / se*, with the ends the other way round; of fewer
    # than 20 degrees of freedom it holds that of Student's t.
    values = np.random.default_rng(0).exponential(size=(n_clusters, 2))
    result = result_of(values)
    rng, n = np.random.default_rng(5), 300
    drawn = values[rng.integers(0, n_clusters, (n, n_clusters))]
    error = drawn.std(1, ddof=0) / np.sqrt(n_clusters - 1)
    t = (drawn.mean(1) - values.mean(0)) / error
    high_t, low_t = np.quantile(t, [0.05, 0.95], axis=0)
    low = values.mean(0) - low_t * result.standard_error
    high = values.mean(0) - high_t * result.standard_error
    if n_clusters <= 20:
        plain = result.confidence_interval(0.9)
        low, high = np.minimum(low, plain.low), np.maximum(high, plain.high)
    interval = result.confidence_interval(0.9, "bootstrap", n, 5)
    np.testing.assert_allclose(interval, (low, high), rtol=1e-9)


@pytest.mark.parametrize("method", ["bootstrap", "percentile"])
def test_bootstrap_of_a_group_that_resamples_miss(method):
    data = columns()
    odd = np.arange(360) % 2 == 1
    data["sensitive_features"] = np.stack([odd, odd & (data["qid"] < 2)], axis=1)
    result = metrics.pairwise_exposure(**data)
    with pytest.warns(SmallSampleWarning, match=r"in 1 \(2"):
        low, high = result.confidence_interval(method=method, random_state=0)
    assert np.isfinite([low[0], high[0]]).all()
    if method == "percentile":
        assert 0 <= low[1] <= high[1] <= 1


WRONG_LEVELS = (0, 1, 95, -0.1, "95%", None, np.nan)
WRONG = [
    *(({"confidence_level": level}, "confidence_level must") for level in WRONG_LEVELS),
    *(({"n_resamples": n}, "n_resamples must be") for n in (0, 1.5, None)),
    *(({"random_state": s}, "random_state|non-negative") for s in ("seed", -1, 0.5)),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_is_wrong_is_named(accuracy, options, message):
    with pytest.raises(ValueError, match=message):
        accuracy.confidence_interval(**options, method="bootstrap")
    with pytest.raises(ValueError, match=message):
        accuracy.simultaneous_interval(**options)


def test_an_unknown_method_is_named(accuracy):
    with pytest.raises(ValueError, match="method must be one of"):
        accuracy.confidence_interval(method="jackknife")
