"""`dips`: dissatisfaction induced by pairwise swaps (Fabris et al. 2023)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .._estimates.finalize import ColumnSum, Finalize, MeanOfRatios, ratios_minus_rest
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.storage import stored
from .._inputs.groups import Groups
from .._inputs.ranking import RankedData, measured, ranked_data
from .._inputs.validation import Array, check_choice, check_number
from ._pairs.cluster_rows import QuerySums, means_of_units, query_estimates
from ._pairs.swaps import SwapRule, swap_sums, swaps_of_items
from ._position_weights import PositionWeight, check_decreasing

#: The supports: divisors of the sums of a group, and of the rest.
_SUPPORTS = (ColumnSum(1, 2), ColumnSum(3, 4))
_DIFFERENCE = ratios_minus_rest(1, 0.0)
#: The value of each side, and the pairs that it rests on.
_SIDES: dict[str, tuple[Finalize, ColumnSum]] = {
    "group": (MeanOfRatios(), ColumnSum(4, 5)),
    "rest": (MeanOfRatios(column=2, needs=(1,)), ColumnSum(5, 6)),
    "difference": (_DIFFERENCE, ColumnSum(4, 6)),
}


@stored("dips.breakdown")
def _both_directions(result: GroupEstimates) -> pd.DataFrame:
    """Return the dissatisfaction of each group, of the rest, and the difference."""
    sides = []
    for side, (finalize, pairs) in _SIDES.items():
        values = {
            "estimate": result.sums.estimate(finalize),
            "standard_error": np.sqrt(result.sums.variance(finalize)),
            "support": result.sums.unweighted_support(pairs),
        }
        sides.append(pd.DataFrame({"group": list(result.groups), "of": side, **values}))
    return pd.concat(sides).sort_index(kind="stable", ignore_index=True)


def dips(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    position: Any = None,
    position_weight: Any = "uniform",
    k: int | None = None,
    patience: float | None = None,
    tie_cost: float = 0.0,
    comparison: str = "inter",
    against: Hashable = None,
    divisor: str = "maximum",
    average: str = "pairs",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Visits to less relevant items of others that are ranked above a group's items.

    For group a, the visits to items j outside a that are ranked above a more relevant
    item i of a, summed over all such pairs (i, j) of a query and divided by the largest
    sum that any ranking of the same items has. At 0 there is no reason for
    dissatisfaction; 1 is the value of the ranking that offends the group most.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better.
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
    position : array-like of shape (n,) or None, default=None
        Rank at which the item was shown in its query, an integer from 1, where that is
        not the order of the scores. Ranks may be left out. None ranks by `y_score`.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="uniform"
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
    tie_cost : float, default=0
        How much an item of equal relevance that is ranked above counts, in [0, 1]. With
        0 ties do not count; with 1 they count as much as less relevant items.
    comparison : {"inter", "all"}, default="inter"
        "inter" compares the items of a group with those of other groups. "all" compares
        them with all items, of their own group too; without `sensitive_features` that
        is equation 2 of the paper, the dissatisfaction with the list as a whole.
    against : label or None, default=None
        The one group whose items j count, at their ranks in the whole list; it has no
        row of its own, and takes the place of the rest. None means all other items. In
        data without it, as a part of a larger whole may be, no group has a pair.
    divisor : {"maximum", "pairs"}, default="maximum"
        What the sum is divided by: the largest that any ranking has, or the number of
        pairs (i, j), whether or not their outcomes differ. The first rank then counts
        1, and with uniform weights the value is the rank equality error of Kuhlman et
        al. (2019).
    average : {"pairs", "queries", "clusters"}, default="pairs"
        "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
        Pooled, the sum over queries is divided by the sum of their largest values.
        "clusters" takes the mean over clusters of the value of each, whose queries are
        summed first, so that a cluster with many queries counts once.
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
        One row per group. With two groups A and B these are M_AB and M_BA, and
        ``contrast("A", "B")`` is M_AB - M_BA. `GroupEstimates.breakdown` has both
        directions of each group and the rest, and their difference. The support is the
        number of pairs that some ranking makes unfavourable, or with
        ``divisor="pairs"`` of all pairs.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, `position_weight` increases with the rank or is 0 at
        the first, groups overlap or there is none but `against`, or an option is
        unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a group without a pair, whose estimate is NaN, or if there is only one
        query.

    See Also
    --------
    pairwise_accuracy : With ``comparison="inter"`` one minus this metric's default.
    exposure_gap : Visits to the group's items, whoever is above whom.
    item_dissatisfaction : The value of each item.

    Notes
    -----
    `position_weight` is the paper's browsing model F, how likely users are to visit a
    rank; it must not increase with the rank. With d(i, j) = 1 if i is more relevant,
    `tie_cost` if as relevant, the sum of a query is Σ F(rank of j) d(i, j) over i in a
    that are below j not in a. Items of equal score are in random order, and the sum is
    its expectation. It is largest in the ranking that has all other items above those
    of a, the least relevant first; with ``comparison="all"`` in the ranking by
    increasing relevance. The paper leaves the divisor open. Where rows without an
    outcome or ranks of `position` are left out, that ranking is one of the other rows
    among the places that they hold. In a tied block that has lost rows each of these
    places is worth the mean of the block.

    By default fairness is equality, and `GroupEstimates.test` and the p-values compare
    the group with the rest. With other options there is no test, and no p-value of a
    contrast, as a random ranking is not equal for all groups. Where later ranks are
    worth less it dissatisfies a small group more than the rest, whose worst rankings
    have the few items of the group at the top. With ``comparison="all"`` the divisor
    counts a pair within the group once, though either item may have the reason. With
    ``divisor="pairs"`` a group of better outcomes has more reasons; and means over
    queries or clusters are over those that have the group. The value of a random
    ranking is that of a constant score, and `skrankfair.inference.compare` gives the
    distance from it.

    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.

    References
    ----------
    Fabris, A., Silvello, G., Susto, G. A., Biega, A. J. (2023). "Dissatisfaction
    Induced by Pairwise Swaps". IIR. Equations 1 to 5.

    Kuhlman, C., VanValkenburg, M., Rundensteiner, E. (2019). "FARE: Diagnostics for
    Fair Ranking Using Pairwise Error Metrics". WWW.

    Examples
    --------
    >>> from skrankfair.metrics import dips
    >>> query = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    >>> group = ["f", "m", "m", "f", "m", "f", "m", "f", "m"]
    >>> relevance = [2, 0, 1, 0, 2, 1, 2, 1, 0]
    >>> score = [0.2, 0.7, 0.1, 0.4, 0.9, 0.3, 0.8, 0.6, 0.7]
    >>> who = {"sensitive_features": group, "qid": query}
    >>> r = dips(relevance, score, position_weight="dcg", **who)
    >>> r.groups, r.estimate.round(4)
    (('f', 'm'), array([0.6199, 0.    ]))
    """
    return measured(dips_estimates, **locals())


