"""Pairwise accuracy, exposure and preference (Beutel et al. 2019), and the AUC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .._estimates.finalize import (
    BucketRatio,
    ColumnSum,
    MeanOfRatios,
    PairedDifference,
    ratios_minus_rest,
)
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.storage import stored
from .._inputs.columns import may_lack
from .._inputs.ranking import RankedData, measured
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_given,
    check_number,
    weighted_quantile,
)
from ._pairs.cluster_rows import support_columns
from ._pairs.item_rows import pair_sums, warn_undefined_pairs
from ._pairs.pairwise import (
    CrossPairs,
    OutcomeCounts,
    OutcomePairs,
    ScorePairs,
    outcome_codes,
)

COMPARISONS = ("all", "intra", "inter")


def _outcome_counts(data: RankedData) -> OutcomeCounts:
    """Return the pair counts of the data, made once however many metrics ask."""
    if "outcome_counts" not in data.cache:
        codes = outcome_codes(data.y_true, data.ranking)
        counts = OutcomeCounts(data.ranking, codes, data.item_weight)
        data.cache["outcome_counts"] = counts
    return data.cache["outcome_counts"]


def _bucket_edges(
    engagement: Array, bins: Any, preferred: Array, weight: Array | None
) -> tuple[float, ...]:
    """Return the edges of the strata, from the items that can be preferred."""
    values = engagement[preferred]
    if isinstance(bins, int | np.integer):
        check_number(bins, "bins", 1, 1000, integer=True)
        if not values.size:
            return (-np.inf, np.inf)
        levels = np.linspace(0, 1, bins + 1)
        weight = None if weight is None else weight[preferred]
        # By a definition in which a row of weight 2 is the same as two rows.
        edges = np.unique(weighted_quantile(values, levels, weight))
        return tuple(edges if edges.size > 1 else np.repeat(edges, 2))
    try:
        edges = np.asarray(bins)
    except ValueError:  # lists of several lengths
        edges = np.empty(0)
    numbers = edges.ndim == 1 and edges.size > 1 and edges.dtype.kind in "iuf"
    # Where nearly all engagement is one value, its quantiles coincide.
    one_value = numbers and edges.size == 2 and edges[0] == edges[1]
    if not numbers or not (one_value or (edges[1:] > edges[:-1]).all()):
        raise ValueError(
            "bins must be a number of bins or at least two increasing edges; got "
            f"{bins!r}."
        )
    outside = (values < edges[0]) | (values > edges[-1])
    if outside.any():
        raise ValueError(
            f"bins must cover engagement; {int(outside.sum())} preferred items lie "
            f"outside [{edges[0]:g}, {edges[-1]:g}] (an edge may be infinite)."
        )
    return tuple(edges.astype(float).tolist())


def strata_of(
    data: RankedData, engagement: Any, bins: Any, preferred: Array | None = None
) -> tuple[Any, dict[str, Any], int]:
    """Return the stratum of each input row, a first pass of edges, and their number.

    `preferred` are the rows that are in strata; None: those better than another row.
    Without `engagement` there is one, and the strata of rows are None.
    """
    if engagement is None:
        return None, {}, 1
    values = data.column(engagement, "engagement", allow_nan=True)
    if preferred is None:
        preferred = _outcome_counts(data).all_worse[1] > 0
    unknown = np.isnan(values) & preferred
    if unknown.any():
        row = data.kept[np.argmax(unknown)]
        raise ValueError(
            "engagement must be known (not NaN) where an item has a better outcome "
            f"than another of its query; it is NaN in row {row}."
        )
    edges = _bucket_edges(values, bins, preferred, data.pair_weight)
    # By input row, as blocks and lists of the data have other orders.
    by_row = np.empty(values.size, dtype=np.int64)
    of_ranked = np.searchsorted(np.asarray(edges[1:-1]), values, side="right")
    by_row[data.ranking.order] = of_ranked * preferred
    return by_row, {"engagement_edges": edges}, len(edges) - 1


@stored("pairwise_accuracy.breakdown")
def breakdown_of_strata(result: GroupEstimates) -> pd.DataFrame:
    """Return the estimates by group and stratum of engagement, and their gaps."""
    edges, frames = result.first_pass["engagement_edges"], []
    strata = [_stratum(result, bucket) for bucket in range(len(edges) - 1)]
    pvalues = np.array([stratum.pvalue for stratum in strata])
    corrected = np.minimum(pvalues * (~np.isnan(pvalues)).sum(axis=0), 1.0)
    for bucket, stratum in enumerate(strata):
        values = {
            "group": list(result.groups),
            "bucket": bucket,
            "low": edges[bucket],
            "high": edges[bucket + 1],
            "estimate": stratum.estimate,
            "standard_error": stratum.standard_error,
            "support": stratum.support,
        }
        if stratum.has_pvalue:
            gap = stratum.as_gap()
            values["gap"] = gap.estimate - (gap.fair_value or 0.0)
            values["gap_standard_error"] = gap.standard_error
            values["pvalue"] = stratum.pvalue
            values["pvalue_corrected"] = corrected[bucket]
        frames.append(pd.DataFrame(values))
    return pd.concat(frames, ignore_index=True)


def _stratum(result: GroupEstimates, bucket: int) -> GroupEstimates:
    """Return the result of one stratum, with the tests of any result."""
    metric, n_supports = result.metric, len(result.sums.supports)
    n_buckets = len(result.first_pass["engagement_edges"]) - 1
    n_sides = 1 if metric.against_rest is None else 2
    # The supports of the strata follow those of the group and the rest.
    needs = (n_sides + bucket,) if n_buckets > 1 else (0,)
    finalize = BucketRatio(n_buckets, needs=needs, bucket=bucket)
    against_rest, of_rest = None, getattr(metric.against_rest, "second", None)
    if of_rest is not None:
        # Results stored by older versions lack supports of the rest by stratum.
        of_stratum = n_sides + n_buckets + bucket
        rest = replace(
            finalize,
            column=2,
            shared_weight=of_rest.shared_weight,
            needs=(of_stratum if of_stratum < n_supports else 1,),
        )
        against_rest = PairedDifference.of(finalize, rest)
    of_all: Any = metric.support
    column = of_all.start + bucket
    one = replace(
        metric,
        finalize=finalize,
        support=ColumnSum(column, column + 1),
        against_rest=against_rest,
        breakdown=None,
    )
    return replace(result, metric=one)


def accuracy_estimates(
    data: RankedData,
    *,
    name: str = "pairwise_accuracy",
    comparison: str = "all",
    engagement: Any = None,
    bins: Any = 4,
    k: int | None = None,
    average: str = "pairs",
    variance: str = "auto",
) -> GroupEstimates:
    """Return `pairwise_accuracy` (or `auc`) of data that is validated and ordered."""
    check_choice(comparison, "comparison", COMPARISONS)
    if name == "auc":
        data.check_binary(name)
    by_row, first_pass, n_buckets = strata_of(data, engagement, bins)
    inside = comparison == "intra"

    def make_pairs(data: RankedData) -> OutcomePairs:
        return OutcomePairs(
            data.ranking,
            data.groups,
            _outcome_counts(data),
            comparison,
            None if by_row is None else by_row[data.ranking.order],
            n_buckets,
            data.memberships if inside and not data.groups.overlapping else None,
        )

    shared_weight = 0.0 if comparison == "inter" else 1.0
    # Four columns: value and number of the pairs, of the group and of the rest.
    support = support_columns(average, 4, n_buckets)
    due = None if k is None or average != "pairs" or first_pass else 4
    gap = ratios_minus_rest(n_buckets, shared_weight, due)
    metric = Metric(
        name=name,
        finalize=gap.first,
        support=support,
        against_rest=gap,
        breakdown=breakdown_of_strata if first_pass else None,
        share=True,
        pooled=not data.groups.overlapping,
        differing=average != "pairs",  # see the notes of `pairwise_accuracy`
        better="high",
    )
    result = GroupEstimates(
        metric=metric,
        sums=pair_sums(data, make_pairs, variance, average, k=k),
        parameters={"comparison": comparison, **_cut(k), "average": average},
        first_pass=first_pass,
        missing=data.missing,
    )
    return warn_undefined_pairs(result, data)


def pairwise_accuracy(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    comparison: str = "all",
    engagement: Any = None,
    bins: Any = 4,
    k: int | None = None,
    average: str = "pairs",
    variance: str = "auto",
    sample_weight: Any = None,
    item_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How often a better item of the group is ranked above a worse item.

    For group a, ``P(s_i > s_j | y_i > y_j, same query)`` over pairs whose better item
    i is in a; score ties count one half. Fairness is equality: `test` and the p-values
    compare each group with the rest.

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
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    comparison : {"all", "intra", "inter"}, default="all"
        Which worse items j count: all, those of the group of i (intra-group), or those
        outside it (inter-group). ``all = share_intra · intra + share_inter · inter``
        holds exactly (eq. 7 of the paper).
    engagement : array-like of shape (n,) or None, default=None
        Engagement after the click. The accuracy is then taken within strata of the
        engagement of the better item, and the estimate is the plain mean over the
        strata with pairs (§6.1); `GroupEstimates.breakdown` has the strata. May be
        NaN where an item is better than no other.
    bins : int or sequence of float, default=4
        Number of strata of equal size, or their increasing edges. Edges chosen from
        the data are a first pass: parts add up only if they share them.
    k : int or None, default=None
        How many positions count, from the top: only pairs with an item in the first k
        of its query, whose exchange would change what is there. Tied items are there
        with the probability that a random order gives them. None takes all pairs.
    average : {"pairs", "queries", "clusters"}, default="pairs"
        "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
        "clusters" takes the mean over clusters of the value of each, whose queries are
        summed first, so that a cluster with many queries counts once.
    variance : {"auto", "cluster", "item"}, default="auto"
        "cluster": queries (or `cluster`) are independent. "item": items are, and pairs
        that share one are not. "auto" is "item" for one list without `qid` and with
        no `cluster` or several, and "cluster" otherwise: with `qid` also for one query,
        which has no standard error then, but can be added to other parts of the data.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    item_weight : array-like of shape (n,) or None, default=None
        Weight of the item, such as a survey weight: a pair counts the product of the
        weights of its two items. `sample_weight` weighs whole queries.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. A row that lacks its outcome alone keeps its
        place in the ranking.

    Returns
    -------
    GroupEstimates
        One row per group.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no pair, so that its estimate is NaN.

    See Also
    --------
    auc : The same of outcomes of 0 and 1, by its usual name.
    pairwise_exposure : How often a group's item is ranked above one of the others.
    pairwise_preference : How often a group's item has the better outcome.
    matched_pair_calibration : Outcomes of items with nearly the same score.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q. With
    ``variance="item"`` it is DeLong's: each item is left out with all its pairs, and
    the items of the group and all others are two samples, whose sums are added.

    In an intra comparison the rest of a group are the pairs inside each other group.
    Pairs across two of these are left out, since unlike base rates alone make their
    order better. Where groups overlap the rest are all pairs without an item of it.

    With `k` a fair ranking may have no item of a small group in the first places. N are
    expected there, if as large a share of its pairs as of all pairs of the list has the
    better item there (or the worse one), and none is with probability ``exp(-N)``. If
    there is none, the interval is that of as many trials as all fail with this
    probability; all items of a cluster count as one. With fewer than four expected
    items a test can hardly find anything.

    A mean over queries or clusters counts the ratio of each alike, however few pairs it
    has. The one item of a rare group has 1 pair or 20, by its place, and is mostly in
    long lists, or in those with many good items, which a ranker may order less well:
    the means differ with the size of the group in fair rankings too. So only
    ``average="pairs"`` has p-values. There, let queries or clusters count alike by a
    `sample_weight` of 1 over their numbers of pairs (or of rows, squared).

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons". KDD. Definitions 3-5, eq. 7 and §6.1.

    DeLong, E. R., DeLong, D. M., Clarke-Pearson, D. L. (1988). "Comparing the Areas
    under Two or More Correlated Receiver Operating Characteristic Curves: A
    Nonparametric Approach". Biometrics 44(3).

    Examples
    --------
    >>> from skrankfair.metrics import pairwise_accuracy
    >>> query = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    >>> group = ["f", "m", "m", "f", "m", "f", "m", "f", "m"]
    >>> clicked = [1, 0, 0, 0, 1, 0, 1, 1, 0]
    >>> score = [0.2, 0.7, 0.1, 0.4, 0.9, 0.3, 0.8, 0.6, 0.7]
    >>> r = pairwise_accuracy(clicked, score, sensitive_features=group, qid=query)
    >>> r.groups, r.estimate
    (('f', 'm'), array([0.33333333, 1.        ]))
    """
    return measured(accuracy_estimates, **locals())


