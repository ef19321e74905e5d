"""From lists to estimates: what the metrics of statistical parity share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._estimates.finalize import ColumnSum, Finalize
from ..._estimates.group_estimates import GroupEstimates
from ..._estimates.metric import Metric, warn_undefined
from ..._estimates.sums import ClusterSums
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array, check_choice, warn_user
from .._pairs.cluster_rows import QuerySums, sum_over_queries
from .lists import ListKernel, Lists, table_of


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
    check_choice(kernel.average, "average", ("queries", "representation"))
    finalize: Finalize = kernel.of_values
    support: Finalize = ColumnSum(1, 2)
    first_pass: dict[str, Any] = {}
    if kernel.average == "representation":
        finalize, support, first_pass = kernel.of_means(data)
    lacking = None
    if longer_than is not None:
        lacking = _warn_short(name, data, *longer_than)
    lists = Lists.of(data)
    rows = sum_over_queries(data, table_of(kernel, lists))
    result = GroupEstimates(
        metric=Metric(
            name,
            finalize,
            support,
            unit="queries",
            fair_value=0.0,
            disparity="max_abs",
            test_method=test_method,
        ),
        sums=ClusterSums.from_clusters(kernel.labels(lists.groups), rows, [support]),
        parameters=parameters,
        first_pass=first_pass,
        permutation=Permutation(
            lists,
            np.ones(lists.n_queries)
            if data.query_weight is None
            else data.query_weight,
            kernel,
            "two-sided" if kernel.signed else "greater",
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


# What the shuffles of a block may have of rows, or of the numbers of many groups.
_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Permutation:
    """Lists and the metric of them: what a result keeps to shuffle its labels.

    Of the data it holds one label per row and where lists and tied blocks begin.
    """

    lists: Lists
    weight: Array  # shape (n_lists,)
    kernel: ListKernel
    #: {"greater", "two-sided"}. Which values speak against parity: large ones of a
    #: distance, or both ends.
    alternative: str

    def resampled(
        self, finalize: Finalize, n_resamples: int, rng: np.random.Generator
    ) -> Array:
        """Return estimates with shuffled labels, shape (n_resamples, G).

        They are made block by block, which changes none of them: beside what is
        returned, a block takes less than 200 MB, or what one shuffle of the data does.
        """
        many = max(1, _ROWS // self._size())
        chunks = []
        for start in range(0, n_resamples, many):
            times = min(many, n_resamples - start)
            shuffled = table_of(self.kernel, self.lists.shuffled(times, rng))
            chunks.append(finalize(*self._totals(shuffled, times)))
        return np.concatenate(chunks)

    def _size(self) -> int:
        """Return how much of a block one shuffle takes."""
        groups, n_rows = self.lists.groups, self.lists.n_rows
        size = max(n_rows, 8 * len(groups))
        if not groups.overlapping:
            return size
        # Eight truth values are a number; a membership is sorted, and has some.
        members = int(np.count_nonzero(groups.values))
        return max(size, groups.values.size // 8, 4 * members)

    def _totals(self, sums: QuerySums, times: int) -> tuple[Array, Array]:
        """Sum by group, and shared, over the lists of each of the shuffles."""
        n_lists, cells = self.lists.n_queries, sums.cells
        shuffle, of_list = divmod(cells.query, n_lists)
        key = shuffle * np.int64(cells.n_groups) + cells.group
        size = times * cells.n_groups
        columns = [
            np.bincount(key, column * self.weight[of_list], size)
            for column in sums.by_cell.T
        ]
        by_group = np.reshape(np.stack(columns, axis=1), (times, cells.n_groups, -1))
        shared = sums.shared.reshape(times, n_lists, -1)
        return by_group, np.tensordot(shared, self.weight, axes=(1, 0))

    def __add__(self, other: Permutation) -> Permutation:
        """Return the lists of both, of one metric with the same options."""
        weight = np.concatenate([self.weight, other.weight])
        return replace(self, lists=self.lists + other.lists, weight=weight)
