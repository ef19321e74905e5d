"""
Figures for a paper
===================

Every plot takes the axes that it is given, and the sizes of matplotlib's settings. This
example makes one figure for a column of 3.3 inches and one with two panels.
"""

# %%
# Labels and legends are wrapped and cut to the room that there is.
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.display import CalibrationByGroupDisplay
from skrankfair.metrics import pairwise_accuracy

rng = np.random.default_rng(0)
group = rng.choice(["women", "men", "not stated"], p=[0.5, 0.4, 0.1], size=4000)
score = rng.uniform(size=4000)
y = (rng.random(4000) < np.where(group == "women", score**0.7, score)).astype(int)
r = pairwise_accuracy(y, score, sensitive_features=group, comparison="inter")

small = {"font.size": 8, "figure.figsize": (3.3, 2.5), "lines.linewidth": 1.0}
with plt.rc_context(small):
    r.plot()
    plt.show()

# %%
# Two panels side by side. A figure without a layout gets matplotlib's constrained one.
with plt.rc_context(small):
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 2.6))
    r.plot(ax=left)
    CalibrationByGroupDisplay.from_predictions(
        y, score, sensitive_features=group, ax=right
    )
    plt.show()

# %%
# ``r.to_frame().to_latex()`` has the numbers for a table.
