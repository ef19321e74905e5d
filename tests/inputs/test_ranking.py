"""Rows ordered by query and score, exactly."""

from dataclasses import replace

import numpy as np
import pytest

from skrankfair._inputs.groups import Groups, stable_order
from skrankfair._inputs.ranking import Ranking, order_rows, ranked_data
from tests.seeds import one_in

TINY = 5e-324


SCORES = {
    "distinct": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(0, 5, n) / 4,
    "constant": lambda rng, n: np.full(n, 0.1),
    "close": lambda rng, n: 1 + rng.integers(0, 3, n) * np.finfo(float).eps,
    "huge": lambda rng, n: rng.choice([1.7e308, -1.7e308, 1e308, 0.0], n),
    "denormal": lambda rng, n: rng.integers(-3, 4, n) * TINY,
    "zeros": lambda rng, n: rng.choice([0.0, -0.0, TINY, -TINY], n),
    "sorted": lambda rng, n: np.arange(n, dtype=float),
    "reversed": lambda rng, n: -np.arange(n, dtype=float),
}
CODES = {
    "one": lambda rng, n: np.zeros(n, dtype=np.int64),
    "few": lambda rng, n: rng.integers(0, 7, n),
    "each its own": lambda rng, n: rng.permutation(n),
    "sorted": lambda rng, n: np.sort(rng.integers(0, 9, n)),
    "wide": lambda rng, n: rng.integers(0, 2**62 >> n.bit_length(), n),
}


@one_in(
    1,
    at_once=30,
    code=CODES,
    score=SCORES,
    size={str(n): n for n in (1, 2, 3, 64, 1000)},
)
def test_order_is_that_of_lexsort(code, score, size):
    n = size
    rng = np.random.default_rng(n)
    codes, values = code(rng, n), score(rng, n)
    before = codes.copy(), values.copy()
    order = order_rows(codes, values)
    assert sorted(order.tolist()) == list(range(n))
    expected = np.lexsort((-values, codes))
    np.testing.assert_array_equal(values[order], values[expected])
    np.testing.assert_array_equal(codes[order], codes[expected])
    np.testing.assert_array_equal(codes, before[0])
    np.testing.assert_array_equal(values, before[1])


def test_codes_too_large_to_pack_are_ordered_alike():
    codes = np.random.default_rng(0).integers(0, 20, 1000)
    for shift in (0, 60 - 10):
        order = stable_order(codes << shift)
        np.testing.assert_array_equal(order, np.argsort(codes, kind="stable"))


@one_in(1, at_once=30, code=CODES, score=SCORES)
def test_tie_bounds(code, score):
    rng = np.random.default_rng(1)
    codes, values = code(rng, 60), score(rng, 60)
    ranking = Ranking.from_scores(values, codes)
    pairs = list(zip(codes[ranking.order], ranking.score, strict=True))
    first = [pairs.index(pair) for pair in pairs]
    last = [len(pairs) - pairs[::-1].index(pair) for pair in pairs]
    assert ranking.has_ties == (len(set(pairs)) < len(pairs))
    for rows in (slice(None), np.array([7, 0, 59, 7])):
        chosen = np.arange(60)[rows]
        bounds = ranking.tie_bounds(rows)
        np.testing.assert_array_equal(bounds[0], [first[row] for row in chosen])
        np.testing.assert_array_equal(bounds[1], [last[row] for row in chosen])
    blocks = {}
    expected = [blocks.setdefault(pair, len(blocks)) for pair in pairs]
    np.testing.assert_array_equal(ranking.tie, expected)


def test_the_same_rows_by_another_score():
    rng = np.random.default_rng(0)
    y, s = rng.normal(size=40), rng.normal(size=40)
    q, group = rng.integers(0, 5, 40), rng.integers(0, 3, 40)
    data = ranked_data(y, s, sensitive_features=group, qid=q)
    other = data.ranked_by(data.y_true)
    expected = ranked_data(y, y, sensitive_features=group, qid=q)
    for name in ("order", "score", "starts"):
        found, sought = (getattr(d.ranking, name) for d in (other, expected))
        np.testing.assert_array_equal(found, sought)
    np.testing.assert_array_equal(other.y_true, expected.y_true)
    np.testing.assert_array_equal(other.groups.values, expected.groups.values)


def test_queries_in_parts():
    rng = np.random.default_rng(0)
    y, s = rng.normal(size=40), rng.integers(0, 4, 40) / 4
    data = ranked_data(y, s, qid=rng.integers(0, 5, 40))
    codes = 2 * data.ranking.query + rng.integers(0, 2, 40)
    rows = np.flatnonzero(rng.random(40) < 0.8)
    other = data.split_by(codes, rows)
    of_input = np.full(40, -1)
    of_input[data.ranking.order[rows]] = codes[rows]
    kept = np.flatnonzero(of_input >= 0)
    expected = Ranking.from_scores(s[kept], of_input[kept])
    for name in ("starts", "tie_starts", "score"):
        found, sought = (getattr(r, name) for r in (other.ranking, expected))
        np.testing.assert_array_equal(found, sought)
    assert sorted(other.ranking.order) == kept.tolist()
    np.testing.assert_array_equal(other.y_true, y[other.ranking.order])
    place = np.empty(40, dtype=int)
    place[data.ranking.order] = data.ranking.position()
    np.testing.assert_array_equal(other.ranking.place, place[other.ranking.order])


@pytest.mark.parametrize("n_rows", [1, 3, 10, 40, 1000])
def test_blocks_are_whole_queries(n_rows):
    rng = np.random.default_rng(0)
    score, query = rng.integers(0, 4, 60), rng.choice(9, 60, p=[0.6] + [0.05] * 8)
    ranking = Ranking.from_scores(score.astype(float), query)
    next_row = next_query = 0
    for rows, queries, part in ranking.spans(n_rows):
        assert (rows.start, queries.start) == (next_row, next_query)
        next_row, next_query = rows.stop, queries.stop
        assert part.n_rows == rows.stop - rows.start
        assert part.n_queries == queries.stop - queries.start
        assert part.n_rows <= n_rows or part.n_queries == 1
        tie = ranking.tie[rows]
        np.testing.assert_array_equal(part.tie, tie - tie[0])
        np.testing.assert_array_equal(part.query + queries.start, ranking.query[rows])
        np.testing.assert_array_equal(part.lengths, ranking.lengths[queries])
        np.testing.assert_array_equal(part.position(), ranking.position()[rows])
    assert (next_row, next_query) == (ranking.n_rows, ranking.n_queries)


def test_other_groups_have_memberships_of_their_own():
    """What is cached of the rows is there for every metric of the same groups."""
    data = ranked_data(None, [4, 3, 2, 1], sensitive_features=["a", "b", "a", "b"])
    assert data.memberships.sizes.tolist() == [2, 2]
    assert data.memberships is replace(data, query_weight=None).memberships
    assert data.with_groups(Groups.of_everyone(4)).memberships.sizes.tolist() == [4]
    assert data.memberships.sizes.tolist() == [2, 2]
