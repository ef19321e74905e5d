"""Moments of pairs of positions: sums over clusters, a chunk of them at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, permutations

import numpy as np

from .._inputs.ranking import RankedData
from .._inputs.validation import Array

_CHUNK = 1 << 19  # rows and moments of the queries that are looked at together
_ROUNDING, _JITTER = 1e-12, 1e-10
#: What stands for "not of the group" where groups overlap.
REST = "rest"


@dataclass(frozen=True)
class Moments:
    """Which moments there are: M of them, pairs of positions by pairs of groups.

    Attributes
    ----------
    positions : ndarray of shape (P, 2), int
        Upper and lower position of each pair, from 0.
    classes : ndarray of shape (S, 2), int
        Column of `membership` of the item at the upper and at the lower position.
    labels : tuple of (label, label), length S
        What the columns are called.
    """

    positions: Array
    classes: Array
    labels: tuple[tuple[Hashable, Hashable], ...]

    @classmethod
    def of(cls, data: RankedData, pairs: str, top_k: int | None) -> Moments:
        """Return the moments of the data: adjacent positions or all pairs of them."""
        longest = int(data.ranking.lengths.max())
        depth = longest if top_k is None else min(int(top_k), longest)
        if pairs == "adjacent":
            positions = [(j, j + 1) for j in range(depth - 1)]
        else:
            positions = list(combinations(range(depth), 2))
        groups = data.groups
        if groups.overlapping:
            # Column 2 g is the group, column 2 g + 1 all that is not of it.
            classes = [
                (2 * g + side, 2 * g + 1 - side)
                for g in range(len(groups))
                for side in (0, 1)
            ]
            names: list[Hashable] = [
                name for label in groups.labels for name in (label, REST)
            ]
        else:
            classes = list(permutations(range(len(groups)), 2))
            names = list(groups.labels)
        return cls(
            np.array(positions, dtype=np.int64).reshape(-1, 2),
            np.array(classes, dtype=np.int64).reshape(-1, 2),
            tuple((names[a], names[b]) for a, b in classes),
        )

    @property
    def size(self) -> int:
        """The number of moments."""
        return len(self.positions) * len(self.classes)

    @property
    def depth(self) -> int:
        """The number of positions that are looked at."""
        return int(self.positions.max()) + 1 if len(self.positions) else 1


@dataclass(frozen=True)
class MomentSums:
    """Sums of the moments over clusters; the last column is the number of queries.

    Attributes
    ----------
    total : ndarray of shape (M + 1,)
        Σ over clusters.
    support : ndarray of shape (M,)
        Number of pairs behind each moment.
    active : ndarray of shape (M,)
        Number of clusters with such a pair.
    count : float
        Number of clusters.
    products : ndarray of shape (M + 1, M + 1)
        Σ x xᵀ over clusters; empty if there are fewer clusters than moments.
    rows : ndarray of shape (n_clusters, M + 1) or None
        The clusters themselves in that case, each times the root of its weight.
    """

    total: Array
    support: Array
    active: Array
    count: float
    products: Array
    rows: Array | None

    @cached_property
    def mean(self) -> Array:
        """Mean of each moment over queries, shape (M,)."""
        return np.asarray(self.total[:-1] / self.total[-1])

    def _residuals(self, rows: Array) -> Array:
        """What each cluster has more than its queries' share, shape (n_clusters, M)."""
        return np.asarray(rows[:, :-1] - rows[:, -1:] * self.mean)

    @cached_property
    def _squares(self) -> Array:
        """Σ residual² over clusters, shape (M,); exactly 0 where it is rounding."""
        if self.rows is not None:
            raw = (self.rows**2).sum(axis=0)[:-1]
            square = (self._residuals(self.rows) ** 2).sum(axis=0)
        else:
            raw, queries = np.diag(self.products)[:-1], self.products[-1]
            square = raw - 2 * self.mean * queries[:-1] + self.mean**2 * queries[-1]
        return np.where(square <= _ROUNDING * raw, 0.0, square)

    @property
    def standard_error(self) -> Array:
        """Standard error of the means, shape (M,); NaN below two clusters."""
        few = self.active < 2
        if self.count <= 1:
            return np.full(few.shape, np.nan)
        factor = self.count / (self.count - 1)
        return np.where(few, np.nan, np.sqrt(factor * self._squares) / self.total[-1])

    def root(self, chosen: Array) -> Array:
        """Return R with R Rᵀ the correlation of some moments' means, shape (m, k)."""
        scale, mean = np.sqrt(self._squares[chosen]), self.mean[chosen]
        if self.rows is not None:
            return np.asarray((self._residuals(self.rows)[:, chosen] / scale).T)
        products = self.products[np.ix_(chosen, chosen)]
        with_queries = np.outer(mean, self.products[-1, chosen])
        products = products - with_queries - with_queries.T
        products += np.outer(mean, mean) * self.products[-1, -1]
        correlation = products / np.outer(scale, scale)
        # Moments may depend on each other exactly; this much more than rounding does
        # not show in a draw.
        correlation[np.diag_indices(chosen.size)] += _JITTER
        return np.linalg.cholesky(correlation)


