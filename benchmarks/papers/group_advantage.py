"""Figures 1 to 3 of Kuhlman et al. 2021: ``group_advantage.py [PATH] [--folder DIR]``.

1. Ten random rankings with a protected group of 20%, by its advantage.
2. The metrics against the advantage, for protected groups of 20, 50 and 80%. The first
   row is scaled as the paper says: rND, rKL, expRR and pair by the largest value that
   the sizes of the groups allow, rRD by its value at an advantage of 0.9, and skew,
   which has no bounds, by the range of its curve. The second row has other metrics. The
   numbers are printed without the scales of rRD and skew, with the largest values that
   normalise rND and rKL. The authors print smaller ones of rKL: they clip shares at
   .001 and .999.
3. The monotonicity test of fifteen weeks of quarterbacks, ranked by experts.

PATH has the rankings, of which the authors' repository on GitHub,
waltergerych/AIES_2021_Measuring_Group_Advantage, holds pickles in its folder fair_rank:
a dictionary by week of frames with a row per player, a column per expert ("Rank1", ...)
and a column "Division". Such a pickle can be passed as it is; reading a pickle runs
what is in it, so look where it comes from. It can also be a CSV with the columns week,
expert, player, rank and division, as `long_frame` makes them: 24,300 rows of 16 weeks,
90 experts and 33 quarterbacks have the numbers of the documentation. The group is
division 1, which the paper calls the AFC; by the players' teams of 2020 it is the NFC.
Without PATH there is no Figure 3. Of each week the ten players with the best mean rank
are kept and ranked anew by each expert, since raw ranks have gaps. A position that the
group never has counts 0, and takes part. Three pictures are written into the folder.
``monotonicity_size.py`` has the size and the power of the test.
"""

from __future__ import annotations

import argparse
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from skrankfair import metrics
from skrankfair._estimates.formatting import text_table
from skrankfair.datasets import make_biased_rankings
from skrankfair.inference import monotonicity_test, recommend_metrics
from skrankfair.inference._monotonicity import MonotonicityTest

mpl.use("Agg")
import matplotlib.pyplot as plt

SHARES = (0.2, 0.5, 0.8)
ADVANTAGES = np.round(np.arange(0, 1.01, 0.1), 2)
N_ITEMS, STEP = 1000, 100
METHODS = ("chi2", "bootstrap")
LINE = "#333333"
METRICS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "rND": (metrics.normalized_discounted_difference, {"step": STEP}),
    "rRD": (metrics.normalized_discounted_ratio, {"step": STEP}),
    "rKL": (metrics.normalized_discounted_kl, {"step": STEP}),
    "skew": (metrics.skew_at_k, {"step": STEP}),
    "pair": (metrics.pairwise_parity, {}),
    "expRR": (metrics.exposure_parity, {"divisor": "maximum"}),
    "expRR/sum": (metrics.exposure_parity, {}),
    "expDCG": (
        metrics.exposure_parity,
        {"position_weight": "dcg", "divisor": "maximum"},
    ),
    "NDKL": (metrics.ndkl, {}),
}
#: Okabe and Ito's palette, and a dash, for the metrics of either row of Figure 2.
LOOKS = {
    "pair": ("#0072B2", "-"),
    "rND": ("#D55E00", "-"),
    "rKL": ("#009E73", "-"),
    "expRR": ("#CC79A7", "-"),
    "rRD": ("#E69F00", "-"),
    "skew": ("#333333", "--"),
    "NDKL": ("#009E73", ":"),
    "expDCG": ("#CC79A7", ":"),
    "expRR/sum": ("#CC79A7", "--"),
}
OF_THE_PAPER, OTHERS = list(LOOKS)[:6], list(LOOKS)[6:]


