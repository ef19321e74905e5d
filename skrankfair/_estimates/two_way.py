"""Sums over users and over the items that recur among them, for two-way errors.

The same film in many users' lists makes the errors of these lists alike: leaving out
users alone gives the error of a result about these films, not about films in general.
With the variances V over users, over items, and over the items of each user, the
variance is ``V_users + V_items - V_users×items``, and never less than ``V_users``
(Cameron, Gelbach and Miller 2011; Aronow, Samii and Assenova 2015 for pairs). A pair
stands in the rows of both its items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._inputs.score_rows import ScoreRows
from .._inputs.validation import Array
from .finalize import Finalize
from .resampled import Replicates
from .storage import stored
from .sums import ClusterSums


@stored("TwoWaySums")
@dataclass(frozen=True, kw_only=True)
class TwoWaySums(ClusterSums):
    """Totals over users, with the rows of the items and of the items within users.

    Attributes
    ----------
    items : ClusterSums
        The same totals, with a row per item. Its rows are kept, as an item of one part
        may recur in another: rows of one label are added.
    crossed : ClusterSums
        The same totals, with a row per item of each user.
    """

    items: ClusterSums
    crossed: ClusterSums

    @classmethod
    def of_ways(
        cls, users: ClusterSums, items: ClusterSums, crossed: ClusterSums
    ) -> Self:
        """Return the sums of users together with those of their items."""
        items = replace(items, kind="item")
        return cls.of_sums(users, kind="two-way", items=items, crossed=crossed)

    @cached_property
    def users(self) -> ClusterSums:
        """The sums over users alone."""
        return ClusterSums.of_sums(self, kind="cluster")

    @property
    def ways(self) -> tuple[ClusterSums, ...]:
        """The sums whose units are independent: users, and items."""
        return self.users, self.items

    def variance(self, finalize: Finalize) -> Array:
        """Return ``V_users + max(V_items - V_users×items, 0)``, shape (G,)."""
        more = self.items.variance(finalize) - self.crossed.variance(finalize)
        return self.users.variance(finalize) + np.maximum(more, 0.0)

    def covariances(self, finalize: Finalize, first: Array, second: Array) -> Array:
        """Return the covariance of pairs of groups, given by number, shape (m,).

        That of the items is at most what their variances allow, and at least so that
        no variance of a difference or ratio is less than 0.
        """
        users, items, crossed = (
            sums.covariances(finalize, first, second)
            for sums in (*self.ways, self.crossed)
        )
        total = self.variance(finalize)
        more = np.maximum(total - self.users.variance(finalize), 0.0)
        most = np.sqrt(more[first] * more[second])
        least = -np.sqrt(total[first] * total[second])
        return np.maximum(users + np.minimum(items - crossed, most), least)

    def tails(self, finalize: Finalize, variance: Array | None = None) -> Array:
        """Return the tails over users or items, whichever are more concentrated."""
        users, items = (way.tails(finalize) for way in self.ways)
        return np.where(items[1] > np.nan_to_num(users[1]), items, users)

    @property
    def has_covariance(self) -> bool:
        """Whether covariances of two groups are known; `compact` may drop them."""
        return self.users.has_covariance and self.crossed.has_covariance

    def undefined(self, finalize: Finalize) -> Array:
        """Return which groups have no standard error, shape (G,)."""
        return np.any([way.undefined(finalize) for way in self.ways], axis=0)

    def compact(self, replicates: Replicates | None = None, n_results: int = 1) -> Self:
        """Return the same sums without the tables but that of items."""
        kept = super().compact(replicates, 2 * n_results)
        return replace(kept, crossed=self.crossed.compact(n_results=2 * n_results))

    def renumbered(self, *layout: Any) -> Self:
        """Return the sums with groups and columns renumbered."""
        items, crossed = (
            sums.renumbered(*layout) for sums in (self.items, self.crossed)
        )
        return replace(super().renumbered(*layout), items=items, crossed=crossed)

    def _with_room_for(self, other: Any) -> tuple[Self, ClusterSums]:
        """Return both sums with room for the columns of both, each way by its own."""
        ways = ((*sums.ways, sums.crossed) for sums in (self, other))
        both = (a._with_room_for(b) for a, b in zip(*ways, strict=True))
        first, second = zip(*both, strict=True)
        return type(self).of_ways(*first), TwoWaySums.of_ways(*second)

    def __add__(self, other: Any) -> ClusterSums:
        """Return the sums over the users of both; items of one label share a row."""
        users = super().__add__(other)
        a, b = (sums.aligned(users.groups) for sums in (self, other))
        items = a.items + b.items
        rows = items.rows.by_label()
        items = replace(items, rows=rows, count=float(rows.n_rows))
        return TwoWaySums.of_ways(users, items, a.crossed + b.crossed)

    def join_columns(self, other: Any) -> Self:
        """Return both sums over the same users and items, side by side."""
        return replace(
            super().join_columns(other),
            items=self.items.join_columns(other.items),
            crossed=self.crossed.join_columns(other.crossed),
        )


def sums_of_rows(
    rows: ScoreRows, sums_over: Callable[[ScoreRows], ClusterSums]
) -> ClusterSums:
    """Return the sums over clusters of rows; two-way sums if the rows name items."""
    if rows.cluster is None or rows.item is None:
        return sums_over(rows)
    ways = rows.cluster, rows.item, rows.cluster.crossed_units(rows.item)
    one_way = [replace(rows, cluster=codes, item=None) for codes in ways]
    return TwoWaySums.of_ways(*map(sums_over, one_way))
