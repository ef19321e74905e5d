"""The outcome test of ranked lists without scores (Roth, Saint-Jacques and Yu)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from .._estimates import formatting as fmt
from .._estimates.arrays import ReadOnlyArrays
from .._estimates.scales import check_level
from .._inputs.columns import check_one_way, given_columns
from .._inputs.groups import starts_of_runs
from .._inputs.ranking import RankedData, ranked_data
from .._inputs.validation import (
    Array,
    check_choice,
    check_magnitude,
    check_number,
    generator,
    warn_user,
)

if TYPE_CHECKING:
    from ..display._rows import OutcomeInequalityDisplay


_CHUNK = 1 << 19  # moments of the queries that are looked at together
_ROUNDING, _JITTER = 1e-12, 1e-10
#: What stands for "not of the group" where groups overlap.
REST = "rest"


def _conditions(
    data: RankedData, adjacent: bool, k: int | None
) -> tuple[Array, Array, list[tuple[Hashable, Hashable]]]:
    """Return pairs of positions, from 0, of classes of items, and of their labels.

    Each pair of positions, adjacent or not, has a moment with each pair of classes,
    which are columns of the membership.
    """
    longest = int(data.ranking.lengths.max())
    depth, groups = longest if k is None else min(int(k), longest), data.groups
    pairs = pairwise(range(depth)) if adjacent else combinations(range(depth), 2)
    names: list[Hashable] = list(groups.labels)
    classes = list(permutations(range(len(groups)), 2))
    if groups.overlapping:
        # Column 2 g is the group, column 2 g + 1 all that is not of it.
        names = [name for label in groups.labels for name in (label, REST)]
        classes = [(column, column ^ 1) for column in range(2 * len(groups))]
    return (
        np.array(list(pairs), dtype=np.int64).reshape(-1, 2),
        np.array(classes, dtype=np.int64).reshape(-1, 2),
        [(names[a], names[b]) for a, b in classes],
    )


@dataclass(frozen=True)
class MomentSums:
    """Sums of M moments over clusters, and of the squares of their residuals.

    A residual is what a cluster adds less its share of the mean, by its queries.
    """

    estimate: Array  # shape (M,): means over queries
    #: Standard errors of the means, shape (M,); NaN below two clusters with a pair.
    standard_error: Array
    support: Array  # shape (M,): number of pairs behind each moment
    count: int  # number of clusters
    df: float  # effective number of clusters, by their queries, minus one
    squares: Array  # shape (M,): Σ residual² over clusters, 0 where it is rounding
    #: The residuals, shape (n_clusters, M), if there are no more clusters than moments.
    residuals: Array | None
    #: Else their products over clusters, shape (M, M).
    products: Array

    def root(self, chosen: Array) -> Array:
        """Return R with R Rᵀ the correlation of some moments' means, shape (m, k)."""
        scale = np.sqrt(self.squares[chosen])
        if self.residuals is not None:
            return np.asarray((self.residuals[:, chosen] / scale).T)
        correlation = self.products[np.ix_(chosen, chosen)] / np.outer(scale, scale)
        # Moments may depend on each other exactly; this much more than rounding does
        # not show in a draw.
        correlation[np.diag_indices(chosen.size)] += _JITTER
        return np.linalg.cholesky(correlation)


def _moment_sums(data: RankedData, positions: Array, classes: Array) -> MomentSums:
    """Sum the moments over clusters, a chunk of clusters at a time."""
    check_one_way(data.item)
    weight, cluster = data.query_weight, data.clusters_of_queries()
    size, n_clusters = len(positions) * len(classes), int(cluster.max()) + 1
    total, (support, active) = np.zeros(size + 1), np.zeros((2, size))
    few, kept = n_clusters <= size, []
    products = np.zeros((0, 0) if few else (size + 1, size + 1))
    moments = _query_moments(data, positions, classes)
    order = np.argsort(cluster, kind="stable")
    chunk = np.arange(order.size) * (size + 1) // _CHUNK
    # A cluster is in the chunk of its first query.
    chunk = chunk[np.searchsorted(cluster[order], cluster[order])]
    for queries in np.split(order, np.flatnonzero(np.diff(chunk)) + 1):
        value, number = moments(queries)
        value = np.column_stack([value, np.ones(len(value))])
        if weight is not None:
            value *= weight[queries, None]
        starts = starts_of_runs(cluster[queries])
        value = np.add.reduceat(value, starts, axis=0)
        number = np.add.reduceat(number, starts, axis=0)
        total += value.sum(axis=0)
        support += number.sum(axis=0)
        active += (number > 0).sum(axis=0)
        if few:
            kept.append(value)
        else:
            products += value.T @ value
    mean, residuals = total[:-1] / total[-1], None
    if few:
        rows = np.concatenate(kept)
        raw = (rows**2).sum(axis=0)
        residuals = rows[:, :-1] - rows[:, -1:] * mean
        squares = (residuals**2).sum(axis=0)
    else:
        raw = np.diag(products)
        with_queries = np.outer(mean, products[-1, :-1])
        weight_of_all = products[-1, -1]
        products = products[:-1, :-1] - with_queries - with_queries.T
        products += np.outer(mean, mean) * weight_of_all
        squares = np.diag(products)
    squares = np.where(squares <= _ROUNDING * raw[:-1], 0.0, squares)
    error = np.sqrt(n_clusters / max(n_clusters - 1, 1) * squares) / total[-1]
    return MomentSums(
        estimate=mean,
        standard_error=np.where(active < 2, np.nan, error),
        support=support,
        count=n_clusters,
        df=float(total[-1] ** 2 / raw[-1]) - 1,
        squares=squares,
        residuals=residuals,
        products=products,
    )


