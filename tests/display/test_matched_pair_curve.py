"""The picture of a curve shows its numbers."""

from types import SimpleNamespace as Result

import numpy as np
import pytest

from skrankfair.display._curves import MatchedPairCurveDisplay
from skrankfair.metrics import matched_pair_curve
from tests.metrics.simulate import columns


@pytest.fixture(name="curve", scope="module")
def _curve():
    return matched_pair_curve(**columns(n_queries=300), epsilon=[0.05, 0.1, 0.4, 0.9])


def legend(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def edges(band):
    """Lower and upper ends of a band, by threshold."""
    points = band.get_paths()[0].vertices
    x = np.unique(points[:, 0])
    return np.array(
        [
            [points[points[:, 0] == v, 1].min() for v in x],
            [points[points[:, 0] == v, 1].max() for v in x],
        ]
    )


def test_a_line_and_a_band_a_group(curve):
    display = curve.plot(confidence_level=0.9)
    assert isinstance(display, MatchedPairCurveDisplay)
    low, high = curve.confidence_interval(0.9)
    assert len(display.lines_) == len(display.bands_) == 3
    for i in range(3):
        np.testing.assert_array_equal(display.lines_[i].get_xdata(), curve.epsilon)
        np.testing.assert_array_equal(
            display.lines_[i].get_ydata(), curve.estimate[:, i]
        )
        np.testing.assert_allclose(
            edges(display.bands_[i]), [low[:, i], high[:, i]], rtol=1e-12
        )
    assert legend(display) == ["a", "b", "c", "90% interval"]
    assert set(display.fair_line_.get_ydata()) == {0}


def test_some_groups_in_their_order(curve):
    display = curve.plot(groups=["c", "a"])
    assert legend(display)[:2] == ["c", "a"]
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), curve.estimate[:, 2])
    with pytest.raises(ValueError, match=r"groups must be among \['a', 'b', 'c'\]"):
        curve.plot(groups=["d"])


def picture(groups, epsilon, values):
    values = np.asarray(values, dtype=float)
    curve = Result(
        groups=groups,
        epsilon=np.asarray(epsilon),
        estimate=values,
        confidence_interval=lambda level: (values, values),
    )
    return MatchedPairCurveDisplay(curve).plot()


@pytest.mark.parametrize(
    ("epsilon", "scale"),
    [([0.1, 0.5], "linear"), ([0.01, 0.5], "log"), ([0.0, 0.5], "linear")],
)
def test_wide_grids_are_logarithmic(epsilon, scale):
    assert picture(["a"], epsilon, np.zeros((2, 1))).ax_.get_xscale() == scale


def test_many_groups_look_different():
    display = picture([str(i) for i in range(20)], [1.0], np.zeros((1, 20)))
    looks = {(line.get_color(), line.get_linestyle()) for line in display.lines_}
    assert len(looks) == 20
    display.figure_.canvas.draw()


def test_gaps_and_labels():
    display = picture(["$x$\n", "_" + "y" * 99], [1, 2], [[np.nan, 1], [0.5, np.nan]])
    first, second, _ = legend(display)
    assert first == r"$x$\n"
    assert second.startswith("_y")
    assert len(second) == 40
    assert not any(text.get_parse_math() for text in display.legend_.get_texts())
    display.figure_.canvas.draw()


def test_bad_level_raises(curve):
    with pytest.raises(ValueError, match="confidence_level must be"):
        curve.plot(confidence_level=2)
