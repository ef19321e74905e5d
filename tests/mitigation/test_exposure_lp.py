"""Fairness of exposure: the optimum of the whole program, from few rankings."""

import numpy as np
import pytest

from skrankfair.mitigation._exposure_lp import (
    CONSTRAINTS,
    drawn_order,
    exposure_mixture,
)
from skrankfair.mitigation._floors import QueryLists
from tests.reference.reranking_exposure import (
    equations,
    expected_exposure,
    most_useful_policy,
)

DCG = 1 / np.log2(np.arange(2, 22))


def columns(seed, n_groups, n_queries=12, longest=7, decimals=8):
    """Scores, groups and queries, some with one candidate and some with ties."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), rng.integers(1, longest + 1, n_queries))
    score = np.round(rng.random(query.size) ** 2, decimals)
    return score, rng.integers(0, n_groups, query.size), query


def lists(score, group, query):
    """QueryLists of rows that need not be ranked."""
    starts = np.searchsorted(query, np.arange(query[-1] + 2))
    alone = np.arange(score.size)  # no row is tied
    return QueryLists(starts, alone, score, group, group.max() + 1)


def mixed(score, group, query, weights, constraint):
    """Ranks, chances and moves of all queries."""
    return exposure_mixture(lists(score, group, query), weights, constraint)


def of_queries(mixture, query, weights):
    """Yield rows, expected exposure and the move of each query."""
    all_ranks, all_chances, relaxed = mixture
    for q in range(query[-1] + 1):
        rows = np.flatnonzero(query == q)
        ranks, chances = all_ranks[:, rows], all_chances[:, q]
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        for rank in ranks[chances > 0]:
            assert sorted(rank) == list(range(1, rows.size + 1))
        known = chances > 0
        exposure = expected_exposure(ranks[known], chances[known], weights)
        yield rows, exposure, relaxed[q]


def drawn(columns, weights=DCG):
    """The order of parity, drawn with one seed."""
    return drawn_order(lists(*columns), weights, "parity", np.random.default_rng(0))


class TestOptimum:
    @pytest.mark.parametrize("decimals", [1, 8])
    @pytest.mark.parametrize("n_groups", [1, 2, 4])
    @pytest.mark.parametrize("constraint", CONSTRAINTS)
    def test_is_that_of_the_dense_program(self, constraint, n_groups, decimals):
        score, group, query = columns(n_groups, n_groups, decimals=decimals)
        mixture = mixed(score, group, query, DCG, constraint)
        for rows, exposure, moved in of_queries(mixture, query, DCG):
            u, g = score[rows].tolist(), group[rows].tolist()
            policy, utility, least = most_useful_policy(u, g, DCG, constraint)
            assert moved == pytest.approx(least, abs=1e-8)
            assert u @ exposure == pytest.approx(utility, abs=3e-8)
            left, moves = equations(u, g, DCG, constraint)
            for row, move in zip(left, moves, strict=True):
                by_item = np.reshape(row, policy.shape)[:, 0] / DCG[0]
                assert by_item @ exposure == pytest.approx(moved * move, abs=1e-9)

    @pytest.mark.parametrize(
        "weights", [[1, 0, 0, 0, 0, 0, 0], [0.2, 0.5, 0, 1, 0.5, 0.1, 0], np.ones(7)]
    )
    def test_takes_any_weights_of_places(self, weights):
        weights = np.array(weights, dtype=float)
        score, group, query = columns(5, 3)
        mixture = mixed(score, group, query, weights, "parity")
        for rows, exposure, _ in of_queries(mixture, query, weights):
            utility = most_useful_policy(score[rows], group[rows], weights, "parity")[1]
            assert score[rows] @ exposure == pytest.approx(utility, abs=1e-9)

    def test_groups_of_little_relevance(self):
        score, group, query = columns(6, 3, n_queries=60, longest=20)
        score = score**3
        mixture = mixed(score, group, query, DCG, "impact")
        for rows, exposure, _ in of_queries(mixture, query, DCG):
            for row in equations(score[rows], group[rows], DCG, "impact")[0]:
                by_item = np.reshape(row, (rows.size, -1))[:, 0]
                assert by_item @ exposure == pytest.approx(0, abs=1e-10)

    def test_mixes_at_most_as_many_rankings_as_groups(self):
        score, group, query = columns(0, 4, n_queries=100, longest=20)
        mixture = mixed(score, group, query, DCG, "parity")
        for q in range(100):
            n_groups = len(set(group[query == q]))
            assert (mixture[1][:, q] > 0).sum() <= n_groups

    def test_six_job_seekers(self):
        """Relevances .82 to .77, three men first: exposure .71 and .39 if sorted."""
        score, group = np.arange(0.82, 0.765, -0.01), np.repeat([0, 1], 3)
        assert DCG[:3].mean() == pytest.approx(0.71, abs=0.005)
        assert DCG[3:6].mean() == pytest.approx(0.39, abs=0.005)
        ratios = {}
        for constraint in CONSTRAINTS:
            mixture = mixed(score, group, np.zeros(6, int), DCG, constraint)
            exposure = next(of_queries(mixture, np.zeros(6, int), DCG))[1]
            click = score * exposure
            ratios[constraint] = [x[:3].sum() / x[3:].sum() for x in (exposure, click)]
        merit = score[:3].sum() / score[3:].sum()
        assert ratios["parity"][0] == pytest.approx(1, abs=1e-9)
        assert ratios["treatment"][0] == pytest.approx(merit, abs=1e-9)
        assert ratios["impact"][1] == pytest.approx(merit, abs=1e-9)

    def test_shift_and_unit_of_scores(self):
        score, group, query = columns(3, 2)
        for constraint, other in [
            ("parity", 1e3 * score - 7),
            ("treatment", 1e-3 * score),
            ("impact", 1e3 * score),
        ]:
            first, second = (
                mixed(values, group, query, DCG, constraint)
                for values in (score, other)
            )
            for one, two in zip(
                of_queries(first, query, DCG),
                of_queries(second, query, DCG),
                strict=True,
            ):
                utilities = [score[one[0]] @ part[1] for part in (one, two)]
                assert utilities[0] == pytest.approx(utilities[1], abs=1e-8)


class TestFeasible:
    def test_all_merit_in_one_group(self):
        """The best share of the first of two is 1 / (1 + 1/log2(3)), not 1."""
        mixture = mixed(
            np.array([1.0, 0.0]), np.array([0, 1]), np.zeros(2, int), DCG, "treatment"
        )
        reached = 1 / (1 + 1 / np.log2(3))
        assert 1 - mixture[2][0] / 2 == pytest.approx(reached, abs=1e-12)
        assert mixture[1][:, 0].max() == pytest.approx(1, abs=1e-9)

    def test_without_merit_exposure_is_equal(self):
        score, group = np.zeros(4), np.array([0, 1, 1, 1])
        mixture = mixed(score, group, np.zeros(4, int), DCG, "treatment")
        exposure = next(of_queries(mixture, np.zeros(4, int), DCG))[1]
        assert exposure[0] == pytest.approx(exposure[1:].mean(), abs=1e-9)


class TestDraw:
    def test_shares_of_draws_are_the_chances(self):
        n_queries = 1000
        score, group = np.array([0.82, 0.81, 0.8, 0.79]), np.array([0, 0, 1, 1])
        query = np.repeat(np.arange(n_queries), 4)
        columns = np.tile(score, n_queries), np.tile(group, n_queries), query
        order = drawn(columns)
        exposure = np.empty(order.size)
        exposure[order] = np.tile(DCG[:4], n_queries)
        exposure = exposure.reshape(n_queries, 4)
        gaps = exposure[:, :2].sum(axis=1) - exposure[:, 2:].sum(axis=1)
        assert abs(gaps.mean()) < 3 * gaps.std() / np.sqrt(n_queries)
        assert gaps.std() > 0.1
        np.testing.assert_array_equal(order, drawn(columns))

    @pytest.mark.parametrize("weights", [[1, 1, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0]])
    def test_places_worth_the_same_are_by_score(self, weights):
        score, group = np.arange(6.0, 0, -1), np.array([0, 0, 0, 1, 1, 1])
        weights = np.array(weights, dtype=float)
        order = drawn((score, group, np.zeros(6, int)), weights)
        assert set(group[order[weights > 0]]) == {0, 1}
        for worth in (0, 1):
            assert (np.diff(score[order[weights == worth]]) < 0).all()
