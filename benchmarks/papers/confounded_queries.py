"""Figure 1 and the claim of Appendix A of Korevaar et al., on drawn data.

    python benchmarks/papers/confounded_queries.py [--folder DIR] [--replications 500]

Prints three tables and writes ``confounded_queries.png`` to the folder. Takes a few
minutes on two cores, most of them for the rates of rejection.
"""

from __future__ import annotations

import argparse
import pathlib
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.stats import f as f_distribution

from skrankfair._estimates.formatting import text_table
from skrankfair.datasets import make_confounded_queries
from skrankfair.inference import compare, outcome_inequality_test
from skrankfair.metrics import matched_pair_calibration, ndcg

mpl.use("Agg")
import matplotlib.pyplot as plt

BIAS = {("u", 1): 1.5, ("u", 2): 1.1, ("v", 1): 0.9, ("v", 2): 0.7}
FAIR = {"bias": ((1.3, 1.3), (0.8, 0.8)), "share": (1 / 7, 5 / 7)}
COLORS = {1: "#0072B2", 2: "#D55E00"}
DASHES = {"u": "-", "v": "--"}
N_BINS = 5
BOOSTS = np.arange(0, 0.1501, 0.01)
# On both sides, and near: so a fair ranker has no difference.
NEAR: dict[str, Any] = {"epsilon": 0.1, "direction": "both"}


def who(data: Any) -> dict[str, Any]:
    return {"sensitive_features": data.sensitive_features, "qid": data.qid}


def calibration_pvalue(data: Any, n_bins: int = N_BINS) -> float:
    """Hotelling's test of E[y - s | bin of s, item type] = 0, queries independent."""
    n_queries, size = int(data.qid[-1]) + 1, 2 * n_bins
    bin_of = np.minimum((data.y_score * n_bins).astype(int), n_bins - 1)
    cell = (data.sensitive_features - 1) * n_bins + bin_of
    sums = np.bincount(
        data.qid * size + cell, data.y_true - data.y_score, n_queries * size
    ).reshape(n_queries, size)
    mean = sums.mean(0)
    t2 = n_queries * mean @ np.linalg.solve(np.cov(sums.T), mean)
    scaled = t2 * (n_queries - size) / (size * (n_queries - 1))
    return float(f_distribution.sf(scaled, size, n_queries - size))


def observed(data: Any, rows: np.ndarray, n_bins: int = 20) -> np.ndarray:
    """Mean score, mean outcome and half of its 95% interval, in bins of the score."""
    bin_of = np.minimum((data.y_score[rows] * n_bins).astype(int), n_bins - 1)
    number = np.bincount(bin_of, minlength=n_bins)
    score = np.bincount(bin_of, data.y_score[rows], n_bins) / number
    mean = np.bincount(bin_of, data.y_true[rows], n_bins) / number
    residual = data.y_true[rows] - mean[bin_of]
    by_query = np.zeros((int(data.qid[-1]) + 1) * n_bins)
    np.add.at(by_query, data.qid[rows] * n_bins + bin_of, residual)
    square = (by_query.reshape(-1, n_bins) ** 2).sum(0)
    return np.stack([score, mean, 1.96 * np.sqrt(square) / number])


@dataclass
class Path:
    """What boosting type 1 does, a value a boost; halves are of 95% intervals."""

    mpc: np.ndarray
    mpc_half: np.ndarray
    gain: np.ndarray  # of NDCG, relevance as it was drawn
    gain_half: np.ndarray
    expected: np.ndarray  # the same of expected relevance
    expected_half: np.ndarray


def boost_path(data: Any) -> Path:
    starts = [ndcg(y, data.y_score, qid=data.qid) for y in (data.y_true, data.expected)]
    rows = []
    for boost in BOOSTS:
        score = data.y_score + boost * (data.sensitive_features == 1)
        m = matched_pair_calibration(
            data.y_true, score, epsilon=0.02, direction="both", **who(data)
        )
        gains = [
            compare(ndcg(y, score, qid=data.qid), start)
            for y, start in zip((data.y_true, data.expected), starts, strict=True)
        ]
        rows.append([v for r in (m, *gains) for v in (r.estimate[0], half(r))])
    return Path(*np.array(rows).T)


def half(result: Any) -> float:
    low, high = result.confidence_interval()
    return float(np.asarray(high)[0] - np.asarray(low)[0]) / 2


def print_claim(data: Any) -> None:
    n_queries = int(data.qid[-1]) + 1
    print(f"{n_queries:,} queries of {data.y_true.size // n_queries} items\n")
    print(f"calibration by item type: p = {calibration_pvalue(data):.3f}")
    print(matched_pair_calibration(data.y_true, data.y_score, **NEAR, **who(data)))
    options = {"k": None, "random_state": 0, **who(data)}
    print(outcome_inequality_test(data.y_true, data.y_score, **options))


