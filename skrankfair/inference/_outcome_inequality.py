"""The outcome test of ranked lists without scores (Roth, Saint-Jacques and Yu)."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import check_level, generator
from .._estimates.metric import read_only
from .._inputs.ranking import ranked_data
from .._inputs.validation import Array, check_choice, check_number
from ..exceptions import UndefinedMetricWarning
from ._ranked_moments import Moments, MomentSums, moment_sums

if TYPE_CHECKING:
    import pandas as pd

    from ..display import OutcomeInequalityDisplay

_DRAWS = 1 << 22  # random numbers at once


@dataclass(frozen=True, eq=False)
class OutcomeInequalityTest:
    """What `outcome_inequality_test` found: one test over M moment inequalities.

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
    n_clusters : float
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
    n_clusters: float
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
        """Return one row a moment.

        Returns
        -------
        DataFrame
            With position_above, position_below, group_above, group_below, estimate,
            std_error, violation and support.
        """
        import pandas as pd

        above, below = (
            pd.Series([pair[side] for pair in self.groups], dtype=object)
            for side in (0, 1)
        )
        return pd.DataFrame(
            {
                "position_above": self.positions[:, 0],
                "position_below": self.positions[:, 1],
                "group_above": above,
                "group_below": below,
                "estimate": self.estimate,
                "std_error": self.standard_error,
                "violation": self.violation,
                "support": self.support,
            }
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> OutcomeInequalityDisplay:
        """Draw the moments that are violated most, with the critical value.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
        **kwargs : dict
            Passed to `OutcomeInequalityDisplay.from_test`.

        Returns
        -------
        OutcomeInequalityDisplay
        """
        from ..display import OutcomeInequalityDisplay

        return OutcomeInequalityDisplay.from_test(self, ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return the statistic, its p-value and the worst moment in words."""
        tested = int(np.count_nonzero(~np.isnan(self.violation)))
        lines = [
            f"outcome_inequality_test: statistic {fmt.number(self.statistic, 2)}, "
            f"critical value {fmt.number(self.critical_value, 2)}, "
            f"p = {fmt.pvalue(self.pvalue)}".replace("= <", "< ")
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
    pairs: str = "adjacent",
    top_k: int | None = 10,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    random_state: int | np.random.Generator | None = 0,
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
        Outcomes: binary, graded or real, the larger the better.
    y_score : array-like of shape (n,)
        Scores: the higher is ranked the earlier.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels; several columns are crossed. A boolean matrix or frame is a
        membership matrix of overlapping groups, one a column, each against the rest.
    qid : array-like of shape (n,) or None, default=None
        Query of each row. None is one list, which is too few to test.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries (a user with many queries). None:
        each query is its own.
    pairs : {"adjacent", "all"}, default="adjacent"
        Moments of neighbouring positions only, or of all pairs of positions.
    top_k : int or None, default=10
        Only the first k positions; None: as many as the longest query has.
    confidence_level : float, default=0.95
        Of the critical value: one minus the size of the test.
    n_resamples : int, default=10000
        Draws of the multiplier bootstrap.
    random_state : int, Generator or None, default=0
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the query, constant within it; 2 is the query seen twice.

    Returns
    -------
    OutcomeInequalityTest

    Raises
    ------
    ValueError
        For columns of different lengths, values that are not finite, missing labels,
        a query in two clusters, or an unknown option.

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
    multipliers e_c: one-sided, right for moments however correlated, exact in the
    limit when all of them are 0, and conservative when some are above. Given the data
    this is a normal vector with the correlation of the moments; it is drawn as such
    where there are more clusters than moments, at a cost that does not grow with the
    clusters. Moments with fewer than two clusters behind them are not tested.

    Tied scores have every order with equal chance: a moment is its mean over the
    orders. A query that is shorter than a position adds 0.

    References
    ----------
    Roth, J., Saint-Jacques, G., Yu, Y. (2022). "An Outcome Test of Discrimination for
    Ranked Lists". FAccT '22, 350-356. Korevaar, H., et al. "Matched Pair Calibration
    for Ranking Fairness", §3.2, on its relation to matched pairs.

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
    >>> who = {"sensitive_features": group, "qid": query}
    >>> outcome_inequality_test(y, quality - 0.3 * (group == "a"), **who)
    outcome_inequality_test: statistic 5.28, critical value 2.69, p < 0.001
    most violated: b at 2 above a at 3, 302 pairs
    14 moments, 1,000 clusters
    >>> outcome_inequality_test(y, quality, **who).pvalue > 0.9
    True
    """
    check_choice(pairs, "pairs", ("adjacent", "all"))
    if top_k is not None:
        check_number(top_k, "top_k", 2, np.inf, integer=True)
    check_level(confidence_level)
    check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
    rng = generator(random_state)
    data = ranked_data(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        qid=qid,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    moments = Moments.of(data, pairs, top_k)
    sums = moment_sums(data, moments)
    estimate, error = sums.mean, sums.standard_error
    violation = _violations(estimate, error)
    statistic = pvalue = critical = float("nan")
    if not np.isnan(violation).all():
        statistic = float(np.nanmax(violation))
        largest = _largest_violations(sums, error, int(n_resamples), rng)
        pvalue = (1 + np.count_nonzero(largest >= statistic)) / (1 + int(n_resamples))
        critical = float(np.quantile(largest, confidence_level))
    else:
        _warn_untested(data.ranking.n_queries)
    return OutcomeInequalityTest(
        statistic=statistic,
        pvalue=float(pvalue),
        critical_value=critical,
        confidence_level=confidence_level,
        n_clusters=int(sums.count) if sums.count.is_integer() else sums.count,
        positions=read_only(np.repeat(moments.positions + 1, len(moments.labels), 0)),
        groups=moments.labels * len(moments.positions),
        estimate=read_only(estimate),
        standard_error=read_only(error),
        violation=read_only(violation),
        support=read_only(sums.support),
    )


def _violations(estimate: Array, error: Array) -> Array:
    """Return ``-estimate / error``; without error the estimate decides alone."""
    with np.errstate(divide="ignore", invalid="ignore"):
        violation = -estimate / error
    exact = (error == 0) & (estimate == 0)
    return np.where(exact, 0.0, violation)


def _largest_violations(
    sums: MomentSums, error: Array, n_resamples: int, rng: np.random.Generator
) -> Array:
    """Return the largest violation of each draw of the multiplier bootstrap."""
    with np.errstate(invalid="ignore"):
        known = np.flatnonzero(error > 0)
    largest = np.zeros(n_resamples)
    if known.size:
        root = sums.root(known).T
        step = max(1, _DRAWS // len(root))
        for start in range(0, n_resamples, step):
            normal = rng.standard_normal((min(step, n_resamples - start), len(root)))
            largest[start : start + step] = (normal @ root).max(axis=1)
    return largest


def _warn_untested(n_queries: int) -> None:
    warnings.warn(
        "outcome_inequality_test is undefined (NaN): no two items of different groups "
        "stand at a pair of positions in two clusters or more; "
        f"got {n_queries} quer{'y' if n_queries == 1 else 'ies'}.",
        UndefinedMetricWarning,
        stacklevel=3,
    )
