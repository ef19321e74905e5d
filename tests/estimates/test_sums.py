"""The table of sums: moments, the jackknife, the bootstrap, and the merge."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from skrankfair._estimates.finalize import ColumnSum
from skrankfair._estimates.leverage import degrees_of_freedom
from skrankfair._estimates.rows import Rows, draw_counts
from skrankfair._estimates.sums import ClusterSums
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    GroupEstimates,
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
)
from tests.estimates.conftest import flat, scatter_of
from tests.metrics.cases import CASES, labelled
from tests.reference.variance import (
    cluster_bootstrap_totals,
    cluster_covariance,
    item_covariance,
)

GROUPS = ("a", "b", "c")


def ratio(by_group, shared):
    """Column 0 over column 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return by_group[..., 0] / by_group[..., 1]


def with_shared(by_group, shared):
    """A function of the group's columns and of the shared ones."""
    numerator = by_group[..., 0] + shared[..., None, 0]
    return np.exp(-numerator / (by_group[..., 1] + shared[..., None, 1])) * 3


def squared(by_group, shared):
    return by_group[..., 0] ** 2 - by_group[..., 1] * by_group[..., 0]


def support(by_group, shared):
    return by_group[..., 1]


def make_table(seed=0, n_rows=30, groups=GROUPS, n_shared=2):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 6, (n_rows, len(groups)))
    by_group = np.stack([rng.normal(1, 1, size.shape) * size, size], axis=2)
    return Rows.of_all(
        by_group=by_group,
        shared=rng.integers(1, 9, (n_rows, n_shared)).astype(float),
        labels=np.arange(n_rows) + 100 * seed,
    )


def make_sums(seed=0, groups=GROUPS, **options):
    table = make_table(seed, groups=groups, **options)
    return ClusterSums.from_clusters(groups, table, [support])


def assert_same_sums(actual, expected, rtol=1e-12):
    assert actual.groups == expected.groups
    assert actual.count == expected.count
    assert actual.kind == expected.kind
    for name in ("by_group", "shared", "active", "support"):
        np.testing.assert_allclose(
            getattr(actual, name), getattr(expected, name), rtol=rtol, atol=1e-12
        )
    np.testing.assert_allclose(
        scatter_of(actual), scatter_of(expected), rtol=rtol, atol=1e-12
    )


def totals_of(sums):
    """Return all column totals: by group, then shared, shape (K,)."""
    return np.concatenate([sums.by_group.ravel(), sums.shared])


def gradient_of(sums, finalize):
    """Return the slopes as derivatives by all columns, shape (G, K)."""
    slopes, (n_groups, n_columns) = sums.slopes(finalize), sums.by_group.shape
    own = np.zeros((n_groups, n_groups, n_columns))
    own[np.arange(n_groups), np.arange(n_groups)] = slopes[:, :n_columns]
    return np.hstack([own.reshape(n_groups, -1), slopes[:, n_columns:]])


# Sums


def test_sums_of_a_table():
    table = make_table()
    sums = make_sums()
    np.testing.assert_allclose(sums.by_group, table.by_group.sum(0))
    np.testing.assert_allclose(sums.shared, table.shared.sum(0))
    assert sums.count == 30
    size = table.by_group[..., 1]
    np.testing.assert_array_equal(sums.active, [[(size > 0).sum(0)]])
    np.testing.assert_array_equal(sums.support, [[size.sum(0)]])
    rows = flat(table)
    assert rows.shape == (30, 8)
    expected = sum(np.outer(row, row) for row in rows)
    np.testing.assert_allclose(scatter_of(sums), expected)
    np.testing.assert_allclose(totals_of(sums), rows.sum(0))
    np.testing.assert_allclose(
        sums.estimate(ratio), sums.by_group[:, 0] / sums.by_group[:, 1]
    )


# The gradient


@pytest.mark.parametrize("finalize", [ratio, with_shared, squared])
def test_gradient_against_finite_differences(finalize):
    sums = make_sums()
    gradient = gradient_of(sums, finalize)
    assert gradient.shape == (3, 8)
    totals = totals_of(sums)
    for column in range(8):
        step = 1e-6 * max(1.0, abs(totals[column]))
        ends = []
        for sign in (1, -1):
            moved = totals.copy()
            moved[column] += sign * step
            ends.append(finalize(moved[:6].reshape(3, 2), moved[6:]))
        expected = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(gradient[:, column], expected, rtol=1e-7, atol=1e-9)


