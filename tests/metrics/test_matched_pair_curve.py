"""The curve is matched pair calibration at every threshold."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import matched_pair_calibration, matched_pair_curve
from tests.metrics.common import columns

GRID = [0.05, 0.2, 0.4, 1.0]


def curve(**changes):
    return matched_pair_curve(**{**columns(), "epsilon": GRID, **changes})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direction": "both", "average": "queries"},
        {"variance": "item"},
        {"adjacent": True, "epsilon": [0.4, 1.0]},
        {"estimator": "local_linear", "epsilon": [0.4, 1.0]},
        {"position_weight": "dcg"},
        {"cluster": np.arange(360) // 12},
        {"sample_weight": 1 + np.arange(360) // 6 % 3},
        {"sensitive_features": np.random.default_rng(0).random((360, 3)) < 0.5},
    ],
)
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.SmallSampleWarning")
def test_each_point_is_the_metric_there(options):
    options = dict(options)
    found, grid = curve(**options), options.pop("epsilon", GRID)
    assert found.estimate.shape == (len(grid), 3)
    frame = found.to_frame(0.9).set_index(["epsilon", "group"])
    for i, epsilon in enumerate(grid):
        single = matched_pair_calibration(
            **{**columns(), "epsilon": epsilon, **options}
        )
        assert found.groups == single.groups
        expected = single.to_frame(0.9)
        pd.testing.assert_frame_equal(frame.loc[epsilon], expected, check_names=False)
        np.testing.assert_array_equal(found.estimate[i], single.estimate)
        np.testing.assert_allclose(
            found.standard_error[i], single.standard_error, rtol=1e-12
        )
        np.testing.assert_array_equal(found.support[i], single.support)
        ends = [end[i] for end in found.confidence_interval(0.9)]
        np.testing.assert_allclose(ends, single.confidence_interval(0.9), rtol=1e-12)


def test_band_holds_at_all_thresholds():
    found = curve(variance="item", qid=None)
    error = found.standard_error[:, 0]
    assert (np.diff(error) < 0).all()
    rng = np.random.default_rng(1)
    steps = np.sqrt(np.diff(error**-2.0, prepend=0))
    path = (rng.normal(size=(40_000, 4)) * steps).cumsum(1) * error
    level = stats.norm.cdf(np.quantile(np.abs(path).max(1), 0.9))
    reach = stats.t.ppf(level, [result.df[0] for result in found.results])
    low, high = found.simultaneous_interval(0.9)
    expected = [found.estimate[:, 0] + sign * reach * error for sign in (-1, 1)]
    np.testing.assert_allclose([low[:, 0], high[:, 0]], expected, atol=0.02 * error[0])


def test_default_grid_is_of_close_pairs_to_half_of_all():
    data = columns(n_queries=200)
    found = matched_pair_curve(**data)
    assert found.epsilon.size == 20
    for end, share in ((0, 0.01), (-1, 0.5)):
        single = matched_pair_calibration(**data, quantile=share)
        largest = max(single.first_pass["epsilon"].values())
        assert found.epsilon[end] == pytest.approx(largest, rel=1e-12)
    steps = np.diff(np.log(found.epsilon))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)
    assert not np.isnan(found.estimate).any()
    # Each group has its share of pairs at the ends.
    every = matched_pair_calibration(**data, quantile=1.0).support
    assert (found.support[0] >= 0.01 * every).all()
    assert (found.support[-1] >= 0.5 * every).all()


def test_default_grid_with_many_ties():
    data = columns()
    data["y_score"] = np.round(data["y_score"])
    found = matched_pair_curve(**data)
    assert found.epsilon[0] == pytest.approx(found.epsilon[-1] / 1000)
    assert not np.isnan(found.estimate).any()
    flat = matched_pair_curve(**{**data, "y_score": np.zeros(360)})
    np.testing.assert_array_equal(flat.epsilon, [0])
    assert not np.isnan(flat.estimate).any()


# The result


def test_curves_add_up():
    data = columns()
    parts = [
        curve(**{name: column[rows] for name, column in data.items()})
        for rows in (data["qid"] < 20, data["qid"] >= 20)
    ]
    total, whole = sum(parts), curve()
    assert type(total) is type(whole)
    np.testing.assert_allclose(total.estimate, whole.estimate, rtol=1e-10)
    np.testing.assert_allclose(total.standard_error, whole.standard_error, rtol=1e-9)
    with pytest.raises(ValueError, match="one grid of epsilon"):
        whole + curve(epsilon=[0.1])
    with pytest.raises(TypeError):
        whole + 1


# What is undefined or wrong


def test_undefined_points_are_warned_of_once():
    data = {**columns(), "sensitive_features": np.array(list("ab" * 180))}
    with pytest.warns(UndefinedMetricWarning, match="for want of pairs") as caught:
        found = matched_pair_curve(**data, epsilon=[0, 1e-12, 1.0])
    assert len(caught) == 1
    assert str(caught[0].message).endswith(
        "a (2 of 3 thresholds), b (2 of 3 thresholds)."
    )
    assert caught[0].filename == __file__
    assert np.isnan(found.estimate).sum(0).tolist() == [2, 2]
    assert "–" in repr(found)
