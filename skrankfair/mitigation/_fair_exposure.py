"""Rankings that share exposure fairly: random ones, or over many queries.

Fairness of exposure asks for the most useful random rankings of each query.
A policy for a query of n candidates is a doubly stochastic matrix P: the chance that
candidate i stands at place k. With relevance u and position weights v, Singh and
Joachims (2018) maximise ``uᵀPv`` subject to one equation per group,

    Σ_{i∈g} a_i (Pv)_i = s_g Σ_i a_i (Pv)_i.

- "parity": a = 1, and ``s_g`` is the group's share of the candidates;
- "treatment": a = 1, and ``s_g`` is its share of the relevance;
- "impact": a = u, and ``s_g`` is its share of the relevance.

That is a linear program in n² entries of P. Here it is solved in its equivalent form:
P is a mixture of rankings, ``P = Σ_r w_r Π_r`` (Birkhoff and von Neumann), and the
unknowns are the weights of the rankings, of which few are ever written down. Given the
multipliers y of the equations, the ranking that gains most is the order of
``u_i - a_i (y_g(i) - Σ_h s_h y_h)``, because sums of products are largest if both are
sorted. So rankings are added until none gains (Dantzig and Wolfe's column generation,
which stops at the optimum of the whole program). A vertex of this program mixes at most
as many rankings as the query has groups, and is itself the decomposition to draw from.

Equity of attention asks for attention in proportion to relevance over many queries.
In each query attention and relevance are shares, which sum to 1: ``a_i = v_k / Σ v``
for a candidate at place k, and ``r_i = u_i / Σ u``. Biega, Gummadi and Weikum (2018)
book both to each subject, A and R, and choose for each new query the ranking with the
least

    Σ_i |A_i + a_i - (R_i + r_i)|

among those whose NDCG is at least θ. Each place adds a cost of its own, so that this is
an assignment of candidates to places with one side condition. It is solved without the
condition first, which is fast, and as an integer program if the condition fails.

A subject may have several candidates in one query: a seller, or all films of a genre.
Then what it is due, ``R + Σ r - A``, is shared equally by its candidates. The sum over
candidates is then an upper bound of the sum over subjects, and equal to it where each
subject has one candidate.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import (
    Bounds,
    LinearConstraint,
    linear_sum_assignment,
    linprog,
    milp,
)
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from .._inputs.validation import Array, unique_rows, warn_user
from ._floors import QueryLists

CONSTRAINTS = ("parity", "treatment", "impact")
#: HiGHS's tolerance (with its smallest, 1e-10, it failed on 300 lists of 100), and what
#: a ranking must gain to be added: more than that.
_TOLERANCE, _GAIN = 1e-9, 1e-8
#: Smaller shares are met to this share of the tolerance. Equations in units of shares
#: such as 1e-16 have numbers that HiGHS does not solve.
_LEAST_UNIT = 1e-6
#: Programs of so many rows are solved at a time: five times as many take 1.4 as long.
_ROWS = 1 << 15
#: Chances that are nothing but rounding.
_CHANCE = 1e-13
#: Of rankings of one cost the more useful wins; and what rounding may take from θ.
_TIE, _ROUNDING = 1e-9, 1e-9
#: Candidates times places of a query: 0.8 GB for each table of them.
_LARGEST = 10**8


def drawn_order(
    lists: QueryLists, weights: Array, constraint: str, rng: np.random.Generator
) -> Array:
    """Return the rows of one ranking drawn per query, in its order.

    Places worth the same, as all after the last that counts are, are filled by score.
    """
    order, relaxed = np.arange(lists.n_rows), np.zeros(lists.n_queries)
    for rows, queries, places in lists.spans(_ROWS):
        columns = lists.score[rows], lists.group[rows], lists.n_groups
        some = QueryLists(places.starts, places.tie_starts, *columns)
        ranks, chances, relaxed[queries] = exposure_mixture(some, weights, constraint)
        ends = np.cumsum(chances, axis=0)
        drawn = (ends <= rng.random(some.n_queries) * ends[-1]).sum(axis=0)[some.query]
        worth = weights[ranks[drawn, np.arange(some.n_rows)] - 1]
        by_worth = np.lexsort((-weights[some.position()], some.query))
        order[rows][by_worth] = rows.start + np.lexsort((-worth, some.query))
    if n_relaxed := np.count_nonzero(relaxed):
        warn_user(
            f"Exposure in proportion to relevance is out of reach in {n_relaxed:,} of "
            f"{relaxed.size:,} queries. Their shares of exposure are moved towards the "
            "shares of the candidates as far as is needed, by up to "
            f"{relaxed.max():.1%} of the way.",
            UserWarning,
        )
    return order


def exposure_mixture(
    lists: QueryLists, weights: Array, constraint: str
) -> tuple[Array, Array, Array]:
    """Return the most useful mixture of rankings with fair exposure, on clean arrays.

    Rankings are added until no query gains from another one.

    Parameters
    ----------
    lists : QueryLists
        Their scores are relevance u, not negative for "treatment" and "impact".
    weights : ndarray of shape (longest query,)
        Position weights v.
    constraint : {"parity", "treatment", "impact"}

    Returns
    -------
    ranks : ndarray of shape (R, n)
        R rankings: the ranks of all rows, from 1 in each query.
    chances : ndarray of shape (R, Q)
        Their chances, 0 where a query mixes fewer than R rankings.
    relaxed : ndarray of shape (Q,)
        How much of the way from the shares of relevance to the shares of the candidates
        is needed to make "treatment" feasible; 0 for the others.
    """
    query, n_queries = lists.query, lists.lengths.size
    # Places by their weight; the places of a query are those of its rows.
    place = lists.position()
    by_weight = np.lexsort((place, -weights[place], query))
    value = _in_units(weights[place][by_weight], lists)
    place_number = place[by_weight] + 1
    # The unit of relevance is the query's own. All exposures have one sum, so that only
    # clicks need a zero of relevance.
    score = _in_units(lists.score, lists)
    least = np.minimum.reduceat(score, lists.starts[:-1])[query]
    gain = score if constraint == "impact" else _in_units(score - least, lists)
    amount = gain if constraint == "impact" else np.ones(query.size)
    cells, cell = np.unique(lists.cell, return_inverse=True)
    of = cells // lists.n_groups  # the query of each cell
    share = even = np.bincount(cell) / lists.lengths[of]
    if constraint != "parity":
        merit, total = np.bincount(cell, score), np.bincount(query, score)[of]
        share = np.divide(merit, total, out=even.copy(), where=total > 0)
    relaxed = np.zeros(n_queries)
    if constraint == "treatment":
        relaxed = _least_move(lists, value, of, share, even)
        share += relaxed[of] * (even - share)
    unit = np.maximum(share, _LEAST_UNIT)  # so that small groups count as large ones
    # A stand-in satisfies the equations before rankings do. It is worth less than any
    # ranking, so that it has no weight at the optimum.
    total = np.bincount(query, value)
    stand_in, multiplier = -10 * total - 1, np.zeros(cells.size)
    reached = stand_in.copy()
    ranks: list[Array] = []
    chances = gains = np.zeros((0, n_queries))
    gaps = np.zeros((0, cells.size))
    while True:
        mean = np.bincount(of, share * multiplier)
        adjusted = gain - amount * (multiplier - mean[of])[cell]
        order = np.lexsort((-gain, -adjusted, query))
        exposure, rank = np.empty(order.size), np.empty(order.size, dtype=np.int32)
        exposure[order], rank[order] = value, place_number
        more = np.bincount(query, adjusted * exposure) - reached
        # A known ranking gains nothing but rounding.
        active = more > _GAIN * np.maximum(total, 1.0)
        for known in ranks:
            active &= np.logical_or.reduceat(rank != known, lists.starts[:-1])
        if not active.any():
            break
        ranks.append(rank)
        shared = np.bincount(cell, amount * exposure)
        gaps = np.vstack([gaps, shared - share * np.bincount(of, shared)[of]])
        gains = np.vstack([gains, np.bincount(query, gain * exposure)])
        chances = np.vstack([chances, np.zeros(n_queries)])
        some = active[of]
        chances[:, active], multiplier[some], reached[active] = _best_chances(
            gains[:, active],
            gaps[:, some],
            (np.cumsum(active) - 1)[of[some]],
            stand_in[active],
            unit[some],
        )
    chances[chances < _CHANCE] = 0.0
    return np.array(ranks), chances / chances.sum(axis=0), relaxed


def _least_move(
    lists: QueryLists, value: Array, of: Array, share: Array, even: Array
) -> Array:
    """Return the part of the way to `even` after which rankings can give the shares.

    Some groups together get at most the sum of as many best places as they have items.
    That is a concave function of their number of items, so that only the groups of most
    exposure per item need to be tried, one more at a time. `of` is the query of each
    group's share, and `value` what places are worth, from the best.
    """
    order = np.lexsort((-share / even, of))
    first = np.searchsorted(of, np.arange(lists.lengths.size))[of]
    columns = np.column_stack([even * lists.lengths[of], share, even])[order]
    sums = np.cumsum(columns, axis=0)
    n_first, wanted, of_even = (sums - (sums - columns)[first]).T
    best = np.concatenate([[0.0], np.cumsum(value)])
    start = lists.starts[of]
    total = best[lists.starts[of + 1]] - best[start]
    reachable = best[start + np.rint(n_first).astype(np.int64)] - best[start]
    excess = total * wanted - reachable
    beyond = excess > 1e-12 * total
    move = np.divide(
        excess, total * (wanted - of_even), out=np.zeros(of.size), where=beyond
    )
    return np.minimum(np.maximum.reduceat(move, np.unique(first)), 1.0)


def _in_units(values: Array, lists: QueryLists) -> Array:
    """Return values in units of the largest size in the query."""
    size = np.maximum.reduceat(np.abs(values), lists.starts[:-1])[lists.query]
    return np.divide(values, size, out=np.zeros(values.size), where=size > 0)


def _best_chances(
    gains: Array, gaps: Array, of: Array, stand_in: Array, unit: Array
) -> tuple[Array, Array, Array]:
    """Return the best chances of R known rankings, and the multipliers of the program.

    `gains` has shape (R, Q); `gaps`, shape (R, cells), are the left sides of the
    equations, one for each cell of query `of`, which are solved in a `unit`.
    """
    n_rankings, n_queries = gains.shape
    shape, cells = (of.size, n_queries), np.arange(of.size)
    blocks = [csr_array((gap, (cells, of)), shape=shape) for gap in gaps / unit]
    equations = hstack([*blocks, csr_array(shape)])
    sums = hstack([eye_array(n_queries)] * (n_rankings + 1))
    tolerances = ["primal_feasibility_tolerance", "dual_feasibility_tolerance"]
    program: dict[str, Any] = {
        "c": -np.concatenate([gains.ravel(), stand_in]),
        "A_eq": vstack([equations, sums], format="csr"),
        "b_eq": np.repeat([0.0, 1.0], shape),
        "options": dict.fromkeys(tolerances, _TOLERANCE),
    }
    result: Any = linprog(**program, method="highs")
    if result.status:  # The simplex method may give up, or presolve find no solution.
        program["options"]["presolve"] = False
        result = linprog(**program, method="highs-ipm")
    dual = -result.eqlin.marginals
    chances = np.maximum(result.x[: gains.size].reshape(gains.shape), 0.0)
    return chances, dual[: of.size] / unit, dual[of.size :]


def amortized_order(
    lists: QueryLists, weights: Array, discounts: Array, quality: float, books: Array
) -> Array:
    """Return the rows in the order of least unfairness, query by query, and book it.

    The scores are relevance, not negative, and the groups are the subjects. Places
    worth the same, as all after the last that counts are, are filled by score.

    Parameters
    ----------
    lists : QueryLists
    weights, discounts : ndarray of shape (longest query,)
        What a place is worth as attention, and in DCG.
    quality : float
        The least NDCG of each ranking, θ in [0, 1].
    books : ndarray of shape (2, n_subjects)
        The sums A of attention and R of relevance until now, to which is added.
    """
    attention, booked = books
    order = np.empty(lists.group.size, dtype=np.int64)
    for first, end in pairwise(lists.starts):
        n = end - first
        given, discount = _shares(weights[:n]), discounts[:n]
        subjects, code, n_each = np.unique(
            lists.group[first:end], return_inverse=True, return_counts=True
        )
        relevance = _shares(lists.score[first:end])
        booked[subjects] += np.bincount(code, relevance)
        due = ((booked - attention)[subjects] / n_each)[code]
        best = np.sort(relevance)[::-1] @ np.sort(discount)[::-1]
        kinds, kind = unique_rows(np.column_stack([-given, -discount]))
        if n * len(kinds) > _LARGEST:
            raise ValueError(
                "k must be given for method='amortized' if queries are long; a query "
                f"of {n:,} rows has {len(kinds):,} different places to assign."
            )
        gain = np.outer(relevance, -kinds[:, 1] / (best or 1.0))
        cost = np.abs(due[:, None] + kinds[:, 0]) - _TIE * gain
        chosen = _assigned(cost, gain, np.bincount(kind), quality * (best > 0))
        ranked = np.lexsort((-relevance, chosen))
        places = np.argsort(kind, kind="stable")
        order[first + places] = first + ranked
        attention[subjects] += np.bincount(code[ranked], given[places])
    return order


def _shares(values: Array) -> Array:
    """Return values as shares of their sum; equal shares if all are 0."""
    values = values / (values.max() or 1.0)
    total = values.sum()
    return values / total if total > 0 else np.full(values.size, 1 / values.size)


def _assigned(cost: Array, gain: Array, sizes: Array, quality: float) -> Array:
    """Return the kind of place of each candidate: least cost with enough gain.

    `cost` and `gain` have shape (n, kinds), and `sizes` counts the places of a kind.
    """
    n_rows, n_kinds = cost.shape
    # All candidates start at places of the most frequent kind.
    usual = int(sizes.argmax())
    others = np.where(np.arange(n_kinds) == usual, 0, sizes)
    column = np.repeat(np.arange(n_kinds), others)
    moved, place = linear_sum_assignment(cost[:, column] - cost[:, [usual]])
    chosen = np.full(n_rows, usual)
    chosen[moved] = column[place]
    if gain[np.arange(n_rows), chosen].sum() >= quality - _ROUNDING:
        return chosen
    each_row = kron(eye_array(n_rows), np.ones((1, n_kinds)))
    each_kind = kron(np.ones((1, n_rows)), eye_array(n_kinds))
    counts = np.concatenate([np.ones(n_rows), sizes])
    result: Any = milp(
        cost.ravel(),
        integrality=np.ones(cost.size, dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(
            vstack([each_row, each_kind, csr_array(gain.reshape(1, -1))]),
            np.append(counts, quality - _ROUNDING),
            np.append(counts, np.inf),
        ),
        options={"mip_rel_gap": 0.0},
    )
    return np.asarray(result.x.reshape(cost.shape).argmax(axis=1))
