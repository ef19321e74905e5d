"""`positive_rate_shift` and `rank_shift`: what calibrating the scores would change."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric, warn_undefined
from .._estimates.resampled import ResampledSums
from .._estimates.rows import Rows, cluster_table, small_codes, weights_of_rows
from .._estimates.sums import ClusterSums, Refit
from .._inputs.columns import check_one_way
from .._inputs.groups import Groups
from .._inputs.ranking import (
    Cells,
    Memberships,
    Places,
    RankedData,
    Ranking,
    ranked_data,
)
from .._inputs.score_rows import Sample, score_rows
from .._inputs.validation import (
    Array,
    check_choice,
    check_magnitude,
    check_number,
    generator,
)
from ..smoothing._bandwidth import check_bandwidth
from ..smoothing._kernels import Kernel, get_kernel
from ..smoothing._sums import repeated_means
from ._calibration_error import bandwidth_of_group
from ._pairs.cluster_rows import QuerySums, sum_over_queries, times

# A resample leaves out all of this many clusters with a probability of e^-60.
_SURELY_DRAWN = 60
_ROUNDING = 1e-12
# How many scores the resamples worked on at once have, by group and of all groups.
_BLOCK, _SCORES = 1 << 17, 1 << 21
# Resamples show half of the bias of ranks: where all outcomes near a score are equal,
# those of a resample are equal too.
_RANK_BIAS = 2.0


@dataclass(frozen=True)
class Calibrated:
    """Scores that are replaced by the curve of their group."""

    sample: Sample  # rows of all groups
    kernel: Kernel
    rows: list[Array]  # the rows of each group that has any
    bandwidth: dict[Hashable, float]  # of each of these groups, in the same order

    @classmethod
    def of_sample(
        cls, sample: Sample, groups: Groups, bandwidth: Any, kernel: Kernel
    ) -> Calibrated:
        """Choose the bandwidth of each group; keep 32-bit codes where they suffice."""
        cluster, group, row = small_codes(sample.cluster, sample.group, sample.row)
        sample = replace(sample, cluster=cluster, group=group, row=row)
        rows = sample.rows_of_groups(len(groups))
        chosen = {
            label: bandwidth_of_group(bandwidth, label, sample.take(own), kernel)
            for label, own in zip(groups.labels, rows, strict=True)
            if own.size
        }
        present = [own for own in rows if own.size]
        return cls(sample, kernel, present, chosen)

    @cached_property
    def _range(self) -> tuple[float, float]:
        y = self.sample.y
        return (float(y.min()), float(y.max())) if y.size else (0.0, 0.0)

    def scores(self) -> Array:
        """Return the calibrated scores of the sample's rows."""
        star = np.full(self.sample.x.size, np.nan)
        for _, rows, scores in self.resampled(np.ones((1, self.sample.n_clusters))):
            star[rows] = scores[0]
        return star

    def resampled(self, counts: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield the calibrated scores of b resamples and one group at a time.

        `counts` says how often each cluster is in each resample, shape (B, n_clusters).
        Yielded are a slice of resamples, the numbers of rows, and their scores, shape
        (b, n); rows whose clusters were not drawn may be NaN.
        """
        sample = self.sample
        for rows, h in zip(self.rows, self.bandwidth.values(), strict=True):
            x, y = sample.x[rows], sample.y[rows]
            step = max(1, _BLOCK // rows.size)
            for start in range(0, len(counts), step):
                some = slice(start, start + step)
                weight = sample.share[rows] * counts[some, sample.cluster[rows]]
                star = repeated_means(x, y, weight, h, self.kernel)
                # Kernels with negative weights overshoot, the others by rounding.
                yield some, rows, np.clip(star, *self._range, out=star)


def seed_of_resamples(bandwidth: Any, n_resamples: Any, random_state: Any) -> int:
    """Return a seed that gives the same resamples each time they are drawn."""
    if not isinstance(bandwidth, Mapping):
        check_bandwidth(bandwidth)
    check_number(n_resamples, "n_resamples", 2, np.inf, integer=True)
    return int(generator(random_state).integers(2**62))


def shift_estimates(
    metric: str,
    unit: str,
    support: ColumnSum,
    groups: Groups,
    table: Rows,
    refit: Refit,
    resamples: tuple[int, int],
    parameters: Mapping[str, Any],
    calibrated: Calibrated,
    *,
    relative: bool = False,
    bias: float = 1.0,
    missing: Mapping[str, int],
) -> GroupEstimates:
    """Return the mean change that calibration would make, by group.

    Rows of the table are clusters. The estimate is the sum of changes divided by the
    support, and `refit` gives the totals with curves fitted anew to resamples.
    `resamples` has their number and seed. The errors include the bias that resamples
    show, times `bias`.
    """
    finalize = MeanOfRatios()
    n_resamples, seed = resamples
    sums = ResampledSums.of_sums(
        ClusterSums.from_rows(groups.labels, table, [support]),
        refit=refit,
        adds_up=False,
        n_resamples=n_resamples,
        seed=seed,
        finalize=finalize,
        bias=bias,
    )
    mean = Metric(
        metric,
        finalize,
        support,
        unit=unit,
        fair_value=0.0,
        disparity="max_abs",
        relative=relative,
    )
    first_pass = {"bandwidth": calibrated.bandwidth}
    result = GroupEstimates(mean, sums, dict(parameters), first_pass, missing=missing)
    return warn_undefined(result, unsure=_in_too_few_clusters(sums, table, finalize))


def _in_too_few_clusters(
    sums: ResampledSums, table: Rows, finalize: MeanOfRatios
) -> Array:
    """Return which groups have no standard error, shape (G,).

    They have rows in one cluster only, or in so few that some resample has none of
    these clusters. No curve is fitted to find them.
    """
    if sums.active.min() >= _SURELY_DRAWN:
        return np.zeros(len(sums.groups), dtype=bool)
    plain = replace(sums, refit=lambda counts: table.drawn(counts)[0])
    return np.isnan(plain.variance(finalize))


def positive_rate_shift(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    threshold: float,
    cluster: Any = None,
    bandwidth: str | float | Mapping[Hashable, float] = "undersmooth",
    kernel: str = "gaussian4",
    cluster_weight: str = "cluster",
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How many more of a group would be accepted if its scores were calibrated.

    ``E[1(S* > t) - 1(S > t) | G = g]`` with ``S* = E[Y | S, G]``, the mean outcome at
    the score in the group, as a share of the group's rows. A positive value says that
    more of the group would be accepted, so its scores are too low around the threshold;
    calibrated scores give 0.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real.
    y_score : array-like of shape (n,)
        Scores on the scale of the outcomes, such as probabilities.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    threshold : float
        Score above which a row is accepted.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"}, float or mapping of group to \
            float, default="undersmooth"
        In units of the score; a rule (see `skrankfair.smoothing.nadaraya_watson`) is
        applied to each group.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian4"
        Weight of a row by its distance in the score. The default has less bias than
        "gaussian": the standard error of a mean over many scores is smaller than that
        of the curve, so bias weighs more. Curves are kept within the range of the
        outcomes.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row.
        Shares are of rows.
    n_resamples : int, default=200
        Number of resamples. The standard errors come from them, with a relative Monte
        Carlo error of ``1 / sqrt(2 n_resamples)``: 5% of 200.
    random_state : int, Generator or None, default=0
        Seed or generator of the random numbers, 0 so that a result that is computed
        when it is first asked for can be repeated.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group; the fair value is 0.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, a bandwidth is not
        positive, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has only one cluster, or so few that some resample has none of them,
        so that it has no standard error.

    See Also
    --------
    rank_shift : The same for rankings.
    calibration_error : How far the scores are from the mean outcomes.
    skrankfair.inference.marginal_outcome_test : Compares groups at the threshold.

    Notes
    -----
    A decision is no smooth function of the curve, so there is no delta method:
    ``standard_error`` and ``covariance`` are those of a bootstrap of clusters that
    refits the curves, computed when first asked for, and
    ``confidence_interval(method="bootstrap")`` are its percentiles. Errors are those
    around the estimate, ``var(θ*) + (mean(θ*) - θ)²``, so that they have the bias that
    noise in the curves causes, as far as resamples show it. Errors of B resamples
    differ from seed to seed by ``1 / sqrt(2 B)`` of themselves, 5% for 200; equal
    weights give the same resamples as no weights. Bandwidths are fixed. After
    ``compact(n_replicates=...)`` the resamples are these replicates. Results do not add
    up, since the curves of parts are not that of the whole;
    `skrankfair.distributed.measure` takes a sample of the clusters of large data.

    The sign is that of the definition in §7.2; Theorem 5 prints the other.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §7.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import positive_rate_shift
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], size=4000)
    >>> score = rng.uniform(size=4000)
    >>> y = rng.uniform(size=4000) < np.where(group == "a", score, score**2)
    >>> r = positive_rate_shift(y, score, sensitive_features=group, threshold=0.5)
    >>> r.estimate[1:].round(1)  # of b: 1 - 1/2^(1/2) minus 1/2
    array([-0.2])
    """
    seed = seed_of_resamples(bandwidth, n_resamples, random_state)
    check_number(threshold, "threshold", -np.inf, np.inf, inclusive=(False, False))
    smoother = get_kernel(kernel)
    rows = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
        missing=missing,
    )
    check_magnitude(y_score=rows.x)
    sample = rows.sample(cluster_weight)
    calibrated = Calibrated.of_sample(sample, rows.groups, bandwidth, smoother)
    sample = calibrated.sample
    counts, n_groups = weights_of_rows(rows, sample), len(rows.groups)
    before = sample.x > threshold
    # A mean outcome that is above the threshold only by rounding is not above it.
    above = threshold + _ROUNDING * max(1.0, abs(threshold))

    def refit(cluster_counts: Array) -> Array:
        totals = np.zeros((len(cluster_counts), n_groups, 2))
        for some, own, star in calibrated.resampled(cluster_counts):
            weight = counts[own] * cluster_counts[some, sample.cluster[own]]
            shift = (star > above) * 1.0 - before[own]
            group = sample.group[own[0]]
            totals[some, group, 0] = (weight * shift).sum(axis=1)
            totals[some, group, 1] = weight.sum(axis=1)
        return totals

    shift = (calibrated.scores() > above) * 1.0 - before
    table = cluster_table(rows, sample, [counts * shift, counts])
    return shift_estimates(
        "positive_rate_shift",
        "rows",
        ColumnSum(1, 2),
        rows.groups,
        table,
        refit,
        (n_resamples, seed),
        {
            "threshold": float(threshold),
            "kernel": kernel,
            "cluster_weight": cluster_weight,
        },
        calibrated,
        missing=rows.missing,
    )


