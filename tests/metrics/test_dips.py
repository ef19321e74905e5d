"""DIPS: naive loops, brute force over permutations, closed forms, other libraries."""

import itertools

import numpy as np
import pytest
from scipy import stats

from skrankfair.metrics import (
    GroupEstimates,
    dips,
    exposure_gap,
    item_dissatisfaction,
)
from tests import seeds
from tests.metrics.common import assert_same
from tests.metrics.naive_rules import (
    assert_close,
    assert_covariance,
    difference,
    matrix,
)
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.reference import dissatisfaction as naive
from tests.reference import variance

AVERAGES = ("pairs", "queries")
TIE_COSTS = (0, 0.3, 1.0)
WEIGHTS = {
    **{name: name for name in ("uniform", "dcg", "geometric", "reciprocal")},
    "function": lambda rank: 1 / (rank + 0.5),
    "array": [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125],
}
in_chunks = seeds.in_chunks(12, always=2)
each_weight = pytest.mark.parametrize("position_weight", WEIGHTS.values(), ids=WEIGHTS)


@undefined_is_fine
@in_chunks
@each_weight
def test_estimate_and_covariance(seeds, position_weight):
    for seed, tie_cost, average in itertools.product(seeds, TIE_COSTS, AVERAGES):
        p = make_problem(seed, (3, 18))
        seen, coarse = p.seen(), bool((seed + (average == "pairs")) % 2)
        hint, sides = (seed, tie_cost, average), {}
        for g, inside in seen.member.items():
            outside = [not member for member in inside]
            sides |= {(g, "own"): (inside, outside), (g, "rest"): (outside, inside)}
        units = (seen.cluster, None) if coarse else (seen.q, seen.query_weight)
        tables = {
            key: naive.table_of_pair(
                *(seen.y, seen.s, seen.q, *both, position_weight, tie_cost, average),
                seen.w if coarse else None,
            )
            for key, both in sides.items()
        }
        options = {"cluster": p.cluster if coarse else None, "average": average}
        how = {"position_weight": position_weight, "tie_cost": tie_cost}
        r = dips(p.y, p.s, **options, **how, **p.who)
        expected = np.array(variance.estimates(tables, *units))
        assert r.groups == seen.groups
        assert_close(r.estimate, expected[::2], 1e-10, hint)
        assert r.n_clusters == len(set(units[0]))
        assert r.support.tolist() == [
            naive.number_of_pairs(seen.y, seen.q, *sides[g, "own"], tie_cost)
            for g in seen.groups
        ]
        covariance = matrix(variance.cluster_covariance(tables, *units), sides)
        gaps = difference(tables)
        gap = matrix(variance.cluster_covariance(tables, *units, *gaps), seen.groups)
        assert_covariance(r.covariance, covariance[::2, ::2], hint)
        if position_weight == "uniform":
            assert_covariance(r.against_rest().covariance, gap, hint)
        errors, table = np.sqrt(np.diag(covariance)), r.breakdown().set_index("of")
        for side, estimate, error in (
            ("group", expected[::2], errors[::2]),
            ("rest", expected[1::2], errors[1::2]),
            ("difference", expected[::2] - expected[1::2], np.sqrt(np.diag(gap))),
        ):
            columns = table.loc[[side]]
            assert_close(columns["estimate"], estimate, 1e-10, hint)
            assert_close(columns["standard_error"], error, 1e-8, hint)


@undefined_is_fine
@in_chunks
def test_all_pairs_one_other_group_and_pairs_as_divisor(seeds):
    for seed, tie_cost in itertools.product(seeds, TIE_COSTS):
        p = make_problem(seed, (3, 18))
        seen, hint = p.seen(), (seed, tie_cost)
        position_weight = list(WEIGHTS.values())[seed % 6]
        how = {"position_weight": position_weight, "tie_cost": tie_cost}
        columns, every = (seen.y, seen.s, seen.q), [True] * len(seen.q)

        def naive_values(a, b, divisor, columns=columns, how=how, w=seen.w):
            return naive.pooled(*columns, a, b, *how.values(), divisor, w)

        for divisor in ("maximum", "pairs"):
            options = {**how, "divisor": divisor}
            r = dips(p.y, p.s, comparison="all", **p.who, **options)
            expected = [naive_values(m, every, divisor) for m in seen.member.values()]
            assert_close(r.estimate, expected, 1e-10, hint)
            r = dips(p.y, p.s, comparison="all", **p.queries, **options)
            assert_close(r.estimate, [naive_values(every, every, divisor)], 1e-10, hint)
            r = dips(p.y, p.s, **p.who, **options)
            expected = [
                naive_values(m, [not inside for inside in m], divisor)
                for m in seen.member.values()
            ]
            assert_close(r.estimate, expected, 1e-10, hint)
            if isinstance(p.sensitive_features, np.ndarray):
                continue
            other, in_b = list(seen.member.items())[seed % len(seen.member)]
            others = {g: m for g, m in seen.member.items() if g != other}
            if not others:
                continue
            r = dips(p.y, p.s, against=other, **p.who, **options)
            assert r.groups == tuple(others)
            expected = [naive_values(m, in_b, divisor) for m in others.values()]
            assert_close(r.estimate, expected, 1e-10, hint)
            table = r.breakdown().set_index("of")
            expected = [naive_values(in_b, m, divisor) for m in others.values()]
            assert_close(table.loc[["rest"], "estimate"], expected, 1e-10, hint)


