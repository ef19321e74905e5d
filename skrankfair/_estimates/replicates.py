"""A bootstrap that adds up: totals under Poisson weights that a cluster's label gives.

How often a cluster counts in replicate b is a Poisson number that follows from the
seed, a hash of the cluster's label and b alone. Parts of the data, wherever and in
whatever order they are measured, therefore agree on every replicate without knowing of
each other, and replicate totals add up as the totals themselves do (Hanley and
MacGibbon 2006; Chamandy et al. 2012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array, check_number
from .rows import Layout, Rows
from .storage import stored

if TYPE_CHECKING:
    from .sums import ClusterSums

_ROWS = 4096
_WEYL = np.uint64(0x9E3779B97F4A7C15)


def _mixed(x: Array) -> Array:
    """Return the finaliser of splitmix64, a bijection of 64 bits that looks random."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def label_hashes(labels: Array) -> Array:
    """Return 64 bits of each label, the same on every machine and in every part.

    Whole numbers have the same ones whatever their type, text by its characters, and
    dates by the microsecond; other labels as the text that `str` makes of them.
    """
    labels = np.asarray(labels)
    kind = labels.dtype.kind
    if kind in "biu":
        return _mixed(labels.astype(np.int64).view(np.uint64) + _WEYL)
    if kind == "f":
        return _mixed(_bits_of_floats(labels.astype(float)) + _WEYL)
    if kind == "M":
        return _mixed(labels.astype("datetime64[us]").view(np.uint64) + _WEYL)
    return _of_objects(labels.astype(object))


def _bits_of_floats(labels: Array) -> Array:
    """Return the bits of numbers, those of integers where they are whole."""
    with np.errstate(invalid="ignore"):
        whole = labels.astype(np.int64)
    return np.where(whole == labels, whole, labels.view(np.int64)).view(np.uint64)


def _of_objects(labels: Array) -> Array:
    """Return the hashes of labels of any types, those of a type at once."""
    import pandas as pd

    kinds = np.array([_kind(label) for label in labels.tolist()])
    hashes = np.empty(labels.shape, dtype=np.uint64)
    for kind in np.unique(kinds).tolist():
        some = labels[kinds == kind]
        if kind == "integer":
            bits = np.array([int(label) % 2**64 for label in some], dtype=np.uint64)
        elif kind == "float":
            bits = _bits_of_floats(some.astype(float))
        elif kind == "moment":
            moments = pd.to_datetime(some.tolist(), utc=True).as_unit("us")
            bits = moments.asi8.view(np.uint64)
        else:
            text = np.array([str(label) for label in some], dtype=object)
            bits = pd.util.hash_array(text, categorize=False)
        hashes[kinds == kind] = _mixed(bits + _WEYL)
    return hashes


def _kind(label: Any) -> str:
    if isinstance(label, bool | int | np.integer | np.bool_):
        return "integer" if -(2**63) <= label < 2**64 else "text"
    if isinstance(label, float | np.floating):
        return "float"
    return "moment" if isinstance(label, datetime | np.datetime64) else "text"


def _numbers(hashes: Array, seed: int, first: int, last: int) -> Array:
    """Return random numbers of 64 bits, shape (last - first, n)."""
    key = _mixed(np.array([seed], dtype=np.uint64) + _WEYL)
    state = _mixed(hashes ^ key)
    step = np.arange(first + 1, last + 1, dtype=np.uint64)[:, None] * _WEYL
    return _mixed(state + step)


@cache
def _thresholds() -> Array:
    """Return where the Poisson number of mean 1 goes up, as numbers of 64 bits."""
    terms = [Fraction(1, factorial(k)) for k in range(40)]
    below = [sum(terms[:k]) / sum(terms) for k in range(1, 20)]
    return np.array([int(part * 2**64) for part in below], dtype=np.uint64)


def poisson_counts(hashes: Array, seed: int, first: int, last: int) -> Array:
    """Return how often rows count in replicates `first` to `last`, (b, n).

    Poisson numbers of mean 1.
    """
    numbers = _numbers(hashes, seed, first, last)
    return np.searchsorted(_thresholds(), numbers, side="right").astype(float)


def checked_seed(n_replicates: Any, seed: Any) -> int:
    """Return the seed, if both are what replicates need."""
    check_number(n_replicates, "n_replicates", 1, np.inf, integer=True)
    check_number(seed, "random_state", 0, 2**63 - 1, integer=True)
    return int(seed)


