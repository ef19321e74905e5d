"""The ranker of the demonstration against plain loops and the dense SVD."""

import numpy as np
import pandas as pd
import pytest

from skrankfair._cli.demo import RankedRatings, rank_with_svd, split_by_time


def make_ratings(n_users=60, n_movies=40, share=0.4, seed=0):
    """Some pairs of users and movies in random order, ids with gaps."""
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
    """Positions and scores from the filled matrix and numpy's SVD, row by row."""
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
    """The earliest ratings of each user, found with Python's stable sort."""
    table = ratings.reset_index(drop=True)
    train = np.zeros(len(table), dtype=bool)
    for _, own in table.groupby("user_id"):
        rows = sorted(own.index, key=lambda row: table["timestamp"][row])
        train[rows[: int(round(train_share * len(rows), 6))]] = True
    return train


class TestSplitByTime:
    @pytest.mark.parametrize("train_share", [0.01, 0.29, 0.5, 0.8, 0.99])
    @pytest.mark.parametrize(
        "dtype", ["int64", "int16", "uint32", "float64", "datetime64[ns]"]
    )
    def test_matches_a_loop(self, train_share, dtype):
        ratings = make_ratings()
        expected = split_by_loop(ratings, train_share)
        ratings["timestamp"] = ratings["timestamp"].astype(dtype)
        np.testing.assert_array_equal(split_by_time(ratings, train_share), expected)

    @pytest.mark.parametrize("low", [-(2**62), -(2**31), 0, 2**40])
    @pytest.mark.parametrize("step", [1, 2**30, 2**57])
    def test_any_range_of_times(self, low, step):
        ratings = make_ratings()
        expected = split_by_loop(ratings, 0.8)
        ratings["timestamp"] = low + step * ratings["timestamp"]
        np.testing.assert_array_equal(split_by_time(ratings), expected)

    def test_ties_go_by_the_order_of_rows(self):
        ratings = pd.DataFrame({"user_id": ["a"] * 5, "timestamp": [2, 1, 2, 1, 2]})
        train = split_by_time(ratings, 0.6)
        assert train.tolist() == [True, True, False, True, False]

    def test_at_most_the_share(self):
        sizes = [1, 4, 5, 6, 100]
        user = np.repeat(np.arange(5), sizes)
        ratings = pd.DataFrame({"user_id": user, "timestamp": np.arange(len(user))})
        train = split_by_time(ratings, 0.8)
        assert np.bincount(user, train).tolist() == [0, 3, 4, 4, 80]
        # 0.29 * 100 is 28.999999999999996
        assert np.bincount(user, split_by_time(ratings, 0.29))[-1] == 29

    def test_no_ratings(self):
        ratings = make_ratings().iloc[:0]
        assert split_by_time(ratings).shape == (0,)

    @pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, np.nan, "0.8", None])
    def test_share(self, share):
        with pytest.raises(ValueError, match="`train_share` must be a number between"):
            split_by_time(make_ratings(), share)

    @pytest.mark.parametrize("column", ["user_id", "timestamp"])
    def test_columns(self, column):
        ratings = make_ratings()
        with pytest.raises(
            ValueError, match=f"`ratings` must have a column '{column}'"
        ):
            split_by_time(ratings.drop(columns=column))
        ratings[column] = ratings[column].astype(float)
        ratings.iloc[3, ratings.columns.get_loc(column)] = np.nan
        with pytest.raises(ValueError, match=f"no missing values; '{column}' has 1"):
            split_by_time(ratings)


