"""Every public function that takes columns, called with whatever may come."""

import numpy as np
import pytest

from tests import fuzz

FUNCTIONS = fuzz.callables()
N_SEEDS = 12


def test_finds_the_functions():
    assert {"pairwise_accuracy", "audit", "predictive_parity_test"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize("check", fuzz.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_wrong(name, check):
    wrong = [
        said
        for seed in range(N_SEEDS)
        if (said := check(name, FUNCTIONS[name], np.random.default_rng(seed)))
    ]
    assert not wrong


def test_the_fuzzer_sees_what_is_wrong():
    def bad(y_true, y_score, *, qid=None):
        np.asarray(y_score, dtype=object)[0] += np.float64(1)
        y_true[0] = 7.0

    def worse(y_true, y_score, *, qid=None):
        raise AttributeError("'list' object has no attribute 'x'")

    rng = np.random.default_rng(0)
    said = [fuzz.attack("f", f, rng) for f in (bad, worse) for _ in range(20)]
    assert any(said[:20])
    assert all(said[20:])
