"""`exposure` and `exposure_gap`: shares of exposure, and their gap from merit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._estimates.finalize import Finalize, quotient, without_rounding
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.storage import stored
from .._inputs.ranking import RankedData, Ranking, measured, measured_by_score
from .._inputs.validation import Array, check_choice
from ._pairs.cluster_rows import QuerySums, query_estimates
from ._position_weights import PositionWeight


@stored("Share")
@dataclass(frozen=True)
class Share:
    """A column of the group over the shared total, NaN for a group without items."""

    column: int = 0  # column of the group, and of the shared totals

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the shares, shape (..., G)."""
        value = by_group[..., self.column]
        total = np.broadcast_to(shared[..., None, self.column], value.shape)
        value = total - without_rounding(total - value, total)
        return quotient(value, total, by_group[..., -1].real != 0)


@stored("ShareGap")
def share_gap(by_group: Array, shared: Array) -> Array:
    """Return the share of the first column minus that of the second, (..., G)."""
    return Share(0)(by_group, shared) - Share(1)(by_group, shared)


@stored("ItemCount")
def item_count(by_group: Array, shared: Array) -> Array:
    """Return the number of items, shape (..., G)."""
    return np.array(by_group[..., -1])


@stored("MeanShare")
def mean_share(by_group: Array, shared: Array) -> Array:
    """Return the mean of the shared totals, whatever the group has, shape (..., G)."""
    return np.broadcast_to(shared.mean(axis=-1)[..., None], by_group.shape[:-1])


@stored("HasItems")
def has_items(by_group: Array, shared: Array) -> Array:
    """Return the mean total of a unit with items, 0 without, shape (..., G).

    Where units count alike the totals are 1, and those of several units their number.
    """
    return mean_share(by_group, shared) * (by_group[..., -1] > 0)


def means_of_shares(units: QuerySums) -> QuerySums:
    """Return the shares of each unit, whose totals are then 1, or 0 if it has none."""
    valid = np.all(units.shared > 0, axis=1, keepdims=True)
    totals = np.where(valid, units.shared, 1.0)[units.cells.query]
    by_cell, number = units.by_cell.copy(), totals.shape[1]
    by_cell[:, :number] /= totals
    orders = 2 * np.arange(1, by_cell.shape[1] - number)  # of `powers_by_chance`
    by_cell[:, number:-1] /= totals[:, :1] ** orders
    shared = np.where(valid, 1.0, np.zeros(units.shared.shape))
    return QuerySums(units.cells, by_cell, shared)


def _target_values(target: str, data: RankedData, visits: Array) -> Array:
    """Return the merit of each ranked row, to be summed by group."""
    ranking = data.ranking
    if target == "population":
        return np.ones(ranking.n_rows)
    if target == "relevance":
        return data.y_true
    # In the ideal ranking items of equal relevance are in random order.
    ideal = Ranking.from_scores(data.y_true, ranking.query)
    values = np.empty(ranking.n_rows)
    values[ideal.order] = ideal.tie_means(ranking.values_held(visits))
    return values


def _share_sums(
    data: RankedData, weight: PositionWeight, target: str | None
) -> tuple[QuerySums, Array | None]:
    """Return exposure, target (if there is one) and items by query.

    The sums by cell have shape (E, C), the number of items last, and the shared totals
    (Q, D). Also returned are exposure and target of each ranked row, (n, D), if items
    recur. With a target, `powers_by_chance` follow it.
    """
    visits = weight.visits(data.ranking.n_places)
    parts, of_rows = [], []
    for _, block in data.blocks():
        ranking, members = block.ranking, block.memberships
        columns = [ranking.values_at(visits)]
        if target is not None:
            columns.append(_target_values(target, block, visits))
        with np.errstate(over="ignore"):
            by_cell = [members.sums_of_rows(values) for values in columns]
            totals = np.add.reduceat(columns, ranking.starts[:-1], axis=1).T
        if target is not None:
            by_cell += [*_powers_by_chance(block, columns, totals)]
        if data.item is not None:
            of_rows.append(np.stack(columns, axis=1))
        sums_and_sizes = np.column_stack([*by_cell, members.sizes])
        parts.append(QuerySums(members.cells, sums_and_sizes, totals))
    sums = QuerySums.joined(parts)
    if not np.isfinite(sums.shared.sum(axis=0)).all():
        raise ValueError(
            "y_true must have a finite sum for target='relevance'; the largest is "
            f"{data.y_true.max():g}."
        )
    valid, query = np.all(sums.shared > 0, axis=1), sums.cells.query
    sums.by_cell[~valid[query]], sums.shared[~valid] = 0.0, 0.0
    in_valid = valid[data.ranking.query, None]
    return sums, np.concatenate(of_rows) * in_valid if of_rows else None


