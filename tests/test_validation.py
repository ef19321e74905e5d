"""Bad input raises a ValueError that names the argument, the rule and what came."""

import datetime as dt
import decimal
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skrankfair._validation import (
    as_groups,
    as_numbers,
    as_weights,
    check_choice,
    check_number,
    encode,
    sort_labels,
)
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)

from .reference.matched_pairs import matched_pair_calibration as naive_mpc

NAN, INF = float("nan"), float("inf")
GOOD = {
    "y_true": [2.0, 1.0, 0.0, 2.0, 1.0, 0.0],
    "y_score": [1.0, 0.5, 0.25, 0.25, 0.5, 1.0],
    "sensitive_features": ["f", "m", "f", "m", "f", "m"],
    "qid": [7, 7, 7, 8, 8, 8],
}
EPSILON = {"epsilon": 1.0}
OPTIONS = {
    pairwise_accuracy: {},
    pairwise_exposure: {},
    pairwise_preference: {},
    matched_pair_calibration: EPSILON,
    ndcg: {},
}
METRICS = tuple(OPTIONS)
BY_GROUP = METRICS[:-1]


def columns_of(metric):
    """Names of the columns that a metric reads."""
    names = ["y_true", "y_score", "sensitive_features", "qid", "cluster"]
    unused = {
        pairwise_exposure: ["y_true"],
        pairwise_preference: ["y_score"],
        ndcg: ["sensitive_features"],
    }
    names = [name for name in names if name not in unused.get(metric, [])]
    return [*names, "sample_weight"]


def call(metric, **changed):
    good = {name: GOOD[name] for name in columns_of(metric) if name in GOOD}
    if metric is pairwise_exposure:
        good["y_true"] = None
    return metric(**{**good, **OPTIONS[metric], **changed})


def every(*kinds, metrics=METRICS):
    """Parametrize by every metric and each of its columns of these kinds."""
    pairs = [
        (metric, name)
        for metric in metrics
        for name in columns_of(metric)
        if name in kinds
    ]
    ids = [f"{metric.__name__}-{name}" for metric, name in pairs]
    return pytest.mark.parametrize(("metric", "name"), pairs, ids=ids)


def of_one_metric(*kinds):
    """Parametrize by columns that are read alike by all metrics."""
    return every(*kinds, metrics=[pairwise_accuracy])


each_metric = pytest.mark.parametrize(
    "metric", METRICS, ids=[metric.__name__ for metric in METRICS]
)
each_by_group = pytest.mark.parametrize(
    "metric", BY_GROUP, ids=[metric.__name__ for metric in BY_GROUP]
)
NUMBERS = ("y_true", "y_score", "sample_weight")
LABELS = ("sensitive_features", "qid", "cluster")


def replaced(values, value, row=2):
    return [*values[:row], value, *values[row + 1 :]]


def test_good_input_is_good():
    for metric in METRICS:
        assert np.isfinite(call(metric).estimate).all()


# Numbers


@every(*NUMBERS)
@pytest.mark.parametrize(
    ("value", "said"),
    [(NAN, "nan"), (INF, "inf"), (-INF, "-inf"), (None, "nan"), (pd.NA, "nan")],
    ids=str,
)
@pytest.mark.parametrize(
    "convert", [list, np.array, pd.Series], ids=lambda f: f.__name__
)
def test_missing_or_infinite_number(metric, name, value, said, convert):
    bad = convert(replaced([1.0] * 6, value))
    message = rf"^{name} must be finite \(no NaN, no infinity\); got {said} in row 2 "
    with pytest.raises(ValueError, match=message + r"\(1 such value\)"):
        call(metric, **{name: bad})
    bad = convert(replaced(replaced([1.0] * 6, value), value, row=5))
    with pytest.raises(ValueError, match=message + r"\(2 such values\)"):
        call(metric, **{name: bad})


@of_one_metric(*NUMBERS)
@pytest.mark.parametrize(
    "missing",
    [
        pd.array([1, 2, None, 4, 5, 6], dtype="Int64"),
        pd.Series([1, 2, None, 4, 5, 6], dtype="float64[pyarrow]"),
        pl.Series([1, 2, None, 4, 5, 6]),
        pl.Series([1.0, 2.0, NAN, 4.0, 5.0, 6.0]),
        pa.array([1, 2, None, 4, 5, 6]),
        pa.chunked_array([[1, 2, None], [4, 5, 6]]),
        [decimal.Decimal(1), 2, decimal.Decimal("nan"), 4, 5, 6],
    ],
    ids=["nullable", "arrow", "polars", "nan", "array", "chunked", "decimal"],
)
def test_missing_number_of_a_library(metric, name, missing):
    with pytest.raises(ValueError, match=f"^{name} must be finite.*got nan in row 2"):
        call(metric, **{name: missing})


