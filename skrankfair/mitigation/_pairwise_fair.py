"""Linear rankers whose errors between pairs do not depend on the group."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .._inputs.validation import Array
from ._linear_loss import LogisticLoss, SquaredLoss
from ._pairwise_base import PairwiseFair


class PairwiseFairRegressor(RegressorMixin, PairwiseFair):
    """Ridge regression whose pairwise errors are uncorrelated with the group.

    Minimises ``Σ (y - b - Xw)² + alpha |w|² + strength Σ (y - ȳ)² Σ_k |Corr_k(A, B)|``.
    The correlation is over pairs of items of one query with different outcomes, i the
    better one: A = (s_i - s_j)(y_i - y_j) is how clearly the score tells the two apart,
    B = (g_i - g_j)(y_i - y_j) whether the better one is in the group k (g = 1) or
    outside (g = 0). A model for which good items of the group win their comparisons by
    less than good items of the rest is penalised. Two groups have one term, more (or
    overlapping ones) a term each, against the rest.

    Groups are needed to learn, not to predict: the model sees only its features.

    Parameters
    ----------
    strength : float, default=1.0
        Weight of the penalty, in units of the loss of a constant prediction,
        Σ (y - ȳ)²: at 0.1 a correlation of 1 costs a tenth of what there is to explain.
        The default leaves (nearly) no correlation; what trades one for the other lies
        below, with the paper's gaps below 0.05. 0 is
        :class:`~sklearn.linear_model.Ridge`.
    sensitive_features : str, list of str, callable, True or None, default=None
        The columns of X with the groups, which the model does not see and `predict`
        does not need; or a function of X. True and None: passed to `fit`, and True
        requests it from metadata routing. Without groups there is no penalty.
    qid : str, callable, True or None, default=None
        The same for the query. Without, all rows are one query.
    comparison : {"inter", "intra", "all"}, default="inter"
        Pairs of an item in the group with one outside it; pairs inside the group and
        pairs inside the rest (where B is 1 or -1 times y_i - y_j for the group of both
        items); or all pairs.
    n_pairs : int, default=100000
        Pairs to learn from for each term: half of them with the better item in the
        group, half outside, drawn with replacement. A half that has no more pairs
        than that is taken whole, and nothing is drawn. Both weigh one half.
    alpha : float, default=1.0
        Weight of the squared coefficients.
    max_iter : int, default=500
        Iterations of L-BFGS.
    tol : float, default=1e-5
        Largest gradient at the end, in units of the penalty's weight and of the model's
        own standard errors.
    random_state : int, Generator or None, default=None
        Draws the pairs.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : float
        Score of a row of zeros.
    penalty_path_ : ndarray of shape (n_iterations + 1,)
        Sum of absolute correlations of the unpenalised model and after each iteration;
        its start alone for ``strength=0``, empty without a term.
    correlation_ : dict
        The correlation of each term, by group. Negative: good items of the group win
        by less than good items of the rest.
    n_pairs_ : dict
        The number of pairs by group.
    n_iter_ : int
        Iterations of L-BFGS, at least 1.
    n_features_in_ : int
        Number of features, without the columns of groups and queries.
    feature_names_in_ : ndarray of str
        Their names, where X has names.

    Warns
    -----
    UndefinedMetricWarning
        For one group only, a group without a pair to compare, and equal scores: that
        part of the penalty is left out.
    ConvergenceWarning
        If `max_iter` is too small.

    See Also
    --------
    PairwiseFairClassifier : The same for clicks.
    skrankfair.metrics.pairwise_accuracy : Measures what this mitigates.

    Notes
    -----
    ``|r|`` is smoothed to sqrt(r² + 10⁻⁶) - 10⁻³. The correlation does not change with
    the scale of the score, so the penalty turns the coefficients, without shrinking
    them. It is not convex; the descent starts at the unpenalised model. With at most
    256 features an iteration does not depend on the number of pairs.

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
    rest / subgroup: 1.387 (95% interval 1.313 to 1.465, p = 7.07e-31)
    rest / subgroup: 0.9641 (95% interval 0.9234 to 1.007, p = 0.096)
    """

    def fit(
        self, X: Any, y: Any, sensitive_features: Any = None, qid: Any = None
    ) -> PairwiseFairRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Relevance, larger is better.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d)
            Groups, if the constructor names no column. Several columns are crossed; a
            boolean matrix has one group a column, and they may overlap.
        qid : array-like of shape (n_samples,)
            Query, if the constructor names no column.

        Returns
        -------
        PairwiseFairRegressor

        Raises
        ------
        ValueError
            For parameters outside their range, and columns that are given twice, are
            missing or of another length.
        """
        given = {"sensitive_features": sensitive_features, "qid": qid}
        features, y, groups, query = self._read(X, y, given)
        y = np.asarray(y, dtype=float)
        loss = SquaredLoss(features, y, float(self.alpha))
        self.coef_ = self._fit(features, y, loss, groups, query)
        self.intercept_ = loss.intercept(self.coef_)
        return self

    def predict(self, X: Any) -> Array:
        """Return the scores.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The columns of groups and queries may be missing.

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
    than good items of the rest is penalised. Two groups have one term, more (or
    overlapping ones) a term each, against the rest.

    Groups are needed to learn, not to predict: the model sees only its features.

    Parameters
    ----------
    strength : float, default=1.0
        Weight of the penalty, in units of L, the loss of a constant prediction: at 0.1
        a correlation of 1 costs a tenth of what there is to explain. The default leaves
        (nearly) no correlation; what trades one for the other lies below, with the
        paper's gaps below 0.05. 0 is :class:`~sklearn.linear_model.LogisticRegression`.
    sensitive_features : str, list of str, callable, True or None, default=None
        The columns of X with the groups, which the model does not see and `predict`
        does not need; or a function of X. True and None: passed to `fit`, and True
        requests it from metadata routing. Without groups there is no penalty.
    qid : str, callable, True or None, default=None
        The same for the query. Without, all rows are one query.
    comparison : {"inter", "intra", "all"}, default="inter"
        Pairs of an item in the group with one outside it; pairs inside the group and
        pairs inside the rest (where B is 1 or -1 for the group of both items); or all
        pairs.
    n_pairs : int, default=100000
        Pairs to learn from for each term: half of them with the better item in the
        group, half outside, drawn with replacement. A half that has no more pairs
        than that is taken whole, and nothing is drawn. Both weigh one half.
    alpha : float, default=1.0
        Weight of the squared coefficients, ``1 / C`` of `LogisticRegression`.
    max_iter : int, default=500
        Iterations of L-BFGS.
    tol : float, default=1e-5
        Largest gradient at the end, in units of the penalty's weight and of the model's
        own standard errors.
    random_state : int, Generator or None, default=None
        Draws the pairs.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the better one.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        Score of a row of zeros.
    penalty_path_ : ndarray of shape (n_iterations + 1,)
        Sum of absolute correlations of the unpenalised model and after each iteration;
        its start alone for ``strength=0``, empty without a term.
    correlation_ : dict
        The correlation of each term, by group. Negative: good items of the group win
        by less than good items of the rest.
    n_pairs_ : dict
        The number of pairs by group.
    n_iter_ : int
        Iterations of L-BFGS, at least 1.
    n_features_in_ : int
        Number of features, without the columns of groups and queries.
    feature_names_in_ : ndarray of str
        Their names, where X has names.

    Warns
    -----
    UndefinedMetricWarning
        For one group only, a group without a pair to compare, and equal scores: that
        part of the penalty is left out.
    ConvergenceWarning
        If `max_iter` is too small.

    See Also
    --------
    PairwiseFairRegressor : The same with squared loss, for graded relevance.
    skrankfair.metrics.pairwise_accuracy : Measures what this mitigates.

    Notes
    -----
    ``|r|`` is smoothed to sqrt(r² + 10⁻⁶) - 10⁻³. The correlation does not change with
    the scale of the score, so the penalty turns the coefficients, without shrinking
    them. It is not convex; the descent starts at the unpenalised model. Probabilities
    are no longer calibrated: use the model to rank.

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
    rest / subgroup: 1.389 (95% interval 1.315 to 1.468, p = 4.61e-31)
    rest / subgroup: 0.9645 (95% interval 0.9238 to 1.007, p = 0.0995)
    """

    def fit(
        self, X: Any, y: Any, sensitive_features: Any = None, qid: Any = None
    ) -> PairwiseFairClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes; the second in sorted order is the better one.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d)
            Groups, if the constructor names no column. Several columns are crossed; a
            boolean matrix has one group a column, and they may overlap.
        qid : array-like of shape (n_samples,)
            Query, if the constructor names no column.

        Returns
        -------
        PairwiseFairClassifier

        Raises
        ------
        ValueError
            For parameters outside their range, for columns that are given twice, are
            missing or of another length, and unless y has two classes.
        """
        given = {"sensitive_features": sensitive_features, "qid": qid}
        features, y, groups, query = self._read(X, y, given)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}, y has {self.classes_.size} classes; use "
                "PairwiseFairRegressor for graded relevance."
            )
        if self.classes_.size == 1:
            raise ValueError(
                "y must have two classes, one of them better; it has one class, "
                f"{self.classes_.tolist()[0]!r}."
            )
        codes = codes.astype(float)
        loss = LogisticLoss(features, codes, float(self.alpha))
        parameters = self._fit(features, codes, loss, groups, query)
        self.coef_ = parameters[None, :-1]
        self.intercept_ = np.array([loss.intercept(parameters)])
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the linear scores, positive for the second class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The columns of groups and queries may be missing.

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
            The columns of groups and queries may be missing.

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
            The columns of groups and queries may be missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        above = self._linear(X) > 0
        label: Array = self.classes_[above.astype(int)]
        return label

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
