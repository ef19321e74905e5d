"""The mean outcome at a score, with what its errors need."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from .._estimates.arrays import ReadOnlyArrays, cached_read_only
from .._estimates.finalize import quotient
from .._estimates.scales import ConfidenceInterval, PlainScale, t_quantile
from .._inputs.score_rows import Sample, score_rows
from .._inputs.validation import Array, as_numbers, check_choice
from ._bandwidth import common_bandwidth
from ._kernels import (
    Kernel,
    Lattice,
    get_kernel,
    kernel_sums,
    kernel_values,
    segment_sums,
)

METHODS = ("auto", "exact", "fast")
# Relative to what it is the difference of, a sum of squares that rounding leaves.
_CANCELLED = 1e-2
# With fewer effective clusters, which rounding may make of one, there is no error.
_MORE_THAN_ONE = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class SmoothCurve(ReadOnlyArrays):
    """A smoothed curve on a grid, with its cluster-robust errors.

    Made by `nadaraya_watson`.

    Attributes
    ----------
    grid : ndarray of shape (J,)
        Scores.
    estimate : ndarray of shape (J,)
        Mean outcome at each; NaN where no row has a weight.
    mass : ndarray of shape (J,)
        ``Σ_m B_m``: sum of the kernel weights.
    bandwidth : float
    kernel : str
    n_clusters : float
    """

    grid: Array
    estimate: Array
    mass: Array
    bandwidth: float
    kernel: str
    n_clusters: float
    _sample: Sample = field(repr=False)
    _method: str = field(repr=False)

    @cached_read_only
    def covariance(self) -> Array:
        """Covariance over the grid, shape (J, J)."""
        total = np.zeros((self.grid.size,) * 2)
        for _, psi, _ in self._clusters():
            total += psi.T @ psi
        return total * self._factor

    @property
    def standard_error(self) -> Array:
        """Standard errors on the grid, shape (J,); NaN where one cluster is alone."""
        alone = self.effective_clusters < _MORE_THAN_ONE
        error = np.sqrt(self._squares[0] / self.mass**2 * self._factor)
        return np.where(alone, np.nan, error)

    @property
    def effective_clusters(self) -> Array:
        """``(Σ_m B_m)² / Σ_m B_m²``: how many clusters a point rests on, shape (J,)."""
        return quotient(self.mass**2, self._squares[1])

    @cached_read_only
    def _squares(self) -> tuple[Array, Array]:
        """``Σ_m (A_m - f B_m)²`` and ``Σ_m B_m²``, shape (J,) each.

        The square of a Gaussian is one, so rows that are clusters need three sums.
        """
        sample, kernel = self._sample, get_kernel(self.kernel)
        if sample.alone and self.kernel == "gaussian":
            centre, narrow = sample.y.mean(), self.bandwidth / math.sqrt(2)
            y, f = sample.y - centre, self.estimate - centre
            columns = kernel(np.zeros(1)) * sample.share * sample.columns(y * y, y)
            raw, products, masses = kernel_sums(
                self.grid, sample.x, columns, narrow, kernel, self._method
            )
            squares = raw - 2 * f * products + f**2 * masses
            if (squares > _CANCELLED * (raw + f**2 * masses)).all():
                return squares, masses
        squares, masses = np.zeros((2, self.grid.size))
        for _, psi, mass in self._clusters():
            squares += np.einsum("mj,mj->j", psi, psi)
            masses += np.einsum("mj,mj->j", mass, mass)
        return squares * self.mass**2, masses

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return an interval of the smoothed curve at each point.

        It is that of the expected weighted mean of the outcomes near the point, and
        does not know how far this is from their mean at the point itself.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (J,): Student's t with the effective
            clusters minus one as degrees of freedom; for outcomes in [0, 1] Clopper and
            Pearson's, inside [0, 1], of as many rows as the standard error is worth;
            of clusters the geometric mean of this and of their effective number, since
            few events do not show how much alike their rows are.

        Raises
        ------
        ValueError
            If the level is outside (0, 1).
        """
        effective = self.effective_clusters
        reach = t_quantile(confidence_level, effective - 1)
        y = self._sample.y
        if y.min() >= 0 and y.max() <= 1 and get_kernel(self.kernel).order <= 2:
            most = self._sample.share.max() * get_kernel(self.kernel)(np.zeros(1))
            values = self.estimate, self.standard_error
            return share_interval(*values, effective, self.mass / most, reach)
        scale = PlainScale(self.estimate, self.standard_error)
        return ConfidenceInterval(*scale.ends(reach, effective - 1))

    def influence(self) -> Array:
        """Return the influence of each cluster on the curve, shape (n_clusters, J).

        ``ψ_m = (A_m - f B_m) / Σ B``; its columns sum to 0. Clusters are in the order
        of their sorted labels (of the rows, if they are their own clusters).

        Returns
        -------
        ndarray of shape (n_clusters, J)
        """
        influence = np.zeros((self._sample.n_clusters, self.grid.size))
        for cluster, psi, _ in self._clusters():
            influence[cluster] = psi
        return influence

    def _clusters(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield clusters, some at a time: their influence and kernel sums."""
        sample, kernel = self._sample, get_kernel(self.kernel)
        centre = sample.y.mean()

        def weights(x: Array) -> tuple[Array, Array]:
            values = kernel_values(x[:, None], self.grid, self.bandwidth, kernel)
            return values, values

        with np.errstate(divide="ignore", invalid="ignore"):
            for segments, (outcome, mass) in segment_sums(
                sample,
                (sample.share * (sample.y - centre), sample.share),
                weights,
                2 * self.grid.size,
                Lattice.of_rows(
                    self.grid, sample.x, self.bandwidth, kernel, self._method
                ),
            ):
                outcome -= (self.estimate - centre) * mass
                outcome /= self.mass
                yield sample.cluster[sample.segment_starts[segments]], outcome, mass

    @property
    def _factor(self) -> float:
        number = self.n_clusters
        return number / (number - 1) if number > 1 else np.nan


def share_interval(
    share: Array, standard_error: Array, clusters: Array, rows: Array, quantile: Array
) -> ConfidenceInterval:
    """Return intervals of means in [0, 1], by effective numbers of clusters and rows.

    Those of Clopper and Pearson (Korn and Graubard 1998). The standard error says what
    number of rows it is worth, at most `rows`. Clusters may be more alike than the few
    events show, so that it is also at most the geometric mean of this number and that
    of clusters, of which a share of 0 or 1 has the interval.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        number = share * (1 - share) / standard_error**2
        number = np.fmin(number, np.fmax(clusters, rows))
        number = np.fmin(number, np.sqrt(clusters * number))
        number = np.where((share <= 0) | (share >= 1), clusters, number)
        tail, successes = special.ndtr(-quantile), share * number
        low = special.betaincinv(successes, number - successes + 1, tail)
        high = special.betainccinv(successes + 1, number - successes, tail)
        known = ~np.isnan(number) & ~np.isnan(quantile)
        low, high = np.where(share <= 0, 0.0, low), np.where(share >= 1, 1.0, high)
        return ConfidenceInterval(
            np.where(known, low, np.nan), np.where(known, high, np.nan)
        )


def curve_on_grid(
    sample: Sample, grid: Array, bandwidth: float, kernel: Kernel, method: str = "auto"
) -> SmoothCurve:
    """Return the curve of a sample of one group, on clean arrays."""
    total, mass = kernel_sums(
        grid, sample.x, sample.columns(sample.y), bandwidth, kernel, method
    )
    estimate, count = quotient(total, mass, mass > 0), float(sample.n_clusters)
    return SmoothCurve(
        grid, estimate, mass, bandwidth, kernel.name, count, sample, method
    )


def nadaraya_watson(
    y_true: Any,
    y_score: Any,
    grid: Any,
    *,
    bandwidth: str | float = "rule_of_thumb",
    kernel: str = "gaussian",
    cluster: Any = None,
    cluster_weight: str = "cluster",
    sample_weight: Any = None,
    method: str = "auto",
) -> SmoothCurve:
    """Mean outcome at given scores, smoothed, with errors that respect clusters.

    ``f(s) = Σ_m A_m(s) / Σ_m B_m(s)``, ``A_m(s) = 1/n_m Σ_i Y_mi K((S_mi - s) / h)``
    over the ``n_m`` rows of cluster m, ``B_m`` the same without ``Y``: the mean outcome
    of a row that is drawn from a cluster drawn at random, given its score.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, binary, graded or real.
    y_score : array-like of shape (n,)
        Scores on any scale.
    grid : array-like of shape (J,)
        Scores at which the curve is wanted.
    bandwidth : {"rule_of_thumb", "undersmooth", "cv"} or float, \
            default="rule_of_thumb"
        In units of the score. "rule_of_thumb": robust scale of the scores times
        ``M^(-1/5)``, M clusters; "undersmooth": ``M^(-1/4)``, so that the bias is small
        beside the standard error; "cv": the best of 29 candidates, 1/16 to 8 times the
        rule of thumb, for predicting a cluster from all others. The robust scale is the
        standard deviation, or the interquartile range / 1.349 if smaller; for other
        kernels than the gaussian it is multiplied by the width that smooths as much.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian"
        Weight of a row by its distance in the score. "gaussian4" (order four) and
        "flat_top" (infinite order, McMurry and Politis 2004) have less bias where the
        curve is smooth, and some negative weights.
    cluster : array-like of shape (n,) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row. See
        Definition 3 and appendix D of the paper.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    method : {"auto", "exact", "fast"}, default="auto"
        "fast" spreads the rows over a lattice and convolves, with a relative error of
        about 1e-7, and takes covariances from the same lattice. "exact" evaluates the
        kernel for each row and point. "auto" is "fast" where it pays.

    Returns
    -------
    SmoothCurve
        Estimate, standard error, intervals, covariance over the grid and influence of
        clusters.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, a bandwidth is not
        positive, the scores have no spread for a rule, or an option is unknown.

    See Also
    --------
    NadarayaWatsonRegressor : The same curve as a scikit-learn regressor.
    skrankfair.inference.predictive_parity_test : Compares the curves of groups.

    Notes
    -----
    With ``ψ_m = (A_m - f B_m) / Σ B`` the covariance over the grid is
    ``M / (M - 1) Σ_m ψ_m ψ_mᵀ``. It is that of the smoothed curve: the bias of
    smoothing is not in it. That is of order ``h²``, but of order h within a bandwidth
    or two of the ends of the scores, where a mean looks to one side: an interval of two
    standard errors there holds the curve of a straight line in less than 80% of data
    sets. The curves of `skrankfair.inference.predictive_parity_test` and
    `skrankfair.display.CalibrationByGroupDisplay` have no such bias by default, and
    intervals that stay in the range of shares.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §3 and appendix D.

    McMurry, T. L., Politis, D. N. (2004). "Nonparametric regression with infinite order
    flat-top kernels". Journal of Nonparametric Statistics 16.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.smoothing import nadaraya_watson
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=5000)
    >>> y = rng.uniform(size=5000) < score**2
    >>> curve = nadaraya_watson(y, score, [0.25, 0.5, 0.75])
    >>> curve.estimate.round(2)
    array([0.06, 0.26, 0.56])
    >>> curve.standard_error.round(3)
    array([0.008, 0.014, 0.016])
    """
    check_choice(method, "method", METHODS)
    chosen, points = get_kernel(kernel), as_numbers(grid, "grid").copy()
    rows = score_rows(y_true, y_score, cluster=cluster, sample_weight=sample_weight)
    sample = rows.pooled(cluster_weight)
    h = common_bandwidth(bandwidth, sample, chosen)
    return curve_on_grid(sample, points, h, chosen, method)
