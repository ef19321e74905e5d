"""Columns of every library give identical results."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.metrics.common import (
    CASES,
    Columns,
    assert_identical,
    assert_same,
    labelled,
    overlapping,
    with_clusters,
    with_weights,
)
from tests.seeds import one_in, together

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

# Every metric once: how columns are read does not depend on the options.
EVERY = {case.metric.__name__: case for case in CASES.values() if not case.by_item}
ONE_EACH = {name: case for name, case in EVERY.items() if not case.of_decisions}
GROUPED = {name: case for name, case in ONE_EACH.items() if name != "ndcg"}
every_metric = together(
    "case", [pytest.param(case, id=name) for name, case in ONE_EACH.items()]
)


def categorical_unused(values):
    categories = sorted(set(values.tolist()), reverse=True)
    if isinstance(categories[0], float):
        return pd.Series(values)
    return pd.Series(pd.Categorical(values, categories=[*categories, "unused"]))


def polars_wide(values):
    """Return whole numbers as integers of 128 bits, where polars has them."""
    column, wide = pl.Series(values.tolist()), getattr(pl, "Int128", pl.Int64)
    return column.cast(wide) if column.dtype.is_integer() else column


def polars_categorical(values):
    series = pl.Series(values.tolist())
    return series.cast(pl.Categorical) if series.dtype == pl.String else series


def arrow_dictionary(values):
    column = pa.array(values)
    return column.dictionary_encode() if values.dtype.kind == "U" else column


def chunked(values):
    half = len(values) // 2
    return pa.chunked_array([values[:half], values[half:]])


COLUMN_TYPES = {
    "list": np.ndarray.tolist,
    "tuple": lambda values: tuple(values.tolist()),
    "numpy object": lambda values: values.astype(object),
    "numpy big-endian": lambda values: values.astype(values.dtype.newbyteorder(">")),
    "numpy strided": lambda values: np.repeat(values, 2)[::2],
    "pandas": pd.Series,
    "pandas object": lambda values: pd.Series(values.tolist(), dtype=object),
    "pandas index": pd.Index,
    "pandas shuffled index": lambda values: pd.Series(
        values, index=np.arange(len(values))[::-1] // 2
    ),
    "pandas nullable": lambda values: pd.Series(values).convert_dtypes(),
    "pandas pyarrow": lambda values: pd.Series(
        pd.array(values, dtype=pd.ArrowDtype(pa.array(values).type))
    ),
    "pandas categorical": categorical_unused,
    "polars": lambda values: pl.Series(values.tolist()),
    "polars categorical": polars_categorical,
    "polars 128 bits": polars_wide,
    "pyarrow array": pa.array,
    "pyarrow dictionary": arrow_dictionary,
    "pyarrow chunked": chunked,
}


@one_in(9, at_once=10, case=EVERY, convert=COLUMN_TYPES)
def test_column_types(case, convert):
    c = with_clusters(with_weights(labelled()))
    columns = vars(case.taken(c)).items()
    result = case.measure(
        Columns(**{name: convert(values) for name, values in columns})
    )
    # The queries may be summed in another order.
    assert_same(result, case(c), 1e-14)


ONE_COLUMN = {
    "numpy": lambda values: values[:, None],
    "pandas": lambda values: pd.DataFrame({0: values}),
    "polars": lambda values: pl.DataFrame({"a": values}),
    "pyarrow": lambda values: pa.table({"a": values}),
}


@one_in(4, at_once=10, case=EVERY, convert=ONE_COLUMN)
def test_one_column_of_numbers_is_a_vector(case, convert):
    c = case.taken(labelled())
    some = {name: convert(v) for name in "ys" if (v := getattr(c, name)) is not None}
    assert_same(case.measure(c.but(**some)), case.measure(c), 1e-14)


@one_in(
    9,
    at_once=10,
    case=ONE_EACH,
    dtype={
        name: name
        for name in (
            *("int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"),
            *("f2", "f4"),
        )
    },
)
def test_number_types(case, dtype):
    c = labelled()
    c = c.but(y=2 * c.y, s=32 * c.s)
    small = c.but(y=c.y.astype(dtype), s=c.s.astype(dtype), q=c.q.astype(dtype))
    assert_same(case(small), case(c), 1e-14)


# Labels


@one_in(
    18,
    at_once=10,
    case=GROUPED,
    convert=COLUMN_TYPES,
    labels={
        "text": np.array(["f", "m", "x"]),
        "int": np.array([-7, 0, 10**12]),
        "float": np.array([0.5, 1.5, 2.5]),
        "bool": np.array([False, True, True]),
    },
)
def test_group_labels(case, convert, labels):
    c = labelled()
    code = np.searchsorted(["a", "b", "c"], c.group)
    distinct, code = np.unique(labels[code], return_inverse=True)
    expected = case(c.but(group=code))
    r = case(c.but(group=convert(distinct[code])))
    assert r.groups == tuple(distinct.tolist())
    assert {type(label) for label in r.groups} == {type(labels.tolist()[0])}
    np.testing.assert_array_equal(r.estimate, expected.estimate)
    np.testing.assert_array_equal(r.covariance, expected.covariance)


def mixed_pandas(columns):
    frame = pd.DataFrame(columns, index=np.arange(90)[::-1])
    frame.columns = ["same", "same"]
    return frame


FRAMES = {
    "numpy object": lambda columns: np.array(
        list(zip(*(v.tolist() for v in columns.values()), strict=True)), dtype=object
    ),
    "list of rows": lambda columns: [
        list(row) for row in zip(*(v.tolist() for v in columns.values()), strict=True)
    ],
    "pandas": pd.DataFrame,
    "pandas equal names": mixed_pandas,
    "pandas categorical": lambda columns: pd.DataFrame(columns).astype("category"),
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@one_in(4, at_once=10, case=GROUPED, frame=FRAMES)
def test_several_columns_are_crossed(case, frame):
    c = labelled()
    old = np.random.default_rng(3).integers(0, 2, 90)
    crossed = np.array([f"{g}{o}" for g, o in zip(c.group, old, strict=True)])
    expected = case(c.but(group=crossed))
    r = case(c.but(group=frame({"group": c.group, "old": old})))
    assert r.groups == tuple((label[0], int(label[1])) for label in expected.groups)
    assert {type(label[1]) for label in r.groups} == {int}
    np.testing.assert_array_equal(r.estimate, expected.estimate)
    np.testing.assert_array_equal(r.covariance, expected.covariance)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_one_column_of_labels_is_not_crossed(frame):
    c, case = labelled(), ONE_EACH["pairwise_exposure"]
    assert_identical(case(c.but(group=frame({"group": c.group}))), case(c))


MEMBERSHIPS = {
    "list of rows": np.ndarray.tolist,
    "pandas": pd.DataFrame,
    "pandas nullable": lambda m: pd.DataFrame(m).astype("boolean"),
    "pandas pyarrow": lambda m: pd.DataFrame(m).astype("bool[pyarrow]"),
    "object": lambda m: m.astype(object),
    "pandas object": lambda m: pd.DataFrame(m.astype(object)),
    "polars": lambda m: pl.DataFrame(m, schema=["0", "1", "2"]),
    "pyarrow": lambda m: pa.table({str(i): m[:, i] for i in range(3)}),
    "numpy fortran": np.asfortranarray,
}


@one_in(4, at_once=10, case=GROUPED, frame=MEMBERSHIPS)
def test_membership_matrix(case, frame):
    c = overlapping()
    expected = case(c)
    r = case(c.but(group=frame(c.group)))
    assert [str(label) for label in r.groups] == ["0", "1", "2"]
    np.testing.assert_array_equal(r.estimate, expected.estimate)
    np.testing.assert_array_equal(r.covariance, expected.covariance)


def test_columns_of_a_membership_frame_name_the_groups():
    case = ONE_EACH["pairwise_exposure"]
    c = overlapping()
    names = ["Sci-Fi", ("a", 1), 7]
    frame = pd.DataFrame(c.group)
    frame.columns = pd.Index(names, tupleize_cols=False)
    assert case(c.but(group=frame)).groups == tuple(names)


@every_metric
def test_inputs_may_be_read_only_and_are_not_written_to(case):
    c = with_weights(labelled())
    for values in vars(c).values():
        if values is not None:
            values.flags.writeable = False
    case(c)


@one_in(
    3,
    at_once=10,
    case=ONE_EACH,
    labels={
        "i8": np.array([-(2**63), 2**63 - 1, 0], dtype=np.int64),
        "i8 low": np.array([-(2**63), -(2**63) + 1, -(2**63) + 5], dtype=np.int64),
        "i8 high": np.array([2**63 - 1, 2**63 - 2, 2**63 - 9], dtype=np.int64),
        "u8": np.array([2**64 - 1, 2**64 - 2, 2**63], dtype=np.uint64),
        "u8 high": np.array([2**64 - 1, 2**64 - 2, 2**64 - 3], dtype=np.uint64),
        "u8 wide": np.array([2**64 - 1, 0, 1], dtype=np.uint64),
        "big": np.array([10**30, -(10**30), 0], dtype=object),
        "date": np.array(["2020-01-01", "1970-01-01", "2262-01-01"], dtype="M8[ns]"),
        "text": np.array(["x" * 1000, "", "\n"], dtype=object),
    },
)
def test_query_labels(case, labels):
    c = labelled()
    c = c.take(np.flatnonzero(np.isin(c.q, [1, 3, 4])))
    code = np.searchsorted([1, 3, 4], c.q)
    r, expected = case(c.but(q=labels[code])), case(c.but(q=code))
    np.testing.assert_allclose(r.estimate, expected.estimate, rtol=1e-13)
    np.testing.assert_allclose(r.covariance, expected.covariance, rtol=1e-10)
    assert r.n_clusters == expected.n_clusters
    assert set(r.sums.rows.labels.tolist()) == set(labels.tolist())
