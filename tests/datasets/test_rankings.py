"""Rankings as columns, and rankings in which one group has an advantage."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skrankfair.datasets import make_biased_rankings, rankings_to_columns
from skrankfair.distributed import measure
from skrankfair.metrics import expected_advantage, pairwise_parity
from tests.reference import advantage as naive


def test_columns():
    columns = rankings_to_columns([["b", "a"], ("a",), iter([3, "a", ("b", 1)])])
    assert columns["y_score"].tolist() == [2, 1, 1, 3, 2, 1]
    assert columns["qid"].tolist() == [0, 0, 1, 2, 2, 2]
    labels = ["b", "a", "a", 3, "a", ("b", 1)]
    assert columns["sensitive_features"] == labels


@pytest.mark.parametrize("rankings", [[], [["a"], []]])
def test_nothing_to_rank(rankings):
    with pytest.raises(ValueError, match="rankings must be lists of at least one item"):
        rankings_to_columns(rankings)


def test_are_what_metrics_take():
    rng = np.random.default_rng(0)
    lists = [rng.choice(list("ab"), 7).tolist() for _ in range(9)]
    columns = rankings_to_columns(lists)
    s, g, q = (list(columns[n]) for n in ("y_score", "sensitive_features", "qid"))
    expected = naive.pairwise_parity(s, q, {x: [y == x for y in g] for x in "ab"})
    r = pairwise_parity(**columns)
    np.testing.assert_allclose(r.estimate, [value for value, _ in expected.values()])
    names = {name: name for name in columns}
    results = measure(pd.DataFrame(columns), ["ndkl", "pairwise_parity"], **names)
    np.testing.assert_allclose(results["pairwise_parity"].estimate, r.estimate)


def test_position_probabilities_of_lists():
    # R of equation 10 from lists of items, which gives the metrics of the mean shares.
    rng = np.random.default_rng(0)
    items = [rng.permutation(list("pqrstu")).tolist() for _ in range(20)]
    group = dict(zip("pqrstu", "aabbab", strict=True))
    frame = pd.DataFrame(rankings_to_columns(items))
    place = frame.groupby("qid").cumcount()
    matrix = pd.crosstab(place, frame["sensitive_features"]) / len(items)
    labels = [group[item] for item in matrix.columns]
    table = expected_advantage(matrix, sensitive_features=labels, step=2, k=2)
    r = pairwise_parity(
        y_score=frame["y_score"],
        sensitive_features=frame["sensitive_features"].map(group),
        qid=frame["qid"],
        average="representation",
    )
    np.testing.assert_allclose(table["pairwise_parity"], r.estimate)


def protected(data):
    return data.sensitive_features.reshape(-1, data.position_share.size) == "protected"


def test_is_filled_from_the_top():
    # The law, item by item, from the same draws.
    rng = np.random.default_rng(3)
    draws = rng.random((50, 15)) < 0.4
    data = make_biased_rankings(50, 15, 0.3, 0.4, random_state=3)
    for row, found in zip(draws, protected(data), strict=True):
        left = {True: data.n_protected, False: 15 - data.n_protected}
        for drawn, taken in zip(row, found, strict=True):
            wanted = bool(drawn) if left[True] and left[False] else left[True] > 0
            assert taken == wanted
            left[wanted] -= 1


def test_columns_of_biased_rankings():
    data = make_biased_rankings(3, 4, 0.5, 1.0)
    assert data.y_score.tolist() == [4, 3, 2, 1] * 3
    assert data.qid.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    groups = ["protected", "protected", "other", "other"]
    assert data.sensitive_features.tolist() == groups * 3
    assert "3 rankings of 4 items, 2 of them protected" in data.DESCR


def naive_ranking(rng, n, n_protected, advantage, pattern, k):
    """One ranking of the supplement, step by step: whether each item is protected."""
    left = {True: n_protected, False: n - n_protected}
    top = {"padded": [False] * k, "rooney": [True] * max(1, k // 10)}.get(pattern, [])
    if pattern == "rooney":
        top = list(rng.permutation(top + [False] * (k - len(top))))
    for taken in top:
        left[bool(taken)] -= 1
    ranking = [bool(taken) for taken in top]
    while left[True] + left[False]:
        chance = advantage
        if pattern == "decreasing":
            chance *= 1 - len(ranking) / n
        taken = bool(rng.random() < chance)
        if not left[taken]:
            taken = not taken
        left[taken] -= 1
        ranking.append(taken)
    return ranking


@pytest.mark.parametrize("pattern", ["constant", "decreasing", "padded", "rooney"])
@pytest.mark.parametrize(("n", "share", "k"), [(12, 0.5, 5), (30, 0.2, 20)])
def test_patterns(pattern, n, share, k):
    options = {"pattern": pattern, "k": k}
    data = make_biased_rankings(2000, n, share, 0.4, random_state=0, **options)
    member, expected = protected(data), data.position_share
    assert (member.sum(axis=1) == data.n_protected).all()
    rng = np.random.default_rng(1)
    naive = [
        naive_ranking(rng, n, data.n_protected, 0.4, pattern, k) for _ in range(2000)
    ]
    error = np.sqrt(expected * (1 - expected) / 2000)
    for drawn in (member, np.array(naive)):
        assert (np.abs(drawn.mean(axis=0) - expected) <= 5 * error + 1e-12).all()
    if pattern == "padded":
        assert not expected[:k].any()
    if pattern == "rooney":
        assert (member[:, :k].sum(axis=1) == max(1, k // 10)).all()
        np.testing.assert_allclose(expected[:k], max(1, k // 10) / k)


@pytest.mark.parametrize("advantage", [0.0, 0.1, 0.35, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_share_of_a_constant_advantage_in_closed_form(share, advantage):
    # Position i sees whether the draws above have used up one of the groups.
    n, drawn = 20, np.arange(20)
    data = make_biased_rankings(1, n, share, advantage)
    m = data.n_protected
    assert m == round(share * n) == protected(data).sum()
    over = stats.binom.sf(m - 1, drawn, advantage)
    only = stats.binom.sf(n - m - 1, drawn, 1 - advantage)
    expected = advantage * (1 - over - only) + only
    np.testing.assert_allclose(data.position_share, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "rising"}, "pattern must be one of"),
        ({"pattern": "padded", "k": 0}, "k must be"),
        ({"pattern": "padded", "k": 11}, "k must leave 0 of the first k places"),
        ({"pattern": "rooney", "share": 0.0}, "k must leave 1 of the first"),
    ],
)
def test_patterns_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        make_biased_rankings(1, 20, **{"share": 0.5, **options})
