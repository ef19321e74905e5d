"""From pairs to the table of sums: one driver for every metric over pairs.

Columns of a group, each of them once a bucket: value and number of its pairs; for
metrics that compare a group with the rest also value and number of the rest's pairs,
less the shared totals where the rest is "all the others" (so that a part of the data
that lacks the group adds nothing to the group's columns); and the number of pairs again
where the average is over queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from .._ranking import RankedData
from .._sums import ClusterSums, Finalize, Table
from .._validation import Array, Codes, Groups, check_choice
from ._pairs import FocalSums, OutcomePairs


class CrossPairs(Protocol):
    """A `CrossSource` that also knows products, for the item variance."""

    groups: Groups
    n_columns: int
    mirror: Array

    def own_products(self, group: int, weight: Array | None) -> Array:
        """Return Σ x xᵀ over the group's pairs, x the columns of a pair."""

    def class_products(
        self,
        focal: Array,
        partners: Array,
        pair: tuple[int, int],
        opposite: bool,
        weight: Array | None,
    ) -> Array:
        """Return Σ x_a x_bᵀ over the pairs of two classes that both groups count.

        Both seen from the first group.
        """


Source = Any  # OutcomePairs | CrossPairs
MakeSource = Callable[[RankedData], Source]


@dataclass(frozen=True)
class MeanOfRatios:
    """Σ numerator / Σ denominator of each bucket, averaged over buckets with support.

    Attributes
    ----------
    n_buckets : int
    column : int, default=0
        Block of the numerator; the denominator follows.
    shared_weight : float, default=0
        How much of the shared totals belongs to both.
    """

    n_buckets: int = 1
    column: int = 0
    shared_weight: float = 0.0

    def parts(self, by_group: Array, shared: Array) -> tuple[Array, Array]:
        """Return ratios and denominators, shape (..., G, B)."""
        size, start = self.n_buckets, self.column * self.n_buckets
        numerator = by_group[..., start : start + size]
        denominator = by_group[..., start + size : start + 2 * size]
        if self.shared_weight:
            numerator = numerator + shared[..., None, :size]
            denominator = denominator + shared[..., None, size : 2 * size]
        ratio = np.full(numerator.shape, np.nan, dtype=numerator.dtype)
        np.divide(numerator, denominator, out=ratio, where=denominator.real != 0)
        return ratio, denominator

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the estimates, shape (..., G)."""
        ratio, denominator = self.parts(by_group, shared)
        if self.n_buckets == 1:
            return ratio[..., 0]
        there = denominator.real != 0
        total = np.where(there, ratio, 0).sum(-1)
        mean = np.full(total.shape, np.nan, dtype=total.dtype)
        np.divide(total, there.sum(-1), out=mean, where=there.any(-1))
        return mean


@dataclass(frozen=True)
class DifferenceToRest:
    """The mean of ratios of the group less that of the rest.

    Attributes
    ----------
    n_buckets : int
    shared_weight : float
    """

    n_buckets: int
    shared_weight: float

    needs = (0, 1)

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the differences, shape (..., G)."""
        own = MeanOfRatios(self.n_buckets)
        rest = MeanOfRatios(self.n_buckets, 2, self.shared_weight)
        return own(by_group, shared) - rest(by_group, shared)


