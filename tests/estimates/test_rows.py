"""Tables of the groups that each row has data of: the same numbers, less memory."""

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special

from skrankfair._estimates import allocation
from skrankfair._estimates import sums as _sums
from skrankfair._estimates.bootstrap import Resampler
from skrankfair._estimates.finalize import (
    ColumnSum,
    DifferenceToRest,
    MeanOfRatios,
    slopes_at,
)
from skrankfair._estimates.leverage import contrast_degrees, degrees_of_freedom
from skrankfair._estimates.metric import collected_warnings
from skrankfair._estimates.rows import Rows, draw_counts
from skrankfair._estimates.sums import ClusterSums
from skrankfair.metrics import (
    mean_squared_error,
    pairwise_exposure,
    positive_rate_shift,
)
from tests.estimates.conftest import complete, scatter_of, with_data

REST = DifferenceToRest(1, 1.0)
SUPPORTS = [ColumnSum(1, 2), ColumnSum(3, 4, slice(1, 2))]
EXACT = {"rtol": 1e-11, "atol": 1e-13}


def entropy(by_group, shared):
    """Needs its own columns and, if there is one, the first shared column."""
    size = by_group[..., 1] + 1.0
    common = shared[..., None, 0] / 50 if shared.shape[-1] else 0.0
    return np.log(size + common) * by_group[..., 0] / size


def ratio(by_group, shared):
    return MeanOfRatios()(by_group, shared)


