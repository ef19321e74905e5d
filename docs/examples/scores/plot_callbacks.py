"""
Callbacks of job applicants and the four-fifths rule
====================================================

Bertrand and Mullainathan (2004) answered job adverts with made-up resumes and gave them
names at random. Whether an employer calls back can then depend on the name, but not on
the applicant behind it. The impact ratio compares callback rates.
"""

# %%
import matplotlib.pyplot as plt

from skrankfair.datasets import fetch_rdataset
from skrankfair.metrics import impact_ratio, selection_rate

frame = fetch_rdataset("AER/ResumeNames")
called = (frame["call"] == "yes").astype(int)
rate = selection_rate(None, called, sensitive_features=frame["ethnicity"])
rate

# %%
# The difference of the rates, and their ratio with its interval. A ratio below 0.8 is
# what the four-fifths rule asks about; here it is 0.67, and its interval ends just
# above 0.8.
rate.contrast("afam", "cauc")

# %%
rate.contrast("afam", "cauc", kind="ratio")

# %%
# The same with gender, crossed: every combination is a group.
who = frame[["ethnicity", "gender"]]
crossed = selection_rate(None, called, sensitive_features=who)
crossed.plot(xlabel="callback rate", counts=True)
plt.show()

# %%
# One number for all groups: the smallest rate over the largest.
impact_ratio(None, called, sensitive_features=who)
