"""`precision_at_k`, `recall_at_k` and `share_at_k`: the items in the first k places."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum, Finalize, MeanOfRatios, OfRest, minus_rest
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.storage import stored
from .._inputs.ranking import RankedData, measured, measured_by_score
from .._inputs.validation import check_choice, check_number
from ._exposure import Share, share_metric, shares_of_exposure
from ._lists import means_of_lists
from ._pairs.cluster_rows import QuerySums, query_estimates
from ._position_weights import PositionWeight

_UNITS = {"precision_at_k": "items in the top k", "recall_at_k": "relevant items"}


stored("ShareOfPlaces")(Share)  # its name in older results


def _check_options(k: Any, average: str) -> None:
    check_number(k, "k", 1, np.inf, integer=True)
    check_choice(average, "average", ("items", "queries", "clusters"))


def top_share_estimates(
    data: RankedData, *, k: Any, average: str = "items"
) -> GroupEstimates:
    """Return `share_at_k` of data that is validated and ordered."""
    _check_options(k, average)
    data = data.among_those_left()  # as it needs no outcomes
    # A share of exposure, of which each of the first places has one and others none.
    weight = PositionWeight("top", k=int(k))
    metric = share_metric("share_at_k", ColumnSum(1, 2))
    return shares_of_exposure(data, metric, weight, {"k": k, "average": average})


def top_estimates(
    name: str, data: RankedData, *, k: Any, average: str = "items"
) -> GroupEstimates:
    """Return precision or recall at k of data that is validated and ordered."""
    _check_options(k, average)
    data.check_binary(name)
    ranking, members = data.ranking, data.memberships
    chance = ranking.chance_of_top(int(k))
    columns = data.y_true * chance, chance if name == "precision_at_k" else data.y_true
    by_cell = np.stack([members.sums_of_rows(column) for column in columns], axis=1)
    shared, unit = np.zeros((ranking.n_queries, 0)), _UNITS[name]
    against_rest, of_rows, support = None, None, ColumnSum(1, 2)
    supports: list[Finalize] = [support]
    if average == "items":
        against_rest = minus_rest(MeanOfRatios(), 1)
        supports.append(OfRest(support, 1))
        starts = ranking.starts[:-1]
        shared = np.stack([np.add.reduceat(c, starts) for c in columns], axis=1)
        of_rows = np.stack(columns, axis=1), np.stack(columns, axis=1), supports
    else:
        unit = f"{average} with {unit}"
    metric = Metric(
        name,
        MeanOfRatios(),
        support,
        unit=unit,
        against_rest=against_rest,
        share=True,
        pooled=average == "items" and not data.groups.overlapping,
        differing=against_rest is None,  # as other lists have a rare group
        better="high",
    )
    sums = QuerySums(members.cells, by_cell, shared)
    parameters = {"k": k, "average": average}
    return query_estimates(
        data, metric, sums, parameters, supports, means_of_lists, of_rows
    )


def precision_at_k(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    k: int = 10,
    average: str = "items",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of a group's items in the first k places that are relevant.

    ``P(y = 1 | rank ≤ k, a)``: whether the places that a group gets are given to its
    good items. Without groups, and with ``average="queries"``, it is the precision at
    k.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the numbers of items in
        the first k places are their means over the orders of the tied items.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit. Two columns are users and the items
        that recur among them: both ways have errors, ``V_users + V_items -
        V_users×items``.
    k : int, default=10
        How many positions count, from the top. A shorter list counts
        whole.
    average : {"items", "queries", "clusters"}, default="items"
        "items" pools the items of all queries. "queries" takes the mean over queries
        with items of the group among the first k. "clusters" takes the mean over
        clusters of the value of each, whose queries are summed first, so that a cluster
        with many queries counts once.
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
        One row per group, whose support is the number of its items there, or of
        queries that have some.

    Raises
    ------
    ValueError
        If columns have different lengths, outcomes are not 0 or 1, scores are not
        finite, labels are missing, a query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group that has no item among the first k of any query, whose estimate is
        NaN, and for one in a single query, which has no error.

    See Also
    --------
    recall_at_k : Which share of a group's relevant items is there.
    share_at_k : How many of the places the group has.

    Notes
    -----
    The value is a ratio of two sums over queries, and its variance that of the
    jackknife over queries or clusters; intervals are those of shares, inside [0, 1].
    A random ranking is equal for groups with equal shares of relevant items only.

    Examples
    --------
    >>> from skrankfair.metrics import precision_at_k
    >>> query = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> score = [0.9, 0.7, 0.4, 0.1, 0.8, 0.6, 0.5, 0.3]
    >>> group = ["f", "m", "f", "m", "m", "f", "m", "f"]
    >>> relevant = [1, 0, 0, 1, 0, 1, 1, 0]
    >>> precision_at_k(
    ...     relevant, score, sensitive_features=group, qid=query, k=2
    ... ).estimate
    array([1., 0.])
    """
    return measured(partial(top_estimates, "precision_at_k"), **locals())