@of_one_metric(*NUMBERS)
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["one", "2", "3", "4", "5", "6"], "one"),
        ([1, "two", 3, 4, 5, 6], "two"),
        (pd.Series(["1", "2", "3", "4", "5", "6"]), "'1'"),
        (pd.Series([1, "two", 3, 4, 5, 6]), "two"),
        (pd.Series(list("abcdef"), dtype="category"), "'a'"),
        (pl.Series(list("abcdef")), "'a'"),
        (pa.array(list("abcdef")), "'a'"),
        (np.array([b"x"] * 6), "b'x'"),
        (np.array([1j] * 6), "1j"),
        ([1, 2, 3j, 4, 5, 6], "j"),
        (np.array(["2020-01-01"] * 6, dtype="M8[D]"), "2020-01-01"),
        (pd.Series(pd.date_range("2020-01-01", periods=6)), "2020-01-01"),
        (pl.Series([dt.date(2020, 1, 1)] * 6), "2020-01-01"),
        (np.array([1] * 6, dtype="m8[s]"), "timedelta64"),
        ([dt.datetime(2020, 1, 1)] * 6, "2020, 1, 1"),
        ([{"a": 1}] * 6, "'a': 1"),
        (np.zeros(6, dtype=[("a", int)]), "int|i8"),
        (pl.Series([[1], [2], [3], [4], [5], [6]]), "1"),
    ],
    ids=str,
)
def test_not_a_number(metric, name, bad, said):
    with pytest.raises(ValueError, match=rf"^{name} must be numeric; got .*({said})"):
        call(metric, **{name: bad})


WRONG_SHAPES = {
    "2-D": (np.ones((6, 1)), "1-dimensional.*(6, 1)"),
    "list of lists": ([[1], [2], [3], [4], [5], [6]], "1-dimensional.*(6, 1)"),
    "frame": (pd.DataFrame({"a": [1] * 6}), "1-dimensional.*(6, 1)"),
    "polars frame": (pl.DataFrame({"a": [1] * 6}), "1-dimensional.*(6, 1)"),
    "arrow table": (pa.table({"a": [1] * 6}), "1-dimensional.*(6, 1)"),
    "3-D": (np.ones((6, 1, 1)), "1-dimensional.*(6, 1, 1)"),
    "number": (3, "1-dimensional.*()"),
    "text": ("abcdef", "1-dimensional.*()"),
    "set": ({1, 2, 3, 4, 5, 6}, "1-dimensional.*()"),
    "dict": ({"a": 1}, "1-dimensional.*()"),
    "generator": ((i for i in range(6)), "1-dimensional.*()"),
    "function": (len, "1-dimensional.*()"),
    "ragged": ([[1], [2, 3], [4], [5], [6], [7]], "a 1-dimensional.*inhomogeneous"),
    "empty list": ([], "at least one row; it is empty"),
    "empty array": (np.array([]), "at least one row; it is empty"),
    "empty series": (pd.Series([], dtype=float), "at least one row; it is empty"),
    "empty polars": (pl.Series([], dtype=pl.Int64), "at least one row; it is empty"),
}


@of_one_metric(*NUMBERS, "qid", "cluster")
@pytest.mark.parametrize(
    ("bad", "said"), WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys()
)
def test_not_a_column(metric, name, bad, said):
    said = said.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=f"^{name} must (be|have) {said}"):
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
@pytest.mark.parametrize("name", ["y_true", "y_score", "sensitive_features"])
def test_needed_column_is_missing(metric, name):
    if name in columns_of(metric):
        with pytest.raises(ValueError, match=rf"^{name} must be given; got None\.$"):
            call(metric, **{name: None})


@every(*NUMBERS)
def test_text_is_not_a_number(metric, name):
    with pytest.raises(ValueError, match=f"^{name} must be numeric; got .*three"):
        call(metric, **{name: ["three", 1, 2, 3, 4, 5]})


@every(*NUMBERS, "qid", "cluster")
def test_two_dimensions(metric, name):
    message = rf"^{name} must be 1-dimensional, one value a row; .*\(6, 2\)\.$"
    with pytest.raises(ValueError, match=message):
        call(metric, **{name: np.ones((6, 2))})


@every(*NUMBERS, *LABELS)
def test_empty(metric, name):
    message = rf"^{name} must have at least one row; it is empty\.$"
    with pytest.raises(ValueError, match=message):
        call(metric, **{name: []})


# Labels


@every(*LABELS)
@pytest.mark.parametrize("missing", [None, NAN, pd.NA], ids=str)
def test_no_label(metric, name, missing):
    message = rf"^{name} must not have missing labels; row 4 is {missing} \(1 such"
    bad = pd.Series(["a", "b", "a", "b", missing, "b"], dtype=object)
    with pytest.raises(ValueError, match=message):
        call(metric, **{name: bad})


