"""The permutation test of statistical parity: labels shuffled within every list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._sums import Finalize
from .._validation import Array, check_number
from ._estimate import GroupTest, generator
from ._lists import Kernel, Lists, table_of

if TYPE_CHECKING:
    from ._result import GroupEstimates

_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Permutation:
    """Lists and the metric of them: what a result keeps to shuffle its labels.

    Of the data it holds a label a row and where lists and tied blocks begin.

    Attributes
    ----------
    lists : Lists
    weight : ndarray of shape (n_lists,) or None
        How often each list counts.
    kernel : Kernel
    alternative : {"greater", "two-sided"}
        Which values speak against parity: large ones of a distance, or both ends.
    """

    lists: Lists
    weight: Array | None
    kernel: Kernel
    alternative: str

    def resampled(
        self, finalize: Finalize, n_resamples: int, rng: np.random.Generator
    ) -> Array:
        """Return estimates with shuffled labels, shape (n_resamples, G)."""
        many = max(1, _ROWS // self.lists.n_rows)
        chunks = []
        for start in range(0, n_resamples, many):
            times = min(many, n_resamples - start)
            totals = [
                self._totals(part, times)
                for part in table_of(self.kernel, self.lists.shuffled(times, rng))
            ]
            chunks.append(finalize(totals[0], totals[1]))
        return np.concatenate(chunks)

    def _totals(self, rows: Array, times: int) -> Array:
        """Sum the rows over the lists of each of the shuffles."""
        rows = rows.reshape(times, self.lists.n_lists, *rows.shape[1:])
        if self.weight is None:
            return rows.sum(axis=1)
        return np.tensordot(rows, self.weight, axes=(1, 0))

    def __add__(self, other: Permutation) -> Permutation:
        """Return the lists of both, of one metric with the same options."""
        weight = None
        if self.weight is not None or other.weight is not None:
            weight = np.concatenate(
                [
                    np.ones(part.lists.n_lists) if part.weight is None else part.weight
                    for part in (self, other)
                ]
            )
        return replace(self, lists=self.lists + other.lists, weight=weight)


def both(a: Permutation | None, b: Permutation | None) -> Permutation | None:
    """Return what two parts keep; None if one of them has dropped it."""
    return None if a is None or b is None else a + b


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
