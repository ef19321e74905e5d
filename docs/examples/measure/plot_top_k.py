"""
Who gets the first ten places?
==============================

Users rarely look beyond the first places. This example asks whose films get the ten
places at the top, how good these films are, and which good ones are left out.
"""

# %%
# Each user of MovieLens is a query. A film's score is the mean of its earlier ratings.
import matplotlib.pyplot as plt

from skrankfair.datasets import fetch_movielens
from skrankfair.metrics import precision_at_k, recall_at_k, share_at_k

data = fetch_movielens()
ratings = data.ratings.sort_values("timestamp", kind="stable")
train, test = ratings[:80_000], ratings[80_000:]
overall = train["rating"].mean()
seen = train.groupby("movie_id")["rating"].agg(["sum", "size"])
score = (seen["sum"] + 10 * overall) / (seen["size"] + 10)
y_score = test["movie_id"].map(score).fillna(overall)
liked = test["rating"] >= 4
genres = data.genres.loc[test.index, ["Action", "Comedy", "Drama", "Horror"]]
who = {"sensitive_features": genres, "qid": test["user_id"]}

# %%
# The share of the ten places that each genre gets. Genres overlap, since a film may
# have several.
share_at_k(None, y_score, k=10, **who)

# %%
# Of the films among the ten, how many were liked?
precision_at_k(liked, y_score, k=10, **who)

# %%
# And of all that were liked, how many are among the ten? A genre that is low here and
# high above has to be better than others to be shown.
recall = recall_at_k(liked, y_score, k=10, **who)
recall.plot()
plt.show()
