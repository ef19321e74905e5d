"""Resampled clusters: the bootstrap, replicates of parts, and refitted curves."""

import itertools
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest

from skrankfair import metrics
from skrankfair._estimates.finalize import slopes_at
from skrankfair._estimates.resampled import (
    Origin,
    Replicates,
    label_hashes,
    poisson_counts,
)
from skrankfair.inference import compare
from tests.estimates.naive import DESIGNS, design, entries_of, entropy, sums_of

BITS = 2**64


def columns(n_queries=60, seed=0):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 8)
    return {
        "y_true": (rng.random(query.size) < 0.4).astype(int),
        "y_score": rng.random(query.size),
        "sensitive_features": rng.choice(["a", "b", "c"], query.size),
        "cluster": query,
    }


class TestBootstrap:
    @pytest.mark.parametrize("n_resamples", [1, 64, 65, 130])
    def test_totals_are_those_of_the_drawn_clusters(self, n_resamples):
        rows, generator = design(), partial(np.random.default_rng, 5)
        counts = np.vstack([*rows.draws(n_resamples, generator())])
        expected = counts @ np.hstack([rows.by_group.reshape(20, -1), rows.shared])
        assert (counts == counts.round()).all()
        np.testing.assert_array_equal(counts.sum(axis=1), rows.n_rows)
        for table in (rows, entries_of(rows)):
            drawn = sums_of(table).resample(n_resamples, generator())
            by_group, shared = map(np.concatenate, zip(*drawn, strict=True))
            totals = np.hstack([by_group.reshape(n_resamples, -1), shared])
            np.testing.assert_allclose(totals, expected)

    @pytest.mark.parametrize("name", ["few groups in each row", "no shared columns"])
    def test_errors_are_those_of_the_delta_method(self, name):
        rows, kinds = DESIGNS[name], ("value", "difference")
        first = np.arange(rows.n_groups)
        for table, kind in itertools.product((rows, entries_of(rows)), kinds):
            (counts,) = table.draws(7, np.random.default_rng(0))
            totals = table.drawn(counts)
            slopes, values = slopes_at(entropy, *totals), entropy(*totals)
            shared = np.repeat(rows.shared[:, None], rows.n_groups, axis=1)
            both = np.concatenate([rows.by_group, shared], axis=2)
            linear = np.einsum("qgc,bgc->bqg", both, slopes)
            groups = [first]
            if kind == "difference":
                groups, linear = [first, first[::-1]], linear - linear[..., ::-1]
            factor = rows.n_rows / (rows.n_rows - 1)
            expected = factor * np.einsum("bq,bqg->bg", counts, linear**2)
            origin = Origin(sums_of(table), entropy, np.transpose(groups), kind)
            data = [table.with_data_of(groups) for groups in origin.groups]
            errors = origin._errors(counts, values, slopes, data)
            np.testing.assert_allclose(errors**2, expected, atol=1e-10)

    def test_of_what_is_not_resampled(self):
        given = columns()
        compact = metrics.brier_score(**given).compact()
        for result in (compact, compact + metrics.brier_score(**given)):
            for call in (result.confidence_interval, result.resampled):
                options = {"method": "bootstrap"} if call != result.resampled else {}
                with pytest.raises(ValueError, match=r"needs the table.*n_replicates"):
                    call(**options)
        with pytest.raises(ValueError, match="needs the table of clusters"):
            compact.compact(n_replicates=5)
        with pytest.raises(ValueError, match="n_replicates must be 0"):
            metrics.calibration_error(**given).compact(n_replicates=5)
        given.pop("cluster")
        message = "bootstrap resamples clusters.*variance='item'"
        with pytest.raises(ValueError, match=message):
            metrics.auc(**given).compact(n_replicates=5)
        with pytest.raises(ValueError, match=message):
            metrics.auc(**given).confidence_interval(method="bootstrap")


# How often a cluster counts


