"""The curves of many groups and of their rests: one contrast at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from .._estimates.allocation import check_memory
from .._estimates.read_only import ReadOnlyArrays
from .._inputs.score_rows import ScoreRows
from .._inputs.validation import Array, Groups, sort_labels
from ._group_curves import CurveSums, ScoreRange
from ._kernels import Kernel
from ._local_quadratic import Moments, NullContrast

_OWN, _REST, _ALL = range(3)
_NOBODY, _ONE = np.zeros(0, dtype=int), np.zeros(1, dtype=int)
# Which axes are curves: of `CurveSums.all_scatter` and of `Moments.products`.
_SCATTER, _PRODUCTS = (True, False, False, True), (False, True, False, True)


@dataclass(frozen=True, eq=False)
class RestCurves(ReadOnlyArrays):
    """Kernel sums of many groups, with cross products of a group and its rest only.

    Contrasts of different groups count as independent. Normal vectors are inside of a
    product of symmetric intervals at least as often as if they were (Royen 2014), so
    what holds for all contrasts at once is at worst too wide.

    Attributes
    ----------
    parts : tuple of CurveSums, length G
        Of one group each: its curve, and that of its rest.
    everyone : CurveSums
        Of no group: all rows are the rest of a group that a part of the data lacks.
    """

    parts: tuple[CurveSums, ...]
    everyone: CurveSums

    @classmethod
    def of_rows(
        cls,
        rows: ScoreRows,
        cluster_weight: str,
        grid: Array,
        bandwidth: float,
        kernel: Kernel,
        *,
        moments: bool,
    ) -> RestCurves:
        """Sum the kernel over clusters, of each group over those that it has rows in.

        Of all other clusters the rest of the group has all rows, whose sums are those
        of everyone.
        """
        points, n_groups = grid.size, len(rows.groups)
        check_memory(
            n_groups * 8.0 * points * (16 * points + 256),
            f"The curves of {n_groups} groups and their rests at {points} points",
            "pass a grid= of fewer points, or compare fewer groups at once.",
        )

        summed = partial(
            CurveSums.of_rows,
            cluster_weight=cluster_weight,
            grid=grid,
            bandwidth=bandwidth,
            kernel=kernel,
            moments=moments,
        )
        pooled = replace(rows, groups=Groups.of_everyone(rows.x.size))
        one = summed(pooled, rests=False).take(_NOBODY, _ONE)
        everyone = replace(one, rests=True)
        parts = (_part(rows, group, everyone, summed) for group in range(n_groups))
        return cls(tuple(parts), everyone)

    @classmethod
    def of_sums(cls, sums: CurveSums) -> RestCurves:
        """Return sums of all groups and rests one contrast at a time."""
        size = len(sums.groups)
        one = np.arange(size)[:, None]
        return cls(
            tuple(sums.take(g, np.append(g, size + g)) for g in one),
            sums.take(_NOBODY, np.array([2 * size])),
        )

    def __add__(self, other: object) -> RestCurves:
        """Return the sums over the union of the clusters, groups aligned by label."""
        if isinstance(other, CurveSums):
            other = self.of_sums(other)
        if not isinstance(other, RestCurves):
            return NotImplemented
        groups = self.groups
        if set(groups) != set(other.groups):
            groups = tuple(sort_labels(list(set(groups) | set(other.groups))))
        both = self._by_label(groups), other._by_label(groups)
        return RestCurves(
            tuple(a + b for a, b in zip(*both, strict=True)),
            self.everyone + other.everyone,
        )

    __radd__ = __add__

    def _by_label(self, groups: tuple[Hashable, ...]) -> list[CurveSums]:
        own = dict(zip(self.groups, self.parts, strict=True))
        return [own.get(g) or _without_rows(self.everyone, g) for g in groups]

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups, of length G."""
        return tuple(part.groups[0] for part in self.parts)

    @property
    def rests(self) -> bool:
        """That there are curves of rests."""
        return True

    @property
    def n_curves(self) -> int:
        """The number of curves that are compared: groups, and as many rests."""
        return 2 * len(self.parts)

    @property
    def grid(self) -> Array:
        """The scores at which the curves are compared, shape (J,)."""
        return self.everyone.grid

    @property
    def count(self) -> float:
        """Number of clusters."""
        return self.everyone.count

    @property
    def outcomes(self) -> tuple[float, ...]:
        """The distinct outcomes if they are at most two, else as in `CurveSums`."""
        return self.everyone.outcomes

    @property
    def moments(self) -> object:
        """Whether there are any for local quadratic regression: None if not."""
        return self.everyone.moments

    @cached_property
    def range(self) -> ScoreRange:
        """Where the scores of all groups are."""
        ranges = [part.range for part in self.parts]

        def joined(name: str) -> Array:
            return np.concatenate([getattr(part, name) for part in ranges])

        return replace(
            ranges[0],
            groups=self.groups,
            low=joined("low"),
            high=joined("high"),
            rest_low=joined("rest_low"),
            rest_high=joined("rest_high"),
            rows=joined("rows"),
            bars=joined("bars"),
        )

    def _curves(self, name: str) -> Array:
        """Return an array of all curves: of the groups, then of their rests."""
        values = np.stack([getattr(part, name) for part in self.parts], axis=1)
        return values.reshape(self.n_curves, *values.shape[2:])

    @cached_property
    def active(self) -> Array:
        """Number of clusters with rows of the curve, shape (2 G,)."""
        return self._curves("active")

    @cached_property
    def effective_clusters(self) -> Array:
        """``(Σ_m B_m)² / Σ_m B_m²`` by curve and point, shape (2 G, J)."""
        return self._curves("effective_clusters")

    @cached_property
    def defined(self) -> Array:
        """Where a curve has an estimate and an error, shape (2 G, J), bool."""
        return self._curves("defined")

    @cached_property
    def estimate(self) -> Array:
        """The curves, shape (2 G, J); NaN where they are not defined."""
        return self._curves("estimate")

    @cached_property
    def variance(self) -> Array:
        """Variance of the curves, shape (2 G, J)."""
        return self._curves("variance")

    def of_one(self, curve: int) -> Array:
        """Return the covariance of the points of one curve, shape (J, J)."""
        side, group = divmod(curve, len(self.parts))
        return self.parts[group].of_one(side)

    def spread(self, pairs: Array) -> Array:
        """Return standard errors of the differences from the rests, shape (G, J)."""
        both = np.array([[_OWN, _REST]])
        return np.concatenate([self.parts[g].spread(both) for g in pairs[:, 0]])

    def joint(self, pairs: Array) -> tuple[tuple[Array, ...], Array]:
        """Return the covariance of each group and its rest, and pairs of points."""
        both = np.array([[_OWN, _REST]])
        found = [self.parts[g].joint(both) for g in pairs[:, 0]]
        step = 2 * self.grid.size
        places = [places + step * i for i, (_, places) in enumerate(found)]
        return tuple(block for (block,), _ in found), np.concatenate(places)

    def fit(self, curve: int) -> tuple[Array, Array, Array]:
        """Return what `Moments.fit` does of a curve."""
        side, group = divmod(curve, len(self.parts))
        return self.parts[group].fit(side)

    def contrast(self, first: int, _second: int) -> NullContrast:
        """Return what `Moments.contrast` does of a group and its rest."""
        return self.parts[first].contrast(_OWN, _REST)


