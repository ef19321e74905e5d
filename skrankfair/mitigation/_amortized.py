"""Equity of attention: over many queries, attention in proportion to relevance.

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
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import csr_array, eye_array, kron, vstack

from .._inputs.validation import Array, unique_rows
from ._floors import QueryLists

#: Of rankings of one cost the more useful wins; and what rounding may take from θ.
_TIE, _ROUNDING = 1e-9, 1e-9
#: Candidates times places of a query: 0.8 GB for each table of them.
_LARGEST = 10**8


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
