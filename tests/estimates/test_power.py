"""What a pilot says of the gaps that data can show, and of the data a gap needs."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from skrankfair._estimates.power import detectable, power_at
from skrankfair.exceptions import SmallSampleWarning
from skrankfair.inference import compare
from skrankfair.metrics import mean_squared_error, ndkl, rank_shift, selection_rate
from skrankfair.planning import power_curve
from tests.metrics.common import columns, result_of


def paired(n_clusters=40, seed=0):
    """Return means of one row of each of two groups per cluster."""
    values = np.random.default_rng(seed).random((n_clusters, 2))
    return result_of(values), values


def two_samples(loss):
    """Return the mean of losses of two groups in clusters of their own, by row."""
    group = np.repeat(["a", "b"], loss.shape[1])
    zeros = np.zeros(loss.size)
    return mean_squared_error(np.sqrt(loss).ravel(), zeros, sensitive_features=group)


def rates(labels, seed, share=None, n=600):
    """Return rates of 0.4 of rows of groups."""
    rng = np.random.default_rng(seed)
    group = rng.choice(list(labels), n, p=share)
    return selection_rate(None, rng.random(n) < 0.4, sensitive_features=group)


class TestSpecialCases:
    @pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
    def test_are_statsmodels_t_tests(self, power):
        pairs, loss = paired()
        values = np.random.default_rng(1).normal(size=(2, 50)) ** 2
        cases = [
            (pairs, np.diff(loss).std(ddof=1), TTestPower, {"nobs": 40}),
            (
                two_samples(values),
                np.sqrt(values.var(axis=1, ddof=1).mean()),
                TTestIndPower,
                {"nobs1": 50},
            ),
        ]
        for result, spread, test, n in cases:
            expected = spread * test().solve_power(**n, power=power, alpha=0.05)
            contrast = result.contrast("a", "b")
            actual = contrast.minimum_detectable(power, pilot_error="known")
            # statsmodels counts rejections on the wrong side, too.
            assert actual == pytest.approx(expected, rel=2e-3)

    @pytest.mark.parametrize(("df", "size"), [(2, 4.6), (4, 3.4), (30, 2.9)])
    def test_a_small_pilot_is_that_of_julious_and_owen(self, df, size):
        """Of a test that knows its error: the noncentral t of the pilot."""
        expected = stats.nct.cdf(size, df, stats.norm.ppf(0.975))
        one, pilot = np.array([1.0]), np.array([float(df)])
        actual = power_at(one, np.array([1e9]), size, 0.05, pilot)
        assert actual[0] == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize(("df", "alpha"), [(1.01, 1e-9), (1.2, 1e-6), (2, 1e-8)])
    def test_far_gaps_rest_on_the_errors_alone(self, df, alpha):
        """Whose ratio is that of an F distribution: SciPy's t takes minutes there."""
        one, degrees = np.ones(1), np.array([df])
        critical = stats.t.isf(alpha / 2, df)
        size = detectable(one, degrees, 0.8, alpha)
        assert size == pytest.approx(critical * np.sqrt(stats.chi2.ppf(0.8, df) / df))
        size = detectable(one, degrees, 0.8, alpha, degrees)
        expected = critical * np.sqrt(stats.f.ppf(0.8, df, df))
        assert size == pytest.approx(expected, rel=1e-3)

    @pytest.mark.parametrize("df", [1.5, 3, 20])
    def test_far_gaps_go_on_from_near_ones(self, df):
        one, degrees, gap = np.ones(1), np.array([df]), 999.0
        for pilot in (None, degrees):
            near, far = (
                power_at(one, degrees, size, 2 * stats.t.sf(1.2 * gap, df), pilot)
                for size in (gap, gap + 2)
            )
            assert near == pytest.approx(far, abs=4e-3)


