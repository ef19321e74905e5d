"""Rankers that learn from queries, where scikit-learn fits row by row."""

from __future__ import annotations

import inspect
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ._inputs.columns import take_column
from ._inputs.sklearn_private import n_rows_of, rows_of, with_names
from ._inputs.validation import check_lengths, encode

__all__ = ["QueryRanker"]


class QueryRanker(MetaEstimatorMixin, BaseEstimator):
    """Fit a ranker of another library on rows in any order, cut in any way.

    LightGBM's `LGBMRanker` needs the sizes of the queries, one number per query, which
    scikit-learn's cross-validation cannot cut to a training set. XGBoost's `XGBRanker`
    needs the rows sorted by query. This adapter takes the query of each row from a
    column of X or as metadata, sorts the rows by it and passes on what the ranker's
    `fit` has a parameter for: ``qid`` (sorted labels), else ``group`` (sizes), else
    nothing.

    Parameters
    ----------
    estimator : estimator
        `LGBMRanker`, `XGBRanker` or any other with `fit` and `predict`.
    qid : str, callable or None, default=None
        The column of X with the query, which the ranker does not see, or a function of
        X. If None, pass `qid` to `fit`, by metadata routing after
        ``set_fit_request(qid=True)``; without it all rows are one query.

    Attributes
    ----------
    estimator_ : estimator
        The fitted ranker.
    n_features_in_ : int
        Number of features seen in `fit`, the column with the query included.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    See Also
    --------
    skrankfair.scoring.make_fairness_scorer : Takes its queries from the same column.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from skrankfair.rankers import QueryRanker
    >>> from skrankfair.scoring import get_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": rng.normal(size=600)})
    >>> X["query"] = rng.integers(0, 60, size=600)
    >>> y = (X["x"] + rng.normal(size=600) > 0).astype(int)
    >>> ranker = QueryRanker(LinearRegression(), qid="query")  # or LGBMRanker()
    >>> ndcg = get_scorer("ndcg", qid="query")
    >>> cv = GroupKFold(3)
    >>> scores = cross_val_score(ranker, X, y, scoring=ndcg, cv=cv, groups=X["query"])
    >>> bool((scores > 0.8).all())
    True
    """

    def __init__(self, estimator: Any, *, qid: Any = None) -> None:
        self.estimator = estimator
        self.qid = qid

    def fit(self, X: Any, y: Any, qid: Any = None) -> QueryRanker:
        """Sort the rows by query and fit the ranker.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Relevance.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.

        Returns
        -------
        QueryRanker

        Raises
        ------
        ValueError
            If the queries are given twice, have missing values or have another length.
        """
        qid = take_column(X, self.qid, qid, "qid")
        validate_data(self, with_names(X), skip_check_array=True)
        features = self._features(X)
        self.estimator_ = clone(self.estimator)
        if qid is None and not self._wants("qid", "group"):
            self.estimator_.fit(features, y)
            return self
        n_rows = n_rows_of(X)
        codes = np.zeros(n_rows, dtype=int) if qid is None else encode(qid, "qid").codes
        check_lengths(X=n_rows, qid=codes.size)
        order = np.argsort(codes, kind="stable")
        codes, sizes = np.unique(codes[order], return_counts=True)
        options: dict[str, Any] = {}
        if self._wants("qid"):
            options["qid"] = np.repeat(np.arange(codes.size), sizes)
        elif self._wants("group"):
            options["group"] = sizes
        self.estimator_.fit(rows_of(features, order), rows_of(y, order), **options)
        return self

    def predict(self, X: Any) -> Any:
        """Return the ranker's scores.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            With the column of the query, if the constructor names one.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.estimator_.predict(self._features(X))

    def _wants(self, *names: str) -> bool:
        """Return whether the ranker's `fit` has one of the parameters."""
        parameters = inspect.signature(self.estimator_.fit).parameters
        return any(name in parameters for name in names)

    def _features(self, X: Any) -> Any:
        """Return X without the column of the query."""
        if not isinstance(self.qid, str):
            return X
        return nw.from_native(X, eager_only=True).drop(self.qid).to_native()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.target_tags = get_tags(self.estimator).target_tags
        return tags
