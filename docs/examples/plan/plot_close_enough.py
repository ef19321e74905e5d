"""
Close enough to fair
====================

That no difference is shown does not mean that there is none. An equivalence test turns
the question round: is the difference shown to be smaller than a margin that matters?
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.metrics import selection_rate

rng = np.random.default_rng(0)
group = rng.choice(["a", "b"], size=8000)
hired = (rng.random(8000) < np.where(group == "a", 0.30, 0.305)).astype(int)
rate = selection_rate(None, hired, sensitive_features=group)
gap = rate.contrast("a", "b")
gap

# %%
# A margin of four percentage points, fixed before looking at the data.
gap.equivalence_test(margin=0.04)

# %%
# With a tenth of the data neither a difference nor equivalence is shown: the data
# cannot tell.
some = slice(0, 800)
selection_rate(None, hired[some], sensitive_features=group[some]).contrast(
    "a", "b"
).equivalence_test(margin=0.04)

# %%
rate.plot()
plt.show()
