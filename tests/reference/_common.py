"""What the references share: queries, their weights, and the two averages."""

import itertools
import math

NAN = float("nan")


def rows_by_query(q):
    """Row numbers of every query, queries in order of first appearance."""
    rows = {}
    for row, label in enumerate(q):
        rows.setdefault(label, []).append(row)
    return rows


def tied_blocks(s, rows):
    """Rows of equal score, from the top."""
    values = sorted({float(s[row]) for row in rows}, reverse=True)
    return [[row for row in rows if float(s[row]) == value] for value in values]


def orders(s, rows):
    """Yield every order of the rows by score, with all orders of tied blocks."""
    blocks = tied_blocks(s, rows)
    for order in itertools.product(*map(itertools.permutations, blocks)):
        yield [row for block in order for row in block]


def ranks_of_ties(s, rows):
    """{row: range of the ranks, from 0, that its tied block has among the rows}."""
    ranks, first = {}, 0
    for block in tied_blocks(s, rows):
        ranks |= dict.fromkeys(block, range(first, first + len(block)))
        first += len(block)
    return ranks


def query_weights(q, w=None):
    """Weight of every query, its importance; None is 1 for all."""
    weights = {}
    for row, label in enumerate(q):
        weight = 1 if w is None else w[row]
        if weights.setdefault(label, weight) != weight:
            raise ValueError(f"the weight varies within query {label!r}")
    return weights


def average_of_pairs(pairs, q, average="pairs", w=None):
    """Mean of the values of (i, j, value), and the number of pairs.

    ``average="pairs"``: sum of w * value over sum of w. ``average="queries"``: the
    mean of the queries' own means, over queries with pairs, times w. The
    number of pairs does not count weights; a query of weight 0 is absent.
    """
    if average not in ("pairs", "queries"):
        raise ValueError(average)
    weights = query_weights(q, w)
    values = {}
    for i, _, value in pairs:
        values.setdefault(q[i], []).append(value)
    numerators, denominators, n_pairs = [], [], 0
    for label, of_query in values.items():
        weight = weights[label]
        if weight == 0:
            continue
        n_pairs += len(of_query)
        if average == "pairs":
            numerators.append(weight * math.fsum(of_query))
            denominators.append(weight * len(of_query))
        else:
            numerators.append(weight * math.fsum(of_query) / len(of_query))
            denominators.append(weight)
    if not denominators:
        return NAN, 0
    return math.fsum(numerators) / math.fsum(denominators), n_pairs