def recall_at_k(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    k: int = 10,
    average: str = "items",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of a group's relevant items that are in the first k places.

    ``P(rank ≤ k | y = 1, a)``: the true positive rate of being shown, whose equality is
    equal opportunity of a ranking.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the numbers of items in
        the first k places are their means over the orders of the tied items.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit. Two columns are users and the items
        that recur among them: both ways have errors, ``V_users + V_items -
        V_users×items``.
    k : int, default=10
        How many positions count, from the top. A shorter list counts
        whole.
    average : {"items", "queries", "clusters"}, default="items"
        "items" pools the items of all queries. "queries" takes the mean over queries
        with relevant items of the group. "clusters" takes the mean over clusters of the
        value of each, whose queries are summed first, so that a cluster with many
        queries counts once.
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
        One row per group, whose support is the number of relevant items, or of
        queries that have some.

    Raises
    ------
    ValueError
        If columns have different lengths, outcomes are not 0 or 1, scores are not
        finite, labels are missing, a query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group without relevant items, whose estimate is NaN, and for one in a
        single query, which has no error.

    See Also
    --------
    precision_at_k : Which share of a group's items there is relevant.
    true_positive_rate : The same of decisions.

    Notes
    -----
    The value is a ratio of two sums over queries, and its variance that of the
    jackknife over queries or clusters; intervals are those of shares, inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import recall_at_k
    >>> query = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> score = [0.9, 0.7, 0.4, 0.1, 0.8, 0.6, 0.5, 0.3]
    >>> group = ["f", "m", "f", "m", "m", "f", "m", "f"]
    >>> relevant = [1, 0, 0, 1, 0, 1, 1, 0]
    >>> recall_at_k(relevant, score, sensitive_features=group, qid=query, k=2).estimate
    array([1., 0.])
    """
    return measured(partial(top_estimates, "recall_at_k"), **locals())


def share_at_k(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    k: int = 10,
    average: str = "items",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the first k places that a group has.

    The shares of groups that do not overlap add up to one. Compare a share with that of
    the group among all items, of which `skew_at_k` is the logarithm of the ratio.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the numbers of items in
        the first k places are their means over the orders of the tied items.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit. Two columns are users and the items
        that recur among them: both ways have errors, ``V_users + V_items -
        V_users×items``.
    k : int, default=10
        How many positions count, from the top. A shorter list has as
        many places as items.
    average : {"items", "queries", "clusters"}, default="items"
        "items" pools the items of all queries. "queries" takes the mean over queries of
        the share in the query. "clusters" takes the mean over clusters of the value of
        each, whose queries are summed first, so that a cluster with many queries counts
        once.
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
        One row per group, whose support is the number of its items.

    Raises
    ------
    ValueError
        If columns have different lengths, scores are not finite, labels are missing, a
        query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group in a single query, which has no error.

    See Also
    --------
    skew_at_k : The logarithm of its ratio to the share of the list.
    exposure : Places weighted by how many users look at them.

    Notes
    -----
    The value is a ratio of two sums over queries, and its variance that of the
    jackknife over queries or clusters; intervals are those of shares, inside [0, 1].

    Examples
    --------
    >>> from skrankfair.metrics import share_at_k
    >>> query = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> score = [0.9, 0.7, 0.4, 0.1, 0.8, 0.6, 0.5, 0.3]
    >>> group = ["f", "m", "f", "m", "m", "f", "m", "f"]
    >>> share_at_k(None, score, sensitive_features=group, qid=query, k=1).estimate
    array([0.5, 0.5])
    """
    return measured_by_score(top_share_estimates, **locals())
