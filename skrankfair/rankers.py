"""`QueryRanker`: rankers that learn from queries, with scikit-learn's rows."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ._inputs.by_name import (
    TakesMetadata,
    column_of,
    named_columns,
    take_column,
    without_columns,
)
from ._inputs.columns import read_labels
from ._inputs.sklearn_private import n_rows_of, rows_of, tags_of, with_names
from ._inputs.validation import Array, check_aligned, check_lengths
from .metrics import ndcg

__all__ = ["QueryRanker"]


@dataclass(frozen=True)
class _SortedRows:
    """Rows sorted by query."""

    X: Any  # shape (n, d)
    y: Any  # shape (n,)
    query: Array  # shape (n,), int64: 0, 1, ..., non-decreasing
    sizes: Array  # shape (n_queries,), int64
    weight: Array | None  # shape (n,) or None

    @property
    def query_weight(self) -> Array | None:
        """The weight of each query, which its rows must agree on."""
        if self.weight is None:
            return None
        first = self.weight[np.cumsum(self.sizes) - self.sizes]
        if (np.repeat(first, self.sizes) != self.weight).any():
            raise ValueError(
                "sample_weight must be constant within a query for a ranker that "
                "takes one weight per query, as XGBoost's does."
            )
        return first


class QueryRanker(MetaEstimatorMixin, TakesMetadata):
    """Fit a ranker of another library on rows in any order, as scikit-learn has them.

    LightGBM's `LGBMRanker` needs the sizes of the queries, one number per query, which
    scikit-learn's cross-validation cannot cut to a training set. XGBoost's `XGBRanker`
    and CatBoost's `CatBoostRanker` need the rows sorted by query. This adapter takes
    the query of each row from a column of X or as metadata, sorts the rows by it and
    passes on what the ranker's `fit` has a parameter for: ``group_id`` or ``qid``
    (sorted labels), else ``group`` (sizes), else nothing.

    Parameters
    ----------
    estimator : estimator
        `LGBMRanker`, `XGBRanker`, `CatBoostRanker` or any other with `fit` and
        `predict`; or a Pipeline that ends in one.
    qid : str, list of str, callable, True or None, default=None
        The column of X with the query, which the ranker does not see, several that are
        crossed, or a function of X. True means that `qid` must be passed to `fit` and
        `score`, and requests it where metadata are routed. None means that it may be
        passed; without it all rows are one query.
    drop : str, list of str or None, default=None
        Further columns of X that the ranker does not see, such as those of the groups
        that only the scorers need.

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
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": rng.normal(size=600)})
    >>> X["query"] = rng.integers(0, 60, size=600)
    >>> y = (X["x"] + rng.normal(size=600) > 0).astype(int)
    >>> ranker = QueryRanker(LinearRegression(), qid="query")  # or LGBMRanker()
    >>> scores = cross_val_score(ranker, X, y, cv=GroupKFold(3), groups=X["query"])
    >>> bool((scores > 0.8).all())
    True
    """

    def __init__(self, estimator: Any, *, qid: Any = None, drop: Any = None) -> None:
        self.estimator = estimator
        self.qid = qid
        self.drop = drop

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        eval_set: Sequence[tuple[Any, Any]] | None = None,
        eval_qid: Sequence[Any] | None = None,
        **fit_params: Any,
    ) -> QueryRanker:
        """Sort the rows by query and fit the ranker.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Relevance.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice. A ranker that takes
            ``qid``, as XGBoost's does, gets one weight per query, so the weight must be
            constant within it.
        eval_set : sequence of (X, y) or None, default=None
            Rows to watch while the ranker learns, with the columns of X. They are
            sorted in the same way, and go through the steps of a Pipeline.
        eval_qid : sequence of array-like or None, default=None
            Query of each row of each `eval_set`, if the constructor names no column.
        **fit_params : dict
            Passed on to the ranker's `fit` unchanged, such as ``callbacks``.

        Returns
        -------
        QueryRanker

        Raises
        ------
        ValueError
            If the queries are given twice, have missing values or have another length,
            if `eval_set` has anything but pairs, or if the ranker takes no weights or
            no `eval_set`, although they are given.
        """
        if names := named_columns(self.drop):
            column_of(X, names, "drop")
        elif not isinstance(self.drop, list | tuple | None):
            raise ValueError(
                "drop must be a column name, a list of column names or None; got "
                f"{self.drop!r}."
            )
        rows = self._sorted(X, y, take_column(self, X, "qid", qid), sample_weight)
        # Without y an error, if the ranker needs outcomes.
        validate_data(self, with_names(X), y, skip_check_array=True)
        watched = self._watched(eval_set, eval_qid)
        model = clone(self.estimator)
        ranker, rows, watched = _up_to_last_step(model, rows, watched)
        ranker.fit(rows.X, rows.y, **_options_of(ranker, rows, watched), **fit_params)
        self.estimator_ = model  # Only when all is fitted.
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
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(self._features(X))

    def score(
        self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the mean NDCG of the queries, `skrankfair.metrics.ndcg`.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Relevance, not negative.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice. It must be constant
            within a query.

        Returns
        -------
        float
            NaN, with a warning, if no query has a relevant item.
        """
        qid = take_column(self, X, "qid", qid)
        check_aligned(X=X, y=y, qid=qid, sample_weight=sample_weight)
        result = ndcg(y, self.predict(X), qid=qid, sample_weight=sample_weight)
        return float(result.estimate[0])

    def _sorted(self, X: Any, y: Any, qid: Any, sample_weight: Any) -> _SortedRows:
        """Return the rows sorted by query; rows of a query stay in order."""
        check_aligned(X=X, y=y, qid=qid, sample_weight=sample_weight)
        if not (n_rows := n_rows_of(X)):
            raise ValueError("X must have a row; got none.")
        lengths = {"X": n_rows, "y": None if y is None else n_rows_of(y)}
        _, labels, weights = read_labels(lengths, qid=qid, sample_weight=sample_weight)
        codes = labels["qid"].codes if labels else np.zeros(n_rows, dtype=int)
        features = self._features(X)
        order = np.argsort(codes, kind="stable")
        weight = weights["sample_weight"][order] if "sample_weight" in weights else None
        _, sizes = np.unique(codes, return_counts=True)
        if qid is not None:
            features = rows_of(features, order)
            y = None if y is None else rows_of(y, order)
        return _SortedRows(features, y, codes[order], sizes, weight)

    def _watched(self, eval_set: Any, eval_qid: Any) -> list[_SortedRows]:
        """Return the rows of each evaluation set, sorted by query."""
        pairs = list(eval_set or ())
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(
                    "eval_set must be a list of pairs (X, y), one for each set; got a "
                    f"{type(pair).__name__} in it."
                )
        queries = [None] * len(pairs) if eval_qid is None else list(eval_qid)
        check_lengths(eval_set=len(pairs), eval_qid=len(queries))
        return [
            self._sorted(X, y, take_column(self, X, "qid", qid), None)
            for (X, y), qid in zip(pairs, queries, strict=True)
        ]

    def _features(self, X: Any) -> Any:
        """Return X without the columns that the ranker does not see."""
        return without_columns(X, named_columns(self.qid, self.drop))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = tags_of(self.estimator).input_tags
        tags.target_tags = tags_of(self.estimator).target_tags
        return tags


