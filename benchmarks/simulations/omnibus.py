"""Omnibus tests of equal curves beside the test of predictive parity.

``python -m benchmarks.simulations.omnibus [data sets]``. The paper names two kinds as
more powerful (§3.1). Srihera and Stute (2010) compare weighted means of the difference
of the curves, without a bandwidth. Luedtke, Carone and van der Laan (2019) compare
unknown functions by a kernel (their maximum mean discrepancy). Here both are of the
residuals of the outcome and of the group on a spline of the score, so that neither the
curve nor different scores matter, with random signs of whole clusters; the third is the
Cramér-von Mises statistic of their cumulative sums (Neumeyer and Dette 2003). docs/
papers/predictive_parity.md has the table.
"""

import sys

import numpy as np
from scipy import special
from sklearn.preprocessing import SplineTransformer

from benchmarks.simulations.common import quiet
from skrankfair.inference import predictive_parity_test

SIGNS = 499
TESTS = ("package", "curves alone", "weighted mean", "kernel", "cumulative")


def residual_products(y, s, in_a):
    """Return the product of both residuals on a cubic spline of the score."""
    inside = (s >= max(s[in_a].min(), s[~in_a].min())) & (
        s <= min(s[in_a].max(), s[~in_a].max())
    )
    knots = np.quantile(s[inside], np.linspace(0, 1, 6))[:, None]
    basis = SplineTransformer(knots=knots, extrapolation="linear")
    basis = np.column_stack([basis.fit_transform(s[:, None])])
    q, _ = np.linalg.qr(basis)
    return (y - q @ (q.T @ y)) * (in_a - q @ (q.T @ in_a.astype(float))) * inside


def omnibus(y, s, in_a, cluster, rng):
    """Return p-values of the three statistics, by random signs of clusters."""
    product = residual_products(y, s, in_a)
    signs = rng.choice([-1.0, 1.0], (SIGNS, cluster.max() + 1))
    drawn = np.vstack([product, signs[:, cluster] * product])
    order = np.argsort(s)
    place = np.linspace(0, 1, 60)
    # A Gaussian kernel by its values at 60 quantiles, normalised by the density.
    at = np.quantile(s, place)
    scale = 0.5 * s.std()
    kernel = np.exp(-0.5 * ((s[:, None] - at) / scale) ** 2)
    statistics = np.stack(
        [
            np.abs(drawn.sum(1)),
            np.square(drawn @ kernel).sum(1),
            np.square(np.cumsum(drawn[:, order], axis=1)).sum(1),
        ]
    )
    return np.mean(statistics[:, 1:] >= statistics[:, :1], axis=1)


def level(s):
    """Return the same gap at all scores."""
    return np.ones(s.size)


def slope(s):
    """Return a gap that changes its sign in the middle."""
    return 4 * (s - 0.5)


def wave(s):
    """Return a gap that changes its sign three times."""
    return 2 * np.sin(4 * np.pi * s)


def bump(s):
    """Return a gap at few scores."""
    return 4 * np.exp(-0.5 * ((s - 0.7) / 0.05) ** 2)


def bend(s):
    """Return a gap with one sign in the middle and the other at the ends."""
    return 12 * (s - 0.5) ** 2 - 1


#: Name, gap of the log odds, rows, share of the group, clusters.
DESIGNS = (
    ("none, 50% of 2,000", None, 0.0, 2000, 0.5, None),
    ("none, 10% of 1,500", None, 0.0, 1500, 0.1, None),
    ("none, 40 unequal clusters", None, 0.0, 2000, 0.4, 40),
    ("level, 50% of 2,000", level, 0.35, 2000, 0.5, None),
    ("level, 10% of 1,500", level, 0.55, 1500, 0.1, None),
    ("slope, 50% of 2,000", slope, 0.35, 2000, 0.5, None),
    ("bend, 50% of 2,000", bend, 0.35, 2000, 0.5, None),
    ("wave, 50% of 2,000", wave, 0.3, 2000, 0.5, None),
    ("bump, 50% of 2,000", bump, 0.35, 2000, 0.5, None),
    ("level, 40 unequal clusters", level, 0.5, 2000, 0.4, 40),
)


def draw(rng, gap, size, n_rows, share, n_clusters):
    """Return columns whose log odds differ by the gap."""
    cluster = np.arange(n_rows)
    own = np.zeros(n_rows)
    if n_clusters:
        chance = 1.0 / np.arange(1, n_clusters + 1) ** 0.6
        cluster = rng.choice(n_clusters, n_rows, p=chance / chance.sum())
        own = 0.4 * rng.normal(size=n_clusters)[cluster]
    in_a = rng.random(n_rows) < share
    s = rng.beta(np.where(in_a, 2, 3), 3)
    odds = special.logit(np.clip(s, 0.01, 0.99)) + own
    if gap is not None:
        odds = odds + size * gap(s) * in_a
    return (rng.random(n_rows) < special.expit(odds)).astype(float), s, in_a, cluster


def main(n_sets):
    """Print how often each test rejects at 5%."""
    print("| design |", " | ".join(TESTS), "|")
    for number, (name, *design) in enumerate(DESIGNS):
        pvalues = []
        for seed in range(n_sets):
            rng = np.random.default_rng([seed, number])
            y, s, in_a, cluster = draw(rng, *design)
            who = {"sensitive_features": in_a, "n_resamples": 999}
            if design[-1]:
                who["cluster"] = cluster
            with quiet():
                test = predictive_parity_test(y, s, **who)
            _, dense = np.unique(cluster, return_inverse=True)
            others = omnibus(y, s, in_a, dense, rng)
            pvalues.append([test.pvalue, np.nanmin(test.pvalues), *others])
        found = 100 * np.mean(np.array(pvalues) < 0.05, axis=0)
        print(f"| {name} |", " | ".join(f"{v:.0f}" for v in found), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
