"""A bootstrap that adds up: totals under Poisson weights that a cluster's label gives.

How often a cluster counts in replicate b is a Poisson number that follows from the
seed, a hash of the cluster's label and b alone. Parts of the data, wherever and in
whatever order they are measured, therefore agree on every replicate without knowing of
each other, and replicate totals add up as the totals themselves do (Hanley and
MacGibbon 2006; Chamandy et al. 2012).

Totals are sums of numbers with their rounding errors, each matrix product of parts
whose sum is exact in any order, so that they do not depend on the order either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from .._inputs.validation import Array, check_number
from .places import ColumnPlaces
from .storage import stored
from .table import AnyTable, Table

if TYPE_CHECKING:
    from .sums import ClusterSums

_ROWS = 4096
# More parts than this, of about 40 bits each, no column needs.
_MOST_PARTS = 4
# Poisson numbers of larger means are rounded normal ones.
_LARGE_MEAN = 30.0
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


def poisson_counts(
    hashes: Array, weight: Array | None, seed: int, first: int, last: int
) -> Array:
    """Return how often rows count in replicates `first` to `last`, (b, n).

    Poisson numbers of mean 1, or of the weight of the row.
    """
    numbers = _numbers(hashes, seed, first, last)
    counts = np.searchsorted(_thresholds(), numbers, side="right").astype(float)
    if weight is None or (weight == 1).all():
        return counts
    other = np.flatnonzero(weight != 1)
    share = (numbers[:, other] >> np.uint64(11)) * 2.0**-53
    counts[:, other] = _of_mean(weight[other], share)
    return counts


def _of_mean(mean: Array, share: Array) -> Array:
    """Return the quantiles of Poisson numbers of these means, shape (b, n)."""
    with np.errstate(invalid="ignore"):
        normal = mean + np.sqrt(mean) * special.ndtri(share + 2.0**-54)
    counts = np.maximum(np.rint(normal), 0.0)
    small = mean <= _LARGE_MEAN
    few, share = mean[small], share[:, small]
    term = np.exp(-few)
    reached, found, k = term.copy(), np.zeros(share.shape), 0
    while (above := share > reached).any() and k < 20 * _LARGE_MEAN:
        found += above
        k += 1
        term = term * few / k
        reached = reached + term
    counts[:, small] = found
    return counts


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return sums and their rounding errors (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _added(a: Array, b: Array) -> Array:
    """Return the sum of numbers with their rounding errors, the first axis."""
    total, error = two_sum(a[0], b[0])
    return np.stack(two_sum(total, error + (a[1] + b[1])))


def _parts(values: Array, bits: int) -> Iterator[Array]:
    """Yield numbers whose sum is `values`, multiples of one power of 2 per column.

    Each has at most so many bits, so that sums of many are exact in any order.
    """
    axes = tuple(range(values.ndim - 1))
    for _ in range(_MOST_PARTS):
        largest = np.abs(values).max(axis=axes, initial=0.0)
        if not largest.any():
            return
        unit = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - bits, -1000))
        part = np.rint(values / unit) * unit
        yield part
        values = values - part


def checked_seed(n_replicates: Any, seed: Any) -> int:
    """Return the seed, if both are what replicates need."""
    check_number(n_replicates, "n_replicates", 1, np.inf, integer=True)
    check_number(seed, "random_state", 0, 2**63 - 1, integer=True)
    return int(seed)


@stored("Replicates")
@dataclass(frozen=True)
class Replicates:
    """Totals of B replicates, each with its rounding error.

    Attributes
    ----------
    seed : int
    labels : int
        The sum of the hashes of the labels of all clusters: the same for two results
        of the same clusters.
    by_group : ndarray of shape (2, B, G, C)
    shared : ndarray of shape (2, B, D)
    """

    seed: int
    labels: int
    by_group: Array
    shared: Array

    @classmethod
    def of_table(cls, table: AnyTable, n_replicates: int, seed: int) -> Replicates:
        """Return the totals of the rows of a table."""
        seed, hashes = checked_seed(n_replicates, seed), label_hashes(table.labels)
        shape = (2, n_replicates, table.n_groups, table.n_columns)
        by_group = np.zeros(shape)
        shared = np.zeros((2, n_replicates, table.shared.shape[1]))
        for start in range(0, table.n_rows, _ROWS):
            some = slice(start, start + _ROWS)
            rows = table.take(some)
            counts = poisson_counts(hashes[some], rows.weight, seed, 0, n_replicates)
            for part in _tables(rows, counts):
                own, common = part.drawn(counts)
                by_group = _added(by_group, np.stack([own, np.zeros_like(own)]))
                shared = _added(shared, np.stack([common, np.zeros_like(common)]))
        return cls(seed, int(hashes.sum(dtype=np.uint64)), by_group, shared)

    @classmethod
    def of_refits(
        cls, table: AnyTable, n_replicates: int, seed: int, refit: Callable[..., Array]
    ) -> Replicates:
        """Return the totals of a metric that is fitted anew to each replicate.

        `refit` takes how often each row of the table counts, shape (1, n_rows), and
        the number of the replicate.
        """
        seed, hashes = checked_seed(n_replicates, seed), label_hashes(table.labels)
        totals = np.stack(
            [
                refit(poisson_counts(hashes, table.weight, seed, b, b + 1), b)[0]
                for b in range(n_replicates)
            ]
        )
        by_group = np.stack([totals, np.zeros_like(totals)])
        shared = np.zeros((2, n_replicates, 0))
        return cls(seed, int(hashes.sum(dtype=np.uint64)), by_group, shared)

    @property
    def size(self) -> int:
        """The number of replicates, B."""
        return self.by_group.shape[1]

    def totals(self) -> tuple[Array, Array]:
        """Return the totals, (B, G, C) and (B, D)."""
        return self.by_group[0], self.shared[0]

    def of_groups(self, groups: Array) -> Replicates:
        """Return the totals of some groups."""
        return replace(self, by_group=self.by_group[:, :, groups])

    def pooled(self) -> Replicates:
        """Return the totals of all groups as one."""
        by_group = self.by_group[:, :, :1]
        for group in range(1, self.by_group.shape[2]):
            by_group = _added(by_group, self.by_group[:, :, group : group + 1])
        return replace(self, by_group=by_group)

    def spread(self, to: ColumnPlaces) -> Replicates:
        """Return the totals with groups and columns at these places of more."""
        wide = np.zeros((2, self.size, to.n_groups, to.n_columns))
        wide[:, :, to.groups[:, None], to.columns] = self.by_group
        return replace(self, by_group=wide, shared=to.widened(self.shared))

    def beside(self, other: Replicates) -> Replicates:
        """Return both over the same clusters: the columns of `other` follow."""
        self._check(other)
        if self.labels != other.labels:
            raise ValueError(
                "A paired comparison needs two results on the same clusters; the "
                "labels of their clusters differ."
            )
        by_group = np.concatenate([self.by_group, other.by_group], axis=3)
        shared = np.concatenate([self.shared, other.shared], axis=2)
        return replace(self, by_group=by_group, shared=shared)

    def __add__(self, other: Replicates) -> Replicates:
        """Return the totals over the clusters of both."""
        self._check(other)
        return Replicates(
            self.seed,
            (self.labels + other.labels) % 2**64,
            _added(self.by_group, other.by_group),
            _added(self.shared, other.shared),
        )

    def _check(self, other: Replicates) -> None:
        """Raise a ValueError for replicates of other random numbers."""
        if (self.seed, self.size) != (other.seed, other.size):
            raise ValueError(
                "Results with replicates need the same n_replicates and random_state; "
                f"got {self.size} of {self.seed} and {other.size} of {other.seed}."
            )


def _tables(rows: AnyTable, counts: Array) -> Iterator[AnyTable]:
    """Yield tables whose sum is `rows`, and whose totals of counts are exact."""
    most = float(counts.sum(axis=1).max(initial=1.0))
    bits = 52 - int(np.ceil(np.log2(most + 1)))
    none = np.zeros_like(rows.shared)
    values = rows.by_group if isinstance(rows, Table) else rows.values
    for part in _parts(values, bits):
        yield _with(rows, part, none)
    for part in _parts(rows.shared, bits):
        yield _with(rows, np.zeros_like(values), part)


def _with(rows: AnyTable, values: Array, shared: Array) -> AnyTable:
    """Return the rows with these columns."""
    if isinstance(rows, Table):
        return replace(rows, by_group=values, shared=shared)
    return replace(rows, values=values, shared=shared)


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
