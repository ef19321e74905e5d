"""Expected outcomes of several objectives as functions of all their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from .._inputs.validation import Array
from ..smoothing import NadarayaWatsonRegressor
from ._curves import estimator_response, fit_platt, link_of, weighted_quantiles
from ._methods import fit_model, row_weights

# More rows than this are smoothed on a grid, of so many scores a column.
_EXACT_ROWS = 2000
_GRID = {1: 400, 2: 100, 3: 40}


class Surface(Protocol):
    """The expected outcomes as a function of the scores."""

    def predict(self, score: Array) -> Array:
        """Return the expected outcomes, shape (n, K), at scores, shape (n, d)."""
        ...


@dataclass(frozen=True)
class Logistic:
    """``σ(intercept + slopes · s)``, of scores or of their log-odds.

    Attributes
    ----------
    intercept : ndarray of shape (K,)
    slopes : ndarray of shape (K, d)
    log_odds : ndarray of shape (d,), bool
        Which columns are log-odds of the scores.
    """

    intercept: Array
    slopes: Array
    log_odds: Array

    def predict(self, score: Array) -> Array:
        return expit(self.intercept + links_of(score, self.log_odds) @ self.slopes.T)


@dataclass(frozen=True)
class Models:
    """Fitted scikit-learn models: one of all outcomes, or one of each.

    Attributes
    ----------
    estimators : tuple
    """

    estimators: tuple[Any, ...]

    def predict(self, score: Array) -> Array:
        parts = [estimator_response(model, score) for model in self.estimators]
        return np.column_stack(parts)


@dataclass(frozen=True)
class Grid:
    """Linear between the nodes of a grid, constant outside of it.

    Attributes
    ----------
    axes : tuple of ndarray
        Scores of each column, increasing.
    values : ndarray of shape (k_1, ..., k_d, K)
    """

    axes: tuple[Array, ...]
    values: Array

    def predict(self, score: Array) -> Array:
        low = [axis[0] for axis in self.axes]
        high = [axis[-1] for axis in self.axes]
        found = RegularGridInterpolator(self.axes, self.values)
        return found(np.clip(score, low, high))


def links_of(score: Array, log_odds: Array) -> Array:
    """Return scores, log-odds in the columns that are probabilities."""
    return np.where(log_odds, link_of(np.where(log_odds, score, 0.5)), score)


def fit_surface(
    regressor: Any,
    score: Array,
    outcome: Array,
    *,
    weight: Array | None = None,
    cluster: Array | None = None,
    cluster_weight: str = "cluster",
    log_odds: list[bool],
) -> Surface:
    """Return the expected outcomes as a function of all scores, on clean arrays.

    Parameters
    ----------
    regressor : str or estimator
    score : ndarray of shape (n, d)
    outcome : ndarray of shape (n, K)
    weight : ndarray of shape (n,) or None
        Positive.
    cluster : ndarray of shape (n,), int64, or None
    cluster_weight : {"cluster", "row"}
    log_odds : list of bool, length d
        For "platt": which scores are probabilities.

    Returns
    -------
    Surface
    """
    rows = row_weights(len(score), weight, cluster, cluster_weight)
    if regressor == "platt":
        odds = np.array(log_odds)
        links = links_of(score, odds)
        fits = [fit_platt(links, y, rows) for y in outcome.T]
        slopes = np.array([slopes for _, slopes in fits])
        return Logistic(np.array([level for level, _ in fits]), slopes, odds)
    model = NadarayaWatsonRegressor() if isinstance(regressor, str) else regressor
    fitted = []
    for y in _parts(model, outcome):
        one = clone(model)
        if is_classifier(one) and (y == y[0]).all():
            one = _Constant(float(y[0]))
        else:
            fit_model(one, score, y, weight, cluster, cluster_weight)
        fitted.append(one)
    smooth = isinstance(model, NadarayaWatsonRegressor) and model.kernel == "gaussian"
    if smooth and len(score) > _EXACT_ROWS and score.shape[1] in _GRID:
        axes = _axes(score, rows)
        if min(axis.size for axis in axes) > 1:
            values = [one.predict_grid(axes) for one in fitted]
            return Grid(axes, np.stack(values, axis=-1))
    return Models(tuple(fitted))


def _parts(model: Any, outcome: Array) -> list[Array]:
    """Return the outcomes that one model is fitted to: all of them, or each alone."""
    several = get_tags(model).target_tags.multi_output and not is_classifier(model)
    return [outcome] if several and outcome.shape[1] > 1 else list(outcome.T)


@dataclass(frozen=True)
class _Constant:
    """A classifier of one outcome."""

    outcome: float

    def predict(self, X: Array) -> Array:
        return np.full(len(X), self.outcome)


def _axes(score: Array, weight: Array) -> tuple[Array, ...]:
    """Return the nodes along each column of scores, half even in range and rank."""
    size = _GRID[score.shape[1]] // 2
    axes = []
    for column in score.T:
        order = np.argsort(column, kind="stable")
        levels = (np.arange(size) + 0.5) / size
        ranks = weighted_quantiles(column[order], weight[order], levels)
        even = np.linspace(column.min(), column.max(), size)
        axes.append(np.unique(np.concatenate([ranks, even])))
    return tuple(axes)