def auc(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    comparison: str = "intra",
    average: str = "pairs",
    variance: str = "auto",
    sample_weight: Any = None,
    item_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Area under the ROC curve of each group, and across groups.

    It is `pairwise_accuracy` of outcomes of 0 and 1: the share of pairs of a positive
    and a negative row in which the positive has the higher score, ``P(s_i > s_j | y_i =
    1, y_j = 0)``; ties count one half. With ``comparison="inter"`` the positives are
    those of the group and the negatives those of the others, the cross-group xAUC.

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
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    comparison : {"intra", "inter", "all"}, default="intra"
        Whose negatives the positives of the group are compared with: those of the
        group (its AUC), those of the others (xAUC), or all.
    average : {"pairs", "queries", "clusters"}, default="pairs"
        "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
        "clusters" takes the mean over clusters of the value of each, whose queries are
        summed first, so that a cluster with many queries counts once.
    variance : {"auto", "cluster", "item"}, default="auto"
        As in `pairwise_accuracy`.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    item_weight : array-like of shape (n,) or None, default=None
        Weight of the item, such as a survey weight: a pair counts the product of the
        weights of its two items. `sample_weight` weighs whole queries.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group, whose support is the number of pairs.

    Raises
    ------
    ValueError
        If columns have different lengths, outcomes are not 0 or 1, scores are not
        finite, labels are missing, a query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no positives or there are no negatives to compare them with, so
        that its estimate is NaN.

    See Also
    --------
    pairwise_accuracy : The same for graded and real outcomes.
    sklearn.metrics.roc_auc_score : The value alone, of one group.

    Notes
    -----
    The variance is that of `pairwise_accuracy`: in one list DeLong's for each group,
    and with `cluster` the jackknife over clusters of rows. By default each group is
    compared with the pairs inside the other groups, so that unlike base rates, which
    order people of different groups, make no difference.

    References
    ----------
    DeLong, E. R., DeLong, D. M., Clarke-Pearson, D. L. (1988). "Comparing the Areas
    under Two or More Correlated Receiver Operating Characteristic Curves: A
    Nonparametric Approach". Biometrics 44(3).

    Kallus, N., Zhou, A. (2019). "The Fairness of Risk Scores Beyond Classification:
    Bipartite Ranking and the xAUC Metric". NeurIPS.

    Examples
    --------
    >>> from skrankfair.metrics import auc
    >>> outcome = [1, 0, 1, 0, 0, 1, 0, 1]
    >>> risk = [0.9, 0.2, 0.3, 0.4, 0.6, 0.7, 0.1, 0.5]
    >>> group = list("aaaabbbb")
    >>> auc(outcome, risk, sensitive_features=group).estimate
    array([0.75, 0.75])
    >>> auc(outcome, risk, sensitive_features=group, comparison="inter").estimate
    array([0.75, 1.  ])
    """
    return measured(partial(accuracy_estimates, name="auc"), **locals())


def _cut(k: int | None) -> dict[str, int]:
    """Return the parameter of a result, if there is a cut."""
    return {} if k is None else {"k": k}


def cross_estimates(
    name: str,
    data: RankedData,
    *,
    k: int | None = None,
    average: str = "pairs",
    variance: str = "auto",
    **strata: Any,
) -> GroupEstimates:
    """Return P(s_i > s_j | i in a, j not in a) of data that is ordered by s.

    `name` says what s is: the scores in `pairwise_exposure`, which has a fair value, or
    the outcomes in `pairwise_preference`, whose ties do not count. `strata` are the
    engagement, with which only pairs of unlike outcomes count, and the bins. An audit,
    which looks for a parameter of this name, gives its engagement to accuracies alone.
    """
    of_scores = name == "pairwise_exposure"
    by_row, first_pass, n_buckets = strata_of(
        data, strata.get("engagement"), strata.get("bins")
    )
    if of_scores and by_row is None:
        data = data.among_those_left()  # as it needs no outcomes
    support = support_columns(average, 2, n_buckets)
    # Among pairs of unlike outcomes, or with an item in the first places, an item has
    # the more pairs the more of them it wins, or loses.
    due = None if k is None or average != "pairs" or first_pass else 2
    alike = average == "pairs" or (of_scores and by_row is None and k is None)
    metric = Metric(
        name,
        MeanOfRatios(n_buckets, due=due),
        support,
        fair_value=0.5 if of_scores and alike else None,
        disparity="max_abs" if of_scores and alike else "difference",
        breakdown=breakdown_of_strata if first_pass else None,
        share=True,
        differing=not alike,
    )

    def make_pairs(data: RankedData) -> ScorePairs | CrossPairs:
        ranking, groups = data.ranking, data.groups
        if by_row is None:
            return ScorePairs(ranking, groups, not of_scores, data.item_weight)
        counts, bucket = _outcome_counts(data), by_row[ranking.order]
        return CrossPairs(ranking, groups, counts, "inter", bucket, n_buckets)

    sums = pair_sums(data, make_pairs, variance, average, k=k)
    parameters = {**_cut(k), "average": average}
    result = GroupEstimates(metric, sums, parameters, first_pass, missing=data.missing)
    return warn_undefined_pairs(result, data)


def preference_estimates(data: RankedData, **options: Any) -> GroupEstimates:
    """Return `pairwise_preference` of data that is ordered by its scores."""
    data = data.ranked_by(data.y_true)
    return cross_estimates("pairwise_preference", data, **options)


def pairwise_exposure(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    engagement: Any = None,
    bins: Any = 4,
    k: int | None = None,
    average: str = "pairs",
    variance: str = "auto",
    sample_weight: Any = None,
    item_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How often a group's item is ranked above one of the others.

    For group a, ``P(s_i > s_j | i in a, j not in a, same query)``, whatever the
    outcomes; score ties count one half. The value of equal exposure is 1/2, and
    `pairwise_preference` is the base rate with which to compare it (§6.4 of the paper).
    With `engagement` this holds at each level of engagement, over pairs of unlike
    outcomes.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Outcomes or relevance, binary, graded or real; larger is better. Only
        `engagement` needs them: they say which item of a pair is the better one.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    engagement : array-like of shape (n,) or None, default=None
        Engagement after the click. Only pairs of unlike outcomes count then, in the
        stratum of their better item, and the estimate is the plain mean over the strata
        with pairs (Figure 4 of the paper); `GroupEstimates.breakdown` has the strata.
        May be NaN where an item is better than no other.
    bins : int or sequence of float, default=4
        Number of strata of equal size, or their increasing edges. Edges chosen from
        the data are a first pass: parts add up only if they share them.
    k : int or None, default=None
        How many positions count, from the top: only pairs with an item in the first k
        of its query, whose exchange would change what is there. Tied items are there
        with the probability that a random order gives them. None takes all pairs.
    average : {"pairs", "queries", "clusters"}, default="pairs"
        "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
        "clusters" takes the mean over clusters of the value of each, whose queries are
        summed first, so that a cluster with many queries counts once.
    variance : {"auto", "cluster", "item"}, default="auto"
        As in `pairwise_accuracy`.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    item_weight : array-like of shape (n,) or None, default=None
        Weight of the item, such as a survey weight: a pair counts the product of the
        weights of its two items. `sample_weight` weighs whole queries.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group, fair value 1/2 (see Notes).

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, an option is unknown, or engagement is given without
        outcomes.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no pair, so that its estimate is NaN.

    See Also
    --------
    pairwise_preference : The base rate of the outcomes.
    pairwise_accuracy : Given that the item has the better outcome.

    Notes
    -----
    The variance is that of `pairwise_accuracy`, over these pairs.

    With `k`, or with `engagement`, the number of pairs of an item depends on how many
    of them it wins. The mean over queries or clusters counts all items alike, so that
    it is not 1/2 in fair rankings, and differs with the size of the group: then only
    ``average="pairs"`` has a fair value and p-values. An item in the first k places
    wins nearly all of its pairs, and one below loses k. Where ``Σ k m / n`` over
    queries of n items, m of them of the group, is below four, a test can hardly find
    anything; see `pairwise_accuracy`.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons". KDD. §6.4.

    Examples
    --------
    >>> from skrankfair.metrics import pairwise_exposure
    >>> query = [0, 0, 0, 1, 1, 1]
    >>> group = ["f", "m", "m", "f", "m", "f"]
    >>> score = [0.2, 0.7, 0.1, 0.4, 0.9, 0.3]
    >>> r = pairwise_exposure(None, score, sensitive_features=group, qid=query)
    >>> r.estimate
    array([0.25, 0.75])
    """
    if engagement is None:
        y_true = None  # it is not used, so it is not checked
    elif y_true is None:
        raise ValueError("y_true must be given with engagement; got None.")
    return measured(partial(cross_estimates, "pairwise_exposure"), **locals())


def pairwise_preference(
    y_true: Any,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    engagement: Any = None,
    bins: Any = 4,
    average: str = "pairs",
    variance: str = "auto",
    sample_weight: Any = None,
    item_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How often a group's item has a better outcome than one of the others.

    For group a, ``P(y_i > y_j | i in a, j not in a, y_i != y_j, same query)``. It is
    the base rate with which to compare `pairwise_exposure`. It describes the outcomes,
    not the ranker, and has no fair value.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better.
    y_score : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    engagement : array-like of shape (n,) or None, default=None
        Engagement after the click. Pairs are then in the stratum of their better item,
        and the estimate is the plain mean over the strata with pairs (Figure 4 of the
        paper); `GroupEstimates.breakdown` has the strata.
        May be NaN where an item is better than no other.
    bins : int or sequence of float, default=4
        Number of strata of equal size, or their increasing edges. Edges chosen from
        the data are a first pass: parts add up only if they share them.
    average : {"pairs", "queries", "clusters"}, default="pairs"
        "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
        "clusters" takes the mean over clusters of the value of each, whose queries are
        summed first, so that a cluster with many queries counts once.
    variance : {"auto", "cluster", "item"}, default="auto"
        As in `pairwise_accuracy`.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    item_weight : array-like of shape (n,) or None, default=None
        Weight of the item, such as a survey weight: a pair counts the product of the
        weights of its two items. `sample_weight` weighs whole queries.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no pair, so that its estimate is NaN.

    See Also
    --------
    pairwise_exposure : The same for the ranking.

    Notes
    -----
    The variance is that of `pairwise_accuracy`, over these pairs. A group with one item
    in a query has 1 or 0 there, by the outcome alone. So means over queries or clusters
    depend on the size of the group, and only ``average="pairs"`` has contrasts with
    p-values.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons". KDD. §6.4.

    Examples
    --------
    >>> from skrankfair.metrics import pairwise_preference
    >>> query = [0, 0, 0, 1, 1, 1]
    >>> group = ["f", "m", "m", "f", "m", "f"]
    >>> clicked = [1, 0, 0, 0, 1, 0]
    >>> pairwise_preference(clicked, sensitive_features=group, qid=query).estimate
    array([0.5, 0.5])
    """
    check_given(y_true=y_true)
    # The score is the outcome; a row without one is left out, whatever its score.
    y_score = np.nan_to_num(as_numbers(y_true, "y_true", allow_nan=may_lack(missing)))
    return measured(partial(cross_estimates, "pairwise_preference"), **locals())
