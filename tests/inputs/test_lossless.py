"""What a user passes keeps its meaning: nothing overflows, rounds or is unmasked."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from skrankfair import audit
from skrankfair._inputs.groups import as_groups
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
from tests.calls import GOOD


def masked(values):
    return np.ma.array(values, mask=np.arange(len(values)) == 1)


@pytest.mark.parametrize(
    "name",
    ["y_true", "y_score", "sensitive_features", "qid", "cluster", "sample_weight"],
)
def test_masked_values_are_missing(name):
    columns = {**GOOD, "cluster": GOOD["qid"], "sample_weight": np.ones(6)}
    whole = {**columns, name: np.ma.array(columns[name])}
    with pytest.raises(ValueError, match=rf"^{name} must .*row 1 "):
        pairwise_accuracy(**{**columns, name: masked(columns[name])})
    expected = pairwise_accuracy(**columns).estimate
    np.testing.assert_array_equal(pairwise_accuracy(**whole).estimate, expected)


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
        pl.DataFrame({"a": [BIG + 1, None]}),
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


@pytest.mark.parametrize("cluster", [None, np.arange(40) // 4])
@pytest.mark.parametrize(
    "metric",
    [calibration_error, log_loss, partial(positive_rate_shift, threshold=0.5)],
    ids=["calibration_error", "log_loss", "positive_rate_shift"],
)
def test_groups_without_members(metric, cluster):
    y, score = np.random.default_rng(0).integers(0, 2, (2, 40))
    who = {"sensitive_features": pd.DataFrame({"a": [False] * 40, "b": [False] * 40})}
    with pytest.warns(UndefinedMetricWarning, match="without rows: a, b"):
        result = metric(y, score, **who, cluster=cluster)
    assert np.isnan(result.estimate).all()


# Threads

#: Groups without pairs, which are worth a warning.
LACKING = {
    "y_true": [0, 1, 0, 1, 1],
    "y_score": [0.1, 0.2, 0.3, 0.4, 0.5],
    "sensitive_features": ["a", "a", "a", "b", "c"],
}


def test_threads_leave_the_warnings_of_the_process_alone():
    """`warnings.catch_warnings` in two threads leaves its filter behind."""
    columns = {name: np.repeat(values, 40) for name, values in LACKING.items()}
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "g": np.tile(["a", "b"], 100)})
    y = X["x"] + rng.normal(size=200) > 0
    model = GroupCalibratedClassifier(
        LogisticRegression(), sensitive_features="g", drop_metadata_columns=True
    )
    model.fit(X, y)

    tasks = [
        lambda: matched_pair_curve(**columns),
        lambda: audit(**columns, metrics="intra_group_accuracy"),
        lambda: model.predict(X.assign(g=["a", "c"] * 100)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filters = list(warnings.filters)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda task: task(), tasks * 6))
        assert warnings.filters == filters
    with (
        pytest.warns(UndefinedMetricWarning, match="without pairs: b, c"),
        pytest.warns(UndefinedMetricWarning, match="no standard error.*: a"),
    ):
        pairwise_accuracy(**LACKING, comparison="intra")


def test_fits_in_threads_are_published_complete():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(5), 50)
    score = rng.normal(size=(250, 1))
    y = (score[:, 0] + group / 10 + rng.normal(size=250) > 0).astype(float)
    calibrator = GroupCalibrator("platt").fit(score, y, sensitive_features=group)
    expected = calibrator.transform(score, sensitive_features=group)

    def work(seed):
        if seed % 2:
            calibrator.fit(score, y, sensitive_features=group)
        return calibrator.transform(score, sensitive_features=group)

    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(work, range(12)):
            np.testing.assert_array_equal(result, expected)
