"""Rows ordered once by query and score, and shared by every metric.

The order is exact: the scores are sorted alone, and the row's place in that order is
packed into one int64 with its query, so that one value sort finishes the work. Adding
the query to the score would round.

A cell is a query and a group. Only the cells that have rows exist, so that sums take
time and memory in proportion to the rows (to the memberships, where groups overlap),
and not to queries times groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from .columns import given_columns, read_columns
from .groups import Codes, Groups, rows_of_ranges, stable_order, starts_of_runs
from .validation import Array, as_numbers, check_aligned, check_binary, check_lengths

T = TypeVar("T")

#: The index of all rows.
EVERY = slice(None)
#: Rows of a block, which stay in the processor's cache: of 16,384 or of 131,072 rows
#: the sums over pairs take 1.1 times as long.
_BLOCK = 1 << 16

#: The last place that an item can be shown at: weights of all places are 80 MB.
_LAST_PLACE = 10_000_000
#: Largest ratio of the weights of two items; beyond it sums of pairs are rounding.
_WIDEST = 1e12


def order_rows(codes: Array, values: Array) -> Array:
    """Return the rows by code and, within a code, by decreasing value.

    Codes are non-negative integers. Ties are in any order.
    """
    by_value = np.argsort(-values)
    return by_value[stable_order(codes[by_value])]


@dataclass(frozen=True, eq=False)
class ShownPlaces:
    """The places of rows in the lists as shown, from which rows may have been left out.

    Attributes
    ----------
    place : ndarray of shape (n,), int64
        The place of each row in its query, from 0; tied ones in the order of the input.
    first, last : ndarray of shape (n,), int64
        A row is at any place of [first, last) with equal chance.
    """

    place: Array
    first: Array
    last: Array

    @classmethod
    def by_score(cls, score: Array, codes: Array) -> ShownPlaces:
        """Return the places of rows that are ranked by score."""
        ranking = Ranking.from_scores(score, codes)
        rows = ranking.ties_in_row_order()
        row, out = ranking.order[rows], np.empty((3, score.size), dtype=np.int64)
        out[0, row] = ranking.position()
        out[1:, ranking.order] = ranking.place_bounds()
        return cls(*out)

    @classmethod
    def at(cls, position: Array, codes: Array) -> ShownPlaces:
        """Return the places that are given, ranks from 1 that differ within a query."""
        wrong = (position < 1) | (position > _LAST_PLACE) | (position % 1 != 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"position must be a rank, an integer in [1, {_LAST_PLACE:,}], 1 the "
                f"first place; got {position[row]:g}."
            )
        place = position.astype(np.int64) - 1
        key = codes * np.int64(_LAST_PLACE) + place
        order = stable_order(key)
        same = np.flatnonzero(np.diff(key[order]) == 0)
        if same.size:
            row = order[same[0]]
            raise ValueError(
                "position must differ between the items of a query; two items have "
                f"position {position[row]:g}."
            )
        return cls(place, place, place + 1)

    def take(self, rows: Array | slice) -> ShownPlaces:
        """Return the places of some rows."""
        return ShownPlaces(self.place[rows], self.first[rows], self.last[rows])


@dataclass(frozen=True, eq=False)
class Places:
    """Where queries and blocks of tied rows begin among the ranked rows."""

    #: Shape (n_queries + 1,), int64. First ranked row of each query, and n.
    starts: Array
    #: First row of each block of tied rows of one query (in a ranking: of equal
    #: scores), int64; a row that is not tied is a block.
    tie_starts: Array

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.starts[-1])

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self.starts.size - 1

    @cached_property
    def lengths(self) -> Array:
        """Number of items of each query."""
        return np.diff(self.starts)

    @cached_property
    def query(self) -> Array:
        """Query (0, 1, ...) of each ranked row, int32 where it fits."""
        dtype = np.int32 if self.n_rows < 2**31 else np.int64
        return np.repeat(np.arange(self.n_queries, dtype=dtype), self.lengths)

    @property
    def has_ties(self) -> bool:
        """Whether two items of a query are tied."""
        return self.tie_starts.size < self.n_rows

    @property
    def tie_sizes(self) -> Array:
        """Number of rows of each tied block."""
        return np.diff(self.tie_starts, append=self.n_rows)

    @cached_property
    def tie(self) -> Array:
        """Number of the tied block of each ranked row, counted over all rows."""
        return np.repeat(np.arange(self.tie_starts.size), self.tie_sizes)

    def tie_bounds(self, rows: Array | slice = EVERY) -> tuple[Array, Array]:
        """Return the first row of the tied block of each row, and one past its last."""
        if not self.has_ties:
            first = np.arange(self.n_rows)[rows] if isinstance(rows, slice) else rows
            return first, first + 1
        tie = self.tie[rows]
        first = self.tie_starts[tie]
        return first, first + self.tie_sizes[tie]

    def tie_means(self, values: Array) -> Array:
        """Return the mean of a column of ranked rows over each row's tied block.

        It is the expected value at a position when tied items are in random order.
        """
        if not self.has_ties:
            return values
        sizes = self.tie_sizes
        return np.repeat(np.add.reduceat(values, self.tie_starts) / sizes, sizes)

    def place_bounds(self, rows: Array | slice = EVERY) -> tuple[Array, Array]:
        """Return the first place of the tied block of each row, and one past its last.

        Places are those in the query, from 0.
        """
        first, last = self.tie_bounds(rows)
        start = self.starts[self.query[rows]]
        return first - start, last - start

    def chance_of_top(self, k: int) -> Array:
        """Return the probability of each ranked row to be in the first k places.

        In a tied block that reaches over the cut each item is equally likely to be
        above it.
        """
        first, last = self.place_bounds()
        return np.clip((k - first) / (last - first), 0.0, 1.0)

    def position(self) -> Array:
        """Return the position of each ranked row in its query, from 0."""
        position = np.arange(self.n_rows)
        position -= np.repeat(self.starts[:-1], self.lengths)
        return position

    def at_positions(self, depth: int, columns: Sequence[Array]) -> Array:
        """Return columns of ranked rows at the first positions of each query.

        Those of tied rows are means over their block, and 0 is below the end of a list.

        Parameters
        ----------
        depth : int
        columns : sequence of ndarray of shape (n,), length C

        Returns
        -------
        ndarray of shape (n_queries, depth, C)
        """
        position = self.position()
        rows = np.flatnonzero(position < depth)
        table = np.zeros((self.n_queries, depth, len(columns)))
        for c, column in enumerate(columns):
            table[self.query[rows], position[rows], c] = self.tie_means(column)[rows]
        return table

    def spans(self, n_rows: int) -> Iterator[tuple[slice, slice, Places]]:
        """Yield the rows, the queries and the places of parts of whole queries.

        Each part has about `n_rows` rows, or is one query. Sums by query then need
        memory for one part only, which stays in the processor's cache.
        """
        low = 0
        while low < self.n_queries:
            reach = self.starts[low] + n_rows
            high = int(np.searchsorted(self.starts, reach, side="right")) - 1
            high = max(high, low + 1)
            start, stop = int(self.starts[low]), int(self.starts[high])
            blocks = slice(*np.searchsorted(self.tie_starts, (start, stop)))
            ties = self.tie_starts[blocks] - start
            places = Places(self.starts[low : high + 1] - start, ties)
            yield slice(start, stop), slice(low, high), places
            low = high


@dataclass(frozen=True, eq=False)
class Ranking(Places):
    """Rows by query and decreasing score: the best item of a query comes first."""

    order: Array  # shape (n,), int64: number of the given row at each ranked row
    score: Array  # shape (n,): scores in ranked order
    #: Places of the ranked rows in the lists as shown; None: the order of the rows.
    shown: ShownPlaces | None = None

    @classmethod
    def from_scores(
        cls, score: Array, codes: Array, shown: ShownPlaces | None = None
    ) -> Ranking:
        """Order the rows of the queries by score."""
        order = order_rows(codes, score)
        query, score = codes[order], score[order]
        starts = np.append(starts_of_runs(query), query.size)
        ties = starts_of_runs(score, starts)
        return cls(starts, ties, order, score, shown and shown.take(order))

    def ties_in_row_order(self) -> Array:
        """Return the ranked rows, tied ones in the order of the input."""
        return np.lexsort((self.order, self.tie))

    @property
    def n_places(self) -> int:
        """The number of places of the longest list."""
        return int((self.lengths if self.shown is None else self.shown.last).max())

    @property
    def place(self) -> Array:
        """The place of each ranked row in its query, from 0."""
        return self.position() if self.shown is None else self.shown.place

    def place_bounds(self, rows: Array | slice = EVERY) -> tuple[Array, Array]:
        """Return the first place that each row may have, and one past the last."""
        if self.shown is None:
            return super().place_bounds(rows)
        return self.shown.first[rows], self.shown.last[rows]

    @cached_property
    def by_place(self) -> Array:
        """The ranked rows of each query in the order of their places."""
        if self.shown is None:
            return np.arange(self.n_rows)
        return np.lexsort((self.place, self.query))

    def values_at(self, of_places: Array) -> Array:
        """Return the value of the place of each ranked row, the mean of tied ones."""
        if self.shown is None:
            return self.tie_means(of_places[self.position()])
        if (self.shown.last - self.shown.first == 1).all():
            return of_places[self.place]
        first, last = self.place_bounds(self.tie_starts)
        block, place = rows_of_ranges(first, last - first)
        return (np.bincount(block, of_places[place]) / np.bincount(block))[self.tie]

    def values_held(self, of_places: Array) -> Array:
        """Return the values of the places of the rows of each query, from the top.

        A row of a tied block that has lost rows has the mean value of its places.
        """
        if self.shown is None:  # no row was lost
            return of_places[self.position()]
        first, last = self.tie_bounds()
        whole = np.equal(last - first, np.subtract(*reversed(self.place_bounds())))
        values = np.where(whole, of_places[self.place], self.values_at(of_places))
        return values[self.by_place]


@dataclass(frozen=True, eq=False)
class Cells:
    """A list of E cells: the query and the group of each.

    Attributes
    ----------
    query, group : ndarray of shape (E,), int64
    n_queries, n_groups : int
    """

    query: Array
    group: Array
    n_queries: int
    n_groups: int

    @classmethod
    def of_all(cls, n_queries: int, n_groups: int) -> Cells:
        """Return all groups of the first query, then of the second, and so on."""
        query, group = divmod(np.arange(n_queries * n_groups), n_groups)
        return cls(query, group, n_queries, n_groups)

    @classmethod
    def of_rows(cls, groups: Groups) -> Cells:
        """Return the cells of queries that have one row each."""
        return cls(*groups.memberships(), groups.n_rows, len(groups))

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """Return the cells of queries that follow each other."""
        *starts, n_queries = np.cumsum([0, *(cells.n_queries for cells in parts)])
        query = [cells.query + s for cells, s in zip(parts, starts, strict=True)]
        group = np.concatenate([cells.group for cells in parts])
        return cls(np.concatenate(query), group, int(n_queries), parts[0].n_groups)


@dataclass(frozen=True, eq=False)
class Memberships:
    """Ranked rows sorted by query and group; a row of several groups is in each.

    Attributes
    ----------
    groups : Groups
        The groups of the ranked rows.
    cells : Cells
        The cells that have rows.
    rows : ndarray of shape (M,), int64
        The ranked rows of the first cell from the top down, then of the second, ...
    sizes : ndarray of shape (E,), int64
        Number of rows of each cell.
    """

    groups: Groups
    cells: Cells
    rows: Array
    sizes: Array

    @classmethod
    def of(cls, places: Places, groups: Groups) -> Memberships:
        """Sort the memberships of ranked rows."""
        n_groups = len(groups)
        rows, group = groups.memberships()
        key = places.query[rows] * np.int64(n_groups) + group
        order = stable_order(key)
        key, rows = key[order], rows[order]
        first = starts_of_runs(key)
        cells = Cells(*divmod(key[first], n_groups), places.n_queries, n_groups)
        return cls(groups, cells, rows, np.diff(first, append=rows.size))

    @cached_property
    def starts(self) -> Array:
        """First membership of each cell, and M, shape (E + 1,)."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    @cached_property
    def cell(self) -> Array:
        """Cell of each membership."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    def numbers_of(self, cell: Array, rows: Array) -> Array:
        """Return numbers of cells and ranked rows, which order by cell, then by row."""
        return cell * np.int64(self.groups.n_rows + 1) + rows

    @cached_property
    def _numbers(self) -> Array:
        """The number of each membership, in increasing order."""
        return self.numbers_of(self.cell, self.rows)

    def first_at(self, cell: Array, rows: Array) -> Array:
        """Return the first membership of each cell at a ranked row or later."""
        return np.searchsorted(self._numbers, self.numbers_of(cell, rows))

    def contain(self, rows: Array, group: Array) -> Array:
        """Return whether ranked rows are of these groups."""
        values = self.groups.values
        if self.groups.overlapping:
            return np.asarray(values[rows, group])
        return np.asarray(values[rows] == group)

    def with_every_cell(self) -> Memberships:
        """Return the same with a cell for every query and group, also without rows."""
        cells = Cells.of_all(self.cells.n_queries, self.cells.n_groups)
        sizes = np.zeros(cells.query.size, dtype=np.int64)
        sizes[self.cells.query * cells.n_groups + self.cells.group] = self.sizes
        return replace(self, cells=cells, sizes=sizes)

    def of_cells(self, chosen: Array) -> tuple[Array, Memberships]:
        """Return the numbers of memberships in cells of a mask, and these cells."""
        some = np.flatnonzero(np.repeat(chosen, self.sizes))
        cells = replace(
            self.cells, query=self.cells.query[chosen], group=self.cells.group[chosen]
        )
        sizes = self.sizes[chosen]
        return some, replace(self, cells=cells, rows=self.rows[some], sizes=sizes)

    def sums(self, values: Array) -> Array:
        """Return the sums by cell of columns of memberships, shape (..., E)."""
        if not values.size:
            return np.zeros((*values.shape[:-1], self.sizes.size))
        return np.add.reduceat(values, self.starts[:-1], axis=-1, dtype=float)

    def sums_of_rows(self, values: Array) -> Array:
        """Return the sums by cell of columns of ranked rows, shape (..., E)."""
        return self.sums(values.take(self.rows, axis=-1))

    def tie_starts(self, places: Places) -> Array:
        """Return the first membership of each tied block of a cell."""
        if not places.has_ties:
            return np.arange(self.rows.size)
        return starts_of_runs(places.tie[self.rows], self.starts)

    def ranking(self, ranking: Ranking) -> Ranking:
        """Return the ranking of each cell as a list of its own."""
        return Ranking(
            self.starts, self.tie_starts(ranking), self.rows, ranking.score[self.rows]
        )


@dataclass(frozen=True)
class RankedData:
    """The data of a ranking metric, validated and in ranked order."""

    ranking: Ranking
    outcome: Array | None  # shape (n,) or None: outcomes in ranked order
    groups: Groups  # in ranked order
    query_labels: Array  # shape (n_queries,): the caller's label of each query
    #: Clusters of the rows `input_rows`, dense codes; None: each query is its own.
    cluster: Codes | None
    #: Shape (n_queries,) or None. Importance of each query, which multiplies its sums.
    query_weight: Array | None
    #: Shape (n,), int64. The caller's numbers of the rows that `ranking` orders.
    input_rows: Array
    n_input: int  # the number of the caller's rows
    has_queries: bool = False  # whether the caller passed `qid`
    index: Any = None  # the index of the caller's columns, if they are of pandas
    #: Shape (n,) or None: weights of items in ranked order. A pair has their product.
    item_weight: Array | None = None
    #: How many rows lacked a value, as `GroupEstimates.missing`.
    missing: Mapping[str, int] = field(default_factory=dict)
    #: Items of the rows `input_rows` that recur among the clusters, dense codes.
    item: Codes | None = None
    #: Intermediate results that several metrics of one audit share.
    cache: dict[str, Any] = field(default_factory=dict)

    @property
    def y_true(self) -> Array:
        """Outcomes in ranked order."""
        if self.outcome is None:
            raise ValueError("y_true must be given; got None.")
        return self.outcome

    @cached_property
    def kept(self) -> Array:
        """The caller's number of each ranked row, shape (n,), int64."""
        if self.input_rows.size == self.n_input:  # no row is left out
            return self.ranking.order
        return self.input_rows[self.ranking.order]

    def units(self, codes: Codes | None) -> tuple[Array, Array]:
        """Return the code of each ranked row, or without codes its number, and labels.

        The labels are those of the codes, or the caller's numbers of the rows.
        """
        if codes is None:
            return np.arange(self.ranking.n_rows), self.kept
        return codes.codes[self.ranking.order], codes.labels

    def check_binary(self, name: str) -> None:
        """Raise a ValueError unless all outcomes are 0 or 1."""
        check_binary(self.y_true, "y_true", f"for {name}", self.kept)

    @cached_property
    def with_equal_items(self) -> RankedData:
        """The same data in which every item counts once."""
        return replace(self, item_weight=None, cache={})

    def times_items(self, factor: Array) -> RankedData:
        """Return the same data with the weight of each ranked item times a factor."""
        weight = self.item_weight
        weight = factor if weight is None else weight * factor
        return replace(self, item_weight=weight, cache={})

    @property
    def row_weight(self) -> Array | None:
        """Weight of the query of each ranked row; None is one."""
        if self.query_weight is None:
            return None
        return self.query_weight[self.ranking.query]

    @property
    def pair_weight(self) -> Array | None:
        """Weight of each ranked row: that of its query times its own."""
        weight, item_weight = self.row_weight, self.item_weight
        if weight is None or item_weight is None:
            return item_weight if weight is None else weight
        return weight * item_weight

    @cached_property
    def cluster_of_query(self) -> Array | None:
        """Cluster of each query; None when a query has rows of several clusters."""
        if self.cluster is None:
            return np.arange(self.ranking.n_queries)
        ranked = self.cluster.codes[self.ranking.order]
        first = ranked[self.ranking.starts[:-1]]
        if np.array_equal(np.repeat(first, self.ranking.lengths), ranked):
            return first
        return None

    def clusters_of_queries(self) -> Array:
        """Return the cluster of each query; a ValueError if a query has several."""
        if self.cluster_of_query is None:
            raise ValueError(
                "cluster must be constant within a query; a query has rows of several "
                "clusters."
            )
        return self.cluster_of_query

    def with_groups(self, groups: Groups) -> RankedData:
        """Return the same rows with other groups, of which nothing is cached."""
        return replace(self, groups=groups, cache={})

    @property
    def memberships(self) -> Memberships:
        """The rows by query and group, sorted once however many metrics ask."""
        if "memberships" not in self.cache:
            self.cache["memberships"] = Memberships.of(self.ranking, self.groups)
        return self.cache["memberships"]

    def column(self, values: Any, name: str, *, allow_nan: bool = False) -> Array:
        """Validate one more numeric column and return it in ranked order.

        Rows that are left out since a value is missing may lack this one.
        """
        allow_nan = allow_nan or bool(self.missing.get(name))
        column = as_numbers(values, name, allow_nan=allow_nan)
        check_aligned(y_score=self.index, **{name: values})
        check_lengths(y_score=self.n_input, **{name: column.size})
        return column[self.kept]

    def blocks(self) -> Iterable[tuple[slice, RankedData]]:
        """Return the rows of many whole queries at a time, and their data.

        Blocks are views of the columns, and gone after use unless they are kept.
        """
        blocks = ((span[0], self._block(*span)) for span in self.ranking.spans(_BLOCK))
        return self.cache.get("blocks", blocks)

    def keep_blocks(self) -> None:
        """Keep the blocks and what is cached of each, for all metrics of these data."""
        self.cache["blocks"] = list(self.blocks())

    def _block(self, rows: slice, queries: slice, places: Places) -> RankedData:
        """Return the data of some whole queries that follow each other."""
        whole, weight = self.ranking, self.query_weight
        ranking = Ranking(
            *(places.starts, places.tie_starts),
            *(whole.order[rows], whole.score[rows]),
            whole.shown and whole.shown.take(rows),
        )
        return replace(
            self._in_order(rows, ranking),
            query_labels=self.query_labels[queries],
            query_weight=None if weight is None else weight[queries],
        )

    def ranked_by(self, score: Array, shown: ShownPlaces | None = None) -> RankedData:
        """Return the same rows with another score and places (in ranked order)."""
        ranking = Ranking.from_scores(score, self.ranking.query, shown)
        return self._in_order(ranking.order, ranking)

    def split_by(self, codes: Array, rows: Array) -> RankedData:
        """Return some ranked rows as lists, one for each code, at the same places.

        All rows of a code are of one query.
        """
        whole = self.ranking
        shown = ShownPlaces(whole.place[rows], *whole.place_bounds(rows))
        ranking = Ranking.from_scores(whole.score[rows], codes[rows], shown)
        return self._in_order(rows[ranking.order], ranking)

    def as_shown(self) -> RankedData:
        """Return the same rows in the order of their places, whatever their scores."""
        shown = self.ranking.shown
        return self if shown is None else self.ranked_by(-shown.first, shown)

    def among_those_left(self) -> RankedData:
        """Return the same rows at places that those which are left out do not have."""
        if self.ranking.shown is None:
            return self
        return replace(self, ranking=replace(self.ranking, shown=None), cache={})

    def with_ties_in_row_order(self) -> RankedData:
        """Return the same rows, tied ones in the order of the input."""
        if not self.ranking.has_ties:  # the sort would take as long as a metric
            return self
        rows, shown = self.ranking.ties_in_row_order(), self.ranking.shown
        shown = shown and shown.take(rows)
        return self._in_order(rows, replace(self.ranking, shown=shown))

    def _in_order(self, rows: Array | slice, ranking: Ranking) -> RankedData:
        """Return the data of some ranked rows, which are ranked as in `ranking`."""
        weight = self.item_weight
        return replace(
            self,
            ranking=replace(ranking, order=self.ranking.order[rows]),
            outcome=None if self.outcome is None else self.outcome[rows],
            groups=self.groups.take(rows),
            item_weight=None if weight is None else weight[rows],
            cache={},
        )


