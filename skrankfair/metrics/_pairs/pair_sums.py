"""The sums of a metric over pairs, by cluster or by item."""

from __future__ import annotations

from ..._estimates.sums import ClusterSums, Finalize
from ..._inputs.ranking import RankedData
from ..._inputs.validation import check_choice
from .cluster_rows import MakeSource, cluster_sums
from .item_rows import item_sums


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
