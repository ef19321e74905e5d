"""Scores replaced by the mean outcome at the score in the group."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import generator
from .._estimates.finalize import ColumnSum, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric
from .._estimates.refit import Refit, RefitSums
from .._estimates.sums import Table
from .._inputs.sample import Sample
from .._inputs.validation import Array, Groups, check_number
from ..exceptions import UndefinedMetricWarning
from ..smoothing._bandwidth import check_bandwidth
from ..smoothing._kernels import Kernel
from ..smoothing._repeated import RepeatedMeans
from ._calibration_error import bandwidth_of_group


@dataclass(frozen=True)
class Calibrated:
    """Scores that are replaced by the curve of their group.

    Attributes
    ----------
    sample : Sample
        Rows of all groups.
    curves : list of (ndarray, RepeatedMeans)
        The rows of each group in the sample, and its curve.
    bandwidth : dict
        Of each group.
    """

    sample: Sample
    curves: list[tuple[Array, RepeatedMeans]]
    bandwidth: dict[Hashable, float]

    @classmethod
    def of_sample(
        cls, sample: Sample, groups: Groups, bandwidth: Any, kernel: Kernel
    ) -> Calibrated:
        """Choose the bandwidth of each group."""
        curves, chosen = [], {}
        for g, label in enumerate(groups.labels):
            own = np.flatnonzero(sample.group == g)
            if not own.size:
                continue
            part = sample.take(own)
            h = chosen[label] = bandwidth_of_group(bandwidth, label, part, kernel)
            curves.append((own, RepeatedMeans(part.x, part.y, h, kernel)))
        return cls(sample, curves, chosen)

    def scores(self, counts: Array | None = None) -> Array:
        """Return the calibrated scores of the sample's rows.

        `counts` says how often each cluster counts; rows whose clusters count 0 times
        may be NaN.
        """
        weight = self.sample.weight
        if counts is not None:
            weight = self.sample.share * counts[self.sample.cluster]
        star = np.full(weight.size, np.nan)
        for own, means in self.curves:
            if weight[own].any():
                star[own] = means(weight[own])
        # Kernels with negative weights overshoot, the others by rounding.
        return np.clip(star, self.sample.y.min(), self.sample.y.max())


def checked_seed(bandwidth: Any, n_resamples: Any, random_state: Any) -> int:
    """Return a seed that gives the same resamples each time they are drawn."""
    if not isinstance(bandwidth, Mapping):
        check_bandwidth(bandwidth)
    check_number(n_resamples, "n_resamples", 2, np.inf, integer=True)
    return int(generator(random_state).integers(2**62))


def shift_estimates(
    metric: str,
    unit: str,
    support: ColumnSum,
    groups: Groups,
    table: Table,
    refit: Refit,
    resamples: tuple[int, int],
    parameters: Mapping[str, Any],
    calibrated: Calibrated,
) -> GroupEstimates:
    """Return what calibration would change on average, a mean by group.

    Parameters
    ----------
    metric, unit : str
        The name, and what is counted.
    support : ColumnSum
        What the sum of changes is divided by.
    groups : Groups
    table : Table
        Rows are clusters.
    refit : callable
        Totals with the curves fitted anew.
    resamples : tuple of int
        How many, and the seed.
    parameters : mapping
    calibrated : Calibrated
    """
    finalize, (n_resamples, seed) = MeanOfRatios(), resamples
    sums = RefitSums.of_table(
        groups.labels, table, [support], refit, n_resamples, seed, finalize
    )
    mean = Metric(
        metric, finalize, support, unit=unit, fair_value=0.0, disparity="max_abs"
    )
    result = GroupEstimates(
        mean, sums, dict(parameters), {"bandwidth": calibrated.bandwidth}
    )
    _warn_without_errors(result)
    return result


def _warn_without_errors(result: GroupEstimates) -> None:
    """Warn of groups without rows, or in one cluster, without drawing resamples."""
    active = result.sums.active[0]
    for message, there in (
        (
            f"{result.name} is undefined (NaN) for groups without {result.metric.unit}",
            result.support == 0,
        ),
        (
            f"{result.name} has no standard error (NaN), for too few clusters, in",
            (result.support > 0) & (active < 2),
        ),
    ):
        if there.any():
            names = [fmt.label(result.groups[i]) for i in np.flatnonzero(there)]
            warnings.warn(
                f"{message}: {', '.join(names)}.", UndefinedMetricWarning, stacklevel=4
            )
