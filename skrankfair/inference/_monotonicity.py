"""Is an advantage monotone, and which metric fits? Kuhlman et al. 2021, §5 and 7."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.optimize import isotonic_regression

from .._estimates import formatting as fmt
from .._estimates.arrays import ReadOnlyArrays, Shown
from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.scales import check_level, t_quantile
from .._estimates.sums import ClusterSums
from .._inputs.columns import given_columns
from .._inputs.groups import number_of
from .._inputs.ranking import RankedData, ranked_data
from .._inputs.validation import Array, check_choice, check_number, generator, warn_user
from ..metrics._pairs.cluster_rows import QuerySums, sum_over_queries

if TYPE_CHECKING:
    from ..display._curves import MonotonicityDisplay

_MOST_POSITIONS = 1000
# Shares, and statistics, that differ by less are equal but for rounding.
_EQUAL, _SLACK = 1e-12, 1e-9


@dataclass(frozen=True, eq=False)
class MonotonicityTest(ReadOnlyArrays):
    """Result of `monotonicity_test`; arrays have one value per position.

    Attributes
    ----------
    group : hashable
    statistic : float
        Pearson's chi-square of the counts against the monotone fit.
    pvalue : float
        P-value of the hypothesis that the share of the group is monotone in the
        position.
    df : int
        The number of positions minus one: the degrees of freedom of ``method="chi2"``.
    method : {"bootstrap", "chi2"}
    increasing : bool
        Whether the fit increases towards the bottom: a disadvantage of the group.
    position : ndarray of shape (n,), int
        Counted from 1, the top.
    count : ndarray of shape (n,)
        Members of the group at each position over the rankings; of weighted rankings
        as over the number of equal ones that are worth as much, ``(Σ w)² / Σ w²``.
    support : ndarray of shape (n,)
        Rankings that have the position, in the same way.
    share : ndarray of shape (n,)
        ``count / support``.
    fit : ndarray of shape (n,)
        The monotone shares closest to `share`.
    band_low, band_high : ndarray of shape (n,)
        The band in which a share lies with probability `confidence_level`, position by
        position, if the fit is true; NaN for fewer than two clusters.
    confidence_level : float
        Confidence level of the band; the test rejects if the p-value is below one minus
        this level.
    n_rankings : float
    n_clusters : float
    null_distribution : ndarray of shape (n_resamples,) or None
        The statistic in resamples; None for ``method="chi2"``.
    """

    group: Hashable
    statistic: float
    pvalue: float
    df: int
    method: str
    increasing: bool
    position: Array
    count: Array
    support: Array
    share: Array
    fit: Array
    band_low: Array
    band_high: Array
    confidence_level: float
    n_rankings: float
    n_clusters: float
    null_distribution: Array | None = None

    @property
    def rejected(self) -> bool:
        """Whether the p-value is below ``1 - confidence_level``."""
        return bool(self.pvalue < 1 - self.confidence_level)

    @property
    def group_share(self) -> float:
        """The share of the group over all positions."""
        return float(self.count.sum() / self.support.sum())

    def plot(self, ax: Any = None, **kwargs: Any) -> MonotonicityDisplay:
        """Draw the shares, the monotone fit with its band, and the verdict.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `MonotonicityDisplay.plot`.

        Returns
        -------
        MonotonicityDisplay
        """
        from ..display._curves import MonotonicityDisplay

        return MonotonicityDisplay(self).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return the verdict in two lines."""
        verdict = "rejected" if self.rejected else "not rejected"
        if np.isnan(self.pvalue):
            verdict = "undecided"
        side = "increases" if self.increasing else "decreases"
        return (
            f"Monotone share of {fmt.label(self.group)}: {verdict} ("
            f"{fmt.pvalue_in_text(self.pvalue)}, {self.method}, chi-square "
            f"{self.statistic:.4g})\n{fmt.count(self.n_rankings)} ranking"
            f"{'s' * (self.n_rankings != 1)}, "
            f"{self.position.size} positions; the fit {side} from "
            f"{self.fit[0]:.3f} at the top to {self.fit[-1]:.3f}"
        )


@dataclass(frozen=True)
class _Fit:
    """Monotone fits of shares with fixed weights, and their chi-square."""

    weight: Array  # shape (n,): rankings that have each position
    increasing: bool | str  # a string is "auto"

    def directions(self, shares: Array) -> Array:
        """Return whether each row shall increase, by Spearman's sign if "auto"."""
        if self.increasing != "auto":
            return np.full(len(shares), bool(self.increasing))
        ranks = stats.rankdata(shares, axis=1)
        place = np.arange(shares.shape[1]) - (shares.shape[1] - 1) / 2
        return np.asarray(ranks @ place >= -_EQUAL)

    def __call__(self, shares: Array) -> Array:
        """Return the fits of the rows."""
        fits = [
            isotonic_regression(row, weights=self.weight, increasing=up).x
            for row, up in zip(shares, self.directions(shares).tolist(), strict=True)
        ]
        return np.array(fits).reshape(shares.shape)

    def chi_square(self, shares: Array, fits: Array, expected: Array) -> Array:
        """Return Pearson's statistic of the rows; a share of 0 takes no part."""
        scale = np.zeros(expected.size)
        np.divide(self.weight, expected, out=scale, where=expected > _EQUAL)
        return np.asarray((shares - fits) ** 2 @ scale)


