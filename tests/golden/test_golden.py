"""The frozen numbers of everything public are still the same."""

import numpy as np
import pytest

from tests.golden.freeze import NUMBERS, computed, entries, file_of, frozen

RELATIVE = 1e-12
#: Degrees of freedom are ratios of variances of variances, and ends of intervals follow
#: them: processors that sum in another order agree in fewer digits.
OF_SPREAD, RATIO = ("df", "low", "high", "pvalue", "pvalues"), 1e-9
#: What is found by iteration, or is a quantile of resamples of the difference of two
#: nearly equal curves, keeps fewer digits.
ITERATED, OF_ITERATED = ("detectable", "required", "band"), 1e-9
#: A band of curves of a nearly rank-deficient covariance, whose roots rounding changes.
DRAWN, OF_DRAWN = "curve_band", 1e-6
ENTRIES = entries()
PATHS = sorted(NUMBERS.glob("*.json.gz"))


#: Data sets that are always looked at; others repeat the proof on more data.
ROOMS = ("designs", "parts", "scores", "parity", "marginal", "smoothing")
ALWAYS = (
    *("clusters", "equal10 of", "users of 2/", "overlap of", "weights of", "list50_20"),
    *("list200_10 of 20", "straight", "rare of 2/", "small of 2/"),
)
#: Of these only a few: of clusters with weights, of equal queries, and of one list.
RARE = ("cases/", "steps/", "parts-compact/")
BUT = ("cases/weights", "steps/equal10 of 2", "steps/list50_20 of 2")


def data_sets():
    """Return the first two parts of the names, by which entries are tested together."""
    for data in sorted({name.rpartition("/")[0] for name in ENTRIES}):
        label, _, columns = data.partition("/")
        rarely = label.startswith(ROOMS) and not f"{columns}/".startswith(ALWAYS)
        rarely |= data.startswith(RARE) and data not in BUT
        yield pytest.param(data, marks=pytest.mark.simulation if rarely else ())


def test_names_are_those_of_the_files():
    kept = {name: path for path in PATHS for name in frozen(path)}
    assert kept == {name: file_of(name) for name in ENTRIES}


@pytest.mark.parametrize("data", list(data_sets()))
def test_numbers_are_those_of_before(data):
    names = [name for name in ENTRIES if name.rpartition("/")[0] == data]
    differences = {}
    for name in names:
        expected = frozen(file_of(name))[name]
        differences |= largest_differences(
            name, computed(name, ENTRIES[name]), expected
        )
    lines = [f"{name}: {text}" for name, text in differences.items()]
    assert not lines, f"{len(lines)} of {len(names)} entries:\n" + "\n".join(lines)


#: Fields on one scale, that of an estimate; p-values are on that of one.
OF_ESTIMATES = ("estimate", "standard_error", "low", "high", "ci_low", "ci_high")


def scale_of(field, fields):
    """Return the size of the largest number of the scale of a field."""
    prefix, dot, leaf = field.rpartition(".")
    if "pvalue" in leaf:
        return 1.0
    alike = OF_ESTIMATES if leaf in OF_ESTIMATES else (leaf,)
    numbers = [x for name in alike for x in fields.get(prefix + dot + name, [])]
    return max((abs(x) for x in numbers if np.isfinite(x)), default=0.0)


def largest_differences(name, actual, expected):
    """Return what differs of an entry, and by how much, relative to the tolerance.

    Numbers may cancel, so that the error of rounding is that of the largest of them.
    """
    if actual.keys() != expected.keys():
        both = sorted(actual.keys() ^ expected.keys())
        return {name: f"fields that only one of both has: {both}"}
    found = {}
    for field, numbers in expected.items():
        one, two = np.array(actual[field]), np.array(numbers)
        if one.shape != two.shape or not np.array_equal(np.isnan(one), np.isnan(two)):
            found[field] = f"{one.tolist()} instead of {two.tolist()}"
            continue
        iterated = any(part in f"{name}.{field}" for part in ITERATED)
        follows = field.rpartition(".")[2].endswith(OF_SPREAD)
        rtol = OF_ITERATED if iterated else RATIO if follows else RELATIVE
        rtol = OF_DRAWN if DRAWN in field else rtol
        atol = rtol * scale_of(field, expected)
        if not np.allclose(one, two, rtol=rtol, atol=atol, equal_nan=True):
            with np.errstate(all="ignore"):
                relative = np.nanmax(np.abs(one - two) / np.abs(two))
            found[field] = f"by {relative:.1e}"
    if not found:
        return {}
    return {name: "; ".join(f"{field} {text}" for field, text in found.items())}
