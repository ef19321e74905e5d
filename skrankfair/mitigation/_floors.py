"""Re-ranking place by place: each place gets the best item of an allowed group.

A plan says which groups are allowed, given how many items of each are placed; the
methods of the greedy family and FA*IR differ in the plan alone. All queries of a block
are filled at once, so that the loop is over places and not over rows.

Geyik, S. C., Ambler, S., Kenthapadi, K. (2019). "Fairness-Aware Ranking in Search &
Recommendation Systems with Application to LinkedIn Talent Search". KDD '19.
Zehlike, M. et al. (2017). "FA*IR: A Fair Top-k Ranking Algorithm". CIKM.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._inputs.groups import stable_order
from .._inputs.ranking import Places
from .._inputs.validation import Array
from ..inference._prefix_test import FairCounts

#: A share times a number of places is taken for an integer if it is so close to one.
_CLOSE = 1e-9
#: The place of an item that does not exist: behind all others.
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class QueryLists(Places):
    """Ranked rows of whole queries, tied ones in the order of the input.

    Attributes
    ----------
    score : ndarray of shape (n,)
    group : ndarray of shape (n,), int
        Group of each row, 0, 1, ..., G - 1.
    n_groups : int
    """

    score: Array
    group: Array
    n_groups: int

    @cached_property
    def cell(self) -> Array:
        """Number of the query and group of each row."""
        return np.multiply(self.query, self.n_groups, dtype=np.int64) + self.group

    @cached_property
    def sizes(self) -> Array:
        """Number of rows by query and group, shape (Q, G)."""
        shape = self.n_queries, self.n_groups
        return np.bincount(self.cell, minlength=shape[0] * shape[1]).reshape(shape)

    @cached_property
    def first(self) -> Array:
        """The first of the rows of each query and group in `by_cell`, (Q, G)."""
        return np.cumsum(self.sizes).reshape(self.sizes.shape) - self.sizes

    @cached_property
    def by_cell(self) -> Array:
        """The rows by query and group, in order, and `_NONE`."""
        return np.append(stable_order(self.cell), _NONE)


@dataclass(frozen=True, eq=False)
class SharePlan:
    """Floors ``⌊p j⌋`` and ceilings ``⌈p j⌉`` of the counts in the first j places.

    Attributes
    ----------
    share : ndarray of shape (1, G) or (Q, G)
        Target shares p.
    method : {"det_greedy", "det_cons", "det_relaxed", "det_const_sort"}
        Which of the groups between floor and ceiling comes next: any, that with the
        least ``⌈p j⌉ / p``, or that with the least ``⌈⌈p j⌉ / p⌉``. `const_sort` asks
        for the shares alone.
    """

    share: Array
    method: str

    def floor(self, place: int) -> Array:
        """Return the least counts after a place (from 0)."""
        return np.floor(self.share * (place + 1) + _CLOSE)

    def allowed(self, place: int, count: Array, available: Array) -> Array:
        """Return a mask of the groups that may have a place after these counts."""
        below = available & (count < self.floor(place))
        ceiling = np.ceil(self.share * (place + 1) - _CLOSE)
        between = available & (count < ceiling)
        if self.method != "det_greedy":
            with np.errstate(divide="ignore", invalid="ignore"):
                until = ceiling / self.share
            if self.method == "det_relaxed":
                until = np.ceil(until - _CLOSE)
            until = np.where(between, until, np.inf)
            between &= until <= until.min(axis=1, keepdims=True) * (1 + _CLOSE)
        return np.where(below.any(axis=1, keepdims=True), below, between)

    def missing(self, place: int, count: Array) -> Array:
        """Return the number of items that each group lacks after a place, (Q, G)."""
        return np.maximum(self.floor(place) - count, 0.0)


@dataclass(frozen=True, eq=False)
class CountPlan:
    """Counts of protected groups that pass the test of every prefix.

    Attributes
    ----------
    counts : FairCounts
    protected : ndarray of shape (P,), int
        Their groups.
    pool : ndarray of shape (1,) or (Q,), int
        The row of the tables in `counts`.
    """

    counts: FairCounts
    protected: Array
    pool: Array

    def allowed(self, place: int, count: Array, available: Array) -> Array:
        """Return a mask of the groups that may have a place after these counts."""
        lattice, fair = self.counts.lattice, self.counts.fair
        state = lattice.find(count[:, self.protected])
        passes = np.zeros_like(available) | fair[self.pool, place, state][:, None]
        for g, group in enumerate(self.protected):
            passes[:, group] |= fair[self.pool, place, lattice.above[state, g]]
        return passes & available

    def missing(self, place: int, count: Array) -> Array:
        """Return the number of items that each group lacks after a place, (Q, G)."""
        out = np.zeros(count.shape)
        members = count[:, self.protected]
        least = self.counts.least[self.pool, place]
        out[:, self.protected] = np.maximum(least - members, 0)
        state = self.counts.lattice.find(members)
        dead_end = ~self.counts.fair[self.pool, place, state] & ~out.any(axis=1)
        out[np.ix_(dead_end, self.protected)] = 1.0
        return out


#: The rule of the groups that may have a place, and of the items that a group lacks.
Plan = SharePlan | CountPlan


def fill(lists: QueryLists, k: int, plan: Plan) -> Array:
    """Return all rows in the order in which allowed groups fill the first k places.

    Where no allowed group has an item left, the best of all items is taken. Items
    without a place among the first k follow, ranked as they were.
    """
    count, every = np.zeros_like(lists.sizes), np.arange(lists.n_queries)
    chosen = np.full((lists.n_queries, k), _NONE)
    for place in range(k):
        # The next row of each query and group, after those that are placed.
        available = count < lists.sizes
        following = np.where(available, lists.by_cell[lists.first + count], _NONE)
        allowed = plan.allowed(place, count, available)
        allowed |= available & ~allowed.any(axis=1, keepdims=True)
        following[~allowed] = _NONE
        group = following.argmin(axis=1)
        row = following[every, group]
        chosen[:, place] = row
        count[every, group] += row < _NONE
    return _in_order(lists, chosen)


def const_sort(lists: QueryLists, k: int, plan: SharePlan) -> Array:
    """Return all rows in the order of DetConstSort, which sorts the first k places.

    Where the floor of a group rises, its next item takes the first empty place and then
    climbs over items that are ranked lower, as long as these stay within their limits:
    the places up to which their own floors let them fall.
    """
    sizes, rows = lists.sizes.ravel(), lists.by_cell[:-1]
    share = np.repeat(np.broadcast_to(plan.share, lists.sizes.shape), sizes)
    number = np.arange(1, rows.size + 1) - np.repeat(lists.first, sizes)
    with np.errstate(divide="ignore"):
        rise = np.ceil(number / share - _CLOSE)
    order, place = np.lexsort((rows, rise, lists.query[rows])), lists.position()
    taken = (place < k) & np.isfinite(rise[order])
    order, cell = order[taken], (lists.query[taken], place[taken])
    chosen = np.full((lists.n_queries, k), _NONE)
    limit = np.zeros(chosen.shape)
    chosen[cell], limit[cell] = rows[order], rise[order] - 1
    for last in range(1, k):
        active = np.flatnonzero(chosen[:, last] < _NONE)
        place = np.full(active.size, last)
        while active.size:
            above = place - 1
            climbs = (place > 0) & (chosen[active, above] > chosen[active, place])
            climbs &= limit[active, above] >= place
            active, place, above = active[climbs], place[climbs], above[climbs]
            for table in (chosen, limit):
                pair = table[active, place], table[active, above]
                table[active, above], table[active, place] = pair
            place = above
    return _in_order(lists, chosen)


def shortage(lists: QueryLists, order: Array, k: int, plan: Plan) -> Array:
    """Return the most items that each group lacks in any of k prefixes, (Q, G)."""
    count, most = np.zeros_like(lists.sizes), np.zeros(lists.sizes.shape)
    for place in range(k):
        some = np.flatnonzero(place < lists.lengths)
        count[some, lists.group[order[lists.starts[some] + place]]] += 1
        most[some] = np.maximum(most, plan.missing(place, count))[some]
    return most


def _in_order(lists: QueryLists, chosen: Array) -> Array:
    """Return the chosen rows of each query, and then the others, ranked as before."""
    query, place = np.nonzero(chosen < _NONE)
    n_places = chosen.shape[1]
    key = np.multiply(lists.query, n_places + 1, dtype=np.int64) + n_places
    key[chosen[query, place]] -= n_places - place
    return stable_order(key)


def reassigned(lists: QueryLists, order: Array) -> Array:
    """Return new scores by place that fall strictly along the new order.

    The scores of each query are kept and change hands. Where equal ones would tie
    items of other groups, or items that were not tied, the lower ones become smaller by
    the last bit.
    """
    group, before, score = lists.group[order], lists.score[order], lists.score.copy()
    tied = np.append(False, np.diff(lists.tie) == 0)
    stays = (group[1:] == group[:-1]) & (before[1:] == before[:-1])
    stays = tied & np.append(False, stays)
    if (tied == stays).all():
        return score
    for place in range(1, int(lists.lengths.max())):
        row = lists.starts[:-1][lists.lengths > place] + place
        above = score[row - 1]
        lower = np.where(stays[row], above, np.nextafter(above, -np.inf))
        score[row] = np.minimum(score[row], lower)
    return score
