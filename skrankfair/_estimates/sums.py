"""The one mechanism: a table of sums, one row a cluster of dependent data.

A metric is a smooth function of the column totals. From the table follow the estimate,
its standard error, the bootstrap, the comparison of two models and the merge of two
parts of the data, without a line in any metric.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array, sort_labels


def cluster_table(rows: ScoreRows, sample: Sample, columns: list[Array]) -> Table:
    """Return the sums of columns of the sample by cluster and group.

    Parameters
    ----------
    rows : ScoreRows
        For the labels of the clusters and the groups.
    sample : Sample
        Of these rows.
    columns : list of ndarray of shape (n,)
        In the order of the sample.

    Returns
    -------
    Table
        Of shape (n_clusters, G, C).
    """
    starts = sample.segment_starts
    shape = (sample.n_clusters, len(rows.groups), len(columns))
    table = np.zeros(shape)
    place = sample.cluster[starts], sample.group[starts]
    for k, column in enumerate(columns):
        table[(*place, k)] = np.add.reduceat(np.asarray(column, dtype=float), starts)
    return Table(
        table,
        np.zeros((sample.n_clusters, 0)),
        sample.frequency,
        rows.cluster_labels,
    )


def row_counts(rows: ScoreRows, sample: Sample) -> Array:
    """Return how many rows each row of the sample is, within its cluster."""
    if rows.weight is None or sample.frequency is not None:
        return np.ones(sample.x.size)
    return rows.weight[sample.row]


#: ``finalize(by_group, shared)``: from totals of shape ``(..., G, C)`` and ``(..., D)``
#: to estimates of shape ``(..., G)``. The value of a group depends on its own columns
#: and the shared ones only, and the function must accept complex totals (it is
#: differentiated by a complex step).
Finalize = Callable[[Array, Array], Array]

_STEP = 1e-200
_CHUNK = 64


@dataclass(frozen=True)
class Table:
    """The rows of the sums: kept for the bootstrap and for paired comparisons.

    Attributes
    ----------
    by_group : ndarray of shape (n_rows, G, C)
    shared : ndarray of shape (n_rows, D)
    weight : ndarray of shape (n_rows,) or None
        How often each row counts; None is once.
    labels : ndarray of shape (n_rows,)
        The cluster (or item) behind each row.
    """

    by_group: Array
    shared: Array
    weight: Array | None
    labels: Array

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.by_group.shape[0]

    def flat(self) -> Array:
        """Return the rows as one matrix of shape (n_rows, G * C + D)."""
        flat = self.by_group.reshape(self.n_rows, -1)
        return np.hstack([flat, self.shared]) if self.shared.size else flat


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
    active : ndarray of shape (S, G)
        Number of them behind each support of a group (its own data, the rest's), less
        the part in `shared_active`.
    shared_active : ndarray of shape (S,)
        Number of them behind the shared part of each support.
    scatter : ndarray of shape (K, K), K = G * C + D
        ``kind="cluster"``: the raw cross products of the rows. ``kind="item"``: those
        of the items' rows less those of the pairs, which both their items count.
    kind : {"cluster", "item"}
    table : Table or None
        The rows; None after `compact`.
    """

    groups: tuple[Hashable, ...]
    by_group: Array
    shared: Array
    count: float
    active: Array
    shared_active: Array
    scatter: Array
    kind: str
    table: Table | None

    @classmethod
    def from_clusters(
        cls, groups: tuple[Hashable, ...], table: Table, supports: Sequence[Finalize]
    ) -> ClusterSums:
        """Sum a table whose rows are independent clusters.

        Each of `supports` says of a row's columns how much data a group has there.
        """
        flat = table.flat()
        weighted = flat if table.weight is None else flat * table.weight[:, None]
        count = table.n_rows if table.weight is None else table.weight.sum()
        active, shared_active = _active(table, supports)
        totals = weighted.sum(0)
        size = table.by_group.shape[1] * table.by_group.shape[2]
        return cls(
            groups=groups,
            by_group=totals[:size].reshape(table.by_group.shape[1:]),
            shared=totals[size:],
            count=float(count),
            active=active,
            shared_active=shared_active,
            scatter=weighted.T @ flat,
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
        flat = table.flat()
        weighted = flat if table.weight is None else flat * table.weight[:, None]
        count = table.n_rows if table.weight is None else table.weight.sum()
        active, shared_active = _active(table, supports)
        return cls(
            groups=groups,
            by_group=totals[0],
            shared=totals[1],
            count=float(count),
            active=active,
            shared_active=shared_active,
            scatter=weighted.T @ flat - pairs,
            kind="item",
            table=table,
        )

    @property
    def totals(self) -> Array:
        """All column totals, in the order of `scatter`."""
        return np.concatenate([self.by_group.ravel(), self.shared])

    def compact(self) -> ClusterSums:
        """Return the same sums without the table: a few numbers a group."""
        return replace(self, table=None)

    def estimate(self, finalize: Finalize) -> Array:
        """Return the metric of the totals."""
        return finalize(self.by_group, self.shared)

    def gradient(self, finalize: Finalize) -> Array:
        """Return the derivatives of the metric, shape (G, K), by a complex step."""
        n_groups, n_columns = self.by_group.shape
        n_shared = self.shared.size
        steps = n_columns + n_shared
        by_group = np.tile(self.by_group.astype(complex), (steps, 1, 1))
        shared = np.tile(self.shared.astype(complex), (steps, 1))
        for column in range(n_columns):
            by_group[column, :, column] += 1j * _STEP
        for column in range(n_shared):
            shared[n_columns + column, column] += 1j * _STEP
        slopes = finalize(by_group, shared).imag / _STEP
        gradient = np.zeros((n_groups, n_groups, n_columns))
        gradient[np.arange(n_groups), np.arange(n_groups)] = slopes[:n_columns].T
        return np.hstack([gradient.reshape(n_groups, -1), slopes[n_columns:].T])

    def covariance(self, finalize: Finalize) -> Array:
        """Return the delta-method covariance of the metric, shape (G, G).

        ``J · Q/(Q-1) · Σ (S_q - S̄)(S_q - S̄)ᵀ · Jᵀ`` over clusters; over items
        ``J · (Σ_i R_i R_iᵀ - Σ_pairs x xᵀ) · Jᵀ``, which is centred because a metric
        does not change when all its totals are multiplied. NaN for a group with fewer
        than two clusters behind a support that the metric needs (``finalize.needs``),
        and where the item formula comes out negative.
        """
        gradient = self.gradient(finalize)
        scatter = self.scatter
        if self.kind == "cluster":
            totals = self.totals
            with np.errstate(divide="ignore", invalid="ignore"):
                scatter = scatter - np.outer(totals, totals) / self.count
                scatter = scatter * (self.count / np.float64(self.count - 1))
            if self.count <= 1:
                scatter = np.full_like(scatter, np.nan)
        needs = list(getattr(finalize, "needs", (0,)))
        active = self.active[needs] + self.shared_active[needs, None]
        unknown = ~np.isfinite(gradient).all(axis=1) | (active < 2).any(axis=0)
        unknown |= np.isnan(self.estimate(finalize))
        covariance = np.full((gradient.shape[0],) * 2, np.nan)
        known = np.flatnonzero(~unknown)
        covariance[np.ix_(known, known)] = gradient[known] @ scatter @ gradient[known].T
        variance = np.diag(covariance)
        noise = 1e-12 * np.einsum(
            "gk,kk,gk->g", gradient, np.abs(self.scatter), gradient
        )
        with np.errstate(invalid="ignore"):
            zero = np.flatnonzero(np.abs(variance) <= noise)
            negative = np.flatnonzero(variance < -noise)
        covariance[zero, zero] = 0.0
        covariance[negative] = covariance[:, negative] = np.nan
        return covariance

    def resample(
        self, n_resamples: int, rng: np.random.Generator
    ) -> Iterator[tuple[Array, Array]]:
        """Yield totals of resampled clusters, in chunks of resamples.

        Each resample draws as many clusters as there are, with replacement.
        """
        if self.table is None:
            raise ValueError(
                "The bootstrap needs the table of clusters, which compact() dropped; "
                "use method='delta'."
            )
        if self.kind == "item":
            raise ValueError(
                "The bootstrap resamples clusters, and this result has items of one "
                "list (variance='item'); use method='delta', or pass cluster= or qid=."
            )
        flat, size = self.table.flat(), self.by_group.size
        for start in range(0, n_resamples, _CHUNK):
            counts = _draw(self.table, min(_CHUNK, n_resamples - start), rng)
            totals = counts @ flat
            yield (
                totals[:, :size].reshape(-1, *self.by_group.shape),
                totals[:, size:],
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
        scatter = np.zeros((n_rows * n_columns + self.shared.size,) * 2)
        scatter[np.ix_(kept, kept)] = self.scatter
        active = np.zeros((len(self.active), n_rows))
        active[:, rows] = self.active
        table = self.table
        return replace(
            self,
            by_group=spread(self.by_group),
            active=active,
            scatter=scatter,
            table=table and replace(table, by_group=spread(table.by_group)),
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
        return replace(
            a,
            by_group=a.by_group + b.by_group,
            shared=a.shared + b.shared,
            count=a.count + b.count,
            active=a.active + b.active,
            shared_active=a.shared_active + b.shared_active,
            scatter=a.scatter + b.scatter,
            table=_stack(a.table, b.table),
        )

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
        rows = _same_rows(a, b)
        b_by_group = other.table.by_group if other.table else b.by_group
        joined = Table(
            np.concatenate([a.by_group, b_by_group[rows]], axis=2),
            np.concatenate([a.shared, b.shared[rows]], axis=1),
            a.weight,
            a.labels,
        )
        flat = joined.flat()
        weighted = flat if a.weight is None else flat * a.weight[:, None]
        return ClusterSums(
            groups=self.groups,
            by_group=np.concatenate([self.by_group, other.by_group], axis=1),
            shared=np.concatenate([self.shared, other.shared]),
            count=self.count,
            active=np.concatenate([self.active, other.active]),
            shared_active=np.concatenate([self.shared_active, other.shared_active]),
            scatter=weighted.T @ flat,
            kind=self.kind,
            table=joined,
        )


def _active(table: Table, supports: Sequence[Finalize]) -> tuple[Array, Array]:
    """Return how many rows have data, by support and group, and by support if shared.

    What the shared columns alone say is kept apart, so that a part of the data without
    a group adds nothing to the group.
    """

    def count(by_group: Array, support: Finalize) -> Array:
        present = support(by_group, table.shared) != 0
        if table.weight is None:
            return np.count_nonzero(present, axis=0).astype(float)
        return np.asarray(table.weight @ present)

    active = np.stack([count(table.by_group, support) for support in supports])
    shared = np.zeros((len(supports), 1))
    if table.shared.size:
        nothing = np.zeros((table.n_rows, 1, table.by_group.shape[2]))
        shared = np.stack([count(nothing, support) for support in supports])
    return active - shared, shared[:, 0]


def _draw(table: Table, chunk: int, rng: np.random.Generator) -> Array:
    """Return how often each row is in each resample, shape (chunk, n_rows)."""
    n_rows, weight, scale = table.n_rows, table.weight, 1.0
    if weight is None:
        drawn = rng.integers(0, n_rows, (chunk, n_rows))
    else:
        # A cluster of weight 2 is there twice: as many draws as clusters.
        edges = np.cumsum(weight)
        n_draws = max(1, round(edges[-1]))
        scale = edges[-1] / n_draws
        drawn = np.searchsorted(edges, rng.random((chunk, n_draws)) * edges[-1])
        np.minimum(drawn, n_rows - 1, out=drawn)
    drawn += np.arange(chunk)[:, None] * n_rows
    counts = np.bincount(drawn.ravel(), minlength=chunk * n_rows)
    return counts.reshape(chunk, n_rows) * scale


def _stack(a: Table | None, b: Table | None) -> Table | None:
    if a is None or b is None:
        return None
    weight = None
    if a.weight is not None or b.weight is not None:
        parts = [np.ones(t.n_rows) if t.weight is None else t.weight for t in (a, b)]
        weight = np.concatenate(parts)
    if a.labels.dtype != b.labels.dtype and "O" not in (
        a.labels.dtype.kind,
        b.labels.dtype.kind,
    ):
        labels = np.concatenate([a.labels.astype(object), b.labels.astype(object)])
    else:
        labels = np.concatenate([a.labels, b.labels])
    return Table(
        np.concatenate([a.by_group, b.by_group]),
        np.concatenate([a.shared, b.shared]),
        weight,
        labels,
    )


def _same_rows(a: Table, b: Table) -> Array:
    """Return the rows of `b` in the order of the clusters of `a`."""
    import pandas as pd

    if not pd.Index(a.labels).is_unique:
        raise ValueError(
            "A paired comparison needs clusters with labels of their own; some labels "
            "repeat, as when parts that each number their queries from 0 are added."
        )
    rows = np.arange(a.n_rows)
    same = a.n_rows == b.n_rows
    if same and not np.array_equal(a.labels, b.labels):
        try:
            rows[np.argsort(a.labels, kind="stable")] = np.argsort(
                b.labels, kind="stable"
            )
        except TypeError:  # labels of mixed types
            place = {label: row for row, label in enumerate(b.labels.tolist())}
            rows = np.array([place.get(label, 0) for label in a.labels.tolist()])
        same = np.array_equal(a.labels, b.labels[rows])
    if same:
        ones = np.ones(a.n_rows)
        weights = [ones if t.weight is None else t.weight for t in (a, b)]
        same = np.array_equal(weights[0], weights[1][rows])
    if not same:
        raise ValueError(
            "A paired comparison needs two results on the same clusters (queries, or "
            f"the items of one list) with the same weights; got {a.n_rows} and "
            f"{b.n_rows} clusters whose labels or weights differ."
        )
    return rows
