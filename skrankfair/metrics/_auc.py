"""The area under the ROC curve by group: pairwise accuracy of outcomes of 0 and 1."""

from __future__ import annotations

from typing import Any

from .._estimates.group_estimates import GroupEstimates
from .._inputs.ranking import ranked_data
from ._pairwise import accuracy_estimates


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
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list.
    comparison : {"intra", "inter", "all"}, default="intra"
        Whose negatives the positives of the group are compared with: those of the
        group (its AUC), those of the others (xAUC), or all.
    average : {"pairs", "queries"}, default="pairs"
        "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
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
    and with `cluster` the jackknife over clusters of rows.

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
    data = ranked_data(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        qid=qid,
        cluster=cluster,
        sample_weight=sample_weight,
        item_weight=item_weight,
        missing=missing,
    )
    data.check_binary("auc")
    return accuracy_estimates(
        data, name="auc", comparison=comparison, average=average, variance=variance
    )
