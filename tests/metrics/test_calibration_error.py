"""How far scores are from mean outcomes: three estimates of it."""

import copy
import pickle

import numpy as np
import pytest
from scipy import stats

from skrankfair._inputs.score_rows import Sample
from skrankfair.datasets import make_bias_by_construction
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare
from skrankfair.metrics import GroupEstimates, calibration_error
from skrankfair.metrics._calibration_error import SortedScores
from skrankfair.smoothing import nadaraya_watson
from tests.reference import predictive_parity as naive

EDGES = [0, 0.2, 0.35, 0.8, 1]
METHODS = (
    {"method": "smooth", "bandwidth": 0.1},
    {"method": "binned", "bins": 4},
    {"method": "binned", "bins": EDGES},
    {"method": "sweep"},
)
each_method = pytest.mark.parametrize("options", METHODS, ids=str)


def rows(seed=0, n_clusters=40, *, ties=False, labels="ab"):
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(
        np.repeat(np.arange(n_clusters), 1 + rng.poisson(3, n_clusters))
    )
    group = rng.choice(list(labels), size=cluster.size)
    s = rng.random(cluster.size)
    s = np.round(s, 1) if ties else s
    y = (rng.random(cluster.size) < s ** (1 + (group == "a"))).astype(float)
    return y, s, group, cluster


def measure(columns, part=slice(None), **options):
    """Return the result for a part of the columns that `rows` returns."""
    y, s, group, cluster = (None if c is None else c[part] for c in columns)
    return calibration_error(y, s, sensitive_features=group, cluster=cluster, **options)


