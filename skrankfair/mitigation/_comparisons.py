"""Pairs of items of one query, rebalanced: what pairwise regularisation learns from."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from .._inputs.validation import Array, Groups
from ._metadata import quoted

COMPARISONS = ("inter", "intra", "all")


@dataclass(frozen=True)
class Pairs:
    """Pairs of a better and a worse item of a query, for one group against the rest.

    Attributes
    ----------
    better, worse : ndarray of shape (n_pairs,), int
        Rows.
    margin : ndarray of shape (n_pairs,)
        ``y[better] - y[worse]``, positive.
    membership : ndarray of shape (n_pairs,)
        B, the group membership that the residual must not be correlated with.
    weight : ndarray of shape (n_pairs,)
        Adds up to 1, half of it on pairs whose better item is in the group.
    """

    better: Array
    worse: Array
    margin: Array
    membership: Array
    weight: Array


@dataclass(frozen=True)
class Candidates:
    """All pairs of one side, not written down: the partners of a row are a range.

    Attributes
    ----------
    rows : ndarray of shape (r,)
        The better items.
    first : ndarray of shape (r,)
        Where the worse partners of each start in `order`.
    until : ndarray of shape (r,)
        Running number of pairs.
    order : ndarray of shape (n,)
        All rows.
    """

    rows: Array
    first: Array
    until: Array
    order: Array

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
    ordered, order = _sorted(key)
    found = []
    for side in (False, True):
        rows = order[(member == side)[order] & (rank > 0)[order]]
        start = (2 * query[rows] + partner[rows]) * n_ranks
        first = np.searchsorted(ordered, start)
        until = np.cumsum(np.searchsorted(ordered, start + rank[rows]) - first)
        found.append(Candidates(rows, first, until, order))
    return found


def _sorted(key: Array) -> tuple[Array, Array]:
    """Return the sorted keys, not negative, and their rows in stable order."""
    bits = int(key.size).bit_length()
    if int(key.max()).bit_length() + bits > 62:
        order = np.argsort(key, kind="stable")
        return key[order], order
    # Sorting values is several times as fast as sorting their places.
    packed = (key << bits) | np.arange(key.size)
    packed.sort()
    return packed >> bits, packed & ((1 << bits) - 1)


def draw_pairs(
    y: Array,
    query: Array,
    member: Array,
    comparison: str,
    n_pairs: int,
    rng: np.random.Generator,
) -> Pairs | None:
    """Return pairs of a group against the rest, or None without any.

    Parameters
    ----------
    y : ndarray of shape (n,)
    query : ndarray of shape (n,), int
        Codes from 0.
    member : ndarray of shape (n,), bool
    comparison : {"inter", "intra", "all"}
    n_pairs : int
        Half of them for each side, drawn with replacement; a side that has no more
        than that is taken whole.
    rng : Generator

    Returns
    -------
    Pairs or None
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
    return Pairs(i, j, margin, membership, np.concatenate(weight))


def draw_by_group(
    y: Array,
    query: Array,
    groups: Groups,
    comparison: str,
    n_pairs: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Hashable, Pairs | None]]:
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