def _without_rows(everyone: CurveSums, label: Hashable) -> CurveSums:
    """Return the sums of a group without rows, whose rest is everyone."""
    return everyone.aligned((label,)).take(_ONE, np.array([_OWN, _REST]))


def _part(
    rows: ScoreRows,
    group: int,
    everyone: CurveSums,
    summed: Callable[..., CurveSums],
) -> CurveSums:
    """Return the sums of a group and its rest."""
    member, label = rows.groups.mask(group), rows.groups.labels[group]
    if not member.any():
        return _without_rows(everyone, label)
    near, codes = member, rows.cluster_codes
    if codes is not None:
        near = (np.bincount(codes, member) > 0)[codes]
    alone = replace(rows, groups=Groups((label,), member[:, None]))
    own = summed(alone.take(np.flatnonzero(near)), rests=True)
    others = rows.x[~member]
    scores = replace(
        own.range,
        rest_low=np.array([others.min(initial=np.inf)]),
        rest_high=np.array([others.max(initial=-np.inf)]),
        all_low=everyone.range.all_low,
        all_high=everyone.range.all_high,
    )
    full = replace(
        own,
        count=everyone.count,
        active=_completed(own.active, everyone.active),
        all_totals=_completed(own.all_totals, everyone.all_totals),
        all_scatter=_completed(own.all_scatter, everyone.all_scatter, _SCATTER),
        moments=own.moments
        and everyone.moments
        and Moments(
            _completed(own.moments.totals, everyone.moments.totals),
            _completed(own.moments.products, everyone.moments.products, _PRODUCTS),
            _completed(own.moments.squares, everyone.moments.squares),
            _completed(own.moments.second, everyone.moments.second),
        ),
        outcomes=everyone.outcomes,
        range=scores,
    )
    return full.take(_ONE, np.array([_OWN, _REST]))


def _completed(
    values: Array, everyone: Array, axes: tuple[bool, ...] = (True,)
) -> Array:
    """Return sums in which the rest has the clusters without rows of the group too.

    `axes` says which of the first axes are curves.
    """

    def at(curve: int) -> tuple[int | slice, ...]:
        return tuple(curve if of_curves else slice(None) for of_curves in axes)

    full = values.copy()
    full[at(_REST)] += everyone[at(0)] - values[at(_ALL)]
    return full
