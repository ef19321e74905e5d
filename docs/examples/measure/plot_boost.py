"""
What would a boost of a group be worth?
=======================================

A ranker that undervalues a group pays for it: its ranking would be worth more, by its
own measure, if it raised the group's scores. This example draws that value over a
range of boosts.
"""

# %%
# In these data (Korevaar et al. 2023, Appendix A) the scores are calibrated over all
# queries, and yet, within a query, items of type 1 are better than others of the same
# score. The value of a ranking is DCG; each query is compared with itself.
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.datasets import make_confounded_queries
from skrankfair.metrics import boost_value

data = make_confounded_queries(4000, random_state=0)
who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
boosts = np.linspace(-0.12, 0.16, 15)
gains = [
    boost_value(data.expected, data.y_score, boost=float(boost), **who)
    for boost in boosts
]

# %%
# The value rises up to a boost of type 1 of 0.06, where its items are ranked as they
# should be, and falls beyond. Type 2 would have to be demoted. Bands are 95% intervals.
_, ax = plt.subplots(layout="constrained")
low, high = (
    np.stack([end[side] for end in (r.confidence_interval() for r in gains)])
    for side in (0, 1)
)
for i, group in enumerate(gains[0].groups):
    (line,) = ax.plot(boosts, [r.estimate[i] for r in gains], label=f"type {group}")
    ax.fill_between(boosts, low[:, i], high[:, i], color=line.get_color(), alpha=0.2)
ax.axhline(0, color="0.3", linewidth=1)
ax.set_xlabel("added to the scores of the type")
ax.set_ylabel("change of DCG per query")
ax.legend()
plt.show()
