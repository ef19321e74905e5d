"""
Tune a recommender under a bound
================================

A film that few people have rated is easily ranked below the famous ones, good or not.
This search tunes a recommender on MovieLens for NDCG, but only among the candidates
that treat little-rated films nearly as well as the others.
`~skrankfair.model_selection.fairness_constrained` makes the choice.
"""

# %%
# The earliest 60% of each user's ratings say what is known of a film: the number of its
# ratings, and by how much they exceed the usual ones of their users. The later ratings
# are to be ranked, each user's films against each other.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair.datasets import fetch_movielens
from skrankfair.display import FairnessTradeoffDisplay
from skrankfair.model_selection import fairness_constrained
from skrankfair.scoring import get_scorer, with_errors

ratings = fetch_movielens().ratings.sort_values("timestamp", kind="stable")
by_user = ratings.groupby("user_id")["movie_id"]
early = by_user.cumcount() < 0.6 * by_user.transform("size")
known, later = ratings[early], ratings[~early]
user_mean = known.groupby("user_id")["rating"].mean()
excess = known["rating"] - known["user_id"].map(user_mean)
film = excess.groupby(known["movie_id"]).agg(["sum", "size"])

X = pd.DataFrame(
    {
        "user": later["user_id"],
        "user_mean": later["user_id"].map(user_mean),
        "excess": later["movie_id"].map(film["sum"]).fillna(0),
        "n_ratings": later["movie_id"].map(film["size"]).fillna(0),
    }
)
X["known"] = np.where(X["n_ratings"] < 20, "little", "well")
y = later["rating"]
X["known"].value_counts()

# %%
# The model is a Pipeline. Its first step computes the mean of a film's ratings, pulled
# towards 0 where there are few, plus a bonus for what is not known yet; the second is a
# regression on it. Columns that are not named, such as the user, are dropped before the
# regression sees them.


def optimistic_mean(columns, strength=5.0, bonus=0.0):
    total, count = np.asarray(columns, dtype=float).T
    mean = total / (count + strength)
    return (mean + bonus / np.sqrt(count + strength)).reshape(-1, 1)


quality = FunctionTransformer(optimistic_mean, kw_args={})
features = ColumnTransformer(
    [
        ("quality", quality, ["excess", "n_ratings"]),
        ("user", "passthrough", ["user_mean"]),
    ]
)
model = Pipeline([("features", features), ("ridge", Ridge())])

# %%
# Scorers take the group and the user from columns of X, by name. The gap is the
# difference of the inter-group accuracies: how often a better film stands above a worse
# one of the other kind, when the better film is little known and when it is well known.
who = {"sensitive_features": "known", "qid": "user"}
scoring = {
    "ndcg": get_scorer("ndcg", qid="user", k=10),
    "gap": get_scorer("neg_inter_group_accuracy_difference", **who),
}
grid = {
    "features__quality__kw_args": [
        {"strength": strength, "bonus": bonus}
        for strength in (2, 5, 20)
        for bonus in (-0.4, 0, 0.2, 0.4, 0.6)
    ]
}

# %%
# The search chooses the best candidate whose gap is at most 0.1 with 95% confidence:
# the upper confidence bound of the gap of all folds has to keep the limit. For
# this the search also scores the standard errors. Folds contain whole users.
search = GridSearchCV(
    model,
    grid,
    scoring=with_errors(scoring),
    cv=GroupKFold(5),
    refit=fairness_constrained("ndcg", at_most={"gap": 0.1}, confidence_level=0.95),
)
search.fit(X, y, groups=X["user"])
search.best_params_

# %%
# The table shows what was compared: the mean objective, the gap of all folds, its
# standard error and upper confidence bound. A gap within 0.1 is not enough where the
# data cannot rule out a larger one.
search.refit.table_.round(4)

# %%
# Candidates further up are more useful, and those further left are fairer. The steps
# connect the candidates worth choosing from. The price of the bound is 0.004 of NDCG.
tradeoff = FairnessTradeoffDisplay.from_search(search)
tradeoff.ax_.set_title("Little-known and well-known films", loc="left", pad=42)
plt.show()
