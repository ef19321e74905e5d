"""Rows before and after: what is drawn is what was given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color

from skrankfair.display._mitigation import BeforeAfterDisplay
from skrankfair.display._style import UNCLEAR, WORSE


def test_draws_what_there_is():
    display = BeforeAfterDisplay(
        ["f", "$m$", ("x", 1)],
        [-0.2, 0.1, np.nan],
        [0.0, np.nan, 0.3],
        pvalue_before=[0.001, 0.2, np.nan],
        pvalue_after=[0.5, np.nan, 0.04],
        name="gap",
    ).plot()
    points = [
        [p.get_xydata()[0].tolist() for p in side]
        for side in (display.before_, display.after_)
    ]
    assert points == [[[-0.2, 0], [0.1, 1]], [[0.0, 0], [0.3, 2]]]
    (arrow,) = display.arrows_
    assert (arrow.xy, arrow.xyann) == ((0.0, 0), (-0.2, 0))
    colors = [p.get_color() for p in (*display.before_, *display.after_)]
    for color, expected in zip(colors, [WORSE, UNCLEAR, UNCLEAR, WORSE], strict=True):
        assert same_color(color, expected)
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["f", "$m$", "x × 1"]
    assert display.fair_line_.get_xdata()[0] == 0
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["before", "after", "differs from fair, p < 0.05"]
    display.figure_.canvas.draw()


def test_on_given_axes_without_tests():
    ax = plt.subplots()[1]
    display = BeforeAfterDisplay(["a"], [1.0], [2.0], fair_value=None).plot(ax=ax)
    assert display.ax_ is ax
    assert display.fair_line_ is None
    assert len(display.legend_.get_texts()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"after": [1.0, 2.0]}, "after must have one number for each of 1 labels"),
        ({"pvalue_before": [0.1, 0.2]}, "pvalue_before must have one number"),
        ({"confidence_level": 1.0}, "confidence_level must be a number"),
    ],
)
def test_bad_input_raises(options, message):
    given = {"labels": ["a"], "before": [1.0], "after": [2.0], **options}
    with pytest.raises(ValueError, match=message):
        BeforeAfterDisplay(**given).plot()
