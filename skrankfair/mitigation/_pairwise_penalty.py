"""|Corr(A, B)| over pairs, with its gradient: of a linear score, and of any score.

A is the score difference of the better and the worse item times the difference of their
outcomes, B is the group membership. Both kernels give the correlation and its gradient;
`smooth_absolute` makes the penalty of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._inputs.groups import Groups
from .._inputs.ranking import stable_order
from .._inputs.validation import Array
from ._metadata import quoted

COMPARISONS = ("inter", "intra", "all")


@dataclass(frozen=True)
class PreferencePairs:
    """Pairs of a better and a worse item of a query, for one group against the rest."""

    #: Shape (n_pairs,), int. Rows.
    better: Array
    worse: Array
    margin: Array  # shape (n_pairs,): ``y[better] - y[worse]``, positive
    #: Shape (n_pairs,). B, the group membership that the residual must not be
    #: correlated with.
    membership: Array
    #: Shape (n_pairs,). Adds up to 1, half of it on pairs whose better item is in the
    #: group.
    weight: Array


@dataclass(frozen=True)
class Candidates:
    """All pairs of one side, not written down: the partners of a row are a range."""

    rows: Array  # shape (r,): the better items
    first: Array  # shape (r,): where the worse partners of each start in `order`
    until: Array  # shape (r,): running number of pairs
    order: Array  # shape (n,): all rows

    @property
    def size(self) -> int:
        """The number of pairs."""
        return int(self.until[-1]) if self.until.size else 0

    def take(self, number: Array) -> tuple[Array, Array]:
        """Return better and worse items of the pairs with these numbers."""
        at = np.searchsorted(self.until, number, side="right")
        before = np.where(at > 0, self.until[at - 1], 0)
        return self.rows[at], self.order[self.first[at] + number - before]


def candidates(
    y: Array, query: Array, member: Array, comparison: str
) -> list[Candidates]:
    """Return the pairs whose better item is outside, and inside, the group."""
    rank = np.unique(y, return_inverse=True)[1].astype(np.int64)
    n_ranks = int(rank.max()) + 1
    own = member.astype(np.int64) if comparison != "all" else np.zeros_like(rank)
    partner = 1 - own if comparison == "inter" else own
    key = (2 * query + own) * n_ranks + rank
    order = stable_order(key)
    ordered = key[order]
    found = []
    for side in (False, True):
        rows = order[(member == side)[order] & (rank > 0)[order]]
        start = (2 * query[rows] + partner[rows]) * n_ranks
        first = np.searchsorted(ordered, start)
        until = np.cumsum(np.searchsorted(ordered, start + rank[rows]) - first)
        found.append(Candidates(rows, first, until, order))
    return found


def draw_pairs(
    y: Array,
    query: Array,
    member: Array,
    comparison: str,
    n_pairs: int,
    rng: np.random.Generator,
) -> PreferencePairs | None:
    """Return pairs of a group against the rest, or None without any.

    Half of the `n_pairs` are for each side, drawn with replacement; a side that has no
    more than that is taken whole. `query` are codes from 0, `member` is boolean.
    """
    sides = candidates(y, query, member, comparison)
    if not all(side.size for side in sides):
        return None
    better, worse, weight = [], [], []
    for side in sides:
        whole = side.size <= n_pairs // 2
        number = (
            np.arange(side.size)
            if whole
            else np.sort(rng.integers(side.size, size=n_pairs // 2))
        )
        i, j = side.take(number)
        better.append(i)
        worse.append(j)
        weight.append(np.full(i.size, 0.5 / i.size))
    i, j = np.concatenate(better), np.concatenate(worse)
    margin = y[i] - y[j]
    sign = member[i].astype(float)
    sign = 2 * sign - 1 if comparison == "intra" else sign - member[j]
    membership = sign * margin
    if not np.ptp(membership) > 0:
        # "all" without a pair between groups.
        return None
    return PreferencePairs(i, j, margin, membership, np.concatenate(weight))


def draw_by_group(
    y: Array,
    query: Array,
    groups: Groups,
    comparison: str,
    n_pairs: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Hashable, PreferencePairs | None]]:
    """Yield each group and its pairs against the rest.

    Two disjoint groups are one comparison, which is yielded for the first of them.
    """
    twice = len(groups) == 2 and not groups.overlapping
    for k, label in enumerate(groups.labels[:1] if twice else groups.labels):
        yield label, draw_pairs(y, query, groups.mask(k), comparison, n_pairs, rng)


def without_pairs(labels: list[Hashable], comparison: str) -> str:
    """Return the message that groups have no comparable pair."""
    return (
        "There is no comparable pair (a better and a worse item of one query, "
        f"comparison={comparison!r}, with the better item once in the group and once "
        f"outside it) for the groups {quoted(labels)}"
    )


#: Where |r| is rounded off: sqrt(r² + WIDTH²) - WIDTH.
WIDTH = 1e-3
_CHUNK = 1 << 12  # pairs whose differences stay in the cache


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array."""
    return bool(sparse.issparse(X))


