"""The recommender of MovieLens against plain loops and the dense SVD."""

import numpy as np
import pandas as pd
import pytest

from skrankfair.datasets._recommender import rank_with_svd, split_by_time


def make_ratings(n_users=60, n_movies=40, share=0.4, seed=0):
    """Return some pairs of users and movies in random order, ids with gaps."""
    rng = np.random.default_rng(seed)
    user, movie = np.nonzero(rng.random((n_users, n_movies)) < share)
    taste = rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_movies))
    rating = 3 + taste[user, movie] + rng.normal(scale=0.5, size=len(user))
    ratings = pd.DataFrame(
        {
            "user_id": 7 * user + 3,
            "movie_id": 1000 - 5 * movie,
            "rating": (np.clip(np.round(2 * rating), 1, 10) / 2).astype(np.float32),
            "timestamp": rng.integers(0, 50, len(user)),
        }
    )
    return ratings.sample(frac=1, random_state=seed)


def dense_scores(ratings, train, n_components):
    """Return positions and scores by the filled matrix and numpy's SVD, row by row."""
    table = ratings.reset_index(drop=True)
    known = table[train]
    users, movies = sorted(set(known["user_id"])), sorted(set(known["movie_id"]))
    filled = np.full((len(users), len(movies)), known["rating"].astype(float).mean())
    for row in known.itertuples():
        filled[users.index(row.user_id), movies.index(row.movie_id)] = row.rating
    left, values, right = np.linalg.svd(filled, full_matrices=False)
    low_rank = (left[:, :n_components] * values[:n_components]) @ right[:n_components]
    positions, scores = [], []
    for row in table[~train].itertuples():
        if row.user_id in users and row.movie_id in movies:
            positions.append(row.Index)
            place = users.index(row.user_id), movies.index(row.movie_id)
            scores.append(low_rank[place])
    return positions, scores


def split_by_loop(ratings, train_share):
    """Return the earliest ratings of each user by Python's stable sort."""
    table = ratings.reset_index(drop=True)
    train = np.zeros(len(table), dtype=bool)
    for _, rated in table.groupby("user_id"):
        rows = sorted(rated.index, key=lambda row: table["timestamp"][row])
        train[rows[: int(round(train_share * len(rows), 6))]] = True
    return train


class TestSplitByTime:
    @pytest.mark.parametrize("train_share", [0.01, 0.29, 0.5, 0.8, 0.99])
    def test_matches_a_loop(self, train_share):
        ratings = make_ratings()
        expected = split_by_loop(ratings, train_share)
        np.testing.assert_array_equal(split_by_time(ratings, train_share), expected)

    def test_at_most_the_share(self):
        user = np.repeat(np.arange(5), [1, 4, 5, 6, 100])
        ratings = pd.DataFrame({"user_id": user, "timestamp": np.arange(len(user))})
        train = split_by_time(ratings, 0.8)
        assert np.bincount(user, train).tolist() == [0, 3, 4, 4, 80]
        # 0.29 * 100 is 28.999999999999996
        assert np.bincount(user, split_by_time(ratings, 0.29))[-1] == 29


class TestRankWithSvd:
    @pytest.mark.parametrize("n_components", [1, 5, 20])
    @pytest.mark.parametrize("shape", [(60, 40), (30, 70), (50, 50)])
    def test_matches_the_dense_svd(self, n_components, shape):
        ratings = make_ratings(*shape)
        train = split_by_time(ratings)
        ranked, scored = rank_with_svd(ratings, train, n_components)
        positions, scores = dense_scores(ratings, train, n_components)
        assert ranked.tolist() == positions
        np.testing.assert_allclose(scored, scores, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("shape", [(12, 40), (40, 12)])
    def test_more_components_than_users_or_movies(self, shape):
        ratings = make_ratings(*shape)
        train = split_by_time(ratings)
        _, scored = rank_with_svd(ratings, train)
        np.testing.assert_allclose(
            scored, dense_scores(ratings, train, 11)[1], rtol=0, atol=1e-10
        )

    def test_unseen_users_and_movies_are_dropped(self):
        ratings = make_ratings(8, 9, share=1.0)
        train = split_by_time(ratings)
        new_user = ratings["user_id"].to_numpy() == ratings["user_id"].iloc[0]
        new_movie = ratings["movie_id"].to_numpy() == ratings["movie_id"].iloc[0]
        train &= ~new_user & ~new_movie
        ranked, _ = rank_with_svd(ratings, train, 2)
        np.testing.assert_array_equal(
            ranked, np.flatnonzero(~train & ~new_user & ~new_movie)
        )

    def test_progress(self):
        lines = []
        ratings = make_ratings()
        rank_with_svd(ratings, split_by_time(ratings), 5, progress=lines.append)
        assert lines[0].startswith("SVD with 5 components of 60 users x 40 movies, ")
        assert lines[1].startswith("scoring ")
