"""A small ranking problem with a biased feature, and estimators that know of groups."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GroupKFold

from skrankfair.metrics import pairwise_accuracy
from skrankfair.scoring import make_fairness_scorer

FEATURES = ["x", "z"]


@dataclass(frozen=True)
class Data:
    """Rows of 24 queries: two features, of which one is biased, group and query."""

    n_queries: int = 24
    size: int = 10
    n_groups: int = 2
    seed: int = 0

    @cached_property
    def pandas(self):
        rng = np.random.default_rng(self.seed)
        n = self.n_queries * self.size
        frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
        frame["group"] = rng.integers(0, self.n_groups, n)
        frame["query"] = np.repeat(np.arange(self.n_queries), self.size)
        frame["z"] -= frame["group"]
        return frame

    @property
    def polars(self):
        return pl.from_pandas(self.pandas)

    @property
    def numpy(self):
        return self.pandas.to_numpy(dtype=float)

    @cached_property
    def y(self):
        noise = np.random.default_rng(self.seed + 1).normal(size=len(self.pandas))
        return (self.pandas["x"].to_numpy() + noise > 0).astype(int)

    @property
    def group(self):
        return self.pandas["group"].to_numpy()

    @property
    def query(self):
        return self.pandas["query"].to_numpy()

    @property
    def metadata(self):
        return {"sensitive_features": self.group, "qid": self.query}

    def splits(self, n_splits=3):
        """Folds of whole queries, as a list that any tool takes as ``cv=``."""
        return list(GroupKFold(n_splits).split(self.pandas, groups=self.query))


DATA = Data()


def gap_of(scores, rows=slice(None), **options):
    """Return the negated gap of scores of some rows, by the metric itself."""
    columns = {name: values[rows] for name, values in DATA.metadata.items()}
    columns |= {"comparison": "inter", **options}
    return -pairwise_accuracy(DATA.y[rows], scores, **columns).disparity()


def column_scorer(**options):
    """The gap in inter-group accuracy, groups and queries from columns of X."""
    options = {"sensitive_features": "group", "qid": "query", **options}
    return make_fairness_scorer(pairwise_accuracy, comparison="inter", **options)


def metadata_scorer(**options):
    """The same from metadata."""
    return column_scorer(**{"sensitive_features": True, "qid": True, **options})


class GroupShift(RegressorMixin, BaseEstimator):
    """Predicts ``x`` plus a part of the mean outcome of the row's group.

    The groups come as `sensitive_features`, or in `fit` from a column of X.
    """

    def __init__(self, strength=1.0, column=None):
        self.strength = strength
        self.column = column

    def fit(self, X, y, sensitive_features=None):
        if sensitive_features is None:
            sensitive_features = X[self.column]
        labels = np.asarray(sensitive_features)
        self.mean_ = {g: np.mean(y[labels == g]) for g in np.unique(labels)}
        return self

    def predict(self, X, sensitive_features):
        means = [self.mean_[g] for g in np.asarray(sensitive_features)]
        x = X["x"] if hasattr(X, "columns") else X[:, 0]
        return np.asarray(x) + self.strength * np.array(means)


class GroupShiftClassifier(GroupShift):
    """The same with a decision function, and no label of either class."""

    def decision_function(self, X, sensitive_features):
        return super().predict(X, sensitive_features)
