"""Bad input raises a ValueError that names the argument, the rule and what came."""

import datetime as dt
import decimal
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skrankfair._inputs.validation import as_numbers, check_number
from skrankfair.metrics import matched_pair_calibration, ndcg, pairwise_accuracy
from tests.calls import (
    ENGAGEMENT,
    GOOD,
    INF,
    LABELS,
    METRICS,
    NAN,
    NUMBERS,
    WITH_VARIANCE,
    call,
    columns_of,
    each_by_group,
    each_metric,
    each_of,
    each_of_queries,
    every,
    of_one_metric,
    replaced,
)
from tests.seeds import one_in


def test_good_input_is_good():
    for metric in METRICS:
        assert np.isfinite(call(metric).estimate).all()


# Numbers


@every(*NUMBERS)
@one_in(
    3,
    at_once=5,
    value={str(value): value for value in (NAN, INF, -INF, None, pd.NA)},
    convert={"list": list, "array": np.array, "series": pd.Series},
)
def test_missing_or_infinite_number(metric, name, value, convert):
    said = str(value) if np.isscalar(value) else "nan"
    bad = convert(replaced([1.0] * 6, value))
    message = rf"^{name} must be finite \(no NaN, no infinity\); got {said} in row 2 "
    with pytest.raises(ValueError, match=message + r"\(1 such value\)"):
        call(metric, **{name: bad})
    bad = convert(replaced(replaced([1.0] * 6, value), value, row=5))
    with pytest.raises(ValueError, match=message + r"\(2 such values\)"):
        call(metric, **{name: bad})


NOT_FINITE = (
    pd.array([1, 2, None, 4, 5, 6], dtype="Int64"),
    pl.Series([1, 2, None, 4, 5, 6]),
    pa.chunked_array([[1, 2, None], [4, 5, 6]]),
    [decimal.Decimal(1), 2, decimal.Decimal("nan"), 4, 5, 6],
)
NOT_NUMERIC = (
    (["one", "2", "3", "4", "5", "6"], "one"),
    (pd.Series([1, "two", 3, 4, 5, 6]), "two"),
    (pd.Series(list("abcdef"), dtype="category"), "'a'"),
    (pl.Series(list("abcdef")), "'a'"),
    (np.array([b"x"] * 6), "b'x'"),
    ([1, 2, 3j, 4, 5, 6], "j"),
    (np.array(["2020-01-01"] * 6, dtype="M8[D]"), "2020-01-01"),
    (np.array([1] * 6, dtype="m8[s]"), "timedelta64"),
    ([dt.datetime(2020, 1, 1)] * 6, "2020, 1, 1"),
    ([{"a": 1}] * 6, "'a': 1"),
    (np.zeros(6, dtype=[("a", int)]), "int|i8"),
    (pl.Series([[1], [2], [3], [4], [5], [6]]), "1"),
)
NOT_A_COLUMN = (
    (np.ones((6, 1, 1)), r"1-dimensional.*\(6, 1, 1\)"),
    (3, r"1-dimensional.*\(\)"),
    ("abcdef", r"1-dimensional.*\(\)"),
    ((i for i in range(6)), r"1-dimensional.*\(\)"),
    ([[1], [2, 3], [4], [5], [6], [7]], "a 1-dimensional.*inhomogeneous"),
    ([], "at least one row; it is empty"),
    (pl.Series([], dtype=pl.Int64), "at least one row; it is empty"),
)


@of_one_metric(*NUMBERS, "qid", "cluster")
def test_not_a_column(metric, name):
    wrong = [(bad, f"(be|have) {said}") for bad, said in NOT_A_COLUMN]
    if name in NUMBERS:
        two = [kind(np.ones((6, 2))) for kind in (np.array, pd.DataFrame, pl.DataFrame)]
        wrong += [(bad, r"be 1-dimensional.*\(6, 2\)") for bad in two]
        wrong += [(bad, "be finite.*got nan in row 2") for bad in NOT_FINITE]
        wrong += [(bad, f"be numeric; got .*({said})") for bad, said in NOT_NUMERIC]
    else:
        wrong += [(np.ones((6, 1)), r"be 1-dimensional.*\(6, 1\)")]
    for bad, message in wrong:
        with pytest.raises(ValueError, match=f"^{name} must {message}"):
            call(metric, **{name: bad})


