"""What the references share: queries, their weights, and orders of ties."""

import itertools

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
