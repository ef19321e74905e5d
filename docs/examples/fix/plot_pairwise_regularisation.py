"""
Learn not to underrank a group
==============================

A good film that few people have rated is easily ranked below the famous ones. Here the
model itself is taught not to do so: `~skrankfair.mitigation.PairwiseFairRegressor` is
ridge regression with the pairwise regularisation of Beutel et al. (2019), and a search
under a bound finds how much of it is needed.
"""

# %%
# The earliest 60% of each user's ratings say what is known of a film: its mean, pulled
# towards 0 where there are few ratings, and their number. The later ratings are to be
# ranked, each user's films against each other. Films with fewer than 20 known ratings
# are the group.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, GroupKFold

from skrankfair.datasets import fetch_movielens
from skrankfair.display import FairnessTradeoffDisplay
from skrankfair.inference import compare
from skrankfair.metrics import ndcg, pairwise_accuracy
from skrankfair.mitigation import PairwiseFairRegressor
from skrankfair.model_selection import fairness_constrained
from skrankfair.scoring import get_scorer, with_errors

data = fetch_movielens()
ratings = data.ratings.sort_values("timestamp", kind="stable")
by_user = ratings.groupby("user_id")["movie_id"]
early = by_user.cumcount() < 0.6 * by_user.transform("size")
known, later = ratings[early], ratings[~early]
user_mean = known.groupby("user_id")["rating"].mean()
excess = known["rating"] - known["user_id"].map(user_mean)
film = excess.groupby(known["movie_id"]).agg(["sum", "size"])
film = film.reindex(later["movie_id"]).fillna(0).set_index(later.index)

X = data.genres.loc[later.index].astype(float)
X["quality"] = film["sum"] / (film["size"] + 5)
X["popularity"] = np.log1p(film["size"])
X["user_mean"] = later["user_id"].map(user_mean)
X["known"] = np.where(film["size"] < 20, "little", "well")
X["user"] = later["user_id"]
y = later["rating"]
X["known"].value_counts()

# %%
# A fifth of the users are kept for the final comparison. The model does not see the
# columns of the group and the user, and needs neither of them to predict.
kept = X["user"] % 5 == 0
X_learn, y_learn, X_test, y_test = X[~kept], y[~kept], X[kept], y[kept]
who = {"sensitive_features": "known", "qid": "user"}
model = PairwiseFairRegressor(random_state=0, **who)

# %%
# A grid search finds the strength of the penalty that gives the best NDCG with a gap
# between the inter-group accuracies of at most 0.1, with 95% confidence. Folds contain
# whole users.
search = GridSearchCV(
    model,
    {"strength": [0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 1]},
    scoring=with_errors(
        {
            "ndcg": get_scorer("ndcg", qid="user", k=10),
            "gap": get_scorer("neg_inter_group_accuracy_difference", **who),
        }
    ),
    cv=GroupKFold(5),
    refit=fairness_constrained("ndcg", at_most={"gap": 0.1}, confidence_level=0.95),
)
search.fit(X_learn, y_learn, groups=X_learn["user"])
search.best_params_

# %%
# The gap falls as the strength grows, up to 0.07. From 0.1 on nothing is left of the
# correlation, and any stronger penalty gives the same model.
search.refit.table_.assign(strength=search.cv_results_["param_strength"]).round(4)

# %%
# What does the model do differently? Popularity had given well-known films away.
coef = pd.DataFrame(
    {
        "ridge": model.set_params(strength=0).fit(X_learn, y_learn).coef_,
        "fair": search.best_estimator_.coef_,
    },
    index=model.feature_names_in_,
)
coef.loc[["quality", "popularity", "user_mean"]].round(3)

# %%
# For the users that were kept, how often does a better film win against a worse one of
# the other kind? The ratio compares better films that are well known with those that
# are little known.
groups, users = X_test["known"], X_test["user"]
scores = {"ridge": model.predict(X_test), "fair": search.predict(X_test)}
accuracy = {
    name: pairwise_accuracy(
        y_test, score, sensitive_features=groups, qid=users, comparison="inter"
    )
    for name, score in scores.items()
}
ratio = {
    name: r.contrast("well", "little", kind="ratio") for name, r in accuracy.items()
}
print(f"ridge: {ratio['ridge']}\nfair:  {ratio['fair']}")

# %%
# This is what it costs.
of = {name: ndcg(y_test, score, qid=users, k=10) for name, score in scores.items()}
compare(of["fair"], of["ridge"])

# %%
# Candidates further up are more useful, and those further left are fairer.
tradeoff = FairnessTradeoffDisplay.from_search(search)
tradeoff.ax_.set_title("Little-known and well-known films", loc="left", pad=42)
plt.show()