class TestRankWithSvd:
    @pytest.mark.parametrize("n_components", [1, 2, 5, 20])
    @pytest.mark.parametrize("shape", [(60, 40), (30, 70), (50, 50)])
    def test_matches_the_dense_svd(self, n_components, shape):
        ratings = make_ratings(*shape)
        train = split_by_time(ratings)
        ranked = rank_with_svd(ratings, train, n_components)
        positions, scores = dense_scores(ratings, train, n_components)
        assert isinstance(ranked, RankedRatings)
        assert ranked.positions.tolist() == positions
        np.testing.assert_allclose(ranked.scores, scores, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("shape", [(12, 40), (40, 12)])
    def test_more_components_than_users_or_movies(self, shape):
        ratings = make_ratings(*shape)
        train = split_by_time(ratings)
        ranked = rank_with_svd(ratings, train)
        expected = rank_with_svd(ratings, train, n_components=11)
        np.testing.assert_array_equal(ranked.scores, expected.scores)
        np.testing.assert_allclose(
            ranked.scores, dense_scores(ratings, train, 11)[1], rtol=0, atol=1e-10
        )

    def test_many_rows_are_scored_in_chunks(self, monkeypatch):
        ratings = make_ratings()
        train = split_by_time(ratings)
        whole = rank_with_svd(ratings, train, 5)
        monkeypatch.setattr("skrankfair._cli.demo._CHUNK", 7)
        np.testing.assert_allclose(
            rank_with_svd(ratings, train, 5).scores, whole.scores
        )

    def test_unseen_users_and_movies_are_dropped(self):
        ratings = make_ratings(8, 9, share=1.0)
        train = split_by_time(ratings)
        new_user = ratings["user_id"].to_numpy() == ratings["user_id"].iloc[0]
        new_movie = ratings["movie_id"].to_numpy() == ratings["movie_id"].iloc[0]
        train &= ~new_user & ~new_movie
        ranked = rank_with_svd(ratings, train, 2)
        np.testing.assert_array_equal(
            ranked.positions, np.flatnonzero(~train & ~new_user & ~new_movie)
        )

    def test_equal_ratings_give_equal_scores(self):
        ratings = make_ratings().assign(rating=3.5)
        ranked = rank_with_svd(ratings, split_by_time(ratings), 5)
        np.testing.assert_allclose(ranked.scores, 3.5)

    def test_same_numbers_again(self):
        ratings = make_ratings()
        train = split_by_time(ratings)
        first, second = (rank_with_svd(ratings, train, 5) for _ in range(2))
        np.testing.assert_array_equal(first.scores, second.scores)

    @pytest.mark.parametrize("random_state", [1, np.random.RandomState(2), None])
    def test_the_starting_vector_does_not_matter(self, random_state):
        ratings = make_ratings()
        train = split_by_time(ratings)
        expected = rank_with_svd(ratings, train, 5).scores
        ranked = rank_with_svd(ratings, train, 5, random_state)
        np.testing.assert_allclose(ranked.scores, expected, rtol=0, atol=1e-10)

    def test_the_order_of_rows_does_not_matter(self):
        ratings = make_ratings()
        train = split_by_time(ratings)
        order = np.random.default_rng(1).permutation(len(ratings))
        ranked = rank_with_svd(ratings, train, 5)
        shuffled = rank_with_svd(ratings.iloc[order], train[order], 5)
        there = order[shuffled.positions]
        np.testing.assert_array_equal(np.sort(there), ranked.positions)
        np.testing.assert_allclose(
            shuffled.scores[np.argsort(there)], ranked.scores, rtol=0, atol=1e-10
        )

    def test_ids_may_be_text_and_train_a_list(self):
        ratings = make_ratings()
        train = split_by_time(ratings)
        expected = rank_with_svd(ratings, train, 5).scores
        named = ratings.assign(
            user_id="u" + ratings["user_id"].astype(str),
            movie_id="m" + ratings["movie_id"].astype(str),
        )
        ranked = rank_with_svd(named, train.tolist(), 5)
        np.testing.assert_allclose(ranked.scores, expected, rtol=0, atol=1e-10)

    def test_progress(self):
        ratings = make_ratings()
        lines = []
        rank_with_svd(ratings, split_by_time(ratings), 5, progress=lines.append)
        assert len(lines) == 2
        assert lines[0].startswith("SVD with 5 components of 60 users x 40 movies, ")
        assert lines[1].startswith("scoring ")

    def test_the_result_is_frozen(self):
        ratings = make_ratings()
        ranked = rank_with_svd(ratings, split_by_time(ratings), 5)
        with pytest.raises(AttributeError):
            ranked.scores = ranked.positions


class TestWhatIsWrong:
    @pytest.mark.parametrize("n_components", [0, -1, 2.0, "2", None, True])
    def test_n_components(self, n_components):
        ratings = make_ratings()
        with pytest.raises(ValueError, match="`n_components` must be an integer of at"):
            rank_with_svd(ratings, split_by_time(ratings), n_components)

    @pytest.mark.parametrize("train", [[True, False], [1, 0], "all", None])
    def test_train_is_no_mask(self, train):
        with pytest.raises(ValueError, match="`train` must be a boolean mask of shape"):
            rank_with_svd(make_ratings(), train)

    @pytest.mark.parametrize("value", [True, False])
    def test_nothing_to_score(self, value):
        ratings = make_ratings()
        with pytest.raises(ValueError, match="`train` must leave a rating whose user"):
            rank_with_svd(ratings, np.full(len(ratings), value))

    def test_a_pair_twice(self):
        ratings = make_ratings()
        train = split_by_time(ratings)
        twice = pd.concat([ratings, ratings[train].iloc[:2]])
        with pytest.raises(ValueError, match=r"each pair of .* once in .*; 2 rows"):
            rank_with_svd(twice, np.append(train, [True, True]))

    def test_one_movie(self):
        ratings = pd.DataFrame(
            {"user_id": [1, 2, 1], "movie_id": 5, "rating": [1.0, 2.0, 3.0]}
        )
        with pytest.raises(ValueError, match="two movies or more; got 2 and 1"):
            rank_with_svd(ratings, [True, True, False])

    @pytest.mark.parametrize("column", ["user_id", "movie_id", "rating"])
    def test_columns(self, column):
        ratings = make_ratings()
        train = split_by_time(ratings)
        with pytest.raises(
            ValueError, match=f"`ratings` must have a column '{column}'"
        ):
            rank_with_svd(ratings.drop(columns=column), train)

    def test_rating_is_not_finite(self):
        ratings = make_ratings().astype({"rating": float})
        train = split_by_time(ratings)
        row = int(np.flatnonzero(train)[0])
        place = ratings.columns.get_loc("rating")
        ratings.iloc[row, place] = np.inf
        with pytest.raises(ValueError, match="`ratings` must have finite ratings"):
            rank_with_svd(ratings, train)
        ratings.iloc[row, place] = np.nan
        with pytest.raises(ValueError, match="no missing values; 'rating' has 1"):
            rank_with_svd(ratings, train)

    def test_rating_is_no_number(self):
        ratings = make_ratings()
        train = split_by_time(ratings)
        with pytest.raises(ValueError, match="`ratings` must have numeric ratings"):
            rank_with_svd(ratings.assign(rating="good"), train)

    def test_random_state(self):
        ratings = make_ratings()
        with pytest.raises(ValueError, match="seed"):
            rank_with_svd(ratings, split_by_time(ratings), random_state="zero")
