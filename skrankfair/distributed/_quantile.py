"""Quantiles of all data in a few passes: calipers, and edges of engagement.

The caliper of matched pairs holds a share of all pairs. Each pass counts the pairs up
to two thresholds in every part and looks at those between: at all of them where they
are few, else at some. Counts add up, so the result is exact: the smallest difference of
two scores up to which there are enough pairs. The edges of the strata of engagement are
quantiles of the items that can be preferred, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from .._estimates import storage
from .._estimates.metric import collected_warnings
from .._inputs.ranking import ranked_data
from .._inputs.validation import Array, check_number
from ..metrics._pairs.score_ranges import (
    ROUNDED,
    Matching,
    PairWeight,
    n_pairs_of,
    weighted_rank,
)
from ..metrics._pairwise import preferred_engagement
from ._plan import AnyMetrics, MeasurePlan, is_set, parameters_of, total_of

# Pairs of a group and part that are listed, or looked at where they are more.
_LISTED, _SAMPLED = 1 << 14, 1 << 12
# A rank that the first of all values has.
_SMALLEST = np.finfo(float).tiny

#: A metric by name, and a group or the level of an edge.
Place: TypeAlias = tuple[str, Hashable]


@storage.stored("Distances")
@dataclass(frozen=True)
class Distances:
    """The differences of scores of the possible pairs of a group, or engagements.

    Attributes
    ----------
    total, below, reached : float
        Weight of all pairs (or items), and of those up to the lower and the upper
        threshold.
    values, mass : ndarray of shape (m,)
        Differences between the thresholds, increasing, with the weight of each.
    size : int
        The number of pairs that these are the differences of.
    complete : bool
        Whether they are all; if not, they are a sample of the same weight.
    weighted : bool
        Whether pairs have weights of their own.
    """

    total: float
    below: float
    reached: float
    values: Array
    mass: Array
    size: int
    complete: bool
    weighted: bool

    @classmethod
    def of(
        cls, matching: Matching, weight: PairWeight, bounds: tuple[float, float]
    ) -> Distances:
        """Return those of the pairs of one part."""
        weight = weight.of(matching.rows, matching.partner_rows)
        inner, outer = (matching.windows(bound) for bound in bounds)
        below, reached = weight.total(inner), weight.total(outer)
        complete = n_pairs_of(outer) - n_pairs_of(inner) <= _LISTED
        if complete:
            rows, places, values = matching.between(outer, inner)
        else:
            rows, places, values = matching.sampled(outer, inner, _SAMPLED)
        mass = weight.of_pairs(rows, places)
        mass = np.ones(values.size) if mass is None else mass
        if not complete:
            mass = mass * ((reached - below) / mass.sum())
        total = weight.total(matching.outermost)
        parts = _together(values, mass)
        return cls(
            *(total, below, reached, *parts, values.size, complete, weight.given)
        )

    @classmethod
    def of_values(
        cls, values: Array, weight: Array | None, bounds: tuple[float, float]
    ) -> Distances:
        """Return those of values with their weights, None for one each."""
        order = np.argsort(values)
        values, mass = values[order], np.ones(values.size)
        if weight is not None:
            mass = weight[order]
        low, high = np.searchsorted(values, bounds, side="right").tolist()
        below, between = float(mass[:low].sum()), slice(low, high)
        complete = high - low <= _LISTED
        reached = below + float(mass[between].sum())
        values, some = values[between], mass[between]
        if not complete:
            values = values[np.linspace(0, values.size - 1, _SAMPLED).astype(np.int64)]
            some = np.full(values.size, (reached - below) / values.size)
        parts = _together(values, some)
        numbers = float(mass.sum()), below, reached
        return cls(*numbers, *parts, values.size, complete, weight is not None)

    def __add__(self, other: Distances) -> Distances:
        """Return those of the pairs of both."""
        both = np.append(self.values, other.values), np.append(self.mass, other.mass)
        return Distances(
            self.total + other.total,
            self.below + other.below,
            self.reached + other.reached,
            *_together(*both),
            self.size + other.size,
            self.complete and other.complete,
            self.weighted or other.weighted,
        )

    def rank(self, quantile: float) -> float:
        """Return the weight of the pairs that are wanted."""
        rank = min(quantile * self.total, self.total)
        return max(rank * ROUNDED if self.weighted else rank, _SMALLEST)


def _together(values: Array, mass: Array) -> tuple[Array, Array]:
    """Return values in order, each once, with their weights."""
    values, code = np.unique(values, return_inverse=True)
    return values, np.bincount(code, mass, minlength=values.size)


@dataclass(frozen=True)
class Search:
    """A threshold that is known to be above `low`, and at most `high`.

    Attributes
    ----------
    low, high : float
    asked : tuple of float
        The two thresholds of the next pass, within these.
    found : float or None
    """

    low: float = -1.0
    high: float = float("inf")
    asked: tuple[float, float] = (-1.0, float("inf"))
    found: float | None = None

    def after(self, seen: Distances, quantile: float) -> Search:
        """Return what is known after a pass."""
        rank, (low, high) = seen.rank(quantile), self.asked
        if seen.total == 0:
            return replace(self, found=float("nan"))
        if seen.below >= rank:
            return Search(self.low, low, (self.low, low))
        if seen.reached < rank:
            return Search(high, self.high, (high, self.high))
        if np.nextafter(low, np.inf) == high:
            return replace(self, found=high)
        if seen.complete:
            found = weighted_rank(seen.values, seen.mass, rank - seen.below)
            return replace(self, found=found)
        return Search(low, high, _bracket(seen, rank, self.asked))


def _bracket(
    seen: Distances, rank: float, asked: tuple[float, float]
) -> tuple[float, float]:
    """Return two thresholds closely around the wanted one, from a sample."""
    cumulated = np.cumsum(seen.mass) / seen.mass.sum()
    share = (rank - seen.below) / (seen.reached - seen.below)
    margin = 2 * np.sqrt(share * (1 - share) / seen.size) + 4 / seen.size
    ends = np.searchsorted(cumulated, [share - margin, share, share + margin])
    low, middle, high = seen.values[np.clip(ends, 0, seen.values.size - 1)]
    if high - low >= (min(asked[1], seen.values[-1]) - seen.values[0]) / 2:
        low = high = middle  # a few heavy differences: look on both sides of one
    return float(np.nextafter(low, -np.inf)), float(high)


@dataclass(frozen=True)
class QuantilePlan(MeasurePlan):
    """A pass over the data that looks for calipers.

    Attributes
    ----------
    bounds : dict of (str, hashable) to tuple of float
        The two thresholds of each metric and group, None where the caliper is found;
        of others all pairs are looked at.
    """

    bounds: Mapping[Place, tuple[float, float] | None] | None = None

    def measure(self, frame: Any) -> Mapping[Any, Any]:
        """Return the distances of one part of the data, by metric and group."""
        values, found = self.values(frame), {}
        for name, metric in self.metrics.items():
            given = {k: v for k, v in values.items() if k in parameters_of(metric)}
            missing = _options(metric).get("missing", "raise")
            with collected_warnings():
                data = ranked_data(**given, missing=missing)
            weight = PairWeight(data.pair_weight, data.item_weight)
            direction = _options(metric).get("direction", "below")
            for group, label in enumerate(data.groups.labels):
                member = data.groups.mask(group)
                bounds = (self.bounds or {}).get((name, label), Search().asked)
                if bounds is None:
                    continue
                matching = Matching(data.ranking, member, ~member, direction)
                found[name, label] = Distances.of(matching, weight, bounds)
        return found

    def to_text(self, results: Mapping[Any, Any]) -> str:
        """Return results as text, without a pickle."""
        return storage.to_text({"found": dict(results)})

    def from_text(self, text: str) -> Mapping[Any, Any]:
        """Return the results that `to_text` wrote."""
        found: Mapping[Any, Any] = storage.from_text(text, ("found",))["found"]
        return found


@dataclass(frozen=True)
class EdgePlan(QuantilePlan):
    """A pass over the data that looks for edges of engagement."""

    def measure(self, frame: Any) -> Mapping[Any, Any]:
        """Return the engagement of one part of the data, by metric and level."""
        values, found = self.values(frame), {}
        for name, metric in self.metrics.items():
            given = {k: v for k, v in values.items() if k in parameters_of(metric)}
            engagement = given.pop("engagement")
            data = ranked_data(given.pop("y_true"), given.pop("y_score"), **given)
            level, preferred = preferred_engagement(data, engagement)
            weight = data.pair_weight
            weight = None if weight is None else weight[preferred]
            for share in _levels(metric):
                bounds = (self.bounds or {}).get((name, share), ANYWHERE.asked)
                if bounds is not None:
                    found[name, share] = Distances.of_values(
                        level[preferred], weight, bounds
                    )
        return found


ANYWHERE = Search(-np.inf, np.inf, (-np.inf, np.inf))


def _levels(metric: Callable[..., Any]) -> list[float]:
    """Return the levels of the quantiles that are edges."""
    bins = _bins(metric)
    check_number(bins, "bins", 1, 1000, integer=True)
    return np.linspace(0, 1, bins + 1).tolist()


def _bins(metric: Callable[..., Any]) -> Any:
    return signature(metric).parameters["bins"].default


def _options(metric: Callable[..., Any]) -> Mapping[str, Any]:
    return metric.keywords if isinstance(metric, partial) else {}


def searched(
    task: QuantilePlan,
    data: Any,
    run: Callable[[Any, MeasurePlan], Any],
    first: Search,
    share_of: Callable[[Place], float],
) -> dict[Place, float]:
    """Return the quantile at every place, by passes of a task over the data."""
    known: dict[Place, Search] = {}
    while not known or any(search.found is None for search in known.values()):
        bounds = {
            place: search.asked if search.found is None else None
            for place, search in known.items()
        }
        task = replace(task, bounds=bounds)
        for place, seen in total_of(task, run(data, task)).items():
            search = known.get(place, first)
            known[place] = search.after(seen, share_of(place))
    return {
        place: float("nan") if search.found is None else search.found
        for place, search in known.items()
    }


def check_passes(data: Any, advice: str) -> None:
    """Raise a ValueError for data that can be read only once."""
    if type(data).__name__ == "RecordBatchReader":
        raise ValueError(
            "data can be read only once, and what is chosen from all data takes "
            f"several passes; {advice} a table."
        )


def with_edges(
    plan: MeasurePlan, data: Any, run: Callable[[Any, MeasurePlan], Any]
) -> MeasurePlan:
    """Return the plan with the edges of engagement that all data have in memory.

    The arguments are those of `with_thresholds`.
    """

    def fixed(wanted: AnyMetrics) -> AnyMetrics:
        check_passes(data, f"pass bins= to {', '.join(wanted)}, or")
        shares: dict[Place, float] = {
            (name, level): level for name in wanted for level in _levels(wanted[name])
        }
        task = EdgePlan(wanted, plan.columns)
        found = searched(task, data, run, ANYWHERE, shares.__getitem__)
        chosen = {}
        for name, metric in wanted.items():
            edges = np.unique([found[name, level] for level in _levels(metric)])
            if np.isnan(edges).any():  # nothing is preferred to anything
                edges = np.array([-np.inf, np.inf])
            edges = edges if edges.size > 1 else np.repeat(edges, 2)
            chosen[name] = partial(metric, bins=tuple(edges.tolist()))
        return chosen

    return plan.with_fixed(
        lambda metric: (
            "engagement" in plan.columns
            and "bins" in signature(metric).parameters
            and np.ndim(_bins(metric)) == 0
        ),
        fixed,
    )


def with_thresholds(
    plan: MeasurePlan, data: Any, run: Callable[[Any, MeasurePlan], Any]
) -> MeasurePlan:
    """Return the plan with the calipers that its metrics would choose in memory.

    Parameters
    ----------
    plan : MeasurePlan
    data : path, list of paths, frame, or table of an engine
    run : callable
        From data and a plan to the results of all parts.
    """

    def fixed(wanted: AnyMetrics) -> AnyMetrics:
        check_passes(data, f"pass epsilon= to {', '.join(wanted)}, or")
        shares = {name: _quantile(metric) for name, metric in wanted.items()}
        task = QuantilePlan(wanted, plan.columns)
        found = searched(task, data, run, Search(), lambda place: shares[place[0]])
        chosen: dict[str, dict[Hashable, float]] = {name: {} for name in wanted}
        for (name, label), epsilon in found.items():
            chosen[name][label] = epsilon
        return {
            name: partial(metric, epsilon=chosen[name], quantile=None)
            for name, metric in wanted.items()
        }

    return plan.with_fixed(
        lambda metric: (
            "quantile" in signature(metric).parameters and not is_set(metric, "epsilon")
        ),
        fixed,
    )


def _quantile(metric: Callable[..., Any]) -> float:
    quantile = _options(metric).get("quantile")
    quantile = 0.01 if quantile is None else quantile
    check_number(quantile, "quantile", 0, 1, inclusive=(False, True))
    return float(quantile)
