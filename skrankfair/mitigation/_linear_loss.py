"""The loss of a linear model, its unpenalised minimum, and the descent from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from .._estimates.metric import warn_user
from .._inputs.validation import Array
from ._pairwise_penalty import is_sparse, smooth_absolute

#: Up to so many features, matrices of their products are held.
FEW_FEATURES = 256
_SINGULAR = 1e-12
_BLOCK = 1 << 13  # rows whose features stay in the cache

#: The correlation of a term, at coefficients, and its gradient.
Term = Callable[[Array], tuple[float, Array]]


def _mean(X: Any) -> Array:
    return np.asarray(X.mean(axis=0), dtype=float).ravel()


def entropy(y: Array) -> float:
    """Return the log loss of the best constant, of outcomes 0 and 1."""
    rate = float(y.mean())
    return -y.size * float(xlogy(rate, rate) + xlogy(1 - rate, 1 - rate))


@dataclass
class SquaredLoss:
    """Σ (y - b - Xw)² + alpha |w|², the intercept b at its best: scikit-learn's Ridge.

    With few features only their products are kept.
    """

    X: Any
    y: Array
    alpha: float

    def __post_init__(self) -> None:
        """Fit the unpenalised model."""
        self.mean, self.y_mean = _mean(self.X), float(self.y.mean())
        self.of_constant = float(((self.y - self.y_mean) ** 2).sum())
        self.few = self.X.shape[1] <= FEW_FEATURES
        if self.few:
            self.gram = self._gram()
            value, vector = np.linalg.eigh(self.gram)
            kept = value > _SINGULAR * max(value.max(), 0.0)
            projected = vector.T @ (self._transposed(self.y - self.y_mean))
            inverse = np.divide(1, value, out=np.zeros_like(value), where=kept)
            self.start = vector @ (inverse * projected)
        else:
            ridge = Ridge(alpha=self.alpha, tol=1e-10).fit(self.X, self.y)
            self.start = np.asarray(ridge.coef_, dtype=float)
            self.at_start = self._residual(self.start)

    def _gram(self) -> Array:
        if is_sparse(self.X):
            product = np.asarray((self.X.T @ self.X).todense())
            product = product - self.y.size * np.outer(self.mean, self.mean)
        else:
            centred = self.X - self.mean
            product = centred.T @ centred
        product[np.diag_indices_from(product)] += self.alpha
        return product

    def _transposed(self, row: Array) -> Array:
        return np.asarray(self.X.T @ row).ravel() - self.mean * row.sum()

    def _residual(self, coef: Array) -> Array:
        return self.y - self.y_mean - (self.X @ coef - self.mean @ coef)

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """Return the loss minus that of the start, and its gradient."""
        step = parameters - self.start
        if self.few:
            # The start is the minimum: what is left is the quadratic term.
            gradient = self.gram @ step
            return float(step @ gradient), 2 * gradient
        moved = self.X @ step - self.mean @ step
        residual = self.at_start - moved
        change = moved @ moved - 2 * (self.at_start @ moved)
        change += self.alpha * (step @ (parameters + self.start))
        gradient = self.alpha * parameters - self._transposed(residual)
        return float(change), 2 * gradient

    def curvature(self) -> Array:
        """Return the Hessian, or its diagonal with many features."""
        if self.few:
            return 2 * self.gram
        squares = self.X.multiply(self.X) if is_sparse(self.X) else self.X**2
        return 2 * (self.y.size * (_mean(squares) - self.mean**2) + self.alpha)

    def intercept(self, parameters: Array) -> float:
        """Return the best intercept."""
        return self.y_mean - float(self.mean @ parameters)


@dataclass
class LogisticLoss:
    """Σ log(1 + exp(-t(b + Xw))) + alpha |w|² / 2, t = ±1: LogisticRegression.

    The parameters are w and b; alpha is ``1 / C``.
    """

    X: Any
    y: Array
    alpha: float

    def __post_init__(self) -> None:
        """Fit the unpenalised model."""
        self.few = self.X.shape[1] <= FEW_FEATURES
        model = LogisticRegression(
            C=1 / self.alpha if self.alpha > 0 else np.inf,
            solver="newton-cholesky" if self.few else "lbfgs",
            tol=1e-8 if self.few else 1e-6,
            max_iter=1000,
        ).fit(self.X, self.y)
        self.start = np.append(model.coef_[0], model.intercept_[0]).astype(float)
        self.of_constant = entropy(self.y)
        self.at_start = 0.0
        self.at_start = self(self.start)[0]

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """Return the loss minus that of the start, and its gradient.

        A block of rows is read once, for the scores and for the gradient.
        """
        coef = parameters[:-1]
        value = self.alpha * float(coef @ coef) / 2 - self.at_start
        gradient = np.append(self.alpha * coef, 0.0)
        for rows in self._blocks():
            X, y = self.X[rows], self.y[rows]
            score = X @ coef + parameters[-1]
            small = np.exp(-np.abs(score))
            value += float((np.log1p(small) + np.maximum(score, 0) - y * score).sum())
            residual = np.where(score > 0, 1.0, small) / (1 + small) - y
            gradient[:-1] += np.asarray(X.T @ residual).ravel()
            gradient[-1] += residual.sum()
        return value, gradient

    def curvature(self) -> Array:
        """Return the Hessian at the start, or its diagonal with many features."""
        p = expit(self.X @ self.start[:-1] + self.start[-1])
        weight = p * (1 - p)
        if not self.few:
            squares = self.X.multiply(self.X) if is_sparse(self.X) else self.X**2
            diagonal = np.asarray(squares.T @ weight).ravel() + self.alpha
            return np.append(diagonal, weight.sum())
        hessian = np.diag(np.append(np.full(self.start.size - 1, self.alpha), 0.0))
        for rows in self._blocks():
            X, of_row = self.X[rows], weight[rows, None]
            weighted = X.multiply(of_row) if is_sparse(X) else X * of_row
            product = X.T @ weighted
            hessian[:-1, :-1] += product.toarray() if is_sparse(product) else product
            hessian[:-1, -1] += np.asarray(weighted.sum(axis=0)).ravel()
        hessian[-1, :-1] = hessian[:-1, -1]
        hessian[-1, -1] = weight.sum()
        return hessian

    def _blocks(self) -> Iterator[slice]:
        """Yield the rows, a block of them at a time; sparse ones all at once."""
        size = self.y.size if is_sparse(self.X) else _BLOCK
        for begin in range(0, self.y.size, size):
            yield slice(begin, begin + size)

    def intercept(self, parameters: Array) -> float:
        """Return the intercept."""
        return float(parameters[-1])


#: Summed loss plus ridge penalty, of parameters whose first are coefficients: `y`, the
#: outcomes, 0 and 1 for classes; `start`, the parameters with the smallest loss; and
#: `of_constant`, the loss of the best constant score, the unit of the strength.
Loss = SquaredLoss | LogisticLoss


@dataclass(frozen=True)
class Objective:
    """Loss plus strength times the sum of smoothed absolute correlations.

    The strength is that of the summed loss: the user's times the loss of a constant.
    """

    loss: Loss
    terms: Sequence[Term]
    strength: float

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """Return the objective minus the loss of the start, and its gradient."""
        value, gradient = self.loss(parameters)
        for term in self.terms:
            correlation, slope = term(parameters)
            penalty, factor = smooth_absolute(correlation)
            value += self.strength * penalty
            gradient[: slope.size] += self.strength * factor * slope
        return value, gradient

    def penalty(self, parameters: Array) -> float:
        """Return the sum of absolute correlations."""
        return float(sum(abs(term(parameters)[0]) for term in self.terms))


class Descent(NamedTuple):
    """The end of a descent, and the penalty along the way."""

    parameters: Array
    path: Array
    n_iter: int


def descend(objective: Objective, max_iter: int, tol: float) -> Descent:
    """Minimise from the unpenalised model, in coordinates in which the loss is round.

    There the loss is |z|²/2 in units of the strength, near the start, so one tolerance
    fits all data.
    """
    start, strength = objective.loss.start, objective.strength
    scale = _whitening(objective.loss.curvature()) * np.sqrt(strength)

    def moved(z: Array) -> Array:
        step: Array = scale @ z if scale.ndim == 2 else scale * z
        return start + step

    def scaled(z: Array) -> tuple[float, Array]:
        value, gradient = objective(moved(z))
        gradient = scale.T @ gradient if scale.ndim == 2 else scale * gradient
        return value / strength, gradient / strength

    path = [objective.penalty(start)]
    found = minimize(
        scaled,
        np.zeros_like(start),
        jac=True,
        method="L-BFGS-B",
        callback=lambda z: path.append(objective.penalty(moved(z))),
        options={"maxiter": max_iter, "gtol": tol, "ftol": 1e-15, "maxls": 50},
    )
    if found.status == 1:
        warn_user(
            f"The fit did not converge in max_iter={max_iter} iterations: the largest "
            f"scaled gradient is {np.abs(found.jac).max():.3g}, more than tol={tol:g}. "
            "Increase max_iter or scale the features.",
            ConvergenceWarning,
        )
    return Descent(moved(found.x), np.array(path), int(found.nit))


def _whitening(curvature: Array) -> Array:
    """Return T with TᵀHT = 1, or its diagonal.

    A direction without curvature is one without data: it is left where it is.
    """
    value, vector = curvature, None
    if curvature.ndim == 2:
        value, vector = np.linalg.eigh(curvature)
    curved = value > _SINGULAR * max(float(value.max()), 0.0)
    inverse = np.zeros_like(value)
    inverse[curved] = 1 / np.sqrt(value[curved])
    return inverse if vector is None else vector * inverse
