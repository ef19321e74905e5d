"""Scores that mean different things in two groups, and a test of parity."""

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

from skrankfair.smoothing import nadaraya_watson

TRUTH = {
    "a": lambda s: expit(0.5 + logit(s)),
    "b": lambda s: expit(-0.5 + 0.8 * logit(s)),
}
WAVE = {"a": lambda s: s, "b": lambda s: 0.5 + 0.4 * np.sin(2 * np.pi * s)}


def scores(n, seed, truth=TRUTH):
    """A frame with score, group and expected outcome; and outcomes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"score": rng.uniform(0.02, 0.98, n)})
    X["group"] = rng.choice(list(truth), n)
    expected = np.empty(n)
    for group, curve in truth.items():
        rows = (X["group"] == group).to_numpy()
        expected[rows] = curve(X["score"].to_numpy()[rows])
    return X, (rng.random(n) < expected).astype(float), expected


def parity_pvalue(y, score, group, n_points=10):
    """Bonferroni over the differences of two groups' curves on their common support."""
    score, group = np.asarray(score), np.asarray(group)
    parts = [(y[group == g], score[group == g]) for g in np.unique(group)]
    low = max(np.quantile(s, 0.02) for _, s in parts)
    high = min(np.quantile(s, 0.98) for _, s in parts)
    grid = np.linspace(low, high, n_points)
    first, second = (
        nadaraya_watson(y, s, grid, bandwidth="undersmooth") for y, s in parts
    )
    error = np.hypot(first.standard_error, second.standard_error)
    z = np.abs(first.estimate - second.estimate) / error
    return min(1.0, float(n_points * 2 * norm.sf(z.max())))
