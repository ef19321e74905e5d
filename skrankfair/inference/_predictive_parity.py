"""Do equal scores mean equal outcomes in all groups? Curves compared on a grid."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import CORRECTIONS, Simultaneous, check_level, generator
from .._inputs.score_rows import ScoreRows, score_rows
from .._inputs.validation import Array, as_numbers, check_choice, check_number
from ..exceptions import UndefinedMetricWarning
from ..metrics import ConfidenceInterval
from ..smoothing._bandwidth import check_bandwidth, choose_bandwidth
from ..smoothing._group_curves import CurveSums
from ..smoothing._kernels import get_kernel

if TYPE_CHECKING:
    import pandas as pd

    from ..display import PredictiveParityDisplay


@dataclass(frozen=True, eq=False)
class PredictiveParityTest:
    """Curves of mean outcome by score, by group, and where they differ.

    Made by `predictive_parity_test`. Results of parts of the data with the same grid
    and bandwidth add up: ``a + b`` is the result on the union of their clusters.

    Attributes
    ----------
    sums : CurveSums
        Kernel sums over clusters with their cross products.
    bandwidth : float
    parameters : dict
        The options of the test.
    """

    sums: CurveSums
    bandwidth: float
    parameters: Mapping[str, Any]

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups, of length G."""
        return self.sums.sums.groups

    @property
    def grid(self) -> Array:
        """The scores at which the curves are compared, shape (J,)."""
        return self.sums.grid

    @property
    def n_clusters(self) -> float:
        """The number of clusters."""
        count = self.sums.sums.count
        return int(count) if float(count).is_integer() else count

    @property
    def curves(self) -> Array:
        """Mean outcome by group and score, shape (G, J); NaN where undefined."""
        return self.sums.estimate[: len(self.groups)]

    @property
    def standard_error(self) -> Array:
        """Standard errors of the curves, shape (G, J)."""
        return self._error[: len(self.groups)]

    @cached_property
    def _error(self) -> Array:
        return np.sqrt(np.einsum("hjhj->hj", self.sums.covariance))

    @cached_property
    def contrasts(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """What is compared: two groups, or a group and "rest"; of length C."""
        groups, reference = self.groups, self.parameters["reference"]
        if self.sums.rests:
            return tuple((group, "rest") for group in groups)
        if reference is not None:
            return tuple((g, reference) for g in groups if g != reference)
        return tuple(combinations(groups, 2))

    @cached_property
    def _pairs(self) -> Array:
        """The two curves of each contrast, shape (C, 2)."""
        size = len(self.groups)
        if self.sums.rests:
            return np.column_stack([np.arange(size), size + np.arange(size)])
        place = {group: i for i, group in enumerate(self.groups)}
        pairs = [(place[a], place[b]) for a, b in self.contrasts]
        return np.array(pairs, dtype=int).reshape(-1, 2)

    @cached_property
    def difference(self) -> Array:
        """First less second curve of each contrast, shape (C, J)."""
        first, second = self._pairs.T
        return self.sums.estimate[first] - self.sums.estimate[second]

    @cached_property
    def difference_standard_error(self) -> Array:
        """Standard errors of the differences, shape (C, J)."""
        first, second = self._pairs.T
        points = np.arange(self.grid.size)
        both = self.sums.covariance[first[:, None], points, second[:, None], points]
        variance = self._error[first] ** 2 + self._error[second] ** 2 - 2 * both
        noise = 1e-12 * (self._error[first] ** 2 + self._error[second] ** 2)
        return np.sqrt(np.where(variance < noise, 0 * variance, variance))

    @cached_property
    def df(self) -> Array:
        """Degrees of freedom of the differences, shape (C, J).

        Welch's, from the effective number of clusters at each point.
        """
        first, second = self._pairs.T
        own = self._own_df
        a, b = self._error[first] ** 2, self._error[second] ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            df = (a + b) ** 2 / (a**2 / own[first] + b**2 / own[second])
        return np.where(a + b == 0, np.minimum(own[first], own[second]), df)

    @cached_property
    def _own_df(self) -> Array:
        return np.where(self.sums.defined, self.sums.effective_clusters - 1, np.nan)

    @cached_property
    def _tests(self) -> Simultaneous:
        """The differences, one after the other."""
        n_points = self.grid.size
        places = self._pairs[:, None, :] * n_points + np.arange(n_points)[:, None]
        size = self.sums.n_curves * n_points
        return Simultaneous(
            self.difference.ravel(),
            self.difference_standard_error.ravel(),
            self.df.ravel(),
            self.sums.covariance.reshape(size, size),
            places.reshape(-1, 2),
            self.parameters["n_resamples"],
            self.parameters["random_state"],
        )

    @property
    def pointwise_pvalues(self) -> Array:
        """P-value of each difference on its own, not corrected, shape (C, J)."""
        return self._tests.pvalue.reshape(self.difference.shape)

    @cached_property
    def pvalues(self) -> Array:
        """P-values corrected for all contrasts and points, shape (C, J)."""
        corrected = self._tests.corrected(self.parameters["correction"])
        return corrected.reshape(self.difference.shape)

    @property
    def statistic(self) -> float:
        """The largest ``|z|``, the normal deviate of the smallest p-value."""
        return _largest(self._tests.deviate)

    @property
    def pvalue(self) -> float:
        """P-value of no difference anywhere: the smallest corrected one."""
        return -_largest(-self.pvalues)

    @property
    def largest_difference(self) -> float:
        """The largest ``|difference|`` on the grid, NaN without any."""
        return _largest(np.abs(self.difference))

    @property
    def rejected(self) -> Array:
        """Where the curves differ at the confidence level, shape (C, J), bool."""
        with np.errstate(invalid="ignore"):
            return self.pvalues < 1 - self.parameters["confidence_level"]

    def band(
        self, confidence_level: float | None = None, kind: str = "simultaneous"
    ) -> ConfidenceInterval:
        """Return a band around each difference.

        Parameters
        ----------
        confidence_level : float or None, default=None
            None: that of the test.
        kind : {"simultaneous", "pointwise"}, default="simultaneous"
            "simultaneous" bands hold at all points of all contrasts at once, by the
            simulated largest deviation (Bonferroni's for another `correction`).

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (C, J).

        Raises
        ------
        ValueError
            For a level outside (0, 1) or an unknown kind.
        """
        level, method = self._level_and_method(confidence_level, kind)
        quantile = self._tests.quantile(level, method).reshape(self.difference.shape)
        margin = quantile * self.difference_standard_error
        return ConfidenceInterval(self.difference - margin, self.difference + margin)

    def curve_band(
        self, confidence_level: float | None = None, kind: str = "simultaneous"
    ) -> ConfidenceInterval:
        """Return a band around the curve of each group.

        Parameters
        ----------
        confidence_level : float or None, default=None
            None: that of the test.
        kind : {"simultaneous", "pointwise"}, default="simultaneous"
            "simultaneous" bands hold at all points of the curve at once, for each
            group on its own.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (G, J).

        Raises
        ------
        ValueError
            For a level outside (0, 1) or an unknown kind.
        """
        level, method = self._level_and_method(confidence_level, kind)
        margin = np.empty(self.curves.shape)
        points = np.arange(self.grid.size)
        for g in range(len(self.groups)):
            alone = Simultaneous(
                self.curves[g],
                self.standard_error[g],
                self._own_df[g],
                self.sums.covariance[g, :, g],
                np.column_stack([points, np.full(points.size, -1)]),
                self.parameters["n_resamples"],
                self.parameters["random_state"],
            )
            margin[g] = alone.quantile(level, method) * self.standard_error[g]
        return ConfidenceInterval(self.curves - margin, self.curves + margin)

    def _level_and_method(self, level: float | None, kind: str) -> tuple[float, str]:
        check_choice(kind, "kind", ("simultaneous", "pointwise"))
        level = self.parameters["confidence_level"] if level is None else level
        check_level(level)
        if kind == "pointwise":
            return level, kind
        return level, self.parameters["correction"]

    def to_frame(self, confidence_level: float | None = None) -> pd.DataFrame:
        """Return one row a contrast and point.

        Parameters
        ----------
        confidence_level : float or None, default=None
            Of the simultaneous band. None: that of the test.

        Returns
        -------
        DataFrame
            Columns a, b, score, difference, standard_error, band_low, band_high, pvalue
            (pointwise) and pvalue_corrected.
        """
        import pandas as pd

        low, high = self.band(confidence_level)
        n_points = self.grid.size
        return pd.DataFrame(
            {
                "a": pd.Series(
                    [a for a, _ in self.contrasts for _ in range(n_points)],
                    dtype=object,
                ),
                "b": pd.Series(
                    [b for _, b in self.contrasts for _ in range(n_points)],
                    dtype=object,
                ),
                "score": np.tile(self.grid, len(self.contrasts)),
                "difference": self.difference.ravel(),
                "standard_error": self.difference_standard_error.ravel(),
                "band_low": np.ravel(low),
                "band_high": np.ravel(high),
                "pvalue": self.pointwise_pvalues.ravel(),
                "pvalue_corrected": self.pvalues.ravel(),
            }
        )

    def __add__(self, other: object) -> PredictiveParityTest:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, PredictiveParityTest):
            return NotImplemented
        same = (
            np.array_equal(self.grid, other.grid)
            and self.bandwidth == other.bandwidth
            and self.parameters == other.parameters
            and self.sums.rests == other.sums.rests
        )
        if not same:
            raise ValueError(
                "Only results of the same grid, bandwidth and options can be added: "
                "pass the grid and the bandwidth of one, as numbers, to every part."
            )
        return replace(self, sums=self.sums + other.sums)

    def __radd__(self, other: object) -> PredictiveParityTest:
        """Let ``sum(results)`` start from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def plot(self, ax: Any = None, **kwargs: Any) -> PredictiveParityDisplay:
        """Draw the curves, their difference with its band, and the scores.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes or None, default=None
            For the curves and the differences.
        **kwargs : dict
            Passed to `PredictiveParityDisplay.plot`.

        Returns
        -------
        PredictiveParityDisplay
        """
        from ..display import PredictiveParityDisplay

        return PredictiveParityDisplay.from_test(self, ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return statistic, p-value and the range of rejection by contrast."""
        head = (
            f"predictive_parity_test(bandwidth={self.bandwidth:.4g}, "
            f"correction={self.parameters['correction']!r})"
        )
        lines = [head]
        for (a, b), where, p in zip(
            self.contrasts, self.rejected, self.pvalues, strict=True
        ):
            name = f"{fmt.label(a)} - {fmt.label(b)}"
            said = "undefined"
            if not np.isnan(p).all():
                said = f"p = {np.nanmin(p):.3g}, differs at {where.sum()} of {p.size}"
                if where.any():
                    at = self.grid[where]
                    said += f" points, {at.min():.3g} to {at.max():.3g}"
                else:
                    said += " points"
            lines.append(f"{name}: {said}")
        lines.append(
            f"max |z| = {self.statistic:.3g}, p = {self.pvalue:.3g}; "
            f"{self.n_clusters:,} clusters"
        )
        return "\n".join(lines)


