"""Figures 1a, 1b and 2 of DiCiccio et al. 2023, on drawn data.

    python benchmarks/papers/predictive_parity.py [--folder DIR] [--replications 100]

Experiment 1: two groups of 50,000 persons with one row each; at a score group 1 has the
lower mean outcome. Ten more persons of group 1 have 1000 rows each, one person at the
middle of each tenth of the scores, and outcomes higher by 0.7 times the score. They are
one person in 5000, and yet the curve of group 1 is the higher one when every row weighs
one; when every person does, nothing changes.

Experiment 2: persons with more rows have better calibrated scores. The bias of three
estimates of the calibration error by the number of persons, for many rows per person
and for one. Binned errors count rows, so their bias stays.

Prints both tables, writes them as CSV and three pictures into the folder, and says
whether the paper's claims hold. Takes about two minutes.
"""

from __future__ import annotations

import argparse
import pathlib

import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy import special, stats

from skrankfair.datasets import make_bias_by_construction
from skrankfair.inference import predictive_parity_test
from skrankfair.inference._predictive_parity import PredictiveParityTest
from skrankfair.metrics import calibration_error

mpl.use("Agg")
import matplotlib.pyplot as plt

SCORES = stats.beta(6, 4)
INTERCEPTS = {"group 1": -2.0, "group 2": -1.75}
BANDWIDTH = 0.05
TENTHS = (np.arange(10) + 0.5) / 10
RAISED, ROWS_EACH = 0.7, 1000
COLORS = {"group 1": "#D55E00", "group 2": "#0072B2"}

CONSTRUCTION = {"b0": 1.5, "b1": 1.0, "n_max": 8}
RATES = {"dependent": 4.0, "independent": 0.0}
SIZES = (500, 1000, 2000, 5000, 10_000)
METHODS = {
    "smooth": {"method": "smooth"},
    "binned": {"method": "binned", "bins": 15},
    "sweep": {"method": "sweep"},
}
RATE_COLORS = {"dependent": "#C0392B", "independent": "#2471A3"}
MARKERS = {"smooth": ("o", "-"), "binned": ("s", "--"), "sweep": ("^", ":")}


def expected(group: str, score: np.ndarray) -> np.ndarray:
    return special.expit(INTERCEPTS[group] + special.logit(score))


