"""The table of sums over items: each pair is in the rows of both its items."""

from __future__ import annotations

import math

import numpy as np

from ..._estimates.allocation import check_memory
from ..._estimates.finalize import NOTHING
from ..._estimates.group_estimates import GroupEstimates
from ..._estimates.metric import collected_warnings, warn_undefined, warn_user
from ..._estimates.sums import ClusterSums
from ..._estimates.table import Finalize, Table
from ..._inputs import cells as limits
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array, Codes, Groups, check_choice, check_number
from .cluster_rows import (
    MakeSource,
    cluster_sums,
    pairs_there,
    query_table,
    sum_rows,
    supports_of,
)
from .listed_items import ListedItems
from .sources import REST, Source

_ONE_QUERY = (
    "There is one query: leave out qid, or pass variance='item', if its items are "
    "independent."
)


def resolve_variance(data: RankedData, variance: str, average: str) -> str:
    """Return "cluster" or "item", and refuse what cannot be done.

    "auto" depends on what is given and not on what is in it: a part with one query
    must add up with parts of many.
    """
    check_choice(variance, "variance", ("auto", "cluster", "item"))
    nested = data.cluster_of_query is not None
    one_list = data.ranking.n_queries == 1
    if variance == "auto":
        one_table = not data.has_queries and (data.cluster is None or not nested)
        variance = "item" if one_table and average == "pairs" else "cluster"
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


def warn_undefined_pairs(result: GroupEstimates, data: RankedData) -> GroupEstimates:
    """Warn as `warn_undefined`, and say what gives one query a standard error."""
    with collected_warnings() as said:
        warn_undefined(result)
    alone = data.has_queries and data.ranking.n_queries == 1 and data.cluster is None
    by_items = result.parameters["average"] == "pairs" and (
        "position_weight" not in result.parameters
    )
    for category, message in said:
        helps = alone and by_items and "standard error" in message
        warn_user(f"{message} {_ONE_QUERY}" if helps else message, category)
    return result


def pair_sums(
    data: RankedData,
    make_source: MakeSource,
    variance: str,
    average: str,
    of_query: Finalize | None = None,
    *,
    by_block: bool = True,
    k: int | None = None,
) -> ClusterSums:
    """Return the sums of a pair metric over clusters or items.

    `make_source` is called with some queries at a time; with the data, where the rows
    are items and not made `by_block`; and once more with the items of one list ranked
    within their clusters when there are such. `of_query`: what to average over queries
    where it is not one ratio; the columns are then its value, whether it is defined,
    and the number of pairs. `k`: only pairs with an item in the first k places.
    """
    if k is not None:
        check_number(k, "k", 1, np.inf, integer=True)
        if variance == "item":
            raise ValueError(
                "k needs variance='cluster': which items of one list have the first "
                "places depends on all of them."
            )
        variance = "cluster" if variance == "auto" else variance
    variance = resolve_variance(data, variance, average)
    if variance == "cluster":
        return cluster_sums(data, make_source, average, of_query, k)
    return item_sums(data, make_source, by_block)


def item_sums(data: RankedData, make_source: MakeSource, by_block: bool) -> ClusterSums:
    """Return the sums of a pair metric over items."""
    listed = _listed(data, make_source)
    if listed is not None:
        return listed.sums()
    weight = data.row_weight
    if by_block:
        source, rows, shared, pairs = _blocked_rows(data, make_source)
    else:
        source = make_source(data)
        rows, shared, own = _item_rows(data, source, make_source)
        pairs = source.products(weight, own)
    # Every pair is in the rows of both its items.
    totals = _weighted_sum(rows, weight) / 2, _weighted_sum(shared, weight) / 2
    order = data.ranking.order
    labels = order if data.kept is None else data.kept[order]
    # Of all rows, where the source may be of the last ones.
    member: Array | None = _members(data.groups)
    if data.cluster is not None:
        rows, shared, pairs = _item_clusters(
            data, data.cluster, make_source, rows, shared, pairs
        )
        labels = data.cluster.all_labels
        weight = None if weight is None else weight[: len(rows)]
        member = None
    if data.item_weight is not None:
        # A row that is in all pairs leaves nothing, and not what rounding leaves.
        all_of_it = np.abs(rows - totals[0]) <= NOTHING * np.abs(totals[0])
        np.copyto(rows, totals[0], where=all_of_it)
    table = Table(rows, shared, weight, labels, member)
    return ClusterSums.from_items(
        source.groups.labels, table, pairs, totals, supports_of(source.layout)
    )


