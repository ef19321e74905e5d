"""Intervals of the Brier score where the rows of a person depend on each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skrankfair.metrics import brier_score
from tests.metrics.simulate import tolerance

N_REPLICATIONS = 1000
N_PEOPLE = 200
EFFECT = 0.25


def people(rng):
    """Draw people with 1 to 5 rows each, of whom the score knows too little.

    The score of a person is 0.3 or 0.7, and the chance of each outcome is the score
    plus or minus the effect. The effect is 0 on average, so that the expected loss is
    s (1 - s) = 0.21 in both groups.
    """
    who = np.repeat(np.arange(N_PEOPLE), rng.integers(1, 6, N_PEOPLE))
    score = rng.choice([0.3, 0.7], N_PEOPLE)[who]
    chance = score + rng.choice([-EFFECT, EFFECT], N_PEOPLE)[who]
    group = np.where(np.arange(N_PEOPLE) % 4 == 0, "a", "b")[who]
    return (rng.random(who.size) < chance) * 1.0, score, group, who


def test_the_truth_is_that_of_the_definition():
    chances = np.array([[s - EFFECT, s + EFFECT] for s in (0.3, 0.7)])
    scores = np.array([[0.3], [0.7]])
    losses = chances * (1 - scores) ** 2 + (1 - chances) * scores**2
    assert_allclose(losses.mean(axis=1), 0.21)
    assert np.ptp(losses, axis=1).min() > 0.19  # the loss depends on the person


@pytest.mark.simulation
def test_clustered_intervals_cover_and_those_of_rows_do_not():
    rng = np.random.default_rng(0)
    covered = np.zeros((2, 2))
    for _ in range(N_REPLICATIONS):
        y, score, group, who = people(rng)
        for i, cluster in enumerate((who, None)):
            result = brier_score(y, score, sensitive_features=group, cluster=cluster)
            low, high = result.confidence_interval()
            covered[i] += (low <= 0.21) & (high >= 0.21)
    clustered, rows = covered / N_REPLICATIONS
    assert (np.abs(clustered - 0.95) < tolerance(0.95, N_REPLICATIONS)).all()
    assert (rows < 0.9).all()