class TestReference:
    @pytest.mark.parametrize("kernel", ["gaussian", "tricube", "gaussian4"])
    @pytest.mark.parametrize("cluster_weight", ["cluster", "row"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_smooth(self, kernel, cluster_weight, weighted):
        y, s, group, cluster = rows()
        weight = np.random.default_rng(1).integers(0, 3, y.size) if weighted else None
        options = {"kernel": kernel, "cluster_weight": cluster_weight}
        r = measure(rows(), bandwidth=0.15, sample_weight=weight, **options)
        for g, name in enumerate("ab"):
            error = naive.smooth_error(
                *(y.tolist(), s.tolist(), cluster.tolist(), (group == name).tolist()),
                *(0.15, kernel, cluster_weight),
                None if weight is None else weight.tolist(),
            )
            assert r.estimate[g] == pytest.approx(error, rel=1e-9)

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("bins", [1, 2, 5, 15, 200])
    def test_binned(self, bins, ties):
        y, s, group, _ = rows(ties=ties)
        r = measure(rows(ties=ties), method="binned", bins=bins)
        for g, name in enumerate("ab"):
            own = group == name
            expected = naive.binned_error(y[own].tolist(), s[own].tolist(), bins)
            assert r.estimate[g] == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("ties", [False, True])
    def test_sweep(self, ties):
        found = set()
        for seed in range(30):
            y, s, group, _ = rows(seed, 12, ties=ties)
            r = calibration_error(y, s, sensitive_features=group, method="sweep")
            for g, name in enumerate("ab"):
                own = group == name
                data = y[own].tolist(), s[own].tolist()
                assert r.first_pass["bins"][name] == naive.sweep_bins(*data)
                assert r.estimate[g] == pytest.approx(
                    naive.sweep_error(*data), rel=1e-9
                )
                found.add(r.first_pass["bins"][name])
        assert len(found) > 3

    def test_fixed_edges(self):
        y, s, group, _ = rows()
        r = measure(rows(), method="binned", bins=EDGES)
        place, gap = np.digitize(s, EDGES[1:-1]), s - y
        for g, name in enumerate("ab"):
            bins = [gap[(place == b) & (group == name)] for b in range(4)]
            expected = sum(part.size * part.mean() ** 2 for part in bins)
            n = np.count_nonzero(group == name)
            assert r.estimate[g] == pytest.approx(np.sqrt(expected / n), rel=1e-12)
            assert r.support[g] == n


class TestSweep:
    """What the sweep of Roelofs et al. does where means never fall, and where."""

    def bins(self, y, s):
        x, y = np.array(s, dtype=float), np.array(y, dtype=float)
        return SortedScores.of_sample(Sample.of_rows(x, y)).sweep()

    def test_never_as_many_bins_as_rows(self):
        assert self.bins([0, 0, 1, 1], [1, 2, 3, 4]) == 3
        assert self.bins([0.1] * 7, range(7)) == 6
        assert self.bins([1], [1]) == self.bins([0, 1], [1, 2]) == 1
        # Only two rows of all are in the wrong order, which no fewer bins show.
        y = [0, 1, 2, 3, 4, 5, 7, 6]
        assert self.bins(y, range(8)) == naive.sweep_bins(y, list(range(8)))
        assert self.bins([1, 0], [1, 2]) == 1

    def test_first_fall_and_not_the_last(self):
        # Four bins fall (0, 1, 1/2, 1); five (0, 0, 1, 0, 1) too; six are not tried.
        y = [0, 0, 1, 0, 1, 1]
        assert self.bins(y, range(6)) == 3
        # Two fall, four do not: the first counts.
        y = [0, 0, 9, 0, 0, 1, 1, 1]
        assert self.bins(y, range(8)) == 1

    def test_ties_are_in_no_order(self):
        y, s = [0, 1, 1, 0, 1, 0], [0.5, 0.5, 0.5, 0.2, 0.9, 0.5]
        rng = np.random.default_rng(0)
        for _ in range(10):
            order = rng.permutation(6)
            mixed = np.array(y)[order], np.array(s)[order]
            assert self.bins(*mixed) == self.bins(y, s) == naive.sweep_bins(y, s)


@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")
def test_statsmodels_has_the_same_smooth_error():
    from statsmodels.nonparametric.kernel_regression import KernelReg

    y, s, _, _ = rows(1)
    fitted = KernelReg(y, s, "c", reg_type="lc", bw=[0.12]).fit()[0]
    r = calibration_error(y, s, sensitive_features=["all"] * y.size, bandwidth=0.12)
    expected = np.sqrt(np.mean((s - fitted) ** 2))
    assert r.estimate[0] == pytest.approx(expected, rel=1e-9)


def test_lattice_is_the_loop():
    # More rows than the exact sums are for.
    y, s, group, cluster = rows(2, 1500)
    options = {"sensitive_features": group, "cluster": cluster, "bandwidth": 0.05}
    r = calibration_error(y, s, **options)
    own = group == "a"
    assert own.sum() ** 2 > 1 << 22
    curve = nadaraya_watson(
        *(y[own], s[own], s[own]),
        bandwidth=0.05,
        cluster=cluster[own],
        method="exact",
    )
    sizes = np.bincount(cluster[own])[cluster[own]]
    expected = np.average((s[own] - curve.estimate) ** 2, weights=1 / sizes)
    assert r.estimate[0] == pytest.approx(np.sqrt(expected), rel=1e-6)
    # The same curve, fitted anew with weights of 1.
    totals = r.sums.refit(np.ones((1, int(r.n_clusters))))[0]
    np.testing.assert_allclose(totals, r.sums.by_group, rtol=1e-6)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "edges"),
        [(METHODS[0], None), (METHODS[1], None), (METHODS[2], EDGES)],
        ids=["smooth", "number", "edges"],
    )
    def test_error_is_that_of_leaving_clusters_out(self, options, edges):
        y, s, group, cluster = rows(n_clusters=25)
        r = measure(rows(n_clusters=25), **options)
        labels = sorted(set(cluster))

        def error(counts):
            """Return the errors when each cluster counts so often."""
            weight = np.array([counts[m] for m in cluster])
            values = []
            for name in "ab":
                own = group == name
                x, z, w = s[own], y[own], weight[own]
                if options["method"] == "smooth":
                    sizes = np.bincount(cluster[own], minlength=len(labels))
                    w = w / sizes[cluster[own]]
                    u = (x[:, None] - x) / 0.1
                    mass = np.exp(-0.5 * u**2) * w[:, None]
                    curve = z @ mass / mass.sum(0)
                    squares = w @ (x - curve) ** 2
                else:
                    if edges is None:  # bins held, as they are without weights
                        rank = np.argsort(np.argsort(x))
                        place = rank * 4 // x.size
                    else:
                        place = np.digitize(x, edges[1:-1])
                    gap = np.bincount(place, w * (x - z), minlength=4)
                    squares = np.sum(gap**2 / np.bincount(place, w, minlength=4))
                values.append(np.sqrt(squares / w.sum()))
            return np.array(values)

        one = dict.fromkeys(labels, 1.0)
        np.testing.assert_allclose(r.estimate, error(one), rtol=1e-9)
        if edges is None and options["method"] == "binned":
            return  # bins move with the weights: the next test
        if edges is not None:
            left = [error({**one, m: 0.0}) - error(one) for m in labels]
            there = [len(set(cluster[group == name])) for name in "ab"]
            change = np.array(left) * np.sqrt((np.array(there) - 1) / there)
            np.testing.assert_allclose(r.covariance, change.T @ change, rtol=1e-9)
            return
        # The curve is linearised, and its linear parts are left out.
        step = 1e-5
        influence = np.stack(
            [
                (error({**one, m: 1 + step}) - error({**one, m: 1 - step})) / (2 * step)
                for m in labels
            ]
        )
        np.testing.assert_allclose(
            r.standard_error, np.sqrt((influence**2).sum(0)), rtol=0.15
        )

    @each_method
    def test_bootstrap_is_the_metric_of_resampled_clusters(self, options):
        y, s, group, cluster = rows(3, 12)
        r = measure(rows(3, 12), **options)
        labels = r.sums.table.labels.tolist()
        counts = np.random.default_rng(0).integers(0, 12, (5, 12))
        held = dict(options)
        for values, drawn in zip(r.resampled(5, random_state=0), counts, strict=True):
            again = [np.flatnonzero(cluster == labels[m]) for m in drawn]
            place = np.concatenate(again)
            new = np.repeat(np.arange(12), [len(part) for part in again])
            columns = y[place], s[place], group[place], new
            for g, name in enumerate("ab"):
                if options["method"] == "sweep":  # the number of bins is held
                    held = {"method": "binned", "bins": r.first_pass["bins"][name]}
                expected = measure(columns, group[place] == name, **held)
                assert values[g] == pytest.approx(expected.estimate[0], rel=1e-9)


