"""`mean_position`: the mean position of clicked items (Beutel et al.)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum, MeanOfRatios, ratios_minus_rest
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._inputs.ranking import Places, RankedData, measured
from .._inputs.validation import Array, check_choice
from ._pairs.cluster_rows import QuerySums, query_estimates, supports_of
from ._pairwise import COMPARISONS, breakdown_of_strata, strata_of


def _positions(lists: Places) -> Array:
    """Return expected positions from 1, shape (n,)."""
    return lists.tie_means(lists.position() + 1.0)


def _position_sums(data: RankedData, comparison: str, clicked: Array) -> QuerySums:
    """Return sums and numbers of positions, of the group and of the rest.

    Those of the rest are without the shared ones, and among all items: positions among
    one side are not compared.
    """
    ranking, members = data.ranking, data.memberships
    rows, own = members.rows, clicked.take(members.rows, axis=1)
    position = _positions(ranking)
    number, of_all = members.sums(own), members.sums(own * position[rows])
    value = of_all
    if comparison != "all":
        inside = members.sums(own * _positions(members.ranking(ranking)))
        value = inside if comparison == "intra" else of_all - inside + number
    shared = np.stack([clicked * position, clicked], axis=1)
    shared = np.add.reduceat(shared, ranking.starts[:-1], axis=2, dtype=float)
    by_cell = np.stack([value, number, -of_all, -number])
    return QuerySums(members.cells, by_cell.transpose(2, 0, 1), shared.T)


def position_estimates(
    data: RankedData, *, comparison: str = "all", engagement: Any = None, bins: Any = 4
) -> GroupEstimates:
    """Return `mean_position` of data that is validated and ordered."""
    check_choice(comparison, "comparison", COMPARISONS)
    data.check_binary("mean_position")
    is_clicked = data.y_true == 1
    by_row, first_pass, size = strata_of(data, engagement, bins, is_clicked)
    clicked = is_clicked[None]
    if by_row is not None:
        clicked = clicked & (by_row[data.ranking.order] == np.arange(size)[:, None])
    # Positions among one side are not equal in fair lists, but depend on its size.
    gap = ratios_minus_rest(size, 1.0) if comparison == "all" else None
    metric = Metric(
        name="mean_position",
        finalize=MeanOfRatios(size),
        support=ColumnSum(size, 2 * size),
        unit="clicked items",
        against_rest=gap,
        breakdown=breakdown_of_strata if first_pass else None,
        positive=True,
        pooled=not data.groups.overlapping,
        differing=gap is None,
        better="low",
    )
    sums = _position_sums(data, comparison, clicked)
    supports = supports_of(size, 2, True)
    result = query_estimates(data, metric, sums, {"comparison": comparison}, supports)
    return replace(result, first_pass=first_pass)


def mean_position(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    comparison: str = "all",
    engagement: Any = None,
    bins: Any = 4,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Mean position of the clicked items of a group.

    The position of an item is 1 plus the number of items of its query that are ranked
    above it; tied items count one half. Fairness is equality: `test` and the p-values
    compare each group with the rest. Positions among one side depend on its size, so
    that "intra" and "inter" have no p-values, of groups or of contrasts:
    `pairwise_accuracy` has.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
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
    comparison : {"all", "intra", "inter"}, default="all"
        The items among which positions are counted: all of the query ("all"), those of
        the item's own side, the group or the rest ("intra"), or the item itself and
        those of the other side ("inter"). ``all = intra + inter - 1``
        holds exactly (§4.1 of the paper).
    engagement : array-like of shape (n,) or None, default=None
        Engagement after the click. The estimate is then the plain mean over strata of
        the engagement of the clicked items; `GroupEstimates.breakdown` has the strata.
        May be NaN where an item is not clicked.
    bins : int or sequence of float, default=4
        Number of strata of equal size, or their increasing edges. Edges chosen from
        the data are a first pass: parts add up only if they share them.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group, whose support is the number of its clicked items.

    Raises
    ------
    ValueError
        If columns have different lengths, outcomes are not 0 or 1, scores are not
        finite, labels are missing, a query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no clicked item, so that its estimate is NaN, or if there is only
        one query.

    See Also
    --------
    pairwise_accuracy : How often a clicked item is above one that is not clicked.
    exposure : What the positions of all items of a group are worth.

    Notes
    -----
    In a query with one clicked item the number of items above it is the number of pairs
    that it loses: (mean position - 1) times the number of clicked items equals
    (1 - `pairwise_accuracy`) times the number of pairs. So equal accuracies are equal
    mean positions (Theorem 1) where the groups have equally many pairs per clicked
    item, as in lists of one length. In 100 fair lists of eight items of which a group
    has 30%, a test of equal positions among the other side would nearly always reject.

    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons". KDD. §4.1, eq. 8 and Theorem 1.

    Examples
    --------
    >>> from skrankfair.metrics import mean_position
    >>> query = [0, 0, 0, 1, 1, 1]
    >>> group = ["f", "m", "m", "f", "m", "f"]
    >>> clicked = [1, 1, 0, 1, 1, 0]
    >>> score = [0.2, 0.7, 0.1, 0.4, 0.9, 0.3]
    >>> r = mean_position(clicked, score, sensitive_features=group, qid=query)
    >>> r.groups, r.estimate
    (('f', 'm'), array([2., 1.]))
    """
    return measured(position_estimates, **locals())