def _ranks(places: Places, weight: Array | None, lowest: float) -> Array:
    """Return the rank of each ranked row, 1 for the best, and at most `lowest`.

    Tied rows have their mean rank. `weight` says how often each row is in the list.
    """
    if weight is None:
        return places.tie_means(np.minimum(places.position() + 1.0, lowest))
    before = np.concatenate([[0.0], np.cumsum(weight)])
    start = before[np.repeat(places.starts[:-1], places.lengths)]
    above, last = (before[end] - start for end in places.tie_bounds())
    if lowest == np.inf:
        return (above + last + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = np.clip((lowest - above) / (last - above), 0, 1)
    # The mean over ranks above + 1 to last, where ranks beyond `lowest` count as it.
    mean = (above + np.minimum(last, lowest) + 1) / 2
    return np.where(last > lowest, counts * mean + (1 - counts) * lowest, mean)


def _cells(data: RankedData) -> tuple[Cells, Array]:
    """Return the cells (query and group) that have rows, and the cell of each row."""
    members = Memberships.of(data.ranking, data.groups)
    cells = members.cells
    query, group = small_codes(cells.query, cells.group)
    cell = np.empty_like(query, shape=data.ranking.n_rows)
    cell[members.rows] = members.cell
    return replace(cells, query=query, group=group), cell


@dataclass(frozen=True)
class _RankShift:
    """Sums of the changes of ranks by calibration, for one list or many queries."""

    lists: Places
    calibrated: Calibrated  # of the rows in ranked order
    #: Whether the clusters are parts of one list, so that a resample is another list.
    #: For sums each row is then a query of its own.
    one_list: bool
    lowest: float  # rank of all items beyond the first k
    of_queries: bool  # whether the mean is over queries, or clusters
    cells: Cells  # pairs of a query, or of a cluster, and a group
    cell: Array  # cell of each row
    cluster: Array  # cluster of each query that has cells
    weight: Array | None  # weight of each query
    row_weight: Array | None  # weight of each ranked row within its cluster

    def by_cell(self, calibrated: Array, counts: Array | None = None) -> list[Array]:
        """Return shifts and numbers of rows by cell: query, or cluster, and group.

        `calibrated` are the scores in the order of the sample. The columns have shape
        (E,); columns that the mean is not taken over come last.
        """
        lists, sample, weight = self.lists, self.calibrated.sample, None
        if self.one_list and counts is not None:
            weight = np.empty(lists.n_rows)
            weight[sample.row] = counts[sample.cluster]
        star = np.empty(lists.n_rows)
        star[sample.row] = calibrated
        # Rows that were not drawn may have no score; they have no rank.
        star[np.isnan(star)] = -np.inf
        ranking = Ranking.from_scores(star, lists.query)
        after, order = Places(ranking.starts, ranking.tie_starts), ranking.order
        del star, ranking  # its scores are not needed any more
        reordered = None if weight is None else weight[order]
        ranks = _ranks(after, reordered, self.lowest)
        shift = _ranks(lists, weight, self.lowest)
        shift[order] -= ranks
        del after, order, ranks
        sums = np.bincount(self.cell, times(shift, self.row_weight))
        items = np.bincount(self.cell).astype(float)
        if self.of_queries:
            size = np.bincount(self.cell, self.row_weight).astype(float)
            some = size > 0
            mean = np.divide(sums, size, out=np.zeros(size.size), where=some)
            return [mean, 1.0 * some, items]
        return [sums, items]

    @property
    def support(self) -> ColumnSum:
        """The column with the number of rows."""
        return ColumnSum(2, 3) if self.of_queries else ColumnSum(1, 2)

    def refit(self, counts: Array) -> Array:
        """Return the totals for other counts of the clusters."""
        n_rows = self.lists.n_rows
        step, totals = max(1, _SCORES // n_rows), []
        for start in range(0, len(counts), step):
            some_counts = counts[start : start + step]
            stars = np.empty((len(some_counts), n_rows))
            for some, rows, scores in self.calibrated.resampled(some_counts):
                stars[some, rows] = scores
            totals += [
                self._totals(*one) for one in zip(some_counts, stars, strict=True)
            ]
        return np.stack(totals)

    def _totals(self, counts: Array, star: Array) -> Array:
        """Return the totals of the groups for one resample."""
        cells, times = self.cells, counts[self.cluster]
        if self.weight is not None:
            times = self.weight * times
        times, columns = times[cells.query], self.by_cell(star, counts)
        sums = [np.bincount(cells.group, times * c, cells.n_groups) for c in columns]
        return np.stack(sums, axis=1)


def ranked_sample(data: RankedData, cluster_weight: str) -> Sample:
    """Return the rows in ranked order, by the clusters that the errors are over."""
    ranking = data.ranking
    cluster = ranking.query.astype(np.int64)
    check_one_way(data.item)
    if data.cluster is not None:
        cluster = data.cluster.codes[ranking.order]
    elif not data.has_queries:
        cluster = np.arange(ranking.n_rows)
    return Sample.of_rows(
        ranking.score,
        data.y_true,
        data.groups,
        cluster=cluster,
        weight=data.row_weight,
        cluster_weight=cluster_weight,
    )


def rank_shift(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    bandwidth: str | float | Mapping[Hashable, float] = "undersmooth",
    kernel: str = "gaussian",
    cluster_weight: str = "cluster",
    k: int | None = None,
    average: str = "pairs",
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """How many places the items of a group would gain if scores were calibrated.

    The mean over the group's items of ``R(S) - R(S*)``, the rank of the item in its
    query (1 is the top) now and by ``S* = E[Y | S, G]``, the mean outcome at the score
    in the group. Positive: the group would be ranked better, so its scores are too low;
    0 for a calibrated score. Over all groups the shifts of a query sum to 0.

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
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"}, float or mapping of group to \
            float, default="undersmooth"
        In units of the score; a rule (see `skrankfair.smoothing.nadaraya_watson`) is
        applied to each group.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian"
        Weight of a row by its distance in the score. The default has less noise than
        "gaussian4": noise in the curves shuffles items. Curves are kept within the
        range of the outcomes.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row.
    k : int or None, default=None
        How many positions count, from the top. All further ranks are k + 1, and None
        counts all.
    average : {"pairs", "queries", "clusters"}, default="pairs"
        "pairs" pools all items of the group. "queries" takes the mean over queries of
        their mean of the items of the group. "clusters" takes the mean over clusters of
        the value of each, whose queries are summed first, so that a cluster with many
        queries counts once.
    n_resamples : int, default=200
        Number of resamples. The standard errors come from them, with a relative Monte
        Carlo error of ``1 / sqrt(2 n_resamples)``: 5% of 200.
    random_state : int, Generator or None, default=0
        Seed or generator of the random numbers, 0 so that a result that is computed
        when it is first asked for can be repeated.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. Ranks are among the rows that are left, since a
        curve needs outcomes.

    Returns
    -------
    GroupEstimates
        One row per group, in places; the fair value is 0.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, groups overlap, a
        query is in two clusters, a bandwidth is not positive, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group is in only one cluster, so that it has no standard error.

    See Also
    --------
    positive_rate_shift : The same for decisions.
    matched_pair_calibration : Compares outcomes of neighbours in the ranking.

    Notes
    -----
    With `k` the mean is of ``min(R(S), k + 1) - min(R(S*), k + 1)``, so that it is the
    sum over the first k slots j of ``P(R(S*) <= j) - P(R(S) <= j)`` for an item of the
    group: its value for k = j minus that for k = j - 1 is the change at slot j. From
    one less than the length of the longest list on, it is the whole shift.

    Tied items have the mean of their ranks. Standard errors are those of a bootstrap of
    clusters that refits the curves, as for `positive_rate_shift`; a resample of one
    list has an item as many times as it was drawn. Results do not add up;
    `skrankfair.distributed.measure` takes a sample of the clusters of large data.

    Noise in the curves shuffles items, and moves the items of a group towards the ranks
    where most of the others are. This bias is largest where a curve is flat. Resamples
    show about half of it: where all outcomes near a score are equal, those of a
    resample are equal too. So the errors are ``var(θ*) + 4 (mean(θ*) - θ)²``.

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
    seed = seed_of_resamples(bandwidth, n_resamples, random_state)
    check_choice(average, "average", ("pairs", "queries", "clusters"))
    if k is not None:
        check_number(k, "k", 1, np.inf, integer=True)
    data = ranked_data(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        qid=qid,
        cluster=cluster,
        sample_weight=sample_weight,
        missing=missing,
    )
    data.groups.check_disjoint("rank_shift")
    check_magnitude(y_true=data.y_true, y_score=data.ranking.score)
    sample = ranked_sample(data, cluster_weight)
    # The sample has scores and outcomes; large data are not kept twice.
    nothing = np.zeros(0)
    ranking = replace(data.ranking, score=nothing)
    lists, one_list = Places(ranking.starts, ranking.tie_starts), not data.has_queries
    if one_list:
        ranking = replace(ranking, starts=np.arange(lists.n_rows + 1))
        data = replace(data, query_labels=data.kept, query_weight=None)
    data = replace(data, ranking=ranking, outcome=None, kept=nothing, cache={})
    cluster_of_query = data.cluster_of_query
    if cluster_of_query is None:
        raise ValueError("cluster must be constant within a query.")
    groups, smoother = data.groups, get_kernel(kernel)
    calibrated = Calibrated.of_sample(sample, groups, bandwidth, smoother)
    cells, cell = _cells(data)
    weight, row_weight = data.query_weight, None
    if average == "clusters":
        key = cluster_of_query[cells.query] * np.int64(len(groups)) + cells.group
        key, place = np.unique(key, return_inverse=True)
        cell, labels = place[cell], data.query_labels
        if data.cluster is not None:
            labels = data.cluster.labels
        if weight is not None:
            row_weight = weight[lists.query]
        weight, cluster_of_query = None, np.arange(len(labels))
        cells = Cells(*divmod(key, len(groups)), len(labels), len(groups))
        data = replace(data, cluster=None, query_labels=labels, query_weight=None)
    shift = _RankShift(
        lists,
        calibrated,
        one_list,
        np.inf if k is None else float(k) + 1,
        average == "clusters" or (average == "queries" and not one_list),
        *(cells, cell),
        cluster_of_query,
        *(weight, row_weight),
    )
    by_cell = np.stack(shift.by_cell(calibrated.scores()), axis=1)
    parameters: dict[str, Any] = {
        "average": average,
        "kernel": kernel,
        "cluster_weight": cluster_weight,
    }
    if k is not None:
        parameters["k"] = k
    return shift_estimates(
        "rank_shift",
        "items",
        shift.support,
        groups,
        sum_over_queries(data, QuerySums.of_cells(shift.cells, by_cell)),
        shift.refit,
        (n_resamples, seed),
        parameters,
        calibrated,
        relative=True,
        bias=_RANK_BIAS,
        missing=data.missing,
    )