def assert_same(actual, expected, order=slice(None)):
    np.testing.assert_allclose(actual.estimate[order], expected.estimate, rtol=1e-9)
    covariance = actual.covariance[order][:, order]
    np.testing.assert_allclose(covariance, expected.covariance, rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(actual.support[order], expected.support)
    assert actual.n_clusters == expected.n_clusters


class TestInvariances:
    @each_method
    def test_order_of_rows_and_labels(self, options):
        y, s, group, cluster = rows(ties=True)
        order = np.random.default_rng(0).permutation(y.size)
        renamed = np.where(group == "a", "z", "y")
        users = np.array([f"u{m:03d}" for m in cluster])
        mixed = measure((y, s, renamed, users), order, **options)
        assert mixed.groups == ("y", "z")
        assert_same(mixed, measure(rows(ties=True), **options), slice(None, None, -1))

    @each_method
    @pytest.mark.parametrize("clustered", [False, True])
    def test_weights_have_no_scale(self, options, clustered):
        columns = rows(ties=True) if clustered else (*rows(ties=True)[:3], None)
        n = columns[0].size
        weight = np.random.default_rng(1).integers(0, 4, n)
        for first, second in ((weight, weight / 3), (np.full(n, 3.0), None)):
            r, again = (
                measure(columns, sample_weight=w, **options) for w in (first, second)
            )
            assert_same(r, again)
            assert r.first_pass == again.first_pass

    @each_method
    def test_groups_that_overlap_are_measured_each_alone(self, options):
        y, s, group, cluster = rows(labels="abc")
        member = np.stack([group != "a", group != "b"], axis=1)
        r = measure((y, s, member, cluster), **options)
        for g in range(2):
            alone = measure((y, s, None, cluster), member[:, g], **options)
            assert r.estimate[g] == pytest.approx(alone.estimate[0])

    @each_method
    def test_shift_of_scores_and_outcomes(self, options):
        y, s, group, _ = rows()
        r = measure((y, s, group, None), **options)
        if options.get("bins") is EDGES:
            options = {**options, "bins": np.array(EDGES) + 2}
        moved = measure((y + 2, s + 2, group, None), **options)
        np.testing.assert_allclose(moved.estimate, r.estimate, rtol=1e-9)


class TestParts:
    def test_fixed_edges_add_up(self):
        columns = rows(labels="abc")
        *_, group, cluster = columns
        keep = (group != "c") | (cluster >= 20)
        whole = measure(columns, keep, **METHODS[2])
        parts = [keep & part for part in (cluster < 20, cluster >= 20)]
        total = sum(measure(columns, part, **METHODS[2]) for part in parts)
        assert total.groups == whole.groups
        assert_same(total, whole)
        intervals = [r.confidence_interval() for r in (total, whole)]
        np.testing.assert_allclose(*intervals)

    @pytest.mark.parametrize("options", [*METHODS[:2], METHODS[3]], ids=str)
    def test_what_is_fitted_does_not(self, options):
        r = measure(rows(), **options)
        with pytest.raises(ValueError, match="do not add up"):
            r + r

    @each_method
    def test_copies_have_the_same_errors(self, options):
        r = measure(rows(), **options)
        copies = (r.compact(), copy.deepcopy(r), pickle.loads(pickle.dumps(r)))
        for other in copies:
            np.testing.assert_array_equal(other.covariance, r.covariance)
        with pytest.raises(ValueError, match="compact"):
            r.compact().resampled(3)

    def test_two_scores_are_compared_on_the_same_clusters(self):
        y, s, *who = rows(n_clusters=200)
        first, second = measure((y, s, *who)), measure((y, s**2, *who))
        difference = compare(first, second)
        expected = first.estimate - second.estimate
        np.testing.assert_allclose(np.abs(difference.estimate), np.abs(expected))
        resampled = difference.resampled(100, 0)
        ratio = resampled.std(0) / difference.standard_error
        assert ((ratio > 0.7) & (ratio < 1.4)).all()


class TestUndefined:
    @each_method
    def test_one_cluster(self, options):
        y, s, group, cluster = rows(labels="ab")
        one_of_b = np.where(group == "b", -1, cluster)
        with pytest.warns(UndefinedMetricWarning, match=r"too few clusters, in: b\.$"):
            r = measure((y, s, group, one_of_b), **options)
        assert np.isfinite(r.estimate).all()
        assert np.isnan(r.standard_error).tolist() == [False, True]

    @each_method
    def test_empty_group(self, options):
        y, s, group, _ = rows()
        member = np.stack([group == "a", group == "b", group == "c"], axis=1)
        with pytest.warns(UndefinedMetricWarning, match=r"groups without rows: 2\.$"):
            r = measure((y, s, member, None), **options)
        assert np.isnan(r.estimate).tolist() == [False, False, True]

    def test_scores_without_spread_are_one_place(self):
        y = [0.0, 1, 1, 1, 0, 0, 1, 1]
        group = list("ababab") + ["a", "b"]
        expected = [abs(0.5 - 2 / 4), abs(0.5 - 3 / 4)]
        for options in ({}, {"method": "binned"}, {"method": "sweep"}):
            r = calibration_error(y, [0.5] * 8, sensitive_features=group, **options)
            np.testing.assert_allclose(r.estimate, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "ece"),
        ("bandwidth", 0),
        ("bandwidth", np.nan),
        ("bandwidth", "silverman"),
        ("bandwidth", {"a": 0.1}),
        ("bandwidth", {"a": 0.1, "b": np.nan}),
        ("kernel", "cosine"),
        ("cluster_weight", "user"),
        ("bins", 0),
        ("bins", 2.5),
        ("bins", [0.1]),
        ("bins", [0.4, 0.1]),
        ("bins", [0.2, 0.9]),
        ("bins", [0, np.nan, 1]),
    ],
)
def test_bad_input_names_the_argument(name, value):
    good = {
        "y_true": [0, 1, 1, 0],
        "y_score": [0.1, 0.2, 0.3, 0.4],
        "sensitive_features": list("abab"),
    }
    if name == "bins":
        good["method"] = "binned"
    with pytest.raises(ValueError, match=name):
        calibration_error(**{**good, name: value})


