"""The picture of the monotonicity test draws what the test found."""

import numpy as np
import pytest

from skrankfair.datasets import make_biased_rankings
from skrankfair.inference import monotonicity_test
from tests.display.pictures import monotonicity


@pytest.fixture(scope="module")
def result():
    data = make_biased_rankings(80, 8, 0.5, 0.6, random_state=0)
    return monotonicity_test(
        data.y_score,
        sensitive_features=data.sensitive_features,
        qid=data.qid,
        group="protected",
        random_state=0,
    )


def drawn(**changes):
    options = {
        "position": np.arange(1, 4),
        "share": np.array([0.1, 0.9, 0.2]),
        "fit": np.array([0.1, 0.5, 0.5]),
        "band_low": np.array([0.0, 0.4, 0.15]),
        "band_high": np.array([0.2, 0.6, 0.6]),
        "pvalue": 0.2,
        "rejected": False,
        "group": "$a$",
    }
    return monotonicity(**{**options, **changes}).plot()


def test_draws_the_numbers_of_the_test(result):
    display = result.plot()
    np.testing.assert_array_equal(display.fit_.get_ydata(), result.fit)
    places = np.concatenate([line.get_xdata() for line in display.shares_])
    shares = np.concatenate([line.get_ydata() for line in display.shares_])
    np.testing.assert_array_equal(shares[np.argsort(places)], result.share)
    edges = display.band_.get_paths()[0].vertices
    assert edges[:, 1].max() == pytest.approx(result.band_high.max())
    assert display.group_share_.get_ydata()[0] == result.group_share
    assert display.verdict_.get_text() == f"monotone: p = {result.pvalue:.3f}"
    assert display.ax_.get_ylabel() == "share of protected"
    assert "95% band of the fit" in [t.get_text() for t in display.legend_.get_texts()]


def test_marks_shares_outside_the_band():
    display = drawn()
    inside, outside = display.shares_
    assert inside.get_xdata().tolist() == [1, 3]
    assert outside.get_xdata().tolist() == [2]
    assert inside.get_color() != outside.get_color()
    assert len(drawn(share=np.array([0.1, 0.5, 0.5])).shares_) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "monotone: p = 0.200"),
        ({"pvalue": 0.01, "rejected": True}, "not monotone: p = 0.010"),
        ({"pvalue": 1e-9, "rejected": True}, "not monotone: p < 0.001"),
        ({"pvalue": np.nan}, "no verdict"),
    ],
)
def test_verdict(changes, words):
    assert drawn(**changes).verdict_.get_text() == words


def test_without_band():
    display = drawn(band_low=np.full(3, np.nan), band_high=np.full(3, np.nan))
    assert display.band_ is None
    assert len(display.shares_) == 1
    # A label is data, and may have dollars.
    display.figure_.canvas.draw()
    assert display.ax_.get_ylabel() == "share of $a$"
