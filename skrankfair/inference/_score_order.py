"""Are higher scores of one group better than lower ones of another? Means in ranges."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from .._estimates import formatting as fmt
from .._estimates.arrays import ReadOnlyArrays, cached_read_only
from .._estimates.scales import welch_df
from .._estimates.simultaneous import MOST_TOGETHER, Simultaneous
from .._inputs.score_rows import Sample, ScoreRows, score_rows
from .._inputs.validation import (
    Array,
    check_given,
    check_magnitude,
    check_number,
    warn_user,
    weighted_quantile,
)
from ..smoothing._bandwidth import FEWEST, enough
from ._contrast_test import checked_test_options, largest

if TYPE_CHECKING:
    import pandas as pd


N_BINS, _MOST_BINS = 4, 20


class _Cells(NamedTuple):
    """Mean outcomes of a group between two of its scores, for K such ranges."""

    group: Array  # shape (K,): number of the group
    low: Array  # shape (K,): lowest score
    high: Array  # shape (K,): highest score
    mean: Array  # shape (K,)
    square: Array  # shape (K,): mean square of the outcomes
    effective: Array  # shape (K,): effective number of clusters
    independent: Array  # shape (K,): variance of the mean, of rows of variance 1
    covariance: Array  # shape (K, K): of the means, cluster-robust


@dataclass(frozen=True, eq=False)
class ScoreOrderTest(ReadOnlyArrays):
    """Mean outcomes of two groups in ranges of the score, one below the other.

    Made by `score_order_test`; arrays have one value per comparison.

    Attributes
    ----------
    groups : tuple of (hashable, hashable), length T
        The group with the lower and that with the higher scores.
    ranges : ndarray of shape (T, 2, 2)
        Lowest and highest score of the lower, and then of the higher range.
    tests : Simultaneous
        The differences of the mean outcomes, lower minus higher range.
    n_clusters : int
    parameters : dict
        The options of the test.
    """

    groups: tuple[tuple[Hashable, Hashable], ...]
    ranges: Array
    tests: Simultaneous = field(repr=False)
    n_clusters: int
    parameters: Mapping[str, Any]

    @property
    def difference(self) -> Array:
        """Mean outcome at the lower minus that at the higher scores, shape (T,)."""
        return self.tests.estimate

    @property
    def standard_error(self) -> Array:
        """Standard errors of the differences, shape (T,); NaN with too little data."""
        return self.tests.standard_error

    @cached_read_only
    def pvalues(self) -> Array:
        """One-sided p-values, corrected for their number, shape (T,)."""
        return self.tests.corrected("sup_t")

    @property
    def statistic(self) -> float:
        """The largest normal deviate of the one-sided p-values."""
        return largest(self.tests.deviate)

    @property
    def pvalue(self) -> float:
        """P-value of no wrong order anywhere: the smallest corrected one."""
        return -largest(-self.pvalues)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per comparison, the most wrong order first.

        Returns
        -------
        DataFrame
            Columns lower, higher (groups), lower_from, lower_to, higher_from, higher_to
            (scores), difference, standard_error and pvalue (corrected).
        """
        import pandas as pd

        names = [(side, end) for side in ("lower", "higher") for end in ("from", "to")]
        frame = pd.DataFrame(
            {
                **{
                    side: pd.Series([pair[i] for pair in self.groups], dtype=object)
                    for i, side in enumerate(("lower", "higher"))
                },
                **{
                    f"{side}_{end}": column
                    for (side, end), column in zip(
                        names, self.ranges.reshape(-1, 4).T, strict=True
                    )
                },
                "difference": self.difference,
                "standard_error": self.standard_error,
                "pvalue": self.pvalues,
            }
        )
        order = np.argsort(-np.nan_to_num(self.tests.deviate, nan=-np.inf))
        return frame.iloc[order].reset_index(drop=True)

    def __repr__(self) -> str:
        """Return the p-value, and where the order is most in doubt."""
        known = int(np.count_nonzero(~np.isnan(self.pvalues)))
        head = (
            f"score_order_test: max z = {self.statistic:.3g}, p = {self.pvalue:.3g}; "
            f"{known} comparisons, {self.n_clusters:,} clusters"
        )
        lines = [head]
        if known:
            worst = int(np.nanargmax(self.tests.deviate))
            (below, above), ends = self.groups[worst], self.ranges[worst].ravel()
            lines.append(
                f"{fmt.label(below)} at {ends[0]:.3g} to {ends[1]:.3g} minus "
                f"{fmt.label(above)} at {ends[2]:.3g} to {ends[3]:.3g}: "
                f"{fmt.number(self.difference[worst])} "
                f"± {fmt.number(self.standard_error[worst])}"
            )
        return "\n".join(lines)


