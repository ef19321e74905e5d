"""
AUC within groups and across them
=================================

A score can order each group well and yet place one group too low. The AUC within a
group does not see that; pairs across groups do.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.metrics import auc, pairwise_accuracy

rng = np.random.default_rng(0)
site = rng.choice(["clinic A", "clinic B", "clinic C"], size=3000)
severity = rng.normal(size=3000)
ill = (severity + rng.normal(size=3000) > 0.8).astype(int)
score = severity - 0.8 * (site == "clinic C")

# %%
# Within each clinic the order is about equally good.
auc(ill, score, sensitive_features=site)

# %%
# But ill people of clinic C score below healthy people of other clinics more often.
across = pairwise_accuracy(ill, score, sensitive_features=site, comparison="inter")
across.plot(xlabel="AUC across clinics")
plt.show()

# %%
across.contrast("clinic C", "clinic A")
