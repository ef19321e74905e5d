"""The curves of all data, for metrics of the scores that these calibrate.

A first pass finds the range and the spread of the scores of each group, passes like
those of calipers its quartiles, and one more sums the kernel on the nodes of a lattice,
for all rows and for each replicate. Then each part is measured with these curves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from .. import metrics as library
from .._estimates.allocation import check_memory
from .._estimates.metric import collected_warnings
from .._estimates.replicates import label_hashes, poisson_counts
from .._estimates.storage import stored
from .._inputs.ranking import ranked_data
from .._inputs.score_rows import Sample, score_rows
from .._inputs.validation import Array
from ..metrics._calibration_error import own_bandwidth
from ..metrics._calibration_impact import ranked_sample
from ..smoothing._bandwidth import (
    QUARTILES,
    bandwidth_of_scale,
    check_bandwidth,
    smaller_scale,
)
from ..smoothing._fitted_curves import (
    CurvePlace,
    FittedCurve,
    FittedCurves,
)
from ..smoothing._kernels import get_kernel
from ._plan import AnyMetrics, MeasurePlan, parameters_of, plain_of, total_of
from ._quantile import ANYWHERE, Distances, Place, QuantilePlan, check_passes, searched

_SHIFTS = (library.positive_rate_shift, library.rank_shift)


@stored("ScoreSpread")
@dataclass(frozen=True)
class ScoreSpread:
    """Numbers, range and moments of the scores of a group, and range of outcomes."""

    n_rows: int
    n_clusters: float
    low: float
    high: float
    y_low: float
    y_high: float
    mass: float
    mean: float
    squares: float  # of distances from the mean, times the weight

    @classmethod
    def of_sample(cls, sample: Sample) -> ScoreSpread:
        """Return those of the rows of a group."""
        x, y, weight = sample.x, sample.y, sample.weight
        mean = float(np.average(x, weights=weight))
        return cls(
            x.size,
            sample.n_active,
            float(x.min()),
            float(x.max()),
            float(y.min()),
            float(y.max()),
            float(weight.sum()),
            mean,
            float(weight @ (x - mean) ** 2),
        )

    def __add__(self, other: ScoreSpread) -> ScoreSpread:
        """Return those of the rows of both."""
        mass, step = self.mass + other.mass, other.mean - self.mean
        share = other.mass / mass
        return ScoreSpread(
            self.n_rows + other.n_rows,
            self.n_clusters + other.n_clusters,
            min(self.low, other.low),
            max(self.high, other.high),
            min(self.y_low, other.y_low),
            max(self.y_high, other.y_high),
            mass,
            self.mean + share * step,
            self.squares + other.squares + step**2 * self.mass * share,
        )


@dataclass(frozen=True)
class SpreadPlan(QuantilePlan):
    """A pass that finds the spread of the scores, by metric and group."""

    def measure(self, frame: Any) -> Mapping[Any, Any]:
        """Return the spread of one part of the data."""
        return {
            place: ScoreSpread.of_sample(sample)
            for place, sample, *_ in self.samples(frame)
        }

    def samples(self, frame: Any) -> Iterator[tuple[Place, Sample, Array, Any]]:
        """Yield metric and group, its rows, and labels of clusters with weights."""
        values = self.values(frame)
        for name, metric in self.metrics.items():
            given = {k: v for k, v in values.items() if k in parameters_of(metric)}
            weighted, missing = (
                signature(metric).parameters[option].default
                for option in ("cluster_weight", "missing")
            )
            with collected_warnings():  # said once, of the sums
                if plain_of(metric) is library.rank_shift:
                    data = ranked_data(**given, missing=missing)
                    sample, groups = ranked_sample(data, weighted, False), data.groups
                    labels = data.query_labels
                    if data.cluster is not None:
                        labels = data.cluster.all_labels
                else:
                    rows = score_rows(**given, missing=missing)
                    sample, groups = rows.sample(weighted), rows.groups
                    labels = rows.cluster_labels
            for g in np.unique(sample.group).tolist():
                own = sample.of_group(g)
                yield (name, groups.labels[g]), own, labels, sample.frequency


@dataclass(frozen=True)
class QuartilePlan(SpreadPlan):
    """A pass that looks for the quartiles of the scores, by metric and group."""

    def measure(self, frame: Any) -> Mapping[Any, Any]:
        """Return the scores of one part of the data around the quartiles."""
        found: dict[Place, Distances] = {}
        for (name, label), sample, *_ in self.samples(frame):
            for level in QUARTILES:
                place = name, (label, level)
                bounds = (self.bounds or {}).get(place, ANYWHERE.asked)
                if bounds is not None:
                    found[place] = Distances.of_values(sample.x, sample.weight, bounds)
        return found


@dataclass(frozen=True)
class CurvePlan(SpreadPlan):
    """A pass that sums the kernel at the rows of each group.

    Attributes
    ----------
    places : dict of (str, hashable) to CurvePlace
        By metric and group.
    """

    places: Mapping[Place, CurvePlace] = field(default_factory=dict)

    def measure(self, frame: Any) -> Mapping[Any, Any]:
        """Return the columns of the curves of one part of the data."""
        return {
            place: self.places[place].columns(
                sample.x, sample.y, self._weights(sample, *clusters)
            )
            for place, sample, *clusters in self.samples(frame)
        }

    def _weights(
        self, sample: Sample, labels: Array, frequency: Array | None
    ) -> Iterator[Array]:
        """Yield the weights of the rows, then those in each replicate."""
        yield sample.weight
        hashes = label_hashes(labels)
        for b in range(self.n_replicates):
            counts = poisson_counts(hashes, frequency, self.random_state, b, b + 1)
            yield sample.share * counts[0][sample.cluster]


def with_curves(
    plan: MeasurePlan, data: Any, run: Callable[[Any, MeasurePlan], Any]
) -> MeasurePlan:
    """Return the plan with the curves of all data for the metrics that fit them.

    The arguments are those of `with_thresholds`.
    """

    def fixed(wanted: AnyMetrics) -> AnyMetrics:
        _check_shifts(wanted, plan)
        check_passes(data, f"measure {', '.join(wanted)} of")
        task = SpreadPlan(wanted, plan.columns)
        spreads = total_of(task, run(data, task))
        places = _places(wanted, spreads, plan, data, run)
        summing = CurvePlan(
            wanted, plan.columns, plan.n_replicates, plan.random_state, places=places
        )
        columns = total_of(summing, run(data, summing))
        fitted = {}
        for name, metric in wanted.items():
            own = {place: seen for place, seen in spreads.items() if place[0] == name}
            curves: dict[Hashable, FittedCurve] = {
                label: FittedCurve.of(places[name, label], columns[name, label])
                for _, label in own
            }
            ends = (
                min(seen.y_low for seen in own.values()),
                max(seen.y_high for seen in own.values()),
            )
            fitted[name] = partial(metric, bandwidth=FittedCurves(curves, ends))
        return fitted

    return plan.with_fixed(lambda metric: plain_of(metric) in _SHIFTS, fixed)


def _check_shifts(wanted: Mapping[str, Callable[..., Any]], plan: MeasurePlan) -> None:
    """Raise a ValueError for what curves of all data do not have."""
    for name, metric in wanted.items():
        bandwidth = signature(metric).parameters["bandwidth"].default
        if bandwidth == "cv":
            raise ValueError(
                f"{name} takes bandwidth='cv' in memory only, since it leaves out each "
                "cluster; pass a number, or 'rule_of_thumb'."
            )
        if not isinstance(bandwidth, Mapping):
            check_bandwidth(bandwidth)
        if not plan.n_replicates:
            raise ValueError(
                f"{name} fits a curve to all rows, and its errors are those of "
                "replicates with curves of their own: pass n_replicates=200."
            )


def _places(
    wanted: Mapping[str, Callable[..., Any]],
    spreads: Mapping[Place, ScoreSpread],
    plan: MeasurePlan,
    data: Any,
    run: Callable[[Any, MeasurePlan], Any],
) -> dict[Place, CurvePlace]:
    """Return where the sums of each curve are, with the bandwidth that memory takes."""
    options = {name: signature(metric).parameters for name, metric in wanted.items()}
    bandwidth = {name: found["bandwidth"].default for name, found in options.items()}
    ruled = {n: wanted[n] for n in wanted if isinstance(bandwidth[n], str)}
    quartiles: Mapping[Any, float] = {}
    if ruled:
        task = QuartilePlan(ruled, plan.columns)
        shares: dict[Place, float] = {
            (name, (label, level)): level
            for name, label in spreads
            for level in QUARTILES
        }
        quartiles = searched(task, data, run, ANYWHERE, shares.__getitem__)
    places = {}
    for (name, label), seen in spreads.items():
        kernel = options[name]["kernel"].default
        chosen = own_bandwidth(bandwidth[name], label)
        if name in ruled:
            low, high = (quartiles[name, (label, level)] for level in QUARTILES)
            scale = smaller_scale((seen.squares / seen.mass) ** 0.5, high - low)
            scale = scale if seen.low < seen.high else 0.0
            chosen = bandwidth_of_scale(
                chosen, scale, seen.n_clusters, get_kernel(kernel)
            )
        place = CurvePlace(seen.low, seen.high, seen.n_rows, chosen or 1.0, kernel)
        place.check(label)
        places[name, label] = place
    size = sum(place.size for place in places.values())
    check_memory(
        16.0 * (1 + plan.n_replicates) * size,
        f"The curves of {len(places)} groups in {plan.n_replicates} replicates",
        "take fewer replicates, or a larger bandwidth.",
    )
    return places
