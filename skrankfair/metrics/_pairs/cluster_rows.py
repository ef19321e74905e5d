"""The pairs of a metric, `Pairs`, and the table of their sums over clusters.

A group has these columns, each once per bucket:

- value and number of its pairs;
- for metrics that compare a group with the rest, value and number of the rest's pairs.
  Where the rest is all other rows, these are the sums minus the shared totals, so that
  a part of the data that lacks the group adds nothing to its columns;
- where the average is over queries or clusters, the number of pairs again.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._estimates.finalize import ColumnSum, Finalize, quotient
from ..._estimates.group_estimates import GroupEstimates
from ..._estimates.metric import Metric, warn_undefined
from ..._estimates.rows import Rows, sum_rows
from ..._estimates.sums import ClusterSums
from ..._estimates.two_way import TwoWaySums
from ..._inputs.columns import check_one_way
from ..._inputs.groups import Codes, Groups
from ..._inputs.ranking import Cells, Memberships, Places, RankedData, Ranking
from ..._inputs.validation import Array, check_choice

#: The columns of the pairs of the rest, value and number.
REST = slice(2, 4)


def count_dtype(n: int) -> type:
    """Return the smallest integer type that counts pairs of n rows without overflow."""
    return np.int32 if n < 2**30 else np.int64


def bounds_around(places: Places) -> tuple[Array, ...]:
    """Return the bounds of rows above, tied with and below each row, 4 (n,).

    A row is tied with itself.
    """
    start, end = places.starts[:-1][places.query], places.starts[1:][places.query]
    return start, *places.tie_bounds(), end


def cumulated(values: Array) -> Array:
    """Return the sums of the values before each row, and of all, shape (..., n + 1)."""
    n = values.shape[-1]
    dtype: type = count_dtype(n) if values.dtype == bool else float
    before = np.zeros((*values.shape[:-1], n + 1), dtype)
    np.cumsum(values, axis=-1, out=before[..., 1:])
    return before


def sums_between(values: Array | None, *bounds: Array) -> list[Array]:
    """Return the sums of values over rows from each bound to the next, (..., k).

    `values` are columns of rows, (..., n); None counts rows.
    """
    if values is not None:
        before = cumulated(values)
        bounds = tuple(before.take(bound, axis=-1) for bound in bounds)
    return [high - low for low, high in itertools.pairwise(bounds)]


def times(values: Array, item_weight: Array | None) -> Array:
    """Return the values with the weights of their rows."""
    return values if item_weight is None else values * item_weight


class Pairs(ABC):
    """The ordered pairs (i, j) of one metric, the focal item i and its partner j.

    Each pair adds to `n_columns` columns, in one of `n_buckets` buckets (such as of
    engagement): its value, its number, and more. With two sides the pairs of the rest
    have columns of their own, which follow those of the group. Sums are computed
    without a list of the pairs.

    Attributes
    ----------
    ranking : Ranking
    groups : Groups
        The groups of the rows in ranked order.
    """

    ranking: Ranking
    groups: Groups
    n_columns: int = 2
    n_buckets: int = 1
    n_sides: int = 1

    @property
    def has_shared(self) -> bool:
        """Whether sums of all pairs are shared columns, part of those of the rest."""
        return False

    @property
    def counts_of_rows(self) -> Array:
        """Numbers of pairs of rows, as focal rows and as partners, shape (2, n)."""
        raise NotImplementedError("Only pairs that a cut may leave out have this.")

    @property
    def n_blocks(self) -> int:
        """The number of columns of a bucket."""
        return self.n_columns * self.n_sides

    def sums(self, members: Memberships) -> QuerySums:
        """Return the sums by query and group, (E, n_blocks, B), and shared ones."""
        return QuerySums(members.cells, self.cell_sums(members), self.query_sums())

    @abstractmethod
    def cell_sums(self, members: Memberships) -> Array:
        """Return the sums over the pairs of all cells, shape (E, n_blocks, B)."""

    @abstractmethod
    def item_sums(self, group: int) -> Array:
        """Return each item's sums over the group's pairs, shape (n_blocks, B, n).

        A pair is in the sums of both its items.
        """

    def query_sums(self) -> Array:
        """Return the shared sums by query, shape (Q, 2, B), or (Q, 0, B) if none."""
        return np.zeros((self.ranking.n_queries, 0, self.n_buckets))

    def shared_item_sums(self) -> Array:
        """Return the shared sums of each item, shape (n, 2, B), or (n, 0, B)."""
        return np.zeros((self.ranking.n_rows, 0, self.n_buckets))


MakePairs = Callable[[RankedData], Pairs]


@dataclass(frozen=True)
class QuerySums:
    """Sums by query and group, before queries are summed to clusters.

    Attributes
    ----------
    cells : Cells
        The E pairs of a query and a group that have sums; all others have sums of 0.
    by_cell : ndarray of shape (E, ...)
        Sums of each cell.
    shared : ndarray of shape (Q, ...)
        Sums of each query over all groups.
    """

    cells: Cells
    by_cell: Array
    shared: Array

    @classmethod
    def of_all(cls, by_group: Array) -> QuerySums:
        """Return sums of every query and group, (Q, G, ...), without shared ones."""
        cells = Cells.of_all(*by_group.shape[:2])
        return cls.of_cells(cells, by_group.reshape(-1, *by_group.shape[2:]))

    @classmethod
    def of_cells(cls, cells: Cells, by_cell: Array) -> QuerySums:
        """Return sums by cell without shared ones."""
        return cls(cells, by_cell, np.zeros((cells.n_queries, 0)))

    @classmethod
    def joined(cls, parts: Iterable[QuerySums]) -> QuerySums:
        """Return the sums of queries that follow each other.

        One array grows by each part, so that all parts are not in memory twice.
        """
        cells, shared, by_cell = list[Cells](), list[Array](), np.zeros(0)
        for part in parts:
            cells.append(part.cells)
            shared.append(part.shared)
            start, shape = by_cell.size, (-1, *part.by_cell.shape[1:])
            by_cell.resize(start + part.by_cell.size, refcheck=False)
            by_cell[start:] = part.by_cell.ravel()
        return cls(Cells.joined(cells), by_cell.reshape(shape), np.concatenate(shared))


def support_columns(average: str, n_columns: int, n_buckets: int = 1) -> ColumnSum:
    """Return the columns of a group that hold its numbers of pairs."""
    check_choice(average, "average", ("pairs", "queries", "clusters"))
    block = 1 if average == "pairs" else n_columns
    return ColumnSum(block * n_buckets, (block + 1) * n_buckets)


def supports_of(size: int, n_sides: int, has_shared: bool) -> list[ColumnSum]:
    """Return the supports: the numbers of pairs that estimates are divided by.

    They are that of the group, that of the rest if there are two sides, and where there
    is more than one bucket, those of each bucket of the group and then of the rest.
    """
    parts = [(0, size)]
    if size > 1:
        parts += [(bucket, bucket + 1) for bucket in range(size)]
    own = [ColumnSum(size + start, size + stop) for start, stop in parts]
    if n_sides == 1:
        return own
    rest = []
    for start, stop in parts:
        shared = slice(size + start, size + stop) if has_shared else None
        rest.append(ColumnSum(3 * size + start, 3 * size + stop, shared))
    return [own[0], rest[0], *own[1:], *rest[1:]]


def subtract_shared(sums: QuerySums, pairs: Pairs) -> None:
    """Subtract the shared sums from those of the rest, in place."""
    if pairs.has_shared:
        sums.by_cell[:, REST] -= sums.shared.take(sums.cells.query, axis=0)


def means_of_units(table: Array, n_columns: int) -> None:
    """Divide each set of columns by its number of pairs, in place.

    All units with a pair then count alike: their number of pairs becomes 1, else it
    is 0.
    """
    for first in range(0, table.shape[-2], n_columns):
        columns = table[..., first : first + n_columns, :]
        count = columns[..., 1:2, :].copy()
        has_pair = count > 0
        np.divide(columns, count, out=columns, where=has_pair)
        columns *= has_pair


def _means_of_pairs(
    sums: QuerySums, of_query: Finalize | None, pairs: Pairs
) -> QuerySums:
    """Return the value of each unit in place of its sums, and its number of pairs."""
    cells, shared = sums.cells, sums.shared
    table = sums.by_cell[:, : pairs.n_blocks]  # without what is due
    if of_query is None:
        count = table[:, 1:2].copy()
        means_of_units(table, pairs.n_columns)
        if pairs.has_shared:
            means_of_units(shared, 2)
        means = QuerySums(cells, np.concatenate([table, count], axis=1), shared)
        subtract_shared(means, pairs)
        return means
    # A third column holds another value, divided by the same number of pairs.
    values = [table] if pairs.n_columns != 3 else [table[:, :2], table[:, 2:0:-1]]
    value, *other = (
        of_query(_flat(one)[:, None], _flat(shared)[cells.query])[:, 0]
        for one in values
    )
    columns = np.nan_to_num(value), ~np.isnan(value), *map(np.nan_to_num, other)
    table = np.stack([*columns, table[:, 1].sum(-1)], axis=1)
    return QuerySums(cells, table[..., None], shared)


def sums_by_block(
    data: RankedData, make_pairs: MakePairs, k: int | None
) -> tuple[QuerySums, Pairs]:
    """Return the sums of all blocks of queries, and pairs.

    The pairs are those of the last block: they say how many columns, buckets and sides
    there are, which is the same in all blocks.
    """
    last: list[Pairs] = []

    def sums_of(block: RankedData) -> QuerySums:
        pairs, sums = _sums_of_block(block, make_pairs, k)
        last[:] = [pairs]
        return sums

    return QuerySums.joined(sums_of(block) for _, block in data.blocks()), last[0]


def _sums_of_block(
    block: RankedData, make_pairs: MakePairs, k: int | None
) -> tuple[Pairs, QuerySums]:
    """Return the pairs of a block of queries, and their sums."""
    chance = np.ones(1) if k is None else block.ranking.chance_of_top(k)
    pairs, sums, number = _sums_of_top(block, make_pairs, chance)
    if block.item_weight is not None or ((chance > 0) & (chance < 1)).any():
        # Pairs that have no chance to be in the first places never count.
        some_chance = (chance > 0).astype(float)
        _, exact, _ = _sums_of_top(block.with_equal_items, make_pairs, some_chance)
        sums.by_cell[...] *= have_pairs(exact.by_cell, pairs.n_columns)
        sums.shared[...] *= have_pairs(exact.shared, 2)
    if k is not None and pairs.n_buckets == 1:
        due = _due(block, pairs, number, chance)
        sums = replace(sums, by_cell=np.concatenate([sums.by_cell, due], axis=1))
    return pairs, sums


def _due(block: RankedData, pairs: Pairs, number: Array, chance: Array) -> Array:
    """Return the pairs that the first places make count, if fair, (E, 4 n_sides, 1).

    As large a share of the pairs of a side as of all pairs of the list has its focal
    item there, and as large a share its partner. Each side, the group and then the
    rest, has for focal items and for partners the number of these pairs, and how many
    one item brings. Focal items are of the side, and partners outside of it. `number`
    are the pairs of each side, (E, n_sides, 1).
    """
    members, counts = block.memberships, pairs.counts_of_rows
    columns = np.stack([counts * chance, counts, counts > 0])
    of_lists = np.add.reduceat(columns, block.ranking.starts[:-1], axis=2)
    in_top, every, items = of_lists[..., members.cells.query]
    focal, partner = members.sums_of_rows(columns[2])
    of_sides = np.array([[focal, items[0] - focal], [items[1] - partner, partner]]).T
    due = number * np.nan_to_num(quotient(in_top, every)).T[:, None]
    brought = np.nan_to_num(quotient(0 * due + number, of_sides[:, : pairs.n_sides]))
    return np.stack([due, brought], axis=3).reshape(len(due), 4 * pairs.n_sides, 1)


def _sums_of_top(
    block: RankedData, make_pairs: MakePairs, chance: Array
) -> tuple[Pairs, QuerySums, Array]:
    """Return the pairs, sums over those with an item in the first places, and numbers.

    The numbers are of all pairs of each side, shape (E, n_sides, B).

    `chance` is the probability of each item to be in the first places, or one of all of
    them. Two items of different scores are both below with the product of their
    (1 - chance). Two items of one tied block of m items, for which t places are left,
    are both below with probability ``(m - t)(m - t - 1) / (m (m - 1))``. That is less
    than the product by ``(1 - chance) t / (m (m - 1))``, which is added again.
    """
    pairs = make_pairs(block)
    sums, tied = pairs.sums(block.memberships), chance * (1 - chance)
    number = sums.by_cell[:, 1 :: pairs.n_columns].copy()
    if tied.any():
        first, last = block.ranking.place_bounds()
        tied = np.sqrt(tied / np.maximum(last - first - 1, 1))
    for sign, factor in ((-1.0, 1 - chance), (1.0, tied)):
        if factor.any():
            added = make_pairs(block.times_items(factor)).sums(block.memberships)
            sums.by_cell[...] += sign * added.by_cell
            sums.shared[...] += sign * added.shared
    return pairs, sums, number


def have_pairs(exact: Array, n_columns: int) -> Array:
    """Return whether sums have a pair, shape (..., blocks, B), from unweighted sums.

    The numbers of pairs in unweighted sums are exact. In weighted sums rounding can
    leave a remnant where there is no pair, which would be taken for data. Of a placebo
    the second column is a distance: where it is 0, all pairs are tied and add nothing.
    """
    return np.repeat(exact[..., 1::n_columns, :] != 0, n_columns, axis=-2)


def cluster_sums(
    data: RankedData,
    make_pairs: MakePairs,
    average: str,
    of_query: Finalize | None,
    k: int | None,
) -> ClusterSums:
    """Return the sums of a pair metric over clusters."""
    sums, pairs = sums_by_block(data, make_pairs, k)
    supports = supports_of(pairs.n_buckets, pairs.n_sides, pairs.has_shared)
    if average == "pairs":
        subtract_shared(sums, pairs)
    elif of_query is not None:
        supports = [ColumnSum(1, 2)]
    rows = averaged_rows(
        data, sums, average, lambda units: _means_of_pairs(units, of_query, pairs)
    )
    if average == "pairs":
        # Of a cluster all items may be in the first places, or none: see `_due`.
        due = rows.values[:, pairs.n_blocks * pairs.n_buckets :]
        due[:, 1::2] *= due[:, ::2]
    return ClusterSums.from_rows(pairs.groups.labels, rows, supports)


def _flat(rows: Array) -> Array:
    """Return the array with all axes after the first joined to one."""
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


def sum_over_queries(data: RankedData, sums: QuerySums) -> Rows:
    """Return the table of clusters: queries of one cluster are summed.

    The weight of a query multiplies its sums.
    """
    cells, weight, unweighted = sums.cells, data.query_weight, None
    by_cell, shared = _flat(sums.by_cell), _flat(sums.shared)
    query, size, labels = cells.query, cells.n_queries, data.query_labels
    if weight is not None:
        number = np.zeros((cells.n_groups, by_cell.shape[1]))
        np.add.at(number, cells.group, by_cell)
        unweighted = number, shared.sum(axis=0)
        by_cell, shared = by_cell * weight[query, None], shared * weight[:, None]
    check_one_way(data.item)
    if data.cluster is not None:
        cluster = data.clusters_of_queries()
        size, labels = data.cluster.size, data.cluster.labels
        shared, query = sum_rows(shared, cluster, size), cluster[query]
    return Rows(
        query,
        cells.group,
        by_cell,
        shared=shared,
        n_groups=cells.n_groups,
        labels=labels,
        unweighted=unweighted,
    ).summed()


def averaged_rows(
    data: RankedData, sums: QuerySums, average: str, means: Callable[..., QuerySums]
) -> Rows:
    """Return the table of clusters, in which queries or clusters may count alike.

    Parameters
    ----------
    data : RankedData
    sums : QuerySums
    average : str
        "queries": each query counts once. "clusters": each cluster counts once, after
        the weighted sums of its queries. Anything else: sums are not averaged.
    means : callable
        From the sums of units (queries or clusters) to sums in which each counts once.
    """
    if average != "clusters":
        return sum_over_queries(data, means(sums) if average == "queries" else sums)

    def of_clusters(rows: Rows) -> Rows:
        cells = Cells(rows.row, rows.group, rows.n_rows, rows.n_groups)
        by_cell = rows.values.reshape(rows.row.size, *sums.by_cell.shape[1:])
        shared = rows.shared.reshape(rows.n_rows, *sums.shared.shape[1:])
        units = means(QuerySums(cells, by_cell, shared))
        return replace(rows, values=_flat(units.by_cell), shared=_flat(units.shared))

    rows = of_clusters(sum_over_queries(data, sums))
    if data.query_weight is None:
        return rows
    plain = of_clusters(sum_over_queries(replace(data, query_weight=None), sums))
    return replace(rows, unweighted=plain.totals())


def query_estimates(
    data: RankedData,
    metric: Metric,
    sums: QuerySums,
    parameters: Mapping[str, Any],
    supports: Sequence[Finalize] | None = None,
    means: Callable[..., QuerySums] | None = None,
    of_rows: tuple[Array, Array, Sequence[Finalize]] | None = None,
) -> GroupEstimates:
    """Return the estimates from sums over queries; warn of undefined ones.

    Without `supports` the metric's own support is the only one. With `means`, as in
    `averaged_rows`, the average is the one that the parameters name. `of_rows` serves
    metrics with two-way errors: what each ranked row adds to the columns of its groups,
    (n, C), and to the shared columns, (n, D), and the supports of an item.
    """
    cluster, item = data.cluster, data.item
    users = data if of_rows is None else replace(data, item=None)
    if means is None:
        rows = sum_over_queries(users, sums)
    else:
        rows = averaged_rows(users, sums, parameters["average"], means)
    supports, labels = supports or [metric.support], data.groups.labels
    clusters = ClusterSums.from_rows(labels, rows, supports)
    if of_rows is not None and item is not None and cluster is not None:
        by_group, shared, of_items = of_rows
        both = (item, cluster.crossed_units(item))
        ways = [_sum_over_rows(data, by_group, shared, codes) for codes in both]
        clusters = TwoWaySums.of_ways(
            clusters, *(ClusterSums.from_rows(labels, way, of_items) for way in ways)
        )
    result = GroupEstimates(metric, clusters, parameters, missing=data.missing)
    return warn_undefined(result)


def _sum_over_rows(
    data: RankedData, columns: Array, shared: Array, codes: Codes | None
) -> Rows:
    """Return the table of the columns of ranked rows, summed by code.

    If `codes` is None each row is a unit of its own. The items of a group and all
    others are two samples.
    """
    (unit, labels), cells = data.units(codes), Cells.of_rows(data.groups)
    if (weight := data.row_weight) is not None:
        columns, shared = columns * weight[:, None], shared * weight[:, None]
    return Rows(
        unit[cells.query],
        cells.group,
        columns[cells.query],
        shared=sum_rows(shared, unit, labels.size),
        n_groups=cells.n_groups,
        labels=labels,
        member=np.ones(cells.query.size, dtype=bool),
    ).summed()
