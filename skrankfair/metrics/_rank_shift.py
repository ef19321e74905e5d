"""What calibrating the scores of the groups would change: ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum
from .._estimates.group_estimates import GroupEstimates
from .._estimates.sums import Table
from .._inputs.ranking import RankedData, Ranking, ranked_data
from .._inputs.sample import Sample
from .._inputs.validation import Array, check_choice
from ..smoothing._kernels import get_kernel
from ._calibrated import Calibrated, checked_seed, shift_estimates
from ._pairs.cluster_rows import sum_over_queries


def _ranks(ranking: Ranking, weight: Array | None) -> Array:
    """Return the rank of each ranked row, 1 the best; ties have their mean rank.

    With weights, how often each row is in the list.
    """
    first, last = ranking.tie_bounds()
    if weight is None:
        start = np.repeat(ranking.starts[:-1], ranking.lengths)
        return (first + last + 1) / 2 - start
    before = np.concatenate([[0.0], np.cumsum(weight)])
    start = before[np.repeat(ranking.starts[:-1], ranking.lengths)]
    return (before[first] + before[last] + 1) / 2 - start


@dataclass(frozen=True)
class _RankShift:
    """Ranks before and after calibration.

    Attributes
    ----------
    data : RankedData
    calibrated : Calibrated
        Of the rows in ranked order.
    average : {"pairs", "queries"}
    one_list : bool
        Whether the clusters are parts of one list: a resample is another list.
    """

    data: RankedData
    calibrated: Calibrated
    average: str
    one_list: bool

    def by_query(self, counts: Array | None = None) -> Array:
        """Return shifts and numbers of rows by query (by row of one list) and group."""
        data, sample = self.data, self.calibrated.sample
        ranking, weight = data.ranking, None
        if self.one_list and counts is not None:
            weight = np.empty(ranking.n_rows)
            weight[sample.row] = counts[sample.cluster]
        star = np.empty(ranking.n_rows)
        star[sample.row] = self.calibrated.scores(counts)
        # Rows that are not drawn may have no score; they are nowhere.
        star[np.isnan(star)] = -np.inf
        query = None if ranking.n_queries == 1 else ranking.query.astype(np.int64)
        after = Ranking.from_scores(star, query)
        shift = _ranks(ranking, weight)
        shift[after.order] -= _ranks(
            after, None if weight is None else weight[after.order]
        )
        n_groups = len(data.groups)
        rows = np.arange(ranking.n_rows) if self.one_list else ranking.query
        size = ranking.n_rows if self.one_list else ranking.n_queries
        key = rows * n_groups + data.groups.values
        table = np.stack(
            [
                np.bincount(key, shift, minlength=size * n_groups),
                np.bincount(key, minlength=size * n_groups).astype(float),
            ],
            axis=1,
        ).reshape(size, n_groups, 2)
        if self.average == "queries" and not self.one_list:
            there = table[:, :, 1] > 0
            np.divide(table[:, :, 0], table[:, :, 1], out=table[:, :, 0], where=there)
            items = table[:, :, 1:].copy()
            table[:, :, 1] = there
            return np.concatenate([table, items], axis=2)
        return np.concatenate([table, table[:, :, 1:]], axis=2)

    def table(self) -> Table:
        """Return the table of clusters."""
        data = self.data
        by_query = self.by_query()
        if not self.one_list:
            return sum_over_queries(data, by_query, np.zeros((len(by_query), 0)))
        order, sample = data.ranking.order, self.calibrated.sample
        cluster = np.empty(order.size, dtype=np.int64)
        cluster[sample.row] = sample.cluster
        table = np.zeros((sample.n_clusters, *by_query.shape[1:]))
        np.add.at(table, cluster, by_query)
        if data.cluster is not None:
            labels = data.cluster.all_labels
        else:
            labels = order if data.kept is None else data.kept[order]
        return Table(table, np.zeros((len(table), 0)), sample.frequency, labels)

    def refit(self) -> Callable[[Array], Array]:
        """Return the totals for other counts of the clusters."""
        data, sample = self.data, self.calibrated.sample
        if self.one_list:
            cluster = np.empty(data.ranking.n_rows, dtype=np.int64)
            cluster[sample.row] = sample.cluster
            return lambda counts: np.tensordot(
                counts[cluster], self.by_query(counts), 1
            )
        of_query = data.cluster_of_query
        weight = np.ones(data.ranking.n_queries)
        if data.cluster is not None and data.query_weight is not None:
            weight = data.query_weight
        return lambda counts: np.tensordot(
            weight * counts[of_query], self.by_query(counts), 1
        )


def _ranked_sample(data: RankedData, cluster_weight: str, one_list: bool) -> Sample:
    """Return the rows in ranked order, by the clusters that the errors are over."""
    ranking = data.ranking
    cluster, weight = ranking.query.astype(np.int64), data.row_weight
    if data.cluster is not None:
        cluster = data.cluster.codes[ranking.order]
    elif one_list:
        cluster = np.arange(ranking.n_rows)
    # A query that is its own cluster is weighted as a whole.
    whole = data.cluster is None and not one_list
    sample = Sample.of_groups(
        ranking.score,
        data.y_true,
        data.groups,
        cluster=cluster,
        weight=None if whole else weight,
        cluster_weight=cluster_weight,
    )
    return replace(sample, frequency=data.query_weight) if whole else sample


def rank_shift(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    qid: Any = None,
    cluster: Any = None,
    bandwidth: str | float | Mapping[Hashable, float] = "undersmooth",
    kernel: str = "gaussian4",
    cluster_weight: str = "cluster",
    average: str = "pairs",
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> GroupEstimates:
    """How many places the items of a group would gain if scores were calibrated.

    The mean over the group's items of ``R(S) - R(S*)``, the rank of the item in its
    query (1 is the top) now and by ``S* = E[Y | S, G]``, the mean outcome at the score
    in the group. Positive: the group would be ranked better, so its scores are too low;
    0 for a calibrated score. Over all groups the shifts of a query sum to 0.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes.
    y_score : array-like of shape (n,)
        Scores, on any scale.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels; several columns are crossed. Groups must be disjoint.
    qid : array-like of shape (n,) or None, default=None
        Query of each row; None is one list.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries; None: each query. For one list,
        clusters of its items; None: each item.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"}, float or mapping of group to \
            float, default="undersmooth"
        In units of the score; a rule (see `skrankfair.smoothing.nadaraya_watson`) is
        applied to each group.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian4"
        The default has less bias than "gaussian": the standard error of a mean over
        many scores is smaller than that of the curve, so bias weighs more. Curves are
        kept within the range of the outcomes.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster weighs one in the curves, or every row does.
    average : {"pairs", "queries"}, default="pairs"
        "pairs" pools all items of the group; "queries" is the mean over queries with an
        item of the group of the query's mean.
    n_resamples : int, default=200
        Resamples behind the standard errors.
    random_state : int, Generator or None, default=0
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the query, constant within it; 2 is the query seen twice.

    Returns
    -------
    GroupEstimates
        One row a group, in places; the fair value is 0.

    Raises
    ------
    ValueError
        For columns of different lengths, values that are not finite, groups that
        overlap, a query in two clusters, a bandwidth that is not positive, or an
        unknown option.

    Warns
    -----
    UndefinedMetricWarning
        For a group in one cluster only, which has no standard error.

    See Also
    --------
    positive_rate_shift : The same for decisions.
    matched_pair_calibration : Compares outcomes of neighbours in the ranking.

    Notes
    -----
    Tied items have the mean of their ranks. Standard errors are those of a bootstrap of
    clusters that fits the curves anew, as for `positive_rate_shift`; a resample of one
    list is a list in which an item is as often as it was drawn. Results do not add up.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §7.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import rank_shift
    >>> rng = np.random.default_rng(0)
    >>> query = np.repeat(np.arange(400), 10)
    >>> group = rng.choice(["a", "b"], size=query.size)
    >>> quality = rng.uniform(size=query.size)
    >>> clicked = rng.uniform(size=query.size) < quality
    >>> score = quality - 0.2 * (group == "a")  # "a" is undervalued
    >>> r = rank_shift(clicked, score, sensitive_features=group, qid=query)
    >>> r.estimate.round(1)
    array([ 0.9, -0.9])
    """
    seed = checked_seed(bandwidth, n_resamples, random_state)
    check_choice(average, "average", ("pairs", "queries"))
    smoother = get_kernel(kernel)
    data = ranked_data(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        qid=qid,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    if data.groups.overlapping:
        raise ValueError(
            "rank_shift needs disjoint groups, since an item has one calibrated score; "
            "sensitive_features is a membership matrix."
        )
    one_list = data.ranking.n_queries == 1
    if not one_list and data.cluster_of_query is None:
        raise ValueError("cluster must be constant within a query.")
    sample = _ranked_sample(data, cluster_weight, one_list)
    calibrated = Calibrated.of_sample(sample, data.groups, bandwidth, smoother)
    shift = _RankShift(data, calibrated, average, one_list)
    return shift_estimates(
        "rank_shift",
        "items",
        ColumnSum(2, 3),
        data.groups,
        shift.table(),
        shift.refit(),
        (n_resamples, seed),
        {"average": average, "kernel": kernel, "cluster_weight": cluster_weight},
        calibrated,
    )
