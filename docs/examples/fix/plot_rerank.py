"""
Re-rank so that little-known films get places
=============================================

A recommender that scores films by past ratings puts well-known films on top. Here every
list gets little-known films in proportion to its candidates, and the last table says
what that changes and what it costs.
"""

# %%
# The first half of every user's ratings is the past. The score of a film is how much it
# was liked there, pulled towards the overall mean, and a film with fewer than 20
# ratings is little known. The later ratings of each user are a list to rank.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skrankfair.datasets import fetch_movielens
from skrankfair.inference import compare, prefix_test
from skrankfair.metrics import exposure_gap, ndcg, ndkl
from skrankfair.mitigation import FairReranker

data = fetch_movielens()
ratings = data.ratings.sort_values(["user_id", "timestamp"], kind="stable")
by_user = ratings.groupby("user_id")["rating"]
past = by_user.cumcount() / by_user.transform("size") < 0.5
liked = (ratings["rating"] >= 4).astype(float)
known = liked[past].groupby(ratings["movie_id"]).agg(["sum", "size"])
share = (known["sum"] + 5 * liked[past].mean()) / (known["size"] + 5)
often = ratings["movie_id"].map(known["size"]).fillna(0) >= 20
films = pd.DataFrame(
    {
        "score": ratings["movie_id"].map(share).fillna(liked[past].mean()),
        "film": np.where(often, "well-known", "little-known"),
        "user": ratings["user_id"],
    }
)[~past]

# %%
# Half of the users fit the re-ranker, which learns the groups. The others are held out.
users = films["user"].unique()
chosen = np.random.default_rng(0).choice(users, users.size // 2, replace=False)
held = films[~films["user"].isin(chosen)]
fair = FairReranker(
    method="det_greedy",
    target="candidates",
    k=20,
    sensitive_features="film",
    qid="user",
)
after = fair.fit(films[films["user"].isin(chosen)]).predict(held)

# %%
# Which list is the least likely by chance? The test asks whether some prefix has fewer
# little-known films than a random order of the same candidates would have.
who = {"sensitive_features": held["film"], "qid": held["user"], "k": 20}
test = prefix_test(held["score"], group="little-known", **who)
test

# %%
# This list before and after: each line is a film. Little-known films rise to their
# floors and no further, and the order within each group stays as it was.
user = test.qid[np.argmin(test.pvalues)]
rows = (held["user"] == user).to_numpy()
one = held[rows].assign(after=after[rows])
columns = one[["score", "after"]]
places = columns.rank(method="first", ascending=False).astype(int)
places = places[(places <= 20).any(axis=1)]
fig, ax = plt.subplots(figsize=(6, 6), layout="constrained")
colors = {"well-known": "0.6", "little-known": "C1"}
for row, (first, then) in places.iterrows():
    color = colors[one.loc[row, "film"]]
    ax.plot([0, 1], [first, then], color=color, marker="o", clip_on=True)
ax.set(xlim=(-0.1, 1.1), ylim=(20.5, 0.5), ylabel="Place", yticks=[1, 5, 10, 15, 20])
ax.set_xticks([0, 1], ["before", "after"])
ax.set_title(f"The first 20 places of user {user}")
for name, color in colors.items():
    ax.plot([], [], color=color, marker="o", label=f"{name} film")
fig.legend(loc="outside lower center", ncols=2)
plt.show()

# %%
# After it, no list is less likely by chance than expected of so many.
prefix_test(after, group="little-known", **who)

# %%
# Over all held-out users, before minus after: the gap between the share of exposure and
# the share of the items closes by half, so does NDKL, and NDCG pays for it.
before = held["score"].to_numpy()
who = {"sensitive_features": held["film"].to_numpy(), "qid": held["user"].to_numpy()}
options = {"target": "population", "position_weight": "dcg", **who}
print(
    compare(exposure_gap(None, before, **options), exposure_gap(None, after, **options))
)
print(compare(ndkl(None, before, **who), ndkl(None, after, **who)))
y = liked[held.index].to_numpy()
compare(ndcg(y, before, qid=who["qid"], k=10), ndcg(y, after, qid=who["qid"], k=10))