def test_gradient_of_a_ratio_is_exact():
    sums = make_sums()
    expected = np.zeros((3, 8))
    for group, (numerator, denominator) in enumerate(sums.by_group):
        expected[group, 2 * group] = 1 / denominator
        expected[group, 2 * group + 1] = -numerator / denominator**2
    np.testing.assert_allclose(gradient_of(sums, ratio), expected, rtol=1e-15)


def test_gradient_of_tiny_and_huge_totals():
    # A complex step does not round, whatever the scale.
    table = make_table(n_shared=0)
    for scale in (1e-100, 1e100):
        scaled = Rows.of_all(table.by_group * scale, table.shared, table.labels)
        sums = ClusterSums.from_clusters(GROUPS, scaled, [support])
        expected = gradient_of(make_sums(n_shared=0), ratio) / scale
        np.testing.assert_allclose(gradient_of(sums, ratio), expected, rtol=1e-13)


# The covariance


def jackknife(table, finalize):
    """Leave out every row in turn; n are the rows with data of the group."""
    total, shared = table.by_group.sum(0), table.shared.sum(0)
    change = [
        finalize(total - row, shared - common) - finalize(total, shared)
        for row, common in zip(table.by_group, table.shared, strict=True)
    ]
    n = (table.by_group[..., 1] > 0).sum(0)
    change = np.array(change) * np.sqrt((n - 1) / n)
    return change.T @ change


@pytest.mark.parametrize("finalize", [ratio, with_shared, squared])
def test_covariance_is_the_jackknife(finalize):
    table = make_table()
    sums = ClusterSums.from_clusters(GROUPS, table, [support])
    expected = jackknife(table, finalize)
    np.testing.assert_allclose(sums.covariance(finalize), expected, rtol=1e-9)
    np.testing.assert_allclose(sums.variance(finalize), np.diag(expected), rtol=1e-9)


def test_of_a_mean_the_jackknife_is_the_variance_of_a_mean():
    values = np.random.default_rng(0).normal(size=(12, 3))
    rows = np.stack([values, np.ones_like(values)], axis=2)
    table = Rows.of_all(rows, np.zeros((12, 0)), np.arange(12))
    sums = ClusterSums.from_clusters(GROUPS, table, [support])
    np.testing.assert_allclose(sums.covariance(ratio), np.cov(values.T) / 12)


def test_rows_without_a_group_change_nothing_of_it():
    table = make_table(n_shared=0)
    sums = ClusterSums.from_clusters(GROUPS, table, [support])
    empty = np.zeros((7, 3, 2))
    empty[:, 2] = 1.0
    more = Rows.of_all(empty, np.zeros((7, 0)), np.arange(100, 107))
    larger = ClusterSums.from_clusters(GROUPS, table + more, [support])
    np.testing.assert_allclose(
        larger.covariance(ratio)[:2, :2], sums.covariance(ratio)[:2, :2], rtol=1e-12
    )
    for actual, expected in zip(
        degrees_of_freedom(larger, ratio), degrees_of_freedom(sums, ratio), strict=True
    ):
        np.testing.assert_allclose(actual[:2], expected[:2], rtol=1e-12)
        assert actual[2] > expected[2]


def rows_of(table, group):
    """Rows of the table as pairs of the naive reference."""
    for row in range(table.n_rows):
        yield row, row, *table.by_group[row, group], 1


def test_covariance_of_ratios_against_the_reference():
    table = make_table()
    sums = ClusterSums.from_clusters(GROUPS, table, [support])
    clusters = range(table.n_rows)
    pairs = {group: list(rows_of(table, index)) for index, group in enumerate(GROUPS)}
    reference = cluster_covariance(pairs, clusters)
    expected = [[reference[g, h] for h in GROUPS] for g in GROUPS]
    np.testing.assert_allclose(sums.covariance(ratio), expected, rtol=1e-10)


