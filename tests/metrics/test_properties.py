"""What holds for every input, looked for by hypothesis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

values = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-100, 100),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1e15]),
)
rows = st.lists(
    st.tuples(values, values, st.integers(0, 3), st.sampled_from("ab")),
    min_size=1,
    max_size=25,
)
overlapping = st.lists(
    st.tuples(values, values, st.integers(0, 3), st.tuples(*[st.booleans()] * 3)),
    min_size=1,
    max_size=25,
)
averages = st.sampled_from(["pairs", "queries"])
COMPARISONS = ("all", "intra", "inter")
many = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def columns(rows):
    y, s, q, group = zip(*rows, strict=True)
    return y, s, {"sensitive_features": np.array(group), "qid": q}


def defined(r):
    """Return the estimates, which are known where there is support."""
    assert np.array_equal(np.isnan(r.estimate), r.support == 0)
    assert np.isnan(r.covariance[r.support == 0]).all()
    return r.estimate[r.support > 0]


@many
@given(rows | overlapping, averages)
def test_shares_are_between_0_and_1(data, average):
    y, s, who = columns(data)
    options = {"average": average, "variance": "cluster", **who}
    every = [pairwise_accuracy(y, s, comparison=c, **options) for c in COMPARISONS]
    every += [m(y, s, **options) for m in (pairwise_exposure, pairwise_preference)]
    every.append(ndcg(np.clip(np.abs(y), 0, 10), s, qid=who["qid"], k=3))
    for estimate in map(defined, every):
        assert ((estimate >= 0) & (estimate <= 1 + 1e-12)).all()


@many
@given(rows | overlapping, averages)
def test_covariance_of_clusters_has_no_negative_direction(data, average):
    y, s, who = columns(data)
    options = {"average": average, "variance": "cluster", **who}
    for r in (
        pairwise_accuracy(y, s, **options),
        pairwise_exposure(y, s, **options),
        matched_pair_calibration(np.clip(y, -10, 10), s, epsilon=1.0, **options),
    ):
        known = ~np.isnan(np.diag(r.covariance))
        covariance = r.covariance[np.ix_(known, known)]
        if known.any():
            np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12, atol=1e-15)
            scale = np.abs(covariance).max()
            assert np.linalg.eigvalsh(covariance).min() >= -1e-9 * scale - 1e-12


@many
@given(rows | overlapping, averages, st.sampled_from(["below", "both"]), values)
def test_calibration_is_within_the_differences(data, average, direction, epsilon):
    y, s, who = columns(data)
    y = np.clip(y, -100, 100)
    q = np.array(who["qid"])
    r = matched_pair_calibration(
        y,
        s,
        epsilon=abs(epsilon),
        average=average,
        direction=direction,
        variance="cluster",
        **who,
    )
    widest = max(np.ptp(y[q == label]) for label in q)
    assert (np.abs(defined(r)) <= widest * (1 + 1e-9) + 1e-9).all()
