"""
How close is "nearly the same score"?
=====================================

Matched pairs compare items whose scores differ by at most ε. A small ε compares like
with like and has few pairs; this example draws the result over a range of ε.
"""

# %%
# In these data the scores are calibrated over all queries, and yet, within a query,
# items of group 2 do worse than others of nearly the same score (Korevaar et al. 2023).
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.datasets import make_confounded_queries
from skrankfair.metrics import matched_pair_curve

data = make_confounded_queries(2000, random_state=0)
curve = matched_pair_curve(
    data.y_true,
    data.y_score,
    sensitive_features=data.sensitive_features,
    qid=data.qid,
    epsilon=np.geomspace(0.01, 0.5, 12),
)
curve.plot()
plt.show()

# %%
# Where the curve is flat, the choice of ε does not matter. Where it moves with ε, take
# a value on the left, as far as the bands allow.
curve.to_frame().head().round(3)
