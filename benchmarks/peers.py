"""How much faster than other packages: ``python benchmarks/peers.py``.

Both compute the same number on the same rows in the same process, and the numbers are
compared before the times are. Peers that are not installed are left out; to have all,
``pip install --no-deps fare FairRankTune``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from skrankfair import metrics
from skrankfair.smoothing import nadaraya_watson

MUST, AIM = 50, 200
#: Rows; fare takes minutes for more.
N_ROWS = {
    "fare": 5000,
    "FairRankTune": 20_000,
    "statsmodels": 20_000,
    "fairlearn": 200_000,
}
#: Other bars than `MUST` and `AIM`: its work is done by pandas and scikit-learn.
BARS = {"fairlearn": (10, 20)}


@dataclass
class Peer:
    """A number that two packages compute."""

    work: str
    package: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    tolerance: float = 1e-9


def peers(package: str) -> list[Peer]:
    """Return the comparisons with a package."""
    n = N_ROWS[package]
    rng = np.random.default_rng(0)
    y, score = rng.permutation(n), rng.permutation(n)
    group = rng.integers(0, 2, n)
    pairs = group.sum() * (n - group.sum())
    who = {"sensitive_features": group}
    ranking = pd.DataFrame({"ranking": np.argsort(-score)})
    group_of = dict(enumerate(group.tolist()))
    risk = score / n
    outcome = (rng.random(n) < risk).astype(float)
    grid = np.linspace(0.05, 0.95, 1000)

    def wrong_pairs() -> object:
        r = metrics.pairwise_accuracy(y, score, comparison="inter", **who)
        return (1 - r.estimate) * r.support / pairs

    def smooth() -> object:
        from statsmodels.nonparametric.kernel_regression import KernelReg

        smoother = KernelReg(outcome, risk, "c", reg_type="lc", bw=[0.05])
        return smoother.fit(grid)[0]

    def fare() -> object:
        # It says whom a wrong pair favours; here it is whom it harms.
        favoured = importlib.import_module("fare.metrics").rank_equality
        return favoured(y, score, group)[::-1]

    def rank_tune(name: str, *options: object) -> object:
        return getattr(importlib.import_module("FairRankTune").Metrics, name)(
            ranking, group_of, *options
        )

    decided = (risk > 0.5).astype(int)
    cells = rng.integers(0, 100, n)

    def frame(groups: object, *names: str) -> object:
        functions = importlib.import_module("fairlearn.metrics")
        rates = {name: getattr(functions, name) for name in names}
        made = functions.MetricFrame(
            metrics=rates,
            y_true=outcome.astype(int),
            y_pred=decided,
            sensitive_features=groups,
        )
        return made.by_group.to_numpy(float)

    def rates(groups: object, *names: str) -> object:
        return np.stack(
            [
                getattr(metrics, name)(
                    outcome, decided, sensitive_features=groups
                ).estimate
                for name in names
            ],
            axis=1,
        )

    three = ("selection_rate", "true_positive_rate", "false_positive_rate")
    rows = [
        Peer(
            "selection rate, TPR and FPR of 2 groups (`MetricFrame`)",
            "fairlearn",
            lambda: rates(group, *three),
            lambda: frame(group, *three),
        ),
        Peer(
            "the same of 100 groups",
            "fairlearn",
            lambda: rates(cells, *three),
            lambda: frame(cells, *three),
        ),
        Peer("inter-group pairwise accuracy", "fare", wrong_pairs, fare),
        Peer(
            "`ndkl` of one list",
            "FairRankTune",
            lambda: metrics.ndkl(None, score, **who).estimate[0],
            lambda: rank_tune("NDKL"),
            1e-4,  # it adds 1e-7 to every share
        ),
        Peer(
            "`pairwise_parity` of one list",
            "FairRankTune",
            lambda: metrics.pairwise_parity(None, score, **who).estimate[0],
            lambda: abs(np.subtract(*rank_tune("ARP", "MaxMinDiff")[1].values())),
        ),
        Peer(
            "Nadaraya-Watson on 1000 points, Gaussian kernel",
            "statsmodels",
            lambda: (
                nadaraya_watson(
                    outcome, risk, grid, bandwidth=0.05, kernel="gaussian"
                ).estimate
            ),
            smooth,
            1e-6,
        ),
    ]
    return [row for row in rows if row.package == package]


def times_faster(
    row: Peer, repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the ratio of median times, once the numbers are seen to agree."""
    ours, theirs = [], []
    np.testing.assert_allclose(
        row.ours(), row.theirs(), rtol=row.tolerance, atol=row.tolerance
    )
    for _ in range(repeats):
        for function, times in ((row.ours, ours), (row.theirs, theirs)):
            start = clock()
            function()
            times.append(clock() - start)
    return float(np.median(theirs) / np.median(ours))


