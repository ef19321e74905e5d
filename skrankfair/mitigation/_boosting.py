"""Pairwise regularisation as an objective of XGBoost and LightGBM."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from .._inputs.validation import (
    Array,
    as_numbers,
    check_aligned,
    check_binary,
    check_choice,
    check_lengths,
    check_magnitude,
    check_number,
    generator,
)
from ._pairwise_penalty import (
    LEAST_HESSIAN,
    LogisticRows,
    PairSource,
    PairwisePenalty,
    SquaredRows,
    absolute_correlations,
    groups_and_queries,
    pairwise_penalty,
    smooth_absolute,
)

#: |r| is rounded off below this, and below the strength: trees take steps, and cannot
#: follow a kink.
_WIDTH = 0.05
#: Least standard deviation of A, in units of the loss's score differences.
_SPREAD = 0.3


@dataclass(frozen=True)
class PairwiseRows:
    """n times the mean of log(1 + exp(s_j - s_i)) over pairs, i the better one."""

    better: Array
    worse: Array
    n_rows: int
    weight: Array  # of the pairs
    constant = 0.0
    unit = 2.0

    def __call__(self, score: Array) -> tuple[float, Array, Array]:
        """Return the loss, its gradient, and the diagonal of its Hessian."""
        ahead = score[self.worse] - score[self.better]
        wrong, scale = expit(ahead), self.weight * self.n_rows / self.weight.sum()

        def by_row(row: Array, value: Array) -> Array:
            return np.bincount(row, scale * value, minlength=self.n_rows)

        gradient = by_row(self.worse, wrong) - by_row(self.better, wrong)
        curvature = wrong * (1 - wrong)
        hessian = by_row(self.worse, curvature) + by_row(self.better, curvature)
        loss = float((scale * np.logaddexp(0, ahead)).sum())
        return loss, gradient, np.maximum(hessian, LEAST_HESSIAN)


#: A summed loss of scores: `constant` is the best constant score, whose loss is the
#: unit of the strength, and `unit` a usual difference of scores.
RowLoss = SquaredRows | LogisticRows | PairwiseRows


class PairwiseFairnessObjective:
    """Gradient and Hessian of a loss with pairwise regularisation.

    Made by `pairwise_fairness_objective`. XGBoost's and LightGBM's scikit-learn
    estimators call it with outcomes and scores, `xgboost.train` and `lightgbm.train`
    with scores and their data set; it tells the two apart.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    loss : RowLoss
    penalty : PairwisePenalty
    strength : float
    learning_rate : float

    Attributes
    ----------
    base_score : float
        The score to start from: the best constant.

    Notes
    -----
    A model keeps its objective. The outcomes, groups and queries of the training rows
    are therefore left out when it is pickled: a copy in another process, or from a
    file, predicts but cannot train.
    """

    # LightGBM's scikit-learn estimators ask functions for it.
    __name__ = "pairwise_fairness"

    def __init__(
        self,
        y_true: Array,
        loss: RowLoss,
        penalty: PairwisePenalty,
        strength: float,
        learning_rate: float,
    ) -> None:
        self._y_true = y_true
        self.strength = strength
        self.learning_rate = learning_rate
        self.base_score = loss.constant
        self._loss = loss
        self._penalty = replace(penalty, least_spread=_SPREAD * loss.unit)
        self._width = max(_WIDTH, strength)
        self._weight = strength * loss(np.full(y_true.size, loss.constant))[0]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what tells of the people in the training rows."""
        kept = ("strength", "learning_rate", "base_score")
        return {name: getattr(self, name) for name in kept}

    def __copy__(self) -> PairwiseFairnessObjective:
        """Return itself, which nothing changes, with its data."""
        return self

    def __deepcopy__(self, memo: Any) -> PairwiseFairnessObjective:
        """Return itself, as `sklearn.base.clone` needs it."""
        return self

    @property
    def y_true(self) -> Array:
        """The outcomes of the training rows, which a copy from a pickle has not."""
        if "_y_true" not in self.__dict__:
            raise ValueError(
                "The objective was pickled, which leaves out the training data, their "
                "groups and queries: to train, call pairwise_fairness_objective where "
                "the model is fitted."
            )
        return self._y_true

    def __call__(
        self, first: Any, second: Any, weight: Any = None
    ) -> tuple[Array, Array]:
        """Return the gradient and the diagonal of the Hessian.

        Parameters
        ----------
        first, second : array-like of shape (n,)
            Outcomes and scores; or scores and the `xgboost.DMatrix` or
            `lightgbm.Dataset`.
        weight : array-like of shape (n,) or None, default=None
            Weights of the model's `fit`, which must be 1.

        Returns
        -------
        gradient, hessian : ndarray of shape (n,)

        Raises
        ------
        ValueError
            If the rows are not those that the objective was made for, if the model has
            weights, which the objective has for its pairs too, or if it was pickled.
        """
        y, score = first, second
        if hasattr(second, "get_label"):
            y, score, weight = second.get_label(), first, second.get_weight()
        if weight is not None and (np.asarray(weight) != 1).any():
            raise ValueError("sample_weight must go to the objective, and not to fit.")
        y, score = np.asarray(y, dtype=float), np.asarray(score, dtype=float).ravel()
        # Libraries hold outcomes in single precision.
        if y.shape != self.y_true.shape or not np.allclose(y, self.y_true, rtol=1e-5):
            raise ValueError(
                "y_true must be the outcomes of the training rows, in their order "
                f"({self.y_true.size} rows); the model is fitted to {y.size} other "
                "ones. A model that is fitted to folds needs one objective per fold."
            )
        _, gradient, hessian = self._loss(score)
        if self._weight > 0:
            for share, correlation in self._penalty.terms:
                value, slope = correlation(score)
                weight = self._weight * share
                factor = smooth_absolute(value, self._width)[1]
                gradient = gradient + weight * factor * slope
                size = np.abs(slope)
                bound = weight / np.hypot(value, self._width) * size.sum()
                hessian = hessian + self.learning_rate * bound * size
        return gradient, hessian

    def correlation(self, score: Any) -> dict[Hashable, float]:
        """Return the correlation of each term.

        Parameters
        ----------
        score : array-like of shape (n,)
            Scores of the training rows.

        Returns
        -------
        dict
            By group, or by (group, stratum); negative: good items of the group win by
            less than good items of the rest. NaN where all scores are equal.
        """
        score = self._checked(score)
        return self._penalty.correlation(score)

    def value(self, score: Any) -> float:
        """Return the loss plus the penalty, which the model minimises.

        Parameters
        ----------
        score : array-like of shape (n,)
            Scores of the training rows.

        Returns
        -------
        float
        """
        score = self._checked(score)
        penalty = absolute_correlations(self._penalty.terms, score, self._width)[0]
        return self._loss(score)[0] + self._weight * penalty

    def _checked(self, score: Any) -> Array:
        """Return scores of the training rows; a ValueError for others."""
        score = as_numbers(score, "score")
        check_lengths(y_true=self.y_true.size, score=score.size)
        return score


