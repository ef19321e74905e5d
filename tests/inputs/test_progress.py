"""Long calls say how far they are, where somebody asks for it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skrankfair import audit, audit_cv
from skrankfair._inputs import validation
from tests.scoring.data import DATA

X, Y = DATA.pandas, DATA.y
METRICS = ["intra_group_accuracy", "brier_score"]


def audited(**options):
    score = 1 / (1 + np.exp(-X["x"]))
    return audit(Y, score, sensitive_features=DATA.group, metrics=METRICS, **options)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_of_folds_and_metrics(n_jobs):
    said = []
    who = {"sensitive_features": DATA.group, "cv": 3, "metrics": METRICS}
    audit_cv(
        LogisticRegression(), X[["x"]], Y, progress=said.append, n_jobs=n_jobs, **who
    )
    assert said[:3] == ["1 of 3 folds", "2 of 3 folds", "3 of 3 folds"]
    assert said[3] == "1 of 2 metrics: intra_group_accuracy"


def test_is_shown_on_standard_error_only_if_asked_for(capsys, monkeypatch):
    audited()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(validation, "find_spec", lambda name: None)
    audited(progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "2 of 2 metrics: brier_score\n" in captured.err
    with pytest.raises(ValueError, match="progress must be"):
        audited(progress="yes")
