"""What every call must keep to, and the smallest call that does not."""

import copy
import inspect
import pickle
import traceback
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
from sklearn.exceptions import NotFittedError

from skrankfair._estimates.resampled import ResampledSums
from skrankfair.metrics import GroupEstimates
from tests import fuzz_calls
from tests.fuzz_calls import Call

ALLOWED = (ValueError, TypeError, NotFittedError, ImportError)
#: Metrics of the order of the scores alone.
OF_RANKS = {
    *("pairwise_accuracy", "pairwise_exposure", "dips", "exposure", "exposure_gap"),
    *("ndcg", "ndkl", "skew_at_k", "exposure_parity", "pairwise_parity"),
    *("normalized_discounted_difference", "normalized_discounted_ratio"),
    *("normalized_discounted_kl", "auc"),
}


def quiet():
    """Return a context that allows warnings, but none of a computation gone wrong."""
    context = warnings.catch_warnings()
    context.__enter__()
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", RuntimeWarning)
    return context


def outcome(call, shown=False):
    """Return what a call returns, and print it; None if it is refused as it may be."""
    context = quiet()
    try:
        result = call()
        if shown:
            repr(result)
    except ALLOWED:
        return None
    except Exception as error:
        if of_scikit_learn(error):
            return None
        raise
    finally:
        context.__exit__(None, None, None)
    return result


