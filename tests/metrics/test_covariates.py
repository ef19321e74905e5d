"""Matched pairs that are alike in other scores or features too."""

import itertools

import numpy as np
import pytest

from skrankfair.metrics import matched_pair_calibration
from tests import seeds
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.metrics.test_matched_pair import assert_same, jackknife, on_a_grid

pytestmark = undefined_is_fine
OPTIONS = {
    "mean": {},
    "linear": {"estimator": "local_linear"},
    "queries": {"average": "queries"},
}


@seeds.in_chunks(12, always=3)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_against_loops(seeds, options):
    known = 0
    for seed, epsilon in itertools.product(seeds, (0.0, 0.25, 0.6)):
        p = on_a_grid(make_problem(seed, (6, 20)))
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 8, (len(p.q), 1 + seed % 2)) / 8
        kept = [row for row, weight in enumerate(p.weights) if weight]
        near = (np.abs(x[kept, None] - x[kept]) <= epsilon).all(axis=2)
        seen = p.seen()
        variances = ("cluster", "item") if "average" not in options else ("cluster",)
        for variance in variances:
            r = matched_pair_calibration(
                *(p.y, p.s), **p.who, covariates=x, epsilon=epsilon,
                variance=variance, **options,
            )  # fmt: skip
            unit = seen.q if variance == "cluster" else range(len(seen.q))
            how = {"strata": variance == "item", "direction": "both", "near": near}
            expected = jackknife(seen, unit, epsilon, **how, **options)
            known += np.count_nonzero(~np.isnan(r.standard_error))
            assert_same(r, expected, (seed, epsilon, variance))
    assert known > 5


def made(seed=0, n_queries=400):
    """Columns in which the group is cheap, and the outcome falls with the price."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 12)
    group, score = rng.permutation(query.size) % 2, rng.random(query.size)
    price = rng.random(query.size) - 0.5 * group
    y = score - price + 0.1 * group + rng.normal(0, 0.2, query.size)
    return y, score, price, {"sensitive_features": group, "qid": query}


def test_the_truth_at_equal_prices():
    """A group of lower prices seems to be undervalued by more than it is."""
    hidden, found, covered = [], [], []
    for seed in range(40):
        y, score, price, who = made(seed, 100)
        plain = matched_pair_calibration(y, score, direction="both", epsilon=0.1, **who)
        r = matched_pair_calibration(y, score, covariates=price, epsilon=0.1, **who)
        hidden.append(plain.estimate[1])
        found.append(r.estimate[1])
        low, high = r.confidence_interval()
        # Prices of matched items differ by what their densities make of them.
        covered.append(low[1] < 0.1 < high[1])
    assert np.mean(hidden) > 0.5
    assert abs(np.mean(found) - 0.1) < 4 * np.std(found) / np.sqrt(40) + 0.005
    assert sum(covered) >= 33  # 38 are expected, 4 standard deviations are 5.5