def figure_1(folder: pathlib.Path) -> None:
    """Ten rankings of 50 items, 20% protected, by advantage."""
    advantages = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    figure, axes = plt.subplots(
        1, len(advantages), figsize=(9, 3.8), sharey=True, layout="constrained"
    )
    for ax, advantage in zip(axes, advantages, strict=True):
        data = make_biased_rankings(10, 50, 0.2, advantage, random_state=0)
        member = data.sensitive_features.reshape(10, 50) == "protected"
        ax.pcolormesh(
            np.arange(11),
            np.arange(51) + 0.5,
            member.T,
            cmap=mpl.colors.ListedColormap(["#F2F2F2", LINE]),
            edgecolor="white",
            linewidth=0.6,
        )
        ax.set_title(f"α = {advantage:g}", size="medium")
        ax.set_xticks([])
        ax.spines[:].set_visible(False)
    axes[0].invert_yaxis()
    axes[0].set_yticks([1, 10, 20, 30, 40, 50])
    axes[0].set_ylabel("position, 1 = top")
    figure.suptitle("Ten rankings each; dark: protected, 20%", size="medium")
    figure.savefig(folder / "group_advantage_figure_1.png", dpi=120)


def mean_values(share: float, advantage: float, n_runs: int) -> dict[str, float]:
    """Return the mean of every metric over the runs, for the protected group."""
    data = make_biased_rankings(
        n_runs, N_ITEMS, share, advantage, random_state=round(100 * advantage)
    )
    who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    found = {}
    for name, (metric, options) in METRICS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # skew is -inf at α = 0
            r = metric(None, data.y_score, **who, **options)
        found[name] = float(r.estimate[r.groups.index("protected")])
    return found


def scaled(name: str, values: np.ndarray) -> np.ndarray:
    """Return a curve on the scale of Figure 2."""
    if name == "rRD":
        return values / values[ADVANTAGES == 0.9]
    if name == "skew":
        low, high = (end(values[np.isfinite(values)]) for end in (np.min, np.max))
        return (values - low) / (high - low)
    return values


def figure_2(folder: pathlib.Path, n_runs: int) -> None:
    """Metrics against the advantage, averaged over runs; print them."""
    figure, axes = plt.subplots(
        2,
        len(SHARES),
        figsize=(10.5, 6),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for column, share in zip(axes.T, SHARES, strict=True):
        rows = [
            mean_values(share, float(advantage), n_runs) for advantage in ADVANTAGES
        ]
        cells = [
            [f"{a:.1f}", *(f"{row[name]:.3f}" for name in METRICS)]
            for a, row in zip(ADVANTAGES, rows, strict=True)
        ]
        print(
            f"\n{share:.0%} protected: metrics by advantage, mean of {n_runs} rankings"
        )
        print(text_table(["α", *METRICS], cells))
        for ax, names in zip(column, (OF_THE_PAPER, OTHERS), strict=True):
            for name in names:
                values = scaled(name, np.array([row[name] for row in rows]))
                color, dash = LOOKS[name]
                ax.plot(
                    ADVANTAGES[np.isfinite(values)],
                    values[np.isfinite(values)],
                    color=color,
                    linestyle=dash,
                    marker="o",
                    markersize=3,
                    label=name,
                )
            ax.axvline(share, color="#999999", lw=0.8, zorder=0)
            ax.axhline(0, color="#999999", lw=0.8, zorder=0)
            for side in ("top", "right"):
                ax.spines[side].set_visible(False)
        column[0].set_title(f"{share:.0%} protected", size="medium")
        column[0].set_ylim(-0.03, 1.05)  # rRD leaves it
        column[1].set_xlabel("advantage α")
    axes[0, 0].set_ylabel("metrics of the paper, scaled")
    axes[1, 0].set_ylabel("other metrics")
    for ax in axes[:, -1]:
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1))
    figure.savefig(folder / "group_advantage_figure_2.png", dpi=120)


def normalisers() -> None:
    """Print the largest unnormalised values, rKL in bits."""
    rows = []
    for n_protected in (200, 500, 800):
        group = np.arange(N_ITEMS) < n_protected
        found = []
        for name, unit in (("rND", 1.0), ("rKL", np.log(2))):
            metric, options = METRICS[name]
            who = {"sensitive_features": group, "normalize": False, **options}
            values = [
                metric(None, sign * np.arange(N_ITEMS), **who).estimate[1]
                for sign in (1, -1)
            ]
            found.append(f"{max(values) / unit:.6f}")
        rows.append([str(n_protected), *found])
    print(f"\nLargest values of {N_ITEMS} items, cuts every {STEP}, log2(k + 1)")
    print(text_table(["protected", "rND", "rKL (bits)"], rows))


