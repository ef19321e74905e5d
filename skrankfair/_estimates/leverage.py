"""How well a variance is known: degrees of freedom, and events that a group lacks.

A jackknife variance is a quadratic form in the means of clusters. Where one cluster
holds most of the data it rests on that cluster alone, however many there are. The
working model is that of a strong correlation within clusters: the mean of every
cluster has the same variance whatever its size. An estimate is then ``Σ_q h_q m_q``,
``h_q`` the share of the data in cluster q, and its jackknife variance the squared
length of ``B m``, ``B_qr = h_q / (1 - h_q) (1(q = r) - h_r)``. Satterthwaite's
approximation (Bell and McCaffrey 2002) gives it ``tr(M)² / tr(M²)`` degrees of
freedom, ``M = B Bᵀ``: ``Q - 1`` for Q equal clusters. An estimate from several samples
c (two groups of a contrast, a group and the rest, the two samples of an item variance)
has ``M = Σ_c M_c``.

A small group in which no rare event happened shows no variance from such events, and
its error is too small however many clusters it has. Where few clusters make most of an
error, its concentration ``Σ u⁴ / (Σ u²)²`` over their influences u is large
(`uneven_errors`). If another side, such as the rest or the other sample, would show
such an error in as few rows as the group has, the variance of the group is at least
that of so few of their rows (`unseen`). Of samples of ten rows 3% lack even an event of
30%, so this holds for fewer than ten effective rows whatever their values, and of
normal ones for fewer than thirty, where the other side has twice as many: without it
audits of 30 equal groups of 10 to 300 rows named one in 24%. Values of items, whose
errors are wide, have to be more uneven.

What a group lacks is added where the scale of its estimate needs it. Means of rows, and
differences of means, get the variance (`unseen_of`), and their tests of margins the
skewness of such events (`skewness_of`). A share over clusters is as uncertain as one of
so many trials without any event (`lack_events`): here events are counted, as weights
alone make influences uneven. A share of pairs of one list gets the variance that the
items of the other side show (`unseen_of_items`), and a share of the first places has as
many trials as items are due there (`trials_due`).

Each row of a sample of one in t rows moves the mean t times as far: its sums ``Σ u²``,
``Σ u³`` and ``Σ u⁴`` are t, t² and t³ times as large as those of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._inputs.validation import Array
from .arrays import cached_by_key
from .entries import Entries, GroupPairs
from .finalize import Beside, Finalize, MeanOfRatios, needs_of, parts_of, quotient
from .rows import Rows
from .sums import ClusterSums

if TYPE_CHECKING:
    from .group_estimates import GroupEstimates

# A row that leaves a smaller share to the other rows has all data of the sample.
_ROUNDING = 1e-9
# A larger share h counts as this one. The degrees of freedom are close to 1 for both,
# and next to a larger ``1 / (1 - h)⁴`` the other rows would be lost in rounding.
_LARGEST_SHARE = 0.999
# The traces are sums of these products; `_leverages` says what the letters stand for.
_PRODUCTS = tuple(map(tuple, ("dd", "de", "ed", "vu", "uv", "vv", "uu")))

#: With fewer effective clusters than this an event of one in a thousand is seen at most
#: ten times, so that few clusters may make most of an error.
FEW_EVENTS = 10_000
# An error is uneven if most of it is of fewer clusters than this: see docs/decide.md.
_FEW_BEHIND = 10
# With fewer events a share has shown one, which may be a light one.
_SINGLE = 2
# Few rows count as few, whatever their values, if another side has more than this many
# times as many.
_FEWER = 2
# What is more by less than this is rounding.
_MORE = 1 + 1e-9
# A smaller part of an item in the first places, as of ties, is none.
_MOST_OF_NONE = 0.5
# Powers of t, by which the three sums grow where one of t rows is left.
_ORDERS = np.array([[1.0], [2.0], [3.0]])


# Degrees of freedom


@cached_by_key
def degrees_of_freedom(sums: ClusterSums, finalize: Finalize) -> tuple[Array, Array]:
    """Return degrees of freedom and the effective number of clusters, by group.

    For two-way sums, each is the smaller of that over users and that over items.

    Parameters
    ----------
    sums : ClusterSums
    finalize : callable
        The metric; its ``needs`` name the supports whose shares are the leverages.

    Returns
    -------
    df : ndarray of shape (G,)
        NaN for a group without data, or with all data of a sample in one row.
    n_effective : ndarray of shape (G,)
        ``1 / Σ_q h_q²`` of the smallest sample behind the estimate; 0 without data.
    """
    df, effective = [], []
    with np.errstate(divide="ignore", invalid="ignore"):
        for way in sums.ways:
            square, trace, products = _traces(way, finalize)
            df.append(np.maximum(trace**2 / products, 1.0))
            effective.append(np.where(square > 0, 1 / square, np.inf).min(axis=0))
    fewest = np.min(effective, axis=0)
    return np.min(df, axis=0), np.where(np.isfinite(fewest), fewest, 0.0)


def contrast_degrees(
    sums: ClusterSums, finalize: Finalize, first: Array, second: Array
) -> Array:
    """Return degrees of freedom of differences of two groups, given by number."""
    some, pairs = sums.of_pairs(first, second)
    (a, b), df = pairs, []
    with np.errstate(divide="ignore", invalid="ignore"):
        for way in some.ways:
            _, trace, of_groups = _traces(way, finalize)
            _, _, of_pairs = _traces(way, finalize, pairs)
            square = of_groups[a] + of_groups[b] + 2 * of_pairs
            df.append(np.maximum((trace[a] + trace[b]) ** 2 / square, 1.0))
    return np.asarray(np.min(df, axis=0))


def _traces(
    sums: ClusterSums, finalize: Finalize, pairs: GroupPairs | None = None
) -> tuple[Array, Array, Array]:
    """Return ``Σ h²`` by sample and group, and ``tr(M)`` and ``tr(M M')``.

    A sample is a support that the metric needs, in a stratum, and M is the sum over
    samples of the matrices of a group. The shapes are (C, G), (m,) and (m,): the last
    is of pairs of groups, or without `pairs` of each group with itself. The second is
    then the trace of each group; with `pairs` it means nothing.
    """
    needs = needs_of(finalize)
    supports = [sums.sizes_of_support(k).total for k in needs]
    n_strata, n_groups = supports[0].shape
    samples = [(k, s) for k in needs for s in range(n_strata)]
    total = np.concatenate(supports)
    scale = np.where(total > 0, 1 / total, 0.0)
    first, second = (np.arange(n_groups),) * 2 if pairs is None else pairs
    square, own = np.zeros(total.shape), range(len(samples))
    sums_of = np.zeros((7, len(samples), len(samples), first.size))
    for rows in sums.exact_rows.blocks():
        leverages = _leverages(rows, [sums.supports[k] for k in needs], scale)
        for i, a in enumerate(leverages):
            square[i] += a["h"].products(a["h"])
            for j, b in enumerate(leverages):
                if pairs is None and samples[i][1] != samples[j][1]:
                    continue  # no row of a group is in both
                for number, (x, y) in enumerate(_PRODUCTS):
                    sums_of[number, i, j] += a[x].products(b[y], pairs)
    dd, de, ed, vu, uv, vv, uu = sums_of
    # With c = Σ h² an entry of M is ``v_q v_r (1(q = r) - h_q - h_r + c)``. So the
    # trace is ``(1 + c) Σ v² - 2 Σ v² h``; tr(M M') sums products of two such entries.
    trace = (1 + square[:, first]) * vv[own, own] - 2 * vu[own, own]
    c, c_other = square[:, None, first], square[None, :, second]
    products = (1 + c + c_other) * dd - 2 * (de + ed) + 2 * (vu * uv + vv * uu)
    products += c * c_other * vv**2 - 2 * vv * (c_other * uv + c * vu)
    if (remainder := sums.remainder) is not None:
        more = np.concatenate(remainder.supports[2, needs, :, :-1]) * scale**2
        chosen = np.array([k * n_strata + s for k, s in samples])
        fourth = remainder.quartic_products(chosen, pairs)
        left, right = scale[:, None, first], scale[None, :, second]
        square, trace = square + more, trace + more[:, first]
        products = products + fourth * left**2 * right**2
    return square, trace.sum(axis=0), products.sum(axis=(0, 1))


def _leverages(
    rows: Rows, supports: Sequence[Finalize], scale: Array
) -> list[dict[str, Entries]]:
    """Return functions of the leverages h of rows, their shares of the data, by sample.

    They are ``v = h / (1 - h)``, ``u = v h``, ``d = v²`` and ``e = d h``: exactly at
    the entries, and elsewhere h, h², h² and h³, as leverages are small there.
    """
    sizes = [size for support in supports for size in rows.support_by_stratum(support)]
    leverages = []
    for size, factor in zip(sizes, scale, strict=True):
        h = size.value * factor[size.group]
        h = np.where(1 - h > _ROUNDING, np.minimum(h, _LARGEST_SHARE), h)
        v = h / np.where(1 - h > _ROUNDING, 1 - h, np.nan)
        u, d = v * h, v * v
        powers = {"h": (h, 1), "v": (v, 1), "u": (u, 2), "d": (d, 2), "e": (d * h, 3)}
        left, right = size.left, size.right * factor[:, None]
        leverages.append(
            {
                name: replace(size, value=value, left=left**power, right=right**power)
                for name, (value, power) in powers.items()
            }
        )
    return leverages


# Events that a group lacks


class Arm(NamedTuple):
    """What the data of one side of a comparison show of its variance, by group."""

    moments: Array  # ``Σ u²``, ``Σ u³`` and ``Σ u⁴`` of its influences, (3, G)
    n_effective: Array  # the effective number of its clusters, (G,)
    df: Array  # the degrees of freedom of its variance, (G,)

    @classmethod
    def of(cls, variance: Array, n_effective: Array, df: Array, tails: Array) -> Arm:
        """Return a side from its variance and its `ClusterSums.tails`."""
        third, fourth = tails * np.stack([variance**1.5, variance**2])
        return cls(np.stack([variance, third, fourth]), n_effective, df)

    @classmethod
    def of_metric(cls, sums: ClusterSums, finalize: Finalize) -> Arm:
        """Return the side that has the values of a metric."""
        df, n_effective = degrees_of_freedom(sums, finalize)
        variance, tails = sums.variance(finalize), sums.tails(finalize)
        return cls.of(variance, n_effective, df, tails)


def uneven_errors(concentration: Array, df: Array) -> Array:
    """Return whether few extreme values make most of each error.

    ``Σ u⁴ / (Σ u²)²`` over what clusters add to the error is more than one in ten, and
    1.5 times what it is of normal values with these degrees of freedom,
    ``3 / (df + 2)``.
    """
    most = np.maximum(1 / _FEW_BEHIND, 1.5 * 3 / (df + 2))
    return np.asarray(concentration > most)


def unseen(
    *sides: Arm, of_items: bool = False, of_as_many: bool = False
) -> list[Array]:
    """Return how much larger the variance of each side should be, by other sides.

    It should be that of as few rows of another side, where this is larger and made
    mostly by a few of those rows. Other sides count only if they have more rows, unless
    `of_as_many`. The result has for each side this difference, 0 if there is none, and
    ``Σ u³`` and ``Σ u⁴`` of the influences of the rows of the other side, or of the
    side itself if the difference is 0; its shape is (3, G).
    """
    added = []
    for i, side in enumerate(sides):
        shown = most = side.moments
        for other in (*sides[:i], *sides[i + 1 :]):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                times = other.n_effective / side.n_effective
                of_few = other.moments * times**_ORDERS
                few = (times > _FEWER) & (not of_items)  # whatever their values
                normal = np.where(few, np.inf, side.df)
                uneven = uneven_errors(of_few[2] / of_few[0] ** 2, normal)
            rare = uneven & np.isfinite(times) & (of_as_many | (times > _MORE))
            most = np.where(rare & (of_few[0] > most[0]), of_few, most)
        more = np.fmax(most[0] - shown[0], 0.0)
        added.append(np.stack([more, *np.nan_to_num(most[1:])]))
    return added


def unseen_of(result: GroupEstimates) -> Array:
    """Return the sums of `unseen` over the sides of each estimate, shape (3, G).

    They are a group and its rest, two independent samples of these, or the two samples
    of items of a difference of means or shares (the members of the group, and all
    others), where one of these has few items.
    """
    metric, sums, sides = result.metric, result.sums.ways[-1], []
    if metric.sides is not None:
        _, n_effective = degrees_of_freedom(result.sums, metric.finalize)
        if (n_effective < FEW_EVENTS).any():
            sides = unseen(*(Arm.of_metric(result.sums, f) for f in metric.sides))
        # The second of two sides is taken off, with both of its own sides if it is a
        # gap, and so on: signs are +, -, -, +, -, +, +, -.
        for number, (_, third, _) in enumerate(sides):
            third *= (-1.0) ** number.bit_count()
    elif metric.by_chance:
        parts = parts_of(metric.finalize) or (metric.finalize,)
        for powers, part in zip(metric.by_chance, parts, strict=True):
            more = _lacking_by_chance(result.sums, part, powers)
            sides.append(np.stack([more, 0 * more, 0 * more]))
    elif sums.rows.member is not None and not metric.of_shares:
        needs = needs_of(metric.finalize)
        if len(needs) == 1 and (sums.active(metric.finalize) < FEW_EVENTS).any():
            moments = sums.moments(metric.finalize).swapaxes(0, 1)
            size = sums.sizes_of_support(needs[0]).n_effective
            sides = unseen(*map(Arm, moments, size, size - 1), of_items=True)
    return np.sum([np.zeros((3, len(sums.groups))), *sides], axis=0)


def _lacking_by_chance(sums: ClusterSums, part: Finalize, powers: Finalize) -> Array:
    """Return the variance that groups assigned to items by chance would add, (G,).

    An item that recurs among lists has one group in all of them: it adds the slopes of
    its group times its own columns, which are the shared ones, to the value.
    """
    of_items = sums.ways[-1]
    if of_items.kind == "item":
        surplus = of_items.rows.shared @ of_items.slopes(part)[:, : sums.shared.size].T
        n, m = of_items.count, of_items.active(part)[0, 0]
        moments = np.stack([(surplus**power).sum(axis=0) for power in (2, 4)])
        square, fourth = moments * m * (n - m) / max(n * (n - 1), 1)
    else:
        square, fourth = powers(*sums.totals)
    df, _ = degrees_of_freedom(sums, part)
    uneven = uneven_errors(quotient(fourth, square**2), df)
    return np.fmax(square - sums.variance(part), 0.0) * uneven


def unseen_of_items(sums: ClusterSums, shares: Sequence[Finalize]) -> Array:
    """Return the variance that the values of a group and of its rest lack, (2, G).

    Of the pairs of one list: a group of few good items, all of which are at the top by
    chance, seems to be there for certain. Its members are compared with the other items
    in the value of the rest. These also have pairs on the worse side, so that numbers
    of items, and not shares of pairs, say how many of them are as few.
    """
    of_rankings = any(isinstance(of, Beside) for of in shares)  # and not of a rest
    if sums.rows.member is None or of_rankings:
        return np.zeros((2, len(sums.groups)))
    of_samples = []
    for sample, share in enumerate(shares):
        sizes = sums.sizes_of_support(needs_of(share)[0])
        moments, df = sums.moments(share)[:, sample], sizes.n_effective[sample] - 1
        of_samples.append(Arm(moments, sizes.n_rows[sample], df))
    return np.stack([added[0] for added in unseen(*of_samples, of_items=True)])


def lack_events(
    sums: ClusterSums, shares: Sequence[Finalize], groups: Sequence[Any]
) -> list[Array]:
    """Return whether each of two shares lacks events that the other one shows.

    The shares are of a group and of its rest, or of some groups and of others, by
    number. The first lacks events if as few clusters of the second would show more
    variance, and these would have fewer than ten events, or the first has fewer than
    two itself, among the trials that have this variance; the second lacks them likewise
    by the first. The other result is the number of trials that the interval of each
    share may then rest on. A cluster is the geometric mean of one trial and of as many
    as the events of its side show, or as the other side has in a cluster or in so many
    rows, if these are fewer: a group of bursts may show none. Both are of shape (2, m).
    """
    if not (degrees_of_freedom(sums, shares[0])[1] < FEW_EVENTS).any():
        return [np.zeros((2, 1), dtype=bool), np.zeros((2, 1))]
    sides = []
    for of, some in zip(shares, groups, strict=True):
        size = sums.supports[needs_of(of)[0]](*sums.totals)
        number = degrees_of_freedom(sums, of)[1]
        share = np.clip(sums.estimate(of), 0, 1)
        sides.append(np.stack([number, size, share, sums.variance(of)])[:, some])
    number, sizes, share, variance = np.stack(sides, axis=1)
    trials = quotient(share * (1 - share), variance)
    rows = quotient(number, number[::-1])
    events = trials * np.minimum(share, 1 - share)
    few = (events[::-1] * rows < _FEW_BEHIND) | (events < _SINGLE)
    lacking = few & (variance[::-1] > _MORE * variance * rows)
    seen = np.where(variance > 0, trials, number)
    alike = np.fmin(rows, quotient(sizes, sizes[::-1]))
    most = np.fmin(seen, trials[::-1] * alike)
    return [lacking, np.fmax(number, np.sqrt(number * most))]


def trials_due(
    finalize: Finalize, by_group: Array, shared: Array
) -> tuple[Array | float, Array]:
    """Return how many trials a share of the first places is worth, infinite for others.

    The other result is whether a side has too few items there; both are by group, (G,).
    In fair rankings ``N = (Σ d)² / Σ d b`` items are due there, d the number of pairs
    that they bring in a cluster and b that of one item. None is there with probability
    ``exp(-N)``, as of ``N / log(1 + D / E)`` trials of the fair share ``D / (D + E)``,
    where D and E are the pairs due by focal items and by partners. A share near 0 lacks
    focal items, and one near 1 partners, where less than half an item is there.
    """
    if isinstance(finalize, Beside):
        return trials_due(finalize.function, *finalize.own(by_group, shared))
    if not isinstance(finalize, MeanOfRatios) or finalize.due is None:
        return np.inf, np.zeros(by_group.shape[:-1], dtype=bool)
    ratio, number = (of[..., 0] for of in finalize.by_bucket(by_group, shared))
    columns = by_group[..., finalize.due : finalize.due + 4]
    few = np.where(ratio[:, None] > 0.5, columns[:, [2, 3, 0]], columns[:, :3])
    pairs, products, others = few.T
    rare = np.minimum(ratio, 1 - ratio) * number
    lacking = rare * pairs < _MOST_OF_NONE * products
    return quotient(pairs**2, products * np.log1p(quotient(pairs, others))), lacking


def skewness_of(result: GroupEstimates) -> tuple[Array, Array]:
    """Return the `Estimates.skewness`, and which estimates rest on rare events.

    The rest may show rare events that a group lacks. The error of a gap contains these
    events already. That of a value does not, so its skewness accounts for them.
    """
    error, metric = result.standard_error, result.metric
    # Shares, and gaps of shares, have scales that know of events which they lack.
    of_rest = None if metric.of_shares else metric.of_rest
    full, (_, third, fourth) = error**2, result.unseen
    df, n_effective = degrees_of_freedom(result.sums, metric.finalize)
    if of_rest is not None and (n_effective < FEW_EVENTS).any():
        own = Arm.of(full, n_effective, df, result.tails)
        (added, third, fourth), _ = unseen(own, Arm.of_metric(result.sums, of_rest))
        full = full + added
    # A variance below that of as few other rows lacks events, be they rare or not.
    rare = uneven_errors(quotient(fourth, full**2), result.df)
    rare |= full > _MORE * error**2
    return np.nan_to_num(quotient(third, full * error)), rare
