"""The picture of an outcome inequality test shows what was tested."""

import warnings

import matplotlib as mpl
import numpy as np
import pytest

from skrankfair.display._style import UNCLEAR, WORSE
from skrankfair.inference import outcome_inequality_test
from tests.display.pictures import inequality
from tests.metrics.simulate import columns


@pytest.fixture(name="test", scope="module")
def _test():
    data = columns(n_queries=2000, labels="ab")
    data["y_score"] = data["y_score"] - 2.0 * (data["sensitive_features"] == "a")
    return outcome_inequality_test(**data)


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def values(display):
    return [point.get_xdata()[0] for point in display.points_]


def colors(display):
    return [mpl.colors.to_hex(p.get_color()).upper() for p in display.points_]


def test_draws_the_violations_most_violated_first(test):
    display = test.plot()
    np.testing.assert_array_equal(values(display), np.sort(test.violation)[::-1])
    j, k = test.positions[test.worst]
    assert labels(display)[0] == f"b at {j} above a at {k}"
    assert set(display.critical_.get_xdata()) == {test.critical_value}
    assert set(display.zero_.get_xdata()) == {0}
    rejected = int((test.violation > test.critical_value).sum())
    expected = [WORSE] * rejected + [UNCLEAR] * (10 - rejected)
    assert colors(display) == expected
    assert rejected > 0
    assert display.ax_.get_xlabel() == "violation, in standard errors"


def test_only_the_most_violated(test):
    display = test.plot(max_moments=3)
    assert len(labels(display)) == 3
    words = " ".join(display.ax_.get_xlabel().split())
    assert "7 moments that are violated less are not shown" in words
    with pytest.raises(ValueError, match="max_moments must be an integer"):
        test.plot(max_moments=0)


def test_without_error_a_point_is_at_the_edge():
    display = inequality(violation=[np.inf, 3.0, -np.inf]).plot()
    assert values(display) == pytest.approx([3.45, 3.0, -3.45])
    assert [point.get_marker() for point in display.points_] == [">", "o", "<"]
    assert colors(display) == [WORSE, WORSE, UNCLEAR]
    display.figure_.canvas.draw()


def test_nothing_tested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test = outcome_inequality_test(**columns(labels="a"))
    display = test.plot()
    assert display.missing_.get_text() == "no moment to test"
    assert display.critical_ is None
    assert display.points_ == []
    display.figure_.canvas.draw()


def test_labels_are_plain_text():
    data = columns(n_queries=50, labels="ab")
    names = {"a": "$x$\n", "b": "y" * 100}
    data["sensitive_features"] = [names[g] for g in data["sensitive_features"]]
    display = outcome_inequality_test(**data).plot()
    assert all(text.startswith((r"$x$\n at", "yyy")) for text in labels(display))
    assert max(map(len, labels(display))) < 50
    assert not any(t.get_parse_math() for t in display.ax_.get_yticklabels())
    display.figure_.canvas.draw()
