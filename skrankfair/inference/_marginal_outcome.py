"""Are the groups held to one standard? Mean outcomes just above a threshold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import check_level
from .._estimates.simultaneous import Simultaneous
from .._inputs.validation import Array
from ..metrics import ConfidenceInterval, GroupEstimates

if TYPE_CHECKING:
    import pandas as pd

    from ..display import MarginalOutcomeDisplay

# Columns of a group: kernel sums of 1, u, u², y and y·u.
_MASS, _FIRST, _SECOND, _OUTCOME, _SLOPE = range(5)
# Relative to what it would be, a spread of scores that is none.
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class ValueAtBoundary:
    """The regression of the outcome on the score, at the threshold.

    Attributes
    ----------
    boundary : {"constant", "local_linear"}
    """

    boundary: str

    def weights(self, by_group: Array) -> tuple[Array, Array]:
        """Return what sums of 1 and of u are weighted by, each of shape (..., G)."""
        one, zero = np.ones_like(by_group[..., 0]), np.zeros_like(by_group[..., 0])
        if self.boundary == "constant":
            return one, zero
        mass, first, second = np.moveaxis(by_group[..., :3], -1, 0)
        spread = (second * mass - first * first).real
        line = spread > _NO_SPREAD * (second * mass).real
        return np.where(line, second, one), np.where(line, -first, zero)

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the value by group, shape (..., G)."""
        level, tilt = self.weights(by_group)
        top = level * by_group[..., _OUTCOME] + tilt * by_group[..., _SLOPE]
        bottom = level * by_group[..., _MASS] + tilt * by_group[..., _FIRST]
        value = np.full(top.shape, np.nan, dtype=top.dtype)
        np.divide(top, bottom, out=value, where=bottom.real != 0)
        return value


