"""Tests of each group: of a fair value, and of equivalence."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logit
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    mean_squared_error,
    ndkl,
    pairwise_accuracy,
    pairwise_exposure,
    selection_rate,
)
from tests.metrics.common import columns


def test_test_is_students(matched):
    test = matched.test()
    statistic = matched.estimate / matched.standard_error
    np.testing.assert_allclose(test.statistic, statistic)
    pvalue = 2 * stats.t.sf(np.abs(statistic), matched.df)
    np.testing.assert_allclose(test.pvalue, pvalue)
    np.testing.assert_array_equal(test.df, matched.df)
    assert (test.groups, test.null_value) == (("a", "b", "c"), 0.0)
    np.testing.assert_array_equal(test.estimate, matched.estimate)
    np.testing.assert_array_equal(test.standard_error, matched.standard_error)
    exposure = pairwise_exposure(**columns())
    assert exposure.fair_value == exposure.test().null_value == 0.5
    # Of a share, on the scale of the logit.
    p = exposure.estimate
    error = exposure.standard_error / (p * (1 - p))
    np.testing.assert_allclose(exposure.test().statistic, logit(p) / error)


def test_frame_and_text_of_a_test(matched):
    test = matched.test()
    frame = test.to_frame("bonferroni")
    names = ["estimate", "null_value", "standard_error", "statistic", "df", "pvalue"]
    assert list(frame.columns) == [*names, "pvalue_corrected"]
    assert frame.index.tolist() == ["a", "b", "c"]
    assert frame.index.name == "group"
    for name in names:
        expected = np.broadcast_to(getattr(test, name), 3)
        np.testing.assert_array_equal(frame[name], expected)
    np.testing.assert_array_equal(
        frame["pvalue_corrected"], test.corrected("bonferroni")
    )
    header, first, *_ = repr(test).splitlines()
    assert header.split()[:4] == ["group", "estimate", "null", "value"]
    assert header.split()[4:] == ["statistic", "df", "p"]
    assert first.split()[0] == "a"
    assert f"{test.df[0]:.1f}" in first
    nothing = ndkl(**columns()).test(n_resamples=9)
    assert nothing.to_frame()["df"].isna().all()
    assert "–" in repr(nothing)


@pytest.mark.parametrize("method", ["holm", "bonferroni", "fdr_bh"])
def test_corrected(matched, with_empty_group, method):
    pvalue = matched.test().pvalue
    expected = multipletests(pvalue, method=method)[1]
    np.testing.assert_allclose(matched.test().corrected(method), expected)
    # A group without p-value is no test.
    test = with_empty_group.test()
    expected = multipletests(test.pvalue[:2], method=method)[1]
    np.testing.assert_allclose(test.corrected(method), [*expected, np.nan])


@pytest.mark.parametrize("correction", [0, None, "sidack"])
def test_an_unknown_correction_is_named(matched, correction):
    with pytest.raises(ValueError, match="correction must be a method of statsmodels"):
        matched.test().corrected(correction)
    with pytest.raises(ValueError, match="correction must be a method of statsmodels"):
        matched.contrasts(correction=correction)


# Equivalence: a gap is small when the interval lies within the margin


def losses(n_rows=60, shift=0.0, seed=0, groups="ab"):
    rng = np.random.default_rng(seed)
    group = np.tile(list(groups), n_rows // len(groups))
    loss = rng.normal(size=group.size) ** 2 + shift * (group == groups[0])
    return mean_squared_error(
        np.sqrt(loss), np.zeros(group.size), sensitive_features=group
    ), (loss, group)


class TestContrast:
    def test_is_statsmodels_two_one_sided_tests(self):
        result, (loss, group) = losses()
        parts = loss[group == "a"], loss[group == "b"]
        expected = ttost_ind(*parts, -0.6, 0.6, usevar="unequal")[0]
        actual = result.contrast("a", "b").equivalence_test(0.6)
        # The same standard errors; Welch's degrees of freedom see the variances.
        assert actual.pvalue[0] == pytest.approx(expected, rel=0.02)

    def test_is_statsmodels_paired_test(self):
        # One row of each group in every cluster: the contrast is that of pairs.
        rng = np.random.default_rng(1)
        loss = rng.normal(size=(40, 2)) ** 2
        result = mean_squared_error(
            np.sqrt(loss).ravel(),
            np.zeros(80),
            sensitive_features=np.tile(["a", "b"], 40),
            cluster=np.repeat(np.arange(40), 2),
        )
        expected = ttost_paired(loss[:, 0], loss[:, 1], -0.5, 0.4)[0]
        actual = result.contrast("a", "b").equivalence_test((-0.5, 0.4))
        assert actual.pvalue[0] == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("kind", ["difference", "ratio"])
    @pytest.mark.parametrize("share", [True, False])
    def test_agrees_with_the_interval(self, kind, share):
        rng = np.random.default_rng(2)
        group = np.repeat(["a", "b"], 400)
        decided = rng.random(800) < 0.5
        metric = selection_rate if share else mean_squared_error
        result = metric(np.zeros(800), decided, sensitive_features=group)
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
        result, _ = losses(shift=2.0)
        contrast = result.contrast("a", "b")
        assert contrast.equivalence_test((-0.5, np.inf)).pvalue[0] < 1e-3
        assert contrast.equivalence_test((-np.inf, 0.5)).pvalue[0] > 0.99

    def test_margins_of_ratios(self):
        result, _ = losses()
        ratio = result.contrast("a", "b", "ratio")
        expected = ratio.equivalence_test((0.8, 1.25)).pvalue
        np.testing.assert_allclose(ratio.equivalence_test(0.8).pvalue, expected)
        np.testing.assert_allclose(ratio.equivalence_test(1.25).pvalue, expected)

    @pytest.mark.parametrize("margin", [0, -0.1, (0.1, 0.2), "a", None, (1, 2, 3)])
    def test_a_margin_holds_the_fair_value(self, margin):
        result, _ = losses()
        with pytest.raises(ValueError, match="margin must"):
            result.contrast("a", "b").equivalence_test(margin)

    def test_alpha_is_a_level_of_one_side(self):
        result, _ = losses()
        with pytest.raises(ValueError, match="alpha must"):
            result.contrast("a", "b").equivalence_test(0.1, alpha=0.5)

    def test_an_estimate_alone_is_no_contrast(self):
        result, _ = losses()
        with pytest.raises(ValueError, match="is no contrast"):
            result.overall.equivalence_test(0.1)


class TestByGroup:
    @pytest.fixture(scope="class", name="result")
    @staticmethod
    def _result():
        rng = np.random.default_rng(3)
        query = np.repeat(np.arange(800), 10)
        return pairwise_accuracy(
            rng.random(8000) < 0.3,
            rng.random(8000),
            sensitive_features=rng.choice(["f", "m"], 8000),
            qid=query,
            comparison="inter",
        )

    def test_is_of_the_difference_from_the_rest(self, result):
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
        with pytest.warns(UndefinedMetricWarning, match="no standard error"):
            result, _ = losses(n_rows=3, groups="abc")
        test = result.equivalence_test(10.0)
        assert np.isnan(test.pvalue).all()
        assert np.isnan(test.overall_pvalue)
        assert not test.equivalent.any()


def test_of_a_permutation_test():
    rng = np.random.default_rng(0)
    lists = np.repeat(np.arange(40), 10)
    result = ndkl(
        None,
        rng.random(400),
        sensitive_features=rng.choice(["a", "b"], 400),
        qid=lists,
    )
    assert result.equivalence_test(5.0).equivalent.all()
