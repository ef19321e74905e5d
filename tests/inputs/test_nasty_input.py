"""Whatever is passed, no other exception than a clear ValueError comes out."""

import datetime as dt
import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skrankfair._inputs.columns import OneWayError
from skrankfair.metrics import (
    mean_position,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)
from tests.calls import CLICKED, ENGAGEMENT, GOOD, INF, METRICS, NAN, call, columns_of
from tests.seeds import one_in


class Hostile:
    """An object that cannot be compared, hashed, or read as an array."""

    __hash__ = None

    def __eq__(self, other):
        raise TypeError("not comparable")


NASTY = [
    *(None, NAN, INF, -1, 0, 1, 10**400, -(10**400), 1e308, 1j),
    *("abc", "", b"abc", True, object(), Hostile(), int, len, ..., slice(3)),
    # Containers
    *({"f": 1}, {"f": "x", "m": "y"}, {1, 2}, range(6), (i for i in range(6))),
    *([], [[1], [2]], [[1], [2, 3]], [[[1]]], [[1, 2]] * 6, [[1], [2, 3]] * 3),
    # Six rows
    *([None] * 6, [NAN] * 6, list("abcdef"), [1, "a", None, 2.5, b"x", (1, 2)]),
    *([object() for _ in range(6)], [Hostile()] * 6, [{}] * 6, [10**400] * 6),
    [1e150, -1e150, 5e-324, -0.0, 0.0, 1.0],
    [2**63, 2**64, -(2**63), 2**200, 0, 1],
    *([(1, 2), (1, 3)] * 3, [dt.date(2020, 1, 1)] * 6),
    # NumPy
    np.array(["2020-01-01", "NaT"] * 3, dtype="M8[ns]"),
    np.array([1, 2] * 3, dtype="m8[s]"),
    np.array([1j, 2] * 3),
    np.zeros(6, dtype=[("a", int), ("b", float)]),
    *(np.array(1.0), np.ones((6, 2)), np.ones((6, 0))),
    *(np.ones((6, 2), dtype=bool), np.ones((6, 2, 2))),
    np.array([2**64 - 1, 2**64 - 2] * 3, dtype=np.uint64),
    np.array([1.5, 2.5] * 3, dtype=">f8"),
    *(np.array([1, 2] * 3, dtype=kind) for kind in (np.longdouble, np.float16)),
    np.array(list("abcdef"), dtype=np.dtypes.StringDType()),
    # pandas
    *(pd.Series([1, 2, 3]), pd.Series([], dtype=object)),
    pd.MultiIndex.from_tuples([(1, 2)] * 6),
    pd.Series(pd.period_range("2020", periods=6, freq="D")),
    pd.Series(pd.interval_range(0, 6)),
    pd.Series(pd.date_range("2020", periods=6, tz="UTC")),
    pd.Series([1, 0] * 3, dtype="Sparse[int]"),
    pd.DataFrame({"a": range(6), "b": list("xyzxyz")}),
    pd.DataFrame(np.ones((6, 2)), columns=["a", "a"]),
    # polars
    *(pl.Series([1, 2, 3]), pl.Series([[1], [2]] * 3)),
    pl.Series([{"a": 1}, {"a": 2}] * 3),
    *(pl.Series([None] * 6), pl.Series([b"a", b"b"] * 3)),
    pl.Series([object() for _ in range(6)], dtype=pl.Object),
    *(pl.LazyFrame({"a": [1] * 6}), pl.DataFrame({"a": [1] * 6})),
    # Arrow
    *(pa.array([1, 2, 3]), pa.nulls(6), pa.chunked_array([[[1], [2]] * 3])),
    *(pa.scalar(1), pa.table({"a": [1] * 6})),
]
#: Every twelfth of the values; all metrics read their columns by the same code.
TWELFTHS = {f"{part + 1} of 12": NASTY[part::12] for part in range(12)}
ARGUMENTS = {
    f"{metric.__name__}-{name}": (metric, name)
    for metric in METRICS
    for name in inspect.signature(metric).parameters
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore:sensitive_features has .* numbers 0 and 1")
@one_in(12, at_once=16, argument=ARGUMENTS, values=TWELFTHS)
def test_nothing_but_a_value_error_escapes(argument, values):
    assert wrong_outcomes(*argument, values) == []


def wrong_outcomes(metric, name, values):
    """What is neither a result nor a ValueError that names the argument."""
    extra = {"epsilon": None} if name in ("n_pairs", "quantile") else {}
    if name == "bins":
        outcomes = CLICKED if metric is mean_position else GOOD["y_true"]
        extra = {**ENGAGEMENT, "y_true": outcomes}
    wrong = []
    for value in values:
        try:
            repr(call(metric, **{**extra, name: value}))
        except Exception as error:  # noqa: BLE001
            of_value = type(error) in (ValueError, OneWayError)
            if not (of_value and name in str(error)):
                wrong.append((type(value), repr(value), repr(error)))
    return wrong


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
