"""
Does the share of a group fall or rise along the ranking?
=========================================================

Metrics that sum up a ranking in one number assume that a group's advantage has one
direction. The monotonicity test looks at the shares by position and says whether that
holds (Kuhlman et al. 2021).
"""

# %%
# Rankings in which the protected group gets the good places too rarely.
import matplotlib.pyplot as plt

from skrankfair.datasets import make_biased_rankings
from skrankfair.inference import monotonicity_test, recommend_metrics

data = make_biased_rankings(200, 20, share=0.4, advantage=0.3, random_state=0)
who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
test = monotonicity_test(data.y_score, group="protected", random_state=0, **who)
test.plot()
plt.show()

# %%
# The recommendation of metrics follows from it.
recommend_metrics(test)