def _position_sums(data: RankedData, group: Hashable, k: int | None) -> ClusterSums:
    """Return members and rows at every position, by cluster: positions as groups."""
    groups, ranking = data.groups, data.ranking
    number = number_of(group, groups.labels, "group")
    longest = int(ranking.lengths.max())
    if k is None:  # as many as at least half of the rankings have
        order, weight = np.argsort(-ranking.lengths), data.query_weight
        having = np.cumsum(np.ones(order.size) if weight is None else weight[order])
        n_positions = int(ranking.lengths[order][having >= having[-1] / 2][0])
    else:
        n_positions = min(int(k), longest)
    if n_positions < 2:
        raise ValueError(
            f"The test needs at least 2 positions; got {n_positions} (the longest of "
            f"the queries of qid has {longest} items, and without k half of them "
            "must have a position)."
        )
    if n_positions > _MOST_POSITIONS:
        raise ValueError(
            f"k must be given, at most {_MOST_POSITIONS}, for rankings of so many "
            f"positions; got {n_positions}."
        )
    member = groups.mask(number).astype(float)
    table = ranking.at_positions(n_positions, [member, np.ones(member.size)])
    positions = tuple(range(1, n_positions + 1))
    clusters = sum_over_queries(data, QuerySums.of_all(table))
    return ClusterSums.from_rows(positions, clusters, [ColumnSum(1, 2)])


def _pooled(fit: Array, covariance: Array, weight: Array, least: float) -> Array:
    """Return the fit with neighbouring levels merged that differ by little.

    Levels are merged while some difference is below `least` standard errors, the
    smallest first: noise bends the fit also where the truth is flat.
    """
    edges = np.flatnonzero(np.abs(np.diff(fit)) > _EQUAL) + 1
    levels = [level.tolist() for level in np.split(np.arange(fit.size), edges)]

    def distance(low: list[int], high: list[int]) -> float:
        slope = np.zeros(fit.size)
        slope[low] = -weight[low] / weight[low].sum()
        slope[high] = weight[high] / weight[high].sum()
        variance = slope @ covariance @ slope
        return float(abs(slope @ fit) / np.sqrt(variance)) if variance > 0 else np.inf

    while len(levels) > 1:
        distances = [distance(low, high) for low, high in pairwise(levels)]
        weakest = int(np.argmin(distances))
        if distances[weakest] >= least:
            break
        levels[weakest] += levels.pop(weakest + 1)
    merged = np.empty(fit.size)
    for level in levels:
        merged[level] = np.average(fit[level], weights=weight[level])
    return merged


def _resampled(
    sums: ClusterSums, fit: _Fit, n_resamples: int, rng: np.random.Generator
) -> Array:
    """Return statistics of resampled rankings whose mean shares are monotone."""
    share, covariance = sums.estimate(MeanOfRatios()), sums.covariance(MeanOfRatios())
    # A position that one ranking has gets the variance of a draw of a member.
    mean = np.average(share, weights=fit.weight)
    alone = np.isnan(np.diag(covariance))
    covariance = np.nan_to_num(covariance, nan=0.0)
    covariance[alone, alone] = mean * (1 - mean) / fit.weight[alone]
    # `least` grows without bound, but more slowly than the errors shrink.
    least = np.sqrt(np.log(sums.count))
    model = _pooled(fit(share[None])[0], covariance, fit.weight, least)
    if np.ptp(model) > _EQUAL:
        # Its direction is known, and not up to the noise of a resample.
        fit = replace(fit, increasing=bool(model[-1] > model[0]))
    drawn = []
    for totals in sums.resample(n_resamples, rng):
        resampled = MeanOfRatios()(*totals)
        # A position that no drawn ranking has says nothing.
        shift = np.where(np.isnan(resampled), 0.0, resampled - share)
        shift *= np.sqrt(sums.count / (sums.count - 1))
        shares = model + shift
        drawn.append(fit.chi_square(shares, fit(shares), model))
    return np.concatenate(drawn)


