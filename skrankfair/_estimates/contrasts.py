"""Contrasts of groups, and tests by group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from .._inputs.validation import Array, check_choice, check_number
from . import formatting as fmt
from .bootstrap import (
    LOG,
    LOGIT,
    PLAIN,
    holding_t,
    known_quantiles,
    resampled_with_errors,
    studentised_ends,
)
from .estimate import Estimate
from .intervals import (
    Shares,
    TwoShares,
    t_ends,
    t_quantile,
    t_test,
)
from .leverage import contrast_degrees, degrees_of_freedom
from .power import promised_by
from .read_only import ReadOnlyArrays
from .refit import RefitSums
from .sums import ClusterSums
from .table import Finalize

if TYPE_CHECKING:
    import pandas as pd

    from .group_estimates import GroupEstimates


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


@dataclass(frozen=True, eq=False)
class GroupTest(ReadOnlyArrays):
    """One test per group.

    Attributes
    ----------
    groups : tuple of hashable, length G
    estimate : ndarray of shape (G,)
        What is tested: the metric, or its difference from the rest.
    standard_error : ndarray of shape (G,)
        That of the estimate; by permutation, the spread under shuffled labels.
    statistic : ndarray of shape (G,)
        Student's t, of shares on the logit scale; by permutation, estimate minus
        `null_value` in units of the spread.
    pvalue : ndarray of shape (G,)
        Not corrected for the number of groups. Two-sided, but one-sided for a distance
        (large values speak against fairness). NaN where no variance is seen.
    df : ndarray of shape (G,)
        Degrees of freedom, from the leverages of the clusters; NaN by permutation.
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
    df: Array
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

    def to_frame(self, correction: str = "holm") -> pd.DataFrame:
        """Return one row per group.

        Parameters
        ----------
        correction : str, default="holm"
            Method of statsmodels' `multipletests` for ``pvalue_corrected``.

        Returns
        -------
        DataFrame
            Indexed by group: estimate, null_value, standard_error, statistic, df,
            pvalue, pvalue_corrected.
        """
        import pandas as pd

        columns = {
            "estimate": self.estimate,
            "null_value": np.broadcast_to(self.null_value, self.estimate.shape),
            "standard_error": self.standard_error,
            "statistic": self.statistic,
            "df": self.df,
            "pvalue": self.pvalue,
            "pvalue_corrected": self.corrected(correction),
        }
        index = pd.Index(list(self.groups), name="group", tupleize_cols=False)
        return pd.DataFrame(columns, index=index)

    def __repr__(self) -> str:
        """Return a small table: group, estimate, null value, statistic, df, p."""
        null_value = np.broadcast_to(self.null_value, self.estimate.shape)
        rows = [
            [
                fmt.label(group),
                *map(fmt.number, (self.estimate[i], null_value[i], self.statistic[i])),
                fmt.number(self.df[i], 1),
                fmt.pvalue(self.pvalue[i]),
            ]
            for i, group in enumerate(self.groups)
        ]
        header = ["group", "estimate", "null value", "statistic", "df", "p"]
        return fmt.text_table(header, rows)


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
    error, shares = result.standard_error, result.shares
    if isinstance(shares, TwoShares):
        statistic, pvalue = shares.test("difference", result.df)
    elif isinstance(shares, Shares):
        statistic, pvalue = shares.test(null_value, result.df)
    else:
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
        df=np.full(estimate.shape, np.nan),
        null_value=center,
        null_distribution=drawn,
    )


def correct(pvalues: Array, method: str) -> Array:
    """Return p-values corrected for their number; NaN stays NaN and is no test."""
    corrected = np.full(pvalues.shape, np.nan)
    known = ~np.isnan(pvalues)
    if known.any():
        try:
            corrected[known] = _corrected(pvalues[known], method)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                "correction must be a method of statsmodels' multipletests, such as "
                f"'holm'; got {method!r}."
            ) from error
    return corrected


def one_test(pvalues: Array) -> bool:
    """Return whether two groups have the same test, each being the rest of the other.

    With matched pairs they have two, as each of the groups has pairs of its own.
    """
    if pvalues.size != 2:
        return False
    first, second = pvalues.tolist()
    return bool(np.isclose(first, second, rtol=1e-6, atol=0))


def corrected_pvalues(pvalues: Array, method: str = "holm") -> Array:
    """Return p-values corrected over the groups; NaN stays NaN and is no test."""
    return pvalues.copy() if one_test(pvalues) else correct(pvalues, method)


