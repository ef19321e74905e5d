"""What pairwise regularisation minimises: losses of scores, and |Corr(A, B)| of pairs.

A is the score difference of the better and the worse item times the difference of their
outcomes, B is the group membership. `PreferencePairs.correlation` gives the correlation
and its gradient, of which `smooth_absolute` makes the penalty.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit

from .._inputs.columns import read_labels
from .._inputs.groups import Groups
from .._inputs.ranking import stable_order
from .._inputs.validation import Array, warn_user
from ._by_group import quoted

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

    @cached_property
    def direction(self) -> Array:
        """B minus its mean, divided by its standard deviation and times the weight."""
        b = self.membership - self.weight @ self.membership
        direction: Array = self.weight * b / np.sqrt(self.weight @ b**2)
        return direction

    def _centred(self, score: Array) -> Array:
        """Return A minus its mean."""
        a = (score[self.better] - score[self.worse]) * self.margin
        centred: Array = a - (self.weight * a).sum()
        return centred

    def spread(self, score: Array) -> float:
        """Return the variance of A."""
        return float((self.weight * self._centred(score) ** 2).sum())

    def correlation(self, score: Array, floor: float = 0.0) -> tuple[float, Array]:
        """Return the correlation of A and B, and its gradient in the scores.

        The `floor` is added to the variance of A.
        """
        # Sums of products: as dot products they wait for threads that others use.
        a = self._centred(score)
        weighted = self.weight * a
        deviation = np.sqrt(float((weighted * a).sum()) + floor)
        value = float((self.direction * a).sum()) / deviation
        # Both a and b have mean 0, so has what the weights multiply: centring A again
        # in the derivative changes nothing.
        slope = (self.direction - value / deviation * weighted) / deviation
        by_pair = self.margin * slope
        gradient = np.bincount(self.better, by_pair, minlength=score.size)
        gradient -= np.bincount(self.worse, by_pair, minlength=score.size)
        return float(value), gradient


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

    def draw(self, n_pairs: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return better and worse items of pairs drawn with replacement.

        These are all pairs if there are no more than `n_pairs`.
        """
        number = np.arange(self.size)
        if self.size > n_pairs:
            number = np.sort(rng.integers(self.size, size=n_pairs))
        at = np.searchsorted(self.until, number, side="right")
        before = np.where(at > 0, self.until[at - 1], 0)
        return self.rows[at], self.order[self.first[at] + number - before]


def candidates(
    y: Array, query: Array, member: Array, comparison: str
) -> list[Candidates]:
    """Return the pairs whose better item is outside, and inside, the group."""
    rank = np.unique(y, return_inverse=True)[1].astype(np.int64)
    n_ranks = int(rank.max()) + 1
    side = member.astype(np.int64) if comparison != "all" else np.zeros_like(rank)
    partner = 1 - side if comparison == "inter" else side
    key = (2 * query + side) * n_ranks + rank
    order = stable_order(key)
    ordered = key[order]
    sides = []
    for inside in (False, True):
        rows = order[(member == inside)[order] & (rank > 0)[order]]
        start = (2 * query[rows] + partner[rows]) * n_ranks
        first = np.searchsorted(ordered, start)
        until = np.cumsum(np.searchsorted(ordered, start + rank[rows]) - first)
        sides.append(Candidates(rows, first, until, order))
    return sides


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
    drawn = [side.draw(n_pairs // 2, rng) for side in sides]
    better, worse = map(np.concatenate, zip(*drawn, strict=True))
    weight = np.concatenate([np.full(i.size, 0.5 / i.size) for i, _ in drawn])
    margin = y[better] - y[worse]
    inside = member[better].astype(float)
    sign = 2 * inside - 1 if comparison == "intra" else inside - member[worse]
    membership = sign * margin
    if not np.ptp(membership) > 0:
        # "all" without a pair between groups.
        return None
    return PreferencePairs(better, worse, margin, membership, weight)


def groups_and_queries(
    lengths: Mapping[str, int], sensitive_features: Any, qid: Any
) -> tuple[Groups | None, Array]:
    """Return the groups of rows, if there are any, and codes of their queries."""
    groups, codes, _, n_rows = read_labels(
        lengths, sensitive_features=sensitive_features, qid=qid
    )
    if "qid" not in codes:
        return groups, np.zeros(n_rows, dtype=np.int64)
    return groups, codes["qid"].dense().codes


def draw_by_group(
    y: Array,
    query: Array,
    groups: Groups,
    comparison: str,
    n_pairs: int,
    rng: np.random.Generator,
    *,
    consequence: str,
) -> dict[Hashable, PreferencePairs | None]:
    """Return the pairs of each group against the rest; warn of those without any.

    Two disjoint groups are one comparison, that of the first of them. The
    `consequence` ends the warning.
    """
    twice = len(groups) == 2 and not groups.overlapping
    pairs = {
        label: draw_pairs(y, query, groups.mask(k), comparison, n_pairs, rng)
        for k, label in enumerate(groups.labels[:1] if twice else groups.labels)
    }
    if without := [label for label, drawn in pairs.items() if drawn is None]:
        warn_user(
            "There is no comparable pair (a better and a worse item of one query, "
            f"comparison={comparison!r}, with the better item once in the group and "
            f"once outside it) for the groups {quoted(without)}: {consequence}"
        )
    return pairs


#: Where |r| is rounded off: sqrt(r² + WIDTH²) - WIDTH.
WIDTH = 1e-3


def smooth_absolute(value: float, width: float = WIDTH) -> tuple[float, float]:
    """Return sqrt(r² + width²) - width and its derivative."""
    root = float(np.hypot(value, width))
    return root - width, value / root


LEAST_HESSIAN = 1e-6
_ALL = slice(None)


@dataclass(frozen=True)
class SquaredRows:
    """Σ (y - s)² / 2."""

    y: Array

    @property
    def constant(self) -> float:
        """The constant score with the smallest loss."""
        return float(self.y.mean())

    @property
    def unit(self) -> float:
        """A usual difference of scores."""
        return float(self.y.std())

    def __call__(self, score: Array, rows: slice = _ALL) -> tuple[float, Array, Array]:
        """Return the loss, its gradient, and the diagonal of its Hessian.

        `rows` are those of the scores.
        """
        residual = score - self.y[rows]
        return float((residual**2).sum()) / 2, residual, np.ones_like(score)


@dataclass(frozen=True)
class LogisticRows:
    """Σ log(1 + exp(-t s)), t = ±1 for the outcomes 1 and 0."""

    y: Array
    unit = 2.0

    @property
    def constant(self) -> float:
        """The constant score with the smallest loss, 0 with one outcome only."""
        rate = float(self.y.mean())
        return float(logit(rate)) if 0 < rate < 1 else 0.0

    def __call__(self, score: Array, rows: slice = _ALL) -> tuple[float, Array, Array]:
        """Return the loss, its gradient, and the diagonal of its Hessian.

        `rows` are those of the scores, of each of which there is one exponential.
        """
        y, small = self.y[rows], np.exp(-np.abs(score))
        loss = np.log1p(small) + np.maximum(score, 0) - y * score
        p = np.where(score > 0, 1.0, small) / (1 + small)
        return float(loss.sum()), p - y, np.maximum(p * (1 - p), LEAST_HESSIAN)