def ranked_data(
    y_true: Any,
    y_score: Any,
    *,
    position: Any = None,
    others: Mapping[str, Any] | None = None,
    **columns: Any,
) -> RankedData:
    """Validate the columns of a ranking metric and order the rows once.

    A column that is None is left out; a metric asks only for what it uses. Rows of
    either weight 0 are removed before anything else is looked at. `columns` are groups,
    labels and weights, the arguments of `read_labels`, and `missing`, the choice for
    rows without a value, also in the numeric columns `others`. A row that lacks only
    its outcome is removed after the rows have got their places. `position` are the
    places; None takes them from the scores.
    """
    numbers = {"y_score": y_score, "y_true": y_true, "position": position}
    read = read_columns(
        {**numbers, **(others or {})},
        required=("y_score",),
        placed_without="y_true",
        **columns,
    )
    has_queries, shown = "qid" in read.codes, None
    if not has_queries:
        one_list = Codes(np.zeros(read.kept.size, dtype=int), np.zeros(1, dtype=int))
        read = replace(read, codes={"qid": one_list, **read.codes})
    lists = read.codes["qid"].codes
    if position is not None:
        shown = ShownPlaces.at(read.numbers["position"], lists)
    elif read.unknown.any():
        shown = ShownPlaces.by_score(read.numbers["y_score"], lists)
    if shown is not None and read.unknown.any():
        known = np.flatnonzero(~read.unknown)
        read, shown = read.take(known), shown.take(known)
    weight, items = (read.weights.get(n) for n in ("sample_weight", "item_weight"))
    if items is not None and items.max() > _WIDEST * items.min():
        raise ValueError(
            f"item_weight must be within {_WIDEST:g} times its smallest positive value,"
            " for sums over pairs to be more than rounding; got values from "
            f"{items.min():g} to {items.max():g}."
        )
    queries, outcome = read.codes["qid"], read.numbers.get("y_true")
    ranking = Ranking.from_scores(read.numbers["y_score"], queries.codes, shown)
    order = ranking.order
    if weight is not None:
        weight = _query_weight(weight[order], ranking, read.kept[order])
    return RankedData(
        ranking=ranking,
        outcome=None if outcome is None else outcome[order],
        groups=read.groups.take(order),
        query_labels=queries.labels,
        cluster=read.codes.get("cluster"),
        query_weight=weight,
        input_rows=read.kept,
        n_input=read.n_input,
        has_queries=has_queries,
        index=read.index,
        item_weight=None if items is None else items[order],
        missing=read.missing,
        item=read.codes.get("item"),
    )


def measured(
    estimates: Callable[..., T], y_true: Any, y_score: Any, **arguments: Any
) -> T:
    """Return the estimates of a ranking metric, called with all of its arguments.

    `estimates` takes the `RankedData` of the columns, and the options by name.
    """
    columns = given_columns(arguments)
    options = {name: value for name, value in arguments.items() if name not in columns}
    return estimates(ranked_data(y_true, y_score, **columns), **options)


def measured_by_score(
    estimates: Callable[..., T], y_true: Any, y_score: Any, **arguments: Any
) -> T:
    """Return the same for a metric that uses no outcomes, which are not checked."""
    return measured(estimates, None, y_score, **arguments)


def _query_weight(weight: Array, ranking: Ranking, kept: Array) -> Array:
    """Return the weight of each query, which its (ranked) rows must agree on."""
    first = weight[ranking.starts[:-1]]
    differs = weight != np.repeat(first, ranking.lengths)
    if differs.any():
        row = int(np.argmax(differs))
        raise ValueError(
            "sample_weight must be constant within a query (item_weight weighs single "
            f"rows); row {kept[row]} has {weight[row]} where its query has "
            f"{first[ranking.query[row]]}."
        )
    return first
