"""How good a ranking is: the other side of every trade-off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._inputs.groups import Groups
from .._inputs.ranking import Cells, RankedData, Ranking, measured, order_rows
from .._inputs.validation import Array, check_choice, check_number
from ._make_metric import check_one_group
from ._pairs.cluster_rows import QuerySums, query_estimates
from ._position_weights import DCG

_HUGE = 1e250


def _of_computable_size(gains: Array, best: Array, ranking: Ranking) -> Array:
    """Return gains whose sums neither overflow nor lose digits.

    Those of a query are divided by a power of two, which the ratio does not see.
    """
    largest = gains[best]
    if not ((largest > _HUGE) | ((largest > 0) & (largest < 1 / _HUGE))).any():
        return gains
    return np.ldexp(gains, -np.repeat(np.frexp(largest)[1], ranking.lengths))


def ndcg_estimates(
    data: RankedData,
    *,
    k: int | None = None,
    gain: str = "linear",
    by_group: bool = False,
) -> GroupEstimates:
    """Return `ndcg` of data that is validated and ordered, of all queries as one group.

    `by_group`: the groups are those of the queries.
    """
    check_choice(gain, "gain", ("linear", "exponential"))
    if k is not None:
        check_number(k, "k", 1, np.inf, integer=True)
    y, ranking = data.y_true, data.ranking
    if y.min() < 0:
        raise ValueError(
            f"y_true must not be negative for ndcg, whose gains are; got {y.min()}."
        )
    with np.errstate(over="ignore"):
        gains = y if gain == "linear" else np.exp2(y) - 1
    if not np.isfinite(gains).all():
        raise ValueError(
            "gain='exponential' overflows; the largest y_true is "
            f"{y.max():g}. Use gain='linear'."
        )
    discounts = DCG.up_to(ranking.n_places)
    if k is not None:
        discounts[k:] = 0.0
    ideal_order = order_rows(ranking.query.astype(np.int64), y)
    gains = _of_computable_size(gains, ideal_order[ranking.starts[:-1]], ranking)
    ideal = gains[ideal_order] * ranking.values_held(discounts)
    # An item of a tied block is anywhere in the block with equal chance.
    discount = ranking.values_at(discounts)
    starts = ranking.starts[:-1]
    reached = np.add.reduceat(gains * discount, starts)
    best = np.add.reduceat(ideal, starts)
    value = np.zeros((ranking.n_queries, 2))
    value[:, 1] = best > 0
    np.divide(reached, best, out=value[:, 0], where=best > 0)
    if by_group:
        check_one_group(data, "ndcg")
    groups = data.groups if by_group else Groups.of_everyone(ranking.n_rows)
    of_query = Cells.of_rows(groups.take(starts))
    sums = QuerySums.of_cells(of_query, value[of_query.query])
    metric = Metric(
        "ndcg",
        MeanOfRatios(),
        ColumnSum(1, 2),
        unit="queries",
        share=True,
        pooled=not groups.overlapping,
        better="high",
    )
    parameters = {"k": k, "gain": gain}
    data = replace(data, sensitive_features=groups)
    return query_estimates(data, metric, sums, parameters)


def ndcg(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    position: Any = None,
    k: int | None = None,
    gain: str = "linear",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Normalized discounted cumulative gain, with its standard error.

    It is the mean over queries of ``DCG / ideal DCG``, where ``DCG`` is ``Σ gain /
    log2(position + 1)``. Score ties are averaged over all orders of the tied items.
    Queries whose ideal DCG is 0 have no value and are left out (scikit-learn's
    `ndcg_score` counts them as 0).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better. They must not
        be negative.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all". They are groups of queries, such as those
        of the users, and constant within a query.
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    position : array-like of shape (n,) or None, default=None
        Rank at which the item was shown in its query, an integer from 1, where that is
        not the order of the scores. Ranks may be left out. None ranks by `y_score`.
    k : int or None, default=None
        How many positions count, from the top. None counts all.
    gain : {"linear", "exponential"}, default="linear"
        ``y`` or ``2**y - 1``.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. A row that lacks its outcome alone keeps its
        place in the ranking.

    Returns
    -------
    GroupEstimates
        One row per group of queries, whose support is the number of queries.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, relevance is negative,
        a query is in two clusters or of two groups, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If no query of a group has a positive ideal DCG, or there is only one.

    See Also
    --------
    sklearn.metrics.ndcg_score : The value alone, for a rectangular array.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.

    The ideal ranking sorts the rows that have an outcome among the places that they
    hold, where other rows or ranks of `position` are left out.

    References
    ----------
    Järvelin, K., Kekäläinen, J. (2002). "Cumulated gain-based evaluation of IR
    techniques". ACM TOIS 20(4).

    Examples
    --------
    >>> from skrankfair.metrics import ndcg
    >>> query = [0, 0, 0, 1, 1, 1]
    >>> relevance = [2, 0, 1, 0, 1, 0]
    >>> score = [0.9, 0.2, 0.5, 0.8, 0.7, 0.1]
    >>> ndcg(relevance, score, qid=query).estimate.round(4)
    array([0.8155])
    """
    by_group = sensitive_features is not None
    return measured(ndcg_estimates, **locals())