def _query_moments(
    data: RankedData, positions: Array, classes: Array
) -> Callable[[Array], tuple[Array, Array]]:
    """Return a function of queries that gives their moments and numbers of pairs.

    Both are of shape (q, M). For positions j above k and classes a and b the moment is
    ``(Y_j - Y_k) 1{G_j = a, G_k = b}``, for tied scores its mean over their orders.
    """
    ranking, groups = data.ranking, data.groups
    depth = int(positions.max(initial=0)) + 1
    mean = np.add.reduceat(data.y_true, ranking.starts[:-1]) / ranking.lengths
    y = data.y_true - mean[ranking.query]
    members = [groups.mask(g).astype(float) for g in range(len(groups))]
    if groups.overlapping:
        members = [column for member in members for column in (member, 1 - member)]
    share = ranking.at_positions(depth, members)
    outcome = ranking.at_positions(depth, [member * y for member in members])
    first, last = ranking.tie_bounds()
    # The number of the tied block from 1, and its number of items.
    tie = ranking.at_positions(depth, [first + 1.0, last - first])
    (upper, lower), (a, b) = positions.T, classes.T

    def moments(queries: Array) -> tuple[Array, Array]:
        block, size = np.moveaxis(tie[queries], -1, 0)
        # In one tied block of m items, ordered pairs of different items: m (m - 1) of
        # m².
        tied, m = block[:, upper] == block[:, lower], size[:, upper]
        factor = np.where(tied, m / np.maximum(m - 1, 1), 1.0)[:, :, None]
        above, below = share[queries][:, upper], share[queries][:, lower]
        above, below = above[:, :, a], below[:, :, b]
        of_above, of_below = outcome[queries][:, upper], outcome[queries][:, lower]
        of_above, of_below = of_above[:, :, a] * below, above * of_below[:, :, b]
        moment = of_above - of_below
        moment[np.abs(moment) <= _ROUNDING * np.abs(of_above)] = 0.0
        shape = queries.size, upper.size * a.size
        return (moment * factor).reshape(shape), (above * below * factor).reshape(shape)

    return moments


_DRAWS = 1 << 22  # random numbers at once


