"""Is a group under-represented at some prefix beyond chance? Zehlike et al. 2017.

The test needs the exact laws of the counts of groups in every prefix of a random list.

A state is the number of members of each of P groups among the places filled so far. The
law of the next place depends on the state alone, so the distribution at each length
follows from that one place before, and so does the chance that no prefix until then was
too poor. Both cost one step per place and state, with no simulation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import Any

import numpy as np
from scipy import special

from .._estimates import formatting as fmt
from .._estimates.arrays import ReadOnlyArrays
from .._inputs.groups import number_of
from .._inputs.ranking import ranked_data
from .._inputs.validation import Array, check_given, check_number, warn_user
from ..exceptions import SmallSampleWarning

#: Distributions of all prefixes must have at most so many numbers, of 8 bytes.
_MOST = 20_000_000
#: Distributions of several pools are worked on at a time, with so many numbers.
_AT_A_TIME = 1 << 22
#: Probabilities within this factor of each other count as equal.
_SLACK = 1 + 1e-12
#: Halvings of [0, alpha] in the search of a level, which make about that slack.
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class CountLattice:
    """The counts of P groups in lists of at most k places, sorted as in `find`.

    Attributes
    ----------
    k : int
    states : ndarray of shape (n, P), int
    sizes : ndarray of shape (k + 1,), int
        How many states have a sum of at most 0, 1, ..., k: the first ones.
    """

    k: int
    states: Array
    sizes: Array

    @classmethod
    def of(cls, k: int, n_groups: int) -> CountLattice:
        """Return the states; a ValueError if there are too many."""
        if (n_numbers := comb(k + n_groups + 1, n_groups + 1)) > _MOST:
            raise ValueError(
                f"k must be smaller for exact counts of {n_groups} groups, or there "
                f"must be fewer groups: lists of k={k:,} places take {n_numbers:,} "
                f"numbers, and at most {_MOST:,} are held."
            )
        states = np.zeros((1, 0), dtype=np.int64)
        for _ in range(n_groups):
            times = k + 1 - states.sum(axis=1)
            value = np.concatenate([np.arange(n) for n in times])
            states = np.column_stack([np.repeat(states, times, axis=0), value])
        totals = np.cumsum(states, axis=1)
        sizes = np.cumsum(np.bincount(totals[:, -1], minlength=k + 1))
        return cls(k, states[np.lexsort(totals.T)], sizes)

    def parts(self, n_lists: int) -> Iterator[slice]:
        """Yield parts of lists whose distributions are held at a time."""
        size = max(1, _AT_A_TIME // int(self.sizes.sum()))
        for start in range(0, n_lists, size):
            yield slice(start, start + size)

    @cached_property
    def _before(self) -> Array:
        """How many states of g + 1 groups have a smaller sum, shape (k + 1, P)."""
        total, g = np.ogrid[: self.k + 1, : self.states.shape[1]]
        return special.comb(total + g, g + 1).astype(np.int64)

    def find(self, counts: Array) -> Array:
        """Return the numbers of states, given their counts, shape (..., P).

        States are sorted by the sum of all groups, then of all but the last, and so on.
        """
        totals = np.cumsum(counts, axis=-1)
        return self._before[totals, np.arange(totals.shape[-1])].sum(axis=-1)

    @cached_property
    def above(self) -> Array:
        """The state with one more member of each group, shape (n_below_k, P)."""
        below, n_groups = self.states[: self.sizes[-2]], self.states.shape[1]
        one = np.eye(n_groups, dtype=np.int64)
        return np.column_stack([self.find(below + more) for more in one])

    @cached_property
    def _lines(self) -> list[tuple[Array, Array, Array]]:
        """By group: the states by line along it, and starts and lengths of the lines.

        A line is of states that differ in the count of this group alone.
        """
        lines = []
        for g in range(self.states.shape[1]):
            others = np.delete(self.states, g, axis=1)
            order = np.lexsort((self.states[:, g], *others.T))
            starts = np.flatnonzero(self.states[order, g] == 0)
            lines.append((order, starts, np.diff(starts, append=len(order))))
        return lines

    def cumulated(self, mass: Array) -> Array:
        """Return P(X_1 <= c_1, ..., X_P <= c_P) of distributions, shape (B, n_j)."""
        out = np.zeros((len(mass), len(self.states)))
        out[:, : mass.shape[1]] = mass
        for order, starts, lengths in self._lines:
            values = out[:, order]
            sums = np.cumsum(values, axis=1)
            before = (sums - values)[:, starts]
            out[:, order] = sums - np.repeat(before, lengths, axis=1)
        return out[:, : mass.shape[1]]


@dataclass(frozen=True, eq=False)
class PrefixLaw:
    """The law of the counts of P groups in B lists, place by place.

    Attributes
    ----------
    lattice : CountLattice
    share : ndarray of shape (B, P)
        Chance that a place has a member of the group; with a finite pool the number of
        the group's candidates.
    pool : ndarray of shape (B,) or None
        The number of all candidates, who are drawn without replacement; None if a
        place does not depend on those before.
    length : ndarray of shape (B,)
        The number of places of each list.
    """

    lattice: CountLattice
    share: Array
    pool: Array | None
    length: Array

    def step(self, mass: Array, place: int) -> Array:
        """Return the distribution after one more place, of the one before it."""
        lattice, n_states = self.lattice, self.lattice.sizes[place]
        chance = self.share[:, :, None]
        if self.pool is not None:
            left = (self.pool - place)[:, None, None]
            chance = (chance - lattice.states[:n_states].T) / np.maximum(left, 1)
            chance = np.where(left > 0, np.maximum(chance, 0.0), 0.0)
        out = np.zeros((len(mass), lattice.sizes[place + 1]))
        out[:, :n_states] = mass * np.maximum(1.0 - chance.sum(axis=1), 0.0)
        for g in range(chance.shape[1]):
            out[:, lattice.above[:n_states, g]] += mass * chance[:, g]
        return out

    @cached_property
    def tails(self) -> list[Array]:
        """P(X <= c) in prefixes of 1, 2, ..., k places, each of shape (B, n_j)."""
        mass, tails = np.ones((len(self.share), 1)), []
        for place in range(self.lattice.k):
            mass = self.step(mass, place)
            tails.append(self.lattice.cumulated(mass))
        return tails

    def failure(self, level: Array) -> Array:
        """Return the chance that the tail of some prefix is at most a level.

        Parameters
        ----------
        level : ndarray of shape (B,)

        Returns
        -------
        ndarray of shape (B,)
        """
        mass, failed = np.ones((len(self.share), 1)), np.zeros(len(self.share))
        for place, tail in enumerate(self.tails):
            mass = self.step(mass, place)
            poor = (tail <= level[:, None] * _SLACK) & (place < self.length[:, None])
            failed += (mass * poor).sum(axis=1)
            mass[poor] = 0.0
        return failed

    def adjusted(self, alpha: float) -> tuple[Array, Array]:
        """Return the levels whose chance of failure is nearest to alpha, and these.

        The chance is a step function of the level. No level is above alpha, so that no
        prefix is tested more strictly than alone. Of the levels of the right step,
        the first that halving [0, alpha] meets is returned, as in Zehlike et al.
        """
        n = len(self.share)
        ends, rows = np.array([[0.0] * n, [alpha] * n]), np.arange(n)
        levels, failed = ends.copy(), np.array([[-np.inf] * n, [np.inf] * n])
        level, steps = ends[1], np.concatenate(self.tails, axis=1)
        for _ in range(_HALVINGS):
            chance = self.failure(level)
            side = (chance > alpha).astype(int)
            first = failed[side, rows] != chance
            levels[side[first], rows[first]] = level[first]
            failed[side, rows], ends[side, rows] = chance, level
            level = ends.mean(axis=0)
            low, high = ends[..., None] * _SLACK
            n_left = ((steps > low) & (steps <= high)).sum(axis=1)
            if (n_left < 2).all() and np.isfinite(failed[0]).all():
                break
        nearest = (failed[1] - alpha < alpha - failed[0]).astype(int)
        return levels[nearest, rows], failed[nearest, rows]


@dataclass(frozen=True, eq=False)
class FairCounts:
    """The counts that pass the tests of all prefixes together, of B lists.

    Attributes
    ----------
    lattice : CountLattice
    alpha : ndarray of shape (B,)
        The adjusted significance of the test of a single prefix.
    failure_probability : ndarray of shape (B,)
        The chance that a fair list fails at some prefix.
    fair : ndarray of shape (B, k, n), bool
        Whether each state passes at each place.
    """

    lattice: CountLattice
    alpha: Array
    failure_probability: Array
    fair: Array

    @classmethod
    def of(cls, length: Array, share: Array, pool: Any, alpha: float) -> FairCounts:
        """Return the counts, with alpha adjusted to the tests of all prefixes."""
        k = int(length.max())
        lattice = CountLattice.of(k, share.shape[1])
        if share.shape[0] * k * len(lattice.states) > 10 * _MOST:
            raise ValueError(
                f"k must be smaller: the queries have {len(share):,} different pools "
                f"or lengths, of {k * len(lattice.states):,} counts each. Pass k, or "
                "targets other than 'candidates'."
            )
        levels, failed = np.empty((2, len(share)))
        fair = np.zeros((len(share), k, len(lattice.states)), dtype=bool)
        for some in lattice.parts(len(share)):
            drawn = None if pool is None else pool[some]
            law = PrefixLaw(lattice, share[some], drawn, length[some])
            levels[some], failed[some] = law.adjusted(alpha)
            for place, tail in enumerate(law.tails):
                passes = tail > levels[some, None] * _SLACK
                fair[some, place, : tail.shape[1]] = passes
        return cls(lattice, levels, failed, fair)

    @cached_property
    def least(self) -> Array:
        """The fewest members of each group that pass at each place, (B, k, P)."""
        counts, k = self.lattice.states.T, self.lattice.k
        least = [np.where(self.fair, count, k).min(axis=2) for count in counts]
        return np.stack(least, axis=-1)


@lru_cache(maxsize=4)
def fair_counts(
    lengths: tuple[int, ...], shares: tuple[float, ...], alpha: float
) -> FairCounts:
    """Return the counts of lists whose places do not depend on each other."""
    share = np.array([shares] * len(lengths))
    return FairCounts.of(np.array(lengths), share, None, alpha)


@dataclass(frozen=True, eq=False)
class PrefixTest(ReadOnlyArrays):
    """Result of `prefix_test`; arrays have one row per list, k places wide.

    Attributes
    ----------
    group : hashable
    statistic : float
        The smallest probability, over all lists and prefixes, that a random list has
        as few members of the group in the prefix as were observed, or fewer.
    pvalue : float
        P-value of the hypothesis that all lists are random orders: the smallest of
        `pvalues` times the number of lists (Bonferroni), at most 1.
    qid : ndarray of shape (Q,)
        The label of the query of each list.
    statistics, pvalues : ndarray of shape (Q,)
        Statistic and exact p-value of each list; a p-value is not corrected for the
        number of lists.
    count : ndarray of shape (Q, k)
        Members of the group in each prefix; NaN after the end of a list.
    tail : ndarray of shape (Q, k)
        Probability of as few members in the prefix or fewer; NaN after the end.
    share : float or None
        The share of the group that was tested; None if that of each list's candidates.
    """

    group: Hashable
    statistic: float
    pvalue: float
    qid: Array
    statistics: Array
    pvalues: Array
    count: Array
    tail: Array
    share: float | None

    def __repr__(self) -> str:
        """Return the verdict in two lines."""
        worst = int(np.argmin(self.statistics))
        place = int(np.nanargmin(self.tail[worst])) + 1
        lists = "one list" if self.qid.size == 1 else f"{self.qid.size:,} lists"
        where = "" if self.qid.size == 1 else f" of query {fmt.label(self.qid[worst])}"
        return (
            f"{fmt.label(self.group)} at the top of {lists}: "
            f"{fmt.pvalue_in_text(self.pvalue)}\nleast likely: "
            f"{self.count[worst, place - 1]:g} in the first {place}{where} "
            f"(probability {self.statistic:.3g})"
        )


def prefix_test(
    y_score: Any,
    *,
    sensitive_features: Any,
    group: Hashable,
    qid: Any = None,
    share: float | None = None,
    k: int | None = None,
) -> PrefixTest:
    """Test whether a group is under-represented in some prefix of a list.

    Parameters
    ----------
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. Tied items are in row order.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    group : hashable
        The protected group: one of the labels.
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    share : float or None, default=None
        The chance that a place goes to a member of the group in a fair list, whoever
        has the others: the share of the group among all who might have applied. None:
        a fair list is a random order of its own candidates, so that the pool is finite.
    k : int or None, default=None
        How many positions count, from the top. None counts all.

    Returns
    -------
    PrefixTest

    Raises
    ------
    ValueError
        If `group` is no label, if columns have different lengths or scores are not
        finite, if `share` is not in (0, 1), or if lists are so long that `k` must be
        given (some thousand places).

    Warns
    -----
    SmallSampleWarning
        If no order of any of several lists is unlikely enough for a p-value below 5%.

    See Also
    --------
    skrankfair.mitigation.FairReranker : ``method="fa_ir"`` re-ranks such lists.
    monotonicity_test : Looks at the shares of a group at all positions of many lists.

    Notes
    -----
    With c_j members among the first j places, the statistic of a list is
    ``min_j P(X_j <= c_j)``. X_j is binomial with `share`; without it, hypergeometric:
    j draws without replacement from the candidates of the list. The p-value is the
    probability that the smallest tail of a fair list is as small, which the
    recursion over places gives exactly. As the statistic is discrete, the test rejects
    a fair list with at most the nominal probability. The p-value of all lists holds
    however they depend on each other, and asks for one list that is unlikely by itself:
    of many short lists there may be none.

    FA*IR's test at level α uses the adjusted α_c, of those up to α, that makes the
    probability of a failure nearest to α, and fails where ``statistic <= α_c``; the
    p-value is the probability of failure of the level that the list just fails.

    References
    ----------
    Zehlike, M., Bonchi, F., Castillo, C., Hajian, S., Megahed, M., Baeza-Yates, R.
    (2017). "FA*IR: A Fair Top-k Ranking Algorithm". CIKM. §4.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import prefix_test
    >>> gender = np.array(["m", "m", "m", "m", "m", "f", "m", "f", "f", "f"])
    >>> score = np.arange(10, 0, -1)
    >>> prefix_test(score, sensitive_features=gender, group="f")
    f at the top of one list: p = 0.024
    least likely: 0 in the first 5 (probability 0.0238)
    >>> prefix_test(score, sensitive_features=gender, group="f", share=0.4)
    f at the top of one list: p = 0.111
    least likely: 0 in the first 5 (probability 0.0778)
    """
    check_given(sensitive_features=sensitive_features, group=group)
    check_number(share, "share", 0, 1, inclusive=(False, False), optional=True)
    check_number(k, "k", 1, np.inf, integer=True, optional=True)
    data = ranked_data(None, y_score, sensitive_features=sensitive_features, qid=qid)
    data = data.with_ties_in_row_order()
    member = data.groups.mask(number_of(group, data.groups.labels, "group"))
    ranking = data.ranking
    n_places = np.minimum(ranking.lengths, ranking.lengths.max() if k is None else k)
    chance = np.full((ranking.n_queries, 1), share, dtype=float)
    if share is None:
        chance = np.add.reduceat(member.astype(float), ranking.starts[:-1])[:, None]
    place = np.arange(n_places.max())
    row = ranking.starts[:-1, None] + np.minimum(place, n_places[:, None] - 1)
    count = np.cumsum(member[row], axis=1)
    pvalues, tail, least = np.empty(ranking.n_queries), np.empty(count.shape), 1.0
    for length in np.unique(n_places).tolist():
        lattice, lists = CountLattice.of(length, 1), np.flatnonzero(n_places == length)
        for part in lattice.parts(lists.size):
            some = lists[part]
            pool = ranking.lengths[some] if share is None else None
            law = PrefixLaw(lattice, chance[some], pool, n_places[some])
            every = np.arange(some.size)
            for j, tails in enumerate(law.tails):
                tail[some, j] = tails[every, count[some, j]]
            smallest = tail[some, :length].min(axis=1)
            pvalues[some] = np.minimum(law.failure(smallest), 1.0)
            nobody = np.stack([tails[:, 0] for tails in law.tails])
            least = nobody.min(where=nobody > 0, initial=least)
    if pvalues.size > 1 and least * pvalues.size > 0.05:
        warn_user(
            "prefix_test cannot reject at 5%: the least likely order has a probability "
            f"of {least:.2g} in a list, times {pvalues.size:,} lists. monotonicity_test"
            " looks at the positions of all lists together.",
            SmallSampleWarning,
        )
    count = np.where(place < n_places[:, None], count, np.nan)
    tail[np.isnan(count)] = np.nan
    statistics = np.nanmin(tail, axis=1)
    return PrefixTest(
        group=group,
        statistic=float(statistics.min()),
        pvalue=min(1.0, float(pvalues.min()) * pvalues.size),
        qid=data.query_labels,
        statistics=statistics,
        pvalues=pvalues,
        count=count,
        tail=tail,
        share=share,
    )