@dataclass(frozen=True, eq=False)
class MarginalOutcomeTest:
    """Mean outcomes of the groups just above a threshold, compared.

    Made by `marginal_outcome_test`. Results of parts of the data with the same
    bandwidth add up.

    Attributes
    ----------
    estimates : GroupEstimates
        Marginal outcome by group: its mean at the threshold.
    inframarginal : GroupEstimates
        Mean outcome of all rows at or above the threshold, which is not what the test
        looks at: it differs between groups whose scores differ, however fair.
    threshold : float
    bandwidth : float
    parameters : dict
        The options of the test.
    """

    estimates: GroupEstimates
    inframarginal: GroupEstimates
    threshold: float
    bandwidth: float
    parameters: Mapping[str, Any]

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups, of length G."""
        return self.estimates.groups

    @property
    def n_clusters(self) -> float:
        """The number of clusters with a row at or above the threshold."""
        return self.estimates.n_clusters

    @cached_property
    def contrasts(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The groups that are compared, of length C."""
        reference = self.parameters["reference"]
        if reference is not None:
            return tuple((g, reference) for g in self.groups if g != reference)
        return tuple(combinations(self.groups, 2))

    @cached_property
    def _pairs(self) -> Array:
        place = {group: i for i, group in enumerate(self.groups)}
        pairs = [(place[a], place[b]) for a, b in self.contrasts]
        return np.array(pairs, dtype=int).reshape(-1, 2)

    @cached_property
    def difference(self) -> Array:
        """First less second marginal outcome of each contrast, shape (C,)."""
        first, second = self._pairs.T
        return self.estimates.estimate[first] - self.estimates.estimate[second]

    @cached_property
    def standard_error(self) -> Array:
        """Standard errors of the differences, shape (C,)."""
        first, second = self._pairs.T
        covariance = self.estimates.covariance
        own = np.diag(covariance)
        variance = own[first] + own[second] - 2 * covariance[first, second]
        return np.sqrt(np.maximum(variance, 0))

    @cached_property
    def effective_clusters(self) -> Array:
        """How many clusters the value of each group rests on, shape (G,)."""
        sums = self.estimates.sums
        n_groups, n_columns = sums.by_group.shape
        value = ValueAtBoundary(self.parameters["boundary"])
        level, tilt = value.weights(sums.by_group)
        effective = np.full(n_groups, np.nan)
        for g in range(n_groups):
            mass, first = g * n_columns + _MASS, g * n_columns + _FIRST
            weight = np.array([level[g], tilt[g]])
            both = np.ix_([mass, first], [mass, first])
            squares = weight @ sums.scatter[both] @ weight
            total = weight @ sums.by_group[g, [_MASS, _FIRST]]
            if squares > 0:
                effective[g] = total**2 / squares
        return effective

    @cached_property
    def df(self) -> Array:
        """Welch's degrees of freedom of the differences, shape (C,)."""
        own = self.effective_clusters - 1
        first, second = self._pairs.T
        variance = np.diag(self.estimates.covariance)
        a, b = variance[first], variance[second]
        with np.errstate(divide="ignore", invalid="ignore"):
            df = (a + b) ** 2 / (a**2 / own[first] + b**2 / own[second])
            df = np.where(a + b == 0, np.minimum(own[first], own[second]), df)
            return np.where(df >= 1 - 1e-9, df, np.nan)

    @cached_property
    def _tests(self) -> Simultaneous:
        return Simultaneous(
            self.difference,
            self.standard_error,
            self.df,
            self.estimates.covariance,
            self._pairs,
            self.parameters["n_resamples"],
            self.parameters["random_state"],
        )

    @cached_property
    def pvalues(self) -> Array:
        """P-value of each contrast, corrected for their number, shape (C,)."""
        if len(self.contrasts) == 1:
            return self._tests.pvalue
        return self._tests.corrected(self.parameters["correction"])

    @property
    def statistic(self) -> float:
        """Student's t of the only contrast; of several the largest ``|z|``."""
        if len(self.contrasts) == 1:
            return float(self._tests.statistic[0])
        known = self._tests.deviate[~np.isnan(self._tests.deviate)]
        return float(known.max()) if known.size else float("nan")

    @property
    def pvalue(self) -> float:
        """P-value of equal marginal outcomes in all groups."""
        known = self.pvalues[~np.isnan(self.pvalues)]
        return float(known.min()) if known.size else float("nan")

    def confidence_interval(
        self, confidence_level: float | None = None
    ) -> ConfidenceInterval:
        """Return intervals of the differences, simultaneous for several contrasts.

        Parameters
        ----------
        confidence_level : float or None, default=None
            None: that of the test.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (C,).

        Raises
        ------
        ValueError
            For a level outside (0, 1).
        """
        if confidence_level is None:
            confidence_level = self.parameters["confidence_level"]
        check_level(confidence_level)
        method = self.parameters["correction"]
        if len(self.contrasts) == 1:
            method = "pointwise"
        margin = self._tests.quantile(confidence_level, method) * self.standard_error
        return ConfidenceInterval(self.difference - margin, self.difference + margin)

    def to_frame(self, confidence_level: float | None = None) -> pd.DataFrame:
        """Return one row a contrast.

        Parameters
        ----------
        confidence_level : float or None, default=None
            None: that of the test.

        Returns
        -------
        DataFrame
            Columns a, b, difference, std_error, ci_low, ci_high, df, pvalue and
            inframarginal_difference.
        """
        import pandas as pd

        low, high = self.confidence_interval(confidence_level)
        first, second = self._pairs.T
        above = self.inframarginal.estimate
        return pd.DataFrame(
            {
                "a": pd.Series([a for a, _ in self.contrasts], dtype=object),
                "b": pd.Series([b for _, b in self.contrasts], dtype=object),
                "difference": self.difference,
                "std_error": self.standard_error,
                "ci_low": low,
                "ci_high": high,
                "df": self.df,
                "pvalue": self.pvalues,
                "inframarginal_difference": above[first] - above[second],
            }
        )

    def __add__(self, other: object) -> MarginalOutcomeTest:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, MarginalOutcomeTest):
            return NotImplemented
        mine = (self.threshold, self.bandwidth, self.parameters)
        if mine != (other.threshold, other.bandwidth, other.parameters):
            raise ValueError(
                "Only results of the same threshold, bandwidth and options can be "
                "added: pass the bandwidth of one, as a number, to every part."
            )
        return replace(
            self,
            estimates=self.estimates + other.estimates,
            inframarginal=self.inframarginal + other.inframarginal,
        )

    def __radd__(self, other: object) -> MarginalOutcomeTest:
        """Let ``sum(results)`` start from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def plot(self, ax: Any = None, **kwargs: Any) -> MarginalOutcomeDisplay:
        """Draw the marginal outcomes, with the means above the threshold beside them.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
        **kwargs : dict
            Passed to `MarginalOutcomeDisplay.plot`.

        Returns
        -------
        MarginalOutcomeDisplay
        """
        from ..display import MarginalOutcomeDisplay

        return MarginalOutcomeDisplay.from_test(self, ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return the marginal outcomes, and the contrasts with their p-values."""
        low, high = map(np.asarray, self.confidence_interval())
        level = self.parameters["confidence_level"]
        head = (
            f"marginal_outcome_test(threshold={self.threshold:g}, "
            f"bandwidth={self.bandwidth:.4g}, "
            f"boundary={self.parameters['boundary']!r})"
        )
        lines = [head]
        for group, value, error in zip(
            self.groups,
            self.estimates.estimate,
            self.estimates.standard_error,
            strict=True,
        ):
            name = fmt.label(group)
            lines.append(f"{name}: {fmt.number(value)} ± {fmt.number(error)}")
        for i, (a, b) in enumerate(self.contrasts):
            lines.append(
                f"{fmt.label(a)} - {fmt.label(b)}: {fmt.number(self.difference[i])} "
                f"({100 * level:g}% interval {fmt.number(low[i])} to "
                f"{fmt.number(high[i])}, p = {self.pvalues[i]:.3g})"
            )
        lines.append(f"{self.n_clusters:,} clusters")
        return "\n".join(lines)