def monotonicity_test(
    y_score: Any,
    *,
    sensitive_features: Any,
    qid: Any,
    group: Hashable,
    cluster: Any = None,
    k: int | None = None,
    method: str = "bootstrap",
    increasing: bool | str = "auto",
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: int | np.random.Generator | None = None,
    sample_weight: Any = None,
) -> MonotonicityTest:
    """Test whether a group's share only rises, or only falls, from the top down.

    The paper's theorems, that the metrics of statistical parity have the same minima
    and slopes, assume such an advantage (its Assumptions 1 and 2). The null hypothesis
    is that the share of the group at position i, over rankings, is monotone in i: a
    small p-value says that the metrics may disagree.

    Parameters
    ----------
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties a count at a position is
        its mean over the orders of the tied items.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    qid : array-like of shape (n,)
        Query of each row: items are compared and ranked only within one query.
    group : hashable
        The protected group: one of the labels.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    k : int or None, default=None
        How many positions count, from the top. They may be 2 to 1000. None takes those
        that at least half of the rankings have.
    method : {"bootstrap", "chi2"}, default="bootstrap"
        "bootstrap" resamples clusters of rankings under the fitted monotone model.
        "chi2" is the paper's: the upper tail of a chi-square distribution with
        positions - 1 degrees of freedom, as if the counts were independent and the fit
        given. See the notes.
    increasing : {"auto", True, False}, default="auto"
        The direction from the top down. "auto" takes the sign of Spearman's correlation
        of position and share, as in scikit-learn's `IsotonicRegression`: two positions
        are always monotone, and are tested in a given direction only.
    confidence_level : float, default=0.95
        Confidence level of the bands. `MonotonicityTest.rejected` compares the p-value
        with one minus this level.
    n_resamples : int, default=999
        Number of resamples.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.

    Returns
    -------
    MonotonicityTest

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing,
        `group` is not one of the labels, there are fewer than two positions, a ranking
        is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If nobody or everybody is in the group, or if there are fewer than two clusters
        to resample: the p-value is NaN.

    See Also
    --------
    recommend_metrics : Says what to measure, given the result.

    Notes
    -----
    With O_i members at position i of the N_i rankings that have it (positions that the
    group never has count 0), and f_i the isotonic regression of O_i / N_i with weights
    N_i, the statistic is ``Σ_i (O_i - N_i f_i)² / (N_i f_i)``, over the positions
    with f_i > 0. For rankings of one length this is the paper's fit of the counts.

    The positions of one ranking exclude each other, the fit is chosen by the data, and
    rankings may depend on each other, so the statistic has no chi-square distribution:
    with independent rankings the chi-square version hardly ever rejects, and with
    dependent ones it rejects too often. The bootstrap draws whole clusters, shifts
    their mean shares to the model, fits again, and takes the expected counts of the
    statistics from the model. The model is the fit, with neighbouring levels merged
    that differ by less than ``sqrt(ln Q)`` standard errors, with Q clusters: noise
    bends the fit where the truth is flat, which is the null hypothesis that is hardest
    to tell from its alternatives. A flat model has no direction, so resamples choose
    theirs (for "auto"); another keeps its own. Where the truth is steep the test
    rejects less often than its level.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §5.

    Andrews, D. W. K., Soares, G. (2010). "Inference for Parameters Defined by Moment
    Inequalities Using Generalized Moment Selection". Econometrica 78(1).

    Examples
    --------
    >>> from skrankfair.datasets import make_biased_rankings
    >>> from skrankfair.inference import monotonicity_test
    >>> data = make_biased_rankings(200, 10, share=0.4, advantage=0.5, random_state=0)
    >>> who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    >>> monotonicity_test(data.y_score, **who, group="protected", random_state=0)
    Monotone share of protected: not rejected (p = 0.674, bootstrap, chi-square 1.286)
    200 rankings, 10 positions; the fit decreases from 0.516 at the top to 0.230
    """
    check_choice(method, "method", ("bootstrap", "chi2"))
    check_choice(increasing, "increasing", ("auto", True, False))
    check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
    check_number(k, "k", 2, np.inf, integer=True, optional=True)
    check_level(confidence_level)
    rng = generator(random_state)
    if qid is None:
        raise ValueError("qid must be given: the test is of many rankings; got None.")
    data = ranked_data(None, y_score, **given_columns(locals()))
    sums = _position_sums(data, group, k)
    count, support = sums.by_group.T
    if (weight := data.query_weight) is not None:
        # As over the number of equal rankings that are worth as much.
        effective = weight.sum() / (weight @ weight)
        count, support = count * effective, support * effective
    share, fit = count / support, _Fit(support, increasing)
    fitted = fit(share[None])[0]
    statistic = float(fit.chi_square(share[None], fitted[None], fitted)[0])
    pvalue, drawn = float("nan"), None
    why = "for fewer than two clusters of rankings"
    if count.sum() == 0:
        why = f"since nobody is in {fmt.label(group)}"
    elif (support == count).all():
        why = f"since everybody is in {fmt.label(group)}"
    elif method == "chi2":
        pvalue = float(stats.chi2.sf(statistic, share.size - 1))
    elif sums.count > 1:
        drawn = _resampled(sums, fit, n_resamples, rng)
        pvalue = (1 + np.count_nonzero(drawn >= statistic - _SLACK)) / (1 + n_resamples)
    if np.isnan(pvalue):
        warn_user(f"monotonicity_test has no p-value (NaN), {why}.")
    error = np.sqrt(np.diag(sums.covariance(MeanOfRatios())))
    margin = t_quantile(confidence_level, sums.count - 1) * error
    return MonotonicityTest(
        group=group,
        statistic=statistic,
        pvalue=pvalue,
        df=share.size - 1,
        method=method,
        increasing=bool(fit.directions(share[None])[0]),
        position=np.arange(1, share.size + 1),
        count=count,
        support=support,
        share=share,
        fit=fitted,
        band_low=np.clip(fitted - margin, 0.0, 1.0),
        band_high=np.clip(fitted + margin, 0.0, 1.0),
        confidence_level=confidence_level,
        n_rankings=float(data.ranking.n_queries),
        n_clusters=sums.count,
        null_distribution=drawn,
    )


