"""Results belong to nobody: their arrays are read-only, and none is the caller's."""

import dataclasses
import pickle
import re
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

from skrankfair import (
    audit,
    inference,
    metrics,
    mitigation_report,
    monitoring,
    planning,
    smoothing,
)
from skrankfair.inference._monotonicity import MetricRecommendation
from skrankfair.mitigation import MultiObjectiveCalibrator
from skrankfair.mitigation._pairwise_penalty import PairwisePenalty
from skrankfair.model_selection import FairnessConstrained
from skrankfair.monitoring._monitor import Alarm
from skrankfair.smoothing._curve_pairs import CurvePairs
from tests.test_public_api import PUBLIC

N = 120
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N).astype(float)
S = RNG.random(N)
GROUP = RNG.choice(["a", "b"], N)
WHO = {"sensitive_features": GROUP, "sample_weight": np.ones(N)}
RANKED = {**WHO, "qid": np.arange(N) // 6}
GRID = np.linspace(0.3, 0.7, 4)
EPSILON = np.array([0.1, 0.2])


def results():
    """Return results of every kind."""
    pairs = metrics.pairwise_accuracy(Y, S, **RANKED)
    calibrator = MultiObjectiveCalibrator(weights=[1.0, 2.0])
    scores, outcomes = np.column_stack([S, -S]), np.column_stack([Y, 1 - Y])
    calibrator.fit(scores, outcomes, sensitive_features=GROUP)
    return [
        pairs,
        pairs.compact(),
        metrics.GroupEstimates.from_json(pairs.to_json()),
        pairs.test(),
        pairs.contrast("a", "b"),
        pairs.contrast("a", "b").equivalence_test(margin=0.1),
        pairs.contrast("a", "b").required(gap=0.1),
        planning.power_curve(planning.plan_rates(0.3, share=0.2), gap=GRID),
        planning.plan_rates(0.3, share=0.2),
        planning.draw_pairs(RANKED["qid"], random_state=0),
        metrics.equalized_odds(Y, S, threshold=0.5, **WHO),
        metrics.ndkl(None, S, **RANKED),
        metrics.skew_at_k(None, S, k=2, **RANKED).test(n_resamples=9),
        metrics.matched_pair_curve(Y, S, epsilon=EPSILON, **RANKED),
        inference.monotonicity_test(S, group="a", n_resamples=9, **RANKED),
        inference.prefix_test(S, group="a", sensitive_features=GROUP),
        inference.outcome_inequality_test(Y, S, n_resamples=9, **RANKED),
        inference.predictive_parity_test(Y, S, grid=GRID, n_resamples=9, **WHO),
        inference.score_order_test(Y, S, n_resamples=9, **WHO),
        inference.marginal_outcome_test(Y, S, threshold=0.5, n_resamples=9, **WHO),
        smoothing.nadaraya_watson(Y, S, GRID, sample_weight=WHO["sample_weight"]),
        calibrator.audit_objectives(scores, outcomes, sensitive_features=GROUP),
        mitigation_report(S, 1 - S, Y, sensitive_features=GROUP),
        audit(Y, S, **RANKED),
        audit(Y, S, **RANKED).changes_since(audit(Y, -S, **RANKED)),
    ]


def walk(thing, name, found):
    """Collect arrays and classes of all public attributes, and of what they hold."""
    if isinstance(thing, np.ndarray):
        found.append((name, thing))
    elif isinstance(thing, Mapping | tuple):
        items = thing.items() if isinstance(thing, Mapping) else enumerate(thing)
        for key, value in items:
            walk(value, f"{name}[{key!r}]", found)
    elif dataclasses.is_dataclass(thing) and type(thing).__name__ not in NOT_RESULTS:
        found.append((name, type(thing)))
        for attribute in dir(thing):
            if not attribute.startswith("_"):
                value = value_of(thing, attribute)
                if isinstance(value, np.ndarray) and not np.shares_memory(
                    value, value_of(thing, attribute)
                ):
                    continue  # made anew each time, so that it belongs to nobody
                if not callable(value) or dataclasses.is_dataclass(value):
                    walk(value, f"{name}.{attribute}", found)


def value_of(thing, name):
    """Return an attribute; None for a property that this result does not have."""
    try:
        return getattr(thing, name)
    except ValueError:
        return None


#: What a result is computed from, which `sums` and `metric` hold.
NOT_RESULTS = ("ClusterSums", "ResampledSums", "Metric", "Permutation")


@pytest.fixture(scope="module", name="found")
def _found():
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for result in results():
            walk(result, type(result).__name__, found)
    return found


def test_every_kind_of_result_is_looked_at(found):
    met = {thing for _, thing in found if isinstance(thing, type)}
    public = {
        value
        for name, value in PUBLIC
        if dataclasses.is_dataclass(value) and not name.endswith("Display")
    }
    # No arrays, or a function of scores.
    plain = {MetricRecommendation, Alarm, FairnessConstrained, PairwisePenalty}
    assert public - plain <= met
    assert CurvePairs in met


def test_arrays_are_read_only_and_none_is_the_caller_s(found):
    given = [Y, S, GROUP, GRID, EPSILON, WHO["sample_weight"], RANKED["qid"]]
    for name, array in found:
        if isinstance(array, np.ndarray):
            assert not array.flags.writeable, name
            assert not any(np.shares_memory(array, column) for column in given), name


def test_copies_are_read_only_too():
    result = metrics.pairwise_accuracy(Y, S, **RANKED)
    again = pickle.loads(pickle.dumps(result))
    with pytest.raises(ValueError, match="read-only"):
        again.estimate[0] = 0.0
    np.testing.assert_array_equal(again.estimate, result.estimate)


@pytest.mark.filterwarnings("ignore")
def test_notebooks_show_every_result_as_text():
    shown = [*results(), metrics.impact_ratio(Y, S > 0.5, sensitive_features=GROUP)]
    for result in [*shown, monitoring.Monitor()]:
        html = result._repr_html_()
        assert "<" not in re.sub(r"</?[a-z0-9]+>", "", html)
        assert len(html) > 10
