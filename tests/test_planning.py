"""Plans without data agree with textbooks and with simulated data."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy import optimize, special
from statsmodels.stats.power import TTestIndPower

mpl.use("Agg")

from skrankfair.metrics import pairwise_accuracy, selection_rate
from skrankfair.planning import draw_pairs, plan_pairs, plan_rates, power_curve
from tests.display.pictures import legend
from tests.estimates.test_power import rates
from tests.metrics.common import result_of


def assert_is_of_data(plan, n_clusters, result, tolerance):
    """Assert that a plan knows the error and the effective clusters of data."""
    error = result.against_rest().standard_error[1]
    assert plan.standard_error(n_clusters) == pytest.approx(error, rel=tolerance[0])
    effective = n_clusters * np.array(plan.effective)[::-1]
    np.testing.assert_allclose(effective, result.n_effective, rtol=tolerance[1])


class TestRates:
    @pytest.mark.parametrize("groups_of", ["items", "clusters"])
    @pytest.mark.parametrize("power", [0.6, 0.9])
    def test_two_samples_are_statsmodels_t_test(self, groups_of, power):
        plan = plan_rates(0.3, share=0.5, groups_of=groups_of)
        effect = TTestIndPower().solve_power(nobs1=40, power=power, alpha=0.05)
        actual = plan.minimum_detectable(80, power=power)
        assert actual == pytest.approx(effect * np.sqrt(0.21), rel=2e-3)
        assert plan.df(80) == 78
        needed = TTestIndPower().solve_power(
            0.1 / np.sqrt(0.21), power=power, alpha=0.05
        )
        assert plan.required(0.1, power=power) == pytest.approx(2 * needed, abs=2)

    def test_whole_clusters_have_the_design_effect(self):
        options = {"share": 0.4, "groups_of": "clusters"}
        sizes = {"n_items": 5, "queries_per_cluster": 4, "correlation": 0.1}
        alone, plan = (plan_rates(0.3, **options, **more) for more in ({}, sizes))
        ratio = plan.standard_error(100) / alone.standard_error(100)
        assert ratio**2 == pytest.approx((1 + 19 * 0.1) / 20)

    def test_two_rates_are_tested_by_the_sides_of_their_intervals(self):
        """A quarter of the rate needs more data than its own error says."""
        rates, sizes = np.array([0.05, 0.2]), np.array([0.2, 0.8])
        error = np.sqrt(rates * (1 - rates) / sizes)
        clusters = 4 * (error**2).sum() / 0.15**2  # two errors from 0

        def between(t):
            of_logit = t * error / np.sqrt(clusters) / (rates * (1 - rates))
            high, low = special.expit(special.logit(rates) + of_logit * [1, -1])
            yes, no = clusters * 0.8 * np.array([0.2, 0.8]) + 0.5  # of few events
            low = min(low, special.betaincinv(yes, no, special.ndtr(-t)))
            return np.hypot(high - rates[0], rates[1] - low) - 0.15

        plan = plan_rates(tuple(rates), share=0.2)
        assert plan.tested == pytest.approx(2 / optimize.brentq(between, 0, 9))
        chosen = np.repeat([1, 0, 1, 0], [50, 950, 800, 3200])
        pilot = selection_rate(None, chosen, sensitive_features=np.arange(5000) < 1000)
        asked = pilot.required(0.15, pilot_error="known").n_clusters[1]
        assert asked == pytest.approx(plan.required(0.15), rel=0.02)

    @pytest.mark.parametrize("common", [0.0, 1.0])
    def test_errors_are_those_of_data(self, common):
        """Cluster effects on a rate of one half, in each group or in both alike."""
        rng = np.random.default_rng(0)
        n, m, share = 4000, 12, 0.25
        cluster = np.repeat(np.arange(n), m)
        group = rng.random(n * m) < share
        effects = 0.2 * rng.choice([-1, 1], size=(n, 2))
        effects[:, 1] = effects[:, 0] if common else effects[:, 1]
        chosen = rng.random(n * m) < 0.5 + effects[cluster, group.astype(int)]
        result = selection_rate(None, chosen, sensitive_features=group, cluster=cluster)
        plan = plan_rates(
            0.5, share=share, n_items=m, correlation=0.04 / 0.25, common=common
        )
        assert_is_of_data(plan, n, result, (0.03, 0.03))


class TestPairs:
    @pytest.mark.parametrize("queries", [1, 3])
    def test_errors_are_those_of_data(self, queries):
        rng, n_users = np.random.default_rng(1), 1500
        sizes = {"rate": 0.4, "share": 0.3, "n_items": 12}
        query = np.repeat(np.arange(n_users * queries), 12)
        group, good = (rng.random(query.size) < sizes[x] for x in ("share", "rate"))
        score = rng.exponential(size=query.size) * np.where(good, 2.0, 1.0)
        who = {"sensitive_features": group, "qid": query, "cluster": query // queries}
        result = pairwise_accuracy(good, score, **who, comparison="inter")
        # Of two exponential scores, the one with twice the mean wins in 2 of 3.
        plan = plan_pairs(2 / 3, **sizes, queries_per_cluster=queries)
        assert_is_of_data(plan, n_users, result, (0.04, 0.06))

    def test_correlated_queries_are_fewer(self):
        options = {"rate": 0.2, "share": 0.3, "n_items": 20}
        one = plan_pairs(0.7, **options)
        same = plan_pairs(0.7, **options, queries_per_cluster=7, correlation=1.0)
        none = plan_pairs(0.7, **options, queries_per_cluster=7)
        assert same.standard_error(50) == pytest.approx(one.standard_error(50))
        assert none.standard_error(50) == pytest.approx(one.standard_error(350))


class TestPlan:
    def test_what_is_required_is_the_first_that_detects(self):
        plan = plan_rates(0.3, share=0.2, n_items=10, correlation=0.05, n_tests=3)
        needed = plan.required(0.05)
        enough, fewer = map(plan.minimum_detectable, (needed, needed - 1))
        assert enough <= 0.05 < fewer
        alone = plan_rates(0.3, share=0.2, n_items=10, correlation=0.05)
        assert alone.required(0.05, alpha=0.05 / 3) == needed

    def test_the_ends(self):
        plan = plan_rates(0.5, share=0.5, n_items=10_000)
        assert plan.required(0.9) == 3
        assert plan_rates(0.5, share=0.5).required(1e-9) == np.inf
        with pytest.raises(ValueError, match=r"gap of shares must .* in \(0, 1.0\]"):
            plan.required(2)
        assert "with 1,000" in repr(plan)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"rate": 1.0}, "rate must"),
            ({"rate": (0.1, 0.2, 0.3)}, "rate must be one number or two"),
            ({"rate": "a"}, "rate must"),
            ({"share": 0}, "share must"),
            ({"n_items": 0}, "n_items must"),
            ({"queries_per_cluster": 0.5}, "queries_per_cluster must"),
            ({"correlation": -0.1}, "correlation must"),
            ({"common": 2}, "common must"),
            ({"groups_of": "users"}, "groups_of must"),
            ({"n_tests": 0}, "n_tests must"),
            ({"accuracy": 1.0, "n_items": 10}, "accuracy must"),
            ({"accuracy": 0.7, "n_items": 1}, "n_items must"),
        ],
    )
    def test_what_is_wrong_is_named(self, wrong, message):
        plan = plan_pairs if "accuracy" in wrong else plan_rates
        with pytest.raises(ValueError, match=message):
            plan(**{"rate": 0.3, "share": 0.2} | wrong)


def decisions():
    return rates("abc", 0, share=[0.1, 0.3, 0.6])


class TestPowerCurve:
    def test_meets_what_is_required(self):
        result = decisions()
        needed = result.required(0.1, power=0.7).n_clusters
        curve = power_curve(result, 0.1, n_clusters=needed)
        np.testing.assert_allclose(np.diag(curve.power[:, 0]), 0.7, atol=2e-3)
        assert curve.pilot == 600

    def test_of_contrasts_and_ratios(self):
        contrast = decisions().contrast("a", "b")
        gap = contrast.minimum_detectable()
        curve = power_curve(contrast, [gap, 2 * gap], n_clusters=[600])
        assert curve.power[0, 0, 0] == pytest.approx(0.8, abs=1e-6)
        assert curve.power[0, 1, 0] > 0.99
        ratio = decisions().contrast("b", "c", "ratio")
        factor = ratio.minimum_detectable()
        curve = power_curve(ratio, [factor, 1 / factor], n_clusters=[600])
        np.testing.assert_allclose(curve.power[0, :, 0], 0.8, atol=1e-6)

    def test_ends_where_all_is_found(self):
        curve = power_curve(decisions(), [0.05, 0.1])
        assert (curve.power[:, :, -1] >= 0.99).all()
        assert (np.diff(curve.power) >= -1e-12).all()
        assert curve.power.shape == (3, 2, curve.n_clusters.size)
        frame = curve.to_frame()
        assert list(frame) == ["group", "gap", "n_clusters", "power"]
        of_b = frame.set_index(["group", "gap"]).loc[("b", 0.1), "power"]
        np.testing.assert_array_equal(of_b, curve.power[1, 1])
        assert "Power by number of clusters" in repr(curve)

    def test_a_group_without_an_error_is_unknown(self):
        values = np.arange(303.0).reshape(101, 3) * [1, 1, 0]
        curve = power_curve(result_of(values), 100.0)
        assert np.isnan(curve.power[2]).all()
        assert np.isfinite(curve.power[:2]).all()

    def test_is_drawn(self):
        display = power_curve(decisions(), [0.05, 0.1]).plot()
        texts = ["a", "b", "c", "gap 0.05", "gap 0.1", "power 0.8", "pilot"]
        assert legend(display) == texts
        np.testing.assert_array_equal(display.pilot_line_.get_xdata(), 600)
        assert len(display.lines_) == 6
        assert power_curve(plan_rates(0.3, share=0.2), 0.05).plot().pilot_line_ is None
        mpl.pyplot.close("all")

    @pytest.mark.parametrize(
        ("pilot", "options", "message"),
        [
            (None, {"gap": 0.1}, "pilot must be a result"),
            ("result", {"gap": 0}, "gap of shares must"),
            ("result", {"gap": [0.1, 20]}, r"in \(0, 1.0\]; got 20"),
            ("result", {"gap": "a"}, "gap must"),
            (plan_rates(0.3, share=0.2), {"gap": 0.0}, "gap of shares must"),
            ("result", {"gap": 0.1, "alpha": 1}, "alpha must"),
            ("result", {"gap": 0.1, "n_clusters": [2]}, "n_clusters must be at least"),
        ],
    )
    def test_what_is_wrong_is_named(self, pilot, options, message):
        pilot = decisions() if pilot == "result" else pilot
        with pytest.raises(ValueError, match=message):
            power_curve(pilot, **options)


class TestDrawnPairs:
    query = np.array(["x", "y", "x", "z", "y", "x", "z", "one", "x"])

    def test_every_ordered_pair_of_a_query_is_as_likely(self):
        counts = {}
        for seed in range(1500):
            pairs = draw_pairs(self.query, random_state=seed)
            assert pairs.qid.tolist() == self.query[pairs.rows].tolist()
            assert pairs.slot.tolist() == [0, 1] * 3
            for pair in map(tuple, pairs.rows.reshape(-1, 2).tolist()):
                counts[pair] = counts.get(pair, 0) + 1
        for label, n_pairs in {"x": 12, "y": 2, "z": 2}.items():
            some = [c for (i, _), c in counts.items() if self.query[i] == label]
            expected = 1500 / n_pairs
            assert len(some) == n_pairs
            assert np.abs(np.array(some) - expected).max() < 4.5 * np.sqrt(expected)

    def test_some_queries_are_drawn_without_replacement(self):
        query = np.repeat(np.arange(50), 3)
        drawn = draw_pairs(query, n_queries=20, random_state=0)
        labels, counts = np.unique(drawn.qid, return_counts=True)
        assert labels.size == 20
        assert (counts == 2).all()
        assert (drawn.sample_weight == 3).all()
        again = draw_pairs(query, n_queries=20, random_state=0)
        np.testing.assert_array_equal(again.rows, drawn.rows)

    @pytest.mark.parametrize(
        ("qid", "options", "message"),
        [
            (None, {}, "qid must be given; got None"),
            ([1, 2, 3], {}, "qid must have 1 queries of two or more items; got 0"),
            ([1, 1, 2, 2], {"n_queries": 3}, "qid must have 3 queries .* got 2"),
            ([1, 1], {"n_queries": 0}, "n_queries must be an integer"),
            ([1, None], {}, "qid must"),
        ],
    )
    def test_what_is_wrong_is_named(self, qid, options, message):
        with pytest.raises(ValueError, match=message):
            draw_pairs(qid, **options)
