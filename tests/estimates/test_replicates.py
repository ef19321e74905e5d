"""Replicates of parts, in any order, are those of the whole."""

import itertools
import math
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

from skrankfair._estimates import replicates as module
from skrankfair._estimates.replicates import (
    Replicates,
    label_hashes,
    poisson_counts,
)
from skrankfair._estimates.rows import Rows
from skrankfair.inference import compare
from skrankfair.metrics import (
    GroupEstimates,
    auc,
    brier_score,
    calibration_error,
    pairwise_accuracy,
    positive_rate_shift,
)

BITS = 2**64


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


def columns(n_queries=60, seed=0):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 8)
    return {
        "y_true": (rng.random(query.size) < 0.4).astype(int),
        "y_score": rng.random(query.size),
        "sensitive_features": rng.choice(["a", "b", "c"], query.size),
        "cluster": query,
    }


def some(given, rows):
    return {name: values[rows] for name, values in given.items()}


def test_hashes_are_those_of_splitmix64():
    # The first number of splitmix64 that starts from 0, as its author's code prints it.
    assert label_hashes(np.array([0]))[0] == 0xE220A8397B1DCDAF
    expected = [mixed((x + 0x9E3779B97F4A7C15) % BITS) for x in (5, -3)]
    assert label_hashes(np.array([5, -3])).tolist() == expected


@pytest.mark.parametrize(
    "labels",
    [
        [np.array([0, 1, 77]), np.array([0.0, 1, 77]), np.array([0, 1, 77], np.uint8)],
        [np.array([0, 1]), np.array([False, True]), np.array([0, True], object)],
        [np.array(["a", "", "é"]), np.array(["a", "", "é"], object)],
        [np.array([1.5, -2]), np.array([1.5, -2], object), np.array([1.5, -2], "f4")],
        [
            np.array(["2026-01-31T10:00"], "datetime64[ns]"),
            np.array([datetime(2026, 1, 31, 10)], object),
            np.array([pd.Timestamp("2026-01-31 10:00")], object),
        ],
    ],
)
def test_hashes_do_not_depend_on_the_type_of_the_column(labels):
    for other in labels[1:]:
        np.testing.assert_array_equal(label_hashes(other), label_hashes(labels[0]))


def test_hashes_tell_labels_apart():
    labels = np.array([1, "1", 1.5, date(2026, 1, 1), ("a", 1), b"1", 2**70], object)
    assert len(set(label_hashes(labels).tolist())) == len(labels)
    rng = np.random.default_rng(0)
    many = label_hashes(np.unique(rng.integers(0, 2**40, 100_000)))
    assert np.unique(many).size == many.size
    # Every bit is as often 1 as 0: 6 standard errors of a share of one half.
    shares = [(many >> np.uint64(bit) & np.uint64(1)).mean() for bit in range(64)]
    np.testing.assert_allclose(shares, 0.5, atol=3 / np.sqrt(many.size))


def test_counts_are_those_of_the_definition():
    labels, seed = np.arange(40) * 7 - 9, 12
    counts = poisson_counts(label_hashes(labels), seed, 0, 9)
    for b, q in itertools.product(range(9), range(40)):
        assert counts[b, q] == naive_count(int(labels[q]), seed, b)
    np.testing.assert_array_equal(
        poisson_counts(label_hashes(labels), seed, 3, 7), counts[3:7]
    )


def test_counts_are_poisson_numbers():
    counts = poisson_counts(label_hashes(np.arange(4000)), 0, 0, 50)
    np.testing.assert_allclose(counts.mean(), 1, atol=5 / np.sqrt(counts.size))
    np.testing.assert_allclose(counts.var(), 1, atol=5 * np.sqrt(3 / counts.size))
    between = np.corrcoef(counts)
    assert np.abs(between - np.eye(50)).max() < 6 / np.sqrt(4000)


def test_totals_are_sums_of_counted_rows_in_any_order(monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 64)
    rng = np.random.default_rng(0)
    sizes, shared = rng.normal(size=(300, 4, 2)), rng.normal(size=(300, 1))
    table = Rows.of_all(sizes, shared, np.arange(300))
    counts = poisson_counts(label_hashes(table.labels), 5, 0, 6)
    expected = np.einsum("bq,qgc->bgc", counts, sizes), counts @ shared
    for rows in (np.arange(300), rng.permutation(300)):
        found = Replicates.of_table(table.take(rows), 6, 5).totals()
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("metric", [pairwise_accuracy, brier_score])
def test_parts_are_the_whole(metric):
    given = columns()
    if metric is pairwise_accuracy:
        given["qid"] = given["cluster"]
    part = given["cluster"] % 3
    given["sensitive_features"][part == 1] = "a"  # one part lacks groups
    whole = metric(**given).compact(n_replicates=40, random_state=3)
    parts = [metric(**some(given, part == i)) for i in (2, 0, 1)]
    compact = [r.compact(n_replicates=40, random_state=3) for r in parts]
    mixed_parts = compact[0] + parts[1] + compact[2]
    for total in (sum(compact), mixed_parts):
        np.testing.assert_allclose(total.resampled(), whole.resampled(), rtol=1e-12)
    again = GroupEstimates.from_json(whole.to_json())
    np.testing.assert_array_equal(again.resampled(), whole.resampled())
    assert whole.compact().resampled().shape == (40, 3)