def _largest(values: Array) -> float:
    """Return the largest value that is there, NaN without any."""
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else float("nan")


COMPARISONS = ("pairs", "rest")
_N_POINTS = 50


def default_grid(rows: ScoreRows, n_points: int = _N_POINTS) -> Array:
    """Return quantiles of the scores that lie in the range of every group.

    Where no score does, of those in the range of at least two.
    """
    masks = [rows.groups.mask(g) for g in range(len(rows.groups))]
    masks += [~m for m in masks if rows.groups.overlapping and not m.all()]
    ranges = [(rows.x[m].min(), rows.x[m].max()) for m in masks if m.any()]
    lows, highs = sorted(r[0] for r in ranges), sorted(r[1] for r in ranges)
    some = (lows[min(1, len(lows) - 1)], highs[-2:][0])
    for low, high in ((lows[-1], highs[0]), some):
        inside = (rows.x >= low) & (rows.x <= high)
        if inside.any():
            break
    else:
        raise ValueError(
            "y_score must have a range that is common to two groups; the scores of "
            "the groups do not overlap. Pass grid= to look at the curves."
        )
    x = rows.x[inside]
    weight = None if rows.weight is None else rows.weight[inside]
    levels = (np.arange(n_points) + 0.5) / n_points
    return np.unique(np.quantile(x, levels, weights=weight, method="inverted_cdf"))


