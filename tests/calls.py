"""Calls of every metric with small good columns, one of which a test makes bad."""

import pytest

from skrankfair.metrics import (
    dips,
    exposure,
    exposure_gap,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)

NAN, INF = float("nan"), float("inf")
GOOD = {
    "y_true": [2.0, 1.0, 0.0, 2.0, 1.0, 0.0],
    "y_score": [1.0, 0.5, 0.25, 0.25, 0.5, 1.0],
    "sensitive_features": ["f", "m", "f", "m", "f", "m"],
    "qid": [7, 7, 7, 8, 8, 8],
}
ENGAGEMENT = {"engagement": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
EPSILON = {"epsilon": 1.0}
OPTIONS = {
    pairwise_accuracy: {},
    pairwise_exposure: {},
    pairwise_preference: {},
    matched_pair_calibration: EPSILON,
    dips: {},
    exposure: {},
    exposure_gap: {},
    ndcg: {},
}
METRICS = tuple(OPTIONS)
BY_GROUP = METRICS[:-1]
OF_ITEMS = (exposure, exposure_gap)  # defined for a group without a pair
OF_PAIRS = tuple(metric for metric in BY_GROUP if metric not in OF_ITEMS)
WITH_VARIANCE = tuple(metric for metric in OF_PAIRS if metric is not dips)


def columns_of(metric):
    """Names of the columns that a metric reads."""
    names = ["y_true", "y_score", "sensitive_features", "qid", "cluster"]
    unused = {
        exposure: ["y_true"],
        pairwise_exposure: ["y_true"],
        pairwise_preference: ["y_score"],
        ndcg: ["sensitive_features"],
    }
    names = [name for name in names if name not in unused.get(metric, [])]
    return [*names, "sample_weight"]


def call(metric, **changed):
    good = {name: GOOD[name] for name in columns_of(metric) if name in GOOD}
    if metric in (exposure, pairwise_exposure):
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
each_of_pairs = pytest.mark.parametrize(
    "metric", OF_PAIRS, ids=[metric.__name__ for metric in OF_PAIRS]
)
each_with_variance = pytest.mark.parametrize(
    "metric", WITH_VARIANCE, ids=[metric.__name__ for metric in WITH_VARIANCE]
)
NUMBERS = ("y_true", "y_score", "sample_weight")
LABELS = ("sensitive_features", "qid", "cluster")


def replaced(values, value, row=2):
    return [*values[:row], value, *values[row + 1 :]]
