"""compare_independent: the difference of two samples that share nothing."""

import numpy as np
import pytest
from scipy import stats

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare_independent
from skrankfair.metrics import (
    GroupEstimates,
    calibration_error,
    group_mean,
    matched_pair_calibration,
    rank_shift,
    selection_rate,
)
from tests.inference.test_compare import METRICS, frame, measure


def weeks(name, **changes):
    """Return results of two samples of other sizes, with the same cluster labels."""
    sizes = zip((60, 40), (0, 1), strict=True)
    return [measure(name, frame(seed, n), "new", **changes) for n, seed in sizes]


@pytest.mark.parametrize("name", [*METRICS, "gap"])
@pytest.mark.parametrize("variance", ["cluster", "item"])
def test_is_the_difference_with_the_sum_of_both_variances(name, variance):
    if variance == "item" and name == "queries":
        variance = "cluster"  # a mean over queries has no pairs of items
    a, b = weeks("accuracy" if name == "gap" else name, variance=variance)
    if name == "gap":
        a, b = a.against_rest(), b.against_rest()
    result = compare_independent(a, b)
    np.testing.assert_allclose(result.estimate, a.estimate - b.estimate, rtol=1e-9)
    expected = np.hypot(a.standard_error, b.standard_error)
    # The factor (n - 1) / n is that of the larger sample for both.
    np.testing.assert_allclose(result.standard_error, expected, rtol=0.02)
    assert (result.standard_error >= expected * (1 - 1e-9)).all()
    assert (result.df > np.minimum(a.df, b.df) * (1 - 1e-9)).all()
    assert (result.df < a.df + b.df).all()
    assert result.n_clusters == a.n_clusters + b.n_clusters
    assert (result.name, result.fair_value) == (f"{a.name}_difference", 0)


def test_a_sample_without_events_has_the_variance_of_as_many_rows_of_the_other():
    few, many = (group_mean(np.repeat([1.0, 0.0], n)) for n in ((0, 50), (30, 2970)))
    assert few.standard_error[0] == 0
    for one, other in ((few, many), (many, few)):
        result = compare_independent(one, other)
        expected = np.sqrt(1 + 3000 / 50) * many.standard_error
        np.testing.assert_allclose(result.standard_error, expected, rtol=1e-3)


def test_a_change_of_changes_of_gaps_has_the_events_of_all_eight_sides():
    y, group = np.arange(2000) % 100 == 99, np.arange(2000) >= 90
    gap = group_mean(y, sensitive_features=group).against_rest()
    change = compare_independent(gap, gap)
    test = compare_independent(change, change).equivalence_test(0.1)
    np.testing.assert_allclose(test.low, -test.high)


def test_of_means_is_welchs_test():
    # Every row is its own cluster, and both samples have 40 rows of each group.
    rng = np.random.default_rng(0)
    group = np.repeat(["f", "m"], 40)
    x, y = rng.normal(size=(2, 40)), 2 + 3 * rng.normal(size=(2, 40))
    a, b = (group_mean(v.ravel(), sensitive_features=group) for v in (x, y))
    result = compare_independent(a, b)
    welch = stats.ttest_ind(x, y, axis=1, equal_var=False)
    np.testing.assert_allclose(result.test().statistic, welch.statistic, rtol=1e-9)
    # Satterthwaite's from the leverages, not from the two variances.
    np.testing.assert_allclose(result.df, 78, rtol=0.01)


@pytest.mark.parametrize("name", METRICS)
def test_kept_results_do_as_well(name):
    a, b = weeks(name)
    whole = compare_independent(a, b)
    stored = GroupEstimates.from_json(b.to_json())
    for pair in ((a.compact(), b), (a, stored), (a.compact(), b.compact())):
        result = compare_independent(*pair)
        tolerances = {"estimate": 1e-12, "standard_error": 0.03, "df": 0.05}
        for field, rtol in tolerances.items():
            one, other = getattr(result, field), getattr(whole, field)
            np.testing.assert_allclose(one, other, rtol=rtol)


def test_replicates_of_both_are_kept():
    a, b = (r.compact(n_replicates=400) for r in weeks("accuracy"))
    result = compare_independent(a, b)
    intervals = [result.confidence_interval(method=m) for m in ("bootstrap", "t")]
    np.testing.assert_allclose(*np.diff(intervals, axis=1), rtol=0.25)


def test_shares_of_one_have_an_interval_inside_the_scale():
    group = np.repeat(["f", "m"], 30)
    always = selection_rate(None, np.ones(60), sensitive_features=group)
    half = selection_rate(None, np.arange(60) % 2, sensitive_features=group)
    interval = compare_independent(always, half).confidence_interval()
    assert ((interval.low > 0.2) & (interval.high < 1)).all()
    for same, least in ((always, -0.3), (always.against_rest(), -0.4)):
        interval = compare_independent(same, same).confidence_interval()
        assert ((interval.low < 0) & (interval.low > least)).all()


def test_a_group_of_one_sample_only_is_undefined():
    a = measure("exposure", frame(0), "new")
    b = measure("exposure", frame(1).replace({"group": {"x": "m"}}), "new")
    for pair in ((a, b), (b, a)):
        with pytest.warns(UndefinedMetricWarning, match="pairs in each sample.*: x"):
            result = compare_independent(*pair)
        assert result.groups == ("f", "m", "x")
        np.testing.assert_array_equal(np.isnan(result.estimate), [False, False, True])


def test_what_has_no_comparison_is_refused():
    a = measure("accuracy", frame(), "new")
    y, s = np.arange(100) // 2 % 2, np.linspace(0, 1, 100)
    who = {"sensitive_features": np.arange(100) % 2}
    errors, shift = calibration_error(y, s, **who), rank_shift(y, s, **who)
    matched = matched_pair_calibration(y, s, epsilon=0.1, **who)
    for pair, message in (
        ((a, 0.5), "b must be a result"),
        ((a, matched), "one metric with the same options"),
        ((errors, errors), "noise"),
        ((shift, shift), "fits a curve"),
        ((measure("accuracy", frame(), "new", variance="item"), a), "variance="),
    ):
        with pytest.raises(ValueError, match=message):
            compare_independent(*pair)