def check_reference(reference: Any, labels: tuple[Hashable, ...]) -> None:
    """Raise a ValueError unless `reference` is None or the label of a group."""
    # By type first: what came may refuse to be compared.
    if reference is None or any(
        type(reference) is type(label) and reference == label for label in labels
    ):
        return
    raise ValueError(
        f"reference must be one of the groups {list(labels)}; got {reference!r}."
    )


def _compares_rests(rows: ScoreRows, comparison: str | None, reference: Any) -> bool:
    """Return whether groups are compared with their rests."""
    check_choice(comparison, "comparison", (None, *COMPARISONS))
    groups = rows.groups
    check_reference(reference, groups.labels)
    rests = comparison == "rest" or (groups.overlapping and reference is None)
    if comparison == "rest" and reference is not None:
        raise ValueError(
            "reference must be None where groups are compared with the rest; got "
            f"{reference!r}."
        )
    if groups.overlapping and comparison == "pairs":
        return False
    return rests


def common_bandwidth(
    rows: ScoreRows, bandwidth: Any, kernel_name: str, cluster_weight: str
) -> float:
    """Return the bandwidth of all groups: a number, or a rule on all rows."""
    check_bandwidth(bandwidth)
    kernel = get_kernel(kernel_name)
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    chosen = choose_bandwidth(bandwidth, rows.pooled(cluster_weight), kernel)
    if not 0 < chosen < np.inf:
        raise ValueError(
            f"y_score must have a finite spread for bandwidth={bandwidth!r}; its "
            f"values go from {rows.x.min():g} to {rows.x.max():g}."
        )
    return chosen


