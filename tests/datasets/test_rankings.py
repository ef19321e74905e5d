"""Ordered lists as columns, and the matrix of positions that they make."""

import numpy as np
import pandas as pd
import pytest

from skrankfair.datasets import rankings_to_columns
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
