"""Many groups: all at once have the numbers that each has alone against the rest."""

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
from skrankfair.metrics._pairs import near
from skrankfair.metrics._pairs.near import Matching, PairWeight
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


def _columns(seed: int, *, overlapping: bool, ties: bool):
    """Return outcome, score, group and query of 240 rows."""
    rng = np.random.default_rng(seed)
    n = 240
    query = rng.integers(0, 14, n)
    score = rng.integers(0, 9, n).astype(float) if ties else rng.normal(size=n)
    group = rng.random((n, 5)) < 0.3 if overlapping else rng.integers(0, 5, n)
    y = np.abs(np.round(rng.normal(size=n), 1 if seed % 2 else 9))
    return y, score, group, query


def _assert_each_is_alone(metric, y, score, group, **who) -> None:
    """Compare all groups with each of them and the rest as two groups."""
    result = metric(y, score, sensitive_features=group, **who)
    overlapping = group.ndim == 2
    for number, label in enumerate(result.groups):
        member = group[:, number] if overlapping else group == label
        alone = metric(y, score, sensitive_features=member, **who)
        place = alone.groups.index(True) if True in alone.groups else None
        if place is None:
            assert np.isnan(result.estimate[number])
            continue
        pairs = [(result, alone)]
        if result.metric.against_rest is not None:
            pairs.append((result.against_rest(), alone.against_rest()))
        for every, one in pairs:
            for name in ("estimate", "standard_error", "support", "df"):
                assert_allclose(
                    getattr(every, name)[number],
                    getattr(one, name)[place],
                    rtol=1e-9,
                    atol=1e-11,
                    err_msg=f"{name} of {label}",
                )


@one_in(
    2,
    number={str(number): number for number in range(len(OF_OUTCOMES + OF_LISTS))},
    overlapping={"apart": False, "overlapping": True},
)
def test_each_group_is_as_alone(number: int, *, overlapping: bool) -> None:
    metric = (OF_OUTCOMES + OF_LISTS)[number]
    for ties in (False, True):
        y, score, group, query = _columns(number, overlapping=overlapping, ties=ties)
        who = {"qid": query}
        _assert_each_is_alone(metric, y, score, group, **who)
        if metric in OF_OUTCOMES and not getattr(metric, "keywords", {}).get("average"):
            weight = np.random.default_rng(number).integers(1, 4, 14)[query] * 0.7
            who |= {"sample_weight": weight, "average": "queries"}
            _assert_each_is_alone(metric, y, score, group, **who)


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
def test_each_group_of_items_is_as_alone(number: int, *, overlapping: bool) -> None:
    metric = OF_ITEMS[number]
    for ties in (False, True):
        columns = _columns(number, overlapping=overlapping, ties=ties)
        y, score, group, query = (column[:120] for column in columns)
        for who in ({}, {"qid": query, "variance": "item"}, {"cluster": query}):
            _assert_each_is_alone(metric, np.round(y), score, group, **who)


@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_a_group_without_a_pair_has_no_caliper(average: str) -> None:
    rng = np.random.default_rng(0)
    score, group = rng.normal(size=60), rng.random((60, 10)) < 0.2
    group[:, 3] = True  # nobody is outside
    result = metrics.matched_pair_calibration(
        rng.normal(size=60),
        score,
        sensitive_features=group,
        qid=np.repeat(np.arange(6), 10),
        direction="both",
        quantile=0.1,
        average=average,
    )
    assert np.isnan(result.estimate[3])
    assert result.support[3] == 0
    assert np.isfinite(np.delete(result.estimate, 3)).all()


def test_groups_without_rows_have_no_estimate() -> None:
    y, score, group, query = _columns(0, overlapping=True, ties=True)
    nobody = np.zeros_like(group)
    for metric in OF_OUTCOMES + OF_LISTS:
        result = metric(y, score, sensitive_features=nobody, qid=query)
        assert np.isnan(result.estimate).all()


@pytest.mark.parametrize("adjacent", [False, True])
def test_groups_without_pairs_have_no_threshold(*, adjacent: bool) -> None:
    y, score, group, query = _columns(0, overlapping=False, ties=False)
    group[:2], query[:2] = 5, 14  # a query of one group alone
    result = metrics.matched_pair_calibration(
        y, score, sensitive_features=group, qid=query, adjacent=adjacent
    )
    assert np.isnan(result.estimate[5])
    assert np.isnan(result.first_pass["epsilon"][5])
    assert np.isfinite(result.estimate[:5]).all()


def test_items_are_summed_block_by_block(monkeypatch) -> None:
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


def _kth_smallest(ranking, member, direction, how, mass) -> float:
    """Return the K-th smallest difference of all pairs of a group, written down."""
    i, j = np.flatnonzero(member), np.flatnonzero(~member)
    gap = ranking.score[j] - ranking.score[i, None]
    pair = ranking.query[j] == ranking.query[i, None]
    if direction == "below":
        pair &= gap >= 0
    gap = np.abs(gap[pair])
    mass = np.broadcast_to(mass[i, None], pair.shape)[pair]
    if not gap.size:
        return np.nan
    n_pairs, quantile = how
    order, total = np.argsort(gap), mass.sum()
    rank = min(n_pairs, total) if quantile is None else quantile * total
    reached = np.cumsum(mass[order]) >= rank * (1 - 1e-12)
    return float(gap[order][np.argmax(reached)])


@pytest.mark.parametrize("seed", [*range(5), *rarely(*range(5, 20))])
def test_thresholds_of_all_groups_are_those_of_each(monkeypatch, seed: int) -> None:
    monkeypatch.setattr(near, "_SAMPLE", 64)  # several rounds of the search
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
        matching = Matching(data.ranking, members, direction)
        for how in ((5, None), (None, 0.01), (None, 0.5), (None, 1.0)):
            weight = PairWeight(data.row_weight)
            found = matching.kth_smallest(*how, weight)
            expected = []
            for number in range(len(data.groups)):
                member = data.groups.mask(number)
                mass = np.ones(n) if weight.focal is None else weight.focal
                expected.append(
                    _kth_smallest(data.ranking, member, direction, how, mass)
                )
            assert_array_equal(found, expected)


@pytest.mark.parametrize("direction", ["below", "both"])
def test_thresholds_in_one_list_are_found_nearby(direction: str) -> None:
    """The first guesses of most groups are close, and what is found is exact."""
    rng = np.random.default_rng(3)
    score, group = rng.normal(size=1200), rng.integers(0, 12, 1200)
    data = ranked_data(None, score, sensitive_features=group)
    members = cells.Memberships.of(data.ranking, data.groups)
    matching = Matching(data.ranking, members, direction)
    selection = near._Selection(matching, None, 0.1, PairWeight())
    found, known = selection.nearby()
    assert known.sum() > 6
    for number in np.flatnonzero(known):
        gap = score[group != number] - score[group == number, None]
        gap = np.sort(gap[gap >= 0] if direction == "below" else np.abs(gap).ravel())
        assert found[number] == gap[int(np.ceil(0.1 * gap.size)) - 1]
