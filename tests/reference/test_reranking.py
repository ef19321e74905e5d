"""The naive re-rankers against hand-computed lists and published numbers."""

from fractions import Fraction

import pytest

from tests.reference import reranking as naive

HALVES = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
#: Scores 9, 8, ..., 2: six of group a, then two of group b.
ITEMS = [(9 - i, "a" if i < 6 else "b") for i in range(8)]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("det_greedy", [0, 6, 1, 7]),
        ("det_cons", [0, 6, 1, 7]),
        ("det_relaxed", [0, 6, 1, 7]),
    ],
)
def test_halves_by_hand(method, expected):
    # Place 2: the floors are 1 and 1, so b comes; place 4: 2 and 2.
    assert naive.det(ITEMS, HALVES, 4, method) == [*expected, 2, 3, 4, 5]


def test_const_sort_by_hand():
    # At 2 both floors rise: a0 then b6, both with limit 2. At 4: a1 and b7 with limit
    # 4; a1 may not pass b6, which would fall to place 3.
    assert naive.det_const_sort(ITEMS, HALVES, 4) == [0, 6, 1, 7, 2, 3, 4, 5]
    # Shares of 1/4 and 3/4: a rises at 4 with its best item, which may climb over all
    # the items of b whose limits let these fall: b at 2 (limit 2), 3 (3), 4 (4).
    items = [(9, "a"), (8, "b"), (7, "b"), (6, "b")]
    share = {"a": Fraction(1, 4), "b": Fraction(3, 4)}
    # a has limit 4 and the best score. b1 (limit 2) would fall from place 1 to 2: it
    # may; b2 (limit 3) from 2 to 3: it may; b3 (limit 4) from 3 to 4: it may.
    assert naive.det_const_sort(items, share, 4) == [0, 1, 2, 3]


def test_greedy_cons_and_relaxed_differ_by_hand():
    # Place 1, all ceilings 1: 1/0.4 = 2.5, 1/0.35 = 2.86 and 1/0.25 = 4. Relaxed
    # rounds them up: 3, 3 and 4, and the better item of a and b comes first.
    items = [(9, "c"), (8, "b"), (7, "a"), (6, "a")]
    share = {"a": Fraction(2, 5), "b": Fraction(7, 20), "c": Fraction(1, 4)}
    first = {"det_greedy": 0, "det_relaxed": 1, "det_cons": 2}
    for method, expected in first.items():
        assert naive.det(items, share, 1, method)[0] == expected


def test_failure_by_hand():
    # Two places, p = 1/2: tails 1/2, 1 at place 1; 1/4, 3/4, 1 at place 2.
    share = {"a": Fraction(1, 2)}
    assert naive.tail({"a": 0}, 2, share=share) == Fraction(1, 4)
    assert naive.failure(Fraction(1, 4), ["a"], 2, share=share) == Fraction(1, 4)
    assert naive.failure(Fraction(1, 2), ["a"], 2, share=share) == Fraction(1, 2)
    # One of two candidates: first place a or not, 1/2 each; then everything is known.
    pool = {None: 1, "a": 1}
    assert naive.tail({"a": 0}, 1, pool=pool) == Fraction(1, 2)
    assert naive.failure(Fraction(1, 2), ["a"], 2, pool=pool) == Fraction(1, 2)


def test_several_groups_by_hand():
    # P(X_a <= 0, X_b <= 1) of two places: none of both, or one b and one other.
    share = {"a": Fraction(1, 4), "b": Fraction(1, 4)}
    found = naive.tail({"a": 0, "b": 1}, 2, share=share)
    assert found == Fraction(1, 4) + 2 * Fraction(1, 4) * Fraction(1, 2)
    found = naive.tail({"a": 0, "b": 1}, 2, pool={None: 2, "a": 1, "b": 1})
    assert found == Fraction(1 + 2, 6)
