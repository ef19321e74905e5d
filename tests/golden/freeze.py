"""Compute the frozen numbers and store them: `python -m tests.golden.freeze [names]`.

Every entry has a name "room/data/rest" and fields of numbers. Its room names the file
in `numbers/` that has it. With names, or parts of names in the manner of the shell,
only the entries that match are computed and stored anew; without any, all.
"""

import dataclasses
import fnmatch
import functools
import gzip
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from skrankfair import AuditReport
from skrankfair._estimates.estimates import Estimate, GroupTest
from skrankfair._estimates.scales import ConfidenceInterval
from skrankfair.metrics import GroupEstimates
from skrankfair.metrics._disparities import EqualizedOdds
from tests.golden import of_curves, of_models, of_rankings

NUMBERS = Path(__file__).parent / "numbers"
#: Groups of a result that are stored one by one; of all there are sums.
FIRST_GROUPS = 4
#: Numbers of anything else.
FIRST_NUMBERS = 60
#: What is stored of results, beside intervals, and of how many groups.
ATTRIBUTES = {
    GroupEstimates: (
        ("estimate", "standard_error", "df", "n_effective", "support", "pvalue"),
        FIRST_GROUPS,
    ),
    Estimate: (("estimate", "standard_error", "df", "statistic", "pvalue"), 1),
    GroupTest: (("statistic", "pvalue", "df", "null_value"), FIRST_GROUPS),
    ConfidenceInterval: (("low", "high"), FIRST_NUMBERS),
}


def entries():
    """Return all entries by name: functions without arguments."""
    found = {}
    for make in (*of_rankings.MAKERS, *of_curves.MAKERS, *of_models.MAKERS):
        for name, function, *args in make():
            if name in found:
                raise ValueError(f"Two entries are called {name}.")
            found[name] = functools.partial(function, *args)
    return found


def computed(name, compute):
    """Return the numbers of an entry by field; of a refusal, that it is one."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return dict(fields_of(compute()))
        except ValueError:
            if not name.startswith("steps"):
                raise
            return {"refused": [1.0]}


@functools.singledispatch
def fields_of(value):
    """Yield names and numbers of a value: an array, table, result or dict of them."""
    if type(value) in ATTRIBUTES:
        names, first = ATTRIBUTES[type(value)]
        for name in names:
            yield name, listed(getattr(value, name), first)
        if isinstance(value, GroupEstimates):
            yield "n_clusters", [float(value.n_clusters)]
            yield "covariance", listed(value.covariance, first)
        if hasattr(value, "confidence_interval"):
            for name, ends in fields_of(value.confidence_interval()):
                yield name, listed(ends, first)
    elif isinstance(value, EqualizedOdds):
        names = ("true_positive_rate", "false_positive_rate")
        yield from fields_of({name: getattr(value, name) for name in names})
    elif dataclasses.is_dataclass(value):
        yield from fields_of(value.to_frame())
    else:
        yield "value", listed(value, FIRST_NUMBERS)


@fields_of.register
def _(value: AuditReport):
    yield from fields_of(value.to_frame())
    for name, result in value.results.items():
        if not isinstance(result, GroupEstimates):
            continue
        for field in ("df", "n_effective"):
            yield f"{name}.{field}", listed(getattr(result, field), FIRST_GROUPS)


@fields_of.register
def _(value: pd.DataFrame):
    for name in value.columns:
        column = value[name]
        if pd.api.types.is_numeric_dtype(column):
            label = "-".join(map(str, name)) if isinstance(name, tuple) else str(name)
            yield label, listed(column, FIRST_NUMBERS)


@fields_of.register
def _(value: dict):
    for key, part in value.items():
        for name, numbers in fields_of(part):
            yield (str(key) if name == "value" else f"{key}.{name}"), numbers


def listed(values, first):
    """Return numbers as a list, after the first ones only the sum of all."""
    values = np.asarray(values, dtype=float).ravel()
    if values.size <= first:
        return values.tolist()
    return [*values[:first].tolist(), float(np.nansum(values))]


def file_of(name):
    """Return the file that has an entry."""
    return NUMBERS / f"{name.partition('/')[0]}.json.gz"


@functools.cache
def frozen(path):
    """Return the frozen fields of the entries of a file."""
    return json.loads(gzip.decompress(path.read_bytes()))


def store(numbers):
    """Write entries into their files, beside the others that these have."""
    for path in {file_of(name) for name in numbers}:
        kept = dict(frozen(path)) if path.exists() else {}
        kept |= {n: fields for n, fields in numbers.items() if file_of(n) == path}
        lines = (f"{json.dumps(n)}:{json.dumps(kept[n])}" for n in sorted(kept))
        text = "{" + ",\n".join(lines) + "}"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def main(patterns):
    """Compute and store the entries whose names match one of the patterns."""
    chosen = {
        name: compute
        for name, compute in entries().items()
        if not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)
    }
    if not patterns:
        for path in NUMBERS.glob("*.json.gz"):
            path.unlink()
    store({name: computed(name, compute) for name, compute in chosen.items()})
    sys.stdout.write(f"{len(chosen)} entries\n")


if __name__ == "__main__":
    main(sys.argv[1:])
