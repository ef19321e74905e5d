"""Is a group under-represented at some prefix beyond chance? Zehlike et al. 2017."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.arrays import ReadOnlyArrays
from .._inputs.ranking import ranked_data
from .._inputs.validation import Array, check_given, check_number
from ._prefix_counts import CountLattice, PrefixLaw


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
    qid: Array = field(repr=False)
    statistics: Array = field(repr=False)
    pvalues: Array = field(repr=False)
    count: Array = field(repr=False)
    tail: Array = field(repr=False)
    share: float | None

    def __repr__(self) -> str:
        """Return the verdict in two lines."""
        worst = int(np.argmin(self.statistics))
        place = int(np.nanargmin(self.tail[worst])) + 1
        lists = "one list" if self.qid.size == 1 else f"{self.qid.size:,} lists"
        where = "" if self.qid.size == 1 else f" of query {fmt.label(self.qid[worst])}"
        return (
            f"{fmt.label(self.group)} at the top of {lists}: p = "
            f"{fmt.pvalue(self.pvalue)}\nleast likely: {self.count[worst, place - 1]:g}"
            f" in the first {place}{where} (probability {self.statistic:.3g})"
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
        If the group has no row, if `share` is not in (0, 1), or if lists are so long
        that `k` must be given (some thousand places).

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
    a fair list with at most the nominal probability.

    FA*IR's test at level α uses the adjusted α_c that makes the probability of a
    failure nearest to α, and fails where ``statistic <= α_c``; the p-value is the
    probability of failure of the level that the list just fails.

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
    if share is not None:
        check_number(share, "share", 0, 1, inclusive=(False, False))
    if k is not None:
        check_number(k, "k", 1, np.inf, integer=True)
    data = ranked_data(None, y_score, sensitive_features=sensitive_features, qid=qid)
    data = data.with_ties_in_row_order()
    if group not in data.groups.labels:
        raise ValueError(
            f"group must be one of the groups {list(data.groups.labels)}; got {group!r}"
            "."
        )
    member = data.groups.mask(data.groups.labels.index(group))
    ranking = data.ranking
    n_places = np.minimum(ranking.lengths, ranking.lengths.max() if k is None else k)
    chance = np.full((ranking.n_queries, 1), share, dtype=float)
    if share is None:
        chance = np.add.reduceat(member.astype(float), ranking.starts[:-1])[:, None]
    place = np.arange(n_places.max())
    row = ranking.starts[:-1, None] + np.minimum(place, n_places[:, None] - 1)
    count = np.cumsum(member[row], axis=1)
    pvalues, tail = np.empty(ranking.n_queries), np.empty(count.shape)
    for length in np.unique(n_places).tolist():
        lattice, lists = CountLattice.of(length, 1), np.flatnonzero(n_places == length)
        for part in lattice.parts(lists.size):
            some = lists[part]
            pool = ranking.lengths[some] if share is None else None
            law = PrefixLaw(lattice, chance[some], pool)
            every = np.arange(some.size)
            for j, tails in enumerate(law.tails):
                tail[some, j] = tails[every, count[some, j]]
            smallest = tail[some, :length].min(axis=1)
            pvalues[some] = np.minimum(law.failure(smallest), 1.0)
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
