"""
Measure pairwise fairness
=========================

This example looks at a ranker that undervalues one of three groups, using
`~skrankfair.metrics.pairwise_accuracy`: the share of pairs in the right order, counted
for the group of the item that deserves to win.
"""

# %%
# Simulate 400 queries of 12 items. The quality of an item decides whether it is
# clicked; the ranker sees the quality, but takes something off the scores of "north".
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.metrics import matched_pair_calibration, pairwise_accuracy

rng = np.random.default_rng(0)
query = np.repeat(np.arange(400), 12)
region = rng.choice(["east", "north", "west"], p=[0.5, 0.2, 0.3], size=query.size)
quality = rng.normal(size=query.size)
clicked = quality + rng.normal(size=query.size) > 0.5
score = quality - 0.5 * (region == "north")

# %%
# Within each group the order is equally good, because taking the same amount off all
# scores of a group does not change the order of its items.
who = {"sensitive_features": region, "qid": query}
intra = pairwise_accuracy(clicked, score, comparison="intra", **who)
intra

# %%
# Between groups, items of "north" that were clicked lose against others that were not.
# Fairness means equality, so the p-values compare each group with the rest.
inter = pairwise_accuracy(clicked, score, comparison="inter", **who)
inter

# %%
# The plot has one line per group, with the estimate and its 95% interval.
inter.plot()
plt.show()

# %%
# How large is the difference? Contrasts use the covariance of the groups, which meet
# in the same queries; p-values of all pairs of groups are corrected by Holm's method.
inter.contrasts().round(4)

# %%
# Matched pair calibration looks at the score instead: of two items with nearly the
# same score, the one from "north" is clicked more often. Its scores are too low.
calibration = matched_pair_calibration(clicked, score, epsilon=0.1, **who)
calibration.plot()
plt.show()
