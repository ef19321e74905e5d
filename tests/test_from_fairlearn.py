"""Every line of the table from fairlearn to skrankfair is true."""

import re
from pathlib import Path

import fairlearn.metrics as fl
import numpy as np
import pytest
import sklearn.metrics as sk

from skrankfair import metrics
from tests.metrics.decisions import drawn, mortgages, resumes
from tests.seeds import rarely

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide" / "rates.rst"
LINES = re.findall(
    r"^   \* - ``(.*)``\n     - ``(.*)``$",
    GUIDE.read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)
NAMES = {**vars(metrics), "fl": fl, "sk": sk, "MetricFrame": fl.MetricFrame}


@pytest.mark.parametrize("rows", [drawn, resumes, *rarely(mortgages)])
@pytest.mark.parametrize(("theirs", "ours"), LINES, ids=[line[1] for line in LINES])
def test_both_sides_are_equal(theirs, ours, rows):
    names = {**NAMES, **rows()}
    expected, found = (np.asarray(eval(text, dict(names))) for text in (theirs, ours))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_a_result_of_one_group_is_a_number_for_a_frame():
    c = drawn()
    both = [fl.selection_rate, lambda y, d: float(metrics.selection_rate(y, d))]
    frames, derived = [], []
    for metric in both:
        who = {"sensitive_features": c["g"]}
        frame = fl.MetricFrame(metrics=metric, y_true=c["y"], y_pred=c["d"], **who)
        frames.append([*frame.by_group, frame.overall, frame.ratio()])
        difference = fl.make_derived_metric(metric=metric, transform="difference")
        derived.append(difference(c["y"], c["d"], **who))
    np.testing.assert_allclose(frames[1], frames[0], rtol=1e-12)
    assert derived[1] == pytest.approx(derived[0], rel=1e-12)
    result = metrics.selection_rate(c["y"], c["d"], sensitive_features=c["g"])
    with pytest.raises(TypeError, match="selection_rate has 3: use"):
        float(result)


def test_the_table_is_there():
    assert len(LINES) > 15
