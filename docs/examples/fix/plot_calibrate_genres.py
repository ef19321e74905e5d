"""
Calibrate a recommender by genre
================================

A recommender says how likely a user is to rate a film four stars or more. Does the same
score mean the same for a drama and for a horror film? Here it does not. A calibration
by genre fixes that, and the last plot shows what it changes and what it costs.
"""

# %%
# The first half of every user's ratings is for training, the next quarter for
# calibration, and the last quarter is held out. The score is as simple as it gets: how
# much the user likes films plus how much the film is liked, both pulled towards the
# overall mean.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skrankfair import mitigation_report
from skrankfair.datasets import fetch_movielens
from skrankfair.inference import predictive_parity_test
from skrankfair.mitigation import GroupCalibrator

data = fetch_movielens()
ratings = data.ratings.sort_values(["user_id", "timestamp"], kind="stable")
by_user = ratings.groupby("user_id")["rating"]
place = by_user.cumcount() / by_user.transform("size")
liked = (ratings["rating"] >= 4).astype(float)
overall = liked[place < 0.5].mean()


def likes(column):
    """Return how often the user or the film has been liked, as if five times more."""
    known = liked[place < 0.5].groupby(ratings[column]).agg(["sum", "size"])
    share = (known["sum"] + 5 * overall) / (known["size"] + 5)
    return ratings[column].map(share).fillna(overall)


score = (likes("user_id") + likes("movie_id") - overall).clip(0.02, 0.98)

# %%
# A film can have several genres, but a calibration needs disjoint groups, so each film
# counts as the first of these genres that it has.
genres = data.genres.loc[ratings.index]
names = ["Horror", "Sci-Fi", "Comedy", "Drama"]
films = pd.DataFrame({"score": score, "user_id": ratings["user_id"]})
films["genre"] = np.select([genres[name] for name in names], names, "other")
calibration, test = (place >= 0.5) & (place < 0.75), place >= 0.75
films[test].groupby("genre")["score"].agg(["size", "mean"]).round(3)

# %%
# Both calibrations turn the score into a probability, one for all films together and
# the other by genre. Every user has the same weight, with many films or few.
together = GroupCalibrator(cluster="user_id")
by_genre = GroupCalibrator(cluster="user_id", sensitive_features="genre")
together.fit(films.loc[calibration, ["score", "user_id"]], liked[calibration])
by_genre.fit(films[calibration], liked[calibration])
before = together.transform(films.loc[test, ["score", "user_id"]])[:, 0]
after = by_genre.transform(films[test])[:, 0]
by_genre.plot()
plt.show()

# %%
# **Before**, on the held-out ratings: at the same score, some genres are liked more
# often than others. The bands hold for all scores and pairs of genres at once.
who = {
    "sensitive_features": films.loc[test, "genre"],
    "cluster": films.loc[test, "user_id"],
}
parity = predictive_parity_test(liked[test], before, reference="Drama", **who)
parity.plot()
plt.show()

# %%
# **After**, the curves are one as far as the data can tell.
parity = predictive_parity_test(liked[test], after, reference="Drama", **who)
parity.plot()
plt.show()

# %%
# The report shows what changed and what it cost, with intervals by user. That scores
# mean something else by genre is no longer shown, and the logarithmic loss falls. The
# films of a genre that is liked less now rank lower, so its better films lose more
# comparisons to films of other genres: one kind of fairness is paid for with another.
report = mitigation_report(
    before,
    after,
    liked[test],
    sensitive_features=films.loc[test, "genre"],
    qid=films.loc[test, "user_id"],
    metrics=["inter_group_accuracy", "matched_pair_calibration"],
)
report

# %%
report.plot()
plt.show()
