"""Many groups at once: simultaneous intervals, one number of all and its bound."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from benchmarks.simulations.common import tolerance
from skrankfair._estimates.finalize import MeanOfRatios
from skrankfair._estimates.metric import Metric
from skrankfair._estimates.simultaneous import disparity, disparity_bound
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    exposure_gap,
    pairwise_accuracy,
    positive_rate_shift,
    rank_shift,
    skew_at_k,
)
from tests.metrics.common import result_of

NAN, INF = float("nan"), float("inf")


def with_fair_value(value):
    """Return a metric of which nothing else is asked."""
    return Metric("mean", MeanOfRatios(), MeanOfRatios(), fair_value=value)


class TestDisparity:
    @pytest.mark.parametrize(
        ("estimate", "fair_value", "kind", "expected"),
        [
            ([0.5, 0.7, 0.6], None, "difference", 0.2),
            ([0.5, 0.8, 0.6], None, "ratio", 0.625),
            ([-0.1, 0.05], 0.0, "max_abs", 0.1),
            ([0.3, -0.1, -0.2], 0.0, "l1", 0.6),
            ([0.0, 0.0], None, "ratio", NAN),
            ([0.0, 0.5], None, "ratio", 0.0),
            # A group without an estimate hides nothing, and one group has no other.
            ([0.5, NAN, 0.6], None, "difference", NAN),
            ([0.5, NAN, 0.6], 0.5, "max_abs", NAN),
            ([0.5], None, "difference", NAN),
            ([0.4], 0.5, "max_abs", 0.1),
            # Infinitely far from fair; but from each other is another matter.
            ([-INF, 0.1], 0.0, "max_abs", INF),
            ([-INF, -INF], 0.0, "l1", INF),
            ([-INF, INF], None, "difference", INF),
            ([-INF, -INF], None, "difference", NAN),
            ([INF, INF], None, "ratio", NAN),
        ],
    )
    def test_by_hand(self, estimate, fair_value, kind, expected):
        estimate = np.array(estimate)
        value = disparity(estimate, estimate, with_fair_value(fair_value), kind)
        assert value == pytest.approx(expected, nan_ok=True)

    def test_of_a_result(self, accuracy, matched, with_empty_group):
        assert accuracy.disparity() == np.ptp(accuracy.estimate)
        assert matched.disparity() == np.abs(matched.estimate).max()
        assert type(matched.disparity()) is float
        assert np.isnan(with_empty_group.disparity())

    def test_one_group_that_shares_with_nobody(self):
        rng = np.random.default_rng(0)
        y, s = rng.integers(0, 2, (2, 60)).astype(float)
        qid = np.repeat(np.arange(10), 6)
        for result in (
            exposure_gap(y, s, qid=qid),
            rank_shift(y, s, qid=qid, bandwidth=0.5, n_resamples=3),
        ):
            assert result.estimate == pytest.approx([0.0], abs=1e-12)
            with pytest.warns(UndefinedMetricWarning, match="fewer than two groups"):
                assert np.isnan(result.disparity())
            with pytest.warns(UndefinedMetricWarning, match="fewer than two groups"):
                assert np.isnan(result.disparity_bound())
        # A group beside others has its share even if nobody asks for theirs.
        gap = exposure_gap(y, s, sensitive_features=rng.random((60, 1)) < 0.5, qid=qid)
        assert gap.disparity() == abs(gap.estimate[0]) > 0
        # Calibration would move the one group against the threshold.
        shift = positive_rate_shift(y, s, threshold=0.5, bandwidth=0.5, n_resamples=3)
        assert shift.disparity() == abs(shift.estimate[0])

    def test_of_infinite_estimates(self):
        score = np.arange(12.0)
        group = ["a", "a", "b", "b", "c", "c"] * 2
        qid = [0] * 6 + [1] * 6
        with pytest.warns(UndefinedMetricWarning, match="infinite"):
            skew = skew_at_k(None, score, sensitive_features=group, qid=qid, k=2)
        assert np.isneginf(skew.estimate).sum() == 2
        assert skew.disparity() == skew.disparity("l1") == INF
        assert skew.disparity("difference") == skew.disparity_bound() == INF
        # Of two that are infinite alike nobody can say how far apart they are.
        low = (score % 6 < 2)[:, None]
        member = np.hstack([low, low])
        with pytest.warns(UndefinedMetricWarning, match="infinite"):
            alike = skew_at_k(None, score, sensitive_features=member, qid=qid, k=2)
        assert alike.disparity() == INF
        with pytest.warns(UndefinedMetricWarning, match="infinite estimates alike"):
            assert np.isnan(alike.disparity("difference"))

    def test_errors(self):
        estimate = np.array([0.1, 0.2])
        for kind, message in (
            ("max_abs", "max_abs' needs a metric with a fair value"),
            ("l1", "l1' needs a metric with a fair value"),
            ("worst", "needs a metric of which high or low values are better"),
            ("gap", "kind must be one of"),
        ):
            with pytest.raises(ValueError, match=message):
                disparity(estimate, estimate, with_fair_value(None), kind)


def make_covariance(n_groups, scale=0.02):
    """Correlated groups of different errors."""
    rng = np.random.default_rng(n_groups)
    root = rng.normal(size=(n_groups, n_groups)) + np.eye(n_groups)
    return scale**2 * root @ root.T


def means(estimate, covariance, df=20, fair_value=0.5):
    """Return means with exactly this covariance, of one more clusters than df."""
    estimate, n = np.asarray(estimate, dtype=float), df + 1
    draws = np.random.default_rng(0).normal(size=(n, estimate.size))
    white = np.linalg.qr(draws - draws.mean(0))[0] * np.sqrt(n * df)
    result = result_of(estimate + white @ np.linalg.cholesky(covariance).T)
    return replace(result, metric=replace(result.metric, fair_value=fair_value))


class TestBound:
    @pytest.mark.parametrize(("n_groups", "df"), [(2, 5), (2, 1000), (5, 20)])
    @pytest.mark.parametrize("level", [0.8, 0.95])
    def test_is_the_largest_limit_of_all_pairs(self, n_groups, df, level):
        estimate = np.linspace(0.4, 0.7, n_groups)
        covariance, limits = make_covariance(n_groups), []
        for a, b in permutations(range(n_groups), 2):
            for scale, value in ((1.0, estimate), (estimate, np.log(estimate))):
                slope = (np.eye(n_groups)[a] - np.eye(n_groups)[b]) / scale
                margin = np.sqrt(slope @ covariance @ slope) * stats.t.ppf(level, df)
                limits.append(value[a] - value[b] + margin)
        result = means(estimate, covariance, df)
        bound = disparity_bound(result, "difference", level)
        assert bound == pytest.approx(max(limits[::2]))
        bound = disparity_bound(result, "ratio", level)
        assert np.log(bound) == pytest.approx(-max(limits[1::2]))

    @pytest.mark.parametrize("kind", ["difference", "ratio", "max_abs", "l1"])
    @pytest.mark.parametrize("n_groups", [2, 4, 33])
    def test_is_beyond_the_disparity_and_moves_with_the_level(self, kind, n_groups):
        estimate = np.linspace(0.4, 0.7, n_groups)
        result = means(estimate, make_covariance(n_groups, 0.005), df=40)
        sign = -1 if kind == "ratio" else 1
        values = [disparity(estimate, estimate, with_fair_value(0.5), kind)] + [
            disparity_bound(result, kind, level) for level in (0.6, 0.9, 0.99)
        ]
        assert (np.diff(values) * sign > 0).all()

    def test_without_variance_nothing_is_bounded(self):
        # Of means no error is known; of shares there is that of a binomial.
        result = result_of(np.full((8, 2), [0.5, 0.7]))
        assert np.isnan(disparity_bound(result, "difference", 0.95))
        good, query = np.arange(80) % 2, np.repeat(np.arange(40), 2)
        who = {"sensitive_features": np.where(query % 2, "a", "b"), "qid": query}
        won = pairwise_accuracy(good, good, **who)
        assert won.disparity() == 0
        assert 0.1 < won.disparity_bound() < 0.3
        assert 0.7 < won.disparity_bound(kind="ratio") < 0.9

    def test_what_has_no_bound(self, with_empty_group):
        for result in (with_empty_group, means([0.5], make_covariance(1))):
            for kind in ("difference", "ratio"):
                assert np.isnan(disparity_bound(result, kind, 0.95))

    def test_a_ratio_with_a_group_at_zero_is_bounded_by_zero(self):
        result = result_of(np.random.default_rng(0).random((9, 2)) * [0, 1])
        assert disparity_bound(result, "ratio", 0.95) == 0


def t_of(interval, result):
    """Return the quantile that an interval was made with."""
    return (interval.high - result.estimate) / result.standard_error


def quantile_error(density, n):
    """Four standard errors of a simulated 95% quantile."""
    return tolerance(0.95, n) / density


def test_perfectly_correlated_groups_need_no_correction():
    result = result_of(np.random.default_rng(0).normal(size=(60, 1)) * [1, -1])
    n = 200_000
    quantile = t_of(result.simultaneous_interval(n_resamples=n), result)
    single = stats.t.ppf(0.975, 59)
    error = quantile_error(2 * stats.t.pdf(single, 59), n)
    assert np.all(np.abs(quantile - single) < error)


def test_uncorrelated_groups_have_sidaks_quantile():
    # Orthogonal columns: the estimates have correlation 0; many clusters: normal.
    values = np.linalg.qr(np.random.default_rng(0).normal(size=(5000, 5)))[0][:, 1:]
    values = np.linalg.qr(values - values.mean(0))[0] * [1, 2, 3, 4]
    result = result_of(values)
    n = 200_000
    quantile = t_of(result.simultaneous_interval(n_resamples=n), result)
    sidak = stats.norm.ppf((1 + 0.95**0.25) / 2)
    density = 4 * 2 * stats.norm.pdf(sidak) * 0.95**0.75
    assert np.all(np.abs(quantile - sidak) < quantile_error(density, n) + 1e-3)


def test_simultaneous_interval_leaves_out_groups_without_error(with_empty_group):
    low, high = with_empty_group.simultaneous_interval()
    assert np.isnan([low[2], high[2]]).all()
    assert np.isfinite([low[:2], high[:2]]).all()
