"""Tests by group: against a fair value, of equivalence, and by permutation.

Two one-sided tests (Schuirmann 1987) ask whether a value is above the lower bound of a
margin and below its upper one; both must reject. At level α they reject exactly when
the interval of level ``1 - 2 α`` lies inside the margin, so they are taken from the
intervals, whatever scale these are made on.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._inputs.validation import Array, check_number, generator
from . import formatting as fmt
from .read_only import ReadOnlyArrays
from .scales import largest_excluding, t_quantile, tail_of

if TYPE_CHECKING:
    import pandas as pd

    from .estimates import Estimates
    from .group_estimates import GroupEstimates


class _Tests(ReadOnlyArrays):
    """Base of tests that have one p-value per group."""

    groups: tuple[Hashable, ...]
    pvalue: Array
    _columns: ClassVar[tuple[str, ...]]

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
            Indexed by group: estimate, what belongs to it (null_value, standard_error,
            statistic and df of a test, low and high of one of equivalence), pvalue,
            pvalue_corrected.
        """
        columns = {
            name: np.broadcast_to(getattr(self, name), self.pvalue.shape)
            for name in self._columns
        }
        columns["pvalue_corrected"] = self.corrected(correction)
        return fmt.groups_frame(self.groups, columns)


@dataclass(frozen=True, eq=False)
class GroupTest(_Tests):
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
    _columns = ("estimate", "null_value", "standard_error", "statistic", "df", "pvalue")

    def __repr__(self) -> str:
        """Return a small table: group, estimate, null value, statistic, df, p."""
        null_value = np.broadcast_to(self.null_value, self.estimate.shape)
        columns = {
            "estimate": map(fmt.number, self.estimate),
            "null value": map(fmt.number, null_value),
            "statistic": map(fmt.number, self.statistic),
            "df": [fmt.number(df, 1) for df in self.df],
            "p": map(fmt.pvalue, self.pvalue),
        }
        return fmt.groups_table(self.groups, columns)


@dataclass(frozen=True, eq=False)
class EquivalenceTest(_Tests):
    """Whether values are shown to be within a margin: one test per group or contrast.

    Attributes
    ----------
    groups : tuple of hashable, length G
        Groups, or the name of a contrast.
    estimate : ndarray of shape (G,)
        What is tested: a difference, a ratio, or the distance from the fair value.
    margin : tuple of float
        The values between which differences do not matter; one may be infinite.
    pvalue : ndarray of shape (G,)
        The larger p-value of the two one-sided tests. A small one shows that the value
        is within the margin. Not corrected for the number of groups.
    low, high : ndarray of shape (G,)
        The interval that lies inside the margin where the test rejects at `alpha`: of
        level ``1 - 2 alpha``.
    alpha : float
    """

    groups: tuple[Hashable, ...]
    estimate: Array
    margin: tuple[float, float]
    pvalue: Array
    low: Array
    high: Array
    alpha: float
    _columns = ("estimate", "low", "high", "pvalue")

    @property
    def equivalent(self) -> Array:
        """Which are shown to be within the margin, shape (G,), bool; uncorrected."""
        with np.errstate(invalid="ignore"):
            return self.pvalue < self.alpha

    @property
    def overall_pvalue(self) -> float:
        """P-value that every value is within the margin: the largest.

        The intersection-union test, which needs no correction; NaN if one is unknown.
        """
        return float(np.max(self.pvalue)) if self.pvalue.size else float("nan")

    def __repr__(self) -> str:
        """Return a small table, and the margin."""
        columns = {
            "estimate": map(fmt.number, self.estimate),
            f"{100 * (1 - 2 * self.alpha):g}% interval": map(
                fmt.interval, self.low, self.high
            ),
            "p": map(fmt.pvalue, self.pvalue),
        }
        low, high = self.margin
        return f"Within {low:g} to {high:g}?\n{fmt.groups_table(self.groups, columns)}"


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


def margin_bounds(margin: Any, kind: str) -> tuple[float, float]:
    """Return the bounds of a margin; a ValueError if it holds no fair value.

    Parameters
    ----------
    margin : float or tuple of float
        Of a difference m (or -m to m), of a ratio a bound m (or m to 1/m).
    kind : {"difference", "ratio", "value"}

    Raises
    ------
    ValueError
        If the margin does not contain the value without any difference.
    """
    fair = 1.0 if kind == "ratio" else 0.0
    try:
        if np.ndim(margin):
            low, high = map(float, margin)
        elif kind == "ratio":
            low, high = sorted((float(margin), 1 / float(margin)))
        else:
            low, high = -float(margin), float(margin)
    except (TypeError, ValueError, ZeroDivisionError):
        low, high = np.nan, np.nan
    if not low < fair < high:
        example = "0.8 or (0.8, 1.25)" if kind == "ratio" else "0.02 or (-0.02, 0.02)"
        raise ValueError(
            f"margin must hold {fair:g} inside its bounds, such as {example}; got "
            f"{margin!r}."
        )
    return low, high


def equivalence(values: Estimates, margin: Any, alpha: float) -> EquivalenceTest:
    """Test whether each of the values is within a margin of its null value."""
    check_number(alpha, "alpha", 0, 0.5, inclusive=(False, False))
    bounds = margin_bounds(margin, values.kind)
    fair = 0.0 if values.kind == "ratio" else values.null_value or 0.0
    low, high = values.ends(t_quantile(1 - 2 * alpha, values.df))
    pvalue = np.where(np.isnan(low) | np.isnan(high), np.nan, 0.0)
    for number, bound in enumerate(bounds):
        if np.isfinite(bound):
            beyond = _not_beyond(values, bound + fair, upper=number == 1)
            pvalue = np.maximum(pvalue, beyond)
    return EquivalenceTest(
        *(values.names, values.estimate - fair, bounds, pvalue),
        *(low - fair, high - fair, alpha),
    )


def _not_beyond(values: Estimates, bound: float, *, upper: bool) -> Array:
    """Return the p-values against one bound, at which an interval just reaches it."""

    def inside(reach: Array) -> tuple[Array, Array]:
        """Return the interval of the value's distance inside the bound."""
        low, high = values.ends(reach)
        return (bound - high, bound - low) if upper else (low - bound, high - bound)

    shape = values.estimate.shape
    least, most = inside(np.zeros(shape))
    right = tail_of(largest_excluding(lambda t: inside(t)[0], shape), values.df)
    wrong = 1 - tail_of(largest_excluding(lambda t: -inside(t)[1], shape), values.df)
    return np.where(least > 0, right, np.where(most < 0, wrong, 0.5))


def correct(pvalues: Array, method: str) -> Array:
    """Return p-values corrected for their number; NaN stays NaN and is no test."""
    from statsmodels.stats.multitest import multipletests

    corrected = np.full(pvalues.shape, np.nan)
    known = ~np.isnan(pvalues)
    if known.any():
        try:
            corrected[known] = multipletests(pvalues[known], method=method)[1]
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