def long_frame(weeks: dict[Any, pd.DataFrame]) -> pd.DataFrame:
    """Return the authors' frames by week as one, a row per expert and player."""
    parts = [
        frame.rename_axis("player")
        .reset_index()
        .melt(["player", "Division"], var_name="expert", value_name="rank")
        .assign(week=week)
        for week, frame in weeks.items()
    ]
    rows = pd.concat(parts, ignore_index=True).dropna(subset="rank")
    return rows.rename(columns={"Division": "division"})


def week_columns(frame: pd.DataFrame, n_players: int = 10) -> dict[str, Any]:
    """Return the columns of a week's test: its players with the best mean rank."""
    best = frame.groupby("player")["rank"].mean().nsmallest(n_players).index
    rows = frame[frame["player"].isin(best)]
    return {
        "y_score": -rows["rank"],
        "sensitive_features": np.where(rows["division"] == 1, "one", "other"),
        "qid": rows["expert"],
        "group": "one",
    }


def verdict(test: MonotonicityTest) -> str:
    """Return the p-value, with a star if it is below 5%."""
    text = "<0.001" if test.pvalue < 0.001 else f"{test.pvalue:.3f}"
    return f"{text} *" if test.rejected else text


def figure_3(path: pathlib.Path, folder: pathlib.Path) -> None:
    """The weeks of the quarterbacks, by the paper's test and by the bootstrap."""
    if path.suffix in (".pickle", ".pkl"):
        frame = long_frame(pd.read_pickle(path))
    else:
        frame = pd.read_csv(path)
    figure, axes = plt.subplots(
        3, 5, figsize=(13, 7.5), sharex=True, sharey=True, layout="constrained"
    )
    rows, weeks = [], {}
    for week, ax in zip(range(1, 16), axes.ravel(), strict=True):
        columns = week_columns(frame[frame["week"] == week])
        chi2, boot = weeks[week] = [
            monotonicity_test(**columns, method=method, random_state=0)
            for method in METHODS
        ]
        rows.append(
            [
                str(week),
                " ".join(f"{c:.0f}" for c in chi2.count),
                f"{chi2.n_rankings:.0f}",
                "up" if chi2.increasing else "down",
                f"{chi2.statistic:.2f}",
                f"{chi2.pvalue:.3g}{' *' if chi2.rejected else ''}",
                f"{boot.pvalue:.3f}{' *' if boot.rejected else ''}",
            ]
        )
        display = chi2.plot(ax=ax)
        display.legend_.remove()
        title = f"week {week}: {verdict(chi2)} | {verdict(boot)}"
        ax.set_title(title, loc="left", size="medium")
        ax.set(xlabel="", ylabel="")
    print("\nQuarterbacks: p-values below 5% with a star, of chi-square and of the")
    print("bootstrap of experts; division 1 by position, the top first")
    header = ["week", "at positions", "of", "fit", "chi2", "p chi2", "p bootstrap"]
    print(text_table(header, rows))
    for index, method in enumerate(METHODS):
        passed = sum(not tests[index].rejected for tests in weeks.values())
        print(f"{passed} of {len(weeks)} weeks pass at 5% ({method})")
    for week in (1, 15):
        print(f"\nWeek {week}: {recommend_metrics(weeks[week][0], 'evaluate')}")
    axes[2, 2].set_xlabel("position, 1 = top")
    axes[1, 0].set_ylabel("share of division 1")
    figure.suptitle(
        "p-values of the monotonicity test: chi-square | bootstrap (* below 5%)",
        size="medium",
    )
    artists = {}
    for ax in axes.ravel():
        handles, labels = ax.get_legend_handles_labels()
        artists |= dict(zip(labels, handles, strict=True))
    figure.legend(
        artists.values(),
        artists.keys(),
        loc="outside lower center",
        ncols=5,
        frameon=False,
    )
    figure.savefig(folder / "group_advantage_figure_3.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("path", nargs="?", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--runs", type=int, default=10, help="rankings of Figure 2")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    figure_1(options.folder)
    figure_2(options.folder, options.runs)
    normalisers()
    if options.path is not None:
        figure_3(options.path, options.folder)


if __name__ == "__main__":
    main()
