"""Everything public, called with whatever may come; `benchmarks/fuzz.py` runs longer.

Each test makes a few calls with seeds of its own. What fails here or there is printed
with the command that repeats it.
"""

import dataclasses
import inspect
from functools import partial

import numpy as np
import pytest

from tests import fuzz
from tests.seeds import rarely
from tests.test_public_api import PUBLIC

TASKS = fuzz.tasks()


def test_everything_public_is_called():
    called = {name.partition(".")[0] for name, _ in TASKS}
    #: What needs a file or takes nothing, results that are looked at elsewhere, and
    #: what the calls make on their way.
    others = {
        *("fetch_movielens", "fetch_rdataset", "measure", "Monitor"),
        *("get_scorer_names", "show_versions"),
        "pareto_front",
        *("FairnessScore", "FairnessScorer", "FairnessConstrained", "MadeMetric"),
        "with_errors",
        *("PairwiseFairnessObjective", "SkrankfairScorer"),
    }
    for path, value in PUBLIC:
        name = path.rpartition(".")[2]
        result = dataclasses.is_dataclass(value) or name.endswith("Display")
        warning = inspect.isclass(value) and issubclass(value, Warning)
        plain = inspect.isclass(value) and issubclass(value, tuple | float)
        if not (result or warning or plain):
            assert name in called | others


@pytest.mark.parametrize("seed", [0, *rarely(1)])
@pytest.mark.parametrize("name", sorted({name for name, _ in TASKS}))
def test_nothing_wrong(name, seed):
    for other, check in TASKS:
        if other == name:
            fuzz.attempt(name, check, seed)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("GroupEstimates.equivalence_test", 1037),
        ("Estimate.equivalence_test", 1041),
        ("Estimate.required", 1043),
        ("Plan.df", 1240),
        ("calibration_error", 1363),
    ],
)
def test_what_was_found_by_many_calls(name, seed):
    fuzz.attempt(name, "polite", seed)


def changes(y_true, y_score):
    if isinstance(y_true, np.ndarray) and y_true.shape == (12,):
        y_true[0] = 7.0


def fails(y_true, y_score):
    raise AttributeError("'list' object has no attribute 'x'")


def warns(y_true, y_score):
    return float(np.float64(1e308) * 10)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (changes, "changed y_true"),
        (fails, "'list' object has no attribute"),
        (warns, "overflow encountered"),
    ],
)
def test_the_fuzzer_sees_what_is_wrong(function, says):
    rng = np.random.default_rng(0)
    call = partial(function, y_true=rng.random(12), y_score=rng.random(12))

    def often():
        for _ in range(20):
            fuzz.polite(call, rng)

    with pytest.raises((AssertionError, AttributeError, RuntimeWarning), match=says):
        often()