@st.composite
def tables(draw, shared=None):
    """Draw a table, in which few rows may have data of a group."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_groups = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    n_shared = 2 if shared else draw(st.sampled_from([0, 2]))
    there = rng.random((n_rows, n_groups)) < draw(st.sampled_from([0.1, 0.3, 1.0]))
    size = rng.integers(1, 9, (n_rows, n_groups)) * there
    by_group = np.zeros((n_rows, n_groups, 4))
    by_group[..., 1] = size
    by_group[..., 0] = rng.uniform(0, 1, size.shape) * size
    common = np.zeros((n_rows, n_shared))
    if n_shared:
        # The rest is all the others: its columns are what the shared ones lack.
        common[:, 1] = rng.integers(1, 9, n_rows) + size.sum(1)
        common[:, 0] = rng.uniform(0, 1, n_rows) * common[:, 1]
        by_group[..., 2:] = -by_group[..., :2]
    member = None
    if draw(st.booleans()):
        member = rng.random((n_rows, n_groups)) < 0.3
    return Rows.of_all(by_group, common, np.arange(n_rows), member)


def both_sums(table, kind="cluster"):
    """Return the sums of a table with all groups, and of one of entries."""
    groups = tuple(range(table.n_groups))
    found = []
    for storage in (table, with_data(table)):
        if kind == "cluster":
            found.append(
                ClusterSums.from_clusters(
                    groups, storage, SUPPORTS[: 1 + bool(table.shared.size)]
                )
            )
            continue
        totals = tuple(total / 2 for total in table.totals())
        found.append(
            ClusterSums.from_items(
                groups, storage, totals, SUPPORTS[: 1 + bool(table.shared.size)]
            )
        )
    return found


def finalizers(table):
    return (ratio, entropy, REST) if table.shared.size else (ratio, entropy)


def assert_same(dense, sparse, finalize, **tolerance):
    """Compare all that sums say."""
    tolerance = tolerance or EXACT
    for name in ("by_group", "shared", "count", "support", "active"):
        assert_allclose(getattr(sparse, name), getattr(dense, name), **tolerance)
    assert_allclose(sparse.estimate(finalize), dense.estimate(finalize), **tolerance)
    variance = dense.variance(finalize)
    assert_allclose(sparse.variance(finalize), variance, **tolerance)
    share = dense.concentration(finalize)[variance > 0]
    assert_allclose(sparse.concentration(finalize)[variance > 0], share, **tolerance)
    covariance = dense.covariance(finalize)
    assert_allclose(sparse.covariance(finalize), covariance, **tolerance)
    df, effective = degrees_of_freedom(dense, finalize)
    found = degrees_of_freedom(sparse, finalize)
    assert_allclose(found[1], effective, **tolerance)
    # Where one row has nearly all data, rounding is all that is left.
    some = effective > 1.2
    assert_allclose(found[0][some], df[some], **tolerance)
    n_groups = len(dense.groups)
    first, second = np.array(list(itertools.product(range(n_groups), repeat=2))).T
    for sums in (dense, sparse):
        of_first, of_second, between = sums.covariances(finalize, first, second)
        assert_allclose(between, covariance[first, second], **tolerance)
        known = ~np.isnan(between)
        assert_allclose(of_first[known], variance[first][known], **tolerance)
        assert_allclose(of_second[known], variance[second][known], **tolerance)
    some = some[first] & some[second]
    assert_allclose(
        contrast_degrees(sparse, finalize, first[some], second[some]),
        contrast_degrees(dense, finalize, first[some], second[some]),
        **tolerance,
    )


EACH = settings(max_examples=10, deadline=None)


def test_entries_of_one_place_are_added_in_any_order():
    where = np.array([1, 0, 1, 1]), np.array([2, 0, 2, 1])
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    expected = np.zeros((3, 3, 2))
    expected[0, 0], expected[1, 1], expected[1, 2] = [3, 4], [7, 8], [6, 8]
    options = {"n_rows": 3, "n_groups": 3, "labels": np.arange(3)}
    member = np.array([True, False, True, False])
    table = Rows.from_entries(*where, values, member=member, **options)
    assert_allclose(table.by_group, expected)
    assert table.shared.shape == (3, 0)
    assert table.row.tolist() == [0, 1, 1]
    assert table.member.tolist() == [False, False, True]


@EACH
@given(table=tables(), kind=st.sampled_from(["cluster", "item"]))
def test_entries_give_the_numbers_of_all_groups(table, kind):
    dense, sparse = both_sums(table, kind)
    for finalize in finalizers(table):
        assert_same(dense, sparse, finalize)


def test_rounding_leaves_no_variance_below_0():
    by_group = np.zeros((1, 9, 4))
    by_group[0, 2] = [2.43709296, 6, -2.43709296, -6]
    shared = np.array([[11.73747811, 13.0]])
    table = Rows.of_all(3.5 * by_group, 3.5 * shared, np.zeros(1))
    dense, sparse = both_sums(table, "item")
    assert_same(dense, sparse, REST)


@EACH
@given(table=tables(), share=st.sampled_from([1 / 400, 0.05, 2.0]))
def test_folded_entries_give_the_numbers_of_folded_groups(table, share):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sums, "LARGE_SHARE", share)
        dense, sparse = (sums.compact() for sums in both_sums(table))
        for finalize in finalizers(table):
            assert_same(dense, sparse, finalize)
        assert_allclose(scatter_of(sparse), scatter_of(dense), **EXACT)


@EACH
@given(a=tables(True), b=tables(True), compact=st.booleans())
def test_sums_of_parts_are_those_of_the_whole(a, b, compact):
    parts = [both_sums(replace(t, member=None)) for t in (a, b)]
    parts[1] = [
        replace(sums, groups=tuple(f"b{g}" if g > 2 else g for g in sums.groups))
        for sums in parts[1]
    ]
    if compact:
        parts = [[sums.compact() for sums in part] for part in parts]
    dense, sparse = (one + other for one, other in zip(*parts, strict=True))
    assert sparse.groups == dense.groups
    for finalize in finalizers(a):
        assert_same(dense, sparse, finalize)


@EACH
@given(table=tables())
def test_all_groups_as_one(table):
    dense, sparse = (sums.pooled() for sums in both_sums(table))
    for finalize in finalizers(table)[:2]:
        assert_same(dense, sparse, finalize)
    dense, sparse = (sums.compact().pooled() for sums in both_sums(table))
    assert_allclose(sparse.variance(ratio), dense.variance(ratio), **EXACT)


@EACH
@given(table=tables(), seed=st.integers(0, 99))
def test_two_models_side_by_side(table, seed):
    rows = np.random.default_rng(seed).permutation(table.n_rows)
    other, sparse = table.take(rows), with_data(table)
    dense = table.join_columns(other)
    for one in (table, sparse):
        for two in (other, with_data(other)):
            assert_allclose(one.join_columns(two).by_group, dense.by_group)
            assert_allclose(one.join_columns(two).shared, dense.shared)
            assert_allclose((one + two).by_group, (table + other).by_group)
    codes = np.arange(table.n_rows) // 2
    size = codes.max() + 1
    parts = [t.summed(codes, size, np.arange(size)) for t in (table, sparse)]
    assert_allclose(parts[1].by_group, parts[0].by_group)
    assert_allclose(parts[1].shared, parts[0].shared)


@EACH
@given(table=tables(), seed=st.integers(0, 99))
def test_bootstrap_of_entries_draws_the_same(table, seed):
    found = []
    for sums in both_sums(table):
        totals = next(sums.resample(7, np.random.default_rng(seed)))
        first = np.arange(len(sums.groups))
        for second in (None, first[::-1]):
            resampler = Resampler(sums, entropy, first, second)
            rows = sums.bootstrap_table()
            counts = draw_counts(rows, 7, np.random.default_rng(seed))
            drawn = rows.drawn(counts)
            with np.errstate(all="ignore"):
                values, slopes = entropy(*drawn), slopes_at(entropy, *drawn)
                variance = resampler._errors(counts, values, slopes) ** 2
            totals += (resampler._combined(values), variance)
        found.append(totals)
    for dense, sparse in zip(*found, strict=True):
        assert_allclose(sparse, dense, rtol=1e-9, atol=1e-10)


def many(n_rows=3000, n_groups=600, per_row=8, seed=0, with_shared=True):
    """Return a table of many groups, a few of them in each row.

    One group has nearly all data; of the rest most is in five rows that lack it.
    """
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(n_rows), per_row)
    group = rng.integers(1, n_groups, row.size)
    row, group = (
        np.append(row, np.arange(n_rows)[5:]),
        np.append(group, row[5:n_rows] * 0),
    )
    size = rng.integers(1, 9, row.size) * np.exp(rng.normal(size=row.size))
    size *= np.where(group == 0, 50, np.where(row < 5, 5, 0.01))
    mean = rng.uniform(0, 1, row.size)
    values = np.stack([mean * size, size, -mean * size, -size], axis=1)
    shared = np.zeros((n_rows, 0))
    if with_shared:
        shared = np.stack([np.bincount(row, values[:, i]) for i in (0, 1)], axis=1)
    else:
        values = values[:, :2]
    return Rows.from_entries(
        row,
        group,
        values,
        n_rows=n_rows,
        n_groups=n_groups,
        shared=shared,
        labels=np.arange(n_rows),
    )


def test_without_shared_columns_many_groups_are_exact():
    table = many(with_shared=False)
    groups = tuple(range(table.n_groups))
    dense, sparse = (
        ClusterSums.from_clusters(groups, storage, SUPPORTS[:1])
        for storage in (complete(table), table)
    )
    assert_allclose(sparse.variance(ratio), dense.variance(ratio), rtol=1e-11)
    for found, expected in zip(
        degrees_of_freedom(sparse, ratio), degrees_of_freedom(dense, ratio), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-6)


def test_rows_without_a_group_are_small_enough_for_first_order():
    table = many()
    groups = tuple(range(table.n_groups))
    dense, sparse = (
        ClusterSums.from_clusters(groups, storage, SUPPORTS)
        for storage in (complete(table), table)
    )
    # The rest of the first group is in few rows, which are looked at exactly.
    more = sparse.exact_rows
    assert (more.group == 0).sum() == (table.group == 0).sum() + 5
    for finalize in (ratio, REST, entropy):
        assert_allclose(sparse.variance(finalize), dense.variance(finalize), rtol=0.01)
        for found, expected in zip(
            degrees_of_freedom(sparse, finalize),
            degrees_of_freedom(dense, finalize),
            strict=True,
        ):
            assert_allclose(found, expected, rtol=0.01)
    first, second = np.zeros(40, dtype=int), np.arange(1, 41)
    for finalize in (REST, entropy):
        found = np.array(sparse.covariances(finalize, first, second))
        expected = np.array(dense.covariances(finalize, first, second))
        scale = np.sqrt(expected[0] * expected[1])
        assert (np.abs(found - expected) < 0.01 * scale).all()
        assert_allclose(
            contrast_degrees(sparse, finalize, first, second),
            contrast_degrees(dense, finalize, first, second),
            rtol=0.01,
        )


def test_compact_of_many_groups_is_small_and_near(monkeypatch):
    table = many(n_rows=30_000, n_groups=2000)
    groups = tuple(range(table.n_groups))
    whole = ClusterSums.from_clusters(groups, table, SUPPORTS)
    compact = whole.compact()
    for finalize in (ratio, REST):
        assert_allclose(compact.variance(finalize), whole.variance(finalize), rtol=0.05)
    assert compact.remainder is not None
    assert not compact.remainder.scatter.complete
    message = "compact.. keeps the variance of each of 2 groups.*before compact"
    with pytest.raises(ValueError, match=message):
        compact.covariances(ratio, np.array([0]), np.array([1]))
    both = compact + compact
    expected = (whole + whole).variance(ratio)
    assert_allclose(both.variance(ratio), expected, rtol=0.05)


def peak_of(function):
    """Return the most memory that a call takes beyond what was there, in bytes."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_entries_and_groups():
    n_rows, n_groups = 20_000, 2000
    table = many(n_rows=n_rows, n_groups=n_groups, per_row=4)
    groups = tuple(range(n_groups))

    def everything():
        sums = ClusterSums.from_clusters(groups, table, SUPPORTS)
        assert np.isfinite(sums.variance(REST)[1:]).all()
        degrees_of_freedom(sums, REST)
        first, second = np.zeros(3, dtype=int), np.arange(1, 4)
        sums.covariances(REST, first, second)
        contrast_degrees(sums, REST, first, second)
        (sums.compact() + sums.compact()).variance(REST)

    # With all groups of each row the table alone would take 1.3 GB. What is worked on
    # at once, whatever the size, is the constant.
    assert peak_of(everything) < 150 * table.row.size + 1000 * n_groups + 32e6


