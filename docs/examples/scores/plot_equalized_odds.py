"""
Mistakes by group: equalized odds
=================================

A model predicts which mortgage applications a bank accepts. Equalized odds asks whether
it makes its two kinds of mistakes equally often for all groups.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skrankfair.datasets import fetch_rdataset
from skrankfair.metrics import (
    equalized_odds,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

frame = fetch_rdataset("AER/HMDA")
accepted = (frame["deny"] == "no").astype(int)
race = frame["afam"].map({"yes": "black", "no": "white"})
X = frame[["pirat", "hirat", "lvrat", "chist", "mhist", "unemp"]]
model = make_pipeline(StandardScaler(), LogisticRegression())
score = cross_val_predict(model, X, accepted, method="predict_proba")[:, 1]
decision = (score > 0.85).astype(int)

# %%
# One panel for each rate. Nobody can say in general which side of a rate is bad for a
# group, so the plots say "lower" and "higher".
rates = (selection_rate, true_positive_rate, false_positive_rate)
figure, axes = plt.subplots(3, 1, figsize=(6, 5))
for ax, metric in zip(axes, rates, strict=True):
    metric(accepted, decision, sensitive_features=race).plot(ax=ax)
plt.show()

# %%
# The two differences behind the name, each with its interval.
equalized_odds(accepted, decision, sensitive_features=race)
