"""The mean position of clicked items, against loops and the accuracy of pairs."""

import numpy as np
import pytest

from skrankfair.metrics import mean_position, pairwise_accuracy
from tests.metrics.naive_rules import assert_close
from tests.metrics.problems import make_problem
from tests.reference import pairwise as naive

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)
COMPARISONS = ("all", "intra", "inter")
EDGES = (-np.inf, 0.4, np.inf)


def ratio(found, p):
    """Return the mean of positions with the weights of their queries."""
    weight = [1.0 if p.w is None else p.w[i] for i, _ in found]
    positions = [position for _, position in found]
    return np.average(positions, weights=weight) if sum(weight) else np.nan


def jackknife(found, p):
    """Return the error of a mean of positions, by leaving out each query with any."""
    queries = dict.fromkeys(p.q[i] for i, _ in found)
    n = len(queries)
    if n < 2:
        return np.nan
    left = [ratio([f for f in found if p.q[f[0]] != q], p) for q in queries]
    changes = np.array(left) - ratio(found, p)
    return np.sqrt((n - 1) / n * (changes**2).sum())


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_estimates_and_errors_are_those_of_loops(comparison):
    compared = 0
    for seed in range(12):
        p = make_problem(seed, (6, 24))
        clicked = [float(y > np.median(p.y)) for y in p.y]
        who = {k: v for k, v in p.who.items() if k != "cluster"}
        r = mean_position(clicked, p.s, comparison=comparison, **who)
        seen = p.seen()
        y = [float(y > np.median(p.y)) for y in seen.y]
        for k, (group, member) in enumerate(seen.member.items()):
            assert r.groups[k] == group
            own = list(naive.positions(y, seen.s, seen.q, member, comparison))
            rest = list(naive.positions(y, seen.s, seen.q, member, comparison, True))
            assert r.support[k] == len(own)
            assert_close(r.estimate[k], ratio(own, seen), 1e-12, seed)
            assert_close(r.standard_error[k], jackknife(own, seen), 1e-10, seed)
            gap = r.against_rest().estimate[k]
            assert_close(gap, ratio(own, seen) - ratio(rest, seen), 1e-11, seed)
            compared += bool(own) and bool(rest)
        table = mean_position(
            clicked, p.s, comparison=comparison, engagement=p.z, bins=EDGES, **who
        ).breakdown()
        for row in table.itertuples():
            in_bucket = [(z >= EDGES[1]) == bool(row.bucket) for z in seen.z]
            member = seen.member[row.group]
            sides = (
                [
                    found
                    for found in naive.positions(
                        y, seen.s, seen.q, member, comparison, of_rest
                    )
                    if in_bucket[found[0]]
                ]
                for of_rest in (False, True)
            )
            own, rest = map(list, sides)
            assert_close(row.estimate, ratio(own, seen), 1e-12, seed)
            assert_close(row.gap, ratio(own, seen) - ratio(rest, seen), 1e-11, seed)
    assert compared > 10


def one_click(seed, sizes, n_queries=300):
    """Return rows of queries with one clicked item, which scores favour by group."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), rng.choice(sizes, n_queries))
    group = rng.choice(["a", "b", "c"], query.size)
    score = np.round(rng.normal(size=query.size), 1)
    clicked = np.zeros(query.size)
    first = np.flatnonzero(np.diff(query, prepend=-1))
    clicked[first + (rng.random(n_queries) * np.bincount(query)).astype(int)] = 1
    return (clicked, score + 0.5 * clicked), {"sensitive_features": group, "qid": query}


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_items_above_are_pairs_lost(comparison):
    columns, who = one_click(0, [2, 5, 9])
    z = np.random.default_rng(1).random(columns[0].size)
    for strata in ({}, {"engagement": z, "bins": [0, 0.5, 1]}):
        options = {**who, "comparison": comparison, **strata}
        position, accuracy = (
            measure(*columns, **options)
            for measure in (mean_position, pairwise_accuracy)
        )
        if strata:
            position, accuracy = position.breakdown(), accuracy.breakdown()
        lost = (
            (1 - accuracy["estimate"]) * accuracy["support"]
            if strata
            else ((1 - accuracy.estimate) * accuracy.support)
        )
        above = (
            (position["estimate"] - 1) * position["support"]
            if strata
            else ((position.estimate - 1) * position.support)
        )
        assert_close(above, lost, 1e-12)


def test_theorem_1():
    # Lists of one length with one click: equal accuracies are equal mean positions.
    columns, who = one_click(0, [6])
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


@pytest.mark.parametrize("overlapping", [False, True])
def test_positions_add_up(overlapping):
    for seed in range(6):
        p = make_problem(seed, (6, 24))
        clicked = np.asarray(p.y) > np.median(p.y)
        features = p.sensitive_features
        if overlapping:
            features = np.random.default_rng(seed).random((len(p.y), 2)) < 0.5
        who = {"sensitive_features": features, "qid": p.q}
        whole, intra, inter = (
            mean_position(clicked, p.s, comparison=c, **who) for c in COMPARISONS
        )
        assert_close(whole.estimate, intra.estimate + inter.estimate - 1, 1e-12)
        rest = [r.estimate - r.against_rest().estimate for r in (whole, intra, inter)]
        assert_close(rest[0], rest[1] + rest[2] - 1, 1e-11)


def test_by_hand_of_the_papers_example():
    # Section 3.3: the clicked item is fourth in both lists, with other items above it.
    first, second = ["A", "A", "B", "A", "B", "B"], list("AAABBB")
    who = {"sensitive_features": first + second, "qid": np.repeat([0, 1], 6)}
    clicked, score = np.tile([0, 0, 0, 1, 0, 0], 2), np.tile(np.arange(6, 0, -1), 2)
    expected = {"all": [4, 4], "intra": [3, 1], "inter": [2, 4]}
    for comparison, positions in expected.items():
        r = mean_position(clicked, score, comparison=comparison, **who)
        assert r.estimate.tolist() == positions
    for comparison, accuracies in {"all": [0.4, 0.4], "inter": [2 / 3, 0]}.items():
        r = pairwise_accuracy(clicked, score, comparison=comparison, **who)
        assert_close(r.estimate, accuracies, 1e-12)


def test_the_plain_test_finds_a_group_that_is_shown_late():
    columns, who = one_click(2, [6], 800)
    group = who["sensitive_features"]
    late = columns[1] - 0.6 * (group == "a")
    assert (mean_position(*columns, **who).pvalue > 0.01).all()
    r = mean_position(columns[0], late, **who)
    assert r.pvalue[0] < 1e-6
    assert r.against_rest().estimate[0] > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_true": [0, 1, 2]}, "y_true must be 0 or 1 .*for mean_position"),
        ({"comparison": "both"}, "comparison must be one of"),
        ({"engagement": [np.nan] * 3}, "engagement must be known .* in row 1"),
        ({"cluster": np.ones((3, 2))}, "cluster must"),
    ],
)
def test_bad_options(options, message):
    good = {"y_true": [0, 1, 0], "y_score": [1, 2, 3]}
    with pytest.raises(ValueError, match=message):
        mean_position(**{**good, **options})


def test_a_group_without_a_click_has_no_position():
    clicked, score, query = [1, 0, 1, 0], [1, 2, 3, 4], [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="without clicked items: b"):
        r = mean_position(clicked, score, sensitive_features=list("abab"), qid=query)
    assert np.isnan(r.estimate).tolist() == [False, True]
