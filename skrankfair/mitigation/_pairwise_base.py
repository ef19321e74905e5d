"""What the linear models with pairwise regularisation share: all but the loss."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._estimates.contrasts import generator
from .._inputs.validation import (
    Array,
    Groups,
    as_groups,
    check_choice,
    check_lengths,
    check_number,
    encode,
)
from ..exceptions import UndefinedMetricWarning
from ._comparisons import COMPARISONS, Pairs, draw_by_group, without_pairs
from ._linear_loss import FEW_FEATURES, Loss, Objective, Term, descend
from ._metadata import (
    TakesMetadata,
    named_columns,
    quoted,
    take_column,
    without_columns,
)
from ._pairwise_penalty import LinearCorrelation, ScoreCorrelation

_FLOOR = 1e-12  # of the variance of A at the start


class PairwiseFair(TakesMetadata, BaseEstimator):
    """Reads columns, draws pairs, and descends from the unpenalised model."""

    def __init__(
        self,
        strength: float = 1.0,
        *,
        sensitive_features: Any = None,
        qid: Any = None,
        comparison: str = "inter",
        n_pairs: int = 100_000,
        alpha: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.strength = strength
        self.sensitive_features = sensitive_features
        self.qid = qid
        self.comparison = comparison
        self.n_pairs = n_pairs
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number(self.strength, "strength", 0, np.inf, inclusive=(True, False))
        check_number(self.alpha, "alpha", 0, np.inf, inclusive=(True, False))
        check_number(self.n_pairs, "n_pairs", 2, np.inf, integer=True)
        check_number(self.max_iter, "max_iter", 1, np.inf, integer=True)
        check_number(self.tol, "tol", 0, np.inf, inclusive=(False, False))
        check_choice(self.comparison, "comparison", COMPARISONS)

    def _read(self, X: Any, y: Any, given: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
        """Return features, outcomes, groups (None: none given) and query codes."""
        self._check_parameters()
        found = {
            name: take_column(X, getattr(self, name), value, name)
            for name, value in given.items()
        }
        features, y = validate_data(
            self,
            self._features(X),
            y,
            accept_sparse="csr",
            dtype=np.float64,
            y_numeric=isinstance(self, RegressorMixin),
        )
        n_rows = features.shape[0]
        groups, query = None, np.zeros(n_rows, dtype=np.int64)
        if found["sensitive_features"] is not None:
            groups = as_groups(found["sensitive_features"])
            check_lengths(X=n_rows, sensitive_features=groups.n_rows)
        if found["qid"] is not None:
            query = encode(found["qid"], "qid").dense().codes
            check_lengths(X=n_rows, qid=query.size)
        return features, y, groups, query

    def _fit(
        self, X: Any, y: Array, loss: Loss, groups: Groups | None, query: Array
    ) -> Array:
        """Set what is known of the penalty and return the parameters."""
        terms = self._terms(X, y, loss.start[: X.shape[1]], groups, query)
        parameters, path, n_iter = loss.start, np.empty(0), 1
        if terms:
            strength = float(self.strength) * loss.of_constant
            objective = Objective(loss, list(terms.values()), strength)
            if strength > 0:
                parameters, path, n_iter = descend(objective, self.max_iter, self.tol)
            else:
                path = np.array([objective.penalty(parameters)])
        self.penalty_path_ = path
        self.correlation_ = {k: term(parameters)[0] for k, term in terms.items()}
        self.n_iter_ = max(1, n_iter)
        return parameters

    def _features(self, X: Any) -> Any:
        """Return X without the columns that the constructor names, if it has them."""
        return without_columns(X, named_columns(self.sensitive_features, self.qid))

    def _terms(
        self, X: Any, y: Array, start: Array, groups: Groups | None, query: Array
    ) -> dict[Hashable, Term]:
        """Return the correlation of each group that has one."""
        self.n_pairs_ = {}
        if groups is None:
            return {}
        if len(groups) == 1 and not groups.overlapping:
            _warn(
                f"sensitive_features has one group, {groups.labels[0]!r}, and nothing "
                "to compare it with: the model is fitted without the penalty."
            )
            return {}
        terms: dict[Hashable, Term] = {}
        without, constant = [], []
        rng = generator(self.random_state)
        options = (self.comparison, int(self.n_pairs), rng)
        for label, pairs in draw_by_group(y, query, groups, *options):
            self.n_pairs_[label] = 0 if pairs is None else pairs.better.size
            if pairs is None:
                without.append(label)
                continue
            term = _term(X, pairs, start)
            if term is None:
                constant.append(label)
            else:
                terms[label] = term
        rest = "the model is fitted without their part of the penalty."
        if without:
            _warn(f"{without_pairs(without, self.comparison)}: {rest}")
        if constant:
            _warn(
                "All scores of the unpenalised model are equal in the pairs of the "
                f"groups {quoted(constant)}, so nothing is correlated: {rest}"
            )
        return terms

    def _linear(self, X: Any) -> Array:
        """Return the linear score of each row."""
        check_is_fitted(self)
        features = validate_data(
            self,
            self._features(X),
            accept_sparse="csr",
            dtype=np.float64,
            reset=False,
        )
        score = features @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]
        return np.asarray(score)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _term(X: Any, pairs: Pairs, start: Array) -> Term | None:
    """Return the correlation as a function of the parameters; None: equal scores."""
    size = start.size
    if size <= FEW_FEATURES:
        linear = LinearCorrelation.of_pairs(X, pairs)
        floor = _FLOOR * linear.spread(start)
        return (lambda w: linear(w[:size], floor)) if floor > 0 else None
    of_score = ScoreCorrelation(pairs, X.shape[0])
    floor = _FLOOR * of_score.spread(np.asarray(X @ start))

    def term(parameters: Array) -> tuple[float, Array]:
        value, gradient = of_score(np.asarray(X @ parameters[:size]), floor)
        return value, np.asarray(X.T @ gradient)

    return term if floor > 0 else None


def _warn(message: str) -> None:
    warnings.warn(message, UndefinedMetricWarning, stacklevel=5)
