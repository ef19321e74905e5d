"""Tests keep their level on designs that are hard on errors: docs/validity.md has more.

`benchmarks/validity.py` draws a thousand data sets of each design.
"""

import warnings

import numpy as np
import pytest

from skrankfair.exceptions import SmallSampleWarning, UndefinedMetricWarning
from skrankfair.inference import compare, marginal_outcome_test, predictive_parity_test
from skrankfair.metrics import (
    brier_score,
    calibration_error,
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
)
from tests.designs import CURVES, DESIGNS

pytestmark = pytest.mark.simulation

N_REPLICATIONS = 120
HARD = ("equal10", "power40", "dominant", "rare", "users", "weights", "list200_10")


def at_most(nominal):
    """Return a rate that is exceeded in one of 30,000 studies, if it is nominal."""
    return nominal + 4 * np.sqrt(nominal * (1 - nominal) / N_REPLICATIONS)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        for category in (SmallSampleWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", category)
        yield


@pytest.mark.parametrize("key", HARD)
def test_tests_of_groups_that_differ_by_chance(key):
    design, wrong = DESIGNS[key], []
    for seed in range(N_REPLICATIONS):
        rows = design.draw(np.random.default_rng([seed, 1]))
        if not 0 < rows["group"].mean() < 1:
            continue
        who = {"sensitive_features": np.where(rows["group"], "a", "b")}
        if key[:4] != "list":
            who["qid"] = rows["qid"]
        if design.users or design.weighted:
            who["cluster"] = rows["owner"]
        if design.weighted:
            who["sample_weight"] = rows["sample_weight"]
        y, score, other = rows["y_true"], rows["y_score"], rows["other"]
        inter = pairwise_accuracy(y, score, comparison="inter", **who)
        again = pairwise_accuracy(y, other, comparison="inter", **who)
        pvalues = [
            inter.contrast("a", "b").pvalue,
            compare(inter, again).pvalue[0],
            pairwise_exposure(y, score, **who).pvalue[0],
            matched_pair_calibration(
                y, score, epsilon=0.3, direction="both", **who
            ).pvalue[0],
        ]
        wrong.append(np.array(pvalues) < 0.05)  # NaN is not a verdict
    rates = np.mean(wrong, axis=0)
    assert rates.max() < at_most(0.06), rates


@pytest.mark.parametrize("key", ["straight", "steep", "small", "clusters20"])
def test_curves_and_calibration(key):
    design, wrong = CURVES[key], []
    scores = design.population()
    truth = np.sqrt(np.mean((scores - design.mean(scores)) ** 2))
    for seed in range(N_REPLICATIONS // 2):
        rows = design.draw(np.random.default_rng([seed, 2]))
        y, s, own = rows["y"], rows["s"], rows["g"] == 1
        cluster = rows["c"] if design.clusters else None
        who = {"sensitive_features": rows["g"], "cluster": cluster}
        parity = predictive_parity_test(y, s, n_resamples=1000, **who)
        marginal = marginal_outcome_test(y, s, threshold=0.5, **who)
        part = None if cluster is None else cluster[own]
        error = calibration_error(y[own], s[own], cluster=part)
        low, high = (end[0] for end in error.confidence_interval())
        outside = not low <= truth <= high
        wrong.append([parity.pvalue < 0.05, marginal.pvalue < 0.05, outside])
    rates = np.mean(wrong, axis=0)
    assert rates.max() < 0.06 + 4 * np.sqrt(0.06 * 0.94 / len(wrong)), rates


def test_losses_of_a_rare_group():
    design = DESIGNS["rare"]
    missed, truth = [], 0.2116
    for seed in range(2 * N_REPLICATIONS):
        rows = design.draw(np.random.default_rng([seed, 3]))
        if not rows["group"].any():
            continue
        chance = 1 / (1 + np.exp(-rows["y_score"]))
        r = brier_score(
            *(rows["y_true"], chance),
            sensitive_features=np.where(rows["group"], "a", "b"),
            cluster=rows["qid"],
        )
        low, high = (end[0] for end in r.confidence_interval())
        missed.append(not low <= truth <= high)
    assert np.mean(missed) < 0.06 + 4 * np.sqrt(0.06 * 0.94 / len(missed))