@dataclass(frozen=True)
class ColumnSum:
    """The sum of some columns of a group: its number of pairs.

    Attributes
    ----------
    start, stop : int
    shared : slice or None
        Shared columns that belong to it too.
    """

    start: int
    stop: int
    shared: slice | None = None

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the sums, shape (..., G)."""
        total = by_group[..., self.start : self.stop].sum(-1)
        if self.shared is not None:
            total = total + shared[..., None, self.shared].sum(-1)
        return total


def support_columns(average: str, n_columns: int, n_buckets: int = 1) -> ColumnSum:
    """Return the columns with the number of pairs, of a group with so many blocks."""
    check_choice(average, "average", ("pairs", "queries"))
    block = 1 if average == "pairs" else n_columns
    return ColumnSum(block * n_buckets, (block + 1) * n_buckets)


def _supports(source: Source) -> list[ColumnSum]:
    """Return the denominators: of a group, of the rest if there is one, of strata."""
    size = source.n_buckets
    supports = [ColumnSum(size, 2 * size)]
    if source.has_rest:
        shared = slice(size, 2 * size) if source.shared_weight else None
        supports.append(ColumnSum(3 * size, 4 * size, shared))
    if size > 1 and source.has_rest:
        supports += [
            ColumnSum(size + bucket, size + bucket + 1) for bucket in range(size)
        ]
    return supports


def resolve_variance(data: RankedData, variance: str, average: str) -> str:
    """Return "cluster" or "item", and refuse what cannot be done."""
    check_choice(variance, "variance", ("auto", "cluster", "item"))
    nested = data.cluster_of_query is not None
    one_list = data.ranking.n_queries == 1
    if variance == "auto":
        alone = one_list and (data.cluster is None or not nested)
        variance = "item" if alone and average == "pairs" else "cluster"
    if variance == "cluster" and not nested:
        raise ValueError(
            "cluster must be constant within a query for variance='cluster'; a query "
            "has rows of several clusters. One list (qid=None) may have clusters of "
            "items with average='pairs' and variance='item'."
        )
    if variance == "item":
        if average == "queries":
            raise ValueError(
                "average='queries' needs variance='cluster': its units are queries."
            )
        if data.cluster is not None and (not one_list or nested):
            raise ValueError(
                "variance='item' takes cluster= only for one list (qid=None) of "
                "several clusters; with queries use variance='cluster'."
            )
    return variance


def pair_sums(
    data: RankedData,
    make_source: MakeSource,
    variance: str,
    average: str,
    of_query: Finalize | None = None,
) -> ClusterSums:
    """Return the sums of a pair metric over clusters or items.

    `make_source` is called with the data, and once more with the items of one list
    ranked within their clusters when there are such. `of_query`: what to average over
    queries where it is not one ratio; the columns are then its value, whether it is
    defined, and the number of pairs.
    """
    variance = resolve_variance(data, variance, average)
    if variance == "cluster":
        return _cluster_sums(data, make_source(data), average, of_query)
    return _item_sums(data, make_source)


def _sums_by(key: Array, size: int, sums: FocalSums) -> Iterator[Array]:
    """Yield the sums of each column by key."""
    for part in sums.columns:
        yield np.bincount(key, weights=part, minlength=size)


def _query_table(data: RankedData, source: Source) -> tuple[Array, Array]:
    """Return (Q, G, blocks, B) sums by query and group, and the shared (Q, 2, B)."""
    groups, n_buckets = source.groups, source.n_buckets
    query, n_queries = data.ranking.query, data.ranking.n_queries
    blocks = 4 if source.has_rest else source.n_columns
    table = np.zeros((n_queries, len(groups), blocks, n_buckets))
    mirrored = source.has_rest and not groups.overlapping and len(groups) == 2
    for group in range(1 if mirrored else len(groups)):
        if not source.has_rest:
            for sums in source.parts(group):
                key = query[sums.rows]
                if source.bucket is not None:
                    key = key * n_buckets + source.bucket[sums.rows]
                for block, total in enumerate(
                    _sums_by(key, n_queries * n_buckets, sums)
                ):
                    table[:, group, block] += total.reshape(n_queries, n_buckets)
            continue
        sums = source.focal(group)
        key = query * np.int64(2)
        key += groups.mask(group)
        if source.bucket is not None:
            key = key * n_buckets + source.bucket
        for block, total in enumerate(_sums_by(key, 2 * n_queries * n_buckets, sums)):
            total = total.reshape(n_queries, 2, n_buckets)
            table[:, group, block] = total[:, 1]
            table[:, group, block + 2] = total[:, 0]
    if mirrored:
        # With two groups the rest of one is the other.
        table[:, 1] = table[:, 0, [2, 3, 0, 1]]
    shared = np.zeros((n_queries, 0, n_buckets))
    if source.has_rest and source.shared_weight:
        key = query if source.bucket is None else query * n_buckets + source.bucket
        totals = _sums_by(key, n_queries * n_buckets, source.total())
        shared = np.stack([t.reshape(n_queries, n_buckets) for t in totals], axis=1)
    return table, shared


def _query_means(table: Array, n_columns: int) -> None:
    """Divide each set of columns by its number of pairs, so that queries count alike.

    The number becomes whether there is a pair.
    """
    for first in range(0, table.shape[-2], n_columns):
        columns = table[..., first : first + n_columns, :]
        count = columns[..., 1:2, :].copy()
        there = count > 0
        np.divide(columns, count, out=columns, where=there)
        columns *= there


def _cluster_sums(
    data: RankedData, source: Source, average: str, of_query: Finalize | None
) -> ClusterSums:
    table, shared = _query_table(data, source)
    supports = _supports(source)
    if average == "queries" and of_query is not None:
        n_queries, n_groups = table.shape[:2]
        value = of_query(table.reshape(n_queries, n_groups, -1), shared)
        pairs = table[:, :, 1].sum(-1)
        table = np.stack([np.nan_to_num(value), ~np.isnan(value), pairs], axis=2)
        supports = [ColumnSum(1, 2)]
    elif average == "queries":
        pairs = table[:, :, 1:2].copy()
        _query_means(table, 2 if source.has_rest else source.n_columns)
        _query_means(shared, 2)
        table = np.concatenate([table, pairs], axis=2)
    if shared.shape[1]:
        table[:, :, 2:4] -= shared[:, None]
    rows = sum_over_queries(
        data,
        table.reshape(*table.shape[:2], -1),
        shared.reshape(len(shared), -1),
    )
    return ClusterSums.from_clusters(source.groups.labels, rows, supports)


def sum_over_queries(data: RankedData, by_group: Array, shared: Array) -> Table:
    """Return the table of clusters: queries of one cluster are summed.

    A query that is its own cluster is weighted as a row; within a cluster the weight
    multiplies the query's sums.
    """
    weight = data.query_weight
    if data.cluster is None:
        return Table(by_group, shared, weight, data.query_labels)
    if weight is not None:
        by_group, shared = by_group * weight[:, None, None], shared * weight[:, None]
    cluster = data.cluster_of_query
    if cluster is None:
        raise ValueError("cluster must be constant within a query.")
    size = data.cluster.size
    return Table(
        sum_rows(by_group, cluster, size),
        sum_rows(shared, cluster, size),
        None,
        data.cluster.all_labels,
    )


def sum_rows(rows: Array, codes: Array, size: int) -> Array:
    """Sum the rows of equal code; every code below `size` occurs."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(size))
    return np.add.reduceat(rows[order], starts, axis=0)


