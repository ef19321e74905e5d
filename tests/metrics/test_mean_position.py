"""The mean position of clicked items, against loops and the accuracy of pairs."""

from dataclasses import replace

import numpy as np
import pytest

from skrankfair.metrics import mean_position, pairwise_accuracy
from tests.metrics.naive_rules import (
    COMPARISONS,
    assert_close,
    assert_covariance,
    by_stratum,
    covariance_of,
    difference,
    estimates_of,
)
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.reference import pairwise as naive

pytestmark = undefined_is_fine
EDGES = (-np.inf, 0.4, np.inf)


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_estimates_and_errors_are_those_of_loops(comparison):
    for seed in range(12):
        p = make_problem(seed, (6, 24))
        clicked = [float(y > np.median(p.y)) for y in p.y]
        seen = replace(p, y=clicked).seen()
        pairs = {
            (g, side): [
                (i, i, position)
                for i, position in naive.positions(
                    seen.y, seen.s, seen.q, member, comparison, side == "rest"
                )
            ]
            for g, member in seen.member.items()
            for side in ("own", "rest")
        }
        own, rest = ({g: pairs[g, of] for g in seen.groups} for of in ("own", "rest"))
        r = mean_position(clicked, p.s, comparison=comparison, **p.who)
        assert r.groups == seen.groups
        assert r.support.tolist() == [len(some) for some in own.values()]
        assert_close(r.estimate, estimates_of(seen, own), 1e-12, seed)
        expected = covariance_of(seen, own, "query")
        assert_covariance(r.covariance, expected, seed)
        if comparison == "all":  # of one side they depend on its size
            gap, (gaps, sides) = r.against_rest(), difference(pairs)
            assert_close(gap.estimate, estimates_of(seen, pairs, estimates=gaps), 1e-11)
            expected = covariance_of(seen, pairs, "query", "pairs", gaps, sides)
            assert_covariance(gap.covariance, expected, seed)
        assert r.has_pvalue == (comparison == "all") != r.metric.differing
        strata = {"engagement": p.z, "bins": EDGES}
        r = mean_position(clicked, p.s, comparison=comparison, **strata, **p.who)
        of_own, of_rest = (by_stratum(seen, of, EDGES)[0] for of in (own, rest))
        table = r.breakdown().set_index(["group", "bucket"]).loc[list(of_own)]
        expected = np.array(estimates_of(seen, of_own))
        assert_close(table["estimate"], expected, 1e-12, seed)
        if comparison == "all":
            expected = expected - estimates_of(seen, of_rest)
            assert_close(table["gap"], expected, 1e-11, seed)


def test_theorem_1():
    # Lists of one length with one click: equal accuracies are equal mean positions.
    rng = np.random.default_rng(0)
    clicked = (np.arange(6) == rng.integers(0, 6, 300)[:, None]).ravel().astype(float)
    columns = clicked, np.round(rng.normal(size=1800), 1) + 0.5 * clicked
    group, query = rng.choice(["a", "b", "c"], 1800), np.repeat(np.arange(300), 6)
    who = {"sensitive_features": group, "qid": query}
    position = mean_position(*columns, **who)
    accuracy = pairwise_accuracy(*columns, **who)
    assert_close(position.estimate, 1 + 5 * (1 - accuracy.estimate), 1e-12)
    gap, of_pairs = position.against_rest(), accuracy.against_rest()
    assert_close(gap.estimate, -5 * of_pairs.estimate, 1e-12)
    assert_close(gap.standard_error, 5 * of_pairs.standard_error, 1e-10)
    # Of lists of unequal length they need not be: both groups win all pairs but half.
    clicked, score = [1, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]
    who = {"sensitive_features": list("aabbbb"), "qid": [0, 0, 1, 1, 1, 1]}
    assert pairwise_accuracy(clicked, score, **who).estimate.tolist() == [0.5, 0.5]
    assert mean_position(clicked, score, **who).estimate.tolist() == [1.5, 2.5]


def test_by_hand_of_the_papers_example():
    # Section 3.3: the clicked item is fourth in both lists, with other items above it.
    first, second = ["A", "A", "B", "A", "B", "B"], list("AAABBB")
    who = {"sensitive_features": first + second, "qid": np.repeat([0, 1], 6)}
    clicked, score = np.tile([0, 0, 0, 1, 0, 0], 2), np.tile(np.arange(6, 0, -1), 2)
    for comparison, positions, won in (
        ("all", [4, 4], [2 / 5, 2 / 5]),
        ("intra", [3, 1], [0, 1]),
        ("inter", [2, 4], [2 / 3, 0]),
    ):
        r = mean_position(clicked, score, comparison=comparison, **who)
        assert r.estimate.tolist() == positions
        r = pairwise_accuracy(clicked, score, comparison=comparison, **who)
        assert r.estimate == pytest.approx(won)
