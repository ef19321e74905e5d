"""Pairwise fairness, Beutel et al. 2019, sections 3.3, 6.1 and 6.4."""

from tests.reference._common import rows_by_query


def _pairs(q):
    """Yield the ordered pairs of rows of each query, a row with itself among them."""
    for rows in rows_by_query(q).values():
        for i in rows:
            for j in rows:
                yield i, j


def _above(s_i, s_j):
    """1 if i is ranked above j, 0 if below, one half if the scores tie."""
    return 0.5 * (s_i > s_j) + 0.5 * (s_i >= s_j)


def pairs_accuracy(y, s, q, in_group, comparison="all"):
    """Yield (i, j, value) with y_i > y_j and i in the group; section 3.3.

    Equations 2, 5 and 6: j is any item of the query, of the group or outside it.
    """
    wanted = {"all": (True, False), "intra": (True,), "inter": (False,)}[comparison]
    for i, j in _pairs(q):
        if in_group[i] and y[i] > y[j] and in_group[j] in wanted:
            yield i, j, _above(s[i], s[j])


def pairs_exposure(s, q, in_group):
    """Yield (i, j, value), i in the group and j outside, whatever y; section 6.4."""
    for i, j in _pairs(q):
        if in_group[i] and not in_group[j]:
            yield i, j, _above(s[i], s[j])


def pairs_preference(y, q, in_group):
    """Yield (i, j, 1{y_i > y_j}), i in, j outside, y_i != y_j; section 6.4."""
    for i, j in _pairs(q):
        if in_group[i] and not in_group[j] and y[i] != y[j]:
            yield i, j, float(y[i] > y[j])


def pairs_of_better(y, v, q, in_group):
    """Yield (i, j, value), y_i > y_j, one of them in the group; section 6.4, Figure 4.

    The value is whether the one in the group is above the other by v, the scores
    (exposure) or the outcomes (preference).
    """
    for i, j in _pairs(q):
        if y[i] > y[j] and in_group[i] != in_group[j]:
            above = _above(v[i], v[j])
            yield i, j, above if in_group[i] else 1.0 - above


def positions(y, s, q, in_group, comparison="all", of_rest=False):
    """Yield (row, position) of the clicked items of a side; section 4.1, eq. 8.

    One plus the items above, ties one half: all of the query, those of the own side
    (intra) or of the other one (inter).
    """
    for rows in rows_by_query(q).values():
        for i in rows:
            if y[i] != 1 or in_group[i] == of_rest:
                continue
            position = 1.0
            for j in rows:
                alike = in_group[i] == in_group[j]
                if j != i and (comparison == "all" or (comparison == "intra") == alike):
                    position += _above(s[j], s[i])
            yield i, position
