"""
Plan, prove and watch on MovieLens
==================================

How many users does it take to find a gap of two points? Is a gap shown to be small
enough? And when a release makes it worse, how soon is that seen by somebody who looks
every month? This example answers them on the ratings of MovieLens.
"""

# %%
# Dramas and other films are the groups. The score of a film for a user is the mean
# rating of all other users, pulled towards the mean of all ratings as if there were ten
# more. The ratings are few for their twenty years, so a "month" is 28 users here, who
# are drawn at random: nothing changes by itself.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skrankfair.datasets import fetch_movielens
from skrankfair.metrics import pairwise_accuracy
from skrankfair.monitoring import Monitor
from skrankfair.planning import power_curve

data = fetch_movielens()
ratings = data.ratings.copy()
ratings["kind"] = np.where(data.genres.loc[ratings.index, "Drama"], "drama", "other")
by_film = ratings.groupby("movie_id")["rating"]
others = by_film.transform("sum") - ratings["rating"]
n_others = by_film.transform("size") - 1
ratings["score"] = (others + 10 * ratings["rating"].mean()) / (n_others + 10)
users = np.random.default_rng(0).permutation(ratings["user_id"].unique())
number = pd.Series(np.arange(users.size) // 28, index=users)[ratings["user_id"]]
months = pd.date_range("2025-01-01", periods=number.max() + 1, freq="MS")
ratings["month"] = months[number.to_numpy()].strftime("%Y-%m-%d")


def inter_group_accuracy(rows):
    """Return how often the better film of a user is ranked above one of the others.

    Pairs grow with the square of the films, so that this weight lets users count alike.
    """
    n_films = rows.groupby("user_id")["movie_id"].transform("size")
    return pairwise_accuracy(
        rows["rating"],
        rows["score"],
        sensitive_features=rows["kind"],
        qid=rows["user_id"],
        comparison="inter",
        sample_weight=1 / n_films**2,
    )


# %%
# **Plan.** The first two months are the pilot. Its users are as unlike each other, and
# rate as many films, as those to come.
pilot = inter_group_accuracy(ratings[ratings["month"] < "2025-03"])
pilot.required(gap=0.02)

# %%
power_curve(pilot, gap=[0.02, 0.05, 0.1]).plot()
plt.show()

# %%
# **Prove.** Over all users, is the gap within a margin of ten points? The interval
# would have to be inside of it, and is outside: dramas win their comparisons far more
# often, so the claim cannot be made.
inter_group_accuracy(ratings).equivalence_test(margin=0.1)

# %%
# **Watch.** Each month is an update of a monitor. The first six are the baseline, which
# says what is usual. In May 2026 a release lowers the scores of dramas by a fifth of a
# star.
released = ratings.assign(
    score=ratings["score"]
    - 0.2 * ((ratings["kind"] == "drama") & (ratings["month"] >= "2026-05"))
)
monitor = Monitor(metric=inter_group_accuracy, baseline=6)
for month, rows in released.groupby("month"):
    monitor.update(rows, when=month)
monitor

# %%
# The alarm says since when, and how much. One may look every month for years: the
# chance of any false alarm ever is 5%.
monitor.plot()
plt.show()

# %%
# ``Monitor("gap.jsonl", ...)`` keeps the results in a file, and ``skrankfair monitor``
# does the same from the command line.
