"""Rows and their sums: moments by naive loops, whatever happened to the rows."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skrankfair._estimates import sums as _sums
from skrankfair._estimates.finalize import Beside, PairedDifference, needs_of
from skrankfair._estimates.leverage import contrast_degrees, degrees_of_freedom
from skrankfair._estimates.rows import Rows
from tests.estimates.naive import (
    DESIGNS,
    METRICS,
    SUPPORTS,
    cases,
    design,
    entries_of,
    entropy,
    moments,
    sums_of,
)
from tests.seeds import one_in

RATIO, REST = METRICS["ratio"], METRICS["rest"]
each_case = pytest.mark.parametrize(("name", "metric"), cases())


def pairs_of(n_groups):
    return np.array(list(itertools.product(range(n_groups), repeat=2))).T


def check(sums, expected, finalize, rtol=1e-9):
    """Compare all that sums say with the moments of naive loops."""
    close = {"rtol": rtol, "atol": 1e-11}
    n_groups, variance = len(sums.groups), np.diag(expected.covariance)
    assert_allclose(sums.estimate(finalize), expected.estimate, **close)
    assert_allclose(sums.variance(finalize), variance, **close)
    assert_allclose(sums.covariance(finalize), expected.covariance, **close)
    first, second = pairs_of(n_groups)
    between = sums.covariances(finalize, first, second)
    defined = ~np.isnan(variance[first] + variance[second])
    of_pairs = expected.covariance[first, second]
    assert_allclose(between[defined], of_pairs[defined], **close)
    some = variance > 1e-9
    assert_allclose(sums.tails(finalize)[:, some], expected.tails[:, some], **close)
    df, effective = degrees_of_freedom(sums, finalize)
    assert_allclose(df, expected.df, **close)
    assert_allclose(effective, expected.n_effective, **close)
    df = contrast_degrees(sums, finalize, first, second)
    assert_allclose(df, expected.df_of_pairs[first, second], **close)


@each_case
def test_moments_are_those_of_naive_loops(name, metric):
    rows, finalize = DESIGNS[name], METRICS[metric]
    expected = moments(rows, finalize)
    for table in (rows, entries_of(rows)):
        sums = sums_of(table)
        check(sums, expected, finalize)
        check(sums.compact(), expected, finalize)
    check(sums.compact().compact(), expected, finalize)


@pytest.mark.parametrize(("name", "metric"), [c for c in cases() if c[0] != "one row"])
def test_parts_add_up_in_any_order(name, metric):
    rows, finalize = DESIGNS[name], METRICS[metric]
    expected, labels = moments(rows, finalize), tuple("abcdef")[: rows.n_groups]
    cut = np.array_split(np.random.default_rng(0).permutation(rows.n_rows), 3)
    parts = [sums_of(entries_of(rows.take(np.sort(some))), labels) for some in cut]
    # A part has its groups in another order, or lacks those without data.
    present = rows.by_group[cut[2]].any(axis=(0, 2))
    if rows.member is None and present.any():
        parts[2] = parts[2].of_groups(np.flatnonzero(present))
    parts[1] = parts[1].aligned(labels[::-1])
    for a, b, c in ((0, 1, 2), (2, 0, 1)):
        total = (parts[a] + parts[b] + parts[c]).aligned(labels)
        assert total.groups == labels
        check(total, expected, finalize)
        folded = parts[a].compact() + parts[b] + parts[c].compact()
        assert folded.compacted
        check(folded.aligned(labels), expected, finalize)


@each_case
def test_groups_are_chosen_or_made_one(name, metric):
    rows, finalize = DESIGNS[name], METRICS[metric]
    chosen = np.array([2, 0])
    member = rows.member
    if member is not None:
        member = member.reshape(rows.n_rows, -1)[:, chosen]
    fewer = Rows.of_all(rows.by_group[:, chosen], rows.shared, rows.labels, member)
    for sums in (sums_of(rows), sums_of(entries_of(rows)).compact()):
        check(sums.of_groups(chosen), moments(fewer, finalize), finalize)
    if rows.member is None and metric in ("ratio", "squared"):
        one = rows.by_group.sum(axis=1, keepdims=True)
        whole = Rows.of_all(one, rows.shared, rows.labels)
        check(sums_of(entries_of(rows)).pooled(), moments(whole, finalize), finalize)


@pytest.mark.parametrize("name", [n for n, rows in DESIGNS.items() if rows.n_rows > 1])
def test_two_results_side_by_side(name):
    one, other = DESIGNS[name], DESIGNS[name]
    change = np.random.default_rng(1).uniform(0.5, 2, one.values.shape)
    other = replace(one, values=one.values * change)
    size = one.n_columns, one.shared.shape[1]
    second = (len(sums_of(one).supports),)
    finalize = PairedDifference.of(
        Beside(RATIO, *size), Beside(RATIO, *size, second=True, needs=second)
    )

    def expected(left, right):
        both = Rows.of_all(
            np.concatenate([left.by_group, right.by_group], axis=2),
            np.concatenate([left.shared, right.shared], axis=1),
            np.arange(left.n_rows),
            member,
        )
        return moments(both, finalize, sums.supports)

    member = one.member
    member = None if member is None else member.reshape(one.n_rows, -1)
    shuffled = other.take(np.random.default_rng(2).permutation(one.n_rows))
    for left, right in ((one, shuffled), (entries_of(one), entries_of(shuffled))):
        sums = sums_of(left).join_columns(sums_of(right))
        check(sums, expected(one, other), finalize)
    # Of two samples that have nothing to do with each other.
    none = Rows.of_all(0 * one.by_group, 0 * one.shared, one.labels)
    if member is None:
        sums = sums_of(one).as_independent(sums_of(entries_of(other)))
        check(sums, expected(one + none, none + other), finalize)


BOTH = {"all": lambda rows: rows, "entries": entries_of}


@one_in(2, at_once=10, rows=DESIGNS, finalize=METRICS, some=BOTH)
def test_folded_rows_are_sums_of_powers(rows, finalize, some, monkeypatch):
    if finalize is REST and not rows.shared.size:
        return
    monkeypatch.setattr(_sums, "LARGE_SHARE", 2.0)
    whole = sums_of(some(rows))
    sums = whole.compact()
    assert sums.rows.n_rows == 0
    # To first order, and with the factor n / (n - 1) of equal rows.
    slopes = whole.slopes(finalize)
    shared = np.repeat(rows.shared[:, None], rows.n_groups, axis=1)
    both = np.concatenate([rows.by_group, shared], axis=2)
    linear = np.einsum("qgc,gc->qg", both, slopes)
    number = whole.active(finalize).max(axis=(0, 1))
    linear *= np.sqrt(number / np.maximum(number - 1, 1))
    expected = linear.T @ linear
    known = ~whole.undefined(finalize)
    expected = np.where(np.outer(known, known), expected, np.nan)
    assert_allclose(sums.covariance(finalize), expected, atol=1e-11)
    assert_allclose(sums.variance(finalize), np.diag(expected), atol=1e-11)
    check_folded_leverages(sums, rows, finalize)
    check_folded_powers(sums, rows, finalize, linear)
    twice = (sums + sums).variance(finalize)
    assert_allclose(twice, (whole + whole).compact().variance(finalize))


def check_folded_leverages(sums, rows, finalize):
    """Compare degrees of freedom with those of matrices of powers of the shares."""
    member = np.ones((rows.n_rows, rows.n_groups), dtype=bool)
    if rows.member is not None:
        member[rows.row, rows.group] = rows.member
    squares = []
    for k in needs_of(finalize):
        size = SUPPORTS[k](rows.by_group, rows.shared)
        strata = [size * member, size * ~member][: 1 + (rows.member is not None)]
        for of_stratum in strata:
            total = of_stratum.sum(axis=0)
            squares.append((of_stratum / np.where(total > 0, total, 1.0)) ** 2)
    square = sum(squares)  # (Q, G)
    trace = square.sum(axis=0)
    with np.errstate(invalid="ignore"):
        expected = trace**2 / (square**2).sum(axis=0)
    assert_allclose(degrees_of_freedom(sums, finalize)[0], expected, rtol=1e-9)


def check_folded_powers(sums, rows, finalize, linear):
    """Compare sums of powers of influences, also of some groups and side by side."""
    strata = np.ones((1, *linear.shape), dtype=bool)
    if rows.member is not None:
        member = rows.member.reshape(linear.shape)
        strata = np.stack([member, ~member])
    expected = [(strata * linear**power).sum(axis=1) for power in (2, 3, 4)]
    assert_allclose(sums.moments(finalize), expected, atol=1e-11)
    backwards = sums.of_groups(np.arange(rows.n_groups)[::-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = sums.variance(finalize) ** np.array([[1.5], [2.0]])
        shape = np.sum(expected[1:], axis=1) / scale
    some = sums.variance(finalize) > 1e-9
    close = {"rtol": 1e-5, "atol": 1e-9}
    for found in sums.tails(finalize), backwards.tails(finalize)[:, ::-1]:
        assert_allclose(found[:, some], shape[:, some], **close)
    size, needs = (rows.n_columns, rows.shared.shape[1]), np.array(needs_of(finalize))
    for second in (False, True):
        moved = tuple(needs + len(sums.supports) * second)
        metric = Beside(finalize, *size, second=second, needs=moved)
        shape_of_one = sums.as_independent(sums).tails(metric)
        assert_allclose(shape_of_one[:, some], shape[:, some], **close)


# Closed forms and other references


def test_of_a_mean_the_jackknife_is_the_variance_of_a_mean():
    values = np.random.default_rng(0).normal(size=(12, 3))
    rows = Rows.of_all(
        np.stack([values, np.ones_like(values)], 2), np.zeros((12, 0)), np.arange(12)
    )
    sums = sums_of(rows)
    assert_allclose(sums.covariance(RATIO), np.cov(values.T) / 12)
    df, effective = degrees_of_freedom(sums, RATIO)
    assert_allclose([df, effective], [[11] * 3, [12] * 3])
    # The same clusters stand behind both groups: no more is known of the difference.
    assert_allclose(contrast_degrees(sums, RATIO, *pairs_of(3)), 11)


def test_rounding_is_no_variance():
    # All clusters have the same ratio, so that it does not vary at all.
    size = np.random.default_rng(0).integers(1, 9, (20, 3)).astype(float)
    rows = np.stack([0.1 * size, size], axis=2)
    sums = sums_of(Rows.of_all(rows, np.zeros((20, 0)), np.arange(20)))
    np.testing.assert_array_equal(sums.variance(RATIO), 0.0)
    np.testing.assert_array_equal(np.diag(sums.covariance(RATIO)), 0.0)


def test_entries_of_one_place_are_added_in_any_order():
    where = np.array([1, 0, 1, 1]), np.array([2, 0, 2, 1])
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    expected = np.zeros((3, 3, 2))
    expected[0, 0], expected[1, 1], expected[1, 2] = [3, 4], [7, 8], [6, 8]
    member = np.array([True, False, True, False])
    table = Rows(*where, values, np.zeros((3, 0)), 3, np.arange(3), member).summed()
    assert_allclose(table.by_group, expected)
    assert table.shared.shape == (3, 0)
    assert table.row.tolist() == [0, 1, 1]
    assert table.member.tolist() == [False, False, True]


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
def test_rows_of_both_keep_labels_of_other_types(labels, expected):
    one, other = (
        Rows.of_all(np.ones((len(of_rows), 1, 2)), np.zeros((len(of_rows), 0)), of_rows)
        for of_rows in labels
    )
    merged = (one + other).labels.tolist()
    assert merged == expected
    assert [type(label) is str for label in merged] == [
        type(label) is str for label in expected
    ]


def test_a_pair_needs_labels_that_do_not_repeat():
    sums = sums_of(design())
    repeated = sums_of(sums.rows + sums.rows)
    with pytest.raises(ValueError, match="labels repeat"):
        repeated.join_columns(repeated)


# Many groups


def many(n_rows=3000, n_groups=600, per_row=8):
    """Return a table of many groups, a few of them in each row.

    One group has nearly all data; of the rest most is in five rows that lack it.
    """
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(n_rows), per_row)
    group = rng.integers(1, n_groups, row.size)
    row = np.append(row, np.arange(n_rows)[5:])
    group = np.append(group, np.zeros(n_rows - 5, dtype=int))
    size = rng.integers(1, 9, row.size) * np.exp(rng.normal(size=row.size))
    size *= np.where(group == 0, 50, np.where(row < 5, 5, 0.01))
    mean = rng.uniform(0, 1, row.size)
    values = np.stack([mean * size, size, -mean * size, -size], axis=1)
    shared = np.stack([np.bincount(row, values[:, i]) for i in (0, 1)], axis=1)
    return Rows(row, group, values, shared, n_groups, np.arange(n_rows)).summed()


def test_rows_without_a_group_are_small_enough_for_first_order():
    table = many()
    dense = sums_of(Rows.of_all(table.by_group, table.shared, table.labels))
    sparse, first, second = sums_of(table), np.zeros(40, dtype=int), np.arange(1, 41)
    # The rest of the first group is in few rows, which are looked at exactly.
    assert (sparse.exact_rows.group == 0).sum() == (table.group == 0).sum() + 5
    for finalize in (RATIO, REST, entropy):
        assert_allclose(sparse.variance(finalize), dense.variance(finalize), rtol=0.01)
        (df, n), (df_all, n_all) = (
            degrees_of_freedom(sums, finalize) for sums in (sparse, dense)
        )
        assert_allclose(n, n_all, rtol=0.01)
        assert_allclose(df, df_all, rtol=0.01)
        found, expected = (
            sums.covariances(finalize, first, second) for sums in (sparse, dense)
        )
        variance = dense.variance(finalize)
        scale = np.sqrt(variance[first] * variance[second])
        assert (np.abs(found - expected) < 0.01 * scale).all()
        df, df_all = (
            contrast_degrees(sums, finalize, first, second) for sums in (sparse, dense)
        )
        assert_allclose(df, df_all, rtol=0.01)


def test_compact_of_many_groups_is_small_and_near():
    whole = sums_of(many(n_rows=30_000, n_groups=2000))
    compact = whole.compact()
    for finalize in (RATIO, REST):
        assert_allclose(compact.variance(finalize), whole.variance(finalize), rtol=0.05)
    assert not compact.has_covariance
    message = "compact.. keeps the variance of each of 2 groups.*before compact"
    with pytest.raises(ValueError, match=message):
        compact.covariances(RATIO, np.array([0]), np.array([1]))
    twice = (compact + compact).variance(RATIO)
    assert_allclose(twice, (whole + whole).variance(RATIO), rtol=0.05)
    few = sums_of(design(2000, 3, share=0.9))
    assert few.compact().has_covariance
    assert not (few.compact() + few.compact(n_results=1 << 18)).has_covariance
    assert_allclose(
        (few.compact() + few.compact(n_results=1 << 18)).variance(REST),
        (few.compact() + few.compact()).variance(REST),
    )


def test_parts_keep_the_rows_that_the_whole_keeps():
    rows = design(2000, 2)
    rows.shared[7] *= 50.0
    sixths = np.array_split(np.arange(2000), 6)
    parts = [sums_of(rows.take(some)).compact() for some in sixths]
    total, whole = sum(parts[1:], parts[0]), sums_of(rows).compact()
    # Without its label, which may be the name of a person.
    assert total.rows.labels.tolist() == whole.rows.labels.tolist() == [0]
    assert_allclose(total.rows.shared, rows.shared[[7]])
    assert_allclose(total.covariance(REST), whole.covariance(REST), rtol=1e-10)
    assert_allclose(total.covariance(REST), sums_of(rows).covariance(REST), rtol=1e-2)


def test_covariances_of_too_many_groups_are_refused_in_words():
    sums = sums_of(many(n_groups=1001))
    message = "covariance of 1001 groups .* more than 1000: ask for standard_error"
    with pytest.raises(ValueError, match=message):
        sums.covariance(RATIO)


def test_clusters_and_items_do_not_add():
    one, other = sums_of(design()), sums_of(DESIGNS["members and others"])
    for a, b in ((one, other), (other, one)):
        with pytest.raises(ValueError, match=r"variance='(item|cluster)'.*cannot be"):
            a + b


def test_support_of_weighted_rows_counts_them():
    rows, labels = design(), tuple("abcd")
    number = np.full((4, 4), 7.0), np.full(2, 9.0)
    weighted = sums_of(replace(rows, unweighted=number), labels)
    assert_allclose(weighted.unweighted_support(SUPPORTS[0]), 7)
    twice = (weighted + weighted).of_groups(np.array([1]))
    assert_allclose(twice.unweighted_support(SUPPORTS[0]), 14)
    plain = sums_of(rows, labels)
    both = (weighted + plain).unweighted_support(SUPPORTS[1])
    assert_allclose(both, 16 + plain.unweighted_support(SUPPORTS[1]))
