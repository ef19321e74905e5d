"""What tests of the curves of groups share: contrasts, corrections and bands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from .._estimates.arrays import AddsUp, cached_read_only
from .._estimates.finalize import quotient
from .._estimates.scales import ConfidenceInterval, check_level
from .._estimates.simultaneous import CORRECTIONS, Simultaneous
from .._inputs.groups import number_of
from .._inputs.validation import Array, check_choice, check_number, generator
from ..smoothing._curve import share_interval
from ..smoothing._curve_pairs import CurvePairs
from ..smoothing._kernels import Kernel, get_kernel

#: The options that all of these tests have, with what they are by default.
_OPTIONS = {
    "correction": "sup_t",
    "confidence_level": 0.95,
    "n_resamples": 20_000,
    "random_state": 0,
}


class Values(NamedTuple):
    """Estimates with errors and degrees of freedom, of one shape."""

    estimate: Array
    standard_error: Array
    df: Array


@dataclass(frozen=True, eq=False)
class ContrastTest(AddsUp, ABC):
    """Differences of curves of groups, tested together.

    Attributes
    ----------
    sums : CurvePairs
        Kernel sums over clusters, with their cross products.
    bandwidth : float
    parameters : dict
        The options of the test.
    """

    sums: CurvePairs
    bandwidth: float
    parameters: Mapping[str, Any]

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups, of length G."""
        return self.sums.groups

    @property
    def n_clusters(self) -> int:
        """The number of clusters with rows that the test looks at."""
        return int(self.sums.count)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest outcome."""
        return self.sums.outcomes[0], self.sums.outcomes[-1]

    @cached_read_only
    def contrasts(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """What is compared: two groups, or a group and "rest"; of length C."""
        names = (*self.groups, *("rest" for _ in self.groups))
        return tuple((names[a], names[b]) for a, b in self._pairs)

    @cached_read_only
    def _pairs(self) -> Array:
        """The two curves of each contrast, shape (C, 2)."""
        return compared_pairs(
            self.groups, self.parameters["reference"], rests=self.sums.rests
        )

    @property
    @abstractmethod
    def _differences(self) -> Values:
        """The differences of the contrasts."""

    @property
    def difference(self) -> Array:
        """First minus second curve of each contrast; NaN where it is not compared.

        Of shape (C, J) for a grid of J scores, (C,) at a threshold.
        """
        return self._differences.estimate

    @property
    def df(self) -> Array:
        """Degrees of freedom of the differences, of the same shape.

        Welch's, from the effective numbers of clusters; infinite for the score test of
        ``curve="local_quadratic"``.
        """
        return self._differences.df

    @property
    @abstractmethod
    def _tests(self) -> Simultaneous:
        """The tests of all differences together."""

    @cached_read_only
    def pvalues(self) -> Array:
        """P-values corrected for their number, of the shape of `difference`."""
        corrected = self._tests.corrected(self.parameters["correction"])
        return corrected.reshape(self.difference.shape)

    @property
    def statistic(self) -> float:
        """The largest ``|z|``, the normal deviate of the smallest p-value."""
        return largest(self._tests.deviate)

    @property
    def pvalue(self) -> float:
        """P-value of no difference anywhere: the smallest corrected one."""
        return -largest(-self.pvalues)

    def _together(
        self, values: Values, covariance: Any, contrasts: Array, spread: Array
    ) -> Simultaneous:
        """Return the tests of all values together, with the options of this test."""
        estimate, error, df = (numbers.ravel() for numbers in values)
        return Simultaneous(
            estimate=estimate,
            standard_error=error,
            df=df,
            covariance=covariance,
            contrasts=contrasts,
            n_resamples=self.parameters["n_resamples"],
            random_state=self.parameters["random_state"],
            spread=spread.ravel(),
        )

    def _frame(self, **columns: Array) -> pd.DataFrame:
        """Return a frame with a row for each contrast and point."""
        pairs = [pair for pair in self.contrasts for _ in self.sums.grid]
        frame = pd.DataFrame(pairs, columns=["a", "b"], dtype=object)
        return frame.assign(**{n: np.ravel(values) for n, values in columns.items()})

    def _level(self, confidence_level: float | None) -> float:
        """Return the level that is asked for, or that of the test."""
        if confidence_level is None:
            return float(self.parameters["confidence_level"])
        check_level(confidence_level)
        return confidence_level

    def _band(self, level: float, method: str) -> ConfidenceInterval:
        """Return intervals of the differences; those of shares are inside [-1, 1]."""
        difference, error, _ = self._differences
        margin = self._tests.quantile(level, method).reshape(error.shape) * error
        most = 1 if self._are_shares else np.inf
        ends = np.clip([difference - margin, difference + margin], -most, most)
        return ConfidenceInterval(*ends)

    def _interval(
        self, values: Values, quantile: Array, effective: Array | None
    ) -> ConfidenceInterval:
        """Return intervals of values, of shares with effective numbers of clusters."""
        value, error, _ = values
        if effective is not None and self._are_shares:
            squares = self.sums.independent_errors()[: len(self.groups)]
            rows = quotient(np.ones(value.shape), squares.reshape(value.shape))
            return share_interval(value, error, effective, rows, quantile)
        return ConfidenceInterval(value - quantile * error, value + quantile * error)

    @property
    def _are_shares(self) -> bool:
        low, high = self.range
        return low >= 0 and high <= 1

    def __add__(self, other: object) -> Self:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, type(self)):
            return NotImplemented
        same = (
            np.array_equal(self.sums.grid, other.sums.grid)
            and self.bandwidth == other.bandwidth
            and self.parameters == other.parameters
            and self.sums.rests == other.sums.rests
        )
        if not same:
            raise ValueError(
                "Only results of the same grid or threshold, bandwidth and options can "
                "be added: pass those of one, as numbers, to every part."
            )
        return replace(self, sums=self.sums + other.sums)


def largest(values: Array) -> float:
    """Return the largest known value, NaN without any."""
    return float(np.fmax.reduce(values, axis=None, initial=np.nan))


def compared_pairs(
    groups: tuple[Hashable, ...], reference: Hashable | None, *, rests: bool = False
) -> Array:
    """Return the numbers of the curves of each contrast, shape (C, 2).

    All pairs of groups, each other group with the reference, or each with its rest. A
    ValueError is raised for a reference that is no group.
    """
    size = len(groups)
    if rests:
        return np.column_stack([np.arange(size), size + np.arange(size)])
    if reference is None:
        return np.column_stack(np.triu_indices(size, 1))
    last = number_of(reference, groups, "reference")
    pairs = [(g, last) for g in range(size) if g != last]
    return np.array(pairs, dtype=int).reshape(-1, 2)


def difference_errors(variance: Array, covariance: Array, pairs: Array) -> Array:
    """Return the standard errors of the differences of pairs of correlated values."""
    first, second = pairs.T
    spread = variance[first] + variance[second] - 2 * covariance[first, second]
    return np.sqrt(np.maximum(spread, 0))


def kernel_of_degree(name: str, degree: int, option: str) -> Kernel:
    """Return the kernel, whose weights must not be negative for a regression."""
    kernel = get_kernel(name)
    if degree and kernel.order > 2:
        raise ValueError(
            f"kernel must not have negative weights for {option}; got {name!r}."
        )
    return kernel


def parameters_of_test(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return arguments of a test: these, and the options of all tests, checked."""
    parameters = {name: given[name] for name in names}
    parameters |= {name: given.get(name, usual) for name, usual in _OPTIONS.items()}
    check_choice(parameters["correction"], "correction", CORRECTIONS)
    check_level(parameters["confidence_level"])
    check_number(parameters["n_resamples"], "n_resamples", 1, np.inf, integer=True)
    generator(parameters["random_state"])
    return parameters