def moment_sums(data: RankedData, moments: Moments) -> MomentSums:
    """Sum the moments over clusters, a chunk of clusters at a time."""
    weight, cluster = data.query_weight, data.cluster_of_query
    if cluster is None:
        raise ValueError(
            "cluster must be constant within a query; a query has rows of several "
            "clusters."
        )
    size, own = moments.size, data.cluster is None
    n_clusters = int(cluster.max()) + 1
    total, (support, active) = np.zeros(size + 1), np.zeros((2, size))
    count = float(n_clusters if weight is None or not own else weight.sum())
    few, kept = n_clusters <= size, []
    products = np.zeros((0, 0) if few else (size + 1, size + 1))
    for queries in _chunks(data, cluster, size):
        value, number = query_moments(data, moments, queries)
        value = np.column_stack([value, np.ones(len(value))])
        w = np.ones(len(value)) if weight is None else weight[queries]
        if not own:
            # Within a cluster the weight multiplies; a query of its own is repeated.
            starts = np.flatnonzero(np.diff(cluster[queries], prepend=-1))
            value = np.add.reduceat(value * w[:, None], starts, axis=0)
            number = np.add.reduceat(number * w[:, None], starts, axis=0)
            w = np.ones(len(value))
        total += w @ value
        support += w @ number
        active += w @ (number > 0)
        value *= np.sqrt(w)[:, None]
        if few:
            kept.append(value)
        else:
            products += value.T @ value
    rows = np.concatenate(kept) if few else None
    return MomentSums(total, support, active, count, products, rows)


def _chunks(data: RankedData, cluster: Array, size: int) -> Iterator[Array]:
    """Yield queries, those of a cluster together, in the order of the clusters."""
    order = np.argsort(cluster, kind="stable")
    work = np.cumsum(data.ranking.lengths[order] + size)
    first_of_cluster = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    edges = np.append(first_of_cluster, order.size)
    before = np.concatenate(([0], work))[edges]
    # Cut at the clusters in which the work passes multiples of the chunk.
    cuts = edges[np.flatnonzero(np.diff(before // _CHUNK, prepend=-1))]
    cuts = np.unique(np.append(cuts, order.size))
    for low, high in pairwise(cuts):
        yield order[low:high]


def query_moments(
    data: RankedData, moments: Moments, queries: Array
) -> tuple[Array, Array]:
    """Return the moments of some queries and their numbers of pairs, (q, M) each.

    For positions j above k and classes a and b the moment is
    ``(Y_j - Y_k) 1{G_j = a, G_k = b}``, for tied scores its mean over their orders.
    """
    share, value, block, length = _positions(data, moments, queries)
    upper, lower = moments.positions.T
    a, b = moments.classes.T
    # In one tied block of m items, ordered pairs of different items: m (m - 1) of m².
    tied = block[:, upper] == block[:, lower]
    size = length[:, upper]
    factor = np.where(tied, size / np.maximum(size - 1, 1), 1.0)[:, :, None]
    factor = factor * (block[:, lower] >= 0)[:, :, None]
    above, below = share[:, upper][:, :, a], share[:, lower][:, :, b]
    moment = value[:, upper][:, :, a] * below
    moment -= above * value[:, lower][:, :, b]
    shape = len(queries), moments.size
    number = above * below
    return (moment * factor).reshape(shape), (number * factor).reshape(shape)


def _positions(
    data: RankedData, moments: Moments, queries: Array
) -> tuple[Array, Array, Array, Array]:
    """Return what is known of the item at each position of some queries.

    The chance that it is of each class, the mean over the tied block of the outcome
    times membership, both (q, depth, C); number of the block (-1 below the end of the
    list) and its number of items, both (q, depth).
    """
    ranking, depth = data.ranking, moments.depth
    start, lengths = ranking.starts[queries], ranking.lengths[queries]
    needed = np.minimum(lengths, depth)
    if ranking.has_ties:
        needed = ranking.tie_bounds(start + needed - 1)[1] - start
    offset = np.cumsum(needed) - needed
    rows = np.arange(int(needed.sum())) + np.repeat(start - offset, needed)
    member = _membership(data, rows)
    y = data.y_true[rows]
    y = y - np.repeat(np.add.reduceat(y, offset) / needed, needed)
    outcome = member * y[:, None]
    place = np.arange(depth)
    there = place < lengths[:, None]
    row = np.where(there, offset[:, None] + place, 0)
    if not ranking.has_ties:
        block, size = row, np.ones_like(row)
    else:
        new = np.flatnonzero(np.diff(ranking.tie[rows], prepend=-1))
        sizes = np.diff(np.append(new, rows.size))
        member = np.add.reduceat(member, new, axis=0) / sizes[:, None]
        outcome = np.add.reduceat(outcome, new, axis=0) / sizes[:, None]
        block = np.repeat(np.arange(new.size), sizes)[row]
        size = sizes[block]
    share, value = member[block], outcome[block]
    return share, value, np.where(there, block, -1), size


def _membership(data: RankedData, rows: Array) -> Array:
    """Return which class each row is of, shape (n, C), as numbers."""
    groups = data.groups
    if groups.overlapping:
        inside = groups.values[rows]
        both = np.stack([inside, ~inside], axis=2)
        return both.reshape(len(rows), -1).astype(float)
    codes = groups.values[rows]
    return (codes[:, None] == np.arange(len(groups))).astype(float)