def _item_sums(data: RankedData, make_source: MakeSource) -> ClusterSums:
    source = make_source(data)
    weight = data.row_weight
    rows, shared, own = _item_rows(data, source)
    # Every pair is in the rows of both its items.
    totals = _weighted_sum(rows, weight) / 2, _weighted_sum(shared, weight) / 2
    pairs = _pair_products(source, own, weight)
    order = data.ranking.order
    labels = order if data.kept is None else data.kept[order]
    if data.cluster is not None:
        rows, shared, pairs = _item_clusters(
            data, data.cluster, make_source, rows, shared, pairs
        )
        labels = data.cluster.all_labels
        weight = None if weight is None else weight[: len(rows)]
    table = Table(rows, shared, weight, labels)
    return ClusterSums.from_items(
        source.groups.labels, table, pairs, totals, _supports(source)
    )


def _weighted_sum(rows: Array, weight: Array | None) -> Array:
    """Return the sum of the rows, each times its weight."""
    total: Array = rows.sum(axis=0) if weight is None else np.tensordot(weight, rows, 1)
    return total


def _item_rows(data: RankedData, source: Source) -> tuple[Array, Array, list[Array]]:
    """Return the sums of every ranked item over the pairs it is in, either side.

    And, for pairs across groups, the products of each group's columns.
    """
    n, groups, n_buckets = data.ranking.n_rows, source.groups, source.n_buckets
    blocks = 4 if source.has_rest else source.n_columns
    bucket = source.bucket
    own: list[Array] = []
    table = np.zeros((n, len(groups), blocks, n_buckets))
    for group in range(len(groups)):
        if not source.has_rest:
            # Members are focal rows, all others partners.
            _set_rows(table[:, group, :, 0], source.focal(group))
            _set_rows(table[:, group, :, 0], source.partner(group))
            own.append(source.own_products(group, data.row_weight))
            continue
        sums = source.focal(group)
        for block, values in enumerate(source.partner(group)):
            table[:, group, block] = values
        member = groups.mask(group)
        for block, values in enumerate((sums.value, sums.count)):
            _add_to_bucket(table[:, group, block], bucket, values * member)
            _add_to_bucket(table[:, group, block + 2], bucket, values * ~member)
    shared = np.zeros((n, 0, n_buckets))
    if source.has_rest and source.shared_weight:
        shared = np.zeros((n, 2, n_buckets))
        for block, values in enumerate(source.total_partner()):
            shared[:, block] = values
        total = source.total()
        for block, values in enumerate((total.value, total.count)):
            _add_to_bucket(shared[:, block], bucket, values)
        table[:, :, 2:4] -= shared[:, None]
    return table.reshape(n, len(groups), -1), shared.reshape(n, -1), own


def _set_rows(columns: Array, sums: FocalSums) -> None:
    """Put the sums of some rows into their columns."""
    for column, values in enumerate(sums.columns):
        columns[sums.rows, column] = values


