"""Fairness of exposure: the most useful random rankings that share exposure fairly.

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
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from .._inputs.validation import Array, warn_user
from ._floors import Lists

CONSTRAINTS = ("parity", "treatment", "impact")
#: HiGHS's smallest tolerance, and what a ranking must gain to be added: more than that.
_TOLERANCE, _GAIN = 1e-10, 1e-9
#: Queries solved together. 1,000 queries of 20 candidates in two groups took 0.8 s of
#: CPU with 20, 0.3 s with 100, 0.2 s with 250 or 1,000; in five groups 4.7, 2.8, 2.7
#: and 3.2 s.
_TOGETHER = 250
#: Chances that are nothing but rounding.
_CHANCE = 1e-13


@dataclass(frozen=True)
class Mixture:
    """R rankings of each of Q queries, with their chances."""

    ranks: Array  # shape (R, n): the ranks of all rows, from 1 in each query
    chances: Array  # shape (R, Q): 0 where a query mixes fewer than R rankings
    #: Shape (Q,): how far the shares moved towards those of the candidates, to be met.
    relaxed: Array

    def draw(self, query: Array, rng: np.random.Generator) -> Array:
        """Return the ranks of the rows in one ranking drawn per query."""
        ends = np.cumsum(self.chances, axis=0)
        drawn = rng.random(ends.shape[1]) * ends[-1]
        return self.ranks[(ends <= drawn).sum(axis=0)[query], np.arange(query.size)]


@dataclass(frozen=True, eq=False)
class ExposurePlan:
    """What exposure is to be shared how; `relaxed` collects that of the mixtures."""

    weights: Array
    constraint: str
    rng: np.random.Generator
    relaxed: list[Array] = field(default_factory=list)

    def warn(self) -> None:
        """Warn if exposure in proportion to relevance is out of reach."""
        relaxed = np.concatenate(self.relaxed)
        if n_queries := np.count_nonzero(relaxed):
            warn_user(
                f"Exposure in proportion to relevance is out of reach in {n_queries:,} "
                f"of {relaxed.size:,} queries. Their shares of exposure are moved "
                "towards the shares of the candidates as far as is needed, by up to "
                f"{relaxed.max():.1%} of the way.",
                UserWarning,
            )


def drawn_order(lists: Lists, k: int, plan: ExposurePlan) -> Array:
    """Return the rows of one ranking drawn per query, in its order.

    Places worth the same, as all after the first `k` are, are filled by score.
    """
    mixture = exposure_mixture(
        lists.score, lists.group, lists.query, plan.weights, plan.constraint
    )
    plan.relaxed.append(mixture.relaxed)
    ranks = mixture.draw(lists.query, plan.rng)
    row = np.arange(ranks.size)
    place = row - lists.starts[lists.query]
    order = np.empty_like(row)
    by_worth = np.lexsort((-plan.weights[place], lists.query))
    order[by_worth] = np.lexsort((-plan.weights[ranks - 1], lists.query))
    return order


def exposure_mixture(
    score: Array, group: Array, query: Array, weights: Array, constraint: str
) -> Mixture:
    """Return the most useful mixture of rankings with fair exposure, on clean arrays.

    Parameters
    ----------
    score : ndarray of shape (n,)
        Relevance u; not negative for "treatment" and "impact".
    group : ndarray of shape (n,)
        Group codes from 0.
    query : ndarray of shape (n,)
        Query codes 0, 1, ..., Q - 1, ascending.
    weights : ndarray of shape (longest query,)
        Position weights v.
    constraint : {"parity", "treatment", "impact"}

    Returns
    -------
    Mixture
    """
    starts = np.searchsorted(query, np.arange(0, query[-1] + 1 + _TOGETHER, _TOGETHER))
    parts = [
        _Program(score[a:b], group[a:b], query[a:b] - query[a], weights, constraint)
        for a, b in pairwise(starts)
        if b > a
    ]
    mixtures = [part.solved() for part in parts]
    n_rankings = max(len(mixture.ranks) for mixture in mixtures)

    def joined(arrays: list[Array]) -> Array:
        pads = [((0, n_rankings - len(array)), (0, 0)) for array in arrays]
        return np.hstack([np.pad(*pair) for pair in zip(arrays, pads, strict=True)])

    return Mixture(
        joined([mixture.ranks for mixture in mixtures]),
        joined([mixture.chances for mixture in mixtures]),
        np.concatenate([mixture.relaxed for mixture in mixtures]),
    )


class _Program:
    """The linear programs of some queries, solved together."""

    def __init__(
        self, score: Array, group: Array, query: Array, weights: Array, constraint: str
    ) -> None:
        self.query, self.lengths = query, np.bincount(query)
        self.starts = np.cumsum(self.lengths) - self.lengths
        score = _in_units(score, query, self.starts)
        # Places by their weight; the places of a query are those of its rows.
        place = np.arange(query.size) - self.starts[query]
        self.places = np.lexsort((place, -weights[place], query))
        self.worth = weights[place][self.places]
        cells, self.cell = np.unique(
            query * (int(group.max()) + 1) + group, return_inverse=True
        )
        self.cell_query = cells // (int(group.max()) + 1)
        n_items = np.bincount(self.cell)
        merit = np.bincount(self.cell, score)
        total = np.bincount(query, score)[self.cell_query]
        self.share = even = n_items / self.lengths[self.cell_query]
        if constraint != "parity":
            self.share = np.divide(merit, total, out=even.copy(), where=total > 0)
        self.relaxed = np.zeros(self.lengths.size)
        if constraint == "treatment":
            self._relax(n_items, even)
        # The unit of relevance is the query's own. All exposures have one sum, so that
        # only clicks need a zero of relevance.
        least = np.minimum.reduceat(score, self.starts)
        gain = score if constraint == "impact" else score - least[query]
        self.gain = _in_units(gain, query, self.starts)
        self.amount = self.gain if constraint == "impact" else np.ones(query.size)
        self.value = _in_units(self.worth, query, self.starts)

    def _relax(self, n_items: Array, even: Array) -> None:
        """Move the shares of exposure towards `even` until rankings can give them.

        Some groups together get at most the sum of as many best places as they have
        items. That is a concave function of their items, so that only the groups of
        most exposure per item need to be tried, as many as they are.
        """
        order = np.lexsort((-self.share / even, self.cell_query))
        first = np.searchsorted(self.cell_query, np.arange(self.lengths.size))

        def cumulated(values: Array) -> Array:
            sums = np.cumsum(values[order])
            return sums - (sums - values[order])[first][self.cell_query]

        n_first = np.rint(cumulated(n_items)).astype(np.int64)
        best = np.cumsum(self.worth)
        before = (best - self.worth)[self.starts][self.cell_query]
        best_places = best[self.starts[self.cell_query] + n_first - 1] - before
        total = np.bincount(self.query, self.worth)[self.cell_query]
        wanted, of_even = total * cumulated(self.share), total * cumulated(even)
        excess = wanted - best_places
        excess[excess <= 1e-12 * total] = 0.0
        part = np.divide(
            excess, wanted - of_even, out=np.zeros(excess.size), where=excess > 0
        )
        np.maximum.at(self.relaxed, self.cell_query, part)
        self.relaxed = np.minimum(self.relaxed, 1.0)
        part = self.relaxed[self.cell_query]
        self.share = (1 - part) * self.share + part * even

    def solved(self) -> Mixture:
        """Return the optimum: add rankings until no query gains from another one."""
        n_queries, n_cells = self.lengths.size, self.share.size
        chances, ranks = np.zeros((0, n_queries)), []
        gains, gaps = np.zeros((0, n_queries)), np.zeros((0, n_cells))
        multiplier = np.zeros(n_cells)
        # A stand-in satisfies the equations before rankings do. It is worth less than
        # any ranking, so that it has no weight at the optimum.
        total = np.bincount(self.query, self.value)
        stand_in = -10 * total - 1
        reached = stand_in.copy()
        while True:
            mean = np.bincount(self.cell_query, self.share * multiplier)
            offset = (multiplier - mean[self.cell_query])[self.cell]
            adjusted = self.gain - self.amount * offset
            order = np.lexsort((-self.gain, -adjusted, self.query))
            exposure = np.empty(order.size)
            exposure[order] = self.value
            gain = np.bincount(self.query, adjusted * exposure) - reached
            active = gain > _GAIN * np.maximum(total, 1.0)
            if not active.any():
                break
            rank = np.empty(order.size, dtype=np.int32)
            rank[order] = self.places - self.starts[self.query] + 1
            ranks.append(rank)
            amount = np.bincount(self.cell, self.amount * exposure)
            whole = np.bincount(self.cell_query, amount)[self.cell_query]
            gaps = np.vstack([gaps, amount - self.share * whole])
            worth = np.bincount(self.query, self.gain * exposure)
            gains = np.vstack([gains, worth])
            chances = np.vstack([chances, np.zeros(n_queries)])
            cells = active[self.cell_query]
            solution = _master(
                gains[:, active],
                gaps[:, cells],
                (np.cumsum(active) - 1)[self.cell_query[cells]],
                stand_in[active],
            )
            chances[:, active], multiplier[cells], reached[active] = solution
        chances[chances < _CHANCE] = 0.0
        likely = np.argsort(-chances, axis=0, kind="stable")
        likely = likely[: (chances > 0).sum(axis=0).max()]
        chances = np.take_along_axis(chances, likely, axis=0)
        return Mixture(
            np.take_along_axis(np.array(ranks), likely[:, self.query], axis=0),
            chances / chances.sum(axis=0),
            self.relaxed,
        )


def _in_units(values: Array, query: Array, starts: Array) -> Array:
    """Return values in units of the largest size in the query."""
    size = np.maximum.reduceat(np.abs(values), starts)[query]
    return np.divide(values, size, out=np.zeros(values.size), where=size > 0)


def _master(
    gains: Array, gaps: Array, cell_query: Array, stand_in: Array
) -> tuple[Array, Array, Array]:
    """Return the best chances of the known rankings, and the multipliers.

    `gains` has shape (R, Q), `gaps` shape (R, cells): the left sides of the equations.
    """
    n_rankings, n_queries = gains.shape
    n_cells = cell_query.size
    column = np.arange(n_rankings * n_queries).reshape(n_rankings, n_queries)
    every = np.arange((n_rankings + 1) * n_queries)
    rows = np.concatenate(
        [np.tile(np.arange(n_cells), n_rankings), n_cells + every % n_queries]
    )
    columns = np.concatenate([column[:, cell_query].ravel(), every])
    values = np.concatenate([gaps.ravel(), np.ones(every.size)])
    tolerances = ["primal_feasibility_tolerance", "dual_feasibility_tolerance"]
    program: dict[str, Any] = {
        "c": -np.concatenate([gains.ravel(), stand_in]),
        "A_eq": coo_array((values, (rows, columns))).tocsr(),
        "b_eq": np.repeat([0.0, 1.0], [n_cells, n_queries]),
        "options": dict.fromkeys(tolerances, _TOLERANCE),
    }
    result: Any = linprog(**program, method="highs")
    chances = np.maximum(result.x[: column.size].reshape(column.shape), 0.0)
    dual = -result.eqlin.marginals
    return chances, dual[:n_cells], dual[n_cells:]