def dips_estimates(
    data: RankedData,
    *,
    position_weight: Any = "uniform",
    k: int | None = None,
    patience: float | None = None,
    tie_cost: float = 0.0,
    comparison: str = "inter",
    against: Hashable = None,
    divisor: str = "maximum",
    average: str = "pairs",
) -> GroupEstimates:
    """Return `dips` of data that is validated and ordered."""
    weight = PositionWeight.of(position_weight, k, patience)
    check_choice(average, "average", ("pairs", "queries", "clusters"))
    data = data.as_shown()
    kinds = ("inter", "all") if against is None else ("inter",)
    check_choice(comparison, "comparison", kinds)
    check_choice(divisor, "divisor", ("maximum", "pairs"))
    rule = _rule(data, weight, tie_cost, comparison, divisor)
    options: dict[str, Any] = {"tie_cost": rule.tie_cost, "average": average}
    # Only options other than the default are stored, so that older results add up.
    options |= {"comparison": comparison} if comparison != "inter" else {}
    options |= {"divisor": divisor} if divisor != "maximum" else {}
    if against is not None:
        data, partner = _without(data, against)
        options["against"] = against
        rule = replace(rule, comparison="against", partner=partner)
    sums = swap_sums(data, rule)

    def means(units: QuerySums) -> QuerySums:
        means_of_units(units.by_cell[:, :4, None], 2)
        return units

    equal = weight.model == "uniform" and comparison == "inter"
    # Otherwise even a random ranking is not equal for all groups: later ranks are worth
    # less, the divisor counts pairs that are no reason, and a mean has other lists.
    tested = equal and divisor == "maximum" and average == "pairs"
    finalize, support = _SIDES["group"]
    metric = Metric(
        name="dips",
        finalize=finalize,
        support=support,
        against_rest=_DIFFERENCE if equal else None,
        breakdown=_both_directions if comparison == "inter" else None,
        share=True,
        better="low",
        differing=not tested,
    )
    parameters = {**weight.parameters, **options}
    return query_estimates(data, metric, sums, parameters, _SUPPORTS, means)


