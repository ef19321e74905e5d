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
        x = np.random.default_rng(seed).integers(0, 8, (len(p.q), 1 + seed % 2)) / 8
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