def _listed(data: RankedData, make_source: MakeSource) -> ListedItems | None:
    """Return the items of one list with many groups, if those of a gap are alike."""
    many = len(data.groups) > limits.FEW_GROUPS
    if not many or data.ranking.n_queries > 1 or data.cluster is not None:
        return None
    return ListedItems.of(data, make_source(data))


def _members(groups: Groups) -> Array:
    """Return which group each item is of, shape (n, G).

    The items of a group and all others are two samples; clusters may have both.
    """
    return np.stack([groups.mask(group) for group in range(len(groups))]).T


def item_table(data: RankedData, source: Source) -> Table:
    """Return all groups of each item of one list without weights."""
    rows, shared, _ = _item_rows(data, source, lambda data: source)
    order = data.ranking.order
    labels = order if data.kept is None else data.kept[order]
    return Table(rows, shared, None, labels, _members(source.groups))


def _blocked_rows(
    data: RankedData, make_source: MakeSource
) -> tuple[Source, Array, Array, Array]:
    """Return a source of the last queries, and rows and products of all of them."""
    table, pairs = np.zeros(0), np.zeros(0)
    for rows, _, part in data.blocks():
        source = make_source(part)
        if rows.start == 0:
            table = _empty_rows(data, source)
        shared, own = _fill_rows(table[rows], part, source, make_source)
        products = source.products(part.row_weight, own)
        pairs = products if rows.start == 0 else pairs + products
    flat = table.reshape(*table.shape[:2], -1)
    return source, flat, np.zeros((len(flat), *shared.shape[1:])), pairs


def _weighted_sum(rows: Array, weight: Array | None) -> Array:
    """Return the sum of the rows, each times its weight."""
    total: Array = rows.sum(axis=0) if weight is None else np.tensordot(weight, rows, 1)
    return total


def _item_rows(
    data: RankedData, source: Source, make_source: MakeSource
) -> tuple[Array, Array, list[Array]]:
    """Return the sums of every ranked item over the pairs it is in, either side.

    And, for pairs across groups, the products of each group's columns.
    """
    table = _empty_rows(data, source)
    shared, own = _fill_rows(table, data, source, make_source)
    return table.reshape(*table.shape[:2], -1), shared, own


def _empty_rows(data: RankedData, source: Source) -> Array:
    """Return zeros of shape (n, G, blocks, B), each column in one piece of memory."""
    layout = source.layout
    shape = len(source.groups), layout.n_blocks, layout.n_buckets, data.ranking.n_rows
    check_memory(
        8.0 * math.prod(shape),
        f"The pairs of each of {shape[-1]} items of one list with {shape[0]} groups",
        "pass qid= to compare items within queries, or measure fewer groups at once.",
    )
    return np.moveaxis(np.zeros(shape), -1, 0)


def _fill_rows(
    table: Array, data: RankedData, source: Source, make_source: MakeSource
) -> tuple[Array, list[Array]]:
    """Fill in the sums of every ranked item; return the shared ones and products."""
    weight, plain = data.row_weight, None
    if data.item_weight is not None:
        plain = make_source(data.with_equal_items)
    own = []
    for group in range(len(source.groups)):
        columns = table[:, group]
        own.append(source.fill(columns, group, weight))
        if plain is not None:
            exact = np.zeros(columns.shape)
            plain.fill(exact, group, None)
            columns *= pairs_there(exact, source.layout.n_columns)
    shared = source.shared_rows()
    _subtract_shared(table, shared)
    return shared.reshape(len(shared), -1), own


def _subtract_shared(table: Array, shared: Array) -> None:
    """Take the shared sums off those of the rest, in place."""
    if shared.shape[1]:
        table[:, :, REST] -= shared[:, None]


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
    if data.item_weight is not None:
        plain = inner.with_equal_items
        exact, _ = query_table(plain, make_source(plain))
        within *= pairs_there(exact, source.layout.n_columns)
    _subtract_shared(within, within_shared)
    weight = data.query_weight
    constant = None if weight is None else np.full(len(codes), weight[0])
    return (
        sum_rows(rows, ranked, size) - within.reshape(size, rows.shape[1], -1),
        sum_rows(shared, ranked, size) - within_shared.reshape(size, -1),
        pairs - source.products(constant),
    )