@every(*NUMBERS, *LABELS)
@pytest.mark.parametrize("length", [1, 5, 7])
def test_lengths_differ(metric, name, length):
    message = f"^All columns must have the same number of rows; got .*{name}: {length}"
    with pytest.raises(ValueError, match=message) as error:
        call(metric, **{name: [1] * length})
    others = [other for other in columns_of(metric) if other in GOOD and other != name]
    for other in others:
        assert f"{other}: 6" in str(error.value)


@each_metric
@pytest.mark.parametrize("name", ["y_true", "y_score"])
def test_needed_column_is_missing(metric, name):
    if name in columns_of(metric):
        with pytest.raises(ValueError, match=rf"^{name} must be given; got None\.$"):
            call(metric, **{name: None})


@each_by_group
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
def test_no_sensitive_features_are_one_group(metric):
    everyone = call(metric, sensitive_features=None)
    labelled = call(metric, sensitive_features=["all"] * 6)
    assert everyone.groups == labelled.groups == ("all",)
    for name in ("estimate", "standard_error", "support"):
        np.testing.assert_array_equal(getattr(everyone, name), getattr(labelled, name))


def test_as_numbers():
    for values in ([1, 2.5, True], (1, 2.5, 1), pd.Series([1, 2.5, 1], dtype=object)):
        np.testing.assert_array_equal(as_numbers(values, "x"), [1, 2.5, 1])
        assert as_numbers(values, "x").dtype == np.float64
    np.testing.assert_array_equal(as_numbers([1, NAN], "x", allow_nan=True), [1, NAN])
    with pytest.raises(ValueError, match="^x must be finite or NaN; got inf in row 1"):
        as_numbers([NAN, INF], "x", allow_nan=True)


def test_numbers_of_numpy_are_numbers():
    check_number(np.float32(0.5), "x", 0, 1)
    check_number(np.int8(1), "x", 0, 1, integer=True)
    for wrong, options in ((0, {"inclusive": (False, True)}), (np.bool_(1), {})):
        with pytest.raises(ValueError, match=r"^x must be a number in .*1\]; got"):
            check_number(wrong, "x", 0, 1, **options)


# Labels


NO_LABEL = (
    (["a", "b", None, "a", "b", "b"], "None"),
    (["a", "b", NAN, "a", "b", "b"], "nan"),
    (np.array([1.0, 2.0, NAN, 1.0, 2.0, 2.0]), "nan"),
    (["a", "b", pd.NA, "a", "b", "b"], "<NA>"),
    (pd.Series(["a", "b", None, "a", "b", "b"], dtype="category"), "nan"),
    (pd.Series([1, 2, None, 1, 2, 2], dtype="Int64"), "nan|<NA>"),
    (pd.Series([True, False, None] * 2, dtype="boolean"), "<NA>|None"),
    (pd.Series(pd.to_datetime(["2020", "2021", None] * 2)), "NaT"),
    (pl.Series(["a", "b", None, "a", "b", "b"]), "None"),
    (pl.Series([1, 2, None, 1, 2, 2]), "nan"),
    (pa.chunked_array([[1, 2, None], [1, 2, 2]]), "nan"),
    (pa.array(["a", "b", None] * 2).dictionary_encode(), "None|nan"),
)
UNHASHABLE = (
    pd.Series([[1], [2], [1], [2], [1], [2]]),
    [{"a": 1}] * 6,
    [{1}] * 6,
    pl.Series([[1], [2], [1], [2], [1], [2]]),
)


@of_one_metric(*LABELS)
def test_not_a_label(metric, name):
    wrong = [(bad, "hold hashable labels") for bad in UNHASHABLE]
    missing = "not have missing labels; row 2 is"
    wrong += [(bad, f"{missing} .*({said})") for bad, said in NO_LABEL]
    for bad, message in wrong:
        with pytest.raises(ValueError, match=f"^{name} must {message}"):
            call(metric, **{name: bad})