def _up_to_last_step(
    estimator: Any, rows: _SortedRows, watched: list[_SortedRows]
) -> tuple[Any, _SortedRows, list[_SortedRows]]:
    """Fit the transformers of a pipeline; return its last step, and its rows.

    A pipeline hands neither sizes of queries nor evaluation sets to its last step.
    """
    while hasattr(estimator, "steps"):
        if len(estimator.steps) > 1:
            head = estimator[:-1]
            rows = replace(rows, X=head.fit_transform(rows.X, rows.y))
            watched = [replace(w, X=head.transform(w.X)) for w in watched]
            estimator.steps[:-1] = head.steps
        estimator = estimator.steps[-1][1]
    return estimator, rows, watched


def _options_of(
    ranker: Any, rows: _SortedRows, watched: list[_SortedRows]
) -> dict[str, Any]:
    """Return the queries, weights and evaluation sets that the ranker's `fit` takes."""
    known = inspect.signature(ranker.fit).parameters
    for name, given in (("sample_weight", rows.weight), ("eval_set", watched or None)):
        if given is not None and name not in known:
            raise ValueError(
                f"{name} must be None: {type(ranker).__name__}.fit does not take it."
            )
    options: dict[str, Any] = {}
    weight = rows.weight
    watching: dict[str, Any] = {"eval_set": [(w.X, w.y) for w in watched]}
    if "group_id" in known:
        options = {"group_id": rows.query}
        watching = {"eval_set": [_pool(ranker, w) for w in watched]}
    elif "qid" in known:
        options, weight = {"qid": rows.query}, rows.query_weight
        watching["eval_qid"] = [w.query for w in watched]
    elif "group" in known:
        options = {"group": rows.sizes}
        if "eval_X" in known:  # LightGBM from 4.7 on
            X, y = ([getattr(w, name) for w in watched] for name in ("X", "y"))
            watching = {"eval_X": tuple(X), "eval_y": tuple(y)}
        watching["eval_group"] = [w.sizes for w in watched]
    if weight is not None:
        options["sample_weight"] = weight
    return {**options, **watching} if watched else options


def _pool(ranker: Any, rows: _SortedRows) -> Any:
    """Return rows as a CatBoost pool for evaluation, with their queries."""
    from catboost import Pool

    categories = ranker.get_params().get("cat_features")
    return Pool(rows.X, rows.y, group_id=rows.query, cat_features=categories)
