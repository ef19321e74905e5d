"""Rare events: errors that few extreme values make, and events that a group lacks.

A small group in which no rare event happened shows no variance from such events, and
its error is too small however many clusters it has. Where few clusters make most of an
error, its concentration ``Σ u⁴ / (Σ u²)²`` over their influences u is large
(`uneven_errors`). If another side, such as the rest or the other sample, would show
such an error in as few rows as the group has, the variance of the group is at least
that of so few of their rows (`unseen`). Of samples of ten rows 3% lack even an event of
30%, so this holds for fewer than ten effective rows whatever their values: without it
audits of 30 equal groups of 10 to 300 rows named one in 24%. Values of items, whose
errors are wide, have to be more uneven than normal ones.

Each row of a sample of one in t rows moves the mean t times as far: its sums ``Σ u²``,
``Σ u³`` and ``Σ u⁴`` are t, t² and t³ times as large as those of all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._inputs.validation import Array
from .finalize import Finalize, needs_of, quotient
from .leverage import degrees_of_freedom
from .sums import ClusterSums

if TYPE_CHECKING:
    from .group_estimates import GroupEstimates

#: With fewer effective clusters than this an event of one in a thousand is seen at most
#: ten times, so that few clusters may make most of an error.
SMALL = 10_000
# An error is uneven if most of it is of fewer clusters than this: see docs/decide.md.
_FEW_BEHIND = 10
# What is more by less than this is rounding.
_MORE = 1 + 1e-9
_ORDERS = np.array([[1.0], [2.0], [3.0]])

#: What data show of a variance: ``Σ u²``, ``Σ u³`` and ``Σ u⁴`` of the influences, of
#: shape (3, G), the effective number of clusters, and degrees of freedom: influences
#: are uneven if they are less even than normal ones with these.
Side = tuple[Array, Array, Array | float]


def uneven_errors(concentration: Array, df: Array | float) -> Array:
    """Return whether few extreme values make most of each error.

    ``Σ u⁴ / (Σ u²)²`` over what clusters add to the error is more than one in ten, and
    1.5 times what it is of normal values with these degrees of freedom,
    ``3 / (df + 2)``.
    """
    most = np.maximum(1 / _FEW_BEHIND, 1.5 * 3 / (df + 2))
    return np.asarray(concentration > most)


def side_of(variance: Array, n_effective: Array, tails: Array) -> Side:
    """Return a side from its variance and the `ClusterSums.tails` of its influences."""
    third, fourth = tails * np.stack([variance**1.5, variance**2])
    return np.stack([variance, third, fourth]), n_effective, np.inf


def _side_of_metric(sums: ClusterSums, finalize: Finalize) -> Side:
    _, n_effective = degrees_of_freedom(sums, finalize)
    variance = sums.variance(finalize)
    return side_of(variance, n_effective, sums.tails(finalize, variance))


def unseen(*sides: Side) -> list[Array]:
    """Return how much less variance each side shows than rows like another's have.

    The result has for each side the variance that is added, and ``Σ u³`` and ``Σ u⁴``
    of the influences behind all of it, shape (3, G).
    """
    added = []
    for i, (shown, n, df) in enumerate(sides):
        most = shown
        for moments, n_other, _ in (*sides[:i], *sides[i + 1 :]):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                times = n_other / n
                of_few = moments * times**_ORDERS
                uneven = uneven_errors(of_few[2] / of_few[0] ** 2, df)
            rare = uneven & (times > _MORE) & np.isfinite(times)
            most = np.where(rare & (of_few[0] > most[0]), of_few, most)
        more = np.fmax(most[0] - shown[0], 0.0)
        added.append(np.stack([more, *np.nan_to_num(most[1:])]))
    return added


def unseen_of(result: GroupEstimates) -> Array:
    """Return the sums of `unseen` over the sides of each estimate, shape (3, G).

    They are a group and its rest, two independent samples of these, or the two samples
    of items of a difference of means (the members of the group, and all others), where
    one of these has few items.
    """
    metric, sums, sides = result.metric, result.sums, []
    if metric.rest is not None:
        if (result.by_leverage[1] < SMALL).any():
            sides = unseen(*(_side_of_metric(sums, each) for each in metric.rest))
        # The second of two sides is taken off, with both of its own sides if it is a
        # gap, and so on: signs are +, -, -, +, -, +, +, -.
        for number, (_, third, _) in enumerate(sides):
            third *= (-1.0) ** number.bit_count()
    elif sums.rows.member is not None and not metric.share and metric.parts is None:
        needs = needs_of(metric.finalize)
        if len(needs) == 1 and (sums.active(metric.finalize) < SMALL).any():
            moments = sums.moments(metric.finalize)
            _, total, square = sums.size_of(needs[0])
            n_effective = quotient(total**2, square)
            of_strata = moments.swapaxes(0, 1), n_effective, n_effective - 1
            sides = unseen(*zip(*of_strata, strict=True))
    return np.sum([np.zeros((3, len(sums.groups))), *sides], axis=0)


def skewness_of(result: GroupEstimates) -> tuple[Array, Array]:
    """Return the `Estimates.skewness` of values or gaps, and where few events make it.

    Rows of others may show events that a group lacks: the error of a gap has them
    already, and that of a value has not.
    """
    error, others = result.standard_error, result.metric.others
    full, (_, third, fourth) = error**2, result.unseen
    _, n_effective = result.by_leverage
    if others is not None and (n_effective < SMALL).any():
        own = side_of(full, n_effective, result.tails)
        (added, third, fourth), _ = unseen(own, _side_of_metric(result.sums, others))
        full = full + added
    # A variance below that of as few other rows lacks events, be they rare or not.
    rare = uneven_errors(quotient(fourth, full**2), result.df) | (
        full > _MORE * error**2
    )
    return np.nan_to_num(quotient(third, full * error)), rare
