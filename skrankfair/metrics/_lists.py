"""Ranked lists of group members, the data of all metrics of statistical parity.

Outcomes and scores are gone: a list says only who is ranked above whom. With tied
scores metrics are expectations: a member of a tied block is at each of its places with
equal probability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.finalize import ColumnSum, Finalize, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric, warn_undefined
from .._estimates.storage import stored
from .._estimates.sums import ClusterSums
from .._inputs.groups import Groups, sort_labels, union_of_labels
from .._inputs.ranking import Cells, Memberships, Places, RankedData, order_rows
from .._inputs.validation import Array, check_choice, check_number, warn_user
from ._pairs.cluster_rows import QuerySums, averaged_rows, means_of_units

_PART = 1 << 17  # rows that are worked on at once
#: How many rows, or numbers of many groups, the shuffles of a block may have.
_ROWS = 1 << 20
# How far the shares of a target may be from a sum of 1.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Lists(Places):
    """Groups of the rows of every list, from the top down."""

    groups: Groups
    #: Whether a list has a cell of every group, and not only of those that are in it.
    complete: bool = False

    @classmethod
    def of(cls, data: RankedData) -> Lists:
        """Return the lists of data that is validated and ordered."""
        return cls(data.ranking.starts, data.ranking.tie_starts, data.groups)

    @cached_property
    def members(self) -> Memberships:
        """The rows by list and group."""
        members = Memberships.of(self, self.groups)
        return members.with_every_cell() if self.complete else members

    @property
    def cells(self) -> Cells:
        """The lists and groups that have sums."""
        return self.members.cells

    @property
    def sizes(self) -> Array:
        """Members of each cell, shape (E,), as floats."""
        return self.members.sizes.astype(float)

    def of_cells(self, by_list: Array) -> Array:
        """Return the value of the list of each cell."""
        return by_list[self.cells.query]

    def shares(self, target: tuple[float, ...] | None) -> Array:
        """Return the target of the group of each cell, or its share of the list."""
        if target is None:
            return self.sizes / self.of_cells(self.lengths)
        return np.array(target)[self.cells.group]

    def shares_above(self, cell: Array, k: Array) -> Array:
        """Return the expected shares of cells in the first k rows, shape (E, K)."""
        members, cell = self.members, cell[:, None]
        ends = self.starts[self.cells.query[cell]] + k

        def above(row: Array) -> Array:
            return members.first_at(cell, row) - members.starts[cell]

        if not self.has_ties:
            return above(ends) / k
        first, last = self.tie_bounds(ends - 1)
        low = above(first)
        return (low + (above(last) - low) * (ends - first) / (last - first)) / k

    def parts(self) -> Iterator[Lists]:
        """Yield parts of whole lists, small enough for the processor's cache."""
        for rows, _, places in self.spans(_PART):
            yield Lists(places.starts, places.tie_starts, self.groups.take(rows))

    def shuffled(self, times: int, rng: np.random.Generator) -> Lists:
        """Return `times` copies of the lists, with labels shuffled within each."""
        n = self.n_rows
        shift = np.arange(times)[:, None]
        starts = np.append((self.starts[:-1] + shift * n).ravel(), times * n)
        ties = (self.tie_starts + shift * n).ravel()
        lists = (self.query + shift * self.n_queries).ravel()
        rows = order_rows(lists, rng.random(times * n)) % n
        return Lists(starts, ties, self.groups.take(rows))

    def __add__(self, other: Lists) -> Lists:
        """Return the lists of both, groups aligned by label."""
        labels = union_of_labels(self.groups.labels, other.groups.labels)
        values = [_aligned(part.groups, labels) for part in (self, other)]
        ties = np.append(self.tie_starts, other.tie_starts + self.n_rows)
        starts = np.append(self.starts[:-1], other.starts + self.n_rows)
        return Lists(starts, ties, Groups(labels, np.concatenate(values)))


class ListKernel(ABC):
    """A base of metrics of lists, which turn lists into the table of sums.

    Attributes
    ----------
    average : {"queries", "clusters", "representation"}
        Whether rows hold the values of lists, or ("representation") shares, of whose
        means the value is computed.
    signed : bool
        Whether both high and low values speak against parity.
    of_values : callable
        From the sums of values and numbers of lists to estimates.
    """

    average: str
    signed: bool
    #: The share of each group that is given in advance, if it is not that of the list.
    target: tuple[float, ...] | None = None
    of_values: Finalize = MeanOfRatios()

    def labels(self, groups: Groups) -> tuple[Hashable, ...]:
        """Return the labels of the rows of the result."""
        return groups.labels

    @abstractmethod
    def table(self, lists: Lists) -> QuerySums:
        """Return sums by cell (E, C), and shared ones by list (Q, D)."""

    @abstractmethod
    def of_means(self, data: RankedData) -> tuple[Finalize, Finalize, dict[str, Any]]:
        """Return the metric of mean shares, its support, and a first pass for parts."""