def _add_to_bucket(columns: Array, bucket: Array | None, values: Array) -> None:
    """Add a value to the column of each row's bucket."""
    if bucket is None:
        columns[:, 0] += values
    else:
        columns[np.arange(values.size), bucket] += values


def _item_clusters(
    data: RankedData,
    cluster: Codes,
    make_source: MakeSource,
    rows: Array,
    shared: Array,
    pairs: Array,
) -> tuple[Array, Array, Array]:
    """Sum the items' rows by cluster; a pair inside a cluster counts once in it."""
    codes, size = cluster.codes, cluster.size
    ranked = codes[data.ranking.order]
    inner = data.ranked_by(data.ranking.score, codes)
    source = make_source(inner)
    within, within_shared = _query_table(inner, source)
    if within_shared.shape[1]:
        within[:, :, 2:4] -= within_shared[:, None]
    weight = data.query_weight
    constant = None if weight is None else np.full(len(codes), weight[0])
    own = []
    if not source.has_rest:
        own = [source.own_products(g, constant) for g in range(len(source.groups))]
    return (
        sum_rows(rows, ranked, size) - within.reshape(size, rows.shape[1], -1),
        sum_rows(shared, ranked, size) - within_shared.reshape(size, -1),
        pairs - _pair_products(source, own, constant),
    )


def _pair_products(source: Source, own: Sequence[Array], weight: Array | None) -> Array:
    """Return Σ x xᵀ over pairs, x the columns that one pair adds to."""
    if source.has_rest:
        return _outcome_products(source, weight)
    groups = source.groups
    n_columns = source.n_columns
    products = np.zeros((len(groups), n_columns, len(groups), n_columns))
    for a in range(len(groups)):
        products[a, :, a] = own[a]
    for a, b in combinations(range(len(groups)), 2):
        block = _cross_products(source, a, b, weight)
        products[a, :, b], products[b, :, a] = block, block.T
    return products.reshape(n_columns * len(groups), -1)


def _cross_products(source: CrossPairs, a: int, b: int, weight: Array | None) -> Array:
    """Return Σ x_a x_bᵀ over the pairs that both groups count."""
    in_a, in_b = source.groups.mask(a), source.groups.mask(b)
    block = np.zeros((source.n_columns, source.n_columns))
    both = in_a & in_b
    if both.any():
        block += source.class_products(both, ~(in_a | in_b), (a, b), False, weight)
    only_a, only_b = in_a & ~in_b, in_b & ~in_a
    if only_a.any() and only_b.any():
        # The other way round for group b: its columns are the mirror image.
        seen_from_a = source.class_products(only_a, only_b, (a, b), True, weight)
        block += seen_from_a @ source.mirror.T
    return block


def _outcome_products(source: OutcomePairs, weight: Array | None) -> Array:
    """Return the products of own, rest and shared columns over outcome pairs."""
    groups, n_buckets = source.groups, source.n_buckets
    shared_weight = source.shared_weight
    n_shared = 2 if shared_weight else 0
    n_groups = len(groups)
    size = 4 * n_groups + n_shared
    products = np.zeros((size, n_buckets, size, n_buckets))
    couples = list(combinations(range(n_groups), 2)) or [(0, 0)]
    for a, b in couples:
        classes = groups.mask(a) * 2 + groups.mask(b).astype(np.int64)
        moments = source.moments(classes, weight)
        columns = np.r_[4 * a : 4 * a + 4, 4 * b : 4 * b + 4, 4 * n_groups : size]
        block = np.zeros((columns.size, columns.size, n_buckets))
        for i in range(4):
            for j in range(4):
                signs = [
                    sign
                    for bit in (1, 0)
                    for sign in _signs(source, i >> bit & 1, j >> bit & 1)
                ] + [1.0] * (n_shared // 2)
                value, square, count = (
                    part[i, :, j]
                    for part in (moments.value, moments.square, moments.count)
                )
                one = np.array([[square, value], [value, count]])
                block += np.kron(np.outer(signs, signs)[:, :, None], one)
        for bucket in range(n_buckets):
            products[np.ix_(columns, [bucket], columns, [bucket])] = block[
                :, None, :, bucket, None
            ]
    return products.reshape(size * n_buckets, -1)


def _signs(source: OutcomePairs, focal: int, partner: int) -> tuple[float, float]:
    """Return how often a pair adds to the own and to the rest columns of a group."""
    counts = source.includes(focal, partner)
    own = float(counts and focal)
    rest = float(counts and not focal) - source.shared_weight
    return own, rest
