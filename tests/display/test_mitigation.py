"""Rows before and after a mitigation: what is drawn is what was given."""

import numpy as np
from matplotlib.colors import same_color

from skrankfair.display._mitigation import BeforeAfterDisplay
from skrankfair.display._style import UNCLEAR, WORSE
from tests.display.pictures import legend, mitigation


def test_draws_what_there_is():
    display = BeforeAfterDisplay(
        ["f", "m", ("x", 1)],
        [-0.2, 0.1, np.nan],
        [0.0, np.nan, 0.3],
        pvalue_before=[0.001, 0.2, np.nan],
        pvalue_after=[0.5, np.nan, 0.04],
    ).plot()
    points = [
        [p.get_xydata()[0].tolist() for p in side]
        for side in (display.before_, display.after_)
    ]
    assert points == [[[-0.2, 0], [0.1, 1]], [[0.0, 0], [0.3, 2]]]
    (arrow,) = display.arrows_
    assert (arrow.xy, arrow.xyann) == ((0.0, 0), (-0.2, 0))
    colors = [p.get_color() for p in (*display.before_, *display.after_)]
    assert all(map(same_color, colors, [WORSE, UNCLEAR, UNCLEAR, WORSE]))
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["f", "m", "x × 1"]
    assert display.fair_line_.get_xdata()[0] == 0
    text = "before, after, differs from fair, corrected p < 0.05"
    assert ", ".join(legend(display)) == text
    large = {"pvalue_before": [0.5], "pvalue_after": [np.nan]}
    assert len(legend(BeforeAfterDisplay(["a"], [1.0], [2.0], **large).plot())) == 2


def test_one_large_cost_does_not_flatten_the_others():
    picture = mitigation().plot()
    (words,) = picture.outlying_
    assert words.get_text() == "◀ \N{MINUS SIGN}1.5e+03"
    low, high = picture.axes_[2].get_xlim()
    assert -0.02 < low < -0.012
    assert high == -low
    same = mitigation()
    same.costs = same.costs.iloc[:2]
    assert same.plot().outlying_ == []
