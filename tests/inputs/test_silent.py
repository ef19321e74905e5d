"""What was wrong without a word: parts, order, size, and warnings that were lost."""

import warnings

import numpy as np
import pytest

from skrankfair import metrics
from skrankfair._inputs.validation import weighted_quantile
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import marginal_outcome_test, predictive_parity_test
from tests.calls import GOOD, WITH_VARIANCE, call


class TestOneQueryPerPart:
    """Whether a part has one query or many, its sums are of queries."""

    @pytest.mark.parametrize("metric", WITH_VARIANCE, ids=lambda m: m.__name__)
    def test_one_query_alone_has_no_error_and_says_what_has(self, metric):
        one = {**GOOD, "qid": [7] * 6}
        one = {name: one[name] for name in ("y_true", "y_score", "qid")}
        if metric is metrics.pairwise_exposure:
            one["y_true"] = None
        match = "no standard error .* There is one query: leave out qid, or pass var"
        with pytest.warns(UndefinedMetricWarning, match=match):
            r = call(metric, **one)
        assert r.variance == "cluster"
        assert np.isnan(r.standard_error).all()
        assert np.isfinite(r.estimate).all()
        by_items = call(metric, **one, variance="item")
        without = call(metric, **{**one, "qid": None})
        assert by_items.variance == without.variance == "item"
        np.testing.assert_array_equal(by_items.covariance, without.covariance)
        np.testing.assert_array_equal(by_items.estimate, r.estimate)

    def test_no_advice_that_would_not_help(self):
        one = {**GOOD, "qid": [7] * 6}
        for options in ({"average": "queries"}, {"cluster": [1] * 6}):
            with pytest.warns(UndefinedMetricWarning) as said:
                metrics.pairwise_accuracy(**one, **options)
            assert "leave out qid" not in str(said[0].message)


@pytest.mark.parametrize("n_rows", [2, 3, 4, 100])
@pytest.mark.parametrize(
    ("metric", "options"),
    [(metrics.positive_rate_shift, {"threshold": 0.5}), (metrics.rank_shift, {})],
)
def test_groups_that_some_resample_leaves_out(metric, options, n_rows):
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 140), rng.random(140)
    group = ["a"] * n_rows + ["b"] * (140 - n_rows)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        r = metric(y, score, sensitive_features=group, n_resamples=50, **options)
    expected = [] if n_rows == 100 else ["a"]
    without = np.isnan(np.diag(r.covariance))
    assert [g for g, no in zip(r.groups, without, strict=True) if no] == expected
    names = [str(w.message).rpartition(", in: ")[2] for w in said]
    assert names == [f"{group}." for group in expected]


SQUARED = (
    *((m, {}) for m in (metrics.calibration_error, metrics.rank_shift)),
    *((m, {}) for m in (metrics.mean_squared_error, predictive_parity_test)),
    (metrics.positive_rate_shift, {"threshold": 0.5}),
    (marginal_outcome_test, {"threshold": 0.1}),
    (metrics.matched_pair_calibration, {"epsilon": 1.0}),
)


@pytest.mark.parametrize("size", [2e307, 1e160, 1e61])
@pytest.mark.parametrize("name", ["y_true", "y_score"])
@pytest.mark.parametrize(("metric", "options"), SQUARED)
def test_numbers_whose_squares_overflow_are_refused(metric, options, name, size):
    if metric is metrics.matched_pair_calibration and name == "y_score":
        return  # scores are only compared
    columns = {"y_true": [2.0, 1.0, 0.0, 2.0, 1.0, 0.0], "y_score": [1, 2, 3, 4, 5, 6]}
    columns[name] = np.array(columns[name]) * size
    with pytest.raises(ValueError, match=rf"^{name} must be between -1e\+60 and "):
        metric(**columns, sensitive_features=list("fmfmfm"), **options)


def test_weights_whose_squares_are_nothing_are_refused():
    columns = {"y_true": [1, 0, 1], "y_score": [0.3, 0.1, 0.2]}
    for small in (5e-324, 1e-200):
        message = f"^sample_weight must be 0 or at least 1e-60.* got {small:g} in row 1"
        with pytest.raises(ValueError, match=message):
            metrics.mean_squared_error(**columns, sample_weight=[0.0, small, small])
    result = metrics.mean_squared_error(**columns, sample_weight=[0.0, 1e-60, 1e-60])
    np.testing.assert_allclose(result.estimate, (0.1**2 + 0.8**2) / 2)
    expected = metrics.mean_squared_error(**columns, sample_weight=[0.0, 1.0, 1.0])
    np.testing.assert_allclose(result.standard_error, expected.standard_error)


@pytest.mark.parametrize("unit", [2.0**-1073, 2.0**-1000, 2.0**1021, 2.0**1000])
def test_ndcg_does_not_depend_on_the_unit(unit):
    y, score = np.array([2, 1, 0, 2, 1, 0.0, 0, 0, 0]), [1, 5, 3, 2, 4, 6, 1, 2, 3]
    query = np.repeat([1, 2, 3], 3)
    expected = metrics.ndcg(y, score, qid=query)
    for other in (y * unit, np.where(query == 1, y, y * unit)):
        r = metrics.ndcg(other, score, qid=query)
        np.testing.assert_array_equal(r.estimate, expected.estimate)
        np.testing.assert_array_equal(r.standard_error, expected.standard_error)


def test_the_order_of_rows_decides_no_quantile():
    """A quarter of the weight lies at a row, up to the rounding of its sum."""
    rng = np.random.default_rng(1212)
    x, weight = rng.random(40), rng.choice([0.1, 0.2, 0.3, 0.7], 40)
    levels = np.cumsum(weight[np.argsort(x)])[:-1] / weight.sum()
    rows = rng.permutation(40)
    np.testing.assert_array_equal(weighted_quantile(x, levels, weight), np.sort(x)[:-1])
    again = weighted_quantile(x[rows], levels, weight[rows])
    np.testing.assert_array_equal(again, np.sort(x)[:-1])
