"""
LightGBM and XGBoost under a bound
==================================

The rankers of LightGBM and XGBoost learn from whole queries, which scikit-learn's tools
know nothing of. `~skrankfair.rankers.QueryRanker` passes the queries on, so that both
can be tuned. Here they are tuned for NDCG under a bound on pairwise exposure.
"""

# %%
# Simulate 150 queries of 15 items. Users look for quality, but click on big sellers
# more than on others. Eight weak signals tell big sellers from small ones. The rows
# are shuffled, as rows often are.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
from lightgbm import LGBMRanker
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from xgboost import XGBRanker

from skrankfair.display import FairnessTradeoffDisplay
from skrankfair.model_selection import fairness_constrained
from skrankfair.rankers import QueryRanker
from skrankfair.scoring import get_scorer

rng = np.random.default_rng(0)
query = rng.permutation(np.repeat(np.arange(150), 15))
X = pd.DataFrame({"query": query})
X["seller"] = rng.choice(["big", "small"], size=len(X))
big = X["seller"] == "big"
quality = rng.normal(size=len(X))
X["price"] = quality + rng.normal(size=len(X))
X["rating"] = quality + rng.normal(size=len(X))
signals = [f"signal_{i}" for i in range(8)]
X[signals] = 0.6 * big.to_numpy()[:, None] + rng.normal(size=(len(X), 8))
y = np.digitize(quality + 1.5 * big + 0.5 * rng.normal(size=len(X)), [1, 2, 3])

# %%
# `QueryRanker` finds the query of each row in a column of X, sorts the rows by it, and
# passes ``group=`` sizes to LightGBM and ``qid=`` to XGBoost. In a Pipeline the column
# has to reach the ranker, so the transformer below keeps it and drops the seller.
keep = ["query", "price", "rating", *signals]
columns = ColumnTransformer(
    [("keep", "passthrough", keep)], verbose_feature_names_out=False
).set_output(transform="pandas")


def tuned(ranker):
    """Search a ranker for the best NDCG with exposures within 0.06 of one half."""
    who = {"sensitive_features": "seller", "qid": "query"}
    search = GridSearchCV(
        Pipeline([("columns", columns), ("rank", QueryRanker(ranker, qid="query"))]),
        {
            "rank__estimator__n_estimators": [2, 4, 8, 16, 32],
            "rank__estimator__max_depth": [1, 3],
        },
        scoring={
            "ndcg": get_scorer("ndcg", qid="query"),
            "exposure": get_scorer("neg_pairwise_exposure", **who),
        },
        cv=GroupKFold(4),
        refit=fairness_constrained("ndcg", at_most={"exposure": 0.06}),
    )
    return search.fit(X, y, groups=X["query"])


searches = {
    "LGBMRanker": tuned(LGBMRanker(learning_rate=0.2, verbose=-1, n_jobs=1)),
    "XGBRanker": tuned(XGBRanker(learning_rate=0.2, n_jobs=1)),
}

# %%
# With more trees the models find out who is a big seller. NDCG rises, and so does the
# exposure of big sellers.
fig, axes = plt.subplots(1, 2, sharey=True, figsize=(11, 4.6), layout="constrained")
for ax, (name, search) in zip(axes, searches.items(), strict=True):
    FairnessTradeoffDisplay.from_search(search, ax=ax)
    ax.set_title(name, loc="left", pad=42)
plt.show()

# %%
# ``qid`` may also be metadata, requested by XGBRanker and by the scorer under the same
# name. XGBoost needs the rows sorted by query, and they stay sorted in the folds of
# `GroupKFold`. LightGBM's sizes of queries cannot be cut to a fold, so it needs the
# adapter, with ``QueryRanker(LGBMRanker()).set_fit_request(qid=True)``.
order = np.argsort(query, kind="stable")
by_query = X.iloc[order]
with sklearn.config_context(enable_metadata_routing=True):
    scores = cross_val_score(
        XGBRanker(n_estimators=10, n_jobs=1).set_fit_request(qid=True),
        by_query[["price", "rating"]],
        y[order],
        scoring=get_scorer("ndcg", qid=True),
        cv=GroupKFold(4),
        params={"qid": by_query["query"], "groups": by_query["query"]},
    )
scores.round(3)
