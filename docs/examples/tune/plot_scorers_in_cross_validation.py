"""
Fairness in cross-validation
============================

A scorer of skrankfair works wherever scikit-learn takes ``scoring=``. It takes the
groups and the queries from columns of X by name, or from metadata.
"""

# %%
# Simulate 300 searches of 12 offers each. The quality of an offer decides whether it is
# booked; its number of reviews says a little about the quality, and a lot about the
# region, since there are few reviews in the north.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skrankfair import audit_cv
from skrankfair.scoring import get_scorer

rng = np.random.default_rng(0)
X = pd.DataFrame({"search": np.repeat(np.arange(300), 12)})
X["region"] = rng.choice(["north", "south"], p=[0.3, 0.7], size=len(X))
quality = rng.normal(size=len(X))
X["stars"] = quality + rng.normal(size=len(X))
X["reviews"] = quality + 1.5 * (X["region"] == "south") + rng.normal(size=len(X))
y = (quality + 0.5 * rng.normal(size=len(X)) > 0.8).astype(int)
X.head()

# %%
# Here are two scorers from the table of names. The model sees only its features; the
# scorers find the region and the search in X.
who = {"sensitive_features": "region", "qid": "search"}
scoring = {
    "ndcg": get_scorer("ndcg", qid="search"),
    "gap": get_scorer("neg_inter_group_accuracy_difference", **who),
}


def model(*features):
    columns = make_column_transformer((StandardScaler(), list(features)))
    return make_pipeline(columns, LogisticRegression())


models = {
    "stars": model("stars"),
    "stars, reviews": model("stars", "reviews"),
}
cv = GroupKFold(5)
scores = {
    name: cross_validate(m, X, y, scoring=scoring, cv=cv, groups=X["search"])
    for name, m in models.items()
}
pd.DataFrame({name: s["test_gap"] for name, s in scores.items()}).round(3)

# %%
# With reviews the ranking is better but less fair. Each point is a fold.
fig, axes = plt.subplots(1, 2, sharey=True, figsize=(8, 2.4), layout="constrained")
for ax, key, label in zip(
    axes, scoring, ["NDCG (better →)", "gap (← fairer)"], strict=True
):
    for row, found in enumerate(scores.values()):
        values = np.abs(found[f"test_{key}"])
        ax.plot(values, np.full(5, row), "o", color="#767676", alpha=0.6)
        ax.plot(values.mean(), row, "D", color="#333333", markersize=9)
    ax.set_xlabel(label)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_yticks(range(2), labels=list(scores))
axes[0].set_ylim(-0.5, 1.5)
plt.show()

# %%
# One number per fold says that there is a gap; for an interval, audit all folds
# together. Scores are out-of-fold, so every search is ranked only by the model that did
# not see it.
report = audit_cv(models["stars, reviews"], X, y, cv=cv, groups="search", **who)
report.results["inter_group_accuracy"].plot()
plt.show()

# %%
report.results["inter_group_accuracy"].contrast("north", "south")

# %%
# Where X has no named columns, pass the same values as metadata, and request them with
# ``True``.
features = X[["stars", "reviews"]].to_numpy()
with sklearn.config_context(enable_metadata_routing=True):
    gap = get_scorer(
        "neg_inter_group_accuracy_difference", sensitive_features=True, qid=True
    )
    found = cross_validate(
        make_pipeline(StandardScaler(), LogisticRegression()),
        features,
        y,
        scoring=gap,
        cv=cv,
        params={
            "sensitive_features": X["region"],
            "qid": X["search"],
            "groups": X["search"],
        },
    )
found["test_score"].round(3)