def test_intervals_agree_with_those_of_the_table():
    r = pairwise_accuracy(**columns(400), qid=columns(400)["cluster"])
    kept = r.compact(n_replicates=2000)
    # A standard error of a standard error: 1/sqrt(2 B), and that of the jackknife.
    np.testing.assert_allclose(
        kept.resampled().std(axis=0), r.standard_error, rtol=4 / np.sqrt(2 * 400)
    )
    for method in ("bootstrap", "percentile"):
        low, high = kept.confidence_interval(method=method)
        expected = r.confidence_interval()
        np.testing.assert_allclose(low, expected.low, atol=0.012)
        np.testing.assert_allclose(high, expected.high, atol=0.012)
    a, b = (result.contrast("a", "b", kind="ratio") for result in (kept, r))
    np.testing.assert_allclose(
        a.confidence_interval(method="bootstrap"), b.confidence_interval(), atol=0.04
    )


@pytest.fixture(scope="module", name="pair")
def _pair():
    old = columns(400)
    old["qid"] = old["cluster"]
    new = old | {"y_score": old["y_score"] + 0.3 * old["y_true"]}
    return pairwise_accuracy(**new), pairwise_accuracy(**old)


class TestCompare:
    def test_is_that_of_the_tables(self, pair):
        whole = compare(*pair)
        found = compare(*(r.compact(n_replicates=2000) for r in pair))
        assert found.groups == whole.groups
        np.testing.assert_array_equal(found.estimate, whole.estimate)
        np.testing.assert_array_equal(found.support, whole.support)
        np.testing.assert_allclose(found.df, whole.df, rtol=1e-4)
        np.testing.assert_allclose(
            found.standard_error, whole.standard_error, rtol=0.12
        )
        a, b = (r.contrast("a", "b") for r in (found, whole))
        np.testing.assert_allclose(a.standard_error, b.standard_error, rtol=0.12)
        low, high = found.confidence_interval(method="bootstrap")
        np.testing.assert_allclose(low, whole.confidence_interval().low, atol=0.006)
        np.testing.assert_allclose(high, whole.confidence_interval().high, atol=0.006)

    def test_of_parts_adds_up_and_is_stored(self, pair):
        new, old = (r.compact(n_replicates=50) for r in pair)
        whole = compare(new, old)
        doubled = whole + whole
        np.testing.assert_allclose(doubled.estimate, whole.estimate)
        assert doubled.n_clusters == 2 * whole.n_clusters
        again = GroupEstimates.from_json(whole.to_json())
        np.testing.assert_array_equal(again.covariance, whole.covariance)
        np.testing.assert_array_equal(
            compare(pair[0], old).covariance, whole.covariance
        )
        with pytest.raises(ValueError, match="Only results of one metric"):
            whole + compare(*pair)

    def test_needs_the_same_clusters_and_numbers(self, pair):
        new, old = (r.compact(n_replicates=20) for r in pair)
        others = columns(400)
        others["qid"] = others["cluster"] = others["cluster"] + 1
        moved = pairwise_accuracy(**others).compact(n_replicates=20)
        with pytest.raises(ValueError, match="labels of their clusters differ"):
            compare(new, moved)
        with pytest.raises(ValueError, match="same n_replicates and random_state"):
            compare(new, pair[1].compact(n_replicates=20, random_state=1))
        with pytest.raises(ValueError, match="call compact"):
            compare(pair[0].compact(), old.compact().compact() + pair[1].compact())


def scored():
    given = columns(100)
    drawn = np.random.default_rng(1).random(given["y_score"].size)
    return given | {"y_true": (drawn < given["y_score"]).astype(int)}


@pytest.fixture(scope="module", name="kept")
def _kept():
    given = scored()
    who = {"sensitive_features": given["sensitive_features"]}
    who |= {"cluster": given["cluster"], "bandwidth": 0.2, "threshold": 0.4}
    results = [
        positive_rate_shift(given["y_true"], score, **who)
        for score in (given["y_score"], given["y_score"] ** 2)
    ]
    return results, [r.compact(n_replicates=60, random_state=2) for r in results]


