"""Calls that are good by construction, of which one or two arguments are spoilt."""

import copy
import inspect
import warnings

import numpy as np
from sklearn.exceptions import NotFittedError

from skrankfair import audit, inference, metrics, smoothing
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics._disparities import DISPARITIES

NAN, INF = float("nan"), float("inf")
ALLOWED = (ValueError, TypeError, NotFittedError, ImportError)
#: What a call needs beside its columns.
NEEDED = {
    "positive_rate_shift": {"threshold": 0.5, "n_resamples": 3},
    "rank_shift": {"n_resamples": 3},
    "nadaraya_watson": {"grid": [0.2, 0.5], "bandwidth": 0.2},
    "matched_pair_calibration": {"epsilon": 0.2},
    "skew_at_k": {"k": 2},
    **{
        name: {"threshold": 0.5}
        for name in (
            *("accuracy", "balanced_accuracy", "f1", "precision", "selection_rate"),
            *("true_positive_rate", "false_positive_rate", "equalized_odds"),
            *("true_negative_rate", "false_negative_rate", *DISPARITIES),
        )
    },
    "marginal_outcome_test": {"threshold": 0.3, "n_resamples": 50},
    "predictive_parity_test": {"n_resamples": 50},
    "outcome_inequality_test": {"n_resamples": 50},
    **{
        f"normalized_discounted_{kind}": {"step": 2}
        for kind in ("difference", "ratio", "kl")
    },
}
COLUMNS = (
    "y_true",
    "y_score",
    "sensitive_features",
    "qid",
    "cluster",
    "sample_weight",
)
SPOILT = (
    *(None, NAN, INF, -INF, 0, -1, 1, 2, 0.5, 1e308, 5e-324, 2**63, 10**400, True),
    *("", "a", b"a", [], {}, (), object(), object, 1j, slice(3), np.zeros(0)),
    *(np.zeros((2, 3)), np.array(0.5), np.array([NAN]), np.datetime64("NaT")),
)


def callables():
    """Return every public function that takes columns, by name."""
    modules = (metrics, inference, smoothing)
    found = {name: getattr(m, name) for m in modules for name in m.__all__}
    found["audit"] = audit
    return {
        name: function
        for name, function in found.items()
        if inspect.isfunction(function)
        and {"y_true", "y_score"} <= set(inspect.signature(function).parameters)
    }


def good_call(name, function, rng):
    """Return arguments that the function takes."""
    n = int(rng.integers(12, 40))
    query = np.sort(rng.integers(0, max(1, n // 6), n))
    columns = {
        "y_true": rng.integers(0, 2, n).astype(float),
        "y_score": np.round(rng.random(n), int(rng.integers(1, 4))),
        "sensitive_features": rng.choice(list("abc")[: rng.integers(2, 4)], n),
        "qid": query,
        "cluster": query // 2,
        "sample_weight": rng.integers(1, 3, n)[query].astype(float),
    }
    if rng.random() < 0.5:
        del columns["cluster"]
    parameters = inspect.signature(function).parameters
    given = {key: value for key, value in columns.items() if key in parameters}
    return {**given, **NEEDED.get(name, {})}


def spoil(value, rng):
    """Return something else than a good argument."""
    column = isinstance(value, np.ndarray) and value.ndim == 1 and value.size
    if not column or rng.random() < 0.2:
        return SPOILT[int(rng.integers(len(SPOILT)))]
    how, row = int(rng.integers(6)), int(rng.integers(value.size))
    if how == 0:
        return value[:-1]
    if how == 1:
        return value[:0]
    if how == 2:
        return value.reshape(-1, 1)
    if how == 3:
        return np.repeat(value[:1], value.size)
    out = value.astype(object)
    out[row] = SPOILT[int(rng.integers(len(SPOILT)))]
    return out if how == 4 else out.tolist()


def attack(name, function, rng):
    """Call once, spoilt; return what is wrong with the outcome, or None."""
    arguments = good_call(name, function, rng)
    options = [p for p in inspect.signature(function).parameters if p != "kwargs"]
    for _ in range(int(rng.integers(1, 3))):
        key = options[int(rng.integers(len(options)))]
        if key in ("n_resamples", "n_permutations", "n_jobs", "grid_size"):
            continue
        arguments[key] = spoil(arguments.get(key), rng)
    before = copy.deepcopy(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            result = function(**arguments)
            repr(result)
        except ALLOWED:
            result = None
        except Exception as error:  # noqa: BLE001
            return f"{name}({before}) raised {error!r}"
    for key, value in before.items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            now = arguments[key]
            if not np.array_equal(value, now, equal_nan=value.dtype.kind == "f"):
                return f"{name} changed {key}"
    return None


def relation(name, function, rng):
    """Return what a good call does wrong when its rows change places, or None."""
    arguments = good_call(name, function, rng)
    n = arguments["y_score"].size
    rows = rng.permutation(n)
    other = {
        key: value[rows] if isinstance(value, np.ndarray) else value
        for key, value in arguments.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        try:
            results = [function(**arguments), function(**other)]
        except ValueError:
            return None
    if not hasattr(results[0], "estimate"):
        return None
    one, two = (np.asarray(r.estimate, dtype=float) for r in results)
    if not np.allclose(one, two, rtol=1e-6, atol=1e-9, equal_nan=True):
        return f"{name} depends on the order of rows: {one} and {two} of {arguments}"
    return None


def parts(name, function, rng):
    """Return what is wrong with the sum of parts of one query each, or None."""
    arguments = good_call(name, function, rng)
    if "qid" not in arguments or "cluster" in arguments:
        return None
    query = arguments["qid"]

    def measure(rows):
        some = {
            key: value[rows] if isinstance(value, np.ndarray) else value
            for key, value in arguments.items()
        }
        return function(**some)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        try:
            whole = measure(np.ones(query.size, dtype=bool))
            if not isinstance(whole, metrics.GroupEstimates):
                return None
            total = sum(measure(query == q).compact() for q in np.unique(query))
        except ValueError:
            return None  # what fits a curve or chooses from the data does not add up
        for what in ("estimate", "standard_error"):
            one, two = getattr(whole, what), getattr(total, what)
            if not np.allclose(one, two, rtol=1e-6, atol=1e-9, equal_nan=True):
                return f"{name}: {what} of parts {two}, of the whole {one}: {arguments}"
    return None


CHECKS = (attack, relation, parts)