@of_one_metric(*LABELS)
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["a", "b", None, "a", "b", "b"], "None"),
        (["a", "b", NAN, "a", "b", "b"], "nan"),
        (("a", "b", np.nan, "a", "b", "b"), "nan"),
        ([1, 2, None, 1, 2, 2], "None"),
        ([1.0, 2.0, NAN, 1.0, 2.0, 2.0], "nan"),
        (np.array([1.0, 2.0, NAN, 1.0, 2.0, 2.0]), "nan"),
        (np.array(["a", "b", NAN, "a", "b", "b"], dtype=object), "nan"),
        (["a", "b", pd.NA, "a", "b", "b"], "<NA>"),
        (pd.Series(["a", "b", None, "a", "b", "b"]), "nan|None|<NA>"),
        (pd.Series(["a", "b", None, "a", "b", "b"], dtype="category"), "nan"),
        (pd.Series([1, 2, None, 1, 2, 2], dtype="Int64"), "nan|<NA>"),
        (pd.Series([True, False, None] * 2, dtype="boolean"), "<NA>|None"),
        (pd.Series(pd.to_datetime(["2020", "2021", None] * 2)), "NaT"),
        (pl.Series(["a", "b", None, "a", "b", "b"]), "None"),
        (pl.Series([1, 2, None, 1, 2, 2]), "nan"),
        (pl.Series([True, False, None] * 2), "None"),
        (pa.array(["a", "b", None, "a", "b", "b"]), "None"),
        (pa.chunked_array([[1, 2, None], [1, 2, 2]]), "nan"),
        (pa.array(["a", "b", None] * 2).dictionary_encode(), "None|nan"),
    ],
)
def test_missing_label(metric, name, bad, said):
    message = rf"^{name} must not have missing labels; row 2 is .*({said})"
    with pytest.raises(ValueError, match=message):
        call(metric, **{name: bad})


@of_one_metric(*LABELS)
@pytest.mark.parametrize(
    "bad",
    [
        pd.Series([[1], [2], [1], [2], [1], [2]]),
        [{"a": 1}] * 6,
        [{1}] * 6,
        pl.Series([[1], [2], [1], [2], [1], [2]]),
    ],
    ids=["lists", "dicts", "sets", "polars lists"],
)
def test_unhashable_label(metric, name, bad):
    with pytest.raises(ValueError, match=f"^{name} must hold hashable labels"):
        call(metric, **{name: bad})


@each_by_group
@pytest.mark.parametrize(
    ("bad", "said"),
    [
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
        (
            pd.DataFrame({"a": ["x", None] * 3, "b": 1}),
            "not have missing labels; row 1",
        ),
        (
            pd.DataFrame({"a": pd.array([True, None] * 3, dtype="boolean")}),
            "not have missing labels; row 1",
        ),
    ],
)
def test_wrong_frame_of_groups(metric, bad, said):
    with pytest.raises(
        ValueError, match=f"^sensitive_features must (be|have )?.*{said}"
    ):
        call(metric, sensitive_features=bad)


def test_crossed_columns_may_have_one_name():
    frame = pd.DataFrame({0: list("ababab"), 1: list("xxyyxy")})
    frame.columns = ["group", "group"]
    expected = as_groups(frame.to_numpy())
    assert as_groups(frame).labels == expected.labels


# Weights and clusters


@each_metric
def test_negative_weight(metric):
    message = r"^sample_weight must not be negative; got -2\.0 in row 3\.$"
    with pytest.raises(ValueError, match=message):
        call(metric, sample_weight=[1, 1, 1, -2, -2, -2])


@each_metric
def test_no_positive_weight(metric):
    message = r"^sample_weight must have a positive value; all are 0\.$"
    with pytest.raises(ValueError, match=message):
        call(metric, sample_weight=[0] * 6)


@each_metric
def test_weight_varies_within_a_query(metric):
    message = (
        r"^sample_weight must be constant within a query .*; "
        r"row [345] has (2|3)\.0 where its query has (2|3)\.0\.$"
    )
    with pytest.raises(ValueError, match=message):
        call(metric, sample_weight=[1, 1, 1, 2, 2, 3])
    # One list is one query.
    with pytest.raises(ValueError, match="^sample_weight must be constant"):
        call(metric, qid=None, sample_weight=[1, 1, 1, 2, 2, 2])


@each_metric
def test_rows_are_those_of_the_caller(metric):
    # Rows of weight 0 are left out, but they count when a row is named.
    with pytest.raises(ValueError, match=r"row ([345]) has") as error:
        call(metric, sample_weight=[0, 0, 0, 2, 2, 3])
    row, weight = re.search(r"row (\d) has (\d)", str(error.value)).groups()
    assert weight == str([0, 0, 0, 2, 2, 3][int(row)])


@each_metric
def test_query_in_two_clusters(metric):
    with pytest.raises(ValueError, match=r"^cluster must be constant within a query"):
        call(metric, cluster=["u", "u", "u", "v", "v", "w"])


