"""Places that are not the order of the rows: unknown outcomes, and given positions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skrankfair import metrics
from tests.calls import taking
from tests.metrics.common import assert_same
from tests.reference import shown as naive
from tests.reference.dissatisfaction import visit
from tests.reference.top_k import at_k

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*left out:UserWarning"),
    pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning"),
]
WEIGHT = "dcg"


def of_place(k):
    return visit(WEIGHT, k)


def one_list(seed, n=7):
    """Return a short list with ties, some outcomes unknown, and shown positions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n).astype(float)
    s = rng.integers(0, 5, n) / 4
    group = np.array(["a", "b"])[rng.permutation(n) % 2]
    y[rng.permutation(n)[:2]] = np.nan
    y[np.flatnonzero(~np.isnan(y))[:2]] = 2.0, 0.0
    return y, s, group, 1 + rng.permutation(n + 3)[:n]


MEASURED = {
    "adjacent": (
        lambda y, s, g, **o: metrics.matched_pair_calibration(
            y, s, sensitive_features=g, adjacent=True, quantile=1.0, **o
        ),
        naive.adjacent,
    ),
    "by position": (
        lambda y, s, g, **o: metrics.matched_pair_calibration(
            y, s, sensitive_features=g, epsilon=0.5, position_weight=WEIGHT, **o
        ),
        lambda y, s, a, **o: naive.by_position(y, s, a, 0.5, of_place, **o),
    ),
    "exposure gap": (
        lambda y, s, g, **o: metrics.exposure_gap(y, s, sensitive_features=g, **o),
        lambda y, s, a, **o: naive.exposure_gap(y, s, a, of_place, **o),
    ),
    "ndcg": (
        lambda y, s, g, **o: metrics.ndcg(y, s, k=4, **o),
        lambda y, s, a, **o: naive.ndcg(y, s, k=4, **o),
    ),
    **{
        f"dips {tie_cost}": (
            lambda y, s, g, c=tie_cost, **o: metrics.dips(
                *(y, s), sensitive_features=g, position_weight=WEIGHT, tie_cost=c, **o
            ),
            lambda y, s, a, c=tie_cost, **o: naive.dips(y, s, a, of_place, c, **o),
        )
        for tie_cost in (0.0, 0.5)
    },
}


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("given", [False, True])
def test_rows_without_an_outcome_keep_their_place(name, given):
    measure, by_hand = MEASURED[name]
    for seed in range(12):
        y, s, group, position = one_list(seed)
        o = {"position": position} if given else {}
        r = measure(y, s, group, missing="drop", **o)
        listed = [None if np.isnan(v) else v for v in y]
        o = {"position": position.tolist()} if given else {}
        expected = [by_hand(listed, s.tolist(), group == g, **o) for g in "ab"]
        hint = (name, seed)
        assert_allclose(r.estimate, expected[: len(r.groups)], 1e-12, 1e-13, True, hint)
        assert r.missing == {"dropped": 2, "y_true": 2}


def test_precision_and_pairs_of_the_first_places_count_the_unknown_rows():
    for seed in range(12):
        y, s, group, _ = one_list(seed)
        y = y > 0 if not np.isnan(y).any() else np.where(y > 0, 1.0, y)
        r = metrics.precision_at_k(y, s, sensitive_features=group, k=5, missing="drop")
        columns = [None if np.isnan(v) else v for v in y], s, [0] * y.size
        expected = [at_k("precision_at_k", *columns, group == g, 5) for g in "ab"]
        assert_allclose(r.estimate, expected, 1e-12)
    # The unknown item at the top takes one of the two places.
    y, s, group = [np.nan, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], list("aabab")
    who = {"sensitive_features": group, "missing": "drop"}
    r = metrics.pairwise_accuracy(y, s, **who, k=2)
    assert r.support.sum() == 2
    assert np.isnan(metrics.pairwise_accuracy(y, s, **who, k=1).estimate).all()


def many(seed=0, n_queries=40, size=8):
    """Return queries without ties, some outcomes unknown."""
    rng = np.random.default_rng(seed)
    q = np.repeat(np.arange(n_queries), size)
    s = rng.permutation(q.size) / q.size
    y = rng.integers(0, 3, q.size).astype(float)
    y[rng.random(q.size) < 0.2] = np.nan
    rank = np.array([1 + np.sum(s[q == a] > b) for a, b in zip(q, s, strict=True)])
    return y, s, {"sensitive_features": rng.choice(["a", "b"], q.size), "qid": q}, rank


CALLS = {
    "adjacent": (metrics.matched_pair_calibration, {"adjacent": True, "epsilon": 0.2}),
    "by position": (
        metrics.matched_pair_calibration,
        {"position_weight": "dcg", "direction": "both", "epsilon": 0.2},
    ),
    "linear": (
        metrics.matched_pair_calibration,
        {"adjacent": True, "estimator": "local_linear", "epsilon": 0.3},
    ),
    "dips": (metrics.dips, {"position_weight": "reciprocal"}),
    "gap": (metrics.exposure_gap, {"target": "relevance"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_positions_of_the_scores_change_nothing(name):
    metric, options = CALLS[name]
    y, s, who, rank = many()
    plain = metric(y, s, **who, **options, missing="drop")
    assert_same(metric(y, s, **who, **options, position=rank, missing="drop"), plain)
    # The rows that are gone are not needed where the places are known.
    some = ~np.isnan(y)
    who = {name: column[some] for name, column in who.items()}
    shown = metric(y[some], s[some], **who, **options, position=rank[some])
    assert_same(shown, plain)
    left = metric(y[some], s[some], **who, **options)
    assert np.abs(left.estimate - plain.estimate).max() > 1e-4


def test_exposure_and_curves_take_positions():
    _, s, who, _ = many()
    position = np.tile(np.arange(8, 0, -1), 40)
    r = metrics.exposure(None, s, **who, position=position)
    assert_same(r, metrics.exposure(None, -position, **who))
    y = np.nan_to_num(many()[0])
    assert_same(
        metrics.ndcg(y, s, qid=who["qid"], position=position),
        metrics.ndcg(y, -position, qid=who["qid"]),
    )
    curve = metrics.matched_pair_curve(
        y, s, **who, position=position, adjacent=True, epsilon=[0.1, 0.2]
    )
    one = metrics.matched_pair_calibration(
        y, s, **who, position=position, adjacent=True, epsilon=0.2
    )
    assert_allclose(curve.estimate[1], one.estimate)


def test_every_metric_that_takes_positions_is_looked_at():
    paired = {metrics.matched_pair_calibration, metrics.matched_pair_curve}
    listed = {metrics.exposure, metrics.exposure_gap, metrics.dips, metrics.ndcg}
    assert taking("position") == paired | listed
