"""Ranked lists of group members: all that statistical parity looks at.

No outcome and no score is left, only who stands above whom. Score ties are met by
expectation: a member of a tied block is at each of its places with equal chance.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..._inputs.ranking import RankedData, order_rows
from ..._inputs.validation import Array, Groups, sort_labels
from .._pairs.outcome_pairs import exclusive_cumsum
from .._position_weights import DISCOUNTS, weights_at

_PART = 1 << 17  # rows that are worked on at once


def as_discount(discount: Any) -> Hashable:
    """Return a discount as results keep it: a name or a function.

    Raises
    ------
    ValueError
        For anything else.
    """
    named = isinstance(discount, str) and discount in DISCOUNTS
    if named or (callable(discount) and getattr(discount, "__hash__", None)):
        known: Hashable = discount
        return known
    raise ValueError(
        f"discount must be one of {', '.join(map(repr, DISCOUNTS))}, or a function of "
        f"an array of positions 1, 2, ...; got {discount!r}."
    )


def position_weights(discount: Any, positions: Array) -> Array:
    """Return the weight of each position, finite and not negative.

    Parameters
    ----------
    discount : str or callable
        What `as_discount` returned.
    positions : ndarray of int
        Counted from 1. A function is called on these alone.

    Returns
    -------
    ndarray of float
    """
    if isinstance(discount, str):
        weights = DISCOUNTS[discount](positions - 1)
    else:
        weights = weights_at(discount, positions, "discount", "from 1")
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            "discount must be finite and not negative; it is "
            f"{weights[place]} at position {positions[place]}."
        )
    return weights


@dataclass(frozen=True)
class Cuts:
    """The first k rows of every list, for k = step, 2 step, ... up to its length.

    Attributes
    ----------
    of_list : ndarray of shape (n_cuts,), int
        The list of each cut.
    k : ndarray of shape (n_cuts,), int
        The number of rows above it.
    ends : ndarray of shape (n_cuts,), int
        One past the last of them.
    """

    of_list: Array
    k: Array
    ends: Array


@dataclass(frozen=True, eq=False)
class Lists:
    """Groups of the rows of every list, from the top down.

    Attributes
    ----------
    groups : Groups
    starts : ndarray of shape (n_lists + 1,), int64
        First row of each list, and the number of rows.
    tie_starts : ndarray of int or None
        First row of each block of tied rows; None when no two rows are tied.
    """

    groups: Groups
    starts: Array
    tie_starts: Array | None = None

    @classmethod
    def of(cls, data: RankedData) -> Lists:
        """Return the lists of data that is validated and ordered."""
        ranking, ties = data.ranking, None
        if ranking.has_ties:
            first, _ = ranking.tie_bounds()
            ties = np.flatnonzero(first == np.arange(first.size))
        return cls(data.groups, ranking.starts, ties)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.starts[-1])

    @property
    def n_lists(self) -> int:
        """The number of lists."""
        return self.starts.size - 1

    @cached_property
    def lengths(self) -> Array:
        """Number of rows of each list."""
        return np.diff(self.starts)

    @cached_property
    def of_row(self) -> Array:
        """The list of each row."""
        return np.repeat(np.arange(self.n_lists), self.lengths)

    @cached_property
    def position(self) -> Array:
        """Position of each row in its list, from 0, as if there were no ties."""
        return np.arange(self.n_rows) - np.repeat(self.starts[:-1], self.lengths)

    @cached_property
    def _blocks(self) -> tuple[Array, Array, Array]:
        """First row, one past the last, and length of the tied block of each row."""
        starts = np.arange(self.n_rows) if self.tie_starts is None else self.tie_starts
        sizes = np.diff(np.append(starts, self.n_rows))
        first, size = np.repeat(starts, sizes), np.repeat(sizes, sizes)
        return first, first + size, size

    @cached_property
    def sizes(self) -> Array:
        """Members of each group in each list, shape (n_lists, G), as floats."""
        return self.sums_by_group(None)

    def sums_by_group(self, values: Array | None) -> Array:
        """Return the sums of a column over the members, shape (n_lists, G).

        None is a column of ones.
        """
        n_groups, rows = len(self.groups), self.of_row
        if self.groups.overlapping:
            ones = np.ones(self.n_rows) if values is None else values
            columns = [
                np.bincount(
                    rows, weights=ones * self.groups.mask(g), minlength=self.n_lists
                )
                for g in range(n_groups)
            ]
            return np.stack(columns, axis=1)
        key = rows * n_groups
        key += self.groups.values
        sums = np.bincount(key, weights=values, minlength=self.n_lists * n_groups)
        return sums.reshape(self.n_lists, n_groups).astype(float)

    def block_means(self, values: Array) -> Array:
        """Return each row's value averaged over its tied block."""
        if self.tie_starts is None:
            return values
        size = np.diff(np.append(self.tie_starts, self.n_rows))
        return np.repeat(np.add.reduceat(values, self.tie_starts) / size, size)

    def cuts(self, step: int) -> Cuts:
        """Return the cuts after every `step` rows."""
        counts = self.lengths // step
        of_list = np.repeat(np.arange(self.n_lists), counts)
        k = np.arange(1, of_list.size + 1)
        k -= np.repeat(np.cumsum(counts) - counts, counts)
        k *= step
        return Cuts(of_list, k, self.starts[of_list] + k)

    def members_above(self, group: int, cuts: Cuts) -> Array:
        """Return the expected number of members above each cut."""
        before = exclusive_cumsum(self.groups.mask(group))
        if self.tie_starts is None:
            return before[cuts.ends] - before[self.starts[cuts.of_list]]
        first, last, size = (block[cuts.ends - 1] for block in self._blocks)
        inside = (before[last] - before[first]) * (cuts.ends - first) / size
        return before[first] - before[self.starts[cuts.of_list]] + inside

    def parts(self) -> Iterator[Lists]:
        """Yield parts of whole lists, of so many rows that they stay in the cache."""
        low = 0
        while low < self.n_lists:
            high = np.searchsorted(self.starts, self.starts[low] + _PART, "right") - 1
            high = max(int(high), low + 1)
            yield self._part(low, high)
            low = high

    def _part(self, low: int, high: int) -> Lists:
        """Return the lists from `low` on, before `high`."""
        if high - low == self.n_lists:
            return self
        first, last = self.starts[low], self.starts[high]
        ties = self.tie_starts
        if ties is not None:
            ties = ties[slice(*np.searchsorted(ties, (first, last)))] - first
        groups = self.groups.take(slice(first, last))
        return Lists(groups, self.starts[low : high + 1] - first, ties)

    def shuffled(self, times: int, rng: np.random.Generator) -> Lists:
        """Return the lists `times` over, labels shuffled within every list."""
        n = self.n_rows
        shift = np.arange(times)[:, None]
        starts = np.append((self.starts[:-1] + shift * n).ravel(), times * n)
        ties = self.tie_starts
        if ties is not None:
            ties = (ties + shift * n).ravel()
        lists = (self.of_row + shift * self.n_lists).ravel()
        rows = order_rows(lists, rng.random(times * n)) % n
        return Lists(self.groups.take(rows), starts, ties)

    def __add__(self, other: Lists) -> Lists:
        """Return the lists of both, groups aligned by label."""
        labels = self.groups.labels
        if set(labels) != set(other.groups.labels):
            labels = tuple(sort_labels(list({*labels, *other.groups.labels})))
        values = [_aligned(part.groups, labels) for part in (self, other)]
        ties = None
        if self.tie_starts is not None or other.tie_starts is not None:
            first, second = (
                np.arange(part.n_rows) if part.tie_starts is None else part.tie_starts
                for part in (self, other)
            )
            ties = np.concatenate([first, second + self.n_rows])
        starts = np.concatenate([self.starts[:-1], other.starts + self.n_rows])
        return Lists(Groups(labels, np.concatenate(values)), starts, ties)


class Kernel(Protocol):
    """What turns lists into the rows of a table of sums."""

    def table(self, lists: Lists) -> tuple[Array, Array]:
        """Return sums by list and group (Q, G, C), and shared ones (Q, D)."""


def table_of(kernel: Kernel, lists: Lists) -> tuple[Array, Array]:
    """Return the table of a kernel, made part by part."""
    parts = [kernel.table(part) for part in lists.parts()]
    by_group, shared = zip(*parts, strict=True)
    return np.concatenate(by_group), np.concatenate(shared)


def _aligned(groups: Groups, labels: tuple[Hashable, ...]) -> Array:
    """Return codes, or the membership matrix, in the order of these labels."""
    place = np.array([labels.index(label) for label in groups.labels])
    if not groups.overlapping:
        codes: Array = place[groups.values]
        return codes
    member = np.zeros((groups.n_rows, len(labels)), dtype=bool)
    member[:, place] = groups.values
    return member