def test_clusters_of_items_need_one_list_and_items():
    split = ["u", "u", "v", "v", "w", "w"]
    for metric in BY_GROUP:
        with pytest.raises(ValueError, match="^cluster must be constant"):
            call(metric, qid=None, cluster=split, variance="cluster")
        with pytest.raises(ValueError, match="^variance='item' takes cluster="):
            call(metric, cluster=split, variance="item")
        with pytest.raises(ValueError, match="^average='queries' needs variance="):
            call(metric, average="queries", variance="item")


# Options


def option(metric, name, *values, extra=None):
    return [
        pytest.param(metric, name, value, extra or {}, id=f"{name}-{value!r:.30}")
        for value in values
    ]


NOT_A_CHOICE = ("ALL", "", None, 3, b"all", ["all"], np.array(["all", "x"]), {}, NAN)
NOT_A_COUNT = (0, -1, 2.0, NAN, INF, "3", [3], True, np.array([3]), 1j, {})
ENGAGEMENT = {"engagement": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}


@pytest.mark.parametrize(
    ("metric", "name", "value", "extra"),
    [
        *option(pairwise_accuracy, "comparison", *NOT_A_CHOICE),
        *option(pairwise_accuracy, "average", *NOT_A_CHOICE),
        *option(pairwise_accuracy, "variance", *NOT_A_CHOICE),
        *option(pairwise_exposure, "average", *NOT_A_CHOICE),
        *option(pairwise_exposure, "variance", *NOT_A_CHOICE),
        *option(pairwise_preference, "average", *NOT_A_CHOICE),
        *option(pairwise_preference, "variance", *NOT_A_CHOICE),
        *option(matched_pair_calibration, "direction", *NOT_A_CHOICE),
        *option(matched_pair_calibration, "average", *NOT_A_CHOICE),
        *option(matched_pair_calibration, "variance", *NOT_A_CHOICE),
        *option(ndcg, "gain", *NOT_A_CHOICE),
    ],
)
def test_unknown_choice(metric, name, value, extra):
    message = rf"^{name} must be one of '.*; got {re.escape(repr(value))}\.$"
    with pytest.raises(ValueError, match=message):
        call(metric, **{name: value}, **extra)


@pytest.mark.parametrize(
    ("metric", "name", "value", "extra"),
    [
        *option(ndcg, "k", *NOT_A_COUNT),
        *option(
            matched_pair_calibration, "n_pairs", *NOT_A_COUNT, extra={"epsilon": None}
        ),
        *option(
            matched_pair_calibration,
            "quantile",
            *(0, 0.0, -0.1, 1.01, NAN, INF, "0.1", [0.1], True, 1j, {}),
            extra={"epsilon": None},
        ),
        *option(
            matched_pair_calibration,
            "epsilon",
            *(-1e-9, -1, NAN, -INF, "0.1", [0.1], True, 1j, np.array([0.1])),
        ),
        *option(
            pairwise_accuracy,
            "bins",
            *(0, -3, 2.5, NAN, "4", None, True, {}, 1j),
            extra=ENGAGEMENT,
        ),
    ],
)
def test_number_out_of_range(metric, name, value, extra):
    message = rf"^{name} must be .*; got {re.escape(repr(value))}\.$"
    with pytest.raises(ValueError, match=message):
        call(metric, **{**extra, name: value})


@pytest.mark.parametrize(
    "bins",
    [
        [],
        [1.0],
        [0, 0],
        [1, 0],
        [0, NAN, 1],
        [0, INF, INF],
        [-INF, -INF, 0],
        ["a", "b"],
        [0, None],
        [[0, 1], [2, 3]],
        [[0, 1], [2]],
        [0, 1j],
        np.array([[0, 1]]),
    ],
    ids=str,
)
def test_wrong_edges(bins):
    message = r"^bins must be a number of bins or at least two increasing edges; got "
    with pytest.raises(ValueError, match=message + re.escape(repr(bins))):
        call(pairwise_accuracy, bins=bins, **ENGAGEMENT)


def test_edges_that_do_not_cover_the_engagement():
    message = r"^bins must cover engagement; \d preferred items lie outside \[0, 0.3\]"
    with pytest.raises(ValueError, match=message):
        call(pairwise_accuracy, bins=[0, 0.2, 0.3], **ENGAGEMENT)
    infinite = call(pairwise_accuracy, bins=[-INF, INF], **ENGAGEMENT)
    assert infinite.first_pass["engagement_edges"] == (-INF, INF)