def of_scikit_learn(error):
    """Whether an error is from scikit-learn: its check of X or y, or a model's fit."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = max((i for i, file in enumerate(files) if "/skrankfair/" in file), default=0)
    return any("/sklearn/" in file for file in files[ours:])


def numbers(result, errors=True):
    """Return the numbers of a result that do not depend on chance, by name."""
    if isinstance(result, GroupEstimates):
        random = isinstance(result.sums, ResampledSums)
        names = (
            "estimate",
            "support",
            *(("standard_error",) * (errors and not random)),
        )
        return {name: np.asarray(getattr(result, name)) for name in names}
    for name in ("estimate", "curves", "outcomes"):
        if hasattr(result, name):
            return {name: np.asarray(getattr(result, name), dtype=float)}
    if isinstance(result, float | np.ndarray):
        return {"value": np.asarray(result)}
    return {}


def differences(one, two, tolerance=1e-6):
    """Return in what numbers two results differ."""
    return [
        f"{name}: {one[name]} and {two[name]}"
        for name in one
        if one[name].shape != two[name].shape
        or not np.allclose(
            one[name], two[name], rtol=tolerance, atol=1e-9, equal_nan=True
        )
    ]


def compared(call, other, tolerance=1e-6, errors=True):
    """Return how the results of two calls differ that should not, or None."""
    results = outcome(call), outcome(other)
    if results[0] is None or results[1] is None:
        return None
    found = differences(*(numbers(r, errors) for r in results), tolerance)
    return "; ".join(found) or None


# Checks: each takes a good call and random numbers, and says what is wrong, or None.


def polite(call, rng):
    """A spoilt call is refused politely, and leaves its arguments alone."""
    call = fuzz_calls.spoilt(call, rng)
    return unharmed(call)


def unharmed(call):
    """Return what a call does to its arguments, or raises that it may not."""
    before = copy.deepcopy(call.arguments)
    try:
        outcome(call, shown=True)
    except Exception as error:  # noqa: BLE001
        return f"raised {type(error).__name__}: {error}"
    for key, value in before.items():
        now = call.arguments[key]
        if isinstance(value, np.ndarray) and value.dtype != object:
            if not np.array_equal(value, now, equal_nan=value.dtype.kind == "f"):
                return f"changed {key}"
        elif isinstance(value, pd.DataFrame) and not value.equals(now):
            return f"changed {key}"
    return None


def row_order(call, rng):
    """The order of the rows does not matter."""
    if call.arguments.get("adjacent") or not call.n_rows:
        return None
    return compared(call, call.take(rng.permutation(call.n_rows)))


def group_names(call, rng):
    """Neither do the names of the groups."""
    labels = call.columns.get("sensitive_features")
    if labels is None or labels.ndim > 1 or call.arguments.get("group") is not None:
        return None
    old = np.unique(labels)
    if call.arguments.get("reference") in old.tolist():
        return None
    new = np.array([f"g{i}" for i in rng.permutation(old.size)])
    renamed = call.but(sensitive_features=new[np.searchsorted(old, labels)])
    results = outcome(call), outcome(renamed)
    if any(not isinstance(r, GroupEstimates) for r in results):
        return None
    if results[0].groups != tuple(old.tolist()):
        return None
    order = [results[1].groups.index(name) for name in new.tolist()]
    two = {name: values[order] for name, values in numbers(results[1]).items()}
    return "; ".join(differences(numbers(results[0]), two)) or None


def monotone_scores(call, rng):
    """Metrics of ranks do not change with the scale of the scores."""
    if call.name not in OF_RANKS:
        return None
    return compared(call, call.but(y_score=np.exp(3 * call.arguments["y_score"]) - 7))


def weights_are_importance(call, rng):
    """A factor common to all weights changes nothing, and a weight of 0 removes."""
    given = call.arguments
    if "y_score" not in given or "sample_weight" not in call.columns:
        return None
    if given.get("adjacent") or not call.n_rows:
        return None
    ranked = "qid" in given
    if "qid" in inspect.signature(call.function).parameters and not ranked:
        return None  # one list has one weight
    unit = given["qid"] if ranked else np.arange(call.n_rows)
    weight = rng.integers(0, 4, unit.max() + 1)[unit]
    if not weight.any():
        return None
    rows = np.flatnonzero(weight)
    fewer = call.take(rows).but(sample_weight=4.0 * weight[rows])
    return compared(call.but(sample_weight=weight.astype(float)), fewer)


def parts_are_the_whole(call, rng):
    """Parts of one query (or cluster) each add up to the whole, stored or not."""
    given = call.arguments
    by = next((key for key in ("cluster", "qid") if key in call.columns), None)
    ranked = "qid" in inspect.signature(call.function).parameters
    if by is None or "y_score" not in given or (ranked and "qid" not in given):
        return None  # one list is no sum of its parts
    label = np.asarray(given[by])
    if len(label) != call.n_rows:
        return None
    whole = outcome(call)
    if not isinstance(whole, GroupEstimates) or isinstance(whole.sums, ResampledSums):
        return None
    parts = [outcome(call.take(np.flatnonzero(label == q))) for q in np.unique(label)]
    if any(part is None for part in parts):
        return None
    kept = (
        GroupEstimates.compact,
        lambda part: pickle.loads(pickle.dumps(part)),
        lambda part: GroupEstimates.from_json(part.to_json()),
    )[int(rng.integers(3))]
    try:
        total = sum(kept(part) for part in parts)
    except ValueError:
        return None  # what chooses numbers from its rows does not add up
    if total.groups != whole.groups:
        return None
    return "; ".join(differences(numbers(whole), numbers(total))) or None


def column_types(call, rng):
    """Lists and columns of pandas and polars are read as arrays are."""

    def converted(value):
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            return value
        kind = int(rng.integers(3))
        index = rng.permutation(value.size)
        return (list, pl.Series, lambda v: pd.Series(v, index=index))[kind](value)

    names = [name for name in call.columns if name not in ("X", "y")]
    return compared(
        call, call.but(**{n: converted(call.arguments[n]) for n in names}), 1e-12
    )


def threads(call, rng):
    """Threads find what one of them finds."""
    alone = outcome(call)
    context = quiet()
    try:
        with ThreadPoolExecutor(3) as pool:
            together = list(pool.map(lambda _: tried(call), range(3)))
    finally:
        context.__exit__(None, None, None)
    for result in together:
        if (alone is None) != (result is None):
            return f"{alone!r} alone, {result!r} in threads"
        if alone is not None and (
            found := differences(numbers(alone), numbers(result), 1e-12)
        ):
            return "; ".join(found)
    return None


def tried(call):
    """Return what a call returns; None if it is refused."""
    try:
        return call()
    except ALLOWED:
        return None


CHECKS = {
    check.__name__: check
    for check in (
        *(polite, row_order, group_names, monotone_scores, weights_are_importance),
        *(parts_are_the_whole, column_types, threads),
    )
}
#: Kinds that are checked by relations, and those that are only spoilt.
RELATED = ("columns",)


def tasks():
    """Return all pairs of what is called and a check, as kind, name and check."""
    return [
        (kind, name, check)
        for kind, found in fuzz_calls.names().items()
        for name in found
        for check in (CHECKS if kind in RELATED else ("polite",))
    ]


def random_numbers(name, check, seed):
    """Return the generator of one call."""
    return np.random.default_rng([seed, zlib.crc32(f"{name} {check}".encode())])


def attempt(kind, name, check, seed):
    """Make one call with its check; return the call, and what is wrong or None."""
    rng = random_numbers(name, check, seed)
    call = fuzz_calls.make(kind, name, rng)
    state = copy.deepcopy(rng.bit_generator.state)
    return call, state, said_by(check, call, state)


def said_by(check, call, state):
    """Return what a check says of a call, with random numbers from a state."""
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    try:
        return CHECKS[check](call, rng)
    except Exception as error:  # noqa: BLE001
        return f"raised {type(error).__name__}: {error}"


def shrunk(check, call, state):
    """Return a call with as few rows as are still wrong, by halves."""
    while call.n_rows > 1:
        half = call.n_rows // 2
        for rows in (np.arange(half), np.arange(half, call.n_rows)):
            if said_by(check, smaller := call.take(rows), state):
                call = smaller
                break
        else:
            return call
    return call


def reproducer(kind, name, check, seed):
    """Return what is wrong with a call, on as few rows as show it; None if nothing."""
    call, state, said = attempt(kind, name, check, seed)
    if not said:
        return None
    call = shrunk(check, call, state)
    said = said_by(check, call, state)
    if check == "polite":
        rng = np.random.default_rng()
        rng.bit_generator.state = state
        call = fuzz_calls.spoilt(call, rng)
    arguments = ", ".join(f"{k}={v!r}" for k, v in call.arguments.items())
    return (
        f"{name}, {check}: {said}\n  {name}({arguments})\n  "
        f"python -m benchmarks.fuzz --only {name} --check {check} --seed {seed}"
    )


__all__ = ["CHECKS", "Call", "attempt", "reproducer", "shrunk", "tasks"]
