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
from .finalize import Beside
from .storage import stored
from .table import Finalize, Folded, Table, draw_counts, same_rows, stack, strata

_STEP = 1e-200
_CHUNK = 64
# Numbers of a block of rows.
_BLOCK = 1 << 20
# A row with a larger share of the data of a group is kept by `compact`.
_LARGE_SHARE = 1 / 400
# Rounding of a left-out estimate, in units of its terms.
_NOISE = 16 * np.finfo(float).eps


def _needs(finalize: Finalize) -> list[int]:
    """Return the numbers of the supports that a metric needs."""
    return list(getattr(finalize, "needs", (0,)))


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
    table : Table or None
        All rows; None after `compact`.
    leading : Table or None
        After `compact`, the rows with a large share of the data of a group.
    folded : Folded or None
        The sums over the other rows.
    pairs : ndarray of shape (K, K) or None
        Of items: the cross products of the columns over pairs, which the rows of both
        items count.
    """

    groups: tuple[Hashable, ...]
    by_group: Array
    shared: Array
    count: float
    supports: tuple[Finalize, ...]
    kind: str
    table: Table | None
    leading: Table | None = None
    folded: Folded | None = None
    pairs: Array | None = None

    @classmethod
    def from_clusters(
        cls, groups: tuple[Hashable, ...], table: Table, supports: Sequence[Finalize]
    ) -> ClusterSums:
        """Sum a table whose rows are independent clusters."""
        weight = table.frequency
        return cls(
            groups=groups,
            by_group=np.tensordot(weight, table.by_group, 1),
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
        table: Table,
        pairs: Array,
        totals: tuple[Array, Array],
        supports: Sequence[Finalize],
    ) -> ClusterSums:
        """Sum a table whose rows are items, each pair in the rows of both its items.

        Parameters
        ----------
        groups : tuple of hashable
        table : Table
        pairs : ndarray of shape (K, K)
            Cross products of the columns over the pairs of two rows.
        totals : tuple of ndarray
            Column totals over the pairs, by group and shared.
        supports : sequence of callable
            How much data of a group an item's columns show.
        """
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
    def rows(self) -> Table:
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
    def scatter(self) -> Array:
        """Cross products of the columns over all rows, shape (K, K)."""
        scatter = self.rows.scatter()
        return scatter if self.folded is None else scatter + self.folded.scatter

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
        folded = self.folded
        shape = len(self.supports), 1 + (self.rows.member is not None)
        support = np.zeros((*shape, len(self.groups)))
        active = np.zeros(support.shape)
        if folded is not None:
            support, active = folded.support[..., :-1], folded.active[..., :-1]
        for table in self.blocks() if self.rows.n_rows else ():
            for_all = [strata(table, function) for function in self.supports]
            if table.weight is None:
                sums = [part.sum(axis=0) for part in for_all]
                counts = [np.count_nonzero(part > 0, axis=0) for part in for_all]
            else:
                sums = [np.tensordot(table.weight, part, 1) for part in for_all]
                counts = [np.tensordot(table.weight, part > 0, 1) for part in for_all]
            support = support + np.stack(sums)
            active = active + np.stack(counts)
        return support, active

    def blocks(self) -> Iterator[Table]:
        """Yield the rows that are there, some at a time."""
        rows = self.rows
        size = max(1, _BLOCK // max(1, self.totals.size))
        for start in range(0, max(1, rows.n_rows), size):
            yield rows.take(slice(start, start + size))

    def amounts(self, table: Table) -> Array:
        """Return the supports of rows by stratum and group, (n_rows, S, M, G)."""
        parts = [strata(table, support) for support in self.supports]
        return np.stack(parts, axis=1)

    def compact(self) -> Self:
        """Return the same sums without the table.

        Rows with a large share of the data of a group stay as they are, so that errors
        and degrees of freedom are those of the whole; the others are folded into
        sums, where each is small enough for its first order.
        """
        rows = self.rows
        share = self._largest_share()
        most = max(1, _BLOCK // max(1, self.totals.size))
        keep = share > _LARGE_SHARE
        if np.count_nonzero(keep) > most:
            keep &= share >= np.partition(share, -most)[-most]
        folded = self.folded
        if not keep.all():
            more = Folded.of_rows(rows.take(np.flatnonzero(~keep)), self.supports)
            folded = more if folded is None else folded + more
        leading = rows.take(np.flatnonzero(keep))
        return replace(self, table=None, leading=leading, folded=folded)

    def _largest_share(self) -> Array:
        """Return the largest share of each row in any support or shared column."""
        rows = self.rows
        size = rows.frequency @ np.abs(rows.shared)
        with np.errstate(divide="ignore"):
            scale = np.where(self.support > 0, 1 / self.support, 0.0)
            common = np.where(size > 0, 1 / size, 0.0)
        return np.concatenate(
            [
                np.maximum(
                    (self.amounts(table) * scale).max(axis=(1, 2, 3), initial=0.0),
                    (np.abs(table.shared) * common).max(axis=1, initial=0.0),
                )
                for table in self.blocks()
            ]
        )

    def estimate(self, finalize: Finalize) -> Array:
        """Return the metric of the totals."""
        return finalize(self.by_group, self.shared)

    def slopes(self, finalize: Finalize) -> Array:
        """Return derivatives by a group's own columns and the shared, (G, C + D)."""
        return slopes_at(finalize, self.by_group[None], self.shared[None])[0]

    def gradient(self, finalize: Finalize) -> Array:
        """Return the derivatives of the metric, shape (G, K), by a complex step."""
        n_groups, n_columns = self.by_group.shape
        slopes = self.slopes(finalize)
        gradient = np.zeros((n_groups, n_groups, n_columns))
        gradient[np.arange(n_groups), np.arange(n_groups)] = slopes[:, :n_columns]
        return np.hstack([gradient.reshape(n_groups, -1), slopes[:, n_columns:]])

    def influence(self, finalize: Finalize) -> Iterator[Array]:
        """Yield what each row adds to the jackknife, block by block, shape (n, G).

        ``sqrt(w_q (n - 1) / n) (θ_(-q) - θ)``: the estimate without row q minus that of
        all, n the number of rows with data of the group in the stratum of q, w_q how
        often the row counts; a row that counts less than once is left out whole.
        """
        estimate = self.estimate(finalize)
        terms = np.hstack(
            [
                self.by_group,
                np.broadcast_to(self.shared, (len(self.groups), self.shared.size)),
            ]
        )
        noise = _NOISE * np.abs(np.nan_to_num(self.slopes(finalize)) * terms).sum(1)
        number = self.active[_needs(finalize)].max(axis=0)
        factor = np.sqrt(np.maximum(number - 1, 0) / np.maximum(number, 1))
        for table in self.blocks():
            by_group, shared, weight = table.by_group, table.shared, table.weight
            if weight is not None:
                once = np.minimum(weight, 1.0)
                by_group, shared = (
                    once[:, None, None] * by_group,
                    once[:, None] * shared,
                )
            with np.errstate(divide="ignore", invalid="ignore"):
                change = finalize(self.by_group - by_group, self.shared - shared)
                change -= estimate
                change[np.abs(change) <= noise] = 0.0
            if weight is not None:
                times = np.zeros(weight.shape)
                np.divide(np.sqrt(weight), once, out=times, where=once > 0)
                change *= times[:, None]
            if table.member is None:
                change *= factor[0]
            else:
                change *= np.where(table.member, factor[0], factor[1])
            if weight is not None:
                change[weight == 0] = 0.0
            yield change

    def covariance(self, finalize: Finalize) -> Array:
        """Return the jackknife covariance of the metric, shape (G, G).

        Over clusters ``(Q - 1)/Q Σ_q (θ_(-q) - θ)(θ_(-q) - θ)ᵀ``, where Q are the
        clusters with data of the group. Over items the same within the members of the
        group and within all others, two samples, minus the products of pairs, which
        the rows of both items count: ``J · Σ_pairs x xᵀ · Jᵀ``, at most one half of
        the variance. NaN where `undefined`.
        """
        n_groups = len(self.groups)
        covariance = np.zeros((n_groups, n_groups))
        with np.errstate(invalid="ignore", over="ignore"):
            for change in self.influence(finalize):
                covariance += change.T @ change
            gradient = self.gradient(finalize)
            if self.folded is not None:
                covariance += gradient @ self.folded.scatter @ gradient.T
            if self.pairs is not None:
                products = gradient @ self.pairs @ gradient.T
                least = np.sqrt(_kept_share(np.diag(covariance), np.diag(products)))
                covariance -= least[:, None] * products * least
        unknown = ~np.isfinite(np.diag(covariance)) | self.undefined(finalize)
        covariance[unknown] = covariance[:, unknown] = np.nan
        return covariance

    def variance(self, finalize: Finalize) -> Array:
        """Return the diagonal of `covariance`, shape (G,), without the rest of it."""
        variance = np.zeros(len(self.groups))
        with np.errstate(invalid="ignore", over="ignore"):
            for change in self.influence(finalize):
                variance += np.einsum("qg,qg->g", change, change)
            slopes = self.slopes(finalize)
            if self.folded is not None:
                variance += self._quadratic(slopes, self.folded.scatter)
            if self.pairs is not None:
                products = self._quadratic(slopes, self.pairs)
                variance -= _kept_share(variance, products) * products
        variance[~np.isfinite(variance) | self.undefined(finalize)] = np.nan
        return variance

    def _quadratic(self, slopes: Array, products: Array) -> Array:
        """Return ``J_g · products · J_g`` of the columns of each group, shape (G,)."""
        n_groups, n_columns = self.by_group.shape
        shared = self.by_group.size + np.arange(self.shared.size)
        values = np.empty(n_groups)
        for group in range(n_groups):
            own = group * n_columns + np.arange(n_columns)
            columns = np.concatenate([own, shared])
            values[group] = (
                slopes[group] @ products[np.ix_(columns, columns)] @ slopes[group]
            )
        return values

    def undefined(self, finalize: Finalize) -> Array:
        """Return which groups have no standard error, shape (G,)."""
        active = self.active[_needs(finalize)]
        few = (active.sum(axis=1) < 2).any(axis=0)
        alone = ((active > 0) & (active < 2)).any(axis=(0, 1))
        return few | alone | np.isnan(self.estimate(finalize))

    def bootstrap_table(self) -> Table:
        """Return the table of clusters; a ValueError if there is none to resample."""
        if self.table is None:
            raise ValueError(
                "The bootstrap needs the table of clusters, which compact() dropped; "
                "use method='t'."
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

        Each resample draws as many clusters as there are, with replacement.
        """
        table = self.bootstrap_table()
        flat, size = table.flat(), self.by_group.size
        for start in range(0, n_resamples, _CHUNK):
            counts = draw_counts(table, min(_CHUNK, n_resamples - start), rng)
            totals = counts @ flat
            yield (
                totals[:, :size].reshape(-1, *self.by_group.shape),
                totals[:, size:],
            )

    def pooled(self) -> ClusterSums:
        """Return the sums of all groups as one group."""

        def pool(table: Table | None) -> Table | None:
            if table is None:
                return None
            return replace(
                table,
                by_group=table.by_group.sum(axis=1, keepdims=True),
                member=None,
            )

        n_groups, n_columns = self.by_group.shape
        n_shared = self.shared.size
        add = np.zeros((n_columns + n_shared, self.totals.size))
        add[:n_columns, : self.by_group.size] = np.tile(np.eye(n_columns), n_groups)
        add[n_columns:, self.by_group.size :] = np.eye(n_shared)
        folded = self.folded
        return replace(
            self,
            groups=("overall",),
            by_group=self.by_group.sum(axis=0, keepdims=True),
            table=pool(self.table),
            leading=pool(self.leading),
            folded=folded and folded.pooled(add),
            pairs=None if self.pairs is None else add @ self.pairs @ add.T,
        )

    def aligned(self, groups: tuple[Hashable, ...]) -> ClusterSums:
        """Return the sums with the columns of these groups, 0 where one is absent."""
        if groups == self.groups:
            return self
        place = np.array([groups.index(group) for group in self.groups], dtype=int)
        n_columns = self.by_group.shape[1]
        return replace(
            self._spread(place, len(groups), np.arange(n_columns), n_columns),
            groups=groups,
        )

    def with_columns(self, place: Array, n_columns: int) -> ClusterSums:
        """Return the sums with their columns at these places of more, 0 elsewhere."""
        n_groups = len(self.groups)
        return self._spread(np.arange(n_groups), n_groups, place, n_columns)

    def _spread(
        self, rows: Array, n_rows: int, columns: Array, n_columns: int
    ) -> ClusterSums:
        """Return the sums with groups and columns at these places of more."""

        def spread(values: Array) -> Array:
            wide = np.zeros((*values.shape[:-2], n_rows, n_columns))
            wide[..., rows[:, None], columns] = values
            return wide

        kept = np.concatenate(
            [
                (rows[:, None] * n_columns + columns).ravel(),
                n_rows * n_columns + np.arange(self.shared.size),
            ]
        ).astype(int)

        def square(values: Array) -> Array:
            wide = np.zeros((n_rows * n_columns + self.shared.size,) * 2)
            wide[np.ix_(kept, kept)] = values
            return wide

        def widen(table: Table | None) -> Table | None:
            if table is None:
                return None
            member = table.member
            if member is not None:
                member = np.zeros((table.n_rows, n_rows), dtype=bool)
                member[:, rows] = table.member
            return replace(table, by_group=spread(table.by_group), member=member)

        folded = self.folded
        if folded is not None:
            folded = folded.spread(square(folded.scatter), rows, n_rows)
        return replace(
            self,
            by_group=spread(self.by_group),
            table=widen(self.table),
            leading=widen(self.leading),
            folded=folded,
            pairs=None if self.pairs is None else square(self.pairs),
        )

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
        a, b = self.aligned(groups), other.aligned(groups)
        total = replace(
            a,
            by_group=a.by_group + b.by_group,
            shared=a.shared + b.shared,
            count=a.count + b.count,
            table=stack(a.rows, b.rows),
            leading=None,
            folded=_sum(a.folded, b.folded),
            pairs=_sum(a.pairs, b.pairs),
        )
        complete = a.table is not None and b.table is not None
        return total if complete else total.compact()

    def beside(self, other: ClusterSums) -> ClusterSums:
        """Return both sums over the same clusters: the columns of `other` follow.

        This is what a paired comparison needs. Over items the term of the pairs is
        left out of the variance, which is then DeLong's (slightly larger).
        """
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
        b_by_group = other.table.by_group if other.table else b.by_group
        joined = Table(
            np.concatenate([a.by_group, b_by_group[rows]], axis=2),
            np.concatenate([a.shared, b.shared[rows]], axis=1),
            a.weight,
            a.labels,
            a.member,
        )
        size = a.by_group.shape[2], a.shared.shape[1]
        return ClusterSums(
            groups=self.groups,
            by_group=np.concatenate([self.by_group, other.by_group], axis=1),
            shared=np.concatenate([self.shared, other.shared]),
            count=self.count,
            supports=(
                *(Beside(support, *size, second=False) for support in self.supports),
                *(Beside(support, *size, second=True) for support in other.supports),
            ),
            kind=self.kind,
            table=joined,
        )


def slopes_at(finalize: Finalize, by_group: Array, shared: Array) -> Array:
    """Return derivatives at totals (B, G, C) and (B, D), shape (B, G, C + D).

    By a group's own columns, then the shared ones; by a complex step.
    """
    n_columns, n_shared = by_group.shape[-1], shared.shape[-1]
    steps = n_columns + n_shared
    own = np.tile(by_group.astype(complex), (steps, *(1,) * by_group.ndim))
    common = np.tile(shared.astype(complex), (steps, *(1,) * shared.ndim))
    for column in range(n_columns):
        own[column, ..., column] += 1j * _STEP
    for column in range(n_shared):
        common[n_columns + column, ..., column] += 1j * _STEP
    return np.moveaxis(finalize(own, common).imag / _STEP, 0, -1)


def _kept_share(variance: Array, products: Array) -> Array:
    """Return how much of the products of pairs to subtract: half the variance stays."""
    share = np.ones(variance.shape)
    large = products > variance / 2
    np.divide(variance / 2, products, out=share, where=large & (products > 0))
    return share


def _sum(a: Any, b: Any) -> Any:
    """Return the sum of what is there."""
    if a is None or b is None:
        return b if a is None else a
    return a + b
