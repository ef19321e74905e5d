"""Do equal scores mean equal outcomes in all groups? Curves compared on a grid."""

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
from .._inputs.validation import Array, check_choice
from ..metrics import ConfidenceInterval
from ..smoothing._group_curves import CurveSums

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
            Columns a, b, score, difference, std_error, band_low, band_high, pvalue
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
                "std_error": self.difference_standard_error.ravel(),
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