def pairwise_fairness_objective(
    y_true: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    sample_weight: Any = None,
    penalty: PairwisePenalty | None = None,
    strength: float = 1.0,
    loss: str = "squared",
    comparison: str = "inter",
    learning_rate: float = 0.3,
    max_pairs: int = 100_000,
    random_state: int | np.random.Generator | None = None,
) -> PairwiseFairnessObjective:
    """Make an objective that teaches a boosted model not to underrank a group.

    The boosted model minimises Σ loss + strength L Σ_k abs(Corr_k(A, B)), where L is
    the loss of the best constant score and the correlations are those of
    `PairwiseFairRegressor`. The groups are bound to the training rows here, so the
    model needs none to predict.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better. They are those
        of the training rows, in the order in which the model is fitted.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        They must be given, unless a penalty is.
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the row: a weight of 2 counts the row twice. A pair counts the
        geometric mean of the weights of its two rows. The model gets none in its `fit`.
        Rows of weight 0 in the loss can be those of the pairs of a `penalty`, such as
        those of an experiment.
    penalty : PairwisePenalty or None, default=None
        What `pairwise_penalty` returns for these rows, with strata of engagement,
        weights or pairs of its own. None makes it of the groups, the queries, the
        weights and the options below.
    strength : float, default=1.0
        Weight of the penalty, in units of L: at 0.1 a correlation of 1 costs a tenth of
        that loss. The default leaves little correlation where it costs little of the
        loss, as in `PairwiseFairRegressor`; 0 is the loss alone.
    loss : {"squared", "logistic", "pairwise"}, default="squared"
        (y - s)²/2; the log loss of outcomes 0 and 1; or log(1 + exp(s_j - s_i)) over
        pairs of a query with y_i > y_j, whose mean is multiplied by n_samples.
    comparison : {"inter", "intra", "all"}, default="inter"
        Pairs of the penalty: an item in the group with one outside it, pairs inside the
        group and inside the rest, or all.
    learning_rate : float, default=0.3
        The learning rate of the boosted model, 0.3 in XGBoost and 0.1 in LightGBM
        unless you set it. If the number is too small, the penalty overshoots; if it is
        too large, the model needs more trees.
    max_pairs : int, default=100000
        Pairs drawn for each term of the penalty, and for the pairwise loss; at least
        2.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call. The
        pairs are drawn with it.

    Returns
    -------
    PairwiseFairnessObjective
        For ``XGBRegressor(objective=...)``, ``LGBMRegressor(objective=...)``,
        ``xgboost.train(..., obj=...)`` and the parameter "objective" of
        ``lightgbm.train``. `XGBRanker` takes no function as its objective: use
        `XGBRegressor` with ``loss="pairwise"``.

    Raises
    ------
    ValueError
        If columns have different lengths, an option is outside its range, outcomes are
        not 0 and 1 with the logistic loss, or there is no pair at all with the pairwise
        loss.

    Warns
    -----
    UndefinedMetricWarning
        If there is only one group, or if a group has no comparable pair; that part of
        the penalty is then left out.

    See Also
    --------
    PairwiseFairRegressor : The linear model.

    Notes
    -----
    The gradient is exact. For r = Corr_k(A, B) with slope v in the scores, abs(r) is
    sqrt(r² + ε²) - ε with ε = max(0.05, strength), and the penalty's part of the
    Hessian is its upper bound abs(v_i) Σ_j abs(v_j) / sqrt(r² + ε²) times L, strength
    and learning rate: all leaves together cannot step over r = 0, as they do, from one
    side to the other, with the Hessian of the loss alone. Scores that are nearly equal,
    those of the first trees, have correlations that mean little; the standard deviation
    of A is at least about 0.3 deviations of y with the squared loss and 0.6 with the
    others.

    Libraries start functions from 0 or 0.5. Let them start from the best constant, or
    their first trees are spent on the level of the scores, and rows with a large
    Hessian lag behind: ``XGBRegressor(base_score=objective.base_score)`` (of
    `XGBClassifier` it is a probability, ``y.mean()``), and in `fit` of LightGBM's
    estimators ``init_score=np.full(n, objective.base_score)``; their predictions leave
    it out, which does not change a ranking.

    Each call takes time and memory in proportion to rows and pairs. Boosting stops at
    some distance from the minimum: look at ``objective.correlation(model.predict(X))``.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons", section 5, equations 10 to 12. KDD '19.

    Examples
    --------
    >>> from skrankfair.datasets import make_underranked_items
    >>> from skrankfair.mitigation import pairwise_fairness_objective
    >>> data = make_underranked_items(random_state=0)
    >>> objective = pairwise_fairness_objective(
    ...     data.y_true,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     random_state=0,
    ... )  # for XGBRegressor(objective=objective, base_score=objective.base_score)
    >>> gradient, hessian = objective(data.y_true, data.y_score)
    >>> gradient.shape
    (40000,)
    >>> print(f"{objective.correlation(data.y_score)['rest']:.2f}")
    0.38
    """
    check_number(strength, "strength", 0, np.inf, inclusive=(True, False))
    check_number(learning_rate, "learning_rate", 0, np.inf, inclusive=(False, False))
    check_number(max_pairs, "max_pairs", 2, np.inf, integer=True)
    check_choice(loss, "loss", ("squared", "logistic", "pairwise"))
    columns = {"sensitive_features": sensitive_features, "qid": qid}
    columns["sample_weight"] = sample_weight
    check_aligned(y_true=y_true, **columns)
    y = as_numbers(y_true, "y_true")
    check_magnitude(y_true=y)
    _, query, weight = groups_and_queries({"y_true": y.size}, **columns)
    rng = generator(random_state)
    of_rows: RowLoss = SquaredRows(y, weight)
    if loss == "logistic":
        check_binary(y, "y_true", 'with loss="logistic"', np.arange(y.size))
        of_rows = LogisticRows(y, weight)
    elif loss == "pairwise":
        # Pairs of any groups, drawn alike: the group of the loss is everyone.
        source = PairSource(y, query, "all", 2 * int(max_pairs), rng, weight)
        _, (i, j) = source.sides(np.ones(y.size, dtype=bool))
        if not i.size:
            raise ValueError(
                "y_true must differ within a query for a pairwise loss; no query has a "
                "better and a worse item."
            )
        of_rows = PairwiseRows(i, j, y.size, np.sqrt(weight[i] * weight[j]))
    if penalty is None:
        penalty = pairwise_penalty(
            y,
            **columns,
            comparison=comparison,
            max_pairs=max_pairs,
            random_state=rng,
        )
    if not isinstance(penalty, PairwisePenalty):
        raise ValueError(
            f"penalty must be what pairwise_penalty returns; got {penalty!r}."
        )
    check_lengths(y_true=y.size, penalty=penalty.n_rows)
    return PairwiseFairnessObjective(
        y, of_rows, penalty, float(strength), float(learning_rate)
    )
