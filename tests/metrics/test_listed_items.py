"""One list with many groups: rows that stand for many items give what items give."""

from __future__ import annotations

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skrankfair import inference, metrics
from skrankfair._estimates.group_estimates import GroupEstimates
from skrankfair._estimates.listed import ListTable
from skrankfair._inputs import cells
from skrankfair.metrics._pairs import listed_items

pytestmark = pytest.mark.filterwarnings(
    "ignore::skrankfair.exceptions.UndefinedMetricWarning",
    "ignore::skrankfair.exceptions.SmallSampleWarning",
)
METRICS = {
    "exposure": metrics.pairwise_exposure,
    "preference": lambda y, s, **who: metrics.pairwise_preference(y, None, **who),
    "accuracy": metrics.pairwise_accuracy,
    "inter": partial(metrics.pairwise_accuracy, comparison="inter"),
    "intra": partial(metrics.pairwise_accuracy, comparison="intra"),
    "matched": partial(metrics.matched_pair_calibration, epsilon=0.3),
    "both": partial(metrics.matched_pair_calibration, quantile=0.2, direction="both"),
    "endless": partial(
        metrics.matched_pair_calibration, epsilon=np.inf, direction="both"
    ),
}


def _columns(seed: int):
    """Return outcomes of few grades, scores, and groups of which one has one item."""
    rng = np.random.default_rng(seed)
    n, n_groups = int(rng.integers(20, 70)), int(rng.integers(2, 7))
    ties = seed % 2
    score = rng.integers(0, 9, n) / 4 if ties else rng.normal(size=n)
    y = rng.integers(0, (2, 3, 5)[seed % 3], n) * 0.7
    group = np.append(rng.integers(0, n_groups, n - 1), n_groups)
    if seed % 4 == 3:
        group = rng.random((n, n_groups)) < 0.3
    return y, score, group


def _both(monkeypatch, metric, y, score, group) -> tuple[GroupEstimates, ...]:
    """Return the result of every group of each item, and of rows for many."""
    results = []
    for few in (10**9, 0):
        monkeypatch.setattr(cells, "FEW_GROUPS", few)
        results.append(metric(y, score, sensitive_features=group))
    expected, result = results
    assert not isinstance(expected.sums.table, ListTable)
    assert isinstance(result.sums.table, ListTable)
    return expected, result


def _assert_same(result, expected, names, where) -> None:
    for name in names:
        found, wanted = getattr(result, name), getattr(expected, name)
        assert_allclose(found, wanted, rtol=1e-9, atol=1e-11, err_msg=f"{where} {name}")


@pytest.mark.parametrize("name", METRICS)
def test_errors_are_those_of_all_groups_of_each_item(monkeypatch, name: str) -> None:
    by_group = ("estimate", "standard_error", "support", "df", "n_effective")
    for seed in (2, 3, 7, 10):  # every kind of ties, grades and overlap
        columns = _columns(seed)
        if "matched both endless".count(name):  # of any outcomes
            columns = (
                np.random.default_rng(seed).normal(size=columns[1].size),
                *columns[1:],
            )
        if seed > 5:  # of some groups at a time
            monkeypatch.setattr(listed_items, "_CHUNK", 20)
        expected, result = _both(monkeypatch, METRICS[name], *columns)
        pairs = [(result, expected)]
        if expected.metric.against_rest is not None:
            pairs.append((result.against_rest(), expected.against_rest()))
        for one, other in pairs:
            _assert_same(one, other, by_group, (seed, name))
            assert "_dense" not in vars(one.sums.table)
        for one, other in pairs:
            _assert_same(one, other, ["covariance"], (seed, name))


@pytest.mark.parametrize("name", ["exposure", "accuracy", "inter", "matched"])
def test_what_needs_two_groups_of_an_item_makes_them(monkeypatch, name: str) -> None:
    y, score, group = _columns(4)
    expected, result = _both(monkeypatch, METRICS[name], y, score, group)
    later = METRICS[name](1 - y, -score, sensitive_features=group)
    a, b = result.groups[:2]
    parts = ("estimate", "standard_error", "df")
    _assert_same(result.contrast(a, b), expected.contrast(a, b), parts, name)
    if result.metric.pooled:
        _assert_same(result.overall, expected.overall, parts[:2], name)
    pickled = pickle.loads(pickle.dumps(result))
    read = GroupEstimates.from_json(result.to_json())
    for copy in (result.compact(), pickled, read):
        _assert_same(copy, expected, (*parts, "covariance"), name)
    contrasts, wanted = result.contrasts(), expected.contrasts()
    for column in ("estimate", "pvalue"):
        assert_allclose(contrasts[column], wanted[column], rtol=1e-9)
    for one, other in ((result, later), (later, result.compact()), (read, later)):
        total, wanted = one + other, expected + later.compact()
        _assert_same(total, wanted, ("estimate", "standard_error", "df"), name)
    assert_allclose(result.disparity(), expected.disparity(), rtol=1e-9)
    difference = inference.compare(result, later)
    wanted = inference.compare(expected, later)
    _assert_same(difference, wanted, ("estimate", "standard_error"), name)


def test_outcomes_of_many_values_have_all_groups_of_each_item() -> None:
    rng = np.random.default_rng(0)
    group, score = rng.integers(0, 20, 400), rng.random(400)
    r = metrics.pairwise_accuracy(rng.random(400), score, sensitive_features=group)
    assert not isinstance(r.sums.table, ListTable)


@pytest.mark.parametrize("name", ["exposure", "accuracy", "matched"])
def test_memory_grows_with_the_items_and_not_with_items_times_groups(name) -> None:
    rng = np.random.default_rng(0)
    n, n_groups = 20_000, 1000  # 320 MB of all groups of each item, and two columns
    group, score = rng.integers(0, n_groups, n), rng.random(n)
    y = (rng.random(n) < 0.3).astype(float)
    metric = METRICS[name]
    if name == "matched":
        metric = partial(metrics.matched_pair_calibration, epsilon=0.01)
    tracemalloc.start()
    r = metric(y, score, sensitive_features=group)
    assert np.isfinite(r.standard_error).mean() > 0.9
    assert np.isfinite(r.df).mean() > 0.9
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 25
