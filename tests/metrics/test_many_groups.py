"""Many groups: what is summed by the groups that a query has equals group by group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skrankfair import metrics
from skrankfair._estimates.group_estimates import GroupEstimates
from skrankfair._inputs import cells
from skrankfair._inputs.ranking import Ranking, ranked_data
from skrankfair.metrics._pairs import group_ranges
from skrankfair.metrics._pairs.group_ranges import GroupMatching
from skrankfair.metrics._pairs.score_ranges import Matching, PairWeight
from tests.seeds import one_in, rarely

pytestmark = pytest.mark.filterwarnings(
    "ignore::skrankfair.exceptions.UndefinedMetricWarning"
)
STRATA = {"engagement": np.linspace(0, 3, 240), "bins": [-1.0, 1.0, 2.0, 4.0]}
OF_OUTCOMES: list[Callable[..., GroupEstimates]] = [
    *(
        partial(metrics.pairwise_accuracy, comparison=comparison, **strata)
        for comparison in ("all", "intra", "inter")
        for strata in ({}, STRATA)
    ),
    metrics.pairwise_exposure,
    lambda y, s, **who: metrics.pairwise_preference(y, None, **who),
    partial(metrics.matched_pair_calibration, quantile=0.2),
    partial(metrics.matched_pair_calibration, epsilon=np.inf, direction="both"),
    partial(metrics.matched_pair_calibration, n_pairs=9, direction="both"),
    partial(metrics.matched_pair_calibration, n_pairs=9, adjacent=True),
    partial(
        metrics.matched_pair_calibration,
        quantile=1.0,
        adjacent=True,
        estimator="local_linear",
        position_weight="dcg",
    ),
    partial(metrics.matched_pair_calibration, estimator="local_linear", quantile=0.4),
    partial(metrics.dips, tie_cost=0.3, position_weight="dcg"),
    partial(metrics.share_at_k, k=4),
]
OF_LISTS: list[Callable[..., GroupEstimates]] = [
    partial(metrics.exposure, average="amortized"),
    *(
        partial(metrics.exposure_gap, target=target)
        for target in ("expected", "relevance", "population")
    ),
    *(
        partial(metric, step=step)
        for metric in (
            metrics.normalized_discounted_difference,
            metrics.normalized_discounted_ratio,
            metrics.normalized_discounted_kl,
        )
        for step in (1, 4)
    ),
    partial(metrics.skew_at_k, k=4),
    metrics.ndkl,
    partial(metrics.exposure_parity, signed=True),
    metrics.pairwise_parity,
]
JOINT = [
    partial(metrics.ndkl, joint=True),
    partial(metrics.normalized_discounted_kl, joint=True, step=3),
]


def _columns(seed: int, *, overlapping: bool, ties: bool, length: int | None = None):
    """Return outcome, score, group and query of 240 rows."""
    rng = np.random.default_rng(seed)
    n = 240
    query = rng.integers(0, 14, n)
    if length is not None:
        query = np.repeat(np.arange(n // length), length)
    score = rng.integers(0, 9, n).astype(float) if ties else rng.normal(size=n)
    group = rng.random((n, 5)) < 0.3 if overlapping else rng.integers(0, 5, n)
    y = np.abs(np.round(rng.normal(size=n), 1 if seed % 2 else 9))
    return y, score, group, query


def _assert_same(monkeypatch, metric, *columns, **options) -> None:
    monkeypatch.setattr(cells, "FEW_GROUPS", 10**9)
    expected = metric(*columns, **options)
    monkeypatch.setattr(cells, "FEW_GROUPS", 0)
    result = metric(*columns, **options)
    for name in ("estimate", "standard_error", "support", "df"):
        assert_allclose(
            getattr(result, name), getattr(expected, name), rtol=1e-9, atol=1e-11
        )
    assert result.n_clusters == expected.n_clusters
    if expected.metric.against_rest is not None:
        one, other = result.against_rest(), expected.against_rest()
        assert_allclose(one.estimate, other.estimate, rtol=1e-10, atol=1e-12)
        assert_allclose(one.standard_error, other.standard_error, rtol=1e-9, atol=1e-11)


@one_in(
    2,
    number={str(number): number for number in range(len(OF_OUTCOMES + OF_LISTS))},
    overlapping={"apart": False, "overlapping": True},
)
def test_all_groups_at_once_are_as_group_by_group(
    monkeypatch, number: int, *, overlapping: bool
) -> None:
    metric = (OF_OUTCOMES + OF_LISTS)[number]
    for ties in (False, True):
        y, score, group, query = _columns(number, overlapping=overlapping, ties=ties)
        who = {"sensitive_features": group, "qid": query}
        _assert_same(monkeypatch, metric, y, score, **who)
        averages = ("amortized",) if metric in OF_LISTS[:4] else ("queries",)
        weight = np.random.default_rng(number).integers(1, 4, 14)[query] * 0.7
        who |= {"sample_weight": weight, "cluster": query // 3, "average": averages[0]}
        if getattr(metric, "keywords", {}).get("average"):
            del who["average"]
        _assert_same(monkeypatch, metric, y, score, **who)


def test_scores_may_be_tied_across_groups_only(monkeypatch) -> None:
    group = np.tile(np.arange(6), 40)
    score = np.repeat(np.arange(40.0), 6)
    y = np.random.default_rng(0).normal(size=240)
    who = {"sensitive_features": group, "qid": np.repeat(np.arange(4), 60)}
    for metric in OF_OUTCOMES:
        _assert_same(monkeypatch, metric, y, score, **who)


@pytest.mark.parametrize("ties", [False, True])
def test_metrics_of_mean_shares_and_of_all_groups_are_the_same(
    monkeypatch, *, ties: bool
) -> None:
    y, score, group, query = _columns(0, overlapping=False, ties=ties, length=12)
    who = {"sensitive_features": group, "qid": query}
    for average in ("queries", "representation"):
        for metric in JOINT:
            _assert_same(monkeypatch, metric, y, score, average=average, **who)
    for metric in OF_LISTS[4:]:
        _assert_same(monkeypatch, metric, y, score, average="representation", **who)


OF_ITEMS = [
    metrics.pairwise_exposure,
    lambda y, s, **who: metrics.pairwise_preference(y, None, **who),
    *(
        partial(metrics.pairwise_accuracy, comparison=comparison, **strata)
        for comparison in ("all", "intra", "inter")
        for strata in ({}, {**STRATA, "engagement": np.linspace(0, 3, 120)})
    ),
    *(
        partial(metrics.matched_pair_calibration, epsilon=0.4, direction=direction)
        for direction in ("below", "both")
    ),
]


@one_in(
    2,
    number={str(number): number for number in range(len(OF_ITEMS))},
    overlapping={"apart": False, "overlapping": True},
)
def test_items_of_many_groups_have_the_same_covariance(
    monkeypatch, number: int, *, overlapping: bool
) -> None:
    metric = OF_ITEMS[number]
    for ties in (False, True):
        columns = _columns(number, overlapping=overlapping, ties=ties)
        y, score, group, query = (column[:120] for column in columns)
        for who in ({}, {"qid": query, "variance": "item"}, {"cluster": query}):
            results = []
            for few in (10**9, 0):
                monkeypatch.setattr(cells, "FEW_GROUPS", few)
                result = metric(np.round(y), score, sensitive_features=group, **who)
                results.append(result)
                if result.metric.against_rest is not None:
                    results.append(result.against_rest())
            half = len(results) // 2
            for one, other in zip(results[:half], results[half:], strict=True):
                assert_allclose(one.estimate, other.estimate, rtol=1e-10, atol=1e-12)
                assert_allclose(one.covariance, other.covariance, rtol=1e-9, atol=1e-12)
                assert_allclose(one.df, other.df, rtol=1e-9)


def test_groups_without_rows_have_no_estimate(monkeypatch) -> None:
    monkeypatch.setattr(cells, "FEW_GROUPS", 0)
    y, score, group, query = _columns(0, overlapping=True, ties=True)
    nobody = np.zeros_like(group)
    for metric in OF_OUTCOMES + OF_LISTS:
        result = metric(y, score, sensitive_features=nobody, qid=query)
        assert np.isnan(result.estimate).all()


@pytest.mark.parametrize("adjacent", [False, True])
def test_groups_without_pairs_have_no_threshold(monkeypatch, *, adjacent: bool) -> None:
    monkeypatch.setattr(cells, "FEW_GROUPS", 0)
    y, score, group, query = _columns(0, overlapping=False, ties=False)
    group[:2], query[:2] = 5, 14  # a query of one group alone
    result = metrics.matched_pair_calibration(
        y, score, sensitive_features=group, qid=query, adjacent=adjacent
    )
    assert np.isnan(result.estimate[5])
    assert np.isnan(result.first_pass["epsilon"][5])
    assert np.isfinite(result.estimate[:5]).all()


@pytest.mark.parametrize("few", [0, 8])
def test_items_are_summed_block_by_block(monkeypatch, few: int) -> None:
    monkeypatch.setattr(cells, "FEW_GROUPS", few)
    y, score, group, query = _columns(1, overlapping=False, ties=False)
    who = {"sensitive_features": group, "qid": query, "variance": "item"}
    results = []
    for rows in (1 << 17, 50):
        monkeypatch.setattr(Ranking.blocks, "__defaults__", (rows,))
        results.append(metrics.pairwise_exposure(y, score, **who))
        results.append(metrics.matched_pair_calibration(y, score, epsilon=0.4, **who))
    for one, other in zip(results[:2], results[2:], strict=True):
        assert_allclose(one.estimate, other.estimate, rtol=1e-10)
        assert_allclose(one.covariance, other.covariance, rtol=1e-9, atol=1e-14)


def test_permutations_shuffle_the_same_labels(monkeypatch) -> None:
    y, score, group, query = _columns(3, overlapping=False, ties=True)
    pvalues = []
    for few in (0, 10**9):
        monkeypatch.setattr(cells, "FEW_GROUPS", few)
        result = metrics.ndkl(y, score, sensitive_features=group, qid=query)
        pvalues.append(result.test(n_resamples=49, random_state=0).pvalue)
    assert_array_equal(*pvalues)


@pytest.mark.parametrize("seed", [*range(5), *rarely(*range(5, 20))])
def test_thresholds_of_all_groups_are_those_of_each(monkeypatch, seed: int) -> None:
    monkeypatch.setattr(group_ranges, "_SAMPLE", 64)  # several rounds of the search
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 700))
    query = rng.integers(0, rng.integers(1, 8), n) if seed % 5 else None
    score = rng.normal(size=n)
    if seed % 3:  # heavy ties, of scores and of differences
        score = rng.integers(0, rng.integers(2, 40), n) * 0.1
    n_groups = int(rng.integers(2, 7))
    group = rng.integers(0, n_groups, n)
    if seed % 2:
        group = rng.random((n, n_groups)) < 0.4
    weight = None
    if query is not None and seed % 4 == 0:
        weight = rng.integers(1, 5, 9)[query] * 0.7
    data = ranked_data(
        None, score, sensitive_features=group, qid=query, sample_weight=weight
    )
    members = cells.Memberships.of(data.ranking, data.groups)
    for direction in ("below", "both"):
        matching = GroupMatching(data.ranking, members, direction)
        for how in ((5, None), (None, 0.01), (None, 0.5), (None, 1.0)):
            weight = PairWeight(data.row_weight)
            found = matching.kth_smallest(*how, weight)
            expected = []
            for number in range(len(data.groups)):
                member = data.groups.mask(number)
                alone = Matching(data.ranking, member, ~member, direction)
                expected.append(alone.kth_smallest(*how, weight))
            assert_array_equal(found, expected)


@pytest.mark.parametrize("direction", ["below", "both"])
def test_thresholds_in_one_list_are_found_nearby(direction: str) -> None:
    """The first guesses of most groups are close, and what is found is exact."""
    rng = np.random.default_rng(3)
    score, group = rng.normal(size=1200), rng.integers(0, 12, 1200)
    data = ranked_data(None, score, sensitive_features=group)
    members = cells.Memberships.of(data.ranking, data.groups)
    matching = GroupMatching(data.ranking, members, direction)
    selection = group_ranges._Selection(matching, None, 0.1, PairWeight())
    found, known = selection.nearby()
    assert known.sum() > 6
    for number in np.flatnonzero(known):
        gap = score[group != number] - score[group == number, None]
        gap = np.sort(gap[gap >= 0] if direction == "below" else np.abs(gap).ravel())
        assert found[number] == gap[int(np.ceil(0.1 * gap.size)) - 1]
