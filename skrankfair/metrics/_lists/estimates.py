"""From lists to estimates: what the metrics of statistical parity share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._estimates.group_estimates import GroupEstimates
from ..._estimates.metric import Metric, warn_undefined, warn_user
from ..._estimates.storage import stored
from ..._estimates.sums import ClusterSums
from ..._inputs.ranking import RankedData
from ..._inputs.validation import Array
from .._pairs.cluster_rows import sum_over_queries
from .lists import ListKernel, Lists, table_of
from .permutation import Permutation

AVERAGES = ("queries", "representation")


@stored("ListsWith")
@dataclass(frozen=True)
class ListsWith:
    """The number of lists, 0 for a group that is in none or is all of them.

    The last column is the group's share of the list, and there is a shared one.
    """

    joint: int | None = None  # the number of groups whose columns follow each other
    long: bool = True  # whether the lists are long enough to have a value

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the numbers, shape (..., G)."""
        n = shared[..., 0, None]
        if self.joint is not None:
            by_group = by_group.reshape(*by_group.shape[:-1], self.joint, -1)
            there = (by_group[..., -1] > 0).sum(axis=-1) > 1
        else:
            there = (by_group[..., -1] > 0) & (by_group[..., -1] < n)
        return np.where(there & self.long, n, 0.0)


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


def list_estimates(
    data: RankedData,
    kernel: ListKernel,
    metric: Metric,
    parameters: Mapping[str, Any],
    first_pass: Mapping[str, Any],
    alternative: str = "greater",
    longer_than: tuple[int, str] | None = None,
) -> GroupEstimates:
    """Return the estimates of a kernel of lists, with what a permutation test needs.

    `longer_than` is the length that lists must exceed, with the words for it.
    """
    lacking = None
    if longer_than is not None:
        lacking = _warn_short(metric.name, data, *longer_than)
    lists = Lists.of(data)
    rows = sum_over_queries(data, table_of(kernel, lists))
    result = GroupEstimates(
        metric=metric,
        sums=ClusterSums.from_clusters(
            kernel.labels(lists.groups), rows, [metric.support]
        ),
        parameters=parameters,
        first_pass=first_pass,
        permutation=Permutation(lists, data.query_weight, kernel, alternative),
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
