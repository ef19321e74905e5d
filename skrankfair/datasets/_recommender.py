"""A recommender of MovieLens: the earliest ratings train it, and it ranks the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator, svds

from .._inputs.validation import Array


def split_by_time(ratings: pd.DataFrame, train_share: float = 0.8) -> Array:
    """Return which ratings are the earliest of their user, to train on.

    Of n ratings of a user they are the first ``floor(train_share * n)``; ratings with
    the same timestamp are taken in the order of the rows.
    """
    ordered = ratings.reset_index(drop=True).sort_values(["user_id", "timestamp"])
    users = ordered.groupby("user_id")["user_id"]
    # It is rounded first: in floating point 0.29 * 100 is a little less than 29.
    n_train = np.floor(np.round(train_share * users.transform("size"), 6))
    return (users.cumcount() < n_train).sort_index().to_numpy(copy=True)


def rank_with_svd(
    ratings: pd.DataFrame,
    train: Array,
    n_components: int = 64,
    *,
    progress: Callable[[str], object] = lambda message: None,
) -> tuple[Array, Array]:
    r"""Return row numbers of the held-out ratings, and their scores by a truncated SVD.

    This is the ranker of the MovieLens example of Korevaar et al. (2023): the matrix of
    users and movies, its missing ratings filled with the mean of the training ratings,
    is approximated by its leading singular vectors, and a held-out rating is scored by
    its entry of the approximation. Ratings whose user or movie is not in training have
    no score and are left out.

    The rank is at most one less than the smaller of the numbers of users and of movies
    in training, since the full rank reproduces the filled matrix, in which all unseen
    pairs have the same score. With the mean :math:`\mu` of the training ratings and
    the sparse matrix :math:`R` of their differences from it, the filled matrix is
    :math:`X = R + \mu 1 1^T`. The Lanczos solver only multiplies by :math:`X` and
    :math:`X^T`, so the filled matrix is never written down.
    """
    codes = []
    for name in ("user_id", "movie_id"):
        known = pd.Index(ratings[name][train]).unique().sort_values()
        codes.append(known.get_indexer(ratings[name]))
    user, movie = codes
    positions = np.flatnonzero(~train & (user >= 0) & (movie >= 0))
    rating = ratings["rating"].to_numpy(dtype=float)[train]
    shape, mean = (int(user.max()) + 1, int(movie.max()) + 1), rating.mean()
    rank = min(n_components, min(shape) - 1)
    progress(
        f"SVD with {rank} components of {shape[0]:,} users x {shape[1]:,} movies, "
        f"{len(rating):,} ratings"
    )
    residual = csr_array((rating - mean, (user[train], movie[train])), shape=shape)
    column = aslinearoperator(np.full((shape[0], 1), mean))
    row = aslinearoperator(np.ones((1, shape[1])))
    filled = aslinearoperator(residual) + column @ row
    start = np.random.default_rng(0).uniform(-1.0, 1.0, size=min(shape))
    left, values, right = svds(filled, k=rank, v0=start)
    progress(f"scoring {len(positions):,} of {int((~train).sum()):,} held-out ratings")
    scores = np.zeros(len(positions))
    for users, value, movies in zip(left.T, values, right, strict=True):
        scores += value * users[user[positions]] * movies[movie[positions]]
    return positions, scores
