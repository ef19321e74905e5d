"""Are higher scores of one group better than lower ones of another? Means in ranges."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates.arrays import ReadOnlyArrays
from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.leverage import degrees_of_freedom
from .._estimates.rows import cluster_table
from .._estimates.scales import welch_df
from .._estimates.simultaneous import MOST_TOGETHER, Simultaneous
from .._estimates.sums import ClusterSums
from .._inputs.columns import given_columns
from .._inputs.groups import Groups
from .._inputs.score_rows import ScoreRows, score_rows
from .._inputs.validation import (
    Array,
    check_given,
    check_magnitude,
    check_number,
    warn_user,
    weighted_quantile,
)
from ..smoothing._bandwidth import FEWEST, enough
from ._contrast_test import difference_errors, largest, parameters_of_test

N_BINS, _MOST_BINS = 4, 20


@dataclass(frozen=True, eq=False)
class ScoreOrderTest(ReadOnlyArrays):
    """Result of `score_order_test`: T comparisons, the most wrong order first.

    Attributes
    ----------
    statistic : float
        The largest normal deviate of the one-sided p-values; NaN without a comparison.
    pvalue : float
        P-value of no wrong order anywhere: the smallest corrected one.
    groups : tuple of (hashable, hashable), length T
        The group with the lower and that with the higher scores.
    ranges : ndarray of shape (T, 4)
        Lowest and highest score of the lower range, then of the higher range.
    difference : ndarray of shape (T,)
        Mean outcome in the lower minus that in the higher range.
    standard_error : ndarray of shape (T,)
    pvalues : ndarray of shape (T,)
        One-sided p-values, corrected for their number.
    n_clusters : int
    """

    statistic: float
    pvalue: float
    groups: tuple[tuple[Hashable, Hashable], ...]
    ranges: Array
    difference: Array
    standard_error: Array
    pvalues: Array
    n_clusters: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row per comparison, the most wrong order first.

        Returns
        -------
        DataFrame
            Columns lower, higher (groups), lower_from, lower_to, higher_from, higher_to
            (scores), difference, standard_error and pvalue (corrected).
        """
        ends = ["lower_from", "lower_to", "higher_from", "higher_to"]
        groups = pd.DataFrame(self.groups, columns=["lower", "higher"], dtype=object)
        return groups.join(pd.DataFrame(self.ranges, columns=ends)).assign(
            difference=self.difference,
            standard_error=self.standard_error,
            pvalue=self.pvalues,
        )

    def __repr__(self) -> str:
        """Return the p-value, and where the order is most in doubt."""
        text = (
            f"score_order_test: max z = {self.statistic:.3g}, p = {self.pvalue:.3g}; "
            f"{len(self.groups)} comparisons, {self.n_clusters:,} clusters"
        )
        if not self.groups:
            return text
        low, high = map(fmt.label, self.groups[0])
        a, b, c, d = self.ranges[0].tolist()
        return (
            f"{text}\n{low} at {a:.3g} to {b:.3g} minus {high} at {c:.3g} to {d:.3g}: "
            f"{fmt.number(self.difference[0])} ± {fmt.number(self.standard_error[0])}"
        )


