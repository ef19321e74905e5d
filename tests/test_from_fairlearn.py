"""Every line of the table from fairlearn to skrankfair is true."""

import re
from pathlib import Path

import fairlearn.metrics as fl
import numpy as np
import pytest
import sklearn.metrics as sk

from skrankfair import metrics

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide" / "rates.rst"
LINES = re.findall(
    r"^   \* - ``(.*)``\n     - ``(.*)``$",
    GUIDE.read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)
RNG = np.random.default_rng(0)
Y, S = RNG.integers(0, 2, 300), RNG.random(300)
NAMES = {
    **vars(metrics),
    "fl": fl,
    "sk": sk,
    "MetricFrame": fl.MetricFrame,
    "y": Y,
    "s": S,
    "d": (S + 0.3 * Y > 0.6).astype(int),
    "g": RNG.choice(list("abc"), 300),
}


@pytest.mark.parametrize(("theirs", "ours"), LINES, ids=[line[1] for line in LINES])
def test_both_sides_are_equal(theirs, ours):
    expected, found = (np.asarray(eval(text, dict(NAMES))) for text in (theirs, ours))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_the_table_is_there():
    assert len(LINES) > 15