def print_path(path: Path) -> None:
    rows = [
        [
            f"{boost:.2f}",
            f"{path.mpc[i]:.4f} ± {path.mpc_half[i]:.4f}",
            f"{1e5 * path.gain[i]:.1f} ± {1e5 * path.gain_half[i]:.1f}",
            f"{1e5 * path.expected[i]:.1f} ± {1e5 * path.expected_half[i]:.1f}",
        ]
        for i, boost in enumerate(BOOSTS)
    ]
    header = ["boost", "MPC", "NDCG gained × 1e5", "of expected relevance"]
    print("\n" + text_table(header, rows))
    zero = np.interp(0, -path.mpc, BOOSTS)
    best = BOOSTS[np.argmax(path.expected)]
    print(f"MPC crosses 0 at a boost of {zero:.3f}; NDCG is largest at {best:.2f}")


def draw(data: Any, path: Path, file: pathlib.Path) -> None:
    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    s = np.linspace(0, 1, 201)
    for (query, item), b in BIAS.items():
        y = np.where(s < 0.5, b * s, 1 - (2 - b) * (1 - s))
        look = {"color": COLORS[item], "linestyle": DASHES[query]}
        axes[0, 0].plot(s, y, label=f"query {query}, item {item}", **look)
        rows = (data.query_type == query) & (data.sensitive_features == item)
        score, mean, margin = observed(data, rows)
        axes[1, 0].errorbar(
            score, mean, margin, label=f"query {query}, item {item}", **look
        )
    for item, color in COLORS.items():
        score, mean, margin = observed(data, data.sensitive_features == item)
        axes[0, 1].errorbar(
            score, mean, margin, color=color, fmt="o", ms=3, label=f"item {item}"
        )
    titles = (
        "(a) true relevance",
        "(b) observed, by item type",
        "(c) observed, by query and item type",
    )
    for ax, title in zip((axes[0, 0], axes[0, 1], axes[1, 0]), titles, strict=True):
        ax.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        ax.set(title=title, xlabel="score", ylabel="relevance")
        ax.legend(frameon=False, fontsize="small")
    ax = axes[1, 1]
    ax.errorbar(BOOSTS, path.mpc, path.mpc_half, color="#333333")
    ax.axhline(0, color="#999999", linewidth=0.8)
    ax.set(title="(d) boosting type 1", xlabel="boost", ylabel="MPC of type 1 (line)")
    other = ax.twinx()
    other.errorbar(
        BOOSTS, path.expected, path.expected_half, color="#009E73", linestyle=":"
    )
    other.set_ylabel("NDCG gained, expected (dots)", color="#009E73")
    figure.savefig(file, dpi=110)
    plt.close(figure)


def rejections(
    n_queries: int, n_items: int, n_replications: int, options: dict[str, Any]
) -> np.ndarray:
    """Shares of replications in which each test rejects at 5%."""
    rejected = np.zeros(4)
    for seed in range(n_replications):
        data = make_confounded_queries(
            n_queries, n_items=n_items, random_state=seed, **options
        )
        columns = (data.y_true, data.y_score)
        given = {**who(data), "n_resamples": 1000, "random_state": seed}
        pvalues = (
            calibration_pvalue(data),
            matched_pair_calibration(*columns, **NEAR, **who(data)).pvalue[0],
            outcome_inequality_test(*columns, k=None, **given).pvalue,
            outcome_inequality_test(*columns, adjacent=False, **given).pvalue,
        )
        rejected += np.array(pvalues) < 0.05
    return rejected / n_replications


def print_rejections(n_replications: int) -> None:
    header = [
        "ranker, queries × items",
        "calibration",
        "matched pairs",
        "inequalities, adjacent",
        "inequalities, all of 10",
    ]
    rows = []
    for name, options in (("biased", {}), ("fair", FAIR)):
        for n_queries, n_items in ((250, 10), (500, 10), (2000, 10), (500, 40)):
            rates = rejections(n_queries, n_items, n_replications, options)
            rows.append(
                [f"{name}, {n_queries} × {n_items}", *(f"{r:.3f}" for r in rates)]
            )
    print(f"\nrejected at 5%, of {n_replications} replications")
    print("(the fair ranker's scores are not calibrated: only its order is right)")
    print(text_table(header, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--replications", type=int, default=500)
    args = parser.parse_args()
    data = make_confounded_queries(args.queries, random_state=0)
    print_claim(data)
    path = boost_path(data)
    print_path(path)
    args.folder.mkdir(parents=True, exist_ok=True)
    file = args.folder / "confounded_queries.png"
    draw(data, path, file)
    print(f"figure: {file}")
    if args.replications:
        print_rejections(args.replications)


if __name__ == "__main__":
    main()
