"""What a user passes keeps its meaning: nothing overflows, rounds or is unmasked."""

import datetime as dt
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from skrankfair import audit
from skrankfair._inputs.groups import as_groups, encode
from skrankfair._inputs.validation import as_numbers
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    calibration_error,
    log_loss,
    matched_pair_curve,
    pairwise_accuracy,
    positive_rate_shift,
)
from skrankfair.mitigation import GroupCalibratedClassifier, GroupCalibrator


def labels_of_rows(groups):
    return [groups.labels[code] for code in groups.values]


@pytest.mark.filterwarnings("ignore:sensitive_features has 65 columns of the numbers")
@pytest.mark.parametrize("n_labels", [2, 3000])
def test_any_number_of_columns_is_crossed_exactly(n_labels):
    """65 columns of two labels, or of 3000, have more combinations than an int64."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, n_labels, (3000, 65))
    groups = as_groups(columns)
    assert labels_of_rows(groups) == list(map(tuple, columns.tolist()))
    assert list(groups.labels) == sorted(set(map(tuple, columns.tolist())))


@pytest.mark.filterwarnings("ignore:sensitive_features has 66 columns of the numbers")
def test_metric_of_one_hot_columns_and_sex():
    rng = np.random.default_rng(0)
    n = 4000
    one_hot = np.eye(65, dtype=int)[rng.integers(0, 65, n)]
    sex = rng.integers(0, 2, n)
    y = rng.integers(0, 2, n)
    right = np.where(sex == 1, 0.9, 0.1)  # the probability of what happened
    score = np.where(y == 1, right, 1 - right)
    crossed = np.column_stack([one_hot, sex])
    result = log_loss(y, score, sensitive_features=crossed)
    assert len(result.groups) == 130
    loss = {1: -np.log(0.9), 0: -np.log(0.1)}
    np.testing.assert_allclose(
        result.estimate, [loss[label[-1]] for label in result.groups]
    )


def masked(values):
    return np.ma.array(values, mask=np.arange(len(values)) == 1)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([0, 1, 1, 0], "y_true"),
        ([0.1, 0.2, 0.3, 0.4], "y_score"),
        (["a", "b", "a", "b"], "sensitive_features"),
        ([True, False, True, False], "sensitive_features"),
        ([1, 1, 2, 2], "qid"),
        ([1, 1, 2, 2], "cluster"),
        ([1.0, 1.0, 2.0, 2.0], "sample_weight"),
    ],
)
def test_masked_values_are_missing(values, name):
    columns = {
        "y_true": np.tile([0, 1, 1, 0], 4),
        "y_score": np.tile([0.1, 0.2, 0.3, 0.4], 4),
        "sensitive_features": np.tile(["a", "b"], 8),
        "qid": np.repeat(np.arange(8), 2),
    }
    values = np.array(values)
    shift = np.repeat(np.arange(4), 4) * 2 * (name in {"qid", "cluster"})
    values = np.tile(values, 4) + shift if shift.any() else np.tile(values, 4)
    with pytest.raises(ValueError, match=rf"^{name} must .*row 1 "):
        pairwise_accuracy(**{**columns, name: masked(values)})
    np.testing.assert_array_equal(
        pairwise_accuracy(**{**columns, name: np.ma.array(values)}).estimate,
        pairwise_accuracy(**{**columns, name: values}).estimate,
    )


def test_masked_membership_and_masked_unknown_outcomes():
    members = np.ma.array([[True, False], [False, True]], mask=[[0, 1], [0, 0]])
    with pytest.raises(ValueError, match="^sensitive_features must not have missing"):
        as_groups(members)
    values = as_numbers(masked([1.0, 2.0, 3.0, 4.0]), "y_true", allow_nan=True)
    np.testing.assert_array_equal(values, [1.0, np.nan, 3.0, 4.0])


BIG = 2**53


@pytest.mark.parametrize(
    "values",
    [
        [BIG, BIG + 1],
        np.array([BIG, BIG + 1]),
        np.array([1, -BIG - 1]),
        np.array([0, 2**64 - 1], dtype=np.uint64),
        [0.5, BIG + 1],
        [0, 2**70 + 1],
        pd.Series([BIG, BIG + 1]),
        pd.Series([BIG, BIG + 1], dtype="Int64"),
        pd.Series([BIG + 1, None], dtype="Int64"),
        pl.Series([BIG + 1, None]),
        np.array([BIG + 1, 0.5], dtype=object),
    ],
    ids=str,
)
def test_integers_that_floats_would_tie_are_refused_as_scores(values):
    with pytest.raises(ValueError, match="^y_score must have numbers that float64 ho"):
        as_numbers(values, "y_score", allow_nan=True)


def test_large_integers_that_are_exact_are_scores():
    values = [2**60, -(2**62), 3, BIG]
    for column in (values, np.array(values), pd.Series(values, dtype="Int64")):
        assert as_numbers(column, "y_score").astype(int).tolist() == values


@pytest.mark.parametrize(
    "labels",
    [
        [BIG, BIG + 1, BIG + 2, BIG + 1],
        [2**63, 2**63 + 1, -1, -1],
        [2**70, 2**70 + 1, 5, 5],
        [float(BIG), BIG + 1, 0.5, 0.5],
    ],
    ids=str,
)
def test_large_integers_are_exact_labels(labels):
    codes = encode(labels, "qid").dense()
    assert codes.size == 3
    assert codes.decode(codes.codes).tolist() == labels
    assert labels_of_rows(as_groups(labels)) == labels


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
        (np.array([1], dtype="M8[as]"), "1970-01-01T00:00:00.000000000000000001"),
    ],
    ids=str,
)
def test_times_stay_times(column, first):
    groups = as_groups(column)
    label = groups.labels[0]
    assert label == first
    assert hash(label) == hash(first)
    assert getattr(label, "tzinfo", None) is None or str(label.tzinfo) == str(
        first.tzinfo
    )
    assert json.dumps([str(label) for label in groups.labels])


def test_durations_are_sorted_by_length():
    groups = as_groups(np.array([10, 2, 1], dtype="m8[D]").astype("m8[ns]"))
    assert [label.days for label in groups.labels] == [1, 2, 10]


def test_dates_name_the_groups_of_a_result():
    dates = np.array(["2020-01-01", "2021-01-01"] * 50, dtype="M8[ns]")
    rng = np.random.default_rng(0)
    result = pairwise_accuracy(
        rng.integers(0, 2, 100), rng.random(100), sensitive_features=dates
    )
    old, new = pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")
    assert result.groups == (old, new)
    assert np.isfinite(result.contrast(old, new).estimate)
    assert "2020-01-01" in repr(result)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize(
    "metric",
    [calibration_error, log_loss, partial(positive_rate_shift, threshold=0.5)],
    ids=["calibration_error", "log_loss", "positive_rate_shift"],
)
def test_groups_without_members(metric, clustered):
    rng = np.random.default_rng(0)
    members = pd.DataFrame({"a": [False] * 40, "b": [False] * 40})
    cluster = np.arange(40) // 4 if clustered else None
    with pytest.warns(UndefinedMetricWarning, match="without rows: a, b"):
        result = metric(
            rng.integers(0, 2, 40),
            rng.random(40),
            sensitive_features=members,
            cluster=cluster,
        )
    assert np.isnan(result.estimate).all()


def test_a_result_keeps_its_own_weights():
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, 60).astype(float)
    result = log_loss(
        rng.integers(0, 2, 60),
        rng.uniform(0.1, 0.9, 60),
        sensitive_features=np.repeat(["a", "b"], 30),
        sample_weight=weight,
    )
    drawn = {"method": "bootstrap", "n_resamples": 100, "random_state": 0}
    before = result.confidence_interval(**drawn)
    weight[:] = 1
    np.testing.assert_array_equal(result.confidence_interval(**drawn), before)


# Threads


def lacking():
    """A group without pairs, which is worth a warning."""
    return {
        "y_true": [0, 1, 0, 1, 1],
        "y_score": [0.1, 0.2, 0.3, 0.4, 0.5],
        "sensitive_features": ["a", "a", "a", "b", "c"],
    }


def test_threads_leave_the_warnings_of_the_process_alone():
    """`warnings.catch_warnings` in two threads leaves its filter behind."""
    columns = {name: np.repeat(values, 40) for name, values in lacking().items()}
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "g": np.tile(["a", "b"], 100)})
    y = X["x"] + rng.normal(size=200) > 0
    model = GroupCalibratedClassifier(
        LogisticRegression(), sensitive_features="g", drop_metadata_columns=True
    )
    model.fit(X, y)

    def work(seed):
        if seed % 3 == 0:
            matched_pair_curve(**columns)
        elif seed % 3 == 1:
            audit(**columns, metrics="intra_group_accuracy")
        else:
            model.predict(X.assign(g=["a", "c"] * 100))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filters = list(warnings.filters)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(48)))
        assert warnings.filters == filters
    with (
        pytest.warns(UndefinedMetricWarning, match="without pairs: b, c"),
        pytest.warns(UndefinedMetricWarning, match="no standard error.*: a"),
    ):
        pairwise_accuracy(**lacking(), comparison="intra")


def test_fits_in_threads_are_published_complete():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 50)
    score = rng.normal(size=(1000, 1))
    y = (score[:, 0] + group / 10 + rng.normal(size=1000) > 0).astype(float)
    calibrator = GroupCalibrator("platt").fit(score, y, sensitive_features=group)
    expected = calibrator.transform(score, sensitive_features=group)

    def work(seed):
        if seed % 2:
            calibrator.fit(score, y, sensitive_features=group)
        return calibrator.transform(score, sensitive_features=group)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(work, range(40)):
            np.testing.assert_array_equal(found, expected)
