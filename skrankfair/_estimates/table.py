"""The rows of the sums, and what stays of rows that are folded away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._inputs.score_rows import Sample, ScoreRows
from .._inputs.validation import Array
from .storage import stored

#: ``finalize(by_group, shared)``: from totals of shape ``(..., G, C)`` and ``(..., D)``
#: to estimates of shape ``(..., G)``. The value of a group depends on its own columns
#: and the shared ones only, and the function must accept complex totals (it is
#: differentiated by a complex step). An attribute ``needs`` names the supports that
#: must be there for an estimate, by their number; without it the first one.
Finalize = Callable[[Array, Array], Array]


@stored("Table")
@dataclass(frozen=True)
class Table:
    """The rows of the sums: clusters, or the items of one list.

    Attributes
    ----------
    by_group : ndarray of shape (n_rows, G, C)
    shared : ndarray of shape (n_rows, D)
    weight : ndarray of shape (n_rows,) or None
        How often each row counts; None is once.
    labels : ndarray of shape (n_rows,)
        The cluster (or item) behind each row.
    member : ndarray of shape (n_rows, G), bool, or None
        Of items: which group each belongs to. The items of a group and all others are
        two samples. None: the rows are one sample.
    """

    by_group: Array
    shared: Array
    weight: Array | None
    labels: Array
    member: Array | None = None

    @classmethod
    def from_entries(
        cls,
        row: Array,
        group: Array,
        values: Array,
        *,
        n_rows: int,
        n_groups: int,
        shared: Array | None = None,
        weight: Array | None = None,
        labels: Array,
        member: Array | None = None,
    ) -> Table:
        """Return the table of the groups that each row has data of.

        Parameters
        ----------
        row, group : ndarray of shape (N,), int
            Where each entry belongs, in any order; entries of one place are added.
        values : ndarray of shape (N, C)
            What the entries add to the columns; they are 0 elsewhere.
        n_rows, n_groups : int
        shared : ndarray of shape (n_rows, D) or None
            None: there are no shared columns.
        weight : ndarray of shape (n_rows,) or None
        labels : ndarray of shape (n_rows,)
        member : ndarray of shape (N,), bool, or None
            Of items: whether the row of the entry belongs to its group. An item has an
            entry for each of its groups, of zeros if need be.

        Returns
        -------
        Table
        """
        place = row * np.int64(n_groups) + group
        shape = n_rows, n_groups
        by_group = np.zeros((*shape, values.shape[1]))
        for column, sums in enumerate(values.T):
            found = np.bincount(place, weights=sums, minlength=n_rows * n_groups)
            by_group[..., column] = found.reshape(shape)
        members = None
        if member is not None:
            members = np.zeros(shape, dtype=bool)
            members.ravel()[place[member]] = True
        if shared is None:
            shared = np.zeros((n_rows, 0))
        return cls(by_group, shared, weight, labels, members)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.by_group.shape[0]

    @property
    def frequency(self) -> Array:
        """How often each row counts, shape (n_rows,)."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def of_groups(self, columns: Array) -> Table:
        """Return the rows with the columns of some groups."""
        if np.array_equal(columns, np.arange(self.by_group.shape[1])):
            return self
        member = None if self.member is None else self.member[:, columns]
        return replace(self, by_group=self.by_group[:, columns], member=member)

    def flat(self) -> Array:
        """Return the rows as one matrix of shape (n_rows, G * C + D)."""
        flat = self.by_group.reshape(self.n_rows, -1)
        return np.hstack([flat, self.shared]) if self.shared.size else flat

    def scatter(self) -> Array:
        """Return the cross products of the columns, shape (K, K)."""
        flat = self.flat()
        return (flat if self.weight is None else flat * self.weight[:, None]).T @ flat

    def take(self, rows: Array | slice) -> Table:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        member = None if self.member is None else self.member[rows]
        return Table(
            self.by_group[rows], self.shared[rows], weight, self.labels[rows], member
        )


