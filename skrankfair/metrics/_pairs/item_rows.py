"""The table of sums over items: each pair is in the rows of both its items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ..._estimates.arrays import check_memory
from ..._estimates.finalize import NOTHING, ColumnSum, Finalize
from ..._estimates.group_estimates import GroupEstimates
from ..._estimates.metric import warn_undefined
from ..._estimates.rows import Rows, small_codes, sum_rows
from ..._estimates.sums import ClusterSums
from ..._estimates.two_way import TwoWaySums
from ..._inputs.columns import OneWayError
from ..._inputs.groups import Codes
from ..._inputs.ranking import RankedData
from ..._inputs.validation import (
    Array,
    check_choice,
    check_number,
    collected_warnings,
    warn_user,
)
from .cluster_rows import (
    REST,
    MakePairs,
    Pairs,
    QuerySums,
    cluster_sums,
    have_pairs,
    subtract_shared,
    sums_by_block,
    supports_of,
    times,
)

#: Items times groups of one list: 3 GB of sums of `pairwise_accuracy`.
_MOST_CELLS = 10**8
_ONE_QUERY = (
    "There is one query: leave out qid, or pass variance='item', if its items are "
    "independent."
)


def resolve_variance(data: RankedData, variance: str, average: str) -> str:
    """Return "cluster" or "item"; raise a ValueError where the data do not allow it.

    "auto" depends on which arguments are given and not on their values: the result of
    a part with one query must add up with those of parts with many.
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
        if average != "pairs":
            raise ValueError(
                f"average={average!r} needs variance='cluster': its units are "
                f"{average}."
            )
        if data.cluster is not None and (nested or (data.has_queries and not one_list)):
            raise ValueError(
                "variance='item' takes cluster= only for one list (qid=None) of "
                "several clusters; with queries use variance='cluster'."
            )
    return variance


