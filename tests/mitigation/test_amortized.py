"""Equity of attention: the ranking of least unfairness, and the books it keeps."""

import numpy as np
import pytest

from skrankfair.mitigation._amortized import amortized_order
from skrankfair.mitigation._floors import QueryLists
from tests.reference.reranking_exposure import dcg, fairest_ranking

DCG = 1 / np.log2(np.arange(2, 102))


def ranked(score, subject, query, quality=0.0, weights=DCG, discounts=DCG, books=None):
    """Ranks and the books afterwards, as (2, n_subjects): attention and relevance."""
    books = np.zeros((2, subject.max() + 1)) if books is None else books.copy()
    by_score = np.lexsort((-score, query))
    starts = np.searchsorted(query, np.arange(query[-1] + 2))
    lists = QueryLists(starts, None, score[by_score], subject[by_score], books.shape[1])
    order = by_score[amortized_order(lists, weights, discounts, quality, books)]
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size) - starts[query] + 1
    return ranks, books


class TestOptimum:
    @pytest.mark.parametrize("k", [None, 2])
    @pytest.mark.parametrize("quality", [0.0, 0.9, 0.98, 1.0])
    @pytest.mark.parametrize("n_subjects", [2, 6])
    def test_is_that_of_all_permutations(self, n_subjects, quality, k):
        rng = np.random.default_rng(n_subjects)
        weights, discounts = DCG[:5] ** 2, DCG[:5].copy()
        if k:
            weights[k:] = discounts[k:] = 0
        for _ in range(8):
            subject = rng.integers(0, n_subjects, 5)
            if n_subjects == 6:
                subject = rng.permutation(6)[:5]
            score = np.round(rng.random(5), rng.choice([1, 8]))
            books = rng.random((2, 6)) / 5
            columns = score, subject, np.zeros(5, int)
            ranks, after = ranked(*columns, quality, weights, discounts, books)
            debt = books[1] - books[0]
            least, _, _ = fairest_ranking(
                score, subject, weights, discounts, quality, debt
            )
            order = np.argsort(ranks)
            given = weights[ranks - 1] / weights.sum()
            n_each = np.bincount(subject, minlength=6)[subject]
            due = (after[1] - books[0])[subject] / n_each
            assert np.abs(given - due).sum() == pytest.approx(least, abs=1e-7)
            best = dcg(score, discounts, np.argsort(-score))
            assert dcg(score, discounts, order) >= (quality - 1e-6) * best

    def test_places_after_the_last_that_counts_are_by_score(self):
        rng = np.random.default_rng(0)
        score, weights = rng.random(30), np.where(np.arange(30) < 5, 1.0, 0.0)
        discounts = DCG[:30] * weights
        for quality in (0.0, 0.95):
            books = rng.random((2, 30))
            columns = score, np.arange(30), np.zeros(30, int)
            ranks, _ = ranked(*columns, quality, weights, discounts, books)
            rest = score[np.argsort(ranks)][5:]
            assert (np.diff(rest) <= 0).all()


class TestBooks:
    def test_are_the_sums_of_shares(self):
        rng = np.random.default_rng(1)
        query = np.repeat(np.arange(20), 5)
        score, subject = rng.random(100), rng.integers(0, 7, 100)
        ranks, books = ranked(score, subject, query, quality=0.9)
        attention, relevance = np.zeros(7), np.zeros(7)
        for row in range(100):
            attention[subject[row]] += DCG[ranks[row] - 1] / DCG[:5].sum()
            relevance[subject[row]] += score[row] / score[query == query[row]].sum()
        np.testing.assert_allclose(books, [attention, relevance], atol=1e-12)

    @pytest.mark.parametrize("quality", [0.0, 0.95])
    def test_equals_take_turns(self, quality):
        """Four candidates of one relevance get one attention in the long run."""
        query = np.repeat(np.arange(100), 4)
        _, books = ranked(np.ones(400), np.tile(np.arange(4), 100), query, quality)
        np.testing.assert_allclose(books[1], 25)
        np.testing.assert_allclose(books[0], 25, atol=0.5)

    def test_without_relevance_all_are_due_the_same(self):
        _, books = ranked(np.zeros(3), np.arange(3), np.zeros(3, int), 1.0)
        np.testing.assert_allclose(books[1], 1 / 3)