def _in_ranges(rows: ScoreRows, n_bins: int) -> tuple[Array, Array, Array, Array]:
    """Return ranges of the scores of each group, and which rows are in each, (n, K).

    A range is the number of its group, its lowest and its highest score, (K,) each.
    """
    groups, low, high, members = [], [], [], []
    for group in range(len(rows.groups)):
        inside = rows.groups.mask(group)
        if not inside.any():  # a column that marks no member
            continue
        of_group = rows.take(np.flatnonzero(inside))
        size = max(1, min(n_bins, of_group.n_clusters // FEWEST))
        levels = np.arange(1, size) / size
        edges = np.unique(weighted_quantile(of_group.x, levels, of_group.weight))
        ends = [-np.inf, *edges[edges < of_group.x.max()], np.inf]
        for i, j in combinations_with_replacement(range(len(ends) - 1), 2):
            member = inside & (rows.x > ends[i]) & (rows.x <= ends[j + 1])
            groups.append(group)
            low.append(rows.x[member].min())
            high.append(rows.x[member].max())
            members.append(member)
    return np.array(groups), np.array(low), np.array(high), np.stack(members, axis=1)


def order_of_scores(
    rows: ScoreRows, n_bins: int, cluster_weight: str, n_resamples: int, seed: Any
) -> ScoreOrderTest:
    """Return the test of validated rows; a ValueError for too many groups."""
    if (size := len(rows.groups)) > MOST_TOGETHER:
        raise ValueError(
            f"sensitive_features must have at most {MOST_TOGETHER} groups, whose order "
            f"is compared in pairs; got {size:,}."
        )
    group, low, high, members = _in_ranges(rows, n_bins)
    cells = replace(rows, groups=Groups(tuple(range(group.size)), members))
    sample = cells.sample(cluster_weight)
    share, y = sample.share, sample.y
    table = cluster_table(cells, sample, [share * y, share])
    sums = ClusterSums.from_rows(cells.groups.labels, table, [ColumnSum(1, 2)])
    mean, covariance = sums.estimate(MeanOfRatios()), sums.covariance(MeanOfRatios())
    df, effective = degrees_of_freedom(sums, MeanOfRatios())
    mass, square, independent = (
        np.bincount(sample.group, column, group.size)
        for column in (share, share * y**2, share**2)
    )
    below, above = (high[:, None] < low).nonzero()
    pairs = np.column_stack([below, above])[group[below] != group[above]]
    variance = np.diag(covariance)
    error = difference_errors(variance, covariance, pairs)
    # At least that of independent rows that have one mean in both ranges.
    n = effective[pairs]
    common, squares = (
        (n * values[pairs]).sum(axis=1) / n.sum(axis=1)
        for values in (mean, square / mass)
    )
    common = np.maximum(squares - common**2, 0)
    spread, known = common[:, None], enough(n).all(axis=1)
    if np.unique(y).size == 2:
        known &= n.min(axis=1) * common >= np.ptp(y) ** 2
    else:  # a range may lack the rare outcomes that others of its group have
        within = np.bincount(group, square - mass * mean**2) / np.bincount(group, mass)
        spread = np.maximum(spread, within[group[pairs]])
    least = (spread * (independent / mass**2)[pairs]).sum(axis=1)
    pairs, error, least = pairs[known], error[known], least[known]
    first, second = pairs.T
    tests = Simultaneous(
        estimate=mean[first] - mean[second],
        standard_error=np.maximum(error, np.sqrt(least)),
        df=welch_df(*variance[pairs.T], *df[pairs.T]),
        covariance=(covariance,),
        contrasts=pairs,
        n_resamples=n_resamples,
        random_state=seed,
        spread=error,
        sides=1,
    )
    order = np.argsort(-tests.deviate, kind="stable")
    pvalues = tests.corrected("sup_t")
    labels = rows.groups.labels
    ranges = np.column_stack([low[first], high[first], low[second], high[second]])
    return ScoreOrderTest(
        statistic=largest(tests.deviate),
        pvalue=-largest(-pvalues),
        groups=tuple((labels[a], labels[b]) for a, b in group[pairs[order]].tolist()),
        ranges=ranges[order],
        difference=tests.estimate[order],
        standard_error=tests.standard_error[order],
        pvalues=pvalues[order],
        n_clusters=rows.n_clusters,
    )


def score_order_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    n_bins: int = N_BINS,
    cluster_weight: str = "cluster",
    n_resamples: int = 20_000,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> ScoreOrderTest:
    """Test whether a lower score of one group never means a better outcome of another.

    Predictive parity as `predictive_parity_test` tests it says nothing of groups that
    have no scores in common: a lender may give all men scores below a half and all
    women scores above it. Definition 2 of the paper asks for the order too, that
    ``E[Y | S = s, G = a] <= E[Y | S = s', G = b]`` for all ``s < s'`` and ``a != b``.
    A mean outcome of one group in a range of scores that is above that of another group
    in a higher range contradicts it.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real.
    y_score : array-like of shape (n,)
        Scores on any scale. Only their order is used.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. A cluster may have rows of several groups.
    n_bins : int, default=4
        Number of parts of equal weight into which the scores of each group are cut, at
        most 20; it is smaller where a part would have fewer than five clusters. More
        parts find what is narrow, and less of what is wide.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row.
        The curve is that of the means of its ranges.
    n_resamples : int, default=20000
        Number of simulated draws.
    random_state : int, Generator or None, default=0
        Seed or generator of the random numbers, 0 so that a result that is computed
        when it is first asked for can be repeated.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.

    Returns
    -------
    ScoreOrderTest
        ``statistic``, ``pvalue``, and the comparisons with their differences.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, there are more than 32
        groups, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        Where no two ranges of different groups have enough data, one below the other:
        the p-value is NaN.

    See Also
    --------
    predictive_parity_test : Whether equal scores mean equal outcomes.

    Notes
    -----
    The ranges of a group are its parts and all runs of neighbouring ones, up to all its
    scores. All ranges of two groups are compared of which one is below the other, with
    ``n_bins=4`` up to 100 for groups without common scores. With mean outcomes A
    and B of the lower and the higher range, ``(A - B) / se`` is compared with Student's
    t on one side. The error is cluster-robust, and at least that of independent rows
    with a common mean and, but for two outcomes, with the mean variance within the
    ranges of their group, since a range may lack the rare outcomes of others. Each
    range needs five effective clusters, and, of two outcomes, one expected of each. All
    comparisons together are corrected by the largest of a normal vector of their
    estimated correlations. Equal means everywhere are the order that is hardest to tell
    from a wrong one, so that the test is conservative for all others. Real outcomes
    whose tail is longer in the group of higher scores are an exception where that group
    is small: lognormal outcomes with equal means were rejected in 10% (180 of 600 rows
    with σ = 1.5, the lower ones with 0.5), and in 3% where they were 420 rows.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §2, Definition 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import score_order_test
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], size=2000)
    >>> risk = rng.uniform(0, 0.5, size=2000) + 0.5 * (sex == "f")
    >>> default = rng.uniform(size=2000) < np.where(sex == "f", 0.2, 0.3)
    >>> score_order_test(default, risk, sensitive_features=sex)
    score_order_test: max z = 3.59, p = 0.00565; 100 comparisons, 2,000 clusters
    m at 0.000165 to 0.5 minus f at 0.501 to 0.999: 0.0707 ± 0.0196
    """
    check_given(sensitive_features=sensitive_features)
    parameters_of_test(locals())
    check_number(n_bins, "n_bins", 1, _MOST_BINS, integer=True)
    rows = score_rows(y_true, y_score, **given_columns(locals()))
    check_magnitude(y_score=rows.x)
    result = order_of_scores(
        rows, int(n_bins), cluster_weight, n_resamples, random_state
    )
    if np.isnan(result.pvalue):
        warn_user(
            "score_order_test is undefined (NaN): no two groups have ranges of scores, "
            f"one below the other, with enough data each, {FEWEST} effective clusters "
            "and, of two outcomes, one expected of each."
        )
    return result
