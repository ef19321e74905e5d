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

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import csr_array, eye_array, kron, vstack

from .._inputs.validation import Array

#: Of rankings of one cost the more useful wins; and what rounding may take from θ.
_TIE, _ROUNDING = 1e-9, 1e-9


def amortized_ranks(
    score: Array,
    subject: Array,
    query: Array,
    *,
    weights: Array,
    discounts: Array,
    quality: float,
    attention: Array,
    relevance: Array,
) -> Array:
    """Return the ranks of all rows, query by query, and book them, on clean arrays.

    Parameters
    ----------
    score : ndarray of shape (n,)
        Relevance u, not negative.
    subject : ndarray of shape (n,)
        Codes of the subjects, from 0.
    query : ndarray of shape (n,)
        Query codes 0, 1, ..., Q - 1, ascending: the order in which queries come.
    weights, discounts : ndarray of shape (longest query,)
        What a place is worth as attention, and in DCG.
    quality : float
        The least NDCG of each ranking, θ in [0, 1].
    attention, relevance : ndarray of shape (n_subjects,)
        What was booked before, A and R. Both are changed.

    Returns
    -------
    ndarray of shape (n,)
        The ranks, from 1 in each query.
    """
    ranks = np.empty(query.size, dtype=np.int64)
    ends = np.cumsum(np.bincount(query))
    for first, end in zip(ends - np.bincount(query), ends, strict=True):
        u, label = score[first:end], subject[first:end]
        n = end - first
        given = shares(weights[:n])
        subjects, code, n_each = np.unique(
            label, return_inverse=True, return_counts=True
        )
        relevance[subjects] += np.bincount(code, shares(u))
        due = ((relevance - attention)[subjects] / n_each)[code]
        gain = np.outer(u, discounts[:n])
        best = np.sort(u)[::-1] @ np.sort(discounts[:n])[::-1]
        gain = gain / best if best > 0 else np.ones((n, n))
        # Places worth the same, such as all after the last that counts, are one kind.
        _, kinds, kind = np.unique(
            np.vstack([-given, discounts[:n]]),
            axis=1,
            return_index=True,
            return_inverse=True,
        )
        cost = np.abs(given - due[:, None]) - _TIE * gain
        chosen = _assigned(cost, gain, kinds, kind, quality)
        place = np.empty(n, dtype=np.int64)
        place[np.lexsort((-u, chosen))] = np.argsort(kind, kind="stable")
        attention[subjects] += np.bincount(code, given[place])
        ranks[first:end] = place + 1
    return ranks


def shares(values: Array) -> Array:
    """Return values as shares of their sum; equal shares if all are 0."""
    total = values.sum()
    return values / total if total > 0 else np.full(values.size, 1 / values.size)


def _assigned(
    cost: Array, gain: Array, kinds: Array, kind: Array, quality: float
) -> Array:
    """Return the kind of place of each candidate: least cost with enough gain.

    `kind` is that of each place, and `kinds` is one place of each kind.
    """
    rows = np.arange(len(cost))
    place = linear_sum_assignment(cost)[1]
    if gain[rows, place].sum() >= quality - _ROUNDING:
        return np.asarray(kind[place])
    n_rows, n_kinds = rows.size, kinds.size
    each_row = kron(eye_array(n_rows), np.ones((1, n_kinds)))
    each_kind = kron(np.ones((1, n_rows)), eye_array(n_kinds))
    whole = csr_array(gain[:, kinds].reshape(1, -1))
    counts = np.concatenate([np.ones(n_rows), np.bincount(kind)])
    result: Any = milp(
        cost[:, kinds].ravel(),
        integrality=np.ones(n_rows * n_kinds, dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(
            vstack([each_row, each_kind, whole]),
            np.append(counts, quality - _ROUNDING),
            np.append(counts, np.inf),
        ),
        options={"mip_rel_gap": 0.0},
    )
    return np.asarray(result.x.reshape(n_rows, n_kinds).argmax(axis=1))
