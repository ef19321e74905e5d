"""Scores that mean different things in two groups, and a test of parity."""

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from skrankfair.inference import predictive_parity_test

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


def parity_pvalue(y, score, group, cluster=None):
    """Of predictive parity, where the scores of all groups are: not at their ends.

    There a smoother looks to one side only, which is a bias of its own.
    """
    score, group = np.asarray(score), np.asarray(group)
    parts = [score[group == g] for g in np.unique(group)]
    low = max(np.quantile(s, 0.05) for s in parts)
    high = min(np.quantile(s, 0.95) for s in parts)
    return predictive_parity_test(
        y,
        score,
        sensitive_features=group,
        cluster=cluster,
        grid=np.linspace(low, high, 20),
        n_resamples=2000,
    ).pvalue