def test_finds_the_error_that_was_built_in():
    for options in ({"b0": 1.0}, {"b0": 0.5, "b1": 1.0, "rate": 3.0, "n_max": 8}):
        data = make_bias_by_construction(15_000, **options, random_state=1)
        r = calibration_error(
            *(data.y_true, data.y_score),
            sensitive_features=["all"] * data.y_true.size,
            cluster=data.cluster,
        )
        assert abs(r.estimate[0] - data.true_error) < 4 * r.standard_error[0]
        assert r.standard_error[0] < 0.07 * data.true_error


@pytest.mark.parametrize("method", ["smooth", "binned", "sweep"])
def test_what_noise_would_tell_apart_is_not_compared(method):
    """Noise makes the error of the smaller of two calibrated groups larger."""
    y, s, group, cluster = rows(n_clusters=100)
    r = measure((y, s, group, cluster), method=method)
    for contrast in (lambda: r.contrast("a", "b"), r.contrasts):
        with pytest.raises(ValueError, match="Use skrankfair.inference.predictive_par"):
            contrast()
    if method == "sweep":
        with pytest.raises(ValueError, match=r"Use method='smooth' or 'binned'"):
            compare(r, measure((y, s**2, group, cluster), method=method))


class TestNoise:
    """Intervals know how large noise alone makes the estimate."""

    @pytest.mark.parametrize("options", METHODS, ids=str)
    def test_interval_of_calibrated_scores_begins_at_0(self, options):
        above, largest = 0, 0.0
        for seed in range(25):
            rng = np.random.default_rng(seed)
            s = rng.random(300)
            y = (rng.random(300) < s).astype(float)
            r = calibration_error(y, s, **options)
            low, high = (end[0] for end in r.confidence_interval())
            assert low <= r.estimate[0] < high
            above += low > 0
            largest = max(largest, r.estimate[0] - 1.96 * r.standard_error[0])
        assert above <= 3
        assert largest > 0  # the estimate and its error alone are wrong

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("bins", [1, 4, 15, 60])
    @pytest.mark.parametrize("clustered", [False, True])
    def test_noise_of_bins_is_the_variance_of_their_means(self, ties, bins, clustered):
        y, s, _, cluster = rows(ties=ties)
        cluster = cluster if clustered else np.arange(y.size)
        r = calibration_error(y, s, cluster=cluster, method="binned", bins=bins)
        place, share = _bins(s, bins)
        noise = 0.0
        for b in range(bins):
            part = np.where(place == b, share, 0.0).sum(1)
            mass = part.sum()
            if mass == 0:
                continue
            gap = part @ (s - y) / mass
            pull = np.bincount(cluster, part * (s - y - gap))
            alone = 1 - np.sum(np.bincount(cluster, part) ** 2) / mass**2
            some = pull @ pull / mass / alone if alone > 1e-9 else mass * gap**2
            noise += some
        found = r.sums.estimate(r.metric.noise)[0]
        assert found == pytest.approx(noise / y.size, rel=1e-9)

    def test_edges_have_the_noise_of_the_same_bins(self):
        _, s, group, _ = rows()
        of_a = np.sort(s[group == "a"])
        inner = of_a[[-(-b * of_a.size // 4) for b in (1, 2, 3)]] - 1e-9
        given = measure(rows(), method="binned", bins=[0, *inner, 1])
        number = measure(rows(), method="binned", bins=4)
        np.testing.assert_allclose(given.estimate[0], number.estimate[0])
        noise = given.sums.estimate(given.metric.noise)[0]
        assert noise == pytest.approx(number.metric.noise.by_group[0], rel=1e-9)

    def test_noise_of_a_curve_is_its_variance_over_clusters(self):
        y, s, _, cluster = rows()
        r = calibration_error(y, s, cluster=cluster, bandwidth=0.1)
        curve = nadaraya_watson(y, s, s, bandwidth=0.1, cluster=cluster)
        sizes = np.bincount(cluster)[cluster]
        expected = np.average(curve.standard_error**2, weights=1 / sizes)
        assert r.metric.noise.by_group[0] == pytest.approx(expected, rel=0.02)

    @pytest.mark.parametrize("method", ["smooth", "binned", "sweep"])
    def test_upper_end_is_at_least_that_of_narrow_bins(self, method):
        """Of 400 clusters 20 bins, which a curve with 20 waves shows."""
        rng = np.random.default_rng(3)
        s = rng.random(400)
        y = (rng.random(400) < 0.5 + 0.4 * np.sin(10 * np.pi * s)).astype(float)
        r = calibration_error(y, s, method=method, bins=2)
        narrow = calibration_error(y, s, method="binned", bins=20)
        noise = narrow.sums.estimate(narrow.metric.noise)[0]
        square = narrow.estimate[0] ** 2 - noise
        reach = stats.t.ppf(0.975, r.df[0])
        end = square + reach * 2 * narrow.estimate[0] * narrow.standard_error[0]
        low, high = (end[0] for end in r.confidence_interval())
        assert low <= r.estimate[0] < high
        assert high == pytest.approx(np.sqrt(end), rel=0.01)
        truth = np.sqrt(np.mean((s - 0.5 - 0.4 * np.sin(10 * np.pi * s)) ** 2))
        assert r.estimate[0] + 1.96 * r.standard_error[0] < truth < high

    def test_weights_that_are_no_numbers_of_rows_make_bins(self):
        y, s, _, _ = rows()
        weight = 0.1 + np.arange(y.size) % 7 / 7
        for bins in range(2, 40):
            r = calibration_error(
                y, s, method="binned", bins=bins, sample_weight=weight
            )
            assert np.isfinite(r.confidence_interval()).all()

    def test_disparity_is_bounded_by_the_intervals(self):
        y, s, group, _ = rows(n_clusters=100)
        r = calibration_error(y, s, sensitive_features=group)
        low, high = r.simultaneous_interval(0.9)
        assert r.disparity_bound(0.9) == pytest.approx(high.max() - low.min())
        with pytest.raises(ValueError, match="method must be 't' for calibration_err"):
            r.confidence_interval(method="bootstrap")


def _bins(s, bins):
    """Return the bins of each row, shape (n, n), and what part of it is in each.

    Rows of a block of equal scores share the places of the block.
    """
    order = np.argsort(s, kind="stable")
    rank = np.empty(s.size, dtype=int)
    rank[order] = np.arange(s.size)
    same = s[:, None] == s
    return np.broadcast_to(rank * bins // s.size, same.shape), same / same.sum(0)


def test_bins_of_many_groups_are_those_of_each():
    rng = np.random.default_rng(0)
    n, options = 12_000, {"method": "binned", "bins": np.linspace(0, 1, 6)}
    group, score = rng.permutation(n) % 300, rng.random(n)
    columns = (rng.random(n) < score).astype(float), score, group, None
    result = measure(columns, **options)
    parts = [measure(columns, np.arange(n) % 2 == half, **options) for half in (0, 1)]
    stored = GroupEstimates.from_json(result.to_json())
    for other in (sum(parts), stored, pickle.loads(pickle.dumps(result))):
        np.testing.assert_allclose(other.estimate, result.estimate, rtol=1e-12)
        error = other.standard_error
        np.testing.assert_allclose(error, result.standard_error, rtol=1e-12)
    for place in (3, 200):
        alone = measure(columns, group == result.groups[place], **options)
        for name in ("estimate", "standard_error", "df"):
            value = getattr(result, name)[place]
            np.testing.assert_allclose(value, getattr(alone, name)[0], rtol=1e-12)