def test_covariances_of_too_many_groups_are_refused_in_words():
    table = many(n_groups=1001)
    sums = ClusterSums.from_clusters(tuple(range(1001)), table, SUPPORTS)
    message = "covariance of 1001 groups .* more than 1000: ask for standard_error"
    with pytest.raises(ValueError, match=message):
        sums.covariance(ratio)


def test_one_list_of_too_many_groups_is_refused(monkeypatch):
    monkeypatch.setattr(allocation, "memory_limit", lambda: 1e4)
    score, group = np.arange(100.0), np.arange(100) % 20
    message = r"pairs of each of 100 items of one list with 20 groups would take.*qid="
    with pytest.raises(ValueError, match=message):
        pairwise_exposure(None, score, sensitive_features=group)
    score, group = np.arange(200_000.0), np.arange(200_000) % 501
    message = r"at most 100,000,000; got 200,000 items x 501 groups\. Pass qid="
    with pytest.raises(ValueError, match=message):
        pairwise_exposure(None, score, sensitive_features=group)


def test_the_limit_is_half_of_the_memory(monkeypatch, tmp_path):
    allocation.memory_limit.cache_clear()
    allowed = tmp_path / "memory.max"
    monkeypatch.setattr(allocation, "_CONTAINER", (str(allowed),))
    whole = allocation.memory_limit()
    assert 1e8 < whole < 1e15
    for text, expected in (("max\n", whole), ("2000000\n", 1e6)):
        allowed.write_text(text)
        allocation.memory_limit.cache_clear()
        assert allocation.memory_limit() == expected
    allocation.memory_limit.cache_clear()


