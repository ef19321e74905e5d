"""
Few users, small groups
=======================

What can be said of a small group, or of data from a few users? This example takes ever
less of the same data. Intervals widen, a warning says when the errors rest on too
little, and nothing is called fair for lack of data.
"""

# %%
# The ranker takes the same amount off the scores of group "c", which is rare.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skrankfair.metrics import pairwise_exposure

rng = np.random.default_rng(0)
query = np.repeat(np.arange(400), 10)
group = rng.choice(["a", "b", "c"], p=[0.6, 0.37, 0.03], size=query.size)
score = rng.normal(size=query.size) - 0.5 * (group == "c")

figure, axes = plt.subplots(1, 3, figsize=(9, 2.4), sharex=True)
for ax, n_queries in zip(axes, (400, 60, 12), strict=True):
    some = query < n_queries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = pairwise_exposure(
            None, score[some], sensitive_features=group[some], qid=query[some]
        )
        label = f"exposure, {n_queries} queries"
        r.plot(ax=ax, sort=None, xlabel=label, legend=False)
plt.show()

# %%
# ``n_effective`` says how many equal clusters would tell as much about a group. Queries
# without an item of the group tell nothing about it. Below five there is a warning,
# which is left out here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    table = r.to_frame()
table[["estimate", "ci_low", "ci_high", "n_effective"]].round(3)

# %%
# How much data would show the gap? See the example on planning.
