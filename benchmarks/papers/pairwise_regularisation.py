"""Beutel et al. 2019, section 6, before and after pairwise regularisation.

``python benchmarks/papers/pairwise_regularisation.py [--queries 5000] [--write]``

The paper's data are not public. `make_underranked_items` draws data whose best linear
model has the paper's three ratios of pairwise accuracy (rest over subgroup); here a
model is fitted to a draw and measured on another, with and without the penalty, for
five seeds. ``--write`` puts the table into docs/user_guide/pairwise_regularisation.rst.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

from skrankfair.datasets import make_underranked_items
from skrankfair.inference import compare
from skrankfair.metrics import ndcg, pairwise_accuracy, pairwise_exposure
from skrankfair.mitigation import PairwiseFairClassifier, PairwiseFairRegressor

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "user_guide" / "pairwise_regularisation.rst"
BEGIN, END = ".. begin measured\n", ".. end measured\n"
SEEDS = range(5)
COMPARISONS = {"all": "overall", "intra": "intra-group", "inter": "inter-group"}
PAPER = {"all": (1.083, 1.025), "intra": (1.149, 1.167), "inter": (1.356, 1.026)}


def measure(data, score) -> dict[str, float]:
    """Return the paper's numbers: ratios, accuracy of the rest, and exposure."""
    who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    found = {}
    for comparison in COMPARISONS:
        r = pairwise_accuracy(data.y_true, score, comparison=comparison, **who)
        ratio = r.contrast("rest", "subgroup", kind="ratio")
        found[comparison] = ratio.estimate
        found[f"rest {comparison}"], found[f"subgroup {comparison}"] = r.estimate
    found["exposure"] = pairwise_exposure(None, score, **who).estimate[1]
    return found


def replicate(model, seed: int, n_queries: int, strength: float):
    """Return the numbers before and after, and the change of NDCG with its error."""
    learn = make_underranked_items(n_queries, random_state=2 * seed)
    test = make_underranked_items(n_queries, random_state=2 * seed + 1)
    scores = []
    for weight in (0.0, strength * learn.y_true.size):
        fitted = model(weight, random_state=seed)
        fitted.fit(learn.X, learn.y_true, learn.sensitive_features, learn.qid)
        scores.append(test.X @ np.ravel(fitted.coef_))
    before, after = (ndcg(test.y_true, score, qid=test.qid) for score in scores)
    change = compare(after, before)
    return (
        *(measure(test, score) for score in scores),
        change.estimate[0],
        change.standard_error[0],
    )


def table(rows: list[list[str]]) -> str:
    """Return a table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [
            f"   {'*' if i == 0 else ' '} - {cell}".rstrip()
            for i, cell in enumerate(row)
        ]
    return "\n".join(lines) + "\n"


def text_of(values: list[float]) -> str:
    """Return mean and standard deviation over seeds."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def main() -> None:
    """Print the table, and put it into the guide if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--strength", type=float, default=0.1, help="times the rows")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = [["Rest over subgroup", "Paper", "Ridge", "Logistic regression"]]
    found = {}
    for model in (PairwiseFairRegressor, PairwiseFairClassifier):
        found[model] = [
            replicate(model, seed, options.queries, options.strength) for seed in SEEDS
        ]
    for key, name in COMPARISONS.items():
        for place, when in enumerate(("before", "after")):
            cells = [text_of([r[place][key] for r in runs]) for runs in found.values()]
            rows.append([f"{name}, {when}", f"{PAPER[key][place]:.3f}", *cells])
    for key, name in {
        "rest intra": "accuracy of the rest, intra-group",
        "rest inter": "accuracy of the rest, inter-group",
        "subgroup inter": "accuracy of the subgroup, inter-group",
        "exposure": "exposure of the subgroup",
    }.items():
        for place, when in enumerate(("before", "after")):
            cells = [text_of([r[place][key] for r in runs]) for runs in found.values()]
            rows.append([f"{name}, {when}", "", *cells])
    cells = []
    for runs in found.values():
        mean = np.mean([r[2] for r in runs])
        error = np.sqrt(np.sum([r[3] ** 2 for r in runs])) / len(runs)
        cells.append(f"{mean:.4f} ({mean - 2 * error:.4f} to {mean + 2 * error:.4f})")
    rows.append(["change of NDCG, 95% interval", "neutral", *cells])
    result = table(rows)
    print(result)
    if options.write:
        page = DOCS.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        tail = rest.split(END)[1]
        DOCS.write_text(f"{head}{BEGIN}\n{result}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