def test_item_covariance_against_the_reference():
    # Pairs of nine items, of value x; those of group b have two columns of their own.
    rng = np.random.default_rng(0)
    n, weight = 9, 3.0
    pairs, rows = {"a": [], "b": []}, np.zeros((n, 2, 2))
    totals = np.zeros((2, 2))
    for i, j in itertools.combinations(range(n), 2):
        columns = np.zeros((2, 2))
        for index, group in enumerate("ab"):
            if rng.random() < 0.6:
                columns[index] = rng.normal(), 1
                pairs[group].append((i, j, *columns[index], weight))
        rows[[i, j]] += weight * columns
        totals += weight * columns
    table = Rows.of_all(rows, np.zeros((n, 0)), np.arange(n))
    sums = ClusterSums.from_items(("a", "b"), table, (totals, np.zeros(0)), [support])
    assert (sums.kind, sums.count) == ("item", n)
    reference = item_covariance(pairs, n)
    expected = [[reference[g, h] for h in "ab"] for g in "ab"]
    np.testing.assert_allclose(sums.covariance(ratio), expected, rtol=1e-10)


def test_too_few_clusters_have_no_covariance():
    by_group = np.array([[[1.0, 2.0], [0, 0], [3, 4]], [[1.0, 1.0], [0, 0], [0, 0]]])
    table = Rows.of_all(by_group, np.zeros((2, 0)), np.arange(2))
    sums = ClusterSums.from_clusters(GROUPS, table, [support])
    np.testing.assert_array_equal(sums.active, [[[2, 0, 1]]])
    covariance = sums.covariance(ratio)
    assert np.isfinite(covariance[0, 0])
    assert np.isnan(covariance).sum() == 8
    one = Rows.of_all(by_group[:1], np.zeros((1, 0)), np.arange(1))
    sums = ClusterSums.from_clusters(GROUPS, one, [support])
    assert np.isnan(sums.covariance(ratio)).all()


def test_an_undefined_estimate_has_no_covariance():
    def undefined(by_group, shared):
        value = ratio(by_group, shared)
        value[..., 1] = np.nan
        return value

    covariance = make_sums().covariance(undefined)
    assert np.isnan(covariance[1]).all()
    assert np.isnan(covariance[:, 1]).all()
    assert np.isfinite(covariance[np.ix_([0, 2], [0, 2])]).all()


def test_rounding_is_no_variance():
    # All clusters have the same ratio, so that it does not vary at all.
    rng = np.random.default_rng(0)
    size = rng.integers(1, 9, (20, 3)).astype(float)
    by_group = np.stack([0.1 * size, size], axis=2)
    table = Rows.of_all(by_group, np.zeros((20, 0)), np.arange(20))
    sums = ClusterSums.from_clusters(GROUPS, table, [support])
    np.testing.assert_array_equal(np.diag(sums.covariance(ratio)), 0.0)


def test_members_and_others_are_two_samples():
    # Four members of one group and three others, each pair of which has a value.
    value = np.random.default_rng(0).normal(size=(4, 3))
    rows = np.zeros((7, 1, 2))
    rows[:4, 0] = np.stack([value.sum(1), np.full(4, 3)], axis=1)
    rows[4:, 0] = np.stack([value.sum(0), np.full(3, 4)], axis=1)
    member = (np.arange(7) < 4)[:, None]
    table = Rows.of_all(rows, np.zeros((7, 0)), np.arange(7), member)
    totals = np.array([[value.sum(), 12]]), np.zeros(0)
    sums = ClusterSums.from_items(("a",), table, totals, [support])
    # DeLong: the variances of the means of rows and of columns.
    means = value.mean(1), value.mean(0)
    expected = sum(mean.var(ddof=1) / mean.size for mean in means)
    assert sums.covariance(ratio)[0, 0] == pytest.approx(expected)
    one = Rows.of_all(rows[3:], np.zeros((4, 0)), np.arange(4), member[3:])
    sums = ClusterSums.from_items(("a",), one, totals, [support])
    assert np.isnan(sums.covariance(ratio)).all()


# The merge


def cut(table, rows):
    return Rows.of_all(table.by_group[rows], table.shared[rows], table.labels[rows])


