"""What the tests of curves share: parts that add up, and weights as importance."""

import operator

import numpy as np
import pytest

from skrankfair.inference import (
    marginal_outcome_test,
    predictive_parity_test,
    score_order_test,
)
from tests.inference.test_predictive_parity import FIXED, GRID, PAPER, rows

RESTS = {"contrasts": "rest"}
AT = {"threshold": 0.4, "bandwidth": 0.4}
PARITY = [FIXED, {**FIXED, **PAPER}, {**FIXED, **RESTS}, {**FIXED, **PAPER, **RESTS}]
TESTS = [
    *((predictive_parity_test, options) for options in PARITY),
    (marginal_outcome_test, AT),
]
pytestmark = pytest.mark.filterwarnings("ignore:.*'nadaraya_watson' rejects")


def of_rows(test, columns, part=slice(None), **options):
    """Return a test of some of the rows."""
    y, s, group, cluster = (column[part] for column in columns)
    return test(y, s, sensitive_features=group, cluster=cluster, **options)


@pytest.mark.filterwarnings("ignore:predictive_parity_test is undefined")
@pytest.mark.filterwarnings("ignore:The marginal outcome is undefined")
@pytest.mark.parametrize(("test", "options"), TESTS)
def test_parts_are_the_whole(test, options):
    columns = rows(n_clusters=240)
    _, _, group, cluster = columns
    keep = (group != "c") | (cluster >= 120)  # the first parts lack "c"
    columns = [column[keep] for column in columns]
    cluster = columns[-1]
    whole = of_rows(test, columns, **options)
    parts = [cluster < 60, (cluster >= 60) & (cluster < 120), cluster >= 120]
    total = sum(of_rows(test, columns, part, **options) for part in parts)
    assert total.contrasts == whole.contrasts
    assert total.n_clusters == whole.n_clusters
    both = (
        ("curves", "difference_standard_error", "bars")
        if test is predictive_parity_test
        else ("outcomes", "standard_errors", "effective_clusters")
    )
    for name in ("difference", "df", "standard_error", *both):
        one, other = getattr(total, name), getattr(whole, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=name)
    assert total.pvalue == pytest.approx(whole.pvalue, abs=1e-3)
    if test is marginal_outcome_test:
        above = whole.inframarginal.estimate
        np.testing.assert_allclose(total.inframarginal.estimate, above)


@pytest.mark.parametrize(
    ("test", "options", "change"),
    [
        (predictive_parity_test, FIXED, {"bandwidth": 0.3}),
        (predictive_parity_test, FIXED, {"grid": GRID[1:]}),
        (predictive_parity_test, FIXED, {"kernel": "tricube"}),
        (marginal_outcome_test, AT, {"bandwidth": "mse"}),
    ],
)
def test_only_what_is_alike_adds_up(test, options, change):
    columns = rows(n_clusters=200, labels="ab")
    results = [of_rows(test, columns, **{**options, **c}) for c in ({}, change)]
    with pytest.raises(ValueError, match="same grid or threshold, bandwidth"):
        operator.add(*results)


@pytest.mark.parametrize(
    ("test", "options", "name"),
    [
        (predictive_parity_test, FIXED, "band"),
        (predictive_parity_test, FIXED, "curve_band"),
        (marginal_outcome_test, AT, "confidence_interval"),
        (marginal_outcome_test, AT, "outcome_interval"),
    ],
)
def test_bad_levels_and_kinds(test, options, name):
    interval = getattr(of_rows(test, rows(n_clusters=200), **options), name)
    with pytest.raises(ValueError, match="confidence_level"):
        interval(1.5)
    if test is predictive_parity_test:
        with pytest.raises(ValueError, match="kind must be one of"):
            interval(kind="both")


CURVES = (predictive_parity_test, marginal_outcome_test)
BAD = {
    (*CURVES, score_order_test): [
        ("y_true", None),
        ("y_true", [0, np.inf, 1, 0]),
        ("y_score", [0.1, np.nan, 0.6, 0.7]),
        ("sensitive_features", None),
        ("sensitive_features", ["a", "b", None, "a"]),
        ("cluster", [1, 2, None, 3]),
        ("cluster_weight", "user"),
        ("sample_weight", [0, 0, 0, 0]),
        ("n_resamples", 0),
        ("random_state", "seed"),
    ],
    CURVES: [
        ("bandwidth", 0),
        ("bandwidth", "silverman"),
        ("kernel", "cosine"),
        ("kernel", "flat_top"),
        ("correction", "sidak"),
        ("reference", "z"),
        ("confidence_level", 95),
    ],
    (predictive_parity_test,): [
        ("contrasts", "all"),
        ("curve", "loess"),
        ("grid", []),
        ("grid", [np.inf]),
        ("y_score must have a finite spread", {"y_score": [0.5] * 4}),
        ("reference must be None", {"contrasts": "rest", "reference": "a"}),
    ],
    (marginal_outcome_test,): [
        ("threshold", np.nan),
        ("threshold", None),
        ("threshold", 5.0),
        ("boundary", "line"),
        ("favorable", "good"),
        ("y_true", [0, np.nan, 1, 0]),
        ("y_score.* differ by at most 0", {"y_score": [0.5] * 4, "favorable": "low"}),
    ],
    (score_order_test,): [("n_bins", 0), ("n_bins", 21), ("y_true", [0, np.nan, 1, 1])],
}


@pytest.mark.parametrize(
    ("test", "name", "value"),
    [(test, *bad) for tests, some in BAD.items() for test in tests for bad in some],
)
def test_bad_input_is_named(test, name, value):
    columns = {"y_true": [0, 0, 1, 1], "y_score": [0.1, 0.5, 0.6, 0.7]}
    columns["sensitive_features"] = list("abab")
    if test is marginal_outcome_test:
        columns["threshold"] = 0.5
    changes = value if isinstance(value, dict) else {name: value}
    with pytest.raises(ValueError, match=name):
        test(**{**columns, **changes})