def _corrected(pvalues: Array, method: str) -> Array:
    if method != "holm":
        from statsmodels.stats.multitest import multipletests

        return multipletests(pvalues, method=method)[1]
    # statsmodels collects all garbage of the process each time, which may take longer
    # than the whole report.
    order = np.argsort(pvalues)
    times = np.arange(pvalues.size, 0, -1)
    corrected = np.empty_like(pvalues)
    corrected[order] = np.maximum.accumulate(pvalues[order] * times)
    return np.minimum(corrected, 1)


@dataclass(frozen=True)
class Resampler:
    """Bootstrap intervals of groups of a result, or of contrasts of two."""

    sums: ClusterSums
    finalize: Finalize
    first: Array  # shape (m,): numbers of groups
    second: Array | None = None  # shape (m,): those that they are compared with

    def interval(
        self,
        of: Any,
        ends: tuple[Array, Array],
        confidence_level: float,
        method: str,
        n_resamples: int,
        random_state: Any,
        *,
        share: bool = False,
    ) -> tuple[Array, Array]:
        """Return the ends of the intervals of estimates with their standard errors.

        `of` has the estimates, of kind "ratio" or not, and `ends` are those of
        Student's t; `share`: they are shares.
        """
        check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
        kind = getattr(of, "kind", "value")
        rng = generator(random_state)
        refitted = isinstance(self.sums, RefitSums)
        if method == "percentile" or refitted or self.sums.table is None:
            values = self._values(kind, n_resamples, rng)
            tail = (1 - confidence_level) / 2
            if method != "percentile":
                tail = _expanded(tail, self.sums.count)
            low, high = known_quantiles(values, [tail, 1 - tail])
            if method == "percentile":
                return low, high
            return holding_t((low, high), ends, of.df)
        values, errors = self._with_errors(kind, n_resamples, rng)
        scale = LOG if kind == "ratio" else LOGIT if share else PLAIN
        studentised = studentised_ends(
            np.atleast_1d(of.estimate),
            np.atleast_1d(of.standard_error),
            (values, errors),
            scale,
            confidence_level,
        )
        return holding_t(studentised, ends, of.df)

    def promises(self, name: str) -> bool:
        """Return whether the pilot can promise a contrast power, or warn if not."""
        both = [self.first] if self.second is None else [self.first, self.second]
        sums = self.sums.of_groups(np.unique(np.concatenate(both)))
        rests = degrees_of_freedom(sums, self.finalize)
        return bool(promised_by(name, sums, self.finalize, rests).all())

    def _values(self, kind: str, n_resamples: int, rng: np.random.Generator) -> Array:
        """Return resampled estimates, shape (n_resamples, m)."""
        parts = [
            self.finalize(*totals) for totals in self.sums.resample(n_resamples, rng)
        ]
        values = np.concatenate(parts)
        if self.second is None:
            return values[:, self.first]
        return _value(values[:, self.first], values[:, self.second], kind)

    def _with_errors(
        self, kind: str, n_resamples: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return resampled estimates and their errors, shape (n_resamples, m)."""
        found = []
        for a, b, covariance in resampled_with_errors(
            self.sums, self.finalize, self.first, self.second, n_resamples, rng
        ):
            slopes = np.ones((*a.shape, 2))
            slopes[..., 1] = -1.0 if self.second is not None else 0.0
            value = a - b
            if kind == "ratio":
                with np.errstate(divide="ignore", invalid="ignore"):
                    value = a / b
                    slopes = np.stack([1 / b, -a / b**2], axis=-1)
            with np.errstate(invalid="ignore"):
                variance = np.einsum("bmi,bmij,bmj->bm", slopes, covariance, slopes)
                found.append((value, np.sqrt(np.maximum(variance, 0.0))))
        values, errors = (np.concatenate(part) for part in zip(*found, strict=True))
        return values, errors


def _expanded(tail: float, count: float) -> float:
    """Return the tail of percentiles as wide as Student's t (Hesterberg 2015)."""
    if not count > 1:
        return tail
    reach = -special.stdtrit(count - 1, tail) * np.sqrt(count / (count - 1))
    return float(special.ndtr(-reach))


def _value(x: Array, y: Array, kind: str) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return x / y if kind == "ratio" else x - y


@dataclass(frozen=True, eq=False)
class Contrasts(ReadOnlyArrays):
    """Differences or ratios of pairs of groups."""

    kind: str  # {"difference", "ratio"}
    estimate: Array  # shape (m,), as the next two
    standard_error: Array
    df: Array
    shares: TwoShares | None  # the two sides, if they are shares

    @classmethod
    def of(
        cls, result: GroupEstimates, first: Array, second: Array, kind: str
    ) -> Contrasts:
        """Return contrasts of groups, given by number."""
        check_choice(kind, "kind", ("difference", "ratio"))
        a, b = result.estimate[first], result.estimate[second]
        one, other, shared = result.covariances(first, second)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = kind == "ratio"
            u, v = (
                (1 / b, -a / b**2) if ratio else (np.ones(a.shape), -np.ones(a.shape))
            )
            error = u**2 * one + v**2 * other + 2 * u * v * shared
            error = np.sqrt(np.maximum(error, 0.0))
        same = first == second
        error = np.where(same, 0.0 * error, error)
        df = contrast_degrees(result.sums, result.metric.finalize, first, second)
        shares = None
        if isinstance(result.shares, Shares) and not same.any():
            correlation = correlation_of(shared, one, other)
            sides = [result.shares.take(part) for part in (first, second)]
            if result.variance == "cluster":
                sides = [replace(side, df=df) for side in sides]
            shares = TwoShares(sides[0], sides[1], correlation)
        return cls(kind, _value(a, b, kind), error, df, shares)

    @property
    def null_value(self) -> float:
        """The value of no difference."""
        return 1.0 if self.kind == "ratio" else 0.0

    def estimates(
        self, names: Sequence[str], resamplers: Sequence[Resampler | None]
    ) -> list[Estimate]:
        """Return them one by one."""
        return [
            Estimate(
                name,
                float(self.estimate[i]),
                float(self.standard_error[i]),
                float(self.df[i]),
                self.null_value,
                self.kind,
                self.shares and self.shares.take(np.array(i)),
                resampler,
            )
            for i, (name, resampler) in enumerate(zip(names, resamplers, strict=True))
        ]

    @property
    def _on_log_scale(self) -> Array:
        return (self.kind == "ratio") & (self.estimate > 0)

    def _linear(self) -> tuple[Array, Array, Array]:
        """Estimates, errors and null values on the scale of Student's t."""
        log = self._on_log_scale
        with np.errstate(divide="ignore", invalid="ignore"):
            return (
                np.where(log, np.log(self.estimate), self.estimate),
                np.where(log, self.standard_error / self.estimate, self.standard_error),
                np.where(log, 0.0, self.null_value),
            )

    def ends(self, reach: Array) -> tuple[Array, Array]:
        """Return intervals of so many standard errors each way."""
        if self.shares is not None:
            return self.shares.ends(reach, self.df, self.kind)
        middle, error, _ = self._linear()
        low, high = t_ends(middle, error, reach)
        log = self._on_log_scale
        with np.errstate(over="ignore"):
            low, high = (
                np.where(log, np.exp(low), low),
                np.where(log, np.exp(high), high),
            )
        return low, high

    @cached_property
    def pvalue(self) -> Array:
        """Two-sided p-values of no difference, shape (m,)."""
        if self.shares is not None:
            return self.shares.test(self.kind, self.df)[1]
        return t_test(*self._linear(), self.df)[1]


def correlation_of(covariance: Array, first: Array, second: Array) -> Array:
    """Return correlations from two variances; 0 where one of them is 0."""
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(first * second)
    correlation = np.zeros(scale.shape)
    np.divide(covariance, scale, out=correlation, where=scale > 0)
    return np.clip(correlation, -1.0, 1.0)


def contrasts_frame(
    pairs: Sequence[tuple[Hashable, Hashable]],
    contrasts: Contrasts,
    correction: str,
    confidence_level: float,
) -> pd.DataFrame:
    """Return one row per contrast, with p-values corrected for their number."""
    import pandas as pd

    low, high = contrasts.ends(t_quantile(confidence_level, contrasts.df))
    return pd.DataFrame(
        {
            "a": pd.Series([a for a, _ in pairs], dtype=object),
            "b": pd.Series([b for _, b in pairs], dtype=object),
            "estimate": contrasts.estimate,
            "standard_error": contrasts.standard_error,
            "df": contrasts.df,
            "ci_low": low,
            "ci_high": high,
            "pvalue": contrasts.pvalue,
            "pvalue_corrected": correct(contrasts.pvalue, correction),
        }
    )