def test_split_and_merged():
    table = make_table()
    whole = ClusterSums.from_clusters(GROUPS, table, [support])
    rows = np.array_split(np.arange(30), [1, 9, 20])
    first, *others = (
        ClusterSums.from_clusters(GROUPS, cut(table, part), [support]) for part in rows
    )
    merged = first
    for other in others:
        merged = merged + other
    assert_same_sums(merged, whole)
    np.testing.assert_array_equal(flat(merged.table), flat(table))
    np.testing.assert_array_equal(merged.table.labels, table.labels)
    compact = first.compact()
    for other in others:
        compact = compact + other.compact()
    assert_same_sums(compact, whole)
    assert compact.table is None
    assert (first + others[0].compact()).table is None
    np.testing.assert_allclose(
        compact.covariance(ratio), whole.covariance(ratio), rtol=1e-12
    )
    # Rows without data of any group were folded away: their shared columns count.
    np.testing.assert_allclose(
        compact.covariance(with_shared), whole.covariance(with_shared), rtol=1e-4
    )


def test_merge_aligns_groups_by_label():
    ab, bc = make_sums(1, ("a", "b")), make_sums(2, ("c", "b"))
    merged = ab + bc
    assert merged.groups == ("a", "b", "c")
    assert_same_sums(bc + ab, merged)
    np.testing.assert_allclose(merged.by_group[0], ab.by_group[0])
    np.testing.assert_allclose(merged.by_group[1], ab.by_group[1] + bc.by_group[1])
    np.testing.assert_allclose(merged.by_group[2], bc.by_group[0])
    np.testing.assert_allclose(
        merged.active[..., 1], ab.active[..., 1] + bc.active[..., 1]
    )
    assert merged.table.by_group.shape == (60, 3, 2)
    # The same as a table in which the absent group is 0.
    expected = ClusterSums.from_clusters(merged.groups, merged.table, [support])
    assert_same_sums(merged, expected)
    np.testing.assert_allclose(
        merged.covariance(with_shared), expected.covariance(with_shared)
    )
    # The same groups in another order keep that of the first.
    swapped = bc.aligned(("b", "c"))
    assert (bc + swapped).groups == ("c", "b")
    np.testing.assert_allclose((bc + swapped).by_group, 2 * bc.by_group)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((np.array(["a", "b"]), np.array(["long"])), ["a", "b", "long"]),
        ((np.array([1, 2]), np.array(["x"])), [1, 2, "x"]),
        ((np.array([1, 2]), np.array([0.5])), [1, 2, 0.5]),
        ((np.array([1], dtype=object), np.array([2**63], dtype=np.uint64)), [1, 2**63]),
        ((np.array([-1]), np.array([2**63 + 1], dtype=np.uint64)), [-1, 2**63 + 1]),
    ],
)
def test_merge_keeps_labels_of_other_types(labels, expected):
    parts = []
    for part in labels:
        n = len(part)
        table = Rows.of_all(np.ones((n, 1, 2)), np.zeros((n, 0)), part)
        parts.append(ClusterSums.from_clusters(("a",), table, [support]))
    merged = (parts[0] + parts[1]).table.labels.tolist()
    assert merged == expected
    assert [isinstance(label, str) for label in merged] == [
        isinstance(label, str) for label in expected
    ]


def test_clusters_and_items_do_not_add():
    c = labelled()
    who = {"sensitive_features": c.group, "qid": c.q}
    cluster = pairwise_exposure(None, c.s, variance="cluster", **who)
    item = pairwise_exposure(None, c.s, variance="item", **who)
    for first, second in ((cluster, item), (item, cluster)):
        with pytest.raises(ValueError, match=r"variance='(item|cluster)'.*cannot be"):
            first + second


def test_a_different_epsilon_does_not_add():
    c = labelled()
    who = {"sensitive_features": c.group, "qid": c.q}
    first = matched_pair_calibration(c.y, c.s, epsilon=0.25, **who)
    second = matched_pair_calibration(c.y, c.s, epsilon=0.5, **who)
    message = r"first pass differs.*epsilon is .*0\.25.*0\.5"
    for a, b in itertools.product((first, first.compact()), (second, second.compact())):
        with pytest.raises(ValueError, match=message):
            a + b
        with pytest.raises(ValueError, match="first pass differs"):
            sum([a, a, b])
    by_group = {"a": 0.25, "b": 0.25, "c": 0.5}
    third = matched_pair_calibration(c.y, c.s, epsilon=by_group, **who)
    with pytest.raises(ValueError, match="first pass differs"):
        first + third
    same = matched_pair_calibration(c.y, c.s, epsilon=dict.fromkeys("abc", 0.25), **who)
    assert (first + same).n_clusters == 2 * first.n_clusters