class TestPilot:
    def test_what_is_required_detects_the_gap(self):
        contrast = paired()[0].contrast("a", "b")
        gap = contrast.minimum_detectable()
        actual = contrast.required(gap)
        assert actual.factor[0] == pytest.approx(1.0, rel=1e-6)
        assert contrast.required(gap / 2).factor[0] == pytest.approx(4.0, rel=0.05)
        assert "power 0.8" in repr(actual)

    def test_a_change_between_halves_is_half_a_gap(self):
        """Of the differences of pairs, half of which are in each arm."""
        result, values = paired(400)
        size = result.contrast("a", "b").required(0.2 / 2, pilot_error="known")
        spread = np.std(values[:, 0] - values[:, 1], ddof=1)
        per_arm = TTestIndPower().solve_power(0.2 / spread, alpha=0.05, power=0.8)
        assert size.n_clusters[0] == pytest.approx(2 * per_arm, abs=2)

    def test_weeks_of_those_who_return(self):
        result, _ = paired(400)
        size = result.contrast("a", "b").required(0.02)
        (needed,) = size.n_clusters
        assert size.weeks(100).tolist() == [np.ceil(needed / 100)]
        # Without anybody new, weeks add what one does not know from the others.
        correlation, weeks = 0.25, np.arange(1, 521)
        counted = needed * weeks * 0.6 / (1 + (weeks - 1) * correlation)
        actual = size.weeks(0.6 * needed, returning=1.0, correlation=correlation)
        assert actual.tolist() == [weeks[counted >= needed][0]]
        # The same 60% are there in every week, and the others in one.
        of_same = 0.6 * weeks * (1 + (weeks - 1) * correlation)
        counted = needed / 3 * weeks**2 / (of_same + 0.4 * weeks)
        actual = size.weeks(needed / 3, returning=0.6, correlation=correlation)
        assert actual.tolist() == [weeks[counted >= needed][0]]
        assert size.weeks(100, returning=1.0).tolist() == [np.inf]
        for wrong in ({"per_week": 0}, {"returning": 2}, {"correlation": [-1.0]}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                size.weeks(**{"per_week": 100, **wrong})

    def test_of_groups_and_the_rest(self):
        result = rates("abc", 2, share=[0.1, 0.3, 0.6])
        gaps = result.minimum_detectable()
        assert gaps[0] > gaps[1] > gaps[2]
        frame = result.required(0.05).to_frame()
        assert frame.loc["a", "n_clusters"] > frame.loc["c", "n_clusters"]

    def test_two_mirrored_groups_are_one_test(self):
        result = rates("ab", 3)
        expected = result.contrast("a", "b").minimum_detectable()
        assert result.minimum_detectable()[0] == pytest.approx(expected, rel=5e-3)
        with pytest.raises(ValueError, match=r"gap of shares must .* in \(0, 1"):
            result.required(20)

    def test_ratios_are_factors(self):
        ratio = rates("ab", 5).contrast("a", "b", "ratio")
        factor = ratio.minimum_detectable()
        assert factor > 1
        assert ratio.required(factor).factor[0] == pytest.approx(1.0, rel=1e-6)
        assert ratio.required(1 / factor).factor[0] == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(ValueError, match="gap must be a ratio other than 1"):
            ratio.required(1.0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"power": 1.0}, "power must"),
            ({"power": 0.01}, "power must be above alpha"),
            ({"alpha": 0.0}, "alpha must"),
            ({"gap": 0.0}, "gap must"),
            ({"gap": np.nan}, r"gap must be a number in \(0, 1e\+60\]; got nan"),
            ({"pilot_error": "small"}, "pilot_error must"),
        ],
    )
    def test_what_is_wrong_is_named(self, options, message):
        result, _ = paired()
        with pytest.raises(ValueError, match=message):
            result.required(**{"gap": 0.1} | options)

    def test_permutation_tests_have_no_formula(self):
        with pytest.raises(ValueError, match="tested by permutation"):
            ndkl(**columns()).minimum_detectable()

    def test_without_an_error_it_is_unknown(self):
        result, _ = paired(1)
        assert np.isnan(result.contrast("a", "b").minimum_detectable())
        required = result.contrast("a", "b").required(0.1)
        assert np.isnan(required.factor[0])
        assert not required.promised[0]
        assert repr(required).split()[-3:] == ["–", "–", "–"]


class TestWhatNoPilotCanPromise:
    def test_few_effective_clusters(self):
        result, _ = paired(11)
        message = r"power of .* fewer than 12 effective clusters: in a \(11\.0\), b"
        contrast = result.contrast("a", "b")
        for pilot, text in ((result, message), (contrast, r"power of a - b .* fewer")):
            with pytest.warns(SmallSampleWarning, match=text):
                pilot.minimum_detectable()
            with pytest.warns(SmallSampleWarning, match=text):
                size = pilot.required(0.1)
            assert not size.to_frame()["promised"].any()
            with pytest.warns(SmallSampleWarning, match=text):
                power_curve(pilot, 0.1)

    def test_extreme_values(self):
        """One user with a hundred times the loss of others has nearly all variance."""
        loss = np.random.default_rng(0).random((100, 2))
        loss[3, 0] = 100
        message = r"power of .* a few clusters make most of .* pilot: in a\. "
        result = two_samples(loss.T)
        # Each group is the rest of the other, but a sample of its own.
        _, share = result.against_rest().sums.tails(result.metric.finalize)
        assert share[0] > 0.9
        assert share[1] < 0.05
        with pytest.warns(SmallSampleWarning, match=r"make most of .*: in a, b\. "):
            result.required(0.1)
        with pytest.warns(SmallSampleWarning, match=message):
            result.contrast("a", "b").required(0.1)

    def test_a_known_error_is_not_doubted(self):
        result = result_of(np.random.default_rng(0).random((5, 2)))
        result.minimum_detectable(pilot_error="known")
        contrast = result.contrast("a", "b")
        for size in (result, contrast):
            assert size.required(0.1, pilot_error="known").promised.all()
        power_curve(result, 0.1, pilot_error="known")

    @pytest.mark.parametrize("seed", range(3))
    def test_normal_values_are_not_doubted(self, seed):
        result = result_of(20 + np.random.default_rng(seed).normal(size=(60, 2)))
        for size in (result, result.contrast("a", "b")):
            assert size.required(0.1).promised.all()

    def test_without_what_clusters_add_only_few_are_told(self):
        """Errors over refitted resamples, and over replicates that compact() keeps."""
        rng = np.random.default_rng(0)
        y, score = rng.random(300) < 0.5, rng.random(300)
        group, cluster = rng.choice(["a", "b"], 300), np.arange(300) // 3
        columns = {"sensitive_features": group, "cluster": cluster}
        shift = rank_shift(y, score, **columns)
        assert np.isnan(shift.sums.tails(shift.metric.finalize)).all()
        assert (shift.minimum_detectable() > 0).all()
        one, two = (
            mean_squared_error(y, s, **columns).compact(n_replicates=20)
            for s in (score, score**2)
        )
        assert (compare(one, two).minimum_detectable() > 0).all()