def _rule(
    data: RankedData,
    weight: PositionWeight,
    tie_cost: float,
    comparison: str,
    divisor: str | None,
) -> SwapRule:
    """Return the rule by which pairs count, from checked options."""
    check_number(tie_cost, "tie_cost", 0, 1)
    visits = weight.visits(data.ranking.n_places)
    check_decreasing(visits)
    if divisor == "pairs":  # then each pair counts 1 at most
        visits = visits / visits[0]
    return SwapRule(visits, float(tie_cost), comparison, divisor)


def _without(data: RankedData, group: Hashable) -> tuple[RankedData, Array]:
    """Return the data without the label of a group, and which rows are of the group."""
    groups = data.groups
    groups.check_disjoint("against")
    try:
        left_out = {group}
    except TypeError:  # not hashable
        raise ValueError(
            f"against must be the label of a group; got {group!r}."
        ) from None
    others = [i for i, label in enumerate(groups.labels) if label not in left_out]
    if not others:
        raise ValueError(
            f"against must leave other groups; got {group!r}, the only one."
        )
    labels = tuple(groups.labels[index] for index in others)
    member = groups.values[:, None] == np.array(others, dtype=groups.values.dtype)
    data = data.with_groups(Groups(labels, member))
    return data, ~member.any(axis=1)


def item_dissatisfaction(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    position_weight: Any = "uniform",
    k: int | None = None,
    patience: float | None = None,
    tie_cost: float = 0.0,
    divisor: str | None = None,
) -> Array:
    """Visits to less relevant items that are ranked above each item.

    The provider of an item looks at its place in the list: which items of less
    relevance are ranked above it, and how many users see them? The sum of `dips` over
    the items of a group is made of these values, which `divisor` relates to what could
    happen to the item.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. Only items of other
        groups then count. None makes all rows one group, and all items count.
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="uniform"
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
    tie_cost : float, default=0
        How much an item of equal relevance that is ranked above counts, in [0, 1]. With
        0 ties do not count; with 1 they count as much as less relevant items.
    divisor : {"maximum", "pairs"} or None, default=None
        What the sum of an item is divided by: the largest that any ranking gives it,
        the number of items that it is compared with, or nothing.

    Returns
    -------
    values : ndarray of shape (n,)
        One value per row of the input, not negative; an item that has nothing to
        be divided by is NaN. A value is a fact about one list, and has no error.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing,
        groups overlap, `position_weight` increases with the rank or is 0 at the first,
        or an option is unknown.

    See Also
    --------
    dips : The sum over the items of a group, divided, with errors.

    References
    ----------
    Fabris, A., Silvello, G., Susto, G. A., Biega, A. J. (2023). "Dissatisfaction
    Induced by Pairwise Swaps". IIR. Equation 2: the inner sum.

    Examples
    --------
    >>> from skrankfair.metrics import item_dissatisfaction
    >>> relevance, score = [0, 2, 1, 0], [4, 3, 2, 1]
    >>> item_dissatisfaction(relevance, score, position_weight="reciprocal")
    array([0., 1., 1., 0.])
    >>> item_dissatisfaction(relevance, score, divisor="maximum").round(4)
    array([   nan, 0.3333, 0.5   ,    nan])
    """
    check_choice(divisor, "divisor", (None, "maximum", "pairs"))
    data = ranked_data(y_true, y_score, sensitive_features=sensitive_features, qid=qid)
    data.groups.check_disjoint("values of items")
    weight = PositionWeight.of(position_weight, k, patience)
    comparison = "all" if sensitive_features is None else "inter"
    rule = _rule(data, weight, tie_cost, comparison, divisor)
    value, largest, pairs = swaps_of_items(data, rule)
    if divisor is not None:
        most = largest if divisor == "maximum" else pairs
        value = np.divide(value, most, out=np.full(value.size, np.nan), where=most > 0)
    out = np.empty(value.size)
    out[data.ranking.order] = value
    return out