NOT_GROUPS = (
    (np.zeros((6, 0)), "at least one column; it has none"),
    (pd.DataFrame(index=range(6)), "at least one column; it has none"),
    (pd.DataFrame({"a": []}), "at least one row; it is empty"),
    (np.zeros((0, 2)), "at least one row; it is empty"),
    (np.zeros((0, 2), dtype=bool), "at least one row; it is empty"),
    (np.zeros((6, 2, 2)), r"1-dimensional.*\(6, 2, 2\)"),
    ("fmfmfm", r"1-dimensional.*\(\)"),
    (
        pd.DataFrame(np.ones((6, 2), dtype=bool), columns=["x", "x"]),
        r"distinct column names; got .*'x', 'x'",
    ),
    (pd.DataFrame({"a": ["x", None] * 3, "b": 1}), "not have missing labels; row 1"),
    (
        pd.DataFrame({"a": pd.array([True, None] * 3, dtype="boolean")}),
        "not have missing labels; row 1",
    ),
)


@each_by_group
def test_wrong_frame_of_groups(metric):
    for bad, said in NOT_GROUPS:
        message = f"^sensitive_features must (be|have )?.*{said}"
        with pytest.raises(ValueError, match=message):
            call(metric, sensitive_features=bad)


# Weights and clusters


@each_metric
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1, -2, -2, -2], r"must not be negative; got -2\.0 in row 3\.$"),
        ([0] * 6, r"must have a positive value; all are zero\.$"),
    ],
)
def test_wrong_weights(metric, weight, message):
    with pytest.raises(ValueError, match=f"^sample_weight {message}"):
        call(metric, sample_weight=weight)


@each_of_queries
def test_weight_varies_within_a_query(metric):
    message = (
        r"^sample_weight must be constant within a query .*; "
        r"row ([34] has 2\.0|5 has 3\.0) where its query has (2|3)\.0\.$"
    )
    # Rows of weight 0 are left out, but they count when a row is named.
    for first in (1, 0):
        with pytest.raises(ValueError, match=message):
            call(metric, sample_weight=[first, first, first, 2, 2, 3])
    # One list is one query.
    with pytest.raises(ValueError, match="^sample_weight must be constant"):
        call(metric, qid=None, sample_weight=[1, 1, 1, 2, 2, 2])


@each_of_queries
def test_query_in_two_clusters(metric):
    with pytest.raises(ValueError, match=r"^cluster must be constant within a query"):
        call(metric, cluster=["u", "u", "u", "v", "v", "w"])


# Options


NOT_A_CHOICE = ("ALL", "", None, 3, b"all", ["all"], np.array(["all", "x"]), {}, NAN)
NOT_A_COUNT = (0, -1, 2.0, NAN, INF, "3", [3], True, np.array([3]), 1j, {})


NO_EPSILON = {"epsilon": None}
NOT_A_SHARE = (0, 0.0, -0.1, 1.01, NAN, INF, "0.1", [0.1], True, 1j, {})
NOT_A_DISTANCE = (-1e-9, -1, NAN, -INF, "0.1", [0.1], True, 1j, np.array([0.1]))
NO_BINS = (
    *(0, -3, 2.5, NAN, "4", None, True, {}, 1j, ["a", "b"], [0, None], np.eye(2)),
    *([], [1.0], [0, 0, 1], [0, NAN, 1], [-INF, -INF, 0], [[0, 1], [2]]),
)
OUT_OF_RANGE = [
    (pairwise_accuracy, "comparison", NOT_A_CHOICE, {}),
    (matched_pair_calibration, "direction", NOT_A_CHOICE, {}),
    (ndcg, "gain", NOT_A_CHOICE, {}),
    *((m, n, NOT_A_CHOICE, {}) for m in WITH_VARIANCE for n in ("average", "variance")),
    (ndcg, "k", NOT_A_COUNT, {}),
    (matched_pair_calibration, "n_pairs", NOT_A_COUNT, NO_EPSILON),
    (matched_pair_calibration, "quantile", NOT_A_SHARE, NO_EPSILON),
    (matched_pair_calibration, "epsilon", NOT_A_DISTANCE, {}),
    (pairwise_accuracy, "bins", NO_BINS, ENGAGEMENT),
]