def smooth_absolute(value: float, width: float = WIDTH) -> tuple[float, float]:
    """Return sqrt(r² + width²) - width and its derivative."""
    root = float(np.hypot(value, width))
    return root - width, value / root


@dataclass(frozen=True)
class LinearCorrelation:
    """The correlation of a linear score, from the moments of feature differences.

    Corr(w) = c · w / sqrt(wᵀ V w + floor).
    """

    #: Shape (d,). c, the covariance of the features of A with B, over the deviation of
    #: B.
    covariance: Array
    variance: Array  # shape (d, d): v, the covariance of the features of A

    @classmethod
    def of_pairs(cls, X: Any, pairs: PreferencePairs) -> LinearCorrelation:
        """Sum the moments over pairs, a chunk of them at a time."""
        size = X.shape[1]
        mean, square, cross = np.zeros(size), np.zeros((size, size)), np.zeros(size)
        b, spread = _standardised(pairs)
        root = np.sqrt(pairs.weight)
        scale, b = pairs.margin * root, b * root
        for start in range(0, root.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            i, j = pairs.better[part], pairs.worse[part]
            if is_sparse(X):
                difference = (X[i] - X[j]).toarray()
            else:  # Twice as fast as an index.
                difference = np.take(X, i, axis=0) - np.take(X, j, axis=0)
            difference *= scale[part, None]
            mean += root[part] @ difference
            cross += b[part] @ difference
            square += difference.T @ difference
        return cls(cross / spread, square - np.outer(mean, mean))

    def spread(self, coef: Array) -> float:
        """Return the variance of A."""
        return max(0.0, float(coef @ self.variance @ coef))

    def __call__(self, coef: Array, floor: float = 0.0) -> tuple[float, Array]:
        """Return the correlation and its gradient with respect to the coefficients."""
        slope = self.variance @ coef
        deviation = np.sqrt(max(0.0, float(coef @ slope)) + floor)
        value = float(self.covariance @ coef) / deviation
        gradient = (self.covariance - value * slope / deviation) / deviation
        return float(value), gradient


@dataclass(frozen=True)
class ScoreCorrelation:
    """The correlation of any score, with memory in proportion to rows and pairs."""

    pairs: PreferencePairs
    n_rows: int

    @cached_property
    def direction(self) -> Array:
        """B minus its mean, divided by its standard deviation and times the weight."""
        b, spread = _standardised(self.pairs)
        direction: Array = self.pairs.weight * b / spread
        return direction

    def spread(self, score: Array) -> float:
        """Return the variance of A."""
        return float((self.pairs.weight * self._centred(score) ** 2).sum())

    def _centred(self, score: Array) -> Array:
        p = self.pairs
        a = (score[p.better] - score[p.worse]) * p.margin
        centred: Array = a - (p.weight * a).sum()
        return centred

    def __call__(self, score: Array, floor: float = 0.0) -> tuple[float, Array]:
        """Return the correlation and its gradient with respect to the scores."""
        # Sums of products: as dot products they wait for threads that others use.
        p, direction = self.pairs, self.direction
        a = self._centred(score)
        weighted = p.weight * a
        deviation = np.sqrt(float((weighted * a).sum()) + floor)
        value = float((direction * a).sum()) / deviation
        # Both a and b have mean 0, so has what the weights multiply: centring A again
        # in the derivative changes nothing.
        by_pair = p.margin * (direction - value / deviation * weighted) / deviation
        gradient = np.bincount(p.better, by_pair, minlength=self.n_rows)
        gradient -= np.bincount(p.worse, by_pair, minlength=self.n_rows)
        return float(value), gradient


def _standardised(pairs: PreferencePairs) -> tuple[Array, float]:
    """Return B minus its mean, and its standard deviation."""
    b = pairs.membership - pairs.weight @ pairs.membership
    return b, float(np.sqrt(pairs.weight @ b**2))