def experiment_1(n_persons: int, seed: int) -> tuple[pd.DataFrame, int]:
    """Return rows of all persons, the ten with many rows last, and how many are not."""
    rng = np.random.default_rng(seed)
    group = np.repeat(list(INTERCEPTS), n_persons)
    score = SCORES.rvs(group.size, random_state=rng)
    mean = np.where(
        group == "group 1", expected("group 1", score), expected("group 2", score)
    )
    many = np.repeat(SCORES.ppf(TENTHS), ROWS_EACH * n_persons // 50_000)
    raised = np.minimum(expected("group 1", many) + RAISED * many, 1)
    person = np.concatenate(
        [np.arange(group.size), group.size + np.repeat(np.arange(10), many.size // 10)]
    )
    mean = np.concatenate([mean, raised])
    rows = pd.DataFrame(
        {
            "person": person,
            "group": np.concatenate([group, np.repeat("group 1", many.size)]),
            "score": np.concatenate([score, many]),
            "outcome": (rng.random(mean.size) < mean).astype(int),
        }
    )
    return rows, group.size


def curves(
    rows: pd.DataFrame, by_person: bool, grid: np.ndarray
) -> PredictiveParityTest:
    return predictive_parity_test(
        rows["outcome"],
        rows["score"],
        sensitive_features=rows["group"],
        cluster=rows["person"] if by_person else None,
        grid=grid,
        bandwidth=BANDWIDTH,
        curve="nadaraya_watson",
    )


def figure_1(rows: pd.DataFrame, n_single: int, folder: pathlib.Path) -> pd.DataFrame:
    """Draw Figures 1a and 1b; return the differences at the middle of each tenth."""
    places = SCORES.ppf(TENTHS)
    grid = np.sort(np.concatenate([places, SCORES.ppf(np.linspace(0.01, 0.99, 90))]))
    alone = curves(rows.iloc[:n_single], by_person=False, grid=grid)
    by_row = curves(rows, by_person=False, grid=grid)
    by_person = curves(rows, by_person=True, grid=grid)
    draw_curves(
        folder / "predictive_parity_figure_1a.png",
        {"only independent rows": alone, "and ten persons with 1000 rows": by_row},
        places,
        band=False,
    )
    draw_curves(
        folder / "predictive_parity_figure_1b.png",
        {"as if rows were independent": by_row, "persons independent": by_person},
        places,
        band=True,
    )
    at = np.searchsorted(grid, places)
    truth = expected("group 1", places) - expected("group 2", places)
    table = pd.DataFrame({"score": places, "truth": truth})
    for name, test in (("row", by_row), ("person", by_person)):
        table[f"by {name}"] = test.difference[0, at]
        table[f"± {name}"] = test.difference_standard_error[0, at]
        table[f"p {name}"] = test.pvalue
    return table.set_index(pd.Index(TENTHS, name="quantile"))


def draw_curves(
    file: pathlib.Path,
    tests: dict[str, PredictiveParityTest],
    places: np.ndarray,
    band: bool,
) -> None:
    """Draw the curves of two tests side by side; where the ten persons are, below."""
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4.2), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (title, test) in zip(axes, tests.items(), strict=True):
        low, high = test.curve_band()
        for i, group in enumerate(test.groups):
            color = COLORS[group]
            axis.plot(test.grid, test.curves[i], color=color, label=group, lw=1.8)
            if band:
                axis.fill_between(test.grid, low[i], high[i], color=color, alpha=0.25)
        axis.plot(
            *(places, np.full(places.size, 0.03)),
            "k|",
            markersize=9,
            transform=axis.get_xaxis_transform(),
            label="ten persons" if "only" not in title else None,
        )
        if "only" in title:
            axis.lines[-1].remove()
        if band:
            title += "\nequality: " + (
                "p < 0.001" if test.pvalue < 0.001 else f"p = {test.pvalue:.2g}"
            )
        axis.set(title=title, xlabel="score")
        axis.grid(alpha=0.25)
        axis.legend(loc="upper left", frameon=False)
    axes[0].set_ylabel("mean outcome")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def experiment_2(sizes: tuple[int, ...], replications: int, seed: int) -> pd.DataFrame:
    """Return the bias of each estimate by dependence and number of persons."""
    records = []
    for (name, rate), size in ((r, n) for r in RATES.items() for n in sizes):
        errors = []
        # Larger data sets vary less.
        times = max(5, min(replications, replications * 2000 // size))
        for replication in range(times):
            rng = np.random.default_rng([seed, size, replication])
            data = make_bias_by_construction(
                size, rate=rate, random_state=rng, **CONSTRUCTION
            )
            errors.append(
                [
                    calibration_error(
                        *(data.y_true, data.y_score),
                        sensitive_features=np.zeros(data.y_true.size),
                        cluster=data.cluster,
                        **options,
                    ).estimate[0]
                    - data.true_error
                    for options in METHODS.values()
                ]
            )
        records += [
            {
                "rows": name,
                "persons": size,
                "method": method,
                "true error": data.true_error,
                "bias": bias,
                "±": error,
            }
            for method, bias, error in zip(
                METHODS,
                np.mean(errors, axis=0),
                np.std(errors, axis=0, ddof=1) / np.sqrt(times),
                strict=True,
            )
        ]
    return pd.DataFrame(records).set_index(["rows", "persons", "method"])


def figure_2(table: pd.DataFrame, file: pathlib.Path) -> None:
    """Draw the bias by the number of persons."""
    figure, axis = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    axis.axhline(0, color="0.6", lw=1)
    for name, color in RATE_COLORS.items():
        for method, (marker, dash) in MARKERS.items():
            line = table.xs((name, method), level=("rows", "method"))
            axis.errorbar(
                *(line.index, line["bias"], 1.96 * line["±"]),
                color=color,
                marker=marker,
                linestyle=dash,
                markersize=5,
                capsize=2,
                label=f"{method}, {name}",
            )
    axis.set(xscale="log", xlabel="persons", ylabel="bias of the calibration error")
    axis.set_xticks(sorted({n for _, n, _ in table.index}))
    axis.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axis.grid(alpha=0.25)
    axis.legend(ncols=2, fontsize="small", frameon=False)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def claims_2(table: pd.DataFrame) -> dict[str, bool]:
    """Return the claims of Experiment 2, each at every number of persons."""
    bias = table["bias"].abs().unstack("method")
    noise = 2 * np.sqrt((table["±"] ** 2).unstack("method"))
    dependent, alone = bias.loc["dependent"], bias.loc["independent"]
    slack = np.hypot(noise["smooth"], noise.drop(columns="smooth").max(axis=1))
    first, last = dependent.index.min(), dependent.index.max()
    rivals = ["binned", "sweep"]
    return {
        "dependent rows: |bias| of smooth is below binned and sweep": bool(
            dependent[rivals].gt(dependent["smooth"], axis=0).all(axis=None)
        ),
        "independent rows: |bias| of smooth is no larger, within 2 standard errors": (
            bool(
                alone[rivals]
                .add(slack.loc["independent"], axis=0)
                .ge(alone["smooth"], axis=0)
                .all(axis=None)
            )
        ),
        "dependent rows: |bias| of smooth falls with the number of persons": bool(
            dependent.loc[last, "smooth"]
            < dependent.loc[first, "smooth"] / 2
            + noise.loc[("dependent", last), "smooth"]
        ),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--persons", type=int, default=50_000, help="of a group")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    rows, n_single = experiment_1(options.persons, options.seed)
    table = figure_1(rows, n_single, options.folder)
    table.to_csv(options.folder / "predictive_parity_experiment_1.csv")
    print("Experiment 1: mean outcome of group 1 less group 2")
    print(table.drop(columns=["p row", "p person"]).round(4).to_string())
    claims = {
        "row weighting puts group 1 above group 2 at every tenth": bool(
            (table["by row"] > 0).all()
        ),
        "person weighting leaves it below at every tenth": bool(
            (table["by person"] < 0).all()
        ),
        "person weighting covers the truth, each tenth within 3 standard errors": bool(
            ((table["by person"] - table["truth"]).abs() < 3 * table["± person"]).all()
        ),
    }

    table = experiment_2(tuple(options.sizes), options.replications, options.seed)
    table.to_csv(options.folder / "predictive_parity_experiment_2.csv")
    figure_2(table, options.folder / "predictive_parity_figure_2.png")
    print("Experiment 2: bias of the calibration error")
    print(table["bias"].unstack("method")[list(METHODS)].round(4).to_string())
    claims |= claims_2(table)
    for claim, holds in claims.items():
        print(f"{'holds' if holds else 'FAILS'}: {claim}")
    return int(not all(claims.values()))


if __name__ == "__main__":
    if main():
        raise SystemExit(1)
