"""Contrasts of two groups, and tests: of a fair value, and of equivalence."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logit
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from skrankfair import metrics
from skrankfair._estimates.leverage import contrast_degrees
from tests.metrics.common import columns, result_of


def ends(result, group, level, df):
    """Interval of a share with the quantile of a contrast."""
    p, error = result.estimate[group], result.standard_error[group]
    margin = stats.t.ppf((1 + level) / 2, df) * error / (p * (1 - p))
    trials = p * (1 - p) / error**2
    few = stats.beta(p * trials + 0.5, (1 - p) * trials + 0.5)  # Jeffreys
    low, high = expit(logit(p) - margin), expit(logit(p) + margin)
    if p < 0.5:
        return min(low, few.ppf((1 - level) / 2)), high
    return low, max(high, few.isf((1 - level) / 2))


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
    result = result_of(2 + np.random.default_rng(0).normal(size=(40, 2)), None)
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
        result = metrics.pairwise_accuracy(**columns(seed, n_queries=25))
        for a, b in itertools.combinations(result.groups, 2):
            contrast = result.contrast(a, b, kind)
            for level in (0.05, 0.3, 0.6, 0.9):
                low, high = contrast.confidence_interval(1 - level)
                outside = not low <= contrast.null_value <= high
                assert outside == (contrast.pvalue < level)


@pytest.mark.parametrize(("kind", "truth"), [("difference", 0.5), ("ratio", 2)])
def test_a_group_that_always_wins_is_not_certain(kind, truth):
    # Ten clusters each; in those of "a" all pairs are won, and no variance is seen.
    query = np.repeat(np.arange(20), 2)
    group = np.where(query < 10, "a", "b")
    good = np.arange(40) % 2
    score = np.where(query < 15, good, 1 - good)
    result = metrics.pairwise_accuracy(good, score, sensitive_features=group, qid=query)
    assert result.estimate.tolist() == [1.0, 0.5]
    contrast = result.contrast("a", "b", kind)
    low, high = contrast.confidence_interval()
    assert contrast.null_value < low < truth < high
    assert 0 < contrast.pvalue < 0.05


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


@pytest.mark.parametrize(
    ("x", "y"), [(0.5, 0), (0, 0), (0.5, 0.1), (0, 0.5), (-0.5, 0.5), (0.5, -0.5)]
)
def test_ratio_at_zero_and_below(x, y):
    # No logarithm; without a denominator, or its sign, no error, and no other warning.
    values = np.random.default_rng(0).integers(1, 9, (25, 2)) / 8
    result = result_of(np.array([x, y]) + np.concatenate([values, -values]), None)
    contrast = result.contrast("a", "b", kind="ratio")
    interval = contrast.confidence_interval()
    if 0 <= y < 0.5 or x == 0:
        assert np.isfinite(contrast.estimate) == (y > 0)
        assert np.isnan(contrast.standard_error)
        assert np.isnan(contrast.pvalue)
        assert np.isnan(interval).all()
    else:
        assert interval.low < contrast.estimate < interval.high
        assert 0 <= contrast.pvalue <= 1
    # Gaps, which are 0 where all is fair, have no ratio that is.
    gaps = result_of(values).contrast("a", "b", kind="ratio")
    assert np.isnan(gaps.pvalue)
    with pytest.raises(ValueError, match="a / b is no contrast that has a fair value"):
        gaps.minimum_detectable()


def test_bootstrap_of_a_ratio_with_resamples_without_denominator():
    # Group "b" wins in one of 12 clusters only: many resamples have none.
    values = np.ones((12, 2))
    values[1:, 1] = 0
    contrast = result_of(values).contrast("a", "b", kind="ratio")
    for method in ("percentile", "bootstrap"):
        interval = contrast.confidence_interval(method=method, random_state=0)
        assert np.isnan(interval).all()  # undefined in more than a fifth


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"a": "z", "b": "a"}, r"a must be one of the groups.*'z'"),
        ({"a": "a", "b": "z"}, r"b must be one of the groups.*'z'"),
        ({"a": "a", "b": "b", "kind": None}, "kind must be one of"),
        ({"reference": "z"}, "reference must be one of the groups"),
        ({"kind": "max_abs"}, "kind must be one of"),
        *(({"correction": c}, "correction must be a method") for c in (0, None, "x")),
    ],
)
def test_wrong_contrasts_raise(accuracy, arguments, message):
    compare = accuracy.contrast if "a" in arguments else accuracy.contrasts
    with pytest.raises(ValueError, match=message):
        compare(**arguments)


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


# Tests of each group


def test_test_is_students(matched):
    test, matched = matched.test(), matched.as_gap()
    statistic = matched.estimate / matched.standard_error
    np.testing.assert_allclose(test.statistic, statistic)
    pvalue = 2 * stats.t.sf(np.abs(statistic), matched.df)
    np.testing.assert_allclose(test.pvalue, pvalue)
    np.testing.assert_array_equal(test.df, matched.df)
    assert (test.groups, test.null_value) == (("a", "b", "c"), 0.0)
    np.testing.assert_array_equal(test.estimate, matched.estimate)
    np.testing.assert_array_equal(test.standard_error, matched.standard_error)
    exposure = metrics.pairwise_exposure(**columns())
    assert exposure.fair_value == exposure.test().null_value == 0.5
    # Of a share, on the scale of the logit.
    p = exposure.estimate
    error = exposure.standard_error / (p * (1 - p))
    np.testing.assert_allclose(exposure.test().statistic, logit(p) / error)


def test_frame_and_text_of_a_test(matched):
    test = matched.test()
    frame = test.to_frame("bonferroni")
    names = ["estimate", "null_value", "standard_error", "statistic", "df", "pvalue"]
    columns_of = {name: np.broadcast_to(getattr(test, name), 3) for name in names}
    columns_of["pvalue_corrected"] = test.corrected("bonferroni")
    index = pd.Index(["a", "b", "c"], name="group")
    pd.testing.assert_frame_equal(frame, pd.DataFrame(columns_of, index))
    header, first, *_ = repr(test).splitlines()
    assert header.split() == ["group", "estimate", "null", "value", *names[3:5], "p"]
    assert f"{test.df[0]:.1f}" in first
    nothing = metrics.ndkl(**columns()).test(n_resamples=9)
    assert nothing.to_frame()["df"].isna().all()
    assert "–" in repr(nothing)


@pytest.mark.parametrize("method", ["holm", "bonferroni", "fdr_bh"])
def test_corrected(matched, with_empty_group, method):
    expected = multipletests(matched.test().pvalue, method=method)[1]
    np.testing.assert_allclose(matched.test().corrected(method), expected)
    # A group without p-value is no test.
    test = with_empty_group.test()
    expected = multipletests(test.pvalue[:2], method=method)[1]
    np.testing.assert_allclose(test.corrected(method), [*expected, np.nan])


# Equivalence: a gap is small when the interval lies within the margin


class TestContrast:
    def test_is_statsmodels_paired_test(self):
        # One row of each group in every cluster: the contrast is that of pairs.
        loss = np.random.default_rng(1).normal(size=(40, 2)) ** 2
        expected = ttost_paired(loss[:, 0], loss[:, 1], -0.5, 0.4)[0]
        actual = result_of(loss).contrast("a", "b").equivalence_test((-0.5, 0.4))
        assert actual.pvalue[0] == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("kind", ["difference", "ratio"])
    @pytest.mark.parametrize("share", [True, False])
    def test_agrees_with_the_interval(self, kind, share):
        rng = np.random.default_rng(2)
        group = np.repeat(["a", "b"], 400)
        far = rng.random(400)  # as much below the mean as above, so without skewness
        values = rng.random(800) < 0.5 if share else np.ravel([3 - far, 3 + far], "F")
        metric = metrics.selection_rate if share else metrics.mean_absolute_error
        result = metric(np.zeros(800), values, sensitive_features=group)
        contrast = result.contrast("a", "b", kind)
        reach = abs(contrast.estimate - contrast.null_value)
        margin = reach + 1.3 * contrast.standard_error
        margin = (1 - margin, 1 + margin) if kind == "ratio" else margin
        level = contrast.equivalence_test(margin).pvalue[0]
        assert 0.01 < level < 0.4
        for alpha in (level * 0.99, min(level * 1.01, 0.49)):
            test = contrast.equivalence_test(margin, alpha=alpha)
            low, high = contrast.confidence_interval(1 - 2 * alpha)
            np.testing.assert_allclose((test.low[0], test.high[0]), (low, high))
            within = test.margin[0] < low and high < test.margin[1]
            assert test.equivalent[0] == within == (level < alpha)

    def test_one_sided_is_non_inferiority(self):
        values = np.random.default_rng(0).normal([2, 1], 0.5, size=(60, 2))
        for kind, inner in (("difference", 0.5), ("ratio", 1.2)):
            contrast = result_of(values, None).contrast("a", "b", kind)
            assert contrast.equivalence_test((-0.5, np.inf)).pvalue[0] < 1e-3
            assert contrast.equivalence_test((-np.inf, inner)).pvalue[0] > 0.99

    def test_margins_of_ratios(self, accuracy):
        ratio = accuracy.contrast("a", "b", "ratio")
        expected = ratio.equivalence_test((0.8, 1.25)).pvalue
        np.testing.assert_allclose(ratio.equivalence_test(0.8).pvalue, expected)
        np.testing.assert_allclose(ratio.equivalence_test(1.25).pvalue, expected)

    @pytest.mark.parametrize("margin", [0, -0.1, (0.1, 0.2), "a", None, (1, 2, 3)])
    def test_a_margin_holds_the_fair_value(self, accuracy, margin):
        with pytest.raises(ValueError, match="margin must"):
            accuracy.contrast("a", "b").equivalence_test(margin)
        with pytest.raises(ValueError, match="is no contrast"):
            accuracy.overall.equivalence_test(margin)


class TestByGroup:
    def test_is_of_the_difference_from_the_rest(self):
        data = columns(labels="fm", n_queries=800, size=10)
        result = metrics.pairwise_accuracy(**data, comparison="inter")
        actual = result.equivalence_test(0.1)
        contrast = result.contrast("f", "m").equivalence_test(0.1)
        np.testing.assert_allclose(actual.estimate[0], contrast.estimate[0], rtol=1e-9)
        assert actual.pvalue[0] == pytest.approx(contrast.pvalue[0], rel=0.05)
        assert actual.overall_pvalue == actual.pvalue.max()
        frame = actual.to_frame()
        assert list(frame.index) == ["f", "m"]
        assert (frame["pvalue_corrected"] >= frame["pvalue"]).all()
        assert "Within -0.1 to 0.1?" in repr(actual)

    def test_a_group_without_an_error_is_unknown(self):
        test = result_of(np.ones((8, 3))).equivalence_test(10.0)
        assert np.isnan(test.pvalue).all()
        assert np.isnan(test.overall_pvalue)
        assert not test.equivalent.any()


def test_of_a_permutation_test():
    assert metrics.ndkl(**columns()).equivalence_test(5.0).equivalent.all()


def test_shares_of_one_and_none_are_within_any_margin():
    score, group = np.tile([1.0, 0.0], 20), np.tile(["a", "b"], 20)
    query = np.repeat(np.arange(20), 2)
    r = metrics.pairwise_exposure(None, score, sensitive_features=group, qid=query)
    np.testing.assert_array_equal(r.estimate, [1, 0])
    assert r.equivalence_test(1e200).equivalent.all()