def warn_undefined_pairs(result: GroupEstimates, data: RankedData) -> GroupEstimates:
    """Warn as `warn_undefined` does; tell how one query gets a standard error."""
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
    make_pairs: MakePairs,
    variance: str,
    average: str,
    of_query: Finalize | None = None,
    *,
    k: int | None = None,
) -> ClusterSums:
    """Return the sums of a pair metric over clusters or items.

    `make_pairs` is called with a block of queries at a time, and with the items of
    clusters as lists, where clusters have several items of a list. `of_query` is the
    value of a query to be averaged, where that is not one ratio; the columns are then
    this value, whether it is defined, and the number of pairs. With `k` only pairs with
    an item in the first k places count.
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
    if data.cluster is not None and data.item is not None:
        if variance == "item" or average != "pairs" or k is not None:
            raise OneWayError(
                "cluster must be one column with variance='item', with average="
                f"{average!r} or with k: two columns, users and items, need the sums "
                "of all pairs."
            )
        return two_way_sums(data, make_pairs, data.cluster, data.item)
    if variance == "cluster":
        sums = cluster_sums(data, make_pairs, average, of_query, k)
    else:
        sums = item_sums(data, make_pairs)
    if data.item_weight is None:
        return sums
    # The support counts pairs, whatever their items weigh.
    equal = data.with_equal_items
    plain = pair_sums(equal, make_pairs, variance, average, of_query, k=k)
    return replace(sums, unweighted=plain.unweighted or plain.totals)


def item_sums(data: RankedData, make_pairs: MakePairs) -> ClusterSums:
    """Return the sums of a pair metric over items."""
    cluster = data.cluster
    inner = None if cluster is None else _pairs_inside(data, cluster, make_pairs)
    supports, rows, shared, unweighted = _item_rows(data, make_pairs, cluster)
    # Every pair is in the rows of both its items.
    half = np.full(len(rows), 0.5)
    totals = np.tensordot(half, rows, 1), half @ shared
    table = _item_table(data, cluster, inner, (rows, shared), totals[0])
    table = replace(table, unweighted=unweighted)
    return ClusterSums.from_rows(data.groups.labels, table, supports, totals)


def two_way_sums(
    data: RankedData, make_pairs: MakePairs, cluster: Codes, item: Codes
) -> ClusterSums:
    """Return the sums of a pair metric over users, and over items that recur."""
    # An item that a list has twice recurs with its user too.
    crossed = cluster.crossed(item)
    inner = _pairs_inside(data, crossed, make_pairs)
    supports, rows, shared, unweighted = _item_rows(data, make_pairs, crossed)
    sums = rows, shared
    # Both items of a pair are of one user.
    user, of_item = small_codes(*divmod(crossed.labels, item.size))
    by_user, of_users = (sum_rows(part, user, cluster.size) / 2 for part in sums)
    by_item = [sum_rows(part, of_item, item.size) for part in sums]
    del user, of_item
    table = Rows.of_all(by_user, of_users, cluster.labels)
    table = replace(table, unweighted=unweighted)
    users = ClusterSums.from_rows(data.groups.labels, table, supports)
    ways = []
    for codes, parts in ((item, by_item), (crossed, sums)):
        table = _item_table(data, codes, inner, parts, users.by_group)
        ways.append(ClusterSums.from_rows(users.groups, table, supports, users.totals))
    return TwoWaySums.of_ways(users, *ways)


def _pairs_inside(
    data: RankedData, cluster: Codes, make_pairs: MakePairs
) -> tuple[RankedData, QuerySums] | None:
    """Return the items of each cluster of each list as lists, and their sums.

    It is None if no list has two items of one cluster. Lists have negative weights: the
    sums are subtracted.
    """
    ranking, weight = data.ranking, data.query_weight
    code = cluster.codes[ranking.order]
    key = ranking.query * np.int64(cluster.size) + code
    several = np.flatnonzero(np.bincount(code)[code] > 1)
    several = several[pd.Series(key[several]).duplicated(keep=False)]
    if not several.size:
        return None
    inner = data.split_by(key, several)
    query = np.unique(key[several]) // cluster.size
    weight = -(np.ones(query.size) if weight is None else weight[query])
    inner = replace(inner, query_weight=weight, item=None)
    sums, pairs = sums_by_block(inner, make_pairs, None)
    subtract_shared(sums, pairs)
    return inner, sums


def _item_table(
    data: RankedData,
    cluster: Codes | None,
    inner: tuple[RankedData, QuerySums] | None,
    sums: Sequence[Array],
    total: Array,
) -> Rows:
    """Return the table of the sums of ranked items, or of clusters of them.

    `sums` are those of each of them by group (n, G, C) and shared (n, D), and `total`
    the column totals by group over the pairs. A pair inside a cluster counts once in
    it. Where no cluster has two items of a list, as when several models have scored
    each item, a cluster is an item and a member of its groups.
    """
    (rows, shared), member = sums, None
    if inner is None:
        member = _members(data, cluster, len(rows))
    else:
        lists, inside = inner
        cells, weight = inside.cells, np.asarray(lists.query_weight)
        unit = replace(lists, cluster=cluster).clusters_of_queries()
        cell = unit[cells.query] * len(data.groups) + cells.group
        table = rows.reshape(-1, rows.shape[2])
        _add_rows(inside.by_cell, cell, table, weight[cells.query])
        _add_rows(inside.shared, unit, shared, weight)
    # A row that is in all pairs leaves exactly 0 when it is left out, no rounding.
    all_of_it = np.abs(rows - total) <= NOTHING * np.abs(total)
    rows = np.where(all_of_it, total, rows)
    labels = data.kept if cluster is None else cluster.labels
    everywhere = Rows.of_all(rows, shared, labels, member)
    # A table of which half the numbers are 0 takes half as long with its zeros.
    if np.count_nonzero(rows) > rows.size / 4:
        return everywhere
    # To leave out an item that is in no pairs changes nothing.
    filled, of_all = (np.logical_or.reduce(x, axis=-1) for x in (rows, shared))
    if member is not None:
        filled[of_all] |= member[of_all]
    return everywhere.only(np.flatnonzero(filled))


def _members(data: RankedData, cluster: Codes | None, size: int) -> Array:
    """Return whether each item, or cluster of them, is of each group, shape (n, G).

    The items of a group and all others are two samples; clusters may have both.
    """
    (unit, _), (row, group) = data.units(cluster), data.groups.memberships()
    member = np.zeros((size, len(data.groups)), dtype=bool)
    member.ravel()[unit[row] * len(data.groups) + group] = True
    return member


def _item_rows(
    data: RankedData, make_pairs: MakePairs, cluster: Codes | None
) -> tuple[list[ColumnSum], Array, Array, tuple[Array, Array] | None]:
    """Return the supports of the pairs, and the sums of ranked items, or of clusters.

    The sums are over the pairs that the item is in, on either side: by group (n, G, C)
    and shared (n, D). With weights of queries the last result are the totals without
    these weights, else None.
    """
    (unit, labels), table = data.units(cluster), np.zeros(0)
    for rows, block in data.blocks():
        pairs, plain, weight = make_pairs(block), None, block.row_weight
        if data.item_weight is not None:
            plain = make_pairs(block.with_equal_items)
        of_all = pairs.shared_item_sums()
        if not table.size:
            table = _empty_rows(labels.size, pairs)
            shared = np.zeros((labels.size, of_all[0].size))
            unweighted = np.zeros(table.shape[1:]), np.zeros(shared.shape[1])
        unweighted[1][:] += of_all.sum(axis=0).ravel() / 2
        _add_rows(of_all, unit[rows], shared, weight)
        del of_all  # before the sums of groups
        for group in range(len(pairs.groups)):
            sums = np.moveaxis(pairs.item_sums(group), -1, 0)
            if plain is not None:
                exact = np.moveaxis(plain.item_sums(group), -1, 0)
                sums = sums * have_pairs(exact, pairs.n_columns)
            if pairs.has_shared:  # here, where both are column by column in memory
                sums[:, REST] -= pairs.shared_item_sums()
            unweighted[0][group] += sums.sum(axis=0).ravel() / 2
            _add_rows(sums, unit[rows], table[:, group], weight)
            del sums  # before those of the next group
    supports = supports_of(pairs.n_buckets, pairs.n_sides, pairs.has_shared)
    return supports, table, shared, None if weight is None else unweighted


def _add_rows(sums: Array, unit: Array, to: Array, weight: Array | None) -> None:
    """Add the weighted sums of rows, (n, ...), by unit to others, (size, C)."""
    columns = (part.reshape(len(part), -1).T for part in (to, sums))
    for total, column in zip(*columns, strict=True):
        np.add.at(total, unit, times(column, weight))


def _empty_rows(n_items: int, pairs: Pairs) -> Array:
    """Return zeros for the sums of items, shape (n, G, C)."""
    n_groups = len(pairs.groups)
    shape = n_items, n_groups, pairs.n_blocks * pairs.n_buckets
    if n_groups * n_items > _MOST_CELLS:
        raise ValueError(
            f"variance='item' needs a number for each item and group, at most "
            f"{_MOST_CELLS:,}; got {n_items:,} items x {n_groups:,} groups. Pass qid= "
            "to compare items within queries, cluster= and variance='cluster', or "
            "measure fewer groups at once."
        )
    check_memory(
        8.0 * math.prod(shape),
        f"The pairs of each of {n_items} items of one list with {n_groups} groups",
        "pass qid= to compare items within queries, or measure fewer groups at once.",
    )
    return np.zeros(shape)
