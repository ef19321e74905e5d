"""What holds for every input, looked for by hypothesis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from skrankfair import metrics
from skrankfair.metrics import (
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


@many
@given(rows | overlapping, averages)
def test_shares_are_between_0_and_1_and_covariances_have_no_negative(data, average):
    y, s, who = columns(data)
    options = {"average": average, "variance": "cluster", **who}
    every = [pairwise_accuracy(y, s, comparison=c, **options) for c in COMPARISONS]
    every += [m(y, s, **options) for m in (pairwise_exposure, pairwise_preference)]
    every.append(ndcg(np.clip(np.abs(y), 0, 10), s, qid=who["qid"], k=3))
    for r in every:
        assert np.array_equal(np.isnan(r.estimate), r.support == 0)
        assert np.isnan(r.covariance[r.support == 0]).all()
        estimate = r.estimate[r.support > 0]
        assert ((estimate >= 0) & (estimate <= 1 + 1e-12)).all()
        known = ~np.isnan(np.diag(r.covariance))
        if known.any():
            covariance = r.covariance[np.ix_(known, known)]
            scale = np.abs(covariance).max()
            assert np.linalg.eigvalsh(covariance).min() >= -1e-9 * scale - 1e-12


def test_log_loss_clips_by_the_type_of_scores():
    y, score = [1, 0, 1, 1], np.array([1.0, 1.0, 0.0, 0.5])
    for given_scores in map(score.astype, (np.float32, np.float64)):
        found = float(metrics.log_loss(y, given_scores))
        assert found == pytest.approx(sk.log_loss(y, given_scores), rel=1e-6)


def test_a_length_error_names_what_was_passed():
    ways = np.zeros((7, 2), dtype=int)
    with pytest.raises(ValueError, match="cluster: 7") as error:
        metrics.accuracy(np.ones(8), np.ones(8), cluster=ways)
    assert "item" not in str(error.value)


@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("size", [3, 40])
def test_degrees_of_freedom_of_a_dominant_cluster_are_one(size):
    cluster = np.repeat(np.r_[np.zeros(20, dtype=int), 1 + np.arange(size)], 2)
    group = np.arange(cluster.size) % 2
    y = np.arange(cluster.size) % 3 == 0
    who = {"sensitive_features": group, "cluster": cluster}
    for exponent in (-5, -6, -7, -8):
        weight = np.where(cluster == 0, 1.0, 10.0**exponent)
        result = metrics.selection_rate(None, y, sample_weight=weight, **who)
        np.testing.assert_allclose(result.df, 1, atol=2e-3)
        assert result.contrast(*result.groups).df >= 1


def test_the_exposure_of_everybody_has_no_gap_in_any_order():
    rng = np.random.default_rng(0)
    y, score, query = rng.random(2000), rng.random(2000), rng.integers(0, 200, 2000)
    for seed in range(6):
        rows = np.random.default_rng(seed).permutation(2000)
        result = metrics.exposure_gap(
            y[rows], score[rows], qid=query[rows], average="amortized"
        )
        assert result.test().pvalue[0] == 1


def test_slopes_raise_nothing_that_numpy_is_told_to_raise():
    rng = np.random.default_rng(0)
    columns = rng.random(40) > 0.5, rng.random(40)
    features = {"sensitive_features": np.arange(40) % 2}
    with np.errstate(all="raise"):
        for result in (
            metrics.f1(*columns, threshold=0.5, **features),
            metrics.pairwise_accuracy(*columns, **features),
            metrics.matched_pair_calibration(*columns, **features, quantile=0.5),
        ):
            assert np.isfinite(result.standard_error).all()


def test_ndkl_of_many_groups_is_that_of_few_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    group, score = rng.integers(0, 30, 400), rng.integers(0, 90, 400)
    for joint in (False, True):
        whole = metrics.ndkl(None, score, sensitive_features=group, joint=joint)
        with monkeypatch.context() as patch:
            patch.setattr("skrankfair.metrics._normalized_discounted._MOST_CUTS", 1000)
            parts = metrics.ndkl(None, score, sensitive_features=group, joint=joint)
        np.testing.assert_array_equal(parts.estimate, whole.estimate)