def curves_by_group(
    rows: ScoreRows,
    grid: Any,
    bandwidth: Any,
    kernel: str,
    cluster_weight: str,
    *,
    rests: bool = False,
    correction: str = "sup_t",
    reference: Hashable | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 20_000,
    random_state: Any = 0,
) -> PredictiveParityTest:
    """Return the curves of the groups of validated rows, and their contrasts.

    Warns of groups without a curve.
    """
    check_choice(correction, "correction", CORRECTIONS)
    check_level(confidence_level)
    check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
    generator(random_state)
    sample = rows.sample(cluster_weight, rests=rests)
    h = common_bandwidth(rows, bandwidth, kernel, cluster_weight)
    weight = np.ones(rows.x.size) if rows.weight is None else rows.weight
    sums = CurveSums.of_sample(
        rows.groups.labels,
        sample,
        weight[sample.row],
        as_numbers(grid, "grid"),
        h,
        get_kernel(kernel),
        rows.pooled(cluster_weight) if rests else None,
    )
    parameters = {
        "kernel": kernel,
        "cluster_weight": cluster_weight,
        "correction": correction,
        "reference": reference,
        "confidence_level": confidence_level,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    return _warn_undefined(PredictiveParityTest(sums, h, parameters))


def _warn_undefined(result: PredictiveParityTest) -> PredictiveParityTest:
    sums = result.sums.sums
    few = (sums.active[0] + sums.shared_active[0]) < 2
    undefined = ~result.sums.defined[: len(result.groups)]
    for message, there in (
        ("is undefined (NaN) for groups with fewer than two clusters:", few),
        (
            "is undefined (NaN) on the whole grid (fewer than two clusters near) for",
            undefined.all(1) & ~few,
        ),
    ):
        if there.any():
            names = [fmt.label(result.groups[i]) for i in np.flatnonzero(there)]
            warnings.warn(
                f"A curve {message} {', '.join(names)}.",
                UndefinedMetricWarning,
                stacklevel=4,
            )
    return result


def predictive_parity_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    grid: Any = None,
    bandwidth: str | float = "undersmooth",
    kernel: str = "gaussian",
    cluster_weight: str = "cluster",
    correction: str = "sup_t",
    comparison: str | None = None,
    reference: Hashable | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 20_000,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> PredictiveParityTest:
    """Test whether an equal score means an equal outcome in all groups.

    The mean outcome at a score, ``f_g(s) = E[Y | S = s, G = g]``, is estimated for each
    group by kernel smoothing in which every cluster of dependent rows weighs one, and
    compared on a grid of scores: predictive parity (sufficiency) says that the curves
    are one. Where the curve of a group is higher its scores are too low.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real.
    y_score : array-like of shape (n,)
        Scores on any scale.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. A cluster may have rows of several groups.
    grid : array-like of shape (J,) or None, default=None
        Scores at which the curves are compared. None: 50 quantiles of the scores that
        lie in the range of every group.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"} or float, default="undersmooth"
        One for all groups, in units of the score; a rule (see
        `skrankfair.smoothing.nadaraya_watson`) is applied to all rows.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian"
    cluster_weight : {"cluster", "row"}, default="cluster"
        "cluster": every cluster weighs one in the curve of a group (Definition 3);
        "row": every row does (appendix D).
    correction : {"sup_t", "bonferroni", "holm", "fdr_bh"}, default="sup_t"
        For the number of points and contrasts. "sup_t" compares with the simulated
        largest of normal deviates of the estimated correlations, and rejects more than
        "bonferroni" and "holm", which do not know that neighbours are alike.
        "fdr_bh" controls the false discovery rate instead.
    comparison : {"pairs", "rest"} or None, default=None
        All pairs of groups, or each group with all other rows. None: "pairs" for
        disjoint groups, "rest" for overlapping ones.
    reference : label or None, default=None
        A group to compare every other with, instead of all pairs.
    confidence_level : float, default=0.95
        Of the bands, and one less the level of the test.
    n_resamples : int, default=20000
        Draws of the simulation.
    random_state : int, Generator or None, default=0
        Seed or generator of the random numbers, 0 so that a result that is computed
        when it is first asked for can be repeated.
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the row: 2 is the row seen twice.

    Returns
    -------
    PredictiveParityTest
        ``statistic``, ``pvalue``, the curves, their differences with simultaneous
        bands, where the test rejects, and ``plot()``. Results of the same numbers for
        `grid` and `bandwidth` add up.

    Raises
    ------
    ValueError
        For columns of different lengths, values that are not finite, scores without
        spread or without a common range, a bandwidth that is not positive, or an
        unknown option.

    Warns
    -----
    UndefinedMetricWarning
        For a group with fewer than two clusters, or whose scores have another range
        than the grid: its curve is NaN there.

    See Also
    --------
    marginal_outcome_test : At one threshold, from the rows above it.
    skrankfair.metrics.calibration_error : How far the curves are from the scores.
    skrankfair.smoothing.nadaraya_watson : The curve of one group.

    Notes
    -----
    ``f_g(s) = Σ_m A_m / Σ_m B_m``, ``A_m = 1/n_m Σ_i Y_mi K((S_mi - s) / h)`` over the
    ``n_m`` rows of cluster m in the group. With ``ψ_m = (A_m - f B_m) / Σ B``, 0 for a
    cluster without rows of the group, the covariance of two curves at two points is
    ``M / (M - 1) Σ_m ψ_m ψ'_m`` over all M clusters. Differences have Student's t
    with Welch's degrees of freedom, from ``(Σ B_m)² / Σ B_m² - 1`` for each group: the
    clusters that the point really rests on. A point that rests on fewer than two has
    no test. The bias of smoothing is of order ``h²`` and cancels in part, because the
    groups have one bandwidth.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §3 and appendix D.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import predictive_parity_test
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(1000), 4)
    >>> race = rng.choice(["a", "b"], size=1000)[patient]
    >>> risk = rng.uniform(size=4000)
    >>> ill = rng.uniform(size=4000) < risk**2 + 0.2 * (race == "a") * risk * (1 - risk)
    >>> t = predictive_parity_test(
    ...     ill, risk, sensitive_features=race, cluster=patient
    ... )
    >>> t.pvalue < 0.05
    True
    >>> t.difference.shape, bool((t.difference[0, t.rejected[0]] > 0).all())
    ((1, 50), True)
    """
    rows = score_rows(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    rests = _compares_rests(rows, comparison, reference)
    result = curves_by_group(
        rows,
        default_grid(rows) if grid is None else grid,
        bandwidth,
        kernel,
        cluster_weight,
        rests=rests,
        correction=correction,
        reference=reference,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    if len(result.groups) < 2 and not rests:
        warnings.warn(
            "predictive_parity_test is undefined (NaN) for one group: "
            f"{fmt.label(result.groups[0])}.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return result
