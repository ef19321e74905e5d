"""Labels become codes, and codes the same labels again."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skrankfair._inputs.groups import as_groups, encode, sort_labels


def labels_of_rows(groups):
    return [groups.labels[code] for code in groups.values]


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
        [2**53, 2**53 + 1, 2**53 + 2, 2**53 + 1],
        [2**63, 2**63 + 1, -1, -1],
        [2**70, 2**70 + 1, 5, 5],
        [float(2**53), 2**53 + 1, 0.5, 0.5],
    ],
    ids=str,
)
def test_codes_give_the_labels_back(labels):
    column = pd.Series(labels) if isinstance(labels[0], tuple) else labels
    codes = encode(column, "x")
    assert list(codes.of_rows) == list(labels)
    assert labels_of_rows(as_groups(column)) == list(labels)
    assert sorted(set(codes.codes.tolist())) == list(range(codes.size))
    last = codes.take(np.array([len(labels) - 1]))
    assert list(last.of_rows) == [labels[-1]]
    assert last.size == 1


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
    groups = as_groups(np.array([[True, True], [False, False], [True, False]]))
    assert (groups.labels, groups.n_rows, groups.overlapping) == ((0, 1), 3, True)
    assert groups.mask(1).tolist() == [True, False, False]
    assert groups.take(np.array([1])).without_unused().labels == (0, 1)


@pytest.mark.filterwarnings("ignore:sensitive_features has 65 columns of the numbers")
@pytest.mark.parametrize("n_labels", [2, 3000])
def test_any_number_of_columns_is_crossed_exactly(n_labels):
    """65 columns of two labels, or of 3000, have more combinations than an int64."""
    columns = np.random.default_rng(0).integers(0, n_labels, (3000, 65))
    groups = as_groups(columns)
    assert labels_of_rows(groups) == list(map(tuple, columns.tolist()))
    assert list(groups.labels) == sorted(set(map(tuple, columns.tolist())))


DAYS = ["2020-01-01", "2021-06-01", "2020-01-01"]
DATES = pd.Series(pd.to_datetime(DAYS))
TOKYO = pl.Series([dt.datetime(2020, 1, 1), dt.datetime(2021, 6, 1)] * 2)


@pytest.mark.parametrize(
    ("column", "first"),
    [
        (DATES.to_numpy().astype("M8[ns]"), pd.Timestamp("2020-01-01")),
        (DATES.to_numpy().astype("M8[us]"), dt.datetime(2020, 1, 1)),
        (DATES.to_numpy().astype("M8[D]"), dt.date(2020, 1, 1)),
        (DATES.astype("M8[ns]"), pd.Timestamp("2020-01-01")),
        (
            DATES.dt.tz_localize("Europe/Berlin"),
            pd.Timestamp("2020-01-01", tz="Europe/Berlin"),
        ),
        (
            DATES.astype("M8[ns]").dt.tz_localize("UTC").to_frame(),
            pd.Timestamp("2020-01-01", tz="UTC"),
        ),
        (
            TOKYO.dt.replace_time_zone("Asia/Tokyo"),
            pd.Timestamp("2020-01-01", tz="Asia/Tokyo"),
        ),
        (np.array([10, 20], dtype="m8[ns]"), pd.Timedelta(10)),
    ],
    ids=str,
)
def test_times_stay_times(column, first):
    label = as_groups(column).labels[0]
    assert label == first
    assert hash(label) == hash(first)
    assert getattr(label, "tzinfo", None) is None or str(label.tzinfo) == str(
        first.tzinfo
    )


def test_durations_are_sorted_by_length():
    groups = as_groups(np.array([10, 2, 1], dtype="m8[D]").astype("m8[ns]"))
    assert [label.days for label in groups.labels] == [1, 2, 10]