def _powers_by_chance(block: RankedData, columns: list[Array], totals: Array) -> Array:
    """Return what lists show of variance if groups do not matter, shape (2, E).

    The rows of a group are then m of the n of a list by chance: the variance of the sum
    of their surplus, exposure over what the target would have of it, is
    ``m (n - m) / (n (n - 1)) Σ surplus²``. The second row is the same of fourth powers.
    Both are of influences, which have the weight of the query.
    """
    ranking, members = block.ranking, block.memberships
    query, size = members.cells.query, members.sizes
    ratio = np.nan_to_num(quotient(*totals.T))
    surplus, n = columns[0] - columns[1] * ratio[ranking.query], ranking.lengths[query]
    first = ranking.starts[:-1]
    of_lists = np.stack([np.add.reduceat(surplus**p, first) for p in (2, 4)])
    if block.query_weight is not None:
        of_lists *= block.query_weight ** [[1], [3]]
    return of_lists[:, query] * size * (n - size) / np.maximum(n * (n - 1), 1)


@stored("exposure_gap.powers_by_chance")
def powers_by_chance(by_group: Array, shared: Array) -> Array:
    """Return sums of squares and fourth powers of influences, shape (2, ..., G)."""
    total = shared[..., :1]
    return np.stack([by_group[..., 2] / total**2, by_group[..., 3] / total**4])


@stored("exposure_gap.breakdown")
def _both_shares(result: GroupEstimates) -> pd.DataFrame:
    """Return the share of exposure and the target of each group."""
    columns: dict[str, Any] = {"group": pd.Series(list(result.groups), dtype=object)}
    for index, name in enumerate(("exposure", "target")):
        columns[name] = result.sums.estimate(Share(index))
    columns |= {"estimate": result.estimate, "standard_error": result.standard_error}
    return pd.DataFrame({**columns, "support": result.support})


def share_estimates(
    data: RankedData,
    *,
    position_weight: Any = "dcg",
    k: int | None = None,
    patience: float | None = None,
    average: str = "queries",
    target: str | None = None,
) -> GroupEstimates:
    """Return shares of exposure, or with a target their differences from it."""
    weight = PositionWeight.of(position_weight, k, patience)
    if target == "relevance" and data.y_true.min() < 0:
        raise ValueError(
            "y_true must not be negative for target='relevance'; got "
            f"{data.y_true.min():g}."
        )
    check_choice(average, "average", ("queries", "clusters", "amortized"))
    parameters = {**weight.parameters, "average": average}
    if target is None:
        metric = share_metric("exposure", item_count)
    else:
        parameters = {"target": target, **parameters}
        metric = Metric(
            name="exposure_gap",
            finalize=share_gap,
            support=item_count,
            unit="items",
            fair_value=0.0,
            disparity="l1",
            breakdown=_both_shares,
            relative=not data.groups.overlapping,
            by_chance=(powers_by_chance,),
        )
    return shares_of_exposure(data, metric, weight, parameters, target)


def share_metric(name: str, support: Finalize) -> Metric:
    """Return the metric of shares, which are as unlike as the sizes of the groups."""
    return Metric(name, Share(), support, unit="items", share=True, differing=True)


