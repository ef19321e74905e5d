"""Everything public, called with whatever may come; `benchmarks/fuzz.py` runs longer.

Each test makes a few calls with seeds of its own. What fails here or there is printed
with as few rows as show it, and the command that repeats it.
"""

import dataclasses
import inspect

import numpy as np
import pytest

from tests import fuzz
from tests.fuzz_calls import Call, names
from tests.seeds import rarely
from tests.test_public_api import PUBLIC

TASKS = fuzz.tasks()
#: Calls that take a second are made once.
SLOW = (
    *("audit", "audit_cv", "mitigation_report", "MitigationReport"),
    *("AuditReport", "ChangeReport"),
)


def test_everything_public_is_called():
    called = {name for found in names().values() for name in found}
    called |= {name.partition(".")[0] for name in called}
    #: What needs a file or takes nothing, results that are looked at elsewhere, and
    #: what the calls make on their way.
    others = {
        *("fetch_movielens", "measure", "Monitor"),
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
@pytest.mark.parametrize(
    ("kind", "name"), sorted({(kind, name) for kind, name, _ in TASKS}), ids=str
)
def test_nothing_wrong(kind, name, seed):
    if seed and name.partition(".")[0] in SLOW:
        return
    wrong = [
        found
        for _, other, check in TASKS
        if other == name
        if fuzz.attempt(kind, name, check, seed)[2]
        and (found := fuzz.reproducer(kind, name, check, seed))
    ]
    assert not wrong, "\n\n".join(wrong)


def call_of(function, **more):
    """Return a call of a function with columns of twelve rows."""
    rng = np.random.default_rng(0)
    given = {
        "y_true": rng.random(12),
        "y_score": rng.random(12),
        "sensitive_features": np.array(list("aabbab" * 2)),
        "cluster": np.arange(12) // 2,
        "sample_weight": np.ones(12),
        **more,
    }
    parameters = inspect.signature(function).parameters
    return Call("dips", function, {k: v for k, v in given.items() if k in parameters})


def said(check, function, **more):
    """Return what a check says of a function for some random numbers."""
    found = [
        fuzz.CHECKS[check](call_of(function, **more), np.random.default_rng(seed))
        for seed in range(20)
    ]
    return next(filter(None, found), None)


class TestTheFuzzerSees:
    def test_errors_and_changes(self):
        def changes(y_true, y_score):
            if isinstance(y_true, np.ndarray) and y_true.shape == (12,):
                y_true[0] = 7.0

        def fails(y_true, y_score):
            raise AttributeError("'list' object has no attribute 'x'")

        def warns(y_true, y_score):
            return float(np.float64(1e308) * 10)

        def works(y_true, y_score):
            return 1.0

        assert said("polite", changes) == "changed y_true"
        assert "AttributeError" in said("polite", fails)
        assert "RuntimeWarning" in said("polite", warns)
        assert said("polite", works) is None

    def test_with_as_few_rows_as_show_it(self):
        def fails_on_large(y_true, y_score):
            if np.asarray(y_score).max() > 0.5:
                raise KeyError("large")
            return 1.0

        call = call_of(fails_on_large)
        state = np.random.default_rng(3).bit_generator.state
        assert "KeyError" in fuzz.said_by("threads", call, state)
        small = fuzz.shrunk("threads", call, state)
        assert small.n_rows == 1
        assert small.arguments["y_score"] > 0.5