@pytest.mark.parametrize(("metric", "name", "values", "extra"), OUT_OF_RANGE)
def test_out_of_range(metric, name, values, extra):
    rule, end = ("one of '.*", r"\.") if values is NOT_A_CHOICE else (".*", r"\.?$")
    for value in values:
        message = rf"^{name} must be {rule}; got {re.escape(repr(value))}{end}"
        with pytest.raises(ValueError, match=message):
            call(metric, **{**extra, name: value})


CLUSTERS = {"cluster": ["u", "u", "v", "v", "w", "w"]}
LATER = {"engagement": [0.1, 0.1, 0.1, NAN, 0.4, 0.5]}
REFUSED = {
    pairwise_accuracy: [
        (
            {**ENGAGEMENT, "bins": [0, 0.2, 0.3]},
            r"bins must cover engagement; \d preferred items lie outside \[0, 0.3\]",
        ),
        ({"engagement": [0.1] * 5}, "All columns .* engagement: 5"),
        ({"engagement": [INF] * 6}, "engagement must be finite or NaN; got inf"),
        (
            {"engagement": [0.1, NAN, NAN, 0.3, 0.4, NAN]},
            r"engagement must be known.*NaN in row 1\.$",
        ),
        # The row is the caller's, also where others are left out.
        (
            {**LATER, "sample_weight": [0, 0, 0, 1, 1, 1]},
            r"engagement must be known.*NaN in row 3\.$",
        ),
    ],
    matched_pair_calibration: [
        (
            {"epsilon": 1.0, "n_pairs": 3, "quantile": 0.1},
            "Only one of epsilon, n_pairs and quantile can be given; got epsilon and n",
        ),
        ({"epsilon": {"f": 1.0}}, r"epsilon must name every group; it has no \['m'\]"),
        (
            {"epsilon": {"f": 1.0, "m": -1}},
            r"epsilon\['m'\] must be a number in .*; got -1\.$",
        ),
    ],
    ndcg: [
        ({"y_true": [1, 2, -1, 0, 0, 0]}, r"y_true must not be neg.*got -1\.0\.$"),
        (
            {"y_true": [1, 2, 2000, 0, 0, 0], "gain": "exponential"},
            "gain='exponential' overflows; the largest y_true is 2000",
        ),
    ],
}
OF_UNITS = [
    ({**CLUSTERS, "qid": None, "variance": "cluster"}, "cluster must be"),
    ({**CLUSTERS, "variance": "item"}, "variance='item' takes cluster="),
    ({"average": "queries", "variance": "item"}, "average='queries' n"),
]


@each_of(dict.fromkeys((*REFUSED, *WITH_VARIANCE)))
def test_what_a_metric_refuses(metric):
    of_units = OF_UNITS if metric in WITH_VARIANCE else []
    for options, message in REFUSED.get(metric, []) + of_units:
        with pytest.raises(ValueError, match=f"^{message}"):
            call(metric, **options)


def test_edges_of_one_value_are_one_stratum():
    # As the quantiles of engagement are where nearly all of it is one value.
    same = {**ENGAGEMENT, "engagement": np.full(len(ENGAGEMENT["engagement"]), 2.0)}
    whole, edges = (call(pairwise_accuracy, bins=b, **same) for b in (1, [2, 2]))
    np.testing.assert_array_equal(edges.estimate, whole.estimate)
    np.testing.assert_array_equal(whole.estimate, call(pairwise_accuracy).estimate)
    with pytest.raises(ValueError, match=r"^bins must cover engagement; \d"):
        call(pairwise_accuracy, bins=[0, 0], **same)
    infinite = call(pairwise_accuracy, bins=[-INF, INF], **ENGAGEMENT)
    assert infinite.first_pass["engagement_edges"] == (-INF, INF)
