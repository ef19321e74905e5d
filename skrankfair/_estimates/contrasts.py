"""One number with its error, and tests by group: what contrasts and tests return."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from .._inputs.validation import Array, check_choice, check_number
from . import formatting as fmt

if TYPE_CHECKING:
    import pandas as pd

    from .group_estimates import GroupEstimates


class ConfidenceInterval(NamedTuple):
    """Lower and upper ends of an interval: floats, or one value a group."""

    low: Array | float
    high: Array | float


def check_level(level: float) -> None:
    """Raise a ValueError unless the confidence level is inside (0, 1)."""
    check_number(level, "confidence_level", 0, 1, inclusive=(False, False))


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator that `random_state` stands for."""
    random = np.random
    sources = (
        random.Generator,
        random.BitGenerator,
        random.SeedSequence,
        random.RandomState,
    )
    try:
        if random_state is not None and not isinstance(random_state, (int, *sources)):
            kind = np.asarray(random_state).dtype.kind
            if kind not in "iu":  # NumPy would take a duration for a number
                raise TypeError(f"a seed of kind {kind!r}")
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be a non-negative integer, a numpy Generator or None; "
            f"got {random_state!r}."
        ) from error


def t_quantile(confidence_level: float, df: float) -> float:
    """Return the two-sided quantile of Student's t; NaN without degrees of freedom."""
    check_level(confidence_level)
    if not df > 0:
        return float("nan")
    return float(special.stdtrit(df, 0.5 + confidence_level / 2))