def table() -> list[str]:
    """Measure, print and return the lines of a table in Markdown."""
    lines = [
        "| the same number, side by side | rows | package | must | aim | reached |",
        "|---|---|---|---|---|---|",
    ]
    for package, n in N_ROWS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed")
            continue
        must, aim = BARS.get(package, (MUST, AIM))
        for row in peers(package):
            lines.append(
                f"| {row.work} | {n:,} | {package} | {must}x | {aim}x "
                f"| {times_faster(row):,.0f}x |"
            )
            print(lines[-1], flush=True)
    return lines


#: By our name fairlearn's or scikit-learn's, and whether it takes scores.
RATES = {
    "selection_rate": ("fairlearn", "selection_rate", False),
    "true_positive_rate": ("fairlearn", "true_positive_rate", False),
    "false_positive_rate": ("fairlearn", "false_positive_rate", False),
    "true_negative_rate": ("fairlearn", "true_negative_rate", False),
    "false_negative_rate": ("fairlearn", "false_negative_rate", False),
    "precision": ("sklearn", "precision_score", False),
    "accuracy": ("sklearn", "accuracy_score", False),
    "balanced_accuracy": ("sklearn", "balanced_accuracy_score", False),
    "f1": ("sklearn", "f1_score", False),
    "auc": ("sklearn", "roc_auc_score", True),
    "brier_score": ("sklearn", "brier_score_loss", True),
    "mean_absolute_error": ("sklearn", "mean_absolute_error", True),
    "log_loss": ("sklearn", "log_loss", True),
}


def rate(name: str, n: int) -> Peer:
    """Return a rate of two groups by `MetricFrame`, and ours with its errors."""
    module, other, of_scores = RATES[name]
    theirs = getattr(importlib.import_module(f"{module}.metrics"), other)
    frame = importlib.import_module("fairlearn.metrics").MetricFrame
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    score = rng.uniform(0.01, 0.99, n)
    given = score if of_scores else (score > 0.5).astype(int)
    who = {"sensitive_features": group}

    def ours() -> object:
        result = getattr(metrics, name)(y, given, **who)
        return result.standard_error, result.estimate

    return Peer(
        name,
        "fairlearn",
        lambda: ours()[1],
        lambda: frame(metrics=theirs, y_true=y, y_pred=given, **who).by_group,
        1e-12,
    )


def rates_table(sizes: tuple[int, ...] = (1000, 100_000)) -> list[str]:
    """Measure, print and return how much faster each rate is, in Markdown."""
    if importlib.util.find_spec("fairlearn") is None:
        print("fairlearn is not installed")
        return []
    lines = [
        f"| `MetricFrame` of two groups | {' | '.join(f'{n:,} rows' for n in sizes)} |",
        "|---|" + "---|" * len(sizes),
    ]
    for name in RATES:
        # Of a few milliseconds each, which a busy machine would disturb.
        ratios = [times_faster(rate(name, n), 9, time.process_time) for n in sizes]
        lines.append(f"| `{name}` | {' | '.join(f'{r:,.0f}x' for r in ratios)} |")
        print(lines[-1], flush=True)
    return lines


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore")
    table()
    rates_table()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