@stored("Folded")
@dataclass(frozen=True)
class Folded:
    """Sums over the rows that `compact` has folded away, none of which weighs much.

    A support says how much data a row has of a group; with `Table.member` the members
    of the group and all others are two strata, else all rows are one. The last of the
    G + 1 groups is a group that is nowhere: what the shared columns alone say, which
    holds for every group that these rows lack.

    Attributes
    ----------
    scatter : ndarray of shape (K, K)
        Cross products of the columns.
    active : ndarray of shape (S, M, G + 1)
        Number of rows behind each support.
    support : ndarray of shape (S, M, G + 1)
        Its sum.
    square : ndarray of shape (S, M, G + 1)
        The sum of its squares.
    quartic : ndarray of shape (S, M, G + 1, S, M, G + 1)
        The sums of the products of two squares.
    """

    scatter: Array
    active: Array
    support: Array
    square: Array
    quartic: Array

    @classmethod
    def of_rows(cls, table: Table, supports: Sequence[Finalize]) -> Folded:
        """Return the sums over the rows of a table."""
        weight = table.frequency
        nowhere = np.zeros((table.n_rows, 1, table.by_group.shape[2]))
        by_group = np.concatenate([table.by_group, nowhere], axis=1)
        outside = np.zeros((table.n_rows, 1), dtype=bool)
        member = table.member
        if member is not None:
            member = np.hstack([member, outside])
        wide = Table(by_group, table.shared, table.weight, table.labels, member)
        parts = np.stack([strata(wide, support) for support in supports], axis=1)
        squares = parts.reshape(table.n_rows, -1) ** 2
        quartic = (squares * weight[:, None]).T @ squares
        return cls(
            table.scatter(),
            np.tensordot(weight, parts > 0, 1),
            np.tensordot(weight, parts, 1),
            np.tensordot(weight, parts**2, 1),
            quartic.reshape(*parts.shape[1:], *parts.shape[1:]),
        )

    def pooled(self, add: Array) -> Folded:
        """Return the sums of all groups as one, columns added by a matrix.

        The sums of squares are bounds, as if all groups were in the same rows.
        """
        groups = np.arange(self.square.shape[-1] - 1)
        square = np.sqrt(self.square[..., :-1]).sum(-1, keepdims=True) ** 2
        root = np.einsum("smgsmg->smg", self.quartic)[..., groups] ** 0.25
        fourth = root.sum(-1) ** 4
        quartic = np.sqrt(np.multiply.outer(fourth, fourth))[:, :, None, :, :, None]
        nowhere = np.zeros_like(square)

        def with_nowhere(values: Array) -> Array:
            return np.concatenate([values, nowhere], axis=-1)

        return Folded(
            add @ self.scatter @ add.T,
            with_nowhere(self.active[..., :-1].max(-1, keepdims=True)),
            with_nowhere(self.support[..., :-1].sum(-1, keepdims=True)),
            with_nowhere(square),
            np.pad(quartic, [(0, 0), (0, 0), (0, 1)] * 2),
        )

    def spread(self, scatter: Array, rows: Array, n_groups: int) -> Folded:
        """Return the sums with the groups at these places of more."""
        source = np.full(n_groups + 1, -1)
        source[rows] = np.arange(len(rows))
        return Folded(
            scatter,
            self.active[..., source],
            self.support[..., source],
            self.square[..., source],
            self.quartic[:, :, source][..., source],
        )

    def __add__(self, other: Folded) -> Folded:
        """Return the sums over the rows of both."""
        return Folded(
            self.scatter + other.scatter,
            self.active + other.active,
            self.support + other.support,
            self.square + other.square,
            self.quartic + other.quartic,
        )


def strata(table: Table, support: Finalize) -> Array:
    """Return a support of every row by stratum and group, shape (n_rows, M, G)."""
    amount = np.asarray(support(table.by_group, table.shared), dtype=float)
    if table.member is None:
        return amount[:, None]
    parts = np.empty((len(amount), 2, amount.shape[1]))
    np.multiply(amount, table.member, out=parts[:, 0])
    np.subtract(amount, parts[:, 0], out=parts[:, 1])
    return parts


def cluster_table(
    rows: ScoreRows,
    sample: Sample,
    columns: list[Array],
    of_everyone: list[Array] | None = None,
) -> Table:
    """Return the sums of columns of the sample by cluster and group.

    Parameters
    ----------
    rows : ScoreRows
        For the labels of the clusters and the groups.
    sample : Sample
        Of these rows.
    columns : list of ndarray of shape (n,)
        In the order of the sample.
    of_everyone : list of ndarray of shape (n_rows,) or None
        In the order of the rows, to be summed over all groups.

    Returns
    -------
    Table
        Of shape (n_clusters, G, C), with the sums over all groups as shared columns.
    """
    starts = sample.segment_starts
    shape = (sample.n_clusters, len(rows.groups), len(columns))
    table = np.zeros(shape)
    place = sample.cluster[starts], sample.group[starts]
    for k, column in enumerate(columns):
        table[(*place, k)] = np.add.reduceat(np.asarray(column, dtype=float), starts)
    cluster = rows.cluster_codes
    shared = [
        column if cluster is None else np.bincount(cluster, column, sample.n_clusters)
        for column in of_everyone or []
    ]
    return Table(
        table,
        np.stack(shared, axis=1) if shared else np.zeros((sample.n_clusters, 0)),
        sample.frequency,
        rows.cluster_labels,
    )


def row_counts(rows: ScoreRows, sample: Sample) -> Array:
    """Return how many rows each row of the sample is, within its cluster."""
    if rows.weight is None or sample.frequency is not None:
        return np.ones(sample.x.size)
    return rows.weight[sample.row]


def draw_counts(table: Table, chunk: int, rng: np.random.Generator) -> Array:
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


def stack(a: Table, b: Table) -> Table:
    """Return the rows of both."""
    if not (a.n_rows and b.n_rows):
        return a if a.n_rows else b
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
        None
        if a.member is None or b.member is None
        else np.vstack([a.member, b.member]),
    )


def same_rows(a: Table, b: Table) -> Array:
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
