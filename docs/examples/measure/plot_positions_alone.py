"""
A test that needs positions and outcomes only
=============================================

Without scores, a ranking can still be tested: if an item of one group at a lower place
has better outcomes than one of another group above it, swapping them would pay (Roth
et al. 2022).
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.inference import outcome_inequality_test

rng = np.random.default_rng(0)
query = np.repeat(np.arange(3000), 4)
seller = rng.choice(["chain", "family"], p=[0.7, 0.3], size=query.size)
quality = rng.normal(size=query.size)
sold = rng.random(query.size) < 1 / (1 + np.exp(-quality))
score = quality - 1.5 * (seller == "family")

test = outcome_inequality_test(sold, score, sensitive_features=seller, qid=query)
test

# %%
# Each row is a pair of places; those right of the critical value are more than chance.
test.plot()
plt.show()
