"""`ndcg` and `boost_value`: how good a ranking is, the other side of a trade-off."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum, MeanOfRatios, quotient
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.storage import stored
from .._inputs.groups import Groups, rows_of_ranges, starts_of_runs
from .._inputs.ranking import Cells, RankedData, Ranking, measured, order_rows
from .._inputs.validation import Array, check_choice, check_magnitude, check_number
from ._make_metric import check_one_group
from ._pairs.cluster_rows import QuerySums, query_estimates
from ._pairs.near import reach
from ._position_weights import DCG, PositionWeight, check_decreasing

#: Rows of lists that are ranked anew at once.
_TOGETHER = 1 << 17


def _gains_of(y: Array, gain: str, normalize: bool) -> Array:
    """Return the gains of outcomes; they must not be negative if `normalize`."""
    check_choice(gain, "gain", ("linear", "exponential"))
    check_choice(normalize, "normalize", (True, False))
    if normalize and y.min() < 0:
        raise ValueError(
            f"y_true must not be negative for the gains of ndcg; got {y.min()}."
        )
    with np.errstate(over="ignore"):
        gains = y if gain == "linear" else np.exp2(y) - 1
    if not np.isfinite(gains).all():
        raise ValueError(
            "gain='exponential' overflows; the largest y_true is "
            f"{y.max():g}. Use gain='linear'."
        )
    if not normalize:
        check_magnitude(y_true=gains)
    return gains


def _weighed(
    data: RankedData,
    k: int | None,
    gain: str,
    position_weight: Any,
    patience: float | None,
    normalize: bool,
) -> tuple[PositionWeight, Array, Array, Array]:
    """Return the weight of places, gains, discounts, and the best value of each query.

    Discounts are 0 after the first k places. What the best value is depends on no
    order; all values are divided by 1 unless `normalize`.
    """
    ranking, gains = data.ranking, _gains_of(data.y_true, gain, normalize)
    check_number(k, "k", 1, np.inf, integer=True, optional=True)
    weight = PositionWeight.of_first(position_weight, k, patience)
    discounts, best = weight.visits(ranking.n_places), np.ones(ranking.n_queries)
    if normalize:
        check_decreasing(discounts)
    if k is not None:
        discounts[k:] = 0.0
    if normalize:
        starts, order = ranking.starts[:-1], order_rows(ranking.query, gains)
        # Over a power of two, which leaves their ratio, the sums of a query neither
        # overflow nor lose digits.
        power = np.repeat(-np.frexp(gains[order[starts]])[1], ranking.lengths)
        held = np.ldexp(gains[order], power) * ranking.values_held(discounts)
        best, gains = np.add.reduceat(held, starts), np.ldexp(gains, power)
    return weight, gains, discounts, best


def ndcg_estimates(
    data: RankedData,
    *,
    k: int | None = None,
    gain: str = "linear",
    position_weight: Any = "dcg",
    patience: float | None = None,
    normalize: bool = True,
    by_group: bool = False,
) -> GroupEstimates:
    """Return `ndcg` of data that is validated and ordered, of all queries as one group.

    With `by_group` the groups are groups of queries, else all queries are one.
    """
    ranking = data.ranking
    weight, gains, discounts, best = _weighed(
        data, k, gain, position_weight, patience, normalize
    )
    # A tied item is at each place of its block with equal probability.
    total = np.add.reduceat(gains * ranking.values_at(discounts), ranking.starts[:-1])
    value = np.divide(total, best, out=np.zeros(best.size), where=best > 0)
    value = np.stack([value, best > 0], axis=1)
    if by_group:
        check_one_group(data, "ndcg")
    groups = data.groups if by_group else Groups.of_everyone(ranking.n_rows)
    of_query = Cells.of_rows(groups.take(ranking.starts[:-1]))
    sums = QuerySums.of_cells(of_query, value[of_query.query])
    metric = Metric(
        "ndcg",
        MeanOfRatios(),
        ColumnSum(1, 2),
        unit="queries",
        share=normalize,
        heavy=not normalize,
        pooled=not groups.overlapping,
        better="high",
    )
    # Only what differs from NDCG is a parameter.
    options = {} if weight == DCG else weight.parameters
    options.pop("k", None)
    options |= {} if normalize else {"normalize": False}
    parameters = {"k": k, "gain": gain, **options}
    return query_estimates(data.with_groups(groups), metric, sums, parameters)


@stored("MeanOverAll")
def mean_over_all(by_group: Array, shared: Array) -> Array:
    """Return the sum over the queries of a group, over the number of all queries.

    It has shape (..., G), and is NaN for a group without queries.
    """
    total, has_queries = by_group[..., 0], by_group[..., 1].real != 0
    return quotient(total, shared[..., 0, None], has_queries)


def _boost_estimates(
    data: RankedData,
    *,
    boost: float,
    k: int | None,
    gain: str,
    position_weight: Any,
    patience: float | None,
    normalize: bool,
) -> GroupEstimates:
    """Return `boost_value` of data that is validated and ordered."""
    check_number(boost, "boost", -np.inf, np.inf, inclusive=(False, False))
    data = data.among_those_left()
    ranking, members = data.ranking, data.memberships
    weight, gains, discounts, best = _weighed(
        data, k, gain, position_weight, patience, normalize
    )
    score, cells, has_value = ranking.score, members.cells, best > 0
    gains = gains / np.where(has_value, best, np.inf)[ranking.query]
    visits = discounts[ranking.position()]
    before, change = ranking.tie_means(visits), np.zeros(members.sizes.size)
    lengths = ranking.lengths[cells.query]
    batch = (np.cumsum(lengths) - lengths) // _TOGETHER
    for some in np.split(np.arange(batch.size), starts_of_runs(batch)[1:]):
        # Rows keep their places if they are above the place to which the first member
        # rises, or below the last member; if boost < 0, the other way round.
        ends = []
        for past, step in enumerate((-1, 1)):
            row = members.rows[members.starts[some + past] - past]
            bound = ranking.starts[cells.query[some] + past] - past
            limit = np.maximum(step * (score[row] - (score[row] + boost)), 0.0)
            ends.append(reach(score, row, bound, score[row], limit, step))
        # The other rows of the list of each cell anew, with its group raised.
        number, rows = rows_of_ranges(ends[0], ends[1] - ends[0] + 1)
        raised = float(boost) * members.contain(rows, cells.group[some][number])
        after = Ranking.from_scores(score[rows] + raised, number)
        moved, rows = after.tie_means(visits[rows]), rows[after.order]
        moved -= before[rows]
        change[some] = np.add.reduceat(gains[rows] * moved, after.starts[:-1])
    by_cell = np.stack([change, has_value[cells.query]], axis=1)
    metric = Metric(
        "boost_value",
        mean_over_all,
        ColumnSum(1, 2),
        unit="queries",
        fair_value=0.0,
        disparity="max_abs",
        differing=True,  # as a boost of more items moves more of the others
        at_most=True,  # as every boost of fair scores costs
    )
    options = {"boost": float(boost), "k": k, "gain": gain}
    parameters = {**options, **weight.parameters, "normalize": normalize}
    sums = QuerySums(cells, by_cell, 1.0 * has_value[:, None])
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
    position_weight: Any = "dcg",
    patience: float | None = None,
    normalize: bool = True,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Normalized discounted cumulative gain, with its standard error.

    It is the mean over queries of ``DCG / ideal DCG``, where ``DCG`` is ``Σ gain /
    log2(position + 1)``. Score ties are averaged over all orders of the tied items.
    Queries whose ideal DCG is 0 have no value and are left out (scikit-learn's
    `ndcg_score` counts them as 0). With ``normalize=False`` it is the mean of the value
    itself, ``Σ w(position) gain`` with any weights w of positions, over all queries.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better. They must not
        be negative, unless `normalize` is False.
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
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
        What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
        ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
        function that takes the array of ranks and returns their weights, or an array
        of the weights of the first ranks, which zeros follow. They must not increase if
        `normalize` is True.
    patience : float or None, default=None
        The probability of going on to the next rank, in [0, 1], of which
        ``position_weight="geometric"`` takes powers; None means 0.8. It must be None
        for all other weights.
    normalize : bool, default=True
        False leaves out the division by the maximum.
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
    hold, where other rows or ranks of `position` are left out. In a tied block that has
    lost rows each of these places is worth the mean of the block.

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


def boost_value(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    boost: float,
    k: int | None = None,
    gain: str = "linear",
    position_weight: Any = "dcg",
    patience: float | None = None,
    normalize: bool = False,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Change of a ranking's value when the scores of a group are raised.

    For each group in turn, the value of the ranking by ``score + boost`` of its items
    (and the score of all others) minus that of the ranking by the score, on average
    over queries. The value of a ranking is ``Σ w(position) gain``. A positive value
    says that the ranker pays for undervaluing the group: it would do better by its own
    measure if it moved the group up. Over several boosts it is a curve, whose top says
    by how much the scores are too low.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better. They must not
        be negative if `normalize` is True.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. Score ties are averaged over all
        orders of the tied items.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list. One list has no standard error.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    boost : float
        What is added to the scores of the group, in units of the score; negative to
        demote it.
    k : int or None, default=None
        How many positions count, from the top. None counts all.
    gain : {"linear", "exponential"}, default="linear"
        ``y`` or ``2**y - 1``.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
        What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
        ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
        function that takes the array of ranks and returns their weights, or an array
        of the weights of the first ranks, which zeros follow. They must not increase if
        `normalize` is True.
    patience : float or None, default=None
        The probability of going on to the next rank, in [0, 1], of which
        ``position_weight="geometric"`` takes powers; None means 0.8. It must be None
        for all other weights.
    normalize : bool, default=False
        False leaves out the division by the maximum.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. Both rankings are of the rows that are left.

    Returns
    -------
    GroupEstimates
        One row per group, whose support is the number of queries with its items. The
        mean is over all queries, of which those without its items do not change.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, `position_weight` is 0 at the first rank or increases
        while `normalize` is True, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group without items, whose estimate is NaN, or if there is only one query.

    See Also
    --------
    matched_pair_calibration : What the items that a boost would swap are worth.
    ndcg : The value of a ranking.

    Notes
    -----
    By Theorem 1 of the paper the value rises with a small boost if the group is
    undervalued in all matched pairs that are closer than the boost. A boost of the
    group only swaps its items with others that scored up to `boost` more. Where scores
    are fair every boost lowers the value, by little if it is small, so that a negative
    value does not say that the group is overvalued: a positive one with a negative
    `boost` does. So the p-value of a negative value is 1, and that of a positive one is
    two-sided, as its interval is. A boost of more items costs more, so that contrasts
    of groups have no p-values.

    The differences of queries are one table, so errors are those of paired values: the
    variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over all clusters,
    θ_(-q) the estimate without cluster q and Q the number of clusters with items of the
    group. Where all queries have items of the group they are those of
    `skrankfair.inference.compare` for the `ndcg` of both rankings.

    References
    ----------
    Korevaar, H., McConnell, C., Tong, E., et al. "Matched Pair Calibration for Ranking
    Fairness", Equations 1, 3 and 4, and Theorem 1.

    Examples
    --------
    >>> from skrankfair.datasets import make_confounded_queries
    >>> from skrankfair.metrics import boost_value
    >>> data = make_confounded_queries(5000, random_state=0)
    >>> who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    >>> for boost in (-0.05, 0.05, 0.1, 0.2):
    ...     r = boost_value(data.expected, data.y_score, boost=boost, **who)
    ...     print(boost, r.estimate.round(4))
    -0.05 [-0.0042  0.0014]
    0.05 [ 0.0014 -0.0042]
    0.1 [ 0.0008 -0.0103]
    0.2 [-0.0052 -0.028 ]
    """
    return measured(_boost_estimates, **locals())