@dataclass(frozen=True, eq=False)
class OutcomeInequalityTest(ReadOnlyArrays):
    """Result of `outcome_inequality_test`: one test over M moment inequalities.

    Attributes
    ----------
    statistic : float
        The largest violation; NaN if no moment could be tested.
    pvalue : float
        Share of the multiplier bootstrap, with the data as one more draw, whose
        largest violation reaches the statistic.
    critical_value : float
        The `confidence_level` quantile of the bootstrap: a larger statistic rejects.
    confidence_level : float
    n_clusters : int
        Number of independent units.
    positions : ndarray of shape (M, 2), int
        Upper and lower position of each moment, from 1.
    groups : tuple of (hashable, hashable), length M
        Group of the item at the upper and at the lower position. Where groups overlap
        one of the two is "rest": all items that are not of the other.
    estimate : ndarray of shape (M,)
        Mean over queries of (Y_j - Y_k) 1{G_j = a, G_k = b}.
    standard_error : ndarray of shape (M,)
        NaN with fewer than two clusters behind the moment.
    violation : ndarray of shape (M,)
        ``-estimate / standard_error``: how far below 0. NaN if it was not tested.
    support : ndarray of shape (M,)
        Pairs of items behind each moment.
    """

    statistic: float
    pvalue: float
    critical_value: float
    confidence_level: float
    n_clusters: int
    positions: Array
    groups: tuple[tuple[Hashable, Hashable], ...]
    estimate: Array
    standard_error: Array
    violation: Array
    support: Array

    @property
    def worst(self) -> int | None:
        """Index of the moment behind the statistic; None without one."""
        if np.isnan(self.statistic):
            return None
        return int(np.nanargmax(self.violation))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per moment.

        Returns
        -------
        DataFrame
            With position_above, position_below, group_above, group_below, estimate,
            standard_error, violation and support.
        """
        return pd.DataFrame(
            {
                "position_above": self.positions[:, 0],
                "position_below": self.positions[:, 1],
                "group_above": pd.Series([a for a, _ in self.groups], dtype=object),
                "group_below": pd.Series([b for _, b in self.groups], dtype=object),
                "estimate": self.estimate,
                "standard_error": self.standard_error,
                "violation": self.violation,
                "support": self.support,
            }
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> OutcomeInequalityDisplay:
        """Draw the moments that are violated most, with the critical value.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `OutcomeInequalityDisplay.plot`.

        Returns
        -------
        OutcomeInequalityDisplay
        """
        from ..display._rows import OutcomeInequalityDisplay

        return OutcomeInequalityDisplay(self).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return the statistic, its p-value and the worst moment in words."""
        tested = int(np.count_nonzero(~np.isnan(self.violation)))
        lines = [
            f"outcome_inequality_test: statistic {fmt.number(self.statistic, 2)}, "
            f"critical value {fmt.number(self.critical_value, 2)}, "
            + fmt.pvalue_in_text(self.pvalue)
        ]
        if (worst := self.worst) is not None:
            (j, k), (a, b) = self.positions[worst], self.groups[worst]
            lines.append(
                f"most violated: {fmt.label(a)} at {j} above {fmt.label(b)} at {k}, "
                f"{fmt.count(self.support[worst])} pairs"
            )
        lines.append(f"{tested} moments, {fmt.count(self.n_clusters)} clusters")
        return "\n".join(lines)


