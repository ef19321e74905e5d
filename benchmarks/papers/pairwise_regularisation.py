"""Section 6 of Beutel et al. 2019, before and after pairwise regularisation.

    python benchmarks/papers/pairwise_regularisation.py [--folder DIR] [--write]

The paper's data are not public. `make_underranked_items` draws data whose best linear
model has the paper's three ratios of pairwise accuracy (rest over subgroup); here
models are fitted to a draw and measured on another, without and with the penalty, for
five seeds. Prints the paper's six ratios and the path from one end to the other, and
writes Figures 1 to 4 to the folder. ``--write`` puts both tables into the user guide.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import matplotlib as mpl
import numpy as np

from skrankfair.datasets import make_underranked_items
from skrankfair.inference import compare
from skrankfair.metrics import (
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)
from skrankfair.mitigation import (
    PairwiseFairClassifier,
    PairwiseFairRegressor,
    pairwise_fairness_objective,
)

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "user_guide" / "pairwise_regularisation.rst"
NAMES = {"all": "overall", "intra": "intra-group", "inter": "inter-group"}
PAPER = {"all": (1.083, 1.025), "intra": (1.149, 1.167), "inter": (1.356, 1.026)}
MODELS = ("Ridge", "Logistic regression", "Boosted trees")
DRAWN = MODELS[1:]
PATH = (0.0, 0.01, 0.02, 0.03, 0.05, 1.0)
RATE = 0.1  # of learning, of the boosted trees
FIGURES = {"inter": 1, "all": 2, "intra": 3}
COLORS = {"rest": "#0072B2", "subgroup": "#D55E00"}


def fitted_score(model: str, learn: Any, X: Any, strength: float, seed: int) -> Any:
    """Fit to one draw and score another."""
    who = {"sensitive_features": learn.sensitive_features, "qid": learn.qid}
    if model != "Boosted trees":
        kind = PairwiseFairRegressor if model == "Ridge" else PairwiseFairClassifier
        fitted = kind(strength, random_state=seed).fit(learn.X, learn.y_true, **who)
        return X @ np.ravel(fitted.coef_)
    import xgboost

    objective = pairwise_fairness_objective(
        learn.y_true,
        strength=strength,
        loss="logistic",
        learning_rate=RATE,
        random_state=seed,
        **who,
    )
    trees = xgboost.XGBRegressor(
        objective=objective,
        base_score=objective.base_score,
        learning_rate=RATE,
        max_depth=3,
        n_jobs=1,
    )
    return trees.fit(learn.X, learn.y_true).predict(X)


def by_engagement(test: Any, score: Any, who: dict[str, Any]) -> dict[str, Any]:
    """Return how often items of the subgroup are clicked, and shown, in mixed pairs.

    A pair counts where one of the two is clicked, by the engagement of that one.
    """
    found: dict[str, Any] = {}
    for name, metric in {
        "clicked": pairwise_preference,
        "shown": pairwise_exposure,
    }.items():
        result = metric(test.y_true, score, engagement=test.engagement, **who)
        table = result.breakdown()
        table = table[table["group"] == "subgroup"]
        found[name] = table["estimate"].to_numpy()
        found[f"{name}, all"] = np.average(table["estimate"], weights=table["support"])
    return found


def measure(test: Any, score: Any) -> dict[str, Any]:
    """Return the paper's numbers, and what its figures are made of."""
    who = {"sensitive_features": test.sensitive_features, "qid": test.qid}
    found: dict[str, Any] = {"ndcg": ndcg(test.y_true, score, qid=test.qid)}
    for comparison in NAMES:
        given = {**who, "comparison": comparison}
        r = pairwise_accuracy(test.y_true, score, **given)
        found[comparison] = r.contrast("rest", "subgroup", kind="ratio").estimate
        found[f"rest {comparison}"], found[f"subgroup {comparison}"] = r.estimate
        table = pairwise_accuracy(
            test.y_true, score, engagement=test.engagement, **given
        ).breakdown()
        found[f"{comparison} by engagement"] = table.pivot_table(
            index="bucket", columns="group", values="estimate"
        )
    return found | by_engagement(test, score, who)


def replicate(seed: int, n_queries: int) -> dict[tuple[str, float], dict[str, Any]]:
    """Return the numbers of each model and strength."""
    learn = make_underranked_items(n_queries, random_state=2 * seed)
    test = make_underranked_items(n_queries, random_state=2 * seed + 1)
    return {
        (model, strength): measure(
            test, fitted_score(model, learn, test.X, strength, seed)
        )
        for model in MODELS
        for strength in PATH
    }


