"""The one mechanism: a table of sums, one row per cluster of dependent data.

A metric is a smooth function of the column totals. From the table follow the estimate,
its standard error, the bootstrap, the comparison of two models and the merge of two
parts of the data, without a line in any metric.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._inputs.validation import Array, sort_labels
from .allocation import check_memory
from .finalize import slopes_at, supports_of_both
from .folded import (
    Folded,
    Products,
    amounts,
    gradient_of,
    kept_share,
    summed_amounts,
)
from .gaps import LARGE_SHARE, large_gaps, shared_share
from .leverage import list_errors
from .listed import ListProducts, ListTable, expanded
from .low_rank import Columns, low_rank
from .merge import added, join, same_rows, stack
from .places import ColumnPlaces
from .replicates import Replicates, replicates_of_both
from .storage import stored
from .table import (
    AnyTable,
    Finalize,
    GroupRows,
    SparseTable,
    Table,
    count_chunks,
    draw_counts,
    needs_of,
)

# Numbers of a block of rows.
_BLOCK = 1 << 20
# ColumnPlaces of a block that have no entry.
_GAPS = 1 << 17
# Rounding of a left-out estimate, in units of its terms.
_NOISE = 16 * np.finfo(float).eps


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
        Column totals that belong to no group.
    count : float
        Number of clusters (of items, for ``kind="item"``), with their weights.
    supports : tuple of callable
        What each says of a row's columns is how much data a group has there: its own,
        the rest's.
    kind : {"cluster", "item"}
    table : Table, SparseTable or None
        All rows; None after `compact`.
    leading : Table, SparseTable or None
        After `compact`, the rows with a large share of the data of a group.
    folded : Folded or None
        The sums over the other rows.
    pairs : Products or None
        Of items: the cross products of the columns over pairs, which the rows of both
        items count.
    replicates : Replicates or None
        After ``compact(n_replicates=...)``, the totals of bootstrap replicates.
    """

    groups: tuple[Hashable, ...]
    by_group: Array
    shared: Array
    count: float
    supports: tuple[Finalize, ...]
    kind: str
    table: AnyTable | None
    leading: AnyTable | None = None
    folded: Folded | None = None
    pairs: Products | ListProducts | None = None
    replicates: Replicates | None = None

    @classmethod
    def from_clusters(
        cls,
        groups: tuple[Hashable, ...],
        table: AnyTable,
        supports: Sequence[Finalize],
    ) -> ClusterSums:
        """Sum a table whose rows are independent clusters."""
        weight = table.frequency
        return cls(
            groups=groups,
            by_group=table.total(),
            shared=weight @ table.shared,
            count=float(weight.sum()),
            supports=tuple(supports),
            kind="cluster",
            table=table,
        )

    @classmethod
    def from_items(
        cls,
        groups: tuple[Hashable, ...],
        table: AnyTable,
        pairs: Array | Products | ListProducts,
        totals: tuple[Array, Array],
        supports: Sequence[Finalize],
    ) -> ClusterSums:
        """Sum a table whose rows are items, each pair in the rows of both its items.

        Parameters
        ----------
        groups : tuple of hashable
        table : Table or SparseTable
        pairs : ndarray of shape (K, K), Products or ListProducts
            Cross products of the columns over the pairs of two rows.
        totals : tuple of ndarray
            Column totals over the pairs, by group and shared.
        supports : sequence of callable
            How much data of a group an item's columns show.
        """
        if isinstance(pairs, np.ndarray):
            pairs = Products(pairs, len(groups), totals[1].size)
        return cls(
            groups=groups,
            by_group=totals[0],
            shared=totals[1],
            count=float(table.frequency.sum()),
            supports=tuple(supports),
            kind="item",
            table=table,
            pairs=pairs,
        )

    @property
    def rows(self) -> AnyTable:
        """The rows that are there: all of them, or the leading ones."""
        rows = self.leading if self.table is None else self.table
        if rows is None:
            return Table(
                np.zeros((0, *self.by_group.shape)),
                np.zeros((0, self.shared.size)),
                None,
                np.zeros(0),
            )
        return rows

    @property
    def totals(self) -> Array:
        """All column totals: by group, then shared, shape (K,)."""
        return np.concatenate([self.by_group.ravel(), self.shared])

    @property
    def support(self) -> Array:
        """Sums of the supports by stratum and group, shape (S, M, G)."""
        return self._support_and_active[0]

    @property
    def active(self) -> Array:
        """Number of rows behind each support, shape (S, M, G)."""
        return self._support_and_active[1]

    @cached_property
    def _support_and_active(self) -> tuple[Array, Array]:
        support, active = summed_amounts(self.rows, self.supports, (1, 0))
        if self.folded is not None:
            support = support + self.folded.support[..., :-1]
            active = active + self.folded.active[..., :-1]
        return support, 1.0 * active

    def cells(self) -> Iterator[Table]:
        """Yield the rows that are there, some at a time.

        Of a sparse table each entry is a row of its own, and so is each place without
        one whose row is not small.
        """
        rows = self.rows
        yield from rows.cells(_BLOCK)
        if isinstance(rows, SparseTable):
            row, group = self._large_gaps
            for start in range(0, row.size, _GAPS):
                some = slice(start, start + _GAPS)
                yield rows.empty_cells(row[some], group[some])

    @cached_property
    def _large_gaps(self) -> tuple[Array, Array]:
        if not isinstance(self.rows, SparseTable):
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        return large_gaps(self.rows, self.supports, self.support, self.folded)

    @property
    def evidence(self) -> ClusterSums:
        """The sums whose rows say how the data are spread over the clusters."""
        return self

    def compact(self, n_replicates: int = 0, random_state: int = 0) -> Self:
        """Return the same sums without the table, with so many replicates.

        Rows with a large share of the data of a group stay as they are, so that errors
        and degrees of freedom are those of the whole; the others are folded into
        sums, where each is small enough for its first order. Of many groups the rows
        with the largest shares stay, as many as there is room for.
        """
        replicates = self.replicates
        if n_replicates:
            table = self.bootstrap_table()
            replicates = Replicates.of_table(table, n_replicates, random_state)
        return replace(self.compact_among(1), replicates=replicates)

    def compact_among(self, n_results: int) -> Self:
        """Return the same sums without the table, as one of several that are kept.

        They share the room for rows, and several have no covariances of many groups.
        """
        if isinstance(self.table, ListTable):
            return expanded(self).compact_among(n_results)
        rows = self.rows
        share = self._largest_share()
        first = np.argsort(-share, kind="stable")
        first = first[share[first] > LARGE_SHARE]
        room = np.cumsum(rows.sizes()[first])
        number = np.searchsorted(room, _BLOCK // n_results, "right")
        leading = np.sort(first[: max(1, number)])
        folded = self.folded
        if leading.size < rows.n_rows:
            others = np.delete(np.arange(rows.n_rows), leading)
            more = Folded.of_rows(rows.take(others), self.supports, n_results > 1)
            folded = more if folded is None else folded + more
        kept = rows.take(leading)
        return replace(self, table=None, leading=kept, folded=folded)

    def _largest_share(self) -> Array:
        """Return the largest share of each row in any support or shared column."""
        share = shared_share(self.rows, self.folded)
        with np.errstate(divide="ignore"):
            scale = np.where(self.support > 0, 1 / self.support, 0.0)
        start = 0
        for cells in self.cells():
            own = amounts(cells, self.supports) * cells.last(scale)
            largest = own.max(axis=(1, 2, 3), initial=0.0)
            if isinstance(cells, GroupRows):
                np.maximum.at(share, cells.row, largest)
            else:
                part = share[start : start + cells.n_rows]
                np.maximum(part, largest, out=part)
                start += cells.n_rows
        return share

    def estimate(self, finalize: Finalize) -> Array:
        """Return the metric of the totals."""
        return finalize(self.by_group, self.shared)

    def slopes(self, finalize: Finalize) -> Array:
        """Return derivatives by a group's own columns and the shared, (G, C + D)."""
        return slopes_at(finalize, self.by_group[None], self.shared[None])[0]

    def gradient(self, finalize: Finalize) -> Array:
        """Return the derivatives of the metric, shape (G, K), by a complex step."""
        return gradient_of(self.slopes(finalize), self.by_group.shape[1])

    def _factor(self, finalize: Finalize) -> Array:
        """Return the root of (n - 1) / n by stratum and group, shape (M, G)."""
        number = self.active[list(needs_of(finalize))].max(axis=0)
        factor: Array = np.sqrt(np.maximum(number - 1, 0) / np.maximum(number, 1))
        return factor

    def _folded_slopes(self, finalize: Finalize) -> Array:
        """Return `slopes` times the root of n / (n - 1), shape (G, C + D).

        So much more than to first order is what a folded row adds: without one of n
        equal rows a mean moves by 1 / (n - 1) and not 1 / n of its distance, of which
        `_factor` leaves this.
        """
        number = self.active[list(needs_of(finalize))].max(axis=(0, 1))
        factor = np.sqrt(number / np.maximum(number - 1, 1))
        return factor[:, None] * self.slopes(finalize)

    def influence(self, finalize: Finalize) -> Iterator[tuple[Table, Array]]:
        """Yield what each row adds to the jackknife, block by block of `cells`.

        ``sqrt(w_q (n - 1) / n) (θ_(-q) - θ)``, of shape (n, G) or, of entries, (n, 1):
        the estimate without row q minus that of all, n the number of rows with data of
        the group in the stratum of q, w_q how often the row counts; a row that counts
        less than once is left out whole.
        """
        estimate = self.estimate(finalize)
        common = np.broadcast_to(self.shared, (len(self.groups), self.shared.size))
        terms = np.hstack([self.by_group, common])
        slopes = np.nan_to_num(self.slopes(finalize))
        noise = _NOISE * np.abs(slopes * terms).sum(1)
        factor, every = self._factor(finalize), self.cells()
        if isinstance(self.rows, ListTable):
            every = self.rows.cells(_BLOCK, slopes)
        for cells in every:
            by_group, shared, weight = cells.by_group, cells.shared, cells.weight
            if weight is not None:
                once = np.minimum(weight, 1.0)
                by_group = once[:, None, None] * by_group
                shared = once[:, None] * shared
            with np.errstate(divide="ignore", invalid="ignore"):
                total = cells.at(self.by_group)
                change = finalize(total - by_group, self.shared - shared)
                change -= cells.at(estimate)
                np.copyto(change, 0.0, where=np.abs(change) <= cells.at(noise))
            if weight is not None:
                times = np.zeros(weight.shape)
                np.divide(np.sqrt(weight), once, out=times, where=once > 0)
                change *= times[:, None]
            if cells.member is None:
                change *= cells.at(factor[0])
            else:
                # Several times as quick as a choice of one or the other.
                more = cells.at(factor[0]) - cells.at(factor[1])
                change *= cells.member * more + cells.at(factor[1])
            if weight is not None:
                change[weight == 0] = 0.0
            yield cells, change

    def _by_shared(self, finalize: Finalize) -> tuple[Array, Array]:
        """Return what rows without data of a group add to it, to first order.

        Factors of rows (n_rows, D) and of groups (G, D), whose product it is.
        """
        rows, slopes = self.rows, self.slopes(finalize)[:, self.by_group.shape[1] :]
        left = rows.shared
        if rows.weight is not None:
            left = left * np.sqrt(rows.weight)[:, None]
        return left, -self._factor(finalize)[-1][:, None] * slopes

    def _columns(self, finalize: Finalize) -> Columns:
        """Return the influence of all rows of a sparse table."""
        none = np.zeros(0, dtype=int)
        parts = [(none, none, np.zeros(0))]
        for cells, change in self.influence(finalize):
            if isinstance(cells, GroupRows):
                parts.append((cells.row, cells.group, change[:, 0]))
        row, group, value = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Columns(row, group, value, *self._by_shared(finalize))

    def covariance(self, finalize: Finalize) -> Array:
        """Return the jackknife covariance of the metric, shape (G, G).

        Over clusters ``(Q - 1)/Q Σ_q (θ_(-q) - θ)(θ_(-q) - θ)ᵀ``, where Q are the
        clusters with data of the group. Over items the same within the members of the
        group and within all others, two samples, minus the products of pairs, which
        the rows of both items count: ``J · Σ_pairs x xᵀ · Jᵀ``, at most one half of
        the variance. NaN where `undefined`.
        """
        n_groups = len(self.groups)
        check_memory(
            16.0 * n_groups**2,
            f"The covariance of {n_groups} groups with each other",
            "ask for standard_error, or for the contrasts that matter.",
        )
        with np.errstate(invalid="ignore", over="ignore"):
            covariance = self._all_products(finalize)
            slopes = self.slopes(finalize)
            if self.folded is not None:
                folded = self._folded_slopes(finalize)
                covariance += self.folded.scatter.form_of_all(folded)
            if self.pairs is not None:
                products = self.pairs.form_of_all(slopes)
                least = np.sqrt(kept_share(np.diag(covariance), np.diag(products)))
                covariance -= least[:, None] * products * least
        unknown = ~np.isfinite(np.diag(covariance)) | self.undefined(finalize)
        covariance[unknown] = covariance[:, unknown] = np.nan
        return covariance

    def _all_products(self, finalize: Finalize) -> Array:
        """Return the covariance of the rows that are there."""
        n_groups = len(self.groups)
        covariance = np.zeros((n_groups, n_groups))
        if not isinstance(self.rows, SparseTable):
            for _, change in expanded(self).influence(finalize):
                covariance += change.T @ change
            return covariance
        return self._columns(finalize).all_products()

    def variance(self, finalize: Finalize) -> Array:
        """Return the diagonal of `covariance`, shape (G,), without the rest of it."""
        if isinstance(self.table, ListTable):
            return list_errors(self, finalize).variance
        return self.variance_of_rows(finalize)

    def variance_of_rows(self, finalize: Finalize) -> Array:
        """Return `variance` from the rows, all groups at once."""
        every = np.arange(len(self.groups))
        with np.errstate(invalid="ignore", over="ignore"):
            variance = self._squares(finalize)
            if self.pairs is not None:
                products = self.pairs.form(self.slopes(finalize), every, every)
                variance -= kept_share(variance, products) * products
        variance[~np.isfinite(variance) | self.undefined(finalize)] = np.nan
        return variance

    def _squares(self, finalize: Finalize) -> Array:
        """Return the variance before the products of pairs are taken off."""
        variance, every = np.zeros(len(self.groups)), np.arange(len(self.groups))
        gaps = isinstance(self.rows, SparseTable) and self.shared.size > 0
        if gaps:
            left, right = self._by_shared(finalize)
            gaps = bool(right.any())
        if gaps:
            variance += low_rank(right @ (left.T @ left), right)
        for cells, change in self.influence(finalize):
            variance += cells.dot(change, change)
            if gaps and isinstance(cells, GroupRows):
                low = low_rank(left[cells.row], right[cells.group])[:, None]
                variance -= cells.dot(low, low)
        if self.folded is not None:
            folded = self.folded.scatter
            variance += folded.form(self._folded_slopes(finalize), every, every)
        return np.maximum(variance, 0.0)  # less is rounding

    def concentration(self, finalize: Finalize) -> Array:
        """Return how much of the variance few rows make, ``Σ u⁴ / (Σ u²)²``, by group.

        One in n where n rows add the same; less than there is where rows are folded.
        """
        fourth = np.zeros(len(self.groups))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for cells, change in self.influence(finalize):
                square = change**2
                if cells.weight is not None:  # as many rows of their own
                    square /= np.sqrt(np.maximum(cells.weight, 1.0))[:, None]
                fourth += cells.dot(square, square)
            return np.asarray(fourth / self._squares(finalize) ** 2)

    @property
    def has_covariance(self) -> bool:
        """Whether the covariance of two groups is known, and not folded away."""
        return self.folded is None or self.folded.scatter.complete

    def covariances(
        self, finalize: Finalize, first: Array, second: Array
    ) -> tuple[Array, Array, Array]:
        """Return variances and covariances of pairs of groups, given by number.

        Parameters
        ----------
        finalize : callable
        first, second : ndarray of shape (m,)

        Returns
        -------
        of_first, of_second, between : ndarray of shape (m,)
        """
        if not first.size:
            return np.zeros(0), np.zeros(0), np.zeros(0)
        used, place = np.unique(np.concatenate([first, second]), return_inverse=True)
        a, b = place[: first.size], place[first.size :]
        some = self.of_groups(used)
        variance = some.variance(finalize)
        if not isinstance(some.rows, SparseTable):
            return variance[a], variance[b], some.covariance(finalize)[a, b]
        with np.errstate(invalid="ignore", over="ignore"):
            columns, slopes = some._columns(finalize), some.slopes(finalize)
            both = columns.products(columns, a, b)
            if some.folded is not None:
                both += some.folded.scatter.form(some._folded_slopes(finalize), a, b)
            if some.pairs is not None:
                every = np.arange(used.size)
                products = some.pairs.form(slopes, every, every)
                least = np.sqrt(kept_share(some._squares(finalize), products))
                both -= least[a] * some.pairs.form(slopes, a, b) * least[b]
        both[np.isnan(variance[a]) | np.isnan(variance[b])] = np.nan
        return variance[a], variance[b], both

    def of_groups(self, columns: Array) -> ClusterSums:
        """Return the sums of some groups, given by number."""
        if columns.size == len(self.groups):
            return self
        return replace(
            self,
            groups=tuple(self.groups[i] for i in columns),
            by_group=self.by_group[columns],
            **self._parts("of_groups", columns),
        )

    def undefined(self, finalize: Finalize) -> Array:
        """Return which groups have no standard error, shape (G,)."""
        active = self.active[list(needs_of(finalize))]
        few = (active.sum(axis=1) < 2).any(axis=0)
        alone = ((active > 0) & (active < 2)).any(axis=(0, 1))
        return few | alone | np.isnan(self.estimate(finalize))

    def bootstrap_table(self) -> AnyTable:
        """Return the table of clusters; a ValueError if there is none to resample."""
        if self.table is None:
            raise ValueError(
                "The bootstrap needs the table of clusters, which compact() dropped; "
                "use method='t', or keep replicates by compact(n_replicates=...)."
            )
        if self.kind == "item":
            raise ValueError(
                "The bootstrap resamples clusters, and this result has items of one "
                "list (variance='item'); use method='t', or pass cluster= or qid=."
            )
        return self.table

    def resample(
        self, n_resamples: int, rng: np.random.Generator
    ) -> Iterator[tuple[Array, Array]]:
        """Yield totals of resampled clusters, in chunks of resamples.

        Each resample draws as many clusters as there are, with replacement; without
        the table they are the replicates that `compact` kept, all of them.
        """
        if self.table is None and self.replicates is not None:
            yield self.replicates.totals()
            return
        table = self.bootstrap_table()
        for chunk in count_chunks(table, n_resamples):
            yield table.drawn(draw_counts(table, chunk, rng))

    def pooled(self) -> ClusterSums:
        """Return the sums of all groups as one group."""
        by_group = self.by_group.sum(axis=0, keepdims=True)
        parts = self._parts("pooled")
        return replace(self, groups=("overall",), by_group=by_group, **parts)

    def _parts(self, method: str, *arguments: Any) -> dict[str, Any]:
        """Return what a method makes of all that is kept of the rows, by name."""
        names = ("table", "leading", "folded", "pairs", "replicates")
        parts = {name: getattr(self, name) for name in names}
        return {
            name: None if part is None else getattr(part, method)(*arguments)
            for name, part in parts.items()
        }

    def aligned(self, groups: tuple[Hashable, ...]) -> ClusterSums:
        """Return the sums with the columns of these groups, 0 where one is absent."""
        if groups == self.groups:
            return self
        number = {group: i for i, group in enumerate(groups)}
        place = np.array([number[group] for group in self.groups], dtype=int)
        wide = self._spread(replace(self._here, groups=place, n_groups=len(groups)))
        return replace(wide, groups=groups)

    def with_columns(self, place: Array, n_columns: int) -> ClusterSums:
        """Return the sums with their columns at these places of more, 0 elsewhere."""
        return self._spread(replace(self._here, columns=place, n_columns=n_columns))

    @property
    def _here(self) -> ColumnPlaces:
        """The places of groups and columns as they are."""
        sizes = (*self.by_group.shape, self.shared.size, len(self.supports))
        return ColumnPlaces.as_they_are(*sizes)

    def _spread(self, to: ColumnPlaces) -> ClusterSums:
        """Return the sums with groups and columns at these places of more."""
        wide = np.zeros((to.n_groups, to.n_columns))
        wide[to.groups[:, None], to.columns] = self.by_group
        parts = self._parts("spread", to)
        return replace(self, by_group=wide, shared=to.widened(self.shared), **parts)

    def apart(self, other: ClusterSums) -> ClusterSums:
        """Return both sums over clusters of their own: the columns of `other` follow.

        This is what a comparison of independent samples needs: a row of one of them has
        zeros in the columns of the other, and the sums of both add up.
        """
        first, behind = self._here.beside(other._here)
        supports = supports_of_both(self, other)
        one = replace(self._spread(first), supports=supports)
        return one + replace(other._spread(behind), supports=supports)

    def __add__(self, other: ClusterSums) -> ClusterSums:
        """Return the sums of the union of the clusters, groups aligned by label."""
        if self.kind != other.kind:
            raise ValueError(
                f"Results of variance={self.kind!r} and variance={other.kind!r} cannot "
                "be added; pass the same variance= to both."
            )
        groups = self.groups
        if set(groups) != set(other.groups):
            groups = tuple(sort_labels(list(set(groups) | set(other.groups))))
        a, b = expanded(self.aligned(groups)), expanded(other.aligned(groups))
        one, two = replicates_of_both(a, b)
        total = replace(
            a,
            by_group=a.by_group + b.by_group,
            shared=a.shared + b.shared,
            count=a.count + b.count,
            table=stack(a.rows, b.rows),
            leading=None,
            folded=added(a.folded, b.folded),
            pairs=added(a.pairs, b.pairs),
            replicates=None if one is None or two is None else one + two,
        )
        complete = a.table is not None and b.table is not None
        return total if complete else total.compact()

    def beside(self, other: ClusterSums) -> ClusterSums:
        """Return both sums over the same clusters: the columns of `other` follow.

        This is what a paired comparison needs. Over items the term of the pairs is
        left out of the variance, which is then DeLong's (slightly larger).
        """
        if isinstance(self.table, ListTable) or isinstance(other.table, ListTable):
            return expanded(self).beside(expanded(other))
        a, b = self.table, other.table
        if a is None or b is None:
            raise ValueError(
                "A paired comparison needs the tables of both results; compare before "
                "compact()."
            )
        if self.kind != other.kind or set(self.groups) != set(other.groups):
            raise ValueError(
                "A paired comparison needs two results of the same groups and "
                f"variance; got groups {self.groups} ({self.kind}) and "
                f"{other.groups} ({other.kind})."
            )
        other = other.aligned(self.groups)
        rows = same_rows(a, b)
        joined = join(a, b if other.table is None else other.table, rows)
        return ClusterSums(
            groups=self.groups,
            by_group=np.concatenate([self.by_group, other.by_group], axis=1),
            shared=np.concatenate([self.shared, other.shared]),
            count=self.count,
            supports=supports_of_both(self, other),
            kind=self.kind,
            table=joined,
        )
