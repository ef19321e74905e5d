"""Intervals of the impact metrics: ``benchmarks/papers/impact_coverage.py``.

DiCiccio et al. 2023, Remark 6, leave out intervals for the change of decisions (ΔPCC)
and ranks (ΔRC) that calibration would bring. Those of `positive_rate_shift` and
`rank_shift` are from a bootstrap of clusters that fits the curves anew. How often do
they hold the truth? Users have 1 + Poisson(3) rows (queries of 4 items); scores and
outcomes of a user are correlated. The scores of group "a" are too high, E[Y | s] = s²,
or, like those of "b", calibrated.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import special

from skrankfair.metrics import positive_rate_shift, rank_shift

CORRELATION = 0.3
THRESHOLD = 0.5
N_ITEMS = 4
WIDTH = 0.6


def correlated(rng: np.random.Generator, user: np.ndarray) -> np.ndarray:
    """Return normal variables that are correlated within users."""
    own = rng.normal(size=user.max() + 1)[user]
    noise = rng.normal(size=user.size)
    return np.sqrt(CORRELATION) * own + np.sqrt(1 - CORRELATION) * noise


def draw(
    rng: np.random.Generator, n_users: int, biased: bool, n_items: int = 1
) -> dict[str, np.ndarray]:
    """Return columns; a user is of one group when `n_items` is 1."""
    query_user = np.repeat(np.arange(n_users), 1 + rng.poisson(3, n_users))
    query = np.repeat(np.arange(query_user.size), n_items)
    user = query_user[query]
    unit = user if n_items == 1 else np.arange(user.size)
    in_a = (rng.random(unit.max() + 1) < 0.5)[unit]
    score = special.ndtr(WIDTH * correlated(rng, user))
    mean = np.where(in_a & biased, score**2, score)
    return {
        "y_true": (special.ndtr(correlated(rng, user)) < mean).astype(float),
        "y_score": score,
        "sensitive_features": np.where(in_a, "a", "b"),
        "cluster": user,
        "qid": query,
    }


def decisions(rng, n_users, biased, n_resamples):
    """Return the interval of the positive rate shift of "a", and the truth."""
    columns = draw(rng, n_users, biased)
    del columns["qid"]
    options = {"threshold": THRESHOLD, "n_resamples": n_resamples}
    r = positive_rate_shift(**columns, **options)
    # P(S² > t) - P(S > t), S = Φ(WIDTH · normal).
    cuts = special.ndtri([np.sqrt(THRESHOLD), THRESHOLD]) / WIDTH
    shift = -np.diff(special.ndtr(-cuts))[0]
    return r, n_resamples, shift if biased else 0.0


def ranks(rng, n_users, biased, n_resamples):
    """Return the interval of the rank shift of "a", and the truth.

    Scores are correlated within the user of a query, but two items of it are as likely
    above each other either way.
    """
    columns = draw(rng, n_users, biased, N_ITEMS)
    r = rank_shift(**columns, kernel="gaussian4", n_resamples=n_resamples)
    return r, n_resamples, true_rank_shift() if biased else 0.0


def true_rank_shift() -> float:
    """Return E[n_b] (P(S_b > S_a) - P(S_b > S_a²)) by quadrature over the user."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    own, noise = np.sqrt(CORRELATION), np.sqrt(1 - CORRELATION)
    a = special.ndtr(WIDTH * (own * nodes[:, None] + noise * nodes))
    # S_b > S_a² given the user's effect.
    reach = special.ndtri(a**2) / WIDTH
    above = special.ndtr((own * nodes[:, None] - reach) / noise)
    both = np.outer(weights, weights) / weights.sum() ** 2
    return (N_ITEMS - 1) / 2 * (0.5 - float((both * above).sum()))


METRICS = {"positive_rate_shift": decisions, "rank_shift": ranks}


def study(name: str, biased: bool, options: argparse.Namespace) -> dict[str, float]:
    """Return bias and coverage over the replications."""
    values, inside, normal = [], [], []
    for seed in range(options.replications):
        rng = np.random.default_rng([options.seed, seed])
        r, n_resamples, truth = METRICS[name](
            rng, options.users, biased, options.resamples
        )
        resampled = r.resampled(n_resamples, 0)[:, 0]
        drawn = {"n_resamples": n_resamples, "random_state": 0}
        low, high = r.confidence_interval(method="bootstrap", **drawn)
        values.append(r.estimate[0])
        inside.append(low[0] <= truth <= high[0])
        margin = 1.96 * resampled.std(ddof=1)
        normal.append(abs(values[-1] - truth) <= margin)
    return {
        "truth": truth,
        "mean": float(np.mean(values)),
        "sd": float(np.std(values)),
        "bootstrap": float(np.mean(inside)),
        "normal": float(np.mean(normal)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=list(METRICS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{options.users} users, {options.replications} replications")
    print(
        "metric               scores       truth     mean       sd   bootstrap  normal"
    )
    for name in options.metrics:
        for biased in (True, False):
            r = study(name, biased, options)
            print(
                f"{name:20s} {'too high' if biased else 'calibrated':10s} "
                f"{r['truth']:8.4f} {r['mean']:8.4f} {r['sd']:8.4f} "
                f"{r['bootstrap']:10.1%} {r['normal']:8.1%}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    if main():
        raise SystemExit(1)
