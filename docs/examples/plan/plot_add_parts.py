"""
Results of parts add up
=======================

The result for two days is the sum of their results. So a month is measured day by day,
without ever having all of it in memory, and results can be stored as text.
"""

# %%
import numpy as np

from skrankfair.metrics import GroupEstimates, pairwise_accuracy


def day(number):
    """Return the columns of one day's sessions."""
    rng = np.random.default_rng(number)
    query = np.repeat(np.arange(300), 8) + 1000 * number
    group = rng.choice(["new", "old"], size=query.size)
    quality = rng.normal(size=query.size)
    clicked = quality + rng.normal(size=query.size) > 0.5
    return clicked, quality - 0.3 * (group == "new"), group, query


def measure(y, score, group, query):
    """Return the pairwise accuracy between groups."""
    return pairwise_accuracy(
        y, score, sensitive_features=group, qid=query, comparison="inter"
    )


stored = [measure(*day(number)).compact().to_json() for number in range(10)]
len(stored[0])

# %%
# What is stored is small, holds no row of the data, and adds up later.
month = sum(GroupEstimates.from_json(text) for text in stored)
month

# %%
# It is the result on all rows at once.
days = [day(number) for number in range(10)]
together = measure(*(np.concatenate(column) for column in zip(*days, strict=True)))
np.abs(together.estimate - month.estimate).max()
