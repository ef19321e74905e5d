"""
A metric of your own
====================

Any metric that is a function of sums over rows gets standard errors, contrasts, plots
and a scorer: say what each row adds, and what the number is.
"""

# %%
# What does a loan earn by group? Repaid loans earn 0.2 of what is lent, and lost ones
# cost 1. The profit is the mean over approved loans.
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.metrics import make_metric


def sums(y_true, y_score):
    """Return what each row adds: its profit if it is approved, and whether it is."""
    approved = y_score > 0.7
    return np.column_stack([approved * np.where(y_true == 1, 0.2, -1.0), approved])


profit = make_metric(sums, lambda t: t[..., 0] / t[..., 1], name="profit")

# %%
rng = np.random.default_rng(0)
region = rng.choice(["north", "south"], size=5000)
risk = rng.beta(4, 1.5, size=5000)
repaid = (rng.random(5000) < risk - 0.05 * (region == "south")).astype(float)
r = profit(repaid, risk, sensitive_features=region)
r

# %%
r.contrast("north", "south")

# %%
r.plot()
plt.show()