def mixed(x):
    """The finaliser of splitmix64, by its published constants."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % BITS
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % BITS
    return x ^ (x >> 31)


def naive_count(label, seed, replicate):
    """How often a cluster counts, by its definition, with integers of any size."""
    weyl = 0x9E3779B97F4A7C15
    state = mixed(mixed((label + weyl) % BITS) ^ mixed((seed + weyl) % BITS))
    share = mixed((state + (replicate + 1) * weyl) % BITS) / BITS
    term = reached = math.exp(-1)
    count = 0
    while share > reached:
        count += 1
        term /= count
        reached += term
    return count


class TestCounts:
    def test_hashes_are_those_of_splitmix64(self):
        # The first number from 0, as the code of splitmix64's author prints it.
        assert label_hashes(np.array([0]))[0] == 0xE220A8397B1DCDAF
        expected = [mixed((x + 0x9E3779B97F4A7C15) % BITS) for x in (5, -3)]
        assert label_hashes(np.array([5, -3])).tolist() == expected

    @pytest.mark.parametrize(
        "labels",
        [
            [np.array([0, 1]), np.array([0.0, 1]), np.array([0, 1], np.uint8)],
            [np.array([0, 1]), np.array([False, True]), np.array([0, 1], object)],
            [np.array(["a", "", "é"]), np.array(["a", "", "é"], object)],
            [np.array([1.5, -2]), np.array([1.5, -2], "O"), np.array([1.5, -2], "f4")],
            [
                np.array(["2026-01-31T10:00"], "datetime64[ns]"),
                np.array([datetime(2026, 1, 31, 10)], object),
                np.array([pd.Timestamp("2026-01-31 10:00")], object),
                np.array([datetime(2026, 1, 31, 10, tzinfo=UTC)], object),
                np.array([pd.Timestamp("2026-01-31 11:00+01:00")], object),
            ],
            [np.array([date(1, 2, 3)], object), np.array(["0001-02-03"], "M8[D]")],
            [np.array([timedelta(2)], object), np.array([2 * 86_400_000], "m8[ms]")],
            [np.array([Decimal("1.50")], object), np.array([Decimal("1.5")], object)],
        ],
    )
    def test_hashes_do_not_depend_on_the_type_of_the_column(self, labels):
        for other in labels[1:]:
            np.testing.assert_array_equal(label_hashes(other), label_hashes(labels[0]))

    def test_hashes_differ(self):
        labels = np.array(
            [1, "1", 1.5, date(2026, 1, 1), ("a", 1), b"1", 2**70], object
        )
        assert len(set(label_hashes(labels).tolist())) == len(labels)
        rng = np.random.default_rng(0)
        many = label_hashes(np.unique(rng.integers(0, 2**40, 100_000)))
        assert np.unique(many).size == many.size

    def test_counts_are_those_of_the_definition(self):
        labels, seed = np.arange(40) * 7 - 9, 12
        counts = poisson_counts(label_hashes(labels), seed, 0, 9)
        for b, q in itertools.product(range(9), range(40)):
            assert counts[b, q] == naive_count(int(labels[q]), seed, b)
        again = poisson_counts(label_hashes(labels), seed, 3, 7)
        np.testing.assert_array_equal(again, counts[3:7])

    def test_totals_are_sums_of_counted_rows_in_any_order(self):
        rows = design(300)
        counts = poisson_counts(label_hashes(rows.labels), 5, 0, 6)
        expected = np.einsum("bq,qgc->bgc", counts, rows.by_group), counts @ rows.shared
        for order in (np.arange(300), np.random.default_rng(0).permutation(300)):
            drawn = Replicates.draw(sums_of(entries_of(rows.take(order))), 6, 5)
            np.testing.assert_allclose(drawn.by_group, expected[0], rtol=1e-12)
            np.testing.assert_allclose(drawn.shared, expected[1], rtol=1e-12)


class TestReplicates:
    @pytest.mark.parametrize("metric", [metrics.pairwise_accuracy, metrics.brier_score])
    def test_parts_are_the_whole(self, metric):
        given = columns()
        if metric is metrics.pairwise_accuracy:
            given["qid"] = given["cluster"]
        part = given["cluster"] % 3
        given["sensitive_features"][part == 1] = "a"  # one part lacks groups
        whole = metric(**given).compact(n_replicates=40, random_state=3)
        parts = [
            metric(**{name: values[part == i] for name, values in given.items()})
            for i in (2, 0, 1)
        ]
        compact = [r.compact(n_replicates=40, random_state=3) for r in parts]
        for total in (sum(compact), compact[0] + parts[1] + compact[2]):
            np.testing.assert_allclose(total.resampled(), whole.resampled(), rtol=1e-12)
        again = metrics.GroupEstimates.from_json(whole.to_json())
        np.testing.assert_array_equal(again.resampled(), whole.resampled())
        assert whole.compact().resampled().shape == (40, 3)

    def test_intervals_agree_with_those_of_the_table(self):
        r = metrics.pairwise_accuracy(**columns(400), qid=columns(400)["cluster"])
        kept = r.compact(n_replicates=2000)
        # A standard error of a standard error: 1/sqrt(2 B), and that of the jackknife.
        np.testing.assert_allclose(
            kept.resampled().std(axis=0), r.standard_error, rtol=4 / np.sqrt(2 * 400)
        )
        for method in ("bootstrap", "percentile"):
            ends = kept.confidence_interval(method=method)
            np.testing.assert_allclose(ends, r.confidence_interval(), atol=0.012)
        a, b = (result.contrast("a", "b", kind="ratio") for result in (kept, r))
        ends = a.confidence_interval(method="bootstrap")
        np.testing.assert_allclose(ends, b.confidence_interval(), atol=0.04)

    @pytest.mark.parametrize("n_replicates", [-1, 2.5, "9"])
    def test_of_wrong_numbers(self, n_replicates):
        r = metrics.brier_score(**columns())
        with pytest.raises(ValueError, match="n_replicates must"):
            r.compact(n_replicates=n_replicates)
        with pytest.raises(ValueError, match="random_state must"):
            r.compact(n_replicates=2, random_state=-1)
        with pytest.raises(ValueError, match="same n_replicates and random_state"):
            r.compact(n_replicates=5) + r.compact(n_replicates=6)


@pytest.fixture(scope="module", name="pair")
def _pair():
    old = columns(400)
    old["qid"] = old["cluster"]
    new = old | {"y_score": old["y_score"] + 0.3 * old["y_true"]}
    return metrics.pairwise_accuracy(**new), metrics.pairwise_accuracy(**old)


class TestCompare:
    def test_is_that_of_the_tables(self, pair):
        whole = compare(*pair)
        compared = compare(*(r.compact(n_replicates=2000) for r in pair))
        assert compared.groups == whole.groups
        np.testing.assert_array_equal(compared.estimate, whole.estimate)
        np.testing.assert_array_equal(compared.support, whole.support)
        np.testing.assert_allclose(compared.df, whole.df, rtol=1e-4)
        contrasts = [r.contrast("a", "b") for r in (compared, whole)]
        for a, b in ((compared, whole), contrasts):
            np.testing.assert_allclose(a.standard_error, b.standard_error, rtol=0.12)
        ends = compared.confidence_interval(method="bootstrap")
        np.testing.assert_allclose(ends, whole.confidence_interval(), atol=0.006)

    def test_of_parts_adds_up_and_is_stored(self, pair):
        new, old = (r.compact(n_replicates=50) for r in pair)
        whole = compare(new, old)
        doubled = whole + whole
        np.testing.assert_allclose(doubled.estimate, whole.estimate)
        assert doubled.n_clusters == 2 * whole.n_clusters
        again = metrics.GroupEstimates.from_json(whole.to_json())
        for other in (again, compare(pair[0], old)):
            np.testing.assert_allclose(other.covariance, whole.covariance, rtol=1e-12)
            np.testing.assert_allclose(other.df, whole.df, rtol=1e-12)
        with pytest.raises(ValueError, match="Only results of one metric"):
            whole + compare(*pair)

    def test_needs_the_same_clusters_and_numbers(self, pair):
        new, old = (r.compact(n_replicates=20) for r in pair)
        others = columns(400)
        others["qid"] = others["cluster"] = others["cluster"] + 1
        moved = metrics.pairwise_accuracy(**others).compact(n_replicates=20)
        with pytest.raises(ValueError, match="labels of their clusters differ"):
            compare(new, moved)
        with pytest.raises(ValueError, match="same n_replicates and random_state"):
            compare(new, pair[1].compact(n_replicates=20, random_state=1))
        with pytest.raises(ValueError, match="call compact"):
            compare(pair[0].compact(), old.compact().compact() + pair[1].compact())


def shift_of(given, times=None, power=1):
    """Return a shift of the clusters, each so many times."""
    times = np.ones(given["cluster"].size, dtype=int) if times is None else times
    row = np.repeat(np.arange(times.size), times)
    copy = np.arange(row.size) - np.repeat(np.cumsum(times) - times, times)
    rows = {name: column[row] for name, column in given.items()}
    rows["y_score"] = rows["y_score"] ** power
    rows["cluster"] += 1000 * copy
    return metrics.positive_rate_shift(**rows, bandwidth=0.2, threshold=0.4)


@pytest.fixture(scope="module", name="results")
def _results():
    given = columns(50)
    drawn = np.random.default_rng(1).random(given["y_score"].size)
    given["y_true"] = (drawn < given["y_score"]).astype(int)
    results = [shift_of(given, power=power) for power in (1, 2)]
    kept = [r.compact(n_replicates=400, random_state=2) for r in results]
    return given, results, kept


class TestOfCurves:
    """Every replicate of a metric that fits a curve fits it anew."""

    def test_are_those_of_repeated_clusters(self, results):
        given, _, (_, kept) = results
        hashes = label_hashes(np.unique(given["cluster"]))
        for b in (0, 399):
            counts = poisson_counts(hashes, 2, b, b + 1)[0].astype(int)
            expected = shift_of(given, counts[given["cluster"]], power=2)
            np.testing.assert_allclose(kept.resampled()[b], expected.estimate)

    def test_errors_are_around_the_estimate(self, results):
        for result, kept in zip(*results[1:], strict=True):
            values = kept.resampled()
            bias = values.mean(axis=0) - result.estimate
            spread = values.var(axis=0, ddof=1) * result.n_clusters
            # Fair scores with the noise of the curves have columns of their own.
            _, number, moved = np.moveaxis(kept.sums.replicates.by_group, -1, 0)
            bias = np.hypot(bias, 2 * (moved / number).mean(axis=0))
            expected = spread / (result.n_clusters - 1) + bias**2
            np.testing.assert_allclose(kept.standard_error**2, expected)
            again = metrics.GroupEstimates.from_json(kept.to_json())
            np.testing.assert_array_equal(again.covariance, kept.covariance)
            ends = (r.confidence_interval(method="percentile") for r in (again, kept))
            np.testing.assert_array_equal(*ends)

    def test_are_compared(self, results):
        _, (one, other), kept = results
        compared, whole = compare(*kept), compare(one, other)
        np.testing.assert_array_equal(compared.estimate, whole.estimate)
        # Errors, and means of the noise, of 400 and of 200 resamples.
        errors = compared.standard_error, whole.standard_error
        np.testing.assert_allclose(*errors, rtol=6 / np.sqrt(2 * 200))
        for copy in (
            whole.compact(),
            metrics.GroupEstimates.from_json(whole.to_json()),
        ):
            np.testing.assert_allclose(copy.covariance, whole.covariance, rtol=1e-12)
        half = compare(kept[0], other)
        np.testing.assert_allclose(half.covariance, compared.covariance, rtol=1e-12)
        for result in (compared, whole, one, kept[0]):
            with pytest.raises(ValueError, match="do not add up"):
                result + result

    def test_of_some_groups(self, results):
        result, some = results[1][0], np.array([2, 0])
        variance = result.sums.of_groups(some).variance(result.metric.finalize)
        np.testing.assert_allclose(variance, result.standard_error[some] ** 2)
        np.testing.assert_allclose(variance, np.diag(result.covariance)[some])

    def test_need_the_rows(self, results):
        with pytest.raises(ValueError, match="needs the rows"):
            results[1][0].compact().compact(n_replicates=3)


@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.SmallSampleWarning")
def test_all_signs_of_few_unequal_clusters():
    rng = np.random.default_rng(0)
    d = np.array([40.0, 9, 4, 3, 3, 2, 2, 1, 1, 1])
    n = d * rng.normal(0.4, 0.5, 10)
    r = metrics.GroupEstimates.from_sums(
        np.stack([n, d], axis=1)[:, None],
        lambda totals: totals[..., 0] / totals[..., 1],
        groups=["a"],
        name="mean",
        support=1,
        fair_value=0.0,
    )
    h = d / d.sum()
    signs = np.array(list(itertools.product((-1, 1), repeat=10)))

    def t(influence):
        total = influence.sum(-1, keepdims=True)
        residual = (influence - total * h) / (1 - h)
        return np.abs(total[..., 0]) / np.sqrt((residual**2).sum(-1))

    influence = n / d.sum()  # with the null value 0 imposed
    expected = np.mean(t(signs * influence) >= t(influence) - 1e-12)
    np.testing.assert_allclose(r.pvalue, expected, atol=0.04)
    low, high = r.confidence_interval(1 - float(r.pvalue[0]))
    np.testing.assert_allclose(min(abs(low[0]), abs(high[0])), 0, atol=1e-9)
