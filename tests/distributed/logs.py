"""A log of queries of users, and what is measured of it by every engine."""

from functools import partial

import numpy as np
import pandas as pd

from skrankfair import metrics
from skrankfair.distributed import measure

METRICS = {
    "inter": partial(metrics.pairwise_accuracy, comparison="inter"),
    "queries": partial(metrics.pairwise_accuracy, average="queries"),
    "exposure": metrics.pairwise_exposure,
    "matched": partial(metrics.matched_pair_calibration, epsilon=0.05),
    "dips": metrics.dips,
    "shares": metrics.exposure,
    "brier": metrics.brier_score,
    "selected": partial(metrics.selection_rate, threshold=0.5),
    "ndcg": partial(metrics.ndcg, sensitive_features=None),
    "rND": partial(metrics.normalized_discounted_difference, step=2),
}
WHO = {"y_true": "y", "y_score": "s", "sensitive_features": "g"}
WHO |= {"qid": "q", "cluster": "u"}


def click_log():
    """Return rows of 400 queries of 90 users in no order, with a column too many."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(400), 6)
    frame = pd.DataFrame({"q": query, "u": query % 90, "unused": "x"})
    frame["g"] = rng.choice(["a", "b", "c"], len(frame), p=[0.1, 0.3, 0.6])
    frame["s"] = rng.random(len(frame)).round(2)
    frame["y"] = (rng.random(len(frame)) < 0.4).astype(int)
    frame["grade"], frame["z"] = frame["y"] * (1 + query % 3), rng.random(len(frame))
    frame["w"] = 1.0 + frame["u"] % 2
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


def written(folder, *frames, kind="parquet"):
    """Write each frame to a file of its own."""
    for number, frame in enumerate(frames):
        path = folder / f"{number}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return str(folder / f"*.{kind}")


def assert_same(results, whole, of_tests=1e-12):
    assert results.keys() == whole.keys()
    for name, result in results.items():
        expected = whole[name]
        assert result.groups == expected.groups
        for part in ("estimate", "standard_error", "support", "df", "pvalue"):
            rtol = of_tests if part in ("df", "pvalue") else 1e-12
            np.testing.assert_allclose(
                getattr(result, part), getattr(expected, part), rtol=rtol, atol=1e-12
            )


def assert_same_replicates(results, frame):
    """Compare 20 replicates of seed 4 with those in memory."""
    whole = measure(frame, METRICS, n_replicates=20, random_state=4, **WHO)
    for name, result in results.items():
        # Sums over the rows of a cluster are rounded as these are ordered.
        drawn = whole[name].resampled()
        np.testing.assert_allclose(result.resampled(), drawn, rtol=1e-13, atol=1e-15)