@pytest.mark.parametrize("bins", [1, 2, 4, 100])
def test_constant_engagement_is_one_stratum(bins):
    plain = call(pairwise_accuracy)
    r = call(pairwise_accuracy, engagement=[2.5] * 6, bins=bins)
    np.testing.assert_array_equal(r.estimate, plain.estimate)
    assert list(r.breakdown()["support"]) == plain.support.tolist()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0.1] * 5, "^All columns must have the same number of rows; .*engagement: 5"),
        ([INF, 0.1, 0.2, 0.3, 0.4, 0.5], "^engagement must be finite or NaN; got inf"),
        (list("abcdef"), "^engagement must be numeric; got .*a"),
        ([[0.1]] * 6, r"^engagement must be 1-dimensional.*\(6, 1\)"),
        ([], "^engagement must have at least one row"),
        ([0.1, NAN, NAN, 0.3, 0.4, NAN], r"^engagement must be known.*NaN in row 1\.$"),
    ],
)
def test_wrong_engagement(value, message):
    with pytest.raises(ValueError, match=message):
        call(pairwise_accuracy, engagement=value)


def test_engagement_names_the_row_of_the_caller():
    engagement = [0.1, 0.1, 0.1, NAN, 0.4, 0.5]
    weight = {"sample_weight": [0, 0, 0, 1, 1, 1]}
    with pytest.raises(ValueError, match=r"NaN in row 3\.$"):
        call(pairwise_accuracy, engagement=engagement, **weight)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"epsilon": 1.0, "quantile": 0.1}, "epsilon and quantile"),
        ({"epsilon": 1.0, "n_pairs": 3}, "epsilon and n_pairs"),
        ({"epsilon": None, "n_pairs": 3, "quantile": 0.1}, "n_pairs and quantile"),
        (
            {"epsilon": 1.0, "n_pairs": 3, "quantile": 0.1},
            "epsilon and n_pairs and quantile",
        ),
    ],
)
def test_only_one_threshold(given, named):
    message = (
        rf"^Only one of epsilon, n_pairs and quantile can be given; got {named}\.$"
    )
    with pytest.raises(ValueError, match=message):
        call(matched_pair_calibration, **given)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        ({"f": 1.0}, r"^epsilon must name every group; it has no \['m'\]\.$"),
        ({}, r"^epsilon must name every group; it has no \['f', 'm'\]\.$"),
        ({"f": 1.0, "m": -1}, r"^epsilon\['m'\] must be a number in .*; got -1\.$"),
        ({"f": 1.0, "m": "x"}, r"^epsilon\['m'\] must be a number in .*; got 'x'\.$"),
        ({"f": 1.0, "m": None}, r"^epsilon\['m'\] must be a number in .*; got None\.$"),
        ({"f": 1.0, "m": [1]}, r"^epsilon\['m'\] must be a number in .*; got \[1\]\.$"),
        ({"f": 1.0, "m": True}, r"^epsilon\['m'\] must be a number in .*; got True\.$"),
    ],
)
def test_wrong_epsilon_by_group(epsilon, message):
    with pytest.raises(ValueError, match=message):
        call(matched_pair_calibration, epsilon=epsilon)


def test_ndcg_of_negative_or_huge_relevance():
    with pytest.raises(
        ValueError, match=r"^y_true must not be negative .*got -1\.0\.$"
    ):
        call(ndcg, y_true=[1, 2, -1, 0, 0, 0])
    message = r"^gain='exponential' overflows; the largest y_true is 2000\."
    with pytest.raises(ValueError, match=message):
        call(ndcg, y_true=[1, 2, 2000, 0, 0, 0], gain="exponential")


# Nothing else escapes


class Hostile:
    """An object that cannot be compared, hashed, or read as an array."""

    __hash__ = None

    def __eq__(self, other):
        raise TypeError("not comparable")


