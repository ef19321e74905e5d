"""Exact tests of prefixes: enumeration, published numbers, scipy and a simulation."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from skrankfair.exceptions import SmallSampleWarning
from skrankfair.inference import prefix_test
from skrankfair.inference._prefix_test import (
    CountLattice,
    FairCounts,
    PrefixLaw,
    fair_counts,
)
from tests.reference import reranking as naive

# Levels and probabilities of failure


def test_published_numbers_of_fa_ir():
    counts = fair_counts((20,), (0.25,), 0.1)
    assert counts.alpha[0] == pytest.approx(0.078125, abs=1e-12)
    failure = 0.10515247355215251
    assert counts.failure_probability[0] == pytest.approx(failure, abs=1e-15)
    assert counts.least[0, :, 0].tolist() == [0] * 8 + [1] * 7 + [2] * 5


@pytest.mark.parametrize(
    ("k", "share", "floors", "failure"),
    [  # of fairsearchcore 1.0.4, where its floors do not rise at the last place
        (40, 0.5, {10: 2, 20: 6, 40: 14}, 0.09904997974444818),
        (50, 0.2, {13: 0, 14: 1, 50: 5}, 0.10029563615408155),
    ],
)
def test_floors_of_fairsearchcore(k, share, floors, failure):
    counts = fair_counts((k,), (share,), 0.1)
    assert {place: counts.least[0, :, 0][place - 1] for place in floors} == floors
    assert counts.failure_probability[0] == pytest.approx(failure, abs=1e-12)


@pytest.mark.parametrize(
    ("k", "share", "alpha"),
    [
        (6, {"a": Fraction(2, 5)}, Fraction(1, 10)),
        (5, {"a": Fraction(1, 5), "b": Fraction(3, 10)}, Fraction(3, 20)),
        (7, {"a": Fraction(3, 4)}, Fraction(1, 5)),
    ],
)
def test_adjusted_levels_by_enumeration(k, share, alpha):
    numbers = tuple(map(float, share.values()))
    level, expected = naive.failure_nearest(alpha, list(share), k, share=share)
    counts = fair_counts((k,), numbers, float(alpha))
    assert counts.failure_probability[0] == pytest.approx(float(expected), abs=1e-12)
    assert counts.alpha[0] >= float(level) * (1 - 1e-12)
    pools = [{None: 6, "a": 4, "b": 3}, {None: 2, "a": 1, "b": 2}]
    pools = [{g: pool[g] for g in (None, *share)} for pool in pools]
    sizes = np.array([[pool[g] for g in share] for pool in pools])
    totals = np.array([sum(pool.values()) for pool in pools])
    counts = FairCounts.of(np.minimum(totals, k), sizes, totals, float(alpha))
    for i, pool in enumerate(pools):
        places = min(k, sum(pool.values()))
        level, expected = naive.failure_nearest(alpha, list(share), places, pool=pool)
        found = counts.failure_probability[i]
        assert found == pytest.approx(float(expected), abs=1e-12)


def test_least_counts_of_several_groups_by_enumeration():
    counts, share = fair_counts((12,), (0.3, 0.2), 0.1), {"a": 0.3, "b": 0.2}
    for place in range(12):
        passing = [
            c
            for c in itertools.product(range(place + 2), repeat=2)
            if sum(c) <= place + 1
            and naive.tail(dict(zip("ab", c, strict=True)), place + 1, share=share)
            > counts.alpha[0]
        ]
        assert counts.least[0, place].tolist() == np.min(passing, axis=0).tolist()


def test_tails_are_those_of_scipy():
    law = PrefixLaw(CountLattice.of(30, 1), np.array([[0.3]]), None, np.array([30]))
    for place, tail in enumerate(law.tails):
        expected = binom.cdf(np.arange(place + 2), place + 1, 0.3)
        np.testing.assert_allclose(tail[0], expected, atol=1e-14)
    lattice = CountLattice.of(12, 1)
    finite = PrefixLaw(lattice, np.array([[8], [5]]), *np.array([[30, 10], [12, 10]]))
    for place, tail in enumerate(finite.tails):
        members = np.arange(place + 2)
        for row, (size, total) in enumerate([(8, 30), (5, 10)]):
            expected = hypergeom.cdf(members, total, size, min(place + 1, total))
            np.testing.assert_allclose(tail[row], expected, atol=1e-14)


# The test


def test_pvalues_by_enumeration():
    rng = np.random.default_rng(0)
    score, group = rng.permutation(36), rng.choice(["a", "b"], 36)
    qid = np.repeat(np.arange(6), 6)
    for share in (None, 0.375):
        who = {"sensitive_features": group, "qid": qid, "group": "a"}
        with pytest.warns(SmallSampleWarning, match="cannot reject at 5%.* 6 lists"):
            result = prefix_test(score, **who, share=share, k=5)
        for q in range(6):
            rows = np.flatnonzero(qid == q)
            rows = rows[np.argsort(-score[rows])]
            members = [g if g == "a" else None for g in group[rows]]
            law = {"share": {"a": Fraction(3, 8)}}
            if share is None:
                n = members.count("a")
                law = {"pool": {None: 6 - n, "a": n}}
            smallest = naive.smallest_tail(members[:5], ["a"], **law)
            expected = naive.failure(smallest, ["a"], 5, **law)
            assert result.statistics[q] == pytest.approx(float(smallest))
            assert result.pvalues[q] == pytest.approx(float(expected))
        assert result.pvalue == pytest.approx(min(1, 6 * result.pvalues.min()))
        assert result.statistic == result.statistics.min()


def test_a_group_at_the_bottom():
    group, score = np.repeat(["m", "f"], [20, 20]), np.arange(40, 0, -1)
    result = prefix_test(score, sensitive_features=group, group="f")
    assert result.pvalue < 1e-9
    assert "one list: p < 0.001\nleast likely: 0 in the first 20 (" in repr(result)
    assert prefix_test(score, sensitive_features=group, group="m").pvalue == 1.0
    who = {"sensitive_features": np.r_[group, group[::-1]], "group": "f"}
    two = prefix_test(np.r_[score, score], **who, qid=np.repeat(["x", "y"], 40), k=10)
    assert two.count[:, -1].tolist() == [0, 10]
    assert "2 lists" in repr(two)


def test_lists_of_other_lengths():
    qid = np.repeat([0, 1, 2], [3, 1, 8])
    score, group = np.random.default_rng(0).permutation(12), np.tile(["a", "b"], 6)
    result = prefix_test(score, sensitive_features=group, qid=qid, group="a", k=5)
    assert np.isnan(result.tail).sum(axis=1).tolist() == [2, 4, 0]
    for q in range(3):
        rows = qid == q
        if "a" in group[rows]:
            who = group[rows]
            alone = prefix_test(score[rows], sensitive_features=who, group="a", k=5)
            assert alone.pvalue == pytest.approx(result.pvalues[q])


def test_bad_input_raises():
    columns = {"sensitive_features": ["a", "b", "a"], "group": "a"}
    for options, message in [
        ({"group": "c"}, "group must be one of"),
        ({"share": 1.0}, "share must be a number"),
        ({"k": 0}, "k must be an integer"),
        ({"sensitive_features": None}, "sensitive_features must be given"),
        ({"qid": [1, 2]}, "same number of rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            prefix_test([1, 2, 3], **{**columns, **options})
    with pytest.raises(ValueError, match="k must be smaller"):
        prefix_test(np.arange(8000), sensitive_features=np.arange(8000) % 2, group=1)
