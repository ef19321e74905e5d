"""What calibration would change: decisions and ranks."""

import numpy as np
import pytest
from scipy import special

from skrankfair._estimates import rows as _rows
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import GroupEstimates, _calibration_impact
from tests.metrics.common import with_peak
from tests.metrics.test_calibration import SHIFTS, H, decisions, each_shift, ranks, rows
from tests.reference import predictive_parity as naive
from tests.seeds import one_in


def calibrated(y, s, group, cluster, *options):
    """Return who is in which group, and the naive calibrated scores."""
    member = {g: (group == g).tolist() for g in "ab"}
    columns = y.tolist(), s.tolist(), cluster.tolist(), member
    return member, naive.calibrated(*columns, H, *options)


class TestReference:
    @one_in(
        3,
        kernel={name: name for name in ("gaussian", "epanechnikov", "gaussian4")},
        cluster_weight={name: name for name in ("cluster", "row")},
        weighted={"equal": False, "weighted": True},
        ties={"distinct": False, "ties": True},
    )
    def test_both(self, kernel, cluster_weight, weighted, ties):
        *columns, query = rows(ties=ties)
        s, w, weight = columns[1].tolist(), None, None
        if weighted:
            weight = np.random.default_rng(1).integers(0, 3, query.max() + 1)[query]
            w = weight.tolist()
        member, star = calibrated(*columns, kernel, cluster_weight, w)
        star = np.clip(star, 0, 1).tolist()
        options = {
            "kernel": kernel,
            "cluster_weight": cluster_weight,
            "sample_weight": weight,
        }
        r = decisions(*columns, **options)
        expected = naive.positive_rate_shift(s, star, member, 0.5, w)
        np.testing.assert_allclose(r.estimate, list(expected.values()), atol=1e-12)
        # Equal to the last bit where scores are, in the curve as in the scores.
        star = np.round(star, 12).tolist()
        for k in (None, 2):
            r = ranks(*columns, query, **options, k=k)
            of_top = {} if k is None else {"k": k}
            expected = naive.rank_shift(s, star, query.tolist(), member, w, **of_top)
            np.testing.assert_allclose(r.estimate, list(expected.values()), atol=1e-12)

    @pytest.mark.parametrize("average", ["queries", "clusters"])
    def test_mean_of_units(self, average):
        *columns, query = rows()
        _, s, _, cluster = columns
        member, star = calibrated(*columns)
        r = ranks(*columns, query, average=average, kernel="gaussian")
        unit = query if average == "queries" else cluster
        means = []
        for u in range(unit.max() + 1):
            own = unit == u
            inside = {
                g: np.array(of_group)[own].tolist() for g, of_group in member.items()
            }
            shifts = naive.rank_shift(
                *(s[own].tolist(), np.array(star)[own].tolist(), query[own].tolist()),
                inside,
            )
            means.append([*shifts.values()])
        np.testing.assert_allclose(r.estimate, np.nanmean(means, axis=0), rtol=1e-9)

    def test_one_list(self):
        y, s, group, cluster, _ = rows(n_users=50)
        for clusters in (None, cluster):
            units = np.arange(y.size) if clusters is None else clusters
            member, star = calibrated(y, s, group, units)
            expected = naive.rank_shift(s.tolist(), star, [0] * y.size, member)
            r = ranks(y, s, group, clusters, None, kernel="gaussian")
            np.testing.assert_allclose(r.estimate, list(expected.values()))
            assert r.n_clusters == len(set(units))
            assert (r.standard_error > 0).all()

    def test_many_rows_are_on_a_lattice(self):
        columns = rows(1, 700)
        assert (columns[2] == "a").sum() ** 2 > 1 << 22
        few = np.flatnonzero(columns[3] < 30)
        for metric in SHIFTS.values():
            r = metric(*columns, n_resamples=2)
            # The same rows again and again are the same curve, from few rows.
            one = metric(*(c[few] for c in columns))
            counts = (np.arange(int(r.n_clusters)) < 30).astype(float)
            drawn, few_rows = r.sums.refit(counts[None])[0], one.sums.by_group
            np.testing.assert_allclose(drawn[:, :2], few_rows[:, :2], rtol=1e-9)

    @each_shift
    @pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
    def test_memory_is_for_rows_and_groups(self, metric, monkeypatch):
        n, n_groups = 12_000, 120
        # What is worked on at once is as large beside the rows as for a million.
        monkeypatch.setattr(_calibration_impact, "_BLOCK", n >> 3)
        monkeypatch.setattr(_rows, "_MOST_COUNTS", n)
        monkeypatch.setattr(_rows, "BLOCK", n >> 2)
        rng = np.random.default_rng(0)
        y, s = rng.random((2, n))
        group, query = rng.integers(0, n_groups, n), rng.integers(0, n // 50, n)
        query = query if metric is ranks else None

        def measured():
            r = metric(y, s, group, None, query, n_resamples=16)
            return r, r.standard_error, r.df

        _, peak = with_peak(measured)
        # The kernel of all pairs of a group's rows would be 800 bytes per row, a table
        # of all groups of each row 4,800, and the scores of all resamples 128, of which
        # a few are worked on at once.
        assert peak < 205 * n + 1000 * n_groups

    @each_shift
    def test_noise_of_the_curves_moves_fair_scores(self, metric):
        *columns, query = rows()
        r = metric(*columns, query, kernel="gaussian", n_resamples=2)
        few = columns[-1] % 2 == 0
        counts = 1.0 - np.arange(r.n_clusters) % 2
        totals = r.sums.refit(counts[None])[0]
        _, star = calibrated(*columns)
        member, drawn = calibrated(*(c[few] for c in columns))
        change = np.array(drawn) - np.array(star)[few]
        s, noisy = columns[1][few].tolist(), (columns[1][few] + change).tolist()
        if metric is decisions:
            expected = naive.positive_rate_shift(s, noisy, member, 0.5)
        else:
            expected = naive.rank_shift(s, noisy, query[few].tolist(), member)
        shift = totals[:, 2] / totals[:, 1]
        np.testing.assert_allclose(shift, list(expected.values()), rtol=1e-9)

    def test_rounding_is_no_noise(self):
        rng = np.random.default_rng(1)
        s, group = rng.integers(0, 11, 400) / 10, np.repeat(["a", "b"], 200)
        # Curves without noise, whose scores are tied with those of the other group.
        r = ranks(np.where(group == "a", 0.3, 0.7), s, group, None, np.arange(400) % 20)
        drawn = r.sums.drawn(rng.multinomial(20, np.full(20, 0.05), 5).astype(float))
        assert not drawn[0][..., -1].any()
        # A single of 0.1 is above the threshold 0.1 by rounding alone.
        y = np.where(group == "a", rng.random(400) < s, 1)
        double, single = (
            decisions(y, x, group, None, threshold=0.1) for x in (s, s.astype("f4"))
        )
        assert double.standard_error[1] < 0.1
        np.testing.assert_allclose(single.standard_error[1], double.standard_error[1])

    def test_one_query_is_one_cluster(self):
        y, s = np.random.default_rng(0).random((2, 12))
        with pytest.warns(UndefinedMetricWarning, match="no standard error"):
            one = ranks(y, s, None, None, [7] * 12, n_resamples=3)
        assert one.n_clusters == 1


@each_shift
def test_outcomes_that_are_the_scores_leave_nothing_to_change(metric):
    rng = np.random.default_rng(1)
    query, group = np.repeat(np.arange(100), 4), rng.choice(["a", "b"], size=400)
    s = special.ndtr(0.6 * rng.normal(size=query.size))
    exact = metric(s, s, group, query, query, bandwidth=1e-6)
    np.testing.assert_array_equal(exact.estimate, [0, 0])
    r = metric(s**2, s, group, query, query, bandwidth="undersmooth")
    assert r.fair_value == 0
    assert r.disparity() == np.abs(r.estimate).max() > 0


@each_shift
def test_error_is_the_deviation_of_resamples_from_the_estimate(metric):
    r = metric(*rows(), n_resamples=50, random_state=3)
    seed = int(np.random.default_rng(3).integers(2**62))
    values = r.resampled(50, seed)
    factor = r.n_clusters / (r.n_clusters - 1)
    bias = (1 if metric is decisions else 2) * (values.mean(axis=0) - r.estimate)
    drawn = r.sums.resample(50, np.random.default_rng(seed))
    noise = 2 * np.mean([t[..., 2] / t[..., 1] for t, _ in drawn], axis=(0, 1))
    expected = factor * np.cov(values.T) + np.outer(bias, bias) + np.outer(noise, noise)
    np.testing.assert_allclose(r.covariance, expected)
    np.testing.assert_allclose(r.standard_error**2, np.diag(expected))
    stored = GroupEstimates.from_json(r.to_json())
    np.testing.assert_array_equal(stored.covariance, r.covariance)
    low, high = r.confidence_interval(method="bootstrap", n_resamples=50)
    assert (low < r.estimate).all()
    assert (r.estimate < high).all()


@each_shift
def test_few_and_rare_events_have_no_error(metric):
    """No event says nothing where two are due, and something where twenty are."""
    group, query = np.tile(["a", "b"], 200), np.arange(400) // 4
    s = np.where(group == "a", 0.005, 0.3) + np.linspace(0, 0.01, 400)
    y = (np.random.default_rng(0).random(400) < 0.3) & (group == "b")
    with pytest.warns(UndefinedMetricWarning, match="for fewer than 8 rare events"):
        error = metric(y, s, group, None, query).standard_error
    np.testing.assert_array_equal(np.isnan(error), [True, metric is ranks])
    assert np.isfinite(metric(y, s + 0.1, group, None, query).standard_error).all()