NASTY = {
    "None": None,
    "nan": NAN,
    "inf": INF,
    "-1": -1,
    "0": 0,
    "1": 1,
    "huge": 10**400,
    "-huge": -(10**400),
    "1e308": 1e308,
    "complex": 1j,
    "text": "abc",
    "empty text": "",
    "bytes": b"abc",
    "True": True,
    "object": object(),
    "hostile": Hostile(),
    "type": int,
    "function": len,
    "ellipsis": ...,
    "slice": slice(3),
    "dict": {"f": 1},
    "dict of text": {"f": "x", "m": "y"},
    "set": {1, 2},
    "range": range(6),
    "generator": (i for i in range(6)),
    "empty": [],
    "nested": [[1], [2]],
    "ragged": [[1], [2, 3]],
    "deep": [[[1]]],
    "six lists": [[1, 2]] * 6,
    "six ragged": [[1], [2, 3]] * 3,
    "six None": [None] * 6,
    "six nan": [NAN] * 6,
    "six text": list("abcdef"),
    "six mixed": [1, "a", None, 2.5, b"x", (1, 2)],
    "six objects": [object() for _ in range(6)],
    "six hostile": [Hostile()] * 6,
    "six dicts": [{}] * 6,
    "six huge": [10**400] * 6,
    "six extreme": [1e150, -1e150, 5e-324, -0.0, 0.0, 1.0],
    "six big": [2**63, 2**64, -(2**63), 2**200, 0, 1],
    "six tuples": [(1, 2), (1, 3)] * 3,
    "six dates": [dt.date(2020, 1, 1)] * 6,
    "datetime64": np.array(["2020-01-01", "NaT"] * 3, dtype="M8[ns]"),
    "timedelta64": np.array([1, 2] * 3, dtype="m8[s]"),
    "complex array": np.array([1j, 2] * 3),
    "structured": np.zeros(6, dtype=[("a", int), ("b", float)]),
    "0-D": np.array(1.0),
    "2-D": np.ones((6, 2)),
    "2-D empty": np.ones((6, 0)),
    "2-D bool": np.ones((6, 2), dtype=bool),
    "3-D": np.ones((6, 2, 2)),
    "uint64": np.array([2**64 - 1, 2**64 - 2] * 3, dtype=np.uint64),
    "big-endian": np.array([1.5, 2.5] * 3, dtype=">f8"),
    "longdouble": np.array([1, 2] * 3, dtype=np.longdouble),
    "float16": np.array([1, 2] * 3, dtype=np.float16),
    "string dtype": np.array(list("abcdef"), dtype=np.dtypes.StringDType()),
    "series": pd.Series([1, 2, 3]),
    "empty series": pd.Series([], dtype=object),
    "multi-index": pd.MultiIndex.from_tuples([(1, 2)] * 6),
    "periods": pd.Series(pd.period_range("2020", periods=6, freq="D")),
    "intervals": pd.Series(pd.interval_range(0, 6)),
    "timezone": pd.Series(pd.date_range("2020", periods=6, tz="UTC")),
    "sparse": pd.Series([1, 0] * 3, dtype="Sparse[int]"),
    "frame": pd.DataFrame({"a": range(6), "b": list("xyzxyz")}),
    "equal names": pd.DataFrame(np.ones((6, 2)), columns=["a", "a"]),
    "polars": pl.Series([1, 2, 3]),
    "polars lists": pl.Series([[1], [2]] * 3),
    "polars structs": pl.Series([{"a": 1}, {"a": 2}] * 3),
    "polars nulls": pl.Series([None] * 6),
    "polars binary": pl.Series([b"a", b"b"] * 3),
    "polars object": pl.Series([object() for _ in range(6)], dtype=pl.Object),
    "polars lazy": pl.LazyFrame({"a": [1] * 6}),
    "polars frame": pl.DataFrame({"a": [1] * 6}),
    "arrow": pa.array([1, 2, 3]),
    "arrow nulls": pa.nulls(6),
    "arrow lists": pa.chunked_array([[[1], [2]] * 3]),
    "arrow scalar": pa.scalar(1),
    "arrow table": pa.table({"a": [1] * 6}),
}
ARGUMENTS = [
    (metric, name)
    for metric in METRICS
    for name in [
        *columns_of(metric),
        *{
            pairwise_accuracy: ("comparison", "engagement", "bins"),
            matched_pair_calibration: ("epsilon", "n_pairs", "quantile", "direction"),
            ndcg: ("k", "gain"),
        }.get(metric, ()),
        *(() if metric is ndcg else ("average", "variance")),
    ]
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize(
    ("metric", "name"), ARGUMENTS, ids=[f"{m.__name__}-{n}" for m, n in ARGUMENTS]
)
def test_nothing_but_a_value_error_escapes(metric, name):
    extra = {"epsilon": None} if name in ("n_pairs", "quantile") else {}
    if name == "bins":
        extra = ENGAGEMENT
    wrong = []
    for label, value in NASTY.items():
        try:
            r = call(metric, **{**extra, name: value})
            repr(r)
        except ValueError as error:
            said = str(error)
            if name not in said or type(error) is not ValueError:
                wrong.append((label, repr(error)))
        except Exception as error:  # noqa: BLE001
            wrong.append((label, repr(error)))
    assert not wrong


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("qid", [None, GOOD["qid"]], ids=["list", "queries"])
def test_only_the_order_of_extreme_numbers_counts(qid):
    extreme, small = [1e308, -1e308, 5e-324, -0.0, 0.0, -1e308], [2, -1, 1, 0, 0, -1]
    good = {**GOOD, "qid": qid}
    for metric in (pairwise_accuracy, pairwise_exposure, pairwise_preference, ndcg):
        names = {"y_true", "y_score"} & set(columns_of(metric))
        for name in names - ({"y_true"} if metric is ndcg else set()):
            options = {k: v for k, v in good.items() if k in columns_of(metric)}
            if metric is pairwise_exposure:
                options["y_true"] = None
            r = metric(**{**options, name: extreme})
            expected = metric(**{**options, name: small})
            np.testing.assert_array_equal(r.estimate, expected.estimate)
            np.testing.assert_array_equal(r.covariance, expected.covariance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize(
    "option",
    [{"epsilon": 1e-320}, {"epsilon": 1.7e308}, {"n_pairs": 2}, {"quantile": 1.0}],
)
@pytest.mark.parametrize("direction", ["below", "both"])
def test_matching_extreme_scores(option, direction):
    # A difference may be larger than any float; no finite epsilon reaches it.
    scores = [1e308, -1e308, 5e-324, -0.0, 0.0, -1e308]
    options = {"epsilon": None, **option, "direction": direction, "qid": None}
    r = call(matched_pair_calibration, y_score=scores, **options)
    expected = naive_mpc(
        *(GOOD["y_true"], scores, [0] * 6),
        {g: [x == g for x in GOOD["sensitive_features"]] for g in "fm"},
        direction=direction,
        **option,
    )
    assert list(r.support) == [support for _, support, _ in expected.values()]
    assert list(r.first_pass["epsilon"].values()) == [e for *_, e in expected.values()]


# Without data


@each_by_group
def test_group_without_rows_in_a_membership_matrix(metric):
    member = pd.DataFrame(
        {"some": [True, False] * 3, "others": [False, True] * 3, "nobody": False}
    )
    message = r"undefined \(NaN\) for groups without pairs: nobody\.$"
    with pytest.warns(UndefinedMetricWarning, match=message):
        r = call(metric, sensitive_features=member)
    assert r.groups == ("some", "others", "nobody")
    assert np.isnan(r.estimate).tolist() == [False, False, True]
    assert np.isnan(r.standard_error).tolist() == [False, False, True]
    assert r.support[2] == 0
    assert np.isnan(r.to_frame().loc["nobody", "estimate"])


@pytest.mark.parametrize(
    ("metric", "changed"),
    [
        (pairwise_accuracy, {"y_true": [0, 1, 0, 1, 0, 0]}),
        (pairwise_accuracy, {"y_true": [0, 1, 0, 1, 0, 0], "average": "queries"}),
        (pairwise_accuracy, {"y_true": [0, 1, 0, 1, 0, 0], "engagement": [1] * 6}),
        (matched_pair_calibration, {"y_score": [2, 1, 2, 1, 2, 1]}),
        (matched_pair_calibration, {"y_score": [2, 1, 2, 1, 2, 1], "quantile": 0.5}),
    ],
)
def test_group_without_pairs(metric, changed):
    if "quantile" in changed:
        changed = {"epsilon": None, **changed}
    with pytest.warns(UndefinedMetricWarning, match="groups without pairs: f"):
        r = call(metric, **changed)
    assert np.isnan(r.estimate[0])
    assert r.support[0] == 0
    assert np.isfinite(r.estimate[1])


@each_by_group
def test_one_group(metric):
    only = {"sensitive_features": ["x"] * 6}
    if metric is pairwise_accuracy:
        # There are others to be compared with, but no group outside.
        assert np.isfinite(call(metric, **only).estimate).all()
        assert np.isnan(call(metric, **only).test().pvalue).all()
        only["comparison"] = "inter"
    with pytest.warns(UndefinedMetricWarning, match=r"without pairs: x\.$"):
        r = call(metric, **only)
    assert r.groups == ("x",)
    assert np.isnan(r.estimate).all()
    assert np.isnan(r.covariance).all()


@each_by_group
@pytest.mark.parametrize("qid", [range(6), None], ids=["one item a query", "one row"])
def test_queries_of_one_item(metric, qid):
    changed = {"qid": qid}
    names = "f, m"
    if qid is None:
        changed |= {n: GOOD[n][:1] for n in columns_of(metric)[:3] if n in GOOD}
        names = "f"
        changed["qid"] = None
    with pytest.warns(UndefinedMetricWarning, match=rf"without pairs: {names}\.$"):
        r = call(metric, **changed)
    assert np.isnan(r.estimate).all()
    assert (r.support == 0).all()


@each_by_group
@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_one_cluster_has_no_error(metric, average):
    with pytest.warns(UndefinedMetricWarning, match=r"standard error.*: f, m\.$"):
        r = call(metric, qid=None, variance="cluster", average=average)
    assert np.isfinite(r.estimate).all()
    assert np.isnan(r.standard_error).all()
    assert r.n_clusters == 1
    with pytest.warns(UndefinedMetricWarning, match=r"standard error.*: f, m\.$"):
        r = call(metric, cluster=["only"] * 6, average=average)
    assert np.isnan(r.standard_error).all()


def test_warning_names_crossed_and_odd_groups():
    frame = pd.DataFrame({"sex": list("fmfmfm"), "old": [1, 1, 2, 2, 1, 1]})
    with pytest.warns(UndefinedMetricWarning, match="f × 2"):
        pairwise_accuracy([0, 1, 0, 1, 1, 0], range(6), sensitive_features=frame)


def test_ndcg_without_relevance():
    with pytest.warns(UndefinedMetricWarning, match=r"without queries: all\.$"):
        r = call(ndcg, y_true=[0] * 6)
    assert np.isnan(r.estimate).all()
    assert r.support == 0
    with pytest.warns(UndefinedMetricWarning, match="no standard error"):
        r = call(ndcg, y_true=[0, 0, 1, 0, 0, 0])
    assert r.support == 1
    assert np.isfinite(r.estimate).all()


def test_queries_without_pairs_do_not_matter_to_the_estimate():
    r = call(pairwise_exposure)
    longer = {name: [*values, values[0]] for name, values in GOOD.items()}
    alone = call(
        pairwise_exposure, **{**longer, "y_true": None, "qid": [*GOOD["qid"], 9]}
    )
    np.testing.assert_array_equal(alone.estimate, r.estimate)
    assert (alone.n_clusters, r.n_clusters) == (3, 2)


# The functions themselves


def test_as_numbers():
    for values in ([1, 2.5, True], (1, 2.5, 1), pd.Series([1, 2.5, 1], dtype=object)):
        np.testing.assert_array_equal(as_numbers(values, "x"), [1, 2.5, 1])
        assert as_numbers(values, "x").dtype == np.float64
    np.testing.assert_array_equal(as_numbers([1, NAN], "x", allow_nan=True), [1, NAN])
    with pytest.raises(ValueError, match="^x must be finite or NaN; got inf in row 1"):
        as_numbers([NAN, INF], "x", allow_nan=True)


def test_as_weights():
    np.testing.assert_array_equal(as_weights([0, 0.5, 2]), [0, 0.5, 2])
    with pytest.raises(ValueError, match="^w must not be negative; got -0.5 in row 1"):
        as_weights([1, -0.5], "w")


@pytest.mark.parametrize(
    "labels",
    [
        [5, 3, 5, 9],
        [-(2**63), 2**63 - 1, 0, 0],
        np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64),
        np.array([3, 200], dtype=np.uint8),
        ["b", "a", "b"],
        [1.5, -0.5, 1.5],
        [(1, "a"), (0, "b")],
        [True, False, True],
    ],
    ids=str,
)
def test_codes_give_the_labels_back(labels):
    column = pd.Series(labels) if isinstance(labels[0], tuple) else labels
    codes = encode(column, "x")
    decoded = codes.decode(codes.codes)
    assert list(decoded) == list(labels)
    assert codes.codes.min() >= 0
    assert codes.codes.max() < codes.size
    dense = codes.dense()
    assert sorted(set(dense.codes.tolist())) == list(range(dense.size))
    assert list(dense.decode(dense.codes)) == list(labels)
    last = codes.take(np.array([len(labels) - 1]))
    assert list(last.decode(last.codes)) == [labels[-1]]
    assert last.dense().size == 1


def test_sort_labels_of_mixed_types():
    labels = ["b", 3, ("x", 2), "a", 1.5, ("x", 1), True, b"z"]
    expected = [True, 1.5, 3, b"z", "a", "b", ("x", 1), ("x", 2)]
    assert sort_labels(labels) == expected
    assert sort_labels(labels[::-1]) == expected


def test_groups():
    groups = as_groups(["b", "a", "b", "c"])
    assert (len(groups), groups.n_rows, groups.overlapping) == (3, 4, False)
    assert groups.mask(1).tolist() == [True, False, True, False]
    some = groups.take(np.array([0, 3])).without_unused()
    assert some.labels == ("b", "c")
    assert some.mask(0).tolist() == [True, False]
    member = np.array([[True, True], [False, False], [True, False]])
    groups = as_groups(member)
    assert (groups.labels, groups.n_rows, groups.overlapping) == ((0, 1), 3, True)
    assert groups.mask(1).tolist() == [True, False, False]
    assert groups.take(np.array([1])).without_unused().labels == (0, 1)


@pytest.mark.parametrize(
    ("value", "integer", "inclusive", "fits"),
    [
        (0, False, (True, True), True),
        (0, False, (False, True), False),
        (1, False, (True, False), False),
        (np.float32(0.5), False, (False, False), True),
        (np.int8(1), True, (True, True), True),
        (0.5, True, (True, True), False),
        (np.bool_(True), True, (True, True), False),
        (NAN, False, (True, True), False),
        ("1", False, (True, True), False),
    ],
)
def test_check_number(value, integer, inclusive, fits):
    options = {"integer": integer, "inclusive": inclusive}
    if fits:
        check_number(value, "x", 0, 1, **options)
        return
    kind = "an integer" if integer else "a number"
    brackets = r"[\[(]0, 1[\])]"
    message = rf"^x must be {kind} in {brackets}; got {re.escape(repr(value))}\.$"
    with pytest.raises(ValueError, match=message):
        check_number(value, "x", 0, 1, **options)


def test_check_choice():
    check_choice("a", "x", ("a", "b"))
    check_choice(np.str_("a"), "x", ("a", "b"))
    with pytest.raises(ValueError, match=r"^x must be one of 'a', 'b'; got 'c'\.$"):
        check_choice("c", "x", ("a", "b"))