_MINIMIZE = (
    "normalized_discounted_kl",
    "normalized_discounted_difference",
    "pairwise_parity",
    "exposure_parity",
)
_AVOID = ("normalized_discounted_ratio", "skew_at_k")


@dataclass(frozen=True)
class MetricRecommendation(Shown):
    """Metrics of statistical parity to use, by the names of their functions.

    Attributes
    ----------
    metrics : tuple of str
        The metrics to use, the first choice first.
    avoid : tuple of str
        The metrics to avoid, because they have no bounds.
    reason : str
        The reason, in a sentence or two.
    purpose : {"minimize", "evaluate"}
    rejected : bool
        Whether the test rejected a monotone advantage.
    """

    metrics: tuple[str, ...]
    avoid: tuple[str, ...]
    reason: str
    purpose: str
    rejected: bool

    def __repr__(self) -> str:
        """Return the names and the reason."""
        return (
            f"Use {', '.join(self.metrics)}.\nAvoid {', '.join(self.avoid)}.\n"
            f"{self.reason}"
        )


def recommend_metrics(
    test: MonotonicityTest, purpose: str = "minimize"
) -> MetricRecommendation:
    """Recommend metrics of statistical parity, given a monotonicity test.

    Parameters
    ----------
    test : MonotonicityTest
        The test of the rankings that are to be measured.
    purpose : {"minimize", "evaluate"}, default="minimize"
        Whether the metric is an objective that will be made small, or a measurement.

    Returns
    -------
    MetricRecommendation
        If the test rejected, or has no p-value, all metrics with bounds, to be looked
        at side by side. Otherwise, to minimize, rKL (which is smooth), rND, pair and
        exp, which have the same minima; to evaluate, pair, the only one that is at its
        maximum whenever a group has a total advantage, even over a minority.

    Raises
    ------
    ValueError
        If `test` is not a result of `monotonicity_test`, or if the purpose is unknown.

    See Also
    --------
    monotonicity_test : The test.
    skrankfair.metrics.expected_advantage : All metrics of one distribution of rankings.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §7.

    Examples
    --------
    >>> from skrankfair.datasets import make_biased_rankings
    >>> from skrankfair.inference import monotonicity_test, recommend_metrics
    >>> data = make_biased_rankings(100, 20, share=0.2, advantage=0.1, random_state=0)
    >>> test = monotonicity_test(
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     group="protected",
    ...     random_state=0,
    ... )
    >>> recommend_metrics(test, purpose="evaluate").metrics
    ('pairwise_parity',)
    """
    if not isinstance(test, MonotonicityTest):
        raise ValueError(
            f"test must be a result of monotonicity_test; got {type(test).__name__}."
        )
    check_choice(purpose, "purpose", ("minimize", "evaluate"))
    metrics: tuple[str, ...] = _MINIMIZE
    if test.rejected or np.isnan(test.pvalue):
        metrics = (*_MINIMIZE, "ndkl")
        reason = (
            "The advantage is not shown to be monotone in the position, so metrics may "
            "disagree: look at all of them and at the shares by position, and say "
            "first what fairness means here."
        )
    elif purpose == "minimize":
        reason = (
            "Their minima are the same, so to improve one is to improve all; rKL is "
            "smooth, and exposure fits where the attention to positions is known."
        )
    else:
        metrics = ("pairwise_parity",)
        reason = (
            "It alone is largest for a total advantage of either side, whatever the "
            "size of the group"
        )
        if test.group_share < 0.5:
            reason += (
                "; others would understate a disadvantage of this minority "
                f"({100 * test.group_share:.2g}%)"
            )
        reason += "."
    return MetricRecommendation(metrics, _AVOID, reason, purpose, test.rejected)
