"""`positive_rate_shift` and `rank_shift`: what calibrating the scores would change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, starmap
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric, warn_undefined
from .._estimates.resampled import ResampledSums
from .._estimates.rows import cluster_table, small_codes, weights_of_rows
from .._estimates.sums import ClusterSums
from .._inputs.columns import given_columns
from .._inputs.groups import Codes
from .._inputs.ranking import RankedData, Ranking, ranked_data
from .._inputs.score_rows import Sample, ScoreRows, at_least, score_rows
from .._inputs.validation import (
    Array,
    check_choice,
    check_magnitude,
    check_number,
    generator,
    warn_user,
)
from ..smoothing._bandwidth import check_bandwidth
from ..smoothing._kernels import Kernel, get_kernel, repeated_means
from ._calibration_error import bandwidth_of_group

# A resample leaves out all of this many clusters with a probability of e^-60.
_SURELY_DRAWN = 60
_ROUNDING = 1e-12
# Resamples that are fitted at once, and how many scores of the largest group they then
# have. A group of few rows has one matrix of kernel values for all of them, which takes
# most of the time.
_TOGETHER, _BLOCK = 4, 1 << 17
# Resamples show half of the bias of ranks: where all outcomes near a score are equal,
# those of a resample are equal too. Rare events were found unfair in 10%, now in 5%.
_RANK_BIAS = 2.0
# Groups with fewer events than this, which are also a smaller share of their rows, show
# too little noise: those that have no event by chance would be certain.
_FEWEST_EVENTS, _RARE = 8, 0.1


@dataclass(frozen=True)
class Calibrated:
    """Scores that are replaced by the curve of their group."""

    sample: Sample  # rows of all groups
    kernel: Kernel
    rows: list[Array]  # the rows of each group that has any
    bandwidth: dict[Hashable, float]  # of each of these groups, in the same order

    @classmethod
    def of_rows(
        cls, rows: ScoreRows, bandwidth: Any, kernel: Kernel, cluster_weight: str
    ) -> Calibrated:
        """Choose the bandwidth of each group; keep 32-bit codes where they suffice."""
        sample, labels = rows.sample(cluster_weight), rows.groups.labels
        cluster, row = small_codes(sample.cluster, sample.row)
        sample = replace(sample, cluster=cluster, row=row)
        of_groups = zip(labels, sample.rows_of_groups(len(labels)), strict=True)
        present = [(label, members) for label, members in of_groups if members.size]
        chosen = {
            label: bandwidth_of_group(bandwidth, label, sample.take(members), kernel)
            for label, members in present
        }
        return cls(sample, kernel, [members for _, members in present], chosen)

    def scores(self, counts: Array) -> Array:
        """Return the calibrated scores of B resamples, shape (B, n).

        `counts` says how often each cluster is in each resample, shape (B, n_clusters).
        Rows whose clusters were not drawn may have no score, which is -inf.
        """
        sample = self.sample
        scores = np.empty((len(counts), sample.x.size))
        for rows, h in zip(self.rows, self.bandwidth.values(), strict=True):
            weight = sample.share[rows] * counts[:, sample.cluster[rows]]
            scores[:, rows] = repeated_means(
                sample.x[rows], sample.y[rows], weight, h, self.kernel
            )
        # Kernels with negative weights overshoot, the others by rounding.
        lowest = sample.y.min(initial=np.inf)
        np.clip(scores, lowest, sample.y.max(initial=-np.inf), out=scores)
        scores[np.isnan(scores)] = -np.inf
        return scores

    def resampled(self, counts: Array) -> Iterator[tuple[Array, Array]]:
        """Yield the counts and the scores of each resample."""
        largest = max((rows.size for rows in self.rows), default=1)
        step = min(_TOGETHER, max(1, _BLOCK // largest))
        for start in range(0, len(counts), step):
            drawn = counts[start : start + step]
            yield from zip(drawn, self.scores(drawn), strict=True)


def seed_of_resamples(bandwidth: Any, n_resamples: Any, random_state: Any) -> int:
    """Return a seed that gives the same resamples each time they are drawn."""
    if not isinstance(bandwidth, Mapping):
        check_bandwidth(bandwidth)
    check_number(n_resamples, "n_resamples", 2, np.inf, integer=True)
    return int(generator(random_state).integers(2**62))


def shift_estimates(
    name: str,
    unit: str,
    rows: ScoreRows,
    calibrated: Calibrated,
    values_of: Callable[[Array, Array], Array],
    weights: Sequence[Array],
    parameters: Mapping[str, Any],
    resamples: tuple[int, int],
    *,
    present: Array | None = None,
    relative: bool = False,
    bias: float = 1.0,
) -> GroupEstimates:
    """Return the mean change that calibration would make, by group.

    `values_of` takes how often each cluster is in the data, and scores of the rows. It
    returns a value of each row, and `present` has those before; None: of the scores.
    The weights of their changes in the mean are the first of `weights`; the last are
    those of the support. `resamples` has the number of resamples, to which curves are
    fitted anew, and their seed. The errors include the bias that resamples show, times
    `bias`, and the shift that the noise of the curves makes of scores that are
    calibrated: of the scores plus the change of the curve.
    """
    sample, n_groups = calibrated.sample, len(rows.groups)
    once = np.ones(sample.n_clusters)
    curve = calibrated.scores(once[None])[0]
    finalize, support = MeanOfRatios(), ColumnSum(len(weights), len(weights) + 1)
    n_resamples, seed = resamples
    rounding = _ROUNDING * max(1.0, np.abs(sample.x).max(initial=0.0))

    def columns(counts: Array, scores: Array) -> Iterator[Array]:
        now = values_of(counts, sample.x)
        before = now if present is None else present
        # One by one, so that as little as possible is in memory at once.
        yield weights[0] * (values_of(counts, scores) - before)
        yield from weights
        with np.errstate(invalid="ignore"):  # of rows without a curve
            noisy = scores - curve
        noisy[~((np.abs(noisy) > rounding) & np.isfinite(noisy))] = 0.0
        moved = noisy.any()
        noisy += sample.x
        yield weights[0] * ((values_of(counts, noisy) if moved else now) - now)

    def totals(counts: Array, scores: Array) -> Array:
        times = counts[sample.cluster]
        by_group = [
            1.0 * np.bincount(sample.group, times * column, n_groups)
            for column in columns(counts, scores)
        ]
        by_group[0][rare] = np.nan
        return np.stack(by_group, axis=1)

    def refit(counts: Array) -> Array:
        return np.stack(list(starmap(totals, calibrated.resampled(counts))))

    rare = _rare_events(sample, n_groups)
    if relative:  # the curve of one group moves all groups
        rare[:] = rare.any()

    table = cluster_table(rows, sample, [*columns(once, curve)])
    sums = ResampledSums.of_sums(
        ClusterSums.from_rows(rows.groups.labels, table, [support]),
        refit=refit,
        adds_up=False,
        n_resamples=n_resamples,
        seed=seed,
        finalize=finalize,
        bias=bias,
        width=2 + len(weights),
    )
    metric = Metric(
        name,
        finalize,
        support,
        unit=unit,
        fair_value=0.0,
        disparity="max_abs",
        relative=relative,
    )
    first_pass = {"bandwidth": calibrated.bandwidth}
    result = GroupEstimates(metric, sums, parameters, first_pass, missing=rows.missing)
    # A group has no standard error if its rows are in one cluster, or in so few that
    # some resample has none of them. No curve is fitted to find these groups.
    unsure = np.zeros(n_groups, dtype=bool)
    if sums.active(finalize).min() < _SURELY_DRAWN:
        plain = replace(sums, refit=lambda counts: table.drawn(counts)[0])
        unsure = np.isnan(plain.variance(finalize))
    if rare.any():
        names = fmt.some_groups(compress(result.groups, rare))
        warn_user(
            f"{name} has no standard error (NaN), for fewer than {_FEWEST_EVENTS} rare "
            f"events{' in a group' * relative}, in: {names}."
        )
    return warn_undefined(result, unsure=unsure & ~rare)


def _rare_events(sample: Sample, n_groups: int) -> Array:
    """Return which groups have few and rare events, and would have with fair scores.

    An event is the rarer one of two outcomes.
    """
    low, high = sample.y.min(initial=np.inf), sample.y.max(initial=-np.inf)
    if low == high:
        low, high = 0.0, 1.0
    if not ((sample.y == low) | (sample.y == high)).all():
        return np.zeros(n_groups, dtype=bool)
    size = np.bincount(sample.group, minlength=n_groups)
    events = np.zeros(n_groups)
    for value in (sample.y, sample.x):
        share = np.clip((value - low) / (high - low), 0.0, 1.0)
        count = np.bincount(sample.group, share, n_groups)
        events = np.maximum(events, np.minimum(count, size - count))
    return np.asarray(events < np.minimum(_FEWEST_EVENTS, _RARE * size))


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
        If a group has only one cluster, so few that some resample has none of them, or
        few and rare events (see Notes), so that it has no standard error.

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
    ``confidence_interval(method="bootstrap")`` are its percentiles, widened so that
    they also hold those of ``θ* - 2 mean(θ0*)``. Errors are those around the estimate,
    ``var(θ*) + (mean(θ*) - θ)² + 4 mean(θ0*)²``, so that they have the bias that noise
    in the curves causes. θ0* is the shift that this noise alone makes of fair scores:
    from S to ``S + (curve* - curve)`` in each resample. It counts twice, since curves
    of resamples are smoother than the data. Errors of B resamples differ from seed to
    seed by ``1 / sqrt(2 B)`` of themselves, 5% for 200, and by up to twice that where
    this noise makes most of them; equal weights give the same resamples as no weights.
    Bandwidths are fixed. After ``compact(n_replicates=...)`` the resamples are these
    replicates. Results do not add up, since the curves of parts are not that of the
    whole; `skrankfair.distributed.measure` takes a sample of the clusters of large
    data.

    Where many rows have one score, and the threshold is this score and about their mean
    outcome, noise decides on which side of it all of them are, and errors are wide: of
    calibrated scores 0, 0.1, ..., 1 and the threshold 0.5 Student's t missed in none of
    175 data sets (groups of 1,400 and 600 rows), and percentiles in 1 of 100. Take a
    threshold between the scores, or ``method="percentile"``, which is shorter.

    Where the scores of a group span little more than the errors of its curve, noise
    moves most decisions, and errors are wide: nothing can tell a shift from it. Of
    calibrated scores between 0.10 and 0.25 and the threshold 0.18 tests rejected 0% to
    1% of data sets (groups of 80 and of 200 rows, and nine times as many others), and
    percentiles missed in as few.

    A group that by chance has none of its few expected events would seem certain, and
    tests would reject it. So the error is NaN where there are two outcomes, and a group
    has the rarer one fewer than eight times and in less than a tenth of its rows, and
    would so with fair scores. Beyond that tests rejected 1% to 7% of data sets of risks
    below 2% to 20% (8 to 10 expected events).

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
    rows = score_rows(y_true, y_score, **given_columns(locals()))
    check_magnitude(y_score=rows.x)
    calibrated = Calibrated.of_rows(rows, bandwidth, smoother, cluster_weight)
    before = ~at_least(-calibrated.sample.x, -threshold)
    # A mean outcome that is above the threshold only by rounding is not above it.
    above = threshold + _ROUNDING * max(1.0, abs(threshold))
    return shift_estimates(
        "positive_rate_shift",
        "rows",
        rows,
        calibrated,
        lambda _, scores: (scores > above).astype(np.int8),
        [weights_of_rows(rows, calibrated.sample)],
        {
            "threshold": float(threshold),
            "kernel": kernel,
            "cluster_weight": cluster_weight,
        },
        (n_resamples, seed),
        present=before,
    )


def _ranks(scores: Array, query: Array, counts: Array | None, lowest: float) -> Array:
    """Return the rank of each row, 1 for the best, and at most `lowest`.

    Tied rows have their mean rank. `counts` says how often each row is in the list,
    if there is only one; None is once.
    """
    ranking = Ranking.from_scores(scores, query)
    if counts is None:
        mean = ranking.tie_means(np.minimum(ranking.position() + 1.0, lowest))
    else:
        before = np.concatenate([[0.0], np.cumsum(counts[ranking.order])])
        above, last = (before[end] for end in ranking.tie_bounds())
        # The mean over ranks above + 1 to last; those beyond `lowest` count as it.
        mean = (above + np.minimum(last, lowest) + 1) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip((lowest - above) / (last - above), 0, 1)
            mean = np.where(last > lowest, share * mean + (1 - share) * lowest, mean)
    ranks = np.empty_like(mean)
    ranks[ranking.order] = mean
    return ranks


def _rows_by_cluster(data: RankedData) -> ScoreRows:
    """Return the ranked rows with the clusters that the errors are over."""
    cluster = None
    if data.has_queries:
        data.clusters_of_queries()
        cluster = Codes(data.ranking.query.astype(np.int64), data.query_labels)
    if data.cluster is not None:
        cluster = data.cluster.take(data.ranking.order)
    return ScoreRows(
        data.y_true,
        data.ranking.score,
        data.groups,
        cluster,
        data.row_weight if data.has_queries else None,
        data.kept,
        data.missing,
        data.item,
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
        If a group is in only one cluster, so that it has no standard error, or has few
        and rare events, so that no group has one: its curve moves all ranks.

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
    where most of the others are. Resamples show about half of this bias: where all
    outcomes near a score are equal, those of a resample are equal too. So the errors
    are ``var(θ*) + 4 (mean(θ*) - θ)² + 4 mean(θ0*)²``, with the shift θ0* that the
    noise of the curves makes of fair scores. Of calibrated scores between 0.10 and
    0.25, which span little more than the errors of the curves, tests rejected 1% to 3%
    of data sets of 800 and 2,000 rows, and percentiles missed in 2% to 4%.

    Errors are NaN where a group has fewer than eight events, in less than a tenth of
    its rows, and would have so few with fair scores (see `positive_rate_shift`). Take
    such groups together, or leave their rows out.

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
    check_number(k, "k", 1, np.inf, integer=True, optional=True)
    data = ranked_data(y_true, y_score, **given_columns(locals()))
    # Resamples of one list are of its ranked rows, on any processor in the same order.
    data = data.with_ties_in_row_order()
    data.groups.check_disjoint("rank_shift")
    check_magnitude(y_true=data.y_true, y_score=data.ranking.score)
    rows, lowest = _rows_by_cluster(data), np.inf if k is None else float(k) + 1
    calibrated = Calibrated.of_rows(rows, bandwidth, get_kernel(kernel), cluster_weight)
    sample, n_groups = calibrated.sample, len(rows.groups)
    query, one_list = data.ranking.query[sample.row], not data.has_queries
    del data  # which is as large as the sample

    def values_of(counts: Array, scores: Array) -> Array:
        # A resample of the units of one list is another list.
        times = counts[sample.cluster] if one_list else None
        return -_ranks(scores, query, times, lowest)

    weights = [weights_of_rows(rows, sample)]
    if average == "clusters" or (average == "queries" and not one_list):
        unit = sample.cluster if average == "clusters" else query
        cell = unit * np.int64(n_groups) + sample.group
        cell = np.unique(cell, return_inverse=True)[1]
        share = weights[0] / np.bincount(cell, weights[0])[cell]
        if average == "clusters":
            rows, weights = replace(rows, weight=None), [np.ones(sample.x.size)]
        weights = [share * weights[0], *weights]
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
        rows,
        calibrated,
        values_of,
        weights,
        parameters,
        (n_resamples, seed),
        relative=True,
        bias=_RANK_BIAS,
    )
