"""Tests that a difference is small enough, from the intervals of an estimate.

Two one-sided tests (Schuirmann 1987) ask whether the value is above the lower bound of
a margin and below its upper one; both must reject. At level α they reject exactly when
the interval of level ``1 - 2 α`` lies inside the margin, so they are taken from the
intervals, whatever scale these are made on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array, as_numbers, check_number
from . import formatting as fmt
from .group_test import correct
from .read_only import ReadOnlyArrays
from .scales import largest_excluding, t_quantile, tail_of

if TYPE_CHECKING:
    import pandas as pd

Ends = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class EquivalenceTest(ReadOnlyArrays):
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
            Indexed by group: estimate, low, high, pvalue, pvalue_corrected.
        """
        import pandas as pd

        columns = {
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "pvalue": self.pvalue,
            "pvalue_corrected": self.corrected(correction),
        }
        index = pd.Index(list(self.groups), name="group", tupleize_cols=False)
        return pd.DataFrame(columns, index=index)

    def __repr__(self) -> str:
        """Return a small table, and the margin."""
        rows = [
            [
                fmt.label(group),
                fmt.number(self.estimate[i]),
                f"[{fmt.number(self.low[i])}, {fmt.number(self.high[i])}]",
                fmt.pvalue(self.pvalue[i]),
            ]
            for i, group in enumerate(self.groups)
        ]
        level = f"{100 * (1 - 2 * self.alpha):g}% interval"
        table = fmt.text_table(["group", "estimate", level, "p"], rows)
        low, high = self.margin
        return f"Within {low:g} to {high:g}?\n{table}"


def check_alpha(alpha: float) -> None:
    """Raise a ValueError unless the level of two one-sided tests makes sense."""
    check_number(alpha, "alpha", 0, 0.5, inclusive=(False, False))


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
    if np.ndim(margin) == 0:
        size = float(as_numbers([margin], "margin")[0])
        if kind == "ratio":
            low, high = (size, 1 / size) if size > 0 else (1.0, 1.0)
            low, high = min(low, high), max(low, high)
        else:
            low, high = -size, size
    else:
        try:
            low, high = map(float, margin)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
    if not low < fair < high:
        example = "0.8 or (0.8, 1.25)" if kind == "ratio" else "0.02 or (-0.02, 0.02)"
        raise ValueError(
            f"margin must hold {fair:g} inside its bounds, such as {example}; got "
            f"{margin!r}."
        )
    return low, high


def equivalence(
    groups: tuple[Hashable, ...],
    estimate: Array,
    ends: Ends,
    df: Array,
    margin: tuple[float, float],
    alpha: float,
) -> EquivalenceTest:
    """Return the test of estimates whose intervals are known at every reach.

    Parameters
    ----------
    groups : tuple of hashable, length G
    estimate : ndarray of shape (G,)
    ends : callable
        From quantiles of Student's t to the lower and upper ends of intervals.
    df : ndarray of shape (G,)
    margin : tuple of float
    alpha : float
    """
    low, high = ends(t_quantile(1 - 2 * alpha, df))
    below_low, above_low = _beside(ends, margin[0])
    below_high, above_high = _beside(ends, margin[1])
    tests = (_one_sided(above_low, below_low), _one_sided(below_high, above_high))
    pvalue = np.zeros(estimate.shape)
    for bound, test in zip(margin, tests, strict=True):
        if np.isfinite(bound):
            pvalue = np.maximum(pvalue, test(df, estimate.shape))
    unknown = np.isnan(low) | np.isnan(high)
    return EquivalenceTest(
        groups,
        estimate,
        margin,
        np.where(unknown, np.nan, pvalue),
        low,
        high,
        alpha,
    )


def _beside(
    ends: Ends, bound: float
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return how far intervals are below a bound, and above it; negative if not."""
    return lambda reach: bound - ends(reach)[1], lambda reach: ends(reach)[0] - bound


def _one_sided(
    holds: Callable[[Array], Array], fails: Callable[[Array], Array]
) -> Callable[[Array, tuple[int, ...]], Array]:
    """Return the p-value of one bound: the tail where an end of the interval meets it.

    `holds` says how far the interval is on the right side of the bound, `fails` how far
    it is beyond it.
    """

    def pvalue(df: Array, shape: tuple[int, ...]) -> Array:
        nearest = np.zeros(shape)
        right = holds(nearest) > 0
        inside = tail_of(largest_excluding(holds, shape), df)
        beyond = 1 - tail_of(largest_excluding(fails, shape), df)
        return np.where(right, inside, np.where(fails(nearest) > 0, beyond, 0.5))

    return pvalue