def text_of(values: Any) -> str:
    """Return mean and standard deviation over seeds."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def change_of_ndcg(runs: list[Any], model: str, strength: float) -> str:
    """Return the mean change with its 95% interval; the queries are of new draws."""
    changes = [
        compare(run[model, strength]["ndcg"], run[model, 0.0]["ndcg"]) for run in runs
    ]
    mean = np.mean([change.estimate[0] for change in changes])
    error = np.sqrt(np.sum([c.standard_error[0] ** 2 for c in changes])) / len(runs)
    return f"{mean:.4f} ({mean - 1.96 * error:.4f} to {mean + 1.96 * error:.4f})"


def ratios(runs: list[Any]) -> list[list[str]]:
    """Return the table of the six ratios, and of what is behind them."""
    rows = [["Rest over subgroup", "Paper", *MODELS]]
    lines = {key: (name, PAPER[key]) for key, name in NAMES.items()}
    lines |= {
        key: (name, ("", ""))
        for key, name in {
            "rest intra": "accuracy of the rest, intra-group",
            "rest inter": "accuracy of the rest, inter-group",
            "subgroup inter": "accuracy of the subgroup, inter-group",
            "shown, all": "exposure of the subgroup, pairs with a click",
        }.items()
    }
    for key, (name, paper) in lines.items():
        for place, (when, strength) in enumerate((("before", 0.0), ("after", 1.0))):
            cells = [text_of([run[m, strength][key] for run in runs]) for m in MODELS]
            told = f"{paper[place]:.3f}" if paper[place] else ""
            rows.append([f"{name}, {when}", told, *cells])
    cells = [change_of_ndcg(runs, m, 1.0) for m in MODELS]
    return [*rows, ["change of NDCG, 95% interval", "neutral", *cells]]


def path(runs: list[Any]) -> list[list[str]]:
    """Return the table of strengths."""
    rows = [["Model", "Strength", "overall", "intra-group", "inter-group", "NDCG"]]
    for model in DRAWN:
        for strength in PATH:
            found = [run[model, strength] for run in runs]
            means = [f"{np.mean([f[key] for f in found]):.3f}" for key in NAMES]
            value = np.mean([f["ndcg"].estimate[0] for f in found])
            rows.append([model, f"{strength:g}", *means, f"{value:.4f}"])
    return rows


def list_table(rows: list[list[str]]) -> str:
    """Return a table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [
            f"   {'*' if i == 0 else ' '} - {cell}".rstrip()
            for i, cell in enumerate(row)
        ]
    return "\n".join(lines) + "\n"


def write(name: str, table: str) -> None:
    """Put a table between its marks in the guide."""
    page = DOCS.read_text(encoding="utf-8")
    begin, end = f".. begin {name}\n", f".. end {name}\n"
    head, rest = page.split(begin)
    tail = rest.split(end)[1]
    DOCS.write_text(f"{head}{begin}\n{table}\n{end}{tail}", encoding="utf-8")


def bars(ax: Any, columns: dict[str, np.ndarray]) -> None:
    """Draw bars of both groups by level of engagement, one array a seed's levels."""
    for place, (group, values) in enumerate(columns.items()):
        mean, spread = values.mean(0), values.std(0, ddof=1)
        at = np.arange(mean.size) + 0.4 * (place - 0.5)
        name = "not subgroup" if group == "rest" else group
        color = COLORS[group]
        ax.bar(at, mean, 0.38, yerr=spread, color=color, label=name, ecolor="#333333")
    ax.set_xticks(range(mean.size), [f"{k + 1}" for k in range(mean.size)])


def figure_of_accuracy(runs: list[Any], comparison: str, file: pathlib.Path) -> None:
    """Draw accuracy by engagement: a model a row, before and after."""
    figure, axes = plt.subplots(
        len(DRAWN), 2, figsize=(7.5, 5.5), sharey=True, layout="constrained"
    )
    for row, model in zip(axes, DRAWN, strict=True):
        titles = ("original", "after pairwise regularisation")
        for ax, strength, title in zip(row, (0.0, 1.0), titles, strict=True):
            key = f"{comparison} by engagement"
            tables = [run[model, strength][key] for run in runs]
            bars(ax, {g: np.array([t[g] for t in tables]) for g in COLORS})
            ax.axhline(0.5, color="#999999", linewidth=0.8)
            ax.set_title(f"{model}, {title}", loc="left", fontsize="medium")
        row[0].set(ylabel=f"{NAMES[comparison]} accuracy", ylim=(0, 1))
    for ax in axes[-1]:
        ax.set_xlabel("engagement of the clicked item, quarter")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=2, loc="outside upper right")
    figure.savefig(file, dpi=110)
    plt.close(figure)


def figure_of_exposure(runs: list[Any], file: pathlib.Path) -> None:
    """Draw what is clicked, and what is ranked above, before and after."""
    figure, axes = plt.subplots(
        len(DRAWN), 3, figsize=(10.5, 5.5), sharey=True, layout="constrained"
    )
    columns = (
        ("user preferences", 0.0, "clicked"),
        ("original exposure", 0.0, "shown"),
        ("exposure after", 1.0, "shown"),
    )
    for row, model in zip(axes, DRAWN, strict=True):
        for ax, (title, strength, key) in zip(row, columns, strict=True):
            share = np.array([run[model, strength][key] for run in runs])
            bars(ax, {"rest": 1 - share, "subgroup": share})
            ax.axhline(0.5, color="#999999", linewidth=0.8)
            ax.set_title(f"{model}, {title}", loc="left", fontsize="medium")
        row[0].set(ylabel="share of mixed pairs", ylim=(0, 1))
    for ax in axes[-1]:
        ax.set_xlabel("engagement of the clicked item, quarter")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=2, loc="outside upper right")
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    runs = [replicate(seed, options.queries) for seed in range(options.seeds)]
    for name, rows in (("measured", ratios(runs)), ("path", path(runs))):
        table = list_table(rows)
        for row in rows:
            print("  ".join(f"{cell:>24s}" for cell in row))
        print()
        if options.write:
            write(name, table)
    options.folder.mkdir(parents=True, exist_ok=True)
    for comparison, number in FIGURES.items():
        file = options.folder / f"pairwise_regularisation_figure_{number}.png"
        figure_of_accuracy(runs, comparison, file)
    figure_of_exposure(runs, options.folder / "pairwise_regularisation_figure_4.png")
    print(f"figures 1 to 4: {options.folder}")


if __name__ == "__main__":
    main()