def shares_of_exposure(
    data: RankedData,
    metric: Metric,
    weight: PositionWeight,
    parameters: Mapping[str, Any],
    target: str | None = None,
) -> GroupEstimates:
    """Return shares of exposure, averaged as the parameters say; see `_share_sums`."""
    average = parameters["average"]
    sums, of_rows = _share_sums(data, weight, target)
    supports = [has_items] if average in ("queries", "clusters") else None
    by_row = None
    if average != "clusters" and of_rows is not None:
        if average == "queries":
            total = np.where(sums.shared > 0, sums.shared, 1.0)
            of_rows = of_rows / total[data.ranking.query]
        more = sums.by_cell.shape[1] - of_rows.shape[1]
        with_count = np.pad(of_rows, ((0, 0), (0, more)))
        with_count[:, -1] = 1.0
        by_row = with_count, of_rows, [mean_share]
    return query_estimates(
        data, metric, sums, parameters, supports, means_of_shares, by_row
    )


def exposure(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    position: Any = None,
    position_weight: Any = "dcg",
    k: int | None = None,
    patience: float | None = None,
    average: str = "queries",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of the users' attention that goes to the items of a group.

    The exposure of an item is the `position_weight` of its rank, such as how likely
    users are to look there. That of a group is the sum over its items, and its share is
    that of the sum over all items. It describes the ranking; `exposure_gap` compares it
    with what the group merits.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. Items of equal score are in random
        order: each has the mean exposure of their positions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list. One list has no standard error.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit. Two columns are users and the items
        that recur among them: both ways have errors, ``V_users + V_items -
        V_users×items``.
    position : array-like of shape (n,) or None, default=None
        Rank at which the item was shown in its query, an integer from 1, where that is
        not the order of the scores. Ranks may be left out. None ranks by `y_score`.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
        What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
        ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
        function that takes the array of ranks and returns their weights, or an array
        of the weights of the first ranks, which zeros follow.
    k : int or None, default=None
        How many ranks ``position_weight="top"`` counts; None means 10. It must be None
        for all other weights.
    patience : float or None, default=None
        The probability of going on to the next rank, in [0, 1], of which
        ``position_weight="geometric"`` takes powers; None means 0.8. It must be None
        for all other weights.
    average : {"queries", "clusters", "amortized"}, default="queries"
        "queries" takes the mean of the metric over lists. "amortized" takes the share
        of the exposure summed over queries, in which long lists count more. "clusters"
        takes the mean over clusters of the value of each, whose queries are summed
        first, so that a cluster with many queries counts once.
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
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, `position_weight` is 0 at the first rank, or an option
        is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no items, so that its estimate is NaN, or if there is only one
        query.

    See Also
    --------
    exposure_gap : The share minus what the group merits.
    pairwise_exposure : How often the group is ranked above the others, by pairs.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over all
    clusters, θ_(-q) the estimate without cluster q and Q the number of clusters with
    items of the group.

    References
    ----------
    Singh, A., Joachims, T. (2018). "Fairness of Exposure in Rankings". KDD.

    Examples
    --------
    >>> from skrankfair.metrics import exposure
    >>> query = [0, 0, 0, 1, 1, 1]
    >>> group = ["f", "m", "m", "f", "m", "f"]
    >>> score = [0.2, 0.7, 0.1, 0.4, 0.9, 0.3]
    >>> exposure(None, score, sensitive_features=group, qid=query).estimate.round(4)
    array([0.4134, 0.5866])
    """
    return measured_by_score(share_estimates, **locals())


def exposure_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    position: Any = None,
    target: str = "expected",
    position_weight: Any = "dcg",
    k: int | None = None,
    patience: float | None = None,
    average: str = "queries",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Share of exposure of a group minus the share that it merits.

    The fair value is 0; a positive value says that the group is visited more than it
    merits. `GroupEstimates.disparity` is the sum of the absolute values over groups.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        Outcomes or relevance, binary, graded or real; larger is better. They must not
        be negative for ``target="relevance"``, and may be None for
        ``target="population"``.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. Items of equal score are in random
        order: each has the mean exposure of their positions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list. One list has no standard error.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit. Two columns are users and the items
        that recur among them: both ways have errors, ``V_users + V_items -
        V_users×items``.
    position : array-like of shape (n,) or None, default=None
        Rank at which the item was shown in its query, an integer from 1, where that is
        not the order of the scores. Ranks may be left out. None ranks by `y_score`.
    target : {"expected", "relevance", "population"}, default="expected"
        The share that the group merits: "expected": its share of exposure in the
        ranking by relevance, items of equal relevance in random order (expected
        exposure, Diaz et al.); "relevance": its share of the summed relevance (equity
        of attention, Biega et al.); "population": its share of the items.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
        What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
        ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
        function that takes the array of ranks and returns their weights, or an array
        of the weights of the first ranks, which zeros follow.
    k : int or None, default=None
        How many ranks ``position_weight="top"`` counts; None means 10. It must be None
        for all other weights.
    patience : float or None, default=None
        The probability of going on to the next rank, in [0, 1], of which
        ``position_weight="geometric"`` takes powers; None means 0.8. It must be None
        for all other weights.
    average : {"queries", "clusters", "amortized"}, default="queries"
        "queries" takes the mean of the metric over lists. "amortized" takes the gap
        between the shares of exposure and of the target summed over queries. Queries
        whose relevance is all 0 have no shares of it, and are left out for
        ``target="relevance"``. "clusters" takes the mean over clusters of the value of
        each, whose queries are summed first, so that a cluster with many queries counts
        once.
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
        One row per group, whose support is the number of its items in queries that
        count. `GroupEstimates.breakdown` has both shares.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, relevance is negative
        where it is shared out, labels are missing, a query is in two clusters,
        `position_weight` is 0 at the first rank, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no items, so that its estimate is NaN, or if there is only one
        query.

    See Also
    --------
    exposure : The share of exposure alone.
    dips : Whether less relevant items are ranked above.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over all
    clusters, θ_(-q) the estimate without cluster q and Q the number of clusters with
    items of the group.

    The items of a small group may be at the top, or not, by chance. Where few items
    make most of its error, the variance is at least that of groups assigned to the
    items by chance, ``Σ_q m (n - m) / (n (n - 1)) Σ_i (e_i - t_i)²`` over lists of n
    items, m of them of the group; e and t are the shares of an item in exposure and
    target ("amortized": sums, the target's scaled to the exposure of the list). For a
    mean over lists or clusters it is divided by their number squared. Of two-way errors
    the items are those that recur, with the sum of their ``e - t`` over lists. One-way
    errors of two independent samples each have it.

    Where rows without an outcome or ranks of `position` are left out, exposure is that
    of the other rows at their places, and the ranking by relevance is one of these rows
    among the places that they hold. In a tied block that has lost rows each of these
    places is worth the mean of the block.

    References
    ----------
    Diaz, F., Mitra, B., Ekstrand, M. D., Biega, A. J., Carterette, B. (2020).
    "Evaluating Stochastic Rankings with Expected Exposure". CIKM.

    Biega, A. J., Gummadi, K. P., Weikum, G. (2018). "Equity of Attention: Amortizing
    Individual Fairness in Rankings". SIGIR.

    Fabris, A., Silvello, G., Susto, G. A., Biega, A. J. (2023). "Dissatisfaction
    Induced by Pairwise Swaps". IIR. Section 5.

    Examples
    --------
    >>> from skrankfair.metrics import exposure_gap
    >>> query = [0, 0, 0, 1, 1, 1]
    >>> group = ["f", "m", "m", "f", "m", "f"]
    >>> relevance = [1, 1, 0, 1, 0, 0]
    >>> score = [0.2, 0.7, 0.1, 0.4, 0.9, 0.3]
    >>> r = exposure_gap(relevance, score, sensitive_features=group, qid=query)
    >>> r.estimate.round(4), round(r.disparity(), 4)
    (array([-0.1453,  0.1453]), 0.2905)
    """
    check_choice(target, "target", ("expected", "relevance", "population"))
    y_true = None if target == "population" else y_true
    return measured(share_estimates, **locals())