def table_of(kernel: ListKernel, lists: Lists) -> QuerySums:
    """Return the table of a kernel, made part by part."""
    complete = kernel.target is not None
    parts = (replace(part, complete=complete) for part in lists.parts())
    return QuerySums.joined([kernel.table(part) for part in parts])


def means_of_lists(units: QuerySums) -> QuerySums:
    """Return the means of the values of lists in each unit, which then counts 1."""
    means_of_units(units.by_cell[..., None], units.by_cell.shape[1])
    return units


@stored("ListsWith")
@dataclass(frozen=True)
class ListsWith:
    """The number of lists, 0 for a group without members, or without others.

    The last column of a group is its share of the list; the shared one counts lists.
    """

    joint: int | None = None  # the number of groups whose columns follow each other
    long: bool = True  # whether the lists are long enough to have a value

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the numbers, shape (..., G)."""
        n = shared[..., 0, None]
        if self.joint is not None:
            by_group = by_group.reshape(*by_group.shape[:-1], self.joint, -1)
            valid = (by_group[..., -1] > 0).sum(axis=-1) > 1
        else:
            valid = (by_group[..., -1] > 0) & (by_group[..., -1] < n)
        return np.where(valid & self.long, n, 0.0)


def one_length(data: RankedData) -> int:
    """Return the length of all lists, which must be the same."""
    lengths = data.ranking.lengths
    if lengths.min() < lengths.max():
        raise ValueError(
            "average must be 'queries' for lists of different lengths: "
            "'representation' averages position by position; got lists of "
            f"{lengths.min()} to {lengths.max()} items."
        )
    return int(lengths[0])


def with_target(
    data: RankedData, target: Any
) -> tuple[RankedData, tuple[float, ...] | None, dict[str, Any]]:
    """Read `target`: return data of its groups, their shares, and the parameter.

    Every label of a mapping is a group of the result, so that parts of the data which
    lack one add up.
    """
    groups = data.groups
    if target is None:
        return data, None, {}
    equal = isinstance(target, str) and target == "equal"
    if equal and not groups.overlapping:
        return data, (1 / len(groups),) * len(groups), {"target": target}
    rule = "target must be None, 'equal' for disjoint groups, or a share by group"
    if not isinstance(target, Mapping):
        raise ValueError(f"{rule}; got {target!r}.")
    if absent := [fmt.label(label) for label in groups.labels if label not in target]:
        raise ValueError(f"{rule}; it has none of {fmt.some(absent)}.")
    for share in target.values():
        check_number(share, "target", 0, 1)
    shares = {label: float(target[label]) for label in sort_labels(list(target))}
    total = sum(shares.values())
    ends = min(shares.values()) == 0 or max(shares.values()) == 1
    if ends or (not groups.overlapping and abs(total - 1) > _ROUNDING):
        raise ValueError(
            "target must have shares between 0 and 1 that sum to 1 (unless groups "
            f"overlap); got {target!r}."
        )
    data = data.with_groups(Groups(tuple(shares), _aligned(groups, tuple(shares))))
    return data, tuple(shares.values()), {"target": shares}


def _aligned(groups: Groups, labels: tuple[Hashable, ...]) -> Array:
    """Return codes, or the membership matrix, in the order of these labels."""
    place = np.array([labels.index(label) for label in groups.labels])
    if not groups.overlapping:
        return place[groups.values]
    member = np.zeros((groups.n_rows, len(labels)), dtype=bool)
    member[:, place] = groups.values
    return member


@dataclass(frozen=True, eq=False)
class Permutation:
    """Lists and their metric, which a result keeps so that labels can be shuffled.

    It holds one label per row, and where lists and tied blocks begin.
    """

    lists: Lists
    weight: Array  # shape (n_lists,)
    kernel: ListKernel
    #: {"greater", "two-sided"}. Which values speak against parity: large ones of a
    #: distance, or both ends.
    alternative: str
    #: Shape (n_lists,): the cluster of each list, where clusters count alike.
    cluster: Array | None = None

    def resampled(
        self, finalize: Finalize, n_resamples: int, rng: np.random.Generator
    ) -> Array:
        """Return estimates with shuffled labels, shape (n_resamples, G).

        They are computed in blocks of shuffles, which changes no estimate. A block
        takes less than 200 MB beside the result, or the memory of one shuffle.
        """
        groups = self.lists.groups
        # The rows that one shuffle takes.
        size = max(self.lists.n_rows, 8 * len(groups))
        if groups.overlapping:
            # In numbers of 8 bytes: a truth value is an eighth; sorting adds some more.
            members = int(np.count_nonzero(groups.values))
            size = max(size, groups.values.size // 8, 4 * members)
        many, chunks = max(1, _ROWS // size), []
        for start in range(0, n_resamples, many):
            times = min(many, n_resamples - start)
            shuffled = table_of(self.kernel, self.lists.shuffled(times, rng))
            chunks.append(finalize(*self._totals(shuffled, times)))
        return np.concatenate(chunks)

    def clustered(self, n_clusters: float) -> bool:
        """Return whether a test over clusters, with several lists each, is needed."""
        return self.alternative == "two-sided" and 1 < n_clusters < self.lists.n_queries

    def _totals(self, sums: QuerySums, times: int) -> tuple[Array, Array]:
        """Sum by group, and shared, over the lists of each of the shuffles."""
        n_lists, cells = self.lists.n_queries, sums.cells
        shuffle, of_list = divmod(cells.query, n_lists)
        key = shuffle * np.int64(cells.n_groups) + cells.group
        size = times * cells.n_groups
        columns = sums.by_cell.T * self.weight[of_list]
        if self.cluster is not None:
            units = key * np.int64(n_lists) + self.cluster[of_list]
            units, place = np.unique(units, return_inverse=True)
            by_unit = np.stack([np.bincount(place, c) for c in columns], axis=1)
            means_of_units(by_unit[..., None], by_unit.shape[1])
            key, columns = units // n_lists, by_unit.T
        # NumPy counts in integers where there is nothing to count.
        columns = [1.0 * np.bincount(key, column, size) for column in columns]
        by_group = np.reshape(np.stack(columns, axis=1), (times, cells.n_groups, -1))
        shared = sums.shared.reshape(times, n_lists, -1)
        return by_group, np.tensordot(shared, self.weight, axes=(1, 0))

    def __add__(self, other: Permutation) -> Permutation:
        """Return the lists of both, of one metric with the same options."""
        weight, cluster = np.concatenate([self.weight, other.weight]), None
        if self.cluster is not None and other.cluster is not None:
            cluster = np.append(self.cluster, other.cluster + self.cluster.max() + 1)
        lists = self.lists + other.lists
        return replace(self, lists=lists, weight=weight, cluster=cluster)


def list_estimates(
    name: str,
    data: RankedData,
    kernel: ListKernel,
    parameters: Mapping[str, Any],
    *,
    test_method: str = "permutation",
    longer_than: tuple[int, str] | None = None,
) -> GroupEstimates:
    """Return the estimates of a kernel of lists, with what a permutation test needs.

    `longer_than` is the length that lists must exceed, with the words for it.
    """
    check_choice(kernel.average, "average", ("queries", "clusters", "representation"))
    finalize: Finalize = kernel.of_values
    support: Finalize = ColumnSum(1, 2)
    first_pass: dict[str, Any] = {}
    by_list = kernel.average != "representation"
    if not by_list:
        finalize, support, first_pass = kernel.of_means(data)
    if parameters.get("target") == "equal":
        first_pass = {**first_pass, "groups": data.groups.labels}
    lacking = None
    if longer_than is not None:
        most, items = longer_than
        lacking = _warn_short(name, data, most - (kernel.target is not None), items)
    lists = Lists.of(data)
    rows = averaged_rows(data, table_of(kernel, lists), kernel.average, means_of_lists)
    clusters = data.cluster_of_query if kernel.average == "clusters" else None
    weight = data.query_weight
    result = GroupEstimates(
        metric=Metric(
            name,
            finalize,
            support,
            unit="queries" if clusters is None else "clusters",
            fair_value=0.0,
            disparity="max_abs",
            test_method=test_method,
            differing=test_method == "permutation" and (by_list or not kernel.signed),
        ),
        sums=ClusterSums.from_rows(kernel.labels(lists.groups), rows, [support]),
        parameters=parameters,
        first_pass=first_pass,
        permutation=Permutation(
            lists,
            np.ones(lists.n_queries) if weight is None else weight,
            kernel,
            "two-sided" if kernel.signed else "greater",
            clusters,
        ),
        missing=data.missing,
    )
    return warn_undefined(result, lacking)


def _warn_short(name: str, data: RankedData, most: int, items: str) -> str:
    """Warn of lists that are too short to have a value; say what is long enough."""
    lengths = data.ranking.lengths
    short = int((lengths <= most).sum())
    enough = f"queries of more than {most} {items}"
    if 0 < short < lengths.size:
        warn_user(
            f"{name} leaves out {short} of {lengths.size} queries: it needs {enough}."
        )
    return enough
