"""Totals over clusters: estimates, the jackknife, sums of parts and pairs of results.

A metric is a smooth function of the column totals. From the table of rows follow the
estimate, its standard error, the bootstrap, the comparison of two models and the merge
of two parts of the data, without a line in any metric.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._inputs.groups import union_of_labels
from .._inputs.validation import Array
from .arrays import cached_by_key
from .entries import Entries, GroupPairs
from .finalize import Beside, Finalize, Totals, needs_of, quotient, slopes_at
from .remainder import MOST_PRODUCTS, Remainder
from .rows import Layout, Rows, matching_rows
from .storage import stored

if TYPE_CHECKING:
    from .resampled import Replicates

# How many numbers the rows that `compact` keeps may hold.
_MOST_LEADING = 1 << 20
#: The jackknife leaves out a row exactly where it has a larger share of the data of a
#: group; to first order elsewhere.
LARGE_SHARE = 1 / 400
# With at most this many entries the influences, which errors, tails and tests each ask
# for, are kept: an eighth of the time of a comparison of 3,000 rows.
_MOST_KEPT = 1 << 14
# In tables of at most this many rows times groups every row is left out exactly.
_FEW_CELLS = 1 << 20
# Changes of an estimate below this share of its terms are rounding.
_NOISE = 16 * np.finfo(float).eps
#: The covariances of more groups are refused.
MOST_COVARIANCES = 1000

#: From how often each cluster counts, shape (B, n_rows), to the column totals of each
#: resample, shape (B, G, C).
Refit = Callable[[Array], Array]


class SupportSizes(NamedTuple):
    """How much data rows have, by stratum and group: arrays of shape (M, G)."""

    n_rows: Array  # that have any
    total: Array
    square: Array  # the sum of squares

    @property
    def n_effective(self) -> Array:
        """The effective number of rows: of equal ones that tell as much."""
        return quotient(self.total**2, self.square)


@stored("ClusterSums")
@dataclass(frozen=True)
class ClusterSums:
    """Totals over clusters with what their variance needs.

    Attributes
    ----------
    groups : tuple of hashable, length G
    by_group : ndarray of shape (G, C)
        Column totals of each group.
    shared : ndarray of shape (D,)
        Totals of the columns that all groups share.
    count : float
        Number of clusters (of items, for ``kind="item"``).
    supports : tuple of callable
        Functions of the columns of a row: how much data the row has of a group, or of
        the rest.
    kind : {"cluster", "item", "two-way"}
        What the rows are, as in `GroupEstimates.variance`.
    rows : Rows
        All rows; after `compact` those with a large share of the data of a group.
    compacted : bool
        Whether `compact` was called, so that the table may lack rows.
    remainder : Remainder or None
        The sums over the other rows.
    replicates : Replicates or None
        After ``compact(n_replicates=...)``, the totals of bootstrap replicates.
    unweighted : tuple of ndarray or None
        Column totals without weights, by group and shared; None: there are no weights.
    refit : callable or None
        Of a metric that fits a curve: how to compute the totals of resampled clusters;
        None after `compact` and in copies.
    adds_up : bool
        Whether parts add up, as no curve is fitted.
    """

    groups: tuple[Hashable, ...]
    by_group: Array
    shared: Array
    count: float
    supports: tuple[Finalize, ...]
    kind: str
    rows: Rows
    compacted: bool = False
    remainder: Remainder | None = None
    replicates: Replicates | None = None
    unweighted: Totals | None = None
    refit: Refit | None = None
    adds_up: bool = True

    @classmethod
    def from_rows(
        cls,
        groups: tuple[Hashable, ...],
        rows: Rows,
        supports: Sequence[Finalize],
        totals: Totals | None = None,
    ) -> Self:
        """Return the sums of a table, whose rows are clusters or, with `totals`, items.

        Parameters
        ----------
        groups : tuple of hashable
        rows : Rows
            The table. Where its rows are items, each pair is in the rows of both items.
        supports : sequence of callable
            Functions of the columns of a row: how much data it has of a group.
        totals : tuple of ndarray or None
            Column totals over the pairs, by group and shared, as the rows of items hold
            each pair twice; None: those of the rows.
        """
        return cls(
            groups,
            *(rows.totals() if totals is None else totals),
            count=float(rows.n_rows),
            supports=tuple(supports),
            kind="cluster" if totals is None else "item",
            rows=replace(rows, unweighted=None),
            unweighted=rows.unweighted,
        )

    @classmethod
    def of_sums(cls, sums: ClusterSums, **others: Any) -> Self:
        """Return sums of this class with the fields of `sums`, or those in `others`."""
        given = {each.name: getattr(sums, each.name) for each in fields(ClusterSums)}
        return cls(**given | others)

    @property
    def totals(self) -> Totals:
        """The column totals by group (G, C) and the shared ones (D,)."""
        return self.by_group, self.shared

    @property
    def ways(self) -> tuple[ClusterSums, ...]:
        """The sums over each kind of independent unit: clusters, or users and items."""
        return (self,)

    def estimate(self, finalize: Finalize) -> Array:
        """Return the metric of the totals."""
        return finalize(self.by_group, self.shared)

    def slopes(self, finalize: Finalize) -> Array:
        """Return derivatives of the metric by own and shared columns, (G, C + D)."""
        return slopes_at(finalize, self.by_group[None], self.shared[None])[0]

    def influence(self, finalize: Finalize) -> Iterable[Entries]:
        """Return the influence of each row on the metric, (Q, G), in blocks of rows.

        That of row q is ``sqrt((n - 1) / n) (θ - θ_(-q))``, where θ_(-q) is the
        estimate without the row and n the number of rows with data of the group in its
        stratum. The sum of their squares is the variance. A small table keeps them.
        """
        many = self.exact_rows.row.size > _MOST_KEPT
        return self._influence(finalize) if many else self._kept_influence(finalize)

    @cached_by_key
    def _kept_influence(self, finalize: Finalize) -> tuple[Entries, ...]:
        """Return the influence of each row, computed once."""
        return tuple(self._influence(finalize))

    def _influence(self, finalize: Finalize) -> Iterator[Entries]:
        """Yield the influence of the rows of a block at a time."""
        estimate, slopes = self.estimate(finalize), self.slopes(finalize)
        shared = np.broadcast_to(self.shared, (len(self.groups), self.shared.size))
        terms = np.nan_to_num(slopes) * np.hstack([self.by_group, shared])
        noise = _NOISE * np.abs(terms).sum(1)
        # A metric of several supports counts the rows of the one that has most.
        number = self.active(finalize).max(axis=0)
        factor = np.sqrt(np.maximum(number - 1, 0) / np.maximum(number, 1))
        # A row moves a group that it has no entry for by its shared columns alone, as
        # one of the last stratum: an item has an entry for each group that it is of.
        right = factor[-1][:, None] * slopes[:, self.by_group.shape[1] :]
        for rows in self.exact_rows.blocks():
            with np.errstate(divide="ignore", invalid="ignore"):
                change = rows.leaving_out(finalize, self.totals)
                np.subtract(estimate.take(rows.group), change, out=change)
                change[np.abs(change) <= noise.take(rows.group)] = 0.0
            change *= factor.take(rows.cell)
            yield rows.entries(change, rows.shared, right)

    def products(self, finalize: Finalize, pairs: GroupPairs | None = None) -> Array:
        """Return sums over rows of products of influences, of pairs of groups.

        Without `pairs` each group is paired with itself.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            blocks = self.influence(finalize)
            total = np.sum([block.products(block, pairs) for block in blocks], axis=0)
            if self.remainder is not None:
                slopes = self._slopes_of_remainder(finalize)
                total = total + self.remainder.scatter.products(slopes, slopes, pairs)
        return np.asarray(total)

    def _slopes_of_remainder(self, finalize: Finalize) -> Array:
        """Return the slopes of the influence of the folded rows, shape (G, C + D).

        They are those of the metric times ``sqrt(n / (n - 1))``: without one of n equal
        rows a mean moves n / (n - 1) times as far as its slope says, and the
        jackknife's own factor is ``sqrt((n - 1) / n)``.
        """
        number = self.active(finalize).max(axis=(0, 1))
        factor = np.sqrt(number / np.maximum(number - 1, 1))
        return np.asarray(factor[:, None] * self.slopes(finalize))

    @cached_by_key
    def variance(self, finalize: Finalize) -> Array:
        """Return the jackknife variance of the metric, shape (G,).

        Over clusters it is ``(Q - 1)/Q Σ_q (θ_(-q) - θ)²``, where Q is the number of
        clusters with data of the group. Over items it is the same sum within the
        members of the group plus that within all others. NaN where `undefined`.
        """
        variance = np.maximum(self.products(finalize), 0.0)  # below 0 is rounding
        variance[~np.isfinite(variance) | self.undefined(finalize)] = np.nan
        return variance

    def covariances(self, finalize: Finalize, first: Array, second: Array) -> Array:
        """Return the covariance of pairs of groups, given by number, shape (m,)."""
        sums, pairs = self.of_pairs(first, second)
        return sums.products(finalize, pairs)

    def of_pairs(self, first: Array, second: Array) -> tuple[Self, GroupPairs]:
        """Return the sums of the groups in these pairs, and pairs of new numbers."""
        used, place = np.unique(np.concatenate([first, second]), return_inverse=True)
        a, b = np.split(place, 2)
        return self.of_groups(used), (a, b)

    def covariance(self, finalize: Finalize) -> Array:
        """Return the covariance whose diagonal is `variance`, shape (G, G)."""
        n_groups = len(self.groups)
        if n_groups > MOST_COVARIANCES:
            raise ValueError(
                f"The covariance of {n_groups} groups with each other is not computed "
                f"for more than {MOST_COVARIANCES}: ask for standard_error, or for the "
                "contrasts that matter."
            )
        covariance = np.diag(self.variance(finalize))
        a, b = np.triu_indices(n_groups, 1)
        covariance[a, b] = covariance[b, a] = self.covariances(finalize, a, b)
        unknown = np.isnan(np.diag(covariance))
        covariance[unknown] = covariance[:, unknown] = np.nan
        return covariance

    @property
    def has_covariance(self) -> bool:
        """Whether covariances of two groups are known; `compact` may drop them."""
        return self.remainder is None or self.remainder.scatter.complete

    @cached_by_key
    def moments(self, finalize: Finalize) -> Array:
        """Return ``Σ u²``, ``Σ u³`` and ``Σ u⁴`` of influences, (3, M, G).

        The influences u are of rows with an entry for the group, by stratum.
        """
        moments = np.zeros((3, self.rows.n_strata, len(self.groups)))
        blocks = zip(self.exact_rows.blocks(), self.influence(finalize), strict=True)
        for rows, influence in blocks:
            power = value = influence.value
            for moment in moments.reshape(3, -1):
                power = power * value
                moment += np.bincount(rows.cell, power, moment.size)
        if self.remainder is not None:
            moments += self.remainder.moments(self._slopes_of_remainder(finalize))
        return moments

    def tails(self, finalize: Finalize, variance: Array | None = None) -> Array:
        """Return ``Σ u³ / (Σ u²)^1.5`` and ``Σ u⁴ / (Σ u²)²`` of influences, (2, G).

        The influences u are of rows. The first is above 0 where few rows make the
        estimate larger. The second is 1 / n where n rows add the same to the variance,
        and near 1 where one row makes most of it. Without `variance` it is that of the
        jackknife; that of a result has more, for events which a group does not show.
        """
        variance = self.variance(finalize) if variance is None else variance
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            _, third, fourth = self.moments(finalize).sum(axis=1)
        return np.stack([quotient(third, variance**1.5), quotient(fourth, variance**2)])

    def undefined(self, finalize: Finalize) -> Array:
        """Return which groups have no standard error, shape (G,)."""
        active = self.active(finalize)
        few = (active.sum(axis=1) < 2).any(axis=0)
        alone = ((active > 0) & (active < 2)).any(axis=(0, 1))
        return few | alone | np.isnan(self.estimate(finalize))

    @cached_by_key
    def sizes_of_support(self, number: int) -> SupportSizes:
        """Return the `Entries.sizes` of one support over all rows."""
        sizes: Array = np.zeros((3, self.rows.n_strata, len(self.groups)))
        for rows in self.rows.blocks():
            strata = rows.support_by_stratum(self.supports[number])
            sizes += np.stack([sample.sizes() for sample in strata], axis=1)
        if (remainder := self.remainder) is not None:
            sizes += remainder.supports[:, number, :, :-1]
        return SupportSizes(*sizes)

    def active(self, finalize: Finalize) -> Array:
        """Return the number of rows behind each support of a metric, (S, M, G)."""
        return np.stack([self.sizes_of_support(k).n_rows for k in needs_of(finalize)])

    def unweighted_support(self, support: Finalize) -> Array:
        """Return the total of a support without weights, such as of pairs, (G,)."""
        return support(*(self.unweighted or self.totals))

    @cached_property
    def exact_rows(self) -> Rows:
        """The rows, where large ones have entries of zeros for the groups they lack.

        In a small table these are all rows. At an entry the jackknife leaves out the
        row exactly. Elsewhere the row changes the group through the shared columns
        only, and to first order: that is accurate where the row has a small share of
        these columns and of every support.
        """
        rows, n_groups = self.rows, len(self.groups)
        if rows.complete or not rows.shared.shape[1]:
            return rows
        if rows.n_rows * n_groups <= _FEW_CELLS:
            return rows.completed()
        share = self._share_of_columns()
        large = _large_rows(share)
        large = large[: max(1, max(_FEW_CELLS, rows.row.size) // n_groups)]
        whole, lacked = rows.take(large), np.ones((large.size, n_groups), dtype=bool)
        lacked[whole.row, whole.group] = False
        place, of_large = np.nonzero(lacked)
        row, group = [large[place]], [of_large]
        # Other rows are large for the groups of whose support they have a large share.
        for number, support in enumerate(self.supports):
            total = self.sizes_of_support(number).total[-1]
            amount, least = rows.of_shared_alone(support), total * LARGE_SHARE
            amount[large] = 0.0
            for i in np.flatnonzero((total > 0) & (least < amount.max(initial=0))):
                known = rows.row[rows.group == i]
                row.append(np.setdiff1d(np.flatnonzero(amount > least[i]), known))
                group.append(np.full(row[-1].size, i))
        return rows.with_zeros_at(np.concatenate(row), np.concatenate(group))

    def _share_of_columns(self) -> Array:
        """Return the largest share of each row in any shared column, shape (Q,)."""
        folded = 0 * self.shared if self.remainder is None else self.remainder.sizes
        share = np.zeros(self.rows.n_rows)
        for column, size in zip(self.rows.shared.T, folded, strict=True):
            amount = np.abs(column)
            if (total := amount.sum() + size) > 0:
                np.maximum(share, amount / total, out=share)
        return share

    def compact(self, replicates: Replicates | None = None, n_results: int = 1) -> Self:
        """Return the same sums without the table, with replicates of it if given.

        Rows with a large share of the data of a group stay as they are, so that errors
        and degrees of freedom are those of the whole. The other rows are folded into
        sums, as the first order is accurate for rows so small. The room for large rows,
        and for products of two groups, is shared by `n_results` results: where it is
        too small, the rows with the largest shares stay. Their labels go.
        """
        rows, share, exact = self.rows, self._share_of_columns(), self.exact_rows
        for number, support in enumerate(self.supports):
            totals = self.sizes_of_support(number).total
            totals = np.where(totals > 0, totals, np.inf)
            strata = exact.support_by_stratum(support)
            for amount, total in zip(strata, totals, strict=True):
                np.maximum.at(share, amount.row, amount.value / total[amount.group])
        large = _large_rows(share)
        # How many numbers each row takes.
        sizes = np.diff(rows.starts) * (rows.n_columns + 2) + rows.shared.shape[1]
        room = _MOST_LEADING // n_results
        most = np.searchsorted(np.cumsum(sizes[large]), room, "right")
        kept, remainder = np.sort(large[: max(1, most)]), self.remainder
        if kept.size < rows.n_rows:
            others = rows.take(np.delete(np.arange(rows.n_rows), kept))
            more = Remainder.of(others, self.supports, MOST_PRODUCTS // n_results)
            remainder = more if remainder is None else remainder + more
        return replace(
            self,
            rows=replace(rows.take(kept), labels=np.arange(kept.size)),
            compacted=True,
            remainder=remainder,
            replicates=replicates or self.replicates,
            refit=None,
        )

    def bootstrap_table(self) -> Rows:
        """Return the table of clusters; a ValueError if there is none to resample."""
        if not self.adds_up and (self.compacted or self.refit is None):
            raise ValueError(
                "The bootstrap fits the curve anew and needs the rows, which compact() "
                "or copying dropped; use method='t', or keep replicates by "
                "compact(n_replicates=...)."
            )
        if self.compacted:
            raise ValueError(
                "The bootstrap needs the table of clusters, which compact() dropped; "
                "use method='t', or keep replicates by compact(n_replicates=...)."
            )
        if self.kind != "cluster":
            raise ValueError(
                "The bootstrap resamples clusters, and this result has items of one "
                "list (variance='item'), or users and items (two columns of cluster=); "
                "use method='t', or pass one column of cluster=."
            )
        return self.rows

    def drawn(self, counts: Array) -> Totals:
        """Return the totals of resamples, by group (B, G, C) and shared (B, D).

        `counts`, of shape (B, Q), says how often each cluster is in each resample. A
        curve is fitted anew to each resample.
        """
        table = self.bootstrap_table()
        if self.refit is None:
            return table.drawn(counts)
        return self.refit(counts), np.zeros((len(counts), 0))

    def resample(self, n_resamples: int, rng: np.random.Generator) -> Iterator[Totals]:
        """Yield totals of resampled clusters, in chunks of resamples.

        Each resample draws as many clusters as there are, with replacement; without
        the table these are all the replicates that `compact` has kept.
        """
        if self.replicates is not None:
            yield self.replicates.by_group, self.replicates.shared
            return
        for counts in self.bootstrap_table().draws(n_resamples, rng):
            yield self.drawn(counts)

    @property
    def layout(self) -> Layout:
        """The present numbers of groups, columns and supports, to be changed."""
        sizes = (*self.by_group.shape, self.shared.size, len(self.supports))
        g, c, d, s = map(np.arange, sizes)
        return Layout(g, g.size, c, c.size, d, d.size, s, s.size)

    def renumbered(
        self,
        to: Layout,
        groups: tuple[Hashable, ...],
        supports: tuple[Finalize, ...] | None = None,
    ) -> Self:
        """Return the sums with groups and columns renumbered.

        They get these labels of groups and, if columns moved, functions of supports.
        """
        by_group, shared = to.moved(self.by_group, self.shared)
        refit, none = self.refit, np.zeros(self.shared.shape)
        return replace(
            self,
            groups=groups,
            by_group=by_group,
            shared=shared,
            supports=self.supports if supports is None else supports,
            unweighted=self.unweighted and to.moved(*self.unweighted),
            rows=self.rows.renumbered(to),
            remainder=self.remainder and self.remainder.renumbered(to),
            replicates=self.replicates and self.replicates.renumbered(to),
            refit=refit and (lambda counts: to.moved(refit(counts), none)[0]),
        )

    def _regrouped(self, places: Array, groups: Sequence[Hashable]) -> Self:
        """Return the sums with groups renumbered to `places`, of these labels."""
        to = replace(self.layout, groups=places, n_groups=len(groups))
        return self.renumbered(to, tuple(groups))

    def of_groups(self, numbers: Array) -> Self:
        """Return the sums of some groups, given by number."""
        if np.array_equal(numbers, np.arange(len(self.groups))):
            return self
        places = np.full(len(self.groups), -1)
        places[numbers] = np.arange(len(numbers))
        return self._regrouped(places, [self.groups[i] for i in numbers])

    def pooled(self) -> Self:
        """Return the sums of all groups as one group."""
        return self._regrouped(np.zeros(len(self.groups), dtype=int), ["overall"])

    def aligned(self, groups: tuple[Hashable, ...]) -> Self:
        """Return the sums of exactly these groups, 0 for a group that was absent."""
        if groups == self.groups:
            return self
        number = {group: i for i, group in enumerate(groups)}
        return self._regrouped(np.array([number[g] for g in self.groups], int), groups)

    def as_independent(self, other: ClusterSums) -> ClusterSums:
        """Return sums over the clusters of both, with the columns of `other` last.

        A comparison of independent samples needs them: a row of one sample has zeros in
        the columns of the other, so that the variances add up.
        """
        first, second = self._with_room_for(other)
        return first + second

    def _with_room_for(self, other: ClusterSums) -> tuple[Self, ClusterSums]:
        """Return both sums with room for the columns of both, those of self first."""
        size = self.by_group.shape[1], self.shared.size
        supports = (
            *(Beside(support, *size) for support in self.supports),
            *(Beside(support, *size, second=True) for support in other.supports),
        )
        one, two = self.layout.with_columns_of(other.layout)
        first = self.renumbered(one, self.groups, supports)
        return first, other.renumbered(two, other.groups, supports)

    def __add__(self, other: ClusterSums) -> ClusterSums:
        """Return the sums of the union of the clusters, groups aligned by label."""
        if self.kind != other.kind:
            raise ValueError(
                f"Results of variance={self.kind!r} and variance={other.kind!r} cannot "
                "be added; pass the same variance= to both."
            )
        if not (self.adds_up and other.adds_up):
            raise ValueError(
                "These results do not add up: each has fitted a curve (or bins) to its "
                "own rows. Measure all rows at once; calibration_error with "
                "method='binned' and the edges as bins= adds up."
            )
        groups = union_of_labels(self.groups, other.groups)
        a, b = self.aligned(groups), other.aligned(groups)
        known = a.replicates or b.replicates
        one, two = (known and known.drawn_from(sums) for sums in (a, b))
        rows, folded = a.rows + b.rows, filter(None, (a.remainder, b.remainder))
        remainders = [some.in_strata(rows.n_strata) for some in folded]
        total = replace(
            a,
            **a._added(b),
            count=a.count + b.count,
            rows=rows,
            remainder=reduce(add, remainders) if remainders else None,
            replicates=None if one is None or two is None else one + two,
        )
        return total.compact() if a.compacted or b.compacted else total

    def _added(self, other: ClusterSums) -> dict[str, Any]:
        """Return the sums of the totals of both, by name of the attribute."""
        unweighted = None
        if self.unweighted or other.unweighted:
            both = (sums.unweighted or sums.totals for sums in (self, other))
            unweighted = tuple(x + y for x, y in zip(*both, strict=True))
        return {
            "by_group": self.by_group + other.by_group,
            "shared": self.shared + other.shared,
            "unweighted": unweighted,
        }

    def join_columns(self, other: ClusterSums) -> Self:
        """Return sums over the same clusters, with the columns of `other` last.

        A paired comparison needs them. Both have their tables.
        """
        if self.kind != other.kind or set(self.groups) != set(other.groups):
            raise ValueError(
                "A paired comparison needs two results of the same groups and "
                f"variance; got groups {self.groups} ({self.kind}) and "
                f"{other.groups} ({other.kind})."
            )
        order = matching_rows(self.rows, other.rows)
        a, b = self._with_room_for(other.aligned(self.groups))
        rows, place = a.rows.joined(b.rows, order), np.argsort(order)
        first, second = a.refit, b.refit
        refit = second and first and (lambda n: first(n) + second(n[:, place]))
        return replace(a, **a._added(b), rows=rows, refit=refit)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which cannot fit a curve anew."""
        return vars(replace(self, refit=None))


def _large_rows(share: Array) -> Array:
    """Return the numbers of the large rows by their shares, the largest first."""
    large = np.flatnonzero(share > LARGE_SHARE)
    return large[np.argsort(-share[large], kind="stable")]