def _cells(sample: Sample, n_groups: int, n_bins: int) -> _Cells:
    """Return the means of each group in bins of its scores and in runs of bins."""
    # The group, its number of clusters, the lowest and the highest score.
    bins: list[tuple[int, float, float, float]] = []
    runs: list[tuple[int, int]] = []  # first and last bin
    place = np.empty(sample.x.size, dtype=np.int64)
    for group, own in enumerate(sample.rows_of_groups(n_groups)):
        if not own.size:
            continue
        of_group = sample.take(own)
        size = max(1, min(n_bins, int(of_group.n_active) // FEWEST))
        levels = np.arange(1, size) / size
        edges = weighted_quantile(of_group.x, levels, of_group.share)
        codes = np.searchsorted(edges, of_group.x, side="left")
        present, codes = np.unique(codes, return_inverse=True)
        first = len(bins)
        place[own] = first + codes
        for code in range(present.size):
            inside = of_group.x[codes == code]
            bins.append((group, of_group.n_active, inside.min(), inside.max()))
        runs += combinations_with_replacement(range(first, len(bins)), 2)
    where = (sample.cluster, place)
    shape = sample.n_clusters, len(bins)
    share, y = sample.share, sample.y
    mass, total = (
        sparse.csr_array((column, where), shape=shape) for column in (share, share * y)
    )
    first_bin, last_bin = np.array(runs).T
    columns = np.arange(len(bins))[:, None]
    members = ((columns >= first_bin) & (columns <= last_bin)).astype(float)
    weight = mass.sum(axis=0) @ members
    mean = (total.sum(axis=0) @ members) / weight
    square, independent = (
        np.bincount(place, column, len(bins)) @ members
        for column in (share * y**2, share**2)
    )
    of_mass, of_total, between = (
        members.T @ (a.T @ b).toarray() @ members
        for a, b in ((mass, mass), (total, total), (total, mass))
    )
    product = of_total - between * mean - (between * mean).T
    product += np.outer(mean, mean) * of_mass
    of_bin, active, low, high = map(np.array, zip(*bins, strict=True))
    scale = np.sqrt(active / np.maximum(active - 1, 1))[first_bin] / weight
    return _Cells(
        *(of_bin[first_bin], low[first_bin], high[last_bin], mean, square / weight),
        *(weight**2 / np.diag(of_mass), independent / weight**2),
        product * np.outer(scale, scale),
    )


def order_of_scores(
    rows: ScoreRows, n_bins: int, cluster_weight: str, n_resamples: int, seed: Any
) -> ScoreOrderTest:
    """Return the test of validated rows; a ValueError for too many groups."""
    size = len(rows.groups)
    if size > MOST_TOGETHER:
        raise ValueError(
            f"sensitive_features must have at most {MOST_TOGETHER} groups, whose order "
            f"is compared in pairs; got {size:,}."
        )
    sample = rows.sample(cluster_weight)
    cells = _cells(sample, size, n_bins)
    below, above = (cells.high[:, None] < cells.low).nonzero()
    other = cells.group[below] != cells.group[above]
    pairs = np.column_stack([below[other], above[other]])
    first, second = pairs.T
    variance = np.diag(cells.covariance)
    spread = variance[first] + variance[second] - 2 * cells.covariance[first, second]
    # At least that of independent rows that have one mean in both ranges.
    n = cells.effective[pairs]
    mean, square = (
        (n * values[pairs]).sum(axis=1) / n.sum(axis=1)
        for values in (cells.mean, cells.square)
    )
    common = np.maximum(square - mean**2, 0)
    least = common * cells.independent[pairs].sum(axis=1)
    error = np.sqrt(np.maximum(spread, least))
    known = enough(n).all(axis=1)
    low, high = float(rows.y.min()), float(rows.y.max())
    if np.isin(rows.y, (low, high)).all():
        known &= n.min(axis=1) * common >= (high - low) ** 2
    tests = Simultaneous(
        np.where(known, cells.mean[first] - cells.mean[second], np.nan),
        np.where(known, error, np.nan),
        welch_df(*variance[pairs.T], *(n - 1).T),
        (cells.covariance,),
        pairs,
        n_resamples,
        seed,
        np.sqrt(np.maximum(spread, 0)),
        sides=1,
    )
    labels = rows.groups.labels
    return ScoreOrderTest(
        tuple((labels[a], labels[b]) for a, b in cells.group[pairs].tolist()),
        np.stack([cells.low[pairs], cells.high[pairs]], axis=2),
        tests,
        rows.n_clusters,
        {"n_bins": n_bins, "cluster_weight": cluster_weight},
    )


def score_order_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    n_bins: int = 4,
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
        The scores of each group are cut into so many parts of equal weight, fewer where
        a part would have fewer than five clusters. More parts find what is narrow, and
        less of what is wide.
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
    with a common mean; each range needs five effective clusters, and, of two outcomes,
    one expected of each. All comparisons together are corrected by the largest of a
    normal vector of their estimated correlations. Equal means everywhere are the order
    that is hardest to tell from a wrong one, so that the test is conservative for all
    others.

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
    checked_test_options(n_resamples=n_resamples, random_state=random_state)
    check_number(n_bins, "n_bins", 1, _MOST_BINS, integer=True)
    rows = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
    )
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
