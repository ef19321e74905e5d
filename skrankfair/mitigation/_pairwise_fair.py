"""Linear rankers whose errors between pairs do not depend on the group."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, validate_data

from .._inputs.by_name import (
    TakesMetadata,
    metadata_columns,
    take_columns,
    without_columns,
)
from .._inputs.groups import Groups
from .._inputs.sklearn_private import with_names
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_lengths,
    check_magnitude,
    check_number,
    generator,
    warn_user,
)
from ._by_group import quoted, two_classes
from ._pairwise_penalty import (
    COMPARISONS,
    LogisticRows,
    PairSource,
    PairwisePenalty,
    PreferencePairs,
    SquaredRows,
    Term,
    absolute_correlations,
    groups_and_queries,
)

_FLOOR = 1e-12  # of the variance of A at the start
#: Up to so many features, matrices of their products are held. Without them a fit of
#: 300,000 rows takes 13 times as long as one without the penalty, with them four.
_FEW_FEATURES = 256
_SINGULAR = 1e-12
_WITHOUT = "the model is fitted without their part of the penalty."
#: Rows or pairs whose products of features are added at once.
_BLOCK = 1 << 13


@dataclass(frozen=True)
class LinearObjective:
    """Loss of a linear score, ridge, and strength times absolute correlations.

    The parameters are the coefficients and, last, the score at the mean of the
    features. The absolute values are smoothed.
    """

    X: Any  # array or sparse matrix of shape (n, d)
    mean: Array  # shape (d,): of each feature
    loss: SquaredRows | LogisticRows
    alpha: float
    start: Array  # shape (d + 1,): the parameters without the penalty
    terms: Sequence[Term]  # of the coefficients
    strength: float

    def _score(self, parameters: Array) -> Array:
        """Return the linear score of each row."""
        coef = parameters[:-1]
        return np.asarray(self.X @ coef + (parameters[-1] - self.mean @ coef))

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """Return the objective, up to a constant, and its gradient."""
        coef = parameters[:-1]
        if isinstance(self.loss, SquaredRows) and self.hessian.ndim == 2:
            # The start is the minimum: what is left is the quadratic term.
            step = parameters - self.start
            gradient = self.hessian @ step
            value = float(step @ gradient) / 2
        else:
            loss, by_row, _ = self.loss(self._score(parameters))
            total = by_row.sum()
            by_coef = self.X.T @ by_row - self.mean * total + self.alpha * coef
            value = loss + self.alpha * float(coef @ coef) / 2
            gradient = np.append(by_coef, total)
        penalty, slope = absolute_correlations(self.terms, coef)
        gradient[:-1] += self.strength * slope
        return value + self.strength * penalty, gradient

    def penalty(self, parameters: Array) -> float:
        """Return the sum of absolute correlations."""
        coef = parameters[:-1]
        return float(sum(share * abs(term(coef)[0]) for share, term in self.terms))

    @cached_property
    def hessian(self) -> Array:
        """The Hessian of loss and ridge at the start; its diagonal of many features."""
        X, mean, is_sparse = self.X, self.mean, bool(sparse.issparse(self.X))
        weight = self.loss(self._score(self.start))[2]
        ridge = np.append(np.full(mean.size, self.alpha), 0.0)
        if mean.size > _FEW_FEATURES:
            squares = X.multiply(X) if is_sparse else X**2
            total = weight.sum()
            about_mean = squares.T @ weight - mean * (2 * (X.T @ weight) - total * mean)
            return np.append(about_mean, total) + ridge
        hessian = np.diag(ridge)
        for start in range(0, weight.size, _BLOCK):
            rows = X[start : start + _BLOCK]
            rows = rows.toarray() if is_sparse else rows
            columns = np.column_stack([rows - mean, np.ones(len(rows))])
            hessian += (columns * weight[start : start + _BLOCK, None]).T @ columns
        return hessian

    def whitening(self) -> Any:
        """Return T with TᵀHT = 1, H the Hessian or its diagonal."""
        curvature = self.hessian if self.hessian.ndim == 1 else np.diag(self.hessian)
        # Each feature in its own unit: in one unit, features whose numbers are small
        # beside others seem to have no data. A constant feature varies by rounding.
        rounding = curvature[-1] * _SINGULAR * np.append(self.mean, 0.0) ** 2
        unit = _inverse_root(curvature, rounding)
        if self.hessian.ndim == 1:
            return sparse.diags_array(unit)
        value, vector = np.linalg.eigh(unit[:, None] * self.hessian * unit)
        return unit[:, None] * vector * _inverse_root(value, _SINGULAR * value.max())

    def descend(self, max_iter: int, tol: float) -> tuple[Array, Array, int]:
        """Return the parameters at the minimum, the penalties on the way, and steps.

        Without a penalty these are the parameters of the start, in one step.
        The descent is in coordinates in which the loss is round. There it is |z|²/2 in
        units of the strength, near the start, so one tolerance fits all data.
        """
        start, unit = self.start, self.strength
        path = [self.penalty(start)] if self.terms else []
        if not path or not unit > 0:
            return start, np.array(path), 1
        scale = self.whitening() * np.sqrt(unit)
        at_start = self(start)[0]

        def scaled(z: Array) -> tuple[float, Array]:
            value, gradient = self(start + scale @ z)
            return (value - at_start) / unit, scale.T @ gradient / unit

        result = minimize(
            scaled,
            np.zeros_like(start),
            jac=True,
            method="L-BFGS-B",
            callback=lambda z: path.append(self.penalty(start + scale @ z)),
            options={"maxiter": max_iter, "gtol": tol, "ftol": 1e-15, "maxls": 50},
        )
        if result.status == 1:
            warn_user(
                f"The fit did not converge in max_iter={max_iter} iterations: the "
                f"largest scaled gradient is {np.abs(result.jac).max():.3g}, more than "
                f"tol={tol:g}. Increase max_iter or scale the features.",
                ConvergenceWarning,
            )
        return start + scale @ result.x, np.array(path), max(1, int(result.nit))


def _by_moments(X: Any, pairs: PreferencePairs, floor: float) -> Term:
    """Return the correlation by the coefficients, from moments of feature differences.

    Corr(w) = c · w / sqrt(wᵀ V w + floor), with V the covariance of the features of A
    and c that with B in deviations. Its time does not depend on the pairs: a fit of a
    million rows takes a third of that with the scores of pairs in each step.
    """
    size, is_sparse = X.shape[1], bool(sparse.issparse(X))
    mean, square, cross = np.zeros(size), np.zeros((size, size)), np.zeros(size)
    root = np.sqrt(pairs.weight)
    scale, b = pairs.margin * root, pairs.direction / root
    for start in range(0, root.size, _BLOCK):  # of pairs at a time
        some = slice(start, start + _BLOCK)
        difference = X[pairs.better[some]] - X[pairs.worse[some]]
        difference = difference.toarray() if is_sparse else difference
        difference *= scale[some, None]
        mean += root[some] @ difference
        cross += b[some] @ difference
        square += difference.T @ difference
    variance = square - np.outer(mean, mean)

    def term(coef: Array) -> tuple[float, Array]:
        slope = variance @ coef
        deviation = np.sqrt(max(0.0, float(coef @ slope)) + floor)
        value = float(cross @ coef) / deviation
        return float(value), (cross - value * slope / deviation) / deviation

    return pairs.share, term


def _term(X: Any, pairs: PreferencePairs, start: Array) -> Term | None:
    """Return the correlation by the coefficients; None if scores are equal."""
    floor = _FLOOR * pairs.spread(np.asarray(X @ start))
    if not floor > 0:
        return None
    if start.size <= _FEW_FEATURES:
        return _by_moments(X, pairs, floor)

    def term(coef: Array) -> tuple[float, Array]:
        value, gradient = pairs.correlation(np.asarray(X @ coef), floor)
        return value, np.asarray(X.T @ gradient)

    return pairs.share, term


def _inverse_root(curvature: Array, least: Any) -> Array:
    """Return 1 / sqrt of curvatures, and 0 in directions without data."""
    out = np.zeros_like(curvature)
    return np.power(curvature, -0.5, out=out, where=curvature > least)


class PairwiseFair(TakesMetadata, metaclass=ABCMeta):
    """Reads columns, draws pairs, and descends from the unpenalised model."""

    def __init__(
        self,
        strength: float = 1.0,
        *,
        sensitive_features: Any = None,
        qid: Any = None,
        comparison: str = "inter",
        max_pairs: int = 100_000,
        alpha: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.strength = strength
        self.sensitive_features = sensitive_features
        self.qid = qid
        self.comparison = comparison
        self.max_pairs = max_pairs
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        qid: Any = None,
        sample_weight: Any = None,
        pairs: tuple[Any, PairwisePenalty] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Relevance, larger is better, for `PairwiseFairRegressor`. Two classes for
            `PairwiseFairClassifier`; the second in sorted order is the better one.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice. A pair counts the
            geometric mean of the weights of its two rows, which is the weight of the
            query where that is constant.
        pairs : tuple of (X, PairwisePenalty) or None, default=None
            Pairs of other rows than those of the loss, such as those of an experiment
            with randomised pairs: their features, and what
            :func:`~skrankfair.mitigation.pairwise_penalty` returns for their outcomes,
            groups and queries. Its options stand for `comparison` and `max_pairs`, and
            the rows of the loss need no groups. None draws pairs from these rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is outside its range, if a column is given twice, is missing
            or has another length, or if y of a classifier does not have two classes.
        """
        given = {"sensitive_features": sensitive_features, "qid": qid}
        features, y, columns = self._read(X, y, given, sample_weight)
        columns["sample_weight"] = sample_weight
        groups, query, weight = groups_and_queries({"X": len(y)}, **columns)
        loss, model = self._unpenalised(features, y, weight)
        # Without weights scikit-learn does not copy the features.
        weights = None if sample_weight is None else weight
        start = model.fit(features, loss.y, sample_weight=weights)
        coef, level = np.ravel(start.coef_), np.ravel(start.intercept_)[0]
        mean = np.asarray(features.mean(axis=0), dtype=float).ravel()
        drawn, shown = dict[Hashable, PreferencePairs | None](), features
        if pairs is not None:
            drawn, shown = self._given(pairs)
        elif columns["sensitive_features"] is not None:
            drawn = self._draw(loss, groups, query)
        terms = self._terms(shown, drawn, coef)
        objective = LinearObjective(
            features,
            mean,
            loss,
            float(self.alpha),
            np.append(coef, level + mean @ coef),
            list(terms.values()),
            float(self.strength) * loss(np.full(y.size, loss.constant))[0],
        )
        parameters, self.penalty_path_, self.n_iter_ = objective.descend(
            self.max_iter, self.tol
        )
        coef, level = parameters[:-1], parameters[-1] - mean @ parameters[:-1]
        self.correlation_ = {k: term(coef)[0] for k, (_, term) in terms.items()}
        self.coef_ = coef.reshape(np.shape(start.coef_))
        self.intercept_: Any = np.full_like(start.intercept_, level)[()]
        return self

    @abstractmethod
    def _unpenalised(self, X: Any, y: Any, weight: Any) -> tuple[Any, Any]:
        """Return the loss, and scikit-learn's model that has the smallest."""

    def _read(
        self, X: Any, y: Any, given: dict[str, Any], weight: Any
    ) -> tuple[Any, Any, Any]:
        """Return features, outcomes, and the columns of groups and queries."""
        check_number(self.strength, "strength", 0, np.inf, inclusive=(True, False))
        check_number(self.alpha, "alpha", 0, np.inf, inclusive=(True, False))
        check_number(self.max_pairs, "max_pairs", 2, np.inf, integer=True)
        check_number(self.max_iter, "max_iter", 1, np.inf, integer=True)
        check_number(self.tol, "tol", 0, np.inf, inclusive=(False, False))
        check_choice(self.comparison, "comparison", COMPARISONS)
        columns = take_columns(self, X, given, y=y, sample_weight=weight)
        features, y = self._validated(X, y=y, reset=True)
        assert_all_finite(y, input_name="y")  # scikit-learn trusts arrays of objects
        if isinstance(self, RegressorMixin):
            check_magnitude(y=as_numbers(y, "y"))
        return features, y, columns

    def _given(self, pairs: Any) -> tuple[dict[Hashable, PreferencePairs | None], Any]:
        """Return the pairs of other rows, and the features of these."""
        X, penalty = pairs if isinstance(pairs, tuple) and len(pairs) == 2 else (0, 0)
        if not isinstance(penalty, PairwisePenalty):
            raise ValueError(
                "pairs must be a tuple of features and what pairwise_penalty returns; "
                f"got {type(pairs).__name__}."
            )
        features = self._validated(X)
        check_lengths(pairs=features.shape[0], penalty=penalty.n_rows)
        return dict(penalty.pairs), features

    def _draw(
        self, loss: SquaredRows | LogisticRows, groups: Groups, query: Array
    ) -> dict[Hashable, PreferencePairs | None]:
        """Return pairs of the rows of the loss."""
        if len(groups) == 1 and not groups.overlapping:
            warn_user(
                f"sensitive_features has one group, {groups.labels[0]!r}, and nothing "
                "to compare it with: the model is fitted without the penalty."
            )
            return {}
        rng, n_pairs = generator(self.random_state), int(self.max_pairs)
        rows = loss.y, query, self.comparison, n_pairs, rng, loss.weight
        return PairSource(*rows).draw_by_group(groups, _WITHOUT)

    def _terms(
        self, X: Any, drawn: Mapping[Hashable, PreferencePairs | None], coef: Array
    ) -> dict[Hashable, Term]:
        """Return the terms of the pairs that the unpenalised model tells apart."""
        self.n_pairs_ = {k: p.better.size if p else 0 for k, p in drawn.items()}
        terms: dict[Hashable, Term] = {}
        constant = []
        for label, pairs in drawn.items():
            if pairs and (term := _term(X, pairs, coef)):
                terms[label] = term
            elif pairs:
                constant.append(label)
        if constant:
            warn_user(
                "All scores of the unpenalised model are equal in the pairs of the "
                f"groups {quoted(constant)}, so nothing is correlated: {_WITHOUT}"
            )
        return terms

    def _validated(self, X: Any, **options: Any) -> Any:
        """Return features, without the columns that the constructor names, and y."""
        features = with_names(without_columns(X, metadata_columns(self)))
        options = {"reset": False, "accept_sparse": "csr", **options}
        return validate_data(self, features, dtype=np.float64, **options)

    def _linear(self, X: Any) -> Array:
        """Return the linear score of each row."""
        check_is_fitted(self, "intercept_")
        score = self._validated(X) @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]
        return np.asarray(score)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PairwiseFairRegressor(RegressorMixin, PairwiseFair):
    """Ridge regression whose pairwise errors are uncorrelated with the group.

    Minimises ``Σ (y - b - Xw)² + alpha |w|² + strength Σ (y - ȳ)² Σ_k |Corr_k(A, B)|``.
    The correlation is over pairs of items of one query with different outcomes, i the
    better one: A = (s_i - s_j)(y_i - y_j) is how clearly the score separates the two, B
    = (g_i - g_j)(y_i - y_j) whether the better one is in the group k (g = 1) or outside
    (g = 0). A model for which good items of the group win their comparisons by less
    than good items of the rest is penalised. With two groups there is one term; with
    more, or with overlapping ones, each group has a term against the rest.

    Groups are needed for training and not for prediction: the model sees only its
    features.

    Parameters
    ----------
    strength : float, default=1.0
        Weight of the penalty, in units of the loss of a constant prediction,
        Σ (y - ȳ)²: at 0.1 a correlation of 1 costs a tenth of that loss. With the
        paper's gaps the default leaves (almost) no correlation, and values below 0.05
        trade accuracy for fairness. Where a correlation costs more of the loss than it
        is worth, it stays: `correlation_` says how much, and larger values remove it.
        With 0 the model is :class:`~sklearn.linear_model.Ridge`.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not. Without groups there is no penalty.
    qid : str, callable, True or None, default=None
        Where the queries come from, in the same way; all rows are one query if there
        are none.
    comparison : {"inter", "intra", "all"}, default="inter"
        Pairs of an item in the group with one outside it; pairs inside the group and
        pairs inside the rest (where B is 1 or -1 times y_i - y_j for the group of both
        items); or all pairs.
    max_pairs : int, default=100000
        Number of pairs to learn from for each term, at least 2. Half of them have the
        better item in the group and half outside; they are drawn with replacement. If
        there are no more pairs than that on one side, all of them are taken and nothing
        is drawn. Each side has weight one half.
    alpha : float, default=1.0
        Weight of the squared coefficients.
    max_iter : int, default=500
        Iterations of L-BFGS.
    tol : float, default=1e-5
        Largest gradient at the end, in units of the penalty's weight and of the model's
        own standard errors.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call. The
        pairs are drawn with it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : float
        Score of a row of zeros.
    penalty_path_ : ndarray of shape (n_iterations + 1,)
        Sum of the absolute correlations of the unpenalised model and after each
        iteration. With ``strength=0`` it has only the first value; without a term it is
        empty.
    correlation_ : dict
        The correlation of each term, by group (and stratum). Negative: good items of
        the group win by less than good items of the rest.
    n_pairs_ : dict
        The number of pairs by group (and stratum).
    n_iter_ : int
        Iterations of L-BFGS, at least 1.
    n_features_in_ : int
        Number of features, without the columns of groups and queries.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    Warns
    -----
    UndefinedMetricWarning
        If there is only one group, if a group has no pair to compare, or if all scores
        are equal. That part of the penalty is then left out.
    ConvergenceWarning
        If `max_iter` is too small.

    See Also
    --------
    PairwiseFairClassifier : The same for clicks.
    skrankfair.metrics.pairwise_accuracy : Measures what this mitigates.

    Notes
    -----
    ``|r|`` is smoothed to sqrt(r² + 10⁻⁶) - 10⁻³. The correlation does not change with
    the scale of the score, so the penalty turns the vector of coefficients without
    shrinking it. The penalty is not convex; the descent starts at the unpenalised
    model. With at most 256 features an iteration does not depend on the number of
    pairs.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons", section 5, equations 10 to 12. KDD '19. Section 5
    calls pairs with unequal groups "intra-group"; they are inter-group pairs.

    Examples
    --------
    >>> from skrankfair.datasets import make_underranked_items
    >>> from skrankfair.metrics import pairwise_accuracy
    >>> from skrankfair.mitigation import PairwiseFairRegressor
    >>> data = make_underranked_items(random_state=0)
    >>> who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    >>> for strength in (0, 1):
    ...     model = PairwiseFairRegressor(strength, random_state=0)
    ...     score = model.fit(data.X, data.y_true, **who).predict(data.X)
    ...     r = pairwise_accuracy(data.y_true, score, comparison="inter", **who)
    ...     print(r.contrast("rest", "subgroup", kind="ratio"))
    rest / subgroup: 1.387 (95% interval 1.315 to 1.468, p = 2.03e-37)
    rest / subgroup: 0.9641 (95% interval 0.924 to 1.008, p = 0.103)
    """

    def _unpenalised(self, X: Any, y: Any, weight: Any) -> tuple[SquaredRows, Any]:
        model = Ridge(self.alpha) if self.alpha else LinearRegression()
        if "tol" in model.get_params():  # too large by default for units that differ
            model.set_params(tol=1e-10)
        return SquaredRows(np.asarray(y, dtype=float), weight), model

    def predict(self, X: Any) -> Array:
        """Return the scores.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The columns of the groups and the queries may be missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._linear(X)


class PairwiseFairClassifier(ClassifierMixin, PairwiseFair):
    """Logistic regression whose pairwise errors are uncorrelated with the group.

    Minimises ``Σ log(1 + exp(-t (b + Xw))) + alpha |w|² / 2 + strength L Σ_k
    |Corr_k(A, B)|`` with t = 1 for the second class and -1 for the first, and L the sum
    at its smallest for w = 0. The correlation is over pairs of one query, i of the
    second class and j of the first: A = s_i - s_j is the difference of their linear
    scores, B = g_i - g_j whether the better one is in the group k (g = 1) or outside
    (g = 0). A model for which good items of the group win their comparisons by less
    than good items of the rest is penalised. With two groups there is one term; with
    more, or with overlapping ones, each group has a term against the rest.

    Groups are needed for training and not for prediction: the model sees only its
    features.

    Parameters
    ----------
    strength : float, default=1.0
        Weight of the penalty, in units of L, the loss of a constant prediction: at 0.1
        a correlation of 1 costs a tenth of that loss. With the paper's gaps the default
        leaves (almost) no correlation, and values below 0.05 trade accuracy for
        fairness. Where a correlation costs more of the loss than it is worth, it stays:
        `correlation_` says how much, and larger values remove it. With 0 the model is
        :class:`~sklearn.linear_model.LogisticRegression`.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not. Without groups there is no penalty.
    qid : str, callable, True or None, default=None
        Where the queries come from, in the same way; all rows are one query if there
        are none.
    comparison : {"inter", "intra", "all"}, default="inter"
        Pairs of an item in the group with one outside it; pairs inside the group and
        pairs inside the rest (where B is 1 or -1 for the group of both items); or all
        pairs.
    max_pairs : int, default=100000
        Number of pairs to learn from for each term, at least 2. Half of them have the
        better item in the group and half outside; they are drawn with replacement. If
        there are no more pairs than that on one side, all of them are taken and nothing
        is drawn. Each side has weight one half.
    alpha : float, default=1.0
        Weight of the squared coefficients, ``1 / C`` of `LogisticRegression`.
    max_iter : int, default=500
        Iterations of L-BFGS.
    tol : float, default=1e-5
        Largest gradient at the end, in units of the penalty's weight and of the model's
        own standard errors.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call. The
        pairs are drawn with it.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the better one.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        Score of a row of zeros.
    penalty_path_ : ndarray of shape (n_iterations + 1,)
        Sum of the absolute correlations of the unpenalised model and after each
        iteration. With ``strength=0`` it has only the first value; without a term it is
        empty.
    correlation_ : dict
        The correlation of each term, by group (and stratum). Negative: good items of
        the group win by less than good items of the rest.
    n_pairs_ : dict
        The number of pairs by group (and stratum).
    n_iter_ : int
        Iterations of L-BFGS, at least 1.
    n_features_in_ : int
        Number of features, without the columns of groups and queries.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    Warns
    -----
    UndefinedMetricWarning
        If there is only one group, if a group has no pair to compare, or if all scores
        are equal. That part of the penalty is then left out.
    ConvergenceWarning
        If `max_iter` is too small.

    See Also
    --------
    PairwiseFairRegressor : The same with squared loss, for graded relevance.
    skrankfair.metrics.pairwise_accuracy : Measures what this mitigates.

    Notes
    -----
    ``|r|`` is smoothed to sqrt(r² + 10⁻⁶) - 10⁻³. The correlation does not change with
    the scale of the score, so the penalty turns the vector of coefficients without
    shrinking it. The penalty is not convex; the descent starts at the unpenalised
    model. Probabilities are no longer calibrated: use the model to rank.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons", section 5, equations 10 to 12. KDD '19. Section 5
    calls pairs with unequal groups "intra-group"; they are inter-group pairs.

    Examples
    --------
    >>> from skrankfair.datasets import make_underranked_items
    >>> from skrankfair.metrics import pairwise_accuracy
    >>> from skrankfair.mitigation import PairwiseFairClassifier
    >>> data = make_underranked_items(random_state=0)
    >>> who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    >>> for strength in (0, 1):
    ...     model = PairwiseFairClassifier(strength, random_state=0)
    ...     score = model.fit(data.X, data.y_true, **who).decision_function(data.X)
    ...     r = pairwise_accuracy(data.y_true, score, comparison="inter", **who)
    ...     print(r.contrast("rest", "subgroup", kind="ratio"))
    rest / subgroup: 1.389 (95% interval 1.317 to 1.47, p = 1.2e-37)
    rest / subgroup: 0.9645 (95% interval 0.9243 to 1.008, p = 0.106)
    """

    def _unpenalised(self, X: Any, y: Any, weight: Any) -> tuple[LogisticRows, Any]:
        self.classes_ = two_classes(y[weight > 0])
        codes = y == self.classes_[1]
        few = X.shape[1] <= _FEW_FEATURES
        model = LogisticRegression(
            C=1 / self.alpha if self.alpha else np.inf,
            solver="newton-cholesky" if few else "lbfgs",
            tol=1e-8 if few else 1e-6,
            max_iter=1000,
        )
        return LogisticRows(codes.astype(float), weight), model

    def decision_function(self, X: Any) -> Array:
        """Return the linear scores, positive for the second class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The columns of the groups and the queries may be missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._linear(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the logistic function of the scores, for both classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The columns of the groups and the queries may be missing.

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        score = self._linear(X)
        return np.column_stack([expit(-score), expit(score)])

    def predict(self, X: Any) -> Array:
        """Return the more likely class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The columns of the groups and the queries may be missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        above = self._linear(X) > 0
        return self.classes_[above.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
