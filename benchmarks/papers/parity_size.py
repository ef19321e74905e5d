"""Size, power and coverage of the test: ``benchmarks/papers/parity_size.py``.

DiCiccio et al. 2023 test predictive parity with dependent rows (Section 3) and prove
the test only in the limit. Here M users of two groups have 1 + Poisson(3) rows each;
scores of a user are correlated, and so are outcomes given the scores. Of so many data
sets: how often does the test reject where the curves are one, and where they differ by
a bump? How often do pointwise 95% intervals hold the truth?
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import special

from skrankfair.inference import predictive_parity_test

OF_SCORES, OF_OUTCOMES = 0.3, 0.7
BUMP, CENTRE, WIDTH = 0.2, 0.6, 0.15
LEVEL = 0.05
PAPER = "nadaraya_watson"


def correlated(rng: np.random.Generator, user: np.ndarray, rho: float) -> np.ndarray:
    """Return uniform variables with a normal copula of correlation rho in users."""
    own = rng.normal(size=user.max() + 1)[user]
    return special.ndtr(
        np.sqrt(rho) * own + np.sqrt(1 - rho) * rng.normal(size=user.size)
    )


def curve(score: np.ndarray, raised: np.ndarray | bool = False) -> np.ndarray:
    """Return the mean outcome at a score; of a raised group with a bump."""
    bump = np.exp(-0.5 * ((score - CENTRE) / WIDTH) ** 2)
    return 0.2 + 0.5 * score + BUMP * bump * raised


def draw(rng: np.random.Generator, n_users: int, differ: bool) -> dict[str, np.ndarray]:
    """Return the columns of a data set."""
    user = np.repeat(np.arange(n_users), 1 + rng.poisson(3, n_users))
    in_a = (rng.random(n_users) < 0.5)[user]
    score = correlated(rng, user, OF_SCORES)
    mean = curve(score, in_a & differ)
    return {
        "y_true": (correlated(rng, user, OF_OUTCOMES) < mean).astype(float),
        "y_score": score,
        "sensitive_features": np.where(in_a, "a", "b"),
        "cluster": user,
    }


def study(n_users: int, differ: bool, replications: int, seed: int) -> dict[str, float]:
    """Return rates of rejection, and of intervals that hold the truth."""
    rows = []
    for replication in range(replications):
        columns = draw(np.random.default_rng([seed, replication]), n_users, differ)
        t = predictive_parity_test(**columns, curve=PAPER, n_resamples=2000)
        low, high = t.band(kind="pointwise")
        truth = curve(t.grid, differ) - curve(t.grid)
        row = {
            "sup_t": t.pvalue < LEVEL,
            "bonferroni": t.pointwise_pvalues.min() * t.grid.size < LEVEL,
            "difference": np.mean((low[0] <= truth) & (truth <= high[0])),
        }
        low, high = t.curve_band(kind="pointwise")
        truth = curve(t.grid)
        row["curve"] = np.mean((low[1] <= truth) & (truth <= high[1]))
        del columns["cluster"]
        t = predictive_parity_test(**columns, curve=PAPER, n_resamples=2000)
        row["ignoring"] = t.pvalue < LEVEL
        rows.append(row)
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--users", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"rejected at 5%, of {options.replications} replications")
    print(
        "users  curves   sup_t  bonferroni  ignoring clusters"
        "   intervals of: difference  curve"
    )
    fine = True
    for n_users in options.users:
        for differ in (False, True):
            r = study(n_users, differ, options.replications, options.seed)
            print(
                f"{n_users:5d}  {'differ' if differ else 'equal ':6s}  "
                f"{r['sup_t']:6.1%}  {r['bonferroni']:10.1%}  {r['ignoring']:17.1%}"
                f"  {r['difference']:24.1%}  {r['curve']:5.1%}",
                flush=True,
            )
            if differ:
                fine &= r["sup_t"] > r["bonferroni"]
            else:
                fine &= max(r["sup_t"], r["bonferroni"]) <= 0.07 < r["ignoring"]
            fine &= all(0.925 <= r[name] <= 0.97 for name in ("difference", "curve"))
    print("all as promised" if fine else "NOT as promised")
    return int(not fine)


if __name__ == "__main__":
    if main():
        raise SystemExit(1)
