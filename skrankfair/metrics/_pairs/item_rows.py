"""The table of sums over items: each pair is in the rows of both its items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

import numpy as np

from ..._estimates.sums import ClusterSums, Finalize, Table
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array, Codes, Groups, check_choice
from .cluster_rows import (
    MakeSource,
    Source,
    cluster_sums,
    query_table,
    sum_rows,
    supports_of,
)
from .outcome_pairs import FocalSums, OutcomePairs


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
    *,
    by_block: bool = False,
) -> ClusterSums:
    """Return the sums of a pair metric over clusters or items.

    `make_source` is called with the data, or `by_block` with some queries at a time,
    and once more with the items of one list ranked within their clusters when there are
    such. `of_query`: what to average over queries where it is not one ratio; the
    columns are then its value, whether it is defined, and the number of pairs.
    """
    variance = resolve_variance(data, variance, average)
    if variance == "cluster":
        return cluster_sums(data, make_source, average, of_query, by_block)
    return item_sums(data, make_source, by_block)


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


def item_sums(data: RankedData, make_source: MakeSource, by_block: bool) -> ClusterSums:
    """Return the sums of a pair metric over items."""
    weight = data.row_weight
    if by_block:
        source, rows, shared, pairs = _blocked_rows(data, make_source)
    else:
        source = make_source(data)
        rows, shared, own = _item_rows(data, source)
        pairs = _pair_products(source, own, weight)
    # Every pair is in the rows of both its items.
    totals = _weighted_sum(rows, weight) / 2, _weighted_sum(shared, weight) / 2
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
        source.groups.labels, table, pairs, totals, supports_of(source)
    )


def _blocked_rows(
    data: RankedData, make_source: MakeSource
) -> tuple[Source, Array, Array, Array]:
    """Return a source of the last queries, and rows and products of all of them."""
    table, pairs = np.zeros(0), np.zeros(0)
    for rows, _, part in data.blocks():
        source = make_source(part)
        if rows.start == 0:
            table = _empty_rows(data, source)
        shared, own = _fill_rows(table[rows], part, source)
        products = _pair_products(source, own, part.row_weight)
        pairs = products if rows.start == 0 else pairs + products
    flat = table.reshape(*table.shape[:2], -1)
    return source, flat, np.zeros((len(flat), *shared.shape[1:])), pairs


def _weighted_sum(rows: Array, weight: Array | None) -> Array:
    """Return the sum of the rows, each times its weight."""
    total: Array = rows.sum(axis=0) if weight is None else np.tensordot(weight, rows, 1)
    return total


def _item_rows(data: RankedData, source: Source) -> tuple[Array, Array, list[Array]]:
    """Return the sums of every ranked item over the pairs it is in, either side.

    And, for pairs across groups, the products of each group's columns.
    """
    table = _empty_rows(data, source)
    shared, own = _fill_rows(table, data, source)
    return table.reshape(*table.shape[:2], -1), shared, own


def _empty_rows(data: RankedData, source: Source) -> Array:
    """Return zeros of shape (n, G, blocks, B), each column in one piece of memory."""
    blocks = 4 if source.has_rest else source.n_columns
    shape = len(source.groups), blocks, source.n_buckets, data.ranking.n_rows
    return np.moveaxis(np.zeros(shape), -1, 0)


def _fill_rows(
    table: Array, data: RankedData, source: Source
) -> tuple[Array, list[Array]]:
    """Fill in the sums of every ranked item; return the shared ones and products."""
    n, groups, n_buckets = data.ranking.n_rows, source.groups, source.n_buckets
    bucket = source.bucket
    own: list[Array] = []
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
    return shared.reshape(n, -1), own


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
    within, within_shared = query_table(inner, source)
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
