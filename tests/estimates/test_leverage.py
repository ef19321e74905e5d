"""Degrees of freedom and effective numbers of clusters, by dense matrices."""

import itertools

import numpy as np
import pytest

from skrankfair._estimates.leverage import contrast_degrees, degrees_of_freedom
from skrankfair._estimates.rows import Rows
from skrankfair._estimates.sums import ClusterSums
from tests.metrics.simulate import result_of


def ratio(by_group, shared):
    with np.errstate(divide="ignore", invalid="ignore"):
        return by_group[..., 0] / by_group[..., 1]


def difference(by_group, shared):
    return ratio(by_group, shared) - ratio(by_group[..., 2:], shared)


difference.needs = (0, 1)


def first(by_group, shared):
    return by_group[..., 1]


def second(by_group, shared):
    return by_group[..., 3]


def make_table(seed, n_rows=9, n_groups=3):
    rng = np.random.default_rng(seed)
    by_group = rng.normal(size=(n_rows, n_groups, 4))
    # Group 0 is nowhere in the first rows.
    by_group[..., 1::2] = rng.integers(0, 5, (n_rows, n_groups, 2))
    by_group[:3, 0] = 0.0
    return Rows.of_all(by_group, np.zeros((n_rows, 0)), np.arange(n_rows))


def cells_of(table):
    """Return a view of all groups of each row, shape (Q, G, C)."""
    return table.values.reshape(table.n_rows, table.n_groups, table.n_columns)


def sums_of(table):
    return ClusterSums.from_clusters(tuple(range(3)), table, [first, second])


def matrix_of(amount):
    """M = B Bᵀ of one sample with so much data in each row."""
    share = amount / amount.sum()
    b = (share / (1 - share))[:, None] * (np.eye(share.size) - share)
    return b @ b.T


def satterthwaite(matrices):
    m = sum(matrices)
    return np.trace(m) ** 2 / np.trace(m @ m)


def samples(table, group, needs):
    return [table.by_group[:, group, 1 + 2 * k] for k in needs]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("finalize", "needs"), [(ratio, (0,)), (difference, (0, 1))])
def test_against_dense_matrices(seed, finalize, needs):
    table = make_table(seed)
    matrices, effective = [], []
    for group in range(3):
        amounts = samples(table, group, needs)
        matrices.append([matrix_of(amount) for amount in amounts])
        effective.append(min(a.sum() ** 2 / (a**2).sum() for a in amounts))
    sums = sums_of(table)
    df, n_effective = degrees_of_freedom(sums, finalize)
    np.testing.assert_allclose(df, [satterthwaite(m) for m in matrices], rtol=1e-9)
    np.testing.assert_allclose(n_effective, effective, rtol=1e-12)
    a, b = np.array(list(itertools.combinations(range(3), 2))).T
    expected = [
        satterthwaite(matrices[i] + matrices[j]) for i, j in zip(a, b, strict=True)
    ]
    np.testing.assert_allclose(
        contrast_degrees(sums, finalize, a, b), expected, rtol=1e-9
    )


def test_members_and_others_are_two_samples():
    table = make_table(0)
    cells_of(table)[3:, :, 1] += 1
    member = np.stack([np.arange(9) % 2 == 0, np.arange(9) < 5, np.arange(9) > 6], 1)
    items = Rows.of_all(table.by_group, table.shared, table.labels, member)
    totals = table.by_group.sum(0) / 2, np.zeros(0)
    sums = ClusterSums.from_items((0, 1, 2), items, totals, [first])
    df, n_effective = degrees_of_freedom(sums, ratio)
    for group in range(3):
        amount = table.by_group[:, group, 1]
        sides = [amount * member[:, group], amount * ~member[:, group]]
        sides = [side for side in sides if side.any()]
        expected = satterthwaite([matrix_of(side) for side in sides])
        assert df[group] == pytest.approx(expected)
        expected = min(side.sum() ** 2 / (side**2).sum() for side in sides)
        assert n_effective[group] == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 5, 40])
def test_of_equal_clusters_they_are_one_less(n):
    result = result_of(np.random.default_rng(0).normal(size=(n, 2)))
    np.testing.assert_allclose(result.df, n - 1)
    np.testing.assert_allclose(result.n_effective, n)
    zero, one = np.array([0]), np.array([1])
    df = contrast_degrees(result.sums, result.metric.finalize, zero, one)
    # The same clusters stand behind both groups: no more is known of the difference.
    np.testing.assert_allclose(df, n - 1)


def test_one_large_cluster_leaves_about_one():
    table = make_table(0, n_rows=200)
    cells_of(table)[..., 1] = 1.0
    cells_of(table)[0, :, 1] = 1000.0
    df, n_effective = degrees_of_freedom(sums_of(table), ratio)
    assert (df < 1.1).all()
    assert (n_effective < 1.5).all()


def test_a_group_without_data_has_none():
    table = make_table(0)
    cells_of(table)[:, 1] = 0.0
    df, n_effective = degrees_of_freedom(sums_of(table), ratio)
    assert np.isnan(df[1])
    assert n_effective[1] == 0
    assert np.isfinite(df[[0, 2]]).all()
