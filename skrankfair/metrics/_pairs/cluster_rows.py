"""From pairs to the table of sums: one driver for every metric over pairs.

Columns of a group, each of them once a bucket: value and number of its pairs; for
metrics that compare a group with the rest also value and number of the rest's pairs,
less the shared totals where the rest is "all the others" (so that a part of the data
that lacks the group adds nothing to the group's columns); and the number of pairs again
where the average is over queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._estimates.finalize import ColumnSum
from ..._estimates.sums import ClusterSums, Finalize, Table
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array, check_choice
from .outcome_pairs import FocalSums

Source = Any  # OutcomePairs | CrossPairs
MakeSource = Callable[[RankedData], Source]


def support_columns(average: str, n_columns: int, n_buckets: int = 1) -> ColumnSum:
    """Return the columns with the number of pairs, of a group with so many blocks."""
    check_choice(average, "average", ("pairs", "queries"))
    block = 1 if average == "pairs" else n_columns
    return ColumnSum(block * n_buckets, (block + 1) * n_buckets)


def supports_of(source: Source) -> list[ColumnSum]:
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


def _sums_by(key: Array, size: int, sums: FocalSums) -> Iterator[Array]:
    """Yield the sums of each column by key."""
    for part in sums.columns:
        yield np.bincount(key, weights=part, minlength=size)


def query_table(data: RankedData, source: Source) -> tuple[Array, Array]:
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


def _blocked_table(
    data: RankedData, make_source: MakeSource
) -> tuple[Source, Array, Array]:
    """Return a source of the last queries, and the table of all, block by block."""
    table = np.zeros(0)
    for _, queries, part in data.blocks():
        source = make_source(part)
        rows, shared = query_table(part, source)
        if queries.start == 0:
            table = np.zeros((data.ranking.n_queries, *rows.shape[1:]))
        table[queries] = rows
    return source, table, np.zeros((len(table), *shared.shape[1:]))


def cluster_sums(
    data: RankedData,
    make_source: MakeSource,
    average: str,
    of_query: Finalize | None,
    by_block: bool,
) -> ClusterSums:
    """Return the sums of a pair metric over clusters."""
    if by_block:
        source, table, shared = _blocked_table(data, make_source)
    else:
        source = make_source(data)
        table, shared = query_table(data, source)
    supports = supports_of(source)
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
