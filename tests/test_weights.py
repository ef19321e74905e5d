"""The law of weights, over all public functions of columns and all calibrations.

A factor common to all weights changes no number of a result, rows of weight 0 are as if
they were not there, and equal weights are none.
"""

import inspect

import numpy as np
import pytest

from skrankfair import metrics, mitigation
from tests import fuzz
from tests.golden.freeze import fields_of
from tests.seeds import together

pytestmark = pytest.mark.filterwarnings("ignore")
N = 240
QUERY = np.arange(N) // 6
#: Options beside those that a call needs, some with numbers chosen from the data.
OPTIONS = {
    "calibration_error": [{}, {"method": "binned"}, {"method": "sweep"}, {"bins": 3}],
    "predictive_parity_test": [{}, {"curve": "nadaraya_watson"}, {"contrasts": "rest"}],
    "marginal_outcome_test": [{}, {"boundary": "constant", "bandwidth": "cv"}],
    "nadaraya_watson": [{}, {"bandwidth": "cv"}, {"bandwidth": "rule_of_thumb"}],
    "matched_pair_calibration": [{}, {"epsilon": None, "quantile": 0.1}],
    "monotonicity_test": [{"method": "chi2"}],
    "outcome_inequality_test": [{"random_state": 0}],
}
FUNCTIONS = fuzz.of_columns()


def cases():
    """Yield functions with options, the name of a weight and clusters, by name."""
    for name, function in FUNCTIONS.items():
        known = set(inspect.signature(function).parameters)
        for place, options in enumerate(OPTIONS.get(name, [{}])):
            for weight in sorted(known & {"sample_weight", "item_weight"}):
                every = ("none", "users", "rows")[: 2 if "qid" in known else 3]
                for number, clusters in enumerate(every, place + len(name)):
                    case = function, options, weight, clusters
                    words = f"{name}-{place}-{weight}-{clusters}"
                    marks = pytest.mark.simulation if number % len(every) else ()
                    yield pytest.param(*case, id=words, marks=marks)


def columns(clusters):
    """Return columns of rows of two groups."""
    rng = np.random.default_rng(0)
    score = rng.random(N)
    return {
        "y_true": (rng.random(N) < score).astype(float),
        "y_score": score,
        "sensitive_features": rng.choice(["a", "b"], N),
        "qid": QUERY,
        "cluster": {"none": None, "users": QUERY // 2, "rows": np.arange(N)}[clusters],
        "values": rng.normal(3, 1, N),
    }


def numbers(result):
    """Return all numbers of a result, and its interval, by name."""
    if isinstance(result, tuple):
        parts = [numbers(part) for part in result]
        return {f"{i}.{k}": v for i, part in enumerate(parts) for k, v in part.items()}
    of_tests = "skrankfair.inference", "skrankfair.smoothing"
    if not type(result).__module__.startswith(of_tests):
        return {name: np.asarray(values) for name, values in fields_of(result)}
    values = {name: getattr(result, name) for name in dir(type(result))}
    values |= vars(result) | {"mass": None}  # the sum of the weights
    for name in ("band", "curve_band", "confidence_interval", "outcome_interval"):
        if name in values:
            values[name] = np.stack(getattr(result, name)())
    shown = {n: np.asarray(v) for n, v in values.items() if not n.startswith("_")}
    return {name: value for name, value in shown.items() if value.dtype.kind in "fi"}


def assert_alike(actual, expected, tolerance):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            actual[name], value, rtol=tolerance, atol=tolerance, err_msg=name
        )


@together(("function", "options", "weight", "clusters"), list(cases()))
def test_weights_are_importance(function, options, weight, clusters):
    data, name = columns(clusters), function.__name__
    if function is metrics.ndcg:
        data["sensitive_features"] = data["sensitive_features"][QUERY]
    known = set(inspect.signature(function).parameters)
    needed = {**fuzz.NEEDED.get(name, {}), **options}
    if "threshold" in known and name != "audit":  # a ranking has no decisions
        needed["threshold"] = 0.5
    if name == "audit" and weight == "item_weight":  # NDCG weighs no items
        needed |= {"metrics": ["inter_group_accuracy", "pairwise_exposure"]}
    values = 1 + np.random.default_rng(1).pareto(1.3, N)
    if weight == "sample_weight" and "qid" in known:
        values = values[QUERY]

    def measured(value, rows=slice(None)):
        taken = {k: v[rows] for k, v in data.items() if k in known and v is not None}
        return numbers(function(**taken, **needed, **{weight: value}))

    weighted = measured(values)
    assert_alike(measured(1024 * values), weighted, 1e-12)
    assert_alike(measured(values / 7), weighted, 1e-8)  # what rounding of weights does
    assert_alike(measured(np.full(N, 0.1)), measured(None), 1e-8)
    some = np.flatnonzero(QUERY % 5)
    removed = measured(np.where(QUERY % 5, values, 0.0))
    assert_alike(removed, measured(values[some], some), 1e-12)
    if clusters == "rows" and "cluster" in known:
        data["cluster"] = None
        assert_alike(measured(values), weighted, 1e-12)


@pytest.mark.parametrize("calibrator", ["nadaraya_watson", "isotonic", "platt"])
@pytest.mark.parametrize("clusters", ["users", "rows"])
def test_calibrations_with_clusters_take_importance(calibrator, clusters):
    """Without clusters a weight of 2 is the row seen twice, as scikit-learn has it."""
    data, weight = columns(clusters), 1 + np.random.default_rng(1).pareto(1.3, N)
    X, y, cluster = data["y_score"][:, None], data["y_true"], data["cluster"]

    def fitted(weight, *batches):
        model = mitigation.GroupCalibrator(calibrator)
        for rows in batches:
            model.partial_fit(X[rows], y[rows], weight[rows], cluster=cluster[rows])
        if not batches:
            model.fit(X, y, weight, cluster=cluster)
        return model.transform(X)

    expected = fitted(weight)
    for actual, wanted in (
        (fitted(weight / 7), expected),
        (fitted(weight / 7, slice(0, 96), slice(96, N)), expected),
        (fitted(np.full(N, 3.0)), fitted(None)),
    ):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9)
    assert np.abs(expected - fitted(None)).max() > 0.01