def outcome_inequality_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    qid: Any = None,
    cluster: Any = None,
    adjacent: bool = True,
    k: int | None = 10,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    random_state: int | np.random.Generator | None = None,
    sample_weight: Any = None,
) -> OutcomeInequalityTest:
    """Test whether swapping items of two groups would improve the ranking.

    A ranker that only looks at expected outcomes puts an item of group a at position
    j above one of group b at position k because it expects no less of it. So for all
    j < k and a ≠ b

        E[(Y_j - Y_k) 1{G_j = a, G_k = b}] ≥ 0,

    whatever the ranker knew. A moment below 0 says that the two could be swapped to
    advantage: group b is undervalued. Only the order of the scores is used, and the
    test says nothing where better items are far above: `matched_pair_calibration`,
    which looks at the scores, sees more.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    adjacent : bool, default=True
        Whether only neighbouring positions have moments, instead of all pairs of
        positions.
    k : int or None, default=10
        How many positions count, from the top. They must be at least 2. None takes as
        many as the longest query has.
    confidence_level : float, default=0.95
        One minus the size of the test, to which the critical value belongs.
    n_resamples : int, default=10000
        Number of resamples. They are those of a multiplier bootstrap.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.

    Returns
    -------
    OutcomeInequalityTest

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If no moment has two clusters with such a pair; statistic and p-value are NaN.

    See Also
    --------
    skrankfair.metrics.matched_pair_calibration : An equality instead, from the scores.

    Notes
    -----
    With X̄ the mean of a moment over N queries, r_c the sum of ``X_q - X̄`` over the
    queries of cluster c, and ``se² = C / (C - 1) Σ_c r_c² / N²`` over C clusters, the
    statistic is the largest ``-X̄ / se``. Its critical value is the quantile of the
    largest ``Σ_c e_c r_c / sqrt(Σ_c r_c²)`` with independent standard normal
    multipliers e_c: one-sided, right for moments however correlated, and exact in the
    limit when all of them are 0. Moments that are more than ``sqrt(ln C)`` standard
    errors above 0 are left out of it, since they are not the largest violation: that
    finds more where most moments are above 0 (Andrews and Soares 2010). Given the data
    this is a normal vector with the correlation of the moments; it is drawn as such
    where there are more clusters than moments, at a cost that does not grow with the
    clusters. The deviates of the draws become those of Student's t at the same
    probability, with the effective number of clusters (by their queries) minus one as
    degrees of freedom. Moments with fewer than two clusters behind them are not tested.

    Only a bias that outweighs the distance of neighbours makes a moment negative, so
    that the test has little power. Of queries of eight items with uniform qualities,
    which are 0.11 apart on average, a group of half of the items whose scores are too
    low by 0.2 is found in 13% of data sets of 100 queries, 49% of 400 and 99% of 1,600;
    by 0.3 in 46% of 100 and 96% or more of 400; by 0.1 never. A comparison of the
    outcomes at equal scores finds all of them. Fair rankings are rejected in 0% to 5%,
    but for real outcomes whose tail is longer in one group: where its rare large
    outcomes are missing, its moments are below 0 and seem certain. Lognormal outcomes
    with equal means were rejected in 17% (30% of the items with σ = 1, the others with
    0.5; 250 queries of eight) and in 50% (1.5 and 0.5; 100 queries), and in 1% with σ =
    1.5 in both groups.

    Tied scores have every order with equal chance: a moment is its mean over the
    orders. A query that is shorter than a position adds 0.

    References
    ----------
    Roth, J., Saint-Jacques, G., Yu, Y. (2022). "An Outcome Test of Discrimination for
    Ranked Lists". FAccT '22, 350-356. Korevaar, H., et al. "Matched Pair Calibration
    for Ranking Fairness", §3.2, on its relation to matched pairs.

    Andrews, D. W. K., Soares, G. (2010). "Inference for Parameters Defined by Moment
    Inequalities Using Generalized Moment Selection". Econometrica 78(1).

    Chernozhukov, V., Chetverikov, D., Kato, K. (2019). "Inference on Causal and
    Structural Parameters using Many Moment Inequalities". Review of Economic Studies
    86(5): the multiplier bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import outcome_inequality_test
    >>> rng = np.random.default_rng(0)
    >>> query = np.repeat(np.arange(1000), 8)
    >>> group = rng.choice(["a", "b"], size=query.size)
    >>> quality = rng.random(query.size)
    >>> y = rng.random(query.size) < quality
    >>> who = {"sensitive_features": group, "qid": query, "random_state": 0}
    >>> outcome_inequality_test(y, quality - 0.3 * (group == "a"), **who)
    outcome_inequality_test: statistic 5.28, critical value 2.46, p < 0.001
    most violated: b at 2 above a at 3, 302 pairs
    14 moments, 1,000 clusters
    >>> outcome_inequality_test(y, quality, **who).pvalue > 0.9
    True
    """
    check_choice(adjacent, "adjacent", (True, False))
    check_number(k, "k", 2, np.inf, integer=True, optional=True)
    check_level(confidence_level)
    check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
    rng = generator(random_state)
    data = ranked_data(y_true, y_score, **given_columns(locals()))
    check_magnitude(y_true=data.y_true)
    positions, classes, labels = _conditions(data, adjacent, k)
    sums = _moment_sums(data, positions, classes)
    estimate, error = sums.estimate, sums.standard_error
    with np.errstate(divide="ignore", invalid="ignore"):
        violation = -estimate / error
    # Without error the estimate decides alone.
    violation[(error == 0) & (estimate == 0)] = 0.0
    statistic = pvalue = critical = float("nan")
    if not np.isnan(violation).all():
        statistic = float(np.nanmax(violation))
        # Moments that are clearly above 0 cannot be the largest violation.
        near = (error > 0) & (violation > -np.sqrt(np.log(max(sums.count, 3))))
        largest = _largest_violations(sums, near, int(n_resamples), rng)
        pvalue = (1 + np.count_nonzero(largest >= statistic)) / (1 + int(n_resamples))
        critical = float(np.quantile(largest, confidence_level))
    else:
        n_queries = data.ranking.n_queries
        warn_user(
            "outcome_inequality_test is undefined (NaN): no two items of different "
            "groups stand at a pair of positions in two clusters or more; "
            f"got {n_queries} quer{'y' if n_queries == 1 else 'ies'}."
        )
    return OutcomeInequalityTest(
        statistic=statistic,
        pvalue=float(pvalue),
        critical_value=critical,
        confidence_level=confidence_level,
        n_clusters=sums.count,
        positions=np.repeat(positions + 1, len(labels), 0),
        groups=tuple(labels * len(positions)),
        estimate=estimate,
        standard_error=error,
        violation=violation,
        support=sums.support,
    )


def _largest_violations(
    sums: MomentSums, near: Array, n_resamples: int, rng: np.random.Generator
) -> Array:
    """Return the largest violation of some moments in draws of multipliers.

    Errors rest on few clusters or on many: the normal deviates of the draws become
    those of Student's t at the same probability.
    """
    known = np.flatnonzero(near)
    largest = np.zeros(n_resamples)
    if known.size:
        root = sums.root(known).T
        step = max(1, _DRAWS // len(root))
        for start in range(0, n_resamples, step):
            normal = rng.standard_normal((min(step, n_resamples - start), len(root)))
            largest[start : start + step] = (normal @ root).max(axis=1)
        if sums.df > 0:
            return np.asarray(-special.stdtrit(sums.df, special.ndtr(-largest)))
    return largest