def test_different_edges_do_not_add():
    c = labelled()
    options = {"sensitive_features": c.group, "qid": c.q, "engagement": c.z}
    first = pairwise_accuracy(c.y, c.s, bins=[-1, 0.5, 1], **options)
    second = pairwise_accuracy(c.y, c.s, bins=[-1, 0.25, 1], **options)
    third = pairwise_accuracy(c.y, c.s, bins=[-1, 0.25, 0.5, 1], **options)
    with pytest.raises(ValueError, match="first pass differs.*engagement_edges"):
        first + second
    with pytest.raises(ValueError, match="cannot be added|can be added"):
        first + third


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_part_without_data_has_chosen_nothing():
    c = labelled()
    case = next(case for case in CASES.values() if "quantile" in case.first_pass)
    whole = case(c)
    lonely = c.take(np.flatnonzero(c.q == 20))
    part = case(lonely)
    assert np.isnan(list(part.first_pass["epsilon"].values())).all()
    for merged in (whole + part, part + whole):
        np.testing.assert_array_equal(merged.estimate, whole.estimate)
        chosen = {g: merged.first_pass["epsilon"][g] for g in whole.groups}
        assert chosen == whole.first_pass["epsilon"]
        assert merged.n_clusters == whole.n_clusters + 1


# The bootstrap


@pytest.mark.parametrize("n_resamples", [1, 64, 65, 130])
def test_bootstrap_totals_are_those_of_the_drawn_clusters(n_resamples):
    sums = make_sums()
    drawn = list(sums.resample(n_resamples, np.random.default_rng(5)))
    by_group, shared = (np.concatenate(part) for part in zip(*drawn, strict=True))
    assert by_group.shape == (n_resamples, 3, 2)
    assert shared.shape == (n_resamples, 2)
    # The same counts again.
    rng = np.random.default_rng(5)
    chunks = [len(part) for part, _ in drawn]
    counts = np.concatenate([draw_counts(sums.table, chunk, rng) for chunk in chunks])
    table = flat(sums.table).tolist()
    expected = np.array(cluster_bootstrap_totals(table, counts))
    np.testing.assert_allclose(by_group.reshape(-1, 6), expected[:, :6], rtol=1e-12)
    np.testing.assert_allclose(shared, expected[:, 6:], rtol=1e-12)
    np.testing.assert_allclose(counts.sum(1), sums.count, rtol=1e-12)
    assert (counts == counts.round()).all()


def test_bootstrap_error_is_near_that_of_the_jackknife():
    r = CASES["pairwise_exposure-pairs-cluster"](
        labelled(n=3000).but(q=np.random.default_rng(0).integers(0, 300, 3000))
    )
    resampled = r.resampled(2000, random_state=0)
    np.testing.assert_allclose(resampled.std(0), r.standard_error, rtol=0.1)
    np.testing.assert_allclose(np.cov(resampled.T)[0, 1], r.covariance[0, 1], rtol=0.3)


