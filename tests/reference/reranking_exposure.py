"""Fairness of exposure and equity of attention, written from their definitions."""

import itertools

from scipy.optimize import linprog


def equations(u, g, v, constraint):
    """Left sides over the entries P[i, k], and how they change towards equal shares.

    Per group: Σ_i Σ_k a_i (1[i in g] - share of g) v_k P[i, k] = 0.
    """
    n = len(u)
    a = u if constraint == "impact" else [1.0] * n
    rows, moves = [], []
    for label in sorted(set(g)):
        member = [h == label for h in g]
        even = share = sum(member) / n
        if constraint != "parity" and sum(u) > 0:
            share = sum(x for x, m in zip(u, member, strict=True) if m) / sum(u)
        rows.append(
            [a[i] * (member[i] - share) * v[k] for i in range(n) for k in range(n)]
        )
        moves.append((even - share) * sum(v[:n]))
    return rows, moves


def most_useful_policy(u, g, v, constraint):
    """Matrix P of the most useful policy, its utility and the least move.

    The first program finds the least part of the way to equal shares that makes the
    second, the paper's, feasible. Both hold n² variables.
    """
    n = len(u)
    doubly = []
    for i in range(n):
        doubly.append([float(j == i) for j in range(n) for _ in range(n)])
        doubly.append([float(k == i) for _ in range(n) for k in range(n)])
    rows, moves = equations(u, g, v, constraint)
    options = {
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    }
    first = linprog(
        [0.0] * n * n + [1.0],
        A_eq=[[*row, 0.0] for row in doubly]
        + [[*row, -move] for row, move in zip(rows, moves, strict=True)],
        b_eq=[1.0] * 2 * n + [0.0] * len(rows),
        options=options,
    )
    moved = first.fun
    value = [u[i] * v[k] for i in range(n) for k in range(n)]
    # Rounding must not make the second program infeasible.
    allowed = moved + 1e-9 if moved > 1e-9 else 0.0
    second = linprog(
        [-x for x in value],
        A_eq=doubly + rows,
        b_eq=[1.0] * 2 * n + [move * allowed for move in moves],
        options=options,
    )
    return second.x.reshape(n, n), -second.fun, moved


def dcg(u, d, order):
    """Gain of the order, discounted."""
    return sum(u[i] * d[k] for k, i in enumerate(order))


def fairest_ranking(u, subject, v, d, quality, debt):
    """Return the least cost over all orders of n candidates with enough NDCG.

    ``debt``: R - A of each subject before this query. The cost is the sum over
    candidates of |a_i - due_i|, with the due of a subject shared by its candidates.
    """
    n = len(u)
    a = [x / sum(v[:n]) for x in v[:n]]
    r = [x / sum(u) for x in u] if sum(u) > 0 else [1 / n] * n
    due = {s: debt[s] + sum(r[i] for i in range(n) if subject[i] == s) for s in subject}
    count = {s: list(subject).count(s) for s in subject}
    best = max(dcg(u, d, order) for order in itertools.permutations(range(n)))
    costs = []
    for order in itertools.permutations(range(n)):
        reached = dcg(u, d, order) / best if best > 0 else 1.0
        if reached < quality - 1e-9:
            continue
        shares = (due[subject[i]] / count[subject[i]] for i in order)
        costs.append(sum(abs(x - y) for x, y in zip(a, shares, strict=True)))
    return min(costs)