def t_test(
    estimate: ArrayLike, standard_error: ArrayLike, null_value: float, df: float
) -> tuple[Array, Array]:
    """Return Student's t statistic and its two-sided p-value.

    Without error both are decided by the estimate alone: the null value itself has
    p = 1, anything else p = 0.
    """
    shift = np.asarray(estimate, dtype=float) - null_value
    standard_error = np.asarray(standard_error, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where((shift == 0) & (standard_error == 0), 0.0, 1.0)
        statistic = np.where(statistic == 0, 0.0, shift / standard_error)
    if not df > 0:
        return statistic, np.full_like(statistic, np.nan)
    with np.errstate(invalid="ignore"):
        pvalue = 2 * special.stdtr(df, -np.abs(statistic))
    return statistic, pvalue


@dataclass(frozen=True)
class Estimate:
    """One number with its standard error: a contrast of two groups.

    Attributes
    ----------
    name : str
        What it is, for example ``"f - m"``.
    estimate : float
    standard_error : float
        By the delta method, with the covariance of the two groups.
    df : float
        Degrees of freedom: clusters less one.
    null_value : float
        0 for a difference, 1 for a ratio.
    kind : {"difference", "ratio"}
    """

    name: str
    estimate: float
    standard_error: float
    df: float
    null_value: float
    kind: str
    _resampled: Resampler | None = field(default=None, repr=False)

    @property
    def _log(self) -> bool:
        return self.kind == "ratio" and self.estimate > 0

    @property
    def statistic(self) -> float:
        """Student's t of the difference, or of the logarithm of the ratio."""
        return float(self._test()[0])

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of no difference (ratio: of 1, on the log scale)."""
        return float(self._test()[1])

    def _test(self) -> tuple[Array, Array]:
        if self._log:
            error = self.standard_error / self.estimate
            return t_test(np.log(self.estimate), error, 0.0, self.df)
        return t_test(self.estimate, self.standard_error, self.null_value, self.df)

    def confidence_interval(
        self,
        confidence_level: float = 0.95,
        method: str = "delta",
        n_resamples: int = 1000,
        random_state: int | np.random.Generator | None = None,
    ) -> ConfidenceInterval:
        """Return the interval of the contrast.

        Parameters
        ----------
        confidence_level : float, default=0.95
        method : {"delta", "bootstrap"}, default="delta"
            "delta": Student's t (on the log scale for a ratio); "bootstrap":
            percentiles over resampled clusters.
        n_resamples : int, default=1000
        random_state : int, Generator or None, default=None
            Seed or generator of the random numbers. None draws anew in each call.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, floats.

        Raises
        ------
        ValueError
            For a level outside (0, 1), an unknown method, or a bootstrap of a result
            without its table of clusters.
        """
        check_choice(method, "method", ("delta", "bootstrap"))
        quantile = t_quantile(confidence_level, self.df)
        if method == "bootstrap":
            if self._resampled is None:
                raise ValueError("This estimate has no clusters to resample.")
            pair = self._resampled(n_resamples, random_state)
            low, high = percentiles(_value(pair, self.kind), confidence_level)
            return ConfidenceInterval(float(low), float(high))
        if self._log:
            spread = np.exp(quantile * self.standard_error / self.estimate)
            return ConfidenceInterval(
                float(self.estimate / spread), float(self.estimate * spread)
            )
        margin = quantile * self.standard_error
        return ConfidenceInterval(self.estimate - margin, self.estimate + margin)

    def __repr__(self) -> str:
        """Return the contrast, its 95% interval and p-value on one line."""
        low, high = self.confidence_interval()
        return (
            f"{self.name}: {self.estimate:.4g} "
            f"(95% interval {low:.4g} to {high:.4g}, p = {self.pvalue:.3g})"
        )


def percentiles(resampled: Array, confidence_level: float) -> Array:
    """Return the percentile interval of resampled values, NaN if one is undefined."""
    resampled = np.where(np.isfinite(resampled), resampled, np.nan)
    tail = (1 - confidence_level) / 2
    return np.quantile(resampled, [tail, 1 - tail], axis=0)


@dataclass(frozen=True, eq=False)
class GroupTest:
    """A test a group.

    Attributes
    ----------
    groups : tuple of hashable, length G
    estimate : ndarray of shape (G,)
        What is tested: the metric, or its difference to the rest.
    standard_error : ndarray of shape (G,)
        Of the estimate; by permutation, the spread under shuffled labels.
    statistic : ndarray of shape (G,)
        Student's t; by permutation, estimate less `null_value` in units of the spread.
    pvalue : ndarray of shape (G,)
        Not corrected for the number of groups. Two-sided, but one-sided for a distance
        (large values speak against fairness).
    df : float
        Degrees of freedom: clusters less one; NaN by permutation.
    null_value : float or ndarray of shape (G,)
        The value under fairness; by permutation, the mean under shuffled labels.
    null_distribution : ndarray of shape (n_resamples, G) or None
        Estimates under shuffled labels.
    """

    groups: tuple[Hashable, ...]
    estimate: Array
    standard_error: Array
    statistic: Array
    pvalue: Array
    df: float
    null_value: float | Array
    null_distribution: Array | None = field(default=None, repr=False)

    def corrected(self, method: str = "holm") -> Array:
        """Return p-values corrected over the groups.

        Parameters
        ----------
        method : str, default="holm"
            Any method of `statsmodels.stats.multitest.multipletests`.

        Returns
        -------
        ndarray of shape (G,)
            NaN where a group has no p-value; such groups do not count as tests.
        """
        return correct(self.pvalue, method)


def t_group_test(result: GroupEstimates) -> GroupTest:
    """Return Student's t of the estimates against the fair value."""
    null_value = result.fair_value
    if null_value is None:
        raise ValueError(f"{result.name} has no fair value to test against.")
    if result.metric.test_method == "permutation":
        raise ValueError(
            f"method must be 'permutation' for {result.name}, whose mean is not "
            f"{null_value:g} in fair rankings; got 't'."
        )
    error = result.standard_error
    statistic, pvalue = t_test(result.estimate, error, null_value, result.df)
    return GroupTest(
        result.groups, result.estimate, error, statistic, pvalue, result.df, null_value
    )


def permutation_test(
    result: GroupEstimates, n_resamples: int, random_state: Any
) -> GroupTest:
    """Test a result against labels shuffled within lists.

    The p-value counts the estimate itself among the shuffled ones, so it is valid for
    any number of them: ``(1 + #{shuffled at least as extreme}) / (1 + n_resamples)``;
    two-sided, twice the smaller of both ends.
    """
    check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
    rng = generator(random_state)
    if result.permutation is None:
        raise ValueError(
            "method='permutation' needs the lists of a metric of statistical parity, "
            f"such as ndkl, that are kept until compact(); {result.name} has none."
        )
    drawn = result.permutation.resampled(result.metric.finalize, n_resamples, rng)
    estimate = result.estimate
    with np.errstate(invalid="ignore"):
        size = np.where(np.isfinite(estimate), np.abs(estimate), 0.0)
        slack = 1e-12 * np.maximum(1.0, size)
        above = (drawn >= estimate - slack).sum(axis=0)
        below = (drawn <= estimate + slack).sum(axis=0)
        pvalue = (1 + above) / (1 + n_resamples)
        if result.permutation.alternative == "two-sided":
            lower = (1 + below) / (1 + n_resamples)
            pvalue = np.minimum(1.0, 2 * np.minimum(pvalue, lower))
        center, spread = drawn.mean(axis=0), drawn.std(axis=0)
        statistic = np.where(spread > 0, estimate - center, 0.0)
        np.divide(statistic, spread, out=statistic, where=spread > 0)
    statistic[np.isnan(estimate)] = np.nan
    return GroupTest(
        groups=result.groups,
        estimate=estimate,
        standard_error=spread,
        statistic=statistic,
        pvalue=np.where(np.isnan(estimate), np.nan, pvalue),
        df=float("nan"),
        null_value=center,
        null_distribution=drawn,
    )


def correct(pvalues: Array, method: str) -> Array:
    """Return p-values corrected for their number; NaN stays NaN and is no test."""
    from statsmodels.stats.multitest import multipletests

    corrected = np.full(pvalues.shape, np.nan)
    known = ~np.isnan(pvalues)
    if known.any():
        try:
            corrected[known] = multipletests(pvalues[known], method=method)[1]
        except ValueError as error:
            raise ValueError(
                "correction must be a method of statsmodels' multipletests, such as "
                f"'holm'; got {method!r}."
            ) from error
    return corrected


@dataclass(frozen=True)
class Resampler:
    """Bootstrap estimates of some groups of a result.

    Attributes
    ----------
    resampled : callable
        The method of the result.
    columns : list of int
        The groups.
    """

    resampled: Callable[[int, Any], Array]
    columns: list[int]

    def __call__(self, n_resamples: int, random_state: Any) -> Array:
        """Return estimates, shape (n_resamples, len(columns))."""
        return self.resampled(n_resamples, random_state)[:, self.columns]


def max_t_quantile(
    covariance: Array, df: float, level: float, n_resamples: int, random_state: Any
) -> float:
    """Return the quantile of the largest ``|t|`` of correlated estimates."""
    error = np.sqrt(np.diag(covariance))
    known = np.flatnonzero(error > 0)
    if not (known.size and df > 0):
        return float("nan")
    rng = generator(random_state)
    scaled = covariance[np.ix_(known, known)] / np.outer(error[known], error[known])
    values, vectors = np.linalg.eigh(scaled)
    root = vectors * np.sqrt(np.clip(values, 0, None))
    draws = rng.standard_normal((n_resamples, known.size)) @ root.T
    draws /= np.sqrt(rng.chisquare(df, (n_resamples, 1)) / df)
    return float(np.quantile(np.abs(draws).max(1), level))


def _value(pair: Array, kind: str) -> Array:
    x, y = pair[..., 0], pair[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return x / y if kind == "ratio" else x - y


def contrast(
    groups: tuple[Hashable, Hashable],
    estimate: Array,
    covariance: Array,
    kind: str,
    df: float,
    resampled: Resampler,
) -> Estimate:
    """Return the difference or ratio of two estimates by the delta method.

    `resampled` gives bootstrap estimates of the two groups.
    """
    check_choice(kind, "kind", ("difference", "ratio"))

    slopes = np.array([1.0, -1.0])
    if kind == "ratio":
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.array([1, -estimate[0] / estimate[1]]) / estimate[1]
    with np.errstate(invalid="ignore"):
        variance = slopes @ covariance @ slopes
    if groups[0] == groups[1]:
        variance *= 0.0
    return Estimate(
        name=f" {'/' if kind == 'ratio' else '-'} ".join(map(fmt.label, groups)),
        estimate=float(_value(estimate, kind)),
        standard_error=float(np.sqrt(np.maximum(variance, 0.0))),
        df=df,
        null_value=1.0 if kind == "ratio" else 0.0,
        kind=kind,
        _resampled=resampled,
    )


def contrasts_frame(
    pairs: Sequence[tuple[Hashable, Hashable]],
    contrasts: Sequence[Estimate],
    correction: str,
    confidence_level: float,
) -> pd.DataFrame:
    """Return one row a contrast, with p-values corrected for their number."""
    import pandas as pd

    ends = [c.confidence_interval(confidence_level) for c in contrasts]
    pvalue = np.array([c.pvalue for c in contrasts], dtype=float)
    return pd.DataFrame(
        {
            "a": pd.Series([a for a, _ in pairs], dtype=object),
            "b": pd.Series([b for _, b in pairs], dtype=object),
            "estimate": np.array([c.estimate for c in contrasts], dtype=float),
            "standard_error": np.array(
                [c.standard_error for c in contrasts], dtype=float
            ),
            "ci_low": np.array([low for low, _ in ends], dtype=float),
            "ci_high": np.array([high for _, high in ends], dtype=float),
            "pvalue": pvalue,
            "pvalue_corrected": correct(pvalue, correction),
        }
    )


KINDS = ("difference", "ratio", "max_abs", "l1")
_FROM_FAIR = ("max_abs", "l1")


def disparity(estimate: Array, fair_value: float | None, kind: str) -> float:
    """Return how far the estimates are from fair; NaN if it cannot be said."""
    check_choice(kind, "kind", KINDS)
    if kind in _FROM_FAIR:
        if fair_value is None:
            raise ValueError(
                f"kind={kind!r} needs a metric with a fair value; use 'difference' or "
                "'ratio'."
            )
        distance = np.abs(estimate - fair_value)
        return float(distance.sum() if kind == "l1" else distance.max())
    if estimate.size < 2:
        return float("nan")
    low, high = estimate.min(), estimate.max()
    if kind == "difference":
        return float(high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(low / high)


def disparity_bound(
    estimate: Array,
    covariance: Array,
    df: float,
    fair_value: float | None,
    kind: str,
    confidence_level: float,
) -> float:
    """Return the worst disparity within simultaneous intervals.

    Intervals of all distances whose maximum or sum the disparity is hold at once, so
    the bound is crossed with at most the probability that they do not.
    """
    if np.isnan(disparity(estimate, fair_value, kind)) or np.isnan(covariance).any():
        return float("nan")
    if kind in _FROM_FAIR:
        distance, slopes = estimate - (fair_value or 0.0), np.eye(estimate.size)
    else:
        pairs = list(combinations(range(estimate.size), 2))
        slopes = np.zeros((len(pairs), estimate.size))
        slopes[np.arange(len(pairs)), [a for a, _ in pairs]] = 1.0
        slopes[np.arange(len(pairs)), [b for _, b in pairs]] = -1.0
        if kind == "ratio":
            if (estimate <= 0).any():
                return 0.0
            distance, slopes = slopes @ np.log(estimate), slopes / estimate
        else:
            distance = slopes @ estimate
    spread = slopes @ covariance @ slopes.T
    spread[np.diag_indices_from(spread)] = np.maximum(np.diag(spread), 0.0)
    error = np.sqrt(np.diag(spread))
    reach = np.abs(distance)
    if error.any():
        reach += max_t_quantile(spread, df, confidence_level, 20_000, 0) * error
    worst = reach.sum() if kind == "l1" else reach.max()
    return float(np.exp(-worst)) if kind == "ratio" else float(worst)


CORRECTIONS = ("sup_t", "bonferroni", "holm", "fdr_bh")
_CHUNK = 2000
_SMALLEST = 1e-300


def welch_df(
    first: ArrayLike, second: ArrayLike, first_df: ArrayLike, second_df: ArrayLike
) -> Array:
    """Return Welch's degrees of freedom of the difference of two estimates.

    Parameters
    ----------
    first, second : array-like
        Variances of the two.
    first_df, second_df : array-like
        Their degrees of freedom.

    Returns
    -------
    ndarray
        The smaller of both without variance; NaN below one, which is no test.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = (a + b) ** 2 / (a**2 / first_df + b**2 / second_df)
        df = np.where(a + b == 0, np.minimum(first_df, second_df), df)
        return np.where(df >= 1 - 1e-9, df, np.nan)


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Contrasts of correlated estimates, each with degrees of freedom of its own.

    A statistic t on ν degrees of freedom is compared with others as the normal
    deviate z of equal p-value, and the largest |z| with the largest of a normal
    vector of the same correlations.

    Attributes
    ----------
    estimate : ndarray of shape (T,)
        NaN where undefined, which is no test.
    standard_error : ndarray of shape (T,)
    df : ndarray of shape (T,)
    covariance : ndarray of shape (K, K)
        Of what the contrasts are made of; NaN where undefined.
    contrasts : ndarray of shape (T, 2), int64
        The two of these whose difference each contrast is; -1 is no second one.
    n_resamples : int
    random_state : int, Generator or None
    spread : ndarray of shape (T,) or None
        Standard errors of the contrasts by `covariance`, if they are not
        `standard_error`: the covariance is then only asked for correlations.
    """

    estimate: Array
    standard_error: Array
    df: Array
    covariance: Array
    contrasts: Array
    n_resamples: int
    random_state: Any
    spread: Array | None = None

    @cached_property
    def statistic(self) -> Array:
        """Student's t of each contrast, shape (T,)."""
        known = ~np.isnan(self.estimate) & ~np.isnan(self.standard_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.estimate / self.standard_error
        t[known & (self.estimate == 0)] = 0.0
        t[~known] = np.nan
        return t

    @cached_property
    def pvalue(self) -> Array:
        """Two-sided p-value of each contrast on its own, shape (T,)."""
        with np.errstate(invalid="ignore"):
            return 2 * special.stdtr(self.df, -np.abs(self.statistic))

    @cached_property
    def deviate(self) -> Array:
        """``|z|`` with the p-value of each contrast, shape (T,)."""
        return -special.ndtri(np.maximum(self.pvalue / 2, _SMALLEST))

    @cached_property
    def largest(self) -> Array:
        """Largest ``|z|`` of normal vectors, sorted, shape (n_resamples,)."""
        spread = self.standard_error if self.spread is None else self.spread
        some = (self.standard_error > 0) & (spread > 0)
        known = np.flatnonzero(some & ~np.isnan(self.estimate))
        if not known.size:
            return np.zeros(self.n_resamples)
        first, second = self.contrasts[known].T
        used = np.unique(np.concatenate([first, second[second >= 0]]))
        values, vectors = np.linalg.eigh(self.covariance[np.ix_(used, used)])
        root = (vectors * np.sqrt(np.clip(values, 0, None))).T
        place = np.zeros(int(used.max()) + 2, dtype=int)
        place[used] = np.arange(used.size)
        rng = generator(self.random_state)
        largest = np.empty(self.n_resamples)
        for start in range(0, self.n_resamples, _CHUNK):
            part = slice(start, min(start + _CHUNK, self.n_resamples))
            draws = rng.standard_normal((part.stop - start, used.size)) @ root
            values = draws[:, place[first]]
            values -= np.where(second >= 0, draws[:, place[second]], 0.0)
            values /= spread[known]
            largest[part] = np.abs(values).max(1)
        return np.sort(largest)

    def corrected(self, method: str) -> Array:
        """Return p-values corrected for the number of contrasts, shape (T,)."""
        check_choice(method, "correction", CORRECTIONS)
        if method != "sup_t":
            return correct(self.pvalue, method)
        below = np.searchsorted(self.largest, self.deviate, side="left")
        corrected = (1 + self.n_resamples - below) / (1 + self.n_resamples)
        corrected[np.isnan(self.pvalue)] = np.nan
        # The simulation has an error, and a correction lowers no p-value.
        return np.fmax(corrected, self.pvalue)

    def quantile(self, confidence_level: float, method: str) -> Array:
        """Return how many standard errors a band is wide each way, shape (T,).

        "pointwise", "sup_t", or Bonferroni's for any other method.
        """
        tail = (1 - confidence_level) / 2
        if method == "sup_t":
            tail = special.ndtr(-np.quantile(self.largest, confidence_level))
        elif method != "pointwise":
            tail /= max(1, int((~np.isnan(self.pvalue)).sum()))
        with np.errstate(invalid="ignore"):
            return -special.stdtrit(self.df, tail)
