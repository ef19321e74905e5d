"""From pairs to the table of sums: one driver for every metric over pairs.

Columns of a group, each of them once a bucket: value and number of its pairs; for
metrics that compare a group with the rest also value and number of the rest's pairs,
less the shared totals where the rest is "all the others" (so that a part of the data
that lacks the group adds nothing to the group's columns); and the number of pairs again
where the average is over queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ..._estimates.finalize import ColumnSum
from ..._estimates.sums import ClusterSums
from ..._estimates.table import Finalize, Table
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array, check_choice
from .sources import REST, ColumnLayout, FocalSums, Source

MakeSource = Callable[[RankedData], Source]


def support_columns(average: str, n_columns: int, n_buckets: int = 1) -> ColumnSum:
    """Return the columns with the number of pairs, of a group with so many blocks."""
    check_choice(average, "average", ("pairs", "queries"))
    block = 1 if average == "pairs" else n_columns
    return ColumnSum(block * n_buckets, (block + 1) * n_buckets)


def supports_of(layout: ColumnLayout) -> list[ColumnSum]:
    """Return the denominators: of a group, of the rest if there is one, of strata."""
    size = layout.n_buckets
    supports = [ColumnSum(size, 2 * size)]
    if layout.n_sides == 2:
        shared = slice(size, 2 * size) if layout.shared_weight else None
        supports.append(ColumnSum(3 * size, 4 * size, shared))
        if size > 1:
            supports += [
                ColumnSum(size + bucket, size + bucket + 1) for bucket in range(size)
            ]
    return supports


def _sums_by_query(
    data: RankedData, source: Source, sums: FocalSums, n_sides: int
) -> Iterator[Array]:
    """Yield the sums of each column by query, side and bucket."""
    rows = slice(None) if sums.rows is None else sums.rows
    shape = data.ranking.n_queries, n_sides, source.layout.n_buckets
    key = data.ranking.query[rows]
    if n_sides == 2 and sums.of_rest is not None:
        key = key * np.int64(2)
        key += sums.of_rest
    if source.bucket is not None:
        key = key * np.int64(shape[2]) + source.bucket[rows]
    for column in sums.columns:
        totals = np.bincount(key, weights=column, minlength=math.prod(shape))
        yield totals.reshape(shape)


def query_table(data: RankedData, source: Source) -> tuple[Array, Array]:
    """Return (Q, G, blocks, B) sums by query and group, and the shared (Q, 2, B)."""
    groups, layout, n_queries = source.groups, source.layout, data.ranking.n_queries
    sides = (layout.n_sides, layout.n_columns, layout.n_buckets)
    table = np.zeros((n_queries, len(groups), *sides))
    mirrored = layout.n_sides == 2 and not groups.overlapping and len(groups) == 2
    for group in range(1 if mirrored else len(groups)):
        for sums in source.parts(group):
            totals = _sums_by_query(data, source, sums, layout.n_sides)
            for column, total in enumerate(totals):
                table[:, group, :, column] += total
    if mirrored:
        # With two groups the rest of one is the other.
        table[:, 1] = table[:, 0, ::-1]
    shared = np.zeros((n_queries, 0, layout.n_buckets))
    if layout.shared_weight:
        totals = _sums_by_query(data, source, source.total(), 1)
        shared = np.concatenate(list(totals), axis=1)
    return table.reshape(*table.shape[:2], -1, layout.n_buckets), shared


def subtract_shared(table: Array, shared: Array) -> None:
    """Take the shared sums off those of the rest, in place."""
    if shared.shape[1]:
        table[:, :, REST] -= shared[:, None]


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
    supports = supports_of(source.layout)
    if average == "queries" and of_query is not None:
        n_queries, n_groups = table.shape[:2]
        value = of_query(table.reshape(n_queries, n_groups, -1), shared)
        pairs = table[:, :, 1].sum(-1)
        table = np.stack([np.nan_to_num(value), ~np.isnan(value), pairs], axis=2)
        supports = [ColumnSum(1, 2)]
    elif average == "queries":
        pairs = table[:, :, 1:2].copy()
        _query_means(table, source.layout.n_columns)
        _query_means(shared, 2)
        table = np.concatenate([table, pairs], axis=2)
    subtract_shared(table, shared)
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