class TestOfCurves:
    """Every replicate of a metric that fits a curve fits it anew."""

    def test_are_those_of_repeated_clusters(self, kept):
        (_, found), given = kept[1], scored()
        hashes = label_hashes(np.unique(given["cluster"]))
        for b in (0, 59):
            counts = poisson_counts(hashes, 2, b, b + 1)[0].astype(int)
            times = counts[given["cluster"]]
            row = np.repeat(np.arange(times.size), times)
            copy = np.arange(row.size) - np.repeat(np.cumsum(times) - times, times)
            expected = positive_rate_shift(
                given["y_true"][row],
                given["y_score"][row] ** 2,
                sensitive_features=given["sensitive_features"][row],
                cluster=given["cluster"][row] + 1000 * copy,
                bandwidth=0.2,
                threshold=0.4,
            )
            np.testing.assert_allclose(found.resampled()[b], expected.estimate)

    def test_errors_are_around_the_estimate(self, kept):
        for result, found in zip(*kept, strict=True):
            values = found.resampled()
            bias = values.mean(axis=0) - result.estimate
            spread = values.var(axis=0, ddof=1) * result.n_clusters
            expected = spread / (result.n_clusters - 1) + bias**2
            np.testing.assert_allclose(found.standard_error**2, expected)
            again = GroupEstimates.from_json(found.to_json())
            np.testing.assert_array_equal(again.covariance, found.covariance)
            low, high = again.confidence_interval(method="percentile")
            np.testing.assert_array_equal(
                [low, high], found.confidence_interval(method="percentile")
            )

    def test_are_compared(self, kept):
        results, compact = kept
        found, whole = compare(*compact), compare(*results)
        np.testing.assert_array_equal(found.estimate, whole.estimate)
        # Errors of 60 and of 200 resamples.
        np.testing.assert_allclose(
            found.standard_error, whole.standard_error, rtol=4 / np.sqrt(2 * 60)
        )
        mixed = compare(compact[0], results[1])
        np.testing.assert_array_equal(mixed.covariance, found.covariance)

    def test_need_the_rows(self, kept):
        with pytest.raises(ValueError, match="needs the rows"):
            kept[0][0].compact().compact(n_replicates=3)


class TestErrors:
    def test_of_what_is_not_resampled(self):
        given = columns()
        with pytest.raises(ValueError, match="n_replicates must be 0"):
            calibration_error(**given).compact(n_replicates=5)
        given.pop("cluster")
        with pytest.raises(ValueError, match="variance='item'"):
            auc(**given).compact(n_replicates=5)

    def test_after_compact(self):
        compact = brier_score(**columns()).compact()
        with pytest.raises(ValueError, match="needs the table of clusters"):
            compact.compact(n_replicates=5)
        with pytest.raises(ValueError, match=r"compact\(n_replicates=...\)"):
            compact.resampled()

    @pytest.mark.parametrize("n_replicates", [-1, 2.5, "9"])
    def test_of_numbers(self, n_replicates):
        with pytest.raises(ValueError, match="n_replicates must"):
            brier_score(**columns()).compact(n_replicates=n_replicates)
        with pytest.raises(ValueError, match="random_state must"):
            brier_score(**columns()).compact(n_replicates=2, random_state=-1)

    def test_sums_of_different_replicates(self):
        r = brier_score(**columns())
        with pytest.raises(ValueError, match="same n_replicates and random_state"):
            r.compact(n_replicates=5) + r.compact(n_replicates=6)


@pytest.mark.simulation
def test_coverage():
    rng = np.random.default_rng(0)
    hits, n_draws = 0, 1000
    for draw in range(n_draws):
        sizes = rng.geometric(0.3, 80).astype(float)
        hit = rng.binomial(sizes.astype(int), rng.beta(4, 6, 80)).astype(float)
        r = GroupEstimates.from_sums(
            np.stack([hit, sizes], axis=1)[:, None],
            lambda totals: totals[..., 0] / totals[..., 1],
            groups=["all"],
            name="share",
            labels=np.arange(80) + 80 * draw,
        )
        kept = r.compact(n_replicates=300)
        low, high = kept.confidence_interval(method="bootstrap")
        hits += bool(low[0] <= 0.4 <= high[0])
    # 95%, within 4 standard errors of 1000 draws.
    assert abs(hits / n_draws - 0.95) < 4 * np.sqrt(0.95 * 0.05 / n_draws)