def test_bootstrap_is_reproducible():
    sums = make_sums()
    first, second, third = (
        np.concatenate([t for t, _ in sums.resample(100, np.random.default_rng(seed))])
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


def test_compact_drops_the_table_and_with_it_the_bootstrap():
    c = labelled()
    case = CASES["pairwise_exposure-pairs-cluster"]
    r = case(c)
    compact = r.compact()
    assert isinstance(compact, GroupEstimates)
    assert compact.sums.table is None
    assert r.sums.table is not None
    np.testing.assert_array_equal(compact.estimate, r.estimate)
    np.testing.assert_array_equal(compact.covariance, r.covariance)
    np.testing.assert_array_equal(compact.support, r.support)
    assert compact.n_clusters == r.n_clusters
    np.testing.assert_array_equal(compact.df, r.df)
    np.testing.assert_array_equal(compact.n_effective, r.n_effective)
    low, high = compact.confidence_interval()
    np.testing.assert_array_equal((low, high), r.confidence_interval())
    for result in (compact, compact + r, r + compact, sum([r, r.compact()])):
        with pytest.raises(ValueError, match=r"needs the table.*compact\(\) dropped"):
            result.confidence_interval(method="bootstrap")


def test_items_are_not_resampled():
    c = labelled()
    r = pairwise_exposure(None, c.s, sensitive_features=c.group)
    assert r.variance == "item"
    with pytest.raises(
        ValueError, match="bootstrap resamples clusters.*variance='item'"
    ):
        r.confidence_interval(method="bootstrap")


# Side by side


def test_joined_columns_lines_up_the_clusters():
    first, second = make_sums(1), make_sums(2)
    rows = np.random.default_rng(0).permutation(30)
    labelled_alike = Rows.of_all(
        second.table.by_group, second.table.shared, first.table.labels
    )
    other = ClusterSums.from_clusters(GROUPS, labelled_alike, [support])
    shuffled = ClusterSums.from_clusters(GROUPS, cut(labelled_alike, rows), [support])
    expected, actual = first.join_columns(other), first.join_columns(shuffled)
    assert_same_sums(actual, expected)
    np.testing.assert_array_equal(flat(actual.table), flat(expected.table))
    assert expected.by_group.shape == (3, 4)
    assert expected.shared.shape == (4,)
    np.testing.assert_allclose(
        expected.table.by_group,
        np.concatenate([first.table.by_group, second.table.by_group], axis=2),
    )


def test_joined_columns_aligns_the_groups():
    first, second = make_sums(1), make_sums(1).aligned(("c", "a", "b"))
    joined = first.join_columns(second)
    np.testing.assert_allclose(joined.by_group[:, :2], joined.by_group[:, 2:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.compact(), "compare before compact"),
        (lambda s: make_sums(2), "labels differ"),
        (lambda s: make_sums(1, n_rows=29), "got 30 and 29 clusters"),
        (lambda s: make_sums(1, ("a", "b")), "same groups"),
    ],
    ids=["compact", "labels", "number", "groups"],
)
def test_joined_columns_needs_the_same_clusters(change, message):
    sums = make_sums(1)
    with pytest.raises(ValueError, match=message):
        sums.join_columns(change(sums))
    with pytest.raises(ValueError, match=message.replace("30 and 29", "29 and 30")):
        change(sums).join_columns(sums)


def test_sums_of_parts_keep_the_rows_that_the_whole_keeps():
    values = np.random.default_rng(0).random((2000, 2, 2))
    shared = np.ones((2000, 2))
    shared[7] = 50.0
    table = Rows.of_all(values, shared, np.arange(2000))

    def compact(rows):
        sums = ClusterSums.from_clusters((0, 1), cut(table, rows), [support])
        return sums.compact()

    whole, parts = compact(np.arange(2000)), np.array_split(np.arange(2000), 6)
    first, *others = map(compact, parts)
    total = sum(others, first)
    assert total.leading.labels.tolist() == whole.leading.labels.tolist() == [7]
    covariances = total.covariance(with_shared), whole.covariance(with_shared)
    np.testing.assert_allclose(*covariances, rtol=1e-12)


def test_metrics_warn_once_about_what_is_undefined():
    c = labelled()
    with pytest.warns(UndefinedMetricWarning, match="without pairs: a, b") as caught:
        pairwise_exposure(None, c.s, sensitive_features=c.group, qid=np.arange(90))
    assert len(caught) == 1


def test_remainders_without_products_of_two_groups():
    values = np.random.default_rng(0).random((1000, 120, 4))
    table = Rows.of_all(values, np.ones((1000, 0)), np.arange(1000))
    groups = tuple(range(120))
    whole = ClusterSums.from_clusters(groups, table, [ColumnSum(1, 2)]).compact()
    less = replace(whole, remainder=whole.remainder.of_each_group())
    assert whole.leading.n_rows == 0
    assert 40 * len(pickle.dumps(less)) < len(pickle.dumps(whole))
    np.testing.assert_allclose(less.variance(ratio), whole.variance(ratio), rtol=1e-12)
    both = (less + less).variance(ratio), (whole + whole).variance(ratio)
    np.testing.assert_allclose(*both, rtol=1e-12)
    assert not (less + whole).has_covariance