def result_of_many(n_groups=1200, n_rows=5000):
    rng = np.random.default_rng(0)
    y, g = rng.uniform(size=n_rows), rng.integers(0, n_groups, n_rows)
    g[:n_groups] = np.arange(n_groups)
    g[n_groups : 2 * n_groups] = np.arange(n_groups)
    cluster = rng.integers(0, n_rows // 2, n_rows)
    with collected_warnings():
        return mean_squared_error(
            y, np.full(n_rows, 0.5), sensitive_features=g, cluster=cluster
        )


def test_results_of_many_groups_make_no_table_of_all_pairs(monkeypatch):
    result = result_of_many()
    finalize = result.metric.finalize
    some = np.concatenate([np.arange(1200), np.full(1200, 7), [0]])
    other = np.concatenate([np.arange(1200), np.arange(1200), [1]])
    *_, between = result.sums.covariances(finalize, some, other)
    own, with_seven = np.split(between[:-1], 2)
    monkeypatch.setattr(allocation, "memory_limit", lambda: 2e7)
    with collected_warnings():
        contrast = result.contrast(0, 1)
        variance = own[0] + own[1] - 2 * between[-1]
        assert_allclose(contrast.standard_error, np.sqrt(variance), rtol=1e-10)
        frame = result.contrasts(reference=7)
        assert len(frame) == 1199
        others = np.delete(np.arange(1200), 7)
        variance = own[others] + own[7] - 2 * with_seven[others]
        assert_allclose(frame["standard_error"], np.sqrt(variance), rtol=1e-9)
        low, high = result.simultaneous_interval()
        # Of independent estimates the quantile has a closed form.
        level = (1 + 0.95 ** (1 / np.isfinite(result.standard_error).sum())) / 2
        reach = special.stdtrit(result.df, level)
        # Losses have it on the scale of the logarithm.
        width = 2 * reach * result.standard_error / result.estimate
        near = width < 100
        assert near.sum() > 800
        found = np.log(high[near]) - np.log(low[near])
        assert_allclose(found, width[near], rtol=1e-3)
        assert result.disparity_bound() >= result.disparity()


def test_contrasts_of_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(allocation, "memory_limit", lambda: 1e8)
    with pytest.raises(ValueError, match="all pairs of 1200 groups would take.*pass a"):
        result_of_many().contrasts()


def test_errors_of_many_groups_by_resampling_need_no_covariance(monkeypatch):
    rng = np.random.default_rng(1)
    n_groups, n_rows = 70, 1400
    g = np.arange(n_rows) % n_groups
    y, score = rng.integers(0, 2, n_rows), rng.uniform(size=n_rows)
    result = positive_rate_shift(
        y, score, sensitive_features=g, threshold=0.5, bandwidth=0.2, n_resamples=5
    )
    sums, finalize = result.sums, result.metric.finalize
    expected = np.sqrt(np.diag(sums.covariance(finalize)))
    monkeypatch.setattr(type(sums), "covariance", None)
    assert_allclose(result.standard_error, expected, rtol=1e-12)
