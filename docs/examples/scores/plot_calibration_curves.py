"""
Do equal scores mean equal outcomes?
====================================

The curve of each group shows the mean outcome against the score. The test says where
curves differ beyond chance, at all scores at once.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from skrankfair.display import CalibrationByGroupDisplay
from skrankfair.inference import predictive_parity_test
from skrankfair.metrics import calibration_error

rng = np.random.default_rng(0)
group = rng.choice(["a", "b"], size=6000)
score = rng.beta(2, 2, size=6000)
truth = np.where(group == "b", score**1.4, score)
y = (rng.random(6000) < truth).astype(int)

# %%
# Group "a" is on the diagonal: its scores are its probabilities.
CalibrationByGroupDisplay.from_predictions(y, score, sensitive_features=group)
plt.show()

# %%
test = predictive_parity_test(y, score, sensitive_features=group)
test

# %%
# Below are the differences with a band for all scores together; marks at the bottom
# are the scores at which the test rejects.
test.plot()
plt.show()

# %%
# Where there are more groups, one plot per group stays readable: the group with its
# band, and the others as grey lines.
region = rng.choice(["north", "east", "south", "west"], size=6000)
y = (rng.random(6000) < np.where(region == "south", score**1.4, score)).astype(int)
display = CalibrationByGroupDisplay.from_predictions(
    y, score, sensitive_features=region
)
fig, axes = plt.subplots(1, 4, figsize=(11, 3), sharey=True, layout="constrained")
for ax, name in zip(axes, display.groups, strict=True):
    display.plot(ax=ax, highlight=name)
plt.show()

# %%
# The distance to the diagonal as one number.
calibration_error(y, score, sensitive_features=region)
