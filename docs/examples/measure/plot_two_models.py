"""
Compare two models on the same queries
======================================

A new model should not be worse for any group. Both models rank the same queries, so
their results are compared query by query: `~skrankfair.inference.compare` is far more
precise than a look at whether two intervals overlap.
"""

# %%
# Simulate queries and two scores. The old one undervalues group "b"; the new one
# corrects most of it, and both see the quality of an item with noise.
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.inference import compare
from skrankfair.metrics import ndcg, pairwise_accuracy

rng = np.random.default_rng(1)
query = np.repeat(np.arange(300), 10)
group = rng.choice(["a", "b"], size=query.size)
quality = rng.normal(size=query.size)
clicked = quality + 0.5 * rng.normal(size=query.size) > 0.5
seen = quality + 0.5 * rng.normal(size=query.size)
old = seen - 0.4 * (group == "b")
new = seen - 0.1 * (group == "b") + 0.1 * rng.normal(size=query.size)

# %%
# Measure both scores.
options = {"sensitive_features": group, "qid": query, "comparison": "inter"}
before = pairwise_accuracy(clicked, old, **options)
after = pairwise_accuracy(clicked, new, **options)
before

# %%
after

# %%
# The difference by group is paired. Group "b" gains, and group "a" gives up some of the
# comparisons that it won without deserving to.
difference = compare(after, before)
difference.plot()
plt.show()

# %%
# Compare its standard errors with those that one would get by treating the two results
# as if they came from different queries.
unpaired = np.hypot(before.standard_error, after.standard_error)
np.column_stack([difference.standard_error, unpaired]).round(4)

# %%
# The same comparison for the utility shows that the ranking as a whole is neither
# better nor worse, as far as 300 queries can tell.
compare(ndcg(clicked, new, qid=query), ndcg(clicked, old, qid=query))
