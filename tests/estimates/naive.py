"""Moments of sums by loops over rows, and the designs that they are compared on."""

from types import SimpleNamespace

import numpy as np

from skrankfair._estimates.finalize import (
    ColumnSum,
    MeanOfRatios,
    needs_of,
    ratios_minus_rest,
)
from skrankfair._estimates.rows import Rows
from skrankfair._estimates.sums import ClusterSums

SUPPORTS = (ColumnSum(1, 2), ColumnSum(3, 4, slice(1, 2)))


def entropy(by_group, shared):
    """Need the columns of a group and, if there is one, the first shared column."""
    size = by_group[..., 1] + 1.0
    common = shared[..., None, 0] / 50 if shared.shape[-1] else 0.0
    return np.log(size + common) * by_group[..., 0] / size


def squared(by_group, shared):
    return by_group[..., 0] ** 2 - by_group[..., 1] * by_group[..., 0]


#: The last one needs shared columns.
METRICS = {
    "ratio": MeanOfRatios(),
    "entropy": entropy,
    "squared": squared,
    "rest": ratios_minus_rest(1, 1.0),
}


def design(n_rows=20, n_groups=4, seed=0, share=1.0, n_shared=2, size=None, who=None):
    """Return rows with numerators, sizes, and what the rest lacks of all.

    A `share` of the places has data; `size` changes the numbers in place, and `who`
    is who is a member of each group, of items.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, (n_rows, n_groups)).astype(float)
    sizes *= rng.random(sizes.shape) < share
    if size is not None:
        size(sizes)
    by_group = np.zeros((n_rows, n_groups, 4))
    by_group[..., 1] = sizes
    by_group[..., 0] = rng.uniform(0, 1, sizes.shape) * sizes
    shared = np.zeros((n_rows, n_shared))
    if n_shared:
        shared[:, 1] = rng.integers(1, 9, n_rows) + sizes.sum(axis=1)
        shared[:, 0] = rng.uniform(0, 1, n_rows) * shared[:, 1]
        by_group[..., 2:] = -by_group[..., :2]
    return Rows.of_all(by_group, shared, np.arange(n_rows), who)


def nobody(sizes):
    sizes[:, 1] = 0


def alone(sizes):
    sizes[1:, 1] = 0


def mostly_one(sizes):
    sizes[0] = 1000


def members(*numbers):
    """Return members of groups: the first ones, so many of each group."""
    return np.arange(12)[:, None] < np.array(numbers)


DESIGNS = {
    "every group in every row": design(),
    "few groups in each row": design(25, 6, 1, share=0.3),
    "no shared columns": design(25, 6, 2, share=0.3, n_shared=0),
    "a group without data": design(size=nobody),
    "a group in one row": design(size=alone),
    "one row with most of the data": design(size=mostly_one),
    "one row": design(1, 3, 3),
    "members and others": design(12, 3, 4, who=members(4, 6, 9)),
    "few pairs of members": design(12, 3, 5, share=0.5, who=members(4, 6, 9)),
    "one member": design(12, 3, 6, who=members(1, 6, 0)),
}


def cases():
    """Return names of designs and of the metrics that can be computed on them."""
    return [
        (name, metric)
        for name, rows in DESIGNS.items()
        for metric in METRICS
        if rows.shared.size or metric != "rest"
    ]


def entries_of(rows):
    """Return the rows without entries of groups that they have no data of."""
    some = (rows.values != 0).any(axis=1)
    some |= False if rows.member is None else rows.member
    return rows.only(some)


def sums_of(rows, groups=None):
    """Return the sums of clusters, or of items if rows are members of groups."""
    groups = tuple(range(rows.n_groups)) if groups is None else groups
    supports = SUPPORTS[: 1 + bool(rows.shared.size)]
    totals = None
    if rows.member is not None:
        totals = tuple(total / 2 for total in rows.totals())
    return ClusterSums.from_rows(groups, rows, supports, totals)


def moments(rows, finalize, supports=SUPPORTS):
    """Return what `rows` say of a metric, by leaving out each of them in turn.

    Degrees of freedom are Satterthwaite's, of the matrices M = B Bᵀ of all samples.
    """
    columns, shared, n_groups = rows.by_group, rows.shared, rows.n_groups
    items = rows.member is not None
    total, common = (x.sum(axis=0) / (1 + items) for x in (columns, shared))
    estimate = finalize(total, common)
    known, influence = ~np.isnan(estimate), np.zeros((rows.n_rows, n_groups))
    matrices, effective = [], np.zeros(n_groups)
    member = np.zeros((rows.n_rows, n_groups), dtype=bool)
    member[rows.row, rows.group] = True if rows.member is None else rows.member
    for g in range(n_groups):
        strata = [member[:, g], ~member[:, g]] if items else [np.full(rows.n_rows, 1)]
        sizes = [
            [supports[k](columns, shared)[:, g] * stratum for stratum in strata]
            for k in needs_of(finalize)
        ]
        numbers = [[(size > 0).sum() for size in each] for each in sizes]
        known[g] &= all(sum(each) > 1 and 1 not in each for each in numbers)
        for stratum, n in zip(strata, np.max(numbers, axis=0), strict=True):
            for q in np.flatnonzero(stratum):
                left_out = finalize(total - columns[q], common - shared[q])[g]
                factor = np.sqrt(max(n - 1, 0) / max(n, 1))
                influence[q, g] = factor * (left_out - estimate[g])
        samples = [size for each in sizes for size in each if size.any()]
        none = np.zeros((rows.n_rows, rows.n_rows))
        matrices.append(sum(map(matrix_of, samples), none))
        some = [size.sum() ** 2 / (size**2).sum() for size in samples]
        effective[g] = min(some, default=0)
    covariance = influence.T @ influence
    covariance[~known] = covariance[:, ~known] = np.nan
    with np.errstate(invalid="ignore"):
        square = (influence**2).sum(axis=0)
        skewness = -(influence**3).sum(axis=0) / square**1.5
        share = (influence**4).sum(axis=0) / square**2
    return SimpleNamespace(
        estimate=estimate,
        covariance=covariance,
        tails=np.stack([skewness, share]),
        df=np.array([degrees_of(m) for m in matrices]),
        df_of_pairs=np.array([[degrees_of(a + b) for a in matrices] for b in matrices]),
        n_effective=effective,
    )


def matrix_of(size):
    """Return M = B Bᵀ of a sample with so much data in each row."""
    h = size / size.sum()
    if h.max() > 1 - 1e-9:
        return np.full((h.size, h.size), np.nan)
    b = (h / (1 - h))[:, None] * (np.eye(h.size) - h)
    return b @ b.T


def degrees_of(matrix):
    with np.errstate(invalid="ignore"):
        return np.trace(matrix) ** 2 / np.trace(matrix @ matrix)