@undefined_is_fine
@in_chunks
def test_items(seeds):
    for seed, divisor in itertools.product(seeds, (None, "maximum", "pairs")):
        p = make_problem(seed, (3, 18))
        position_weight = list(WEIGHTS.values())[seed % 6]
        how = {"position_weight": position_weight, "tie_cost": TIE_COSTS[seed % 3]}
        labels = None
        if not isinstance(p.sensitive_features, np.ndarray):
            labels = p.sensitive_features
        for g in (None, labels):
            values = item_dissatisfaction(
                p.y, p.s, sensitive_features=g, qid=p.q, divisor=divisor, **how
            )
            expected = naive.of_items(p.y, p.s, p.q, g, *how.values(), divisor)
            assert_close(values, expected, 1e-10, (seed, divisor))
        if labels is not None and divisor is None:
            # What the items of a group suffer is what the group does.
            r = dips(p.y, p.s, sensitive_features=labels, qid=p.q, **how)
            sums = [values[np.array(list(labels)) == g].sum() for g in r.groups]
            assert_close(r.sums.by_group[:, 0], sums, 1e-10, seed)


@undefined_is_fine
def test_all_pairs_are_kendall():
    # Equation 2: the share of discordant pairs, (1 - tau) / 2.
    rng = np.random.default_rng(0)
    n = 600  # outcomes of four digits, of three bits each
    y, s = rng.permutation(n), rng.permutation(n)
    tau = stats.kendalltau(y, s).statistic
    for divisor in ("maximum", "pairs"):
        r = dips(y, s, comparison="all", divisor=divisor)
        assert float(r) == pytest.approx((1 - tau) / 2)
    assert item_dissatisfaction(y, s).sum() == pytest.approx(
        (1 - tau) / 2 * (n * (n - 1) / 2)
    )
    # And the rank equality error of FARE: discordant pairs of all that are mixed.
    r = dips(y, s, sensitive_features=np.arange(n) < 15, divisor="pairs")
    below = (y[:15, None] > y[15:]) & (s[:15, None] < s[15:])
    above = (y[:15, None] < y[15:]) & (s[:15, None] > s[15:])
    assert r.estimate == pytest.approx([above.mean(), below.mean()])


@undefined_is_fine
def test_pairs_with_one_other_group_add_up():
    rng = np.random.default_rng(0)
    q, s, y = np.repeat(np.arange(8), 5), rng.random(40), rng.integers(0, 3, 40)
    g = np.where(q < 4, rng.choice(["a", "c"], 40), rng.choice(["a", "b", "c"], 40))

    def of(rows):
        who = {"sensitive_features": g[rows], "qid": q[rows]}
        return dips(y[rows], s[rows], **who, against="b", position_weight="dcg")

    parts = [GroupEstimates.from_json(of(rows).to_json()) for rows in (q < 4, q >= 4)]
    assert_same(parts[0] + parts[1], of(q >= 0), tolerance=1e-9)


@undefined_is_fine
def test_many_tied_scores_far_down_a_long_list():
    # Visits to late positions are tiny, and differences of sums would lose them.
    n = 20_000
    y, s = np.zeros(n), -np.arange(n, dtype=float)
    y[-1], s[-4:] = 1, -n
    in_group = y == 1
    for position_weight, visit in {
        "dcg": lambda k: 1 / np.log2(k + 2),
        "reciprocal": lambda k: 1 / (k + 1),
    }.items():
        r = dips(y, s, sensitive_features=in_group, position_weight=position_weight)
        assert r.groups == (False, True)
        tied = (visit(np.arange(n - 4, n)) * [3, 2, 1, 0]).sum() / 12
        numerator = visit(np.arange(n - 4)).sum() + 3 * tied
        estimate = numerator / visit(np.arange(n - 1)).sum()
        assert r.estimate[1] == pytest.approx(estimate, rel=1e-13)


def test_swap_of_the_paper():
    """Figure 1b: a swap for group A that puts nobody below a less relevant item."""
    who = {"sensitive_features": list("BBBAB") * 2, "qid": [0] * 5 + [1] * 5}
    y = [3, 2, 2, 2, 1] * 2
    before, after = [5, 4, 3, 2, 1] * 2, [5, 2, 3, 4, 1] * 2
    for target in ("expected", "relevance"):
        gaps = [exposure_gap(y, s, target=target, **who) for s in (before, after)]
        assert gaps[1].estimate[0] > gaps[0].estimate[0] + 0.05
        assert abs(gaps[1].disparity() - gaps[0].disparity()) > 0.01
    for position_weight in WEIGHTS.values():
        for s in (before, after):
            r = dips(y, s, position_weight=position_weight, **who)
            assert r.estimate.tolist() == [0, 0]


def test_random_ranking():
    # A constant score; in the mean every pair is the wrong way round half of the time.
    rng = np.random.default_rng(0)
    who = {"sensitive_features": rng.choice(["few", "many"], 4000, p=[0.1, 0.9])}
    who["qid"] = np.repeat(np.arange(200), 20)
    y, s = rng.normal(size=4000), np.zeros(4000)
    uniform = dips(y, s, **who)
    assert uniform.estimate == pytest.approx([0.5, 0.5])
    assert uniform.test().pvalue == pytest.approx([1, 1])
    # With top-heavy weights equality is not what a blind ranker has: no test.
    blind = dips(y, s, position_weight="dcg", **who)
    assert blind.estimate[0] > blind.estimate[1] + 0.1
    assert np.isnan([*blind.pvalue, blind.contrast("few", "many").pvalue]).all()
    with pytest.raises(ValueError, match="dips with these options has no value"):
        blind.test()
