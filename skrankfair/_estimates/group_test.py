"""Tests by group, and p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array, check_number, generator
from . import formatting as fmt
from .read_only import ReadOnlyArrays

if TYPE_CHECKING:
    import pandas as pd

    from .group_estimates import GroupEstimates


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
