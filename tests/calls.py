"""Calls of every metric with small good columns, one of which a test makes bad."""

import inspect

import pytest

from skrankfair import metrics
from tests.seeds import together

NAN, INF = float("nan"), float("inf")
GOOD = {
    "y_true": [2.0, 1.0, 0.0, 2.0, 1.0, 0.0],
    "y_score": [1.0, 0.5, 0.25, 0.25, 0.5, 1.0],
    "sensitive_features": ["f", "m", "f", "m", "f", "m"],
    "qid": [7, 7, 7, 8, 8, 8],
}
ENGAGEMENT = {"engagement": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
EPSILON = {"epsilon": 1.0}
OF_LISTS = {  # statistical parity: no outcome, one value per list
    metrics.normalized_discounted_difference: {"step": 2},
    metrics.normalized_discounted_ratio: {"step": 2},
    metrics.normalized_discounted_kl: {"step": 2},
    metrics.skew_at_k: {"k": 2},
    metrics.ndkl: {},
    metrics.exposure_parity: {},
    metrics.pairwise_parity: {},
}
OF_ROWS = {  # those of one list, with outcomes of 0 and 1
    metrics.selection_rate: {"threshold": 0.5},
    metrics.precision: {"threshold": 0.5},
    metrics.brier_score: {},
    metrics.calibration_in_the_large: {},
}
OF_TOP = {metrics.precision_at_k: {"k": 2}, metrics.share_at_k: {"k": 2}}
OF_TOP[metrics.mean_position] = {}
BINARY = [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]
CLICKED = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0]  # of each group in each query
OPTIONS = {
    metrics.pairwise_accuracy: {},
    metrics.pairwise_exposure: {},
    metrics.pairwise_preference: {},
    metrics.matched_pair_calibration: EPSILON,
    metrics.dips: {},
    metrics.exposure: {},
    metrics.exposure_gap: {},
    metrics.boost_value: {"boost": 0.3},
    **OF_LISTS,
    **OF_ROWS,
    **OF_TOP,
    metrics.ndcg: {},
}
METRICS = tuple(OPTIONS)
BY_GROUP = METRICS[:-1]
#: Those that are defined for a group without a pair.
OF_ITEMS = (metrics.exposure, metrics.exposure_gap, metrics.boost_value)
OF_PAIRS = tuple(
    metric
    for metric in BY_GROUP
    if metric not in (*OF_ITEMS, *OF_LISTS, *OF_ROWS, *OF_TOP)
)
NEEDS_OTHERS = (*OF_PAIRS, *OF_LISTS)  # undefined for a group that is everybody
WITH_VARIANCE = tuple(metric for metric in OF_PAIRS if metric is not metrics.dips)


def columns_of(metric):
    """Names of the columns that a metric reads."""
    names = ["y_true", "y_score", "sensitive_features", "qid", "cluster"]
    unused = {
        metrics.exposure: ["y_true"],
        metrics.pairwise_exposure: ["y_true"],
        metrics.pairwise_preference: ["y_score"],
        metrics.ndcg: ["sensitive_features"],
        **{metric: ["y_true"] for metric in OF_LISTS},
        **{metric: ["qid"] for metric in OF_ROWS},
        metrics.selection_rate: ["y_true", "qid"],
        metrics.share_at_k: ["y_true"],
    }
    names = [name for name in names if name not in unused.get(metric, [])]
    return [*names, "sample_weight"]


def taking(parameter):
    """Return the public metrics that have a parameter."""
    public = (getattr(metrics, name) for name in metrics.__all__)
    functions = filter(inspect.isfunction, public)
    return {f for f in functions if parameter in inspect.signature(f).parameters}


def lacking(metric):
    """What an undefined group is without, a regular expression."""
    units = dict.fromkeys(OF_ITEMS, "items") | dict.fromkeys(OF_LISTS, "queries.*")
    units |= dict.fromkeys(OF_ROWS, "rows") | {metrics.precision: "selected"}
    units |= {metrics.precision_at_k: "items in the top k", metrics.share_at_k: "items"}
    units[metrics.mean_position] = "clicked items"
    units[metrics.boost_value] = "queries"
    return units.get(metric, "pairs")


def call(metric, **changed):
    good = {name: GOOD[name] for name in columns_of(metric) if name in GOOD}
    if metric in (
        metrics.exposure,
        metrics.pairwise_exposure,
        metrics.share_at_k,
        *OF_LISTS,
    ):
        good["y_true"] = None
    if metric is metrics.mean_position:
        good["y_true"] = CLICKED
    if good.get("y_true") and metric in (*OF_ROWS, metrics.precision_at_k):
        good["y_true"] = BINARY
    return metric(**{**good, **OPTIONS.get(metric, {}), **changed})


def every(*kinds, chosen=METRICS):
    """Parametrize by every metric and each of its columns of these kinds."""
    pairs = [
        pytest.param(metric, name, id=f"{metric.__name__}-{name}")
        for metric in chosen
        for name in columns_of(metric)
        if name in kinds
    ]
    return together(("metric", "name"), pairs)


def of_one_metric(*kinds):
    """Parametrize by columns that are read alike by all metrics."""
    return every(*kinds, chosen=[metrics.pairwise_accuracy])


def each_of(chosen):
    """Parametrize by metrics."""
    return together("metric", [pytest.param(m, id=m.__name__) for m in chosen])


each_metric = each_of(METRICS)
each_of_queries = each_of([metric for metric in METRICS if metric not in OF_ROWS])
each_by_group = each_of(BY_GROUP)
each_that_needs_others = each_of(NEEDS_OTHERS)
NUMBERS = ("y_true", "y_score", "sample_weight")
LABELS = ("sensitive_features", "qid", "cluster")


def replaced(values, value, row=2):
    return [*values[:row], value, *values[row + 1 :]]
