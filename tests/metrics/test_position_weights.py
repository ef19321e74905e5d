"""One vocabulary of position weights: the same words for every metric, ranks from 1."""

import numpy as np
import pytest

from skrankfair import metrics
from tests.calls import taking
from tests.seeds import together

WEIGHTED = {
    metrics.dips: {},
    metrics.exposure: {},
    metrics.exposure_gap: {},
    metrics.exposure_parity: {},
    metrics.matched_pair_calibration: {"epsilon": 0.5},
    metrics.normalized_discounted_difference: {"step": 1},
    metrics.normalized_discounted_ratio: {"step": 1},
    metrics.normalized_discounted_kl: {"step": 1},
}
#: Those in which `k` cuts any weights.
VALUES = {metrics.ndcg: {}, metrics.boost_value: {"boost": 0.25}}
NAMED = {
    "uniform": ({}, lambda r: np.ones(r.size)),
    "dcg": ({}, lambda r: 1 / np.log2(r + 1)),
    "reciprocal": ({}, lambda r: 1 / r),
    "geometric": ({}, lambda r: 0.8 ** (r - 1)),
    "patience": ({"patience": 0.5}, lambda r: 0.5 ** (r - 1)),
    "top": ({}, lambda r: r <= 10),
    "k": ({"k": 3}, lambda r: r <= 3),
}
NAME_OF = {"patience": "geometric", "k": "top"}
each_metric = together("metric", [pytest.param(m, id=m.__name__) for m in WEIGHTED])


def measure(metric, n_items=14, **options):
    """Some lists with ties, of which only the lengths are the same."""
    rng = np.random.default_rng(3)
    n = 12 * n_items
    y, s = rng.integers(0, 3, n), rng.integers(0, 8, n) / 8
    columns = {
        "sensitive_features": rng.choice(["a", "b"], n),
        "qid": np.repeat(np.arange(12), n_items),
    }
    if metric is metrics.ndcg:
        del columns["sensitive_features"]
    return metric(y, s, **columns, **{**WEIGHTED, **VALUES}[metric], **options)


def assert_same(a, b):
    np.testing.assert_allclose(a.estimate, b.estimate, 1e-12)
    np.testing.assert_allclose(a.standard_error, b.standard_error, 1e-9)


def test_no_metric_is_left_out():
    others = {*VALUES, metrics.expected_advantage, metrics.item_dissatisfaction}
    assert taking("position_weight") == {*WEIGHTED, *others}


@together("metric", [pytest.param(m, id=m.__name__) for m in (*WEIGHTED, *VALUES)])
@pytest.mark.parametrize("case", NAMED)
def test_name_function_and_array(metric, case):
    options, function = NAMED[case]
    named = measure(metric, position_weight=NAME_OF.get(case, case), **options)
    assert_same(measure(metric, position_weight=function), named)
    weights = function(np.arange(1, 15))
    assert_same(measure(metric, position_weight=weights), named)
    # Zeros follow the last weight of an array.
    short = weights[: np.flatnonzero(weights)[-1] + 1]
    assert_same(measure(metric, position_weight=short.tolist()), named)


@each_metric
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position_weight": "dcg", "k": 5}, "^k must be None unless .*'top'; got 5"),
        ({"position_weight": [1.0], "k": 5}, "^k must be None unless .*'top'; got 5"),
        (
            {"position_weight": "top", "patience": 0.5},
            "^patience must be None unless position_weight='geometric'; got 0.5",
        ),
        ({"position_weight": "top", "k": 0}, "^k must be an integer in"),
        ({"position_weight": "top", "k": 2.5}, "^k must be an integer in"),
        ({"position_weight": "geometric", "patience": 1.5}, "^patience must be a num"),
        ({"position_weight": "log"}, "^position_weight must be one of 'uniform', "),
        ({"position_weight": "browsing"}, "got 'browsing'"),
        ({"position_weight": [0.5, -1]}, "not negative at every rank; it is -1.0 at"),
        ({"position_weight": [1.0, 1e308]}, "^position_weight must be between"),
        ({"position_weight": lambda r: r - 2.0}, "it is -1.0 at rank 1"),
        ({"position_weight": [0.5, np.nan]}, "^position_weight must be finite"),
        ({"position_weight": {"a": 1}}, "^position_weight must"),
        ({"position_weight": lambda r: r[0]}, "one weight per rank"),
        ({"position_weight": lambda r: r["a"]}, "raised IndexError"),
        ({"position_weight": [[1.0, 0.5]]}, "^position_weight must be"),
    ],
)
def test_one_set_of_messages(metric, options, message):
    with pytest.raises(ValueError, match=message):
        measure(metric, **options)


@each_metric
def test_parameters_are_kept_and_compared(metric):
    geometric = measure(metric, position_weight="geometric")
    assert geometric.parameters["position_weight"] == "geometric"
    assert geometric.parameters["patience"] == 0.8
    assert "k" not in geometric.parameters
    same = measure(metric, position_weight="geometric", patience=0.8)
    assert (geometric + same).n_clusters == 24
    top = measure(metric, position_weight="top", k=np.int64(4))
    assert top.parameters["k"] == 4
    given = measure(metric, position_weight=np.array([1, 0.5]))
    assert given.parameters["position_weight"] == (1.0, 0.5)
    assert isinstance(hash(tuple(given.parameters.values())), int)
    for result, options in (
        (geometric, {"position_weight": "geometric", "patience": 0.7}),
        (top, {"position_weight": "top", "k": 5}),
        (given, {"position_weight": [1, 0.4]}),
    ):
        with pytest.raises(ValueError, match="same options"):
            result + measure(metric, **options)


@pytest.mark.parametrize("case", NAMED)
def test_expected_advantage_weights_all_metrics_alike(case):
    options, _ = NAMED[case]
    options = {"position_weight": NAME_OF.get(case, case), **options}
    who = {"sensitive_features": list("aababbabbaab")}
    table = metrics.expected_advantage(np.eye(12), step=1, **who, **options)
    for metric, step in (
        (metrics.exposure_parity, {}),
        (metrics.normalized_discounted_kl, {"step": 1}),
    ):
        r = metric(None, -np.arange(12.0), **who, **step, **options)
        np.testing.assert_allclose(table[metric.__name__], r.estimate, 1e-12)