@stored("Replicates")
@dataclass(frozen=True)
class Replicates:
    """Totals of B replicates.

    Attributes
    ----------
    seed : int
    labels : int
        The sum of the hashes of the labels of all clusters: the same for two results
        of the same clusters.
    by_group : ndarray of shape (B, G, C)
    shared : ndarray of shape (B, D)
    """

    seed: int
    labels: int
    by_group: Array
    shared: Array

    @classmethod
    def of_table(cls, table: Rows, n_replicates: int, seed: int) -> Replicates:
        """Return the totals of the rows of a table."""
        seed, hashes = checked_seed(n_replicates, seed), label_hashes(table.labels)
        by_group = np.zeros((n_replicates, table.n_groups, table.n_columns))
        shared = np.zeros((n_replicates, table.shared.shape[1]))
        for start in range(0, table.n_rows, _ROWS):
            stop = min(start + _ROWS, table.n_rows)
            counts = poisson_counts(hashes[start:stop], seed, 0, n_replicates)
            own, common = table.between(start, stop).drawn(counts)
            by_group += own
            shared += common
        return cls(seed, int(hashes.sum(dtype=np.uint64)), by_group, shared)

    @classmethod
    def of_refits(
        cls, table: Rows, n_replicates: int, seed: int, refit: Callable[..., Array]
    ) -> Replicates:
        """Return the totals of a metric that is fitted anew to each replicate.

        `refit` takes how often each row of the table counts, shape (1, n_rows).
        """
        seed, hashes = checked_seed(n_replicates, seed), label_hashes(table.labels)
        totals = np.stack(
            [
                refit(poisson_counts(hashes, seed, b, b + 1))[0]
                for b in range(n_replicates)
            ]
        )
        shared = np.zeros((n_replicates, 0))
        return cls(seed, int(hashes.sum(dtype=np.uint64)), totals, shared)

    @property
    def size(self) -> int:
        """The number of replicates, B."""
        return len(self.by_group)

    def totals(self) -> tuple[Array, Array]:
        """Return the totals, (B, G, C) and (B, D)."""
        return self.by_group, self.shared

    def of_groups(self, groups: Array) -> Replicates:
        """Return the totals of some groups."""
        return replace(self, by_group=self.by_group[:, groups])

    def pooled(self) -> Replicates:
        """Return the totals of all groups as one."""
        return replace(self, by_group=self.by_group.sum(axis=1, keepdims=True))

    def placed(self, to: Layout) -> Replicates:
        """Return the totals with groups and columns at these numbers of more."""
        by_group, shared = to.widened(self.by_group, self.shared)
        return replace(self, by_group=by_group, shared=shared)

    def join_columns(self, other: Replicates) -> Replicates:
        """Return both over the same clusters: the columns of `other` follow."""
        self._check(other)
        if self.labels != other.labels:
            raise ValueError(
                "A paired comparison needs two results on the same clusters; the "
                "labels of their clusters differ."
            )
        by_group = np.concatenate([self.by_group, other.by_group], axis=2)
        shared = np.concatenate([self.shared, other.shared], axis=1)
        return replace(self, by_group=by_group, shared=shared)

    def __add__(self, other: Replicates) -> Replicates:
        """Return the totals over the clusters of both."""
        self._check(other)
        return Replicates(
            self.seed,
            (self.labels + other.labels) % 2**64,
            self.by_group + other.by_group,
            self.shared + other.shared,
        )

    def _check(self, other: Replicates) -> None:
        """Raise a ValueError for replicates of other random numbers."""
        if (self.seed, self.size) != (other.seed, other.size):
            raise ValueError(
                "Results with replicates need the same n_replicates and random_state; "
                f"got {self.size} of {self.seed} and {other.size} of {other.seed}."
            )


def replicates_of_both(
    a: ClusterSums, b: ClusterSums
) -> tuple[Replicates | None, Replicates | None]:
    """Return the replicates of both, those of a table drawn as those of the other."""
    known = a.replicates or b.replicates
    if known is None:
        return None, None
    found = [
        sums.compact(known.size, known.seed).replicates
        if sums.replicates is None and sums.table is not None
        else sums.replicates
        for sums in (a, b)
    ]
    return found[0], found[1]
